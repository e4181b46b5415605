"""Validate new targets of several goals and write them into a packed problem: a small kernel for fast loops.

The numbers of all targets are in one flat array, one target after the other.
"""

from __future__ import annotations

import math

import numpy as np

from .compiler import kernel, subroutine

TARGET_POSE, TARGET_POSITION, TARGET_VALUE = range(3)
"""Kinds of targets: a pose (16 numbers, row by row), a position (3, m), a joint value (1)."""
NO_REFERENCE = -1
"""Index in q that means that a joint value has no reference angle."""


ROTATION_TOLERANCE = 1e-6
"""Largest total deviation of a rotation's columns from unit length and right angles."""
FULL_TURN = 2.0 * math.pi


@subroutine
def write_pose(floats, offset, rotations, i, values, first):
    """Write the pose values[first:first + 16], multiplied by rotation i, to `floats`, from `offset` on.

    Returns:
        False if the pose is not a rigid transform.
    """
    deviation = 0.0
    for c in range(3):
        dot, square = 0.0, 0.0
        for r in range(3):
            entry, next_entry = values[first + 4 * r + c], values[first + 4 * r + (c + 1) % 3]
            square += entry * entry
            dot += entry * next_entry
        deviation += abs(dot) + abs(square - 1.0) + abs(values[first + 12 + c])
    x = values[first + 5] * values[first + 10] - values[first + 6] * values[first + 9]
    y = values[first + 6] * values[first + 8] - values[first + 4] * values[first + 10]
    z = values[first + 4] * values[first + 9] - values[first + 5] * values[first + 8]
    is_mirrored = values[first] * x + values[first + 1] * y + values[first + 2] * z < 0.0
    if is_mirrored or not deviation + abs(values[first + 15] - 1.0) < ROTATION_TOLERANCE:
        return False
    for r in range(3):
        floats[offset + 9 + r] = values[first + 4 * r + 3]
        for c in range(3):
            floats[offset + 3 * r + c] = (
                values[first + 4 * r] * rotations[i, c]
                + values[first + 4 * r + 1] * rotations[i, 3 + c]
                + values[first + 4 * r + 2] * rotations[i, 6 + c]
            )
    return True


@kernel("b1(f8[::1], i8[:,::1], f8[:,::1], f8[::1], f8[::1])")
def write_targets(floats, plan, rotations, values, q0):
    """Validate the targets of several goals and write them into the packed problem.

    Args:
        floats: the float table of the problem.
        plan: (k, 4), for each target its kind, its offset in `floats`, its offset in `values`, and the index in q0 of
            its reference angle (or NO_REFERENCE). Full turns are added to a joint value to come nearest to this angle.
        rotations: (k, 9), rotation matrices, row by row; the rotation of a target pose is multiplied by its matrix from
            the right.
        values: the numbers of all targets.
        q0: (nq,), reference angles, rad.

    Returns:
        False if a number is not finite or a pose is not a rigid transform; some targets may then be written.
    """
    total = 0.0
    for first in range(values.shape[0]):
        total += 0.0 * values[first]
    if total != 0.0:  # 0 times infinity or NaN is NaN, which differs from 0
        return False
    for i in range(plan.shape[0]):
        offset, first = plan[i, 1], plan[i, 2]
        if plan[i, 0] == TARGET_POSE:
            if not write_pose(floats, offset, rotations, i, values, first):
                return False
        elif plan[i, 0] == TARGET_POSITION:
            for r in range(3):
                floats[offset + 9 + r] = values[first + r]
        else:
            floats[offset] = values[first]
            if plan[i, 3] >= 0:
                floats[offset] += FULL_TURN * np.rint((q0[plan[i, 3]] - values[first]) / FULL_TURN)
    return True
