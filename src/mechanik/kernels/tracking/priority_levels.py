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
def stopping_velocity(room, a, dt):
    """Return the largest velocity that can stop within the distance `room`, the coming step included.

    Args:
        room: distance to the limit.
        a: largest deceleration; infinite if unlimited.
        dt: time step, s.
    """
    if room <= 0.0:
        return 0.0
    if not a < math.inf:
        return room / dt
    unit = a * dt * dt
    n = math.floor(0.5 * (math.sqrt(1.0 + 8.0 * room / unit) - 1.0))
    if n > 1e9:
        return math.sqrt(2.0 * a * room)
    return (room / dt + 0.5 * a * dt * n * (n + 1.0)) / (n + 1.0)


@subroutine
def bound_rates(ints, floats, column_table, options, x, n, all_bound):
    """Bound the next velocity of each column by its acceleration, its velocity and the distance to its limits.

    Args:
        column_table: RATE_MIN .. RATE_MAX_WITHOUT_ACCELERATION are written.
        x: start of the configuration in `floats`.
        n: number of columns.
        all_bound: whether all columns are coupled. Coupled columns cannot brake alone and must slow down by the same
            share, so their velocities stay below LIMIT_APPROACH_RATE times the remaining distance.
    """
    dt, nearing = options[TIME_STEP], options[LIMIT_APPROACH_RATE]
    for v in range(n):
        k, coupled = ints[ints[AT_COLUMN_X] + v], all_bound or column_table[IS_COUPLED, v] > 0.0
        share = COUPLED_LIMIT_SHARE if column_table[IS_COUPLED, v] > 0.0 else LIMIT_SHARE
        a, most = column_table[MAX_ACCELERATION, v] * share, column_table[MAX_VELOCITY, v] * share
        low, high = -most, most
        if k >= 0:
            here, unit = floats[x + k], 1.0 / floats[ints[AT_SCALE] + v]
            above, below = unit * (column_table[VALUE_MAX, v] - here), unit * (here - column_table[VALUE_MIN, v])
            if above < math.inf:
                high = min(high, stopping_velocity(above, a, dt))
                if coupled:
                    high = min(high, max(above, 0.0) * nearing * COUPLED_LIMIT_SHARE)
            if below < math.inf:
                low = max(low, -stopping_velocity(below, a, dt))
                if coupled:
                    low = max(low, -max(below, 0.0) * nearing * COUPLED_LIMIT_SHARE)
        column_table[RATE_MIN_WITHOUT_ACCELERATION, v], column_table[RATE_MAX_WITHOUT_ACCELERATION, v] = low, high
        now = column_table[RATE, v]
        if a < math.inf:
            # where the two contradict each other by rounding, the limit of the value has priority
            column_table[RATE_MIN, v], column_table[RATE_MAX, v] = (
                min(max(low, now - a * dt), high),
                max(min(high, now + a * dt), low),
            )
        else:
            column_table[RATE_MIN, v], column_table[RATE_MAX, v] = low, high


@subroutine
def limiting_bounds(column_table, options, n, active):
    """Write the active bound of each column's velocity into `active`, as the codes of `level_qp.py`."""
    nearly = 1.0 - 2e-6  # the bounds use slightly less than the limits, see COUPLED_LIMIT_SHARE
    for v in range(n):
        rate, most, a = (
            column_table[RATE, v],
            column_table[MAX_VELOCITY, v],
            column_table[MAX_ACCELERATION, v] * options[TIME_STEP],
        )
        slack = 1e-6 * min(most, a)
        slack = slack if slack < math.inf else 1e-9
        active[v] = NOT_LIMITED
        for side in (1, -1):
            edge = column_table[RATE_MAX, v] if side > 0 else column_table[RATE_MIN, v]
            if side * (rate - edge) < -slack:
                continue
            if a < math.inf and side * (rate - column_table[START_RATE, v]) >= nearly * a:
                active[v] = side * BY_ACCELERATION
            elif most < math.inf and side * rate >= nearly * most:
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
def gather_soft(ints, floats, stage, A, e, past, edge, before, n):
    """Gather the soft rows of a stage with their Jacobian; return their number, and how many have bands.

    Args:
        A: (m, n) written: the Jacobian.
        e, past: (m,) written: the residual now, and with the last targets.
        edge: (m, 3) written: the band of a row, and 1 if the row is active, 0 while it is inside its band.
        before: (rows,) residual with the last targets.
        n: number of columns.
    """
    blocks, columns, slack = ints[AT_BLOCKS], ints[AT_BLOCK_COLUMNS], ints[AT_SLACK]
    rows, jacobian = ints[AT_RESIDUAL] + ints[N_ROWS], ints[AT_JACOBIAN] + ints[N_JACOBIAN]
    m, banded = 0, 0
    at = ints[AT_STAGES] + STAGE_INTS * stage
    for b in range(ints[at + HARD_END], ints[at + SOFT_END]):
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
            e[m] = floats[rows + row + r]
            past[m] = e[m] if ints[block + BLOCK_KIND] == PYTHON_FUNCTION else before[row + r]
            edge[m, 0], edge[m, 1], edge[m, 2] = 0.0, 0.0, 1.0
            if ints[slack + 2 * (row + r)] >= 0:
                k, w = ints[columns + first + ints[slack + 2 * (row + r) + 1]], floats[ints[AT_WEIGHT] + row + r]
                edge[m, 0], edge[m, 1] = w * floats[ints[AT_LOWER] + k], w * floats[ints[AT_UPPER] + k]
                inside = edge[m, 0] <= e[m] <= edge[m, 1]
                edge[m, 2] = 0.0 if inside else 1.0
                off = 0.0 if inside else (edge[m, 0] if e[m] < edge[m, 0] else edge[m, 1])
                e[m], past[m] = e[m] - off, e[m] - off
                edge[m, 0], edge[m, 1] = edge[m, 0] - off, edge[m, 1] - off
                banded += 1
            m += 1
    return m, banded


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
            most = min(
                column_table[MAX_VELOCITY, v] * LIMIT_SHARE, stopping_velocity(rate / gain, a, options[TIME_STEP])
            )
            share = min(share, most / rate)
    return share


