"""The short way for values of joints: from names and numbers into the problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mechanik.kernels import problem
from mechanik.objectives import JointValues, Objective
from mechanik.objectives.aims import nearest
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial.array import Array
from mechanik.tracking.rig import Rig


class JointTargets:
    """Where the values of a task are in the problem, each a number of its own.

    Args:
        names: of the joints.
        slots: where their targets stand among the numbers of the problem.
        places: where they stand in q.
        turns: whether a target means the nearest of those that look the same.
        limits: lower and upper.
    """

    def __init__(
        self,
        names: Sequence[str],
        slots: Sequence[int],
        places: Sequence[int],
        turns: Sequence[bool],
        limits: Sequence[tuple[float, float]],
    ) -> None:
        self._all = tuple(zip(names, slots, places, turns, limits, strict=True))

    def read(self, target: Any, q: Array) -> list[tuple[int, float]] | None:
        """Slots with their numbers; None if the target has to be looked at closely."""
        if type(target) is not dict or len(target) != len(self._all):  # type: ignore[arg-type]
            return None
        found: list[tuple[int, float]] = []
        for name, slot, place, turns, (low, high) in self._all:
            value: Any = target.get(name)  # type: ignore[union-attr]
            if not isinstance(value, float) or not math.isfinite(value):
                return None
            found.append((slot, nearest(value, float(q[place]), low, high) if turns else value))
        return found


def find_joint_targets(
    rig: Rig, number: int, objective: Objective, rows: Sequence[Relation], bounds: tuple[Array, Array]
) -> JointTargets | None:
    """The short way for a task, if it wants values of joints that each are one number of q; None if not."""
    if not isinstance(objective, JointValues) or any(one.kind is not Kind.VALUE for one in rows):
        return None
    names = [one.freedom for one in rows]
    if names != list(objective.values):
        return None
    skeleton, part = rig.program.skeleton, rig.part
    places = [skeleton.x_of[name] for name in names]
    if max(places) >= len(bounds[0]):
        return None
    data = int(part.packed.ints[problem.AT_DATA])
    blocks = {i: b for b, (owner, i) in enumerate(zip(part.owners, part.numbers, strict=True)) if owner == number}
    if len(blocks) != len(names):
        return None
    return JointTargets(
        names,
        [data + problem.BLOCK_FLOATS * blocks[i] for i in range(len(names))],
        places,
        [objective.turns == "nearest" and skeleton.turns(name) for name in names],
        [(float(bounds[0][k]), float(bounds[1][k])) for k in places],
    )
