"""The gap between two convex cores, with a normal that is good at a gap of 0 too.

The way between two cores comes from a walk (`cylinder_way.py`) when they are apart, and from a polytope
(`penetration.py`) when they are not. Both lose the normal where they meet, at a gap of 0, and a polytope is slow on
round shapes. Hence the normal is settled by another walk, after B was shifted away along the normal found so far: the
nearest points are the same ones, but now there is a way between them.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import helper, part
from .cylinder_way import shortest_way
from .penetration import (
    CORNERS,
    ENOUGH,
    FACES,
    first_polytope,
    grow_until,
    unit,
)  # fmt: skip
from .shape_layout import CYLINDER
from .support import farthest_difference

APART = 1e-2
"""Share of the size by which cores are parted to settle their normal, and above which a walk is good enough."""
NEAREST = 1e-7
"""Cores that are parted by less than this share of the size have no better normal than before."""
SETTLED, TURNED = 1e-14, 1e-20
"""By what share of the size a round must make them shallower; the square of how much it may turn the normal."""
ROUNDS, LEAPS = 30, 20
SHARE, SAME, TRIES = 1e-6, 0.999992, 4
"""How far a polytope grows first; the cosine of 0.004 rad, within which two normals lead to the same way out; how many
ways out are tried before it grows on. Of 140,000 pairs of cylinders and others, a SHARE of 1e-4 missed 7 ways out; of
560,000, this one missed none, but for cylinders and capsules about the same axis, where all are alike to 1e-8."""
NO_WAY = (-math.inf, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@part
def core_gap(a, U, b, V, T, W):
    """The gap between two cores: (gap, normal, point of A, point of B), all in A.

    Args:
        a, U, b, V: the cores and their points; T: the pose of B in A.
        W: (4, 7), to work in.
    """
    vx, vy, vz, ax, ay, az, size = shortest_way(a, U, b, V, T, W, T[9], T[10], T[11])
    apart = size > 0.0
    if apart:
        d = math.sqrt(vx * vx + vy * vy + vz * vz)
        nx, ny, nz = -vx / d, -vy / d, -vz / d
        if d > APART * size:
            return d, nx, ny, nz, ax, ay, az, ax - vx, ay - vy, az - vz
        depth = depth_along(a, U, b, V, T, nx, ny, nz)
        return settled(a, U, b, V, T, W, nx, ny, nz, depth, size)
    return way_out(a, U, b, V, T, W)


@part
def way_out(a, U, b, V, T, W):
    """The gap between two cores that are in each other, as `core_gap`.

    A polytope comes to a round surface slowly. So it grows only until its faces bound the depth to a SHARE. By then, a
    way out that is shorter than the one found is within sqrt(2 SHARE) rad of the normal of a face that is nearer to
    the origin than that: each such normal is settled too, unless one beside it was. Where they are many, as for one
    cylinder in another that is nearly along it, the polytope grows on.
    """
    C, M, best = np.empty((CORNERS + 2, 3)), np.empty((TRIES, 3)), np.empty(4)
    F, N, E = np.empty((FACES, 3), np.int64), np.empty((FACES, 5)), np.empty((3 * FACES, 2), np.int64)
    size, faces = first_polytope(a, U, b, V, T, C, F, N, E, best)
    is_round = (a[0] == CYLINDER and a[1] > 0.0) or (b[0] == CYLINDER and b[1] > 0.0)
    found, corners, tries = NO_WAY, 4, 0
    for stage in range(0 if is_round else 1, 2):
        if faces > 0:
            share = SHARE if stage == 0 else 0.0
            corners, faces = grow_until(a, U, b, V, T, C, F, N, E, best, corners, faces, size, share)
        for f in range(-1, faces + 2):
            nx, ny, nz, depth = best[0], best[1], best[2], best[3]
            if 0 <= f < faces:
                if stage == 1 or N[f, 3] >= -found[0] - ENOUGH * size:
                    continue
                nx, ny, nz = N[f, 0], N[f, 1], N[f, 2]
                is_known = False
                for k in range(tries):
                    is_known = is_known or nx * M[k, 0] + ny * M[k, 1] + nz * M[k, 2] > SAME
                if is_known:
                    continue
                if tries == TRIES:
                    tries += 1
                    break
                depth = depth_along(a, U, b, V, T, nx, ny, nz)
            elif f >= faces:
                # one cylinder in another, nearly along it: all ways out across them are nearly as good as each other,
                # and the best is opposite, or along the way from axis to axis
                nx, ny, nz = (-found[1], -found[2], -found[3]) if f == faces else unit(T[9], T[10], 0.0)
                depth = depth_along(a, U, b, V, T, nx, ny, nz)
                if depth >= -found[0]:
                    continue
            other = settled(a, U, b, V, T, W, nx, ny, nz, depth, size)
            if f < faces and tries < TRIES:
                M[tries, 0], M[tries, 1], M[tries, 2] = other[1], other[2], other[3]
                tries += 1
            if other[0] > found[0]:
                found = other
        if tries <= TRIES:
            break
    return found


@helper
def depth_along(a, U, b, V, T, x, y, z):
    """The shift of B along a unit vector that parts two cores; below zero if they are apart along it."""
    wx, wy, wz, _, _, _ = farthest_difference(a, U, b, V, T, x, y, z)
    return wx * x + wy * y + wz * z


@part
def settled(a, U, b, V, T, W, nx, ny, nz, depth, size):
    """The gap between cores whose normal is known roughly, to rounding.

    Where the surface of A - B has radius R, an error of the normal becomes smaller by depth / R or so in a round;
    flat faces take one. Where the two are nearly equal, as for one cylinder in another, rounds would be many: so
    each goes on in its direction as long as that helps.
    """
    ax, ay, az, bx, by, bz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    margin, is_last = APART, False
    for _ in range(ROUNDS):
        s = depth + margin * size
        sx, sy, sz = s * nx, s * ny, s * nz
        vx, vy, vz, px, py, pz, found = shortest_way(a, U, b, V, shifted(T, sx, sy, sz), W, nx, ny, nz)
        if found <= 0.0:  # all sizes are 0
            break
        ax, ay, az, bx, by, bz = px, py, pz, px - vx - sx, py - vy - sy, pz - vz - sz
        d = math.sqrt(vx * vx + vy * vy + vz * vz)
        x, y, z = -vx / d, -vy / d, -vz / d
        less = depth - depth_along(a, U, b, V, T, x, y, z)
        if less < -SETTLED * size and margin > NEAREST:
            margin *= 1e-3  # beside a sharp edge a large shift leads past it
            continue
        if less <= 0.0:
            break
        dx, dy, dz, far = x - nx, y - ny, z - nz, 4.0
        for _ in range(LEAPS):
            ux, uy, uz = unit(nx + far * dx, ny + far * dy, nz + far * dz)
            more = depth - depth_along(a, U, b, V, T, ux, uy, uz)
            if more <= less:
                break
            x, y, z, less, far = ux, uy, uz, more, 4.0 * far
        turned = (x - nx) ** 2 + (y - ny) ** 2 + (z - nz) ** 2
        nx, ny, nz, depth = x, y, z, depth - less
        if less <= SETTLED * size:
            if is_last or turned < TURNED:
                break
            is_last = True  # the points are those of the normal before
    x, y, z = 0.5 * (ax + bx), 0.5 * (ay + by), 0.5 * (az + bz)
    h = 0.5 * depth
    return -depth, nx, ny, nz, x + h * nx, y + h * ny, z + h * nz, x - h * nx, y - h * ny, z - h * nz


@helper
def shifted(T, x, y, z):
    return T[0], T[1], T[2], T[3], T[4], T[5], T[6], T[7], T[8], T[9] + x, T[10] + y, T[11] + z
