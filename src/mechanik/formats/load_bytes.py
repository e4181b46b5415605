"""Load a mechanism from bytes of an untrusted sender: a model file, or a zip with its meshes. No file is opened.

A zip is unpacked into memory after a check of its table of contents. Not allowed are: names that lead out of the zip,
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
"""Largest number of members of a zip."""
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
_ZIP_ERRORS = (
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
            members = _checked_members(packed.infolist(), where)
            files: dict[str, bytes] = {}
            remaining = MAX_UNPACKED_BYTES
            for name, info in members.items():
                files[name] = _unpack(packed, info, remaining, where)
                remaining -= len(files[name])
    except FormatError:
        raise
    except _ZIP_ERRORS as error:
        raise FormatError(
            f"{where}the zip is damaged ({str(error) or type(error).__name__}); create it again"
        ) from None
    return files


def _check_table(data: bytes, where: str) -> None:
    """Check the length of the table of contents before `zipfile` builds a list of it."""
    offset = data.rfind(_END, max(0, len(data) - _END_SIZE - 2**16))
    if offset < 0 or len(data) < offset + _END_SIZE:
        raise FormatError(f"{where}the zip seems truncated; create it again")
    _, disk, first_disk, count_on_disk, count, size = struct.unpack("<4s4HI", data[offset : offset + 16])
    if data[max(0, offset - _END64_SIZE) : offset].startswith(_END64) or count == 0xFFFF or size == 0xFFFFFFFF:
        raise FormatError(
            f"{where}the zip uses the ZIP64 format, for more than 4 GB or 65,535 files; pack only the robot"
        )
    if disk or first_disk or count_on_disk != count:
        raise FormatError(f"{where}the zip is split into several files; create a single one")
    if count > MAX_ZIP_FILES or size > MAX_ZIP_FILES * (46 + MAX_NAME_LENGTH):
        raise FormatError(f"{where}the zip has {count} files; the limit is {MAX_ZIP_FILES}")


def _checked_members(infos: list[zipfile.ZipInfo], where: str) -> dict[str, zipfile.ZipInfo]:
    """Return the members that are files, by name, after a check of all members."""
    if len(infos) > MAX_ZIP_FILES:
        raise FormatError(f"{where}the zip has {len(infos)} files; the limit is {MAX_ZIP_FILES}")
    total = sum(info.file_size for info in infos)
    if total > MAX_UNPACKED_BYTES:
        raise FormatError(f"{where}unpacked, the zip has {total / 2**20:.0f} MB; the limit is {_megabytes()} MB")
    members: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        name = _checked_member_name(info, where)
        _check_member(info, where)
        if info.is_dir() or name.startswith("__MACOSX/") or name.endswith(".DS_Store"):
            continue
        if name in members:
            raise FormatError(f"{where}two files in the zip are called {name!r}")
        members[name] = info
    return members


def _checked_member_name(info: zipfile.ZipInfo, where: str) -> str:
    name = info.orig_filename
    shown = repr(name if len(name) <= 80 else f"{name[:77]}...")
    parts = name.split("/")
    if len(name) > MAX_NAME_LENGTH or not name.strip("/. "):
        raise FormatError(f"{where}the zip contains an invalid name of {len(name)} characters, {shown}")
    if name.startswith("/") or ".." in parts or "\\" in name or re.match("[A-Za-z]:", name):
        raise FormatError(
            f"{where}the name {shown} leads out of the zip; names must be relative, with '/' and without '..'"
        )
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
        raise FormatError(f"{where}the name {shown} in the zip contains control characters")
    return "/".join(part for part in parts if part not in ("", "."))


def _check_member(info: zipfile.ZipInfo, where: str) -> None:
    name, kind = repr(info.filename[:80]), stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise FormatError(f"{where}{name} in the zip is a link or a device; pack the file itself")
    if info.flag_bits & 0x41:
        raise FormatError(f"{where}{name} in the zip is encrypted; pack it without a password")
    if info.compress_type not in _METHODS:
        raise FormatError(f"{where}{name} in the zip is not compressed by deflate; create the zip again with deflate")
    if info.file_size > RATIO_CHECK_BYTES and info.file_size > MAX_COMPRESSION_RATIO * info.compress_size:
        raise FormatError(
            f"{where}{name} in the zip is compressed by more than a factor of "
            f"{MAX_COMPRESSION_RATIO}, which is not allowed"
        )


def _unpack(packed: zipfile.ZipFile, info: zipfile.ZipInfo, remaining: int, where: str) -> bytes:
    """Unpack one member and count its bytes on the way, because the table may state a wrong size."""
    chunks: list[bytes] = []
    size = 0
    with packed.open(info) as stream:
        while chunk := stream.read(CHUNK_BYTES):
            size += len(chunk)
            if size > remaining:
                raise FormatError(f"{where}unpacked, the zip has more than the limit of {_megabytes()} MB")
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
        self._by_file_name: dict[str, list[tuple[str, ...]]] = {}
        for name in files:
            parts = PurePosixPath(name).parts
            self._by_file_name.setdefault(parts[-1], []).append(parts)
        self._text_bytes = self._part_count = 0

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
        if scheme == "" and (exact := _resolve_relative(self.folder, parts)) in self.files:
            return exact
        return self._find_by_path_ending([part for part in parts if part != ".."])

    def locate(self, uri: str, known: str | None = None) -> tuple[bool, str | None]:
        """Return whether the archive has the file; `known`, a path on the sender's machine, is ignored."""
        return self.find(uri) is not None, None

    def open(self, uri: str) -> Source | None:
        name = self.find(uri)
        return None if name is None else self.source(name)

    def content(self, uri: str) -> bytes | None:
        name = self.find(uri)
        return None if name is None else self.files[name]

    def source(self, name: str) -> Source:
        """Return a member as a model source; all sources together may have `MAX_TEXT_BYTES`."""
        data = self.files[name]
        self._text_bytes += len(data)
        if self._text_bytes > MAX_TEXT_BYTES:
            raise FormatError(
                f"{PurePosixPath(name).name}: the model and its included files have {self._text_bytes / 2**20:.1f} MB; "
                f"the limit is {MAX_TEXT_BYTES / 2**20:.0f} MB"
            )
        return Source(data, None, name, self)

    def count(self, parts: int, where: str) -> None:
        self._part_count += parts
        if self._part_count > MAX_LINKS_AND_JOINTS:
            raise FormatError(
                f"{where}the model has {self._part_count} links and joints; the limit for uploads is "
                f"{MAX_LINKS_AND_JOINTS}"
            )

    def search_hint(self, uri: str) -> str:
        return "; add it to the zip, in a folder of the same name"

    def _find_by_path_ending(self, parts: list[str]) -> str | None:
        """Return the member with the longest common path ending; of several the least deep, then the first by name."""
        best: tuple[int, int, str] | None = None
        for candidate in self._by_file_name.get(parts[-1], ()):
            common = 0
            for part, candidate_part in zip(reversed(parts), reversed(candidate), strict=False):
                if part != candidate_part:
                    break
                common += 1
            rank = (-common, len(candidate), "/".join(candidate))
            best = rank if best is None else min(best, rank)
        return None if best is None else best[2]


