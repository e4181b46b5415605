"""Steps of gradient methods: gradient descent, momentum, Adam, Jacobian transpose, and L-BFGS-B."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mechanik.spatial.array import Array

from ..compiler import inline, kernel
from ..problem_layout import AT_BOUND_STATE, AT_COLUMN_X, AT_LOWER, AT_SCALE, AT_TRIAL, AT_UPPER, LOCKED

LIMIT_TOLERANCE = 1e-12
"""Distance to a limit (rad, or sizes of the mechanism) below which a column counts as at its limit."""
OPTIMAL_LENGTH = -1.0
"""Stands for a step length to be computed from the Jacobian."""
MAX_LENGTH = 1e10
"""Largest ratio of a step to the gradient."""
RATE_BY_JACOBIAN = -1.0
"""Stands for a learning rate of 1 / |J|^2 (Frobenius norm)."""
MIN_CURVATURE = 1e-12
"""Pairs (s, y) with s.y below this ratio of y.y are skipped."""
MIN_DESCENT_COSINE = 1e-10
"""Cosine between a step and the negative gradient below which the gradient is followed instead."""


@kernel("void(i8[::1], f8[::1], f8[::1], f8[:,::1], f8[::1], f8[::1], f8[::1])")
def gradient_and_bounds(
    ints: np.ndarray[Any, Any], floats: Array, e: Array, J: Array, gradient: Array, low: Array, high: Array
) -> None:
    """Write gradient = J'e, and the distances of each column to its limits (low <= 0 <= high).

    All are in units of the columns; locked columns have zero distances.
    """
    m, n = J.shape
    for v in range(n):
        gradient[v] = 0.0
    for i in range(m):
        for v in range(n):
            gradient[v] += J[i, v] * e[i]
    for v in range(n):
        low[v], high[v] = -np.inf, np.inf
        k = ints[ints[AT_COLUMN_X] + v]
        if k >= 0:
            value, scale = floats[ints[AT_TRIAL] + k], floats[ints[AT_SCALE] + v]
            to_lower, to_upper = (
                (floats[ints[AT_LOWER] + v] - value) / scale,
                (floats[ints[AT_UPPER] + v] - value) / scale,
            )
            low[v], high[v] = (
                (to_lower if to_lower < -LIMIT_TOLERANCE else 0.0),
                (to_upper if to_upper > LIMIT_TOLERANCE else 0.0),
            )
        if ints[ints[AT_BOUND_STATE] + v] == LOCKED:
            low[v], high[v] = 0.0, 0.0


@kernel("f8(f8[:,::1], f8[::1], f8[::1], f8[::1], f8, f8, f8[::1])")
def transpose_step(
    J: Array, gradient: Array, low: Array, high: Array, alpha: float, relaxation: float, step: Array
) -> float:
    """Write step = -alpha J'e for pull = J'e; returns alpha, or 0 if no column can move.

    A joint at its limit that is pushed outwards is left out of J: it would not move, and the best length for the other
    joints does not depend on it. OPTIMAL_LENGTH computes alpha, and `relaxation` scales it.
    """
    m, n = J.shape
    square, mapped_square = 0.0, 0.0  # <e, JJ'e>, which is the square of J'e, and <JJ'e, JJ'e>
    for v in range(n):
        is_blocked = (gradient[v] > 0.0 and low[v] == 0.0) or (gradient[v] < 0.0 and high[v] == 0.0)
        step[v] = 0.0 if is_blocked else -gradient[v]
        square += step[v] * step[v]
    if alpha == OPTIMAL_LENGTH:
        for i in range(m):
            product = 0.0
            for v in range(n):
                product += J[i, v] * step[v]
            mapped_square += product * product
        alpha = relaxation * square / mapped_square if mapped_square > 0.0 else 0.0
    elif square == 0.0:
        alpha = 0.0
    for v in range(n):
        step[v] *= alpha
    return alpha


@kernel("f8(f8[::1], f8[::1], f8[::1], f8, f8[::1])")
def gradient_step(gradient: Array, low: Array, high: Array, alpha: float, step: Array) -> float:
    """Write step = -alpha gradient, clamped to the limits; returns the slope along it."""
    slope = 0.0
    for v in range(gradient.shape[0]):
        step[v] = min(max(-alpha * gradient[v], low[v]), high[v])
        slope += gradient[v] * step[v]
    return slope


@kernel("f8(f8[::1], f8[::1], f8, f8[::1])")
def spectral_length(gradient: Array, previous_gradient: Array, fraction: float, step: Array) -> float:
    """The spectral (Barzilai-Borwein) step length s.s / s.y.

    s is the fraction `fraction` of `step` that was applied, and y the change of the gradient along it.
    """
    square, change = 0.0, 0.0
    for v in range(gradient.shape[0]):
        square += step[v] * step[v]
        change += (gradient[v] - previous_gradient[v]) * step[v]
    return min(fraction * square / change, MAX_LENGTH) if change > 0.0 else MAX_LENGTH


@kernel("f8(f8[::1], f8)")
def longest_step_length(gradient: Array, largest: float) -> float:
    """The factor on the gradient that makes the largest component of the step `largest`."""
    max_gradient = 0.0
    for v in range(gradient.shape[0]):
        max_gradient = max(max_gradient, abs(gradient[v]))
    return largest / max_gradient if max_gradient > 0.0 else MAX_LENGTH


@kernel("f8(f8[:,::1], f8[::1], f8[::1], f8[::1], f8, f8, b1, b1, f8[::1], f8[::1])")
def momentum_step(
    J: Array, gradient: Array, low: Array, high: Array, alpha: float, beta: float, nesterov: bool, restart: bool,
    velocity: Array, step: Array,
) -> float:  # fmt: skip
    """Update velocity = beta velocity - alpha gradient and step by it; returns the largest component of the step.

    Nesterov's gradient is taken at the end of the velocity. The problem is always evaluated there, so the step leads to
    the next such point: beta velocity - alpha gradient, with the new velocity. With `restart`, a velocity that points
    uphill is dropped.
    """
    m, n = J.shape
    if alpha == RATE_BY_JACOBIAN:
        square = 0.0
        for i in range(m):
            for v in range(n):
                square += J[i, v] * J[i, v]
        alpha = 1.0 / square if square > 0.0 else 0.0
    slope = 0.0
    for v in range(n):
        slope += gradient[v] * velocity[v]
    momentum = 0.0 if restart and slope > 0.0 else beta
    largest = 0.0
    for v in range(n):
        velocity[v] = momentum * velocity[v] - alpha * gradient[v]
        step[v] = beta * velocity[v] - alpha * gradient[v] if nesterov else velocity[v]
        if step[v] < low[v] or step[v] > high[v]:  # a column that meets its limit loses its velocity
            step[v] = min(max(step[v], low[v]), high[v])
            velocity[v] = 0.0
        largest = max(largest, abs(step[v]))
    return largest


@kernel("f8(f8[::1], f8[::1], f8[::1], f8, f8, f8, f8, f8, f8[::1], f8[::1], f8[::1])")
def adam_step(
    gradient: Array, low: Array, high: Array, alpha: float, beta1: float, beta2: float, epsilon: float, t: float,
    m: Array, v: Array, step: Array,
) -> float:  # fmt: skip
    """Step of Adam (Kingma and Ba 2015, algorithm 1), clamped to the limits; returns its largest component.

    A joint at its limit that is pushed outwards has a zero gradient, so its averages decay while it stays there.

    Args:
        t: number of the iteration, from 1.
        m, v: (n,), averages of the gradient and of its square, updated.
        step: (n,), written.
    """
    unbias1, unbias2, largest = 1.0 - beta1**t, 1.0 - beta2**t, 0.0
    for k in range(gradient.shape[0]):
        g = gradient[k]
        if (g > 0.0 and low[k] == 0.0) or (g < 0.0 and high[k] == 0.0):
            g = 0.0
        m[k] = beta1 * m[k] + (1.0 - beta1) * g
        v[k] = beta2 * v[k] + (1.0 - beta2) * g * g
        step[k] = -alpha * (m[k] / unbias1) / (math.sqrt(v[k] / unbias2) + epsilon)
        step[k] = min(max(step[k], low[k]), high[k])
        largest = max(largest, abs(step[k]))
    return largest


@inline
def linear_length(J: Array, step: Array) -> float:
    """The factor on a step straight down that minimises the cost of a linear model."""
    square, mapped_square = 0.0, 0.0
    for v in range(step.shape[0]):
        square += step[v] * step[v]
    for i in range(J.shape[0]):
        product = 0.0
        for v in range(step.shape[0]):
            product += J[i, v] * step[v]
        mapped_square += product * product
    return square / mapped_square if mapped_square > 0.0 else 0.0


@kernel("f8(f8[:,::1], f8[::1], f8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], i8, i8, f8, f8[::1])")
def quasi_newton_step(
    J: Array, gradient: Array, low: Array, high: Array, S: Array, Y: Array, scratch: Array, free: Array, count: int,
    newest: int, largest: float, step: Array,
) -> float:  # fmt: skip
    """Write step = -H gradient over the free columns by the two-loop recursion of Nocedal, clamped to the limits.

    Args:
        S, Y: (m, n), steps and changes of the gradient, in a ring buffer.
        scratch, free: (2, m) and (n,), scratch memory.
        count, newest: number of pairs, and index of the last pair.
        largest: limit on the components of the step.
        step: (n,), written.

    Returns:
        The slope along the step.
    """
    m, n = S.shape
    coefficient, curvature = scratch[0], scratch[1]
    for v in range(n):
        is_blocked = (gradient[v] > 0.0 and low[v] == 0.0) or (gradient[v] < 0.0 and high[v] == 0.0)
        free[v] = 0.0 if is_blocked else 1.0
        step[v] = -free[v] * gradient[v]
    gamma = 0.0
    for j in range(count):
        i, product, square, dot = (newest - j) % m, 0.0, 0.0, 0.0
        for v in range(n):
            product += free[v] * S[i, v] * Y[i, v]
            square += free[v] * Y[i, v] * Y[i, v]
            dot += S[i, v] * step[v]
        curvature[i] = product if product > MIN_CURVATURE * square else 0.0
        if curvature[i] > 0.0:
            coefficient[i] = dot / product
            gamma = product / square if gamma == 0.0 else gamma
            for v in range(n):
                step[v] -= coefficient[i] * free[v] * Y[i, v]
    gamma = linear_length(J, step) if gamma == 0.0 else gamma
    for v in range(n):
        step[v] *= gamma
    for j in range(count - 1, -1, -1):
        i, dot = (newest - j) % m, 0.0
        if curvature[i] > 0.0:
            for v in range(n):
                dot += Y[i, v] * step[v]
            for v in range(n):
                step[v] += (coefficient[i] - dot / curvature[i]) * free[v] * S[i, v]
    slope = 0.0
    for attempt in range(2):
        longest, square, gradient_square = 0.0, 0.0, 0.0
        for v in range(n):
            if attempt == 1:  # clamped to the limits, the step led uphill; the clamped gradient never does
                step[v] = -gamma * free[v] * gradient[v]
            longest = max(longest, abs(step[v]))
        scale, slope = largest / longest if longest > largest else 1.0, 0.0
        for v in range(n):
            step[v] = min(max(scale * step[v], low[v]), high[v])
            slope += step[v] * gradient[v]
            square += step[v] * step[v]
            gradient_square += free[v] * gradient[v] * gradient[v]
        if slope < -MIN_DESCENT_COSINE * math.sqrt(square * gradient_square):
            break
    return slope
