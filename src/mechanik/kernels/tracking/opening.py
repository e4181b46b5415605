"""What is too near is parted as well as limits allow: the rates of gaps that can be had come before all tasks.

The velocities base + B y are sought that minimise

    sum over gaps of max(0, wanted - rate)^2 + damping |B y|^2

between the bounds of all columns. What they come to is then kept as a bound while tasks are served, so that it can
always be kept: where gaps contradict each other, or limits of acceleration, they give way and limits do not.
"""

from __future__ import annotations

import math

from ..compiler import part
from .layout import *
from .quadratic import factor, least_within, solve_factored

ROUNDS = 12
"""How often it is looked anew which gaps open too slowly."""
DAMPED = 1e-4
"""Of the squares of how fast gaps open with each column: so that what opens none stands still. With 1e-2, three of 30
UR5 that came out of balls and boxes with 1e-4 did not."""
SLACK = 1e-8
"""m/s by which rates may be below what was found, for rounding."""


@part
def all_rates(A, off, B, more, base, given, n, d):
    """A (given, d): how rates of gaps change with y; `off`: what they are without it."""
    for i in range(given):
        off[i] = 0.0
        for j in range(d):
            A[i, j] = 0.0
        for v in range(n):
            f = more[i, v]
            if f != 0.0:
                off[i] += f * base[v]
                for j in range(d):
                    A[i, j] += f * B[v, j]


@part
def form_of_lacking(A, edges, off, lacks, S, given, d, H, y):
    """The form of the gaps that open too slowly, into H, and its other side into y; S: the form of the damping."""
    most = 0.0
    for j in range(d):
        y[j] = 0.0
        for c in range(j + 1):
            H[j, c] = 0.0
    for i in range(given):
        if lacks[i] != 0:
            for j in range(d):
                y[j] += A[i, j] * (edges[i, WANTED] - off[i])
                for c in range(j + 1):
                    H[j, c] += A[i, j] * A[i, c]
    for j in range(d):
        most = max(most, H[j, j])
    for j in range(d):
        for c in range(j + 1):
            H[j, c] += (DAMPED * most + 1e-12) * S[j, c]


@part
def damping_of(B, S, n, d, is_orthonormal):
    """S = B'B."""
    for j in range(d):
        for c in range(j + 1):
            S[j, c] = 1.0 if j == c else 0.0
            if not is_orthonormal:
                S[j, c] = 0.0
                for v in range(n):
                    S[j, c] += B[v, j] * B[v, c]


@part
def limits_of(T, C, low, high, B, more, edges, given, k, base, n, d, holds):
    """The bounds that have to be kept, as rows over y; returns how many."""
    bounds = n
    for v in range(n):
        low[v], high[v] = T[LOW, v] - base[v], T[HIGH, v] - base[v]
        for j in range(d):
            C[v, j] = B[v, j]
    for i in range(0 if holds else given, k):
        at = 0.0
        for j in range(d):
            C[bounds, j] = 0.0
        for v in range(n):
            if more[i, v] != 0.0:
                at += more[i, v] * base[v]
                for j in range(d):
                    C[bounds, j] += more[i, v] * B[v, j]
        low[bounds], high[bounds] = edges[i, LEAST if i < given else 0] - at, edges[i, 1] - at
        bounds += 1
    return bounds


@part
def open_gaps(T, W, V, U, B, d, is_orthonormal, more, edges, given, k, base, n, holds):
    """Velocities that open gaps as well as can be, into V_OPENED, and what they come to as bounds, into `edges`.

    Args:
        more, edges: as `step` takes them.
        holds: whether the least rates have to be kept as well, so that nothing becomes nearer than the nearest.
    Returns:
        False if there are no velocities between the bounds that have to be kept.
    """
    A, H, L, C, S = W[W_A], W[W_H], W[W_L], W[W_C], W[W_G]
    y, low, high, off, lacks, opened = V[V_Y], V[V_LOW], V[V_HIGH], V[V_GOAL], U[U_LACKS], V[V_OPENED]
    all_rates(A, off, B, more, base, given, n, d)
    damping_of(B, S, n, d, is_orthonormal)
    bounds = limits_of(T, C, low, high, B, more, edges, given, k, base, n, d, holds)
    for i in range(given):
        now = 0.0
        for v in range(n):
            now += more[i, v] * T[RATE, v]
        lacks[i] = 1 if now < edges[i, WANTED] else 0
    for _ in range(ROUNDS):
        form_of_lacking(A, edges, off, lacks, S, given, d, H, y)
        if not factor(H, L, d):
            return False
        solve_factored(L, y, d)
        if not least_within(W, V, U, L, y, C, low, high, bounds, d):
            return False
        changed = False
        for i in range(given):
            rate = off[i]
            for j in range(d):
                rate += A[i, j] * y[j]
            edges[i, 0] = min(edges[i, WANTED], rate - SLACK)
            now = 1 if rate < edges[i, WANTED] - SLACK else 0
            if now != lacks[i]:
                lacks[i], changed = now, True
        if not changed:
            break
    for v in range(n):
        opened[v] = base[v]
        for j in range(d):
            opened[v] += B[v, j] * y[j]
    return True


@part
def part_near(T, O, W, V, U, B, d, is_orthonormal, more, edges, given, k, base, n, again):
    """Bounds of the rates of the first `given` rows: those that are wanted, or if that is too much, what can be had.

    Args:
        again: whether the rates that are wanted turned out to be too much.
    Returns:
        whether bounds give way, and V_OPENED has velocities that keep them.
    """
    for i in range(given):
        edges[i, 0] = edges[i, WANTED]
    if O[TOO_NEAR] == 0.0 and not again:
        return False
    if open_gaps(T, W, V, U, B, d, is_orthonormal, more, edges, given, k, base, n, True):
        return True
    if O[TOO_NEAR] != 0.0 and open_gaps(T, W, V, U, B, d, is_orthonormal, more, edges, given, k, base, n, False):
        return True
    for i in range(given):
        edges[i, 0] = -math.inf if O[TOO_NEAR] != 0.0 else edges[i, LEAST]
    return False
