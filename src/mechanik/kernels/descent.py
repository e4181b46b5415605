"""The general kernel: damped least-squares descents from several starts, stage by stage, in one loop.

An attempt is one descent through all stages (`stages.py`) with steps of `bounded_step.py`. The first attempt starts at
q0, further attempts at other starts, until one succeeds. Slow attempts end early; if none succeeds, the best attempt is
continued until it converges. The loop of `search` is a state machine that calls each large function at one place only,
since each further call is compiled again (compiling takes 23 s instead of 84 s). The state machine can also pause: for
residuals that Python computes, or after a given number of iterations.

Passive spherical joints, whose child is welded to another node, do not take part in the descent. The quaternion of such
a joint is computed at the end of each call, from the poses of its parent node and of the welded node. Indices such as
`v` and `k` are explained in `problem_layout.py`.
"""

from __future__ import annotations

import math

import numpy as np

from .bounded_step import CURVATURE_DAMPING_RATIO, CURVATURE_REQUESTED, apply_step, bounded_step
from .compiler import kernel, subroutine
from .curvature import record_sample, write_next_probe
from .elimination import NO_INDEX
from .problem_layout import *
from .relative_pose import IDENTITY_ROTATION
from .residuals import evaluate_residuals, read_rotation, update_node_poses
from .stages import (
    accept_or_reject_trial,
    advance_stage,
    begin_stage,
    can_probe,
    can_probe_early,
    copy_x,
    decide_step,
    sum_of_squares,
)
from .state_layout import *


@subroutine
def fixed_axes_in_world(floats, poses, node, fixed_axes):
    """Return the world rotation, row by row, of axes that are fixed in a node (-1: the world).

    A is the world rotation of the node, B the rotation of the axes in the node, at the offset `fixed_axes`.
    """
    A = read_rotation(floats, poses + 12 * node) if node >= 0 else IDENTITY_ROTATION
    B = read_rotation(floats, fixed_axes)
    return (
        A[0] * B[0] + A[1] * B[3] + A[2] * B[6], A[0] * B[1] + A[1] * B[4] + A[2] * B[7],
        A[0] * B[2] + A[1] * B[5] + A[2] * B[8],
        A[3] * B[0] + A[4] * B[3] + A[5] * B[6], A[3] * B[1] + A[4] * B[4] + A[5] * B[7],
        A[3] * B[2] + A[4] * B[5] + A[5] * B[8],
        A[6] * B[0] + A[7] * B[3] + A[8] * B[6], A[6] * B[1] + A[7] * B[4] + A[8] * B[7],
        A[6] * B[2] + A[7] * B[5] + A[8] * B[8],
    )  # fmt: skip


@subroutine
def align_passive_joints(ints, floats, x):
    """Set the quaternions of passive spherical joints in x so that their welds are closed.

    A rotation has two quaternions, q and -q; the quaternion nearer to the previous quaternion is written. A and B are
    the world rotations of the joint's axes in its parent node and in the welded node.
    """
    update_node_poses(ints, floats, x)
    poses = ints[AT_POSES]
    for i in range(ints[N_PASSIVE]):
        joint = ints[AT_PASSIVE] + PASSIVE_FLOATS * i
        k = x + int(floats[joint + PASSIVE_X])
        A = fixed_axes_in_world(floats, poses, int(floats[joint + PASSIVE_PARENT_NODE]), joint + PASSIVE_PARENT_AXES)
        B = fixed_axes_in_world(floats, poses, int(floats[joint + PASSIVE_WELD_NODE]), joint + PASSIVE_WELD_AXES)
        # the rotation of the joint is A'B, with the rows x, y and z; tw, tx, ty and tz are four times the squared
        # components of its quaternion, which is computed from the largest component, since that is at least 1/2
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
            qw, qx, qy, qz = tw, zy - yz, xz - zx, yx - xy
        elif tx >= ty and tx >= tz:
            qw, qx, qy, qz = zy - yz, tx, xy + yx, xz + zx
        elif ty >= tz:
            qw, qx, qy, qz = xz - zx, xy + yx, ty, yz + zy
        else:
            qw, qx, qy, qz = yx - xy, xz + zx, yz + zy, tz
        norm = math.sqrt(qw * qw + qx * qx + qy * qy + qz * qz)
        if qw * floats[k] + qx * floats[k + 1] + qy * floats[k + 2] + qz * floats[k + 3] < 0.0:
            norm = -norm
        floats[k], floats[k + 1], floats[k + 2], floats[k + 3] = qw / norm, qx / norm, qy / norm, qz / norm


