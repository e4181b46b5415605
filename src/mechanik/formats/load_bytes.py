"""Load a mechanism from bytes of an untrusted sender: a model file, or a zip with its meshes.

No file on disk is opened. A zip is unpacked into memory after a check of its table of contents. The check rejects
symbolic links, encrypted members, names that lead out of the zip, duplicate names, too many members or bytes, and too
high compression ratios. The size limit is checked for the sizes in the table, and again for the unpacked bytes. A zip
inside the zip is not unpacked.
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
"""Largest number of members (files and folders) of a zip."""
MAX_UNPACKED_BYTES = 256 * 2**20
"""Bytes that all members of a zip may have together after unpacking."""
MAX_COMPRESSION_RATIO = 200
"""Ratio of unpacked to packed size that a member above `RATIO_CHECK_BYTES` may have; text and meshes stay below 50."""
RATIO_CHECK_BYTES = 2**20
"""Bytes; smaller members may have any compression ratio."""
MAX_NAME_LENGTH = 1024
"""Largest number of characters of a member's name."""
CHUNK_BYTES = 2**16
"""Bytes that are unpacked before the total size is checked again."""

# signatures and sizes (bytes) of the record that ends a zip, and of the record before it in a ZIP64 file
_END_RECORD, _ZIP64_LOCATOR = b"PK\x05\x06", b"PK\x06\x07"
_END_RECORD_BYTES, _ZIP64_LOCATOR_BYTES = 22, 20
_COMPRESSION_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
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
    return data.startswith((b"PK\x03\x04", _END_RECORD))


def unzip(data: bytes, message_prefix: str) -> dict[str, bytes]:
    """Unpack a zip into memory, without folders and without the metadata files of macOS.

    Args:
        data: the bytes of the zip.
        message_prefix: prefix of every error message: the name of the zip and a colon.

    Returns:
        The content of each file by its name in the zip.

    Raises:
        FormatError: the zip is broken, or violates a limit of this module.
    """
    _check_end_record(data, message_prefix)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = _read_members(archive.infolist(), message_prefix)
            files: dict[str, bytes] = {}
            remaining_bytes = MAX_UNPACKED_BYTES
            for name, info in members.items():
                files[name] = _unpack(archive, info, remaining_bytes, message_prefix)
                remaining_bytes -= len(files[name])
    except FormatError:
        raise
    except _ZIP_ERRORS as error:
        raise FormatError(
            f"{message_prefix}the zip is damaged ({str(error) or type(error).__name__}); create it again"
        ) from None
    return files


def _check_end_record(data: bytes, message_prefix: str) -> None:
    """Check the end record of a zip, which states the size of the table of contents, before the table is read."""
    offset = data.rfind(_END_RECORD, max(0, len(data) - _END_RECORD_BYTES - 2**16))
    if offset < 0 or len(data) < offset + _END_RECORD_BYTES:
        raise FormatError(f"{message_prefix}the zip seems truncated; create it again")
    _, disk, first_disk, count_on_disk, count, size = struct.unpack("<4s4HI", data[offset : offset + 16])
    if (
        data[max(0, offset - _ZIP64_LOCATOR_BYTES) : offset].startswith(_ZIP64_LOCATOR)
        or count == 0xFFFF
        or size == 0xFFFFFFFF
    ):
        raise FormatError(
            f"{message_prefix}the zip uses the ZIP64 format, which is for more than 4 GB or 65,535 files; "
            "pack only the robot"
        )
    if disk or first_disk or count_on_disk != count:
        raise FormatError(f"{message_prefix}the zip is split into several files; create a single one")
    # 46 bytes: an entry of the table without its name
    if count > MAX_ZIP_FILES or size > MAX_ZIP_FILES * (46 + MAX_NAME_LENGTH):
        raise FormatError(
            f"{message_prefix}the zip has {count} files, and their table has {size} bytes; "
            f"the limit is {MAX_ZIP_FILES} files with names of up to {MAX_NAME_LENGTH} characters"
        )


def _read_members(infos: list[zipfile.ZipInfo], message_prefix: str) -> dict[str, zipfile.ZipInfo]:
    """Return the members that are files, by name, after a check of all members."""
    if len(infos) > MAX_ZIP_FILES:
        raise FormatError(f"{message_prefix}the zip has {len(infos)} files; the limit is {MAX_ZIP_FILES}")
    unpacked_bytes = sum(info.file_size for info in infos)
    if unpacked_bytes > MAX_UNPACKED_BYTES:
        raise FormatError(
            f"{message_prefix}unpacked, the zip has {unpacked_bytes / 2**20:.0f} MB; "
            f"the limit is {_limit_in_megabytes()} MB"
        )
    members: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        name = _read_member_name(info, message_prefix)
        _check_member(info, message_prefix)
        if info.is_dir() or name.startswith("__MACOSX/") or name.endswith(".DS_Store"):
            continue
        if name in members:
            raise FormatError(f"{message_prefix}two files in the zip are called {name!r}")
        members[name] = info
    return members


