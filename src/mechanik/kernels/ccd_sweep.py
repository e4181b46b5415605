"""One sweep of cyclic coordinate descent: each joint is taken to where its goals like it best, exactly.

Turning by t about an axis, the error of all points, directions and poses together is one wave a cos t + b sin t
(Wang and Chen 1991, equations 14 to 18), so a hinge has a closed form, within limits too. A ball turns as a whole, by
a quaternion (Blow 2002). Numbers that move several joints at once are searched for along a line.
"""

from __future__ import annotations

import math

from .ball_joint import turn_ball
from .best_turns import matrix_of
from .compiler import kernel, part
from .goal_frames import angle_about, carry, error_of, place_frames, place_some, shift, shift_of
from .layout import BALL, FIRST_Q, KIND, PARENT, PRISMATIC, RATIO, REVOLUTE, ROW, SLIDE
from .problem import (
    AT_BALLS,
    AT_BAN,
    AT_BLOCKS,
    AT_COLUMN_X,
    AT_LOWER,
    AT_NODES,
    AT_POSES,
    AT_SCALE,
    AT_STEP,
    AT_TRIAL,
    AT_UPPER,
    BLOCK_INTS,
    LOCKED,
    MOVES_A,
    MOVES_B,
    N_BALLS,
    N_BLOCKS,
    N_COLUMNS,
    N_NODES,
    NODE_A,
    NODE_B,
)

# a joint of the sweep: its node, which axis of it, its first number in x and its first column, what of the goals it
# looks at, the block that is its cone (-1: none), and how it moves
NODE, WHICH, NUMBER, COLUMN, USES, CONE, MOTION = range(7)
JOINT_INTS = 7
HINGE, SLIDER, TURNS_AS_A_WHOLE, SHARED = range(4)

FROM_BASE, LARGEST_TURN, BLEND, FIRST_COSINE = range(4)  # places in `how`
SAMPLES, CUTS = 24, 45  # of a line that is searched
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


@kernel("i8(i8[::1], f8[::1], i8[::1], i8[::1], b1, i8[:,::1], i8[:,::1])")
def plan(I, F, uses, cones, from_base, joints, sides):
    """List the joints that may move, in the order of the sweep, and which frames each node carries; how many joints.

    Args:
        uses: (nodes,) what of the goals each looks at.
        cones: (nodes,) the block that is a ball's cone, or -1.
        joints: (3 nodes, 7), to be written.
        sides: (nodes, blocks), zero, to be written.
    """
    n = I[N_NODES]
    for b in range(I[N_BLOCKS]):
        block = I[AT_BLOCKS] + BLOCK_INTS * b
        for end in range(2):
            i = I[block + NODE_B] if end else I[block + NODE_A]
            while i >= 0:
                sides[i, b] |= MOVES_B if end else MOVES_A
                i = int(F[I[AT_NODES] + ROW * i + PARENT])
    count = 0
    for k in range(n):
        i = k if from_base else n - 1 - k
        node = I[AT_NODES] + ROW * i
        kind, number = int(F[node + KIND]), int(F[node + FIRST_Q])
        motion, several = HINGE if kind == REVOLUTE else SLIDER, 1
        if kind == BALL:
            motion = TURNS_AS_A_WHOLE
        elif kind == SLIDE:
            several = 3
        else:
            first, sharing = True, 0
            for other in range(n):
                at = I[AT_NODES] + ROW * other
                if F[at + KIND] <= PRISMATIC and F[at + FIRST_Q] == number and F[at + RATIO] != 0.0:
                    sharing += 1
                    first &= (other >= i) if from_base else (other <= i)
            if not first or F[node + RATIO] == 0.0:
                continue
            if sharing > 1:
                motion = SHARED
        for part_of in range(several):
            column = -1
            if motion == TURNS_AS_A_WHOLE:
                for ball in range(I[N_BALLS]):
                    if I[I[AT_BALLS] + 2 * ball] == number:
                        column = I[I[AT_BALLS] + 2 * ball + 1]
            else:
                for v in range(I[N_COLUMNS]):
                    if I[I[AT_COLUMN_X] + v] == number + part_of:
                        column = v
            if column < 0 or I[I[AT_BAN] + column] == LOCKED:
                continue
            joint = joints[count]
            joint[NODE], joint[WHICH], joint[NUMBER] = i, part_of if kind == SLIDE else 2, number + part_of
            joint[COLUMN], joint[USES], joint[CONE], joint[MOTION] = column, uses[i], cones[i], motion
            count += 1
    return count


@part
def axis_of(I, F, node, which):
    """An axis of a node and its origin, in the world."""
    X = I[AT_POSES] + 12 * node
    return F[X + which], F[X + 3 + which], F[X + 6 + which], F[X + 9], F[X + 10], F[X + 11]


@part
def range_of(I, F, x, joint, how):
    """A joint's number, its ratio to the motion of the node, and how far the motion may go either way."""
    ratio, v = F[I[AT_NODES] + ROW * joint[NODE] + RATIO], joint[COLUMN]
    value, most = F[x + joint[NUMBER]], how[LARGEST_TURN] * F[I[AT_SCALE] + v] * abs(ratio)
    low, high = (F[I[AT_LOWER] + v] - value) * ratio, (F[I[AT_UPPER] + v] - value) * ratio
    return value, ratio, min(max(min(low, high), -most), 0.0), max(min(max(low, high), most), 0.0)


@part
def set_number(I, F, x, joint, value):
    """Write a joint's number, inside its limits; returns how far it moved."""
    v = joint[COLUMN]
    before, at = F[x + joint[NUMBER]], x + joint[NUMBER]
    F[at] = min(max(value, F[I[AT_LOWER] + v]), F[I[AT_UPPER] + v])
    F[I[AT_STEP] + v] = (F[at] - before) / F[I[AT_SCALE] + v]
    return F[at] - before


