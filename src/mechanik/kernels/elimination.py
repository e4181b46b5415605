"""Elimination of the linearised hard constraints: each row is solved for one column, which then depends on the others.

The method is Gauss-Jordan elimination with complete pivoting. First each block is eliminated on the columns that no
other hard block depends on, such as the joints of one leg; this saves most of the time if there are many legs. The
remaining rows of all blocks are then eliminated together, on all columns. A row that has no pivot even then is
redundant, so over-constrained loops need no separate code. The result is

    step[dependent] = offset + Z step[independent]

with a sparse row of the null space basis Z for each dependent column. Indices such as `b` and `v` are explained in
`problem_layout.py`.
"""

from __future__ import annotations

from .compiler import subroutine
from .problem_layout import *

MIN_PIVOT = 1e-7
"""Largest absolute entry that counts as zero; rows and columns are scaled to order 1. With a larger value, constraints
are lost near singular configurations; with a smaller value, rounding errors of redundant rows count as constraints.
Tuned on Bennett and planar loops."""
MIN_BLOCK_PIVOT = 0.03
"""Smallest pivot in the elimination of a single block; a row with smaller entries is eliminated on all columns. A
larger value avoids large entries of Z, but leaves more rows to the slower elimination on all columns.

Example: the joints of a stretched leg cannot change its length to first order. The row that constrains this length has
small entries in the columns of the leg, so it is solved for a column of the body that the leg supports.
"""
NO_INDEX = -1
"""Value of an index, such as that of a column or of a row, if there is none."""
FEW_INDEPENDENT_COLUMNS = 24
"""Largest number of independent columns for which the rows of Z are computed by loops over all independent columns.
With more columns, the loops are over the nonzero entries only; this saves operations but needs a list of these entries.
"""
FROM_REMAINING_ROWS = 1 << 40
"""Added to the indices of remaining rows in `AT_PIVOT_ROW`, to distinguish them from the rows of blocks."""


@subroutine
def eliminate(ints, floats, stage, buffer, hard_end, stores_row_operations, is_newton):
    """Eliminate the hard rows: choose the dependent columns and compute the offset and Z.

    A column at a bound becomes dependent only if no other column is possible; it is then released.

    Args:
        stage: index of the stage.
        buffer: the buffer (0 or 1) of residuals and Jacobians.
        hard_end: number of hard blocks.
        stores_row_operations: whether to store the row operations in `AT_ROW_COMBINATION`, for
            `curvature.find_multipliers`.
        is_newton: whether to compute only the offset: the step of the dependent columns if the independent columns do
            not move.

    Returns:
        The number of independent columns (0 with `is_newton` and hard rows), and the number of remaining rows.
    """
    elimination_order, pivot_row, independent_index, independent_column = (
        ints[AT_ELIMINATION_ORDER],
        ints[AT_PIVOT_ROW],
        ints[AT_INDEPENDENT_INDEX],
        ints[AT_INDEPENDENT_COLUMN],
    )
    null_space_count, offset = ints[AT_NULL_SPACE_COUNT], ints[AT_OFFSET]
    column_count = ints[N_COLUMNS]
    for v in range(column_count):
        ints[pivot_row + v] = NO_INDEX
        floats[offset + v] = 0.0
        ints[null_space_count + v] = 0
    if hard_end == 0:
        for k in range(column_count):
            v = ints[elimination_order + k]
            ints[independent_index + v] = k
            ints[independent_column + k] = v
        return column_count, ints[RUNTIME_ZERO]
    remaining_count = ints[RUNTIME_ZERO]
    for b in range(hard_end):
        reduce_block(ints, floats, stage, buffer, b, stores_row_operations)
        remaining_count = collect_remaining_rows(ints, floats, b, remaining_count)
    if remaining_count > 0:
        reduce_remaining_rows(ints, floats, remaining_count)
    n = ints[RUNTIME_ZERO]
    if is_newton:
        write_particular_step(ints, floats, hard_end, remaining_count)
        return n, remaining_count
    for k in range(column_count):
        v = ints[elimination_order + k]
        if ints[pivot_row + v] == NO_INDEX:
            ints[independent_index + v] = n
            ints[independent_column + n] = v
            n += 1
    build_null_space_map(ints, floats, hard_end, remaining_count, n)
    return n, remaining_count


