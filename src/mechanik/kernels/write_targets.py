"""Validate new targets of objectives and write them into a packed problem, in a small kernel for frequent calls.

The numbers of all targets are in one flat array, one target after the other. A table has a row for each part of a
relation that a target determines (`objectives/relation.py`, `TargetWrite`): what to compute, from which numbers, and
where to write the result. A part of a frame that is fixed to a link is left @ target @ right, with constant poses.
"""

from __future__ import annotations

import math

import numpy as np

from .compiler import kernel, subroutine
from .tables import matrix_at, vector_at

(WRITE_POSITION, WRITE_ROTATION, WRITE_INVERSE_ROTATION, WRITE_DIRECTION, WRITE_VALUE, WRITE_QUATERNION,
 WRITE_BOUND) = range(7)  # fmt: skip
"""What a row of the table writes: a position (3 numbers), a rotation (9), a transposed rotation (9), the axes of a
direction (9), a joint value (1), a quaternion (4), a bound of a distance (1)."""
OPERATION, SLOT, FIRST_NUMBER, STRIDE, REFERENCE = range(5)
"""Columns of the table. SLOT: index of the first result in the float table of the problem. FIRST_NUMBER: index of the
first number of the target part. STRIDE: distance of the three numbers of a position, or of the rows of a rotation: 4 in
a pose (4, 4), which is stored row by row. REFERENCE: index in q0 of the reference angle of a joint value, or -1."""
WRITE_INTS = 5
LEFT_ROTATION, LEFT_POSITION, RIGHT_ROTATION = 0, 9, 12
RATIO, OFFSET, LOWER, UPPER, PERIOD = range(5)
"""Constants of a row: of a part of a frame the pose to its left, 9 + 3 numbers, and the rotation to its right; of a
joint value ratio and offset, limits (rad), and the period of equivalent values (rad)."""
WRITE_FLOATS = 21

RIGID_TRANSFORM_TOLERANCE = 1e-6
"""Bound of the sum of the deviations of a target from a rigid transform: those of the squared lengths and scalar
products of the columns of its rotation, and of its last row."""
QUATERNION_TOLERANCE = 1e-3
"""Largest deviation of the squared norm of a quaternion from 1."""
MIN_DIRECTION_LENGTH2 = 1e-12
"""Smallest squared length of a direction; shorter directions are left to the checks in Python."""
MIN_TILT_SINE2 = 1e-20
"""Square of the sine of the angle to -z below which a direction is left to Python, since its axes are not unique."""
COUNT_TOLERANCE = 1e-12
"""Periods by which an angle may be outside its limits because of rounding, as in `nearest_equivalent_value`."""


@subroutine
def is_rigid(X):
    """Return whether X is a rotation, (3, 3), or a rigid transform, (4, 4)."""
    is_pose, deviation = X.shape[0] == 4, 0.0
    for c in range(3):
        dot, square = 0.0, 0.0
        for r in range(3):
            entry, next_entry = X[r, c], X[r, (c + 1) % 3]
            square += entry * entry
            dot += entry * next_entry
        deviation += abs(dot) + abs(square - 1.0)
        if is_pose:
            deviation += abs(X[3, c])
    if is_pose:
        deviation += abs(X[3, 3] - 1.0)
    minor_x = X[1, 1] * X[2, 2] - X[1, 2] * X[2, 1]
    minor_y = X[1, 2] * X[2, 0] - X[1, 0] * X[2, 2]
    minor_z = X[1, 0] * X[2, 1] - X[1, 1] * X[2, 0]
    is_mirrored = X[0, 0] * minor_x + X[0, 1] * minor_y + X[0, 2] * minor_z < 0.0
    return not is_mirrored and deviation < RIGID_TRANSFORM_TOLERANCE


@subroutine
def place_rotation(R, row_constants):
    """Replace the rotation R by left @ R @ right, with the constants of a row."""
    left, right = matrix_at(row_constants, LEFT_ROTATION, 3, 3), matrix_at(row_constants, RIGHT_ROTATION, 3, 3)
    for r in range(3):
        x, y, z = R[r, 0], R[r, 1], R[r, 2]
        for c in range(3):
            R[r, c] = x * right[0, c] + y * right[1, c] + z * right[2, c]
    for c in range(3):
        x, y, z = R[0, c], R[1, c], R[2, c]
        for r in range(3):
            R[r, c] = left[r, 0] * x + left[r, 1] * y + left[r, 2] * z


