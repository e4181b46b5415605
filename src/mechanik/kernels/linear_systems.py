"""Solvers for the symmetric linear systems of a step: envelope L D L', Jacobi eigenvalues, and the dual form.

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

from .compiler import subroutine
from .elimination import NO_INDEX
from .problem_layout import *

PIVOT_TOLERANCE = 1e-7
"""Pivots count as zero below this ratio to the largest diagonal entry, since second derivatives have errors. With a
smaller ratio these errors would be taken for negative curvature."""


@subroutine
def solve_ldlt(ints, floats, H, n, envelope, y, min_pivot):
    """Solve H y = b in place by H = L D L', within the envelope of the lower triangle.

    y contains b before and the solution after the call. H is replaced by 1 / D on the diagonal and L below it. A pivot
    that is not positive, which second derivatives may cause, counts as infinite: its column does not move. With a
    positive `min_pivot` there is a tolerance, `PIVOT_TOLERANCE` times the largest diagonal entry. Then pivots down to
    minus the tolerance are accepted too, and all accepted pivots are raised to at least the tolerance and `min_pivot`.

    Returns:
        The index of the first pivot that is not accepted, or `NO_INDEX`; the smallest accepted pivot before it is
        raised, as a ratio to the largest diagonal entry (0 to 1); the value of the first pivot that is not accepted.
    """
    negative_index, smallest_pivot, pivot_value, largest_diagonal = ints[RUNTIME_ZERO] + NO_INDEX, 1.0, 0.0, 0.0
    for i in range(n):
        largest_diagonal = max(largest_diagonal, floats[H + i * n + i])
    tolerance = PIVOT_TOLERANCE * largest_diagonal if min_pivot > 0.0 else 0.0
    for i in range(n):
        row, first_column = H + i * n, ints[envelope + i]
        for j in range(first_column + 1, i):
            scaled_entry = floats[row + j]  # an entry of L D
            for k in range(max(first_column, ints[envelope + j]), j):
                scaled_entry -= floats[row + k] * floats[H + j * n + k]
            floats[row + j] = scaled_entry
        pivot, value = floats[row + i], floats[y + i]
        for k in range(first_column, i):
            scaled_entry = floats[row + k]
            entry = scaled_entry * floats[H + k * n + k]
            floats[row + k] = entry
            pivot -= scaled_entry * entry
            value -= entry * floats[y + k]
        if pivot > 1e-300 or (tolerance > 0.0 and pivot >= -tolerance):
            smallest_pivot = min(smallest_pivot, max(pivot, 0.0) / largest_diagonal)
            floats[row + i] = 1.0 / max(pivot, tolerance, min_pivot)
        else:
            if negative_index == NO_INDEX:
                negative_index, pivot_value = i, pivot
            floats[row + i] = 0.0
        floats[y + i] = value
    for i in range(n):
        floats[y + i] *= floats[H + i * n + i]
    for i in range(n - 1, -1, -1):
        value = floats[y + i]
        for k in range(ints[envelope + i], i):
            floats[y + k] -= floats[H + i * n + k] * value
    return negative_index, smallest_pivot, pivot_value


@subroutine
def write_negative_curvature_direction(ints, floats, n, negative_index, pivot_value):
    """Write a unit direction y of negative curvature of H to `AT_NEGATIVE_CURVATURE`; return y'Hy.

    y is parallel to the solution of L'y = u, where u is the unit vector of the first pivot that is not accepted (index
    `negative_index`, value `pivot_value`; see `solve_ldlt`).
    """
    H, y, envelope = ints[AT_H], ints[AT_NEGATIVE_CURVATURE], ints[AT_ENVELOPE]
    for i in range(n):
        floats[y + i] = 0.0
    floats[y + negative_index] = 1.0
    norm2 = 0.0
    for i in range(negative_index, -1, -1):
        value = floats[y + i]
        norm2 += value * value
        for k in range(ints[envelope + i], i):
            floats[y + k] -= floats[H + i * n + k] * value
    for i in range(negative_index + 1):
        floats[y + i] /= math.sqrt(norm2)
    return pivot_value / norm2


@subroutine
def solve_by_eigenvalues(ints, floats, H, n, envelope, y):
    """Solve H y = b in place by the eigenvalues of H (Jacobi rotations); y has no component in the null space of H.

    The columns of V are the eigenvectors; p and q are the axes of a Jacobi rotation.
    """
    V = ints[AT_EIGENVECTORS]
    for i in range(n):
        for k in range(n):
            floats[V + i * n + k] = 1.0 if i == k else 0.0
        for k in range(i):
            if k < ints[envelope + i]:
                floats[H + i * n + k] = 0.0
            floats[H + k * n + i] = floats[H + i * n + k]
    for _ in range(30):
        off_diagonal_square, diagonal_square = 0.0, 0.0
        for i in range(n):
            diagonal_square += floats[H + i * n + i] * floats[H + i * n + i]
            for k in range(i):
                off_diagonal_square += floats[H + i * n + k] * floats[H + i * n + k]
        if off_diagonal_square <= 1e-30 * diagonal_square:
            break
        for p in range(n - 1):
            for q in range(p + 1, n):
                entry = floats[H + p * n + q]
                if entry != 0.0:
                    cotangent = (floats[H + q * n + q] - floats[H + p * n + p]) / (2.0 * entry)  # of twice the angle
                    tangent = math.copysign(1.0, cotangent) / (abs(cotangent) + math.sqrt(cotangent * cotangent + 1.0))
                    cosine = 1.0 / math.sqrt(tangent * tangent + 1.0)
                    apply_jacobi_rotation(floats, H, n, p, q, cosine, tangent * cosine)
                    for k in range(n):
                        v_p, v_q = floats[V + k * n + p], floats[V + k * n + q]
                        floats[V + k * n + p], floats[V + k * n + q] = (
                            cosine * v_p - tangent * cosine * v_q,
                            tangent * cosine * v_p + cosine * v_q,
                        )
    largest_eigenvalue = 0.0
    for i in range(n):
        largest_eigenvalue = max(largest_eigenvalue, floats[H + i * n + i])
    for i in range(n):
        component = 0.0
        for k in range(n):
            component += floats[V + k * n + i] * floats[y + k]
        eigenvalue = floats[H + i * n + i]
        floats[ints[AT_MODEL_GRADIENT] + i] = component / eigenvalue if eigenvalue > 1e-15 * largest_eigenvalue else 0.0
    for k in range(n):
        component = 0.0
        for i in range(n):
            component += floats[V + k * n + i] * floats[ints[AT_MODEL_GRADIENT] + i]
        floats[y + k] = component


@subroutine
def apply_jacobi_rotation(floats, H, n, p, q, cosine, sine):
    """Replace H by G'HG for a rotation G in the plane of the axes p and q."""
    for k in range(n):
        h_p, h_q = floats[H + k * n + p], floats[H + k * n + q]
        floats[H + k * n + p], floats[H + k * n + q] = cosine * h_p - sine * h_q, sine * h_p + cosine * h_q
    for k in range(n):
        h_p, h_q = floats[H + p * n + k], floats[H + q * n + k]
        floats[H + p * n + k], floats[H + q * n + k] = cosine * h_p - sine * h_q, sine * h_p + cosine * h_q


