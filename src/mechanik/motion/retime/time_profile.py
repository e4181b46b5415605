"""Time profiles: the parameter s of a curve as a function of time, and factors by which a motion must be slowed down.

A `CubicProfile` is piecewise cubic in time. A `ReparameterizedProfile` evaluates another profile at a time that passes
at a variable rate. `slowdown_factors` compares velocity, acceleration and jerk along a curve with their limits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from mechanik.motion.retime.joint_spline import JointSpline
from mechanik.spatial.array import Array


class TimeProfile(Protocol):
    """A time profile: the parameter s of a curve as a function of time."""

    @property
    def duration(self) -> float:
        """Duration, s."""
        ...

    @property
    def breaks(self) -> Array:
        """Times at which acceleration or jerk may be discontinuous, s; the first is 0, the last is the duration."""
        ...

    def at(self, t: Array) -> Array:
        """s and its first three derivatives by time (4, M) at times t (M,)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class CubicProfile:
    """A piecewise cubic time profile.

    Attributes:
        t: (K + 1,) start time of each piece and the end time, in seconds before time is stretched.
        state: (K, 4) s and its first three derivatives by unstretched time, at the start of each piece; the third
            derivative is constant in a piece.
        stretch: factor by which time is stretched.
    """

    t: Array
    state: Array
    stretch: float = 1.0

    @property
    def duration(self) -> float:
        """Duration, s."""
        return self.stretch * float(self.t[-1])

    @property
    def breaks(self) -> Array:
        """Times at which acceleration or jerk may be discontinuous, s."""
        return self.stretch * self.t

    def at(self, t: Array) -> Array:
        """s and its first three derivatives by time (4, M) at times t (M,); outside of the duration s is constant."""
        unstretched_times = np.asarray(t, dtype=np.float64) / self.stretch
        end_time = float(self.t[-1])
        clipped_times = np.clip(unstretched_times, 0.0, end_time)
        k = np.clip(np.searchsorted(self.t, clipped_times, side="right") - 1, 0, len(self.state) - 1)
        elapsed_time = clipped_times - self.t[k]
        s, v, a, j = self.state[k].T
        derivatives = np.stack([
            s + elapsed_time * (v + elapsed_time * (a / 2 + elapsed_time * j / 6)),
            v + elapsed_time * (a + elapsed_time * j / 2),
            a + elapsed_time * j,
            j,
        ])  # fmt: skip
        derivatives[1:, (unstretched_times < 0.0) | (unstretched_times > end_time)] = 0.0
        return derivatives / self.stretch ** np.arange(4.0)[:, None]


def fit_spline_profile(times: Array, position_at: Callable[[Array], Array]) -> CubicProfile:
    """Approximate a monotonic profile by a monotonic cubic B-spline in time.

    The coefficients follow Schoenberg's variation-diminishing rule: each is the value at the mean of three knots. Near
    an end, a value that is nearly the geometric mean of the distances from this end replaces the mean, so that profiles
    that start and end like t^3 are approximated better. The spline starts and ends at rest and without acceleration.

    Args:
        times: (K + 1,) knots, from 0 to the duration, s.
        position_at: function from times (M,) to s (M,), increasing from 0.
    """
    interpolate: Any = import_module("scipy.interpolate")
    knots_before, knots_after = (times[1] - times[0]) * np.arange(-3, 0), (times[-1] - times[-2]) * np.arange(1, 4)
    knots = np.concatenate([knots_before, times, times[-1] + knots_after])
    triples = np.stack([knots[1:-3], knots[2:-2], knots[3:-1]])
    # far from both ends, geometric means are nearly arithmetic means, so the sites are nearly the means of the knots
    means_from_start, means_to_end = np.cbrt(triples.prod(axis=0)), np.cbrt((times[-1] - triples).prod(axis=0))
    sites = means_from_start - means_to_end + (times[-1] - triples.mean(axis=0))
    coefficients = position_at(np.clip(sites, 0.0, times[-1]))
    coefficients[:3], coefficients[-3:] = position_at(times[:1]), position_at(times[-1:])
    spline = interpolate.BSpline(knots, coefficients, 3)
    return CubicProfile(times, np.stack([spline(times[:-1], order) for order in range(4)], axis=1))


SERIES_LIMIT = 1e-2
"""Smaller arguments are evaluated by power series, because the closed forms lose precision there."""


