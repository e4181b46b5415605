"""Distance between any two shapes: closed forms for primitives, GJK and EPA for other convex shapes and height fields.

A core is a convex shape without its rounding radius: the core of a sphere is a point, that of a capsule a segment.

A height field is a grid of cells of two triangles each, and solid down to its bottom. A cell is split by the diagonal
from its corner at low x and low y to its corner at high x and high y, as in MuJoCo; half 0 is the triangle at low y,
half 1 the triangle at high y. `field` is (first row in `points`, cells along x, cells along y), and a cell is (c, r),
its index along x and along y.

Below each triangle is a convex prism. The distance to the field is the distance to the nearest prism; cells that cannot
be nearer than the nearest prism so far are skipped. For overlaps the deepest prism gives the result. The shortest
translation out of a prism may end inside the next prism. So only these directions are tried: the normal of the
triangle, the normal of the last separating plane when the core is lifted, and the directions out of the bottom and the
outer walls of the field.

The letters of the code: Q (6, 3) are the corners of a prism, relative to the first corner of its cell; b, V and T are a
core, its points and its pose in the frame of the field, or relative to the origin of Q in functions that take Q but not
`points`; W is a work array.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import inline, kernel, subroutine
from ..nodes import read_pose
from .box_distance import box_box, box_point, box_segment
from .collision_layout import BOX, CAPSULE, CYLINDER, HALF_SPACE, HEIGHT_FIELD, HULL, SPHERE, open_shapes
from .core_distance import SEPARATION_RATIO, core_distance, refine_normal, translate_pose
from .gjk_epa import difference_support, gjk_distance, relative_pose, shape_core, shape_sizes, support_point
from .primitive_distance import (
    box_half_space,
    half_space_half_space,
    point_half_space,
    point_point,
    point_segment,
    segment_half_space,
    segment_segment,
    swap_shapes,
    to_world_vector,
    with_radii,
)


@inline
def grid_corner(field, c, r):
    """Return the row of `points` of grid corner (c, r)."""
    return field[0] + r * (field[1] + 1) + c


@inline
def field_bottom(points, field):
    """Return the height (m) of the bottom of a field."""
    return points[field[0] + (field[1] + 1) * (field[2] + 1), 0]


@inline
def cell_top(points, field, c, r):
    """Return the height (m) of the highest corner of a cell."""
    low_corner, high_corner = grid_corner(field, c, r), grid_corner(field, c, r + 1)
    return max(points[low_corner, 2], points[low_corner + 1, 2], points[high_corner, 2], points[high_corner + 1, 2])


@subroutine
def write_prism(points, field, c, r, half, Q):
    """Write the six corners of a prism to Q, relative to the first corner of the cell, and return that corner.

    Relative coordinates are small and therefore have smaller rounding errors.
    """
    first_corner, third_corner = grid_corner(field, c, r), grid_corner(field, c + 1, r + 1)
    second_corner = grid_corner(field, c + 1, r) if half == 0 else grid_corner(field, c, r + 1)
    x, y, z = points[first_corner, 0], points[first_corner, 1], points[first_corner, 2]
    bottom = field_bottom(points, field) - z
    Q[0, 0], Q[0, 1], Q[0, 2] = 0.0, 0.0, 0.0
    Q[1, 0], Q[1, 1], Q[1, 2] = points[second_corner, 0] - x, points[second_corner, 1] - y, points[second_corner, 2] - z
    Q[2, 0], Q[2, 1], Q[2, 2] = points[third_corner, 0] - x, points[third_corner, 1] - y, points[third_corner, 2] - z
    for k in range(3):
        Q[k + 3, 0], Q[k + 3, 1], Q[k + 3, 2] = Q[k, 0], Q[k, 1], bottom
    return x, y, z


@subroutine
def bounding_box(b, V, T):
    """Return the low and the high corner of the axis-aligned bounding box of a core with pose T."""
    lx, hx = -extent_along(b, V, T, -1.0, 0.0, 0.0), extent_along(b, V, T, 1.0, 0.0, 0.0)
    ly, hy = -extent_along(b, V, T, 0.0, -1.0, 0.0), extent_along(b, V, T, 0.0, 1.0, 0.0)
    lz, hz = -extent_along(b, V, T, 0.0, 0.0, -1.0), extent_along(b, V, T, 0.0, 0.0, 1.0)
    return lx, ly, lz, hx, hy, hz


@subroutine
def extent_along(b, V, T, x, y, z):
    """Return the largest projection of a core with pose T on a direction."""
    local_x, local_y, local_z = (
        T[0] * x + T[3] * y + T[6] * z,
        T[1] * x + T[4] * y + T[7] * z,
        T[2] * x + T[5] * y + T[8] * z,
    )
    px, py, pz = support_point(b, V, local_x, local_y, local_z)
    return local_x * px + local_y * py + local_z * pz + T[9] * x + T[10] * y + T[11] * z


@inline
def cells_near(points, field, box, reach):
    """Return the cells within `reach` (m) of a box, in the projection on x and y.

    `box` is the low and the high corner, see `bounding_box`.

    Returns:
        First column, end column, first row, end row. The ends are excluded. At least the nearest cell is included.
    """
    low_corner, high_corner = grid_corner(field, 0, 0), grid_corner(field, field[1], field[2])
    dx, dy = (
        (points[high_corner, 0] - points[low_corner, 0]) / field[1],
        (points[high_corner, 1] - points[low_corner, 1]) / field[2],
    )
    c0, c1 = cell_range(box[0] - reach - points[low_corner, 0], box[3] + reach - points[low_corner, 0], dx, field[1])
    r0, r1 = cell_range(box[1] - reach - points[low_corner, 1], box[4] + reach - points[low_corner, 1], dy, field[2])
    return c0, c1, r0, r1


@inline
def cell_range(range_start, range_end, cell_width, cell_count):
    """Return the first and the end index of the cells of width `cell_width` between `range_start` and `range_end`.

    The range and the width are in m, and the range is measured from the low edge of the grid. The cells are clipped to
    the grid, and the end is excluded.
    """
    # clipped as floats first, since infinity cannot be converted to an integer
    first_cell = int(min(max(range_start / cell_width - 1e-9, 0.0), cell_count - 1.0))
    last_cell = int(min(max(range_end / cell_width + 1e-9, 0.0), cell_count - 1.0))
    return first_cell, last_cell + 1


@inline
def cell_distance_bound(points, field, c, r, box):
    """Return a lower bound of the distance between a cell and any shape inside a box."""
    low_corner, high_corner = grid_corner(field, c, r), grid_corner(field, c + 1, r + 1)
    x = max(points[low_corner, 0] - box[3], box[0] - points[high_corner, 0], 0.0)
    y = max(points[low_corner, 1] - box[4], box[1] - points[high_corner, 1], 0.0)
    z = max(field_bottom(points, field) - box[5], box[2] - cell_top(points, field, c, r), 0.0)
    return math.sqrt(x * x + y * y + z * z)


PRISM_CORE = (HULL, 0.0, 0.0, 0.0, 0, 6)
NO_CONTACT = (math.inf, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
MAX_LIFTS = 60
"""Largest number of iterations of `result_by_lifting`."""
ZERO_LENGTH_RATIO = 1e-9
"""A distance below this share of the depth along z plus the edges of the cell counts as zero, and so does the z
component of a unit normal below this value."""
SAME_PLANE_COSINE = 1.0 - 1e-10
"""Cosine of the largest rotation of a plane while its normal is refined. A plane that rotates more has moved past an
edge."""


@subroutine
def height_field_distance(points, field, b, V, T):
    """Return the distance result of a height field and a core, in the frame of the field.

    Args:
        points, field: the height field.
        b, V: the core and its points.
        T: pose of the core in the frame of the field.
    """
    Q, W = np.empty((6, 3)), np.empty((4, 7))
    box = bounding_box(b, V, T)
    distance, c, r, half = nearest_prism(points, field, b, V, T, box, Q, W)
    if distance == 0.0:
        result = field_penetration(points, field, b, V, T, box, Q, W)
        if result[0] < math.inf:
            return result
    x, y, z = write_prism(points, field, c, r, half, Q)
    return translate_result(core_distance(PRISM_CORE, Q, b, V, translate_pose(T, -x, -y, -z), W), x, y, z)


@subroutine
def nearest_prism(points, field, b, V, T, box, Q, W):
    """Return the distance of a height field and a core, 0 on contact, and column, row and half of the nearest prism."""
    c0, c1, r0, r1 = cells_near(points, field, box, 0.0)
    smallest_bound, column, row, half = math.inf, c0, r0, 0
    for r in range(r0, r1):  # start with a near cell, since its distance excludes most others
        for c in range(c0, c1):
            bound = cell_distance_bound(points, field, c, r, box)
            if bound < smallest_bound:
                smallest_bound, column, row = bound, c, r
    smallest_distance = math.inf
    for k in range(2):
        d = prism_distance(points, field, column, row, k, b, V, T, Q, W, smallest_distance)
        if d < smallest_distance:
            smallest_distance, half = d, k
    c0, c1, r0, r1 = cells_near(points, field, box, smallest_distance)
    for r in range(r0, r1):
        for c in range(c0, c1):
            if cell_distance_bound(points, field, c, r, box) >= smallest_distance:
                continue
            for k in range(2):
                d = prism_distance(points, field, c, r, k, b, V, T, Q, W, smallest_distance)
                if d < smallest_distance:
                    smallest_distance, column, row, half = d, c, r, k
    return smallest_distance, column, row, half


@subroutine
def prism_distance(points, field, c, r, half, b, V, T, Q, W, max_distance):
    """Return the distance between a prism and a core: 0 on contact; if it is above `max_distance`, any value above."""
    x, y, z = write_prism(points, field, c, r, half, Q)
    vx, vy, vz, _, _, _, size = gjk_distance(
        PRISM_CORE, Q, b, V, translate_pose(T, -x, -y, -z), W, max_distance, 0.0, 0.0, 1.0
    )
    return math.sqrt(vx * vx + vy * vy + vz * vz) if size > 0.0 else 0.0


@subroutine
def field_penetration(points, field, b, V, T, box, Q, W):
    """Return the distance result of a core that overlaps the height field; NO_CONTACT if no prism overlaps."""
    c0, c1, r0, r1 = cells_near(points, field, box, 0.0)
    column, row = c0, r0
    for r in range(r0, r1):
        for c in range(c0, c1):
            if cell_top(points, field, c, r) > cell_top(points, field, column, row):
                column, row = c, r
    result = NO_CONTACT
    cell_count = (c1 - c0) * (r1 - r0)
    for i in range(-1, cell_count):  # the highest cell first; cells that are too low for a larger depth are skipped
        c, r = (column, row) if i < 0 else (c0 + i % (c1 - c0), r0 + i // (c1 - c0))
        if box[2] - cell_top(points, field, c, r) >= result[0]:
            continue
        for half in range(2):
            candidate = prism_penetration(points, field, c, r, half, b, V, T, Q, W, result[0])
            if candidate[0] < result[0]:
                result = candidate
    return result


@subroutine
def prism_penetration(points, field, c, r, half, b, V, T, Q, W, upper_bound):
    """Return the distance result of a core that overlaps a prism, along directions that leave the field.

    The result is NO_CONTACT if core and prism are separated, or if the distance along the normal of the triangle is not
    below `upper_bound` (m).
    """
    x, y, z = write_prism(points, field, c, r, half, Q)
    T = translate_pose(T, -x, -y, -z)
    orientation = 1.0 - 2.0 * half  # the corners of half 0 are counter-clockwise about the upward normal
    nx = orientation * (Q[1, 1] * Q[2, 2] - Q[1, 2] * Q[2, 1])
    ny = orientation * (Q[1, 2] * Q[2, 0] - Q[1, 0] * Q[2, 2])
    nz = orientation * (Q[1, 0] * Q[2, 1] - Q[1, 1] * Q[2, 0])
    length = math.sqrt(nx * nx + ny * ny + nz * nz)
    result = result_along_normal(b, V, T, Q, nx / length, ny / length, nz / length)
    if result[0] >= upper_bound:
        return NO_CONTACT
    _, _, _, _, _, _, size = gjk_distance(PRISM_CORE, Q, b, V, T, W, 0.0, 0.0, 0.0, 1.0)
    if size > 0.0:
        return NO_CONTACT
    candidate = result_by_lifting(b, V, T, Q, W)
    if candidate[0] > result[0]:
        result = candidate
    wall_x, wall_y = boundary_side(half == 1, c, field[1]), boundary_side(half == 0, r, field[2])
    for k in range(3):  # the bottom, then the two walls of a prism that are perpendicular to x and y
        nx_outward, ny_outward, nz_outward = wall_x * (k == 1), wall_y * (k == 2), -1.0 * (k == 0)
        if nx_outward != 0.0 or ny_outward != 0.0 or nz_outward != 0.0:
            candidate = result_along_normal(b, V, T, Q, nx_outward, ny_outward, nz_outward)
            if candidate[0] > result[0]:
                result = candidate
    return translate_result(result, x, y, z)


@inline
def boundary_side(is_low, k, cell_count):
    """Return -1 or 1 if a prism's wall at the low or high end of its cell is on the boundary of the field, else 0."""
    if is_low:
        return -1.0 if k == 0 else 0.0
    return 1.0 if k == cell_count - 1 else 0.0


