"""URDF writer: writes a mechanism as URDF, and lists what the format cannot hold.

Content that the format cannot express directly is converted:

- A joint with several dofs that is neither planar nor floating becomes a chain of single-dof joints NAME.X, NAME.Y,
  NAME.Z, NAME.EZ, NAME.EY, NAME.EX (in the order of the motion), with a link of the same name below each but the last.
  So the dofs keep their names. A spherical joint becomes three revolute joints.
- If the frame of a link or the axes of a joint have a rotation that URDF cannot express, a fixed joint NAME.end
  follows.
- Several roots, or a root with a pose other than the identity, become children of a link `world`.
- Closures, joint constraints, a free base, and joint values that differ from the reader's defaults are written into the
  block <mechanik>, which other tools ignore.
- A capsule becomes a cylinder and two spheres; see `geometry.py`.
- If rpy does not give back the orientation to the last bit, its quaternion `wxyz` is added.

`urdf_losses` lists what is lost: goals, targets, rest poses and more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from mechanik.errors import FormatError
from mechanik.formats.urdf.reader import (
    EXTRA_ELEMENTS,
    UNLIMITED,
    extra_attributes,
    joint_value_elements,
    list_names,
    set_axis,
    unit_axis,
    unwritten_extras,
)
from mechanik.formats.urdf.sidecar import constraint_element, describe_closures
from mechanik.formats.urdf.urdf_geometry import (
    format_number,
    format_numbers,
    origin_attributes,
    split_capsules,
    stable_axis,
)
from mechanik.model.dof import ALL_DOFS, ROTATIONS, TRANSLATIONS, DoF
from mechanik.model.frame import Frame, Link
from mechanik.model.joint import Joint
from mechanik.model.mechanism import Mechanism
from mechanik.model.shapes import Box, Capsule, Cylinder, Material, Mesh, Shape, ShapeInstance, Sphere
from mechanik.spatial import make_pose, quaternion, to_position_wxyz
from mechanik.spatial.array import Array
from mechanik.validation import as_axes_wxyz

WritableShape = Box | Sphere | Cylinder | Capsule | Mesh
"""Shapes that a URDF can hold."""


def is_writable(shape: Shape) -> bool:
    return isinstance(shape, WritableShape)


def shared_materials(links: Iterable[Link]) -> dict[str, Material]:
    """Return the materials to define once, by name; of two with the same name the first."""
    materials: dict[str, Material] = {}
    for link in links:
        for material in (shape.material for shape in (*link.visuals, *link.collisions)):
            if material is not None and material.name and (material.rgba or material.texture):
                materials.setdefault(material.name, material)
    return materials


def link_element(name: str, link: Link, materials: Mapping[str, Material]) -> Element:
    """Return the element of a link with its inertia and shapes; `materials` can be referred to by name."""
    element = Element("link", name=name)
    if link.inertial is not None:
        inertial = SubElement(element, "inertial")
        add_origin(inertial, link.inertial.pose.position, link.inertial.pose.wxyz)
        SubElement(inertial, "mass", value=format_number(link.inertial.mass))
        moments = SubElement(inertial, "inertia")
        for key, value in zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), link.inertial.inertia, strict=True):
            moments.set(key, format_number(value))
    for tag, shapes in (("visual", link.visuals), ("collision", link.collisions)):
        known = split_capsules((shape for shape in shapes if is_writable(shape.shape)), f"{name}.{tag}")
        element.extend(_shape(tag, shape, materials) for shape in known)
    return element


def _shape(tag: str, placed: ShapeInstance, materials: Mapping[str, Material]) -> Element:
    element = Element(tag, {"name": placed.name} if placed.name else {})
    add_origin(element, placed.pose.position, placed.pose.wxyz)
    geometry = SubElement(element, "geometry")
    shape = placed.shape
    if isinstance(shape, Box):
        SubElement(geometry, "box", size=format_numbers(shape.size))
    elif isinstance(shape, Sphere):
        SubElement(geometry, "sphere", radius=format_number(shape.radius))
    elif isinstance(shape, Cylinder):
        SubElement(geometry, "cylinder", radius=format_number(shape.radius), length=format_number(shape.length))
    elif isinstance(shape, Mesh):
        geometry.append(_mesh(shape))
    material = placed.material
    if material is not None:
        known = materials.get(material.name) == material
        element.append(Element("material", name=material.name) if known else material_element(material))
    return element


def add_origin(element: Element, position: Array, wxyz: Array) -> None:
    """Add an <origin>, unless it is the identity."""
    attributes = origin_attributes(position, wxyz)
    if attributes:
        SubElement(element, "origin", attributes)


def _mesh(mesh: Mesh) -> Element:
    element = Element("mesh", filename=mesh.uri)
    if mesh.scale != (1.0, 1.0, 1.0):
        element.set("scale", format_numbers(mesh.scale))
    return element


def material_element(material: Material) -> Element:
    element = Element("material", name=material.name)
    if material.rgba is not None:
        SubElement(element, "color", rgba=format_numbers(material.rgba))
    if material.texture is not None:
        SubElement(element, "texture", filename=material.texture)
    return element


def closure_element(data: Mapping[str, Any]) -> Element:
    element = Element("closure")
    for key, value in data.items():
        if key in ("at", "onto"):
            attributes = origin_attributes(np.array(value["position"]), np.array(value["wxyz"]))
            SubElement(element, key, attributes)
        elif key in ("lower", "upper"):
            element.set(key, " ".join("none" if one is None else format_number(one) for one in value))
        elif key == "free":
            element.set(key, " ".join(value))
        else:
            element.set(
                key,
                value if isinstance(value, str) else format_number(value) if key == "cone" else format_numbers(value),
            )
    return element


XmlElement = ElementTree.Element
PLANAR_DOFS = (DoF.X, DoF.Y, DoF.EZ)
"""Dofs of a URDF joint of type "planar"."""
MOTION_ORDER = (*TRANSLATIONS, *reversed(ROTATIONS))
"""The order in which the dofs of a joint move its child: T(x, y, z) Rz Ry Rx."""
_NOT_XML = re.compile("[^\\t\\n\\r -\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


def write_urdf(mechanism: Mechanism) -> str:
    """Write a mechanism as URDF text; every number is written with all its digits.

    Args:
        mechanism: the mechanism to write; `save` also reports what the file does not hold.

    Returns:
        The text, which `read_urdf` and `load` take.

    Raises:
        FormatError: a name or a root frame cannot be written as URDF, or a closure starts in the world.

    Example:
        >>> text = mk.formats.write_urdf(mk.gallery.four_bar())
        >>> len(mk.formats.read_urdf(text).closures)
        1
    """
    robot = XmlElement("robot", name=mechanism.name or "mechanism")
    writer = _UrdfWriter(mechanism)
    writer.write()
    robot.extend([*writer.materials(), *writer.links, *writer.joints])
    if writer.block:
        block = ElementTree.SubElement(robot, "mechanik")
        block.extend(writer.block)
    ElementTree.indent(robot)
    try:
        text = ElementTree.tostring(robot, encoding="unicode")
    except TypeError as error:
        raise FormatError(f"a name in {mechanism!r} is no string: {error}") from None
    if (found := _NOT_XML.search(text)) is not None:
        raise FormatError(f"a name holds the control character {found[0]!r}, which XML cannot say; rename it")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def split_joints(mechanism: Mechanism) -> dict[str, list[str]]:
    """Return the joints that become several joints in a URDF, with the names of these."""
    writer = _UrdfWriter(mechanism)
    parts = {name: writer._parts_of(joint) for name, joint in mechanism.joints.items()}
    return {name: list(split.values()) for name, split in parts.items() if split}


class _UrdfWriter:
    """Collects the elements of a robot."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.links: list[XmlElement] = []
        self.joints: list[XmlElement] = []
        self.block: list[XmlElement] = []
        self._between: list[XmlElement] = []
        self._link_names = set(mechanism.links)
        self._joint_names = set(mechanism.joints)
        # <mimic> couples single-dof joints, so a coupled joint must be split
        couplings = [coupling for joint in mechanism.joints.values() for coupling in joint.couplings]
        self._coupled = {joint for c in couplings for joint in (c.mimic, c.leader)}
        self._parts: dict[tuple[Joint, DoF], str] = {}
        for name, joint in mechanism.joints.items():
            for dof in joint.dof:
                many = len(joint.dof) > 1 and not joint.is_closure
                self._parts[joint, dof] = self._joint_name(f"{name}.{dof.name}") if many else name
        self._materials = shared_materials(mechanism.links.values())

    def write(self) -> None:
        mechanism = self.mechanism
        world = self._world()
        for name, link in mechanism.links.items():
            self.links.append(link_element(name, link, self._materials))
        for name, link in mechanism.links.items():
            if link.parent is None and world is not None:
                self._step(self._joint_name(f"{world}.{name}"), "fixed", world, name, link.position, link.wxyz)
        for name, joint in mechanism.joints.items():
            if joint.is_closure or (joint.parent is None and world is None):
                continue
            self._joint(name, joint, world if joint.parent is None else mechanism.name_of(joint.parent))
        self.links += self._between
        names = {link: name for name, link in mechanism.links.items()}
        self.block += [closure_element(said) for said in describe_closures(mechanism.closures, names, world)]
        whole = {joint: name for name, joint in mechanism.joints.items() if not self._parts_of(joint)}
        self.block += [
            constraint_element(law, name, self._parts, whole) for name, law in mechanism.joint_constraints.items()
        ]
        for name, joint in mechanism.joints.items():
            self.block += joint_value_elements(name, joint, self._parts_of(joint))

    def materials(self) -> Iterable[XmlElement]:
        return (material_element(material) for material in self._materials.values())

    # ---- roots ------------------------------------------------------------------------------

    def _world(self) -> str | None:
        """Return the name of a link that represents the world, or None if the roots do not need it."""
        roots = [root for root in self.mechanism.roots if root.kind != "goal"]
        for root in roots:
            if not isinstance(root, Link | Joint):
                raise FormatError(f"{root} is a plain frame; only links and joints can be written as URDF")
        if not roots:
            return None
        if len(roots) == 1:
            root = roots[0]
            if isinstance(root, Link) and _is_identity(root):
                return None
            if isinstance(root, Joint) and self._is_plain_base(root):
                self.block.append(XmlElement("base", free=self.mechanism.name_of(root)))
                return None
        world = self._link_name("world")
        self.links.append(XmlElement("link", name=world))
        return world

    def _is_plain_base(self, root: Joint) -> bool:
        child = root.child
        if child is None or root.is_closure or not self._floats(root):
            return False
        return _is_identity(root) and _is_identity(child)

    # ---- joints -----------------------------------------------------------------------------

    def _joint(self, name: str, joint: Joint, parent: str | None) -> None:
        assert parent is not None
        child = joint.child
        X_end = np.eye(4) if child is None else child.matrix
        end = self.mechanism.name_of(child) if child is not None else self._new_link(f"{name}.end")
        position, wxyz = joint.position, joint.wxyz
        if not joint.dof:
            if not np.array_equal(X_end, np.eye(4)):
                position, wxyz = to_position_wxyz(joint.matrix @ X_end)
            self._extras(self._step(name, "fixed", parent, end, position, wxyz), name, one_freedom=False)
            return
        kind = self._kind(joint)
        if kind == "chain":
            X_joint_axes = make_pose(quaternion.to_matrix(joint.axes_wxyz), np.zeros(3))
            if not np.array_equal(X_joint_axes, np.eye(4)):
                position, wxyz = to_position_wxyz(joint.matrix @ X_joint_axes)
                X_end = X_joint_axes.T @ X_end
        turned = not np.array_equal(X_end, np.eye(4))
        last = self._new_link(name) if turned else end
        if kind == "chain":
            self._chain(joint, parent, last, position, wxyz)
        else:
            step = self._step(name, kind, parent, last, position, wxyz)
            if kind == "planar":
                ElementTree.SubElement(step, "axis", xyz=format_numbers(_planar_axis(joint)))
            elif kind != "floating":
                self._one_freedom(step, name, joint, joint.dof[0], _single_axis(joint))
            self._extras(step, name, one_freedom=kind in ("revolute", "continuous", "prismatic"))
        if turned:
            self._step(self._joint_name(f"{name}.end"), "fixed", last, end, *to_position_wxyz(X_end))

    def _kind(self, joint: Joint) -> str:
        if len(joint.dof) == 1:
            return _type(joint, joint.dof[0])
        if self._floats(joint):
            return "floating"
        plain = joint not in self._coupled and not np.isfinite([joint.lower, joint.upper]).any()
        if joint.dof == PLANAR_DOFS and plain:
            said = as_axes_wxyz(_planar_axis(joint), joint.name)
            if quaternion.angle_between(said, joint.axes_wxyz) < 1e-14:
                return "planar"
        return "chain"

    def _parts_of(self, joint: Joint) -> dict[DoF, str]:
        """Return the single-dof joints that represent a joint; empty if it is written without splitting."""
        if not joint.dof or joint.is_closure or self._kind(joint) != "chain":
            return {}
        return {dof: self._parts[joint, dof] for dof in joint.dof}

    def _floats(self, joint: Joint) -> bool:
        free = joint.dof == ALL_DOFS and not np.isfinite([joint.lower, joint.upper]).any()
        straight = np.array_equal(quaternion.to_matrix(joint.axes_wxyz), np.eye(3))
        return free and straight and joint not in self._coupled

    def _chain(self, joint: Joint, parent: str, last: str, position: Array, wxyz: Array) -> None:
        """Add a joint for each dof; the chain has the order of the motion, the file the order of q."""
        order = [dof for dof in MOTION_ORDER if dof in joint.dof]
        steps: dict[DoF, XmlElement] = {}
        waiting, self.joints = self.joints, []
        for dof in order:
            name = self._parts[joint, dof]
            below = last if dof is order[-1] else self._new_link(name)
            steps[dof] = self._step(name, _type(joint, dof), parent, below, position, wxyz)
            self._one_freedom(steps[dof], name, joint, dof, np.eye(3)[dof.axis_index])
            parent, position, wxyz = below, np.zeros(3), quaternion.identity()
        self.joints = waiting + [steps[dof] for dof in joint.dof]

    def _step(self, name: str, kind: str, parent: str, child: str, position: Array, wxyz: Array) -> XmlElement:
        step = XmlElement("joint", name=name, type=kind)
        add_origin(step, position, wxyz)
        ElementTree.SubElement(step, "parent", link=parent)
        ElementTree.SubElement(step, "child", link=child)
        self.joints.append(step)
        return step

    def _one_freedom(self, step: XmlElement, name: str, joint: Joint, dof: DoF, axis: Array) -> None:
        ElementTree.SubElement(step, "axis", xyz=format_numbers(axis))
        lower, upper = joint.limits(dof)
        kept = extra_attributes(self.mechanism.extras, "limits", name)
        if step.get("type") == "continuous":
            if kept:
                ElementTree.SubElement(step, "limit", kept)
        else:
            said = {"lower": format_number(max(lower, -UNLIMITED)), "upper": format_number(min(upper, UNLIMITED))}
            ElementTree.SubElement(step, "limit", {**said, "effort": "0", "velocity": "0", **kept})
        if dof in joint._couplings:
            coupling = joint._couplings[dof]
            ElementTree.SubElement(
                step,
                "mimic",
                joint=self._parts[coupling.leader, coupling.leader_dof],
                multiplier=format_number(coupling.ratio),
                offset=format_number(coupling.offset),
            )

    def _extras(self, step: XmlElement, name: str, one_freedom: bool) -> None:
        """Write back the data that the reader kept for simulators and controllers."""
        for subject, (tag, _) in EXTRA_ELEMENTS.items():
            kept = extra_attributes(self.mechanism.extras, subject, name)
            if kept and not (one_freedom and subject == "limits"):
                ElementTree.SubElement(step, tag, kept)

    # ---- names ------------------------------------------------------------------------------

    def _new_link(self, name: str) -> str:
        """Add an intermediate link with the given name, or a similar one if the name is taken."""
        free = self._link_name(name)
        self._between.append(XmlElement("link", name=free))
        return free

    def _link_name(self, name: str) -> str:
        return _unused(name, self._link_names)

    def _joint_name(self, name: str) -> str:
        return _unused(name, self._joint_names)


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _is_identity(frame: Frame) -> bool:
    return bool(np.array_equal(frame.matrix, np.eye(4)))


