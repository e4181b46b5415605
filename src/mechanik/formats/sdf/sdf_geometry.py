"""Shapes, inertia and colours of the links of an SDF, with height maps from PNG images.

The PNG decoder reads 8 and 16 bits; the bytes may come from an untrusted sender.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from mechanik.errors import FormatError, InvalidOperation, ShapeError
from mechanik.formats.ellipsoid_hull import ellipsoid_shape
from mechanik.formats.sdf.frames import (
    SdfFrames,
    SdfLink,
    child_number,
    child_pose,
    child_text,
    parse_numbers,
    pose_relative_to,
)
from mechanik.formats.source import FileResolver
from mechanik.formats.urdf.urdf_geometry import MAX_DISTANCE
from mechanik.formats.xml_node import XmlNode
from mechanik.model.shapes import (
    Box,
    Capsule,
    Cylinder,
    HalfSpace,
    HeightField,
    Inertial,
    Material,
    Mesh,
    Shape,
    ShapeInstance,
    Sphere,
)
from mechanik.spatial import Pose, inverse, make_pose, rotation
from mechanik.spatial.array import Array

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS_BY_COLOUR_TYPE = {0: 1, 2: 3, 4: 2, 6: 4}
"""Channels of a pixel by PNG colour type: grey, RGB, grey with alpha, RGB with alpha."""
MAX_PIXELS_PER_EDGE = 2049
"""Pixels along each edge; decoding that many takes seconds."""


def read_png(data: bytes) -> Array:
    """Decode a PNG to brightness values.

    Returns:
        (rows, columns), from 0 (black) to 1 (white), the top row first; the red channel of a coloured image.

    Raises:
        FormatError: the data is not a PNG, is broken, or has an unsupported encoding.
        InvalidOperation: the image is too large.
    """
    parts = list(_parts(data))
    if not parts or parts[0][0] != b"IHDR" or len(parts[0][1]) != 13:
        raise FormatError("is no PNG")
    width, height, bits, colours, _, _, interlaced = struct.unpack(">IIBBBBB", parts[0][1])
    if colours not in CHANNELS_BY_COLOUR_TYPE or bits not in (8, 16) or interlaced:
        raise FormatError("is a PNG of a kind that is not read; write it in grey of 8 or 16 bits, not interlaced")
    if not (1 <= width <= MAX_PIXELS_PER_EDGE and 1 <= height <= MAX_PIXELS_PER_EDGE):
        raise InvalidOperation(
            f"has {width} x {height} pixels; at most {MAX_PIXELS_PER_EDGE} x {MAX_PIXELS_PER_EDGE} are read"
        )
    pixel = CHANNELS_BY_COLOUR_TYPE[colours] * bits // 8
    row = 1 + width * pixel
    try:
        packed = b"".join(content for name, content in parts if name == b"IDAT")
        raw = zlib.decompressobj().decompress(packed, height * row)
    except zlib.error:
        raw = b""
    if len(raw) < height * row:
        raise FormatError("is a PNG that is cut off or broken")
    rows = np.frombuffer(raw, np.uint8).reshape(height, row)
    pixels = _unfiltered(rows, pixel).reshape(height, width, pixel)
    first = pixels[..., 0].astype(np.float64)
    return first / 255 if bits == 8 else (256 * first + pixels[..., 1]) / 65535


def _parts(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield name and content of each chunk, up to the end of the data."""
    at = len(PNG_SIGNATURE)
    while data.startswith(PNG_SIGNATURE) and at + 12 <= len(data):
        size, name = struct.unpack(">I4s", data[at : at + 8])
        yield name, data[at + 8 : at + 8 + size]
        at += 12 + size


def _unfiltered(rows: npt.NDArray[np.uint8], pixel: int) -> npt.NDArray[np.uint8]:
    """Undo the PNG row filters, which store bytes as differences from the left and upper neighbours.

    Args:
        rows: (height, 1 + width * pixel); the first byte of a row is its filter.
        pixel: bytes per pixel.
    """
    out = np.zeros((len(rows), rows.shape[1] - 1), np.uint8)
    above = np.zeros(rows.shape[1] - 1, np.uint8)
    for k, (kind, *_) in enumerate(rows[:, :1].tolist()):
        given = rows[k, 1:]
        if kind in (0, 2):
            out[k] = given + above if kind == 2 else given
        elif kind == 1:
            steps = given.reshape(-1, pixel)
            out[k] = np.cumsum(steps, axis=0, dtype=np.uint8).reshape(-1)
        elif kind in (3, 4):
            out[k] = np.frombuffer(_along(given.tobytes(), above.tobytes(), pixel, kind == 4), np.uint8)
        else:
            raise FormatError(f"is a PNG with a row of the unknown filter {kind}")
        above = out[k]
    return out


