"""Steps of least-squares methods: damped, selectively damped, Newton, and within limits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mechanik.spatial.array import Array

from ..compiler import kernel
from ..dense import singular_values, solve_positive
from ..problem import AT_COLUMN_X, AT_LOWER, AT_STEP, AT_TRIAL, AT_UPPER

Table = np.ndarray[Any, np.dtype[np.int64]]
FREE, HELD, LET_GO, HELD_FOR_GOOD = range(4)
ROUNDING = 1e-12
"""A slope below this share of what it could be is none."""
NEAR_ZERO = 1e-10
"""Singular values below it are passed over, as in the authors' program."""
RANK_TOLERANCE = 1e-9
"""Singular values below this share of the largest are rounding, and so are their vectors: they are passed over."""


@kernel("void(f8[::1], f8[:,::1], i8[:,::1], f8[::1], f8[::1], f8[:,::1])")
def hold_back(rows: Array, jacobian: Array, effectors: Table, largest: Array, e: Array, J: Array) -> None:
    """Copy rows and Jacobian; each effector's rows become no longer than its `largest`."""
    m, n = jacobian.shape
    for r in range(m):
        e[r] = rows[r]
        for v in range(n):
            J[r, v] = jacobian[r, v]
    for k in range(len(largest)):
        first, end = effectors[k, 0], effectors[k, 1]
        square = 0.0
        for r in range(first, end):
            square += e[r] * e[r]
        if square > largest[k] * largest[k]:
            share = largest[k] / math.sqrt(square)
            for r in range(first, end):
                e[r] *= share


@kernel("b1(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], i8[::1], f8[:,::1], f8[:,::1])")
def settle_limits(
    I: Table,
    F: Array,
    jacobian: Array,
    wish_jacobian: Array,
    e: Array,
    y: Array,
    held: Table,
    J: Array,
    wish_J: Array,
) -> bool:
    """Zero the columns that the step would push through a limit; if there are none, let go those that want inside.

    A column that is held wants inside if the linear model would fall that way. Each is let go once. Returns whether
    anything has changed, so that the step has to be solved again. y (m,) is room to work in.
    """
    m, n = J.shape
    changed, any_held = False, False
    for v in range(n):
        k, go = I[I[AT_COLUMN_X] + v], F[I[AT_STEP] + v]
        any_held |= held[v] == HELD
        if k < 0 or go == 0.0:
            continue
        x = F[I[AT_TRIAL] + k]
        if (go < 0.0 and x <= F[I[AT_LOWER] + v]) or (go > 0.0 and x >= F[I[AT_UPPER] + v]):
            changed = True
            held[v] = HELD if held[v] == FREE else HELD_FOR_GOOD
            for r in range(m):
                J[r, v] = 0.0
            for r in range(wish_J.shape[0]):
                wish_J[r, v] = 0.0
    if changed or not any_held:
        return changed
    length = 0.0
    for r in range(m):
        length += e[r] * e[r]
        y[r] = e[r]
        for v in range(n):
            y[r] += J[r, v] * F[I[AT_STEP] + v]
    for v in range(n):
        if held[v] != HELD:
            continue
        slope, size = 0.0, 0.0
        for r in range(m):
            slope += jacobian[r, v] * y[r]
            size += jacobian[r, v] * jacobian[r, v]
        x, least = F[I[AT_TRIAL] + I[I[AT_COLUMN_X] + v]], ROUNDING * math.sqrt(length * size)
        if (slope < -least and x <= F[I[AT_LOWER] + v]) or (slope > least and x >= F[I[AT_UPPER] + v]):
            changed = True
            held[v] = LET_GO
            for r in range(m):
                J[r, v] = jacobian[r, v]
            for r in range(wish_J.shape[0]):
                wish_J[r, v] = wish_jacobian[r, v]
    return changed


@kernel("void(f8[::1], f8[:,::1], f8, f8, f8[:,::1], f8[::1], f8[:,::1], f8[::1])")
def spectral_step(
    e: Array, J: Array, damping: float, rank_tolerance: float, U: Array, s: Array, V: Array, step: Array
) -> None:
    """step = - sum of s_i / (s_i^2 + damping^2) (u_i . e) v_i over the s_i above rank_tolerance times the largest."""
    singular_values(J, U, s, V)
    for v in range(len(step)):
        step[v] = 0.0
    for i in range(len(s)):
        if s[i] > rank_tolerance * s[0]:
            dot = 0.0
            for r in range(len(e)):
                dot += U[i, r] * e[r]
            dot *= s[i] / (s[i] * s[i] + damping * damping)
            for v in range(len(step)):
                step[v] -= dot * V[i, v]


