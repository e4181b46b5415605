"""One step under hard constraints and bounds, by an active-set method, and its application to x.

A step is a damped Gauss-Newton step, which may use second derivatives, or a Newton step on the hard residuals alone.
The hard residuals are eliminated first (`elimination.py`). The step s of the independent columns then minimises

    |e + A s|^2 + damping |s|^2    subject to    lower <= x + scale * step <= upper

where e are the soft residuals and A = J (1, Z) is their Jacobian, both after the elimination
(`damped_least_squares.py`). A column whose step would cross a bound is added to the active set, and the system is
solved again with the column fixed at its bound. A column at a bound is released if the negative gradient of this model
after the step points to the inside of the bounds. This gradient is computed with A, so it includes the constraint
forces of the closures; the sign of J'e, without elimination, would give wrong poses.

If the active set gives no step that stays within the bounds and decreases the cost, further solves change one bound at
a time. If second derivatives are missing, the result may be a request to probe them instead of a step (`curvature.py`).
Indices such as `v` and `k` are explained in `problem_layout.py`; n is the number of independent columns.
"""

from __future__ import annotations

import math

from .compiler import subroutine
from .curvature import (
    MAX_PROBED_COLUMNS,
    begin_probes,
    has_all_curvature,
    store_step,
    write_chain_vectors,
)
from .damped_least_squares import assemble_normal_equations, expand_step, model_change, solve_reduced_step
from .elimination import NO_INDEX, eliminate
from .problem_layout import *

BOUND_OVERSHOOT, BOUND_DISTANCE = 1e-13, 1e-9
"""Tolerances of bounds, rad or m. A step crosses a bound if it ends more than BOUND_OVERSHOOT outside. A value of x is
on its bound if it is at most BOUND_DISTANCE inside. `shorten_to_bounds` permits BOUND_DISTANCE outside."""
MIN_RELEASE_GRADIENT = 1e-12
"""Model gradient up to which a column stays at its bound: a rounding error, since weighted residuals are of order 1."""


@subroutine
def update_active_bounds(problem, x):
    """Remove columns that have left their bound from the active set; return the number of columns that are not free.

    A column has left its bound if its value is more than BOUND_DISTANCE inside. The table `was_released` is cleared.
    """
    column_x, bound_state, lower, upper = problem.column_x, problem.bound_state, problem.lower, problem.upper
    active_count = 0
    for v in range(problem.column_count):
        side = bound_state[v]
        problem.was_released[v] = 0
        if side == FREE:
            continue
        if side != LOCKED:
            value = x[column_x[v]]
            if (side == ON_UPPER and value < upper[v] - BOUND_DISTANCE) or (
                side == ON_LOWER and value > lower[v] + BOUND_DISTANCE
            ):
                bound_state[v] = FREE
                continue
        active_count += 1
    return active_count


@subroutine
def activate_bounds(problem, x):
    """Add the columns whose step crosses a bound to the active set.

    Returns:
        The number of columns that cross a bound, and whether one of these columns is dependent.
    """
    column_x, bound_state, pivot_row, scale = problem.column_x, problem.bound_state, problem.pivot_row, problem.scale
    lower, upper, step = problem.lower, problem.upper, problem.step
    crossed_count, has_dependent_column = 0, False
    for v in range(problem.column_count):
        k = column_x[v]
        if k >= 0 and bound_state[v] == FREE:
            value = x[k] + scale[v] * step[v]
            if value > upper[v] + BOUND_OVERSHOOT or value < lower[v] - BOUND_OVERSHOOT:
                bound_state[v] = ON_UPPER if value > upper[v] else ON_LOWER
                crossed_count += 1
                has_dependent_column |= pivot_row[v] != NO_INDEX
    return crossed_count, has_dependent_column


@subroutine
def clip_at_bounds(problem, x, n):
    """Clip the step of each independent column at its bounds."""
    column_x, independent_column, scale, reduced_step = (
        problem.column_x,
        problem.independent_column,
        problem.scale,
        problem.reduced_step,
    )
    for i in range(n):
        v = independent_column[i]
        k = column_x[v]
        if k >= 0:
            value = min(max(x[k] + scale[v] * reduced_step[i], problem.lower[v]), problem.upper[v])
            reduced_step[i] = (value - x[k]) / scale[v]
            problem.step[v] = reduced_step[i]