def _resolve_relative(folder: tuple[str, ...], parts: list[str]) -> str | None:
    """Return the path that `parts` leads to from `folder`, or None if it leaves the archive."""
    path = list(folder)
    for part in parts:
        if part != "..":
            path.append(part)
        elif path:
            path.pop()
        else:
            return None
    return "/".join(path)


MODEL_SUFFIXES = (".urdf", ".xml", ".mjcf", ".sdf", ".world", ".json")
"""File suffixes of a model in a zip."""
MESH_SUFFIXES = (".stl", ".obj", ".dae", ".glb", ".gltf", ".ply", ".msh")
_INCLUDED_FILE = re.compile(rb"""<include\s[^<>]*?file\s*=\s*["']([^"'<>]+)["']|<uri>\s*([^<>]+?)\s*</uri>""")
_MAX_LISTED_MODELS = 5


def load_bytes(name: str, data: bytes) -> tuple[Mechanism, dict[str, bytes]]:
    """Load a mechanism from the bytes of a file.

    Args:
        name: the file name, used in messages and as name of a model without one; it is never opened.
        data: a URDF, MJCF, SDF or JSON of Mechanik (a mechanism, a DH table, an arm list), or a zip of one with its
            meshes.

    Returns:
        The mechanism, whose meshes have no `path`, and the files of the zip that it uses. Meshes are listed by their
        `uri`, textures by the `texture` of the material, and files beside a mesh by the name that `MeshDependencies`
        gives them.

    Raises:
        FormatError: the data cannot be read or is not allowed; the message says why and what to do.
    """
    shown = _printable_name(name)
    if is_zip(data):
        files = unzip(data, f"{shown}: ")
        model = _find_model(files, shown)
    else:
        files, model = {shown: _check_model_data(shown, data)}, shown
    members = ArchiveFileResolver(files, model)
    source = members.source(model)
    mechanism = READERS[detect_format(source)](source)
    return mechanism, _used_files(mechanism, members)


