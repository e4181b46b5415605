"""GJK distance and EPA penetration depth of convex cores, and their support functions.

A core is a convex shape without its radius: a sphere is a point with a radius, a capsule a segment with a radius. A
core is (kind, x, y, z, first, count), of three kinds: a box (half its edges); a cylinder (radius, half length), which
is a segment at radius 0, and a point if its length is 0 too; the hull of points (first row in Q, number of rows).

GJK (Gilbert, Johnson and Keerthi, 1988): the distance of separated cores is that of the origin from A - B. A simplex in
A - B moves there: its nearest point v gives the direction of the next corner; once no corner is nearer along v, v is
the solution.

A simplex is the first n rows of W (4, 7): a difference w of two points, its point of A, and the weight of that corner
in the nearest point. The newest corner is the last. In exact arithmetic the nearest point always has a positive weight
of the newest corner, so subsimplices with it are tried first; of those with an interior nearest point, the nearest
counts. That is slower than a search of the Voronoi regions, but robust for flat simplices: a subsimplex that is too
flat to have a nearest point has edges that do.

EPA (expanding polytope algorithm, van den Bergen, 2001): separating overlapping cores along a unit vector n takes a
translation of h(n), the support of A - B along n. A polytope inside A - B grows where it is nearest to the origin:
its nearest face bounds the depth from below, h of its normal from above. It starts with a large tetrahedron, which
need not contain the origin: a face with the origin outside is nearest of all and grows first.
"""

from __future__ import annotations

import math

from ..compiler import inline, subroutine
from ..relative_pose import rotate_inverse, transposed_times
from .collision_layout import BOX, CAPSULE, CYLINDER, HULL, SHAPE_KIND, SHAPE_SIZE, SPHERE


@inline
def shape_core(shapes, i):
    """Return the core of shape i and its radius."""
    kind = int(shapes[i, SHAPE_KIND])
    x, y, z = shapes[i, SHAPE_SIZE], shapes[i, SHAPE_SIZE + 1], shapes[i, SHAPE_SIZE + 2]
    if kind == SPHERE:
        return (CYLINDER, 0.0, 0.0, 0.0, 0, 0), x
    if kind == CAPSULE:
        return (CYLINDER, 0.0, y, 0.0, 0, 0), x
    if kind == HULL:
        return (HULL, 0.0, 0.0, 0.0, int(x), int(y)), 0.0
    return (kind, x, y, z, 0, 0), 0.0


@subroutine
def support_point(core, Q, x, y, z):
    """Return the point of a core that is farthest along a direction, in the frame of the core."""
    kind, a, b, c, first, count = core
    if kind == BOX:
        return math.copysign(a, x), math.copysign(b, y), math.copysign(c, z)
    if kind == CYLINDER:
        radial = math.sqrt(x * x + y * y)
        scale = a / radial if radial > 0.0 else 0.0
        return scale * x, scale * y, math.copysign(b, z)
    best, largest = first, Q[first, 0] * x + Q[first, 1] * y + Q[first, 2] * z
    for k in range(first + 1, first + count):
        projection = Q[k, 0] * x + Q[k, 1] * y + Q[k, 2] * z
        if projection > largest:
            best, largest = k, projection
    return Q[best, 0], Q[best, 1], Q[best, 2]