MIN_QUATERNION_NORM2 = 1e-6
"""Squared norm up to which a quaternion in q0 is invalid; the first step normalizes other quaternions."""
MAX_TARGET_DEVIATION = 1e-6
"""Bound of the sum of the deviations of a target from a rigid transform: those of the squared lengths of the columns of
its rotation from 1, of their scalar products from 0, and of its last row from (0, 0, 0, 1)."""
MAX_RANKED_STARTS = 128
"""Largest number of starts that are tried in the order of their distance to the target. Twice this number would save
2 % of the iterations, but the ranking would take as much time as this saves."""


@subroutine
def write_target(ints, floats, target):
    """Write a target pose (4, 4), m, to the block `TARGET_BLOCK`; return False if it is not a rigid transform."""
    deviation = 0.0
    for k in range(3):
        dot, norm2 = 0.0, 0.0
        for r in range(3):
            norm2 += target[r, k] * target[r, k]
            dot += target[r, k] * target[r, (k + 1) % 3]
        # 0 times an infinite position is NaN, which is not below the tolerance
        deviation += abs(dot) + abs(norm2 - 1.0) + 0.0 * target[k, 3] + abs(target[3, k])
    minor_x = target[1, 1] * target[2, 2] - target[1, 2] * target[2, 1]
    minor_y = target[1, 2] * target[2, 0] - target[1, 0] * target[2, 2]
    minor_z = target[1, 0] * target[2, 1] - target[1, 1] * target[2, 0]
    is_mirrored = target[0, 0] * minor_x + target[0, 1] * minor_y + target[0, 2] * minor_z < 0.0
    if is_mirrored or not deviation + abs(target[3, 3] - 1.0) < MAX_TARGET_DEVIATION:
        return False
    frame_a = ints[AT_BLOCK_DATA] + BLOCK_FLOATS * ints[TARGET_BLOCK] + FRAME_A
    for r in range(3):
        floats[frame_a + 9 + r] = target[r, 3]
        for k in range(3):
            floats[frame_a + 3 * r + k] = target[r, k]
    return True


@subroutine
def load_start(ints, floats, start):
    """Copy a start (nq,) to x; the variables that the problem adds to q stay unchanged."""
    x = ints[AT_X]
    for k in range(start.shape[0]):
        floats[x + k] = start[k]


