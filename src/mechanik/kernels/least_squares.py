"""The damped least squares of the soft rows over the independent columns: the matrix, and its solution.

|e + A s|^2 + damping |s|^2, with A = J (1, Z) once the hard rows have been eliminated
"""

from __future__ import annotations

import numpy as np

from .chain_curvature import chain_times, solve_chain
from .compiler import part
from .curvature import bend_matrix
from .elimination import NONE
from .factors import cholesky, find_edge, solve_by_rotations
from .problem import *
from .wide import (
    add_alone,
    add_rows,
    begin_wide,
    end_wide,
    hold_back,
    small_matrix,
    way_to_bound,
    wide_line,
    wide_model,
)

NARROW = -1
FLOOR = 0.1
"""The smallest pivot, as a share of the damping, where second derivatives are known."""


@part
def gather(I, F, options, buffer, b, hard, n):
    """One soft block over the independent columns: their places into `listed`, its rows into `e1`.

    Returns where its Jacobian over these columns is, how wide it is, and how many columns count.
    """
    blocks, block_columns, dependent, place = I[AT_BLOCKS], I[AT_BLOCK_COLUMNS], I[AT_DEPENDENT], I[AT_PLACE]
    local, listed, z_count, z_start = I[AT_LOCAL], I[AT_LISTED], I[AT_Z_COUNT], I[AT_Z_START]
    z_index, jacobian, rows, offset = I[AT_Z_INDEX], I[AT_JACOBIAN], I[AT_ROWS], I[AT_OFFSET]
    A, e1, Z = I[AT_BLOCK_A], I[AT_E1], I[AT_Z]
    block = blocks + BLOCK_INTS * b
    m, width, row, column = I[block + ROWS], I[block + COLUMNS], I[block + FIRST_ROW], I[block + FIRST_COLUMN]
    J, E = jacobian + I[N_JACOBIAN] * buffer + I[block + FIRST_J], rows + I[N_ROWS] * buffer + row
    for r in range(m):
        F[e1 + r] = F[E + r]
    if options[LARGEST_ERROR] < np.inf or options[LARGEST_ANGLE] < np.inf:
        hold_back(F, e1, I[block + MASK], m, options[LARGEST_ERROR], options[LARGEST_ANGLE])
    if hard == 0:
        for u in range(width):
            I[listed + u] = I[place + I[block_columns + column + u]]
        return J, width, width
    touched = I[ZERO]
    for u in range(width):
        v = I[block_columns + column + u]
        if I[dependent + v] == NONE:
            touched = add_column(I, F, J + u, width, m, I[place + v], 1.0, A, n, local, listed, touched)
        else:
            for r in range(m):
                F[e1 + r] += F[J + r * width + u] * F[offset + v]
            for k in range(I[z_start + v], I[z_start + v] + I[z_count + v]):
                touched = add_column(I, F, J + u, width, m, I[z_index + k], F[Z + k], A, n, local, listed, touched)
    for t in range(touched):
        I[local + I[listed + t]] = 0
    return A, n, touched


@part
def add_column(I, F, J, width, m, i, z, A, n, local, listed, touched):
    """Add z times a column of J to the column of A that belongs to the independent column i."""
    t = I[local + i] - 1
    if t < 0:
        t = touched
        I[local + i] = t + 1
        I[listed + t] = i
        touched += 1
        for r in range(m):
            F[A + r * n + t] = 0.0
    for r in range(m):
        F[A + r * n + t] += z * F[J + r * width]
    return touched