@subroutine
def begin_dual(ints, floats, damping):
    """Initialise the dual form: the diagonal is the damping; the negative gradient of single-column rows is zero."""
    diagonal, negative_single_column_gradient, extra_damping = (
        ints[AT_DIAGONAL],
        ints[AT_NEGATIVE_SINGLE_COLUMN_GRADIENT],
        ints[AT_EXTRA_DAMPING],
    )
    for v in range(ints[N_COLUMNS]):
        floats[diagonal + v] = damping * floats[extra_damping + v]
        floats[negative_single_column_gradient + v] = 0.0


@subroutine
def clip_error(floats, residual, mask, m, max_error, max_angle_error):
    """Shorten the position part of a residual to `max_error` and the rotation part to `max_angle_error`, both weighted.

    `residual` is the offset of the m rows that the bits of `mask` select; ROW_MASK in `problem_layout.py` defines the
    two parts.
    """
    position_row_count = (mask & 1) + (mask >> 1 & 1) + (mask >> 2 & 1)
    position_square, rotation_square = 0.0, 0.0
    for r in range(m):
        if r < position_row_count:
            position_square += floats[residual + r] * floats[residual + r]
        else:
            rotation_square += floats[residual + r] * floats[residual + r]
    for r in range(m):
        if r < position_row_count:
            floats[residual + r] *= min(1.0, max_error / math.sqrt(max(position_square, 1e-300)))
        else:
            floats[residual + r] *= min(1.0, max_angle_error / math.sqrt(max(rotation_square, 1e-300)))


