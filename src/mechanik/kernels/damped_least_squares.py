"""Damped least squares of the soft residuals over the independent columns: assembly and solution.

A step s of the independent columns minimises |e + A s|^2 + damping |s|^2. Here e are the soft residuals and
A = J (1, Z) is their Jacobian, both after the elimination of the hard rows (`elimination.py`). The system has one
equation for each independent column (primal form) or for each residual row (dual form, `linear_systems.py`). Indices
such as `b` and `v` are explained in `problem_layout.py`.
"""

from __future__ import annotations

import numpy as np

from .compiler import subroutine
from .curvature import add_curvature, write_chain_product, write_chain_step
from .elimination import NO_INDEX
from .linear_systems import (
    add_dual_rows,
    add_single_column_row,
    begin_dual,
    clip_error,
    distance_to_bound,
    dual_model_change,
    finish_dual,
    solve_by_eigenvalues,
    solve_ldlt,
    write_dual_matrix,
    write_dual_step,
    write_negative_curvature_direction,
)
from .problem_layout import *

PRIMAL_FORM = -1
"""Value of `dual_row_count` that selects the primal form."""
MIN_PIVOT_RATIO = 0.1
"""Smallest pivot, as a ratio to the damping, if second derivatives are used. Smaller pivots are raised to it: a larger
ratio shortens steps along directions of small curvature."""


@subroutine
def gather_block(ints, floats, options, buffer, b, hard_end, n):
    """Reduce a soft block to the independent columns; its residual is clipped to MAX_ERROR and MAX_ANGLE_ERROR.

    The independent indices of the columns of the reduced Jacobian are written to `AT_COLUMN_LIST`, and the residual
    after elimination to `AT_BLOCK_RESIDUAL`.

    Returns:
        The offset of the reduced Jacobian in `floats`, the length of its rows there, and the number of its columns.
    """
    blocks, block_columns, pivot_row, independent_index = (
        ints[AT_BLOCKS],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_PIVOT_ROW],
        ints[AT_INDEPENDENT_INDEX],
    )
    list_position, column_list, null_space_count, null_space_start = (
        ints[AT_LIST_POSITION],
        ints[AT_COLUMN_LIST],
        ints[AT_NULL_SPACE_COUNT],
        ints[AT_NULL_SPACE_START],
    )
    null_space_index, jacobian_table, residual_table, offset = (
        ints[AT_NULL_SPACE_INDEX],
        ints[AT_JACOBIAN],
        ints[AT_RESIDUAL],
        ints[AT_OFFSET],
    )
    reduced_jacobian, block_residual, Z = ints[AT_REDUCED_JACOBIAN], ints[AT_BLOCK_RESIDUAL], ints[AT_NULL_SPACE]
    block = blocks + BLOCK_INTS * b
    m, width, first_row, first_column = (
        ints[block + ROW_COUNT],
        ints[block + COLUMN_COUNT],
        ints[block + FIRST_ROW],
        ints[block + FIRST_COLUMN],
    )
    J, residual = (
        jacobian_table + ints[N_JACOBIAN] * buffer + ints[block + FIRST_JACOBIAN],
        residual_table + ints[N_ROWS] * buffer + first_row,
    )
    for r in range(m):
        floats[block_residual + r] = floats[residual + r]
    if options[MAX_ERROR] < np.inf or options[MAX_ANGLE_ERROR] < np.inf:
        clip_error(floats, block_residual, ints[block + ROW_MASK], m, options[MAX_ERROR], options[MAX_ANGLE_ERROR])
    if hard_end == 0:
        for u in range(width):
            ints[column_list + u] = ints[independent_index + ints[block_columns + first_column + u]]
        return J, width, width
    listed_count = ints[RUNTIME_ZERO]
    for u in range(width):
        v = ints[block_columns + first_column + u]
        if ints[pivot_row + v] == NO_INDEX:
            listed_count = add_column(
                ints,
                floats,
                J + u,
                width,
                m,
                ints[independent_index + v],
                1.0,
                reduced_jacobian,
                n,
                list_position,
                column_list,
                listed_count,
            )
        else:
            for r in range(m):
                floats[block_residual + r] += floats[J + r * width + u] * floats[offset + v]
            for k in range(ints[null_space_start + v], ints[null_space_start + v] + ints[null_space_count + v]):
                listed_count = add_column(
                    ints,
                    floats,
                    J + u,
                    width,
                    m,
                    ints[null_space_index + k],
                    floats[Z + k],
                    reduced_jacobian,
                    n,
                    list_position,
                    column_list,
                    listed_count,
                )
    for position in range(listed_count):
        ints[list_position + ints[column_list + position]] = 0
    return reduced_jacobian, n, listed_count


