"""Elimination of the linearised hard constraints: each row makes one column depend on the others.

The method is Gauss-Jordan with complete pivoting. It runs block by block on the columns on which only one hard block
depends, such as the joints of one leg, so that the cost grows linearly with the number of legs; then on all columns for
the remaining rows. A row without a pivot is redundant, so over-constrained loops need no separate code. The result is

    step[dependent] = offset + Z step[independent]

with a sparse row of the null space basis Z for each dependent column.
"""

from __future__ import annotations

from .compiler import subroutine
from .problem_layout import *

MIN_PIVOT = 1e-7
"""Largest entry of a row that counts as zero, for rows and columns of order 1. Tuned on Bennett and planar loops."""
MIN_OWN_PIVOT = 0.03
"""Smallest pivot within the own block of a row; a row with smaller entries is solved over all columns.

Example: a stretched leg cannot change its length to first order, but the body on it can move.
"""
NO_COLUMN = -1
FEW_INDEPENDENT_COLUMNS = 24
"""Largest number of independent columns for dense loops; with more, only the columns of a row are listed."""
FROM_REMAINING_ROWS = 1 << 40
"""Offset in `AT_DEPENDENT_INDEX` that marks the pivot columns of the remaining rows of all blocks."""


@subroutine
def eliminate(ints, floats, stage, buffer, hard, stores_row_operations, is_newton):
    """Eliminate the hard rows: choose dependent columns, if possible none at a bound, and compute offset and Z.

    Args:
        stage: index of the stage.
        buffer: the buffer (0 or 1) of residuals and Jacobians.
        hard: number of hard blocks.
        stores_row_operations: whether to store the row operations in `AT_ROW_COMBINATION`, for
            `curvature.find_multipliers`.
        is_newton: whether to compute only the offset, the step of the dependent columns for a zero independent step.

    Returns:
        The number of independent columns (0 with `is_newton`), and the number of remaining rows of all blocks.
    """
    order, dependent, independent_index, independent = (
        ints[AT_ELIMINATION_ORDER],
        ints[AT_DEPENDENT_INDEX],
        ints[AT_INDEPENDENT_INDEX],
        ints[AT_INDEPENDENT_COLUMN],
    )
    z_count, offset = ints[AT_NULL_SPACE_COUNT], ints[AT_OFFSET]
    c = ints[N_COLUMNS]
    for v in range(c):
        ints[dependent + v] = NO_COLUMN
        floats[offset + v] = 0.0
        ints[z_count + v] = 0
    if hard == 0:
        for k in range(c):
            v = ints[order + k]
            ints[independent_index + v] = k
            ints[independent + k] = v
        return c, ints[RUNTIME_ZERO]
    remaining_rows = ints[RUNTIME_ZERO]
    for b in range(hard):
        reduce_block(ints, floats, stage, buffer, b, stores_row_operations)
        remaining_rows = collect_unpivoted(ints, floats, b, remaining_rows)
    if remaining_rows > 0:
        reduce_unpivoted(ints, floats, remaining_rows)
    n = ints[RUNTIME_ZERO]
    if is_newton:
        particular_step(ints, floats, hard, remaining_rows)
        return n, remaining_rows
    for k in range(c):
        v = ints[order + k]
        if ints[dependent + v] == NO_COLUMN:
            ints[independent_index + v] = n
            ints[independent + n] = v
            n += 1
    build_null_space_map(ints, floats, hard, remaining_rows, n)
    return n, remaining_rows


