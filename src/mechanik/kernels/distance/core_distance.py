"""Distance between two convex cores, with a normal that is accurate at distance 0 too, and special cases of cylinders.

Distances of separated cores are computed by GJK, those of overlapping cores by an expanding polytope (`gjk_epa.py`).
Neither method has an accurate normal near distance 0, and a polytope converges slowly on round shapes. So the normal is
refined by another distance computation, after B is translated away along the normal found so far: the nearest points
are the same, but now they are separated by a vector that defines the normal.

GJK also converges slowly on cylinders, so cylinders have special methods, all in the frame of the cylinder, whose axis
is z. The offset is the vector from the nearest point of a cylinder to a point x, and has a closed form. Half its
squared length is a convex function of x with the offset as its gradient. So the nearest point of a segment is one of
its ends, or the point at which the offset is perpendicular to the segment. That point is the root of an increasing
function of one variable.

Two cylinders: the offset is the shortest vector from one cylinder to the other. If it starts on the side of a cylinder,
it is a part of the offset from the axis of that cylinder to the other cylinder. If it starts on a flat cap, it is
parallel to the axis and ends at the extreme point of the other cylinder. Else it connects the two rims, and is found by
Newton's method in the angle on the first rim.

A cylinder and a polytope (segment, box or hull): as in GJK a simplex approaches the nearest point, but its corners are
corners of the polytope, not differences. The offset to an edge is found by the method for segments, and the offset to
the interior of a triangle can only be along its normal. So the number of steps depends only on the polytope.

Results of iterations on cylinders are verified; where this fails, GJK is used instead. The letters a, U, b, V, T and W
are those of `gjk_epa.py`.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import inline, subroutine
from .collision_layout import CYLINDER
from .gjk_epa import (
    DEPTH_TOLERANCE,
    MAX_CORNERS,
    MAX_FACES,
    difference_support,
    expand_to_tolerance,
    first_polytope,
    gjk_distance,
    support_point,
    unit_vector,
)
from .primitive_distance import clamp, to_world_vector

MAX_SEGMENT_STEPS = 40
"""Largest number of Newton steps along a segment."""
LAST_SEGMENT_STEP = 1e-8
"""A Newton step shorter than this share of the segment is the last, since the error after it is about its square."""


@inline
def offset_from_cylinder(radius, half_length, x, y, z):
    """Return the offset from the nearest point of a cylinder to the point (x, y, z); 0 inside the cylinder."""
    axis_distance = math.sqrt(x * x + y * y)
    factor = 1.0 - radius / axis_distance if axis_distance > radius else 0.0
    return factor * x, factor * y, z - clamp(z, half_length)


@subroutine
def nearest_on_segment_to_cylinder(radius, half_length, px, py, pz, ux, uy, uz):
    """Return the t (0 to 1) at which the point p + t u is nearest to a cylinder, and the offset to that point."""
    radial_square = ux * ux + uy * uy
    t, t_low, t_high, first_slope, is_last = 0.0, 0.0, 1.0, 0.0, False
    ex, ey, ez = 0.0, 0.0, 0.0
    for k in range(MAX_SEGMENT_STEPS):
        x, y, z = px + t * ux, py + t * uy, pz + t * uz
        axis_distance = math.sqrt(x * x + y * y)
        factor = 1.0 - radius / axis_distance if axis_distance > radius else 0.0
        ex, ey, ez = factor * x, factor * y, z - clamp(z, half_length)
        slope = ex * ux + ey * uy + ez * uz
        if is_last or slope == 0.0 or (k == 0 and slope > 0.0) or (k == 1 and slope < 0.0):
            break
        if k == 0:
            first_slope, t = slope, 1.0
            continue
        if k == 1:  # start at the point nearest to the axis: the solution, if it is between the planes of the caps
            t = -(px * ux + py * uy) / radial_square if radial_square > 0.0 else 0.5
            if not 0.0 < t < 1.0:
                t = first_slope / (first_slope - slope)
            continue
        t_low, t_high = (t, t_high) if slope < 0.0 else (t_low, t)
        curvature = uz * uz if ez != 0.0 else 0.0
        if factor > 0.0:
            radial_slope = (x * ux + y * uy) / axis_distance
            curvature += radial_slope * radial_slope + factor * (radial_square - radial_slope * radial_slope)
        step = -slope / curvature if curvature > 0.0 else math.inf
        is_last = abs(step) < LAST_SEGMENT_STEP
        t += step
        if not t_low < t < t_high:
            t = 0.5 * (t_low + t_high)
            is_last = t == t_low or t == t_high
    return t, ex, ey, ez


MAX_RIM_STEPS = 30
"""Largest number of Newton steps along a rim."""
RIM_TOLERANCE = 4e-15
"""A result is verified if its upper and lower bound of the distance differ by at most this share of the size."""
PARALLEL_SINE = 1e-15
"""Sine of the angle below which axes count as parallel."""
LAST_RIM_STEP = 1e-8
"""A Newton step shorter than this (rad) is the last."""
UNVERIFIED_RESULT = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0)
TOUCHING_RESULT = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@subroutine
def cylinder_to_cylinder(radius, half_length, r, h, T):
    """Return the offset from cylinder A to cylinder B, and its end point, in the frame of A.

    Args:
        radius, half_length: the size of A.
        r, h: radius and half length of B.
        T: pose of B in the frame of A.

    Returns:
        ex, ey, ez, x, y, z, size: the offset, its end point and the size of the pair. The size is 0 if the cylinders
        touch or overlap, and negative if the result is not verified.
    """
    size = radius + half_length + r + h + abs(T[9]) + abs(T[10]) + abs(T[11])
    T_inverse = inverse_pose(T)
    x, y, axis_offset, swapped_axis_offset = 0.0, 0.0, 0.0, 0.0
    for k in range(4):  # to the side of B, from the side of A; from a cap of A, to a cap of B
        is_swapped = k == 1 or k == 3
        radius_1, half_1, radius_2, half_2, pose_2 = (
            (r, h, radius, half_length, T_inverse) if is_swapped else (radius, half_length, r, h, T)
        )
        if k < 2:
            outcome, ex, ey, ez, bx, by, bz = offset_to_side(radius_1, half_1, radius_2, half_2, pose_2, size)
            if k == 0:
                x, y, axis_offset = bx - ex, by - ey, ez
            swapped_axis_offset = ez
        else:
            outcome, ex, ey, ez, bx, by, bz = offset_from_cap(
                radius_1, half_1, radius_2, half_2, pose_2, swapped_axis_offset if is_swapped else axis_offset
            )
        if outcome < 0.0:
            return TOUCHING_RESULT
        if outcome > 0.0:
            if is_swapped:
                ex, ey, ez = to_world_vector(T, -ex, -ey, -ez)
                bx, by, bz = to_world_vector(T, bx, by, bz)
                bx, by, bz = bx + T[9] + ex, by + T[10] + ey, bz + T[11] + ez
            return ex, ey, ez, bx, by, bz, size
    return offset_from_rim(radius, half_length, r, h, T, T_inverse, x, y, axis_offset, size)


@inline
def inverse_pose(T):
    """Return the inverse of a pose."""
    x, y, z = T[9], T[10], T[11]
    return (
        T[0], T[3], T[6], T[1], T[4], T[7], T[2], T[5], T[8],
        -(T[0] * x + T[3] * y + T[6] * z), -(T[1] * x + T[4] * y + T[7] * z), -(T[2] * x + T[5] * y + T[8] * z),
    )  # fmt: skip


@subroutine
def offset_to_side(radius, half_length, r, h, T, size):
    """Return the offset from a cylinder to the side of another cylinder, and its end point.

    Args:
        radius, half_length: size of the first cylinder.
        r, h, T: radius, half length and pose of the other cylinder.
        size: size of the pair, m.

    Returns:
        1, the offset and its end point. The first number is -1 if the cylinders touch or overlap, and 0 if the offset
        does not end on the side; then the offset ends on the axis of the other cylinder.
    """
    ux, uy, uz = 2.0 * h * T[2], 2.0 * h * T[5], 2.0 * h * T[8]
    x, y, z = T[9] - 0.5 * ux, T[10] - 0.5 * uy, T[11] - 0.5 * uz
    t, ex, ey, ez = nearest_on_segment_to_cylinder(radius, half_length, x, y, z, ux, uy, uz)
    x, y, z = x + t * ux, y + t * uy, z + t * uz
    d = math.sqrt(ex * ex + ey * ey + ez * ez)
    is_side = 0.0 < t < 1.0
    if d <= (r if is_side else 0.0):
        return -1.0, ex, ey, ez, x, y, z
    if not is_side or not abs(ex * ux + ey * uy + ez * uz) <= RIM_TOLERANCE * size * d:
        return 0.0, ex, ey, ez, x, y, z
    offset_share = r / d
    x, y, z = x - offset_share * ex, y - offset_share * ey, z - offset_share * ez
    offset_share = 1.0 - offset_share
    return 1.0, offset_share * ex, offset_share * ey, offset_share * ez, x, y, z


@subroutine
def offset_from_cap(radius, half_length, r, h, T, axis_offset):
    """Return the offset along z from a flat cap of a cylinder to another cylinder, and its end point.

    Args:
        radius, half_length: size of the first cylinder.
        r, h, T: radius, half length and pose of the other cylinder.
        axis_offset: its sign selects the cap, positive for the upper cap.

    Returns:
        1, the offset and its end point. The first number is 0 if the end point is not over the cap.
    """
    side = math.copysign(1.0, axis_offset)
    cap_height = math.copysign(h, -side * T[8])
    x, y, z = T[9] + cap_height * T[2], T[10] + cap_height * T[5], T[11] + cap_height * T[8]
    sine = math.sqrt(T[2] * T[2] + T[5] * T[5])
    if sine > PARALLEL_SINE:  # the point of the other cap that is nearest to the plane of the first cap
        factor = side * r * T[8] / sine
        x, y, z = x + factor * T[2], y + factor * T[5], z - side * r * sine
    else:  # all points of the other cap are equally near: the nearest to the axis
        axis_distance = math.sqrt(x * x + y * y)
        factor = r / axis_distance if axis_distance > r else 1.0
        x, y = x - factor * x, y - factor * y
    d = side * z - half_length
    is_over = d > 0.0 and x * x + y * y <= radius * radius
    return (1.0 if is_over else 0.0), 0.0, 0.0, side * d, x, y, z


@subroutine
def offset_from_rim(radius, half_length, r, h, T, T_inverse, x, y, axis_offset, size):
    """Return the offset from the rim of a cylinder to another cylinder, like `cylinder_to_cylinder`.

    Newton's method runs over the angle on the rim, with cosine c and sine s, in the frame of the other cylinder.

    Args:
        radius, half_length: size of the cylinder with the rim.
        r, h: radius and half length of the other cylinder.
        T, T_inverse: pose of the other cylinder, and its inverse.
        x, y: point in the direction of the first guess on the rim.
        axis_offset: its sign selects the rim, positive for the upper rim.
        size: size of the pair, m.
    """
    axis_distance = math.sqrt(x * x + y * y)
    c, s = (x / axis_distance, y / axis_distance) if axis_distance > 0.0 else (1.0, 0.0)
    rim_height = math.copysign(half_length, axis_offset)
    mx, my, mz = T_inverse[9] + rim_height * T[6], T_inverse[10] + rim_height * T[7], T_inverse[11] + rim_height * T[8]
    cx, cy, cz, sx, sy, sz = radius * T[0], radius * T[1], radius * T[2], radius * T[3], radius * T[4], radius * T[5]
    x, y, z, fx, fy, fz, step, smallest_square, best_c, best_s = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, math.inf, c, s
    for n in range(MAX_RIM_STEPS):
        c, s = best_c - step * best_s, best_s + step * best_c
        inverse_norm = 1.0 / math.sqrt(c * c + s * s)
        c, s = inverse_norm * c, inverse_norm * s
        x, y, z = mx + c * cx + s * sx, my + c * cy + s * sy, mz + c * cz + s * sz
        axis_distance = math.sqrt(x * x + y * y)
        factor = 1.0 - r / axis_distance if axis_distance > r else 0.0
        fx, fy, fz = factor * x, factor * y, z - clamp(z, h)
        square = fx * fx + fy * fy + fz * fz
        if n > 0 and abs(step) < LAST_RIM_STEP:
            break
        if square > smallest_square:
            step *= 0.25
            continue
        smallest_square, best_c, best_s = square, c, s
        ux, uy, uz = c * sx - s * cx, c * sy - s * cy, c * sz - s * cz
        slope = ux * fx + uy * fy + uz * fz
        curvature = uz * uz if fz != 0.0 else 0.0
        if factor > 0.0:
            radial_slope = (x * ux + y * uy) / axis_distance
            curvature += radial_slope * radial_slope + factor * (ux * ux + uy * uy - radial_slope * radial_slope)
        centripetal_term = (x - mx) * fx + (y - my) * fy + (z - mz) * fz
        if curvature > centripetal_term:
            curvature -= centripetal_term
        if curvature <= 0.0:
            break
        step = min(max(-slope / curvature, -1.0), 1.0)
    d = math.sqrt(fx * fx + fy * fy + fz * fz)
    gx, gy, gz = to_world_vector(T, fx, fy, fz)
    lower_bound = (
        fx * T_inverse[9]
        + fy * T_inverse[10]
        + fz * T_inverse[11]
        - radius * math.sqrt(gx * gx + gy * gy)
        - half_length * abs(gz)
    )
    lower_bound -= r * math.sqrt(fx * fx + fy * fy) + h * abs(fz)
    if d <= 0.0:
        return TOUCHING_RESULT
    if not d * d - lower_bound <= RIM_TOLERANCE * size * d:
        return UNVERIFIED_RESULT
    qx, qy, qz = to_world_vector(T, x - fx, y - fy, z - fz)
    return -gx, -gy, -gz, qx + T[9], qy + T[10], qz + T[11], size


MAX_CORNER_STEPS = 24
"""Largest number of steps of `cylinder_to_polytope`."""
CORNER_TOLERANCE = 4e-15
"""A result is verified if its upper and lower bound of the distance differ by at most this share of the size."""
LEVEL_SINE = 1e-15
"""Sine of the angle below which a triangle counts as parallel or perpendicular to the axis of a cylinder."""
CORNER_TOUCHING_RATIO = 1e-13
"""Distance below which a cylinder and a polytope count as touching, as a share of the size."""


@inline
def nearest_core_corner(b, V, T, x, y, z):
    """Return the corner of the core b, with pose T, that has the smallest projection on a direction."""
    px, py, pz = support_point(
        b, V, -(T[0] * x + T[3] * y + T[6] * z), -(T[1] * x + T[4] * y + T[7] * z), -(T[2] * x + T[5] * y + T[8] * z)
    )
    return (
        T[0] * px + T[1] * py + T[2] * pz + T[9],
        T[3] * px + T[4] * py + T[5] * pz + T[10],
        T[6] * px + T[7] * py + T[8] * pz + T[11],
    )


@subroutine
def offset_to_triangle(radius, half_length, W, i, j, k):
    """Return the offset from a cylinder to the interior of a triangle, along the normal of the triangle.

    Args:
        W: the corners; i, j and k are those of the triangle.

    Returns:
        Whether the end point of the offset is inside the triangle, the offset, and its end point.
    """
    px, py, pz = W[i, 0], W[i, 1], W[i, 2]
    ex, ey, ez = W[j, 0] - px, W[j, 1] - py, W[j, 2] - pz
    fx, fy, fz = W[k, 0] - px, W[k, 1] - py, W[k, 2] - pz
    nx, ny, nz = ey * fz - ez * fy, ez * fx - ex * fz, ex * fy - ey * fx
    area = math.sqrt(nx * nx + ny * ny + nz * nz)
    if area <= 0.0:
        return False, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    nx, ny, nz = nx / area, ny / area, nz / area
    d, inverse_area = px * nx + py * ny + pz * nz, 1.0 / area
    if d < 0.0:
        d, inverse_area, nx, ny, nz = -d, -inverse_area, -nx, -ny, -nz
    # the point of the cylinder that is farthest along the normal; where a whole cap or line is farthest, its middle
    # suffices: if the middle is not over the triangle, the nearest point is found on an edge
    sine = math.sqrt(nx * nx + ny * ny)
    scale = radius / sine if sine > LEVEL_SINE else 0.0
    x, y = scale * nx, scale * ny
    z = math.copysign(half_length, nz) if abs(nz) > LEVEL_SINE else 0.0
    d -= x * nx + y * ny + z * nz
    if d <= 0.0:
        return False, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    x, y, z = x + d * nx, y + d * ny, z + d * nz
    qx, qy, qz = x - px, y - py, z - pz
    u = ((qy * fz - qz * fy) * nx + (qz * fx - qx * fz) * ny + (qx * fy - qy * fx) * nz) * inverse_area
    v = ((ey * qz - ez * qy) * nx + (ez * qx - ex * qz) * ny + (ex * qy - ey * qx) * nz) * inverse_area
    return u >= 0.0 and v >= 0.0 and u + v <= 1.0, d * nx, d * ny, d * nz, x, y, z


@subroutine
def cylinder_to_polytope(radius, half_length, b, V, T, W):
    """Return the offset from a cylinder to a polytope core, and its end point, in the frame of the cylinder.

    Args:
        radius, half_length: size of the cylinder.
        b, V, T: the core, its points and its pose.
        W: (4, 7) work array.

    Returns:
        ex, ey, ez, x, y, z, size: the offset, its end point and the size of the pair. The size is 0 if cylinder and
        polytope touch or overlap, and negative if the result is not verified.
    """
    ex, ey, ez = offset_from_cylinder(radius, half_length, T[9], T[10], T[11])
    if ex == 0.0 and ey == 0.0 and ez == 0.0:
        ex, ey, ez = T[9], T[10], T[11]
    x, y, z, size, n, square = 0.0, 0.0, 0.0, radius + half_length, 0, math.inf
    for _ in range(MAX_CORNER_STEPS):
        wx, wy, wz = nearest_core_corner(b, V, T, ex, ey, ez)
        size = max(size, radius + half_length + abs(wx) + abs(wy) + abs(wz))
        if n > 0:
            d = math.sqrt(square)
            if d <= CORNER_TOUCHING_RATIO * size:
                return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            if (x - wx) * ex + (y - wy) * ey + (z - wz) * ez <= CORNER_TOLERANCE * size * d:
                return ex, ey, ez, x, y, z, size
        W[n, 0], W[n, 1], W[n, 2] = wx, wy, wz
        previous_square, square, corner_count, i, j = square, math.inf, 0, -1, -1
        for k in range(n - 1):  # triangles first: their interior is nearer than their edges
            for l in range(k + 1, n):
                is_inside, fx, fy, fz, qx, qy, qz = offset_to_triangle(radius, half_length, W, k, l, n)
                candidate_square = fx * fx + fy * fy + fz * fz
                if is_inside and candidate_square < square:
                    square, corner_count, i, j = candidate_square, 2, k, l
                    ex, ey, ez, x, y, z = fx, fy, fz, qx, qy, qz
        triangle_i, triangle_j = i, j
        for k in range(max(n, 1)):
            if k != triangle_i and k != triangle_j:
                ux, uy, uz = W[k, 0] - wx, W[k, 1] - wy, W[k, 2] - wz
                t, fx, fy, fz = nearest_on_segment_to_cylinder(radius, half_length, wx, wy, wz, ux, uy, uz)
                candidate_square = fx * fx + fy * fy + fz * fz
                if candidate_square < square:
                    square, corner_count, i = candidate_square, 1 if t > 0.0 else 0, k
                    ex, ey, ez, x, y, z = fx, fy, fz, wx + t * ux, wy + t * uy, wz + t * uz
        if not square < previous_square:
            break
        for c in range(3):  # i < j
            if corner_count > 0:
                W[0, c] = W[i, c]
            if corner_count > 1:
                W[1, c] = W[j, c]
            W[corner_count, c] = W[n, c]
        n = corner_count + 1
    return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0


@subroutine
def separation_vector(a, U, b, V, T, W, x, y, z):
    """Return the vector between the nearest points of two cores, like `gjk_distance`, but with methods for cylinders.

    W is a work array; its content need not be a simplex afterwards.
    """
    is_cylinder_a, is_cylinder_b = a[0] == CYLINDER and a[1] > 0.0, b[0] == CYLINDER and b[1] > 0.0
    ex, ey, ez, px, py, pz, size = UNVERIFIED_RESULT
    if is_cylinder_a and is_cylinder_b:
        ex, ey, ez, px, py, pz, size = cylinder_to_cylinder(a[1], a[2], b[1], b[2], T)
    elif is_cylinder_a or is_cylinder_b:
        cylinder, polytope, points, T_polytope = (a, b, V, T) if is_cylinder_a else (b, a, U, inverse_pose(T))
        ex, ey, ez, px, py, pz, size = cylinder_to_polytope(cylinder[1], cylinder[2], polytope, points, T_polytope, W)
    if size < 0.0:
        return gjk_distance(a, U, b, V, T, W, math.inf, x, y, z)
    if is_cylinder_a:
        return -ex, -ey, -ez, px - ex, py - ey, pz - ez, size
    ex, ey, ez = to_world_vector(T, ex, ey, ez)
    px, py, pz = to_world_vector(T, px, py, pz)
    return ex, ey, ez, px + T[9], py + T[10], pz + T[11], size


SEPARATION_RATIO = 1e-2
"""Distance, as a share of the size, to which cores are separated to refine their normal, and above which GJK alone is
accurate enough."""
MIN_SEPARATION_RATIO = 1e-7
"""A separation below this share of the size is not decreased further."""
DEPTH_PROGRESS, NORMAL_CHANGE2 = 1e-14, 1e-20
"""A decrease of the depth by at most this share of the size is no progress; squared change of the normal below which a
round without progress is the last."""
MAX_NORMAL_ROUNDS, MAX_EXTRAPOLATIONS = 30, 20
FIRST_DEPTH_RATIO, SAME_NORMAL_COSINE, MAX_EXITS = 1e-6, 0.999992, 4
"""An exit is a locally shortest translation out of an overlap. FIRST_DEPTH_RATIO: relative accuracy of the depth to
which the polytope is expanded first. SAME_NORMAL_COSINE: cosine of 0.004 rad; normals that differ by less lead to the
same exit. MAX_EXITS: largest number of exits that are refined before the polytope is expanded further. Of 140,000 pairs
of cylinders and other shapes, a FIRST_DEPTH_RATIO of 1e-4 missed 7 exits; of 560,000 pairs, 1e-6 missed none, except
for coaxial cylinders and capsules, where the depths of all exits differ by less than 1e-8."""
NO_EXIT = (-math.inf, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@subroutine
def core_distance(a, U, b, V, T, W):
    """Return the distance result of two cores, in the frame of A.

    Args:
        a, U, b, V: the cores and their points.
        T: pose of B in the frame of A.
        W: (4, 7) work array.
    """
    vx, vy, vz, ax, ay, az, size = separation_vector(a, U, b, V, T, W, T[9], T[10], T[11])
    is_separated = size > 0.0
    if is_separated:
        d = math.sqrt(vx * vx + vy * vy + vz * vz)
        nx, ny, nz = -vx / d, -vy / d, -vz / d
        if d > SEPARATION_RATIO * size:
            return d, nx, ny, nz, ax, ay, az, ax - vx, ay - vy, az - vz
        depth = depth_along(a, U, b, V, T, nx, ny, nz)
        return refine_normal(a, U, b, V, T, W, nx, ny, nz, depth, size)
    return core_penetration(a, U, b, V, T, W)


@subroutine
def core_penetration(a, U, b, V, T, W):
    """Return the distance result of two overlapping cores, like `core_distance`.

    A polytope converges slowly on a round surface. So it is first expanded only until its faces bound the depth to
    FIRST_DEPTH_RATIO. An exit that is shorter than the best exit so far is then within sqrt(2 FIRST_DEPTH_RATIO) rad of
    the normal of a face that is nearer to the origin than this exit. The normals of these faces are refined too, unless
    a nearby normal already was. If there are more than MAX_EXITS, as for nearly coaxial cylinders, the polytope is
    expanded further.
    """
    C, exit_normals, best_direction = np.empty((MAX_CORNERS + 2, 3)), np.empty((MAX_EXITS, 3)), np.empty(4)
    F, N, E = np.empty((MAX_FACES, 3), np.int64), np.empty((MAX_FACES, 5)), np.empty((3 * MAX_FACES, 2), np.int64)
    size, face_count = first_polytope(a, U, b, V, T, C, F, N, E, best_direction)
    is_round = (a[0] == CYLINDER and a[1] > 0.0) or (b[0] == CYLINDER and b[1] > 0.0)
    best_exit, corner_count, exit_count = NO_EXIT, 4, 0
    for pass_index in range(0 if is_round else 1, 2):
        if face_count > 0:
            depth_ratio = FIRST_DEPTH_RATIO if pass_index == 0 else 0.0
            corner_count, face_count = expand_to_tolerance(
                a, U, b, V, T, C, F, N, E, best_direction, corner_count, face_count, size, depth_ratio
            )
        for f in range(-1, face_count + 2):
            nx, ny, nz, depth = best_direction[0], best_direction[1], best_direction[2], best_direction[3]
            if 0 <= f < face_count:
                if pass_index == 1 or N[f, 3] >= -best_exit[0] - DEPTH_TOLERANCE * size:
                    continue
                nx, ny, nz = N[f, 0], N[f, 1], N[f, 2]
                is_known = False
                for k in range(exit_count):
                    is_known = (
                        is_known
                        or nx * exit_normals[k, 0] + ny * exit_normals[k, 1] + nz * exit_normals[k, 2]
                        > SAME_NORMAL_COSINE
                    )
                if is_known:
                    continue
                if exit_count == MAX_EXITS:
                    exit_count += 1
                    break
                depth = depth_along(a, U, b, V, T, nx, ny, nz)
            elif f >= face_count:
                # nearly coaxial cylinders: all exits perpendicular to the axes have nearly the same depth, and the best
                # is opposite to the best so far, or along the vector from axis to axis
                nx, ny, nz = (
                    (-best_exit[1], -best_exit[2], -best_exit[3]) if f == face_count else unit_vector(T[9], T[10], 0.0)
                )
                depth = depth_along(a, U, b, V, T, nx, ny, nz)
                if depth >= -best_exit[0]:
                    continue
            candidate = refine_normal(a, U, b, V, T, W, nx, ny, nz, depth, size)
            if f < face_count and exit_count < MAX_EXITS:
                exit_normals[exit_count, 0], exit_normals[exit_count, 1], exit_normals[exit_count, 2] = (
                    candidate[1],
                    candidate[2],
                    candidate[3],
                )
                exit_count += 1
            if candidate[0] > best_exit[0]:
                best_exit = candidate
        if exit_count <= MAX_EXITS:
            break
    return best_exit


@inline
def depth_along(a, U, b, V, T, x, y, z):
    """Return the length (m) of the translation of B along a unit vector that separates two cores.

    The length is negative if the cores are already separated along the vector.
    """
    wx, wy, wz, _, _, _ = difference_support(a, U, b, V, T, x, y, z)
    return wx * x + wy * y + wz * z


@subroutine
def refine_normal(a, U, b, V, T, W, nx, ny, nz, depth, size):
    """Return the distance result of two cores, accurate to rounding, from an approximate normal.

    Where the surface of A - B has the radius of curvature R, each round multiplies the error of the normal by about
    depth / R; flat faces need one round. Where depth and R are nearly equal, as for nested cylinders, many rounds would
    be needed. So each round extrapolates its change of the normal while this decreases the depth.

    Args:
        a, U, b, V, T, W: as for `core_distance`.
        nx, ny, nz, depth: the normal, and the depth (m) along it.
        size: size of the pair, m.
    """
    ax, ay, az, bx, by, bz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    margin, is_last = SEPARATION_RATIO, False
    for _ in range(MAX_NORMAL_ROUNDS):
        shift = depth + margin * size
        sx, sy, sz = shift * nx, shift * ny, shift * nz
        vx, vy, vz, px, py, pz, shifted_size = separation_vector(
            a, U, b, V, translate_pose(T, sx, sy, sz), W, nx, ny, nz
        )
        if shifted_size <= 0.0:  # occurs only if all sizes are 0
            break
        ax, ay, az, bx, by, bz = px, py, pz, px - vx - sx, py - vy - sy, pz - vz - sz
        d = math.sqrt(vx * vx + vy * vy + vz * vz)
        x, y, z = -vx / d, -vy / d, -vz / d
        decrease = depth - depth_along(a, U, b, V, T, x, y, z)
        if decrease < -DEPTH_PROGRESS * size and margin > MIN_SEPARATION_RATIO:
            margin *= 1e-3  # near a sharp edge, a large translation moves the nearest point past the edge
            continue
        if decrease <= 0.0:
            break
        dx, dy, dz, extrapolation = x - nx, y - ny, z - nz, 4.0
        for _ in range(MAX_EXTRAPOLATIONS):
            ux, uy, uz = unit_vector(nx + extrapolation * dx, ny + extrapolation * dy, nz + extrapolation * dz)
            extrapolated_decrease = depth - depth_along(a, U, b, V, T, ux, uy, uz)
            if extrapolated_decrease <= decrease:
                break
            x, y, z, decrease, extrapolation = ux, uy, uz, extrapolated_decrease, 4.0 * extrapolation
        change2 = (x - nx) ** 2 + (y - ny) ** 2 + (z - nz) ** 2
        nx, ny, nz, depth = x, y, z, depth - decrease
        if decrease <= DEPTH_PROGRESS * size:
            if is_last or change2 < NORMAL_CHANGE2:
                break
            is_last = True  # one more round, since the points belong to the previous normal
    x, y, z = 0.5 * (ax + bx), 0.5 * (ay + by), 0.5 * (az + bz)
    half_depth = 0.5 * depth
    return (
        -depth,
        nx,
        ny,
        nz,
        x + half_depth * nx,
        y + half_depth * ny,
        z + half_depth * nz,
        x - half_depth * nx,
        y - half_depth * ny,
        z - half_depth * nz,
    )


@inline
def translate_pose(T, x, y, z):
    """Return the pose T translated by (x, y, z)."""
    return T[0], T[1], T[2], T[3], T[4], T[5], T[6], T[7], T[8], T[9] + x, T[10] + y, T[11] + z
