"""How far points and segments are off a cylinder, in its frame: it is round about z.

The vector from the nearest point of the cylinder to a point x is known in closed form. Half its squared length is
convex, and its derivative by x is the vector itself: so the nearest point of a segment is where that is at a right
angle to the segment, a root of a rising function of one number.
"""

from __future__ import annotations

import math

from ..compiler import helper, part
from .rounding import clamp

STEPS = 40
LAST = 1e-8
"""Newton's steps that are shorter than this share of a segment are the last: the next would be the square of it."""


@helper
def off_cylinder(radius, half, x, y, z):
    """The way to a point from the nearest point of a cylinder; 0 inside."""
    across = math.sqrt(x * x + y * y)
    share = 1.0 - radius / across if across > radius else 0.0
    return share * x, share * y, z - clamp(z, half)


@part
def nearest_on_segment(radius, half, px, py, pz, ux, uy, uz):
    """Where on the segment from p to p + u the nearest point to a cylinder is: t from 0 to 1, and the way to it."""
    turn = ux * ux + uy * uy
    t, low, high, before, is_last = 0.0, 0.0, 1.0, 0.0, False
    ex, ey, ez = 0.0, 0.0, 0.0
    for k in range(STEPS):
        x, y, z = px + t * ux, py + t * uy, pz + t * uz
        across = math.sqrt(x * x + y * y)
        share = 1.0 - radius / across if across > radius else 0.0
        ex, ey, ez = share * x, share * y, z - clamp(z, half)
        rise = ex * ux + ey * uy + ez * uz
        if is_last or rise == 0.0 or (k == 0 and rise > 0.0) or (k == 1 and rise < 0.0):
            break
        if k == 0:
            before, t = rise, 1.0
            continue
        if k == 1:  # first where it is nearest to the axis: there it ends, beside the cylinder
            t = -(px * ux + py * uy) / turn if turn > 0.0 else 0.5
            if not 0.0 < t < 1.0:
                t = before / (before - rise)
            continue
        low, high = (t, high) if rise < 0.0 else (low, t)
        bend = uz * uz if ez != 0.0 else 0.0
        if share > 0.0:
            out = (x * ux + y * uy) / across
            bend += out * out + share * (turn - out * out)
        step = -rise / bend if bend > 0.0 else math.inf
        is_last = abs(step) < LAST
        t += step
        if not low < t < high:
            t = 0.5 * (low + high)
            is_last = t == low or t == high
    return t, ex, ey, ez