@subroutine
def load_restart(ints, floats, start):
    """Copy the first nq numbers of `start` to x; locked joints and joints without a column keep their values."""
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
    """Begin an attempt at x, after clamping the values of columns that are not locked to their bounds."""
    column_x, bound_state, lower, upper = ints[AT_COLUMN_X], ints[AT_BOUND_STATE], ints[AT_LOWER], ints[AT_UPPER]
    x = ints[AT_X]
    for v in range(ints[N_COLUMNS]):
        k = ints[column_x + v]
        if ints[bound_state + v] != LOCKED:
            ints[bound_state + v] = FREE
            if k >= 0:
                floats[x + k] = min(max(floats[x + k], floats[lower + v]), floats[upper + v])
                # a column that starts on a bound probably stays on it; otherwise the first step releases it
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
def begin_first_attempt(ints, floats, state, options, report, q0, restart_count):
    """Begin the first attempt at q0; return False if q0 is not finite or has a quaternion close to zero."""
    lower, upper, column_x, best_cost = ints[AT_LOWER], ints[AT_UPPER], ints[AT_COLUMN_X], ints[AT_BEST_COST]
    state[ATTEMPT], state[ITERATIONS], state[EVALUATIONS], state[LAST_DISTANCE] = 0.0, 0.0, 0.0, -1.0
    state[MAY_ABANDON] = 1.0 if restart_count > 0 else 0.0
    for s in range(ints[N_STAGES]):
        floats[best_cost + s] = np.inf
    q0_sum = 0.0
    for k in range(q0.shape[0]):
        q0_sum += q0[k]
    quaternions_are_valid = True
    for i in range(ints[N_SPHERICAL]):
        k = ints[ints[AT_SPHERICAL] + 2 * i]
        quaternions_are_valid &= (
            q0[k] * q0[k] + q0[k + 1] * q0[k + 1] + q0[k + 2] * q0[k + 2] + q0[k + 3] * q0[k + 3] > MIN_QUATERNION_NORM2
        )
    report[START_WAS_CLAMPED] = 0.0
    for v in range(ints[N_COLUMNS]):
        k = ints[column_x + v]
        if 0 <= k < q0.shape[0] and (q0[k] < floats[lower + v] or q0[k] > floats[upper + v]):
            report[START_WAS_CLAMPED] = 1.0
    load_start(ints, floats, q0)
    begin_attempt(ints, floats, state, options, report)
    return np.isfinite(q0_sum) and quaternions_are_valid


@subroutine
def is_better(ints, floats, state, options, report):
    """Whether the ended attempt is better than the best attempt so far.

    The costs of the stages are compared in order, and the first stage with different costs decides. A stage that has
    converged counts as cost 0.
    """
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
def write_report(ints, floats, state, options, report, is_success):
    """Write the entries of the solve to the report.

    The status of the solve is NOT_CLOSED if stage 0 has not converged; otherwise it is the largest status of a stage
    that is not a soft objective. If all these stages have converged but a later stage has violated one of them, it is
    STALLED.
    """
    stages = ints[AT_STAGES]
    report[SUCCESS] = 1.0 if is_success else 0.0
    report[ITERATIONS_OUT], report[EVALUATIONS_OUT], report[ATTEMPTS_OUT] = (
        state[ITERATIONS],
        state[EVALUATIONS],
        state[ATTEMPT],
    )
    status = CONVERGED
    for s in range(ints[N_STAGES]):
        if ints[stages + STAGE_INTS * s + IS_SOFT_OBJECTIVE] == 0:
            status = max(status, report[FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * s + STAGE_STATUS])
    if status == CONVERGED and not is_success:  # a later stage has violated a level that had converged
        status = STALLED
    report[STATUS] = NOT_CLOSED if report[FIRST_STAGE_REPORT + STAGE_STATUS] != CONVERGED else status


@subroutine
def nearest_start(ints, floats, state, starts, nearest_index):
    """Return the index of the untried start at which the goal's frame B is nearest to its target.

    Only the first MAX_RANKED_STARTS starts are compared. If none of them is untried, the result is the argument
    `nearest_index`. The distance of the start is stored in LAST_DISTANCE.

    A row of `starts` contains q (nq numbers) and the world pose of B (12 numbers). Starts are tried in the order of
    their distance, so the untried starts are those with a distance above LAST_DISTANCE. This distance combines position
    and rotation, weighted and squared.
    """
    block, nq = ints[AT_BLOCKS] + BLOCK_INTS * ints[TARGET_BLOCK], ints[N_Q]
    frame_a, first_weight = (
        ints[AT_BLOCK_DATA] + BLOCK_FLOATS * ints[TARGET_BLOCK] + FRAME_A,
        ints[AT_WEIGHT] + ints[block + FIRST_ROW],
    )
    position_weight2, rotation_weight2 = (
        floats[first_weight] * floats[first_weight],
        floats[first_weight + 3] * floats[first_weight + 3],
    )
    best_distance = np.inf
    for i in range(min(starts.shape[0], MAX_RANKED_STARTS)):
        trace = 0.0
        for c in range(9):
            trace += floats[frame_a + c] * starts[i, nq + c]
        x, y, z = (
            floats[frame_a + 9] - starts[i, nq + 9],
            floats[frame_a + 10] - starts[i, nq + 10],
            floats[frame_a + 11] - starts[i, nq + 11],
        )
        distance = position_weight2 * (x * x + y * y + z * z) + rotation_weight2 * (3.0 - trace)
        if state[LAST_DISTANCE] < distance < best_distance:
            best_distance, nearest_index = distance, i
    state[LAST_DISTANCE] = best_distance
    return nearest_index