@dataclass(frozen=True, slots=True, eq=False)
class ReparameterizedProfile:
    """A time profile that evaluates a base profile at a time u, which passes at a variable rate du/dt.

    The squared rate y(u) = (du/dt)^2, before time is stretched, is piecewise quadratic in u.

    Attributes:
        base: the base profile.
        u: (K + 1,) bounds of the quadratic pieces, s; they contain all discontinuities of the base profile's jerk.
        squared_rate: (K, 3) y, above 0, and its first two derivatives by u at the start of each piece.
        t: (K + 1,) time at which each u is reached, in seconds before time is stretched.
        stretch: factor by which time is stretched.
    """

    base: CubicProfile
    u: Array
    squared_rate: Array
    t: Array
    stretch: float = 1.0

    @property
    def duration(self) -> float:
        """Duration, s."""
        return self.stretch * float(self.t[-1])

    @property
    def breaks(self) -> Array:
        """Times at which the jerk may be discontinuous, s."""
        return self.stretch * self.t

    def at(self, t: Array) -> Array:
        """s and its first three derivatives by time (4, M) at times t (M,); outside of the duration s is constant."""
        all_times = np.asarray(t, dtype=np.float64) / self.stretch
        unstretched_times = np.clip(all_times, 0.0, self.t[-1])
        k = np.clip(np.searchsorted(self.t, unstretched_times, side="right") - 1, 0, len(self.squared_rate) - 1)
        squared_rate = self.squared_rate[k]
        x, rate = _elapsed_u_and_rate(squared_rate, unstretched_times - self.t[k])
        dy, ddy = squared_rate[:, 1] + squared_rate[:, 2] * x, squared_rate[:, 2]
        # limited to just below the next bound, because rounding may move u into the next piece
        u = np.minimum(self.u[k] + np.maximum(x, 0.0), np.nextafter(self.u[k + 1], 0.0))
        s, s_u, s_uu, s_uuu = self.base.at(u)
        y = rate**2
        derivatives = np.stack([
            s,
            s_u * rate / self.stretch,
            (s_uu * y + 0.5 * s_u * dy) / self.stretch**2,
            (s_uuu * y + 1.5 * s_uu * dy + 0.5 * s_u * ddy) * rate / self.stretch**3,
        ])  # fmt: skip
        derivatives[1:, all_times != unstretched_times] = 0.0
        return derivatives


def reparameterize(base: CubicProfile, u: Array, squared_rate: Array) -> ReparameterizedProfile:
    """Build a reparameterized profile from the squared rate (K, 3) of its pieces, and compute the times of its pieces.

    The rate v = du/dt satisfies d^2 v/dt^2 = w^2 v, with w^2 = y'' / 2, where y'' is the second derivative of y by u.
    The duration t of a piece of width h follows from the rates v0 and v1 at its ends: tanh(w t / 2) = w h / (v0 + v1).
    In the code, z = (w h / (v0 + v1))^2, which is negative where y'' is negative; tanh is then replaced by tan.

    Args:
        u: (K + 1,) bounds of the pieces, s.
    """
    widths, (y, dy, ddy) = np.diff(u), squared_rate.T
    rate_sums = np.sqrt(y) + np.sqrt(np.maximum(y + widths * (dy + 0.5 * widths * ddy), 0.0))
    z = np.minimum(0.5 * ddy * (widths / rate_sums) ** 2, 1.0 - 1e-12)
    is_small = np.abs(z) < SERIES_LIMIT
    root = np.sqrt(np.abs(np.where(is_small, 0.25, z)))
    ratio = np.where(z > 0.0, np.arctanh(np.minimum(root, 1.0 - 1e-13)), np.arctan(root)) / root
    ratio = np.where(is_small, 1.0 + z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z / 11)))), ratio)
    return ReparameterizedProfile(base, u, squared_rate, np.append(0.0, np.cumsum(2.0 * widths / rate_sums * ratio)))


def _elapsed_u_and_rate(squared_rate: Array, t: Array) -> tuple[Array, Array]:
    """Increase of u (M,) and rate du/dt (M,) at time t (M,) after the start of pieces with squared rate (M, 3).

    Both are sums of hyperbolic functions of w t where y'' is positive, and of trigonometric functions where y'' is
    negative; `reparameterize` defines w. In the code, z = y'' t^2 / 2.
    """
    y, dy, ddy = squared_rate.T
    z = 0.5 * ddy * t**2
    is_small, is_positive = np.abs(z) < SERIES_LIMIT, z > 0.0
    root = np.sqrt(np.abs(np.where(is_small, 1.0, z)))
    positive_root = np.where(is_positive, root, 0.0)
    cosine = np.where(is_positive, np.cosh(positive_root), np.cos(root))
    sine_ratio = np.where(is_positive, np.sinh(positive_root), np.sin(root)) / root
    cosine_ratio = np.where(is_positive, 1.0, -1.0) * (cosine - 1.0) / root**2
    sine_ratio = np.where(is_small, 1.0 + z / 6.0 * (1.0 + z / 20.0 * (1.0 + z / 42.0 * (1.0 + z / 72.0))), sine_ratio)
    cosine_ratio = np.where(
        is_small, 0.5 * (1.0 + z / 12.0 * (1.0 + z / 30.0 * (1.0 + z / 56.0 * (1.0 + z / 90.0)))), cosine_ratio
    )
    cosine = np.where(is_small, 1.0 + z * cosine_ratio, cosine)
    rate = np.sqrt(y)
    return t * (rate * sine_ratio + 0.5 * dy * t * cosine_ratio), rate * cosine + 0.5 * dy * t * sine_ratio


