"""Velocities of one time step: stopping bounds, separation of pairs that are too near, and priority levels.

The stopping distance is exact for time steps dt. With the deceleration a, the velocity u decreases by a dt in each
step. The motion takes N = floor(u / (a dt)) more steps after the present step, and covers the distance

    s(u) = dt ((N + 1) u - a dt N (N + 1) / 2)

which increases with u and is linear between multiples of a dt. The inverse of s gives the largest velocity that can
stop within a distance.

At each level the velocities are base + B y, where B spans the velocities that do not disturb the levels above, and y
minimises

    |A y - desired_rates|^2 + damping |B y|^2        between the bounds of all columns and of the extra rows

Then B is reduced to the velocities that do not change the residual of the level to first order. The desired rates
reduce the residual at the gain of each row and follow the motion of the targets; at all levels but the lowest, they
also cancel the curvature of the rows within the step. The lower levels move within narrower bounds, so that the upper
levels can stop and keep their residuals in the coming steps (`upper_levels.py`).

If a pair of bodies is too near, or if the desired rates of the distances make the levels infeasible, the feasible rates
are computed before all levels. The velocities base + B y minimise

    sum over pairs of max(0, desired_rate - rate)^2 + damping |B y|^2

between the bounds of all columns. The achieved rates become bounds of the levels, so the levels are feasible. If a pair
is too near and the distances contradict the acceleration limits or each other, the limits have priority over the
distances.

The letters of the code: n is the number of columns and v the index of a column, m the number of rows of a level and r
the index of a row, d the length of y, k the number of extra rows, i the index of such a row. `tracking` are the tables
of `tracking_layout.py`, which also explains rates, columns, bands and extra rows.
"""

from __future__ import annotations

import math

from ..compiler import inline, subroutine
from ..problem_layout import *
from ..tables import matrix_at
from .level_qp import (
    factor_cholesky,
    level_hessian,
    minimize_within_bounds,
    reduce_basis,
    remaining_rate,
    singularity_damping,
    solve_cholesky,
    unconstrained_minimum,
)
from .tracking_layout import LIMITED_BY_ACCELERATION, LIMITED_BY_POSITION, LIMITED_BY_VELOCITY, NOT_LIMITED
from .upper_levels import (
    LOWEST_LEVEL_END,
    LOWEST_LEVEL_START,
    MIDDLE_LEVEL_END,
    MIDDLE_LEVEL_START,
    narrow_bounds,
    remaining_share,
    used_acceleration_share,
)

LIMIT_SHARE = 1.0 - 1e-9
"""Share of the limits that is used, so that rounding errors do not exceed them."""
COUPLED_LIMIT_SHARE = 1.0 - 1e-6
"""Share of the limits that is used for coupled columns, whose velocity is known only after the loops are closed. The
velocity may exceed its bound by COUPLED_OVERSHOOT (`tracking_step.py`) and is still within the limit."""


@inline
def stopping_velocity(distance, deceleration, dt):
    """Return the largest velocity that can stop within `distance`, including the coming step.

    Args:
        distance: distance to the limit, in units of the column.
        deceleration: largest deceleration, in units of the column per s^2; infinite if unlimited.
        dt: time step, s.
    """
    if distance <= 0.0:
        return 0.0
    if not deceleration < math.inf:
        return distance / dt
    distance_unit = deceleration * dt * dt
    further_steps = math.floor(0.5 * (math.sqrt(1.0 + 8.0 * distance / distance_unit) - 1.0))
    if further_steps > 1e9:
        return math.sqrt(2.0 * deceleration * distance)
    return (distance / dt + 0.5 * deceleration * dt * further_steps * (further_steps + 1.0)) / (further_steps + 1.0)