@inline
def difference_support(a, U, b, V, T, x, y, z):
    """Return the point of the Minkowski difference A - B of two cores that is farthest along a direction.

    Args:
        a, U, b, V: the two cores and the points of each.
        T: pose of B in A.
        x, y, z: the direction, in A.

    Returns:
        The difference and its point of A, in A.
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
def relative_to(A, B):
    """Return the pose B in the frame A, both given in the world."""
    return transposed_times(A, B) + rotate_inverse(A, B[9] - A[9], B[10] - A[10], B[11] - A[11])


ORIGIN_INSIDE = 5
FLAT_SIMPLEX = 1e-13
"""A tetrahedron thinner than this share of its size contains nothing."""
EQUAL_DISTANCE = 1e-13
"""Squared distances that differ by less than this share are equal."""


@inline
def on_segment(W, i, k):
    """Nearest point of the segment of two corners: the weight of the first, and the squared distance; inf at an end."""
    px, py, pz = W[k, 0], W[k, 1], W[k, 2]
    ex, ey, ez = W[i, 0] - px, W[i, 1] - py, W[i, 2] - pz
    length = ex * ex + ey * ey + ez * ez
    projection = -(px * ex + py * ey + pz * ez)
    if not 0.0 < projection < length:
        return 0.0, math.inf
    u = projection / length
    x, y, z = px + u * ex, py + u * ey, pz + u * ez
    return u, x * x + y * y + z * z


@inline
def on_triangle(W, i, j, k):
    """Nearest point of the triangle of three corners: the weights of the first two, and the squared distance.

    The base corner is the end of the longest edge that is nearer to the third corner. Corners on a rim come close to
    each other and to a line; from another corner, the height of such a thin triangle would be mostly rounding error.
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
    """Return the weights of j and k, and the squared distance; k is the other end of the longest edge."""
    px, py, pz = W[i, 0], W[i, 1], W[i, 2]
    ex, ey, ez = W[j, 0] - px, W[j, 1] - py, W[j, 2] - pz
    fx, fy, fz = W[k, 0] - px, W[k, 1] - py, W[k, 2] - pz
    length = fx * fx + fy * fy + fz * fz
    if length <= 0.0:
        return 0.0, 0.0, math.inf
    projection = (ex * fx + ey * fy + ez * fz) / length
    # the height over the longest edge, orthogonalized twice against rounding
    gx, gy, gz = ex - projection * fx, ey - projection * fy, ez - projection * fz
    remainder = (gx * fx + gy * fy + gz * fz) / length
    gx, gy, gz = gx - remainder * fx, gy - remainder * fy, gz - remainder * fz
    projection += remainder
    width = gx * gx + gy * gy + gz * gz
    if width <= 0.0:
        return 0.0, 0.0, math.inf
    u = -(px * gx + py * gy + pz * gz) / width
    v = -(px * fx + py * fy + pz * fz) / length - u * projection
    if not (u > 0.0 and v > 0.0 and u + v < 1.0):
        return 0.0, 0.0, math.inf
    x, y, z = px + u * ex + v * fx, py + u * ey + v * fy, pz + u * ez + v * fz
    return u, v, x * x + y * y + z * z


@inline
def squared_edge(W, i, j):
    x, y, z = W[j, 0] - W[i, 0], W[j, 1] - W[i, 1], W[j, 2] - W[i, 2]
    return x * x + y * y + z * z


@subroutine
def nearest_subsimplex(W, n, last_square):
    """Reduce a simplex to the subsimplex whose nearest point to the origin is the nearest.

    Args:
        W: the simplex, n rows, 2 to 4; reduced in place.
        last_square: the squared distance so far.

    Returns:
        The number of remaining rows, or ORIGIN_INSIDE if the simplex contains the origin; and the nearest point.
    """
    top = n - 1
    best = W[top, 0] ** 2 + W[top, 1] ** 2 + W[top, 2] ** 2
    corner_count, i, j, u, v = 1, top, top, 0.0, 0.0
    for k in range(top):
        weight, square = on_segment(W, k, top)
        if square < best:
            best, corner_count, i, u = square, 2, k, weight
    for k in range(top):
        for l in range(k + 1, top):
            weight_i, weight_j, square = on_triangle(W, k, l, top)
            if square < best:
                best, corner_count, i, j, u, v = square, 3, k, l, weight_i, weight_j
    if n == 4 and contains_origin(W):
        return ORIGIN_INSIDE, 0.0, 0.0, 0.0
    if best > last_square * (1.0 - EQUAL_DISTANCE):
        return stable_subsimplex(W, n)
    return keep_corners(W, corner_count, i, j, top, u, v)


@subroutine
def stable_subsimplex(W, n):
    """Reduce a simplex as `nearest_subsimplex`, where the distances are too equal to compare subsimplices.

    A far corner rotates the nearest point slightly without a measurable decrease of the distance. So the criterion
    is that no corner is nearer along it.
    """
    largest, corner_count, i, j, k, u, v = -math.inf, 1, 0, 0, 0, 0.0, 0.0
    for a in range(n):
        bound = corner_excess(W, n, a, a, a, 0.0, 0.0)
        if bound > largest:
            largest, corner_count, k, u, v = bound, 1, a, 0.0, 0.0
        for b in range(a):
            weight, square = on_segment(W, b, a)
            if square < math.inf:
                bound = corner_excess(W, n, b, a, a, weight, 0.0)
                if bound > largest:
                    largest, corner_count, i, k, u, v = bound, 2, b, a, weight, 0.0
            for c in range(b):
                weight_i, weight_j, square = on_triangle(W, c, b, a)
                if square < math.inf:
                    bound = corner_excess(W, n, c, b, a, weight_i, weight_j)
                    if bound > largest:
                        largest, corner_count, i, j, k, u, v = bound, 3, c, b, a, weight_i, weight_j
    return keep_corners(W, corner_count, i, j, k, u, v)


