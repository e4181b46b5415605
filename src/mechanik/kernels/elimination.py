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
def eliminate(ints, floats, stage, buffer, hard, curved, newton):
    """Eliminate the hard rows: choose dependent columns, if possible none at a bound, and compute offset and Z.

    Args:
        stage: index of the stage.
        buffer: the buffer (0 or 1) of residuals and Jacobians.
        hard: number of hard blocks.
        curved: whether to store the row operations in `AT_ROW_COMBINATION`, for `curvature.find_multipliers`.
        newton: whether to compute only the offset, the step of the dependent columns for a zero independent step.

    Returns:
        The number of independent columns (0 with `newton`), and the number of remaining rows of all blocks.
    """
    order, dependent, place, independent = (
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
            ints[place + v] = k
            ints[independent + k] = v
        return c, ints[RUNTIME_ZERO]
    left = ints[RUNTIME_ZERO]
    for b in range(hard):
        reduce_block(ints, floats, stage, buffer, b, curved)
        left = collect_unpivoted(ints, floats, b, left)
    if left > 0:
        reduce_unpivoted(ints, floats, left)
    n = ints[RUNTIME_ZERO]
    if newton:
        particular_step(ints, floats, hard, left)
        return n, left
    for k in range(c):
        v = ints[order + k]
        if ints[dependent + v] == NO_COLUMN:
            ints[place + v] = n
            ints[independent + n] = v
            n += 1
    build_null_space_map(ints, floats, hard, left, n)
    return n, left


@subroutine
def reduce_block(ints, floats, stage, buffer, b, curved):
    """Run Gauss-Jordan within one block, on the columns on which no other hard block depends."""
    blocks, block_columns, slack, private = (
        ints[AT_BLOCKS],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_SLACK],
        ints[AT_HARD_BLOCK_COUNT],
    )
    ban, dependent, pivot, jacobian = ints[AT_BOUND_STATE], ints[AT_DEPENDENT_INDEX], ints[AT_PIVOT], ints[AT_JACOBIAN]
    rows, hold, T, rhs = ints[AT_RESIDUAL], ints[AT_HELD_RESIDUAL], ints[AT_TABLEAU], ints[AT_RHS]
    block = blocks + BLOCK_INTS * b
    m, width, j, row, column = (
        ints[block + ROW_COUNT],
        ints[block + COLUMN_COUNT],
        ints[block + FIRST_JACOBIAN],
        ints[block + FIRST_ROW],
        ints[block + FIRST_COLUMN],
    )
    J, E = jacobian + ints[N_JACOBIAN] * buffer, rows + ints[N_ROWS] * buffer
    for k in range(m * width):
        floats[T + j + k] = floats[J + j + k]
    for r in range(m):
        floats[rhs + row + r] = floats[E + row + r] - floats[hold + row + r]
        ints[pivot + row + r] = NO_COLUMN
    undo = ints[AT_ROW_COMBINATION] + ints[MAX_BLOCK_ROWS] * row if curved else ints[RUNTIME_ZERO] + NO_COLUMN
    if curved:
        for k in range(m * m):
            floats[undo + k] = 1.0 if k % (m + 1) == 0 else 0.0
    if ints[block + HAS_BANDS] == 1:  # a free slack satisfies its row without constraining other columns
        for r in range(m):
            u = ints[slack + 2 * (row + r) + 1]
            if u >= 0 and ints[ban + ints[block_columns + column + u]] == 0:
                pivot_row(ints, floats, j, width, m, row, column, r, u, undo)
    # a pivot column is zero in all other rows, so the list needs no update
    listed, count = ints[AT_LISTED_COLUMN], ints[RUNTIME_ZERO]
    for u in range(width):
        v = ints[block_columns + column + u]
        if ints[private + ints[N_COLUMNS] * stage + v] == 1 and ints[ban + v] == 0 and ints[dependent + v] == NO_COLUMN:
            ints[listed + count] = u
            count += 1
    for _ in range(m):
        best, at_row, at = MIN_OWN_PIVOT, ints[RUNTIME_ZERO] + NO_COLUMN, ints[RUNTIME_ZERO] + NO_COLUMN
        for r in range(m):
            if ints[pivot + row + r] == NO_COLUMN:
                start = T + j + r * width
                for k in range(count):
                    size = abs(floats[start + ints[listed + k]])
                    if size > best:
                        best, at_row, at = size, r, ints[listed + k]
        if at_row == NO_COLUMN:
            break
        pivot_row(ints, floats, j, width, m, row, column, at_row, at, undo)


