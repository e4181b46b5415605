"""The fastest way within all limits, everywhere: not only where it was worked out.

Where limits are broken between two places, there are more places the next time. What is left is made good by stretching
all of it a little in time.

Jerk is bounded by averaging the way in time over a window, which keeps to the curve, makes nothing faster, and turns
jumps of the acceleration into ramps.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mechanik.spatial.array import Array
from mechanik.timing.curve import Curve
from mechanik.timing.fastest import fastest, places_along
from mechanik.timing.profile import Profile

GRID = 1000
"""Places along the way where it is worked out how fast one may be there, at first."""
MOST_PLACES = 6000
ROUNDS = 6
LOOKS = 8
"""Between any two jumps of the jerk, limits are looked at in so many places."""
BESIDE = 1e-6
"""How far from a jump one looks, in shares of the time to the next."""
MARGIN = 1e-4
"""Limits are kept by this share, for what happens between these places."""
BENDS = (0.1, 0.3, 0.6)
"""Shares of the jerk that bends may take at a steady speed: all are tried, and the fastest taken."""
SHORTEST, LONGEST, WINDOWS = 0.005, 0.5, 12
"""How long is averaged, in shares of how long it takes without, and how many of these are tried."""


def rates_at(curve: Curve, profile: Profile, t: Array) -> tuple[Array, Array, Array, Array]:
    """q (M, nq) at times (M,), and velocity, acceleration and jerk of all freedoms, (M, nv) each."""
    s, speed, gain, jerk = profile.at(t)
    q, first, second, third = curve.at(s)
    u, w, z = speed[:, None], gain[:, None], jerk[:, None]
    return q, first * u, second * u**2 + first * w, third * u**3 + 3 * second * u * w + first * z


def fast_within(curve: Curve, velocity: Array, acceleration: Array) -> Profile:
    """The fastest within velocity and acceleration (nv,)."""
    s = places_along(curve, GRID)
    profile = fastest(curve, velocity, acceleration, s)
    for _ in range(ROUNDS):
        over = _over(curve, profile, (velocity, acceleration, None))
        split = np.flatnonzero(over > 1.0 + MARGIN)
        if not len(split) or len(s) + len(split) > MOST_PLACES:
            break
        s = np.insert(s, split + 1, 0.5 * (s[split] + s[split + 1]))
        profile = fastest(curve, velocity, acceleration, s)
    return _stretched(curve, profile, (velocity, acceleration, None))


def fast_within_jerk(curve: Curve, velocity: Array, acceleration: Array, jerk: Array) -> Profile:
    """Fast within velocity, acceleration and jerk (nv,)."""
    s = places_along(curve, GRID)
    third = np.maximum(np.abs(curve.at(s)[3]), 1e-300)
    tried: list[Profile] = []
    for share in BENDS:
        steady = np.cbrt(share * jerk / third).min(axis=1)
        profile = fastest(curve, velocity, acceleration, s, steady)
        for window in np.geomspace(SHORTEST, LONGEST, WINDOWS) * profile.t[-1]:
            tried.append(_stretched(curve, replace(profile, window=float(window)), (velocity, acceleration, jerk)))
    return min(tried, key=lambda one: one.duration)


def _stretched(curve: Curve, profile: Profile, limits: tuple[Array, Array, Array | None]) -> Profile:
    """The same, slower or faster, so that velocity, acceleration and jerk hold and one of them just so."""
    over = float(_over(curve, profile, limits).max())
    return replace(profile, slow=profile.slow * over * (1.0 + MARGIN))


def _over(curve: Curve, profile: Profile, limits: tuple[Array, Array, Array | None]) -> Array:
    """(K,) by what factor each piece of a profile, from break to break, has to be slower."""
    breaks = _breaks(curve, profile)
    shares = np.linspace(BESIDE, 1.0 - BESIDE, LOOKS)
    t = breaks[:-1, None] + np.diff(breaks)[:, None] * shares
    _, *rates = rates_at(curve, profile, t.ravel())
    worst = np.zeros(t.size)
    for power, (rate, limit) in enumerate(zip(rates, limits, strict=True), start=1):
        if limit is not None:
            worst = np.maximum(worst, (np.abs(rate) / limit).max(axis=1) ** (1.0 / power))
    return worst.reshape(t.shape).max(axis=1)


def _breaks(curve: Curve, profile: Profile) -> Array:
    """Times (K + 1,) between which nothing jumps, neither along the curve nor in time."""
    t = profile.breaks
    if not profile.window:
        return t  # the knots of the curve are among the places
    knots = curve.s[1:-1]
    s = profile.at(t)[0]
    when = np.interp(knots, s, t)
    for _ in range(3):
        here, speed, _, _ = profile.at(when)
        when = np.clip(when + (knots - here) / np.maximum(speed, 1e-9), 0.0, t[-1])
    return np.unique(np.concatenate([t, when]))
