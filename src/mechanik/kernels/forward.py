"""Forward kinematics and geometric Jacobians over the nodes of `layout.py`."""

from __future__ import annotations

import numpy as np

from . import layout
from .compiler import helper, kernel
from .layout import BALL, FIRST_V, KIND, PARENT, PRISMATIC, RATIO, REVOLUTE, SLIDE
from .poses import WORLD, composed, moved, read_pose

IS_PLAIN, LENGTH_OF_Q = layout.IS_PLAIN, layout.LENGTH_OF_Q


@helper
def is_finite(X):
    return np.isfinite(X[0] + X[4] + X[9] + X[10] + X[11])


@helper
def is_sound(q):
    """Whether every number of q is finite, those that do not matter for a link as well."""
    total = 0.0
    for k in range(q.shape[0]):
        total += q[k]
    return np.isfinite(total)


@helper
def write_pose(out, X):
    for row in range(3):
        out[row, 3] = X[9 + row]
        for column in range(3):
            out[row, column] = X[3 * row + column]
        out[3, row] = 0.0
    out[3, 3] = 1.0


@helper
def end_of_chain(nodes, q):
    """The pose at the end of a chain, each node below the one before it."""
    X = WORLD
    n = nodes.shape[0]
    if nodes[n - 1, IS_PLAIN] == 1.0:
        for i in range(n):
            X = moved(X, nodes[i], q, True)
    else:
        for i in range(n):
            X = moved(X, nodes[i], q, False)
    return X


@kernel("b1(f8[:,::1], f8[::1], f8[:,::1])", nogil=False)
def chain_pose(nodes, q, out):
    """The pose at the end of a chain into out (4, 4); False if q or out is of the wrong size or q not finite."""
    if q.shape[0] != nodes[nodes.shape[0] - 1, LENGTH_OF_Q] or out.shape[0] != 4 or out.shape[1] != 4:
        return False
    if not is_sound(q):
        return False
    X = end_of_chain(nodes, q)
    write_pose(out, X)
    return is_finite(X)


@kernel("b1(f8[:,::1], f8[:,::1], f8[:,:,::1])")
def chain_poses(nodes, q, out):
    """`chain_pose` for q (N, nq) into out (N, 4, 4)."""
    fine = True
    for n in range(q.shape[0]):
        X = end_of_chain(nodes, q[n])
        write_pose(out[n], X)
        fine &= is_finite(X) and is_sound(q[n])
    return fine


@kernel("b1(f8[:,::1], f8[:,::1], f8[:,::1], f8[:,:,:,::1])")
def tree_poses(nodes, ends, q, out):
    """Poses of links, each a fixed node of `ends` (L, 18) below one of `nodes`, for q (N, nq) into out (N, L, 4, 4)."""
    room = np.empty((nodes.shape[0], 12))
    fine = True
    for n in range(q.shape[0]):
        fine &= is_sound(q[n])
        for i in range(nodes.shape[0]):
            parent = int(nodes[i, PARENT])
            X = moved(read_pose(room[parent]) if parent >= 0 else WORLD, nodes[i], q[n], False)
            for k in range(12):
                room[i, k] = X[k]
        for link in range(ends.shape[0]):
            parent = int(ends[link, PARENT])
            X = composed(read_pose(room[parent]) if parent >= 0 else WORLD, read_pose(ends[link]))
            write_pose(out[n, link], X)
            fine &= is_finite(X)
    return fine


@helper
def add_turn(J, column, x, y, z, ax, ay, az):
    """Add the twist of a turn about the axis a through (x, y, z), taken at the world's origin."""
    J[0, column] += y * az - z * ay
    J[1, column] += z * ax - x * az
    J[2, column] += x * ay - y * ax
    J[3, column] += ax
    J[4, column] += ay
    J[5, column] += az


@helper
def fill_jacobian(nodes, point, q, J):
    """The world twist (linear, angular) of `point` (3,), fixed at the end of a chain, for each column of v.

    Columns of freedoms that are not in the chain are zero. All twists are collected at the world's origin, and
    moved to the point once it is known: linear += angular x point.
    """
    J[:, :] = 0.0
    X = WORLD
    for i in range(nodes.shape[0]):
        X = moved(X, nodes[i], q, False)
        kind, column, ratio = int(nodes[i, KIND]), int(nodes[i, FIRST_V]), nodes[i, RATIO]
        if kind == REVOLUTE:
            add_turn(J, column, X[9], X[10], X[11], ratio * X[2], ratio * X[5], ratio * X[8])
        elif kind == PRISMATIC:
            J[0, column] += ratio * X[2]
            J[1, column] += ratio * X[5]
            J[2, column] += ratio * X[8]
        elif kind == SLIDE:
            for axis in range(3):
                for row in range(3):
                    J[row, column + axis] += X[3 * row + axis]
        elif kind == BALL:
            for axis in range(3):
                add_turn(J, column + axis, X[9], X[10], X[11], X[axis], X[3 + axis], X[6 + axis])
    x = X[9] + X[0] * point[0] + X[1] * point[1] + X[2] * point[2]
    y = X[10] + X[3] * point[0] + X[4] * point[1] + X[5] * point[2]
    z = X[11] + X[6] * point[0] + X[7] * point[1] + X[8] * point[2]
    for column in range(J.shape[1]):
        ax, ay, az = J[3, column], J[4, column], J[5, column]
        J[0, column] += ay * z - az * y
        J[1, column] += az * x - ax * z
        J[2, column] += ax * y - ay * x
    return is_finite(X)


@kernel("b1(f8[:,::1], f8[::1], f8[::1], f8[:,::1])", nogil=False)
def chain_jacobian(nodes, point, q, out):
    """The Jacobian of a point at the end of a chain into out (6, nv); False as in `chain_pose`."""
    if q.shape[0] != nodes[nodes.shape[0] - 1, LENGTH_OF_Q] or not is_sound(q):
        return False
    return fill_jacobian(nodes, point, q, out)


@kernel("b1(f8[:,::1], f8[::1], f8[:,::1], f8[:,:,::1])")
def chain_jacobians(nodes, point, q, out):
    """`chain_jacobian` for q (N, nq) into out (N, 6, nv)."""
    fine = True
    for n in range(q.shape[0]):
        fine &= fill_jacobian(nodes, point, q[n], out[n]) and is_sound(q[n])
    return fine
