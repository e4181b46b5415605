"""Load and save mechanisms: `load` chooses the reader by content, `save` chooses the writer by file suffix."""

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

from mechanik.errors import CannotSave, FormatError, InvalidArgument, MechanikError
from mechanik.formats.json.reader import read_json
from mechanik.formats.json.writer import write_json
from mechanik.formats.mjcf.reader import read_mjcf
from mechanik.formats.sdf.reader import read_sdf
from mechanik.formats.source import Source, open_source
from mechanik.formats.srdf import apply_srdf
from mechanik.formats.urdf.reader import read_urdf
from mechanik.formats.urdf.writer import urdf_losses, write_urdf
from mechanik.model import Mechanism

READERS = {"URDF": read_urdf, "MJCF": read_mjcf, "SDF": read_sdf, "JSON": read_json}
"""The reader of each format, by the name that `detect_format` returns."""
WRITERS = {".urdf": write_urdf, ".json": write_json}
"""The writer of each file suffix."""
LOSSES = {".urdf": urdf_losses}
"""For each suffix whose format cannot express every mechanism: a function that lists the lost content."""
ROOT_ELEMENTS = {"robot": "URDF", "mujoco": "MJCF", "mujocoinclude": "MJCF", "sdf": "SDF"}
"""The XML format of each root element."""

# the prolog: XML allows declarations, comments and a document type with entities before the root element
_PROLOG_ITEM = re.compile(r"\s*+(?:<\?.*?\?>|<!--.*?-->|<![A-Z][^\[<>]*+(?:\[[^\]]*+\])?[^<>]*+>)", re.DOTALL)
_START_TAG = re.compile(r"\s*<([A-Za-z_][\w.:-]*)")


def load(source: str | os.PathLike[str], *, srdf: str | os.PathLike[str] | None = None, **options: Any) -> Mechanism:
    """Load a mechanism from a URDF, MJCF, SDF or JSON file, or from its text.

    The content decides the format, not the suffix. A string that begins with `<` or `{` is the text itself.

    Args:
        source: a path, or the text itself. JSON is the format of Mechanik: a mechanism, a DH table or link lengths.
        srdf: path or text of an SRDF that belongs to the model. Its disabled collisions become `allowed_collisions`,
            and its group states become named configurations.
        options: options of the chosen reader: `base`, `mimic`, `trim`, `packages` and `closures` for URDF, `sites` for
            MJCF, `base` and `packages` for SDF, `packages` for JSON.

    Returns:
        The mechanism. Its `warnings` describe content that is unusual or ignored.

    Raises:
        FileMissing: the file does not exist.
        FormatError: the content is not a mechanism; the message says where and why.
        InvalidArgument: `options` has a name that is not an option of the chosen reader.
        MissingExtra: the model is an MJCF and `mujoco` is not installed, or an SDF has a height map and Pillow is not.

    Example:
        >>> text = mk.formats.write_urdf(mk.gallery.planar_2r())
        >>> mk.load(text).nq
        2
    """
    model_source = open_source(source)
    format_name = detect_format(model_source)
    reader = READERS[format_name]
    reader_options = list(inspect.signature(reader).parameters)[1:]
    if unknown_options := [name for name in options if name not in reader_options]:
        names = ", ".join(f"{name}=" for name in unknown_options)
        raise InvalidArgument(
            f"{model_source.message_prefix}the reader of {format_name} has no option {names}; "
            f"its options are {', '.join(reader_options) or 'none'}"
        )
    mechanism = reader(model_source.path if model_source.path is not None else str(source), **options)
    if srdf is not None:
        apply_srdf(srdf, mechanism)
    return mechanism


def detect_format(model_source: Source) -> str:
    """Detect the format of a model by its content.

    Returns:
        "URDF", "MJCF", "SDF" or "JSON".

    Raises:
        FormatError: the content is none of these.
    """
    first_byte = model_source.data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if model_source.data.startswith((b"\xff\xfe", b"\xfe\xff")):
        first_byte = model_source.text().lstrip("\ufeff \t\r\n")[:1].encode()
    if first_byte in (b"{", b"["):
        return "JSON"
    if first_byte == b"<":
        return _detect_xml_format(model_source)
    if model_source.name.lower().endswith(".json"):
        return "JSON"  # the JSON reader names the faulty line
    excerpt = model_source.data.lstrip()[:24].decode(errors="replace").split("\n")[0]
    raise FormatError(
        f"{model_source.message_prefix}the content begins with {excerpt!r}; "
        "URDF, MJCF and SDF begin with '<', JSON with '{'",
        code="unknown-format",
    )


