"""Shapes, inertia and colours of the links of an SDF, with height maps from PNG images."""

from __future__ import annotations

import io

import numpy as np

from mechanik.errors import FormatError, InvalidOperation, MissingExtra, ShapeError
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
from mechanik.model.mesh_files import image_size
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

MAX_PIXELS_PER_EDGE = 2049
"""Maximum number of pixels along each edge of a height map; a map of this size has 4 million vertices."""


def read_png(data: bytes) -> Array:
    """Decode a PNG to brightness values.

    Returns:
        (rows, columns), from 0 (black) to 1 (white), the top row first. A grey image with 16 bits and without alpha is
        read with 16 bits. Of any other image, the red channel is read with 8 bits.

    Raises:
        FormatError: the data is not a PNG, or is damaged.
        InvalidOperation: the image is too large. This message and that of `FormatError` continue a sentence whose
            subject is the file.
        MissingExtra: Pillow is not installed.
    """
    size = image_size(data)
    if size is None or not data.startswith(b"\x89PNG"):
        raise FormatError("is not a PNG image")
    if max(size) > MAX_PIXELS_PER_EDGE:  # checked before the pixels are decompressed
        limit = f"{MAX_PIXELS_PER_EDGE} x {MAX_PIXELS_PER_EDGE}"
        raise InvalidOperation(f"has {size[0]} x {size[1]} pixels, more than the limit of {limit}")
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("reading a height map", "heightmap") from None
    try:
        with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
            pixels = np.asarray(image if image.mode == "I;16" else image.convert("RGBA").getchannel("R"))
    except Exception as error:  # the data may be hostile, and Pillow reports damage by exceptions of many types
        raise FormatError("is a truncated or damaged PNG image") from error
    return pixels.astype(np.float64) / np.iinfo(pixels.dtype).max


def read_heightmap(node: XmlNode, files: FileResolver) -> HeightField | None:
    """Read a <heightmap> as Gazebo does; if it has no usable file, warn and return None.

    Black is at height 0, the brightest pixel is at height z of <size>, and the top row has the largest y.
    """
    uri, size = child_text(node, "uri"), node.first("size")
    x, y, z = (1.0, 1.0, 1.0) if size is None else parse_numbers(size, 3)
    if not (min(x, y) > 0.0 and z >= 0.0 and max(x, y, z) <= MAX_DISTANCE):
        raise (size or node).make_error(
            f"is {x:g} {y:g} {z:g} m; x and y must be above 0, z at least 0, and all at most {MAX_DISTANCE:g} m"
        )
    data = None if uri is None else files.content(uri)
    if uri is None or data is None:
        reason = (
            "names no file"
            if uri is None
            else f"names the file {uri!r}, which does not exist or cannot be read{files.search_hint(uri)}"
        )
        node.warn(f"{reason}; it is ignored")
        return None
    try:
        brightness = read_png(data)
    except (FormatError, InvalidOperation) as error:
        node.warn(f"names {uri!r}, which {error}; it is ignored (a height map must be a PNG image)")
        return None
    if min(brightness.shape) < 2:
        node.warn(f"names {uri!r}, which has one row or column of pixels; it is ignored")
        return None
    return HeightField(np.flipud(brightness) * (z / (brightness.max() or 1.0)), (x, y))


def heightmap_pose(owner: XmlNode) -> Array:
    """Return the translation (4, 4) by the <pos> of the <heightmap> in a <visual> or <collision>."""
    node = next(child for child in owner.walk() if child.tag == "heightmap")
    position = node.first("pos")
    return np.eye(4) if position is None else make_pose(np.eye(3), np.array(parse_numbers(position, 3)))


