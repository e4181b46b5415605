"""The general descent kernel: attempts from several starts, stages and damped steps in one loop.

An attempt runs through all stages (`stages.py`) with steps of `bounded_step.py`. Attempts start at q0, then at further
starts, until one succeeds; the kernel keeps the best. The loop is a state machine with one call of each large function,
since every further call is compiled again (23 s instead of 84 s). The state machine can also pause: for residuals that
Python computes, or after a budget of iterations.

Spherical joints that are passive (welded to another node) do not take part in the descent. The kernel sets their
quaternions at the end, from the poses of the nodes they connect.
"""

from __future__ import annotations

import math

import numpy as np

from .bounded_step import CURVATURE_DAMPING_RATIO, CURVATURE_REQUESTED, apply_step, bounded_step
from .compiler import kernel, subroutine
from .curvature import next_probe, record_sample
from .elimination import NO_COLUMN
from .problem_layout import *
from .relative_pose import IDENTITY_ROTATION
from .residuals import evaluate_residuals, read_rotation, update_node_poses
from .stages import (
    begin_stage,
    can_probe,
    copy_x,
    decide_step,
    evaluate_trial,
    may_request_curvature,
    next_stage,
    sum_of_squares,
)
from .state_layout import *


@subroutine
def fixed_axes_in_world(floats, poses, node, fixed):
    """Rotation matrix, row by row, of axes fixed in a node (-1: in the world), in world coordinates."""
    a = read_rotation(floats, poses + 12 * node) if node >= 0 else IDENTITY_ROTATION
    b = read_rotation(floats, fixed)
    return (
        a[0] * b[0] + a[1] * b[3] + a[2] * b[6], a[0] * b[1] + a[1] * b[4] + a[2] * b[7],
        a[0] * b[2] + a[1] * b[5] + a[2] * b[8],
        a[3] * b[0] + a[4] * b[3] + a[5] * b[6], a[3] * b[1] + a[4] * b[4] + a[5] * b[7],
        a[3] * b[2] + a[4] * b[5] + a[5] * b[8],
        a[6] * b[0] + a[7] * b[3] + a[8] * b[6], a[6] * b[1] + a[7] * b[4] + a[8] * b[7],
        a[6] * b[2] + a[7] * b[5] + a[8] * b[8],
    )  # fmt: skip


@subroutine
def align_passive_joints(ints, floats, x):
    """Set the quaternions of passive spherical joints from all other numbers of x.

    Of the two signs of a quaternion, the sign nearer to the previous quaternion is taken.
    """
    update_node_poses(ints, floats, x)
    poses = ints[AT_POSES]
    for i in range(ints[N_PASSIVE]):
        at = ints[AT_PASSIVE] + PASSIVE_FLOATS * i
        k = x + int(floats[at + PASSIVE_X])
        A = fixed_axes_in_world(floats, poses, int(floats[at + PASSIVE_CARRIER_NODE]), at + PASSIVE_CARRIER_AXES)
        B = fixed_axes_in_world(floats, poses, int(floats[at + PASSIVE_WELD_NODE]), at + PASSIVE_WELD_AXES)
        # Q = A'B; the largest of the four products is never small, so no digits are lost
        xx, xy, xz = (
            A[0] * B[0] + A[3] * B[3] + A[6] * B[6],
            A[0] * B[1] + A[3] * B[4] + A[6] * B[7],
            A[0] * B[2] + A[3] * B[5] + A[6] * B[8],
        )
        yx, yy, yz = (
            A[1] * B[0] + A[4] * B[3] + A[7] * B[6],
            A[1] * B[1] + A[4] * B[4] + A[7] * B[7],
            A[1] * B[2] + A[4] * B[5] + A[7] * B[8],
        )
        zx, zy, zz = (
            A[2] * B[0] + A[5] * B[3] + A[8] * B[6],
            A[2] * B[1] + A[5] * B[4] + A[8] * B[7],
            A[2] * B[2] + A[5] * B[5] + A[8] * B[8],
        )
        tw, tx, ty, tz = 1.0 + xx + yy + zz, 1.0 + xx - yy - zz, 1.0 - xx + yy - zz, 1.0 - xx - yy + zz
        if tw >= tx and tw >= ty and tw >= tz:
            w, a, b, c = tw, zy - yz, xz - zx, yx - xy
        elif tx >= ty and tx >= tz:
            w, a, b, c = zy - yz, tx, xy + yx, xz + zx
        elif ty >= tz:
            w, a, b, c = xz - zx, xy + yx, ty, yz + zy
        else:
            w, a, b, c = yx - xy, xz + zx, yz + zy, tz
        size = math.sqrt(w * w + a * a + b * b + c * c)
        if w * floats[k] + a * floats[k + 1] + b * floats[k + 2] + c * floats[k + 3] < 0.0:
            size = -size
        floats[k], floats[k + 1], floats[k + 2], floats[k + 3] = w / size, a / size, b / size, c / size


