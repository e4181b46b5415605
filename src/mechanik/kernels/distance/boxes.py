"""Gaps between a box and a point or a segment, the cores of spheres and capsules; all in the frame of the box.

A segment that is swept over a box makes a body with twelve sides, whose normals are the three of the box and the
three that are at right angles to the segment and an edge. In each other, the nearest of these sides is the shortest way
out. Apart, a side decides if the nearest points lie on it; else the distance along the segment is a curve made of
parabolas, whose lowest point is found exactly.
"""

from __future__ import annotations

import math

from ..compiler import helper, part
from .rounding import NOTHING, TIE, clamp, in_world, into

NEAR = 1e-6
"""Of the size of a pair: at shorter distances the normal of a side has more digits than the connection."""


@helper
def beyond(x, limit):
    """How far x is outside of -limit .. limit, with its sign; exact."""
    return x - min(max(x, -limit), limit)


@helper
def sign(x):
    return 1.0 if x >= 0.0 else -1.0


@helper
def slab(c, u, limit, start, end):
    """The part of start <= t <= end in which c + t u is within the limit; empty if start > end."""
    if u == 0.0:
        return (start, end) if abs(c) <= limit else (1.0, -1.0)
    s, t = (-limit - c) / u, (limit - c) / u
    return max(start, min(s, t)), min(end, max(s, t))


@part
def box_point(B, hx, hy, hz, A):
    """The gap from the box at B, half its edges given, to the point A."""
    x, y, z = into(B, A[9] - B[9], A[10] - B[10], A[11] - B[11])
    ex, ey, ez = beyond(x, hx), beyond(y, hy), beyond(z, hz)
    d = math.sqrt(ex * ex + ey * ey + ez * ez)
    if d > NOTHING:
        return in_world(B, d, (ex / d, ey / d, ez / d), (x - ex, y - ey, z - ez))
    dx, dy, dz = abs(x) - hx, abs(y) - hy, abs(z) - hz
    if dx >= dy and dx >= dz:
        return in_world(B, dx, (sign(x), 0.0, 0.0), (sign(x) * hx, y, z))
    if dy >= dz:
        return in_world(B, dy, (0.0, sign(y), 0.0), (x, sign(y) * hy, z))
    return in_world(B, dz, (0.0, 0.0, sign(z)), (x, y, sign(z) * hz))


@helper
def edge_side(cx, cy, hx, hy, ux, uy):
    """How far a segment is off the side that it makes with the edges along z; -inf if it is parallel to them."""
    k = math.sqrt(ux * ux + uy * uy)
    return (abs(cx * uy - cy * ux) - hx * abs(uy) - hy * abs(ux)) / k if k > TIE else -math.inf


@part
def on_face(cx, cy, cz, ux, uy, uz, length, hx, hy, hz, size):
    """The point of a segment that is lowest over the face that is at right angles to z, and whether it is over it."""
    slope = uz * sign(cz)
    if abs(slope) * length <= TIE * size:  # level: the middle of what is over the face
        s, t = slab(cx, ux, hx + TIE * size, -length, length)
        s, t = slab(cy, uy, hy + TIE * size, s, t)
        return clamp(0.5 * (s + t), length), s <= t
    t = -sign(slope) * length
    room = TIE * size
    return t, abs(cx + t * ux) <= hx + room and abs(cy + t * uy) <= hy + room


@part
def on_edge(cx, cy, cz, ux, uy, uz, length, hx, hy, hz, size):
    """The point of a segment nearest to the edge along z that it passes, whether both are within; the normal."""
    k = math.sqrt(ux * ux + uy * uy)
    nx, ny = uy / k, -ux / k
    if cx * nx + cy * ny < 0.0:
        nx, ny = -nx, -ny
    t = ((sign(nx) * hx - cx) * ux + (sign(ny) * hy - cy) * uy) / (k * k)
    room = TIE * size
    within = abs(t) <= length + room and abs(cz + t * uz) <= hz + room
    return clamp(t, length), within, nx, ny


@helper
def rise(c, u, h, t):
    """How fast half the squared distance to a box grows along the segment c + t u, at t."""
    return (
        u[0] * beyond(c[0] + t * u[0], h[0])
        + u[1] * beyond(c[1] + t * u[1], h[1])
        + u[2] * beyond(c[2] + t * u[2], h[2])
    )


@helper
def narrowed(c, u, h, t, low, high):
    """The interval in which the lowest point is, once the slope at t is known."""
    if low < t < high:
        g = rise(c, u, h, t)
        if g < 0.0:
            low = t
        elif g > 0.0:
            high = t
        else:
            low = high = t
    return low, high


