"""Load a mechanism from bytes of an untrusted sender: a model file, or a zip with its meshes. No file is opened.

A zip is unpacked into memory after a check of its table of contents. Refused are: names that lead out of the zip,
links, encrypted members, duplicate names, too many members or bytes, and too high compression ratios. The size limit
counts the bytes that come out, not the sizes that the table states. A zip inside the zip is not unpacked.
"""

from __future__ import annotations

import io
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import PurePosixPath
from urllib.parse import unquote

from mechanik.errors import FormatError, MechanikError
from mechanik.formats.load import READERS, detect_format
from mechanik.formats.source import Source
from mechanik.model import Mechanism
from mechanik.model.mesh_files import MeshDependencies
from mechanik.model.shapes import Mesh

MAX_ZIP_FILES = 2_000
"""Members of a zip; more are refused."""
MAX_UNPACKED_BYTES = 256 * 2**20
"""Bytes that all members of a zip may have together after unpacking."""
MAX_COMPRESSION_RATIO = 200
"""Ratio of unpacked to packed size that a member above `RATIO_CHECK_BYTES` may have; text and meshes stay below 50."""
RATIO_CHECK_BYTES = 2**20
"""Bytes; smaller members may have any compression ratio."""
MAX_NAME_LENGTH = 1024
"""Characters of a member's name."""
CHUNK_BYTES = 2**16
"""Bytes that are unpacked before the total size is checked again."""

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
"""All errors that `zipfile` raises for broken data."""


def is_zip(data: bytes) -> bool:
    return data.startswith((b"PK\x03\x04", _END))


def unzip(data: bytes, where: str) -> dict[str, bytes]:
    """Unpack a zip into memory, without folders and without the metadata files of macOS.

    Args:
        data: the bytes of the zip.
        where: prefix of every error message: the name of the zip and a colon.

    Returns:
        The content of each file by its name in the zip.

    Raises:
        FormatError: the zip is broken, or violates a limit of this module.
    """
    _check_table(data, where)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            members = _checked(packed.infolist(), where)
            files: dict[str, bytes] = {}
            left = MAX_UNPACKED_BYTES
            for name, info in members.items():
                files[name] = _unpacked(packed, info, left, where)
                left -= len(files[name])
    except FormatError:
        raise
    except _BROKEN as error:
        raise FormatError(f"{where}this zip is broken ({str(error) or type(error).__name__}); pack it anew") from None
    return files


def _check_table(data: bytes, where: str) -> None:
    """Check the length of the table of contents before `zipfile` builds a list of it."""
    at = data.rfind(_END, max(0, len(data) - _END_SIZE - 2**16))
    if at < 0 or len(data) < at + _END_SIZE:
        raise FormatError(f"{where}this zip has no end, as if it were cut off; pack it anew")
    _, disk, first_disk, here, count, size = struct.unpack("<4s4HI", data[at : at + 16])
    if data[max(0, at - _END64_SIZE) : at].startswith(_END64) or count == 0xFFFF or size == 0xFFFFFFFF:
        raise FormatError(f"{where}this is a zip for more than 4 GB or 65,535 files; pack the robot alone")
    if disk or first_disk or here != count:
        raise FormatError(f"{where}this zip is one of several parts; pack it as one")
    if count > MAX_ZIP_FILES or size > MAX_ZIP_FILES * (46 + MAX_NAME_LENGTH):
        raise FormatError(f"{where}this zip has {count} files; at most {MAX_ZIP_FILES} are read")


def _checked(infos: list[zipfile.ZipInfo], where: str) -> dict[str, zipfile.ZipInfo]:
    """Return the members that are files, by name, after a check of all members."""
    if len(infos) > MAX_ZIP_FILES:
        raise FormatError(f"{where}this zip has {len(infos)} files; at most {MAX_ZIP_FILES} are read")
    total = sum(info.file_size for info in infos)
    if total > MAX_UNPACKED_BYTES:
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
    if len(name) > MAX_NAME_LENGTH or not name.strip("/. "):
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
    if info.file_size > RATIO_CHECK_BYTES and info.file_size > MAX_COMPRESSION_RATIO * info.compress_size:
        raise FormatError(
            f"{where}{name} in this zip would grow to more than {MAX_COMPRESSION_RATIO} times its "
            f"size, as no model or mesh does"
        )


def _unpacked(packed: zipfile.ZipFile, info: zipfile.ZipInfo, left: int, where: str) -> bytes:
    """Unpack one member and count its bytes on the way, because the table may state a wrong size."""
    chunks: list[bytes] = []
    size = 0
    with packed.open(info) as stream:
        while chunk := stream.read(CHUNK_BYTES):
            size += len(chunk)
            if size > left:
                raise FormatError(f"{where}unpacked, this zip has more than the {_megabytes()} MB that are read")
            chunks.append(chunk)
    return b"".join(chunks)


