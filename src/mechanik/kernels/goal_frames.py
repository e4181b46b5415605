"""The frames of goals in the world, and how near they come when a joint turns or shifts what it carries.

Each goal wants a frame B where a frame A is, in all or in some of its directions. Either may move; for what A does,
B does the opposite as seen from A. The error of all goals together is

    weight^2 |p_B - p_A|^2 + weight^2 |z_B - z_A|^2        for points, and for directions

where a full rotation counts half the sum over its three axes, lines and planes what sticks out of them, and right
angles the square of the cosine. For small angles that is the sum of squares of the problem's rows.

`sides` (nodes, blocks) says which of the frames a node carries; `frames` (blocks, 24) are A and B, R row by row and p.
"""

from __future__ import annotations

import math

from .best_turns import best_angle, best_angle_of_two
from .compiler import part
from .layout import PARENT, ROW
from .poses import WORLD, moved
from .problem import *
from .rows import frame, read_pose_at

POSITIONS, ROTATIONS = 1, 2
"""What of the goals a joint looks at, as bits."""
BOTH = MOVES_A | MOVES_B
NOTHING = 1e-13
"""A wave that is smaller against the vectors it is made of comes from rounding."""


@part
def place_some(I, F, x, first, end):
    """Poses of the nodes from first to end in the world."""
    nodes, poses, q = I[AT_NODES], I[AT_POSES], F[x:]
    for i in range(first, end):
        node = F[nodes + ROW * i : nodes + ROW * i + ROW]
        parent = int(node[PARENT])
        X = moved(read_pose_at(F, poses + 12 * parent) if parent >= 0 else WORLD, node, q, False)
        for k in range(12):
            F[poses + 12 * i + k] = X[k]


@part
def place_frames(I, F, frames):
    """A and B of every block, from the poses of the nodes."""
    for b in range(I[N_BLOCKS]):
        block, data = I[AT_BLOCKS] + BLOCK_INTS * b, I[AT_DATA] + BLOCK_FLOATS * b
        A = frame(I, F, I[block + NODE_A], data + FRAME_A)
        B = frame(I, F, I[block + NODE_B], data + FRAME_B)
        for k in range(12):
            frames[b, k], frames[b, 12 + k] = A[k], B[k]


@part
def carry(sides, frames, R, x, y, z):
    """Turn the frames that a node carries (its row of `sides`) by R (3, 3) about the point (x, y, z)."""
    for b in range(frames.shape[0]):
        for end in range(2):
            if sides[b] & (MOVES_B if end else MOVES_A):
                k = 12 * end
                for column in range(3):
                    turn_vector(frames[b], k + column, 3, R, 0.0, 0.0, 0.0)
                turn_vector(frames[b], k + 9, 1, R, x, y, z)


@part
def turn_vector(numbers, k, stride, R, x, y, z):
    u, v, w = numbers[k] - x, numbers[k + stride] - y, numbers[k + 2 * stride] - z
    numbers[k] = x + R[0, 0] * u + R[0, 1] * v + R[0, 2] * w
    numbers[k + stride] = y + R[1, 0] * u + R[1, 1] * v + R[1, 2] * w
    numbers[k + 2 * stride] = z + R[2, 0] * u + R[2, 1] * v + R[2, 2] * w


@part
def shift(sides, frames, x, y, z):
    """Shift the frames that a node carries."""
    for b in range(frames.shape[0]):
        for end in range(2):
            if sides[b] & (MOVES_B if end else MOVES_A):
                k = 12 * end + 9
                frames[b, k], frames[b, k + 1], frames[b, k + 2] = (
                    frames[b, k] + x, frames[b, k + 1] + y, frames[b, k + 2] + z,
                )  # fmt: skip


