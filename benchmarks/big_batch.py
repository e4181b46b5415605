"""Ten million targets from a file into files: python benchmarks/big_batch.py [ROWS] [ROBOT] [FOLDER]

Targets are poses of random configurations, (N, 4, 4) in a file that is memory-mapped. Prints how fast they were solved,
how many, checked by forward kinematics, and the most memory that the process ever held. Fails if that is above 1 GB, or
if a row is missing.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import mechanik as mk

MOST_MB = 1000
BLOCK = 100_000
TIPS = {"panda": "panda_hand_tcp", "ur5": "tool0", "iiwa14": "iiwa_link_ee"}


def peak_mb() -> float:
    """The most memory that this process ever held, mapped files included."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def write_targets(path: Path, arm: mk.Mechanism, tip: str, rows: int) -> None:
    """A .npy file of poses, a block at a time."""
    rng = np.random.default_rng(0)
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (rows, 4, 4)})
        for first in range(0, rows, BLOCK):
            file.write(arm.pose(tip, arm.random(rng, min(BLOCK, rows - first))).tobytes())


def checked(arm: mk.Mechanism, tip: str, targets: np.ndarray, result: mk.BatchResult) -> tuple[int, float]:
    """How many rows are right, and how far off the worst of them is (m, or entries of a rotation)."""
    right, worst = 0, 0.0
    for first in range(0, len(result), BLOCK):
        rows = slice(first, first + BLOCK)
        q = np.array(result.q[rows])
        off = np.abs(arm.pose(tip, q) - targets[rows]).max(axis=(1, 2))
        fine = (off < 2e-6) & arm.space.within_limits(q, 1e-9) & result.success[rows]
        right += int(fine.sum())
        worst = max(worst, float(off[fine].max(initial=0.0)))
    return right, worst


def main(rows: int = 10_000_000, robot: str = "panda", folder: str | None = None) -> int:
    arm, tip = mk.gallery.make(robot), TIPS[robot]
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "targets.npy"
        write_targets(path, arm, tip, rows)
        targets = np.load(path, mmap_mode="r")
        solver = mk.Solver(arm, mk.PoseGoal(tip, np.eye(4)))
        before = peak_mb()
        result = solver.solve_batch(targets, out=Path(place) / "result", progress=True)
        after = peak_mb()
        size = path.stat().st_size / 1e6
        print(f"{robot}, {size:,.0f} MB of targets; memory {before:.0f} MB before, {after:.0f} MB at most")
        print(result.summary())
        right, worst = checked(arm, tip, targets, result)
        print(f"{right:,} of {rows:,} right by forward kinematics, off by {worst:.2g} at most")
        missed = after > MOST_MB or not result.is_finished or right != int(result.success.sum())
        print("a goal was missed" if missed else "all goals met")
        return missed


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(*(int(given[0].replace("_", "")), *given[1:]) if given else ()))
