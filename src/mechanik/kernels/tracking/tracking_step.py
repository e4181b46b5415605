"""One time step of the tracker: residuals, bounds, velocities, and the next configuration with all loops closed.

Gaussian elimination with complete pivoting splits the columns into independent and dependent ones, to first order;
the dependent columns also close the loops after a step. Columns without velocity and acceleration limits become
dependent first. So limited columns keep their limits exactly, as long as they are no more than the dofs of the
mechanism.
"""

from __future__ import annotations

import math

from ..bounded_step import apply_step
from ..compiler import kernel, subroutine
from ..problem_layout import *
from ..residuals import evaluate_residuals
from .level_qp import *
from .level_qp import factor_cholesky, minimize_within_bounds, solve_cholesky
from .priority_levels import bound_rates, bounds_over_basis, limiting_bounds, separate_close_pairs, solve_levels

MIN_PIVOT = 1e-7
"""Rows with smaller pivots are linearly dependent. Rows and columns are scaled to the order of one."""
MIN_UNLIMITED_PIVOT = 0.03
"""A column without limits becomes dependent first only if its pivot is larger than this."""


@subroutine
def gather_hard(ints, floats, M, n):
    """Gather the Jacobian of the hard equality rows into M (m, n), and return m."""
    blocks, columns, slack = ints[AT_BLOCKS], ints[AT_BLOCK_COLUMNS], ints[AT_SLACK]
    jacobian, m = ints[AT_JACOBIAN] + ints[N_JACOBIAN], 0
    for b in range(ints[ints[AT_STAGES] + SOFT_END]):
        block = blocks + BLOCK_INTS * b
        row, width, first, j = (
            ints[block + FIRST_ROW],
            ints[block + COLUMN_COUNT],
            ints[block + FIRST_COLUMN],
            ints[block + FIRST_JACOBIAN],
        )
        for r in range(ints[block + ROW_COUNT]):
            if ints[slack + 2 * (row + r)] >= 0:
                continue
            for v in range(n):
                M[m, v] = 0.0
            for u in range(width):
                v = ints[columns + first + u]
                if v < n:
                    M[m, v] = floats[jacobian + j + r * width + u]
            m += 1
    return m


@subroutine
def read_hard(ints, floats, buffer, e):
    """Read the residual of the same rows into e, and return its largest magnitude."""
    rows, slack, m, largest = ints[AT_RESIDUAL] + ints[N_ROWS] * buffer, ints[AT_SLACK], 0, 0.0
    blocks = ints[AT_BLOCKS]
    for b in range(ints[ints[AT_STAGES] + SOFT_END]):
        block = blocks + BLOCK_INTS * b
        for r in range(ints[block + FIRST_ROW], ints[block + FIRST_ROW] + ints[block + ROW_COUNT]):
            if ints[slack + 2 * r] < 0:
                e[m] = floats[rows + r]
                largest = max(largest, abs(e[m]))
                m += 1
    return largest


@subroutine
def best_pivot_of_row(M, r, n, taken, is_limited, sizes, places):
    """Find the largest entry of row r among the columns that may become dependent."""
    sizes[r], places[r] = 0.0, -1
    for v in range(n):
        if abs(M[r, v]) > sizes[r] and taken[v] < 0 and is_limited[v] == 0:
            sizes[r], places[r] = abs(M[r, v]), v


