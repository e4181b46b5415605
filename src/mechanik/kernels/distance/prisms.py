"""The grid of a height field: which cells are near a box, and the prism below each triangle.

A cell is cut from its corner at low x, low y to that at high x, high y, as MuJoCo does; half 0 is the triangle at low y
and half 1 the one at high y. `at` is (first row in P, cells along x, cells along y).
"""

from __future__ import annotations

import math

from ..compiler import helper, part
from .support import farthest


@helper
def corner(at, c, r):
    """The row of P of a corner."""
    return at[0] + r * (at[1] + 1) + c


@helper
def bottom_of(P, at):
    return P[at[0] + (at[1] + 1) * (at[2] + 1), 0]


@helper
def top_of(P, at, c, r):
    """The highest corner of a cell."""
    k, l = corner(at, c, r), corner(at, c, r + 1)
    return max(P[k, 2], P[k + 1, 2], P[l, 2], P[l + 1, 2])


@part
def put_prism(P, at, c, r, half, Q):
    """Write the six corners of a prism to Q, seen from the cell's first corner, which is returned: small numbers."""
    k, m = corner(at, c, r), corner(at, c + 1, r + 1)
    l = corner(at, c + 1, r) if half == 0 else corner(at, c, r + 1)
    x, y, z = P[k, 0], P[k, 1], P[k, 2]
    down = bottom_of(P, at) - z
    Q[0, 0], Q[0, 1], Q[0, 2] = 0.0, 0.0, 0.0
    Q[1, 0], Q[1, 1], Q[1, 2] = P[l, 0] - x, P[l, 1] - y, P[l, 2] - z
    Q[2, 0], Q[2, 1], Q[2, 2] = P[m, 0] - x, P[m, 1] - y, P[m, 2] - z
    for n in range(3):
        Q[n + 3, 0], Q[n + 3, 1], Q[n + 3, 2] = Q[n, 0], Q[n, 1], down
    return x, y, z


@part
def box_about(b, V, T):
    """The smallest box along the axes that holds a core of pose T: its low and its high corner."""
    lx, hx = -end_along(b, V, T, -1.0, 0.0, 0.0), end_along(b, V, T, 1.0, 0.0, 0.0)
    ly, hy = -end_along(b, V, T, 0.0, -1.0, 0.0), end_along(b, V, T, 0.0, 1.0, 0.0)
    lz, hz = -end_along(b, V, T, 0.0, 0.0, -1.0), end_along(b, V, T, 0.0, 0.0, 1.0)
    return lx, ly, lz, hx, hy, hz


@part
def end_along(b, V, T, x, y, z):
    """How far a core of pose T reaches along a direction."""
    u, v, w = T[0] * x + T[3] * y + T[6] * z, T[1] * x + T[4] * y + T[7] * z, T[2] * x + T[5] * y + T[8] * z
    px, py, pz = farthest(b, V, u, v, w)
    return u * px + v * py + w * pz + T[9] * x + T[10] * y + T[11] * z


@helper
def cells_near(P, at, box, reach):
    """The cells that are not farther than `reach` from a box, seen from above: columns c0 to c1, rows r0 to r1 (not
    included); at least one cell, the nearest."""
    k, l = corner(at, 0, 0), corner(at, at[1], at[2])
    dx, dy = (P[l, 0] - P[k, 0]) / at[1], (P[l, 1] - P[k, 1]) / at[2]
    c0, c1 = span(box[0] - reach - P[k, 0], box[3] + reach - P[k, 0], dx, at[1])
    r0, r1 = span(box[1] - reach - P[k, 1], box[4] + reach - P[k, 1], dy, at[2])
    return c0, c1, r0, r1


@helper
def span(low, high, step, count):
    # clipped as floats first: an infinite reach has no integer
    first = int(min(max(low / step - 1e-9, 0.0), count - 1.0))
    last = int(min(max(high / step + 1e-9, 0.0), count - 1.0))
    return first, last + 1


@helper
def distance_of_boxes(P, at, c, r, box):
    """A bound from below for how far a cell is from what is in a box."""
    k, l = corner(at, c, r), corner(at, c + 1, r + 1)
    x = max(P[k, 0] - box[3], box[0] - P[l, 0], 0.0)
    y = max(P[k, 1] - box[4], box[1] - P[l, 1], 0.0)
    z = max(bottom_of(P, at) - box[5], box[2] - top_of(P, at, c, r), 0.0)
    return math.sqrt(x * x + y * y + z * z)
