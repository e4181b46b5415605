"""Gradient descent with momentum: a heavy ball that rolls downhill and keeps some of the way that it had."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanik.errors import LimitsError
from mechanik.kernels.methods.gradient_steps import BY_JACOBIAN
from mechanik.mechanism.door import as_number
from mechanik.solvers.method import Method
from mechanik.solvers.option_checks import yes_or_no
from mechanik.solvers.problem import Problem
from mechanik.solvers.slope import Slope
from mechanik.tiers import kernel_module

steps = kernel_module("methods.gradient_steps")


@dataclass(frozen=True, slots=True, kw_only=True)
class Momentum(Method):
    """
    Attributes:
        alpha: how many times the gradient is added to the velocity. None: one over the sum of squares of the Jacobian,
            which is no less than its steepest curvature, so it cannot be too much.
        beta: which share of the velocity is kept. 0.98 was tuned on random targets of five arms, with restarts; without
            them 0.9 is better.
        nesterov: take the gradient where the velocity would lead, as Nesterov does, and not here, as Polyak does.
        restart: forget the velocity once it leads uphill (O'Donoghue and Candes). Polyak's and Nesterov's do not.
    """

    name: ClassVar[str] = "momentum"
    title: ClassVar[str] = "gradient descent with momentum"
    citation: ClassVar[str] = (
        "B. T. Polyak, Some methods of speeding up the convergence of iteration methods, USSR Comput. Math. Math. Phys."
        " 4 (1964); Y. Nesterov, A method of solving a convex programming problem with convergence rate O(1/k^2),"
        " Soviet Math. Dokl. 27 (1983); B. O'Donoghue and E. Candes, Adaptive restart for accelerated gradient schemes,"
        " Found. Comput. Math. 15 (2015)"
    )
    usual_iterations: ClassVar[int] = 2000

    alpha: float | None = None
    beta: float = 0.98
    nesterov: bool = False
    restart: bool = True

    def __post_init__(self) -> None:
        if self.alpha is not None and (isinstance(self.alpha, str) or not as_number(self.alpha, "alpha") > 0):
            raise LimitsError(f"alpha must be above 0, or None for one that follows the Jacobian, not {self.alpha!r}")
        if isinstance(self.beta, str) or not 0 <= as_number(self.beta, "beta") < 1:
            raise LimitsError(f"beta is a share from 0 to below 1, not {self.beta!r}")
        yes_or_no(self, "nesterov", "restart")

    def iterate(self, problem: Problem) -> Iterator[None]:
        slope, velocity = Slope(problem), np.zeros(problem.n)
        alpha = BY_JACOBIAN if self.alpha is None else float(self.alpha)
        while True:
            slope.look()
            largest = steps.rolling_step(
                problem.jacobian, slope.gradient, slope.low, slope.high, alpha, self.beta, self.nesterov, self.restart,
                velocity, problem.step,
            )  # fmt: skip
            if largest == 0.0:
                return
            problem.advance()
            yield
