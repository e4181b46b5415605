"""Making the way even where the goals leave a freedom: each configuration towards the middle of those around it.

What is asked for goes on to hold, since after each round every knot is brought back to it by the shortest way.
"""

from __future__ import annotations

import numpy as np

from mechanik.paths.between import ways_free
from mechanik.paths.course import FINE, Course
from mechanik.spatial.array import Array

WIDTHS = (0.25, 0.12, 0.06, 0.03, 0.015, 0.25, 0.12, 0.06, 0.03, 0.015)
"""Of the windows over which is averaged, as shares of the path: the widest first, which move the most."""
ROUNDS = 4
"""With each of them, at most; where each knot is solved by itself, only one of the first half of them."""


def even_out(course: Course, q: Array, is_fixed: bool) -> Array:
    """The way (N, nq) with a smaller largest step, if there is one.

    Args:
        is_fixed: whether the first configuration has to stay.
    """
    best, worth = q, _worth(course, q)
    count = len(q)
    widths, rounds = (WIDTHS, ROUNDS) if course.is_quick else (WIDTHS[: len(WIDTHS) // 2], 1)
    for width in widths:
        half = round(width * count)
        if half < 1:
            continue
        for _ in range(rounds):
            there = _round(course, best, half, is_fixed)
            if there is None:
                break
            value = _worth(course, there)
            if not value < worth * (1.0 - 1e-4):
                break
            best, worth = there, value
    return best


def _round(course: Course, q: Array, half: int, is_fixed: bool) -> Array | None:
    space = course.space
    ways = _averaged(course, q, half, is_fixed)
    for share in (1.0, 0.3):
        found, codes = course.settle(course.s, space.integrate(q, share * ways))
        if is_fixed:
            found[0] = q[0]
        if (codes == FINE).all() and ways_free(course, found[:-1], found[1:]).all():
            return found
    return None


def _averaged(course: Course, q: Array, half: int, is_fixed: bool) -> Array:
    """(N, nv) from each knot to the weighted mean of those around it, up to `half` knots away either way.

    Beyond its ends the path is taken to go on as its mirror image, in place if an end is fixed, in time if not.
    """
    count, space = len(q), course.space
    # as ways from the first knot, which for balls is good as long as they turn less than half a turn
    flat = np.concatenate([np.zeros((1, space.nv)), np.cumsum(space.difference(q[:-1], q[1:]), axis=0)])
    half = min(half, count - 1)
    before, after = flat[half:0:-1], flat[-2 : -half - 2 : -1]
    if is_fixed:
        before = 2.0 * flat[0] - before
    padded = np.concatenate([before, flat, after])
    weights = np.hanning(2 * half + 3)[1:-1]
    weights /= weights.sum()
    size = 1 << int(np.ceil(np.log2(len(padded) + len(weights))))
    mean = np.fft.irfft(np.fft.rfft(padded, size, axis=0) * np.fft.rfft(weights, size)[:, None], size, axis=0)
    ways = mean[2 * half : 2 * half + count] - flat
    ways[:, ~course.matters] = 0.0
    return ways


def _worth(course: Course, q: Array) -> float:
    """The less the better: the largest step, and a little of the mean square."""
    steps = np.abs(course.space.difference(q[:-1], q[1:]))
    return float(steps.max(initial=0.0)) + 0.3 * float(np.sqrt((steps**2).sum(axis=1).mean()))
