"""The linear model of one step, rows + jacobian s, as methods of least squares take it.

Three things may be done to it before a step is taken: errors are held back (Buss and Kim 2005 call it ClampMag),
columns at their limits are taken out, and what is only wished for is followed in the null space of what is required.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mechanik.kernels.methods.least_squares_steps import FREE, Table
from mechanik.kernels.problem import (
    AXIS,
    BLOCK_INTS,
    DISTANCE,
    FIRST_ROW,
    HEIGHT,
    KIND,
    MASK,
    MASS,
    POSE,
    ROWS,
    VALUE,
    X_INDEX,
)
from mechanik.solvers.problem import Problem
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

steps = kernel_module("methods.least_squares_steps")


class LinearModel:
    """
    Attributes:
        e, J: (m,), (m, n) the required rows and their Jacobian, in the problem's units: weighted, lengths in sizes.
        effectors: (g, 2) first row and end of each effector: the lengths of a goal are one, and its angles another.
        step: (n,) the problem's.
        U, s, V: (k, m), (k,), (k, n) the singular values of J and their vectors, as rows, if they were asked for.
    """

    def __init__(self, problem: Problem, D_max: float = math.inf, D_max_angle: float = math.inf) -> None:
        """
        Args:
            D_max, D_max_angle: m and rad; effectors that are farther off pull only this hard.
        """
        self._problem, self.step = problem, problem.step
        m, n = problem.jacobian.shape
        k, w = min(m, n), len(problem.wish_rows)
        self.e, self.J = np.empty(m), np.empty((m, n))
        self.U, self.s, self.V = np.empty((k, m)), np.empty(k), np.empty((k, n))
        self.effectors, largest = _effectors(problem, D_max, D_max_angle)
        self._largest = largest if np.isfinite(largest).any() else largest[:0]
        self._wish_J = np.zeros((w, n))
        k = min(w, n)
        self._wish_U, self._wish_s, self._wish_V = np.empty((k, w)), np.empty(k), np.empty((k, n))
        self._wish = np.empty(n)
        self._y, self._held = np.empty(m), np.zeros(n, dtype=np.int64)
        self.has_wishes = w > 0

    def renew(self) -> None:
        """As the problem stands now."""
        problem = self._problem
        steps.hold_back(problem.rows, problem.jacobian, self.effectors, self._largest, self.e, self.J)
        if self.has_wishes:
            self._wish_J[:] = problem.wish_jacobian

    def solve(self, write_step: Callable[[], object], hold_at_limits: bool) -> None:
        """Write a step; if asked to, take out what it pushes through a limit, and write it again, until it does not."""
        write_step()
        if hold_at_limits:
            problem = self._problem
            self._held[:] = FREE
            while steps.settle_limits(
                problem._ints, problem._floats, problem.jacobian, problem.wish_jacobian, self.e, self._y, self._held,
                self.J, self._wish_J,
            ):  # fmt: skip
                write_step()

    def spectral_step(self, damping: float, rank_tolerance: float = 0.0) -> None:
        """The damped least squares step, or with no damping that of the pseudo-inverse, by singular values."""
        steps.spectral_step(self.e, self.J, damping, rank_tolerance, self.U, self.s, self.V, self.step)

    def add_wishes(self, gain: float, damping: float, rank_tolerance: float) -> None:
        """Go towards what is wished for as far as J lets it; U, s and V must be those of J."""
        steps.spectral_step(
            self._problem.wish_rows, self._wish_J, damping, rank_tolerance, self._wish_U, self._wish_s, self._wish_V,
            self._wish,
        )  # fmt: skip
        steps.add_from_null_space(self.V, self.s, rank_tolerance, gain, self._wish, self.step)

    def shorten(self, gamma_max: float) -> None:
        """Scale the step so that no column goes farther than gamma_max (rad, or sizes)."""
        if gamma_max < math.inf:
            longest = float(np.abs(self.step).max(initial=0.0))
            if longest > gamma_max:
                self.step *= gamma_max / longest


def _effectors(problem: Problem, D_max: float, D_max_angle: float) -> tuple[Table, Array]:
    """Rows that belong together, and how long each may be in the rows' units."""
    at, skeleton = problem.part.packed.at, problem.program.skeleton
    found: list[tuple[int, int]] = []
    largest: list[float] = []
    for block in at["blocks"].reshape(-1, BLOCK_INTS)[: problem._required].tolist():
        kind, first, height = block[KIND], block[FIRST_ROW], block[ROWS]
        lengths = 0
        if kind in (POSE, AXIS):
            lengths = (block[MASK] & 7).bit_count()
        elif kind in (DISTANCE, MASS, HEIGHT) or (
            kind == VALUE and not skeleton.rotates[skeleton.v_of_x[block[X_INDEX]]]
        ):
            lengths = height
        for start, end, most in ((first, first + lengths, D_max), (first + lengths, first + height, D_max_angle)):
            if end > start:
                found.append((start, end))
                largest.append(most * float(at["weight"][start]))
    return np.array(found, dtype=np.int64).reshape(-1, 2), np.array(largest)