@subroutine
def pivot_row(ints, floats, j, width, m, row, column, r, u, undo):
    """Solve row r for column u and substitute it into the other rows; `undo` < 0 skips the row operations."""
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
    if undo >= 0:
        for k in range(m):
            floats[undo + r * m + k] *= inverse
    for other in range(m):
        o = j + other * width
        f = floats[T + o + u]
        if other != r and f != 0.0:
            for k in range(width):
                floats[T + o + k] -= f * floats[T + p + k]
            floats[T + o + u] = 0.0
            floats[rhs + row + other] -= f * floats[rhs + row + r]
            if undo >= 0:
                for k in range(m):
                    floats[undo + other * m + k] -= f * floats[undo + r * m + k]


@subroutine
def collect_unpivoted(ints, floats, b, left):
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
        start = left * (c + 1)
        for v in range(c):
            floats[dense + start + v] = 0.0
        for u in range(width):
            floats[dense + start + ints[block_columns + column + u]] = floats[T + j + r * width + u]
        floats[dense + start + c] = floats[rhs + row + r]
        ints[rest_column + left] = NO_COLUMN
        ints[ints[AT_UNPIVOTED_ROW] + row + r] = left
        left += 1
    return left


@subroutine
def reduce_unpivoted(ints, floats, left):
    """Run Gauss-Jordan on the remaining rows; columns at a bound become pivots only if no other column can."""
    ban, dependent, rest_column, dense = (
        ints[AT_BOUND_STATE],
        ints[AT_DEPENDENT_INDEX],
        ints[AT_REST_COLUMN],
        ints[AT_DENSE_ROWS],
    )
    c, D = ints[N_COLUMNS], dense
    w = c + 1
    for allow in range(2):
        for _ in range(left):
            best, at_row, at = MIN_PIVOT, ints[RUNTIME_ZERO] + NO_COLUMN, ints[RUNTIME_ZERO] + NO_COLUMN
            for r in range(left):
                if ints[rest_column + r] == NO_COLUMN:
                    for v in range(c):
                        size = abs(floats[D + r * w + v])
                        if size > best and (ints[ban + v] == 0 or (allow == 1 and ints[ban + v] != 3)):
                            best, at_row, at = size, r, v
            if at_row == NO_COLUMN:
                break
            ints[ban + at] = 0
            ints[rest_column + at_row] = at
            ints[dependent + at] = FROM_REMAINING_ROWS + at_row
            inverse = 1.0 / floats[D + at_row * w + at]
            for k in range(w):
                floats[D + at_row * w + k] *= inverse
            floats[D + at_row * w + at] = 1.0
            for r in range(left):
                f = floats[D + r * w + at]
                if r != at_row and f != 0.0:
                    for k in range(w):
                        floats[D + r * w + k] -= f * floats[D + at_row * w + k]
                    floats[D + r * w + at] = 0.0


@subroutine
def particular_step(ints, floats, hard, rest):
    """Write the step of the dependent columns for a zero step of the independent columns to `AT_OFFSET`."""
    blocks, block_columns, dependent, pivot = (
        ints[AT_BLOCKS],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_DEPENDENT_INDEX],
        ints[AT_PIVOT],
    )
    offset, dense, T, rhs = ints[AT_OFFSET], ints[AT_DENSE_ROWS], ints[AT_TABLEAU], ints[AT_RHS]
    w = ints[N_COLUMNS] + 1
    for r in range(rest):
        if ints[ints[AT_REST_COLUMN] + r] != NO_COLUMN:
            floats[offset + ints[ints[AT_REST_COLUMN] + r]] = -floats[dense + r * w + w - 1]
    for b in range(hard):
        block = blocks + BLOCK_INTS * b
        width, row, column = ints[block + COLUMN_COUNT], ints[block + FIRST_ROW], ints[block + FIRST_COLUMN]
        for r in range(ints[block + ROW_COUNT]):
            if ints[pivot + row + r] == NO_COLUMN:
                continue
            alone = -floats[rhs + row + r]
            if rest > 0:
                t = T + ints[block + FIRST_JACOBIAN] + r * width
                for u in range(width):
                    v = ints[block_columns + column + u]
                    if ints[dependent + v] >= FROM_REMAINING_ROWS:
                        alone -= floats[t + u] * floats[offset + v]
            floats[offset + ints[block_columns + column + ints[pivot + row + r]]] = alone


