"""One sweep of cyclic coordinate descent: each joint in order moves to the value that minimises the cost.

For a rotation by t about an axis, the cost of all points, directions and poses together is a sinusoid a cos t + b sin t
plus a constant (Wang and Chen 1991, equations 14 to 18), so a hinge (revolute joint) has a closed form, also within
limits. Lines, planes and right angles add a second harmonic; then the minimum is found by samples and Newton's method.
For a slider (prismatic joint) the cost is a parabola. All three dofs of a spherical joint move at once, by a quaternion
(Blow 2002), also within a cone. A value that several joints share is found by a line search. The cost, `sides` and
`frames` are defined in `ccd_cost.py`.
"""

from __future__ import annotations

import math

from ..compiler import kernel, subroutine
from ..nodes import PRISMATIC, REVOLUTE, SPHERICAL, TRANSLATION
from ..problem_layout import *
from ..problem_layout import LOCKED, MOVES_A, MOVES_B, open_problem
from ..tables import matrix_at, vector_at
from .ccd_cost import (
    best_angle_about,
    best_rotation,
    collect_vector_pairs,
    frame_pair,
    rotate_frames,
    rotation_between,
    rotation_matrix,
    total_cost,
    translate_frames,
    translation_derivatives,
    update_goal_frames,
    update_poses_between,
)

CONE_TOLERANCE = 1e-12
"""Difference of cosines up to which a direction outside its cone still counts as inside."""
SWEEP_WORK_FLOATS = 64
"""Number of floats in the work array of a sweep."""


@subroutine
def rotate_spherical(
    problem, quaternion, node, use_bits, cone, sides, frames, max_angle, blend, cosine, work, rotation_vector
):
    """Rotate a spherical joint to the minimum of the cost; return the angle of the whole rotation (rad).

    For a single point or direction this is the smallest rotation towards it; for several, or for a pose, the best
    rotation. With a cone, rotations about single axes follow. With lines, planes or right angles among the goals, there
    are only rotations about single axes. Rotations about single axes do not increase the cost if `blend` is 1.

    Args:
        quaternion: (4,), the joint's quaternion, updated.
        node: index of the joint's node.
        use_bits: USE_POSITIONS and USE_ROTATIONS, as bits.
        cone: index of the block that is the joint's cone; -1 if it has none.
        sides: (blocks,) the row of the node.
        frames: (blocks, 24), updated.
        max_angle: largest rotation, rad; a rotation back into the cone may be larger.
        blend: fraction of each rotation that is applied.
        cosine: cosine of the half angle of the cone, if there is one.
        work: (SWEEP_WORK_FLOATS,), work array.
        rotation_vector: (3,), written: the applied rotation in the joint's own axes, rad.
    """
    X = problem.poses[node]
    cx, cy, cz = X[9], X[10], X[11]
    N, V = work[0:16].reshape(4, 4), work[16:32].reshape(4, 4)
    R, S, pair, sinusoid = work[32:41].reshape(3, 3), work[41:50].reshape(3, 3), work[50:56], work[56:61]
    w0, x0, y0, z0 = quaternion[0], quaternion[1], quaternion[2], quaternion[3]
    pair_count = collect_vector_pairs(problem, sides, frames, use_bits, cx, cy, cz, S, pair)
    w, x, y, z = 1.0, 0.0, 0.0, 0.0
    if pair_count == 1:
        w, x, y, z = rotation_between(pair[0], pair[1], pair[2], pair[3], pair[4], pair[5])
    elif pair_count > 1:
        w, x, y, z = best_rotation(S, N, V)
    w, x, y, z = limited_rotation(w, x, y, z, blend, max_angle)
    if cone >= 0:
        w, x, y, z = clip_to_cone(frames[cone], sides[cone], cosine, w, x, y, z, S, R)
    remaining_angle = max_angle - apply_rotation(X, quaternion, sides, frames, w, x, y, z, R)
    if cone >= 0 or pair_count < 0:
        for i in range(3):
            t_min, t_max = -max(remaining_angle, 0.0), max(remaining_angle, 0.0)
            kx, ky, kz = X[i], X[3 + i], X[6 + i]
            if cone >= 0:
                kx, ky, kz, cone_min, cone_max = axis_within_cone(frames[cone], sides[cone], cosine, i)
                t_min, t_max = max(t_min, cone_min), min(t_max, cone_max)
            half_angle = (
                0.5
                * blend
                * best_angle_about(problem, sides, frames, use_bits, kx, ky, kz, cx, cy, cz, t_min, t_max, sinusoid)
            )
            half_sine = math.sin(half_angle)
            remaining_angle -= apply_rotation(
                X,
                quaternion,
                sides,
                frames,
                math.cos(half_angle),
                half_sine * kx,
                half_sine * ky,
                half_sine * kz,
                R,
            )
    w1, x1, y1, z1 = quaternion[0], quaternion[1], quaternion[2], quaternion[3]
    w = w0 * w1 + x0 * x1 + y0 * y1 + z0 * z1
    x = w0 * x1 - x0 * w1 - y0 * z1 + z0 * y1
    y = w0 * y1 + x0 * z1 - y0 * w1 - z0 * x1
    z = w0 * z1 - x0 * y1 + y0 * x1 - z0 * w1
    sine = math.sqrt(x * x + y * y + z * z)
    angle = 2.0 * math.atan2(sine, abs(w))
    factor = math.copysign(angle / sine, w) if sine > 1e-300 else 0.0
    rotation_vector[0], rotation_vector[1], rotation_vector[2] = factor * x, factor * y, factor * z
    return angle


