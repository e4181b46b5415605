"""Which way a problem falls, and how far its limits let it go: what every gradient method starts from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mechanik.kernels.compiler import kernel
from mechanik.kernels.problem import AT_BAN, AT_COLUMN_X, AT_LOWER, AT_SCALE, AT_TRIAL, AT_UPPER, LOCKED
from mechanik.solvers.problem import Problem
from mechanik.spatial.array import Array

if TYPE_CHECKING:
    from mechanik.solvers.finite_differences import Differences

AT_ITS_LIMIT = 1e-12
"""rad, or sizes of the mechanism: a column that is no farther from its limit has no room."""


@kernel("void(i8[::1], f8[::1], f8[::1], f8[:,::1], f8[::1], f8[::1], f8[::1])")
def gradient_and_room(
    ints: np.ndarray[Any, Any], floats: Array, e: Array, J: Array, gradient: Array, low: Array, high: Array
) -> None:
    """gradient = J'e, and how far each column is from its limits."""
    m, n = J.shape
    for v in range(n):
        gradient[v] = 0.0
    for i in range(m):
        for v in range(n):
            gradient[v] += J[i, v] * e[i]
    for v in range(n):
        low[v], high[v] = -np.inf, np.inf
        k = ints[ints[AT_COLUMN_X] + v]
        if k >= 0:
            here, scale = floats[ints[AT_TRIAL] + k], floats[ints[AT_SCALE] + v]
            down, up = (floats[ints[AT_LOWER] + v] - here) / scale, (floats[ints[AT_UPPER] + v] - here) / scale
            low[v], high[v] = (down if down < -AT_ITS_LIMIT else 0.0), (up if up > AT_ITS_LIMIT else 0.0)
        if ints[ints[AT_BAN] + v] == LOCKED:
            low[v], high[v] = 0.0, 0.0


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
        gradient_and_room(*self._tables, problem.rows, problem.jacobian, self.gradient, self.low, self.high)
        if self._differences is not None:
            self._differences.write(self.gradient)