@subroutine
def eliminate_hard(vectors, indices, M, K, m, n, column_table, row_of, column_of, taken):
    """Reduce M to upper triangular form in the order of its pivots, and return their number.

    Args:
        vectors, indices: work arrays.
        K: (m, m) written: the multiples of the pivot rows that were subtracted from each row.
        row_of, column_of: written: row and column of each pivot, in order.
        taken: (n,) written: the index of the pivot in each column; -1 for independent columns.
    """
    count, limited, sizes, places = 0, indices[INDEX_LIMITED], vectors[VECTOR_SIZES], indices[INDEX_PLACES]
    for v in range(n):
        taken[v] = -1
        limited[v] = 1 if min(column_table[MAX_VELOCITY, v], column_table[MAX_ACCELERATION, v]) < math.inf else 0
    for r in range(m):
        row_of[r] = -1
        for s in range(m):
            K[r, s] = 0.0
    for allow in range(2):
        smallest = MIN_UNLIMITED_PIVOT if allow == 0 else MIN_PIVOT
        if allow == 1:
            for v in range(n):
                limited[v] = 0
        for r in range(m):
            sizes[r] = -1.0
        for s in range(count):
            places[row_of[s]] = -2  # marks pivot rows
        for r in range(m):
            if places[r] != -2 or allow == 0:
                best_pivot_of_row(M, r, n, taken, limited, sizes, places)
        while count < m:
            best, p = smallest, -1
            for r in range(m):
                if sizes[r] > best:
                    best, p = sizes[r], r
            if p < 0:
                break
            c = places[p]
            row_of[count], column_of[count], taken[c] = p, c, count
            sizes[p], places[p] = -1.0, -2
            inverse = 1.0 / M[p, c]
            for r in range(m):
                f = M[r, c] * inverse
                if places[r] == -2 or f == 0.0:
                    continue
                for v in range(n):
                    M[r, v] -= f * M[p, v]
                M[r, c] = 0.0
                K[r, count] = f
                best_pivot_of_row(M, r, n, taken, limited, sizes, places)
            count += 1
    return count


@subroutine
def free_basis(M, n, count, row_of, column_of, taken, B):
    """Write how all columns move with the independent ones into B (n, d), and return d."""
    d = 0
    for v in range(n):
        if taken[v] < 0:
            for k in range(n - count):
                B[v, k] = 0.0
            B[v, d] = 1.0
            d += 1
    for s in range(count - 1, -1, -1):
        p, c = row_of[s], column_of[s]
        inverse = -1.0 / M[p, c]
        for k in range(d):
            B[c, k] = 0.0
        for v in range(n):
            f = M[p, v] * inverse
            if v != c and f != 0.0 and (taken[v] < 0 or taken[v] > s):
                for k in range(d):
                    B[c, k] += f * B[v, k]
    return d


@subroutine
def add_closure_step(M, K, n, count, row_of, column_of, e, step):
    """Add the motion of the dependent columns that makes the residual e zero to `step`; e is overwritten."""
    for s in range(count):
        for t in range(s + 1, count):
            f = K[row_of[t], s]
            if f != 0.0:
                e[row_of[t]] -= f * e[row_of[s]]
    for s in range(count - 1, -1, -1):
        p = row_of[s]
        total = -e[p]
        for t in range(s + 1, count):
            total -= M[p, column_of[t]] * e[row_of[t]]
        e[p] = total / M[p, column_of[s]]
    for s in range(count):
        step[column_of[s]] += e[row_of[s]]


MAX_CLOSURE_STEPS = 8
"""Largest number of Newton steps that close the loops; two or three suffice at 1 kHz."""
MAX_STEP_PASSES = 3
"""Largest number of solves for the velocities; each uses the loop curvature that the last has found."""
COUPLED_OVERSHOOT = 1e-7
"""Share by which a dependent column's velocity may exceed its bound; COUPLED_LIMIT_SHARE keeps it below the limit."""


