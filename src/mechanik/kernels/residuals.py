"""Residuals of objectives, closures and joint constraints of a problem, and their Jacobians, at a given x.

x, (x,), are the variables; `residual` and `J` are the rows (m,) of one block in a buffer of residuals, and their
Jacobian (m, columns of the block). All residuals are weighted (see `problem_layout.py`, also for indices such as `r`).

A terrain is a height field: heights at the corners of square cells. Between the corners the height is interpolated by
the cubics of Catmull and Rom (1974), which pass through all heights and have a continuous gradient. Outside the field
the heights of the edge are repeated, so the gradient across the edge is zero at a distance of one cell or more.
"""

from __future__ import annotations

import math

from .compiler import inline, subroutine
from .nodes import IDENTITY_POSE, child_pose, compose, read_pose
from .problem_layout import *
from .problem_views import columns_of_block, jacobian_of_block, rows_of_block
from .relative_pose import (
    IDENTITY_ROTATION,
    residual_of_kind,
    rotate,
    rotate_inverse,
    times_transposed,
    transposed_times,
)
from .tables import matrix_at, vector_at


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
def height_and_gradient(field, x, y):
    """Return the height (m) of a field at (x, y), m, and its derivatives by x and by y.

    `field` is the table `coefficients` from the field on. i and s are the cell and the fraction along x, j and t along
    y. a to d are the weights along x and da to dd their derivatives; c0 to c3 are the columns of the four heights h0 to
    h3.
    """
    column_count, row_count, cell_size = int(field[FIELD_COLUMNS]), int(field[FIELD_ROWS]), field[CELL_SIZE]
    i, s = find_cell(x, field[FIELD_X], cell_size, column_count)
    j, t = find_cell(y, field[FIELD_Y], cell_size, row_count)
    a, b, c, d, da, db, dc, dd = interpolation_weights(s)
    y_weights = interpolation_weights(t)
    c0, c1, c2, c3 = (
        clamp_index(i - 1, column_count),
        clamp_index(i, column_count),
        clamp_index(i + 1, column_count),
        clamp_index(i + 2, column_count),
    )
    height, slope_x, slope_y = 0.0, 0.0, 0.0
    heights = matrix_at(field, HEIGHTS, row_count, column_count)
    for k in range(4):
        row = heights[clamp_index(j - 1 + k, row_count)]
        h0, h1, h2, h3 = row[c0], row[c1], row[c2], row[c3]
        row_height = a * h0 + b * h1 + c * h2 + d * h3
        height += y_weights[k] * row_height
        slope_x += y_weights[k] * (da * h0 + db * h1 + dc * h2 + dd * h3)
        slope_y += y_weights[4 + k] * row_height
    return height, slope_x / cell_size, slope_y / cell_size


@inline
def scale_of_column(problem, block, u):
    """Return the scale of column u of a block."""
    return problem.scale[columns_of_block(problem, block)[u]]


@subroutine
def joint_constraint_residual(problem, b, x, residual, J):
    """Evaluate a joint constraint: the sum of polynomials, each of one variable, minus a constant."""
    block, coefficients = problem.blocks[b], problem.coefficients
    weight, first = problem.weight[block.first_row], block.first_coefficient
    total = -problem.block_data[b].target[0]
    for _ in range(block.mass_count):
        header = vector_at(coefficients, first, FIRST_FACTOR)
        value, u, degree = x[int(header[0])], int(header[1]), int(header[2])
        factors = vector_at(coefficients, first + FIRST_FACTOR, degree)
        quotient, quotient_slope = 0.0, 0.0
        for k in range(degree - 1, -1, -1):  # Horner's rule for the polynomial divided by `value`
            quotient_slope = quotient_slope * value + quotient
            quotient = quotient * value + factors[k]
        total += quotient * value
        if u >= 0:
            J[0, u] += weight * (quotient_slope * value + quotient) * scale_of_column(problem, block, u)
        first += FIRST_FACTOR + degree
    residual[0] = weight * total


@subroutine
def update_node_poses(problem, x):
    """Write the world poses of all nodes at x to the table `poses`."""
    nodes, poses = problem.nodes, problem.poses
    for i in range(problem.node_count):
        parent = nodes[i].parent
        X = child_pose(read_pose(poses[parent]) if parent >= 0 else IDENTITY_POSE, nodes[i], x, False)
        for k in range(12):
            poses[i, k] = X[k]


