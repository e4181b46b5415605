"""Elimination of the linearised hard constraints: each row is solved for one column, which then depends on the others.

A step d of all columns has to satisfy h + G d = 0, where h are the hard residuals (minus the values at which they are
held) and G is their Jacobian. Gauss-Jordan elimination with complete pivoting divides a row of the tableau [G | h] by
its pivot, the largest entry of all rows that have none yet, and subtracts multiples of this row from the other rows, so
that the column of the pivot is zero there. The columns with a pivot are dependent, the others are independent, and the
rows then say

    d[dependent] = offset + Z d[independent]

where (1, Z) is a basis of the null space of G. Each dependent column has a sparse row of Z (`null_space_row`).

First each block is eliminated on the columns that no other hard block depends on, such as the joints of one leg; this
saves most of the time if there are many legs. The remaining rows of all blocks are then eliminated together, on all
columns. A row that has no pivot even then is redundant, so over-constrained loops need no separate code. Indices such
as `b` and `v` are explained in `problem_layout.py`.
"""

from __future__ import annotations

from .compiler import inline, subroutine
from .problem_layout import *
from .problem_views import columns_of_block, jacobian_of_block, null_space_row, rows_of_block, tableau_of_block
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
def count_independent_columns(problem):
    """Return the number of independent columns, those without a pivot."""
    independent_count = problem.runtime_zero
    for v in range(problem.column_count):
        if problem.pivot_row[v] == NO_INDEX:
            independent_count += 1
    return independent_count


@subroutine
def reduce_block(problem, stage, buffer, b, stores_row_operations):
    """Eliminate the rows of one block on the columns that no other hard block depends on."""
    block, bound_state, block_count = problem.blocks[b], problem.bound_state, problem.hard_block_count[stage]
    m, width, columns = block.row_count, block.column_count, columns_of_block(problem, block)
    tableau, J = tableau_of_block(problem, block), jacobian_of_block(problem, buffer, block)
    rhs, residual, held_residual, pivot_column = (
        rows_of_block(problem.rhs, block),
        rows_of_block(problem.residual[buffer], block),
        rows_of_block(problem.held_residual, block),
        rows_of_block(problem.pivot_column, block),
    )
    for r in range(m):
        for u in range(width):
            tableau[r, u] = J[r, u]
        rhs[r] = residual[r] - held_residual[r]
        pivot_column[r] = NO_INDEX
    if stores_row_operations:
        row_combination = block_row_combination(problem, block)
        for r in range(m):
            for k in range(m):
                row_combination[r, k] = 1.0 if r == k else 0.0
    if block.has_bands:  # a free slack solves its row and leaves the other columns unconstrained
        for r in range(m):
            u = problem.slacks[block.first_row + r].column
            if u >= 0 and bound_state[columns[u]] == FREE:
                solve_row_for_column(problem, block, r, u, stores_row_operations)
    # a candidate that becomes a pivot below stays in the list: it is zero in all rows that have no pivot yet
    candidates, candidate_count = problem.column_list, problem.runtime_zero
    for u in range(width):
        v = columns[u]
        if block_count[v] == 1 and bound_state[v] == FREE and problem.pivot_row[v] == NO_INDEX:
            candidates[candidate_count] = u
            candidate_count += 1
    for _ in range(m):
        no_index = problem.runtime_zero + NO_INDEX
        largest_entry, best_row, best_column = MIN_BLOCK_PIVOT, no_index, no_index
        for r in range(m):
            if pivot_column[r] == NO_INDEX:
                for k in range(candidate_count):
                    entry = abs(tableau[r, candidates[k]])
                    if entry > largest_entry:
                        largest_entry, best_row, best_column = entry, r, candidates[k]
        if best_row == NO_INDEX:
            break
        solve_row_for_column(problem, block, best_row, best_column, stores_row_operations)


@subroutine
def block_row_combination(problem, block):
    """Return the row operations of the elimination of a block, (m, m), as a view of `row_combination`."""
    m = block.row_count
    return matrix_at(problem.row_combination, problem.max_block_rows * block.first_row, m, m)


@inline
def scale_row(row, factor):
    """Multiply a row of a matrix by a factor."""
    for k in range(len(row)):
        row[k] *= factor


@inline
def subtract_multiple(row, factor, pivot_row):
    """Subtract a multiple of the pivot row from another row of a matrix."""
    for k in range(len(row)):
        row[k] -= factor * pivot_row[k]


