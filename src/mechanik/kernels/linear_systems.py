"""Solvers for the symmetric linear systems of a step: envelope L D L', Jacobi eigenvalues, and the dual form.

The dual form serves few rows over many columns, as of a long arm: it gives the same step from a matrix with one row for
each residual row. A row over a single column, such as that of a rest pose, adds to the diagonal D of A'A + damping.
With the other rows B and their residuals e, the step of the independent columns is

    s = 1/D (p - B'y),    (1 + B 1/D B') y = e + B 1/D p

where p is the negative gradient of the single-column rows and y = e + B s is the residual after the step. A dependent
column is a row as well, since it is a linear function of the independent columns: the row carries its damping and its
single-column rows. The cost is linear in the number of columns instead of cubic. This is the formula of Sherman,
Morrison and Woodbury, written so that large terms do not cancel where damping is small.
"""

from __future__ import annotations

import math

import numpy as np

from .compiler import subroutine
from .elimination import NO_COLUMN
from .problem_layout import *

PIVOT_TOLERANCE = 1e-7
"""Pivot, relative to the largest diagonal entry, below which it cannot be told from zero with second derivatives."""


@subroutine
def solve_ldlt(ints, floats, H, n, envelope, y, floor):
    """Solve H y = b in place by H = L D L', within the envelope of the lower triangle.

    `y` holds b before and the solution after. H then holds 1 / D on the diagonal and L below it. A pivot that is not
    positive, which second derivatives may cause, counts as infinite: its column does not move. With a positive
    `floor`, pivots are raised to `floor` and to `PIVOT_TOLERANCE` times the largest diagonal entry, and a pivot counts
    as not positive only if it is below minus that tolerance.

    Returns:
        The index of the first pivot that is not positive, or `NO_COLUMN`; the smallest accepted pivot, relative to the
        largest diagonal entry (at most 1); the value of the first pivot that is not positive.
    """
    negative_pivot, smallest_pivot, pivot_value, largest = ints[RUNTIME_ZERO] + NO_COLUMN, 1.0, 0.0, 0.0
    for i in range(n):
        largest = max(largest, floats[H + i * n + i])
    tolerance = PIVOT_TOLERANCE * largest if floor > 0.0 else 0.0
    for i in range(n):
        row, first = H + i * n, ints[envelope + i]
        for j in range(first + 1, i):
            s = floats[row + j]
            for k in range(max(first, ints[envelope + j]), j):
                s -= floats[row + k] * floats[H + j * n + k]
            floats[row + j] = s
        s, t = floats[row + i], floats[y + i]
        for k in range(first, i):
            d = floats[row + k]
            l = d * floats[H + k * n + k]
            floats[row + k] = l
            s -= d * l
            t -= l * floats[y + k]
        if s > 1e-300 or (tolerance > 0.0 and s >= -tolerance):
            smallest_pivot = min(smallest_pivot, max(s, 0.0) / largest)
            floats[row + i] = 1.0 / max(s, tolerance, floor)
        else:
            if negative_pivot == NO_COLUMN:
                negative_pivot, pivot_value = i, s
            floats[row + i] = 0.0
        floats[y + i] = t
    for i in range(n):
        floats[y + i] *= floats[H + i * n + i]
    for i in range(n - 1, -1, -1):
        s = floats[y + i]
        for k in range(ints[envelope + i], i):
            floats[y + k] -= floats[H + i * n + k] * s
    return negative_pivot, smallest_pivot, pivot_value


@subroutine
def negative_curvature_direction(ints, floats, n, negative_pivot, pivot_value):
    """Write a unit direction y of negative curvature of H to `AT_NEGATIVE_CURVATURE`; return y'Hy / y'y.

    y solves L'y = unit vector of the first pivot that is not positive (`negative_pivot`, with the value `pivot_value`).
    """
    H, y, envelope = ints[AT_H], ints[AT_NEGATIVE_CURVATURE], ints[AT_ENVELOPE]
    for i in range(n):
        floats[y + i] = 0.0
    floats[y + negative_pivot] = 1.0
    square = 0.0
    for i in range(negative_pivot, -1, -1):
        s = floats[y + i]
        square += s * s
        for k in range(ints[envelope + i], i):
            floats[y + k] -= floats[H + i * n + k] * s
    for i in range(negative_pivot + 1):
        floats[y + i] /= math.sqrt(square)
    return pivot_value / square