@subroutine
def reduce_block(ints, floats, stage, buffer, b, stores_row_operations):
    """Eliminate the rows of one block on the columns that no other hard block depends on."""
    blocks, block_columns, slack, hard_block_count = (
        ints[AT_BLOCKS],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_SLACK],
        ints[AT_HARD_BLOCK_COUNT],
    )
    bound_state, column_pivot_row, pivot_column, jacobian_table = (
        ints[AT_BOUND_STATE],
        ints[AT_PIVOT_ROW],
        ints[AT_PIVOT_COLUMN],
        ints[AT_JACOBIAN],
    )
    residual_table, held_residual, tableau, rhs = (
        ints[AT_RESIDUAL],
        ints[AT_HELD_RESIDUAL],
        ints[AT_TABLEAU],
        ints[AT_RHS],
    )
    block = blocks + BLOCK_INTS * b
    m, width, first_jacobian, first_row, first_column = (
        ints[block + ROW_COUNT],
        ints[block + COLUMN_COUNT],
        ints[block + FIRST_JACOBIAN],
        ints[block + FIRST_ROW],
        ints[block + FIRST_COLUMN],
    )
    jacobian, residual = jacobian_table + ints[N_JACOBIAN] * buffer, residual_table + ints[N_ROWS] * buffer
    for k in range(m * width):
        floats[tableau + first_jacobian + k] = floats[jacobian + first_jacobian + k]
    for r in range(m):
        floats[rhs + first_row + r] = floats[residual + first_row + r] - floats[held_residual + first_row + r]
        ints[pivot_column + first_row + r] = NO_INDEX
    row_combination = (
        ints[AT_ROW_COMBINATION] + ints[MAX_BLOCK_ROWS] * first_row
        if stores_row_operations
        else ints[RUNTIME_ZERO] + NO_INDEX
    )
    if stores_row_operations:
        for k in range(m * m):
            floats[row_combination + k] = 1.0 if k % (m + 1) == 0 else 0.0
    if ints[block + HAS_BANDS] == 1:  # a free slack solves its row and leaves the other columns unconstrained
        for r in range(m):
            u = ints[slack + 2 * (first_row + r) + 1]
            if u >= 0 and ints[bound_state + ints[block_columns + first_column + u]] == FREE:
                solve_row_for_column(
                    ints, floats, first_jacobian, width, m, first_row, first_column, r, u, row_combination
                )
    # a candidate that becomes a pivot below stays in the list: it is zero in all rows that have no pivot yet
    candidates, candidate_count = ints[AT_COLUMN_LIST], ints[RUNTIME_ZERO]
    for u in range(width):
        v = ints[block_columns + first_column + u]
        if (
            ints[hard_block_count + ints[N_COLUMNS] * stage + v] == 1
            and ints[bound_state + v] == FREE
            and ints[column_pivot_row + v] == NO_INDEX
        ):
            ints[candidates + candidate_count] = u
            candidate_count += 1
    for _ in range(m):
        largest_entry, best_row, best_column = (
            MIN_BLOCK_PIVOT,
            ints[RUNTIME_ZERO] + NO_INDEX,
            ints[RUNTIME_ZERO] + NO_INDEX,
        )
        for r in range(m):
            if ints[pivot_column + first_row + r] == NO_INDEX:
                tableau_row = tableau + first_jacobian + r * width
                for k in range(candidate_count):
                    entry = abs(floats[tableau_row + ints[candidates + k]])
                    if entry > largest_entry:
                        largest_entry, best_row, best_column = entry, r, ints[candidates + k]
        if best_row == NO_INDEX:
            break
        solve_row_for_column(
            ints, floats, first_jacobian, width, m, first_row, first_column, best_row, best_column, row_combination
        )


@subroutine
def solve_row_for_column(ints, floats, first_jacobian, width, m, first_row, first_column, r, u, row_combination):
    """Solve row r of a block for its column u, and subtract multiples of row r from the other rows of the block.

    The row operations are also applied to the matrix at `row_combination`, unless this offset is negative.
    """
    block_columns, pivot_row, pivot_column, tableau = (
        ints[AT_BLOCK_COLUMNS],
        ints[AT_PIVOT_ROW],
        ints[AT_PIVOT_COLUMN],
        ints[AT_TABLEAU],
    )
    rhs = ints[AT_RHS]
    ints[pivot_column + first_row + r] = u
    ints[pivot_row + ints[block_columns + first_column + u]] = first_row + r
    row_start = first_jacobian + r * width
    inverse = 1.0 / floats[tableau + row_start + u]
    for k in range(width):
        floats[tableau + row_start + k] *= inverse
    floats[tableau + row_start + u] = 1.0
    floats[rhs + first_row + r] *= inverse
    if row_combination >= 0:
        for k in range(m):
            floats[row_combination + r * m + k] *= inverse
    for other_row in range(m):
        other_start = first_jacobian + other_row * width
        factor = floats[tableau + other_start + u]
        if other_row != r and factor != 0.0:
            for k in range(width):
                floats[tableau + other_start + k] -= factor * floats[tableau + row_start + k]
            floats[tableau + other_start + u] = 0.0
            floats[rhs + first_row + other_row] -= factor * floats[rhs + first_row + r]
            if row_combination >= 0:
                for k in range(m):
                    floats[row_combination + other_row * m + k] -= factor * floats[row_combination + r * m + k]


