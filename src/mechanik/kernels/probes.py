"""Second derivatives from slopes nearby: what Gauss and Newton leave out, for a few columns, and exactly.

Out of reach, what pulls does not vanish, and the hard rows hold it with forces of their own, as the legs of a platform
do. How pull and forces change along the mechanism's own motions z is all that a step has to know:

    W_ik = z_i' (slope of |e|^2 / 2 + force' h, at x + near z_k, less that at x) / near

with the forces of x. One look at the rows for each free motion, whatever kind of rows they are.
"""

from __future__ import annotations

from .compiler import part
from .elimination import LATER, NONE
from .problem import *

NEAR = 1e-7
MOST = 16
"""Free motions, up to which looking pays: a look costs about a fifth of a step."""


@part
def add_slope(I, F, buffer, b, rows, out):
    """out += J' times the numbers that stand at `rows`, of one block."""
    block, block_columns = I[AT_BLOCKS] + BLOCK_INTS * b, I[AT_BLOCK_COLUMNS]
    width, row, column = I[block + COLUMNS], I[block + FIRST_ROW], I[block + FIRST_COLUMN]
    J = I[AT_JACOBIAN] + I[N_JACOBIAN] * buffer + I[block + FIRST_J]
    for r in range(I[block + ROWS]):
        e = F[rows + row + r]
        if e != 0.0:
            for u in range(width):
                F[out + I[block_columns + column + u]] += e * F[J + r * width + u]


@part
def slope_at(I, F, buffer, hard, soft, out):
    """The slope of half the soft rows' squares, and of what the forces do."""
    E = I[AT_ROWS] + I[N_ROWS] * buffer
    for v in range(I[N_COLUMNS]):
        F[out + v] = 0.0
    for b in range(soft):
        add_slope(I, F, buffer, b, E if b >= hard else I[AT_FORCE], out)


@part
def find_forces(I, F, buffer, hard, soft, left):
    """What holds the hard rows against the pull of the soft ones, into `force`; the slope of both into `slope`.

    Elimination has kept which rows make up each that it left (`undo`), so columns are balanced one by one; those that
    the rows left over from all blocks took are balanced together.
    """
    blocks, block_columns, dependent, pivot = I[AT_BLOCKS], I[AT_BLOCK_COLUMNS], I[AT_DEPENDENT], I[AT_PIVOT]
    left_row, force, slope, T, e = I[AT_LEFT_ROW], I[AT_FORCE], I[AT_SLOPE], I[AT_T], I[AT_E1]
    A, w = I[AT_DENSE], left + 1
    for b in range(hard):
        for r in range(
            I[blocks + BLOCK_INTS * b + FIRST_ROW],
            I[blocks + BLOCK_INTS * b + FIRST_ROW] + I[blocks + BLOCK_INTS * b + ROWS],
        ):
            F[force + r] = 0.0
    slope_at(I, F, buffer, hard, soft, slope)
    for k in range(left * w):
        F[A + k] = 0.0
    for l in range(left):
        v = I[I[AT_REST_COLUMN] + l]
        if v == NONE:
            F[A + l * w + l] = 1.0
        else:
            F[A + l * w + left] = -F[slope + v]
    for b in range(hard):
        block = blocks + BLOCK_INTS * b
        m, width, row, column = I[block + ROWS], I[block + COLUMNS], I[block + FIRST_ROW], I[block + FIRST_COLUMN]
        for r in range(m):
            t, l = T + I[block + FIRST_J] + r * width, I[left_row + row + r]
            if I[pivot + row + r] != NONE:
                F[force + row + r] = -F[slope + I[block_columns + column + I[pivot + row + r]]]
            elif l == NONE or I[I[AT_REST_COLUMN] + l] == NONE:
                continue
            for u in range(width):
                k = I[dependent + I[block_columns + column + u]] - LATER
                if k >= 0:
                    if I[pivot + row + r] != NONE:
                        F[A + k * w + left] -= F[t + u] * F[force + row + r]
                    else:
                        F[A + k * w + l] += F[t + u]
    solve_dense(F, A, left)
    for b in range(hard):
        block = blocks + BLOCK_INTS * b
        m, row = I[block + ROWS], I[block + FIRST_ROW]
        for r in range(m):
            l = I[left_row + row + r]
            if I[pivot + row + r] == NONE and l != NONE:
                F[force + row + r] = F[A + l * w + left]
        for k in range(m):
            F[e + k] = 0.0
            for r in range(m):
                F[e + k] += F[I[AT_UNDO] + I[WIDEST] * row + r * m + k] * F[force + row + r]
        for k in range(m):
            F[force + row + k] = F[e + k]
    slope_at(I, F, buffer, hard, soft, slope)


