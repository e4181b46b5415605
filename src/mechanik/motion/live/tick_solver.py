"""Ticks of a live solver.

A tick is one solve for the newest targets within a time budget; afterwards it is decided whether to tick again.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from mechanik.errors import MechanikError, ShapeError, UnknownName
from mechanik.model import Mechanism
from mechanik.objectives import JointValues, Objective, RestPose
from mechanik.solver import Solver
from mechanik.solver.solution import Solution, Status
from mechanik.solver.target_writer import Targets
from mechanik.spatial.array import Array


class TargetStore:
    """The newest target of each objective; objectives without a new target keep their own."""

    __slots__ = ("_names", "_objectives", "_targets")

    def __init__(self, objectives: tuple[Objective, ...]) -> None:
        self._objectives = objectives
        self._targets: list[Any] = [None] * len(objectives)
        names = [objective.name for objective in objectives]
        self._names = {name: k for k, name in enumerate(names) if name}

    def put(self, targets: Targets) -> None:
        """Store targets in the forms that `Solver.solve` takes; if any is invalid, none is stored.

        Arrays are copied, so that the caller may continue to write into them.

        Raises:
            UnknownName: there is no objective of this name.
            ShapeError: the number of targets is wrong.
            MechanikError: a target is invalid for its objective.
        """
        new_targets = {
            k: _copy_target(target) for k, target in self._targets_by_index(targets).items() if target is not None
        }
        for k, target in new_targets.items():
            self._objectives[k].with_target(target)  # raises if the target is invalid
        for k, target in new_targets.items():
            self._targets[k] = target

    def put_unchecked(self, targets: Mapping[int, Any]) -> None:
        """Store valid targets by index of the objective; arrays are copied."""
        for k, target in targets.items():
            self._targets[k] = _copy_target(target)

    def copy_matching(self, other_store: TargetStore) -> TargetStore:
        """Copy the targets of another store that fit, by name, or by index if an objective has no name; return self."""
        for k, objective in enumerate(self._objectives):
            j = other_store._names.get(objective.name, -1) if objective.name else k
            target = other_store._targets[j] if 0 <= j < len(other_store._targets) else None
            if target is None or type(other_store._objectives[j]) is not type(objective):
                continue
            with suppress(MechanikError):
                objective.with_target(target)
                self._targets[k] = target
        return self

    def solver_targets(self) -> Targets | None:
        """Return the targets in the form that `Solver.solve` takes fastest; None if there are no new targets."""
        targets = self._targets
        if all(target is None for target in targets):
            return None
        if len(targets) == 1:
            return targets[0]
        if len(self._names) == len(targets):
            return {name: targets[k] for name, k in self._names.items() if targets[k] is not None}
        return targets

    def _targets_by_index(self, targets: Targets) -> dict[int, Any]:
        objectives = self._objectives
        # the target of these objectives may itself be a mapping, by joint name
        takes_mapping = len(objectives) == 1 and isinstance(objectives[0], JointValues | RestPose)
        if isinstance(targets, Mapping) and not takes_mapping:
            targets_by_name: Mapping[str, Any] = targets  # type: ignore[assignment]
            for name in targets_by_name:
                if name not in self._names:
                    raise UnknownName("objective", name, self._names)
            return {self._names[name]: target for name, target in targets_by_name.items()}
        if len(objectives) == 1:
            return {0: targets}
        if not isinstance(targets, list | tuple | np.ndarray) or len(targets) != len(objectives):  # type: ignore[arg-type]
            raise ShapeError(
                f"targets must be a list of {len(objectives)} targets, one for each objective, or a mapping by name"
            )
        return dict(enumerate(targets))  # type: ignore[arg-type]


def _copy_target(target: Any) -> Any:
    """Copy an array, a flat list of numbers or a mapping, so that the caller may change the original.

    Arrays and lists of real numbers become float64 arrays, which the solver takes fastest. Other targets are returned
    as they are.
    """
    if isinstance(target, np.ndarray):
        return np.array(target, dtype=np.float64) if target.dtype.kind in "fiu" else target.copy()  # type: ignore[misc]
    if isinstance(target, list | tuple) and all(type(value) in (int, float) for value in target):  # type: ignore[misc]
        return np.array(target, dtype=np.float64)
    return dict(target) if isinstance(target, Mapping) else target  # type: ignore[arg-type]


MIN_MOTION = 1e-9
"""rad or m: a tick that moves q by less counts as no motion."""
IMPROVEMENT_RATIO = 0.999
"""Ratio of the new to the best error below which a tick counts as an improvement."""
MAX_TICKS_WITHOUT_IMPROVEMENT = 50
"""Number of ticks without improvement after which the solver is at rest; large, because methods with momentum may
oscillate before they improve."""
MAX_BUDGET_RATIO = 16.0
"""Largest ratio of the time limit of a tick to the budget; the limit is doubled after each unfinished tick that did not
move q."""
UNFINISHED_STATUSES = (Status.TIMEOUT, Status.NOT_CLOSED)
"""Status values after which another tick may help."""


class TickSolver:
    """Makes the ticks of a live solver, from the current configuration to the newest targets.

    Attributes:
        solver: the solver; None if there is nothing to solve.
        has_no_goals: whether the solver only satisfies loops and joint constraints, near the start or the configuration
            of the last `move`.
        space: configuration space for which the solver was built.
        q: (nq,), float64 and never modified in place, so that kernels take it without a copy.
        target_store: the newest targets.
        is_at_rest: whether another tick would not improve the result.
    """

    def __init__(self, mechanism: Mechanism, solver: Solver | None, has_no_goals: bool, q: Array) -> None:
        """Start at the configuration q.

        Args:
            solver: None if there is nothing to solve.
            has_no_goals: as in Attributes.
            q: (nq,).
        """
        self.solver, self.has_no_goals, self.space = solver, has_no_goals, mechanism.space
        self.target_store = TargetStore(() if solver is None or has_no_goals else solver.objectives)
        self.q = self._moved_q = q
        # the fast path to the kernel has no time limit; it is used while solves are much faster than their budget
        self._is_fast = False
        self.reset_progress()

    def reset_progress(self) -> None:
        """Reset the history of ticks after a change."""
        self.is_at_rest, self._best_error, self._ticks_without_improvement, self._budget_ratio = False, math.inf, 0, 1.0

    def move(self, q: Array) -> None:
        """Continue from q (nq,)."""
        self.q = self._moved_q = q
        self.reset_progress()

    def targets(self) -> Targets | None:
        """Return the current targets for `tick` and `step`.

        Without goals, the first objective is a rest pose, and its target is q of the last `move`.
        """
        if not self.has_no_goals or self.solver is None:
            return self.target_store.solver_targets()
        further_count = len(self.solver.objectives) - 1
        return [self._moved_q, *[None] * further_count] if further_count else self._moved_q

    def tick(self, targets: Targets | None, budget: float) -> Solution | None:
        """Solve from the current q; None if there is nothing to solve.

        The time limit is `budget` seconds, or up to `MAX_BUDGET_RATIO` times as long if previous ticks did not move q.
        While solves are much faster than the budget, there is no time limit.
        """
        solver = self.solver
        if solver is None:
            self.is_at_rest = True
            return None
        options: dict[str, Any] = {} if self._is_fast else {"max_seconds": self._budget_ratio * budget}
        if solver.chain is None and solver.options.restarts is None:
            options["restarts"] = 0  # a tick continues from the last configuration
        solution = solver.solve(targets, self.q, **options)
        has_fast_path = solver.method.is_compiled
        self._is_fast = has_fast_path and solution.seconds < (0.5 if self._is_fast else 0.25) * budget
        self._continue_from(solution)
        return solution

    def step(self, targets: Targets | None) -> Solution | None:
        """Make a single iteration; see `Solver.step`. None if there is nothing to solve."""
        if self.solver is None:
            self.is_at_rest = True
            return None
        solution = self.solver.step(targets, self.q)
        self._continue_from(solution)
        return solution

    def _motion(self, solution: Solution) -> float:
        return float(np.abs(solution.q - self.q).max(initial=0.0))

    def _continue_from(self, solution: Solution) -> None:
        """Continue from q of the solution, and decide whether the solver is at rest."""
        assert self.solver is not None
        motion = self._motion(solution)
        self.q = solution.q.copy()
        status = solution.status
        error = (
            max((subproblem.residual for subproblem in solution.subproblems), default=0.0)
            if status in UNFINISHED_STATUSES
            else 0.0
        )
        self._ticks_without_improvement = (
            0 if error < IMPROVEMENT_RATIO * self._best_error else self._ticks_without_improvement + 1
        )
        self._best_error = min(self._best_error, error)
        may_improve = status in UNFINISHED_STATUSES and self._ticks_without_improvement < MAX_TICKS_WITHOUT_IMPROVEMENT
        # with a rest factor below 1, each tick covers only a share of the distance to the rest pose
        may_improve = may_improve or self.solver.options.rest_factor < 1.0
        self._budget_ratio *= 1.0 if motion > MIN_MOTION or status not in UNFINISHED_STATUSES else 2.0
        self.is_at_rest = not may_improve or (
            motion <= MIN_MOTION and (status not in UNFINISHED_STATUSES or self._budget_ratio > MAX_BUDGET_RATIO)
        )


class TickRate:
    """Number of ticks within the last second."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()

    def update(self, now: float) -> float:
        """Count a tick that ends at `now` (s, `time.perf_counter`), and return the rate (1/s)."""
        self._times.append(now)
        while self._times[0] < now - 1.0:
            self._times.popleft()
        return float(len(self._times))


def transfer_q(names: Sequence[str], q: Array, mechanism: Mechanism) -> Array:
    """Convert a q (nq,) from before an edit of the mechanism to the entries of q after it, by their names.

    Entries with new names have their current value in the mechanism.

    Args:
        names: names of the entries of q before the edit.
    """
    new_names = mechanism.space.q_names
    if tuple(names) == new_names:
        return q
    new_q, old_values = mechanism.q, dict(zip(names, q.tolist(), strict=True))
    for k, name in enumerate(new_names):
        new_q[k] = old_values.get(name, new_q[k])
    return new_q