@subroutine
def build_null_space_map(ints, floats, hard, rest, n):
    """Build offset and the sparse rows of Z, first from the remaining dense rows, then from the blocks."""
    blocks, block_columns, dependent, place = (
        ints[AT_BLOCKS],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_DEPENDENT_INDEX],
        ints[AT_INDEPENDENT_INDEX],
    )
    independent, local, listed, z_count = (
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
    rhs, line = ints[AT_RHS], ints[AT_REDUCED_STEP]
    c = ints[N_COLUMNS]
    used = 0
    for r in range(rest):
        v = ints[rest_column + r]
        if v == NO_COLUMN:
            continue
        floats[offset + v] = -floats[dense + r * (c + 1) + c]
        ints[z_start + v] = used
        if n <= FEW_INDEPENDENT_COLUMNS:  # `null_space_row` reads the independent columns at the front of the row
            for i in range(n):
                floats[line + i] = floats[dense + r * (c + 1) + ints[independent + i]]
            for i in range(n):
                floats[dense + r * (c + 1) + i] = floats[line + i]
                if floats[line + i] != 0.0:
                    ints[z_index + used] = i
                    floats[Z + used] = -floats[line + i]
                    used += 1
            ints[z_count + v] = used - ints[z_start + v]
            continue
        for i in range(n):
            t = floats[dense + r * (c + 1) + ints[independent + i]]
            if t != 0.0:
                ints[z_index + used] = i
                floats[Z + used] = -t
                used += 1
        ints[z_count + v] = used - ints[z_start + v]
    for i in range(n):
        ints[local + i] = 0
        floats[line + i] = 0.0
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
            alone, touched = -floats[rhs + row + r], ints[RUNTIME_ZERO]
            if n <= FEW_INDEPENDENT_COLUMNS:
                used = null_space_row(ints, floats, j + r * width, width, column, v, alone, n, used)
                continue
            for u in range(width):
                t, w = floats[T + j + r * width + u], ints[block_columns + column + u]
                if t == 0.0 or w == v:
                    continue
                if ints[dependent + w] == NO_COLUMN:
                    touched = add_null_space_entry(ints, floats, ints[place + w], -t, touched)
                elif ints[dependent + w] >= FROM_REMAINING_ROWS:  # substitute that column
                    alone -= t * floats[offset + w]
                    for k in range(ints[z_start + w], ints[z_start + w] + ints[z_count + w]):
                        touched = add_null_space_entry(ints, floats, ints[z_index + k], -t * floats[Z + k], touched)
            floats[offset + v] = alone
            ints[z_start + v] = used
            for k in range(touched):
                i = ints[listed + k]
                ints[z_index + used] = i
                floats[Z + used] = floats[line + i]
                floats[line + i] = 0.0
                ints[local + i] = 0
                used += 1
            ints[z_count + v] = touched


@subroutine
def null_space_row(ints, floats, t, width, column, v, alone, n, used):
    """Write the row of Z of column v by dense loops over all independent columns; return the new entry count."""
    block_columns, dependent, place, line = (
        ints[AT_BLOCK_COLUMNS],
        ints[AT_DEPENDENT_INDEX],
        ints[AT_INDEPENDENT_INDEX],
        ints[AT_REDUCED_STEP],
    )
    for i in range(n):
        floats[line + i] = 0.0
    for u in range(width):
        f, w = floats[ints[AT_TABLEAU] + t + u], ints[block_columns + column + u]
        if f == 0.0 or w == v:
            continue
        if ints[dependent + w] == NO_COLUMN:
            floats[line + ints[place + w]] -= f
        elif ints[dependent + w] >= FROM_REMAINING_ROWS:  # substitute that column
            alone -= f * floats[ints[AT_OFFSET] + w]
            D = ints[AT_DENSE_ROWS] + (ints[dependent + w] - FROM_REMAINING_ROWS) * (ints[N_COLUMNS] + 1)
            for i in range(n):
                floats[line + i] += f * floats[D + i]
    floats[ints[AT_OFFSET] + v] = alone
    ints[ints[AT_NULL_SPACE_START] + v] = used
    for i in range(n):
        if floats[line + i] != 0.0:
            ints[ints[AT_NULL_SPACE_INDEX] + used] = i
            floats[ints[AT_NULL_SPACE] + used] = floats[line + i]
            used += 1
    ints[ints[AT_NULL_SPACE_COUNT] + v] = used - ints[ints[AT_NULL_SPACE_START] + v]
    return used


@subroutine
def add_null_space_entry(ints, floats, i, value, touched):
    local, listed, line = ints[AT_LOCAL_COLUMN], ints[AT_LISTED_COLUMN], ints[AT_REDUCED_STEP]
    if ints[local + i] == 0:
        ints[local + i] = 1
        ints[listed + touched] = i
        touched += 1
    floats[line + i] += value
    return touched
