"""When something jumps along a curve, and how far limits are broken in between."""

from __future__ import annotations

import numpy as np

from mechanik.spatial.array import Array
from mechanik.timing.curve import Curve
from mechanik.timing.profile import Course

BESIDE = 1e-6
"""How far from a jump one looks, in shares of the time to the next."""
LOOKS, CLOSER, WORST = 12, 120, 40
"""Between any two jumps, limits are looked at in so many moments; in more where it is worst, in so many such pieces."""
NEAR = 1e-4
"""Of a piece: jumps that are nearer to each other are one."""

Limits = tuple[Array, Array, Array | None]
"""Of velocity, acceleration and jerk, (nv,) each."""


def jumps(curve: Curve, course: Course) -> Array:
    """Times (K + 1,) between which nothing jumps, neither in time nor along the curve, whose knots are passed then."""
    knots, t = curve.s[1:-1], course.breaks
    when = np.interp(knots, course.at(t)[0], t)
    least = 1e-9 * curve.length / course.duration
    for _ in range(4):
        here, speed, _, _ = course.at(when)
        when = np.clip(when + (knots - here) / np.maximum(speed, least), 0.0, t[-1])
    after = np.clip(np.searchsorted(t, when), 1, len(t) - 1)
    least_gap = NEAR * (t[after] - t[after - 1])
    apart = (when - t[after - 1] > least_gap) & (t[after] - when > least_gap)
    return np.unique(np.concatenate([t, when[apart]]))


def rates_at(curve: Curve, course: Course, t: Array) -> tuple[Array, Array, Array, Array]:
    """q (M, nq) at times (M,), and velocity, acceleration and jerk of all freedoms, (M, nv) each."""
    s, speed, gain, jerk = course.at(t)
    q, first, second, third = curve.at(s)
    u, w, z = speed[:, None], gain[:, None], jerk[:, None]
    return q, first * u, second * u**2 + first * w, third * u**3 + 3 * second * u * w + first * z


def over(curve: Curve, course: Course, times: Array, limits: Limits) -> Array:
    """(K,) by what factor each piece between times (K + 1,) has to be slower, so that limits hold."""
    seen = _looked_at(curve, course, times[:-1], times[1:], limits, LOOKS)
    # of a parabola, no more than an eighth of the second difference can be hidden between two looks
    hidden = np.maximum(2.0 * seen[:, 1:-1] - seen[:, :-2] - seen[:, 2:], 0.0) / 8.0
    perhaps = seen.copy()
    perhaps[:, :-2] = np.maximum(perhaps[:, :-2], seen[:, :-2] + hidden)
    perhaps[:, 1:-1] = np.maximum(perhaps[:, 1:-1], seen[:, 1:-1] + hidden)
    perhaps[:, 2:] = np.maximum(perhaps[:, 2:], seen[:, 2:] + hidden)
    found, worst = seen.max(axis=1), np.argsort(perhaps.max(axis=1))[-WORST:]
    closer = _looked_at(curve, course, times[worst], times[worst + 1], limits, CLOSER)
    found[worst] = np.maximum(found[worst], closer.max(axis=1))
    return found


def _looked_at(curve: Curve, course: Course, begin: Array, end: Array, limits: Limits, looks: int) -> Array:
    """(K, looks) by what factor it has to be slower at each moment between begin and end (K,)."""
    t = begin[:, None] + (end - begin)[:, None] * np.linspace(BESIDE, 1.0 - BESIDE, looks)
    _, *rates = rates_at(curve, course, t.ravel())
    worst = np.zeros(t.size)
    for power, (rate, limit) in enumerate(zip(rates, limits, strict=True), start=1):
        if limit is not None:
            worst = np.maximum(worst, (np.abs(rate) / limit).max(axis=1) ** (1.0 / power))
    return worst.reshape(t.shape)
