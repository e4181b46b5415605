"""A solver whose way is kept clear at every step, so that it slides along what it must not bump into."""

from __future__ import annotations

from typing import Any

from mechanik.ik.solver import Solver
from mechanik.objectives import Objective
from mechanik.solvers.keeping_off import KeepingOff
from mechanik.solvers.new_targets import Targets, aimed
from mechanik.solvers.solution import Solution


class Sliding(Solver):
    """The same goals, and a clearance behind them; targets and answers know the goals alone."""

    def __init__(self, keeping: KeepingOff, *given: Any, **more: Any) -> None:
        self._keeping = keeping
        super().__init__(*given, **more)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        return self._objectives[:-1]

    def _wanted(self) -> tuple[Objective, ...]:
        return (*super()._wanted(), self._keeping.objective)

    def _aimed(self, targets: Targets | None) -> tuple[Objective, ...]:
        return (*aimed(self._objectives[:-1], targets), self._objectives[-1])

    def _solve(self, *given: Any, **more: Any) -> Solution:
        found = super()._solve(*given, **more)
        found._asked = found.objectives[:-1]
        found.clashes = self._keeping.clashes(found.q)
        return found