@subroutine
def reduce_block(ints, floats, stage, buffer, b, stores_row_operations):
    """Run Gauss-Jordan within one block, on the columns on which no other hard block depends."""
    blocks, block_columns, slack, hard_block_count = (
        ints[AT_BLOCKS],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_SLACK],
        ints[AT_HARD_BLOCK_COUNT],
    )
    bound_state, dependent, pivot, jacobian = (
        ints[AT_BOUND_STATE],
        ints[AT_DEPENDENT_INDEX],
        ints[AT_PIVOT],
        ints[AT_JACOBIAN],
    )
    residual, held_residual, T, rhs = ints[AT_RESIDUAL], ints[AT_HELD_RESIDUAL], ints[AT_TABLEAU], ints[AT_RHS]
    block = blocks + BLOCK_INTS * b
    m, width, j, row, column = (
        ints[block + ROW_COUNT],
        ints[block + COLUMN_COUNT],
        ints[block + FIRST_JACOBIAN],
        ints[block + FIRST_ROW],
        ints[block + FIRST_COLUMN],
    )
    J, E = jacobian + ints[N_JACOBIAN] * buffer, residual + ints[N_ROWS] * buffer
    for k in range(m * width):
        floats[T + j + k] = floats[J + j + k]
    for r in range(m):
        floats[rhs + row + r] = floats[E + row + r] - floats[held_residual + row + r]
        ints[pivot + row + r] = NO_COLUMN
    row_combination = (
        ints[AT_ROW_COMBINATION] + ints[MAX_BLOCK_ROWS] * row
        if stores_row_operations
        else ints[RUNTIME_ZERO] + NO_COLUMN
    )
    if stores_row_operations:
        for k in range(m * m):
            floats[row_combination + k] = 1.0 if k % (m + 1) == 0 else 0.0
    if ints[block + HAS_BANDS] == 1:  # a free slack satisfies its row without constraining other columns
        for r in range(m):
            u = ints[slack + 2 * (row + r) + 1]
            if u >= 0 and ints[bound_state + ints[block_columns + column + u]] == FREE:
                pivot_row(ints, floats, j, width, m, row, column, r, u, row_combination)
    # a pivot column is zero in all other rows, so the list needs no update
    listed_columns, count = ints[AT_LISTED_COLUMN], ints[RUNTIME_ZERO]
    for u in range(width):
        v = ints[block_columns + column + u]
        if (
            ints[hard_block_count + ints[N_COLUMNS] * stage + v] == 1
            and ints[bound_state + v] == FREE
            and ints[dependent + v] == NO_COLUMN
        ):
            ints[listed_columns + count] = u
            count += 1
    for _ in range(m):
        best, pivot_at, pivot_column = MIN_OWN_PIVOT, ints[RUNTIME_ZERO] + NO_COLUMN, ints[RUNTIME_ZERO] + NO_COLUMN
        for r in range(m):
            if ints[pivot + row + r] == NO_COLUMN:
                start = T + j + r * width
                for k in range(count):
                    size = abs(floats[start + ints[listed_columns + k]])
                    if size > best:
                        best, pivot_at, pivot_column = size, r, ints[listed_columns + k]
        if pivot_at == NO_COLUMN:
            break
        pivot_row(ints, floats, j, width, m, row, column, pivot_at, pivot_column, row_combination)


@subroutine
def pivot_row(ints, floats, j, width, m, row, column, r, u, row_combination):
    """Solve row r for column u and substitute it into the other rows.

    A negative `row_combination` skips the row operations.
    """
    block_columns, dependent, pivot, T = (
        ints[AT_BLOCK_COLUMNS],
        ints[AT_DEPENDENT_INDEX],
        ints[AT_PIVOT],
        ints[AT_TABLEAU],
    )
    rhs = ints[AT_RHS]
    ints[pivot + row + r] = u
    ints[dependent + ints[block_columns + column + u]] = row + r
    p = j + r * width
    inverse = 1.0 / floats[T + p + u]
    for k in range(width):
        floats[T + p + k] *= inverse
    floats[T + p + u] = 1.0
    floats[rhs + row + r] *= inverse
    if row_combination >= 0:
        for k in range(m):
            floats[row_combination + r * m + k] *= inverse
    for other_row in range(m):
        o = j + other_row * width
        f = floats[T + o + u]
        if other_row != r and f != 0.0:
            for k in range(width):
                floats[T + o + k] -= f * floats[T + p + k]
            floats[T + o + u] = 0.0
            floats[rhs + row + other_row] -= f * floats[rhs + row + r]
            if row_combination >= 0:
                for k in range(m):
                    floats[row_combination + other_row * m + k] -= f * floats[row_combination + r * m + k]


