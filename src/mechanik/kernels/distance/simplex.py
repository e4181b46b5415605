"""The point of a simplex that is nearest to the origin: the inner step of GJK.

A simplex is the first n rows of W (4, 7): a difference w of two points, the point of A it comes from, and the weight of
that corner in the nearest point. The newest corner is the last. In exact numbers the nearest point always has a share
of the newest corner, so such parts are tried first; of those whose nearest point is inside, the nearest one counts.
That is slower than walking the Voronoi regions, and does not care for flat simplices: a part that is too flat to
have a nearest point of its own has edges that do.
"""

from __future__ import annotations

import math

from ..compiler import helper, part

INSIDE = 5
FLAT = 1e-13
"""Tetrahedra thinner than this share of their size hold nothing."""
SLACK = 1e-13
"""Squared distances that differ by less than this share are alike."""


@helper
def on_segment(W, i, k):
    """The nearest point between two corners: the share of the first, and the squared distance; inf at an end."""
    px, py, pz = W[k, 0], W[k, 1], W[k, 2]
    ex, ey, ez = W[i, 0] - px, W[i, 1] - py, W[i, 2] - pz
    length = ex * ex + ey * ey + ez * ez
    along = -(px * ex + py * ey + pz * ez)
    if not 0.0 < along < length:
        return 0.0, math.inf
    u = along / length
    x, y, z = px + u * ex, py + u * ey, pz + u * ez
    return u, x * x + y * y + z * z


@helper
def on_triangle(W, i, j, k):
    """Likewise for the triangle of three corners: the shares of the first two, and the squared distance.

    It is seen from an end of its longest edge, the one nearer to the third corner: corners on a rim come close to each
    other and to a line, and from elsewhere the way across such a needle would be mostly rounding.
    """
    ij, jk, ki = apart(W, i, j), apart(W, j, k), apart(W, k, i)
    if ij >= jk and ij >= ki:
        if jk < ki:
            u, v, far = from_corner(W, j, k, i)
            return v, 1.0 - u - v, far
        v, u, far = from_corner(W, i, k, j)
        return 1.0 - u - v, u, far
    if jk >= ki:
        if ki < ij:
            return from_corner(W, k, i, j)
        u, v, far = from_corner(W, j, i, k)
        return u, 1.0 - u - v, far
    if ij < jk:
        u, v, far = from_corner(W, i, j, k)
        return 1.0 - u - v, u, far
    v, u, far = from_corner(W, k, j, i)
    return u, v, far


@helper
def from_corner(W, i, j, k):
    """The shares of j and of k, and the squared distance; k is at the other end of the longest edge."""
    px, py, pz = W[i, 0], W[i, 1], W[i, 2]
    ex, ey, ez = W[j, 0] - px, W[j, 1] - py, W[j, 2] - pz
    fx, fy, fz = W[k, 0] - px, W[k, 1] - py, W[k, 2] - pz
    length = fx * fx + fy * fy + fz * fz
    if length <= 0.0:
        return 0.0, 0.0, math.inf
    along = (ex * fx + ey * fy + ez * fz) / length
    gx, gy, gz = ex - along * fx, ey - along * fy, ez - along * fz  # across the longest edge
    rest = (gx * fx + gy * fy + gz * fz) / length
    gx, gy, gz = gx - rest * fx, gy - rest * fy, gz - rest * fz
    along += rest
    width = gx * gx + gy * gy + gz * gz
    if width <= 0.0:
        return 0.0, 0.0, math.inf
    u = -(px * gx + py * gy + pz * gz) / width
    v = -(px * fx + py * fy + pz * fz) / length - u * along
    if not (u > 0.0 and v > 0.0 and u + v < 1.0):
        return 0.0, 0.0, math.inf
    x, y, z = px + u * ex + v * fx, py + u * ey + v * fy, pz + u * ez + v * fz
    return u, v, x * x + y * y + z * z


@helper
def apart(W, i, j):
    x, y, z = W[j, 0] - W[i, 0], W[j, 1] - W[i, 1], W[j, 2] - W[i, 2]
    return x * x + y * y + z * z


@part
def nearest_part(W, n, before):
    """Reduce a simplex to the part whose nearest point to the origin is the nearest.

    Args:
        W: the simplex, n rows, 2 to 4; reduced in place.
        before: the squared distance so far.
    Returns:
        How many rows are left; INSIDE if the simplex holds the origin. The nearest point.
    """
    top = n - 1
    best = W[top, 0] ** 2 + W[top, 1] ** 2 + W[top, 2] ** 2
    left, i, j, u, v = 1, top, top, 0.0, 0.0
    for k in range(top):
        share, far = on_segment(W, k, top)
        if far < best:
            best, left, i, u = far, 2, k, share
    for k in range(top):
        for l in range(k + 1, top):
            first, second, far = on_triangle(W, k, l, top)
            if far < best:
                best, left, i, j, u, v = far, 3, k, l, first, second
    if n == 4 and holds_origin(W):
        return INSIDE, 0.0, 0.0, 0.0
    if best > before * (1.0 - SLACK):
        return most_certain_part(W, n)
    return keep(W, left, i, j, top, u, v)


