"""Residuals of the relative pose of two frames and their derivatives, for each kind of relation.

Every relation of a frame B to a frame A depends on the position (x, y, z) and the rotation Q of B in A. A kind has up
to six residuals: the first three change with a translation of B by the matrix `by_translation`, the last three with a
rotation of B by the matrix `by_rotation` (3 x 3, row by row). Rotations are tuples of 9 numbers, row by row.
"""

from __future__ import annotations

import math

from .compiler import inline, subroutine
from .problem_layout import *

IDENTITY_ROTATION = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
ZERO_MATRIX = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
NEARLY_PI = -0.99999
"""Cosine of the rotation angle below which the axis comes from the symmetric part of the rotation matrix."""


@inline
def rotate_inverse(A, x, y, z):
    """Return A' (x, y, z): the components of a world vector along the axes of A, a rotation of 9 numbers or a pose."""
    return A[0] * x + A[3] * y + A[6] * z, A[1] * x + A[4] * y + A[7] * z, A[2] * x + A[5] * y + A[8] * z


@inline
def rotate(M, x, y, z):
    return M[0] * x + M[1] * y + M[2] * z, M[3] * x + M[4] * y + M[5] * z, M[6] * x + M[7] * y + M[8] * z


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
    """Return the rotation vector of a rotation by nearly pi, from the largest component of its quaternion."""
    xx, yy, zz = 1.0 + Q[0] - Q[4] - Q[8], 1.0 - Q[0] + Q[4] - Q[8], 1.0 - Q[0] - Q[4] + Q[8]
    w = Q[7] - Q[5]
    if xx >= yy and xx >= zz:
        x, y, z = xx, Q[1] + Q[3], Q[2] + Q[6]
    elif yy >= zz:
        x, y, z, w = Q[1] + Q[3], yy, Q[5] + Q[7], Q[2] - Q[6]
    else:
        x, y, z, w = Q[2] + Q[6], Q[5] + Q[7], zz, Q[3] - Q[1]
    n = math.sqrt(x * x + y * y + z * z)
    f = 2.0 * math.atan2(n, abs(w)) / n
    if w < 0.0:
        f = -f
    return f * x, f * y, f * z


@inline
def rotation_vector_and_jacobian(Q):
    """Return the rotation vector of Q (rad) and its derivative by a rotation of B, the inverse left Jacobian."""
    x, y, z = 0.5 * (Q[7] - Q[5]), 0.5 * (Q[2] - Q[6]), 0.5 * (Q[3] - Q[1])
    s2 = x * x + y * y + z * z
    c = 0.5 * (Q[0] + Q[4] + Q[8] - 1.0)
    if s2 < 1e-4 and c > 0.0:  # the closed forms lose digits here; the series is exact to rounding
        f = 1.0 + s2 * (1.0 / 6.0 + s2 * (3.0 / 40.0 + s2 * 15.0 / 336.0))
        a2 = s2 * f * f
        b = 1.0 / 12.0 + a2 * (1.0 / 720.0 + a2 / 30240.0)
    elif c > NEARLY_PI:
        s = math.sqrt(s2)
        angle = math.atan2(s, c)
        f = angle / s
        b = (1.0 - 0.5 * angle * s / (1.0 - c)) / (angle * angle)
    else:
        x, y, z = rotation_vector_near_pi(Q)
        f = 1.0
        angle = math.sqrt(x * x + y * y + z * z)
        b = (1.0 - 0.5 * angle * math.sqrt(s2) / (1.0 - c)) / (angle * angle)
    x, y, z = f * x, f * y, f * z
    xx, yy, zz = x * x, y * y, z * z
    rate = (
        1.0 - b * (yy + zz), b * x * y + 0.5 * z, b * x * z - 0.5 * y,
        b * x * y - 0.5 * z, 1.0 - b * (xx + zz), b * y * z + 0.5 * x,
        b * x * z + 0.5 * y, b * y * z - 0.5 * x, 1.0 - b * (xx + yy),
    )  # fmt: skip
    return x, y, z, rate


@inline
def angle_factor(x, y, z):
    """Return f and df/dz for a unit vector, where f scales its (x, y) to the length of its angle to z (rad)."""
    s2 = x * x + y * y
    if s2 < 1e-8 and z > 0.0:
        return 1.0 + s2 / 6.0, -1.0 / 3.0 - s2 * 0.3
    s = max(math.sqrt(s2), 1e-9)
    f = math.atan2(s, z) / s
    return f, (f * z - 1.0) / (s * s)


@inline
def axis_residual(x, y, z):
    """Return the two residuals (rad) of AXIS and LOOK_AT for a unit vector, and their derivative by the vector."""
    f, df = angle_factor(x, y, z)
    if z < 0.0 and x * x + y * y < 1e-18:  # opposite to z: every direction is equally short, so take x
        return math.pi, 0.0, (-1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    return f * x, f * y, (f, 0.0, df * x, 0.0, f, df * y, 0.0, 0.0, 0.0)


@inline
def times_cross(M, x, y, z):
    """Return -M [v]x for v = (x, y, z): the derivative of M v by a rotation of v, with M (w x v) = (-M [v]x) w."""
    return (
        M[2] * y - M[1] * z, M[0] * z - M[2] * x, M[1] * x - M[0] * y,
        M[5] * y - M[4] * z, M[3] * z - M[5] * x, M[4] * x - M[3] * y,
        0.0, 0.0, 0.0,
    )  # fmt: skip


@inline
def residual_of_kind(kind, x, y, z, Q):
    """Return six residuals of a kind, `by_translation` and `by_rotation`, for the pose (x, y, z), Q of B in A."""
    a, b, c = x, y, z
    d, e, f = 0.0, 0.0, 0.0
    by_translation, by_rotation = IDENTITY_ROTATION, ZERO_MATRIX
    if kind == POSE:
        d, e, f, by_rotation = rotation_vector_and_jacobian(Q)
    elif kind == AXIS:
        d, e, M = axis_residual(Q[2], Q[5], Q[8])
        by_rotation = times_cross(M, Q[2], Q[5], Q[8])
    elif kind == COSINE:
        d = Q[8]
        by_rotation = (Q[5], -Q[2], 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    else:
        r = math.sqrt(x * x + y * y + z * z)
        if r < 1e-12:  # no direction: DISTANCE takes x, LOOK_AT has no residual
            r, u, v, w = 0.0, 1.0, 0.0, 0.0
        else:
            u, v, w = x / r, y / r, z / r
        if kind == DISTANCE:
            a = r
            by_translation = (u, v, w, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        elif r == 0.0:
            a, b, by_translation = 0.0, 0.0, ZERO_MATRIX
        else:  # LOOK_AT
            a, b, M = axis_residual(u, v, w)
            k, m = M[0] * u + M[1] * v + M[2] * w, M[3] * u + M[4] * v + M[5] * w
            by_translation = (
                (M[0] - k * u) / r, (M[1] - k * v) / r, (M[2] - k * w) / r,
                (M[3] - m * u) / r, (M[4] - m * v) / r, (M[5] - m * w) / r,
                0.0, 0.0, 0.0,
            )  # fmt: skip
    return a, b, c, d, e, f, by_translation, by_rotation
