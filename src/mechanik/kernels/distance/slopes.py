"""How a gap changes with each freedom: n . (velocity of the point on b - velocity of the point on a)."""

from __future__ import annotations

from ..compiler import helper, part
from ..layout import BALL, FIRST_V, KIND, PARENT, PRISMATIC, RATIO, REVOLUTE, SLIDE
from .watch_layout import NORMAL, POINT_A, POINT_B


@helper
def lever(W, node, axis, found, k, point):
    """How fast a turn of one rad/s about an axis of a node moves a point along the normal."""
    ax, ay, az = W[node, axis], W[node, 3 + axis], W[node, 6 + axis]
    x = found[k, point] - W[node, 9]
    y = found[k, point + 1] - W[node, 10]
    z = found[k, point + 2] - W[node, 11]
    return (
        found[k, NORMAL] * (ay * z - az * y)
        + found[k, NORMAL + 1] * (az * x - ax * z)
        + found[k, NORMAL + 2] * (ax * y - ay * x)
    )


@helper
def along(W, node, axis, found, k):
    """How much of an axis of a node points along the normal."""
    return (
        found[k, NORMAL] * W[node, axis]
        + found[k, NORMAL + 1] * W[node, 3 + axis]
        + found[k, NORMAL + 2] * W[node, 6 + axis]
    )


@helper
def add_slopes(nodes, W, node, found, k, point, sign, out, n, row):
    """Add what a node's motion does to one of the two points, along the normal."""
    kind, column, ratio = int(nodes[node, KIND]), int(nodes[node, FIRST_V]), nodes[node, RATIO]
    if kind == REVOLUTE:
        out[n, row, column] += sign * ratio * lever(W, node, 2, found, k, point)
    elif kind == PRISMATIC:
        out[n, row, column] += sign * ratio * along(W, node, 2, found, k)
    elif kind == SLIDE:
        for axis in range(3):
            out[n, row, column + axis] += sign * along(W, node, axis, found, k)
    elif kind == BALL:
        for axis in range(3):
            out[n, row, column + axis] += sign * lever(W, node, axis, found, k, point)


@part
def fill_slopes(nodes, W, a, b, found, k, out, n, row):
    """The derivative by v of the gap in row k of `found` into out[n, row] (nv,).

    What lies above both bodies moves both points alike, and the gap not at all.

    Args:
        W: the poses of the nodes, see `placing.py`.
        a, b: the nodes (-1: the world) that carry the two points.
    """
    for column in range(out.shape[2]):
        out[n, row, column] = 0.0
    while a != b:
        if a > b:
            add_slopes(nodes, W, a, found, k, POINT_A, -1.0, out, n, row)
            a = int(nodes[a, PARENT])
        else:
            add_slopes(nodes, W, b, found, k, POINT_B, 1.0, out, n, row)
            b = int(nodes[b, PARENT])