@subroutine
def result_along_normal(b, V, T, Q, nx, ny, nz):
    """Return the distance result of a prism and a core along a given normal of the prism."""
    wx, wy, wz, ax, ay, az = difference_support(PRISM_CORE, Q, b, V, T, nx, ny, nz)
    d = -(wx * nx + wy * ny + wz * nz)
    bx, by, bz = ax - wx, ay - wy, az - wz
    return d, nx, ny, nz, bx - d * nx, by - d * ny, bz - d * nz, bx, by, bz


@subroutine
def result_by_lifting(b, V, T, Q, W):
    """Return the distance result of a core in a prism, along the normal of the last separating plane of a lifted core.

    A lift is a translation of the core along z. Newton's method decreases it from above: each plane that separates core
    and prism gives an upper bound of the smallest lift that separates them.
    """
    _, _, height, _, _, _ = difference_support(PRISM_CORE, Q, b, V, T, 0.0, 0.0, 1.0)
    size = height + abs(Q[2, 0]) + abs(Q[2, 1])
    x, y, z, depth, lift = 0.0, 0.0, 1.0, height, height + SEPARATION_RATIO * size
    previous_lift = lift
    for _ in range(MAX_LIFTS):
        vx, vy, vz, _, _, _, gjk_size = gjk_distance(
            PRISM_CORE, Q, b, V, translate_pose(T, 0.0, 0.0, lift), W, math.inf, x, y, z
        )
        d = math.sqrt(vx * vx + vy * vy + vz * vz)
        if gjk_size <= 0.0 or d < ZERO_LENGTH_RATIO * size or not -vz > ZERO_LENGTH_RATIO * d:
            break
        nx, ny, nz = -vx / d, -vy / d, -vz / d
        wx, wy, wz, _, _, _ = difference_support(PRISM_CORE, Q, b, V, T, nx, ny, nz)
        next_depth = wx * nx + wy * ny + wz * nz
        if not next_depth / nz < lift - 1e-14 * size:
            break
        x, y, z, depth, previous_lift, lift = nx, ny, nz, next_depth, lift, next_depth / nz
    result = refine_normal(PRISM_CORE, Q, b, V, T, W, x, y, z, depth, size)
    if result[1] * x + result[2] * y + result[3] * z > SAME_PLANE_COSINE:
        return result
    gjk_distance(PRISM_CORE, Q, b, V, translate_pose(T, 0.0, 0.0, previous_lift), W, math.inf, x, y, z)
    return result_from_corners(W, previous_lift, x, y, z, depth)


