"""Gradient of half the squared norm of the residual, by forward differences for one dof of a node at a time.

For f(x) = |e(x)|^2 / 2 the entry of a column is the sum of (f_b(x + d) - f_b(x)) / d over the blocks b, where d moves x
along the column. A dof of a node moves the frame B of a block only if the node is on the path from B to the root. The
kernel follows this path with the pose of B in the present node, X_node_B, so a difference needs the pose of one node
instead of all poses:

    X_world_B = X_world_parent X_parent_node(x + d) X_node_B
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mechanik.spatial.array import Array

from ..compiler import inline, kernel
from ..nodes import IDENTITY_POSE, SPHERICAL, child_pose, compose, read_pose
from ..problem_layout import open_problem
from ..problem_views import rows_of_block
from ..relative_pose import residual_of_kind, rotate_inverse, times_transposed, transposed_times
from ..residuals import read_rotation
from ..tables import vector_at


@inline
def half_squared_residual(problem: Any, b: int, B: Any) -> float:
    """Return half the squared residual norm of block b, if its frame B has the world pose B; its frame A is fixed."""
    block, data = problem.blocks[b], problem.block_data[b]
    A = read_pose(data.frame_a)
    C = read_rotation(data.axes_c) if block.in_world else read_rotation(data.frame_a)
    x, y, z = rotate_inverse(C, B[9] - A[9], B[10] - A[10], B[11] - A[11])
    Q = transposed_times(C, B)
    if block.in_world:
        Q = times_transposed(Q, transposed_times(C, A))
    residual_and_derivatives = residual_of_kind(block.kind, x, y, z, Q)
    residual = (
        residual_and_derivatives[0],
        residual_and_derivatives[1],
        residual_and_derivatives[2],
        residual_and_derivatives[3],
        residual_and_derivatives[4],
        residual_and_derivatives[5],
    )
    weight, total, row = rows_of_block(problem.weight, block), 0.0, 0
    for r in range(6):
        if block.row_mask & (1 << r):
            total += (weight[row] * residual[r]) ** 2
            row += 1
    return 0.5 * total


@inline
def read_value(value: Any) -> tuple[float, float, float, float]:
    """Return a quaternion (4,), or the value of a dof (1,) and three zeros."""
    if value.shape[0] == 1:
        return value[0], 0.0, 0.0, 0.0
    return value[0], value[1], value[2], value[3]


@inline
def perturb_dof(value: Any, axis: int, is_spherical: bool, d: float) -> None:
    """Move a dof of a node by d; a spherical joint rotates about one of its own axes.

    Args:
        value: the dof (1,), or the quaternion of the spherical joint (4,), updated.
        axis: index of the dof in the node.
        d: m or rad.
    """
    if not is_spherical:
        value[0] += d
        return
    w, x, y, z = read_value(value)
    cosine, sine = np.cos(0.5 * d), np.sin(0.5 * d)
    dx, dy, dz = sine if axis == 0 else 0.0, sine if axis == 1 else 0.0, sine if axis == 2 else 0.0
    value[0], value[1] = w * cosine - x * dx - y * dy - z * dz, w * dx + x * cosine + y * dz - z * dy
    value[2], value[3] = w * dy - x * dz + y * cosine + z * dx, w * dz + x * dy - y * dx + z * cosine


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
    problem = open_problem(ints, floats)
    nodes, poses, trial = problem.nodes, problem.poses, problem.trial
    for v in range(gradient.shape[0]):
        gradient[v] = 0.0
    for b in range(block_count):
        i = problem.blocks[b].node_b
        X_node_B = read_pose(problem.block_data[b].frame_b)
        cost = half_squared_residual(problem, b, compose(read_pose(poses[i]), X_node_B) if i >= 0 else X_node_B)
        while i >= 0:
            node = nodes[i]
            parent, is_spherical = node.parent, node.kind == SPHERICAL
            first_q, value_count = node.first_q, 4 if is_spherical else 1
            X_world_parent = read_pose(poses[parent]) if parent >= 0 else IDENTITY_POSE
            for axis in range(3):
                v = columns[i, axis]
                if v >= 0:
                    value = vector_at(trial, first_q if is_spherical else first_q + axis, value_count)
                    w, x, y, z = read_value(value)
                    perturb_dof(value, axis, is_spherical, d * problem.scale[v])
                    X_world_B = compose(child_pose(X_world_parent, node, trial, False), X_node_B)
                    gradient[v] += (half_squared_residual(problem, b, X_world_B) - cost) / d
                    value[0] = w
                    if is_spherical:
                        value[1], value[2], value[3] = x, y, z
            X_node_B = compose(child_pose(IDENTITY_POSE, node, trial, False), X_node_B)
            i = parent
