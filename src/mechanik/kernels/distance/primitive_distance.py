"""Distances between points, segments and half-spaces: the cores of spheres and capsules, in closed form.

A sphere is a point with a radius, a capsule a segment with a radius. The distance is computed between these cores and
then reduced by the radii. That is exact, overlapping or not, since the support function of a Minkowski sum is the sum
of both. A result is a tuple (d, n, a, b) of ten numbers, see `collision_layout.py`.

Where cores touch or cross, the nearest points do not define the normal. It is then perpendicular to both cores, the
direction in which capsules around them separate soonest. A half-space is solid below z = 0 of its frame. Where a
whole edge or face of the other shape is lowest, its middle is the contact point.
"""

from __future__ import annotations

import math

from ..compiler import inline, subroutine

TIE_RATIO = 1e-14
"""Differences below this share of the size of a pair are ties: some tens of rounding errors."""
MIN_LENGTH = 1e-100
"""m: shorter vectors have no direction; their squares are nearly denormal."""


@inline
def with_radii(core, r, s):
    """Return the distance result of two cores with radius r around the first and s around the second."""
    d, nx, ny, nz, ax, ay, az, bx, by, bz = core
    return (
        d - r - s, nx, ny, nz,
        ax + r * nx, ay + r * ny, az + r * nz,
        bx - s * nx, by - s * ny, bz - s * nz,
    )  # fmt: skip


@inline
def flipped(result):
    """Return the same result with the shapes exchanged."""
    d, nx, ny, nz, ax, ay, az, bx, by, bz = result
    return d, -nx, -ny, -nz, bx, by, bz, ax, ay, az


@inline
def perpendicular_to(x, y, z):
    """Return a unit vector perpendicular to a unit vector; deterministic."""
    if abs(x) <= abs(y) and abs(x) <= abs(z):
        n = math.sqrt(y * y + z * z)
        return 0.0, -z / n, y / n
    if abs(y) <= abs(z):
        n = math.sqrt(x * x + z * z)
        return z / n, 0.0, -x / n
    n = math.sqrt(x * x + y * y)
    return -y / n, x / n, 0.0


@inline
def clamp(x, limit):
    return min(max(x, -limit), limit)


@inline
def to_local(B, x, y, z):
    """Rotate a vector from the world into the frame B."""
    return (
        B[0] * x + B[3] * y + B[6] * z,
        B[1] * x + B[4] * y + B[7] * z,
        B[2] * x + B[5] * y + B[8] * z,
    )  # fmt: skip


@inline
def to_world_vector(B, x, y, z):
    """Rotate a vector from the frame B into the world."""
    return (
        B[0] * x + B[1] * y + B[2] * z,
        B[3] * x + B[4] * y + B[5] * z,
        B[6] * x + B[7] * y + B[8] * z,
    )  # fmt: skip


@inline
def result_in_world(B, d, n, a):
    """Return the result of a distance d whose normal and first point are given in the frame B."""
    nx, ny, nz = to_world_vector(B, n[0], n[1], n[2])
    ax, ay, az = to_world_vector(B, a[0], a[1], a[2])
    ax, ay, az = ax + B[9], ay + B[10], az + B[11]
    return d, nx, ny, nz, ax, ay, az, ax + d * nx, ay + d * ny, az + d * nz


PARALLEL_SINE2 = 1e-28
"""Squared sine of the angle below which segments count as parallel: the error is 1e-14 of their length."""


@inline
def point_point(A, B):
    x, y, z = B[9] - A[9], B[10] - A[10], B[11] - A[11]
    d = math.sqrt(x * x + y * y + z * z)
    if d > MIN_LENGTH:
        x, y, z = x / d, y / d, z / d
    else:
        d, x, y, z = 0.0, 0.0, 0.0, 1.0
    return d, x, y, z, A[9], A[10], A[11], B[9], B[10], B[11]


@subroutine
def point_segment(A, B, length):
    """Distance between the point A and the segment along z of B, `length` to each side."""
    u, v, w = B[2], B[5], B[8]
    x, y, z = B[9] - A[9], B[10] - A[10], B[11] - A[11]
    size = abs(x) + abs(y) + abs(z) + length
    t = clamp(-(x * u + y * v + z * w), length)
    x, y, z = x + t * u, y + t * v, z + t * w
    if abs(t) < length:  # remove the rounding error along the segment
        k = x * u + y * v + z * w
        x, y, z = x - k * u, y - k * v, z - k * w
    d = math.sqrt(x * x + y * y + z * z)
    if d > TIE_RATIO * size and d > MIN_LENGTH:
        x, y, z = x / d, y / d, z / d
    else:
        d = 0.0
        x, y, z = perpendicular_to(u, v, w)
    return d, x, y, z, A[9], A[10], A[11], A[9] + d * x, A[10] + d * y, A[11] + d * z


