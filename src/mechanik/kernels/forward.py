"""Forward kinematics of chains and trees of nodes, and geometric Jacobians of chains (see `nodes.py`)."""

from __future__ import annotations

import numpy as np

from .compiler import inline, kernel
from .nodes import (
    IDENTITY_POSE,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    TRANSLATION,
    child_pose,
    compose,
    open_nodes,
    read_pose,
)


@inline
def is_finite_pose(X):
    """Whether the position and two diagonal entries of the rotation of a pose X are finite."""
    return np.isfinite(X[0] + X[4] + X[9] + X[10] + X[11])


@inline
def is_finite_configuration(q):
    """Whether all entries of q are finite, including entries that do not move the link."""
    total = 0.0
    for k in range(q.shape[0]):
        total += q[k]
    return np.isfinite(total)


@inline
def write_pose(out, X):
    """Write a pose of 12 numbers as a matrix to out (4, 4)."""
    for row in range(3):
        out[row, 3] = X[9 + row]
        for column in range(3):
            out[row, column] = X[3 * row + column]
        out[3, row] = 0.0
    out[3, 3] = 1.0


@inline
def chain_end_pose(nodes, n, q):
    """Return the world pose of the last of n nodes; the parent of each node is the one before, or the world."""
    X = IDENTITY_POSE
    if nodes[n - 1].has_only_scalar_joints == 1:
        for i in range(n):
            X = child_pose(X, nodes[i], q, True)
    else:
        for i in range(n):
            X = child_pose(X, nodes[i], q, False)
    return X


@kernel("b1(f8[:,::1], f8[::1], f8[:,::1])", nogil=False)
def chain_pose(node_rows, q, out):
    """Write the world pose of the end of a chain at q (nq,), rad or m, to out (4, 4).

    Returns:
        False if q or out has the wrong size, or if q or the pose is not finite.
    """
    nodes, n = open_nodes(node_rows), node_rows.shape[0]
    if q.shape[0] != nodes[n - 1].q_length or out.shape[0] != 4 or out.shape[1] != 4:
        return False
    if not is_finite_configuration(q):
        return False
    X = chain_end_pose(nodes, n, q)
    write_pose(out, X)
    return is_finite_pose(X)


@kernel("b1(f8[:,::1], f8[:,::1], f8[:,:,::1])")
def chain_poses(node_rows, q, out):
    """Write the world poses of the end of a chain for q (N, nq) to out (N, 4, 4); False if any is not finite."""
    nodes, is_finite = open_nodes(node_rows), True
    for sample in range(q.shape[0]):
        X = chain_end_pose(nodes, node_rows.shape[0], q[sample])
        write_pose(out[sample], X)
        is_finite &= is_finite_pose(X) and is_finite_configuration(q[sample])
    return is_finite


@kernel("b1(f8[:,::1], f8[:,::1], f8[:,::1], f8[:,:,:,::1])", allocates=True)
def tree_poses(node_rows, end_rows, q, out):
    """Write the world poses of L links for q (N, nq) to out (N, L, 4, 4); False if any value is not finite.

    Each link is a fixed node of `end_rows` (L, Node.size), whose parent is a row of `node_rows` or the world (-1).
    """
    nodes, ends = open_nodes(node_rows), open_nodes(end_rows)
    poses = np.empty((node_rows.shape[0], 12))
    is_finite = True
    for sample in range(q.shape[0]):
        is_finite &= is_finite_configuration(q[sample])
        for i in range(node_rows.shape[0]):
            parent = nodes[i].parent
            X = child_pose(read_pose(poses[parent]) if parent >= 0 else IDENTITY_POSE, nodes[i], q[sample], False)
            for k in range(12):
                poses[i, k] = X[k]
        for link in range(end_rows.shape[0]):
            end, parent = ends[link], ends[link].parent
            X = compose(read_pose(poses[parent]) if parent >= 0 else IDENTITY_POSE, read_pose(end.X_parent_joint))
            write_pose(out[sample, link], X)
            is_finite &= is_finite_pose(X)
    return is_finite


@inline
def add_rotation_column(J, column, x, y, z, ax, ay, az):
    """Add to a column the twist at the world origin of a rotation about the axis (ax, ay, az) through (x, y, z)."""
    J[0, column] += y * az - z * ay
    J[1, column] += z * ax - x * az
    J[2, column] += x * ay - y * ax
    J[3, column] += ax
    J[4, column] += ay
    J[5, column] += az


@inline
def fill_jacobian(nodes, n, point, q, J):
    """Write the Jacobian (6, nv) of `point` (3,), given in the frame of the last of n nodes of a chain, to J.

    The rows are the linear and angular velocity in the world. Columns of dofs outside the chain are zero. The twists of
    all nodes are added at the world origin and then transformed to the point: linear += angular x point.

    Returns:
        False if the pose of the last node is not finite.
    """
    J[:, :] = 0.0
    X = IDENTITY_POSE
    for i in range(n):
        node = nodes[i]
        X = child_pose(X, node, q, False)
        kind, column, ratio = node.kind, node.first_v, node.ratio
        if kind == REVOLUTE:
            add_rotation_column(J, column, X[9], X[10], X[11], ratio * X[2], ratio * X[5], ratio * X[8])
        elif kind == PRISMATIC:
            J[0, column] += ratio * X[2]
            J[1, column] += ratio * X[5]
            J[2, column] += ratio * X[8]
        elif kind == TRANSLATION:
            for axis in range(3):
                for row in range(3):
                    J[row, column + axis] += X[3 * row + axis]
        elif kind == SPHERICAL:
            for axis in range(3):
                add_rotation_column(J, column + axis, X[9], X[10], X[11], X[axis], X[3 + axis], X[6 + axis])
    x = X[9] + X[0] * point[0] + X[1] * point[1] + X[2] * point[2]
    y = X[10] + X[3] * point[0] + X[4] * point[1] + X[5] * point[2]
    z = X[11] + X[6] * point[0] + X[7] * point[1] + X[8] * point[2]
    for column in range(J.shape[1]):
        ax, ay, az = J[3, column], J[4, column], J[5, column]
        J[0, column] += ay * z - az * y
        J[1, column] += az * x - ax * z
        J[2, column] += ax * y - ay * x
    return is_finite_pose(X)


@kernel("b1(f8[:,::1], f8[::1], f8[::1], f8[:,::1])", nogil=False)
def chain_jacobian(node_rows, point, q, out):
    """Write the world Jacobian of a point (3,), fixed to the end of a chain, to out (6, nv).

    Returns:
        False if q has the wrong size, or if q or the pose is not finite.
    """
    nodes, n = open_nodes(node_rows), node_rows.shape[0]
    if q.shape[0] != nodes[n - 1].q_length or not is_finite_configuration(q):
        return False
    return fill_jacobian(nodes, n, point, q, out)


@kernel("b1(f8[:,::1], f8[::1], f8[:,::1], f8[:,:,::1])")
def chain_jacobians(node_rows, point, q, out):
    """Write the Jacobians of `chain_jacobian` for q (N, nq) to out (N, 6, nv); False if any is not finite."""
    nodes, n, is_finite = open_nodes(node_rows), node_rows.shape[0], True
    for sample in range(q.shape[0]):
        is_finite &= fill_jacobian(nodes, n, point, q[sample], out[sample]) and is_finite_configuration(q[sample])
    return is_finite
