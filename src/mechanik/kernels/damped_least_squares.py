"""Damped least squares of the soft residuals over the independent columns: assembly and solution.

A step s of the independent columns minimises |e + A s|^2 + damping |s|^2, where A = J (1, Z) is the Jacobian of the
soft residuals after the elimination of the hard rows (`elimination.py`). The matrix of the system is over the
independent columns (primal form) or over the residual rows (dual form, `linear_systems.py`).
"""

from __future__ import annotations

import numpy as np

from .compiler import subroutine
from .curvature import add_curvature, chain_conjugate_step, chain_product
from .elimination import NO_COLUMN
from .linear_systems import (
    add_dual_rows,
    add_single_column_row,
    begin_dual,
    clip_error,
    distance_to_bound,
    dual_matrix,
    dual_model_decrease,
    dual_step,
    finish_dual,
    negative_curvature_direction,
    solve_by_eigenvalues,
    solve_ldlt,
)
from .problem_layout import *

PRIMAL_FORM = -1
"""Number of dual rows that stands for the primal form."""
PIVOT_FLOOR = 0.1
"""Smallest pivot, relative to the damping, where second derivatives are used."""


@subroutine
def gather_block(ints, floats, options, buffer, b, hard, n):
    """Reduce a soft block to the independent columns.

    `AT_LISTED_COLUMN` receives the independent indices of its columns, `AT_BLOCK_RESIDUAL` its residual.

    Returns:
        The offset of its reduced Jacobian in floats, the length of a row there, and the number of columns.
    """
    blocks, block_columns, dependent, independent_index = (
        ints[AT_BLOCKS],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_DEPENDENT_INDEX],
        ints[AT_INDEPENDENT_INDEX],
    )
    local_column, listed_columns, z_count, z_start = (
        ints[AT_LOCAL_COLUMN],
        ints[AT_LISTED_COLUMN],
        ints[AT_NULL_SPACE_COUNT],
        ints[AT_NULL_SPACE_START],
    )
    z_index, jacobian, residual, offset = (
        ints[AT_NULL_SPACE_INDEX],
        ints[AT_JACOBIAN],
        ints[AT_RESIDUAL],
        ints[AT_OFFSET],
    )
    A, block_residual, Z = ints[AT_BLOCK_A], ints[AT_BLOCK_RESIDUAL], ints[AT_NULL_SPACE]
    block = blocks + BLOCK_INTS * b
    m, width, row, column = (
        ints[block + ROW_COUNT],
        ints[block + COLUMN_COUNT],
        ints[block + FIRST_ROW],
        ints[block + FIRST_COLUMN],
    )
    J, E = jacobian + ints[N_JACOBIAN] * buffer + ints[block + FIRST_JACOBIAN], residual + ints[N_ROWS] * buffer + row
    for r in range(m):
        floats[block_residual + r] = floats[E + r]
    if options[MAX_ERROR] < np.inf or options[MAX_ANGLE_ERROR] < np.inf:
        clip_error(floats, block_residual, ints[block + ROW_MASK], m, options[MAX_ERROR], options[MAX_ANGLE_ERROR])
    if hard == 0:
        for u in range(width):
            ints[listed_columns + u] = ints[independent_index + ints[block_columns + column + u]]
        return J, width, width
    column_count = ints[RUNTIME_ZERO]
    for u in range(width):
        v = ints[block_columns + column + u]
        if ints[dependent + v] == NO_COLUMN:
            column_count = add_column(
                ints,
                floats,
                J + u,
                width,
                m,
                ints[independent_index + v],
                1.0,
                A,
                n,
                local_column,
                listed_columns,
                column_count,
            )
        else:
            for r in range(m):
                floats[block_residual + r] += floats[J + r * width + u] * floats[offset + v]
            for k in range(ints[z_start + v], ints[z_start + v] + ints[z_count + v]):
                column_count = add_column(
                    ints,
                    floats,
                    J + u,
                    width,
                    m,
                    ints[z_index + k],
                    floats[Z + k],
                    A,
                    n,
                    local_column,
                    listed_columns,
                    column_count,
                )
    for t in range(column_count):
        ints[local_column + ints[listed_columns + t]] = 0
    return A, n, column_count


