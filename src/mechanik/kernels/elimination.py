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
from .tables import matrix_at

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
"""Added to the indices of remaining rows in `pivot_row`, to distinguish them from the rows of blocks."""


@subroutine
def eliminate(problem, stage, buffer, hard_end, stores_row_operations, is_newton):
    """Eliminate the hard rows: choose the dependent columns and compute the offset and Z.

    A column at a bound becomes dependent only if no other column is possible; it is then released.

    Args:
        stage: index of the stage.
        buffer: the buffer (0 or 1) of residuals and Jacobians.
        hard_end: number of hard blocks.
        stores_row_operations: whether to store the row operations in `row_combination`, for
            `curvature.find_multipliers`.
        is_newton: whether to compute only the offset: the step of the dependent columns if the independent columns do
            not move.

    Returns:
        The number of independent columns (0 with `is_newton` and hard rows), and the number of remaining rows.
    """
    elimination_order, pivot_row, independent_index, independent_column = (
        problem.elimination_order,
        problem.pivot_row,
        problem.independent_index,
        problem.independent_column,
    )
    null_space_count, offset = problem.null_space_count, problem.offset
    column_count = problem.column_count
    for v in range(column_count):
        pivot_row[v] = NO_INDEX
        offset[v] = 0.0
        null_space_count[v] = 0
    if hard_end == 0:
        for k in range(column_count):
            v = elimination_order[k]
            independent_index[v] = k
            independent_column[k] = v
        return column_count, problem.runtime_zero
    remaining_count = problem.runtime_zero
    for b in range(hard_end):
        reduce_block(problem, stage, buffer, b, stores_row_operations)
        remaining_count = collect_remaining_rows(problem, b, remaining_count)
    if remaining_count > 0:
        reduce_remaining_rows(problem, remaining_count)
    n = problem.runtime_zero
    if is_newton:
        write_particular_step(problem, hard_end, remaining_count)
        return n, remaining_count
    for k in range(column_count):
        v = elimination_order[k]
        if pivot_row[v] == NO_INDEX:
            independent_index[v] = n
            independent_column[n] = v
            n += 1
    build_null_space_map(problem, hard_end, remaining_count, n)
    return n, remaining_count


@subroutine
def reduce_block(problem, stage, buffer, b, stores_row_operations):
    """Eliminate the rows of one block on the columns that no other hard block depends on."""
    bound_state, pivot_row, pivot_column = problem.bound_state, problem.pivot_row, problem.pivot_column
    block_columns, block_count, rhs = problem.block_columns, problem.hard_block_count[stage], problem.rhs
    jacobian, residual, held_residual = problem.jacobian[buffer], problem.residual[buffer], problem.held_residual
    block = problem.blocks[b]
    m, width, first_row, first_column = block.row_count, block.column_count, block.first_row, block.first_column
    for k in range(block.first_jacobian, block.first_jacobian + m * width):
        problem.tableau[k] = jacobian[k]
    for r in range(first_row, first_row + m):
        rhs[r] = residual[r] - held_residual[r]
        pivot_column[r] = NO_INDEX
    if stores_row_operations:
        row_combination = block_row_combination(problem, block)
        for r in range(m):
            for k in range(m):
                row_combination[r, k] = 1.0 if r == k else 0.0
    if block.has_bands:  # a free slack solves its row and leaves the other columns unconstrained
        for r in range(m):
            u = problem.slacks[first_row + r].column
            if u >= 0 and bound_state[block_columns[first_column + u]] == FREE:
                solve_row_for_column(problem, block, r, u, stores_row_operations)
    # a candidate that becomes a pivot below stays in the list: it is zero in all rows that have no pivot yet
    candidates, candidate_count = problem.column_list, problem.runtime_zero
    for u in range(width):
        v = block_columns[first_column + u]
        if block_count[v] == 1 and bound_state[v] == FREE and pivot_row[v] == NO_INDEX:
            candidates[candidate_count] = u
            candidate_count += 1
    tableau = matrix_at(problem.tableau, block.first_jacobian, m, width)
    for _ in range(m):
        no_index = problem.runtime_zero + NO_INDEX
        largest_entry, best_row, best_column = MIN_BLOCK_PIVOT, no_index, no_index
        for r in range(m):
            if pivot_column[first_row + r] == NO_INDEX:
                for k in range(candidate_count):
                    entry = abs(tableau[r, candidates[k]])
                    if entry > largest_entry:
                        largest_entry, best_row, best_column = entry, r, candidates[k]
        if best_row == NO_INDEX:
            break
        solve_row_for_column(problem, block, best_row, best_column, stores_row_operations)


