"""Rows of a single chain with a single goal, solved in lanes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mechanik.batch.engine import Answers
from mechanik.batch.general import General
from mechanik.batch.goal_poses import goal_poses
from mechanik.batch.target_forms import POINT, POSE, TURN, WXYZ, Mask, Shape, settle, shapes_of
from mechanik.batch.targets import Wanted
from mechanik.kernels.chain_layout import BAD_ROW, FROM_SEED, FROM_TABLE, NOT_SOLVED, REPORT
from mechanik.kernels.solver_state import BAD_TARGET_ROW, CONVERGED
from mechanik.mechanism import Mechanism
from mechanik.objectives import Objective
from mechanik.objectives.placement import Placement
from mechanik.search.chain_search import CLEARLY
from mechanik.spatial import from_position_wxyz
from mechanik.spatial.array import Array

ROWS = 4096
"""At a time: some milliseconds, at a microsecond each; more do not stay in the cache."""
KEYS = 1 << 31
"""How many seeds the kernel tells apart."""
ITERATIONS, METRES, RADIANS = 2, 3, 4
"""Places in a row's report, behind how it ended and the attempts."""
_WXYZ = np.array([[0.8, 0.6, 0.0, 0.0], [0.0, 0.6, 0.0, 0.8]])
_X = from_position_wxyz(np.array([[0.3, -0.2, 0.7], [-0.4, 0.1, 0.2]]), _WXYZ)
ODD: Mapping[Shape, Array] = {POSE: _X, POINT: _X[:, :3, 3], TURN: _X[:, :3, :3], WXYZ: _WXYZ}
"""Two targets of each shape that have nothing in common with each other, nor with any robot."""


class SolvesChains(Protocol):
    """What is needed of a search for chains; `search.ChainSearch` is one."""

    def solve_rows(self, X: Array, q0: Array, mode: int, key: float, q: Array, report: Array) -> None: ...

    def cost(self, metres: Array, radians: Array) -> Array: ...


@dataclass(frozen=True, slots=True, eq=False)
class Lanes:
    """
    Attributes:
        search: for the chain.
        general: solves one by one, for rows that the chain kernel leaves: those out of reach go on from its best to
            the closest pose, and those that are odd are looked at closely.
        objective: the goal; see `takes_lanes`.
        home: (nq,) where joints stand without a start; those that are no part of the chain stay there.
    """

    search: SolvesChains
    general: General
    objective: Placement
    home: Array
    chunk: int = ROWS
    checks_poses: bool = True
    kernels: tuple[str, ...] = ("lanes", "chain")

    def solve_rows(self, wanted: Wanted, q0: Array | None, seed: int | None, into: Answers) -> None:
        taken: Any = wanted.taken[0]
        if isinstance(taken, list | tuple):  # of whatever the goal takes
            self.general.solve_rows(wanted, q0, seed, into)
            return
        X = np.ascontiguousarray(goal_poses(self.objective, taken, wanted.count))
        q, report = np.empty_like(into.q), np.empty((wanted.count, REPORT))
        starts = np.tile(self.home, (wanted.count, 1)) if q0 is None else q0
        mode, key = FROM_TABLE if q0 is None else FROM_SEED, 0.0 if seed is None else float(seed % KEYS)
        self.search.solve_rows(X, starts, mode, key, q, report)
        odd, unsolved = report[:, 0] == BAD_ROW, report[:, 0] == NOT_SOLVED
        into.code[:] = CONVERGED
        np.copyto(into.q, q, where=~odd[:, None])
        into.iterations[:] = report[:, ITERATIONS]
        into.errors[:, 0, 0], into.errors[:, 0, 1] = report[:, METRES], report[:, RADIANS]
        if unsolved.any():
            self._go_on(wanted, q0, into, unsolved)
        if odd.any():
            sound = odd.copy()
            sound[odd] = settle(X[odd])[1]
            self._look_closely(wanted, q0, seed, into, odd, sound)

    def _go_on(self, wanted: Wanted, q0: Array | None, into: Answers, rows: Mask) -> None:
        """From the best that was met to the closest pose; from a seed, unless another is clearly closer."""
        best, some = into.take(rows), wanted.some(rows)
        starts = best.q if q0 is None else q0[rows]
        closest = self._closest(some, starts, best)
        if q0 is not None:
            clearly = closest.code != CONVERGED
            clearly &= self._cost(best) < CLEARLY * self._cost(closest)
            if clearly.any():
                others = self._closest(some.some(clearly), best.q[clearly], best.take(clearly))
                seeded = closest.take(clearly)
                wins = (others.code == CONVERGED) | (self._cost(others) < CLEARLY * self._cost(seeded))
                seeded.put(wins, others.take(wins))
                closest.put(clearly, seeded)
        closest.iterations[:] += best.iterations
        into.put(rows, closest)

    def _closest(self, wanted: Wanted, starts: Array, like: Answers) -> Answers:
        found = like.take(np.ones(len(starts), dtype=np.bool_))
        self.general.solve_rows(wanted, starts.copy(), None, found, restarts=0)
        return found

    def _cost(self, answers: Answers) -> Array:
        return self.search.cost(answers.errors[:, 0, 0], answers.errors[:, 0, 1])

    def _look_closely(
        self, wanted: Wanted, q0: Array | None, seed: int | None, into: Answers, odd: Mask, sound: Mask
    ) -> None:
        """Targets that are no poses, and rows that are not for the chain kernel: nearly turned wrong, far starts."""
        into.code[odd], into.errors[odd] = BAD_TARGET_ROW, np.nan
        if sound.any():
            found = into.take(sound)
            self.general.solve_rows(wanted.some(sound), None if q0 is None else q0[sound], seed, found)
            into.put(sound, found)


def takes_lanes(mechanism: Mechanism, objective: Objective) -> bool:
    """Whether a new target of an objective is a new pose for the chain to reach, and changes nothing else."""
    if not isinstance(objective, Placement):
        return False
    own = objective.relations(mechanism)
    shapes = [shape for shape in shapes_of(objective) if shape in ODD]
    for shape in shapes:
        for target, X in zip(ODD[shape], goal_poses(objective, ODD[shape], 2), strict=True):
            rows = objective.at(target).relations(mechanism)
            if len(own) != 1 or len(rows) != 1 or not np.array_equal(rows[0].X_b, own[0].X_b):
                return False
            if not np.allclose(rows[0].X_a, X, rtol=0.0, atol=1e-15):
                return False
    return bool(shapes)
