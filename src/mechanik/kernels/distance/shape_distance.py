"""Distance between any two shapes: closed forms for primitives, GJK and EPA for other convex shapes and height fields.

A core is a convex shape without its rounding radius: the core of a sphere is a point, that of a capsule a segment.

A height field is a grid of cells, each of two triangles, and solid down to its bottom. A cell is split from its
corner at low x, low y to that at high x, high y, as in MuJoCo; half 0 is the triangle at low y, half 1 that at high y.
`field` is (first row in `points`, cells along x, cells along y).

Below each triangle is a convex prism. The distance to the field is that to the nearest prism; prisms whose bounds are
farther than the best distance are skipped. For overlaps the deepest prism gives the result. The shortest translation
out of a prism may lead through a wall into the next prism. So these directions are tried: the normal of the triangle,
the normal of the last separating plane when the core is lifted, and those through the bottom and the outer walls of the
field.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import inline, kernel, subroutine
from ..nodes import read_pose
from .box_distance import box_box, box_point, box_segment
from .collision_layout import BOX, CAPSULE, CYLINDER, HALF_SPACE, HEIGHT_FIELD, HULL, SHAPE_KIND, SHAPE_SIZE, SPHERE
from .core_distance import SEPARATION_RATIO, core_distance, polish_normal, translated
from .gjk_epa import difference_support, gjk_distance, relative_to, shape_core, support_point
from .primitive_distance import (
    box_half_space,
    flipped,
    half_space_half_space,
    point_half_space,
    point_point,
    point_segment,
    segment_half_space,
    segment_segment,
    to_world_vector,
    with_radii,
)


@inline
def grid_corner(field, c, r):
    """Return the row of `points` of grid corner (c, r)."""
    return field[0] + r * (field[1] + 1) + c


@inline
def field_bottom(points, field):
    return points[field[0] + (field[1] + 1) * (field[2] + 1), 0]


@inline
def cell_top(points, field, c, r):
    """Return the height of the highest corner of a cell."""
    k, l = grid_corner(field, c, r), grid_corner(field, c, r + 1)
    return max(points[k, 2], points[k + 1, 2], points[l, 2], points[l + 1, 2])


@subroutine
def write_prism(points, field, c, r, half, Q):
    """Write the six corners of a prism to Q, relative to the first corner of the cell, and return that corner.

    Small relative coordinates lose fewer digits.
    """
    k, m = grid_corner(field, c, r), grid_corner(field, c + 1, r + 1)
    l = grid_corner(field, c + 1, r) if half == 0 else grid_corner(field, c, r + 1)
    x, y, z = points[k, 0], points[k, 1], points[k, 2]
    bottom = field_bottom(points, field) - z
    Q[0, 0], Q[0, 1], Q[0, 2] = 0.0, 0.0, 0.0
    Q[1, 0], Q[1, 1], Q[1, 2] = points[l, 0] - x, points[l, 1] - y, points[l, 2] - z
    Q[2, 0], Q[2, 1], Q[2, 2] = points[m, 0] - x, points[m, 1] - y, points[m, 2] - z
    for n in range(3):
        Q[n + 3, 0], Q[n + 3, 1], Q[n + 3, 2] = Q[n, 0], Q[n, 1], bottom
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
    """Return how far a core with pose T extends along a direction."""
    u, v, w = T[0] * x + T[3] * y + T[6] * z, T[1] * x + T[4] * y + T[7] * z, T[2] * x + T[5] * y + T[8] * z
    px, py, pz = support_point(b, V, u, v, w)
    return u * px + v * py + w * pz + T[9] * x + T[10] * y + T[11] * z


@inline
def cells_near(points, field, box, reach):
    """Return the cells within `reach` of a box, projected to x and y: first column, end column, first row, end row.

    The ends are excluded. At least the nearest cell is included.
    """
    k, l = grid_corner(field, 0, 0), grid_corner(field, field[1], field[2])
    dx, dy = (points[l, 0] - points[k, 0]) / field[1], (points[l, 1] - points[k, 1]) / field[2]
    c0, c1 = cell_range(box[0] - reach - points[k, 0], box[3] + reach - points[k, 0], dx, field[1])
    r0, r1 = cell_range(box[1] - reach - points[k, 1], box[4] + reach - points[k, 1], dy, field[2])
    return c0, c1, r0, r1


@inline
def cell_range(low, high, step, count):
    # clipped as floats first, since infinity cannot be converted to an integer
    first = int(min(max(low / step - 1e-9, 0.0), count - 1.0))
    last = int(min(max(high / step + 1e-9, 0.0), count - 1.0))
    return first, last + 1


@inline
def cell_distance_bound(points, field, c, r, box):
    """Return a lower bound of the distance between a cell and the content of a box."""
    k, l = grid_corner(field, c, r), grid_corner(field, c + 1, r + 1)
    x = max(points[k, 0] - box[3], box[0] - points[l, 0], 0.0)
    y = max(points[k, 1] - box[4], box[1] - points[l, 1], 0.0)
    z = max(field_bottom(points, field) - box[5], box[2] - cell_top(points, field, c, r), 0.0)
    return math.sqrt(x * x + y * y + z * z)


PRISM_CORE = (HULL, 0.0, 0.0, 0.0, 0, 6)
NO_CONTACT = (math.inf, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
MAX_LIFTS = 60
"""Maximum number of iterations of `depth_by_lifting`."""
CLOSE_RATIO = 1e-9
"""Ratio to the size of the prism, or to the distance: smaller lengths are zero."""
SAME_PLANE_COSINE = 1.0 - 1e-10
"""Cosine of the largest rotation of a plane while its normal is refined; beyond it the plane has passed an edge."""


@subroutine
def height_field_distance(points, field, b, V, T):
    """Distance between a height field and a core, in the field's frame: d, normal, points of the field and of the core.

    Args:
        points, field: the height field.
        b, V: the core and its points.
        T: pose of the core in the field's frame.
    """
    Q, W = np.empty((6, 3)), np.empty((4, 7))
    box = bounding_box(b, V, T)
    best, c, r, half = nearest_prism(points, field, b, V, T, box, Q, W)
    if best == 0.0:
        result = deepest_prism(points, field, b, V, T, box, Q, W)
        if result[0] < math.inf:
            return result
    x, y, z = write_prism(points, field, c, r, half, Q)
    return translate_result(core_distance(PRISM_CORE, Q, b, V, translated(T, -x, -y, -z), W), x, y, z)


@subroutine
def nearest_prism(points, field, b, V, T, box, Q, W):
    """Return the distance between a height field and a core, 0 on contact, and column, row and half of its prism."""
    c0, c1, r0, r1 = cells_near(points, field, box, 0.0)
    smallest, column, row, half = math.inf, c0, r0, 0
    for r in range(r0, r1):  # a near cell first, so that its distance excludes most others
        for c in range(c0, c1):
            bound = cell_distance_bound(points, field, c, r, box)
            if bound < smallest:
                smallest, column, row = bound, c, r
    best = math.inf
    for k in range(2):
        d = prism_distance(points, field, column, row, k, b, V, T, Q, W, best)
        if d < best:
            best, half = d, k
    c0, c1, r0, r1 = cells_near(points, field, box, best)
    for r in range(r0, r1):
        for c in range(c0, c1):
            if cell_distance_bound(points, field, c, r, box) >= best:
                continue
            for k in range(2):
                d = prism_distance(points, field, c, r, k, b, V, T, Q, W, best)
                if d < best:
                    best, column, row, half = d, c, r, k
    return best, column, row, half


@subroutine
def prism_distance(points, field, c, r, half, b, V, T, Q, W, max_distance):
    """Return the distance between a prism and a core: 0 on contact, any value above `max_distance` if it is larger."""
    x, y, z = write_prism(points, field, c, r, half, Q)
    vx, vy, vz, _, _, _, size = gjk_distance(
        PRISM_CORE, Q, b, V, translated(T, -x, -y, -z), W, max_distance, 0.0, 0.0, 1.0
    )
    return math.sqrt(vx * vx + vy * vy + vz * vz) if size > 0.0 else 0.0


@subroutine
def deepest_prism(points, field, b, V, T, box, Q, W):
    """Distance result of a core that overlaps the height field."""
    c0, c1, r0, r1 = cells_near(points, field, box, 0.0)
    column, row = c0, r0
    for r in range(r0, r1):
        for c in range(c0, c1):
            if cell_top(points, field, c, r) > cell_top(points, field, column, row):
                column, row = c, r
    result = NO_CONTACT
    cells = (c1 - c0) * (r1 - r0)
    for n in range(-1, cells):  # the highest cell first: the rise of a cell above the core's bottom bounds its depth
        c, r = (column, row) if n < 0 else (c0 + n % (c1 - c0), r0 + n // (c1 - c0))
        if box[2] - cell_top(points, field, c, r) >= result[0]:
            continue
        for k in range(2):
            candidate = prism_penetration(points, field, c, r, k, b, V, T, Q, W, result[0])
            if candidate[0] < result[0]:
                result = candidate
    return result


@subroutine
def prism_penetration(points, field, c, r, half, b, V, T, Q, W, upper_bound):
    """Distance result of a core in a prism, along directions that leave the field.

    It is NO_CONTACT if they are apart, or no deeper than `upper_bound`.
    """
    x, y, z = write_prism(points, field, c, r, half, Q)
    T = translated(T, -x, -y, -z)
    s = 1.0 - 2.0 * half  # the corners of half 0 are counter-clockwise about the upward normal
    nx = s * (Q[1, 1] * Q[2, 2] - Q[1, 2] * Q[2, 1])
    ny = s * (Q[1, 2] * Q[2, 0] - Q[1, 0] * Q[2, 2])
    nz = s * (Q[1, 0] * Q[2, 1] - Q[1, 1] * Q[2, 0])
    length = math.sqrt(nx * nx + ny * ny + nz * nz)
    result = depth_along_normal(b, V, T, Q, nx / length, ny / length, nz / length)
    if result[0] >= upper_bound:
        return NO_CONTACT
    _, _, _, _, _, _, size = gjk_distance(PRISM_CORE, Q, b, V, T, W, 0.0, 0.0, 0.0, 1.0)
    if size > 0.0:
        return NO_CONTACT
    candidate = depth_by_lifting(b, V, T, Q, W)
    if candidate[0] > result[0]:
        result = candidate
    ux, uy = rim_side(half == 1, c, field[1]), rim_side(half == 0, r, field[2])
    for k in range(3):  # the bottom, then the two walls of a prism that are perpendicular to x and y
        wx, wy, wz = ux * (k == 1), uy * (k == 2), -1.0 * (k == 0)
        if wx != 0.0 or wy != 0.0 or wz != 0.0:
            candidate = depth_along_normal(b, V, T, Q, wx, wy, wz)
            if candidate[0] > result[0]:
                result = candidate
    return translate_result(result, x, y, z)


@inline
def rim_side(is_low, k, cells):
    """Return -1 or 1 if a prism's wall at the low or high end of its cell is on the boundary of the field, else 0."""
    if is_low:
        return -1.0 if k == 0 else 0.0
    return 1.0 if k == cells - 1 else 0.0