@subroutine
def add_column(ints, floats, J, width, m, i, z, A, n, local_column, listed_columns, column_count):
    """Add z times a column of J to the column of A of the independent index i; return the number of columns of A."""
    t = ints[local_column + i] - 1
    if t < 0:
        t = column_count
        ints[local_column + i] = t + 1
        ints[listed_columns + t] = i
        column_count += 1
        for r in range(m):
            floats[A + r * n + t] = 0.0
    for r in range(m):
        floats[A + r * n + t] += z * floats[J + r * width]
    return column_count


@subroutine
def assemble_normal_equations(
    ints, floats, options, buffer, hard, soft, n, damping, damps_dependent, uses_curvature, has_moved, uses_dual_form
):
    """Assemble the damped normal equations of the soft residuals, or the dual form if `uses_dual_form`.

    The normal equations are H0 = A'A + damping (1 + Z'Z) and the negative gradient -A'e over the independent columns.
    The dual form stores the rows themselves instead of H0 (`linear_systems.py`). Without `damps_dependent` only the
    independent columns are damped, which takes half the time where there are many loops.

    Returns:
        The cost e'e, and the number of dual rows or `PRIMAL_FORM`.
    """
    blocks, dependent, envelope, local_column = (
        ints[AT_BLOCKS],
        ints[AT_DEPENDENT_INDEX],
        ints[AT_ENVELOPE],
        ints[AT_LOCAL_COLUMN],
    )
    listed_columns, g, e, H = ints[AT_LISTED_COLUMN], ints[AT_GRADIENT], ints[AT_BLOCK_RESIDUAL], ints[AT_H0]
    for i in range(n):
        ints[envelope + i] = i
        floats[g + i] = 0.0
        ints[local_column + i] = 0
    cost, dual_row_count = 0.0, ints[RUNTIME_ZERO] + PRIMAL_FORM
    if uses_dual_form:
        dual_row_count = ints[RUNTIME_ZERO]
        begin_dual(ints, floats, damping)
    else:
        for i in range(n):
            for k in range(i + 1):
                floats[H + i * n + k] = 0.0
    for b in range(hard, soft):
        m = ints[blocks + BLOCK_INTS * b + ROW_COUNT]
        if uses_dual_form and m == 1 and ints[blocks + BLOCK_INTS * b + COLUMN_COUNT] == 1:
            cost += add_single_column_row(ints, floats, options, buffer, b)
            continue
        A, width, count = gather_block(ints, floats, options, buffer, b, hard, n)
        for r in range(m):
            cost += floats[e + r] * floats[e + r]
        if uses_dual_form:
            dual_row_count = add_dual_rows(ints, floats, n, dual_row_count, m, A, width, count)
            continue
        lowest = n
        for t in range(count):
            lowest = min(lowest, ints[listed_columns + t])
        for t in range(count):
            ints[envelope + ints[listed_columns + t]] = min(ints[envelope + ints[listed_columns + t]], lowest)
        # poses and positions are the common case: with their columns in registers they take a third of the time
        if m == 6:
            for t in range(count):
                i, a = ints[listed_columns + t], A + t
                a0, a1, a2 = floats[a], floats[a + width], floats[a + 2 * width]
                a3, a4, a5 = floats[a + 3 * width], floats[a + 4 * width], floats[a + 5 * width]
                floats[g + i] -= (
                    a0 * floats[e]
                    + a1 * floats[e + 1]
                    + a2 * floats[e + 2]
                    + a3 * floats[e + 3]
                    + a4 * floats[e + 4]
                    + a5 * floats[e + 5]
                )
                for k in range(count):
                    l, c = ints[listed_columns + k], A + k
                    if l <= i:
                        floats[H + i * n + l] += (
                            a0 * floats[c] + a1 * floats[c + width] + a2 * floats[c + 2 * width]
                        ) + (a3 * floats[c + 3 * width] + a4 * floats[c + 4 * width] + a5 * floats[c + 5 * width])
        elif m == 3:
            for t in range(count):
                i, a = ints[listed_columns + t], A + t
                a0, a1, a2 = floats[a], floats[a + width], floats[a + 2 * width]
                floats[g + i] -= a0 * floats[e] + a1 * floats[e + 1] + a2 * floats[e + 2]
                for k in range(count):
                    l, c = ints[listed_columns + k], A + k
                    if l <= i:
                        floats[H + i * n + l] += a0 * floats[c] + a1 * floats[c + width] + a2 * floats[c + 2 * width]
        else:
            for t in range(count):
                i = ints[listed_columns + t]
                for r in range(m):
                    floats[g + i] -= floats[A + r * width + t] * floats[e + r]
                for k in range(count):
                    if ints[listed_columns + k] <= i:
                        s = 0.0
                        for r in range(m):
                            s += floats[A + r * width + t] * floats[A + r * width + k]
                        floats[H + i * n + ints[listed_columns + k]] += s
    if uses_dual_form:
        return cost, finish_dual(ints, floats, n, dual_row_count, damping)
    if uses_curvature:
        add_curvature(ints, floats, n, has_moved)
    for i in range(n):
        floats[H + i * n + i] += damping * floats[ints[AT_EXTRA_DAMPING] + ints[ints[AT_INDEPENDENT_COLUMN] + i]]
        floats[ints[AT_DAMPED_GRADIENT] + i] = floats[g + i]
    if hard > 0 and damps_dependent:
        for v in range(ints[N_COLUMNS]):
            if ints[dependent + v] != NO_COLUMN:
                damp_dependent(ints, floats, v, n, damping)
    return cost, dual_row_count


