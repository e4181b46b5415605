"""The cost of cyclic coordinate descent: frames of the goals, and the best rotation or translation of a joint.

Each goal is a block of the problem. It is reached if a frame B coincides with a frame A, in all or in some directions.
Either frame may move; a motion of A has the same effect as the inverse motion of B. The cost is the sum over all goals
of

    weight^2 |p_B - p_A|^2 + weight^2 |z_B - z_A|^2        for positions p (m), and for directions z

For a full rotation the second term is half the sum over the three axes. For lines and planes the first term is the
squared distance from them. For right angles the second term is the squared cosine. For small angles the cost is
approximately the sum of squares of the problem's residual.

`sides` (nodes, blocks) contains which of the two frames a node moves (bits MOVES_A, MOVES_B); functions for a single
joint have the row of its node as the argument `sides`. `frames` (blocks, 24) contains A and then B in the world, each
as R row by row and p; `frame_pair` returns the two frames of a block. k is the unit vector of a joint axis, and c a
point on the axis.
"""

from __future__ import annotations

import math

from ..compiler import inline, subroutine
from ..nodes import IDENTITY_POSE, child_pose, read_pose
from ..problem_layout import *
from ..problem_views import count_position_rows, rows_of_block
from ..residuals import world_frame
from ..tables import matrix_at, vector_at

FULL_TURN = 2.0 * math.pi
ANGLE_SAMPLES = 180
"""Number of sampling intervals of a range of at most a full turn. The sum of two harmonics has at most two minima in a
turn; a minimum less than one interval (2 degrees) from a maximum may be missed."""
EQUAL_RATIO = 1e-12
"""Values count as equal if they differ by less than this ratio of the largest value."""


@subroutine
def best_angle(a, b, t_min, t_max):
    """Return the angle t in t_min <= t <= t_max, where t_min <= 0 <= t_max, that minimises a cos t + b sin t.

    Of equal minima the nearest to 0 is returned; if the interval contains no minimum, its better end.
    """
    t = math.atan2(-b, -a)
    if t > t_max:
        t -= FULL_TURN
    elif t < t_min:
        t += FULL_TURN
    if t_min <= t <= t_max:
        return t
    cost_min_end = a * math.cos(t_min) + b * math.sin(t_min)
    cost_max_end = a * math.cos(t_max) + b * math.sin(t_max)
    return t_min if cost_min_end < cost_max_end else t_max


@subroutine
def best_angle_two_harmonics(a, b, c, d, t_min, t_max):
    """Return the angle t in t_min <= t <= t_max that minimises a cos t + b sin t + c cos 2t + d sin 2t.

    Equal minima and intervals without a minimum are resolved as by `best_angle`.
    """
    tolerance = EQUAL_RATIO * (abs(a) + abs(b) + abs(c) + abs(d))
    if tolerance == 0.0:
        return 0.0
    t_start = max(t_min, -math.pi)
    t_end = min(t_max, t_start + FULL_TURN)
    t_start = max(t_min, t_end - FULL_TURN)
    t_step = (t_end - t_start) / ANGLE_SAMPLES
    lowest_angle, lowest_value = t_end, harmonics(a, b, c, d, t_end)[0]
    value, slope = harmonics(a, b, c, d, t_start)
    if value < lowest_value - tolerance or (value <= lowest_value + tolerance and abs(t_start) < abs(lowest_angle)):
        lowest_angle, lowest_value = t_start, value
    cos_t, sin_t, cos_step, sin_step = math.cos(t_start), math.sin(t_start), math.cos(t_step), math.sin(t_step)
    for k in range(ANGLE_SAMPLES):
        previous_slope = slope
        cos_t, sin_t = cos_t * cos_step - sin_t * sin_step, sin_t * cos_step + cos_t * sin_step
        slope = b * cos_t - a * sin_t + 2.0 * (d * (cos_t * cos_t - sin_t * sin_t) - 2.0 * c * cos_t * sin_t)
        if previous_slope < 0.0 and slope >= 0.0:
            t = stationary_angle(a, b, c, d, t_start + k * t_step, t_start + (k + 1) * t_step)
            value = harmonics(a, b, c, d, t)[0]
            if value < lowest_value - tolerance or (value <= lowest_value + tolerance and abs(t) < abs(lowest_angle)):
                lowest_angle, lowest_value = t, value
    return lowest_angle


