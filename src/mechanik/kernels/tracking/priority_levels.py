"""Velocities of one time step: stopping bounds, separation of pairs that are too near, and priority levels.

Stopping is exact for time steps dt. With a deceleration of a dt per step, a motion at v takes n = floor(v / (a dt))
more steps after the present step, and covers the distance

    s(v) = dt ((n + 1) v - a dt n (n + 1) / 2)

which increases with v and is linear between multiples of a dt. Its inverse is the largest velocity that still stops.

At each level the velocities are base + B y, where B spans what the levels above leave free, and y minimises

    |A y - rate|^2 + damping |B y|^2        between the bounds of all columns and of further rows

Then B is reduced to the directions that do not change the residual of the level. The rate reduces the residual at the
level's gain and follows the motion of the targets.

Pairs that are too near are separated before all levels. The velocities base + B y minimise

    sum over pairs of max(0, wanted - rate)^2 + damping |B y|^2

between the bounds of all columns. The achieved rates become bounds of the levels, which are thus feasible: where
distances contradict each other or the acceleration limits, the distances yield and the limits hold.
"""

from __future__ import annotations

import math

from ..compiler import inline, subroutine
from ..problem_layout import *
from .level_qp import *
from .level_qp import (
    factor_cholesky,
    level_hessian,
    minimize_within_bounds,
    reduce_basis,
    remaining_rate,
    singularity_damping,
    solve_cholesky,
    unbounded_minimum,
)


@inline
def stopping_velocity(distance, a, dt):
    """Return the largest velocity that can stop within the distance `distance`, the coming step included.

    Args:
        distance: distance to the limit.
        a: largest deceleration; infinite if unlimited.
        dt: time step, s.
    """
    if distance <= 0.0:
        return 0.0
    if not a < math.inf:
        return distance / dt
    unit = a * dt * dt
    n = math.floor(0.5 * (math.sqrt(1.0 + 8.0 * distance / unit) - 1.0))
    if n > 1e9:
        return math.sqrt(2.0 * a * distance)
    return (distance / dt + 0.5 * a * dt * n * (n + 1.0)) / (n + 1.0)


@subroutine
def bound_rates(ints, floats, column_table, options, x, n, all_coupled):
    """Bound the next velocity of each column by its acceleration, its velocity and the distance to its limits.

    Args:
        column_table: RATE_MIN .. RATE_MAX_WITHOUT_ACCELERATION are written.
        x: start of the configuration in `floats`.
        n: number of columns.
        all_coupled: whether all columns are coupled. Coupled columns cannot brake alone and must slow down by the same
            share, so their velocities stay below LIMIT_APPROACH_RATE times the remaining distance.
    """
    dt, approach_rate = options[TIME_STEP], options[LIMIT_APPROACH_RATE]
    for v in range(n):
        k, is_coupled = ints[ints[AT_COLUMN_X] + v], all_coupled or column_table[IS_COUPLED, v] > 0.0
        share = COUPLED_LIMIT_SHARE if column_table[IS_COUPLED, v] > 0.0 else LIMIT_SHARE
        a, max_rate = column_table[MAX_ACCELERATION, v] * share, column_table[MAX_VELOCITY, v] * share
        low, high = -max_rate, max_rate
        if k >= 0:
            value, unit = floats[x + k], 1.0 / floats[ints[AT_SCALE] + v]
            above, below = unit * (column_table[VALUE_MAX, v] - value), unit * (value - column_table[VALUE_MIN, v])
            if above < math.inf:
                high = min(high, stopping_velocity(above, a, dt))
                if is_coupled:
                    high = min(high, max(above, 0.0) * approach_rate * COUPLED_LIMIT_SHARE)
            if below < math.inf:
                low = max(low, -stopping_velocity(below, a, dt))
                if is_coupled:
                    low = max(low, -max(below, 0.0) * approach_rate * COUPLED_LIMIT_SHARE)
        column_table[RATE_MIN_WITHOUT_ACCELERATION, v], column_table[RATE_MAX_WITHOUT_ACCELERATION, v] = low, high
        rate = column_table[RATE, v]
        if a < math.inf:
            # where the two contradict each other by rounding, the limit of the value has priority
            column_table[RATE_MIN, v], column_table[RATE_MAX, v] = (
                min(max(low, rate - a * dt), high),
                max(min(high, rate + a * dt), low),
            )
        else:
            column_table[RATE_MIN, v], column_table[RATE_MAX, v] = low, high