@subroutine
def block_row_combination(problem, block):
    """Return the row operations of the elimination of a block, (rows, rows), as a view of `row_combination`."""
    m = block.row_count
    return matrix_at(problem.row_combination, problem.max_block_rows * block.first_row, m, m)


@subroutine
def solve_row_for_column(problem, block, r, u, stores_row_operations):
    """Solve row r of a block for its column u, and subtract multiples of row r from the other rows of the block."""
    m, width, first_row = block.row_count, block.column_count, block.first_row
    tableau, rhs = matrix_at(problem.tableau, block.first_jacobian, m, width), problem.rhs
    row_combination = block_row_combination(problem, block)
    problem.pivot_column[first_row + r] = u
    problem.pivot_row[problem.block_columns[block.first_column + u]] = first_row + r
    inverse = 1.0 / tableau[r, u]
    for k in range(width):
        tableau[r, k] *= inverse
    tableau[r, u] = 1.0
    rhs[first_row + r] *= inverse
    if stores_row_operations:
        for k in range(m):
            row_combination[r, k] *= inverse
    for other_row in range(m):
        factor = tableau[other_row, u]
        if other_row != r and factor != 0.0:
            for k in range(width):
                tableau[other_row, k] -= factor * tableau[r, k]
            tableau[other_row, u] = 0.0
            rhs[first_row + other_row] -= factor * rhs[first_row + r]
            if stores_row_operations:
                for k in range(m):
                    row_combination[other_row, k] -= factor * row_combination[r, k]


@subroutine
def remaining_rows(problem, remaining_count):
    """Return the remaining rows over all columns with their right-hand sides, (remaining, columns + 1), as a view."""
    return matrix_at(problem.dense_rows, 0, remaining_count, problem.column_count + 1)


@subroutine
def collect_remaining_rows(problem, b, remaining_count):
    """Copy the nonzero rows without pivot of a block to `dense_rows`; return the new number of remaining rows."""
    block, column_count = problem.blocks[b], problem.column_count
    m, width, first_row = block.row_count, block.column_count, block.first_row
    tableau = matrix_at(problem.tableau, block.first_jacobian, m, width)
    rows = remaining_rows(problem, remaining_count + m)
    for r in range(m):
        problem.remaining_row[first_row + r] = NO_INDEX
        if problem.pivot_column[first_row + r] != NO_INDEX:
            continue
        largest_entry = 0.0
        for u in range(width):
            largest_entry = max(largest_entry, abs(tableau[r, u]))
        if largest_entry <= MIN_PIVOT:
            continue
        for v in range(column_count):
            rows[remaining_count, v] = 0.0
        for u in range(width):
            rows[remaining_count, problem.block_columns[block.first_column + u]] = tableau[r, u]
        rows[remaining_count, column_count] = problem.rhs[first_row + r]
        problem.remaining_pivot[remaining_count] = NO_INDEX
        problem.remaining_row[first_row + r] = remaining_count
        remaining_count += 1
    return remaining_count