def _megabytes() -> str:
    return f"{MAX_UNPACKED_BYTES / 2**20:.0f}"


MAX_TEXT_BYTES = 16 * 2**20
"""Bytes of all model texts together, counting an included file each time; the largest robots have about two million."""

MAX_LINKS_AND_JOINTS = 2_500
"""Links and joints in all. The time to build a chain grows with the square of its length; this limit means seconds."""

URI_SCHEMES = ("", "file", "package", "model")


class ArchiveFileResolver:
    """Resolves the files that a model names among the files that came with it in memory.

    The exact path, relative to the folder of the model, has priority. Otherwise the member with the longest common path
    ending is taken. So `package://robot/meshes/arm.stl` and `/home/me/robot/meshes/arm.stl` both mean
    `x/meshes/arm.stl`.

    Args:
        files: content by name, such as "robot/meshes/arm.stl".
        model: the name of the model among them.
    """

    def __init__(self, files: Mapping[str, bytes], model: str) -> None:
        self.files = files
        self.folder = PurePosixPath(model).parent.parts
        self._by_last: dict[str, list[tuple[str, ...]]] = {}
        for name in files:
            parts = PurePosixPath(name).parts
            self._by_last.setdefault(parts[-1], []).append(parts)
        self._read = self._parts = 0

    def find(self, uri: str) -> str | None:
        """Return the name of the member that `uri` means, or None."""
        scheme, separator, rest = uri.strip().replace("\\", "/").partition("://")
        if not separator:
            scheme, rest = "", uri.strip().replace("\\", "/").removeprefix("file:")
        if scheme.lower() not in URI_SCHEMES:
            return None
        parts = [
            part for part in (unquote(rest) if scheme.lower() == "file" else rest).split("/") if part not in ("", ".")
        ]
        if not parts or parts[-1] == "..":
            return None
        if scheme == "" and (exact := _walked(self.folder, parts)) in self.files:
            return exact
        return self._by_its_end([part for part in parts if part != ".."])

    def locate(self, uri: str, known: str | None = None) -> tuple[bool, str | None]:
        """Tell whether the file came along; `known`, a path on the sender's machine, is ignored."""
        return self.find(uri) is not None, None

    def open(self, uri: str) -> Source | None:
        found = self.find(uri)
        return None if found is None else self.source(found)

    def content(self, uri: str) -> bytes | None:
        found = self.find(uri)
        return None if found is None else self.files[found]

    def source(self, name: str) -> Source:
        """Return a member as a model source; all sources together may have `MAX_TEXT_BYTES`."""
        data = self.files[name]
        self._read += len(data)
        if self._read > MAX_TEXT_BYTES:
            raise FormatError(
                f"{PurePosixPath(name).name}: this and what was read before have {self._read / 2**20:.1f} MB of text; "
                f"at most {MAX_TEXT_BYTES / 2**20:.0f} are read"
            )
        return Source(data, None, name, self)

    def count(self, parts: int, where: str) -> None:
        self._parts += parts
        if self._parts > MAX_LINKS_AND_JOINTS:
            raise FormatError(
                f"{where}it has {self._parts} links and joints; of a file that was sent, at most "
                f"{MAX_LINKS_AND_JOINTS} are read"
            )

    def search_hint(self, uri: str) -> str:
        return "; pack it into the zip, in a folder of the same name"

    def _by_its_end(self, parts: list[str]) -> str | None:
        """Return the member with the longest common path ending; of several the least deep, then the first by name."""
        best: tuple[int, int, str] | None = None
        for candidate in self._by_last.get(parts[-1], ()):
            common = 0
            for one, other in zip(reversed(parts), reversed(candidate), strict=False):
                if one != other:
                    break
                common += 1
            rank = (-common, len(candidate), "/".join(candidate))
            best = rank if best is None else min(best, rank)
        return None if best is None else best[2]


def _walked(folder: tuple[str, ...], parts: list[str]) -> str | None:
    """Return the path that `parts` leads to from `folder`, or None if it leaves the archive."""
    place = list(folder)
    for part in parts:
        if part != "..":
            place.append(part)
        elif place:
            place.pop()
        else:
            return None
    return "/".join(place)


MODEL_SUFFIXES = (".urdf", ".xml", ".mjcf", ".sdf", ".world", ".json")
"""File suffixes of a model in a zip."""
MESH_SUFFIXES = (".stl", ".obj", ".dae", ".glb", ".gltf", ".ply", ".msh")
_NAMED = re.compile(rb"""<include\s[^<>]*?file\s*=\s*["']([^"'<>]+)["']|<uri>\s*([^<>]+?)\s*</uri>""")
_SHOWN = 5


