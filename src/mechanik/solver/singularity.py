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
    "change point": "loops lose rank, and it can go on in several ways",
    "dead point": "the drives do not determine the rest",
    "lost direction": "the goals cannot be moved some way",
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
        least = MIN_REPORTED_MOTION * max(map(abs, self.motion.values()), default=0.0)
        moves = ", ".join(f"{name} {amount:+.2g}" for name, amount in self.motion.items() if abs(amount) >= least)
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
        return tuple(part.kind for part in self.directions if part.nearness < self.tolerance)

    @property
    def nearness(self) -> float:
        """Smallest nearness of all directions; 1 if there are none."""
        return min((part.nearness for part in self.directions), default=1.0)

    def direction(self, kind: SingularityKind) -> SingularDirection | None:
        """Return the direction of a kind, or None."""
        return next((part for part in self.directions if part.kind == kind), None)

    def __repr__(self) -> str:
        if self.unknown:
            return f"<neither singular nor regular: {self.unknown}>"
        if not self:
            return f"<regular, nearness {self.nearness:.2g}>"
        return f"<singular: {'; '.join(repr(part)[1:-1] for part in self.directions if part.kind in self.kinds)}>"


def find_singularity(mechanism: Mechanism, objectives: Sequence[Objective], q: Array, active: Mask) -> Singularity:
    """Analyse the singularities of a configuration.

    Args:
        mechanism: the mechanism.
        objectives: required joint values are inputs, and all other required objectives are goals. Without joint values
            the inputs are those that `mk.structure` chooses.
        q: configuration, (nq,).
        active: mask of the dofs that may move, (nv,).
    """
    here = closed_first_order_motions(mechanism, q, active)
    if any(np.abs(one.residual).max(initial=0.0) > 1e-6 for one in here.constraints):
        return Singularity(unknown="its loops stand open, or its laws do not hold")
    if not here.can_move.any():
        return Singularity()
    seen = analyse_structure(mechanism, here.q, active)
    required = [one for one in objectives if one.required]
    driving = [one for one in required if isinstance(one, JointValues)]
    goals = [one for one in required if not isinstance(one, JointValues)]
    parts = [_change_point(mechanism, seen)] if len(seen.here.A) else []
    at_change = bool(parts) and parts[0] is not None and parts[0].nearness < SINGULAR_RATIO
    if not at_change and (driving or seen.here.constraints):
        rows = _rows_of(mechanism, driving) if driving else _rows_of_drives(mechanism, seen)
        parts.append(_loss(mechanism, seen, "dead point", rows))
    if goals:
        parts.append(_loss(mechanism, seen, "lost direction", _rows_of(mechanism, goals)))
    return Singularity(tuple(part for part in parts if part is not None))


def _change_point(mechanism: Mechanism, seen: StructureAnalysis) -> SingularDirection | None:
    """Return the direction of the singular value of the loop constraints that vanishes only at a change point."""
    if not seen.rank:
        return None
    _, sizes, vt = np.linalg.svd(seen.here.A)
    sizes = np.concatenate([sizes, np.zeros(max(0, seen.rank - len(sizes)))])
    k = seen.rank - 1
    return _part(mechanism, "change point", float(sizes[k] / sizes[0]) if sizes[0] > 0.0 else 0.0, vt[k], seen.here)


def _loss(
    mechanism: Mechanism, seen: StructureAnalysis, kind: SingularityKind, rows: Callable[[FirstOrderMotions], Array]
) -> SingularDirection | None:
    """Compare the rank of rows, over the motions that loops allow, with their rank at nearby configurations."""

    def over_ways(at: FirstOrderMotions) -> tuple[Array, Array, Array]:
        J = rows(at) * at.unit
        # inputs need not determine idle motions, but a goal may need them
        ways = remove_directions(at.basis(), seen.idle_basis(at)) if kind == "dead point" else at.basis()
        return J, J @ ways, ways

    usual = 0
    for at in (seen.here, *seen.neighbours):
        J, moved, _ = over_ways(at)
        usual = max(usual, numerical_rank(moved, MIN_PARTICIPATION * _largest(J) / max(_largest(moved), 1e-300)))
    if not usual:
        return None
    J, moved, ways = over_ways(seen.here)
    _, sizes, vt = np.linalg.svd(moved)
    return _part(mechanism, kind, float(sizes[usual - 1]) / _largest(J), ways @ vt[usual - 1], seen.here)


def _largest(J: Array) -> float:
    return float(np.linalg.svd(J, compute_uv=False)[0]) if J.size else 0.0


def _rows_of(mechanism: Mechanism, objectives: Sequence[Objective]) -> Callable[[FirstOrderMotions], Array]:
    """Return the Jacobian of all exact residuals, lengths divided by the characteristic length.

    Residuals with bands are left out, since they are not always active.
    """

    def rows(at: FirstOrderMotions) -> Array:
        found = [np.zeros((0, mechanism.nv))]
        for objective in objectives:
            for relation in objective.relations(mechanism):
                if relation.lower is None and relation.upper is None:
                    _, J = evaluate_relation(mechanism, relation, at.q)
                    found.append(
                        J
                        / np.where(length_row_mask(mechanism, relation, len(J)), at.characteristic_length, 1.0)[:, None]
                    )
        return np.concatenate(found)

    return rows


def _rows_of_drives(mechanism: Mechanism, seen: StructureAnalysis) -> Callable[[FirstOrderMotions], Array]:
    """Return a dimensionless row for each input that the structure analysis chose."""
    chosen = np.eye(mechanism.nv)[seen.inputs]

    def rows(at: FirstOrderMotions) -> Array:
        return chosen / at.unit[seen.inputs][:, None]

    return rows


def _part(
    mechanism: Mechanism, kind: SingularityKind, nearness: float, motion: Array, at: FirstOrderMotions
) -> SingularDirection:
    named = {
        name: float(amount * unit)
        for name, amount, unit in zip(mechanism.space.v_names, motion, at.unit, strict=True)
        if abs(amount) > MIN_PARTICIPATION
    }
    return SingularDirection(kind, nearness, MappingProxyType(named))
