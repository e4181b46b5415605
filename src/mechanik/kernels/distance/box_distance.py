"""Distances from a box to a point, a segment or another box, in closed form and in the frame of the box.

The Minkowski sum of a box and a segment has twelve faces. Their normals are the three of the box, and the three that
are perpendicular to the segment and an edge. For overlaps, the nearest face is the shortest translation out. For
separated shapes, a face decides if the nearest points lie on it; else the squared distance along the segment consists
of parabolas, whose minimum is found exactly.

The Minkowski difference of two boxes has fifteen pairs of faces: the faces of each box, and a parallelogram for each
pair of edges. Its nearest face is the shortest translation out of an overlap, and the distance of separated boxes whose
nearest points lie on it. Else the nearest points are a corner of a box and a point of the other, found among the
corners and along the edges.

The second box has its centre at c in the frame of the first, the axes u, v, w and half the edges o; half the edges
of the first are h. Helpers permute the axes so that the face, or the edge of the first box, is that of the z axis.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import inline, subroutine
from .primitive_distance import MIN_LENGTH, TIE_RATIO, clamp, flipped, result_in_world, to_local

NEAR_RATIO = 1e-6
"""Share of the size of a pair: at shorter distances the normal of a face is more accurate than the vector between the
nearest points."""


@inline
def excess(x, limit):
    """Return how far x is outside of -limit .. limit, with its sign; exact."""
    return x - min(max(x, -limit), limit)


@inline
def sign(x):
    return 1.0 if x >= 0.0 else -1.0


@inline
def clip_to_slab(c, u, limit, start, end):
    """Return the part of start <= t <= end in which |c + t u| <= limit; empty if its start > its end."""
    if u == 0.0:
        return (start, end) if abs(c) <= limit else (1.0, -1.0)
    s, t = (-limit - c) / u, (limit - c) / u
    return max(start, min(s, t)), min(end, max(s, t))


@subroutine
def box_point(B, hx, hy, hz, A):
    """Distance between the box at B, with half edges hx, hy, hz, and the point A."""
    x, y, z = to_local(B, A[9] - B[9], A[10] - B[10], A[11] - B[11])
    ex, ey, ez = excess(x, hx), excess(y, hy), excess(z, hz)
    d = math.sqrt(ex * ex + ey * ey + ez * ez)
    if d > MIN_LENGTH:
        return result_in_world(B, d, (ex / d, ey / d, ez / d), (x - ex, y - ey, z - ez))
    dx, dy, dz = abs(x) - hx, abs(y) - hy, abs(z) - hz
    if dx >= dy and dx >= dz:
        return result_in_world(B, dx, (sign(x), 0.0, 0.0), (sign(x) * hx, y, z))
    if dy >= dz:
        return result_in_world(B, dy, (0.0, sign(y), 0.0), (x, sign(y) * hy, z))
    return result_in_world(B, dz, (0.0, 0.0, sign(z)), (x, y, sign(z) * hz))


@inline
def edge_separation(cx, cy, hx, hy, ux, uy):
    """Return the separation of a segment along the face that it forms with the edges along z; -inf if parallel."""
    k = math.sqrt(ux * ux + uy * uy)
    return (abs(cx * uy - cy * ux) - hx * abs(uy) - hy * abs(ux)) / k if k > TIE_RATIO else -math.inf


@subroutine
def lowest_over_face(cx, cy, cz, ux, uy, uz, length, hx, hy, hz, size):
    """Return the lowest point t of a segment over the face normal to z, and whether it is above that face."""
    slope = uz * sign(cz)
    if abs(slope) * length <= TIE_RATIO * size:  # level: the middle of the part over the face
        s, t = clip_to_slab(cx, ux, hx + TIE_RATIO * size, -length, length)
        s, t = clip_to_slab(cy, uy, hy + TIE_RATIO * size, s, t)
        return clamp(0.5 * (s + t), length), s <= t
    t = -sign(slope) * length
    tolerance = TIE_RATIO * size
    return t, abs(cx + t * ux) <= hx + tolerance and abs(cy + t * uy) <= hy + tolerance


@subroutine
def nearest_to_edge(cx, cy, cz, ux, uy, uz, length, hx, hy, hz, size):
    """Return the point of a segment nearest to the edge along z, whether the nearest points are inside, the normal."""
    k = math.sqrt(ux * ux + uy * uy)
    nx, ny = uy / k, -ux / k
    if cx * nx + cy * ny < 0.0:
        nx, ny = -nx, -ny
    t = ((sign(nx) * hx - cx) * ux + (sign(ny) * hy - cy) * uy) / (k * k)
    tolerance = TIE_RATIO * size
    is_inside = abs(t) <= length + tolerance and abs(cz + t * uz) <= hz + tolerance
    return clamp(t, length), is_inside, nx, ny


@inline
def distance_slope(c, u, h, t):
    """Return the derivative by t of half the squared distance between a box and the point c + t u."""
    return (
        u[0] * excess(c[0] + t * u[0], h[0])
        + u[1] * excess(c[1] + t * u[1], h[1])
        + u[2] * excess(c[2] + t * u[2], h[2])
    )


@inline
def narrow_interval(c, u, h, t, low, high):
    """Return the interval of the minimum, narrowed by the slope at t."""
    if low < t < high:
        g = distance_slope(c, u, h, t)
        if g < 0.0:
            low = t
        elif g > 0.0:
            high = t
        else:
            low = high = t
    return low, high


@subroutine
def nearest_on_segment_to_box(c, u, h, length):
    """Return the t at which the segment c + t u is nearest to a box that it does not touch."""
    if distance_slope(c, u, h, -length) >= 0.0:
        return -length
    if distance_slope(c, u, h, length) <= 0.0:
        return length
    low, high = -length, length
    for k in range(3):  # the slope is linear between the six planes of the faces
        if u[k] != 0.0:
            low, high = narrow_interval(c, u, h, (h[k] - c[k]) / u[k], low, high)
            low, high = narrow_interval(c, u, h, (-h[k] - c[k]) / u[k], low, high)
    middle = 0.5 * (low + high)
    numerator, denominator = 0.0, 0.0
    for k in range(3):
        e = excess(c[k] + middle * u[k], h[k])
        if e != 0.0:
            numerator += u[k] * (c[k] - (h[k] if e > 0.0 else -h[k]))
            denominator += u[k] * u[k]
    t = -numerator / denominator if denominator > TIE_RATIO * TIE_RATIO else middle
    return min(max(t, low), high)


@inline
def normal_to_segment(e, p, u, h, rounding):
    """Return the unit vector along e, without its component along the segment if that is within `rounding`.

    Args:
        e: vector from the box to the point p of the segment. Where p is level with an edge of a face, a small component
            may be missing by rounding.
        u: direction of the segment.
    """
    x = u[0] if e[0] != 0.0 or abs(p[0]) >= h[0] - rounding else 0.0
    y = u[1] if e[1] != 0.0 or abs(p[1]) >= h[1] - rounding else 0.0
    z = u[2] if e[2] != 0.0 or abs(p[2]) >= h[2] - rounding else 0.0
    k, direction_square = e[0] * x + e[1] * y + e[2] * z, x * x + y * y + z * z
    if k * k < direction_square * rounding * rounding:
        k /= direction_square
        a, b, c = e[0] - k * x, e[1] - k * y, e[2] - k * z
        if a * p[0] >= 0.0 and b * p[1] >= 0.0 and c * p[2] >= 0.0:
            e = (a, b, c)
    k = math.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2])
    return e[0] / k, e[1] / k, e[2] / k


@subroutine
def box_segment(B, hx, hy, hz, A, length):
    """Distance between the box at B, with half edges hx, hy, hz and the segment along z of A, half length `length`."""
    x, y, z = to_local(B, A[9] - B[9], A[10] - B[10], A[11] - B[11])
    u, v, w = to_local(B, A[2], A[5], A[8])
    size = abs(x) + abs(y) + abs(z) + hx + hy + hz + length
    dx = abs(x) - hx - length * abs(u)
    dy = abs(y) - hy - length * abs(v)
    dz = abs(z) - hz - length * abs(w)
    ex, ey, ez = (
        edge_separation(y, z, hy, hz, v, w),
        edge_separation(z, x, hz, hx, w, u),
        edge_separation(x, y, hx, hy, u, v),
    )
    d = max(dx, dy, dz)
    e = max(ex, ey, ez)
    if e > d + TIE_RATIO * size:  # a face wins a tie
        d = e
        if ex == e:
            t, is_inside, ny, nz = nearest_to_edge(y, z, x, v, w, u, length, hy, hz, hx, size)
            nx = 0.0
        elif ey == e:
            t, is_inside, nz, nx = nearest_to_edge(z, x, y, w, u, v, length, hz, hx, hy, size)
            ny = 0.0
        else:
            t, is_inside, nx, ny = nearest_to_edge(x, y, z, u, v, w, length, hx, hy, hz, size)
            nz = 0.0
    elif dx == d:
        t, is_inside = lowest_over_face(y, z, x, v, w, u, length, hy, hz, hx, size)
        nx, ny, nz = sign(x), 0.0, 0.0
    elif dy == d:
        t, is_inside = lowest_over_face(z, x, y, w, u, v, length, hz, hx, hy, size)
        nx, ny, nz = 0.0, sign(y), 0.0
    else:
        t, is_inside = lowest_over_face(x, y, z, u, v, w, length, hx, hy, hz, size)
        nx, ny, nz = 0.0, 0.0, sign(z)
    if not is_inside:
        shift = max(4.0 * TIE_RATIO * size - d, 0.0)  # near ties: translated out of the box with a small margin
        px, py, pz = x + shift * nx, y + shift * ny, z + shift * nz
        t = nearest_on_segment_to_box((px, py, pz), (u, v, w), (hx, hy, hz), length)
        if d > 0.0:
            p = (x + t * u, y + t * v, z + t * w)
            ex, ey, ez = excess(p[0], hx), excess(p[1], hy), excess(p[2], hz)
            e = math.sqrt(ex * ex + ey * ey + ez * ez)
            if e > d + TIE_RATIO * size or e > NEAR_RATIO * size:
                d = e
                rounding = 8.0 * TIE_RATIO * size if abs(t) < length else 0.0
                nx, ny, nz = normal_to_segment((ex, ey, ez), p, (u, v, w), (hx, hy, hz), rounding)
    px, py, pz = x + t * u, y + t * v, z + t * w
    return result_in_world(B, d, (nx, ny, nz), (px - d * nx, py - d * ny, pz - d * nz))


@inline
def corner_point(c, u, v, w, p, q, r):
    return (
        c[0] + p * u[0] + q * v[0] + r * w[0],
        c[1] + p * u[1] + q * v[1] + r * w[1],
        c[2] + p * u[2] + q * v[2] + r * w[2],
    )


@inline
def squared_distance(x, h):
    a, b, c = excess(x[0], h[0]), excess(x[1], h[1]), excess(x[2], h[2])
    return a * a + b * b + c * c


@subroutine
def nearest_box_corner(c, h, u, v, w, o):
    """Return the distance of the second box's corner that is nearest to the first box, and the corner."""
    best, corner = math.inf, c
    for k in range(8):
        x = corner_point(c, u, v, w, -o[0] if k & 1 else o[0], -o[1] if k & 2 else o[1], -o[2] if k & 4 else o[2])
        distance = squared_distance(x, h)
        if distance < best:
            best, corner = distance, x
    return math.sqrt(best), corner