@subroutine
def bound_rates(problem, tracking, x, are_all_coupled):
    """Bound the next velocity of each column by its acceleration, its velocity and the distance to its limits.

    The bounds with and without the acceleration limits are written.

    Args:
        x: the variables, (x,).
        are_all_coupled: whether all columns are coupled. A coupled column cannot brake alone: all coupled columns must
            slow down by the same share. So their velocities stay below `limit_approach_rate` times the remaining
            distance.
    """
    dt, approach_rate = tracking.options.time_step, tracking.options.limit_approach_rate
    rate_min, rate_max = tracking.rate_min, tracking.rate_max
    rate_min_without_acceleration = tracking.rate_min_without_acceleration
    rate_max_without_acceleration = tracking.rate_max_without_acceleration
    for v in range(tracking.column_count):
        is_column_coupled, x_index = tracking.is_coupled[v] != 0, problem.column_x[v]
        is_coupled = are_all_coupled or is_column_coupled
        share = COUPLED_LIMIT_SHARE if is_column_coupled else LIMIT_SHARE
        max_acceleration, max_rate = tracking.max_acceleration[v] * share, tracking.max_velocity[v] * share
        low_rate, high_rate = -max_rate, max_rate
        if x_index >= 0:
            value, columns_per_value = x[x_index], 1.0 / problem.scale[v]
            distance_above = columns_per_value * (tracking.value_max[v] - value)
            distance_below = columns_per_value * (value - tracking.value_min[v])
            if distance_above < math.inf:
                high_rate = min(high_rate, stopping_velocity(distance_above, max_acceleration, dt))
                if is_coupled:
                    high_rate = min(high_rate, max(distance_above, 0.0) * approach_rate * COUPLED_LIMIT_SHARE)
            if distance_below < math.inf:
                low_rate = max(low_rate, -stopping_velocity(distance_below, max_acceleration, dt))
                if is_coupled:
                    low_rate = max(low_rate, -max(distance_below, 0.0) * approach_rate * COUPLED_LIMIT_SHARE)
        rate_min_without_acceleration[v], rate_max_without_acceleration[v] = low_rate, high_rate
        rate = tracking.rate[v]
        if max_acceleration < math.inf:
            # if the bounds contradict each other, the limits of value and velocity have priority over the acceleration
            rate_min[v] = min(max(low_rate, rate - max_acceleration * dt), high_rate)
            rate_max[v] = max(min(high_rate, rate + max_acceleration * dt), low_rate)
        else:
            rate_min[v], rate_max[v] = low_rate, high_rate


@subroutine
def write_limit_codes(tracking):
    """Write the code of the limit that bounds each column's velocity (NOT_LIMITED, ...)."""
    reached_share = 1.0 - 2e-6  # the bounds are slightly below the limits, see COUPLED_LIMIT_SHARE
    limit_codes = tracking.limit_code
    for v in range(tracking.column_count):
        rate, max_rate = tracking.rate[v], tracking.max_velocity[v]
        max_rate_change = tracking.max_acceleration[v] * tracking.options.time_step
        tolerance = 1e-6 * min(max_rate, max_rate_change)
        tolerance = tolerance if tolerance < math.inf else 1e-9
        limit_codes[v] = NOT_LIMITED
        for side in (1, -1):
            bound = tracking.rate_max[v] if side > 0 else tracking.rate_min[v]
            if side * (rate - bound) < -tolerance:
                continue
            if max_rate_change < math.inf and side * (rate - tracking.start_rate[v]) >= reached_share * max_rate_change:
                limit_codes[v] = side * LIMITED_BY_ACCELERATION
            elif max_rate < math.inf and side * rate >= reached_share * max_rate:
                limit_codes[v] = side * LIMITED_BY_VELOCITY
            else:
                limit_codes[v] = side * LIMITED_BY_POSITION


MIN_DAMPING = 1e-9
"""Squared damping that is always added, so that dofs without an objective do not move. Larger damping slows down the
approach to the targets."""
MAX_TARGET_ACCELERATION_RATIO = 2.0
"""Largest acceleration of a followed target, as a multiple of the largest acceleration of the columns. A target with a
larger acceleration has jumped: its velocity is not followed. A larger ratio follows faster targets, but also jumps."""
CURVATURE_BOUND = 1.0
"""Assumed curvature of the residual, in units of residual over columns squared. The error that a step cannot reduce is
multiplied by this curvature and added to the damping. Without this term, an arm that is stretched towards a goal out of
reach keeps oscillating."""
MIN_USEFUL_DAMPING = 1e-7
"""Smaller additional damping (squared) is skipped, since it costs another factorization."""
MAX_BAND_ROUNDS = 4
"""Largest number of solves of a level with bands. After each solve, the rows that would leave their bands become
active; with fewer solves, rows may leave their bands."""