MIN_QUATERNION_NORM2 = 1e-6
"""Squared norm below which the four numbers of a spherical joint in q0 are rejected instead of normalized."""
ROTATION_TOLERANCE = 1e-6
"""Largest total deviation of a target's rotation columns from unit length and right angles."""
MAX_RANKED_STARTS = 128
"""Number of starts that are tried nearest first. Twice as many save 2 % of the iterations, and ranking them costs as
much."""


@subroutine
def write_target(ints, floats, target):
    """Write the target pose (4, 4) into the single goal of the problem; False if it is not a rigid transform."""
    deviation = 0.0
    for k in range(3):
        dot, square = 0.0, 0.0
        for r in range(3):
            square += target[r, k] * target[r, k]
            dot += target[r, k] * target[r, (k + 1) % 3]
        deviation += abs(dot) + abs(square - 1.0) + 0.0 * target[k, 3] + abs(target[3, k])
    x = target[1, 1] * target[2, 2] - target[1, 2] * target[2, 1]
    y = target[1, 2] * target[2, 0] - target[1, 0] * target[2, 2]
    z = target[1, 0] * target[2, 1] - target[1, 1] * target[2, 0]
    is_mirrored = target[0, 0] * x + target[0, 1] * y + target[0, 2] * z < 0.0
    if is_mirrored or not deviation + abs(target[3, 3] - 1.0) < ROTATION_TOLERANCE:
        return False
    frame = ints[AT_BLOCK_DATA] + BLOCK_FLOATS * ints[TARGET_BLOCK] + FRAME_A
    for r in range(3):
        floats[frame + 9 + r] = target[r, 3]
        for k in range(3):
            floats[frame + 3 * r + k] = target[r, k]
    return True


@subroutine
def load_start(ints, floats, start):
    """Copy a start into the first numbers of x; the numbers that the problem adds to q stay."""
    x = ints[AT_X]
    for k in range(start.shape[0]):
        floats[x + k] = start[k]


@subroutine
def load_restart(ints, floats, start):
    """Copy the numbers of a start that may move into x; locked numbers stay."""
    x, column_x, bound_state, sphericals = ints[AT_X], ints[AT_COLUMN_X], ints[AT_BOUND_STATE], ints[AT_SPHERICAL]
    for v in range(ints[N_COLUMNS]):
        k = ints[column_x + v]
        if 0 <= k < ints[N_Q] and ints[bound_state + v] != LOCKED:
            floats[x + k] = start[k]
    for i in range(ints[N_SPHERICAL]):
        if ints[bound_state + ints[sphericals + 2 * i + 1]] != LOCKED:
            for k in range(ints[sphericals + 2 * i], ints[sphericals + 2 * i] + 4):
                floats[x + k] = start[k]


@subroutine
def begin_attempt(ints, floats, state, options, report):
    """Begin an attempt from x, clamped to its bounds."""
    column_x, bound_state, lower, upper = ints[AT_COLUMN_X], ints[AT_BOUND_STATE], ints[AT_LOWER], ints[AT_UPPER]
    x = ints[AT_X]
    for v in range(ints[N_COLUMNS]):
        k = ints[column_x + v]
        if ints[bound_state + v] != LOCKED:
            ints[bound_state + v] = FREE
            if k >= 0:
                floats[x + k] = min(max(floats[x + k], floats[lower + v]), floats[upper + v])
                # a column that begins on a bound is likely to stay there; the first step releases it if it does not
                if floats[x + k] == floats[upper + v]:
                    ints[bound_state + v] = ON_UPPER
                elif floats[x + k] == floats[lower + v]:
                    ints[bound_state + v] = ON_LOWER
    for s in range(ints[N_STAGES]):
        report[FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * s + STAGE_STATUS] = NOT_TRIED
        report[FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * s + STAGE_COST] = np.inf
    state[CURRENT_BUFFER], state[ITERATIONS_IN_STAGE], state[IS_EVALUATED] = 0.0, 0.0, 0.0
    state[FIRST_UNMET_STAGE], state[HAS_MOVED_BELOW], state[STAGE_ROUND] = 0.0, 0.0, 0.0
    begin_stage(ints, floats, state, options, report, 0.0)


