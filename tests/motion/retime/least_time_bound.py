"""A lower bound on the duration of a profile within its limits, by a linear program (HiGHS).

The jerk of a dof is within J where an expression linear in the squared rate y is within J y^-1/2. Here y^-1/2, the
time per unit of base time, is replaced by a variable that may be larger, which makes the problem convex. Every y within
the limits is feasible, so the smallest sum of these times is a lower bound.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from mechanik.motion.retime.jerk_limited import SquaredRateConstraints, neighbours
from mechanik.spatial.array import Array

TANGENTS = (0.05, 0.2, 0.5, 0.75, 0.9, 1.0, 1.1, 1.3, 2.0, 5.0)
"""Ratios to the given y at which y^-1/2 is replaced by its tangents, which lie below it."""


def least_time(limits: SquaredRateConstraints, coefficients: Array) -> float:
    """Lower bound (s) for all y that are splines on the same knots as the given y with the coefficients (K + 2,)."""
    sparse: Any = import_module("scipy.sparse")
    optimize: Any = import_module("scipy.optimize")
    count, sample_count = len(coefficients), len(limits.sample_pieces)
    rows, columns = np.repeat(np.arange(sample_count), 3), (limits.sample_pieces[:, None] + np.arange(3)).ravel()
    y, dy, ddy = (
        sparse.csr_matrix((limits.sample_basis[:, order].ravel(), (rows, columns)), (sample_count, count))
        for order in range(3)
    )
    identity, zero = sparse.identity(sample_count, format="csr"), sparse.csr_matrix((sample_count, sample_count))
    left_sides: list[Any] = [sparse.hstack([y, zero])]
    right_sides = [limits.max_squared_rate]
    for dof in range(limits.acceleration_factors.shape[2]):
        a0, a1, j0, j1, j2 = (
            sparse.diags(table[:, dof]) for table in (*limits.acceleration_factors, *limits.jerk_factors)
        )
        acceleration, jerk = a0 @ y + a1 @ dy, j0 @ y + j1 @ dy + j2 @ ddy
        left_sides += [sparse.hstack([sign * acceleration, zero]) for sign in (1, -1)]
        left_sides += [sparse.hstack([sign * jerk, -identity]) for sign in (1, -1)]
        right_sides += [np.ones(2 * sample_count), np.zeros(2 * sample_count)]
    for share in TANGENTS:
        y_tangent = share * limits.at_samples(coefficients)[0]
        left_sides.append(sparse.hstack([-0.5 * sparse.diags(y_tangent**-1.5) @ y, -identity]))
        right_sides.append(-1.5 * y_tangent**-0.5)
    cost = np.concatenate([np.zeros(count), _weights(limits)])
    matrix = sparse.vstack(left_sides).tocsr()
    result = optimize.linprog(cost, matrix, np.concatenate(right_sides), bounds=(0.0, None), method="highs-ipm")
    assert result.success, result.message
    return float(result.fun)


def _weights(limits: SquaredRateConstraints) -> Array:
    """Weight of each sample in the integral over the profile's time, s, by trapezoids."""
    widths = np.diff(limits.u)
    knots = np.concatenate([[-widths[0]], limits.u, [limits.u[-1] + widths[-1]]])
    sample_times = (limits.sample_basis[:, 0] * neighbours(0.5 * (knots[1:] + knots[:-1]))[limits.sample_pieces]).sum(
        axis=1
    )
    edges = np.concatenate([limits.u[:1], 0.5 * (sample_times[1:] + sample_times[:-1]), limits.u[-1:]])
    return np.diff(edges)
