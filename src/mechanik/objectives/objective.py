"""Base class of all objectives: a residual that should be zero, with a weight, a priority level and tolerances."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Literal, Self, TypedDict

import numpy as np

from mechanik.errors import InvalidArgument, ObjectiveError, UnknownName
from mechanik.model.frame import Link
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.objectives.target_spec import TargetSpec
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number
from mechanik.value_object import ValueObject

if TYPE_CHECKING:
    from mechanik.model import Mechanism
    from mechanik.spatial import Pose

ResidualDefinition = Literal["mechanik", "klampt"]
"""Definition of the residual: as in Mechanik, or as in Klampt's IK functions."""


@dataclass(frozen=True, slots=True)
class ErrorNorms:
    """Error of an objective or a closure: the largest distance (m) and the largest angle (rad) of its relations.

    Attributes:
        position: m; 0 if the residual has no length.
        rotation: rad; 0 if the residual has no angle. Cosines and the values of Python functions count as angles,
            except the distances of a `Clearance`, which are lengths.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> goal = mk.PoseGoal("tool", position=(0.8, 0.1, 0.0), wxyz=(1.0, 0.0, 0.0, 0.0))
        >>> print(goal.error(arm, [0.2, -0.1]))
        0.0314 m, 0.1 rad
    """

    position: float
    rotation: float

    def __str__(self) -> str:
        parts = ((self.position, "m"), (self.rotation, "rad"))
        return ", ".join(f"{value:.3g} {unit}" for value, unit in parts if value) or "0 m"


