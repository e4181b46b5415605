"""Trigonometric equations of closed-form inverse kinematics, vectorised over many poses.

A vector rotated about a fixed axis k by an angle t is the sum of a constant, a cosine and a sine term. So every
equation in one angle is A cos t + B sin t = D, possibly with additional products of cosine and sine. The decomposition
of arms into such equations follows Paden and Kahan: B. Paden, "Kinematics and Control of Robot Manipulators", Berkeley
1986.

If the data do not determine an angle (a vector along its rotation axis), the angle `free_angle` is returned. If there
is no solution, the result is the nearest approximation or NaN. The caller must check the result.
"""

from __future__ import annotations

import numpy as np

from mechanik.spatial.array import Array
from mechanik.spatial.vector_math import cross, dot, length

DEGENERATE_RATIO = 1e-9
"""Ratio of a magnitude to its typical size below which it does not determine an angle."""
COSINE_ROUNDING = 1e-15
"""Rounding error of a cosine."""
SPECIAL_GEOMETRY_TOLERANCE = 1e-8
"""Ratio to the reach, and rad: for axes that intersect or are parallel within this tolerance the special equations are
used; beyond it the general equations are more accurate.
"""


def squared_sinusoid(v: Array) -> Array:
    """Return (v0 + v1 cos t + v2 sin t)² as coefficients (..., 6) for `quadratic_sinusoid_roots`, from v (..., 3)."""
    v0, v1, v2 = v[..., 0], v[..., 1], v[..., 2]
    return np.stack([v0 * v0, 2 * v0 * v1, 2 * v0 * v2, v1 * v1, 2 * v1 * v2, v2 * v2], axis=-1)


def rotate_about(k: Array, t: Array, v: Array) -> Array:
    """Return v (..., 3) rotated by t (...), rad, about the unit axis k (3,)."""
    along = (v @ k)[..., None] * k
    return along + np.cos(t)[..., None] * (v - along) + np.sin(t)[..., None] * cross(k, v)


def rotation_about(k: Array, t: Array) -> Array:
    """Return the rotations (..., 3, 3) by t (...), rad, about the unit axis k (3,)."""
    hat = np.array([[0.0, -k[2], k[1]], [k[2], 0.0, -k[0]], [-k[1], k[0], 0.0]])
    c, s = np.cos(t)[..., None, None], np.sin(t)[..., None, None]
    return s * hat + c * (np.eye(3) - np.outer(k, k)) + np.outer(k, k)


def rotation_angle_onto(k: Array, v: Array, w: Array, free_angle: Array, scale: float = 1.0) -> Array:
    """Return the angle (...), rad, by which v (..., 3), rotated about k (3,), comes nearest to w (..., 3).

    Args:
        free_angle: (...) angle to return if v or w is on the axis, rad.
        scale: typical length of v and w perpendicular to k, in their unit.
    """
    # cross products are accurate also if the perpendicular part is tiny compared with the part along the axis
    v, w = cross(k, v), cross(k, w)
    sine, cosine = cross(v, w) @ k, dot(v, w)
    is_free = np.hypot(sine, cosine) < (DEGENERATE_RATIO * scale) ** 2
    return np.where(is_free, free_angle, np.arctan2(sine, cosine))


def angle_between(v: Array, w: Array) -> Array:
    """Return the angle (...), rad in 0 to pi, between vectors (..., 3)."""
    return np.arctan2(length(cross(v, w)), dot(v, w))


def sinusoid_roots(A: Array, B: Array, D: Array, free_angle: Array, scale: float = 1.0) -> Array:
    """Return the two angles t (..., 2), rad, with A cos t + B sin t = D.

    Args:
        free_angle: (...) angle to return if A and B are zero, rad.
        scale: typical size of A and B.
    """
    amplitude = np.hypot(A, B)
    is_free = amplitude < DEGENERATE_RATIO * scale
    middle_angle = np.arctan2(B, A)
    cosine = np.clip(D / np.where(is_free, 1.0, amplitude), -1.0, 1.0)
    # rounding would split a double root by about 1e-8, and later steps would not detect the singularity
    half_angle = np.arccos(np.where(1.0 - np.abs(cosine) < COSINE_ROUNDING, np.sign(cosine), cosine))
    roots = np.stack([middle_angle + half_angle, middle_angle - half_angle], axis=-1)
    return np.where(is_free[..., None], free_angle[..., None], roots)


def three_axis_angles(R: Array, a: Array, b: Array, c: Array, near: Array) -> Array:
    """Return the angles (..., 2, 3), rad, of rotations about a, b and c (3,) whose product is R (..., 3, 3).

    If a and the rotated c are collinear, the first angle is taken from `near` (..., 3).
    """
    last_axis = R @ c
    # a, b and c are the corners of a spherical triangle with known sides; the half-angle formulas for the angle at b
    # are accurate also in flat triangles
    ab, bc, ca = angle_between(a, b), angle_between(b, c), angle_between(a, last_axis)
    numerator = np.sin((ca + bc - ab) / 2) * np.sin((ca + ab - bc) / 2)
    denominator = np.sin((ab + bc + ca) / 2) * np.sin((ab + bc - ca) / 2)
    angle_at_b = 2 * np.arctan2(np.sqrt(np.maximum(numerator, 0.0)), np.sqrt(np.maximum(denominator, 0.0)))
    middle_angle = np.arctan2(cross(b, c) @ a, a @ c - (a @ b) * (b @ c))  # where c, rotated about b, is nearest to a
    q_b = middle_angle + np.stack([angle_at_b, -angle_at_b], axis=-1)
    last_axis = last_axis[..., None, :]
    q_a = rotation_angle_onto(
        a, rotate_about(b, q_b, np.broadcast_to(c, (*q_b.shape, 3))), last_axis, near[..., None, 0]
    )
    perpendicular = perpendicular_basis(c)[0]
    last_vector = rotate_about(b, -q_b, rotate_about(a, -q_a, (R @ perpendicular)[..., None, :]))
    q_c = rotation_angle_onto(c, np.broadcast_to(perpendicular, last_vector.shape), last_vector, near[..., None, 2])
    return np.stack([q_a, q_b, q_c], axis=-1)


