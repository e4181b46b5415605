"""Driver of the descent kernel: runs it on a subproblem, and evaluates in Python what the kernel cannot.

The kernel pauses to let Python evaluate residuals that are Python functions, check the deadline, and record iterations.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np

from mechanik.kernels.state_layout import DONE, NEEDS_PYTHON_FUNCTIONS, STOPPED
from mechanik.model import Mechanism
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.problem import PackedProblem, Subproblem
from mechanik.solver.monitor import Monitor
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

descent_kernel = kernel_module("descent")

CLOCK_INTERVAL_S = 2e-4
"""Time between checks of the deadline, s. With a shorter interval, a solve ends nearer to its deadline but needs more
calls of the kernel."""
NO_TARGET = np.zeros((0, 4))
"""Target argument of the kernel if the targets are already in its tables."""
NO_STARTS = np.zeros((0, 0))
"""Starts argument of the kernel for a search without restarts."""


def run_kernel(
    mechanism: Mechanism,
    subproblem: Subproblem,
    relations: Sequence[Relation],
    q0: Array,
    starts: Array,
    monitor: Monitor | None = None,
) -> Array:
    """Descend with the descent kernel from `q0` and then from each of `starts`, until an attempt succeeds.

    Return the best q (nq,). The report of the search is that of the packed problem.

    Args:
        relations: the relation of each block of the subproblem; only relations that are Python functions are used.
        q0: first start, (nq,).
        starts: further starts, (K, nq).
        monitor: deadline, history and callback.
    """
    packed = subproblem.packed
    q = np.empty(len(q0))
    monitor = monitor or Monitor()
    pauses_at_iterations = monitor.records_iterations
    must_pause = monitor.deadline < math.inf or pauses_at_iterations
    iterations_per_call = 1.0 if must_pause else np.inf
    packed.begin_search(iterations_per_call)
    last_pause_time, attempts, has_unrecorded_iteration = time.perf_counter(), None, False
    try:
        while (code := descent_kernel.search(packed.ints, packed.floats, NO_TARGET, q0, starts, q)) != DONE:
            if code == NEEDS_PYTHON_FUNCTIONS:
                evaluate_python_residuals(mechanism, packed, relations)
                continue
            now = time.perf_counter()
            if pauses_at_iterations:
                if has_unrecorded_iteration:  # the first pause comes before the first step is evaluated
                    monitor.record(packed.accepted_q, packed.cost)
                has_unrecorded_iteration = True
            elif not packed.has_functions:  # as many iterations as fit between two checks of the deadline
                ratio = CLOCK_INTERVAL_S / max(now - last_pause_time, 1e-7)
                iterations_per_call = max(1.0, min(iterations_per_call * 2, math.floor(iterations_per_call * ratio)))
                packed.pause_after(iterations_per_call)
            if monitor.is_stopped or now + CLOCK_INTERVAL_S >= monitor.deadline:
                attempts = packed.end_search(len(starts))
            last_pause_time = now
    finally:
        packed.forget_search()
    if has_unrecorded_iteration:
        monitor.record(q, packed.cost)
    report = packed.report
    if attempts is not None:
        report.set_effort(report.iterations, attempts)
    if monitor.is_stopped and not report.success:
        report.set_status(STOPPED)
    return q


def evaluate_python_residuals(mechanism: Mechanism, packed: PackedProblem, relations: Sequence[Relation]) -> None:
    """Write residuals and Jacobians of the blocks that are Python functions, at the kernel's trial configuration."""
    q = packed.trial_q.copy()
    for block_index, relation in enumerate(relations):
        if relation.kind is RelationKind.FUNCTION and relation.function is not None:
            packed.write_function_rows(block_index, *relation.function(mechanism, q))
