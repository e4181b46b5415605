"""The cost of cyclic coordinate descent: frames of the goals, and the best rotation or translation of a joint.

Each goal wants a frame B where a frame A is, in all or in part of its directions. Either frame may move; a motion of A
is the inverse motion of B as seen from A. The error of all goals together is

    weight^2 |p_B - p_A|^2 + weight^2 |z_B - z_A|^2        for points, and for directions

where a full rotation counts half the sum over its three axes, lines and planes count the distance from them, and right
angles the squared cosine. For small angles that is the sum of squares of the problem's residuals.

`sides` (nodes, blocks) says which of the frames a node moves (bits MOVES_A, MOVES_B); functions of a joint take the row
of its node. `frames` (blocks, 24) are A and B in the world, each R row by row and p.
"""

from __future__ import annotations

import math

from ..compiler import subroutine
from ..nodes import IDENTITY_POSE, NODE_FLOATS, PARENT, child_pose
from ..problem_layout import *
from ..residuals import read_pose_at, world_frame

FULL_TURN = 2.0 * math.pi
ANGLE_SAMPLES = 180
"""Samples of a full turn. Two harmonics have at most two minima in it; two minima within 4 degrees may count as a
single minimum."""
EQUAL_RATIO = 1e-12
"""Values that differ by less than this ratio of the largest count as equal."""


@subroutine
def best_angle(a, b, low, high):
    """The angle t in low <= t <= high, where low <= 0 <= high, that minimises a cos t + b sin t.

    Of equal minima the nearest to 0; the better end of the interval if it contains no minimum.
    """
    t = math.atan2(-b, -a)
    if t > high:
        t -= FULL_TURN
    elif t < low:
        t += FULL_TURN
    if low <= t <= high:
        return t
    cost_low = a * math.cos(low) + b * math.sin(low)
    cost_high = a * math.cos(high) + b * math.sin(high)
    return low if cost_low < cost_high else high


@subroutine
def best_angle_two_harmonics(a, b, c, d, low, high):
    """The angle t in low <= t <= high that minimises a cos t + b sin t + c cos 2t + d sin 2t, as `best_angle`."""
    tolerance = EQUAL_RATIO * (abs(a) + abs(b) + abs(c) + abs(d))
    if tolerance == 0.0:
        return 0.0
    start = max(low, -math.pi)
    end = min(high, start + FULL_TURN)
    start = max(low, end - FULL_TURN)
    width = (end - start) / ANGLE_SAMPLES
    best_angle_so_far, smallest = end, harmonics(a, b, c, d, end)[0]
    value, slope = harmonics(a, b, c, d, start)
    if value < smallest - tolerance or (value <= smallest + tolerance and abs(start) < abs(best_angle_so_far)):
        best_angle_so_far, smallest = start, value
    u, v, cosine, sine = math.cos(start), math.sin(start), math.cos(width), math.sin(width)
    for k in range(ANGLE_SAMPLES):
        previous_slope = slope
        u, v = u * cosine - v * sine, v * cosine + u * sine
        slope = b * u - a * v + 2.0 * (d * (u * u - v * v) - 2.0 * c * u * v)
        if previous_slope < 0.0 and slope >= 0.0:
            t = stationary_angle(a, b, c, d, start + k * width, start + (k + 1) * width)
            value = harmonics(a, b, c, d, t)[0]
            if value < smallest - tolerance or (value <= smallest + tolerance and abs(t) < abs(best_angle_so_far)):
                best_angle_so_far, smallest = t, value
    return best_angle_so_far


@subroutine
def harmonics(a, b, c, d, t):
    """The sum of two harmonics at t, and its derivative."""
    u, v = math.cos(t), math.sin(t)
    p, q = u * u - v * v, 2.0 * u * v
    return a * u + b * v + c * p + d * q, b * u - a * v + 2.0 * (d * p - c * q)