def _along(given: bytes, above: bytes, pixel: int, predicts: bool) -> bytes:
    """Undo the filters in which each byte depends on the one before: average, and Paeth's prediction."""
    done = bytearray(pixel) + bytearray(len(given))
    over = bytes(pixel) + above
    for k, byte in enumerate(given):
        left, top, corner = done[k], over[k + pixel], over[k]
        if predicts:
            guess = left + top - corner
            a, b, c = abs(guess - left), abs(guess - top), abs(guess - corner)
            near = left if a <= b and a <= c else top if b <= c else corner
        else:
            near = (left + top) // 2
        done[k + pixel] = (byte + near) & 255
    return bytes(done[pixel:])


def read_heightmap(node: XmlNode, files: FileResolver) -> HeightField | None:
    """Read a <heightmap> as Gazebo does; a file that cannot be read gives a warning and None.

    Black is at height 0, the brightest pixel at the third size, and the top row has the largest y.
    """
    uri, said = child_text(node, "uri"), node.first("size")
    x, y, z = (1.0, 1.0, 1.0) if said is None else parse_numbers(said, 3)
    if not (min(x, y) > 0.0 and z >= 0.0 and max(x, y, z) <= MAX_DISTANCE):
        raise (said or node).make_error(
            f"says {x:g} {y:g} {z:g}; a size is above 0 along x and y, and up to {MAX_DISTANCE:g} m"
        )
    data = None if uri is None else files.content(uri)
    if uri is None or data is None:
        names = "names no file" if uri is None else f"names {uri!r}, and there is no such file{files.search_hint(uri)}"
        node.warn(f"{names}; the ground is left out")
        return None
    try:
        grey = read_png(data)
    except (FormatError, InvalidOperation) as error:
        node.warn(f"names {uri!r}, which {error}; the ground is left out (heights are read from PNG)")
        return None
    if min(grey.shape) < 2:
        node.warn(f"names {uri!r}, which has one row or column of pixels; the ground is left out")
        return None
    return HeightField(np.flipud(grey) * (z / (grey.max() or 1.0)), (x, y))


def heightmap_pose(owner: XmlNode) -> Array:
    """Return the offset (4, 4) of the <heightmap> in a <visual> or <collision>."""
    node = next(one for one in owner.walk() if one.tag == "heightmap")
    said = node.first("pos")
    return np.eye(4) if said is None else make_pose(np.eye(3), np.array(parse_numbers(said, 3)))


