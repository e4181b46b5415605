"""Python driver of the descent kernel for a subproblem: options, pauses, residuals written in Python, deadline."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mechanik.kernels import problem_layout as problem
from mechanik.kernels.problem_layout import (
    CLOSURE_TOLERANCE,
    FIXED_DAMPING,
    GRADIENT_TOLERANCE,
    ITERATIONS_PER_CALL,
    MAX_ANGLE_ERROR,
    MAX_ERROR,
    MAX_ITERATIONS,
    MAX_ITERATIONS_IN_STAGE,
    MAX_PERTURBATIONS,
    PERTURBATION_SIZE,
    START_DAMPING,
    STEP_TOLERANCE,
    USES_EIGENVALUES,
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
from mechanik.solver.options import Options
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

if TYPE_CHECKING:
    from mechanik.solver.methods.levenberg_marquardt import LevenbergMarquardt

descent_kernel = kernel_module("descent")

INITIAL_DAMPING = 0.04
"""Levenberg-Marquardt damping at the start of an attempt. Tuned on random targets of a Panda and a UR5."""
ATTEMPT_ITERATIONS = 40
"""Iterations after which an attempt ends if others follow. Tuned on random targets of a Panda and a UR5."""
CLOCK_INTERVAL_S = 2e-4
"""s between two checks of the deadline. Shorter intervals end more precisely and cost more calls of the kernel."""
NO_TARGET = np.zeros((0, 4))
"""Target argument of the kernel if the targets are already in its tables."""


def write_options(
    subproblem: Subproblem, options: Options, method: LevenbergMarquardt, size: float, max_iterations: int | None = None
) -> None:
    """Write solver and method options to the kernel's option table.

    Args:
        subproblem: its tables are written.
        options: options of the solver.
        method: options of the method.
        size: characteristic length of the mechanism, m.
        max_iterations: replaces `options.max_iterations`.
    """
    at = subproblem.packed.tables["options"]
    most = options.max_iterations if max_iterations is None else max_iterations
    # the kernel tests each residual alone; a loop is closed by the norm of three position or rotation residuals
    at[CLOSURE_TOLERANCE] = max(1e-10 / math.sqrt(3) * min(1.0, 1.0 / size), 1e-13)
    at[MAX_ITERATIONS], at[START_DAMPING] = method.default_iterations if most is None else most, INITIAL_DAMPING
    at[GRADIENT_TOLERANCE], at[PERTURBATION_SIZE], at[MAX_ITERATIONS_IN_STAGE] = (
        options.smallest_gradient,
        method.kick,
        ATTEMPT_ITERATIONS,
    )
    at[ITERATIONS_PER_CALL] = np.inf
    at[FIXED_DAMPING] = method.damping or 0.0
    at[STEP_TOLERANCE] = options.smallest_step
    at[MAX_ERROR] = method.largest_error / size * options.position_weight
    at[MAX_ANGLE_ERROR] = method.largest_angle_error * options.rotation_weight
    at[USES_EIGENVALUES], at[MAX_PERTURBATIONS] = method.svd, method.kicks


def run_kernel(
    mechanism: Mechanism,
    subproblem: Subproblem,
    relations: Sequence[Relation],
    q0: Array,
    starts: Array,
    monitor: Monitor | None = None,
) -> Array:
    """Search from `q0` and then from each of `starts` with the descent kernel, and return q (nq,).

    The report of the search is in the table `out` of the subproblem.

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
    each = monitor.wants_iterations
    watched = monitor.deadline < math.inf or each
    options[ITERATIONS_PER_CALL] = 1 if watched else np.inf
    state[IS_RESUMED] = 0.0
    before, tried, paused = time.perf_counter(), None, False
    try:
        while (code := descent_kernel.search(packed.ints, packed.floats, NO_TARGET, q0, starts, q)) != DONE:
            if code == NEEDS_PYTHON_FUNCTIONS:
                evaluate_python_residuals(mechanism, subproblem, relations, len(q0))
                continue
            now = time.perf_counter()
            if each:
                if paused:  # the first pause comes before the first step is evaluated
                    monitor.record(packed.tables["x"], len(q0), state[COST])
                paused = True
            else:  # as many iterations as fit between two checks of the deadline
                share = CLOCK_INTERVAL_S / max(now - before, 1e-7)
                options[ITERATIONS_PER_CALL] = max(
                    1.0, min(options[ITERATIONS_PER_CALL] * 2, math.floor(options[ITERATIONS_PER_CALL] * share))
                )
            if monitor.stopped or now + CLOCK_INTERVAL_S >= monitor.deadline:
                # end the search here: no stage may continue, and no attempt may start
                options[MAX_ITERATIONS] = 0
                options[ITERATIONS_PER_CALL] = np.inf
                tried = state[ATTEMPT] + 1
                state[ATTEMPT] = len(starts) + 1
            before = now
    finally:
        state[IS_RESUMED] = 0.0
    if paused:
        monitor.record(q, len(q0), state[COST])
    out = packed.tables["out"]
    if tried is not None:
        out[ATTEMPTS_OUT] = tried
    if monitor.stopped and out[SUCCESS] != 1.0:
        out[STATUS] = STOPPED
    return q


def evaluate_python_residuals(
    mechanism: Mechanism, subproblem: Subproblem, relations: Sequence[Relation], nq: int
) -> None:
    """Evaluate residuals and Jacobians of the blocks that are Python functions at the kernel's trial configuration."""
    packed, at = subproblem.packed, subproblem.packed.tables
    buffer = 1 - int(at["state"][CURRENT_BUFFER])
    q = at["trial"][:nq].copy()
    slack = at["slack"].reshape(-1, 2)
    for b, relation in enumerate(relations):
        if relation.kind is not RelationKind.FUNCTION or relation.function is None:
            continue
        block = at["blocks"][b * problem.BLOCK_INTS : (b + 1) * problem.BLOCK_INTS]
        row, height, width = (int(block[k]) for k in (problem.FIRST_ROW, problem.ROW_COUNT, problem.COLUMN_COUNT))
        members = at["block_columns"][block[problem.FIRST_COLUMN] :][:width]
        weight = at["weight"][row : row + height]
        value, J = relation.function(mechanism, q)
        rows = at["rows"][buffer * packed.sizes["rows"] + row :][:height]
        rows[:] = weight * value
        into = at["jacobian"][buffer * packed.sizes["jacobian"] + int(block[problem.FIRST_JACOBIAN]) :][
            : height * width
        ]
        into = into.reshape(height, width)
        into[:] = 0.0
        v = packed.columns[members]
        mine = np.flatnonzero(v >= 0)
        into[:, mine] = weight[:, None] * J[:, v[mine]] * at["scale"][members[mine]]
        if block[problem.HAS_BANDS]:
            k, u = slack[row : row + height].T
            rows -= weight * at["trial"][k]
            into[np.arange(height), u] = -1.0
