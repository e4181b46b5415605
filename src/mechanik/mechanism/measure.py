"""The values that freedoms must have for their motion to come to a given pose."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mechanik.mechanism.dof import ROTATIONS, TRANSLATIONS, DoF
from mechanik.spatial import euler, rotation
from mechanik.spatial.array import Array

LOCKED = 1e-12
"""The cosine of the middle Euler angle below which the other two cannot be told apart."""


def measure(E: Array, free: Sequence[DoF], near: Array, lower: Array, upper: Array) -> Array:
    """Six values, zero where not free and inside the limits, whose motion T Rz Ry Rx comes to the pose E (4, 4).

    Exact where there are such values, and close to the best where there are none.

    Args:
        near: (6,), which of angles that mean the same are wanted.
        lower, upper: (6,).
    """
    values = np.zeros(6)
    for dof in TRANSLATIONS:
        if dof in free:
            values[dof] = E[dof.direction, 3]
    turns = [dof for dof in ROTATIONS if dof in free]
    ways = [_unwound(angles, near[3:], lower[3:], upper[3:]) for angles in _angles(E[:3, :3], turns, near)]

    def worth(angles: Array) -> tuple[float, float]:
        """How far from E it ends, and how far from `near` it lies; the first decides."""
        R = rotation.turn_z(angles[2]) @ rotation.turn_y(angles[1]) @ rotation.turn_x(angles[0])
        return round(float(np.abs(R - E[:3, :3]).sum()), 9), float(np.abs(angles - near[3:]).sum())

    best = min(ways, key=worth)
    for dof in turns:
        values[dof] = best[dof.direction]
    return np.where(np.isin(np.arange(6), free), np.clip(values, lower, upper), 0.0)


def _angles(R: Array, turns: Sequence[DoF], near: Array) -> list[Array]:
    """All ways to turn to R by the free angles (ex, ey, ez); well-conditioned also where Euler angles are not."""
    match turns:
        case []:
            return [np.zeros(3)]
        case [dof]:
            return [_only(dof, _about(dof, R))]
        case [DoF.EX, DoF.EY]:
            y = math.atan2(-R[2, 0], R[0, 0])
            return [np.array([_about(DoF.EX, rotation.turn_y(y).T @ R), y, 0.0])]
        case [DoF.EY, DoF.EZ]:
            y = math.atan2(-R[2, 0], R[2, 2])
            return [np.array([0.0, y, _about(DoF.EZ, R @ rotation.turn_y(y).T)])]
        case [DoF.EX, DoF.EZ]:
            z = math.atan2(R[1, 0], R[0, 0])
            return [np.array([_about(DoF.EX, rotation.turn_z(z).T @ R), 0.0, z])]
        case _:
            # where the outer turns cannot be told apart, one of them stays; elsewhere no bit may depend on `near`
            locked = math.hypot(R[0, 0], R[1, 0]) < LOCKED
            z, y, x = euler.euler_from_matrix(R, order="zyx", axes="moving", near=near[[5, 4, 3]] if locked else None)
            return [np.array([x, y, z]), np.array([x + math.pi, math.pi - y, z + math.pi])][: 1 if locked else 2]


def _about(dof: DoF, R: Array) -> float:
    """The turn about one axis that comes closest to R."""
    i, j = (dof.direction + 1) % 3, (dof.direction + 2) % 3
    return math.atan2(R[j, i] - R[i, j], R[i, i] + R[j, j])


def _only(dof: DoF, angle: float) -> Array:
    angles = np.zeros(3)
    angles[dof.direction] = angle
    return angles


def _unwound(angles: Array, near: Array, lower: Array, upper: Array) -> Array:
    """The same angles, by full turns inside the limits and as near as can be to `near`; else at the closer limit."""
    turn = 2 * math.pi
    found = np.zeros(3)
    for k, (angle, low, high) in enumerate(zip(angles.tolist(), lower.tolist(), upper.tolist(), strict=True)):
        fewest = -math.inf if low == -math.inf else math.ceil((low - angle) / turn)
        most = math.inf if high == math.inf else math.floor((high - angle) / turn)
        if fewest <= most:
            turns = min(max(round((near[k] - angle) / turn), fewest), most)
            found[k] = min(max(angle + turn * turns, low), high)
        else:
            below, above = angle + turn * (fewest - 1), angle + turn * fewest
            found[k] = low if low - below < above - high else high
    return found
