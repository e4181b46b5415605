"""One sweep of cyclic coordinate descent: each joint in its order takes the value that minimises the error exactly.

For a rotation by t about an axis, the error of all points, directions and poses together is a sinusoid a cos t + b sin
t (Wang and Chen 1991, equations 14 to 18), so a hinge has a closed form, also within limits. A spherical joint rotates
as a whole, by a quaternion (Blow 2002), also within a cone. Numbers that move several joints at once are found by a
line search.
"""

from __future__ import annotations

import math

from ..compiler import kernel, subroutine
from ..nodes import FIRST_Q, NODE_FLOATS, NODE_KIND, NODE_RATIO, PARENT, PRISMATIC, REVOLUTE, SPHERICAL, TRANSLATION
from ..problem_layout import *
from ..problem_layout import (
    AT_BLOCKS,
    AT_BOUND_STATE,
    AT_COLUMN_X,
    AT_LOWER,
    AT_NODES,
    AT_POSES,
    AT_SCALE,
    AT_SPHERICAL,
    AT_STEP,
    AT_TRIAL,
    AT_UPPER,
    BLOCK_INTS,
    LOCKED,
    MOVES_A,
    MOVES_B,
    N_BLOCKS,
    N_COLUMNS,
    N_NODES,
    N_SPHERICAL,
    NODE_A,
    NODE_B,
)
from .ccd_cost import (
    best_angle_about,
    best_rotation,
    collect_vector_pairs,
    rotate_frames,
    rotation_between,
    rotation_matrix,
    total_error,
    translate_frames,
    translation_gradient,
    update_goal_frames,
    update_poses_between,
)

CONE_TOLERANCE = 1e-12
"""How far outside, in its cosine, a direction still counts as inside its cone."""
SPHERICAL_WORK_FLOATS = 64
"""Floats of scratch memory of a sweep."""


@subroutine
def rotate_spherical(ints, floats, k, node, uses, cone, sides, frames, max_angle, blend, cosine, work, rotation_vector):
    """Rotate a spherical joint to the minimum of the error; returns the angle (rad).

    A single point or direction is reached by the smallest rotation; several, or a pose, by the best rotation. With
    lines or planes among the goals, or with a cone, rotations about single axes follow: none of them increases the
    error.

    Args:
        k: offset of its quaternion in `floats`.
        node: its node.
        uses: USE_POSITIONS and USE_ROTATIONS, as bits.
        cone: the block that is its cone, with the cosine of its half angle in `cosine`; -1: it has none.
        sides: (blocks,), of its node.
        frames: (blocks, 24), updated.
        max_angle: largest rotation, rad.
        blend: fraction of each rotation that is applied.
        work: (64,), scratch memory.
        rotation_vector: (3,), written: rotation vector in its own axes, rad.
    """
    X = ints[AT_POSES] + 12 * node
    cx, cy, cz = floats[X + 9], floats[X + 10], floats[X + 11]
    N, V = work[0:16].reshape(4, 4), work[16:32].reshape(4, 4)
    R, S, pair, sinusoid = work[32:41].reshape(3, 3), work[41:50].reshape(3, 3), work[50:56], work[56:61]
    w0, x0, y0, z0 = floats[k], floats[k + 1], floats[k + 2], floats[k + 3]
    count = collect_vector_pairs(ints, floats, sides, frames, uses, cx, cy, cz, S, pair)
    w, x, y, z = 1.0, 0.0, 0.0, 0.0
    if count == 1:
        w, x, y, z = rotation_between(pair[0], pair[1], pair[2], pair[3], pair[4], pair[5])
    elif count > 1:
        w, x, y, z = best_rotation(S, N, V)
    w, x, y, z = limited_rotation(w, x, y, z, blend, max_angle)
    if cone >= 0:
        w, x, y, z = clip_to_cone(frames[cone], sides[cone], cosine, w, x, y, z, S, R)
    remaining = max_angle - apply_rotation(floats, X, k, sides, frames, w, x, y, z, R)
    if cone >= 0 or count < 0:
        for i in range(3):
            low, high = -max(remaining, 0.0), max(remaining, 0.0)
            kx, ky, kz = floats[X + i], floats[X + 3 + i], floats[X + 6 + i]
            if cone >= 0:
                kx, ky, kz, nearest, farthest = axis_within_cone(frames[cone], sides[cone], cosine, i)
                low, high = max(low, nearest), min(high, farthest)
            t = (
                0.5
                * blend
                * best_angle_about(ints, floats, sides, frames, uses, kx, ky, kz, cx, cy, cz, low, high, sinusoid)
            )
            s = math.sin(t)
            remaining -= apply_rotation(floats, X, k, sides, frames, math.cos(t), s * kx, s * ky, s * kz, R)
    w1, x1, y1, z1 = floats[k], floats[k + 1], floats[k + 2], floats[k + 3]
    w = w0 * w1 + x0 * x1 + y0 * y1 + z0 * z1
    x = w0 * x1 - x0 * w1 - y0 * z1 + z0 * y1
    y = w0 * y1 + x0 * z1 - y0 * w1 - z0 * x1
    z = w0 * z1 - x0 * y1 + y0 * x1 - z0 * w1
    n = math.sqrt(x * x + y * y + z * z)
    angle = 2.0 * math.atan2(n, abs(w))
    f = math.copysign(angle / n, w) if n > 1e-300 else 0.0
    rotation_vector[0], rotation_vector[1], rotation_vector[2] = f * x, f * y, f * z
    return angle


