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
    residual, slack, m, largest = ints[AT_RESIDUAL] + ints[N_ROWS] * buffer, ints[AT_SLACK], 0, 0.0
    blocks = ints[AT_BLOCKS]
    for b in range(ints[ints[AT_STAGES] + SOFT_END]):
        block = blocks + BLOCK_INTS * b
        for r in range(ints[block + FIRST_ROW], ints[block + FIRST_ROW] + ints[block + ROW_COUNT]):
            if ints[slack + 2 * r] < 0:
                e[m] = floats[residual + r]
                largest = max(largest, abs(e[m]))
                m += 1
    return largest


@subroutine
def best_pivot_of_row(M, r, n, pivot_index, is_limited, pivot_sizes, pivot_columns):
    """Find the largest entry of row r among the columns that may become dependent."""
    pivot_sizes[r], pivot_columns[r] = 0.0, -1
    for v in range(n):
        if abs(M[r, v]) > pivot_sizes[r] and pivot_index[v] < 0 and is_limited[v] == 0:
            pivot_sizes[r], pivot_columns[r] = abs(M[r, v]), v


@subroutine
def eliminate_hard(vectors, indices, M, K, m, n, column_table, row_of, column_of, pivot_index):
    """Reduce M to upper triangular form in the order of its pivots, and return their number.

    Args:
        vectors, indices: work arrays.
        K: (m, m) written: the multiples of the pivot rows that were subtracted from each row.
        row_of, column_of: written: row and column of each pivot, in order.
        pivot_index: (n,) written: the index of the pivot in each column; -1 for independent columns.
    """
    count, is_limited, pivot_sizes, pivot_columns = (
        0,
        indices[INDEX_LIMITED],
        vectors[VECTOR_PIVOT_SIZE],
        indices[INDEX_PIVOT_COLUMN],
    )
    for v in range(n):
        pivot_index[v] = -1
        is_limited[v] = 1 if min(column_table[MAX_VELOCITY, v], column_table[MAX_ACCELERATION, v]) < math.inf else 0
    for r in range(m):
        row_of[r] = -1
        for s in range(m):
            K[r, s] = 0.0
    for pass_index in range(2):
        min_pivot = MIN_UNLIMITED_PIVOT if pass_index == 0 else MIN_PIVOT
        if pass_index == 1:
            for v in range(n):
                is_limited[v] = 0
        for r in range(m):
            pivot_sizes[r] = -1.0
        for s in range(count):
            pivot_columns[row_of[s]] = -2  # marks pivot rows
        for r in range(m):
            if pivot_columns[r] != -2 or pass_index == 0:
                best_pivot_of_row(M, r, n, pivot_index, is_limited, pivot_sizes, pivot_columns)
        while count < m:
            best, p = min_pivot, -1
            for r in range(m):
                if pivot_sizes[r] > best:
                    best, p = pivot_sizes[r], r
            if p < 0:
                break
            c = pivot_columns[p]
            row_of[count], column_of[count], pivot_index[c] = p, c, count
            pivot_sizes[p], pivot_columns[p] = -1.0, -2
            inverse = 1.0 / M[p, c]
            for r in range(m):
                f = M[r, c] * inverse
                if pivot_columns[r] == -2 or f == 0.0:
                    continue
                for v in range(n):
                    M[r, v] -= f * M[p, v]
                M[r, c] = 0.0
                K[r, count] = f
                best_pivot_of_row(M, r, n, pivot_index, is_limited, pivot_sizes, pivot_columns)
            count += 1
    return count


@subroutine
def free_basis(M, n, count, row_of, column_of, pivot_index, B):
    """Write how all columns move with the independent ones into B (n, d), and return d."""
    d = 0
    for v in range(n):
        if pivot_index[v] < 0:
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
            if v != c and f != 0.0 and (pivot_index[v] < 0 or pivot_index[v] > s):
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
def bound_bands(ints, floats, options, extra_rows, extra_bounds, k, n):
    """Write hard rows with bands, such as cones and limits of loop-closing joints, as bounds of their rates.

    Returns:
        k, increased by the number of these rows.
    """
    blocks, columns, slack = ints[AT_BLOCKS], ints[AT_BLOCK_COLUMNS], ints[AT_SLACK]
    residual, jacobian = ints[AT_RESIDUAL] + ints[N_ROWS], ints[AT_JACOBIAN] + ints[N_JACOBIAN]
    approach_rate = min(1.0 / options[TIME_STEP], options[LIMIT_APPROACH_RATE])
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
                extra_rows[k, v] = 0.0
            for u in range(width):
                v = ints[columns + first + u]
                if v < n:
                    extra_rows[k, v] = floats[jacobian + j + r * width + u]
            slack_column, w = ints[columns + first + ints[slack + 2 * (row + r) + 1]], floats[ints[AT_WEIGHT] + row + r]
            extra_bounds[k, 0] = approach_rate * (
                w * floats[ints[AT_LOWER] + slack_column] - floats[residual + row + r]
            )
            extra_bounds[k, 1] = approach_rate * (
                w * floats[ints[AT_UPPER] + slack_column] - floats[residual + row + r]
            )
            k += 1
    return k


