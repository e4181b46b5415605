"""GJK distance and EPA penetration depth of convex cores, and their support functions.

A core is a convex shape without its rounding radius: the core of a sphere is a point, that of a capsule a segment. A
core is (kind, size_1, size_2, size_3, first_row, row_count), of three kinds: a box (three sizes: half the lengths of
its edges, m); a cylinder (two sizes: radius, half length, m), which is a segment at radius 0, and a point if its length
is 0 too; the hull of points (first row in a table of points, number of rows). In the code the cores A and B are a and
b, their tables of points U and V, and T is the pose of B in the frame of A (12 numbers: R row by row, p).

GJK (Gilbert, Johnson and Keerthi, 1988): the distance of separated cores is the distance of the origin from the
Minkowski difference A - B. A simplex in A - B approaches the origin. Its nearest point v gives the direction of the
next corner; once no corner is nearer along v, v is the solution.

A simplex is the first n rows of W (4, 7), one for each corner: a difference w of two points, its point of A, and the
weight of the corner in the nearest point. The newest corner is the last. In exact arithmetic the newest corner always
has a positive weight in the nearest point, so only the subsimplices that contain it are compared. All subsimplices are
compared only if the distance does not decrease measurably (`stable_subsimplex`). Each subsimplex has a point nearest to
the origin; of those in the interior of their subsimplex, the nearest is selected. This is slower than
a search of the Voronoi regions, but robust for flat simplices: if a triangle or tetrahedron is too flat to compute its
nearest point, one of its edges contains this point.

EPA (expanding polytope algorithm, van den Bergen, 2001): the translation that separates overlapping cores along a unit
vector n has the length h(n), the support function of A - B. A polytope inside A - B is expanded where it is nearest to
the origin. Its nearest face bounds the depth from below, and h of the normal of that face bounds it from above. The
first polytope is a large tetrahedron, which need not contain the origin: a face with the origin outside has a negative
distance and is expanded first. The corners of the polytope are the rows of C, the corners of its faces are the rows of
F, and their planes the rows of N (normal, distance from the origin, accuracy). E is a work array for edges.
"""

from __future__ import annotations

import math

from ..compiler import inline, subroutine
from ..relative_pose import rotate_inverse, transposed_times
from .collision_layout import BOX, CAPSULE, CYLINDER, HULL, SPHERE


@inline
def shape_sizes(shape):
    """Return the three sizes of a shape."""
    sizes = shape.sizes
    return sizes[0], sizes[1], sizes[2]


@inline
def shape_core(shape):
    """Return the core of a shape, and the radius around it (m)."""
    kind = shape.kind
    x, y, z = shape_sizes(shape)
    if kind == SPHERE:
        return (CYLINDER, 0.0, 0.0, 0.0, 0, 0), x
    if kind == CAPSULE:
        return (CYLINDER, 0.0, y, 0.0, 0, 0), x
    if kind == HULL:
        return (HULL, 0.0, 0.0, 0.0, int(x), int(y)), 0.0
    return (kind, x, y, z, 0, 0), 0.0


@subroutine
def support_point(core, points, x, y, z):
    """Return the point of a core that is farthest along a direction, in the frame of the core."""
    kind, size_1, size_2, size_3, first_row, row_count = core
    if kind == BOX:
        return math.copysign(size_1, x), math.copysign(size_2, y), math.copysign(size_3, z)
    if kind == CYLINDER:
        radial_norm = math.sqrt(x * x + y * y)
        scale = size_1 / radial_norm if radial_norm > 0.0 else 0.0
        return scale * x, scale * y, math.copysign(size_2, z)
    farthest_row, largest_projection = (
        first_row,
        points[first_row, 0] * x + points[first_row, 1] * y + points[first_row, 2] * z,
    )
    for k in range(first_row + 1, first_row + row_count):
        projection = points[k, 0] * x + points[k, 1] * y + points[k, 2] * z
        if projection > largest_projection:
            farthest_row, largest_projection = k, projection
    return points[farthest_row, 0], points[farthest_row, 1], points[farthest_row, 2]


