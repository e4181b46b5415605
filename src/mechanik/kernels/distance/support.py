"""The core of a convex shape, and its farthest point along a direction.

A sphere is a point with a radius about it, a capsule a segment with one. What is left without the radius is the core,
of one of three kinds: a box; a cylinder, which is a segment where its radius is 0 and a point where its length is too;
the hull of some points. A core is (kind, x, y, z, first, count): half the edges of a box; radius and half length of a
cylinder; the first row in Q and how many rows of a hull.
"""

from __future__ import annotations

import math

from ..compiler import helper, part
from ..relative_pose import under, under_matrix
from .shape_layout import BOX, CAPSULE, CYLINDER, HULL, KIND, SIZE, SPHERE


@helper
def core_of(S, i):
    """The core of a shape, and the radius about it."""
    kind = int(S[i, KIND])
    x, y, z = S[i, SIZE], S[i, SIZE + 1], S[i, SIZE + 2]
    if kind == SPHERE:
        return (CYLINDER, 0.0, 0.0, 0.0, 0, 0), x
    if kind == CAPSULE:
        return (CYLINDER, 0.0, y, 0.0, 0, 0), x
    if kind == HULL:
        return (HULL, 0.0, 0.0, 0.0, int(x), int(y)), 0.0
    return (kind, x, y, z, 0, 0), 0.0


@part
def farthest(core, Q, x, y, z):
    """The point of a core that is farthest along a direction, both in its own frame."""
    kind, a, b, c, first, count = core
    if kind == BOX:
        return math.copysign(a, x), math.copysign(b, y), math.copysign(c, z)
    if kind == CYLINDER:
        across = math.sqrt(x * x + y * y)
        scale = a / across if across > 0.0 else 0.0
        return scale * x, scale * y, math.copysign(b, z)
    best, most = first, Q[first, 0] * x + Q[first, 1] * y + Q[first, 2] * z
    for k in range(first + 1, first + count):
        along = Q[k, 0] * x + Q[k, 1] * y + Q[k, 2] * z
        if along > most:
            best, most = k, along
    return Q[best, 0], Q[best, 1], Q[best, 2]


@helper
def farthest_difference(a, U, b, V, T, x, y, z):
    """The point of A - B, all differences of points of two cores, that is farthest along a direction.

    Args:
        a, U, b, V: the two cores and the points of each.
        T: the pose of B in A.
        x, y, z: the direction, in A.
    Returns:
        The difference and the point of A that it comes from, in A.
    """
    ax, ay, az = farthest(a, U, x, y, z)
    bx, by, bz = farthest(
        b, V, -(T[0] * x + T[3] * y + T[6] * z), -(T[1] * x + T[4] * y + T[7] * z), -(T[2] * x + T[5] * y + T[8] * z)
    )
    return (
        ax - (T[0] * bx + T[1] * by + T[2] * bz + T[9]),
        ay - (T[3] * bx + T[4] * by + T[5] * bz + T[10]),
        az - (T[6] * bx + T[7] * by + T[8] * bz + T[11]),
        ax, ay, az,
    )  # fmt: skip


@helper
def seen_from(A, B):
    """The pose B seen from A, both given in the world."""
    return under_matrix(A, B) + under(A, B[9] - A[9], B[10] - A[10], B[11] - A[11])
