"""Reading of mesh files: triangles of STL and OBJ, colours of MTL, and the files that a mesh references.

The content of a file is not trusted. A mesh references files (materials, buffers, images) by name. Only file types that
meshes need are accepted, up to a size limit, and images only with a valid image header. The caller provides the
function that opens the referenced files, and decides which files it may open.
"""

from __future__ import annotations

import html
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from mechanik.errors import FormatError, InvalidOperation
from mechanik.spatial.array import Array

MAX_COORDINATE = 1e6
"""Largest absolute value of a coordinate, in the file's unit; a vertex with a larger or non-finite one is invalid."""


def is_valid_vertex(vertex: tuple[float, float, float]) -> bool:
    """Return whether the absolute values of all coordinates are at most `MAX_COORDINATE`."""
    return all(abs(number) <= MAX_COORDINATE for number in vertex)  # NaN compares False


def invalid_vertex_error(location: str, triangle_number: int, vertex: tuple[float, float, float]) -> FormatError:
    """Return the error for a triangle with an invalid vertex.

    Args:
        location: name of the file, and the line if it has lines.
        triangle_number: number of the triangle in the file, from 1.
        vertex: coordinates in the file's unit.
    """
    x, y, z = vertex
    return FormatError(
        f"{location}: triangle {triangle_number} has a vertex at ({x:g}, {y:g}, {z:g}); coordinates must be finite and "
        f"at most {MAX_COORDINATE:g}: repair and export the mesh again, or use other shapes"
    )


def check_vertices(name: str, triangles: Array) -> None:
    """Raise `FormatError` if one of the triangles (T, 3, 3) has an invalid vertex; the message names the first."""
    invalid_indices = np.argwhere(~(np.abs(triangles) <= MAX_COORDINATE).all(axis=2))
    if len(invalid_indices):
        triangle_index, corner_index = invalid_indices[0].tolist()
        x, y, z = triangles[triangle_index, corner_index].tolist()
        raise invalid_vertex_error(name, triangle_index + 1, (x, y, z))


MAX_REFERENCED_FILES = 64
"""Largest number of files that a mesh may reference; others are ignored. Meshes of robots reference up to about ten."""
SEARCHED_BYTES_PER_END = 2**19
"""Bytes at each end of a file in which names of referenced files are searched; names are before or after the numerical
data."""
MAX_SEARCHED_BYTES = 2**29
"""Bytes searched in total; limits the time for models that reference the same file thousands of times."""
MAX_NAME_LENGTH = 400
"""Largest length of the name of a referenced file, bytes."""
MAX_BYTES = {"mtl": 2**20, "png": 16 * 2**20, "jpg": 16 * 2**20, "bin": 64 * 2**20}
"""Largest size of a referenced file by type, bytes; larger files are ignored."""
MAX_IMAGE_SIDE = 4096
"""Largest width and height of an image, pixels; a decoded pixel needs four bytes."""

_MATERIAL_LIBRARY = re.compile(rb"^[ \t]*mtllib[ \t]+([^\r\n]+)", re.MULTILINE)
_TEXTURE_MAP = re.compile(rb"^[ \t]*map_Kd[ \t]+([^\r\n]+)", re.MULTILINE | re.IGNORECASE)
_IMAGE_REFERENCE = re.compile(rb"<init_from>([^<>]*)</init_from>")
_URI_REFERENCE = re.compile(rb'"uri"\s*:\s*"([^"\\]*)"')
_TYPE_BY_EXTENSION = {"mtl": "mtl", "bin": "bin", "png": "png", "jpg": "jpg", "jpeg": "jpg"}
_REFERENCE_PATTERNS = {
    "obj": (_MATERIAL_LIBRARY, ("mtl",)),
    "mtl": (_TEXTURE_MAP, ("png", "jpg")),
    "dae": (_IMAGE_REFERENCE, ("png", "jpg")),
    "gltf": (_URI_REFERENCE, ("bin", "png", "jpg")),
}
FORMATS_WITH_REFERENCES = ("obj", "dae", "gltf")
"""Extensions of meshes that can reference other files."""
_TEXTURE_OPTION = re.compile(r"-[A-Za-z]+|on|off|[-+]?[\d.]+(?:e[-+]?\d+)?")
"""An option, or a value of an option, before the name of an image in an .mtl file: `-s 2 2 1 wood.png`."""