@subroutine
def gather_soft_rows(problem, tracking, stage):
    """Gather the soft rows of a stage with their Jacobian; return their number, and the number of rows with bands.

    Their errors for the present and for the previous targets, their bands, and whether they are active are written. For
    a Python function and for a row with a band, both errors are the residual for the present targets; if it is outside
    the band, the nearer end of the band is subtracted from the errors and from the band.
    """
    blocks, block_columns, slacks = problem.blocks, problem.block_columns, problem.slacks
    residual, jacobian = problem.residual[1], problem.jacobian[1]
    A, e, past_error, is_active = tracking.level_jacobian, tracking.error, tracking.past_error, tracking.is_active
    band_lower, band_upper = tracking.band_lower, tracking.band_upper
    n, m, band_count = tracking.column_count, 0, 0
    stage_blocks = problem.stages[stage]
    for b in range(stage_blocks.hard_end, stage_blocks.soft_end):
        block = blocks[b]
        width, first_row, first_column = block.column_count, block.first_row, block.first_column
        J = matrix_at(jacobian, block.first_jacobian, block.row_count, width)
        for r in range(block.row_count):
            for v in range(n):
                A[m, v] = 0.0
            for u in range(width):
                v = block_columns[first_column + u]
                if v < n:
                    A[m, v] = J[r, u]
            e[m] = residual[first_row + r]
            past_error[m] = e[m] if block.kind == PYTHON_FUNCTION else tracking.previous_residual[first_row + r]
            band_lower[m], band_upper[m], is_active[m] = 0.0, 0.0, 1
            if slacks[first_row + r].x >= 0:
                slack_column, weight = (
                    block_columns[first_column + slacks[first_row + r].column],
                    problem.weight[first_row + r],
                )
                lower, upper = weight * problem.lower[slack_column], weight * problem.upper[slack_column]
                is_inside = lower <= e[m] <= upper
                offset = 0.0 if is_inside else (lower if e[m] < lower else upper)
                e[m], past_error[m] = e[m] - offset, e[m] - offset
                band_lower[m], band_upper[m], is_active[m] = lower - offset, upper - offset, 0 if is_inside else 1
                band_count += 1
            m += 1
    return m, band_count


@subroutine
def feasible_speed_share(tracking, y, d, gain):
    """Return the share (0 to 1) of the velocities B y that is within the limits and can stop where the error is zero.

    To first order, the remaining distance of each column is its velocity divided by the gain (1/s). The smallest share
    of a column is used for all columns, so the direction of the motion stays the same.
    """
    B, share = tracking.basis, 1.0
    for v in range(tracking.column_count):
        if not min(tracking.max_velocity[v], tracking.max_acceleration[v]) < math.inf:
            continue
        rate = 0.0
        for j in range(d):
            rate += B[v, j] * y[j]
        rate = abs(rate)
        if rate > 1e-12:
            max_acceleration = tracking.max_acceleration[v] * LIMIT_SHARE
            max_velocity = min(
                tracking.max_velocity[v] * LIMIT_SHARE,
                stopping_velocity(rate / gain, max_acceleration, tracking.options.time_step),
            )
            share = min(share, max_velocity / rate)
    return share


@subroutine
def target_has_jumped(tracking, y, d, stage):
    """Return whether the targets move faster than the columns can, or exceed MAX_TARGET_ACCELERATION_RATIO.

    The motion of the targets is stored for the next step.

    Args:
        y: (d,) the velocities B y follow the motion of the targets.
    """
    B, target_motion, has_jumped = tracking.basis, tracking.target_motion, False
    for v in range(tracking.column_count):
        rate = 0.0
        for j in range(d):
            rate += B[v, j] * y[j]
        rate_change = abs(rate - target_motion[stage, v])
        max_rate_change = tracking.max_acceleration[v] * tracking.options.time_step
        if abs(rate) > tracking.max_velocity[v] or rate_change > MAX_TARGET_ACCELERATION_RATIO * max_rate_change:
            has_jumped = True
        target_motion[stage, v] = rate
    return has_jumped