class SdfShapeReader:
    """Reads the shapes and the inertia of the links of a file; warns once about each missing mesh."""

    def __init__(self, files: FileResolver, frames: SdfFrames) -> None:
        self.files, self.frames = files, frames
        self._missing_uris: set[str] = set()

    def read_shapes(self, link: SdfLink, tag: str) -> list[ShapeInstance]:
        """Return the shapes of all <visual> or <collision> elements of a link."""
        instances: list[ShapeInstance] = []
        for node in link.node.all(tag):
            shape = self._read_shape(node)
            if shape is not None:
                X_link_shape = self._pose_on_link(link, node)
                if isinstance(shape, HalfSpace):
                    X_link_shape = X_link_shape @ _rotation_to_normal(node)
                elif isinstance(shape, HeightField):
                    X_link_shape = X_link_shape @ heightmap_pose(node)
                pose = Pose.from_matrix(X_link_shape)
                instances.append(ShapeInstance(shape, pose, _read_material(node), node.attributes.get("name", "")))
        return instances

    def read_inertial(self, link: SdfLink) -> Inertial | None:
        """Return mass (kg), pose and inertia (kg m²) of the <inertial> in a link, or None if there is none."""
        node = link.node.first("inertial")
        if node is None:
            return None
        mass = child_number(node, "mass", 1.0)
        if mass < 0.0:
            raise node.make_error(f"has a mass of {mass:g} kg; it cannot be negative")
        inertia_node = node.first("inertia")
        names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        defaults = (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)  # of the SDF specification
        xx, xy, xz, yy, yz, zz = (
            default if inertia_node is None else child_number(inertia_node, tag, default)
            for tag, default in zip(names, defaults, strict=True)
        )
        return Inertial(mass, Pose.from_matrix(self._pose_on_link(link, node)), (xx, xy, xz, yy, yz, zz))

    def _pose_on_link(self, link: SdfLink, node: XmlNode) -> Array:
        """Return X_link_element (4, 4) of an element inside a link; its <pose> may be relative to another frame."""
        frame_name = pose_relative_to(node)
        if frame_name is None:
            return child_pose(node)
        scope = link.name[: len(link.name) - len(link.node.attributes["name"].strip())]
        X_world_frame = self.frames.pose(self.frames.key(scope, frame_name, node))
        X_world_link = self.frames.pose(self.frames.key("", link.name, node))
        return inverse(X_world_link) @ X_world_frame @ child_pose(node)

    def _read_shape(self, node: XmlNode) -> Shape | None:
        geometry = node.first("geometry")
        shape_nodes = [] if geometry is None else [child for child in geometry.children if child.tag != "empty"]
        if not shape_nodes:
            if geometry is None:
                node.warn("has no geometry; it is ignored")
            return None
        shape_node = shape_nodes[0]
        for extra_node in shape_nodes[1:]:
            extra_node.warn("is a second shape in the same <geometry>; it is ignored")
        if shape_node.tag == "box":
            x, y, z = _read_sizes(shape_node, "size", 3)
            return Box((x, y, z))
        if shape_node.tag == "sphere":
            return Sphere(*_read_sizes(shape_node, "radius"))
        if shape_node.tag in ("cylinder", "capsule"):
            sizes = *_read_sizes(shape_node, "radius"), *_read_sizes(shape_node, "length")
            return Cylinder(*sizes) if shape_node.tag == "cylinder" else Capsule(*sizes)
        if shape_node.tag == "mesh":
            return self._read_mesh(shape_node)
        if shape_node.tag == "ellipsoid":
            return _read_ellipsoid(shape_node)
        if shape_node.tag == "heightmap":
            return read_heightmap(shape_node, self.files)
        if shape_node.tag == "plane":  # infinite for contacts; its size is for display
            return HalfSpace()
        shape_node.warn("is not a supported shape; it is ignored")
        return None

    def _read_mesh(self, node: XmlNode) -> Mesh | None:
        uri = child_text(node, "uri")
        if uri is None:
            node.warn("names no file; it is ignored")
            return None
        scale = node.first("scale")
        sx, sy, sz = (1.0, 1.0, 1.0) if scale is None else parse_numbers(scale, 3)
        if 0.0 in (sx, sy, sz):
            raise node.make_error("has a scale of 0, which makes it flat; no number may be 0")
        file_exists, path = self.files.locate(uri)
        if not file_exists and uri not in self._missing_uris:
            self._missing_uris.add(uri)
            node.warn(f"names the file {uri!r}, which does not exist{self.files.search_hint(uri)}")
        return Mesh(uri, (sx, sy, sz), path)


def _read_ellipsoid(node: XmlNode) -> Shape:
    x, y, z = _read_sizes(node, "radii", 3)
    try:
        return ellipsoid_shape((x, y, z))
    except ShapeError:
        raise node.make_error(f"has the radii {x:g}, {y:g} and {z:g} m, and therefore no volume") from None


def _rotation_to_normal(node: XmlNode) -> Array:
    """Return the rotation (4, 4) from z to the normal of the <plane> in a <visual> or <collision>."""
    plane = next(child for child in node.walk() if child.tag == "plane")
    normal_node = plane.first("normal")
    normal = np.array((0.0, 0.0, 1.0) if normal_node is None else parse_numbers(normal_node, 3))
    if not normal.any():
        raise plane.make_error("has a normal of length 0")
    return make_pose(rotation.between((0.0, 0.0, 1.0), normal / np.linalg.norm(normal)), np.zeros(3))


def _read_material(node: XmlNode) -> Material | None:
    """Return the diffuse colour; if there is none, the ambient colour; None if there is neither."""
    material = node.first("material")
    if material is None:
        return None
    for tag in ("diffuse", "ambient"):
        colour = material.first(tag)
        if colour is not None:
            channels = parse_numbers(colour, len(colour.text.split()))
            if len(channels) not in (3, 4):
                raise colour.make_error(f"is {colour.text.strip()!r}; 3 or 4 numbers are required")
            r, g, b, a = (float(channel) for channel in np.clip([*channels, 1.0][:4], 0.0, 1.0))
            return Material("", (r, g, b, a))
    return None


def _read_sizes(shape_node: XmlNode, tag: str, count: int = 1) -> tuple[float, ...]:
    """Return the sizes of a shape, m; they must exist and be from 0 to `MAX_DISTANCE`."""
    node = shape_node.first(tag)
    if node is None:
        raise shape_node.make_error(f"has no <{tag}>")
    sizes = parse_numbers(node, count)
    if min(sizes) < 0.0 or max(sizes) > MAX_DISTANCE:
        raise node.make_error(f"is {node.text.strip()!r}; it must be between 0 and {MAX_DISTANCE:g} m")
    return sizes