@inline
def difference_support(a, U, b, V, T, x, y, z):
    """Return the point of the Minkowski difference A - B of two cores that is farthest along a direction.

    Args:
        a, U, b, V: the two cores and the points of each.
        T: pose of B in the frame of A.
        x, y, z: the direction, in the frame of A.

    Returns:
        The point of A - B, and the point of A that belongs to it, both in the frame of A.
    """
    ax, ay, az = support_point(a, U, x, y, z)
    bx, by, bz = support_point(
        b, V, -(T[0] * x + T[3] * y + T[6] * z), -(T[1] * x + T[4] * y + T[7] * z), -(T[2] * x + T[5] * y + T[8] * z)
    )
    return (
        ax - (T[0] * bx + T[1] * by + T[2] * bz + T[9]),
        ay - (T[3] * bx + T[4] * by + T[5] * bz + T[10]),
        az - (T[6] * bx + T[7] * by + T[8] * bz + T[11]),
        ax, ay, az,
    )  # fmt: skip


@inline
def relative_pose(A, B):
    """Return the pose of B in the frame of A, from the world poses of both."""
    return transposed_times(A, B) + rotate_inverse(A, B[9] - A[9], B[10] - A[10], B[11] - A[11])


ORIGIN_INSIDE = 5
"""Result of `nearest_subsimplex` for a simplex that contains the origin, instead of a number of corners."""
FLAT_SIMPLEX_RATIO = 1e-13
"""A tetrahedron thinner than this share of its size is flat and does not contain the origin."""
EQUAL_DISTANCE_RATIO = 1e-13
"""Squared distances that differ by less than this share count as equal."""


@inline
def nearest_on_segment(W, i, k):
    """Find the point nearest to the origin on the segment between the corners i and k.

    Returns:
        The weight of corner i, and the squared distance; infinite if the nearest point is an end of the segment.
    """
    px, py, pz = W[k, 0], W[k, 1], W[k, 2]
    ex, ey, ez = W[i, 0] - px, W[i, 1] - py, W[i, 2] - pz
    length_square = ex * ex + ey * ey + ez * ez
    projection = -(px * ex + py * ey + pz * ez)
    if not 0.0 < projection < length_square:
        return 0.0, math.inf
    weight = projection / length_square
    x, y, z = px + weight * ex, py + weight * ey, pz + weight * ez
    return weight, x * x + y * y + z * z


@inline
def nearest_on_triangle(W, i, j, k):
    """Find the point nearest to the origin on the triangle of the corners i, j and k.

    The base corner of the computation is that end of the longest edge that is nearer to the third corner. Corners on
    the rim of a cylinder may be close to each other and nearly on a line. From another base corner, the height of such
    a thin triangle would be mostly rounding error.

    Returns:
        The weights of the corners i and j, and the squared distance; infinite if the nearest point is on an edge.
    """
    ij, jk, ki = squared_edge(W, i, j), squared_edge(W, j, k), squared_edge(W, k, i)
    if ij >= jk and ij >= ki:
        if jk < ki:
            u, v, square = triangle_weights(W, j, k, i)
            return v, 1.0 - u - v, square
        v, u, square = triangle_weights(W, i, k, j)
        return 1.0 - u - v, u, square
    if jk >= ki:
        if ki < ij:
            return triangle_weights(W, k, i, j)
        u, v, square = triangle_weights(W, j, i, k)
        return u, 1.0 - u - v, square
    if ij < jk:
        u, v, square = triangle_weights(W, i, j, k)
        return 1.0 - u - v, u, square
    v, u, square = triangle_weights(W, k, j, i)
    return u, v, square


@inline
def triangle_weights(W, i, j, k):
    """Return the weights of the corners j and k in the nearest point, and the squared distance, for the base corner i.

    The edge from i to k must be the longest.
    """
    px, py, pz = W[i, 0], W[i, 1], W[i, 2]
    ex, ey, ez = W[j, 0] - px, W[j, 1] - py, W[j, 2] - pz
    fx, fy, fz = W[k, 0] - px, W[k, 1] - py, W[k, 2] - pz
    length_square = fx * fx + fy * fy + fz * fz
    if length_square <= 0.0:
        return 0.0, 0.0, math.inf
    projection = (ex * fx + ey * fy + ez * fz) / length_square
    # the height over the longest edge, orthogonalized twice against rounding
    gx, gy, gz = ex - projection * fx, ey - projection * fy, ez - projection * fz
    remainder = (gx * fx + gy * fy + gz * fz) / length_square
    gx, gy, gz = gx - remainder * fx, gy - remainder * fy, gz - remainder * fz
    projection += remainder
    height_square = gx * gx + gy * gy + gz * gz
    if height_square <= 0.0:
        return 0.0, 0.0, math.inf
    u = -(px * gx + py * gy + pz * gz) / height_square
    v = -(px * fx + py * fy + pz * fz) / length_square - u * projection
    if not (u > 0.0 and v > 0.0 and u + v < 1.0):
        return 0.0, 0.0, math.inf
    x, y, z = px + u * ex + v * fx, py + u * ey + v * fy, pz + u * ez + v * fz
    return u, v, x * x + y * y + z * z


