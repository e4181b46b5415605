"""Monitor of a running solve, the same for all methods: deadline, error history and user callback."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from mechanik.errors import InvalidArgument
from mechanik.spatial.array import Array


@dataclass(frozen=True, slots=True, eq=False)
class Iterate:
    """State of a solver after an iteration, as given to a callback.

    Attributes:
        q: configuration, (nq,); subproblems that are not solved yet are at their start.
        number: iteration number from 1, over all attempts and subproblems.
        error: norm of the weighted residual. Lengths may be divided by the characteristic length of the mechanism,
            unless the closest configuration depends on it. With "lm" it is that of the current stage, which is the
            loops or a priority level; with other methods, that of all required objectives and loops.

    Example:
        >>> arm, goal, iterates = mk.arm_2d([1.0, 1.0]), mk.PositionGoal("tool", (0.5, 1.2, 0.0)), []
        >>> solution = mk.solve(arm, goal, q0=[0.1, 0.2], callback=iterates.append)
        >>> len(iterates) == solution.iterations == iterates[-1].number
        True
    """

    q: Array
    number: int
    error: float


Callback = Callable[[Iterate], bool | None]
"""Called after each iteration; True stops the solve."""


class Monitor:
    """Deadline, history and callback of a solve.

    Attributes:
        deadline: time of `time.perf_counter` at which the solve must end, s.
        callback: called after each iteration, or None.
        history: error after each iteration; None if not requested.
        iteration_count: number of recorded iterations.
        is_stopped: whether the callback has returned True.
    """

    __slots__ = ("callback", "deadline", "history", "is_stopped", "iteration_count")

    def __init__(self, deadline: float = math.inf, history: bool = False, callback: Callback | None = None) -> None:
        """Create a monitor.

        Args:
            deadline: time of `time.perf_counter`, s.
            history: whether to record the error after each iteration.
            callback: called after each iteration.

        Raises:
            InvalidArgument: if `callback` is not callable.
        """
        if callback is not None and not callable(callback):
            raise InvalidArgument(f"callback must be a function of an Iterate, not {callback!r}")
        self.deadline, self.callback = deadline, callback
        self.history: list[float] | None = [] if history else None
        self.iteration_count, self.is_stopped = 0, False

    @property
    def records_iterations(self) -> bool:
        """Whether each iteration must be recorded, for the history or the callback."""
        return self.history is not None or self.callback is not None

    def is_over(self) -> bool:
        """Return whether the callback stopped the solve or the deadline has passed."""
        return self.is_stopped or (self.deadline < math.inf and time.perf_counter() >= self.deadline)

    def record(self, q: Array, cost: float) -> None:
        """Record an iteration; `q` (nq,) is its configuration, and `cost` is the squared error."""
        self.iteration_count += 1
        error = math.sqrt(cost) if cost >= 0.0 else math.nan
        if self.history is not None:
            self.history.append(error)
        if self.callback is not None and self.callback(Iterate(q.copy(), self.iteration_count, error)):
            self.is_stopped = True
