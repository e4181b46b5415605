"""Solvers for the symmetric linear systems of a step: envelope L D L', Jacobi eigenvalues, and the dual form.

A symmetric matrix H is factored as L D L' with a unit lower triangular L and a diagonal D. Only the lower triangle is
used, and of row i only the entries from the first nonzero one, column `envelope[i]`, to the diagonal (the envelope, or
skyline); L has the same envelope as H.

The dual form is for problems with few rows and many columns, such as a long arm: it gives the same step from a matrix
with one row for each residual row. A row with a single column, such as that of a rest pose, needs no row in this
matrix: the square of its derivative is added to D, a diagonal matrix that also contains the damping. With the other
rows B and their residuals e, the step of the independent columns is

    s = 1/D (p - B'y),    (1 + B 1/D B') y = e + B 1/D p

where p is the negative gradient of half the squares of the single-column rows, and y = e + B s is the residual after
the step. The damping and the single-column rows of each dependent column become one more row of B, since a dependent
column is a linear function of the independent columns. The time is linear in the number of columns instead of cubic.
This is the formula of Sherman, Morrison and Woodbury, in a form in which large terms do not cancel if the damping is
small.

Indices such as `b` and `v` are explained in `problem_layout.py`.
"""

from __future__ import annotations

import math

import numpy as np

from .compiler import inline, subroutine
from .elimination import NO_INDEX
from .problem_layout import *
from .problem_views import (
    columns_of_block,
    count_position_rows,
    jacobian_of_block,
    null_space_row,
    rows_of_block,
    square_matrix,
)
from .tables import matrix_at

PIVOT_TOLERANCE = 1e-7
"""Pivots count as zero below this ratio to the largest diagonal entry, since second derivatives have errors. With a
smaller ratio these errors would be taken for negative curvature."""


@subroutine
def solve_ldlt(problem, H, envelope, y, min_pivot):
    """Solve H y = b in place by H = L D L', within the envelope of the lower triangle.

    y contains b before and the solution after the call. H, (n, n), is replaced by 1 / D on the diagonal and L below it;
    row i of L is zero before column `envelope[i]`. A pivot that is not positive, which second derivatives may cause,
    counts as infinite: its column does not move. With a positive `min_pivot` there is a tolerance, `PIVOT_TOLERANCE`
    times the largest diagonal entry. Then pivots down to minus the tolerance are accepted too, and all accepted pivots
    are raised to at least the tolerance and `min_pivot`.

    Returns:
        The index of the first pivot that is not accepted, or `NO_INDEX`; the smallest accepted pivot before it is
        raised, as a ratio to the largest diagonal entry (0 to 1); the value of the first pivot that is not accepted.
    """
    n = H.shape[0]
    negative_index, smallest_pivot, pivot_value, largest_diagonal = problem.runtime_zero + NO_INDEX, 1.0, 0.0, 0.0
    for i in range(n):
        largest_diagonal = max(largest_diagonal, H[i, i])
    tolerance = PIVOT_TOLERANCE * largest_diagonal if min_pivot > 0.0 else 0.0
    for i in range(n):
        row, first_column = H[i], envelope[i]
        for j in range(first_column + 1, i):
            previous_row, scaled_entry = H[j], row[j]  # an entry of L D
            for k in range(max(first_column, envelope[j]), j):
                scaled_entry -= row[k] * previous_row[k]
            row[j] = scaled_entry
        pivot, value = row[i], y[i]
        for k in range(first_column, i):
            scaled_entry = row[k]
            entry = scaled_entry * H[k, k]
            row[k] = entry
            pivot -= scaled_entry * entry
            value -= entry * y[k]
        if pivot > 1e-300 or (tolerance > 0.0 and pivot >= -tolerance):
            smallest_pivot = min(smallest_pivot, max(pivot, 0.0) / largest_diagonal)
            row[i] = 1.0 / max(pivot, tolerance, min_pivot)
        else:
            if negative_index == NO_INDEX:
                negative_index, pivot_value = i, pivot
            row[i] = 0.0
        y[i] = value
    for i in range(n):
        y[i] *= H[i, i]
    for i in range(n - 1, -1, -1):
        row, value = H[i], y[i]
        for k in range(envelope[i], i):
            y[k] -= row[k] * value
    return negative_index, smallest_pivot, pivot_value


