"""Two boxes: the sides of the body that one makes when it is swept over the other, and the points that meet there.

That body has fifteen pairs of sides: the faces of each box, and a parallelogram for each two edges. Its nearest side
is the shortest way out for boxes in each other, and for boxes apart whose nearest points lie on it.

Inside, everything is turned round so that the face, or the edge of the first box, is the one of the z axis.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import helper, part
from .boxes import sign, slab
from .rounding import TIE, clamp, in_world


@helper
def turned(k, v):
    """The numbers of v turned round so that number k is the last."""
    if k == 0:
        return v[1], v[2], v[0]
    if k == 1:
        return v[2], v[0], v[1]
    return v


@helper
def turned_back(k, v):
    if k == 0:
        return v[2], v[0], v[1]
    if k == 1:
        return v[1], v[2], v[0]
    return v


@helper
def edges_side(cx, cy, hx, hy, u, p, q, hp, hq):
    """How far a box is off the side of its edges along u and the edges of the first along z; -inf if parallel.

    Args:
        cx, cy: its centre; u, p, q: (x, y) of its axes; hp, hq: half its edges along p and q.
    """
    k = math.sqrt(u[0] * u[0] + u[1] * u[1])
    if k <= TIE:
        return -math.inf
    # made a unit vector first: any direction gives a true bound, if both boxes are measured along the very same one
    x, y = u[1] / k, -u[0] / k
    reach = hp * abs(p[0] * x + p[1] * y) + hq * abs(q[0] * x + q[1] * y)
    return abs(cx * x + cy * y) - hx * abs(x) - hy * abs(y) - reach


@part
def on_edges_of(X, k, m, d, c, h, u, v, w, o, room):
    """The gap d on the side of the edges along axis k of a box at X and axis m of the other, and whether both are met.

    Args:
        c, u, v, w, o: the other box in the frame of the first: centre, axes, and half its edges.
    """
    cx, cy, cz = turned(k, c)
    hx, hy, hz = turned(k, h)
    hp, hq, hu = turned(m, o)
    if m == 0:
        u, v, w = v, w, u
    elif m == 1:
        u, v, w = w, u, v
    px, py, pz = turned(k, u)
    qx, qy, qz = turned(k, v)
    ux, uy, uz = turned(k, w)
    s = math.sqrt(ux * ux + uy * uy)
    x, y = uy / s, -ux / s
    if cx * x + cy * y < 0.0:
        x, y = -x, -y
    p, q = -hp * sign(px * x + py * y), -hq * sign(qx * x + qy * y)
    fx, fy, fz = cx + p * px + q * qx, cy + p * py + q * qy, cz + p * pz + q * qz
    t = ((sign(x) * hx - fx) * ux + (sign(y) * hy - fy) * uy) / (s * s)
    within = abs(t) <= hu + room and abs(fz + t * uz) <= hz + room
    t = clamp(t, hu)
    a = (fx + t * ux - d * x, fy + t * uy - d * y, fz + t * uz)
    return in_world(X, d, turned_back(k, (x, y, 0.0)), turned_back(k, a)), within


@part
def on_face_of(X, k, d, c, h, u, v, w, o, room):
    """The gap d on the side of face k of a box at X, and whether the lowest point of the other is over that face.

    Where an edge or a face of the other is level, its lowest point is the middle of what is over the face.

    Args:
        c, u, v, w, o: the other box in the frame of the first: centre, axes, and half its edges.
    """
    cx, cy, cz = turned(k, c)
    hx, hy, _ = turned(k, h)
    ux, uy, uz = turned(k, u)
    px, py, pz = turned(k, v)
    qx, qy, qz = turned(k, w)
    hu, hp, hq = o
    s = sign(cz)
    level_u, level_p, level_q = abs(uz) * hu <= room, abs(pz) * hp <= room, abs(qz) * hq <= room
    steepest = max(abs(uz), abs(pz), abs(qz))  # never level, even where it has no length
    level_u = level_u and abs(uz) < steepest
    level_p = level_p and abs(pz) < steepest
    level_q = level_q and abs(qz) < steepest
    x, y, z = cx, cy, cz
    if not level_u:
        t = -s * sign(uz) * hu
        x, y, z = x + t * ux, y + t * uy, z + t * uz
    if not level_p:
        t = -s * sign(pz) * hp
        x, y, z = x + t * px, y + t * py, z + t * pz
    if not level_q:
        t = -s * sign(qz) * hq
        x, y, z = x + t * qx, y + t * qy, z + t * qz
    if level_u and level_p:
        x, y, within = overlap(x, y, ux * hu, uy * hu, px * hp, py * hp, hx + room, hy + room)
    elif level_u and level_q:
        x, y, within = overlap(x, y, ux * hu, uy * hu, qx * hq, qy * hq, hx + room, hy + room)
    elif level_p and level_q:
        x, y, within = overlap(x, y, px * hp, py * hp, qx * hq, qy * hq, hx + room, hy + room)
    elif level_u:
        x, y, within = overlap_of_line(x, y, ux * hu, uy * hu, hx + room, hy + room)
    elif level_p:
        x, y, within = overlap_of_line(x, y, px * hp, py * hp, hx + room, hy + room)
    elif level_q:
        x, y, within = overlap_of_line(x, y, qx * hq, qy * hq, hx + room, hy + room)
    else:
        within = abs(x) <= hx + room and abs(y) <= hy + room
    return in_world(X, d, turned_back(k, (0.0, 0.0, s)), turned_back(k, (x, y, z - d * s))), within


@helper
def overlap_of_line(x, y, ux, uy, hx, hy):
    """The middle of the line (x, y) +- u within a rectangle, and whether there is any."""
    s, t = slab(x, ux, hx, -1.0, 1.0)
    s, t = slab(y, uy, hy, s, t)
    middle = clamp(0.5 * (s + t), 1.0)
    return x + middle * ux, y + middle * uy, s <= t


@part
def overlap(x, y, ux, uy, px, py, hx, hy):
    """The middle of the corners of what a parallelogram (x, y) +- u +- p and a rectangle share, and if they share any.

    The parallelogram is cut off at one side of the rectangle after the other.
    """
    corners = np.empty((18, 2))  # those before and after a cut take turns in its two halves
    for k in range(4):
        a, b = 1.0 if k < 2 else -1.0, -1.0 if k == 1 or k == 2 else 1.0
        corners[k, 0], corners[k, 1] = x + a * ux + b * px, y + a * uy + b * py
    old, new, count = 0, 9, 4
    for side in range(4):
        axis, outward, limit = side % 2, 1.0 if side < 2 else -1.0, hx if side % 2 == 0 else hy
        kept = new
        for k in range(count):
            this, following = old + k, old + (k + 1 if k + 1 < count else 0)
            a, b = outward * corners[this, axis] - limit, outward * corners[following, axis] - limit
            if a <= 0.0:
                corners[kept, 0], corners[kept, 1] = corners[this, 0], corners[this, 1]
                kept += 1
            if (a < 0.0 and b > 0.0) or (a > 0.0 and b < 0.0):
                t = a / (a - b)
                corners[kept, 0] = corners[this, 0] + t * (corners[following, 0] - corners[this, 0])
                corners[kept, 1] = corners[this, 1] + t * (corners[following, 1] - corners[this, 1])
                kept += 1
        old, new, count = new, old, kept - new
        if count == 0:
            return x, y, False
    sum_x, sum_y = 0.0, 0.0
    for k in range(count):
        sum_x += corners[old + k, 0]
        sum_y += corners[old + k, 1]
    return sum_x / count, sum_y / count, True