@subroutine
def solve_by_eigenvalues(ints, floats, H, n, envelope, y):
    """Solve H y = b in place by the eigenvalues of H (Jacobi rotations); y is zero in the null space of H."""
    V = ints[AT_EIGENVECTORS]
    for i in range(n):
        for k in range(n):
            floats[V + i * n + k] = 1.0 if i == k else 0.0
        for k in range(i):
            if k < ints[envelope + i]:
                floats[H + i * n + k] = 0.0
            floats[H + k * n + i] = floats[H + i * n + k]
    for _ in range(30):
        off_diagonal, diagonal = 0.0, 0.0
        for i in range(n):
            diagonal += floats[H + i * n + i] * floats[H + i * n + i]
            for k in range(i):
                off_diagonal += floats[H + i * n + k] * floats[H + i * n + k]
        if off_diagonal <= 1e-30 * diagonal:
            break
        for p in range(n - 1):
            for q in range(p + 1, n):
                a = floats[H + p * n + q]
                if a != 0.0:
                    t = (floats[H + q * n + q] - floats[H + p * n + p]) / (2.0 * a)
                    t = math.copysign(1.0, t) / (abs(t) + math.sqrt(t * t + 1.0))
                    c = 1.0 / math.sqrt(t * t + 1.0)
                    rotate(floats, H, n, p, q, c, t * c)
                    for k in range(n):
                        u, v = floats[V + k * n + p], floats[V + k * n + q]
                        floats[V + k * n + p], floats[V + k * n + q] = c * u - t * c * v, t * c * u + c * v
    largest = 0.0
    for i in range(n):
        largest = max(largest, floats[H + i * n + i])
    for i in range(n):
        s = 0.0
        for k in range(n):
            s += floats[V + k * n + i] * floats[y + k]
        w = floats[H + i * n + i]
        floats[ints[AT_MODEL_GRADIENT] + i] = s / w if w > 1e-15 * largest else 0.0
    for k in range(n):
        s = 0.0
        for i in range(n):
            s += floats[V + k * n + i] * floats[ints[AT_MODEL_GRADIENT] + i]
        floats[y + k] = s


@subroutine
def rotate(floats, H, n, p, q, c, s):
    """Replace H by G'HG for a rotation G in the plane of p and q, with cosine c and sine s."""
    for k in range(n):
        u, v = floats[H + k * n + p], floats[H + k * n + q]
        floats[H + k * n + p], floats[H + k * n + q] = c * u - s * v, s * u + c * v
    for k in range(n):
        u, v = floats[H + p * n + k], floats[H + q * n + k]
        floats[H + p * n + k], floats[H + q * n + k] = c * u - s * v, s * u + c * v


@subroutine
def begin_dual(ints, floats, damping):
    """Start the dual form: the diagonal is the damping, and there are no rows."""
    diagonal, single_column_gradient, extra_damping = (
        ints[AT_DIAGONAL],
        ints[AT_SINGLE_COLUMN_GRADIENT],
        ints[AT_EXTRA_DAMPING],
    )
    for v in range(ints[N_COLUMNS]):
        floats[diagonal + v] = damping * floats[extra_damping + v]
        floats[single_column_gradient + v] = 0.0


@subroutine
def clip_error(floats, e, mask, m, max_error, max_angle_error):
    """Shorten the position part of a residual to `max_error` and the rotation part to `max_angle_error` (weighted)."""
    length_rows = (mask & 1) + (mask >> 1 & 1) + (mask >> 2 & 1)
    position_square, rotation_square = 0.0, 0.0
    for r in range(m):
        if r < length_rows:
            position_square += floats[e + r] * floats[e + r]
        else:
            rotation_square += floats[e + r] * floats[e + r]
    for r in range(m):
        if r < length_rows:
            floats[e + r] *= min(1.0, max_error / math.sqrt(max(position_square, 1e-300)))
        else:
            floats[e + r] *= min(1.0, max_angle_error / math.sqrt(max(rotation_square, 1e-300)))


