"""New targets for several goals, checked and put into a problem: a small kernel for fast loops."""

from __future__ import annotations

import math

import numpy as np

from .compiler import kernel, part
from .target_layout import PLACE, POSE

NOT_A_ROTATION = 1e-6
"""How far the columns of a rotation may be from unit length and from right angles, in all."""
TURN = 2.0 * math.pi


@part
def put_pose(F, to, turns, i, numbers, k):
    """A pose, row by row from numbers[k] on, turned by the i-th of `turns`; False if it is none."""
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
    if mirrored or not off + abs(numbers[k + 15] - 1.0) < NOT_A_ROTATION:
        return False
    for r in range(3):
        F[to + 9 + r] = numbers[k + 4 * r + 3]
        for c in range(3):
            F[to + 3 * r + c] = (
                numbers[k + 4 * r] * turns[i, c]
                + numbers[k + 4 * r + 1] * turns[i, 3 + c]
                + numbers[k + 4 * r + 2] * turns[i, 6 + c]
            )
    return True


@kernel("b1(f8[::1], i8[:,::1], f8[:,::1], f8[::1], f8[::1])")
def put_targets(F, plan, turns, numbers, q0):
    """
    Args:
        F: the numbers of a problem.
        plan: (k, 4) of each target its kind, where it goes, where its numbers begin, and which number of q0 an angle
            shall be near to by full turns (NEVER: by none).
        turns: (k, 9) by which a pose is turned before it is put in.
        numbers: of all targets.
    Returns:
        False if a number is not finite or a pose is none; then some targets may have been put in and others not.
    """
    total = 0.0
    for k in range(numbers.shape[0]):
        total += 0.0 * numbers[k]
    if total != 0.0:  # nor is NaN
        return False
    for i in range(plan.shape[0]):
        to, k = plan[i, 1], plan[i, 2]
        if plan[i, 0] == POSE:
            if not put_pose(F, to, turns, i, numbers, k):
                return False
        elif plan[i, 0] == PLACE:
            for r in range(3):
                F[to + 9 + r] = numbers[k + r]
        else:
            F[to] = numbers[k]
            if plan[i, 3] >= 0:
                F[to] += TURN * np.rint((q0[plan[i, 3]] - numbers[k]) / TURN)
    return True