@subroutine
def add_single_column_row(ints, floats, options, buffer, b):
    """Add a block of one row and one column to the diagonal and to the negative gradient of single-column rows.

    Returns:
        The square of its residual after elimination.
    """
    block, block_residual = ints[AT_BLOCKS] + BLOCK_INTS * b, ints[AT_BLOCK_RESIDUAL]
    v = ints[ints[AT_BLOCK_COLUMNS] + ints[block + FIRST_COLUMN]]
    derivative = floats[ints[AT_JACOBIAN] + ints[N_JACOBIAN] * buffer + ints[block + FIRST_JACOBIAN]]
    floats[block_residual] = floats[ints[AT_RESIDUAL] + ints[N_ROWS] * buffer + ints[block + FIRST_ROW]]
    if options[MAX_ERROR] < np.inf or options[MAX_ANGLE_ERROR] < np.inf:
        clip_error(
            floats,
            block_residual,
            ints[block + ROW_MASK],
            ints[block + ROW_COUNT],
            options[MAX_ERROR],
            options[MAX_ANGLE_ERROR],
        )
    residual = floats[block_residual] + derivative * floats[ints[AT_OFFSET] + v]
    floats[ints[AT_DIAGONAL] + v] += derivative * derivative
    floats[ints[AT_NEGATIVE_SINGLE_COLUMN_GRADIENT] + v] -= derivative * residual
    return residual * residual


@subroutine
def add_dual_rows(ints, floats, n, dual_row_count, m, jacobian, row_length, listed_count):
    """Append the m rows of a block, over the columns in `AT_COLUMN_LIST`, to the dual rows.

    Their negative gradient is added to `AT_NEGATIVE_GRADIENT`.

    Returns:
        The new number of dual rows.
    """
    B, block_residual, dual_residual, column_list, negative_gradient = (
        ints[AT_DUAL_ROWS],
        ints[AT_BLOCK_RESIDUAL],
        ints[AT_DUAL_RESIDUAL],
        ints[AT_COLUMN_LIST],
        ints[AT_NEGATIVE_GRADIENT],
    )
    for r in range(m):
        row, residual = B + (dual_row_count + r) * n, floats[block_residual + r]
        floats[dual_residual + dual_row_count + r] = residual
        if listed_count < n:
            for i in range(n):
                floats[row + i] = 0.0
        for position in range(listed_count):
            i, entry = ints[column_list + position], floats[jacobian + r * row_length + position]
            floats[row + i] = entry
            floats[negative_gradient + i] -= entry * residual
    return dual_row_count + m


