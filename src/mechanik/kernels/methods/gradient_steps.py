"""Steps of gradient methods: gradient descent, momentum, Adam, Jacobian transpose, and L-BFGS-B.

The cost is the squared norm of the residual e; `gradient` = J'e is the gradient of half the cost. All steps are in
units of the columns, and v is the index of a column (except in Adam, where m and v are the averages of the paper).
`step_min` and `step_max` are the signed distances of each column to its limits, step_min <= 0 <= step_max.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mechanik.spatial.array import Array

from ..compiler import inline, kernel
from ..problem_layout import LOCKED, open_problem

LIMIT_TOLERANCE = 1e-12
"""Distance to a limit, in units of the columns, below which a column counts as at its limit."""
OPTIMAL_LENGTH = -1.0
"""Value of `alpha` that requests the optimal step length of the linear model."""
MAX_LENGTH = 1e10
"""Largest spectral step length, as a ratio of a step to the gradient; also the result where none can be computed."""
RATE_BY_JACOBIAN = -1.0
"""Value of `alpha` that requests a learning rate of 1 / |J|^2 (Frobenius norm)."""
MIN_CURVATURE = 1e-12
"""Pairs of a step s and a gradient change y with s.y below this ratio of y.y are skipped."""
MIN_DESCENT_COSINE = 1e-10
"""Cosine between a step and the negative gradient below which the step is replaced by the negative gradient."""


@kernel("void(i8[::1], f8[::1], f8[::1], f8[:,::1], f8[::1], f8[::1], f8[::1])")
def gradient_and_bounds(
    ints: np.ndarray[Any, Any], floats: Array, e: Array, J: Array, gradient: Array, step_min: Array, step_max: Array
) -> None:
    """Write gradient = J'e, and the signed distances `step_min` and `step_max` of each column to its limits.

    Columns of spherical joints have infinite distances, and locked columns have zero distances.
    """
    problem = open_problem(ints, floats)
    m, n = J.shape
    for v in range(n):
        gradient[v] = 0.0
    for i in range(m):
        for v in range(n):
            gradient[v] += J[i, v] * e[i]
    for v in range(n):
        step_min[v], step_max[v] = -np.inf, np.inf
        x_index = problem.column_x[v]
        if x_index >= 0:
            value, scale = problem.trial[x_index], problem.scale[v]
            distance_to_lower, distance_to_upper = (
                (problem.lower[v] - value) / scale,
                (problem.upper[v] - value) / scale,
            )
            step_min[v], step_max[v] = (
                distance_to_lower if distance_to_lower < -LIMIT_TOLERANCE else 0.0,
                distance_to_upper if distance_to_upper > LIMIT_TOLERANCE else 0.0,
            )
        if problem.bound_state[v] == LOCKED:
            step_min[v], step_max[v] = 0.0, 0.0


@kernel("f8(f8[:,::1], f8[::1], f8[::1], f8[::1], f8, f8, f8[::1])")
def transpose_step(
    J: Array, gradient: Array, step_min: Array, step_max: Array, alpha: float, relaxation: float, step: Array
) -> float:
    """Write step = -alpha gradient, where gradient = J'e; return alpha, or 0 if no column can move.

    A column at its limit whose step would leave the limits has a zero step, and the optimal length ignores it.

    Args:
        alpha: step length; OPTIMAL_LENGTH computes it.
        relaxation: factor on the optimal length.
        step: (n,), written.
    """
    m, n = J.shape
    square, mapped_square = 0.0, 0.0  # |J'e|^2 and |J J'e|^2
    for v in range(n):
        is_blocked = (gradient[v] > 0.0 and step_min[v] == 0.0) or (gradient[v] < 0.0 and step_max[v] == 0.0)
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
def gradient_step(gradient: Array, step_min: Array, step_max: Array, alpha: float, step: Array) -> float:
    """Write step = -alpha gradient, clamped to the limits; return the slope of half the cost along the step."""
    slope = 0.0
    for v in range(gradient.shape[0]):
        step[v] = min(max(-alpha * gradient[v], step_min[v]), step_max[v])
        slope += gradient[v] * step[v]
    return slope


@kernel("f8(f8[::1], f8[::1], f8, f8[::1])")
def spectral_length(gradient: Array, previous_gradient: Array, fraction: float, step: Array) -> float:
    """Return the spectral (Barzilai-Borwein) step length s.s / s.y, at most MAX_LENGTH; MAX_LENGTH if s.y <= 0.

    s = fraction * step is the step that was applied, and y the change of the gradient.
    """
    square, step_dot_change = 0.0, 0.0
    for v in range(gradient.shape[0]):
        square += step[v] * step[v]
        step_dot_change += (gradient[v] - previous_gradient[v]) * step[v]
    return min(fraction * square / step_dot_change, MAX_LENGTH) if step_dot_change > 0.0 else MAX_LENGTH


@kernel("f8(f8[::1], f8)")
def longest_step_length(gradient: Array, max_component: float) -> float:
    """Return the factor on the gradient for which the largest component of the step is `max_component`.

    It is MAX_LENGTH for a zero gradient.
    """
    max_gradient = 0.0
    for v in range(gradient.shape[0]):
        max_gradient = max(max_gradient, abs(gradient[v]))
    return max_component / max_gradient if max_gradient > 0.0 else MAX_LENGTH


@kernel("f8(f8[:,::1], f8[::1], f8[::1], f8[::1], f8, f8, b1, b1, f8[::1], f8[::1])")
def momentum_step(
    J: Array, gradient: Array, step_min: Array, step_max: Array, alpha: float, beta: float, is_nesterov: bool,
    has_velocity_reset: bool, velocity: Array, step: Array,
) -> float:  # fmt: skip
    """Update velocity = beta velocity - alpha gradient, and write the step; return its largest component.

    The step of the plain method is the new velocity. Nesterov's method evaluates the gradient at the look-ahead point,
    x + beta velocity. The problem is always evaluated at that point, so the step from one such point to the next is
    beta velocity - alpha gradient, with the new velocity.

    Args:
        alpha: learning rate, or RATE_BY_JACOBIAN.
        beta: share of the velocity that is kept.
        is_nesterov: whether the method is Nesterov's.
        has_velocity_reset: whether a velocity that increases the cost is set to zero.
        velocity: (n,), updated.
        step: (n,), written.
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
    momentum = 0.0 if has_velocity_reset and slope > 0.0 else beta
    largest_component = 0.0
    for v in range(n):
        velocity[v] = momentum * velocity[v] - alpha * gradient[v]
        step[v] = beta * velocity[v] - alpha * gradient[v] if is_nesterov else velocity[v]
        if step[v] < step_min[v] or step[v] > step_max[v]:  # the velocity of a clamped column becomes zero
            step[v] = min(max(step[v], step_min[v]), step_max[v])
            velocity[v] = 0.0
        largest_component = max(largest_component, abs(step[v]))
    return largest_component


