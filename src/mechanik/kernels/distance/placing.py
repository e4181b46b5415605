"""Where the nodes, shapes and bodies of a mechanism are in the world at some configuration.

All of it is one array W (nodes + moving shapes + moving bodies, 16), since each further array costs a call: the poses
of the nodes; of the shapes, with the middle of their ball at 12 and 1 at 15 once they are placed; the middles of the
bodies at 12.
"""

from __future__ import annotations

import numpy as np

from ..compiler import helper, part
from ..layout import PARENT
from ..poses import WORLD, composed, moved
from .shape_layout import BALL, POSE
from .watch_layout import BODY_BALL, BODY_NODE, FIRST_SHAPE, SHAPES

MIDDLE, IS_PLACED, PLACE_FLOATS = 12, 15, 16


@helper
def pose_at(rows, i, k):
    """The pose that begins at number k of row i; a view of the row would cost as much again."""
    return (
        rows[i, k], rows[i, k + 1], rows[i, k + 2], rows[i, k + 3], rows[i, k + 4], rows[i, k + 5],
        rows[i, k + 6], rows[i, k + 7], rows[i, k + 8], rows[i, k + 9], rows[i, k + 10], rows[i, k + 11],
    )  # fmt: skip


@helper
def carried(X, x, y, z):
    """A point, seen from where X is given."""
    return (
        X[9] + X[0] * x + X[1] * y + X[2] * z,
        X[10] + X[3] * x + X[4] * y + X[5] * z,
        X[11] + X[6] * x + X[7] * y + X[8] * z,
    )


@part
def place(nodes, bodies, first_shape, first_body, q, W):
    """Poses of all nodes and middles of all moving bodies; whether they and q are finite.

    Args:
        first_shape, first_body: where the shapes and the bodies begin in W.
    """
    total = 0.0
    for k in range(q.shape[0]):
        total += q[k]
    for i in range(nodes.shape[0]):
        parent = int(nodes[i, PARENT])
        X = moved(pose_at(W, parent, 0) if parent >= 0 else WORLD, nodes[i], q, False)
        for k in range(12):
            W[i, k] = X[k]
    for i in range(first_shape, first_body):
        W[i, IS_PLACED] = 0.0
    for row in range(first_body, W.shape[0]):
        b = row - first_body
        X = pose_at(W, int(bodies[b, BODY_NODE]), 0)
        x, y, z = carried(X, bodies[b, BODY_BALL], bodies[b, BODY_BALL + 1], bodies[b, BODY_BALL + 2])
        W[row, MIDDLE], W[row, MIDDLE + 1], W[row, MIDDLE + 2] = x, y, z
        total += x + y + z
    return np.isfinite(total)


@part
def place_shapes(S, bodies, b, first_shape, W):
    """Poses and middles of the shapes of a moving body."""
    X = pose_at(W, int(bodies[b, BODY_NODE]), 0)
    first = int(bodies[b, FIRST_SHAPE])
    for i in range(first, first + int(bodies[b, SHAPES])):
        row = first_shape + i
        Y = composed(X, pose_at(S, i, POSE))
        for k in range(12):
            W[row, k] = Y[k]
        x, y, z = carried(X, S[i, BALL], S[i, BALL + 1], S[i, BALL + 2])
        W[row, MIDDLE], W[row, MIDDLE + 1], W[row, MIDDLE + 2], W[row, IS_PLACED] = x, y, z, 1.0