@subroutine
def harmonics(a, b, c, d, t):
    """Return a cos t + b sin t + c cos 2t + d sin 2t, and its derivative."""
    cos_t, sin_t = math.cos(t), math.sin(t)
    cos_2t, sin_2t = cos_t * cos_t - sin_t * sin_t, 2.0 * cos_t * sin_t
    return a * cos_t + b * sin_t + c * cos_2t + d * sin_2t, b * cos_t - a * sin_t + 2.0 * (d * cos_2t - c * sin_2t)


@subroutine
def stationary_angle(a, b, c, d, t_min, t_max):
    """Return the angle of the minimum of two harmonics in t_min .. t_max, by Newton's method safeguarded by bisection.

    The derivative must be negative at `t_min` and not negative at `t_max`.
    """
    t = 0.5 * (t_min + t_max)
    for _ in range(60):
        cos_t, sin_t = math.cos(t), math.sin(t)
        cos_2t, sin_2t = cos_t * cos_t - sin_t * sin_t, 2.0 * cos_t * sin_t
        slope, curvature = (
            b * cos_t - a * sin_t + 2.0 * (d * cos_2t - c * sin_2t),
            -a * cos_t - b * sin_t - 4.0 * (c * cos_2t + d * sin_2t),
        )
        if slope < 0.0:
            t_min = t
        else:
            t_max = t
        next_angle = t - slope / curvature if curvature > 0.0 else t_min
        if not t_min < next_angle < t_max:
            next_angle = 0.5 * (t_min + t_max)
        if abs(next_angle - t) <= 1e-16:
            return next_angle
        t = next_angle
    return t


@subroutine
def rotation_between(ux, uy, uz, tx, ty, tz):
    """Return the smallest rotation, as a quaternion wxyz, of the direction u onto t.

    Opposite directions give a rotation by pi about an arbitrary perpendicular axis.
    """
    length_product = math.sqrt((ux * ux + uy * uy + uz * uz) * (tx * tx + ty * ty + tz * tz))
    if length_product == 0.0:
        return 1.0, 0.0, 0.0, 0.0
    w = length_product + ux * tx + uy * ty + uz * tz
    x, y, z = uy * tz - uz * ty, uz * tx - ux * tz, ux * ty - uy * tx
    if w < 1e-14 * length_product:
        w = 0.0
        if abs(ux) > abs(uz):
            x, y, z = -uy, ux, 0.0
        else:
            x, y, z = 0.0, -uz, uy
    inverse_norm = 1.0 / math.sqrt(w * w + x * x + y * y + z * z)
    return inverse_norm * w, inverse_norm * x, inverse_norm * y, inverse_norm * z


@subroutine
def rotation_matrix(w, x, y, z, R):
    """Write the rotation matrix of a unit quaternion into R (3, 3)."""
    R[0, 0], R[0, 1], R[0, 2] = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)
    R[1, 0], R[1, 1], R[1, 2] = 2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)
    R[2, 0], R[2, 1], R[2, 2] = 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)


