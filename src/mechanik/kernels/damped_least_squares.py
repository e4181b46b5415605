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
    blocks, block_columns, dependent, place = (
        ints[AT_BLOCKS],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_DEPENDENT_INDEX],
        ints[AT_INDEPENDENT_INDEX],
    )
    local, listed, z_count, z_start = (
        ints[AT_LOCAL_COLUMN],
        ints[AT_LISTED_COLUMN],
        ints[AT_NULL_SPACE_COUNT],
        ints[AT_NULL_SPACE_START],
    )
    z_index, jacobian, rows, offset = ints[AT_NULL_SPACE_INDEX], ints[AT_JACOBIAN], ints[AT_RESIDUAL], ints[AT_OFFSET]
    A, e1, Z = ints[AT_BLOCK_A], ints[AT_BLOCK_RESIDUAL], ints[AT_NULL_SPACE]
    block = blocks + BLOCK_INTS * b
    m, width, row, column = (
        ints[block + ROW_COUNT],
        ints[block + COLUMN_COUNT],
        ints[block + FIRST_ROW],
        ints[block + FIRST_COLUMN],
    )
    J, E = jacobian + ints[N_JACOBIAN] * buffer + ints[block + FIRST_JACOBIAN], rows + ints[N_ROWS] * buffer + row
    for r in range(m):
        floats[e1 + r] = floats[E + r]
    if options[MAX_ERROR] < np.inf or options[MAX_ANGLE_ERROR] < np.inf:
        clip_error(floats, e1, ints[block + ROW_MASK], m, options[MAX_ERROR], options[MAX_ANGLE_ERROR])
    if hard == 0:
        for u in range(width):
            ints[listed + u] = ints[place + ints[block_columns + column + u]]
        return J, width, width
    touched = ints[RUNTIME_ZERO]
    for u in range(width):
        v = ints[block_columns + column + u]
        if ints[dependent + v] == NO_COLUMN:
            touched = add_column(ints, floats, J + u, width, m, ints[place + v], 1.0, A, n, local, listed, touched)
        else:
            for r in range(m):
                floats[e1 + r] += floats[J + r * width + u] * floats[offset + v]
            for k in range(ints[z_start + v], ints[z_start + v] + ints[z_count + v]):
                touched = add_column(
                    ints, floats, J + u, width, m, ints[z_index + k], floats[Z + k], A, n, local, listed, touched
                )
    for t in range(touched):
        ints[local + ints[listed + t]] = 0
    return A, n, touched


@subroutine
def add_column(ints, floats, J, width, m, i, z, A, n, local, listed, touched):
    """Add z times a column of J to the column of A of the independent index i; return the number of columns of A."""
    t = ints[local + i] - 1
    if t < 0:
        t = touched
        ints[local + i] = t + 1
        ints[listed + t] = i
        touched += 1
        for r in range(m):
            floats[A + r * n + t] = 0.0
    for r in range(m):
        floats[A + r * n + t] += z * floats[J + r * width]
    return touched


