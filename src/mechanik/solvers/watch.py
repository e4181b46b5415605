"""Who looks on while a solver works: the clock, the history, and a function of the caller's. Alike for all methods."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from mechanik.errors import WrongKind
from mechanik.spatial.array import Array


@dataclass(frozen=True, slots=True, eq=False)
class Iterate:
    """Where a solver stands after an iteration.

    Attributes:
        q: (nq,) the configuration; chains that come later stand as they began.
        number: of the iteration, from 1, over all attempts and chains.
        error: root of the sum of squares of what is worked on, weighted, lengths in sizes of the mechanism.
    """

    q: Array
    number: int
    error: float


Callback = Callable[[Iterate], bool | None]
"""Called after each iteration; True stops the solve."""


class Watch:
    """
    Attributes:
        history: the error after each iteration; None if nobody asked for it.
        stopped: whether the caller has said that it is enough.
    """

    __slots__ = ("callback", "deadline", "history", "number", "stopped")

    def __init__(self, deadline: float = math.inf, history: bool = False, callback: Callback | None = None) -> None:
        """
        Args:
            deadline: by `time.perf_counter`.
        """
        if callback is not None and not callable(callback):
            raise WrongKind(f"callback must be a function of an iterate, not {callback!r}")
        self.deadline, self.callback = deadline, callback
        self.history: list[float] | None = [] if history else None
        self.number, self.stopped = 0, False

    @property
    def every_iteration(self) -> bool:
        """Whether somebody wants to see each of them."""
        return self.history is not None or self.callback is not None

    def is_over(self) -> bool:
        """Whether the caller has stopped it, or the time is up."""
        return self.stopped or (self.deadline < math.inf and time.perf_counter() >= self.deadline)

    def see(self, x: Array, nq: int, cost: float) -> None:
        """An iteration is done; x begins with q."""
        self.number += 1
        error = math.sqrt(cost) if cost >= 0.0 else math.nan
        if self.history is not None:
            self.history.append(error)
        if self.callback is not None and self.callback(Iterate(x[:nq].copy(), self.number, error)):
            self.stopped = True
