"""One time step of the tracker: residuals, bounds, velocities, and the next configuration with all loops closed.

Gaussian elimination with complete pivoting splits the columns into independent and dependent ones, to first order; the
dependent columns also close the loops after a step. Columns with neither velocity nor acceleration limits become
dependent first, if their pivots are large enough. So if the number of limited columns is at most the number of dofs of
the mechanism, they are usually independent and exactly within their limits.

The letters of the code: M is the Jacobian of the hard rows, m the number of these rows and r the index of a row, n the
number of columns and v the index of a column. u is the index of a column within a block. B (n, d) maps the d
independent velocities to all columns; p and c are the row and the column of the pivot with the index s; k is the number
of extra rows; e is the hard residual. `tracking` are the tables of `tracking_layout.py`.
"""

from __future__ import annotations

import math

from ..bounded_step import apply_step
from ..compiler import kernel, subroutine
from ..problem_layout import *
from ..residuals import evaluate_residuals
from ..tables import matrix_at
from .level_qp import factor_cholesky, minimize_within_bounds, solve_cholesky
from .priority_levels import bound_distance_rates, bound_rates, bounds_over_basis, solve_levels, write_limit_codes
from .tracking_layout import STEP_BRAKED, STEP_MOVED, STEP_STOPPED, open_tracking
from .upper_levels import find_row_curvatures, mark_shared_columns

MIN_PIVOT = 1e-7
"""Rows with smaller pivots are linearly dependent. The entries of the Jacobian are scaled to the order of one. Larger
values lose constraints near singular configurations, smaller values take rounding errors for constraints."""
MIN_UNLIMITED_PIVOT = 0.03
"""A column without limits becomes dependent first only if its pivot is larger than this value. With smaller pivots,
small motions of independent columns would move the dependent column fast."""


@subroutine
def gather_hard_rows(problem, M, n):
    """Gather the Jacobian of the hard equality rows into M (m, n), and return m."""
    blocks, block_columns, slacks = problem.blocks, problem.block_columns, problem.slacks
    jacobian, m = problem.jacobian[1], 0
    for b in range(problem.stages[0].soft_end):
        block = blocks[b]
        width, first_row, first_column = block.column_count, block.first_row, block.first_column
        J = matrix_at(jacobian, block.first_jacobian, block.row_count, width)
        for r in range(block.row_count):
            if slacks[first_row + r].x >= 0:
                continue
            for v in range(n):
                M[m, v] = 0.0
            for u in range(width):
                v = block_columns[first_column + u]
                if v < n:
                    M[m, v] = J[r, u]
            m += 1
    return m


@subroutine
def read_hard_residual(problem, buffer, e):
    """Write into e the residual of the rows that `gather_hard_rows` gathers, and return its largest magnitude.

    Args:
        buffer: the residual buffer (0 or 1) that is read.
    """
    residual, slacks, m, largest_residual = problem.residual[buffer], problem.slacks, 0, 0.0
    blocks = problem.blocks
    for b in range(problem.stages[0].soft_end):
        block = blocks[b]
        for r in range(block.first_row, block.first_row + block.row_count):
            if slacks[r].x < 0:
                e[m] = residual[r]
                largest_residual = max(largest_residual, abs(e[m]))
                m += 1
    return largest_residual


@subroutine
def best_pivot_of_row(M, r, n, pivot_of_column, is_limited, best_pivots, best_columns):
    """Find the largest entry of row r among the columns that may become dependent: no pivot yet, and not limited."""
    best_pivots[r], best_columns[r] = 0.0, -1
    for v in range(n):
        if abs(M[r, v]) > best_pivots[r] and pivot_of_column[v] < 0 and is_limited[v] == 0:
            best_pivots[r], best_columns[r] = abs(M[r, v]), v


