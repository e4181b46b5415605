"""Whether a solution stands at a singular pose: which kind, how near, and which joints move there without effect.

What is singular is less than usual, and what is usual is seen at shut configurations close by. Lengths are in sizes of
the mechanism. The kinds are those of C. Gosselin and J. Angeles, "Singularity analysis of closed-loop kinematic
chains", IEEE Transactions on Robotics and Automation 6(3) (1990), and the change points of linkages:

    change point     loops lose rank: from here it can go on in more ways than usual
    dead point       drives do not determine the rest: something moves while they stand still (their type 2)
    lost direction   goals lose rank: some way that is usually open, the goals cannot be moved (their type 1)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from mechanik.mechanism import Mechanism
from mechanik.mechanism.motions import WEAK, Mask, Motions, rank_of, without
from mechanik.mechanism.nearby import shut_motions
from mechanik.mechanism.structure import Analysis, analyse
from mechanik.objectives import JointValues, Objective
from mechanik.objectives.evaluate import evaluate
from mechanik.objectives.objective import lengths
from mechanik.spatial.array import Array

Kind = Literal["change point", "dead point", "lost direction"]

NEAR = 2e-3
"""A singular value below this share of the largest is as good as zero. At a stretched arm or a dead point the error of
a goal grows with the square of the way, so one that is met within 1e-6 leaves a pose open by 1e-3."""
SEEN = 0.05
"""What moves by less than this share of the largest is not named to people."""

_WORDS: dict[Kind, str] = {
    "change point": "loops lose rank, and it can go on in several ways",
    "dead point": "the drives do not determine the rest",
    "lost direction": "the goals cannot be moved some way",
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SingularPart:
    """One way in which a pose is singular, or nearly so.

    Attributes:
        kind: of singular pose.
        nearness: the singular value that is zero at a singular pose, over the largest.
        motion: by freedom, a velocity (rad, m) that comes for free there: of a change point the additional motion; of
            a dead point what moves while the drives stand still; of a lost direction what moves and leaves the goals.
    """

    kind: Kind
    nearness: float
    motion: Mapping[str, float]

    def __repr__(self) -> str:
        least = SEEN * max(map(abs, self.motion.values()), default=0.0)
        moves = ", ".join(f"{name} {amount:+.2g}" for name, amount in self.motion.items() if abs(amount) >= least)
        return f"<{self.kind}: {_WORDS[self.kind]} (nearness {self.nearness:.2g}); moves {moves}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Singular:
    """What is singular about a pose; false where nothing is.

    Attributes:
        parts: by kind; those that are not singular, too, for their nearness.
        tolerance: nearness below this is singular.
        unknown: why nothing can be said of the pose, as of one whose loops stand open; empty where something can.
    """

    parts: tuple[SingularPart, ...] = ()
    tolerance: float = NEAR
    unknown: str = ""

    def __bool__(self) -> bool:
        return bool(self.kinds)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """In which ways it is singular."""
        return tuple(part.kind for part in self.parts if part.nearness < self.tolerance)

    @property
    def nearness(self) -> float:
        """The smallest of all parts; 1 where there is none."""
        return min((part.nearness for part in self.parts), default=1.0)

    def part(self, kind: Kind) -> SingularPart | None:
        """What is said of one kind."""
        return next((part for part in self.parts if part.kind == kind), None)

    def __repr__(self) -> str:
        if self.unknown:
            return f"<neither singular nor regular: {self.unknown}>"
        if not self:
            return f"<regular, nearness {self.nearness:.2g}>"
        return f"<singular: {'; '.join(repr(part)[1:-1] for part in self.parts if part.kind in self.kinds)}>"


def singular_at(mechanism: Mechanism, objectives: Sequence[Objective], q: Array, active: Mask) -> Singular:
    """
    Args:
        objectives: of those that are required, joint values are drives, and all others are goals. Where no joint value
            is asked for, the drives are those that `mk.structure` chooses.
        active: (nv,), what may move.
    """
    here = shut_motions(mechanism, q, active)
    if any(np.abs(one.gap).max(initial=0.0) > 1e-6 for one in here.constraints):
        return Singular(unknown="its loops stand open, or its laws do not hold")
    if not here.can_move.any():
        return Singular()
    seen = analyse(mechanism, here.q, active)
    required = [one for one in objectives if one.required]
    driving = [one for one in required if isinstance(one, JointValues)]
    goals = [one for one in required if not isinstance(one, JointValues)]
    parts = [_change_point(mechanism, seen)] if len(seen.here.A) else []
    at_change = bool(parts) and parts[0] is not None and parts[0].nearness < NEAR
    if not at_change and (driving or seen.here.constraints):
        rows = _rows_of(mechanism, driving) if driving else _rows_of_drives(mechanism, seen)
        parts.append(_loss(mechanism, seen, "dead point", rows))
    if goals:
        parts.append(_loss(mechanism, seen, "lost direction", _rows_of(mechanism, goals)))
    return Singular(tuple(part for part in parts if part is not None))


def _change_point(mechanism: Mechanism, seen: Analysis) -> SingularPart | None:
    """The singular value of the loops' rows that is above zero everywhere but at a change point."""
    if not seen.rank:
        return None
    _, sizes, vt = np.linalg.svd(seen.here.A)
    sizes = np.concatenate([sizes, np.zeros(max(0, seen.rank - len(sizes)))])
    k = seen.rank - 1
    return _part(mechanism, "change point", float(sizes[k] / sizes[0]) if sizes[0] > 0.0 else 0.0, vt[k], seen.here)