def save(mechanism: Mechanism, path: str | os.PathLike[str]) -> list[str]:
    """Write a mechanism to a .json or .urdf file.

    A JSON file contains the complete mechanism, a URDF only what the format can express. The data is first written to a
    temporary file in the same folder, which then replaces the target. So an older file is replaced completely or not
    at all.

    Args:
        mechanism: the mechanism to write.
        path: the file; its suffix, .json or .urdf, chooses the format.

    Returns:
        One sentence for each kind of content that the file does not contain or that is converted. The list is empty for
        JSON.

    Raises:
        FormatError: the suffix is neither .json nor .urdf, or the mechanism has content that cannot be written and read
            back.
        CannotSave: the file cannot be written.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "four_bar.json")
        ...     losses = mk.save(mk.gallery.four_bar(), path)
        ...     loaded = mk.load(path)
        >>> losses, loaded.nq
        ([], 3)
    """
    if not isinstance(path, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise FormatError(f"path must be a string or a path, not {type(path).__name__}")
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix not in WRITERS:
        raise FormatError(f"{file.name!r} must end in {' or '.join(WRITERS)}; the suffix chooses the format")
    target = _resolve_target(file)
    data = WRITERS[suffix](mechanism).encode()
    _check_readable(Source(data, file.expanduser()))
    _write_atomically(target, data)
    return LOSSES[suffix](mechanism) if suffix in LOSSES else []


def _check_readable(source: Source) -> None:
    """Read the data as `load` does, so that an unreadable file never replaces a good one."""
    try:
        READERS[detect_format(source)](source)
    except MechanikError as error:
        raise FormatError(f"not written, because the file could not be read back: {error}") from error


def _detect_xml_format(model_source: Source) -> str:
    encoding = "utf-16" if model_source.data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    text = model_source.data[: 1 << 20].decode(encoding, errors="replace").lstrip("\ufeff \t\r\n")
    offset = 0
    while (prolog_item := _PROLOG_ITEM.match(text, offset)) is not None:
        offset = prolog_item.end()
    start_tag = _START_TAG.match(text, offset)
    tag = start_tag.group(1) if start_tag is not None else ""
    if tag == "COLLADA":
        raise FormatError(
            f"{model_source.message_prefix}COLLADA is read as a mesh only; load the URDF, MJCF or SDF that uses it",
            code="unknown-format",
        )
    if tag and tag not in ROOT_ELEMENTS:
        raise FormatError(
            f"{model_source.message_prefix}the root element is <{tag}>; "
            "a URDF has <robot>, an MJCF <mujoco>, an SDF <sdf>",
            code="unknown-format",
        )
    return ROOT_ELEMENTS.get(tag, "URDF")  # without an element the URDF reader explains the XML error


def _resolve_target(file: Path) -> Path:
    """Return the file to create or replace; a symbolic link is followed and stays a link."""
    with _os_errors_as_cannot_save(file):
        file = file.expanduser()
        target = file.resolve()
        try:
            mode = os.stat(file).st_mode
        except FileNotFoundError:
            if not target.parent.is_dir():
                raise CannotSave(f"{file} cannot be written: the folder {target.parent} does not exist") from None
            return target
        if stat.S_ISDIR(mode):
            raise CannotSave(f"{file} is a folder; pass the name of a file")
        if not stat.S_ISREG(mode):
            raise CannotSave(f"{file} is a pipe, a device or a socket; choose another file name")
        return target


def _write_atomically(target: Path, data: bytes) -> None:
    with _os_errors_as_cannot_save(target):
        # a short name: the name of the target with a suffix could exceed the maximum length of a file name
        temporary_file = target.with_name(f".{secrets.token_hex(8)}.part")
        try:
            with open(temporary_file, "xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            if target.exists():
                shutil.copymode(target, temporary_file)
            os.replace(temporary_file, target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary_file.unlink()
            raise


@contextlib.contextmanager
def _os_errors_as_cannot_save(file: Path) -> Generator[None]:
    """Convert errors of the operating system to `CannotSave`."""
    try:
        yield
    except MechanikError:
        raise
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CannotSave(f"{file} cannot be written: {reason}") from None