class MeshDependencies:
    """Finds the files that meshes reference, directly or through their materials.

    Args:
        read_file: returns the content of the file with a name from `resolve_relative_uri`; None if there is no file.
    """

    def __init__(self, read_file: Callable[[str], bytes | None]) -> None:
        self._read_file = read_file
        self._remaining_bytes = MAX_SEARCHED_BYTES

    def files_of(self, uri: str, data: bytes) -> dict[str, str]:
        """Find the files that a mesh and its materials reference.

        Args:
            uri: name of the mesh; its extension is the format.
            data: content of the mesh.

        Returns:
            Mapping from the name in the mesh or its materials to the name for `read_file`. Files that do not exist or
            are not safe to show are left out.
        """
        resolved_names: dict[str, str] = {}
        pending_files = [(uri, data)]
        while pending_files and self._remaining_bytes > 0:
            source, content = pending_files.pop()
            self._remaining_bytes -= min(len(content), 2 * SEARCHED_BYTES_PER_END)
            for name, file_type in referenced_files(source, content):
                if name in resolved_names or len(resolved_names) >= MAX_REFERENCED_FILES:
                    continue
                resolved_name = resolve_relative_uri(source, name)
                referenced_data = self._read_file(resolved_name)
                if referenced_data is not None and is_safe_to_show(file_type, referenced_data):
                    resolved_names[name] = resolved_name
                    if file_type == "mtl":
                        pending_files.append((resolved_name, referenced_data))
        return resolved_names


def referenced_files(uri: str, data: bytes) -> list[tuple[str, str]]:
    """Return names and types (keys of `MAX_BYTES`) of the files that a file references, without repetition.

    References to files of other types are ignored.
    """
    extension = file_extension(uri)
    if extension not in _REFERENCE_PATTERNS:
        return []
    pattern, file_types = _REFERENCE_PATTERNS[extension]
    texts: list[bytes] = pattern.findall(
        data
        if len(data) <= 2 * SEARCHED_BYTES_PER_END
        else data[:SEARCHED_BYTES_PER_END] + b"\n" + data[-SEARCHED_BYTES_PER_END:]
    )
    types_by_name: dict[str, str] = {}
    for text in texts:
        if len(text) > MAX_NAME_LENGTH:
            continue
        name = text.decode("utf-8", errors="replace").strip()
        name = (
            html.unescape(name) if extension == "dae" else _remove_texture_options(name) if extension == "mtl" else name
        )
        file_type = _TYPE_BY_EXTENSION.get(file_extension(name))
        if file_type is not None and file_type in file_types and unquote(name).isprintable():
            types_by_name.setdefault(name, file_type)
    return list(types_by_name.items())[:MAX_REFERENCED_FILES]


def resolve_relative_uri(uri: str, name: str) -> str:
    """Resolve `name`, as it is written in the file `uri`, relative to the folder of `uri`.

    An absolute path or URI is only decoded.
    """
    decoded_name = unquote(name).replace("\\", "/")
    if "://" in decoded_name or decoded_name.startswith(("/", "file:")) or re.match("[A-Za-z]:", decoded_name):
        return decoded_name
    folder = uri.replace("\\", "/").split("/")[:-1]
    name_parts = [name_part for name_part in decoded_name.split("/") if name_part not in ("", ".")]
    while (
        name_parts and name_parts[0] == ".." and folder and folder[-1] not in ("", ".", "..") and folder[-1][-1] != ":"
    ):
        folder, name_parts = folder[:-1], name_parts[1:]
    return "/".join([*folder, *name_parts])


def file_extension(uri: str) -> str:
    """Return the extension in lower case, without the dot."""
    file_name = re.split(r"[/\\]", uri)[-1]
    return file_name.rpartition(".")[2].lower() if "." in file_name else ""


def is_safe_to_show(file_type: str, data: bytes) -> bool:
    """Return whether the content is small enough for a web page to decode and, for images, has a valid header.

    `file_type` is a key of `MAX_BYTES`. An empty file is not safe.
    """
    if not 0 < len(data) <= MAX_BYTES[file_type]:
        return False
    if file_type not in ("png", "jpg"):
        return True
    size = image_size(data)
    return size is not None and min(size) > 0 and max(size) <= MAX_IMAGE_SIDE


