"""Time-optimal profiles: within velocity and acceleration limits by reachability, on a straight segment by ruckig.

Let x = (ds/dt)^2 and u = d2s/dt2. Then the velocity and acceleration of a dof are q' x^1/2 and q' u + q'' x, so all
limits are linear in (u, x), and x + 2 u ds is the x at the next grid point. A backward pass computes the largest x at
each grid point from which the end can be reached at rest (the controllable set). A forward pass uses the largest u that
stays inside these sets. Rest is feasible everywhere because limits are symmetric, so the sets start at x = 0.

Limits are kept at grid points. Where they are exceeded between two grid points, points are inserted. A small stretch of
the time compensates the remaining excess.

H. Pham and Q.-C. Pham, "A new approach to time-optimal path parameterization based on reachability analysis", IEEE
Transactions on Robotics 34(3), 2018. L. Berscheid and T. Kröger, "Jerk-limited real-time trajectory generation with
arbitrary target states", RSS 2021.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from mechanik.errors import MissingExtra, PlanningError
from mechanik.motion.retime.joint_spline import JointSpline
from mechanik.motion.retime.time_profile import CubicProfile, slowdown_factors
from mechanik.spatial.array import Array

STRAIGHT_TOLERANCE = 1e-9
"""Product of the largest second derivative and the length of a curve (without unit) below which it is straight."""
ROUNDING_STRETCH = 1e-12
"""Relative stretch of time that prevents rounding errors from exceeding a limit."""
NEGLIGIBLE_RATIO = 1e-12
"""A limit is independent of u if its coefficient of u is at most this ratio of the largest coefficient."""


@np.errstate(divide="ignore", invalid="ignore")
def time_optimal_profile(curve: JointSpline, velocity: Array, acceleration: Array, s: Array) -> CubicProfile:
    """Time-optimal profile from rest to rest within velocity and acceleration limits (nv,), which may be infinite.

    The limits are kept at the grid points s (M,); between them they may be exceeded slightly.
    """
    _, q_s, q_ss, _ = curve.at(s)
    ds = np.diff(s)
    is_moving = q_s.any(axis=0)
    q_s, q_ss = q_s[:, is_moving], q_ss[:, is_moving]
    x_max = ((velocity[is_moving] / np.abs(q_s)) ** 2).min(axis=1)
    # at both ends of each interval, acceleration / limit = u_ratio u + x_ratio x must be within [-1, 1]
    u_ratio = np.stack([q_s[:-1], q_s[1:] + 2.0 * q_ss[1:] * ds[:, None]], axis=1) / acceleration[is_moving]
    x_ratio = np.stack([q_ss[:-1], q_ss[1:]], axis=1) / acceleration[is_moving]
    u_ratio, x_ratio = u_ratio.reshape(len(ds), -1), x_ratio.reshape(len(ds), -1)
    is_u_limited = np.abs(u_ratio) > NEGLIGIBLE_RATIO * np.abs(u_ratio).max()
    x_max[:-1] = np.minimum(x_max[:-1], np.where(is_u_limited, np.inf, 1.0 / np.abs(x_ratio)).min(axis=1))
    u_ratio = np.where(is_u_limited, u_ratio, 1.0)
    # slope x - half_width <= u <= slope x + half_width, and u >= -u_per_x x, because the next x must not be below 0
    slope, half_width = -x_ratio / u_ratio, np.where(is_u_limited, 1.0 / np.abs(u_ratio), np.inf)
    u_per_x = 0.5 / ds  # the u that increases x by 1 up to the next grid point
    x_max[:-1] = np.minimum(x_max[:-1], _first_crossing(slope, half_width, -u_per_x[:, None], np.zeros((len(ds), 1))))
    for column in range(slope.shape[1]):
        lower_slope, lower_offset = slope[:, column, None], -half_width[:, column, None]
        x_max[:-1] = np.minimum(x_max[:-1], _first_crossing(slope, half_width, lower_slope, lower_offset))

    max_controllable_x = np.zeros(len(s))
    for k in range(len(ds) - 1, -1, -1):
        max_x_to_next = _first_crossing(-u_per_x[k], u_per_x[k] * max_controllable_x[k + 1], slope[k], -half_width[k])
        max_controllable_x[k] = min(x_max[k], max_x_to_next)
    x = np.zeros(len(s))
    for k in range(len(ds)):
        u = min(float((slope[k] * x[k] + half_width[k]).min()), u_per_x[k] * (max_controllable_x[k + 1] - x[k]))
        x[k + 1] = min(max(x[k] + 2.0 * ds[k] * u, 0.0), max_controllable_x[k + 1])
    return profile_from_speeds(s, np.sqrt(x))


def _first_crossing(upper_slope: Array, upper_offset: Array, lower_slope: Array, lower_offset: Array) -> Array:
    """Smallest x, over the last axis, beyond which a lower bound of u exceeds an upper bound.

    The upper bounds are `upper_slope` x + `upper_offset`, the lower bounds `lower_slope` x + `lower_offset`. At x = 0
    no lower bound exceeds an upper bound.
    """
    slope_difference = lower_slope - upper_slope
    return np.where(slope_difference > 0.0, (upper_offset - lower_offset) / slope_difference, np.inf).min(axis=-1)


def straight_line_profile(curve: JointSpline, velocity: Array, acceleration: Array, jerk: Array) -> CubicProfile:
    """Time-optimal profile on a straight segment within limits (nv,), by ruckig; the jerk limit may be infinite.

    Raises:
        MissingExtra: ruckig is not installed.
        PlanningError: ruckig finds no solution.
    """
    try:
        ruckig: Any = import_module("ruckig")
    except ImportError:
        raise MissingExtra("time-optimal motion along a straight segment", "plan") from None
    _, direction, _, _ = curve.at(np.zeros(1))
    is_moving = direction[0] != 0.0
    limits = [
        float((limit[is_moving] / np.abs(direction[0][is_moving])).min()) for limit in (velocity, acceleration, jerk)
    ]
    request: Any = ruckig.InputParameter(1)
    request.current_position, request.target_position = [0.0], [curve.length]
    request.max_velocity, request.max_acceleration, request.max_jerk = ([limit] for limit in limits)
    trajectory: Any = ruckig.Trajectory(1)
    result = ruckig.Ruckig(1).calculate(request, trajectory)
    if result not in (ruckig.Result.Working, ruckig.Result.Finished):
        raise PlanningError(f"ruckig found no time profile within these limits: {result}")
    phases = trajectory.profiles[0][0]
    t = np.append(0.0, np.cumsum(phases.t))
    state = np.stack([phases.p[:7], phases.v[:7], phases.a[:7], phases.j], axis=1)
    has_duration = np.diff(t) > 0.0
    return CubicProfile(np.append(t[:-1][has_duration], t[-1]), state[has_duration], stretch=1.0 + ROUNDING_STRETCH)


def is_straight(curve: JointSpline) -> bool:
    """Whether the curve is a single straight segment between two waypoints."""
    return bool(np.abs(curve.at(curve.s)[2]).max() * curve.length < STRAIGHT_TOLERANCE and len(curve.s) == 2)


def grid_along(curve: JointSpline, point_count: int) -> Array:
    """Grid of about `point_count` values of s that contains all waypoints, with 2 or more intervals per segment."""
    interval_lengths = np.diff(curve.s)
    interval_counts = np.maximum(np.ceil(point_count * interval_lengths / curve.length), 2).astype(np.int64)
    pieces: list[Array] = []
    for k, count in enumerate(interval_counts.tolist()):
        pieces.append(np.linspace(float(curve.s[k]), float(curve.s[k + 1]), count, endpoint=False))
    return np.concatenate([*pieces, curve.s[-1:]])


def profile_from_speeds(s: Array, speed: Array) -> CubicProfile:
    """Profile with speeds ds/dt (M,) at s (M,); the acceleration is constant between two grid points."""
    interval_lengths, speed_sums = np.diff(s), speed[:-1] + speed[1:]
    durations = 2.0 * interval_lengths / np.maximum(speed_sums, 1e-12)
    accelerations = (speed[1:] ** 2 - speed[:-1] ** 2) / (2.0 * interval_lengths)
    return CubicProfile(
        np.append(0.0, np.cumsum(durations)),
        np.stack([s[:-1], speed[:-1], accelerations, np.zeros(len(accelerations))], 1),
    )


FIRST_GRID_POINTS = 1000
"""Approximate initial number of grid points."""
MAX_GRID_POINTS = 6000
"""Largest number of grid points after an insertion; the initial grid of a path with many waypoints may be larger."""
MAX_ROUNDS = 6
"""Largest number of rounds in which grid points are inserted."""
LIMIT_MARGIN = 1e-4
"""Relative stretch of time in addition to the measured slowdown factor, because limits may be exceeded between the
times at which they are checked. Grid points are inserted where a factor exceeds 1 by more than this."""


def acceleration_limited_profile(curve: JointSpline, velocity: Array, acceleration: Array) -> CubicProfile:
    """Time-optimal profile from rest to rest within velocity and acceleration limits (nv,).

    A stretch of the time ensures that the limits are also kept between grid points.
    """
    s = grid_along(curve, FIRST_GRID_POINTS)
    limits = velocity, acceleration, None
    profile = time_optimal_profile(curve, velocity, acceleration, s)
    for _ in range(MAX_ROUNDS):
        exceeding_intervals = np.flatnonzero(
            slowdown_factors(curve, profile, profile.breaks, limits) > 1.0 + LIMIT_MARGIN
        )
        if not len(exceeding_intervals) or len(s) + len(exceeding_intervals) > MAX_GRID_POINTS:
            break
        s = np.insert(s, exceeding_intervals + 1, 0.5 * (s[exceeding_intervals] + s[exceeding_intervals + 1]))
        profile = time_optimal_profile(curve, velocity, acceleration, s)
    factor = float(slowdown_factors(curve, profile, profile.breaks, limits).max())
    return replace(profile, stretch=factor * (1.0 + LIMIT_MARGIN))
