"""The joints of an SDF as joints of ours: axes, limits, screws, and what follows what."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanik.formats.sdf_frames import Frames, Key
from mechanik.formats.sdf_model import JointSpec
from mechanik.formats.sdf_values import is_true, limit_in, number_in, numbers_of
from mechanik.formats.urdf_reader import set_axis, unit_axis
from mechanik.formats.urdf_tree import nearest_name
from mechanik.formats.xml_text import Node
from mechanik.mechanism.dof import ROTATIONS, DoF
from mechanik.mechanism.joint import Joint
from mechanik.spatial import quaternion, rotation
from mechanik.spatial.array import Array

TYPES = ("revolute", "continuous", "prismatic", "ball", "universal", "revolute2", "fixed", "screw")
UNLIMITED = 1e16
"""A limit from here on means none: it is what SDF itself writes for it."""
SQUARE = 1e-9
"""The cosine of the angle between two axes below which they stand at right angles."""


@dataclass(frozen=True, slots=True)
class Follower:
    """A <mimic>: value = multiplier * (leader's value - reference) + offset, of one axis each."""

    node: Node
    joint: str
    axis: str
    leader: str
    leader_axis: str
    ratio: float
    offset: float


def check_type(spec: JointSpec) -> None:
    known = (*TYPES, "gearbox")
    if spec.type not in known:
        raise spec.node.fault(f"is of type {spec.type!r}, which SDF does not have{nearest_name(spec.type, known)}")


def make_joints(spec: JointSpec, frames: Frames, backwards: bool) -> list[Joint]:
    """The joint, or two joints one after the other where two axes are not at right angles.

    Args:
        backwards: whether it leads from its child to its parent, and so has to move the other way.
    """
    sign = -1.0 if backwards else 1.0
    joint = Joint(spec.name)
    if spec.type == "fixed":
        return [joint]
    if spec.type == "ball":
        joint.set_dof(ROTATIONS)
        return [joint]
    axis = sign * axis_of(spec, "axis", frames)
    if spec.type in ("universal", "revolute2"):
        return _two_axes(spec, axis, sign * axis_of(spec, "axis2", frames), backwards)
    if spec.type == "screw":
        joint.set_dof((DoF.Z, DoF.EZ))
        joint.axes_wxyz = quaternion.from_matrix(rotation.between(np.array([0.0, 0.0, 1.0]), axis))
        joint.set_limit(DoF.EZ, *_limits(spec, "axis"))
        joint.follow(joint, _pitch(spec), dof=DoF.Z, leader_dof=DoF.EZ)
        return [joint]
    set_axis(joint, axis, slides=spec.type == "prismatic")
    if spec.type != "continuous":
        joint.set_limit(joint.dof[0], *_limits(spec, "axis"))
    return [joint]


def dof_of(joint: Joint, axis: str, backwards: bool) -> DoF:
    """The freedom of a joint that an axis of the file ("axis", "axis2") is; see `make_joints` for `backwards`."""
    if joint.dof == (DoF.EX, DoF.EY):
        return DoF.EY if (axis == "axis") != backwards else DoF.EX
    return joint.dof[-1]


def has_axis(spec: JointSpec, axis: str) -> bool:
    """Whether a joint moves about or along that axis."""
    return spec.type not in ("fixed", "ball") and (axis == "axis" or spec.type in ("universal", "revolute2"))


def _two_axes(spec: JointSpec, one: Array, two: Array, backwards: bool) -> list[Joint]:
    """Turns about `one` and then about the `two` that it carries along; backwards, the other way round."""
    if abs(float(one @ two)) < SQUARE:
        joint = Joint(spec.name, dof=(DoF.EX, DoF.EY))
        limits = {DoF.EY: _limits(spec, "axis"), DoF.EX: _limits(spec, "axis2")}
        if backwards:  # the inverse turns about the second axis first; the values then change places
            one, two, limits = two, one, {DoF.EX: limits[DoF.EY], DoF.EY: limits[DoF.EX]}
            spec.node.warn("is passed from its child to its parent; its second axis is the first of its freedoms")
        x = unit_axis(two - (one @ two) * one)
        joint.axes_wxyz = quaternion.from_matrix(np.column_stack([x, one, np.cross(x, one)]))
        for dof, (lower, upper) in limits.items():
            joint.set_limit(dof, lower, upper)
        return [joint]
    joints = [Joint(spec.name), Joint(f"{spec.name}_axis2")]
    for joint, axis, tag in zip(joints, (one, two), ("axis", "axis2"), strict=True):
        set_axis(joint, axis, slides=False)
        joint.set_limit(joint.dof[0], *_limits(spec, tag))
    return joints[::-1] if backwards else joints


def axis_of(spec: JointSpec, tag: str, frames: Frames) -> Array:
    """A unit vector in the frame of the joint."""
    node = spec.node.first(tag)
    if node is None:
        raise spec.node.fault(f"is {spec.type} and has no <{tag}>")
    xyz = node.first("xyz")
    axis = np.array(numbers_of(xyz, 3) if xyz is not None else (0.0, 0.0, 1.0))
    if not 1e-12 < np.linalg.norm(axis) < 1e30:
        raise (xyz or node).fault("must point somewhere, and is zero, or out of all bounds")
    axis = unit_axis(axis)
    said = "" if xyz is None else xyz.attributes.get("expressed_in", "").strip()
    in_model = node.first("use_parent_model_frame")
    # before version 1.5 axes stand in the frame of the model, whatever the joint's
    in_model_frame = spec.version < 105 if in_model is None else is_true(in_model.text)
    if not said and not in_model_frame:
        return axis
    other = frames.pose(frames.key(spec.scope, said or "__model__", node))
    own = frames.pose(Key("joint", spec.name))
    return own[:3, :3].T @ other[:3, :3] @ axis


def _limits(spec: JointSpec, tag: str) -> tuple[float, float]:
    axis = spec.node.first(tag)
    limit = None if axis is None else axis.first("limit")
    if limit is None:
        return -math.inf, math.inf
    lower = limit_in(limit, "lower", -math.inf, UNLIMITED)
    upper = limit_in(limit, "upper", math.inf, UNLIMITED)
    if lower > upper:
        raise limit.fault(f"has its lower, {lower:g}, above its upper, {upper:g}")
    if lower == math.inf or upper == -math.inf:
        raise limit.fault("leaves no finite value")
    return lower, upper


def _pitch(spec: JointSpec) -> float:
    """m a radian. `screw_thread_pitch` is m a turn; the older `thread_pitch` rad a m, of a left-handed thread."""
    turn = number_in(spec.node, "screw_thread_pitch", math.nan)
    if not math.isnan(turn):
        return turn / (2 * math.pi)
    old = number_in(spec.node, "thread_pitch", math.nan)
    if math.isnan(old) or old == 0.0:
        raise spec.node.fault("is a screw and has no <screw_thread_pitch>, the m that it advances a turn")
    return -1.0 / old


def follower_of(spec: JointSpec, tag: str) -> Follower | None:
    """The <mimic> in one of the axes of a joint."""
    axis = spec.node.first(tag)
    node = None if axis is None else axis.first("mimic")
    if node is None:
        return None
    ratio, offset = number_in(node, "multiplier", 1.0), number_in(node, "offset", 0.0)
    offset -= ratio * number_in(node, "reference", 0.0)
    leader_axis = node.attributes.get("axis", "axis").strip()
    if leader_axis not in ("axis", "axis2"):
        raise node.fault(f"has axis={leader_axis!r}; it can be 'axis' or 'axis2'")
    return Follower(node, spec.name, tag, spec.scope + node.need("joint").strip(), leader_axis, ratio, offset)


def keep_extras(extras: dict[str, Any], spec: JointSpec) -> None:
    """What only simulators use, by subject and joint, as the URDF reader keeps it."""
    axis = spec.node.first("axis")
    for subject, tag, names in (
        ("limits", "limit", ("effort", "velocity")),
        ("dynamics", "dynamics", ("damping", "friction")),
    ):
        node = None if axis is None else axis.first(tag)
        if node is None:
            continue
        found = {one: limit_in(node, one, math.inf, UNLIMITED) for one in names}
        kept = {one: value for one, value in found.items() if math.isfinite(value) and value >= 0}
        if kept:
            extras.setdefault(subject, {})[spec.name] = kept
