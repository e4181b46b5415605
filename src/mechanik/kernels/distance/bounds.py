"""Bounds that tell cheaply that two things are far apart. A point is a row of an array and where it begins there."""

from __future__ import annotations

import math

from ..compiler import helper
from .shape_layout import POSE
from .watch_layout import HIGH, LOW


@helper
def are_apart(A, i, k, B, j, m, reach):
    """Whether two points are at least `reach` apart."""
    x, y, z = A[i, k] - B[j, m], A[i, k + 1] - B[j, m + 1], A[i, k + 2] - B[j, m + 2]
    return reach <= 0.0 or x * x + y * y + z * z >= reach * reach


@helper
def outside(tree, row, A, i, k):
    """How far a point is outside the box of a row of the tree; below zero how deep inside."""
    x = max(tree[row, LOW] - A[i, k], A[i, k] - tree[row, HIGH])
    y = max(tree[row, LOW + 1] - A[i, k + 1], A[i, k + 1] - tree[row, HIGH + 1])
    z = max(tree[row, LOW + 2] - A[i, k + 2], A[i, k + 2] - tree[row, HIGH + 2])
    deepest = max(x, y, z)
    if deepest <= 0.0:
        return deepest
    x, y, z = max(x, 0.0), max(y, 0.0), max(z, 0.0)
    return math.sqrt(x * x + y * y + z * z)


@helper
def above(S, j, A, i, k):
    """How far a point is above a half-space."""
    x, y, z = A[i, k] - S[j, POSE + 9], A[i, k + 1] - S[j, POSE + 10], A[i, k + 2] - S[j, POSE + 11]
    return S[j, POSE + 2] * x + S[j, POSE + 5] * y + S[j, POSE + 8] * z