@subroutine
def collect_unpivoted(ints, floats, b, remaining_rows):
    """Copy the nonzero rows of a block without pivot to `AT_DENSE_ROWS`, over all columns; return their total count."""
    blocks, block_columns, pivot, rest_column = (
        ints[AT_BLOCKS],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_PIVOT],
        ints[AT_REST_COLUMN],
    )
    dense, T, rhs = ints[AT_DENSE_ROWS], ints[AT_TABLEAU], ints[AT_RHS]
    block = blocks + BLOCK_INTS * b
    m, width, j, row, column = (
        ints[block + ROW_COUNT],
        ints[block + COLUMN_COUNT],
        ints[block + FIRST_JACOBIAN],
        ints[block + FIRST_ROW],
        ints[block + FIRST_COLUMN],
    )
    c = ints[N_COLUMNS]
    for r in range(m):
        ints[ints[AT_UNPIVOTED_ROW] + row + r] = NO_COLUMN
        if ints[pivot + row + r] != NO_COLUMN:
            continue
        largest = 0.0
        for u in range(width):
            largest = max(largest, abs(floats[T + j + r * width + u]))
        if largest <= MIN_PIVOT:
            continue
        start = remaining_rows * (c + 1)
        for v in range(c):
            floats[dense + start + v] = 0.0
        for u in range(width):
            floats[dense + start + ints[block_columns + column + u]] = floats[T + j + r * width + u]
        floats[dense + start + c] = floats[rhs + row + r]
        ints[rest_column + remaining_rows] = NO_COLUMN
        ints[ints[AT_UNPIVOTED_ROW] + row + r] = remaining_rows
        remaining_rows += 1
    return remaining_rows


@subroutine
def reduce_unpivoted(ints, floats, remaining_rows):
    """Run Gauss-Jordan on the remaining rows; columns at a bound become pivots only if no other column can."""
    bound_state, dependent, rest_column, dense = (
        ints[AT_BOUND_STATE],
        ints[AT_DEPENDENT_INDEX],
        ints[AT_REST_COLUMN],
        ints[AT_DENSE_ROWS],
    )
    c, D = ints[N_COLUMNS], dense
    w = c + 1
    for allows_bounds in range(2):
        for _ in range(remaining_rows):
            best, pivot_at, pivot_column = MIN_PIVOT, ints[RUNTIME_ZERO] + NO_COLUMN, ints[RUNTIME_ZERO] + NO_COLUMN
            for r in range(remaining_rows):
                if ints[rest_column + r] == NO_COLUMN:
                    for v in range(c):
                        size = abs(floats[D + r * w + v])
                        if size > best and (
                            ints[bound_state + v] == FREE or (allows_bounds == 1 and ints[bound_state + v] != LOCKED)
                        ):
                            best, pivot_at, pivot_column = size, r, v
            if pivot_at == NO_COLUMN:
                break
            ints[bound_state + pivot_column] = FREE
            ints[rest_column + pivot_at] = pivot_column
            ints[dependent + pivot_column] = FROM_REMAINING_ROWS + pivot_at
            inverse = 1.0 / floats[D + pivot_at * w + pivot_column]
            for k in range(w):
                floats[D + pivot_at * w + k] *= inverse
            floats[D + pivot_at * w + pivot_column] = 1.0
            for r in range(remaining_rows):
                f = floats[D + r * w + pivot_column]
                if r != pivot_at and f != 0.0:
                    for k in range(w):
                        floats[D + r * w + k] -= f * floats[D + pivot_at * w + k]
                    floats[D + r * w + pivot_column] = 0.0


