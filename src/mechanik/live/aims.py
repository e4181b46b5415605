"""Where the goals of a background solver stand by now: the newest target of each."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from mechanik.errors import MechanikError, ShapeError, UnknownName
from mechanik.objectives import JointValues, Objective, RestPose
from mechanik.solvers.new_targets import Targets


class Aims:
    """New targets for objectives, the newest of each; those of the others stay as they were made."""

    __slots__ = ("_names", "_objectives", "_targets")

    def __init__(self, objectives: tuple[Objective, ...]) -> None:
        self._objectives = objectives
        self._targets: list[Any] = [None] * len(objectives)
        own = [one.name for one in objectives]
        self._names = {name: k for k, name in enumerate(own) if name}

    def put(self, targets: Targets) -> None:
        """Take over what `Solver.solve` would take; what is no target is refused, and then nothing is taken over.

        Arrays are copied, so that the caller may go on writing into them.
        """
        found = {k: _kept(target) for k, target in self._by_number(targets).items() if target is not None}
        for k, target in found.items():
            self._objectives[k].at(target)  # raises if it is no target
        for k, target in found.items():
            self._targets[k] = target

    def taken_from(self, other: Aims) -> Aims:
        """With the targets that others have, by name, or by number where not all have names; those that fit."""
        for k, objective in enumerate(self._objectives):
            j = other._names.get(objective.name, -1) if objective.name else k
            target = other._targets[j] if 0 <= j < len(other._targets) else None
            if target is None or type(other._objectives[j]) is not type(objective):
                continue
            with suppress(MechanikError):
                objective.at(target)
                self._targets[k] = target
        return self

    def for_solver(self) -> Targets | None:
        """As `Solver.solve` takes them soonest; None if all stay as they were made."""
        targets = self._targets
        if all(target is None for target in targets):
            return None
        if len(targets) == 1:
            return targets[0]
        if len(self._names) == len(targets):
            return {name: targets[k] for name, k in self._names.items() if targets[k] is not None}
        return targets

    def _by_number(self, targets: Targets) -> dict[int, Any]:
        given = self._objectives
        takes_names = len(given) == 1 and isinstance(given[0], JointValues | RestPose)
        if isinstance(targets, Mapping) and not takes_names:
            by_name: Mapping[str, Any] = targets  # type: ignore[assignment]
            for name in by_name:
                if name not in self._names:
                    raise UnknownName("objective", name, self._names)
            return {self._names[name]: target for name, target in by_name.items()}
        if len(given) == 1:
            return {0: targets}
        if not isinstance(targets, list | tuple | np.ndarray) or len(targets) != len(given):  # type: ignore[arg-type]
            raise ShapeError(f"there are {len(given)} objectives: give as many targets, or a mapping from their names")
        return dict(enumerate(targets))  # type: ignore[arg-type]


def _kept(target: Any) -> Any:
    """A target that nobody else can change: numbers as an array of float64, which solvers take soonest."""
    if isinstance(target, np.ndarray):
        return np.array(target, dtype=np.float64) if target.dtype.kind in "fiu" else target.copy()  # type: ignore[misc]
    if isinstance(target, list | tuple) and all(type(one) in (int, float) for one in target):  # type: ignore[misc]
        return np.array(target, dtype=np.float64)
    return dict(target) if isinstance(target, Mapping) else target  # type: ignore[arg-type]