@subroutine
def row_rate(A, r, rates, n):
    """Return the rate of row r of A at the velocities `rates`."""
    total = 0.0
    for v in range(n):
        total += A[r, v] * rates[v]
    return total


@subroutine
def bounds_over_basis(tracking, d, k):
    """Write the bounds of all columns and of the k extra rows as rows over y: lower <= C y <= upper."""
    n, B, base = tracking.column_count, tracking.basis, tracking.next_rate
    C, lower, upper = tracking.bound_normals, tracking.lower, tracking.upper
    rate_min, rate_max, extra_rows = tracking.rate_min, tracking.rate_max, tracking.extra_rows
    for v in range(n):
        lower[v], upper[v] = rate_min[v] - base[v], rate_max[v] - base[v]
        for j in range(d):
            C[v, j] = B[v, j]
    for i in range(k):
        base_rate = row_rate(extra_rows, i, base, n)
        lower[n + i], upper[n + i] = tracking.extra_rate_min[i] - base_rate, tracking.extra_rate_max[i] - base_rate
        for j in range(d):
            total = 0.0
            for v in range(n):
                total += extra_rows[i, v] * B[v, j]
            C[n + i, j] = total


@subroutine
def solve_levels(problem, tracking, is_repeated, lowest_share, middle_share, d, is_orthonormal, k):
    """Write the velocities that solve all levels into `next_rate`; return False if the first level is infeasible.

    `next_rate` contains the velocities to which B y is added. The first d columns of `basis` span the free velocities;
    they are overwritten.

    Args:
        is_repeated: whether this time step is solved again; then jumps of targets are not detected again.
        lowest_share, middle_share: shares (0 to 1) of their bounds that the lowest level, and the levels between it and
            the first one, may use at the columns that they share with the levels above (`upper_levels.py`).
        is_orthonormal: whether B is the identity; then its columns stay orthonormal at all levels.
        k: number of extra rows; the rows with bands of the solved levels are appended.
    """
    n, options, B, base = tracking.column_count, tracking.options, tracking.basis, tracking.next_rate
    A_columns, A, is_active = tracking.level_jacobian, tracking.jacobian_over_basis, tracking.is_active
    band_lower, band_upper = tracking.band_lower, tracking.band_upper
    H, L = tracking.hessian, tracking.factor
    C, lower, upper = tracking.bound_normals, tracking.lower, tracking.upper
    e, past_error, desired_rates, gains = tracking.error, tracking.past_error, tracking.desired_rate, tracking.gain
    y, y_goal, y_target, extra_rows = tracking.y, tracking.y_goal, tracking.y_target, tracking.extra_rows
    rate_changes, stage_count, used_share = tracking.rate_change, problem.stage_count, 0.0
    approach_rate = min(1.0 / options.time_step, options.limit_approach_rate)
    for v in range(n):
        rate_changes[v] = 2.0 * base[v]  # of dependent columns, to keep the loops closed
    for stage in range(1, max(stage_count, 2)):
        has_lower_levels = stage + 1 < stage_count
        m, band_count = 0, 0
        if stage < stage_count:
            m, band_count = gather_soft_rows(problem, tracking, stage)
        gain = 0.0
        if stage < stage_count:
            first_row = problem.blocks[problem.stages[stage].hard_end].first_row
            for r in range(m):
                gain = max(gain, gains[first_row + r])
        for r in range(m):
            for j in range(d):
                total = 0.0
                if is_orthonormal and stage == 1:
                    total = A_columns[r, j]
                else:
                    for v in range(n):
                        total += A_columns[r, v] * B[v, j]
                A[r, j] = total
        damping = singularity_damping(tracking, A, m, d) + MIN_DAMPING
        bounds_over_basis(tracking, d, k)
        if stage > 1:
            share = (
                middle_share * remaining_share(used_share, MIDDLE_LEVEL_START, MIDDLE_LEVEL_END)
                if has_lower_levels
                else lowest_share * remaining_share(used_share, LOWEST_LEVEL_START, LOWEST_LEVEL_END)
            )
            narrow_bounds(tracking, share, stage)
        has_jumped = True
        for band_round in range(MAX_BAND_ROUNDS if band_count > 0 else 1):
            level_hessian(A, is_active, B, m, n, d, damping, is_orthonormal, H)
            if not factor_cholesky(H, L, d):
                return False
            if options.follows_target_velocity and m > 0:
                for r in range(m):
                    desired_rates[r] = (past_error[r] - e[r]) / options.time_step
                unconstrained_minimum(A, L, desired_rates, is_active, m, d, y_target)
                if band_round == 0 and not is_repeated:
                    tracking.target_has_jumped[stage] = target_has_jumped(tracking, y_target, d, stage)
                has_jumped = tracking.target_has_jumped[stage] != 0
            for r in range(m):
                desired_rates[r] = -gains[first_row + r] * (e[r] if has_jumped else past_error[r])
            unconstrained_minimum(A, L, desired_rates, is_active, m, d, y_goal)
            extra_damping = (
                CURVATURE_BOUND * remaining_rate(A, desired_rates, is_active, m, d, y_goal) / gain if m > 0 else 0.0
            )
            if extra_damping > MIN_USEFUL_DAMPING:
                level_hessian(A, is_active, B, m, n, d, damping + extra_damping, is_orthonormal, H)
                if not factor_cholesky(H, L, d):
                    return False
                unconstrained_minimum(A, L, desired_rates, is_active, m, d, y_goal)
            speed_share = feasible_speed_share(tracking, y_goal, d, gain) if m > 0 else 1.0
            if damping > MIN_DAMPING:
                # the damping limits y_goal only: here it would release the rows where bounds impose velocities
                level_hessian(A, is_active, B, m, n, d, MIN_DAMPING + extra_damping, is_orthonormal, H)
                if not factor_cholesky(H, L, d):
                    return False
            for r in range(m):
                desired_rates[r] = -row_rate(A_columns, r, base, n)
                if has_lower_levels:
                    desired_rates[r] -= tracking.row_curvature[first_row + r] / options.time_step
            unconstrained_minimum(A, L, desired_rates, is_active, m, d, y)
            for j in range(d):
                y[j] += speed_share * y_goal[j]
                if not has_jumped:
                    y[j] += y_target[j]
            if not minimize_within_bounds(tracking, L, y, C, lower, upper, n + k, d):
                if stage == 1:
                    return False
                for j in range(d):
                    y[j] = 0.0
            has_new_active_row = False
            if band_count > 0:
                for r in range(m):
                    if is_active[r] == 0:
                        next_rate = row_rate(A_columns, r, base, n)
                        for j in range(d):
                            next_rate += A[r, j] * y[j]
                        low_rate = approach_rate * (band_lower[r] - e[r])
                        high_rate = approach_rate * (band_upper[r] - e[r])
                        if next_rate < low_rate - 1e-12 or next_rate > high_rate + 1e-12:
                            is_active[r] = 1
                            offset = band_lower[r] if next_rate < low_rate else band_upper[r]
                            e[r], past_error[r] = e[r] - offset, e[r] - offset
                            band_lower[r], band_upper[r] = band_lower[r] - offset, band_upper[r] - offset
                            has_new_active_row = True
            if not has_new_active_row:
                break
        for v in range(n):
            for j in range(d):
                base[v] += B[v, j] * y[j]
        if has_lower_levels and d > 0:
            for r in range(m):
                desired_rates[r] = -2.0 * tracking.row_curvature[first_row + r] / options.time_step - row_rate(
                    A_columns, r, rate_changes, n
                )
            unconstrained_minimum(A, L, desired_rates, is_active, m, d, y)
            for v in range(n):
                for j in range(d):
                    rate_changes[v] += B[v, j] * y[j]
            used_share = max(used_share, used_acceleration_share(tracking, stage))
            for r in range(m):
                # lower levels must not move a row further out of its band
                if band_lower[r] < band_upper[r] and k < len(extra_rows):
                    next_rate = row_rate(A_columns, r, base, n)
                    for v in range(n):
                        extra_rows[k, v] = A_columns[r, v]
                    tracking.extra_rate_min[k] = min(approach_rate * (band_lower[r] - e[r]), next_rate)
                    tracking.extra_rate_max[k] = max(approach_rate * (band_upper[r] - e[r]), next_rate)
                    is_active[r] = 0
                    k += 1
            d = reduce_basis(tracking, A, B, is_active, m, n, d)
    return True


