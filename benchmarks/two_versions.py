"""Compare the speed of two checkouts of Mechanik: python benchmarks/two_versions.py CHECKOUT [--rounds 6]

Runs the same solves with the sources of this checkout and of the other one, in alternating processes on one core, and
prints the best processor time of each case and the ratio other / this (above 1: this checkout is faster). The cases:
random poses without a seed (A), a path followed from solution to solution (B) and a batch (C) on a Panda and a UR5; a
four-bar driven by its crank; a Stewart platform along a path; a tracker; a Panda among obstacles.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

ARMS = {"Panda": ("panda", "panda_link8"), "UR5": ("ur5", "tool0")}
TOLERANCE = 1e-5
"""m and rad, of cases A, B and C."""
BATCH_SIZE, CAGE_TARGETS, CAGE_SINGLES = 20_000, 2_000, 500

Times = dict[str, float]
"""us a solve, by case."""


def best_time(run: Callable[[], Any], repetitions: int, count: int) -> float:
    """us of processor time for each of `count` solves: the best of several runs, after one that is not timed."""
    run()
    times: list[float] = []
    for _ in range(repetitions):
        start = process_time()
        run()
        times.append(process_time() - start)
    return 1e6 * min(times) / count


def follow(solver: Any, targets: list[Any], q: np.ndarray) -> None:
    for target in targets:
        q = solver.solve(target, q).q


def arm_times(mk: Any, data: Path) -> Times:
    times: Times = {}
    for name, (file, tool) in ARMS.items():
        arm, recorded = mk.load(data / f"{file}.urdf"), np.load(data / f"targets_{file}.npz")
        targets, path, q_start = list(recorded["T"]), list(recorded["Tpath"]), recorded["q_start"].copy()
        solver = mk.Solver(arm, mk.PoseGoal(tool, path[0], tolerance=TOLERANCE, angle_tolerance=TOLERANCE))
        batch = arm.pose(tool, arm.random(np.random.default_rng(0), BATCH_SIZE))
        times[f"A {name}"] = best_time(
            lambda solver=solver, targets=targets: [solver.solve(target) for target in targets], 12, len(targets)
        )
        times[f"B {name}"] = best_time(
            lambda solver=solver, path=path, q=q_start: follow(solver, path, q), 12, len(path)
        )
        times[f"C {name}"] = best_time(
            lambda solver=solver, batch=batch: solver.solve_batch(batch, threads=1), 8, BATCH_SIZE
        )
    return times


def loop_times(mk: Any) -> Times:
    four_bar = mk.gallery.four_bar(2.0, 0.5, 1.8, 1.2, angle=0.6)
    crank, angles = mk.Solver(four_bar, mk.JointValues({"crank_joint": 0.6})), [0.6 + 0.02 * i for i in range(1500)]
    platform = mk.gallery.stewart_platform()
    X_home = platform.pose("platform")
    poses = [shifted(X_home, 0.03, (np.sin(k / 40), np.cos(k / 50), np.sin(k / 70))) for k in range(1000)]
    lifted = mk.Solver(platform, mk.PoseGoal("platform", X_home))
    return {
        "four-bar": best_time(lambda: follow(crank, angles, four_bar.q), 12, len(angles)),
        "platform": best_time(lambda: follow(lifted, poses, platform.q), 12, len(poses)),
    }


def shifted(X: np.ndarray, distance: float, direction: tuple[float, float, float]) -> np.ndarray:
    Y = X.copy()
    Y[:3, 3] += distance * np.array(direction)
    return Y


def tracker_time(mk: Any) -> Times:
    arm, link = mk.gallery.panda(), "panda_hand_tcp"
    X = arm.pose(link)
    targets = [shifted(X, 0.1, (np.sin(k / 200), np.cos(k / 150) - 1.0, np.sin(k / 170))) for k in range(2000)]

    def track() -> None:
        tracker = mk.Tracker(arm, mk.PoseGoal(link, X), 1e-3, velocity=2.0, acceleration=15.0)
        for target in targets:
            tracker.step(target)

    return {"tracker": best_time(track, 5, len(targets))}


def cage_times(mk: Any) -> Times:
    import cage  # of the checkout that is measured

    from mechanik.collision import Collider

    arm = mk.gallery.panda(hand=False)
    collider = Collider(arm, ["self", *cage.cage(0)])
    X = arm.pose(cage.HAND, cage.free_configurations(collider, CAGE_TARGETS)[0])
    solver = mk.Solver(arm, mk.PoseGoal(cage.HAND, X[0]), avoid=collider)
    return {
        "cage, batch": best_time(lambda: solver.solve_batch(X, threads=1), 4, CAGE_TARGETS),
        "cage, one by one": best_time(lambda: [solver.solve(target) for target in X[:CAGE_SINGLES]], 4, CAGE_SINGLES),
    }


def measure(checkout: Path) -> Times:
    """Times of all cases with the sources of a checkout, in this process."""
    sys.path[:0] = [str(checkout / folder) for folder in ("src", "benchmarks", "tests")]
    import mechanik as mk

    assert Path(mk.__file__).is_relative_to(checkout), mk.__file__
    return {
        **arm_times(mk, checkout / "tests" / "data" / "peers"),
        **loop_times(mk),
        **tracker_time(mk),
        **cage_times(mk),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path, help="folder of the other checkout")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)  # in a process for one checkout
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.checkout.resolve())))
        return 0
    checkouts = {"this": Path(__file__).resolve().parents[1], "other": arguments.checkout.resolve()}
    best: dict[str, Times] = {"this": {}, "other": {}}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.rounds):
            for side in ("this", "other") if number % 2 else ("other", "this"):
                environment = os.environ | {"MECHANIK_KERNELS": "jit", "MECHANIK_CACHE_DIR": f"{folder}/{side}"}
                command = [sys.executable, __file__, str(checkouts[side]), "--measure"]
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
                for case, us in json.loads(done.stdout.splitlines()[-1]).items():
                    best[side][case] = min(us, best[side].get(case, us))
            print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
    print(f"{'us a solve':18} {'this':>9} {'other':>9} {'other / this':>13}")
    for case, us in best["this"].items():
        print(f"{case:18} {us:9.3f} {best['other'][case]:9.3f} {best['other'][case] / us:13.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
