"""What a peer is asked to do. Each has a file of its own, `drive_NAME.py`, with a class `Driver`."""

from __future__ import annotations

from typing import Any

import numpy as np
from arms import Arm


class Driver:
    """One arm in one library, driven as its documentation recommends where speed and success matter.

    Targets and seeds are turned into the form that the library takes before the clock starts, and answers into arrays
    after it has stopped. What happens between is what a user of the library waits for.

    Attributes:
        lower, upper: the arm's limits, (n,).
        tolerance: m and rad, of an answer's place and turn.
        variant: what the row of the table adds to the driver's usual way.
    """

    def __init__(self, arm: Arm, tolerance: float, lower: np.ndarray, upper: np.ndarray, variant: str) -> None:
        self.arm, self.tolerance, self.lower, self.upper, self.variant = arm, tolerance, lower, upper, variant
        self.rng = np.random.default_rng(0)  # for restarts
        self.open()

    def open(self) -> None:
        """Reads the arm and makes the solver."""
        raise NotImplementedError

    def target(self, X: np.ndarray) -> Any:
        return X

    def seed(self, q: np.ndarray) -> Any:
        return q

    def solve(self, target: Any, seed: Any) -> Any:
        """An answer to a target that may be anywhere, inside the limits; None: there is none."""
        raise NotImplementedError

    def follow(self, target: Any, seed: Any) -> Any:
        """An answer that should be near the seed, which is one of `seed`, or an answer."""
        return self.solve(target, seed)

    def batch(self, targets: list[Any], X: np.ndarray) -> Any:
        """Answers to many targets at once, given one by one and as (N, 4, 4); a loop where there is nothing better.

        Seeds, for those who need them, are random.
        """
        solve, seeds = self.solve, self._seeds(len(targets))
        return [solve(target, seed) for target, seed in zip(targets, seeds, strict=True)]

    def q(self, answer: Any) -> np.ndarray:
        """(n,) of an answer."""
        return np.asarray(answer, dtype=float)

    def configurations(self, answers: Any) -> np.ndarray:
        """(N, n) of what `batch` returned; NaN where there is no answer."""
        none = np.full(len(self.lower), np.nan)
        return np.array([none if answer is None else self.q(answer) for answer in answers])

    def random(self) -> np.ndarray:
        return self.rng.uniform(self.lower, self.upper)

    def _seeds(self, count: int) -> list[Any]:
        """Made once and kept, so that making them is not timed."""
        if len(getattr(self, "_kept", ())) < count:
            self._kept = [self.seed(self.random()) for _ in range(count)]
        return self._kept[:count]
