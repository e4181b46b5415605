"""Distances in closed form: between points and segments; of points, segments, boxes and half-spaces to half-spaces.

Points and segments are the cores of spheres and capsules: a sphere is a point with a radius, a capsule a segment with a
radius. The distance is computed between the cores and then reduced by the radii. This is exact for separated and for
overlapping shapes, since the support function of a Minkowski sum is the sum of both support functions. World poses A, B
and H have 12 numbers: R row by row, p. Lengths are in m. A distance result is a tuple (d, n, a, b) of ten numbers, see
`collision_layout.py`.

Where cores touch or cross, the nearest points do not define the normal. The normal is then perpendicular to both cores,
the direction of the shortest separation of capsules around them. A half-space is solid below z = 0 of its frame. Where
a whole edge or face of the other shape is lowest, its middle is the contact point.
"""

from __future__ import annotations

import math

from ..compiler import inline, subroutine

EQUAL_RATIO = 1e-14
"""Lengths below this share of the size of a pair count as zero, and so do sines and cosines below this value, which is
45 times the machine epsilon. The size of a pair is the sum of the half lengths, the half extents of the boxes and the
absolute coordinates of the vector between the origins."""
MIN_LENGTH = 1e-100
"""Length (m) below which a vector has no direction. Its square, 1e-200, does not underflow."""


@inline
def with_radii(core_result, radius_a, radius_b):
    """Return the distance result of two shapes, from the distance result of their cores and the radii around them."""
    d, nx, ny, nz, ax, ay, az, bx, by, bz = core_result
    return (
        d - radius_a - radius_b, nx, ny, nz,
        ax + radius_a * nx, ay + radius_a * ny, az + radius_a * nz,
        bx - radius_b * nx, by - radius_b * ny, bz - radius_b * nz,
    )  # fmt: skip


@inline
def swap_shapes(result):
    """Return a distance result with the two shapes exchanged."""
    d, nx, ny, nz, ax, ay, az, bx, by, bz = result
    return d, -nx, -ny, -nz, bx, by, bz, ax, ay, az


@inline
def perpendicular_to(x, y, z):
    """Return a unit vector perpendicular to the unit vector (x, y, z), always the same for equal arguments."""
    if abs(x) <= abs(y) and abs(x) <= abs(z):
        norm = math.sqrt(y * y + z * z)
        return 0.0, -z / norm, y / norm
    if abs(y) <= abs(z):
        norm = math.sqrt(x * x + z * z)
        return z / norm, 0.0, -x / norm
    norm = math.sqrt(x * x + y * y)
    return -y / norm, x / norm, 0.0


@inline
def clamp(x, bound):
    """Return the number in -bound .. bound that is nearest to x."""
    return min(max(x, -bound), bound)


@inline
def to_local_vector(B, x, y, z):
    """Transform a vector from the world to the frame B."""
    return (
        B[0] * x + B[3] * y + B[6] * z,
        B[1] * x + B[4] * y + B[7] * z,
        B[2] * x + B[5] * y + B[8] * z,
    )  # fmt: skip


@inline
def to_world_vector(B, x, y, z):
    """Transform a vector from the frame B to the world."""
    return (
        B[0] * x + B[1] * y + B[2] * z,
        B[3] * x + B[4] * y + B[5] * z,
        B[6] * x + B[7] * y + B[8] * z,
    )  # fmt: skip


@inline
def result_in_world(B, d, n, a):
    """Return the distance result in the world, from the distance d, and normal n and first point a in the frame B."""
    nx, ny, nz = to_world_vector(B, n[0], n[1], n[2])
    ax, ay, az = to_world_vector(B, a[0], a[1], a[2])
    ax, ay, az = ax + B[9], ay + B[10], az + B[11]
    return d, nx, ny, nz, ax, ay, az, ax + d * nx, ay + d * ny, az + d * nz


PARALLEL_SINE2 = 1e-28
"""Squared sine of the angle below which segments count as parallel; the error is 1e-14 of their length."""


@inline
def point_point(A, B):
    """Return the distance result of the origins of A and B."""
    x, y, z = B[9] - A[9], B[10] - A[10], B[11] - A[11]
    d = math.sqrt(x * x + y * y + z * z)
    if d > MIN_LENGTH:
        x, y, z = x / d, y / d, z / d
    else:
        d, x, y, z = 0.0, 0.0, 0.0, 1.0
    return d, x, y, z, A[9], A[10], A[11], B[9], B[10], B[11]


@subroutine
def point_segment(A, B, half_length):
    """Return the distance result of the origin of A and the segment along z of B with half length `half_length`.

    The segment has the direction u, and t (m) is the position of its nearest point along u.
    """
    ux, uy, uz = B[2], B[5], B[8]
    x, y, z = B[9] - A[9], B[10] - A[10], B[11] - A[11]
    size = abs(x) + abs(y) + abs(z) + half_length
    t = clamp(-(x * ux + y * uy + z * uz), half_length)
    x, y, z = x + t * ux, y + t * uy, z + t * uz
    if abs(t) < half_length:  # remove the rounding error along the segment
        parallel_part = x * ux + y * uy + z * uz
        x, y, z = x - parallel_part * ux, y - parallel_part * uy, z - parallel_part * uz
    d = math.sqrt(x * x + y * y + z * z)
    if d > EQUAL_RATIO * size and d > MIN_LENGTH:
        x, y, z = x / d, y / d, z / d
    else:
        d = 0.0
        x, y, z = perpendicular_to(ux, uy, uz)
    return d, x, y, z, A[9], A[10], A[11], A[9] + d * x, A[10] + d * y, A[11] + d * z