@kernel("f8(f8[::1], f8[::1], f8[::1], f8, f8, f8, f8, f8, f8[::1], f8[::1], f8[::1])")
def adam_step(
    gradient: Array, step_min: Array, step_max: Array, alpha: float, beta1: float, beta2: float, epsilon: float,
    t: float, m: Array, v: Array, step: Array,
) -> float:  # fmt: skip
    """Write the step of Adam (Kingma and Ba 2015, algorithm 1), clamped to the limits; return its largest component.

    For a column at a limit across which the negative gradient points, the gradient counts as zero, so its averages
    decay.

    Args:
        alpha, beta1, beta2, epsilon: the parameters of the paper.
        t: index of the iteration, from 1.
        m, v: (n,), averages of the gradient and of its square, updated.
        step: (n,), written.
    """
    bias_correction1, bias_correction2, largest_component = 1.0 - beta1**t, 1.0 - beta2**t, 0.0
    for k in range(gradient.shape[0]):
        g = gradient[k]
        if (g > 0.0 and step_min[k] == 0.0) or (g < 0.0 and step_max[k] == 0.0):
            g = 0.0
        m[k] = beta1 * m[k] + (1.0 - beta1) * g
        v[k] = beta2 * v[k] + (1.0 - beta2) * g * g
        step[k] = -alpha * (m[k] / bias_correction1) / (math.sqrt(v[k] / bias_correction2) + epsilon)
        step[k] = min(max(step[k], step_min[k]), step_max[k])
        largest_component = max(largest_component, abs(step[k]))
    return largest_component