class ObjectiveOptions(TypedDict, total=False):
    """Keyword arguments that every objective takes; `Objective` describes them."""

    weight: float
    level: int
    tolerance: float
    angle_tolerance: float
    required: bool
    name: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Objective(ValueObject, ABC):
    """Base class of all objectives.

    Objectives are immutable values: they are equal if they are of the same class and have the same fields, they can be
    members of sets, copied and pickled, and `save_objectives` writes them to a file.

    Attributes:
        weight: factor of the residual, above zero. If the objectives of a level cannot all be met, the default method
            minimises the sum of (weight * residual)^2, with residuals in m and rad. The results of `residual` and
            `error` do not depend on it.
        level: priority; 0 is the highest. A level moves only in the null space of the levels above it.
        tolerance: m; the objective counts as met up to this position error.
        angle_tolerance: rad; the same for rotation errors.
        required: whether success depends on this objective. False for soft objectives such as a rest pose.
        name: label for messages, and the key by which `solve` takes a new target for this objective.

    Raises:
        ObjectiveError: the weight or a tolerance is not above zero, or the level is not an integer of 0 or more.
        InvalidArgument: the name is not a string, or `required` is not True or False.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> goal = mk.PositionGoal("tool", (0.5, 0.3, 0.0), tolerance=1e-4)
        >>> goal.residual(arm, [0.0, 0.0]).round(3).tolist()
        [0.3, -0.3, 0.0]
    """

    weight: float = 1.0
    level: int = 1
    tolerance: float = 1e-6
    angle_tolerance: float = 1e-6
    required: bool = True
    name: str = ""

    def __post_init__(self) -> None:
        for field in ("weight", "tolerance", "angle_tolerance"):
            number = as_number(getattr(self, field), f"{field} of {self._label}")
            if number <= 0.0:
                raise ObjectiveError(f"{field} of {self._label} must be above zero, not {number:g}")
            object.__setattr__(self, field, number)
        try:
            level = index(self.level)
        except TypeError:
            raise ObjectiveError(f"level of {self._label} must be an integer, not {self.level!r}") from None
        if level < 0:
            raise ObjectiveError(f"level of {self._label} is {level}; it must be 0 (the highest priority) or more")
        object.__setattr__(self, "level", level)
        if not isinstance(self.name, str) or not isinstance(self.required, bool):
            raise InvalidArgument(
                f"name must be a string, and required must be True or False, not {self.name!r} and {self.required!r}"
            )

    @abstractmethod
    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        """Return the relations whose residuals should be zero.

        Raises:
            UnknownName: the mechanism has no link or joint of a given name.
        """

    @property
    def target_spec(self) -> TargetSpec | None:
        """Declaration of the target: its shapes, its forms and its numbers; None if it is not declared.

        An objective of your own works without it, as long as it has `with_target`. With it, batches check the shapes of
        targets; and if its relations have `target_writes`, new targets are written without new relations.
        """
        return None

    @property
    def has_target(self) -> bool:
        """Whether `with_target` takes new targets."""
        return type(self).with_target is not Objective.with_target

    @property
    def takes_names(self) -> bool:
        """Whether a mapping is a target of this objective; else it gives targets by the names of objectives."""
        spec = self.target_spec
        return spec is not None and spec.takes_names

    def with_target(self, target: ArrayLike | Pose) -> Self:
        """Return the same objective with another target.

        Raises:
            ObjectiveError: this kind of objective has no target.
        """
        raise ObjectiveError(f"{self._label} has no target to replace; create a new objective instead")

    def residual(self, mechanism: Mechanism, q: ArrayLike, definition: ResidualDefinition = "mechanik") -> Array:
        """Return the unweighted residual (m,), in m and rad.

        A row is zero where it meets its target value or lies inside its band.

        Args:
            mechanism: the mechanism with the links and joints of the objective.
            q: one configuration, (nq,).
            definition: "klampt" gives the residual of Klampt's IK functions, for `LinkGoal` only.

        Raises:
            ObjectiveError: the objective has no residual of this definition.
        """
        return self._residual_and_jacobian(mechanism, q, definition)[0]

    def jacobian(self, mechanism: Mechanism, q: ArrayLike, definition: ResidualDefinition = "mechanik") -> Array:
        """Return the Jacobian of the residual, (m, nv): its derivative by a step v of `mechanism.integrate`.

        Args:
            mechanism: the mechanism with the links and joints of the objective.
            q: one configuration, (nq,).
            definition: as in `residual`.

        Raises:
            ObjectiveError: the objective has no residual of this definition.
        """
        return self._residual_and_jacobian(mechanism, q, definition)[1]

    def error(self, mechanism: Mechanism, q: ArrayLike) -> ErrorNorms:
        """Return the largest position error and the largest rotation error of the relations at q (nq,).

        Args:
            mechanism: the mechanism with the links and joints of the objective.
            q: one configuration, (nq,).
        """
        from mechanik.objectives.relation import band_violation, evaluate_relation

        position = rotation = 0.0
        for relation in self.relations(mechanism):
            violation = band_violation(relation, evaluate_relation(mechanism, relation, q)[0])
            is_length = length_row_mask(mechanism, relation, len(violation))
            position = max(position, math.hypot(*violation[is_length].tolist()))
            rotation = max(rotation, math.hypot(*violation[~is_length].tolist()))
        return ErrorNorms(position, rotation)

    @property
    def _label(self) -> str:
        """Class and name of the objective, for error messages."""
        kind = type(self).__name__
        return f"{kind} {self.name!r}" if self.name else kind

    def _residual_and_jacobian(
        self, mechanism: Mechanism, q: ArrayLike, definition: ResidualDefinition
    ) -> tuple[Array, Array]:
        if definition == "klampt":
            raise ObjectiveError(f"Klampt has no objective like {self._label}; use definition='mechanik'")
        if definition != "mechanik":
            raise ObjectiveError(f"definition must be 'mechanik' or 'klampt', not {definition!r}")
        from mechanik.objectives.relation import band_violation, evaluate_relation, is_band_active

        residuals, jacobians = [np.zeros(0)], [np.zeros((0, mechanism.nv))]
        for relation in self.relations(mechanism):
            values, J = evaluate_relation(mechanism, relation, q)
            residuals.append(band_violation(relation, values))
            jacobians.append(np.where(is_band_active(relation, values)[:, None], J, 0.0))
        return np.concatenate(residuals), np.concatenate(jacobians)


