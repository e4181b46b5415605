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
    """One of six dofs: X, Y, Z are the translations and EX, EY, EZ the angles of the motion T(x, y, z) Rz Ry Rx.

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
        """Whether the dof is an angle (EX, EY, EZ; rad) and not a translation (X, Y, Z; m)."""
        return self >= DoF.EX

    @property
    def unit(self) -> str:
        """Unit of the values: "rad" for a rotation, "m" for a translation."""
        return "rad" if self.is_rotation else "m"

    @property
    def axis_index(self) -> int:
        """The index of the axis of the motion: 0, 1, 2 for x, y, z."""
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
    """Convert dofs, which must be in ascending order, to a tuple.

    A wrong order or a repeated dof raises `DoFError`, since joint values are assigned in the order of the dofs.
    """
    try:
        dof_likes = [dof_like] if isinstance(dof_like, str | int) else list(dof_like)
    except TypeError:
        raise DoFError(f"{dof_like!r} is not a list of degrees of freedom; choose from X Y Z EX EY EZ") from None
    dofs = tuple(as_dof(item) for item in dof_likes)
    for previous_dof, dof in itertools.pairwise(dofs):
        if previous_dof == dof:
            raise DoFError(f"dof {dof.name} is repeated")
        if previous_dof > dof:
            raise DoFError(f"dof {dof.name} is after {previous_dof.name}; the order must be X Y Z EX EY EZ")
    return dofs


GIMBAL_LOCK_COSINE = 1e-12
"""At gimbal lock the cosine of the angle about y is below this number, and only the sum or the difference of the other
two angles is determined."""


def joint_values_from_pose(
    X_axes_end: Array, free_dofs: Sequence[DoF], preferred_values: Array, lower: Array, upper: Array
) -> Array:
    """Compute the six joint values, inside the limits, whose motion T Rz Ry Rx reaches a pose.

    The result is exact if such values exist, and close to the best fit otherwise. The values of dofs that are not free
    are zero.

    Args:
        X_axes_end: (4, 4), the pose to reach, in the axes of motion.
        free_dofs: the dofs of the joint.
        preferred_values: (6,), m and rad; among equivalent angles inside the limits, those nearest to these values are
            returned.
        lower, upper: (6,), limits, m and rad.

    Returns:
        (6,), m and rad.
    """
    values = np.zeros(6)
    for dof in TRANSLATIONS:
        if dof in free_dofs:
            values[dof] = X_axes_end[dof.axis_index, 3]
    rotations = [dof for dof in ROTATIONS if dof in free_dofs]
    candidate_angles = [
        _add_full_rotations(angles, preferred_values[3:], lower[3:], upper[3:])
        for angles in _angle_candidates(X_axes_end[:3, :3], rotations, preferred_values, lower, upper)
    ]

    def cost(angles: Array) -> tuple[float, float]:
        """Return the error of the rotation, then the distance from the preferred angles, which decides ties."""
        R = rotation.about_z(angles[2]) @ rotation.about_y(angles[1]) @ rotation.about_x(angles[0])
        return round(float(np.abs(R - X_axes_end[:3, :3]).sum()), 9), float(np.abs(angles - preferred_values[3:]).sum())

    best_angles = min(candidate_angles, key=cost)
    for dof in rotations:
        values[dof] = best_angles[dof.axis_index]
    return np.where(np.isin(np.arange(6), free_dofs), np.clip(values, lower, upper), 0.0)


def _angle_candidates(
    R: Array, rotations: Sequence[DoF], preferred_values: Array, lower: Array, upper: Array
) -> list[Array]:
    """Return the angle triples (ex, ey, ez), rad, with which the free dofs reach R; accurate also near gimbal lock.

    At gimbal lock infinitely many triples reach R, and the result contains those with ex or ez at its preferred value
    or at a limit. If no triple reaches R, the result is a triple close to the best fit.
    """
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
            z, y, x = euler.euler_from_matrix(R, order="zyx", axes="moving")
            if math.hypot(R[0, 0], R[1, 0]) < GIMBAL_LOCK_COSINE:
                return _gimbal_lock_candidates(np.array([x, y, z]), preferred_values, lower, upper)
            return [np.array([x, y, z]), np.array([x + math.pi, math.pi - y, z + math.pi])]


def _gimbal_lock_candidates(angles: Array, preferred_values: Array, lower: Array, upper: Array) -> list[Array]:
    """Return triples (ex, ey, ez), rad, equivalent to `angles` at gimbal lock, with ex or ez preferred or at a limit.

    The equivalent triples are lines in the plane of ex and ez, of slope 1 or -1. Such a line enters the region inside
    the limits at a limit, unless there are no limits; so one of the candidates is inside if any equivalent triple is.
    """
    x, y, z = angles.tolist()
    slope = math.copysign(1.0, y)  # Rz Ry Rx depends on ex - ez at ey = pi/2, on ex + ez at ey = -pi/2
    candidates: list[Array] = []
    for values in (preferred_values, lower, upper):
        if math.isfinite(values[DoF.EZ]):
            candidates.append(np.array([x + slope * (values[DoF.EZ] - z), y, values[DoF.EZ]]))
        if math.isfinite(values[DoF.EX]):
            candidates.append(np.array([values[DoF.EX], y, z + slope * (values[DoF.EX] - x)]))
    return candidates


def _closest_angle_about(dof: DoF, R: Array) -> float:
    """Return the angle, rad, about the axis of `dof` whose rotation is closest to R."""
    i, j = (dof.axis_index + 1) % 3, (dof.axis_index + 2) % 3
    return math.atan2(R[j, i] - R[i, j], R[i, i] + R[j, j])


def _single_angle(dof: DoF, angle: float) -> Array:
    angles = np.zeros(3)
    angles[dof.axis_index] = angle
    return angles


def _add_full_rotations(angles: Array, preferred_angles: Array, lower: Array, upper: Array) -> Array:
    """Add full rotations to each angle, so that it is inside its limits and as near as possible to its preferred angle.

    If no equivalent angle is inside the limits, the result is the closer limit. Arrays are (3,), rad.
    """
    full_rotation = 2 * math.pi
    result = np.zeros(3)
    for k, (angle, low, high) in enumerate(zip(angles.tolist(), lower.tolist(), upper.tolist(), strict=True)):
        min_count = -math.inf if low == -math.inf else math.ceil((low - angle) / full_rotation)
        max_count = math.inf if high == math.inf else math.floor((high - angle) / full_rotation)
        if min_count <= max_count:
            count = min(max(round((preferred_angles[k] - angle) / full_rotation), min_count), max_count)
            result[k] = min(max(angle + full_rotation * count, low), high)
        else:
            angle_below, angle_above = angle + full_rotation * (min_count - 1), angle + full_rotation * min_count
            result[k] = low if low - angle_below < angle_above - high else high
    return result
