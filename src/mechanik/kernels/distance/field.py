"""Gaps to a height field: ground as a grid, each cell two triangles, solid from there down.

What is below a triangle is a convex prism. The distance to the ground is that to the nearest prism; prisms whose boxes
are farther than the best so far are not looked at. In the ground, the deepest prism counts. The shortest way out of a
prism may lead through a wall into the next one; so the ways out are along its triangle's normal, along the plane that
is left last if the core is lifted, and through the bottom and the rim of the field.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import helper, part
from .gjk import walk
from .prisms import box_about, cells_near, distance_of_boxes, put_prism, top_of
from .settling import APART, core_gap, settled, shifted
from .shape_layout import HULL
from .support import farthest_difference

PRISM = (HULL, 0.0, 0.0, 0.0, 0, 6)
NOTHING = (math.inf, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
LIFTS = 60
CLOSE = 1e-9
SAME = 1.0 - 1e-10
"""Cosine of how far a plane may turn while its normal is settled: farther, and it has slipped round an edge."""


@part
def ground_gap(P, at, b, V, T):
    """The gap between the ground and a core: (gap, normal, point of the ground, point of the core), in the field.

    Args:
        P, at: the field, see `prisms.py`.
        b, V: the core and its points; T: its pose in the field.
    """
    Q, W = np.empty((6, 3)), np.empty((4, 7))
    box = box_about(b, V, T)
    best, c, r, half = nearest_prism(P, at, b, V, T, box, Q, W)
    if best == 0.0:
        found = deepest_prism(P, at, b, V, T, box, Q, W)
        if found[0] < math.inf:
            return found
    x, y, z = put_prism(P, at, c, r, half, Q)
    return put_back(core_gap(PRISM, Q, b, V, shifted(T, -x, -y, -z), W), x, y, z)


@part
def nearest_prism(P, at, b, V, T, box, Q, W):
    """How far the ground is from a core, 0 if they touch, and the nearest prism: column, row and half."""
    c0, c1, r0, r1 = cells_near(P, at, box, 0.0)
    near, column, row, half = math.inf, c0, r0, 0
    for r in range(r0, r1):  # the cell to begin with
        for c in range(c0, c1):
            far = distance_of_boxes(P, at, c, r, box)
            if far < near:
                near, column, row = far, c, r
    best = math.inf
    for k in range(2):
        d = prism_distance(P, at, column, row, k, b, V, T, Q, W, best)
        if d < best:
            best, half = d, k
    c0, c1, r0, r1 = cells_near(P, at, box, best)
    for r in range(r0, r1):
        for c in range(c0, c1):
            if distance_of_boxes(P, at, c, r, box) >= best:
                continue
            for k in range(2):
                d = prism_distance(P, at, c, r, k, b, V, T, Q, W, best)
                if d < best:
                    best, column, row, half = d, c, r, k
    return best, column, row, half


@part
def prism_distance(P, at, c, r, half, b, V, T, Q, W, beyond):
    """How far a prism is from a core: 0 if they touch; any number above `beyond` if it is more than that."""
    x, y, z = put_prism(P, at, c, r, half, Q)
    vx, vy, vz, _, _, _, size = walk(PRISM, Q, b, V, shifted(T, -x, -y, -z), W, beyond, 0.0, 0.0, 1.0)
    return math.sqrt(vx * vx + vy * vy + vz * vz) if size > 0.0 else 0.0


@part
def deepest_prism(P, at, b, V, T, box, Q, W):
    """The gap of a core that is in the ground."""
    c0, c1, r0, r1 = cells_near(P, at, box, 0.0)
    column, row = c0, r0
    for r in range(r0, r1):
        for c in range(c0, c1):
            if top_of(P, at, c, r) > top_of(P, at, column, row):
                column, row = c, r
    found = NOTHING
    cells = (c1 - c0) * (r1 - r0)
    for n in range(-1, cells):  # the highest first: how far a cell rises above the core bounds its depth
        c, r = (column, row) if n < 0 else (c0 + n % (c1 - c0), r0 + n // (c1 - c0))
        if box[2] - top_of(P, at, c, r) >= found[0]:
            continue
        for k in range(2):
            other = prism_gap(P, at, c, r, k, b, V, T, Q, W, found[0])
            if other[0] < found[0]:
                found = other
    return found


@part
def prism_gap(P, at, c, r, half, b, V, T, Q, W, least):
    """The gap between a core and a prism, by ways that lead into the open; inf if they are apart, or no deeper than
    `least`."""
    x, y, z = put_prism(P, at, c, r, half, Q)
    T = shifted(T, -x, -y, -z)
    s = 1.0 - 2.0 * half  # the corners of half 0 go round the normal that looks up
    nx = s * (Q[1, 1] * Q[2, 2] - Q[1, 2] * Q[2, 1])
    ny = s * (Q[1, 2] * Q[2, 0] - Q[1, 0] * Q[2, 2])
    nz = s * (Q[1, 0] * Q[2, 1] - Q[1, 1] * Q[2, 0])
    length = math.sqrt(nx * nx + ny * ny + nz * nz)
    found = by_plane(b, V, T, Q, nx / length, ny / length, nz / length)
    if found[0] >= least:
        return NOTHING
    _, _, _, _, _, _, size = walk(PRISM, Q, b, V, T, W, 0.0, 0.0, 0.0, 1.0)
    if size > 0.0:
        return NOTHING
    other = lifted(b, V, T, Q, W)
    if other[0] > found[0]:
        found = other
    ux, uy = rim_along(half == 1, c, at[1]), rim_along(half == 0, r, at[2])
    for k in range(3):  # through the bottom; a prism has one wall along x and one along y
        wx, wy, wz = ux * (k == 1), uy * (k == 2), -1.0 * (k == 0)
        if wx != 0.0 or wy != 0.0 or wz != 0.0:
            other = by_plane(b, V, T, Q, wx, wy, wz)
            if other[0] > found[0]:
                found = other
    return put_back(found, x, y, z)


@helper
def rim_along(is_low, k, cells):
    """-1 if the wall of a prism at the low end of its cell is on the rim, 1 for one at the high end, else 0."""
    if is_low:
        return -1.0 if k == 0 else 0.0
    return 1.0 if k == cells - 1 else 0.0


@part
def by_plane(b, V, T, Q, nx, ny, nz):
    """The gap between a prism and a core if it is left along a normal of the prism."""
    wx, wy, wz, ax, ay, az = farthest_difference(PRISM, Q, b, V, T, nx, ny, nz)
    d = -(wx * nx + wy * ny + wz * nz)
    bx, by, bz = ax - wx, ay - wy, az - wz
    return d, nx, ny, nz, bx - d * nx, by - d * ny, bz - d * nz, bx, by, bz


@part
def lifted(b, V, T, Q, W):
    """The gap of a core in a prism, by the plane that it leaves last if it is lifted.

    Newton's method from above: each plane that parts the two says how high it must go at most.
    """
    _, _, top, _, _, _ = farthest_difference(PRISM, Q, b, V, T, 0.0, 0.0, 1.0)
    size = top + abs(Q[2, 0]) + abs(Q[2, 1])
    x, y, z, depth, high = 0.0, 0.0, 1.0, top, top + APART * size
    last = high
    for _ in range(LIFTS):
        vx, vy, vz, _, _, _, found = walk(PRISM, Q, b, V, shifted(T, 0.0, 0.0, high), W, math.inf, x, y, z)
        d = math.sqrt(vx * vx + vy * vy + vz * vz)
        if found <= 0.0 or d < CLOSE * size or not -vz > CLOSE * d:
            break
        nx, ny, nz = -vx / d, -vy / d, -vz / d
        wx, wy, wz, _, _, _ = farthest_difference(PRISM, Q, b, V, T, nx, ny, nz)
        h = wx * nx + wy * ny + wz * nz
        if not h / nz < high - 1e-14 * size:
            break
        x, y, z, depth, last, high = nx, ny, nz, h, high, h / nz
    found = settled(PRISM, Q, b, V, T, W, x, y, z, depth, size)
    if found[1] * x + found[2] * y + found[3] * z > SAME:
        return found
    walk(PRISM, Q, b, V, shifted(T, 0.0, 0.0, last), W, math.inf, x, y, z)
    return by_corners(W, last, x, y, z, depth)


@helper
def by_corners(W, high, x, y, z, depth):
    """The gap along a normal, with points on the planes or edges of the corners where a core and a prism meet.

    The way from one point to the other may end beside both shapes: they are where the gap has its derivative.

    Args:
        W: the simplex after a walk that began `high` above.
    """
    ex, ey, ez = W[1, 0] - W[0, 0], W[1, 1] - W[0, 1], W[1, 2] - W[0, 2]
    fx, fy, fz = W[2, 0] - W[0, 0], W[2, 1] - W[0, 1], W[2, 2] - W[0, 2]
    px, py, pz = depth * x - W[0, 0], depth * y - W[0, 1], depth * z - high - W[0, 2]
    nx, ny, nz = ey * fz - ez * fy, ez * fx - ex * fz, ex * fy - ey * fx
    area = nx * nx + ny * ny + nz * nz
    u, v = 0.0, 0.0
    if W[2, 6] > 0.0 and area > 0.0:
        u = ((py * fz - pz * fy) * nx + (pz * fx - px * fz) * ny + (px * fy - py * fx) * nz) / area
        v = ((ey * pz - ez * py) * nx + (ez * px - ex * pz) * ny + (ex * py - ey * px) * nz) / area
    elif W[1, 6] > 0.0:
        u = (px * ex + py * ey + pz * ez) / (ex * ex + ey * ey + ez * ez)
    ax = W[0, 3] + u * (W[1, 3] - W[0, 3]) + (v * (W[2, 3] - W[0, 3]) if v != 0.0 else 0.0)
    ay = W[0, 4] + u * (W[1, 4] - W[0, 4]) + (v * (W[2, 4] - W[0, 4]) if v != 0.0 else 0.0)
    az = W[0, 5] + u * (W[1, 5] - W[0, 5]) + (v * (W[2, 5] - W[0, 5]) if v != 0.0 else 0.0)
    return -depth, x, y, z, ax, ay, az, ax - depth * x, ay - depth * y, az - depth * z


@helper
def put_back(found, x, y, z):
    d, nx, ny, nz, ax, ay, az, bx, by, bz = found
    return d, nx, ny, nz, ax + x, ay + y, az + z, bx + x, by + y, bz + z