@part
def lowest_point(c, u, h, length):
    """Where the segment c + t u is nearest to a box that it does not touch: t."""
    if rise(c, u, h, -length) >= 0.0:
        return -length
    if rise(c, u, h, length) <= 0.0:
        return length
    low, high = -length, length
    for k in range(3):  # the slope is a straight line between the six planes of the faces
        if u[k] != 0.0:
            low, high = narrowed(c, u, h, (h[k] - c[k]) / u[k], low, high)
            low, high = narrowed(c, u, h, (-h[k] - c[k]) / u[k], low, high)
    middle = 0.5 * (low + high)
    top, bottom = 0.0, 0.0
    for k in range(3):
        e = beyond(c[k] + middle * u[k], h[k])
        if e != 0.0:
            top += u[k] * (c[k] - (h[k] if e > 0.0 else -h[k]))
            bottom += u[k] * u[k]
    t = -top / bottom if bottom > TIE * TIE else middle
    return min(max(t, low), high)


@helper
def at_right_angle(e, p, u, h, noise):
    """The unit vector along e, freed of what it has along a segment of direction u if that is no more than noise.

    Args:
        e: from the box to the point p of the segment. Where p is level with an edge of a face, a little may be missing.
    """
    x = u[0] if e[0] != 0.0 or abs(p[0]) >= h[0] - noise else 0.0
    y = u[1] if e[1] != 0.0 or abs(p[1]) >= h[1] - noise else 0.0
    z = u[2] if e[2] != 0.0 or abs(p[2]) >= h[2] - noise else 0.0
    k, along = e[0] * x + e[1] * y + e[2] * z, x * x + y * y + z * z
    if k * k < along * noise * noise:
        k /= along
        a, b, c = e[0] - k * x, e[1] - k * y, e[2] - k * z
        if a * p[0] >= 0.0 and b * p[1] >= 0.0 and c * p[2] >= 0.0:
            e = (a, b, c)
    k = math.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2])
    return e[0] / k, e[1] / k, e[2] / k


@part
def box_segment(B, hx, hy, hz, A, length):
    """The gap from the box at B, half its edges given, to the segment along z of A, with half its length."""
    x, y, z = into(B, A[9] - B[9], A[10] - B[10], A[11] - B[11])
    u, v, w = into(B, A[2], A[5], A[8])
    size = abs(x) + abs(y) + abs(z) + hx + hy + hz + length
    dx = abs(x) - hx - length * abs(u)
    dy = abs(y) - hy - length * abs(v)
    dz = abs(z) - hz - length * abs(w)
    ex, ey, ez = edge_side(y, z, hy, hz, v, w), edge_side(z, x, hz, hx, w, u), edge_side(x, y, hx, hy, u, v)
    d = max(dx, dy, dz)
    e = max(ex, ey, ez)
    if e > d + TIE * size:  # a face is taken where both are even
        d = e
        if ex == e:
            t, within, ny, nz = on_edge(y, z, x, v, w, u, length, hy, hz, hx, size)
            nx = 0.0
        elif ey == e:
            t, within, nz, nx = on_edge(z, x, y, w, u, v, length, hz, hx, hy, size)
            ny = 0.0
        else:
            t, within, nx, ny = on_edge(x, y, z, u, v, w, length, hx, hy, hz, size)
            nz = 0.0
    elif dx == d:
        t, within = on_face(y, z, x, v, w, u, length, hy, hz, hx, size)
        nx, ny, nz = sign(x), 0.0, 0.0
    elif dy == d:
        t, within = on_face(z, x, y, w, u, v, length, hz, hx, hy, size)
        nx, ny, nz = 0.0, sign(y), 0.0
    else:
        t, within = on_face(x, y, z, u, v, w, length, hx, hy, hz, size)
        nx, ny, nz = 0.0, 0.0, sign(z)
    if not within:
        shift = max(4.0 * TIE * size - d, 0.0)  # sides that are nearly even: shifted out of the box, and a little more
        px, py, pz = x + shift * nx, y + shift * ny, z + shift * nz
        t = lowest_point((px, py, pz), (u, v, w), (hx, hy, hz), length)
        if d > 0.0:
            p = (x + t * u, y + t * v, z + t * w)
            ex, ey, ez = beyond(p[0], hx), beyond(p[1], hy), beyond(p[2], hz)
            e = math.sqrt(ex * ex + ey * ey + ez * ez)
            if e > d + TIE * size or e > NEAR * size:
                d = e
                noise = 8.0 * TIE * size if abs(t) < length else 0.0
                nx, ny, nz = at_right_angle((ex, ey, ez), p, (u, v, w), (hx, hy, hz), noise)
    px, py, pz = x + t * u, y + t * v, z + t * w
    return in_world(B, d, (nx, ny, nz), (px - d * nx, py - d * ny, pz - d * nz))