@inline
def squared_edge(W, i, j):
    """Return the squared length of the edge between the corners i and j."""
    x, y, z = W[j, 0] - W[i, 0], W[j, 1] - W[i, 1], W[j, 2] - W[i, 2]
    return x * x + y * y + z * z


@subroutine
def nearest_subsimplex(W, n, previous_square):
    """Reduce a simplex to the subsimplex that contains the point nearest to the origin.

    Args:
        W: the simplex; reduced in place.
        n: number of its corners, 2 to 4.
        previous_square: the squared distance of the previous simplex.

    Returns:
        The number of remaining corners, or ORIGIN_INSIDE if the simplex contains the origin; and the nearest point.
    """
    newest_corner = n - 1
    smallest_square = W[newest_corner, 0] ** 2 + W[newest_corner, 1] ** 2 + W[newest_corner, 2] ** 2
    corner_count, i, j, u, v = 1, newest_corner, newest_corner, 0.0, 0.0
    for k in range(newest_corner):
        weight, square = nearest_on_segment(W, k, newest_corner)
        if square < smallest_square:
            smallest_square, corner_count, i, u = square, 2, k, weight
    for k in range(newest_corner):
        for l in range(k + 1, newest_corner):
            weight_i, weight_j, square = nearest_on_triangle(W, k, l, newest_corner)
            if square < smallest_square:
                smallest_square, corner_count, i, j, u, v = square, 3, k, l, weight_i, weight_j
    if n == 4 and contains_origin(W):
        return ORIGIN_INSIDE, 0.0, 0.0, 0.0
    if smallest_square > previous_square * (1.0 - EQUAL_DISTANCE_RATIO):
        return stable_subsimplex(W, n)
    return keep_corners(W, corner_count, i, j, newest_corner, u, v)


@subroutine
def stable_subsimplex(W, n):
    """Reduce a simplex like `nearest_subsimplex`, if the distances differ too little to compare subsimplices.

    A far new corner may change the direction to the nearest point slightly, without a measurable decrease of the
    distance. So the criterion is that no corner is nearer to the origin along the direction of the nearest point.
    """
    largest_excess, corner_count, i, j, k, u, v = -math.inf, 1, 0, 0, 0, 0.0, 0.0
    for p in range(n):
        excess = corner_excess(W, n, p, p, p, 0.0, 0.0)
        if excess > largest_excess:
            largest_excess, corner_count, k, u, v = excess, 1, p, 0.0, 0.0
        for q in range(p):
            weight, square = nearest_on_segment(W, q, p)
            if square < math.inf:
                excess = corner_excess(W, n, q, p, p, weight, 0.0)
                if excess > largest_excess:
                    largest_excess, corner_count, i, k, u, v = excess, 2, q, p, weight, 0.0
            for r in range(q):
                weight_i, weight_j, square = nearest_on_triangle(W, r, q, p)
                if square < math.inf:
                    excess = corner_excess(W, n, r, q, p, weight_i, weight_j)
                    if excess > largest_excess:
                        largest_excess, corner_count, i, j, k, u, v = excess, 3, r, q, p, weight_i, weight_j
    return keep_corners(W, corner_count, i, j, k, u, v)


@inline
def corner_excess(W, n, i, j, k, u, v):
    """Return how far the nearest corner is beyond the point p with the weights u and v, along the direction of p.

    The result is negative if a corner is nearer to the origin than p along this direction.
    """
    x, y, z = weighted_point(W, i, j, k, u, v)
    smallest_excess = math.inf
    for c in range(n):
        smallest_excess = min(smallest_excess, (W[c, 0] - x) * x + (W[c, 1] - y) * y + (W[c, 2] - z) * z)
    return smallest_excess / math.sqrt(x * x + y * y + z * z + 1e-300)