@subroutine
def bound_bands(ints, floats, options, more, edges, k, n):
    """Write hard rows with bands, such as cones and limits of loop-closing joints, as bounds of their rates.

    Returns:
        k, increased by the number of these rows.
    """
    blocks, columns, slack = ints[AT_BLOCKS], ints[AT_BLOCK_COLUMNS], ints[AT_SLACK]
    rows, jacobian = ints[AT_RESIDUAL] + ints[N_ROWS], ints[AT_JACOBIAN] + ints[N_JACOBIAN]
    nearing = min(1.0 / options[TIME_STEP], options[LIMIT_APPROACH_RATE])
    for b in range(ints[ints[AT_STAGES] + SOFT_END]):
        block = blocks + BLOCK_INTS * b
        row, width, first, j = (
            ints[block + FIRST_ROW],
            ints[block + COLUMN_COUNT],
            ints[block + FIRST_COLUMN],
            ints[block + FIRST_JACOBIAN],
        )
        for r in range(ints[block + ROW_COUNT]):
            if ints[slack + 2 * (row + r)] < 0:
                continue
            for v in range(n):
                more[k, v] = 0.0
            for u in range(width):
                v = ints[columns + first + u]
                if v < n:
                    more[k, v] = floats[jacobian + j + r * width + u]
            band, w = ints[columns + first + ints[slack + 2 * (row + r) + 1]], floats[ints[AT_WEIGHT] + row + r]
            edges[k, 0] = nearing * (w * floats[ints[AT_LOWER] + band] - floats[rows + row + r])
            edges[k, 1] = nearing * (w * floats[ints[AT_UPPER] + band] - floats[rows + row + r])
            k += 1
    return k


@subroutine
def braking_velocities(column_table, options, matrices, vectors, indices, B, d, more, edges, k, base, n):
    """Find the velocities nearest to the last ones within position and velocity limits, without acceleration limits."""
    H, L, C, y, low, high = (
        matrices[MATRIX_HESSIAN],
        matrices[MATRIX_FACTOR],
        matrices[MATRIX_BOUNDS],
        vectors[VECTOR_Y],
        vectors[VECTOR_LOW],
        vectors[VECTOR_HIGH],
    )
    for v in range(n):
        column_table[RATE_MIN, v], column_table[RATE_MAX, v], base[v] = (
            column_table[RATE_MIN_WITHOUT_ACCELERATION, v],
            column_table[RATE_MAX_WITHOUT_ACCELERATION, v],
            0.0,
        )
    for i in range(k):
        edges[i, 0], edges[i, 1] = min(edges[i, 0], 0.0), max(edges[i, 1], 0.0)
    bounds_over_basis(C, low, high, B, more, edges, base, column_table, n, d, k)
    slower = (
        max(0.0, 1.0 - options[TIME_STEP] * options[LIMIT_APPROACH_RATE])
        if options[LIMIT_APPROACH_RATE] < math.inf
        else 1.0
    )
    for i in range(d):
        y[i] = 0.0
        for j in range(i + 1):
            H[i, j] = 0.0
    for v in range(n):
        a = column_table[MAX_ACCELERATION, v] * options[TIME_STEP]
        weight = 1.0 / (a * a) if a < math.inf else 1e-6
        for i in range(d):
            y[i] += B[v, i] * weight * slower * column_table[RATE, v]
            for j in range(i + 1):
                H[i, j] += B[v, i] * weight * B[v, j]
    if not factor_cholesky(H, L, d):
        return False
    solve_cholesky(L, y, d)
    if not minimize_within_bounds(matrices, vectors, indices, L, y, C, low, high, n + k, d):
        return False
    for v in range(n):
        for j in range(d):
            base[v] += B[v, j] * y[j]
    return True


@subroutine
def is_within_bounds(column_table, options, rates, taken, n):
    """Return whether all velocities are within their bounds, except for rounding."""
    for v in range(n):
        rounding = 1e-12 * (1.0 + abs(rates[v]))
        over, under = rates[v] - column_table[RATE_MAX, v] - rounding, column_table[RATE_MIN, v] - rates[v] - rounding
        if taken[v] >= 0:
            room = min(column_table[MAX_ACCELERATION, v] * options[TIME_STEP], column_table[MAX_VELOCITY, v])
            over, under = (
                over - COUPLED_OVERSHOOT * min(room, abs(column_table[RATE_MAX, v])),
                under - COUPLED_OVERSHOOT * min(room, abs(column_table[RATE_MIN, v])),
            )
        if not max(over, under) <= 0.0:
            return False
    return True