@subroutine
def nearest_on_box_edges(c, h, u, v, w, o):
    """Return the distance of the point of the second box's edges that is nearest to the first box, and the point."""
    best, nearest = math.inf, c
    for _ in range(3):
        for k in range(4):
            p, q = -1.0 if k & 1 else 1.0, -1.0 if k & 2 else 1.0
            start = corner_point(c, u, v, w, p * o[0], q * o[1], 0.0)
            t = nearest_on_segment_to_box(start, w, h, o[2])
            x = (start[0] + t * w[0], start[1] + t * w[1], start[2] + t * w[2])
            distance = squared_distance(x, h)
            if distance < best:
                best, nearest = distance, x
        u, v, w = v, w, u
        o = (o[1], o[2], o[0])
    return math.sqrt(best), nearest


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
    if k == 0:
        return v[2], v[0], v[1]
    if k == 1:
        return v[1], v[2], v[0]
    return v


@inline
def edge_pair_separation(cx, cy, hx, hy, u, p, q, hp, hq):
    """Return the separation along the face of the edges along u and those of the first box along z; -inf if parallel.

    Args:
        cx, cy: centre of the second box.
        hx, hy: half edges of the first box.
        u, p, q: (x, y) of the axes of the second box.
        hp, hq: half edges of the second box along p and q.
    """
    k = math.sqrt(u[0] * u[0] + u[1] * u[1])
    if k <= TIE_RATIO:
        return -math.inf
    # normalized first: any direction gives a valid bound, if both boxes are projected on exactly the same direction
    x, y = u[1] / k, -u[0] / k
    reach = hp * abs(p[0] * x + p[1] * y) + hq * abs(q[0] * x + q[1] * y)
    return abs(cx * x + cy * y) - hx * abs(x) - hy * abs(y) - reach