@part
def parts(I, F, b, uses):
    """Which positions of a block count (as bits), how often its axes (0 to 3 of them), and the squares of weights.

    A block in a band is a limit, and none of it counts here.
    """
    block = I[AT_BLOCKS] + BLOCK_INTS * b
    if I[block + HAS_BANDS] == 1:
        return 0, 0, 0.0, 0.0
    shifts, turns = I[block + MASK] & 7, I[block + MASK] >> 3
    weight = I[AT_WEIGHT] + I[block + FIRST_ROW]
    heavy = F[weight] if shifts else 0.0
    behind = F[weight + (shifts & 1) + (shifts >> 1 & 1) + (shifts >> 2 & 1)] if turns else 0.0
    axes = 0
    if turns:
        axes = 3 if I[block + KIND] == POSE else 1
        if axes == 3:
            behind *= math.sqrt(0.5)
    if uses & POSITIONS == 0:
        shifts = 0
    if uses & ROTATIONS == 0:
        axes = 0
    return shifts, axes, heavy * heavy, behind * behind


@part
def wave_of(I, F, sides, frames, uses, kx, ky, kz, cx, cy, cz, wave):
    """How the error changes as a node turns what it carries by t about the unit vector k through c.

    wave: (5,) a, b, c, d of a cos t + b sin t + c cos 2t + d sin 2t, and 1.0 if there is the second one.
    """
    wave[:] = 0.0
    size = 0.0
    for b in range(frames.shape[0]):
        if sides[b] == 0 or sides[b] == BOTH:
            continue
        shifts, axes, heavy, behind = parts(I, F, b, uses)
        sign = 1.0 if sides[b] == MOVES_B else -1.0
        k, l, m = sign * kx, sign * ky, sign * kz
        G = frames[b]
        if shifts:
            dx, dy, dz, tx, ty, tz = G[21] - cx, G[22] - cy, G[23] - cz, G[9] - cx, G[10] - cy, G[11] - cz
            if shifts == 7:
                size += add_pair(wave, heavy, k, l, m, dx, dy, dz, tx, ty, tz)
            else:
                for r in range(3):
                    if shifts >> r & 1:
                        n, o, p = G[r], G[3 + r], G[6 + r]
                        size += add_row(wave, heavy, k, l, m, dx, dy, dz, n, o, p, n * tx + o * ty + p * tz)
        if axes and I[I[AT_BLOCKS] + BLOCK_INTS * b + KIND] == COSINE:
            size += add_row(wave, behind, k, l, m, G[14], G[17], G[20], G[2], G[5], G[8], 0.0)
        elif axes:
            for j in range(3 - axes, 3):
                size += add_pair(
                    wave, behind, k, l, m, G[12 + j], G[15 + j], G[18 + j], G[j], G[3 + j], G[6 + j],
                )  # fmt: skip
    if abs(wave[0]) + abs(wave[1]) + abs(wave[2]) + abs(wave[3]) <= NOTHING * size:
        wave[:] = 0.0


@part
def angle_about(I, F, sides, frames, uses, kx, ky, kz, cx, cy, cz, low, high, wave):
    """By how much a node had best turn what it carries about the unit vector k through c, low <= t <= high."""
    wave_of(I, F, sides, frames, uses, kx, ky, kz, cx, cy, cz, wave)
    if wave[4] == 1.0:
        return best_angle_of_two(wave[0], wave[1], wave[2], wave[3], low, high)
    if wave[0] == 0.0 and wave[1] == 0.0:
        return 0.0
    return best_angle(wave[0], wave[1], low, high)


@part
def add_pair(wave, weight, k, l, m, dx, dy, dz, tx, ty, tz):
    """Of |d - t|^2 as d turns; returns how large its numbers are."""
    dot = dx * tx + dy * ty + dz * tz
    along = (k * dx + l * dy + m * dz) * (k * tx + l * ty + m * tz)
    wave[0] -= 2.0 * weight * (dot - along)
    wave[1] -= 2.0 * weight * (k * (dy * tz - dz * ty) + l * (dz * tx - dx * tz) + m * (dx * ty - dy * tx))
    return weight * math.sqrt((dx * dx + dy * dy + dz * dz) * (tx * tx + ty * ty + tz * tz))