@subroutine
def limited_rotation(w, x, y, z, blend, max_angle):
    """Return the fraction `blend` of a rotation (quaternion wxyz), limited to `max_angle` (rad)."""
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    sine = math.sqrt(x * x + y * y + z * z)
    angle = 2.0 * math.atan2(sine, w)
    target_angle = min(blend * angle, max_angle)
    if target_angle >= angle or sine == 0.0:
        return w, x, y, z
    factor = math.sin(0.5 * target_angle) / sine
    return math.cos(0.5 * target_angle), factor * x, factor * y, factor * z


@subroutine
def apply_rotation(X, quaternion, sides, frames, w, x, y, z, R):
    """Rotate a spherical joint and the frames that it moves by a quaternion in world axes; return the angle (rad).

    Args:
        X, quaternion: (12,) and (4,), the pose of the joint's node and the joint's quaternion; both are updated.
        w, x, y, z: the quaternion.
        R: (3, 3), work array.
    """
    if x == 0.0 and y == 0.0 and z == 0.0:
        return 0.0
    a = X[0] * x + X[3] * y + X[6] * z
    b = X[1] * x + X[4] * y + X[7] * z
    c = X[2] * x + X[5] * y + X[8] * z
    w0, x0, y0, z0 = quaternion[0], quaternion[1], quaternion[2], quaternion[3]
    w1, x1 = w0 * w - x0 * a - y0 * b - z0 * c, w0 * a + x0 * w + y0 * c - z0 * b
    y1, z1 = w0 * b - x0 * c + y0 * w + z0 * a, w0 * c + x0 * b - y0 * a + z0 * w
    inverse_norm = 1.0 / math.sqrt(w1 * w1 + x1 * x1 + y1 * y1 + z1 * z1)
    quaternion[0], quaternion[1] = inverse_norm * w1, inverse_norm * x1
    quaternion[2], quaternion[3] = inverse_norm * y1, inverse_norm * z1
    rotation_matrix(w, x, y, z, R)
    R_node = matrix_at(X, 0, 3, 3)
    for column in range(3):
        a, b, c = R_node[0, column], R_node[1, column], R_node[2, column]
        for row in range(3):
            R_node[row, column] = R[row, 0] * a + R[row, 1] * b + R[row, 2] * c
    rotate_frames(sides, frames, R, X[9], X[10], X[11])
    return 2.0 * math.atan2(math.sqrt(x * x + y * y + z * z), abs(w))


# ---- cones --------------------------------------------------------------------------------------


@subroutine
def cone_axes(frames, side):
    """Return the axis of a cone, and the direction that the spherical joint moves and that must stay inside."""
    A, B = frame_pair(frames)
    moving, fixed = (B, A) if side == MOVES_B else (A, B)
    return fixed[2], fixed[5], fixed[8], moving[2], moving[5], moving[8]