@subroutine
def eliminate_hard_rows(tracking, m):
    """Reduce M to upper triangular form in the order of its pivots, and return the number of pivots.

    Row and column of each pivot, the pivot of each column, and the operations K are written: the multiples of the pivot
    rows that were subtracted from each row.
    """
    M, K, n = tracking.hard_jacobian, tracking.row_operations, tracking.column_count
    pivot_rows, pivot_columns = tracking.row_of_pivot, tracking.column_of_pivot
    pivot_of_column, pivot_count = tracking.pivot_of_column, 0
    is_limited, best_pivots, best_columns = tracking.is_limited, tracking.best_pivot, tracking.best_column
    for v in range(n):
        pivot_of_column[v] = -1
        is_limited[v] = 1 if min(tracking.max_velocity[v], tracking.max_acceleration[v]) < math.inf else 0
    for r in range(m):
        pivot_rows[r] = -1
        for s in range(m):
            K[r, s] = 0.0
    for pass_index in range(2):
        min_pivot = MIN_UNLIMITED_PIVOT if pass_index == 0 else MIN_PIVOT
        if pass_index == 1:
            for v in range(n):
                is_limited[v] = 0
        for r in range(m):
            best_pivots[r] = -1.0
        for s in range(pivot_count):
            best_columns[pivot_rows[s]] = -2  # marks pivot rows
        for r in range(m):
            if best_columns[r] != -2 or pass_index == 0:
                best_pivot_of_row(M, r, n, pivot_of_column, is_limited, best_pivots, best_columns)
        while pivot_count < m:
            largest_pivot, p = min_pivot, -1
            for r in range(m):
                if best_pivots[r] > largest_pivot:
                    largest_pivot, p = best_pivots[r], r
            if p < 0:
                break
            c = best_columns[p]
            pivot_rows[pivot_count], pivot_columns[pivot_count], pivot_of_column[c] = p, c, pivot_count
            best_pivots[p], best_columns[p] = -1.0, -2
            inverse = 1.0 / M[p, c]
            for r in range(m):
                factor = M[r, c] * inverse
                if best_columns[r] == -2 or factor == 0.0:
                    continue
                for v in range(n):
                    M[r, v] -= factor * M[p, v]
                M[r, c] = 0.0
                K[r, pivot_count] = factor
                best_pivot_of_row(M, r, n, pivot_of_column, is_limited, best_pivots, best_columns)
            pivot_count += 1
    return pivot_count


@subroutine
def free_basis(tracking, pivot_count):
    """Write the basis B (n, d) of the velocities that keep the loops closed into `loop_basis`, and return d.

    Each column of B contains the velocities of all columns at unit velocity of one independent column.
    """
    M, B, n = tracking.hard_jacobian, tracking.loop_basis, tracking.column_count
    pivot_rows, pivot_columns = tracking.row_of_pivot, tracking.column_of_pivot
    pivot_of_column, d = tracking.pivot_of_column, 0
    for v in range(n):
        if pivot_of_column[v] < 0:
            for j in range(n - pivot_count):
                B[v, j] = 0.0
            B[v, d] = 1.0
            d += 1
    for s in range(pivot_count - 1, -1, -1):
        p, c = pivot_rows[s], pivot_columns[s]
        inverse = -1.0 / M[p, c]
        for j in range(d):
            B[c, j] = 0.0
        for v in range(n):
            factor = M[p, v] * inverse
            if v != c and factor != 0.0 and (pivot_of_column[v] < 0 or pivot_of_column[v] > s):
                for j in range(d):
                    B[c, j] += factor * B[v, j]
    return d


@subroutine
def add_closure_step(tracking, pivot_count, e, step):
    """Add to `step` the motion of the dependent columns that makes e zero, to first order; e is overwritten."""
    M, K = tracking.hard_jacobian, tracking.row_operations
    pivot_rows, pivot_columns = tracking.row_of_pivot, tracking.column_of_pivot
    for s in range(pivot_count):
        for later_s in range(s + 1, pivot_count):
            factor = K[pivot_rows[later_s], s]
            if factor != 0.0:
                e[pivot_rows[later_s]] -= factor * e[pivot_rows[s]]
    for s in range(pivot_count - 1, -1, -1):
        p = pivot_rows[s]
        total = -e[p]
        for later_s in range(s + 1, pivot_count):
            total -= M[p, pivot_columns[later_s]] * e[pivot_rows[later_s]]
        e[p] = total / M[p, pivot_columns[s]]
    for s in range(pivot_count):
        step[pivot_columns[s]] += e[pivot_rows[s]]


MAX_CLOSURE_STEPS = 8
"""Largest number of Newton steps that close the loops; two or three suffice at time steps of 1 ms."""
MAX_LEVEL_PASSES, MAX_BRAKING_PASSES = 8, 3
"""Largest number of passes that solve the levels but find no velocities within all bounds, and of passes that brake.
A pass that solves the levels uses the loop curvature that the previous pass has found."""
FIRST_PASS_WITHOUT_LOWEST_LEVEL, FIRST_PASS_WITHOUT_LOWER_LEVELS = 4, 6
"""After so many of these passes, the lowest level, and then all levels but the first, have no share of the columns that
they share with the levels above: the mechanism brakes, and the levels above keep their residuals."""
MAX_CORRECTION_PASSES = 12
"""Largest number of passes that correct the residuals of the upper levels (`upper_levels.py`). The first two suffice
where the velocities depend continuously on the targets; then the share of the lowest level is halved in each pass."""
FIRST_MIDDLE_CORRECTION = 6
"""After so many passes that correct the residuals of an upper level with two or more levels below it, the share of the
levels between is quartered in each pass."""
COUPLED_OVERSHOOT = 1e-7
"""Share by which the velocity of a dependent column may exceed its bound. It is below 1 - COUPLED_LIMIT_SHARE, so that
the limit is not exceeded."""


