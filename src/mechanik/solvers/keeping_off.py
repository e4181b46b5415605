"""What a solver has to keep off, how far, and whether it does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from mechanik.errors import LimitsError, ObjectiveError, StructureError, WrongKind
from mechanik.mechanism import Mechanism
from mechanik.mechanism.door import as_number
from mechanik.objectives.clearance import TOUCHING, Clearance
from mechanik.spatial.array import Array

if TYPE_CHECKING:
    from mechanik.collision import Clash, Collider, Obstacle

Avoid: TypeAlias = "Collider | Obstacle | str | Iterable[Obstacle | str]"
"""What must not be bumped into: a `Collider`, or what makes one: "self" and obstacles."""
Mask = npt.NDArray[np.bool_]
AvoidAs = Literal["limit", "cost"]


@dataclass(frozen=True, slots=True, eq=False)
class KeepingOff:
    """
    Attributes:
        collider: who knows what bumps; its obstacles may be moved.
        clearance: m, that is aimed at.
        is_cost: whether more than that nothing bumps is weighed against the goals.
        objective: the same as something that can be asked of a solver.
    """

    collider: Collider
    clearance: float
    is_cost: bool
    objective: Clearance

    @property
    def needed(self) -> float:
        """m, without which nothing is a success: the clearance, or 0 where that is only a cost."""
        return 0.0 if self.is_cost else self.clearance

    def is_free(self, q: Array) -> bool:
        """Whether nothing bumps at q (nq,)."""
        return bool(self.collider.is_free(q, self.needed - TOUCHING))

    def are_free(self, q: Array) -> Mask:
        """(K,) whether nothing bumps at each of q (K, nq)."""
        return np.asarray(self.collider.is_free(q, self.needed - TOUCHING))

    def gaps(self, q: Array) -> Array:
        """(K,) the smallest gap at each of q (K, nq), m; below 0 it is a depth."""
        return np.asarray(self.collider.distance(q))

    def clashes(self, q: Array, beyond: float = -TOUCHING) -> tuple[Clash, ...]:
        """What bumps at q (nq,), the deepest first; or comes as near as `beyond` (m) to that."""
        return self.collider.clashes(q, self.needed + beyond)

    def arguments(self) -> dict[str, Any]:
        """What makes a solver keep off the same."""
        avoid_as = "cost" if self.is_cost else "limit"
        return {"avoid": self.collider, "clearance": self.clearance, "avoid_as": avoid_as}

    def asked(self) -> object:
        """All that answers depend on, for the fingerprint of a batch."""
        return self.clearance, self.is_cost, self.objective.level, self.objective.weight, self.collider.asked()


def keeping_off(
    mechanism: Mechanism,
    avoid: Avoid,
    clearance: float,
    allow: Iterable[tuple[str, str]],
    forbid: Iterable[tuple[str, str]],
    avoid_as: AvoidAs,
    level: int,
    has_levels: bool,
) -> KeepingOff:
    """
    Args:
        level: of the most important goal, at which a cost is weighed.
        has_levels: whether the method knows levels; if not, the limit is weighed too, and what bumps is refused.
    """
    if avoid_as not in ("limit", "cost"):
        raise ObjectiveError(f"avoid_as is 'limit' or 'cost', not {avoid_as!r}")
    distance = as_number(clearance, "clearance")
    if avoid_as == "cost" and distance < 0.0:
        raise LimitsError(f"as a cost, clearance cannot be below 0, but is {distance:g}")
    wish: dict[str, Any] = {"name": "clearance", "level": 0 if has_levels and avoid_as == "limit" else level}
    if avoid_as == "cost":  # met as soon as nothing bumps; as long as something does, more is aimed at
        wish |= {"tolerance": max(distance, TOUCHING), "angle_tolerance": max(distance, TOUCHING)}
    objective = Clearance(avoid, distance, allow=allow, forbid=forbid, **wish)
    collider = objective.collider(mechanism)
    if avoid_as == "limit":
        from mechanik.collision.tight import warn_of_tight_pairs

        warn_of_tight_pairs(collider, distance)
    return KeepingOff(collider, distance, avoid_as == "cost", objective)


def check_alone(mechanism: object, avoid: object, clearance: float, *rules: Iterable[tuple[str, str]]) -> None:
    """Refuse what makes sense only with something to avoid, and avoiding without a mechanism."""
    if avoid is None and (clearance != 0.0 or any(tuple(rule) for rule in rules)):
        raise WrongKind("clearance, allow and forbid need something to keep off: give avoid=, as in avoid=['self']")
    if avoid is not None and not isinstance(mechanism, Mechanism):
        raise StructureError("avoid= takes a mechanism; make one of the frames with Mechanism(roots)")