@subroutine
def add_column(
    ints,
    floats,
    jacobian_column,
    width,
    m,
    independent_index,
    factor,
    reduced_jacobian,
    n,
    list_position,
    column_list,
    listed_count,
):
    """Add `factor` times a column of J to the column of the reduced Jacobian that belongs to an independent index.

    Returns:
        The number of columns of the reduced Jacobian; it increases by 1 if the independent index was not listed.
    """
    position = ints[list_position + independent_index] - 1
    if position < 0:
        position = listed_count
        ints[list_position + independent_index] = position + 1
        ints[column_list + position] = independent_index
        listed_count += 1
        for r in range(m):
            floats[reduced_jacobian + r * n + position] = 0.0
    for r in range(m):
        floats[reduced_jacobian + r * n + position] += factor * floats[jacobian_column + r * width]
    return listed_count


@subroutine
def assemble_normal_equations(
    ints,
    floats,
    options,
    buffer,
    hard_end,
    soft_end,
    n,
    damping,
    damps_dependent,
    uses_curvature,
    has_moved,
    uses_dual_form,
):
    """Assemble the damped normal equations of the soft residuals, or the dual form if `uses_dual_form`.

    The normal equations have the matrix H0 = A'A + damping (1 + Z'Z) and the right-hand side -A'e - damping Z'o, where
    o is the table `offset`. The right-hand side is written to `AT_DAMPED_NEGATIVE_GRADIENT`; its part -A'e, the
    negative gradient of half the cost, to `AT_NEGATIVE_GRADIENT`. The damping of each column is multiplied by the table
    `extra_damping`. The dual form stores the rows of A instead of H0 (`linear_systems.py`).

    Two arguments have no effect on the dual form. Without `damps_dependent` only the independent columns are damped:
    the terms damping Z'Z and damping Z'o are omitted. With many loops this takes half the time. With `uses_curvature`,
    second derivatives are added to H0; the last step updates them if `has_moved` is 1.0.

    Returns:
        The cost e'e, and the number of dual rows or `PRIMAL_FORM`.
    """
    blocks, pivot_row, envelope, list_position = (
        ints[AT_BLOCKS],
        ints[AT_PIVOT_ROW],
        ints[AT_ENVELOPE],
        ints[AT_LIST_POSITION],
    )
    column_list, negative_gradient, block_residual, H0 = (
        ints[AT_COLUMN_LIST],
        ints[AT_NEGATIVE_GRADIENT],
        ints[AT_BLOCK_RESIDUAL],
        ints[AT_H0],
    )
    for i in range(n):
        ints[envelope + i] = i
        floats[negative_gradient + i] = 0.0
        ints[list_position + i] = 0
    cost, dual_row_count = 0.0, ints[RUNTIME_ZERO] + PRIMAL_FORM
    if uses_dual_form:
        dual_row_count = ints[RUNTIME_ZERO]
        begin_dual(ints, floats, damping)
    else:
        for i in range(n):
            for k in range(i + 1):
                floats[H0 + i * n + k] = 0.0
    for b in range(hard_end, soft_end):
        m = ints[blocks + BLOCK_INTS * b + ROW_COUNT]
        if uses_dual_form and m == 1 and ints[blocks + BLOCK_INTS * b + COLUMN_COUNT] == 1:
            cost += add_single_column_row(ints, floats, options, buffer, b)
            continue
        jacobian, row_length, listed_count = gather_block(ints, floats, options, buffer, b, hard_end, n)
        for r in range(m):
            cost += floats[block_residual + r] * floats[block_residual + r]
        if uses_dual_form:
            dual_row_count = add_dual_rows(ints, floats, n, dual_row_count, m, jacobian, row_length, listed_count)
            continue
        first_index = n
        for position in range(listed_count):
            first_index = min(first_index, ints[column_list + position])
        for position in range(listed_count):
            ints[envelope + ints[column_list + position]] = min(
                ints[envelope + ints[column_list + position]], first_index
            )
        # blocks of 6 and 3 rows (poses, positions) are the most common; they take a third of the time if a column (a0
        # to a5) stays in registers
        if m == 6:
            for position in range(listed_count):
                i, column = ints[column_list + position], jacobian + position
                a0, a1, a2 = floats[column], floats[column + row_length], floats[column + 2 * row_length]
                a3, a4, a5 = (
                    floats[column + 3 * row_length],
                    floats[column + 4 * row_length],
                    floats[column + 5 * row_length],
                )
                floats[negative_gradient + i] -= (
                    a0 * floats[block_residual]
                    + a1 * floats[block_residual + 1]
                    + a2 * floats[block_residual + 2]
                    + a3 * floats[block_residual + 3]
                    + a4 * floats[block_residual + 4]
                    + a5 * floats[block_residual + 5]
                )
                for k in range(listed_count):
                    other_index, other_column = ints[column_list + k], jacobian + k
                    if other_index <= i:
                        floats[H0 + i * n + other_index] += (
                            a0 * floats[other_column]
                            + a1 * floats[other_column + row_length]
                            + a2 * floats[other_column + 2 * row_length]
                        ) + (
                            a3 * floats[other_column + 3 * row_length]
                            + a4 * floats[other_column + 4 * row_length]
                            + a5 * floats[other_column + 5 * row_length]
                        )
        elif m == 3:
            for position in range(listed_count):
                i, column = ints[column_list + position], jacobian + position
                a0, a1, a2 = floats[column], floats[column + row_length], floats[column + 2 * row_length]
                floats[negative_gradient + i] -= (
                    a0 * floats[block_residual] + a1 * floats[block_residual + 1] + a2 * floats[block_residual + 2]
                )
                for k in range(listed_count):
                    other_index, other_column = ints[column_list + k], jacobian + k
                    if other_index <= i:
                        floats[H0 + i * n + other_index] += (
                            a0 * floats[other_column]
                            + a1 * floats[other_column + row_length]
                            + a2 * floats[other_column + 2 * row_length]
                        )
        else:
            for position in range(listed_count):
                i = ints[column_list + position]
                for r in range(m):
                    floats[negative_gradient + i] -= (
                        floats[jacobian + r * row_length + position] * floats[block_residual + r]
                    )
                for k in range(listed_count):
                    if ints[column_list + k] <= i:
                        product = 0.0
                        for r in range(m):
                            product += (
                                floats[jacobian + r * row_length + position] * floats[jacobian + r * row_length + k]
                            )
                        floats[H0 + i * n + ints[column_list + k]] += product
    if uses_dual_form:
        return cost, finish_dual(ints, floats, n, dual_row_count, damping)
    if uses_curvature:
        add_curvature(ints, floats, n, has_moved)
    for i in range(n):
        floats[H0 + i * n + i] += damping * floats[ints[AT_EXTRA_DAMPING] + ints[ints[AT_INDEPENDENT_COLUMN] + i]]
        floats[ints[AT_DAMPED_NEGATIVE_GRADIENT] + i] = floats[negative_gradient + i]
    if hard_end > 0 and damps_dependent:
        for v in range(ints[N_COLUMNS]):
            if ints[pivot_row + v] != NO_INDEX:
                damp_dependent(ints, floats, v, n, damping)
    return cost, dual_row_count


