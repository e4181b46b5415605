"""Singularity analysis of a configuration: which kind, how near, and which joints move there without effect.

A configuration is singular where a matrix loses rank relative to nearby configurations with closed loops. Lengths are
divided by the characteristic length of the mechanism. The kinds are those of C. Gosselin and J. Angeles, "Singularity
analysis of closed-loop kinematic chains", IEEE Transactions on Robotics and Automation 6(3) (1990), and the change
points of linkages:

    change point     the loop constraints lose rank: several branches of motion meet here
    dead point       the inputs do not determine the rest: links move while the inputs are fixed (their type 2)
    lost direction   the goals lose rank: a direction in which the goals usually can move is lost (their type 1)
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
    FirstOrderMotions,
    Mask,
    closed_first_order_motions,
    numerical_rank,
    remove_directions,
)
from mechanik.model.mobility import StructureAnalysis, analyse_structure
from mechanik.objectives import JointValues, Objective
from mechanik.objectives.objective import length_row_mask
from mechanik.objectives.relation import evaluate_relation
from mechanik.spatial.array import Array

SingularityKind = Literal["change point", "dead point", "lost direction"]

SINGULAR_RATIO = 2e-3
"""Singular values below this share of the largest count as zero. At a stretched arm or a dead point the error of a goal
grows with the square of the motion, so a goal that is met within 1e-6 determines the pose only to 1e-3.
"""
MIN_REPORTED_MOTION = 0.05
"""Motions below this share of the largest are not shown in messages."""

_DESCRIPTIONS: dict[SingularityKind, str] = {
    "change point": "the loop constraints lose rank, and several branches of motion meet here",
    "dead point": "the inputs do not determine the pose",
    "lost direction": "the goals cannot move in one direction",
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SingularDirection:
    """A direction in which a pose is singular or nearly singular.

    Attributes:
        kind: kind of singularity.
        nearness: the singular value that vanishes at a singular pose, divided by the largest.
        motion: velocity by dof, rad and m. Change point: the additional motion. Dead point: the motion with fixed
            inputs. Lost direction: the motion that does not change the goals.
    """

    kind: SingularityKind
    nearness: float
    motion: Mapping[str, float]

    def __repr__(self) -> str:
        threshold = MIN_REPORTED_MOTION * max(map(abs, self.motion.values()), default=0.0)
        moves = ", ".join(f"{name} {amount:+.2g}" for name, amount in self.motion.items() if abs(amount) >= threshold)
        return f"<{self.kind}: {_DESCRIPTIONS[self.kind]} (nearness {self.nearness:.2g}); moves {moves}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Singularity:
    """Singularities of a pose; False in a boolean context if the pose is regular.

    Attributes:
        directions: an entry for each kind that applies, also where the pose is regular.
        tolerance: a direction with a nearness below this is singular.
        unknown: why the pose cannot be analysed, for example because its loops are open; else empty.
    """

    directions: tuple[SingularDirection, ...] = ()
    tolerance: float = SINGULAR_RATIO
    unknown: str = ""

    def __bool__(self) -> bool:
        return bool(self.kinds)

    @property
    def kinds(self) -> tuple[SingularityKind, ...]:
        """Kinds of singularity of the pose."""
        return tuple(direction.kind for direction in self.directions if direction.nearness < self.tolerance)

    @property
    def nearness(self) -> float:
        """Smallest nearness of all directions; 1 if there are none."""
        return min((direction.nearness for direction in self.directions), default=1.0)

    def direction(self, kind: SingularityKind) -> SingularDirection | None:
        """Return the direction of a kind, or None."""
        return next((direction for direction in self.directions if direction.kind == kind), None)

    def __repr__(self) -> str:
        if self.unknown:
            return f"<not analysed: {self.unknown}>"
        if not self:
            return f"<regular, nearness {self.nearness:.2g}>"
        texts = [repr(direction)[1:-1] for direction in self.directions if direction.kind in self.kinds]
        return f"<singular: {'; '.join(texts)}>"


def find_singularity(mechanism: Mechanism, objectives: Sequence[Objective], q: Array, active: Mask) -> Singularity:
    """Analyse the singularities of a configuration.

    Args:
        mechanism: the mechanism.
        objectives: required joint values are inputs, and all other required objectives are goals. Without joint values
            the inputs are those that `mk.structure` chooses.
        q: configuration, (nq,).
        active: mask of the dofs that may move, (nv,).
    """
    motions = closed_first_order_motions(mechanism, q, active)
    if any(np.abs(constraint.residual).max(initial=0.0) > 1e-6 for constraint in motions.constraints):
        return Singularity(unknown="a loop is not closed, or a joint constraint does not hold")
    if not motions.can_move.any():
        return Singularity()
    structure = analyse_structure(mechanism, motions.q, active)
    required = [objective for objective in objectives if objective.required]
    inputs = [objective for objective in required if isinstance(objective, JointValues)]
    goals = [objective for objective in required if not isinstance(objective, JointValues)]
    directions = [_change_point(mechanism, structure)] if len(structure.here.A) else []
    at_change = bool(directions) and directions[0] is not None and directions[0].nearness < SINGULAR_RATIO
    if not at_change and (inputs or structure.here.constraints):
        jacobian = _residual_jacobian(mechanism, inputs) if inputs else _input_jacobian(mechanism, structure)
        directions.append(_rank_loss(mechanism, structure, "dead point", jacobian))
    if goals:
        directions.append(_rank_loss(mechanism, structure, "lost direction", _residual_jacobian(mechanism, goals)))
    return Singularity(tuple(direction for direction in directions if direction is not None))


def _change_point(mechanism: Mechanism, structure: StructureAnalysis) -> SingularDirection | None:
    """Return the direction of the singular value of the loop constraints that vanishes only at a change point."""
    rank = structure.rank
    if not rank:
        return None
    _, singular_values, vt = np.linalg.svd(structure.here.A)
    singular_values = np.concatenate([singular_values, np.zeros(max(0, rank - len(singular_values)))])
    k = rank - 1
    nearness = float(singular_values[k] / singular_values[0]) if singular_values[0] > 0.0 else 0.0
    return _make_direction(mechanism, "change point", nearness, vt[k], structure.here)


def _rank_loss(
    mechanism: Mechanism,
    structure: StructureAnalysis,
    kind: SingularityKind,
    jacobian: Callable[[FirstOrderMotions], Array],
) -> SingularDirection | None:
    """Compare the rank of a Jacobian, over the motions that loops allow, with its rank at nearby configurations."""

    def over_motions(motions: FirstOrderMotions) -> tuple[Array, Array, Array]:
        J = jacobian(motions) * motions.unit
        basis = motions.basis()
        if kind == "dead point":  # inputs need not determine idle motions, but a goal may need them
            basis = remove_directions(basis, structure.idle_basis(motions))
        return J, J @ basis, basis

    generic_rank = 0
    for motions in (structure.here, *structure.neighbours):
        J, J_reduced, _ = over_motions(motions)
        rank_tolerance = (
            MIN_PARTICIPATION * _largest_singular_value(J) / max(_largest_singular_value(J_reduced), 1e-300)
        )
        generic_rank = max(generic_rank, numerical_rank(J_reduced, rank_tolerance))
    if not generic_rank:
        return None
    J, J_reduced, basis = over_motions(structure.here)
    _, singular_values, vt = np.linalg.svd(J_reduced)
    k = generic_rank - 1
    nearness = float(singular_values[k]) / _largest_singular_value(J)
    return _make_direction(mechanism, kind, nearness, basis @ vt[k], structure.here)


def _largest_singular_value(J: Array) -> float:
    return float(np.linalg.svd(J, compute_uv=False)[0]) if J.size else 0.0


def _residual_jacobian(mechanism: Mechanism, objectives: Sequence[Objective]) -> Callable[[FirstOrderMotions], Array]:
    """Return a function for the Jacobian of all exact residuals, lengths divided by the characteristic length.

    Residuals with bands are excluded, since they are not always active.
    """

    def jacobian(motions: FirstOrderMotions) -> Array:
        blocks = [np.zeros((0, mechanism.nv))]
        for objective in objectives:
            for relation in objective.relations(mechanism):
                if relation.lower is None and relation.upper is None:
                    _, J = evaluate_relation(mechanism, relation, motions.q)
                    is_length = length_row_mask(mechanism, relation, len(J))
                    blocks.append(J / np.where(is_length, motions.characteristic_length, 1.0)[:, None])
        return np.concatenate(blocks)

    return jacobian


def _input_jacobian(mechanism: Mechanism, structure: StructureAnalysis) -> Callable[[FirstOrderMotions], Array]:
    """Return a function for the dimensionless Jacobian of the inputs that the structure analysis chose."""
    selection = np.eye(mechanism.nv)[structure.inputs]

    def jacobian(motions: FirstOrderMotions) -> Array:
        return selection / motions.unit[structure.inputs][:, None]

    return jacobian


def _make_direction(
    mechanism: Mechanism, kind: SingularityKind, nearness: float, motion: Array, motions: FirstOrderMotions
) -> SingularDirection:
    """Return a direction with its motion (nv,), converted from dimensionless values to rad and m."""
    velocities = {
        name: float(amount * unit)
        for name, amount, unit in zip(mechanism.space.v_names, motion, motions.unit, strict=True)
        if abs(amount) > MIN_PARTICIPATION
    }
    return SingularDirection(kind, nearness, MappingProxyType(velocities))