@subroutine
def collect_remaining_rows(ints, floats, b, remaining_count):
    """Copy the nonzero rows without pivot of a block to `AT_DENSE_ROWS`; return the new number of remaining rows."""
    blocks, block_columns, pivot_column, remaining_pivot = (
        ints[AT_BLOCKS],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_PIVOT_COLUMN],
        ints[AT_REMAINING_PIVOT],
    )
    dense_rows, tableau, rhs = ints[AT_DENSE_ROWS], ints[AT_TABLEAU], ints[AT_RHS]
    block = blocks + BLOCK_INTS * b
    m, width, first_jacobian, first_row, first_column = (
        ints[block + ROW_COUNT],
        ints[block + COLUMN_COUNT],
        ints[block + FIRST_JACOBIAN],
        ints[block + FIRST_ROW],
        ints[block + FIRST_COLUMN],
    )
    column_count = ints[N_COLUMNS]
    for r in range(m):
        ints[ints[AT_REMAINING_ROW] + first_row + r] = NO_INDEX
        if ints[pivot_column + first_row + r] != NO_INDEX:
            continue
        largest_entry = 0.0
        for u in range(width):
            largest_entry = max(largest_entry, abs(floats[tableau + first_jacobian + r * width + u]))
        if largest_entry <= MIN_PIVOT:
            continue
        row_start = remaining_count * (column_count + 1)
        for v in range(column_count):
            floats[dense_rows + row_start + v] = 0.0
        for u in range(width):
            floats[dense_rows + row_start + ints[block_columns + first_column + u]] = floats[
                tableau + first_jacobian + r * width + u
            ]
        floats[dense_rows + row_start + column_count] = floats[rhs + first_row + r]
        ints[remaining_pivot + remaining_count] = NO_INDEX
        ints[ints[AT_REMAINING_ROW] + first_row + r] = remaining_count
        remaining_count += 1
    return remaining_count


@subroutine
def reduce_remaining_rows(ints, floats, remaining_count):
    """Eliminate the remaining rows of all blocks; a column at a bound becomes a pivot only if no other column can."""
    bound_state, pivot_row, remaining_pivot, dense_rows = (
        ints[AT_BOUND_STATE],
        ints[AT_PIVOT_ROW],
        ints[AT_REMAINING_PIVOT],
        ints[AT_DENSE_ROWS],
    )
    column_count = ints[N_COLUMNS]
    row_length = column_count + 1
    for allows_bounds in range(2):
        for _ in range(remaining_count):
            largest_entry, best_row, best_column = (
                MIN_PIVOT,
                ints[RUNTIME_ZERO] + NO_INDEX,
                ints[RUNTIME_ZERO] + NO_INDEX,
            )
            for r in range(remaining_count):
                if ints[remaining_pivot + r] == NO_INDEX:
                    for v in range(column_count):
                        entry = abs(floats[dense_rows + r * row_length + v])
                        if entry > largest_entry and (
                            ints[bound_state + v] == FREE or (allows_bounds == 1 and ints[bound_state + v] != LOCKED)
                        ):
                            largest_entry, best_row, best_column = entry, r, v
            if best_row == NO_INDEX:
                break
            ints[bound_state + best_column] = FREE
            ints[remaining_pivot + best_row] = best_column
            ints[pivot_row + best_column] = FROM_REMAINING_ROWS + best_row
            inverse = 1.0 / floats[dense_rows + best_row * row_length + best_column]
            for k in range(row_length):
                floats[dense_rows + best_row * row_length + k] *= inverse
            floats[dense_rows + best_row * row_length + best_column] = 1.0
            for r in range(remaining_count):
                factor = floats[dense_rows + r * row_length + best_column]
                if r != best_row and factor != 0.0:
                    for k in range(row_length):
                        floats[dense_rows + r * row_length + k] -= (
                            factor * floats[dense_rows + best_row * row_length + k]
                        )
                    floats[dense_rows + r * row_length + best_column] = 0.0