@inline
def read_rotation(numbers):
    """Return the first 9 numbers of an array as a rotation, row by row."""
    return (
        numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6], numbers[7], numbers[8],
    )  # fmt: skip


@inline
def world_frame(problem, node, frame_pose):
    """Return the world pose of a frame with the pose `frame_pose`, (12,), in a node (-1: the world)."""
    if node < 0:
        return read_pose(frame_pose)
    return compose(read_pose(problem.poses[node]), read_pose(frame_pose))


@inline
def write_residual(residual, weight, mask, a, b, c, d, e, f):
    """Write those of the six residuals a to f that the bits of the mask select, multiplied by their weights."""
    r = 0
    if mask & 1:
        residual[r] = weight[r] * a
        r += 1
    if mask & 2:
        residual[r] = weight[r] * b
        r += 1
    if mask & 4:
        residual[r] = weight[r] * c
        r += 1
    if mask & 8:
        residual[r] = weight[r] * d
        r += 1
    if mask & 16:
        residual[r] = weight[r] * e
        r += 1
    if mask & 32:
        residual[r] = weight[r] * f


@inline
def add_column(J, u, weight, mask, factor, a, b, c, d, e, f):
    """Add `factor` times the six derivatives a to f to column u of J; mask and weights are as in `write_residual`."""
    r = 0
    if mask & 1:
        J[r, u] += factor * weight[r] * a
        r += 1
    if mask & 2:
        J[r, u] += factor * weight[r] * b
        r += 1
    if mask & 4:
        J[r, u] += factor * weight[r] * c
        r += 1
    if mask & 8:
        J[r, u] += factor * weight[r] * d
        r += 1
    if mask & 16:
        J[r, u] += factor * weight[r] * e
        r += 1
    if mask & 32:
        J[r, u] += factor * weight[r] * f


@inline
def rotation_velocity(ax, ay, az, px, py, pz):
    """Return the cross product a x p: the velocity of a point p that rotates about the axis a through the origin."""
    return ay * pz - az * py, az * px - ax * pz, ax * py - ay * px


