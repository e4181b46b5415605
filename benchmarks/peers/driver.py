"""Interface of a peer. Each has a file of its own, `drive_NAME.py`, with a class `Driver`."""

from __future__ import annotations

from typing import Any

import numpy as np
from arms import Arm


class Driver:
    """One arm in one library, driven as its documentation recommends where speed and success matter.

    Targets and seeds are converted to the form that the library takes before the clock starts, and solutions to arrays
    after it has stopped. What happens between is what a user of the library waits for.

    Attributes:
        lower, upper: the arm's limits, (n,).
        tolerance: m and rad, of the position and rotation of a solution.
        variant: what differs from the default of the driver.
    """

    def __init__(self, arm: Arm, tolerance: float, lower: np.ndarray, upper: np.ndarray, variant: str) -> None:
        self.arm, self.tolerance, self.lower, self.upper, self.variant = arm, tolerance, lower, upper, variant
        self.rng = np.random.default_rng(0)  # for restarts
        self.open()

    def open(self) -> None:
        """Read the arm and make the solver."""
        raise NotImplementedError

    def target(self, X: np.ndarray) -> Any:
        return X

    def seed(self, q: np.ndarray) -> Any:
        return q

    def solve(self, target: Any, seed: Any) -> Any:
        """Return a solution within limits for any target; None: no solution."""
        raise NotImplementedError

    def follow(self, target: Any, seed: Any) -> Any:
        """Return a solution near the seed, which is a result of `seed` or a solution."""
        return self.solve(target, seed)

    def batch(self, targets: list[Any], X: np.ndarray) -> Any:
        """Solve many targets at once, given one by one and as (N, 4, 4); a loop where there is nothing better.

        Seeds, for those who need them, are random.
        """
        solve, seeds = self.solve, self._seeds(len(targets))
        return [solve(target, seed) for target, seed in zip(targets, seeds, strict=True)]

    def q(self, solution: Any) -> np.ndarray:
        """(n,) of a solution."""
        return np.asarray(solution, dtype=float)

    def configurations(self, solutions: Any) -> np.ndarray:
        """(N, n) of what `batch` returned; NaN where there is no solution."""
        none = np.full(len(self.lower), np.nan)
        return np.array([none if solution is None else self.q(solution) for solution in solutions])

    def random(self) -> np.ndarray:
        return self.rng.uniform(self.lower, self.upper)

    def _seeds(self, count: int) -> list[Any]:
        """Random seeds, made once, so that making them is not timed."""
        if len(getattr(self, "_seed_cache", ())) < count:
            self._seed_cache = [self.seed(self.random()) for _ in range(count)]
        return self._seed_cache[:count]
