"""The general kernel: damped least-squares descents from several starts, stage by stage, in one loop.

An attempt is one descent through all stages (`stages.py`) with steps of `bounded_step.py`. The first attempt starts at
q0, further attempts at other starts, until one succeeds. Slow attempts end early; if none succeeds, the best attempt is
continued until it converges. The loop of `search` is a state machine that calls each large function at one place only,
since each further call is compiled again (compiling takes 23 s instead of 84 s). The state machine can also pause: for
residuals that Python computes, or after a given number of iterations.

Passive spherical joints, whose child is welded to another node, do not take part in the descent. The quaternion of such
a joint is computed at the end of each call that returns DONE or PAUSED, from the poses of its parent node and of the
welded node. Indices such as `v` and `k` are explained in `problem_layout.py`.
"""

from __future__ import annotations

import math

import numpy as np

from .bounded_step import CURVATURE_DAMPING_RATIO, CURVATURE_REQUESTED, apply_step, bounded_step
from .compiler import kernel, subroutine
from .curvature import record_probe, write_next_probe
from .elimination import count_independent_columns
from .problem_layout import *
from .problem_views import rows_of_block
from .relative_pose import IDENTITY_ROTATION, times, transposed_times
from .residuals import evaluate_residuals, read_rotation, update_node_poses
from .stages import (
    advance_stage,
    begin_stage,
    can_probe,
    can_probe_early,
    copy_x,
    decide_step,
    evaluate_trial,
    sum_of_squares,
)
from .state_layout import *
from .tables import matrix_at, vector_at


@subroutine
def fixed_axes_in_world(poses, node, fixed_axes):
    """Return the world rotation, row by row, of axes that are fixed in a node (-1: the world)."""
    R_world_node = read_rotation(poses[node]) if node >= 0 else IDENTITY_ROTATION
    return times(R_world_node, read_rotation(fixed_axes))


@subroutine
def align_passive_joints(problem, x):
    """Set the quaternions of passive spherical joints in x so that their welds are closed.

    A rotation has two quaternions, q and -q; the quaternion nearer to the previous quaternion is written. A and B are
    the world rotations of the joint's axes in its parent node and in the welded node.
    """
    update_node_poses(problem, x)
    poses = problem.poses
    for i in range(problem.passive_count):
        joint = problem.passive_joints[i]
        quaternion = vector_at(x, joint.x, 4)
        A = fixed_axes_in_world(poses, joint.parent_node, joint.parent_axes)
        B = fixed_axes_in_world(poses, joint.weld_node, joint.weld_axes)
        # the rotation of the joint is A'B, with the rows x, y and z; tw, tx, ty and tz are four times the squared
        # components of its quaternion, which is computed from the largest component, since that is at least 1/2
        xx, xy, xz, yx, yy, yz, zx, zy, zz = transposed_times(A, B)
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
        if qw * quaternion[0] + qx * quaternion[1] + qy * quaternion[2] + qz * quaternion[3] < 0.0:
            norm = -norm
        quaternion[0], quaternion[1], quaternion[2], quaternion[3] = qw / norm, qx / norm, qy / norm, qz / norm


MIN_QUATERNION_NORM2 = 1e-6
"""Squared norm up to which a quaternion in q0 is invalid; the first step normalizes other quaternions."""
MAX_TARGET_DEVIATION = 1e-6
"""Bound of the sum of the deviations of a target from a rigid transform: those of the squared lengths of the columns of
its rotation from 1, of their scalar products from 0, and of its last row from (0, 0, 0, 1)."""
MAX_RANKED_STARTS = 128
"""Largest number of starts that are tried in the order of their distance to the target. Twice this number would save
2 % of the iterations, but the ranking would take as much time as this saves."""


@subroutine
def write_target(problem, target):
    """Write a target pose (4, 4), m, to the block `target_block`; return False if it is not a rigid transform."""
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
    frame_a = problem.block_data[problem.target_block].frame_a
    R, p = matrix_at(frame_a, 0, 3, 3), vector_at(frame_a, 9, 3)
    for r in range(3):
        p[r] = target[r, 3]
        for k in range(3):
            R[r, k] = target[r, k]
    return True


@subroutine
def load_start(problem, start):
    """Copy a start (nq,) to x; the variables that the problem adds to q stay unchanged."""
    x = problem.x
    for k in range(start.shape[0]):
        x[k] = start[k]