@subroutine
def limited_rotation(w, x, y, z, blend, max_angle):
    """The fraction `blend` of a rotation, limited to `max_angle` (rad)."""
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    n = math.sqrt(x * x + y * y + z * z)
    angle = 2.0 * math.atan2(n, w)
    target_angle = min(blend * angle, max_angle)
    if target_angle >= angle or n == 0.0:
        return w, x, y, z
    f = math.sin(0.5 * target_angle) / n
    return math.cos(0.5 * target_angle), f * x, f * y, f * z


@subroutine
def apply_rotation(floats, X, k, sides, frames, w, x, y, z, R):
    """Rotate a spherical joint of pose X, and the frames it moves, by a quaternion in world axes; returns the angle."""
    if x == 0.0 and y == 0.0 and z == 0.0:
        return 0.0
    a = floats[X] * x + floats[X + 3] * y + floats[X + 6] * z
    b = floats[X + 1] * x + floats[X + 4] * y + floats[X + 7] * z
    c = floats[X + 2] * x + floats[X + 5] * y + floats[X + 8] * z
    p, q, r, s = floats[k], floats[k + 1], floats[k + 2], floats[k + 3]
    tw, tx = p * w - q * a - r * b - s * c, p * a + q * w + r * c - s * b
    ty, tz = p * b - q * c + r * w + s * a, p * c + q * b - r * a + s * w
    n = 1.0 / math.sqrt(tw * tw + tx * tx + ty * ty + tz * tz)
    floats[k], floats[k + 1], floats[k + 2], floats[k + 3] = n * tw, n * tx, n * ty, n * tz
    rotation_matrix(w, x, y, z, R)
    for column in range(3):
        a, b, c = floats[X + column], floats[X + 3 + column], floats[X + 6 + column]
        for row in range(3):
            floats[X + 3 * row + column] = R[row, 0] * a + R[row, 1] * b + R[row, 2] * c
    rotate_frames(sides, frames, R, floats[X + 9], floats[X + 10], floats[X + 11])
    return 2.0 * math.atan2(math.sqrt(x * x + y * y + z * z), abs(w))


# ---- cones --------------------------------------------------------------------------------------


@subroutine
def cone_axes(frames, side):
    """The fixed axis of a cone, and the direction that the spherical joint moves and that has to stay inside."""
    u, a = (12, 0) if side == MOVES_B else (0, 12)
    return frames[a + 2], frames[a + 5], frames[a + 8], frames[u + 2], frames[u + 5], frames[u + 8]


@subroutine
def rotation_to_axis(ax, ay, az, dx, dy, dz):
    """The angle from a direction to the axis, and the unit vector about which it rotates there."""
    x, y, z = dy * az - dz * ay, dz * ax - dx * az, dx * ay - dy * ax
    n = math.sqrt(x * x + y * y + z * z)
    angle = math.atan2(n, ax * dx + ay * dy + az * dz)
    if n < 1e-12:  # parallel: any vector across serves
        x, y, z = (-ay, ax, 0.0) if abs(ax) > abs(az) else (0.0, -az, ay)
        n = math.sqrt(x * x + y * y + z * z)
    return angle, x / n, y / n, z / n