@subroutine
def target_has_jumped(column_table, options, B, y, n, d, ahead, stage):
    """Return 1 if the motion of the targets exceeds what the columns can do, else 0; store the motion in `ahead`."""
    leapt = 0.0
    for v in range(n):
        rate = 0.0
        for j in range(d):
            rate += B[v, j] * y[j]
        change = abs(rate - ahead[stage, v])
        if (
            abs(rate) > column_table[MAX_VELOCITY, v]
            or change > MAX_TARGET_ACCELERATION_RATIO * column_table[MAX_ACCELERATION, v] * options[TIME_STEP]
        ):
            leapt = 1.0
        ahead[stage, v] = rate
    return leapt


@subroutine
def row_rate(A, r, rates, n):
    total = 0.0
    for v in range(n):
        total += A[r, v] * rates[v]
    return total


@subroutine
def bounds_over_basis(C, low, high, B, more, edges, base, column_table, n, d, k):
    """Write the bounds of all columns and of the k further rows as rows over y: low <= C y <= high."""
    for v in range(n):
        low[v], high[v] = column_table[RATE_MIN, v] - base[v], column_table[RATE_MAX, v] - base[v]
        for j in range(d):
            C[v, j] = B[v, j]
    for i in range(k):
        at = row_rate(more, i, base, n)
        low[n + i], high[n + i] = edges[i, 0] - at, edges[i, 1] - at
        for j in range(d):
            total = 0.0
            for v in range(n):
                total += more[i, v] * B[v, j]
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
    before,
    ahead,
    again,
    B,
    d,
    is_orthonormal,
    more,
    edges,
    k,
    base,
    n,
):
    """Write the velocities that solve all levels into `base`; return False if the bounds are infeasible.

    Args:
        matrices, vectors, indices: work arrays.
        gains: (rows,) 1/s.
        before: (rows,) residual with the last targets.
        ahead: (stages, n + 1) the last motion of the targets, and whether it was a jump; written.
        again: whether this step was solved before; then the jump of a target is not detected anew.
        B: (n, n), whose first d columns span the free velocities; overwritten.
        is_orthonormal: whether the columns of B are orthonormal.
        more, edges: (.., n) and (.., 4) k further rows and the bounds of their rates, with space for the rows with
            bands.
        base: (n,) velocities that are present in addition to those of B.
    """
    A0, A, H, L, C, edge = (
        matrices[MATRIX_ALL],
        matrices[MATRIX_LEVEL],
        matrices[MATRIX_HESSIAN],
        matrices[MATRIX_FACTOR],
        matrices[MATRIX_BOUNDS],
        matrices[MATRIX_BANDS],
    )
    e, past, rate, low, high = (
        vectors[VECTOR_ERROR],
        vectors[VECTOR_PAST_ERROR],
        vectors[VECTOR_RATE],
        vectors[VECTOR_LOW],
        vectors[VECTOR_HIGH],
    )
    y, y_goal, y_ahead = vectors[VECTOR_Y], vectors[VECTOR_GOAL], vectors[VECTOR_TARGET_RATE]
    stages = ints[N_STAGES]
    nearing = min(1.0 / options[TIME_STEP], options[LIMIT_APPROACH_RATE])
    for stage in range(1, max(stages, 2)):
        m, banded = 0, 0
        if stage < stages:
            m, banded = gather_soft(ints, floats, stage, A0, e, past, edge, before, n)
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
        bounds_over_basis(C, low, high, B, more, edges, base, column_table, n, d, k)
        leapt = True
        for change in range(MAX_BAND_CHANGES if banded > 0 else 1):
            level_hessian(A, edge, B, m, n, d, damping, is_orthonormal, H)
            if not factor_cholesky(H, L, d):
                return False
            if options[FOLLOWS_TARGET_VELOCITY] != 0.0 and m > 0:
                for r in range(m):
                    rate[r] = (past[r] - e[r]) / options[TIME_STEP]
                unbounded_minimum(A, L, rate, edge, m, d, y_ahead)
                if change == 0 and not again:
                    ahead[stage, n] = target_has_jumped(column_table, options, B, y_ahead, n, d, ahead, stage)
                leapt = ahead[stage, n] != 0.0
            for r in range(m):
                rate[r] = -gains[first + r] * (e[r] if leapt else past[r])
            unbounded_minimum(A, L, rate, edge, m, d, y_goal)
            left = CURVATURE_BOUND * remaining_rate(A, rate, edge, m, d, y_goal) / gain if m > 0 else 0.0
            if left > MIN_USEFUL_DAMPING:
                level_hessian(A, edge, B, m, n, d, damping + left, is_orthonormal, H)
                if not factor_cholesky(H, L, d):
                    return False
                unbounded_minimum(A, L, rate, edge, m, d, y_goal)
            share = feasible_speed_share(column_table, options, B, y_goal, n, d, gain) if m > 0 else 1.0
            for r in range(m):
                rate[r] = -row_rate(A0, r, base, n)
            unbounded_minimum(A, L, rate, edge, m, d, y)
            for j in range(d):
                y[j] += share * y_goal[j]
                if not leapt:
                    y[j] += y_ahead[j]
            if not minimize_within_bounds(matrices, vectors, indices, L, y, C, low, high, n + k, d):
                if stage == 1:
                    return False
                for j in range(d):
                    y[j] = 0.0
            changed = False
            if banded > 0:
                for r in range(m):
                    if edge[r, 2] == 0.0:
                        will = row_rate(A0, r, base, n)
                        for j in range(d):
                            will += A[r, j] * y[j]
                        low_rate, high_rate = nearing * (edge[r, 0] - e[r]), nearing * (edge[r, 1] - e[r])
                        if will < low_rate - 1e-12 or will > high_rate + 1e-12:
                            edge[r, 2] = 1.0
                            off = edge[r, 0] if will < low_rate else edge[r, 1]
                            e[r], past[r] = e[r] - off, e[r] - off
                            edge[r, 0], edge[r, 1] = edge[r, 0] - off, edge[r, 1] - off
                            changed = True
            if not changed:
                break
        for v in range(n):
            for j in range(d):
                base[v] += B[v, j] * y[j]
        if stage + 1 < stages and d > 0:
            for r in range(m):
                if edge[r, 0] < edge[r, 1] and k < len(edges):  # lower levels must not move it further out of its band
                    will = row_rate(A0, r, base, n)
                    for v in range(n):
                        more[k, v] = A0[r, v]
                    edges[k, 0] = min(nearing * (edge[r, 0] - e[r]), will)
                    edges[k, 1] = max(nearing * (edge[r, 1] - e[r]), will)
                    edge[r, 2] = 0.0
                    k += 1
            d = reduce_basis(matrices, vectors, A, B, edge, m, n, d)
    return True


