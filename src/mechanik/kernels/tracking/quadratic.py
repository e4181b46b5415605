"""The smallest of a convex quadratic form between bounds: the dual method of Goldfarb and Idnani (1983).

It begins at the free minimum and takes in one violated bound after the other, so it needs no start inside, and it
knows when there is none: just what is not known beforehand where loops and limits meet.
"""

from __future__ import annotations

import math

from ..compiler import part
from .layout import *

NOTHING = 1e-13
"""The share of a bound's normal below which nothing of it is left beside those of the bounds that hold."""


@part
def factor(H, L, d):
    """H = L L' for the leading d rows and columns; False if H is not positive definite."""
    for i in range(d):
        for j in range(i + 1):
            total = H[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j:
                if not total > 0.0:
                    return False
                L[i, i] = math.sqrt(total)
            else:
                L[i, j] = total / L[j, j]
    return True


@part
def solve_factored(L, b, d):
    """b = (L L')^-1 b."""
    for i in range(d):
        for k in range(i):
            b[i] -= L[i, k] * b[k]
        b[i] /= L[i, i]
    for i in range(d - 1, -1, -1):
        for k in range(i + 1, d):
            b[i] -= L[k, i] * b[k]
        b[i] /= L[i, i]


@part
def invert_transposed(L, J, d):
    """J = L^-T, upper triangular."""
    for c in range(d):
        for i in range(d):
            J[c, i] = 0.0
        J[c, c] = 1.0 / L[c, c]
        for i in range(c + 1, d):
            total = 0.0
            for k in range(c, i):
                total -= L[i, k] * J[c, k]
            J[c, i] = total / L[i, i]


@part
def take_in(J, R, w, d, count):
    """A bound more: turn J so that w = J' normal is zero below place `count`; False if nothing of it is left."""
    for j in range(d - 1, count, -1):
        h = math.hypot(w[j - 1], w[j])
        if w[j] == 0.0 or h == 0.0:
            continue
        c, s = w[j - 1] / h, w[j] / h
        w[j - 1], w[j] = h, 0.0
        for k in range(d):
            a, b = J[k, j - 1], J[k, j]
            J[k, j - 1], J[k, j] = c * a + s * b, c * b - s * a
    for k in range(count + 1):
        R[k, count] = w[k]
    return abs(w[count]) > 0.0


@part
def leave_out(J, R, u, held, d, count, gone):
    """A bound less."""
    for c in range(gone, count - 1):
        held[c], u[c] = held[c + 1], u[c + 1]
        for k in range(count):
            R[k, c] = R[k, c + 1]
    u[count - 1], u[count] = u[count], 0.0
    for k in range(count):
        R[k, count - 1] = 0.0
    count -= 1
    for j in range(gone, count):
        h = math.hypot(R[j, j], R[j + 1, j])
        if R[j + 1, j] == 0.0 or h == 0.0:
            continue
        c, s = R[j, j] / h, R[j + 1, j] / h
        for k in range(j, count):
            a, b = R[j, k], R[j + 1, k]
            R[j, k], R[j + 1, k] = c * a + s * b, c * b - s * a
        for k in range(d):
            a, b = J[k, j], J[k, j + 1]
            J[k, j], J[k, j + 1] = c * a + s * b, c * b - s * a


@part
def most_violated(C, low, high, y, k, d, held, count):
    """Which bound is exceeded most, on which side, and by how much (below zero); slack of rounding is none."""
    worst, at, at_side = 0.0, -1, 1
    for i in range(k):
        value = 0.0
        for j in range(d):
            value += C[i, j] * y[j]
        under, over = value - low[i], high[i] - value
        side, gap = (1, under) if under < over else (-1, over)
        if gap < worst and gap < -1e-12 * (1.0 + abs(value)):
            taken = False
            for c in range(count):
                if held[c] == i:
                    taken = True
            if not taken:
                worst, at, at_side = gap, i, side
    return worst, at, at_side


@part
def least_within(W, V, U, L, y, C, low, high, k, d):
    """y moves from the free minimum of a form to the least between bounds: low <= C y <= high.

    Args:
        W, V, U: room to work in.
        L: the factor of the form.
        y: the free minimum; written.
        k, d: how many bounds, and how many numbers of y, there are.
    Returns:
        False if nothing lies between the bounds; then y means nothing.
    """
    held, count = U[U_HELD], 0
    _, p, _ = most_violated(C, low, high, y, k, d, held, count)
    if p < 0:
        return True
    J, R = W[W_J], W[W_R]
    invert_transposed(L, J, d)
    u, r, w, z = V[V_U], V[V_RATIO], V[V_TURNED], V[V_WAY]
    for _ in range(10 * (k + d)):
        gap, p, way = most_violated(C, low, high, y, k, d, held, count)
        if p < 0:
            return True
        u[count] = 0.0
        while True:
            whole, left = 0.0, 0.0
            for j in range(d):
                total = 0.0
                for i in range(d):
                    total += J[i, j] * way * C[p, i]
                w[j] = total
                whole += total * total
            for i in range(d):
                total = 0.0
                for j in range(count, d):
                    total += J[i, j] * w[j]
                z[i] = total
            for j in range(count, d):
                left += w[j] * w[j]
            for i in range(count - 1, -1, -1):
                total = w[i]
                for j in range(i + 1, count):
                    total -= R[i, j] * r[j]
                r[i] = total / R[i, i]
            dual, gone = math.inf, -1
            for j in range(count):
                if r[j] > 0.0 and u[j] < dual * r[j]:
                    dual, gone = u[j] / r[j], j
            primal = -gap / left if left > NOTHING * whole else math.inf
            t = min(dual, primal)
            if not t < math.inf:
                return False
            for j in range(count):
                u[j] -= t * r[j]
            u[count] += t
            if primal < math.inf:
                for i in range(d):
                    y[i] += t * z[i]
            if primal <= dual:
                held[count] = p
                if not take_in(J, R, w, d, count):
                    return False
                count += 1
                break
            if primal < math.inf:
                gap += t * left
            leave_out(J, R, u, held, d, count, gone)
            count -= 1
    return False
