"""Gradient methods in plain NumPy need more than the step before: slopes, room, and whole ways to be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy_steps import Case, Plain, iterates

import mechanik as mk

Way = Callable[[Plain, np.ndarray], Iterator[np.ndarray]]
"""A method: from q0, one q after the other."""


def slope(plain: Plain, q):
    """Half the cost, and its gradient (nv,)."""
    e, J = plain.rows(q)
    return 0.5 * float(e @ e), J.T @ e


def room(plain: Plain, q):
    """(nv,), (nv,): how far a step may go down and up, in units of the columns."""
    space = plain.space
    low, high = np.full(space.nv, -np.inf), np.full(space.nv, np.inf)
    scale = plain.scale[space.scalars_v]
    low[space.scalars_v] = (space.lower - q)[space.scalars_q] / scale
    high[space.scalars_v] = (space.upper - q)[space.scalars_q] / scale
    low[low > -1e-12], high[high < 1e-12] = 0.0, 0.0
    return low, high


def is_stuck(gradient, low, high):
    """(nv,), what stands at a limit and would leave it on its way down."""
    return ((gradient > 0) & (low == 0)) | ((gradient < 0) & (high == 0))


def line_search(plain: Plain, q, step, half_cost, bar, fall):
    """The share of a step after which half the cost is below `bar` plus a little of what the slope promises."""
    share = 1.0
    while True:
        there = plain.move(q, share * step)
        now = slope(plain, there)[0]
        if now <= bar + 1e-4 * share * fall:
            return share, there
        lowest = -0.5 * share**2 * fall / (now - half_cost - share * fall)
        share = min(max(lowest, 0.1 * share), 0.5 * share)


def hold_the_way_against(case: Case, method: str, way: Way, count: int = 10, **options) -> int:
    """The method goes the same way from the start, to 1e-9; returns how many iterations were compared."""
    solver = mk.Solver(case.mechanism, case.goals, solver=method, **options)
    plain = Plain(solver, case.goals)
    seen = iterates(solver, case.q0, count)
    expected = way(plain, seen[0])
    for number, found in enumerate(seen[1:], start=1):
        apart = np.abs(case.mechanism.space.difference(next(expected), found)).max()
        assert apart < 1e-9, f"{case.name}, iteration {number}: {apart}"
    return len(seen) - 1
