"""Time-optimal timing within velocity and acceleration limits beside toppra: python benchmarks/retime.py [--paths N]

Random Panda paths with corners, random paths of the humanoid, and smooth Panda paths. Both sides use the same curve,
the same 1,000 grid points and the same limits (1.5 rad/s, 4 rad/s^2). Printed are the ratio of the durations, the
largest excess over a limit at the grid points, and the ratio of processor time, all in one run.
"""
# pyright: basic

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import process_time

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "motion" / "retime"))

from toppra_profile import toppra_speeds

import mechanik as mk
from mechanik.motion.retime.joint_spline import JointSpline, fit_joint_spline
from mechanik.motion.retime.time_optimal import grid_along, profile_from_speeds, time_optimal_profile

VELOCITY, ACCELERATION, GRID = 1.5, 4.0, 1000


def smooth_path(arm: mk.Mechanism, rng: np.random.Generator) -> mk.Path:
    t = np.linspace(0.0, 2.0 * np.pi, 200)[:, None]
    waves = rng.uniform(0.1, 0.4, arm.nq) * np.sin(rng.uniform(0.5, 2.0, arm.nq) * t)
    return mk.Path(arm, np.clip(arm.q + waves, arm.space.lower, arm.space.upper))


def excess(curve: JointSpline, s: np.ndarray, x: np.ndarray) -> float:
    """Largest velocity or acceleration at the grid points relative to its limit, minus 1; x is the squared speed."""
    _, first, second, _ = curve.at(s)
    u = (0.5 * np.diff(x) / np.diff(s))[:, None]
    acceleration = [first[part] * u + second[part] * x[part, None] for part in (slice(0, -1), slice(1, None))]
    velocity = np.abs(first * np.sqrt(x)[:, None]).max() / VELOCITY
    return max(velocity, np.abs(acceleration).max() / ACCELERATION) - 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--paths", type=int, default=20, help="number of paths of each kind")
    count = parser.parse_args().paths
    panda, humanoid, rng = mk.gallery.panda(), mk.gallery.humanoid(), np.random.default_rng(0)
    kinds = {
        "panda, 3 waypoints": [mk.Path(panda, panda.random(rng, 3)) for _ in range(count)],
        "panda, 30 waypoints": [mk.Path(panda, panda.random(rng, 30)) for _ in range(count)],
        "panda, smooth": [smooth_path(panda, rng) for _ in range(count)],
        "humanoid, 4 waypoints": [mk.Path(humanoid, humanoid.random(rng, 4)) for _ in range(count)],
    }
    print(f"{'path':<24}{'duration, ours/toppra':>24}{'excess, ours':>14}{'toppra':>10}{'time, toppra/ours':>20}")
    for kind, paths in kinds.items():
        durations, seconds, excesses = [], [], []
        for path in paths:
            curve = fit_joint_spline(path, 5e-3)
            s = grid_along(curve, GRID)
            limits = np.full(curve.mechanism.nv, VELOCITY), np.full(curve.mechanism.nv, ACCELERATION)
            begin = process_time()
            profile = time_optimal_profile(curve, *limits, s)
            middle = process_time()
            speeds = toppra_speeds(curve, *limits, s)
            end = process_time()
            durations.append(profile.duration / profile_from_speeds(s, speeds).duration)
            seconds.append((middle - begin, end - middle))
            own = np.append(profile.state[:, 1], 0.0)
            excesses.append((excess(curve, s, own**2), excess(curve, s, speeds**2)))
        ours, theirs = np.max(excesses, axis=0)
        time = np.sum(seconds, axis=0)
        span = f"{min(durations):.5f} to {max(durations):.5f}"
        print(f"{kind:<24}{span:>24}{ours:>14.0e}{theirs:>10.0e}{time[1] / time[0]:>20.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