@subroutine
def segment_segment(A, half_length_a, B, half_length_b):
    """Return the distance result of two segments along z of A and of B, given half the length of each.

    The segments have the directions u and v; w is the vector from the origin of A to that of B; c = u x v and
    m = w x v. The nearest points are at s along u and at t along v, in m.
    """
    ux, uy, uz, vx, vy, vz = A[2], A[5], A[8], B[2], B[5], B[8]
    wx, wy, wz = B[9] - A[9], B[10] - A[10], B[11] - A[11]
    size = abs(wx) + abs(wy) + abs(wz) + half_length_a + half_length_b
    uv = ux * vx + uy * vy + uz * vz
    wu = wx * ux + wy * uy + wz * uz
    wv = wx * vx + wy * vy + wz * vz
    cx, cy, cz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    sine2 = cx * cx + cy * cy + cz * cz
    is_skew = sine2 > PARALLEL_SINE2
    if is_skew:  # the cross product is accurate; 1 - uv * uv cancels for nearly parallel segments
        mx, my, mz = wy * vz - wz * vy, wz * vx - wx * vz, wx * vy - wy * vx
        s = clamp((mx * cx + my * cy + mz * cz) / sine2, half_length_a)
    else:  # the middle of the range in which the parallel segments overlap
        s = clamp(
            0.5 * (max(-half_length_a, wu - half_length_b) + min(half_length_a, wu + half_length_b)), half_length_a
        )
    t = s * uv - wv
    if abs(t) > half_length_b:
        t = clamp(t, half_length_b)
        s = clamp(t * uv + wu, half_length_a)
    x, y, z = wx + t * vx - s * ux, wy + t * vy - s * uy, wz + t * vz - s * uz
    d = math.sqrt(x * x + y * y + z * z)
    is_inside_a, is_inside_b = abs(s) < half_length_a, abs(t) < half_length_b
    if (is_inside_a and is_inside_b and d * d < sine2 * size * size) or d <= EQUAL_RATIO * size or d <= MIN_LENGTH:
        # the cross product is more accurate than the vector between the nearest points, which may be zero
        if is_skew:
            parallel_part = cx * ux + cy * uy + cz * uz
            nx, ny, nz = cx - parallel_part * ux, cy - parallel_part * uy, cz - parallel_part * uz
            norm = math.sqrt(nx * nx + ny * ny + nz * nz)
            nx, ny, nz = nx / norm, ny / norm, nz / norm
        else:
            nx, ny, nz = perpendicular_to(ux, uy, uz)
        d = x * nx + y * ny + z * nz
        if d < 0.0:
            d, nx, ny, nz = -d, -nx, -ny, -nz
    else:
        if is_inside_a:
            parallel_part = x * ux + y * uy + z * uz
            x, y, z = x - parallel_part * ux, y - parallel_part * uy, z - parallel_part * uz
        if is_inside_b:
            parallel_part = x * vx + y * vy + z * vz
            x, y, z = x - parallel_part * vx, y - parallel_part * vy, z - parallel_part * vz
        d = math.sqrt(x * x + y * y + z * z)
        nx, ny, nz = x / d, y / d, z / d
    ax, ay, az = A[9] + s * ux, A[10] + s * uy, A[11] + s * uz
    return d, nx, ny, nz, ax, ay, az, ax + d * nx, ay + d * ny, az + d * nz


INFINITE_DEPTH = 1e9
"""Depth (m) that is reported for two half-spaces that no translation separates."""


@inline
def position_half_space(H, x, y, z):
    """Return the distance result of the world position (x, y, z) and the half-space H."""
    nx, ny, nz = H[2], H[5], H[8]
    d = nx * (x - H[9]) + ny * (y - H[10]) + nz * (z - H[11])
    return d, -nx, -ny, -nz, x, y, z, x - d * nx, y - d * ny, z - d * nz


@inline
def lower_end(slope):
    """Return which end of a line with `slope` is lower, -1 or 1; 0 if the line is level."""
    return 0.0 if abs(slope) <= EQUAL_RATIO else (-1.0 if slope > 0.0 else 1.0)


@inline
def point_half_space(A, H):
    """Return the distance result of the origin of A and the half-space H."""
    return position_half_space(H, A[9], A[10], A[11])


@inline
def segment_half_space(A, half_length, H):
    """Return the distance result of the segment along z of A and the half-space H."""
    t = half_length * lower_end(A[2] * H[2] + A[5] * H[5] + A[8] * H[8])
    return position_half_space(H, A[9] + t * A[2], A[10] + t * A[5], A[11] + t * A[8])


@subroutine
def box_half_space(A, half_extents, H):
    """Return the distance result of the box at A, with `half_extents`, and the half-space H."""
    x = half_extents[0] * lower_end(A[0] * H[2] + A[3] * H[5] + A[6] * H[8])
    y = half_extents[1] * lower_end(A[1] * H[2] + A[4] * H[5] + A[7] * H[8])
    z = half_extents[2] * lower_end(A[2] * H[2] + A[5] * H[5] + A[8] * H[8])
    return position_half_space(
        H,
        A[9] + x * A[0] + y * A[1] + z * A[2],
        A[10] + x * A[3] + y * A[4] + z * A[5],
        A[11] + x * A[6] + y * A[7] + z * A[8],
    )


@subroutine
def half_space_half_space(A, B):
    """Return the distance result of two half-spaces; d is -INFINITE_DEPTH unless their normals are opposite."""
    nx, ny, nz = A[2], A[5], A[8]
    if nx * B[2] + ny * B[5] + nz * B[8] > -1.0 + EQUAL_RATIO:
        d = -INFINITE_DEPTH
    else:
        d = nx * (B[9] - A[9]) + ny * (B[10] - A[10]) + nz * (B[11] - A[11])
    return d, nx, ny, nz, A[9], A[10], A[11], A[9] + d * nx, A[10] + d * ny, A[11] + d * nz