@part
def add_row(wave, weight, k, l, m, dx, dy, dz, n, o, p, level):
    """Of ((n, o, p) . d - level)^2 as d turns; returns how large its numbers are."""
    along = (k * dx + l * dy + m * dz) * (k * n + l * o + m * p)
    u = n * dx + o * dy + p * dz - along
    v = n * (l * dz - m * dy) + o * (m * dx - k * dz) + p * (k * dy - l * dx)
    still = along - level
    wave[0] += 2.0 * weight * still * u
    wave[1] += 2.0 * weight * still * v
    wave[2] += 0.5 * weight * (u * u - v * v)
    wave[3] += weight * u * v
    wave[4] = 1.0
    return weight * (dx * dx + dy * dy + dz * dz + level * level)


@part
def shift_of(I, F, sides, frames, uses, dx, dy, dz):
    """How far a node had best shift what it carries along the unit vector d: slope and bend of the error."""
    slope, bend = 0.0, 0.0
    for b in range(frames.shape[0]):
        if sides[b] == 0 or sides[b] == BOTH:
            continue
        shifts, _, heavy, _ = parts(I, F, b, uses)
        sign = 1.0 if sides[b] == MOVES_B else -1.0
        G = frames[b]
        ex, ey, ez = G[21] - G[9], G[22] - G[10], G[23] - G[11]
        if shifts == 7:
            slope += heavy * sign * (dx * ex + dy * ey + dz * ez)
            bend += heavy
        elif shifts:
            for r in range(3):
                if shifts >> r & 1:
                    along = G[r] * dx + G[3 + r] * dy + G[6 + r] * dz
                    slope += heavy * sign * along * (G[r] * ex + G[3 + r] * ey + G[6 + r] * ez)
                    bend += heavy * along * along
    return slope, bend


@part
def pairs_of(I, F, sides, frames, uses, cx, cy, cz, S, pair):
    """Vectors that a node would turn about c, and those on which they should come to lie.

    Returns how many pairs there are; -1 if some goal is not one of pairs. S: (3, 3), the weighted sum of u t'.
    pair: (6,), the last pair.
    """
    count = 0
    S[:] = 0.0
    for b in range(frames.shape[0]):
        if sides[b] == 0 or sides[b] == BOTH:
            continue
        shifts, axes, heavy, behind = parts(I, F, b, uses)
        if (shifts and shifts != 7) or (axes and I[I[AT_BLOCKS] + BLOCK_INTS * b + KIND] == COSINE):
            return -1
        u, t = (12, 0) if sides[b] == MOVES_B else (0, 12)
        G = frames[b]
        if shifts:
            for i in range(3):
                c = cx if i == 0 else (cy if i == 1 else cz)
                pair[i], pair[3 + i] = G[u + 9 + i] - c, G[t + 9 + i] - c
            count += 1
            add_product(S, heavy, pair)
        for j in range(3 - axes, 3):
            for i in range(3):
                pair[i], pair[3 + i] = G[u + 3 * i + j], G[t + 3 * i + j]
            count += 1
            add_product(S, behind, pair)
    return count


@part
def add_product(S, weight, pair):
    for i in range(3):
        for j in range(3):
            S[i, j] += weight * pair[i] * pair[3 + j]


@part
def error_of(I, F, frames, uses):
    """The error of all goals together."""
    total = 0.0
    for b in range(frames.shape[0]):
        shifts, axes, heavy, behind = parts(I, F, b, uses)
        G = frames[b]
        ex, ey, ez = G[21] - G[9], G[22] - G[10], G[23] - G[11]
        for r in range(3):
            if shifts >> r & 1:
                along = G[r] * ex + G[3 + r] * ey + G[6 + r] * ez
                total += heavy * along * along
        for j in range(3 - axes, 3):
            dot = G[12 + j] * G[j] + G[15 + j] * G[3 + j] + G[18 + j] * G[6 + j]
            if I[I[AT_BLOCKS] + BLOCK_INTS * b + KIND] == COSINE:
                total += behind * dot * dot
            else:
                x, y, z = G[12 + j] - G[j], G[15 + j] - G[3 + j], G[18 + j] - G[6 + j]
                total += behind * (x * x + y * y + z * z)
    return total