@subroutine
def relation_residual(problem, b, residual, J):
    """Evaluate the residuals and the Jacobian of a relation between two frames A and B.

    By default the residuals are along the axes of A. Then a motion of A is equivalent to the opposite motion of B, and
    nodes that move both frames have no term. With `in_world` the residuals are along axes C that are fixed in the
    world; then nodes that move both frames have a term too. Q is the rotation from A to B, and (x, y, z) the vector
    from A to B, along these axes. X is the pose of a node.
    """
    block, data = problem.blocks[b], problem.block_data[b]
    kind, mask, in_world, weight = block.kind, block.row_mask, block.in_world, rows_of_block(problem.weight, block)
    A = world_frame(problem, block.node_a, data.frame_a)
    B = world_frame(problem, block.node_b, data.frame_b)
    C = read_rotation(data.axes_c) if in_world else (A[0], A[1], A[2], A[3], A[4], A[5], A[6], A[7], A[8])
    x, y, z = rotate_inverse(C, B[9] - A[9], B[10] - A[10], B[11] - A[11])
    Q = IDENTITY_ROTATION
    if in_world:
        Q = times_transposed(transposed_times(C, B), transposed_times(C, A))
    elif mask > 7:  # a row of the rotation part counts
        Q = transposed_times(C, B)
    r0, r1, r2, r3, r4, r5, linear_jacobian, angular_jacobian = residual_of_kind(kind, x, y, z, Q)
    if kind == TERRAIN_HEIGHT:
        height, slope_x, slope_y = height_and_gradient(problem.coefficients[block.first_coefficient :], x, y)
        r0, linear_jacobian = z - height, (-slope_x, -slope_y, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    write_residual(residual, weight, mask, r0, r1, r2, r3, r4, r5)
    for t in range(block.first_term, block.first_term + block.term_count):
        term = problem.terms[t]
        X, axis, side, is_rotation = problem.poses[term.node], term.axis, term.side, term.is_rotation
        factor = problem.term_factor[t]
        axis_x, axis_y, axis_z = rotate_inverse(C, X[axis], X[3 + axis], X[6 + axis])
        angular_x, angular_y, angular_z = axis_x, axis_y, axis_z
        if is_rotation:
            px, py, pz = rotate_inverse(C, B[9] - X[9], B[10] - X[10], B[11] - X[11])
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
                px, py, pz = rotate_inverse(C, A[9] - X[9], A[10] - X[10], A[11] - X[11])
                velocity_a_x, velocity_a_y, velocity_a_z = rotation_velocity(axis_x, axis_y, axis_z, px, py, pz)
                rotated_x, rotated_y, rotated_z = rotate(Q, axis_x, axis_y, axis_z)
                angular_x, angular_y, angular_z = angular_x - rotated_x, angular_y - rotated_y, angular_z - rotated_z
            else:
                velocity_a_x, velocity_a_y, velocity_a_z = axis_x, axis_y, axis_z
            linear_x, linear_y, linear_z = linear_x - velocity_a_x, linear_y - velocity_a_y, linear_z - velocity_a_z
        if kind > COSINE:
            linear_x, linear_y, linear_z = rotate(linear_jacobian, linear_x, linear_y, linear_z)
        angular_x, angular_y, angular_z = rotate(angular_jacobian, angular_x, angular_y, angular_z)
        add_column(J, term.column, weight, mask, factor, linear_x, linear_y, linear_z, angular_x, angular_y, angular_z)


@subroutine
def centre_of_mass_residual(problem, b, residual, J):
    """Evaluate the position of the centre of mass in frame A; a node moves all masses of its subtree.

    Masses are fractions of the total mass. (cx, cy, cz) is the centre of mass in the world, R the rotation of A.
    """
    block, poses, moments = problem.blocks[b], problem.poses, problem.moments
    mask, weight = block.row_mask, rows_of_block(problem.weight, block)
    A = world_frame(problem, block.node_a, problem.block_data[b].frame_a)
    R = (A[0], A[1], A[2], A[3], A[4], A[5], A[6], A[7], A[8])
    for i in range(problem.node_count):
        for k in range(4):
            moments[i, k] = 0.0
    cx, cy, cz = 0.0, 0.0, 0.0
    for k in range(block.first_mass, block.first_mass + block.mass_count):
        mass_entry = problem.masses[k]
        node, mass_share, position = mass_entry.node, mass_entry.share, mass_entry.position
        px, py, pz = position[0], position[1], position[2]
        if node >= 0:
            X = poses[node]
            px, py, pz = (
                X[9] + X[0] * px + X[1] * py + X[2] * pz,
                X[10] + X[3] * px + X[4] * py + X[5] * pz,
                X[11] + X[6] * px + X[7] * py + X[8] * pz,
            )
            moments[node, 0] += mass_share
            moments[node, 1] += mass_share * px
            moments[node, 2] += mass_share * py
            moments[node, 3] += mass_share * pz
        cx, cy, cz = cx + mass_share * px, cy + mass_share * py, cz + mass_share * pz
    for i in range(problem.node_count - 1, -1, -1):
        parent = problem.nodes[i].parent
        if parent >= 0:
            for k in range(4):
                moments[parent, k] += moments[i, k]
    x, y, z = rotate_inverse(R, cx - A[9], cy - A[10], cz - A[11])
    write_residual(residual, weight, mask, x, y, z, 0.0, 0.0, 0.0)
    for t in range(block.first_term, block.first_term + block.term_count):
        term = problem.terms[t]
        X, axis = poses[term.node], term.axis
        mass, moment_x, moment_y, moment_z = (
            moments[term.node, 0],
            moments[term.node, 1],
            moments[term.node, 2],
            moments[term.node, 3],
        )
        moment_x, moment_y, moment_z = moment_x - mass * X[9], moment_y - mass * X[10], moment_z - mass * X[11]
        # if the node moves A, the other masses (their sum is 1 - mass) move in the opposite direction relative to A
        if term.side & MOVES_A:
            mass, moment_x, moment_y, moment_z = (
                mass - 1.0,
                moment_x - (cx - X[9]),
                moment_y - (cy - X[10]),
                moment_z - (cz - X[11]),
            )
        axis_x, axis_y, axis_z = X[axis], X[3 + axis], X[6 + axis]
        if term.is_rotation:
            velocity_x, velocity_y, velocity_z = rotate_inverse(
                R,
                axis_y * moment_z - axis_z * moment_y,
                axis_z * moment_x - axis_x * moment_z,
                axis_x * moment_y - axis_y * moment_x,
            )
        else:
            velocity_x, velocity_y, velocity_z = rotate_inverse(R, mass * axis_x, mass * axis_y, mass * axis_z)
        factor = problem.term_factor[t]
        add_column(J, term.column, weight, mask, factor, velocity_x, velocity_y, velocity_z, 0.0, 0.0, 0.0)


@subroutine
def spherical_residual(problem, b, x, residual, J):
    """Evaluate a spherical joint: the rotation vector (rad) from its target to its rotation, in its own axes.

    (aw, ax, ay, az) is the conjugate of the target quaternion, (bw, bx, by, bz) the quaternion of the joint, and (cw,
    cx, cy, cz) their product, with a scalar part that is not negative.
    """
    block, target, k = problem.blocks[b], problem.block_data[b].target, problem.blocks[b].x_index
    mask, weight = block.row_mask, rows_of_block(problem.weight, block)
    aw, ax, ay, az = target[0], -target[1], -target[2], -target[3]
    bw, bx, by, bz = x[k], x[k + 1], x[k + 2], x[k + 3]
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
    write_residual(residual, weight, mask, ex, ey, ez, 0.0, 0.0, 0.0)
    # a step rotates the joint about its own axes: the derivative is the inverse right Jacobian
    xx, yy, zz = ex * ex, ey * ey, ez * ez
    jacobian = (
        1.0 - even_factor * (yy + zz), even_factor * ex * ey - 0.5 * ez, even_factor * ex * ez + 0.5 * ey,
        even_factor * ex * ey + 0.5 * ez, 1.0 - even_factor * (xx + zz), even_factor * ey * ez - 0.5 * ex,
        even_factor * ex * ez - 0.5 * ey, even_factor * ey * ez + 0.5 * ex, 1.0 - even_factor * (xx + yy),
    )  # fmt: skip
    for axis in range(3 if block.first_joint_column >= 0 else 0):
        u = block.first_joint_column + axis
        factor = scale_of_column(problem, block, u)
        add_column(J, u, weight, mask, factor, jacobian[axis], jacobian[3 + axis], jacobian[6 + axis], 0.0, 0.0, 0.0)


@subroutine
def evaluate_residuals(problem, x, buffer, end_block):
    """Evaluate the residuals and Jacobians of the blocks below `end_block` into one of the two buffers (0 or 1).

    The poses of all nodes are computed first. Blocks of kind PYTHON_FUNCTION stay unchanged: Python writes their
    residuals and Jacobians.
    """
    update_node_poses(problem, x)
    for b in range(end_block):
        block = problem.blocks[b]
        kind, m, width = block.kind, block.row_count, block.column_count
        if kind == PYTHON_FUNCTION:
            continue
        residual, weight = rows_of_block(problem.residual[buffer], block), rows_of_block(problem.weight, block)
        J = jacobian_of_block(problem, buffer, block)
        for r in range(m):
            for u in range(width):
                J[r, u] = 0.0
        if kind == JOINT_VALUE:
            u = block.first_joint_column
            residual[0] = weight[0] * (x[block.x_index] - problem.block_data[b].target[0])
            if u >= 0:
                J[0, u] = weight[0] * scale_of_column(problem, block, u)
        elif kind == SPHERICAL_ROTATION:
            spherical_residual(problem, b, x, residual, J)
        elif kind == CENTRE_OF_MASS:
            centre_of_mass_residual(problem, b, residual, J)
        elif kind == JOINT_CONSTRAINT:
            joint_constraint_residual(problem, b, x, residual, J)
        else:
            relation_residual(problem, b, residual, J)
        if block.has_bands:
            for r in range(m):
                slack = problem.slacks[block.first_row + r]
                if slack.x >= 0:
                    residual[r] -= weight[r] * x[slack.x]
                    J[r, slack.column] = -1.0
