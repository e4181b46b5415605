"""Gaps of many pairs at once, for Python."""

from __future__ import annotations

from ..compiler import kernel
from ..poses import read_pose
from .gap import gap


@kernel("void(f8[:,::1], f8[:,::1], f8[:,::1], i8[:,::1], f8[:,::1])")
def pair_gaps(S, P, X, pairs, out):
    """The gaps of `pairs` (k, 2) of shapes into out (k, 10): d, the normal from the first to the second, a, b.

    Args:
        S: the table of shapes (n, 24), see `shape_layout.py`; their kinds and sizes alone are read.
        P: points of hulls and height fields (m, 3).
        X: poses of the shapes in the world (n, 12).
    """
    for k in range(pairs.shape[0]):
        i, j = pairs[k, 0], pairs[k, 1]
        found = gap(S, i, read_pose(X[i]), j, read_pose(X[j]), P)
        for column in range(10):
            out[k, column] = found[column]