@subroutine
def begin_first_attempt(ints, floats, state, options, report, q0, restarts):
    """Begin the first attempt at q0; False if q0 is not finite or a quaternion in it is close to zero."""
    lower, upper, column_x, best_cost = ints[AT_LOWER], ints[AT_UPPER], ints[AT_COLUMN_X], ints[AT_BEST_COST]
    state[ATTEMPT], state[ITERATIONS], state[EVALUATIONS], state[LAST_DISTANCE] = 0.0, 0.0, 0.0, -1.0
    state[MAY_ABANDON] = 1.0 if restarts > 0 else 0.0
    for s in range(ints[N_STAGES]):
        floats[best_cost + s] = np.inf
    total = 0.0
    for k in range(q0.shape[0]):
        total += q0[k]
    has_quaternions = True
    for i in range(ints[N_SPHERICAL]):
        k = ints[ints[AT_SPHERICAL] + 2 * i]
        has_quaternions &= (
            q0[k] * q0[k] + q0[k + 1] * q0[k + 1] + q0[k + 2] * q0[k + 2] + q0[k + 3] * q0[k + 3] > MIN_QUATERNION_NORM2
        )
    report[START_WAS_CLAMPED] = 0.0
    for v in range(ints[N_COLUMNS]):
        k = ints[column_x + v]
        if 0 <= k < q0.shape[0] and (q0[k] < floats[lower + v] or q0[k] > floats[upper + v]):
            report[START_WAS_CLAMPED] = 1.0
    load_start(ints, floats, q0)
    begin_attempt(ints, floats, state, options, report)
    return np.isfinite(total) and has_quaternions


@subroutine
def is_better(ints, floats, state, options, report):
    """Whether the attempt that has ended beats the best so far; the first stage in which they differ decides."""
    best_cost = ints[AT_BEST_COST]
    for s in range(ints[N_STAGES]):
        stage_report = FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * s
        cost = 0.0 if report[stage_report + STAGE_STATUS] == CONVERGED else report[stage_report + STAGE_COST]
        if cost < floats[best_cost + s] * (1.0 - 1e-9):
            return True
        if cost > floats[best_cost + s] * (1.0 + 1e-9):
            return False
    return False


@subroutine
def has_succeeded(ints, floats, state, options, report):
    """Whether every stage that is not a soft objective has converged and is still within tolerance at the end."""
    stages = ints[AT_STAGES]
    for s in range(ints[N_STAGES]):
        if ints[stages + STAGE_INTS * s + IS_SOFT_OBJECTIVE] == 0:
            if report[FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * s + STAGE_STATUS] != CONVERGED:
                return False
            _, is_met = sum_of_squares(
                ints,
                floats,
                int(state[CURRENT_BUFFER]),
                ints[stages + STAGE_INTS * s + HARD_END],
                ints[stages + STAGE_INTS * s + SOFT_END],
            )
            if not is_met:
                return False
    return True


@subroutine
def write_report(ints, floats, state, options, report, success):
    stages = ints[AT_STAGES]
    report[SUCCESS] = 1.0 if success else 0.0
    report[ITERATIONS_OUT], report[EVALUATIONS_OUT], report[ATTEMPTS_OUT] = (
        state[ITERATIONS],
        state[EVALUATIONS],
        state[ATTEMPT],
    )
    status = CONVERGED
    for s in range(ints[N_STAGES]):
        if ints[stages + STAGE_INTS * s + IS_SOFT_OBJECTIVE] == 0:
            status = max(status, report[FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * s + STAGE_STATUS])
    if status == CONVERGED and not success:  # a level that had converged was violated later
        status = STALLED
    report[STATUS] = NOT_CLOSED if report[FIRST_STAGE_REPORT + STAGE_STATUS] != CONVERGED else status


