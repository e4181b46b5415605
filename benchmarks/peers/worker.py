"""One library, one arm and one protocol in a process of its own: runs rounds on request.

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
from processor_clock import MIN_SECONDS, clock, intervals, seconds_per_call

WARM_UP = 20
"""Targets that are solved before anything is timed; from their time it follows how many a round has time for."""
MIN_TARGETS = 25


class Run:
    """A protocol's targets for one driver, ready to be solved repeatedly.

    Attributes:
        count: how many of the targets a round goes through.
        times: (rounds, count) seconds of processor time of each target; (rounds, 1) of the whole where it is a batch.
        cpu: (rounds,) seconds of all threads of this process.
        q: (rounds, count, n), NaN where there is no solution.
    """

    def __init__(self, driver: Driver, protocol: str, data: Any, budget: float) -> None:
        self.driver = driver
        names = {"A": ("T", "q0"), "near": ("Tnear", "q_near"), "B": ("Tpath", None), "C": ("Tb", None)}[protocol]
        self.X = np.ascontiguousarray(data[names[0]])
        self.targets = [driver.target(X) for X in self.X]
        self.seeds = [driver.seed(q) for q in data[names[1]]] if names[1] else [driver.seed(data["q_start"])]
        methods: dict[str, Callable[[int, list[float]], Any]]
        methods = {"A": self._each, "near": self._near, "B": self._path, "C": self._batch}
        self.solve_targets = methods[protocol]
        self.is_batch = protocol == "C"
        self.times: list[np.ndarray] = []
        self.cpu: list[float] = []
        self.q: list[np.ndarray] = []
        self.count = len(self.X)
        each = self._warm_up(WARM_UP)
        each = self._warm_up(int(budget / 4 / each))  # a batch has costs of its own, which do not grow with it
        self.count = min(self.count, max(MIN_TARGETS, int(budget / each)))
        if self.is_batch:
            driver._seeds(self.count)

    def _warm_up(self, count: int) -> float:
        """Seconds per target, of a second run, since the first may compile or fill caches."""
        count = min(max(count, WARM_UP), len(self.X))
        self.solve_targets(count, [])
        return seconds_per_call(lambda: self.solve_targets(count, [])) / count

    def round(self) -> float:
        times = [clock()]
        solutions = self.solve_targets(self.count, times)
        times.append(clock())
        self.times.append(intervals([times[0], times[-1]] if self.is_batch else times[:-1]))
        self.cpu.append(max(times[-1] - times[0], MIN_SECONDS))
        self.q.append(self.driver.configurations(solutions))
        return times[-1] - times[0]

    def _each(self, count: int, times: list[float]) -> list[Any]:
        solve, solutions = self.driver.solve, list[Any]()
        for target, seed in zip(self.targets[:count], self.seeds[:count], strict=True):
            solutions.append(solve(target, seed))
            times.append(clock())
        return solutions

    def _near(self, count: int, times: list[float]) -> list[Any]:
        follow, solutions = self.driver.follow, list[Any]()
        for target, seed in zip(self.targets[:count], self.seeds[:count], strict=True):
            solutions.append(follow(target, seed))
            times.append(clock())
        return solutions

    def _path(self, count: int, times: list[float]) -> list[Any]:
        follow, last, solutions = self.driver.follow, self.seeds[0], list[Any]()
        for target in self.targets[:count]:
            solution = follow(target, last)
            if solution is not None:
                last = solution
            solutions.append(solution)
            times.append(clock())
        return solutions

    def _batch(self, count: int, times: list[float]) -> Any:
        return self.driver.batch(self.targets[:count], self.X[:count])

    def save(self, path: str) -> None:
        np.savez(path, q=np.array(self.q), times=np.array(self.times), cpu=np.array(self.cpu))


def main() -> None:
    arguments = json.loads(sys.argv[1])
    # libraries write to the terminal, from Python and from C++; replies to race.py use a duplicate of stdout
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    arm = ARMS[arguments["arm"]]
    data = np.load(arm.targets)
    make: type[Driver] = importlib.import_module(f"drive_{arguments['driver']}").Driver
    driver = make(arm, arguments["tolerance"], data["lower"], data["upper"], arguments["variant"])
    run = Run(driver, arguments["protocol"], data, arguments["budget"])
    print(json.dumps({"count": run.count}), file=replies)
    for line in sys.stdin:
        what, _, path = line.strip().partition(" ")
        if what == "round":
            print(json.dumps({"seconds": run.round()}), file=replies)
        elif what == "save":
            run.save(path)
            print(json.dumps({"saved": path}), file=replies)


if __name__ == "__main__":
    main()