@inline
def weighted_point(W, i, j, k, u, v):
    """Return the point with the weights u, v and 1 - u - v of the corners i, j and k."""
    return (
        W[k, 0] + u * (W[i, 0] - W[k, 0]) + v * (W[j, 0] - W[k, 0]),
        W[k, 1] + u * (W[i, 1] - W[k, 1]) + v * (W[j, 1] - W[k, 1]),
        W[k, 2] + u * (W[i, 2] - W[k, 2]) + v * (W[j, 2] - W[k, 2]),
    )


@subroutine
def keep_corners(W, corner_count, i, j, k, u, v):
    """Reduce a simplex to the corners k (if `corner_count` is 1), i and k (2), or i, j and k (3); write the weights.

    The indices must be in ascending order; u and v are the weights of i and j.

    Returns:
        The number of corners, and the weighted point.
    """
    x, y, z = weighted_point(W, i, j, k, u, v)
    if corner_count == 3:
        copy_corner(W, i, 0)
        copy_corner(W, j, 1)
        W[0, 6], W[1, 6] = u, v
    elif corner_count == 2:
        copy_corner(W, i, 0)
        W[0, 6] = u
    copy_corner(W, k, corner_count - 1)
    W[corner_count - 1, 6] = 1.0 - u - v
    return corner_count, x, y, z


@inline
def copy_corner(W, k, row):
    """Copy corner k of a simplex to `row`."""
    if k != row:
        for c in range(6):
            W[row, c] = W[k, c]


@inline
def contains_origin(W):
    """Return whether a tetrahedron that is not flat contains the origin."""
    px, py, pz = W[3, 0], W[3, 1], W[3, 2]
    ex, ey, ez = W[0, 0] - px, W[0, 1] - py, W[0, 2] - pz
    fx, fy, fz = W[1, 0] - px, W[1, 1] - py, W[1, 2] - pz
    gx, gy, gz = W[2, 0] - px, W[2, 1] - py, W[2, 2] - pz
    ax, ay, az = fy * gz - fz * gy, fz * gx - fx * gz, fx * gy - fy * gx
    bx, by, bz = gy * ez - gz * ey, gz * ex - gx * ez, gx * ey - gy * ex
    cx, cy, cz = ey * fz - ez * fy, ez * fx - ex * fz, ex * fy - ey * fx
    volume = ex * ax + ey * ay + ez * az
    largest_area = math.sqrt(max(ax * ax + ay * ay + az * az, bx * bx + by * by + bz * bz, cx * cx + cy * cy + cz * cz))
    longest_edge = math.sqrt(max(ex * ex + ey * ey + ez * ez, fx * fx + fy * fy + fz * fz, gx * gx + gy * gy + gz * gz))
    if not abs(volume) > FLAT_SIMPLEX_RATIO * largest_area * longest_edge:
        return False
    u = -(px * ax + py * ay + pz * az) / volume
    v = -(px * bx + py * by + pz * bz) / volume
    w = -(px * cx + py * cy + pz * cz) / volume
    return u >= 0.0 and v >= 0.0 and w >= 0.0 and u + v + w <= 1.0


MAX_GJK_STEPS = 200
"""Largest number of corners that are added to the simplex."""
MIN_PROGRESS_RATIO = 2e-16
"""Smallest decrease of the distance by a new corner, as a share of the longest difference w so far."""
MAX_IDLE_STEPS = 8
"""Largest number of consecutive steps that rotate v without shortening it."""
TOUCHING_RATIO = 1e-13
"""Cores nearer than this share of the longest difference w so far count as touching: v then has no direction."""


