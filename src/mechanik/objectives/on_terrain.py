"""A point of a link on the ground."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import numpy as np

from mechanik.errors import ObjectiveError, WrongKind
from mechanik.mechanism import Link, Mechanism
from mechanik.mechanism.door import as_number, read_only
from mechanik.objectives.door import as_point, known_link, link_name
from mechanik.objectives.objective import Objective, Wish
from mechanik.objectives.relation import Kind, Relation
from mechanik.objectives.terrain import Terrain
from mechanik.spatial import translation
from mechanik.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OnTerrain(Objective):
    """The point `point` of a link shall stand on the ground, or a ball about it touch the ground; 1 row.

    The row is the height above the ground, straight up (m); for a ball, above `terrain.raised_by(radius)`.

    Args:
        terrain: in the world, or in the link `relative_to`; z is up.
        at: (3,), m, in the link; it is kept as `point`.
        radius: m, of the ball about that point: a wheel, if it is round across too.
    """

    link: str
    terrain: Terrain
    point: Array
    radius: float
    relative_to: str | None

    def __init__(
        self,
        link: str | Link,
        terrain: Terrain,
        at: ArrayLike = (0.0, 0.0, 0.0),
        radius: float = 0.0,
        *,
        relative_to: str | Link | None = None,
        **wish: Unpack[Wish],
    ) -> None:
        Objective.__init__(self, **wish)
        name = link_name(link)
        other = None if relative_to is None else link_name(relative_to, "relative_to")
        if name == other:
            raise ObjectiveError(f"{self._called}: link {name!r} cannot stand on ground that moves along with it")
        if not isinstance(terrain, Terrain):
            raise WrongKind(f"terrain of {self._called} is a Terrain, not {terrain!r}")
        r = as_number(radius, f"radius of {self._called}")
        if r < 0.0:
            raise ObjectiveError(f"radius of {self._called} is {r:g} m, and must not be below zero")
        fields = {
            "link": name,
            "terrain": terrain,
            "point": as_point(at, f"at of {self._called}"),
            "radius": r,
            "relative_to": other,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        ball = f", with a ball of {self.radius:g} m" if self.radius else ""
        return f"<{self._called} of link {self.link!r}{ball}: on {self.terrain!r}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        a = None if self.relative_to is None else known_link(mechanism, self.relative_to)
        ends = a, known_link(mechanism, self.link), read_only(np.eye(4)), read_only(translation(self.point))
        terrain = self.terrain.raised_by(self.radius)
        return (Relation(Kind.HEIGHT, (0,), *ends, terrain=terrain, weight=self.weight),)
