"""The problem object that a method receives, for tests of its internals."""

from __future__ import annotations

import numpy as np
from solver_internals import least_squares_problems

import mechanik as mk
from mechanik.solver import LeastSquaresProblem


def problem_of(solver: mk.Solver, rng: np.random.Generator | None = None) -> LeastSquaresProblem:
    """The first subproblem of a solver, at the current configuration of the mechanism."""
    return least_squares_problems(solver, rng=rng)[0]
