"""Two points at a distance: equal, at least, at most."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from typing import Self, Unpack

import numpy as np

from mechanik.errors import LimitsError, ObjectiveError
from mechanik.mechanism import Link, Mechanism
from mechanik.mechanism.door import as_number, read_only
from mechanik.objectives.door import as_point, known_link, link_name
from mechanik.objectives.objective import Objective, Wish
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial import translation
from mechanik.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Distance(Objective):
    """The distance between a point of a link and a point of another, or of the world; 1 row, m.

    Args:
        other: the other link; None: the world.
        at, other_at: (3,), m, the points in the links.
        equal: m; 0 makes it 3 rows, for points that meet have no distance to follow.
        at_least, at_most: m; one of them or both, where `equal` is not given.
    """

    link: str
    other: str | None
    point: Array
    other_point: Array
    equal: float | None
    at_least: float | None
    at_most: float | None

    def __init__(
        self,
        link: str | Link,
        other: str | Link | None = None,
        *,
        at: ArrayLike = (0.0, 0.0, 0.0),
        other_at: ArrayLike = (0.0, 0.0, 0.0),
        equal: float | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
        **wish: Unpack[Wish],
    ) -> None:
        Objective.__init__(self, **wish)
        fields = {
            "link": link_name(link),
            "other": None if other is None else link_name(other, "other"),
            "point": as_point(at, f"point of {self._called}"),
            "other_point": as_point(other_at, f"other point of {self._called}"),
            "equal": self._length(equal, "equal"),
            "at_least": self._length(at_least, "at_least"),
            "at_most": self._length(at_most, "at_most"),
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)
        if self.link == self.other:
            raise ObjectiveError(f"{self._called}: points of link {self.link!r} are always as far from each other")
        if (self.equal is None) == (self.at_least is None and self.at_most is None):
            raise ObjectiveError(f"{self._called} takes equal=, or at_least= and at_most= (one of them or both)")
        self._check_order()

    def __repr__(self) -> str:
        wanted = {"=": self.equal, ">=": self.at_least, "<=": self.at_most}
        text = ", ".join(f"{sign} {value:g} m" for sign, value in wanted.items() if value is not None)
        return f"<{self._called} of {self.link!r} from {self.other or 'the world'!r} {text}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        b = known_link(mechanism, self.link)
        a = None if self.other is None else known_link(mechanism, self.other)
        ends = a, b, read_only(translation(self.other_point)), read_only(translation(self.point))
        if self.equal == 0.0:
            return (Relation(Kind.POSE, (0, 1, 2), *ends, weight=self.weight),)
        if self.equal is not None:
            low = high = self.equal
        else:
            low = -math.inf if self.at_least is None else self.at_least
            high = math.inf if self.at_most is None else self.at_most
        lower, upper = (read_only(np.array([side])) for side in (low, high))
        return (Relation(Kind.DISTANCE, (0,), *ends, lower=lower, upper=upper, weight=self.weight),)

    def at(self, target: ArrayLike) -> Self:
        """The same wish for another distance (m), where one is given."""
        given = [field for field in ("equal", "at_least", "at_most") if getattr(self, field) is not None]
        if len(given) > 1:
            raise ObjectiveError(f"{self._called} has two bounds, so that one number is not enough for another")
        copied = copy(self)
        object.__setattr__(copied, given[0], self._length(target, given[0]))
        return copied

    def _length(self, length: object, what: str) -> float | None:
        if length is None:
            return None
        number = as_number(length, f"{what} of {self._called}")
        if number < 0.0:
            raise ObjectiveError(f"{what} of {self._called} is {number:g} m, and a distance is not negative")
        return number

    def _check_order(self) -> None:
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise LimitsError(f"{self._called} cannot be at least {self.at_least:g} m and at most {self.at_most:g} m")