@subroutine
def write_negative_curvature_direction(problem, L, negative_index, pivot_value):
    """Write a unit direction y of negative curvature of H = L D L' to `negative_curvature`; return y'Hy.

    y is parallel to the solution of L'y = u, where u is the unit vector of the first pivot that is not accepted (index
    `negative_index`, value `pivot_value`; see `solve_ldlt`).
    """
    y, envelope = problem.negative_curvature, problem.envelope
    for i in range(L.shape[0]):
        y[i] = 0.0
    y[negative_index] = 1.0
    norm2 = 0.0
    for i in range(negative_index, -1, -1):
        row, value = L[i], y[i]
        norm2 += value * value
        for k in range(envelope[i], i):
            y[k] -= row[k] * value
    for i in range(negative_index + 1):
        y[i] /= math.sqrt(norm2)
    return pivot_value / norm2


@subroutine
def solve_by_eigenvalues(problem, H, envelope, y):
    """Solve H y = b in place by the eigenvalues of H (Jacobi rotations); y has no component in the null space of H.

    Only the lower triangle of H, (n, n), is read, within the envelope; H becomes diagonal. The columns of V are the
    eigenvectors; p and q are the axes of a Jacobi rotation.
    """
    n = H.shape[0]
    V, components = square_matrix(problem.eigenvectors, n), problem.model_gradient
    for i in range(n):
        for k in range(n):
            V[i, k] = 1.0 if i == k else 0.0
        for k in range(i):
            if k < envelope[i]:
                H[i, k] = 0.0
            H[k, i] = H[i, k]
    for _ in range(30):
        off_diagonal_square, diagonal_square = 0.0, 0.0
        for i in range(n):
            diagonal_square += H[i, i] * H[i, i]
            for k in range(i):
                off_diagonal_square += H[i, k] * H[i, k]
        if off_diagonal_square <= 1e-30 * diagonal_square:
            break
        for p in range(n - 1):
            for q in range(p + 1, n):
                entry = H[p, q]
                if entry != 0.0:
                    cotangent = (H[q, q] - H[p, p]) / (2.0 * entry)  # of twice the angle
                    tangent = math.copysign(1.0, cotangent) / (abs(cotangent) + math.sqrt(cotangent * cotangent + 1.0))
                    cosine = 1.0 / math.sqrt(tangent * tangent + 1.0)
                    rotate_columns(H, p, q, cosine, tangent * cosine)
                    rotate_rows(H, p, q, cosine, tangent * cosine)
                    rotate_columns(V, p, q, cosine, tangent * cosine)
    largest_eigenvalue = 0.0
    for i in range(n):
        largest_eigenvalue = max(largest_eigenvalue, H[i, i])
    for i in range(n):
        component = 0.0
        for k in range(n):
            component += V[k, i] * y[k]
        eigenvalue = H[i, i]
        components[i] = component / eigenvalue if eigenvalue > 1e-15 * largest_eigenvalue else 0.0
    for k in range(n):
        value = 0.0
        for i in range(n):
            value += V[k, i] * components[i]
        y[k] = value


@subroutine
def rotate_columns(M, p, q, cosine, sine):
    """Replace a square matrix M by M G for a rotation G in the plane of the axes p and q."""
    for k in range(M.shape[0]):
        m_p, m_q = M[k, p], M[k, q]
        M[k, p], M[k, q] = cosine * m_p - sine * m_q, sine * m_p + cosine * m_q


@subroutine
def rotate_rows(M, p, q, cosine, sine):
    """Replace a square matrix M by G'M for a rotation G in the plane of the axes p and q."""
    row_p, row_q = M[p], M[q]
    for k in range(M.shape[0]):
        m_p, m_q = row_p[k], row_q[k]
        row_p[k], row_q[k] = cosine * m_p - sine * m_q, sine * m_p + cosine * m_q


@subroutine
def begin_dual(problem, damping):
    """Initialise the dual form: the diagonal is the damping; the negative gradient of single-column rows is zero."""
    diagonal, negative_single_column_gradient, extra_damping = (
        problem.diagonal,
        problem.negative_single_column_gradient,
        problem.extra_damping,
    )
    for v in range(problem.column_count):
        diagonal[v] = damping * extra_damping[v]
        negative_single_column_gradient[v] = 0.0


