"""New targets of tasks, put into a compiled problem: by the short ways if there are some for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mechanik.errors import ObjectiveError
from mechanik.mechanism import Mechanism
from mechanik.objectives import Objective
from mechanik.objectives.aimed import Aimed
from mechanik.objectives.relation import Relation
from mechanik.program import rewrite, same_shape
from mechanik.solvers.new_targets import Targets, aimed
from mechanik.solvers.several import STAYS, _own, find_several
from mechanik.spatial.array import Array
from mechanik.tracking.joint_targets import find_joint_targets
from mechanik.tracking.rig import Rig, held


class Aiming:
    """
    Args:
        given: the objectives as they were given.
        rows: of each one, as the rig has them.
        bounds: (nq,) limits.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        rig: Rig,
        given: Sequence[Objective],
        rows: Sequence[tuple[Relation, ...]],
        bounds: tuple[Array, Array],
    ) -> None:
        self._mechanism, self._rig, self._bounds = mechanism, rig, bounds
        self._given, self._rows = tuple(given), list(rows)
        # what means the nearest of several angles is no business of theirs
        self._several = find_several(mechanism, rig.program, rig.program.objectives, [*self._rows, ()], bounds)
        found = {k: find_joint_targets(rig, k, one, self._rows[k], bounds) for k, one in enumerate(given)}
        self._joints = {k: one for k, one in found.items() if one is not None}
        self._values: dict[int, dict[str, float]] = {}
        self._numbers = {one.name: k for k, one in enumerate(given) if one.name}

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """With the targets that they have now."""
        found = list(self._given)
        if self._several is not None:
            stand_ins = self._rig.program.objectives
            whole = [stand_ins[k] if isinstance(one, Aimed) else one for k, one in enumerate(found)]
            now = self._several.objectives((*whole, stand_ins[-1]), self._several.own)
            found = [one if isinstance(one, Aimed) else now[k] for k, one in enumerate(found)]
        for k, values in self._values.items():
            found[k] = self._given[k].at(values)  # type: ignore[arg-type]
        return tuple(found)

    def aim(self, targets: Targets, q: Array) -> None:
        """New targets, with angles as they look from q; if one is wrong, all stay."""
        if not self._aim_shortly(targets, q):
            self._aim_at_length(targets, q)

    # ---- inside -----------------------------------------------------------------------------

    def _aim_shortly(self, targets: Targets, q: Array) -> bool:
        """False if targets have to be looked at closely; then nothing has changed."""
        count, rest = len(self._given), targets
        values: list[tuple[int, float]] = []
        chosen: dict[int, dict[str, float]] = {}
        if self._joints:
            listed = self._listed(targets)
            if listed is None:
                return False
            for k, joints in self._joints.items():
                if listed[k] is not None:
                    found = joints.read(listed[k], q)
                    if found is None:
                        return False
                    values += found
                    chosen[k], listed[k] = listed[k], None
            rest = listed if any(one is not None for one in listed) else None
        if rest is not None:
            several = self._several
            if several is None:
                return False
            if not isinstance(rest, Mapping):
                rest = (rest, None) if count == 1 and not self._joints else (*rest, None)
            numbers = several.numbers(rest)
            if numbers is None:
                return False
            if not several.put(numbers, q):
                several.put(several.own, q)
                return False
            several.own[:] = numbers
        floats = self._rig.part.packed.floats
        for slot, value in values:
            floats[slot] = value
        self._values.update(chosen)
        return True

    def _listed(self, targets: Any) -> list[Any] | None:
        """A target for each task, or None where there is none; None if it is not clear which is whose."""
        count = len(self._given)
        if count == 1:
            return [targets]
        if isinstance(targets, Mapping):
            found: list[Any] = [None] * count
            for name, target in targets.items():  # type: ignore[misc]
                if name not in self._numbers:
                    return None
                found[self._numbers[name]] = target  # type: ignore[index]
            return found
        if not isinstance(targets, list | tuple) or len(targets) != count:  # type: ignore[arg-type]
            return None
        return list(targets)  # type: ignore[arg-type]

    def _aim_at_length(self, targets: Targets, q: Array) -> None:
        mechanism, rig = self._mechanism, self._rig
        given = aimed(self.objectives, targets)
        objectives = tuple(held(mechanism, one, q, self._bounds) for one in given)
        rows = [one.relations(mechanism) for one in objectives]
        for one, old, new in zip(given, self._rows, rows, strict=True):
            if len(old) != len(new) or not all(same_shape(a, b) for a, b in zip(old, new, strict=True)):
                raise ObjectiveError(f"{one!r} has other rows than the task was made with; make a new tracker")
        for number, new in enumerate(rows):
            rewrite(rig.program, number, new)
        self._given, self._rows = given, rows
        self._values.clear()
        if self._several is not None:
            kinds = self._several.kinds[: len(given)]
            own = [_own(one, some) for one, some, kind in zip(objectives, rows, kinds, strict=True) if kind != STAYS]
            self._several.own[:] = np.concatenate(own)
        places = zip(rig.part.owners, rig.part.numbers, strict=True)
        rig.relations[:] = [
            rows[owner][i] if 0 <= owner < len(rows) else one
            for (owner, i), one in zip(places, rig.relations, strict=True)
        ]
