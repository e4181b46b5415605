"""Configurations by the names of joints, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mechanik.errors import CouplingError, UnknownName
from mechanik.mechanism.dof import DoF
from mechanik.mechanism.door import as_number, as_numbers
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
    q_names = kinematics.space.q_names
    followers: list[tuple[Joint, DoF, float]] = []
    for name, given in values.items():
        joint = joints.get(name)
        if joint is None:
            if name not in q_names:
                raise UnknownName("joint", name, [*joints, *q_names])
            start[q_names.index(name)] = as_number(given, name)
            continue
        numbers = as_numbers((given,), len(joint.dof), f"values of {joint}")
        slot = kinematics.slots.get(joint)
        if slot is None:
            raise CouplingError(f"{joint} closes a loop; its values follow from the links and cannot be set")
        for dof, number in zip(joint.dof, numbers, strict=True):
            if dof in slot.q:
                start[slot.q[dof]] = number
            elif dof in joint._couplings:
                followers.append((joint, dof, number))
        if slot.ball_q is not None:
            turn = euler.quaternion_from_euler(numbers[:-4:-1], order="zyx", axes="moving")
            start[slot.ball_q : slot.ball_q + 4] = turn
    for joint, dof, number in followers:
        led = _led(kinematics, joint, dof, start)
        if abs(led - number) > 1e-6:
            leader = joint._couplings[dof].leader
            raise CouplingError(f"{joint} follows {leader} and stands at {led:g} then, not at {number:g}")
    return start


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