@inline
def result_from_corners(W, lift, x, y, z, depth):
    """Return the distance result along a normal, with contact points on the plane or line through the simplex corners.

    The points may lie outside the shapes, but with them the derivative of the distance is correct.

    Args:
        W: the simplex after GJK with the core lifted by `lift`.
        lift: m.
        x, y, z: the normal.
        depth: m.
    """
    ex, ey, ez = W[1, 0] - W[0, 0], W[1, 1] - W[0, 1], W[1, 2] - W[0, 2]
    fx, fy, fz = W[2, 0] - W[0, 0], W[2, 1] - W[0, 1], W[2, 2] - W[0, 2]
    px, py, pz = depth * x - W[0, 0], depth * y - W[0, 1], depth * z - lift - W[0, 2]
    nx, ny, nz = ey * fz - ez * fy, ez * fx - ex * fz, ex * fy - ey * fx
    area_square = nx * nx + ny * ny + nz * nz
    u, v = 0.0, 0.0
    if W[2, 6] > 0.0 and area_square > 0.0:
        u = ((py * fz - pz * fy) * nx + (pz * fx - px * fz) * ny + (px * fy - py * fx) * nz) / area_square
        v = ((ey * pz - ez * py) * nx + (ez * px - ex * pz) * ny + (ex * py - ey * px) * nz) / area_square
    elif W[1, 6] > 0.0:
        u = (px * ex + py * ey + pz * ez) / (ex * ex + ey * ey + ez * ez)
    ax = W[0, 3] + u * (W[1, 3] - W[0, 3]) + (v * (W[2, 3] - W[0, 3]) if v != 0.0 else 0.0)
    ay = W[0, 4] + u * (W[1, 4] - W[0, 4]) + (v * (W[2, 4] - W[0, 4]) if v != 0.0 else 0.0)
    az = W[0, 5] + u * (W[1, 5] - W[0, 5]) + (v * (W[2, 5] - W[0, 5]) if v != 0.0 else 0.0)
    return -depth, x, y, z, ax, ay, az, ax - depth * x, ay - depth * y, az - depth * z