@subroutine
def load_restart(problem, start):
    """Copy the first nq numbers of `start` to x; locked joints and joints without a column keep their values."""
    x, column_x, bound_state, sphericals = problem.x, problem.column_x, problem.bound_state, problem.sphericals
    for v in range(problem.column_count):
        k = column_x[v]
        if 0 <= k < problem.nq and bound_state[v] != LOCKED:
            x[k] = start[k]
    for i in range(problem.spherical_count):
        if bound_state[sphericals[i].first_column] != LOCKED:
            for k in range(sphericals[i].x, sphericals[i].x + 4):
                x[k] = start[k]


@subroutine
def begin_attempt(problem):
    """Begin an attempt at x, after clamping the values of columns that are not locked to their bounds."""
    state = problem.state
    column_x, bound_state, lower, upper = problem.column_x, problem.bound_state, problem.lower, problem.upper
    x = problem.x
    for v in range(problem.column_count):
        k = column_x[v]
        if bound_state[v] != LOCKED:
            bound_state[v] = FREE
            if k >= 0:
                x[k] = min(max(x[k], lower[v]), upper[v])
                # a column that starts on a bound probably stays on it; otherwise the first step releases it
                if x[k] == upper[v]:
                    bound_state[v] = ON_UPPER
                elif x[k] == lower[v]:
                    bound_state[v] = ON_LOWER
    for s in range(problem.stage_count):
        problem.stage_reports[s].status = NOT_TRIED
        problem.stage_reports[s].cost = np.inf
    state.current_buffer, state.iterations_in_stage, state.is_evaluated = 0, 0, False
    state.first_unmet_stage, state.has_moved_below, state.stage_round = 0, False, 0
    begin_stage(problem, problem.runtime_zero)


@subroutine
def begin_first_attempt(problem, q0, restart_count):
    """Begin the first attempt at q0; return False if q0 is not finite or has a quaternion close to zero."""
    state, report = problem.state, problem.report
    lower, upper, column_x, best_cost = problem.lower, problem.upper, problem.column_x, problem.best_cost
    state.attempt, state.iterations, state.evaluations, state.last_distance = 0, 0, 0, -1.0
    state.may_abandon = restart_count > 0
    for s in range(problem.stage_count):
        best_cost[s] = np.inf
    q0_sum = 0.0
    for k in range(q0.shape[0]):
        q0_sum += q0[k]
    quaternions_are_valid = True
    for i in range(problem.spherical_count):
        q = vector_at(q0, problem.sphericals[i].x, 4)
        quaternions_are_valid &= q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] > MIN_QUATERNION_NORM2
    report.start_was_clamped = False
    for v in range(problem.column_count):
        k = column_x[v]
        if 0 <= k < q0.shape[0] and (q0[k] < lower[v] or q0[k] > upper[v]):
            report.start_was_clamped = True
    load_start(problem, q0)
    begin_attempt(problem)
    return np.isfinite(q0_sum) and quaternions_are_valid


@subroutine
def is_better(problem):
    """Whether the ended attempt is better than the best attempt so far.

    The costs of the stages are compared in order, and the first stage with different costs decides. A stage that has
    converged counts as cost 0.
    """
    best_cost = problem.best_cost
    for s in range(problem.stage_count):
        stage_report = problem.stage_reports[s]
        cost = 0.0 if stage_report.status == CONVERGED else stage_report.cost
        if cost < best_cost[s] * (1.0 - 1e-9):
            return True
        if cost > best_cost[s] * (1.0 + 1e-9):
            return False
    return False


@subroutine
def has_succeeded(problem):
    """Whether every stage that is not a soft objective has converged and is still within tolerance at the end."""
    state = problem.state
    stages = problem.stages
    for s in range(problem.stage_count):
        if not stages[s].is_soft_objective:
            if problem.stage_reports[s].status != CONVERGED:
                return False
            _, is_met = sum_of_squares(problem, state.current_buffer, stages[s].hard_end, stages[s].soft_end)
            if not is_met:
                return False
    return True


