"""`mechanik convert`: from one kind of file to another."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, cast

from mechanik.cli.opening import open_mechanism
from mechanik.cli.output import aside, count, say
from mechanik.cli.usage import UsageError
from mechanik.formats import describe, load, save
from mechanik.formats.load import WRITERS
from mechanik.mechanism import Mechanism

PARTS = {
    "goals": "goal",
    "closures": "closure",
    "couplings": "coupling",
    "configurations": "named configuration",
    "frames": "plain frame",
}
FIELDS = {"values": "values", "targets": "targets", "rest_pose": "rest pose", "track_turns": "counting of turns"}


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

    What the new file does not hold is said.

    For example:

        mechanik convert robot.urdf robot.json
        mechanik convert robot.urdf floating.json --base free --trim
        mechanik convert gallery:panda panda.urdf --force

    Parameters
    ----------
    file
        A URDF or JSON file, `gallery:NAME`, or `-` for standard input.
    out
        The file to write, ending in .json or .urdf.
    base
        For a URDF: whether its root stands in the world or floats.
    trim
        Cut off branches that hold no moving joint.
    force
        Replace a file that exists.
    """
    target = Path(out).expanduser()
    if target.suffix.lower() not in WRITERS:
        raise UsageError(f"{out!r} must end in {' or '.join(WRITERS)}, which says how to write it")
    if target.exists() and not force:
        raise UsageError(f"{out} exists; say --force to replace it")
    options: dict[str, Any] = {}
    if base is not None:
        options["base"] = base
    if trim:
        options["trim"] = True
    mechanism = open_mechanism(file, **options)
    save(mechanism, target)
    for text in mechanism.warnings:
        aside(f"warning: {text}")
    say(f"wrote {out}: {count(len(mechanism.links), 'link')}, {count(len(mechanism.joints), 'joint')}")
    for text in lost(mechanism, load(target)):
        aside(f"lost: {text}")


def lost(before: Mechanism, after: Mechanism) -> list[str]:
    """What the first mechanism has and the second, read back from a file, does not."""
    old, new = describe(before), describe(after)
    texts: list[str] = []
    for part, what in PARTS.items():
        missing = len(old[part]) - len(new[part])
        if missing > 0:
            names = [str(one.get("name") or one.get("joint") or one.get("follower")) for one in _records(old[part])]
            texts.append(f"{count(missing, what)} of {', '.join(names)}" if missing < len(names) else _all(what, names))
    joints = {joint["name"]: joint for joint in new["joints"]}
    gone = [joint["name"] for joint in old["joints"] if joint["name"] not in joints]
    texts += [_all("joint", gone)] if gone else []
    for key, what in FIELDS.items():
        both = [(joint, joints[joint["name"]]) for joint in old["joints"] if joint["name"] in joints]
        changed = [before["name"] for before, after in both if _differ(before[key], after[key])]
        texts += [f"{what} of {_all('joint', changed)}"] if changed else []
    links = {link["name"] for link in new["links"]}
    gone = [link["name"] for link in old["links"] if link["name"] not in links]
    texts += [_all("link", gone)] if gone else []
    return texts


def _records(part: Any) -> list[dict[str, Any]]:
    return [{"name": name} for name in cast("dict[str, Any]", part)] if isinstance(part, dict) else part


def _all(what: str, names: list[str]) -> str:
    return f"{count(len(names), what)}: {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"


def _differ(a: Any, b: Any) -> bool:
    """Beyond rounding: values may come back through arithmetic."""
    if isinstance(a, list) and isinstance(b, list):
        old, new = cast("list[Any]", a), cast("list[Any]", b)
        return len(old) != len(new) or any(_differ(x, y) for x, y in zip(old, new, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) > 1e-9 * (1 + abs(a))
    return a != b
