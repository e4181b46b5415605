"""The six degrees of freedom (dofs) of joints and goals, and the joint values that reach a given pose.

The motion of a joint is T(x, y, z) Rz Ry Rx. The angles that reach a given rotation have a closed form for each subset
of free angles.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from enum import IntEnum

import numpy as np

from mechanik.errors import DoFError
from mechanik.spatial import euler, rotation
from mechanik.spatial.array import Array


class DoF(IntEnum):
    """A degree of freedom: three translations, then three Euler angles of the motion T(x, y, z) Rz Ry Rx.

    Example:
        >>> mk.DoF("EX") is mk.DoF.EX, mk.DoF.EX.is_rotation
        (True, True)
    """

    X = 0
    Y = 1
    Z = 2
    EX = 3
    EY = 4
    EZ = 5

    @classmethod
    def _missing_(cls, value: object) -> DoF | None:
        """Accept names: `DoF("EX")` is `DoF.EX`."""
        return cls.__members__.get(value.strip().upper()) if isinstance(value, str) else None

    @property
    def is_rotation(self) -> bool:
        return self >= DoF.EX

    @property
    def axis_index(self) -> int:
        """0, 1, 2 for a motion along or about x, y, z."""
        return self % 3


TRANSLATIONS = (DoF.X, DoF.Y, DoF.Z)
ROTATIONS = (DoF.EX, DoF.EY, DoF.EZ)
ALL_DOFS = TRANSLATIONS + ROTATIONS

DoFLike = DoF | int | str


def as_dof(dof_like: DoFLike) -> DoF:
    """Convert `DoF.EX`, 3 or "EX" to a `DoF`; raises `DoFError`."""
    try:
        return DoF(dof_like)
    except ValueError:
        names = ", ".join(dof.name for dof in DoF)
        raise DoFError(f"{dof_like!r} is not a degree of freedom; choose from {names}") from None


def as_dofs(dof_like: Iterable[DoFLike] | DoFLike) -> tuple[DoF, ...]:
    """Convert dofs to a tuple in ascending order.

    A wrong order or a repeated dof raises `DoFError`, since joint values are assigned in the order of the dofs.
    """
    try:
        dof_likes = [dof_like] if isinstance(dof_like, str | int) else list(dof_like)
    except TypeError:
        raise DoFError(f"{dof_like!r} are not degrees of freedom; choose from X Y Z EX EY EZ") from None
    dofs = tuple(as_dof(item) for item in dof_likes)
    for previous, dof in itertools.pairwise(dofs):
        if previous == dof:
            raise DoFError(f"dof {dof.name} is repeated")
        if previous > dof:
            raise DoFError(f"dof {dof.name} is after {previous.name}; the order must be X Y Z EX EY EZ")
    return dofs


GIMBAL_LOCK_COSINE = 1e-12
"""Cosine of the middle Euler angle below which only the sum or difference of the outer two angles is determined."""


def joint_values_from_pose(E: Array, free: Sequence[DoF], near: Array, lower: Array, upper: Array) -> Array:
    """Compute the six joint values, inside the limits, whose motion T Rz Ry Rx reaches the pose E (4, 4).

    The result is exact if such values exist, and close to the best fit otherwise. The values of dofs that are not free
    are zero.

    Args:
        E: (4, 4), pose in the axes of motion.
        free: the dofs of the joint.
        near: (6,), m and rad; of several equivalent angles the result is the one nearest to `near`.
        lower, upper: (6,), limits, m and rad.

    Returns:
        (6,), m and rad.
    """
    values = np.zeros(6)
    for dof in TRANSLATIONS:
        if dof in free:
            values[dof] = E[dof.axis_index, 3]
    rotations = [dof for dof in ROTATIONS if dof in free]
    candidates = [
        _add_full_turns(angles, near[3:], lower[3:], upper[3:])
        for angles in _angle_candidates(E[:3, :3], rotations, near)
    ]

    def cost(angles: Array) -> tuple[float, float]:
        """Return the distance from E and, to decide between equal distances, the distance from `near`."""
        R = rotation.about_z(angles[2]) @ rotation.about_y(angles[1]) @ rotation.about_x(angles[0])
        return round(float(np.abs(R - E[:3, :3]).sum()), 9), float(np.abs(angles - near[3:]).sum())

    best_angles = min(candidates, key=cost)
    for dof in rotations:
        values[dof] = best_angles[dof.axis_index]
    return np.where(np.isin(np.arange(6), free), np.clip(values, lower, upper), 0.0)


def _angle_candidates(R: Array, rotations: Sequence[DoF], near: Array) -> list[Array]:
    """Return all angle triples (ex, ey, ez) of the free dofs that reach R; accurate also near gimbal lock."""
    match rotations:
        case []:
            return [np.zeros(3)]
        case [dof]:
            return [_single_angle(dof, _closest_angle_about(dof, R))]
        case [DoF.EX, DoF.EY]:
            y = math.atan2(-R[2, 0], R[0, 0])
            return [np.array([_closest_angle_about(DoF.EX, rotation.about_y(y).T @ R), y, 0.0])]
        case [DoF.EY, DoF.EZ]:
            y = math.atan2(-R[2, 0], R[2, 2])
            return [np.array([0.0, y, _closest_angle_about(DoF.EZ, R @ rotation.about_y(y).T)])]
        case [DoF.EX, DoF.EZ]:
            z = math.atan2(R[1, 0], R[0, 0])
            return [np.array([_closest_angle_about(DoF.EX, rotation.about_z(z).T @ R), 0.0, z])]
        case _:
            # at gimbal lock `near` selects one outer angle; otherwise the result must not depend on `near`
            is_locked = math.hypot(R[0, 0], R[1, 0]) < GIMBAL_LOCK_COSINE
            z, y, x = euler.euler_from_matrix(
                R, order="zyx", axes="moving", near=near[[5, 4, 3]] if is_locked else None
            )
            return [np.array([x, y, z]), np.array([x + math.pi, math.pi - y, z + math.pi])][: 1 if is_locked else 2]


def _closest_angle_about(dof: DoF, R: Array) -> float:
    """Return the angle about one axis whose rotation is closest to R."""
    i, j = (dof.axis_index + 1) % 3, (dof.axis_index + 2) % 3
    return math.atan2(R[j, i] - R[i, j], R[i, i] + R[j, j])


def _single_angle(dof: DoF, angle: float) -> Array:
    angles = np.zeros(3)
    angles[dof.axis_index] = angle
    return angles


def _add_full_turns(angles: Array, near: Array, lower: Array, upper: Array) -> Array:
    """Add full turns to each angle: inside its limits and as near as possible to `near`, or else the closer limit."""
    full_turn = 2 * math.pi
    result = np.zeros(3)
    for k, (angle, low, high) in enumerate(zip(angles.tolist(), lower.tolist(), upper.tolist(), strict=True)):
        min_turns = -math.inf if low == -math.inf else math.ceil((low - angle) / full_turn)
        max_turns = math.inf if high == math.inf else math.floor((high - angle) / full_turn)
        if min_turns <= max_turns:
            turns = min(max(round((near[k] - angle) / full_turn), min_turns), max_turns)
            result[k] = min(max(angle + full_turn * turns, low), high)
        else:
            below, above = angle + full_turn * (min_turns - 1), angle + full_turn * min_turns
            result[k] = low if low - below < above - high else high
    return result