class SdfShapeReader:
    """Reads shapes and inertia of the links of a file; warns once of each missing mesh."""

    def __init__(self, files: FileResolver, frames: SdfFrames) -> None:
        self.files, self.frames = files, frames
        self._missing: set[str] = set()

    def read_shapes(self, link: SdfLink, tag: str) -> list[ShapeInstance]:
        """Return the shapes of all <visual> or <collision> elements of a link."""
        shapes: list[ShapeInstance] = []
        for node in link.node.all(tag):
            shape = self._shape(node)
            if shape is not None:
                X_link_shape = self._on_link(link, node)
                if isinstance(shape, HalfSpace):
                    X_link_shape = X_link_shape @ _upright(node)
                elif isinstance(shape, HeightField):
                    X_link_shape = X_link_shape @ heightmap_pose(node)
                pose = Pose.from_matrix(X_link_shape)
                shapes.append(ShapeInstance(shape, pose, _material(node), node.attributes.get("name", "")))
        return shapes

    def inertial(self, link: SdfLink) -> Inertial | None:
        node = link.node.first("inertial")
        if node is None:
            return None
        mass = child_number(node, "mass", 1.0)
        if mass < 0.0:
            raise node.make_error(f"has a mass of {mass:g} kg; it cannot be negative")
        inertia = node.first("inertia")
        names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        usual = (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)  # defaults of the SDF specification
        numbers = [
            one if inertia is None else child_number(inertia, tag, one) for tag, one in zip(names, usual, strict=True)
        ]
        xx, xy, xz, yy, yz, zz = numbers
        return Inertial(mass, Pose.from_matrix(self._on_link(link, node)), (xx, xy, xz, yy, yz, zz))

    def _on_link(self, link: SdfLink, node: XmlNode) -> Array:
        """Return X_link_part (4, 4) of an element inside a link, whose pose may be relative to another frame."""
        other = pose_relative_to(node)
        if other is None:
            return child_pose(node)
        scope = link.name[: len(link.name) - len(link.node.attributes["name"].strip())]
        X_world_other = self.frames.pose(self.frames.key(scope, other, node))
        X_world_link = self.frames.pose(self.frames.key("", link.name, node))
        return inverse(X_world_link) @ X_world_other @ child_pose(node)

    def _shape(self, node: XmlNode) -> Shape | None:
        geometry = node.first("geometry")
        solids = [] if geometry is None else [child for child in geometry.children if child.tag != "empty"]
        if not solids:
            if geometry is None:
                node.warn("has no geometry and is left out")
            return None
        solid = solids[0]
        for other in solids[1:]:
            other.warn("is a second shape in one <geometry>; only the first counts")
        if solid.tag == "box":
            x, y, z = _sizes(solid, "size", 3)
            return Box((x, y, z))
        if solid.tag == "sphere":
            return Sphere(*_sizes(solid, "radius"))
        if solid.tag in ("cylinder", "capsule"):
            sizes = *_sizes(solid, "radius"), *_sizes(solid, "length")
            return Cylinder(*sizes) if solid.tag == "cylinder" else Capsule(*sizes)
        if solid.tag == "mesh":
            return self._mesh(solid)
        if solid.tag == "ellipsoid":
            return _ellipsoid(solid)
        if solid.tag == "heightmap":
            return read_heightmap(solid, self.files)
        if solid.tag == "plane":  # infinite for contacts; its size is only drawn
            return HalfSpace()
        solid.warn("is no shape that is known here; it is left out")
        return None

    def _mesh(self, node: XmlNode) -> Mesh | None:
        uri = child_text(node, "uri")
        if uri is None:
            node.warn("names no file and is left out")
            return None
        scale = node.first("scale")
        sx, sy, sz = (1.0, 1.0, 1.0) if scale is None else parse_numbers(scale, 3)
        if 0.0 in (sx, sy, sz):
            raise node.make_error("has a scale that flattens it")
        is_there, path = self.files.locate(uri)
        if not is_there and uri not in self._missing:
            self._missing.add(uri)
            node.warn(f"names {uri!r}, and there is no such file{self.files.search_hint(uri)}")
        return Mesh(uri, (sx, sy, sz), path)


def _ellipsoid(node: XmlNode) -> Shape:
    x, y, z = _sizes(node, "radii", 3)
    try:
        return ellipsoid_shape((x, y, z))
    except ShapeError:
        raise node.make_error(f"has the radii {x:g}, {y:g} and {z:g} m, so that it holds no volume") from None


def _upright(node: XmlNode) -> Array:
    """Return the rotation (4, 4) from z to the normal of the <plane> in a <visual> or <collision>."""
    plane = next(one for one in node.walk() if one.tag == "plane")
    said = plane.first("normal")
    normal = np.array((0.0, 0.0, 1.0) if said is None else parse_numbers(said, 3))
    if not normal.any():
        raise plane.make_error("has a normal without direction")
    return make_pose(rotation.between((0.0, 0.0, 1.0), normal / np.linalg.norm(normal)), np.zeros(3))


def _material(node: XmlNode) -> Material | None:
    """Return the diffuse colour, or else the ambient one."""
    material = node.first("material")
    if material is None:
        return None
    for tag in ("diffuse", "ambient"):
        colour = material.first(tag)
        if colour is not None:
            parts = parse_numbers(colour, len(colour.text.split()))
            if len(parts) not in (3, 4):
                raise colour.make_error(f"says {colour.text.strip()!r}, where 3 or 4 numbers are needed")
            r, g, b, a = (float(part) for part in np.clip([*parts, 1.0][:4], 0.0, 1.0))
            return Material("", (r, g, b, a))
    return None


def _sizes(solid: XmlNode, tag: str, count: int = 1) -> tuple[float, ...]:
    """Return the sizes of a shape, m; they must exist and must not be negative."""
    node = solid.first(tag)
    if node is None:
        raise solid.make_error(f"has no <{tag}>")
    sizes = parse_numbers(node, count)
    if min(sizes) < 0.0 or max(sizes) > MAX_DISTANCE:
        raise node.make_error(f"says {node.text.strip()!r}; a size is from 0 to {MAX_DISTANCE:g} m")
    return sizes