@subroutine
def limiting_bounds(column_table, options, n, active):
    """Write the active bound of each column's velocity into `active`, as the codes of `level_qp.py`."""
    tolerance = 1.0 - 2e-6  # the bounds use slightly less than the limits, see COUPLED_LIMIT_SHARE
    for v in range(n):
        rate, max_rate, a = (
            column_table[RATE, v],
            column_table[MAX_VELOCITY, v],
            column_table[MAX_ACCELERATION, v] * options[TIME_STEP],
        )
        slack = 1e-6 * min(max_rate, a)
        slack = slack if slack < math.inf else 1e-9
        active[v] = NOT_LIMITED
        for side in (1, -1):
            bound = column_table[RATE_MAX, v] if side > 0 else column_table[RATE_MIN, v]
            if side * (rate - bound) < -slack:
                continue
            if a < math.inf and side * (rate - column_table[START_RATE, v]) >= tolerance * a:
                active[v] = side * BY_ACCELERATION
            elif max_rate < math.inf and side * rate >= tolerance * max_rate:
                active[v] = side * BY_VELOCITY
            else:
                active[v] = side * BY_POSITION


MIN_DAMPING = 1e-9
"""Squared damping that is always added, so that dofs without an objective stand still."""
MAX_TARGET_ACCELERATION_RATIO = 2.0
"""Largest acceleration of a followed target, as a multiple of the largest acceleration of the columns; above it the
target has jumped."""
CURVATURE_BOUND = 1.0
"""Assumed curvature of the residual, in units of residual over columns squared. The error that a step cannot reduce,
times this, is added to the damping. Without it, an arm that is stretched towards a goal out of reach oscillates for
ever."""
MIN_USEFUL_DAMPING = 1e-7
"""Smaller additional damping is skipped, since it costs a factorization."""
MAX_BAND_CHANGES = 4
"""Largest number of rounds that update which rows leave their bands."""


@subroutine
def gather_soft(ints, floats, stage, A, e, past_error, band, previous_residual, n):
    """Gather the soft rows of a stage with their Jacobian; return their number, and how many have bands.

    Args:
        A: (m, n) written: the Jacobian.
        e, past_error: (m,) written: the residual now, and with the last targets.
        band: (m, 3) written: the band of a row, and 1 if the row is active, 0 while it is inside its band.
        previous_residual: (rows,) residual with the last targets.
        n: number of columns.
    """
    blocks, columns, slack = ints[AT_BLOCKS], ints[AT_BLOCK_COLUMNS], ints[AT_SLACK]
    residual, jacobian = ints[AT_RESIDUAL] + ints[N_ROWS], ints[AT_JACOBIAN] + ints[N_JACOBIAN]
    m, band_count = 0, 0
    stage_table = ints[AT_STAGES] + STAGE_INTS * stage
    for b in range(ints[stage_table + HARD_END], ints[stage_table + SOFT_END]):
        block = blocks + BLOCK_INTS * b
        row, width, first, j = (
            ints[block + FIRST_ROW],
            ints[block + COLUMN_COUNT],
            ints[block + FIRST_COLUMN],
            ints[block + FIRST_JACOBIAN],
        )
        for r in range(ints[block + ROW_COUNT]):
            for v in range(n):
                A[m, v] = 0.0
            for u in range(width):
                v = ints[columns + first + u]
                if v < n:
                    A[m, v] = floats[jacobian + j + r * width + u]
            e[m] = floats[residual + row + r]
            past_error[m] = e[m] if ints[block + BLOCK_KIND] == PYTHON_FUNCTION else previous_residual[row + r]
            band[m, 0], band[m, 1], band[m, 2] = 0.0, 0.0, 1.0
            if ints[slack + 2 * (row + r)] >= 0:
                k, w = ints[columns + first + ints[slack + 2 * (row + r) + 1]], floats[ints[AT_WEIGHT] + row + r]
                band[m, 0], band[m, 1] = w * floats[ints[AT_LOWER] + k], w * floats[ints[AT_UPPER] + k]
                is_inside = band[m, 0] <= e[m] <= band[m, 1]
                band[m, 2] = 0.0 if is_inside else 1.0
                offset = 0.0 if is_inside else (band[m, 0] if e[m] < band[m, 0] else band[m, 1])
                e[m], past_error[m] = e[m] - offset, e[m] - offset
                band[m, 0], band[m, 1] = band[m, 0] - offset, band[m, 1] - offset
                band_count += 1
            m += 1
    return m, band_count


