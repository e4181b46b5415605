"""The gradient by differences: each joint is moved a little, and the change of the error is divided by how little.

A hand's pose is a product of matrices, one a joint: O A B C D E. With the products before and behind each joint kept,
moving C alone costs two multiplications, (O A B) C' (D E), however long the arm is, so all joints of a chain cost
as much as a few looks at the whole of it. The products before a joint are the poses of the nodes, which are there
already; those behind it are made on the way from the hand to the root.
"""

from __future__ import annotations

import numpy as np

from mechanik.kernels.layout import BALL, FIRST_V, FIXED, ROW, SLIDE
from mechanik.kernels.layout import KIND as KIND_OF_NODE
from mechanik.kernels.problem import (
    BLOCK_INTS,
    DISTANCE,
    HAS_BANDS,
    KIND,
    LOCKED,
    NODE_A,
)
from mechanik.solvers.problem import Problem
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

differences_kernel = kernel_module("methods.finite_differences")

NOT_MOVED = -1


class Differences:
    """The gradient of a problem by forward differences.

    Args:
        d: how far each joint is moved: rad, or sizes of the mechanism.
    """

    __slots__ = ("_columns", "_d", "_end", "_tables")

    def __init__(self, problem: Problem, d: float) -> None:
        packed = problem.part.packed
        self._tables, self._end, self._d = (packed.ints, packed.floats), problem._required, d
        column_of = {int(v): k for k, v in enumerate(packed.columns) if v >= 0 and packed.at["ban"][k] != LOCKED}
        nodes = packed.at["nodes"].reshape(-1, ROW)
        self._columns = np.full((len(nodes), 3), NOT_MOVED, dtype=np.int64)
        for i, node in enumerate(nodes):
            kind, first = int(node[KIND_OF_NODE]), int(node[FIRST_V])
            count = 0 if kind == FIXED else 3 if kind in (SLIDE, BALL) else 1
            self._columns[i, :count] = [column_of.get(first + way, NOT_MOVED) for way in range(count)]

    def write(self, gradient: Array) -> None:
        """Where the problem stands, into (n,)."""
        differences_kernel.difference_gradient(*self._tables, self._end, self._columns, self._d, gradient)


def misfit(problem: Problem) -> str:
    """What of a problem is no chain from the world to a hand; nothing if each of its goals is one."""
    blocks = problem.part.packed.at["blocks"].reshape(-1, BLOCK_INTS)[: problem._required]
    if problem.closures:
        return "cannot shut loops"
    if np.any(blocks[:, KIND] > DISTANCE):
        return "knows frames of links alone, no joint values, centres of mass or functions"
    if np.any(blocks[:, NODE_A] >= 0):
        return "takes goals that stand in the world, not those that move themselves"
    return "knows no bands" if np.any(blocks[:, HAS_BANDS]) else ""