@subroutine
def damp_dependent(ints, floats, v, n, damping):
    """Add the damping of the dependent column v to H0 and to the negative gradient in `AT_DAMPED_NEGATIVE_GRADIENT`."""
    envelope, null_space_count, null_space_start, null_space_index = (
        ints[AT_ENVELOPE],
        ints[AT_NULL_SPACE_COUNT],
        ints[AT_NULL_SPACE_START],
        ints[AT_NULL_SPACE_INDEX],
    )
    offset, damped_negative_gradient, H0, Z = (
        ints[AT_OFFSET],
        ints[AT_DAMPED_NEGATIVE_GRADIENT],
        ints[AT_H0],
        ints[AT_NULL_SPACE],
    )
    first_entry, end_entry = ints[null_space_start + v], ints[null_space_start + v] + ints[null_space_count + v]
    damping *= floats[ints[AT_EXTRA_DAMPING] + v]
    first_index = n
    for k in range(first_entry, end_entry):
        first_index = min(first_index, ints[null_space_index + k])
    for k in range(first_entry, end_entry):
        i, damped_entry = ints[null_space_index + k], damping * floats[Z + k]
        ints[envelope + i] = min(ints[envelope + i], first_index)
        floats[damped_negative_gradient + i] -= damped_entry * floats[offset + v]
        for j in range(first_entry, end_entry):
            if ints[null_space_index + j] <= i:
                floats[H0 + i * n + ints[null_space_index + j]] += damped_entry * floats[Z + j]


