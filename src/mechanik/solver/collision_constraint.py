"""Collision constraint of a solver: a collider with a clearance, and functions that check configurations against it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from mechanik.errors import LimitsError, ObjectiveError
from mechanik.model import Mechanism
from mechanik.objectives.clearance import CLEARANCE_TOLERANCE, Clearance
from mechanik.spatial.array import Array
from mechanik.validation import as_number

if TYPE_CHECKING:
    from mechanik.collision import Collider, Contact, Obstacle

Avoid: TypeAlias = "Collider | Obstacle | str | Iterable[Obstacle | str]"
"""What to avoid: a `Collider`, or what a new collider checks: "self" and obstacles."""
Mask = npt.NDArray[np.bool_]
AvoidAs = Literal["limit", "cost"]
"""Whether the clearance is a constraint above the goals or a cost that is weighed against them."""


@dataclass(frozen=True, slots=True, eq=False)
class CollisionConstraint:
    """Clearance that a solver keeps between the pairs of a collider.

    Attributes:
        collider: computes distances; its obstacles may move.
        clearance: desired distance, m.
        is_cost: whether the clearance is weighed against the goals; then only a collision prevents success.
        objective: the same clearance as an objective.
    """

    collider: Collider
    clearance: float
    is_cost: bool
    objective: Clearance

    @property
    def required_clearance(self) -> float:
        """Smallest distance in a successful solution, m: the clearance, or 0 if the clearance is a cost."""
        return 0.0 if self.is_cost else self.clearance

    def is_free(self, q: Array) -> bool:
        """Return whether q (nq,) keeps the required clearance."""
        return bool(self.collider.is_free(q, self.required_clearance - CLEARANCE_TOLERANCE))

    def are_free(self, q: Array) -> Mask:
        """Return for each configuration of q (K, nq) whether it keeps the required clearance, (K,)."""
        return np.asarray(self.collider.is_free(q, self.required_clearance - CLEARANCE_TOLERANCE))

    def distances(self, q: Array) -> Array:
        """Return the smallest distance (m) at each configuration of q (K, nq), (K,); negative in collision."""
        return np.asarray(self.collider.distance(q))

    def contacts(self, q: Array, margin: float = -CLEARANCE_TOLERANCE) -> tuple[Contact, ...]:
        """Return the pairs at q (nq,) that are closer than the required clearance plus `margin` (m), deepest first."""
        return self.collider.contacts(q, self.required_clearance + margin)

    def solver_arguments(self) -> dict[str, Any]:
        """Return the arguments of `Solver` that define the same constraint."""
        avoid_as = "cost" if self.is_cost else "limit"
        return {"avoid": self.collider, "clearance": self.clearance, "avoid_as": avoid_as}

    def fingerprint_data(self) -> object:
        """Return all data of the constraint that solutions depend on, for the fingerprint of a batch."""
        return (
            self.clearance,
            self.is_cost,
            self.objective.level,
            self.objective.weight,
            self.collider.fingerprint_data(),
        )


def make_collision_constraint(
    mechanism: Mechanism,
    avoid: Avoid,
    clearance: float,
    allow: Iterable[tuple[str, str]],
    forbid: Iterable[tuple[str, str]],
    avoid_as: AvoidAs,
    level: int,
    has_levels: bool,
) -> CollisionConstraint:
    """Make the collision constraint of a solver from the arguments of `Solver`.

    Args:
        mechanism: the mechanism.
        avoid, clearance, allow, forbid, avoid_as: as for `Solver`.
        level: priority level of the most important goal; a clearance with `avoid_as="cost"` has the same level.
        has_levels: whether the method supports priority levels. If not, a clearance with `avoid_as="limit"` has the
            level of the goals too, and the solver rejects configurations in collision after the solve.

    Raises:
        LimitsError: for a negative clearance with `avoid_as="cost"`.
        ObjectiveError: if `avoid_as` is neither "limit" nor "cost".
    """
    if not isinstance(avoid_as, str) or avoid_as not in ("limit", "cost"):
        raise ObjectiveError(f"avoid_as must be 'limit' or 'cost', not {avoid_as!r}")
    clearance_m = as_number(clearance, "clearance")
    if avoid_as == "cost" and clearance_m < 0.0:
        raise LimitsError(f"clearance with avoid_as='cost' must be 0 m or more, not {clearance_m:g} m")
    objective_options: dict[str, Any] = {
        "name": "clearance",
        "level": 0 if has_levels and avoid_as == "limit" else level,
    }
    if avoid_as == "cost":
        # met if nothing collides, since the tolerance is the clearance; the residual is measured from the full
        # clearance
        objective_options |= {
            "tolerance": max(clearance_m, CLEARANCE_TOLERANCE),
            "angle_tolerance": max(clearance_m, CLEARANCE_TOLERANCE),
        }
    objective = Clearance(avoid, clearance_m, allow=allow, forbid=forbid, **objective_options)
    collider = objective.collider(mechanism)
    if avoid_as == "limit":
        from mechanik.collision.collider import warn_of_always_close_pairs

        warn_of_always_close_pairs(collider, clearance_m)
    return CollisionConstraint(collider, clearance_m, avoid_as == "cost", objective)
