"""The height of ground that is known at the corners of square cells, and its slope.

Between the corners it follows the cubics of Catmull and Rom (1974), which go through all heights and have no kinks.
Beyond the edge the outermost heights go on for ever, so that the ground is flat from one cell behind the edge.
"""

from __future__ import annotations

import math

from .compiler import helper, part
from .problem import CELL, FIELD_COLUMNS, FIELD_ROWS, FIELD_X, FIELD_Y, HEIGHTS


@helper
def inside(k, count):
    return min(max(k, 0), count - 1)


@helper
def shares(t):
    """How much each of four heights in a row counts, t of the way from the second to the third; and how that moves."""
    return (
        0.5 * t * (t * (2.0 - t) - 1.0), 0.5 * (t * t * (3.0 * t - 5.0) + 2.0), 0.5 * t * (t * (4.0 - 3.0 * t) + 1.0),
        0.5 * t * t * (t - 1.0),
        0.5 * (t * (4.0 - 3.0 * t) - 1.0), 0.5 * t * (9.0 * t - 10.0), 0.5 * (t * (8.0 - 9.0 * t) + 1.0),
        0.5 * t * (3.0 * t - 2.0),
    )  # fmt: skip


@helper
def cell_of(x, origin, size, count):
    """The cell in which x lies, and how far along; two cells outside it is as flat as anywhere farther out."""
    u = (x - origin) / size
    u = u if u > -2.0 else -2.0  # in this order NaN ends here too
    u = u if u < count + 1.0 else count + 1.0
    k = math.floor(u)
    return int(k), u - k


@part
def over_ground(F, field, x, y):
    """Height of a field at (x, y), and how it changes along x and along y."""
    columns, rows, size = int(F[field + FIELD_COLUMNS]), int(F[field + FIELD_ROWS]), F[field + CELL]
    i, s = cell_of(x, F[field + FIELD_X], size, columns)
    j, t = cell_of(y, F[field + FIELD_Y], size, rows)
    a, b, c, d, da, db, dc, dd = shares(s)
    along = shares(t)
    c0, c1, c2, c3 = inside(i - 1, columns), inside(i, columns), inside(i + 1, columns), inside(i + 2, columns)
    height, by_x, by_y = 0.0, 0.0, 0.0
    for k in range(4):
        line = field + HEIGHTS + columns * inside(j - 1 + k, rows)
        h0, h1, h2, h3 = F[line + c0], F[line + c1], F[line + c2], F[line + c3]
        h = a * h0 + b * h1 + c * h2 + d * h3
        height += along[k] * h
        by_x += along[k] * (da * h0 + db * h1 + dc * h2 + dd * h3)
        by_y += along[4 + k] * h
    return height, by_x / size, by_y / size