def _printable_name(name: str) -> str:
    """Return the last part of an untrusted file name in printable characters."""
    last = re.split(r"[/\\]", name)[-1]
    printable = "".join(letter if letter.isprintable() and letter not in ":*?<>|" else "_" for letter in last).strip(
        " ."
    )
    return printable[:80] or "file"


def _check_model_data(name: str, data: bytes) -> bytes:
    """Return the data of a single model file, or raise an error if it cannot be one."""
    if not data.strip():
        raise FormatError(f"{name} is empty")
    if name.lower().endswith(MESH_SUFFIXES):
        raise FormatError(
            f"{name} is a mesh; load the URDF, MJCF or SDF that uses it, in a zip with its meshes",
            code="unknown-format",
        )
    if b"\0" in data[:4096] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FormatError(
            f"{name} is a binary file, not the text of a URDF, MJCF, SDF or JSON mechanism, nor a zip",
            code="unknown-format",
        )
    return data


def _find_model(files: dict[str, bytes], where: str) -> str:
    """Return the name of the model in a zip: of those that no other file includes, the least deep one."""
    included = {
        PurePosixPath((mjcf or uri).decode(errors="replace").replace("\\", "/")).name
        for name, data in files.items()
        if name.lower().endswith(MODEL_SUFFIXES)
        for mjcf, uri in _INCLUDED_FILE.findall(data[: 2**22])
    }
    models = [name for name, data in files.items() if _is_model(name, data)]
    if not models:
        if any(name.lower().endswith(".xacro") for name in files):
            raise FormatError(
                f"{where}: the zip contains a xacro file and no URDF; expand it first with `xacro FILE > x.urdf`"
            )
        raise FormatError(f"{where}: the zip contains no URDF, MJCF, SDF or JSON mechanism")
    tops = [name for name in models if PurePosixPath(name).name not in included] or models
    depth = min(name.count("/") for name in tops)
    shallowest = sorted(name for name in tops if name.count("/") == depth)
    same_stem = [name for name in shallowest if PurePosixPath(name).stem == PurePosixPath(where).stem]
    if len(same_stem or shallowest) > 1:
        names = ", ".join(shallowest[:_MAX_LISTED_MODELS]) + (", ..." if len(shallowest) > _MAX_LISTED_MODELS else "")
        raise FormatError(f"{where}: the zip contains {len(shallowest)} models, {names}; leave only one in it")
    return (same_stem or shallowest)[0]


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


def _used_files(mechanism: Mechanism, members: ArchiveFileResolver) -> dict[str, bytes]:
    named: dict[str, None] = {}
    for link in mechanism.links.values():
        for instance in (*link.visuals, *link.collisions):
            if isinstance(instance.shape, Mesh):
                named[instance.shape.uri] = None
            if instance.material is not None and instance.material.texture:
                named[instance.material.texture] = None
    contents = {uri: content for uri in named if (content := members.content(uri)) is not None}

    dependencies = MeshDependencies(members.content)
    for uri, data in list(contents.items()):
        for name in dependencies.files_of(uri, data).values():
            if (content := members.content(name)) is not None:
                contents.setdefault(name, content)
    return contents