@inline
def corner_excess(W, n, i, j, k, u, v):
    """Return how much farther the nearest corner is than the point with weights u, v, 1 - u - v, along that point."""
    x, y, z = weighted_point(W, i, j, k, u, v)
    smallest = math.inf
    for c in range(n):
        smallest = min(smallest, (W[c, 0] - x) * x + (W[c, 1] - y) * y + (W[c, 2] - z) * z)
    return smallest / math.sqrt(x * x + y * y + z * z + 1e-300)


@inline
def weighted_point(W, i, j, k, u, v):
    return (
        W[k, 0] + u * (W[i, 0] - W[k, 0]) + v * (W[j, 0] - W[k, 0]),
        W[k, 1] + u * (W[i, 1] - W[k, 1]) + v * (W[j, 1] - W[k, 1]),
        W[k, 2] + u * (W[i, 2] - W[k, 2]) + v * (W[j, 2] - W[k, 2]),
    )


@subroutine
def keep_corners(W, corner_count, i, j, k, u, v):
    """Keep the corners k; i and k; or i, j and k, in ascending order, with the weights u of i and v of j."""
    x, y, z = weighted_point(W, i, j, k, u, v)
    if corner_count == 3:
        move_corner(W, i, 0)
        move_corner(W, j, 1)
        W[0, 6], W[1, 6] = u, v
    elif corner_count == 2:
        move_corner(W, i, 0)
        W[0, 6] = u
    move_corner(W, k, corner_count - 1)
    W[corner_count - 1, 6] = 1.0 - u - v
    return corner_count, x, y, z


@inline
def move_corner(W, k, to):
    if k != to:
        for c in range(6):
            W[to, c] = W[k, c]


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
    longest = math.sqrt(max(ex * ex + ey * ey + ez * ez, fx * fx + fy * fy + fz * fz, gx * gx + gy * gy + gz * gz))
    if not abs(volume) > FLAT_SIMPLEX * largest_area * longest:
        return False
    u = -(px * ax + py * ay + pz * az) / volume
    v = -(px * bx + py * by + pz * bz) / volume
    w = -(px * cx + py * cy + pz * cz) / volume
    return u >= 0.0 and v >= 0.0 and w >= 0.0 and u + v + w <= 1.0


MAX_GJK_STEPS = 200
GJK_ROUNDING = 2e-16
"""Smallest progress of a new corner, as a share of the largest difference so far."""
MAX_IDLE_STEPS = 8
"""Largest number of steps in a row that only rotate v without making it shorter."""
GJK_TOUCHING = 1e-13
"""Distance below which v has no direction, as a share of the largest difference so far."""


@subroutine
def gjk_distance(a, U, b, V, T, W, max_distance, x, y, z):
    """Return the shortest vector between two cores.

    Args:
        a, U, b, V, T: the cores, their points, and the pose of B in A.
        W: (4, 7) work array; holds the last simplex at the end, with weights of 0 after its last row.
        max_distance: for cores that are farther apart than this, any v longer than it is returned early.
        x, y, z: approximate direction from A to B.

    Returns:
        The difference v of the nearest points, A minus B; the nearest point of A; both in A. The size of the largest
        difference, or 0 if the cores touch or overlap: then the rest is not valid.
    """
    wx, wy, wz, ax, ay, az = difference_support(a, U, b, V, T, x, y, z)
    W[0, 0], W[0, 1], W[0, 2], W[0, 3], W[0, 4], W[0, 5], W[0, 6] = wx, wy, wz, ax, ay, az, 1.0
    n, vx, vy, vz, idle_steps = 1, wx, wy, wz, 0
    square = vx * vx + vy * vy + vz * vz
    size = math.sqrt(square)
    for _ in range(MAX_GJK_STEPS):
        if square <= (GJK_TOUCHING * size) ** 2:
            break
        wx, wy, wz, ax, ay, az = difference_support(a, U, b, V, T, -vx, -vy, -vz)
        size = max(size, math.sqrt(wx * wx + wy * wy + wz * wz))
        d = math.sqrt(square)
        if (vx - wx) * vx + (vy - wy) * vy + (vz - wz) * vz <= GJK_ROUNDING * size * d:
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
        last_square, square = square, x * x + y * y + z * z
        n, vx, vy, vz = corner_count, x, y, z
        idle_steps = 0 if square < last_square else idle_steps + 1
        if idle_steps > MAX_IDLE_STEPS:
            break
    if square <= (GJK_TOUCHING * size) ** 2:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    ax, ay, az = 0.0, 0.0, 0.0
    for k in range(n, 4):
        W[k, 6] = 0.0
    for k in range(n):
        ax, ay, az = ax + W[k, 6] * W[k, 3], ay + W[k, 6] * W[k, 4], az + W[k, 6] * W[k, 5]
    return vx, vy, vz, ax, ay, az, size