@subroutine
def best_rotation(S, N, V):
    """Return the rotation R, as a quaternion wxyz, that maximises the sum of t . R u over pairs of vectors u and t.

    The quaternion is the eigenvector of a 4 x 4 matrix with the largest eigenvalue (Davenport 1968, Horn 1987). Of
    several rotations that are equally good, as for vectors that are all parallel, the smallest is returned.

    Args:
        S: (3, 3), the (weighted) sum of u t' over the pairs.
        N, V: (4, 4), work arrays.
    """
    trace = S[0, 0] + S[1, 1] + S[2, 2]
    N[0, 0] = trace
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        N[0, i + 1] = S[j, k] - S[k, j]
        N[i + 1, i + 1] = 2.0 * S[i, i] - trace
        N[min(i, j) + 1, max(i, j) + 1] = S[i, j] + S[j, i]
    for i in range(4):
        for j in range(4):
            V[i, j] = 1.0 if i == j else 0.0
            if j < i:
                N[i, j] = N[j, i]
    diagonalize4(N, V)
    largest_eigenvalue, eigenvalue_scale = N[0, 0], abs(N[0, 0])
    for i in range(1, 4):
        largest_eigenvalue, eigenvalue_scale = max(largest_eigenvalue, N[i, i]), max(eigenvalue_scale, abs(N[i, i]))
    w, x, y, z, best_index = 0.0, 0.0, 0.0, 0.0, 0
    for i in range(4):
        if (
            N[i, i] >= largest_eigenvalue - EQUAL_RATIO * eigenvalue_scale
        ):  # project the identity onto the best rotations
            w, x, y, z = w + V[0, i] * V[0, i], x + V[0, i] * V[1, i], y + V[0, i] * V[2, i], z + V[0, i] * V[3, i]
            best_index = i
    norm = math.sqrt(w * w + x * x + y * y + z * z)
    if norm < 1e-12:
        return V[0, best_index], V[1, best_index], V[2, best_index], V[3, best_index]
    return w / norm, x / norm, y / norm, z / norm


@subroutine
def diagonalize4(N, V):
    """Diagonalize a symmetric 4 x 4 matrix by Jacobi rotations.

    Args:
        N: the matrix; it becomes diagonal, with the eigenvalues.
        V: the identity; its columns become the eigenvectors.
    """
    for _ in range(20):
        off_diagonal_square, diagonal_square = 0.0, 0.0
        for i in range(4):
            diagonal_square += N[i, i] * N[i, i]
            for j in range(i + 1, 4):
                off_diagonal_square += N[i, j] * N[i, j]
        if off_diagonal_square <= 1e-34 * diagonal_square:
            return
        for i in range(4):
            for j in range(i + 1, 4):
                if N[i, j] == 0.0:
                    continue
                ratio = 0.5 * (N[j, j] - N[i, i]) / N[i, j]
                t = math.copysign(1.0, ratio) / (abs(ratio) + math.sqrt(1.0 + ratio * ratio))
                c = 1.0 / math.sqrt(1.0 + t * t)
                s = t * c
                for k in range(4):
                    p, q = N[k, i], N[k, j]
                    N[k, i], N[k, j] = c * p - s * q, s * p + c * q
                for k in range(4):
                    p, q = N[i, k], N[j, k]
                    N[i, k], N[j, k] = c * p - s * q, s * p + c * q
                    p, q = V[k, i], V[k, j]
                    V[k, i], V[k, j] = c * p - s * q, s * p + c * q


USE_POSITIONS, USE_ROTATIONS = 1, 2
"""Bits of `use_bits`: the residuals of the goals that a joint takes into account."""
MOVES_BOTH = MOVES_A | MOVES_B
NO_SINUSOID_RATIO = 1e-13
"""Amplitudes below this ratio of the size of their terms are rounding errors."""


@subroutine
def update_poses_between(problem, x, first_node, end_node):
    """Write the world poses at x of the nodes from `first_node` to `end_node` (exclusive) to the table `poses`."""
    nodes, poses = problem.nodes, problem.poses
    for i in range(first_node, end_node):
        parent = nodes[i].parent
        X = child_pose(read_pose(poses[parent]) if parent >= 0 else IDENTITY_POSE, nodes[i], x, False)
        for k in range(12):
            poses[i, k] = X[k]


@subroutine
def update_goal_frames(problem, frames):
    """Write the frames A and B of every block, in the world, from the poses of the nodes."""
    for b in range(problem.block_count):
        block, data, (frame_a, frame_b) = problem.blocks[b], problem.block_data[b], frame_pair(frames[b])
        A = world_frame(problem, block.node_a, data.frame_a)
        B = world_frame(problem, block.node_b, data.frame_b)
        for k in range(12):
            frame_a[k], frame_b[k] = A[k], B[k]