MAX_SEPARATION_ROUNDS = 12
"""Largest number of solves for the separation. After each solve, the set of distances that grow too slowly is updated;
more solves take longer, fewer separate some pairs more slowly than possible."""
SEPARATION_DAMPING = 1e-4
"""Damping as a share of the largest diagonal entry of the Hessian, so that columns that separate no pair do not move.
Larger damping separates more slowly: 1e-4 moves 30 UR5 arms out of collision with spheres and boxes, 1e-2 only 27."""
RATE_SLACK = 1e-8
"""Largest rounding error of a rate, m/s: the rate of a distance may be below the achieved rate by this value."""


@subroutine
def distance_rates_over_basis(tracking, pair_row_count, d):
    """Write A (pair_row_count, d) and the offsets: the rates of the distances of pairs are A y + offset."""
    A, offset, extra_rows = tracking.jacobian_over_basis, tracking.distance_offset, tracking.extra_rows
    B, base = tracking.basis, tracking.next_rate
    for i in range(pair_row_count):
        offset[i] = 0.0
        for j in range(d):
            A[i, j] = 0.0
        for v in range(tracking.column_count):
            entry = extra_rows[i, v]
            if entry != 0.0:
                offset[i] += entry * base[v]
                for j in range(d):
                    A[i, j] += entry * B[v, j]


