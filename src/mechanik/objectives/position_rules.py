"""Where a point of a link may be: at a point, on a line, on a plane.

Each rule has a point `local` (m, in the link) and a point `target` (m, in the world, or in the link that the objective
is relative to), and says which rows of a relation hold the one to the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from mechanik.objectives.door import as_direction, as_point
from mechanik.spatial import apply, rotate
from mechanik.spatial.array import Array, ArrayLike

ORIGIN = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """The point `local` shall be at `target`."""

    target: Array
    local: Array

    ROWS: ClassVar[tuple[int, ...]] = (0, 1, 2)
    """Which coordinates count, in a frame at `target` whose z is the rule's direction, where it has one."""

    def __init__(self, target: ArrayLike, local: ArrayLike = ORIGIN) -> None:
        object.__setattr__(self, "target", as_point(target, "target point"))
        object.__setattr__(self, "local", as_point(local, "point of the link"))

    def transform(self, X: Array) -> Fixed:
        """The rule for a target that was moved by X."""
        return Fixed(apply(X, self.target), self.local)

    def transform_local(self, X: Array) -> Fixed:
        """The rule for a link in whose frame everything was moved by X."""
        return Fixed(self.target, apply(X, self.local))

    def to(self, target: ArrayLike) -> Fixed:
        """The rule for another target point."""
        return Fixed(target, self.local)

    def nearest(self, point: Array) -> Array:
        """The allowed point that is nearest to `point`."""
        return self.target

    def sample(self, rng: np.random.Generator, reach: float) -> Array:
        """An allowed point, within `reach` of the target."""
        return self.target


@dataclass(frozen=True, slots=True, eq=False)
class _Directed:
    """A rule with a direction at its target."""

    target: Array
    direction: Array
    local: Array

    ROWS: ClassVar[tuple[int, ...]]

    def __init__(self, target: ArrayLike, direction: ArrayLike, local: ArrayLike = ORIGIN) -> None:
        object.__setattr__(self, "target", as_point(target, "target point"))
        object.__setattr__(self, "direction", as_direction(direction, f"direction of a {type(self).__name__} rule"))
        object.__setattr__(self, "local", as_point(local, "point of the link"))

    def transform(self, X: Array) -> Self:
        """As `Fixed.transform`; the direction turns along."""
        return replace(self, target=apply(X, self.target), direction=rotate(X, self.direction))

    def transform_local(self, X: Array) -> Self:
        """As `Fixed.transform_local`."""
        return replace(self, local=apply(X, self.local))

    def to(self, target: ArrayLike) -> Self:
        """The rule through another target point, in the same direction."""
        return replace(self, target=target)

    def _along(self, point: Array) -> Array:
        """The part along the direction of the way from the target to `point`."""
        return float(self.direction @ (point - self.target)) * self.direction


class Linear(_Directed):
    """The point `local` shall lie on the line through `target` along `direction`."""

    __slots__ = ()
    ROWS = (0, 1)

    def nearest(self, point: Array) -> Array:
        return self.target + self._along(point)

    def sample(self, rng: np.random.Generator, reach: float) -> Array:
        return self.target + rng.uniform(-reach, reach) * self.direction


class Planar(_Directed):
    """The point `local` shall lie in the plane through `target` whose normal is `direction`."""

    __slots__ = ()
    ROWS = (2,)

    def nearest(self, point: Array) -> Array:
        return point - self._along(point)

    def sample(self, rng: np.random.Generator, reach: float) -> Array:
        return self.nearest(self.target + somewhere(rng, reach))


PositionRule = Fixed | Linear | Planar


def somewhere(rng: np.random.Generator, reach: float) -> Array:
    """A point (3,), uniform in the ball of radius `reach`."""
    way = rng.standard_normal(3)
    return reach * rng.random() ** (1 / 3) * way / np.linalg.norm(way)
