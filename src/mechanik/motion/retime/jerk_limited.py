"""Nearly time-optimal profiles within velocity, acceleration and jerk limits, with a B-spline of the squared rate.

Let r(u) be a dof along the curve as a function of the time u of a base profile, and let y(u) = (du/dt)^2 be the squared
rate at which this time passes. Then the dof has

    velocity      r' y^1/2
    acceleration  r'' y + 1/2 r' y'
    jerk          (r''' y + 3/2 r'' y' + 1/2 r' y'') y^1/2

So the limit A on the acceleration is linear in y and its derivatives, and the limit V on the velocity is linear, too:
y <= V^2 / r'^2. The limit J on the jerk is kept where an expression linear in y and its derivatives is within J y^-1/2.
This bound is convex in y and is above its tangents, so the limit is kept where the tangent bound is kept. The squared
rate is a quadratic B-spline: each parabola is determined by three neighbouring coefficients.

The duration is the integral of y^-1/2, which is convex in y. An interior-point method minimizes the duration. All
limits are linear except the jerk limit. In each step the jerk bound is replaced by its tangent at the current iterate.
The tangent is stricter, so every iterate keeps the limits at the samples, and the method may stop after any step
(A. L. Yuille and A. Rangarajan, "The concave-convex procedure", Neural Computation 15(4), 2003). Steps follow
S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM Journal on Optimization 2(4), 1992.
The matrix of the linear system has five diagonals, so the computing time is linear in the number of coefficients.

At each s, the first base profile has the largest speed that keeps the limits if it is constant; this profile is
averaged over time and smoothed. The best squared rate along a base profile gives the next base profile; more samples
are added where limits were exceeded. A small stretch of the time compensates the remaining excess. The result keeps all
limits and takes a few percent longer than the optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanik.motion.retime.joint_spline import JointSpline
from mechanik.motion.retime.time_optimal import LIMIT_MARGIN, grid_along, profile_from_speeds
from mechanik.motion.retime.time_profile import (
    CubicProfile,
    ReparameterizedProfile,
    breakpoints,
    fit_spline_profile,
    reparameterize,
    slowdown_factors,
)
from mechanik.spatial.array import Array

EDGE_OFFSET_RATIO = 1e-5
"""Distance of the first and the last sample from the ends of an interval, as a ratio to the interval."""
SAMPLES_PER_INTERVAL = (3, 9)
"""Number of samples of the limits in each interval between discontinuities: by default, and near the ends."""
END_PARABOLAS = 4
"""Number of the first and of the last parabolas of y that are near the ends."""
UNLIMITED_SQUARED_RATE = 1e12
"""Squared rate that counts as unlimited."""


@dataclass(frozen=True, slots=True, eq=False)
class SquaredRateConstraints:
    """The limits as constraints on the coefficients of the squared rate y.

    There are K parabolas and M samples. Only the n dofs that move are included. The slacks (G,) are the distances to
    all limits in one array: to the upper and lower jerk limit and the upper and lower acceleration limit, (M, n) each,
    and to the velocity limit, (M,). The last slacks are the coefficients themselves (K + 2,), which must be above 0.

    Attributes:
        u: (K + 1,) knots of y: times of the base profile, s.
        basis: (K, 3, 3) derivatives of y, y' and y'' at the start of each parabola by its three coefficients.
        first_samples: (K,) index of the first sample in each parabola.
        sample_pieces: (M,) index of the parabola of each sample.
        sample_basis: (M, 3, 3) derivatives of y, y' and y'' at each sample by the three coefficients of its parabola.
        max_squared_rate: (M,) largest y that the velocity limit allows at each sample.
        acceleration_factors: (2, M, n) derivatives of the acceleration by y and y', relative to its limit.
        jerk_factors: (3, M, n) derivatives of jerk / y^1/2 by y, y' and y'', relative to the jerk limit.
    """

    u: Array
    basis: Array
    first_samples: NDArray[np.int64]
    sample_pieces: NDArray[np.int64]
    sample_basis: Array
    max_squared_rate: Array
    acceleration_factors: Array
    jerk_factors: Array

    def steady_squared_rate(self) -> float:
        """Largest constant y within all limits."""
        return 1.0 / max(
            np.max(1.0 / self.max_squared_rate),
            np.abs(self.acceleration_factors[0]).max(),
            np.abs(self.jerk_factors[0]).max() ** (2.0 / 3.0),
        )

    def pieces(self, coefficients: Array) -> Array:
        """y, y' and y'' (K, 3) at the start of each parabola."""
        return np.einsum("kdi,ki->kd", self.basis, neighbours(coefficients))

    def at_samples(self, coefficients: Array) -> Array:
        """y, y' and y'' (3, M) at the samples."""
        return np.einsum("mdi,mi->dm", self.sample_basis, neighbours(coefficients)[self.sample_pieces])

    def slacks(self, coefficients: Array) -> Array:
        """Slacks (G,), positive where the limits are kept."""
        squared_rate_at_samples = self.at_samples(coefficients)
        slacks = self._linear_part(squared_rate_at_samples, coefficients)
        two_sided_slacks, velocity_slacks, _ = self._views(slacks)
        two_sided_slacks[:2] += (squared_rate_at_samples[0] ** -0.5)[:, None]
        two_sided_slacks[2:] += 1.0
        velocity_slacks += 1.0
        return slacks

    def slack_change(self, step: Array, y: Array) -> Array:
        """Change (G,) of the slacks for a step of all coefficients, along the tangents at y (M,)."""
        step_at_samples = self.at_samples(step)
        changes = self._linear_part(step_at_samples, step)
        self._views(changes)[0][:2] += (_rsqrt_derivative(y) * step_at_samples[0])[:, None]
        return changes

    def weighted_gradient(self, weights: Array, y: Array) -> Array:
        """Sum (K + 2,) of the gradients of all slacks, weighted by `weights` (G,), at y (M,)."""
        two_sided_weights, velocity_weights, coefficient_weights = self._views(weights)
        jerk_above, jerk_below, acceleration_above, acceleration_below = two_sided_weights
        (a0, a1), (j0, j1, j2) = self.acceleration_factors, self.jerk_factors
        jerk_weights, acceleration_weights = jerk_below - jerk_above, acceleration_below - acceleration_above
        gradient_by_y = (
            _dot(jerk_weights, j0)
            + _dot(acceleration_weights, a0)
            + (jerk_above + jerk_below).sum(axis=1) * _rsqrt_derivative(y)
            - velocity_weights / self.max_squared_rate
        )
        gradient_by_derivatives = np.stack(
            [gradient_by_y, _dot(jerk_weights, j1) + _dot(acceleration_weights, a1), _dot(jerk_weights, j2)], axis=1
        )
        return (
            sum_by_coefficient(
                np.add.reduceat(np.einsum("md,mdi->mi", gradient_by_derivatives, self.sample_basis), self.first_samples)
            )
            + coefficient_weights
        )

    def slack_hessian(self, weights: Array, y: Array) -> tuple[Array, Array]:
        """Sum of the outer products of the slack gradients, weighted by `weights` (G,), at y (M,).

        Returns:
            (K, 3, 3) for the coefficients of each parabola, and (K + 2,) to add to the diagonal.
        """
        two_sided_weights, velocity_weights, coefficient_weights = self._views(weights)
        jerk_above, jerk_below, acceleration_above, acceleration_below = two_sided_weights
        (a0, a1), (j0, j1, j2) = self.acceleration_factors, self.jerk_factors
        jerk_weights, acceleration_weights, slope = (
            jerk_above + jerk_below,
            acceleration_above + acceleration_below,
            _rsqrt_derivative(y),
        )
        weighted_j0, weighted_j1, weighted_a1 = j0 * jerk_weights, j1 * jerk_weights, a1 * acceleration_weights
        # the tangent term has the same sign in the upper and in the lower slack
        cross_weights = (jerk_below - jerk_above) * slope[:, None]
        hessian_by_derivatives = np.empty((len(y), 3, 3))
        hessian_by_derivatives[:, 0, 0] = (
            _dot(weighted_j0, j0) + 2.0 * _dot(cross_weights, j0) + jerk_weights.sum(axis=1) * slope**2
        )
        hessian_by_derivatives[:, 0, 0] += (
            _dot(acceleration_weights, a0**2) + velocity_weights / self.max_squared_rate**2
        )
        hessian_by_derivatives[:, 0, 1] = hessian_by_derivatives[:, 1, 0] = (
            _dot(weighted_j0, j1) + _dot(cross_weights, j1) + _dot(weighted_a1, a0)
        )
        hessian_by_derivatives[:, 0, 2] = hessian_by_derivatives[:, 2, 0] = _dot(weighted_j0, j2) + _dot(
            cross_weights, j2
        )
        hessian_by_derivatives[:, 1, 1] = _dot(weighted_j1, j1) + _dot(weighted_a1, a1)
        hessian_by_derivatives[:, 1, 2] = hessian_by_derivatives[:, 2, 1] = _dot(weighted_j1, j2)
        hessian_by_derivatives[:, 2, 2] = _dot(jerk_weights, j2**2)
        return np.add.reduceat(
            np.swapaxes(self.sample_basis, 1, 2) @ hessian_by_derivatives @ self.sample_basis, self.first_samples
        ), coefficient_weights

    def _linear_part(self, squared_rate_at_samples: Array, coefficients: Array) -> Array:
        """Part (G,) of the slacks that is linear in the coefficients."""
        (a0, a1), (j0, j1, j2) = self.acceleration_factors, self.jerk_factors
        y, dy, ddy = squared_rate_at_samples[..., None]
        slacks = np.empty(4 * a0.size + len(y) + len(coefficients))
        two_sided_slacks, velocity_slacks, coefficient_slacks = self._views(slacks)
        two_sided_slacks[1] = j0 * y + j1 * dy + j2 * ddy
        two_sided_slacks[3] = a0 * y + a1 * dy
        two_sided_slacks[0], two_sided_slacks[2] = -two_sided_slacks[1], -two_sided_slacks[3]
        velocity_slacks[:] = -squared_rate_at_samples[0] / self.max_squared_rate
        coefficient_slacks[:] = coefficients
        return slacks

    def _views(self, slacks: Array) -> tuple[Array, Array, Array]:
        """Views of the slacks: jerk and acceleration (4, M, n), velocity (M,), coefficients (K + 2,)."""
        sample_count, dof_count = self.acceleration_factors.shape[1:]
        two_sided_count = 4 * sample_count * dof_count
        return (
            slacks[:two_sided_count].reshape(4, sample_count, dof_count),
            slacks[two_sided_count : two_sided_count + sample_count],
            slacks[two_sided_count + sample_count :],
        )


