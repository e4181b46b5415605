"""The first-order motions that constraints leave: rank, null space, and which rows or columns depend on others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanik.mechanism.constraints import Constraint, constraints
from mechanik.mechanism.mechanism import Mechanism
from mechanik.spatial.array import Array

Mask = npt.NDArray[np.bool_]

RANK_TOLERANCE = 1e-8
"""Singular values below this share of the largest count as zero; lengths are in sizes of the mechanism."""
WEAK = 1e-6
"""A freedom that moves by less, of a motion of unit length, can neither drive it nor counts as moved by it."""
ROUNDING = 1e-12
"""A loop that is open by less, in sizes of the mechanism, is as shut as numbers allow."""


@dataclass(frozen=True, slots=True, eq=False)
class Motions:
    """All constraints at one q, scaled so that rows and columns have no unit.

    Attributes:
        q: (nq,).
        constraints: one for each closure.
        size: m, what counts as one unit of length.
        unit: (nv,), what one unit of each freedom is: 1 rad, or `size`.
        can_move: (nv,), False for freedoms that their limits hold in one place.
        A: (rows, nv), without units: v / unit to rows, lengths in sizes; zero columns where nothing can move.
        residual: (rows,), by how much each is off, without units.
    """

    q: Array
    constraints: tuple[Constraint, ...]
    size: float
    unit: Array
    can_move: Mask
    A: Array
    residual: Array

    @property
    def gap(self) -> float:
        return float(np.abs(self.residual).max(initial=0.0))

    @property
    def tolerance(self) -> float:
        """Singular values below this share of the largest count as zero: rounding, or what the gap may blur."""
        return max(RANK_TOLERANCE, 10.0 * self.gap)

    @property
    def rank(self) -> int:
        return rank_of(self.A, self.tolerance)

    @property
    def dof(self) -> int:
        return int(self.can_move.sum()) - self.rank

    def basis(self, rank: int | None = None) -> Array:
        """Motions v / unit (nv, k), orthonormal, that keep all constraints to first order.

        Args:
            rank: of A; found if it is not given.
        """
        A = self.A[:, self.can_move]
        found = np.zeros((len(self.can_move), A.shape[1] - (self.rank if rank is None else rank)))
        found[self.can_move] = null_space(A, self.rank if rank is None else rank)
        return found


def motions(mechanism: Mechanism, q: Array, active: Mask | None = None) -> Motions:
    """All constraints of a mechanism at q (nq,).

    Args:
        active: (nv,), what may move; all that its limits let move if it is not given.
    """
    return gathered(mechanism, q, constraints(mechanism, q), active)


def gathered(mechanism: Mechanism, q: Array, rows: Sequence[Constraint], active: Mask | None = None) -> Motions:
    """Some constraints, scaled alike."""
    space = mechanism.space
    size = size_of(mechanism, rows)
    unit = np.where(space.rotates, 1.0, size)
    can_move = np.ones(space.nv, dtype=np.bool_)
    can_move[space.scalars_v] = space.lower[space.scalars_q] < space.upper[space.scalars_q]
    if active is not None:
        can_move &= active
    scale = np.concatenate([np.ones(0), *(np.where(one.in_metres, 1.0 / size, 1.0) for one in rows)])
    A = np.concatenate([np.zeros((0, space.nv)), *(one.J for one in rows)]) * scale[:, None] * unit * can_move
    residual = np.concatenate([np.zeros(0), *(one.gap for one in rows)]) * scale
    return Motions(q, tuple(rows), size, unit, can_move, A, residual)


def size_of(mechanism: Mechanism, rows: Iterable[Constraint]) -> float:
    """m; the longest fixed length from joint to joint, or the extent of where loops are closed, if more; 1 if none."""
    fixed = np.concatenate([mechanism.kinematics.nodes[:, 9:12], mechanism.kinematics.ends[:, 9:12]])
    size = float(np.linalg.norm(fixed, axis=1).max(initial=0.0))
    points = np.concatenate([np.zeros((0, 3)), *(one.points for one in rows)])
    if len(points):
        size = max(size, float(np.ptp(points, axis=0).max()))
    return size if size > 1e-9 else 1.0


def rank_of(A: Array, tolerance: float = RANK_TOLERANCE) -> int:
    """How many singular values are above `tolerance` times the largest."""
    if not A.size:
        return 0
    sizes = np.linalg.svd(A, compute_uv=False)
    return int((sizes > tolerance * max(float(sizes[0]), 1e-12)).sum())


def null_space(A: Array, rank: int) -> Array:
    """Orthonormal columns (n, n - rank) that A (m, n) takes to zero, if that is its rank."""
    if not A.size:
        return np.eye(A.shape[1])[:, rank:]
    return np.linalg.svd(A)[2][rank:].T


def without(ways: Array, some: Array) -> Array:
    """What of the motions `ways` (nv, k), orthonormal, is at right angles to `some` of them (nv, j)."""
    if not some.shape[1]:
        return ways
    inside = ways.T @ some
    return ways @ null_space(inside.T, rank_of(inside, WEAK))


def independent(vectors: Array, order: Iterable[int], tolerance: float, largest: float | None = None) -> list[int]:
    """Of vectors (n, m), taken in an order, those that are no combination of the ones taken before.

    Args:
        tolerance: what counts as nothing, as a share of `largest`; of the longest vector if that is not given.
    """
    taken: list[int] = []
    basis = np.zeros((0, vectors.shape[1]))
    if largest is None:
        largest = float(np.linalg.norm(vectors, axis=1).max(initial=0.0))
    for k in order:
        if len(basis) == vectors.shape[1]:
            break
        rest = vectors[k].copy()
        for _ in range(2):  # once more, for what rounding leaves
            rest -= basis.T @ (basis @ rest)
        length = float(np.linalg.norm(rest))
        if length > tolerance * max(largest, 1e-12):
            taken.append(k)
            basis = np.vstack([basis, rest / length])
    return taken
