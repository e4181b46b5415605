"""How fast a number may change so that it can stop in time, exactly for steps of time dt.

Slowing down by a dt in each step, what moves at v goes on for n = floor(v / (a dt)) more steps after the present one:

    way(v) = dt ((n + 1) v - a dt n (n + 1) / 2)

which rises with v and is straight between multiples of a dt. Its inverse is the largest velocity that still stops.
"""

from __future__ import annotations

import math

from ..compiler import helper, part
from ..problem import *
from .layout import *


@helper
def largest_velocity(room, a, dt):
    """The velocity from which one can stop within `room`, the step that is about to be taken included."""
    if room <= 0.0:
        return 0.0
    if not a < math.inf:
        return room / dt
    unit = a * dt * dt
    n = math.floor(0.5 * (math.sqrt(1.0 + 8.0 * room / unit) - 1.0))
    if n > 1e9:
        return math.sqrt(2.0 * a * room)
    return (room / dt + 0.5 * a * dt * n * (n + 1.0)) / (n + 1.0)


@part
def bound_rates(I, F, T, O, x, n, all_bound):
    """The bounds of each column's next velocity: by its acceleration, by its velocity, and by the way to its limits.

    Args:
        all_bound: whether all columns depend on each other. What does cannot brake alone, and all of it has to be able
            to slow down by the same share: velocities stay below NEARING times the way that is left.
    """
    dt, nearing = O[DT], O[NEARING]
    for v in range(n):
        k, coupled = I[I[AT_COLUMN_X] + v], all_bound or T[BOUND, v] > 0.0
        share = NEARLY if T[BOUND, v] > 0.0 else EXACT
        a, most = T[ACCELERATION, v] * share, T[VELOCITY, v] * share
        low, high = -most, most
        if k >= 0:
            here, unit = F[x + k], 1.0 / F[I[AT_SCALE] + v]
            above, below = unit * (T[UPPER, v] - here), unit * (here - T[LOWER, v])
            if above < math.inf:
                high = min(high, largest_velocity(above, a, dt))
                if coupled:
                    high = min(high, max(above, 0.0) * nearing * NEARLY)
            if below < math.inf:
                low = max(low, -largest_velocity(below, a, dt))
                if coupled:
                    low = max(low, -max(below, 0.0) * nearing * NEARLY)
        T[LOW_HARD, v], T[HIGH_HARD, v] = low, high
        now = T[RATE, v]
        if a < math.inf:
            # where rounding lets the two contradict each other, the limit of the value counts
            T[LOW, v], T[HIGH, v] = min(max(low, now - a * dt), high), max(min(high, now + a * dt), low)
        else:
            T[LOW, v], T[HIGH, v] = low, high


@part
def held_by(T, O, n, active):
    """What holds each column's velocity back, as codes of `layout.py`."""
    nearly = 1.0 - 2e-6  # of what NEARLY leaves of limits
    for v in range(n):
        rate, most, a = T[RATE, v], T[VELOCITY, v], T[ACCELERATION, v] * O[DT]
        slack = 1e-6 * min(most, a)
        slack = slack if slack < math.inf else 1e-9
        active[v] = FREE
        for side in (1, -1):
            edge = T[HIGH, v] if side > 0 else T[LOW, v]
            if side * (rate - edge) < -slack:
                continue
            if a < math.inf and side * (rate - T[START, v]) >= nearly * a:
                active[v] = side * BY_ACCELERATION
            elif most < math.inf and side * rate >= nearly * most:
                active[v] = side * BY_VELOCITY
            else:
                active[v] = side * BY_POSITION
