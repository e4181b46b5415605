"""Distance between two convex cores, with a normal that is accurate at distance 0 too, and special cases of cylinders.

Separated cores use GJK (`gjk_epa.py`), overlapping cores a polytope. Both lose the normal near distance 0, and a
polytope converges slowly on round shapes. So the normal is refined by another distance computation, after B was
translated away along the normal found so far: the nearest points are the same, but now a vector separates them.

GJK also converges slowly on cylinders, so these have their own methods, all in the frame of the cylinder, with z its
axis. The offset from the nearest point of a cylinder to a point x is known in closed form. Half its squared length is
convex with the offset as its gradient. So the nearest point of a segment is where the offset is perpendicular to the
segment: a root of an increasing function of one variable.

Two cylinders: if the offset leaves the side of a cylinder, it lies on the offset from the axis of that cylinder to the
other. If it leaves a flat cap, it is along the axis, to the extreme point of the other. Else it goes from rim to rim,
found by Newton's method in the angle on the first rim.

A cylinder and a polytope (segment, box or hull): as in GJK a simplex moves to the nearest point, but its corners are
those of the polytope alone. The offset to an edge is found at once, and the offset to the interior of a triangle can
only be along its normal. So the number of steps depends on the corners of the polytope only.

Results for cylinders are proven by an upper and a lower bound; without a proof, GJK computes them instead.
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
    expand_until,
    first_polytope,
    gjk_distance,
    support_point,
    unit_vector,
)
from .primitive_distance import clamp, to_world_vector

MAX_SEGMENT_STEPS = 40
LAST_SEGMENT_STEP = 1e-8
"""A Newton step shorter than this share of a segment is the last: the next error is about its square."""


@inline
def offset_from_cylinder(radius, half, x, y, z):
    """Return the offset to a point from the nearest point of a cylinder; 0 inside."""
    radial = math.sqrt(x * x + y * y)
    factor = 1.0 - radius / radial if radial > radius else 0.0
    return factor * x, factor * y, z - clamp(z, half)


@subroutine
def nearest_on_segment_to_cylinder(radius, half, px, py, pz, ux, uy, uz):
    """Return the t (0 to 1) of the point of the segment p + t u nearest to a cylinder, and the offset to it."""
    radial_square = ux * ux + uy * uy
    t, low, high, first_slope, is_last = 0.0, 0.0, 1.0, 0.0, False
    ex, ey, ez = 0.0, 0.0, 0.0
    for k in range(MAX_SEGMENT_STEPS):
        x, y, z = px + t * ux, py + t * uy, pz + t * uz
        radial = math.sqrt(x * x + y * y)
        factor = 1.0 - radius / radial if radial > radius else 0.0
        ex, ey, ez = factor * x, factor * y, z - clamp(z, half)
        slope = ex * ux + ey * uy + ez * uz
        if is_last or slope == 0.0 or (k == 0 and slope > 0.0) or (k == 1 and slope < 0.0):
            break
        if k == 0:
            first_slope, t = slope, 1.0
            continue
        if k == 1:  # start at the point nearest to the axis, which is the solution beside the cylinder
            t = -(px * ux + py * uy) / radial_square if radial_square > 0.0 else 0.5
            if not 0.0 < t < 1.0:
                t = first_slope / (first_slope - slope)
            continue
        low, high = (t, high) if slope < 0.0 else (low, t)
        curvature = uz * uz if ez != 0.0 else 0.0
        if factor > 0.0:
            radial_slope = (x * ux + y * uy) / radial
            curvature += radial_slope * radial_slope + factor * (radial_square - radial_slope * radial_slope)
        step = -slope / curvature if curvature > 0.0 else math.inf
        is_last = abs(step) < LAST_SEGMENT_STEP
        t += step
        if not low < t < high:
            t = 0.5 * (low + high)
            is_last = t == low or t == high
    return t, ex, ey, ez


MAX_RIM_STEPS = 30
RIM_TOLERANCE = 4e-15
"""Largest difference of the upper and the lower bound, as a share of the size."""
PARALLEL_SINE = 1e-15
"""Sine of the angle below which axes count as parallel."""
LAST_RIM_STEP = 1e-8
"""Rad: a shorter Newton step is the last."""
UNPROVEN_RESULT = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0)
TOUCHING_RESULT = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@subroutine
def cylinder_to_cylinder(radius, half, r, h, T):
    """Return the offset from cylinder A to another at pose T with radius r and half length h, and its end point, in A.

    Returns:
        ex, ey, ez, x, y, z, size: the size is 0 if they touch, and negative if the result is not proven.
    """
    size = radius + half + r + h + abs(T[9]) + abs(T[10]) + abs(T[11])
    I = inverse_pose(T)
    x, y, axis_offset, swapped_axis_offset = 0.0, 0.0, 0.0, 0.0
    for k in range(4):  # the side of the second, of the first; a cap of the first, of the second
        is_swapped = k == 1 or k == 3
        p, q, u, v, X = (r, h, radius, half, I) if is_swapped else (radius, half, r, h, T)
        if k < 2:
            outcome, ex, ey, ez, bx, by, bz = offset_to_side(p, q, u, v, X, size)
            if k == 0:
                x, y, axis_offset = bx - ex, by - ey, ez
            swapped_axis_offset = ez
        else:
            outcome, ex, ey, ez, bx, by, bz = offset_to_cap(
                p, q, u, v, X, swapped_axis_offset if is_swapped else axis_offset
            )
        if outcome < 0.0:
            return TOUCHING_RESULT
        if outcome > 0.0:
            if is_swapped:
                ex, ey, ez = to_world_vector(T, -ex, -ey, -ez)
                bx, by, bz = to_world_vector(T, bx, by, bz)
                bx, by, bz = bx + T[9] + ex, by + T[10] + ey, bz + T[11] + ez
            return ex, ey, ez, bx, by, bz, size
    return offset_from_rim(radius, half, r, h, T, I, x, y, axis_offset, size)


@inline
def inverse_pose(T):
    x, y, z = T[9], T[10], T[11]
    return (
        T[0], T[3], T[6], T[1], T[4], T[7], T[2], T[5], T[8],
        -(T[0] * x + T[3] * y + T[6] * z), -(T[1] * x + T[4] * y + T[7] * z), -(T[2] * x + T[5] * y + T[8] * z),
    )  # fmt: skip


@subroutine
def offset_to_side(radius, half, r, h, T, size):
    """Return the offset from a cylinder to the side of another, and its end point.

    Returns:
        1, the offset and its end point; -1 if they touch; 0 if the offset does not lead to the side, with the offset
        to the end of the axis.
    """
    ux, uy, uz = 2.0 * h * T[2], 2.0 * h * T[5], 2.0 * h * T[8]
    x, y, z = T[9] - 0.5 * ux, T[10] - 0.5 * uy, T[11] - 0.5 * uz
    t, ex, ey, ez = nearest_on_segment_to_cylinder(radius, half, x, y, z, ux, uy, uz)
    x, y, z = x + t * ux, y + t * uy, z + t * uz
    d = math.sqrt(ex * ex + ey * ey + ez * ez)
    is_side = 0.0 < t < 1.0
    if d <= (r if is_side else 0.0):
        return -1.0, ex, ey, ez, x, y, z
    if not is_side or not abs(ex * ux + ey * uy + ez * uz) <= RIM_TOLERANCE * size * d:
        return 0.0, ex, ey, ez, x, y, z
    k = r / d
    x, y, z = x - k * ex, y - k * ey, z - k * ez
    k = 1.0 - k
    return 1.0, k * ex, k * ey, k * ez, x, y, z


@subroutine
def offset_to_cap(radius, half, r, h, T, axis_offset):
    """Return 1, the offset along z from a flat cap of a cylinder to another, and its end point; 0 if there is none.

    Args:
        axis_offset: positive for the upper cap.
    """
    s = math.copysign(1.0, axis_offset)
    axial = math.copysign(h, -s * T[8])
    x, y, z = T[9] + axial * T[2], T[10] + axial * T[5], T[11] + axial * T[8]
    sine = math.sqrt(T[2] * T[2] + T[5] * T[5])
    if sine > PARALLEL_SINE:  # the lowest point of its cap
        k = s * r * T[8] / sine
        x, y, z = x + k * T[2], y + k * T[5], z - s * r * sine
    else:  # all points of the cap are equally low: the nearest to the axis
        radial = math.sqrt(x * x + y * y)
        k = r / radial if radial > r else 1.0
        x, y = x - k * x, y - k * y
    d = s * z - half
    is_above = d > 0.0 and x * x + y * y <= radius * radius
    return (1.0 if is_above else 0.0), 0.0, 0.0, s * d, x, y, z


@subroutine
def offset_from_rim(radius, half, r, h, T, I, x, y, axis_offset, size):
    """Return the offset from the rim of a cylinder to another, as `cylinder_to_cylinder`.

    Args:
        T, I: the pose of the other cylinder, and its inverse.
        x, y: start point on the rim.
        axis_offset: positive for the upper rim.
    """
    radial = math.sqrt(x * x + y * y)
    c, s = (x / radial, y / radial) if radial > 0.0 else (1.0, 0.0)
    high = math.copysign(half, axis_offset)
    mx, my, mz = I[9] + high * T[6], I[10] + high * T[7], I[11] + high * T[8]
    cx, cy, cz, sx, sy, sz = radius * T[0], radius * T[1], radius * T[2], radius * T[3], radius * T[4], radius * T[5]
    x, y, z, fx, fy, fz, step, smallest, best_c, best_s = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, math.inf, c, s
    for n in range(MAX_RIM_STEPS):
        c, s = best_c - step * best_s, best_s + step * best_c
        k = 1.0 / math.sqrt(c * c + s * s)
        c, s = k * c, k * s
        x, y, z = mx + c * cx + s * sx, my + c * cy + s * sy, mz + c * cz + s * sz
        radial = math.sqrt(x * x + y * y)
        factor = 1.0 - r / radial if radial > r else 0.0
        fx, fy, fz = factor * x, factor * y, z - clamp(z, h)
        square = fx * fx + fy * fy + fz * fz
        if n > 0 and abs(step) < LAST_RIM_STEP:
            break
        if square > smallest:
            step *= 0.25
            continue
        smallest, best_c, best_s = square, c, s
        ux, uy, uz = c * sx - s * cx, c * sy - s * cy, c * sz - s * cz
        slope = ux * fx + uy * fy + uz * fz
        curvature = uz * uz if fz != 0.0 else 0.0
        if factor > 0.0:
            radial_slope = (x * ux + y * uy) / radial
            curvature += radial_slope * radial_slope + factor * (ux * ux + uy * uy - radial_slope * radial_slope)
        inward = (x - mx) * fx + (y - my) * fy + (z - mz) * fz
        if curvature > inward:
            curvature -= inward
        if curvature <= 0.0:
            break
        step = min(max(-slope / curvature, -1.0), 1.0)
    d = math.sqrt(fx * fx + fy * fy + fz * fz)
    gx, gy, gz = to_world_vector(T, fx, fy, fz)
    smallest = fx * I[9] + fy * I[10] + fz * I[11] - radius * math.sqrt(gx * gx + gy * gy) - half * abs(gz)
    smallest -= r * math.sqrt(fx * fx + fy * fy) + h * abs(fz)
    if d <= 0.0:
        return TOUCHING_RESULT
    if not d * d - smallest <= RIM_TOLERANCE * size * d:
        return UNPROVEN_RESULT
    qx, qy, qz = to_world_vector(T, x - fx, y - fy, z - fz)
    return -gx, -gy, -gz, qx + T[9], qy + T[10], qz + T[11], size


MAX_CORNER_STEPS = 24
CORNER_TOLERANCE = 4e-15
"""Largest difference of the upper and the lower bound, as a share of the size."""
LEVEL_SINE = 1e-15
"""Sine of the angle below which a triangle counts as parallel or perpendicular to the axis of a cylinder."""
CORNER_TOUCHING = 1e-13


@inline
def nearest_core_corner(b, V, T, x, y, z):
    """Return the corner of the core b, with pose T, that is lowest along a direction."""
    px, py, pz = support_point(
        b, V, -(T[0] * x + T[3] * y + T[6] * z), -(T[1] * x + T[4] * y + T[7] * z), -(T[2] * x + T[5] * y + T[8] * z)
    )
    return (
        T[0] * px + T[1] * py + T[2] * pz + T[9],
        T[3] * px + T[4] * py + T[5] * pz + T[10],
        T[6] * px + T[7] * py + T[8] * pz + T[11],
    )


@subroutine
def offset_to_triangle(radius, half, W, i, j, k):
    """Return whether the nearest point is inside a triangle; the offset from a cylinder to it, and its end point.

    The offset is along the normal of the triangle.
    """
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
    # the extreme point of the cylinder. Of an extreme cap or line the middle is enough: if the middle is not over the
    # triangle, the nearest point is found on an edge
    sine = math.sqrt(nx * nx + ny * ny)
    scale = radius / sine if sine > LEVEL_SINE else 0.0
    x, y = scale * nx, scale * ny
    z = math.copysign(half, nz) if abs(nz) > LEVEL_SINE else 0.0
    d -= x * nx + y * ny + z * nz
    if d <= 0.0:
        return False, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    x, y, z = x + d * nx, y + d * ny, z + d * nz
    qx, qy, qz = x - px, y - py, z - pz
    u = ((qy * fz - qz * fy) * nx + (qz * fx - qx * fz) * ny + (qx * fy - qy * fx) * nz) * s
    v = ((ey * qz - ez * qy) * nx + (ez * qx - ex * qz) * ny + (ex * qy - ey * qx) * nz) * s
    return u >= 0.0 and v >= 0.0 and u + v <= 1.0, d * nx, d * ny, d * nz, x, y, z


@subroutine
def cylinder_to_polytope(radius, half, b, V, T, W):
    """Return the offset from a cylinder to a polytope core, and its end point, in the frame of the cylinder.

    Args:
        b, V, T: the core, its points and its pose.
        W: (4, 7) work array.

    Returns:
        ex, ey, ez, x, y, z, size: the size is 0 if they touch, and negative if the result is not proven.
    """
    ex, ey, ez = offset_from_cylinder(radius, half, T[9], T[10], T[11])
    if ex == 0.0 and ey == 0.0 and ez == 0.0:
        ex, ey, ez = T[9], T[10], T[11]
    x, y, z, size, n, square = 0.0, 0.0, 0.0, radius + half, 0, math.inf
    for _ in range(MAX_CORNER_STEPS):
        wx, wy, wz = nearest_core_corner(b, V, T, ex, ey, ez)
        size = max(size, radius + half + abs(wx) + abs(wy) + abs(wz))
        if n > 0:
            d = math.sqrt(square)
            if d <= CORNER_TOUCHING * size:
                return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            if (x - wx) * ex + (y - wy) * ey + (z - wz) * ez <= CORNER_TOLERANCE * size * d:
                return ex, ey, ez, x, y, z, size
        W[n, 0], W[n, 1], W[n, 2] = wx, wy, wz
        last_square, square, corner_count, i, j = square, math.inf, 0, -1, -1
        for k in range(n - 1):  # triangles first: their interior is nearer than their edges
            for l in range(k + 1, n):
                is_inside, fx, fy, fz, qx, qy, qz = offset_to_triangle(radius, half, W, k, l, n)
                candidate = fx * fx + fy * fy + fz * fz
                if is_inside and candidate < square:
                    square, corner_count, i, j = candidate, 2, k, l
                    ex, ey, ez, x, y, z = fx, fy, fz, qx, qy, qz
        g, h = i, j
        for k in range(max(n, 1)):
            if k != g and k != h:
                ux, uy, uz = W[k, 0] - wx, W[k, 1] - wy, W[k, 2] - wz
                t, fx, fy, fz = nearest_on_segment_to_cylinder(radius, half, wx, wy, wz, ux, uy, uz)
                candidate = fx * fx + fy * fy + fz * fz
                if candidate < square:
                    square, corner_count, i = candidate, 1 if t > 0.0 else 0, k
                    ex, ey, ez, x, y, z = fx, fy, fz, wx + t * ux, wy + t * uy, wz + t * uz
        if not square < last_square:
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
    """Return the vector between the nearest points of two cores, as `gjk_distance`; W is work space only."""
    is_first, is_second = a[0] == CYLINDER and a[1] > 0.0, b[0] == CYLINDER and b[1] > 0.0
    ex, ey, ez, px, py, pz, size = UNPROVEN_RESULT
    if is_first and is_second:
        ex, ey, ez, px, py, pz, size = cylinder_to_cylinder(a[1], a[2], b[1], b[2], T)
    elif is_first or is_second:
        cylinder, polytope, Q, relative_pose = (a, b, V, T) if is_first else (b, a, U, inverse_pose(T))
        ex, ey, ez, px, py, pz, size = cylinder_to_polytope(cylinder[1], cylinder[2], polytope, Q, relative_pose, W)
    if size < 0.0:
        return gjk_distance(a, U, b, V, T, W, math.inf, x, y, z)
    if is_first:
        return -ex, -ey, -ez, px - ex, py - ey, pz - ez, size
    ex, ey, ez = to_world_vector(T, ex, ey, ez)
    px, py, pz = to_world_vector(T, px, py, pz)
    return ex, ey, ez, px + T[9], py + T[10], pz + T[11], size


SEPARATION_RATIO = 1e-2
"""Distance, as a share of the size, to which cores are separated to refine their normal, and above which GJK alone is
accurate enough."""
MIN_SEPARATION_RATIO = 1e-7
"""A separation below this share of the size does not improve the normal."""
DEPTH_PROGRESS, NORMAL_CHANGE2 = 1e-14, 1e-20
"""Smallest decrease of the depth in a round, as a share of the size; squared change of the normal that ends rounds."""
MAX_NORMAL_ROUNDS, MAX_JUMPS = 30, 20
FIRST_DEPTH_RATIO, SAME_NORMAL_COSINE, MAX_EXITS = 1e-6, 0.999992, 4
"""Relative accuracy of the depth to which the polytope grows first; the cosine of 0.004 rad, within which two normals
lead to the same exit; the largest number of exits that are tried before the polytope grows on. Of 140,000 pairs of
cylinders and other shapes, a FIRST_DEPTH_RATIO of 1e-4 missed 7 exits; of 560,000, this value missed none, except
for coaxial cylinders and capsules, where all exits are equal to 1e-8."""
NO_EXIT = (-math.inf, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@subroutine
def core_distance(a, U, b, V, T, W):
    """Return the distance between two cores: (distance, normal, point of A, point of B), in the frame of A.

    Args:
        a, U, b, V: the cores and their points.
        T: pose of B in A.
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
        return polish_normal(a, U, b, V, T, W, nx, ny, nz, depth, size)
    return penetration_depth(a, U, b, V, T, W)


