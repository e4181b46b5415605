"""URDF writer: writes a mechanism as URDF, and lists the content that the format cannot express.

Content that the format cannot express directly is converted:

- A joint with several dofs that is not planar or floating in the sense of URDF becomes a chain of single-dof joints
  NAME.X, NAME.Y, NAME.Z, NAME.EZ, NAME.EY, NAME.EX (in the order of the motion). Each joint but the last has a child
  link of the same name. A spherical joint becomes three such joints.
- If the pose of a link in the frame that its joint moves is not the identity, or if such a chain has rotated axes, a
  fixed joint NAME.end is added after the joint. The <origin> of a joint without dofs contains this pose itself.
- The roots become children of a link `world`, unless the only root is a link or a free base whose pose is the
  identity.
- Closures, joint constraints, a free base, and joint values that differ from the reader's defaults are written into the
  block <mechanik>, which other tools ignore.
- A capsule becomes a cylinder and two spheres; see `urdf_geometry.py`.
- If rpy does not give the orientation to the last bit, its quaternion `wxyz` is added.

`urdf_losses` lists the content that is not written: goals, targets, rest poses and more.
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
"""Shapes that the writer can express in URDF."""


def is_writable(shape: Shape) -> bool:
    return isinstance(shape, WritableShape)


def shared_materials(links: Iterable[Link]) -> dict[str, Material]:
    """Return the materials to define at the top of the file, by name; if two have the same name, the first."""
    materials: dict[str, Material] = {}
    for link in links:
        for material in (instance.material for instance in (*link.visuals, *link.collisions)):
            if material is not None and material.name and (material.rgba or material.texture):
                materials.setdefault(material.name, material)
    return materials


def link_element(name: str, link: Link, materials: Mapping[str, Material]) -> Element:
    """Return the element of a link with its inertia and shapes; a material in `materials` is written as its name."""
    element = Element("link", name=name)
    if link.inertial is not None:
        inertial = SubElement(element, "inertial")
        add_origin(inertial, link.inertial.pose.position, link.inertial.pose.wxyz)
        SubElement(inertial, "mass", value=format_number(link.inertial.mass))
        inertia_element = SubElement(inertial, "inertia")
        for key, value in zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), link.inertial.inertia, strict=True):
            inertia_element.set(key, format_number(value))
    for tag, instances in (("visual", link.visuals), ("collision", link.collisions)):
        writable_instances = (instance for instance in instances if is_writable(instance.shape))
        split_instances = split_capsules(writable_instances, f"{name}.{tag}")
        element.extend(_shape_element(tag, instance, materials) for instance in split_instances)
    return element


def _shape_element(tag: str, instance: ShapeInstance, materials: Mapping[str, Material]) -> Element:
    element = Element(tag, {"name": instance.name} if instance.name else {})
    add_origin(element, instance.pose.position, instance.pose.wxyz)
    geometry = SubElement(element, "geometry")
    shape = instance.shape
    if isinstance(shape, Box):
        SubElement(geometry, "box", size=format_numbers(shape.size))
    elif isinstance(shape, Sphere):
        SubElement(geometry, "sphere", radius=format_number(shape.radius))
    elif isinstance(shape, Cylinder):
        SubElement(geometry, "cylinder", radius=format_number(shape.radius), length=format_number(shape.length))
    elif isinstance(shape, Mesh):
        geometry.append(_mesh_element(shape))
    material = instance.material
    if material is not None:
        is_shared = materials.get(material.name) == material
        element.append(Element("material", name=material.name) if is_shared else material_element(material))
    return element


def add_origin(element: Element, position: Array, wxyz: Array) -> None:
    """Add an <origin>, unless it is the identity."""
    attributes = origin_attributes(position, wxyz)
    if attributes:
        SubElement(element, "origin", attributes)


def _mesh_element(mesh: Mesh) -> Element:
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
            element.set(key, " ".join("none" if limit is None else format_number(limit) for limit in value))
        elif key == "free":
            element.set(key, " ".join(value))
        else:
            element.set(
                key,
                value if isinstance(value, str) else format_number(value) if key == "cone" else format_numbers(value),
            )
    return element


PLANAR_DOFS = (DoF.X, DoF.Y, DoF.EZ)
"""Dofs of a URDF joint of type "planar"."""
MOTION_ORDER = (*TRANSLATIONS, *reversed(ROTATIONS))
"""The order in which the dofs of a joint move its child: T(x, y, z) Rz Ry Rx."""
_INVALID_XML_CHARACTER = re.compile("[^\\t\\n\\r -\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


def write_urdf(mechanism: Mechanism) -> str:
    """Write a mechanism as URDF text.

    Components of axes have 15 decimals; the other numbers that define the mechanism have all their digits.

    Args:
        mechanism: the mechanism to write; `save` also lists the content that the file does not contain.

    Returns:
        The text, which `read_urdf` and `load` accept.

    Raises:
        FormatError: a name or a root frame cannot be written as URDF.

    Example:
        >>> text = mk.formats.write_urdf(mk.gallery.four_bar())
        >>> len(mk.formats.read_urdf(text).closures)
        1
    """
    robot = Element("robot", name=mechanism.name or "mechanism")
    writer = _UrdfWriter(mechanism)
    writer.write()
    robot.extend([*writer.materials(), *writer.links, *writer.joints])
    if writer.block:
        block = SubElement(robot, "mechanik")
        block.extend(writer.block)
    ElementTree.indent(robot)
    try:
        text = ElementTree.tostring(robot, encoding="unicode")
    except TypeError as error:
        raise FormatError(f"a name in {mechanism!r} is not a string: {error}") from None
    if (match := _INVALID_XML_CHARACTER.search(text)) is not None:
        raise FormatError(f"a name contains the character {match[0]!r}, which XML does not allow; change the name")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def names_of_split_joints(mechanism: Mechanism) -> dict[str, list[str]]:
    """Return the joints that become several joints in a URDF, each with the names of these joints."""
    writer = _UrdfWriter(mechanism)
    dof_joints = {name: writer._dof_joints_of(joint) for name, joint in mechanism.joints.items()}
    return {name: list(names.values()) for name, names in dof_joints.items() if names}


class _UrdfWriter:
    """Creates the elements of a robot: `links`, `joints`, and `block`, the content of the block <mechanik>."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.links: list[Element] = []
        self.joints: list[Element] = []
        self.block: list[Element] = []
        self._intermediate_links: list[Element] = []
        self._link_names = set(mechanism.links)
        self._joint_names = set(mechanism.joints)
        # <mimic> couples single-dof joints, so a coupled joint must be split
        couplings = [coupling for joint in mechanism.joints.values() for coupling in joint.couplings]
        self._coupled_joints = {joint for coupling in couplings for joint in (coupling.mimic, coupling.leader)}
        self._dof_joints: dict[tuple[Joint, DoF], str] = {}
        for name, joint in mechanism.joints.items():
            for dof in joint.dof:
                is_split = len(joint.dof) > 1 and not joint.is_closure
                self._dof_joints[joint, dof] = self._reserve_joint_name(f"{name}.{dof.name}") if is_split else name
        self._materials = shared_materials(mechanism.links.values())

    def write(self) -> None:
        mechanism = self.mechanism
        world = self._add_world()
        for name, link in mechanism.links.items():
            self.links.append(link_element(name, link, self._materials))
        for name, link in mechanism.links.items():
            if link.parent is None and world is not None:
                self._add_joint_element(
                    self._reserve_joint_name(f"{world}.{name}"), "fixed", world, name, link.position, link.wxyz
                )
        for name, joint in mechanism.joints.items():
            if joint.is_closure or (joint.parent is None and world is None):
                continue
            self._add_joint(name, joint, world if joint.parent is None else mechanism.name_of(joint.parent))
        self.links += self._intermediate_links
        names = {link: name for name, link in mechanism.links.items()}
        self.block += [closure_element(data) for data in describe_closures(mechanism.closures, names, world)]
        unsplit_joints = {joint: name for name, joint in mechanism.joints.items() if not self._dof_joints_of(joint)}
        self.block += [
            constraint_element(constraint, name, self._dof_joints, unsplit_joints)
            for name, constraint in mechanism.joint_constraints.items()
        ]
        for name, joint in mechanism.joints.items():
            self.block += joint_value_elements(name, joint, self._dof_joints_of(joint))

    def materials(self) -> Iterable[Element]:
        return (material_element(material) for material in self._materials.values())

    # ---- roots ------------------------------------------------------------------------------

    def _add_world(self) -> str | None:
        """Add a link that represents the world and return its name; return None if the roots do not need it."""
        roots = [root for root in self.mechanism.roots if root.kind != "goal"]
        for root in roots:
            if not isinstance(root, Link | Joint):
                raise FormatError(f"{root} is a plain frame; a URDF has only links and joints")
        if not roots:
            return None
        if len(roots) == 1:
            root = roots[0]
            if isinstance(root, Link) and _is_identity(root):
                return None
            if isinstance(root, Joint) and self._is_free_base(root):
                self.block.append(Element("base", free=self.mechanism.name_of(root)))
                return None
        world = self._reserve_link_name("world")
        self.links.append(Element("link", name=world))
        return world

    def _is_free_base(self, root: Joint) -> bool:
        child = root.child
        if child is None or root.is_closure or not self._is_floating(root):
            return False
        return _is_identity(root) and _is_identity(child)

    # ---- joints -----------------------------------------------------------------------------

    def _add_joint(self, name: str, joint: Joint, parent: str | None) -> None:
        assert parent is not None
        child = joint.child
        X_moved_child = np.eye(4) if child is None else child.matrix
        child_link = self.mechanism.name_of(child) if child is not None else self._add_intermediate_link(f"{name}.end")
        position, wxyz = joint.position, joint.wxyz
        if not joint.dof:
            if not np.array_equal(X_moved_child, np.eye(4)):
                position, wxyz = to_position_wxyz(joint.matrix @ X_moved_child)
            self._add_extras(
                self._add_joint_element(name, "fixed", parent, child_link, position, wxyz), name, has_one_dof=False
            )
            return
        joint_type = self._urdf_type(joint)
        if joint_type == "chain":
            X_joint_axes = make_pose(quaternion.to_matrix(joint.axes_wxyz), np.zeros(3))
            if not np.array_equal(X_joint_axes, np.eye(4)):
                position, wxyz = to_position_wxyz(joint.matrix @ X_joint_axes)
                X_moved_child = X_joint_axes.T @ X_moved_child
        needs_end_joint = not np.array_equal(X_moved_child, np.eye(4))
        moved_link = self._add_intermediate_link(name) if needs_end_joint else child_link
        if joint_type == "chain":
            self._add_dof_chain(joint, parent, moved_link, position, wxyz)
        else:
            element = self._add_joint_element(name, joint_type, parent, moved_link, position, wxyz)
            if joint_type == "planar":
                SubElement(element, "axis", xyz=format_numbers(_planar_axis(joint)))
            elif joint_type != "floating":
                self._add_axis_and_limits(element, name, joint, joint.dof[0], _single_axis(joint))
            self._add_extras(element, name, has_one_dof=joint_type in ("revolute", "continuous", "prismatic"))
        if needs_end_joint:
            self._add_joint_element(
                self._reserve_joint_name(f"{name}.end"),
                "fixed",
                moved_link,
                child_link,
                *to_position_wxyz(X_moved_child),
            )

    def _urdf_type(self, joint: Joint) -> str:
        if len(joint.dof) == 1:
            return _single_dof_type(joint, joint.dof[0])
        if self._is_floating(joint):
            return "floating"
        is_unconstrained = joint not in self._coupled_joints and not np.isfinite([joint.lower, joint.upper]).any()
        if joint.dof == PLANAR_DOFS and is_unconstrained:
            axes_wxyz = as_axes_wxyz(_planar_axis(joint), joint.name)
            if quaternion.angle_between(axes_wxyz, joint.axes_wxyz) < 1e-14:
                return "planar"
        return "chain"

    def _dof_joints_of(self, joint: Joint) -> dict[DoF, str]:
        """Return the single-dof joints that represent a joint; empty if it is written without splitting."""
        if not joint.dof or joint.is_closure or self._urdf_type(joint) != "chain":
            return {}
        return {dof: self._dof_joints[joint, dof] for dof in joint.dof}

    def _is_floating(self, joint: Joint) -> bool:
        is_unlimited = not np.isfinite([joint.lower, joint.upper]).any()
        has_standard_axes = np.array_equal(quaternion.to_matrix(joint.axes_wxyz), np.eye(3))
        return joint.dof == ALL_DOFS and is_unlimited and has_standard_axes and joint not in self._coupled_joints

    def _add_dof_chain(self, joint: Joint, parent: str, moved_link: str, position: Array, wxyz: Array) -> None:
        """Add a joint for each dof; the chain is in the order of the motion, the elements are in the order of q."""
        motion_order = [dof for dof in MOTION_ORDER if dof in joint.dof]
        elements: dict[DoF, Element] = {}
        earlier_joints, self.joints = self.joints, []
        for dof in motion_order:
            name = self._dof_joints[joint, dof]
            child = moved_link if dof is motion_order[-1] else self._add_intermediate_link(name)
            elements[dof] = self._add_joint_element(name, _single_dof_type(joint, dof), parent, child, position, wxyz)
            self._add_axis_and_limits(elements[dof], name, joint, dof, np.eye(3)[dof.axis_index])
            parent, position, wxyz = child, np.zeros(3), quaternion.identity()
        self.joints = earlier_joints + [elements[dof] for dof in joint.dof]

    def _add_joint_element(
        self, name: str, joint_type: str, parent: str, child: str, position: Array, wxyz: Array
    ) -> Element:
        element = Element("joint", name=name, type=joint_type)
        add_origin(element, position, wxyz)
        SubElement(element, "parent", link=parent)
        SubElement(element, "child", link=child)
        self.joints.append(element)
        return element

    def _add_axis_and_limits(self, element: Element, name: str, joint: Joint, dof: DoF, axis: Array) -> None:
        SubElement(element, "axis", xyz=format_numbers(axis))
        lower, upper = joint.limits(dof)
        extra_limits = extra_attributes(self.mechanism.extras, "limits", name)
        if element.get("type") == "continuous":
            if extra_limits:
                SubElement(element, "limit", extra_limits)
        else:
            limits = {"lower": format_number(max(lower, -UNLIMITED)), "upper": format_number(min(upper, UNLIMITED))}
            SubElement(element, "limit", {**limits, "effort": "0", "velocity": "0", **extra_limits})
        if dof in joint._couplings:
            coupling = joint._couplings[dof]
            SubElement(
                element,
                "mimic",
                joint=self._dof_joints[coupling.leader, coupling.leader_dof],
                multiplier=format_number(coupling.ratio),
                offset=format_number(coupling.offset),
            )

    def _add_extras(self, element: Element, name: str, has_one_dof: bool) -> None:
        """Write back the data that the reader stored for simulators and controllers."""
        for category, (tag, _) in EXTRA_ELEMENTS.items():
            attributes = extra_attributes(self.mechanism.extras, category, name)
            if attributes and not (has_one_dof and category == "limits"):
                SubElement(element, tag, attributes)

    # ---- names ------------------------------------------------------------------------------

    def _add_intermediate_link(self, name: str) -> str:
        """Add an intermediate link and return its name: `name`, with underscores if another link has this name."""
        unused_name = self._reserve_link_name(name)
        self._intermediate_links.append(Element("link", name=unused_name))
        return unused_name

    def _reserve_link_name(self, name: str) -> str:
        return _unused_name(name, self._link_names)

    def _reserve_joint_name(self, name: str) -> str:
        return _unused_name(name, self._joint_names)


