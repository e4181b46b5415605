"""Residuals of goals, closures and joint constraints of a problem, and their Jacobian, at a given x.

`E` and `J` are offsets in `floats` of a buffer of residuals and of a buffer of block Jacobians; `x` is the offset of
the variables. All residuals are weighted (see `problem_layout.py`).

Terrain is a height field over the corners of square cells. Between the corners it is interpolated by the cubics of
Catmull and Rom (1974), which pass through all heights and have a continuous gradient. Outside the field the outermost
heights continue, so the ground is flat from one cell beyond the edge.
"""

from __future__ import annotations

import math

from .compiler import inline, subroutine
from .nodes import IDENTITY_POSE, NODE_FLOATS, PARENT, child_pose, compose
from .problem_layout import *
from .problem_layout import CELL_SIZE, FIELD_COLUMNS, FIELD_ROWS, FIELD_X, FIELD_Y, HEIGHTS
from .relative_pose import (
    IDENTITY_ROTATION,
    residual_of_kind,
    rotate,
    rotate_inverse,
    times_transposed,
    transposed_times,
)


@inline
def clamp_index(k, count):
    return min(max(k, 0), count - 1)


@inline
def interpolation_weights(t):
    """Return the Catmull-Rom weights of four consecutive heights, then their derivatives by t.

    t in [0, 1) runs from the second height to the third.
    """
    return (
        0.5 * t * (t * (2.0 - t) - 1.0), 0.5 * (t * t * (3.0 * t - 5.0) + 2.0), 0.5 * t * (t * (4.0 - 3.0 * t) + 1.0),
        0.5 * t * t * (t - 1.0),
        0.5 * (t * (4.0 - 3.0 * t) - 1.0), 0.5 * t * (9.0 * t - 10.0), 0.5 * (t * (8.0 - 9.0 * t) + 1.0),
        0.5 * t * (3.0 * t - 2.0),
    )  # fmt: skip


@inline
def cell_of(x, origin, size, count):
    """Return the index of the cell that contains x and the fraction within it; x is clamped two cells outside."""
    u = (x - origin) / size
    u = u if u > -2.0 else -2.0  # this order of the comparison also replaces NaN
    u = u if u < count + 1.0 else count + 1.0
    k = math.floor(u)
    return int(k), u - k


@subroutine
def height_and_gradient(floats, field, x, y):
    """Return the height of a field at (x, y) and its derivatives by x and by y."""
    column_count, row_count, size = (
        int(floats[field + FIELD_COLUMNS]),
        int(floats[field + FIELD_ROWS]),
        floats[field + CELL_SIZE],
    )
    i, s = cell_of(x, floats[field + FIELD_X], size, column_count)
    j, t = cell_of(y, floats[field + FIELD_Y], size, row_count)
    a, b, c, d, da, db, dc, dd = interpolation_weights(s)
    y_weights = interpolation_weights(t)
    c0, c1, c2, c3 = (
        clamp_index(i - 1, column_count),
        clamp_index(i, column_count),
        clamp_index(i + 1, column_count),
        clamp_index(i + 2, column_count),
    )
    height, by_x, by_y = 0.0, 0.0, 0.0
    for k in range(4):
        row = field + HEIGHTS + column_count * clamp_index(j - 1 + k, row_count)
        h0, h1, h2, h3 = floats[row + c0], floats[row + c1], floats[row + c2], floats[row + c3]
        h = a * h0 + b * h1 + c * h2 + d * h3
        height += y_weights[k] * h
        by_x += y_weights[k] * (da * h0 + db * h1 + dc * h2 + dd * h3)
        by_y += y_weights[4 + k] * h
    return height, by_x / size, by_y / size


@subroutine
def joint_constraint_residual(ints, floats, b, x, E, J):
    """Evaluate a joint constraint: a sum of polynomials, each of one variable, minus a constant."""
    block, columns, scale = ints[AT_BLOCKS] + BLOCK_INTS * b, ints[AT_BLOCK_COLUMNS], ints[AT_SCALE]
    row, j, first = ints[block + FIRST_ROW], J + ints[block + FIRST_JACOBIAN], ints[block + FIRST_COLUMN]
    weight, at = floats[ints[AT_WEIGHT] + row], ints[AT_COEFFICIENTS] + ints[block + FIRST_COEFFICIENT]
    total = -floats[ints[AT_BLOCK_DATA] + BLOCK_FLOATS * b]
    for _ in range(ints[block + MASS_COUNT]):
        value, own_column, degree = floats[x + int(floats[at])], int(floats[at + 1]), int(floats[at + 2])
        at += FIRST_FACTOR
        quotient, quotient_slope = 0.0, 0.0
        for k in range(degree - 1, -1, -1):  # Horner's rule for the polynomial divided by `value`
            quotient_slope = quotient_slope * value + quotient
            quotient = quotient * value + floats[at + k]
        total += quotient * value
        if own_column >= 0:
            floats[j + own_column] += (
                weight * (quotient_slope * value + quotient) * floats[scale + ints[columns + first + own_column]]
            )
        at += degree
    floats[E + row] = weight * total


