"""Time several cases in alternating rounds, so that noise of the machine affects all alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from processor_clock import clock, intervals

import mechanik as mk

Solutions = list[mk.Solution]
Times = list[float]
"""Readings of the clock before the first target and after each."""
Verification = tuple[int, bool, str]
"""Number of correct solutions, whether all other conditions hold, and a note about them."""


@dataclass
class Case:
    """A case to time: `run` solves all targets once and `verify` checks the solutions."""

    name: str
    goal_us: float
    count: int
    run: Callable[[Times], Solutions]
    verify: Callable[[Solutions], Verification]
    bare: Callable[[Times], Any]  # the same by the kernel alone, without Python around it
    peer: Callable[[Times], int] | None = None  # the same by Klampt; returns the number of solved targets
    best: dict[str, np.ndarray] = field(default_factory=dict)  # seconds of each target

    def us(self, side: str, solved: int) -> float:
        return 1e6 * float(self.best[side].sum()) / max(solved, 1)


def measure(cases: list[Case], rounds: int) -> dict[str, int]:
    """Store the best times of alternating rounds in the cases; return the number of targets that Klampt solves."""
    solved: dict[str, int] = {}
    for _ in range(rounds):
        for case in cases:
            for side in ("run", "bare", "peer"):
                call = getattr(case, side)
                if call is None:
                    continue
                times = [clock()]
                result = call(times)
                case.best[side] = np.minimum(intervals(times), case.best.get(side, math.inf))
                if side == "peer":
                    solved[case.name] = result
    return solved
