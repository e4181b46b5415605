"""What a URDF says about a link alone: places, inertia, geometry, materials."""

from __future__ import annotations

import math

import numpy as np

from mechanik.errors import UrdfError
from mechanik.formats.source import FilesAround
from mechanik.formats.urdf_capsules import with_capsules
from mechanik.formats.xml_text import Node
from mechanik.mechanism.shapes import Box, Capsule, Cylinder, Inertial, Material, Mesh, PlacedShape, Shape, Sphere
from mechanik.spatial import Pose, euler, quaternion
from mechanik.spatial.array import Array

FARTHEST = 1e9
"""m; a number beyond is a slip, and its square would eat all digits of the others."""


def read_origin(owner: Node) -> tuple[Array, Array]:
    """Position (3,) and wxyz (4,) of the <origin> in `owner`; the identity without one."""
    node = owner.first("origin")
    return (np.zeros(3), quaternion.identity()) if node is None else read_place(node)


def read_place(node: Node) -> tuple[Array, Array]:
    """Position (3,) and wxyz (4,) from xyz and rpy (turns about fixed x, y, z).

    `quat_xyzw` may stand in place of rpy, as newer files have it. `wxyz` is written by us beside an rpy
    that would lose digits; if the two disagree, somebody has edited the rpy, and that is what is meant.
    """
    position = np.array(node.numbers("xyz", 3) or (0.0, 0.0, 0.0))
    if np.abs(position).max() > FARTHEST:
        raise node.fault(f"has xyz={node.attributes['xyz']!r}: more than {FARTHEST:g} m away")
    rpy, wxyz, xyzw = node.numbers("rpy", 3), node.numbers("wxyz", 4), node.numbers("quat_xyzw", 4)
    if xyzw is not None and rpy is None and wxyz is None:
        return position, _unit(node, "quat_xyzw", (xyzw[3], *xyzw[:3]))
    turn = wxyz_of_rpy(rpy or (0.0, 0.0, 0.0))
    if wxyz is None:
        return position, turn
    exact = _unit(node, "wxyz", wxyz)
    if rpy is not None and quaternion.angle_between(exact, turn) > 1e-9:
        node.warn(f"has an rpy and a wxyz that disagree; rpy={node.attributes['rpy']!r} is taken")
        return position, turn
    return position, np.array(wxyz) if abs(math.hypot(*wxyz) - 1.0) < 1e-14 else exact


def wxyz_of_rpy(rpy: tuple[float, ...]) -> Array:
    return euler.quaternion_from_euler(np.array(rpy), order="xyz", axes="fixed")


def _unit(node: Node, attribute: str, wxyz: tuple[float, ...]) -> Array:
    length = math.hypot(*wxyz)
    if not 1e-9 < length < 1e9:
        raise node.fault(f"has {attribute}={node.attributes[attribute]!r}, where a quaternion of length 1 is needed")
    return np.array(wxyz) / length


