"""SDF reader: builds a mechanism from an SDF. Joints have the order of the file.

An SDF connects links by any graph. `spanning_tree` chooses the joints that form the tree; the other joints close loops.
A link becomes the child of the first joint that names it as child. Joints that are the only connection to further links
are used in reverse, from child to parent. A <gearbox> moves no link; it couples the rotations of two other joints.

Names inside nested and included models are full names, such as "gripper::finger"; names in the single model of a file
are plain.
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

JointRole = Literal["holds", "backwards", "closes"]
"""How a joint is used: from parent to child, from child to parent, or to close a loop."""


@dataclass(slots=True)
class SpanningTree:
    """The role of each joint, by name, and the root links of the trees."""

    roles: dict[str, JointRole] = field(default_factory=dict[str, JointRole])
    roots: list[str] = field(default_factory=list[str])


def spanning_tree(
    links: Iterable[str], ends: Mapping[str, tuple[str, str]], bound: Collection[str], world: str
) -> SpanningTree:
    """Choose a spanning tree over all links.

    Args:
        links: link names, with the world if a joint leads there.
        ends: parent and child link of each joint, in the order of the file.
        bound: joints that should not close a loop: leaders, mimic joints and screws.
        world: name of the fixed link.
    """
    names, plan = list(links), SpanningTree(dict.fromkeys(ends, "closes"))
    first: dict[str, str] = {}
    for joint, (_, child) in ends.items():
        first.setdefault(child, joint)
    around: dict[str, list[str]] = {}
    for joint in _spanning(names, ends, sorted(ends, key=lambda one: (one not in bound, first[ends[one][1]] != one))):
        for link in ends[joint]:
            around.setdefault(link, []).append(joint)

    reached: set[str] = set()
    for root in sorted(names, key=lambda name: (name != world, name in first)):  # stable: keeps the file order
        if root in reached:
            continue
        plan.roots.append(root)
        reached.add(root)
        waiting = [root]
        while waiting:
            link = waiting.pop()
            for joint in around.get(link, ()):
                parent, child = ends[joint]
                other = child if link == parent else parent
                if other not in reached:
                    plan.roles[joint] = "holds" if link == parent else "backwards"
                    reached.add(other)
                    waiting.append(other)
    return plan


def _spanning(names: Iterable[str], ends: Mapping[str, tuple[str, str]], order: Iterable[str]) -> list[str]:
    """Return the joints that connect parts which earlier joints in `order` have not connected (Kruskal's algorithm)."""
    above = {name: name for name in names}

    def top(name: str) -> str:
        while above[name] != name:
            above[name] = name = above[above[name]]
        return name

    taken: list[str] = []
    for joint in order:
        one, two = (top(link) for link in ends[joint])
        if one != two:
            above[one] = two
            taken.append(joint)
    return taken


JOINT_TYPES = ("revolute", "continuous", "prismatic", "ball", "universal", "revolute2", "fixed", "screw")
"""Joint types of SDF that move or connect links."""
UNLIMITED = 1e16
"""m or rad; a limit of this size means no limit, as SDF itself writes it."""
PERPENDICULAR_COSINE = 1e-9
"""Cosine of the angle between two axes below which they count as perpendicular."""


@dataclass(frozen=True, slots=True)
class SdfMimic:
    """A <mimic>: value = ratio * leader value + offset, for one axis of each joint; offset includes the reference."""

    node: XmlNode
    joint: str
    axis: str
    leader: str
    leader_axis: str
    ratio: float
    offset: float


def check_joint_type(spec: SdfJoint) -> None:
    known = (*JOINT_TYPES, "gearbox")
    if spec.type not in known:
        raise spec.node.make_error(f"is of type {spec.type!r}, which SDF does not have{did_you_mean(spec.type, known)}")


def make_joints(spec: SdfJoint, frames: SdfFrames, is_reversed: bool) -> list[Joint]:
    """Return the joint, or two joints in series if its two axes are not perpendicular.

    Args:
        spec: the <joint>.
        frames: frames of the file.
        is_reversed: whether it is used from its child to its parent, which inverts its motion.
    """
    sign = -1.0 if is_reversed else 1.0
    joint = Joint(spec.name)
    if spec.type == "fixed":
        return [joint]
    if spec.type == "ball":
        joint.set_dof(ROTATIONS)
        return [joint]
    axis = sign * axis_of(spec, "axis", frames)
    if spec.type in ("universal", "revolute2"):
        return _two_axes(spec, axis, sign * axis_of(spec, "axis2", frames), is_reversed)
    if spec.type == "screw":
        joint.set_dof((DoF.Z, DoF.EZ))
        joint.axes_wxyz = quaternion.from_matrix(rotation.between(np.array([0.0, 0.0, 1.0]), axis))
        joint.set_limit(DoF.EZ, *_limits(spec, "axis"))
        joint.mimic(joint, _pitch(spec), dof=DoF.Z, leader_dof=DoF.EZ)
        return [joint]
    set_axis(joint, axis, is_prismatic=spec.type == "prismatic")
    if spec.type != "continuous":
        joint.set_limit(joint.dof[0], *_limits(spec, "axis"))
    return [joint]


def dof_of(joint: Joint, axis: str, is_reversed: bool) -> DoF:
    """Return the dof of a joint for an axis of the file ("axis", "axis2"); see `make_joints` for `is_reversed`."""
    if joint.dof == (DoF.EX, DoF.EY):
        return DoF.EY if (axis == "axis") != is_reversed else DoF.EX
    return joint.dof[-1]


def has_axis(spec: SdfJoint, axis: str) -> bool:
    """Tell whether a joint moves about or along that axis."""
    return spec.type not in ("fixed", "ball") and (axis == "axis" or spec.type in ("universal", "revolute2"))


def _two_axes(spec: SdfJoint, one: Array, two: Array, backwards: bool) -> list[Joint]:
    """Return joints that rotate about `one` and then about the moved `two`; in reverse order if `backwards`."""
    if abs(float(one @ two)) < PERPENDICULAR_COSINE:
        joint = Joint(spec.name, dof=(DoF.EX, DoF.EY))
        limits = {DoF.EY: _limits(spec, "axis"), DoF.EX: _limits(spec, "axis2")}
        if backwards:  # the inverse motion rotates about the second axis first, so the values swap
            one, two, limits = two, one, {DoF.EX: limits[DoF.EY], DoF.EY: limits[DoF.EX]}
            spec.node.warn("is passed from its child to its parent; its second axis is the first of its freedoms")
        x = unit_axis(two - (one @ two) * one)
        joint.axes_wxyz = quaternion.from_matrix(np.column_stack([x, one, np.cross(x, one)]))
        for dof, (lower, upper) in limits.items():
            joint.set_limit(dof, lower, upper)
        return [joint]
    joints = [Joint(spec.name), Joint(f"{spec.name}_axis2")]
    for joint, axis, tag in zip(joints, (one, two), ("axis", "axis2"), strict=True):
        set_axis(joint, axis, is_prismatic=False)
        joint.set_limit(joint.dof[0], *_limits(spec, tag))
    return joints[::-1] if backwards else joints


def axis_of(spec: SdfJoint, tag: str, frames: SdfFrames) -> Array:
    """Return the unit axis (3,) in the frame of the joint."""
    node = spec.node.first(tag)
    if node is None:
        raise spec.node.make_error(f"is {spec.type} and has no <{tag}>")
    xyz = node.first("xyz")
    axis = np.array(parse_numbers(xyz, 3) if xyz is not None else (0.0, 0.0, 1.0))
    if not 1e-12 < np.linalg.norm(axis) < 1e30:
        raise (xyz or node).make_error("must point somewhere, and is zero, or out of all bounds")
    axis = unit_axis(axis)
    said = "" if xyz is None else xyz.attributes.get("expressed_in", "").strip()
    in_model = node.first("use_parent_model_frame")
    # before version 1.5 axes are expressed in the model frame
    in_model_frame = spec.version < 105 if in_model is None else parse_bool(in_model.text)
    if not said and not in_model_frame:
        return axis
    other = frames.pose(frames.key(spec.scope, said or "__model__", node))
    own = frames.pose(FrameKey("joint", spec.name))
    return own[:3, :3].T @ other[:3, :3] @ axis


def _limits(spec: SdfJoint, tag: str) -> tuple[float, float]:
    axis = spec.node.first(tag)
    limit = None if axis is None else axis.first("limit")
    if limit is None:
        return -math.inf, math.inf
    lower = child_limit(limit, "lower", -math.inf, UNLIMITED)
    upper = child_limit(limit, "upper", math.inf, UNLIMITED)
    if lower > upper:
        raise limit.make_error(f"has its lower, {lower:g}, above its upper, {upper:g}")
    if lower == math.inf or upper == -math.inf:
        raise limit.make_error("leaves no finite value")
    return lower, upper


def _pitch(spec: SdfJoint) -> float:
    """Return the pitch of a screw joint, m per rad.

    `screw_thread_pitch` is in m per revolution; the older `thread_pitch` is in rad per m, of a left-hand thread.
    """
    turn = child_number(spec.node, "screw_thread_pitch", math.nan)
    if not math.isnan(turn):
        return turn / (2 * math.pi)
    old = child_number(spec.node, "thread_pitch", math.nan)
    if math.isnan(old) or old == 0.0:
        raise spec.node.make_error("is a screw and has no <screw_thread_pitch>, the m that it advances a turn")
    return -1.0 / old


def read_mimic(spec: SdfJoint, tag: str) -> SdfMimic | None:
    """Return the <mimic> in an axis of a joint, or None."""
    axis = spec.node.first(tag)
    node = None if axis is None else axis.first("mimic")
    if node is None:
        return None
    ratio, offset = child_number(node, "multiplier", 1.0), child_number(node, "offset", 0.0)
    offset -= ratio * child_number(node, "reference", 0.0)
    leader_axis = node.attributes.get("axis", "axis").strip()
    if leader_axis not in ("axis", "axis2"):
        raise node.make_error(f"has axis={leader_axis!r}; it can be 'axis' or 'axis2'")
    return SdfMimic(node, spec.name, tag, spec.scope + node.require("joint").strip(), leader_axis, ratio, offset)


def read_sdf_extras(extras: dict[str, Any], spec: SdfJoint) -> None:
    """Add the simulator data of a joint to `extras`, by subject and joint name, as the URDF reader does."""
    axis = spec.node.first("axis")
    for subject, tag, names in (
        ("limits", "limit", ("effort", "velocity")),
        ("dynamics", "dynamics", ("damping", "friction")),
    ):
        node = None if axis is None else axis.first(tag)
        if node is None:
            continue
        found = {one: child_limit(node, one, math.inf, UNLIMITED) for one in names}
        kept = {one: value for one, value in found.items() if math.isfinite(value) and value >= 0}
        if kept:
            extras.setdefault(subject, {})[spec.name] = kept


PARALLEL_TOLERANCE = 1e-6
"""Largest deviation from 1 of the cosine between the axes of a gearbox and its joint; files give angles to four digits.
"""


def gearbox_mimic(
    spec: SdfJoint, joints: Mapping[str, SdfJoint], ends: Mapping[str, tuple[str, str]], frames: SdfFrames
) -> SdfMimic:
    """Return the coupling of a <gearbox>: child rotation = -ratio * parent rotation, relative to its reference body.

    Args:
        spec: the <joint> of type gearbox.
        joints: the other joints, by name.
        ends: parent and child link of each of these.
        frames: frames of the file.
    """
    reference = frames.body(frames.key(spec.scope, required_child_text(spec.node, "gearbox_reference_body"), spec.node))
    found: list[tuple[str, float]] = []
    for end, tag in ((spec.parent, "axis"), (spec.child, "axis2")):
        body = frames.body(frames.key(spec.scope, end, spec.node))
        found.append(_turn(spec, tag, reference, body, joints, ends, frames))
    (leader, one), (follower, two) = found
    ratio = -child_number(spec.node, "gearbox_ratio", 1.0) * one / two
    return SdfMimic(spec.node, follower, "axis", leader, "axis", ratio, 0.0)


def _turn(
    spec: SdfJoint,
    tag: str,
    reference: str,
    body: str,
    joints: Mapping[str, SdfJoint],
    ends: Mapping[str, tuple[str, str]],
    frames: SdfFrames,
) -> tuple[str, float]:
    """Return the joint between reference and body, and the sign (1 or -1) of its rotation about the gearbox axis."""
    for name, pair in ends.items():
        if set(pair) == {reference, body} and joints[name].type in ("revolute", "continuous"):
            own = frames.pose(FrameKey("joint", name))[:3, :3] @ axis_of(joints[name], "axis", frames)
            gear = frames.pose(FrameKey("joint", spec.name))[:3, :3] @ axis_of(spec, tag, frames)
            along = float(own @ gear)
            if 1.0 - abs(along) > PARALLEL_TOLERANCE:
                raise spec.node.make_error(f"turns about another axis than joint {name!r}, by which {body!r} turns")
            return name, (1.0 if along > 0 else -1.0) * (1.0 if pair[0] == reference else -1.0)
    raise spec.node.make_error(f"is a gearbox between {reference!r} and {body!r}, which no revolute joint joins")


def read_sdf(
    source: str | Path | Source,
    *,
    base: Literal["fixed", "free"] = "fixed",
    packages: Mapping[str, str | Path] | None = None,
) -> Mechanism:
    """Read a mechanism from an SDF.

    Args:
        source: a path, or the text itself, which begins with `<`.
        base: "fixed" attaches models without a joint to the world; "free" lets them float, by a joint `floating_base`
            that comes first in q. Static models are always fixed.
        packages: folder of each package or model, by name, for `model://` and `package://`.

    Returns:
        The mechanism. Its `warnings` list oddities, and its `extras` hold "limits" (effort, velocity) and "dynamics" by
        joint name.

    Raises:
        FileMissing: the file does not exist.
        FormatError: the file cannot be read; the message says where and why.

    Example:
        >>> text = '<sdf version="1.9"><model name="door"><link name="frame"/><link name="leaf"/>'
        >>> text += '<joint name="hinge" type="revolute"><parent>frame</parent><child>leaf</child>'
        >>> text += '<axis><xyz>0 0 1</xyz></axis></joint></model></sdf>'
        >>> door = mk.formats.read_sdf(text)
        >>> list(door.joints), door.nq
        (['hinge'], 1)
    """
    if base not in ("fixed", "free"):
        raise FormatError(f"base can be 'fixed' or 'free', not {base!r}")
    opened = source if isinstance(source, Source) else open_source(source)
    files = file_resolver(opened, packages)
    found = collect_models(opened, files)
    assembly = _Assembly(found, files)
    roots = assembly.build(base == "free")
    name = found.name or opened.stem
    mechanism = Mechanism(roots, name=name, warnings=found.root.document.warnings)
    mechanism.extras.update(assembly.extras)
    return mechanism


class _Assembly:
    """Builds the mechanism from the links and joints of a file."""

    def __init__(self, found: SdfContent, files: FileResolver) -> None:
        self.found, self.frames = found, found.frames
        for spec in found.joints.values():
            check_joint_type(spec)
        self.specs = {name: spec for name, spec in found.joints.items() if spec.type != "gearbox"}
        self.ends = {name: self._bodies(spec) for name, spec in self.specs.items()}
        self.extras: dict[str, Any] = {}
        self.joints: dict[str, list[Joint]] = {}
        self.backwards: set[str] = set()
        shapes = SdfShapeReader(files, found.frames)
        self.links: dict[str, Link] = {}
        if any(WORLD in pair for pair in self.ends.values()):
            self.links[WORLD] = Link(WORLD)
        for name, spec in found.links.items():
            visuals, collisions = shapes.read_shapes(spec, "visual"), shapes.read_shapes(spec, "collision")
            self.links[name] = Link(name, visuals=visuals, collisions=collisions, inertial=shapes.inertial(spec))

    def build(self, floats: bool) -> list[Frame]:
        """Return the roots of all trees."""
        followers = self._followers()
        bound = {one.joint for one in followers} | {one.leader for one in followers}
        bound |= {name for name, spec in self.specs.items() if spec.type == "screw"}
        plan = spanning_tree(self.links, self.ends, bound, WORLD)
        floating = [root for root in plan.roots if floats and root != WORLD and root not in self.found.static_links]
        floating_joints = {root: Joint(self._base_name(root, len(floating)), dof=ALL_DOFS) for root in floating}
        for name, spec in self.specs.items():
            if plan.roles[name] == "closes" and name in bound:
                raise spec.node.make_error(
                    "closes a loop, and it is a screw, or follows a joint or leads one, which is possible only for "
                    "joints that hold a link; let another joint of the loop close it"
                )
            self._put(spec, plan.roles[name])
            read_sdf_extras(self.extras, spec)
        for follower in followers:
            self._couple(follower)
        self._warn_of_values()
        tops: list[Frame] = []
        for root in plan.roots:
            top: Frame = self.links[root]
            if root != WORLD:
                top.matrix = self._pose(root)
                if root in floating_joints:  # at zero the base has the pose of the file
                    joint = floating_joints[root]
                    joint.matrix, top.matrix = top.matrix, np.eye(4)
                    joint.add_child(top)
                    top = joint
            tops.append(top)
        return tops

    def _warn_of_values(self) -> None:
        """Warn of joints that limits have moved away from zero, the value of all joints in the poses of the file."""
        made = [joint for several in self.joints.values() for joint in several]
        moved = [one.name for one in made if not (one.is_closure or one.couplings) and any(one.values)]
        if moved:
            self.found.root.warn(
                f"is drawn with joints outside their limits, which stand at a limit now: {list_names(moved)}"
            )

    def _put(self, spec: SdfJoint, role: JointRole) -> None:
        """Add a joint to its first link, and connect the second link as its child or by a closure."""
        start, end = self.ends[spec.name] if role != "backwards" else self.ends[spec.name][::-1]
        if role == "backwards":
            self.backwards.add(spec.name)
        X_world_joint = self.frames.pose(FrameKey("joint", spec.name))
        X_start = inverse(self._pose(start)) @ X_world_joint
        X_end = inverse(self._pose(end)) @ X_world_joint
        made = make_joints(spec, self.frames, role == "backwards")
        above, made[0].matrix = self.links[start], X_start
        for joint in made[:-1]:
            between = Link(f"{spec.name}/{joint.name}")
            above.add_child(joint)
            joint.add_child(between)
            above = between
        above.add_child(made[-1])
        if role == "closes":
            made[-1].make_closure(self.links[end], X_end)
        else:
            self.links[end].matrix = inverse(X_end)
            made[-1].add_child(self.links[end])
        self.joints[spec.name] = made

    def _couple(self, one: SdfMimic) -> None:
        joint, leader = self._with_axis(one.joint, one.axis), self._with_axis(one.leader, one.leader_axis)
        try:
            dof = dof_of(joint, one.axis, one.joint in self.backwards)
            leader_dof = dof_of(leader, one.leader_axis, one.leader in self.backwards)
            joint.mimic(leader, one.ratio, one.offset, dof=dof, leader_dof=leader_dof)
        except (CouplingError, DoFError) as error:
            raise one.node.make_error(f"cannot be: {error}") from None

    def _with_axis(self, name: str, axis: str) -> Joint:
        """Return the joint for that axis if two joints represent one."""
        made = self.joints[name]
        return next((joint for joint in made if axis == "axis2" and joint.name != name), made[0])

    def _followers(self) -> list[SdfMimic]:
        gears = [spec for spec in self.found.joints.values() if spec.type == "gearbox"]
        found = [gearbox_mimic(spec, self.specs, self.ends, self.frames) for spec in gears]
        for spec in self.specs.values():
            for tag in ("axis", "axis2"):
                one = read_mimic(spec, tag)
                if one is None:
                    continue
                if one.leader not in self.specs:
                    near = did_you_mean(one.leader, self.specs)
                    raise one.node.make_error(f"follows {one.leader!r}, and there is no such joint{near}")
                for name, axis in ((one.joint, one.axis), (one.leader, one.leader_axis)):
                    if not has_axis(self.specs[name], axis):
                        raise one.node.make_error(f"is about the {axis} of joint {name!r}, which has none")
                found.append(one)
        return found

    def _bodies(self, spec: SdfJoint) -> tuple[str, str]:
        """Return the links at both ends; a frame stands for the link with which it moves."""
        ends = [self.frames.body(self.frames.key(spec.scope, name, spec.node)) for name in (spec.parent, spec.child)]
        if ends[0] == ends[1]:
            raise spec.node.make_error(f"joins {ends[0]!r} to itself")
        return ends[0], ends[1]

    def _pose(self, link: str) -> Array:
        return np.eye(4) if link == WORLD else self.frames.pose(FrameKey("link", link))

    def _base_name(self, root: str, count: int) -> str:
        name = "floating_base" if count == 1 else f"{root}_floating_base"
        while name in self.found.joints:
            name += "_"
        return name
