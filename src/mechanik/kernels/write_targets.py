"""Validate new targets of several goals and write them into a packed problem: a small kernel for fast loops.

The numbers of all targets follow each other in a flat array.
"""

from __future__ import annotations

import math

import numpy as np

from .compiler import kernel, subroutine

TARGET_POSE, TARGET_POSITION, TARGET_VALUE = range(3)
"""Kinds of targets: a pose (16 numbers, row by row), a position (3, m), a joint value (1)."""
NO_REFERENCE = -1
"""Stands for the index in q of the reference angle: the angle has no reference."""


ROTATION_TOLERANCE = 1e-6
"""Largest total deviation of a rotation's columns from unit length and right angles."""
FULL_TURN = 2.0 * math.pi


@subroutine
def write_pose(floats, to, turns, i, numbers, k):
    """Write the pose at numbers[k:k + 16], rotated by the i-th of `turns`; False if it is not a rigid transform."""
    off = 0.0
    for c in range(3):
        dot, square = 0.0, 0.0
        for r in range(3):
            here, beside = numbers[k + 4 * r + c], numbers[k + 4 * r + (c + 1) % 3]
            square += here * here
            dot += here * beside
        off += abs(dot) + abs(square - 1.0) + abs(numbers[k + 12 + c])
    x = numbers[k + 5] * numbers[k + 10] - numbers[k + 6] * numbers[k + 9]
    y = numbers[k + 6] * numbers[k + 8] - numbers[k + 4] * numbers[k + 10]
    z = numbers[k + 4] * numbers[k + 9] - numbers[k + 5] * numbers[k + 8]
    mirrored = numbers[k] * x + numbers[k + 1] * y + numbers[k + 2] * z < 0.0
    if mirrored or not off + abs(numbers[k + 15] - 1.0) < ROTATION_TOLERANCE:
        return False
    for r in range(3):
        floats[to + 9 + r] = numbers[k + 4 * r + 3]
        for c in range(3):
            floats[to + 3 * r + c] = (
                numbers[k + 4 * r] * turns[i, c]
                + numbers[k + 4 * r + 1] * turns[i, 3 + c]
                + numbers[k + 4 * r + 2] * turns[i, 6 + c]
            )
    return True


@kernel("b1(f8[::1], i8[:,::1], f8[:,::1], f8[::1], f8[::1])")
def write_targets(floats, plan, turns, numbers, q0):
    """Validate the targets of several goals and write them into the packed problem.

    Args:
        floats: the float table of the problem.
        plan: (k, 4), for each target its kind, its offset in `floats`, its offset in `numbers`, and the index in q0 of
            the angle that it shall be nearest to by full turns (NO_REFERENCE: none).
        turns: (k, 9), rotation matrices, row by row, by which a pose is multiplied from the right.
        numbers: the numbers of all targets.
        q0: (nq,), reference angles, rad.

    Returns:
        False if a number is not finite or a pose is not a rigid transform. Then part of the targets may be written.
    """
    total = 0.0
    for k in range(numbers.shape[0]):
        total += 0.0 * numbers[k]
    if total != 0.0:  # 0 times infinity or NaN is NaN, which differs from 0
        return False
    for i in range(plan.shape[0]):
        to, k = plan[i, 1], plan[i, 2]
        if plan[i, 0] == TARGET_POSE:
            if not write_pose(floats, to, turns, i, numbers, k):
                return False
        elif plan[i, 0] == TARGET_POSITION:
            for r in range(3):
                floats[to + 9 + r] = numbers[k + r]
        else:
            floats[to] = numbers[k]
            if plan[i, 3] >= 0:
                floats[to] += FULL_TURN * np.rint((q0[plan[i, 3]] - numbers[k]) / FULL_TURN)
    return True