@subroutine
def update_node_poses(ints, floats, x):
    """Write the world poses of all nodes to `AT_POSES`."""
    nodes, poses, q = ints[AT_NODES], ints[AT_POSES], floats[x:]
    for i in range(ints[N_NODES]):
        node = floats[nodes + NODE_FLOATS * i : nodes + NODE_FLOATS * i + NODE_FLOATS]
        parent = int(node[PARENT])
        X = child_pose(read_pose_at(floats, poses + 12 * parent) if parent >= 0 else IDENTITY_POSE, node, q, False)
        for k in range(12):
            floats[poses + 12 * i + k] = X[k]


@inline
def read_pose_at(floats, k):
    return (
        floats[k], floats[k + 1], floats[k + 2], floats[k + 3], floats[k + 4], floats[k + 5],
        floats[k + 6], floats[k + 7], floats[k + 8], floats[k + 9], floats[k + 10], floats[k + 11],
    )  # fmt: skip


@inline
def read_rotation(floats, k):
    return (
        floats[k],
        floats[k + 1],
        floats[k + 2],
        floats[k + 3],
        floats[k + 4],
        floats[k + 5],
        floats[k + 6],
        floats[k + 7],
        floats[k + 8],
    )


@inline
def world_frame(ints, floats, node, fixed):
    """Return the world pose of a frame that is fixed to a node (-1: the world); `fixed` is its offset in floats."""
    if node < 0:
        return read_pose_at(floats, fixed)
    return compose(read_pose_at(floats, ints[AT_POSES] + 12 * node), read_pose_at(floats, fixed))


@inline
def write_residual(floats, at, weight, mask, a, b, c, d, e, f):
    """Write those of the six residuals that the mask selects, multiplied by their weights."""
    k = 0
    if mask & 1:
        floats[at + k] = floats[weight + k] * a
        k += 1
    if mask & 2:
        floats[at + k] = floats[weight + k] * b
        k += 1
    if mask & 4:
        floats[at + k] = floats[weight + k] * c
        k += 1
    if mask & 8:
        floats[at + k] = floats[weight + k] * d
        k += 1
    if mask & 16:
        floats[at + k] = floats[weight + k] * e
        k += 1
    if mask & 32:
        floats[at + k] = floats[weight + k] * f


@inline
def add_column(floats, at, width, weight, mask, factor, a, b, c, d, e, f):
    """Add factor times six derivatives to one Jacobian column of a block, masked and weighted as `write_residual`."""
    k = 0
    if mask & 1:
        floats[at + k * width] += factor * floats[weight + k] * a
        k += 1
    if mask & 2:
        floats[at + k * width] += factor * floats[weight + k] * b
        k += 1
    if mask & 4:
        floats[at + k * width] += factor * floats[weight + k] * c
        k += 1
    if mask & 8:
        floats[at + k * width] += factor * floats[weight + k] * d
        k += 1
    if mask & 16:
        floats[at + k * width] += factor * floats[weight + k] * e
        k += 1
    if mask & 32:
        floats[at + k * width] += factor * floats[weight + k] * f


@inline
def rotation_velocity(u, v, w, l, m, n):
    """Return the cross product (u, v, w) x (l, m, n): the velocity of a point under a rotation."""
    return v * n - w * m, w * l - u * n, u * m - v * l


