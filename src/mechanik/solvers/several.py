"""The short way for several goals at once: all new targets in one array, put into the problem by one small kernel.

Goals of the common kinds (a pose, a point, values of joints) take new targets; all others stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanik.kernels import problem
from mechanik.kernels.target_layout import NEVER, PLACE, POSE, VALUE
from mechanik.mechanism import Mechanism
from mechanik.objectives import JointValues, Objective, Point, PoseGoal
from mechanik.objectives.aimed import Aimed
from mechanik.objectives.relation import Kind, Relation
from mechanik.program import Program, same_shape
from mechanik.spatial import inverse, make, rotation
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

aiming = kernel_module("put_targets")

STAYS = -1
SHAPES = {POSE: (4, 4), PLACE: (3,)}
SIZES = {POSE: 16, PLACE: 3, VALUE: 1, STAYS: 0}
EYE = np.eye(3)
ELSEWHERE = make(rotation.exp(np.array([0.3, -0.5, 0.7])), np.array([0.1, 0.2, -0.3]))


@dataclass(frozen=True, slots=True, eq=False)
class SeveralTargets:
    """How the targets of a call are laid out in one array, and where its numbers go.

    Attributes:
        kinds: of each objective's target; STAYS where it has none.
        names: of each objective, none if not all have one of their own; for one that wants joint values, theirs.
        plans: for each part of the program its numbers and what goes where, as `put_targets` takes it.
        own: (size,) the numbers of the targets that the objectives were made with.
    """

    kinds: tuple[int, ...]
    names: tuple[str, ...]
    plans: tuple[tuple[Array, np.ndarray[Any, np.dtype[np.int64]], Array], ...]
    own: Array

    def numbers(self, targets: Any) -> Array | None:
        """All targets of a call, one behind the other, (size,); None if they have to be looked at closely."""
        try:
            if isinstance(targets, Mapping):
                if not self.names:
                    return None
                if len(targets) != len(self.names):  # type: ignore[arg-type]
                    return self._some(targets)  # type: ignore[arg-type]
                targets = [targets[name] for name in self.names]  # type: ignore[index]
            elif self.kinds[0] == VALUE:
                return None
            elif len(self.kinds) == 1:
                targets = [targets] if type(targets) is np.ndarray else None
            found = np.array(targets) if self._are_alike else self._one_by_one(targets)
        except (KeyError, TypeError, ValueError):
            return None
        if found is None or found.dtype != np.float64 or found.size != self.own.size:
            return None
        if self._are_alike and found.shape[1:] != SHAPES.get(self.kinds[0], ()):
            return None
        return found.reshape(-1)

    def put(self, numbers: Array, q0: Array) -> bool:
        """Put them into all parts; False if one is not what it should be, and then none of them is to be relied on."""
        return all(aiming.put_targets(*plan, numbers, q0) for plan in self.plans)

    def objectives(self, given: Sequence[Objective], numbers: Array) -> tuple[Objective, ...]:
        """What such a call asked for."""
        if isinstance(given[0], JointValues):
            return (given[0].at(dict(zip(self.names, numbers.tolist(), strict=True))),)
        found: list[Objective] = []
        first = 0
        for one, kind in zip(given, self.kinds, strict=True):
            if kind == STAYS:
                found.append(one)
                continue
            size = SIZES[kind]
            found.append(one.at(numbers[first : first + size].reshape(SHAPES[kind])))
            first += size
        return tuple(found)

    @property
    def _are_alike(self) -> bool:
        return len(set(self.kinds)) == 1

    def _one_by_one(self, targets: Any) -> Array | None:
        if len(targets) != len(self.kinds):
            return None
        found, first = self.own.copy(), 0
        for target, kind in zip(targets, self.kinds, strict=True):
            size = SIZES[kind]
            if target is not None:
                if kind == STAYS or type(target) is not np.ndarray or target.shape != SHAPES[kind]:
                    return None
                found[first : first + size] = target.ravel()
            first += size
        return found

    def _some(self, targets: Mapping[str, Any]) -> Array | None:
        """Targets by name for some of the objectives."""
        if self.kinds[0] == VALUE:
            return None
        places = {name: k for k, name in enumerate(self.names)}
        listed: list[Any] = [None] * len(self.names)
        for name, target in targets.items():
            listed[places[name]] = target
        return self._one_by_one(listed)


def find_several(
    mechanism: Mechanism,
    program: Program,
    objectives: Sequence[Objective],
    rows: Sequence[Sequence[Relation]],
    bounds: tuple[Array, Array],
) -> SeveralTargets | None:
    """The short way for what is asked, if there is one; a goal by itself may have a shorter one (`shortcut.py`)."""
    if any(part.packed.sizes["functions"] for part in program.parts):
        return None
    wanted = [_kind(mechanism, objective, some) for objective, some in zip(objectives, rows, strict=True)]
    if None in wanted or all(kind == STAYS for kind in wanted) or (VALUE in wanted and len(wanted) > 1):
        return None
    kinds = tuple(kind for kind in wanted if kind is not None)
    names = tuple(one.name for one in objectives)
    if "" in names or len(set(names)) < len(names):
        names = ()
    if VALUE in kinds:
        names = tuple(row.freedom for row in rows[0])
        kinds = (VALUE,) * len(names)
        if not isinstance(objectives[0], JointValues) or set(names) != set(objectives[0].values):
            return None
    plans: list[tuple[Array, np.ndarray[Any, np.dtype[np.int64]], Array]] = []
    first = np.concatenate([[0], np.cumsum([SIZES[kind] for kind in kinds])])
    for part in program.parts:
        plan: list[tuple[int, int, int, int]] = []
        turns: list[Array] = []
        data = int(part.packed.ints[problem.AT_DATA])
        for block, (owner, number) in enumerate(zip(part.owners, part.numbers, strict=True)):
            if owner < 0 or wanted[owner] == STAYS:
                continue
            k = number if wanted[owner] == VALUE else owner
            turn = _turn(program, objectives[owner], rows[owner][number], bounds)
            if turn is None:
                return None
            objective, row = objectives[owner], rows[owner][number]
            turns.append(
                _rounded(objective.target[:3, :3].T @ row.X_a[:3, :3]) if isinstance(objective, PoseGoal) else EYE
            )
            plan.append((kinds[k], data + problem.BLOCK_FLOATS * block + problem.FRAME_A, int(first[k]), turn))
        what = np.array(plan, dtype=np.int64).reshape(-1, 4)
        plans.append((part.packed.floats, what, np.array(turns, dtype=np.float64).reshape(-1, 9)))
    own = [_own(one, some) for one, some, kind in zip(objectives, rows, wanted, strict=True) if kind != STAYS]
    return SeveralTargets(kinds, names, tuple(plans), np.concatenate(own))


def _rounded(R: Array) -> Array:
    """A turn that only changes the names of axes, without what rounding added to it."""
    return np.rint(R) if np.abs(R - np.rint(R)).max() < 1e-9 else R


def _own(objective: Objective, rows: Sequence[Relation]) -> Array:
    """The target that an objective was made with, as numbers."""
    if isinstance(objective, PoseGoal):
        return objective.target.ravel()
    return np.concatenate([row.target if row.kind is Kind.VALUE else row.X_a[:3, 3] for row in rows])


def _kind(mechanism: Mechanism, objective: Objective, rows: Sequence[Relation]) -> int | None:
    """Of the objective's target; None if there is no short way to put it in."""
    if type(objective) is PoseGoal:
        # another target has to mean that X_a of all its rows moves along, and nothing else
        others = objective.at(ELSEWHERE).relations(mechanism)
        moved = [_is_moved(row, other, objective.target) for row, other in zip(rows, others, strict=True)]
        return POSE if rows and all(moved) else None
    if type(objective) is Point:
        row = rows[0]
        still = len(rows) == 1 and row.kind is Kind.POSE and row.a is None and row.world_axes is None
        return PLACE if still else None
    if type(objective) is JointValues:
        return VALUE if all(one.kind is Kind.VALUE for one in rows) else None
    # what depends on where one comes from has to be looked at each time
    return None if isinstance(objective, Aimed) else STAYS


def _is_moved(row: Relation, other: Relation, target: Array) -> bool:
    same = row.a is other.a is None and row.world_axes is other.world_axes is None and same_shape(row, other)
    fixed = inverse(target) @ row.X_a
    along = np.abs(inverse(ELSEWHERE) @ other.X_a - fixed).max() < 1e-9 and np.abs(fixed[:3, 3]).max() < 1e-12
    return same and bool(along) and np.array_equal(row.X_b, other.X_b)


def _turn(program: Program, objective: Objective, row: Relation, bounds: tuple[Array, Array]) -> int | None:
    """Which number of q an angle shall be near to by full turns; NEVER if by none; None if limits have a say."""
    if row.kind is not Kind.VALUE or (isinstance(objective, JointValues) and objective.turns == "exact"):
        return NEVER
    k = program.skeleton.x_of[row.freedom]
    if k >= len(bounds[0]):
        return None
    if not program.skeleton.rotates[program.skeleton.v_of_x[k]]:
        return NEVER
    return k if bounds[0][k] == -np.inf and bounds[1][k] == np.inf else None
