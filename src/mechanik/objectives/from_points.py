"""Points of a link onto points: as much of a placement as they determine."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from mechanik.errors import NotFinite, ObjectiveError, ShapeError
from mechanik.mechanism.door import as_number
from mechanik.mechanism.link import Link
from mechanik.objectives.hinge import Hinge
from mechanik.objectives.objective import Wish
from mechanik.objectives.point import Point
from mechanik.objectives.pose_goal import PoseGoal
from mechanik.spatial import make
from mechanik.spatial.array import Array, ArrayLike

ONE_POINT = 1e-12
"""Points that lie closer together than this part of their distance to the origin differ by rounding."""


def from_points(
    link: str | Link,
    local_points: ArrayLike,
    target_points: ArrayLike,
    *,
    collinear: float = 1e-6,
    relative_to: str | Link | None = None,
    **wish: Unpack[Wish],
) -> Point | Hinge | PoseGoal:
    """The objective that brings points of a link onto target points, in the sense of least squares.

    One point, or equal ones, give a `Point`; points on a line a `Hinge` about that line; others a `PoseGoal`. Points
    that could only be reached by mirroring give the best rotation.

    Args:
        local_points: (n, 3), m, in the link; or one point (3,).
        target_points: (n, 3), m, in the world, or in the link `relative_to`; in the same order.
        collinear: points whose width is less than this part of their length count as lying on a line; exact ones come
            out at 1e-8, measured ones need more.
    """
    width = as_number(collinear, "collinear")
    local, target = _points(local_points, "local points"), _points(target_points, "target points")
    if len(local) != len(target):
        raise ShapeError(f"{len(local)} local points and {len(target)} target points are given; each needs its other")
    if not len(local):
        raise ObjectiveError("no points are given, so nothing is wanted; give at least one")
    p_local, p_target = local.mean(axis=0), target.mean(axis=0)
    from_local, from_target = local - p_local, target - p_target
    if _is_one_point(local, from_local) or _is_one_point(target, from_target):
        return Point(link, p_target, p_local, relative_to=relative_to, **wish)

    # The rotation R that maximises the sum of target . R local; Kabsch 1976, and Umeyama 1991 for reflections.
    # Scaled before they are squared, so that tiny or huge points lose no digits.
    U, spread, Vt = np.linalg.svd((from_target / np.abs(from_target).max()).T @ (from_local / np.abs(from_local).max()))
    if spread[0] <= ONE_POINT:  # no direction of the one list has to do with any of the other
        return Point(link, p_target, p_local, relative_to=relative_to, **wish)
    if spread[1] <= width**2 * spread[0]:
        return Hinge(link, p_target, U[:, 0], p_local, Vt[0], relative_to=relative_to, **wish)
    mirror = np.array([1.0, 1.0, np.sign(np.linalg.det(U) * np.linalg.det(Vt))])
    return PoseGoal(link, make((U * mirror) @ Vt, p_target), at=p_local, relative_to=relative_to, **wish)


def _is_one_point(points: Array, from_mean: Array) -> bool:
    return bool(np.abs(from_mean).max() <= ONE_POINT * np.abs(points).max())


def _points(points: ArrayLike, what: str) -> Array:
    """(n, 3), finite."""
    try:
        array = np.array(points, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{what} are (n, 3) numbers, not {points!r}") from None
    if array.size == 0:
        return np.zeros((0, 3))
    if array.shape == (3,):
        array = array[None]
    if array.ndim != 2 or array.shape[1] != 3:
        raise ShapeError(f"{what} are shaped (n, 3), not {array.shape}")
    if not np.isfinite(array).all():
        raise NotFinite(f"{what} have an entry that is not finite")
    return array