@kernel("void(f8[:,::1], f8[::1], f8, f8, f8[::1], f8[::1])")
def add_from_null_space(V: Array, s: Array, rank_tolerance: float, gain: float, wish: Array, step: Array) -> None:
    """step += gain (1 - sum of v_i v_i') wish; `wish` is used up."""
    for i in range(len(s)):
        if s[i] > rank_tolerance * s[0]:
            dot = 0.0
            for v in range(len(step)):
                dot += V[i, v] * wish[v]
            for v in range(len(step)):
                wish[v] -= dot * V[i, v]
    for v in range(len(step)):
        step[v] += gain * wish[v]


@kernel("b1(f8[::1], f8[:,::1], f8, f8[:,::1], f8[::1], f8[::1])")
def damped_step(e: Array, J: Array, damping2: float, A: Array, y: Array, step: Array) -> bool:
    """step = -J' (J J' + damping2 1)^-1 e, or -(J'J + damping2 1)^-1 J'e, which is the same, by the smaller matrix.

    A (k, k) and y (k,) are room to work in; k is the smaller of m and n. False if rounding has eaten the damping.
    """
    m, n = J.shape
    if m <= n:
        for i in range(m):
            y[i] = e[i]
            for j in range(i + 1):
                dot = 0.0
                for v in range(n):
                    dot += J[i, v] * J[j, v]
                A[i, j] = dot
            A[i, i] += damping2
        solved = solve_positive(A, y)
        for v in range(n):
            step[v] = 0.0
        for i in range(m):
            for v in range(n):
                step[v] -= J[i, v] * y[i]
        return solved
    for v in range(n):
        y[v] = 0.0
        for w in range(v + 1):
            A[v, w] = 0.0
    for i in range(m):
        for v in range(n):
            y[v] += J[i, v] * e[i]
            for w in range(v + 1):
                A[v, w] += J[i, v] * J[i, w]
    for v in range(n):
        A[v, v] += damping2
    solved = solve_positive(A, y)
    for v in range(n):
        step[v] = -y[v]
    return solved


@kernel("void(f8[::1], f8[:,::1], i8[:,::1], f8, f8[:,::1], f8[::1], f8[:,::1], f8[::1], f8[::1])")
def selective_step(
    e: Array, J: Array, effectors: Table, gamma_max: float, U: Array, s: Array, V: Array, rho: Array, step: Array
) -> None:
    """N_i, M_i and gamma_i as in the paper; rho (n,): how far a unit of each column moves all effectors together."""
    m, n = J.shape
    singular_values(J, U, s, V)
    for v in range(n):
        step[v] = 0.0
        rho[v] = 0.0
        for k in range(len(effectors)):
            square = 0.0
            for r in range(effectors[k, 0], effectors[k, 1]):
                square += J[r, v] * J[r, v]
            rho[v] += math.sqrt(square)
    for i in range(len(s)):
        if s[i] <= NEAR_ZERO:
            continue
        alpha, N, M = 0.0, 0.0, 0.0
        for r in range(m):
            alpha += U[i, r] * e[r]
        for k in range(len(effectors)):  # how far the effectors are to go along u_i
            square = 0.0
            for r in range(effectors[k, 0], effectors[k, 1]):
                square += U[i, r] * U[i, r]
            N += math.sqrt(square)
        largest = 0.0
        for v in range(n):  # how far the joints carry them meanwhile, to and fro
            M += abs(V[i, v]) * rho[v]
            largest = max(largest, abs(V[i, v]))
        M /= s[i]
        gamma = gamma_max * min(1.0, N / M)
        factor = -alpha / s[i]
        reach = abs(factor) * largest
        if reach > gamma:
            factor *= gamma / reach
        for v in range(n):
            step[v] += factor * V[i, v]


@kernel("f8(f8[::1], f8[:,::1], f8, f8[:,::1], f8[::1], f8[:,::1], f8[::1])")
def newton_step(e: Array, J: Array, damping: float, U: Array, s: Array, V: Array, step: Array) -> float:
    """step = - sum of (u_i . e) / (s_i + damping) v_i. Returns the slope of half the cost along it."""
    singular_values(J, U, s, V)
    for v in range(len(step)):
        step[v] = 0.0
    slope = 0.0
    for i in range(len(s)):
        if s[i] > RANK_TOLERANCE * s[0]:
            dot = 0.0
            for r in range(len(e)):
                dot += U[i, r] * e[r]
            slope -= dot * dot * s[i] / (s[i] + damping)
            for v in range(len(step)):
                step[v] -= dot / (s[i] + damping) * V[i, v]
    return slope
