"""The gap between two convex cores, with a normal that is good at a gap of 0 too.

The way between two cores comes from a walk (`gjk.py`) when they are apart, and from a polytope (`penetration.py`) when
they are not. Both lose the normal where they meet, at a gap of 0, and a polytope is slow on round shapes. Hence the
normal is settled by another walk, after B was shifted away along the normal found so far: the nearest points are the
same ones, but now there is a way between them.
"""

from __future__ import annotations

import math

from mechanik.kernels.compiler import helper, part
from mechanik.kernels.distance.gjk import walk
from mechanik.kernels.distance.penetration import shortest_way_out, unit
from mechanik.kernels.distance.support import farthest_difference

APART = 1e-2
"""Share of the size by which cores are parted to settle their normal, and above which a walk is good enough."""
NEAREST = 1e-7
"""Cores that are parted by less than this share of the size have no better normal than before."""
SETTLED, TURNED = 1e-14, 1e-20
"""By what share of the size a round must make them shallower; the square of how much it may turn the normal."""
ROUNDS, LEAPS = 30, 20


@part
def core_gap(a, U, b, V, T, W):
    """The gap between two cores: (gap, normal, point of A, point of B), all in A.

    Args:
        a, U, b, V: the cores and their points; T: the pose of B in A.
        W: (4, 7), to work in.
    """
    vx, vy, vz, ax, ay, az, size = walk(a, U, b, V, T, W, math.inf, T[9], T[10], T[11])
    apart = size > 0.0
    if apart:
        d = math.sqrt(vx * vx + vy * vy + vz * vz)
        nx, ny, nz = -vx / d, -vy / d, -vz / d
        if d > APART * size:
            return d, nx, ny, nz, ax, ay, az, ax - vx, ay - vy, az - vz
        depth = depth_along(a, U, b, V, T, nx, ny, nz)
    else:
        nx, ny, nz, depth, size = shortest_way_out(a, U, b, V, T)
    found = settled(a, U, b, V, T, W, nx, ny, nz, depth, size)
    if apart:
        return found
    # one cylinder in another, nearly along it: all ways out across them are nearly as good as each other, and the best
    # is opposite, or along the way from axis to axis
    for k in range(2):
        nx, ny, nz = (-found[1], -found[2], -found[3]) if k == 0 else unit(T[9], T[10], 0.0)
        depth = depth_along(a, U, b, V, T, nx, ny, nz)
        if depth < -found[0]:
            found = settled(a, U, b, V, T, W, nx, ny, nz, depth, size)
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
        vx, vy, vz, px, py, pz, found = walk(a, U, b, V, shifted(T, sx, sy, sz), W, math.inf, nx, ny, nz)
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
