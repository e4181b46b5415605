"""How a link may be turned: fully given, an axis onto an axis, or an axis at right angles to another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.objectives.door import as_direction, as_turn
from mechanik.spatial import Pose, quaternion, rotate, rotation
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.vector import cross, length, unit


@dataclass(frozen=True, slots=True, eq=False)
class FixedRotation:
    """The axes `local` of the link shall be turned as `target`: both (3, 3), R_link local = target.

    Args:
        target, local: also as quaternion wxyz (4,), or as a pose.
    """

    target: Array
    local: Array

    def __init__(self, target: ArrayLike | Pose, local: ArrayLike | Pose = (1.0, 0.0, 0.0, 0.0)) -> None:
        object.__setattr__(self, "target", as_turn(target, "target rotation"))
        object.__setattr__(self, "local", as_turn(local, "rotation in the link"))

    @property
    def wanted(self) -> Array:
        """(3, 3), the rotation of the link that fulfils the rule."""
        return self.target @ self.local.T

    def transform(self, X: Array) -> FixedRotation:
        """The rule for a target that was moved by X."""
        return FixedRotation(X[:3, :3] @ self.target, self.local)

    def transform_local(self, X: Array) -> FixedRotation:
        """The rule for a link in whose frame everything was moved by X."""
        return FixedRotation(self.target, X[:3, :3] @ self.local)

    def match(self, R: Array) -> FixedRotation:
        """The rule that a link turned by R fulfils."""
        return FixedRotation(R @ self.local, self.local)

    def nearest(self, R: Array) -> Array:
        """The allowed rotation that is nearest to R."""
        return self.wanted

    def sample(self, rng: np.random.Generator) -> Array:
        """An allowed rotation."""
        return self.wanted


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """The direction `local` of the link shall point along `target`; turning about it is free."""

    target: Array
    local: Array

    def __init__(self, target: ArrayLike, local: ArrayLike = (0.0, 0.0, 1.0)) -> None:
        object.__setattr__(self, "target", as_direction(target, "target axis"))
        object.__setattr__(self, "local", as_direction(local, "axis of the link"))

    def transform(self, X: Array) -> Aligned:
        return Aligned(rotate(X, self.target), self.local)

    def transform_local(self, X: Array) -> Aligned:
        return Aligned(self.target, rotate(X, self.local))

    def match(self, R: Array) -> Aligned:
        return Aligned(R @ self.local, self.local)

    def nearest(self, R: Array) -> Array:
        return rotation.between(R @ self.local, self.target) @ R

    def sample(self, rng: np.random.Generator) -> Array:
        about = rotation.from_axis_angle(self.target, rng.uniform(-np.pi, np.pi))
        return about @ rotation.between(self.local, self.target)


@dataclass(frozen=True, slots=True, eq=False)
class Square:
    """The direction `local` of the link shall stand at right angles to `target`.

    What is left where only one of a pose's three turns is wanted.
    """

    target: Array
    local: Array

    def __init__(self, target: ArrayLike, local: ArrayLike) -> None:
        object.__setattr__(self, "target", as_direction(target, "target axis"))
        object.__setattr__(self, "local", as_direction(local, "axis of the link"))

    def transform(self, X: Array) -> Square:
        return Square(rotate(X, self.target), self.local)

    def transform_local(self, X: Array) -> Square:
        return Square(self.target, rotate(X, self.local))

    def match(self, R: Array) -> Square:
        """The target turned as little as it takes to be at right angles where the link is."""
        axis = R @ self.local
        return Square(_square_to(self.target, axis), self.local)

    def nearest(self, R: Array) -> Array:
        axis = R @ self.local
        return rotation.between(axis, _square_to(axis, self.target)) @ R

    def sample(self, rng: np.random.Generator) -> Array:
        return self.nearest(any_rotation(rng))


RotationRule = FixedRotation | Aligned | Square


def any_rotation(rng: np.random.Generator) -> Array:
    """(3, 3), uniform among all rotations."""
    return quaternion.to_matrix(quaternion.normalize(rng.standard_normal(4)))


def _square_to(v: Array, axis: Array) -> Array:
    """The direction at right angles to `axis` that is nearest to the direction `v`."""
    side = v - (v @ axis) * axis
    if length(side) < 1e-9:  # along the axis all are as near
        side = cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    side = unit(side, "side")
    return unit(side - (side @ axis) * axis, "side")  # again, for what cancelled
