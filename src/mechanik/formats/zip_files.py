"""A zip from somewhere else, unpacked into memory after its table of contents was looked at.

What is refused: names that lead out of it, links, encrypted members, two of the same name, more members or bytes than
a robot has, and members that grow too much. Sizes are those that come out, whatever the table says. A zip in
it stays one.
"""

from __future__ import annotations

import io
import re
import stat
import struct
import zipfile
import zlib

from mechanik.errors import FormatError

MOST_MEMBERS = 2_000
MOST_BYTES = 256 * 2**20
MOST_GROWTH = 200
"""How many times its packed size a member above `SMALL` may have; text and meshes stay below 50."""
SMALL = 2**20
LONGEST_NAME = 1024
CHUNK = 2**16

_END, _END64 = b"PK\x05\x06", b"PK\x06\x07"
_END_SIZE, _END64_SIZE = 22, 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OSError,
    ValueError,
    IndexError,
)
"""All that the reader of zips raises for bytes that are none."""


def is_zip(data: bytes) -> bool:
    return data.startswith((b"PK\x03\x04", _END))


def unzip(data: bytes, where: str) -> dict[str, bytes]:
    """The files in a zip by name, without folders and without what systems add.

    Args:
        where: begins every message: the name of the zip and a colon.
    Raises:
        FormatError: it is broken, or does what a zip of a robot does not.
    """
    _check_table(data, where)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            members = _checked(packed.infolist(), where)
            files: dict[str, bytes] = {}
            left = MOST_BYTES
            for name, info in members.items():
                files[name] = _unpacked(packed, info, left, where)
                left -= len(files[name])
    except FormatError:
        raise
    except _BROKEN as error:
        raise FormatError(f"{where}this zip is broken ({str(error) or type(error).__name__}); pack it anew") from None
    return files


def _check_table(data: bytes, where: str) -> None:
    """How long the table of contents is, before anybody makes a list of it."""
    at = data.rfind(_END, max(0, len(data) - _END_SIZE - 2**16))
    if at < 0 or len(data) < at + _END_SIZE:
        raise FormatError(f"{where}this zip has no end, as if it were cut off; pack it anew")
    _, disk, first_disk, here, count, size = struct.unpack("<4s4HI", data[at : at + 16])
    if data[max(0, at - _END64_SIZE) : at].startswith(_END64) or count == 0xFFFF or size == 0xFFFFFFFF:
        raise FormatError(f"{where}this is a zip for more than 4 GB or 65,535 files; pack the robot alone")
    if disk or first_disk or here != count:
        raise FormatError(f"{where}this zip is one of several parts; pack it as one")
    if count > MOST_MEMBERS or size > MOST_MEMBERS * (46 + LONGEST_NAME):
        raise FormatError(f"{where}this zip has {count} files; at most {MOST_MEMBERS} are read")


def _checked(infos: list[zipfile.ZipInfo], where: str) -> dict[str, zipfile.ZipInfo]:
    """The members that are files, by name, if there is nothing wrong with any."""
    if len(infos) > MOST_MEMBERS:
        raise FormatError(f"{where}this zip has {len(infos)} files; at most {MOST_MEMBERS} are read")
    total = sum(info.file_size for info in infos)
    if total > MOST_BYTES:
        raise FormatError(f"{where}unpacked, this zip has {total / 2**20:.0f} MB; at most {_megabytes()} are read")
    members: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        name = _checked_name(info, where)
        _check_member(info, where)
        if info.is_dir() or name.startswith("__MACOSX/") or name.endswith(".DS_Store"):
            continue
        if name in members:
            raise FormatError(f"{where}two files in this zip are called {name!r}")
        members[name] = info
    return members


def _checked_name(info: zipfile.ZipInfo, where: str) -> str:
    name = info.orig_filename
    shown = repr(name if len(name) <= 80 else f"{name[:77]}...")
    parts = name.split("/")
    if len(name) > LONGEST_NAME or not name.strip("/. "):
        raise FormatError(f"{where}a name of {len(name)} letters in this zip, {shown}, names no file")
    if name.startswith("/") or ".." in parts or "\\" in name or re.match("[A-Za-z]:", name):
        raise FormatError(
            f"{where}the name {shown} leads out of the zip; names are relative, with '/' and without '..'"
        )
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
        raise FormatError(f"{where}the name {shown} in this zip has letters that no name has")
    return "/".join(part for part in parts if part not in ("", "."))


def _check_member(info: zipfile.ZipInfo, where: str) -> None:
    name, kind = repr(info.filename[:80]), stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise FormatError(f"{where}{name} in this zip is a link or a device; pack the file itself")
    if info.flag_bits & 0x41:
        raise FormatError(f"{where}{name} in this zip is encrypted; pack it without a password")
    if info.compress_type not in _METHODS:
        raise FormatError(f"{where}{name} in this zip is packed by a method other than deflate; pack it the usual way")
    if info.file_size > SMALL and info.file_size > MOST_GROWTH * info.compress_size:
        raise FormatError(
            f"{where}{name} in this zip would grow to more than {MOST_GROWTH} times its size, as no model or mesh does"
        )


def _unpacked(packed: zipfile.ZipFile, info: zipfile.ZipInfo, left: int, where: str) -> bytes:
    """One member, counted while it comes out."""
    chunks: list[bytes] = []
    size = 0
    with packed.open(info) as stream:
        while chunk := stream.read(CHUNK):
            size += len(chunk)
            if size > left:
                raise FormatError(f"{where}unpacked, this zip has more than the {_megabytes()} MB that are read")
            chunks.append(chunk)
    return b"".join(chunks)


def _megabytes() -> str:
    return f"{MOST_BYTES / 2**20:.0f}"
