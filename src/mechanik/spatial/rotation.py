"""Rotation matrices, SO(3), as (..., 3, 3), and rotation vectors, (..., 3), in radians."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mechanik.spatial import quaternion, series
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.vector import cross, dot, length, parts, unit


def hat(v: ArrayLike) -> Array:
    """(..., 3) to the skew matrix (..., 3, 3) with hat(v) u = v x u."""
    v = np.asarray(v, dtype=np.float64)
    x, y, z = parts(v)
    out = np.zeros((*v.shape[:-1], 3, 3))
    out[..., 0, 1] = -z
    out[..., 0, 2] = y
    out[..., 1, 0] = z
    out[..., 1, 2] = -x
    out[..., 2, 0] = -y
    out[..., 2, 1] = x
    return out


def vee(S: ArrayLike) -> Array:
    """The inverse of `hat`; reads the lower left and upper right entries only."""
    M = np.asarray(S, dtype=np.float64)
    out = np.empty((*M.shape[:-2], 3))
    out[..., 0] = M[..., 2, 1]
    out[..., 1] = M[..., 0, 2]
    out[..., 2] = M[..., 1, 0]
    return out


def exp(w: ArrayLike) -> Array:
    """The rotation by |w| radians about `w`."""
    w = np.asarray(w, dtype=np.float64)
    angle = length(w)
    return _quadratic(w, series.sine_ratio(angle), series.cosine_ratio(angle))


def log(R: ArrayLike) -> Array:
    """The rotation vector with |w| in [0, pi]; at pi its first component that is not zero is positive."""
    # By way of the quaternion, which is as well conditioned at pi as at zero.
    return quaternion.log(quaternion.from_matrix(R))


def left_jacobian(w: ArrayLike) -> Array:
    """J with exp(w + dw) = exp(J dw) exp(w) to first order."""
    w = np.asarray(w, dtype=np.float64)
    angle = length(w)
    return _quadratic(w, series.cosine_ratio(angle), series.cubic_rest(angle))


def right_jacobian(w: ArrayLike) -> Array:
    """J with exp(w + dw) = exp(w) exp(J dw) to first order."""
    return left_jacobian(np.negative(w))


def left_jacobian_inverse(w: ArrayLike) -> Array:
    """Singular at |w| = 2 pi, where `left_jacobian` is."""
    w = np.asarray(w, dtype=np.float64)
    angle = length(w)
    return _quadratic(w, np.full_like(angle, -0.5), series.cotangent_rest(angle))


def right_jacobian_inverse(w: ArrayLike) -> Array:
    return left_jacobian_inverse(np.negative(w))


def from_axis_angle(axis: ArrayLike, angle: ArrayLike) -> Array:
    """`axis` (..., 3) of any length but zero, `angle` (...) in radians."""
    axis = unit(np.asarray(axis, dtype=np.float64), "a rotation axis")
    angle = np.asarray(angle, dtype=np.float64)
    half = np.sin(0.5 * angle)
    return _quadratic(axis, np.sin(angle), 2.0 * half * half)


def to_axis_angle(R: ArrayLike) -> tuple[Array, Array]:
    """Unit axis (..., 3) and angle (...) in [0, pi]; no rotation has the x axis."""
    return quaternion.split(log(R))


def between(a: ArrayLike, b: ArrayLike) -> Array:
    """The smallest rotation that turns the direction `a` onto `b`, (..., 3) of any length but zero.

    For opposite directions every half turn about a perpendicular axis is smallest; one is chosen.
    """
    a = unit(np.asarray(a, dtype=np.float64), "the direction turned")
    b = unit(np.asarray(b, dtype=np.float64), "the direction turned onto")
    cosine = dot(a, b)
    obtuse = cosine < 0.0
    # The closed form divides by 1 + cos. An obtuse angle is therefore made of the acute one
    # from `a` to -b, and of a half turn about the same axis.
    target = np.where(obtuse[..., None], -b, b)
    acute = _quadratic(cross(a, target), np.ones_like(cosine), 1.0 / (1.0 + np.abs(cosine)))
    if not obtuse.any():
        return acute
    # a x (a + b) is a x b; but of near-opposite directions the sum is exact, so the axis is
    # perpendicular to both to the last digit. Below 1e-14 it is rounding, and any one will do.
    axis = cross(a, a + b)
    axis = np.where((length(axis) < 1e-14)[..., None], _perpendicular(b), axis)
    axis = unit(axis, "the axis between directions")
    half_turn = 2.0 * axis[..., :, None] * axis[..., None, :] - np.eye(3)
    return np.where(obtuse[..., None, None], half_turn @ acute, acute)


def turn_x(angle: ArrayLike) -> Array:
    return _turn(angle, 1, 2)


def turn_y(angle: ArrayLike) -> Array:
    return _turn(angle, 2, 0)


def turn_z(angle: ArrayLike) -> Array:
    return _turn(angle, 0, 1)


def nearest(M: ArrayLike) -> Array:
    """The rotation closest to `M` in the sum of squared differences."""
    U, _, Vt = np.linalg.svd(np.asarray(M, dtype=np.float64))
    # A reflection is made a rotation at the least cost: along the smallest singular value.
    U[..., :, 2] *= np.where(np.linalg.det(U @ Vt) < 0.0, -1.0, 1.0)[..., None]
    return U @ Vt


def is_rotation(R: ArrayLike, tolerance: float = 1e-9) -> npt.NDArray[np.bool_]:
    """Whether no entry of R^T R is off by more than `tolerance`, and R does not mirror; (...)."""
    M = np.asarray(R, dtype=np.float64)
    if M.ndim == 2:
        return np.asarray(_is_one_rotation(M.ravel().tolist(), tolerance))
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(np.swapaxes(M, -1, -2) @ M - np.eye(3)).max(axis=(-1, -2))
        mirrored = dot(cross(M[..., 0], M[..., 1]), M[..., 2]) < 0.0
        return np.asarray(off <= tolerance) & ~np.asarray(mirrored)


def _is_one_rotation(entries: list[float], tolerance: float) -> bool:
    """`is_rotation` in plain floats, which cost far less for one matrix; what is not finite is within no tolerance."""
    xx, xy, xz, yx, yy, yz, zx, zy, zz = entries
    products = (
        xx * xx + yx * yx + zx * zx - 1.0,
        xy * xy + yy * yy + zy * zy - 1.0,
        xz * xz + yz * yz + zz * zz - 1.0,
        xx * xy + yx * yy + zx * zy,
        xx * xz + yx * yz + zx * zz,
        xy * xz + yy * yz + zy * zz,
    )
    volume = (yx * zy - zx * yy) * xz + (zx * xy - xx * zy) * yz + (xx * yy - yx * xy) * zz
    return all(abs(one) <= tolerance for one in products) and not volume < 0.0


def _quadratic(w: Array, first: Array, second: Array) -> Array:
    """1 + first * hat(w) + second * hat(w)^2, of which all of SO(3) is made."""
    x, y, z = parts(w)
    fx, fy, fz = first * x, first * y, first * z
    sx, sy, sz = second * x, second * y, second * z
    xx, yy, zz = sx * x, sy * y, sz * z
    xy, xz, yz = sx * y, sx * z, sy * z
    out = np.empty((*np.shape(xx), 3, 3))
    out[..., 0, 0] = 1.0 - (yy + zz)
    out[..., 0, 1] = xy - fz
    out[..., 0, 2] = xz + fy
    out[..., 1, 0] = xy + fz
    out[..., 1, 1] = 1.0 - (xx + zz)
    out[..., 1, 2] = yz - fx
    out[..., 2, 0] = xz - fy
    out[..., 2, 1] = yz + fx
    out[..., 2, 2] = 1.0 - (xx + yy)
    return out


def _turn(angle: ArrayLike, i: int, j: int) -> Array:
    """The rotation that turns axis `i` towards axis `j`."""
    angle = np.asarray(angle, dtype=np.float64)
    cosine, sine = np.cos(angle), np.sin(angle)
    out = np.zeros((*angle.shape, 3, 3))
    out[..., 3 - i - j, 3 - i - j] = 1.0
    out[..., i, i] = out[..., j, j] = cosine
    out[..., j, i] = sine
    out[..., i, j] = 0.0 - sine  # a plain minus would print an identity with -0
    return out


def _perpendicular(v: Array) -> Array:
    """Some vector at right angles to `v`, (..., 3), and not short."""
    smallest = np.argmin(np.abs(v), axis=-1)
    return cross(v, np.eye(3)[smallest])