def other_leg(hypotenuse_squared: Array, leg: Array) -> Array:
    """Return the other leg of a right triangle; zero if it is a rounding error, or if there is no such triangle."""
    leg_squared = hypotenuse_squared - leg * leg
    return np.sqrt(np.where(leg_squared < COSINE_ROUNDING, 0.0, leg_squared))


def quadratic_sinusoid_roots(e: Array) -> Array:
    """Return up to four roots t (..., 4), rad, of a quadratic trigonometric polynomial; missing roots are NaN.

    With coefficients e (..., 6) the equation is
    e0 + e1 cos t + e2 sin t + e3 cos² t + e4 cos t sin t + e5 sin² t = 0.
    """
    # tangent half-angle substitution; t is shifted so that the pole of the tangent is far from any root
    shifts = np.arange(8) * (np.pi / 4)
    c, s = -np.cos(shifts), -np.sin(shifts)
    magnitudes = np.abs(e @ np.stack([np.ones(8), c, s, c * c, c * s, s * s]))
    shift = shifts[np.argmax(magnitudes, axis=-1)]
    c, s = np.cos(shift), np.sin(shift)
    e0, (e1, e2, e3, e4, e5) = e[..., 0], (e[..., k] for k in range(1, 6))
    f1, f2 = e1 * c + e2 * s, e2 * c - e1 * s
    f3 = e3 * c * c + e4 * c * s + e5 * s * s
    f5 = e3 * s * s - e4 * c * s + e5 * c * c
    f4 = 2 * (e5 - e3) * c * s + e4 * (c * c - s * s)
    coefficients = np.stack([e0 - f1 + f3, 2 * (f2 - f4), 2 * (e0 - f3 + 2 * f5), 2 * (f2 + f4), e0 + f1 + f3], axis=-1)
    companion = np.zeros((*e.shape[:-1], 4, 4))
    leading_coefficient = coefficients[..., :1]
    is_degenerate = np.abs(leading_coefficient[..., 0]) < 1e-300  # every t is a root, or none is
    companion[..., 0, :] = -coefficients[..., 1:] / np.where(is_degenerate[..., None], 1.0, leading_coefficient)
    companion[..., 1:, :3] = np.eye(3)
    x = np.linalg.eigvals(companion)
    imaginary = 2 * x.imag / (1.0 + x.real**2)
    t = np.where(
        (np.abs(imaginary) < 1e-3) & ~is_degenerate[..., None], shift[..., None] + 2 * np.arctan(x.real), np.nan
    )
    return _refine_roots(e, t, np.sign(imaginary))


def _refine_roots(e: Array, t: Array, side: Array) -> Array:
    """Return roots t (..., 4) of the trigonometric polynomial e (..., 6), refined by Newton's method.

    Args:
        side: (..., 4), 0 for a real root, 1 and -1 for a complex root and its conjugate. Such a pair may be two real
            roots that rounding has merged; then the parabola about the extremum between them gives both. If the
            parabola has no root, the extremum is the nearest approximation.
    """
    for _ in range(2):
        value, slope, curvature = _derivatives(e, t)
        newton_step = np.divide(value, slope, out=np.zeros_like(t), where=(slope != 0.0) & (side == 0.0))
        extremum_step = np.divide(slope, curvature, out=np.zeros_like(t), where=(curvature != 0.0) & (side != 0.0))
        trial_t = t - np.clip(newton_step + extremum_step, -1e-2, 1e-2)
        is_better = (side != 0.0) | (np.abs(_derivatives(e, trial_t)[0]) < np.abs(value))
        t = np.where(is_better, trial_t, t)
    value, _, curvature = _derivatives(e, t)
    offset_squared = np.divide(-2 * value, curvature, out=np.zeros_like(t), where=(curvature != 0.0) & (side != 0.0))
    return t + side * np.sqrt(np.maximum(offset_squared, 0.0))


def _derivatives(e: Array, t: Array) -> tuple[Array, Array, Array]:
    """Return value, first and second derivative of the trigonometric polynomial e (..., 6) at t (..., k)."""
    e0, e1, e2, e3, e4, e5 = (e[..., None, k] for k in range(6))
    c, s = np.cos(t), np.sin(t)
    value = e0 + c * (e1 + e3 * c + e4 * s) + s * (e2 + e5 * s)
    slope = -e1 * s + e2 * c + 2 * (e5 - e3) * c * s + e4 * (c * c - s * s)
    curvature = -e1 * c - e2 * s + 2 * (e5 - e3) * (c * c - s * s) - 4 * e4 * c * s
    return value, slope, curvature


def perpendicular_basis(k: Array) -> Array:
    """Return two unit vectors (2, 3) perpendicular to k and to each other."""
    v = cross(k, np.eye(3)[np.argmin(np.abs(k))])
    v = v / np.sqrt(v @ v)
    return np.stack([v, cross(k, v)])