def squared_rate_constraints(
    curve: JointSpline,
    profile: CubicProfile,
    velocity: Array,
    acceleration: Array,
    jerk: Array,
    extra_s: Array | None = None,
) -> SquaredRateConstraints:
    """Sample the limits (nv,) along a curve and its base profile as constraints on the squared rate.

    There are samples next to all discontinuities of the third derivatives of profile and curve, and between them.

    Args:
        extra_s: values of s for additional samples, one-dimensional.
    """
    u = profile.t
    times = _sample_times(breakpoints(curve, profile), u)
    if extra_s is not None and len(extra_s):
        times = np.union1d(times, np.interp(extra_s, profile.at(times)[0], times))
    sample_pieces = np.clip(np.searchsorted(u, times, side="right") - 1, 0, len(u) - 2).astype(np.int64)
    basis = _spline_basis(np.diff(u))
    x = (times - u[sample_pieces])[:, None]
    y, dy, ddy = np.moveaxis(basis[sample_pieces], 1, 0)
    sample_basis = np.stack([y + x * (dy + 0.5 * x * ddy), dy + x * ddy, ddy], axis=1)
    s, v, a, j = (derivative[:, None] for derivative in profile.at(times))
    _, *curve_derivatives = curve.at(s[:, 0])
    is_moving = curve_derivatives[0].any(axis=0)
    q_s, q_ss, q_sss = (derivative[:, is_moving] for derivative in curve_derivatives)
    r1, r2, r3 = q_s * v, q_ss * v**2 + q_s * a, q_sss * v**3 + 3 * q_ss * v * a + q_s * j
    max_squared_rate = 1.0 / np.maximum(
        (np.abs(r1) / velocity[is_moving]).max(axis=1) ** 2, 1.0 / UNLIMITED_SQUARED_RATE
    )
    return SquaredRateConstraints(
        u, basis, np.searchsorted(sample_pieces, np.arange(len(u) - 1)).astype(np.int64), sample_pieces, sample_basis,
        max_squared_rate,
        np.stack([r2, 0.5 * r1]) / acceleration[is_moving], np.stack([r3, 1.5 * r2, 0.5 * r1]) / jerk[is_moving],
    )  # fmt: skip