@subroutine
def add_single_column_row(ints, floats, options, buffer, b):
    """Add a block of one row over one column to the diagonal; return the square of its residual."""
    block, e = ints[AT_BLOCKS] + BLOCK_INTS * b, ints[AT_BLOCK_RESIDUAL]
    v = ints[ints[AT_BLOCK_COLUMNS] + ints[block + FIRST_COLUMN]]
    w = floats[ints[AT_JACOBIAN] + ints[N_JACOBIAN] * buffer + ints[block + FIRST_JACOBIAN]]
    floats[e] = floats[ints[AT_RESIDUAL] + ints[N_ROWS] * buffer + ints[block + FIRST_ROW]]
    if options[MAX_ERROR] < np.inf or options[MAX_ANGLE_ERROR] < np.inf:
        clip_error(
            floats, e, ints[block + ROW_MASK], ints[block + ROW_COUNT], options[MAX_ERROR], options[MAX_ANGLE_ERROR]
        )
    error = floats[e] + w * floats[ints[AT_OFFSET] + v]
    floats[ints[AT_DIAGONAL] + v] += w * w
    floats[ints[AT_SINGLE_COLUMN_GRADIENT] + v] -= w * error
    return error * error


@subroutine
def add_dual_rows(ints, floats, n, k, m, A, width, count):
    """Append the m rows of a block, over the columns in `AT_LISTED_COLUMN`, to the k dual rows; return k + m."""
    B, e, dual_error, listed_columns, g = (
        ints[AT_DUAL_ROWS],
        ints[AT_BLOCK_RESIDUAL],
        ints[AT_DUAL_ERROR],
        ints[AT_LISTED_COLUMN],
        ints[AT_GRADIENT],
    )
    for r in range(m):
        row, f = B + (k + r) * n, floats[e + r]
        floats[dual_error + k + r] = f
        if count < n:
            for i in range(n):
                floats[row + i] = 0.0
        for t in range(count):
            i, a = ints[listed_columns + t], floats[A + r * width + t]
            floats[row + i] = a
            floats[g + i] -= a * f
    return k + m


@subroutine
def finish_dual(ints, floats, n, k, damping):
    """Order the diagonal by independent columns, append a row for each dependent column, return the row count."""
    dependent, independent, z_count, z_start = (
        ints[AT_DEPENDENT_INDEX],
        ints[AT_INDEPENDENT_COLUMN],
        ints[AT_NULL_SPACE_COUNT],
        ints[AT_NULL_SPACE_START],
    )
    B, dual_error, g, damped_gradient, model_gradient = (
        ints[AT_DUAL_ROWS],
        ints[AT_DUAL_ERROR],
        ints[AT_GRADIENT],
        ints[AT_DAMPED_GRADIENT],
        ints[AT_MODEL_GRADIENT],
    )
    diagonal, single_column_gradient, offset = ints[AT_DIAGONAL], ints[AT_SINGLE_COLUMN_GRADIENT], ints[AT_OFFSET]
    for i in range(n):
        floats[damped_gradient + i] = floats[g + i]
    if n < ints[N_COLUMNS]:
        for v in range(ints[N_COLUMNS]):
            if ints[dependent + v] != NO_COLUMN:
                row, root = B + k * n, math.sqrt(floats[diagonal + v])
                gradient = (
                    damping * floats[ints[AT_EXTRA_DAMPING] + v] * floats[offset + v]
                    - floats[single_column_gradient + v]
                )
                floats[dual_error + k] = gradient / root
                for i in range(n):
                    floats[row + i] = 0.0
                for z in range(ints[z_start + v], ints[z_start + v] + ints[z_count + v]):
                    i = ints[ints[AT_NULL_SPACE_INDEX] + z]
                    floats[row + i] = root * floats[ints[AT_NULL_SPACE] + z]
                    floats[damped_gradient + i] -= gradient * floats[ints[AT_NULL_SPACE] + z]
                    floats[g + i] += floats[single_column_gradient + v] * floats[ints[AT_NULL_SPACE] + z]
                k += 1
    # the order of independent columns differs from that of all columns, so the reordering needs a copy
    for i in range(n):
        floats[model_gradient + i] = floats[diagonal + ints[independent + i]]
        floats[ints[AT_REDUCED_STEP] + i] = floats[single_column_gradient + ints[independent + i]]
    for i in range(n):
        floats[diagonal + i], floats[single_column_gradient + i] = (
            floats[model_gradient + i],
            floats[ints[AT_REDUCED_STEP] + i],
        )
        floats[g + i] += floats[single_column_gradient + i]
        floats[damped_gradient + i] += floats[single_column_gradient + i]
    return k


