"""The centre of mass at a point, or over a polygon."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self, Unpack

import numpy as np

from mechanik.errors import DoFError, ObjectiveError
from mechanik.mechanism import DoF, Link, Mechanism
from mechanik.mechanism.dof import TRANSLATIONS, DoFLike, as_dofs
from mechanik.mechanism.door import as_number, read_only
from mechanik.objectives.door import as_point, known_link, link_name
from mechanik.objectives.objective import Objective, Wish
from mechanik.objectives.polygon import as_polygon, inset
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial import make, translation
from mechanik.spatial.array import Array, ArrayLike

Mass = tuple[str, float, Array]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CentreOfMass(Objective):
    """The common centre of mass of links shall be at a point, or above a polygon.

    Args:
        target: (3,), m, in the world, or in the link `relative_to`.
        over: instead of a target, points (n, 2) or (n, 3) of a support, seen from the same place: along its z the
            centre shall lie over their convex hull. How high, does not matter.
        margin: m, how far inside the hull.
        relative_to: the link in whose frame all this is given; None: the world.
        links: whose masses count, by name or as links; None: those of all that have one.
        dof: which of X Y Z of the target count.
    """

    target: Array | None
    over: Array | None
    margin: float
    relative_to: str | None
    links: tuple[str, ...] | None
    dof: tuple[DoF, ...]

    def __init__(
        self,
        target: ArrayLike | None = None,
        *,
        over: ArrayLike | None = None,
        margin: float = 0.0,
        relative_to: str | Link | None = None,
        links: Iterable[str | Link] | str | Link | None = None,
        dof: Iterable[DoFLike] | DoFLike = TRANSLATIONS,
        **wish: Unpack[Wish],
    ) -> None:
        Objective.__init__(self, **wish)
        if (target is None) == (over is None):
            raise ObjectiveError(f"{self._called} takes a target point, or a polygon to be over: one of the two")
        wanted = as_dofs(dof)
        if not wanted or wanted[-1].is_rotation:
            raise DoFError(f"dof of {self._called} are some of X Y Z, for a centre of mass does not turn")
        some = [links] if isinstance(links, str | Link) else links
        fields = {
            "target": None if target is None else as_point(target, f"target of {self._called}"),
            "over": None if over is None else as_polygon(over, f"polygon of {self._called}"),
            "margin": as_number(margin, f"margin of {self._called}"),
            "relative_to": None if relative_to is None else link_name(relative_to, "relative_to"),
            "links": None if some is None else tuple(link_name(link) for link in some),
            "dof": wanted,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)
        if self.over is not None:
            inset(self.over, self.margin, self._called)

    def __repr__(self) -> str:
        where = f"over {len(self.over)} corners" if self.over is not None else f"at {self.target}"
        return f"<{self._called} {where}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        a = None if self.relative_to is None else known_link(mechanism, self.relative_to)
        masses = self._masses(mechanism)

        def relation(rows: Sequence[int], X_a: Array, band: tuple[float, float] | None) -> Relation:
            lower, upper = (None, None) if band is None else (read_only(np.array([side])) for side in band)
            X_a = read_only(X_a)
            return Relation(
                Kind.MASS, tuple(rows), a, X_a=X_a, masses=masses, lower=lower, upper=upper, weight=self.weight
            )

        if self.target is not None:
            return (relation(self.dof, translation(self.target), None),)
        assert self.over is not None
        # each side of the polygon is a line that the centre has to stay on one side of, or, without width, on
        return tuple(
            relation((0,), make(_axes(side.inward), side.start), side.band)
            for side in inset(self.over, self.margin, self._called)
        )

    def at(self, target: ArrayLike) -> Self:
        """The same wish for another target point (3,), or for another polygon, if it wants to be over one."""
        other = copy(self)
        if self.over is None:
            object.__setattr__(other, "target", as_point(target, f"target of {self._called}"))
        else:
            polygon = as_polygon(target, f"polygon of {self._called}")
            inset(polygon, self.margin, self._called)
            object.__setattr__(other, "over", polygon)
        return other

    def _masses(self, mechanism: Mechanism) -> tuple[Mass, ...]:
        names = mechanism.links if self.links is None else [known_link(mechanism, name) for name in self.links]
        found: list[Mass] = []
        for name in names:
            inertial = mechanism.link(name).inertial
            if inertial is not None and inertial.mass > 0.0:
                found.append((name, inertial.mass, inertial.pose.position))
        if not found:
            which = f"the mechanism {mechanism.name!r}" if self.links is None else f"the links {', '.join(self.links)}"
            raise ObjectiveError(f"{self._called}: nothing in {which} weighs anything; give links an `inertial`")
        return tuple(found)


def _axes(inward: Array) -> Array:
    """Axes (3, 3) whose x is `inward` (2,), and whose z is up."""
    (x, y) = inward.tolist()
    return np.array([[x, -y, 0.0], [y, x, 0.0], [0.0, 0.0, 1.0]])
