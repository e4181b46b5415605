"""The short way for several goals at once: all new targets in one array, put into the problem by one small kernel.

Goals of the common kinds (a pose, a point, values of joints) take new targets; all others stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanik import kernels
from mechanik.kernels import problem
from mechanik.objectives import JointValues, Objective, Point, PoseGoal
from mechanik.objectives.aimed import Aimed
from mechanik.objectives.relation import Kind, Relation
from mechanik.program import Program
from mechanik.solvers.put_targets import NEVER, PLACE, POSE, VALUE
from mechanik.spatial.array import Array

aiming = kernels.Lazy("mechanik.solvers.put_targets", "put_targets")

SHAPES = {POSE: (4, 4), PLACE: (3,)}
STAYS = -1


@dataclass(frozen=True, slots=True, eq=False)
class SeveralTargets:
    """How the targets of a call are laid out in one array, and where its numbers go.

    Attributes:
        kinds: of each objective's target; STAYS where it has none.
        names: of each objective; for a single one that wants joint values, theirs.
        plans: for each part of the program its numbers and what goes where, as `put_targets` takes it.
        size: how many numbers there are.
    """

    kinds: tuple[int, ...]
    names: tuple[str, ...]
    plans: tuple[tuple[Array, np.ndarray[Any, np.dtype[np.int64]]], ...]
    size: int

    def numbers(self, targets: Any) -> Array | None:
        """All targets of a call, one behind the other, (size,); None if they have to be looked at closely."""
        try:
            if isinstance(targets, Mapping):
                if len(targets) != len(self.names):  # type: ignore[arg-type]
                    return None
                targets = [targets[name] for name in self.names]  # type: ignore[index]
            found = np.array(targets) if self._are_alike else self._one_by_one(targets)
        except (KeyError, TypeError, ValueError):
            return None
        if found is None or found.dtype != np.float64 or found.size != self.size:
            return None
        if self._are_alike and found.shape[1:] != SHAPES.get(self.kinds[0], ()):
            return None
        return found.reshape(-1)

    def put(self, numbers: Array, q0: Array) -> bool:
        """Put them into all parts; False if one is not what it should be, and then none of them is to be relied on."""
        return all(aiming.put_targets(floats, plan, numbers, q0) for floats, plan in self.plans)

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
            size = math.prod(SHAPES[kind])
            found.append(one.at(numbers[first : first + size].reshape(SHAPES[kind])))
            first += size
        return tuple(found)

    @property
    def _are_alike(self) -> bool:
        return len(set(self.kinds)) == 1

    def _one_by_one(self, targets: Any) -> Array | None:
        if len(targets) != len(self.kinds):
            return None
        parts: list[Array] = []
        for target, kind in zip(targets, self.kinds, strict=True):
            if kind == STAYS and target is None:
                continue
            if kind == STAYS or type(target) is not np.ndarray or target.shape != SHAPES[kind]:
                return None
            parts.append(target.ravel())
        return np.concatenate(parts)


def find_several(
    program: Program,
    objectives: Sequence[Objective],
    rows: Sequence[Sequence[Relation]],
    bounds: tuple[Array, Array],
) -> SeveralTargets | None:
    """The short way for what is asked, if there is one; a goal by itself may have a shorter one (`shortcut.py`)."""
    if any(part.packed.sizes["functions"] for part in program.parts):
        return None
    wanted = [_kind(objective, some) for objective, some in zip(objectives, rows, strict=True)]
    if None in wanted or all(kind == STAYS for kind in wanted) or (VALUE in wanted and len(wanted) > 1):
        return None
    kinds = tuple(kind for kind in wanted if kind is not None)
    names = tuple(one.name for one in objectives)
    if VALUE in kinds:
        names = tuple(row.freedom for row in rows[0])
        kinds = (VALUE,) * len(names)
        if not isinstance(objectives[0], JointValues) or set(names) != set(objectives[0].values):
            return None
    plans: list[tuple[Array, np.ndarray[Any, np.dtype[np.int64]]]] = []
    first = np.concatenate([[0], np.cumsum([math.prod(SHAPES.get(kind, (kind == VALUE,))) for kind in kinds])])
    for part in program.parts:
        plan: list[tuple[int, int, int, int]] = []
        data = int(part.packed.ints[problem.AT_DATA])
        for block, (owner, number) in enumerate(zip(part.owners, part.numbers, strict=True)):
            if owner < 0 or wanted[owner] == STAYS:
                continue
            k = number if wanted[owner] == VALUE else owner
            turn = _turn(program, objectives[owner], rows[owner][number], bounds)
            if turn is None:
                return None
            plan.append((kinds[k], data + problem.BLOCK_FLOATS * block + problem.FRAME_A, int(first[k]), turn))
        plans.append((part.packed.floats, np.array(plan, dtype=np.int64).reshape(-1, 4)))
    return SeveralTargets(kinds, names, tuple(plans), int(first[-1]))


def _kind(objective: Objective, rows: Sequence[Relation]) -> int | None:
    """Of the objective's target; None if there is no short way to put it in."""
    row = rows[0] if len(rows) == 1 else None
    still = row is not None and row.kind is Kind.POSE and row.a is None and row.world_axes is None
    if type(objective) is PoseGoal:
        whole = still and row is not None and row.rows == (0, 1, 2, 3, 4, 5)
        return POSE if whole and np.array_equal(row.X_a, objective.target) else None  # type: ignore[union-attr]
    if type(objective) is Point:
        return PLACE if still else None
    if type(objective) is JointValues:
        return VALUE if all(one.kind is Kind.VALUE for one in rows) else None
    # what depends on where one comes from has to be looked at each time
    return None if isinstance(objective, Aimed) else STAYS


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