@subroutine
def rotation_to_axis(ax, ay, az, dx, dy, dz):
    """Return the angle from the direction d to the axis a, and the unit axis of the rotation from d to a."""
    x, y, z = dy * az - dz * ay, dz * ax - dx * az, dx * ay - dy * ax
    norm = math.sqrt(x * x + y * y + z * z)
    angle = math.atan2(norm, ax * dx + ay * dy + az * dz)
    if norm < 1e-12:  # for parallel directions, any perpendicular vector
        x, y, z = (-ay, ax, 0.0) if abs(ax) > abs(az) else (0.0, -az, ay)
        norm = math.sqrt(x * x + y * y + z * z)
    return angle, x / norm, y / norm, z / norm


@subroutine
def clip_to_cone(frames, side, cosine, w, x, y, z, S, R):
    """Limit a rotation so that it ends inside the cone: its swing ends at the edge, its twist does not change.

    If the limited rotation would increase the cost, and the present direction is inside the cone, the identity is
    returned.

    Args:
        frames: (24,) frames of the block that is the cone.
        side: which of the two frames the joint moves.
        cosine: cosine of the half angle of the cone.
        w, x, y, z: the rotation.
        S: (3, 3) the sum that `collect_vector_pairs` writes.
        R: (3, 3) work array.
    """
    ax, ay, az, dx, dy, dz = cone_axes(frames, side)
    rotation_matrix(w, x, y, z, R)
    ex, ey, ez = (
        R[0, 0] * dx + R[0, 1] * dy + R[0, 2] * dz,
        R[1, 0] * dx + R[1, 1] * dy + R[1, 2] * dz,
        R[2, 0] * dx + R[2, 1] * dy + R[2, 2] * dz,
    )
    if ax * ex + ay * ey + az * ez >= cosine:
        return w, x, y, z
    angle, kx, ky, kz = rotation_to_axis(ax, ay, az, ex, ey, ez)
    half_excess = 0.5 * (angle - math.acos(cosine))
    half_sine, half_cosine = math.sin(half_excess), math.cos(half_excess)
    kx, ky, kz = half_sine * kx, half_sine * ky, half_sine * kz
    w, x, y, z = (
        half_cosine * w - kx * x - ky * y - kz * z,
        half_cosine * x + kx * w + ky * z - kz * y,
        half_cosine * y + ky * w + kz * x - kx * z,
        half_cosine * z + kz * w + kx * y - ky * x,
    )
    if ax * dx + ay * dy + az * dz >= cosine - CONE_TOLERANCE:
        rotation_matrix(w, x, y, z, R)
        improvement = -S[0, 0] - S[1, 1] - S[2, 2]
        for i in range(3):
            for j in range(3):
                improvement += R[i, j] * S[j, i]
        if improvement < 0.0:
            return 1.0, 0.0, 0.0, 0.0
    return w, x, y, z


@subroutine
def axis_within_cone(frames, side, cosine, i):
    """Return axis i of the three axes for rotations within a cone, and the range of the angle (rad).

    Axis 0 is the axis of the cone, axis 1 is perpendicular to it and to the moving direction, and axis 2 is the moving
    direction.
    """
    ax, ay, az, dx, dy, dz = cone_axes(frames, side)
    if i == 0:
        return ax, ay, az, -math.inf, math.inf
    if i == 2:
        return dx, dy, dz, -math.inf, math.inf
    angle, kx, ky, kz = rotation_to_axis(ax, ay, az, dx, dy, dz)
    half_angle = math.acos(cosine)
    return kx, ky, kz, min(angle - half_angle, 0.0), angle + half_angle


# columns of `joints`: the joint's node, the axis of the node, the first index in the joint values x, the first column,
# the residuals that the joint uses (bits), the block that is its cone (-1: none), and the kind of its motion
JOINT_NODE, JOINT_AXIS, JOINT_X, JOINT_COLUMN, JOINT_USES, JOINT_CONE, JOINT_MOTION = range(7)
JOINT_INTS = 7
HINGE_MOTION, SLIDER_MOTION, SPHERICAL_MOTION, SHARED_VALUE_MOTION = range(4)

