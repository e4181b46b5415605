"""The fastest way within velocity and acceleration, everywhere: not only where it was worked out.

Where limits are broken between two places, there are more places the next time. What is left is made good by stretching
all of it a little in time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mechanik.spatial.array import Array
from mechanik.timing.curve import Curve
from mechanik.timing.fastest import fastest, places_along
from mechanik.timing.jumps import over
from mechanik.timing.profile import Profile

GRID = 1000
"""Places along the way where it is worked out how fast one may be there, at first."""
MOST_PLACES = 6000
ROUNDS = 6
MARGIN = 1e-4
"""Limits are kept by this share, for what happens between the moments at which they are looked at."""


def fast_within(curve: Curve, velocity: Array, acceleration: Array) -> Profile:
    """The fastest within velocity and acceleration (nv,)."""
    s = places_along(curve, GRID)  # the knots of the curve are among these
    limits = velocity, acceleration, None
    profile = fastest(curve, velocity, acceleration, s)
    for _ in range(ROUNDS):
        split = np.flatnonzero(over(curve, profile, profile.breaks, limits) > 1.0 + MARGIN)
        if not len(split) or len(s) + len(split) > MOST_PLACES:
            break
        s = np.insert(s, split + 1, 0.5 * (s[split] + s[split + 1]))
        profile = fastest(curve, velocity, acceleration, s)
    worst = float(over(curve, profile, profile.breaks, limits).max())
    return replace(profile, slow=worst * (1.0 + MARGIN))
