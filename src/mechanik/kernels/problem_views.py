"""Views of the tables of a problem as vectors and matrices: parts of a block, system matrices, and the null space basis.

The rows, columns, Jacobians and system matrices of all blocks are stored one after the other in flat tables. These
functions return the part that belongs to one block, or a table as a matrix of the present size, without copying:
`J = jacobian_of_block(problem, buffer, block)`, then `J[r, u]`. Writing to a view writes to the table.
"""

from __future__ import annotations

from .compiler import inline
from .tables import matrix_at, vector_at


@inline
def rows_of_block(table, block):
    """Return the entries of a table with one number for each row that belong to the rows of a block, (m,)."""
    return vector_at(table, block.first_row, block.row_count)


@inline
def columns_of_block(problem, block):
    """Return the columns that a block depends on, (width,): entry u is the column v of the problem."""
    return vector_at(problem.block_columns, block.first_column, block.column_count)


@inline
def jacobian_of_block(problem, buffer, block):
    """Return the Jacobian of a block in one of the two buffers, (m, width)."""
    return matrix_at(problem.jacobian[buffer], block.first_jacobian, block.row_count, block.column_count)


@inline
def tableau_of_block(problem, block):
    """Return the Jacobian of a hard block during elimination, (m, width)."""
    return matrix_at(problem.tableau, block.first_jacobian, block.row_count, block.column_count)


@inline
def square_matrix(table, n):
    """Return the first n * n numbers of a table as a matrix (n, n)."""
    return matrix_at(table, 0, n, n)


@inline
def null_space_row(problem, v):
    """Return the row of the null space basis Z of a dependent column: independent indices and nonzero entries.

    step[v] = offset[v] + sum of entries[k] * reduced_step[indices[k]]
    """
    first, count = problem.null_space_start[v], problem.null_space_count[v]
    return vector_at(problem.null_space_index, first, count), vector_at(problem.null_space, first, count)