@subroutine
def release_bounds(problem, n):
    """Release the independent columns at a bound whose negative model gradient points inside; return their number.

    A column is released only once in a step, so that the active set does not cycle.
    """
    bound_state, independent_column, was_released, model_gradient = (
        problem.bound_state,
        problem.independent_column,
        problem.was_released,
        problem.model_gradient,
    )
    released_count = 0
    for i in range(n):
        v = independent_column[i]
        side, gradient = bound_state[v], model_gradient[i]
        points_inside = (side == ON_UPPER and gradient > MIN_RELEASE_GRADIENT) or (
            side == ON_LOWER and gradient < -MIN_RELEASE_GRADIENT
        )
        if points_inside and was_released[v] == 0 and problem.lower[v] < problem.upper[v]:
            bound_state[v] = FREE
            was_released[v] = 1
            released_count += 1
    return released_count


@subroutine
def may_move(problem, x, v, negative_gradient):
    """Whether a column can move along its negative gradient.

    It can if it is free, if it is not yet on its active bound, or if it moves away from this bound.
    """
    side = problem.bound_state[v]
    if side == FREE or side == LOCKED:
        return side == FREE
    value, lower, upper = x[problem.column_x[v]], problem.lower[v], problem.upper[v]
    if side == ON_UPPER:
        return value < upper - BOUND_DISTANCE or (negative_gradient < 0.0 and lower < upper)
    return value > lower + BOUND_DISTANCE or (negative_gradient > 0.0 and lower < upper)


@subroutine
def shorten_to_bounds(problem, x, n):
    """Shorten the whole step, and the reduced step, so that x stays within its bounds; return the factor, 0 to 1.

    This replaces a further solve if the number of solves is used up, or if bounds change one at a time.
    """
    column_x, scale, lower, upper = problem.column_x, problem.scale, problem.lower, problem.upper
    step = problem.step
    step_ratio = 1.0
    for v in range(problem.column_count):
        k, change = column_x[v], scale[v] * step[v]
        if k >= 0 and abs(change) > 1e-15:
            if x[k] + change > upper[v] + BOUND_DISTANCE:
                step_ratio = min(step_ratio, (upper[v] - x[k]) / change)
            elif x[k] + change < lower[v] - BOUND_DISTANCE:
                step_ratio = min(step_ratio, (lower[v] - x[k]) / change)
    step_ratio = max(step_ratio, 0.0)
    for v in range(problem.column_count):
        step[v] *= step_ratio
    for i in range(n):
        problem.reduced_step[i] *= step_ratio
    return step_ratio


@subroutine
def hold_at_bounds(problem, x):
    """Set the active set to the columns that are on a bound at x, and clear the table `was_released`."""
    bound_state, column_x = problem.bound_state, problem.column_x
    for v in range(problem.column_count):
        k = column_x[v]
        problem.was_released[v] = 0
        if k >= 0 and bound_state[v] != LOCKED:
            bound_state[v] = FREE
            if x[k] >= problem.upper[v] - BOUND_DISTANCE:
                bound_state[v] = ON_UPPER
            elif x[k] <= problem.lower[v] + BOUND_DISTANCE:
                bound_state[v] = ON_LOWER


@subroutine
def column_with_steepest_release(problem, n, min_slope):
    """Return the column at a bound whose release decreases the model fastest; NO_INDEX if none exceeds `min_slope`.

    The slope is the model gradient at an upper bound and minus this gradient at a lower bound: minus the Lagrange
    multiplier of the bound. Columns that were released before in this step are excluded.
    """
    column = problem.runtime_zero + NO_INDEX
    for i in range(n):
        v = problem.independent_column[i]
        side, gradient = problem.bound_state[v], problem.model_gradient[i]
        points_inside = (side == ON_UPPER and gradient > min_slope) or (side == ON_LOWER and -gradient > min_slope)
        if points_inside and problem.was_released[v] == 0 and problem.lower[v] < problem.upper[v]:
            column, min_slope = v, abs(gradient)
    return column


@subroutine
def largest_reduced_gradient(problem, x, n):
    """Return the largest absolute reduced gradient of the columns that may move along their negative gradient."""
    max_gradient = 0.0
    for i in range(n):
        if may_move(problem, x, problem.independent_column[i], problem.negative_gradient[i]):
            max_gradient = max(max_gradient, abs(problem.negative_gradient[i]))
    return max_gradient