@inline
def translate_result(result, x, y, z):
    """Return a distance result with both points translated by (x, y, z)."""
    d, nx, ny, nz, ax, ay, az, bx, by, bz = result
    return d, nx, ny, nz, ax + x, ay + y, az + z, bx + x, by + y, bz + z


@inline
def field_of(shape):
    """Return the field of a shape that is a height field."""
    first_row, columns, rows = shape_sizes(shape)
    return int(first_row), int(columns), int(rows)


@subroutine
def convex_distance(shape_a, A, shape_b, B, points):
    """Return the result of `shape_distance` if at least one shape is a cylinder, a hull or a height field."""
    kind_a, kind_b = shape_a.kind, shape_b.kind
    if kind_b == HALF_SPACE:
        return distance_to_half_space(shape_a, A, B, points)
    if kind_a == HALF_SPACE:
        return swap_shapes(distance_to_half_space(shape_b, B, A, points))
    if kind_a == HEIGHT_FIELD:
        return distance_to_height_field(shape_a, A, shape_b, B, points)
    if kind_b == HEIGHT_FIELD:
        return swap_shapes(distance_to_height_field(shape_b, B, shape_a, A, points))
    if kind_a == CYLINDER and kind_b == SPHERE:
        return cylinder_sphere(shape_a.sizes[0], shape_a.sizes[1], A, shape_b.sizes[0], B)
    if kind_a == SPHERE and kind_b == CYLINDER:
        return swap_shapes(cylinder_sphere(shape_b.sizes[0], shape_b.sizes[1], B, shape_a.sizes[0], A))
    a, radius_a = shape_core(shape_a)
    b, radius_b = shape_core(shape_b)
    W = np.empty((4, 7))
    return core_result_in_world(A, core_distance(a, points, b, points, relative_pose(A, B), W), radius_a, radius_b)