@part
def most_certain_part(W, n):
    """Likewise, where lengths are too much alike to tell the parts apart: a far corner turns the nearest point a
    little, and brings it no nearer that could be seen. What counts is that no corner is nearer along it."""
    most, left, i, j, k, u, v = -math.inf, 1, 0, 0, 0, 0.0, 0.0
    for a in range(n):
        bound = nearest_corner(W, n, a, a, a, 0.0, 0.0)
        if bound > most:
            most, left, k, u, v = bound, 1, a, 0.0, 0.0
        for b in range(a):
            share, far = on_segment(W, b, a)
            if far < math.inf:
                bound = nearest_corner(W, n, b, a, a, share, 0.0)
                if bound > most:
                    most, left, i, k, u, v = bound, 2, b, a, share, 0.0
            for c in range(b):
                first, second, far = on_triangle(W, c, b, a)
                if far < math.inf:
                    bound = nearest_corner(W, n, c, b, a, first, second)
                    if bound > most:
                        most, left, i, j, k, u, v = bound, 3, c, b, a, first, second
    return keep(W, left, i, j, k, u, v)


@helper
def nearest_corner(W, n, i, j, k, u, v):
    """How much farther than the point with the shares u, v, rest of three corners the nearest corner is along it."""
    x, y, z = mixed(W, i, j, k, u, v)
    least = math.inf
    for c in range(n):
        least = min(least, (W[c, 0] - x) * x + (W[c, 1] - y) * y + (W[c, 2] - z) * z)
    return least / math.sqrt(x * x + y * y + z * z + 1e-300)


@helper
def mixed(W, i, j, k, u, v):
    return (
        W[k, 0] + u * (W[i, 0] - W[k, 0]) + v * (W[j, 0] - W[k, 0]),
        W[k, 1] + u * (W[i, 1] - W[k, 1]) + v * (W[j, 1] - W[k, 1]),
        W[k, 2] + u * (W[i, 2] - W[k, 2]) + v * (W[j, 2] - W[k, 2]),
    )


@part
def keep(W, left, i, j, k, u, v):
    """Keep the corners k; i and k; or i, j and k, in ascending order, with the shares u of i and v of j."""
    x, y, z = mixed(W, i, j, k, u, v)
    if left == 3:
        move(W, i, 0)
        move(W, j, 1)
        W[0, 6], W[1, 6] = u, v
    elif left == 2:
        move(W, i, 0)
        W[0, 6] = u
    move(W, k, left - 1)
    W[left - 1, 6] = 1.0 - u - v
    return left, x, y, z


@helper
def move(W, k, to):
    if k != to:
        for c in range(6):
            W[to, c] = W[k, c]


@helper
def holds_origin(W):
    """Whether a tetrahedron that is not flat holds the origin."""
    px, py, pz = W[3, 0], W[3, 1], W[3, 2]
    ex, ey, ez = W[0, 0] - px, W[0, 1] - py, W[0, 2] - pz
    fx, fy, fz = W[1, 0] - px, W[1, 1] - py, W[1, 2] - pz
    gx, gy, gz = W[2, 0] - px, W[2, 1] - py, W[2, 2] - pz
    ax, ay, az = fy * gz - fz * gy, fz * gx - fx * gz, fx * gy - fy * gx
    bx, by, bz = gy * ez - gz * ey, gz * ex - gx * ez, gx * ey - gy * ex
    cx, cy, cz = ey * fz - ez * fy, ez * fx - ex * fz, ex * fy - ey * fx
    volume = ex * ax + ey * ay + ez * az
    large = math.sqrt(max(ax * ax + ay * ay + az * az, bx * bx + by * by + bz * bz, cx * cx + cy * cy + cz * cz))
    long = math.sqrt(max(ex * ex + ey * ey + ez * ez, fx * fx + fy * fy + fz * fz, gx * gx + gy * gy + gz * gz))
    if not abs(volume) > FLAT * large * long:
        return False
    u = -(px * ax + py * ay + pz * az) / volume
    v = -(px * bx + py * by + pz * bz) / volume
    w = -(px * cx + py * cy + pz * cz) / volume
    return u >= 0.0 and v >= 0.0 and w >= 0.0 and u + v + w <= 1.0
