"""Paths around obstacles, beside OMPL with its defaults: python benchmarks/planning.py [--quick] [--problems N]

A Panda with collision capsules in three scenes: from one board of a shelf to another, through a window in a wall, and
in the cage of 50 obstacles of `cage.py` (`planning_scenes.py` says how starts and goals are drawn). `mk.plan` gets each
problem, and OMPL as in its tutorial: SimpleSetup, RRTConnect, motions checked every 1 % of the space, then simplified;
and one of ten problems again with checks every 0.1 %, so that fewer of its paths collide. Pinocchio and coal are its
checker, in one compiled call for each configuration. All have the same shapes, pairs, limits and seconds. Times are
processor times, since a busy machine disturbs wall times, and so is the time limit of OMPL; that of `mk.plan` is wall
time. coal then checks all paths every 0.005 rad. One path of ours in collision, or a path of two arms with a box that
violates its loop, fails the run. --scene selects scenes.
Finally two arms carry a box around a pillar (--scene pillar), by `mk.plan` alone.
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
from cage import export
from cage_peers import model_of
from planning_scenes import SCENES, Scene, straight

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "motion" / "plan"))

from ompl_planner import plan_with_ompl

import mechanik as mk
from mechanik.closure.loop_system import cached_loop_system
from mechanik.collision import Collider, Obstacle
from mechanik.errors import PlanningError
from mechanik.model.shapes import Box
from mechanik.motion.plan.path_postprocessing import shortcut_in_kernel
from mechanik.motion.plan.planning_space import PlanningSpace

PROBLEMS, SECONDS, RUNS = 100, 10.0, 10
EVERY = 10
"""Number of problems between two progress lines."""
FINER = 10
"""OMPL gets one of so many problems with finer checks, which take long."""
THREE, PILLAR = ("shelf", "window", "cage"), "pillar"


class PlanResult(NamedTuple):
    q: np.ndarray | None
    seconds: float


Planner = Callable[[np.ndarray, np.ndarray], PlanResult]
Check = Callable[[np.ndarray], bool]


def by_mechanik(arm: mk.Mechanism, collider: Collider) -> Planner:
    def solve(a: np.ndarray, b: np.ndarray) -> PlanResult:
        start_time = process_time()
        try:
            path = mk.plan(arm, a, b, avoid=collider, max_seconds=SECONDS)
        except PlanningError:
            return PlanResult(None, process_time() - start_time)
        return PlanResult(path.q, process_time() - start_time)

    return solve


def by_ompl(arm: mk.Mechanism, is_free: Check, resolution: float | None = None) -> Planner:
    """
    Args:
        resolution: share of the space between two checks; None: the default of OMPL.
    """
    from ompl import base, geometric, util

    util.setLogLevel(util.LOG_NONE)
    n, lower, upper = arm.nq, arm.space.lower, arm.space.upper

    def solve(a: np.ndarray, b: np.ndarray) -> PlanResult:
        start_time = process_time()
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
        if resolution is not None:
            setup.getSpaceInformation().setStateValidityCheckingResolution(resolution)
        start, goal = space.allocState(), space.allocState()
        for k in range(n):
            start[k], goal[k] = float(a[k]), float(b[k])
        setup.setStartAndGoalStates(start, goal)
        setup.setPlanner(geometric.RRTConnect(setup.getSpaceInformation()))
        setup.solve(base.PlannerTerminationCondition(lambda: process_time() - start_time > SECONDS))
        if not setup.haveExactSolutionPath():
            return PlanResult(None, process_time() - start_time)
        setup.simplifySolution()
        path = setup.getSolutionPath()
        states = [path.getState(k) for k in range(path.getStateCount())]
        return PlanResult(np.array([[state[k] for k in range(n)] for state in states]), process_time() - start_time)

    return solve


def checker(arm: mk.Mechanism, scene: Scene) -> Check:
    """Whether a configuration is free, by Pinocchio and coal, on the same shapes and pairs."""
    with tempfile.TemporaryDirectory() as folder:
        export(arm, scene.collider, np.zeros((1, 4, 4)), scene.starts[:1], Path(folder))
        pin, model, shapes = model_of(Path(folder))
    data, geometry_data = model.createData(), shapes.createData()
    return lambda q: not pin.computeCollisions(model, data, shapes, geometry_data, q, True)


def length(q: np.ndarray) -> float:
    return float(np.linalg.norm(np.diff(q, axis=0), axis=1).sum())


def race(name: str, problems: int, seed: int) -> bool:
    arm = mk.gallery.panda(hand=False)
    scene = SCENES[name](arm, problems, seed)
    ends, is_free = list(zip(scene.starts, scene.goals, strict=True)), checker(arm, scene)

    def collides(q: np.ndarray) -> bool:
        return not all(is_free(sample) for a, b in pairwise(q) for sample in straight(a, b))

    easy = sum(not collides(np.array(pair)) for pair in ends)
    print(f"{name}: {scene.collider}; the straight segment is free in {easy} of {len(ends)}")
    sides: dict[str, Planner] = {
        "mk.plan": by_mechanik(arm, scene.collider),
        "OMPL, Pinocchio, coal": by_ompl(arm, is_free),
        "OMPL, checks at 0.1 %": by_ompl(arm, is_free, 0.001),
    }
    ours, theirs, finer = sides
    for label in (ours, theirs):
        sides[label](*ends[0])  # load everything before timing
    results: dict[str, dict[int, PlanResult]] = {label: {} for label in sides}
    for k, pair in enumerate(ends):
        for label, solve in sides.items():
            if label != finer or k % FINER == 0:
                results[label][k] = solve(*pair)
        if (k + 1) % EVERY == 0 or k + 1 == len(ends):
            solved = "; ".join(
                f"{label}: {sum(result.q is not None for result in planned.values())} of {len(planned)}"
                for label, planned in results.items()
            )
            print(f"  {name}, {k + 1} of {len(ends)} problems. {solved}", file=sys.stderr, flush=True)
    fine = report(results, collides)
    unsolved = [(results[ours][k].q is None, results[theirs][k].q is None) for k in range(len(ends))]
    times = [np.median([result.seconds for result in results[label].values()]) for label in (ours, theirs)]
    print(
        f"  solved by neither us nor OMPL's defaults {unsolved.count((True, True))}, by OMPL's alone "
        f"{unsolved.count((True, False))}, by us alone {unsolved.count((False, True))}; "
        f"median time of OMPL's by ours: {times[1] / times[0]:.1f}"
    )
    return fine


def report(results: dict[str, dict[int, PlanResult]], collides: Check) -> bool:
    """Print a line for each planner; return whether no path of ours, which come first, collides."""
    bad, ours = list[int](), next(iter(results.values()))
    for label, planned in results.items():
        paths = {k: result.q for k, result in planned.items() if result.q is not None}
        bad.append(sum(map(collides, paths.values())))
        ms = 1e3 * np.array([result.seconds for result in planned.values()])
        if planned is ours:
            far = f"{np.mean([length(q) for q in paths.values()] or [np.nan]):.2f} rad long"
        else:
            longer = [length(q) / length(own) for k, q in paths.items() if (own := ours[k].q) is not None]
            far = f"{np.median(longer or [np.nan]):.2f} times as long as ours"
        print(
            f"  {label:<22} {len(paths):>3} of {len(planned)} solved, {bad[-1]} in collision; ms: median "
            f"{np.median(ms):.1f}, mean {ms.mean():.1f}, 95 % {np.quantile(ms, 0.95):.0f}; {far}"
        )
    return bad[0] == 0


# ---- lengths ------------------------------------------------------------------------------------

OPTIMIZING = ("BITstar", "InformedRRTstar", "RRTstar")
"""Planners of OMPL that shorten their path until the time is over."""
SHORTENING_SECONDS, SEEDS = 5.0, 16


def lengths(name: str, problems: int, seed: int) -> None:
    """Joint-space length of the best of several plans, and of OMPL's planners that shorten paths, relative to one plan.

    OMPL plans with our collision checker, and its paths are shortened as ours are.
    """
    arm = mk.gallery.panda(hand=False)
    scene = SCENES[name](arm, problems, seed)
    free = np.ones(arm.nv, dtype=np.bool_)
    ratios: dict[str, list[float]] = {label: [] for label in (f"best of {SEEDS}", *OPTIMIZING)}
    seconds: dict[str, list[float]] = {label: [] for label in ratios}
    for a, b in zip(scene.starts, scene.goals, strict=True):
        plans, begin = [], process_time()
        for k in range(SEEDS):
            path = mk.plan(arm, a, b, avoid=scene.collider, max_seconds=SECONDS, rng=np.random.default_rng(k))
            plans.append(length(path.q))
        ratios[f"best of {SEEDS}"].append(min(plans) / plans[0])
        seconds[f"best of {SEEDS}"].append(process_time() - begin)
        for planner in OPTIMIZING:
            begin, rng = process_time(), np.random.default_rng(0)
            with cached_loop_system(arm, {}) as loops:
                space = PlanningSpace(arm, loops, scene.collider, 0.0, arm.space.lower, arm.space.upper, free)
                q = plan_with_ompl(space, a, b[None], planner, perf_counter() + SHORTENING_SECONDS, rng)
                if q is not None:
                    q = shortcut_in_kernel(space, q, rng, perf_counter() + SHORTENING_SECONDS)
            ratios[planner].append(np.inf if q is None else length(q) / plans[0])
            seconds[planner].append(process_time() - begin)
    print(f"{name}: length relative to one mk.plan, {problems} problems")
    for label, values in ratios.items():
        print(
            f"  {label:<16} median {np.median(values):.2f}, no path in {np.isinf(values).sum()}; "
            f"median processor time {np.median(seconds[label]):.2f} s"
        )


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
    seconds, worst, gap, far = [], 0.0, np.inf, []
    for run in range(-1, runs):  # once before the clock runs
        start_time, wall = process_time(), perf_counter()
        try:
            path = mk.plan(arms, *ends, avoid=collider, rng=np.random.default_rng(run + 1), max_seconds=60.0)
        except PlanningError as error:
            print(f"  {error} ({perf_counter() - wall:.0f} s)")
            continue
        if run < 0:
            continue
        seconds.append(process_time() - start_time)
        far.append(path.length)
        between = mk.Path(arms, path.at(np.linspace(0.0, 1.0, 1001)))
        worst, gap = max(worst, between.closure_error()), min(gap, float(np.min(collider.distance(between.q))))
        print(f"  two arms: {run + 1} of {runs} runs", file=sys.stderr, flush=True)
    ms = 1e3 * np.array(seconds or [np.nan])
    print(
        f"two arms, one box, a pillar: {len(seconds)} of {runs} found, ms: median {np.median(ms):.0f}, "
        f"most {ms.max():.0f}; {np.mean(far or [np.nan]):.1f} rad long; "
        "at 1,001 points of each path the closure error is "
        f"{worst:.1e} m or rad at most, and the smallest distance is {1e3 * gap:.2f} mm"
    )
    return bool(seconds) and worst < 1e-6 and gap >= 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few problems, to test that it runs")
    parser.add_argument("--problems", type=int, default=PROBLEMS, help="number of problems per scene")
    parser.add_argument("--scene", choices=(*SCENES, PILLAR), nargs="+", default=(*THREE, PILLAR), help="scenes to run")
    parser.add_argument(
        "--lengths", action="store_true", help="compare lengths with OMPL's optimizing planners instead"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the problems; 0 was used for tuning")
    arguments = parser.parse_args()
    if arguments.lengths:
        for name in THREE:
            lengths(name, 2 if arguments.quick else 8, arguments.seed)
        return 0
    fine = True
    for name in arguments.scene:
        if name != PILLAR:
            fine &= race(name, 5 if arguments.quick else max(1, arguments.problems), arguments.seed)
            continue
        runs = 2 if arguments.quick else RUNS
        fine &= closed_chain(runs)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
