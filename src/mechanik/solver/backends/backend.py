"""Protocol of the backends, and the partial answers that one backend leaves for the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mechanik.solver.request import ResolvedRequest
from mechanik.solver.solution import Solution
from mechanik.spatial.array import Array


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """Best result of a backend that did not reach the targets.

    Attributes:
        q: (nq,) configuration nearest to the targets.
        attempts, iterations: effort so far.
        seconds: time of the call so far, s; 0 if not measured.
        solution: the result as a solution, which is returned if no other backend succeeds; None if a backend must
            follow.
    """

    q: Array
    attempts: int
    iterations: int
    seconds: float = 0.0
    solution: Solution | None = None


class Backend(Protocol):
    """Part of a solver that answers requests.

    Attributes:
        name: for `Solver.explain`.
    """

    @property
    def name(self) -> str: ...

    def rejection(self, request: ResolvedRequest) -> str | None:
        """Return the reason why the backend does not take a request, as the end of a sentence; None if it does."""
        ...

    def solve(self, request: ResolvedRequest, partial: Partial | None) -> Solution | Partial | None:
        """Return a solution; a partial answer, if the targets are not reached; or None, without any result.

        Args:
            request: the request; `rejection` returned None for it.
            partial: the partial answer of an earlier backend.
        """
        ...


PreparedCall = Callable[[Any, Any], "Solution | Partial | None"]
"""(target, q0) -> the solution, a partial answer, or None: the arguments have to be resolved first."""


def as_start(q0: Any, shape: tuple[int]) -> Array | None:
    """Return a start for the kernel from numbers; None if the start must be checked."""
    if not isinstance(q0, list | tuple | np.ndarray):
        return None
    try:
        start = np.array(q0, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return start if start.shape == shape else None
