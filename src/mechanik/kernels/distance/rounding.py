"""Small tools for gaps: cores with a radius, normals, and tuples (d, n, a, b) turned round.

A sphere is a point and a capsule a segment, with a radius. Gaps are found between these cores and then made smaller by
the radii: that is exact, in each other or not, since the support function of a sum is the sum of both.
"""

from __future__ import annotations

import math

from ..compiler import helper

TIE = 1e-14
"""Of the size of a pair: what is nearer than that is even. Some tens of roundings."""
NOTHING = 1e-100
"""Metres: shorter vectors have no direction. Their squares would soon be denormal."""


@helper
def widened(core, r, s):
    """The gap of two cores, with a radius r about the first and s about the second."""
    d, nx, ny, nz, ax, ay, az, bx, by, bz = core
    return (
        d - r - s, nx, ny, nz,
        ax + r * nx, ay + r * ny, az + r * nz,
        bx - s * nx, by - s * ny, bz - s * nz,
    )  # fmt: skip


@helper
def flipped(found):
    """The same gap seen from the other shape."""
    d, nx, ny, nz, ax, ay, az, bx, by, bz = found
    return d, -nx, -ny, -nz, bx, by, bz, ax, ay, az


@helper
def square_to(x, y, z):
    """A unit vector at a right angle to a unit vector; always the same one."""
    if abs(x) <= abs(y) and abs(x) <= abs(z):
        n = math.sqrt(y * y + z * z)
        return 0.0, -z / n, y / n
    if abs(y) <= abs(z):
        n = math.sqrt(x * x + z * z)
        return z / n, 0.0, -x / n
    n = math.sqrt(x * x + y * y)
    return -y / n, x / n, 0.0


@helper
def clamp(x, limit):
    return min(max(x, -limit), limit)


@helper
def into(B, x, y, z):
    """A vector of the world in the frame B."""
    return (
        B[0] * x + B[3] * y + B[6] * z,
        B[1] * x + B[4] * y + B[7] * z,
        B[2] * x + B[5] * y + B[8] * z,
    )  # fmt: skip


@helper
def out_of(B, x, y, z):
    """A vector of the frame B in the world."""
    return (
        B[0] * x + B[1] * y + B[2] * z,
        B[3] * x + B[4] * y + B[5] * z,
        B[6] * x + B[7] * y + B[8] * z,
    )  # fmt: skip


@helper
def in_world(B, d, n, a):
    """A gap d whose normal and first point are given in the frame B; the second point follows."""
    nx, ny, nz = out_of(B, n[0], n[1], n[2])
    ax, ay, az = out_of(B, a[0], a[1], a[2])
    ax, ay, az = ax + B[9], ay + B[10], az + B[11]
    return d, nx, ny, nz, ax, ay, az, ax + d * nx, ay + d * ny, az + d * nz
