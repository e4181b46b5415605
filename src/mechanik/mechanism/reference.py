"""Poses and Jacobians straight from the graph, one frame after the other, in plain NumPy.

Slow and easy to believe: the compiled kernels are tested against it, and what is asked rarely
(mobility, lint) uses it without compiling anything.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mechanik.mechanism.dof import ROTATIONS, TRANSLATIONS, DoF
from mechanik.mechanism.frame import Frame
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.kinematics import Slot
from mechanik.mechanism.mechanism import Mechanism
from mechanik.spatial import quaternion, rotation
from mechanik.spatial.array import Array


def jacobian(mechanism: Mechanism, frame: Frame, point_world: Array) -> Array:
    """World twist (linear, angular) of a point that moves with `frame`, at the present configuration: (6, nv).

    Args:
        point_world: (3,), where the point is now.
    """
    slots = mechanism.kinematics.slots
    J = np.zeros((6, mechanism.nv))
    for joint in [frame, *frame.traverse_parents()]:
        if not isinstance(joint, Joint) or joint.is_closure:
            continue
        X = joint.world_matrix
        R_world_axes = X[:3, :3] @ quaternion.to_matrix(joint.axes_wxyz)
        p_moved = joint.moved_world_matrix[:3, 3]
        slot = slots[joint]
        columns: list[tuple[int, float, Array]] = []
        for dof in TRANSLATIONS:
            if dof in joint.dof:
                columns.append((*_column(joint, dof, slots), np.r_[R_world_axes[:, dof.direction], 0, 0, 0]))
        R = R_world_axes
        if slot.ball_v is not None:
            R = R_world_axes @ quaternion.to_matrix(joint.turn_wxyz)
            columns += [(slot.ball_v + k, 1.0, _turn(R[:, k], point_world - p_moved)) for k in range(3)]
        else:
            for dof in reversed(ROTATIONS):
                if dof in joint.dof:
                    axis = np.eye(3)[dof.direction]
                    columns.append((*_column(joint, dof, slots), _turn(R @ axis, point_world - p_moved)))
                    R = R @ rotation.exp(axis * joint.value(dof))
        for column, ratio, twist in columns:
            J[:, column] += ratio * twist
    return J


def _column(joint: Joint, dof: DoF, slots: Mapping[Joint, Slot]) -> tuple[int, float]:
    if dof in joint._couplings:
        leader, leader_dof, ratio, _ = joint._couplings[dof].resolve()
        return slots[leader].v[leader_dof], ratio
    return slots[joint].v[dof], 1.0


def _turn(axis: Array, arm: Array) -> Array:
    return np.concatenate([np.cross(axis, arm), axis])
