"""Certify that a path is free of collisions everywhere: each sample proves an interval on both sides of it.

The proof bounds how far a body can move while all dofs move linearly, each at its own rate. Let d be the sum of |rate|
* lever over all dofs above a body, and t the sum of |rate| over the rotational dofs. No point of the body is faster
than d. The lever of a joint grows only by the motion of the joints below it, thus no faster than d. So d grows no
faster than t d, and after s a point has moved at most d (e^(ts) - 1) / t, which is less than

    d s / (1 - ts/2)        for ts < 2.

At the sample, no point is faster than v: the velocity of the centre of the body's bounding sphere plus the angular
velocity times its radius. In v, dofs that move against each other cancel. No acceleration is larger than 2 t d: both
factors of the velocity, the axis and the lever, rotate with the joints above. So a point has moved less than

    v s + t d s^2 / (1 - ts/3)        for ts < 3,

and the smaller of both bounds is used. Dofs that move both bodies of a pair alike do not change their distance.

`query` of `distance/collision_query.py` measures the distances. It is passed as a function: compiled into this
kernel, it would need its compile time again.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import kernel, subroutine
from ..nodes import (
    FIRST_Q,
    IDENTITY_POSE,
    NODE_KIND,
    NODE_RATIO,
    PARENT,
    PRISMATIC,
    REVOLUTE,
    TRANSLATION,
    child_pose,
    read_pose,
)
from .motion_check import (
    BODY_A,
    BODY_B,
    BUDGET_SPENT,
    CERTIFICATE_CHECKS,
    COMMON_NODE,
    IN_COLLISION,
    IS_CERTAIN,
    IS_FREE,
    LAST_STRIDE,
    NOT_FINITE,
    PAIR_ROW,
    QUERY,
    QUERY_TABLES,
    SEGMENT,
    SEGMENT_SHARE,
    SMALLEST_DISTANCE,
    SPHERE_CENTRE,
    SPHERE_NODE,
    SPHERE_RADIUS,
)

BOUND_VELOCITY, BOUND_REACH, BOUND_ROTATION, BOUND_FLOATS = 0, 1, 2, 3
"""Columns of a bounds row: v, d and t for the segment parameter from 0 to 1."""


@subroutine
def update_node_poses(nodes, q, W):
    """Write the world poses of all nodes at q into W (n, 12)."""
    for i in range(nodes.shape[0]):
        parent = int(nodes[i, PARENT])
        X = child_pose(read_pose(W[parent]) if parent >= 0 else IDENTITY_POSE, nodes[i], q, False)
        for k in range(12):
            W[i, k] = X[k]


@subroutine
def body_motion_bound(nodes, spheres, b, ancestor, rates, W):
    """Return v, d and t of body b relative to a node above it (-1: the world)."""
    node, radius = int(spheres[b, SPHERE_NODE]), spheres[b, SPHERE_RADIUS]
    x, y, z = spheres[b, SPHERE_CENTRE], spheres[b, SPHERE_CENTRE + 1], spheres[b, SPHERE_CENTRE + 2]
    mx = W[node, 9] + W[node, 0] * x + W[node, 1] * y + W[node, 2] * z
    my = W[node, 10] + W[node, 3] * x + W[node, 4] * y + W[node, 5] * z
    mz = W[node, 11] + W[node, 6] * x + W[node, 7] * y + W[node, 8] * z
    vx, vy, vz, wx, wy, wz, reach, rotation = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    while node != ancestor:
        kind, k = int(nodes[node, NODE_KIND]), int(nodes[node, FIRST_Q])
        if kind == REVOLUTE:
            rate = nodes[node, NODE_RATIO] * rates[k]
            ax, ay, az = rate * W[node, 2], rate * W[node, 5], rate * W[node, 8]
            x, y, z = mx - W[node, 9], my - W[node, 10], mz - W[node, 11]
            ux, uy, uz = ay * z - az * y, az * x - ax * z, ax * y - ay * x
            vx, vy, vz = vx + ux, vy + uy, vz + uz
            wx, wy, wz = wx + ax, wy + ay, wz + az
            reach += math.sqrt(ux * ux + uy * uy + uz * uz) + abs(rate) * radius
            rotation += abs(rate)
        elif kind == PRISMATIC:
            rate = nodes[node, NODE_RATIO] * rates[k]
            vx, vy, vz = vx + rate * W[node, 2], vy + rate * W[node, 5], vz + rate * W[node, 8]
            reach += abs(rate)
        elif kind == TRANSLATION:
            x, y, z = rates[k], rates[k + 1], rates[k + 2]
            vx += W[node, 0] * x + W[node, 1] * y + W[node, 2] * z
            vy += W[node, 3] * x + W[node, 4] * y + W[node, 5] * z
            vz += W[node, 6] * x + W[node, 7] * y + W[node, 8] * z
            reach += math.sqrt(x * x + y * y + z * z)
        node = int(nodes[node, PARENT])
    speed = math.sqrt(vx * vx + vy * vy + vz * vz) + radius * math.sqrt(wx * wx + wy * wy + wz * wz)
    return speed, reach, rotation


@subroutine
def pair_motion_bounds(nodes, spheres, body_pairs, rates, W, out):
    """Write v, d and t of each row, for the pair of bodies whose distance can fall fastest, into out (m, 3)."""
    for row in range(out.shape[0]):
        out[row, BOUND_VELOCITY], out[row, BOUND_REACH], out[row, BOUND_ROTATION] = 0.0, 0.0, 0.0
    for k in range(body_pairs.shape[0]):
        row = body_pairs[k, PAIR_ROW]
        v, d, t = body_motion_bound(nodes, spheres, body_pairs[k, BODY_A], body_pairs[k, COMMON_NODE], rates, W)
        if body_pairs[k, BODY_B] >= 0:
            v2, d2, t2 = body_motion_bound(nodes, spheres, body_pairs[k, BODY_B], body_pairs[k, COMMON_NODE], rates, W)
            v, d, t = v + v2, d + d2, max(t, t2)
        out[row, BOUND_VELOCITY] = max(out[row, BOUND_VELOCITY], v)
        out[row, BOUND_REACH] = max(out[row, BOUND_REACH], d)
        out[row, BOUND_ROTATION] = max(out[row, BOUND_ROTATION], t)


@subroutine
def distance_bound(v, d, t, s):
    """Return an upper bound of the motion after s; infinite where no bound holds."""
    x, bound = t * s, math.inf
    if x < 2.0:
        bound = d * s / (1.0 - 0.5 * x)
    if x < 3.0:
        bound = min(bound, v * s + d * t * s * s / (1.0 - x / 3.0))
    return bound


@subroutine
def free_interval(v, d, t, margin):
    """Return an s after which the motion is at most `margin` (m)."""
    if margin <= 0.0:
        return 0.0
    s = margin / (d + 0.5 * t * margin) if d > 0.0 else math.inf
    # for ts < 1 the second bound is at most v s + 1.5 t d s^2
    denominator = v + math.sqrt(v * v + 6.0 * t * d * margin)
    if denominator > 0.0:
        second_bound = 2.0 * margin / denominator
        if t * second_bound < 1.0:
            s = max(s, second_bound)
    return s


DISTANCE_ACCURACY = 0.01
"""m: the smallest measured distance exceeds the true minimum by at most this or a quarter of itself, whichever is
larger."""
STRIDE_RATIO = 0.85
"""Distance to the next sample, as a share of the last proven interval; below 1, so that the intervals overlap."""
MAX_PENDING_INTERVALS = 64


@subroutine
def relevant_distance(clearance, smallest):
    """Return the distance above which a pair is neither below `clearance` nor the smallest."""
    return max(clearance, smallest - max(DISTANCE_ACCURACY, 0.25 * smallest))


@kernel(f"i8({QUERY_TABLES}, i8, i8, f8[:,::1], i8[:,::1], f8[:,::1], f8[::1], f8, f8, f8, i8, f8[::1])", calls=QUERY)
def certify_path(
    query, nodes, shapes, points, bodies, tree, is_checked, counts, pair_lists, partners, smallest_mode, all_pairs_mode,
    spheres, body_pairs, q, unit, clearance, fine_step, min_interval, budget, state,
):  # fmt: skip
    """Certify a path with waypoints q (N, nq), starting at the position in `state`, which also takes the results.

    Args:
        query: the collision query, followed by its arguments before q, with one result row for each list of pairs.
        smallest_mode, all_pairs_mode: the modes QUERY_SMALLEST and QUERY_ALL_PAIRS of the query.
        spheres: (b, SPHERE_FLOATS) bounding spheres of the bodies.
        body_pairs: (c, PAIR_INTS) pairs of bodies.
        unit: (nq,) scale of each number of q.
        clearance: m.
        fine_step: largest distance between samples where the path cannot be certified, in units.
        min_interval: length of the shortest interval that is examined, in units; what it does not prove stays
            uncertain.
        budget: number of samples after which the kernel pauses.
        state: (CERTIFICATE_FLOATS,), see `motion_check.py`.

    Returns:
        NOT_FINITE; IN_COLLISION if a distance is below the clearance; IS_FREE; or BUDGET_SPENT.
    """
    n, m = q.shape[1], pair_lists.shape[0]
    sample, rates, W = np.empty((1, n)), np.empty(n), np.empty((nodes.shape[0], 12))
    bounds, distances, gradients = np.empty((m, BOUND_FLOATS)), np.empty((1, m)), np.empty((1, m, n))
    pair_count, pending = np.zeros(1, np.int64), np.empty((MAX_PENDING_INTERVALS, 2))
    remaining = budget
    while state[SEGMENT] < q.shape[0] - 1:
        k = int(state[SEGMENT])
        length = 0.0
        for i in range(n):
            rates[i] = q[k + 1, i] - q[k, i]
            length = max(length, abs(rates[i]) / unit[i])
        if not length < math.inf:
            return NOT_FINITE
        pending[0, 0], pending[0, 1], depth = state[SEGMENT_SHARE], 1.0, 1
        while depth > 0:
            low, high = pending[depth - 1, 0], pending[depth - 1, 1]
            if low > high:
                depth -= 1
                continue
            if remaining <= 0:
                state[SEGMENT_SHARE] = low  # the pending intervals lie beyond `low` and are examined again
                return BUDGET_SPENT
            remaining -= 1
            state[CERTIFICATE_CHECKS] += 1.0
            stride = state[LAST_STRIDE] / max(length, 1e-300)
            share = min(0.5 * (low + high), low + STRIDE_RATIO * stride)
            for i in range(n):
                sample[0, i] = q[k, i] + share * rates[i]
            update_node_poses(nodes, sample[0], W)
            pair_motion_bounds(nodes, spheres, body_pairs, rates, W, bounds)
            if state[SMALLEST_DISTANCE] == math.inf:
                if query(nodes, shapes, points, bodies, tree, is_checked, counts, pair_lists, partners, sample,
                         smallest_mode, math.inf, distances, gradients, pair_count) < 0:  # fmt: skip
                    return NOT_FINITE
                state[SMALLEST_DISTANCE] = distances[0, 0]
            # a larger limit makes the query slower: measure only what a stride of twice the length needs
            floor, reach = relevant_distance(clearance, state[SMALLEST_DISTANCE]), 1e-6
            target_stride = 2.0 * max(min(stride, high - low), min_interval / max(length, 1e-300))
            for g in range(m):
                bounded_stride = (
                    min(target_stride, 1.0 / bounds[g, BOUND_ROTATION])
                    if bounds[g, BOUND_ROTATION] > 0.0
                    else target_stride
                )
                reach = max(
                    reach,
                    distance_bound(
                        bounds[g, BOUND_VELOCITY], bounds[g, BOUND_REACH], bounds[g, BOUND_ROTATION], bounded_stride
                    ),
                )
            if query(nodes, shapes, points, bodies, tree, is_checked, counts, pair_lists, partners, sample,
                     all_pairs_mode, floor + reach, distances, gradients, pair_count) < 0:  # fmt: skip
                return NOT_FINITE
            for g in range(m):
                if distances[0, g] < floor + reach:
                    state[SMALLEST_DISTANCE] = min(state[SMALLEST_DISTANCE], distances[0, g])
            if state[SMALLEST_DISTANCE] < clearance:
                return IN_COLLISION
            measured_up_to, floor = floor + reach, relevant_distance(clearance, state[SMALLEST_DISTANCE])
            s = math.inf
            for g in range(m):
                margin = min(distances[0, g], measured_up_to) - floor
                s = min(
                    s,
                    free_interval(bounds[g, BOUND_VELOCITY], bounds[g, BOUND_REACH], bounds[g, BOUND_ROTATION], margin),
                )
            state[LAST_STRIDE] = min(max(s * length, min_interval), math.pi) if s < math.inf else math.pi
            s = min(s, 2.0)
            if s < 1.0 and s * length < min_interval:
                state[IS_CERTAIN] = 0.0
            if state[IS_CERTAIN] == 0.0:
                s = max(s, 0.5 * fine_step / max(length, 1e-300))
            # the unproven rest of the interval, on both sides of the sample
            pending[depth - 1, 0] = share + s
            if low < share - s:
                if depth < MAX_PENDING_INTERVALS:
                    pending[depth, 0], pending[depth, 1] = low, share - s
                    depth += 1
                else:
                    state[IS_CERTAIN] = 0.0
        state[SEGMENT], state[SEGMENT_SHARE] = k + 1.0, 0.0
    return IS_FREE