MAX_CORNERS, MAX_FACES = 160, 320
DEPTH_TOLERANCE = 1e-10
"""Largest difference of the bounds, as a share of the size; without it, round shapes would not converge."""
FLAT_POLYTOPE = 1e-13
VISIBLE_MARGIN = 1e-13
SLIVER_WIDTH = 1e-8
"""Triangles narrower than this share of the size have no accurate normal."""


@subroutine
def sample_direction(a, U, b, V, T, C, n, x, y, z, best):
    """Write the support point of A - B along a unit vector into row n of C, and return its depth.

    If the depth is the smallest so far, the direction is stored in `best`.
    """
    wx, wy, wz, _, _, _ = difference_support(a, U, b, V, T, x, y, z)
    C[n, 0], C[n, 1], C[n, 2] = wx, wy, wz
    depth = wx * x + wy * y + wz * z
    if depth < best[3]:
        best[0], best[1], best[2], best[3] = x, y, z, depth
    return depth


@subroutine
def first_tetrahedron(a, U, b, V, T, C, best):
    """Write four points to C: a wide pair, the point farthest from its line, the point farthest from their plane.

    Returns:
        The width of A - B along the axis of the wide pair, and the thickness of the tetrahedron. If A - B is flat,
        `best` has a direction perpendicular to it.
    """
    widest, axis = -1.0, 0
    for k in range(3):
        width = 0.0
        for side in range(2):
            s = 1.0 - 2.0 * side
            x, y, z = s * (k == 0), s * (k == 1), s * (k == 2)
            width += sample_direction(a, U, b, V, T, C, 4 + side, x, y, z, best)
        if width > widest:
            widest, axis = width, k
            for c in range(3):
                C[0, c], C[1, c] = C[4, c], C[5, c]
    size = widest
    ex, ey, ez = C[1, 0] - C[0, 0], C[1, 1] - C[0, 1], C[1, 2] - C[0, 2]
    # two directions perpendicular to the line; an axis far from the line makes the first accurate
    x, y, z = 1.0 * (axis == 1), 1.0 * (axis == 2), 1.0 * (axis == 0)
    ux, uy, uz = unit_vector(ey * z - ez * y, ez * x - ex * z, ex * y - ey * x)
    vx, vy, vz = unit_vector(ey * uz - ez * uy, ez * ux - ex * uz, ex * uy - ey * ux)
    widest = -1.0
    for k in range(4):
        s = 1.0 - 2.0 * (k % 2)
        x, y, z = (s * ux, s * uy, s * uz) if k < 2 else (s * vx, s * vy, s * vz)
        reach = sample_direction(a, U, b, V, T, C, 4 + k % 2, x, y, z, best) - (C[0, 0] * x + C[0, 1] * y + C[0, 2] * z)
        if reach > widest:
            widest = reach
            for c in range(3):
                C[2, c] = C[4 + k % 2, c]
    fx, fy, fz = C[2, 0] - C[0, 0], C[2, 1] - C[0, 1], C[2, 2] - C[0, 2]
    nx, ny, nz = unit_vector(ey * fz - ez * fy, ez * fx - ex * fz, ex * fy - ey * fx)
    thickest = -1.0
    for k in range(2):
        s = 1.0 - 2.0 * k
        x, y, z = s * nx, s * ny, s * nz
        reach = sample_direction(a, U, b, V, T, C, 4 + k, x, y, z, best) - (C[0, 0] * x + C[0, 1] * y + C[0, 2] * z)
        if reach > thickest:
            thickest = reach
            for c in range(3):
                C[3, c] = C[4 + k, c]
    return size, thickest


@inline
def unit_vector(x, y, z):
    length = math.sqrt(x * x + y * y + z * z)
    return (x / length, y / length, z / length) if length > 0.0 else (0.0, 0.0, 1.0)


