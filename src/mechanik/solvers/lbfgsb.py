"""Quasi-Newton with limits: curvature learned from the last few steps, on the columns that are free to go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar

import numpy as np

from mechanik.errors import LimitsError
from mechanik.mechanism.door import as_number
from mechanik.solvers.gradient_descent import shorter
from mechanik.solvers.method import Method
from mechanik.solvers.problem import Problem
from mechanik.solvers.slope import Slope
from mechanik.tiers import kernel_module

steps = kernel_module("methods.gradient_steps")

SUFFICIENT, LEAST_SHARE = 1e-4, 1e-12
"""Which share of the fall that the slope promises has to come true, and below which share of a step none is tried."""


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
            fall = steps.quasi_newton_step(
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
