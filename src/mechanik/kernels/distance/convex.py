"""Gaps of pairs with a cylinder, a hull or a height field in them; everything else has closed forms."""

from __future__ import annotations

import math

import numpy as np

from ..compiler import helper, part
from .field import PRISM, ground_gap
from .prisms import bottom_of, corner, put_prism
from .settling import core_gap, shifted
from .shape_layout import CYLINDER, FIELD, HALF_SPACE, KIND, SIZE, SPHERE
from .support import core_of, farthest, seen_from


@part
def convex_gap(S, i, A, j, B, P):
    """The gap between two shapes of which one is a cylinder, a hull or a height field; see `gap`."""
    kind, other = int(S[i, KIND]), int(S[j, KIND])
    if other == HALF_SPACE:
        return gap_to_plane(S, i, A, B, P)
    if kind == HALF_SPACE:
        return swapped(gap_to_plane(S, j, B, A, P))
    if kind == FIELD:
        return gap_to_ground(S, i, A, j, B, P)
    if other == FIELD:
        return swapped(gap_to_ground(S, j, B, i, A, P))
    if kind == CYLINDER and other == SPHERE:
        return cylinder_and_ball(S[i, SIZE], S[i, SIZE + 1], A, S[j, SIZE], B)
    if kind == SPHERE and other == CYLINDER:
        return swapped(cylinder_and_ball(S[j, SIZE], S[j, SIZE + 1], B, S[i, SIZE], A))
    a, r = core_of(S, i)
    b, s = core_of(S, j)
    W = np.empty((4, 7))
    return to_world(A, core_gap(a, P, b, P, seen_from(A, B), W), r, s)


@helper
def times(R, x, y, z):
    return R[0] * x + R[1] * y + R[2] * z, R[3] * x + R[4] * y + R[5] * z, R[6] * x + R[7] * y + R[8] * z


@helper
def to_world(A, found, r, s):
    """What was found between two cores, seen from A, as a gap in the world between them with their radii."""
    d, nx, ny, nz, ax, ay, az, bx, by, bz = found
    ax, ay, az = ax + r * nx, ay + r * ny, az + r * nz
    bx, by, bz = bx - s * nx, by - s * ny, bz - s * nz
    nx, ny, nz = times(A, nx, ny, nz)
    ax, ay, az = times(A, ax, ay, az)
    bx, by, bz = times(A, bx, by, bz)
    x, y, z = A[9], A[10], A[11]
    return d - r - s, nx, ny, nz, ax + x, ay + y, az + z, bx + x, by + y, bz + z


@helper
def swapped(found):
    d, nx, ny, nz, ax, ay, az, bx, by, bz = found
    return d, -nx, -ny, -nz, bx, by, bz, ax, ay, az


@part
def gap_to_ground(S, i, A, j, B, P):
    """The gap between a height field and another shape; of two fields, the smallest over the prisms of the second."""
    at = int(S[i, SIZE]), int(S[i, SIZE + 1]), int(S[i, SIZE + 2])
    T = seen_from(A, B)
    if int(S[j, KIND]) != FIELD:
        b, s = core_of(S, j)
        return to_world(A, ground_gap(P, at, b, P, T), 0.0, s)
    on = int(S[j, SIZE]), int(S[j, SIZE + 1]), int(S[j, SIZE + 2])
    Q = np.empty((6, 3))
    best = (math.inf, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for r in range(on[2]):
        for c in range(on[1]):
            for half in range(2):
                x, y, z = put_prism(P, on, c, r, half, Q)
                x, y, z = times(T, x, y, z)
                found = ground_gap(P, at, PRISM, Q, shifted(T, x, y, z))
                if found[0] < best[0]:
                    best = found
    return to_world(A, best, 0.0, 0.0)


@part
def gap_to_plane(S, i, A, B, P):
    """The gap between a shape and the half-space below z = 0 of B: how high the lowest point of the shape is."""
    x, y, z = -B[2], -B[5], -B[8]
    u, v, w = A[0] * x + A[3] * y + A[6] * z, A[1] * x + A[4] * y + A[7] * z, A[2] * x + A[5] * y + A[8] * z
    r = 0.0
    if int(S[i, KIND]) == FIELD:
        px, py, pz = farthest_of_ground(P, (int(S[i, SIZE]), int(S[i, SIZE + 1]), int(S[i, SIZE + 2])), u, v, w)
    else:
        core, r = core_of(S, i)
        px, py, pz = farthest(core, P, u, v, w)
    px, py, pz = times(A, px, py, pz)
    px, py, pz = px + A[9] + r * x, py + A[10] + r * y, pz + A[11] + r * z
    d = (B[9] - px) * x + (B[10] - py) * y + (B[11] - pz) * z
    return d, x, y, z, px, py, pz, px + d * x, py + d * y, pz + d * z


@part
def farthest_of_ground(P, at, x, y, z):
    bottom = bottom_of(P, at)
    px, py, pz, most = 0.0, 0.0, 0.0, -math.inf
    for k in range(corner(at, 0, 0), corner(at, at[1], at[2]) + 1):
        high = P[k, 2] if z > 0.0 else bottom
        along = P[k, 0] * x + P[k, 1] * y + high * z
        if along > most:
            px, py, pz, most = P[k, 0], P[k, 1], high, along
    return px, py, pz


@helper
def cylinder_and_ball(radius, half, A, r, B):
    """The gap between a cylinder and a ball: that of a point and a rectangle, in the plane of the axis."""
    x, y, z = B[9] - A[9], B[10] - A[10], B[11] - A[11]
    x, y, z = A[0] * x + A[3] * y + A[6] * z, A[1] * x + A[4] * y + A[7] * z, A[2] * x + A[5] * y + A[8] * z
    across = math.sqrt(x * x + y * y)
    ux, uy = (x / across, y / across) if across > 0.0 else (1.0, 0.0)
    side, up = across - radius, abs(z) - half
    if side > 0.0 and up > 0.0:
        d = math.sqrt(side * side + up * up)
        out, along = side / d, up / d
    elif side > up:
        d, out, along = side, 1.0, 0.0
    else:
        d, out, along = up, 0.0, 1.0
    nx, ny, nz = out * ux, out * uy, math.copysign(along, z)
    return to_world(A, (d, nx, ny, nz, x - d * nx, y - d * ny, z - d * nz, x, y, z), 0.0, r)
