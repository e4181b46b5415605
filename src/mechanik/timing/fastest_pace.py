"""The pace that takes the least time within limits: an interior-point method that never leaves them.

The time is the integral of y^-1/2, convex in y. All limits are linear but that of the jerk, which is replaced by its
tangent at the last answer, in each step anew; a tangent is stricter, so that every step ends within the limits and one
may stop at any time (A. L. Yuille and A. Rangarajan, "The concave-convex procedure", Neural Computation 15(4), 2003).
Steps are those of S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM Journal on
Optimization 2(4), 1992. What is solved in each has five diagonals: its cost grows with the number of coefficients and
no faster.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from mechanik.spatial.array import Array
from mechanik.timing.pace_limits import PaceLimits, gathered, neighbours

STEPS = 60
INSIDE = 0.98
"""Of the steady pace: where it begins."""
SHORT = 0.99
"""Of the way to the nearest limit: how far a step goes."""
LOWEST = 1e-3
"""Of what gaps cost now: the least that a step aims at."""
EVEN = 1e-2
"""Of the time's gradient: what limits may leave of it in the end."""


def fastest_pace(limits: PaceLimits, tolerance: float) -> Array:
    """Coefficients (K + 2,) of the pace.

    Args:
        tolerance: how much longer it may take than the tangents at the answer allow, as a share.
    """
    linalg: Any = import_module("scipy.linalg")
    wide, middles = _middles(limits)
    b = np.full(len(limits.u) + 1, INSIDE * limits.steady())
    gap = limits.gaps(b)
    time, down, curved = _time(wide, middles, b)
    price = 0.1 * time / len(gap) / gap
    for _ in range(STEPS):
        y = limits.at_places(b)[0]
        left = float(price @ gap)
        if left < tolerance * time and np.abs(down - limits.pull(price, y)).max() < EVEN * np.abs(down).max():
            break
        stiff = price / gap
        of_pieces, diagonal = limits.squares(stiff, y)
        bands = _bands(curved + of_pieces)
        bands[0] += diagonal
        try:
            factor = linalg.cholesky_banded(bands, lower=True)
        except (linalg.LinAlgError, ValueError):  # rounding has eaten it up: as near as can be had
            break

        towards = partial(_towards, limits, linalg, factor, down, y)
        _, change = towards(np.zeros_like(gap))
        dearer = -price - stiff * change
        then = (price + min(1.0, _room(price, dearer)) * dearer) @ (gap + min(1.0, _room(gap, change)) * change)
        aim = min(1.0, max((float(then) / left) ** 3, LOWEST)) * left / len(gap)
        by = (aim - dearer * change) / gap
        step, change = towards(by)
        dearer = by - price - stiff * change
        b = b + min(1.0, SHORT * _room(gap, change)) * step
        price = price + min(1.0, SHORT * _room(price, dearer)) * dearer
        gap = limits.gaps(b)
        time, down, curved = _time(wide, middles, b)
    return b


def _towards(
    limits: PaceLimits, linalg: Any, factor: Array, down: Array, y: Array, prices: Array
) -> tuple[Array, Array]:
    """A step (K + 2,) to where these prices (G,) balance the time's gradient, and how gaps change with it (G,)."""
    step = linalg.cho_solve_banded((factor, True), limits.pull(prices, y) - down, check_finite=False)
    return step, limits.change(step, y)


def _middles(limits: PaceLimits) -> tuple[Array, Array]:
    """How wide the parabolas are (K, 1), and y where the time is summed up, two places of Gauss in each, by its
    coefficients (K, 2, 3)."""
    wide = np.diff(limits.u)[:, None]
    x = (wide * (0.5 + np.array([-0.5, 0.5]) / np.sqrt(3.0)))[..., None]
    y, rise, bend = (limits.shapes[:, None, order] for order in range(3))
    return wide, y + x * (rise + 0.5 * x * bend)


def _time(wide: Array, middles: Array, b: Array) -> tuple[float, Array, Array]:
    """How long it takes, its gradient (K + 2,), and second derivatives by each parabola's coefficients (K, 3, 3)."""
    y = np.einsum("kgi,ki->kg", middles, neighbours(b))
    down = gathered(np.einsum("kg,kgi->ki", -0.25 * wide * y**-1.5, middles))
    curved = np.einsum("kg,kgi,kgj->kij", 0.375 * wide * y**-2.5, middles, middles)
    return 0.5 * float((wide * y**-0.5).sum()), down, curved


def _room(now: Array, change: Array) -> float:
    """By how many times a change the first of these, all above zero, is zero."""
    return 1.0 / max(1e-300, float(-(change / now).min()))


def _bands(of_pieces: Array) -> Array:
    """The lower diagonals (3, K + 2) of the sum of all (K, 3, 3)."""
    count = len(of_pieces)
    found = np.zeros((3, count + 2))
    for row in range(3):
        for column in range(row + 1):
            found[row - column, column : column + count] += of_pieces[:, row, column]
    return found
