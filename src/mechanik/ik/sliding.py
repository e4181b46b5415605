"""A solver whose way is kept clear at every step, so that it slides along what it must not bump into."""

from __future__ import annotations

from typing import Any

from mechanik.ik.solver import Solver
from mechanik.kernels.solver_state import SUCCESS
from mechanik.objectives import Objective
from mechanik.solvers.keeping_off import KeepingOff
from mechanik.solvers.levenberg_marquardt import LevenbergMarquardt
from mechanik.solvers.new_targets import Targets, aimed
from mechanik.solvers.solution import Solution
from mechanik.solvers.status import Status
from mechanik.spatial.array import Array

PULL, TURN = 0.1, 0.3
"""m and rad: goals that are farther off pull only this hard, so that no step leads through what it has not seen."""
JUST_ABOVE = 1e-6
"""m: what is nearer than this to where it would clash is in the way."""
NOT_MET = (Status.CLOSEST, Status.STALLED, Status.TIMEOUT)
"""Ends of a way on which loops are shut and laws kept, and something that was asked for is not met."""


class Sliding(Solver):
    """The same goals, and a clearance behind them; targets and answers know the goals alone."""

    def __init__(self, keeping: KeepingOff, *given: Any, **more: Any) -> None:
        self._keeping = keeping
        method = more.get("solver")
        if isinstance(method, LevenbergMarquardt) or method == "auto":
            held = method if isinstance(method, LevenbergMarquardt) else LevenbergMarquardt()
            more["largest_error"] = min(PULL, held.largest_error)
            more["largest_angle_error"] = min(TURN, held.largest_angle_error)
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
        if found.clashes and found.status in NOT_MET and not found.unmet:  # the clearance alone is not met
            found._report = tuple(_met(out) for out in found._outs)
        if not found.clashes and not found.success:
            found.in_the_way = self._keeping.clashes(found.q, JUST_ABOVE)
        return found


def _met(out: Array) -> Array:
    """A report that says success: what bumps is known besides."""
    out = out.copy()
    out[SUCCESS] = 1.0
    return out