@subroutine
def is_within_acceleration(column_table, options, n):
    """Return whether the braking velocities are within the acceleration limits after all."""
    most = 0.0
    for v in range(n):
        most = max(most, abs(column_table[RATE, v] - column_table[START_RATE, v]) / column_table[MAX_ACCELERATION, v])
    return most <= options[TIME_STEP]


@subroutine
def finish_step(ints, floats, column_table, options, x, out, rates, bent, n, done):
    """Store the velocities and set x to the result of the step; after STEP_STOPPED, x stays and velocities are 0."""
    for v in range(n):
        if done == STEP_STOPPED:
            rates[v], bent[v] = 0.0, 0.0
        column_table[RATE, v], column_table[CURVATURE_RATE, v] = rates[v], bent[v]
    if done != STEP_STOPPED:
        for i in range(ints[N_X]):
            floats[x + i] = floats[out + i]
    for v in range(n):
        at = ints[ints[AT_COLUMN_X] + v]
        if at >= 0:  # limits are exceeded by rounding only, so loops stay closed
            floats[x + at] = min(max(floats[x + at], column_table[VALUE_MIN, v]), column_table[VALUE_MAX, v])


@subroutine
def apply_velocities(ints, floats, options, x, out, rates, n):
    """Write x, moved by the velocities for one time step, to `out`."""
    step = ints[AT_STEP]
    for v in range(ints[N_COLUMNS]):
        floats[step + v] = rates[v] * options[TIME_STEP] if v < n else 0.0
    apply_step(ints, floats, x, out, False)


@subroutine
def close_loops(ints, floats, options, matrices, vectors, indices, m, count, x, out, rates, n):
    """Move the dependent columns until the loops are closed after a step; return the largest residual."""
    change, e, off = vectors[VECTOR_CHANGE], vectors[VECTOR_RESIDUAL], math.inf
    for _ in range(MAX_CLOSURE_STEPS):
        apply_velocities(ints, floats, options, x, out, rates, n)
        if m == 0:
            return 0.0
        evaluate_residuals(ints, floats, out, ints[RUNTIME_ZERO], ints[ints[AT_STAGES] + SOFT_END])
        last, off = off, read_hard(ints, floats, ints[RUNTIME_ZERO], e)
        if off < options[HARD_RESIDUAL_TOLERANCE] or not off < 0.5 * last:
            break
        for v in range(n):
            change[v] = 0.0
        add_closure_step(
            matrices[MATRIX_HARD],
            matrices[MATRIX_ROW_OPERATIONS],
            n,
            count,
            indices[INDEX_ROW],
            indices[INDEX_COLUMN],
            e,
            change,
        )
        for v in range(n):
            rates[v] += change[v] / options[TIME_STEP]
    return off