@subroutine
def stationary_angle(a, b, c, d, low, high):
    """The minimum of two harmonics between left and right, where the derivative changes sign: safeguarded Newton."""
    t = 0.5 * (low + high)
    for _ in range(60):
        u, v = math.cos(t), math.sin(t)
        p, q = u * u - v * v, 2.0 * u * v
        slope, curvature = b * u - a * v + 2.0 * (d * p - c * q), -a * u - b * v - 4.0 * (c * p + d * q)
        if slope < 0.0:
            low = t
        else:
            high = t
        next_angle = t - slope / curvature if curvature > 0.0 else low
        if not low < next_angle < high:
            next_angle = 0.5 * (low + high)
        if abs(next_angle - t) <= 1e-16:
            return next_angle
        t = next_angle
    return t


@subroutine
def rotation_between(ux, uy, uz, tx, ty, tz):
    """The smallest rotation, wxyz, of the direction u onto t; opposite directions by pi about any axis across."""
    size = math.sqrt((ux * ux + uy * uy + uz * uz) * (tx * tx + ty * ty + tz * tz))
    if size == 0.0:
        return 1.0, 0.0, 0.0, 0.0
    w = size + ux * tx + uy * ty + uz * tz
    x, y, z = uy * tz - uz * ty, uz * tx - ux * tz, ux * ty - uy * tx
    if w < 1e-14 * size:
        w = 0.0
        if abs(ux) > abs(uz):
            x, y, z = -uy, ux, 0.0
        else:
            x, y, z = 0.0, -uz, uy
    n = 1.0 / math.sqrt(w * w + x * x + y * y + z * z)
    return n * w, n * x, n * y, n * z


@subroutine
def rotation_matrix(w, x, y, z, R):
    """Write the rotation matrix of a unit quaternion into R (3, 3)."""
    R[0, 0], R[0, 1], R[0, 2] = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)
    R[1, 0], R[1, 1], R[1, 2] = 2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)
    R[2, 0], R[2, 1], R[2, 2] = 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)


