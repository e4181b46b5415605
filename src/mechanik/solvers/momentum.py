"""Gradient descent with momentum: a heavy ball that rolls downhill and keeps some of the way that it had."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanik.errors import LimitsError
from mechanik.kernels.compiler import kernel
from mechanik.mechanism.door import as_number
from mechanik.solvers.method import Method
from mechanik.solvers.option_checks import yes_or_no
from mechanik.solvers.problem import Problem
from mechanik.solvers.slope import Slope
from mechanik.spatial.array import Array

BY_JACOBIAN = -1.0
"""Stands for a rate that follows the Jacobian."""


@kernel("f8(f8[:,::1], f8[::1], f8[::1], f8[::1], f8, f8, b1, b1, f8[::1], f8[::1])")
def rolling_step(
    J: Array, gradient: Array, low: Array, high: Array, alpha: float, beta: float, nesterov: bool, restart: bool,
    velocity: Array, step: Array,
) -> float:  # fmt: skip
    """velocity = beta velocity - alpha gradient, and a step by it; returns the largest number of the step.

    Nesterov's gradient is taken where the velocity would lead. The problem stands there all along, so the step is to
    the next such place: beta velocity - alpha gradient, with the new velocity.
    """
    m, n = J.shape
    if alpha == BY_JACOBIAN:
        square = 0.0
        for i in range(m):
            for v in range(n):
                square += J[i, v] * J[i, v]
        alpha = 1.0 / square if square > 0.0 else 0.0
    uphill = 0.0
    for v in range(n):
        uphill += gradient[v] * velocity[v]
    kept = 0.0 if restart and uphill > 0.0 else beta
    largest = 0.0
    for v in range(n):
        velocity[v] = kept * velocity[v] - alpha * gradient[v]
        step[v] = beta * velocity[v] - alpha * gradient[v] if nesterov else velocity[v]
        if step[v] < low[v] or step[v] > high[v]:  # what meets its limit has lost its velocity
            step[v] = min(max(step[v], low[v]), high[v])
            velocity[v] = 0.0
        largest = max(largest, abs(step[v]))
    return largest


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
            largest = rolling_step(
                problem.jacobian, slope.gradient, slope.low, slope.high, alpha, self.beta, self.nesterov, self.restart,
                velocity, problem.step,
            )  # fmt: skip
            if largest == 0.0:
                return
            problem.advance()
            yield
