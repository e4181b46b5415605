"""Driver of the descent kernel: runs it on a subproblem, and evaluates in Python what the kernel cannot.

The kernel pauses to let Python evaluate residuals that are Python functions, check the deadline, and record iterations.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np

from mechanik.kernels import problem_layout
from mechanik.kernels.problem_layout import (
    ITERATIONS_PER_CALL,
    MAX_ITERATIONS,
)
from mechanik.kernels.state_layout import (
    ATTEMPT,
    ATTEMPTS_OUT,
    COST,
    CURRENT_BUFFER,
    DONE,
    IS_RESUMED,
    NEEDS_PYTHON_FUNCTIONS,
    STATUS,
    STOPPED,
    SUCCESS,
)
from mechanik.model import Mechanism
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.problem import Subproblem
from mechanik.solver.monitor import Monitor
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

descent_kernel = kernel_module("descent")

CLOCK_INTERVAL_S = 2e-4
"""Time between checks of the deadline, s. With a shorter interval, a solve ends nearer to its deadline but needs more
calls of the kernel."""
NO_TARGET = np.zeros((0, 4))
"""Target argument of the kernel if the targets are already in its tables."""


def run_kernel(
    mechanism: Mechanism,
    subproblem: Subproblem,
    relations: Sequence[Relation],
    q0: Array,
    starts: Array,
    monitor: Monitor | None = None,
) -> Array:
    """Descend with the descent kernel from `q0` and then from each of `starts`, until an attempt succeeds.

    Return the best q (nq,). The report of the search is in the table `report` of the subproblem.

    Args:
        relations: the relation of each block of the subproblem; only relations that are Python functions are used.
        q0: first start, (nq,).
        starts: further starts, (K, nq).
        monitor: deadline, history and callback.
    """
    packed = subproblem.packed
    state, options = packed.tables["state"], packed.tables["options"]
    q = np.empty(len(q0))
    monitor = monitor or Monitor()
    pauses_at_iterations = monitor.records_iterations
    must_pause = monitor.deadline < math.inf or pauses_at_iterations
    options[ITERATIONS_PER_CALL] = 1 if must_pause else np.inf
    state[IS_RESUMED] = 0.0
    last_pause_time, attempts, has_unrecorded_iteration = time.perf_counter(), None, False
    try:
        while (code := descent_kernel.search(packed.ints, packed.floats, NO_TARGET, q0, starts, q)) != DONE:
            if code == NEEDS_PYTHON_FUNCTIONS:
                evaluate_python_residuals(mechanism, subproblem, relations, len(q0))
                continue
            now = time.perf_counter()
            if pauses_at_iterations:
                if has_unrecorded_iteration:  # the first pause comes before the first step is evaluated
                    monitor.record(packed.tables["x"], len(q0), state[COST])
                has_unrecorded_iteration = True
            else:  # as many iterations as fit between two checks of the deadline
                ratio = CLOCK_INTERVAL_S / max(now - last_pause_time, 1e-7)
                options[ITERATIONS_PER_CALL] = max(
                    1.0, min(options[ITERATIONS_PER_CALL] * 2, math.floor(options[ITERATIONS_PER_CALL] * ratio))
                )
            if monitor.is_stopped or now + CLOCK_INTERVAL_S >= monitor.deadline:
                # end the search: no stage may continue, and no attempt may start
                options[MAX_ITERATIONS] = 0
                options[ITERATIONS_PER_CALL] = np.inf
                attempts = state[ATTEMPT] + 1
                state[ATTEMPT] = len(starts) + 1
            last_pause_time = now
    finally:
        state[IS_RESUMED] = 0.0
    if has_unrecorded_iteration:
        monitor.record(q, len(q0), state[COST])
    report = packed.tables["report"]
    if attempts is not None:
        report[ATTEMPTS_OUT] = attempts
    if monitor.is_stopped and report[SUCCESS] != 1.0:
        report[STATUS] = STOPPED
    return q


def evaluate_python_residuals(
    mechanism: Mechanism, subproblem: Subproblem, relations: Sequence[Relation], nq: int
) -> None:
    """Write residuals and Jacobians of the blocks that are Python functions, at the kernel's trial configuration."""
    packed, tables = subproblem.packed, subproblem.packed.tables
    buffer = 1 - int(tables["state"][CURRENT_BUFFER])
    q = tables["trial"][:nq].copy()
    slacks = tables["slack"].reshape(-1, 2)
    for block_index, relation in enumerate(relations):
        if relation.kind is not RelationKind.FUNCTION or relation.function is None:
            continue
        block = tables["blocks"][
            block_index * problem_layout.BLOCK_INTS : (block_index + 1) * problem_layout.BLOCK_INTS
        ]
        first_row, row_count, column_count = (
            int(block[k]) for k in (problem_layout.FIRST_ROW, problem_layout.ROW_COUNT, problem_layout.COLUMN_COUNT)
        )
        block_columns = tables["block_columns"][block[problem_layout.FIRST_COLUMN] :][:column_count]
        weight = tables["weight"][first_row : first_row + row_count]
        value, J = relation.function(mechanism, q)
        residual = tables["residual"][buffer * packed.sizes["rows"] + first_row :][:row_count]
        residual[:] = weight * value
        block_jacobian = tables["jacobian"][
            buffer * packed.sizes["jacobian"] + int(block[problem_layout.FIRST_JACOBIAN]) :
        ][: row_count * column_count]
        block_jacobian = block_jacobian.reshape(row_count, column_count)
        block_jacobian[:] = 0.0
        v = packed.columns[block_columns]
        moving_columns = np.flatnonzero(v >= 0)
        block_jacobian[:, moving_columns] = (
            weight[:, None] * J[:, v[moving_columns]] * tables["scale"][block_columns[moving_columns]]
        )
        if block[problem_layout.HAS_BANDS]:
            slack_x, slack_column = slacks[first_row : first_row + row_count].T
            residual -= weight * tables["trial"][slack_x]
            block_jacobian[np.arange(row_count), slack_column] = -1.0
