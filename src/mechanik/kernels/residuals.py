"""Residuals of objectives, closures and joint constraints of a problem, and their Jacobians, at a given x.

`residual` and `J` are the offsets in `floats` of a buffer of residuals and of a buffer of block Jacobians; `x` is the
offset of the variables. All residuals are weighted (see `problem_layout.py`, also for indices such as `b` and `r`).

A terrain is a height field: heights at the corners of square cells. Between the corners the height is interpolated by
the cubics of Catmull and Rom (1974), which pass through all heights and have a continuous gradient. Outside the field
the heights of the edge are repeated, so the gradient across the edge is zero at a distance of one cell or more.
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
    """Return the index in [0, count - 1] that is nearest to k."""
    return min(max(k, 0), count - 1)


@inline
def interpolation_weights(t):
    """Return the Catmull-Rom weights of four consecutive heights, then the derivatives of the weights by t.

    t in [0, 1) is the fraction of the distance from the second height to the third.
    """
    return (
        0.5 * t * (t * (2.0 - t) - 1.0), 0.5 * (t * t * (3.0 * t - 5.0) + 2.0), 0.5 * t * (t * (4.0 - 3.0 * t) + 1.0),
        0.5 * t * t * (t - 1.0),
        0.5 * (t * (4.0 - 3.0 * t) - 1.0), 0.5 * t * (9.0 * t - 10.0), 0.5 * (t * (8.0 - 9.0 * t) + 1.0),
        0.5 * t * (3.0 * t - 2.0),
    )  # fmt: skip


@inline
def find_cell(x, origin, cell_size, count):
    """Return the index of the cell that contains x and the fraction within the cell.

    x is clamped to at most two cells outside the field, which has `count` heights from `origin` (m) on.
    """
    cell_coordinate = (x - origin) / cell_size
    cell_coordinate = cell_coordinate if cell_coordinate > -2.0 else -2.0  # written so that NaN becomes -2 too
    cell_coordinate = cell_coordinate if cell_coordinate < count + 1.0 else count + 1.0
    cell = math.floor(cell_coordinate)
    return int(cell), cell_coordinate - cell


@subroutine
def height_and_gradient(floats, field, x, y):
    """Return the height (m) of a field at (x, y), m, and its derivatives by x and by y.

    `field` is the offset of the field in `floats`. i and s are the cell and the fraction along x, j and t along y. a to
    d are the weights along x and da to dd their derivatives; c0 to c3 are the columns of the four heights h0 to h3.
    """
    column_count, row_count, cell_size = (
        int(floats[field + FIELD_COLUMNS]),
        int(floats[field + FIELD_ROWS]),
        floats[field + CELL_SIZE],
    )
    i, s = find_cell(x, floats[field + FIELD_X], cell_size, column_count)
    j, t = find_cell(y, floats[field + FIELD_Y], cell_size, row_count)
    a, b, c, d, da, db, dc, dd = interpolation_weights(s)
    y_weights = interpolation_weights(t)
    c0, c1, c2, c3 = (
        clamp_index(i - 1, column_count),
        clamp_index(i, column_count),
        clamp_index(i + 1, column_count),
        clamp_index(i + 2, column_count),
    )
    height, slope_x, slope_y = 0.0, 0.0, 0.0
    for k in range(4):
        row = field + HEIGHTS + column_count * clamp_index(j - 1 + k, row_count)
        h0, h1, h2, h3 = floats[row + c0], floats[row + c1], floats[row + c2], floats[row + c3]
        row_height = a * h0 + b * h1 + c * h2 + d * h3
        height += y_weights[k] * row_height
        slope_x += y_weights[k] * (da * h0 + db * h1 + dc * h2 + dd * h3)
        slope_y += y_weights[4 + k] * row_height
    return height, slope_x / cell_size, slope_y / cell_size


@subroutine
def joint_constraint_residual(ints, floats, b, x, residual, J):
    """Evaluate a joint constraint: the sum of polynomials, each of one variable, minus a constant."""
    block, block_columns, scale = ints[AT_BLOCKS] + BLOCK_INTS * b, ints[AT_BLOCK_COLUMNS], ints[AT_SCALE]
    first_row, jacobian, first_column = (
        ints[block + FIRST_ROW],
        J + ints[block + FIRST_JACOBIAN],
        ints[block + FIRST_COLUMN],
    )
    weight, coefficient = floats[ints[AT_WEIGHT] + first_row], ints[AT_COEFFICIENTS] + ints[block + FIRST_COEFFICIENT]
    total = -floats[ints[AT_BLOCK_DATA] + BLOCK_FLOATS * b]
    for _ in range(ints[block + MASS_COUNT]):
        value, joint_column, degree = (
            floats[x + int(floats[coefficient])],
            int(floats[coefficient + 1]),
            int(floats[coefficient + 2]),
        )
        coefficient += FIRST_FACTOR
        quotient, quotient_slope = 0.0, 0.0
        for k in range(degree - 1, -1, -1):  # Horner's rule for the polynomial divided by `value`
            quotient_slope = quotient_slope * value + quotient
            quotient = quotient * value + floats[coefficient + k]
        total += quotient * value
        if joint_column >= 0:
            floats[jacobian + joint_column] += (
                weight
                * (quotient_slope * value + quotient)
                * floats[scale + ints[block_columns + first_column + joint_column]]
            )
        coefficient += degree
    floats[residual + first_row] = weight * total


@subroutine
def update_node_poses(ints, floats, x):
    """Write the world poses of all nodes at x to the table `poses`."""
    nodes, poses, q = ints[AT_NODES], ints[AT_POSES], floats[x:]
    for i in range(ints[N_NODES]):
        node = floats[nodes + NODE_FLOATS * i : nodes + NODE_FLOATS * i + NODE_FLOATS]
        parent = int(node[PARENT])
        X = child_pose(read_pose_at(floats, poses + 12 * parent) if parent >= 0 else IDENTITY_POSE, node, q, False)
        for k in range(12):
            floats[poses + 12 * i + k] = X[k]


@inline
def read_pose_at(floats, k):
    """Return the pose (12 numbers) at the offset k."""
    return (
        floats[k], floats[k + 1], floats[k + 2], floats[k + 3], floats[k + 4], floats[k + 5],
        floats[k + 6], floats[k + 7], floats[k + 8], floats[k + 9], floats[k + 10], floats[k + 11],
    )  # fmt: skip


@inline
def read_rotation(floats, k):
    """Return the rotation (9 numbers, row by row) at the offset k."""
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
def world_frame(ints, floats, node, frame_pose):
    """Return the world pose of a frame that is fixed to a node (-1: the world).

    `frame_pose` is the offset in `floats` of the frame's pose in the node.
    """
    if node < 0:
        return read_pose_at(floats, frame_pose)
    return compose(read_pose_at(floats, ints[AT_POSES] + 12 * node), read_pose_at(floats, frame_pose))


@inline
def write_residual(floats, out, weight, mask, a, b, c, d, e, f):
    """Write those of the six residuals a to f that the bits of the mask select, multiplied by their weights.

    `out` and `weight` are offsets in `floats`.
    """
    k = 0
    if mask & 1:
        floats[out + k] = floats[weight + k] * a
        k += 1
    if mask & 2:
        floats[out + k] = floats[weight + k] * b
        k += 1
    if mask & 4:
        floats[out + k] = floats[weight + k] * c
        k += 1
    if mask & 8:
        floats[out + k] = floats[weight + k] * d
        k += 1
    if mask & 16:
        floats[out + k] = floats[weight + k] * e
        k += 1
    if mask & 32:
        floats[out + k] = floats[weight + k] * f


@inline
def add_column(floats, out, width, weight, mask, factor, a, b, c, d, e, f):
    """Add `factor` times the six derivatives a to f to a Jacobian column of a block, at the offset `out`.

    Mask and weights are as in `write_residual`; `width` is the number of columns of the block.
    """
    k = 0
    if mask & 1:
        floats[out + k * width] += factor * floats[weight + k] * a
        k += 1
    if mask & 2:
        floats[out + k * width] += factor * floats[weight + k] * b
        k += 1
    if mask & 4:
        floats[out + k * width] += factor * floats[weight + k] * c
        k += 1
    if mask & 8:
        floats[out + k * width] += factor * floats[weight + k] * d
        k += 1
    if mask & 16:
        floats[out + k * width] += factor * floats[weight + k] * e
        k += 1
    if mask & 32:
        floats[out + k * width] += factor * floats[weight + k] * f


@inline
def rotation_velocity(ax, ay, az, px, py, pz):
    """Return the cross product a x p: the velocity of a point p that rotates about the axis a through the origin."""
    return ay * pz - az * py, az * px - ax * pz, ax * py - ay * px


@subroutine
def relation_residual(ints, floats, b, residual, J):
    """Evaluate the residuals and the Jacobian of a relation between two frames A and B.

    By default the residuals are along the axes of A. Then a motion of A is equivalent to the opposite motion of B, and
    nodes that move both frames have no term. With `IN_WORLD` the residuals are along axes C that are fixed in the
    world; then nodes that move both frames have a term too. Q is the rotation from A to B, and (x, y, z) the vector
    from A to B, along these axes. X is the offset of a node's pose.
    """
    block, block_data = ints[AT_BLOCKS] + BLOCK_INTS * b, ints[AT_BLOCK_DATA] + BLOCK_FLOATS * b
    terms, term_factor, poses = ints[AT_TERMS], ints[AT_TERM_FACTOR], ints[AT_POSES]
    kind, mask, width, in_world = (
        ints[block + BLOCK_KIND],
        ints[block + ROW_MASK],
        ints[block + COLUMN_COUNT],
        ints[block + IN_WORLD] == 1,
    )
    first_row, jacobian = ints[block + FIRST_ROW], J + ints[block + FIRST_JACOBIAN]
    weight = ints[AT_WEIGHT] + first_row
    A = world_frame(ints, floats, ints[block + NODE_A], block_data + FRAME_A)
    B = world_frame(ints, floats, ints[block + NODE_B], block_data + FRAME_B)
    C = (
        read_rotation(floats, block_data + AXES_C)
        if in_world
        else (A[0], A[1], A[2], A[3], A[4], A[5], A[6], A[7], A[8])
    )
    x, y, z = rotate_inverse(C, B[9] - A[9], B[10] - A[10], B[11] - A[11])
    Q = IDENTITY_ROTATION
    if in_world:
        Q = times_transposed(transposed_times(C, B), transposed_times(C, A))
    elif mask > 7:  # a row of the rotation part counts
        Q = transposed_times(C, B)
    r0, r1, r2, r3, r4, r5, linear_jacobian, angular_jacobian = residual_of_kind(kind, x, y, z, Q)
    if kind == TERRAIN_HEIGHT:
        height, slope_x, slope_y = height_and_gradient(
            floats, ints[AT_COEFFICIENTS] + ints[block + FIRST_COEFFICIENT], x, y
        )
        r0, linear_jacobian = z - height, (-slope_x, -slope_y, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    write_residual(floats, residual + first_row, weight, mask, r0, r1, r2, r3, r4, r5)
    for t in range(ints[block + FIRST_TERM], ints[block + FIRST_TERM] + ints[block + TERM_COUNT]):
        term = terms + TERM_INTS * t
        X, axis, side, is_rotation = (
            poses + 12 * ints[term + TERM_NODE],
            ints[term + TERM_AXIS],
            ints[term + TERM_SIDE],
            ints[term + TERM_IS_ROTATION] == 1,
        )
        factor = floats[term_factor + t]
        axis_x, axis_y, axis_z = rotate_inverse(C, floats[X + axis], floats[X + 3 + axis], floats[X + 6 + axis])
        angular_x, angular_y, angular_z = axis_x, axis_y, axis_z
        if is_rotation:
            px, py, pz = rotate_inverse(C, B[9] - floats[X + 9], B[10] - floats[X + 10], B[11] - floats[X + 11])
            linear_x, linear_y, linear_z = rotation_velocity(axis_x, axis_y, axis_z, px, py, pz)
        else:
            linear_x, linear_y, linear_z = axis_x, axis_y, axis_z
            angular_x, angular_y, angular_z = 0.0, 0.0, 0.0
        if not in_world:
            if side == MOVES_A:
                factor = -factor
        elif side != MOVES_B:
            if side == MOVES_A:
                linear_x, linear_y, linear_z, angular_x, angular_y, angular_z = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            if is_rotation:
                px, py, pz = rotate_inverse(C, A[9] - floats[X + 9], A[10] - floats[X + 10], A[11] - floats[X + 11])
                velocity_a_x, velocity_a_y, velocity_a_z = rotation_velocity(axis_x, axis_y, axis_z, px, py, pz)
                rotated_x, rotated_y, rotated_z = rotate(Q, axis_x, axis_y, axis_z)
                angular_x, angular_y, angular_z = angular_x - rotated_x, angular_y - rotated_y, angular_z - rotated_z
            else:
                velocity_a_x, velocity_a_y, velocity_a_z = axis_x, axis_y, axis_z
            linear_x, linear_y, linear_z = linear_x - velocity_a_x, linear_y - velocity_a_y, linear_z - velocity_a_z
        if kind > COSINE:
            linear_x, linear_y, linear_z = rotate(linear_jacobian, linear_x, linear_y, linear_z)
        angular_x, angular_y, angular_z = rotate(angular_jacobian, angular_x, angular_y, angular_z)
        add_column(
            floats,
            jacobian + ints[term + TERM_COLUMN],
            width,
            weight,
            mask,
            factor,
            linear_x,
            linear_y,
            linear_z,
            angular_x,
            angular_y,
            angular_z,
        )


@subroutine
def centre_of_mass_residual(ints, floats, b, residual, J):
    """Evaluate the position of the centre of mass in frame A; a node moves all masses of its subtree.

    Masses are fractions of the total mass. (cx, cy, cz) is the centre of mass in the world, R the rotation of A.
    """
    blocks, terms, nodes, block_data = ints[AT_BLOCKS], ints[AT_TERMS], ints[AT_NODES], ints[AT_BLOCK_DATA]
    term_factor, masses, weight, poses = ints[AT_TERM_FACTOR], ints[AT_MASSES], ints[AT_WEIGHT], ints[AT_POSES]
    moments = ints[AT_MOMENTS]
    block, block_data = blocks + BLOCK_INTS * b, block_data + BLOCK_FLOATS * b
    mask, first_row, width, first_jacobian = (
        ints[block + ROW_MASK],
        ints[block + FIRST_ROW],
        ints[block + COLUMN_COUNT],
        ints[block + FIRST_JACOBIAN],
    )
    A = world_frame(ints, floats, ints[block + NODE_A], block_data + FRAME_A)
    R = (A[0], A[1], A[2], A[3], A[4], A[5], A[6], A[7], A[8])
    for i in range(ints[N_NODES]):
        for k in range(4):
            floats[moments + 4 * i + k] = 0.0
    cx, cy, cz = 0.0, 0.0, 0.0
    for k in range(ints[block + FIRST_MASS], ints[block + FIRST_MASS] + ints[block + MASS_COUNT]):
        mass_entry = masses + MASS_FLOATS * k
        node, mass_share, px, py, pz = (
            int(floats[mass_entry]),
            floats[mass_entry + 1],
            floats[mass_entry + 2],
            floats[mass_entry + 3],
            floats[mass_entry + 4],
        )
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
    write_residual(floats, residual + first_row, weight + first_row, mask, x, y, z, 0.0, 0.0, 0.0)
    for k in range(ints[block + FIRST_TERM], ints[block + FIRST_TERM] + ints[block + TERM_COUNT]):
        term = terms + TERM_INTS * k
        X, axis = poses + 12 * ints[term + TERM_NODE], ints[term + TERM_AXIS]
        mass, moment_x, moment_y, moment_z = read_moment(floats, moments + 4 * ints[term + TERM_NODE])
        moment_x, moment_y, moment_z = (
            moment_x - mass * floats[X + 9],
            moment_y - mass * floats[X + 10],
            moment_z - mass * floats[X + 11],
        )
        # if the node moves A, the other masses (their sum is 1 - mass) move in the opposite direction relative to A
        if ints[term + TERM_SIDE] & MOVES_A:
            mass, moment_x, moment_y, moment_z = (
                mass - 1.0,
                moment_x - (cx - floats[X + 9]),
                moment_y - (cy - floats[X + 10]),
                moment_z - (cz - floats[X + 11]),
            )
        axis_x, axis_y, axis_z = floats[X + axis], floats[X + 3 + axis], floats[X + 6 + axis]
        if ints[term + TERM_IS_ROTATION] == 1:
            velocity_x, velocity_y, velocity_z = rotate_inverse(
                R,
                axis_y * moment_z - axis_z * moment_y,
                axis_z * moment_x - axis_x * moment_z,
                axis_x * moment_y - axis_y * moment_x,
            )
        else:
            velocity_x, velocity_y, velocity_z = rotate_inverse(R, mass * axis_x, mass * axis_y, mass * axis_z)
        add_column(
            floats,
            J + first_jacobian + ints[term + TERM_COLUMN],
            width,
            weight + first_row,
            mask,
            floats[term_factor + k],
            velocity_x,
            velocity_y,
            velocity_z,
            0.0,
            0.0,
            0.0,
        )


@inline
def read_moment(floats, moment):
    """Return the mass and the first moment (x, y, z) at the offset `moment`."""
    return floats[moment], floats[moment + 1], floats[moment + 2], floats[moment + 3]


@subroutine
def spherical_residual(ints, floats, b, x, residual, J):
    """Evaluate a spherical joint: the rotation vector (rad) from its target to its rotation, in its own axes.

    (aw, ax, ay, az) is the conjugate of the target quaternion, (bw, bx, by, bz) the quaternion of the joint, and (cw,
    cx, cy, cz) their product, with a scalar part that is not negative.
    """
    blocks, block_data, weight = ints[AT_BLOCKS], ints[AT_BLOCK_DATA], ints[AT_WEIGHT]
    block, block_data = blocks + BLOCK_INTS * b, block_data + BLOCK_FLOATS * b
    mask, first_row, width, first_jacobian, quaternion_index = (
        ints[block + ROW_MASK],
        ints[block + FIRST_ROW],
        ints[block + COLUMN_COUNT],
        ints[block + FIRST_JACOBIAN],
        ints[block + X_INDEX],
    )
    aw, ax, ay, az = floats[block_data], -floats[block_data + 1], -floats[block_data + 2], -floats[block_data + 3]
    bw, bx, by, bz = (
        floats[x + quaternion_index],
        floats[x + quaternion_index + 1],
        floats[x + quaternion_index + 2],
        floats[x + quaternion_index + 3],
    )
    cw, cx = aw * bw - ax * bx - ay * by - az * bz, aw * bx + ax * bw + ay * bz - az * by
    cy, cz = aw * by - ax * bz + ay * bw + az * bx, aw * bz + ax * by - ay * bx + az * bw
    if cw < 0.0:
        cw, cx, cy, cz = -cw, -cx, -cy, -cz
    sine2 = cx * cx + cy * cy + cz * cz
    sine = math.sqrt(sine2)
    if sine2 < 1e-4:  # the closed forms lose digits for small angles; the series is exact to rounding
        factor = 2.0 + sine2 * (1.0 / 3.0 + sine2 * (3.0 / 20.0 + sine2 * 15.0 / 168.0))
        angle2 = sine2 * factor * factor
        even_factor = 1.0 / 12.0 + angle2 * (1.0 / 720.0 + angle2 / 30240.0)
    else:
        angle = 2.0 * math.atan2(sine, cw)
        factor = angle / sine
        even_factor = (1.0 - 0.5 * angle * cw / sine) / (angle * angle)
    ex, ey, ez = factor * cx, factor * cy, factor * cz
    write_residual(floats, residual + first_row, weight + first_row, mask, ex, ey, ez, 0.0, 0.0, 0.0)
    # a step rotates the joint about its own axes: the derivative is the inverse right Jacobian
    xx, yy, zz = ex * ex, ey * ey, ez * ez
    jacobian = (
        1.0 - even_factor * (yy + zz), even_factor * ex * ey - 0.5 * ez, even_factor * ex * ez + 0.5 * ey,
        even_factor * ex * ey + 0.5 * ez, 1.0 - even_factor * (xx + zz), even_factor * ey * ez - 0.5 * ex,
        even_factor * ex * ez - 0.5 * ey, even_factor * ey * ez + 0.5 * ex, 1.0 - even_factor * (xx + yy),
    )  # fmt: skip
    first_joint_column = ints[block + FIRST_JOINT_COLUMN]
    block_column = ints[AT_BLOCK_COLUMNS] + ints[block + FIRST_COLUMN] + first_joint_column
    for axis in range(3 if first_joint_column >= 0 else 0):
        add_column(
            floats,
            J + first_jacobian + first_joint_column + axis,
            width,
            weight + first_row,
            mask,
            floats[ints[AT_SCALE] + ints[block_column + axis]],
            jacobian[axis],
            jacobian[3 + axis],
            jacobian[6 + axis],
            0.0,
            0.0,
            0.0,
        )


@subroutine
def evaluate_residuals(ints, floats, x, buffer, end_block):
    """Evaluate the residuals and Jacobians of the blocks below `end_block` into one of the two buffers (0 or 1).

    The poses of all nodes are computed first. Blocks of kind PYTHON_FUNCTION stay unchanged: Python writes their
    residuals and Jacobians.
    """
    blocks, block_columns, slack, block_data = (
        ints[AT_BLOCKS],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_SLACK],
        ints[AT_BLOCK_DATA],
    )
    weight, scale, jacobian_table, residual_table = (
        ints[AT_WEIGHT],
        ints[AT_SCALE],
        ints[AT_JACOBIAN],
        ints[AT_RESIDUAL],
    )
    update_node_poses(ints, floats, x)
    residual, J = residual_table + ints[N_ROWS] * buffer, jacobian_table + ints[N_JACOBIAN] * buffer
    for b in range(end_block):
        block = blocks + BLOCK_INTS * b
        kind, first_row, m, width, first_jacobian = (
            ints[block + BLOCK_KIND],
            ints[block + FIRST_ROW],
            ints[block + ROW_COUNT],
            ints[block + COLUMN_COUNT],
            ints[block + FIRST_JACOBIAN],
        )
        if kind != PYTHON_FUNCTION:
            for k in range(m * width):
                floats[J + first_jacobian + k] = 0.0
        if kind == JOINT_VALUE:
            floats[residual + first_row] = floats[weight + first_row] * (
                floats[x + ints[block + X_INDEX]] - floats[block_data + BLOCK_FLOATS * b]
            )
            if ints[block + FIRST_JOINT_COLUMN] >= 0:
                floats[J + first_jacobian + ints[block + FIRST_JOINT_COLUMN]] = (
                    floats[weight + first_row]
                    * floats[
                        scale + ints[block_columns + ints[block + FIRST_COLUMN] + ints[block + FIRST_JOINT_COLUMN]]
                    ]
                )
        elif kind == SPHERICAL_ROTATION:
            spherical_residual(ints, floats, b, x, residual, J)
        elif kind == CENTRE_OF_MASS:
            centre_of_mass_residual(ints, floats, b, residual, J)
        elif kind == JOINT_CONSTRAINT:
            joint_constraint_residual(ints, floats, b, x, residual, J)
        elif kind == PYTHON_FUNCTION:
            pass
        else:
            relation_residual(ints, floats, b, residual, J)
        if ints[block + HAS_BANDS] == 1 and kind != PYTHON_FUNCTION:
            for r in range(first_row, first_row + m):
                if ints[slack + 2 * r] >= 0:
                    floats[residual + r] -= floats[weight + r] * floats[x + ints[slack + 2 * r]]
                    floats[J + first_jacobian + (r - first_row) * width + ints[slack + 2 * r + 1]] = -1.0