@subroutine
def clip_error(residual, mask, m, max_error, max_angle_error):
    """Shorten the position part of a residual to `max_error` and the rotation part to `max_angle_error`, both weighted.

    `residual` begins with the m rows that the bits of `mask` select; `Block.row_mask` in `problem_layout.py` defines
    the two parts.
    """
    position_row_count = count_position_rows(mask)
    position_square, rotation_square = 0.0, 0.0
    for r in range(m):
        if r < position_row_count:
            position_square += residual[r] * residual[r]
        else:
            rotation_square += residual[r] * residual[r]
    for r in range(m):
        if r < position_row_count:
            residual[r] *= min(1.0, max_error / math.sqrt(max(position_square, 1e-300)))
        else:
            residual[r] *= min(1.0, max_angle_error / math.sqrt(max(rotation_square, 1e-300)))


@subroutine
def add_single_column_row(problem, buffer, b):
    """Add a block of one row and one column to the diagonal and to the negative gradient of single-column rows.

    Returns:
        The square of its residual after elimination.
    """
    options = problem.options
    block, block_residual = problem.blocks[b], problem.block_residual
    v, derivative = columns_of_block(problem, block)[0], jacobian_of_block(problem, buffer, block)[0, 0]
    block_residual[0] = rows_of_block(problem.residual[buffer], block)[0]
    if options.max_error < np.inf or options.max_angle_error < np.inf:
        clip_error(block_residual, block.row_mask, block.row_count, options.max_error, options.max_angle_error)
    residual = block_residual[0] + derivative * problem.offset[v]
    problem.diagonal[v] += derivative * derivative
    problem.negative_single_column_gradient[v] -= derivative * residual
    return residual * residual


@inline
def dual_rows(problem, dual_row_count, n):
    """Return the first dual rows over the independent columns, B (dual_row_count, n), as a view of `dual_rows`."""
    return matrix_at(problem.dual_rows, 0, dual_row_count, n)


@subroutine
def add_dual_rows(problem, n, dual_row_count, m, A, listed_count):
    """Append the m rows A of a block, over the columns in `column_list`, to the dual rows.

    Their negative gradient is added to `negative_gradient`.

    Returns:
        The new number of dual rows.
    """
    B, block_residual, dual_residual, column_list, negative_gradient = (
        dual_rows(problem, dual_row_count + m, n),
        problem.block_residual,
        problem.dual_residual,
        problem.column_list,
        problem.negative_gradient,
    )
    for r in range(m):
        row, residual = B[dual_row_count + r], block_residual[r]
        dual_residual[dual_row_count + r] = residual
        if listed_count < n:
            for i in range(n):
                row[i] = 0.0
        for position in range(listed_count):
            i, entry = column_list[position], A[r, position]
            row[i] = entry
            negative_gradient[i] -= entry * residual
    return dual_row_count + m


@subroutine
def finish_dual(problem, n, dual_row_count, damping):
    """Append a row for each dependent column and reorder the diagonal to the order of the independent columns.

    The negative gradient of the single-column rows is reordered too and added to `negative_gradient`. The result
    minus the gradient of the damping of dependent columns is written to `damped_negative_gradient`.

    Returns:
        The new number of dual rows.
    """
    pivot_row, independent_column, offset = problem.pivot_row, problem.independent_column, problem.offset
    dual_residual, negative_gradient, damped_negative_gradient, reordered_diagonal = (
        problem.dual_residual,
        problem.negative_gradient,
        problem.damped_negative_gradient,
        problem.model_gradient,
    )
    diagonal, negative_single_column_gradient = problem.diagonal, problem.negative_single_column_gradient
    for i in range(n):
        damped_negative_gradient[i] = negative_gradient[i]
    if n < problem.column_count:
        for v in range(problem.column_count):
            if pivot_row[v] != NO_INDEX:
                indices, entries = null_space_row(problem, v)
                row, root = dual_rows(problem, dual_row_count + 1, n)[dual_row_count], math.sqrt(diagonal[v])
                offset_gradient = damping * problem.extra_damping[v] * offset[v] - negative_single_column_gradient[v]
                dual_residual[dual_row_count] = offset_gradient / root
                for i in range(n):
                    row[i] = 0.0
                for k in range(len(entries)):
                    i, z = indices[k], entries[k]
                    row[i] = root * z
                    damped_negative_gradient[i] -= offset_gradient * z
                    negative_gradient[i] += negative_single_column_gradient[v] * z
                dual_row_count += 1
    # the independent columns have another order than all columns, so the reordering needs a copy
    for i in range(n):
        reordered_diagonal[i] = diagonal[independent_column[i]]
        problem.reduced_step[i] = negative_single_column_gradient[independent_column[i]]
    for i in range(n):
        diagonal[i], negative_single_column_gradient[i] = reordered_diagonal[i], problem.reduced_step[i]
        negative_gradient[i] += negative_single_column_gradient[i]
        damped_negative_gradient[i] += negative_single_column_gradient[i]
    return dual_row_count


