"""One iteration of FABRIK: backward reaching on positions, forward reaching within the motions of each joint.

Positions have indices: 0 to n - 1 are the origins of the nodes, then come the goals' points. The aims of a node are the
points, and the origins of rotating joints, that it moves. The generation of an aim is the number of rotating joints
between the node and the aim.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mechanik.spatial.array import Array

from ..compiler import inline, kernel, subroutine
from ..nodes import (
    FIRST_Q,
    IDENTITY_POSE,
    NODE_KIND,
    NODE_RATIO,
    PARENT,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    TRANSLATION,
    child_pose,
    read_pose,
)

IndexArray = np.ndarray[Any, np.dtype[np.int64]]
FlagArray = np.ndarray[Any, np.dtype[np.bool_]]
POINT, POSE, TIP = 0, 1, 2
"""Kinds of points: a single point; the origin of a pose; a tip of its three axes, which come next."""
MIN_OFFSET_RATIO = 1e-6
"""Offsets below this ratio of the mechanism's size give a joint no direction: the bone has no length, or is on the
axis."""
TIE_RATIO = 1e-11
"""Preference for the smaller rotation among rotations that fit equally well, relative to the sum of |B|."""
PARALLEL_COSINE = 1e-12
"""How far the cosine between two parallel axes may be from 1."""


@subroutine
def rotation_onto(B: Array) -> tuple[float, ...]:
    """The smallest rotation, wxyz, of a onto the direction of b, for B = b a'; by pi if they are opposite."""
    size = math.sqrt((B * B).sum())
    x, y, z = B[2, 1] - B[1, 2], B[0, 2] - B[2, 0], B[1, 0] - B[0, 1]
    w = size + B[0, 0] + B[1, 1] + B[2, 2]
    if w < 1e-12 * size:  # about any vector across a; the row of the largest entry is parallel to a
        r = 0
        for i in range(1, 3):
            if abs(B[i, i]) > abs(B[r, r]):
                r = i
        axis = np.zeros(3)
        axis[r], axis[(r + 1) % 3] = -B[r, (r + 1) % 3], B[r, r]
        w, x, y, z = 0.0, axis[0], axis[1], axis[2]
    length = math.sqrt(w * w + x * x + y * y + z * z)
    return w / length, x / length, y / length, z / length


@subroutine
def best_rotation_of(B: Array) -> tuple[float, ...]:
    """The rotation R, wxyz, that maximises the sum of b' R a, for B = sum of b a' (Davenport's q method).

    Where several do, as for positions on a line, the smallest of them.
    """
    K, V = np.empty((4, 4)), np.eye(4)
    trace = B[0, 0] + B[1, 1] + B[2, 2]
    size = 0.0
    for i in range(3):
        for j in range(3):
            K[i + 1, j + 1] = B[i, j] + B[j, i]
            size += abs(B[i, j])
        K[i + 1, i + 1] -= trace
    K[0, 0] = trace + TIE_RATIO * size
    K[0, 1], K[0, 2], K[0, 3] = B[2, 1] - B[1, 2], B[0, 2] - B[2, 0], B[1, 0] - B[0, 1]
    K[1, 0], K[2, 0], K[3, 0] = K[0, 1], K[0, 2], K[0, 3]
    for _ in range(20):  # Jacobi eigenvalue method; five sweeps are typical
        off_diagonal = 0.0
        for i in range(3):
            for j in range(i + 1, 4):
                off_diagonal += abs(K[i, j])
                if K[i, j] == 0.0:
                    continue
                tau = (K[j, j] - K[i, i]) / (2.0 * K[i, j])
                t = (1.0 if tau >= 0.0 else -1.0) / (abs(tau) + math.sqrt(1.0 + tau * tau))
                c = 1.0 / math.sqrt(1.0 + t * t)
                s = t * c
                for k in range(4):
                    K[k, i], K[k, j] = c * K[k, i] - s * K[k, j], s * K[k, i] + c * K[k, j]
                    V[k, i], V[k, j] = c * V[k, i] - s * V[k, j], s * V[k, i] + c * V[k, j]
                for k in range(4):
                    K[i, k], K[j, k] = c * K[i, k] - s * K[j, k], s * K[i, k] + c * K[j, k]
        if off_diagonal <= 1e-15 * size:
            break
    best = 0
    for i in range(1, 4):
        if K[i, i] > K[best, best]:
            best = i
    sign = 1.0 if V[0, best] >= 0.0 else -1.0
    return sign * V[0, best], sign * V[1, best], sign * V[2, best], sign * V[3, best]