@subroutine
def reduce_remaining_rows(problem, remaining_count):
    """Eliminate the remaining rows of all blocks; a column at a bound becomes a pivot only if no other column can."""
    bound_state, remaining_pivot, column_count = problem.bound_state, problem.remaining_pivot, problem.column_count
    rows = remaining_rows(problem, remaining_count)
    for allows_bounds in range(2):
        for _ in range(remaining_count):
            no_index = problem.runtime_zero + NO_INDEX
            largest_entry, best_row, best_column = MIN_PIVOT, no_index, no_index
            for r in range(remaining_count):
                if remaining_pivot[r] == NO_INDEX:
                    for v in range(column_count):
                        entry = abs(rows[r, v])
                        if entry > largest_entry and (
                            bound_state[v] == FREE or (allows_bounds == 1 and bound_state[v] != LOCKED)
                        ):
                            largest_entry, best_row, best_column = entry, r, v
            if best_row == NO_INDEX:
                break
            bound_state[best_column] = FREE
            remaining_pivot[best_row] = best_column
            problem.pivot_row[best_column] = FROM_REMAINING_ROWS + best_row
            inverse = 1.0 / rows[best_row, best_column]
            for k in range(column_count + 1):
                rows[best_row, k] *= inverse
            rows[best_row, best_column] = 1.0
            for r in range(remaining_count):
                factor = rows[r, best_column]
                if r != best_row and factor != 0.0:
                    for k in range(column_count + 1):
                        rows[r, k] -= factor * rows[best_row, k]
                    rows[r, best_column] = 0.0


@subroutine
def write_particular_step(problem, hard_end, remaining_count):
    """Write the step of the dependent columns for a zero step of the independent columns to `offset`."""
    block_columns, pivot_row, pivot_column = problem.block_columns, problem.pivot_row, problem.pivot_column
    offset, rows = problem.offset, remaining_rows(problem, remaining_count)
    for r in range(remaining_count):
        if problem.remaining_pivot[r] != NO_INDEX:
            offset[problem.remaining_pivot[r]] = -rows[r, problem.column_count]
    for b in range(hard_end):
        block = problem.blocks[b]
        width, first_row, first_column = block.column_count, block.first_row, block.first_column
        tableau = matrix_at(problem.tableau, block.first_jacobian, block.row_count, width)
        for r in range(block.row_count):
            if pivot_column[first_row + r] == NO_INDEX:
                continue
            constant = -problem.rhs[first_row + r]
            if remaining_count > 0:
                for u in range(width):
                    v = block_columns[first_column + u]
                    if pivot_row[v] >= FROM_REMAINING_ROWS:
                        constant -= tableau[r, u] * offset[v]
            offset[block_columns[first_column + pivot_column[first_row + r]]] = constant


@subroutine
def build_null_space_map(problem, hard_end, remaining_count, n):
    """Compute the offset and the sparse rows of Z, first from the remaining rows, then from the rows of the blocks."""
    block_columns, pivot_row, independent_index = problem.block_columns, problem.pivot_row, problem.independent_index
    # `is_listed`: for each independent index, 1 if it is in `column_list`; its position is not needed here
    independent_column, is_listed, column_list = (
        problem.independent_column,
        problem.list_position,
        problem.column_list,
    )
    null_space_count, null_space_start, null_space_index, Z = (
        problem.null_space_count,
        problem.null_space_start,
        problem.null_space_index,
        problem.null_space,
    )
    pivot_column, offset, rhs, rows = (
        problem.pivot_column,
        problem.offset,
        problem.rhs,
        remaining_rows(problem, remaining_count),
    )
    z_row = problem.reduced_step  # scratch memory: the row of Z, over all independent columns
    total_entry_count = 0
    for r in range(remaining_count):
        v = problem.remaining_pivot[r]
        if v == NO_INDEX:
            continue
        offset[v] = -rows[r, problem.column_count]
        null_space_start[v] = total_entry_count
        if n <= FEW_INDEPENDENT_COLUMNS:
            # `write_null_space_row` reads the entries of the independent columns at the start of the dense row
            for i in range(n):
                z_row[i] = rows[r, independent_column[i]]
            for i in range(n):
                rows[r, i] = z_row[i]
                if z_row[i] != 0.0:
                    null_space_index[total_entry_count] = i
                    Z[total_entry_count] = -z_row[i]
                    total_entry_count += 1
            null_space_count[v] = total_entry_count - null_space_start[v]
            continue
        for i in range(n):
            factor = rows[r, independent_column[i]]
            if factor != 0.0:
                null_space_index[total_entry_count] = i
                Z[total_entry_count] = -factor
                total_entry_count += 1
        null_space_count[v] = total_entry_count - null_space_start[v]
    for i in range(n):
        is_listed[i] = 0
        z_row[i] = 0.0
    for b in range(hard_end):
        block = problem.blocks[b]
        width, first_row, first_column = block.column_count, block.first_row, block.first_column
        tableau = matrix_at(problem.tableau, block.first_jacobian, block.row_count, width)
        for r in range(block.row_count):
            if pivot_column[first_row + r] == NO_INDEX:
                continue
            v = block_columns[first_column + pivot_column[first_row + r]]
            constant, entry_count = -rhs[first_row + r], problem.runtime_zero
            if n <= FEW_INDEPENDENT_COLUMNS:
                total_entry_count = write_null_space_row(
                    problem, tableau[r], first_column, v, constant, n, total_entry_count
                )
                continue
            for u in range(width):
                factor, other_column = tableau[r, u], block_columns[first_column + u]
                if factor == 0.0 or other_column == v:
                    continue
                if pivot_row[other_column] == NO_INDEX:
                    entry_count = add_null_space_entry(problem, independent_index[other_column], -factor, entry_count)
                elif pivot_row[other_column] >= FROM_REMAINING_ROWS:  # substitute the other column
                    constant -= factor * offset[other_column]
                    for k in range(
                        null_space_start[other_column], null_space_start[other_column] + null_space_count[other_column]
                    ):
                        entry_count = add_null_space_entry(problem, null_space_index[k], -factor * Z[k], entry_count)
            offset[v] = constant
            null_space_start[v] = total_entry_count
            for k in range(entry_count):
                i = column_list[k]
                null_space_index[total_entry_count] = i
                Z[total_entry_count] = z_row[i]
                z_row[i] = 0.0
                is_listed[i] = 0
                total_entry_count += 1
            null_space_count[v] = entry_count


