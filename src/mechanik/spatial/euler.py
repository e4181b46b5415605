"""Rotations by three successive turns about coordinate axes, in all 24 conventions.

`order` names the axes in the order of the angles. With axes="moving" each turn is about
an axis of the body as turned so far (intrinsic), with axes="fixed" about an axis of the
frame outside (extrinsic): roll, pitch, yaw as URDF has them are order="xyz", axes="fixed".
There is no default, for every community has another.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from mechanik.errors import NotARotation
from mechanik.spatial import quaternion, rotation
from mechanik.spatial.array import Array, ArrayLike

ORDERS = ("xyz", "xzy", "yxz", "yzx", "zxy", "zyx", "xyx", "xzx", "yxy", "yzy", "zxz", "zyz")
AXES = ("moving", "fixed")

_TURNS = (rotation.turn_x, rotation.turn_y, rotation.turn_z)

# Closer to gimbal lock than this, the first and third angle cannot be told apart in the matrix.
# It is also the largest error that treating the rotation as locked can make.
_LOCKED = 1e-13


def matrix_from_euler(angles: ArrayLike, *, order: str, axes: str) -> Array:
    """Angles (..., 3) in radians, in the order of `order`, to (..., 3, 3)."""
    i, j, k = _moving_order(order, axes)
    angles = _moving_angles(np.asarray(angles, dtype=np.float64), axes)
    return _TURNS[i](angles[..., 0]) @ _TURNS[j](angles[..., 1]) @ _TURNS[k](angles[..., 2])


def quaternion_from_euler(angles: ArrayLike, *, order: str, axes: str) -> Array:
    """Angles (..., 3) in radians, in the order of `order`, to canonical (..., 4), wxyz."""
    sequence = _moving_order(order, axes)
    half = 0.5 * _moving_angles(np.asarray(angles, dtype=np.float64), axes)
    turns = np.zeros((3, *half.shape[:-1], 4))
    for n, axis in enumerate(sequence):
        turns[n, ..., 0] = np.cos(half[..., n])
        turns[n, ..., 1 + axis] = np.sin(half[..., n])
    return quaternion.canonical(quaternion.multiply(quaternion.multiply(turns[0], turns[1]), turns[2]))


def euler_from_matrix(R: ArrayLike, *, order: str, axes: str, near: ArrayLike | None = None) -> Array:
    """(..., 3, 3) to angles (..., 3) in radians, in the order of `order`.

    Without `near`, the outer angles lie in [-pi, pi] and the middle one in [-pi/2, pi/2], or in
    [0, pi] where the first axis comes back as the third. With `near`, (..., 3), it is
    the equivalent triple nearest to that, of both branches and all full turns.

    At gimbal lock only a sum or difference of the outer angles is determined. The first of the
    moving turns (which is the last of the fixed ones) then keeps its angle in `near`, or zero.
    """
    i, j, third = _moving_order(order, axes)
    k = 3 - i - j
    M = np.asarray(R, dtype=np.float64)
    parity = 1.0 if (j - i) % 3 == 1 else -1.0
    proper = third == i
    if proper:
        sine, cosine = M[..., j, i], -parity * M[..., k, i]
    else:
        sine, cosine = -parity * M[..., j, k], M[..., k, k]
    reach = np.hypot(sine, cosine)
    locked = reach < _LOCKED
    first = np.arctan2(sine, cosine)
    if near is None:
        wanted = None
        first = np.where(locked, 0.0, first)
    else:
        wanted = _moving_angles(np.asarray(near, dtype=np.float64), axes)
        first = np.where(locked, wanted[..., 0], first)

    # The first turn is taken off before the third is read, so that the two belong together
    # however badly the first is determined.
    cosine, sine = np.cos(first)[..., None], (parity * np.sin(first))[..., None]
    row_j = cosine * M[..., j, :] + sine * M[..., k, :]
    out = np.empty((*np.shape(first), 3))
    out[..., 0] = first
    if proper:
        out[..., 1] = np.arctan2(reach, M[..., i, i])
        out[..., 2] = np.arctan2(-parity * row_j[..., k], row_j[..., j])
    else:
        out[..., 1] = np.arctan2(parity * M[..., i, k], reach)
        out[..., 2] = np.arctan2(parity * row_j[..., i], row_j[..., j])
    if wanted is not None:
        out = _nearest(out, wanted, np.asarray(locked), proper)
    return _moving_angles(out, axes)


def euler_from_quaternion(wxyz: ArrayLike, *, order: str, axes: str, near: ArrayLike | None = None) -> Array:
    """As `euler_from_matrix`, from (..., 4)."""
    return euler_from_matrix(quaternion.to_matrix(wxyz), order=order, axes=axes, near=near)


def _nearest(angles: Array, wanted: Array, locked: npt.NDArray[np.bool_], proper: bool) -> Array:
    """Of the two triples that mean the same, shifted by full turns, the one nearest to `wanted`."""
    other = angles + np.pi
    other[..., 1] = -angles[..., 1] if proper else np.pi - angles[..., 1]
    one, other = _unwound(angles, wanted), _unwound(other, wanted)
    closer = ((other - wanted) ** 2).sum(axis=-1) < ((one - wanted) ** 2).sum(axis=-1)
    return np.where((closer & ~locked)[..., None], other, one)


def _unwound(angles: Array, wanted: Array) -> Array:
    turn = 2.0 * np.pi
    return angles + turn * np.round((wanted - angles) / turn)


def _moving_angles(angles: Array, axes: str) -> Array:
    """Fixed axes are moving axes read backwards; so this is its own inverse."""
    return angles if axes == "moving" else angles[..., ::-1]


@cache
def _moving_order(order: str, axes: str) -> tuple[int, int, int]:
    if order not in ORDERS:
        raise NotARotation(f"order={order!r} is no sequence of axes; there are: {', '.join(ORDERS)}")
    if axes not in AXES:
        raise NotARotation(f'axes={axes!r} is neither "moving" (intrinsic) nor "fixed" (extrinsic)')
    i, j, k = ("xyz".index(letter) for letter in order)
    return (i, j, k) if axes == "moving" else (k, j, i)