def load_bytes(name: str, data: bytes) -> tuple[Mechanism, dict[str, bytes]]:
    """Load a mechanism from the bytes of a file.

    Args:
        name: the file name, used in messages and as name of a model without one; it is never opened.
        data: a URDF, MJCF, SDF or JSON of Mechanik (a mechanism, a DH table, an arm list), or a zip of one with its
            meshes.

    Returns:
        The mechanism, whose meshes have no `path`, and the files that came along. Meshes are listed by their `uri`,
        textures by the `texture` of the material, and files beside a mesh by the name that `MeshDependencies` gives
        them.

    Raises:
        FormatError: the data cannot be read, or is refused; the message says why and what to do.
    """
    shown = _shown(name)
    if is_zip(data):
        files = unzip(data, f"{shown}: ")
        model = _model(files, shown)
    else:
        files, model = {shown: _checked_description(shown, data)}, shown
    members = ArchiveFileResolver(files, model)
    source = members.source(model)
    mechanism = READERS[detect_format(source)](source)
    return mechanism, _files(mechanism, members)


def _shown(name: str) -> str:
    """Return the last part of an untrusted file name in printable characters."""
    last = re.split(r"[/\\]", name)[-1]
    kept = "".join(letter if letter.isprintable() and letter not in ":*?<>|" else "_" for letter in last).strip(" .")
    return kept[:80] or "file"


def _checked_description(name: str, data: bytes) -> bytes:
    """Return the data of a single model file, or raise an error if it cannot be one."""
    if not data.strip():
        raise FormatError(f"{name} is empty")
    if name.lower().endswith(MESH_SUFFIXES):
        raise FormatError(f"{name} is a mesh; drop the URDF, MJCF or SDF that names it, in a zip with its meshes")
    if b"\0" in data[:4096] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FormatError(f"{name} is a binary file, not the text of a URDF, MJCF, SDF or JSON mechanism, nor a zip")
    return data


def _model(files: dict[str, bytes], where: str) -> str:
    """Return the name of the model in a zip: of those that no other file includes, the least deep one."""
    included = {
        PurePosixPath((mjcf or uri).decode(errors="replace").replace("\\", "/")).name
        for name, data in files.items()
        if name.lower().endswith(MODEL_SUFFIXES)
        for mjcf, uri in _NAMED.findall(data[: 2**22])
    }
    found = [name for name, data in files.items() if _is_model(name, data)]
    if not found:
        if any(name.lower().endswith(".xacro") for name in files):
            raise FormatError(
                f"{where}: there is a xacro in it and no URDF; expand it first, with `xacro FILE > x.urdf`"
            )
        raise FormatError(f"{where}: there is no URDF, MJCF, SDF or JSON mechanism in this zip")
    tops = [name for name in found if PurePosixPath(name).name not in included] or found
    depth = min(name.count("/") for name in tops)
    least = sorted(name for name in tops if name.count("/") == depth)
    same = [name for name in least if PurePosixPath(name).stem == PurePosixPath(where).stem]
    if len(same or least) > 1:
        names = ", ".join(least[:_SHOWN]) + (", ..." if len(least) > _SHOWN else "")
        raise FormatError(f"{where}: there are {len(least)} models in this zip, {names}; pack the one that is meant")
    return (same or least)[0]


def _is_model(name: str, data: bytes) -> bool:
    lower = name.lower()
    if not lower.endswith(MODEL_SUFFIXES) or lower.endswith(".closures.json") or not data.strip():
        return False
    try:
        kind = detect_format(Source(data, None, name))
    except MechanikError:
        return False
    if kind == "JSON":
        return b'"mechanik"' in data[: 2**16]
    return b"<mujocoinclude" not in data[: 2**12]


def _files(mechanism: Mechanism, members: ArchiveFileResolver) -> dict[str, bytes]:
    named: dict[str, None] = {}
    for link in mechanism.links.values():
        for placed in (*link.visuals, *link.collisions):
            if isinstance(placed.shape, Mesh):
                named[placed.shape.uri] = None
            if placed.material is not None and placed.material.texture:
                named[placed.material.texture] = None
    places = {uri: members.find(uri) for uri in named}
    found = {uri: members.files[place] for uri, place in places.items() if place is not None}

    def find(name: str) -> bytes | None:
        place = members.find(name)
        return None if place is None else members.files[place]

    beside = MeshDependencies(find)
    for uri, data in list(found.items()):
        for name in beside.files_of(uri, data).values():
            if (content := find(name)) is not None:
                found.setdefault(name, content)
    return found
