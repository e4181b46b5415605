"""Quasi-Newton with limits: curvature learned from the last few steps, on the columns that are free to go."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar

import numpy as np

from mechanik.errors import LimitsError
from mechanik.kernels.compiler import helper, kernel
from mechanik.mechanism.door import as_number
from mechanik.solvers.gradient_descent import shorter
from mechanik.solvers.method import Method
from mechanik.solvers.problem import Problem
from mechanik.solvers.slope import Slope
from mechanik.spatial.array import Array

SUFFICIENT, LEAST_SHARE = 1e-4, 1e-12
"""Which share of the fall that the slope promises has to come true, and below which share of a step none is tried."""
LEAST_CURVATURE = 1e-12
"""Pairs that are flatter than that, relative to the square of y, say nothing."""
LEAST_SLOPE = 1e-10
"""The cosine between a step and the way straight down below which the gradient is followed instead."""


@helper
def linear_length(J: Array, step: Array) -> float:
    """How many times a step would serve a linear mechanism best, if it leads straight down."""
    square, bent = 0.0, 0.0
    for v in range(step.shape[0]):
        square += step[v] * step[v]
    for i in range(J.shape[0]):
        row = 0.0
        for v in range(step.shape[0]):
            row += J[i, v] * step[v]
        bent += row * row
    return square / bent if bent > 0.0 else 0.0


@kernel("f8(f8[:,::1], f8[::1], f8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], i8, i8, f8, f8[::1])")
def quasi_newton_step(
    J: Array, gradient: Array, low: Array, high: Array, S: Array, Y: Array, kept: Array, free: Array, count: int,
    newest: int, largest: float, step: Array,
) -> float:  # fmt: skip
    """step = -H gradient over the free columns, by the two loops of Nocedal, cut to the room that there is.

    Args:
        S, Y: (m, n), steps and changes of the gradient, in a ring.
        kept, free: (2, m) and (n,), room to work in.
        count, newest: how many pairs there are, and where the last one is.
        largest: of the numbers of the step.

    Returns:
        The slope along the step.
    """
    m, n = S.shape
    share, curvature = kept[0], kept[1]
    for v in range(n):
        stuck = (gradient[v] > 0.0 and low[v] == 0.0) or (gradient[v] < 0.0 and high[v] == 0.0)
        free[v] = 0.0 if stuck else 1.0
        step[v] = -free[v] * gradient[v]
    gamma = 0.0
    for j in range(count):
        i, bend, square, dot = (newest - j) % m, 0.0, 0.0, 0.0
        for v in range(n):
            bend += free[v] * S[i, v] * Y[i, v]
            square += free[v] * Y[i, v] * Y[i, v]
            dot += S[i, v] * step[v]
        curvature[i] = bend if bend > LEAST_CURVATURE * square else 0.0
        if curvature[i] > 0.0:
            share[i] = dot / bend
            gamma = bend / square if gamma == 0.0 else gamma
            for v in range(n):
                step[v] -= share[i] * free[v] * Y[i, v]
    gamma = linear_length(J, step) if gamma == 0.0 else gamma
    for v in range(n):
        step[v] *= gamma
    for j in range(count - 1, -1, -1):
        i, dot = (newest - j) % m, 0.0
        if curvature[i] > 0.0:
            for v in range(n):
                dot += Y[i, v] * step[v]
            for v in range(n):
                step[v] += (share[i] - dot / curvature[i]) * free[v] * S[i, v]
    fall = 0.0
    for attempt in range(2):
        longest, square, steepness = 0.0, 0.0, 0.0
        for v in range(n):
            if attempt == 1:  # cut by limits, the step led up; the gradient never does
                step[v] = -gamma * free[v] * gradient[v]
            longest = max(longest, abs(step[v]))
        shrink, fall = largest / longest if longest > largest else 1.0, 0.0
        for v in range(n):
            step[v] = min(max(shrink * step[v], low[v]), high[v])
            fall += step[v] * gradient[v]
            square += step[v] * step[v]
            steepness += free[v] * gradient[v] * gradient[v]
        if fall < -LEAST_SLOPE * math.sqrt(square * steepness):
            break
    return fall


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedMemory(Method):
    """
    Curvature is learned as in the paper. Limits are handled more simply: columns that are pushed against theirs are
    left out, the others' step is cut to the room that there is, and then shortened until the error falls; the paper
    first walks along the projected gradient to find out which limits to hold.

    Attributes:
        m: how many steps are remembered.
        largest_step: rad, or sizes of the mechanism; how far one column goes at most in a step. Longer ones run joints
            into limits where they stay. 0.4 was tuned on random targets of five arms.
    """

    name: ClassVar[str] = "lbfgsb"
    title: ClassVar[str] = "L-BFGS-B"
    citation: ClassVar[str] = (
        "R. H. Byrd, P. Lu, J. Nocedal and C. Zhu, A limited memory algorithm for bound constrained optimization, SIAM"
        " J. Sci. Comput. 16 (1995); J. Nocedal, Updating quasi-Newton matrices with limited storage, Math. Comp. 35"
        " (1980)"
    )
    usual_iterations: ClassVar[int] = 500

    m: int = 10
    largest_step: float = 0.4

    def __post_init__(self) -> None:
        if isinstance(self.m, bool) or not isinstance(self.m, Integral) or self.m < 1:
            raise LimitsError(f"m must be a whole number of 1 or more, not {self.m!r}")
        largest = self.largest_step
        if isinstance(largest, str) or not as_number(largest, "largest_step", infinite=True) > 0:
            raise LimitsError(f"largest_step must be above 0, not {largest!r}")

    def iterate(self, problem: Problem) -> Iterator[None]:
        n, slope = problem.n, Slope(problem)
        S, Y, kept, free = np.zeros((self.m, n)), np.zeros((self.m, n)), np.zeros((2, self.m)), np.zeros(n)
        before, here = np.zeros(n), problem.x.copy()
        count = newest = 0
        slope.look()
        while True:
            fall = quasi_newton_step(
                problem.jacobian, slope.gradient, slope.low, slope.high, S, Y, kept, free, count, newest,
                self.largest_step, problem.step,
            )  # fmt: skip
            if not fall < 0.0:
                return
            cost, share = problem.cost, 1.0
            before[:], here[:] = slope.gradient, problem.x
            problem.advance()
            while not problem.cost <= cost + 2.0 * SUFFICIENT * share * fall and not problem.met:
                share = shorter(share, fall, 0.5 * (problem.cost - cost))
                if share < LEAST_SHARE:
                    break
                problem.x[:] = here
                problem.advance(share)
            if share < LEAST_SHARE:
                problem.place_x(here)
                if count == 0:
                    return
                count = 0  # what was learned here misleads
                continue
            yield
            slope.look()
            newest, count = (newest + 1) % self.m, min(count + 1, self.m)
            np.multiply(problem.step, share, out=S[newest])
            np.subtract(slope.gradient, before, out=Y[newest])