@subroutine
def separation_hessian(tracking, pair_row_count, d):
    """Write the Hessian of the separation into H, and the right-hand side into y; both are sums over the slow pairs.

    The matrix S of the damping is B'B (lower triangle).
    """
    H, S, y, largest_diagonal = tracking.hessian, tracking.gram, tracking.y, 0.0
    A, offset, is_too_slow = tracking.jacobian_over_basis, tracking.distance_offset, tracking.is_too_slow
    for j in range(d):
        y[j] = 0.0
        for c in range(j + 1):
            H[j, c] = 0.0
    for i in range(pair_row_count):
        if is_too_slow[i] != 0:
            for j in range(d):
                y[j] += A[i, j] * (tracking.desired_distance_rate[i] - offset[i])
                for c in range(j + 1):
                    H[j, c] += A[i, j] * A[i, c]
    for j in range(d):
        largest_diagonal = max(largest_diagonal, H[j, j])
    for j in range(d):
        for c in range(j + 1):
            H[j, c] += (SEPARATION_DAMPING * largest_diagonal + 1e-12) * S[j, c]


@subroutine
def basis_gram(B, S, n, d, is_orthonormal):
    """Write the lower triangle of S = B'B."""
    for j in range(d):
        for c in range(j + 1):
            S[j, c] = 1.0 if j == c else 0.0
            if not is_orthonormal:
                S[j, c] = 0.0
                for v in range(n):
                    S[j, c] += B[v, j] * B[v, c]


@subroutine
def separation_bounds(tracking, pair_row_count, k, d, keeps_min_rates):
    """Write the bounds that a separation must satisfy as rows over y: lower <= C y <= upper; return their number.

    Args:
        keeps_min_rates: whether the rates of the pairs must be at least `min_distance_rate`.
    """
    n, B, base, extra_rows = tracking.column_count, tracking.basis, tracking.next_rate, tracking.extra_rows
    C, lower, upper, bound_count = tracking.bound_normals, tracking.lower, tracking.upper, n
    for v in range(n):
        lower[v], upper[v] = tracking.rate_min[v] - base[v], tracking.rate_max[v] - base[v]
        for j in range(d):
            C[v, j] = B[v, j]
    for i in range(0 if keeps_min_rates else pair_row_count, k):
        base_rate = 0.0
        for j in range(d):
            C[bound_count, j] = 0.0
        for v in range(n):
            if extra_rows[i, v] != 0.0:
                base_rate += extra_rows[i, v] * base[v]
                for j in range(d):
                    C[bound_count, j] += extra_rows[i, v] * B[v, j]
        rate_min = tracking.min_distance_rate[i] if i < pair_row_count else tracking.extra_rate_min[i]
        lower[bound_count], upper[bound_count] = rate_min - base_rate, tracking.extra_rate_max[i] - base_rate
        bound_count += 1
    return bound_count


