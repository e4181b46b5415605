"""Euler angles: three successive rotations about coordinate axes, in all 24 conventions.

`order` lists the axes in the order of the angles. With axes="moving" each rotation is about an axis of the rotated body
(intrinsic), with axes="fixed" about an axis of the outer frame (extrinsic). Roll, pitch and yaw of URDF are
order="xyz", axes="fixed". There is no default, since different communities use different conventions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mechanik.spatial import quaternion, rotation
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.quaternion import _moving_angles, _moving_order

_ELEMENTARY_ROTATIONS = (rotation.about_x, rotation.about_y, rotation.about_z)

# Below this sine or cosine of the middle angle the matrix does not determine the first and third angle separately.
# Treating the rotation as locked then causes at most an error of this size.
_LOCK_TOLERANCE = 1e-13


def matrix_from_euler(angles: ArrayLike, *, order: str, axes: str) -> Array:
    """Convert Euler angles to rotation matrices.

    Args:
        angles: (..., 3), rad, in the order of `order`.
        order: axes, such as "xyz" or "zxz"; one of `quaternion.EULER_ORDERS`.
        axes: "moving" (intrinsic) or "fixed" (extrinsic).

    Returns:
        (..., 3, 3).

    Raises:
        NotARotation: `order` or `axes` is unknown.

    Example:
        >>> mk.spatial.euler.matrix_from_euler([0, 0, np.pi / 2], order="xyz", axes="fixed").round(6)
        array([[ 0., -1.,  0.],
               [ 1.,  0.,  0.],
               [ 0.,  0.,  1.]])
    """
    i, j, k = _moving_order(order, axes)
    angles = _moving_angles(np.asarray(angles, dtype=np.float64), axes)
    return (
        _ELEMENTARY_ROTATIONS[i](angles[..., 0])
        @ _ELEMENTARY_ROTATIONS[j](angles[..., 1])
        @ _ELEMENTARY_ROTATIONS[k](angles[..., 2])
    )


def euler_from_matrix(R: ArrayLike, *, order: str, axes: str, near: ArrayLike | None = None) -> Array:
    """Convert rotation matrices to Euler angles.

    Without `near`, the outer angles are in [-pi, pi] and the middle angle is in [-pi/2, pi/2], or in [0, pi] if the
    first axis is also the third. With `near`, the result is the equivalent triple nearest to `near`. Equivalent triples
    differ by full rotations, or by a flip: pi is added to the outer angles, and the middle angle b becomes pi - b, or
    -b if the first axis is also the third.

    At gimbal lock only a sum or difference of the outer angles is determined. The first of the moving rotations (the
    last of the fixed rotations) then has the angle of `near`, or zero without `near`.

    Args:
        R: (..., 3, 3).
        order, axes: as in `matrix_from_euler`.
        near: (..., 3), rad; preferred angles.

    Returns:
        (..., 3), rad, in the order of `order`.

    Raises:
        NotARotation: `order` or `axes` is unknown.

    Example:
        >>> R = mk.spatial.euler.matrix_from_euler([0.1, 0.2, 0.3], order="xyz", axes="fixed")
        >>> mk.spatial.euler.euler_from_matrix(R, order="xyz", axes="fixed").round(6)
        array([0.1, 0.2, 0.3])
    """
    i, j, third_axis = _moving_order(order, axes)
    k = 3 - i - j  # the axis that is neither first nor second
    M = np.asarray(R, dtype=np.float64)
    parity = 1.0 if (j - i) % 3 == 1 else -1.0  # 1 if the axes i, j, k are right-handed
    is_proper = third_axis == i  # proper Euler angles, such as "zxz"
    if is_proper:
        sine, cosine = M[..., j, i], -parity * M[..., k, i]
    else:
        sine, cosine = -parity * M[..., j, k], M[..., k, k]
    norm = np.hypot(sine, cosine)
    is_locked = norm < _LOCK_TOLERANCE
    first_angle = np.arctan2(sine, cosine)
    if near is None:
        preferred_angles = None
        first_angle = np.where(is_locked, 0.0, first_angle)
    else:
        preferred_angles = _moving_angles(np.asarray(near, dtype=np.float64), axes)
        first_angle = np.where(is_locked, preferred_angles[..., 0], first_angle)

    # The first rotation is removed before the third angle is computed, so that the product of the rotations is accurate
    # even if the first angle is ill-conditioned.
    cosine, sine = np.cos(first_angle)[..., None], (parity * np.sin(first_angle))[..., None]
    row_j = cosine * M[..., j, :] + sine * M[..., k, :]
    out = np.empty((*np.shape(first_angle), 3))
    out[..., 0] = first_angle
    if is_proper:
        out[..., 1] = np.arctan2(norm, M[..., i, i])
        out[..., 2] = np.arctan2(-parity * row_j[..., k], row_j[..., j])
    else:
        out[..., 1] = np.arctan2(parity * M[..., i, k], norm)
        out[..., 2] = np.arctan2(parity * row_j[..., i], row_j[..., j])
    if preferred_angles is not None:
        out = _nearest_equivalent(out, preferred_angles, np.asarray(is_locked), is_proper)
    return _moving_angles(out, axes)


def euler_from_quaternion(wxyz: ArrayLike, *, order: str, axes: str, near: ArrayLike | None = None) -> Array:
    """Convert quaternions to Euler angles.

    Args:
        wxyz: (..., 4), of any norm except zero.
        order, axes, near: as in `euler_from_matrix`.

    Returns:
        (..., 3), rad, in the order of `order`.

    Raises:
        NotARotation: `order` or `axes` is unknown.

    Example:
        >>> wxyz = mk.spatial.quaternion.from_euler([0.1, 0.2, 0.3], order="xyz", axes="fixed")
        >>> mk.spatial.euler.euler_from_quaternion(wxyz, order="xyz", axes="fixed").round(6)
        array([0.1, 0.2, 0.3])
    """
    return euler_from_matrix(quaternion.to_matrix(wxyz), order=order, axes=axes, near=near)


def _nearest_equivalent(
    angles: Array, preferred_angles: Array, is_locked: npt.NDArray[np.bool_], is_proper: bool
) -> Array:
    """Return the triple, flipped or not and with any full rotations, that is nearest to `preferred_angles`."""
    flipped_angles = angles + np.pi
    flipped_angles[..., 1] = -angles[..., 1] if is_proper else np.pi - angles[..., 1]
    angles, flipped_angles = (
        _add_full_rotations(angles, preferred_angles),
        _add_full_rotations(flipped_angles, preferred_angles),
    )
    is_flipped_closer = ((flipped_angles - preferred_angles) ** 2).sum(axis=-1) < (
        (angles - preferred_angles) ** 2
    ).sum(axis=-1)
    return np.where((is_flipped_closer & ~is_locked)[..., None], flipped_angles, angles)


def _add_full_rotations(angles: Array, preferred_angles: Array) -> Array:
    full_rotation = 2.0 * np.pi
    return angles + full_rotation * np.round((preferred_angles - angles) / full_rotation)
