"""Kinematic tree of a mechanism as a table of nodes; the pose of a node; a fast sine and cosine.

Each node has a parent and one motion of a kind (REVOLUTE to FIXED):

    X_world_node = X_world_parent X_parent_joint motion(q)

A node is a row of floats, a `Node`. All nodes are in one array, since each further array adds 0.05 us to a call from
Python.

Revolute nodes rotate about z and prismatic nodes translate along z, so the rotation of X_parent_joint maps z onto the
joint axis. The dofs of a node are motions about or along the axes of its pose X_world_node, so Jacobian columns follow
from this pose.

A pose is a tuple of 12 numbers, R row by row and p, because the compiler keeps tuples in registers.
"""

from __future__ import annotations

import math

from .compiler import inline
from .tables import Record, integer, number, numbers, records_opener

REVOLUTE, PRISMATIC, TRANSLATION, SPHERICAL, FIXED = 0, 1, 2, 3, 4
"""Node kinds: rotation about z; translation along z; translation xyz; unit quaternion wxyz; no motion."""


class Node(Record):
    """A node, whose parent is -1 for the world.

    Attributes:
        X_parent_joint: the fixed pose: R row by row, then p in m.
        ratio, offset: the motion of revolute and prismatic nodes is ratio * q + offset (rad or m).
        parent: the parent node.
        kind: the kind of its motion.
        first_q, first_v: first indices of the joint in q and in v.
        q_length, has_only_scalar_joints: of the fixed node that ends a chain, the length of q, and 1 if the chain has
            no TRANSLATION or SPHERICAL node.
    """

    X_parent_joint = numbers(12)
    ratio = number()
    offset = number()
    parent = integer()
    kind = integer()
    first_q = integer()
    first_v = integer()
    q_length = first_q
    has_only_scalar_joints = first_v


open_nodes = records_opener(Node)
"""Return the rows of an array of nodes (n, size of a `Node`) as records."""

INVERSE_PI = 1.0 / math.pi
# the sum of these three numbers is pi; the first two have at most 33 bits, so their products with integers up to 2**20
# are exact
PI_HIGH = 3.1415926534682512
PI_MIDDLE = 1.2154201012607932e-10
PI_LOW = 4.044532497591901e-21
# adding and subtracting 1.5 * 2**52 rounds to the nearest integer
ROUND_TO_INTEGER = 6755399441055744.0
BOUNDED_SINCOS_LIMIT = 1.0e6
"""Bound of the absolute angle (rad) for `bounded_sincos`."""


@inline
def bounded_sincos(x):
    """Return (sin x, cos x) for |x| below `BOUNDED_SINCOS_LIMIT` rad; x may be a vector of lanes.

    A multiple of pi is subtracted from x; minimax polynomials on [-pi/2, pi/2] then give the values.
    """
    half_turns = (x * INVERSE_PI + ROUND_TO_INTEGER) - ROUND_TO_INTEGER
    full_turns = (half_turns * 0.5 + ROUND_TO_INTEGER) - ROUND_TO_INTEGER
    parity = half_turns - 2.0 * full_turns
    sign = 1.0 - 2.0 * parity * parity
    remainder = ((x - half_turns * PI_HIGH) - half_turns * PI_MIDDLE) - half_turns * PI_LOW
    square = remainder * remainder
    sine_series = 2.731459307858414e-15 * square - 7.643971552545003e-13
    sine_series = sine_series * square + 1.6058977355068084e-10
    sine_series = sine_series * square - 2.5052107617712934e-08
    sine_series = sine_series * square + 2.755731921916942e-06
    sine_series = sine_series * square - 0.00019841269841254999
    sine_series = sine_series * square + 0.008333333333333316
    sine_series = sine_series * square - 0.16666666666666666
    cosine_series = 4.6277064517587724e-14 * square - 1.1464692516831921e-11
    cosine_series = cosine_series * square + 2.087663095668969e-09
    cosine_series = cosine_series * square - 2.7557317768822317e-07
    cosine_series = cosine_series * square + 2.4801587292459183e-05
    cosine_series = cosine_series * square - 0.0013888888888860763
    cosine_series = cosine_series * square + 0.04166666666666634
    cosine_series = cosine_series * square - 0.5
    return sign * (remainder + remainder * square * sine_series), sign * (1.0 + square * cosine_series)