def image_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height of a PNG or JPEG from its header, pixels; None for other bytes."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR" and len(data) >= 24:
        width, height = struct.unpack(">II", data[16:24])
        return width, height
    if not data.startswith(b"\xff\xd8\xff"):
        return None
    offset = 2
    while offset + 9 <= len(data) and data[offset] == 0xFF:
        marker, segment_length = data[offset + 1], int.from_bytes(data[offset + 2 : offset + 4], "big")
        # a start-of-frame segment
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[offset + 5 : offset + 9])
            return width, height
        offset += 2 + max(segment_length, 2)
    return None


def _remove_texture_options(text: str) -> str:
    tokens = text.split(" ")
    first_index = 0
    if tokens[0].startswith("-"):
        while first_index < len(tokens) - 1 and (
            not tokens[first_index] or _TEXTURE_OPTION.fullmatch(tokens[first_index])
        ):
            first_index += 1
    return " ".join(tokens[first_index:])


STL_HEADER_BYTES, STL_FACET_BYTES = 84, 50
"""Bytes before the first triangle of a binary STL file, and bytes of a triangle."""
MAX_STL_TEXT_BYTES = 32 * 2**20
"""Largest size of a text STL file, bytes; a triangle needs about 250 bytes."""
_VERTEX = re.compile(rb"vertex\s+(\S{1,40})\s+(\S{1,40})\s+(\S{1,40})")


def read_stl(name: str, data: bytes, max_triangles: int) -> Array:
    """Read the triangles of an STL file, binary or text.

    Args:
        name: name of the file, for messages.
        data: content of the file.
        max_triangles: largest number of triangles.

    Returns:
        Vertices, (T, 3, 3), in the file's unit; they are not checked and may be NaN.

    Raises:
        FormatError: the file is damaged.
        InvalidOperation: the file is too large, or has more than `max_triangles` triangles.
    """
    triangle_count = int.from_bytes(data[80:STL_HEADER_BYTES], "little")
    # the size is checked before the word "solid", since some binary files begin with "solid"
    if len(data) >= STL_HEADER_BYTES and len(data) == STL_HEADER_BYTES + STL_FACET_BYTES * triangle_count:
        return _read_binary_stl(name, data, triangle_count, max_triangles)
    if data[:512].lstrip()[:5].lower() == b"solid":
        return _read_text_stl(name, data, max_triangles)
    # other data may follow the last triangle
    if len(data) > STL_HEADER_BYTES and len(data) > STL_HEADER_BYTES + STL_FACET_BYTES * triangle_count:
        return _read_binary_stl(name, data, triangle_count, max_triangles)
    raise FormatError(f"{name}: the file is truncated, or is not an STL file; export it again")


def _read_binary_stl(name: str, data: bytes, triangle_count: int, max_triangles: int) -> Array:
    _check_triangle_count(name, triangle_count, max_triangles)
    facet_type = np.dtype([("normal", "<f4", 3), ("vertices", "<f4", (3, 3)), ("attribute", "<u2")])
    facets = np.frombuffer(data, facet_type, triangle_count, STL_HEADER_BYTES)
    return facets["vertices"].astype(np.float64)