@subroutine
def result_on_edges(X, k, m, d, c, h, u, v, w, o, tolerance):
    """Distance result for the edges along axis k of the box at X and axis m of the other, and whether they meet.

    Args:
        d: the distance.
        c, u, v, w, o: the other box in the frame of the first: centre, axes, half edges.
        tolerance: tolerance, m.
    """
    cx, cy, cz = rotate_axis_last(k, c)
    hx, hy, hz = rotate_axis_last(k, h)
    hp, hq, hu = rotate_axis_last(m, o)
    if m == 0:
        u, v, w = v, w, u
    elif m == 1:
        u, v, w = w, u, v
    px, py, pz = rotate_axis_last(k, u)
    qx, qy, qz = rotate_axis_last(k, v)
    ux, uy, uz = rotate_axis_last(k, w)
    s = math.sqrt(ux * ux + uy * uy)
    x, y = uy / s, -ux / s
    if cx * x + cy * y < 0.0:
        x, y = -x, -y
    p, q = -hp * sign(px * x + py * y), -hq * sign(qx * x + qy * y)
    fx, fy, fz = cx + p * px + q * qx, cy + p * py + q * qy, cz + p * pz + q * qz
    t = ((sign(x) * hx - fx) * ux + (sign(y) * hy - fy) * uy) / (s * s)
    is_inside = abs(t) <= hu + tolerance and abs(fz + t * uz) <= hz + tolerance
    t = clamp(t, hu)
    a = (fx + t * ux - d * x, fy + t * uy - d * y, fz + t * uz)
    return result_in_world(X, d, rotate_axis_back(k, (x, y, 0.0)), rotate_axis_back(k, a)), is_inside


