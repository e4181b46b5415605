"""Rotation matrices, SO(3), (..., 3, 3), and rotation vectors, (..., 3), in rad."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mechanik.spatial import quaternion, series
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.vector_math import components, cross, dot, length, unit


def hat(v: ArrayLike) -> Array:
    """Convert vectors (..., 3) to skew matrices (..., 3, 3) with hat(v) u = v x u.

    Example:
        >>> mk.spatial.rotation.hat([1, 2, 3]) @ [1, 0, 0]
        array([ 0.,  3., -2.])
    """
    v = np.asarray(v, dtype=np.float64)
    x, y, z = components(v)
    out = np.zeros((*v.shape[:-1], 3, 3))
    out[..., 0, 1] = -z
    out[..., 0, 2] = y
    out[..., 1, 0] = z
    out[..., 1, 2] = -x
    out[..., 2, 0] = -y
    out[..., 2, 1] = x
    return out


def vee(S: ArrayLike) -> Array:
    """Convert skew matrices (..., 3, 3) to vectors (..., 3), the inverse of `hat`; only three entries are used.

    Example:
        >>> mk.spatial.rotation.vee(mk.spatial.rotation.hat([1, 2, 3]))
        array([1., 2., 3.])
    """
    M = np.asarray(S, dtype=np.float64)
    out = np.empty((*M.shape[:-2], 3))
    out[..., 0] = M[..., 2, 1]
    out[..., 1] = M[..., 0, 2]
    out[..., 2] = M[..., 1, 0]
    return out


def exp(w: ArrayLike) -> Array:
    """Convert rotation vectors (..., 3), rad, to rotation matrices (..., 3, 3).

    Example:
        >>> np.diag(mk.spatial.rotation.exp([0, 0, np.pi])).round(6)
        array([-1., -1.,  1.])
    """
    w = np.asarray(w, dtype=np.float64)
    angle = length(w)
    return _rodrigues_form(w, series.sine_ratio(angle), series.cosine_ratio(angle))


def log(R: ArrayLike) -> Array:
    """Convert rotation matrices (..., 3, 3) to rotation vectors (..., 3), rad, of norm in [0, pi].

    At pi the first nonzero component is positive.

    Example:
        >>> mk.spatial.rotation.log(mk.spatial.rotation.exp([0.1, 0.2, 0.3])).round(6)
        array([0.1, 0.2, 0.3])
    """
    # The logarithm of a quaternion is well conditioned at all angles, also near pi.
    return quaternion.log(quaternion.from_matrix(R))


def left_jacobian(w: ArrayLike) -> Array:
    """Return J, (..., 3, 3), with exp(w + dw) = exp(J dw) exp(w) to first order.

    Example:
        >>> mk.spatial.rotation.left_jacobian([0.1, 0.2, 0.3]).shape
        (3, 3)
    """
    w = np.asarray(w, dtype=np.float64)
    angle = length(w)
    return _rodrigues_form(w, series.cosine_ratio(angle), series.cubic_remainder(angle))


def right_jacobian(w: ArrayLike) -> Array:
    """Return J, (..., 3, 3), with exp(w + dw) = exp(w) exp(J dw) to first order."""
    return left_jacobian(np.negative(w))


def left_jacobian_inverse(w: ArrayLike) -> Array:
    """Return the inverse of `left_jacobian`, (..., 3, 3); undefined where |w| is a nonzero multiple of 2 pi."""
    w = np.asarray(w, dtype=np.float64)
    angle = length(w)
    return _rodrigues_form(w, np.full_like(angle, -0.5), series.cotangent_remainder(angle))


def right_jacobian_inverse(w: ArrayLike) -> Array:
    """Return the inverse of `right_jacobian`, (..., 3, 3); undefined where |w| is a nonzero multiple of 2 pi."""
    return left_jacobian_inverse(np.negative(w))


def from_axis_angle(axis: ArrayLike, angle: ArrayLike) -> Array:
    """Convert axes (..., 3), of any length except zero, and angles (...), rad, to rotation matrices (..., 3, 3).

    Raises:
        NotARotation: an axis is zero.

    Example:
        >>> np.diag(mk.spatial.rotation.from_axis_angle([0, 0, 2], np.pi)).round(6)
        array([-1., -1.,  1.])
    """
    axis = unit(np.asarray(axis, dtype=np.float64), "a rotation axis")
    angle = np.asarray(angle, dtype=np.float64)
    half_sine = np.sin(0.5 * angle)
    return _rodrigues_form(axis, np.sin(angle), 2.0 * half_sine * half_sine)


def to_axis_angle(R: ArrayLike) -> tuple[Array, Array]:
    """Convert rotation matrices (..., 3, 3) to unit axes (..., 3) and angles (...) in [0, pi], rad.

    The identity has axis x.

    Example:
        >>> axis, angle = mk.spatial.rotation.to_axis_angle(np.diag([-1, -1, 1]))
        >>> axis, round(float(angle), 4)
        (array([0., 0., 1.]), 3.1416)
    """
    return quaternion.axis_and_angle(log(R))


def between(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the smallest rotation that rotates direction `a` onto direction `b`.

    For opposite directions the axis is not unique; one of the axes perpendicular to both is used.

    Args:
        a, b: (..., 3), of any length except zero.

    Returns:
        (..., 3, 3).

    Raises:
        NotARotation: a direction is zero.

    Example:
        >>> mk.spatial.rotation.between([1, 0, 0], [0, 2, 0]) @ [1, 0, 0]
        array([0., 1., 0.])
    """
    a = unit(np.asarray(a, dtype=np.float64), "vector a")
    b = unit(np.asarray(b, dtype=np.float64), "vector b")
    cosine = dot(a, b)
    is_obtuse = cosine < 0.0
    # The closed form divides by 1 + cos. So a rotation by an obtuse angle is composed of the acute rotation from `a` to
    # -b and a rotation by pi about the same line.
    target = np.where(is_obtuse[..., None], -b, b)
    R_acute = _rodrigues_form(cross(a, target), np.ones_like(cosine), 1.0 / (1.0 + np.abs(cosine)))
    if not is_obtuse.any():
        return R_acute
    # a x (a + b) equals a x b, but for nearly opposite directions a + b has no rounding error, so the axis is accurate.
    # An axis shorter than 1e-14 is only a rounding error; then any perpendicular axis is valid.
    axis = cross(a, a + b)
    axis = np.where((length(axis) < 1e-14)[..., None], _perpendicular(b), axis)
    axis = unit(axis, "the axis between directions")
    R_half_turn = 2.0 * axis[..., :, None] * axis[..., None, :] - np.eye(3)
    return np.where(is_obtuse[..., None, None], R_half_turn @ R_acute, R_acute)