@subroutine
def append_band_rows(problem, tracking, k):
    """Append the hard rows with bands, such as cones and limits of loop-closing joints, to the k extra rows.

    Returns:
        The number of extra rows, including the appended rows.
    """
    blocks, block_columns, slacks = problem.blocks, problem.block_columns, problem.slacks
    residual, jacobian, extra_rows = problem.residual[1], problem.jacobian[1], tracking.extra_rows
    n, options = tracking.column_count, tracking.options
    approach_rate = min(1.0 / options.time_step, options.limit_approach_rate)
    for b in range(problem.stages[0].soft_end):
        block = blocks[b]
        width, first_row, first_column = block.column_count, block.first_row, block.first_column
        J = matrix_at(jacobian, block.first_jacobian, block.row_count, width)
        for r in range(block.row_count):
            if slacks[first_row + r].x < 0:
                continue
            for v in range(n):
                extra_rows[k, v] = 0.0
            for u in range(width):
                v = block_columns[first_column + u]
                if v < n:
                    extra_rows[k, v] = J[r, u]
            slack_column, weight = (
                block_columns[first_column + slacks[first_row + r].column],
                problem.weight[first_row + r],
            )
            low, high = weight * problem.lower[slack_column], weight * problem.upper[slack_column]
            tracking.extra_rate_min[k] = approach_rate * (low - residual[first_row + r])
            tracking.extra_rate_max[k] = approach_rate * (high - residual[first_row + r])
            k += 1
    return k


@subroutine
def find_braking_velocities(tracking, d, k):
    """Write into `next_rate` velocities near the present velocities, within position and velocity limits.

    The velocities are as near as possible to the present velocities times `slowdown`, the share that
    `limit_approach_rate` leaves after one time step (1 if this rate is infinite). The acceleration limits are not
    enforced; they only weight the changes of the velocities. The bounds of the extra rows are extended to contain the
    rate 0.

    Returns:
        False if the bounds are infeasible.
    """
    n, options, B, base = tracking.column_count, tracking.options, tracking.basis, tracking.next_rate
    H, L, y = tracking.hessian, tracking.factor, tracking.y
    C, lower, upper = tracking.bound_normals, tracking.lower, tracking.upper
    for v in range(n):
        tracking.rate_min[v] = tracking.rate_min_without_acceleration[v]
        tracking.rate_max[v] = tracking.rate_max_without_acceleration[v]
        base[v] = 0.0
    for i in range(k):
        tracking.extra_rate_min[i] = min(tracking.extra_rate_min[i], 0.0)
        tracking.extra_rate_max[i] = max(tracking.extra_rate_max[i], 0.0)
    bounds_over_basis(tracking, d, k)
    slowdown = (
        max(0.0, 1.0 - options.time_step * options.limit_approach_rate)
        if options.limit_approach_rate < math.inf
        else 1.0
    )
    for i in range(d):
        y[i] = 0.0
        for j in range(i + 1):
            H[i, j] = 0.0
    for v in range(n):
        max_rate_change = tracking.max_acceleration[v] * options.time_step
        weight = 1.0 / (max_rate_change * max_rate_change) if max_rate_change < math.inf else 1e-6
        for i in range(d):
            y[i] += B[v, i] * weight * slowdown * tracking.rate[v]
            for j in range(i + 1):
                H[i, j] += B[v, i] * weight * B[v, j]
    if not factor_cholesky(H, L, d):
        return False
    solve_cholesky(L, y, d)
    if not minimize_within_bounds(tracking, L, y, C, lower, upper, n + k, d):
        return False
    for v in range(n):
        for j in range(d):
            base[v] += B[v, j] * y[j]
    return True