@subroutine
def result_on_face(X, k, d, c, h, u, v, w, o, tolerance):
    """Distance result for face k of the box at X, and whether the lowest point of the other box is over that face.

    Where an edge or a face of the other box is level, its lowest point is the middle of the part over the face.

    Args:
        d: the distance.
        c, u, v, w, o: the other box in the frame of the first: centre, axes, half edges.
        tolerance: tolerance, m.
    """
    cx, cy, cz = rotate_axis_last(k, c)
    hx, hy, _ = rotate_axis_last(k, h)
    ux, uy, uz = rotate_axis_last(k, u)
    px, py, pz = rotate_axis_last(k, v)
    qx, qy, qz = rotate_axis_last(k, w)
    hu, hp, hq = o
    s = sign(cz)
    level_u, level_p, level_q = abs(uz) * hu <= tolerance, abs(pz) * hp <= tolerance, abs(qz) * hq <= tolerance
    steepest = max(abs(uz), abs(pz), abs(qz))  # never level, even if its edge has length 0
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
        x, y, is_inside = parallelogram_overlap(
            x, y, ux * hu, uy * hu, px * hp, py * hp, hx + tolerance, hy + tolerance
        )
    elif level_u and level_q:
        x, y, is_inside = parallelogram_overlap(
            x, y, ux * hu, uy * hu, qx * hq, qy * hq, hx + tolerance, hy + tolerance
        )
    elif level_p and level_q:
        x, y, is_inside = parallelogram_overlap(
            x, y, px * hp, py * hp, qx * hq, qy * hq, hx + tolerance, hy + tolerance
        )
    elif level_u:
        x, y, is_inside = segment_overlap(x, y, ux * hu, uy * hu, hx + tolerance, hy + tolerance)
    elif level_p:
        x, y, is_inside = segment_overlap(x, y, px * hp, py * hp, hx + tolerance, hy + tolerance)
    elif level_q:
        x, y, is_inside = segment_overlap(x, y, qx * hq, qy * hq, hx + tolerance, hy + tolerance)
    else:
        is_inside = abs(x) <= hx + tolerance and abs(y) <= hy + tolerance
    return result_in_world(X, d, rotate_axis_back(k, (0.0, 0.0, s)), rotate_axis_back(k, (x, y, z - d * s))), is_inside


@inline
def segment_overlap(x, y, ux, uy, hx, hy):
    """Return the middle of the part of the segment (x, y) +- u inside a rectangle, and whether there is any."""
    s, t = clip_to_slab(x, ux, hx, -1.0, 1.0)
    s, t = clip_to_slab(y, uy, hy, s, t)
    middle = clamp(0.5 * (s + t), 1.0)
    return x + middle * ux, y + middle * uy, s <= t


