"""Exponential and logarithm, adjoints and Jacobians of rigid motions, SE(3), (..., 4, 4), and twists, (..., 6).

Twists are (linear, angular).
"""

from __future__ import annotations

import numpy as np

from mechanik.spatial import rotation, series
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.vector_math import length, rotate_vector


def hat(twist: ArrayLike) -> Array:
    """Convert twists (..., 6) to the matrices (..., 4, 4) whose matrix exponential is `exp(twist)`.

    Example:
        >>> mk.spatial.twist.hat([1, 2, 3, 0, 0, 0])[:3, 3]
        array([1., 2., 3.])
    """
    twist = np.asarray(twist, dtype=np.float64)
    out = np.zeros((*twist.shape[:-1], 4, 4))
    out[..., :3, :3] = rotation.hat(twist[..., 3:])
    out[..., :3, 3] = twist[..., :3]
    return out


def vee(S: ArrayLike) -> Array:
    """Convert matrices (..., 4, 4) to twists (..., 6), the inverse of `hat`.

    Example:
        >>> mk.spatial.twist.vee(mk.spatial.twist.hat([1, 2, 3, 4, 5, 6]))
        array([1., 2., 3., 4., 5., 6.])
    """
    M = np.asarray(S, dtype=np.float64)
    return _stack_twist(M[..., :3, 3], rotation.vee(M))


def exp(twist: ArrayLike) -> Array:
    """Return the motions (..., 4, 4) with constant twists (..., 6) during a unit of time.

    Example:
        >>> mk.spatial.twist.exp([1, 2, 3, 0, 0, 0])[:3, 3]
        array([1., 2., 3.])
    """
    twist = np.asarray(twist, dtype=np.float64)
    linear, angular = twist[..., :3], twist[..., 3:]
    out = np.zeros((*twist.shape[:-1], 4, 4))
    out[..., :3, :3] = rotation.exp(angular)
    out[..., :3, 3] = rotate_vector(rotation.left_jacobian(angular), linear)
    out[..., 3, 3] = 1.0
    return out


def log(X: ArrayLike) -> Array:
    """Return the twists (..., 6) of the shortest screw motions from the identity to poses `X`, (..., 4, 4).

    The norm of the angular part is in [0, pi].

    Example:
        >>> mk.spatial.twist.log(mk.spatial.twist.exp([1, 2, 3, 0.1, 0.2, 0.3])).round(6)
        array([1. , 2. , 3. , 0.1, 0.2, 0.3])
    """
    M = np.asarray(X, dtype=np.float64)
    angular = rotation.log(M[..., :3, :3])
    return _stack_twist(rotate_vector(rotation.left_jacobian_inverse(angular), M[..., :3, 3]), angular)


def adjoint(X: ArrayLike) -> Array:
    """Return the adjoint matrices (..., 6, 6) of poses: adjoint(X_a_b) maps twists in frame b to twists in frame a.

    adjoint(X) t = vee(X hat(t) X^-1).

    Example:
        >>> mk.spatial.twist.adjoint(mk.spatial.translation([1, 0, 0])) @ [0, 0, 0, 0, 0, 1]
        array([ 0., -1.,  0.,  0.,  0.,  1.])
    """
    M = np.asarray(X, dtype=np.float64)
    R = M[..., :3, :3]
    return _block_triangular(R, rotation.hat(M[..., :3, 3]) @ R)


def little_adjoint(twist: ArrayLike) -> Array:
    """Return the Lie bracket matrices (..., 6, 6): little_adjoint(s) t = vee(hat(s) hat(t) - hat(t) hat(s)).

    Example:
        >>> mk.spatial.twist.little_adjoint([0, 0, 0, 0, 0, 1]) @ [1, 0, 0, 0, 0, 0]
        array([0., 1., 0., 0., 0., 0.])
    """
    twist = np.asarray(twist, dtype=np.float64)
    return _block_triangular(rotation.hat(twist[..., 3:]), rotation.hat(twist[..., :3]))


def left_jacobian(twist: ArrayLike) -> Array:
    """Return J, (..., 6, 6), with exp(t + dt) = exp(J dt) exp(t) to first order.

    Example:
        >>> mk.spatial.twist.left_jacobian([1, 2, 3, 0.1, 0.2, 0.3]).shape
        (6, 6)
    """
    twist = np.asarray(twist, dtype=np.float64)
    return _block_triangular(rotation.left_jacobian(twist[..., 3:]), _upper_right_block(twist))


def right_jacobian(twist: ArrayLike) -> Array:
    """Return J, (..., 6, 6), with exp(t + dt) = exp(t) exp(J dt) to first order."""
    return left_jacobian(np.negative(twist))


def left_jacobian_inverse(twist: ArrayLike) -> Array:
    """Return the inverse of `left_jacobian`, (..., 6, 6); undefined at angular norms 2 pi, 4 pi, ..."""
    twist = np.asarray(twist, dtype=np.float64)
    inverse = rotation.left_jacobian_inverse(twist[..., 3:])
    return _block_triangular(inverse, -(inverse @ _upper_right_block(twist) @ inverse))


def right_jacobian_inverse(twist: ArrayLike) -> Array:
    """Return the inverse of `right_jacobian`, (..., 6, 6); undefined at angular norms 2 pi, 4 pi, ..."""
    return left_jacobian_inverse(np.negative(twist))


def _upper_right_block(twist: Array) -> Array:
    """Return the upper right block of the left Jacobian, (..., 3, 3).

    T. Barfoot, State Estimation for Robotics (2017), equation 7.86b.
    """
    angle = length(twist[..., 3:])
    V, W = rotation.hat(twist[..., :3]), rotation.hat(twist[..., 3:])
    cubic = series.cubic_remainder(angle)[..., None, None]
    quartic = series.quartic_remainder(angle)[..., None, None]
    quintic = series.quintic_remainder(angle)[..., None, None]
    WV, VW = W @ V, V @ W
    WVW = WV @ W
    return (
        0.5 * V
        + cubic * (WV + VW + WVW)
        + quartic * (W @ WV + VW @ W - 3.0 * WVW)
        + 0.5 * (quartic - 3.0 * quintic) * (WVW @ W + W @ WVW)
    )


def _block_triangular(diagonal: Array, upper: Array) -> Array:
    """Return [[diagonal, upper], [0, diagonal]], the structure of every 6x6 matrix of this module."""
    out = np.zeros((*diagonal.shape[:-2], 6, 6))
    out[..., :3, :3] = diagonal
    out[..., 3:, 3:] = diagonal
    out[..., :3, 3:] = upper
    return out


def _stack_twist(linear: Array, angular: Array) -> Array:
    out = np.empty((*angular.shape[:-1], 6))
    out[..., :3] = linear
    out[..., 3:] = angular
    return out