@subroutine
def write_report(problem, is_success):
    """Write the entries of the solve to the report.

    The status of the solve is NOT_CLOSED if stage 0 has not converged; otherwise it is the largest status of a stage
    that is not a soft objective. If all these stages have converged but a later stage has violated one of them, it is
    STALLED.
    """
    state, report = problem.state, problem.report
    stages = problem.stages
    report.success = is_success
    report.iterations, report.evaluations, report.attempts = state.iterations, state.evaluations, state.attempt
    status = CONVERGED
    for s in range(problem.stage_count):
        if not stages[s].is_soft_objective:
            status = max(status, problem.stage_reports[s].status)
    if status == CONVERGED and not is_success:  # a later stage has violated a level that had converged
        status = STALLED
    report.status = NOT_CLOSED if problem.stage_reports[0].status != CONVERGED else status


@subroutine
def nearest_start(problem, starts, nearest_index):
    """Return the index of the untried start at which the goal's frame B is nearest to its target.

    Only the first MAX_RANKED_STARTS starts are compared. If none of them is untried, the result is the argument
    `nearest_index`. The distance of the start is stored in `last_distance`.

    A row of `starts` contains q (nq numbers) and the world pose of B (12 numbers). Starts are tried in the order of
    their distance, so the untried starts are those with a distance above `last_distance`. This distance combines
    position and rotation, weighted and squared.
    """
    state = problem.state
    weight, nq = rows_of_block(problem.weight, problem.blocks[problem.target_block]), problem.nq
    frame_a, position_weight, rotation_weight = problem.block_data[problem.target_block].frame_a, weight[0], weight[3]
    position_weight2, rotation_weight2 = position_weight * position_weight, rotation_weight * rotation_weight
    best_distance = np.inf
    for i in range(min(starts.shape[0], MAX_RANKED_STARTS)):
        trace, X = 0.0, vector_at(starts[i], nq, 12)
        for c in range(9):
            trace += frame_a[c] * X[c]
        x, y, z = frame_a[9] - X[9], frame_a[10] - X[10], frame_a[11] - X[11]
        distance = position_weight2 * (x * x + y * y + z * z) + rotation_weight2 * (3.0 - trace)
        if state.last_distance < distance < best_distance:
            best_distance, nearest_index = distance, i
    state.last_distance = best_distance
    return nearest_index


@subroutine
def advance_attempt(problem, starts):
    """End an attempt, store it if it is the best, and begin the next attempt; return False if no attempt follows."""
    state = problem.state
    best_cost, x, best_x = problem.best_cost, problem.x, problem.best_x
    is_success = has_succeeded(problem)
    if is_success or is_better(problem) or state.attempt == 0:
        copy_x(problem, x, best_x)
        for s in range(problem.stage_count):
            stage_report = problem.stage_reports[s]
            best_cost[s] = 0.0 if stage_report.status == CONVERGED else stage_report.cost
    state.attempt += 1
    if is_success or not state.may_abandon:
        write_report(problem, is_success)
        return False
    if state.attempt <= starts.shape[0]:
        start_index = state.attempt - 1
        if start_index < MAX_RANKED_STARTS and starts.shape[1] > problem.nq:
            start_index = nearest_start(problem, starts, start_index)
        load_restart(problem, starts[start_index])
    else:  # no attempt has succeeded: continue the best attempt until it converges to a minimum
        state.may_abandon = False
        state.attempt -= 1  # this continuation does not count as an attempt
        copy_x(problem, best_x, x)
    begin_attempt(problem)
    return True


MIN_DAMPING = 1e-10
"""Added to the damping of every step, except with `fixed_damping`. Rounding errors divided by this number move the
redundant dofs: solutions of redundant arms differ by up to 2e-10 rad between machine code and plain Python; with 1e-12
they would differ by 3e-9 rad. In 3,000 solves of gallery mechanisms (near, out of reach, at singular poses, with
levels) the numbers of iterations with both values agree to 1 in 1,000."""


