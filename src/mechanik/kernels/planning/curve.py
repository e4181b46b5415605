"""Whether the smooth curve is free that is laid through a path in order to time it.

It is the one of `timing/curve.py`: a natural cubic spline by the length of the straight ways, with knots put between
where it leaves these by too much.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import kernel, part
from .certificate_layout import FREE, LONG, TOUCHED
from .motion import SCENE, WATCH, is_free, put

INSIDE = 7
"""Places between two knots where the spline is compared with the straight way."""


@part
def spline(x, count, h, d, M):
    """Second derivatives M (N, nq) at the knots x, zero at the ends, by the algorithm of Thomas; h: lengths of pieces.

    Args:
        d: (N,) room to work in.
    """
    n = x.shape[1]
    for k in range(count - 1):
        total = 0.0
        for i in range(n):
            total += (x[k + 1, i] - x[k, i]) ** 2
        h[k] = math.sqrt(total)
    for i in range(n):
        M[0, i], M[count - 1, i] = 0.0, 0.0
    for k in range(1, count - 1):
        before = h[k - 1] / d[k - 1] if k > 1 else 0.0
        d[k] = 2.0 * (h[k - 1] + h[k]) - before * h[k - 1]
        for i in range(n):
            bend = 6.0 * ((x[k + 1, i] - x[k, i]) / h[k] - (x[k, i] - x[k - 1, i]) / h[k - 1])
            M[k, i] = bend - before * M[k - 1, i]
    for k in range(count - 2, 0, -1):
        for i in range(n):
            M[k, i] = (M[k, i] - h[k] * M[k + 1, i]) / d[k]


@part
def place_at(x, h, M, k, share, out):
    """The place on piece k of the spline, into out (1, nq)."""
    a, b = 1.0 - share, share
    bulge = h[k] * h[k] / 6.0
    for i in range(x.shape[1]):
        out[0, i] = a * x[k, i] + b * x[k + 1, i] + bulge * ((a * a * a - a) * M[k, i] + (b * b * b - b) * M[k + 1, i])


@part
def away(x, h, M, k, out):
    """How far piece k leaves the straight way, in one number of q at most."""
    n, most, length = x.shape[1], 0.0, max(h[k] * h[k], 1e-300)
    for j in range(1, INSIDE + 1):
        place_at(x, h, M, k, j / (INSIDE + 1.0), out)
        share = 0.0
        for i in range(n):
            share += (out[0, i] - x[k, i]) * (x[k + 1, i] - x[k, i])
        share = min(max(share / length, 0.0), 1.0)
        for i in range(n):
            most = max(most, abs(out[0, i] - x[k, i] - share * (x[k + 1, i] - x[k, i])))
    return most


@kernel(f"i8({SCENE}, f8[:,::1], f8[::1], f8, f8, i8, i8, i8[::1])", calls=WATCH)
def curve_is_free(
    watch, nodes, S, P, bodies, tree, kept_off, counts, guards, partners, mode, clearance, q, unit, deviation, fine,
    rounds, most, looks,
):  # fmt: skip
    """
    Args:
        watch .. clearance: as `motion.py` has it.
        q: (N, nq) knots, 3 or more, no two of which that follow each other are one.
        unit: (nq,) what counts as 1.
        deviation: how far it may leave the straight ways, in one number of q.
        fine: units: how far apart looks are at most, about.
        rounds, most: how often knots are put between, and how many there may be.
        looks: (1,) to which those are added that it takes.
    Returns:
        TOUCHED, FREE, or LONG if there are too many knots.
    """
    scene = (nodes, S, P, bodies, tree, kept_off, counts, guards, partners, mode, clearance)
    room = np.empty((1, 1)), np.empty((0, 0, 0)), np.zeros(1, np.int64), looks
    n, count, one = q.shape[1], q.shape[0], np.empty((1, q.shape[1]))
    x, y = np.empty((2 * count + 64, n)), np.empty((2 * count + 64, n))
    h, d, M = np.empty(x.shape[0]), np.empty(x.shape[0]), np.empty(x.shape)
    for k in range(count):
        put(x, k, q[k])
    for _ in range(rounds):
        spline(x, count, h, d, M)
        if 2 * count > most:
            return LONG
        if x.shape[0] < 2 * count:
            x, y = np.concatenate((x, x)), np.empty((2 * x.shape[0], n))
            h, d, M = np.concatenate((h, h)), np.empty(x.shape[0]), np.concatenate((M, M))
        more = 0
        for k in range(count - 1):
            put(y, k + more, x[k])
            if away(x, h, M, k, one) > deviation:
                more += 1
                for i in range(n):
                    y[k + more, i] = 0.5 * (x[k, i] + x[k + 1, i])
        put(y, count - 1 + more, x[count - 1])
        if more == 0:
            break
        x, y = y, x
        count += more
    spline(x, count, h, d, M)
    for k in range(count - 1):
        far = 0.0
        for i in range(n):
            far = max(far, abs(x[k + 1, i] - x[k, i]) / unit[i])
        parts = max(1, math.ceil(far / fine))
        for j in range(parts):
            place_at(x, h, M, k, j / parts, one)
            if not is_free(watch, scene, one, room):
                return TOUCHED
    put(one, 0, x[count - 1])
    return FREE if is_free(watch, scene, one, room) else TOUCHED