@subroutine
def assemble_normal_equations(
    ints, floats, options, buffer, hard, soft, n, damping, all_damped, uses_curvature, moved, wide
):
    """Assemble the damped normal equations of the soft residuals, or the dual form if `wide`.

    The normal equations are H0 = A'A + damping (1 + Z'Z) and the negative gradient -A'e over the independent columns.
    The dual form stores the rows themselves instead of H0 (`linear_systems.py`). Without `all_damped` only the
    independent columns are damped, which takes half the time where there are many loops.

    Returns:
        The cost e'e, and the number of dual rows or `PRIMAL_FORM`.
    """
    blocks, dependent, first, local = (
        ints[AT_BLOCKS],
        ints[AT_DEPENDENT_INDEX],
        ints[AT_ENVELOPE],
        ints[AT_LOCAL_COLUMN],
    )
    listed, g, e, H = ints[AT_LISTED_COLUMN], ints[AT_GRADIENT], ints[AT_BLOCK_RESIDUAL], ints[AT_H0]
    for i in range(n):
        ints[first + i] = i
        floats[g + i] = 0.0
        ints[local + i] = 0
    cost, kept = 0.0, ints[RUNTIME_ZERO] + PRIMAL_FORM
    if wide:
        kept = ints[RUNTIME_ZERO]
        begin_dual(ints, floats, damping)
    else:
        for i in range(n):
            for k in range(i + 1):
                floats[H + i * n + k] = 0.0
    for b in range(hard, soft):
        m = ints[blocks + BLOCK_INTS * b + ROW_COUNT]
        if wide and m == 1 and ints[blocks + BLOCK_INTS * b + COLUMN_COUNT] == 1:
            cost += add_single_column_row(ints, floats, options, buffer, b)
            continue
        A, width, count = gather_block(ints, floats, options, buffer, b, hard, n)
        for r in range(m):
            cost += floats[e + r] * floats[e + r]
        if wide:
            kept = add_dual_rows(ints, floats, n, kept, m, A, width, count)
            continue
        lowest = n
        for t in range(count):
            lowest = min(lowest, ints[listed + t])
        for t in range(count):
            ints[first + ints[listed + t]] = min(ints[first + ints[listed + t]], lowest)
        # poses and positions are the common case: with their columns in registers they take a third of the time
        if m == 6:
            for t in range(count):
                i, a = ints[listed + t], A + t
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
                    l, c = ints[listed + k], A + k
                    if l <= i:
                        floats[H + i * n + l] += (
                            a0 * floats[c] + a1 * floats[c + width] + a2 * floats[c + 2 * width]
                        ) + (a3 * floats[c + 3 * width] + a4 * floats[c + 4 * width] + a5 * floats[c + 5 * width])
        elif m == 3:
            for t in range(count):
                i, a = ints[listed + t], A + t
                a0, a1, a2 = floats[a], floats[a + width], floats[a + 2 * width]
                floats[g + i] -= a0 * floats[e] + a1 * floats[e + 1] + a2 * floats[e + 2]
                for k in range(count):
                    l, c = ints[listed + k], A + k
                    if l <= i:
                        floats[H + i * n + l] += a0 * floats[c] + a1 * floats[c + width] + a2 * floats[c + 2 * width]
        else:
            for t in range(count):
                i = ints[listed + t]
                for r in range(m):
                    floats[g + i] -= floats[A + r * width + t] * floats[e + r]
                for k in range(count):
                    if ints[listed + k] <= i:
                        s = 0.0
                        for r in range(m):
                            s += floats[A + r * width + t] * floats[A + r * width + k]
                        floats[H + i * n + ints[listed + k]] += s
    if wide:
        return cost, finish_dual(ints, floats, n, kept, damping)
    if uses_curvature:
        add_curvature(ints, floats, n, moved)
    for i in range(n):
        floats[H + i * n + i] += damping * floats[ints[AT_EXTRA_DAMPING] + ints[ints[AT_INDEPENDENT_COLUMN] + i]]
        floats[ints[AT_DAMPED_GRADIENT] + i] = floats[g + i]
    if hard > 0 and all_damped:
        for v in range(ints[N_COLUMNS]):
            if ints[dependent + v] != NO_COLUMN:
                damp_dependent(ints, floats, v, n, damping)
    return cost, kept


@subroutine
def damp_dependent(ints, floats, v, n, damping):
    first, z_count, z_start, z_index = (
        ints[AT_ENVELOPE],
        ints[AT_NULL_SPACE_COUNT],
        ints[AT_NULL_SPACE_START],
        ints[AT_NULL_SPACE_INDEX],
    )
    offset, pull, H0, Z = ints[AT_OFFSET], ints[AT_DAMPED_GRADIENT], ints[AT_H0], ints[AT_NULL_SPACE]
    start, end = ints[z_start + v], ints[z_start + v] + ints[z_count + v]
    damping *= floats[ints[AT_EXTRA_DAMPING] + v]
    lowest = n
    for k in range(start, end):
        lowest = min(lowest, ints[z_index + k])
    for k in range(start, end):
        i, z = ints[z_index + k], damping * floats[Z + k]
        ints[first + i] = min(ints[first + i], lowest)
        floats[pull + i] -= z * floats[offset + v]
        for l in range(start, end):
            if ints[z_index + l] <= i:
                floats[H0 + i * n + ints[z_index + l]] += z * floats[Z + l]


