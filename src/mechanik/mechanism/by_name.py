"""Configurations by the names of joints, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mechanik.errors import CouplingError, DoFError, ShapeError, UnknownName
from mechanik.mechanism.dof import ROTATIONS, DoF
from mechanik.mechanism.door import as_numbers
from mechanik.mechanism.frame import Frame
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.kinematics import Kinematics
from mechanik.spatial import euler
from mechanik.spatial.array import Array

JointValues = Mapping[str, float | Sequence[float] | Array]


def values_by_name(kinematics: Kinematics, names: Mapping[Frame, str], q: Array) -> dict[str, float | Array]:
    """What each moving joint holds at q: a number for one freedom, an array for several."""
    found: dict[str, float | Array] = {}
    for joint in kinematics.slots:
        if joint.dof:
            values = _values(kinematics, joint, q)
            found[names[joint]] = float(values[0]) if len(values) == 1 else values
    return found


def configuration_by_name(
    kinematics: Kinematics, joints: Mapping[str, Joint], values: JointValues, start: Array
) -> Array:
    """`start` (nq,), changed in place, with the values that are given by joint or by freedom."""
    if not isinstance(values, Mapping):
        raise ShapeError(f"values must be given by name, as in {{'elbow': 0.5}}, not as {values!r}")
    followers: list[tuple[Joint, DoF, float]] = []
    for name, given in values.items():
        joint, dofs = _named(name, joints)
        slot = kinematics.slots.get(joint)
        if slot is None:
            why = "closes a loop, so its values follow from the links" if joint.is_closure else "holds no link"
            raise CouplingError(f"{joint} {why}; it cannot be set")
        if not dofs:
            raise DoFError(f"{joint} is fixed and takes no value")
        numbers = dict(zip(dofs, as_numbers((given,), len(dofs), f"values of {joint}"), strict=True))
        for dof, number in numbers.items():
            if dof in slot.q:
                start[slot.q[dof]] = number
            elif dof in joint._couplings:
                followers.append((joint, dof, number))
        if slot.ball_q is not None and any(dof.is_rotation for dof in dofs):
            # angles that are not named stay as they are at `start`
            held = dict(zip(joint.dof, _values(kinematics, joint, start), strict=True)) | numbers
            turn = [held[dof] for dof in reversed(ROTATIONS)]
            start[slot.ball_q : slot.ball_q + 4] = euler.quaternion_from_euler(turn, order="zyx", axes="moving")
    for joint, dof, number in followers:
        led = _led(kinematics, joint, dof, start)
        if abs(led - number) > 1e-6:
            leader = joint._couplings[dof].leader
            raise CouplingError(f"{joint} follows {leader} and stands at {led:g} then, not at {number:g}")
    return start


def _named(name: str, joints: Mapping[str, Joint]) -> tuple[Joint, tuple[DoF, ...]]:
    """The joint and the freedoms that `elbow` or `base.EX` mean."""
    joint = joints.get(name)
    if joint is not None:
        return joint, joint.dof
    before, _, after = str(name).rpartition(".")
    if before in joints and after in DoF.__members__:
        return joints[before], (joints[before]._free(after),)
    if before in joints:
        raise UnknownName(f"freedom of joint {before!r}", after, [dof.name for dof in joints[before].dof])
    raise UnknownName("joint", name, joints)


def _values(kinematics: Kinematics, joint: Joint, q: Array) -> Array:
    slot, values = kinematics.slots[joint], np.array(joint._values)
    for dof in joint.dof:
        if dof in slot.q:
            values[dof] = q[slot.q[dof]]
        elif dof in joint._couplings:
            values[dof] = _led(kinematics, joint, dof, q)
    if slot.ball_q is not None:
        turn = q[slot.ball_q : slot.ball_q + 4]
        values[[5, 4, 3]] = euler.euler_from_quaternion(turn, order="zyx", axes="moving", near=values[[5, 4, 3]])
    return values[list(joint.dof)]


def _led(kinematics: Kinematics, joint: Joint, dof: DoF, q: Array) -> float:
    """The value of a freedom that follows another."""
    leader, leader_dof, ratio, offset = joint._couplings[dof].resolve()
    return float(ratio * q[kinematics.slots[leader].q[leader_dof]] + offset)