def neighbours(coefficients: Array) -> Array:
    """The three coefficients (K, 3) of each parabola, from all coefficients (K + 2,)."""
    return np.stack([coefficients[:-2], coefficients[1:-1], coefficients[2:]], axis=1)


def sum_by_coefficient(values_by_piece: Array) -> Array:
    """Sum (K + 2,) over all parabolas of values (K, 3) for their coefficients."""
    sums = np.zeros(len(values_by_piece) + 2)
    for k in range(3):
        sums[k : k + len(values_by_piece)] += values_by_piece[:, k]
    return sums


def _rsqrt_derivative(y: Array) -> Array:
    """Derivative of y^-1/2."""
    return -0.5 * y**-1.5


def _dot(a: Array, b: Array) -> Array:
    """Row-wise dot products (M,) of a and b (M, n)."""
    return np.einsum("mv,mv->m", a, b)


def _spline_basis(widths: Array) -> Array:
    """`SquaredRateConstraints.basis` of a quadratic B-spline on uneven knots with intervals `widths` (K,)."""
    padded_widths = np.concatenate([widths[:1], widths, widths[-1:]])
    left_widths, right_widths = padded_widths[:-2] + widths, widths + padded_widths[2:]
    basis = np.zeros((len(widths), 3, 3))
    basis[:, 0, 0], basis[:, 0, 1] = widths / left_widths, padded_widths[:-2] / left_widths
    basis[:, 1, 0], basis[:, 1, 1] = -2.0 / left_widths, 2.0 / left_widths
    basis[:, 2, 0], basis[:, 2, 2] = 2.0 / (left_widths * widths), 2.0 / (right_widths * widths)
    basis[:, 2, 1] = -basis[:, 2, 0] - basis[:, 2, 2]
    return basis