@subroutine
def damp_dependent(ints, floats, v, n, damping):
    envelope, z_count, z_start, z_index = (
        ints[AT_ENVELOPE],
        ints[AT_NULL_SPACE_COUNT],
        ints[AT_NULL_SPACE_START],
        ints[AT_NULL_SPACE_INDEX],
    )
    offset, damped_gradient, H0, Z = ints[AT_OFFSET], ints[AT_DAMPED_GRADIENT], ints[AT_H0], ints[AT_NULL_SPACE]
    start, end = ints[z_start + v], ints[z_start + v] + ints[z_count + v]
    damping *= floats[ints[AT_EXTRA_DAMPING] + v]
    lowest = n
    for k in range(start, end):
        lowest = min(lowest, ints[z_index + k])
    for k in range(start, end):
        i, z = ints[z_index + k], damping * floats[Z + k]
        ints[envelope + i] = min(ints[envelope + i], lowest)
        floats[damped_gradient + i] -= z * floats[offset + v]
        for l in range(start, end):
            if ints[z_index + l] <= i:
                floats[H0 + i * n + ints[z_index + l]] += z * floats[Z + l]


@subroutine
def solve_reduced_step(ints, floats, options, x, n, active_count, dual_row_count, chain, uses_curvature, damping):
    """Write the step of the independent columns to `AT_REDUCED_STEP`; columns at an active bound go to the bound.

    If the second derivatives give the cost a direction of negative curvature, the step is computed again without them
    and with additional damping.

    Returns:
        The smallest pivot, relative to the largest diagonal entry. If a pivot is not positive: the (negative) curvature
        along the direction in `AT_NEGATIVE_CURVATURE`. 0 for a chain with exact second derivatives.
    """
    if chain >= 0:
        chain_conjugate_step(ints, floats, x, chain, n)
        return 0.0
    size, curvature, is_factored = n, 0.0, False
    floor = PIVOT_FLOOR * damping if uses_curvature and dual_row_count == PRIMAL_FORM else 0.0
    for attempt in range(3):
        if dual_row_count == PRIMAL_FORM:
            primal_matrix(ints, floats, x, n, active_count)
        else:
            dual_matrix(ints, floats, x, n, dual_row_count)
            size = dual_row_count
        if is_factored:  # the active method asks for eigenvalues
            solve_by_eigenvalues(ints, floats, ints[AT_H], size, ints[AT_ENVELOPE], ints[AT_REDUCED_STEP])
            break
        negative_pivot, smallest_pivot, pivot_value = solve_ldlt(
            ints, floats, ints[AT_H], size, ints[AT_ENVELOPE], ints[AT_REDUCED_STEP], floor
        )
        if attempt == 0:
            curvature = smallest_pivot
        if attempt == 1 or negative_pivot == NO_COLUMN or dual_row_count != PRIMAL_FORM or not uses_curvature:
            is_factored = True
            if options[USES_EIGENVALUES] == 1.0:
                continue
            break
        curvature = negative_curvature_direction(ints, floats, n, negative_pivot, pivot_value)
        for i in range(n):
            for k in range(i + 1):
                floats[ints[AT_H0] + i * n + k] -= floats[ints[AT_CURVATURE] + i * n + k]
            floats[ints[AT_H0] + i * n + i] += damping
    if dual_row_count != PRIMAL_FORM:
        dual_step(ints, floats, n, dual_row_count)
    return curvature