@subroutine
def clip_to_cone(frames, side, cosine, w, x, y, z, S, R):
    """Limit a rotation so that it ends inside the cone: its swing is cut at the edge, its twist stays.

    If the result is worse than the present rotation, and that is inside, the joint does not rotate.
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
    half = 0.5 * (angle - math.acos(cosine))
    s, c = math.sin(half), math.cos(half)
    kx, ky, kz = s * kx, s * ky, s * kz
    w, x, y, z = (
        c * w - kx * x - ky * y - kz * z,
        c * x + kx * w + ky * z - kz * y,
        c * y + ky * w + kz * x - kx * z,
        c * z + kz * w + kx * y - ky * x,
    )
    if ax * dx + ay * dy + az * dz >= cosine - CONE_TOLERANCE:
        rotation_matrix(w, x, y, z, R)
        gain = -S[0, 0] - S[1, 1] - S[2, 2]
        for i in range(3):
            for j in range(3):
                gain += R[i, j] * S[j, i]
        if gain < 0.0:
            return 1.0, 0.0, 0.0, 0.0
    return w, x, y, z


@subroutine
def axis_within_cone(frames, side, cosine, i):
    """The i-th of three axes for rotations within a cone, with the range: the cone's, across, the direction's own."""
    ax, ay, az, dx, dy, dz = cone_axes(frames, side)
    if i == 0:
        return ax, ay, az, -math.inf, math.inf
    if i == 2:
        return dx, dy, dz, -math.inf, math.inf
    angle, kx, ky, kz = rotation_to_axis(ax, ay, az, dx, dy, dz)
    half_angle = math.acos(cosine)
    return kx, ky, kz, min(angle - half_angle, 0.0), angle + half_angle


# a joint of the sweep: its node, the axis of the node, its first index in x, its first column, the residuals that it
# takes into account, the block that is its cone (-1: none), and its kind of motion
JOINT_NODE, JOINT_AXIS, JOINT_X, JOINT_COLUMN, JOINT_USES, JOINT_CONE, JOINT_MOTION = range(7)
JOINT_INTS = 7
HINGE_MOTION, SLIDER_MOTION, SPHERICAL_MOTION, SHARED_NUMBER = range(4)

OPTION_FROM_BASE, OPTION_MAX_ANGLE, OPTION_BLEND, OPTION_FIRST_COSINE = range(4)  # offsets in `options`
LINE_SAMPLES, GOLDEN_CUTS = 24, 45  # of a line search
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


@kernel("i8(i8[::1], f8[::1], i8[::1], i8[::1], b1, i8[:,::1], i8[:,::1])")
def list_sweep_joints(ints, floats, uses, cones, from_base, joints, sides):
    """List the joints that may move in the order of the sweep, and the frames each node moves; returns their number.

    Args:
        uses: (nodes,), USE_POSITIONS and USE_ROTATIONS of each node, as bits.
        cones: (nodes,), the block that is the cone of a spherical joint, or -1.
        from_base: whether the sweep goes from the base to the tips.
        joints: (3 nodes, 7), written.
        sides: (nodes, blocks), zero at the call, written.
    """
    n = ints[N_NODES]
    for b in range(ints[N_BLOCKS]):
        block = ints[AT_BLOCKS] + BLOCK_INTS * b
        for end in range(2):
            i = ints[block + NODE_B] if end else ints[block + NODE_A]
            while i >= 0:
                sides[i, b] |= MOVES_B if end else MOVES_A
                i = int(floats[ints[AT_NODES] + NODE_FLOATS * i + PARENT])
    count = 0
    for k in range(n):
        i = k if from_base else n - 1 - k
        node = ints[AT_NODES] + NODE_FLOATS * i
        kind, first_q = int(floats[node + NODE_KIND]), int(floats[node + FIRST_Q])
        motion, dof_count = HINGE_MOTION if kind == REVOLUTE else SLIDER_MOTION, 1
        if kind == SPHERICAL:
            motion = SPHERICAL_MOTION
        elif kind == TRANSLATION:
            dof_count = 3
        else:
            is_first, sharing_count = True, 0
            for other_node in range(n):
                other_row = ints[AT_NODES] + NODE_FLOATS * other_node
                if (
                    floats[other_row + NODE_KIND] <= PRISMATIC
                    and floats[other_row + FIRST_Q] == first_q
                    and floats[other_row + NODE_RATIO] != 0.0
                ):
                    sharing_count += 1
                    is_first &= (other_node >= i) if from_base else (other_node <= i)
            if not is_first or floats[node + NODE_RATIO] == 0.0:
                continue
            if sharing_count > 1:
                motion = SHARED_NUMBER
        for dof in range(dof_count):
            column = -1
            if motion == SPHERICAL_MOTION:
                for spherical in range(ints[N_SPHERICAL]):
                    if ints[ints[AT_SPHERICAL] + 2 * spherical] == first_q:
                        column = ints[ints[AT_SPHERICAL] + 2 * spherical + 1]
            else:
                for v in range(ints[N_COLUMNS]):
                    if ints[ints[AT_COLUMN_X] + v] == first_q + dof:
                        column = v
            if column < 0 or ints[ints[AT_BOUND_STATE] + column] == LOCKED:
                continue
            joint = joints[count]
            joint[JOINT_NODE], joint[JOINT_AXIS], joint[JOINT_X] = (
                i,
                dof if kind == TRANSLATION else 2,
                first_q + dof,
            )
            joint[JOINT_COLUMN], joint[JOINT_USES], joint[JOINT_CONE], joint[JOINT_MOTION] = (
                column,
                uses[i],
                cones[i],
                motion,
            )
            count += 1
    return count


@subroutine
def world_axis(ints, floats, node, axis):
    """An axis of a node and its origin, in the world."""
    X = ints[AT_POSES] + 12 * node
    return (
        floats[X + axis],
        floats[X + 3 + axis],
        floats[X + 6 + axis],
        floats[X + 9],
        floats[X + 10],
        floats[X + 11],
    )


@subroutine
def motion_range(ints, floats, x, joint, options):
    """A joint's value, the ratio of the node's motion to it, and the range of the motion (low <= 0 <= high)."""
    ratio, v = floats[ints[AT_NODES] + NODE_FLOATS * joint[JOINT_NODE] + NODE_RATIO], joint[JOINT_COLUMN]
    value, max_motion = floats[x + joint[JOINT_X]], options[OPTION_MAX_ANGLE] * floats[ints[AT_SCALE] + v] * abs(ratio)
    low, high = (floats[ints[AT_LOWER] + v] - value) * ratio, (floats[ints[AT_UPPER] + v] - value) * ratio
    return value, ratio, min(max(min(low, high), -max_motion), 0.0), max(min(max(low, high), max_motion), 0.0)


@subroutine
def set_joint_value(ints, floats, x, joint, value):
    """Write a joint's value, clamped to its limits; returns its change."""
    v = joint[JOINT_COLUMN]
    old_value, k = floats[x + joint[JOINT_X]], x + joint[JOINT_X]
    floats[k] = min(max(value, floats[ints[AT_LOWER] + v]), floats[ints[AT_UPPER] + v])
    floats[ints[AT_STEP] + v] = (floats[k] - old_value) / floats[ints[AT_SCALE] + v]
    return floats[k] - old_value


