"""Poses along a way: for each t from 0 to 1 one."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from operator import index

import numpy as np

from mechanik.errors import NotFinite, ShapeError, WrongKind
from mechanik.spatial import Pose, rotation
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.pose import as_pose_matrix

METRES_A_RADIAN = 0.2
"""What a turn counts for, beside a way, where t is shared out among the pieces of a path."""
MEET = 1e-6
"""m and rad: how far the end of one path may be from the start of the next."""
FINE = 64
"""Pieces in which the size of a path is measured."""


class PosePath(ABC):
    """Called with t (...), from 0 to 1, it gives poses (..., 4, 4). Paths that meet are joined with `+`."""

    @abstractmethod
    def poses(self, t: Array) -> Array:
        """(n, 4, 4) at t (n,), which is inside 0 to 1."""

    def __call__(self, t: ArrayLike) -> Array:
        wanted = np.asarray(t, dtype=np.float64)
        if not np.isfinite(wanted).all():
            raise NotFinite(f"t of a path of poses has an entry that is not finite: {t!r}")
        if wanted.size and not (wanted.min() >= -1e-12 and wanted.max() <= 1.0 + 1e-12):
            raise ShapeError(
                f"t of a path of poses runs from 0 to 1, and this one from {wanted.min()} to {wanted.max()}"
            )
        return self.poses(np.clip(wanted, 0.0, 1.0).reshape(-1)).reshape(*wanted.shape, 4, 4)

    def sampled(self, count: int) -> Array:
        """(count, 4, 4), evenly in t, both ends among them."""
        number = index(count)
        if number < 2:
            raise ShapeError(f"a path is sampled at 2 or more places, not at {number}")
        return self(np.linspace(0.0, 1.0, number))

    def __add__(self, other: PosePath) -> PosePath:
        if not isinstance(other, PosePath):
            return NotImplemented
        mine = self.pieces if isinstance(self, Joined) else (self,)
        return Joined((*mine, *(other.pieces if isinstance(other, Joined) else (other,))))

    @property
    def length(self) -> float:
        """Of the way of the origin, m."""
        return float(_ways(self.sampled(4 * FINE + 1))[0].sum())

    @property
    def size(self) -> float:
        """The way and the turn together, m: what its share of t follows when it is joined to others."""
        way, turn = _ways(self.sampled(FINE + 1))
        return float((way + METRES_A_RADIAN * turn).sum())

    @staticmethod
    def through(poses: Sequence[Pose | ArrayLike] | ArrayLike) -> PosePath:
        """Straight from each pose to the next; see `Spline` for a smooth way."""
        from mechanik.paths.line import Line

        X = as_poses(poses)
        return Joined(tuple(Line(a, b) for a, b in itertools.pairwise(X)))


class Joined(PosePath):
    """Several paths one behind the other, each beginning where the one before ends.

    Attributes:
        pieces: at least one.
        ends: (k + 1,) the t at which each begins, and 1; by their sizes.
    """

    def __init__(self, pieces: Sequence[PosePath]) -> None:
        self.pieces: tuple[PosePath, ...] = tuple(pieces)
        for one in self.pieces:
            if not isinstance(one, PosePath):
                raise WrongKind(f"only paths of poses can be joined, not {one!r}")
        for k, (a, b) in enumerate(zip(self.pieces[:-1], self.pieces[1:], strict=True)):
            way, turn = _ways(np.array([a(1.0), b(0.0)]))
            if way[0] > MEET or turn[0] > MEET:
                raise ShapeError(
                    f"piece {k + 1} of a path begins {way[0]:.3g} m and {turn[0]:.3g} rad away from the end of the "
                    "piece before it; put a Line between them"
                )
        sizes = np.array([one.size for one in self.pieces])
        if not sizes.sum() > 0.0:
            sizes = np.ones(len(sizes))
        self.ends = np.append(0.0, np.cumsum(sizes) / sizes.sum())

    def poses(self, t: Array) -> Array:
        k = np.clip(np.searchsorted(self.ends, t, side="right") - 1, 0, len(self.pieces) - 1)
        span = self.ends[k + 1] - self.ends[k]
        inside = np.clip((t - self.ends[k]) / np.where(span > 0.0, span, 1.0), 0.0, 1.0)
        X = np.empty((len(t), 4, 4))
        for number, piece in enumerate(self.pieces):
            if (mine := k == number).any():
                X[mine] = piece.poses(inside[mine])
        return X


def as_poses(poses: Sequence[Pose | ArrayLike] | ArrayLike, least: int = 2) -> Array:
    """The door for several poses: (n, 4, 4) from an array, or from a list of poses of any form."""
    listed = [as_pose_matrix(one, f"pose {k}") for k, one in enumerate(poses)]  # type: ignore[arg-type]
    if len(listed) < least:
        raise ShapeError(f"a path leads through {least} or more poses, not {len(listed)}")
    for k, one in enumerate(listed):
        if one.shape != (4, 4):
            raise ShapeError(f"pose {k} of a path is (4, 4), not of shape {one.shape}")
    return np.array(listed)


def one_pose(thing: Pose | ArrayLike, what: str) -> Array:
    """The door for one pose: (4, 4)."""
    X = as_pose_matrix(thing, what)
    if X.shape != (4, 4):
        raise ShapeError(f"{what} is one pose, (4, 4), not of shape {X.shape}")
    return X


def _ways(X: Array) -> tuple[Array, Array]:
    """How far each of poses (n, 4, 4) is from the one before, (n - 1,) each: m and rad."""
    R = X[:, :3, :3]
    turns = rotation.log(np.swapaxes(R[:-1], 1, 2) @ R[1:])
    return np.linalg.norm(np.diff(X[:, :3, 3], axis=0), axis=1), np.linalg.norm(turns, axis=1)
