"""Collision query of a mechanism: whether configurations are free, distances and their gradients, or all near pairs.

Bounding spheres and the box tree discard pairs that are far apart; only the others are measured exactly. The gradient
of a distance is n . (velocity of the point on B - velocity of the point on A) per unit of each entry of v.

All poses and centres are in one array `work` (nodes + moving shapes + moving bodies, 16), since each further array
needs another allocation. Its rows are the world poses of the nodes; the world poses of the moving shapes, with the
centre of the bounding sphere at WORK_CENTRE, and 1 at WORK_IS_CURRENT if the row is up to date; and the moving bodies,
with the centre of the bounding sphere at WORK_CENTRE. The arguments for a point are an array, a row, and the index of
the point's first coordinate in that row.
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
    """Read the pose that begins at index k of row i; a view of the row would take twice as long."""
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
    """Update the poses of all nodes and the centres of all moving bodies; return whether q and the centres are finite.

    The rows of the shapes are marked as outdated.

    Args:
        first_shape, first_body: first row of the shapes and of the bodies in `work`.
    """
    coordinate_sum = 0.0
    for k in range(q.shape[0]):
        coordinate_sum += q[k]
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
        coordinate_sum += x + y + z
    return np.isfinite(coordinate_sum)


@subroutine
def update_shape_poses(shapes, bodies, b, first_shape, work):
    """Update the poses and sphere centres of the shapes of moving body b."""
    X = read_row_pose(work, int(bodies[b, BODY_NODE]), 0)
    first_index = int(bodies[b, FIRST_SHAPE])
    for i in range(first_index, first_index + int(bodies[b, SHAPE_COUNT])):
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
def are_apart(A, i, k, B, j, m, distance):
    """Return whether two points are at least `distance` (m) apart; always true if `distance` is not positive."""
    x, y, z = A[i, k] - B[j, m], A[i, k + 1] - B[j, m + 1], A[i, k + 2] - B[j, m + 2]
    return distance <= 0.0 or x * x + y * y + z * z >= distance * distance


@inline
def distance_to_box(tree, row, A, i, k):
    """Return the signed distance between a point and the box of a row of the tree; negative inside."""
    x = max(tree[row, BOX_MIN] - A[i, k], A[i, k] - tree[row, BOX_MAX])
    y = max(tree[row, BOX_MIN + 1] - A[i, k + 1], A[i, k + 1] - tree[row, BOX_MAX + 1])
    z = max(tree[row, BOX_MIN + 2] - A[i, k + 2], A[i, k + 2] - tree[row, BOX_MAX + 2])
    largest_excess = max(x, y, z)
    if largest_excess <= 0.0:
        return largest_excess
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
def insert_result(results, count, max_count, partner, result):
    """Insert a result into `results`, sorted by distance with one row for each partner; return the number of rows.

    If `max_count` rows are in use, the result of a new partner must be nearer than the last row, which is dropped.
    """
    row = count
    for k in range(count):
        if results[k, RESULT_PARTNER] == partner:
            row = k
    if row < count:
        if results[row, RESULT_DISTANCE] <= result[0]:
            return count
    elif count == max_count:
        row = count - 1
    else:
        count += 1
    while row > 0 and results[row - 1, RESULT_DISTANCE] > result[0]:
        for k in range(RESULT_FLOATS):
            results[row, k] = results[row - 1, k]
        row -= 1
    results[row, RESULT_PARTNER] = partner
    for k in range(10):
        results[row, RESULT_DISTANCE + k] = result[k]
    return count


@subroutine
def measure_pair(
    shapes, points, bodies, b, c, max_distance, is_one_result_enough, first_shape, work, results, count, max_count
):
    """Measure the near pairs of shapes of the moving bodies b and c, and insert the results below `max_distance`.

    The last row of `results` counts the measured pairs of shapes.

    Args:
        max_distance: m; the bound decreases when `results` is full.
        is_one_result_enough: whether to return at the first result.
        first_shape: first row of the shapes in `work`.
        count, max_count: number of rows of `results` in use, and the largest number.

    Returns:
        The new number of rows in use.
    """
    for body in (b, c):
        if work[first_shape + int(bodies[body, FIRST_SHAPE]), WORK_IS_CURRENT] == 0.0:
            update_shape_poses(shapes, bodies, body, first_shape, work)
    for j in range(int(bodies[c, FIRST_SHAPE]), int(bodies[c, FIRST_SHAPE] + bodies[c, SHAPE_COUNT])):
        for i in range(int(bodies[b, FIRST_SHAPE]), int(bodies[b, FIRST_SHAPE] + bodies[b, SHAPE_COUNT])):
            min_centre_distance = max_distance + shapes[i, SHAPE_RADIUS] + shapes[j, SHAPE_RADIUS]
            if are_apart(work, first_shape + i, WORK_CENTRE, work, first_shape + j, WORK_CENTRE, min_centre_distance):
                continue
            results[results.shape[0] - 1, 0] += 1.0
            result = shape_distance(
                shapes, i, read_row_pose(work, first_shape + i, 0), j, read_row_pose(work, first_shape + j, 0), points
            )
            if result[0] < max_distance:
                count = insert_result(results, count, max_count, float(c), result)
                if is_one_result_enough:
                    return count
                if count == max_count:
                    max_distance = min(max_distance, results[max_count - 1, RESULT_DISTANCE])
    return count


@subroutine
def measure_static_shape(
    shapes,
    points,
    bodies,
    b,
    j,
    tree,
    tree_row,
    max_distance,
    is_one_result_enough,
    first_shape,
    work,
    results,
    count,
    max_count,
):
    """Measure the near pairs of a shape of the moving body b and the static shape j, like `measure_pair`.

    Args:
        tree_row: row of the tree with shape j; -1 for a half-space.
    """
    if work[first_shape + int(bodies[b, FIRST_SHAPE]), WORK_IS_CURRENT] == 0.0:
        update_shape_poses(shapes, bodies, b, first_shape, work)
    for i in range(int(bodies[b, FIRST_SHAPE]), int(bodies[b, FIRST_SHAPE] + bodies[b, SHAPE_COUNT])):
        shape_row = first_shape + i
        if are_apart(
            work,
            shape_row,
            WORK_CENTRE,
            shapes,
            j,
            SHAPE_CENTRE,
            max_distance + shapes[i, SHAPE_RADIUS] + shapes[j, SHAPE_RADIUS],
        ):
            continue
        if (
            tree_row >= 0
            and distance_to_box(tree, tree_row, work, shape_row, WORK_CENTRE) - shapes[i, SHAPE_RADIUS] >= max_distance
        ):
            continue
        results[results.shape[0] - 1, 0] += 1.0
        result = shape_distance(
            shapes, i, read_row_pose(work, shape_row, 0), j, read_row_pose(shapes, j, SHAPE_POSE), points
        )
        if result[0] < max_distance:
            count = insert_result(results, count, max_count, shapes[j, SHAPE_BODY], result)
            if is_one_result_enough:
                return count
            if count == max_count:
                max_distance = min(max_distance, results[max_count - 1, RESULT_DISTANCE])
    return count


@subroutine
def nearest_static_bodies(
    shapes,
    points,
    bodies,
    b,
    tree,
    is_checked,
    first_half_space,
    max_distance,
    is_one_result_enough,
    first_shape,
    centre_row,
    work,
    results,
    max_count,
    pending_branches,
):
    """Write the static bodies nearest to body b, up to `max_distance` (m), into `results`; return their number.

    Args:
        is_checked: (moving bodies, static bodies) whether the pair is checked.
        first_half_space: index of the first half-space; all shapes after it are half-spaces too.
        centre_row: row of body b in `work`.
        pending_branches: (MAX_PENDING_BRANCHES, 2) work array for the stack of branches still to visit: row of the
            tree, and lower bound of the distance (m).
    """
    count, radius, moving_count = 0, bodies[b, BODY_RADIUS], is_checked.shape[0]
    for j in range(first_half_space, shapes.shape[0]):
        if (
            is_checked[b, int(shapes[j, SHAPE_BODY]) - moving_count]
            and height_above_plane(shapes, j, work, centre_row, WORK_CENTRE) - radius < max_distance
        ):
            count = measure_static_shape(
                shapes,
                points,
                bodies,
                b,
                j,
                tree,
                -1,
                max_distance,
                is_one_result_enough,
                first_shape,
                work,
                results,
                count,
                max_count,
            )
            if is_one_result_enough and count > 0:
                return count
            if count == max_count:
                max_distance = min(max_distance, results[max_count - 1, RESULT_DISTANCE])
    pending_count = 0
    if tree.shape[0] > 0:
        pending_branches[0, 0], pending_branches[0, 1] = (
            0.0,
            distance_to_box(tree, 0, work, centre_row, WORK_CENTRE) - radius,
        )
        pending_count = 1
    while pending_count > 0:
        pending_count -= 1
        if pending_branches[pending_count, 1] >= max_distance:
            continue
        row = int(pending_branches[pending_count, 0])
        j = int(tree[row, TREE_SHAPE])
        if j < 0:
            near_child = int(tree[row, CHILD])
            far_child = near_child + 1
            near_distance = distance_to_box(tree, near_child, work, centre_row, WORK_CENTRE) - radius
            far_distance = distance_to_box(tree, far_child, work, centre_row, WORK_CENTRE) - radius
            if far_distance < near_distance:
                near_child, far_child = far_child, near_child
                near_distance, far_distance = far_distance, near_distance
            if far_distance < max_distance:
                pending_branches[pending_count, 0], pending_branches[pending_count, 1] = far_child, far_distance
                pending_count += 1
            if near_distance < max_distance:
                pending_branches[pending_count, 0], pending_branches[pending_count, 1] = near_child, near_distance
                pending_count += 1
        elif is_checked[b, int(shapes[j, SHAPE_BODY]) - moving_count]:
            count = measure_static_shape(
                shapes,
                points,
                bodies,
                b,
                j,
                tree,
                row,
                max_distance,
                is_one_result_enough,
                first_shape,
                work,
                results,
                count,
                max_count,
            )
            if is_one_result_enough and count > 0:
                return count
            if count == max_count:
                max_distance = min(max_distance, results[max_count - 1, RESULT_DISTANCE])
    return count


@inline
def rotation_rate(work, node, axis, results, k, point_column):
    """Return the velocity of a point along the normal for a rotation of 1 rad/s about an axis of a node.

    The point begins at column `point_column` of row k of `results`.
    """
    ax, ay, az = work[node, axis], work[node, 3 + axis], work[node, 6 + axis]
    x = results[k, point_column] - work[node, 9]
    y = results[k, point_column + 1] - work[node, 10]
    z = results[k, point_column + 2] - work[node, 11]
    return (
        results[k, RESULT_NORMAL] * (ay * z - az * y)
        + results[k, RESULT_NORMAL + 1] * (az * x - ax * z)
        + results[k, RESULT_NORMAL + 2] * (ax * y - ay * x)
    )


@inline
def translation_rate(work, node, axis, results, k):
    """Return the component of an axis of a node along the normal."""
    return (
        results[k, RESULT_NORMAL] * work[node, axis]
        + results[k, RESULT_NORMAL + 1] * work[node, 3 + axis]
        + results[k, RESULT_NORMAL + 2] * work[node, 6 + axis]
    )


@inline
def add_point_gradient(nodes, work, node, results, k, point_column, sign, out, n, row):
    """Add `sign` times the velocity of a point along the normal, per unit of each velocity of a node, to out[n, row].

    The point begins at column `point_column` of row k of `results`; n is the index of the configuration.
    """
    kind, column, ratio = int(nodes[node, NODE_KIND]), int(nodes[node, FIRST_V]), nodes[node, NODE_RATIO]
    if kind == REVOLUTE:
        out[n, row, column] += sign * ratio * rotation_rate(work, node, 2, results, k, point_column)
    elif kind == PRISMATIC:
        out[n, row, column] += sign * ratio * translation_rate(work, node, 2, results, k)
    elif kind == TRANSLATION:
        for axis in range(3):
            out[n, row, column + axis] += sign * translation_rate(work, node, axis, results, k)
    elif kind == SPHERICAL:
        for axis in range(3):
            out[n, row, column + axis] += sign * rotation_rate(work, node, axis, results, k, point_column)


@subroutine
def distance_gradient(nodes, work, node_a, node_b, results, k, out, n, row):
    """Write the gradient with respect to v (nv,) of the distance in row k of `results` into out[n, row].

    Nodes above both bodies move the bodies together and do not change the distance.

    Args:
        work: world poses of the nodes.
        node_a, node_b: the nodes (-1: world) of the two points.
        n: index of the configuration.
    """
    for column in range(out.shape[2]):
        out[n, row, column] = 0.0
    while node_a != node_b:
        if node_a > node_b:
            add_point_gradient(nodes, work, node_a, results, k, RESULT_POINT_A, -1.0, out, n, row)
            node_a = int(nodes[node_a, PARENT])
        else:
            add_point_gradient(nodes, work, node_b, results, k, RESULT_POINT_B, 1.0, out, n, row)
            node_b = int(nodes[node_b, PARENT])


MAX_PENDING_BRANCHES = 128
"""Largest number of branches still to visit. The number is at most the depth of the tree plus one, and a tree that is
split at the median is never that deep."""


@kernel(
    "i8(f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1[:,::1], i8[::1], i8[:,::1], i8[::1], "
    "f8[:,::1], i8, f8, f8[:,::1], f8[:,:,::1], i8[::1])",
    allocates=True,
)
def query(
    nodes,
    shapes,
    points,
    bodies,
    tree,
    is_checked,
    counts,
    pair_lists,
    partners,
    q,
    mode,
    max_distance,
    out,
    details,
    pair_count,
):
    """Run a collision query for each configuration, a row of q.

    Args:
        nodes: (n, 18), see `nodes.py`.
        shapes .. partners: the tables of `collision_layout.py`.
        is_checked: (moving bodies, static bodies) whether the pair is checked.
        q: (N, nq) configurations.
        mode: QUERY_IS_FREE, QUERY_SMALLEST, QUERY_ALL_PAIRS or QUERY_NEAR_PAIRS, see `collision_layout.py`.
        max_distance: m; pairs that are not nearer are ignored.
        out: QUERY_IS_FREE: (N, 1), 1 if no pair is nearer than `max_distance`, else 0. QUERY_SMALLEST: (N, 1), the
            smallest distance, at most `max_distance`. QUERY_ALL_PAIRS: (N, m), distance of each result
            row, at most `max_distance`.
            QUERY_NEAR_PAIRS, for N = 1: not used.
        details: QUERY_ALL_PAIRS: (N, m, nv), gradients, zero where the distance is `max_distance`. QUERY_NEAR_PAIRS:
            (1, n, 12), the body of the list and a result row, for the first n pairs.
        pair_count: (1,), increased by the number of measured pairs of shapes.

    Returns:
        QUERY_NEAR_PAIRS: the number of near pairs, which may exceed the rows of `details`. Other modes: the number of
        configurations. -1 if q has the wrong length, `max_distance` is NaN, or q or a pose is not finite.
    """
    if q.shape[1] != counts[Q_COUNT] or np.isnan(max_distance):
        return -1
    row_count = 1
    if mode == QUERY_NEAR_PAIRS:
        row_count = bodies.shape[0]
    elif mode == QUERY_ALL_PAIRS:
        row_count = MAX_PAIR_ROWS
    first_shape = nodes.shape[0]
    first_body = first_shape + counts[MOVING_SHAPES]
    work = np.empty((first_body + counts[MOVING_BODIES], WORK_FLOATS))
    results = np.empty((row_count + 1, RESULT_FLOATS))
    results[row_count, 0] = 0.0
    pending_branches = np.empty((MAX_PENDING_BRANCHES, 2))
    is_one_result_enough = mode == QUERY_IS_FREE
    total_count = 0
    for n in range(q.shape[0]):
        if not update_poses(nodes, bodies, first_shape, first_body, q[n], work):
            return -1
        nearest_distance = max_distance
        for list_index in range(pair_lists.shape[0]):
            b = pair_lists[list_index, PAIR_BODY]
            max_count = min(row_count, pair_lists[list_index, PAIR_ROWS]) if mode != QUERY_NEAR_PAIRS else row_count
            centre_row = first_body + b
            count = 0
            if pair_lists[list_index, PARTNER_COUNT] < 0:
                count = nearest_static_bodies(
                    shapes, points, bodies, b, tree, is_checked, counts[FIRST_HALF_SPACE], nearest_distance,
                    is_one_result_enough, first_shape, centre_row, work, results, max_count, pending_branches,
                )  # fmt: skip
            else:
                list_max_distance = nearest_distance
                for k in range(
                    pair_lists[list_index, FIRST_PARTNER],
                    pair_lists[list_index, FIRST_PARTNER] + pair_lists[list_index, PARTNER_COUNT],
                ):
                    c = partners[k]
                    min_centre_distance = list_max_distance + bodies[b, BODY_RADIUS] + bodies[c, BODY_RADIUS]
                    if not are_apart(
                        work, centre_row, WORK_CENTRE, work, first_body + c, WORK_CENTRE, min_centre_distance
                    ):
                        count = measure_pair(
                            shapes,
                            points,
                            bodies,
                            b,
                            c,
                            list_max_distance,
                            is_one_result_enough,
                            first_shape,
                            work,
                            results,
                            count,
                            max_count,
                        )
                        if count == max_count:
                            list_max_distance = min(list_max_distance, results[max_count - 1, RESULT_DISTANCE])
                            if is_one_result_enough:
                                break
            if count > 0 and (mode == QUERY_IS_FREE or mode == QUERY_SMALLEST):
                nearest_distance = results[0, RESULT_DISTANCE]
                if is_one_result_enough:
                    break
            elif mode == QUERY_ALL_PAIRS:
                for k in range(max_count):
                    row = pair_lists[list_index, FIRST_PAIR_ROW] + k
                    if k < count:
                        out[n, row] = results[k, RESULT_DISTANCE]
                        c = int(results[k, RESULT_PARTNER])
                        distance_gradient(
                            nodes,
                            work,
                            int(bodies[b, BODY_NODE]),
                            int(bodies[c, BODY_NODE]),
                            results,
                            k,
                            details,
                            n,
                            row,
                        )
                    else:
                        out[n, row] = max_distance
                        for column in range(details.shape[2]):
                            details[n, row, column] = 0.0
            elif mode == QUERY_NEAR_PAIRS:
                for k in range(count):
                    if total_count < details.shape[1]:
                        details[0, total_count, 0] = b
                        for result_column in range(RESULT_FLOATS):
                            details[0, total_count, 1 + result_column] = results[k, result_column]
                    total_count += 1
        if mode == QUERY_IS_FREE:
            out[n, 0] = 1.0 if nearest_distance == max_distance else 0.0
        elif mode == QUERY_SMALLEST:
            out[n, 0] = nearest_distance
        if mode != QUERY_NEAR_PAIRS:
            total_count += 1
    pair_count[0] += int(results[row_count, 0])
    return total_count
