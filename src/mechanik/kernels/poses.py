"""Poses as tuples of 12 numbers, R row by row and p: tuples live in registers."""

from __future__ import annotations

from .compiler import helper
from .layout import BALL, FIRST_Q, KIND, OFFSET, PRISMATIC, RATIO, REVOLUTE, SLIDE
from .trigonometry import sincos

WORLD = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)


@helper
def composed(A, B):
    """The pose B, which is given in A."""
    a0, a1, a2, a3, a4, a5, a6, a7, a8, ax, ay, az = A
    b0, b1, b2, b3, b4, b5, b6, b7, b8, bx, by, bz = B
    return (
        a0 * b0 + a1 * b3 + a2 * b6, a0 * b1 + a1 * b4 + a2 * b7, a0 * b2 + a1 * b5 + a2 * b8,
        a3 * b0 + a4 * b3 + a5 * b6, a3 * b1 + a4 * b4 + a5 * b7, a3 * b2 + a4 * b5 + a5 * b8,
        a6 * b0 + a7 * b3 + a8 * b6, a6 * b1 + a7 * b4 + a8 * b7, a6 * b2 + a7 * b5 + a8 * b8,
        ax + a0 * bx + a1 * by + a2 * bz, ay + a3 * bx + a4 * by + a5 * bz, az + a6 * bx + a7 * by + a8 * bz,
    )  # fmt: skip


@helper
def turn(w, x, y, z):
    """The pose of a quaternion; one that drifted off the unit sphere still turns."""
    n = 2.0 / (w * w + x * x + y * y + z * z)
    return (
        1.0 - n * (y * y + z * z), n * (x * y - w * z), n * (x * z + w * y),
        n * (x * y + w * z), 1.0 - n * (x * x + z * z), n * (y * z - w * x),
        n * (x * z - w * y), n * (y * z + w * x), 1.0 - n * (x * x + y * y),
        0.0, 0.0, 0.0,
    )  # fmt: skip


@helper
def read_pose(row):
    return (
        row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8], row[9], row[10], row[11],
    )  # fmt: skip


@helper
def moved(X, node, q, plain):
    """The pose of a node below a node of pose X.

    The shape of this code was measured on a 7-joint arm. The motion is joined to the fixed part, which does not
    wait for X; every branch sets s, c and d; the two rare kinds come last, and are left out where `plain` is a
    constant True. Other orders are up to twice as slow.
    """
    kind, k = int(node[KIND]), int(node[FIRST_Q])
    f0, f1, f2, f3, f4, f5, f6, f7, f8, x, y, z = read_pose(node)
    if kind == REVOLUTE:
        s, c = sincos(node[RATIO] * q[k] + node[OFFSET])
        d = 0.0
    elif kind == PRISMATIC:
        s, c = 0.0, 1.0
        d = node[RATIO] * q[k] + node[OFFSET]
    else:
        s, c = 0.0, 1.0
        d = 0.0
    motion = (
        f0 * c + f1 * s, f1 * c - f0 * s, f2,
        f3 * c + f4 * s, f4 * c - f3 * s, f5,
        f6 * c + f7 * s, f7 * c - f6 * s, f8,
        x + f2 * d, y + f5 * d, z + f8 * d,
    )  # fmt: skip
    Y = composed(X, motion)
    if plain:
        return Y
    if kind == SLIDE:
        return composed(Y, (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, q[k], q[k + 1], q[k + 2]))
    if kind == BALL:
        return composed(Y, turn(q[k], q[k + 1], q[k + 2], q[k + 3]))
    return Y
