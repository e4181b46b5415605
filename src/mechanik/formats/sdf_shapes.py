"""What an SDF says about a link alone: inertia, geometry, colours."""

from __future__ import annotations

import numpy as np

from mechanik.errors import ShapeError
from mechanik.formats.ellipsoid import ellipsoid_shape
from mechanik.formats.sdf_frames import Frames
from mechanik.formats.sdf_heightmap import heightmap_place, read_heightmap
from mechanik.formats.sdf_model import LinkSpec
from mechanik.formats.sdf_values import number_in, numbers_of, pose_frame, pose_in, text_in
from mechanik.formats.source import FilesAround
from mechanik.formats.urdf_shapes import FARTHEST
from mechanik.formats.xml_text import Node
from mechanik.mechanism.shapes import (
    Box,
    Capsule,
    Cylinder,
    HalfSpace,
    HeightField,
    Inertial,
    Material,
    Mesh,
    PlacedShape,
    Shape,
    Sphere,
)
from mechanik.spatial import Pose, inverse, make, rotation
from mechanik.spatial.array import Array


class SdfShapes:
    """Reads the bodies of one file; a mesh that is not there is named once."""

    def __init__(self, files: FilesAround, frames: Frames) -> None:
        self.files, self.frames = files, frames
        self._missing: set[str] = set()

    def placed(self, link: LinkSpec, tag: str) -> list[PlacedShape]:
        """The shapes of all <visual> or <collision> elements of a link."""
        shapes: list[PlacedShape] = []
        for node in link.node.all(tag):
            shape = self._shape(node)
            if shape is not None:
                X_link_shape = self._on_link(link, node)
                if isinstance(shape, HalfSpace):
                    X_link_shape = X_link_shape @ _upright(node)
                elif isinstance(shape, HeightField):
                    X_link_shape = X_link_shape @ heightmap_place(node)
                pose = Pose.from_matrix(X_link_shape)
                shapes.append(PlacedShape(shape, pose, _material(node), node.attributes.get("name", "")))
        return shapes

    def inertial(self, link: LinkSpec) -> Inertial | None:
        node = link.node.first("inertial")
        if node is None:
            return None
        mass = number_in(node, "mass", 1.0)
        if mass < 0.0:
            raise node.fault(f"has a mass of {mass:g} kg; it cannot be negative")
        inertia = node.first("inertia")
        names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        usual = (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)  # SDF's own, for what it does not say
        numbers = [
            one if inertia is None else number_in(inertia, tag, one) for tag, one in zip(names, usual, strict=True)
        ]
        xx, xy, xz, yy, yz, zz = numbers
        return Inertial(mass, Pose.from_matrix(self._on_link(link, node)), (xx, xy, xz, yy, yz, zz))

    def _on_link(self, link: LinkSpec, node: Node) -> Array:
        """X_link_part of something that stands in a link, or relative to another frame."""
        other = pose_frame(node)
        if other is None:
            return pose_in(node)
        scope = link.name[: len(link.name) - len(link.node.attributes["name"].strip())]
        X_world_other = self.frames.pose(self.frames.key(scope, other, node))
        X_world_link = self.frames.pose(self.frames.key("", link.name, node))
        return inverse(X_world_link) @ X_world_other @ pose_in(node)

    def _shape(self, node: Node) -> Shape | None:
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
        if solid.tag == "plane":  # endless for what touches it, whatever size is drawn
            return HalfSpace()
        solid.warn("is no shape that is known here; it is left out")
        return None

    def _mesh(self, node: Node) -> Mesh | None:
        uri = text_in(node, "uri")
        if uri is None:
            node.warn("names no file and is left out")
            return None
        scale = node.first("scale")
        sx, sy, sz = (1.0, 1.0, 1.0) if scale is None else numbers_of(scale, 3)
        if 0.0 in (sx, sy, sz):
            raise node.fault("has a scale that flattens it")
        is_there, path = self.files.locate(uri)
        if not is_there and uri not in self._missing:
            self._missing.add(uri)
            node.warn(f"names {uri!r}, and there is no such file{self.files.advice(uri)}")
        return Mesh(uri, (sx, sy, sz), path)


def _ellipsoid(node: Node) -> Shape:
    x, y, z = _sizes(node, "radii", 3)
    try:
        return ellipsoid_shape((x, y, z))
    except ShapeError:
        raise node.fault(f"has the radii {x:g}, {y:g} and {z:g} m, so that it holds no volume") from None


def _upright(node: Node) -> Array:
    """From z to the normal of the <plane> in a <visual> or <collision>."""
    plane = next(one for one in node.walk() if one.tag == "plane")
    said = plane.first("normal")
    normal = np.array((0.0, 0.0, 1.0) if said is None else numbers_of(said, 3))
    if not normal.any():
        raise plane.fault("has a normal without direction")
    return make(rotation.between((0.0, 0.0, 1.0), normal / np.linalg.norm(normal)), np.zeros(3))


def _material(node: Node) -> Material | None:
    """The colour under light, or the one without."""
    material = node.first("material")
    if material is None:
        return None
    for tag in ("diffuse", "ambient"):
        colour = material.first(tag)
        if colour is not None:
            parts = numbers_of(colour, len(colour.text.split()))
            if len(parts) not in (3, 4):
                raise colour.fault(f"says {colour.text.strip()!r}, where 3 or 4 numbers are needed")
            r, g, b, a = (float(part) for part in np.clip([*parts, 1.0][:4], 0.0, 1.0))
            return Material("", (r, g, b, a))
    return None


def _sizes(solid: Node, tag: str, count: int = 1) -> tuple[float, ...]:
    """Lengths that a solid must have: present and not negative."""
    node = solid.first(tag)
    if node is None:
        raise solid.fault(f"has no <{tag}>")
    sizes = numbers_of(node, count)
    if min(sizes) < 0.0 or max(sizes) > FARTHEST:
        raise node.fault(f"says {node.text.strip()!r}; a size is from 0 to {FARTHEST:g} m")
    return sizes