@kernel("i8(i8[::1], f8[::1], f8[:,::1], f8[::1], f8[:,::1], f8[::1])")
def search(ints, floats, target, q0, starts, q):
    """Descend from q0, then from each of `starts`, until a descent succeeds; write the best result to q.

    Args:
        ints, floats: the packed problem (`problem_layout.py`).
        target: (4, 4), m, replaces the target of the block `target_block`; (0, 4) leaves all targets unchanged.
        q0: (nq,), the first start; m, rad and quaternions (wxyz).
        starts: (k, nq) or (k, nq + 12), further starts. The last 12 numbers of a row are the world pose of the goal's
            frame B; with them, the starts nearest to the target are tried first.
        q: (nq,), written when the search has ended.

    Returns:
        DONE; NEEDS_PYTHON_FUNCTIONS or PAUSED (call again to continue); BAD_TARGET or BAD_START.
    """
    problem = open_problem(ints, floats)
    state, options = problem.state, problem.options
    x, trial, stages = problem.x, problem.trial, problem.stages
    if not state.is_resumed:
        if target.shape[0] == 4 and not write_target(problem, target):
            return BAD_TARGET
        if not begin_first_attempt(problem, q0, starts.shape[0]):
            return BAD_START
    state.is_resumed = True
    initial_iterations, result = state.iterations, problem.runtime_zero + DONE
    while True:
        stage, current_buffer = state.stage, state.current_buffer
        if not state.is_evaluated:
            # in stage 0 the first level is evaluated too: the loops are usually closed, and stage 1 follows at once
            last_stage = max(stage, min(1, problem.stage_count - 1))
            evaluate_residuals(problem, trial, 1 - current_buffer, stages[last_stage].soft_end)
            state.evaluations += 1
            if problem.function_count > 0:
                state.is_evaluated = True
                return NEEDS_PYTHON_FUNCTIONS
        state.is_evaluated = False
        hard_end, soft_end = stages[stage].hard_end, stages[stage].soft_end
        if state.phase == PHASE_PROBING:
            record_probe(problem, 1 - current_buffer, hard_end, soft_end, state.probe_index, state.independent_count)
            state.probe_index += 1
            action = NEXT_PROBE
        else:
            action = evaluate_trial(problem)
        if action == NEXT_EVALUATION:
            continue
        independent_count = problem.runtime_zero
        while True:
            if action == NEXT_PROBE:
                state.probe_index = write_next_probe(problem, state.probe_index, state.independent_count)
                if state.probe_index < state.independent_count:
                    break
                action, independent_count = NEXT_STEP, state.independent_count
            if action == NEXT_STAGE:
                break
            is_newton, current_buffer = action == NEXT_CLOSURE_STEP, state.current_buffer
            damping = state.relative_damping * state.cost + MIN_DAMPING
            if options.fixed_damping > 0.0:
                damping = options.fixed_damping * state.relative_damping / options.start_damping
            step_origin, buffer = (trial, 1 - current_buffer) if is_newton else (x, current_buffer)
            uses_curvature, has_moved, poses_are_current = (
                state.uses_curvature,
                state.has_moved,
                state.poses_are_current,
            )
            may_probe, may_probe_early = uses_curvature and can_probe(problem, stage), can_probe_early(problem)
            damping_ratio = CURVATURE_DAMPING_RATIO if state.relative_damping <= options.start_damping else 1.0
            cost, predicted_change, max_gradient, curvature = bounded_step(
                problem, step_origin, stage, buffer, damping, is_newton, uses_curvature, may_probe, may_probe_early,
                independent_count, damping_ratio, has_moved, poses_are_current,
            )  # fmt: skip
            if is_newton:
                break
            state.has_moved, state.poses_are_current = False, False
            if curvature == CURVATURE_REQUESTED:
                state.phase, state.uses_curvature, state.curvature_is_new = PHASE_PROBING, True, True
                state.probe_index, state.independent_count = 0, count_independent_columns(problem)
                action = NEXT_PROBE
                continue
            state.phase = PHASE_STEP
            independent_count = problem.runtime_zero
            action = decide_step(problem, cost, predicted_change, max_gradient, curvature)
            if action != NEXT_RETRY:
                state.iterations_in_stage += 1
                state.iterations += 1
                break
        if action == NEXT_STAGE:
            if not advance_stage(problem) and not advance_attempt(problem, starts):
                break
            continue
        if action == NEXT_EVALUATION:  # the step is a perturbation: the stage starts again at the trial
            state.phase = PHASE_START
        apply_step(problem, trial if action == NEXT_CLOSURE_STEP else x, trial, action != NEXT_PROBE)
        if state.iterations - initial_iterations >= options.iterations_per_call:
            result = problem.runtime_zero + PAUSED
            break
    if problem.passive_count > 0:
        align_passive_joints(problem, x)
    if result == DONE:
        state.is_resumed = False
        for k in range(q.shape[0]):
            q[k] = x[k]
    return result