@subroutine
def move_hinge(ints, floats, x, joint, sides, frames, options, work):
    """Rotate a hinge to the minimum of the error; returns its step, in units of its column."""
    kx, ky, kz, cx, cy, cz = world_axis(ints, floats, joint[JOINT_NODE], 2)
    value, ratio, low, high = motion_range(ints, floats, x, joint, options)
    sinusoid, R = work[0:5], work[5:14].reshape(3, 3)
    t = options[OPTION_BLEND] * best_angle_about(
        ints, floats, sides, frames, joint[JOINT_USES], kx, ky, kz, cx, cy, cz, low, high, sinusoid
    )
    if t == 0.0:
        return 0.0
    t = ratio * set_joint_value(ints, floats, x, joint, value + t / ratio)
    s = math.sin(0.5 * t)
    rotation_matrix(math.cos(0.5 * t), s * kx, s * ky, s * kz, R)
    rotate_frames(sides, frames, R, cx, cy, cz)
    return floats[ints[AT_STEP] + joint[JOINT_COLUMN]]


@subroutine
def move_slider(ints, floats, x, joint, sides, frames, options):
    """Move a slider to the minimum of the error, a parabola clamped to the limits; returns its step."""
    dx, dy, dz, _, _, _ = world_axis(ints, floats, joint[JOINT_NODE], joint[JOINT_AXIS])
    value, ratio, low, high = motion_range(ints, floats, x, joint, options)
    slope, curvature = translation_gradient(ints, floats, sides, frames, joint[JOINT_USES], dx, dy, dz)
    if not curvature > 0.0:
        return 0.0
    distance = options[OPTION_BLEND] * min(max(-slope / curvature, low), high)
    distance = ratio * set_joint_value(ints, floats, x, joint, value + distance / ratio)
    translate_frames(sides, frames, distance * dx, distance * dy, distance * dz)
    return floats[ints[AT_STEP] + joint[JOINT_COLUMN]]