def _sample_times(times: Array, u: Array) -> Array:
    """Sample times next to all discontinuities and between them; more near the ends, where y curves most.

    Args:
        times: times of the discontinuities, s.
        u: knots of y, s.
    """
    starts, widths = times[:-1, None], np.diff(times)[:, None]
    is_near_end = (times[:-1] < u[END_PARABOLAS]) | (times[1:] > u[-1 - END_PARABOLAS])
    sparse_times, dense_times = (
        starts + widths * np.linspace(EDGE_OFFSET_RATIO, 1.0 - EDGE_OFFSET_RATIO, count)
        for count in SAMPLES_PER_INTERVAL
    )
    return np.sort(np.concatenate([sparse_times[~is_near_end].ravel(), dense_times[is_near_end].ravel()]))


MAX_STEPS = 60
"""Largest number of interior-point steps."""
INITIAL_RATIO = 0.98
"""Ratio of the initial y to the largest constant y; it is below 1 because the start must be strictly feasible."""
BOUNDARY_RATIO = 0.99
"""Largest ratio of a step to the step that reaches the nearest constraint."""
MIN_CENTRING_RATIO = 1e-3
"""Smallest ratio of the target to the current complementarity."""
STATIONARITY_RATIO = 1e-2
"""Largest residual of stationarity at the end, as a ratio of the largest entry of the gradient of the duration."""


def optimize_squared_rate(constraints: SquaredRateConstraints, tolerance: float) -> Array:
    """Compute the coefficients (K + 2,) of the y with the shortest duration, by a primal-dual interior-point method.

    Args:
        tolerance: relative tolerance of the duration: largest complementarity as a share of the duration.
    """
    linalg: Any = import_module("scipy.linalg")
    widths, gauss_basis = _gauss_points(constraints)
    coefficients = np.full(len(constraints.u) + 1, INITIAL_RATIO * constraints.steady_squared_rate())
    slacks = constraints.slacks(coefficients)
    duration, gradient, hessian = _duration(widths, gauss_basis, coefficients)
    multipliers = 0.1 * duration / len(slacks) / slacks
    for _ in range(MAX_STEPS):
        y = constraints.at_samples(coefficients)[0]
        complementarity = float(multipliers @ slacks)
        if (
            complementarity < tolerance * duration
            and np.abs(gradient - constraints.weighted_gradient(multipliers, y)).max()
            < STATIONARITY_RATIO * np.abs(gradient).max()
        ):
            break
        ratios = multipliers / slacks
        hessian_by_piece, diagonal = constraints.slack_hessian(ratios, y)
        bands = _bands(hessian + hessian_by_piece)
        bands[0] += diagonal
        try:
            factor = linalg.cholesky_banded(bands, lower=True)
        except (linalg.LinAlgError, ValueError):  # singular by rounding; no better iterate can be computed
            break

        newton_step = partial(_newton_step, constraints, linalg, factor, gradient, y)
        _, slack_step = newton_step(np.zeros_like(slacks))
        multiplier_step = -multipliers - ratios * slack_step
        predicted_multipliers = multipliers + _step_length(multipliers, multiplier_step) * multiplier_step
        predicted_slacks = slacks + _step_length(slacks, slack_step) * slack_step
        predicted_complementarity = predicted_multipliers @ predicted_slacks
        target_product = (
            min(1.0, max((float(predicted_complementarity) / complementarity) ** 3, MIN_CENTRING_RATIO))
            * complementarity
            / len(slacks)
        )
        centred_multipliers = (target_product - multiplier_step * slack_step) / slacks
        step, slack_step = newton_step(centred_multipliers)
        multiplier_step = centred_multipliers - multipliers - ratios * slack_step
        coefficients = coefficients + _step_length(slacks, slack_step, BOUNDARY_RATIO) * step
        multipliers = multipliers + _step_length(multipliers, multiplier_step, BOUNDARY_RATIO) * multiplier_step
        slacks = constraints.slacks(coefficients)
        duration, gradient, hessian = _duration(widths, gauss_basis, coefficients)
    return coefficients


