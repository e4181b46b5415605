"""Few rows over many columns, as a long arm has them: the same step from a matrix as small as the rows are few.

A row that knows one column only, as of a rest pose, adds to the diagonal D of A'A + damping. With the other rows B
and what they are from zero, e, the step of the independent columns is

    s = 1/D (p - B'y),    (1 + B 1/D B') y = e + B 1/D p

where p is the pull of the rows on the diagonal; y is what the step leaves of e. A dependent column is a row as well:
it follows the independent ones, and its damping, and the rows that know it alone, count for them. The cost grows with
the number of columns, not with its cube. (The formula of Sherman, Morrison and Woodbury, written so that nothing large
cancels where damping is small.)
"""

from __future__ import annotations

import math

import numpy as np

from .compiler import part
from .elimination import NONE
from .problem import *


@part
def begin_wide(I, F, damping):
    """No rows yet, but damping."""
    diagonal, alone, reluctance = I[AT_DIAGONAL], I[AT_ALONE], I[AT_RELUCTANCE]
    for v in range(I[N_COLUMNS]):
        F[diagonal + v] = damping * F[reluctance + v]
        F[alone + v] = 0.0


@part
def hold_back(F, e, mask, m, largest, largest_angle):
    """Errors that are farther off than they should pull are shortened."""
    lengths = (mask & 1) + (mask >> 1 & 1) + (mask >> 2 & 1)
    metres, radians = 0.0, 0.0
    for r in range(m):
        if r < lengths:
            metres += F[e + r] * F[e + r]
        else:
            radians += F[e + r] * F[e + r]
    for r in range(m):
        if r < lengths:
            F[e + r] *= min(1.0, largest / math.sqrt(max(metres, 1e-300)))
        else:
            F[e + r] *= min(1.0, largest_angle / math.sqrt(max(radians, 1e-300)))


@part
def add_alone(I, F, options, buffer, b):
    """A block of one row over one column; returns its square."""
    block, e = I[AT_BLOCKS] + BLOCK_INTS * b, I[AT_E1]
    v = I[I[AT_BLOCK_COLUMNS] + I[block + FIRST_COLUMN]]
    w = F[I[AT_JACOBIAN] + I[N_JACOBIAN] * buffer + I[block + FIRST_J]]
    F[e] = F[I[AT_ROWS] + I[N_ROWS] * buffer + I[block + FIRST_ROW]]
    if options[LARGEST_ERROR] < np.inf or options[LARGEST_ANGLE] < np.inf:
        hold_back(F, e, I[block + MASK], I[block + ROWS], options[LARGEST_ERROR], options[LARGEST_ANGLE])
    far = F[e] + w * F[I[AT_OFFSET] + v]
    F[I[AT_DIAGONAL] + v] += w * w
    F[I[AT_ALONE] + v] -= w * far
    return far * far


@part
def add_rows(I, F, n, k, m, A, width, count):
    """The m rows of a block, whose columns are `listed`, behind the k that are there."""
    B, e, far, listed, g = I[AT_B], I[AT_E1], I[AT_FAR], I[AT_LISTED], I[AT_GRADIENT]
    for r in range(m):
        to, f = B + (k + r) * n, F[e + r]
        F[far + k + r] = f
        if count < n:
            for i in range(n):
                F[to + i] = 0.0
        for t in range(count):
            i, a = I[listed + t], F[A + r * width + t]
            F[to + i] = a
            F[g + i] -= a * f
    return k + m