@subroutine
def search_line(ints, floats, x, joint, frames, options):
    """Minimise the error over a value that moves several joints: samples, then golden section; returns its step."""
    v, k = joint[JOINT_COLUMN], x + joint[JOINT_X]
    start_value, scale = floats[k], floats[ints[AT_SCALE] + v]
    reach = min(math.pi, options[OPTION_MAX_ANGLE]) * scale
    low, high = (
        max(floats[ints[AT_LOWER] + v], start_value - reach),
        min(floats[ints[AT_UPPER] + v], start_value + reach),
    )
    width = (high - low) / LINE_SAMPLES
    best, smallest = start_value, error_at(ints, floats, x, joint, frames, start_value)
    if not width > 0.0:
        return 0.0
    best_sample = start_value
    for sample in range(LINE_SAMPLES + 1):
        value = low + sample * width
        error = error_at(ints, floats, x, joint, frames, value)
        if error < smallest:
            best, smallest, best_sample = value, error, value
    a_end, b_end = max(low, best_sample - width), min(high, best_sample + width)
    a, b = b_end - GOLDEN * (b_end - a_end), a_end + GOLDEN * (b_end - a_end)
    error_a, error_b = error_at(ints, floats, x, joint, frames, a), error_at(ints, floats, x, joint, frames, b)
    for _ in range(GOLDEN_CUTS):
        if error_a < error_b:
            b_end, b, error_b = b, a, error_a
            a = b_end - GOLDEN * (b_end - a_end)
            error_a = error_at(ints, floats, x, joint, frames, a)
        else:
            a_end, a, error_a = a, b, error_b
            b = a_end + GOLDEN * (b_end - a_end)
            error_b = error_at(ints, floats, x, joint, frames, b)
    middle = a if error_a < error_b else b
    if min(error_a, error_b) < smallest:
        best = middle
    floats[k] = start_value
    set_joint_value(ints, floats, x, joint, start_value + options[OPTION_BLEND] * (best - start_value))
    update_poses_between(ints, floats, x, 0, ints[N_NODES])
    update_goal_frames(ints, floats, frames)
    return floats[ints[AT_STEP] + v]


@subroutine
def error_at(ints, floats, x, joint, frames, value):
    """The error of all goals with a joint at `value`; x, poses and frames stay there."""
    floats[x + joint[JOINT_X]] = value
    update_poses_between(ints, floats, x, 0, ints[N_NODES])
    update_goal_frames(ints, floats, frames)
    return total_error(ints, floats, frames, joint[JOINT_USES])


@kernel("f8(i8[::1], f8[::1], i8[:,::1], i8[:,::1], f8[:,::1], f8[::1], f8[::1])")
def ccd_sweep(ints, floats, joints, sides, frames, options, work):
    """Move x joint by joint; returns the largest step, in units of the columns.

    Args:
        joints, sides: written by `list_sweep_joints`.
        frames, work: (blocks, 24) and (64,), scratch memory.
        options: OPTION_FROM_BASE, OPTION_MAX_ANGLE, OPTION_BLEND, and for each block the cosine of its cone.
    """
    x, n = ints[AT_TRIAL], ints[N_NODES]
    update_poses_between(ints, floats, x, 0, n)
    update_goal_frames(ints, floats, frames)
    floats[ints[AT_STEP] : ints[AT_STEP] + ints[N_COLUMNS]] = 0.0
    largest, first_stale = 0.0, n
    for j in range(joints.shape[0]):
        joint = joints[j]
        node, motion = joint[JOINT_NODE], joint[JOINT_MOTION]
        if options[OPTION_FROM_BASE] == 1.0:  # nodes nearer to the base have moved
            update_poses_between(ints, floats, x, first_stale, node + 1)
            first_stale = max(first_stale, node + 1)
        if motion == HINGE_MOTION:
            move = move_hinge(ints, floats, x, joint, sides[node], frames, options, work)
        elif motion == SLIDER_MOTION:
            move = move_slider(ints, floats, x, joint, sides[node], frames, options)
        elif motion == SPHERICAL_MOTION:
            k, cone, step = x + joint[JOINT_X], joint[JOINT_CONE], ints[AT_STEP] + joint[JOINT_COLUMN]
            cosine = options[OPTION_FIRST_COSINE + max(cone, 0)]
            move = rotate_spherical(
                ints, floats, k, node, joint[JOINT_USES], cone, sides[node], frames, options[OPTION_MAX_ANGLE],
                options[OPTION_BLEND], cosine, work, floats[step : step + 3],
            )  # fmt: skip
        else:
            move = search_line(ints, floats, x, joint, frames, options)
            first_stale = n
        if move != 0.0 and motion != SHARED_NUMBER:
            first_stale = min(first_stale, node)
        largest = max(largest, abs(move))
    return largest
