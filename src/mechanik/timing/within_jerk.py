"""The fastest way within velocity, acceleration and jerk, nearly: never outside of them, and a few parts in a hundred
above the least time there is.

It begins with what speed could be kept at each place, averaged over a while. That is laid out by a smooth profile, and
the best pace along it is worked out; then all of this once more, with the time that was found as the time of the
profile, and with a closer look where limits were broken in between. What is left of that is made good by stretching all
of it a little in time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mechanik.spatial.array import Array
from mechanik.timing.curve import Curve
from mechanik.timing.fastest import at_speeds, places_along
from mechanik.timing.fastest_pace import fastest_pace
from mechanik.timing.jumps import jumps, over
from mechanik.timing.pace_limits import pace_limits
from mechanik.timing.profile import Profile
from mechanik.timing.spline_profile import spline_profile
from mechanik.timing.warped import Warped, warped
from mechanik.timing.within_limits import MARGIN

GRID = 300
"""Places along the way where it is worked out how fast one may be there, at first."""
BEND = 0.3
"""Of the jerk: what bends may take of it at first."""
TINY = 1e-100
"""For bends that are none."""
WINDOWS = (0.01, 0.03, 0.1, 0.3)
"""How long is averaged, in shares of how long it takes: what can be made to hold with the least slowing is taken."""
SAMPLES = 2000
FEW, MANY, BY_KNOT = 200, 1000, 3
"""Pieces of the pace: at first, at most, and how many more for each knot of the curve."""
TOLERANCES = (1e-2, 3e-3, 3e-3)
"""How much longer than possible it may take, as a share, in each round; the last is only for limits still broken."""
BROKEN = 1.003
"""By so much too fast: worth a closer look, and another round."""


def fast_within_jerk(curve: Curve, velocity: Array, acceleration: Array, jerk: Array) -> Warped:
    """Fast within velocity, acceleration and jerk (nv,)."""
    limits = velocity, acceleration, jerk
    rough = _rough(curve, *limits)
    starts = [_averaged(rough, share * rough.duration) for share in WINDOWS]
    profile = min((_laid_out(*one, FEW) for one in starts), key=lambda one: _kept_steadily(curve, one, limits))
    closer = np.zeros(0)
    found: list[Warped] = []
    for tolerance in TOLERANCES:
        allowed = pace_limits(curve, profile, *limits, closer)
        course = warped(profile, allowed.u, allowed.pieces(fastest_pace(allowed, tolerance)))
        times = jumps(curve, course)
        broken = over(curve, course, times, limits)
        found.append(replace(course, slow=float(broken.max()) * (1.0 + MARGIN)))
        if len(found) > 1 and broken.max() < BROKEN:
            break
        where = np.flatnonzero(broken > BROKEN)
        inside = times[where, None] + np.diff(times)[where, None] * np.linspace(0.1, 0.9, 9)
        closer = np.union1d(closer, course.at(inside.ravel())[0])
        count = min(FEW + BY_KNOT * len(curve.s), MANY)
        profile = _laid_out(course.duration, lambda t, course=course: course.at(t)[0], count)
    return min(found, key=lambda one: one.duration)


def _rough(curve: Curve, velocity: Array, acceleration: Array, jerk: Array) -> Profile:
    """Everywhere as fast as a steady speed may be there, whatever it takes to change it; from and to a stand."""
    s = places_along(curve, GRID)
    _, first, second, third = (np.maximum(np.abs(one), TINY) for one in curve.at(s))
    speeds = velocity / first, np.sqrt(acceleration / second), np.cbrt(BEND * jerk / third)
    ends = np.sqrt(2.0 * np.minimum(s, curve.length - s) * (acceleration / first).min(axis=1))
    return at_speeds(s, np.minimum(np.min(speeds, axis=(0, 2)), ends))


def _averaged(profile: Profile, window: float) -> tuple[float, Callable[[Array], Array]]:
    """How long it takes, and s (M,) at times (M,), if everything is averaged over so many seconds."""
    t = np.linspace(0.0, profile.duration, SAMPLES + 1)
    s = profile.at(t)[0]
    sums = np.append(0.0, np.cumsum(0.5 * (s[1:] + s[:-1]) * np.diff(t)))

    def whole(when: Array) -> Array:
        return np.interp(when, t, sums) + np.maximum(when - t[-1], 0.0) * s[-1]

    return float(t[-1]) + window, lambda when: (whole(when) - whole(when - window)) / window


def _laid_out(duration: float, gone: Callable[[Array], Array], count: int) -> Profile:
    return spline_profile(np.linspace(0.0, duration, count + 1), gone)


def _kept_steadily(curve: Curve, profile: Profile, limits: tuple[Array, Array, Array]) -> float:
    """How long a profile takes if it is stretched as a whole until limits hold, s."""
    return profile.duration / np.sqrt(pace_limits(curve, profile, *limits).steady())
