"""Residuals of the relative pose of two frames (kinds POSE, AXIS, COSINE, LOOK_AT, DISTANCE), and their derivatives.

These residuals depend on the position (x, y, z), m, and the rotation Q of a frame B in a frame A. A kind has up to six
residuals. `linear_jacobian` is the derivative of the first three residuals by a translation of B, `angular_jacobian`
the derivative of the last three residuals by a rotation of B, both in the axes of A. The residuals are unweighted: m,
rad, or the cosine of COSINE. Matrices are tuples of 9 numbers, row by row.
"""

from __future__ import annotations

import math

from .compiler import inline, subroutine
from .problem_layout import *

IDENTITY_ROTATION = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
ZERO_MATRIX = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
NEAR_PI_COSINE = -0.99999
"""Cosine of the rotation angle below which the axis is computed from the symmetric part of the rotation matrix."""


@inline
def rotate_inverse(A, x, y, z):
    """Return A' (x, y, z): the components of a vector along the axes (columns) of a rotation or pose A."""
    return A[0] * x + A[3] * y + A[6] * z, A[1] * x + A[4] * y + A[7] * z, A[2] * x + A[5] * y + A[8] * z


@inline
def rotate(M, x, y, z):
    """Return M (x, y, z) for a matrix M."""
    return M[0] * x + M[1] * y + M[2] * z, M[3] * x + M[4] * y + M[5] * z, M[6] * x + M[7] * y + M[8] * z


@inline
def times(A, B):
    """Return A B for two rotations."""
    return (
        A[0] * B[0] + A[1] * B[3] + A[2] * B[6], A[0] * B[1] + A[1] * B[4] + A[2] * B[7],
        A[0] * B[2] + A[1] * B[5] + A[2] * B[8],
        A[3] * B[0] + A[4] * B[3] + A[5] * B[6], A[3] * B[1] + A[4] * B[4] + A[5] * B[7],
        A[3] * B[2] + A[4] * B[5] + A[5] * B[8],
        A[6] * B[0] + A[7] * B[3] + A[8] * B[6], A[6] * B[1] + A[7] * B[4] + A[8] * B[7],
        A[6] * B[2] + A[7] * B[5] + A[8] * B[8],
    )  # fmt: skip


@inline
def transposed_times(A, B):
    """Return A' B for two rotations."""
    return (
        A[0] * B[0] + A[3] * B[3] + A[6] * B[6], A[0] * B[1] + A[3] * B[4] + A[6] * B[7],
        A[0] * B[2] + A[3] * B[5] + A[6] * B[8],
        A[1] * B[0] + A[4] * B[3] + A[7] * B[6], A[1] * B[1] + A[4] * B[4] + A[7] * B[7],
        A[1] * B[2] + A[4] * B[5] + A[7] * B[8],
        A[2] * B[0] + A[5] * B[3] + A[8] * B[6], A[2] * B[1] + A[5] * B[4] + A[8] * B[7],
        A[2] * B[2] + A[5] * B[5] + A[8] * B[8],
    )  # fmt: skip


@inline
def times_transposed(A, B):
    """Return A B' for two rotations."""
    return (
        A[0] * B[0] + A[1] * B[1] + A[2] * B[2], A[0] * B[3] + A[1] * B[4] + A[2] * B[5],
        A[0] * B[6] + A[1] * B[7] + A[2] * B[8],
        A[3] * B[0] + A[4] * B[1] + A[5] * B[2], A[3] * B[3] + A[4] * B[4] + A[5] * B[5],
        A[3] * B[6] + A[4] * B[7] + A[5] * B[8],
        A[6] * B[0] + A[7] * B[1] + A[8] * B[2], A[6] * B[3] + A[7] * B[4] + A[8] * B[5],
        A[6] * B[6] + A[7] * B[7] + A[8] * B[8],
    )  # fmt: skip


@subroutine
def rotation_vector_near_pi(Q):
    """Return the rotation vector of a rotation by nearly pi, from the largest component of its quaternion.

    xx, yy and zz are four times the squared components of the quaternion; (w, x, y, z) is a multiple of it.
    """
    xx, yy, zz = 1.0 + Q[0] - Q[4] - Q[8], 1.0 - Q[0] + Q[4] - Q[8], 1.0 - Q[0] - Q[4] + Q[8]
    w = Q[7] - Q[5]
    if xx >= yy and xx >= zz:
        x, y, z = xx, Q[1] + Q[3], Q[2] + Q[6]
    elif yy >= zz:
        x, y, z, w = Q[1] + Q[3], yy, Q[5] + Q[7], Q[2] - Q[6]
    else:
        x, y, z, w = Q[2] + Q[6], Q[5] + Q[7], zz, Q[3] - Q[1]
    norm = math.sqrt(x * x + y * y + z * z)
    factor = 2.0 * math.atan2(norm, abs(w)) / norm
    if w < 0.0:
        factor = -factor
    return factor * x, factor * y, factor * z


