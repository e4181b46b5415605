"""Validation of user input: conversion of numbers, vectors, poses, axes and limits to checked arrays.

Every function raises an error that names its argument.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from mechanik.errors import DoFError, NotFinite, ShapeError, StructureError
from mechanik.spatial import Pose, as_pose_matrix, quaternion, rotation, translation
from mechanik.spatial.array import Array, ArrayLike


def as_vector(values: ArrayLike, size: int, what: str) -> Array:
    """Convert to a finite float64 vector of length `size`, copied.

    Raises:
        ShapeError: it is not `size` numbers.
        NotFinite: a number is not finite.
    """
    try:
        vector = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{what} takes {size} numbers, not {values!r}") from None
    if vector.shape != (size,):
        raise ShapeError(f"{what} takes {size} numbers, not an array of shape {vector.shape}")
    if not np.isfinite(vector).all():
        raise NotFinite(f"{what} is {vector.tolist()}; every number must be finite")
    return vector


def as_number(value: object, what: str, allow_infinite: bool = False) -> float:
    """Convert to a float; infinities are allowed only with `allow_infinite`.

    Raises:
        ShapeError: it is not a number.
        NotFinite: it is NaN or infinite.
    """
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ShapeError(f"{what} must be a number, not {value!r}") from None
    if math.isnan(number) or (math.isinf(number) and not allow_infinite):
        raise NotFinite(f"{what} is {number}")
    return number


def as_numbers(values: tuple[ArrayLike, ...], size: int, what: str, allow_infinite: bool = False) -> list[float]:
    """Convert `1, 2`, `[1, 2]` or a single number to a list of `size` floats.

    Raises:
        ShapeError: it is not `size` numbers.
        NotFinite: a number is NaN, or infinite without `allow_infinite`.
    """
    try:
        vector = np.array(values[0] if len(values) == 1 else values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{what} must be numbers, not {values!r}") from None
    if vector.ndim > 1 or vector.size != size:
        raise ShapeError(f"{what}: {vector.size} values for {format_count(size, 'dof')}")
    return [as_number(value, what, allow_infinite) for value in vector.reshape(-1)]


def read_only(array: Array) -> Array:
    """Make an array read-only, in place, and return it."""
    array.flags.writeable = False
    return array


def format_count(number: int, what: str) -> str:
    """Format a count with its noun: 1 link, 2 links."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


AxisLike = Literal["x", "y", "z", "-x", "-y", "-z"] | ArrayLike


def as_point_or_pose(at: ArrayLike | Pose | None, what: str) -> Array:
    """Convert a point (3,) or a pose to a pose matrix (4, 4); None is the identity.

    Raises:
        ShapeError: it is neither a point nor a pose.
        NotFinite: a number is not finite.
        NotARotation: the rotation of the pose is invalid.
    """
    if at is None:
        return np.eye(4)
    try:
        shape = np.shape(at)
    except ValueError:
        shape = ()
    if isinstance(at, Pose):
        return at.matrix
    if shape == (3,):
        return translation(as_vector(at, 3, f"position of {what!r}"))
    if shape != (4, 4):
        raise ShapeError(f"position of {what!r} must be a point (3,) or a pose (4, 4), not {at!r}")
    return as_pose_matrix(at, f"pose of {what!r}")


def as_axes_wxyz(axis: AxisLike, what: str) -> Array:
    """Return the quaternion (4,) that rotates z onto an axis, given as a vector (3,) or by name.

    Raises:
        DoFError: the name is unknown, or the vector is zero.
    """
    if isinstance(axis, str):
        sign, letter = (-1.0, axis[1:]) if axis.startswith("-") else (1.0, axis)
        if letter not in ("x", "y", "z"):
            raise DoFError(f"axis of {what!r} must be x, y, z, -x, -y, -z or a vector, not {axis!r}")
        direction = sign * np.eye(3)["xyz".index(letter)]
    else:
        direction = as_vector(axis, 3, f"axis of {what!r}")
        if np.linalg.norm(direction) < 1e-12:
            raise DoFError(f"axis of {what!r} is zero; give a vector with a direction")
    return quaternion.from_matrix(rotation.between(np.array([0.0, 0.0, 1.0]), direction))


def as_limits(limits: Any, size: int, what: str) -> list[Array]:
    """Convert (lower, upper), each a number for all dofs or an array over the dofs, to two arrays (size,).

    Raises:
        StructureError: it is not two numbers or two arrays of `size`.
    """
    if not hasattr(limits, "__len__") or isinstance(limits, str) or len(limits) != 2:
        raise StructureError(f"limits of {what!r} are (lower, upper), not {limits!r}")
    try:
        return [np.broadcast_to(np.asarray(side, dtype=np.float64), size) for side in limits]
    except (TypeError, ValueError):
        raise StructureError(
            f"limits of {what!r} are two numbers, or two lists of {format_count(size, 'number')}, not {limits!r}"
        ) from None