@subroutine
def finish_dual(ints, floats, n, dual_row_count, damping):
    """Append a row for each dependent column and reorder the diagonal to the order of the independent columns.

    The negative gradient of the single-column rows is reordered too and added to `AT_NEGATIVE_GRADIENT`. The result
    minus the gradient of the damping of dependent columns is written to `AT_DAMPED_NEGATIVE_GRADIENT`.

    Returns:
        The new number of dual rows.
    """
    pivot_row, independent_column, null_space_count, null_space_start = (
        ints[AT_PIVOT_ROW],
        ints[AT_INDEPENDENT_COLUMN],
        ints[AT_NULL_SPACE_COUNT],
        ints[AT_NULL_SPACE_START],
    )
    B, dual_residual, negative_gradient, damped_negative_gradient, reordered_diagonal = (
        ints[AT_DUAL_ROWS],
        ints[AT_DUAL_RESIDUAL],
        ints[AT_NEGATIVE_GRADIENT],
        ints[AT_DAMPED_NEGATIVE_GRADIENT],
        ints[AT_MODEL_GRADIENT],
    )
    diagonal, negative_single_column_gradient, offset = (
        ints[AT_DIAGONAL],
        ints[AT_NEGATIVE_SINGLE_COLUMN_GRADIENT],
        ints[AT_OFFSET],
    )
    for i in range(n):
        floats[damped_negative_gradient + i] = floats[negative_gradient + i]
    if n < ints[N_COLUMNS]:
        for v in range(ints[N_COLUMNS]):
            if ints[pivot_row + v] != NO_INDEX:
                row, root = B + dual_row_count * n, math.sqrt(floats[diagonal + v])
                offset_gradient = (
                    damping * floats[ints[AT_EXTRA_DAMPING] + v] * floats[offset + v]
                    - floats[negative_single_column_gradient + v]
                )
                floats[dual_residual + dual_row_count] = offset_gradient / root
                for i in range(n):
                    floats[row + i] = 0.0
                for entry in range(ints[null_space_start + v], ints[null_space_start + v] + ints[null_space_count + v]):
                    i = ints[ints[AT_NULL_SPACE_INDEX] + entry]
                    floats[row + i] = root * floats[ints[AT_NULL_SPACE] + entry]
                    floats[damped_negative_gradient + i] -= offset_gradient * floats[ints[AT_NULL_SPACE] + entry]
                    floats[negative_gradient + i] += (
                        floats[negative_single_column_gradient + v] * floats[ints[AT_NULL_SPACE] + entry]
                    )
                dual_row_count += 1
    # the independent columns have another order than all columns, so the reordering needs a copy
    for i in range(n):
        floats[reordered_diagonal + i] = floats[diagonal + ints[independent_column + i]]
        floats[ints[AT_REDUCED_STEP] + i] = floats[negative_single_column_gradient + ints[independent_column + i]]
    for i in range(n):
        floats[diagonal + i], floats[negative_single_column_gradient + i] = (
            floats[reordered_diagonal + i],
            floats[ints[AT_REDUCED_STEP] + i],
        )
        floats[negative_gradient + i] += floats[negative_single_column_gradient + i]
        floats[damped_negative_gradient + i] += floats[negative_single_column_gradient + i]
    return dual_row_count


@subroutine
def distance_to_bound(ints, floats, x, v):
    """Return the step of a column to its active bound, in units of the column; 0 for a free or locked column."""
    side = ints[ints[AT_BOUND_STATE] + v]
    if side == FREE or side == LOCKED:
        return 0.0
    bound = floats[ints[AT_UPPER] + v] if side == ON_UPPER else floats[ints[AT_LOWER] + v]
    return (bound - floats[x + ints[ints[AT_COLUMN_X] + v]]) / floats[ints[AT_SCALE] + v]


