"""Gaps to a height field: ground as a grid, each cell two triangles, solid from there down.

What is below a triangle is a convex prism. The distance to the ground is that to the nearest prism; prisms whose boxes
are farther than the best so far are not looked at. In the ground, the deepest prism counts. The shortest way out of a
prism may lead through a wall into the next one; then it is lifted out instead, and the gap is how deep it is below the
plane that it leaves last.
"""

from __future__ import annotations

import math

import numpy as np

from mechanik.kernels.compiler import helper, part
from mechanik.kernels.distance.gjk import walk
from mechanik.kernels.distance.prisms import box_about, cells_near, distance_of_boxes, is_open, put_prism, top_of
from mechanik.kernels.distance.settling import APART, core_gap, shifted
from mechanik.kernels.distance.shape_layout import HULL
from mechanik.kernels.distance.support import farthest_difference

PRISM = (HULL, 0.0, 0.0, 0.0, 0, 6)
BESIDE = 1e-7
"""Share of the size by which a point is moved off a surface, to see what is there."""
LIFTS = 60


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
        return deepest_prism(P, at, b, V, T, box, Q, W)
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
    vx, vy, vz, _, _, _, size = walk(PRISM, Q, b, V, shifted(T, -x, -y, -z), W, beyond)
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
    found = (math.inf, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    cells = (c1 - c0) * (r1 - r0)
    for n in range(-1, cells):  # the highest first: how far a cell rises above the core bounds its depth
        c, r = (column, row) if n < 0 else (c0 + n % (c1 - c0), r0 + n // (c1 - c0))
        if box[2] - top_of(P, at, c, r) >= found[0]:
            continue
        for k in range(2):
            other = prism_gap(P, at, c, r, k, b, V, T, Q, W)
            if other[0] < found[0]:
                found = other
    return found


@part
def prism_gap(P, at, c, r, half, b, V, T, Q, W):
    """The gap between a core and a prism, out of which no way leads through a wall to the next."""
    x, y, z = put_prism(P, at, c, r, half, Q)
    T = shifted(T, -x, -y, -z)
    found = core_gap(PRISM, Q, b, V, T, W)
    d, nx, ny, nz, ax, ay, az, _, _, _ = found
    if d >= 0.0:
        return put_back(found, x, y, z)
    e = BESIDE * (abs(Q[2, 0]) + abs(Q[2, 1]))
    if is_open(P, at, x + ax + e * nx, y + ay + e * ny, z + az + e * nz):
        return put_back(found, x, y, z)
    return put_back(lifted(b, V, T, Q, W), x, y, z)


@part
def lifted(b, V, T, Q, W):
    """The gap of a core in a prism, below the plane along which it leaves if it is lifted.

    Newton's method from above: each plane that parts the two says how high it must go at most.
    """
    _, _, top, _, _, _ = farthest_difference(PRISM, Q, b, V, T, 0.0, 0.0, 1.0)
    size = top + abs(Q[2, 0]) + abs(Q[2, 1])
    lift, x, y, z, depth = top, 0.0, 0.0, 1.0, top
    high = top + APART * size
    for _ in range(LIFTS):
        vx, vy, vz, _, _, _, found = walk(PRISM, Q, b, V, shifted(T, 0.0, 0.0, high), W, math.inf)
        d = math.sqrt(vx * vx + vy * vy + vz * vz)
        if found <= 0.0 or d < 1e-9 * size or not -vz > 1e-6 * d:
            break
        nx, ny, nz = -vx / d, -vy / d, -vz / d
        wx, wy, wz, _, _, _ = farthest_difference(PRISM, Q, b, V, T, nx, ny, nz)
        h = wx * nx + wy * ny + wz * nz
        if not h / nz < high - 1e-14 * size:
            break
        high = h / nz
        if high <= lift:
            lift, x, y, z, depth = high, nx, ny, nz, h
    s = lift + BESIDE * size
    vx, vy, vz, px, py, pz, _ = walk(PRISM, Q, b, V, shifted(T, 0.0, 0.0, s), W, math.inf)
    bx, by, bz = px - vx, py - vy, pz - vz - s
    return -depth, x, y, z, bx + depth * x, by + depth * y, bz + depth * z, bx, by, bz


@helper
def put_back(found, x, y, z):
    d, nx, ny, nz, ax, ay, az, bx, by, bz = found
    return d, nx, ny, nz, ax + x, ay + y, az + z, bx + x, by + y, bz + z