@subroutine
def write_null_space_row(problem, row, first_column, v, constant, n, total_entry_count):
    """Write the row of Z and the offset of column v; return the new number of entries of Z.

    The loops are over all independent columns; `FEW_INDEPENDENT_COLUMNS` limits their number.

    Args:
        row: the row of v in the tableau of a block, over the columns of the block, which begin at `first_column`.
        constant: offset of column v, without the offsets of other dependent columns in the row.
        total_entry_count: number of entries of Z before this row.
    """
    block_columns, pivot_row, independent_index = problem.block_columns, problem.pivot_row, problem.independent_index
    z_row = problem.reduced_step  # scratch memory: the row of Z, over all independent columns
    for i in range(n):
        z_row[i] = 0.0
    for u in range(row.shape[0]):
        factor, other_column = row[u], block_columns[first_column + u]
        if factor == 0.0 or other_column == v:
            continue
        if pivot_row[other_column] == NO_INDEX:
            z_row[independent_index[other_column]] -= factor
        elif pivot_row[other_column] >= FROM_REMAINING_ROWS:  # substitute the other column
            constant -= factor * problem.offset[other_column]
            remaining_index = pivot_row[other_column] - FROM_REMAINING_ROWS
            dense_row = remaining_rows(problem, remaining_index + 1)[remaining_index]
            for i in range(n):
                z_row[i] += factor * dense_row[i]
    problem.offset[v] = constant
    problem.null_space_start[v] = total_entry_count
    for i in range(n):
        if z_row[i] != 0.0:
            problem.null_space_index[total_entry_count] = i
            problem.null_space[total_entry_count] = z_row[i]
            total_entry_count += 1
    problem.null_space_count[v] = total_entry_count - problem.null_space_start[v]
    return total_entry_count


@subroutine
def add_null_space_entry(problem, i, value, entry_count):
    """Add a value to entry i of a row of Z (in `reduced_step`) and list i; return the number of listed entries."""
    # see `build_null_space_map` for `is_listed` and `z_row`
    is_listed, column_list, z_row = problem.list_position, problem.column_list, problem.reduced_step
    if is_listed[i] == 0:
        is_listed[i] = 1
        column_list[entry_count] = i
        entry_count += 1
    z_row[i] += value
    return entry_count