@subroutine
def angle_within(value: float, reference: float, lower: float, upper: float, period: float) -> float:
    """An angle that repeats after `period`, within limits: the nearest to `reference`, else the nearer limit."""
    value -= period * round((value - reference) / period)
    if value < lower:
        value += period * math.ceil((lower - value) / period)
        if value <= upper:
            return value
    elif value > upper:
        value -= period * math.ceil((value - upper) / period)
        if value >= lower:
            return value
    else:
        return value
    to_lower, to_upper = abs(value - lower) % period, abs(value - upper) % period
    if min(to_lower, period - to_lower) <= min(to_upper, period - to_upper):
        return lower
    return upper


@subroutine
def update_positions(nodes: Array, x: Array, point_node: IndexArray, point_local: Array, X: Array, p: Array) -> None:
    """Write the poses of all nodes, X (n, 12), and all positions, p (n + P, 3), at x."""
    n = nodes.shape[0]
    for i in range(n):
        parent = int(nodes[i, PARENT])
        Y = child_pose(read_pose(X[parent]) if parent >= 0 else IDENTITY_POSE, nodes[i], x, False)
        for k in range(12):
            X[i, k] = Y[k]
        p[i, 0], p[i, 1], p[i, 2] = Y[9], Y[10], Y[11]
    for k in range(point_node.shape[0]):
        i = point_node[k]
        for r in range(3):
            p[n + k, r] = point_local[k, r]
            if i >= 0:
                p[n + k, r] = X[i, 9 + r]
                for c in range(3):
                    p[n + k, r] += X[i, 3 * r + c] * point_local[k, c]


@subroutine
def carried_position(p: Array, wanted: Array, t: int, i: int) -> tuple[float, ...]:
    """Position i after the pose at point t moves to its target, relative to that point."""
    x = y = z = 0.0
    for tip in range(t + 1, t + 4):
        dot = size = 0.0
        for r in range(3):
            axis = p[tip, r] - p[t, r]
            dot += axis * (p[i, r] - p[t, r])
            size += axis * axis
        component = dot / size
        x += component * (wanted[tip, 0] - wanted[t, 0])
        y += component * (wanted[tip, 1] - wanted[t, 1])
        z += component * (wanted[tip, 2] - wanted[t, 2])
    return x, y, z


@subroutine
def backward_reach(
    nodes: Array, start: IndexArray, aims: IndexArray, point_kind: IndexArray, weight: Array, p: Array, wanted: Array
) -> None:
    """Write the wanted position of each joint, from the tips to the base, from the wanted positions below it.

    A bone keeps its length and points from the wanted position of its end to the present position of its joint. A link
    with a pose goal moves there as a whole. Where several bones meet, the wanted position is their weighted mean.
    """
    n = nodes.shape[0]
    for i in range(n - 1, -1, -1):
        x = y = z = total = 0.0
        count = 0
        for k in range(start[i], start[i + 1]):
            t = aims[k, 0]
            if aims[k, 1] > 0:
                break
            kind = POINT if t < n else point_kind[t - n]
            if kind == TIP:
                continue
            if kind == POSE:
                a, b, c = carried_position(p, wanted, t, i)
            else:
                a, b, c = p[i, 0] - p[t, 0], p[i, 1] - p[t, 1], p[i, 2] - p[t, 2]
                d, e, f = p[i, 0] - wanted[t, 0], p[i, 1] - wanted[t, 1], p[i, 2] - wanted[t, 2]
                length, distance = math.sqrt(a * a + b * b + c * c), math.sqrt(d * d + e * e + f * f)
                if distance > 1e-12 * length:  # else the bone keeps its direction (no division by zero)
                    a, b, c = length / distance * d, length / distance * e, length / distance * f
            w = weight[t]
            x, y, z = x + w * (wanted[t, 0] + a), y + w * (wanted[t, 1] + b), z + w * (wanted[t, 2] + c)
            total += w
            count += 1
        weight[i] = total / max(count, 1)
        for r in range(3):
            wanted[i, r] = p[i, r]
        if total > 0.0:
            wanted[i, 0], wanted[i, 1], wanted[i, 2] = x / total, y / total, z / total


