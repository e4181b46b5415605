"""Batches by the sequential backend, whatever the mechanism is, or by the lane backend."""

from __future__ import annotations

from typing import Any

import numpy as np
from solver_internals import bounds, chain_search, compiled_problem

import mechanik as mk
from mechanik.solver.batch import BatchRequest, BatchResult, LaneBackend, SequentialBackend, run_batch
from mechanik.solver.request import SolveRequest


def batch_request(solver: mk.Solver) -> BatchRequest:
    return BatchRequest(
        solver.mechanism,
        solver.objectives,
        (solver.method, solver.options, bounds(solver), compiled_problem(solver).moving_dofs),
    )


def general(solver: mk.Solver) -> SequentialBackend:
    def solve_row(targets: Any, q0: Any, rng: Any, partial: Any) -> mk.Solution:
        return solver.pipeline.solve(SolveRequest(targets=targets, q0=q0, rng=rng), partial)

    return SequentialBackend(solver.mechanism, solver.objectives, solve_row)


def lanes(solver: mk.Solver, search: Any = None) -> LaneBackend:
    """With the chain search of the solver, or with a test double of it."""
    chain = solver.chain
    home = solver.mechanism.q if search is not None or chain is None else chain.default_start()
    return LaneBackend(search or chain_search(solver), general(solver), solver.objectives[0], np.array(home))


def solve_batch(solver: mk.Solver, targets: Any, q0: Any = None, **how: Any) -> BatchResult:
    return run_batch(batch_request(solver), general(solver), targets, q0, **how)


def solve_in_lanes(solver: mk.Solver, targets: Any, q0: Any = None, search: Any = None, **how: Any) -> BatchResult:
    return run_batch(batch_request(solver), lanes(solver, search), targets, q0, **how)
