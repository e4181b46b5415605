"""Gradient of half the squared norm of the residual, by forward differences for one dof of a node at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from mechanik.spatial.array import Array

from ..compiler import inline, kernel
from ..nodes import FIRST_Q, IDENTITY_POSE, NODE_FLOATS, NODE_KIND, PARENT, SPHERICAL, child_pose, compose
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
    """Return half the squared residual norm of block b, if its frame B has the world pose B; its frame A is fixed."""
    block, data = ints[AT_BLOCKS] + BLOCK_INTS * b, ints[AT_BLOCK_DATA] + BLOCK_FLOATS * b
    A = read_pose_at(floats, data + FRAME_A)
    C = read_rotation(floats, data + AXES_C) if ints[block + IN_WORLD] == 1 else read_rotation(floats, data + FRAME_A)
    x, y, z = rotate_inverse(C, B[9] - A[9], B[10] - A[10], B[11] - A[11])
    Q = transposed_times(C, B)
    if ints[block + IN_WORLD] == 1:
        Q = times_transposed(Q, transposed_times(C, A))
    residual_and_derivatives = residual_of_kind(ints[block + BLOCK_KIND], x, y, z, Q)
    residual = (
        residual_and_derivatives[0],
        residual_and_derivatives[1],
        residual_and_derivatives[2],
        residual_and_derivatives[3],
        residual_and_derivatives[4],
        residual_and_derivatives[5],
    )
    total, weight_offset = 0.0, ints[AT_WEIGHT] + ints[block + FIRST_ROW]
    for r in range(6):
        if ints[block + ROW_MASK] & (1 << r):
            total += (floats[weight_offset] * residual[r]) ** 2
            weight_offset += 1
    return 0.5 * total


@inline
def perturb_dof(floats: Any, k: int, axis: int, is_spherical: bool, d: float) -> None:
    """Move a dof of a node by d; a spherical joint rotates about one of its own axes.

    Args:
        k: offset of the node's joint values in `floats`.
        axis: index of the dof in the node.
        d: m or rad.
    """
    if not is_spherical:
        floats[k + axis] += d
        return
    w, x, y, z = floats[k], floats[k + 1], floats[k + 2], floats[k + 3]
    cosine, sine = np.cos(0.5 * d), np.sin(0.5 * d)
    dx, dy, dz = (sine if axis == 0 else 0.0), (sine if axis == 1 else 0.0), (sine if axis == 2 else 0.0)
    floats[k], floats[k + 1] = w * cosine - x * dx - y * dy - z * dz, w * dx + x * cosine + y * dz - z * dy
    floats[k + 2], floats[k + 3] = w * dy - x * dz + y * cosine + z * dx, w * dz + x * dy - y * dx + z * cosine


@kernel("void(i8[::1], f8[::1], i8, i8[:,::1], f8, f8[::1])")
def difference_gradient(
    ints: np.ndarray[Any, Any],
    floats: Array,
    block_count: int,
    columns: np.ndarray[Any, Any],
    d: float,
    gradient: Array,
) -> None:
    """Write the gradient of half the squared norm of the residual by forward differences.

    Args:
        ints, floats: the packed problem; the poses belong to the table `trial`.
        block_count: number of blocks in the cost; they are the first blocks, and their frames A are fixed in the world.
        columns: (nodes, 3), the columns of the dofs of a node; -1 for none.
        d: difference, in units of the columns.
        gradient: (n,), written.
    """
    nodes, poses, trial = ints[AT_NODES], ints[AT_POSES], ints[AT_TRIAL]
    q = floats[trial:]
    for v in range(gradient.shape[0]):
        gradient[v] = 0.0
    for b in range(block_count):
        i = ints[ints[AT_BLOCKS] + BLOCK_INTS * b + NODE_B]
        X_node_B = read_pose_at(floats, ints[AT_BLOCK_DATA] + BLOCK_FLOATS * b + FRAME_B)
        cost = half_squared_residual(
            ints, floats, b, compose(read_pose_at(floats, poses + 12 * i), X_node_B) if i >= 0 else X_node_B
        )
        while i >= 0:
            node = floats[nodes + NODE_FLOATS * i : nodes + NODE_FLOATS * i + NODE_FLOATS]
            parent, is_spherical = int(node[PARENT]), int(node[NODE_KIND]) == SPHERICAL
            value_offset = trial + int(node[FIRST_Q])
            X_world_parent = read_pose_at(floats, poses + 12 * parent) if parent >= 0 else IDENTITY_POSE
            for axis in range(3):
                v = columns[i, axis]
                if v >= 0:
                    dof_change = d * floats[ints[AT_SCALE] + v]
                    w, x, y, z = (
                        floats[value_offset],
                        floats[value_offset + 1],
                        floats[value_offset + 2],
                        floats[value_offset + 3],
                    )
                    perturb_dof(floats, value_offset, axis, is_spherical, dof_change)
                    X_world_B = compose(child_pose(X_world_parent, node, q, False), X_node_B)
                    gradient[v] += (half_squared_residual(ints, floats, b, X_world_B) - cost) / d
                    (
                        floats[value_offset],
                        floats[value_offset + 1],
                        floats[value_offset + 2],
                        floats[value_offset + 3],
                    ) = (
                        w,
                        x,
                        y,
                        z,
                    )
            X_node_B = compose(child_pose(IDENTITY_POSE, node, q, False), X_node_B)
            i = parent
