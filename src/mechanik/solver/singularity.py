"""Singularity analysis of a configuration: the kind of singularity, how near it is, and the joint motion at it.

A configuration is singular if one of the three matrices below has a lower rank than at nearby configurations with
closed loops. Lengths are divided by the characteristic length of the mechanism. The kinds are types 1 and 2 of
C. Gosselin and J. Angeles, "Singularity analysis of closed-loop kinematic chains", IEEE Transactions on Robotics and
Automation 6(3) (1990), and the change points of linkages:

    change point     the loop constraints lose rank: several branches of motion meet at this configuration
    dead point       the inputs do not determine the other joints: links move while the inputs are fixed (type 2)
    lost direction   the Jacobian of the goals loses rank: the links of the goals cannot move in one direction (type 1)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from mechanik.model import Mechanism
from mechanik.model.linearized_constraints import (
    MIN_PARTICIPATION,
    LinearizedSystem,
    Mask,
    linearize_closed_system,
    numerical_rank,
    remove_directions,
)
from mechanik.model.mobility import StructureAnalysis, analyse_structure
from mechanik.objectives import JointValues, Objective
from mechanik.objectives.objective import length_row_mask
from mechanik.objectives.relation import evaluate_relation
from mechanik.spatial.array import Array
from mechanik.value_object import ValueObject

SingularityKind = Literal["change point", "dead point", "lost direction"]

SINGULAR_RATIO = 2e-3
"""Ratio to the largest singular value; singular values below it count as zero. At a stretched arm or a dead point the
error of a goal grows with the square of the motion, so a goal that is met within 1e-6 determines the configuration only
to 1e-3.
"""
MIN_REPORTED_MOTION = 0.05
"""Ratio to the largest joint motion; smaller motions are not shown in messages."""

_DESCRIPTIONS: dict[SingularityKind, str] = {
    "change point": "the loop constraints lose rank, and several branches of motion meet here",
    "dead point": "the inputs do not determine the pose",
    "lost direction": "the goals cannot move in one direction",
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SingularDirection(ValueObject):
    """Joint motion of a kind of singularity, and how near the configuration is to this kind.

    Attributes:
        kind: kind of singularity.
        singular_value_ratio: the singular value that is zero at this kind of singularity, divided by the largest: 0 at
            a singular configuration, larger far from a singularity.
        motion: velocity of each dof that takes part, by name, rad/s and m/s, with arbitrary scale. Change point: the
            motion that the loops allow only there. Dead point: the motion with fixed inputs. Lost direction: the motion
            that does not change the goals.
    """

    kind: SingularityKind
    singular_value_ratio: float
    motion: Mapping[str, float]

    def __repr__(self) -> str:
        threshold = MIN_REPORTED_MOTION * max(map(abs, self.motion.values()), default=0.0)
        motion_text = ", ".join(
            f"{name} {amount:+.2g}" for name, amount in self.motion.items() if abs(amount) >= threshold
        )
        ratio_text = f"singular value ratio {self.singular_value_ratio:.2g}"
        return f"<{self.kind}: {_DESCRIPTIONS[self.kind]} ({ratio_text}); moves {motion_text}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Singularity(ValueObject):
    """Result of a singularity analysis; in a boolean context, whether the configuration is singular.

    It is also false if the configuration could not be analysed (see `unknown`).

    Attributes:
        directions: an entry for each kind that was analysed, also if the configuration is regular.
        tolerance: values of `singular_value_ratio` below it count as singular.
        unknown: reason why the configuration cannot be analysed, for example a loop that is not closed; else empty.
    """

    directions: tuple[SingularDirection, ...] = ()
    tolerance: float = SINGULAR_RATIO
    unknown: str = ""

    def __bool__(self) -> bool:
        return bool(self.kinds)

    @property
    def kinds(self) -> tuple[SingularityKind, ...]:
        """Kinds of singularity of the configuration."""
        return tuple(direction.kind for direction in self.directions if direction.singular_value_ratio < self.tolerance)

    @property
    def singular_value_ratio(self) -> float:
        """Smallest ratio of all directions: 0 at a singular configuration; 1 if there are no directions."""
        return min((direction.singular_value_ratio for direction in self.directions), default=1.0)

    def direction(self, kind: SingularityKind) -> SingularDirection | None:
        """Return the entry for a kind of singularity, or None if that kind was not analysed."""
        return next((direction for direction in self.directions if direction.kind == kind), None)

    def __repr__(self) -> str:
        if self.unknown:
            return f"<not analysed: {self.unknown}>"
        if not self:
            return f"<regular, singular value ratio {self.singular_value_ratio:.2g}>"
        texts = [repr(direction)[1:-1] for direction in self.directions if direction.kind in self.kinds]
        return f"<singular: {'; '.join(texts)}>"


def find_singularity(mechanism: Mechanism, objectives: Sequence[Objective], q: Array, active: Mask) -> Singularity:
    """Return the kinds of singularity of a configuration, and how far it is from each kind.

    Args:
        mechanism: the mechanism, with its closures.
        objectives: required `JointValues` objectives define the inputs, and all other required objectives are goals.
            Without `JointValues` the inputs are those that `mk.structure` selects.
        q: configuration, (nq,).
        active: mask of the dofs that may move, (nv,).
    """
    system = linearize_closed_system(mechanism, q, active)
    if any(np.abs(constraint.residual).max(initial=0.0) > 1e-6 for constraint in system.constraints):
        return Singularity(unknown="a loop is not closed, or a joint constraint does not hold")
    if not system.can_move.any():
        return Singularity()
    structure = analyse_structure(mechanism, system.q, active)
    required_objectives = [objective for objective in objectives if objective.required]
    inputs = [objective for objective in required_objectives if isinstance(objective, JointValues)]
    goals = [objective for objective in required_objectives if not isinstance(objective, JointValues)]
    directions = [_change_point_direction(mechanism, structure)] if len(structure.system_at_q.A) else []
    is_change_point = (
        bool(directions) and directions[0] is not None and directions[0].singular_value_ratio < SINGULAR_RATIO
    )
    if not is_change_point and (inputs or structure.system_at_q.constraints):
        jacobian_at = _residual_jacobian(mechanism, inputs) if inputs else _input_jacobian(mechanism, structure)
        directions.append(_rank_loss_direction(mechanism, structure, "dead point", jacobian_at))
    if goals:
        directions.append(
            _rank_loss_direction(mechanism, structure, "lost direction", _residual_jacobian(mechanism, goals))
        )
    return Singularity(tuple(direction for direction in directions if direction is not None))


def _change_point_direction(mechanism: Mechanism, structure: StructureAnalysis) -> SingularDirection | None:
    """Return the right singular vector of the loop constraints whose singular value is zero only at change points."""
    rank = structure.rank
    if not rank:
        return None
    _, singular_values, Vt = np.linalg.svd(structure.system_at_q.A)
    # if there are fewer singular values than the generic rank, the missing values are zero
    singular_values = np.concatenate([singular_values, np.zeros(max(0, rank - len(singular_values)))])
    k = rank - 1
    ratio = float(singular_values[k] / singular_values[0]) if singular_values[0] > 0.0 else 0.0
    return _make_direction(mechanism, "change point", ratio, Vt[k], structure.system_at_q)


def _rank_loss_direction(
    mechanism: Mechanism,
    structure: StructureAnalysis,
    kind: SingularityKind,
    jacobian_at: Callable[[LinearizedSystem], Array],
) -> SingularDirection | None:
    """Return the motion of the smallest singular value of a Jacobian that is not zero at nearby configurations.

    The Jacobian is restricted to motions that the loops allow. Return None if its rank is zero here and at nearby
    configurations.
    """

    def restrict_to_motions(system: LinearizedSystem) -> tuple[Array, Array, Array]:
        J = jacobian_at(system) * system.unit
        basis = system.basis()
        if kind == "dead point":  # no input determines idle motions (`mobility.py`), but a goal can depend on them
            basis = remove_directions(basis, structure.idle_basis(system))
        return J, J @ basis, basis

    generic_rank = 0
    for system in (structure.system_at_q, *structure.neighbours):
        J, J_reduced, _ = restrict_to_motions(system)
        rank_tolerance = (
            MIN_PARTICIPATION * _largest_singular_value(J) / max(_largest_singular_value(J_reduced), 1e-300)
        )
        generic_rank = max(generic_rank, numerical_rank(J_reduced, rank_tolerance))
    if not generic_rank:
        return None
    J, J_reduced, basis = restrict_to_motions(structure.system_at_q)
    _, singular_values, Vt = np.linalg.svd(J_reduced)
    k = generic_rank - 1
    ratio = float(singular_values[k]) / _largest_singular_value(J)
    return _make_direction(mechanism, kind, ratio, basis @ Vt[k], structure.system_at_q)


def _largest_singular_value(J: Array) -> float:
    return float(np.linalg.svd(J, compute_uv=False)[0]) if J.size else 0.0


def _residual_jacobian(mechanism: Mechanism, objectives: Sequence[Objective]) -> Callable[[LinearizedSystem], Array]:
    """Return a function that computes the Jacobian of all residuals without bands.

    Lengths are divided by the characteristic length. Residuals with bands (intervals of values that count as zero) are
    excluded, since they constrain the motion only at an edge of a band.
    """

    def jacobian(system: LinearizedSystem) -> Array:
        blocks = [np.zeros((0, mechanism.nv))]
        for objective in objectives:
            for relation in objective.relations(mechanism):
                if relation.lower is None and relation.upper is None:
                    _, J = evaluate_relation(mechanism, relation, system.q)
                    is_length = length_row_mask(mechanism, relation, len(J))
                    blocks.append(J / np.where(is_length, system.characteristic_length, 1.0)[:, None])
        return np.concatenate(blocks)

    return jacobian


def _input_jacobian(mechanism: Mechanism, structure: StructureAnalysis) -> Callable[[LinearizedSystem], Array]:
    """Return a function that computes the Jacobian of the inputs that the structure analysis selects."""
    selection = np.eye(mechanism.nv)[structure.inputs]

    def jacobian(system: LinearizedSystem) -> Array:
        # `_rank_loss_direction` multiplies the columns by the units, so the product is dimensionless
        return selection / system.unit[structure.inputs][:, None]

    return jacobian


def _make_direction(
    mechanism: Mechanism, kind: SingularityKind, ratio: float, motion: Array, system: LinearizedSystem
) -> SingularDirection:
    """Return a direction with its motion (nv,), converted from dimensionless values to rad and m."""
    velocities = {
        name: float(amount * unit)
        for name, amount, unit in zip(mechanism.space.v_names, motion, system.unit, strict=True)
        if abs(amount) > MIN_PARTICIPATION
    }
    return SingularDirection(kind, ratio, MappingProxyType(velocities))