@subroutine
def feasible_speed_share(column_table, options, B, y, n, d, gain):
    """Return the share of the velocities B y that lets all columns stop when the error is zero.

    To first order each column still moves by its velocity over the gain. All columns slow down by the share of the
    slowest, so the direction is kept.
    """
    share = 1.0
    for v in range(n):
        if not min(column_table[MAX_VELOCITY, v], column_table[MAX_ACCELERATION, v]) < math.inf:
            continue
        rate = 0.0
        for j in range(d):
            rate += B[v, j] * y[j]
        rate = abs(rate)
        if rate > 1e-12:
            a = column_table[MAX_ACCELERATION, v] * LIMIT_SHARE
            max_velocity = min(
                column_table[MAX_VELOCITY, v] * LIMIT_SHARE, stopping_velocity(rate / gain, a, options[TIME_STEP])
            )
            share = min(share, max_velocity / rate)
    return share


@subroutine
def target_has_jumped(column_table, options, B, y, n, d, target_motion, stage):
    """Return 1 if the targets move faster than the columns can, else 0; store their motion in `target_motion`."""
    has_jumped = 0.0
    for v in range(n):
        rate = 0.0
        for j in range(d):
            rate += B[v, j] * y[j]
        change = abs(rate - target_motion[stage, v])
        if (
            abs(rate) > column_table[MAX_VELOCITY, v]
            or change > MAX_TARGET_ACCELERATION_RATIO * column_table[MAX_ACCELERATION, v] * options[TIME_STEP]
        ):
            has_jumped = 1.0
        target_motion[stage, v] = rate
    return has_jumped


@subroutine
def row_rate(A, r, rates, n):
    total = 0.0
    for v in range(n):
        total += A[r, v] * rates[v]
    return total


@subroutine
def bounds_over_basis(C, low, high, B, extra_rows, extra_bounds, base, column_table, n, d, k):
    """Write the bounds of all columns and of the k further rows as rows over y: low <= C y <= high."""
    for v in range(n):
        low[v], high[v] = column_table[RATE_MIN, v] - base[v], column_table[RATE_MAX, v] - base[v]
        for j in range(d):
            C[v, j] = B[v, j]
    for i in range(k):
        base_rate = row_rate(extra_rows, i, base, n)
        low[n + i], high[n + i] = extra_bounds[i, 0] - base_rate, extra_bounds[i, 1] - base_rate
        for j in range(d):
            total = 0.0
            for v in range(n):
                total += extra_rows[i, v] * B[v, j]
            C[n + i, j] = total


