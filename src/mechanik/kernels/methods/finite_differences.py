"""Gradients by finite differences of the cost, one column at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from mechanik.spatial.array import Array

from ..compiler import helper, kernel
from ..layout import BALL, FIRST_Q, PARENT, ROW
from ..layout import KIND as KIND_OF_NODE
from ..poses import WORLD, composed, moved
from ..problem import (
    AT_BLOCKS,
    AT_DATA,
    AT_NODES,
    AT_POSES,
    AT_SCALE,
    AT_TRIAL,
    AT_WEIGHT,
    AXES_C,
    BLOCK_FLOATS,
    BLOCK_INTS,
    FIRST_ROW,
    FRAME_A,
    FRAME_B,
    IN_WORLD,
    KIND,
    MASK,
    NODE_B,
)
from ..relative_pose import by_kind, times_transposed, under, under_matrix
from ..rows import read_pose_at, read_rotation


@helper
def half_square(ints: Any, floats: Any, b: int, B: Any) -> float:
    """Half the sum of squares of the rows of a block with its frame B at a pose, and its frame A fixed to the world."""
    block, data = ints[AT_BLOCKS] + BLOCK_INTS * b, ints[AT_DATA] + BLOCK_FLOATS * b
    A = read_pose_at(floats, data + FRAME_A)
    C = read_rotation(floats, data + AXES_C) if ints[block + IN_WORLD] == 1 else read_rotation(floats, data + FRAME_A)
    x, y, z = under(C, B[9] - A[9], B[10] - A[10], B[11] - A[11])
    Q = under_matrix(C, B)
    if ints[block + IN_WORLD] == 1:
        Q = times_transposed(Q, under_matrix(C, A))
    numbers = by_kind(ints[block + KIND], x, y, z, Q)
    rows = (numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5])
    total, k = 0.0, ints[AT_WEIGHT] + ints[block + FIRST_ROW]
    for r in range(6):
        if ints[block + MASK] & (1 << r):
            total += (floats[k] * rows[r]) ** 2
            k += 1
    return 0.5 * total


@helper
def shift(floats: Any, k: int, way: int, is_ball: bool, d: float) -> None:
    """Move one freedom of a node by d; the numbers of the node are at k. A ball turns about one of its own axes."""
    if not is_ball:
        floats[k + way] += d
        return
    w, x, y, z = floats[k], floats[k + 1], floats[k + 2], floats[k + 3]
    c, s = np.cos(0.5 * d), np.sin(0.5 * d)
    a, b, e = (s if way == 0 else 0.0), (s if way == 1 else 0.0), (s if way == 2 else 0.0)
    floats[k], floats[k + 1] = w * c - x * a - y * b - z * e, w * a + x * c + y * e - z * b
    floats[k + 2], floats[k + 3] = w * b - x * e + y * c + z * a, w * e + x * b - y * a + z * c


@kernel("void(i8[::1], f8[::1], i8, i8[:,::1], f8, f8[::1])")
def difference_gradient(
    ints: np.ndarray[Any, Any], floats: Array, end: int, columns: np.ndarray[Any, Any], d: float, gradient: Array
) -> None:
    """The gradient of half the cost by forward differences.

    Args:
        end: how many blocks count.
        columns: (nodes, 3), which columns the freedoms of a node are; -1 for those that there are not.
        d: in units of the columns.
        gradient: (n,), written.
    """
    nodes, poses, trial = ints[AT_NODES], ints[AT_POSES], ints[AT_TRIAL]
    q = floats[trial:]
    for v in range(gradient.shape[0]):
        gradient[v] = 0.0
    for b in range(end):
        i = ints[ints[AT_BLOCKS] + BLOCK_INTS * b + NODE_B]
        tail = read_pose_at(floats, ints[AT_DATA] + BLOCK_FLOATS * b + FRAME_B)
        loss = half_square(ints, floats, b, composed(read_pose_at(floats, poses + 12 * i), tail) if i >= 0 else tail)
        while i >= 0:
            node = floats[nodes + ROW * i : nodes + ROW * i + ROW]
            parent, is_ball = int(node[PARENT]), int(node[KIND_OF_NODE]) == BALL
            first = trial + int(node[FIRST_Q])
            before = read_pose_at(floats, poses + 12 * parent) if parent >= 0 else WORLD
            for way in range(3):
                v = columns[i, way]
                if v >= 0:
                    size = d if is_ball else d * floats[ints[AT_SCALE] + v]
                    w, x, y, z = floats[first], floats[first + 1], floats[first + 2], floats[first + 3]
                    shift(floats, first, way, is_ball, size)
                    there = composed(moved(before, node, q, False), tail)
                    gradient[v] += (half_square(ints, floats, b, there) - loss) / d
                    floats[first], floats[first + 1], floats[first + 2], floats[first + 3] = w, x, y, z
            tail = composed(moved(WORLD, node, q, False), tail)
            i = parent
