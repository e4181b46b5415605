"""Straight from a target to the chain kernel: what a call of a solver costs besides the kernel is here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from mechanik import kernels
from mechanik.kernels.chain_layout import FROM_SEED, FROM_TABLE
from mechanik.objectives import Point, PoseGoal
from mechanik.objectives.relation import Relation
from mechanik.search.chain_search import ChainSearch, Tried
from mechanik.solvers.solution import Solution
from mechanik.spatial import make, rotation
from mechanik.spatial.array import Array

if TYPE_CHECKING:
    from mechanik.ik.short_way import Quick

ELSEWHERE = make(rotation.exp(np.array([0.3, -0.5, 0.7])), np.array([0.1, 0.2, -0.3]))


def new_point() -> tuple[Array, Array]:
    """A pose, not turned, and its place as a view."""
    X = np.eye(4)
    return X, X[:3, 3]


ChainWay = Callable[[Any, Any], Solution | Tried | None]
"""(target, q0) -> the solution, or how far it came, or None: something has to be looked at closely first."""


def chain_way(solver: Quick, chain: ChainSearch, relations: Sequence[Relation]) -> ChainWay | None:
    """The way for arrays: poses (4, 4) of a `PoseGoal`, places (3,) of a `Point`; None if targets are others.

    All that does not change from call to call is looked up here, once.
    """
    goal, mechanism, home, bounds = solver.objectives[0], solver.mechanism, solver._home, solver._bounds
    is_point = type(goal) is Point and np.array_equal(relations[0].X_a[:3, :3], np.eye(3))
    if type(goal) is PoseGoal:
        # another target has to mean another X for the kernel and nothing else
        others = goal.at(ELSEWHERE).relations(mechanism)
        if not all(np.array_equal(one.X_b, other.X_b) for one, other in zip(relations, others, strict=True)):
            return None
    elif not is_point:
        return None
    usual_pool, has_held, nq = chain.pool, chain.has_held, mechanism.nq
    points: list[tuple[Array, Array]] = []  # poses for points, each used by one call at a time, and their places
    array, empty, solve_one = np.ndarray, np.empty, kernels.load("chain").solve_one

    def solve(target: Any, q0: Any) -> Solution | Tried | None:
        begun = perf_counter()
        if type(target) is not array:
            return None
        X, mode, place = target, FROM_SEED, None
        if is_point:
            if X.shape != (3,) or X.dtype != np.float64:
                return None
            X, place = points.pop() if points else new_point()
            place[:] = target
        if q0 is None:
            q0, mode = home if home is not None else np.array(mechanism.q), FROM_TABLE
        elif type(q0) is not array:
            return None
        pool = usual_pool
        if has_held:
            if q0.shape != (nq,) or q0.dtype != np.float64:
                return None
            chain.meet(q0)
            pool = chain.pool  # another one since the table is another
        work = pool.pop() if pool else chain.new_work()
        q = empty(nq)
        try:
            code = solve_one(work, X, q0, mode, 0.0, q)
        except TypeError:  # not contiguous arrays of float64, or of other dimensions
            return None
        if code < 0:
            tried = chain.tried(work, code, q, perf_counter() - begun)
            pool.append(work)
            return tried
        pool.append(work)
        if place is not None:
            points.append((X, place))
        return Solution(solver, target.copy(), q, code, perf_counter() - begun, bounds)

    return solve
