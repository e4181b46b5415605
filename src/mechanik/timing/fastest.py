"""The fastest way along a curve: within velocities and accelerations by toppra, on a straight line by ruckig.

H. Pham and Q.-C. Pham, "A new approach to time-optimal path parameterization based on reachability analysis", IEEE
Transactions on Robotics 34(3), 2018. L. Berscheid and T. Kröger, "Jerk-limited real-time trajectory generation with
arbitrary target states", RSS 2021.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np

from mechanik.errors import MissingExtra, PlanningError
from mechanik.spatial.array import Array
from mechanik.timing.curve import Curve
from mechanik.timing.profile import Profile

STRAIGHT = 1e-9
"""Of second derivatives times the length of a curve: below this it is a straight line."""
ROUNDING = 1e-12
"""As a share: no limit is to be broken by what a computer rounds."""
UNLIMITED = 1e9
"""For freedoms that do not move; rad or m by s, and s squared."""


def fastest(curve: Curve, velocity: Array, acceleration: Array, s: Array) -> Profile:
    """From standing to standing, within limits (nv,) at places s (M,) of the curve; between them, nearly."""
    algorithm, constraint, interpolator = _toppra()

    class Way(interpolator.AbstractGeometricPath):
        """A curve as toppra takes it; what it calls derivatives are the velocities of freedoms, also of balls."""

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
    return at_speeds(s, np.maximum(np.asarray(speed, dtype=np.float64), 0.0))


def along_a_line(curve: Curve, velocity: Array, acceleration: Array, jerk: Array) -> Profile:
    """The fastest way along a straight line within limits (nv,), but for rounding; the jerk may be infinite."""
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
    return Profile(np.append(t[:-1][lasts], t[-1]), state[lasts], slow=1.0 + ROUNDING)


def has_toppra() -> bool:
    """It has no wheels for some systems."""
    try:
        _toppra()
    except ImportError:
        return False
    return True


def _toppra() -> tuple[Any, Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it draws, too, and what it draws with may warn
        algorithm, constraint, interpolator = (
            import_module(f"toppra.{name}") for name in ("algorithm", "constraint", "interpolator")
        )
    return algorithm, constraint, interpolator


def is_straight(curve: Curve) -> bool:
    return bool(np.abs(curve.at(curve.s)[2]).max() * curve.length < STRAIGHT and len(curve.s) == 2)


def places_along(curve: Curve, grid: int) -> Array:
    """About as many places as asked, and two at least between any two knots, all knots among them."""
    spans = np.diff(curve.s)
    parts = np.maximum(np.ceil(grid * spans / curve.length), 2).astype(np.int64)
    pieces: list[Array] = []
    for k, count in enumerate(parts.tolist()):
        pieces.append(np.linspace(float(curve.s[k]), float(curve.s[k + 1]), count, endpoint=False))
    return np.concatenate([*pieces, curve.s[-1:]])


def at_speeds(s: Array, speed: Array) -> Profile:
    """With so much speed at places s, (M,) each; between two places the acceleration along the curve stays."""
    spans, pace = np.diff(s), speed[:-1] + speed[1:]
    lasts = 2.0 * spans / np.maximum(pace, 1e-12)
    gains = (speed[1:] ** 2 - speed[:-1] ** 2) / (2.0 * spans)
    return Profile(np.append(0.0, np.cumsum(lasts)), np.stack([s[:-1], speed[:-1], gains, np.zeros(len(gains))], 1))