@subroutine
def solve_reduced_step(ints, floats, options, x, n, active_count, kept, chain, uses_curvature, damping):
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
    size, bend, settled = n, 0.0, False
    floor = PIVOT_FLOOR * damping if uses_curvature and kept == PRIMAL_FORM else 0.0
    for again in range(3):
        if kept == PRIMAL_FORM:
            primal_matrix(ints, floats, x, n, active_count)
        else:
            dual_matrix(ints, floats, x, n, kept)
            size = kept
        if settled:  # the active method asks for eigenvalues
            solve_by_eigenvalues(ints, floats, ints[AT_H], size, ints[AT_ENVELOPE], ints[AT_REDUCED_STEP])
            break
        down, least, sunk = solve_ldlt(ints, floats, ints[AT_H], size, ints[AT_ENVELOPE], ints[AT_REDUCED_STEP], floor)
        if again == 0:
            bend = least
        if again == 1 or down == NO_COLUMN or kept != PRIMAL_FORM or not uses_curvature:
            settled = True
            if options[USES_EIGENVALUES] == 1.0:
                continue
            break
        bend = negative_curvature_direction(ints, floats, n, down, sunk)
        for i in range(n):
            for k in range(i + 1):
                floats[ints[AT_H0] + i * n + k] -= floats[ints[AT_CURVATURE] + i * n + k]
            floats[ints[AT_H0] + i * n + i] += damping
    if kept != PRIMAL_FORM:
        dual_step(ints, floats, n, kept)
    return bend


@subroutine
def primal_matrix(ints, floats, x, n, active_count):
    """Write H0 over the free columns to `AT_H` and its right-hand side to `AT_REDUCED_STEP`."""
    ban, independent, first, pull = (
        ints[AT_BOUND_STATE],
        ints[AT_INDEPENDENT_COLUMN],
        ints[AT_ENVELOPE],
        ints[AT_DAMPED_GRADIENT],
    )
    H, H0, y = ints[AT_H], ints[AT_H0], ints[AT_REDUCED_STEP]
    for i in range(n):
        floats[y + i] = floats[pull + i]
        for k in range(ints[first + i], i + 1):
            floats[H + i * n + k] = floats[H0 + i * n + k]
    if active_count > 0:
        for i in range(n):
            v = ints[independent + i]
            if ints[ban + v] != FREE:
                way = distance_to_bound(ints, floats, x, v)
                for k in range(ints[first + i], i):
                    floats[y + k] -= floats[H + i * n + k] * way
                    floats[H + i * n + k] = 0.0
                for k in range(i + 1, n):
                    if i >= ints[first + k]:
                        floats[y + k] -= floats[H + k * n + i] * way
                        floats[H + k * n + i] = 0.0
                floats[H + i * n + i] = 1.0
                floats[y + i] = way


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
    line = ints[AT_REDUCED_STEP]
    for i in range(n):
        floats[step + ints[independent + i]] = floats[line + i]
    if n == ints[N_COLUMNS]:
        return
    for v in range(ints[N_COLUMNS]):
        if ints[dependent + v] != NO_COLUMN:
            s = floats[offset + v]
            for k in range(ints[z_start + v], ints[z_start + v] + ints[z_count + v]):
                s += floats[Z + k] * floats[line + ints[z_index + k]]
            floats[step + v] = s


@subroutine
def model_decrease(ints, floats, n, kept, chain):
    """Return the change of the cost (negative: a decrease) that the damped model predicts for `AT_REDUCED_STEP`.

    `AT_MODEL_GRADIENT` receives half the gradient of the model after the step.
    """
    first, g, H, y, full = (
        ints[AT_ENVELOPE],
        ints[AT_DAMPED_GRADIENT],
        ints[AT_H0],
        ints[AT_REDUCED_STEP],
        ints[AT_MODEL_GRADIENT],
    )
    change = 0.0
    if chain >= 0:
        chain_product(ints, floats, chain, n, y, full)
    elif kept != PRIMAL_FORM:
        return dual_model_decrease(ints, floats, n, kept)
    else:
        for i in range(n):
            floats[full + i] = floats[H + i * n + i] * floats[y + i]
        for i in range(n):
            s = 0.0
            for k in range(ints[first + i], i):
                s += floats[H + i * n + k] * floats[y + k]
                floats[full + k] += floats[H + i * n + k] * floats[y + i]
            floats[full + i] += s
    for i in range(n):
        change += floats[y + i] * (floats[full + i] - 2.0 * floats[g + i])
        floats[full + i] -= floats[g + i]
    return change
