"""Norms, unit vectors and products of vectors along the last axis.

For a single vector `np.cross` and `np.linalg.norm` take several times as long as the functions of this module.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mechanik.errors import NotARotation
from mechanik.spatial.array import Array


def components(v: Array) -> list[Any]:
    """Return the components along the last axis, (...) each; Python floats for a single vector."""
    # Arithmetic with Python floats is several times faster than with arrays of zero dimensions.
    return v.tolist() if v.ndim == 1 else [v[..., i] for i in range(v.shape[-1])]


def dot(a: Array, b: Array) -> Array:
    """Return the dot products (...) of vectors (..., n)."""
    return np.einsum("...i,...i->...", a, b)


def length(v: Array) -> Array:
    """Return the norms (...) of vectors (..., n)."""
    return np.sqrt(np.einsum("...i,...i->...", v, v))


def cross(a: Array, b: Array) -> Array:
    """Return the cross products (..., 3) of vectors (..., 3)."""
    ax, ay, az = components(a)
    bx, by, bz = components(b)
    x = ay * bz - az * by
    out = np.empty((*np.shape(x), 3))
    out[..., 0] = x
    out[..., 1] = az * bx - ax * bz
    out[..., 2] = ax * by - ay * bx
    return out


def rotate_vector(R: Array, v: Array) -> Array:
    """Return R v, (..., 3), for matrices (..., 3, 3) and vectors (..., 3)."""
    if R.ndim == 2:
        return v @ R.T
    return np.einsum("...ij,...j->...i", R, v)


def has_positive_determinant(M: Array) -> npt.NDArray[np.bool_]:
    """Return the mask (...) of the matrices (..., n, n) with a determinant above zero.

    NumPy computes determinants by logarithms, and would warn where a pivot of a singular matrix is zero.
    """
    with np.errstate(divide="ignore"):
        sign, log_determinant = np.linalg.slogdet(M)
    return np.asarray((sign > 0.0) & (log_determinant > -np.inf))


def unit(v: Array, label: str) -> Array:
    """Scale vectors to unit length; raises `NotARotation` for a zero vector, with `label` as the subject."""
    # Division by the largest component prevents underflow and overflow of squares, such as those of 1e-200 and 1e200.
    largest_component = np.abs(v).max(axis=-1, keepdims=True)
    if (largest_component == 0.0).any():
        raise NotARotation(f"{label} is zero, so it has no direction")
    scaled_vector = v / largest_component
    return scaled_vector / length(scaled_vector)[..., None]