@subroutine
def write_face(C, F, N, f, i, j, k, size):
    """Write face f: its corners to F; its normal, its distance from the origin and the accuracy of its plane to N."""
    F[f, 0], F[f, 1], F[f, 2] = i, j, k
    ex, ey, ez = C[j, 0] - C[i, 0], C[j, 1] - C[i, 1], C[j, 2] - C[i, 2]
    fx, fy, fz = C[k, 0] - C[i, 0], C[k, 1] - C[i, 1], C[k, 2] - C[i, 2]
    gx, gy, gz = fx - ex, fy - ey, fz - ez
    nx, ny, nz = ey * fz - ez * fy, ez * fx - ex * fz, ex * fy - ey * fx
    area = math.sqrt(nx * nx + ny * ny + nz * nz)
    longest = math.sqrt(max(ex * ex + ey * ey + ez * ez, fx * fx + fy * fy + fz * fz, gx * gx + gy * gy + gz * gz))
    if area <= SLIVER_WIDTH * size * longest:
        g = opposite_face(F, f, i, j)
        if g >= 0:  # the new corner is on the line of an edge, so the face continues its neighbour
            for c in range(5):
                N[f, c] = N[g, c]
            return
        area = max(area, 1e-300)
    nx, ny, nz = nx / area, ny / area, nz / area
    N[f, 0], N[f, 1], N[f, 2] = nx, ny, nz
    N[f, 3] = (
        (C[i, 0] + C[j, 0] + C[k, 0]) * nx + (C[i, 1] + C[j, 1] + C[k, 1]) * ny + (C[i, 2] + C[j, 2] + C[k, 2]) * nz
    ) / 3.0
    N[f, 4] = size * max(VISIBLE_MARGIN, min(1e-15 * size * longest / area, 1e-7))


@inline
def opposite_face(F, faces, i, j):
    """Return the face that has the edge from j to i; -1 if there is none."""
    for g in range(faces):
        p, q, r = F[g, 0], F[g, 1], F[g, 2]
        if (p == j and q == i) or (q == j and r == i) or (r == j and p == i):
            return g
    return -1


@subroutine
def expand_polytope(C, F, N, E, faces, n, size):
    """Remove the faces that are visible from corner n, and connect their boundary to it.

    Returns:
        The new number of faces; 0 if there is no space.
    """
    edges, g = 0, 0
    while g < faces:
        if C[n, 0] * N[g, 0] + C[n, 1] * N[g, 1] + C[n, 2] * N[g, 2] - N[g, 3] <= N[g, 4]:
            g += 1
            continue
        for k in range(3):
            i, j = F[g, k], F[g, (k + 1) % 3]
            is_shared = False
            for e in range(edges):
                if E[e, 0] == j and E[e, 1] == i:  # an edge between two removed faces is not on the boundary
                    edges -= 1
                    E[e, 0], E[e, 1] = E[edges, 0], E[edges, 1]
                    is_shared = True
                    break
            if not is_shared:
                E[edges, 0], E[edges, 1] = i, j
                edges += 1
        faces -= 1
        for k in range(3):
            F[g, k] = F[faces, k]
        for k in range(5):
            N[g, k] = N[faces, k]
    if faces + edges > MAX_FACES:
        return 0
    for e in range(edges):
        write_face(C, F, N, faces, E[e, 0], E[e, 1], n, size)
        faces += 1
    return faces


@subroutine
def first_polytope(a, U, b, V, T, C, F, N, E, best):
    """Build the first tetrahedron; return the size of A - B, and the number of faces.

    There are 4 faces, or none if A - B is flat: then `best` is a direction perpendicular to it.
    """
    best[3] = math.inf
    size, thickness = first_tetrahedron(a, U, b, V, T, C, best)
    if thickness <= FLAT_POLYTOPE * size:
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
def expand_until(a, U, b, V, T, C, F, N, E, best, n, faces, size, depth_ratio):
    """Expand a polytope until its bounds differ by at most `depth_ratio` of the depth; return its corners and faces.

    Args:
        n, faces: number of its corners and faces.
    """
    while n < MAX_CORNERS:
        f = 0
        for g in range(1, faces):
            if N[g, 3] < N[f, 3]:
                f = g
        tolerance = max(DEPTH_TOLERANCE * size, depth_ratio * best[3])
        if N[f, 3] >= best[3] - tolerance:
            break
        depth = sample_direction(a, U, b, V, T, C, n, N[f, 0], N[f, 1], N[f, 2], best)
        if depth - N[f, 3] <= max(tolerance, N[f, 4]):
            break
        faces = expand_polytope(C, F, N, E, faces, n, size)
        n = n + 1 if faces > 0 else MAX_CORNERS
    return n, faces