@kernel(
    "i8(i8[::1], f8[::1], f8[:,::1], f8[::1], f8[:,:,::1], f8[:,::1], i8[:,::1], f8[::1], f8[::1], f8[:,::1],"
    "f8[:,::1], f8[:,::1], i8, i8[::1], b1)"
)
def tracking_step(
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
    more,
    edges,
    given,
    active,
    looks,
):
    """Move x, the table `trial`, by one time step; return STEP_MOVED, STEP_BRAKED or STEP_STOPPED.

    Args:
        ints, floats: the problem, laid out as `problem_layout.py` says.
        column_table, options: see `level_qp.py`.
        matrices, vectors, indices: work arrays.
        gains: (rows,) 1/s.
        before: (rows,) residual with the last targets; written.
        ahead: (stages, columns + 1) the last motion of the targets, and whether it was a jump; written.
        more, edges: (.., columns) and (.., 4) `given` further rows and the bounds of their rates, with space for the
            rows with bands. The lower bounds of the given rows are computed here, from their desired rates.
        given: number of given rows; if negative, nothing moves and only the residual is evaluated.
        active: (columns,) written: the active bound of each column.
        looks: whether the residual must be evaluated first, since the targets are new.
    """
    n, x, out, done = column_table.shape[1], ints[AT_TRIAL], ints[AT_X], STEP_STOPPED
    if looks and given >= 0:
        evaluate_residuals(ints, floats, x, 1, ints[N_BLOCKS])
    if given >= 0:
        k = bound_bands(ints, floats, options, more, edges, given, n)
        bound_rates(ints, floats, column_table, options, x, n, k > 0)
        row_of, column_of, taken = indices[INDEX_ROW], indices[INDEX_COLUMN], indices[INDEX_TAKEN]
        M, B, free = matrices[MATRIX_HARD], matrices[MATRIX_BASIS], matrices[MATRIX_FREE_BASIS]
        m = gather_hard(ints, floats, M, n)
        count = eliminate_hard(
            vectors, indices, M, matrices[MATRIX_ROW_OPERATIONS], m, n, column_table, row_of, column_of, taken
        )
        d = free_basis(M, n, count, row_of, column_of, taken, free)
        rates, straight, bent = vectors[VECTOR_RATES], vectors[VECTOR_STRAIGHT], vectors[VECTOR_CURVED]
        for v in range(n):
            column_table[START_RATE, v] = column_table[RATE, v]
            bent[v] = column_table[CURVATURE_RATE, v] if taken[v] >= 0 else 0.0
        for attempt in range(2 * MAX_STEP_PASSES):
            braking, found = attempt >= MAX_STEP_PASSES, False
            for v in range(n):
                rates[v] = 0.0 if braking else bent[v]
                for j in range(d):
                    B[v, j] = free[v, j]
            if braking:
                found = braking_velocities(
                    column_table, options, matrices, vectors, indices, B, d, more, edges, k, rates, n
                )
            else:
                for again in range(2 if given > 0 else 1):
                    opened = separate_close_pairs(
                        column_table,
                        options,
                        matrices,
                        vectors,
                        indices,
                        B,
                        d,
                        count == 0,
                        more,
                        edges,
                        given,
                        k,
                        rates,
                        n,
                        again == 1,
                    )
                    if again == 1 and not opened:
                        break
                    found = solve_levels(
                        ints, floats, column_table, options, matrices, vectors, indices, gains, before, ahead,
                        attempt + again > 0, B, d, count == 0, more, edges, k, rates, n
                    )  # fmt: skip
                    if found or opened:
                        break
                    for v in range(n):
                        rates[v] = bent[v]
                        for j in range(d):
                            B[v, j] = free[v, j]
                if not found and opened:  # only rounding makes these bounds infeasible
                    found = True
                    for v in range(n):
                        rates[v] = vectors[VECTOR_SEPARATION, v]
            if not found:
                continue
            for v in range(n):
                straight[v] = rates[v] - (0.0 if braking else bent[v])
                if count == 0:
                    rates[v] = min(max(rates[v], column_table[RATE_MIN, v]), column_table[RATE_MAX, v])
            off = close_loops(ints, floats, options, matrices, vectors, indices, m, count, x, out, rates, n)
            for v in range(n):
                bent[v] = rates[v] - straight[v] if taken[v] >= 0 else 0.0
            if off < max(1e3 * options[HARD_RESIDUAL_TOLERANCE], 1e-9) and is_within_bounds(
                column_table, options, rates, taken, n
            ):
                done = STEP_BRAKED if braking else STEP_MOVED
                break
        finish_step(ints, floats, column_table, options, x, out, rates, bent, n, done)
        limiting_bounds(column_table, options, n, active)
        if done == STEP_BRAKED and is_within_acceleration(column_table, options, n):
            done = STEP_MOVED
    evaluate_residuals(ints, floats, x, 1, ints[N_BLOCKS])
    for r in range(ints[N_ROWS]):
        before[r] = floats[ints[AT_RESIDUAL] + ints[N_ROWS] + r]
    return done