def _read_text_stl(name: str, data: bytes, max_triangles: int) -> Array:
    if len(data) > MAX_STL_TEXT_BYTES:
        raise InvalidOperation(
            f"{name}: a text STL file of {len(data) / 2**20:.0f} MB is too large; export it as binary STL, which has "
            "a fifth of the size"
        )
    coordinates = _VERTEX.findall(data)
    _check_triangle_count(name, len(coordinates) // 3, max_triangles)
    if len(coordinates) % 3:
        raise FormatError(f"{name}: a triangle of this STL file does not have three vertices; export it again")
    try:
        return np.array(coordinates, dtype=np.bytes_).reshape(-1, 3, 3).astype(np.float64)
    except ValueError:
        raise FormatError(f"{name}: a vertex of this STL file is not three numbers; export it again") from None


def _check_triangle_count(name: str, triangle_count: int, max_triangles: int) -> None:
    if triangle_count > max_triangles:
        raise InvalidOperation(
            f"{name}: the STL file has {triangle_count:,} triangles; the limit is {max_triangles:,}. Simplify the mesh"
        )


MAX_OBJ_BYTES = 32 * 2**20
"""Largest size of an OBJ file, bytes; a triangle needs about 60 bytes."""
MAX_FACE_VERTICES = 1000
"""Largest number of vertices of a face."""


def read_obj(name: str, data: bytes, max_triangles: int, reject_invalid: bool = False) -> dict[str, Array]:
    """Read the triangles of an OBJ file by material; a face with more than three vertices becomes a triangle fan.

    Args:
        name: name of the file, for messages.
        data: content of the file.
        max_triangles: largest number of triangles.
        reject_invalid: whether an invalid vertex in a face is an error.

    Returns:
        Mapping from the name of a material ("" before the first material) to the vertices of its triangles, (T, 3, 3),
        in the file's unit. Unless `reject_invalid` is set, the vertices are not checked and may be NaN.

    Raises:
        FormatError: a line cannot be read, a face has too many vertices, or `reject_invalid` is set and a vertex of a
            face is invalid.
        InvalidOperation: the file is too large, or has more than `max_triangles` triangles.
    """
    if len(data) > MAX_OBJ_BYTES:
        raise InvalidOperation(
            f"{name}: the OBJ file has {len(data) / 2**20:.0f} MB; the limit is {MAX_OBJ_BYTES / 2**20:.0f} MB. "
            "Simplify the mesh"
        )
    vertices: list[tuple[float, float, float]] = []
    corners_by_material: dict[str, list[int]] = {"": []}
    corners, triangle_count = corners_by_material[""], 0
    invalid_indices: set[int] = set()
    for line_number, line in enumerate(data.splitlines(), start=1):
        fields = line.split(None, MAX_FACE_VERTICES + 1)
        try:
            if not fields:
                continue
            if fields[0] == b"v":
                vertices.append((float(fields[1]), float(fields[2]), float(fields[3])))
                if reject_invalid and not is_valid_vertex(vertices[-1]):
                    invalid_indices.add(len(vertices) - 1)
            elif fields[0] == b"f":
                if len(fields) > MAX_FACE_VERTICES + 1:
                    raise FormatError(
                        f"{name}, line {line_number}: the face has more than {MAX_FACE_VERTICES} vertices, which is "
                        "the limit. Triangulate the mesh"
                    )
                face = [_vertex_index(field, len(vertices)) for field in fields[1:]]
                if invalid_indices and len(face) > 2 and not invalid_indices.isdisjoint(face):
                    first_invalid_corner = next(k for k, corner in enumerate(face) if corner in invalid_indices)
                    raise invalid_vertex_error(
                        f"{name}, line {line_number}",
                        triangle_count + max(1, first_invalid_corner - 1),
                        vertices[face[first_invalid_corner]],
                    )
                triangle_count += max(0, len(face) - 2)
                for second_corner, third_corner in pairwise(face[1:]):
                    corners += (face[0], second_corner, third_corner)
            elif fields[0] == b"usemtl":
                corners = corners_by_material.setdefault(_decode(b" ".join(fields[1:])), [])
        except FormatError:
            raise
        except (ValueError, IndexError):
            raise FormatError(
                f"{name}, line {line_number}: {_decode(line[:60])!r} is not a valid line of an OBJ file"
            ) from None
        if triangle_count > max_triangles:
            raise InvalidOperation(
                f"{name}: the OBJ file has more than {max_triangles:,} triangles, which is the limit. Simplify the mesh"
            )
    points = np.array(vertices, dtype=np.float64).reshape(-1, 3)
    return {
        material: points[np.array(indices, dtype=np.int64)].reshape(-1, 3, 3)
        for material, indices in corners_by_material.items()
    }


def read_mtl(data: bytes) -> dict[str, tuple[float, float, float, float]]:
    """Return the colour (r, g, b, a, each 0 to 1) of each material that has one; unreadable lines are ignored."""
    colours: dict[str, tuple[float, float, float, float]] = {}
    material, rgb, opacity = "", None, 1.0
    for line in [*data.splitlines(), b"newmtl"]:  # the added line stores the last material
        fields = line.split()
        key = fields[0].lower() if fields else b""
        try:
            if key == b"newmtl":
                if rgb is not None:
                    colours[material] = (*rgb, opacity)
                material, rgb, opacity = _decode(b" ".join(fields[1:])), None, 1.0
            elif key == b"kd":
                rgb = (_unit_interval(fields[1]), _unit_interval(fields[2]), _unit_interval(fields[3]))
            elif key == b"d":
                opacity = _unit_interval(fields[1])
            elif key == b"tr":
                opacity = 1.0 - _unit_interval(fields[1])
        except (ValueError, IndexError):
            continue
    return colours


def _vertex_index(field: bytes, vertex_count: int) -> int:
    """Return the vertex index of a face entry such as `7/2/3`; negative numbers count back from the last vertex."""
    one_based_index = int(field.split(b"/", 1)[0])
    index = one_based_index - 1 if one_based_index > 0 else vertex_count + one_based_index
    if not 0 <= index < vertex_count or one_based_index == 0:
        raise ValueError
    return index


def _unit_interval(field: bytes) -> float:
    value = float(field)
    if not 0.0 <= value <= 1.0:
        raise ValueError
    return value


def _decode(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


READABLE_EXTENSIONS = ("stl", "obj")
"""Extensions of meshes that can be read."""

GIT_LFS_POINTER = b"version https://git-lfs.github.com/"

Colour = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class MeshSurface:
    """The triangles of a mesh that have the same material.

    Attributes:
        vertices: (V, 3), in the file's frame and unit, without duplicates.
        triangles: (T, 3), indices of vertices, T > 0, in the order of the file; usually counter-clockwise as seen from
            outside.
        rgba: colour from the file, each value 0 to 1; None if the file has none.
    """

    vertices: Array
    triangles: npt.NDArray[np.uint32]
    rgba: Colour | None = None


def read_surfaces(
    uri: str,
    data: bytes,
    read_file: Callable[[str], bytes | None] = lambda name: None,
    max_triangles: int = 2_000_000,
    reject_invalid: bool = False,
) -> list[MeshSurface]:
    """Read an STL or OBJ mesh as surfaces, one for each material.

    Args:
        uri: name of the file; its extension is the format.
        data: content of the file.
        read_file: returns the content of a referenced file, for the materials of an .obj; see `MeshDependencies`.
        max_triangles: largest number of triangles.
        reject_invalid: whether a triangle with an invalid vertex (see `MAX_COORDINATE`) is an error; otherwise the
            triangle is dropped, which leaves a hole.

    Returns:
        The surfaces; an empty list if there are no triangles.

    Raises:
        FormatError: the format is not STL or OBJ, the file is damaged, or `reject_invalid` is set and a vertex is
            invalid.
        InvalidOperation: the file is too large, or has more than `max_triangles` triangles.
    """
    extension, name = file_extension(uri), uri.replace("\\", "/").split("/")[-1][:80]
    if data.startswith(GIT_LFS_POINTER):
        raise FormatError(f"{name}: this is a Git LFS pointer instead of the file; run `git lfs pull`")
    if extension == "stl":
        triangles_by_material: dict[str, Array] = {"": read_stl(name, data, max_triangles)}
        if reject_invalid:
            check_vertices(name, triangles_by_material[""])
        colours: dict[str, Colour] = {}
    elif extension == "obj":
        triangles_by_material = read_obj(name, data, max_triangles, reject_invalid)
        dependencies = MeshDependencies(read_file).files_of(uri, data)
        colours = {}
        for written_name, resolved_name in dependencies.items():
            if file_extension(written_name) == "mtl":
                colours |= read_mtl(read_file(resolved_name) or b"")
    else:
        raise FormatError(
            f"{name}: meshes of type '{extension}' cannot be read, only {' and '.join(READABLE_EXTENSIONS)}"
        )
    surfaces = [
        _make_surface(triangles, colours.get(material)) for material, triangles in triangles_by_material.items()
    ]
    return [surface for surface in surfaces if surface is not None]


def _make_surface(triangles: Array, rgba: Colour | None) -> MeshSurface | None:
    """Return the surface of triangles (T, 3, 3); None if no valid triangle remains."""
    is_valid = (np.abs(triangles) <= MAX_COORDINATE).all(axis=(1, 2))  # NaN compares False
    vertices = triangles[is_valid].reshape(-1, 3) + 0.0  # -0 becomes 0, since vertices are compared by their bytes
    if len(vertices) == 0:
        return None
    # a vertex as a single 24-byte value sorts much faster than a row
    vertex_bytes = np.ascontiguousarray(vertices).view(np.dtype((np.void, 24))).reshape(-1)
    _, first_indices, vertex_indices = np.unique(vertex_bytes, return_index=True, return_inverse=True)
    indices = vertex_indices.reshape(-1, 3).astype(np.uint32)
    a, b, c = indices.T
    is_degenerate = (a == b) | (b == c) | (c == a)
    return None if is_degenerate.all() else MeshSurface(vertices[first_indices], indices[~is_degenerate], rgba)