@subroutine
def write_axes_of_direction(x, y, z, R):
    """Write the smallest rotation that maps z to a direction of any length to R, as `axes_from_z` computes it.

    Returns:
        False if the direction is too short, or too near to -z.
    """
    length2 = x * x + y * y + z * z
    if not MIN_DIRECTION_LENGTH2 < length2 < np.inf:
        return False
    length = math.sqrt(length2)
    x, y, z = x / length, y / length, z / length
    scale = 1.0 / (1.0 + abs(z))
    xx, xy, yy = x * x * scale, x * y * scale, y * y * scale
    R[2, 0], R[2, 1], R[2, 2] = -x, -y, z
    if z >= 0.0:
        R[0, 0], R[0, 1], R[0, 2] = 1.0 - xx, -xy, x
        R[1, 0], R[1, 1], R[1, 2] = -xy, 1.0 - yy, y
        return True
    sine2 = x * x + y * y
    if sine2 < MIN_TILT_SINE2:
        return False
    # obtuse angle: the rotation to the opposite vector, then half a revolution about an axis in the xy plane
    a, b, c = 2.0 * y * y / sine2 - 1.0, -2.0 * x * y / sine2, 2.0 * x * x / sine2 - 1.0
    R[0, 0], R[0, 1] = a * (1.0 - xx) - b * xy, b * (1.0 - yy) - a * xy
    R[1, 0], R[1, 1] = b * (1.0 - xx) - c * xy, c * (1.0 - yy) - b * xy
    R[0, 2], R[1, 2] = -a * x - b * y, -b * x - c * y
    return True


@subroutine
def nearest_equivalent(target, value, lower, upper, period):
    """Return the value inside the limits that is equivalent to `target` and nearest to `value`.

    Without such a value, return the equivalent value nearest to the limits (as `nearest_equivalent_value`).
    """
    min_count = math.ceil((lower - target) / period - COUNT_TOLERANCE) if lower > -np.inf else -np.inf
    max_count = math.floor((upper - target) / period + COUNT_TOLERANCE) if upper < np.inf else np.inf
    if min_count <= max_count:
        return target + period * min(max(np.rint((value - target) / period), min_count), max_count)
    below, above = target + period * max_count, target + period * min_count
    return below if lower - below < above - upper else above


@kernel("b1(f8[::1], i8[:,::1], f8[:,::1], f8[::1], f8[::1])")
def write_targets(floats, table, constants, values, q0):
    """Validate the targets of objectives and write them into the packed problem.

    Args:
        floats: the float table of the problem.
        table: (k, WRITE_INTS), what is written.
        constants: (k, WRITE_FLOATS), the constants of each row.
        values: the numbers of all targets.
        q0: (nq,), configuration with the reference angles.

    Returns:
        False if a number is not finite or a target is not valid; some targets may then be written.
    """
    total = 0.0
    for k in range(values.shape[0]):
        total += 0.0 * values[k]
    if total != 0.0:  # 0 times infinity or NaN is NaN, which differs from 0
        return False
    for i in range(table.shape[0]):
        operation, slot, first, stride = table[i, OPERATION], table[i, SLOT], table[i, FIRST_NUMBER], table[i, STRIDE]
        row_constants = constants[i]
        if operation == WRITE_POSITION:
            target, left = matrix_at(values, first, 3, stride), matrix_at(row_constants, LEFT_ROTATION, 3, 3)
            left_position, position = vector_at(row_constants, LEFT_POSITION, 3), vector_at(floats, slot, 3)
            x, y, z = target[0, 0], target[1, 0], target[2, 0]
            for r in range(3):
                position[r] = left[r, 0] * x + left[r, 1] * y + left[r, 2] * z + left_position[r]
        elif operation == WRITE_ROTATION or operation == WRITE_INVERSE_ROTATION:
            X, R = matrix_at(values, first, stride, stride), matrix_at(floats, slot, 3, 3)
            if not is_rigid(X):
                return False
            for r in range(3):
                for c in range(3):
                    R[r, c] = X[r, c] if operation == WRITE_ROTATION else X[c, r]
            place_rotation(R, row_constants)
        elif operation == WRITE_DIRECTION:
            R = matrix_at(floats, slot, 3, 3)
            if not write_axes_of_direction(values[first], values[first + 1], values[first + 2], R):
                return False
            place_rotation(R, row_constants)
        elif operation == WRITE_VALUE:
            value = (values[first] - row_constants[OFFSET]) / row_constants[RATIO]
            if table[i, REFERENCE] >= 0:
                value = nearest_equivalent(
                    value,
                    q0[table[i, REFERENCE]],
                    row_constants[LOWER],
                    row_constants[UPPER],
                    row_constants[PERIOD],
                )
            if not abs(value) < np.inf:
                return False
            floats[slot] = value
        elif operation == WRITE_QUATERNION:
            wxyz, quaternion = vector_at(values, first, 4), vector_at(floats, slot, 4)
            norm2 = 0.0
            for r in range(4):
                norm2 += wxyz[r] * wxyz[r]
            if abs(norm2 - 1.0) > QUATERNION_TOLERANCE:
                return False
            norm = math.sqrt(norm2)
            for r in range(4):
                quaternion[r] = wxyz[r] / norm
        else:
            if not values[first] > 0.0:
                return False
            floats[slot] = values[first]
    return True
