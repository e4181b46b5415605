"""One library, one arm and one protocol in a process of its own: runs a round whenever it is told to.

Started by `race.py` in the library's environment, with one JSON object as its argument. Lines in: `round`, `save FILE`;
a line of JSON out after each, and one before all when it is ready.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from arms import ARMS
from driver import Driver

sys.path.append(str(Path(__file__).parents[1]))
from processor_clock import LEAST, clock, intervals, seconds_per_call

WARM_UP = 20
"""Targets that are solved before anything is timed; from their time it follows how many a round has time for."""
FEWEST = 25


class Run:
    """A protocol's targets for one driver, ready to be gone through again and again.

    Attributes:
        count: how many of the targets a round goes through.
        times: (rounds, count) seconds of processor time of each target; (rounds, 1) of the whole where it is a batch.
        cpu: (rounds,) seconds of all threads of this process.
        q: (rounds, count, n), NaN where there is no answer.
    """

    def __init__(self, driver: Driver, protocol: str, data: Any, budget: float) -> None:
        self.driver = driver
        names = {"A": ("T", "q0"), "near": ("Tnear", "q_near"), "B": ("Tpath", None), "C": ("Tb", None)}[protocol]
        self.X = np.ascontiguousarray(data[names[0]])
        self.targets = [driver.target(X) for X in self.X]
        self.seeds = [driver.seed(q) for q in data[names[1]]] if names[1] else [driver.seed(data["q_start"])]
        ways: dict[str, Callable[[int, list[float]], Any]]
        ways = {"A": self._each, "near": self._near, "B": self._path, "C": self._batch}
        self.way = ways[protocol]
        self.is_batch = protocol == "C"
        self.times: list[np.ndarray] = []
        self.cpu: list[float] = []
        self.q: list[np.ndarray] = []
        self.count = len(self.X)
        each = self._warm_up(WARM_UP)
        each = self._warm_up(int(budget / 4 / each))  # a batch has costs of its own, which do not grow with it
        self.count = min(self.count, max(FEWEST, int(budget / each)))
        if self.is_batch:
            driver._seeds(self.count)

    def _warm_up(self, count: int) -> float:
        """Seconds a target, from so many; of a second go, since the first may compile, or fill caches."""
        count = min(max(count, WARM_UP), len(self.X))
        self.way(count, [])
        return seconds_per_call(lambda: self.way(count, [])) / count

    def round(self) -> float:
        times = [clock()]
        answers = self.way(self.count, times)
        times.append(clock())
        self.times.append(intervals([times[0], times[-1]] if self.is_batch else times[:-1]))
        self.cpu.append(max(times[-1] - times[0], LEAST))
        self.q.append(self.driver.configurations(answers))
        return times[-1] - times[0]

    def _each(self, count: int, times: list[float]) -> list[Any]:
        solve, answers = self.driver.solve, list[Any]()
        for target, seed in zip(self.targets[:count], self.seeds[:count], strict=True):
            answers.append(solve(target, seed))
            times.append(clock())
        return answers

    def _near(self, count: int, times: list[float]) -> list[Any]:
        follow, answers = self.driver.follow, list[Any]()
        for target, seed in zip(self.targets[:count], self.seeds[:count], strict=True):
            answers.append(follow(target, seed))
            times.append(clock())
        return answers

    def _path(self, count: int, times: list[float]) -> list[Any]:
        follow, last, answers = self.driver.follow, self.seeds[0], list[Any]()
        for target in self.targets[:count]:
            answer = follow(target, last)
            if answer is not None:
                last = answer
            answers.append(answer)
            times.append(clock())
        return answers

    def _batch(self, count: int, times: list[float]) -> Any:
        return self.driver.batch(self.targets[:count], self.X[:count])

    def save(self, path: str) -> None:
        np.savez(path, q=np.array(self.q), times=np.array(self.times), cpu=np.array(self.cpu))


def main() -> None:
    asked = json.loads(sys.argv[1])
    # libraries write to the terminal, from Python and from C++; the answers to race.py go another way
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    arm = ARMS[asked["arm"]]
    data = np.load(arm.targets)
    make: type[Driver] = importlib.import_module(f"drive_{asked['driver']}").Driver
    driver = make(arm, asked["tolerance"], data["lower"], data["upper"], asked["variant"])
    run = Run(driver, asked["protocol"], data, asked["budget"])
    print(json.dumps({"count": run.count}), file=answers)
    for line in sys.stdin:
        what, _, path = line.strip().partition(" ")
        if what == "round":
            print(json.dumps({"seconds": run.round()}), file=answers)
        elif what == "save":
            run.save(path)
            print(json.dumps({"saved": path}), file=answers)


if __name__ == "__main__":
    main()