@subroutine
def depth_along_normal(b, V, T, Q, nx, ny, nz):
    """Distance result of a prism and a core if the core leaves along a normal of the prism."""
    wx, wy, wz, ax, ay, az = difference_support(PRISM_CORE, Q, b, V, T, nx, ny, nz)
    d = -(wx * nx + wy * ny + wz * nz)
    bx, by, bz = ax - wx, ay - wy, az - wz
    return d, nx, ny, nz, bx - d * nx, by - d * ny, bz - d * nz, bx, by, bz


@subroutine
def depth_by_lifting(b, V, T, Q, W):
    """Distance result of a core in a prism, by the last separating plane when the core is lifted.

    Newton's method from above: each plane that separates core and prism gives an upper bound of the smallest lift.
    """
    _, _, height, _, _, _ = difference_support(PRISM_CORE, Q, b, V, T, 0.0, 0.0, 1.0)
    size = height + abs(Q[2, 0]) + abs(Q[2, 1])
    x, y, z, depth, lift = 0.0, 0.0, 1.0, height, height + SEPARATION_RATIO * size
    last_lift = lift
    for _ in range(MAX_LIFTS):
        vx, vy, vz, _, _, _, result = gjk_distance(
            PRISM_CORE, Q, b, V, translated(T, 0.0, 0.0, lift), W, math.inf, x, y, z
        )
        d = math.sqrt(vx * vx + vy * vy + vz * vz)
        if result <= 0.0 or d < CLOSE_RATIO * size or not -vz > CLOSE_RATIO * d:
            break
        nx, ny, nz = -vx / d, -vy / d, -vz / d
        wx, wy, wz, _, _, _ = difference_support(PRISM_CORE, Q, b, V, T, nx, ny, nz)
        h = wx * nx + wy * ny + wz * nz
        if not h / nz < lift - 1e-14 * size:
            break
        x, y, z, depth, last_lift, lift = nx, ny, nz, h, lift, h / nz
    result = polish_normal(PRISM_CORE, Q, b, V, T, W, x, y, z, depth, size)
    if result[1] * x + result[2] * y + result[3] * z > SAME_PLANE_COSINE:
        return result
    gjk_distance(PRISM_CORE, Q, b, V, translated(T, 0.0, 0.0, last_lift), W, math.inf, x, y, z)
    return result_from_corners(W, last_lift, x, y, z, depth)


