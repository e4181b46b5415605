"""Unit quaternions, (..., 4), in the order w, x, y, z.

q and -q are the same rotation. Where a quaternion is made from something else, w is not
negative; a half turn, which has w = 0, has its first component that is not zero positive.
"""

from __future__ import annotations

import numpy as np

from mechanik.spatial import series
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.vector import cross, dot, length, parts, unit

# A w below this is rounding, and the rotation a half turn: 2e-15 rad is what rounding leaves in a matrix.
_HALF_TURN = 1e-15
_NOT_ROUNDING = 3e-8


def identity() -> Array:
    return np.array([1.0, 0.0, 0.0, 0.0])


def multiply(a: ArrayLike, b: ArrayLike) -> Array:
    """The rotation `b` followed by `a`, as with matrices."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    aw, ax, ay, az = parts(a)
    bw, bx, by, bz = parts(b)
    w = aw * bw - ax * bx - ay * by - az * bz
    out = np.empty((*np.shape(w), 4))
    out[..., 0] = w
    out[..., 1] = aw * bx + ax * bw + ay * bz - az * by
    out[..., 2] = aw * by - ax * bz + ay * bw + az * bx
    out[..., 3] = aw * bz + ax * by - ay * bx + az * bw
    return out


def conjugate(wxyz: ArrayLike) -> Array:
    """The inverse rotation."""
    out = np.array(wxyz, dtype=np.float64)
    np.negative(out[..., 1:], out=out[..., 1:])
    return out


def normalize(wxyz: ArrayLike) -> Array:
    """`wxyz` scaled to length one; what has that length already is returned to the bit."""
    wxyz = np.asarray(wxyz, dtype=np.float64)
    scaled = unit(wxyz, "a quaternion")
    # Normalising again would move the last bit, and a stored rotation has to survive being read back.
    already = np.abs(dot(wxyz, wxyz) - 1.0) < 2e-15
    return np.where(already[..., None], wxyz, scaled)


def canonical(wxyz: ArrayLike) -> Array:
    """The one of q and -q that this module's docstring promises."""
    wxyz = np.asarray(wxyz, dtype=np.float64)
    w = wxyz[..., 0]
    if w.ndim == 0 and abs(w) > _HALF_TURN:
        return wxyz * (1.0 if w > 0.0 else -1.0)
    flip = w < 0.0
    half_turn = np.abs(w) <= _HALF_TURN
    if not half_turn.any():
        return np.where(flip[..., None], -wxyz, wxyz)
    vector = wxyz[..., 1:]
    # A small component may be the rounding of zero and must not decide.
    leading = np.argmax(np.abs(vector) > _NOT_ROUNDING, axis=-1)
    negative = np.take_along_axis(vector, leading[..., None], axis=-1)[..., 0] < 0.0
    flip = np.where(half_turn, negative, flip)
    out = np.where(flip[..., None], -wxyz, wxyz)
    out[..., 0] = np.maximum(out[..., 0], 0.0)
    return out


def rotate(wxyz: ArrayLike, v: ArrayLike) -> Array:
    """The vectors `v`, (..., 3), turned by unit quaternions."""
    wxyz, v = np.asarray(wxyz, dtype=np.float64), np.asarray(v, dtype=np.float64)
    vector = wxyz[..., 1:]
    t = 2.0 * cross(vector, v)
    return v + wxyz[..., :1] * t + cross(vector, t)


def from_matrix(R: ArrayLike) -> Array:
    """(..., 3, 3) to (..., 4), canonical."""
    M = np.asarray(R, dtype=np.float64)
    xx, xy, xz, yx, yy, yz, zx, zy, zz = parts(M.reshape(*M.shape[:-2], 9))
    # 4 q q^T is linear in R. Its rows are all parallel to q; the one with the largest
    # diagonal is at least two long, so it does not cancel at any angle.
    outer = np.empty((*M.shape[:-2], 4, 4))
    outer[..., 0, 0] = 1.0 + xx + yy + zz
    outer[..., 1, 1] = 1.0 + xx - yy - zz
    outer[..., 2, 2] = 1.0 - xx + yy - zz
    outer[..., 3, 3] = 1.0 - xx - yy + zz
    outer[..., 0, 1] = outer[..., 1, 0] = zy - yz
    outer[..., 0, 2] = outer[..., 2, 0] = xz - zx
    outer[..., 0, 3] = outer[..., 3, 0] = yx - xy
    outer[..., 1, 2] = outer[..., 2, 1] = yx + xy
    outer[..., 1, 3] = outer[..., 3, 1] = xz + zx
    outer[..., 2, 3] = outer[..., 3, 2] = zy + yz
    best = np.argmax(np.einsum("...ii->...i", outer), axis=-1)
    row = outer[best] if M.ndim == 2 else np.take_along_axis(outer, best[..., None, None], axis=-2)[..., 0, :]
    return canonical(row / length(row)[..., None])


def to_matrix(wxyz: ArrayLike) -> Array:
    """(..., 4) to (..., 3, 3); the quaternion may have any length but zero."""
    wxyz = np.asarray(wxyz, dtype=np.float64)
    w, x, y, z = parts(wxyz)
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
    """The rotation by |w| radians about `w`, (..., 3); turns beyond pi keep their sign of w."""
    w = np.asarray(w, dtype=np.float64)
    half = 0.5 * length(w)
    out = np.empty((*w.shape[:-1], 4))
    out[..., 0] = np.cos(half)
    out[..., 1:] = (0.5 * series.sine_ratio(half))[..., None] * w
    return out


def log(wxyz: ArrayLike) -> Array:
    """The shortest rotation vector, (..., 3), with |w| <= pi; the same for q and -q."""
    wxyz = canonical(wxyz)
    w, vector = wxyz[..., 0], wxyz[..., 1:]
    sine = length(vector)
    zero = sine == 0.0
    # Without a sine the vector is below 1e-154 and the angle is 2 |vector| / w.
    ratio = np.where(zero, 2.0, 2.0 * np.arctan2(sine, w)) / np.where(zero, w, sine)
    return ratio[..., None] * vector


def from_axis_angle(axis: ArrayLike, angle: ArrayLike) -> Array:
    """`axis` (..., 3) of any length but zero, `angle` (...) in radians; canonical."""
    axis = unit(np.asarray(axis, dtype=np.float64), "a rotation axis")
    half = 0.5 * np.asarray(angle, dtype=np.float64)
    vector = np.sin(half)[..., None] * axis
    out = np.empty((*vector.shape[:-1], 4))
    out[..., 0] = np.cos(half)
    out[..., 1:] = vector
    return canonical(out)


def to_axis_angle(wxyz: ArrayLike) -> tuple[Array, Array]:
    """Unit axis (..., 3) and angle (...) in [0, pi]; no rotation has the x axis."""
    return split(log(wxyz))


def split(w: ArrayLike) -> tuple[Array, Array]:
    """A rotation vector (..., 3) as unit axis and angle; zero has the x axis."""
    w = np.asarray(w, dtype=np.float64)
    zero = (w == 0.0).all(axis=-1)
    axis = unit(np.where(zero[..., None], [1.0, 0.0, 0.0], w), "a rotation vector")
    return axis, dot(axis, w)


def angle_between(a: ArrayLike, b: ArrayLike) -> Array:
    """The angle (...) in [0, pi] of the rotation that leads from unit `a` to unit `b`."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    # Kahan's form: the difference of near quaternions is exact, where arccos of their dot
    # product would lose half the digits.
    apart, together = length(a - b), length(a + b)
    return 4.0 * np.arctan2(np.minimum(apart, together), np.maximum(apart, together))
