"""Gradient descent within the limits: straight down, as far as it pays."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar, Literal

import numpy as np

from mechanik.errors import LimitsError
from mechanik.kernels.methods.gradient_steps import LONGEST
from mechanik.mechanism.door import as_number
from mechanik.solvers.method import Method
from mechanik.solvers.problem import Problem
from mechanik.solvers.slope import Slope
from mechanik.tiers import kernel_module

steps = kernel_module("methods.gradient_steps")

SUFFICIENT = 1e-4
"""Which share of the fall that the slope promises has to come true; gamma in the paper, and its number."""
LEAST_SHARE = 1e-12
"""Of a step, below which there is no point in trying."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientDescent(Method):
    """
    Attributes:
        gradient: "analytic": the rows times their Jacobian. "differences": by moving one joint after the other a
            little, with the products of matrices before and behind it kept (`finite_differences.py`).
        step: how long a step is. "spectral": at first as the curvature along the step before suggests (Barzilai and
            Borwein), then less until the error is below the worst of the last `memory` (Birgin, Martinez and Raydan).
            "backtracking": at first twice as long as the step before, then less until the error falls (Armijo). A
            number: so many times the gradient, always; too large a one swings, and nothing stops it.
        memory: M in the paper; with 1 the error never rises.
        largest_step: rad, or sizes of the mechanism; how far one column goes at most in a step whose length is sought.
            Longer ones run joints into limits where they stay. 0.2 was tuned on an arm of ten joints.
        difference: how far a joint is moved for a difference: rad, or sizes. Joints end half as far from where they
            should be.
    """

    name: ClassVar[str] = "gradient_descent"
    title: ClassVar[str] = "gradient descent"
    citation: ClassVar[str] = (
        "E. G. Birgin, J. M. Martinez and M. Raydan, Nonmonotone spectral projected gradient methods on convex sets,"
        " SIAM J. Optim. 10 (2000); J. Barzilai and J. M. Borwein, Two-point step size gradient methods, IMA J. Numer."
        " Anal. 8 (1988); L. Armijo, Minimization of functions having Lipschitz continuous first partial derivatives,"
        " Pacific J. Math. 16 (1966)"
    )
    usual_iterations: ClassVar[int] = 2000

    gradient: Literal["analytic", "differences"] = "analytic"
    step: float | Literal["spectral", "backtracking"] = "spectral"
    memory: int = 10
    largest_step: float = 0.2
    difference: float = 1e-7

    def __post_init__(self) -> None:
        if self.gradient not in ("analytic", "differences"):
            raise LimitsError(f"gradient must be 'analytic' or 'differences', not {self.gradient!r}")
        if self.step not in ("spectral", "backtracking") and (
            isinstance(self.step, str) or not as_number(self.step, "step") > 0
        ):
            raise LimitsError(f"step must be 'spectral', 'backtracking' or a number above 0, not {self.step!r}")
        if isinstance(self.memory, bool) or not isinstance(self.memory, Integral) or self.memory < 1:
            raise LimitsError(f"memory must be a whole number of 1 or more, not {self.memory!r}")
        for name in ("largest_step", "difference"):
            value = getattr(self, name)
            if isinstance(value, str) or not as_number(value, name, infinite=name == "largest_step") > 0:
                raise LimitsError(f"{name} must be above 0, not {value!r}")

    def check(self, problem: Problem) -> None:
        Method.check(self, problem)
        if self.gradient == "differences":
            from mechanik.solvers.finite_differences import misfit

            if what := misfit(problem):
                raise self.refusal(f"by differences {what}", "gradient_descent' with gradient='analytic")

    def iterate(self, problem: Problem) -> Iterator[None]:
        differences = None
        if self.gradient == "differences":
            from mechanik.solvers.finite_differences import Differences

            differences = Differences(problem, self.difference)
        slope = Slope(problem, differences)
        return self._always(problem, slope, self.step) if not isinstance(self.step, str) else self._seek(problem, slope)

    def _always(self, problem: Problem, slope: Slope, alpha: float) -> Iterator[None]:
        """Steps of a fixed length."""
        slope.look()
        while steps.downhill(slope.gradient, slope.low, slope.high, alpha, problem.step) < 0.0:
            problem.advance()
            yield
            slope.look()

    def _seek(self, problem: Problem, slope: Slope) -> Iterator[None]:
        """Steps of a length that is sought."""
        is_spectral = self.step == "spectral"
        recent = deque([problem.cost], self.memory if is_spectral else 1)
        before, here = np.zeros(problem.n), problem.x.copy()
        alpha = share = 0.0
        while True:
            slope.look()
            if share == 0.0:
                alpha = LONGEST
            elif is_spectral:
                alpha = steps.spectral_length(slope.gradient, before, share, problem.step)
            else:
                alpha *= 2.0 * share
            alpha = min(alpha, steps.longest_length(slope.gradient, self.largest_step))
            fall = steps.downhill(slope.gradient, slope.low, slope.high, alpha, problem.step)
            if not fall < 0.0:
                return
            cost, bar, share = problem.cost, max(recent), 1.0
            before[:], here[:] = slope.gradient, problem.x
            problem.advance()
            while not problem.cost <= bar + 2.0 * SUFFICIENT * share * fall and not problem.met:
                share = shorter(share, fall, 0.5 * (problem.cost - cost))
                if share < LEAST_SHARE:
                    problem.place_x(here)
                    return
                problem.x[:] = here
                problem.advance(share)
            recent.append(problem.cost)
            yield


def shorter(share: float, fall: float, rise: float) -> float:
    """The share of a step at which a parabola is lowest, but from a tenth to a half of the one that was tried.

    Args:
        fall: the slope along the step.
        rise: by how much half the cost has risen at the share that was tried.
    """
    excess = rise - share * fall
    lowest = -0.5 * share * share * fall / excess if excess > 0.0 else 0.0
    return min(max(lowest, 0.1 * share), 0.5 * share)
