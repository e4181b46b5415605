"""Distances from a box to a point, a segment or another box, in closed form and in the frame of the box.

The Minkowski difference A - B of two shapes contains all differences of a point of A and a point of B, so the distance
of separated shapes is that of the origin to A - B. The faces of A - B are called Minkowski faces. The separation of a
face is the signed distance of the origin from its plane. The face with the largest separation gives the shortest
translation that separates overlapping shapes. It also gives the distance of separated shapes if the difference of
their nearest points is on the face.

For a box and a segment there are twelve Minkowski faces. Their normals are along the three axes of the box, and along
the three directions perpendicular to the segment and an edge. If no face gives the distance of separated shapes, the
squared distance along the segment consists of parabolas, whose minimum is found exactly.

For two boxes there are fifteen pairs of Minkowski faces: one for each pair of parallel sides of a box, and a pair of
parallelograms for each pair of edge directions. If no face gives the distance of separated boxes, one of the nearest
points is a corner of a box, found by comparing all corners and edges.

In the frame of the first box, with half extents h, the second box has its centre at c, the axes u, v and w, and the
half extents o. Half extents are half the lengths of the edges, in m. A segment has the middle c, the direction u and
the points c + t u, with t from -half_length to half_length. Helper functions treat a side normal to z, or an edge along
z, of the first box; their callers permute the axes. A distance result is defined in `collision_layout.py`.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import inline, subroutine
from .primitive_distance import EQUAL_RATIO, MIN_LENGTH, clamp, result_in_world, swap_shapes, to_local_vector

NEAR_RATIO = 1e-6
"""Share of the size of a pair (see `EQUAL_RATIO`). At shorter distances, if a Minkowski face gives the same distance as
the nearest points, the normal of the face is more accurate than the vector between these points."""


@inline
def excess(x, bound):
    """Return how far x is outside of -bound .. bound, with the sign of x; exactly 0 inside."""
    return x - min(max(x, -bound), bound)


@inline
def sign(x):
    """Return 1.0 for x >= 0, else -1.0."""
    return 1.0 if x >= 0.0 else -1.0


@inline
def clip_to_slab(c, u, bound, t_start, t_end):
    """Return the part of t_start <= t <= t_end with |c + t u| <= bound; its start is above its end if there is none."""
    if u == 0.0:
        return (t_start, t_end) if abs(c) <= bound else (1.0, -1.0)
    t_low, t_high = (-bound - c) / u, (bound - c) / u
    return max(t_start, min(t_low, t_high)), min(t_end, max(t_low, t_high))


@subroutine
def box_point(A, hx, hy, hz, B):
    """Return the distance result of the box at A, with half extents hx, hy, hz, and the origin of B."""
    x, y, z = to_local_vector(A, B[9] - A[9], B[10] - A[10], B[11] - A[11])
    ex, ey, ez = excess(x, hx), excess(y, hy), excess(z, hz)
    d = math.sqrt(ex * ex + ey * ey + ez * ez)
    if d > MIN_LENGTH:
        return result_in_world(A, d, (ex / d, ey / d, ez / d), (x - ex, y - ey, z - ez))
    dx, dy, dz = abs(x) - hx, abs(y) - hy, abs(z) - hz
    if dx >= dy and dx >= dz:
        return result_in_world(A, dx, (sign(x), 0.0, 0.0), (sign(x) * hx, y, z))
    if dy >= dz:
        return result_in_world(A, dy, (0.0, sign(y), 0.0), (x, sign(y) * hy, z))
    return result_in_world(A, dz, (0.0, 0.0, sign(z)), (x, y, sign(z) * hz))


@inline
def segment_edge_separation(cx, cy, hx, hy, ux, uy):
    """Return the separation along the common normal of the segment and an edge along z; -inf if they are parallel."""
    norm = math.sqrt(ux * ux + uy * uy)
    return (abs(cx * uy - cy * ux) - hx * abs(uy) - hy * abs(ux)) / norm if norm > EQUAL_RATIO else -math.inf


@subroutine
def lowest_over_side(cx, cy, cz, ux, uy, uz, half_length, hx, hy, hz, size):
    """Return t of the segment point with the smallest height over a side of a box, and whether it is over the side.

    The side is normal to z and faces the middle of the segment. Of a level segment, parallel to the side, the point is
    the middle of the part over the side.
    """
    slope = uz * sign(cz)
    if abs(slope) * half_length <= EQUAL_RATIO * size:
        t_low, t = clip_to_slab(cx, ux, hx + EQUAL_RATIO * size, -half_length, half_length)
        t_low, t = clip_to_slab(cy, uy, hy + EQUAL_RATIO * size, t_low, t)
        return clamp(0.5 * (t_low + t), half_length), t_low <= t
    t = -sign(slope) * half_length
    tolerance = EQUAL_RATIO * size
    return t, abs(cx + t * ux) <= hx + tolerance and abs(cy + t * uy) <= hy + tolerance


@subroutine
def nearest_to_edge(cx, cy, cz, ux, uy, uz, half_length, hx, hy, hz, size):
    """Find the point of a segment that is nearest to an edge along z.

    Returns:
        t of the point, whether the nearest points are inside segment and edge, and x and y of the normal.
    """
    norm = math.sqrt(ux * ux + uy * uy)
    nx, ny = uy / norm, -ux / norm
    if cx * nx + cy * ny < 0.0:
        nx, ny = -nx, -ny
    t = ((sign(nx) * hx - cx) * ux + (sign(ny) * hy - cy) * uy) / (norm * norm)
    tolerance = EQUAL_RATIO * size
    is_inside = abs(t) <= half_length + tolerance and abs(cz + t * uz) <= hz + tolerance
    return clamp(t, half_length), is_inside, nx, ny


@inline
def distance_slope(c, u, h, t):
    """Return the derivative with respect to t of half the squared distance between a box and the point c + t u."""
    return (
        u[0] * excess(c[0] + t * u[0], h[0])
        + u[1] * excess(c[1] + t * u[1], h[1])
        + u[2] * excess(c[2] + t * u[2], h[2])
    )


@inline
def narrow_interval(c, u, h, t, t_low, t_high):
    """Return the interval that contains the minimum of the distance, narrowed by the slope at t."""
    if t_low < t < t_high:
        slope = distance_slope(c, u, h, t)
        if slope < 0.0:
            t_low = t
        elif slope > 0.0:
            t_high = t
        else:
            t_low = t_high = t
    return t_low, t_high


@subroutine
def nearest_on_segment_to_box(c, u, h, half_length):
    """Return the t at which the segment c + t u is nearest to a box. The segment must not touch the box."""
    if distance_slope(c, u, h, -half_length) >= 0.0:
        return -half_length
    if distance_slope(c, u, h, half_length) <= 0.0:
        return half_length
    t_low, t_high = -half_length, half_length
    for k in range(3):  # the slope is linear between the six planes of the sides
        if u[k] != 0.0:
            t_low, t_high = narrow_interval(c, u, h, (h[k] - c[k]) / u[k], t_low, t_high)
            t_low, t_high = narrow_interval(c, u, h, (-h[k] - c[k]) / u[k], t_low, t_high)
    t_middle = 0.5 * (t_low + t_high)
    numerator, denominator = 0.0, 0.0
    for k in range(3):
        e = excess(c[k] + t_middle * u[k], h[k])
        if e != 0.0:
            numerator += u[k] * (c[k] - (h[k] if e > 0.0 else -h[k]))
            denominator += u[k] * u[k]
    t = -numerator / denominator if denominator > EQUAL_RATIO * EQUAL_RATIO else t_middle
    return min(max(t, t_low), t_high)


@inline
def normal_to_segment(e, p, u, h, rounding):
    """Return the unit vector along e, without its component along the segment if that component is a rounding error.

    Args:
        e: vector from the box to the point p of the segment. Where p is near the plane of a side, rounding may have set
            a small component to zero.
        p: the point, in the frame of the box.
        u: direction of the segment.
        h: half extents of the box.
        rounding: largest rounding error, m.
    """
    x = u[0] if e[0] != 0.0 or abs(p[0]) >= h[0] - rounding else 0.0
    y = u[1] if e[1] != 0.0 or abs(p[1]) >= h[1] - rounding else 0.0
    z = u[2] if e[2] != 0.0 or abs(p[2]) >= h[2] - rounding else 0.0
    parallel_part, direction_square = e[0] * x + e[1] * y + e[2] * z, x * x + y * y + z * z
    if parallel_part * parallel_part < direction_square * rounding * rounding:
        parallel_part /= direction_square
        nx, ny, nz = e[0] - parallel_part * x, e[1] - parallel_part * y, e[2] - parallel_part * z
        if nx * p[0] >= 0.0 and ny * p[1] >= 0.0 and nz * p[2] >= 0.0:
            e = (nx, ny, nz)
    norm = math.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2])
    return e[0] / norm, e[1] / norm, e[2] / norm


@subroutine
def box_segment(A, hx, hy, hz, B, half_length):
    """Return the distance result of the box at A, with half extents hx, hy, hz, and the segment along z of B."""
    x, y, z = to_local_vector(A, B[9] - A[9], B[10] - A[10], B[11] - A[11])
    ux, uy, uz = to_local_vector(A, B[2], B[5], B[8])
    size = abs(x) + abs(y) + abs(z) + hx + hy + hz + half_length
    side_x = abs(x) - hx - half_length * abs(ux)
    side_y = abs(y) - hy - half_length * abs(uy)
    side_z = abs(z) - hz - half_length * abs(uz)
    edge_x, edge_y, edge_z = (
        segment_edge_separation(y, z, hy, hz, uy, uz),
        segment_edge_separation(z, x, hz, hx, uz, ux),
        segment_edge_separation(x, y, hx, hy, ux, uy),
    )
    d = max(side_x, side_y, side_z)
    largest_edge = max(edge_x, edge_y, edge_z)
    if largest_edge > d + EQUAL_RATIO * size:  # at equal separations a side is preferred
        d = largest_edge
        if edge_x == largest_edge:
            t, is_inside, ny, nz = nearest_to_edge(y, z, x, uy, uz, ux, half_length, hy, hz, hx, size)
            nx = 0.0
        elif edge_y == largest_edge:
            t, is_inside, nz, nx = nearest_to_edge(z, x, y, uz, ux, uy, half_length, hz, hx, hy, size)
            ny = 0.0
        else:
            t, is_inside, nx, ny = nearest_to_edge(x, y, z, ux, uy, uz, half_length, hx, hy, hz, size)
            nz = 0.0
    elif side_x == d:
        t, is_inside = lowest_over_side(y, z, x, uy, uz, ux, half_length, hy, hz, hx, size)
        nx, ny, nz = sign(x), 0.0, 0.0
    elif side_y == d:
        t, is_inside = lowest_over_side(z, x, y, uz, ux, uy, half_length, hz, hx, hy, size)
        nx, ny, nz = 0.0, sign(y), 0.0
    else:
        t, is_inside = lowest_over_side(x, y, z, ux, uy, uz, half_length, hx, hy, hz, size)
        nx, ny, nz = 0.0, 0.0, sign(z)
    if not is_inside:
        shift = max(4.0 * EQUAL_RATIO * size - d, 0.0)  # move the segment out of the box by a small margin
        px, py, pz = x + shift * nx, y + shift * ny, z + shift * nz
        t = nearest_on_segment_to_box((px, py, pz), (ux, uy, uz), (hx, hy, hz), half_length)
        if d > 0.0:
            p = (x + t * ux, y + t * uy, z + t * uz)
            ex, ey, ez = excess(p[0], hx), excess(p[1], hy), excess(p[2], hz)
            point_distance = math.sqrt(ex * ex + ey * ey + ez * ez)
            if point_distance > d + EQUAL_RATIO * size or point_distance > NEAR_RATIO * size:
                d = point_distance
                rounding = 8.0 * EQUAL_RATIO * size if abs(t) < half_length else 0.0
                nx, ny, nz = normal_to_segment((ex, ey, ez), p, (ux, uy, uz), (hx, hy, hz), rounding)
    px, py, pz = x + t * ux, y + t * uy, z + t * uz
    return result_in_world(A, d, (nx, ny, nz), (px - d * nx, py - d * ny, pz - d * nz))


@inline
def point_of_second_box(c, u, v, w, p, q, r):
    """Return the point c + p u + q v + r w, which has the coordinates p, q and r in the frame of the second box."""
    return (
        c[0] + p * u[0] + q * v[0] + r * w[0],
        c[1] + p * u[1] + q * v[1] + r * w[1],
        c[2] + p * u[2] + q * v[2] + r * w[2],
    )


@inline
def squared_distance(x, h):
    """Return the squared distance between the point x and a box with half extents h; 0 inside."""
    dx, dy, dz = excess(x[0], h[0]), excess(x[1], h[1]), excess(x[2], h[2])
    return dx * dx + dy * dy + dz * dz


@subroutine
def nearest_box_corner(c, h, u, v, w, o):
    """Return the smallest distance of a corner of the second box from the first box, and this corner."""
    smallest_square, nearest_point = math.inf, c
    for k in range(8):
        point = point_of_second_box(
            c, u, v, w, -o[0] if k & 1 else o[0], -o[1] if k & 2 else o[1], -o[2] if k & 4 else o[2]
        )
        square = squared_distance(point, h)
        if square < smallest_square:
            smallest_square, nearest_point = square, point
    return math.sqrt(smallest_square), nearest_point


@subroutine
def nearest_on_box_edges(c, h, u, v, w, o):
    """Return the smallest distance of an edge of the second box from the first box, and the nearest edge point."""
    smallest_square, nearest_point = math.inf, c
    for _ in range(3):
        for k in range(4):
            p, q = -1.0 if k & 1 else 1.0, -1.0 if k & 2 else 1.0
            start = point_of_second_box(c, u, v, w, p * o[0], q * o[1], 0.0)
            t = nearest_on_segment_to_box(start, w, h, o[2])
            point = (start[0] + t * w[0], start[1] + t * w[1], start[2] + t * w[2])
            square = squared_distance(point, h)
            if square < smallest_square:
                smallest_square, nearest_point = square, point
        u, v, w = v, w, u
        o = (o[1], o[2], o[0])
    return math.sqrt(smallest_square), nearest_point


@inline
def rotate_axis_last(k, v):
    """Permute the elements of v cyclically so that element k is the last."""
    if k == 0:
        return v[1], v[2], v[0]
    if k == 1:
        return v[2], v[0], v[1]
    return v


@inline
def rotate_axis_back(k, v):
    """Undo the permutation of `rotate_axis_last`."""
    if k == 0:
        return v[2], v[0], v[1]
    if k == 1:
        return v[1], v[2], v[0]
    return v


@inline
def edge_edge_separation(cx, cy, hx, hy, u, v, w, hv, hw):
    """Return the separation of two boxes along the common normal of edges along u and z; -inf if these are parallel.

    Args:
        cx, cy: centre of the second box in the frame of the first.
        hx, hy: half extents of the first box.
        u, v, w: axes of the second box; only x and y are used.
        hv, hw: half extents of the second box along v and w.
    """
    norm = math.sqrt(u[0] * u[0] + u[1] * u[1])
    if norm <= EQUAL_RATIO:
        return -math.inf
    # normalized before the projection: any direction gives a valid bound if both boxes use exactly the same direction
    x, y = u[1] / norm, -u[0] / norm
    extent = hv * abs(v[0] * x + v[1] * y) + hw * abs(w[0] * x + w[1] * y)
    return abs(cx * x + cy * y) - hx * abs(x) - hy * abs(y) - extent


@subroutine
def result_on_edges(X, k, m, d, c, h, u, v, w, o, tolerance):
    """Return the distance result of an edge along axis k of the box at X and an edge along axis m of the other box.

    Args:
        d: the distance, m.
        c, h, u, v, w, o: the two boxes, as in the module docstring.
        tolerance: m.

    Returns:
        The result, and whether the nearest points are inside both edges.
    """
    cx, cy, cz = rotate_axis_last(k, c)
    hx, hy, hz = rotate_axis_last(k, h)
    hu, hv, hw = rotate_axis_last(m, o)
    if m == 0:
        u, v, w = v, w, u
    elif m == 1:
        u, v, w = w, u, v
    ux, uy, uz = rotate_axis_last(k, u)
    vx, vy, vz = rotate_axis_last(k, v)
    wx, wy, wz = rotate_axis_last(k, w)
    norm = math.sqrt(wx * wx + wy * wy)
    x, y = wy / norm, -wx / norm
    if cx * x + cy * y < 0.0:
        x, y = -x, -y
    shift_u, shift_v = -hu * sign(ux * x + uy * y), -hv * sign(vx * x + vy * y)
    fx, fy, fz = cx + shift_u * ux + shift_v * vx, cy + shift_u * uy + shift_v * vy, cz + shift_u * uz + shift_v * vz
    t = ((sign(x) * hx - fx) * wx + (sign(y) * hy - fy) * wy) / (norm * norm)
    is_inside = abs(t) <= hw + tolerance and abs(fz + t * wz) <= hz + tolerance
    t = clamp(t, hw)
    a = (fx + t * wx - d * x, fy + t * wy - d * y, fz + t * wz)
    return result_in_world(X, d, rotate_axis_back(k, (x, y, 0.0)), rotate_axis_back(k, a)), is_inside


@subroutine
def result_on_side(X, k, d, c, h, u, v, w, o, tolerance):
    """Return the distance result of a side of the box at X, normal to axis k, and the lowest point of the other box.

    If an edge or a side of the other box is level, parallel to the first side, the lowest point is the middle of the
    part over that side: the middle of a segment, or the mean of the corners of a polygon.

    Args:
        d: the distance, m.
        c, h, u, v, w, o: the two boxes, as in the module docstring.
        tolerance: m.

    Returns:
        The result, and whether the lowest point is over the side.
    """
    cx, cy, cz = rotate_axis_last(k, c)
    hx, hy, _ = rotate_axis_last(k, h)
    ux, uy, uz = rotate_axis_last(k, u)
    vx, vy, vz = rotate_axis_last(k, v)
    wx, wy, wz = rotate_axis_last(k, w)
    hu, hv, hw = o
    outward_sign = sign(cz)
    is_level_u, is_level_v, is_level_w = abs(uz) * hu <= tolerance, abs(vz) * hv <= tolerance, abs(wz) * hw <= tolerance
    largest_slope = max(abs(uz), abs(vz), abs(wz))  # the steepest edge does not count as level, even if its length is 0
    is_level_u = is_level_u and abs(uz) < largest_slope
    is_level_v = is_level_v and abs(vz) < largest_slope
    is_level_w = is_level_w and abs(wz) < largest_slope
    x, y, z = cx, cy, cz
    if not is_level_u:
        t = -outward_sign * sign(uz) * hu
        x, y, z = x + t * ux, y + t * uy, z + t * uz
    if not is_level_v:
        t = -outward_sign * sign(vz) * hv
        x, y, z = x + t * vx, y + t * vy, z + t * vz
    if not is_level_w:
        t = -outward_sign * sign(wz) * hw
        x, y, z = x + t * wx, y + t * wy, z + t * wz
    if is_level_u and is_level_v:
        x, y, is_inside = parallelogram_overlap(
            x, y, ux * hu, uy * hu, vx * hv, vy * hv, hx + tolerance, hy + tolerance
        )
    elif is_level_u and is_level_w:
        x, y, is_inside = parallelogram_overlap(
            x, y, ux * hu, uy * hu, wx * hw, wy * hw, hx + tolerance, hy + tolerance
        )
    elif is_level_v and is_level_w:
        x, y, is_inside = parallelogram_overlap(
            x, y, vx * hv, vy * hv, wx * hw, wy * hw, hx + tolerance, hy + tolerance
        )
    elif is_level_u:
        x, y, is_inside = segment_overlap(x, y, ux * hu, uy * hu, hx + tolerance, hy + tolerance)
    elif is_level_v:
        x, y, is_inside = segment_overlap(x, y, vx * hv, vy * hv, hx + tolerance, hy + tolerance)
    elif is_level_w:
        x, y, is_inside = segment_overlap(x, y, wx * hw, wy * hw, hx + tolerance, hy + tolerance)
    else:
        is_inside = abs(x) <= hx + tolerance and abs(y) <= hy + tolerance
    return result_in_world(
        X, d, rotate_axis_back(k, (0.0, 0.0, outward_sign)), rotate_axis_back(k, (x, y, z - d * outward_sign))
    ), is_inside


@inline
def segment_overlap(x, y, ux, uy, hx, hy):
    """Return the middle of the part of the segment (x, y) +- u inside a rectangle, and whether this part exists."""
    t_low, t_high = clip_to_slab(x, ux, hx, -1.0, 1.0)
    t_low, t_high = clip_to_slab(y, uy, hy, t_low, t_high)
    t_middle = clamp(0.5 * (t_low + t_high), 1.0)
    return x + t_middle * ux, y + t_middle * uy, t_low <= t_high


@subroutine
def parallelogram_overlap(x, y, ux, uy, vx, vy, hx, hy):
    """Return the mean of the corners of the overlap of the parallelogram (x, y) +- u +- v and a rectangle.

    The rectangle is |x| <= hx, |y| <= hy; the parallelogram is clipped at each of its edges.

    Returns:
        The mean (2 numbers), and whether there is an overlap.
    """
    corners = np.empty((18, 2))  # its two halves are alternately the input and the output of a clipping step
    for k in range(4):
        sign_u, sign_v = 1.0 if k < 2 else -1.0, -1.0 if k == 1 or k == 2 else 1.0
        corners[k, 0], corners[k, 1] = x + sign_u * ux + sign_v * vx, y + sign_u * uy + sign_v * vy
    input_start, output_start, count = 0, 9, 4
    for edge in range(4):
        axis, outward_sign, bound = edge % 2, 1.0 if edge < 2 else -1.0, hx if edge % 2 == 0 else hy
        output_end = output_start
        for k in range(count):
            corner, next_corner = input_start + k, input_start + (k + 1 if k + 1 < count else 0)
            corner_excess, next_excess = (
                outward_sign * corners[corner, axis] - bound,
                outward_sign * corners[next_corner, axis] - bound,
            )
            if corner_excess <= 0.0:
                corners[output_end, 0], corners[output_end, 1] = corners[corner, 0], corners[corner, 1]
                output_end += 1
            if (corner_excess < 0.0 and next_excess > 0.0) or (corner_excess > 0.0 and next_excess < 0.0):
                t = corner_excess / (corner_excess - next_excess)
                corners[output_end, 0] = corners[corner, 0] + t * (corners[next_corner, 0] - corners[corner, 0])
                corners[output_end, 1] = corners[corner, 1] + t * (corners[next_corner, 1] - corners[corner, 1])
                output_end += 1
        input_start, output_start, count = output_start, input_start, output_end - output_start
        if count == 0:
            return x, y, False
    sum_x, sum_y = 0.0, 0.0
    for k in range(count):
        sum_x += corners[input_start + k, 0]
        sum_y += corners[input_start + k, 1]
    return sum_x / count, sum_y / count, True


@inline
def largest_of_three(a, b, c):
    """Return the largest of three numbers and its index; of equal numbers, the first."""
    if a >= b and a >= c:
        return a, 0
    return (b, 1) if b >= c else (c, 2)


@inline
def largest_side_separation(c, h, u, v, w, o):
    """Return the largest separation along an axis of the first box, and the index of this axis."""
    return largest_of_three(
        abs(c[0]) - h[0] - o[0] * abs(u[0]) - o[1] * abs(v[0]) - o[2] * abs(w[0]),
        abs(c[1]) - h[1] - o[0] * abs(u[1]) - o[1] * abs(v[1]) - o[2] * abs(w[1]),
        abs(c[2]) - h[2] - o[0] * abs(u[2]) - o[1] * abs(v[2]) - o[2] * abs(w[2]),
    )


@inline
def largest_edge_separation(k, c, h, u, v, w, o):
    """Return the largest separation of edges along axis k of the first box and edges along an axis of the second box.

    The index of the axis of the second box is returned, too.
    """
    x, y, _ = rotate_axis_last(k, c)
    hx, hy, _ = rotate_axis_last(k, h)
    u, v, w = rotate_axis_last(k, u), rotate_axis_last(k, v), rotate_axis_last(k, w)
    return largest_of_three(
        edge_edge_separation(x, y, hx, hy, u, v, w, o[1], o[2]),
        edge_edge_separation(x, y, hx, hy, v, w, u, o[2], o[0]),
        edge_edge_separation(x, y, hx, hy, w, u, v, o[0], o[1]),
    )


@inline
def result_at_point(X, d, h, x):
    """Return the distance result of the box at X and the point x in its frame, at the distance d > 0."""
    dx, dy, dz = excess(x[0], h[0]), excess(x[1], h[1]), excess(x[2], h[2])
    return result_in_world(X, d, (dx / d, dy / d, dz / d), (x[0] - dx, x[1] - dy, x[2] - dz))


@subroutine
def is_distance_verified(result, A, a, B, b, tolerance):
    """Return whether the separation of two boxes along the normal of a result equals its distance, up to rounding.

    Args:
        a, b: half extents of the boxes at A and at B.
        tolerance: m.
    """
    x, y, z = to_local_vector(A, result[1], result[2], result[3])
    extent = a[0] * abs(x) + a[1] * abs(y) + a[2] * abs(z)
    x, y, z = to_local_vector(B, result[1], result[2], result[3])
    extent += b[0] * abs(x) + b[1] * abs(y) + b[2] * abs(z)
    centre_distance = result[1] * (B[9] - A[9]) + result[2] * (B[10] - A[10]) + result[3] * (B[11] - A[11])
    return centre_distance - extent >= result[0] - 4.0 * tolerance


@inline
def centre_in_second_frame(c, u, v, w):
    """Return the centre of the first box in the frame of the second box."""
    return (
        -(c[0] * u[0] + c[1] * u[1] + c[2] * u[2]),
        -(c[0] * v[0] + c[1] * v[1] + c[2] * v[2]),
        -(c[0] * w[0] + c[1] * w[1] + c[2] * w[2]),
    )


@subroutine
def with_contact_points(result, A, a, B, b, c, u, v, w, x, y, z, tolerance):
    """Return a result with the points that are nearest after B is moved along the normal to a small distance from A.

    This is needed if two Minkowski faces have nearly equal separations and the difference of the nearest points is not
    on the selected face.

    Args:
        result: the result of the selected face.
        a, b: half extents of the boxes at A and at B.
        c, u, v, w: centre and axes of B in the frame of A.
        x, y, z: axes of A in the frame of B.
        tolerance: m.
    """
    n = to_local_vector(A, result[1], result[2], result[3])
    shift = 4.0 * tolerance - result[0]
    c = (c[0] + shift * n[0], c[1] + shift * n[1], c[2] + shift * n[2])
    centre_a = centre_in_second_frame(c, u, v, w)
    corner_distance, point = nearest_box_corner(c, a, u, v, w, b)
    corner_distance_a, point_a = nearest_box_corner(centre_a, b, x, y, z, a)
    edge_distance, edge_point = nearest_on_box_edges(c, a, u, v, w, b)
    if corner_distance_a < min(corner_distance, edge_distance):
        point_a = point_of_second_box(c, u, v, w, point_a[0], point_a[1], point_a[2])
        return result_in_world(A, result[0], n, point_a)
    if edge_distance < corner_distance:
        point = edge_point
    shift += result[0]
    return result_in_world(A, result[0], n, (point[0] - shift * n[0], point[1] - shift * n[1], point[2] - shift * n[2]))


@subroutine
def separated_boxes(result, A, a, B, b, c, u, v, w, centre_a, x, y, z, tolerance):
    """Return the distance result of separated boxes if the selected Minkowski face may not give it.

    Args:
        result: the result of the selected face; its distance is a lower bound.
        a, b: half extents of the boxes at A and at B.
        c, u, v, w: centre and axes of B in the frame of A.
        centre_a, x, y, z: centre and axes of A in the frame of B.
        tolerance: m.
    """
    distance_b, point_b = nearest_box_corner(c, a, u, v, w, b)
    distance_a, point_a = nearest_box_corner(centre_a, b, x, y, z, a)
    for pass_index in range(2):
        if min(distance_b, distance_a) <= min(result[0] + tolerance, NEAR_RATIO / EQUAL_RATIO * tolerance):
            return with_contact_points(result, A, a, B, b, c, u, v, w, x, y, z, tolerance)
        nearest_result = (
            result_at_point(A, distance_b, a, point_b)
            if distance_b <= distance_a
            else swap_shapes(result_at_point(B, distance_a, b, point_a))
        )
        if pass_index == 1 or is_distance_verified(nearest_result, A, a, B, b, tolerance):
            break
        # for crossing edges that are nearly parallel to a side
        edge_distance, edge_point = nearest_on_box_edges(c, a, u, v, w, b)
        if edge_distance < distance_b:
            distance_b, point_b = edge_distance, edge_point
    return nearest_result


@subroutine
def box_box(A, a, B, b):
    """Return the distance result of the boxes at A and at B, with half extents a and b (3,)."""
    c = to_local_vector(A, B[9] - A[9], B[10] - A[10], B[11] - A[11])
    u, v, w = (
        to_local_vector(A, B[0], B[3], B[6]),
        to_local_vector(A, B[1], B[4], B[7]),
        to_local_vector(A, B[2], B[5], B[8]),
    )
    centre_a = centre_in_second_frame(c, u, v, w)
    x, y, z = (u[0], v[0], w[0]), (u[1], v[1], w[1]), (u[2], v[2], w[2])
    size = abs(c[0]) + abs(c[1]) + abs(c[2]) + a[0] + a[1] + a[2] + b[0] + b[1] + b[2]
    tolerance = EQUAL_RATIO * size
    side_separation_a, axis_a = largest_side_separation(c, a, u, v, w, b)
    side_separation_b, axis_b = largest_side_separation(centre_a, b, x, y, z, a)
    separation_0, axis_b0 = largest_edge_separation(0, c, a, u, v, w, b)
    separation_1, axis_b1 = largest_edge_separation(1, c, a, u, v, w, b)
    separation_2, axis_b2 = largest_edge_separation(2, c, a, u, v, w, b)
    edge_separation_max, edge_axis = largest_of_three(separation_0, separation_1, separation_2)
    side_separation_max = max(side_separation_a, side_separation_b)
    result, is_inside = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), False
    # at equal separations, sides are preferred to edges, and A to B
    if edge_separation_max <= side_separation_max + tolerance:
        if side_separation_a >= side_separation_b - tolerance:
            result, is_inside = result_on_side(A, axis_a, side_separation_a, c, a, u, v, w, b, tolerance)
        else:
            result, is_inside = result_on_side(B, axis_b, side_separation_b, centre_a, b, x, y, z, a, tolerance)
            result = swap_shapes(result)
    if not is_inside and edge_separation_max >= side_separation_max - tolerance:
        axis_b = axis_b0 if edge_axis == 0 else (axis_b1 if edge_axis == 1 else axis_b2)
        result, is_inside = result_on_edges(A, edge_axis, axis_b, edge_separation_max, c, a, u, v, w, b, tolerance)
    if is_inside:
        return result
    if result[0] > 0.0:
        return separated_boxes(result, A, a, B, b, c, u, v, w, centre_a, x, y, z, tolerance)
    return with_contact_points(result, A, a, B, b, c, u, v, w, x, y, z, tolerance)
