"""Validation of targets of objectives: link names, points, unit directions, rotations and poses."""

from __future__ import annotations

import numpy as np

from mechanik.errors import InvalidArgument, NotARotation, NotFinite, ObjectiveError, ShapeError, UnknownName
from mechanik.model.frame import Link
from mechanik.model.mechanism import Mechanism
from mechanik.spatial import Pose, as_pose_matrix, quaternion
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.rotation import is_rotation
from mechanik.spatial.vector_math import unit
from mechanik.validation import as_vector, read_only

QUATERNION_TOLERANCE = 1e-3
"""Largest allowed deviation of a quaternion's length from 1: covers the rounding of text files, not a wrong
argument."""


def link_name(link: str | Link, what: str = "link") -> str:
    """Return the name of a link that is given by name or as a `Link`; objectives store names."""
    name = link.name if isinstance(link, Link) else link
    if not isinstance(name, str):
        raise InvalidArgument(f"{what} must be the name of a link or a Link, not {link!r}")
    if not name:
        raise ObjectiveError(f"{what} has no name; name the link first, since objectives store the names of links")
    return name


def check_link(mechanism: Mechanism, name: str) -> str:
    """Return `name` if the mechanism has a link of that name, else raise `UnknownName`."""
    if name not in mechanism.links:
        raise UnknownName("link", name, mechanism.links)
    return name


def as_point(point: ArrayLike, what: str) -> Array:
    """Return a finite read-only point (3,)."""
    return read_only(as_vector(point, 3, what))


def as_direction(direction: ArrayLike, what: str) -> Array:
    """Return a read-only unit vector (3,) along a vector of any length but zero."""
    vector = as_vector(direction, 3, what)
    # a unit vector keeps every bit, so that saving and loading gives the same numbers
    return read_only(vector if abs(vector @ vector - 1.0) < 2e-15 else unit(vector, what))


def as_quaternion(wxyz: ArrayLike, what: str) -> Array:
    """Return a read-only unit quaternion wxyz (4,).

    Raises:
        NotARotation: the length differs from 1 by more than `QUATERNION_TOLERANCE`.
    """
    values = as_vector(wxyz, 4, what)
    length = float(np.linalg.norm(values))
    if abs(length - 1.0) > QUATERNION_TOLERANCE:
        raise NotARotation(f"{what} has length {length:.4g}; a quaternion (w, x, y, z) must have length 1")
    return read_only(quaternion.normalize(values))


def as_rotation_matrix(rotation: ArrayLike | Pose, what: str) -> Array:
    """Return a read-only rotation matrix (3, 3) from a matrix, a quaternion wxyz (4,), a pose (4, 4) or a `Pose`."""
    if isinstance(rotation, Pose):
        return read_only(quaternion.to_matrix(rotation.wxyz))
    try:
        R = np.array(rotation, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{what} must be a rotation (3, 3) or a quaternion wxyz (4,), not {rotation!r}") from None
    if R.shape == (4,):
        return read_only(quaternion.to_matrix(as_quaternion(R, what)))
    if R.shape == (4, 4):
        return read_only(as_single_pose(R, what)[:3, :3].copy())
    if R.shape != (3, 3):
        raise ShapeError(f"{what} must be a rotation (3, 3) or a quaternion wxyz (4,), not an array of shape {R.shape}")
    if not np.isfinite(R).all():
        raise NotFinite(f"{what} has an entry that is not finite")
    if not is_rotation(R, 1e-6):
        raise NotARotation(
            f"{what} is not a rotation: its columns must be perpendicular unit vectors, and it must not mirror"
        )
    return read_only(R)


def as_single_pose(pose: ArrayLike | Pose, what: str) -> Array:
    """Return a read-only pose (4, 4) from a `Pose` or a matrix; a batch is refused."""
    if isinstance(pose, Pose):
        return read_only(pose.matrix)
    X = np.array(as_pose_matrix(pose, what))
    if X.ndim != 2:
        raise ShapeError(f"{what} must be one pose of shape (4, 4), not a batch of shape {X.shape}")
    return read_only(X)


def as_rng(rng: np.random.Generator) -> np.random.Generator:
    """Return `rng` if it is a NumPy generator; seeds and None are refused, since a run must be repeatable."""
    if not isinstance(rng, np.random.Generator):
        raise InvalidArgument(f"rng must be a generator, such as numpy.random.default_rng(0), not {rng!r}")
    return rng