def _unused_name(name: str, used_names: set[str]) -> str:
    while name in used_names:
        name += "_"
    used_names.add(name)
    return name


def _is_identity(frame: Frame) -> bool:
    return bool(np.array_equal(frame.matrix, np.eye(4)))


def _single_dof_type(joint: Joint, dof: DoF) -> str:
    if not dof.is_rotation:
        return "prismatic"
    return "revolute" if np.isfinite(joint.limits(dof)).any() else "continuous"


def _single_axis(joint: Joint) -> Array:
    """Return the axis (3,) of a joint with one dof; reading and writing the axis again gives the same text."""
    is_prismatic = not joint.dof[0].is_rotation

    def round_trip(axis: Array) -> Array:
        joint_as_read = Joint(dof=joint.dof)
        set_axis(joint_as_read, unit_axis(axis), is_prismatic)
        return joint_as_read.axis

    return stable_axis(joint.axis, round_trip)


def _planar_axis(joint: Joint) -> Array:
    z = np.array([0.0, 0.0, 1.0])

    def round_trip(axis: Array) -> Array:
        return quaternion.rotate(as_axes_wxyz(unit_axis(axis), ""), z)

    return stable_axis(quaternion.rotate(joint.axes_wxyz, z), round_trip)


def urdf_losses(mechanism: Mechanism) -> list[str]:
    """List the content that `write_urdf` omits or converts, one sentence for each kind; empty if there is none.

    Joint values, closures, joint constraints and a free base are complete, because the block <mechanik> contains them.
    """
    joints, split_joint_names = mechanism.joints, names_of_split_joints(mechanism)
    omitted_content = {
        "goals": list(mechanism.goals),
        "named configurations": list(mechanism.configurations),
        "allowed collisions": [f"{a} - {b}" for a, b in mechanism.allowed_collisions or ()],
        "joint targets": _joints_with(joints, "targets"),
        "rest poses": _joints_with(joints, "rest_pose"),
        "revolution counting of joints (track_turns)": [name for name, joint in joints.items() if joint.track_turns],
        "swing limits (cones) of joints": [
            name for name, joint in joints.items() if joint.cone is not None and not joint.is_closure
        ],
        "half-spaces, height fields and convex meshes": _links_with_other_shapes(mechanism),
        "extras": list(unwritten_extras(mechanism.extras, _joints_with_single_element(joints, split_joint_names))),
    }
    texts = [
        f"a URDF cannot contain {content}: {list_names(names)}" for content, names in omitted_content.items() if names
    ]
    if split_joint_names:
        descriptions = [f"{name} ({', '.join(names)})" for name, names in split_joint_names.items()]
        texts.append(f"joints with several dofs become several joints: {list_names(descriptions)}")
    return texts


def _joints_with(joints: Mapping[str, Joint], attribute: str) -> list[str]:
    return [name for name, joint in joints.items() if any(value is not None for value in getattr(joint, attribute))]


def _links_with_other_shapes(mechanism: Mechanism) -> list[str]:
    return [
        name
        for name, link in mechanism.links.items()
        if not all(is_writable(instance.shape) for instance in (*link.visuals, *link.collisions))
    ]


def _joints_with_single_element(
    joints: Mapping[str, Joint], split_joint_names: Mapping[str, Sequence[str]]
) -> set[str]:
    """Return the joints that are written as a single <joint>, to which extras can be added."""
    return {name for name, joint in joints.items() if name not in split_joint_names and not joint.is_closure}