MAX_SEPARATION_ROUNDS = 12
"""Largest number of rounds that update which distances grow too slowly."""
SEPARATION_DAMPING = 1e-4
"""Damping as a share of the largest diagonal entry of the form, so that columns that separate nothing stand still. Of
30 UR5 that 1e-4 moved out of collision with spheres and boxes, 1e-2 fails for three."""
RATE_SLACK = 1e-8
"""m/s by which a rate may be below the achieved rate, for rounding."""


@subroutine
def separation_rates(A, off, B, more, base, given, n, d):
    """Write the rates of the distances as A y + off, A (given, d)."""
    for i in range(given):
        off[i] = 0.0
        for j in range(d):
            A[i, j] = 0.0
        for v in range(n):
            f = more[i, v]
            if f != 0.0:
                off[i] += f * base[v]
                for j in range(d):
                    A[i, j] += f * B[v, j]


@subroutine
def lacking_hessian(A, edges, off, lacks, S, given, d, H, y):
    """Write the quadratic form of the distances that grow too slowly into H, and its right-hand side into y.

    Args:
        lacks: (given,) 1 for the rows whose distance grows too slowly.
        S: form of the damping.
    """
    most = 0.0
    for j in range(d):
        y[j] = 0.0
        for c in range(j + 1):
            H[j, c] = 0.0
    for i in range(given):
        if lacks[i] != 0:
            for j in range(d):
                y[j] += A[i, j] * (edges[i, WANTED_RATE] - off[i])
                for c in range(j + 1):
                    H[j, c] += A[i, j] * A[i, c]
    for j in range(d):
        most = max(most, H[j, j])
    for j in range(d):
        for c in range(j + 1):
            H[j, c] += (SEPARATION_DAMPING * most + 1e-12) * S[j, c]


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
def bounds_to_keep(column_table, C, low, high, B, more, edges, given, k, base, n, d, holds):
    """Write the bounds that must hold as rows over y: low <= C y <= high; return their number."""
    bounds = n
    for v in range(n):
        low[v], high[v] = column_table[RATE_MIN, v] - base[v], column_table[RATE_MAX, v] - base[v]
        for j in range(d):
            C[v, j] = B[v, j]
    for i in range(0 if holds else given, k):
        at = 0.0
        for j in range(d):
            C[bounds, j] = 0.0
        for v in range(n):
            if more[i, v] != 0.0:
                at += more[i, v] * base[v]
                for j in range(d):
                    C[bounds, j] += more[i, v] * B[v, j]
        low[bounds], high[bounds] = edges[i, MIN_RATE if i < given else 0] - at, edges[i, 1] - at
        bounds += 1
    return bounds