@subroutine
def gjk_distance(a, U, b, V, T, W, max_distance, x, y, z):
    """Return the shortest vector between two cores.

    Args:
        a, U, b, V, T: the cores, their points, and the pose of B in the frame of A.
        W: (4, 7) work array; if the cores are separated, contains the last simplex afterwards, with weights of 0 in
            unused rows.
        max_distance: m; if the cores are farther apart, the search ends early, with any v longer than this.
        x, y, z: approximate direction from A to B.

    Returns:
        The difference v of the nearest points, A minus B, and the nearest point of A, both in the frame of A; and the
        length of the longest difference w. This length is 0 if the cores touch or overlap; then v and the point are not
        valid.
    """
    wx, wy, wz, ax, ay, az = difference_support(a, U, b, V, T, x, y, z)
    W[0, 0], W[0, 1], W[0, 2], W[0, 3], W[0, 4], W[0, 5], W[0, 6] = wx, wy, wz, ax, ay, az, 1.0
    n, vx, vy, vz, idle_steps = 1, wx, wy, wz, 0
    square = vx * vx + vy * vy + vz * vz
    size = math.sqrt(square)
    for _ in range(MAX_GJK_STEPS):
        if square <= (TOUCHING_RATIO * size) ** 2:
            break
        wx, wy, wz, ax, ay, az = difference_support(a, U, b, V, T, -vx, -vy, -vz)
        size = max(size, math.sqrt(wx * wx + wy * wy + wz * wz))
        d = math.sqrt(square)
        if (vx - wx) * vx + (vy - wy) * vy + (vz - wz) * vz <= MIN_PROGRESS_RATIO * size * d:
            break
        if wx * vx + wy * vy + wz * vz > max_distance * d:
            break
        is_repeated = False
        for k in range(n):
            is_repeated = is_repeated or (W[k, 0] == wx and W[k, 1] == wy and W[k, 2] == wz)
        if is_repeated:
            break
        W[n, 0], W[n, 1], W[n, 2], W[n, 3], W[n, 4], W[n, 5] = wx, wy, wz, ax, ay, az
        corner_count, x, y, z = nearest_subsimplex(W, n + 1, square)
        if corner_count == ORIGIN_INSIDE:
            return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        previous_square, square = square, x * x + y * y + z * z
        n, vx, vy, vz = corner_count, x, y, z
        idle_steps = 0 if square < previous_square else idle_steps + 1
        if idle_steps > MAX_IDLE_STEPS:
            break
    if square <= (TOUCHING_RATIO * size) ** 2:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    ax, ay, az = 0.0, 0.0, 0.0
    for k in range(n, 4):
        W[k, 6] = 0.0
    for k in range(n):
        ax, ay, az = ax + W[k, 6] * W[k, 3], ay + W[k, 6] * W[k, 4], az + W[k, 6] * W[k, 5]
    return vx, vy, vz, ax, ay, az, size


MAX_CORNERS, MAX_FACES = 160, 320
"""Largest number of corners and of faces of the polytope."""
DEPTH_TOLERANCE = 1e-10
"""Difference of the bounds of the depth at which the expansion ends, as a share of the size. Without this tolerance,
round shapes would not converge."""
FLAT_POLYTOPE_RATIO = 1e-13
"""A first tetrahedron thinner than this share of the size means that A - B is flat."""
VISIBLE_MARGIN = 1e-13
"""A face is visible from a corner that is above its plane by at least this share of the size."""
MIN_TRIANGLE_WIDTH = 1e-8
"""Triangles narrower than this share of the size have no accurate normal."""


@subroutine
def sample_direction(a, U, b, V, T, C, n, x, y, z, best_direction):
    """Write the support point of A - B along a unit vector into row n of C, and return the depth along that vector.

    If the depth is the smallest so far, direction and depth are stored in `best_direction` (4,).
    """
    wx, wy, wz, _, _, _ = difference_support(a, U, b, V, T, x, y, z)
    C[n, 0], C[n, 1], C[n, 2] = wx, wy, wz
    depth = wx * x + wy * y + wz * z
    if depth < best_direction[3]:
        best_direction[0], best_direction[1], best_direction[2], best_direction[3] = x, y, z, depth
    return depth


