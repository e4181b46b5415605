"""A profile gone at another pace: faster here, slower there, smoothly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.spatial.array import Array
from mechanik.timing.profile import Profile

SMALL = 1e-2
"""Below this, powers are summed up instead."""


@dataclass(frozen=True, slots=True, eq=False)
class Warped:
    """How far along a curve one is at each time.

    The time of the profile is u. How fast it passes is the square root of the pace y(u), which between two places is
    a parabola, so that u(t) is made of sines or hyperbolic sines.

    Attributes:
        of: the profile.
        u: (K + 1,) where the parabolas begin; all jumps of the profile's jerk are among these.
        pace: (K, 3) y, above zero, and its first two derivatives by u where each begins.
        t: (K + 1,) when each u is passed, s.
        slow: by what factor all takes longer.
    """

    of: Profile
    u: Array
    pace: Array
    t: Array
    slow: float = 1.0

    @property
    def duration(self) -> float:
        return self.slow * float(self.t[-1])

    @property
    def breaks(self) -> Array:
        """All times at which the jerk may jump, s."""
        return self.slow * self.t

    def at(self, t: Array) -> Array:
        """(4, M): s, its velocity, acceleration and jerk at times t (M,)."""
        own = np.clip(np.asarray(t, dtype=np.float64) / self.slow, 0.0, self.t[-1])
        k = np.clip(np.searchsorted(self.t, own, side="right") - 1, 0, len(self.pace) - 1)
        pace = self.pace[k]
        x, speed = _gone(pace, own - self.t[k])
        rise, bend = pace[:, 1] + pace[:, 2] * x, pace[:, 2]
        # just below the next place, so that what rounding has pushed over it is still of this parabola
        u = np.minimum(self.u[k] + np.maximum(x, 0.0), np.nextafter(self.u[k + 1], 0.0))
        s, first, second, third = self.of.at(u)
        y = speed**2
        return np.stack([
            s,
            first * speed / self.slow,
            (second * y + 0.5 * first * rise) / self.slow**2,
            (third * y + 1.5 * second * rise + 0.5 * first * bend) * speed / self.slow**3,
        ])  # fmt: skip


def warped(of: Profile, u: Array, pace: Array) -> Warped:
    """The times are worked out: how long each parabola (K, 3) takes from one u (K + 1,) to the next.

    How fast u passes, v, has w^2 v for its second derivative by time, with w^2 = y'' / 2. From its values at both ends
    and how far it goes, h, follows tanh(w t / 2) = w h / (v0 + v1).
    """
    wide, (y, rise, bend) = np.diff(u), pace.T
    ends = np.sqrt(y) + np.sqrt(np.maximum(y + wide * (rise + 0.5 * wide * bend), 0.0))
    z = np.minimum(0.5 * bend * (wide / ends) ** 2, 1.0 - 1e-12)
    small = np.abs(z) < SMALL
    w = np.sqrt(np.abs(np.where(small, 0.25, z)))
    ratio = np.where(z > 0.0, np.arctanh(np.minimum(w, 1.0 - 1e-13)), np.arctan(w)) / w
    ratio = np.where(small, 1.0 + z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z / 11)))), ratio)
    return Warped(of, u, pace, np.append(0.0, np.cumsum(2.0 * wide / ends * ratio)))


def _gone(pace: Array, t: Array) -> tuple[Array, Array]:
    """How far u has gone (M,) after t (M,) from where the pace (M, 3) was, and how fast it passes there."""
    y, rise, bend = pace.T
    z = 0.5 * bend * t**2
    small, up = np.abs(z) < SMALL, z > 0.0
    w = np.sqrt(np.abs(np.where(small, 1.0, z)))
    grows = np.where(up, w, 0.0)
    whole = np.where(up, np.cosh(grows), np.cos(w))
    odd = np.where(up, np.sinh(grows), np.sin(w)) / w
    even = np.where(up, 1.0, -1.0) * (whole - 1.0) / w**2
    odd = np.where(small, 1.0 + z / 6.0 * (1.0 + z / 20.0 * (1.0 + z / 42.0 * (1.0 + z / 72.0))), odd)
    even = np.where(small, 0.5 * (1.0 + z / 12.0 * (1.0 + z / 30.0 * (1.0 + z / 56.0 * (1.0 + z / 90.0)))), even)
    whole = np.where(small, 1.0 + z * even, whole)
    fast = np.sqrt(y)
    return t * (fast * odd + 0.5 * rise * t * even), fast * whole + 0.5 * rise * t * odd
