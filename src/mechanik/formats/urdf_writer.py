"""Mechanism to URDF. What the format can say is said one to one; the rest is made of what it has:

- A joint with several freedoms that is neither planar nor floating becomes a chain of single joints NAME.X, NAME.Y,
  NAME.Z, NAME.EZ, NAME.EY, NAME.EX (in the order of the motion), with a link of the same name below each
  but the last. So the values are called as before. A ball becomes three turns.
- Where a link's frame or a joint's axes are turned in a way that URDF cannot say, a fixed joint NAME.end follows.
- Roots that do not stand at the origin of the world, or more than one, hang on a link `world`.
- Closures, laws, a free base, and values other than those that reading gives anyway go into the block <mechanik>, which
  other tools ignore.
- A capsule becomes a cylinder and two spheres, see `urdf_capsules`.
- An rpy that would not give back the orientation to the last bit is accompanied by its quaternion `wxyz`.

`urdf_losses` says what has no place in a URDF: goals, targets, rest poses and some more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree

import numpy as np

from mechanik.errors import UrdfError
from mechanik.formats.bonds_file import law_element
from mechanik.formats.closure_file import describe_closures
from mechanik.formats.urdf_elements import add_origin, closure_element, link_element, material_element, shared_materials
from mechanik.formats.urdf_extras import SUBJECTS, extra_attributes
from mechanik.formats.urdf_reader import UNLIMITED, set_axis, unit_axis
from mechanik.formats.urdf_text import row, settle, text_of
from mechanik.formats.urdf_values import values_elements
from mechanik.mechanism.dof import ALL, ROTATIONS, TRANSLATIONS, DoF
from mechanik.mechanism.frame import Frame
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.link import Link
from mechanik.mechanism.mechanism import Mechanism
from mechanik.mechanism.placing import as_axes
from mechanik.spatial import make, quaternion, to_position_wxyz
from mechanik.spatial.array import Array

Element = ElementTree.Element
PLANAR = (DoF.X, DoF.Y, DoF.EZ)
MOTION = (*TRANSLATIONS, *reversed(ROTATIONS))
"""The order in which a joint's freedoms move its child: T(x, y, z) Rz Ry Rx."""
_NOT_XML = re.compile("[^\\t\\n\\r -\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


def write_urdf(mechanism: Mechanism) -> str:
    """The mechanism as URDF text; numbers are written so that nothing is lost."""
    robot = Element("robot", name=mechanism.name or "mechanism")
    writer = _Writer(mechanism)
    writer.write()
    robot.extend([*writer.materials(), *writer.links, *writer.joints])
    if writer.block:
        block = ElementTree.SubElement(robot, "mechanik")
        block.extend(writer.block)
    ElementTree.indent(robot)
    try:
        text = ElementTree.tostring(robot, encoding="unicode")
    except TypeError as error:
        raise UrdfError(f"a name in {mechanism!r} is no string: {error}") from None
    if (found := _NOT_XML.search(text)) is not None:
        raise UrdfError(f"a name holds the control character {found[0]!r}, which XML cannot say; rename it")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def split_joints(mechanism: Mechanism) -> dict[str, list[str]]:
    """The joints that become several in a URDF, with the names of those."""
    writer = _Writer(mechanism)
    parts = {name: writer._parts_of(joint) for name, joint in mechanism.joints.items()}
    return {name: list(split.values()) for name, split in parts.items() if split}


class _Writer:
    """Collects the elements of one robot."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.links: list[Element] = []
        self.joints: list[Element] = []
        self.block: list[Element] = []
        self._between: list[Element] = []
        self._link_names = set(mechanism.links)
        self._joint_names = set(mechanism.joints)
        # a joint that is coupled by one of its freedoms needs that freedom as a joint of its own
        couplings = [coupling for joint in mechanism.joints.values() for coupling in joint.couplings]
        self._coupled = {joint for c in couplings for joint in (c.follower, c.leader)}
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
        self.block += [law_element(law, name, self._parts, whole) for name, law in mechanism.laws.items()]
        for name, joint in mechanism.joints.items():
            self.block += values_elements(name, joint, self._parts_of(joint))

    def materials(self) -> Iterable[Element]:
        return (material_element(material) for material in self._materials.values())

    # ---- roots ------------------------------------------------------------------------------

    def _world(self) -> str | None:
        """The name of a link that stands for the world, if the roots need one."""
        roots = [root for root in self.mechanism.roots if root.kind != "goal"]
        for root in roots:
            if not isinstance(root, Link | Joint):
                raise UrdfError(f"{root} is a plain frame; only links and joints can be written as URDF")
        if not roots:
            return None
        if len(roots) == 1:
            root = roots[0]
            if isinstance(root, Link) and _is_identity(root):
                return None
            if isinstance(root, Joint) and self._is_plain_base(root):
                self.block.append(Element("base", free=self.mechanism.name_of(root)))
                return None
        world = self._link_name("world")
        self.links.append(Element("link", name=world))
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
            X_joint_axes = make(quaternion.to_matrix(joint.axes_wxyz), np.zeros(3))
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
                ElementTree.SubElement(step, "axis", xyz=row(_planar_axis(joint)))
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
        if joint.dof == PLANAR and plain:
            said = as_axes(_planar_axis(joint), joint.name)
            if quaternion.angle_between(said, joint.axes_wxyz) < 1e-14:
                return "planar"
        return "chain"

    def _parts_of(self, joint: Joint) -> dict[DoF, str]:
        """The single joints that stand for a joint; none if it is written as it is."""
        if not joint.dof or joint.is_closure or self._kind(joint) != "chain":
            return {}
        return {dof: self._parts[joint, dof] for dof in joint.dof}

    def _floats(self, joint: Joint) -> bool:
        free = joint.dof == ALL and not np.isfinite([joint.lower, joint.upper]).any()
        straight = np.array_equal(quaternion.to_matrix(joint.axes_wxyz), np.eye(3))
        return free and straight and joint not in self._coupled

    def _chain(self, joint: Joint, parent: str, last: str, position: Array, wxyz: Array) -> None:
        """One joint for each freedom. They hang in the order of the motion, and stand in that of q."""
        order = [dof for dof in MOTION if dof in joint.dof]
        steps: dict[DoF, Element] = {}
        waiting, self.joints = self.joints, []
        for dof in order:
            name = self._parts[joint, dof]
            below = last if dof is order[-1] else self._new_link(name)
            steps[dof] = self._step(name, _type(joint, dof), parent, below, position, wxyz)
            self._one_freedom(steps[dof], name, joint, dof, np.eye(3)[dof.direction])
            parent, position, wxyz = below, np.zeros(3), quaternion.identity()
        self.joints = waiting + [steps[dof] for dof in joint.dof]

    def _step(self, name: str, kind: str, parent: str, child: str, position: Array, wxyz: Array) -> Element:
        step = Element("joint", name=name, type=kind)
        add_origin(step, position, wxyz)
        ElementTree.SubElement(step, "parent", link=parent)
        ElementTree.SubElement(step, "child", link=child)
        self.joints.append(step)
        return step

    def _one_freedom(self, step: Element, name: str, joint: Joint, dof: DoF, axis: Array) -> None:
        ElementTree.SubElement(step, "axis", xyz=row(axis))
        lower, upper = joint.limits(dof)
        kept = extra_attributes(self.mechanism.extras, "limits", name)
        if step.get("type") == "continuous":
            if kept:
                ElementTree.SubElement(step, "limit", kept)
        else:
            said = {"lower": text_of(max(lower, -UNLIMITED)), "upper": text_of(min(upper, UNLIMITED))}
            ElementTree.SubElement(step, "limit", {**said, "effort": "0", "velocity": "0", **kept})
        if dof in joint._couplings:
            coupling = joint._couplings[dof]
            ElementTree.SubElement(
                step,
                "mimic",
                joint=self._parts[coupling.leader, coupling.leader_dof],
                multiplier=text_of(coupling.ratio),
                offset=text_of(coupling.offset),
            )

    def _extras(self, step: Element, name: str, one_freedom: bool) -> None:
        """What the reader kept for simulators and controllers."""
        for subject, (tag, _) in SUBJECTS.items():
            kept = extra_attributes(self.mechanism.extras, subject, name)
            if kept and not (one_freedom and subject == "limits"):
                ElementTree.SubElement(step, tag, kept)

    # ---- names ------------------------------------------------------------------------------

    def _new_link(self, name: str) -> str:
        """Make a link in between, called `name` or, if that is taken, something like it."""
        free = self._link_name(name)
        self._between.append(Element("link", name=free))
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
    """The axis of a joint of one freedom, such that what is read from it is written as the same text."""
    slides = not joint.dof[0].is_rotation

    def written_again(axis: Array) -> Array:
        reader = Joint(dof=joint.dof)
        set_axis(reader, unit_axis(axis), slides)
        return reader.axis

    return settle(joint.axis, written_again)


def _planar_axis(joint: Joint) -> Array:
    z = np.array([0.0, 0.0, 1.0])

    def written_again(axis: Array) -> Array:
        return quaternion.rotate(as_axes(unit_axis(axis), ""), z)

    return settle(quaternion.rotate(joint.axes_wxyz, z), written_again)
