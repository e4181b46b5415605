"""The linear model of one step, rows + jacobian s, as methods of least squares take it.

Three things may be done to it before a step is taken: errors are held back (Buss and Kim 2005 call it ClampMag),
columns at their limits are taken out, and what is only wished for is followed in the null space of what is required.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mechanik.kernels.compiler import kernel
from mechanik.kernels.dense import singular_values
from mechanik.kernels.problem import (
    AT_COLUMN_X,
    AT_LOWER,
    AT_STEP,
    AT_TRIAL,
    AT_UPPER,
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

Table = np.ndarray[Any, np.dtype[np.int64]]

FREE, HELD, LET_GO, HELD_FOR_GOOD = range(4)
ROUNDING = 1e-12
"""A slope below this share of what it could be is none."""


@kernel("void(f8[::1], f8[:,::1], i8[:,::1], f8[::1], f8[::1], f8[:,::1])")
def hold_back(rows: Array, jacobian: Array, effectors: Table, largest: Array, e: Array, J: Array) -> None:
    """Copy rows and Jacobian; each effector's rows become no longer than its `largest`."""
    m, n = jacobian.shape
    for r in range(m):
        e[r] = rows[r]
        for v in range(n):
            J[r, v] = jacobian[r, v]
    for k in range(len(largest)):
        first, end = effectors[k, 0], effectors[k, 1]
        square = 0.0
        for r in range(first, end):
            square += e[r] * e[r]
        if square > largest[k] * largest[k]:
            share = largest[k] / math.sqrt(square)
            for r in range(first, end):
                e[r] *= share


@kernel("b1(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], i8[::1], f8[:,::1], f8[:,::1])")
def settle_limits(
    I: Table,  # noqa: E741
    F: Array,
    jacobian: Array,
    wish_jacobian: Array,
    e: Array,
    y: Array,
    held: Table,
    J: Array,
    wish_J: Array,
) -> bool:
    """Zero the columns that the step would push through a limit; if there are none, let go those that want inside.

    A column that is held wants inside if the linear model would fall that way. Each is let go once. Returns whether
    anything has changed, so that the step has to be solved again. y (m,) is room to work in.
    """
    m, n = J.shape
    changed, any_held = False, False
    for v in range(n):
        k, go = I[I[AT_COLUMN_X] + v], F[I[AT_STEP] + v]
        any_held |= held[v] == HELD
        if k < 0 or go == 0.0:
            continue
        x = F[I[AT_TRIAL] + k]
        if (go < 0.0 and x <= F[I[AT_LOWER] + v]) or (go > 0.0 and x >= F[I[AT_UPPER] + v]):
            changed = True
            held[v] = HELD if held[v] == FREE else HELD_FOR_GOOD
            for r in range(m):
                J[r, v] = 0.0
            for r in range(wish_J.shape[0]):
                wish_J[r, v] = 0.0
    if changed or not any_held:
        return changed
    length = 0.0
    for r in range(m):
        length += e[r] * e[r]
        y[r] = e[r]
        for v in range(n):
            y[r] += J[r, v] * F[I[AT_STEP] + v]
    for v in range(n):
        if held[v] != HELD:
            continue
        slope, size = 0.0, 0.0
        for r in range(m):
            slope += jacobian[r, v] * y[r]
            size += jacobian[r, v] * jacobian[r, v]
        x, least = F[I[AT_TRIAL] + I[I[AT_COLUMN_X] + v]], ROUNDING * math.sqrt(length * size)
        if (slope < -least and x <= F[I[AT_LOWER] + v]) or (slope > least and x >= F[I[AT_UPPER] + v]):
            changed = True
            held[v] = LET_GO
            for r in range(m):
                J[r, v] = jacobian[r, v]
            for r in range(wish_J.shape[0]):
                wish_J[r, v] = wish_jacobian[r, v]
    return changed


@kernel("void(f8[::1], f8[:,::1], f8, f8, f8[:,::1], f8[::1], f8[:,::1], f8[::1])")
def spectral_step(
    e: Array, J: Array, damping: float, rank_tolerance: float, U: Array, s: Array, V: Array, step: Array
) -> None:
    """step = - sum of s_i / (s_i^2 + damping^2) (u_i . e) v_i over the s_i above rank_tolerance times the largest."""
    singular_values(J, U, s, V)
    for v in range(len(step)):
        step[v] = 0.0
    for i in range(len(s)):
        if s[i] > rank_tolerance * s[0]:
            dot = 0.0
            for r in range(len(e)):
                dot += U[i, r] * e[r]
            dot *= s[i] / (s[i] * s[i] + damping * damping)
            for v in range(len(step)):
                step[v] -= dot * V[i, v]


@kernel("void(f8[:,::1], f8[::1], f8, f8, f8[::1], f8[::1])")
def add_from_null_space(V: Array, s: Array, rank_tolerance: float, gain: float, wish: Array, step: Array) -> None:
    """step += gain (1 - sum of v_i v_i') wish; `wish` is used up."""
    for i in range(len(s)):
        if s[i] > rank_tolerance * s[0]:
            dot = 0.0
            for v in range(len(step)):
                dot += V[i, v] * wish[v]
            for v in range(len(step)):
                wish[v] -= dot * V[i, v]
    for v in range(len(step)):
        step[v] += gain * wish[v]


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
        hold_back(problem.rows, problem.jacobian, self.effectors, self._largest, self.e, self.J)
        if self.has_wishes:
            self._wish_J[:] = problem.wish_jacobian

    def solve(self, write_step: Callable[[], object], hold_at_limits: bool) -> None:
        """Write a step; if asked to, take out what it pushes through a limit, and write it again, until it does not."""
        write_step()
        if hold_at_limits:
            problem = self._problem
            self._held[:] = FREE
            while settle_limits(
                problem._ints, problem._floats, problem.jacobian, problem.wish_jacobian, self.e, self._y, self._held,
                self.J, self._wish_J,
            ):  # fmt: skip
                write_step()

    def spectral_step(self, damping: float, rank_tolerance: float = 0.0) -> None:
        """The damped least squares step, or with no damping that of the pseudo-inverse, by singular values."""
        spectral_step(self.e, self.J, damping, rank_tolerance, self.U, self.s, self.V, self.step)

    def add_wishes(self, gain: float, damping: float, rank_tolerance: float) -> None:
        """Go towards what is wished for as far as J lets it; U, s and V must be those of J."""
        spectral_step(
            self._problem.wish_rows, self._wish_J, damping, rank_tolerance, self._wish_U, self._wish_s, self._wish_V,
            self._wish,
        )  # fmt: skip
        add_from_null_space(self.V, self.s, rank_tolerance, gain, self._wish, self.step)

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