@subroutine
def penetration_depth(a, U, b, V, T, W):
    """Return the distance between two overlapping cores, as `core_distance`.

    A polytope converges slowly on a round surface. So it grows only until its faces bound the depth to
    FIRST_DEPTH_RATIO. A shorter exit than the one found is then within sqrt(2 FIRST_DEPTH_RATIO) rad of the normal
    of a face that is nearer to the origin. Each such normal is refined too, unless a normal beside it was. Where
    they are many, as for nearly coaxial cylinders, the polytope grows on.
    """
    C, M, best = np.empty((MAX_CORNERS + 2, 3)), np.empty((MAX_EXITS, 3)), np.empty(4)
    F, N, E = np.empty((MAX_FACES, 3), np.int64), np.empty((MAX_FACES, 5)), np.empty((3 * MAX_FACES, 2), np.int64)
    size, faces = first_polytope(a, U, b, V, T, C, F, N, E, best)
    is_round = (a[0] == CYLINDER and a[1] > 0.0) or (b[0] == CYLINDER and b[1] > 0.0)
    best_exit, corners, exit_count = NO_EXIT, 4, 0
    for stage in range(0 if is_round else 1, 2):
        if faces > 0:
            depth_ratio = FIRST_DEPTH_RATIO if stage == 0 else 0.0
            corners, faces = expand_until(a, U, b, V, T, C, F, N, E, best, corners, faces, size, depth_ratio)
        for f in range(-1, faces + 2):
            nx, ny, nz, depth = best[0], best[1], best[2], best[3]
            if 0 <= f < faces:
                if stage == 1 or N[f, 3] >= -best_exit[0] - DEPTH_TOLERANCE * size:
                    continue
                nx, ny, nz = N[f, 0], N[f, 1], N[f, 2]
                is_known = False
                for k in range(exit_count):
                    is_known = is_known or nx * M[k, 0] + ny * M[k, 1] + nz * M[k, 2] > SAME_NORMAL_COSINE
                if is_known:
                    continue
                if exit_count == MAX_EXITS:
                    exit_count += 1
                    break
                depth = depth_along(a, U, b, V, T, nx, ny, nz)
            elif f >= faces:
                # nearly coaxial cylinders: all exits across the axes have nearly the same depth, and the best is
                # opposite, or along the vector from axis to axis
                nx, ny, nz = (
                    (-best_exit[1], -best_exit[2], -best_exit[3]) if f == faces else unit_vector(T[9], T[10], 0.0)
                )
                depth = depth_along(a, U, b, V, T, nx, ny, nz)
                if depth >= -best_exit[0]:
                    continue
            candidate = polish_normal(a, U, b, V, T, W, nx, ny, nz, depth, size)
            if f < faces and exit_count < MAX_EXITS:
                M[exit_count, 0], M[exit_count, 1], M[exit_count, 2] = candidate[1], candidate[2], candidate[3]
                exit_count += 1
            if candidate[0] > best_exit[0]:
                best_exit = candidate
        if exit_count <= MAX_EXITS:
            break
    return best_exit