@subroutine
def solve_reduced_step(ints, floats, options, x, n, active_count, dual_row_count, chain_block, uses_curvature, damping):
    """Write the step of the independent columns to `AT_REDUCED_STEP`; columns at an active bound move to the bound.

    If the matrix with second derivatives has a direction of negative curvature, the step is computed again without
    second derivatives and with more damping.

    Returns:
        The smallest pivot, as a ratio to the largest diagonal entry. If second derivatives make a pivot negative, the
        negative curvature along the direction in `AT_NEGATIVE_CURVATURE`. 0 for a chain with exact second derivatives.
    """
    if chain_block >= 0:
        write_chain_step(ints, floats, x, chain_block, n)
        return 0.0
    row_count, curvature, is_solved = n, 0.0, False
    min_pivot = MIN_PIVOT_RATIO * damping if uses_curvature and dual_row_count == PRIMAL_FORM else 0.0
    for solve_index in range(3):
        if dual_row_count == PRIMAL_FORM:
            write_primal_matrix(ints, floats, x, n, active_count)
        else:
            write_dual_matrix(ints, floats, x, n, dual_row_count)
            row_count = dual_row_count
        if is_solved:
            # option USES_EIGENVALUES: solve the same system by eigenvalues instead; it was assembled again, since LDL'
            # overwrites it
            solve_by_eigenvalues(ints, floats, ints[AT_H], row_count, ints[AT_ENVELOPE], ints[AT_REDUCED_STEP])
            break
        negative_index, smallest_pivot, pivot_value = solve_ldlt(
            ints, floats, ints[AT_H], row_count, ints[AT_ENVELOPE], ints[AT_REDUCED_STEP], min_pivot
        )
        if solve_index == 0:
            curvature = smallest_pivot
        if solve_index == 1 or negative_index == NO_INDEX or dual_row_count != PRIMAL_FORM or not uses_curvature:
            is_solved = True
            if options[USES_EIGENVALUES] == 1.0:
                continue
            break
        curvature = write_negative_curvature_direction(ints, floats, n, negative_index, pivot_value)
        for i in range(n):
            for k in range(i + 1):
                floats[ints[AT_H0] + i * n + k] -= floats[ints[AT_CURVATURE] + i * n + k]
            floats[ints[AT_H0] + i * n + i] += damping
    if dual_row_count != PRIMAL_FORM:
        write_dual_step(ints, floats, n, dual_row_count)
    return curvature