# offsets in `options`: 1 if the order is from the base to the tips; the largest motion of a joint, in units of its
# column; the fraction of a motion that is applied; the first of the cosines of the cones, one for each block
OPTION_FROM_BASE, OPTION_MAX_MOTION, OPTION_BLEND, OPTION_FIRST_COSINE = range(4)
LINE_INTERVALS, GOLDEN_SECTION_STEPS = 24, 45
"""Line search: number of sampling intervals of the range, and number of golden-section steps around the best sample."""
GOLDEN_RATIO = 0.5 * (math.sqrt(5.0) - 1.0)
"""Ratio by which a step of golden section shortens the interval."""


@kernel("i8(i8[::1], f8[::1], i8[::1], i8[::1], b1, i8[:,::1], i8[:,::1])")
def list_sweep_joints(ints, floats, use_bits, cones, is_from_base, joints, sides):
    """List the joints that may move, in the order of the sweep, and the frames that each node moves.

    Each dof of a translation is a joint of the list. A value that several nodes share is listed once, with the first of
    these nodes.

    Args:
        use_bits: (nodes,), USE_POSITIONS and USE_ROTATIONS of each node, as bits.
        cones: (nodes,), the block that is the cone of a spherical joint, or -1.
        is_from_base: whether the order is from the base to the tips; else from the tips to the base.
        joints: (3 nodes, JOINT_INTS), written.
        sides: (nodes, blocks), zero at the call, written.

    Returns:
        The number of rows of `joints` that are written.
    """
    problem = open_problem(ints, floats)
    n = problem.node_count
    for b in range(problem.block_count):
        block = problem.blocks[b]
        for is_B in range(2):
            i = block.node_b if is_B else block.node_a
            while i >= 0:
                sides[i, b] |= MOVES_B if is_B else MOVES_A
                i = problem.nodes[i].parent
    joint_count = 0
    for k in range(n):
        i = k if is_from_base else n - 1 - k
        node = problem.nodes[i]
        kind, first_q, ratio = node.kind, node.first_q, node.ratio
        motion, dof_count = HINGE_MOTION if kind == REVOLUTE else SLIDER_MOTION, 1
        if kind == SPHERICAL:
            motion = SPHERICAL_MOTION
        elif kind == TRANSLATION:
            dof_count = 3
        else:
            is_first, sharing_node_count = True, 0
            for other_index in range(n):
                other_node = problem.nodes[other_index]
                if other_node.kind <= PRISMATIC and other_node.first_q == first_q and other_node.ratio != 0.0:
                    sharing_node_count += 1
                    is_first &= (other_index >= i) if is_from_base else (other_index <= i)
            if not is_first or ratio == 0.0:
                continue
            if sharing_node_count > 1:
                motion = SHARED_VALUE_MOTION
        for dof in range(dof_count):
            column = -1
            if motion == SPHERICAL_MOTION:
                for spherical_index in range(problem.spherical_count):
                    if problem.sphericals[spherical_index].x == first_q:
                        column = problem.sphericals[spherical_index].first_column
            else:
                for v in range(problem.column_count):
                    if problem.column_x[v] == first_q + dof:
                        column = v
            if column < 0 or problem.bound_state[column] == LOCKED:
                continue
            joint = joints[joint_count]
            joint[JOINT_NODE], joint[JOINT_AXIS], joint[JOINT_X] = i, dof if kind == TRANSLATION else 2, first_q + dof
            joint[JOINT_COLUMN], joint[JOINT_USES], joint[JOINT_CONE], joint[JOINT_MOTION] = (
                column,
                use_bits[i],
                cones[i],
                motion,
            )
            joint_count += 1
    return joint_count


@subroutine
def world_axis(problem, node, axis):
    """Return the unit vector of an axis of a node, and the origin of the node, in the world."""
    X = problem.poses[node]
    return (X[axis], X[3 + axis], X[6 + axis], X[9], X[10], X[11])