@subroutine
def first_tetrahedron(a, U, b, V, T, C, best_direction):
    """Write the corners of a large tetrahedron in A - B to C.

    They are the two extreme points along the coordinate axis along which A - B is widest, a point far from the line
    through them, and the point farthest from the plane of these three.

    Returns:
        The width of A - B along this axis, and the thickness of the tetrahedron. If A - B is flat, `best_direction`
        contains a direction perpendicular to it.
    """
    largest_extent, axis = -1.0, 0
    for k in range(3):
        width = 0.0
        for side in range(2):
            sign = 1.0 - 2.0 * side
            x, y, z = sign * (k == 0), sign * (k == 1), sign * (k == 2)
            width += sample_direction(a, U, b, V, T, C, 4 + side, x, y, z, best_direction)
        if width > largest_extent:
            largest_extent, axis = width, k
            for c in range(3):
                C[0, c], C[1, c] = C[4, c], C[5, c]
    size = largest_extent
    ex, ey, ez = C[1, 0] - C[0, 0], C[1, 1] - C[0, 1], C[1, 2] - C[0, 2]
    # two directions perpendicular to the line; an axis far from the line makes the first accurate
    x, y, z = 1.0 * (axis == 1), 1.0 * (axis == 2), 1.0 * (axis == 0)
    ux, uy, uz = unit_vector(ey * z - ez * y, ez * x - ex * z, ex * y - ey * x)
    vx, vy, vz = unit_vector(ey * uz - ez * uy, ez * ux - ex * uz, ex * uy - ey * ux)
    largest_extent = -1.0
    for k in range(4):
        sign = 1.0 - 2.0 * (k % 2)
        x, y, z = (sign * ux, sign * uy, sign * uz) if k < 2 else (sign * vx, sign * vy, sign * vz)
        distance = sample_direction(a, U, b, V, T, C, 4 + k % 2, x, y, z, best_direction) - (
            C[0, 0] * x + C[0, 1] * y + C[0, 2] * z
        )
        if distance > largest_extent:
            largest_extent = distance
            for c in range(3):
                C[2, c] = C[4 + k % 2, c]
    fx, fy, fz = C[2, 0] - C[0, 0], C[2, 1] - C[0, 1], C[2, 2] - C[0, 2]
    nx, ny, nz = unit_vector(ey * fz - ez * fy, ez * fx - ex * fz, ex * fy - ey * fx)
    thickness = -1.0
    for k in range(2):
        sign = 1.0 - 2.0 * k
        x, y, z = sign * nx, sign * ny, sign * nz
        distance = sample_direction(a, U, b, V, T, C, 4 + k, x, y, z, best_direction) - (
            C[0, 0] * x + C[0, 1] * y + C[0, 2] * z
        )
        if distance > thickness:
            thickness = distance
            for c in range(3):
                C[3, c] = C[4 + k, c]
    return size, thickness


@inline
def unit_vector(x, y, z):
    """Return a vector divided by its length; the z axis for a zero vector."""
    length = math.sqrt(x * x + y * y + z * z)
    return (x / length, y / length, z / length) if length > 0.0 else (0.0, 0.0, 1.0)


@subroutine
def write_face(C, F, N, f, i, j, k, size):
    """Write face f with the corners i, j and k to F and N; a very narrow face gets the plane of its neighbour."""
    F[f, 0], F[f, 1], F[f, 2] = i, j, k
    ex, ey, ez = C[j, 0] - C[i, 0], C[j, 1] - C[i, 1], C[j, 2] - C[i, 2]
    fx, fy, fz = C[k, 0] - C[i, 0], C[k, 1] - C[i, 1], C[k, 2] - C[i, 2]
    gx, gy, gz = fx - ex, fy - ey, fz - ez
    nx, ny, nz = ey * fz - ez * fy, ez * fx - ex * fz, ex * fy - ey * fx
    area = math.sqrt(nx * nx + ny * ny + nz * nz)
    longest_edge = math.sqrt(max(ex * ex + ey * ey + ez * ez, fx * fx + fy * fy + fz * fz, gx * gx + gy * gy + gz * gz))
    if area <= MIN_TRIANGLE_WIDTH * size * longest_edge:
        neighbour = adjacent_face(F, f, i, j)
        if neighbour >= 0:  # the new corner is on the line of an edge, so the face continues its neighbour
            for c in range(5):
                N[f, c] = N[neighbour, c]
            return
        area = max(area, 1e-300)
    nx, ny, nz = nx / area, ny / area, nz / area
    N[f, 0], N[f, 1], N[f, 2] = nx, ny, nz
    N[f, 3] = (
        (C[i, 0] + C[j, 0] + C[k, 0]) * nx + (C[i, 1] + C[j, 1] + C[k, 1]) * ny + (C[i, 2] + C[j, 2] + C[k, 2]) * nz
    ) / 3.0
    N[f, 4] = size * max(VISIBLE_MARGIN, min(1e-15 * size * longest_edge / area, 1e-7))