def _loss(mechanism: Mechanism, seen: Analysis, kind: Kind, rows: Callable[[Motions], Array]) -> SingularPart | None:
    """How the rank of rows, over the motions that loops leave, compares with what it is close by."""

    def over_ways(at: Motions) -> tuple[Array, Array, Array]:
        J = rows(at) * at.unit
        # drives need not determine what is idle; a goal may want it moved
        ways = without(at.basis(), seen.spins(at)) if kind == "dead point" else at.basis()
        return J, J @ ways, ways

    usual = 0
    for at in (seen.here, *seen.around):
        J, moved, _ = over_ways(at)
        usual = max(usual, rank_of(moved, WEAK * _largest(J) / max(_largest(moved), 1e-300)))
    if not usual:
        return None
    J, moved, ways = over_ways(seen.here)
    _, sizes, vt = np.linalg.svd(moved)
    return _part(mechanism, kind, float(sizes[usual - 1]) / _largest(J), ways @ vt[usual - 1], seen.here)


def _largest(J: Array) -> float:
    return float(np.linalg.svd(J, compute_uv=False)[0]) if J.size else 0.0


def _rows_of(mechanism: Mechanism, objectives: Sequence[Objective]) -> Callable[[Motions], Array]:
    """The Jacobian of all rows that are to be met exactly, lengths in sizes; bands do not always count."""

    def rows(at: Motions) -> Array:
        found = [np.zeros((0, mechanism.nv))]
        for objective in objectives:
            for relation in objective.relations(mechanism):
                if relation.lower is None and relation.upper is None:
                    _, J = evaluate(mechanism, relation, at.q)
                    found.append(J / np.where(lengths(mechanism, relation, len(J)), at.size, 1.0)[:, None])
        return np.concatenate(found)

    return rows


def _rows_of_drives(mechanism: Mechanism, seen: Analysis) -> Callable[[Motions], Array]:
    """One for each drive that the structure has chosen, without units."""
    chosen = np.eye(mechanism.nv)[seen.drives]

    def rows(at: Motions) -> Array:
        return chosen / at.unit[seen.drives][:, None]

    return rows


def _part(mechanism: Mechanism, kind: Kind, nearness: float, motion: Array, at: Motions) -> SingularPart:
    named = {
        name: float(amount * unit)
        for name, amount, unit in zip(mechanism.space.v_names, motion, at.unit, strict=True)
        if abs(amount) > WEAK
    }
    return SingularPart(kind, nearness, MappingProxyType(named))