def _read_member_name(info: zipfile.ZipInfo, message_prefix: str) -> str:
    name = info.orig_filename
    quoted_name = repr(name if len(name) <= 80 else f"{name[:77]}...")
    parts = name.split("/")
    if len(name) > MAX_NAME_LENGTH or not name.strip("/. "):
        raise FormatError(f"{message_prefix}the zip contains an invalid name of {len(name)} characters, {quoted_name}")
    if name.startswith("/") or ".." in parts or "\\" in name or re.match("[A-Za-z]:", name):
        raise FormatError(
            f"{message_prefix}the name {quoted_name} is not allowed in a zip; "
            "names must be relative, with '/' and without '..'"
        )
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
        raise FormatError(f"{message_prefix}the name {quoted_name} in the zip contains control characters")
    return "/".join(part for part in parts if part not in ("", "."))


def _check_member(info: zipfile.ZipInfo, message_prefix: str) -> None:
    name, kind = repr(info.filename[:80]), stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise FormatError(f"{message_prefix}{name} in the zip is a link or a device; pack the file itself")
    if info.flag_bits & 0x41:
        raise FormatError(f"{message_prefix}{name} in the zip is encrypted; pack it without a password")
    if info.compress_type not in _COMPRESSION_METHODS:
        raise FormatError(
            f"{message_prefix}{name} in the zip is not compressed by deflate; create the zip again with deflate"
        )
    if info.file_size > RATIO_CHECK_BYTES and info.file_size > MAX_COMPRESSION_RATIO * info.compress_size:
        raise FormatError(
            f"{message_prefix}{name} in the zip is compressed by more than a factor of "
            f"{MAX_COMPRESSION_RATIO}, which is not allowed; pack it without compression"
        )


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo, remaining_bytes: int, message_prefix: str) -> bytes:
    """Unpack one member and check the size during unpacking, because the table may state a wrong size."""
    chunks: list[bytes] = []
    size = 0
    with archive.open(info) as stream:
        while chunk := stream.read(CHUNK_BYTES):
            size += len(chunk)
            if size > remaining_bytes:
                raise FormatError(
                    f"{message_prefix}unpacked, the zip has more than the limit of {_limit_in_megabytes()} MB"
                )
            chunks.append(chunk)
    return b"".join(chunks)


def _limit_in_megabytes() -> str:
    return f"{MAX_UNPACKED_BYTES / 2**20:.0f}"


MAX_TEXT_BYTES = 16 * 2**20
"""Bytes of all model texts together, counting an included file each time; the largest robots have about two million."""

MAX_LINKS_AND_JOINTS = 2_500
"""Links and joints of a model. The time to build a chain grows with the square of its length: seconds at this limit."""

URI_SCHEMES = ("", "file", "package", "model")


