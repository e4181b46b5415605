"""Certify that a path is free of collisions everywhere: each sample proves an interval on both sides of the sample.

The proof bounds how far a body can move while all dofs move linearly, each at a constant rate. Let d be the sum of
|rate| * lever over all dofs above a body, and t the sum of |rate| over the rotational dofs. The lever of a rotational
dof is an upper bound of the distance (m) of the body's points from its axis; that of a translational dof is 1. No point
of the body is faster than d. The lever of a joint grows only by the motion of the joints below it, so not faster than
d. So d grows no faster than t d, and after the parameter s a point has moved at most d (e^(ts) - 1) / t, which is at
most

    d s / (1 - ts/2)        for ts < 2.

At the sample, no point is faster than v: the velocity of the centre of the body's bounding sphere plus the angular
velocity times its radius. In v, dofs that move against each other cancel. No acceleration is larger than 2 t d: both
factors of the velocity, the axis and the lever, rotate with the joints above. So a point has moved at most

    v s + t d s^2 / (1 - ts/3)        for ts < 3,

and the smaller of both bounds is used. Dofs above both bodies of a pair do not change their distance.

Spherical joints are not supported: `body_motion_bound` ignores them, so its bounds would be too small. The caller
certifies paths of mechanisms with spherical joints by `certify_by_bisection` (`motion/plan/path_certificate.py`).

The kernel `query` of `distance/collision_query.py` measures the distances. It is passed as a function, because
compiling it again as a part of this kernel would take long.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import kernel, subroutine
from ..distance.collision_layout import open_scene
from ..nodes import IDENTITY_POSE, PRISMATIC, REVOLUTE, TRANSLATION, child_pose, read_pose
from ..tables import Record, number, records_opener
from .motion_check import (
    BUDGET_SPENT,
    IN_COLLISION,
    IS_FREE,
    NOT_FINITE,
    QUERY,
    QUERY_TABLES,
    open_body_pairs,
    open_certificate,
    open_spheres,
)


class MotionBound(Record):
    """Bounds v, d and t per unit of the segment parameter, which is 0 at the start and 1 at the end.

    Attributes:
        velocity, lever_velocity, rotation: v, d and t.
    """

    velocity = number()
    lever_velocity = number()
    rotation = number()


open_bounds = records_opener(MotionBound)
BOUND_SIZE = MotionBound.size


@subroutine
def update_node_poses(nodes, q, poses):
    """Write the world poses of all nodes at q into `poses` (n, 12)."""
    for i in range(poses.shape[0]):
        node = nodes[i]
        parent = node.parent
        X = child_pose(read_pose(poses[parent]) if parent >= 0 else IDENTITY_POSE, node, q, False)
        for k in range(12):
            poses[i, k] = X[k]


@subroutine
def body_motion_bound(nodes, sphere, ancestor, rates, poses):
    """Return v, d and t of a body with a bounding sphere, relative to a node above it (-1: world).

    Args:
        rates: (nq,) rate of each element of q.
        poses: (n, 12) world poses of the nodes.
    """
    node, radius = sphere.node, sphere.radius
    x, y, z = sphere.centre[0], sphere.centre[1], sphere.centre[2]
    cx = poses[node, 9] + poses[node, 0] * x + poses[node, 1] * y + poses[node, 2] * z
    cy = poses[node, 10] + poses[node, 3] * x + poses[node, 4] * y + poses[node, 5] * z
    cz = poses[node, 11] + poses[node, 6] * x + poses[node, 7] * y + poses[node, 8] * z
    vx, vy, vz, wx, wy, wz, lever_velocity, rotation_rate = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    while node != ancestor:
        kind, first_q = nodes[node].kind, nodes[node].first_q
        if kind == REVOLUTE:
            rate = nodes[node].ratio * rates[first_q]
            ax, ay, az = rate * poses[node, 2], rate * poses[node, 5], rate * poses[node, 8]
            x, y, z = cx - poses[node, 9], cy - poses[node, 10], cz - poses[node, 11]
            ux, uy, uz = ay * z - az * y, az * x - ax * z, ax * y - ay * x
            vx, vy, vz = vx + ux, vy + uy, vz + uz
            wx, wy, wz = wx + ax, wy + ay, wz + az
            lever_velocity += math.sqrt(ux * ux + uy * uy + uz * uz) + abs(rate) * radius
            rotation_rate += abs(rate)
        elif kind == PRISMATIC:
            rate = nodes[node].ratio * rates[first_q]
            vx, vy, vz = vx + rate * poses[node, 2], vy + rate * poses[node, 5], vz + rate * poses[node, 8]
            lever_velocity += abs(rate)
        elif kind == TRANSLATION:
            x, y, z = rates[first_q], rates[first_q + 1], rates[first_q + 2]
            vx += poses[node, 0] * x + poses[node, 1] * y + poses[node, 2] * z
            vy += poses[node, 3] * x + poses[node, 4] * y + poses[node, 5] * z
            vz += poses[node, 6] * x + poses[node, 7] * y + poses[node, 8] * z
            lever_velocity += math.sqrt(x * x + y * y + z * z)
        node = nodes[node].parent
    speed = math.sqrt(vx * vx + vy * vy + vz * vz) + radius * math.sqrt(wx * wx + wy * wy + wz * wz)
    return speed, lever_velocity, rotation_rate


@subroutine
def pair_motion_bounds(nodes, sphere_rows, pair_rows, rates, poses, bound_rows):
    """Write the largest v, d and t of all pairs of bodies of each distance row.

    Args:
        sphere_rows, pair_rows: `BoundingSphere` of each body, and the `BodyPair` records.
        bound_rows: (m, MotionBound.size), written.
    """
    spheres, pairs, bounds = open_spheres(sphere_rows), open_body_pairs(pair_rows), open_bounds(bound_rows)
    for row in range(bound_rows.shape[0]):
        bounds[row].velocity, bounds[row].lever_velocity, bounds[row].rotation = 0.0, 0.0, 0.0
    for k in range(pair_rows.shape[0]):
        pair = pairs[k]
        bound = bounds[pair.distance_row]
        v, d, t = body_motion_bound(nodes, spheres[pair.body_a], pair.common_node, rates, poses)
        if pair.body_b >= 0:
            v_b, d_b, t_b = body_motion_bound(nodes, spheres[pair.body_b], pair.common_node, rates, poses)
            v, d, t = v + v_b, d + d_b, max(t, t_b)
        bound.velocity = max(bound.velocity, v)
        bound.lever_velocity = max(bound.lever_velocity, d)
        bound.rotation = max(bound.rotation, t)


@subroutine
def motion_bound(v, d, t, s):
    """Return an upper bound of the motion (m) after the parameter s; infinite if neither bound is valid."""
    angle, bound = t * s, math.inf
    if angle < 2.0:
        bound = d * s / (1.0 - 0.5 * angle)
    if angle < 3.0:
        bound = min(bound, v * s + d * t * s * s / (1.0 - angle / 3.0))
    return bound


@subroutine
def free_interval(v, d, t, margin):
    """Return a segment parameter s up to which the motion is at most `margin` (m)."""
    if margin <= 0.0:
        return 0.0
    s = margin / (d + 0.5 * t * margin) if d > 0.0 else math.inf
    # for ts < 1 the second bound is at most v s + 1.5 t d s^2
    denominator = v + math.sqrt(v * v + 6.0 * t * d * margin)
    if denominator > 0.0:
        s_second = 2.0 * margin / denominator
        if t * s_second < 1.0:
            s = max(s, s_second)
    return s


MIN_MOTION = 1e-6
"""Lower bound (m) of `largest_motion`."""


@subroutine
def largest_motion(bound_rows, stride):
    """Return the largest motion bound (m) of all distance rows after the parameter `stride`, or after 1 rad if less."""
    bounds, max_motion = open_bounds(bound_rows), MIN_MOTION
    for row in range(bound_rows.shape[0]):
        bound = bounds[row]
        valid_stride = min(stride, 1.0 / bound.rotation) if bound.rotation > 0.0 else stride
        max_motion = max(max_motion, motion_bound(bound.velocity, bound.lever_velocity, bound.rotation, valid_stride))
    return max_motion


@subroutine
def proven_half_width(bound_rows, distances, max_distance, required_distance):
    """Return half the width of the interval about a sample in which no distance falls below `required_distance` (m).

    Args:
        distances: (m,) distance of each row at the sample, m.
        max_distance: m; larger distances were not measured.
    """
    bounds, half_width = open_bounds(bound_rows), math.inf
    for row in range(bound_rows.shape[0]):
        bound, margin = bounds[row], min(distances[row], max_distance) - required_distance
        half_width = min(half_width, free_interval(bound.velocity, bound.lever_velocity, bound.rotation, margin))
    return half_width


DISTANCE_ACCURACY = 0.01
"""Accuracy (m) of the smallest distance: the measured value exceeds the true minimum by at most this length or a
quarter of the measured value, whichever is larger."""
STRIDE_RATIO = 0.85
"""Distance from the start of an unproven interval to its sample, as a share of half the last proven interval; below 1,
so that the interval that the sample proves probably reaches back to the start. A sample is at most in the middle."""
MAX_PENDING_INTERVALS = 64
"""Largest number of unproven intervals of a segment that are stored; if there are more, the path is uncertain."""


@subroutine
def relevant_distance(clearance, smallest_distance):
    """Return the distance above which a pair affects neither the clearance nor the smallest distance."""
    return max(clearance, smallest_distance - max(DISTANCE_ACCURACY, 0.25 * smallest_distance))


@kernel(
    f"i8({QUERY_TABLES}, i8, i8, f8[:,::1], i8[:,::1], f8[:,::1], f8[::1], f8, f8, f8, i8, f8[::1])",
    calls=QUERY,
    allocates=True,
)
def certify_path(
    query, scene_ints, scene_floats, points, smallest_mode, all_pairs_mode,
    sphere_rows, pair_rows, q, unit, clearance, fine_step, min_interval, budget, state_floats,
):  # fmt: skip
    """Certify a path from the position in its state on, or pause when the budget is used up; the next call continues.

    Args:
        query .. points: the collision query and its arguments before q, with one result row for each pair list.
        smallest_mode, all_pairs_mode: the modes QUERY_SMALLEST and QUERY_ALL_PAIRS of the query.
        sphere_rows: (b, BoundingSphere.size) bounding spheres of the bodies.
        pair_rows: (c, BodyPair.size) pairs of bodies.
        q: (N, nq) waypoints.
        unit: (nq,) scale of each element of q.
        clearance: m.
        fine_step: largest distance between samples where the path cannot be certified, in scaled units.
        min_interval: shortest half of a proven interval, in scaled units; where the proof is shorter, the path is
            uncertain.
        budget: number of samples after which the kernel pauses.
        state_floats: (CertificateState.size,), updated: position and results, see `motion_check.py`.

    Returns:
        NOT_FINITE; IN_COLLISION if a distance is below the clearance; IS_FREE; or BUDGET_SPENT.
    """
    scene, state = open_scene(scene_ints, scene_floats), open_certificate(state_floats)
    n, m = q.shape[1], scene.pair_list_count
    sample, rates, poses = np.empty((1, n)), np.empty(n), np.empty((scene.node_count, 12))
    bound_rows, distances, gradients = np.empty((m, BOUND_SIZE)), np.empty((1, m)), np.empty((1, m, n))
    pair_count, pending_intervals = np.zeros(1, np.int64), np.empty((MAX_PENDING_INTERVALS, 2))
    remaining_sample_count = budget
    while state.segment < q.shape[0] - 1:
        segment = state.segment
        length = 0.0
        for i in range(n):
            rates[i] = q[segment + 1, i] - q[segment, i]
            length = max(length, abs(rates[i]) / unit[i])
        if not length < math.inf:
            return NOT_FINITE
        pending_intervals[0, 0], pending_intervals[0, 1], pending_count = state.finished_share, 1.0, 1
        while pending_count > 0:
            share_start, share_end = pending_intervals[pending_count - 1, 0], pending_intervals[pending_count - 1, 1]
            if share_start > share_end:
                pending_count -= 1
                continue
            if remaining_sample_count <= 0:
                # the other pending intervals are after `share_start` and are examined again
                state.finished_share = share_start
                return BUDGET_SPENT
            remaining_sample_count -= 1
            state.check_count += 1
            stride = state.last_stride / max(length, 1e-300)
            share = min(0.5 * (share_start + share_end), share_start + STRIDE_RATIO * stride)
            for i in range(n):
                sample[0, i] = q[segment, i] + share * rates[i]
            update_node_poses(scene.nodes, sample[0], poses)
            pair_motion_bounds(scene.nodes, sphere_rows, pair_rows, rates, poses, bound_rows)
            if state.smallest_distance == math.inf:
                if query(scene_ints, scene_floats, points, sample, smallest_mode, math.inf, distances, gradients,
                         pair_count) < 0:  # fmt: skip
                    return NOT_FINITE
                state.smallest_distance = distances[0, 0]
            # a query with a larger `max_distance` is slower, so it is just large enough for twice the last stride
            distance_threshold = relevant_distance(clearance, state.smallest_distance)
            target_stride = 2.0 * max(min(stride, share_end - share_start), min_interval / max(length, 1e-300))
            max_motion = largest_motion(bound_rows, target_stride)
            if query(scene_ints, scene_floats, points, sample, all_pairs_mode, distance_threshold + max_motion,
                     distances, gradients, pair_count) < 0:  # fmt: skip
                return NOT_FINITE
            for row in range(m):
                if distances[0, row] < distance_threshold + max_motion:
                    state.smallest_distance = min(state.smallest_distance, distances[0, row])
            if state.smallest_distance < clearance:
                return IN_COLLISION
            max_measured_distance, distance_threshold = (
                distance_threshold + max_motion,
                relevant_distance(clearance, state.smallest_distance),
            )
            half_width = proven_half_width(bound_rows, distances[0], max_measured_distance, distance_threshold)
            state.last_stride = (
                min(max(half_width * length, min_interval), math.pi) if half_width < math.inf else math.pi
            )
            half_width = min(half_width, 2.0)
            if half_width < 1.0 and half_width * length < min_interval:
                state.is_certain = False
            if not state.is_certain:
                half_width = max(half_width, 0.5 * fine_step / max(length, 1e-300))
            # the unproven parts of the interval before and after the sample remain pending
            pending_intervals[pending_count - 1, 0] = share + half_width
            if share_start < share - half_width:
                if pending_count < MAX_PENDING_INTERVALS:
                    pending_intervals[pending_count, 0], pending_intervals[pending_count, 1] = (
                        share_start,
                        share - half_width,
                    )
                    pending_count += 1
                else:
                    state.is_certain = False
        state.segment, state.finished_share = segment + 1, 0.0
    return IS_FREE