@subroutine
def solve_row_for_column(problem, block, r, u, stores_row_operations):
    """Solve row r of a block for its column u, and subtract multiples of row r from the other rows of the block."""
    tableau, rhs = tableau_of_block(problem, block), rows_of_block(problem.rhs, block)
    row_combination = block_row_combination(problem, block)
    problem.pivot_column[block.first_row + r] = u
    problem.pivot_row[columns_of_block(problem, block)[u]] = block.first_row + r
    inverse = 1.0 / tableau[r, u]
    scale_row(tableau[r], inverse)
    tableau[r, u] = 1.0
    rhs[r] *= inverse
    if stores_row_operations:
        scale_row(row_combination[r], inverse)
    for other_row in range(block.row_count):
        factor = tableau[other_row, u]
        if other_row != r and factor != 0.0:
            subtract_multiple(tableau[other_row], factor, tableau[r])
            tableau[other_row, u] = 0.0
            rhs[other_row] -= factor * rhs[r]
            if stores_row_operations:
                subtract_multiple(row_combination[other_row], factor, row_combination[r])


@subroutine
def remaining_rows(problem, remaining_count):
    """Return the remaining rows over all columns with their right-hand sides, (remaining, columns + 1), as a view."""
    return matrix_at(problem.dense_rows, 0, remaining_count, problem.column_count + 1)


@subroutine
def collect_remaining_rows(problem, b, remaining_count):
    """Copy the nonzero rows without pivot of a block to `dense_rows`; return the new number of remaining rows."""
    block, column_count = problem.blocks[b], problem.column_count
    tableau, columns = tableau_of_block(problem, block), columns_of_block(problem, block)
    rhs, pivot_column, remaining_row = (
        rows_of_block(problem.rhs, block),
        rows_of_block(problem.pivot_column, block),
        rows_of_block(problem.remaining_row, block),
    )
    rows = remaining_rows(problem, remaining_count + block.row_count)
    for r in range(block.row_count):
        remaining_row[r] = NO_INDEX
        if pivot_column[r] != NO_INDEX:
            continue
        largest_entry = 0.0
        for u in range(block.column_count):
            largest_entry = max(largest_entry, abs(tableau[r, u]))
        if largest_entry <= MIN_PIVOT:
            continue
        row = rows[remaining_count]
        for v in range(column_count):
            row[v] = 0.0
        for u in range(block.column_count):
            row[columns[u]] = tableau[r, u]
        row[column_count] = rhs[r]
        problem.remaining_pivot[remaining_count] = NO_INDEX
        remaining_row[r] = remaining_count
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
            scale_row(rows[best_row], 1.0 / rows[best_row, best_column])
            rows[best_row, best_column] = 1.0
            for r in range(remaining_count):
                factor = rows[r, best_column]
                if r != best_row and factor != 0.0:
                    subtract_multiple(rows[r], factor, rows[best_row])
                    rows[r, best_column] = 0.0


@subroutine
def write_particular_step(problem, hard_end, remaining_count):
    """Write the step of the dependent columns for a zero step of the independent columns to `offset`."""
    pivot_row, offset, rows = problem.pivot_row, problem.offset, remaining_rows(problem, remaining_count)
    for r in range(remaining_count):
        if problem.remaining_pivot[r] != NO_INDEX:
            offset[problem.remaining_pivot[r]] = -rows[r, problem.column_count]
    for b in range(hard_end):
        block = problem.blocks[b]
        tableau, columns = tableau_of_block(problem, block), columns_of_block(problem, block)
        rhs, pivot_column = rows_of_block(problem.rhs, block), rows_of_block(problem.pivot_column, block)
        for r in range(block.row_count):
            if pivot_column[r] == NO_INDEX:
                continue
            constant = -rhs[r]
            if remaining_count > 0:
                for u in range(block.column_count):
                    v = columns[u]
                    if pivot_row[v] >= FROM_REMAINING_ROWS:
                        constant -= tableau[r, u] * offset[v]
            offset[columns[pivot_column[r]]] = constant


@subroutine
def build_null_space_map(problem, hard_end, remaining_count, n):
    """Compute the offset and the sparse rows of Z, first from the remaining rows, then from the rows of the blocks.

    A row of the tableau that is solved for column v says step[v] = -rhs - sum of its other entries times their steps.
    Other columns of the row are independent, or solved for by a remaining row, whose row of Z is substituted.
    """
    column_count, rows, z_row = problem.column_count, remaining_rows(problem, remaining_count), scratch_row(problem)
    total_entry_count = problem.runtime_zero
    for r in range(remaining_count):
        row, v = rows[r], problem.remaining_pivot[r]
        if v == NO_INDEX:
            continue
        problem.offset[v] = -row[column_count]
        for i in range(n):
            z_row[i] = -row[problem.independent_column[i]]
        total_entry_count = append_null_space_row(problem, v, z_row, n, total_entry_count)
        if n <= FEW_INDEPENDENT_COLUMNS:  # `write_null_space_row` reads the row of Z at the start of the dense row
            for i in range(n):
                row[i] = z_row[i]
    for i in range(n):
        problem.list_position[i] = 0
        z_row[i] = 0.0
    for b in range(hard_end):
        block = problem.blocks[b]
        tableau, columns = tableau_of_block(problem, block), columns_of_block(problem, block)
        rhs, pivot_column = rows_of_block(problem.rhs, block), rows_of_block(problem.pivot_column, block)
        for r in range(block.row_count):
            if pivot_column[r] == NO_INDEX:
                continue
            v = columns[pivot_column[r]]
            if n <= FEW_INDEPENDENT_COLUMNS:
                total_entry_count = write_null_space_row(problem, tableau[r], columns, v, -rhs[r], n, total_entry_count)
            else:
                total_entry_count = write_sparse_null_space_row(
                    problem, tableau[r], columns, v, -rhs[r], total_entry_count
                )