@subroutine
def nearest_start(ints, floats, state, starts, k):
    """Index of the untried start at which the goal's frame B is nearest to its frame A; k if there is none.

    The pose of B at a start follows its nq numbers. Distances grow from attempt to attempt, so the last distance
    separates tried starts from untried ones.
    """
    block, nq = ints[AT_BLOCKS] + BLOCK_INTS * ints[TARGET_BLOCK], ints[N_Q]
    A, row = (
        ints[AT_BLOCK_DATA] + BLOCK_FLOATS * ints[TARGET_BLOCK] + FRAME_A,
        ints[AT_WEIGHT] + ints[block + FIRST_ROW],
    )
    length, angle = floats[row] * floats[row], floats[row + 3] * floats[row + 3]
    best = np.inf
    for i in range(min(starts.shape[0], MAX_RANKED_STARTS)):
        trace = 0.0
        for c in range(9):
            trace += floats[A + c] * starts[i, nq + c]
        x, y, z = (
            floats[A + 9] - starts[i, nq + 9],
            floats[A + 10] - starts[i, nq + 10],
            floats[A + 11] - starts[i, nq + 11],
        )
        distance = length * (x * x + y * y + z * z) + angle * (3.0 - trace)
        if state[LAST_DISTANCE] < distance < best:
            best, k = distance, i
    state[LAST_DISTANCE] = best
    return k


@subroutine
def next_attempt(ints, floats, state, options, report, starts):
    """End an attempt: keep it if it is the best, and begin the next; False if there is none."""
    best_cost, x, best = ints[AT_BEST_COST], ints[AT_X], ints[AT_BEST_X]
    success = has_succeeded(ints, floats, state, options, report)
    if success or is_better(ints, floats, state, options, report) or state[ATTEMPT] == 0.0:
        copy_x(ints, floats, x, best)
        for s in range(ints[N_STAGES]):
            stage_report = FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * s
            floats[best_cost + s] = (
                0.0 if report[stage_report + STAGE_STATUS] == CONVERGED else report[stage_report + STAGE_COST]
            )
    state[ATTEMPT] += 1.0
    if success or state[MAY_ABANDON] == 0.0:
        write_report(ints, floats, state, options, report, success)
        return False
    if state[ATTEMPT] <= starts.shape[0]:
        k = int(state[ATTEMPT]) - 1
        if k < MAX_RANKED_STARTS and starts.shape[1] > ints[N_Q]:
            k = nearest_start(ints, floats, state, starts, k)
        load_restart(ints, floats, starts[k])
    else:  # no attempt has succeeded: minimise as far as possible from the best
        state[MAY_ABANDON] = 0.0
        state[ATTEMPT] -= 1.0  # this continuation does not count as an attempt
        copy_x(ints, floats, best, x)
    begin_attempt(ints, floats, state, options, report)
    return True


MIN_DAMPING = 1e-10
"""Added to the damping of every step. Rounding errors divided by it move the dofs that the goals leave free: solutions
of redundant arms differ by up to 2e-10 rad between machine code and plain Python, with 1e-12 by 3e-9 rad. In 3,000
solves of the gallery (near, out of reach, at singular poses, with levels) both take the same number of iterations, to 1
in 1,000."""


@subroutine
def count_independent_columns(ints):
    n = ints[RUNTIME_ZERO]
    for v in range(ints[N_COLUMNS]):
        if ints[ints[AT_DEPENDENT_INDEX] + v] == NO_COLUMN:
            n += 1
    return n


