"""What can be wanted of a mechanism: something with rows that should be zero, a weight, a level and tolerances."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Literal, Self, TypedDict

import numpy as np

from mechanik.errors import ObjectiveError, WrongKind
from mechanik.mechanism.door import as_number
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from mechanik.mechanism import Mechanism
    from mechanik.spatial import Pose

Definition = Literal["mechanik", "klampt"]
"""Whose rows are read: ours, or those that Klampt's IK functions return."""


@dataclass(frozen=True, slots=True)
class Error:
    """How far an objective is from being fulfilled: the largest distance (m) and the largest angle (rad)."""

    position: float
    rotation: float

    def __str__(self) -> str:
        parts = ((self.position, "m"), (self.rotation, "rad"))  # a point has no turn to be off by, an axis no place
        return ", ".join(f"{off:.3g} {unit}" for off, unit in parts if off) or "0 m"


class Wish(TypedDict, total=False):
    """The arguments that every objective takes, by keyword; see `Objective`."""

    weight: float
    level: int
    tolerance: float
    angle_tolerance: float
    required: bool
    name: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Objective(ABC):
    """
    Attributes:
        weight: above zero; multiplies its rows in the solver, and nothing that a user reads.
        level: 0 is the most important; lower ones move only in what those above leave free.
        tolerance: m; how far off still counts as fulfilled.
        angle_tolerance: rad.
        required: whether success depends on it. A rest pose, for one, is a wish.
        name: for people.
    """

    weight: float = 1.0
    level: int = 1
    tolerance: float = 1e-6
    angle_tolerance: float = 1e-6
    required: bool = True
    name: str = ""

    def __post_init__(self) -> None:
        for field in ("weight", "tolerance", "angle_tolerance"):
            number = as_number(getattr(self, field), f"{field} of {self._called}")
            if number <= 0.0:
                raise ObjectiveError(f"{field} of {self._called} must be above zero, not {number:g}")
            object.__setattr__(self, field, number)
        try:
            level = index(self.level)
        except TypeError:
            raise ObjectiveError(f"level of {self._called} must be a whole number, not {self.level!r}") from None
        if level < 0:
            raise ObjectiveError(f"level of {self._called} is {level}, and the most important level is 0")
        object.__setattr__(self, "level", level)
        if not isinstance(self.name, str) or not isinstance(self.required, bool):
            raise WrongKind(f"name is a string and required True or False, not {self.name!r} and {self.required!r}")

    @abstractmethod
    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        """The rows that should be zero; unknown names are refused here."""

    def at(self, target: ArrayLike | Pose) -> Self:
        """The same wish for another target."""
        raise ObjectiveError(f"{self._called} has no target that could be another")

    def residual(self, mechanism: Mechanism, q: ArrayLike, definition: Definition = "mechanik") -> Array:
        """(m,), in m and rad, without weight; zero where it is fulfilled, and inside a band."""
        return self._rows(mechanism, q, definition)[0]

    def jacobian(self, mechanism: Mechanism, q: ArrayLike, definition: Definition = "mechanik") -> Array:
        """(m, nv), the derivative of the residual by a step v of `mechanism.integrate`."""
        return self._rows(mechanism, q, definition)[1]

    def error(self, mechanism: Mechanism, q: ArrayLike) -> Error:
        """The largest distance and the largest angle among its relations."""
        from mechanik.objectives.evaluate import evaluate, outside

        position = rotation = 0.0
        for relation in self.relations(mechanism):
            rows = outside(relation, evaluate(mechanism, relation, q)[0])
            metres = lengths(mechanism, relation, len(rows))
            position = max(position, float(np.linalg.norm(rows[metres])))
            rotation = max(rotation, float(np.linalg.norm(rows[~metres])))
        return Error(position, rotation)

    @property
    def _called(self) -> str:
        """For people, in errors."""
        kind = type(self).__name__
        return f"{kind} {self.name!r}" if self.name else kind

    def _rows(self, mechanism: Mechanism, q: ArrayLike, definition: Definition) -> tuple[Array, Array]:
        if definition == "klampt":
            raise ObjectiveError(f"{self._called} is not among Klampt's objectives, so it has no rows of Klampt's")
        if definition != "mechanik":
            raise ObjectiveError(f"definition is 'mechanik' or 'klampt', not {definition!r}")
        from mechanik.objectives.evaluate import counts, evaluate, outside

        residuals, jacobians = [np.zeros(0)], [np.zeros((0, mechanism.nv))]
        for relation in self.relations(mechanism):
            rows, J = evaluate(mechanism, relation, q)
            residuals.append(outside(relation, rows))
            jacobians.append(np.where(counts(relation, rows)[:, None], J, 0.0))
        return np.concatenate(residuals), np.concatenate(jacobians)


def residual(
    objectives: Objective | Iterable[Objective],
    mechanism: Mechanism,
    q: ArrayLike,
    definition: Definition = "mechanik",
) -> Array:
    """The residuals of several objectives, one below the other: (m,), in m and rad, without weights."""
    rows = [one.residual(mechanism, q, definition) for one in as_objectives(objectives)]
    return np.concatenate([np.zeros(0), *rows])


def jacobian(
    objectives: Objective | Iterable[Objective],
    mechanism: Mechanism,
    q: ArrayLike,
    definition: Definition = "mechanik",
) -> Array:
    """The Jacobians of several objectives, one below the other: (m, nv)."""
    rows = [one.jacobian(mechanism, q, definition) for one in as_objectives(objectives)]
    return np.concatenate([np.zeros((0, mechanism.nv)), *rows])


def as_objectives(objectives: Objective | Iterable[Objective]) -> tuple[Objective, ...]:
    """One or several, as a tuple; what is no objective is refused."""
    if isinstance(objectives, Objective):
        return (objectives,)
    if isinstance(objectives, str) or not isinstance(objectives, Iterable):
        raise WrongKind(f"{objectives!r} is no objective; a Point, a PoseGoal or a RestPose is one, for example")
    given = tuple(objectives)
    for one in given:
        if not isinstance(one, Objective):
            raise WrongKind(f"{one!r} is no objective; a Point, a PoseGoal or a RestPose is one, for example")
    return given


def lengths(mechanism: Mechanism, relation: Relation, rows: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """(rows,), for each row whether it is in metres."""
    if relation.kind is Kind.VALUE:
        space = mechanism.space
        at = np.flatnonzero(space.scalars_q == space.q_names.index(relation.freedom))
        return np.full(rows, not space.rotates[space.scalars_v[at[0]]])
    if relation.kind is Kind.FUNCTION:
        return np.zeros(rows, dtype=np.bool_)
    return np.array(relation.in_metres, dtype=np.bool_)
