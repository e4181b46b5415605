"""The door of objectives: links by name, directions of length one, turns that are turns."""

from __future__ import annotations

import numpy as np

from mechanik.errors import NotARotation, NotFinite, ObjectiveError, ShapeError, UnknownName, WrongKind
from mechanik.mechanism.door import as_vector, read_only
from mechanik.mechanism.link import Link
from mechanik.mechanism.mechanism import Mechanism
from mechanik.spatial import Pose, as_pose_matrix, quaternion
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.rotation import is_rotation
from mechanik.spatial.vector import unit

UNIT = 1e-3
"""How far a quaternion may be from length one: what text files round away, not what a wrong argument looks like."""


def link_name(link: str | Link, what: str = "link") -> str:
    """The name by which an objective keeps its link."""
    name = link.name if isinstance(link, Link) else link
    if not isinstance(name, str):
        raise WrongKind(f"{what} is given by its name or as a Link, not as {link!r}")
    if not name:
        raise ObjectiveError(f"{what} has no name; give it one, since objectives keep the names of links")
    return name


def known_link(mechanism: Mechanism, name: str) -> str:
    """`name`, if a link of the mechanism carries it."""
    if name not in mechanism.links:
        raise UnknownName("link", name, mechanism.links)
    return name


def as_point(point: ArrayLike, what: str) -> Array:
    """(3,), finite, read-only."""
    return read_only(as_vector(point, 3, what))


def as_direction(direction: ArrayLike, what: str) -> Array:
    """(3,) of length one, from a vector of any length but zero; read-only."""
    given = as_vector(direction, 3, what)
    # one that has the length already stays as it is to the bit, so that what is saved can be read back
    return read_only(given if abs(given @ given - 1.0) < 2e-15 else unit(given, what))


def as_wxyz(wxyz: ArrayLike, what: str) -> Array:
    """A unit quaternion (4,); one that is not nearly of length one is refused, as it is something else."""
    given = as_vector(wxyz, 4, what)
    length = float(np.linalg.norm(given))
    if abs(length - 1.0) > UNIT:
        raise NotARotation(f"{what} has length {length:.4g}, and a quaternion (w, x, y, z) must have length 1")
    return read_only(quaternion.normalize(given))


def as_turn(turn: ArrayLike | Pose, what: str) -> Array:
    """A rotation (3, 3), from one, from a quaternion wxyz (4,), or from a pose; read-only."""
    if isinstance(turn, Pose):
        return read_only(quaternion.to_matrix(turn.wxyz))
    try:
        R = np.array(turn, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{what} is a rotation (3, 3) or a quaternion wxyz (4,), not {turn!r}") from None
    if R.shape == (4,):
        return read_only(quaternion.to_matrix(as_wxyz(R, what)))
    if R.shape == (4, 4):
        return read_only(as_pose(R, what)[:3, :3].copy())
    if R.shape != (3, 3):
        raise ShapeError(f"{what} is a rotation (3, 3) or a quaternion wxyz (4,), not an array of shape {R.shape}")
    if not np.isfinite(R).all():
        raise NotFinite(f"{what} has an entry that is not finite")
    if not is_rotation(R, 1e-6):
        raise NotARotation(f"{what} is no rotation, as it stretches or mirrors")
    return read_only(R)


def as_pose(pose: ArrayLike | Pose, what: str) -> Array:
    """(4, 4), from a pose or a matrix; read-only."""
    if isinstance(pose, Pose):
        return read_only(pose.matrix)
    X = np.array(as_pose_matrix(pose, what))
    if X.ndim != 2:
        raise ShapeError(f"{what} is one pose, shaped (4, 4), not a batch, shaped {X.shape}")
    return read_only(X)


def as_generator(rng: np.random.Generator) -> np.random.Generator:
    """What random numbers come from; numbers and None are refused, as a run must be able to repeat."""
    if not isinstance(rng, np.random.Generator):
        raise WrongKind(f"rng must be a generator, such as numpy.random.default_rng(0), not {rng!r}")
    return rng
