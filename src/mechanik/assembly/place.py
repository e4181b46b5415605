"""A place on the way of a driven mechanism, and how it can go on from there.

At (q, s) all rows are zero: the loops are shut, and the drives are where s says. Their derivatives A by (u, s) are a
row each, and what A takes to zero are the directions in which it can go.
"""

from __future__ import annotations

import numpy as np

from mechanik.assembly.drives import Drives
from mechanik.assembly.loops import Loops, Mask
from mechanik.spatial.array import Array

RANK = 1e-7
"""A singular value below this share of the largest is zero."""
SHUT = 1e-12
"""Rows (rad, sizes) below this are zero."""
EXACT = 1e-15
TINY = 1e-14
"""Added to squares of singular values, so that rows that say nothing new do no harm."""


class Place:
    """
    Attributes:
        q: (nq,).
        s: how far the drives have come.
        A: (m, n + 1) derivatives of all rows, loops first, by u and by s; columns that are held are zero.
        error: the largest row.
    """

    __slots__ = ("A", "_decomposed", "error", "q", "s")

    def __init__(self, q: Array, s: float, A: Array, error: float) -> None:
        self.q, self.s, self.A, self.error = q, s, A, error
        self._decomposed: tuple[Array, Array] | None = None

    @property
    def sizes(self) -> Array:
        """The singular values of A, falling."""
        return self._decompose()[0]

    @property
    def V(self) -> Array:
        """(n + 1, n + 1) its right singular vectors, as rows."""
        return self._decompose()[1]

    @property
    def rank(self) -> int:
        return int((self.sizes > RANK * max(float(self.sizes[0]), 1e-12)).sum()) if len(self.sizes) else 0

    def size(self, rank: int) -> float:
        """The singular value that keeps A at a rank, as a share of the largest: zero where it falls below."""
        if rank == 0 or not len(self.sizes):
            return 1.0
        return float(self.sizes[rank - 1] / self.sizes[0]) if rank <= len(self.sizes) else 0.0

    def within(self, z: Array, rank: int) -> Array:
        """The part of z (n + 1,) that changes no row, if A has that rank."""
        N = self.V[rank:]
        return N.T @ (N @ z)

    def _decompose(self) -> tuple[Array, Array]:
        if self._decomposed is None:
            if len(self.A):
                _, sizes, V = np.linalg.svd(self.A, full_matrices=True)
                self._decomposed = np.asarray(sizes), np.asarray(V)
            else:
                self._decomposed = np.zeros(0), np.eye(self.A.shape[1])
        return self._decomposed


