"""One coordinate of a link between two values."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from typing import Literal, Self, Unpack

import numpy as np

from mechanik.errors import LimitsError, ObjectiveError, UnknownName
from mechanik.mechanism import Link, Mechanism
from mechanik.mechanism.door import as_number, read_only
from mechanik.mechanism.placing import as_place
from mechanik.objectives.door import known_link, link_name
from mechanik.objectives.objective import Objective, Wish
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial import Pose
from mechanik.spatial.array import Array, ArrayLike

Coordinate = Literal["x", "y", "z", "rx", "ry", "rz"]
COORDINATES = ("x", "y", "z", "rx", "ry", "rz")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InBand(Objective):
    """One coordinate of a frame of a link shall stay in a band: its height, for one; 1 row.

    Args:
        coordinate: "x", "y", "z" (m), or "rx", "ry", "rz", a component of the rotation vector (rad).
        lower, upper: the band; at least one of them.
        frame: along whose axes, as a point or a pose, in the world, or in the link `relative_to`.
        at: what of the link, as a point or a pose.
    """

    link: str
    coordinate: Coordinate
    lower: float
    upper: float
    frame: Array
    tool: Array
    relative_to: str | None

    def __init__(
        self,
        link: str | Link,
        coordinate: Coordinate,
        lower: float | None = None,
        upper: float | None = None,
        frame: ArrayLike | Pose | None = None,
        at: ArrayLike | Pose | None = None,
        *,
        relative_to: str | Link | None = None,
        **wish: Unpack[Wish],
    ) -> None:
        Objective.__init__(self, **wish)
        if coordinate not in COORDINATES:
            raise UnknownName("coordinate", coordinate, COORDINATES)
        name = link_name(link)
        other = None if relative_to is None else link_name(relative_to, "relative_to")
        if name == other:
            raise ObjectiveError(f"{self._called}: link {name!r} cannot move against itself")
        low = -math.inf if lower is None else as_number(lower, f"lower of {self._called}", infinite=True)
        high = math.inf if upper is None else as_number(upper, f"upper of {self._called}", infinite=True)
        if low > high or low == math.inf or high == -math.inf:
            raise LimitsError(f"{self._called}: nothing lies between {low:g} and {high:g}")
        if math.isinf(low) and math.isinf(high):
            raise ObjectiveError(f"{self._called} has no bound, so it wants nothing; give lower or upper")
        fields = {
            "link": name,
            "coordinate": coordinate,
            "lower": low,
            "upper": high,
            "frame": read_only(as_place(frame, self._called)),
            "tool": read_only(as_place(at, self._called)),
            "relative_to": other,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"<{self._called}: {self.lower:g} <= {self.coordinate} of link {self.link!r} <= {self.upper:g}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        a = None if self.relative_to is None else known_link(mechanism, self.relative_to)
        ends = a, known_link(mechanism, self.link), self.frame, self.tool
        lower, upper = (read_only(np.array([side])) for side in (self.lower, self.upper))
        row = COORDINATES.index(self.coordinate)
        return (Relation(Kind.POSE, (row,), *ends, lower=lower, upper=upper, weight=self.weight),)

    def at(self, target: ArrayLike | Pose) -> Self:
        """The same band seen from elsewhere: a point (3,), or a pose."""
        other = copy(self)
        object.__setattr__(other, "frame", read_only(as_place(target, self._called)))
        return other