@subroutine
def write_primal_matrix(ints, floats, x, n, active_count):
    """Write the matrix of the primal form to `AT_H` and its right-hand side to `AT_REDUCED_STEP`.

    The matrix is H0, but the rows and columns of columns that are not free are replaced by those of the identity. The
    right-hand side of such a column is its distance to the bound.
    """
    bound_state, independent_column, envelope, damped_negative_gradient = (
        ints[AT_BOUND_STATE],
        ints[AT_INDEPENDENT_COLUMN],
        ints[AT_ENVELOPE],
        ints[AT_DAMPED_NEGATIVE_GRADIENT],
    )
    H, H0, rhs = ints[AT_H], ints[AT_H0], ints[AT_REDUCED_STEP]
    for i in range(n):
        floats[rhs + i] = floats[damped_negative_gradient + i]
        for k in range(ints[envelope + i], i + 1):
            floats[H + i * n + k] = floats[H0 + i * n + k]
    if active_count > 0:
        for i in range(n):
            v = ints[independent_column + i]
            if ints[bound_state + v] != FREE:
                distance = distance_to_bound(ints, floats, x, v)
                for k in range(ints[envelope + i], i):
                    floats[rhs + k] -= floats[H + i * n + k] * distance
                    floats[H + i * n + k] = 0.0
                for k in range(i + 1, n):
                    if i >= ints[envelope + k]:
                        floats[rhs + k] -= floats[H + k * n + i] * distance
                        floats[H + k * n + i] = 0.0
                floats[H + i * n + i] = 1.0
                floats[rhs + i] = distance


@subroutine
def expand_step(ints, floats, n):
    """Write the step of all columns to `AT_STEP`, from the step of the independent columns in `AT_REDUCED_STEP`."""
    pivot_row, independent_column, null_space_count, null_space_start = (
        ints[AT_PIVOT_ROW],
        ints[AT_INDEPENDENT_COLUMN],
        ints[AT_NULL_SPACE_COUNT],
        ints[AT_NULL_SPACE_START],
    )
    null_space_index, step, offset, Z = ints[AT_NULL_SPACE_INDEX], ints[AT_STEP], ints[AT_OFFSET], ints[AT_NULL_SPACE]
    reduced_step = ints[AT_REDUCED_STEP]
    for i in range(n):
        floats[step + ints[independent_column + i]] = floats[reduced_step + i]
    if n == ints[N_COLUMNS]:
        return
    for v in range(ints[N_COLUMNS]):
        if ints[pivot_row + v] != NO_INDEX:
            column_step = floats[offset + v]
            for k in range(ints[null_space_start + v], ints[null_space_start + v] + ints[null_space_count + v]):
                column_step += floats[Z + k] * floats[reduced_step + ints[null_space_index + k]]
            floats[step + v] = column_step


@subroutine
def model_change(ints, floats, n, dual_row_count, chain_block):
    """Return the change of the cost (negative: a decrease) that the damped model predicts for `AT_REDUCED_STEP`.

    Half the gradient of the model after the step is written to `AT_MODEL_GRADIENT`; it is not negated, unlike
    `AT_DAMPED_NEGATIVE_GRADIENT`.
    """
    envelope, damped_negative_gradient, H0, reduced_step, model_gradient = (
        ints[AT_ENVELOPE],
        ints[AT_DAMPED_NEGATIVE_GRADIENT],
        ints[AT_H0],
        ints[AT_REDUCED_STEP],
        ints[AT_MODEL_GRADIENT],
    )
    predicted_change = 0.0
    if chain_block >= 0:
        write_chain_product(ints, floats, chain_block, n, reduced_step, model_gradient)
    elif dual_row_count != PRIMAL_FORM:
        return dual_model_change(ints, floats, n, dual_row_count)
    else:
        for i in range(n):
            floats[model_gradient + i] = floats[H0 + i * n + i] * floats[reduced_step + i]
        for i in range(n):
            product = 0.0
            for k in range(ints[envelope + i], i):
                product += floats[H0 + i * n + k] * floats[reduced_step + k]
                floats[model_gradient + k] += floats[H0 + i * n + k] * floats[reduced_step + i]
            floats[model_gradient + i] += product
    for i in range(n):
        predicted_change += floats[reduced_step + i] * (
            floats[model_gradient + i] - 2.0 * floats[damped_negative_gradient + i]
        )
        floats[model_gradient + i] -= floats[damped_negative_gradient + i]
    return predicted_change