@subroutine
def parallelogram_overlap(x, y, ux, uy, px, py, hx, hy):
    """Return the mean corner of the overlap of the parallelogram (x, y) +- u +- p and a rectangle, and whether any.

    The parallelogram is clipped at each side of the rectangle.
    """
    corners = np.empty((18, 2))  # the corners before and after a cut alternate between its two halves
    for k in range(4):
        a, b = 1.0 if k < 2 else -1.0, -1.0 if k == 1 or k == 2 else 1.0
        corners[k, 0], corners[k, 1] = x + a * ux + b * px, y + a * uy + b * py
    first, next_first, count = 0, 9, 4
    for side in range(4):
        axis, outward, limit = side % 2, 1.0 if side < 2 else -1.0, hx if side % 2 == 0 else hy
        end = next_first
        for k in range(count):
            corner, next_corner = first + k, first + (k + 1 if k + 1 < count else 0)
            a, b = outward * corners[corner, axis] - limit, outward * corners[next_corner, axis] - limit
            if a <= 0.0:
                corners[end, 0], corners[end, 1] = corners[corner, 0], corners[corner, 1]
                end += 1
            if (a < 0.0 and b > 0.0) or (a > 0.0 and b < 0.0):
                t = a / (a - b)
                corners[end, 0] = corners[corner, 0] + t * (corners[next_corner, 0] - corners[corner, 0])
                corners[end, 1] = corners[corner, 1] + t * (corners[next_corner, 1] - corners[corner, 1])
                end += 1
        first, next_first, count = next_first, first, end - next_first
        if count == 0:
            return x, y, False
    sum_x, sum_y = 0.0, 0.0
    for k in range(count):
        sum_x += corners[first + k, 0]
        sum_y += corners[first + k, 1]
    return sum_x / count, sum_y / count, True


@inline
def largest_of_three(a, b, c):
    """Return the largest of three numbers and its index; the first in a tie."""
    if a >= b and a >= c:
        return a, 0
    return (b, 1) if b >= c else (c, 2)


@inline
def face_separation(c, h, u, v, w, o):
    """Return the largest separation along the faces of the first box, and its axis."""
    return largest_of_three(
        abs(c[0]) - h[0] - o[0] * abs(u[0]) - o[1] * abs(v[0]) - o[2] * abs(w[0]),
        abs(c[1]) - h[1] - o[0] * abs(u[1]) - o[1] * abs(v[1]) - o[2] * abs(w[1]),
        abs(c[2]) - h[2] - o[0] * abs(u[2]) - o[1] * abs(v[2]) - o[2] * abs(w[2]),
    )


@inline
def edge_separations(k, c, h, u, v, w, o):
    """Return the largest separation for the first box's edges along axis k and those of the second, and its axis."""
    x, y, _ = rotate_axis_last(k, c)
    hx, hy, _ = rotate_axis_last(k, h)
    u, v, w = rotate_axis_last(k, u), rotate_axis_last(k, v), rotate_axis_last(k, w)
    return largest_of_three(
        edge_pair_separation(x, y, hx, hy, u, v, w, o[1], o[2]),
        edge_pair_separation(x, y, hx, hy, v, w, u, o[2], o[0]),
        edge_pair_separation(x, y, hx, hy, w, u, v, o[0], o[1]),
    )


@inline
def corner_result(X, d, h, x):
    """Distance result of the box at X and the point x in its frame, at distance d."""
    a, b, c = excess(x[0], h[0]), excess(x[1], h[1]), excess(x[2], h[2])
    return result_in_world(X, d, (a / d, b / d, c / d), (x[0] - a, x[1] - b, x[2] - c))


@subroutine
def is_separated(result, A, a, B, b, tolerance):
    """Return whether the separation of the boxes along the normal equals the distance of their nearest points."""
    x, y, z = to_local(A, result[1], result[2], result[3])
    reach = a[0] * abs(x) + a[1] * abs(y) + a[2] * abs(z)
    x, y, z = to_local(B, result[1], result[2], result[3])
    reach += b[0] * abs(x) + b[1] * abs(y) + b[2] * abs(z)
    centre_distance = result[1] * (B[9] - A[9]) + result[2] * (B[10] - A[10]) + result[3] * (B[11] - A[11])
    return centre_distance - reach >= result[0] - 4.0 * tolerance


