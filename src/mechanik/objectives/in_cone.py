"""A direction of a link inside a cone."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from typing import Self, Unpack

import numpy as np

from mechanik.errors import LimitsError, ObjectiveError
from mechanik.mechanism import Link, Mechanism
from mechanik.mechanism.door import as_number, read_only
from mechanik.objectives.door import as_direction, known_link, link_name
from mechanik.objectives.objective import Objective, Wish
from mechanik.objectives.placement_rows import frame
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial import make
from mechanik.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InCone(Objective):
    """The direction `axis` of a link shall stay within `angle` of a direction; 1 row: the cosine that is missing.

    Args:
        axis: (3,), of any length but zero, in the link.
        direction: (3,), of any length but zero, in the world, or in the link `relative_to`.
        angle: rad, above 0 and below pi; half of the opening.
    """

    link: str
    axis: Array
    direction: Array
    angle: float
    relative_to: str | None

    def __init__(
        self,
        link: str | Link,
        axis: ArrayLike,
        direction: ArrayLike,
        angle: float,
        *,
        relative_to: str | Link | None = None,
        **wish: Unpack[Wish],
    ) -> None:
        Objective.__init__(self, **wish)
        name = link_name(link)
        other = None if relative_to is None else link_name(relative_to, "relative_to")
        if name == other:
            raise ObjectiveError(f"{self._called}: an axis of link {name!r} cannot move in a cone of its own")
        half = as_number(angle, f"angle of {self._called}")
        if not 0.0 < half < math.pi:
            raise LimitsError(f"angle of {self._called} is {half:g} rad, not between 0, where an Axis is meant, and pi")
        fields = {
            "link": name,
            "axis": as_direction(axis, f"axis of {self._called}"),
            "direction": as_direction(direction, f"direction of {self._called}"),
            "angle": half,
            "relative_to": other,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"<{self._called} of link {self.link!r}: within {self.angle:g} rad of {self.direction}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        a = None if self.relative_to is None else known_link(mechanism, self.relative_to)
        b = known_link(mechanism, self.link)
        X_a, X_b = (read_only(make(frame(way), np.zeros(3))) for way in (self.direction, self.axis))
        # rounding may take the cosine of an axis in its place above 1, which is no reason to move it
        lower, upper = read_only(np.array([math.cos(self.angle)])), read_only(np.array([math.inf]))
        return (Relation(Kind.COSINE, (0,), a, b, X_a, X_b, lower=lower, upper=upper, weight=self.weight),)

    def at(self, target: ArrayLike) -> Self:
        """The same wish for another direction (3,)."""
        other = copy(self)
        object.__setattr__(other, "direction", as_direction(target, f"direction of {self._called}"))
        return other
