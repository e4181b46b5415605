"""Compute a fast trajectory along a path within rate limits: the function `retime` and its result `Trajectory`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from mechanik.errors import InvalidArgument, NotFinite, ShapeError
from mechanik.model import Mechanism
from mechanik.motion.follow import Path
from mechanik.motion.rate_limits import RateLimits, require_rate_limits
from mechanik.motion.retime.jerk_limited import jerk_limited_profile
from mechanik.motion.retime.joint_spline import JointSpline, fit_joint_spline
from mechanik.motion.retime.time_optimal import (
    acceleration_limited_profile,
    is_straight,
    straight_line_profile,
)
from mechanik.motion.retime.time_profile import TimeProfile, joint_derivatives
from mechanik.solver import Solver
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number, read_only
from mechanik.value_object import ValueObject

MAX_SAMPLES = 10_000_000
"""Largest number of samples that `resample` returns."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trajectory(ValueObject):
    """A path with times, velocities and accelerations; the result of `mk.retime`.

    All arrays are read-only.

    Attributes:
        mechanism: the mechanism; it is not moved.
        times: (N,) times of the samples, starting at 0, s.
        q: (N, nq) configurations, with loops closed by projection of the curve.
        v: (N, nv) velocities of the dofs along the curve, rad/s or m/s.
        a: (N, nv) accelerations of the dofs along the curve, rad/s^2 or m/s^2.
        curve: the geometric curve, q as a function of s.
        profile: the time profile, s as a function of time.

    Example:
        >>> path = mk.Path(mk.arm_2d([0.5, 0.4]), [[0.0, 0.0], [1.0, 0.5]])
        >>> trajectory = mk.retime(path, velocity=1.0, acceleration=2.0)
        >>> round(trajectory.duration, 3), trajectory.at(0.75).round(3).tolist()
        (1.5, [0.5, 0.25])
    """

    mechanism: Mechanism
    times: Array
    q: Array
    v: Array
    a: Array
    curve: JointSpline
    profile: TimeProfile
    _solver_cache: dict[str, Solver] = field(default_factory=dict[str, Solver])

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        name = self.mechanism.name or "a mechanism"
        return f"<trajectory of {name}: {self.duration:.4g} s in {len(self)} samples>"

    def _compared_fields(self) -> dict[str, object]:
        return {"q_names": self.mechanism.space.q_names, **{k: getattr(self, k) for k in ("times", "q", "v", "a")}}

    @property
    def duration(self) -> float:
        """Duration, s."""
        return self.profile.duration

    @property
    def deviation(self) -> float:
        """Largest deviation of a coordinate of the curve from the straight segments of its path, see `JointSpline`."""
        return self.curve.deviation

    def at(self, t: ArrayLike) -> Array:
        """Configurations (..., nq) at times t (...), s; constant before the start and after the end.

        Raises:
            NotFinite: a time is not finite.
            NotSolved: loops cannot be closed.
        """
        return self.state(t)[0]

    def state(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Configuration q (..., nq), velocity v and acceleration a (..., nv) at times t (...), s.

        v and a are 0 before the start and after the end.

        Raises:
            NotFinite: a time is not finite.
            NotSolved: loops cannot be closed.
        """
        times = _as_times(t)
        flat_times = times.reshape(-1)
        q, v, a, _ = joint_derivatives(self.curve, self.profile, np.clip(flat_times, 0.0, self.duration))
        is_outside = (flat_times < 0.0) | (flat_times > self.duration)
        v[is_outside], a[is_outside] = 0.0, 0.0
        q = self._close_loops(q)
        return tuple(array.reshape(*times.shape, array.shape[1]) for array in (q, v, a))  # type: ignore[return-value]

    def jerk(self, t: ArrayLike) -> Array:
        """Jerk (..., nv) at times t (...), rad or m per s^3; 0 before the start and after the end.

        At a discontinuity inside the trajectory, this is the value after it.
        """
        times = _as_times(t)
        jerks = joint_derivatives(self.curve, self.profile, times.reshape(-1))[3]
        return jerks.reshape(*times.shape, jerks.shape[1])

    def resample(self, dt: float) -> Trajectory:
        """The same trajectory with samples every `dt` seconds and at its end.

        Args:
            dt: s, above 0.

        Raises:
            ShapeError: `dt` is not above 0, or there would be too many samples.
        """
        step = as_number(dt, "dt")
        if not step > 0.0:
            raise ShapeError(f"dt must be above 0 seconds, not {step:g}")
        if self.duration / step > MAX_SAMPLES:
            raise ShapeError(
                f"dt = {step:g} s gives {self.duration / step:.3g} samples of {self.duration:.4g} s, but at most "
                f"{MAX_SAMPLES:,} are allowed; use a larger dt, or `at` and `state` for single times"
            )
        count = math.ceil(self.duration / step - 1e-9)
        return sample_trajectory(
            self.mechanism, self.curve, self.profile, np.append(step * np.arange(count), self.duration)
        )

    def to_path(self) -> Path:
        """The samples as a path; its s is the time in seconds."""
        return Path(self.mechanism, self.q, self.times)

    def _close_loops(self, q: Array) -> Array:
        """Project q (N, nq) onto loops and joint constraints."""
        if not (self.mechanism.closures or self.mechanism.joint_constraints):
            return q
        if "loops" not in self._solver_cache:
            self._solver_cache["loops"] = Solver(self.mechanism)
        return np.array([self._solver_cache["loops"].solve(q0=q_start).require().q for q_start in q]).reshape(q.shape)


def _as_times(t: ArrayLike) -> Array:
    """Validate times and return them as an array."""
    try:
        times = np.asarray(t, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"times must be numbers, not {t!r}") from None
    if not np.isfinite(times).all():
        raise NotFinite(f"times must be finite, not {t!r}")
    return times


def sample_trajectory(mechanism: Mechanism, curve: JointSpline, profile: TimeProfile, times: Array) -> Trajectory:
    """Sample a curve with a time profile at the times (N,), s."""
    empty_array = np.zeros((0, 0))
    q, v, a = Trajectory(mechanism, times, empty_array, empty_array, empty_array, curve, profile).state(times)
    for array in (times, q, v, a):
        read_only(array)
    return Trajectory(mechanism, times, q, v, a, curve, profile)


DEVIATION = 5e-3
"""rad or m: default of the largest deviation from the straight segments; a smaller value makes corners slower."""
LONG_DURATION = 1000.0
"""s: by default, longer trajectories have as many samples as a trajectory of this duration."""


def retime(
    path: Path,
    velocity: RateLimits | None = None,
    acceleration: RateLimits | None = None,
    jerk: RateLimits | None = None,
    *,
    deviation: float = DEVIATION,
    samples: int | None = None,
) -> Trajectory:
    """Compute a nearly time-optimal trajectory along a path within rate limits, from rest to rest.

    The curve is a smooth spline through all waypoints; the `s` of the path is not used. With a jerk limit, the
    trajectory may take a few percent longer than the optimum.

    Args:
        path: from `mk.plan`, `mk.follow` or `mk.Path`; 2 or more distinct waypoints.
        velocity: rad/s or m/s: a number for all dofs, nv numbers, or numbers by joint or dof name. Joints without a
            value use the limit of the URDF or SDF file (`mechanism.extras["limits"]`). The value of a spherical joint
            is the limit of each of its axes. The limit of a mimic joint, divided by its ratio, also limits its leader.
        acceleration: rad/s^2 or m/s^2, in the same form; required unless the model file contains it.
        jerk: rad/s^3 or m/s^3, in the same form; None: unlimited.
        deviation: rad or m, largest deviation of the spline from the straight segments. A smaller deviation makes sharp
            corners slower.
        samples: number of samples, evenly spaced in time; by default about 100 per second, and at most about 100,000.

    Returns:
        The trajectory; it can be evaluated at any time.

    Raises:
        InvalidArgument: `path` is not a `Path`.
        LimitsError: a dof that moves has no limit, or a limit is not above 0.
        ShapeError: the path does not move, or `deviation` or `samples` is invalid.
        NotSolved: loops cannot be closed between two waypoints.
        MissingExtra: SciPy or ruckig is not installed (extra `plan`).
        PlanningError: ruckig finds no solution.

    Example:
        >>> path = mk.Path(mk.arm_2d([0.5, 0.4]), [[0.0, 0.0], [1.0, 0.5]])
        >>> trajectory = mk.retime(path, velocity=1.0, acceleration=2.0)
        >>> round(trajectory.duration, 3), round(float(np.abs(trajectory.v).max()), 3)
        (1.5, 1.0)
    """
    if not isinstance(path, Path):
        raise InvalidArgument(f"path must be a Path, as from mk.plan or mk.follow, not {path!r}")
    max_deviation = as_number(deviation, "deviation")
    if not max_deviation > 0.0:
        raise ShapeError(
            f"deviation must be above 0 (rad or m), not {max_deviation:g}; with 0 the motion would stop at each corner"
        )
    if samples is not None and (isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 2):
        raise ShapeError(f"samples must be an integer of 2 or more, not {samples!r}")
    curve = fit_joint_spline(path, max_deviation)
    max_dq_ds = np.abs(curve.at(curve.s)[1]).max(axis=0)
    max_dq_ds[max_dq_ds < 1e-12 * max_dq_ds.max()] = 0.0
    max_velocity = require_rate_limits(path.mechanism, velocity, "velocity", max_dq_ds)
    max_acceleration = require_rate_limits(path.mechanism, acceleration, "acceleration", max_dq_ds)
    max_jerk = np.full(len(max_acceleration), np.inf)
    if jerk is not None:
        max_jerk = require_rate_limits(path.mechanism, jerk, "jerk", max_dq_ds)
    if is_straight(curve):
        profile = straight_line_profile(curve, max_velocity, max_acceleration, max_jerk)
    elif jerk is None:
        profile = acceleration_limited_profile(curve, max_velocity, max_acceleration)
    else:
        profile = jerk_limited_profile(curve, max_velocity, max_acceleration, max_jerk)
    count = max(2, round(100 * min(profile.duration, LONG_DURATION)) + 1) if samples is None else samples
    return sample_trajectory(path.mechanism, curve, profile, np.linspace(0.0, profile.duration, count))