@subroutine
def distance_to_bound(problem, x, v):
    """Return the step of a column to its active bound, in units of the column; 0 for a free or locked column."""
    side = problem.bound_state[v]
    if side == FREE or side == LOCKED:
        return 0.0
    bound = problem.upper[v] if side == ON_UPPER else problem.lower[v]
    return (bound - x[problem.column_x[v]]) / problem.scale[v]


@subroutine
def write_dual_matrix(problem, x, H, n):
    """Write 1 + B 1/D B' over the free columns to H, (dual rows, dual rows), and its right-hand side to `reduced_step`.

    1/D is written to `inverse_diagonal`, with 0 for columns that are not free. The step p/D of the single-column
    rows is written to `step`, in the order of the independent columns; for columns that are not free, the step to
    the active bound. a and b are indices of rows of B.
    """
    dual_row_count = H.shape[0]
    B, rhs, inverse_diagonal, step, scaled_row = (
        dual_rows(problem, dual_row_count, n),
        problem.reduced_step,
        problem.inverse_diagonal,
        problem.step,
        problem.model_gradient,
    )
    for i in range(n):
        v = problem.independent_column[i]
        inverse_diagonal[i] = 0.0
        step[i] = distance_to_bound(problem, x, v)
        if problem.bound_state[v] == FREE:
            inverse_diagonal[i] = 1.0 / problem.diagonal[i]
            step[i] = problem.negative_single_column_gradient[i] * inverse_diagonal[i]
    for a in range(dual_row_count):
        problem.envelope[a] = 0
        row, product = B[a], problem.dual_residual[a]
        for i in range(n):
            product += row[i] * step[i]
            scaled_row[i] = row[i] * inverse_diagonal[i]
        rhs[a] = product
        for b in range(a + 1):
            other_row, product = B[b], 0.0
            for i in range(n):
                product += scaled_row[i] * other_row[i]
            H[a, b] = product
        H[a, a] += 1.0


@subroutine
def write_dual_step(problem, n, dual_row_count):
    """Replace the dual solution y in `reduced_step` by the step of the independent columns."""
    B, y, inverse_diagonal, step, dual_remainder = (
        dual_rows(problem, dual_row_count, n),
        problem.reduced_step,
        problem.inverse_diagonal,
        problem.step,
        problem.dual_remainder,
    )
    for a in range(dual_row_count):
        dual_remainder[a] = y[a]
    for i in range(n):
        y[i] = step[i]
    for a in range(dual_row_count):
        remainder, row = dual_remainder[a], B[a]
        for i in range(n):
            y[i] -= inverse_diagonal[i] * row[i] * remainder


@subroutine
def dual_model_change(problem, n, dual_row_count):
    """Return the predicted change of the cost and write the model gradient, in dual form.

    The result is the same as that of `damped_least_squares.model_change`.
    """
    B, reduced_step, model_gradient, damped_negative_gradient = (
        dual_rows(problem, dual_row_count, n),
        problem.reduced_step,
        problem.model_gradient,
        problem.damped_negative_gradient,
    )
    for i in range(n):
        model_gradient[i] = problem.diagonal[i] * reduced_step[i] - problem.negative_single_column_gradient[i]
    for a in range(dual_row_count):
        row, remainder = B[a], problem.dual_residual[a]
        for i in range(n):
            remainder += row[i] * reduced_step[i]
        for i in range(n):
            model_gradient[i] += remainder * row[i]
    predicted_change = 0.0
    for i in range(n):
        predicted_change += reduced_step[i] * (model_gradient[i] - damped_negative_gradient[i])
    return predicted_change
