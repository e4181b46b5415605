"""The best turn of a ball joint for all goals that it moves, as a quaternion; and within a cone."""

from __future__ import annotations

import math

from .best_turns import best_turn, from_to, matrix_of
from .compiler import part
from .goal_frames import angle_about, carry, pairs_of
from .problem import *

EDGE = 1e-12
"""How far outside, in its cosine, a direction still counts as inside its cone."""
ROOM = 64
"""Numbers that a ball needs to work in."""


@part
def turn_ball(I, F, k, node, uses, cone, sides, frames, most, blend, cosine, room, turn):
    """Turn a ball to where its goals like it best. `turn` (3,) is by how much, about its own axes; returns the angle.

    One point or direction is reached by the least turn; several, or a pose, by the best one. Where lines or planes
    are among the goals, or a cone is in the way, it goes on axis by axis: none of these turns makes things worse.

    Args:
        k: where its quaternion stands.
        cone: the block that is its cone, of which `cosine` is the edge; -1: it has none.
        sides: (blocks,), of its node.
        most: how far it may turn, rad.
        blend: which share of a turn is taken.
        room: (64,), to work in.
    """
    X = I[AT_POSES] + 12 * node
    cx, cy, cz = F[X + 9], F[X + 10], F[X + 11]
    N, V = room[0:16].reshape(4, 4), room[16:32].reshape(4, 4)
    R, S, pair, wave = room[32:41].reshape(3, 3), room[41:50].reshape(3, 3), room[50:56], room[56:61]
    w0, x0, y0, z0 = F[k], F[k + 1], F[k + 2], F[k + 3]
    count = pairs_of(I, F, sides, frames, uses, cx, cy, cz, S, pair)
    w, x, y, z = 1.0, 0.0, 0.0, 0.0
    if count == 1:
        w, x, y, z = from_to(pair[0], pair[1], pair[2], pair[3], pair[4], pair[5])
    elif count > 1:
        w, x, y, z = best_turn(S, N, V)
    w, x, y, z = shortened(w, x, y, z, blend, most)
    if cone >= 0:
        w, x, y, z = into_cone(frames[cone], sides[cone], cosine, w, x, y, z, S, R)
    left = most - apply_turn(F, X, k, sides, frames, w, x, y, z, R)
    if cone >= 0 or count < 0:
        for i in range(3):
            low, high = -max(left, 0.0), max(left, 0.0)
            kx, ky, kz = F[X + i], F[X + 3 + i], F[X + 6 + i]
            if cone >= 0:
                kx, ky, kz, nearest, farthest = free_axis(frames[cone], sides[cone], cosine, i)
                low, high = max(low, nearest), min(high, farthest)
            t = 0.5 * blend * angle_about(I, F, sides, frames, uses, kx, ky, kz, cx, cy, cz, low, high, wave)
            s = math.sin(t)
            left -= apply_turn(F, X, k, sides, frames, math.cos(t), s * kx, s * ky, s * kz, R)
    w1, x1, y1, z1 = F[k], F[k + 1], F[k + 2], F[k + 3]
    w = w0 * w1 + x0 * x1 + y0 * y1 + z0 * z1
    x = w0 * x1 - x0 * w1 - y0 * z1 + z0 * y1
    y = w0 * y1 + x0 * z1 - y0 * w1 - z0 * x1
    z = w0 * z1 - x0 * y1 + y0 * x1 - z0 * w1
    n = math.sqrt(x * x + y * y + z * z)
    angle = 2.0 * math.atan2(n, abs(w))
    f = math.copysign(angle / n, w) if n > 1e-300 else 0.0
    turn[0], turn[1], turn[2] = f * x, f * y, f * z
    return angle


@part
def shortened(w, x, y, z, blend, most):
    """A share of a turn, and no more of it than `most`, rad."""
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    n = math.sqrt(x * x + y * y + z * z)
    angle = 2.0 * math.atan2(n, w)
    wanted = min(blend * angle, most)
    if wanted >= angle or n == 0.0:
        return w, x, y, z
    f = math.sin(0.5 * wanted) / n
    return math.cos(0.5 * wanted), f * x, f * y, f * z


