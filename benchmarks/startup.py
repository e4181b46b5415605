"""What starting costs, each in a process of its own: python benchmarks/startup.py

Importing beyond what NumPy takes, the first pose with kernels from the cache, and with nothing in the cache.
Fails if importing costs more than 0.1 s beyond NumPy.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

IMPORT_GOAL_S = 0.1
FIRST_POSE = "import mechanik as mk; arm = mk.gallery.panda(); arm.pose('panda_link8', arm.neutral())"


def seconds(code: str, times: int, **environment: str) -> float:
    """The best time of a whole process that runs `code`."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **environment})
        best = min(best, time.perf_counter() - start)
    return best


def main() -> int:
    numpy = seconds("import numpy", 10)
    beyond = seconds("import mechanik", 10) - numpy
    print(f"import numpy                       {numpy:6.3f} s")
    print(f"import mechanik, beyond that       {beyond:6.3f} s")
    with tempfile.TemporaryDirectory() as cache:
        cold = seconds(FIRST_POSE, 1, NUMBA_CACHE_DIR=cache)
        warm = seconds(FIRST_POSE, 5, NUMBA_CACHE_DIR=cache)
    print(f"first pose, kernels to be compiled {cold:6.3f} s")
    print(f"first pose, kernels in the cache   {warm:6.3f} s")
    print("all goals met" if beyond <= IMPORT_GOAL_S else f"missed: importing takes more than {IMPORT_GOAL_S} s")
    return beyond > IMPORT_GOAL_S


if __name__ == "__main__":
    sys.exit(main())
