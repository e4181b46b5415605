"""One library and one case in a process of its own: solves all ticks on request.

Started by `loop_race.py` in the library's environment, with one JSON object as its argument. Lines in: `round`, `save
FILE`; a line of JSON out after each, and one before all when it is ready. `drive_node.mjs` uses the same protocol.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from case import load
from loop_driver import Driver

sys.path.append(str(Path(__file__).parents[1]))
from processor_clock import MIN_SECONDS, clock, intervals

WARM_UP = 3


class Run:
    """
    Attributes:
        times: (rounds, ticks) seconds of processor time.
        cpu: (rounds,) seconds of all threads of this process.
        q: (ticks, n) of the last round; all rounds are the same.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.targets = [driver.target(target) for target in driver.case.targets]
        self.times: list[list[float]] = []
        self.cpu: list[float] = []
        self.q: list[list[float]] = []

    def round(self) -> None:
        driver, solutions, times = self.driver, list[Any](), list[tuple[float, float]]()
        tick, now = driver.tick, clock
        driver.begin()
        gc.collect()
        gc.disable()  # garbage of the benchmark itself is not part of the time
        cpu = clock()
        for target in self.targets:
            start = now()
            solution = tick(target)
            times.append((start, now()))
            solutions.append(solution)
        cpu = max(clock() - cpu, MIN_SECONDS)
        gc.enable()
        self.times.append([float(intervals(pair)[0]) for pair in times])
        self.cpu.append(cpu)
        self.q = [driver.values(solution).tolist() for solution in solutions]

    def save(self, path: str) -> None:
        Path(path).write_text(json.dumps({"q": self.q, "times": self.times, "cpu": self.cpu}), encoding="utf-8")


def main() -> None:
    arguments = json.loads(sys.argv[1])
    # libraries write to the terminal, from Python and from C++; replies to the parent use a duplicate of stdout
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    make: type[Driver] = importlib.import_module(f"drive_{arguments['driver']}").Driver
    run = Run(make(load(Path(arguments["case"])), arguments["variant"], Path(arguments["work"])))
    for _ in range(WARM_UP):
        run.round()
    run.times, run.cpu = [], []
    print(json.dumps({"ready": True}), file=replies)
    for line in sys.stdin:
        what, _, path = line.strip().partition(" ")
        if what == "round":
            run.round()
        elif what == "save":
            run.save(path)
        print(json.dumps({"done": what}), file=replies)


if __name__ == "__main__":
    main()