def _newton_step(
    constraints: SquaredRateConstraints, linalg: Any, factor: Array, gradient: Array, y: Array, multipliers: Array
) -> tuple[Array, Array]:
    """Newton step (K + 2,) of the coefficients for given multipliers (G,), and the resulting change (G,) of the slacks.

    After the step, the weighted gradients of the slacks balance the gradient of the duration to first order.
    """
    step = linalg.cho_solve_banded(
        (factor, True), constraints.weighted_gradient(multipliers, y) - gradient, check_finite=False
    )
    return step, constraints.slack_change(step, y)


def _gauss_points(constraints: SquaredRateConstraints) -> tuple[Array, Array]:
    """Widths (K, 1) of the parabolas, and derivatives (K, 2, 3) of y at their two Gauss points by the coefficients."""
    widths = np.diff(constraints.u)[:, None]
    x = (widths * (0.5 + np.array([-0.5, 0.5]) / np.sqrt(3.0)))[..., None]
    y, dy, ddy = (constraints.basis[:, None, order] for order in range(3))
    return widths, y + x * (dy + 0.5 * x * ddy)


def _duration(widths: Array, gauss_basis: Array, coefficients: Array) -> tuple[float, Array, Array]:
    """Duration, its gradient (K + 2,), and its second derivatives by the coefficients of each parabola (K, 3, 3)."""
    y = np.einsum("kgi,ki->kg", gauss_basis, neighbours(coefficients))
    gradient = sum_by_coefficient(np.einsum("kg,kgi->ki", -0.25 * widths * y**-1.5, gauss_basis))
    hessian = np.einsum("kg,kgi,kgj->kij", 0.375 * widths * y**-2.5, gauss_basis, gauss_basis)
    return 0.5 * float((widths * y**-0.5).sum()), gradient, hessian


def _step_length(values: Array, change: Array, ratio: float = 1.0) -> float:
    """Step length, at most 1: `ratio` times the length at which the first of the positive `values` reaches 0."""
    return min(1.0, ratio * (1.0 / max(1e-300, float(-(change / values).min()))))


def _bands(matrices: Array) -> Array:
    """Lower diagonals (3, K + 2) of the sum of the matrices (K, 3, 3) of all parabolas."""
    count = len(matrices)
    bands = np.zeros((3, count + 2))
    for row in range(3):
        for column in range(row + 1):
            bands[row - column, column : column + count] += matrices[:, row, column]
    return bands


FIRST_GRID_POINTS = 300
"""Approximate number of grid points of the first base profile."""
CURVATURE_JERK_SHARE = 0.3
"""Largest jerk at constant speed along the curve in the first base profile, as a share of the jerk limit."""
MIN_DERIVATIVE = 1e-100
"""Smallest derivative, to avoid division by 0."""
AVERAGING_WINDOWS = (0.01, 0.03, 0.1, 0.3)
"""Averaging windows as shares of the duration; the window whose profile has the shortest `_steady_duration` is used."""
AVERAGE_INTERVALS = 2000
"""Number of intervals into which a profile is divided to integrate it for the averages."""
FIRST_PIECES, MAX_PIECES, PIECES_PER_WAYPOINT = 200, 1000, 3
"""Number of pieces of a base profile and of y: in the first round, at most, and in later rounds additionally for each
waypoint."""
TOLERANCES = (1e-2, 3e-3, 3e-3)
"""Relative tolerance of the duration in each round. The last round is run only if a slowdown factor (by which the
motion must be slowed down to keep its limits) is still ACCEPTED_SLOWDOWN or more."""
ACCEPTED_SLOWDOWN = 1.003
"""Slowdown factor above which samples are added; after the second round, another round is run if it is exceeded."""