@subroutine
def largest_free_gradient(problem, n):
    """Return the largest absolute reduced gradient of the free columns."""
    max_gradient = 0.0
    for i in range(n):
        if problem.bound_state[problem.independent_column[i]] == FREE:
            max_gradient = max(max_gradient, abs(problem.negative_gradient[i]))
    return max_gradient


@subroutine
def count_active_bounds(problem):
    """Return the number of columns that are not free."""
    active_count = 0
    for v in range(problem.column_count):
        if problem.bound_state[v] != FREE:
            active_count += 1
    return active_count


MAX_SOLVES, MAX_SINGLE_BOUND_SOLVES = 12, 24
"""Numbers of linear solves of one step. The first MAX_SOLVES solves may change many bounds at once. If they give no
step that stays within the bounds and decreases the cost, further solves change one bound at a time, up to
MAX_SOLVES + MAX_SINGLE_BOUND_SOLVES solves in all. With fewer solves, more steps are shortened at the bounds."""
SLOW_COST_RATIO = 0.5
"""Second derivatives are used if the cost after three steps, or the predicted cost after one step, is above this ratio
of the cost before. A smaller ratio uses them more often: fewer steps, but more evaluations for each step."""
MIN_STEP_RATIO = 1e-9
"""A step that is shortened at the bounds to less than this ratio counts as zero; the column that was released for this
step is held at its bound again."""
CURVATURE_DAMPING_RATIO = 1e-3
"""Factor on the damping of a step for which all second derivatives are known, while the relative damping is at most the
option `start_damping`. A smaller factor gives nearly undamped Newton steps, which are rejected more often."""
CURVATURE_UNKNOWN, CURVATURE_REQUESTED = 2.0, 3.0
"""Special values of the number `curvature` that `bounded_step` returns. Its values are
- 0 to 1: the smallest pivot of H, as a ratio to its largest diagonal entry. All second derivatives are known; H counts
  as positive definite if the ratio is above PIVOT_TOLERANCE;
- below 0: y'Hy along the unit direction y in the table `negative_curvature`;
- CURVATURE_UNKNOWN: not all second derivatives were probed. This includes chains, although theirs are exact;
- CURVATURE_REQUESTED: there is no step yet; second derivatives have to be probed first."""