@subroutine
def braking_velocities(column_table, options, matrices, vectors, indices, B, d, extra_rows, extra_bounds, k, base, n):
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
        extra_bounds[i, 0], extra_bounds[i, 1] = min(extra_bounds[i, 0], 0.0), max(extra_bounds[i, 1], 0.0)
    bounds_over_basis(C, low, high, B, extra_rows, extra_bounds, base, column_table, n, d, k)
    slowdown = (
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
            y[i] += B[v, i] * weight * slowdown * column_table[RATE, v]
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
def is_within_bounds(column_table, options, rates, pivot_index, n):
    """Return whether all velocities are within their bounds, except for rounding."""
    for v in range(n):
        rounding = 1e-12 * (1.0 + abs(rates[v]))
        above, below = rates[v] - column_table[RATE_MAX, v] - rounding, column_table[RATE_MIN, v] - rates[v] - rounding
        if pivot_index[v] >= 0:
            max_change = min(column_table[MAX_ACCELERATION, v] * options[TIME_STEP], column_table[MAX_VELOCITY, v])
            above, below = (
                above - COUPLED_OVERSHOOT * min(max_change, abs(column_table[RATE_MAX, v])),
                below - COUPLED_OVERSHOOT * min(max_change, abs(column_table[RATE_MIN, v])),
            )
        if not max(above, below) <= 0.0:
            return False
    return True


@subroutine
def is_within_acceleration(column_table, options, n):
    """Return whether the braking velocities are within the acceleration limits after all."""
    largest = 0.0
    for v in range(n):
        largest = max(
            largest, abs(column_table[RATE, v] - column_table[START_RATE, v]) / column_table[MAX_ACCELERATION, v]
        )
    return largest <= options[TIME_STEP]


@subroutine
def finish_step(ints, floats, column_table, options, x, out, rates, curved, n, result):
    """Store the velocities and set x to the result of the step; after STEP_STOPPED, x stays and velocities are 0."""
    for v in range(n):
        if result == STEP_STOPPED:
            rates[v], curved[v] = 0.0, 0.0
        column_table[RATE, v], column_table[CURVATURE_RATE, v] = rates[v], curved[v]
    if result != STEP_STOPPED:
        for i in range(ints[N_X]):
            floats[x + i] = floats[out + i]
    for v in range(n):
        k = ints[ints[AT_COLUMN_X] + v]
        if k >= 0:  # limits are exceeded by rounding only, so loops stay closed
            floats[x + k] = min(max(floats[x + k], column_table[VALUE_MIN, v]), column_table[VALUE_MAX, v])


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
    change, e, violation = vectors[VECTOR_CHANGE], vectors[VECTOR_RESIDUAL], math.inf
    for _ in range(MAX_CLOSURE_STEPS):
        apply_velocities(ints, floats, options, x, out, rates, n)
        if m == 0:
            return 0.0
        evaluate_residuals(ints, floats, out, ints[RUNTIME_ZERO], ints[ints[AT_STAGES] + SOFT_END])
        last_violation, violation = violation, read_hard(ints, floats, ints[RUNTIME_ZERO], e)
        if violation < options[HARD_RESIDUAL_TOLERANCE] or not violation < 0.5 * last_violation:
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
    return violation


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
    previous_residual,
    target_motion,
    extra_rows,
    extra_bounds,
    pair_rows,
    active,
    evaluates_first,
):
    """Move x, the table `trial`, by one time step; return STEP_MOVED, STEP_BRAKED or STEP_STOPPED.

    Args:
        ints, floats: the problem, laid out as `problem_layout.py` says.
        column_table, options: see `level_qp.py`.
        matrices, vectors, indices: work arrays.
        gains: (rows,) 1/s.
        previous_residual: (rows,) residual with the last targets; written.
        target_motion: (stages, columns + 1) the last motion of the targets, and whether it was a jump; written.
        extra_rows, extra_bounds: (.., columns) and (.., 4) the rows of `pair_rows` pairs and the bounds of their rates,
            with space for the rows with bands. The lower bounds of pairs are computed here, from their desired rates.
        pair_rows: number of these rows; if negative, nothing moves and only the residual is evaluated.
        active: (columns,) written: the active bound of each column.
        evaluates_first: whether the residual must be evaluated first, since the targets are new.
    """
    n, x, out, result = column_table.shape[1], ints[AT_TRIAL], ints[AT_X], STEP_STOPPED
    if evaluates_first and pair_rows >= 0:
        evaluate_residuals(ints, floats, x, 1, ints[N_BLOCKS])
    if pair_rows >= 0:
        k = bound_bands(ints, floats, options, extra_rows, extra_bounds, pair_rows, n)
        bound_rates(ints, floats, column_table, options, x, n, k > 0)
        row_of, column_of, pivot_index = indices[INDEX_ROW], indices[INDEX_COLUMN], indices[INDEX_PIVOT]
        M, B, free = matrices[MATRIX_HARD], matrices[MATRIX_BASIS], matrices[MATRIX_FREE_BASIS]
        m = gather_hard(ints, floats, M, n)
        count = eliminate_hard(
            vectors, indices, M, matrices[MATRIX_ROW_OPERATIONS], m, n, column_table, row_of, column_of, pivot_index
        )
        d = free_basis(M, n, count, row_of, column_of, pivot_index, free)
        rates, straight, curved = vectors[VECTOR_RATES], vectors[VECTOR_STRAIGHT], vectors[VECTOR_CURVED]
        for v in range(n):
            column_table[START_RATE, v] = column_table[RATE, v]
            curved[v] = column_table[CURVATURE_RATE, v] if pivot_index[v] >= 0 else 0.0
        for attempt in range(2 * MAX_STEP_PASSES):
            is_braking, is_feasible = attempt >= MAX_STEP_PASSES, False
            for v in range(n):
                rates[v] = 0.0 if is_braking else curved[v]
                for j in range(d):
                    B[v, j] = free[v, j]
            if is_braking:
                is_feasible = braking_velocities(
                    column_table, options, matrices, vectors, indices, B, d, extra_rows, extra_bounds, k, rates, n
                )
            else:
                for repetition in range(2 if pair_rows > 0 else 1):
                    is_relaxed = separate_close_pairs(
                        column_table,
                        options,
                        matrices,
                        vectors,
                        indices,
                        B,
                        d,
                        count == 0,
                        extra_rows,
                        extra_bounds,
                        pair_rows,
                        k,
                        rates,
                        n,
                        repetition == 1,
                    )
                    if repetition == 1 and not is_relaxed:
                        break
                    is_feasible = solve_levels(
                        ints, floats, column_table, options, matrices, vectors, indices, gains, previous_residual,
                        target_motion, attempt + repetition > 0, B, d, count == 0, extra_rows, extra_bounds, k, rates, n
                    )  # fmt: skip
                    if is_feasible or is_relaxed:
                        break
                    for v in range(n):
                        rates[v] = curved[v]
                        for j in range(d):
                            B[v, j] = free[v, j]
                if not is_feasible and is_relaxed:  # only rounding makes these bounds infeasible
                    is_feasible = True
                    for v in range(n):
                        rates[v] = vectors[VECTOR_SEPARATION, v]
            if not is_feasible:
                continue
            for v in range(n):
                straight[v] = rates[v] - (0.0 if is_braking else curved[v])
                if count == 0:
                    rates[v] = min(max(rates[v], column_table[RATE_MIN, v]), column_table[RATE_MAX, v])
            violation = close_loops(ints, floats, options, matrices, vectors, indices, m, count, x, out, rates, n)
            for v in range(n):
                curved[v] = rates[v] - straight[v] if pivot_index[v] >= 0 else 0.0
            if violation < max(1e3 * options[HARD_RESIDUAL_TOLERANCE], 1e-9) and is_within_bounds(
                column_table, options, rates, pivot_index, n
            ):
                result = STEP_BRAKED if is_braking else STEP_MOVED
                break
        finish_step(ints, floats, column_table, options, x, out, rates, curved, n, result)
        limiting_bounds(column_table, options, n, active)
        if result == STEP_BRAKED and is_within_acceleration(column_table, options, n):
            result = STEP_MOVED
    evaluate_residuals(ints, floats, x, 1, ints[N_BLOCKS])
    for r in range(ints[N_ROWS]):
        previous_residual[r] = floats[ints[AT_RESIDUAL] + ints[N_ROWS] + r]
    return result