@subroutine
def solve_levels(
    ints,
    floats,
    column_table,
    options,
    matrices,
    vectors,
    indices,
    gains,
    previous_residual,
    target_motion,
    is_repeated,
    B,
    d,
    is_orthonormal,
    extra_rows,
    extra_bounds,
    k,
    base,
    n,
):
    """Write the velocities that solve all levels into `base`; return False if the bounds are infeasible.

    Args:
        matrices, vectors, indices: work arrays.
        gains: (rows,) 1/s.
        previous_residual: (rows,) residual with the last targets.
        target_motion: (stages, n + 1) the last motion of the targets, and whether it was a jump; written.
        is_repeated: whether this step was solved before; then the jump of a target is not detected anew.
        B: (n, n), whose first d columns span the free velocities; overwritten.
        is_orthonormal: whether the columns of B are orthonormal.
        extra_rows, extra_bounds: (.., n) and (.., 4) k further rows and the bounds of their rates, with space for the
            rows with bands.
        base: (n,) velocities that are present in addition to those of B.
    """
    A0, A, H, L, C, band = (
        matrices[MATRIX_ALL],
        matrices[MATRIX_LEVEL],
        matrices[MATRIX_HESSIAN],
        matrices[MATRIX_FACTOR],
        matrices[MATRIX_BOUNDS],
        matrices[MATRIX_BANDS],
    )
    e, past_error, rate, low, high = (
        vectors[VECTOR_ERROR],
        vectors[VECTOR_PAST_ERROR],
        vectors[VECTOR_RATE],
        vectors[VECTOR_LOW],
        vectors[VECTOR_HIGH],
    )
    y, y_goal, y_target = vectors[VECTOR_Y], vectors[VECTOR_GOAL], vectors[VECTOR_TARGET_RATE]
    stages = ints[N_STAGES]
    approach_rate = min(1.0 / options[TIME_STEP], options[LIMIT_APPROACH_RATE])
    for stage in range(1, max(stages, 2)):
        m, band_count = 0, 0
        if stage < stages:
            m, band_count = gather_soft(ints, floats, stage, A0, e, past_error, band, previous_residual, n)
        gain = 0.0
        if stage < stages:
            first = ints[
                ints[AT_BLOCKS] + BLOCK_INTS * ints[ints[AT_STAGES] + STAGE_INTS * stage + HARD_END] + FIRST_ROW
            ]
            for r in range(m):
                gain = max(gain, gains[first + r])
        for r in range(m):
            for j in range(d):
                total = 0.0
                if is_orthonormal and stage == 1:
                    total = A0[r, j]
                else:
                    for v in range(n):
                        total += A0[r, v] * B[v, j]
                A[r, j] = total
        damping = singularity_damping(matrices, vectors, A, m, d, options) + MIN_DAMPING
        bounds_over_basis(C, low, high, B, extra_rows, extra_bounds, base, column_table, n, d, k)
        has_jumped = True
        for band_round in range(MAX_BAND_CHANGES if band_count > 0 else 1):
            level_hessian(A, band, B, m, n, d, damping, is_orthonormal, H)
            if not factor_cholesky(H, L, d):
                return False
            if options[FOLLOWS_TARGET_VELOCITY] != 0.0 and m > 0:
                for r in range(m):
                    rate[r] = (past_error[r] - e[r]) / options[TIME_STEP]
                unbounded_minimum(A, L, rate, band, m, d, y_target)
                if band_round == 0 and not is_repeated:
                    target_motion[stage, n] = target_has_jumped(
                        column_table, options, B, y_target, n, d, target_motion, stage
                    )
                has_jumped = target_motion[stage, n] != 0.0
            for r in range(m):
                rate[r] = -gains[first + r] * (e[r] if has_jumped else past_error[r])
            unbounded_minimum(A, L, rate, band, m, d, y_goal)
            extra_damping = CURVATURE_BOUND * remaining_rate(A, rate, band, m, d, y_goal) / gain if m > 0 else 0.0
            if extra_damping > MIN_USEFUL_DAMPING:
                level_hessian(A, band, B, m, n, d, damping + extra_damping, is_orthonormal, H)
                if not factor_cholesky(H, L, d):
                    return False
                unbounded_minimum(A, L, rate, band, m, d, y_goal)
            share = feasible_speed_share(column_table, options, B, y_goal, n, d, gain) if m > 0 else 1.0
            for r in range(m):
                rate[r] = -row_rate(A0, r, base, n)
            unbounded_minimum(A, L, rate, band, m, d, y)
            for j in range(d):
                y[j] += share * y_goal[j]
                if not has_jumped:
                    y[j] += y_target[j]
            if not minimize_within_bounds(matrices, vectors, indices, L, y, C, low, high, n + k, d):
                if stage == 1:
                    return False
                for j in range(d):
                    y[j] = 0.0
            has_changed = False
            if band_count > 0:
                for r in range(m):
                    if band[r, 2] == 0.0:
                        next_rate = row_rate(A0, r, base, n)
                        for j in range(d):
                            next_rate += A[r, j] * y[j]
                        low_rate, high_rate = approach_rate * (band[r, 0] - e[r]), approach_rate * (band[r, 1] - e[r])
                        if next_rate < low_rate - 1e-12 or next_rate > high_rate + 1e-12:
                            band[r, 2] = 1.0
                            offset = band[r, 0] if next_rate < low_rate else band[r, 1]
                            e[r], past_error[r] = e[r] - offset, e[r] - offset
                            band[r, 0], band[r, 1] = band[r, 0] - offset, band[r, 1] - offset
                            has_changed = True
            if not has_changed:
                break
        for v in range(n):
            for j in range(d):
                base[v] += B[v, j] * y[j]
        if stage + 1 < stages and d > 0:
            for r in range(m):
                if band[r, 0] < band[r, 1] and k < len(
                    extra_bounds
                ):  # lower levels must not move it further out of its band
                    next_rate = row_rate(A0, r, base, n)
                    for v in range(n):
                        extra_rows[k, v] = A0[r, v]
                    extra_bounds[k, 0] = min(approach_rate * (band[r, 0] - e[r]), next_rate)
                    extra_bounds[k, 1] = max(approach_rate * (band[r, 1] - e[r]), next_rate)
                    band[r, 2] = 0.0
                    k += 1
            d = reduce_basis(matrices, vectors, A, B, band, m, n, d)
    return True


