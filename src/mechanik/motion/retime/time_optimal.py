"""Time-optimal profiles: within velocity and acceleration limits by reachability, on a straight segment by ruckig.

Let x = (ds/dt)^2 and u = d2s/dt2. Then the velocity and acceleration of a dof are q' x^1/2 and q' u + q'' x, so all
limits are linear in (u, x), and x + 2 u ds is the x at the next grid point. A backward pass computes the largest x at
each grid point from which the end is reached at rest (the controllable set); a forward pass takes the largest u that
stays inside. Rest is feasible everywhere because limits are symmetric, so the sets start at x = 0.

Limits are kept on a grid. Where they are exceeded between two grid points, points are inserted; the rest is
compensated by a small stretch of the time.

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
"""Second derivative times length below which a curve is straight."""
ROUNDING_STRETCH = 1e-12
"""Relative stretch of time, so that rounding does not exceed a limit."""
NEGLIGIBLE = 1e-12
"""Ratio to the largest coefficient of u, below which a limit does not depend on u."""


@np.errstate(divide="ignore", invalid="ignore")
def time_optimal_profile(curve: JointSpline, velocity: Array, acceleration: Array, s: Array) -> CubicProfile:
    """Time-optimal profile from rest to rest, with limits (nv,) kept at the grid points s (M,) and nearly between them.

    Limits may be infinite.
    """
    _, first, second, _ = curve.at(s)
    ds = np.diff(s)
    moves = first.any(axis=0)
    first, second = first[:, moves], second[:, moves]
    x_max = ((velocity[moves] / np.abs(first)) ** 2).min(axis=1)
    # acceleration / limit = u_ratio u + x_ratio x within [-1, 1], at both ends of each interval
    u_ratio = np.stack([first[:-1], first[1:] + 2.0 * second[1:] * ds[:, None]], axis=1) / acceleration[moves]
    x_ratio = np.stack([second[:-1], second[1:]], axis=1) / acceleration[moves]
    u_ratio, x_ratio = u_ratio.reshape(len(ds), -1), x_ratio.reshape(len(ds), -1)
    bounds_u = np.abs(u_ratio) > NEGLIGIBLE * np.abs(u_ratio).max()
    x_max[:-1] = np.minimum(x_max[:-1], np.where(bounds_u, np.inf, 1.0 / np.abs(x_ratio)).min(axis=1))
    u_ratio = np.where(bounds_u, u_ratio, 1.0)
    # slope x - reach <= u <= slope x + reach, and u >= -half_rate x, since the next x is not below 0
    slope, reach = -x_ratio / u_ratio, np.where(bounds_u, 1.0 / np.abs(u_ratio), np.inf)
    half_rate = 0.5 / ds
    x_max[:-1] = np.minimum(x_max[:-1], _first_crossing(slope, reach, -half_rate[:, None], np.zeros((len(ds), 1))))
    for column in range(slope.shape[1]):
        lower_slope, lower = slope[:, column, None], -reach[:, column, None]
        x_max[:-1] = np.minimum(x_max[:-1], _first_crossing(slope, reach, lower_slope, lower))

    controllable = np.zeros(len(s))
    for k in range(len(ds) - 1, -1, -1):
        x_reaching = _first_crossing(-half_rate[k], half_rate[k] * controllable[k + 1], slope[k], -reach[k])
        controllable[k] = min(x_max[k], x_reaching)
    x = np.zeros(len(s))
    for k in range(len(ds)):
        u = min(float((slope[k] * x[k] + reach[k]).min()), half_rate[k] * (controllable[k + 1] - x[k]))
        x[k + 1] = min(max(x[k] + 2.0 * ds[k] * u, 0.0), controllable[k + 1])
    return profile_from_speeds(s, np.sqrt(x))


def _first_crossing(upper_slope: Array, upper: Array, lower_slope: Array, lower: Array) -> Array:
    """Least x, by the last axis, beyond which a lower bound of u exceeds an upper bound.

    The upper bounds are `upper_slope` x + `upper`, the lower ones `lower_slope` x + `lower`; they admit u at x = 0.
    """
    closing = lower_slope - upper_slope
    return np.where(closing > 0.0, (upper - lower) / closing, np.inf).min(axis=-1)


def straight_line_profile(curve: JointSpline, velocity: Array, acceleration: Array, jerk: Array) -> CubicProfile:
    """Time-optimal profile on a straight segment within limits (nv,), up to rounding; the jerk limit may be infinite.

    Raises:
        MissingExtra: ruckig is not installed.
        PlanningError: ruckig finds no solution.
    """
    try:
        ruckig: Any = import_module("ruckig")
    except ImportError:
        raise MissingExtra("time-optimal motion along a straight segment", "plan") from None
    _, direction, _, _ = curve.at(np.zeros(1))
    moves = direction[0] != 0.0
    limits = [float((limit[moves] / np.abs(direction[0][moves])).min()) for limit in (velocity, acceleration, jerk)]
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
    """Whether the curve is a single straight segment."""
    return bool(np.abs(curve.at(curve.s)[2]).max() * curve.length < STRAIGHT_TOLERANCE and len(curve.s) == 2)


def grid_along(curve: JointSpline, grid: int) -> Array:
    """Grid of about `grid` values of s, with all waypoints and at least 2 intervals between each two of them."""
    widths = np.diff(curve.s)
    counts = np.maximum(np.ceil(grid * widths / curve.length), 2).astype(np.int64)
    pieces: list[Array] = []
    for k, count in enumerate(counts.tolist()):
        pieces.append(np.linspace(float(curve.s[k]), float(curve.s[k + 1]), count, endpoint=False))
    return np.concatenate([*pieces, curve.s[-1:]])


def profile_from_speeds(s: Array, speed: Array) -> CubicProfile:
    """Profile with the given speed ds/dt (M,) at s (M,); the acceleration is constant between two grid points."""
    widths, speed_sums = np.diff(s), speed[:-1] + speed[1:]
    durations = 2.0 * widths / np.maximum(speed_sums, 1e-12)
    accelerations = (speed[1:] ** 2 - speed[:-1] ** 2) / (2.0 * widths)
    return CubicProfile(
        np.append(0.0, np.cumsum(durations)),
        np.stack([s[:-1], speed[:-1], accelerations, np.zeros(len(accelerations))], 1),
    )


GRID = 1000
"""Initial number of grid points."""
MAX_GRID_POINTS = 6000
"""Largest number of grid points."""
MAX_ROUNDS = 6
"""Largest number of rounds in which grid points are inserted."""
LIMIT_MARGIN = 1e-4
"""Relative margin to limits, for the motion between the times at which they are checked."""


def acceleration_limited_profile(curve: JointSpline, velocity: Array, acceleration: Array) -> CubicProfile:
    """Time-optimal profile within velocity and acceleration limits (nv,), which also hold between grid points."""
    s = grid_along(curve, GRID)  # contains the waypoints of the curve
    limits = velocity, acceleration, None
    profile = time_optimal_profile(curve, velocity, acceleration, s)
    for _ in range(MAX_ROUNDS):
        exceeded = np.flatnonzero(slowdown_factors(curve, profile, profile.breaks, limits) > 1.0 + LIMIT_MARGIN)
        if not len(exceeded) or len(s) + len(exceeded) > MAX_GRID_POINTS:
            break
        s = np.insert(s, exceeded + 1, 0.5 * (s[exceeded] + s[exceeded + 1]))
        profile = time_optimal_profile(curve, velocity, acceleration, s)
    factor = float(slowdown_factors(curve, profile, profile.breaks, limits).max())
    return replace(profile, stretch=factor * (1.0 + LIMIT_MARGIN))