@inline
def frame_pair(block_frames):
    """Return the frames A and B of a block, (12,) each, as views of its row of `frames`."""
    return vector_at(block_frames, 0, 12), vector_at(block_frames, 12, 12)


@subroutine
def rotate_frames(sides, frames, R, x, y, z):
    """Rotate the frames that a node moves (its row of `sides`) by R (3, 3) about the point (x, y, z)."""
    for b in range(frames.shape[0]):
        A, B = frame_pair(frames[b])
        if sides[b] & MOVES_A:
            rotate_frame(A, R, x, y, z)
        if sides[b] & MOVES_B:
            rotate_frame(B, R, x, y, z)


@subroutine
def rotate_frame(X, R, x, y, z):
    """Rotate a frame X, (12,), by R (3, 3) about the point (x, y, z)."""
    for column in range(3):
        X[column], X[3 + column], X[6 + column] = rotated(R, X[column], X[3 + column], X[6 + column], 0.0, 0.0, 0.0)
    X[9], X[10], X[11] = rotated(R, X[9], X[10], X[11], x, y, z)


@inline
def rotated(R, px, py, pz, x, y, z):
    """Return the point p, rotated by R (3, 3) about the point (x, y, z)."""
    dx, dy, dz = px - x, py - y, pz - z
    return (
        x + R[0, 0] * dx + R[0, 1] * dy + R[0, 2] * dz,
        y + R[1, 0] * dx + R[1, 1] * dy + R[1, 2] * dz,
        z + R[2, 0] * dx + R[2, 1] * dy + R[2, 2] * dz,
    )


@subroutine
def translate_frames(sides, frames, x, y, z):
    """Translate the frames that a node moves (its row of `sides`) by (x, y, z)."""
    for b in range(frames.shape[0]):
        A, B = frame_pair(frames[b])
        if sides[b] & MOVES_A:
            A[9], A[10], A[11] = A[9] + x, A[10] + y, A[11] + z
        if sides[b] & MOVES_B:
            B[9], B[10], B[11] = B[9] + x, B[10] + y, B[11] + z


@subroutine
def block_weights(problem, b, use_bits):
    """Return the position rows (bits) and the number of axes of a block in the cost, and the squares of their weights.

    `use_bits` may leave out positions or axes. A block with bands is a limit and has no part in the cost.
    """
    block = problem.blocks[b]
    if block.has_bands:
        return 0, 0, 0.0, 0.0
    position_rows, rotation_rows = block.row_mask & 7, block.row_mask >> 3
    weight = rows_of_block(problem.weight, block)
    position_row_count = count_position_rows(position_rows)
    position_weight = weight[0] if position_rows else 0.0
    axis_weight = weight[position_row_count] if rotation_rows else 0.0
    axis_count = 0
    if rotation_rows:
        axis_count = 3 if block.kind == POSE else 1
        if axis_count == 3:
            axis_weight *= math.sqrt(0.5)
    if use_bits & USE_POSITIONS == 0:
        position_rows = 0
    if use_bits & USE_ROTATIONS == 0:
        axis_count = 0
    return position_rows, axis_count, position_weight * position_weight, axis_weight * axis_weight