@inline
def adjacent_face(F, face_count, i, j):
    """Return the face that contains the edge from j to i; -1 if there is none."""
    for g in range(face_count):
        p, q, r = F[g, 0], F[g, 1], F[g, 2]
        if (p == j and q == i) or (q == j and r == i) or (r == j and p == i):
            return g
    return -1


@subroutine
def expand_polytope(C, F, N, E, face_count, n, size):
    """Remove the faces that are visible from corner n, and connect their boundary to the corner.

    Returns:
        The new number of faces; 0 if the arrays are too small.
    """
    edge_count, f = 0, 0
    while f < face_count:
        if C[n, 0] * N[f, 0] + C[n, 1] * N[f, 1] + C[n, 2] * N[f, 2] - N[f, 3] <= N[f, 4]:
            f += 1
            continue
        for k in range(3):
            i, j = F[f, k], F[f, (k + 1) % 3]
            is_shared = False
            for e in range(edge_count):
                if E[e, 0] == j and E[e, 1] == i:  # an edge between two removed faces is not on the boundary
                    edge_count -= 1
                    E[e, 0], E[e, 1] = E[edge_count, 0], E[edge_count, 1]
                    is_shared = True
                    break
            if not is_shared:
                E[edge_count, 0], E[edge_count, 1] = i, j
                edge_count += 1
        face_count -= 1
        for k in range(3):
            F[f, k] = F[face_count, k]
        for k in range(5):
            N[f, k] = N[face_count, k]
    if face_count + edge_count > MAX_FACES:
        return 0
    for e in range(edge_count):
        write_face(C, F, N, face_count, E[e, 0], E[e, 1], n, size)
        face_count += 1
    return face_count


@subroutine
def first_polytope(a, U, b, V, T, C, F, N, E, best_direction):
    """Build the first tetrahedron; return the size of A - B, and the number of faces.

    The number is 4, or 0 if A - B is flat; then `best_direction` contains a direction perpendicular to A - B.
    """
    best_direction[3] = math.inf
    size, thickness = first_tetrahedron(a, U, b, V, T, C, best_direction)
    if thickness <= FLAT_POLYTOPE_RATIO * size:
        return size, 0
    ex, ey, ez = C[1, 0] - C[0, 0], C[1, 1] - C[0, 1], C[1, 2] - C[0, 2]
    fx, fy, fz = C[2, 0] - C[0, 0], C[2, 1] - C[0, 1], C[2, 2] - C[0, 2]
    gx, gy, gz = C[3, 0] - C[0, 0], C[3, 1] - C[0, 1], C[3, 2] - C[0, 2]
    i, j = 1, 2
    if ex * (fy * gz - fz * gy) + ey * (fz * gx - fx * gz) + ez * (fx * gy - fy * gx) > 0.0:
        i, j = 2, 1  # so that corner 3 is below the first face
    E[0, 0], E[0, 1], E[1, 0], E[1, 1], E[2, 0], E[2, 1], E[3, 0], E[3, 1] = i, 0, j, i, 0, j, 0, i
    for f in range(4):
        write_face(C, F, N, f, E[f, 0], E[f, 1], 3 if f < 3 else j, size)
    return size, 4


@subroutine
def expand_to_tolerance(a, U, b, V, T, C, F, N, E, best_direction, n, face_count, size, depth_ratio):
    """Expand a polytope until the bounds of the depth are close or the arrays are full.

    Args:
        n, face_count: number of corners and of faces.
        depth_ratio: difference at which the bounds are close, as a share of the depth; at least DEPTH_TOLERANCE.

    Returns:
        The new number of corners and of faces; 0 faces if there are too many for the arrays.
    """
    while n < MAX_CORNERS:
        nearest_face = 0
        for f in range(1, face_count):
            if N[f, 3] < N[nearest_face, 3]:
                nearest_face = f
        tolerance = max(DEPTH_TOLERANCE * size, depth_ratio * best_direction[3])
        if N[nearest_face, 3] >= best_direction[3] - tolerance:
            break
        depth = sample_direction(
            a, U, b, V, T, C, n, N[nearest_face, 0], N[nearest_face, 1], N[nearest_face, 2], best_direction
        )
        if depth - N[nearest_face, 3] <= max(tolerance, N[nearest_face, 4]):
            break
        face_count = expand_polytope(C, F, N, E, face_count, n, size)
        n = n + 1 if face_count > 0 else MAX_CORNERS
    return n, face_count