@subroutine
def increase_distances(tracking, d, is_orthonormal, pair_row_count, k, keeps_min_rates):
    """Find velocities that separate the pairs as fast as desired or feasible; write the achieved rates as lower bounds.

    The velocities are written to `separation_rate`, the lower bounds of the pairs' rates to `extra_rate_min`.

    Args:
        keeps_min_rates: whether the rates of all distances must be at least `min_distance_rate`.

    Returns:
        False if the bounds that must hold are infeasible.
    """
    n, A, B = tracking.column_count, tracking.jacobian_over_basis, tracking.basis
    H, L, y, base = tracking.hessian, tracking.factor, tracking.y, tracking.next_rate
    C, lower, upper = tracking.bound_normals, tracking.lower, tracking.upper
    offset, is_too_slow, separation_rates = tracking.distance_offset, tracking.is_too_slow, tracking.separation_rate
    extra_rows, desired_rates = tracking.extra_rows, tracking.desired_distance_rate
    distance_rates_over_basis(tracking, pair_row_count, d)
    basis_gram(B, tracking.gram, n, d, is_orthonormal)
    bound_count = separation_bounds(tracking, pair_row_count, k, d, keeps_min_rates)
    for i in range(pair_row_count):
        current_rate = 0.0
        for v in range(n):
            current_rate += extra_rows[i, v] * tracking.rate[v]
        is_too_slow[i] = 1 if current_rate < desired_rates[i] else 0
    for _ in range(MAX_SEPARATION_ROUNDS):
        separation_hessian(tracking, pair_row_count, d)
        if not factor_cholesky(H, L, d):
            return False
        solve_cholesky(L, y, d)
        if not minimize_within_bounds(tracking, L, y, C, lower, upper, bound_count, d):
            return False
        has_changed = False
        for i in range(pair_row_count):
            rate = offset[i]
            for j in range(d):
                rate += A[i, j] * y[j]
            tracking.extra_rate_min[i] = min(desired_rates[i], rate - RATE_SLACK)
            is_now_too_slow = 1 if rate < desired_rates[i] - RATE_SLACK else 0
            if is_now_too_slow != is_too_slow[i]:
                is_too_slow[i], has_changed = is_now_too_slow, True
        if not has_changed:
            break
    for v in range(n):
        separation_rates[v] = base[v]
        for j in range(d):
            separation_rates[v] += B[v, j] * y[j]
    return True


@subroutine
def bound_distance_rates(tracking, d, is_orthonormal, pair_row_count, k, are_desired_rates_infeasible):
    """Set the lower bounds of the rates of the pairs: the desired rates, or the feasible rates.

    If no separation is feasible, the bounds are the smallest allowed rates, or none if a pair is too near.

    Args:
        are_desired_rates_infeasible: whether the levels were infeasible with the desired rates.

    Returns:
        Whether the bounds are feasible rates; then `separation_rate` contains velocities that satisfy them.
    """
    is_too_near, rate_min = tracking.options.is_too_near, tracking.extra_rate_min
    for i in range(pair_row_count):
        rate_min[i] = tracking.desired_distance_rate[i]
    if not is_too_near and not are_desired_rates_infeasible:
        return False
    if increase_distances(tracking, d, is_orthonormal, pair_row_count, k, True):
        return True
    if is_too_near and increase_distances(tracking, d, is_orthonormal, pair_row_count, k, False):
        return True
    for i in range(pair_row_count):
        rate_min[i] = -math.inf if is_too_near else tracking.min_distance_rate[i]
    return False