@subroutine
def write_particular_step(ints, floats, hard_end, remaining_count):
    """Write the step of the dependent columns for a zero step of the independent columns to `AT_OFFSET`."""
    blocks, block_columns, pivot_row, pivot_column = (
        ints[AT_BLOCKS],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_PIVOT_ROW],
        ints[AT_PIVOT_COLUMN],
    )
    offset, dense_rows, tableau, rhs = ints[AT_OFFSET], ints[AT_DENSE_ROWS], ints[AT_TABLEAU], ints[AT_RHS]
    row_length = ints[N_COLUMNS] + 1
    for r in range(remaining_count):
        if ints[ints[AT_REMAINING_PIVOT] + r] != NO_INDEX:
            floats[offset + ints[ints[AT_REMAINING_PIVOT] + r]] = -floats[dense_rows + r * row_length + row_length - 1]
    for b in range(hard_end):
        block = blocks + BLOCK_INTS * b
        width, first_row, first_column = ints[block + COLUMN_COUNT], ints[block + FIRST_ROW], ints[block + FIRST_COLUMN]
        for r in range(ints[block + ROW_COUNT]):
            if ints[pivot_column + first_row + r] == NO_INDEX:
                continue
            constant = -floats[rhs + first_row + r]
            if remaining_count > 0:
                tableau_row = tableau + ints[block + FIRST_JACOBIAN] + r * width
                for u in range(width):
                    v = ints[block_columns + first_column + u]
                    if ints[pivot_row + v] >= FROM_REMAINING_ROWS:
                        constant -= floats[tableau_row + u] * floats[offset + v]
            floats[offset + ints[block_columns + first_column + ints[pivot_column + first_row + r]]] = constant


@subroutine
def build_null_space_map(ints, floats, hard_end, remaining_count, n):
    """Compute the offset and the sparse rows of Z, first from the remaining rows, then from the rows of the blocks."""
    blocks, block_columns, pivot_row, independent_index = (
        ints[AT_BLOCKS],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_PIVOT_ROW],
        ints[AT_INDEPENDENT_INDEX],
    )
    # `is_listed`: for each independent index, 1 if it is in `column_list`; its position is not needed here
    independent_column, is_listed, column_list, null_space_count = (
        ints[AT_INDEPENDENT_COLUMN],
        ints[AT_LIST_POSITION],
        ints[AT_COLUMN_LIST],
        ints[AT_NULL_SPACE_COUNT],
    )
    null_space_start, null_space_index, pivot_column, remaining_pivot = (
        ints[AT_NULL_SPACE_START],
        ints[AT_NULL_SPACE_INDEX],
        ints[AT_PIVOT_COLUMN],
        ints[AT_REMAINING_PIVOT],
    )
    offset, dense_rows, Z, tableau = ints[AT_OFFSET], ints[AT_DENSE_ROWS], ints[AT_NULL_SPACE], ints[AT_TABLEAU]
    # `z_row` is scratch memory: the row of Z, over all independent columns
    rhs, z_row = ints[AT_RHS], ints[AT_REDUCED_STEP]
    column_count = ints[N_COLUMNS]
    total_entry_count = 0
    for r in range(remaining_count):
        v = ints[remaining_pivot + r]
        if v == NO_INDEX:
            continue
        floats[offset + v] = -floats[dense_rows + r * (column_count + 1) + column_count]
        ints[null_space_start + v] = total_entry_count
        if n <= FEW_INDEPENDENT_COLUMNS:
            # `write_null_space_row` reads the entries of the independent columns at the start of the dense row
            for i in range(n):
                floats[z_row + i] = floats[dense_rows + r * (column_count + 1) + ints[independent_column + i]]
            for i in range(n):
                floats[dense_rows + r * (column_count + 1) + i] = floats[z_row + i]
                if floats[z_row + i] != 0.0:
                    ints[null_space_index + total_entry_count] = i
                    floats[Z + total_entry_count] = -floats[z_row + i]
                    total_entry_count += 1
            ints[null_space_count + v] = total_entry_count - ints[null_space_start + v]
            continue
        for i in range(n):
            factor = floats[dense_rows + r * (column_count + 1) + ints[independent_column + i]]
            if factor != 0.0:
                ints[null_space_index + total_entry_count] = i
                floats[Z + total_entry_count] = -factor
                total_entry_count += 1
        ints[null_space_count + v] = total_entry_count - ints[null_space_start + v]
    for i in range(n):
        ints[is_listed + i] = 0
        floats[z_row + i] = 0.0
    for b in range(hard_end):
        block = blocks + BLOCK_INTS * b
        m, width, first_jacobian, first_row, first_column = (
            ints[block + ROW_COUNT],
            ints[block + COLUMN_COUNT],
            ints[block + FIRST_JACOBIAN],
            ints[block + FIRST_ROW],
            ints[block + FIRST_COLUMN],
        )
        for r in range(m):
            if ints[pivot_column + first_row + r] == NO_INDEX:
                continue
            v = ints[block_columns + first_column + ints[pivot_column + first_row + r]]
            constant, entry_count = -floats[rhs + first_row + r], ints[RUNTIME_ZERO]
            if n <= FEW_INDEPENDENT_COLUMNS:
                total_entry_count = write_null_space_row(
                    ints, floats, first_jacobian + r * width, width, first_column, v, constant, n, total_entry_count
                )
                continue
            for u in range(width):
                factor, other_column = (
                    floats[tableau + first_jacobian + r * width + u],
                    ints[block_columns + first_column + u],
                )
                if factor == 0.0 or other_column == v:
                    continue
                if ints[pivot_row + other_column] == NO_INDEX:
                    entry_count = add_null_space_entry(
                        ints, floats, ints[independent_index + other_column], -factor, entry_count
                    )
                elif ints[pivot_row + other_column] >= FROM_REMAINING_ROWS:  # substitute the other column
                    constant -= factor * floats[offset + other_column]
                    for k in range(
                        ints[null_space_start + other_column],
                        ints[null_space_start + other_column] + ints[null_space_count + other_column],
                    ):
                        entry_count = add_null_space_entry(
                            ints, floats, ints[null_space_index + k], -factor * floats[Z + k], entry_count
                        )
            floats[offset + v] = constant
            ints[null_space_start + v] = total_entry_count
            for k in range(entry_count):
                i = ints[column_list + k]
                ints[null_space_index + total_entry_count] = i
                floats[Z + total_entry_count] = floats[z_row + i]
                floats[z_row + i] = 0.0
                ints[is_listed + i] = 0
                total_entry_count += 1
            ints[null_space_count + v] = entry_count


