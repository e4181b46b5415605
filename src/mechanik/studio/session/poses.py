"""Poses as messages have them, position and wxyz in a row, and as matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mechanik.errors import NotARotation, NotFinite, ShapeError
from mechanik.mechanism.door import read_only
from mechanik.spatial import Pose, as_pose_matrix, from_position_wxyz, quaternion
from mechanik.spatial.array import Array, ArrayLike
from mechanik.studio.messages.checks import FARTHEST, PoseNumbers

Place = ArrayLike | Pose
"""A pose (4, 4), a `Pose`, seven numbers (position, wxyz), or a point (3,)."""


def numbers_of(X: Array) -> PoseNumbers:
    """(4, 4) as position and wxyz."""
    (x, y, z), (a, b, c, d) = X[:3, 3].tolist(), quaternion.from_matrix(X[:3, :3]).tolist()
    return x, y, z, a, b, c, d


def rows_of(X: Array) -> Array:
    """(n, 4, 4) as (n, 7)."""
    rows = np.empty((len(X), 7))
    rows[:, :3] = X[:, :3, 3]
    rows[:, 3:] = quaternion.from_matrix(X[:, :3, :3])
    return rows


def matrix_of(numbers: Sequence[float]) -> Array:
    """Position and wxyz, of any length that is not zero, as (4, 4), read-only."""
    if len(numbers) != 7:
        raise ShapeError(f"a pose has 7 numbers, position and wxyz, not {len(numbers)}")
    if not all(math.isfinite(one) and abs(one) <= FARTHEST for one in numbers):
        raise NotFinite(f"every number of a pose is finite and within {FARTHEST:g}")
    length = math.hypot(*numbers[3:])
    if length < 1e-6:
        raise NotARotation("the turn of a pose is a zero quaternion; no turn at all is (1, 0, 0, 0)")
    wxyz = np.array(numbers[3:]) / length
    return read_only(from_position_wxyz(np.array(numbers[:3], dtype=np.float64), wxyz))


def as_matrix(place: Place, turn: Array | None = None, what: str = "pose of a goal") -> Array:
    """The door for poses that programs give, (4, 4), read-only.

    Args:
        turn: (3, 3) that a bare point takes; none if not given.
        what: it is, in words.
    """
    if not isinstance(place, Pose):
        shape = np.shape(place)
        if shape == (7,):
            return matrix_of(np.asarray(place, dtype=np.float64).tolist())
        if shape == (3,):
            X = np.eye(4)
            X[:3, :3] = np.eye(3) if turn is None else turn
            X[:3, 3] = np.asarray(place, dtype=np.float64)
            place = X
    X = as_pose_matrix(place, what)
    if X.shape != (4, 4):
        raise ShapeError(f"one pose is needed, not an array of shape {X.shape}")
    if np.abs(X).max() > FARTHEST:
        raise NotFinite(f"every number of a pose is finite and within {FARTHEST:g}")
    return read_only(X.copy())