@inline
def core_result_in_world(A, result, radius_a, radius_b):
    """Transform the distance result of two cores from the frame A to the world, and subtract the radii around them."""
    d, nx, ny, nz, ax, ay, az, bx, by, bz = result
    ax, ay, az = ax + radius_a * nx, ay + radius_a * ny, az + radius_a * nz
    bx, by, bz = bx - radius_b * nx, by - radius_b * ny, bz - radius_b * nz
    nx, ny, nz = to_world_vector(A, nx, ny, nz)
    ax, ay, az = to_world_vector(A, ax, ay, az)
    bx, by, bz = to_world_vector(A, bx, by, bz)
    x, y, z = A[9], A[10], A[11]
    return d - radius_a - radius_b, nx, ny, nz, ax + x, ay + y, az + z, bx + x, by + y, bz + z


@subroutine
def distance_to_height_field(shape_a, A, shape_b, B, points):
    """Return the distance result of a height field, shape_a, and another shape.

    For two fields it is the smallest distance of the first field to the prisms of the second.
    """
    field = field_of(shape_a)
    T = relative_pose(A, B)
    if shape_b.kind != HEIGHT_FIELD:
        b, radius = shape_core(shape_b)
        return core_result_in_world(A, height_field_distance(points, field, b, points, T), 0.0, radius)
    other_field = field_of(shape_b)
    Q = np.empty((6, 3))
    nearest_result = (math.inf, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for r in range(other_field[2]):
        for c in range(other_field[1]):
            for half in range(2):
                x, y, z = write_prism(points, other_field, c, r, half, Q)
                x, y, z = to_world_vector(T, x, y, z)
                result = height_field_distance(points, field, PRISM_CORE, Q, translate_pose(T, x, y, z))
                if result[0] < nearest_result[0]:
                    nearest_result = result
    return core_result_in_world(A, nearest_result, 0.0, 0.0)


@subroutine
def distance_to_half_space(shape, A, B, points):
    """Return the distance result of a shape and the half-space below z = 0 of B.

    The distance is the height of the lowest point of the shape.
    """
    x, y, z = -B[2], -B[5], -B[8]
    local_x, local_y, local_z = (
        A[0] * x + A[3] * y + A[6] * z,
        A[1] * x + A[4] * y + A[7] * z,
        A[2] * x + A[5] * y + A[8] * z,
    )
    radius = 0.0
    if shape.kind == HEIGHT_FIELD:
        px, py, pz = height_field_support(points, field_of(shape), local_x, local_y, local_z)
    else:
        core, radius = shape_core(shape)
        px, py, pz = support_point(core, points, local_x, local_y, local_z)
    px, py, pz = to_world_vector(A, px, py, pz)
    px, py, pz = px + A[9] + radius * x, py + A[10] + radius * y, pz + A[11] + radius * z
    d = (B[9] - px) * x + (B[10] - py) * y + (B[11] - pz) * z
    return d, x, y, z, px, py, pz, px + d * x, py + d * y, pz + d * z


@subroutine
def height_field_support(points, field, x, y, z):
    """Return the point of a height field that is farthest along a direction, in the frame of the field."""
    bottom = field_bottom(points, field)
    px, py, pz, largest_projection = 0.0, 0.0, 0.0, -math.inf
    for k in range(grid_corner(field, 0, 0), grid_corner(field, field[1], field[2]) + 1):
        height = points[k, 2] if z > 0.0 else bottom
        projection = points[k, 0] * x + points[k, 1] * y + height * z
        if projection > largest_projection:
            px, py, pz, largest_projection = points[k, 0], points[k, 1], height, projection
    return px, py, pz


@inline
def cylinder_sphere(radius, half_length, A, sphere_radius, B):
    """Return the distance result of a cylinder at A and a sphere at B.

    In the plane through the axis and the centre of the sphere, the distance is that between a rectangle and a point,
    minus the radius of the sphere.
    """
    x, y, z = B[9] - A[9], B[10] - A[10], B[11] - A[11]
    x, y, z = A[0] * x + A[3] * y + A[6] * z, A[1] * x + A[4] * y + A[7] * z, A[2] * x + A[5] * y + A[8] * z
    axis_distance = math.sqrt(x * x + y * y)
    ux, uy = (x / axis_distance, y / axis_distance) if axis_distance > 0.0 else (1.0, 0.0)
    radial_distance, axial_distance = axis_distance - radius, abs(z) - half_length
    if radial_distance > 0.0 and axial_distance > 0.0:
        d = math.sqrt(radial_distance * radial_distance + axial_distance * axial_distance)
        radial_share, axial_share = radial_distance / d, axial_distance / d
    elif radial_distance > axial_distance:
        d, radial_share, axial_share = radial_distance, 1.0, 0.0
    else:
        d, radial_share, axial_share = axial_distance, 0.0, 1.0
    nx, ny, nz = radial_share * ux, radial_share * uy, math.copysign(axial_share, z)
    return core_result_in_world(A, (d, nx, ny, nz, x - d * nx, y - d * ny, z - d * nz, x, y, z), 0.0, sphere_radius)


@subroutine
def shape_distance(shape_a, A, shape_b, B, points):
    """Return the distance result of two shapes, whose world poses are A and B (12 numbers: R row by row, p).

    Returns:
        d, nx, ny, nz, ax, ay, az, bx, by, bz: see `collision_layout.py`; m, world frame.
    """
    kind_a, kind_b = shape_a.kind, shape_b.kind
    if kind_a > HALF_SPACE or kind_b > HALF_SPACE:
        return convex_distance(shape_a, A, shape_b, B, points)
    # branches instead of nested calls: each called function is compiled again with each caller
    is_swapped = kind_a > kind_b
    if is_swapped:
        shape_a, A, shape_b, B = shape_b, B, shape_a, A
        kind_a, kind_b = kind_b, kind_a
    size_1, size_2, size_3 = shape_sizes(shape_b)
    if kind_a == SPHERE:
        radius = shape_a.sizes[0]
        if kind_b == SPHERE:
            result = with_radii(point_point(A, B), radius, size_1)
        elif kind_b == CAPSULE:
            result = with_radii(point_segment(A, B, size_2), radius, size_1)
        elif kind_b == BOX:
            result = with_radii(swap_shapes(box_point(B, size_1, size_2, size_3, A)), radius, 0.0)
        else:
            result = with_radii(point_half_space(A, B), radius, 0.0)
    elif kind_a == CAPSULE:
        radius, half_length = shape_a.sizes[0], shape_a.sizes[1]
        if kind_b == CAPSULE:
            result = with_radii(segment_segment(A, half_length, B, size_2), radius, size_1)
        elif kind_b == BOX:
            result = with_radii(swap_shapes(box_segment(B, size_1, size_2, size_3, A, half_length)), radius, 0.0)
        else:
            result = with_radii(segment_half_space(A, half_length, B), radius, 0.0)
    elif kind_a == BOX:
        half_extents = shape_sizes(shape_a)
        result = (
            box_box(A, half_extents, B, (size_1, size_2, size_3))
            if kind_b == BOX
            else box_half_space(A, half_extents, B)
        )
    else:
        result = half_space_half_space(A, B)
    return swap_shapes(result) if is_swapped else result


@kernel("void(f8[:,::1], f8[:,::1], f8[:,::1], i8[:,::1], f8[:,::1])", allocates=True)
def pair_distances(shape_rows, points, X, pairs, out):
    """Write the distance results of pairs of shapes into `out`.

    Args:
        shape_rows: (n, Shape.size) rows of `collision_layout.Shape`; only kinds and sizes are read.
        points: (m, 3) points of hulls and height fields.
        X: (n, 12) world poses of the shapes.
        pairs: (k, 2) indices of two shapes.
        out: (k, 10), written: d, the normal from the first shape to the second, a point on each surface.
    """
    shapes = open_shapes(shape_rows)
    for k in range(pairs.shape[0]):
        i, j = pairs[k, 0], pairs[k, 1]
        result = shape_distance(shapes[i], read_pose(X[i]), shapes[j], read_pose(X[j]), points)
        for column in range(10):
            out[k, column] = result[column]