@subroutine
def particular_step(ints, floats, hard, remaining_rows):
    """Write the step of the dependent columns for a zero step of the independent columns to `AT_OFFSET`."""
    blocks, block_columns, dependent, pivot = (
        ints[AT_BLOCKS],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_DEPENDENT_INDEX],
        ints[AT_PIVOT],
    )
    offset, dense, T, rhs = ints[AT_OFFSET], ints[AT_DENSE_ROWS], ints[AT_TABLEAU], ints[AT_RHS]
    w = ints[N_COLUMNS] + 1
    for r in range(remaining_rows):
        if ints[ints[AT_REST_COLUMN] + r] != NO_COLUMN:
            floats[offset + ints[ints[AT_REST_COLUMN] + r]] = -floats[dense + r * w + w - 1]
    for b in range(hard):
        block = blocks + BLOCK_INTS * b
        width, row, column = ints[block + COLUMN_COUNT], ints[block + FIRST_ROW], ints[block + FIRST_COLUMN]
        for r in range(ints[block + ROW_COUNT]):
            if ints[pivot + row + r] == NO_COLUMN:
                continue
            constant = -floats[rhs + row + r]
            if remaining_rows > 0:
                t = T + ints[block + FIRST_JACOBIAN] + r * width
                for u in range(width):
                    v = ints[block_columns + column + u]
                    if ints[dependent + v] >= FROM_REMAINING_ROWS:
                        constant -= floats[t + u] * floats[offset + v]
            floats[offset + ints[block_columns + column + ints[pivot + row + r]]] = constant


@subroutine
def build_null_space_map(ints, floats, hard, remaining_rows, n):
    """Build offset and the sparse rows of Z, first from the remaining dense rows, then from the blocks."""
    blocks, block_columns, dependent, independent_index = (
        ints[AT_BLOCKS],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_DEPENDENT_INDEX],
        ints[AT_INDEPENDENT_INDEX],
    )
    independent, local_column, listed_columns, z_count = (
        ints[AT_INDEPENDENT_COLUMN],
        ints[AT_LOCAL_COLUMN],
        ints[AT_LISTED_COLUMN],
        ints[AT_NULL_SPACE_COUNT],
    )
    z_start, z_index, pivot, rest_column = (
        ints[AT_NULL_SPACE_START],
        ints[AT_NULL_SPACE_INDEX],
        ints[AT_PIVOT],
        ints[AT_REST_COLUMN],
    )
    offset, dense, Z, T = ints[AT_OFFSET], ints[AT_DENSE_ROWS], ints[AT_NULL_SPACE], ints[AT_TABLEAU]
    rhs, reduced_step = ints[AT_RHS], ints[AT_REDUCED_STEP]
    c = ints[N_COLUMNS]
    total_entries = 0
    for r in range(remaining_rows):
        v = ints[rest_column + r]
        if v == NO_COLUMN:
            continue
        floats[offset + v] = -floats[dense + r * (c + 1) + c]
        ints[z_start + v] = total_entries
        if n <= FEW_INDEPENDENT_COLUMNS:  # `null_space_row` reads the independent columns at the front of the row
            for i in range(n):
                floats[reduced_step + i] = floats[dense + r * (c + 1) + ints[independent + i]]
            for i in range(n):
                floats[dense + r * (c + 1) + i] = floats[reduced_step + i]
                if floats[reduced_step + i] != 0.0:
                    ints[z_index + total_entries] = i
                    floats[Z + total_entries] = -floats[reduced_step + i]
                    total_entries += 1
            ints[z_count + v] = total_entries - ints[z_start + v]
            continue
        for i in range(n):
            t = floats[dense + r * (c + 1) + ints[independent + i]]
            if t != 0.0:
                ints[z_index + total_entries] = i
                floats[Z + total_entries] = -t
                total_entries += 1
        ints[z_count + v] = total_entries - ints[z_start + v]
    for i in range(n):
        ints[local_column + i] = 0
        floats[reduced_step + i] = 0.0
    for b in range(hard):
        block = blocks + BLOCK_INTS * b
        m, width, j, row, column = (
            ints[block + ROW_COUNT],
            ints[block + COLUMN_COUNT],
            ints[block + FIRST_JACOBIAN],
            ints[block + FIRST_ROW],
            ints[block + FIRST_COLUMN],
        )
        for r in range(m):
            if ints[pivot + row + r] == NO_COLUMN:
                continue
            v = ints[block_columns + column + ints[pivot + row + r]]
            constant, entry_count = -floats[rhs + row + r], ints[RUNTIME_ZERO]
            if n <= FEW_INDEPENDENT_COLUMNS:
                total_entries = null_space_row(
                    ints, floats, j + r * width, width, column, v, constant, n, total_entries
                )
                continue
            for u in range(width):
                t, w = floats[T + j + r * width + u], ints[block_columns + column + u]
                if t == 0.0 or w == v:
                    continue
                if ints[dependent + w] == NO_COLUMN:
                    entry_count = add_null_space_entry(ints, floats, ints[independent_index + w], -t, entry_count)
                elif ints[dependent + w] >= FROM_REMAINING_ROWS:  # substitute that column
                    constant -= t * floats[offset + w]
                    for k in range(ints[z_start + w], ints[z_start + w] + ints[z_count + w]):
                        entry_count = add_null_space_entry(
                            ints, floats, ints[z_index + k], -t * floats[Z + k], entry_count
                        )
            floats[offset + v] = constant
            ints[z_start + v] = total_entries
            for k in range(entry_count):
                i = ints[listed_columns + k]
                ints[z_index + total_entries] = i
                floats[Z + total_entries] = floats[reduced_step + i]
                floats[reduced_step + i] = 0.0
                ints[local_column + i] = 0
                total_entries += 1
            ints[z_count + v] = entry_count


