"""Which way a problem falls, and how far its limits let it go: what every gradient method starts from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mechanik.solvers.problem import Problem
from mechanik.tiers import kernel_module

steps = kernel_module("methods.gradient_steps")

if TYPE_CHECKING:
    from mechanik.solvers.finite_differences import Differences


class Slope:
    """
    Args:
        differences: by which the gradient is found in place of the Jacobian, if any.

    Attributes:
        gradient: (n,) of half the cost.
        low, high: (n,) how far a step may go down and up in each column, exactly 0 at a limit.
    """

    __slots__ = ("_differences", "_problem", "_tables", "gradient", "high", "low")

    def __init__(self, problem: Problem, differences: Differences | None = None) -> None:
        self._problem, self._differences = problem, differences
        self._tables = problem.part.packed.ints, problem.part.packed.floats
        self.gradient, self.low, self.high = np.zeros(problem.n), np.zeros(problem.n), np.zeros(problem.n)

    def look(self) -> None:
        """At where the problem stands now."""
        problem = self._problem
        steps.gradient_and_room(*self._tables, problem.rows, problem.jacobian, self.gradient, self.low, self.high)
        if self._differences is not None:
            self._differences.write(self.gradient)