@subroutine
def bounded_step(
    problem,
    x,
    stage,
    buffer,
    damping,
    is_newton,
    uses_curvature,
    may_probe,
    may_probe_early,
    independent_count,
    damping_ratio,
    has_moved,
    poses_are_current,
):
    """Compute the step from x and write it to the table `step`.

    Each round of the loop solves the linear system for the present active set: eliminate the hard rows (if the
    dependent columns may have changed), assemble the model, solve for the step s of the independent columns, and expand
    it to all columns. Then the active set changes: columns that cross a bound are added; if there are none, columns
    whose multiplier has the wrong sign are released. The loop ends if the active set does not change, or as described
    above `MAX_SOLVES`.

    Args:
        x: the variables, (x,).
        stage, buffer: the stage, and the buffer of residual and Jacobian at x.
        damping: damping of a column whose entry in the table `extra_damping` is 1.
        is_newton: whether the step is a Newton step on the hard residuals alone.
        uses_curvature: whether second derivatives are used (`curvature.py`).
        may_probe: whether probes may be requested before the first solve, if second derivatives are missing.
        may_probe_early: whether probes may be requested after the first solve, if bounds are active and the model
            predicts slow progress.
        independent_count: number of independent columns if probes were made at this x, so that the elimination is
            still valid; 0 if the elimination has to be done.
        damping_ratio: factor on the damping if all second derivatives are known.
        has_moved: whether the previous step was accepted, so that it can update the second derivatives.
        poses_are_current: whether the stored poses are those of x. Otherwise they are those of a trial or a probe; x
            has not changed since the previous step, so the table `chain` is still valid.

    Returns:
        The cost, which is the sum of squares that the soft residuals would have, to first order, if the hard
        constraints were satisfied; the predicted change of this cost; the largest absolute reduced gradient of a
        column that may move along its negative gradient; and the curvature: CURVATURE_REQUESTED, CURVATURE_UNKNOWN, or
        the smallest result of `solve_reduced_step`. With `is_newton`, the first three are 0 and the curvature is
        CURVATURE_UNKNOWN.
    """
    stages, bound_state, step, offset = problem.stages, problem.bound_state, problem.step, problem.offset
    hard_end, soft_end = stages[stage].hard_end, stages[stage].soft_end
    zero, no_index = problem.runtime_zero, problem.runtime_zero + NO_INDEX
    active_count = update_active_bounds(problem, x)
    predicted_change, max_gradient, cost = 0.0, 0.0, 0.0
    n, dual_row_count, remaining_count = zero, zero, zero
    chain_block = stages[stage].chain_block if uses_curvature else no_index
    if chain_block >= 0 and poses_are_current and not is_newton:
        write_chain_vectors(problem, buffer, chain_block)
    uses_dual_form = stages[stage].uses_dual_form and (chain_block >= 0 or not uses_curvature)
    needs_elimination, curvature_is_known, requests_probes, curvature = True, False, False, CURVATURE_UNKNOWN
    changes_single_bounds, released_column, released_side = False, no_index, zero
    # `begin_probes` computes the multipliers of the hard rows from the row operations of the elimination
    stores_row_operations = not is_newton and (
        (may_probe and problem.previous_columns[0] == NO_INDEX) or (may_probe_early and active_count > 0)
    )
    for solve_index in range(MAX_SOLVES + MAX_SINGLE_BOUND_SOLVES):
        # the model of the soft residuals over the independent columns
        if needs_elimination:
            if independent_count > 0 and solve_index == 0:
                n = independent_count
            else:
                n, remaining_count = eliminate(problem, stage, buffer, hard_end, stores_row_operations, is_newton)
            if not is_newton:
                if may_probe:
                    curvature_is_known, free_count = has_all_curvature(problem, n)
                    requests_probes = (
                        not curvature_is_known
                        and free_count <= MAX_PROBED_COLUMNS
                        and (solve_index == 0 or requests_probes)
                    )
                    if requests_probes and not stores_row_operations:
                        stores_row_operations = True
                        continue
                    if requests_probes:
                        begin_probes(problem, buffer, hard_end, soft_end, remaining_count, n)
                        return cost, predicted_change, max_gradient, CURVATURE_REQUESTED
                updates_curvature = has_moved and solve_index == 0
                step_damping = damping_ratio * damping if curvature_is_known else damping
                curvature = CURVATURE_UNKNOWN
                cost, dual_row_count = assemble_normal_equations(
                    problem,
                    buffer,
                    hard_end,
                    soft_end,
                    n,
                    step_damping,
                    step_damping == damping,
                    uses_curvature,
                    updates_curvature,
                    uses_dual_form,
                )
            needs_elimination = False
        # its step for the present active set
        if is_newton:
            for v in range(problem.column_count):
                step[v] = offset[v]
        else:
            smallest_pivot = solve_reduced_step(
                problem, x, n, active_count, dual_row_count, chain_block, uses_curvature and curvature >= 0.0, damping
            )
            curvature = min(curvature, smallest_pivot)
            expand_step(problem, n)
        if may_probe_early and stores_row_operations and solve_index == 0:
            _, free_count = has_all_curvature(problem, n)
            if (
                free_count <= MAX_PROBED_COLUMNS
                and cost + model_change(problem, n, dual_row_count, chain_block) > SLOW_COST_RATIO * cost
            ):
                begin_probes(problem, buffer, hard_end, soft_end, remaining_count, n)
                return cost, predicted_change, max_gradient, CURVATURE_REQUESTED
        # the next active set, one bound at a time
        if changes_single_bounds:
            # as in the simplex method, columns are released one at a time; a released column is held again if the step
            # is shortened to zero
            step_ratio = shorten_to_bounds(problem, x, n)
            predicted_change = model_change(problem, n, dual_row_count, chain_block)
            if released_column != NO_INDEX and step_ratio < MIN_STEP_RATIO:
                bound_state[released_column] = released_side
                released_column, needs_elimination = no_index, True
            elif released_column != NO_INDEX or solve_index == MAX_SOLVES + MAX_SINGLE_BOUND_SOLVES - 1:
                break
            else:
                released_column = column_with_steepest_release(problem, n, largest_free_gradient(problem, n))
                if released_column == NO_INDEX:
                    break
                released_side = bound_state[released_column]
                bound_state[released_column], problem.was_released[released_column] = FREE, 1
            active_count = count_active_bounds(problem)
            continue
        # the next active set, all bounds at once
        crossed_count, has_dependent_column = activate_bounds(problem, x)
        # while steps are accepted, the step is clipped at the bounds instead of a second solve, and these bounds are
        # active in the next step: a second solve would take a third of the time of an iteration and save few iterations
        clips_at_bounds = crossed_count > 0 and hard_end == 0 and has_moved and not uses_curvature
        is_last_solve = clips_at_bounds or solve_index >= MAX_SOLVES - 1
        if clips_at_bounds:
            clip_at_bounds(problem, x, n)
        elif crossed_count > 0 and is_last_solve:
            shorten_to_bounds(problem, x, n)
        if not is_newton and (crossed_count == 0 or is_last_solve):
            predicted_change = model_change(problem, n, dual_row_count, chain_block)
        active_set_is_final = crossed_count == 0 and (is_newton or active_count == 0 or release_bounds(problem, n) == 0)
        if is_last_solve or active_set_is_final:
            is_step_final = is_newton or clips_at_bounds or problem.options.fixed_damping > 0.0
            if (
                is_step_final
                or (crossed_count == 0 and predicted_change < 0.0)
                or largest_reduced_gradient(problem, x, n) == 0.0
            ):
                break
            # the step crosses bounds or does not decrease the cost: from now on change one bound at a time
            hold_at_bounds(problem, x)
            changes_single_bounds = True
        # only an independent column can be held at a bound: eliminate again
        needs_elimination = changes_single_bounds or (crossed_count > 0 and has_dependent_column)
        active_count = count_active_bounds(problem)
    if not is_newton:
        max_gradient = largest_reduced_gradient(problem, x, n)
        if uses_curvature and not uses_dual_form:
            store_step(problem, n)
    return cost, predicted_change, max_gradient, curvature if curvature_is_known else CURVATURE_UNKNOWN


