"""What starting costs, each in a process of its own: python benchmarks/startup.py

Importing beyond what NumPy takes, the first pose and the first solution with kernels from the cache, and with nothing in
the cache. Fails if a goal is missed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

IMPORT_GOAL_S, COMPILE_GOAL_S, SOLVE_GOAL_S = 0.1, 30.0, 1.0
FIRST_POSE = "import mechanik as mk; arm = mk.gallery.panda(); arm.pose('panda_link8', arm.neutral())"
FIRST_SOLUTION = """
import mechanik as mk
arm = mk.gallery.panda()
assert mk.solve(arm, mk.PoseGoal("panda_link8", position=(0.5, 0.2, 0.4), wxyz=(0, 1, 0, 0))).success
"""


def seconds(code: str, times: int, **environment: str) -> float:
    """The best time of a whole process that runs `code`."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **environment})
        best = min(best, time.perf_counter() - start)
    return best


def main() -> int:
    missed = 0

    def show(what: str, took: float, goal: float | None = None) -> None:
        nonlocal missed
        late = goal is not None and took > goal
        missed += late
        print(f"{what:44} {took:7.3f} s" + ("" if goal is None else f"   goal {goal:g} s{'  <- missed' * late}"))

    numpy = seconds("import numpy", 10)
    show("import numpy", numpy)
    show("import mechanik, beyond that", seconds("import mechanik", 10) - numpy, IMPORT_GOAL_S)
    with tempfile.TemporaryDirectory() as cache:
        cold_pose = seconds(FIRST_POSE, 1, NUMBA_CACHE_DIR=cache)
        show("first pose, kernels to be compiled", cold_pose)
        warm_pose = seconds(FIRST_POSE, 5, NUMBA_CACHE_DIR=cache)
        show("first pose, kernels in the cache", warm_pose)
        cold = seconds(FIRST_SOLUTION, 1, NUMBA_CACHE_DIR=cache)
        show("first solution, its kernel to be compiled", cold, COMPILE_GOAL_S)
        show("first solution, all in the cache", seconds(FIRST_SOLUTION, 5, NUMBA_CACHE_DIR=cache), SOLVE_GOAL_S)
    print("all goals met" if not missed else f"missed: {missed}")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
