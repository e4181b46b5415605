"""Balls that are welded to something: they turn as the weld wants it, and it is enough to do that in the end."""

from __future__ import annotations

import math

from .compiler import part
from .problem import *
from .relative_pose import IDENTITY
from .rows import place_nodes, read_rotation


@part
def turn_by_fixed(F, poses, node, fixed):
    """The rotation of axes that are fixed in a node (-1: in the world), row by row."""
    a = read_rotation(F, poses + 12 * node) if node >= 0 else IDENTITY
    b = read_rotation(F, fixed)
    return (
        a[0] * b[0] + a[1] * b[3] + a[2] * b[6], a[0] * b[1] + a[1] * b[4] + a[2] * b[7],
        a[0] * b[2] + a[1] * b[5] + a[2] * b[8],
        a[3] * b[0] + a[4] * b[3] + a[5] * b[6], a[3] * b[1] + a[4] * b[4] + a[5] * b[7],
        a[3] * b[2] + a[4] * b[5] + a[5] * b[8],
        a[6] * b[0] + a[7] * b[3] + a[8] * b[6], a[6] * b[1] + a[7] * b[4] + a[8] * b[7],
        a[6] * b[2] + a[7] * b[5] + a[8] * b[8],
    )  # fmt: skip


@part
def read_off(I, F, x):
    """Turn the balls that are read off, for all else as it is in x, by the quaternion that is nearer to the last."""
    place_nodes(I, F, x)
    poses = I[AT_POSES]
    for i in range(I[N_READ_OFF]):
        at = I[AT_READ_OFF] + READ_OFF_FLOATS * i
        k = x + int(F[at + R_X])
        A = turn_by_fixed(F, poses, int(F[at + R_CARRIER]), at + R_FIXED)
        B = turn_by_fixed(F, poses, int(F[at + R_OTHER]), at + R_WANTED)
        # Q = A'B; the largest of four products is never small, so nothing is lost
        xx, xy, xz = (
            A[0] * B[0] + A[3] * B[3] + A[6] * B[6],
            A[0] * B[1] + A[3] * B[4] + A[6] * B[7],
            A[0] * B[2] + A[3] * B[5] + A[6] * B[8],
        )
        yx, yy, yz = (
            A[1] * B[0] + A[4] * B[3] + A[7] * B[6],
            A[1] * B[1] + A[4] * B[4] + A[7] * B[7],
            A[1] * B[2] + A[4] * B[5] + A[7] * B[8],
        )
        zx, zy, zz = (
            A[2] * B[0] + A[5] * B[3] + A[8] * B[6],
            A[2] * B[1] + A[5] * B[4] + A[8] * B[7],
            A[2] * B[2] + A[5] * B[5] + A[8] * B[8],
        )
        tw, tx, ty, tz = 1.0 + xx + yy + zz, 1.0 + xx - yy - zz, 1.0 - xx + yy - zz, 1.0 - xx - yy + zz
        if tw >= tx and tw >= ty and tw >= tz:
            w, a, b, c = tw, zy - yz, xz - zx, yx - xy
        elif tx >= ty and tx >= tz:
            w, a, b, c = zy - yz, tx, xy + yx, xz + zx
        elif ty >= tz:
            w, a, b, c = xz - zx, xy + yx, ty, yz + zy
        else:
            w, a, b, c = yx - xy, xz + zx, yz + zy, tz
        size = math.sqrt(w * w + a * a + b * b + c * c)
        if w * F[k] + a * F[k + 1] + b * F[k + 2] + c * F[k + 3] < 0.0:
            size = -size
        F[k], F[k + 1], F[k + 2], F[k + 3] = w / size, a / size, b / size, c / size
