"""Time-optimal profiles: within velocity and acceleration limits by toppra, on a straight segment by ruckig.

toppra keeps the limits on a grid. Where they are exceeded between two grid points, points are inserted; the rest is
compensated by a small stretch of the time.

H. Pham and Q.-C. Pham, "A new approach to time-optimal path parameterization based on reachability analysis", IEEE
Transactions on Robotics 34(3), 2018. L. Berscheid and T. Kröger, "Jerk-limited real-time trajectory generation with
arbitrary target states", RSS 2021.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from mechanik.errors import MissingExtra, PlanningError
from mechanik.motion.retime.joint_spline import JointSpline
from mechanik.motion.retime.time_profile import CubicProfile, slowdown_factors
from mechanik.spatial.array import Array

STRAIGHT = 1e-9
"""Second derivative times length below which a curve is straight."""
ROUNDING = 1e-12
"""Relative stretch of time, so that rounding does not exceed a limit."""
UNLIMITED = 1e9
"""rad or m, per s or s^2: limit for dofs that do not move."""


def time_optimal_profile(curve: JointSpline, velocity: Array, acceleration: Array, s: Array) -> CubicProfile:
    """Time-optimal profile from rest to rest, with limits (nv,) kept at the grid points s (M,) and nearly between them.

    Raises:
        PlanningError: toppra finds no solution.
    """
    algorithm, constraint, interpolator = _toppra()

    class Way(interpolator.AbstractGeometricPath):
        """Adapter of the curve for toppra; derivatives are dof velocities, also for spherical joints."""

        dof = curve.mechanism.nv
        path_interval = np.array([0.0, curve.length])

        def __call__(self, path_positions: Any, order: int = 0) -> Array:
            s = np.atleast_1d(np.asarray(path_positions, dtype=np.float64))
            found = curve.at(s)[order]
            return found if np.ndim(path_positions) else found[0]

    finite_v, finite_a = (np.where(np.isfinite(one), one, UNLIMITED) for one in (velocity, acceleration))
    speeds = constraint.JointVelocityConstraint(np.stack([-finite_v, finite_v], axis=1))
    gains = constraint.JointAccelerationConstraint(
        np.stack([-finite_a, finite_a], axis=1), discretization_scheme=constraint.DiscretizationType.Interpolation
    )
    solver = algorithm.TOPPRA([speeds, gains], Way(), gridpoints=s, solver_wrapper="seidel")
    speed = solver.compute_parameterization(0, 0)[1]
    if speed is None or not np.isfinite(speed).all():
        raise PlanningError(
            "toppra found no way to go along the path within these limits: its knots may lie too unevenly. "
            "More knots, or a larger `deviation`, may help"
        )
    return profile_from_speeds(s, np.maximum(np.asarray(speed, dtype=np.float64), 0.0))


def straight_line_profile(curve: JointSpline, velocity: Array, acceleration: Array, jerk: Array) -> CubicProfile:
    """Time-optimal profile on a straight segment within limits (nv,), up to rounding; the jerk limit may be infinite.

    Raises:
        MissingExtra: ruckig is not installed.
        PlanningError: ruckig finds no solution.
    """
    try:
        ruckig: Any = import_module("ruckig")
    except ImportError:
        raise MissingExtra("the fastest way along a straight line", "plan") from None
    _, way, _, _ = curve.at(np.zeros(1))
    moves = way[0] != 0.0
    most = [float((one[moves] / np.abs(way[0][moves])).min()) for one in (velocity, acceleration, jerk)]
    asked: Any = ruckig.InputParameter(1)
    asked.current_position, asked.target_position = [0.0], [curve.length]
    asked.max_velocity, asked.max_acceleration, asked.max_jerk = ([one] for one in most)
    found: Any = ruckig.Trajectory(1)
    result = ruckig.Ruckig(1).calculate(asked, found)
    if result not in (ruckig.Result.Working, ruckig.Result.Finished):
        raise PlanningError(f"ruckig found no way along the path within these limits: {result}")
    one = found.profiles[0][0]
    t = np.append(0.0, np.cumsum(one.t))
    state = np.stack([one.p[:7], one.v[:7], one.a[:7], one.j], axis=1)
    lasts = np.diff(t) > 0.0
    return CubicProfile(np.append(t[:-1][lasts], t[-1]), state[lasts], stretch=1.0 + ROUNDING)


def has_toppra() -> bool:
    """Whether toppra is installed; it has no wheels for some systems."""
    try:
        _toppra()
    except ImportError:
        return False
    return True


def _toppra() -> tuple[Any, Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # toppra imports plotting libraries, which may warn
        algorithm, constraint, interpolator = (
            import_module(f"toppra.{name}") for name in ("algorithm", "constraint", "interpolator")
        )
    return algorithm, constraint, interpolator


def is_straight(curve: JointSpline) -> bool:
    """Whether the curve is a single straight segment."""
    return bool(np.abs(curve.at(curve.s)[2]).max() * curve.length < STRAIGHT and len(curve.s) == 2)


def grid_along(curve: JointSpline, grid: int) -> Array:
    """Grid of about `grid` values of s, with all waypoints and at least 2 intervals between each two of them."""
    spans = np.diff(curve.s)
    parts = np.maximum(np.ceil(grid * spans / curve.length), 2).astype(np.int64)
    pieces: list[Array] = []
    for k, count in enumerate(parts.tolist()):
        pieces.append(np.linspace(float(curve.s[k]), float(curve.s[k + 1]), count, endpoint=False))
    return np.concatenate([*pieces, curve.s[-1:]])


def profile_from_speeds(s: Array, speed: Array) -> CubicProfile:
    """Profile with the given speed ds/dt (M,) at s (M,); the acceleration is constant between two grid points."""
    spans, pace = np.diff(s), speed[:-1] + speed[1:]
    lasts = 2.0 * spans / np.maximum(pace, 1e-12)
    gains = (speed[1:] ** 2 - speed[:-1] ** 2) / (2.0 * spans)
    return CubicProfile(
        np.append(0.0, np.cumsum(lasts)), np.stack([s[:-1], speed[:-1], gains, np.zeros(len(gains))], 1)
    )


GRID = 1000
"""Initial number of grid points."""
MOST_PLACES = 6000
"""Largest number of grid points."""
ROUNDS = 6
"""Largest number of rounds in which grid points are inserted."""
LIMIT_MARGIN = 1e-4
"""Relative margin to limits, for the motion between the times at which they are checked."""


def acceleration_limited_profile(curve: JointSpline, velocity: Array, acceleration: Array) -> CubicProfile:
    """Time-optimal profile within velocity and acceleration limits (nv,), which also hold between grid points."""
    s = grid_along(curve, GRID)  # contains the waypoints of the curve
    limits = velocity, acceleration, None
    profile = time_optimal_profile(curve, velocity, acceleration, s)
    for _ in range(ROUNDS):
        split = np.flatnonzero(slowdown_factors(curve, profile, profile.breaks, limits) > 1.0 + LIMIT_MARGIN)
        if not len(split) or len(s) + len(split) > MOST_PLACES:
            break
        s = np.insert(s, split + 1, 0.5 * (s[split] + s[split + 1]))
        profile = time_optimal_profile(curve, velocity, acceleration, s)
    worst = float(slowdown_factors(curve, profile, profile.breaks, limits).max())
    return replace(profile, stretch=worst * (1.0 + LIMIT_MARGIN))