@subroutine
def write_sinusoid(problem, sides, frames, use_bits, kx, ky, kz, cx, cy, cz, sinusoid):
    """Write the cost, up to a constant, as a function of the angle t of a node's rotation about the axis k through c.

    Args:
        sides: (blocks,) the row of the node.
        sinusoid: (5,) written: a, b, c, d of a cos t + b sin t + c cos 2t + d sin 2t, and 1.0 if there is a second
            harmonic.
    """
    sinusoid[:] = 0.0
    term_size = 0.0
    for b in range(frames.shape[0]):
        if sides[b] == 0 or sides[b] == MOVES_BOTH:
            continue
        position_rows, axis_count, position_weight2, axis_weight2 = block_weights(problem, b, use_bits)
        sign = 1.0 if sides[b] == MOVES_B else -1.0
        ux, uy, uz = sign * kx, sign * ky, sign * kz
        A, B = frame_pair(frames[b])
        if position_rows:
            dx, dy, dz, tx, ty, tz = B[9] - cx, B[10] - cy, B[11] - cz, A[9] - cx, A[10] - cy, A[11] - cz
            if position_rows == 7:
                term_size += add_vector_pair_term(sinusoid, position_weight2, ux, uy, uz, dx, dy, dz, tx, ty, tz)
            else:
                for r in range(3):
                    if position_rows >> r & 1:
                        nx, ny, nz = A[r], A[3 + r], A[6 + r]
                        term_size += add_scalar_term(
                            sinusoid, position_weight2, ux, uy, uz, dx, dy, dz, nx, ny, nz, nx * tx + ny * ty + nz * tz
                        )
        if axis_count and problem.blocks[b].kind == COSINE:
            term_size += add_scalar_term(sinusoid, axis_weight2, ux, uy, uz, B[2], B[5], B[8], A[2], A[5], A[8], 0.0)
        elif axis_count:
            for j in range(3 - axis_count, 3):
                term_size += add_vector_pair_term(
                    sinusoid, axis_weight2, ux, uy, uz, B[j], B[3 + j], B[6 + j], A[j], A[3 + j], A[6 + j],
                )  # fmt: skip
    if abs(sinusoid[0]) + abs(sinusoid[1]) + abs(sinusoid[2]) + abs(sinusoid[3]) <= NO_SINUSOID_RATIO * term_size:
        sinusoid[:] = 0.0


@subroutine
def best_angle_about(problem, sides, frames, use_bits, kx, ky, kz, cx, cy, cz, t_min, t_max, sinusoid):
    """Return the angle t_min <= t <= t_max of a rotation about the axis k through c that minimises the cost.

    `sinusoid` (5,) is a work array.
    """
    write_sinusoid(problem, sides, frames, use_bits, kx, ky, kz, cx, cy, cz, sinusoid)
    if sinusoid[4] == 1.0:
        return best_angle_two_harmonics(sinusoid[0], sinusoid[1], sinusoid[2], sinusoid[3], t_min, t_max)
    if sinusoid[0] == 0.0 and sinusoid[1] == 0.0:
        return 0.0
    return best_angle(sinusoid[0], sinusoid[1], t_min, t_max)


@subroutine
def add_vector_pair_term(sinusoid, weight2, ux, uy, uz, dx, dy, dz, tx, ty, tz):
    """Add weight2 |d - t|^2, as d rotates about the unit vector u, to the sinusoid; return the size of its terms."""
    dot = dx * tx + dy * ty + dz * tz
    parallel_part = (ux * dx + uy * dy + uz * dz) * (ux * tx + uy * ty + uz * tz)
    sinusoid[0] -= 2.0 * weight2 * (dot - parallel_part)
    sinusoid[1] -= 2.0 * weight2 * (ux * (dy * tz - dz * ty) + uy * (dz * tx - dx * tz) + uz * (dx * ty - dy * tx))
    return weight2 * math.sqrt((dx * dx + dy * dy + dz * dz) * (tx * tx + ty * ty + tz * tz))


@subroutine
def add_scalar_term(sinusoid, weight2, ux, uy, uz, dx, dy, dz, nx, ny, nz, offset):
    """Add weight2 (n . d - offset)^2, as d rotates about the unit vector u, to the sinusoid.

    Returns:
        The size of its terms.
    """
    parallel_part = (ux * dx + uy * dy + uz * dz) * (ux * nx + uy * ny + uz * nz)
    cos_factor = nx * dx + ny * dy + nz * dz - parallel_part
    sin_factor = nx * (uy * dz - uz * dy) + ny * (uz * dx - ux * dz) + nz * (ux * dy - uy * dx)
    constant = parallel_part - offset
    sinusoid[0] += 2.0 * weight2 * constant * cos_factor
    sinusoid[1] += 2.0 * weight2 * constant * sin_factor
    sinusoid[2] += 0.5 * weight2 * (cos_factor * cos_factor - sin_factor * sin_factor)
    sinusoid[3] += weight2 * cos_factor * sin_factor
    sinusoid[4] = 1.0
    return weight2 * (dx * dx + dy * dy + dz * dz + offset * offset)


