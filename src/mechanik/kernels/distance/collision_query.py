"""Collision query of a mechanism: whether configurations are free, distances and their gradients, or all near pairs.

Bounding spheres and the bounding volume hierarchy (BVH) discard pairs that are far apart; only the others are measured
exactly. The gradient of a distance is n . (velocity of the point on B - velocity of the point on A) per unit of each
entry of v.

All poses and centres are in one work array of `Place` records, since each further array needs another allocation: the
nodes, then the moving shapes, then the moving bodies. The subroutines pass the three parts as the tuple `places`.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import inline, kernel, subroutine
from ..nodes import (
    IDENTITY_POSE,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    TRANSLATION,
    child_pose,
    compose,
    read_pose,
)
from ..tables import Record, flag, integer, number, numbers, records_opener
from .collision_layout import (
    ALL_STATIC,
    MAX_PAIR_ROWS,
    QUERY_ALL_PAIRS,
    QUERY_IS_FREE,
    QUERY_NEAR_PAIRS,
    QUERY_SMALLEST,
    DistanceResult,
    open_results,
    open_scene,
)
from .shape_distance import shape_distance


class Place(Record):
    """Place of a node, a moving shape or a moving body in the world.

    Attributes:
        X: pose of a node or a shape: R row by row, then p in m.
        centre: centre of the bounding sphere of a shape or a body, m.
        is_current: of a shape, whether pose and centre are up to date.
    """

    X = numbers(12)
    centre = numbers(3)
    is_current = flag()


class Branch(Record):
    """A branch of the tree that is still to visit: its box, and a lower bound of the distance (m)."""

    box = integer()
    distance = number()


open_places = records_opener(Place)
open_branches = records_opener(Branch)
PLACE_SIZE, BRANCH_SIZE, RESULT_SIZE = Place.size, Branch.size, DistanceResult.size

MAX_PENDING_BRANCHES = 128
"""Largest number of branches still to visit. The number is at most the depth of the tree plus one, and a tree that is
split at the median is never that deep."""


@inline
def transform_point(X, point):
    """Transform a point (3,) from the frame X to the frame in which X is given."""
    x, y, z = point[0], point[1], point[2]
    return (
        X[9] + X[0] * x + X[1] * y + X[2] * z,
        X[10] + X[3] * x + X[4] * y + X[5] * z,
        X[11] + X[6] * x + X[7] * y + X[8] * z,
    )


@subroutine
def update_poses(scene, q, places):
    """Update the poses of all nodes and the centres of all moving bodies; return whether q and the centres are finite.

    The places of the shapes are marked as outdated.
    """
    nodes, bodies = scene.nodes, scene.bodies
    node_places, shape_places, body_places = places
    coordinate_sum = 0.0
    for k in range(q.shape[0]):
        coordinate_sum += q[k]
    for i in range(scene.node_count):
        node, place = nodes[i], node_places[i]
        parent = node.parent
        X = child_pose(read_pose(node_places[parent].X) if parent >= 0 else IDENTITY_POSE, node, q, False)
        for k in range(12):
            place.X[k] = X[k]
    for i in range(scene.moving_shape_count):
        shape_places[i].is_current = False
    for b in range(scene.moving_body_count):
        body, centre = bodies[b], body_places[b].centre
        x, y, z = transform_point(read_pose(node_places[body.node].X), body.centre)
        centre[0], centre[1], centre[2] = x, y, z
        coordinate_sum += x + y + z
    return np.isfinite(coordinate_sum)


@subroutine
def update_shape_poses(scene, b, places):
    """Update the poses and sphere centres of the shapes of moving body b, unless they are up to date."""
    shapes, body = scene.shapes, scene.bodies[b]
    node_places, shape_places, _ = places
    if shape_places[body.first_shape].is_current:
        return
    X = read_pose(node_places[body.node].X)
    for i in range(body.first_shape, body.first_shape + body.shape_count):
        shape, place = shapes[i], shape_places[i]
        Y = compose(X, read_pose(shape.X_node_shape))
        for k in range(12):
            place.X[k] = Y[k]
        place.centre[0], place.centre[1], place.centre[2] = transform_point(X, shape.centre)
        place.is_current = True


@inline
def are_apart(a, b, distance):
    """Return whether two points (3,) are at least `distance` (m) apart; always true if `distance` is not positive."""
    x, y, z = a[0] - b[0], a[1] - b[1], a[2] - b[2]
    return distance <= 0.0 or x * x + y * y + z * z >= distance * distance


@inline
def distance_to_box(box, point):
    """Return the signed distance between a point (3,) and a box of the tree; negative inside."""
    low, high = box.low, box.high
    x = max(low[0] - point[0], point[0] - high[0])
    y = max(low[1] - point[1], point[1] - high[1])
    z = max(low[2] - point[2], point[2] - high[2])
    largest_excess = max(x, y, z)
    if largest_excess <= 0.0:
        return largest_excess
    x, y, z = max(x, 0.0), max(y, 0.0), max(z, 0.0)
    return math.sqrt(x * x + y * y + z * z)


@inline
def height_above_plane(half_space, point):
    """Return the height of a point (3,) above a half-space."""
    X = half_space.X_node_shape
    x, y, z = point[0] - X[9], point[1] - X[10], point[2] - X[11]
    return X[2] * x + X[5] * y + X[8] * z


@subroutine
def insert_result(results, count, max_count, b, partner, result):
    """Insert the result of body b and a partner into `results`; return the number of results.

    The results are sorted by distance, with one for each partner. If there are already `max_count`, the result of a new
    partner must be nearer than the last one, which is dropped.
    """
    row = count
    for k in range(count):
        if results[k].partner == partner:
            row = k
    if row < count:
        if results[row].distance <= result[0]:
            return count
    elif count == max_count:
        row = count - 1
    else:
        count += 1
    while row > 0 and results[row - 1].distance > result[0]:
        values, previous_values = results[row].values, results[row - 1].values
        for k in range(RESULT_SIZE):
            values[k] = previous_values[k]
        row -= 1
    inserted = results[row]
    inserted.body, inserted.partner = b, partner
    normal, point_a, point_b = inserted.normal, inserted.point_a, inserted.point_b
    (
        inserted.distance, normal[0], normal[1], normal[2],
        point_a[0], point_a[1], point_a[2], point_b[0], point_b[1], point_b[2],
    ) = result  # fmt: skip
    return count


@subroutine
def measure_pair(
    scene, points, b, c, max_distance, is_one_result_enough, places, results, count, max_count, pair_count
):
    """Measure the near pairs of shapes of the moving bodies b and c, and insert the results below `max_distance`.

    Args:
        max_distance: m; the bound decreases when `results` is full.
        is_one_result_enough: whether to return at the first result.
        count, max_count: number of results, and the largest number.
        pair_count: (1,), increased by the number of measured pairs of shapes.

    Returns:
        The new number of results.
    """
    update_shape_poses(scene, b, places)
    update_shape_poses(scene, c, places)
    _, shape_places, _ = places
    shapes, body_b, body_c = scene.shapes, scene.bodies[b], scene.bodies[c]
    for j in range(body_c.first_shape, body_c.first_shape + body_c.shape_count):
        shape_c, place_c = shapes[j], shape_places[j]
        for i in range(body_b.first_shape, body_b.first_shape + body_b.shape_count):
            shape_b, place_b = shapes[i], shape_places[i]
            if are_apart(place_b.centre, place_c.centre, max_distance + shape_b.radius + shape_c.radius):
                continue
            pair_count[0] += 1
            result = shape_distance(shape_b, read_pose(place_b.X), shape_c, read_pose(place_c.X), points)
            if result[0] < max_distance:
                count = insert_result(results, count, max_count, b, c, result)
                if is_one_result_enough:
                    return count
                if count == max_count:
                    max_distance = min(max_distance, results[max_count - 1].distance)
    return count


@subroutine
def measure_static_shape(
    scene, points, b, j, tree_row, max_distance, is_one_result_enough, places, results, count, max_count, pair_count
):
    """Measure the near pairs of a shape of the moving body b and the static shape j, like `measure_pair`.

    Args:
        tree_row: index of the box of shape j; -1 for a half-space.
    """
    update_shape_poses(scene, b, places)
    _, shape_places, _ = places
    shapes, tree, body, static_shape = scene.shapes, scene.tree, scene.bodies[b], scene.shapes[j]
    for i in range(body.first_shape, body.first_shape + body.shape_count):
        shape, place = shapes[i], shape_places[i]
        if are_apart(place.centre, static_shape.centre, max_distance + shape.radius + static_shape.radius):
            continue
        if tree_row >= 0 and distance_to_box(tree[tree_row], place.centre) - shape.radius >= max_distance:
            continue
        pair_count[0] += 1
        result = shape_distance(shape, read_pose(place.X), static_shape, read_pose(static_shape.X_node_shape), points)
        if result[0] < max_distance:
            count = insert_result(results, count, max_count, b, static_shape.body, result)
            if is_one_result_enough:
                return count
            if count == max_count:
                max_distance = min(max_distance, results[max_count - 1].distance)
    return count


@subroutine
def nearest_static_bodies(
    scene, points, b, max_distance, is_one_result_enough, places, results, max_count, branches, pair_count
):
    """Write the static bodies nearest to body b, up to `max_distance` (m), into `results`; return their number.

    Args:
        branches: stack of the branches still to visit.
    """
    shapes, tree, is_checked, moving_count = scene.shapes, scene.tree, scene.is_checked, scene.moving_body_count
    _, _, body_places = places
    count, radius, centre = 0, scene.bodies[b].radius, body_places[b].centre
    for j in range(scene.first_half_space, scene.shape_count):
        if (
            is_checked[b, shapes[j].body - moving_count]
            and height_above_plane(shapes[j], centre) - radius < max_distance
        ):
            count = measure_static_shape(
                scene, points, b, j, -1, max_distance, is_one_result_enough, places, results, count, max_count,
                pair_count,
            )  # fmt: skip
            if is_one_result_enough and count > 0:
                return count
            if count == max_count:
                max_distance = min(max_distance, results[max_count - 1].distance)
    pending_count = 0
    if scene.box_count > 0:
        branches[0].box, branches[0].distance = 0, distance_to_box(tree[0], centre) - radius
        pending_count = 1
    while pending_count > 0:
        pending_count -= 1
        branch = branches[pending_count]
        if branch.distance >= max_distance:
            continue
        row = branch.box
        box = tree[row]
        j = box.shape
        if j < 0:
            near_child = box.first_child
            far_child = near_child + 1
            near_distance = distance_to_box(tree[near_child], centre) - radius
            far_distance = distance_to_box(tree[far_child], centre) - radius
            if far_distance < near_distance:
                near_child, far_child = far_child, near_child
                near_distance, far_distance = far_distance, near_distance
            if far_distance < max_distance:
                branch = branches[pending_count]
                branch.box, branch.distance = far_child, far_distance
                pending_count += 1
            if near_distance < max_distance:
                branch = branches[pending_count]
                branch.box, branch.distance = near_child, near_distance
                pending_count += 1
        elif is_checked[b, shapes[j].body - moving_count]:
            count = measure_static_shape(
                scene, points, b, j, row, max_distance, is_one_result_enough, places, results, count, max_count,
                pair_count,
            )  # fmt: skip
            if is_one_result_enough and count > 0:
                return count
            if count == max_count:
                max_distance = min(max_distance, results[max_count - 1].distance)
    return count


@inline
def rotation_rate(X, axis, normal, point):
    """Return the velocity of a point along the normal for a rotation of 1 rad/s about an axis of the pose X."""
    ax, ay, az = X[axis], X[3 + axis], X[6 + axis]
    x, y, z = point[0] - X[9], point[1] - X[10], point[2] - X[11]
    return normal[0] * (ay * z - az * y) + normal[1] * (az * x - ax * z) + normal[2] * (ax * y - ay * x)


@inline
def translation_rate(X, axis, normal):
    """Return the component of an axis of the pose X along the normal."""
    return normal[0] * X[axis] + normal[1] * X[3 + axis] + normal[2] * X[6 + axis]


@inline
def add_point_gradient(node, X, normal, point, sign, gradient):
    """Add `sign` times the velocity of a point along the normal, per unit of each velocity of a node, to a gradient.

    Args:
        X: (12,) world pose of the node.
    """
    kind, column, ratio = node.kind, node.first_v, node.ratio
    if kind == REVOLUTE:
        gradient[column] += sign * ratio * rotation_rate(X, 2, normal, point)
    elif kind == PRISMATIC:
        gradient[column] += sign * ratio * translation_rate(X, 2, normal)
    elif kind == TRANSLATION:
        for axis in range(3):
            gradient[column + axis] += sign * translation_rate(X, axis, normal)
    elif kind == SPHERICAL:
        for axis in range(3):
            gradient[column + axis] += sign * rotation_rate(X, axis, normal, point)


@subroutine
def distance_gradient(nodes, node_places, node_a, node_b, result, gradient):
    """Write the gradient with respect to v (nv,) of the distance of a result.

    Nodes above both bodies move the bodies together and do not change the distance.

    Args:
        node_a, node_b: the nodes (-1: world) of the two points.
    """
    for column in range(gradient.shape[0]):
        gradient[column] = 0.0
    while node_a != node_b:
        if node_a > node_b:
            add_point_gradient(nodes[node_a], node_places[node_a].X, result.normal, result.point_a, -1.0, gradient)
            node_a = nodes[node_a].parent
        else:
            add_point_gradient(nodes[node_b], node_places[node_b].X, result.normal, result.point_b, 1.0, gradient)
            node_b = nodes[node_b].parent


@kernel(
    "i8(i8[::1], f8[::1], f8[:,::1], f8[:,::1], i8, f8, f8[:,::1], f8[:,:,::1], i8[::1])",
    allocates=True,
)
def query(scene_ints, scene_floats, points, q, mode, max_distance, out, details, pair_count):
    """Run a collision query for each configuration, a row of q.

    Args:
        scene_ints, scene_floats: the tables of a scene, see `collision_layout.py`.
        points: (p, 3), m, points of hulls and height fields.
        q: (N, nq) configurations.
        mode: QUERY_IS_FREE, QUERY_SMALLEST, QUERY_ALL_PAIRS or QUERY_NEAR_PAIRS, see `collision_layout.py`.
        max_distance: m; pairs that are not nearer are ignored.
        out: QUERY_IS_FREE: (N, 1), 1 if no pair is nearer than `max_distance`, else 0. QUERY_SMALLEST: (N, 1), the
            smallest distance, at most `max_distance`. QUERY_ALL_PAIRS: (N, m), distance of each result
            row, at most `max_distance`.
            QUERY_NEAR_PAIRS, for N = 1: not used.
        details: QUERY_ALL_PAIRS: (N, m, nv), gradients, zero where the distance is `max_distance`. QUERY_NEAR_PAIRS:
            (1, n, DistanceResult.size), a result for each of the first n pairs.
        pair_count: (1,), increased by the number of measured pairs of shapes.

    Returns:
        QUERY_NEAR_PAIRS: the number of near pairs, which may exceed the rows of `details`. Other modes: the number of
        configurations. -1 if q has the wrong length, `max_distance` is NaN, or q or a pose is not finite.
    """
    scene = open_scene(scene_ints, scene_floats)
    if q.shape[1] != scene.nq or np.isnan(max_distance):
        return -1
    row_count = 1
    if mode == QUERY_NEAR_PAIRS:
        row_count = scene.moving_body_count + scene.static_body_count
    elif mode == QUERY_ALL_PAIRS:
        row_count = MAX_PAIR_ROWS
    place_rows = np.empty((scene.node_count + scene.moving_shape_count + scene.moving_body_count, PLACE_SIZE))
    result_rows = np.empty((row_count, RESULT_SIZE))
    branch_rows = np.empty((MAX_PENDING_BRANCHES, BRANCH_SIZE))
    return query_configurations(
        scene, points, q, mode, max_distance, out, details, pair_count, place_rows, result_rows, branch_rows
    )


@subroutine
def query_configurations(
    scene, points, q, mode, max_distance, out, details, pair_count, place_rows, result_rows, branch_rows
):
    """Run `query` with the work arrays for places, results and branches."""
    first_body = scene.node_count + scene.moving_shape_count
    node_places, body_places = open_places(place_rows), open_places(place_rows[first_body:])
    places = (node_places, open_places(place_rows[scene.node_count :]), body_places)
    results, branches, row_count = open_results(result_rows), open_branches(branch_rows), result_rows.shape[0]
    bodies, partners = scene.bodies, scene.partners
    is_one_result_enough = mode == QUERY_IS_FREE
    total_count = 0
    for n in range(q.shape[0]):
        if not update_poses(scene, q[n], places):
            return -1
        nearest_distance = max_distance
        for list_index in range(scene.pair_list_count):
            pair_list = scene.pair_lists[list_index]
            b = pair_list.body
            max_count = min(row_count, pair_list.row_count) if mode != QUERY_NEAR_PAIRS else row_count
            count = 0
            if pair_list.partner_count == ALL_STATIC:
                count = nearest_static_bodies(
                    scene, points, b, nearest_distance, is_one_result_enough, places, results, max_count, branches,
                    pair_count,
                )  # fmt: skip
            else:
                list_max_distance = nearest_distance
                for k in range(pair_list.first_partner, pair_list.first_partner + pair_list.partner_count):
                    c = partners[k]
                    min_centre_distance = list_max_distance + bodies[b].radius + bodies[c].radius
                    if not are_apart(body_places[b].centre, body_places[c].centre, min_centre_distance):
                        count = measure_pair(
                            scene, points, b, c, list_max_distance, is_one_result_enough, places, results, count,
                            max_count, pair_count,
                        )  # fmt: skip
                        if count == max_count:
                            list_max_distance = min(list_max_distance, results[max_count - 1].distance)
                            if is_one_result_enough:
                                break
            if count > 0 and (mode == QUERY_IS_FREE or mode == QUERY_SMALLEST):
                nearest_distance = results[0].distance
                if is_one_result_enough:
                    break
            elif mode == QUERY_ALL_PAIRS:
                for k in range(max_count):
                    row = pair_list.first_row + k
                    if k < count:
                        result = results[k]
                        out[n, row] = result.distance
                        distance_gradient(
                            scene.nodes,
                            node_places,
                            bodies[b].node,
                            bodies[result.partner].node,
                            result,
                            details[n, row],
                        )
                    else:
                        out[n, row] = max_distance
                        for column in range(details.shape[2]):
                            details[n, row, column] = 0.0
            elif mode == QUERY_NEAR_PAIRS:
                for k in range(count):
                    if total_count < details.shape[1]:
                        for column in range(RESULT_SIZE):
                            details[0, total_count, column] = results[k].values[column]
                    total_count += 1
        if mode == QUERY_IS_FREE:
            out[n, 0] = 1.0 if nearest_distance == max_distance else 0.0
        elif mode == QUERY_SMALLEST:
            out[n, 0] = nearest_distance
        if mode != QUERY_NEAR_PAIRS:
            total_count += 1
    return total_count