@subroutine
def increase_distances(
    column_table, matrices, vectors, indices, B, d, is_orthonormal, more, edges, given, k, base, n, holds
):
    """Find velocities that separate pairs as well as possible, and bound the rates of `edges` by what they achieve.

    The velocities are written to VECTOR_SEPARATION.

    Args:
        more, edges: as in `tracking_step`.
        holds: whether the smallest allowed rates must hold too, so that no distance falls below the smallest.

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
    y, low, high, off, lacks, opened = (
        vectors[VECTOR_Y],
        vectors[VECTOR_LOW],
        vectors[VECTOR_HIGH],
        vectors[VECTOR_GOAL],
        indices[INDEX_LACKING],
        vectors[VECTOR_SEPARATION],
    )
    separation_rates(A, off, B, more, base, given, n, d)
    basis_gram(B, S, n, d, is_orthonormal)
    bounds = bounds_to_keep(column_table, C, low, high, B, more, edges, given, k, base, n, d, holds)
    for i in range(given):
        now = 0.0
        for v in range(n):
            now += more[i, v] * column_table[RATE, v]
        lacks[i] = 1 if now < edges[i, WANTED_RATE] else 0
    for _ in range(MAX_SEPARATION_ROUNDS):
        lacking_hessian(A, edges, off, lacks, S, given, d, H, y)
        if not factor_cholesky(H, L, d):
            return False
        solve_cholesky(L, y, d)
        if not minimize_within_bounds(matrices, vectors, indices, L, y, C, low, high, bounds, d):
            return False
        changed = False
        for i in range(given):
            rate = off[i]
            for j in range(d):
                rate += A[i, j] * y[j]
            edges[i, 0] = min(edges[i, WANTED_RATE], rate - RATE_SLACK)
            now = 1 if rate < edges[i, WANTED_RATE] - RATE_SLACK else 0
            if now != lacks[i]:
                lacks[i], changed = now, True
        if not changed:
            break
    for v in range(n):
        opened[v] = base[v]
        for j in range(d):
            opened[v] += B[v, j] * y[j]
    return True


@subroutine
def separate_close_pairs(
    column_table, options, matrices, vectors, indices, B, d, is_orthonormal, more, edges, given, k, base, n, again
):
    """Set the lower bounds of the first `given` rates: the desired rates, or what is feasible.

    Args:
        again: whether the desired rates have proved infeasible.

    Returns:
        Whether the bounds are relaxed; then VECTOR_SEPARATION has velocities that satisfy them.
    """
    for i in range(given):
        edges[i, 0] = edges[i, WANTED_RATE]
    if options[IS_TOO_NEAR] == 0.0 and not again:
        return False
    if increase_distances(
        column_table, matrices, vectors, indices, B, d, is_orthonormal, more, edges, given, k, base, n, True
    ):
        return True
    if options[IS_TOO_NEAR] != 0.0 and increase_distances(
        column_table, matrices, vectors, indices, B, d, is_orthonormal, more, edges, given, k, base, n, False
    ):
        return True
    for i in range(given):
        edges[i, 0] = -math.inf if options[IS_TOO_NEAR] != 0.0 else edges[i, MIN_RATE]
    return False