MAX_SEPARATION_ROUNDS = 12
"""Largest number of rounds that update which distances grow too slowly."""
SEPARATION_DAMPING = 1e-4
"""Damping as a share of the largest diagonal entry of the form, so that columns that separate nothing stand still. Of
30 UR5 that 1e-4 moved out of collision with spheres and boxes, 1e-2 fails for three."""
RATE_SLACK = 1e-8
"""m/s by which a rate may be below the achieved rate, for rounding."""


@subroutine
def separation_rates(A, offset, B, extra_rows, base, pair_rows, n, d):
    """Write the rates of the distances as A y + off, A (given, d)."""
    for i in range(pair_rows):
        offset[i] = 0.0
        for j in range(d):
            A[i, j] = 0.0
        for v in range(n):
            f = extra_rows[i, v]
            if f != 0.0:
                offset[i] += f * base[v]
                for j in range(d):
                    A[i, j] += f * B[v, j]


@subroutine
def lacking_hessian(A, extra_bounds, offset, is_lacking, S, pair_rows, d, H, y):
    """Write the quadratic form of the distances that grow too slowly into H, and its right-hand side into y.

    Args:
        is_lacking: (given,) 1 for the rows whose distance grows too slowly.
        S: form of the damping.
    """
    largest = 0.0
    for j in range(d):
        y[j] = 0.0
        for c in range(j + 1):
            H[j, c] = 0.0
    for i in range(pair_rows):
        if is_lacking[i] != 0:
            for j in range(d):
                y[j] += A[i, j] * (extra_bounds[i, WANTED_RATE] - offset[i])
                for c in range(j + 1):
                    H[j, c] += A[i, j] * A[i, c]
    for j in range(d):
        largest = max(largest, H[j, j])
    for j in range(d):
        for c in range(j + 1):
            H[j, c] += (SEPARATION_DAMPING * largest + 1e-12) * S[j, c]


@subroutine
def basis_gram(B, S, n, d, is_orthonormal):
    """Write S = B'B, the lower triangle."""
    for j in range(d):
        for c in range(j + 1):
            S[j, c] = 1.0 if j == c else 0.0
            if not is_orthonormal:
                S[j, c] = 0.0
                for v in range(n):
                    S[j, c] += B[v, j] * B[v, c]


@subroutine
def bounds_to_keep(column_table, C, low, high, B, extra_rows, extra_bounds, pair_rows, k, base, n, d, keeps_min_rates):
    """Write the bounds that must hold as rows over y: low <= C y <= high; return their number."""
    bounds = n
    for v in range(n):
        low[v], high[v] = column_table[RATE_MIN, v] - base[v], column_table[RATE_MAX, v] - base[v]
        for j in range(d):
            C[v, j] = B[v, j]
    for i in range(0 if keeps_min_rates else pair_rows, k):
        base_rate = 0.0
        for j in range(d):
            C[bounds, j] = 0.0
        for v in range(n):
            if extra_rows[i, v] != 0.0:
                base_rate += extra_rows[i, v] * base[v]
                for j in range(d):
                    C[bounds, j] += extra_rows[i, v] * B[v, j]
        low[bounds], high[bounds] = (
            extra_bounds[i, MIN_RATE if i < pair_rows else 0] - base_rate,
            extra_bounds[i, 1] - base_rate,
        )
        bounds += 1
    return bounds