@part
def end_wide(I, F, n, k, damping):
    """Bring the columns into their places: independent ones onto the diagonal, dependent ones behind the rows."""
    dependent, independent, z_count, z_start = I[AT_DEPENDENT], I[AT_INDEPENDENT], I[AT_Z_COUNT], I[AT_Z_START]
    B, far, g, pull, full = I[AT_B], I[AT_FAR], I[AT_GRADIENT], I[AT_PULL], I[AT_FULL]
    diagonal, alone, offset = I[AT_DIAGONAL], I[AT_ALONE], I[AT_OFFSET]
    for i in range(n):
        F[pull + i] = F[g + i]
    if n < I[N_COLUMNS]:
        for v in range(I[N_COLUMNS]):
            if I[dependent + v] != NONE:
                to, size = B + k * n, math.sqrt(F[diagonal + v])
                push = damping * F[I[AT_RELUCTANCE] + v] * F[offset + v] - F[alone + v]
                F[far + k] = push / size
                for i in range(n):
                    F[to + i] = 0.0
                for z in range(I[z_start + v], I[z_start + v] + I[z_count + v]):
                    i = I[I[AT_Z_INDEX] + z]
                    F[to + i] = size * F[I[AT_Z] + z]
                    F[pull + i] -= push * F[I[AT_Z] + z]
                    F[g + i] += F[alone + v] * F[I[AT_Z] + z]
                k += 1
    # independent columns stand in another order than columns do: by way of `full`
    for i in range(n):
        F[full + i] = F[diagonal + I[independent + i]]
        F[I[AT_LINE] + i] = F[alone + I[independent + i]]
    for i in range(n):
        F[diagonal + i], F[alone + i] = F[full + i], F[I[AT_LINE] + i]
        F[g + i] += F[alone + i]
        F[pull + i] += F[alone + i]
    return k


@part
def way_to_bound(I, F, x, v):
    """How far a banned column goes: to its bound, or nowhere if it is locked; 0 for a free one."""
    now = I[I[AT_BAN] + v]
    if now == FREE or now == LOCKED:
        return 0.0
    bound = F[I[AT_UPPER] + v] if now == ON_UPPER else F[I[AT_LOWER] + v]
    return (bound - F[x + I[I[AT_COLUMN_X] + v]]) / F[I[AT_SCALE] + v]


@part
def small_matrix(I, F, x, n, k):
    """1 + B 1/D B' over the free columns into H, and its right side into `line`; banned columns go to their bound.

    `give` holds 1/D, and 0 for columns that are not free; `step` the way of those, and of the others as far as
    they pull themselves.
    """
    B, H, y, give, way, full = I[AT_B], I[AT_H], I[AT_LINE], I[AT_GIVE], I[AT_STEP], I[AT_FULL]
    for i in range(n):
        v = I[I[AT_INDEPENDENT] + i]
        F[give + i] = 0.0
        F[way + i] = way_to_bound(I, F, x, v)
        if I[I[AT_BAN] + v] == FREE:
            F[give + i] = 1.0 / F[I[AT_DIAGONAL] + i]
            F[way + i] = F[I[AT_ALONE] + i] * F[give + i]
    for a in range(k):
        I[I[AT_FIRST] + a] = 0
        row, s = B + a * n, F[I[AT_FAR] + a]
        for i in range(n):
            s += F[row + i] * F[way + i]
            F[full + i] = F[row + i] * F[give + i]
        F[y + a] = s
        for b in range(a + 1):
            other, s = B + b * n, 0.0
            for i in range(n):
                s += F[full + i] * F[other + i]
            F[H + a * k + b] = s
        F[H + a * k + a] += 1.0


@part
def wide_line(I, F, n, k):
    """The independent columns' step into `line`, from y, which is there."""
    B, y, give, way, left = I[AT_B], I[AT_LINE], I[AT_GIVE], I[AT_STEP], I[AT_LEFT]
    for a in range(k):
        F[left + a] = F[y + a]
    for i in range(n):
        F[y + i] = F[way + i]
    for a in range(k):
        s, row = F[left + a], B + a * n
        for i in range(n):
            F[y + i] -= F[give + i] * F[row + i] * s


@part
def wide_model(I, F, n, k):
    """As `least_squares.model`."""
    B, y, full, pull = I[AT_B], I[AT_LINE], I[AT_FULL], I[AT_PULL]
    for i in range(n):
        F[full + i] = F[I[AT_DIAGONAL] + i] * F[y + i] - F[I[AT_ALONE] + i]
    for a in range(k):
        row, s = B + a * n, F[I[AT_FAR] + a]
        for i in range(n):
            s += F[row + i] * F[y + i]
        for i in range(n):
            F[full + i] += s * F[row + i]
    change = 0.0
    for i in range(n):
        change += F[y + i] * (F[full + i] - F[pull + i])
    return change
