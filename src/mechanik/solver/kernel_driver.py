"""Python driver of the descent kernel for a subproblem: options, pauses, residuals written in Python, deadline."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    pass

descent_kernel = kernel_module("descent")

CLOCK_INTERVAL_S = 2e-4
"""s between two checks of the deadline. Shorter intervals end more precisely and cost more calls of the kernel."""
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
    """Search from `q0` and then from each of `starts` with the descent kernel, and return q (nq,).

    The report of the search is in the table `report` of the subproblem.

    Args:
        relations: the relation of each block of the subproblem, for those that are Python functions.
        q0: first start, (nq,).
        starts: further starts, (K, nq).
        monitor: deadline, history and callback.
    """
    packed = subproblem.packed
    state, options = packed.tables["state"], packed.tables["options"]
    q = np.empty(len(q0))
    monitor = monitor or Monitor()
    pauses_at_iterations = monitor.wants_iterations
    is_watched = monitor.deadline < math.inf or pauses_at_iterations
    options[ITERATIONS_PER_CALL] = 1 if is_watched else np.inf
    state[IS_RESUMED] = 0.0
    last_pause, attempts, paused = time.perf_counter(), None, False
    try:
        while (code := descent_kernel.search(packed.ints, packed.floats, NO_TARGET, q0, starts, q)) != DONE:
            if code == NEEDS_PYTHON_FUNCTIONS:
                evaluate_python_residuals(mechanism, subproblem, relations, len(q0))
                continue
            now = time.perf_counter()
            if pauses_at_iterations:
                if paused:  # the first pause comes before the first step is evaluated
                    monitor.record(packed.tables["x"], len(q0), state[COST])
                paused = True
            else:  # as many iterations as fit between two checks of the deadline
                share = CLOCK_INTERVAL_S / max(now - last_pause, 1e-7)
                options[ITERATIONS_PER_CALL] = max(
                    1.0, min(options[ITERATIONS_PER_CALL] * 2, math.floor(options[ITERATIONS_PER_CALL] * share))
                )
            if monitor.stopped or now + CLOCK_INTERVAL_S >= monitor.deadline:
                # end the search here: no stage may continue, and no attempt may start
                options[MAX_ITERATIONS] = 0
                options[ITERATIONS_PER_CALL] = np.inf
                attempts = state[ATTEMPT] + 1
                state[ATTEMPT] = len(starts) + 1
            last_pause = now
    finally:
        state[IS_RESUMED] = 0.0
    if paused:
        monitor.record(q, len(q0), state[COST])
    out = packed.tables["report"]
    if attempts is not None:
        out[ATTEMPTS_OUT] = attempts
    if monitor.stopped and out[SUCCESS] != 1.0:
        out[STATUS] = STOPPED
    return q


def evaluate_python_residuals(
    mechanism: Mechanism, subproblem: Subproblem, relations: Sequence[Relation], nq: int
) -> None:
    """Evaluate residuals and Jacobians of the blocks that are Python functions at the kernel's trial configuration."""
    packed, tables = subproblem.packed, subproblem.packed.tables
    buffer = 1 - int(tables["state"][CURRENT_BUFFER])
    q = tables["trial"][:nq].copy()
    slack = tables["slack"].reshape(-1, 2)
    for b, relation in enumerate(relations):
        if relation.kind is not RelationKind.FUNCTION or relation.function is None:
            continue
        block = tables["blocks"][b * problem_layout.BLOCK_INTS : (b + 1) * problem_layout.BLOCK_INTS]
        first_row, row_count, column_count = (
            int(block[k]) for k in (problem_layout.FIRST_ROW, problem_layout.ROW_COUNT, problem_layout.COLUMN_COUNT)
        )
        members = tables["block_columns"][block[problem_layout.FIRST_COLUMN] :][:column_count]
        weight = tables["weight"][first_row : first_row + row_count]
        value, J = relation.function(mechanism, q)
        residual = tables["residual"][buffer * packed.sizes["rows"] + first_row :][:row_count]
        residual[:] = weight * value
        block_jacobian = tables["jacobian"][
            buffer * packed.sizes["jacobian"] + int(block[problem_layout.FIRST_JACOBIAN]) :
        ][: row_count * column_count]
        block_jacobian = block_jacobian.reshape(row_count, column_count)
        block_jacobian[:] = 0.0
        v = packed.columns[members]
        moving = np.flatnonzero(v >= 0)
        block_jacobian[:, moving] = weight[:, None] * J[:, v[moving]] * tables["scale"][members[moving]]
        if block[problem_layout.HAS_BANDS]:
            k, u = slack[first_row : first_row + row_count].T
            residual -= weight * tables["trial"][k]
            block_jacobian[np.arange(row_count), u] = -1.0
