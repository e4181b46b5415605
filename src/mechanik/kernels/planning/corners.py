"""Arcs in place of corners, as large as they are free: parabolas that touch both sides."""

from __future__ import annotations

import math

import numpy as np

from ..compiler import kernel, part
from .motion import SCENE, WATCH, is_free, put
from .shortening import STILL, length_of
from .state import LOOKS

SIZES = (0.5, 0.35, 0.2, 0.1, 0.05)
"""How much of the shorter of two sides a corner takes; the largest that is free."""
ARC = 0.06
"""Units: how far the knots of a round corner are apart."""
FEWEST = 4
"""Pieces of an arc."""
FLAT = 1e-3
"""Rad: what turns less is no corner."""


@part
def on_arc(before, corner, after, to_before, to_after, t, q):
    """Into q (1, nq): a place of the parabola, t from 0 to 1; `to_before` and `to_after` of the sides belong to it."""
    early, late = (1.0 - t) ** 2 * to_before, t * t * to_after
    for k in range(corner.shape[0]):
        q[0, k] = corner[k] + early * (before[k] - corner[k]) + late * (after[k] - corner[k])


@part
def pieces_of(before, corner, after, to_before, to_after, unit):
    farthest = 0.0
    for k in range(corner.shape[0]):
        farthest = max(farthest, abs(to_before * (before[k] - corner[k]) - to_after * (after[k] - corner[k])) / unit[k])
    return max(FEWEST, math.ceil(farthest / ARC))


@part
def is_corner(before, corner, after, a, b, unit):
    total = 0.0
    for k in range(corner.shape[0]):
        bend = ((before[k] - corner[k]) / a + (after[k] - corner[k]) / b) / unit[k]
        total += bend * bend
    return math.sqrt(total) >= FLAT


@kernel(f"i8({SCENE}, f8[::1], f8, f8[:,::1], f8[:,::1], i8[::1])", calls=WATCH)
def round_corners(
    watch, nodes, S, P, bodies, tree, kept_off, counts, guards, partners, mode, clearance,
    unit, step, x, out, state,
):  # fmt: skip
    """Into `out`: the knots x (n, nq) with arcs; how many there are.

    Args:
        unit: (nq,) what counts as 1.
        step: units: how far apart arcs are looked at, at most.
        out: (m, nq), room for a knot every ARC and for FEWEST + 1 at each corner.
    """
    scene = (nodes, S, P, bodies, tree, kept_off, counts, guards, partners, mode, clearance)
    looks = np.zeros(1, np.int64)
    room = (np.empty((1, 1)), np.empty((0, 0, 0)), np.zeros(1, np.int64), looks)
    q = np.empty((1, unit.shape[0]))
    finer = max(1, math.ceil(ARC / step - 1e-9))
    put(out, 0, x[0])
    found, last = 1, x.shape[0] - 1
    for k in range(1, last):
        a, b = length_of(x[k], x[k - 1], unit), length_of(x[k], x[k + 1], unit)
        size, pieces = 0.0, 0
        if is_corner(x[k - 1], x[k], x[k + 1], a, b, unit):
            for one in SIZES:
                reach = one * min(a, b)
                pieces = pieces_of(x[k - 1], x[k], x[k + 1], reach / a, reach / b, unit)
                size = reach
                # from the middle, which cuts the corner most
                for i in range(pieces * finer + 1):
                    half = (i + 1) // 2
                    t = 0.5 + (half if i % 2 else -half) / (pieces * finer)
                    on_arc(x[k - 1], x[k], x[k + 1], reach / a, reach / b, min(1.0, max(0.0, t)), q)
                    if not is_free(watch, scene, q, room):
                        size = 0.0
                        break
                if size > 0.0:
                    break
        if size == 0.0:
            put(out, found, x[k])
            found += 1
            continue
        for i in range(pieces + 1):
            on_arc(x[k - 1], x[k], x[k + 1], size / a, size / b, i / pieces, q)
            if length_of(out[found - 1], q[0], unit) > STILL:
                put(out, found, q[0])
                found += 1
    if found > 1 and length_of(out[found - 1], x[last], unit) <= STILL:
        found -= 1
    put(out, found, x[last])
    state[LOOKS] += looks[0]
    return found + 1
