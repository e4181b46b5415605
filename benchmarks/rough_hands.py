"""A platform in rough hands, microseconds a tick on one core: python benchmarks/rough_hands.py [--quick]

A Stewart platform whose goal is thrown about in a cube of 2 m, each tick with the time of a frame at 60 Hz to end in;
and one whose goal is held out of reach and shaken by 2 cm. With the balls of its legs as closures (24 freedoms) and as
joints (42). Shaken ticks are repeated in rounds and the best time of each counts, since machines are noisy; of thrown
ones the worst single time counts too. Fails if a goal is missed, a loop opens, or a limit is broken.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
from processor_clock import clock, intervals

import mechanik as mk
from mechanik.spatial import from_position_wxyz, quaternion

FRAME, SHUT = 1 / 60, 1e-9
HOME = np.array([0.0, 0.0, 0.3])
SHAKEN_US = 100.0
PLACES = (2, 3, 4, 5, 6, 7)
"""Seeds of where the goal is held: two to four limits are active there."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer ticks and rounds")
    quick = parser.parse_args().quick
    missed: list[str] = []
    for ends in ("closure", "joint"):
        missed += thrown(ends, 300 if quick else 2000)
    for ends in ("closure", "joint"):
        missed += shaken(ends, 40 if quick else 150, 5 if quick else 15)
    print("all goals met" if not missed else "missed: " + "; ".join(missed))
    return bool(missed)


def thrown(ends: Any, ticks: int) -> list[str]:
    mechanism, solver = platform(ends)
    rng, q, space = np.random.default_rng(0), np.array(mechanism.q), mechanism.space
    times: list[float] = []
    iterations: list[int] = []
    closest, worst_gap, outside = 0, 0.0, 0.0
    for _ in range(ticks):
        X = from_position_wxyz(HOME + rng.uniform(-1, 1, 3), quaternion.normalize(rng.standard_normal(4)))
        start = clock()
        answer = solver.solve(X, q, max_seconds=FRAME)
        times.append(1e6 * intervals([start, clock()])[0])
        iterations.append(answer.iterations)
        q = answer.q
        closest += answer.status in (mk.Status.CLOSEST, mk.Status.CONVERGED)
        worst_gap = max(worst_gap, gap(answer))
        outside = max(outside, float((space.lower - q).max()), float((q - space.upper).max()))
    late = max(times) > 1e6 * FRAME
    fine = worst_gap < SHUT and outside <= 0.0
    print(
        f"thrown, {mechanism.nv} freedoms: median {np.median(times):6.0f} us, 99 % {np.percentile(times, 99):6.0f},"
        f" worst {max(times):6.0f} of {1e6 * FRAME:.0f}; {np.mean(iterations):.1f} iterations; closest poses {closest}"
        f" of {ticks}; loops open by {worst_gap:.0e}{'' if fine and not late else '  <- missed'}"
    )
    return [f"thrown, {mechanism.nv} freedoms"] if late or not fine else []


def shaken(ends: Any, ticks: int, rounds: int) -> list[str]:
    mechanism, solver = platform(ends)
    missed: list[str] = []
    for seed in PLACES:
        rng, q = np.random.default_rng(seed), np.array(mechanism.q)
        held = from_position_wxyz(HOME + rng.uniform(-1, 1, 3), quaternion.exp(0.7 * rng.standard_normal(3)))
        q = solver.solve(held, solver.solve(held, q).q).q
        calls: list[tuple[np.ndarray, np.ndarray]] = []
        answers: list[mk.Solution] = []
        for tick in range(ticks):
            X = held.copy()
            X[:3, 3] += 0.02 * np.sin(0.9 * tick + 2.0 * np.arange(3))
            calls.append((X, q))
            answers.append(solver.solve(X, q))
            q = answers[-1].q
        best = np.full(ticks, np.inf)
        for _ in range(rounds):
            for k, (X, q0) in enumerate(calls):
                start = clock()
                solver.solve(X, q0)
                best[k] = min(best[k], intervals([start, clock()])[0])
        us, worst_gap = 1e6 * best[1:], max(gap(one) for one in answers)
        closest = sum(one.status is mk.Status.CLOSEST for one in answers)
        late = us.mean() > SHAKEN_US or worst_gap >= SHUT
        iterations, active = np.mean([one.iterations for one in answers]), len(answers[-1].active_limits)
        print(
            f"shaken, {mechanism.nv} freedoms, place {seed}: mean {us.mean():5.0f} us, worst {us.max():5.0f}, goal"
            f" {SHAKEN_US:.0f}; {iterations:.1f} iterations; {active} limits active;"
            f" closest poses {closest} of {ticks}{'  <- missed' if late else ''}"
        )
        if late:
            missed.append(f"shaken, {mechanism.nv} freedoms, place {seed}")
    return missed


def platform(ends: Any) -> tuple[mk.Mechanism, mk.Solver]:
    mechanism = mk.gallery.stewart_platform(ends=ends)
    solver = mk.Solver(mechanism, mk.PoseGoal("platform", np.eye(4)))
    solver.solve(mechanism.pose("platform"), np.array(mechanism.q))
    return mechanism, solver


def gap(answer: mk.Solution) -> float:
    return max(max(error.position, error.rotation) for error in answer.closure_errors.values())


if __name__ == "__main__":
    sys.exit(main())
