"""Places, axes and limits as people write them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from mechanik.errors import DoFError, ShapeError, StructureError
from mechanik.mechanism.door import as_vector, counted
from mechanik.spatial import Pose, as_pose_matrix, quaternion, rotation, translation
from mechanik.spatial.array import Array, ArrayLike

Axis = Literal["x", "y", "z", "-x", "-y", "-z"] | ArrayLike


def as_place(at: ArrayLike | Pose | None, what: str) -> Array:
    """A point (3,) or a pose as a pose (4, 4); None is the identity."""
    if at is None:
        return np.eye(4)
    try:
        shape = np.shape(at)
    except ValueError:
        raise ShapeError(f"place of {what!r} is {at!r}; it is a point (3,) or a pose (4, 4)") from None
    if not isinstance(at, Pose) and shape == (3,):
        return translation(as_vector(at, 3, f"place of {what!r}"))
    return as_pose_matrix(at, f"place of {what!r}")


def as_axes(axis: Axis, what: str) -> Array:
    """The quaternion that turns z onto an axis, given as a vector (3,) or by name."""
    if isinstance(axis, str):
        sign, letter = (-1.0, axis[1:]) if axis.startswith("-") else (1.0, axis)
        if letter not in ("x", "y", "z"):
            raise DoFError(f"axis of {what!r} is {axis!r}; it can be x, y, z, -x, -y, -z or a vector")
        direction = sign * np.eye(3)["xyz".index(letter)]
    else:
        direction = as_vector(axis, 3, f"axis of {what!r}")
        if np.linalg.norm(direction) < 1e-12:
            raise DoFError(f"axis of {what!r} is zero; it must point somewhere")
    return quaternion.from_matrix(rotation.between(np.array([0.0, 0.0, 1.0]), direction))


def as_limits(limits: Any, size: int, what: str) -> list[Array]:
    """(lower, upper), each a number for all freedoms or one for each, as two arrays (size,)."""
    if not hasattr(limits, "__len__") or isinstance(limits, str) or len(limits) != 2:
        raise StructureError(f"limits of {what!r} are (lower, upper), not {limits!r}")
    try:
        return [np.broadcast_to(np.asarray(side, dtype=np.float64), size) for side in limits]
    except (TypeError, ValueError):
        raise StructureError(
            f"limits of {what!r} are two numbers, or two lists of {counted(size, 'number')}, not {limits!r}"
        ) from None