@subroutine
def advance_attempt(ints, floats, state, options, report, starts):
    """End an attempt, store it if it is the best, and begin the next attempt; return False if no attempt follows."""
    best_cost, x, best_x = ints[AT_BEST_COST], ints[AT_X], ints[AT_BEST_X]
    is_success = has_succeeded(ints, floats, state, options, report)
    if is_success or is_better(ints, floats, state, options, report) or state[ATTEMPT] == 0.0:
        copy_x(ints, floats, x, best_x)
        for s in range(ints[N_STAGES]):
            stage_report = FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * s
            floats[best_cost + s] = (
                0.0 if report[stage_report + STAGE_STATUS] == CONVERGED else report[stage_report + STAGE_COST]
            )
    state[ATTEMPT] += 1.0
    if is_success or state[MAY_ABANDON] == 0.0:
        write_report(ints, floats, state, options, report, is_success)
        return False
    if state[ATTEMPT] <= starts.shape[0]:
        start_index = int(state[ATTEMPT]) - 1
        if start_index < MAX_RANKED_STARTS and starts.shape[1] > ints[N_Q]:
            start_index = nearest_start(ints, floats, state, starts, start_index)
        load_restart(ints, floats, starts[start_index])
    else:  # no attempt has succeeded: continue the best attempt until it converges to a minimum
        state[MAY_ABANDON] = 0.0
        state[ATTEMPT] -= 1.0  # this continuation does not count as an attempt
        copy_x(ints, floats, best_x, x)
    begin_attempt(ints, floats, state, options, report)
    return True


MIN_DAMPING = 1e-10
"""Added to the damping of every step, except with FIXED_DAMPING. Rounding errors divided by this number move the
redundant dofs: solutions of redundant arms differ by up to 2e-10 rad between machine code and plain Python; with 1e-12
they would differ by 3e-9 rad. In 3,000 solves of gallery mechanisms (near, out of reach, at singular poses, with
levels) the numbers of iterations with both values agree to 1 in 1,000."""


@subroutine
def count_independent_columns(ints):
    """Return the number of independent columns."""
    independent_count = ints[RUNTIME_ZERO]
    for v in range(ints[N_COLUMNS]):
        if ints[ints[AT_PIVOT_ROW] + v] == NO_INDEX:
            independent_count += 1
    return independent_count


