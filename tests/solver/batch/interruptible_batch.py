"""A batch in a process of its own, to be stopped: python interruptible_batch.py FOLDER TARGETS.npy PAUSE THREADS

Its results come from a test double, so that nothing is compiled. Prints the outcome and the peak memory.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import numpy as np
from fake_chain import FakeChain

import mechanik as mk
from mechanik.solver.batch import BatchRequest, BatchResult, Interrupted, LaneBackend, SequentialBackend, run_batch

ARM = mk.gallery.planar_3r()
GOAL = mk.PoseGoal("tool", np.eye(4))


def solve(folder, targets, pause=0.0, threads=1, chunk=None, **how) -> BatchResult:
    def no_solver():
        raise AssertionError("every row is the chain's")

    engine = LaneBackend(FakeChain(pause), SequentialBackend(ARM, (GOAL,), no_solver), GOAL, ARM.q)
    return run_batch(BatchRequest(ARM, (GOAL,)), engine, targets, out=folder, threads=threads, chunk=chunk, **how)


def peak() -> int:
    """MB; of this process alone, other than getrusage's, which begins with its parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


def main(folder: str, targets: str, pause: str, threads: str) -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may have turned it off
    if float(pause):
        import mechanik.solver.batch.batch_run

        mechanik.solver.batch.batch_run.COMMIT_INTERVAL_S = 0.02
    wanted = np.load(targets, mmap_mode="r")
    try:
        result = solve(folder, wanted, float(pause), int(threads), 50 if float(pause) else None)
    except Interrupted as stopped:
        sys.stdout.write(f"{stopped.result.done} {stopped}\n")
        return 130
    sys.stdout.write(f"{result.done} {peak()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
