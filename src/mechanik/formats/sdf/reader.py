"""SDF reader: builds a mechanism from an SDF, with joints in the order of the file.

The links and joints of an SDF may form any graph. `spanning_forest` chooses the joints that form trees; the other
joints close loops. Mimic joints, their leaders and screws are preferred for the trees; after them, for each link, the
first joint that names it as child. A joint of a tree is used in reverse, from child to parent, if its child is nearer
to the root. A joint of type gearbox moves no link; it couples the rotations of two other joints.

Names inside nested and included models are full names, such as "gripper::finger"; names in the only model of a file
have no prefix.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mechanik.errors import CouplingError, DoFError, FormatError
from mechanik.formats.sdf.frames import (
    WORLD,
    FrameKey,
    SdfContent,
    SdfFrames,
    SdfJoint,
    child_limit,
    child_number,
    collect_models,
    parse_bool,
    parse_numbers,
    required_child_text,
)
from mechanik.formats.sdf.sdf_geometry import SdfShapeReader
from mechanik.formats.source import FileResolver, Source, file_resolver, open_source
from mechanik.formats.urdf.reader import did_you_mean, list_names, set_axis, unit_axis
from mechanik.formats.xml_node import XmlNode
from mechanik.model.dof import ALL_DOFS, ROTATIONS, DoF
from mechanik.model.frame import Frame, Link
from mechanik.model.joint import Joint
from mechanik.model.mechanism import Mechanism
from mechanik.spatial import inverse, quaternion, rotation
from mechanik.spatial.array import Array

JointRole = Literal["forward", "reversed", "closure"]
"""How a joint is used: from parent to child, from child to parent, or to close a loop."""


@dataclass(slots=True)
class SpanningForest:
    """The role of each joint, by name, and the root links of the trees."""

    roles: dict[str, JointRole] = field(default_factory=dict[str, JointRole])
    roots: list[str] = field(default_factory=list[str])


def spanning_forest(
    links: Iterable[str], ends: Mapping[str, tuple[str, str]], tree_joints: Collection[str], world: str
) -> SpanningForest:
    """Choose a spanning forest: one tree for each connected group of links.

    Args:
        links: link names, including the world if a joint connects to it.
        ends: parent and child link of each joint, in the order of the file.
        tree_joints: joints that should not close a loop: mimic joints, their leaders and screws.
        world: name of the link that represents the world.
    """
    names, forest = list(links), SpanningForest(dict.fromkeys(ends, "closure"))
    first_joint_of_child: dict[str, str] = {}
    for joint, (_, child) in ends.items():
        first_joint_of_child.setdefault(child, joint)
    priority_order = sorted(
        ends, key=lambda joint: (joint not in tree_joints, first_joint_of_child[ends[joint][1]] != joint)
    )
    neighbours: dict[str, list[str]] = {}
    for joint in _spanning_joints(names, ends, priority_order):
        for link in ends[joint]:
            neighbours.setdefault(link, []).append(joint)

    visited_links: set[str] = set()
    # the world first, then links that are no child; otherwise in the order of the file, because the sort is stable
    for root in sorted(names, key=lambda name: (name != world, name in first_joint_of_child)):
        if root in visited_links:
            continue
        forest.roots.append(root)
        visited_links.add(root)
        link_stack = [root]
        while link_stack:
            link = link_stack.pop()
            for joint in neighbours.get(link, ()):
                parent, child = ends[joint]
                next_link = child if link == parent else parent
                if next_link not in visited_links:
                    forest.roles[joint] = "forward" if link == parent else "reversed"
                    visited_links.add(next_link)
                    link_stack.append(next_link)
    return forest


def _spanning_joints(
    names: Iterable[str], ends: Mapping[str, tuple[str, str]], priority_order: Iterable[str]
) -> list[str]:
    """Return the joints of a spanning forest by Kruskal's algorithm.

    A joint is used if the joints before it in `priority_order` do not connect its links.
    """
    component_of = {name: name for name in names}

    def representative(name: str) -> str:
        while component_of[name] != name:
            component_of[name] = name = component_of[component_of[name]]
        return name

    joints: list[str] = []
    for joint in priority_order:
        component_a, component_b = (representative(link) for link in ends[joint])
        if component_a != component_b:
            component_of[component_a] = component_b
            joints.append(joint)
    return joints


JOINT_TYPES = ("revolute", "continuous", "prismatic", "ball", "universal", "revolute2", "fixed", "screw")
"""Joint types of SDF that move or connect links."""
UNLIMITED = 1e16
"""m or rad; values of this size or more mean "no limit", as in the SDF specification."""
PERPENDICULAR_COSINE = 1e-9
"""Absolute cosine of the angle between two axes; below this value they are treated as perpendicular."""


@dataclass(frozen=True, slots=True)
class SdfMimic:
    """The coupling of a <mimic> or a gearbox joint: value = ratio * leader value + offset, for one axis of each joint.

    Attributes:
        node: the <mimic>, or the <joint> of type gearbox.
        joint, leader: full names of the joints.
        axis_tag, leader_axis_tag: "axis" or "axis2".
        ratio: unit of the joint (m or rad) per unit of the leader.
        offset: m or rad; it includes the <reference> of the file.
    """

    node: XmlNode
    joint: str
    axis_tag: str
    leader: str
    leader_axis_tag: str
    ratio: float
    offset: float


def check_joint_type(spec: SdfJoint) -> None:
    known_types = (*JOINT_TYPES, "gearbox")
    if spec.type not in known_types:
        raise spec.node.make_error(f"has the unknown type {spec.type!r}{did_you_mean(spec.type, known_types)}")


def make_joints(spec: SdfJoint, frames: SdfFrames, is_reversed: bool) -> list[Joint]:
    """Return the joint, or two joints in series if its two axes are not perpendicular.

    Args:
        spec: the <joint>.
        frames: frames of the file.
        is_reversed: whether the joint is used from its child to its parent, which inverts its motion.
    """
    sign = -1.0 if is_reversed else 1.0
    joint = Joint(spec.name)
    if spec.type == "fixed":
        return [joint]
    if spec.type == "ball":
        joint.set_dof(ROTATIONS)
        return [joint]
    axis = sign * axis_in_joint_frame(spec, "axis", frames)
    if spec.type in ("universal", "revolute2"):
        return _make_two_axis_joints(spec, axis, sign * axis_in_joint_frame(spec, "axis2", frames), is_reversed)
    if spec.type == "screw":
        joint.set_dof((DoF.Z, DoF.EZ))
        joint.axes_wxyz = quaternion.from_matrix(rotation.between(np.array([0.0, 0.0, 1.0]), axis))
        joint.set_limit(DoF.EZ, *_read_limits(spec, "axis"))
        joint.mimic(joint, _read_pitch(spec), dof=DoF.Z, leader_dof=DoF.EZ)
        return [joint]
    set_axis(joint, axis, is_prismatic=spec.type == "prismatic")
    if spec.type != "continuous":
        joint.set_limit(joint.dof[0], *_read_limits(spec, "axis"))
    return [joint]


def dof_of(joint: Joint, axis_tag: str, is_reversed: bool) -> DoF:
    """Return the dof of a joint for an axis of the file ("axis", "axis2"); see `make_joints` for `is_reversed`."""
    if joint.dof == (DoF.EX, DoF.EY):
        return DoF.EY if (axis_tag == "axis") != is_reversed else DoF.EX
    return joint.dof[-1]


def has_axis(spec: SdfJoint, axis_tag: str) -> bool:
    """Return whether a joint moves about or along an axis of the file ("axis", "axis2")."""
    return spec.type not in ("fixed", "ball") and (axis_tag == "axis" or spec.type in ("universal", "revolute2"))


def _make_two_axis_joints(spec: SdfJoint, axis1: Array, axis2: Array, is_reversed: bool) -> list[Joint]:
    """Return joints for the rotation about `axis1` and then about `axis2`, which the first rotation moves.

    For perpendicular axes this is a single joint with two dofs. If `is_reversed`, the order is inverted, and the caller
    passes axes with the opposite sign.
    """
    if abs(float(axis1 @ axis2)) < PERPENDICULAR_COSINE:
        joint = Joint(spec.name, dof=(DoF.EX, DoF.EY))
        limits = {DoF.EY: _read_limits(spec, "axis"), DoF.EX: _read_limits(spec, "axis2")}
        if is_reversed:  # the inverse motion rotates about the second axis first, so the dofs are exchanged
            axis1, axis2, limits = axis2, axis1, {DoF.EX: limits[DoF.EY], DoF.EY: limits[DoF.EX]}
            spec.node.warn(
                "is used from its child to its parent, so <axis> is its dof EX and <axis2> its dof EY; "
                "their order in q is exchanged"
            )
        x = unit_axis(axis2 - (axis1 @ axis2) * axis1)
        joint.axes_wxyz = quaternion.from_matrix(np.column_stack([x, axis1, np.cross(x, axis1)]))
        for dof, (lower, upper) in limits.items():
            joint.set_limit(dof, lower, upper)
        return [joint]
    joints = [Joint(spec.name), Joint(f"{spec.name}_axis2")]
    for joint, axis, axis_tag in zip(joints, (axis1, axis2), ("axis", "axis2"), strict=True):
        set_axis(joint, axis, is_prismatic=False)
        joint.set_limit(joint.dof[0], *_read_limits(spec, axis_tag))
    return joints[::-1] if is_reversed else joints


def axis_in_joint_frame(spec: SdfJoint, axis_tag: str, frames: SdfFrames) -> Array:
    """Return the unit vector (3,) of an <axis> or <axis2> in the frame of the joint."""
    axis_node = spec.node.first(axis_tag)
    if axis_node is None:
        raise spec.node.make_error(f"has the type {spec.type!r} and no <{axis_tag}>")
    xyz = axis_node.first("xyz")
    axis = np.array(parse_numbers(xyz, 3) if xyz is not None else (0.0, 0.0, 1.0))
    if not 1e-12 < np.linalg.norm(axis) < 1e30:
        raise (xyz or axis_node).make_error("must not be zero, nor longer than 1e30")
    axis = unit_axis(axis)
    expressed_in = "" if xyz is None else xyz.attributes.get("expressed_in", "").strip()
    flag = axis_node.first("use_parent_model_frame")
    # before version 1.5 (105), axes are expressed in the model frame
    is_in_model_frame = spec.version < 105 if flag is None else parse_bool(flag.text)
    if not expressed_in and not is_in_model_frame:
        return axis
    X_world_frame = frames.pose(frames.key(spec.scope, expressed_in or "__model__", axis_node))
    X_world_joint = frames.pose(FrameKey("joint", spec.name))
    return X_world_joint[:3, :3].T @ X_world_frame[:3, :3] @ axis


def _read_limits(spec: SdfJoint, axis_tag: str) -> tuple[float, float]:
    axis_node = spec.node.first(axis_tag)
    limit = None if axis_node is None else axis_node.first("limit")
    if limit is None:
        return -math.inf, math.inf
    lower = child_limit(limit, "lower", -math.inf, UNLIMITED)
    upper = child_limit(limit, "upper", math.inf, UNLIMITED)
    if lower > upper:
        unit = "m" if spec.type == "prismatic" else "rad"
        raise limit.make_error(f"has a lower limit of {lower:g} {unit}, above its upper limit of {upper:g} {unit}")
    if lower == math.inf or upper == -math.inf:
        raise limit.make_error("allows no finite value")
    return lower, upper


def _read_pitch(spec: SdfJoint) -> float:
    """Return the pitch of a screw joint, m per rad.

    `screw_thread_pitch` is in m per revolution. The older `thread_pitch` is in rad per m and is positive for a
    left-hand thread.
    """
    metres_per_revolution = child_number(spec.node, "screw_thread_pitch", math.nan)
    if not math.isnan(metres_per_revolution):
        return metres_per_revolution / (2 * math.pi)
    radians_per_metre = child_number(spec.node, "thread_pitch", math.nan)
    if math.isnan(radians_per_metre) or radians_per_metre == 0.0:
        raise spec.node.make_error("has the type 'screw' and no <screw_thread_pitch> (m per revolution)")
    return -1.0 / radians_per_metre


def read_mimic(spec: SdfJoint, axis_tag: str) -> SdfMimic | None:
    """Return the <mimic> in an axis of a joint, or None."""
    axis_node = spec.node.first(axis_tag)
    node = None if axis_node is None else axis_node.first("mimic")
    if node is None:
        return None
    ratio, offset = child_number(node, "multiplier", 1.0), child_number(node, "offset", 0.0)
    offset -= ratio * child_number(node, "reference", 0.0)
    leader_axis_tag = node.attributes.get("axis", "axis").strip()
    if leader_axis_tag not in ("axis", "axis2"):
        raise node.make_error(f"has axis={leader_axis_tag!r}; it must be 'axis' or 'axis2'")
    leader = spec.scope + node.require("joint").strip()
    return SdfMimic(node, spec.name, axis_tag, leader, leader_axis_tag, ratio, offset)


def read_sdf_extras(extras: dict[str, Any], spec: SdfJoint) -> None:
    """Add effort and velocity limits, damping and friction of the first axis of a joint to `extras`.

    They are stored in `extras["limits"][name]` and `extras["dynamics"][name]`, as the URDF reader does: effort in N m
    or N, velocity in rad/s or m/s, damping in N m s/rad or N s/m, friction in N m or N. Infinite and negative numbers
    are omitted.
    """
    axis_node = spec.node.first("axis")
    for category, tag, names in (
        ("limits", "limit", ("effort", "velocity")),
        ("dynamics", "dynamics", ("damping", "friction")),
    ):
        node = None if axis_node is None else axis_node.first(tag)
        if node is None:
            continue
        values = {name: child_limit(node, name, math.inf, UNLIMITED) for name in names}
        valid_values = {name: value for name, value in values.items() if math.isfinite(value) and value >= 0}
        if valid_values:
            extras.setdefault(category, {})[spec.name] = valid_values


PARALLEL_TOLERANCE = 1e-6
"""The axes of a gearbox and of the joint that it couples count as parallel if the absolute cosine of their angle is at
least 1 minus this value; files contain angles with four digits."""


def gearbox_mimic(
    spec: SdfJoint, joints: Mapping[str, SdfJoint], ends: Mapping[str, tuple[str, str]], frames: SdfFrames
) -> SdfMimic:
    """Return the coupling of a gearbox: child rotation = -ratio * parent rotation, relative to the reference body.

    Args:
        spec: the <joint> of type gearbox.
        joints: the joints that are not gearboxes, by name.
        ends: parent and child link of each of these joints.
        frames: frames of the file.
    """
    reference_link = frames.link_of(
        frames.key(spec.scope, required_child_text(spec.node, "gearbox_reference_body"), spec.node)
    )
    joints_and_signs: list[tuple[str, float]] = []
    for end, axis_tag in ((spec.parent, "axis"), (spec.child, "axis2")):
        link = frames.link_of(frames.key(spec.scope, end, spec.node))
        joints_and_signs.append(_find_geared_joint(spec, axis_tag, reference_link, link, joints, ends, frames))
    (leader, leader_sign), (mimic, mimic_sign) = joints_and_signs
    ratio = -child_number(spec.node, "gearbox_ratio", 1.0) * leader_sign / mimic_sign
    return SdfMimic(spec.node, mimic, "axis", leader, "axis", ratio, 0.0)


def _find_geared_joint(
    spec: SdfJoint,
    axis_tag: str,
    reference_link: str,
    link: str,
    joints: Mapping[str, SdfJoint],
    ends: Mapping[str, tuple[str, str]],
    frames: SdfFrames,
) -> tuple[str, float]:
    """Return the joint between two links, and the sign (1 or -1) of its rotation about the gearbox axis."""
    for name, end_links in ends.items():
        if set(end_links) == {reference_link, link} and joints[name].type in ("revolute", "continuous"):
            joint_axis = frames.pose(FrameKey("joint", name))[:3, :3] @ axis_in_joint_frame(
                joints[name], "axis", frames
            )
            gear_axis = frames.pose(FrameKey("joint", spec.name))[:3, :3] @ axis_in_joint_frame(spec, axis_tag, frames)
            cosine = float(joint_axis @ gear_axis)
            if 1.0 - abs(cosine) > PARALLEL_TOLERANCE:
                text = f"has an <{axis_tag}> that is not parallel to the axis of joint {name!r}, which moves {link!r}"
                raise spec.node.make_error(text)
            return name, (1.0 if cosine > 0 else -1.0) * (1.0 if end_links[0] == reference_link else -1.0)
    raise spec.node.make_error(f"is a gearbox, but no revolute joint connects {reference_link!r} and {link!r}")


def read_sdf(
    source: str | Path | Source,
    *,
    base: Literal["fixed", "free"] = "fixed",
    packages: Mapping[str, str | Path] | None = None,
) -> Mechanism:
    """Read a mechanism from an SDF.

    Args:
        source: a path, or the text itself, which begins with `<`.
        base: "fixed": a model that no joint connects to the world is fixed in the world. "free": it floats, by a joint
            `floating_base` that comes first in q; if several models float, the joints are ROOT_floating_base, where
            ROOT is the root link. Static models are always fixed.
        packages: folder of each package or model, by name, for `model://` and `package://`.

    Returns:
        The mechanism. Its `warnings` describe ignored and unusual content, and its `extras` contain "limits" (effort,
        velocity) and "dynamics" by joint name.

    Raises:
        FileMissing: the file does not exist.
        FormatError: the file cannot be read; the message says where and why.
        MissingExtra: the file has a height map and Pillow is not installed.

    Example:
        >>> text = '<sdf version="1.9"><model name="door"><link name="frame"/><link name="leaf"/>'
        >>> text += '<joint name="hinge" type="revolute"><parent>frame</parent><child>leaf</child>'
        >>> text += '<axis><xyz>0 0 1</xyz></axis></joint></model></sdf>'
        >>> door = mk.formats.read_sdf(text)
        >>> list(door.joints), door.nq
        (['hinge'], 1)
    """
    if base not in ("fixed", "free"):
        raise FormatError(f"base must be 'fixed' or 'free', not {base!r}")
    sdf_source = source if isinstance(source, Source) else open_source(source)
    files = file_resolver(sdf_source, packages)
    content = collect_models(sdf_source, files)
    builder = _MechanismBuilder(content, files)
    roots = builder.build(base == "free")
    name = content.name or sdf_source.stem
    mechanism = Mechanism(roots, name=name, warnings=content.root.document.warnings)
    mechanism.extras.update(builder.extras)
    return mechanism


class _MechanismBuilder:
    """Builds the mechanism from the links and joints of a file."""

    def __init__(self, content: SdfContent, files: FileResolver) -> None:
        self.content, self.frames = content, content.frames
        for spec in content.joints.values():
            check_joint_type(spec)
        self.specs = {name: spec for name, spec in content.joints.items() if spec.type != "gearbox"}
        self.ends = {name: self._end_links(spec) for name, spec in self.specs.items()}
        self.extras: dict[str, Any] = {}
        self.joints: dict[str, list[Joint]] = {}
        self.reversed_joints: set[str] = set()
        shape_reader = SdfShapeReader(files, content.frames)
        self.links: dict[str, Link] = {}
        if any(WORLD in pair for pair in self.ends.values()):
            self.links[WORLD] = Link(WORLD)
        for name, sdf_link in content.links.items():
            visuals, collisions = (shape_reader.read_shapes(sdf_link, tag) for tag in ("visual", "collision"))
            inertial = shape_reader.read_inertial(sdf_link)
            self.links[name] = Link(name, visuals=visuals, collisions=collisions, inertial=inertial)

    def build(self, has_floating_base: bool) -> list[Frame]:
        """Build all joints and couplings, and return the roots of all trees."""
        mimics = self._read_mimics()
        tree_joints = {mimic.joint for mimic in mimics} | {mimic.leader for mimic in mimics}
        tree_joints |= {name for name, spec in self.specs.items() if spec.type == "screw"}
        forest = spanning_forest(self.links, self.ends, tree_joints, WORLD)
        floating_roots = [
            root
            for root in forest.roots
            if has_floating_base and root != WORLD and root not in self.content.static_links
        ]
        floating_joints = {
            root: Joint(self._floating_base_name(root, len(floating_roots)), dof=ALL_DOFS) for root in floating_roots
        }
        for name, spec in self.specs.items():
            if forest.roles[name] == "closure" and name in tree_joints:
                raise spec.node.make_error(
                    "closes a loop in which every joint is a screw, a mimic joint or the leader of one, which is not "
                    "supported; use a joint of another type, without <mimic>, at one place of the loop"
                )
            self._add_joint(spec, forest.roles[name])
            read_sdf_extras(self.extras, spec)
        for mimic in mimics:
            self._add_coupling(mimic)
        self._warn_about_clamped_values()
        root_frames: list[Frame] = []
        for root in forest.roots:
            frame: Frame = self.links[root]
            if root != WORLD:
                frame.matrix = self._world_pose(root)
                if root in floating_joints:  # the pose of the file belongs to joint values of zero
                    joint = floating_joints[root]
                    joint.matrix, frame.matrix = frame.matrix, np.eye(4)
                    joint.add_child(frame)
                    frame = joint
            root_frames.append(frame)
        return root_frames

    def _warn_about_clamped_values(self) -> None:
        """Warn about joints whose limits exclude zero, which is the value of all joints in the poses of the file."""
        all_joints = [joint for joints in self.joints.values() for joint in joints]
        clamped_joints = [
            joint.name for joint in all_joints if not (joint.is_closure or joint.couplings) and any(joint.values)
        ]
        if clamped_joints:
            self.content.root.warn(
                "has poses with joints outside their limits; these joints are now at a limit: "
                f"{list_names(clamped_joints)}"
            )

    def _add_joint(self, spec: SdfJoint, role: JointRole) -> None:
        """Add a joint to its start link, and connect the end link as its child or by a closure."""
        start_link, end_link = self.ends[spec.name] if role != "reversed" else self.ends[spec.name][::-1]
        if role == "reversed":
            self.reversed_joints.add(spec.name)
        X_world_joint = self.frames.pose(FrameKey("joint", spec.name))
        X_start_joint = inverse(self._world_pose(start_link)) @ X_world_joint
        X_end_joint = inverse(self._world_pose(end_link)) @ X_world_joint
        joints = make_joints(spec, self.frames, role == "reversed")
        parent, joints[0].matrix = self.links[start_link], X_start_joint
        for joint in joints[:-1]:
            intermediate_link = Link(f"{spec.name}/{joint.name}")
            parent.add_child(joint)
            joint.add_child(intermediate_link)
            parent = intermediate_link
        parent.add_child(joints[-1])
        if role == "closure":
            joints[-1].make_closure(self.links[end_link], X_end_joint)
        else:
            self.links[end_link].matrix = inverse(X_end_joint)
            joints[-1].add_child(self.links[end_link])
        self.joints[spec.name] = joints

    def _add_coupling(self, mimic: SdfMimic) -> None:
        joint = self._joint_with_axis(mimic.joint, mimic.axis_tag)
        leader = self._joint_with_axis(mimic.leader, mimic.leader_axis_tag)
        try:
            dof = dof_of(joint, mimic.axis_tag, mimic.joint in self.reversed_joints)
            leader_dof = dof_of(leader, mimic.leader_axis_tag, mimic.leader in self.reversed_joints)
            joint.mimic(leader, mimic.ratio, mimic.offset, dof=dof, leader_dof=leader_dof)
        except (CouplingError, DoFError) as error:
            raise mimic.node.make_error(f"is not possible: {error}") from None

    def _joint_with_axis(self, name: str, axis_tag: str) -> Joint:
        """Return the joint for an axis of the file; a joint with two axes may be represented by two joints."""
        joints = self.joints[name]
        return next((joint for joint in joints if axis_tag == "axis2" and joint.name != name), joints[0])

    def _read_mimics(self) -> list[SdfMimic]:
        gearboxes = [spec for spec in self.content.joints.values() if spec.type == "gearbox"]
        mimics = [gearbox_mimic(spec, self.specs, self.ends, self.frames) for spec in gearboxes]
        for spec in self.specs.values():
            for axis_tag in ("axis", "axis2"):
                mimic = read_mimic(spec, axis_tag)
                if mimic is None:
                    continue
                if mimic.leader not in self.specs:
                    hint = did_you_mean(mimic.leader, self.specs)
                    raise mimic.node.make_error(f"mimics {mimic.leader!r}; there is no such joint{hint}")
                for name, tag in ((mimic.joint, mimic.axis_tag), (mimic.leader, mimic.leader_axis_tag)):
                    if not has_axis(self.specs[name], tag):
                        raise mimic.node.make_error(f"refers to the {tag} of joint {name!r}, which does not have one")
                mimics.append(mimic)
        return mimics

    def _end_links(self, spec: SdfJoint) -> tuple[str, str]:
        """Return the parent and the child link; a frame is replaced by the link to which it is attached."""
        ends = [self.frames.link_of(self.frames.key(spec.scope, name, spec.node)) for name in (spec.parent, spec.child)]
        if ends[0] == ends[1]:
            raise spec.node.make_error(f"connects {ends[0]!r} to itself")
        return ends[0], ends[1]

    def _world_pose(self, link: str) -> Array:
        return np.eye(4) if link == WORLD else self.frames.pose(FrameKey("link", link))

    def _floating_base_name(self, root: str, count: int) -> str:
        name = "floating_base" if count == 1 else f"{root}_floating_base"
        while name in self.content.joints:
            name += "_"
        return name