class ArchiveFileResolver:
    """Finds the files that a model names among the files that were sent with it in memory.

    For a path without a scheme, the member at exactly this path, relative to the folder of the model, has priority.
    Otherwise the member with the longest common path ending is used. So `package://robot/meshes/arm.stl` and
    `/home/me/robot/meshes/arm.stl` both mean `x/meshes/arm.stl`, unless another member has a longer common ending.

    Args:
        files: content by name, such as "robot/meshes/arm.stl".
        model: the name of the model in `files`.
    """

    def __init__(self, files: Mapping[str, bytes], model: str) -> None:
        self.files = files
        self.folder = PurePosixPath(model).parent.parts
        self._paths_by_file_name: dict[str, list[tuple[str, ...]]] = {}
        for name in files:
            parts = PurePosixPath(name).parts
            self._paths_by_file_name.setdefault(parts[-1], []).append(parts)
        self._text_bytes = self._part_count = 0

    def find(self, uri: str) -> str | None:
        """Return the name of the member that `uri` means, or None."""
        scheme, separator, uri_path = uri.strip().replace("\\", "/").partition("://")
        if not separator:
            scheme, uri_path = "", uri.strip().replace("\\", "/").removeprefix("file:")
        if scheme.lower() not in URI_SCHEMES:
            return None
        parts = [
            part
            for part in (unquote(uri_path) if scheme.lower() == "file" else uri_path).split("/")
            if part not in ("", ".")
        ]
        if not parts or parts[-1] == "..":
            return None
        if scheme == "" and (exact_path := _resolve_relative(self.folder, parts)) in self.files:
            return exact_path
        return self._find_by_path_ending([part for part in parts if part != ".."])

    def locate(self, uri: str, stored_path: str | None = None) -> tuple[bool, str | None]:
        """Return whether the archive has the file, and None, since a file in memory has no path.

        `stored_path`, a path on the sender's machine, is ignored.
        """
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

    def count_parts(self, count: int, message_prefix: str) -> None:
        self._part_count += count
        if self._part_count > MAX_LINKS_AND_JOINTS:
            raise FormatError(
                f"{message_prefix}the model has {self._part_count} links and joints; the limit for uploads is "
                f"{MAX_LINKS_AND_JOINTS}"
            )

    def search_hint(self, uri: str) -> str:
        return "; add it to the zip, in the folder that the model names"

    def _find_by_path_ending(self, parts: list[str]) -> str | None:
        """Return the member with the longest common path ending.

        Of several such members, the one in the fewest folders is returned, then the first one by name.
        """
        best_rank: tuple[int, int, str] | None = None
        for candidate in self._paths_by_file_name.get(parts[-1], ()):
            common_count = 0
            for part, candidate_part in zip(reversed(parts), reversed(candidate), strict=False):
                if part != candidate_part:
                    break
                common_count += 1
            rank = (-common_count, len(candidate), "/".join(candidate))
            best_rank = rank if best_rank is None else min(best_rank, rank)
        return None if best_rank is None else best_rank[2]


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
        name: the file name. It is used in messages, for a model without a name, and to choose among several models of a
            zip; no file of this name is opened.
        data: a URDF, MJCF, SDF or JSON of Mechanik (a mechanism, a DH table, an arm list), or a zip that contains such
            a file and its meshes.

    Returns:
        The mechanism, whose meshes have no `path`, and the files of the zip that it uses. Meshes are listed by their
        `uri`, textures by the `texture` of the material, and files that a mesh references by the name that
        `MeshDependencies` gives them.

    Raises:
        FormatError: the data cannot be read or is not allowed; the message says why.
        MissingExtra: the model is an MJCF and `mujoco` is not installed, or an SDF has a height map and Pillow is not.
    """
    file_name = _printable_name(name)
    if is_zip(data):
        files = unzip(data, f"{file_name}: ")
        model_name = _find_model(files, file_name)
    else:
        files, model_name = {file_name: _check_model_data(file_name, data)}, file_name
    resolver = ArchiveFileResolver(files, model_name)
    source = resolver.source(model_name)
    mechanism = READERS[detect_format(source)](source)
    return mechanism, _used_files(mechanism, resolver)


def _printable_name(name: str) -> str:
    """Return the last part of an untrusted file name in printable characters."""
    last_part = re.split(r"[/\\]", name)[-1]
    printable_name = "".join(
        letter if letter.isprintable() and letter not in ":*?<>|" else "_" for letter in last_part
    ).strip(" .")
    return printable_name[:80] or "file"


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


def _find_model(files: dict[str, bytes], zip_name: str) -> str:
    """Return the name of the model in a zip: of the models that no other file includes, the one in the topmost folder.

    Of several such models, the one with the name of the zip is returned.

    Raises:
        FormatError: there is no model, or the name of the zip does not select one of several.
    """
    included_names = {
        PurePosixPath((mjcf_file or uri).decode(errors="replace").replace("\\", "/")).name
        for name, data in files.items()
        if name.lower().endswith(MODEL_SUFFIXES)
        for mjcf_file, uri in _INCLUDED_FILE.findall(data[: 2**22])
    }
    models = [name for name, data in files.items() if _is_model(name, data)]
    if not models:
        if any(name.lower().endswith(".xacro") for name in files):
            raise FormatError(
                f"{zip_name}: the zip contains a xacro file and no URDF; expand it first with `xacro FILE > x.urdf`"
            )
        raise FormatError(f"{zip_name}: the zip contains no URDF, MJCF, SDF or JSON mechanism")
    top_models = [name for name in models if PurePosixPath(name).name not in included_names] or models
    depth = min(name.count("/") for name in top_models)
    shallowest_models = sorted(name for name in top_models if name.count("/") == depth)
    models_with_zip_name = [
        name for name in shallowest_models if PurePosixPath(name).stem == PurePosixPath(zip_name).stem
    ]
    if len(models_with_zip_name or shallowest_models) > 1:
        names = ", ".join(shallowest_models[:_MAX_LISTED_MODELS]) + (
            ", ..." if len(shallowest_models) > _MAX_LISTED_MODELS else ""
        )
        raise FormatError(
            f"{zip_name}: the zip contains {len(shallowest_models)} models, {names}; leave only one in it"
        )
    return (models_with_zip_name or shallowest_models)[0]


def _is_model(name: str, data: bytes) -> bool:
    lower_case_name = name.lower()
    if not lower_case_name.endswith(MODEL_SUFFIXES) or lower_case_name.endswith(".closures.json") or not data.strip():
        return False
    try:
        format_name = detect_format(Source(data, None, name))
    except MechanikError:
        return False
    if format_name == "JSON":
        return b'"mechanik"' in data[: 2**16]
    return b"<mujocoinclude" not in data[: 2**12]


def _used_files(mechanism: Mechanism, resolver: ArchiveFileResolver) -> dict[str, bytes]:
    uris: dict[str, None] = {}
    for link in mechanism.links.values():
        for instance in (*link.visuals, *link.collisions):
            if isinstance(instance.shape, Mesh):
                uris[instance.shape.uri] = None
            if instance.material is not None and instance.material.texture:
                uris[instance.material.texture] = None
    contents = {uri: content for uri in uris if (content := resolver.content(uri)) is not None}

    dependencies = MeshDependencies(resolver.content)
    for uri, data in list(contents.items()):
        for name in dependencies.files_of(uri, data).values():
            if (content := resolver.content(name)) is not None:
                contents.setdefault(name, content)
    return contents