@subroutine
def translation_derivatives(problem, sides, frames, use_bits, dx, dy, dz):
    """Return half the first and half the second derivative of the cost for a translation along the unit vector d."""
    slope, curvature = 0.0, 0.0
    for b in range(frames.shape[0]):
        if sides[b] == 0 or sides[b] == MOVES_BOTH:
            continue
        position_rows, _, position_weight2, _ = block_weights(problem, b, use_bits)
        sign = 1.0 if sides[b] == MOVES_B else -1.0
        A, B = frame_pair(frames[b])
        ex, ey, ez = B[9] - A[9], B[10] - A[10], B[11] - A[11]
        if position_rows == 7:
            slope += position_weight2 * sign * (dx * ex + dy * ey + dz * ez)
            curvature += position_weight2
        elif position_rows:
            for r in range(3):
                if position_rows >> r & 1:
                    row_motion = A[r] * dx + A[3 + r] * dy + A[6 + r] * dz
                    slope += position_weight2 * sign * row_motion * (A[r] * ex + A[3 + r] * ey + A[6 + r] * ez)
                    curvature += position_weight2 * row_motion * row_motion
    return slope, curvature


@subroutine
def collect_vector_pairs(problem, sides, frames, use_bits, cx, cy, cz, S, pair):
    """Collect the vectors u that a node rotates about the point c, each with its target vector t.

    Args:
        S: (3, 3), written: the sum of u t', each times its squared weight.
        pair: (6,), written: u and t of the last pair.

    Returns:
        The number of pairs; -1 if a goal cannot be written as pairs of vectors (lines, planes, cosines).
    """
    pair_count = 0
    S[:] = 0.0
    for b in range(frames.shape[0]):
        if sides[b] == 0 or sides[b] == MOVES_BOTH:
            continue
        position_rows, axis_count, position_weight2, axis_weight2 = block_weights(problem, b, use_bits)
        if (position_rows and position_rows != 7) or (axis_count and problem.blocks[b].kind == COSINE):
            return -1
        A, B = frame_pair(frames[b])
        moving, fixed = (B, A) if sides[b] == MOVES_B else (A, B)
        if position_rows:
            for i in range(3):
                centre = cx if i == 0 else (cy if i == 1 else cz)
                pair[i], pair[3 + i] = moving[9 + i] - centre, fixed[9 + i] - centre
            pair_count += 1
            add_product(S, position_weight2, pair)
        R_moving, R_fixed = matrix_at(moving, 0, 3, 3), matrix_at(fixed, 0, 3, 3)
        for j in range(3 - axis_count, 3):
            for i in range(3):
                pair[i], pair[3 + i] = R_moving[i, j], R_fixed[i, j]
            pair_count += 1
            add_product(S, axis_weight2, pair)
    return pair_count


@subroutine
def add_product(S, weight2, pair):
    """Add weight2 u t' of a pair of vectors u and t to S."""
    for i in range(3):
        for j in range(3):
            S[i, j] += weight2 * pair[i] * pair[3 + j]


@subroutine
def total_cost(problem, frames, use_bits):
    """Return the cost of all goals together, with the residuals that `use_bits` selects."""
    cost = 0.0
    for b in range(frames.shape[0]):
        position_rows, axis_count, position_weight2, axis_weight2 = block_weights(problem, b, use_bits)
        A, B = frame_pair(frames[b])
        ex, ey, ez = B[9] - A[9], B[10] - A[10], B[11] - A[11]
        for r in range(3):
            if position_rows >> r & 1:
                error = A[r] * ex + A[3 + r] * ey + A[6 + r] * ez
                cost += position_weight2 * error * error
        for j in range(3 - axis_count, 3):
            dot = B[j] * A[j] + B[3 + j] * A[3 + j] + B[6 + j] * A[6 + j]
            if problem.blocks[b].kind == COSINE:
                cost += axis_weight2 * dot * dot
            else:
                x, y, z = B[j] - A[j], B[3 + j] - A[3 + j], B[6 + j] - A[6 + j]
                cost += axis_weight2 * (x * x + y * y + z * z)
    return cost
