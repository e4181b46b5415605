"""Small symmetric matrices: L D L' within an envelope, a direction in which they bend down, rotations of Jacobi."""

from __future__ import annotations

import math

from .compiler import part
from .elimination import NONE
from .problem import *

FLAT = 1e-7
"""Of the largest entry on the diagonal: a pivot below this is none that second derivatives could tell from zero."""


@part
def cholesky(I, F, H, n, first, y, floor):
    """Solve H y = y in place by H = L D L', within the envelope of the lower triangle.

    H then holds 1 / D and, below it, L D until a row is done and L from there on. A pivot that is not positive, which
    second derivatives may bring about, counts as infinite: its column stays. Where there is a `floor`, none
    is taken as smaller than that, nor than could be told from zero.

    Returns which was the first pivot that is not positive, or NONE; the smallest one before it as a share of the
    largest entry; and it.
    """
    down, least, sunk, largest = I[ZERO] + NONE, 1.0, 0.0, 0.0
    for i in range(n):
        largest = max(largest, F[H + i * n + i])
    flat = FLAT * largest if floor > 0.0 else 0.0
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
        if s > 1e-300 or (flat > 0.0 and s >= -flat):
            least = min(least, max(s, 0.0) / largest)
            F[row + i] = 1.0 / max(s, flat, floor)
        else:
            if down == NONE:
                down, sunk = i, s
            F[row + i] = 0.0
        F[y + i] = t
    for i in range(n):
        F[y + i] *= F[H + i * n + i]
    for i in range(n - 1, -1, -1):
        s = F[y + i]
        for k in range(I[first + i], i):
            F[y + k] -= F[H + i * n + k] * s
    return down, least, sunk


@part
def find_edge(I, F, n, down, sunk):
    """The direction y in which H bends down first, L'y = 1 at the place of the pivot; returns y'Hy / y'y."""
    H, y, first = I[AT_H], I[AT_EDGE], I[AT_FIRST]
    for i in range(n):
        F[y + i] = 0.0
    F[y + down] = 1.0
    size = 0.0
    for i in range(down, -1, -1):
        s = F[y + i]
        size += s * s
        for k in range(I[first + i], i):
            F[y + k] -= F[H + i * n + k] * s
    for i in range(down + 1):
        F[y + i] /= math.sqrt(size)
    return sunk / size


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