@part
def assemble(I, F, options, buffer, hard, soft, n, damping, all_damped, curved, moved, wide):
    """All that is to be known of the soft rows; returns e'e, and how many rows are kept, or NARROW.

    The matrix H0 = A'A + damping (1 + Z'Z) and the gradient -A'e over the independent columns; of wide stages
    the rows themselves, as `wide.py` has them, in place of H0. If not all columns are damped, the independent ones are,
    which costs half as much where there are many loops.
    """
    blocks, dependent, first, local = I[AT_BLOCKS], I[AT_DEPENDENT], I[AT_FIRST], I[AT_LOCAL]
    listed, g, e, H = I[AT_LISTED], I[AT_GRADIENT], I[AT_E1], I[AT_H0]
    for i in range(n):
        I[first + i] = i
        F[g + i] = 0.0
        I[local + i] = 0
    cost, kept = 0.0, I[ZERO] + NARROW
    if wide:
        kept = I[ZERO]
        begin_wide(I, F, damping)
    else:
        for i in range(n):
            for k in range(i + 1):
                F[H + i * n + k] = 0.0
    for b in range(hard, soft):
        m = I[blocks + BLOCK_INTS * b + ROWS]
        if wide and m == 1 and I[blocks + BLOCK_INTS * b + COLUMNS] == 1:
            cost += add_alone(I, F, options, buffer, b)
            continue
        A, width, count = gather(I, F, options, buffer, b, hard, n)
        for r in range(m):
            cost += F[e + r] * F[e + r]
        if wide:
            kept = add_rows(I, F, n, kept, m, A, width, count)
            continue
        lowest = n
        for t in range(count):
            lowest = min(lowest, I[listed + t])
        for t in range(count):
            I[first + I[listed + t]] = min(I[first + I[listed + t]], lowest)
        # poses and points are the common case: with their columns in registers this takes a third of the time
        if m == 6:
            for t in range(count):
                i, a = I[listed + t], A + t
                a0, a1, a2 = F[a], F[a + width], F[a + 2 * width]
                a3, a4, a5 = F[a + 3 * width], F[a + 4 * width], F[a + 5 * width]
                F[g + i] -= a0 * F[e] + a1 * F[e + 1] + a2 * F[e + 2] + a3 * F[e + 3] + a4 * F[e + 4] + a5 * F[e + 5]
                for k in range(count):
                    l, c = I[listed + k], A + k
                    if l <= i:
                        F[H + i * n + l] += (a0 * F[c] + a1 * F[c + width] + a2 * F[c + 2 * width]) + (
                            a3 * F[c + 3 * width] + a4 * F[c + 4 * width] + a5 * F[c + 5 * width]
                        )
        elif m == 3:
            for t in range(count):
                i, a = I[listed + t], A + t
                a0, a1, a2 = F[a], F[a + width], F[a + 2 * width]
                F[g + i] -= a0 * F[e] + a1 * F[e + 1] + a2 * F[e + 2]
                for k in range(count):
                    l, c = I[listed + k], A + k
                    if l <= i:
                        F[H + i * n + l] += a0 * F[c] + a1 * F[c + width] + a2 * F[c + 2 * width]
        else:
            for t in range(count):
                i = I[listed + t]
                for r in range(m):
                    F[g + i] -= F[A + r * width + t] * F[e + r]
                for k in range(count):
                    if I[listed + k] <= i:
                        s = 0.0
                        for r in range(m):
                            s += F[A + r * width + t] * F[A + r * width + k]
                        F[H + i * n + I[listed + k]] += s
    if wide:
        return cost, end_wide(I, F, n, kept, damping)
    if curved:
        bend_matrix(I, F, n, moved)
    for i in range(n):
        F[H + i * n + i] += damping * F[I[AT_RELUCTANCE] + I[I[AT_INDEPENDENT] + i]]
        F[I[AT_PULL] + i] = F[g + i]
    if hard > 0 and all_damped:
        for v in range(I[N_COLUMNS]):
            if I[dependent + v] != NONE:
                damp_dependent(I, F, v, n, damping)
    return cost, kept


@part
def damp_dependent(I, F, v, n, damping):
    first, z_count, z_start, z_index = I[AT_FIRST], I[AT_Z_COUNT], I[AT_Z_START], I[AT_Z_INDEX]
    offset, pull, H0, Z = I[AT_OFFSET], I[AT_PULL], I[AT_H0], I[AT_Z]
    start, end = I[z_start + v], I[z_start + v] + I[z_count + v]
    damping *= F[I[AT_RELUCTANCE] + v]
    lowest = n
    for k in range(start, end):
        lowest = min(lowest, I[z_index + k])
    for k in range(start, end):
        i, z = I[z_index + k], damping * F[Z + k]
        I[first + i] = min(I[first + i], lowest)
        F[pull + i] -= z * F[offset + v]
        for l in range(start, end):
            if I[z_index + l] <= i:
                F[H0 + i * n + I[z_index + l]] += z * F[Z + l]


