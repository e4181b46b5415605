"""Everything that could bump keeps its distance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from mechanik.errors import StructureError, WrongKind
from mechanik.mechanism import Mechanism
from mechanik.mechanism.door import as_number, read_only
from mechanik.objectives.objective import Error, Objective, Wish
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from mechanik.collision import Collider, Obstacle

TOUCHING = 1e-9
"""m: what comes so much nearer than it should still keeps its distance."""
AHEAD = 0.2
"""m beyond the clearance: what is farther away than this has no say in where to go."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Clearance(Objective):
    """Links keep at least so far from each other and from obstacles: a row, m, for each pair that could come close.

    At level 0, where it stands if not said otherwise, nothing below it may be had at its price: a goal behind a wall is
    approached as far as the wall allows. At the level of the goals it is weighed against them.

    Args:
        avoid: a `Collider` of the mechanism, which may be shared and whose obstacles may be moved; or what it takes:
            "self" and obstacles.
        clearance: m; 0: nothing may bump. Below 0 so much depth is allowed.
        allow, forbid: as for `Collider`, if `avoid` is none.
    """

    avoid: object
    clearance: float
    _made: list[Collider]

    def __init__(
        self,
        avoid: Collider | str | Obstacle | Iterable[str | Obstacle] = "self",
        clearance: float = 0.0,
        *,
        allow: Iterable[tuple[str, str]] = (),
        forbid: Iterable[tuple[str, str]] = (),
        **wish: Unpack[Wish],
    ) -> None:
        asked: Wish = {"level": 0, "tolerance": TOUCHING, "angle_tolerance": TOUCHING}
        asked.update(wish)
        Objective.__init__(self, **asked)
        from mechanik.collision import Collider

        rules = tuple(allow), tuple(forbid)
        if isinstance(avoid, Collider) and any(rules):
            raise WrongKind("allow and forbid belong to the making of a Collider, and this one is made")
        given = avoid if isinstance(avoid, Collider) else (_listed(avoid), *rules)
        object.__setattr__(self, "avoid", given)
        object.__setattr__(self, "clearance", as_number(clearance, f"clearance of {self._called}"))
        object.__setattr__(self, "_made", [avoid] if isinstance(avoid, Collider) else [])

    def __repr__(self) -> str:
        return f"<{self._called} of {self.clearance:g} m>"

    def collider(self, mechanism: Mechanism) -> Collider:
        """What watches over the mechanism; made when it is first needed. It notices edits of the mechanism."""
        from mechanik.collision import Collider

        if isinstance(self.avoid, Collider):
            if self.avoid.mechanism is not mechanism:
                raise StructureError(f"{self._called}: its Collider watches over another mechanism")
            return self.avoid
        avoid, allow, forbid = cast("tuple[Any, Any, Any]", self.avoid)
        made = self._made
        if not made or made[-1].mechanism is not mechanism:
            made[:] = [Collider(mechanism, avoid, allow=allow, forbid=forbid)]
        return made[-1]

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        rows = Rows(self.collider(mechanism), self.clearance + AHEAD)
        size = len(rows.collider.row_names)
        lower, upper = read_only(np.full(size, self.clearance)), read_only(np.full(size, np.inf))
        return (
            Relation(
                Kind.FUNCTION, tuple(range(size)), function=rows, lower=lower, upper=upper, weight=self.weight
            ),
        )  # fmt: skip

    def error(self, mechanism: Mechanism, q: ArrayLike) -> Error:
        """How much nearer than they should the nearest two are, m."""
        gap = self.collider(mechanism).distance(q)
        return Error(max(0.0, self.clearance - float(gap)), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What the relation calls: gaps and their derivatives."""

    collider: Collider
    reach: float

    def __call__(self, mechanism: Mechanism, q: Array) -> tuple[Array, Array]:
        return self.collider.rows(q, self.reach)


def _listed(avoid: object) -> tuple[object, ...]:
    """One thing to avoid, or several, as a tuple, so that an iterator can be asked again."""
    if isinstance(avoid, str) or not isinstance(avoid, Iterable):
        return (avoid,)
    return tuple(cast("Iterable[object]", avoid))
