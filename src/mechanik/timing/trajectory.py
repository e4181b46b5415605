"""A path with times: where everything is, how fast it goes, and how it speeds up."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from mechanik.errors import NotFinite, ShapeError
from mechanik.ik import Solver
from mechanik.mechanism import Mechanism
from mechanik.mechanism.door import as_number, read_only
from mechanik.paths import Path
from mechanik.spatial.array import Array, ArrayLike
from mechanik.timing.curve import Curve
from mechanik.timing.jumps import rates_at
from mechanik.timing.profile import Course

MOST_SAMPLES = 10_000_000


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trajectory:
    """Made by `mk.retime`.

    Attributes:
        mechanism: what moves; it is not moved.
        times: (N,) from 0, s; read-only, as all arrays here.
        q: (N, nq) configurations; loops are shut.
        v, a: (N, nv) velocities and accelerations of the freedoms, rad or m, by s and s squared.
        curve, profile: what it was made of: where the way is, and when it is gone.
    """

    mechanism: Mechanism
    times: Array
    q: Array
    v: Array
    a: Array
    curve: Curve
    profile: Course
    _kept: dict[str, Solver] = field(default_factory=dict[str, Solver])

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        of = self.mechanism.name or "a mechanism"
        return f"<trajectory of {of}: {self.duration:.4g} s in {len(self)} samples>"

    @property
    def duration(self) -> float:
        """s."""
        return self.profile.duration

    @property
    def deviation(self) -> float:
        """How far it leaves the straight ways between the knots of its path at most, rad or m."""
        return self.curve.deviation

    def at(self, t: ArrayLike) -> Array:
        """Configurations (..., nq) at times t (...), s; before it begins and after it has ended it stands."""
        return self.state(t)[0]

    def state(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """q (..., nq), v and a (..., nv) at times t (...), s."""
        wanted = _as_times(t)
        flat = wanted.reshape(-1)
        q, v, a, _ = rates_at(self.curve, self.profile, np.clip(flat, 0.0, self.duration))
        stands = (flat < 0.0) | (flat > self.duration)
        v[stands], a[stands] = 0.0, 0.0
        q = self._shut(q)
        return tuple(one.reshape(*wanted.shape, one.shape[1]) for one in (q, v, a))  # type: ignore[return-value]

    def jerk(self, t: ArrayLike) -> Array:
        """(..., nv) at times t (...), rad or m by s cubed; where it jumps, what comes after."""
        wanted = _as_times(t)
        found = rates_at(self.curve, self.profile, wanted.reshape(-1))[3]
        return found.reshape(*wanted.shape, found.shape[1])

    def sampled(self, dt: float) -> Trajectory:
        """The same trajectory with samples every dt seconds, and one where it ends."""
        step = as_number(dt, "dt")
        if not step > 0.0:
            raise ShapeError(f"dt must be above 0 seconds, not {step:g}")
        if self.duration / step > MOST_SAMPLES:
            raise ShapeError(
                f"samples every {step:g} s of {self.duration:.4g} s are {self.duration / step:.3g}, and at most "
                f"{MOST_SAMPLES:,} are made; `at` and `state` take any times"
            )
        count = math.ceil(self.duration / step - 1e-9)
        return made_of(self.mechanism, self.curve, self.profile, np.append(step * np.arange(count), self.duration))

    def to_path(self) -> Path:
        """A path whose s are seconds."""
        return Path(self.mechanism, self.q, self.times)

    def _shut(self, q: Array) -> Array:
        if not (self.mechanism.closures or self.mechanism.laws):
            return q
        if "shut" not in self._kept:
            self._kept["shut"] = Solver(self.mechanism)
        return np.array([self._kept["shut"].solve(q0=one).require().q for one in q]).reshape(q.shape)


def _as_times(t: ArrayLike) -> Array:
    try:
        wanted = np.asarray(t, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"times must be numbers, not {t!r}") from None
    if not np.isfinite(wanted).all():
        raise NotFinite(f"times must be finite, but there is {t!r}")
    return wanted


def made_of(mechanism: Mechanism, curve: Curve, profile: Course, times: Array) -> Trajectory:
    empty = np.zeros((0, 0))
    q, v, a = Trajectory(mechanism, times, empty, empty, empty, curve, profile).state(times)
    for one in (times, q, v, a):
        read_only(one)
    return Trajectory(mechanism, times, q, v, a, curve, profile)
