"""The damped least squares of the soft rows over the independent columns: the matrix, and its solution.

|e + A s|^2 + damping |s|^2, with A = J (1, Z) once the hard rows have been eliminated
"""

from __future__ import annotations

import math

import numpy as np

from mechanik.kernels.chain_curvature import chain_times, solve_chain
from mechanik.kernels.compiler import part
from mechanik.kernels.curvature import bend_matrix
from mechanik.kernels.elimination import NONE
from mechanik.kernels.problem import *
from mechanik.kernels.wide import (
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
def assemble(I, F, options, buffer, hard, soft, n, damping, curved, moved, wide):
    """All that is to be known of the soft rows; returns e'e, and how many rows are kept, or NARROW.

    The matrix H0 = A'A + damping (1 + Z'Z) and the gradient -A'e over the independent columns; of wide stages
    the rows themselves, as `wide.py` has them, in place of H0.
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
    if hard > 0:
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
def solve_free(I, F, options, x, n, banned, kept, chain):
    """The independent columns' step into `line`; banned ones go to their bound."""
    if chain >= 0:
        solve_chain(I, F, x, chain, n)
        return
    size = n
    if kept == NARROW:
        large_matrix(I, F, x, n, banned)
    else:
        small_matrix(I, F, x, n, kept)
        size = kept
    if options[SVD] == 1.0:
        solve_by_rotations(I, F, I[AT_H], size, I[AT_FIRST], I[AT_LINE])
    else:
        cholesky(I, F, I[AT_H], size, I[AT_FIRST], I[AT_LINE])
    if kept != NARROW:
        wide_line(I, F, n, kept)


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
def cholesky(I, F, H, n, first, y):
    """Solve H y = y in place by H = L D L', within the envelope of the lower triangle.

    H then holds 1 / D and, below it, L D until a row is done and L from there on. A pivot that is not positive, which
    second derivatives may bring about, counts as infinite: its column stays.
    """
    for i in range(n):
        row, fi = H + i * n, I[first + i]
        for j in range(fi + 1, i):
            s = F[row + j]
            for k in range(max(fi, I[first + j]), j):
                s -= F[row + k] * F[H + j * n + k]
            F[row + j] = s
        s, t = F[row + i], F[y + i]
        for k in range(fi, i):
            d = F[row + k]
            l = d * F[H + k * n + k]
            F[row + k] = l
            s -= d * l
            t -= l * F[y + k]
        F[row + i] = 1.0 / s if s > 1e-300 else 0.0
        F[y + i] = t
    for i in range(n):
        F[y + i] *= F[H + i * n + i]
    for i in range(n - 1, -1, -1):
        s = F[y + i]
        for k in range(I[first + i], i):
            F[y + k] -= F[H + i * n + k] * s


@part
def solve_by_rotations(I, F, H, n, first, y):
    """Solve H y = y by the eigenvalues of H, which Jacobi's rotations find; directions that H does not know stay."""
    V = I[AT_V]
    for i in range(n):
        for k in range(n):
            F[V + i * n + k] = 1.0 if i == k else 0.0
        for k in range(i):
            if k < I[first + i]:
                F[H + i * n + k] = 0.0
            F[H + k * n + i] = F[H + i * n + k]
    for _ in range(30):
        off, diagonal = 0.0, 0.0
        for i in range(n):
            diagonal += F[H + i * n + i] * F[H + i * n + i]
            for k in range(i):
                off += F[H + i * n + k] * F[H + i * n + k]
        if off <= 1e-30 * diagonal:
            break
        for p in range(n - 1):
            for q in range(p + 1, n):
                a = F[H + p * n + q]
                if a != 0.0:
                    t = (F[H + q * n + q] - F[H + p * n + p]) / (2.0 * a)
                    t = math.copysign(1.0, t) / (abs(t) + math.sqrt(t * t + 1.0))
                    c = 1.0 / math.sqrt(t * t + 1.0)
                    rotate(F, H, n, p, q, c, t * c)
                    for k in range(n):
                        u, v = F[V + k * n + p], F[V + k * n + q]
                        F[V + k * n + p], F[V + k * n + q] = c * u - t * c * v, t * c * u + c * v
    largest = 0.0
    for i in range(n):
        largest = max(largest, F[H + i * n + i])
    for i in range(n):
        s = 0.0
        for k in range(n):
            s += F[V + k * n + i] * F[y + k]
        w = F[H + i * n + i]
        F[I[AT_FULL] + i] = s / w if w > 1e-15 * largest else 0.0
    for k in range(n):
        s = 0.0
        for i in range(n):
            s += F[V + k * n + i] * F[I[AT_FULL] + i]
        F[y + k] = s


@part
def rotate(F, H, n, p, q, c, s):
    """H = G'HG for a rotation G in the plane of p and q."""
    for k in range(n):
        u, v = F[H + k * n + p], F[H + k * n + q]
        F[H + k * n + p], F[H + k * n + q] = c * u - s * v, s * u + c * v
    for k in range(n):
        u, v = F[H + p * n + k], F[H + q * n + k]
        F[H + p * n + k], F[H + q * n + k] = c * u - s * v, s * u + c * v


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