@inline
def result_from_corners(W, lift, x, y, z, depth):
    """Distance result along a normal, with points on the planes or edges of the corners where core and prism meet.

    The points may lie outside the shapes. They are the points at which the derivative of the distance is correct.

    Args:
        W: the simplex after GJK with the core lifted by `lift`.
    """
    ex, ey, ez = W[1, 0] - W[0, 0], W[1, 1] - W[0, 1], W[1, 2] - W[0, 2]
    fx, fy, fz = W[2, 0] - W[0, 0], W[2, 1] - W[0, 1], W[2, 2] - W[0, 2]
    px, py, pz = depth * x - W[0, 0], depth * y - W[0, 1], depth * z - lift - W[0, 2]
    nx, ny, nz = ey * fz - ez * fy, ez * fx - ex * fz, ex * fy - ey * fx
    area = nx * nx + ny * ny + nz * nz
    u, v = 0.0, 0.0
    if W[2, 6] > 0.0 and area > 0.0:
        u = ((py * fz - pz * fy) * nx + (pz * fx - px * fz) * ny + (px * fy - py * fx) * nz) / area
        v = ((ey * pz - ez * py) * nx + (ez * px - ex * pz) * ny + (ex * py - ey * px) * nz) / area
    elif W[1, 6] > 0.0:
        u = (px * ex + py * ey + pz * ez) / (ex * ex + ey * ey + ez * ez)
    ax = W[0, 3] + u * (W[1, 3] - W[0, 3]) + (v * (W[2, 3] - W[0, 3]) if v != 0.0 else 0.0)
    ay = W[0, 4] + u * (W[1, 4] - W[0, 4]) + (v * (W[2, 4] - W[0, 4]) if v != 0.0 else 0.0)
    az = W[0, 5] + u * (W[1, 5] - W[0, 5]) + (v * (W[2, 5] - W[0, 5]) if v != 0.0 else 0.0)
    return -depth, x, y, z, ax, ay, az, ax - depth * x, ay - depth * y, az - depth * z


