"""The way from a cylinder to a core with corners, a segment, a box or a hull, that is apart from it.

As in `gjk.py` a simplex walks to the nearest point, but one of corners of the core alone: the way from the cylinder to
an edge is found whole (`off_cylinder.py`), and to the inside of a triangle it can only be along its normal. So there
are as many steps as the core has corners on the way, and none for the roundness of the cylinder.
"""

from __future__ import annotations

import math

from ..compiler import helper, part
from .off_cylinder import nearest_on_segment, off_cylinder
from .support import farthest

STEPS = 24
PROVEN = 4e-15
"""The bounds from both sides may differ by this share of the size."""
LEVEL = 1e-15
"""Sine of an angle below which a triangle is along the axis of a cylinder, or at a right angle to it."""
TOUCHING = 1e-13


@helper
def nearest_corner(b, V, T, x, y, z):
    """The corner of the core b, whose pose is T, that is nearest along a direction."""
    px, py, pz = farthest(
        b, V, -(T[0] * x + T[3] * y + T[6] * z), -(T[1] * x + T[4] * y + T[7] * z), -(T[2] * x + T[5] * y + T[8] * z)
    )
    return (
        T[0] * px + T[1] * py + T[2] * pz + T[9],
        T[3] * px + T[4] * py + T[5] * pz + T[10],
        T[6] * px + T[7] * py + T[8] * pz + T[11],
    )


@part
def to_triangle(radius, half, W, i, j, k):
    """The way from a cylinder to the inside of a triangle, along its normal: whether there is one, the way, its end."""
    px, py, pz = W[i, 0], W[i, 1], W[i, 2]
    ex, ey, ez = W[j, 0] - px, W[j, 1] - py, W[j, 2] - pz
    fx, fy, fz = W[k, 0] - px, W[k, 1] - py, W[k, 2] - pz
    nx, ny, nz = ey * fz - ez * fy, ez * fx - ex * fz, ex * fy - ey * fx
    area = math.sqrt(nx * nx + ny * ny + nz * nz)
    if area <= 0.0:
        return False, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    nx, ny, nz = nx / area, ny / area, nz / area
    d, s = px * nx + py * ny + pz * nz, 1.0 / area
    if d < 0.0:
        d, s, nx, ny, nz = -d, -s, -nx, -ny, -nz
    # the farthest point of the cylinder; if a face or a line of it is, its middle: else the nearest is on an edge
    across = math.sqrt(nx * nx + ny * ny)
    scale = radius / across if across > LEVEL else 0.0
    x, y = scale * nx, scale * ny
    z = math.copysign(half, nz) if abs(nz) > LEVEL else 0.0
    d -= x * nx + y * ny + z * nz
    if d <= 0.0:
        return False, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    x, y, z = x + d * nx, y + d * ny, z + d * nz
    qx, qy, qz = x - px, y - py, z - pz
    u = ((qy * fz - qz * fy) * nx + (qz * fx - qx * fz) * ny + (qx * fy - qy * fx) * nz) * s
    v = ((ey * qz - ez * qy) * nx + (ez * qx - ex * qz) * ny + (ex * qy - ey * qx) * nz) * s
    return u >= 0.0 and v >= 0.0 and u + v <= 1.0, d * nx, d * ny, d * nz, x, y, z


@part
def way_to_corners(radius, half, b, V, T, W):
    """The way from a cylinder to a core with corners, and its end, in the frame of the cylinder.

    Args:
        b, V, T: the core, its points and its pose.
        W: (4, 7), to work in.
    Returns:
        ex, ey, ez, x, y, z, size: the size is 0 if they touch, and below 0 if there is no proof.
    """
    ex, ey, ez = off_cylinder(radius, half, T[9], T[10], T[11])
    if ex == 0.0 and ey == 0.0 and ez == 0.0:
        ex, ey, ez = T[9], T[10], T[11]
    x, y, z, size, n, near = 0.0, 0.0, 0.0, radius + half, 0, math.inf
    for _ in range(STEPS):
        wx, wy, wz = nearest_corner(b, V, T, ex, ey, ez)
        size = max(size, radius + half + abs(wx) + abs(wy) + abs(wz))
        if n > 0:
            d = math.sqrt(near)
            if d <= TOUCHING * size:
                return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            if (x - wx) * ex + (y - wy) * ey + (z - wz) * ez <= PROVEN * size * d:
                return ex, ey, ez, x, y, z, size
        W[n, 0], W[n, 1], W[n, 2] = wx, wy, wz
        before, near, left, i, j = near, math.inf, 0, -1, -1
        for k in range(n - 1):  # the inside of a triangle is nearer than its edges
            for l in range(k + 1, n):
                fits, fx, fy, fz, qx, qy, qz = to_triangle(radius, half, W, k, l, n)
                far = fx * fx + fy * fy + fz * fz
                if fits and far < near:
                    near, left, i, j = far, 2, k, l
                    ex, ey, ez, x, y, z = fx, fy, fz, qx, qy, qz
        g, h = i, j
        for k in range(max(n, 1)):
            if k != g and k != h:
                ux, uy, uz = W[k, 0] - wx, W[k, 1] - wy, W[k, 2] - wz
                t, fx, fy, fz = nearest_on_segment(radius, half, wx, wy, wz, ux, uy, uz)
                far = fx * fx + fy * fy + fz * fz
                if far < near:
                    near, left, i = far, 1 if t > 0.0 else 0, k
                    ex, ey, ez, x, y, z = fx, fy, fz, wx + t * ux, wy + t * uy, wz + t * uz
        if not near < before:
            break
        for c in range(3):  # i < j
            if left > 0:
                W[0, c] = W[i, c]
            if left > 1:
                W[1, c] = W[j, c]
            W[left, c] = W[n, c]
        n = left + 1
    return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0