@part
def solve_free(I, F, options, x, n, banned, kept, chain, curved, damping):
    """The independent columns' step into `line`; banned ones go to their bound.

    Where second derivatives bend the sum of squares down in some direction, they are left out again, and more damping
    is put in their place.

    Returns:
        the smallest pivot, as a share of the largest entry on the diagonal; or, if one is not positive, the curvature
        along the direction that is then in `edge`, which is below zero.
    """
    if chain >= 0:
        solve_chain(I, F, x, chain, n)
        return 0.0
    size, bend, settled = n, 0.0, False
    floor = FLOOR * damping if curved and kept == NARROW else 0.0
    for again in range(3):
        if kept == NARROW:
            large_matrix(I, F, x, n, banned)
        else:
            small_matrix(I, F, x, n, kept)
            size = kept
        if settled:  # and wanted in another way
            solve_by_rotations(I, F, I[AT_H], size, I[AT_FIRST], I[AT_LINE])
            break
        down, least, sunk = cholesky(I, F, I[AT_H], size, I[AT_FIRST], I[AT_LINE], floor)
        if again == 0:
            bend = least
        if again == 1 or down == NONE or kept != NARROW or not curved:
            settled = True
            if options[SVD] == 1.0:
                continue
            break
        bend = find_edge(I, F, n, down, sunk)
        for i in range(n):
            for k in range(i + 1):
                F[I[AT_H0] + i * n + k] -= F[I[AT_S] + i * n + k]
            F[I[AT_H0] + i * n + i] += damping
    if kept != NARROW:
        wide_line(I, F, n, kept)
    return bend


@part
def large_matrix(I, F, x, n, banned):
    """H0 over the free columns into H, and its right side into `line`."""
    ban, independent, first, pull = I[AT_BAN], I[AT_INDEPENDENT], I[AT_FIRST], I[AT_PULL]
    H, H0, y = I[AT_H], I[AT_H0], I[AT_LINE]
    for i in range(n):
        F[y + i] = F[pull + i]
        for k in range(I[first + i], i + 1):
            F[H + i * n + k] = F[H0 + i * n + k]
    if banned > 0:
        for i in range(n):
            v = I[independent + i]
            if I[ban + v] != FREE:
                way = way_to_bound(I, F, x, v)
                for k in range(I[first + i], i):
                    F[y + k] -= F[H + i * n + k] * way
                    F[H + i * n + k] = 0.0
                for k in range(i + 1, n):
                    if i >= I[first + k]:
                        F[y + k] -= F[H + k * n + i] * way
                        F[H + k * n + i] = 0.0
                F[H + i * n + i] = 1.0
                F[y + i] = way


@part
def spread(I, F, n):
    """The step of all columns, from that of the independent ones in `line`."""
    dependent, independent, z_count, z_start = I[AT_DEPENDENT], I[AT_INDEPENDENT], I[AT_Z_COUNT], I[AT_Z_START]
    z_index, step, offset, Z = I[AT_Z_INDEX], I[AT_STEP], I[AT_OFFSET], I[AT_Z]
    line = I[AT_LINE]
    for i in range(n):
        F[step + I[independent + i]] = F[line + i]
    if n == I[N_COLUMNS]:
        return
    for v in range(I[N_COLUMNS]):
        if I[dependent + v] != NONE:
            s = F[offset + v]
            for k in range(I[z_start + v], I[z_start + v] + I[z_count + v]):
                s += F[Z + k] * F[line + I[z_index + k]]
            F[step + v] = s


@part
def model(I, F, n, kept, chain):
    """By how much the damped model says that the step in `line` lowers the cost; its slope there into `full`."""
    first, g, H, y, full = I[AT_FIRST], I[AT_PULL], I[AT_H0], I[AT_LINE], I[AT_FULL]
    change = 0.0
    if chain >= 0:
        chain_times(I, F, chain, n, y, full)
    elif kept != NARROW:
        return wide_model(I, F, n, kept)
    else:
        for i in range(n):
            F[full + i] = F[H + i * n + i] * F[y + i]
        for i in range(n):
            s = 0.0
            for k in range(I[first + i], i):
                s += F[H + i * n + k] * F[y + k]
                F[full + k] += F[H + i * n + k] * F[y + i]
            F[full + i] += s
    for i in range(n):
        change += F[y + i] * (F[full + i] - 2.0 * F[g + i])
        F[full + i] -= F[g + i]
    return change
