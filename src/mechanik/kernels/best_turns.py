"""The turn that brings vectors as near as can be to others: about a given axis, or about any."""

from __future__ import annotations

import math

from .compiler import part

TURN = 2.0 * math.pi
GRID = 180
"""Samples of a turn. Two harmonics have at most two minima in one; of two that are within 4 degrees, one is found."""
SAME = 1e-12
"""What differs by less, against the largest there is, counts as equal."""


@part
def best_angle(a, b, low, high):
    """The angle of low <= t <= high, where 0 is among them, at which a cos t + b sin t is least.

    Of angles that look the same the nearest to 0; where none of the least is allowed, the better end.
    """
    t = math.atan2(-b, -a)
    if t > high:
        t -= TURN
    elif t < low:
        t += TURN
    if low <= t <= high:
        return t
    below = a * math.cos(low) + b * math.sin(low)
    above = a * math.cos(high) + b * math.sin(high)
    return low if below < above else high


@part
def best_angle_of_two(a, b, c, d, low, high):
    """As `best_angle`, of a cos t + b sin t + c cos 2t + d sin 2t."""
    same = SAME * (abs(a) + abs(b) + abs(c) + abs(d))
    if same == 0.0:
        return 0.0
    start = max(low, -math.pi)
    end = min(high, start + TURN)
    start = max(low, end - TURN)
    width = (end - start) / GRID
    best, least = end, wave(a, b, c, d, end)[0]
    here, slope = wave(a, b, c, d, start)
    if here < least - same or (here <= least + same and abs(start) < abs(best)):
        best, least = start, here
    u, v, cosine, sine = math.cos(start), math.sin(start), math.cos(width), math.sin(width)
    for k in range(GRID):
        before = slope
        u, v = u * cosine - v * sine, v * cosine + u * sine
        slope = b * u - a * v + 2.0 * (d * (u * u - v * v) - 2.0 * c * u * v)
        if before < 0.0 and slope >= 0.0:
            t = flat(a, b, c, d, start + k * width, start + (k + 1) * width)
            here = wave(a, b, c, d, t)[0]
            if here < least - same or (here <= least + same and abs(t) < abs(best)):
                best, least = t, here
    return best


@part
def wave(a, b, c, d, t):
    """The sum of two harmonics, and its slope."""
    u, v = math.cos(t), math.sin(t)
    p, q = u * u - v * v, 2.0 * u * v
    return a * u + b * v + c * p + d * q, b * u - a * v + 2.0 * (d * p - c * q)


@part
def flat(a, b, c, d, left, right):
    """Where the slope of the two harmonics turns from below 0 to above, between left and right: Newton, held inside."""
    t = 0.5 * (left + right)
    for _ in range(60):
        u, v = math.cos(t), math.sin(t)
        p, q = u * u - v * v, 2.0 * u * v
        slope, bend = b * u - a * v + 2.0 * (d * p - c * q), -a * u - b * v - 4.0 * (c * p + d * q)
        if slope < 0.0:
            left = t
        else:
            right = t
        there = t - slope / bend if bend > 0.0 else left
        if not left < there < right:
            there = 0.5 * (left + right)
        if abs(there - t) <= 1e-16:
            return there
        t = there
    return t


@part
def from_to(ux, uy, uz, tx, ty, tz):
    """The least turn, as wxyz, that lays one vector along another; opposite ones by half a turn about any axis."""
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


@part
def matrix_of(w, x, y, z, R):
    """The turn of a unit quaternion, into R (3, 3)."""
    R[0, 0], R[0, 1], R[0, 2] = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)
    R[1, 0], R[1, 1], R[1, 2] = 2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)
    R[2, 0], R[2, 1], R[2, 2] = 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)


@part
def best_turn(S, N, V):
    """The turn R, as wxyz, for which the sum of t . R u is largest over pairs of vectors u and t.

    That is the eigenvector of a 4 x 4 matrix to its largest eigenvalue (Davenport 1968, Horn 1987). Where several
    turns are as good, as for vectors that are all parallel, the least of them.

    Args:
        S: (3, 3), the sum of u t' over the pairs.
        N, V: (4, 4), room to work in.
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
    diagonalise(N, V)
    largest, scale = N[0, 0], abs(N[0, 0])
    for i in range(1, 4):
        largest, scale = max(largest, N[i, i]), max(scale, abs(N[i, i]))
    w, x, y, z, last = 0.0, 0.0, 0.0, 0.0, 0
    for i in range(4):
        if N[i, i] >= largest - SAME * scale:  # no turn at all, laid into the space of the best ones
            w, x, y, z = w + V[0, i] * V[0, i], x + V[0, i] * V[1, i], y + V[0, i] * V[2, i], z + V[0, i] * V[3, i]
            last = i
    n = math.sqrt(w * w + x * x + y * y + z * z)
    if n < 1e-12:
        return V[0, last], V[1, last], V[2, last], V[3, last]
    return w / n, x / n, y / n, z / n


@part
def diagonalise(N, V):
    """Jacobi's method for a symmetric 4 x 4 matrix: N becomes diagonal, and the columns of V its eigenvectors."""
    for _ in range(20):
        rest, size = 0.0, 0.0
        for i in range(4):
            size += N[i, i] * N[i, i]
            for j in range(i + 1, 4):
                rest += N[i, j] * N[i, j]
        if rest <= 1e-34 * size:
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