@subroutine
def write_dual_matrix(ints, floats, x, n, dual_row_count):
    """Write 1 + B 1/D B' over the free columns to `AT_H` and the right-hand side of y to `AT_REDUCED_STEP`.

    1/D is written to `AT_INVERSE_DIAGONAL`, with 0 for columns that are not free. The step p/D of the single-column
    rows is written to `AT_STEP`, in the order of the independent columns; for columns that are not free, the step to
    the active bound. a and b are indices of rows of B.
    """
    B, H, rhs, inverse_diagonal, step, scaled_row = (
        ints[AT_DUAL_ROWS],
        ints[AT_H],
        ints[AT_REDUCED_STEP],
        ints[AT_INVERSE_DIAGONAL],
        ints[AT_STEP],
        ints[AT_MODEL_GRADIENT],
    )
    for i in range(n):
        v = ints[ints[AT_INDEPENDENT_COLUMN] + i]
        floats[inverse_diagonal + i] = 0.0
        floats[step + i] = distance_to_bound(ints, floats, x, v)
        if ints[ints[AT_BOUND_STATE] + v] == FREE:
            floats[inverse_diagonal + i] = 1.0 / floats[ints[AT_DIAGONAL] + i]
            floats[step + i] = floats[ints[AT_NEGATIVE_SINGLE_COLUMN_GRADIENT] + i] * floats[inverse_diagonal + i]
    for a in range(dual_row_count):
        ints[ints[AT_ENVELOPE] + a] = 0
        row, product = B + a * n, floats[ints[AT_DUAL_RESIDUAL] + a]
        for i in range(n):
            product += floats[row + i] * floats[step + i]
            floats[scaled_row + i] = floats[row + i] * floats[inverse_diagonal + i]
        floats[rhs + a] = product
        for b in range(a + 1):
            other_row, product = B + b * n, 0.0
            for i in range(n):
                product += floats[scaled_row + i] * floats[other_row + i]
            floats[H + a * dual_row_count + b] = product
        floats[H + a * dual_row_count + a] += 1.0


@subroutine
def write_dual_step(ints, floats, n, dual_row_count):
    """Replace the dual solution y in `AT_REDUCED_STEP` by the step of the independent columns."""
    B, y, inverse_diagonal, step, dual_remainder = (
        ints[AT_DUAL_ROWS],
        ints[AT_REDUCED_STEP],
        ints[AT_INVERSE_DIAGONAL],
        ints[AT_STEP],
        ints[AT_DUAL_REMAINDER],
    )
    for a in range(dual_row_count):
        floats[dual_remainder + a] = floats[y + a]
    for i in range(n):
        floats[y + i] = floats[step + i]
    for a in range(dual_row_count):
        remainder, row = floats[dual_remainder + a], B + a * n
        for i in range(n):
            floats[y + i] -= floats[inverse_diagonal + i] * floats[row + i] * remainder


@subroutine
def dual_model_change(ints, floats, n, dual_row_count):
    """Return the predicted change of the cost and write the model gradient, in dual form.

    The result is the same as that of `damped_least_squares.model_change`.
    """
    B, reduced_step, model_gradient, damped_negative_gradient = (
        ints[AT_DUAL_ROWS],
        ints[AT_REDUCED_STEP],
        ints[AT_MODEL_GRADIENT],
        ints[AT_DAMPED_NEGATIVE_GRADIENT],
    )
    for i in range(n):
        floats[model_gradient + i] = (
            floats[ints[AT_DIAGONAL] + i] * floats[reduced_step + i]
            - floats[ints[AT_NEGATIVE_SINGLE_COLUMN_GRADIENT] + i]
        )
    for a in range(dual_row_count):
        row, remainder = B + a * n, floats[ints[AT_DUAL_RESIDUAL] + a]
        for i in range(n):
            remainder += floats[row + i] * floats[reduced_step + i]
        for i in range(n):
            floats[model_gradient + i] += remainder * floats[row + i]
    predicted_change = 0.0
    for i in range(n):
        predicted_change += floats[reduced_step + i] * (
            floats[model_gradient + i] - floats[damped_negative_gradient + i]
        )
    return predicted_change