@subroutine
def motion_range(problem, x, joint, options):
    """Return a joint's value, the ratio of the node's motion to it, and the range (min <= 0 <= max) of the motion.

    The value and the motion are in rad or m.
    """
    ratio, v = problem.nodes[joint[JOINT_NODE]].ratio, joint[JOINT_COLUMN]
    value, max_motion = x[joint[JOINT_X]], options[OPTION_MAX_MOTION] * problem.scale[v] * abs(ratio)
    motion_to_lower, motion_to_upper = (problem.lower[v] - value) * ratio, (problem.upper[v] - value) * ratio
    return (
        value,
        ratio,
        min(max(min(motion_to_lower, motion_to_upper), -max_motion), 0.0),
        max(min(max(motion_to_lower, motion_to_upper), max_motion), 0.0),
    )


@subroutine
def set_joint_value(problem, x, joint, value):
    """Write a joint's value, clamped to its limits, and the step of its column; return the change of the value."""
    v, k = joint[JOINT_COLUMN], joint[JOINT_X]
    previous_value = x[k]
    x[k] = min(max(value, problem.lower[v]), problem.upper[v])
    problem.step[v] = (x[k] - previous_value) / problem.scale[v]
    return x[k] - previous_value


@subroutine
def move_hinge(problem, x, joint, sides, frames, options, work):
    """Rotate a hinge to the minimum of the cost; return its step, in units of its column."""
    kx, ky, kz, cx, cy, cz = world_axis(problem, joint[JOINT_NODE], 2)
    value, ratio, motion_min, motion_max = motion_range(problem, x, joint, options)
    sinusoid, R = work[0:5], work[5:14].reshape(3, 3)
    angle = options[OPTION_BLEND] * best_angle_about(
        problem, sides, frames, joint[JOINT_USES], kx, ky, kz, cx, cy, cz, motion_min, motion_max, sinusoid
    )
    if angle == 0.0:
        return 0.0
    angle = ratio * set_joint_value(problem, x, joint, value + angle / ratio)
    half_sine = math.sin(0.5 * angle)
    rotation_matrix(math.cos(0.5 * angle), half_sine * kx, half_sine * ky, half_sine * kz, R)
    rotate_frames(sides, frames, R, cx, cy, cz)
    return problem.step[joint[JOINT_COLUMN]]


@subroutine
def move_slider(problem, x, joint, sides, frames, options):
    """Move a slider to the minimum of the cost, a parabola, within its range; return its step, in column units."""
    dx, dy, dz, _, _, _ = world_axis(problem, joint[JOINT_NODE], joint[JOINT_AXIS])
    value, ratio, motion_min, motion_max = motion_range(problem, x, joint, options)
    slope, curvature = translation_derivatives(problem, sides, frames, joint[JOINT_USES], dx, dy, dz)
    if not curvature > 0.0:
        return 0.0
    distance = options[OPTION_BLEND] * min(max(-slope / curvature, motion_min), motion_max)
    distance = ratio * set_joint_value(problem, x, joint, value + distance / ratio)
    translate_frames(sides, frames, distance * dx, distance * dy, distance * dz)
    return problem.step[joint[JOINT_COLUMN]]