@subroutine
def gather_aims(
    i: int, kind: int, Y: tuple[float, ...], X: Array, p: Array, wanted: Array, weight: Array, point_kind: IndexArray,
    start: IndexArray, aims: IndexArray, min_offset: float, extra_levels: int, B: Array, move: Array,
) -> int:  # fmt: skip
    """Sum up the aims of a node in its own frame: B = sum of wanted x present', and the mean move (m).

    The present positions are those with all joints below unchanged. Generations are added until a generation gives the
    joint a direction, and then `extra_levels` more for hinges.

    Args:
        i, kind: the node and its kind.
        Y: its pose with the joints above already moved.
        min_offset: offsets below it (m) give no direction.
        B, move: (3, 3) and (3,), written.

    Returns:
        The number of aims that give the joint a direction.
    """
    n = X.shape[0]
    B[:], move[:] = 0.0, 0.0
    a, b = np.empty(3), np.empty(3)
    total, is_sliding, count, generation, extra_generations = 0.0, kind in (PRISMATIC, TRANSLATION), 0, 0, 0
    for k in range(start[i], start[i + 1]):
        t = aims[k, 0]
        if aims[k, 1] != generation:
            if is_sliding:
                break
            if count > 0:
                if kind == SPHERICAL or extra_generations == extra_levels:
                    break
                extra_generations += 1
            generation = aims[k, 1]
        for c in range(3):
            a[c] = b[c] = 0.0
            for r in range(3):
                a[c] += X[i, 3 * r + c] * (p[t, r] - X[i, 9 + r])
                b[c] += Y[3 * r + c] * (wanted[t, r] - Y[9 + r])
        z_weight = 0.0 if kind == REVOLUTE else 1.0
        present_square, wanted_square = (
            a[0] ** 2 + a[1] ** 2 + z_weight * a[2] ** 2,
            b[0] ** 2 + b[1] ** 2 + z_weight * b[2] ** 2,
        )
        if is_sliding or min(present_square, wanted_square) > min_offset * min_offset:
            count += 1
        w = weight[t]
        for r in range(3):
            for c in range(3):
                B[r, c] += w * b[r] * a[c]
        if t < n or point_kind[t - n] != TIP:
            total += w
            for r in range(3):
                move[r] += w * (b[r] - a[r])
    if total > 0.0:
        for r in range(3):
            move[r] /= total
    return count


@kernel(
    "f8(f8[:,::1], f8[::1], f8[::1], f8[::1], i8[::1], f8[::1], f8[::1], i8[::1], i8[:,::1], i8[::1], i8[::1],"
    " f8[:,::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8, i8[::1])"
)
def fabrik_sweep(
    nodes: Array, x: Array, lower: Array, upper: Array, column: IndexArray, scale: Array, step: Array,
    start: IndexArray, aims: IndexArray, point_node: IndexArray, point_kind: IndexArray, point_local: Array,
    weight: Array, wanted: Array, p: Array, X: Array, X_new: Array, size: float, extra_levels: IndexArray,
) -> float:  # fmt: skip
    """Move x by an iteration; write the columns' steps into `step` and return the largest of them.

    Args:
        nodes: (n, NODE_FLOATS), the kinematic tree.
        x: numbers of the joints, moved in place.
        lower, upper, column: of each number of x; the column is -1 where it may not move.
        scale, step: of each column.
        start, aims: written by `count_aims` and `list_aims`.
        point_node, point_kind, point_local: of each of the P points its node (-1: world), its kind, and its position
            (3) in the node.
        weight, wanted: (n + P,) and (n + P, 3); those of the points are given, those of the nodes are written.
        p, X, X_new: scratch memory for positions (n + P, 3) and poses (n, 12).
        size: of the mechanism, m.
        extra_levels: (n,), generations behind the first with a direction that a hinge takes into account.
    """
    update_positions(nodes, x, point_node, point_local, X, p)
    backward_reach(nodes, start, aims, point_kind, weight, p, wanted)
    B, move = np.empty((3, 3)), np.empty(3)
    step[:] = 0.0
    for i in range(nodes.shape[0]):
        parent, kind, k = int(nodes[i, PARENT]), int(nodes[i, NODE_KIND]), int(nodes[i, FIRST_Q])
        ratio = nodes[i, NODE_RATIO]
        parent_pose = read_pose(X_new[parent]) if parent >= 0 else IDENTITY_POSE
        Y = child_pose(parent_pose, nodes[i], x, False)
        count = gather_aims(
            i, kind, Y, X, p, wanted, weight, point_kind, start, aims, MIN_OFFSET_RATIO * size, extra_levels[i], B, move
        )  # fmt: skip
        v = column[k]
        if count > 0 and kind == SPHERICAL and v >= 0:
            if count == 1:
                w, a, b, c = rotation_onto(B)
            else:
                w, a, b, c = best_rotation_of(B)
            w0, a0, b0, c0 = x[k], x[k + 1], x[k + 2], x[k + 3]
            x[k], x[k + 1] = w0 * w - a0 * a - b0 * b - c0 * c, w0 * a + a0 * w + b0 * c - c0 * b
            x[k + 2], x[k + 3] = w0 * b - a0 * c + b0 * w + c0 * a, w0 * c + a0 * b - b0 * a + c0 * w
            length = math.sqrt(x[k] ** 2 + x[k + 1] ** 2 + x[k + 2] ** 2 + x[k + 3] ** 2)
            for r in range(4):
                x[k + r] /= length
            sine = math.sqrt(a * a + b * b + c * c)
            angle = 2.0 * math.atan2(sine, w) / sine if sine > 0.0 else 0.0
            step[v], step[v + 1], step[v + 2] = angle * a, angle * b, angle * c
        elif count > 0 and kind != SPHERICAL:
            for r in range(3 if kind == TRANSLATION else 1):
                v = column[k + r]
                if v < 0:
                    continue
                old_value = x[k + r]
                if kind == REVOLUTE:
                    rotation = math.atan2(B[1, 0] - B[0, 1], B[0, 0] + B[1, 1])
                    period = abs(2.0 * math.pi / ratio)
                    x[k] = angle_within(old_value + rotation / ratio, old_value, lower[k], upper[k], period)
                else:
                    translation = move[r] if kind == TRANSLATION else move[2] / ratio
                    x[k + r] = min(max(old_value + translation, lower[k + r]), upper[k + r])
                step[v] = (x[k + r] - old_value) / scale[v]
        Y = child_pose(parent_pose, nodes[i], x, False)
        for r in range(12):
            X_new[i, r] = Y[r]
    largest = 0.0
    for v in range(step.shape[0]):
        largest = max(largest, abs(step[v]))
    return largest


