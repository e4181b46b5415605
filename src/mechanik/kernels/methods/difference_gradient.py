"""Gradient of the cost by forward differences, a column at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from mechanik.spatial.array import Array

from ..compiler import inline, kernel
from ..nodes import FIRST_Q, IDENTITY_POSE, NODE_FLOATS, PARENT, SPHERICAL, child_pose, compose
from ..nodes import NODE_KIND as KIND_OF_NODE
from ..problem_layout import (
    AT_BLOCK_DATA,
    AT_BLOCKS,
    AT_NODES,
    AT_POSES,
    AT_SCALE,
    AT_TRIAL,
    AT_WEIGHT,
    AXES_C,
    BLOCK_FLOATS,
    BLOCK_INTS,
    BLOCK_KIND,
    FIRST_ROW,
    FRAME_A,
    FRAME_B,
    IN_WORLD,
    NODE_B,
    ROW_MASK,
)
from ..relative_pose import residual_of_kind, rotate_inverse, times_transposed, transposed_times
from ..residuals import read_pose_at, read_rotation


@inline
def half_squared_residual(ints: Any, floats: Any, b: int, B: Any) -> float:
    """Half the sum of squares of a block with its frame B at the pose B, and its frame A fixed in the world."""
    block, data = ints[AT_BLOCKS] + BLOCK_INTS * b, ints[AT_BLOCK_DATA] + BLOCK_FLOATS * b
    A = read_pose_at(floats, data + FRAME_A)
    C = read_rotation(floats, data + AXES_C) if ints[block + IN_WORLD] == 1 else read_rotation(floats, data + FRAME_A)
    x, y, z = rotate_inverse(C, B[9] - A[9], B[10] - A[10], B[11] - A[11])
    Q = transposed_times(C, B)
    if ints[block + IN_WORLD] == 1:
        Q = times_transposed(Q, transposed_times(C, A))
    numbers = residual_of_kind(ints[block + BLOCK_KIND], x, y, z, Q)
    rows = (numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5])
    total, k = 0.0, ints[AT_WEIGHT] + ints[block + FIRST_ROW]
    for r in range(6):
        if ints[block + ROW_MASK] & (1 << r):
            total += (floats[k] * rows[r]) ** 2
            k += 1
    return 0.5 * total


@inline
def perturb_dof(floats: Any, k: int, way: int, is_ball: bool, d: float) -> None:
    """Move a dof of a node by d (a spherical joint rotates about an own axis); the node's numbers begin at k."""
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
    """Write the gradient of half the sum of squares by forward differences.

    Args:
        ints, floats: the packed problem; the poses belong to the table `trial`.
        end: number of blocks that count.
        columns: (nodes, 3), the columns of the dofs of a node; -1 for none.
        d: difference, in units of the columns.
        gradient: (n,), written.
    """
    nodes, poses, trial = ints[AT_NODES], ints[AT_POSES], ints[AT_TRIAL]
    q = floats[trial:]
    for v in range(gradient.shape[0]):
        gradient[v] = 0.0
    for b in range(end):
        i = ints[ints[AT_BLOCKS] + BLOCK_INTS * b + NODE_B]
        tail = read_pose_at(floats, ints[AT_BLOCK_DATA] + BLOCK_FLOATS * b + FRAME_B)
        loss = half_squared_residual(
            ints, floats, b, compose(read_pose_at(floats, poses + 12 * i), tail) if i >= 0 else tail
        )
        while i >= 0:
            node = floats[nodes + NODE_FLOATS * i : nodes + NODE_FLOATS * i + NODE_FLOATS]
            parent, is_ball = int(node[PARENT]), int(node[KIND_OF_NODE]) == SPHERICAL
            first = trial + int(node[FIRST_Q])
            before = read_pose_at(floats, poses + 12 * parent) if parent >= 0 else IDENTITY_POSE
            for way in range(3):
                v = columns[i, way]
                if v >= 0:
                    size = d if is_ball else d * floats[ints[AT_SCALE] + v]
                    w, x, y, z = floats[first], floats[first + 1], floats[first + 2], floats[first + 3]
                    perturb_dof(floats, first, way, is_ball, size)
                    there = compose(child_pose(before, node, q, False), tail)
                    gradient[v] += (half_squared_residual(ints, floats, b, there) - loss) / d
                    floats[first], floats[first + 1], floats[first + 2], floats[first + 3] = w, x, y, z
            tail = compose(child_pose(IDENTITY_POSE, node, q, False), tail)
            i = parent
