"""Two boxes: the points of one that are nearest to the other, found among its corners and along its edges.

A box is at c in the frame of the other, has the axes u, v, w and half the edges o; half the edges of the other are h.
"""

from __future__ import annotations

import math

from ..compiler import helper, part
from .boxes import beyond, lowest_point


@helper
def point_of(c, u, v, w, p, q, r):
    return (
        c[0] + p * u[0] + q * v[0] + r * w[0],
        c[1] + p * u[1] + q * v[1] + r * w[1],
        c[2] + p * u[2] + q * v[2] + r * w[2],
    )


@helper
def squared_distance(x, h):
    a, b, c = beyond(x[0], h[0]), beyond(x[1], h[1]), beyond(x[2], h[2])
    return a * a + b * b + c * c


@part
def nearest_corner(c, h, u, v, w, o):
    """The corner nearest to the other box, and its distance."""
    best, found = math.inf, c
    for k in range(8):
        x = point_of(c, u, v, w, -o[0] if k & 1 else o[0], -o[1] if k & 2 else o[1], -o[2] if k & 4 else o[2])
        distance = squared_distance(x, h)
        if distance < best:
            best, found = distance, x
    return math.sqrt(best), found


@part
def nearest_on_edges(c, h, u, v, w, o):
    """The point of all twelve edges nearest to the other box, and its distance."""
    best, found = math.inf, c
    for _ in range(3):
        for k in range(4):
            p, q = -1.0 if k & 1 else 1.0, -1.0 if k & 2 else 1.0
            start = point_of(c, u, v, w, p * o[0], q * o[1], 0.0)
            t = lowest_point(start, w, h, o[2])
            x = (start[0] + t * w[0], start[1] + t * w[1], start[2] + t * w[2])
            distance = squared_distance(x, h)
            if distance < best:
                best, found = distance, x
        u, v, w = v, w, u
        o = (o[1], o[2], o[0])
    return math.sqrt(best), found
