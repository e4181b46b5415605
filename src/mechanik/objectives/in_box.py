"""A point of a link inside a box."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Self, Unpack

import numpy as np

from mechanik.errors import LimitsError, ObjectiveError
from mechanik.mechanism import Link, Mechanism
from mechanik.mechanism.door import as_numbers, read_only
from mechanik.mechanism.placing import as_place
from mechanik.objectives.door import as_point, known_link, link_name
from mechanik.objectives.objective import Objective, Wish
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial import Pose, translation
from mechanik.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InBox(Objective):
    """The point `at` of a link shall stay in a box; a row, m, for each direction that has a bound.

    Args:
        lower, upper: (3,), m, along the axes of the box's frame; infinite where there is no bound.
        frame: where the box stands, as a point or a pose, in the world, or in the link `relative_to`.
        at: (3,), m, in the link.
    """

    link: str
    lower: Array
    upper: Array
    frame: Array
    point: Array
    relative_to: str | None

    def __init__(
        self,
        link: str | Link,
        lower: ArrayLike,
        upper: ArrayLike,
        frame: ArrayLike | Pose | None = None,
        at: ArrayLike = (0.0, 0.0, 0.0),
        *,
        relative_to: str | Link | None = None,
        **wish: Unpack[Wish],
    ) -> None:
        Objective.__init__(self, **wish)
        name = link_name(link)
        other = None if relative_to is None else link_name(relative_to, "relative_to")
        if name == other:
            raise ObjectiveError(f"{self._called}: link {name!r} cannot move in a box of its own")
        low, high = (
            np.array(as_numbers((side,), 3, f"{what} of {self._called}", infinite=True))
            for side, what in ((lower, "lower"), (upper, "upper"))
        )
        if (low > high).any() or (low == np.inf).any() or (high == -np.inf).any():
            raise LimitsError(f"{self._called}: no point lies between {low.tolist()} and {high.tolist()}")
        if not (np.isfinite(low) | np.isfinite(high)).any():
            raise ObjectiveError(f"{self._called} has no bound at all, so it wants nothing")
        fields = {
            "link": name,
            "lower": read_only(low),
            "upper": read_only(high),
            "frame": read_only(as_place(frame, self._called)),
            "point": as_point(at, f"point of {self._called}"),
            "relative_to": other,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"<{self._called} of link {self.link!r}: {self.lower.tolist()} to {self.upper.tolist()}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        a = None if self.relative_to is None else known_link(mechanism, self.relative_to)
        b = known_link(mechanism, self.link)
        rows = np.flatnonzero(np.isfinite(self.lower) | np.isfinite(self.upper))
        lower, upper = read_only(self.lower[rows]), read_only(self.upper[rows])
        ends = a, b, self.frame, read_only(translation(self.point))
        return (Relation(Kind.POSE, tuple(rows.tolist()), *ends, lower=lower, upper=upper, weight=self.weight),)

    def at(self, target: ArrayLike | Pose) -> Self:
        """The same box elsewhere: a point (3,), or a pose."""
        other = copy(self)
        object.__setattr__(other, "frame", read_only(as_place(target, self._called)))
        return other