EDGE_OFFSET_RATIO = 1e-6
"""Distance of the first and the last sample from the ends of an interval, as a ratio to the interval."""
SAMPLES_PER_INTERVAL, DENSE_SAMPLES, DENSE_INTERVALS = 12, 120, 40
"""Numbers of samples of an interval: in all intervals, and in the DENSE_INTERVALS intervals with the largest estimates
of the slowdown factor."""
SAME_BREAK_RATIO = 1e-4
"""Smallest time from a waypoint to a break of the profile, as a ratio to the time between the two breaks around it; a
nearer waypoint is not a breakpoint of its own."""

DerivativeLimits = tuple[Array, Array, Array | None]
"""Limits on velocity, acceleration and jerk, (nv,) each; None if the jerk is not limited."""


def breakpoints(curve: JointSpline, profile: TimeProfile) -> Array:
    """Times (K + 1,) at which a derivative may be discontinuous: breaks of the profile, and inner waypoints."""
    waypoints, t = curve.s[1:-1], profile.breaks
    times = np.interp(waypoints, profile.at(t)[0], t)
    min_speed = 1e-9 * curve.length / profile.duration
    for _ in range(4):
        s, speed, _, _ = profile.at(times)
        times = np.clip(times + (waypoints - s) / np.maximum(speed, min_speed), 0.0, t[-1])
    next_break = np.clip(np.searchsorted(t, times), 1, len(t) - 1)
    min_interval = SAME_BREAK_RATIO * (t[next_break] - t[next_break - 1])
    is_separate = (times - t[next_break - 1] > min_interval) & (t[next_break] - times > min_interval)
    return np.unique(np.concatenate([t, times[is_separate]]))


def joint_derivatives(curve: JointSpline, profile: TimeProfile, t: Array) -> tuple[Array, Array, Array, Array]:
    """Configurations q (M, nq) at times t (M,), and velocity, acceleration and jerk of all dofs, (M, nv) each."""
    s, speed, acceleration, jerk = profile.at(t)
    q, q_s, q_ss, q_sss = curve.at(s)
    s_dot, s_ddot, s_dddot = speed[:, None], acceleration[:, None], jerk[:, None]
    return (
        q,
        q_s * s_dot,
        q_ss * s_dot**2 + q_s * s_ddot,
        q_sss * s_dot**3 + 3 * q_ss * s_dot * s_ddot + q_s * s_dddot,
    )


def slowdown_factors(curve: JointSpline, profile: TimeProfile, times: Array, limits: DerivativeLimits) -> Array:
    """Factor (K,) by which each interval between times (K + 1,) must be slowed down to keep the limits at its samples.

    A factor below 1 means that the motion could be faster.
    """
    samples = _sampled_factors(curve, profile, times[:-1], times[1:], limits, SAMPLES_PER_INTERVAL)
    # a parabola exceeds its samples by at most an eighth of the second difference
    excess = np.maximum(2.0 * samples[:, 1:-1] - samples[:, :-2] - samples[:, 2:], 0.0) / 8.0
    estimates = samples.copy()
    estimates[:, :-2] = np.maximum(estimates[:, :-2], samples[:, :-2] + excess)
    estimates[:, 1:-1] = np.maximum(estimates[:, 1:-1], samples[:, 1:-1] + excess)
    estimates[:, 2:] = np.maximum(estimates[:, 2:], samples[:, 2:] + excess)
    factors, worst_intervals = samples.max(axis=1), np.argsort(estimates.max(axis=1))[-DENSE_INTERVALS:]
    dense_samples = _sampled_factors(
        curve, profile, times[worst_intervals], times[worst_intervals + 1], limits, DENSE_SAMPLES
    )
    factors[worst_intervals] = np.maximum(factors[worst_intervals], dense_samples.max(axis=1))
    return factors


def _sampled_factors(
    curve: JointSpline, profile: TimeProfile, start_times: Array, end_times: Array, limits: DerivativeLimits, count: int
) -> Array:
    """Factor (K, count) by which the motion must be slowed down at samples between start and end times (K,)."""
    t = start_times[:, None] + (end_times - start_times)[:, None] * np.linspace(
        EDGE_OFFSET_RATIO, 1.0 - EDGE_OFFSET_RATIO, count
    )
    _, *rates = joint_derivatives(curve, profile, t.ravel())
    factors = np.zeros(t.size)
    for power, (rate, limit) in enumerate(zip(rates, limits, strict=True), start=1):
        if limit is not None:
            factors = np.maximum(factors, (np.abs(rate) / limit).max(axis=1) ** (1.0 / power))
    return factors.reshape(t.shape)