def read_inertial(link: Node) -> Inertial | None:
    node = link.first("inertial")
    if node is None:
        return None
    mass_node, moments = node.first("mass"), node.first("inertia")
    mass = None if mass_node is None else mass_node.number("value")
    if mass is None:
        node.warn("has no mass; it counts as 0 kg")
        mass = 0.0
    if mass < 0:
        raise node.fault(f"has a mass of {mass:g} kg; it cannot be negative")
    inertia = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    if moments is not None:
        found = [moments.number(name) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")]
        if None in found:
            moments.warn("lacks some of ixx, ixy, ixz, iyy, iyz, izz; they count as 0")
        ixx, ixy, ixz, iyy, iyz, izz = (value or 0.0 for value in found)
        inertia = (ixx, ixy, ixz, iyy, iyz, izz)
    return Inertial(mass, Pose(*read_origin(node)), inertia)


class ShapeReader:
    """Reads the shapes of all links of one robot: it knows the robot's materials and finds its meshes."""

    def __init__(self, robot: Node, files: FilesAround) -> None:
        self.files = files
        self.materials: dict[str, Material] = {}
        self._missing: set[str] = set()
        self._mirrored: list[Node] = []
        for node in robot.all("material"):
            material = self._own_material(node)
            if material.name in self.materials:
                node.warn("is defined a second time; the first one counts")
            self.materials.setdefault(material.name, material)
        # a material that is defined inside a link may be used, by name, in any other
        for link in robot.all("link"):
            for visual in link.all("visual"):
                for node in visual.all("material"):
                    if node.attributes.get("name") and node.children:
                        self.materials.setdefault(node.attributes["name"], self._own_material(node))

    def placed(self, link: Node, tag: str) -> list[PlacedShape]:
        """The shapes of all <visual> or <collision> elements of a link."""
        shapes: list[PlacedShape] = []
        for node in link.all(tag):
            shape = self._shape(node)
            if shape is not None:
                pose, name = Pose(*read_origin(node)), node.attributes.get("name", "")
                shapes.append(PlacedShape(shape, pose, self._material(node), name))
        return with_capsules(shapes, f"{link.attributes.get('name', '')}.{tag}")

    def report(self) -> None:
        """Warn of what is better said once for the whole robot."""
        if self._mirrored:
            first, others = self._mirrored[0], len(self._mirrored) - 1
            more = f", as have {others} others" if others else ""
            first.warn(f"has the negative scale {first.attributes['scale']!r}, which mirrors it{more}")

    def _shape(self, node: Node) -> Shape | None:
        geometry = node.first("geometry")
        if geometry is None or not geometry.children:
            node.warn("has no geometry and is left out")
            return None
        solid = geometry.children[0]
        for other in geometry.children[1:]:
            other.warn("is a second shape in one <geometry>; only the first counts")
        if solid.tag == "box":
            sx, sy, sz = _sizes(solid, "size", 3)
            return Box((sx, sy, sz))
        if solid.tag == "sphere":
            return Sphere(*_sizes(solid, "radius"))
        if solid.tag == "cylinder":
            return Cylinder(*_sizes(solid, "radius"), *_sizes(solid, "length"))
        if solid.tag == "capsule":
            return Capsule(*_sizes(solid, "radius"), *_sizes(solid, "length"))
        if solid.tag == "mesh":
            return self._mesh(solid)
        solid.warn("is a shape that URDF does not have; it is left out")
        return None

    def _mesh(self, node: Node) -> Mesh | None:
        uri = node.attributes.get("filename", "").strip()
        if not uri:
            node.warn("names no file and is left out")
            return None
        sx, sy, sz = node.numbers("scale", 3) or (1.0, 1.0, 1.0)
        if 0.0 in (sx, sy, sz):
            raise node.fault(f"has scale={node.attributes['scale']!r}, which flattens it")
        if min(sx, sy, sz) < 0.0:
            self._mirrored.append(node)
        is_there, path = self.files.locate(uri)
        if not is_there and uri not in self._missing:
            self._missing.add(uri)
            node.warn(f"names {uri!r}, and there is no such file{self.files.advice(uri)}")
        return Mesh(uri, (sx, sy, sz), path)

    def _material(self, node: Node) -> Material | None:
        used = node.first("material")
        if used is None:
            return None
        name = used.attributes.get("name", "")
        if used.children:
            return self._own_material(used)
        if name and name not in self.materials:
            used.warn("is used here, but nowhere defined")
            self.materials[name] = Material(name)
        return self.materials.get(name)

    def _own_material(self, node: Node) -> Material:
        color, texture = node.first("color"), node.first("texture")
        rgba = None
        if color is not None and (numbers := color.numbers("rgba", 4)) is not None:
            r, g, b, a = numbers
            rgba = (r, g, b, a)
            if not all(0.0 <= part <= 1.0 for part in rgba):
                color.warn(f"has rgba={color.attributes['rgba']!r}; each part should be from 0 to 1")
        file = None if texture is None else texture.attributes.get("filename")
        return Material(node.attributes.get("name", ""), rgba, file)


def _sizes(node: Node, attribute: str, count: int = 1) -> tuple[float, ...]:
    """Lengths that a solid must have: present and not negative."""
    node.need(attribute)
    sizes = node.numbers(attribute, count)
    if sizes is None or min(sizes) < 0.0 or max(sizes) > FARTHEST:
        raise UrdfError(
            f"{node.place} has {attribute}={node.attributes[attribute]!r}; a size is from 0 to {FARTHEST:g} m"
        )
    return sizes