@subroutine
def apply_step(problem, x, out, clamps):
    """Write x moved by the table `step` to `out`, (x,); with `clamps`, values are clamped to their bounds.

    `x` and `out` may be the same array. The three columns of a spherical joint, times their scales, are a rotation
    vector (rx, ry, rz) in its own axes, rad; its quaternion (w0, x0, y0, z0) is multiplied by this rotation from the
    right.
    """
    column_x, sphericals, scale, lower = problem.column_x, problem.sphericals, problem.scale, problem.lower
    upper, step = problem.upper, problem.step
    for k in range(problem.x_count):
        out[k] = x[k]
    for v in range(problem.column_count):
        k = column_x[v]
        if k >= 0:
            out[k] = x[k] + scale[v] * step[v]
            if clamps:
                out[k] = min(max(out[k], lower[v]), upper[v])
    for i in range(problem.spherical_count):
        k, v = sphericals[i].x, sphericals[i].first_column
        rx, ry, rz = scale[v] * step[v], scale[v + 1] * step[v + 1], scale[v + 2] * step[v + 2]
        half_angle2 = 0.25 * (rx * rx + ry * ry + rz * rz)
        if half_angle2 < 1e-6:
            half_sinc, cosine = 0.5 * (1.0 - half_angle2 / 6.0), 1.0 - 0.5 * half_angle2 * (1.0 - half_angle2 / 12.0)
        else:
            half_angle = math.sqrt(half_angle2)
            half_sinc, cosine = 0.5 * math.sin(half_angle) / half_angle, math.cos(half_angle)
        rx, ry, rz = half_sinc * rx, half_sinc * ry, half_sinc * rz
        w0, x0, y0, z0 = x[k], x[k + 1], x[k + 2], x[k + 3]
        qw, qx = w0 * cosine - x0 * rx - y0 * ry - z0 * rz, w0 * rx + x0 * cosine + y0 * rz - z0 * ry
        qy, qz = w0 * ry - x0 * rz + y0 * cosine + z0 * rx, w0 * rz + x0 * ry - y0 * rx + z0 * cosine
        inverse_norm = 1.0 / math.sqrt(qw * qw + qx * qx + qy * qy + qz * qz)
        out[k], out[k + 1], out[k + 2], out[k + 3] = (
            qw * inverse_norm,
            qx * inverse_norm,
            qy * inverse_norm,
            qz * inverse_norm,
        )
