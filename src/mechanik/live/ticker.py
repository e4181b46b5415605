"""One tick of a background solver: a solve within a budget of time, and whether another one would help."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import numpy as np

from mechanik.ik import Solver
from mechanik.live.aims import Aims
from mechanik.mechanism import Mechanism
from mechanik.solvers.levenberg_marquardt import LevenbergMarquardt
from mechanik.solvers.new_targets import Targets
from mechanik.solvers.solution import Solution
from mechanik.solvers.status import Status
from mechanik.spatial.array import Array

STILL = 1e-9
"""Rad, and m: a tick that moved nothing by more has not moved."""
BETTER = 0.999
"""What is left of an error, for a tick to have made it smaller."""
PATIENCE = 50
"""Ticks that only move and make nothing better, before it is left at that: methods with momentum may swing."""
LONGEST = 16.0
"""Budgets that a tick may take, at most, where shorter ones were too short to move anything."""
UNFINISHED = (Status.TIMEOUT, Status.OPEN)


class Ticker:
    """A solver (or none, where nothing is to be solved), where the mechanism stands, and where its goals are.

    Attributes:
        space: the shape of q, as the solver was made for it.
        q: (nq,), float64 and never written into, so that kernels take it without a detour.
        aims: the newest targets.
        is_at_rest: whether another tick would find nothing better.
    """

    def __init__(self, mechanism: Mechanism, solver: Solver | None, is_put: bool, q: Array) -> None:
        """
        Args:
            is_put: whether the solver has no goals but to shut loops near where the mechanism was put.
        """
        self.solver, self.is_put, self.space = solver, is_put, mechanism.space
        self.aims = Aims(() if solver is None or is_put else solver.objectives)
        self.q = self._put = q
        # the short way to the kernel has no clock; it is taken while solves are far quicker than their budget
        self._may_hurry = False
        self.wake()

    def wake(self) -> None:
        """Something has changed: what was tried so far says nothing any more."""
        self.is_at_rest, self._best, self._in_vain, self._budgets = False, math.inf, 0, 1.0

    def move(self, q: Array) -> None:
        """It stands at q (nq,) now."""
        self.q = self._put = q
        self.wake()

    def targets(self) -> Targets | None:
        """What is aimed at now, for `tick` and `step`."""
        if not self.is_put or self.solver is None:
            return self.aims.for_solver()
        others = len(self.solver.objectives) - 1
        return [self._put, *[None] * others] if others else self._put

    def tick(self, targets: Targets | None, budget: float) -> Solution | None:
        """Solve on from where it stands for at most `budget` seconds; None if nothing is to be solved."""
        solver = self.solver
        if solver is None:
            self.is_at_rest = True
            return None
        if self._may_hurry:
            solution = solver.solve(targets, self.q)
        else:
            solution = solver.solve(targets, self.q, max_seconds=self._budgets * budget)
        is_compiled = isinstance(solver.method, LevenbergMarquardt)
        self._may_hurry = is_compiled and solution.seconds < (0.5 if self._may_hurry else 0.25) * budget
        self._arrive(solution)
        return solution

    def step(self, targets: Targets | None) -> Solution | None:
        """One iteration; see `Solver.step`."""
        if self.solver is None:
            self.is_at_rest = True
            return None
        solution = self.solver.step(targets, self.q)
        self._arrive(solution)
        return solution

    def _moved(self, solution: Solution) -> float:
        return float(np.abs(solution.q - self.q).max(initial=0.0))

    def _arrive(self, solution: Solution) -> None:
        """Stand where the solution says; at rest unless it was cut short and more time may help."""
        assert self.solver is not None
        moved = self._moved(solution)
        self.q = solution.q.copy()
        status = solution.status
        left = max((chain.residual for chain in solution.chains), default=0.0) if status in UNFINISHED else 0.0
        self._in_vain = 0 if left < BETTER * self._best else self._in_vain + 1
        self._best = min(self._best, left)
        goes_on = status in UNFINISHED and self._in_vain < PATIENCE
        goes_on = goes_on or self.solver.options.rest_factor < 1.0  # each tick goes only a share of the way
        self._budgets *= 1.0 if moved > STILL or status not in UNFINISHED else 2.0
        self.is_at_rest = not goes_on or (moved <= STILL and (status not in UNFINISHED or self._budgets > LONGEST))


class Rate:
    """How many ticks there were within the last second."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()

    def of(self, now: float) -> float:
        """With one that ends now, by `time.perf_counter`."""
        self._times.append(now)
        while self._times[0] < now - 1.0:
            self._times.popleft()
        return float(len(self._times))


def carried(names: Sequence[str], q: Array, mechanism: Mechanism) -> Array:
    """q of a mechanism as it was, for the mechanism as it is now: by the names of freedoms; new ones as they stand.

    Args:
        names: of the numbers of q.
    """
    now = mechanism.space.q_names
    if tuple(names) == now:
        return q
    found, before = mechanism.q, dict(zip(names, q.tolist(), strict=True))
    for k, name in enumerate(now):
        found[k] = before.get(name, found[k])
    return found
