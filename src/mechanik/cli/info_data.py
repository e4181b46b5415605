"""A mechanism in figures, for programs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mechanik.cli import bumping
from mechanik.cli.joint_types import places_in_q, type_of
from mechanik.cli.output import count
from mechanik.mechanism import DoF, Frame, Joint, Mechanism, Structure, mobility, structure
from mechanik.spatial import quaternion


def as_data(mechanism: Mechanism, finds_pairs: bool = False) -> dict[str, Any]:
    """The same for programs; null stands for no limit.

    Args:
        finds_pairs: whether to look which pairs of links always touch.
    """
    moves = mobility(mechanism)
    return {
        "name": mechanism.name,
        "nq": mechanism.nq,
        "nv": mechanism.nv,
        "mass": mass_of(mechanism),
        "mobility": {"gruebler": moves.gruebler, "true": moves.dof, "redundant": moves.redundant},
        "structure": None if moves.dof is None else structure_data(structure(mechanism)),
        "links": [
            {
                "name": name,
                "joint": mechanism.name_of(link.parent) if isinstance(link.parent, Joint) else None,
                "mass": None if link.inertial is None else link.inertial.mass,
                "visuals": len(link.visuals),
                "collisions": len(link.collisions),
            }
            for name, link in mechanism.links.items()
        ],
        "joints": [
            {
                "name": name,
                "parent": parent_of(mechanism, joint),
                "child": joint.child and mechanism.name_of(joint.child),
                "closes_loop": joint.is_closure,
                "type": type_of(joint),
                "dof": [dof.name for dof in joint.dof],
                "axes": [axis_of(joint, dof) for dof in joint.dof],
                "lower": [None if math.isinf(x) else x for x in joint.lower.tolist()],
                "upper": [None if math.isinf(x) else x for x in joint.upper.tolist()],
                "values": joint.values.tolist(),
                "q": [k for place in places_in_q(mechanism, joint).values() for k in place],
                "follows": [mechanism.name_of(one.leader) for one in joint.couplings],
                "cone": None if joint.cone is None else {"angle": joint.cone.angle, "axes": joint.cone.axes},
            }
            for name, joint in mechanism.joints.items()
        ],
        "loops": [
            {
                "name": name,
                "links": [parent_of(mechanism, closure.joint), mechanism.name_of(closure.link)],
                "free": [dof.name for dof in closure.free],
                "gap": {"distance": closure.gap().distance, "angle": closure.gap().angle},
            }
            for name, closure in mechanism.closures.items()
        ],
        "laws": [
            {
                "name": name,
                "joints": [mechanism.name_of(joint) for joint in law.joints],
                "says": f"{law.formula} = {law.constant:g}",
                "error": law.error(),
            }
            for name, law in mechanism.laws.items()
        ],
        "goals": [
            {
                "name": name,
                "link": goal.child and mechanism.name_of(goal.child),
                "dof": [dof.name for dof in goal.goal_dof],
            }
            for name, goal in mechanism.goals.items()
        ],
        "collision": bumping.as_data(bumping.bumping_of(mechanism, finds_pairs)),
        "configurations": {name: [float(x) for x in q] for name, q in mechanism.configurations.items()},
        "warnings": list(mechanism.warnings),
    }


def structure_data(seen: Structure) -> dict[str, Any]:
    return {
        "generic_mobility": seen.generic_dof,
        "drives": list(seen.drives),
        "followers": list(seen.followers),
        "still": list(seen.still),
        "idle": [list(motion) for motion in seen.idle],
        "redundant_rows": [list(row) for row in seen.redundant_rows],
        "loops": [
            {
                "closures": list(loop.closures),
                "laws": list(loop.laws),
                "freedoms": list(loop.freedoms),
                "mobility": loop.mobility.dof,
            }
            for loop in seen.loops
        ],
    }


def size_of(mechanism: Mechanism) -> str:
    """Such as `8 links, 7 joints (1 fixed), 1 goal`; joints that close loops are counted as loops."""
    joints = [joint for joint in mechanism.joints.values() if not joint.is_closure]
    fixed = sum(not joint.dof for joint in joints)
    parts = [count(len(mechanism.links), "link"), count(len(joints), "joint") + (f" ({fixed} fixed)" if fixed else "")]
    parts += [count(len(mechanism.closures), "loop")] if mechanism.closures else []
    parts += [count(len(mechanism.laws), "law")] if mechanism.laws else []
    parts += [count(len(mechanism.goals), "goal")] if mechanism.goals else []
    return ", ".join(parts)


def mass_of(mechanism: Mechanism) -> float | None:
    """kg; None where no link says."""
    known = [link.inertial.mass for link in mechanism.links.values() if link.inertial is not None]
    return sum(known) if known else None


def parent_of(mechanism: Mechanism, frame: Frame) -> str | None:
    return mechanism.name_of(frame.parent) if frame.parent is not None else None


def axis_of(joint: Joint, dof: DoF) -> list[float]:
    """Where the axis of one freedom points in the joint's frame, (3,)."""
    return quaternion.rotate(joint.axes_wxyz, np.eye(3)[dof.direction]).tolist()