@subroutine
def best_rotation(S, N, V):
    """The rotation R, wxyz, that maximises the sum of t . R u over pairs of vectors u and t.

    It is the eigenvector of a 4 x 4 matrix with the largest eigenvalue (Davenport 1968, Horn 1987). Where several
    rotations are equally good, as for vectors that are all parallel, the smallest of them.

    Args:
        S: (3, 3), the sum of u t' over the pairs.
        N, V: (4, 4), scratch memory.
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
    largest, scale = N[0, 0], abs(N[0, 0])
    for i in range(1, 4):
        largest, scale = max(largest, N[i, i]), max(scale, abs(N[i, i]))
    w, x, y, z, last = 0.0, 0.0, 0.0, 0.0, 0
    for i in range(4):
        if N[i, i] >= largest - EQUAL_RATIO * scale:  # the identity, projected onto the best rotations
            w, x, y, z = w + V[0, i] * V[0, i], x + V[0, i] * V[1, i], y + V[0, i] * V[2, i], z + V[0, i] * V[3, i]
            last = i
    n = math.sqrt(w * w + x * x + y * y + z * z)
    if n < 1e-12:
        return V[0, last], V[1, last], V[2, last], V[3, last]
    return w / n, x / n, y / n, z / n


@subroutine
def diagonalize4(N, V):
    """Jacobi eigenvalue method for a symmetric 4 x 4 matrix: N becomes diagonal, V (identity) its eigenvectors."""
    for _ in range(20):
        off_diagonal, diagonal = 0.0, 0.0
        for i in range(4):
            diagonal += N[i, i] * N[i, i]
            for j in range(i + 1, 4):
                off_diagonal += N[i, j] * N[i, j]
        if off_diagonal <= 1e-34 * diagonal:
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
"""Bits: which residuals of the goals a joint takes into account."""
MOVES_BOTH = MOVES_A | MOVES_B
NO_SINUSOID_RATIO = 1e-13
"""Amplitudes below this ratio of the vectors they are made of are rounding errors."""


@subroutine
def update_poses_between(ints, floats, x, first, end):
    """Update the world poses of the nodes from first to end (exclusive)."""
    nodes, poses, q = ints[AT_NODES], ints[AT_POSES], floats[x:]
    for i in range(first, end):
        node = floats[nodes + NODE_FLOATS * i : nodes + NODE_FLOATS * i + NODE_FLOATS]
        parent = int(node[PARENT])
        X = child_pose(read_pose_at(floats, poses + 12 * parent) if parent >= 0 else IDENTITY_POSE, node, q, False)
        for k in range(12):
            floats[poses + 12 * i + k] = X[k]


@subroutine
def update_goal_frames(ints, floats, frames):
    """Write frames A and B of every block, in the world, from the poses of the nodes."""
    for b in range(ints[N_BLOCKS]):
        block, data = ints[AT_BLOCKS] + BLOCK_INTS * b, ints[AT_BLOCK_DATA] + BLOCK_FLOATS * b
        A = world_frame(ints, floats, ints[block + NODE_A], data + FRAME_A)
        B = world_frame(ints, floats, ints[block + NODE_B], data + FRAME_B)
        for k in range(12):
            frames[b, k], frames[b, 12 + k] = A[k], B[k]


@subroutine
def rotate_frames(sides, frames, R, x, y, z):
    """Rotate the frames that a node moves (its row of `sides`) by R (3, 3) about the point (x, y, z)."""
    for b in range(frames.shape[0]):
        for end in range(2):
            if sides[b] & (MOVES_B if end else MOVES_A):
                k = 12 * end
                for column in range(3):
                    rotate_vector(frames[b], k + column, 3, R, 0.0, 0.0, 0.0)
                rotate_vector(frames[b], k + 9, 1, R, x, y, z)


@subroutine
def rotate_vector(values, k, stride, R, x, y, z):
    """Rotate the vector at numbers[k], with this stride, by R about the point (x, y, z)."""
    u, v, w = values[k] - x, values[k + stride] - y, values[k + 2 * stride] - z
    values[k] = x + R[0, 0] * u + R[0, 1] * v + R[0, 2] * w
    values[k + stride] = y + R[1, 0] * u + R[1, 1] * v + R[1, 2] * w
    values[k + 2 * stride] = z + R[2, 0] * u + R[2, 1] * v + R[2, 2] * w


@subroutine
def translate_frames(sides, frames, x, y, z):
    """Translate the frames that a node moves by (x, y, z)."""
    for b in range(frames.shape[0]):
        for end in range(2):
            if sides[b] & (MOVES_B if end else MOVES_A):
                k = 12 * end + 9
                frames[b, k], frames[b, k + 1], frames[b, k + 2] = (
                    frames[b, k] + x, frames[b, k + 1] + y, frames[b, k + 2] + z,
                )  # fmt: skip


@subroutine
def block_weights(ints, floats, b, uses):
    """Position bits of a block, number of its axes that count (0 to 3), and squared weights of both.

    A block with bands is a limit, and does not count.
    """
    block = ints[AT_BLOCKS] + BLOCK_INTS * b
    if ints[block + HAS_BANDS] == 1:
        return 0, 0, 0.0, 0.0
    position_rows, rotation_rows = ints[block + ROW_MASK] & 7, ints[block + ROW_MASK] >> 3
    weight = ints[AT_WEIGHT] + ints[block + FIRST_ROW]
    position_weight = floats[weight] if position_rows else 0.0
    axis_weight = (
        floats[weight + (position_rows & 1) + (position_rows >> 1 & 1) + (position_rows >> 2 & 1)]
        if rotation_rows
        else 0.0
    )
    axes = 0
    if rotation_rows:
        axes = 3 if ints[block + BLOCK_KIND] == POSE else 1
        if axes == 3:
            axis_weight *= math.sqrt(0.5)
    if uses & USE_POSITIONS == 0:
        position_rows = 0
    if uses & USE_ROTATIONS == 0:
        axes = 0
    return position_rows, axes, position_weight * position_weight, axis_weight * axis_weight


@subroutine
def sinusoid_of(ints, floats, sides, frames, uses, kx, ky, kz, cx, cy, cz, sinusoid):
    """Write the error as a function of the angle t by which a node rotates about the unit vector k through c.

    Args:
        sides: (blocks,), of the node.
        sinusoid: (5,), written: a, b, c, d of a cos t + b sin t + c cos 2t + d sin 2t, and 1.0 if there is a second
            harmonic.
    """
    sinusoid[:] = 0.0
    size = 0.0
    for b in range(frames.shape[0]):
        if sides[b] == 0 or sides[b] == MOVES_BOTH:
            continue
        position_rows, axes, position_weight2, axis_weight2 = block_weights(ints, floats, b, uses)
        sign = 1.0 if sides[b] == MOVES_B else -1.0
        k, l, m = sign * kx, sign * ky, sign * kz
        G = frames[b]
        if position_rows:
            dx, dy, dz, tx, ty, tz = G[21] - cx, G[22] - cy, G[23] - cz, G[9] - cx, G[10] - cy, G[11] - cz
            if position_rows == 7:
                size += add_pair(sinusoid, position_weight2, k, l, m, dx, dy, dz, tx, ty, tz)
            else:
                for r in range(3):
                    if position_rows >> r & 1:
                        n, o, p = G[r], G[3 + r], G[6 + r]
                        size += add_row(
                            sinusoid, position_weight2, k, l, m, dx, dy, dz, n, o, p, n * tx + o * ty + p * tz
                        )
        if axes and ints[ints[AT_BLOCKS] + BLOCK_INTS * b + BLOCK_KIND] == COSINE:
            size += add_row(sinusoid, axis_weight2, k, l, m, G[14], G[17], G[20], G[2], G[5], G[8], 0.0)
        elif axes:
            for j in range(3 - axes, 3):
                size += add_pair(
                    sinusoid, axis_weight2, k, l, m, G[12 + j], G[15 + j], G[18 + j], G[j], G[3 + j], G[6 + j],
                )  # fmt: skip
    if abs(sinusoid[0]) + abs(sinusoid[1]) + abs(sinusoid[2]) + abs(sinusoid[3]) <= NO_SINUSOID_RATIO * size:
        sinusoid[:] = 0.0


@subroutine
def best_angle_about(ints, floats, sides, frames, uses, kx, ky, kz, cx, cy, cz, low, high, sinusoid):
    """The angle low <= t <= high about the unit vector k through c that minimises the error; wave (5,) is scratch."""
    sinusoid_of(ints, floats, sides, frames, uses, kx, ky, kz, cx, cy, cz, sinusoid)
    if sinusoid[4] == 1.0:
        return best_angle_two_harmonics(sinusoid[0], sinusoid[1], sinusoid[2], sinusoid[3], low, high)
    if sinusoid[0] == 0.0 and sinusoid[1] == 0.0:
        return 0.0
    return best_angle(sinusoid[0], sinusoid[1], low, high)


@subroutine
def add_pair(sinusoid, weight, k, l, m, dx, dy, dz, tx, ty, tz):
    """Add |d - t|^2, as d rotates about (k, l, m), to the wave; returns the size of its terms."""
    dot = dx * tx + dy * ty + dz * tz
    along = (k * dx + l * dy + m * dz) * (k * tx + l * ty + m * tz)
    sinusoid[0] -= 2.0 * weight * (dot - along)
    sinusoid[1] -= 2.0 * weight * (k * (dy * tz - dz * ty) + l * (dz * tx - dx * tz) + m * (dx * ty - dy * tx))
    return weight * math.sqrt((dx * dx + dy * dy + dz * dz) * (tx * tx + ty * ty + tz * tz))


@subroutine
def add_row(sinusoid, weight, k, l, m, dx, dy, dz, n, o, p, level):
    """Add ((n, o, p) . d - level)^2, as d rotates about (k, l, m), to the wave; returns the size of its terms."""
    along = (k * dx + l * dy + m * dz) * (k * n + l * o + m * p)
    u = n * dx + o * dy + p * dz - along
    v = n * (l * dz - m * dy) + o * (m * dx - k * dz) + p * (k * dy - l * dx)
    constant = along - level
    sinusoid[0] += 2.0 * weight * constant * u
    sinusoid[1] += 2.0 * weight * constant * v
    sinusoid[2] += 0.5 * weight * (u * u - v * v)
    sinusoid[3] += weight * u * v
    sinusoid[4] = 1.0
    return weight * (dx * dx + dy * dy + dz * dz + level * level)


@subroutine
def translation_gradient(ints, floats, sides, frames, uses, dx, dy, dz):
    """Half the first and second derivative of the error as a node translates along the unit vector d."""
    slope, curvature = 0.0, 0.0
    for b in range(frames.shape[0]):
        if sides[b] == 0 or sides[b] == MOVES_BOTH:
            continue
        position_rows, _, position_weight2, _ = block_weights(ints, floats, b, uses)
        sign = 1.0 if sides[b] == MOVES_B else -1.0
        G = frames[b]
        ex, ey, ez = G[21] - G[9], G[22] - G[10], G[23] - G[11]
        if position_rows == 7:
            slope += position_weight2 * sign * (dx * ex + dy * ey + dz * ez)
            curvature += position_weight2
        elif position_rows:
            for r in range(3):
                if position_rows >> r & 1:
                    row_motion = G[r] * dx + G[3 + r] * dy + G[6 + r] * dz
                    slope += position_weight2 * sign * row_motion * (G[r] * ex + G[3 + r] * ey + G[6 + r] * ez)
                    curvature += position_weight2 * row_motion * row_motion
    return slope, curvature


@subroutine
def collect_vector_pairs(ints, floats, sides, frames, uses, cx, cy, cz, S, pair):
    """Collect the vectors that a node rotates about c, with the vectors onto which they should come.

    Args:
        S: (3, 3), written: the weighted sum of u t'.
        pair: (6,), written: the last pair.

    Returns:
        The number of pairs; -1 if a goal is no set of pairs (lines, planes, cosines).
    """
    count = 0
    S[:] = 0.0
    for b in range(frames.shape[0]):
        if sides[b] == 0 or sides[b] == MOVES_BOTH:
            continue
        position_rows, axes, position_weight2, axis_weight2 = block_weights(ints, floats, b, uses)
        if (position_rows and position_rows != 7) or (
            axes and ints[ints[AT_BLOCKS] + BLOCK_INTS * b + BLOCK_KIND] == COSINE
        ):
            return -1
        u, t = (12, 0) if sides[b] == MOVES_B else (0, 12)
        G = frames[b]
        if position_rows:
            for i in range(3):
                c = cx if i == 0 else (cy if i == 1 else cz)
                pair[i], pair[3 + i] = G[u + 9 + i] - c, G[t + 9 + i] - c
            count += 1
            add_product(S, position_weight2, pair)
        for j in range(3 - axes, 3):
            for i in range(3):
                pair[i], pair[3 + i] = G[u + 3 * i + j], G[t + 3 * i + j]
            count += 1
            add_product(S, axis_weight2, pair)
    return count


@subroutine
def add_product(S, weight, pair):
    for i in range(3):
        for j in range(3):
            S[i, j] += weight * pair[i] * pair[3 + j]


@subroutine
def total_error(ints, floats, frames, uses):
    """The error of all goals together."""
    total = 0.0
    for b in range(frames.shape[0]):
        position_rows, axes, position_weight2, axis_weight2 = block_weights(ints, floats, b, uses)
        G = frames[b]
        ex, ey, ez = G[21] - G[9], G[22] - G[10], G[23] - G[11]
        for r in range(3):
            if position_rows >> r & 1:
                error = G[r] * ex + G[3 + r] * ey + G[6 + r] * ez
                total += position_weight2 * error * error
        for j in range(3 - axes, 3):
            dot = G[12 + j] * G[j] + G[15 + j] * G[3 + j] + G[18 + j] * G[6 + j]
            if ints[ints[AT_BLOCKS] + BLOCK_INTS * b + BLOCK_KIND] == COSINE:
                total += axis_weight2 * dot * dot
            else:
                x, y, z = G[12 + j] - G[j], G[15 + j] - G[3 + j], G[18 + j] - G[6 + j]
                total += axis_weight2 * (x * x + y * y + z * z)
    return total
