"""Collision query of a mechanism: whether configurations are free, the smallest distance, or all near pairs.

Bounding spheres and the box tree discard pairs that are far apart; only the others are measured exactly. The gradient
of a distance is n . (velocity of the point on B - velocity of the point on A) for each column of v.

All work data is one array `work` (nodes + moving shapes + moving bodies, 16), since each further array costs a call:
the world poses of the nodes; those of the shapes, with the centre of the bounding sphere at WORK_CENTRE and 1 at
WORK_IS_CURRENT once they are updated; the centres of the bodies at WORK_CENTRE. Functions take a point as an array,
its row, and the index where it begins in the row.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import inline, kernel, subroutine
from ..nodes import (
    FIRST_V,
    IDENTITY_POSE,
    NODE_KIND,
    NODE_RATIO,
    PARENT,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    TRANSLATION,
    child_pose,
    compose,
)
from .collision_layout import (
    BODY_CENTRE,
    BODY_NODE,
    BODY_RADIUS,
    BOX_MAX,
    BOX_MIN,
    CHILD,
    FIRST_HALF_SPACE,
    FIRST_PAIR_ROW,
    FIRST_PARTNER,
    FIRST_SHAPE,
    MAX_PAIR_ROWS,
    MOVING_BODIES,
    MOVING_SHAPES,
    PAIR_BODY,
    PAIR_ROWS,
    PARTNER_COUNT,
    Q_COUNT,
    QUERY_ALL_PAIRS,
    QUERY_IS_FREE,
    QUERY_NEAR_PAIRS,
    QUERY_SMALLEST,
    RESULT_DISTANCE,
    RESULT_FLOATS,
    RESULT_NORMAL,
    RESULT_PARTNER,
    RESULT_POINT_A,
    RESULT_POINT_B,
    SHAPE_BODY,
    SHAPE_CENTRE,
    SHAPE_COUNT,
    SHAPE_POSE,
    SHAPE_RADIUS,
    TREE_SHAPE,
)
from .shape_distance import shape_distance

WORK_CENTRE, WORK_IS_CURRENT, WORK_FLOATS = 12, 15, 16


@inline
def read_row_pose(rows, i, k):
    """Read the pose that begins at index k of row i; a view of the row would double the cost."""
    return (
        rows[i, k], rows[i, k + 1], rows[i, k + 2], rows[i, k + 3], rows[i, k + 4], rows[i, k + 5],
        rows[i, k + 6], rows[i, k + 7], rows[i, k + 8], rows[i, k + 9], rows[i, k + 10], rows[i, k + 11],
    )  # fmt: skip


@inline
def transform_point(X, x, y, z):
    """Transform a point from the frame X to the frame in which X is given."""
    return (
        X[9] + X[0] * x + X[1] * y + X[2] * z,
        X[10] + X[3] * x + X[4] * y + X[5] * z,
        X[11] + X[6] * x + X[7] * y + X[8] * z,
    )


@subroutine
def update_poses(nodes, bodies, first_shape, first_body, q, work):
    """Update the poses of all nodes and the centres of all moving bodies; return whether they and q are finite.

    Args:
        first_shape, first_body: first row of the shapes and of the bodies in `work`.
    """
    total = 0.0
    for k in range(q.shape[0]):
        total += q[k]
    for i in range(nodes.shape[0]):
        parent = int(nodes[i, PARENT])
        X = child_pose(read_row_pose(work, parent, 0) if parent >= 0 else IDENTITY_POSE, nodes[i], q, False)
        for k in range(12):
            work[i, k] = X[k]
    for i in range(first_shape, first_body):
        work[i, WORK_IS_CURRENT] = 0.0
    for row in range(first_body, work.shape[0]):
        b = row - first_body
        X = read_row_pose(work, int(bodies[b, BODY_NODE]), 0)
        x, y, z = transform_point(X, bodies[b, BODY_CENTRE], bodies[b, BODY_CENTRE + 1], bodies[b, BODY_CENTRE + 2])
        work[row, WORK_CENTRE], work[row, WORK_CENTRE + 1], work[row, WORK_CENTRE + 2] = x, y, z
        total += x + y + z
    return np.isfinite(total)


@subroutine
def update_shape_poses(shapes, bodies, b, first_shape, work):
    """Update the poses and sphere centres of the shapes of moving body b."""
    X = read_row_pose(work, int(bodies[b, BODY_NODE]), 0)
    first = int(bodies[b, FIRST_SHAPE])
    for i in range(first, first + int(bodies[b, SHAPE_COUNT])):
        row = first_shape + i
        Y = compose(X, read_row_pose(shapes, i, SHAPE_POSE))
        for k in range(12):
            work[row, k] = Y[k]
        x, y, z = transform_point(X, shapes[i, SHAPE_CENTRE], shapes[i, SHAPE_CENTRE + 1], shapes[i, SHAPE_CENTRE + 2])
        work[row, WORK_CENTRE], work[row, WORK_CENTRE + 1], work[row, WORK_CENTRE + 2], work[row, WORK_IS_CURRENT] = (
            x,
            y,
            z,
            1.0,
        )


@inline
def are_apart(A, i, k, B, j, m, reach):
    """Return whether two points are at least `reach` apart."""
    x, y, z = A[i, k] - B[j, m], A[i, k + 1] - B[j, m + 1], A[i, k + 2] - B[j, m + 2]
    return reach <= 0.0 or x * x + y * y + z * z >= reach * reach


@inline
def distance_to_box(tree, row, A, i, k):
    """Return the signed distance of a point to the box of a row of the tree, negative inside."""
    x = max(tree[row, BOX_MIN] - A[i, k], A[i, k] - tree[row, BOX_MAX])
    y = max(tree[row, BOX_MIN + 1] - A[i, k + 1], A[i, k + 1] - tree[row, BOX_MAX + 1])
    z = max(tree[row, BOX_MIN + 2] - A[i, k + 2], A[i, k + 2] - tree[row, BOX_MAX + 2])
    deepest = max(x, y, z)
    if deepest <= 0.0:
        return deepest
    x, y, z = max(x, 0.0), max(y, 0.0), max(z, 0.0)
    return math.sqrt(x * x + y * y + z * z)


@inline
def height_above_plane(shapes, j, A, i, k):
    """Return the height of a point above the half-space of shape j."""
    x, y, z = (
        A[i, k] - shapes[j, SHAPE_POSE + 9],
        A[i, k + 1] - shapes[j, SHAPE_POSE + 10],
        A[i, k + 2] - shapes[j, SHAPE_POSE + 11],
    )
    return shapes[j, SHAPE_POSE + 2] * x + shapes[j, SHAPE_POSE + 5] * y + shapes[j, SHAPE_POSE + 8] * z


@subroutine
def insert_result(found, count, most, partner, result):
    """Insert a result into `found`, sorted by distance with one row for each partner; return the number of rows."""
    at = count
    for k in range(count):
        if found[k, RESULT_PARTNER] == partner:
            at = k
    if at < count:
        if found[at, RESULT_DISTANCE] <= result[0]:
            return count
    elif count == most:
        at = count - 1
    else:
        count += 1
    while at > 0 and found[at - 1, RESULT_DISTANCE] > result[0]:
        for k in range(RESULT_FLOATS):
            found[at, k] = found[at - 1, k]
        at -= 1
    found[at, RESULT_PARTNER] = partner
    for k in range(10):
        found[at, RESULT_DISTANCE + k] = result[k]
    return count


@subroutine
def measure_pair(shapes, points, bodies, b, c, limit, stop, first_shape, work, found, count, most):
    """Measure all shape pairs of moving bodies b and c, insert those nearer than `limit`, return the number of rows.

    The last row of `found` counts the measured pairs of shapes.

    Args:
        limit: m.
        stop: whether to return at the first result.
        first_shape: first row of the shapes in `work`.
        count, most: number of rows of `found` in use, and the largest number.
    """
    for body in (b, c):
        if work[first_shape + int(bodies[body, FIRST_SHAPE]), WORK_IS_CURRENT] == 0.0:
            update_shape_poses(shapes, bodies, body, first_shape, work)
    for j in range(int(bodies[c, FIRST_SHAPE]), int(bodies[c, FIRST_SHAPE] + bodies[c, SHAPE_COUNT])):
        for i in range(int(bodies[b, FIRST_SHAPE]), int(bodies[b, FIRST_SHAPE] + bodies[b, SHAPE_COUNT])):
            reach = limit + shapes[i, SHAPE_RADIUS] + shapes[j, SHAPE_RADIUS]
            if are_apart(work, first_shape + i, WORK_CENTRE, work, first_shape + j, WORK_CENTRE, reach):
                continue
            found[found.shape[0] - 1, 0] += 1.0
            result = shape_distance(
                shapes, i, read_row_pose(work, first_shape + i, 0), j, read_row_pose(work, first_shape + j, 0), points
            )
            if result[0] < limit:
                count = insert_result(found, count, most, float(c), result)
                if stop:
                    return count
                if count == most:
                    limit = min(limit, found[most - 1, RESULT_DISTANCE])
    return count


@subroutine
def measure_static(shapes, points, bodies, b, j, tree, row, limit, stop, first_shape, work, found, count, most):
    """Measure each shape of moving body b against static shape j, as `measure_pair`.

    Args:
        row: row of the tree with shape j; -1 for a half-space.
    """
    if work[first_shape + int(bodies[b, FIRST_SHAPE]), WORK_IS_CURRENT] == 0.0:
        update_shape_poses(shapes, bodies, b, first_shape, work)
    for i in range(int(bodies[b, FIRST_SHAPE]), int(bodies[b, FIRST_SHAPE] + bodies[b, SHAPE_COUNT])):
        at = first_shape + i
        if are_apart(
            work, at, WORK_CENTRE, shapes, j, SHAPE_CENTRE, limit + shapes[i, SHAPE_RADIUS] + shapes[j, SHAPE_RADIUS]
        ):
            continue
        if row >= 0 and distance_to_box(tree, row, work, at, WORK_CENTRE) - shapes[i, SHAPE_RADIUS] >= limit:
            continue
        found[found.shape[0] - 1, 0] += 1.0
        result = shape_distance(shapes, i, read_row_pose(work, at, 0), j, read_row_pose(shapes, j, SHAPE_POSE), points)
        if result[0] < limit:
            count = insert_result(found, count, most, shapes[j, SHAPE_BODY], result)
            if stop:
                return count
            if count == most:
                limit = min(limit, found[most - 1, RESULT_DISTANCE])
    return count


@subroutine
def nearest_static(
    shapes,
    points,
    bodies,
    b,
    tree,
    is_checked,
    first_half_space,
    limit,
    stop,
    first_shape,
    middle,
    work,
    found,
    most,
    waiting,
):
    """Write the nearest static bodies that are nearer than `limit` into `found`; return their number.

    Args:
        is_checked: (moving bodies, static bodies) whether the pair is checked.
        first_half_space: the first half-space; all shapes after it are half-spaces too.
        middle: row of body b in `work`.
        waiting: (n, 2) work array for pending branches of the tree: the row, and a lower bound of its distance.
    """
    count, radius, moving = 0, bodies[b, BODY_RADIUS], is_checked.shape[0]
    for j in range(first_half_space, shapes.shape[0]):
        if (
            is_checked[b, int(shapes[j, SHAPE_BODY]) - moving]
            and height_above_plane(shapes, j, work, middle, WORK_CENTRE) - radius < limit
        ):
            count = measure_static(
                shapes, points, bodies, b, j, tree, -1, limit, stop, first_shape, work, found, count, most
            )
            if stop and count > 0:
                return count
            if count == most:
                limit = min(limit, found[most - 1, RESULT_DISTANCE])
    depth = 0
    if tree.shape[0] > 0:
        waiting[0, 0], waiting[0, 1] = 0.0, distance_to_box(tree, 0, work, middle, WORK_CENTRE) - radius
        depth = 1
    while depth > 0:
        depth -= 1
        if waiting[depth, 1] >= limit:
            continue
        row = int(waiting[depth, 0])
        j = int(tree[row, TREE_SHAPE])
        if j < 0:
            near = int(tree[row, CHILD])
            far = near + 1
            at_near = distance_to_box(tree, near, work, middle, WORK_CENTRE) - radius
            at_far = distance_to_box(tree, far, work, middle, WORK_CENTRE) - radius
            if at_far < at_near:
                near, far = far, near
                at_near, at_far = at_far, at_near
            if at_far < limit:
                waiting[depth, 0], waiting[depth, 1] = far, at_far
                depth += 1
            if at_near < limit:
                waiting[depth, 0], waiting[depth, 1] = near, at_near
                depth += 1
        elif is_checked[b, int(shapes[j, SHAPE_BODY]) - moving]:
            count = measure_static(
                shapes, points, bodies, b, j, tree, row, limit, stop, first_shape, work, found, count, most
            )
            if stop and count > 0:
                return count
            if count == most:
                limit = min(limit, found[most - 1, RESULT_DISTANCE])
    return count


@inline
def rotation_rate(work, node, axis, result, k, point):
    """Return the velocity of a point along the normal for a rotation of 1 rad/s about an axis of a node."""
    ax, ay, az = work[node, axis], work[node, 3 + axis], work[node, 6 + axis]
    x = result[k, point] - work[node, 9]
    y = result[k, point + 1] - work[node, 10]
    z = result[k, point + 2] - work[node, 11]
    return (
        result[k, RESULT_NORMAL] * (ay * z - az * y)
        + result[k, RESULT_NORMAL + 1] * (az * x - ax * z)
        + result[k, RESULT_NORMAL + 2] * (ax * y - ay * x)
    )


@inline
def translation_rate(work, node, axis, result, k):
    """Return the component of an axis of a node along the normal."""
    return (
        result[k, RESULT_NORMAL] * work[node, axis]
        + result[k, RESULT_NORMAL + 1] * work[node, 3 + axis]
        + result[k, RESULT_NORMAL + 2] * work[node, 6 + axis]
    )


@inline
def add_point_gradient(nodes, work, node, result, k, point, sign, out, n, row):
    """Add the motion of one of the two points along the normal, by the columns of a node, to out[n, row]."""
    kind, column, ratio = int(nodes[node, NODE_KIND]), int(nodes[node, FIRST_V]), nodes[node, NODE_RATIO]
    if kind == REVOLUTE:
        out[n, row, column] += sign * ratio * rotation_rate(work, node, 2, result, k, point)
    elif kind == PRISMATIC:
        out[n, row, column] += sign * ratio * translation_rate(work, node, 2, result, k)
    elif kind == TRANSLATION:
        for axis in range(3):
            out[n, row, column + axis] += sign * translation_rate(work, node, axis, result, k)
    elif kind == SPHERICAL:
        for axis in range(3):
            out[n, row, column + axis] += sign * rotation_rate(work, node, axis, result, k, point)


@subroutine
def distance_gradient(nodes, work, a, b, result, k, out, n, row):
    """Write the gradient by v (nv,) of the distance in row k of `result` into out[n, row].

    Nodes above both bodies move both points alike and do not change the distance.

    Args:
        work: world poses of the nodes.
        a, b: the nodes (-1: the world) that carry the two points.
    """
    for column in range(out.shape[2]):
        out[n, row, column] = 0.0
    while a != b:
        if a > b:
            add_point_gradient(nodes, work, a, result, k, RESULT_POINT_A, -1.0, out, n, row)
            a = int(nodes[a, PARENT])
        else:
            add_point_gradient(nodes, work, b, result, k, RESULT_POINT_B, 1.0, out, n, row)
            b = int(nodes[b, PARENT])


MAX_TREE_DEPTH = 128
"""Largest number of pending branches of the tree; a tree that is split at the median is never that deep."""


@kernel(
    "i8(f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1[:,::1], i8[::1], i8[:,::1], i8[::1], "
    "f8[:,::1], i8, f8, f8[:,::1], f8[:,:,::1], i8[::1])"
)
def query(
    nodes, shapes, points, bodies, tree, is_checked, counts, pair_lists, partners, q, mode, limit, out, more, tally
):
    """Run a collision query, of a mode of `collision_layout.py`, for each row of q (N, nq).

    Args:
        nodes .. partners: the tables of `collision_layout.py`, world frame, m.
        mode: QUERY_IS_FREE, QUERY_SMALLEST, QUERY_ALL_PAIRS or QUERY_NEAR_PAIRS.
        limit: m; pairs that are farther apart are ignored.
        out: QUERY_IS_FREE: (N, 1), 1 or 0. QUERY_SMALLEST: (N, 1), the smallest distance or `limit`. QUERY_ALL_PAIRS:
            (N, m), distances, at most `limit`. QUERY_NEAR_PAIRS: not used.
        more: QUERY_ALL_PAIRS: (N, m, nv), gradients, zero where the distance is `limit`. QUERY_NEAR_PAIRS: (1, n, 12),
            the body of the list and a result row, for the first n pairs.
        tally: (1,), increased by the number of measured pairs of shapes.

    Returns:
        QUERY_NEAR_PAIRS: the number of pairs, also of those without space in `more`; else the number of
        configurations; -1 if q or `limit` is not valid, or a pose is not finite.
    """
    if q.shape[1] != counts[Q_COUNT] or np.isnan(limit):
        return -1
    all_rows = 1
    if mode == QUERY_NEAR_PAIRS:
        all_rows = bodies.shape[0]
    elif mode == QUERY_ALL_PAIRS:
        all_rows = MAX_PAIR_ROWS
    first_shape = nodes.shape[0]
    first_body = first_shape + counts[MOVING_SHAPES]
    work = np.empty((first_body + counts[MOVING_BODIES], WORK_FLOATS))
    result = np.empty((all_rows + 1, RESULT_FLOATS))
    result[all_rows, 0] = 0.0
    waiting = np.empty((MAX_TREE_DEPTH, 2))
    stop = mode == QUERY_IS_FREE
    total = 0
    for n in range(q.shape[0]):
        if not update_poses(nodes, bodies, first_shape, first_body, q[n], work):
            return -1
        nearest = limit
        for g in range(pair_lists.shape[0]):
            b = pair_lists[g, PAIR_BODY]
            most = min(all_rows, pair_lists[g, PAIR_ROWS]) if mode != QUERY_NEAR_PAIRS else all_rows
            middle = first_body + b
            count = 0
            if pair_lists[g, PARTNER_COUNT] < 0:
                count = nearest_static(
                    shapes, points, bodies, b, tree, is_checked, counts[FIRST_HALF_SPACE], nearest, stop, first_shape,
                    middle, work, result, most, waiting,
                )  # fmt: skip
            else:
                near = nearest
                for k in range(
                    pair_lists[g, FIRST_PARTNER], pair_lists[g, FIRST_PARTNER] + pair_lists[g, PARTNER_COUNT]
                ):
                    c = partners[k]
                    reach = near + bodies[b, BODY_RADIUS] + bodies[c, BODY_RADIUS]
                    if not are_apart(work, middle, WORK_CENTRE, work, first_body + c, WORK_CENTRE, reach):
                        count = measure_pair(
                            shapes, points, bodies, b, c, near, stop, first_shape, work, result, count, most
                        )
                        if count == most:
                            near = min(near, result[most - 1, RESULT_DISTANCE])
                            if stop:
                                break
            if count > 0 and (mode == QUERY_IS_FREE or mode == QUERY_SMALLEST):
                nearest = result[0, RESULT_DISTANCE]
                if stop:
                    break
            elif mode == QUERY_ALL_PAIRS:
                for k in range(most):
                    row = pair_lists[g, FIRST_PAIR_ROW] + k
                    if k < count:
                        out[n, row] = result[k, RESULT_DISTANCE]
                        c = int(result[k, RESULT_PARTNER])
                        distance_gradient(
                            nodes, work, int(bodies[b, BODY_NODE]), int(bodies[c, BODY_NODE]), result, k, more, n, row
                        )
                    else:
                        out[n, row] = limit
                        for column in range(more.shape[2]):
                            more[n, row, column] = 0.0
            elif mode == QUERY_NEAR_PAIRS:
                for k in range(count):
                    if total < more.shape[1]:
                        more[0, total, 0] = b
                        for number in range(RESULT_FLOATS):
                            more[0, total, 1 + number] = result[k, number]
                    total += 1
        if mode == QUERY_IS_FREE:
            out[n, 0] = 1.0 if nearest == limit else 0.0
        elif mode == QUERY_SMALLEST:
            out[n, 0] = nearest
        if mode != QUERY_NEAR_PAIRS:
            total += 1
    tally[0] += int(result[all_rows, 0])
    return total
