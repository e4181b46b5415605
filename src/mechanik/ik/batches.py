"""How a solver takes many targets: which engine, and how to make another solver like it for each thread."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from mechanik.batch import Engine, General, GuardedLanes, Lanes, Resorting, takes_lanes
from mechanik.objectives.placement import Placement
from mechanik.search.chain_search import ChainSearch
from mechanik.spatial.array import ArrayLike

if TYPE_CHECKING:
    from mechanik.ik.solver import Solver


def engine_of(solver: Solver, q0: ArrayLike | None) -> Engine:
    """Lanes for a serial chain with one pose-like goal, the general kernel for all else.

    Args:
        q0: (nq,) for all rows, or (N, nq), or None.
    """
    general = General(solver.mechanism, solver.objectives, lambda: another(solver))
    chain, goal = solver._chain, next(iter(solver.objectives), None)  # there may be none but to shut loops
    if chain is None or not isinstance(goal, Placement):
        return general
    if solver._takes_lanes is None:
        solver._takes_lanes = takes_lanes(solver.mechanism, goal)
    if not solver._takes_lanes:
        return general
    home = solver.mechanism.q if solver._home is None else solver._home
    if chain.has_held:  # the table depends on where they stand
        if q0 is not None and np.ndim(q0) == 2:
            return general
        start = home if q0 is None else solver.mechanism._one(q0)
        chain = ChainSearch(chain.chain, start, solver.options.restarts)
        home = start
    if solver._guard is None:
        return Lanes(chain, general, goal, np.array(home))
    guard, mechanism, objectives = solver._guard, solver.mechanism, solver.objectives
    lanes = Lanes(chain, General(mechanism, objectives, lambda: unguarded(solver)), goal, np.array(home))
    resort = General(mechanism, objectives, lambda: Resorting(guard))  # one for all threads: it takes them in turn
    return GuardedLanes(lanes, guard.keeping, guard.search(np.array(home), chain), resort)


def unguarded(solver: Solver) -> Solver:
    """A solver for the same that does not care what it bumps into."""
    given, more = arguments(solver)
    return type(solver)(*given, **more)


def another(solver: Solver) -> Solver:
    """A solver for the same, with tables of its own; what it has to keep off is shared."""
    if (guard := solver._guard) is None:
        return unguarded(solver)
    given, more = arguments(solver)
    return type(solver)(*given, **more, **guard.keeping.arguments())


def arguments(solver: Solver) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What makes a solver for the same, but for what it has to keep off."""
    more = {field.name: getattr(solver.options, field.name) for field in fields(solver.options)}
    more |= {
        "solver": "auto" if solver._is_auto else solver.method,
        "active": solver._active,
        "lock": solver._lock,
        "limits": solver._limits,
        "weights": solver._weights,
        "rest": None if solver._given is None else solver._rest,
    }
    return (solver.mechanism, (solver.objectives or None) if solver._given is None else solver._given), more
