"""Shapes, inertia, materials and poses of URDF elements, and the format of numbers; partly also used for SDF.

The reader accepts a `<capsule>`, but the writer never writes this element, because most programs reject it. The writer
replaces a capsule by a cylinder NAME.side and spheres NAME.lower and NAME.upper at its ends, which fill the same space.
The reader joins three such shapes in a row to a capsule NAME again, unless a shape was moved. A capsule of length 0 has
no cylinder.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from mechanik.errors import FormatError
from mechanik.formats.source import FileResolver
from mechanik.formats.xml_node import XmlNode
from mechanik.model.shapes import Box, Capsule, Cylinder, Inertial, Material, Mesh, Shape, ShapeInstance, Sphere
from mechanik.spatial import Pose, euler, quaternion
from mechanik.spatial.array import Array

SIDE_SUFFIX, LOWER_SUFFIX, UPPER_SUFFIX = ".side", ".lower", ".upper"
"""Name suffixes of the three parts of a capsule."""
MATCH_TOLERANCE = 1e-9
"""Tolerance of the position of a part (m), times 1 + its largest coordinate. Parts of a capsule that deviate more were
moved and stay separate."""


def split_capsules(instances: Iterable[ShapeInstance], name_prefix: str) -> list[ShapeInstance]:
    """Replace capsules by cylinders and spheres, which every program can read.

    Args:
        instances: the shapes of a link.
        name_prefix: prefix of the names of unnamed capsules, such as `hand.collision`; an index follows, because MuJoCo
            rejects duplicate names.
    """
    split_instances: list[ShapeInstance] = []
    for index, instance in enumerate(instances):
        name = instance.name or f"{name_prefix}{index}"
        split_instances += (
            _capsule_parts(instance, instance.shape, name) if isinstance(instance.shape, Capsule) else [instance]
        )
    return split_instances


def join_capsules(instances: Sequence[ShapeInstance], name_prefix: str) -> list[ShapeInstance]:
    """Join the parts that `split_capsules` created to capsules again; `name_prefix` is the same."""
    joined_instances: list[ShapeInstance] = []
    k = 0
    while k < len(instances):
        capsule = _join_capsule_parts(instances[k : k + 3], name_prefix)
        joined_instances.append(instances[k] if capsule is None else capsule)
        # the parts of a capsule begin with the cylinder, or with a sphere if its length is 0
        k += 1 if capsule is None else 2 if isinstance(instances[k].shape, Sphere) else 3
    return joined_instances


def _capsule_parts(instance: ShapeInstance, capsule: Capsule, name: str) -> list[ShapeInstance]:
    sphere = Sphere(capsule.radius)
    ends = [replace(instance, shape=sphere, name=name + suffix) for suffix in (LOWER_SUFFIX, UPPER_SUFFIX)]
    if capsule.length == 0:
        return ends
    side = replace(instance, shape=Cylinder(capsule.radius, capsule.length), name=name + SIDE_SUFFIX)
    poses = [Pose(instance.pose.apply((0.0, 0.0, sign * capsule.length / 2))) for sign in (-1, 1)]
    return [side, *(replace(end, pose=pose) for end, pose in zip(ends, poses, strict=True))]


def _join_capsule_parts(instances: Sequence[ShapeInstance], name_prefix: str) -> ShapeInstance | None:
    """Return the capsule whose parts are at the beginning of `instances`, or None."""
    first_part = instances[0]
    match first_part.shape:
        case Cylinder(radius, length) if first_part.name.endswith(SIDE_SUFFIX):
            capsule, name = Capsule(radius, length), first_part.name.removesuffix(SIDE_SUFFIX)
        case Sphere(radius) if first_part.name.endswith(LOWER_SUFFIX):
            capsule, name = Capsule(radius, 0.0), first_part.name.removesuffix(LOWER_SUFFIX)
        case _:
            return None
    parts = _capsule_parts(first_part, capsule, name)
    if len(instances) < len(parts) or not all(map(_is_same_part, instances, parts)):
        return None
    is_unnamed = name.startswith(name_prefix) and name.removeprefix(name_prefix).isdecimal()
    return replace(first_part, shape=capsule, name="" if is_unnamed else name)


def _is_same_part(instance: ShapeInstance, part: ShapeInstance) -> bool:
    """Compare two shapes up to rounding; the rotation, which the cylinder defines, is ignored."""
    if (instance.shape, instance.name, instance.material) != (part.shape, part.name, part.material):
        return False
    deviation = np.abs(instance.pose.position - part.pose.position).max()
    return bool(deviation <= MATCH_TOLERANCE * (1.0 + np.abs(part.pose.position).max()))


MAX_DISTANCE = 1e9
"""m; a larger number is a mistake. In a sum with its square, rounding would lose all terms below 64 m²."""


def read_origin(owner: XmlNode) -> tuple[Array, Array]:
    """Return position (3,), m, and wxyz (4,) of the <origin> in `owner`; the identity if there is none."""
    node = owner.first("origin")
    return (np.zeros(3), quaternion.identity()) if node is None else read_position_wxyz(node)


def read_position_wxyz(node: XmlNode) -> tuple[Array, Array]:
    """Return position (3,), m, and wxyz (4,) from the attributes xyz and rpy (rotations about fixed x, y, z; rad).

    `quat_xyzw`, an attribute of newer files, is used if there is neither rpy nor wxyz. The writer adds `wxyz` if rpy
    would lose digits. If rpy and wxyz disagree, rpy is used, because users edit rpy.
    """
    position = np.array(node.numbers("xyz", 3) or (0.0, 0.0, 0.0))
    if np.abs(position).max() > MAX_DISTANCE:
        raise node.make_error(f"has xyz={node.attributes['xyz']!r}; the limit of a position is {MAX_DISTANCE:g} m")
    rpy, wxyz, xyzw = node.numbers("rpy", 3), node.numbers("wxyz", 4), node.numbers("quat_xyzw", 4)
    if xyzw is not None and rpy is None and wxyz is None:
        return position, _unit_quaternion(node, "quat_xyzw", (xyzw[3], *xyzw[:3]))
    wxyz_of_rpy = quaternion.from_rpy(rpy or (0.0, 0.0, 0.0))
    if wxyz is None:
        return position, wxyz_of_rpy
    unit_wxyz = _unit_quaternion(node, "wxyz", wxyz)
    if rpy is not None and quaternion.angle_between(unit_wxyz, wxyz_of_rpy) > 1e-9:
        node.warn("has an rpy and a wxyz that disagree; the wxyz is ignored")
        return position, wxyz_of_rpy
    return position, unit_wxyz


def _unit_quaternion(node: XmlNode, attribute: str, wxyz: tuple[float, ...]) -> Array:
    if not 1e-9 < math.hypot(*wxyz) < 1e9:
        raise node.make_error(
            f"has {attribute}={node.attributes[attribute]!r}; the norm of a quaternion must be 1e-9 to 1e9"
        )
    return quaternion.normalize(wxyz)


def read_inertial(link: XmlNode) -> Inertial | None:
    """Return mass (kg), pose and inertia (kg m²) of the <inertial> in a link, or None if there is none."""
    node = link.first("inertial")
    if node is None:
        return None
    mass_node, inertia_node = node.first("mass"), node.first("inertia")
    mass = None if mass_node is None else mass_node.number("value")
    if mass is None:
        node.warn("has no mass; the default is 0 kg")
        mass = 0.0
    if mass < 0:
        raise node.make_error(f"has a mass of {mass:g} kg; it cannot be negative")
    inertia = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    if inertia_node is not None:
        values = [inertia_node.number(name) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")]
        if None in values:
            inertia_node.warn("does not have all of ixx, ixy, ixz, iyy, iyz, izz; the default is 0")
        ixx, ixy, ixz, iyy, iyz, izz = (value or 0.0 for value in values)
        inertia = (ixx, ixy, ixz, iyy, iyz, izz)
    return Inertial(mass, Pose(*read_origin(node)), inertia)


class UrdfShapeReader:
    """Reads the shapes of all links of a robot, stores its materials, and finds the files of its meshes."""

    def __init__(self, robot: XmlNode, files: FileResolver) -> None:
        self.files = files
        self.materials: dict[str, Material] = {}
        self._missing_uris: set[str] = set()
        self._mirrored_meshes: list[XmlNode] = []
        for node in robot.all("material"):
            material = self._read_material(node)
            if material.name in self.materials:
                node.warn("is defined a second time; it is ignored")
            self.materials.setdefault(material.name, material)
        # a material defined inside a link may be used by name in any other link
        for link in robot.all("link"):
            for visual in link.all("visual"):
                for node in visual.all("material"):
                    if node.attributes.get("name") and node.children:
                        self.materials.setdefault(node.attributes["name"], self._read_material(node))

    def read_shapes(self, link: XmlNode, tag: str) -> list[ShapeInstance]:
        """Return the shapes of all <visual> or <collision> elements of a link."""
        instances: list[ShapeInstance] = []
        for node in link.all(tag):
            shape = self._read_shape(node)
            if shape is not None:
                pose, name = Pose(*read_origin(node)), node.attributes.get("name", "")
                instances.append(ShapeInstance(shape, pose, self._read_shape_material(node), name))
        return join_capsules(instances, f"{link.attributes.get('name', '')}.{tag}")

    def report(self) -> None:
        """Add the warnings that are given once for the whole robot."""
        if self._mirrored_meshes:
            first_mesh, more_count = self._mirrored_meshes[0], len(self._mirrored_meshes) - 1
            count_text = f" (and {more_count} more {'mesh' if more_count == 1 else 'meshes'})" if more_count else ""
            first_mesh.warn(f"has the negative scale {first_mesh.attributes['scale']!r}, which mirrors it{count_text}")

    def _read_shape(self, node: XmlNode) -> Shape | None:
        geometry = node.first("geometry")
        if geometry is None or not geometry.children:
            node.warn("has no geometry; it is ignored")
            return None
        shape_node = geometry.children[0]
        for extra_node in geometry.children[1:]:
            extra_node.warn("is a second shape in the same <geometry>; it is ignored")
        if shape_node.tag == "box":
            sx, sy, sz = _read_sizes(shape_node, "size", 3)
            return Box((sx, sy, sz))
        if shape_node.tag == "sphere":
            return Sphere(*_read_sizes(shape_node, "radius"))
        if shape_node.tag == "cylinder":
            return Cylinder(*_read_sizes(shape_node, "radius"), *_read_sizes(shape_node, "length"))
        if shape_node.tag == "capsule":
            return Capsule(*_read_sizes(shape_node, "radius"), *_read_sizes(shape_node, "length"))
        if shape_node.tag == "mesh":
            return self._read_mesh(shape_node)
        shape_node.warn("is not a shape of URDF; it is ignored")
        return None

    def _read_mesh(self, node: XmlNode) -> Mesh | None:
        uri = node.attributes.get("filename", "").strip()
        if not uri:
            node.warn("names no file; it is ignored")
            return None
        sx, sy, sz = node.numbers("scale", 3) or (1.0, 1.0, 1.0)
        if 0.0 in (sx, sy, sz):
            raise node.make_error(f"has scale={node.attributes['scale']!r}, which makes it flat; no number may be 0")
        if min(sx, sy, sz) < 0.0:
            self._mirrored_meshes.append(node)
        file_exists, path = self.files.locate(uri)
        if not file_exists and uri not in self._missing_uris:
            self._missing_uris.add(uri)
            node.warn(f"names the file {uri!r}, which does not exist{self.files.search_hint(uri)}")
        return Mesh(uri, (sx, sy, sz), path)

    def _read_shape_material(self, node: XmlNode) -> Material | None:
        material_node = node.first("material")
        if material_node is None:
            return None
        name = material_node.attributes.get("name", "")
        if material_node.children:
            return self._read_material(material_node)
        if name and name not in self.materials:
            material_node.warn("is used here but is not defined in the file")
            self.materials[name] = Material(name)
        return self.materials.get(name)

    def _read_material(self, node: XmlNode) -> Material:
        color, texture = node.first("color"), node.first("texture")
        rgba = None
        if color is not None and (numbers := color.numbers("rgba", 4)) is not None:
            r, g, b, a = numbers
            rgba = (r, g, b, a)
            if not all(0.0 <= channel <= 1.0 for channel in rgba):
                color.warn(f"has rgba={color.attributes['rgba']!r}; each number should be between 0 and 1")
        file = None if texture is None else texture.attributes.get("filename")
        return Material(node.attributes.get("name", ""), rgba, file)


def _read_sizes(node: XmlNode, attribute: str, count: int = 1) -> tuple[float, ...]:
    """Return the sizes of a shape, m; they must exist and be from 0 to `MAX_DISTANCE`."""
    node.require(attribute)
    sizes = node.numbers(attribute, count)
    if sizes is None or min(sizes) < 0.0 or max(sizes) > MAX_DISTANCE:
        raise FormatError(
            f"{node.full_location} has {attribute}={node.attributes[attribute]!r}; sizes are from 0 to "
            f"{MAX_DISTANCE:g} m"
        )
    return sizes


def format_number(number: float) -> str:
    """Return the shortest text that reads back to the same float."""
    text = repr(float(number) + 0.0)  # adding 0.0 changes -0.0 to 0.0
    return text.removesuffix(".0")


def format_numbers(numbers: Iterable[float]) -> str:
    return " ".join(format_number(number) for number in numbers)


def origin_attributes(position: Array, wxyz: Array) -> dict[str, str]:
    """Return the attributes xyz and rpy, and wxyz if rpy is less precise; identity values are omitted."""
    attributes: dict[str, str] = {}
    if position.any():
        attributes["xyz"] = format_numbers(position)
    # `format_number` writes -0.0 as 0: without + 0.0 an angle of +pi would be read back as -pi
    unit_wxyz = quaternion.canonical(wxyz) + 0.0
    if np.array_equal(unit_wxyz, quaternion.identity()):
        return attributes
    exact_rpy = euler.euler_from_quaternion(unit_wxyz, order="xyz", axes="fixed")
    for rpy in _short_rpy_candidates(exact_rpy):
        if np.array_equal(quaternion.normalize(quaternion.from_rpy(rpy)), unit_wxyz):
            return attributes | {"rpy": format_numbers(rpy)}
    return attributes | {"rpy": format_numbers(exact_rpy), "wxyz": format_numbers(unit_wxyz)}


def _short_rpy_candidates(rpy: Array) -> Iterator[Array]:
    """Iterate over rpy triples of nearly the same rotation: two equivalent triples, each first with few digits."""
    quarter_pi = np.pi / 4  # rad
    equivalent_rpy = np.array([rpy[0] - np.copysign(np.pi, rpy[0]), np.copysign(np.pi, rpy[1]) - rpy[1], 0.0])
    equivalent_rpy[2] = rpy[2] - np.copysign(np.pi, rpy[2])
    for triple in (rpy, equivalent_rpy):
        for decimals in (6, 9, 12, 14, 15):
            # multiples of 45 degrees keep all digits, because rounded angles would not give the exact rotation
            multiples = np.round(triple / quarter_pi)
            is_multiple = np.abs(triple - multiples * quarter_pi) < 10.0**-decimals
            yield np.where(is_multiple, multiples * quarter_pi, np.round(triple, decimals)) + 0.0
        yield triple


def stable_axis(axis: Array, round_trip: Callable[[Array], Array]) -> Array:
    """Return a unit axis in 15 digits that does not change when it is read and written again.

    Repeated rounding can alternate between neighbouring axes. The first of these in lexicographic order is returned, so
    that the result does not depend on the axis at which the iteration starts.

    Args:
        axis: unit vector (3,).
        round_trip: returns the axis (3,) that the reader computes from the text of a written axis.
    """
    visited_axes: list[tuple[float, ...]] = []
    rounded_axis = _round_axis(axis)
    while rounded_axis not in visited_axes:
        visited_axes.append(rounded_axis)
        rounded_axis = _round_axis(round_trip(np.array(rounded_axis)))
    return np.array(min(visited_axes[visited_axes.index(rounded_axis) :]))


def _round_axis(axis: Array) -> tuple[float, ...]:
    return tuple((np.round(axis, 15) + 0.0).tolist())
