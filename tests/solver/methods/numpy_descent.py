"""Gradient methods in plain NumPy: gradients, bounds of a step, and sequences of iterates to compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy_steps import Case, NumpyProblem, iterates

import mechanik as mk

IterateSequence = Callable[[NumpyProblem, np.ndarray], Iterator[np.ndarray]]
"""A method: from q0, one q after the other."""


def half_cost_and_gradient(plain: NumpyProblem, q):
    """Half the cost, and its gradient (nv,)."""
    e, J = plain.residual_and_jacobian(q)
    return 0.5 * float(e @ e), J.T @ e


def step_bounds(plain: NumpyProblem, q):
    """(nv,), (nv,): how far a step may go down and up, in units of the columns."""
    space = plain.space
    low, high = np.full(space.nv, -np.inf), np.full(space.nv, np.inf)
    scale = plain.scale[space.scalars_v]
    low[space.scalars_v] = (space.lower - q)[space.scalars_q] / scale
    high[space.scalars_v] = (space.upper - q)[space.scalars_q] / scale
    low[low > -1e-12], high[high < 1e-12] = 0.0, 0.0
    return low, high


def is_blocked(gradient, low, high):
    """(nv,), which dofs are at a limit that a descent step would leave."""
    return ((gradient > 0) & (low == 0)) | ((gradient < 0) & (high == 0))


def line_search(plain: NumpyProblem, q, step, half_cost, bar, fall):
    """The share of a step that lowers half the cost below `bar`, by at least a share of the predicted decrease."""
    share = 1.0
    while True:
        q_new = plain.move(q, share * step)
        cost_new = half_cost_and_gradient(plain, q_new)[0]
        if cost_new <= bar + 1e-4 * share * fall:
            return share, q_new
        lowest = -0.5 * share**2 * fall / (cost_new - half_cost - share * fall)
        share = min(max(lowest, 0.1 * share), 0.5 * share)


def compare_iterates(case: Case, method: str, reference: IterateSequence, count: int = 10, **options) -> int:
    """Check that the method has the iterates of the reference, to 1e-9; returns how many were compared."""
    solver = mk.Solver(case.mechanism, case.goals, solver=method, **options)
    plain = NumpyProblem(solver, case.goals)
    seen = iterates(solver, case.q0, count)
    expected = reference(plain, seen[0])
    for number, q in enumerate(seen[1:], start=1):
        apart = np.abs(case.mechanism.space.difference(next(expected), q)).max()
        assert apart < 1e-9, f"{case.name}, iteration {number}: {apart}"
    return len(seen) - 1