@subroutine
def primal_matrix(ints, floats, x, n, active_count):
    """Write H0 over the free columns to `AT_H` and its right-hand side to `AT_REDUCED_STEP`."""
    bound_state, independent, envelope, damped_gradient = (
        ints[AT_BOUND_STATE],
        ints[AT_INDEPENDENT_COLUMN],
        ints[AT_ENVELOPE],
        ints[AT_DAMPED_GRADIENT],
    )
    H, H0, y = ints[AT_H], ints[AT_H0], ints[AT_REDUCED_STEP]
    for i in range(n):
        floats[y + i] = floats[damped_gradient + i]
        for k in range(ints[envelope + i], i + 1):
            floats[H + i * n + k] = floats[H0 + i * n + k]
    if active_count > 0:
        for i in range(n):
            v = ints[independent + i]
            if ints[bound_state + v] != FREE:
                distance = distance_to_bound(ints, floats, x, v)
                for k in range(ints[envelope + i], i):
                    floats[y + k] -= floats[H + i * n + k] * distance
                    floats[H + i * n + k] = 0.0
                for k in range(i + 1, n):
                    if i >= ints[envelope + k]:
                        floats[y + k] -= floats[H + k * n + i] * distance
                        floats[H + k * n + i] = 0.0
                floats[H + i * n + i] = 1.0
                floats[y + i] = distance


@subroutine
def expand_step(ints, floats, n):
    """Write the step of all columns to `AT_STEP`, from the step of the independent columns in `AT_REDUCED_STEP`."""
    dependent, independent, z_count, z_start = (
        ints[AT_DEPENDENT_INDEX],
        ints[AT_INDEPENDENT_COLUMN],
        ints[AT_NULL_SPACE_COUNT],
        ints[AT_NULL_SPACE_START],
    )
    z_index, step, offset, Z = ints[AT_NULL_SPACE_INDEX], ints[AT_STEP], ints[AT_OFFSET], ints[AT_NULL_SPACE]
    reduced_step = ints[AT_REDUCED_STEP]
    for i in range(n):
        floats[step + ints[independent + i]] = floats[reduced_step + i]
    if n == ints[N_COLUMNS]:
        return
    for v in range(ints[N_COLUMNS]):
        if ints[dependent + v] != NO_COLUMN:
            s = floats[offset + v]
            for k in range(ints[z_start + v], ints[z_start + v] + ints[z_count + v]):
                s += floats[Z + k] * floats[reduced_step + ints[z_index + k]]
            floats[step + v] = s


@subroutine
def model_decrease(ints, floats, n, dual_row_count, chain):
    """Return the change of the cost (negative: a decrease) that the damped model predicts for `AT_REDUCED_STEP`.

    `AT_MODEL_GRADIENT` receives half the gradient of the model after the step.
    """
    envelope, g, H, y, model_gradient = (
        ints[AT_ENVELOPE],
        ints[AT_DAMPED_GRADIENT],
        ints[AT_H0],
        ints[AT_REDUCED_STEP],
        ints[AT_MODEL_GRADIENT],
    )
    change = 0.0
    if chain >= 0:
        chain_product(ints, floats, chain, n, y, model_gradient)
    elif dual_row_count != PRIMAL_FORM:
        return dual_model_decrease(ints, floats, n, dual_row_count)
    else:
        for i in range(n):
            floats[model_gradient + i] = floats[H + i * n + i] * floats[y + i]
        for i in range(n):
            s = 0.0
            for k in range(ints[envelope + i], i):
                s += floats[H + i * n + k] * floats[y + k]
                floats[model_gradient + k] += floats[H + i * n + k] * floats[y + i]
            floats[model_gradient + i] += s
    for i in range(n):
        change += floats[y + i] * (floats[model_gradient + i] - 2.0 * floats[g + i])
        floats[model_gradient + i] -= floats[g + i]
    return change
