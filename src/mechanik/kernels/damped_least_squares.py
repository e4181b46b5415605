"""Damped least squares of the soft residuals over the independent columns: assembly and solution.

A step s of the independent columns minimises |e + A s|^2 + damping (|s|^2 + |o + Z s|^2). Here e are the soft residuals
and A = J (1, Z) is their Jacobian, both after the elimination of the hard rows; o + Z s is the step of the dependent
columns, with o = `offset` (`elimination.py`). The normal equations of this step are

    H0 s = -A'e - damping Z'o,    H0 = A'A + damping (1 + Z'Z)

`write_primal_matrix` copies H0 to H and fixes the columns of the active set, then `solve_ldlt` factorises H. H0 itself
stays, for further solves with another active set, except as described in `solve_reduced_step`. Instead of this primal
form with one equation for each independent column, the dual form has one for each residual row (`linear_systems.py`).
Indices such as `b` and `v` are explained in `problem_layout.py`.
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
from .problem_views import columns_of_block, jacobian_of_block, null_space_row, rows_of_block, square_matrix
from .tables import matrix_at

PRIMAL_FORM = -1
"""Value of `dual_row_count` that selects the primal form."""
MIN_PIVOT_RATIO = 0.1
"""Smallest pivot, if second derivatives are used, as a ratio to the damping before CURVATURE_DAMPING_RATIO. Smaller
pivots are raised to it: a larger ratio shortens steps along directions of small curvature."""


@subroutine
def gather_block(problem, buffer, b, hard_end, n):
    """Reduce a soft block to the independent columns; its residual is clipped to `max_error` and `max_angle_error`.

    The independent indices of the columns of the reduced Jacobian are written to `column_list`, and the residual after
    elimination to `block_residual`.

    Returns:
        The reduced Jacobian, whose rows may be longer, and the number of its columns.
    """
    options, block, block_residual = problem.options, problem.blocks[b], problem.block_residual
    m, width, columns = block.row_count, block.column_count, columns_of_block(problem, block)
    J, residual = jacobian_of_block(problem, buffer, block), rows_of_block(problem.residual[buffer], block)
    column_list, independent_index = problem.column_list, problem.independent_index
    for r in range(m):
        block_residual[r] = residual[r]
    if options.max_error < np.inf or options.max_angle_error < np.inf:
        clip_error(block_residual, block.row_mask, m, options.max_error, options.max_angle_error)
    if hard_end == 0:
        for u in range(width):
            column_list[u] = independent_index[columns[u]]
        return J, width
    reduced_jacobian, listed_count = matrix_at(problem.reduced_jacobian, 0, m, n), problem.runtime_zero
    for u in range(width):
        v = columns[u]
        if problem.pivot_row[v] == NO_INDEX:
            listed_count = add_column(problem, J, u, independent_index[v], 1.0, reduced_jacobian, listed_count)
        else:  # the column of a dependent dof: its motion is offset + Z s
            for r in range(m):
                block_residual[r] += J[r, u] * problem.offset[v]
            indices, entries = null_space_row(problem, v)
            for k in range(len(entries)):
                listed_count = add_column(problem, J, u, indices[k], entries[k], reduced_jacobian, listed_count)
    for position in range(listed_count):
        problem.list_position[column_list[position]] = 0
    return reduced_jacobian, listed_count


@subroutine
def add_column(problem, J, u, independent_index, factor, reduced_jacobian, listed_count):
    """Add `factor` times column u of J to the column of the reduced Jacobian that belongs to an independent index.

    Returns:
        The number of columns of the reduced Jacobian; it increases by 1 if the independent index was not listed.
    """
    m, position = J.shape[0], problem.list_position[independent_index] - 1
    if position < 0:
        position = listed_count
        problem.list_position[independent_index] = position + 1
        problem.column_list[position] = independent_index
        listed_count += 1
        for r in range(m):
            reduced_jacobian[r, position] = 0.0
    for r in range(m):
        reduced_jacobian[r, position] += factor * J[r, u]
    return listed_count


@subroutine
def assemble_normal_equations(
    problem, buffer, hard_end, soft_end, n, damping, damps_dependent, uses_curvature, has_moved, uses_dual_form
):
    """Assemble the damped normal equations of the soft residuals, or the dual form if `uses_dual_form`.

    The normal equations have the matrix H0 = A'A + damping (1 + Z'Z) and the right-hand side -A'e - damping Z'o, where
    o is the table `offset`. The right-hand side is written to `damped_negative_gradient`; its part -A'e, the
    negative gradient of half the cost, to `negative_gradient`. The damping of each column is multiplied by the table
    `extra_damping`. The dual form stores the rows of A instead of H0 (`linear_systems.py`).

    Two arguments have no effect on the dual form. Without `damps_dependent` only the independent columns are damped:
    the terms damping Z'Z and damping Z'o are omitted. With many loops this takes half the time. With `uses_curvature`,
    second derivatives are added to H0; the last step updates them if `has_moved`.

    Returns:
        The cost e'e, and the number of dual rows or `PRIMAL_FORM`.
    """
    blocks, envelope, list_position = problem.blocks, problem.envelope, problem.list_position
    negative_gradient, block_residual = problem.negative_gradient, problem.block_residual
    H0 = square_matrix(problem.H0, n)  # not used in the dual form
    for i in range(n):
        envelope[i] = i
        negative_gradient[i] = 0.0
        list_position[i] = 0
    cost, dual_row_count = 0.0, problem.runtime_zero + PRIMAL_FORM
    if uses_dual_form:
        dual_row_count = problem.runtime_zero
        begin_dual(problem, damping)
    else:
        for i in range(n):
            row = H0[i]
            for k in range(i + 1):
                row[k] = 0.0
    for b in range(hard_end, soft_end):
        m = blocks[b].row_count
        if uses_dual_form and m == 1 and blocks[b].column_count == 1:
            cost += add_single_column_row(problem, buffer, b)
            continue
        A, listed_count = gather_block(problem, buffer, b, hard_end, n)
        for r in range(m):
            cost += block_residual[r] * block_residual[r]
        if uses_dual_form:
            dual_row_count = add_dual_rows(problem, n, dual_row_count, m, A, listed_count)
        else:
            add_normal_equations(problem, H0, A, m, listed_count)
    if uses_dual_form:
        return cost, finish_dual(problem, n, dual_row_count, damping)
    if uses_curvature:
        add_curvature(problem, n, has_moved)
    for i in range(n):
        H0[i, i] += damping * problem.extra_damping[problem.independent_column[i]]
        problem.damped_negative_gradient[i] = negative_gradient[i]
    if hard_end > 0 and damps_dependent:
        for v in range(problem.column_count):
            if problem.pivot_row[v] != NO_INDEX:
                damp_dependent(problem, H0, v, damping)
    return cost, dual_row_count


@subroutine
def add_normal_equations(problem, H0, A, m, listed_count):
    """Add A'A of a block to the lower triangle of H0 and -A'e to `negative_gradient`; lower the envelope accordingly.

    A is the Jacobian over the columns in `column_list`, (m, listed_count), and `block_residual` is e. Blocks of 6 and 3
    rows (poses, positions) are the most common; they take a third of the time if a column of A, (a0, ..., a5), stays in
    registers.
    """
    envelope, column_list, negative_gradient, e = (
        problem.envelope,
        problem.column_list,
        problem.negative_gradient,
        problem.block_residual,
    )
    first_index = H0.shape[0]
    for position in range(listed_count):
        first_index = min(first_index, column_list[position])
    for position in range(listed_count):
        i = column_list[position]
        envelope[i] = min(envelope[i], first_index)
    if m == 6:
        for position in range(listed_count):
            i = column_list[position]
            row = H0[i]
            a0, a1, a2 = A[0, position], A[1, position], A[2, position]
            a3, a4, a5 = A[3, position], A[4, position], A[5, position]
            negative_gradient[i] -= a0 * e[0] + a1 * e[1] + a2 * e[2] + a3 * e[3] + a4 * e[4] + a5 * e[5]
            for k in range(listed_count):
                if column_list[k] <= i:
                    row[column_list[k]] += (a0 * A[0, k] + a1 * A[1, k] + a2 * A[2, k]) + (
                        a3 * A[3, k] + a4 * A[4, k] + a5 * A[5, k]
                    )
    elif m == 3:
        for position in range(listed_count):
            i = column_list[position]
            row = H0[i]
            a0, a1, a2 = A[0, position], A[1, position], A[2, position]
            negative_gradient[i] -= a0 * e[0] + a1 * e[1] + a2 * e[2]
            for k in range(listed_count):
                if column_list[k] <= i:
                    row[column_list[k]] += a0 * A[0, k] + a1 * A[1, k] + a2 * A[2, k]
    else:
        for position in range(listed_count):
            i = column_list[position]
            row = H0[i]
            for r in range(m):
                negative_gradient[i] -= A[r, position] * e[r]
            for k in range(listed_count):
                if column_list[k] <= i:
                    product = 0.0
                    for r in range(m):
                        product += A[r, position] * A[r, k]
                    row[column_list[k]] += product


@subroutine
def damp_dependent(problem, H0, v, damping):
    """Add the damping of the dependent column v to H0 and to the negative gradient in `damped_negative_gradient`."""
    envelope, offset, damped_negative_gradient = problem.envelope, problem.offset, problem.damped_negative_gradient
    indices, entries = null_space_row(problem, v)
    damping *= problem.extra_damping[v]
    first_index = H0.shape[0]
    for k in range(len(entries)):
        first_index = min(first_index, indices[k])
    for k in range(len(entries)):
        i, damped_entry = indices[k], damping * entries[k]
        row = H0[i]
        envelope[i] = min(envelope[i], first_index)
        damped_negative_gradient[i] -= damped_entry * offset[v]
        for j in range(len(entries)):
            if indices[j] <= i:
                row[indices[j]] += damped_entry * entries[j]


@subroutine
def solve_reduced_step(problem, x, n, active_count, dual_row_count, chain_block, uses_curvature, damping):
    """Write the step of the independent columns to `reduced_step`; columns at an active bound move to the bound.

    If the matrix with second derivatives has a direction of negative curvature, S is subtracted from H0, `damping` is
    added once more, and the step is computed again. This changes H0 for all further solves of this step, so the caller
    passes `uses_curvature` = False from then on.

    Returns:
        The smallest pivot, as a ratio to the largest diagonal entry. If second derivatives make a pivot negative, the
        negative curvature along the direction in `negative_curvature`. 0 for a chain with exact second derivatives.
    """
    if chain_block >= 0:
        write_chain_step(problem, x, chain_block, n)
        return 0.0
    is_primal = dual_row_count == PRIMAL_FORM
    size, curvature, is_solved = n if is_primal else dual_row_count, 0.0, False
    H = square_matrix(problem.H, size)
    min_pivot = MIN_PIVOT_RATIO * damping if uses_curvature and is_primal else 0.0
    for solve_index in range(3):
        if is_primal:
            write_primal_matrix(problem, x, H, active_count)
        else:
            write_dual_matrix(problem, x, H, n)
        if is_solved:
            # option `uses_eigenvalues`: solve the same system by eigenvalues instead; it was written again, since
            # `solve_ldlt` overwrites it
            solve_by_eigenvalues(problem, H, problem.envelope, problem.reduced_step)
            break
        negative_index, smallest_pivot, pivot_value = solve_ldlt(
            problem, H, problem.envelope, problem.reduced_step, min_pivot
        )
        if solve_index == 0:
            curvature = smallest_pivot
        if solve_index == 1 or negative_index == NO_INDEX or not is_primal or not uses_curvature:
            is_solved = True
            if problem.options.uses_eigenvalues:
                continue
            break
        curvature = write_negative_curvature_direction(problem, H, negative_index, pivot_value)
        H0, S = square_matrix(problem.H0, n), square_matrix(problem.curvature, n)
        for i in range(n):
            row, curvature_row = H0[i], S[i]
            for k in range(i + 1):
                row[k] -= curvature_row[k]
            row[i] += damping
    if not is_primal:
        write_dual_step(problem, n, dual_row_count)
    return curvature


@subroutine
def write_primal_matrix(problem, x, H, active_count):
    """Write the matrix of the primal form to H, (n, n), and its right-hand side to `reduced_step`.

    The matrix is H0, but the rows and columns of columns that are not free are replaced by those of the identity. The
    right-hand side of such a column is its distance to the bound.
    """
    n = H.shape[0]
    bound_state, independent_column, envelope, damped_negative_gradient = (
        problem.bound_state,
        problem.independent_column,
        problem.envelope,
        problem.damped_negative_gradient,
    )
    H0, rhs = square_matrix(problem.H0, n), problem.reduced_step
    for i in range(n):
        rhs[i] = damped_negative_gradient[i]
        row, damped_row = H[i], H0[i]
        for k in range(envelope[i], i + 1):
            row[k] = damped_row[k]
    if active_count > 0:
        for i in range(n):
            v = independent_column[i]
            if bound_state[v] != FREE:
                row, distance = H[i], distance_to_bound(problem, x, v)
                for k in range(envelope[i], i):
                    rhs[k] -= row[k] * distance
                    row[k] = 0.0
                for k in range(i + 1, n):
                    if i >= envelope[k]:
                        rhs[k] -= H[k, i] * distance
                        H[k, i] = 0.0
                row[i] = 1.0
                rhs[i] = distance


@subroutine
def expand_step(problem, n):
    """Write the step of all columns to `step`, from the step of the independent columns in `reduced_step`."""
    step, reduced_step, independent_column = problem.step, problem.reduced_step, problem.independent_column
    for i in range(n):
        step[independent_column[i]] = reduced_step[i]
    if n == problem.column_count:
        return
    for v in range(problem.column_count):
        if problem.pivot_row[v] != NO_INDEX:
            column_step = problem.offset[v]
            indices, entries = null_space_row(problem, v)
            for k in range(len(entries)):
                column_step += entries[k] * reduced_step[indices[k]]
            step[v] = column_step


@subroutine
def model_change(problem, n, dual_row_count, chain_block):
    """Return the change of the cost (negative: a decrease) that the damped model predicts for `reduced_step`.

    Half the gradient of the model after the step is written to `model_gradient`; it is not negated, unlike
    `damped_negative_gradient`.
    """
    envelope, damped_negative_gradient, reduced_step, model_gradient = (
        problem.envelope,
        problem.damped_negative_gradient,
        problem.reduced_step,
        problem.model_gradient,
    )
    predicted_change = 0.0
    if chain_block >= 0:
        write_chain_product(problem, chain_block, n, reduced_step, model_gradient)
    elif dual_row_count != PRIMAL_FORM:
        return dual_model_change(problem, n, dual_row_count)
    else:
        H0 = square_matrix(problem.H0, n)
        for i in range(n):
            model_gradient[i] = H0[i, i] * reduced_step[i]
        for i in range(n):
            row, product = H0[i], 0.0
            for k in range(envelope[i], i):
                product += row[k] * reduced_step[k]
                model_gradient[k] += row[k] * reduced_step[i]
            model_gradient[i] += product
    for i in range(n):
        predicted_change += reduced_step[i] * (model_gradient[i] - 2.0 * damped_negative_gradient[i])
        model_gradient[i] -= damped_negative_gradient[i]
    return predicted_change
