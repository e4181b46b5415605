"""Batches by the sequential backend, whatever the mechanism is, or by the lane backend."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

import mechanik as mk
from mechanik.solver.batch import BatchRequest, BatchResult, LaneBackend, SequentialBackend, run_batch


def twin(solver: mk.Solver) -> mk.Solver:
    """Another solver of the same."""
    common = {field.name: getattr(solver.options, field.name) for field in fields(solver.options)}
    return mk.Solver(solver.mechanism, solver.objectives, solver=solver.method, limits=solver._limits, **common)


def batch_request(solver: mk.Solver) -> BatchRequest:
    return BatchRequest(
        solver.mechanism, solver.objectives, (solver.method, solver.options, solver._bounds, solver._moving_dofs)
    )


def general(solver: mk.Solver) -> SequentialBackend:
    return SequentialBackend(solver.mechanism, solver.objectives, lambda: twin(solver))


def lanes(solver: mk.Solver, search: Any = None) -> LaneBackend:
    """With the chain search of the solver, or with a test double of it."""
    home = solver.mechanism.q if search is not None or solver._mid_configuration is None else solver._mid_configuration
    return LaneBackend(search or solver._chain_search, general(solver), solver.objectives[0], np.array(home))


def solve_batch(solver: mk.Solver, targets: Any, q0: Any = None, **how: Any) -> BatchResult:
    return run_batch(batch_request(solver), general(solver), targets, q0, **how)


def solve_in_lanes(solver: mk.Solver, targets: Any, q0: Any = None, search: Any = None, **how: Any) -> BatchResult:
    return run_batch(batch_request(solver), lanes(solver, search), targets, q0, **how)
