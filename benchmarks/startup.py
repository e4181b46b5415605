"""What starting costs, each in a process of its own: python benchmarks/startup.py

Importing beyond what NumPy takes; the first pose and the first solution, with kernels from the cache and with nothing
in it. Goals are judged by processor time: all is done by one thread, and a busy machine does not change it much.
Fails if a goal is missed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

IMPORT_GOAL_S, COMPILE_GOAL_S, SOLVE_GOAL_S = 0.1, 30.0, 1.0
FIRST_POSE = "import mechanik as mk; arm = mk.gallery.panda(); arm.pose('panda_link8', arm.neutral())"
FIRST_SOLUTION = """
import mechanik as mk
arm = mk.gallery.panda()
assert mk.solve(arm, mk.PoseGoal("panda_link8", position=(0.5, 0.2, 0.4), wxyz=(0, 1, 0, 0))).success
"""


class Seconds(NamedTuple):
    """Of a whole process."""

    wall: float
    processor: float


def seconds(code: str, times: int, **environment: str) -> Seconds:
    """The best of several processes that run `code`."""
    best = Seconds(float("inf"), float("inf"))
    for _ in range(times):
        start, spent = time.perf_counter(), children()
        subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **environment})
        best = Seconds(min(best.wall, time.perf_counter() - start), min(best.processor, children() - spent))
    return best


def children() -> float:
    """Processor seconds of all processes that were started and have ended."""
    spent = os.times()
    return spent.children_user + spent.children_system


def main() -> int:
    print(f"{'':44} {'wall':>8} {'processor':>12} {'goal':>9}")
    missed = False

    def show(what: str, took: Seconds, goal: float | None = None) -> None:
        nonlocal missed
        late = goal is not None and took.processor > goal
        missed |= late
        end = "" if goal is None else f" {goal:7.1f} s{'  <- missed' if late else ''}"
        print(f"{what:44} {took.wall:6.2f} s {took.processor:10.2f} s{end}")

    numpy, ours = seconds("import numpy", 10), seconds("import mechanik", 10)
    show("import numpy", numpy)
    beyond = Seconds(ours.wall - numpy.wall, ours.processor - numpy.processor)
    show("import mechanik, beyond that", beyond, IMPORT_GOAL_S)
    with tempfile.TemporaryDirectory() as cache:
        show("first pose, its kernels to be compiled", seconds(FIRST_POSE, 1, NUMBA_CACHE_DIR=cache))
        show("first pose, kernels in the cache", seconds(FIRST_POSE, 5, NUMBA_CACHE_DIR=cache))
        show(
            "first solution, its kernel to be compiled",
            seconds(FIRST_SOLUTION, 1, NUMBA_CACHE_DIR=cache),
            COMPILE_GOAL_S,
        )
        show("first solution, all in the cache", seconds(FIRST_SOLUTION, 5, NUMBA_CACHE_DIR=cache), SOLVE_GOAL_S)
    print("a goal was missed" if missed else "all goals met")
    return missed


if __name__ == "__main__":
    sys.exit(main())