def jerk_limited_profile(
    curve: JointSpline, velocity: Array, acceleration: Array, jerk: Array
) -> ReparameterizedProfile:
    """Nearly time-optimal profile within velocity, acceleration and jerk limits, (nv,) each."""
    limits = velocity, acceleration, jerk
    steady_profile = _steady_profile(curve, *limits)
    averages = [_averaged_position(steady_profile, share * steady_profile.duration) for share in AVERAGING_WINDOWS]
    profiles = [_as_cubic_profile(*average, FIRST_PIECES) for average in averages]
    profile = min(profiles, key=lambda candidate: _steady_duration(curve, candidate, limits))
    extra_s = np.zeros(0)
    candidates: list[ReparameterizedProfile] = []
    for tolerance in TOLERANCES:
        constraints = squared_rate_constraints(curve, profile, *limits, extra_s)
        squared_rate = constraints.pieces(optimize_squared_rate(constraints, tolerance))
        reparameterized_profile = reparameterize(profile, constraints.u, squared_rate)
        times = breakpoints(curve, reparameterized_profile)
        factors = slowdown_factors(curve, reparameterized_profile, times, limits)
        candidates.append(replace(reparameterized_profile, stretch=float(factors.max()) * (1.0 + LIMIT_MARGIN)))
        if len(candidates) > 1 and factors.max() < ACCEPTED_SLOWDOWN:
            break
        exceeding_intervals = np.flatnonzero(factors > ACCEPTED_SLOWDOWN)
        sample_times = times[exceeding_intervals, None] + np.diff(times)[exceeding_intervals, None] * np.linspace(
            0.1, 0.9, 9
        )
        extra_s = np.union1d(extra_s, reparameterized_profile.at(sample_times.ravel())[0])
        count = min(FIRST_PIECES + PIECES_PER_WAYPOINT * len(curve.s), MAX_PIECES)
        profile = _as_cubic_profile(
            reparameterized_profile.duration,
            lambda t, reparameterized_profile=reparameterized_profile: reparameterized_profile.at(t)[0],
            count,
        )
    return min(candidates, key=lambda candidate: candidate.duration)


def _steady_profile(curve: JointSpline, velocity: Array, acceleration: Array, jerk: Array) -> CubicProfile:
    """Profile with the largest speed at each s that keeps the limits if it is constant, from rest to rest.

    Changes of the speed are limited only near the ends.
    """
    s = grid_along(curve, FIRST_GRID_POINTS)
    _, q_s, q_ss, q_sss = (np.maximum(np.abs(derivative), MIN_DERIVATIVE) for derivative in curve.at(s))
    speeds = velocity / q_s, np.sqrt(acceleration / q_ss), np.cbrt(CURVATURE_JERK_SHARE * jerk / q_sss)
    end_speeds = np.sqrt(2.0 * np.minimum(s, curve.length - s) * (acceleration / q_s).min(axis=1))
    return profile_from_speeds(s, np.minimum(np.min(speeds, axis=(0, 2)), end_speeds))


def _averaged_position(profile: CubicProfile, window: float) -> tuple[float, Callable[[Array], Array]]:
    """Duration, and a function from times (M,) to s (M,), of a profile averaged over `window` seconds."""
    t = np.linspace(0.0, profile.duration, AVERAGE_INTERVALS + 1)
    s = profile.at(t)[0]
    integral = np.append(0.0, np.cumsum(0.5 * (s[1:] + s[:-1]) * np.diff(t)))

    def integral_at(time: Array) -> Array:
        return np.interp(time, t, integral) + np.maximum(time - t[-1], 0.0) * s[-1]

    return float(t[-1]) + window, lambda time: (integral_at(time) - integral_at(time - window)) / window


def _as_cubic_profile(duration: float, position_at: Callable[[Array], Array], count: int) -> CubicProfile:
    """Cubic profile with `count` intervals that approximates the function `position_at` from time to s."""
    return fit_spline_profile(np.linspace(0.0, duration, count + 1), position_at)


def _steady_duration(curve: JointSpline, profile: CubicProfile, limits: tuple[Array, Array, Array]) -> float:
    """Duration (s) of a profile whose time is stretched by the smallest constant factor that keeps the limits."""
    return profile.duration / np.sqrt(squared_rate_constraints(curve, profile, *limits).steady_squared_rate())
