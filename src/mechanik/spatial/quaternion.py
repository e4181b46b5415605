"""Unit quaternions, (..., 4), in the order w, x, y, z.

q and -q are the same rotation. Canonical quaternions have w >= 0; at w = 0, a rotation by pi, the first nonzero
component is positive.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from mechanik.errors import NotARotation
from mechanik.spatial import series
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.vector_math import components, cross, dot, length, unit

# A smaller |w| is a rounding error, and the angle counts as pi: the rounding error of the angle of a matrix is about
# 2e-15 rad, twice this tolerance.
_HALF_TURN_TOLERANCE = 1e-15
# A smaller component of the axis of a rotation by pi counts as zero.
_ZERO_COMPONENT = 3e-8


def identity() -> Array:
    """Return the identity quaternion, (4,)."""
    return np.array([1.0, 0.0, 0.0, 0.0])


def multiply(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the product a b, (..., 4): the rotation `b` followed by the rotation `a`, as for matrices.

    Example:
        >>> mk.spatial.quaternion.multiply([0, 1, 0, 0], [0, 0, 1, 0])
        array([0., 0., 0., 1.])
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    aw, ax, ay, az = components(a)
    bw, bx, by, bz = components(b)
    w = aw * bw - ax * bx - ay * by - az * bz
    out = np.empty((*np.shape(w), 4))
    out[..., 0] = w
    out[..., 1] = aw * bx + ax * bw + ay * bz - az * by
    out[..., 2] = aw * by - ax * bz + ay * bw + az * bx
    out[..., 3] = aw * bz + ax * by - ay * bx + az * bw
    return out


def conjugate(wxyz: ArrayLike) -> Array:
    """Return the inverse rotation of unit quaternions, (..., 4).

    Example:
        >>> mk.spatial.quaternion.conjugate([0.6, 0.8, 0, 0])
        array([ 0.6, -0.8, -0. , -0. ])
    """
    out = np.array(wxyz, dtype=np.float64)
    np.negative(out[..., 1:], out=out[..., 1:])
    return out


UNIT_TOLERANCE = 2e-15
"""Deviation of the squared norm of a unit quaternion from 1 by rounding. Normalizing a unit quaternion could change its
last bit, but saving and loading, or a solve that does not move a joint, must not change its rotation."""


def normalize(wxyz: ArrayLike) -> Array:
    """Scale quaternions (..., 4) to unit norm; unit quaternions are returned unchanged.

    Raises:
        NotARotation: a quaternion is zero.

    Example:
        >>> mk.spatial.quaternion.normalize([3, 4, 0, 0])
        array([0.6, 0.8, 0. , 0. ])
    """
    wxyz = np.asarray(wxyz, dtype=np.float64)
    scaled_quaternion = unit(wxyz, "a quaternion")
    is_unit = np.abs(dot(wxyz, wxyz) - 1.0) < UNIT_TOLERANCE
    return np.where(is_unit[..., None], wxyz, scaled_quaternion)


def canonical(wxyz: ArrayLike) -> Array:
    """Return q or -q, (..., 4), whichever is canonical: w >= 0; at w = 0 the first nonzero component is positive.

    Example:
        >>> mk.spatial.quaternion.canonical([-0.6, -0.8, 0, 0]) + 0.0
        array([0.6, 0.8, 0. , 0. ])
    """
    wxyz = np.asarray(wxyz, dtype=np.float64)
    w = wxyz[..., 0]
    if w.ndim == 0 and abs(w) > _HALF_TURN_TOLERANCE:
        return wxyz * (1.0 if w > 0.0 else -1.0)
    must_flip = w < 0.0
    is_half_turn = np.abs(w) <= _HALF_TURN_TOLERANCE
    if not is_half_turn.any():
        return np.where(must_flip[..., None], -wxyz, wxyz)
    vector = wxyz[..., 1:]
    # A small component may be a rounding error and must not determine the sign.
    first_nonzero_index = np.argmax(np.abs(vector) > _ZERO_COMPONENT, axis=-1)
    is_negative = np.take_along_axis(vector, first_nonzero_index[..., None], axis=-1)[..., 0] < 0.0
    must_flip = np.where(is_half_turn, is_negative, must_flip)
    out = np.where(must_flip[..., None], -wxyz, wxyz)
    out[..., 0] = np.maximum(out[..., 0], 0.0)
    return out


def rotate(wxyz: ArrayLike, v: ArrayLike) -> Array:
    """Rotate vectors `v`, (..., 3), by unit quaternions, (..., 4).

    Example:
        >>> mk.spatial.quaternion.rotate([0, 0, 0, 1], [1, 2, 3])
        array([-1., -2.,  3.])
    """
    wxyz, v = np.asarray(wxyz, dtype=np.float64), np.asarray(v, dtype=np.float64)
    vector = wxyz[..., 1:]
    twice_cross = 2.0 * cross(vector, v)
    return v + wxyz[..., :1] * twice_cross + cross(vector, twice_cross)


def from_matrix(R: ArrayLike) -> Array:
    """Convert rotation matrices (..., 3, 3) to canonical unit quaternions (..., 4).

    Example:
        >>> mk.spatial.quaternion.from_matrix(np.diag([1, -1, -1]))
        array([0., 1., 0., 0.])
    """
    M = np.asarray(R, dtype=np.float64)
    xx, xy, xz, yx, yy, yz, zx, zy, zz = components(M.reshape(*M.shape[:-2], 9))
    # 4 q q^T is linear in R. All its rows are parallel to q. The row with the largest diagonal entry has a norm of at
    # least two, so it is accurate at any angle.
    outer_product = np.empty((*M.shape[:-2], 4, 4))
    outer_product[..., 0, 0] = 1.0 + xx + yy + zz
    outer_product[..., 1, 1] = 1.0 + xx - yy - zz
    outer_product[..., 2, 2] = 1.0 - xx + yy - zz
    outer_product[..., 3, 3] = 1.0 - xx - yy + zz
    outer_product[..., 0, 1] = outer_product[..., 1, 0] = zy - yz
    outer_product[..., 0, 2] = outer_product[..., 2, 0] = xz - zx
    outer_product[..., 0, 3] = outer_product[..., 3, 0] = yx - xy
    outer_product[..., 1, 2] = outer_product[..., 2, 1] = yx + xy
    outer_product[..., 1, 3] = outer_product[..., 3, 1] = xz + zx
    outer_product[..., 2, 3] = outer_product[..., 3, 2] = zy + yz
    largest_row = np.argmax(np.einsum("...ii->...i", outer_product), axis=-1)
    row = (
        outer_product[largest_row]
        if M.ndim == 2
        else np.take_along_axis(outer_product, largest_row[..., None, None], axis=-2)[..., 0, :]
    )
    return canonical(row / length(row)[..., None])


def to_matrix(wxyz: ArrayLike) -> Array:
    """Convert quaternions (..., 4), of any norm except zero, to rotation matrices (..., 3, 3).

    Example:
        >>> np.diag(mk.spatial.quaternion.to_matrix([0, 1, 0, 0]))
        array([ 1., -1., -1.])
    """
    wxyz = np.asarray(wxyz, dtype=np.float64)
    w, x, y, z = components(wxyz)
    s = 2.0 / (w * w + x * x + y * y + z * z)
    sx, sy, sz = s * x, s * y, s * z
    xx, yy, zz = sx * x, sy * y, sz * z
    xy, xz, yz = sx * y, sx * z, sy * z
    wx, wy, wz = sx * w, sy * w, sz * w
    out = np.empty((*wxyz.shape[:-1], 3, 3))
    out[..., 0, 0] = 1.0 - (yy + zz)
    out[..., 0, 1] = xy - wz
    out[..., 0, 2] = xz + wy
    out[..., 1, 0] = xy + wz
    out[..., 1, 1] = 1.0 - (xx + zz)
    out[..., 1, 2] = yz - wx
    out[..., 2, 0] = xz - wy
    out[..., 2, 1] = yz + wx
    out[..., 2, 2] = 1.0 - (xx + yy)
    return out


def exp(w: ArrayLike) -> Array:
    """Convert rotation vectors (..., 3), rad, to unit quaternions (..., 4); for angles above pi, w can be negative.

    Example:
        >>> mk.spatial.quaternion.exp([np.pi, 0, 0]).round(6)
        array([0., 1., 0., 0.])
    """
    w = np.asarray(w, dtype=np.float64)
    half_angle = 0.5 * length(w)
    out = np.empty((*w.shape[:-1], 4))
    out[..., 0] = np.cos(half_angle)
    out[..., 1:] = (0.5 * series.sine_ratio(half_angle))[..., None] * w
    return out


def log(wxyz: ArrayLike) -> Array:
    """Convert unit quaternions (..., 4) to the shortest rotation vectors (..., 3), rad, of norm at most pi.

    The result is the same for q and -q.

    Example:
        >>> mk.spatial.quaternion.log([0, 1, 0, 0]).round(4)
        array([3.1416, 0.    , 0.    ])
    """
    wxyz = canonical(wxyz)
    w, vector = wxyz[..., 0], wxyz[..., 1:]
    sine = length(vector)
    is_zero = sine == 0.0
    # If the sine underflows, the vector is shorter than 1e-154 and the angle is 2 |vector| / w.
    ratio = np.where(is_zero, 2.0, 2.0 * np.arctan2(sine, w)) / np.where(is_zero, w, sine)
    return ratio[..., None] * vector


def from_axis_angle(axis: ArrayLike, angle: ArrayLike) -> Array:
    """Convert axes (..., 3), of any length except zero, and angles (...), rad, to canonical quaternions (..., 4).

    Raises:
        NotARotation: an axis is zero.

    Example:
        >>> mk.spatial.quaternion.from_axis_angle([0, 0, 2], np.pi / 2).round(4)
        array([0.7071, 0.    , 0.    , 0.7071])
    """
    axis = unit(np.asarray(axis, dtype=np.float64), "a rotation axis")
    half_angle = 0.5 * np.asarray(angle, dtype=np.float64)
    vector = np.sin(half_angle)[..., None] * axis
    out = np.empty((*vector.shape[:-1], 4))
    out[..., 0] = np.cos(half_angle)
    out[..., 1:] = vector
    return canonical(out)


def to_axis_angle(wxyz: ArrayLike) -> tuple[Array, Array]:
    """Convert unit quaternions (..., 4) to unit axes (..., 3) and angles (...) in [0, pi], rad.

    The identity has axis x.

    Example:
        >>> axis, angle = mk.spatial.quaternion.to_axis_angle([0, 0, 0, 1])
        >>> axis, round(float(angle), 4)
        (array([0., 0., 1.]), 3.1416)
    """
    return axis_and_angle(log(wxyz))


def axis_and_angle(w: ArrayLike) -> tuple[Array, Array]:
    """Split rotation vectors (..., 3) into unit axes (..., 3) and angles (...), rad; the axis of zero is x."""
    w = np.asarray(w, dtype=np.float64)
    is_zero = (w == 0.0).all(axis=-1)
    axis = unit(np.where(is_zero[..., None], [1.0, 0.0, 0.0], w), "a rotation vector")
    return axis, dot(axis, w)


def angle_between(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the angle (...) in [0, pi], rad, of the rotation from unit quaternion `a` to `b`.

    Example:
        >>> round(float(mk.spatial.quaternion.angle_between([1, 0, 0, 0], [0, 1, 0, 0])), 4)
        3.1416
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    # Kahan's formula: the difference of nearly equal quaternions is exact, while arccos of their
    # dot product loses half of the digits.
    difference_norm, sum_norm = length(a - b), length(a + b)
    return 4.0 * np.arctan2(np.minimum(difference_norm, sum_norm), np.maximum(difference_norm, sum_norm))


EULER_ORDERS = ("xyz", "xzy", "yxz", "yzx", "zxy", "zyx", "xyx", "xzx", "yxy", "yzy", "zxz", "zyz")
EULER_AXES = ("moving", "fixed")


def from_euler(angles: ArrayLike, *, order: str, axes: str) -> Array:
    """Convert Euler angles to canonical unit quaternions.

    Args:
        angles: (..., 3), rad, in the order of `order`.
        order, axes: as in `euler.matrix_from_euler`.

    Returns:
        (..., 4), wxyz.

    Raises:
        NotARotation: `order` or `axes` is unknown.

    Example:
        >>> mk.spatial.quaternion.from_euler([np.pi, 0, 0], order="xyz", axes="fixed").round(6)
        array([0., 1., 0., 0.])
    """
    sequence = _moving_order(order, axes)
    half_angles = 0.5 * _moving_angles(np.asarray(angles, dtype=np.float64), axes)
    rotations = np.zeros((3, *half_angles.shape[:-1], 4))
    for n, axis in enumerate(sequence):
        rotations[n, ..., 0] = np.cos(half_angles[..., n])
        rotations[n, ..., 1 + axis] = np.sin(half_angles[..., n])
    return canonical(multiply(multiply(rotations[0], rotations[1]), rotations[2]))


def from_rpy(rpy: ArrayLike) -> Array:
    """Convert roll, pitch and yaw, as in URDF files, to canonical unit quaternions.

    Args:
        rpy: (..., 3), rad, rotations about the fixed axes x, y and z, in this order.

    Returns:
        (..., 4), wxyz.

    Example:
        >>> mk.spatial.quaternion.from_rpy([np.pi, 0, 0]).round(6)
        array([0., 1., 0., 0.])
    """
    return from_euler(rpy, order="xyz", axes="fixed")


def _moving_angles(angles: Array, axes: str) -> Array:
    """Convert angles about fixed axes to angles about moving axes, and back: the order is reversed."""
    return angles if axes == "moving" else angles[..., ::-1]


@cache
def _moving_order(order: str, axes: str) -> tuple[int, int, int]:
    """Return the axis indices of Euler angles in the order of rotations about moving axes."""
    if order not in EULER_ORDERS:
        raise NotARotation(f"order={order!r} is not a sequence of axes; choose one of {', '.join(EULER_ORDERS)}")
    if axes not in EULER_AXES:
        raise NotARotation(f'axes={axes!r} is neither "moving" (intrinsic) nor "fixed" (extrinsic)')
    i, j, k = ("xyz".index(letter) for letter in order)
    return (i, j, k) if axes == "moving" else (k, j, i)
