"""The shortest way between two cores: by itself for cylinders, which `gjk.py` comes to slowly, else by that walk.

What is found for a cylinder has been proven from both sides; where there is no proof, the walk goes on instead.
"""

from __future__ import annotations

import math

from ..compiler import part
from .cylinder_corners import way_to_corners
from .gjk import walk
from .rims import NO_PROOF, inverse, turned, way_to_cylinder
from .shape_layout import CYLINDER


@part
def shortest_way(a, U, b, V, T, W, x, y, z):
    """As `walk`, with nothing of use left in W."""
    is_first, is_second = a[0] == CYLINDER and a[1] > 0.0, b[0] == CYLINDER and b[1] > 0.0
    ex, ey, ez, px, py, pz, size = NO_PROOF
    if is_first and is_second:
        ex, ey, ez, px, py, pz, size = way_to_cylinder(a[1], a[2], b[1], b[2], T)
    elif is_first or is_second:
        cylinder, other, Q, seen = (a, b, V, T) if is_first else (b, a, U, inverse(T))
        ex, ey, ez, px, py, pz, size = way_to_corners(cylinder[1], cylinder[2], other, Q, seen, W)
    if size < 0.0:
        return walk(a, U, b, V, T, W, math.inf, x, y, z)
    if is_first:
        return -ex, -ey, -ez, px - ex, py - ey, pz - ez, size
    ex, ey, ez = turned(T, ex, ey, ez)
    px, py, pz = turned(T, px, py, pz)
    return ex, ey, ez, px + T[9], py + T[10], pz + T[11], size