def _type(joint: Joint, dof: DoF) -> str:
    if not dof.is_rotation:
        return "prismatic"
    return "revolute" if np.isfinite(joint.limits(dof)).any() else "continuous"


def _single_axis(joint: Joint) -> Array:
    """Return the axis of a joint with one dof; reading and writing it again gives the same text."""
    slides = not joint.dof[0].is_rotation

    def written_again(axis: Array) -> Array:
        reader = Joint(dof=joint.dof)
        set_axis(reader, unit_axis(axis), slides)
        return reader.axis

    return stable_axis(joint.axis, written_again)


def _planar_axis(joint: Joint) -> Array:
    z = np.array([0.0, 0.0, 1.0])

    def written_again(axis: Array) -> Array:
        return quaternion.rotate(as_axes_wxyz(unit_axis(axis), ""), z)

    return stable_axis(quaternion.rotate(joint.axes_wxyz, z), written_again)


def urdf_losses(mechanism: Mechanism) -> list[str]:
    """List what `write_urdf` leaves out or converts, one sentence for each kind; empty if nothing is lost.

    Joint values, closures, joint constraints and a free base are not lost: the block <mechanik> holds them.
    """
    joints, split = mechanism.joints, split_joints(mechanism)
    left_out = {
        "goals": list(mechanism.goals),
        "named configurations": list(mechanism.configurations),
        "pairs of links that need no look": [f"{a} - {b}" for a, b in mechanism.allowed_collisions or ()],
        "targets of joints": _with(joints, "targets"),
        "rest poses of joints": _with(joints, "rest_pose"),
        "the counting of turns of joints": [name for name, joint in joints.items() if joint.track_turns],
        "cones of joints": [name for name, one in joints.items() if one.cone is not None and not one.is_closure],
        "half-spaces, height fields and convex hulls of points": _with_other_shapes(mechanism),
        "extras": list(unwritten_extras(mechanism.extras, _with_extras(joints, split))),
    }
    texts = [f"a URDF has no place for {what}: {list_names(names)}" for what, names in left_out.items() if names]
    if split:
        parts = [f"{name} ({', '.join(names)})" for name, names in split.items()]
        texts.append(f"a URDF has single joints in place of joints of several freedoms: {list_names(parts)}")
    return texts


def _with(joints: Mapping[str, Joint], aims: str) -> list[str]:
    return [name for name, joint in joints.items() if any(aim is not None for aim in getattr(joint, aims))]


def _with_other_shapes(mechanism: Mechanism) -> list[str]:
    links = mechanism.links.items()
    return [name for name, one in links if not all(is_writable(s.shape) for s in (*one.visuals, *one.collisions))]


def _with_extras(joints: Mapping[str, Joint], split: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the joints that are written as a single <joint>, which can hold extras."""
    return {name for name, joint in joints.items() if name not in split and not joint.is_closure}