@subroutine
def is_within_bounds(tracking):
    """Return whether all velocities are within their bounds, except for rounding errors and COUPLED_OVERSHOOT."""
    rates, rate_min, rate_max = tracking.next_rate, tracking.rate_min, tracking.rate_max
    for v in range(tracking.column_count):
        rounding_error = 1e-12 * (1.0 + abs(rates[v]))
        upper_excess = rates[v] - rate_max[v] - rounding_error
        lower_excess = rate_min[v] - rates[v] - rounding_error
        if tracking.pivot_of_column[v] >= 0:
            max_change = min(tracking.max_acceleration[v] * tracking.options.time_step, tracking.max_velocity[v])
            upper_excess = upper_excess - COUPLED_OVERSHOOT * min(max_change, abs(rate_max[v]))
            lower_excess = lower_excess - COUPLED_OVERSHOOT * min(max_change, abs(rate_min[v]))
        if not max(upper_excess, lower_excess) <= 0.0:
            return False
    return True


@subroutine
def is_within_acceleration(tracking):
    """Return whether the changes from `start_rate` to `rate` are within the acceleration limits."""
    shortest_time = 0.0
    for v in range(tracking.column_count):
        shortest_time = max(
            shortest_time, abs(tracking.rate[v] - tracking.start_rate[v]) / tracking.max_acceleration[v]
        )
    return shortest_time <= tracking.options.time_step


@subroutine
def finish_step(problem, tracking, x, out, result):
    """Store the velocities and set x to the result of the step; at STEP_STOPPED, x stays and velocities become 0."""
    rates, curvature_rates = tracking.next_rate, tracking.curvature_rate
    for v in range(tracking.column_count):
        if result == STEP_STOPPED:
            rates[v], curvature_rates[v] = 0.0, 0.0
        tracking.rate[v] = rates[v]
    if result != STEP_STOPPED:
        for i in range(problem.x_count):
            x[i] = out[i]
    for v in range(tracking.column_count):
        x_index = problem.column_x[v]
        if x_index >= 0:  # only rounding exceeds the limits, so the clamp does not open loops
            x[x_index] = min(max(x[x_index], tracking.value_min[v]), tracking.value_max[v])


@subroutine
def apply_velocities(problem, tracking, x, out):
    """Move x by the velocities `next_rate` for one time step, and write the result to `out`."""
    step, rates, n, dt = problem.step, tracking.next_rate, tracking.column_count, tracking.options.time_step
    for v in range(problem.column_count):
        step[v] = rates[v] * dt if v < n else 0.0  # slack variables stay
    apply_step(problem, x, out, False)


@subroutine
def close_loops(problem, tracking, pivot_count, x, out, m):
    """Correct the dependent velocities until the loops are closed after the step; return the largest residual.

    Args:
        m: number of hard rows.
        x, out: the present and the next variables, (x,); the next are written.
    """
    closure_step, e, rates = tracking.closure_step, tracking.hard_residual, tracking.next_rate
    n, options, violation = tracking.column_count, tracking.options, math.inf
    for _ in range(MAX_CLOSURE_STEPS):
        apply_velocities(problem, tracking, x, out)
        if m == 0:
            return 0.0
        evaluate_residuals(problem, out, problem.runtime_zero, problem.stages[0].soft_end)
        previous_violation, violation = violation, read_hard_residual(problem, problem.runtime_zero, e)
        if violation < options.hard_residual_tolerance or not violation < 0.5 * previous_violation:
            break
        for v in range(n):
            closure_step[v] = 0.0
        add_closure_step(tracking, pivot_count, e, closure_step)
        for v in range(n):
            rates[v] += closure_step[v] / options.time_step
    return violation