@inline
def scratch_row(problem):
    """Return the scratch memory for one row of Z over all independent columns."""
    return problem.reduced_step


@subroutine
def append_null_space_row(problem, v, z_row, n, total_entry_count):
    """Store the nonzero entries of `z_row` as the row of Z of column v; return the new number of entries of Z."""
    problem.null_space_start[v] = total_entry_count
    for i in range(n):
        if z_row[i] != 0.0:
            problem.null_space_index[total_entry_count] = i
            problem.null_space[total_entry_count] = z_row[i]
            total_entry_count += 1
    problem.null_space_count[v] = total_entry_count - problem.null_space_start[v]
    return total_entry_count


@subroutine
def write_null_space_row(problem, row, columns, v, constant, n, total_entry_count):
    """Write the row of Z and the offset of column v; return the new number of entries of Z.

    The loops are over all independent columns; `FEW_INDEPENDENT_COLUMNS` limits their number.

    Args:
        row: the row of the tableau of a block that is solved for v, (width,).
        columns: the columns of the block, (width,).
        constant: offset of column v, without the offsets of other dependent columns in the row.
        total_entry_count: number of entries of Z before this row.
    """
    pivot_row, independent_index, z_row = problem.pivot_row, problem.independent_index, scratch_row(problem)
    for i in range(n):
        z_row[i] = 0.0
    for u in range(len(row)):
        factor, other_column = row[u], columns[u]
        if factor == 0.0 or other_column == v:
            continue
        if pivot_row[other_column] == NO_INDEX:
            z_row[independent_index[other_column]] -= factor
        elif pivot_row[other_column] >= FROM_REMAINING_ROWS:  # substitute the other column
            constant -= factor * problem.offset[other_column]
            remaining_index = pivot_row[other_column] - FROM_REMAINING_ROWS
            other_z_row = remaining_rows(problem, remaining_index + 1)[remaining_index]
            for i in range(n):
                z_row[i] -= factor * other_z_row[i]
    problem.offset[v] = constant
    return append_null_space_row(problem, v, z_row, n, total_entry_count)


@subroutine
def write_sparse_null_space_row(problem, row, columns, v, constant, total_entry_count):
    """Write the row of Z and the offset of column v as `write_null_space_row`, by loops over nonzero entries only.

    The scratch row has to be zero at the call, and is zero at the end.
    """
    pivot_row, independent_index, column_list, z_row = (
        problem.pivot_row,
        problem.independent_index,
        problem.column_list,
        scratch_row(problem),
    )
    entry_count = problem.runtime_zero
    for u in range(len(row)):
        factor, other_column = row[u], columns[u]
        if factor == 0.0 or other_column == v:
            continue
        if pivot_row[other_column] == NO_INDEX:
            entry_count = add_null_space_entry(problem, independent_index[other_column], -factor, entry_count)
        elif pivot_row[other_column] >= FROM_REMAINING_ROWS:  # substitute the other column
            constant -= factor * problem.offset[other_column]
            indices, entries = null_space_row(problem, other_column)
            for k in range(len(entries)):
                entry_count = add_null_space_entry(problem, indices[k], -factor * entries[k], entry_count)
    problem.offset[v] = constant
    problem.null_space_start[v], problem.null_space_count[v] = total_entry_count, entry_count
    indices, entries = null_space_row(problem, v)
    for k in range(entry_count):
        i = column_list[k]
        indices[k], entries[k] = i, z_row[i]
        z_row[i] = 0.0
        problem.list_position[i] = 0
    return total_entry_count + entry_count


@subroutine
def add_null_space_entry(problem, i, value, entry_count):
    """Add a value to entry i of the scratch row of Z and list i; return the number of listed entries."""
    # 1 if i is listed; its position in the list is not needed here
    is_listed, column_list, z_row = problem.list_position, problem.column_list, scratch_row(problem)
    if is_listed[i] == 0:
        is_listed[i] = 1
        column_list[entry_count] = i
        entry_count += 1
    z_row[i] += value
    return entry_count
