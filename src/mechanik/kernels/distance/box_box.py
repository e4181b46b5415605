"""The gap between two boxes: the nearest of the sides of `box_sides.py`, or a corner of one and the other box."""

from __future__ import annotations

from ..compiler import helper, part
from .box_corners import nearest_corner, nearest_on_edges, point_of
from .box_sides import edges_side, on_edges_of, on_face_of, turned
from .boxes import NEAR, beyond
from .rounding import TIE, flipped, in_world, into


@helper
def largest(a, b, c):
    """The largest of three and its place; the first where they are even."""
    if a >= b and a >= c:
        return a, 0
    return (b, 1) if b >= c else (c, 2)


@helper
def face_side(c, h, u, v, w, o):
    """How far a box is off the faces of another, in whose frame it is at c with the axes u, v, w and half edges o."""
    return largest(
        abs(c[0]) - h[0] - o[0] * abs(u[0]) - o[1] * abs(v[0]) - o[2] * abs(w[0]),
        abs(c[1]) - h[1] - o[0] * abs(u[1]) - o[1] * abs(v[1]) - o[2] * abs(w[1]),
        abs(c[2]) - h[2] - o[0] * abs(u[2]) - o[1] * abs(v[2]) - o[2] * abs(w[2]),
    )


@helper
def edge_sides(k, c, h, u, v, w, o):
    """How far a box is off the sides that its edges make with those along axis k of another."""
    x, y, _ = turned(k, c)
    hx, hy, _ = turned(k, h)
    u, v, w = turned(k, u), turned(k, v), turned(k, w)
    return largest(
        edges_side(x, y, hx, hy, u, v, w, o[1], o[2]),
        edges_side(x, y, hx, hy, v, w, u, o[2], o[0]),
        edges_side(x, y, hx, hy, w, u, v, o[0], o[1]),
    )


@helper
def off_corner(X, d, h, x):
    """The gap d from the box at X to the point x in its frame."""
    a, b, c = beyond(x[0], h[0]), beyond(x[1], h[1]), beyond(x[2], h[2])
    return in_world(X, d, (a / d, b / d, c / d), (x[0] - a, x[1] - b, x[2] - c))


@part
def proven(found, A, a, B, b, room):
    """Whether the boxes are as far apart along the normal as their nearest points."""
    x, y, z = into(A, found[1], found[2], found[3])
    reach = a[0] * abs(x) + a[1] * abs(y) + a[2] * abs(z)
    x, y, z = into(B, found[1], found[2], found[3])
    reach += b[0] * abs(x) + b[1] * abs(y) + b[2] * abs(z)
    off = found[1] * (B[9] - A[9]) + found[2] * (B[10] - A[10]) + found[3] * (B[11] - A[11])
    return off - reach >= found[0] - 4.0 * room


@helper
def seen_back(c, u, v, w):
    """Where a box is in the frame of another that is at c, with the axes u, v, w, in its own."""
    return (
        -(c[0] * u[0] + c[1] * u[1] + c[2] * u[2]),
        -(c[0] * v[0] + c[1] * v[1] + c[2] * v[2]),
        -(c[0] * w[0] + c[1] * w[1] + c[2] * w[2]),
    )


@part
def with_points(found, A, a, B, b, c, u, v, w, x, y, z, room):
    """A gap on a side, with the points that meet once B is shifted by it, and a little more.

    Needed where sides are nearly even, and the one that was taken does not hold the points.
    """
    n = into(A, found[1], found[2], found[3])
    k = 4.0 * room - found[0]
    c = (c[0] + k * n[0], c[1] + k * n[1], c[2] + k * n[2])
    e = seen_back(c, u, v, w)
    d, p = nearest_corner(c, a, u, v, w, b)
    s, q = nearest_corner(e, b, x, y, z, a)
    t, r = nearest_on_edges(c, a, u, v, w, b)
    if s < min(d, t):
        q = point_of(c, u, v, w, q[0], q[1], q[2])
        return in_world(A, found[0], n, q)
    if t < d:
        p = r
    k += found[0]
    return in_world(A, found[0], n, (p[0] - k * n[0], p[1] - k * n[1], p[2] - k * n[2]))


@part
def apart(found, A, a, B, b, c, u, v, w, e, x, y, z, room):
    """The gap of boxes apart, of which at least one has a corner as its nearest point.

    Args:
        found: the gap on the nearest side, a lower bound.
    """
    d, p = nearest_corner(c, a, u, v, w, b)
    s, q = nearest_corner(e, b, x, y, z, a)
    for attempt in range(2):
        if min(d, s) <= min(found[0] + room, NEAR / TIE * room):
            return with_points(found, A, a, B, b, c, u, v, w, x, y, z, room)
        best = off_corner(A, d, a, p) if d <= s else flipped(off_corner(B, s, b, q))
        if attempt == 1 or proven(best, A, a, B, b, room):
            break
        t, r = nearest_on_edges(c, a, u, v, w, b)  # edges that cross, nearly level with a face
        if t < d:
            d, p = t, r
    return best


@part
def box_box(A, a, B, b):
    """The gap between the boxes at A and at B, with half their edges (3,)."""
    c = into(A, B[9] - A[9], B[10] - A[10], B[11] - A[11])  # B seen from A
    u, v, w = into(A, B[0], B[3], B[6]), into(A, B[1], B[4], B[7]), into(A, B[2], B[5], B[8])
    e = seen_back(c, u, v, w)
    x, y, z = (u[0], v[0], w[0]), (u[1], v[1], w[1]), (u[2], v[2], w[2])
    size = abs(c[0]) + abs(c[1]) + abs(c[2]) + a[0] + a[1] + a[2] + b[0] + b[1] + b[2]
    room = TIE * size
    face, k = face_side(c, a, u, v, w, b)
    other, m = face_side(e, b, x, y, z, a)
    edge0, m0 = edge_sides(0, c, a, u, v, w, b)
    edge1, m1 = edge_sides(1, c, a, u, v, w, b)
    edge2, m2 = edge_sides(2, c, a, u, v, w, b)
    edge, on = largest(edge0, edge1, edge2)
    side = max(face, other)
    found, within = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), False
    if edge <= side + room:  # where they are even: faces before edges, those of A first
        if face >= other - room:
            found, within = on_face_of(A, k, face, c, a, u, v, w, b, room)
        else:
            found, within = on_face_of(B, m, other, e, b, x, y, z, a, room)
            found = flipped(found)
    if not within and edge >= side - room:
        m = m0 if on == 0 else (m1 if on == 1 else m2)
        found, within = on_edges_of(A, on, m, edge, c, a, u, v, w, b, room)
    if within:
        return found
    if found[0] > 0.0:
        return apart(found, A, a, B, b, c, u, v, w, e, x, y, z, room)
    return with_points(found, A, a, B, b, c, u, v, w, x, y, z, room)