@part
def apply_turn(F, X, k, sides, frames, w, x, y, z, R):
    """Turn a ball of pose X, and all that it carries, by a quaternion along the axes of the world; the angle."""
    if x == 0.0 and y == 0.0 and z == 0.0:
        return 0.0
    a = F[X] * x + F[X + 3] * y + F[X + 6] * z
    b = F[X + 1] * x + F[X + 4] * y + F[X + 7] * z
    c = F[X + 2] * x + F[X + 5] * y + F[X + 8] * z
    p, q, r, s = F[k], F[k + 1], F[k + 2], F[k + 3]
    tw, tx = p * w - q * a - r * b - s * c, p * a + q * w + r * c - s * b
    ty, tz = p * b - q * c + r * w + s * a, p * c + q * b - r * a + s * w
    n = 1.0 / math.sqrt(tw * tw + tx * tx + ty * ty + tz * tz)
    F[k], F[k + 1], F[k + 2], F[k + 3] = n * tw, n * tx, n * ty, n * tz
    matrix_of(w, x, y, z, R)
    for column in range(3):
        a, b, c = F[X + column], F[X + 3 + column], F[X + 6 + column]
        for row in range(3):
            F[X + 3 * row + column] = R[row, 0] * a + R[row, 1] * b + R[row, 2] * c
    carry(sides, frames, R, F[X + 9], F[X + 10], F[X + 11])
    return 2.0 * math.atan2(math.sqrt(x * x + y * y + z * z), abs(w))


# ---- cones --------------------------------------------------------------------------------------


@part
def cone_of(frames, side):
    """The axis of a cone, which stays, and the direction that the ball carries and that has to be inside of it."""
    u, a = (12, 0) if side == MOVES_B else (0, 12)
    return frames[a + 2], frames[a + 5], frames[a + 8], frames[u + 2], frames[u + 5], frames[u + 8]


@part
def way_to_axis(ax, ay, az, dx, dy, dz):
    """The angle from a direction to the axis, and the unit vector about which it is gone."""
    x, y, z = dy * az - dz * ay, dz * ax - dx * az, dx * ay - dy * ax
    n = math.sqrt(x * x + y * y + z * z)
    angle = math.atan2(n, ax * dx + ay * dy + az * dz)
    if n < 1e-12:  # any way is as good
        x, y, z = (-ay, ax, 0.0) if abs(ax) > abs(az) else (0.0, -az, ay)
        n = math.sqrt(x * x + y * y + z * z)
    return angle, x / n, y / n, z / n


@part
def into_cone(frames, side, cosine, w, x, y, z, S, R):
    """A turn that ends inside the cone: its swing is cut at the edge, its twist stays.

    If that is worse than where the ball stands, and it stands inside, it is no turn at all.
    """
    ax, ay, az, dx, dy, dz = cone_of(frames, side)
    matrix_of(w, x, y, z, R)
    ex, ey, ez = (
        R[0, 0] * dx + R[0, 1] * dy + R[0, 2] * dz,
        R[1, 0] * dx + R[1, 1] * dy + R[1, 2] * dz,
        R[2, 0] * dx + R[2, 1] * dy + R[2, 2] * dz,
    )
    if ax * ex + ay * ey + az * ez >= cosine:
        return w, x, y, z
    angle, kx, ky, kz = way_to_axis(ax, ay, az, ex, ey, ez)
    half = 0.5 * (angle - math.acos(cosine))
    s, c = math.sin(half), math.cos(half)
    kx, ky, kz = s * kx, s * ky, s * kz
    w, x, y, z = (
        c * w - kx * x - ky * y - kz * z,
        c * x + kx * w + ky * z - kz * y,
        c * y + ky * w + kz * x - kx * z,
        c * z + kz * w + kx * y - ky * x,
    )
    if ax * dx + ay * dy + az * dz >= cosine - EDGE:
        matrix_of(w, x, y, z, R)
        gain = -S[0, 0] - S[1, 1] - S[2, 2]
        for i in range(3):
            for j in range(3):
                gain += R[i, j] * S[j, i]
        if gain < 0.0:
            return 1.0, 0.0, 0.0, 0.0
    return w, x, y, z


@part
def free_axis(frames, side, cosine, i):
    """One of three axes about which a ball may turn within its cone, and how far: its own, across, the cone's."""
    ax, ay, az, dx, dy, dz = cone_of(frames, side)
    if i == 0:
        return ax, ay, az, -math.inf, math.inf
    if i == 2:
        return dx, dy, dz, -math.inf, math.inf
    angle, kx, ky, kz = way_to_axis(ax, ay, az, dx, dy, dz)
    opening = math.acos(cosine)
    return kx, ky, kz, min(angle - opening, 0.0), angle + opening
