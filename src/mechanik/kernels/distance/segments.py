"""Gaps between points and segments, the cores of spheres and capsules.

Where cores touch or cross, the normal cannot be read from the shortest connection. It is then at right angles to both,
the direction in which capsules about them part soonest.
"""

from __future__ import annotations

import math

from ..compiler import helper, part
from .rounding import NOTHING, TIE, clamp, square_to

PARALLEL = 1e-28
"""Squared sine of an angle below which segments count as parallel: the error is 1e-14 of their length."""


@helper
def point_point(A, B):
    x, y, z = B[9] - A[9], B[10] - A[10], B[11] - A[11]
    d = math.sqrt(x * x + y * y + z * z)
    if d > NOTHING:
        x, y, z = x / d, y / d, z / d
    else:
        d, x, y, z = 0.0, 0.0, 0.0, 1.0
    return d, x, y, z, A[9], A[10], A[11], B[9], B[10], B[11]


@part
def point_segment(A, B, length):
    """The gap of the point A and the segment along z of B, `length` to each side."""
    u, v, w = B[2], B[5], B[8]
    x, y, z = B[9] - A[9], B[10] - A[10], B[11] - A[11]
    size = abs(x) + abs(y) + abs(z) + length
    t = clamp(-(x * u + y * v + z * w), length)
    x, y, z = x + t * u, y + t * v, z + t * w
    if abs(t) < length:  # what rounding has left along the segment
        k = x * u + y * v + z * w
        x, y, z = x - k * u, y - k * v, z - k * w
    d = math.sqrt(x * x + y * y + z * z)
    if d > TIE * size and d > NOTHING:
        x, y, z = x / d, y / d, z / d
    else:
        d = 0.0
        x, y, z = square_to(u, v, w)
    return d, x, y, z, A[9], A[10], A[11], A[9] + d * x, A[10] + d * y, A[11] + d * z


@part
def segment_segment(A, length_a, B, length_b):
    """The gap of two segments along z of A and of B, with half their lengths."""
    ux, uy, uz, vx, vy, vz = A[2], A[5], A[8], B[2], B[5], B[8]
    wx, wy, wz = B[9] - A[9], B[10] - A[10], B[11] - A[11]
    size = abs(wx) + abs(wy) + abs(wz) + length_a + length_b
    uv = ux * vx + uy * vy + uz * vz
    wu = wx * ux + wy * uy + wz * uz
    wv = wx * vx + wy * vy + wz * vz
    cx, cy, cz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    sine2 = cx * cx + cy * cy + cz * cz
    skew = sine2 > PARALLEL
    if skew:  # through the cross product: 1 - uv * uv has no digits left near parallel
        mx, my, mz = wy * vz - wz * vy, wz * vx - wx * vz, wx * vy - wy * vx
        s = clamp((mx * cx + my * cy + mz * cz) / sine2, length_a)
    else:  # the middle of where both lie side by side
        s = clamp(0.5 * (max(-length_a, wu - length_b) + min(length_a, wu + length_b)), length_a)
    t = s * uv - wv
    if abs(t) > length_b:
        t = clamp(t, length_b)
        s = clamp(t * uv + wu, length_a)
    x, y, z = wx + t * vx - s * ux, wy + t * vy - s * uy, wz + t * vz - s * uz
    d = math.sqrt(x * x + y * y + z * z)
    inside_a, inside_b = abs(s) < length_a, abs(t) < length_b
    if (inside_a and inside_b and d * d < sine2 * size * size) or d <= TIE * size or d <= NOTHING:
        # the cross product has more digits than the connection, or there is none
        if skew:
            k = cx * ux + cy * uy + cz * uz
            nx, ny, nz = cx - k * ux, cy - k * uy, cz - k * uz
            k = math.sqrt(nx * nx + ny * ny + nz * nz)
            nx, ny, nz = nx / k, ny / k, nz / k
        else:
            nx, ny, nz = square_to(ux, uy, uz)
        d = x * nx + y * ny + z * nz
        if d < 0.0:
            d, nx, ny, nz = -d, -nx, -ny, -nz
    else:
        if inside_a:
            k = x * ux + y * uy + z * uz
            x, y, z = x - k * ux, y - k * uy, z - k * uz
        if inside_b:
            k = x * vx + y * vy + z * vz
            x, y, z = x - k * vx, y - k * vy, z - k * vz
        d = math.sqrt(x * x + y * y + z * z)
        nx, ny, nz = x / d, y / d, z / d
    ax, ay, az = A[9] + s * ux, A[10] + s * uy, A[11] + s * uz
    return d, nx, ny, nz, ax, ay, az, ax + d * nx, ay + d * ny, az + d * nz