@part
def turn_hinge(I, F, x, joint, sides, frames, how, room):
    """The best turn about the hinge's own axis."""
    kx, ky, kz, cx, cy, cz = axis_of(I, F, joint[NODE], 2)
    value, ratio, low, high = range_of(I, F, x, joint, how)
    wave, R = room[0:5], room[5:14].reshape(3, 3)
    t = how[BLEND] * angle_about(I, F, sides, frames, joint[USES], kx, ky, kz, cx, cy, cz, low, high, wave)
    if t == 0.0:
        return 0.0
    t = ratio * set_number(I, F, x, joint, value + t / ratio)
    s = math.sin(0.5 * t)
    matrix_of(math.cos(0.5 * t), s * kx, s * ky, s * kz, R)
    carry(sides, frames, R, cx, cy, cz)
    return F[I[AT_STEP] + joint[COLUMN]]


@part
def move_slider(I, F, x, joint, sides, frames, how):
    """The best shift along the slider's own axis: a parabola has one lowest point, and limits cut it off."""
    dx, dy, dz, _, _, _ = axis_of(I, F, joint[NODE], joint[WHICH])
    value, ratio, low, high = range_of(I, F, x, joint, how)
    slope, bend = shift_of(I, F, sides, frames, joint[USES], dx, dy, dz)
    if not bend > 0.0:
        return 0.0
    way = how[BLEND] * min(max(-slope / bend, low), high)
    way = ratio * set_number(I, F, x, joint, value + way / ratio)
    shift(sides, frames, way * dx, way * dy, way * dz)
    return F[I[AT_STEP] + joint[COLUMN]]


@part
def search_line(I, F, x, joint, frames, how):
    """The best value of a number that moves several joints: the best of some samples, then golden sections about it."""
    v, at = joint[COLUMN], x + joint[NUMBER]
    here, scale = F[at], F[I[AT_SCALE] + v]
    reach = min(math.pi, how[LARGEST_TURN]) * scale
    low, high = max(F[I[AT_LOWER] + v], here - reach), min(F[I[AT_UPPER] + v], here + reach)
    width = (high - low) / SAMPLES
    best, least = here, error_at(I, F, x, joint, frames, here)
    if not width > 0.0:
        return 0.0
    start = here
    for k in range(SAMPLES + 1):
        value = low + k * width
        error = error_at(I, F, x, joint, frames, value)
        if error < least:
            best, least, start = value, error, value
    left, right = max(low, start - width), min(high, start + width)
    a, b = right - GOLDEN * (right - left), left + GOLDEN * (right - left)
    at_a, at_b = error_at(I, F, x, joint, frames, a), error_at(I, F, x, joint, frames, b)
    for _ in range(CUTS):
        if at_a < at_b:
            right, b, at_b = b, a, at_a
            a = right - GOLDEN * (right - left)
            at_a = error_at(I, F, x, joint, frames, a)
        else:
            left, a, at_a = a, b, at_b
            b = left + GOLDEN * (right - left)
            at_b = error_at(I, F, x, joint, frames, b)
    middle = a if at_a < at_b else b
    if min(at_a, at_b) < least:
        best = middle
    F[at] = here
    set_number(I, F, x, joint, here + how[BLEND] * (best - here))
    place_some(I, F, x, 0, I[N_NODES])
    place_frames(I, F, frames)
    return F[I[AT_STEP] + v]


@part
def error_at(I, F, x, joint, frames, value):
    """The error of all goals were a number something else; it stays so."""
    F[x + joint[NUMBER]] = value
    place_some(I, F, x, 0, I[N_NODES])
    place_frames(I, F, frames)
    return error_of(I, F, frames, joint[USES])


@kernel("f8(i8[::1], f8[::1], i8[:,::1], i8[:,::1], f8[:,::1], f8[::1], f8[::1])")
def sweep(I, F, joints, sides, frames, how, room):
    """Move x joint by joint; returns the largest of the moves, in units of the columns.

    Args:
        joints, sides: as `plan` made them.
        frames: (blocks, 24) and room: (64,), to work in.
        how: FROM_BASE, LARGEST_TURN, BLEND, and for each block the cosine of its cone.
    """
    x, n = I[AT_TRIAL], I[N_NODES]
    place_some(I, F, x, 0, n)
    place_frames(I, F, frames)
    F[I[AT_STEP] : I[AT_STEP] + I[N_COLUMNS]] = 0.0
    largest, fresh = 0.0, n
    for j in range(joints.shape[0]):
        joint = joints[j]
        node, motion = joint[NODE], joint[MOTION]
        if how[FROM_BASE] == 1.0:  # what lies above has moved
            place_some(I, F, x, fresh, node + 1)
            fresh = max(fresh, node + 1)
        if motion == HINGE:
            move = turn_hinge(I, F, x, joint, sides[node], frames, how, room)
        elif motion == SLIDER:
            move = move_slider(I, F, x, joint, sides[node], frames, how)
        elif motion == TURNS_AS_A_WHOLE:
            k, cone, step = x + joint[NUMBER], joint[CONE], I[AT_STEP] + joint[COLUMN]
            cosine = how[FIRST_COSINE + max(cone, 0)]
            move = turn_ball(
                I, F, k, node, joint[USES], cone, sides[node], frames, how[LARGEST_TURN], how[BLEND], cosine, room,
                F[step : step + 3],
            )  # fmt: skip
        else:
            move = search_line(I, F, x, joint, frames, how)
            fresh = n
        if move != 0.0 and motion != SHARED:
            fresh = min(fresh, node)
        largest = max(largest, abs(move))
    return largest
