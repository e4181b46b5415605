"""A profile as a spline in time that begins and ends with nothing but jerk."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from mechanik.spatial.array import Array
from mechanik.timing.profile import Profile


def spline_profile(times: Array, gone: Callable[[Array], Array]) -> Profile:
    """A profile near to another, as smooth as its knots are wide; it rises wherever the other does.

    It is a cubic B-spline by Schoenberg's rule: each coefficient is the other's value in the middle of three knots. At
    either end the middle is that of a third power, with which a way from or to a stand without acceleration begins.

    Args:
        times: (K + 1,) knots, from 0 to when the other ends, s.
        gone: s (M,) of the other at times (M,), from 0, rising.
    """
    interpolate: Any = import_module("scipy.interpolate")
    before, after = (times[1] - times[0]) * np.arange(-3, 0), (times[-1] - times[-2]) * np.arange(1, 4)
    knots = np.concatenate([before, times, times[-1] + after])
    three = np.stack([knots[1:-3], knots[2:-2], knots[3:-1]])
    # far from an end, the root is the mean but for a little that hardly changes, and these two balance
    begun, left = np.cbrt(three.prod(axis=0)), np.cbrt((times[-1] - three).prod(axis=0))
    middles = begun - left + (times[-1] - three.mean(axis=0))
    heights = gone(np.clip(middles, 0.0, times[-1]))
    heights[:3], heights[-3:] = gone(times[:1]), gone(times[-1:])
    spline = interpolate.BSpline(knots, heights, 3)
    return Profile(times, np.stack([spline(times[:-1], order) for order in range(4)], axis=1))