@inline
def sincos(x):
    """Return (sin x, cos x) for x in rad, with errors below 4e-16."""
    if not abs(x) < BOUNDED_SINCOS_LIMIT:
        return math.sin(x), math.cos(x)
    return bounded_sincos(x)


IDENTITY_POSE = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)


@inline
def compose(A, B):
    """Return the product A B of two poses: for A = X_ab and B = X_bc it is X_ac."""
    a0, a1, a2, a3, a4, a5, a6, a7, a8, ax, ay, az = A
    b0, b1, b2, b3, b4, b5, b6, b7, b8, bx, by, bz = B
    return (
        a0 * b0 + a1 * b3 + a2 * b6, a0 * b1 + a1 * b4 + a2 * b7, a0 * b2 + a1 * b5 + a2 * b8,
        a3 * b0 + a4 * b3 + a5 * b6, a3 * b1 + a4 * b4 + a5 * b7, a3 * b2 + a4 * b5 + a5 * b8,
        a6 * b0 + a7 * b3 + a8 * b6, a6 * b1 + a7 * b4 + a8 * b7, a6 * b2 + a7 * b5 + a8 * b8,
        ax + a0 * bx + a1 * by + a2 * bz, ay + a3 * bx + a4 * by + a5 * bz, az + a6 * bx + a7 * by + a8 * bz,
    )  # fmt: skip


@inline
def pose_from_quaternion(w, x, y, z):
    """Return the pose at the origin with the rotation of a quaternion wxyz, whose length may be any except zero."""
    factor = 2.0 / (w * w + x * x + y * y + z * z)
    return (
        1.0 - factor * (y * y + z * z), factor * (x * y - w * z), factor * (x * z + w * y),
        factor * (x * y + w * z), 1.0 - factor * (x * x + z * z), factor * (y * z - w * x),
        factor * (x * z - w * y), factor * (y * z + w * x), 1.0 - factor * (x * x + y * y),
        0.0, 0.0, 0.0,
    )  # fmt: skip


@inline
def read_pose(row):
    """Return the first 12 numbers of a row as a pose."""
    return (
        row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8], row[9], row[10], row[11],
    )  # fmt: skip


@inline
def child_pose(X_world_parent, node, q, is_scalar):
    """Return the world pose of a node whose parent has the pose X_world_parent.

    The order of operations is tuned on a 7-joint arm; other orders are up to twice as slow. The motion is composed with
    the fixed pose (rotation f0 to f8, position x, y, z) first, since neither depends on X_world_parent. Every branch
    sets the sine s and the cosine c of the joint angle and the displacement d (m). TRANSLATION and SPHERICAL nodes are
    rare and come last; the compiler removes them if `is_scalar` is the constant True.
    """
    kind, k = node.kind, node.first_q
    f0, f1, f2, f3, f4, f5, f6, f7, f8, x, y, z = read_pose(node.X_parent_joint)
    if kind == REVOLUTE:
        s, c = sincos(node.ratio * q[k] + node.offset)
        d = 0.0
    elif kind == PRISMATIC:
        s, c = 0.0, 1.0
        d = node.ratio * q[k] + node.offset
    else:
        s, c = 0.0, 1.0
        d = 0.0
    X_parent_node = (
        f0 * c + f1 * s, f1 * c - f0 * s, f2,
        f3 * c + f4 * s, f4 * c - f3 * s, f5,
        f6 * c + f7 * s, f7 * c - f6 * s, f8,
        x + f2 * d, y + f5 * d, z + f8 * d,
    )  # fmt: skip
    X_world_node = compose(X_world_parent, X_parent_node)
    if is_scalar:
        return X_world_node
    if kind == TRANSLATION:
        return compose(X_world_node, (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, q[k], q[k + 1], q[k + 2]))
    if kind == SPHERICAL:
        return compose(X_world_node, pose_from_quaternion(q[k], q[k + 1], q[k + 2], q[k + 3]))
    return X_world_node