@inline
def inverse_box_frame(c, u, v, w):
    """Return the position of the first box in the frame of the second."""
    return (
        -(c[0] * u[0] + c[1] * u[1] + c[2] * u[2]),
        -(c[0] * v[0] + c[1] * v[1] + c[2] * v[2]),
        -(c[0] * w[0] + c[1] * w[1] + c[2] * w[2]),
    )


@subroutine
def with_contact_points(result, A, a, B, b, c, u, v, w, x, y, z, tolerance):
    """Distance result of a face, with the points that meet once B is translated by the distance and a small margin.

    Needed for near ties of faces, where the chosen face does not contain the points.
    """
    n = to_local(A, result[1], result[2], result[3])
    k = 4.0 * tolerance - result[0]
    c = (c[0] + k * n[0], c[1] + k * n[1], c[2] + k * n[2])
    e = inverse_box_frame(c, u, v, w)
    d, p = nearest_box_corner(c, a, u, v, w, b)
    s, q = nearest_box_corner(e, b, x, y, z, a)
    t, r = nearest_on_box_edges(c, a, u, v, w, b)
    if s < min(d, t):
        q = corner_point(c, u, v, w, q[0], q[1], q[2])
        return result_in_world(A, result[0], n, q)
    if t < d:
        p = r
    k += result[0]
    return result_in_world(A, result[0], n, (p[0] - k * n[0], p[1] - k * n[1], p[2] - k * n[2]))


@subroutine
def separated_boxes(result, A, a, B, b, c, u, v, w, e, x, y, z, tolerance):
    """Distance between separated boxes of which at least one has a corner as its nearest point.

    Args:
        result: the result of the nearest face, a lower bound.
    """
    d, p = nearest_box_corner(c, a, u, v, w, b)
    s, q = nearest_box_corner(e, b, x, y, z, a)
    for attempt in range(2):
        if min(d, s) <= min(result[0] + tolerance, NEAR_RATIO / TIE_RATIO * tolerance):
            return with_contact_points(result, A, a, B, b, c, u, v, w, x, y, z, tolerance)
        best = corner_result(A, d, a, p) if d <= s else flipped(corner_result(B, s, b, q))
        if attempt == 1 or is_separated(best, A, a, B, b, tolerance):
            break
        t, r = nearest_on_box_edges(c, a, u, v, w, b)  # crossing edges that are nearly parallel to a face
        if t < d:
            d, p = t, r
    return best


@subroutine
def box_box(A, a, B, b):
    """Distance between the boxes at A and at B, with half edges a and b (3,)."""
    c = to_local(A, B[9] - A[9], B[10] - A[10], B[11] - A[11])  # B in the frame of A
    u, v, w = to_local(A, B[0], B[3], B[6]), to_local(A, B[1], B[4], B[7]), to_local(A, B[2], B[5], B[8])
    e = inverse_box_frame(c, u, v, w)
    x, y, z = (u[0], v[0], w[0]), (u[1], v[1], w[1]), (u[2], v[2], w[2])
    size = abs(c[0]) + abs(c[1]) + abs(c[2]) + a[0] + a[1] + a[2] + b[0] + b[1] + b[2]
    tolerance = TIE_RATIO * size
    face_a, k = face_separation(c, a, u, v, w, b)
    face_b, m = face_separation(e, b, x, y, z, a)
    edge0, m0 = edge_separations(0, c, a, u, v, w, b)
    edge1, m1 = edge_separations(1, c, a, u, v, w, b)
    edge2, m2 = edge_separations(2, c, a, u, v, w, b)
    edge, edge_axis = largest_of_three(edge0, edge1, edge2)
    face = max(face_a, face_b)
    result, is_inside = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), False
    if edge <= face + tolerance:  # in a tie faces win over edges, and A over B
        if face_a >= face_b - tolerance:
            result, is_inside = result_on_face(A, k, face_a, c, a, u, v, w, b, tolerance)
        else:
            result, is_inside = result_on_face(B, m, face_b, e, b, x, y, z, a, tolerance)
            result = flipped(result)
    if not is_inside and edge >= face - tolerance:
        m = m0 if edge_axis == 0 else (m1 if edge_axis == 1 else m2)
        result, is_inside = result_on_edges(A, edge_axis, m, edge, c, a, u, v, w, b, tolerance)
    if is_inside:
        return result
    if result[0] > 0.0:
        return separated_boxes(result, A, a, B, b, c, u, v, w, e, x, y, z, tolerance)
    return with_contact_points(result, A, a, B, b, c, u, v, w, x, y, z, tolerance)