@inline
def is_rotating(nodes: Array, i: int) -> bool:
    """Whether a node is a hinge or a spherical joint."""
    return nodes[i, NODE_KIND] == REVOLUTE or nodes[i, NODE_KIND] == SPHERICAL


@inline
def parent_node(nodes: Array, point_node: IndexArray, t: int) -> int:
    """The node above position t, which is a node or, from n on, a point; -1 if there is none."""
    n = nodes.shape[0]
    return int(nodes[t, PARENT]) if t < n else int(point_node[t - n])


@kernel("void(f8[:,::1], i8[::1], i8[::1])")
def count_aims(nodes: Array, point_node: IndexArray, start: IndexArray) -> None:
    """Write the offset of each node's aims in the list of all aims into `start`, (n + 1,)."""
    n = nodes.shape[0]
    for i in range(n + 1):
        start[i] = 0
    for t in range(n + point_node.shape[0]):
        if t >= n or is_rotating(nodes, t):
            node = parent_node(nodes, point_node, t)
            while node >= 0:
                start[node + 1] += 1
                node = int(nodes[node, PARENT])
    for i in range(n):
        start[i + 1] += start[i]


@kernel("void(f8[:,::1], i8[::1], i8[::1], i8[:,::1])")
def list_aims(nodes: Array, point_node: IndexArray, start: IndexArray, aims: IndexArray) -> None:
    """Write the aims (position, generation) of node i, sorted by generation, into aims[start[i]:start[i + 1]]."""
    n = nodes.shape[0]
    next_free = np.empty(n, np.int64)
    for i in range(n):
        next_free[i] = start[i]
    for t in range(n + point_node.shape[0]):
        if t >= n or is_rotating(nodes, t):
            node, generation = parent_node(nodes, point_node, t), 0
            while node >= 0:
                k = next_free[node]
                while k > start[node] and aims[k - 1, 1] > generation:
                    aims[k, 0], aims[k, 1] = aims[k - 1, 0], aims[k - 1, 1]
                    k -= 1
                aims[k, 0], aims[k, 1] = t, generation
                next_free[node] += 1
                if is_rotating(nodes, node):
                    generation += 1
                node = int(nodes[node, PARENT])


@kernel("void(f8[:,::1], f8[:,::1], b1[::1])")
def find_planar_hinges(nodes: Array, X: Array, planar: FlagArray) -> None:
    """Write whether each node is a hinge below which all rotating joints are hinges parallel to it; planar is (n,)."""
    n = nodes.shape[0]
    for i in range(n):
        planar[i] = nodes[i, NODE_KIND] == REVOLUTE
    for t in range(n):
        if not is_rotating(nodes, t):
            continue
        node = int(nodes[t, PARENT])
        while node >= 0:
            cosine = X[t, 2] * X[node, 2] + X[t, 5] * X[node, 5] + X[t, 8] * X[node, 8]
            if nodes[t, NODE_KIND] != REVOLUTE or abs(cosine) <= 1.0 - PARALLEL_COSINE:
                planar[node] = False
            node = int(nodes[node, PARENT])