@subroutine
def segment_segment(A, length_a, B, length_b):
    """Distance between two segments along z of A and of B, with half their lengths."""
    ux, uy, uz, vx, vy, vz = A[2], A[5], A[8], B[2], B[5], B[8]
    wx, wy, wz = B[9] - A[9], B[10] - A[10], B[11] - A[11]
    size = abs(wx) + abs(wy) + abs(wz) + length_a + length_b
    uv = ux * vx + uy * vy + uz * vz
    wu = wx * ux + wy * uy + wz * uz
    wv = wx * vx + wy * vy + wz * vz
    cx, cy, cz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    sine2 = cx * cx + cy * cy + cz * cz
    is_skew = sine2 > PARALLEL_SINE2
    if is_skew:  # by the cross product: 1 - uv * uv cancels for nearly parallel segments
        mx, my, mz = wy * vz - wz * vy, wz * vx - wx * vz, wx * vy - wy * vx
        s = clamp((mx * cx + my * cy + mz * cz) / sine2, length_a)
    else:  # the middle of the overlap of both
        s = clamp(0.5 * (max(-length_a, wu - length_b) + min(length_a, wu + length_b)), length_a)
    t = s * uv - wv
    if abs(t) > length_b:
        t = clamp(t, length_b)
        s = clamp(t * uv + wu, length_a)
    x, y, z = wx + t * vx - s * ux, wy + t * vy - s * uy, wz + t * vz - s * uz
    d = math.sqrt(x * x + y * y + z * z)
    inside_a, inside_b = abs(s) < length_a, abs(t) < length_b
    if (inside_a and inside_b and d * d < sine2 * size * size) or d <= TIE_RATIO * size or d <= MIN_LENGTH:
        # the cross product is more accurate than the vector between the nearest points, which may be zero
        if is_skew:
            k = cx * ux + cy * uy + cz * uz
            nx, ny, nz = cx - k * ux, cy - k * uy, cz - k * uz
            k = math.sqrt(nx * nx + ny * ny + nz * nz)
            nx, ny, nz = nx / k, ny / k, nz / k
        else:
            nx, ny, nz = perpendicular_to(ux, uy, uz)
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


INFINITE_DEPTH = 1e9
"""m: depth of two half-spaces that no translation separates."""


@inline
def point_above_plane(H, x, y, z):
    """Distance from the point (x, y, z), which becomes the first point, to the half-space H."""
    nx, ny, nz = H[2], H[5], H[8]
    d = nx * (x - H[9]) + ny * (y - H[10]) + nz * (z - H[11])
    return d, -nx, -ny, -nz, x, y, z, x - d * nx, y - d * ny, z - d * nz


@inline
def lower_end(slope):
    """Return which end of a line with `slope` is lower, -1 or 1; 0 where it is level."""
    return 0.0 if abs(slope) <= TIE_RATIO else (-1.0 if slope > 0.0 else 1.0)


@inline
def point_half_space(A, H):
    return point_above_plane(H, A[9], A[10], A[11])


@inline
def segment_half_space(A, length, H):
    t = length * lower_end(A[2] * H[2] + A[5] * H[5] + A[8] * H[8])
    return point_above_plane(H, A[9] + t * A[2], A[10] + t * A[5], A[11] + t * A[8])


@subroutine
def box_half_space(A, h, H):
    t = h[0] * lower_end(A[0] * H[2] + A[3] * H[5] + A[6] * H[8])
    u = h[1] * lower_end(A[1] * H[2] + A[4] * H[5] + A[7] * H[8])
    v = h[2] * lower_end(A[2] * H[2] + A[5] * H[5] + A[8] * H[8])
    return point_above_plane(
        H,
        A[9] + t * A[0] + u * A[1] + v * A[2],
        A[10] + t * A[3] + u * A[4] + v * A[5],
        A[11] + t * A[6] + u * A[7] + v * A[8],
    )


@subroutine
def half_space_half_space(A, B):
    """Distance between two half-spaces that face each other, else -INFINITE_DEPTH."""
    nx, ny, nz = A[2], A[5], A[8]
    if nx * B[2] + ny * B[5] + nz * B[8] > -1.0 + TIE_RATIO:
        d = -INFINITE_DEPTH
    else:
        d = nx * (B[9] - A[9]) + ny * (B[10] - A[10]) + nz * (B[11] - A[11])
    return d, nx, ny, nz, A[9], A[10], A[11], A[9] + d * nx, A[10] + d * ny, A[11] + d * nz