def residual(
    objectives: Objective | Iterable[Objective],
    mechanism: Mechanism,
    q: ArrayLike,
    definition: ResidualDefinition = "mechanik",
) -> Array:
    """Return the stacked residuals of several objectives, (m,), in m and rad, unweighted.

    Args:
        objectives: one objective or several.
        mechanism: the mechanism with the links and joints of the objectives.
        q: one configuration, (nq,).
        definition: as in `Objective.residual`.

    Raises:
        InvalidArgument: an item is not an objective.
        ObjectiveError: an objective has no residual of this definition.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> goals = [mk.PositionGoal("tool", (0.8, 0.1, 0.0)), mk.JointValues({"joint2": 0.5})]
        >>> mk.objectives.residual(goals, arm, [0.0, 0.2]).round(3).tolist()
        [-0.006, -0.04, 0.0, -0.3]
    """
    residuals = [objective.residual(mechanism, q, definition) for objective in as_objectives(objectives)]
    return np.concatenate([np.zeros(0), *residuals])


def jacobian(
    objectives: Objective | Iterable[Objective],
    mechanism: Mechanism,
    q: ArrayLike,
    definition: ResidualDefinition = "mechanik",
) -> Array:
    """Return the stacked Jacobians of several objectives, (m, nv).

    Args:
        objectives: one objective or several.
        mechanism: the mechanism with the links and joints of the objectives.
        q: one configuration, (nq,).
        definition: as in `Objective.residual`.

    Raises:
        InvalidArgument: an item is not an objective.
        ObjectiveError: an objective has no residual of this definition.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> mk.objectives.jacobian(mk.JointValues({"joint2": 0.5}), arm, [0.0, 0.2]).tolist()
        [[0.0, 1.0]]
    """
    jacobians = [objective.jacobian(mechanism, q, definition) for objective in as_objectives(objectives)]
    return np.concatenate([np.zeros((0, mechanism.nv)), *jacobians])


def as_objectives(objectives: Objective | Iterable[Objective]) -> tuple[Objective, ...]:
    """Return one objective or several as a tuple.

    Raises:
        InvalidArgument: an item is not an objective.
    """
    if isinstance(objectives, Objective):
        return (objectives,)
    if isinstance(objectives, str) or not isinstance(objectives, Iterable):
        raise InvalidArgument(f"{objectives!r} is not an objective, such as PositionGoal, PoseGoal or RestPose")
    items = tuple(objectives)
    for item in items:
        if not isinstance(item, Objective):
            raise InvalidArgument(f"{item!r} is not an objective, such as PositionGoal, PoseGoal or RestPose")
    return items


def length_row_mask(
    mechanism: Mechanism, relation: Relation, row_count: int
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return the mask (row_count,) of residual rows that are lengths; rows of functions count as angles."""
    if relation.kind is RelationKind.JOINT_VALUE:
        space = mechanism.space
        scalar_indices = np.flatnonzero(space.scalars_q == space.q_names.index(relation.dof_name))
        return np.full(row_count, not space.rotates[space.scalars_v[scalar_indices[0]]])
    if relation.kind is RelationKind.FUNCTION:
        return np.zeros(row_count, dtype=np.bool_)
    return np.array(relation.is_length, dtype=np.bool_)


def link_name(link: str | Link, role: str = "link") -> str:
    """Return the name of a link that is given by name or as a `Link`; objectives store names."""
    name = link.name if isinstance(link, Link) else link
    if not isinstance(name, str):
        raise InvalidArgument(f"{role} must be the name of a link or a Link, not {link!r}")
    if not name:
        raise ObjectiveError(f"{role} has no name; name the link first, since objectives store the names of links")
    return name


def check_link(mechanism: Mechanism, name: str) -> str:
    """Return `name` if the mechanism has a link of that name, else raise `UnknownName`."""
    if name not in mechanism.links:
        raise UnknownName("link", name, mechanism.links)
    return name