@subroutine
def null_space_row(ints, floats, t, width, column, v, constant, n, total_entries):
    """Write the row of Z of column v by dense loops over all independent columns; return the new entry count."""
    block_columns, dependent, independent_index, reduced_step = (
        ints[AT_BLOCK_COLUMNS],
        ints[AT_DEPENDENT_INDEX],
        ints[AT_INDEPENDENT_INDEX],
        ints[AT_REDUCED_STEP],
    )
    for i in range(n):
        floats[reduced_step + i] = 0.0
    for u in range(width):
        f, w = floats[ints[AT_TABLEAU] + t + u], ints[block_columns + column + u]
        if f == 0.0 or w == v:
            continue
        if ints[dependent + w] == NO_COLUMN:
            floats[reduced_step + ints[independent_index + w]] -= f
        elif ints[dependent + w] >= FROM_REMAINING_ROWS:  # substitute that column
            constant -= f * floats[ints[AT_OFFSET] + w]
            D = ints[AT_DENSE_ROWS] + (ints[dependent + w] - FROM_REMAINING_ROWS) * (ints[N_COLUMNS] + 1)
            for i in range(n):
                floats[reduced_step + i] += f * floats[D + i]
    floats[ints[AT_OFFSET] + v] = constant
    ints[ints[AT_NULL_SPACE_START] + v] = total_entries
    for i in range(n):
        if floats[reduced_step + i] != 0.0:
            ints[ints[AT_NULL_SPACE_INDEX] + total_entries] = i
            floats[ints[AT_NULL_SPACE] + total_entries] = floats[reduced_step + i]
            total_entries += 1
    ints[ints[AT_NULL_SPACE_COUNT] + v] = total_entries - ints[ints[AT_NULL_SPACE_START] + v]
    return total_entries


@subroutine
def add_null_space_entry(ints, floats, i, value, entry_count):
    local_column, listed_columns, reduced_step = ints[AT_LOCAL_COLUMN], ints[AT_LISTED_COLUMN], ints[AT_REDUCED_STEP]
    if ints[local_column + i] == 0:
        ints[local_column + i] = 1
        ints[listed_columns + entry_count] = i
        entry_count += 1
    floats[reduced_step + i] += value
    return entry_count