@inline
def depth_along(a, U, b, V, T, x, y, z):
    """Return the translation of B along a unit vector that separates two cores; negative if they are apart along it."""
    wx, wy, wz, _, _, _ = difference_support(a, U, b, V, T, x, y, z)
    return wx * x + wy * y + wz * z


@subroutine
def polish_normal(a, U, b, V, T, W, nx, ny, nz, depth, size):
    """Return the distance of cores whose normal is known roughly, accurate to rounding.

    Where the surface of A - B has radius R, each round multiplies the error of the normal by about depth / R; flat
    faces take one round. Where the two are nearly equal, as for nested cylinders, many rounds would be needed, so
    each round extrapolates its change as long as that helps.
    """
    ax, ay, az, bx, by, bz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    margin, is_last = SEPARATION_RATIO, False
    for _ in range(MAX_NORMAL_ROUNDS):
        s = depth + margin * size
        sx, sy, sz = s * nx, s * ny, s * nz
        vx, vy, vz, px, py, pz, separation = separation_vector(a, U, b, V, translated(T, sx, sy, sz), W, nx, ny, nz)
        if separation <= 0.0:  # only if all sizes are 0
            break
        ax, ay, az, bx, by, bz = px, py, pz, px - vx - sx, py - vy - sy, pz - vz - sz
        d = math.sqrt(vx * vx + vy * vy + vz * vz)
        x, y, z = -vx / d, -vy / d, -vz / d
        decrease = depth - depth_along(a, U, b, V, T, x, y, z)
        if decrease < -DEPTH_PROGRESS * size and margin > MIN_SEPARATION_RATIO:
            margin *= 1e-3  # beside a sharp edge a large translation passes it
            continue
        if decrease <= 0.0:
            break
        dx, dy, dz, jump = x - nx, y - ny, z - nz, 4.0
        for _ in range(MAX_JUMPS):
            ux, uy, uz = unit_vector(nx + jump * dx, ny + jump * dy, nz + jump * dz)
            jump_decrease = depth - depth_along(a, U, b, V, T, ux, uy, uz)
            if jump_decrease <= decrease:
                break
            x, y, z, decrease, jump = ux, uy, uz, jump_decrease, 4.0 * jump
        change2 = (x - nx) ** 2 + (y - ny) ** 2 + (z - nz) ** 2
        nx, ny, nz, depth = x, y, z, depth - decrease
        if decrease <= DEPTH_PROGRESS * size:
            if is_last or change2 < NORMAL_CHANGE2:
                break
            is_last = True  # one more round, since the points belong to the previous normal
    x, y, z = 0.5 * (ax + bx), 0.5 * (ay + by), 0.5 * (az + bz)
    h = 0.5 * depth
    return -depth, nx, ny, nz, x + h * nx, y + h * ny, z + h * nz, x - h * nx, y - h * ny, z - h * nz


@inline
def translated(T, x, y, z):
    return T[0], T[1], T[2], T[3], T[4], T[5], T[6], T[7], T[8], T[9] + x, T[10] + y, T[11] + z