@subroutine
def relation_residual(ints, floats, b, E, J):
    """Evaluate the residuals and the Jacobian of a relation between two frames A and B.

    By default the components are along the axes of A: a motion of A then counts as the opposite motion of B, and nodes
    that move both frames have no term. With `IN_WORLD` they are along axes C, which are fixed in the world: nodes that
    move both frames then have a term too.
    """
    block, data = ints[AT_BLOCKS] + BLOCK_INTS * b, ints[AT_BLOCK_DATA] + BLOCK_FLOATS * b
    terms, term_factor, poses = ints[AT_TERMS], ints[AT_TERM_FACTOR], ints[AT_POSES]
    kind, mask, width, in_world = (
        ints[block + BLOCK_KIND],
        ints[block + ROW_MASK],
        ints[block + COLUMN_COUNT],
        ints[block + IN_WORLD] == 1,
    )
    row, j = ints[block + FIRST_ROW], J + ints[block + FIRST_JACOBIAN]
    weight = ints[AT_WEIGHT] + row
    A = world_frame(ints, floats, ints[block + NODE_A], data + FRAME_A)
    B = world_frame(ints, floats, ints[block + NODE_B], data + FRAME_B)
    C = read_rotation(floats, data + AXES_C) if in_world else (A[0], A[1], A[2], A[3], A[4], A[5], A[6], A[7], A[8])
    x, y, z = rotate_inverse(C, B[9] - A[9], B[10] - A[10], B[11] - A[11])
    Q = IDENTITY_ROTATION
    if in_world:
        Q = times_transposed(transposed_times(C, B), transposed_times(C, A))
    elif mask > 7:
        Q = transposed_times(C, B)
    r0, r1, r2, r3, r4, r5, by_translation, by_rotation = residual_of_kind(kind, x, y, z, Q)
    if kind == TERRAIN_HEIGHT:
        height, slope_x, slope_y = height_and_gradient(
            floats, ints[AT_COEFFICIENTS] + ints[block + FIRST_COEFFICIENT], x, y
        )
        r0, by_translation = z - height, (-slope_x, -slope_y, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    write_residual(floats, E + row, weight, mask, r0, r1, r2, r3, r4, r5)
    for k in range(ints[block + FIRST_TERM], ints[block + FIRST_TERM] + ints[block + TERM_COUNT]):
        term = terms + TERM_INTS * k
        X, axis, side, is_rotation = (
            poses + 12 * ints[term + TERM_NODE],
            ints[term + TERM_AXIS],
            ints[term + TERM_SIDE],
            ints[term + TERM_IS_ROTATION] == 1,
        )
        factor = floats[term_factor + k]
        u, v, w = rotate_inverse(C, floats[X + axis], floats[X + 3 + axis], floats[X + 6 + axis])
        sx, sy, sz = u, v, w
        if is_rotation:
            l, m, n = rotate_inverse(C, B[9] - floats[X + 9], B[10] - floats[X + 10], B[11] - floats[X + 11])
            tx, ty, tz = rotation_velocity(u, v, w, l, m, n)
        else:
            tx, ty, tz = u, v, w
            sx, sy, sz = 0.0, 0.0, 0.0
        if not in_world:
            if side == MOVES_A:
                factor = -factor
        elif side != MOVES_B:
            if side == MOVES_A:
                tx, ty, tz, sx, sy, sz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            if is_rotation:
                l, m, n = rotate_inverse(C, A[9] - floats[X + 9], A[10] - floats[X + 10], A[11] - floats[X + 11])
                ax, ay, az = rotation_velocity(u, v, w, l, m, n)
                qx, qy, qz = rotate(Q, u, v, w)
                sx, sy, sz = sx - qx, sy - qy, sz - qz
            else:
                ax, ay, az = u, v, w
            tx, ty, tz = tx - ax, ty - ay, tz - az
        if kind > COSINE:
            tx, ty, tz = rotate(by_translation, tx, ty, tz)
        sx, sy, sz = rotate(by_rotation, sx, sy, sz)
        add_column(floats, j + ints[term + TERM_COLUMN], width, weight, mask, factor, tx, ty, tz, sx, sy, sz)


@subroutine
def centre_of_mass_residual(ints, floats, b, E, J):
    """Evaluate the position of the centre of mass in frame A; a node moves all masses of its subtree."""
    blocks, terms, nodes, data = ints[AT_BLOCKS], ints[AT_TERMS], ints[AT_NODES], ints[AT_BLOCK_DATA]
    term_factor, masses, weight, poses = ints[AT_TERM_FACTOR], ints[AT_MASSES], ints[AT_WEIGHT], ints[AT_POSES]
    moments = ints[AT_MOMENTS]
    block, data = blocks + BLOCK_INTS * b, data + BLOCK_FLOATS * b
    mask, row, width, j = (
        ints[block + ROW_MASK],
        ints[block + FIRST_ROW],
        ints[block + COLUMN_COUNT],
        ints[block + FIRST_JACOBIAN],
    )
    A = world_frame(ints, floats, ints[block + NODE_A], data + FRAME_A)
    R = (A[0], A[1], A[2], A[3], A[4], A[5], A[6], A[7], A[8])
    for i in range(ints[N_NODES]):
        for k in range(4):
            floats[moments + 4 * i + k] = 0.0
    cx, cy, cz = 0.0, 0.0, 0.0
    for k in range(ints[block + FIRST_MASS], ints[block + FIRST_MASS] + ints[block + MASS_COUNT]):
        at = masses + MASS_FLOATS * k
        node, mass_share, px, py, pz = int(floats[at]), floats[at + 1], floats[at + 2], floats[at + 3], floats[at + 4]
        if node >= 0:
            X = poses + 12 * node
            px, py, pz = (
                floats[X + 9] + floats[X] * px + floats[X + 1] * py + floats[X + 2] * pz,
                floats[X + 10] + floats[X + 3] * px + floats[X + 4] * py + floats[X + 5] * pz,
                floats[X + 11] + floats[X + 6] * px + floats[X + 7] * py + floats[X + 8] * pz,
            )
            floats[moments + 4 * node] += mass_share
            floats[moments + 4 * node + 1] += mass_share * px
            floats[moments + 4 * node + 2] += mass_share * py
            floats[moments + 4 * node + 3] += mass_share * pz
        cx, cy, cz = cx + mass_share * px, cy + mass_share * py, cz + mass_share * pz
    for i in range(ints[N_NODES] - 1, -1, -1):
        parent = int(floats[nodes + NODE_FLOATS * i + PARENT])
        if parent >= 0:
            for k in range(4):
                floats[moments + 4 * parent + k] += floats[moments + 4 * i + k]
    x, y, z = rotate_inverse(R, cx - A[9], cy - A[10], cz - A[11])
    write_residual(floats, E + row, weight + row, mask, x, y, z, 0.0, 0.0, 0.0)
    for k in range(ints[block + FIRST_TERM], ints[block + FIRST_TERM] + ints[block + TERM_COUNT]):
        term = terms + TERM_INTS * k
        X, axis = poses + 12 * ints[term + TERM_NODE], ints[term + TERM_AXIS]
        mass, lx, ly, lz = read_moment(floats, moments + 4 * ints[term + TERM_NODE])
        lx, ly, lz = lx - mass * floats[X + 9], ly - mass * floats[X + 10], lz - mass * floats[X + 11]
        if ints[term + TERM_SIDE] & MOVES_A:  # A moves too: all other masses move oppositely relative to it
            mass, lx, ly, lz = (
                mass - 1.0,
                lx - (cx - floats[X + 9]),
                ly - (cy - floats[X + 10]),
                lz - (cz - floats[X + 11]),
            )
        u, v, w = floats[X + axis], floats[X + 3 + axis], floats[X + 6 + axis]
        if ints[term + TERM_IS_ROTATION] == 1:
            tx, ty, tz = rotate_inverse(R, v * lz - w * ly, w * lx - u * lz, u * ly - v * lx)
        else:
            tx, ty, tz = rotate_inverse(R, mass * u, mass * v, mass * w)
        add_column(
            floats,
            J + j + ints[term + TERM_COLUMN],
            width,
            weight + row,
            mask,
            floats[term_factor + k],
            tx,
            ty,
            tz,
            0.0,
            0.0,
            0.0,
        )


@inline
def read_moment(floats, at):
    return floats[at], floats[at + 1], floats[at + 2], floats[at + 3]


@subroutine
def spherical_residual(ints, floats, b, x, E, J):
    """Evaluate a spherical joint: the rotation vector (rad) from its target to its rotation, in its own axes."""
    blocks, data, weight = ints[AT_BLOCKS], ints[AT_BLOCK_DATA], ints[AT_WEIGHT]
    block, data = blocks + BLOCK_INTS * b, data + BLOCK_FLOATS * b
    mask, row, width, j, k = (
        ints[block + ROW_MASK],
        ints[block + FIRST_ROW],
        ints[block + COLUMN_COUNT],
        ints[block + FIRST_JACOBIAN],
        ints[block + X_INDEX],
    )
    a, p, q, r = floats[data], -floats[data + 1], -floats[data + 2], -floats[data + 3]
    w, u, v, s = floats[x + k], floats[x + k + 1], floats[x + k + 2], floats[x + k + 3]
    cw, cx = a * w - p * u - q * v - r * s, a * u + p * w + q * s - r * v
    cy, cz = a * v - p * s + q * w + r * u, a * s + p * v - q * u + r * w
    if cw < 0.0:
        cw, cx, cy, cz = -cw, -cx, -cy, -cz
    n2 = cx * cx + cy * cy + cz * cz
    n = math.sqrt(n2)
    if n2 < 1e-4:  # the closed forms lose digits here; the series is exact to rounding
        f = 2.0 + n2 * (1.0 / 3.0 + n2 * (3.0 / 20.0 + n2 * 15.0 / 168.0))
        a2 = n2 * f * f
        g = 1.0 / 12.0 + a2 * (1.0 / 720.0 + a2 / 30240.0)
    else:
        angle = 2.0 * math.atan2(n, cw)
        f = angle / n
        g = (1.0 - 0.5 * angle * cw / n) / (angle * angle)
    ex, ey, ez = f * cx, f * cy, f * cz
    write_residual(floats, E + row, weight + row, mask, ex, ey, ez, 0.0, 0.0, 0.0)
    # a step rotates the joint about its own axes: the derivative is the inverse right Jacobian
    xx, yy, zz = ex * ex, ey * ey, ez * ez
    rate = (
        1.0 - g * (yy + zz), g * ex * ey - 0.5 * ez, g * ex * ez + 0.5 * ey,
        g * ex * ey + 0.5 * ez, 1.0 - g * (xx + zz), g * ey * ez - 0.5 * ex,
        g * ex * ez - 0.5 * ey, g * ey * ez + 0.5 * ex, 1.0 - g * (xx + yy),
    )  # fmt: skip
    own_column = ints[block + OWN_COLUMN]
    for k in range(3 if own_column >= 0 else 0):
        add_column(
            floats,
            J + j + own_column + k,
            width,
            weight + row,
            mask,
            1.0,
            rate[k],
            rate[3 + k],
            rate[6 + k],
            0.0,
            0.0,
            0.0,
        )


@subroutine
def evaluate_residuals(ints, floats, x, buffer, end):
    """Evaluate the residuals and Jacobians of the blocks below `end` into one of the two buffers (0 or 1).

    Blocks of kind PYTHON_FUNCTION are left as they are: Python writes them.
    """
    blocks, block_columns, slack, data = ints[AT_BLOCKS], ints[AT_BLOCK_COLUMNS], ints[AT_SLACK], ints[AT_BLOCK_DATA]
    weight, scale, jacobian, residual = ints[AT_WEIGHT], ints[AT_SCALE], ints[AT_JACOBIAN], ints[AT_RESIDUAL]
    update_node_poses(ints, floats, x)
    E, J = residual + ints[N_ROWS] * buffer, jacobian + ints[N_JACOBIAN] * buffer
    for b in range(end):
        block = blocks + BLOCK_INTS * b
        kind, row, m, width, j = (
            ints[block + BLOCK_KIND],
            ints[block + FIRST_ROW],
            ints[block + ROW_COUNT],
            ints[block + COLUMN_COUNT],
            ints[block + FIRST_JACOBIAN],
        )
        if kind != PYTHON_FUNCTION:
            for k in range(m * width):
                floats[J + j + k] = 0.0
        if kind == JOINT_VALUE:
            floats[E + row] = floats[weight + row] * (
                floats[x + ints[block + X_INDEX]] - floats[data + BLOCK_FLOATS * b]
            )
            if ints[block + OWN_COLUMN] >= 0:
                floats[J + j + ints[block + OWN_COLUMN]] = (
                    floats[weight + row]
                    * floats[scale + ints[block_columns + ints[block + FIRST_COLUMN] + ints[block + OWN_COLUMN]]]
                )
        elif kind == SPHERICAL_ROTATION:
            spherical_residual(ints, floats, b, x, E, J)
        elif kind == CENTRE_OF_MASS:
            centre_of_mass_residual(ints, floats, b, E, J)
        elif kind == JOINT_CONSTRAINT:
            joint_constraint_residual(ints, floats, b, x, E, J)
        elif kind == PYTHON_FUNCTION:
            pass
        else:
            relation_residual(ints, floats, b, E, J)
        if ints[block + HAS_BANDS] == 1 and kind != PYTHON_FUNCTION:
            for r in range(row, row + m):
                if ints[slack + 2 * r] >= 0:
                    floats[E + r] -= floats[weight + r] * floats[x + ints[slack + 2 * r]]
                    floats[J + j + (r - row) * width + ints[slack + 2 * r + 1]] = -1.0
