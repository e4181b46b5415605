"""Rows of a single chain that must not bump into anything: solved in lanes, looked at, solved otherwise if they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mechanik.batch.engine import Answers
from mechanik.batch.general import General
from mechanik.batch.goal_poses import goal_poses
from mechanik.batch.lanes import Lanes
from mechanik.batch.target_forms import Mask
from mechanik.batch.targets import Wanted
from mechanik.kernels.solver_state import CONVERGED
from mechanik.search.free_search import FreeSearch
from mechanik.solvers.keeping_off import KeepingOff
from mechanik.solvers.solution import Solution
from mechanik.solvers.status import IN_COLLISION_ROW
from mechanik.spatial.array import Array

ROWS = 1024
"""At a time: some tens of milliseconds."""


class LastResort(Protocol):
    """Who solves one target when its other answers all bump; `ik.Guard` is one."""

    def last_resort(self, targets: Any, q0: Array, rng: np.random.Generator | None) -> Solution: ...


@dataclass(frozen=True, slots=True, eq=False)
class Resorting:
    """A last resort that looks like a solver."""

    guard: LastResort

    def solve(
        self, targets: Any = None, q0: Any = None, *, rng: np.random.Generator | None = None, **options: Any
    ) -> Solution:
        return self.guard.last_resort(targets, q0, rng)


@dataclass(frozen=True, slots=True, eq=False)
class GuardedLanes:
    """
    Attributes:
        lanes: solves as if nothing were in the way.
        keeping: what must not be bumped into.
        search: for other answers.
        resort: solves one by one what is left, from the least deep of the answers.
    """

    lanes: Lanes
    keeping: KeepingOff
    search: FreeSearch
    resort: General
    chunk: int = ROWS
    checks_poses: bool = True
    kernels: tuple[str, ...] = ("lanes", "chain", "distance.watch")

    def solve_rows(self, wanted: Wanted, q0: Array | None, seed: int | None, into: Answers) -> None:
        self.lanes.solve_rows(wanted, q0, seed, into)
        bumps = into.code == CONVERGED
        bumps[bumps] = ~self.keeping.are_free(into.q[bumps])
        if bumps.any() and not isinstance(wanted.taken[0], list | tuple):
            bumps[bumps] = ~self._others(wanted, q0, into, bumps)
        if bumps.any():
            into.code[bumps] = IN_COLLISION_ROW
            self._resort(wanted, seed, into, bumps)

    def _others(self, wanted: Wanted, q0: Array | None, into: Answers, rows: Mask) -> Mask:
        """Other answers of some rows; whether each is free. Those that are not are less deep than the first ones."""
        taken: Any = wanted.some(rows).taken[0]
        X = np.ascontiguousarray(goal_poses(self.lanes.objective, taken, int(rows.sum())))
        answers, near = into.take(rows), None if q0 is None else q0[rows]
        others = self.search.look(X, answers.q, near)
        better = others.free.copy()
        worse = others.any & ~others.free
        if worse.any():
            better[worse] = self.keeping.gaps(others.q[worse]) > self.keeping.gaps(answers.q[worse])
        answers.q[better], answers.errors[better, 0] = others.q[better], others.errors[better]
        answers.iterations[:] += others.iterations
        into.put(rows, answers)
        return others.free

    def _resort(self, wanted: Wanted, seed: int | None, into: Answers, rows: Mask) -> None:
        answers = into.take(rows)
        before = answers.iterations.copy()
        self.resort.solve_rows(wanted.some(rows), answers.q.copy(), seed, answers)
        answers.iterations[:] += before
        into.put(rows, answers)
