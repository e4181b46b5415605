"""The quadratic form of a level: how far its rows are from what is asked, and damping."""

from __future__ import annotations

import math

from ..compiler import part
from .layout import *
from .quadratic import factor, solve_factored

RANK = 1e-8
"""The share of a level's largest row below which a row says nothing new."""


@part
def damping_near(W, V, A, m, d, O):
    """Damping squared: none where the level can move its rows well in all directions, DAMPING where it cannot in one.

    How well is the harmonic mean of the squares of the singular values, over their number: smooth, and never more
    than the smallest of them.
    """
    k = min(m, d)
    if k == 0:
        return 0.0
    G, L = W[W_G], W[W_GL]
    for i in range(k):
        for j in range(i + 1):
            total = 1e-12 if i == j else 0.0
            if m <= d:
                for c in range(d):
                    total += A[i, c] * A[j, c]
            else:
                for r in range(m):
                    total += A[r, i] * A[r, j]
            G[i, j] = total
    if not factor(G, L, k):
        return O[DAMPING] * O[DAMPING]
    spread, line = 0.0, V[V_LINE]
    for c in range(k):  # the columns of the inverse of L, squared, make up the trace of that of G
        for i in range(c, k):
            total = 1.0 if i == c else 0.0
            for j in range(c, i):
                total -= L[i, j] * line[j]
            line[i] = total / L[i, i]
            spread += line[i] * line[i]
    near = 1.0 - 1.0 / (spread * O[SINGULAR] * O[SINGULAR])
    return (O[DAMPING] * near) ** 2 if near > 0.0 else 0.0


@part
def form(A, edge, B, m, n, d, damping, is_orthonormal, H):
    """H = A'A + damping B'B, over the rows that are asked for."""
    for i in range(d):
        for j in range(i + 1):
            total = 0.0
            if not is_orthonormal:
                for v in range(n):
                    total += B[v, i] * B[v, j]
            elif i == j:
                total = 1.0
            total *= damping
            for r in range(m):
                if edge[r, 2] != 0.0:
                    total += A[r, i] * A[r, j]
            H[i, j] = total


@part
def answer(A, L, rate, edge, m, d, y):
    """The free minimum for one rate."""
    for j in range(d):
        y[j] = 0.0
    for r in range(m):
        if edge[r, 2] != 0.0 and rate[r] != 0.0:
            for j in range(d):
                y[j] += A[r, j] * rate[r]
    solve_factored(L, y, d)


@part
def left_over(A, rate, edge, m, d, y):
    """How much of a rate the free minimum leaves."""
    square = 0.0
    for r in range(m):
        if edge[r, 2] != 0.0:
            total = rate[r]
            for j in range(d):
                total -= A[r, j] * y[j]
            square += total * total
    return math.sqrt(square)


@part
def cut_down(W, V, A, B, edge, m, n, d):
    """B, turned so that its first columns move the rows and the others do not; these are kept. Returns how many."""
    X, u = W[W_ROWS], V[V_LINE]
    largest = 0.0
    for r in range(m):
        size = 0.0
        for j in range(d):
            X[r, j] = A[r, j] * edge[r, 2]
            size += X[r, j] * X[r, j]
        largest = max(largest, size)
    rank = 0
    while rank < min(m, d):
        p, best = -1, RANK * RANK * largest
        for r in range(m):
            total = 0.0
            for j in range(rank, d):
                total += X[r, j] * X[r, j]
            if total > best:
                p, best = r, total
        if p < 0:
            break
        # a reflection takes the rest of row p onto one axis
        size = math.sqrt(best)
        head = X[p, rank] + math.copysign(size, X[p, rank])
        square = best - X[p, rank] * X[p, rank] + head * head
        u[rank] = head
        for j in range(rank + 1, d):
            u[j] = X[p, j]
        for r in range(m):
            reflect(X, r, u, rank, d, square)
        for v in range(n):
            reflect(B, v, u, rank, d, square)
        for j in range(rank, d):
            X[p, j] = 0.0
        rank += 1
    for v in range(n):
        for j in range(d - rank):
            B[v, j] = B[v, j + rank]
    return d - rank


@part
def reflect(W, r, u, first, d, square):
    total = 0.0
    for j in range(first, d):
        total += W[r, j] * u[j]
    total *= 2.0 / square
    for j in range(first, d):
        W[r, j] -= total * u[j]
