"""Validate new targets of objectives and write them into a packed problem, in a small kernel for frequent calls.

The numbers of all targets are in one flat array, one target after the other.
"""

from __future__ import annotations

import math

import numpy as np

from .compiler import kernel, subroutine

TARGET_POSE, TARGET_POSITION, TARGET_VALUE = range(3)
"""Kinds of targets: a pose (16 numbers, row by row, m), a position (3 numbers, m), a joint value (rad or m)."""
NO_REFERENCE = -1
"""Index in q that means that a joint value has no reference angle."""


RIGID_TRANSFORM_TOLERANCE = 1e-6
"""Bound of the sum of the deviations of a target from a rigid transform: those of the squared lengths and scalar
products of the columns of its rotation, and of its last row."""
FULL_TURN = 2.0 * math.pi


@subroutine
def write_target_pose(floats, offset, rotations, i, values, first_index):
    """Write the pose values[first_index:first_index + 16] to `floats`, from `offset` on, as 9 + 3 numbers: R and p.

    The rotation of the pose is multiplied by rotation i from the right.

    Returns:
        False, and nothing is written, if the pose is not a rigid transform.
    """
    deviation = 0.0
    for c in range(3):
        dot, square = 0.0, 0.0
        for r in range(3):
            entry, next_entry = values[first_index + 4 * r + c], values[first_index + 4 * r + (c + 1) % 3]
            square += entry * entry
            dot += entry * next_entry
        deviation += abs(dot) + abs(square - 1.0) + abs(values[first_index + 12 + c])
    minor_x = values[first_index + 5] * values[first_index + 10] - values[first_index + 6] * values[first_index + 9]
    minor_y = values[first_index + 6] * values[first_index + 8] - values[first_index + 4] * values[first_index + 10]
    minor_z = values[first_index + 4] * values[first_index + 9] - values[first_index + 5] * values[first_index + 8]
    is_mirrored = (
        values[first_index] * minor_x + values[first_index + 1] * minor_y + values[first_index + 2] * minor_z < 0.0
    )
    if is_mirrored or not deviation + abs(values[first_index + 15] - 1.0) < RIGID_TRANSFORM_TOLERANCE:
        return False
    for r in range(3):
        floats[offset + 9 + r] = values[first_index + 4 * r + 3]
        for c in range(3):
            floats[offset + 3 * r + c] = (
                values[first_index + 4 * r] * rotations[i, c]
                + values[first_index + 4 * r + 1] * rotations[i, 3 + c]
                + values[first_index + 4 * r + 2] * rotations[i, 6 + c]
            )
    return True


@kernel("b1(f8[::1], i8[:,::1], f8[:,::1], f8[::1], f8[::1])")
def write_targets(floats, target_table, rotations, values, q0):
    """Validate the targets of objectives and write them into the packed problem.

    Args:
        floats: the float table of the problem.
        target_table: (k, 4), for each target its kind, its offset in `floats`, its offset in `values`, and the index in
            q0 of its reference angle (or NO_REFERENCE). Full turns are added to a joint value to come nearest to this
            angle.
        rotations: (k, 9), for each target a rotation matrix, row by row; the rotation of a target pose is multiplied by
            it from the right.
        values: the numbers of all targets.
        q0: (nq,), configuration with the reference angles.

    Returns:
        False if a number is not finite or a pose is not a rigid transform; some targets may then be written.
    """
    total = 0.0
    for k in range(values.shape[0]):
        total += 0.0 * values[k]
    if total != 0.0:  # 0 times infinity or NaN is NaN, which differs from 0
        return False
    for i in range(target_table.shape[0]):
        offset, first_index = target_table[i, 1], target_table[i, 2]
        if target_table[i, 0] == TARGET_POSE:
            if not write_target_pose(floats, offset, rotations, i, values, first_index):
                return False
        elif target_table[i, 0] == TARGET_POSITION:
            for r in range(3):
                floats[offset + 9 + r] = values[first_index + r]
        else:
            floats[offset] = values[first_index]
            if target_table[i, 3] >= 0:
                floats[offset] += FULL_TURN * np.rint((q0[target_table[i, 3]] - values[first_index]) / FULL_TURN)
    return True