def about_x(angle: ArrayLike) -> Array:
    """Return the rotations (..., 3, 3) about x by angles (...), rad."""
    return _elementary_rotation(angle, 1, 2)


def about_y(angle: ArrayLike) -> Array:
    """Return the rotations (..., 3, 3) about y by angles (...), rad."""
    return _elementary_rotation(angle, 2, 0)


def about_z(angle: ArrayLike) -> Array:
    """Return the rotations (..., 3, 3) about z by angles (...), rad.

    Example:
        >>> (mk.spatial.rotation.about_z(np.pi / 2) @ [1, 0, 0]).round(6)
        array([0., 1., 0.])
    """
    return _elementary_rotation(angle, 0, 1)


def nearest(M: ArrayLike) -> Array:
    """Return the rotations closest to matrices (..., 3, 3) in the Frobenius norm.

    Example:
        >>> np.diag(mk.spatial.rotation.nearest(1.1 * np.eye(3))).round(6)
        array([1., 1., 1.])
    """
    U, _, Vt = np.linalg.svd(np.asarray(M, dtype=np.float64))
    # If U Vt is a reflection, the direction of the smallest singular value is reversed, which is the smallest change.
    U[..., :, 2] *= np.where(np.linalg.det(U @ Vt) < 0.0, -1.0, 1.0)[..., None]
    return U @ Vt


