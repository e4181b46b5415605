"""Paths around obstacles, beside OMPL's own defaults: python benchmarks/planning.py [--quick] [--problems N]

A Panda that bumps with capsules, in three scenes: from one board of a shelf to another, through a window in a wall, and
in the cage of 50 obstacles of `cage.py`. Starts and goals are free configurations, in the first two with the hand on
either board, and before and behind the window. Each problem is given to `mk.plan`, and to OMPL as its tutorial has it:
SimpleSetup, RRTConnect, motions looked at every 1 % of the space, then simplified; Pinocchio and coal are its checker,
in one compiled call for each configuration. Both have the same shapes, pairs, limits and seconds, and are timed by the
processor's time, since a busy machine cuts both to pieces. All paths are then looked at every 0.005 rad with coal. One
of ours that bumps, or a path of two arms with a box that lets go of it, fails the run.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np
from cage import HAND, cage, export, free_configurations
from cage_peers import model_of

import mechanik as mk
from mechanik.collision import Collider, Obstacle
from mechanik.errors import PlanningError
from mechanik.mechanism.shapes import Box
from mechanik.spatial import make, rotation

PROBLEMS, SECONDS, DENSE = 100, 10.0, 0.005


class Found(NamedTuple):
    q: np.ndarray | None
    seconds: float


# ---- scenes ------------------------------------------------------------------------------------


def board(name: str, size: tuple[float, float, float], *place: float) -> Obstacle:
    return Obstacle(Box(size), place, name=name)


def shelf() -> list[Obstacle]:
    """A table, and on it a shelf with two boards, open towards the arm."""
    boards = [board(f"board{k}", (0.35, 0.8, 0.02), 0.65, 0.0, z) for k, z in enumerate((0.1, 0.5, 0.9))]
    sides = [board(f"side{k}", (0.35, 0.02, 0.8), 0.65, y, 0.5) for k, y in enumerate((-0.4, 0.4))]
    return [
        board("table", (1.4, 1.4, 0.04), 0.5, 0.0, -0.1),
        *boards,
        *sides,
        board("back", (0.02, 0.8, 0.8), 0.83, 0, 0.5),
    ]


def window() -> list[Obstacle]:
    """A wall in front of the arm with a window of 0.4 by 0.4 m."""
    frame = [board("left", (0.04, 1.0, 1.6), 0.45, 0.7, 0.5), board("right", (0.04, 1.0, 1.6), 0.45, -0.7, 0.5)]
    return [*frame, board("below", (0.04, 0.4, 0.6), 0.45, 0.0, 0.0), board("above", (0.04, 0.4, 0.6), 0.45, 0.0, 1.0)]


def hands(collider: Collider, low: np.ndarray, high: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """(count, nq) free, with the hand anywhere between two corners, pointing forward within half a radian."""
    found: list[np.ndarray] = []
    forward = rotation.turn_y(np.pi / 2)
    while len(found) < count:
        turns = rotation.exp(rng.uniform(-0.5, 0.5, (count, 3))) @ forward @ rotation.turn_z(rng.uniform(-3, 3, count))
        X = make(turns, rng.uniform(low, high, (count, 3)))
        solver = mk.Solver(collider.mechanism, mk.PoseGoal(HAND, X[0]), avoid=collider)
        result = solver.solve_batch(X, threads=1)
        found += list(result.q[result.success])
    return np.array(found[:count])


def scenes(arm: mk.Mechanism, count: int):
    """Name, collider, starts and goals (count, nq)."""
    rng = np.random.default_rng(3)
    on = Collider(arm, ["self", *shelf()])
    yield (
        "shelf", on, hands(on, np.array([0.5, -0.25, 0.2]), np.array([0.65, 0.25, 0.4]), count, rng),
        hands(on, np.array([0.5, -0.25, 0.6]), np.array([0.65, 0.25, 0.8]), count, rng),
    )  # fmt: skip
    through = Collider(arm, ["self", *window()])
    yield (
        "window", through, hands(through, np.array([0.25, -0.5, 0.2]), np.array([0.32, 0.5, 0.8]), count, rng),
        hands(through, np.array([0.55, -0.12, 0.4]), np.array([0.65, 0.12, 0.6]), count, rng),
    )  # fmt: skip
    caged = Collider(arm, ["self", *cage()])
    q, _ = free_configurations(caged, 2 * count)
    yield "cage", caged, q[:count], q[count:]


# ---- both --------------------------------------------------------------------------------------


def by_mechanik(arm: mk.Mechanism, collider: Collider, a: np.ndarray, b: np.ndarray) -> Found:
    begun = process_time()
    try:
        path = mk.plan(arm, a, b, avoid=collider, max_seconds=SECONDS)
    except PlanningError:
        return Found(None, process_time() - begun)
    return Found(path.q, process_time() - begun)


def by_ompl(arm: mk.Mechanism, is_free: Callable[[np.ndarray], bool]) -> Callable[[np.ndarray, np.ndarray], Found]:
    from ompl import base, geometric, util

    util.setLogLevel(util.LOG_NONE)
    n, lower, upper = arm.nq, arm.space.lower, arm.space.upper

    def solve(a: np.ndarray, b: np.ndarray) -> Found:
        begun = process_time()
        space, bounds = base.RealVectorStateSpace(n), base.RealVectorBounds(n)
        for k in range(n):
            bounds.setLow(k, float(lower[k]))
            bounds.setHigh(k, float(upper[k]))
        space.setBounds(bounds)
        setup = geometric.SimpleSetup(space)
        q = np.empty(n)

        def valid(state) -> bool:
            for k in range(n):
                q[k] = state[k]
            return is_free(q)

        setup.setStateValidityChecker(valid)
        start, goal = space.allocState(), space.allocState()
        for k in range(n):
            start[k], goal[k] = float(a[k]), float(b[k])
        setup.setStartAndGoalStates(start, goal)
        setup.setPlanner(geometric.RRTConnect(setup.getSpaceInformation()))
        setup.solve(SECONDS)
        if not setup.haveExactSolutionPath():
            return Found(None, process_time() - begun)
        setup.simplifySolution()
        path = setup.getSolutionPath()
        states = [path.getState(k) for k in range(path.getStateCount())]
        return Found(np.array([[one[k] for k in range(n)] for one in states]), process_time() - begun)

    return solve


def dense(q: np.ndarray) -> np.ndarray:
    """The straight ways between knots, every 0.005 rad."""
    parts = [a + np.linspace(0.0, 1.0, 2 + int(np.abs(b - a).max() / DENSE))[:, None] * (b - a) for a, b in pairwise(q)]
    return np.concatenate([q[:1], *parts])


def length(q: np.ndarray) -> float:
    return float(np.linalg.norm(np.diff(q, axis=0), axis=1).sum())


def race(problems: int) -> bool:
    arm, fine = mk.gallery.panda(hand=False), True
    for name, collider, starts, goals in scenes(arm, problems):
        with tempfile.TemporaryDirectory() as place:
            export(arm, collider, np.zeros((1, 4, 4)), starts[:1], Path(place))
            pin, model, shapes = model_of(Path(place))
        data, about = model.createData(), shapes.createData()

        def is_free(q, model=model, data=data, shapes=shapes, about=about, pin=pin) -> bool:
            return not pin.computeCollisions(model, data, shapes, about, q, True)

        straight = sum(all(map(is_free, dense(np.array(ends)))) for ends in zip(starts, goals, strict=True))
        print(f"{name}: {collider}; the straight way is free in {straight} of {problems}")
        theirs = by_ompl(arm, is_free)
        by_mechanik(arm, collider, starts[0], goals[0])  # kernels are loaded before the clock runs
        ours = [by_mechanik(arm, collider, *ends) for ends in zip(starts, goals, strict=True)]
        peers = [theirs(*ends) for ends in zip(starts, goals, strict=True)]
        both = [k for k in range(problems) if ours[k].q is not None and peers[k].q is not None]
        medians = []
        for label, answers in (("mk.plan", ours), ("OMPL, Pinocchio, coal", peers)):
            solved = [one.q for one in answers if one.q is not None]
            bump = sum(not all(map(is_free, dense(q))) for q in solved)
            seconds = np.array([one.seconds for one in answers])
            medians.append(np.median(seconds))
            far = np.mean([length(answers[k].q) for k in both]) if both else np.nan
            print(
                f"  {label:<22} {len(solved):>3} of {problems} solved, {bump} of them bump; ms: median "
                f"{1e3 * np.median(seconds):.1f}, mean {1e3 * seconds.mean():.1f}, "
                f"95 % {1e3 * np.quantile(seconds, 0.95):.0f}; {far:.2f} rad long, where both found one"
            )
            fine &= bump == 0 or answers is peers
        print(f"  median time of OMPL's by ours: {medians[1] / medians[0]:.1f}")
    return fine


# ---- loops -------------------------------------------------------------------------------------


def closed_chain(runs: int) -> bool:
    """Two arms carry a box from one side of a pillar to the other."""
    arms = mk.gallery.two_arms()
    X = arms.pose("box", arms.q)
    ends = []
    for side in (-0.25, 0.25):
        goal = X.copy()
        goal[1, 3] += side
        ends.append(mk.solve(arms, mk.PoseGoal("box", goal)).require().q)
    collider = Collider(arms, ["self", Obstacle(Box((0.06, 0.06, 1.2)), name="pillar")])
    collider.distance(arms.q)
    seconds, worst, gap, found = [], 0.0, np.inf, 0
    for run in range(runs):
        begun, wall = process_time(), perf_counter()
        try:
            path = mk.plan(arms, *ends, avoid=collider, rng=np.random.default_rng(run), max_seconds=6 * SECONDS)
        except PlanningError as error:
            print(f"  {error} ({perf_counter() - wall:.0f} s)")
            continue
        found += 1
        seconds.append(process_time() - begun)
        between = mk.Path(arms, path.at(np.linspace(0.0, 1.0, 1001)))
        worst, gap = max(worst, between.closure_error()), min(gap, float(np.min(collider.distance(between.q))))
    median = 1e3 * np.median(seconds) if seconds else np.nan
    print(
        f"two arms, one box, a pillar: {found} of {runs} found, median {median:.0f} ms; at 1,001 places of each path "
        f"loops are open by {worst:.1e} m or rad at most, and the smallest gap is {1e3 * gap:.2f} mm"
    )
    return bool(found) and worst < 1e-6 and gap >= 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few problems, for a test that it runs")
    parser.add_argument("--problems", type=int, default=PROBLEMS, help="in each scene")
    given = parser.parse_args()
    fine = race(5 if given.quick else given.problems)
    return 0 if closed_chain(2 if given.quick else 10) and fine else 1


if __name__ == "__main__":
    sys.exit(main())