@kernel("i8(i8[::1], f8[::1], f8[:,::1], f8[::1], f8[:,::1], f8[::1])")
def search(ints, floats, target, q0, starts, q):
    """Descend from q0, then from each of `starts`, until a descent succeeds; write the best into q.

    Args:
        ints, floats: the packed problem (`problem_layout.py`).
        target: (4, 4), replaces the target of the only goal; any other shape leaves the targets as they are.
        q0: (nq,), the first start.
        starts: (k, nq) or wider, further starts; the nq numbers may be followed by the pose (12) of the goal's frame B.
        q: (nq,), written when the search is done.

    Returns:
        DONE; NEEDS_PYTHON_FUNCTIONS or PAUSED (call again to continue); BAD_TARGET or BAD_START.
    """
    x, trial, stages = ints[AT_X], ints[AT_TRIAL], ints[AT_STAGES]
    state, options, report = floats[ints[AT_STATE] :], floats[ints[AT_OPTIONS] :], floats[ints[AT_REPORT] :]
    if state[IS_RESUMED] == 0.0:
        if target.shape[0] == 4 and not write_target(ints, floats, target):
            return BAD_TARGET
        if not begin_first_attempt(ints, floats, state, options, report, q0, starts.shape[0]):
            return BAD_START
    state[IS_RESUMED] = 1.0
    first_iteration, code = state[ITERATIONS], ints[RUNTIME_ZERO] + DONE
    while True:
        stage, current = int(state[STAGE]), int(state[CURRENT_BUFFER])
        if state[IS_EVALUATED] == 0.0:
            # the first level is evaluated together with the closures: they are mostly closed, and it is needed next
            last_stage = max(stage, min(1, ints[N_STAGES] - 1))
            evaluate_residuals(ints, floats, trial, 1 - current, ints[stages + STAGE_INTS * last_stage + SOFT_END])
            state[EVALUATIONS] += 1
            if ints[N_FUNCTIONS] > 0:
                state[IS_EVALUATED] = 1.0
                return NEEDS_PYTHON_FUNCTIONS
        state[IS_EVALUATED] = 0.0
        hard, soft = ints[stages + STAGE_INTS * stage + HARD_END], ints[stages + STAGE_INTS * stage + SOFT_END]
        if state[PHASE] == PHASE_PROBING:
            record_sample(
                ints, floats, 1 - current, hard, soft, int(state[PROBED_COLUMN]), int(state[INDEPENDENT_COUNT])
            )
            state[PROBED_COLUMN] += 1
            action = NEXT_PROBE
        else:
            action = evaluate_trial(ints, floats, state, options, report)
        if action == NEXT_EVALUATION:
            continue
        eliminated = ints[RUNTIME_ZERO]
        while True:
            if action == NEXT_PROBE:
                state[PROBED_COLUMN] = next_probe(
                    ints, floats, int(state[PROBED_COLUMN]), int(state[INDEPENDENT_COUNT])
                )
                if state[PROBED_COLUMN] < state[INDEPENDENT_COUNT]:
                    break
                action, eliminated = NEXT_STEP, int(state[INDEPENDENT_COUNT])
            if action == NEXT_STAGE:
                break
            is_newton, current = action == NEXT_CLOSURE_STEP, int(state[CURRENT_BUFFER])
            damping = state[MU] * state[COST] + MIN_DAMPING
            if options[FIXED_DAMPING] > 0.0:
                damping = options[FIXED_DAMPING] * state[MU] / options[START_DAMPING]
            base, buffer = (trial, 1 - current) if is_newton else (x, current)
            uses_curvature, has_moved, poses_are_current = (
                state[USES_CURVATURE] == 1.0,
                state[HAS_MOVED],
                state[POSES_ARE_CURRENT],
            )
            may_probe, may_request = (
                uses_curvature and can_probe(ints, state, options, stage),
                may_request_curvature(ints, state, options),
            )
            damping_ratio = CURVATURE_DAMPING_RATIO if state[MU] <= options[START_DAMPING] else 1.0
            cost, change, max_gradient, curvature = bounded_step(
                ints, floats, options, base, stage, buffer, damping, is_newton, uses_curvature, may_probe, may_request,
                eliminated, damping_ratio, has_moved, poses_are_current,
            )  # fmt: skip
            if is_newton:
                break
            state[HAS_MOVED], state[POSES_ARE_CURRENT] = 0.0, 0.0
            if curvature == CURVATURE_REQUESTED:
                action, state[PHASE], state[PROBED_COLUMN], state[INDEPENDENT_COUNT] = (
                    NEXT_PROBE,
                    PHASE_PROBING,
                    0,
                    count_independent_columns(ints),
                )
                state[USES_CURVATURE], state[CURVATURE_IS_NEW] = 1.0, 1.0
                continue
            state[PHASE] = PHASE_TRIAL
            eliminated = ints[RUNTIME_ZERO]
            action = decide_step(ints, floats, state, options, report, cost, change, max_gradient, curvature)
            if action != NEXT_RETRY:
                state[ITERATIONS_IN_STAGE] += 1
                state[ITERATIONS] += 1
                break
        if action == NEXT_STAGE:
            if not next_stage(ints, floats, state, options, report) and not next_attempt(
                ints, floats, state, options, report, starts
            ):
                break
            continue
        if action == NEXT_EVALUATION:  # x was perturbed: the trial counts as a start
            state[PHASE] = PHASE_START
        apply_step(ints, floats, trial if action == NEXT_CLOSURE_STEP else x, trial, action != NEXT_PROBE)
        if state[ITERATIONS] - first_iteration >= options[ITERATIONS_PER_CALL]:
            code = ints[RUNTIME_ZERO] + PAUSED
            break
    if ints[N_PASSIVE] > 0:
        align_passive_joints(ints, floats, x)
    if code == DONE:
        state[IS_RESUMED] = 0.0
        for k in range(q.shape[0]):
            q[k] = floats[x + k]
    return code