@inline
def translate_result(result, x, y, z):
    d, nx, ny, nz, ax, ay, az, bx, by, bz = result
    return d, nx, ny, nz, ax + x, ay + y, az + z, bx + x, by + y, bz + z


@subroutine
def convex_distance(shapes, i, A, j, B, points):
    """Distance between two shapes of which one is a cylinder, a hull or a height field, as `shape_distance`."""
    kind, other_kind = int(shapes[i, SHAPE_KIND]), int(shapes[j, SHAPE_KIND])
    if other_kind == HALF_SPACE:
        return distance_to_half_space(shapes, i, A, B, points)
    if kind == HALF_SPACE:
        return flipped(distance_to_half_space(shapes, j, B, A, points))
    if kind == HEIGHT_FIELD:
        return distance_to_height_field(shapes, i, A, j, B, points)
    if other_kind == HEIGHT_FIELD:
        return flipped(distance_to_height_field(shapes, j, B, i, A, points))
    if kind == CYLINDER and other_kind == SPHERE:
        return cylinder_sphere(shapes[i, SHAPE_SIZE], shapes[i, SHAPE_SIZE + 1], A, shapes[j, SHAPE_SIZE], B)
    if kind == SPHERE and other_kind == CYLINDER:
        return flipped(cylinder_sphere(shapes[j, SHAPE_SIZE], shapes[j, SHAPE_SIZE + 1], B, shapes[i, SHAPE_SIZE], A))
    a, r = shape_core(shapes, i)
    b, s = shape_core(shapes, j)
    W = np.empty((4, 7))
    return core_result_in_world(A, core_distance(a, points, b, points, relative_to(A, B), W), r, s)