@inline
def rotation_vector_and_jacobian(Q):
    """Return the rotation vector of Q (rad) and its derivative by a rotation of B: the inverse left Jacobian."""
    x, y, z = 0.5 * (Q[7] - Q[5]), 0.5 * (Q[2] - Q[6]), 0.5 * (Q[3] - Q[1])
    sine2 = x * x + y * y + z * z
    cosine = 0.5 * (Q[0] + Q[4] + Q[8] - 1.0)
    if sine2 < 1e-4 and cosine > 0.0:  # the closed forms lose digits for small angles; the series is exact to rounding
        factor = 1.0 + sine2 * (1.0 / 6.0 + sine2 * (3.0 / 40.0 + sine2 * 15.0 / 336.0))
        angle2 = sine2 * factor * factor
        even_factor = 1.0 / 12.0 + angle2 * (1.0 / 720.0 + angle2 / 30240.0)
    elif cosine > NEAR_PI_COSINE:
        sine = math.sqrt(sine2)
        angle = math.atan2(sine, cosine)
        factor = angle / sine
        even_factor = (1.0 - 0.5 * angle * sine / (1.0 - cosine)) / (angle * angle)
    else:
        x, y, z = rotation_vector_near_pi(Q)
        factor = 1.0
        angle = math.sqrt(x * x + y * y + z * z)
        even_factor = (1.0 - 0.5 * angle * math.sqrt(sine2) / (1.0 - cosine)) / (angle * angle)
    x, y, z = factor * x, factor * y, factor * z
    xx, yy, zz = x * x, y * y, z * z
    jacobian = (
        1.0 - even_factor * (yy + zz), even_factor * x * y + 0.5 * z, even_factor * x * z - 0.5 * y,
        even_factor * x * y - 0.5 * z, 1.0 - even_factor * (xx + zz), even_factor * y * z + 0.5 * x,
        even_factor * x * z + 0.5 * y, even_factor * y * z - 0.5 * x, 1.0 - even_factor * (xx + yy),
    )  # fmt: skip
    return x, y, z, jacobian


@inline
def angle_factor(x, y, z):
    """Return f = angle / sine and df/dz for a unit vector, with its angle (rad) to the z axis.

    f scales the components (x, y) to a vector whose length is the angle.
    """
    sine2 = x * x + y * y
    if sine2 < 1e-8 and z > 0.0:
        return 1.0 + sine2 / 6.0, -1.0 / 3.0 - sine2 * 0.3
    sine = max(math.sqrt(sine2), 1e-9)
    factor = math.atan2(sine, z) / sine
    return factor, (factor * z - 1.0) / (sine * sine)


@inline
def axis_residual(x, y, z):
    """Return the two residuals (rad) of AXIS and LOOK_AT for a unit vector, and their derivative by the vector."""
    factor, factor_slope = angle_factor(x, y, z)
    if z < 0.0 and x * x + y * y < 1e-18:  # opposite to z, all directions of rotation are equally short: choose x
        return math.pi, 0.0, (-1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    return factor * x, factor * y, (factor, 0.0, factor_slope * x, 0.0, factor, factor_slope * y, 0.0, 0.0, 0.0)


@inline
def minus_times_cross(M, x, y, z):
    """Return -M [v]x, where [v]x is the cross product matrix of v = (x, y, z) and the last row of M is zero.

    This is the derivative of M v by a rotation w of v, since M (w x v) = -M [v]x w.
    """
    return (
        M[2] * y - M[1] * z, M[0] * z - M[2] * x, M[1] * x - M[0] * y,
        M[5] * y - M[4] * z, M[3] * z - M[5] * x, M[4] * x - M[3] * y,
        0.0, 0.0, 0.0,
    )  # fmt: skip


@inline
def residual_of_kind(kind, x, y, z, Q):
    """Return six residuals of a kind, `linear_jacobian` and `angular_jacobian`, for the pose of B in A.

    Residuals that the kind does not have are arbitrary numbers; the row mask of a block leaves them out. (u, v, w) is
    the unit vector to the origin of B; M is the derivative of an axis residual by its unit vector.
    """
    r0, r1, r2 = x, y, z
    r3, r4, r5 = 0.0, 0.0, 0.0
    linear_jacobian, angular_jacobian = IDENTITY_ROTATION, ZERO_MATRIX
    if kind == POSE:
        r3, r4, r5, angular_jacobian = rotation_vector_and_jacobian(Q)
    elif kind == AXIS:
        r3, r4, M = axis_residual(Q[2], Q[5], Q[8])
        angular_jacobian = minus_times_cross(M, Q[2], Q[5], Q[8])
    elif kind == COSINE:
        r3 = Q[8]
        angular_jacobian = (Q[5], -Q[2], 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    else:
        distance = math.sqrt(x * x + y * y + z * z)
        if distance < 1e-12:  # there is no direction: DISTANCE uses x, the residual of LOOK_AT is zero
            distance, u, v, w = 0.0, 1.0, 0.0, 0.0
        else:
            u, v, w = x / distance, y / distance, z / distance
        if kind == DISTANCE:
            r0 = distance
            linear_jacobian = (u, v, w, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        elif distance == 0.0:
            r0, r1, linear_jacobian = 0.0, 0.0, ZERO_MATRIX
        else:  # LOOK_AT
            r0, r1, M = axis_residual(u, v, w)
            radial_x, radial_y = M[0] * u + M[1] * v + M[2] * w, M[3] * u + M[4] * v + M[5] * w
            linear_jacobian = (
                (M[0] - radial_x * u) / distance, (M[1] - radial_x * v) / distance, (M[2] - radial_x * w) / distance,
                (M[3] - radial_y * u) / distance, (M[4] - radial_y * v) / distance, (M[5] - radial_y * w) / distance,
                0.0, 0.0, 0.0,
            )  # fmt: skip
    return r0, r1, r2, r3, r4, r5, linear_jacobian, angular_jacobian
