"""Rounds of several things to time that alternate, so that a noisy machine treats all alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from processor_clock import clock, intervals

import mechanik as mk

Answers = list[mk.Solution]
Times = list[float]
"""The clock before the first target, then after each."""
Verdict = tuple[int, bool, str]
"""How many answers are right, whether all else is as it should be, and what that is."""


@dataclass
class Case:
    """Something to time: `run` goes through all targets once and `judge` looks at what came out."""

    name: str
    goal_us: float
    count: int
    run: Callable[[Times], Answers]
    judge: Callable[[Answers], Verdict]
    bare: Callable[[Times], Any]  # the same without Python around the kernel
    peer: Callable[[Times], int] | None = None  # the same by Klampt; how many it solved
    best: dict[str, np.ndarray] = field(default_factory=dict)  # seconds of each target

    def us(self, what: str, solved: int) -> float:
        return 1e6 * float(self.best[what].sum()) / max(solved, 1)


def measure(cases: list[Case], rounds: int) -> dict[str, int]:
    """Best times into the cases, rounds of all alternating; returns how many targets Klampt solved."""
    solved: dict[str, int] = {}
    for _ in range(rounds):
        for case in cases:
            for what in ("run", "bare", "peer"):
                call = getattr(case, what)
                if call is None:
                    continue
                times = [clock()]
                result = call(times)
                case.best[what] = np.minimum(intervals(times), case.best.get(what, math.inf))
                if what == "peer":
                    solved[case.name] = result
    return solved