class Course:
    """All rows of a mechanism on its way, as functions of (q, s).

    Attributes:
        held: (nv,) freedoms that stay, since they stand at a limit.
    """

    def __init__(self, loops: Loops, drives: Drives) -> None:
        self.loops, self.drives = loops, drives
        self.held: Mask = np.zeros(loops.n, dtype=np.bool_)
        self._driven = drives.columns()

    @property
    def n(self) -> int:
        return self.loops.n

    @property
    def end(self) -> Array:
        """(n + 1,) the direction in which only s grows."""
        z = np.zeros(self.n + 1)
        z[-1] = 1.0
        return z

    def rows(self, q: Array, s: float) -> tuple[Array, Array]:
        """(m,) and (m, n + 1)."""
        e, J = self.loops.rows(q)
        drive, J_drive, by_s = self.drives.rows(q, s)
        A = np.zeros((len(e) + len(drive), self.n + 1))
        A[: len(e), :-1], A[len(e) :, :-1], A[len(e) :, -1] = J, J_drive, by_s
        A[:, :-1][:, self.held] = 0.0
        return np.concatenate([e, drive]), A

    def beyond(self, q: Array) -> tuple[float, str]:
        """As that of the loops; drives do not count, since their way begins and ends inside their limits."""
        return self.loops.beyond(q, self._driven)

    def place(self, q: Array, s: float) -> Place:
        e, A = self.rows(q, s)
        return _place(q, s, e, A)

    def step(self, q: Array, s: float, z: Array) -> tuple[Array, float]:
        return self.loops.step(q, z[:-1]), s + float(z[-1])

    def apart(self, a: Place, b: Place) -> Array:
        """(n + 1,) from a to b."""
        return np.append(self.loops.apart(a.q, b.q), b.s - a.s)

    def is_same(self, a: Array, b: Array) -> bool:
        """Whether two configurations look the same, to 1e-6; full turns of hinges aside."""
        u = self.loops.apart(a, b) * self.loops.unit
        is_angle = self.loops.mechanism.space.rotates & (self.loops.columns >= 0)
        u = np.where(is_angle, u - 2 * np.pi * np.round(u / (2 * np.pi)), u)
        return bool(np.abs(u).max(initial=0.0) < 1e-6)

    def settle(self, q: Array, s: float, across: Array, steps: int = 8, enough: float = EXACT) -> Place:
        """Newton's method to where all rows are zero, by the shortest way that is normal to `across` (k, n + 1).

        It goes on until the largest row is below `enough`, or nothing is gained any more; a step that makes it worse is
        not taken.
        """
        e, A = self.rows(q, s)
        error = float(np.abs(e).max(initial=0.0))
        for _ in range(steps):
            if error < enough:
                break
            M = np.concatenate([A, across])
            z = shortest(M, np.append(-e, np.zeros(len(across))))
            z[:-1][self.held] = 0.0
            q_new, s_new = self.step(q, s, z)
            e_new, A_new = self.rows(q_new, s_new)
            error_new = float(np.abs(e_new).max(initial=0.0))
            if not error_new < error:
                break
            q, s, e, A = q_new, s_new, e_new, A_new
            error, gained = error_new, error_new < 0.5 * error
            if error < SHUT and not gained:
                break
        return _place(q, s, e, A)

    def settle_at(self, q: Array, s: float) -> Place:
        """The same with s as it is."""
        return self.settle(q, s, self.end[None])


def _place(q: Array, s: float, e: Array, A: Array) -> Place:
    return Place(q, s, A, float(np.abs(e).max(initial=0.0)))


def shortest(M: Array, r: Array) -> Array:
    """The shortest z with M z = r (m,), or as near to it as there is.

    By normal equations, which are quick; what they lose of the digits, the next step of Newton's method makes good.
    """
    m, n = M.shape
    if m <= n:
        return M.T @ np.linalg.solve(M @ M.T + TINY * np.eye(m), r)
    return np.asarray(np.linalg.solve(M.T @ M + TINY * np.eye(n), M.T @ r), dtype=np.float64)


def same_side(a: Place, ta: Array, b: Place, tb: Array) -> bool:
    """Whether rows grow to the same side of the curve at a and b: the sign of a determinant."""
    both = a.A.T @ b.A + np.outer(ta, tb)
    return bool(np.linalg.slogdet(both)[0] > 0.0)


def cubic(x: float, chord: Array, a: Array, b: Array) -> Array:
    """At x in 0 to 1 on the curve from 0 to `chord` that leaves with a and comes in with b."""
    return (x**3 - 2 * x**2 + x) * a + (3 * x**2 - 2 * x**3) * chord + (x**3 - x**2) * b


def between(course: Course, a: Place, ta: Array, b: Place, tb: Array, s: float) -> Array:
    """By a cubic through two places with their directions: about which q (nq,) the curve has at this s."""
    chord = course.apart(a, b)
    far, sign = float(np.linalg.norm(chord)), np.sign(b.s - a.s)
    low, high = 0.0, 1.0
    for _ in range(40):
        x = 0.5 * (low + high)
        if sign * (a.s + float(cubic(x, chord, far * ta, far * tb)[-1]) - s) < 0.0:
            low = x
        else:
            high = x
    return course.step(a.q, a.s, cubic(low, chord, far * ta, far * tb))[0]