@subroutine
def write_null_space_row(ints, floats, row_start, width, first_column, v, constant, n, total_entry_count):
    """Write the row of Z and the offset of column v; return the new number of entries of Z.

    The loops are over all independent columns; `FEW_INDEPENDENT_COLUMNS` limits their number.

    Args:
        row_start: offset of the row in the table `tableau`.
        constant: offset of column v, without the offsets of other dependent columns in the row.
        total_entry_count: number of entries of Z before this row.
    """
    block_columns, pivot_row, independent_index, z_row = (
        ints[AT_BLOCK_COLUMNS],
        ints[AT_PIVOT_ROW],
        ints[AT_INDEPENDENT_INDEX],
        ints[AT_REDUCED_STEP],  # scratch memory: the row of Z, over all independent columns
    )
    for i in range(n):
        floats[z_row + i] = 0.0
    for u in range(width):
        factor, other_column = floats[ints[AT_TABLEAU] + row_start + u], ints[block_columns + first_column + u]
        if factor == 0.0 or other_column == v:
            continue
        if ints[pivot_row + other_column] == NO_INDEX:
            floats[z_row + ints[independent_index + other_column]] -= factor
        elif ints[pivot_row + other_column] >= FROM_REMAINING_ROWS:  # substitute the other column
            constant -= factor * floats[ints[AT_OFFSET] + other_column]
            dense_row = ints[AT_DENSE_ROWS] + (ints[pivot_row + other_column] - FROM_REMAINING_ROWS) * (
                ints[N_COLUMNS] + 1
            )
            for i in range(n):
                floats[z_row + i] += factor * floats[dense_row + i]
    floats[ints[AT_OFFSET] + v] = constant
    ints[ints[AT_NULL_SPACE_START] + v] = total_entry_count
    for i in range(n):
        if floats[z_row + i] != 0.0:
            ints[ints[AT_NULL_SPACE_INDEX] + total_entry_count] = i
            floats[ints[AT_NULL_SPACE] + total_entry_count] = floats[z_row + i]
            total_entry_count += 1
    ints[ints[AT_NULL_SPACE_COUNT] + v] = total_entry_count - ints[ints[AT_NULL_SPACE_START] + v]
    return total_entry_count


@subroutine
def add_null_space_entry(ints, floats, i, value, entry_count):
    """Add a value to entry i of a row of Z (in `AT_REDUCED_STEP`) and list i; return the number of listed entries."""
    # see `build_null_space_map` for `is_listed` and `z_row`
    is_listed, column_list, z_row = ints[AT_LIST_POSITION], ints[AT_COLUMN_LIST], ints[AT_REDUCED_STEP]
    if ints[is_listed + i] == 0:
        ints[is_listed + i] = 1
        ints[column_list + entry_count] = i
        entry_count += 1
    floats[z_row + i] += value
    return entry_count
