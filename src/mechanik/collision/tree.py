"""A tree of boxes over what stands still, halved again and again, so that a look into it is short."""

from __future__ import annotations

import numpy as np

from mechanik.kernels.distance.watch_layout import CHILD, HIGH, LOW, TREE_FLOATS, TREE_SHAPE
from mechanik.spatial.array import Array


def build_tree(low: Array, high: Array, first: int) -> Array:
    """A tree in the layout of `watch_layout`, (2n - 1, 8); (0, 8) without shapes.

    Args:
        low, high: (n, 3), the boxes of the shapes.
        first: the number of the first shape.
    """
    count = len(low)
    tree = np.zeros((max(0, 2 * count - 1), TREE_FLOATS))
    if not count:
        return tree
    middle = (low + high) / 2
    free, waiting = 1, [(0, np.arange(count))]
    while waiting:
        row, some = waiting.pop()
        tree[row, LOW : LOW + 3], tree[row, HIGH : HIGH + 3] = low[some].min(axis=0), high[some].max(axis=0)
        if len(some) == 1:
            tree[row, TREE_SHAPE] = first + some[0]
            continue
        along = int(np.ptp(middle[some], axis=0).argmax())
        order = some[np.argsort(middle[some, along], kind="stable")]
        tree[row, CHILD], tree[row, TREE_SHAPE] = free, -1
        half = len(order) // 2
        waiting += [(free, order[:half]), (free + 1, order[half:])]
        free += 2
    return tree


def refit_tree(tree: Array, shape: int, low: Array, high: Array) -> None:
    """Put a shape's new box into its leaf, and widen or shrink all that is above; the order stays as it was."""
    leaves = np.flatnonzero(tree[:, TREE_SHAPE] == shape)
    if not len(leaves):
        return
    row = int(leaves[0])
    tree[row, LOW : LOW + 3], tree[row, HIGH : HIGH + 3] = low, high
    parents = np.zeros(len(tree), np.int64)
    inner = np.flatnonzero(tree[:, TREE_SHAPE] < 0)
    first = tree[inner, CHILD].astype(np.int64)
    parents[first] = parents[first + 1] = inner
    while row:
        row = int(parents[row])
        child = int(tree[row, CHILD])
        tree[row, LOW : LOW + 3] = tree[child : child + 2, LOW : LOW + 3].min(axis=0)
        tree[row, HIGH : HIGH + 3] = tree[child : child + 2, HIGH : HIGH + 3].max(axis=0)