@kernel("i8(i8[::1], f8[::1], f8[:,::1], f8[::1], f8[:,::1], f8[::1])")
def search(ints, floats, target, q0, starts, q):
    """Descend from q0, then from each of `starts`, until a descent succeeds; write the best result to q.

    Args:
        ints, floats: the packed problem (`problem_layout.py`).
        target: (4, 4), m, replaces the target of the block `TARGET_BLOCK`; (0, 4) leaves all targets unchanged.
        q0: (nq,), the first start; m, rad and quaternions (wxyz).
        starts: (k, nq) or (k, nq + 12), further starts. The last 12 numbers of a row are the world pose of the goal's
            frame B; with them, the starts nearest to the target are tried first.
        q: (nq,), written when the search has ended.

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
    initial_iterations, result = state[ITERATIONS], ints[RUNTIME_ZERO] + DONE
    while True:
        stage, current_buffer = int(state[STAGE]), int(state[CURRENT_BUFFER])
        if state[IS_EVALUATED] == 0.0:
            # in stage 0 the first level is evaluated too: the loops are usually closed, and stage 1 follows at once
            last_stage = max(stage, min(1, ints[N_STAGES] - 1))
            evaluate_residuals(
                ints, floats, trial, 1 - current_buffer, ints[stages + STAGE_INTS * last_stage + SOFT_END]
            )
            state[EVALUATIONS] += 1
            if ints[N_FUNCTIONS] > 0:
                state[IS_EVALUATED] = 1.0
                return NEEDS_PYTHON_FUNCTIONS
        state[IS_EVALUATED] = 0.0
        hard_end, soft_end = ints[stages + STAGE_INTS * stage + HARD_END], ints[stages + STAGE_INTS * stage + SOFT_END]
        if state[PHASE] == PHASE_PROBING:
            record_sample(
                ints,
                floats,
                1 - current_buffer,
                hard_end,
                soft_end,
                int(state[PROBED_COLUMN]),
                int(state[INDEPENDENT_COUNT]),
            )
            state[PROBED_COLUMN] += 1
            action = NEXT_PROBE
        else:
            action = accept_or_reject_trial(ints, floats, state, options, report)
        if action == NEXT_EVALUATION:
            continue
        independent_count = ints[RUNTIME_ZERO]
        while True:
            if action == NEXT_PROBE:
                state[PROBED_COLUMN] = write_next_probe(
                    ints, floats, int(state[PROBED_COLUMN]), int(state[INDEPENDENT_COUNT])
                )
                if state[PROBED_COLUMN] < state[INDEPENDENT_COUNT]:
                    break
                action, independent_count = NEXT_STEP, int(state[INDEPENDENT_COUNT])
            if action == NEXT_STAGE:
                break
            is_newton, current_buffer = action == NEXT_CLOSURE_STEP, int(state[CURRENT_BUFFER])
            damping = state[RELATIVE_DAMPING] * state[COST] + MIN_DAMPING
            if options[FIXED_DAMPING] > 0.0:
                damping = options[FIXED_DAMPING] * state[RELATIVE_DAMPING] / options[START_DAMPING]
            step_origin, buffer = (trial, 1 - current_buffer) if is_newton else (x, current_buffer)
            uses_curvature, has_moved, poses_are_current = (
                state[USES_CURVATURE] == 1.0,
                state[HAS_MOVED],
                state[POSES_ARE_CURRENT],
            )
            may_probe, may_probe_early = (
                uses_curvature and can_probe(ints, state, options, stage),
                can_probe_early(ints, state, options),
            )
            damping_ratio = CURVATURE_DAMPING_RATIO if state[RELATIVE_DAMPING] <= options[START_DAMPING] else 1.0
            cost, predicted_change, max_gradient, curvature = bounded_step(
                ints, floats, options, step_origin, stage, buffer, damping, is_newton, uses_curvature, may_probe,
                may_probe_early, independent_count, damping_ratio, has_moved, poses_are_current,
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
            state[PHASE] = PHASE_STEP
            independent_count = ints[RUNTIME_ZERO]
            action = decide_step(ints, floats, state, options, report, cost, predicted_change, max_gradient, curvature)
            if action != NEXT_RETRY:
                state[ITERATIONS_IN_STAGE] += 1
                state[ITERATIONS] += 1
                break
        if action == NEXT_STAGE:
            if not advance_stage(ints, floats, state, options, report) and not advance_attempt(
                ints, floats, state, options, report, starts
            ):
                break
            continue
        if action == NEXT_EVALUATION:  # the step is a perturbation: the stage starts again at the trial
            state[PHASE] = PHASE_START
        apply_step(ints, floats, trial if action == NEXT_CLOSURE_STEP else x, trial, action != NEXT_PROBE)
        if state[ITERATIONS] - initial_iterations >= options[ITERATIONS_PER_CALL]:
            result = ints[RUNTIME_ZERO] + PAUSED
            break
    if ints[N_PASSIVE] > 0:
        align_passive_joints(ints, floats, x)
    if result == DONE:
        state[IS_RESUMED] = 0.0
        for k in range(q.shape[0]):
            q[k] = floats[x + k]
    return result
