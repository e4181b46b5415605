"""What must not bump into what, and what is done about it. Immutable, as all that undo brings back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from mechanik.collision import Collider, Obstacle
from mechanik.collision.avoiding import SELF, Avoid, read_avoid
from mechanik.errors import Refused, UnknownName
from mechanik.mechanism import Mechanism, Mesh
from mechanik.studio.messages.requests import CollisionMode
from mechanik.studio.session.refusals import said_to_people
from mechanik.studio.session.table import Table

MOST_BODIES = 200
"""Links and obstacles that are looked after: the time to find out which pairs count grows as their square."""
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Collisions:
    """
    Attributes:
        mode: "show": what bumps is painted; "avoid": besides, the solver keeps off.
        clearance: m, that is kept where it is avoided.
        itself: whether links are looked at against each other.
        obstacles: each with a name.
        allow, forbid: see `Collider`.
    """

    mode: CollisionMode = "show"
    clearance: float = 0.0
    itself: bool = True
    obstacles: tuple[Obstacle, ...] = ()
    allow: Pairs = ()
    forbid: Pairs = ()

    @property
    def avoid(self) -> tuple[str | Obstacle, ...]:
        """As `Collider` takes it."""
        return (SELF, *self.obstacles) if self.itself else self.obstacles

    def is_like(self, other: Collisions) -> bool:
        """Whether the same pairs count, wherever obstacles are."""
        return (self.itself, self.allow, self.forbid) == (other.itself, other.allow, other.forbid)

    def among(self, mechanism: Mechanism, avoid: Avoid) -> Collisions:
        """The same with other things to keep off; unnamed obstacles get names that no link has."""
        read = read_avoid(avoid, mechanism.links)
        return replace(self, itself=read.itself, obstacles=read.obstacles)

    def obstacle(self, name: str) -> Obstacle:
        for one in self.obstacles:
            if one.name == name:
                return one
        raise UnknownName("obstacle", name, [one.name for one in self.obstacles])

    def with_obstacle(self, changed: Obstacle) -> Collisions:
        """The same with the obstacle of that name replaced."""
        return replace(self, obstacles=tuple(changed if one.name == changed.name else one for one in self.obstacles))

    def without(self, *names: str) -> Collisions:
        """The same without obstacles of these names, and without the pairs that named them."""
        gone = {self.obstacle(name).name for name in names}
        left = tuple(one for one in self.obstacles if one.name not in gone)
        allow, forbid = (tuple(pair for pair in pairs if not gone & {*pair}) for pairs in (self.allow, self.forbid))
        return replace(self, obstacles=left, allow=allow, forbid=forbid)

    def collider(self, mechanism: Mechanism) -> Collider:
        return Collider(mechanism, self.avoid, allow=self.allow, forbid=self.forbid)


USUAL = Collisions()
"""Links are looked at against each other, and what bumps is painted."""


def moved(collider: Collider, obstacles: Iterable[Obstacle]) -> bool:
    """Put the obstacles of a collider where these are; False, and nothing is done, if they are others."""
    wanted = {one.name: one for one in obstacles}
    known = {one.name: one for one in collider.obstacles}
    if wanted.keys() != known.keys() or any(known[name].shape != one.shape for name, one in wanted.items()):
        return False
    for name, one in wanted.items():
        if not np.array_equal(known[name].pose.matrix, one.pose.matrix):
            collider.move(name, one.pose)
    return True


def check_watchable(table: Table, collisions: Collisions) -> None:
    """Refuse what is too large to be looked after."""
    bodies = sum(bool(link.collisions) for link in table.mechanism.links.values()) + len(collisions.obstacles)
    if bodies > MOST_BODIES:
        raise Refused(f"there are {bodies} links and obstacles that could bump; at most {MOST_BODIES} are looked after")


def check_own_shapes(table: Table) -> None:
    """Refuse meshes that came from a page: no solver may look for their files on this machine."""
    if table.may_read:
        return
    for name, link in table.mechanism.links.items():
        if any(isinstance(placed.shape, Mesh) for placed in link.collisions):
            raise Refused(
                f"link {name!r} bumps with a mesh that came with the page: what it hits is shown, but can be avoided "
                "only from a program, or with boxes and capsules in its place"
            )


class Keeper:
    """Makes the collider of what a solver has to keep off, and keeps it as long as only obstacles move."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._kept: tuple[Collisions, Collider] | None = None

    def of(self, wanted: Collisions) -> Collider | None:
        """Who knows how near everything is that is to be avoided; None if nothing is."""
        if wanted.mode != "avoid":
            return None
        if self._kept is not None and self._kept[0].is_like(wanted) and moved(self._kept[1], wanted.obstacles):
            self._kept = wanted, self._kept[1]
        else:
            check_watchable(self._table, wanted)
            check_own_shapes(self._table)
            with said_to_people():
                self._kept = wanted, wanted.collider(self._table.mechanism)
        return self._kept[1]
