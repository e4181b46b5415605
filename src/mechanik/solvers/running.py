"""Driving the kernel through one part of a program: pauses, rows written in Python, the clock."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mechanik.kernels import problem
from mechanik.kernels.problem import (
    BUDGET,
    FIRST_MU,
    FIXED_DAMPING,
    KICK,
    KICKS,
    LARGEST_ANGLE,
    LARGEST_ERROR,
    MAX_ITERATIONS,
    PATIENCE,
    SHUT,
    SMALLEST_GRADIENT,
    SMALLEST_STEP,
    SVD,
)
from mechanik.kernels.solver_state import (
    ATTEMPT,
    ATTEMPTS_OUT,
    COST,
    CURRENT,
    DONE,
    NEEDS_FUNCTIONS,
    RESUMED,
    STATUS,
    STOPPED,
    SUCCESS,
)
from mechanik.mechanism import Mechanism
from mechanik.objectives.relation import Kind, Relation
from mechanik.program import Part
from mechanik.solvers.options import Options
from mechanik.solvers.watch import Watch
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

if TYPE_CHECKING:
    from mechanik.solvers.levenberg_marquardt import LevenbergMarquardt

descent = kernel_module("descent")

FIRST_DAMPING = 0.04
PATIENCE_WITH_ATTEMPTS = 40
"""Iterations after which one of several attempts is given up. Both tuned on random targets of a Panda and a UR5."""
SLICE = 2e-4
"""Seconds between two looks at the clock."""
NO_TARGET = np.zeros((0, 4))


def set_options(
    part: Part, options: Options, method: LevenbergMarquardt, size: float, max_iterations: int | None = None
) -> None:
    """Tell the kernel how to go about it."""
    at = part.packed.at["options"]
    most = options.max_iterations if max_iterations is None else max_iterations
    # the kernel looks at rows one by one; a block counts as shut by the norm of its three places, or of its turns
    at[SHUT] = max(1e-10 / math.sqrt(3) * min(1.0, 1.0 / size), 1e-13)
    at[MAX_ITERATIONS], at[FIRST_MU] = method.usual_iterations if most is None else most, FIRST_DAMPING
    at[SMALLEST_GRADIENT], at[KICK], at[PATIENCE] = options.smallest_gradient, method.kick, PATIENCE_WITH_ATTEMPTS
    at[BUDGET] = np.inf
    at[FIXED_DAMPING] = method.damping or 0.0
    at[SMALLEST_STEP] = options.smallest_step
    at[LARGEST_ERROR] = method.largest_error / size * options.position_weight
    at[LARGEST_ANGLE] = method.largest_angle_error * options.rotation_weight
    at[SVD], at[KICKS] = method.svd, method.kicks


def run(
    mechanism: Mechanism,
    part: Part,
    relations: Sequence[Relation],
    q0: Array,
    starts: Array,
    watch: Watch | None = None,
) -> Array:
    """Search from q0 and then from each of `starts`; returns q. What else there is to say is in the part's `out`.

    Args:
        relations: of the part's blocks, for those that are functions.
        watch: who looks on.
    """
    packed = part.packed
    state, options = packed.at["state"], packed.at["options"]
    q = np.empty(len(q0))
    watch = watch or Watch()
    each = watch.every_iteration
    watched = watch.deadline < math.inf or each
    options[BUDGET] = 1 if watched else np.inf
    state[RESUMED] = 0.0
    before, tried, paused = time.perf_counter(), None, False
    try:
        while (code := descent.search(packed.ints, packed.floats, NO_TARGET, q0, starts, q)) != DONE:
            if code == NEEDS_FUNCTIONS:
                call_functions(mechanism, part, relations, len(q0))
                continue
            now = time.perf_counter()
            if each:
                if paused:  # the first pause is before the first step has been looked at
                    watch.see(packed.at["x"], len(q0), state[COST])
                paused = True
            else:  # as many iterations as fit into a slice
                share = SLICE / max(now - before, 1e-7)
                options[BUDGET] = max(1.0, min(options[BUDGET] * 2, math.floor(options[BUDGET] * share)))
            if watch.stopped or now + SLICE >= watch.deadline:
                # end it where it stands: no stage may go on, and no attempt begin
                options[MAX_ITERATIONS] = 0
                options[BUDGET] = np.inf
                tried = state[ATTEMPT] + 1
                state[ATTEMPT] = len(starts) + 1
            before = now
    finally:
        state[RESUMED] = 0.0
    if paused:
        watch.see(q, len(q0), state[COST])
    out = packed.at["out"]
    if tried is not None:
        out[ATTEMPTS_OUT] = tried
    if watch.stopped and out[SUCCESS] != 1.0:
        out[STATUS] = STOPPED
    return q


def call_functions(mechanism: Mechanism, part: Part, relations: Sequence[Relation], nq: int) -> None:
    """Rows and Jacobians of the blocks that are written in Python, at the kernel's trial."""
    packed, at = part.packed, part.packed.at
    buffer = 1 - int(at["state"][CURRENT])
    q = at["trial"][:nq].copy()
    slack = at["slack"].reshape(-1, 2)
    for b, relation in enumerate(relations):
        if relation.kind is not Kind.FUNCTION or relation.function is None:
            continue
        block = at["blocks"][b * problem.BLOCK_INTS : (b + 1) * problem.BLOCK_INTS]
        row, height, width = (int(block[k]) for k in (problem.FIRST_ROW, problem.ROWS, problem.COLUMNS))
        members = at["block_columns"][block[problem.FIRST_COLUMN] :][:width]
        weight = at["weight"][row : row + height]
        value, J = relation.function(mechanism, q)
        rows = at["rows"][buffer * packed.sizes["rows"] + row :][:height]
        rows[:] = weight * value
        into = at["jacobian"][buffer * packed.sizes["jacobian"] + int(block[problem.FIRST_J]) :][: height * width]
        into = into.reshape(height, width)
        into[:] = 0.0
        v = packed.columns[members]
        mine = np.flatnonzero(v >= 0)
        into[:, mine] = weight[:, None] * J[:, v[mine]] * at["scale"][members[mine]]
        if block[problem.HAS_BANDS]:
            k, u = slack[row : row + height].T
            rows -= weight * at["trial"][k]
            into[np.arange(height), u] = -1.0