@subroutine
def distance_to_bound(ints, floats, x, v):
    """Return the step of a column to its active bound, in units of the column; 0 if it is free or locked."""
    side = ints[ints[AT_BOUND_STATE] + v]
    if side == FREE or side == LOCKED:
        return 0.0
    bound = floats[ints[AT_UPPER] + v] if side == ON_UPPER else floats[ints[AT_LOWER] + v]
    return (bound - floats[x + ints[ints[AT_COLUMN_X] + v]]) / floats[ints[AT_SCALE] + v]


@subroutine
def dual_matrix(ints, floats, x, n, k):
    """Write 1 + B 1/D B' over the free columns to `AT_H` and its right-hand side to `AT_REDUCED_STEP`.

    `AT_COMPLIANCE` receives 1/D, and 0 for columns that are not free. `AT_STEP` receives the step to the active bound
    for columns that are not free, and p/D, the step of their single-column rows, for free columns.
    """
    B, H, y, compliance, step, model_gradient = (
        ints[AT_DUAL_ROWS],
        ints[AT_H],
        ints[AT_REDUCED_STEP],
        ints[AT_COMPLIANCE],
        ints[AT_STEP],
        ints[AT_MODEL_GRADIENT],
    )
    for i in range(n):
        v = ints[ints[AT_INDEPENDENT_COLUMN] + i]
        floats[compliance + i] = 0.0
        floats[step + i] = distance_to_bound(ints, floats, x, v)
        if ints[ints[AT_BOUND_STATE] + v] == FREE:
            floats[compliance + i] = 1.0 / floats[ints[AT_DIAGONAL] + i]
            floats[step + i] = floats[ints[AT_SINGLE_COLUMN_GRADIENT] + i] * floats[compliance + i]
    for a in range(k):
        ints[ints[AT_ENVELOPE] + a] = 0
        row, s = B + a * n, floats[ints[AT_DUAL_ERROR] + a]
        for i in range(n):
            s += floats[row + i] * floats[step + i]
            floats[model_gradient + i] = floats[row + i] * floats[compliance + i]
        floats[y + a] = s
        for b in range(a + 1):
            other_row, s = B + b * n, 0.0
            for i in range(n):
                s += floats[model_gradient + i] * floats[other_row + i]
            floats[H + a * k + b] = s
        floats[H + a * k + a] += 1.0


@subroutine
def dual_step(ints, floats, n, k):
    """Write the step of the independent columns to `AT_REDUCED_STEP`, from the dual solution y, which is there."""
    B, y, compliance, step, dual_remainder = (
        ints[AT_DUAL_ROWS],
        ints[AT_REDUCED_STEP],
        ints[AT_COMPLIANCE],
        ints[AT_STEP],
        ints[AT_DUAL_REMAINDER],
    )
    for a in range(k):
        floats[dual_remainder + a] = floats[y + a]
    for i in range(n):
        floats[y + i] = floats[step + i]
    for a in range(k):
        s, row = floats[dual_remainder + a], B + a * n
        for i in range(n):
            floats[y + i] -= floats[compliance + i] * floats[row + i] * s


@subroutine
def dual_model_decrease(ints, floats, n, k):
    """Return the predicted change of the cost in dual form, as `damped_least_squares.model_decrease`."""
    B, y, model_gradient, damped_gradient = (
        ints[AT_DUAL_ROWS],
        ints[AT_REDUCED_STEP],
        ints[AT_MODEL_GRADIENT],
        ints[AT_DAMPED_GRADIENT],
    )
    for i in range(n):
        floats[model_gradient + i] = (
            floats[ints[AT_DIAGONAL] + i] * floats[y + i] - floats[ints[AT_SINGLE_COLUMN_GRADIENT] + i]
        )
    for a in range(k):
        row, s = B + a * n, floats[ints[AT_DUAL_ERROR] + a]
        for i in range(n):
            s += floats[row + i] * floats[y + i]
        for i in range(n):
            floats[model_gradient + i] += s * floats[row + i]
    change = 0.0
    for i in range(n):
        change += floats[y + i] * (floats[model_gradient + i] - floats[damped_gradient + i])
    return change