@subroutine
def search_line(problem, x, joint, frames, options):
    """Minimise the cost over a value that moves several joints, by samples and then by golden section.

    Returns:
        The step, in units of the column.
    """
    v = joint[JOINT_COLUMN]
    start_value, scale = x[joint[JOINT_X]], problem.scale[v]
    max_change = min(math.pi, options[OPTION_MAX_MOTION]) * scale
    value_min, value_max = (
        max(problem.lower[v], start_value - max_change),
        min(problem.upper[v], start_value + max_change),
    )
    sample_width = (value_max - value_min) / LINE_INTERVALS
    best_value, lowest_cost = start_value, cost_at(problem, x, joint, frames, start_value)
    if not sample_width > 0.0:
        return 0.0
    best_sample = start_value
    for sample in range(LINE_INTERVALS + 1):
        value = value_min + sample * sample_width
        cost = cost_at(problem, x, joint, frames, value)
        if cost < lowest_cost:
            best_value, lowest_cost, best_sample = value, cost, value
    interval_start, interval_end = (
        max(value_min, best_sample - sample_width),
        min(value_max, best_sample + sample_width),
    )
    low_probe, high_probe = (
        interval_end - GOLDEN_RATIO * (interval_end - interval_start),
        interval_start + GOLDEN_RATIO * (interval_end - interval_start),
    )
    low_probe_cost, high_probe_cost = (
        cost_at(problem, x, joint, frames, low_probe),
        cost_at(problem, x, joint, frames, high_probe),
    )
    for _ in range(GOLDEN_SECTION_STEPS):
        if low_probe_cost < high_probe_cost:
            interval_end, high_probe, high_probe_cost = high_probe, low_probe, low_probe_cost
            low_probe = interval_end - GOLDEN_RATIO * (interval_end - interval_start)
            low_probe_cost = cost_at(problem, x, joint, frames, low_probe)
        else:
            interval_start, low_probe, low_probe_cost = low_probe, high_probe, high_probe_cost
            high_probe = interval_start + GOLDEN_RATIO * (interval_end - interval_start)
            high_probe_cost = cost_at(problem, x, joint, frames, high_probe)
    better_probe = low_probe if low_probe_cost < high_probe_cost else high_probe
    if min(low_probe_cost, high_probe_cost) < lowest_cost:
        best_value = better_probe
    x[joint[JOINT_X]] = start_value
    set_joint_value(problem, x, joint, start_value + options[OPTION_BLEND] * (best_value - start_value))
    update_poses_between(problem, x, 0, problem.node_count)
    update_goal_frames(problem, frames)
    return problem.step[v]


@subroutine
def cost_at(problem, x, joint, frames, value):
    """Write the value of a joint, update poses and frames, and return the cost of the goals (`total_cost`)."""
    x[joint[JOINT_X]] = value
    update_poses_between(problem, x, 0, problem.node_count)
    update_goal_frames(problem, frames)
    return total_cost(problem, frames, joint[JOINT_USES])


@kernel("f8(i8[::1], f8[::1], i8[:,::1], i8[:,::1], f8[:,::1], f8[::1], f8[::1])")
def ccd_sweep(ints, floats, joints, sides, frames, options, work):
    """Move the joints one after the other, and write their steps; return the largest step, in units of the columns.

    Args:
        ints, floats: the packed problem; its tables `trial` (the joint values) and `step` are updated.
        joints, sides: as written by `list_sweep_joints`.
        frames, work: (blocks, 24) and (SWEEP_WORK_FLOATS,), work arrays.
        options: (3 + blocks,), see OPTION_FROM_BASE.
    """
    problem = open_problem(ints, floats)
    x, n = problem.trial, problem.node_count
    update_poses_between(problem, x, 0, n)
    update_goal_frames(problem, frames)
    for v in range(problem.column_count):
        problem.step[v] = 0.0
    largest_step, first_stale_node = 0.0, n
    for j in range(joints.shape[0]):
        joint = joints[j]
        node, motion = joint[JOINT_NODE], joint[JOINT_MOTION]
        if options[OPTION_FROM_BASE] == 1.0:  # nodes nearer to the base have moved
            update_poses_between(problem, x, first_stale_node, node + 1)
            first_stale_node = max(first_stale_node, node + 1)
        if motion == HINGE_MOTION:
            joint_step = move_hinge(problem, x, joint, sides[node], frames, options, work)
        elif motion == SLIDER_MOTION:
            joint_step = move_slider(problem, x, joint, sides[node], frames, options)
        elif motion == SPHERICAL_MOTION:
            quaternion, rotation_vector = (
                vector_at(x, joint[JOINT_X], 4),
                vector_at(problem.step, joint[JOINT_COLUMN], 3),
            )
            cone = joint[JOINT_CONE]
            cosine = options[OPTION_FIRST_COSINE + max(cone, 0)]
            joint_step = rotate_spherical(
                problem, quaternion, node, joint[JOINT_USES], cone, sides[node], frames, options[OPTION_MAX_MOTION],
                options[OPTION_BLEND], cosine, work, rotation_vector,
            )  # fmt: skip
        else:
            joint_step = search_line(problem, x, joint, frames, options)
            first_stale_node = n
        if joint_step != 0.0 and motion != SHARED_VALUE_MOTION:
            first_stale_node = min(first_stale_node, node)
        largest_step = max(largest_step, abs(joint_step))
    return largest_step