@part
def solve_dense(F, A, n):
    """Gauss with row pivoting, in place: n rows of n numbers and a right side, which becomes the answer."""
    w = n + 1
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(F[A + i * w + k]) > abs(F[A + best * w + k]):
                best = i
        if best != k:
            for c in range(k, w):
                F[A + k * w + c], F[A + best * w + c] = F[A + best * w + c], F[A + k * w + c]
        p = F[A + k * w + k]
        inverse = 1.0 / p if p != 0.0 else 0.0
        for c in range(k, w):
            F[A + k * w + c] *= inverse
        for i in range(n):
            f = F[A + i * w + k]
            if i != k and f != 0.0:
                for c in range(k, w):
                    F[A + i * w + c] -= f * F[A + k * w + c]


@part
def are_known(I, n):
    """Whether the second derivatives of every free column are known; and how many columns are free."""
    known, free = True, 0
    for i in range(n):
        v = I[I[AT_INDEPENDENT] + i]
        known &= I[I[AT_OLD_COLUMNS] + i] == v
        if I[I[AT_BAN] + v] == FREE:
            known &= I[I[AT_PROBED] + v] != 0
            free += 1
    return known, free


@part
def free_motions(I):
    """How many independent columns are free."""
    free = 0
    for v in range(I[N_COLUMNS]):
        if I[I[AT_DEPENDENT] + v] == NONE and I[I[AT_BAN] + v] == FREE:
            free += 1
    return free


@part
def begin_probes(I, F, n):
    for v in range(I[N_COLUMNS]):
        I[I[AT_PROBED] + v] = 0
    for k in range(n * n):
        F[I[AT_S] + k] = 0.0
    for i in range(n):
        I[I[AT_OLD_COLUMNS] + i] = I[I[AT_INDEPENDENT] + i]


@part
def next_probe(I, F, i, n):
    """The next free motion from the i-th on, as a small step; n if there is none."""
    step, Z = I[AT_STEP], I[AT_Z]
    while i < n and I[I[AT_BAN] + I[I[AT_INDEPENDENT] + i]] != FREE:
        i += 1
    if i == n:
        return n
    for v in range(I[N_COLUMNS]):
        F[step + v] = 0.0
        if I[I[AT_DEPENDENT] + v] != NONE:
            for k in range(I[I[AT_Z_START] + v], I[I[AT_Z_START] + v] + I[I[AT_Z_COUNT] + v]):
                if I[I[AT_Z_INDEX] + k] == i:
                    F[step + v] = NEAR * F[Z + k]
    F[step + I[I[AT_INDEPENDENT] + i]] = NEAR
    return i


@part
def see_probe(I, F, buffer, hard, soft, i, n):
    """Column i of W, from the rows at the probe, which are in `buffer`."""
    slope, there, S, line = I[AT_SLOPE], I[AT_FULL], I[AT_S], I[AT_LINE]
    slope_at(I, F, buffer, hard, soft, there)
    for k in range(n):
        v = I[I[AT_INDEPENDENT] + k]
        F[line + k] = F[there + v] - F[slope + v]
    for v in range(I[N_COLUMNS]):
        if I[I[AT_DEPENDENT] + v] != NONE:
            change = F[there + v] - F[slope + v]
            for k in range(I[I[AT_Z_START] + v], I[I[AT_Z_START] + v] + I[I[AT_Z_COUNT] + v]):
                F[line + I[I[AT_Z_INDEX] + k]] += F[I[AT_Z] + k] * change
    for k in range(n):
        F[S + k * n + i] = F[line + k] / NEAR
    I[I[AT_PROBED] + I[I[AT_INDEPENDENT] + i]] = 2


@part
def take_what_was_seen(I, F, n):
    """S = W - A'A, where W has been looked at; A'A is in H0, its lower half."""
    S, H, probed, independent = I[AT_S], I[AT_H0], I[AT_PROBED], I[AT_INDEPENDENT]
    for i in range(n):
        one = I[probed + I[independent + i]] != 0
        for k in range(i + 1):
            other, s = I[probed + I[independent + k]] != 0, 0.0
            if one and other:
                s = 0.5 * (F[S + i * n + k] + F[S + k * n + i]) - F[H + i * n + k]
            elif one:
                s = F[S + k * n + i] - F[H + i * n + k]
            elif other:
                s = F[S + i * n + k] - F[H + i * n + k]
            F[S + i * n + k], F[S + k * n + i] = s, s
    for i in range(n):
        if I[probed + I[independent + i]] == 2:
            I[probed + I[independent + i]] = 1