@subroutine
def increase_distances(
    column_table,
    matrices,
    vectors,
    indices,
    B,
    d,
    is_orthonormal,
    extra_rows,
    extra_bounds,
    pair_rows,
    k,
    base,
    n,
    keeps_min_rates,
):
    """Find velocities that separate pairs as well as possible; bound the rates of `extra_bounds` by what they achieve.

    The velocities are written to VECTOR_SEPARATION.

    Args:
        extra_rows, extra_bounds: as in `tracking_step`.
        keeps_min_rates: whether the smallest allowed rates must hold too, so that no distance falls below the smallest.

    Returns:
        False if the bounds that must hold are infeasible.
    """
    A, H, L, C, S = (
        matrices[MATRIX_LEVEL],
        matrices[MATRIX_HESSIAN],
        matrices[MATRIX_FACTOR],
        matrices[MATRIX_BOUNDS],
        matrices[MATRIX_GRAM],
    )
    y, low, high, offset, is_lacking, separating = (
        vectors[VECTOR_Y],
        vectors[VECTOR_LOW],
        vectors[VECTOR_HIGH],
        vectors[VECTOR_GOAL],
        indices[INDEX_LACKING],
        vectors[VECTOR_SEPARATION],
    )
    separation_rates(A, offset, B, extra_rows, base, pair_rows, n, d)
    basis_gram(B, S, n, d, is_orthonormal)
    bounds = bounds_to_keep(
        column_table, C, low, high, B, extra_rows, extra_bounds, pair_rows, k, base, n, d, keeps_min_rates
    )
    for i in range(pair_rows):
        current = 0.0
        for v in range(n):
            current += extra_rows[i, v] * column_table[RATE, v]
        is_lacking[i] = 1 if current < extra_bounds[i, WANTED_RATE] else 0
    for _ in range(MAX_SEPARATION_ROUNDS):
        lacking_hessian(A, extra_bounds, offset, is_lacking, S, pair_rows, d, H, y)
        if not factor_cholesky(H, L, d):
            return False
        solve_cholesky(L, y, d)
        if not minimize_within_bounds(matrices, vectors, indices, L, y, C, low, high, bounds, d):
            return False
        has_changed = False
        for i in range(pair_rows):
            rate = offset[i]
            for j in range(d):
                rate += A[i, j] * y[j]
            extra_bounds[i, 0] = min(extra_bounds[i, WANTED_RATE], rate - RATE_SLACK)
            current = 1 if rate < extra_bounds[i, WANTED_RATE] - RATE_SLACK else 0
            if current != is_lacking[i]:
                is_lacking[i], has_changed = current, True
        if not has_changed:
            break
    for v in range(n):
        separating[v] = base[v]
        for j in range(d):
            separating[v] += B[v, j] * y[j]
    return True


@subroutine
def separate_close_pairs(
    column_table,
    options,
    matrices,
    vectors,
    indices,
    B,
    d,
    is_orthonormal,
    extra_rows,
    extra_bounds,
    pair_rows,
    k,
    base,
    n,
    is_repeated,
):
    """Set the lower bounds of the first `pair_rows` rates: the desired rates, or what is feasible.

    Args:
        is_repeated: whether the desired rates have proved infeasible.

    Returns:
        Whether the bounds are relaxed; then VECTOR_SEPARATION has velocities that satisfy them.
    """
    for i in range(pair_rows):
        extra_bounds[i, 0] = extra_bounds[i, WANTED_RATE]
    if options[IS_TOO_NEAR] == 0.0 and not is_repeated:
        return False
    if increase_distances(
        column_table,
        matrices,
        vectors,
        indices,
        B,
        d,
        is_orthonormal,
        extra_rows,
        extra_bounds,
        pair_rows,
        k,
        base,
        n,
        True,
    ):
        return True
    if options[IS_TOO_NEAR] != 0.0 and increase_distances(
        column_table,
        matrices,
        vectors,
        indices,
        B,
        d,
        is_orthonormal,
        extra_rows,
        extra_bounds,
        pair_rows,
        k,
        base,
        n,
        False,
    ):
        return True
    for i in range(pair_rows):
        extra_bounds[i, 0] = -math.inf if options[IS_TOO_NEAR] != 0.0 else extra_bounds[i, MIN_RATE]
    return False
