"""Where a background solver stands after a tick."""

from __future__ import annotations

from dataclasses import dataclass

from mechanik.solvers.solution import Solution
from mechanik.solvers.status import Status
from mechanik.spatial.array import Array


@dataclass(frozen=True, slots=True, eq=False)
class LiveState:
    """
    Attributes:
        q: (nq,), read-only.
        solution: what the tick came to; None before the first one, where nothing was to be solved, and after a failure.
        sequence: grows by one from state to state.
        tag: that of the newest goals that it answers.
        is_at_rest: whether the solver has done what it can for them, and sleeps until something changes.
        seconds: that the tick took, of processor time; of wall time on Windows.
        iterations: of this tick.
        status: how the tick ended; PENDING before the first one and after a failure.
        ticks_per_second: ticks within the last second.
        problem: why the tick failed, in words; empty if it did not.
    """

    q: Array
    solution: Solution | None = None
    sequence: int = 0
    tag: int = 0
    is_at_rest: bool = False
    seconds: float = 0.0
    iterations: int = 0
    status: Status = Status.PENDING
    ticks_per_second: float = 0.0
    problem: str = ""

    @property
    def error(self) -> float:
        """The largest distance (m) or angle (rad) by which a required objective or a loop is off.

        Worked out when it is asked for, on the mechanism as it then is: ask in a callback if the graph is edited.
        """
        solution = self.solution
        if solution is None:
            return 0.0
        asked = zip(solution.objectives, solution.errors.values(), strict=True)
        off = [error for one, error in asked if one.required] + list(solution.closure_errors.values())
        return max((max(error.position, error.rotation) for error in off), default=0.0)
