"""Rigid motions, SE(3), as (..., 4, 4), and twists, (..., 6), as (linear, angular)."""

from __future__ import annotations

import numpy as np

from mechanik.spatial import rotation, series
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.vector import length, turned


def hat(twist: ArrayLike) -> Array:
    """(..., 6) to the 4x4 matrix whose matrix exponential is `exp(twist)`."""
    twist = np.asarray(twist, dtype=np.float64)
    out = np.zeros((*twist.shape[:-1], 4, 4))
    out[..., :3, :3] = rotation.hat(twist[..., 3:])
    out[..., :3, 3] = twist[..., :3]
    return out


def vee(S: ArrayLike) -> Array:
    """The inverse of `hat`."""
    M = np.asarray(S, dtype=np.float64)
    return _stacked(M[..., :3, 3], rotation.vee(M))


def exp(twist: ArrayLike) -> Array:
    """The motion along `twist` for one unit of time, (..., 4, 4)."""
    twist = np.asarray(twist, dtype=np.float64)
    linear, angular = twist[..., :3], twist[..., 3:]
    out = np.zeros((*twist.shape[:-1], 4, 4))
    out[..., :3, :3] = rotation.exp(angular)
    out[..., :3, 3] = turned(rotation.left_jacobian(angular), linear)
    out[..., 3, 3] = 1.0
    return out


def log(X: ArrayLike) -> Array:
    """The twist of the shortest screw to `X`: its angular part has norm in [0, pi]."""
    M = np.asarray(X, dtype=np.float64)
    angular = rotation.log(M[..., :3, :3])
    return _stacked(turned(rotation.left_jacobian_inverse(angular), M[..., :3, 3]), angular)


def adjoint(X: ArrayLike) -> Array:
    """(..., 6, 6) with adjoint(X) t = vee(X hat(t) X^-1): a twist seen from the frame X leads to."""
    M = np.asarray(X, dtype=np.float64)
    R = M[..., :3, :3]
    return _blocks(R, rotation.hat(M[..., :3, 3]) @ R)


def little_adjoint(twist: ArrayLike) -> Array:
    """(..., 6, 6) with little_adjoint(s) t = vee(hat(s) hat(t) - hat(t) hat(s))."""
    twist = np.asarray(twist, dtype=np.float64)
    return _blocks(rotation.hat(twist[..., 3:]), rotation.hat(twist[..., :3]))


def left_jacobian(twist: ArrayLike) -> Array:
    """J, (..., 6, 6), with exp(t + dt) = exp(J dt) exp(t) to first order."""
    twist = np.asarray(twist, dtype=np.float64)
    return _blocks(rotation.left_jacobian(twist[..., 3:]), _coupling(twist))


def right_jacobian(twist: ArrayLike) -> Array:
    """J, (..., 6, 6), with exp(t + dt) = exp(t) exp(J dt) to first order."""
    return left_jacobian(np.negative(twist))


def left_jacobian_inverse(twist: ArrayLike) -> Array:
    """Singular where the angular part has norm 2 pi, as `left_jacobian` is there."""
    twist = np.asarray(twist, dtype=np.float64)
    inverse = rotation.left_jacobian_inverse(twist[..., 3:])
    return _blocks(inverse, -(inverse @ _coupling(twist) @ inverse))


def right_jacobian_inverse(twist: ArrayLike) -> Array:
    return left_jacobian_inverse(np.negative(twist))


def _coupling(twist: Array) -> Array:
    """What turning contributes to moving: the upper right block of the left Jacobian, (..., 3, 3).

    Barfoot, State Estimation for Robotics (2017), equation 7.86b.
    """
    angle = length(twist[..., 3:])
    V, W = rotation.hat(twist[..., :3]), rotation.hat(twist[..., 3:])
    cubic = series.cubic_rest(angle)[..., None, None]
    quartic = series.quartic_rest(angle)[..., None, None]
    quintic = series.quintic_rest(angle)[..., None, None]
    WV, VW = W @ V, V @ W
    WVW = WV @ W
    return (
        0.5 * V
        + cubic * (WV + VW + WVW)
        + quartic * (W @ WV + VW @ W - 3.0 * WVW)
        + 0.5 * (quartic - 3.0 * quintic) * (WVW @ W + W @ WVW)
    )


def _blocks(diagonal: Array, upper: Array) -> Array:
    """[[diagonal, upper], [0, diagonal]], the shape of every 6x6 matrix here."""
    out = np.zeros((*diagonal.shape[:-2], 6, 6))
    out[..., :3, :3] = diagonal
    out[..., 3:, 3:] = diagonal
    out[..., :3, 3:] = upper
    return out


def _stacked(linear: Array, angular: Array) -> Array:
    out = np.empty((*angular.shape[:-1], 6))
    out[..., :3] = linear
    out[..., 3:] = angular
    return out
