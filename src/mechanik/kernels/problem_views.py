"""Views of the tables of a problem as vectors and matrices: parts of a block, system matrices, null space basis.

The rows, columns and Jacobians of all blocks are stored one after the other in flat tables, and the tables of system
matrices are as long as the largest system needs. These functions return the part that belongs to one block, or a matrix
of the present size: `J = jacobian_of_block(problem, buffer, block)`, then `J[r, u]`. Nothing is copied; writing to a
view writes to the table.
"""

from __future__ import annotations

from .compiler import inline
from .problem_layout import Block, ProblemTables
from .tables import Floats, Ints, Numbers, matrix_at, vector_at


@inline
def rows_of_block(table: Numbers, block: Block) -> Numbers:
    """Return the part for the m rows of a block of a table with one number for each row of the problem, (m,)."""
    return vector_at(table, block.first_row, block.row_count)


@inline
def columns_of_block(problem: ProblemTables, block: Block) -> Ints:
    """Return the columns that a block depends on, (width,): entry u is the column v of the problem."""
    return vector_at(problem.block_columns, block.first_column, block.column_count)


@inline
def jacobian_of_block(problem: ProblemTables, buffer: int, block: Block) -> Floats:
    """Return the Jacobian of a block in one of the two buffers, (m, width)."""
    return matrix_at(problem.jacobian[buffer], block.first_jacobian, block.row_count, block.column_count)


@inline
def tableau_of_block(problem: ProblemTables, block: Block) -> Floats:
    """Return the Jacobian of a hard block during elimination, (m, width)."""
    return matrix_at(problem.tableau, block.first_jacobian, block.row_count, block.column_count)


@inline
def square_matrix(table: Floats, n: int) -> Floats:
    """Return the first n * n numbers of a table as a matrix (n, n)."""
    return matrix_at(table, 0, n, n)


@inline
def count_position_rows(row_mask: int) -> int:
    """Return how many rows of a block belong to its position part (`Block.row_mask`); they come first."""
    return (row_mask & 1) + (row_mask >> 1 & 1) + (row_mask >> 2 & 1)


@inline
def null_space_row(problem: ProblemTables, v: int) -> tuple[Ints, Floats]:
    """Return the row of the null space basis Z of a dependent column: independent indices, and nonzero entries.

    Z is stored in compressed sparse rows:

        step[v] = offset[v] + sum over k of entries[k] * reduced_step[indices[k]]
    """
    first, count = problem.null_space_start[v], problem.null_space_count[v]
    return vector_at(problem.null_space_index, first, count), vector_at(problem.null_space, first, count)