def is_rotation(R: ArrayLike, tolerance: float = 1e-9) -> npt.NDArray[np.bool_]:
    """Return whether matrices are rotations, (...): R^T R is the identity within `tolerance`, and det R > 0.

    Args:
        R: (..., 3, 3).
        tolerance: largest error of an entry of R^T R.

    Example:
        >>> bool(mk.spatial.rotation.is_rotation(-np.eye(3)))
        False
    """
    M = np.asarray(R, dtype=np.float64)
    if M.ndim == 2:
        return np.asarray(_is_single_rotation(M.ravel().tolist(), tolerance))
    with np.errstate(invalid="ignore", over="ignore"):
        deviation = np.abs(np.swapaxes(M, -1, -2) @ M - np.eye(3)).max(axis=(-1, -2))
        is_reflection = dot(cross(M[..., 0], M[..., 1]), M[..., 2]) < 0.0
        return np.asarray(deviation <= tolerance) & ~np.asarray(is_reflection)


def _is_single_rotation(entries: list[float], tolerance: float) -> bool:
    """Evaluate `is_rotation` for one matrix with Python floats, which are faster here than arrays; False for NaN."""
    xx, xy, xz, yx, yy, yz, zx, zy, zz = entries
    products = (
        xx * xx + yx * yx + zx * zx - 1.0,
        xy * xy + yy * yy + zy * zy - 1.0,
        xz * xz + yz * yz + zz * zz - 1.0,
        xx * xy + yx * yy + zx * zy,
        xx * xz + yx * yz + zx * zz,
        xy * xz + yy * yz + zy * zz,
    )
    determinant = (yx * zy - zx * yy) * xz + (zx * xy - xx * zy) * yz + (xx * yy - yx * xy) * zz
    return all(abs(product) <= tolerance for product in products) and not determinant < 0.0


def _rodrigues_form(w: Array, linear_coefficient: Array, quadratic_coefficient: Array) -> Array:
    """Return I + linear_coefficient * hat(w) + quadratic_coefficient * hat(w)^2 (Rodrigues' formula), (..., 3, 3)."""
    x, y, z = components(w)
    lx, ly, lz = linear_coefficient * x, linear_coefficient * y, linear_coefficient * z
    qx, qy, qz = quadratic_coefficient * x, quadratic_coefficient * y, quadratic_coefficient * z
    xx, yy, zz = qx * x, qy * y, qz * z
    xy, xz, yz = qx * y, qx * z, qy * z
    out = np.empty((*np.shape(xx), 3, 3))
    out[..., 0, 0] = 1.0 - (yy + zz)
    out[..., 0, 1] = xy - lz
    out[..., 0, 2] = xz + ly
    out[..., 1, 0] = xy + lz
    out[..., 1, 1] = 1.0 - (xx + zz)
    out[..., 1, 2] = yz - lx
    out[..., 2, 0] = xz - ly
    out[..., 2, 1] = yz + lx
    out[..., 2, 2] = 1.0 - (xx + yy)
    return out


def _elementary_rotation(angle: ArrayLike, i: int, j: int) -> Array:
    """Return the rotations (..., 3, 3) by angles (...), rad, from axis `i` towards axis `j`."""
    angle = np.asarray(angle, dtype=np.float64)
    cosine, sine = np.cos(angle), np.sin(angle)
    out = np.zeros((*angle.shape, 3, 3))
    out[..., 3 - i - j, 3 - i - j] = 1.0
    out[..., i, i] = out[..., j, j] = cosine
    out[..., j, i] = sine
    out[..., i, j] = 0.0 - sine  # -sine would be -0 in the identity
    return out


def _perpendicular(v: Array) -> Array:
    """Return vectors (..., 3) perpendicular to unit vectors `v`, with a norm of at least 0.8."""
    smallest_axis = np.argmin(np.abs(v), axis=-1)
    return cross(v, np.eye(3)[smallest_axis])
