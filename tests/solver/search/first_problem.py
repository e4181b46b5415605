"""The problem object that a method receives, for tests of its internals."""

from __future__ import annotations

import numpy as np

import mechanik as mk
from mechanik.solver import LeastSquaresProblem


def problem_of(solver: mk.Solver, rng: np.random.Generator | None = None) -> LeastSquaresProblem:
    """The first subproblem of a solver, at the current configuration of the mechanism."""
    solver.solve(max_iterations=0)
    problem = solver._problems[0]
    problem.set_request(solver.objectives, solver._block_relations[0], solver._bounds, rng)
    return problem
