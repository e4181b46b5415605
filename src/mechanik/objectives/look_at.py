"""A link that looks at a point."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Self, Unpack

from mechanik.errors import ObjectiveError
from mechanik.mechanism import Link, Mechanism
from mechanik.mechanism.door import read_only
from mechanik.objectives.door import as_direction, as_point, known_link, link_name
from mechanik.objectives.objective import Objective, Wish
from mechanik.objectives.placement_rows import frame
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial import make, translation
from mechanik.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LookAt(Objective):
    """The direction `axis` of a link, from its point `at`, shall lead to the target; 2 rows, rad.

    Args:
        target: (3,), m, in the world, or in the link `relative_to`. In the eye itself it is seen anyhow.
        axis: (3,), of any length but zero, in the link.
        at: (3,), m, the eye, in the link.
    """

    link: str
    target: Array
    axis: Array
    eye: Array
    relative_to: str | None

    def __init__(
        self,
        link: str | Link,
        target: ArrayLike,
        axis: ArrayLike = (0.0, 0.0, 1.0),
        at: ArrayLike = (0.0, 0.0, 0.0),
        *,
        relative_to: str | Link | None = None,
        **wish: Unpack[Wish],
    ) -> None:
        Objective.__init__(self, **wish)
        name = link_name(link)
        other = None if relative_to is None else link_name(relative_to, "relative_to")
        if name == other:
            raise ObjectiveError(f"{self._called}: link {name!r} cannot turn to see a point of its own")
        fields = {
            "link": name,
            "target": as_point(target, f"target of {self._called}"),
            "axis": as_direction(axis, f"axis of {self._called}"),
            "eye": as_point(at, f"eye of {self._called}"),
            "relative_to": other,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"<{self._called} of link {self.link!r}: {self.target}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        eye = known_link(mechanism, self.link), read_only(make(frame(self.axis), self.eye))
        seen = None if self.relative_to is None else known_link(mechanism, self.relative_to)
        X_seen = read_only(translation(self.target))
        return (Relation(Kind.LOOK, (0, 1), eye[0], seen, eye[1], X_seen, weight=self.weight),)

    def at(self, target: ArrayLike) -> Self:
        """The same wish for another point (3,)."""
        other = copy(self)
        object.__setattr__(other, "target", as_point(target, f"target of {self._called}"))
        return other
