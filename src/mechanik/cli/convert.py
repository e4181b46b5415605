"""`mechanik convert`: from one kind of file to another."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from mechanik.cli.info_data import size_of
from mechanik.cli.opening import STANDARD_INPUT, open_mechanism
from mechanik.cli.output import aside, count, say
from mechanik.cli.usage import UsageError
from mechanik.formats import load, save
from mechanik.formats.load import WRITERS
from mechanik.mechanism import Mechanism


def convert(
    file: str,
    out: str,
    /,
    *,
    base: Literal["fixed", "free"] | None = None,
    trim: bool = False,
    force: bool = False,
) -> None:
    """Write a mechanism to another file, .json (all of it) or .urdf (what URDF can say).

    What the new file does not hold, or holds in another way, is said.

    For example:

        mechanik convert robot.urdf robot.json
        mechanik convert robot.urdf floating.json --base free --trim
        mechanik convert gallery:panda panda.urdf --force

    Parameters
    ----------
    file
        A URDF, MJCF, SDF or JSON file, `gallery:NAME`, or `-` for standard input.
    out
        The file to write, ending in .json or .urdf.
    base
        For a URDF: whether its root stands in the world or floats.
    trim
        Cut off branches that hold no moving joint.
    force
        Replace a file that exists.
    """
    target = _target(out, force)
    options: dict[str, Any] = {}
    if base is not None:
        options["base"] = base
    if trim:
        options["trim"] = True
    mechanism = open_mechanism(file, **options)
    losses = save(mechanism, target)
    for text in mechanism.warnings:
        aside(f"warning: {text}")
    written = load(target)
    say(f"wrote {out}: {size_of(written)}")
    for text in (*losses, *_additions(mechanism, written)):
        aside(f"note: {text}")


def _target(out: str, force: bool) -> Path:
    """Where to write; what cannot be meant is refused before anything is read."""
    suffixes = " or ".join(WRITERS)
    if out == STANDARD_INPUT:
        raise UsageError(f"an output file is needed in place of '-'; its ending, {suffixes}, says how to write it")
    try:
        target = Path(out).expanduser()
        mode = target.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        target, mode = Path(out).expanduser(), None
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"{out!r} cannot be written: {getattr(error, 'strerror', None) or error}") from None
    if mode is not None and stat.S_ISDIR(mode):
        raise UsageError(f"{out} is a folder; name a file in it that ends in {suffixes}")
    if target.suffix.lower() not in WRITERS:
        raise UsageError(f"{out!r} must end in {suffixes}, which says how to write it")
    if mode is None and not target.parent.is_dir():
        raise UsageError(f"{out} cannot be written: there is no folder {target.parent}")
    if mode is not None and not stat.S_ISREG(mode):
        raise UsageError(f"{out} is no ordinary file and cannot be replaced")
    if mode is not None and not force:
        raise UsageError(f"{out} exists; say --force to replace it")
    return target


def _additions(before: Mechanism, after: Mechanism) -> Iterator[str]:
    """Links and joints that the writer needed; the parts of a joint that it split are none."""
    parts = {f"{name}.{dof.name}" for name, joint in before.joints.items() for dof in joint.dof}
    links = [name for name in after.links if name not in before.links]
    joints = [name for name in after.joints if name not in before.joints and name not in parts]
    for what, names in (("link", links), ("joint", joints)):
        if names:
            yield f"{count(len(names), what)} added: {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
