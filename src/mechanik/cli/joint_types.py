"""What people call a joint, and where its freedoms stand in q."""

from __future__ import annotations

import math

from mechanik.mechanism import DoF, Joint, Mechanism

NAMES = {
    "": "fixed",
    "X Y Z EX EY EZ": "floating",
    "X Y EZ": "planar",
    "X Z EY": "planar",
    "Y Z EX": "planar",
    "EX EY": "universal",
    "EX EZ": "universal",
    "EY EZ": "universal",
    "X EX": "cylindrical",
    "Y EY": "cylindrical",
    "Z EZ": "cylindrical",
}


def type_of(joint: Joint) -> str:
    """A word such as "revolute" or "ball"; the freedoms where there is none."""
    freedoms = " ".join(dof.name for dof in joint.dof)
    if len(joint.dof) == 1:
        dof = joint.dof[0]
        is_limited = any(math.isfinite(side) for side in joint.limits(dof))
        return "prismatic" if not dof.is_rotation else "revolute" if is_limited else "continuous"
    if freedoms == "EX EY EZ" and joint.is_ball:
        return "ball"
    return NAMES.get(freedoms, freedoms)


def places_in_q(mechanism: Mechanism, joint: Joint) -> dict[DoF, range]:
    """Which numbers of q each freedom is; the four of a ball belong to its first angle, followers have none."""
    slot = mechanism.kinematics.slots.get(joint)
    if slot is None:  # closes a loop
        return {}
    places = {dof: range(k, k + 1) for dof, k in slot.q.items()}
    if slot.ball_q is not None:
        places[DoF.EX] = range(slot.ball_q, slot.ball_q + 4)
    return places


def law_of(mechanism: Mechanism, joint: Joint, dof: DoF) -> str:
    """How a follower follows, such as `= -2 * elbow + 0.1`; empty for a freedom that leads itself."""
    led = joint._couplings.get(dof)
    if led is None:
        return ""
    leader = mechanism.name_of(led.leader) + (f".{led.leader_dof.name}" if len(led.leader.dof) > 1 else "")
    ratio = "" if led.ratio == 1 else f"{led.ratio:g} * "
    offset = "" if led.offset == 0 else f" {'-' if led.offset < 0 else '+'} {abs(led.offset):g}"
    return f"= {ratio}{leader}{offset}"
