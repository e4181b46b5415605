"""One iteration of FABRIK: backward reaching on positions, forward reaching within the motions of each joint.

Backward reaching computes a target position for every joint, from the tips to the base. Forward reaching rotates or
translates every joint, from the base to the tips, so that the positions that the joint moves come nearest to their
targets.

Positions have indices: 0 to n - 1 are the origins of the nodes, followed by the points of the goals. Rotating joints
are hinges (revolute joints) and spherical joints. The effectors of a node are the points, and the origins of rotating
joints, that the node moves. The generation of an effector is the number of rotating joints between the node and the
effector. A bone is the line from a joint to an effector.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mechanik.spatial.array import Array

from ..compiler import inline, kernel, subroutine
from ..nodes import (
    IDENTITY_POSE,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    TRANSLATION,
    Node,
    child_pose,
    open_nodes,
    read_pose,
)
from ..tables import RecordArray

IndexArray = np.ndarray[Any, np.dtype[np.int64]]
FlagArray = np.ndarray[Any, np.dtype[np.bool_]]
POINT, POSE, AXIS_END = 0, 1, 2
"""Kinds of points: a single point; the origin of a pose; the end of one of the three axes of a pose. The ends of the
three axes follow the origin."""
MIN_OFFSET_RATIO = 1e-6
"""Effectors nearer to the joint, or to the axis of a hinge, than this ratio of the mechanism's size give the joint no
direction."""
TIE_RATIO = 1e-11
"""Weight that prefers the smallest of rotations that fit equally well, as a ratio of the sum of all |B_ij|."""
PARALLEL_TOLERANCE = 1e-12
"""Axes count as parallel, or opposite, if 1 minus the absolute cosine between them is below this."""


@subroutine
def smallest_rotation(B: Array) -> tuple[float, ...]:
    """Return the smallest rotation, as a quaternion wxyz, of a onto the direction of b, for B = b a'.

    Opposite directions give a rotation by pi.
    """
    norm = math.sqrt((B * B).sum())
    x, y, z = B[2, 1] - B[1, 2], B[0, 2] - B[2, 0], B[1, 0] - B[0, 1]
    w = norm + B[0, 0] + B[1, 1] + B[2, 2]
    if w < 1e-12 * norm:  # any axis perpendicular to a; every row of B is parallel to a
        row = 0
        for i in range(1, 3):
            if abs(B[i, i]) > abs(B[row, row]):
                row = i
        axis = np.zeros(3)
        axis[row], axis[(row + 1) % 3] = -B[row, (row + 1) % 3], B[row, row]
        w, x, y, z = 0.0, axis[0], axis[1], axis[2]
    length = math.sqrt(w * w + x * x + y * y + z * z)
    return w / length, x / length, y / length, z / length


@subroutine
def best_rotation(B: Array) -> tuple[float, ...]:
    """Return the rotation R, as a quaternion wxyz, that maximises the sum of b' R a, for B = sum of b a'.

    The method is Davenport's q method. Of several such rotations, as for positions on a line, the smallest is returned.
    """
    K, V = np.empty((4, 4)), np.eye(4)
    trace = B[0, 0] + B[1, 1] + B[2, 2]
    entry_sum = 0.0
    for i in range(3):
        for j in range(3):
            K[i + 1, j + 1] = B[i, j] + B[j, i]
            entry_sum += abs(B[i, j])
        K[i + 1, i + 1] -= trace
    K[0, 0] = trace + TIE_RATIO * entry_sum
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
        if off_diagonal <= 1e-15 * entry_sum:
            break
    best_index = 0
    for i in range(1, 4):
        if K[i, i] > K[best_index, best_index]:
            best_index = i
    sign = 1.0 if V[0, best_index] >= 0.0 else -1.0
    return sign * V[0, best_index], sign * V[1, best_index], sign * V[2, best_index], sign * V[3, best_index]


@subroutine
def angle_within_limits(value: float, reference: float, lower: float, upper: float, period: float) -> float:
    """Return the angle equivalent to `value` within the limits `lower` and `upper` that is nearest to `reference`; rad.

    Equivalent angles differ by multiples of `period`. If no equivalent angle is within the limits, the limit that is
    nearest to an equivalent angle is returned.
    """
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
    distance_to_lower, distance_to_upper = abs(value - lower) % period, abs(value - upper) % period
    if min(distance_to_lower, period - distance_to_lower) <= min(distance_to_upper, period - distance_to_upper):
        return lower
    return upper


@subroutine
def update_positions(
    nodes: RecordArray[Node], x: Array, point_node: IndexArray, point_local: Array, X: Array, p: Array
) -> None:
    """Write the world poses of all nodes, X (n, 12), and all positions, p (n + P, 3), at the joint values x."""
    n = X.shape[0]
    for i in range(n):
        parent = nodes[i].parent
        pose = child_pose(read_pose(X[parent]) if parent >= 0 else IDENTITY_POSE, nodes[i], x, False)
        for k in range(12):
            X[i, k] = pose[k]
        p[i, 0], p[i, 1], p[i, 2] = pose[9], pose[10], pose[11]
    for k in range(point_node.shape[0]):
        i = point_node[k]
        for r in range(3):
            p[n + k, r] = point_local[k, r]
            if i >= 0:
                p[n + k, r] = X[i, 9 + r]
                for c in range(3):
                    p[n + k, r] += X[i, 3 * r + c] * point_local[k, c]


@subroutine
def moved_position(p: Array, target: Array, t: int, i: int) -> tuple[float, ...]:
    """Return position i relative to point t, after the pose with its origin at t has moved to its target."""
    x = y = z = 0.0
    for axis_end in range(t + 1, t + 4):
        dot = square = 0.0
        for r in range(3):
            axis = p[axis_end, r] - p[t, r]
            dot += axis * (p[i, r] - p[t, r])
            square += axis * axis
        component = dot / square
        x += component * (target[axis_end, 0] - target[t, 0])
        y += component * (target[axis_end, 1] - target[t, 1])
        z += component * (target[axis_end, 2] - target[t, 2])
    return x, y, z


@subroutine
def backward_reach(
    node_count: int,
    first_effector: IndexArray,
    effectors: IndexArray,
    point_kind: IndexArray,
    weight: Array,
    p: Array,
    target: Array,
) -> None:
    """Write target position and weight of each node, determined by its effectors of generation 0, from tips to base.

    A bone keeps its length. It starts at the target of its effector and points to the present position of its joint.
    A link with a pose goal moves rigidly to its target pose. Where several bones meet, the target is the weighted
    mean of their ends. A node without such effectors keeps its position.
    """
    n = node_count
    for i in range(n - 1, -1, -1):
        sum_x = sum_y = sum_z = total_weight = 0.0
        count = 0
        for k in range(first_effector[i], first_effector[i + 1]):
            effector = effectors[k, 0]
            if effectors[k, 1] > 0:
                break
            kind = POINT if effector < n else point_kind[effector - n]
            if kind == AXIS_END:
                continue
            if kind == POSE:
                bone_x, bone_y, bone_z = moved_position(p, target, effector, i)
            else:
                bone_x, bone_y, bone_z = p[i, 0] - p[effector, 0], p[i, 1] - p[effector, 1], p[i, 2] - p[effector, 2]
                dx, dy, dz = p[i, 0] - target[effector, 0], p[i, 1] - target[effector, 1], p[i, 2] - target[effector, 2]
                length, distance = (
                    math.sqrt(bone_x * bone_x + bone_y * bone_y + bone_z * bone_z),
                    math.sqrt(dx * dx + dy * dy + dz * dz),
                )
                if distance > 1e-12 * length:  # at zero distance the bone keeps its direction
                    bone_x, bone_y, bone_z = length / distance * dx, length / distance * dy, length / distance * dz
            effector_weight = weight[effector]
            sum_x, sum_y, sum_z = (
                sum_x + effector_weight * (target[effector, 0] + bone_x),
                sum_y + effector_weight * (target[effector, 1] + bone_y),
                sum_z + effector_weight * (target[effector, 2] + bone_z),
            )
            total_weight += effector_weight
            count += 1
        weight[i] = total_weight / max(count, 1)
        for r in range(3):
            target[i, r] = p[i, r]
        if total_weight > 0.0:
            target[i, 0], target[i, 1], target[i, 2] = sum_x / total_weight, sum_y / total_weight, sum_z / total_weight


@subroutine
def sum_over_effectors(
    i: int, kind: int, Y: tuple[float, ...], X: Array, p: Array, target: Array, weight: Array, point_kind: IndexArray,
    first_effector: IndexArray, effectors: IndexArray, min_offset: float, extra_generations: int, B: Array,
    translation: Array,
) -> int:  # fmt: skip
    """Write the weighted sum B of b a' and the mean translation over the effectors of a node.

    a is the present position of an effector, before the iteration, and b its target position, both in the frame of the
    node. Generations are added until one of them gives the joint a direction; for hinges, `extra_generations` more are
    added. For sliding joints only generation 0 is used.

    Args:
        i, kind: index of the node and its kind.
        X: (n, 12) poses of the nodes before the iteration.
        Y: pose of the node after the joints above have moved.
        min_offset: effectors nearer than this distance (m) to the joint, or to the axis of a hinge, give no direction.
        B, translation: (3, 3) and (3,), written. The translation is in m.

    Returns:
        The number of effectors that give the joint a direction; for sliding joints, of all effectors of generation 0.
    """
    n = X.shape[0]
    B[:], translation[:] = 0.0, 0.0
    present_offset, target_offset = np.empty(3), np.empty(3)
    total_weight, is_sliding, count, generation, added_generations = 0.0, kind in (PRISMATIC, TRANSLATION), 0, 0, 0
    for k in range(first_effector[i], first_effector[i + 1]):
        effector = effectors[k, 0]
        if effectors[k, 1] != generation:
            if is_sliding:
                break
            if count > 0:
                if kind == SPHERICAL or added_generations == extra_generations:
                    break
                added_generations += 1
            generation = effectors[k, 1]
        for c in range(3):
            present_offset[c] = target_offset[c] = 0.0
            for r in range(3):
                present_offset[c] += X[i, 3 * r + c] * (p[effector, r] - X[i, 9 + r])
                target_offset[c] += Y[3 * r + c] * (target[effector, r] - Y[9 + r])
        z_weight = 0.0 if kind == REVOLUTE else 1.0
        present_square, target_square = (
            present_offset[0] ** 2 + present_offset[1] ** 2 + z_weight * present_offset[2] ** 2,
            target_offset[0] ** 2 + target_offset[1] ** 2 + z_weight * target_offset[2] ** 2,
        )
        if is_sliding or min(present_square, target_square) > min_offset * min_offset:
            count += 1
        effector_weight = weight[effector]
        for r in range(3):
            for c in range(3):
                B[r, c] += effector_weight * target_offset[r] * present_offset[c]
        if effector < n or point_kind[effector - n] != AXIS_END:
            total_weight += effector_weight
            for r in range(3):
                translation[r] += effector_weight * (target_offset[r] - present_offset[r])
    if total_weight > 0.0:
        for r in range(3):
            translation[r] /= total_weight
    return count


@kernel(
    "f8(f8[:,::1], f8[::1], f8[::1], f8[::1], i8[::1], f8[::1], f8[::1], i8[::1], i8[:,::1], i8[::1], i8[::1],"
    " f8[:,::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8, i8[::1])",
    allocates=True,
)
def fabrik_sweep(
    node_rows: Array, x: Array, lower: Array, upper: Array, column: IndexArray, scale: Array, step: Array,
    first_effector: IndexArray, effectors: IndexArray, point_node: IndexArray, point_kind: IndexArray,
    point_local: Array, weight: Array, target: Array, p: Array, X: Array, X_moved: Array, size: float,
    extra_generations: IndexArray,
) -> float:  # fmt: skip
    """Move x by one iteration; write the steps of the columns into `step`, and return the largest absolute step.

    Args:
        node_rows: (n, Node.size), the kinematic tree.
        x: joint values, updated.
        lower, upper, column: limits (rad or m) and column of each joint value; the column is -1 where the value may not
            change.
        scale, step: scale and step of each column; the steps are written.
        first_effector, effectors: as written by `count_effectors` and `list_effectors`.
        point_node, point_kind, point_local: node (-1: world), kind and position (3) in the node of each of the P
            points.
        weight, target: (n + P,) and (n + P, 3), weights and target positions; the caller sets those of the points, the
            kernel writes those of the nodes.
        p, X, X_moved: work arrays for positions (n + P, 3) and poses (n, 12).
        size: size of the mechanism, m.
        extra_generations: (n,), generations that a hinge uses after the first generation that gives it a direction.
    """
    nodes, n = open_nodes(node_rows), node_rows.shape[0]
    update_positions(nodes, x, point_node, point_local, X, p)
    backward_reach(n, first_effector, effectors, point_kind, weight, p, target)
    B, translation = np.empty((3, 3)), np.empty(3)
    step[:] = 0.0
    for i in range(n):
        node = nodes[i]
        parent, kind, k, ratio = node.parent, node.kind, node.first_q, node.ratio
        X_world_parent = read_pose(X_moved[parent]) if parent >= 0 else IDENTITY_POSE
        Y = child_pose(X_world_parent, node, x, False)
        count = sum_over_effectors(
            i, kind, Y, X, p, target, weight, point_kind, first_effector, effectors, MIN_OFFSET_RATIO * size,
            extra_generations[i], B, translation,
        )  # fmt: skip
        v = column[k]
        if count > 0 and kind == SPHERICAL and v >= 0:
            if count == 1:
                dw, dx, dy, dz = smallest_rotation(B)
            else:
                dw, dx, dy, dz = best_rotation(B)
            w0, x0, y0, z0 = x[k], x[k + 1], x[k + 2], x[k + 3]
            x[k], x[k + 1] = w0 * dw - x0 * dx - y0 * dy - z0 * dz, w0 * dx + x0 * dw + y0 * dz - z0 * dy
            x[k + 2], x[k + 3] = w0 * dy - x0 * dz + y0 * dw + z0 * dx, w0 * dz + x0 * dy - y0 * dx + z0 * dw
            length = math.sqrt(x[k] ** 2 + x[k + 1] ** 2 + x[k + 2] ** 2 + x[k + 3] ** 2)
            for r in range(4):
                x[k + r] /= length
            sine = math.sqrt(dx * dx + dy * dy + dz * dz)
            angle_over_sine = 2.0 * math.atan2(sine, dw) / sine if sine > 0.0 else 0.0
            step[v], step[v + 1], step[v + 2] = angle_over_sine * dx, angle_over_sine * dy, angle_over_sine * dz
        elif count > 0 and kind != SPHERICAL:
            for r in range(3 if kind == TRANSLATION else 1):
                v = column[k + r]
                if v < 0:
                    continue
                previous_value = x[k + r]
                if kind == REVOLUTE:
                    angle = math.atan2(B[1, 0] - B[0, 1], B[0, 0] + B[1, 1])
                    period = abs(2.0 * math.pi / ratio)
                    x[k] = angle_within_limits(
                        previous_value + angle / ratio, previous_value, lower[k], upper[k], period
                    )
                else:
                    value_change = translation[r] if kind == TRANSLATION else translation[2] / ratio
                    x[k + r] = min(max(previous_value + value_change, lower[k + r]), upper[k + r])
                step[v] = (x[k + r] - previous_value) / scale[v]
        Y = child_pose(X_world_parent, node, x, False)
        for r in range(12):
            X_moved[i, r] = Y[r]
    largest_step = 0.0
    for v in range(step.shape[0]):
        largest_step = max(largest_step, abs(step[v]))
    return largest_step


@inline
def is_rotating(node: Node) -> bool:
    """Return whether a node is a hinge or a spherical joint, the rotating joints."""
    return node.kind == REVOLUTE or node.kind == SPHERICAL


@inline
def parent_node(nodes: RecordArray[Node], n: int, point_node: IndexArray, t: int) -> int:
    """Return the node above position t, the origin of a node or (t >= n) a point; -1 if there is none."""
    return nodes[t].parent if t < n else int(point_node[t - n])


@kernel("void(f8[:,::1], i8[::1], i8[::1])")
def count_effectors(node_rows: Array, point_node: IndexArray, first_effector: IndexArray) -> None:
    """Write into `first_effector` (n + 1,) the offset of each node's effectors in the list of all effectors."""
    nodes, n = open_nodes(node_rows), node_rows.shape[0]
    for i in range(n + 1):
        first_effector[i] = 0
    for t in range(n + point_node.shape[0]):
        if t >= n or is_rotating(nodes[t]):
            node = parent_node(nodes, n, point_node, t)
            while node >= 0:
                first_effector[node + 1] += 1
                node = nodes[node].parent
    for i in range(n):
        first_effector[i + 1] += first_effector[i]


