"""The gearboxes of an SDF: joints that move nothing, and say how two others turn together."""

from __future__ import annotations

from collections.abc import Mapping

from mechanik.formats.sdf_frames import Frames, Key
from mechanik.formats.sdf_joints import Follower, axis_of
from mechanik.formats.sdf_model import JointSpec
from mechanik.formats.sdf_values import needed_text, number_in

PARALLEL = 1e-6
"""How far from 1 the cosine between a gearbox's axis and that of the joint may be; files give angles to four digits."""


def geared(
    spec: JointSpec, joints: Mapping[str, JointSpec], ends: Mapping[str, tuple[str, str]], frames: Frames
) -> Follower:
    """What a gearbox asks for: turn of its child = -ratio * turn of its parent, as its reference body sees them.

    Args:
        joints, ends: those that hold links, and the links at both ends of each.
    """
    reference = frames.body(frames.key(spec.scope, needed_text(spec.node, "gearbox_reference_body"), spec.node))
    found: list[tuple[str, float]] = []
    for end, tag in ((spec.parent, "axis"), (spec.child, "axis2")):
        body = frames.body(frames.key(spec.scope, end, spec.node))
        found.append(_turn(spec, tag, reference, body, joints, ends, frames))
    (leader, one), (follower, two) = found
    ratio = -number_in(spec.node, "gearbox_ratio", 1.0) * one / two
    return Follower(spec.node, follower, "axis", leader, "axis", ratio, 0.0)


def _turn(
    spec: JointSpec,
    tag: str,
    reference: str,
    body: str,
    joints: Mapping[str, JointSpec],
    ends: Mapping[str, tuple[str, str]],
    frames: Frames,
) -> tuple[str, float]:
    """The joint by which a body turns in the reference, and its sign: 1 if it counts as the gearbox does, else -1."""
    for name, pair in ends.items():
        if set(pair) == {reference, body} and joints[name].type in ("revolute", "continuous"):
            own = frames.pose(Key("joint", name))[:3, :3] @ axis_of(joints[name], "axis", frames)
            gear = frames.pose(Key("joint", spec.name))[:3, :3] @ axis_of(spec, tag, frames)
            along = float(own @ gear)
            if 1.0 - abs(along) > PARALLEL:
                raise spec.node.fault(f"turns about another axis than joint {name!r}, by which {body!r} turns")
            return name, (1.0 if along > 0 else -1.0) * (1.0 if pair[0] == reference else -1.0)
    raise spec.node.fault(f"is a gearbox between {reference!r} and {body!r}, which no revolute joint joins")