@inline
def core_result_in_world(A, result, r, s):
    """Transform a result of two cores from the frame A to the world, and subtract their radii r and s."""
    d, nx, ny, nz, ax, ay, az, bx, by, bz = result
    ax, ay, az = ax + r * nx, ay + r * ny, az + r * nz
    bx, by, bz = bx - s * nx, by - s * ny, bz - s * nz
    nx, ny, nz = to_world_vector(A, nx, ny, nz)
    ax, ay, az = to_world_vector(A, ax, ay, az)
    bx, by, bz = to_world_vector(A, bx, by, bz)
    x, y, z = A[9], A[10], A[11]
    return d - r - s, nx, ny, nz, ax + x, ay + y, az + z, bx + x, by + y, bz + z


@subroutine
def distance_to_height_field(shapes, i, A, j, B, points):
    """Distance between a height field and another shape; for two fields, the smallest over the prisms of the second."""
    field = int(shapes[i, SHAPE_SIZE]), int(shapes[i, SHAPE_SIZE + 1]), int(shapes[i, SHAPE_SIZE + 2])
    T = relative_to(A, B)
    if int(shapes[j, SHAPE_KIND]) != HEIGHT_FIELD:
        b, s = shape_core(shapes, j)
        return core_result_in_world(A, height_field_distance(points, field, b, points, T), 0.0, s)
    other_field = int(shapes[j, SHAPE_SIZE]), int(shapes[j, SHAPE_SIZE + 1]), int(shapes[j, SHAPE_SIZE + 2])
    Q = np.empty((6, 3))
    best = (math.inf, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for r in range(other_field[2]):
        for c in range(other_field[1]):
            for half in range(2):
                x, y, z = write_prism(points, other_field, c, r, half, Q)
                x, y, z = to_world_vector(T, x, y, z)
                result = height_field_distance(points, field, PRISM_CORE, Q, translated(T, x, y, z))
                if result[0] < best[0]:
                    best = result
    return core_result_in_world(A, best, 0.0, 0.0)


@subroutine
def distance_to_half_space(shapes, i, A, B, points):
    """Distance between a shape and the half-space below z = 0 of B: the height of the lowest point of the shape."""
    x, y, z = -B[2], -B[5], -B[8]
    u, v, w = A[0] * x + A[3] * y + A[6] * z, A[1] * x + A[4] * y + A[7] * z, A[2] * x + A[5] * y + A[8] * z
    r = 0.0
    if int(shapes[i, SHAPE_KIND]) == HEIGHT_FIELD:
        px, py, pz = height_field_support(
            points,
            (int(shapes[i, SHAPE_SIZE]), int(shapes[i, SHAPE_SIZE + 1]), int(shapes[i, SHAPE_SIZE + 2])),
            u,
            v,
            w,
        )
    else:
        core, r = shape_core(shapes, i)
        px, py, pz = support_point(core, points, u, v, w)
    px, py, pz = to_world_vector(A, px, py, pz)
    px, py, pz = px + A[9] + r * x, py + A[10] + r * y, pz + A[11] + r * z
    d = (B[9] - px) * x + (B[10] - py) * y + (B[11] - pz) * z
    return d, x, y, z, px, py, pz, px + d * x, py + d * y, pz + d * z


@subroutine
def height_field_support(points, field, x, y, z):
    bottom = field_bottom(points, field)
    px, py, pz, largest = 0.0, 0.0, 0.0, -math.inf
    for k in range(grid_corner(field, 0, 0), grid_corner(field, field[1], field[2]) + 1):
        height = points[k, 2] if z > 0.0 else bottom
        projection = points[k, 0] * x + points[k, 1] * y + height * z
        if projection > largest:
            px, py, pz, largest = points[k, 0], points[k, 1], height, projection
    return px, py, pz


@inline
def cylinder_sphere(radius, half, A, r, B):
    """Distance between a cylinder and a sphere: that between a point and a rectangle in the plane through the axis."""
    x, y, z = B[9] - A[9], B[10] - A[10], B[11] - A[11]
    x, y, z = A[0] * x + A[3] * y + A[6] * z, A[1] * x + A[4] * y + A[7] * z, A[2] * x + A[5] * y + A[8] * z
    radial = math.sqrt(x * x + y * y)
    ux, uy = (x / radial, y / radial) if radial > 0.0 else (1.0, 0.0)
    radial_distance, axial_distance = radial - radius, abs(z) - half
    if radial_distance > 0.0 and axial_distance > 0.0:
        d = math.sqrt(radial_distance * radial_distance + axial_distance * axial_distance)
        radial_share, axial_share = radial_distance / d, axial_distance / d
    elif radial_distance > axial_distance:
        d, radial_share, axial_share = radial_distance, 1.0, 0.0
    else:
        d, radial_share, axial_share = axial_distance, 0.0, 1.0
    nx, ny, nz = radial_share * ux, radial_share * uy, math.copysign(axial_share, z)
    return core_result_in_world(A, (d, nx, ny, nz, x - d * nx, y - d * ny, z - d * nz, x, y, z), 0.0, r)


@subroutine
def shape_distance(shapes, i, A, j, B, points):
    """Distance between the shapes of rows i and j, whose world poses are A and B (12 numbers: R row by row, p).

    Returns:
        d, nx, ny, nz, ax, ay, az, bx, by, bz: see `collision_layout.py`; m, world frame.
    """
    kind, other_kind = shapes[i, SHAPE_KIND], shapes[j, SHAPE_KIND]
    if kind > HALF_SPACE or other_kind > HALF_SPACE:
        return convex_distance(shapes, i, A, j, B, points)
    # branches instead of nested calls: each called function is compiled again with each caller
    is_swapped = kind > other_kind
    if is_swapped:
        i, A, j, B = j, B, i, A
        kind, other_kind = other_kind, kind
    x, y, z = shapes[j, SHAPE_SIZE], shapes[j, SHAPE_SIZE + 1], shapes[j, SHAPE_SIZE + 2]
    if kind == SPHERE:
        r = shapes[i, SHAPE_SIZE]
        if other_kind == SPHERE:
            result = with_radii(point_point(A, B), r, x)
        elif other_kind == CAPSULE:
            result = with_radii(point_segment(A, B, y), r, x)
        elif other_kind == BOX:
            result = with_radii(flipped(box_point(B, x, y, z, A)), r, 0.0)
        else:
            result = with_radii(point_half_space(A, B), r, 0.0)
    elif kind == CAPSULE:
        r, length = shapes[i, SHAPE_SIZE], shapes[i, SHAPE_SIZE + 1]
        if other_kind == CAPSULE:
            result = with_radii(segment_segment(A, length, B, y), r, x)
        elif other_kind == BOX:
            result = with_radii(flipped(box_segment(B, x, y, z, A, length)), r, 0.0)
        else:
            result = with_radii(segment_half_space(A, length, B), r, 0.0)
    elif kind == BOX:
        half = (shapes[i, SHAPE_SIZE], shapes[i, SHAPE_SIZE + 1], shapes[i, SHAPE_SIZE + 2])
        result = box_box(A, half, B, (x, y, z)) if other_kind == BOX else box_half_space(A, half, B)
    else:
        result = half_space_half_space(A, B)
    return flipped(result) if is_swapped else result


@kernel("void(f8[:,::1], f8[:,::1], f8[:,::1], i8[:,::1], f8[:,::1])")
def pair_distances(shapes, points, X, pairs, out):
    """Write the distances of `pairs` (k, 2) of shapes into out (k, 10): d, the normal from first to second, a, b.

    Args:
        shapes: (n, 24) table of shapes, see `collision_layout.py`; only kinds and sizes are read.
        points: (m, 3) points of hulls and height fields.
        X: (n, 12) world poses of the shapes.
    """
    for k in range(pairs.shape[0]):
        i, j = pairs[k, 0], pairs[k, 1]
        result = shape_distance(shapes, i, read_pose(X[i]), j, read_pose(X[j]), points)
        for column in range(10):
            out[k, column] = result[column]
