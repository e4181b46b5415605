"""Rows of anything else, solved one by one: trees, loops, levels, any objective and any method."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from mechanik.batch.engine import Answers
from mechanik.batch.fingerprint import row_seed
from mechanik.batch.goal_poses import row_errors
from mechanik.batch.targets import Wanted
from mechanik.errors import MechanikError
from mechanik.kernels.solver_state import BAD_TARGET_ROW, CONVERGED, STALLED
from mechanik.mechanism import Mechanism
from mechanik.objectives import Objective
from mechanik.solvers.solution import Solution
from mechanik.solvers.status import BY_CODE
from mechanik.spatial.array import Array

ROWS = 64
"""At a time: some milliseconds, at 0.05 to 1 ms each."""
CODE = {status: code for code, status in reversed(list(enumerate(BY_CODE)))}


class SolvesOne(Protocol):
    """What is needed of a solver."""

    def solve(
        self, targets: Any = None, q0: Any = None, *, rng: np.random.Generator | None = None, **options: Any
    ) -> Solution: ...


class General:
    """Solves rows by solvers for single targets, one solver a thread.

    Args:
        make_solver: makes another solver of what is asked; they are kept for the next batch.
    """

    def __init__(
        self, mechanism: Mechanism, objectives: Sequence[Objective], make_solver: Callable[[], SolvesOne]
    ) -> None:
        self._mechanism, self._objectives, self._make = mechanism, objectives, make_solver
        self._idle: list[SolvesOne] = []
        self._making = threading.Lock()
        self.chunk, self.checks_poses, self.kernels = ROWS, False, ("descent", "forward", "put_targets")

    def solve_rows(self, wanted: Wanted, q0: Array | None, seed: int | None, into: Answers, **options: Any) -> None:
        """As every engine does, with options for these rows."""
        tried = np.ones(wanted.count, dtype=np.bool_)
        with self._solver() as solver:
            for i in range(wanted.count):
                start = None if q0 is None else q0[i]
                row = wanted.one(i)
                rng = None if seed is None else np.random.default_rng(row_seed(seed, row, start))
                try:
                    solution = solver.solve(row, start, rng=rng, **options)
                except MechanikError:
                    if not self._is_bad(wanted, i):
                        raise
                    into.code[i], tried[i] = BAD_TARGET_ROW, False
                    continue
                into.q[i], into.iterations[i] = solution.q, solution.iterations
                code = CODE[solution.status]
                # a level may have converged and be left again by the last step
                into.code[i] = CONVERGED if solution.success else code if code != CONVERGED else STALLED
        if tried.all():
            into.errors[:] = row_errors(self._mechanism, self._objectives, wanted, into.q)
        elif tried.any():
            into.errors[tried] = row_errors(self._mechanism, self._objectives, wanted.some(tried), into.q[tried])

    @contextmanager
    def _solver(self) -> Generator[SolvesOne]:
        """A solver that nobody else uses. They are made one after the other, as they compile the same mechanism."""
        with self._making:
            solver = self._idle.pop() if self._idle else self._make()
        try:
            yield solver
        finally:
            self._idle.append(solver)

    def _is_bad(self, wanted: Wanted, i: int) -> bool:
        """Whether it is the target of this row that is refused."""
        for k, objective in enumerate(self._objectives):
            target = wanted.target(k, i)
            if target is not None:
                try:
                    objective.at(target).relations(self._mechanism)
                except MechanikError:
                    return True
        return False