@kernel("i8(i8[::1], f8[::1], i8[::1], f8[::1], i8, b1)")
def tracking_step(ints, floats, tracking_ints, tracking_floats, pair_row_count, evaluates_first):
    """Move the configuration in the table `trial` by one time step; return STEP_MOVED, STEP_BRAKED or STEP_STOPPED.

    Args:
        ints, floats: the problem, in the layout of `problem_layout.py`.
        tracking_ints, tracking_floats: limits, options and state, in the layout of `tracking_layout.py`. The extra rows
            contain the Jacobian of the distances of pairs.
        pair_row_count: number of pairs; if negative, only the residual is evaluated, the configuration stays and the
            result is STEP_STOPPED.
        evaluates_first: whether the residual must be evaluated first, since the targets are new.
    """
    problem, tracking = open_problem(ints, floats), open_tracking(tracking_ints, tracking_floats)
    n, x, out, result = tracking.column_count, problem.trial, problem.x, STEP_STOPPED
    if evaluates_first and pair_row_count >= 0:
        evaluate_residuals(problem, x, 1, problem.block_count)
    if pair_row_count >= 0:
        k = append_band_rows(problem, tracking, pair_row_count)
        bound_rates(problem, tracking, x, k > 0)
        has_lower_levels = problem.stage_count > 2
        if has_lower_levels:
            mark_shared_columns(problem, tracking, x)
        m = gather_hard_rows(problem, tracking.hard_jacobian, n)
        pivot_count = eliminate_hard_rows(tracking, m)
        d = free_basis(tracking, pivot_count)
        B, loop_basis, pivot_of_column = tracking.basis, tracking.loop_basis, tracking.pivot_of_column
        rates, linear_rates = tracking.next_rate, tracking.linear_rate
        planned_rates, curvature_rates = tracking.planned_rate, tracking.curvature_rate
        for v in range(n):
            tracking.start_rate[v] = tracking.rate[v]
            if pivot_of_column[v] < 0:
                curvature_rates[v] = 0.0
        failed_count, correction_count, middle_count, has_candidate = 0, 0, 0, False
        while failed_count < MAX_LEVEL_PASSES + MAX_BRAKING_PASSES:
            is_braking, is_feasible = failed_count >= MAX_LEVEL_PASSES, False
            if is_braking and has_candidate:  # a correction was not possible; the deviation is corrected later
                for v in range(n):
                    rates[v] = tracking.candidate_rate[v]
                apply_velocities(problem, tracking, x, out)
                result = STEP_MOVED
                break
            lowest_share = 0.5 ** max(correction_count - 1, 0)
            middle_share = 0.25 ** max(middle_count - FIRST_MIDDLE_CORRECTION, 0)
            if failed_count >= FIRST_PASS_WITHOUT_LOWEST_LEVEL:
                lowest_share = 0.0
            if failed_count >= FIRST_PASS_WITHOUT_LOWER_LEVELS:
                middle_share = 0.0
            for v in range(n):
                rates[v] = 0.0 if is_braking else curvature_rates[v]
                for j in range(d):
                    B[v, j] = loop_basis[v, j]
            if is_braking:
                is_feasible = find_braking_velocities(tracking, d, k)
            else:
                for repetition in range(2 if pair_row_count > 0 else 1):
                    is_relaxed = bound_distance_rates(tracking, d, pivot_count == 0, pair_row_count, k, repetition == 1)
                    if repetition == 1 and not is_relaxed:
                        break
                    is_repeated = failed_count + correction_count + repetition > 0
                    is_feasible = solve_levels(
                        problem, tracking, is_repeated, lowest_share, middle_share, d, pivot_count == 0, k
                    )
                    if is_feasible or is_relaxed:
                        break
                    for v in range(n):
                        rates[v] = curvature_rates[v]
                        for j in range(d):
                            B[v, j] = loop_basis[v, j]
                if not is_feasible and is_relaxed:  # only rounding makes relaxed bounds infeasible
                    is_feasible = True
                    for v in range(n):
                        rates[v] = tracking.separation_rate[v]
            if not is_feasible:
                failed_count += 1
                continue
            for v in range(n):
                linear_rates[v], planned_rates[v] = rates[v] - (0.0 if is_braking else curvature_rates[v]), rates[v]
                if pivot_count == 0:
                    rates[v] = min(max(rates[v], tracking.rate_min[v]), tracking.rate_max[v])
            violation = close_loops(problem, tracking, pivot_count, x, out, m)
            for v in range(n):
                curvature_rates[v] = rates[v] - linear_rates[v] if pivot_of_column[v] >= 0 else 0.0
            closure_tolerance = max(1e3 * tracking.options.hard_residual_tolerance, 1e-9)
            if violation < closure_tolerance and is_within_bounds(tracking):
                deviating_stage = 0
                if has_lower_levels and not is_braking and correction_count < MAX_CORRECTION_PASSES:
                    deviating_stage = find_row_curvatures(problem, tracking, out)
                if deviating_stage == 0:
                    result = STEP_BRAKED if is_braking else STEP_MOVED
                    break
                has_candidate = True
                for v in range(n):
                    tracking.candidate_rate[v] = rates[v]
                correction_count += 1
                if deviating_stage < problem.stage_count - 2:
                    middle_count += 1
            else:
                failed_count += 1
        finish_step(problem, tracking, x, out, result)
        write_limit_codes(tracking)
        if result == STEP_BRAKED and is_within_acceleration(tracking):
            result = STEP_MOVED
    evaluate_residuals(problem, x, 1, problem.block_count)
    for r in range(problem.row_count):
        tracking.previous_residual[r] = problem.residual[1, r]
    return result
