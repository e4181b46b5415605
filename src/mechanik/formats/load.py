"""One door for files: reading chooses by content, writing by suffix."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import secrets
import shutil
import stat
from collections.abc import Generator
from pathlib import Path
from typing import Any

from mechanik.errors import CannotSave, JsonError, MechanikError, UnknownFormat, UnknownOption, UrdfError
from mechanik.formats.json_reader import read_json
from mechanik.formats.json_writer import write_json
from mechanik.formats.losses import urdf_losses
from mechanik.formats.mjcf_reader import read_mjcf
from mechanik.formats.sdf_reader import read_sdf
from mechanik.formats.source import Source, open_source
from mechanik.formats.srdf import apply_srdf
from mechanik.formats.urdf_reader import read_urdf
from mechanik.formats.urdf_writer import write_urdf
from mechanik.mechanism import Mechanism

READERS = {"URDF": read_urdf, "MJCF": read_mjcf, "SDF": read_sdf, "JSON": read_json}
WRITERS = {".urdf": write_urdf, ".json": write_json}
ROOTS = {"robot": "URDF", "mujoco": "MJCF", "mujocoinclude": "MJCF", "sdf": "SDF"}
"""The outermost element of each kind of XML."""

# everything that may stand before the first element: declarations, comments, and a document type with its entities
_BEFORE_ROOT = re.compile(r"\s*+(?:<\?.*?\?>|<!--.*?-->|<![A-Z][^\[<>]*+(?:\[[^\]]*+\])?[^<>]*+>)", re.DOTALL)
_ELEMENT = re.compile(r"\s*<([A-Za-z_][\w.:-]*)")


def load(source: str | os.PathLike[str], *, srdf: str | os.PathLike[str] | None = None, **options: Any) -> Mechanism:
    """The mechanism in a file, or in text that begins with `<` or `{`; what it is shows in its content.

    Args:
        source: a path, or the text itself: a URDF, an MJCF (which needs the package `mujoco`), an SDF, or JSON of our
            own (a mechanism, a DH table, an arm list).
        srdf: path or text of an SRDF beside it, whose pairs become `unchecked`, and whose states of groups become named
            configurations.
        options: of the reader that is chosen: `base`, `mimic`, `trim`, `packages` and `closures` for a URDF,
            `sites` for MJCF, `base` and `packages` for SDF, `packages` for JSON.
    Raises:
        FileMissing: there is no such file.
        FormatError: what is there is no mechanism; the message says where and why.
        UnknownOption: the reader that was chosen does not take one of the options.
    """
    opened = open_source(source)
    kind = recognise(opened)
    reader = READERS[kind]
    taken = list(inspect.signature(reader).parameters)[1:]
    if unknown := [name for name in options if name not in taken]:
        named = ", ".join(f"{name}=" for name in unknown)
        raise UnknownOption(
            f"{opened.where}a {kind} file is read without the option {named}; there are {', '.join(taken) or 'none'}"
        )
    mechanism = reader(opened.path if opened.path is not None else str(source), **options)
    if srdf is not None:
        apply_srdf(srdf, mechanism)
    return mechanism


def recognise(opened: Source) -> str:
    """ "URDF", "MJCF", "SDF" or "JSON", by content."""
    start = opened.data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if opened.data.startswith((b"\xff\xfe", b"\xfe\xff")):
        start = opened.text().lstrip("\ufeff \t\r\n")[:1].encode()
    if start in (b"{", b"["):
        return "JSON"
    if start == b"<":
        return _recognise_xml(opened)
    if opened.name.lower().endswith(".json"):
        return "JSON"  # whose reader says in which line it goes wrong
    shown = opened.data.lstrip()[:24].decode(errors="replace").split("\n")[0]
    raise UnknownFormat(
        f"{opened.where}it begins with {shown!r}; a URDF begins with '<', a mechanism of our own with '{{'"
    )


def save(mechanism: Mechanism, path: str | os.PathLike[str]) -> list[str]:
    """Write a mechanism to a .json or .urdf file; JSON holds all of it, a URDF what URDF can say.

    The file is written beside its place and then moved there, so that an older one is replaced as a whole or stays.

    Returns:
        A sentence for each kind of thing that the file does not hold; none where nothing is lost, as in JSON.
    Raises:
        CannotSave: no file can be written there.
        JsonError, UrdfError: the mechanism holds what could not be read again.
    """
    if not isinstance(path, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UnknownFormat(f"a path is needed, not {type(path).__name__}")
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix not in WRITERS:
        raise UnknownFormat(f"{file.name!r} must end in {' or '.join(WRITERS)}, which says how to write it")
    target = _target(file)
    data = WRITERS[suffix](mechanism).encode()
    _check_readable(data, file.expanduser(), suffix)
    _replace(target, data)
    return urdf_losses(mechanism) if suffix == ".urdf" else []


def _check_readable(data: bytes, file: Path, suffix: str) -> None:
    """Read it as `load` will, with what stands beside it, so that nothing is replaced by what is of no use."""
    reader, error_type = (read_urdf, UrdfError) if suffix == ".urdf" else (read_json, JsonError)
    try:
        reader(Source(data, file))
    except MechanikError as error:
        raise error_type(f"this could not be read again, so it is not written: {error}") from error


def _recognise_xml(opened: Source) -> str:
    encoding = "utf-16" if opened.data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    rest = opened.data[: 1 << 20].decode(encoding, errors="replace").lstrip("\ufeff \t\r\n")
    start = 0
    while (before := _BEFORE_ROOT.match(rest, start)) is not None:
        start = before.end()
    found = _ELEMENT.match(rest, start)
    tag = found.group(1) if found is not None else ""
    if tag == "COLLADA":
        raise UnknownFormat(f"{opened.where}COLLADA is the format of a mesh, and what moves in it is not read")
    if tag and tag not in ROOTS:
        raise UnknownFormat(
            f"{opened.where}the root element is <{tag}>; "
            "that of a URDF is <robot>, of an MJCF <mujoco>, of an SDF <sdf>"
        )
    return ROOTS.get(tag, "URDF")  # without any element too: its reader says what is wrong with the XML


def _target(file: Path) -> Path:
    """The file to replace or to make; a symbolic link is followed, and stays one."""
    with _refusal(file):
        file = file.expanduser()
        target = file.resolve()
        try:
            mode = os.stat(file).st_mode
        except FileNotFoundError:
            if not target.parent.is_dir():
                raise CannotSave(f"{file} cannot be written: there is no folder {target.parent}") from None
            return target
        if stat.S_ISDIR(mode):
            raise CannotSave(f"{file} is a folder; name a file in it")
        if not stat.S_ISREG(mode):
            raise CannotSave(f"{file} is a pipe, a device or a socket, which a file would take the place of")
        return target


def _replace(target: Path, data: bytes) -> None:
    with _refusal(target):
        beside = target.with_name(f".{secrets.token_hex(8)}.part")  # short, as the name itself may be long
        try:
            with open(beside, "xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            if target.exists():
                shutil.copymode(target, beside)
            os.replace(beside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise


@contextlib.contextmanager
def _refusal(file: Path) -> Generator[None]:
    """Say what the system says, as our own error."""
    try:
        yield
    except MechanikError:
        raise
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CannotSave(f"{file} cannot be written: {reason}") from None
