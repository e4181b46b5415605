"""The values that freedoms must have for their motion to come to a given pose."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mechanik.mechanism.dof import ROTATIONS, TRANSLATIONS, DoF
from mechanik.spatial import euler, rotation
from mechanik.spatial.array import Array


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
    ways = [_unwound(angles, near, lower, upper) for angles in _angles(E[:3, :3], turns, near)]
    inside = [np.clip(way, lower[3:], upper[3:]) for way in ways]
    # of the ways to turn there, the one that the limits spoil least, then the one that is nearest
    best = min(
        range(len(ways)),
        key=lambda i: (np.abs(inside[i] - ways[i]).sum().round(9), np.abs(ways[i] - near[3:]).sum()),
    )
    for dof in turns:
        values[dof] = inside[best][dof.direction]
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
            z, y, x = euler.euler_from_matrix(R, order="zyx", axes="moving", near=near[[5, 4, 3]])
            return [np.array([x, y, z]), np.array([x + math.pi, math.pi - y, z + math.pi])]


def _about(dof: DoF, R: Array) -> float:
    """The turn about one axis that comes closest to R."""
    i, j = (dof.direction + 1) % 3, (dof.direction + 2) % 3
    return math.atan2(R[j, i] - R[i, j], R[i, i] + R[j, j])


def _only(dof: DoF, angle: float) -> Array:
    angles = np.zeros(3)
    angles[dof.direction] = angle
    return angles


def _unwound(angles: Array, near: Array, lower: Array, upper: Array) -> Array:
    """The same angles, by full turns as near as can be to `near`, or else inside the limits if they can be."""
    found = angles + 2 * math.pi * np.round((near[3:] - angles) / (2 * math.pi))
    for k, (low, high) in enumerate(zip(lower[3:], upper[3:], strict=True)):
        if found[k] < low and found[k] + 2 * math.pi * math.ceil((low - found[k]) / (2 * math.pi)) <= high:
            found[k] += 2 * math.pi * math.ceil((low - found[k]) / (2 * math.pi))
        elif found[k] > high and found[k] - 2 * math.pi * math.ceil((found[k] - high) / (2 * math.pi)) >= low:
            found[k] -= 2 * math.pi * math.ceil((found[k] - high) / (2 * math.pi))
    return found