@kernel("void(f8[:,::1], i8[::1], i8[::1], i8[:,::1])", allocates=True)
def list_effectors(node_rows: Array, point_node: IndexArray, first_effector: IndexArray, effectors: IndexArray) -> None:
    """List the effectors (position, generation) of all nodes, sorted by generation for each node.

    Those of node i are written to effectors[first_effector[i] : first_effector[i + 1]].
    """
    nodes, n = open_nodes(node_rows), node_rows.shape[0]
    next_free_row = np.empty(n, np.int64)
    for i in range(n):
        next_free_row[i] = first_effector[i]
    for t in range(n + point_node.shape[0]):
        if t >= n or is_rotating(nodes[t]):
            node, generation = parent_node(nodes, n, point_node, t), 0
            while node >= 0:
                k = next_free_row[node]
                while k > first_effector[node] and effectors[k - 1, 1] > generation:
                    effectors[k, 0], effectors[k, 1] = effectors[k - 1, 0], effectors[k - 1, 1]
                    k -= 1
                effectors[k, 0], effectors[k, 1] = t, generation
                next_free_row[node] += 1
                if is_rotating(nodes[node]):
                    generation += 1
                node = nodes[node].parent


@kernel("void(f8[:,::1], f8[:,::1], b1[::1])")
def find_planar_hinges(node_rows: Array, X: Array, is_planar: FlagArray) -> None:
    """Write into `is_planar` (n,) whether a node is a hinge and all rotating joints below it are hinges parallel to it.

    `X` (n, 12) are the world poses of the nodes.
    """
    nodes, n = open_nodes(node_rows), node_rows.shape[0]
    for i in range(n):
        is_planar[i] = nodes[i].kind == REVOLUTE
    for joint in range(n):
        if not is_rotating(nodes[joint]):
            continue
        node = nodes[joint].parent
        while node >= 0:
            cosine = X[joint, 2] * X[node, 2] + X[joint, 5] * X[node, 5] + X[joint, 8] * X[node, 8]
            if nodes[joint].kind != REVOLUTE or abs(cosine) <= 1.0 - PARALLEL_TOLERANCE:
                is_planar[node] = False
            node = nodes[node].parent
