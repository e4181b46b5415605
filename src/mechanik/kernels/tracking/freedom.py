"""What loops and laws leave free: some columns follow the others, to first order, and shut what a step has opened.

Gauss with complete pivoting. Columns without limits of velocity and acceleration follow first, so that those that have
some are free to keep them exactly, as long as there are no more of them than the mechanism has freedoms.
"""

from __future__ import annotations

import math

from ..compiler import part
from ..problem import *
from .layout import *

SMALLEST_PIVOT = 1e-7
"""Below this a row says nothing new. Rows and columns are of the order of one."""
SMALLEST_OWN_PIVOT = 0.03
"""A column without limits that does less than this to all rows lets another one follow."""


@part
def gather_hard(I, F, M, n):
    """The hard rows that are to be zero, with their derivatives, (m, n); returns how many they are."""
    blocks, columns, slack = I[AT_BLOCKS], I[AT_BLOCK_COLUMNS], I[AT_SLACK]
    jacobian, m = I[AT_JACOBIAN] + I[N_JACOBIAN], 0
    for b in range(I[I[AT_STAGES] + SOFT]):
        block = blocks + BLOCK_INTS * b
        row, width, first, j = I[block + FIRST_ROW], I[block + COLUMNS], I[block + FIRST_COLUMN], I[block + FIRST_J]
        for r in range(I[block + ROWS]):
            if I[slack + 2 * (row + r)] >= 0:
                continue
            for v in range(n):
                M[m, v] = 0.0
            for u in range(width):
                v = I[columns + first + u]
                if v < n:
                    M[m, v] = F[jacobian + j + r * width + u]
            m += 1
    return m


@part
def read_hard(I, F, buffer, e):
    """The same rows themselves; returns the largest."""
    rows, slack, m, largest = I[AT_ROWS] + I[N_ROWS] * buffer, I[AT_SLACK], 0, 0.0
    blocks = I[AT_BLOCKS]
    for b in range(I[I[AT_STAGES] + SOFT]):
        block = blocks + BLOCK_INTS * b
        for r in range(I[block + FIRST_ROW], I[block + FIRST_ROW] + I[block + ROWS]):
            if I[slack + 2 * r] < 0:
                e[m] = F[rows + r]
                largest = max(largest, abs(e[m]))
                m += 1
    return largest


@part
def best_of_row(M, r, n, taken, is_limited, sizes, places):
    """The largest entry of a row among the columns that may follow."""
    sizes[r], places[r] = 0.0, -1
    for v in range(n):
        if abs(M[r, v]) > sizes[r] and taken[v] < 0 and is_limited[v] == 0:
            sizes[r], places[r] = abs(M[r, v]), v


@part
def eliminate_hard(V, U, M, K, m, n, T, row_of, column_of, taken):
    """M becomes upper triangular in the order of its pivots, and K keeps what was done; returns how many there are.

    Args:
        K: (m, m), of each row how often the pivot rows were taken from it.
        row_of, column_of: written: the pivots in their order.
        taken: (n,) written: the number of the pivot in a column; -1 for those that stay free.
        V, U: room to work in.
    """
    count, limited, sizes, places = 0, U[U_LIMITED], V[V_SIZES], U[U_PLACES]
    for v in range(n):
        taken[v] = -1
        limited[v] = 1 if min(T[VELOCITY, v], T[ACCELERATION, v]) < math.inf else 0
    for r in range(m):
        row_of[r] = -1
        for s in range(m):
            K[r, s] = 0.0
    for allow in range(2):
        smallest = SMALLEST_OWN_PIVOT if allow == 0 else SMALLEST_PIVOT
        if allow == 1:
            for v in range(n):
                limited[v] = 0
        for r in range(m):
            sizes[r] = -1.0
        for s in range(count):
            places[row_of[s]] = -2  # done
        for r in range(m):
            if places[r] != -2 or allow == 0:
                best_of_row(M, r, n, taken, limited, sizes, places)
        while count < m:
            best, p = smallest, -1
            for r in range(m):
                if sizes[r] > best:
                    best, p = sizes[r], r
            if p < 0:
                break
            c = places[p]
            row_of[count], column_of[count], taken[c] = p, c, count
            sizes[p], places[p] = -1.0, -2
            inverse = 1.0 / M[p, c]
            for r in range(m):
                f = M[r, c] * inverse
                if places[r] == -2 or f == 0.0:
                    continue
                for v in range(n):
                    M[r, v] -= f * M[p, v]
                M[r, c] = 0.0
                K[r, count] = f
                best_of_row(M, r, n, taken, limited, sizes, places)
            count += 1
    return count


@part
def free_basis(M, n, count, row_of, column_of, taken, B):
    """B (n, d): how all columns move with the free ones; returns d."""
    d = 0
    for v in range(n):
        if taken[v] < 0:
            for k in range(n - count):
                B[v, k] = 0.0
            B[v, d] = 1.0
            d += 1
    for s in range(count - 1, -1, -1):
        p, c = row_of[s], column_of[s]
        inverse = -1.0 / M[p, c]
        for k in range(d):
            B[c, k] = 0.0
        for v in range(n):
            f = M[p, v] * inverse
            if v != c and f != 0.0 and (taken[v] < 0 or taken[v] > s):
                for k in range(d):
                    B[c, k] += f * B[v, k]
    return d


@part
def shutting(M, K, n, count, row_of, column_of, e, step):
    """Add to a step what the dependent columns have to do so that rows e become zero; e is used up."""
    for s in range(count):
        for t in range(s + 1, count):
            f = K[row_of[t], s]
            if f != 0.0:
                e[row_of[t]] -= f * e[row_of[s]]
    for s in range(count - 1, -1, -1):
        p = row_of[s]
        total = -e[p]
        for t in range(s + 1, count):
            total -= M[p, column_of[t]] * e[row_of[t]]
        e[p] = total / M[p, column_of[s]]
    for s in range(count):
        step[column_of[s]] += e[row_of[s]]