@inline
def linear_length(J: Array, step: Array) -> float:
    """Return the factor on a step along the negative gradient that minimises the cost of the linear model."""
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
    J: Array, gradient: Array, step_min: Array, step_max: Array, S: Array, Y: Array, work: Array, is_free: Array,
    pair_count: int, newest_pair: int, max_component: float, step: Array,
) -> float:  # fmt: skip
    """Write step = -H gradient over the free columns by the two-loop recursion of Nocedal, clamped to the limits.

    H is the approximate inverse Hessian. A column is free unless it is at a limit and the negative gradient points out
    of its limits.

    Args:
        S, Y: (m, n), steps and changes of the gradient, in a ring buffer of m pairs.
        work, is_free: (2, m) and (n,), work arrays.
        pair_count, newest_pair: number of stored pairs, and index of the last pair.
        max_component: upper bound of the absolute components of the step, in units of the columns.
        step: (n,), written.

    Returns:
        The slope of half the cost along the step.
    """
    m, n = S.shape
    coefficient, curvature = work[0], work[1]
    for v in range(n):
        is_blocked = (gradient[v] > 0.0 and step_min[v] == 0.0) or (gradient[v] < 0.0 and step_max[v] == 0.0)
        is_free[v] = 0.0 if is_blocked else 1.0
        step[v] = -is_free[v] * gradient[v]
    gamma = 0.0
    for j in range(pair_count):
        i, product, square, dot = (newest_pair - j) % m, 0.0, 0.0, 0.0
        for v in range(n):
            product += is_free[v] * S[i, v] * Y[i, v]
            square += is_free[v] * Y[i, v] * Y[i, v]
            dot += S[i, v] * step[v]
        curvature[i] = product if product > MIN_CURVATURE * square else 0.0
        if curvature[i] > 0.0:
            coefficient[i] = dot / product
            gamma = product / square if gamma == 0.0 else gamma
            for v in range(n):
                step[v] -= coefficient[i] * is_free[v] * Y[i, v]
    gamma = linear_length(J, step) if gamma == 0.0 else gamma
    for v in range(n):
        step[v] *= gamma
    for j in range(pair_count - 1, -1, -1):
        i, dot = (newest_pair - j) % m, 0.0
        if curvature[i] > 0.0:
            for v in range(n):
                dot += Y[i, v] * step[v]
            for v in range(n):
                step[v] += (coefficient[i] - dot / curvature[i]) * is_free[v] * S[i, v]
    slope = 0.0
    for pass_index in range(2):
        largest_component, square, gradient_square = 0.0, 0.0, 0.0
        for v in range(n):
            if pass_index == 1:  # the clamped step would not decrease the cost; the clamped negative gradient does
                step[v] = -gamma * is_free[v] * gradient[v]
            largest_component = max(largest_component, abs(step[v]))
        scale, slope = max_component / largest_component if largest_component > max_component else 1.0, 0.0
        for v in range(n):
            step[v] = min(max(scale * step[v], step_min[v]), step_max[v])
            slope += step[v] * gradient[v]
            square += step[v] * step[v]
            gradient_square += is_free[v] * gradient[v] * gradient[v]
        if slope < -MIN_DESCENT_COSINE * math.sqrt(square * gradient_square):
            break
    return slope
