"""Objectives that aim at joint values, of which several may look the same."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal, Unpack

from mechanik.errors import ObjectiveError
from mechanik.mechanism import Mechanism
from mechanik.objectives.aims import Aim, near
from mechanik.objectives.objective import Definition, Error, Objective, Wish
from mechanik.objectives.relation import Relation
from mechanik.spatial.array import Array, ArrayLike

Turns = Literal["nearest", "exact"]
"""Whether an angle means the nearest of all that look the same, or counts full turns."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Aimed(Objective):
    """Its rows depend on where one comes from: `nearest` gives those to follow, and residual and error read them."""

    turns: Turns

    def __init__(self, turns: Turns, **wish: Unpack[Wish]) -> None:
        Objective.__init__(self, **wish)
        if turns not in ("nearest", "exact"):
            raise ObjectiveError(f"turns of {self._called} is 'nearest' or 'exact', not {turns!r}")
        object.__setattr__(self, "turns", turns)

    @abstractmethod
    def aims(self, mechanism: Mechanism) -> tuple[Aim, ...]:
        """What is aimed at, by joint; unknown names are refused here."""

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        """The rows, with every angle as it was given; see `nearest`."""
        return tuple(aim.relation for aim in self.aims(mechanism))

    def nearest(
        self, mechanism: Mechanism, q: ArrayLike, lower: Array | None = None, upper: Array | None = None
    ) -> tuple[Relation, ...]:
        """The rows as they should be followed from q (nq,): see `turns`.

        Args:
            lower, upper: (nq,); the limits of the mechanism if not given.
        """
        if self.turns == "exact":
            return self.relations(mechanism)
        return near(mechanism, self.aims(mechanism), mechanism._one(q), lower, upper)

    def error(self, mechanism: Mechanism, q: ArrayLike) -> Error:
        return _Rows(self.nearest(mechanism, q)).error(mechanism, q)

    def _rows(self, mechanism: Mechanism, q: ArrayLike, definition: Definition) -> tuple[Array, Array]:
        if definition != "mechanik":
            return Objective._rows(self, mechanism, q, definition)
        return _Rows(self.nearest(mechanism, q))._rows(mechanism, q, definition)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows(Objective):
    """Rows that are known already, to be read as those of any objective."""

    found: tuple[Relation, ...]

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        return self.found
