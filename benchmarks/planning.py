"""Paths around obstacles, beside OMPL's own defaults: python benchmarks/planning.py [--quick] [--problems N]

A Panda that bumps with capsules, in three scenes: from one board of a shelf to another, through a window in a wall, and
in the cage of 50 obstacles of `cage.py` (`planning_scenes.py` says how starts and goals are drawn). Each problem is
given to `mk.plan`, and to OMPL as its tutorial has it: SimpleSetup, RRTConnect, motions looked at every 1 % of the
space, then simplified; and one of ten once more with looks every 0.1 %, so that fewer of its paths bump. Pinocchio and
coal are its checker, in one compiled call for each configuration. All have the same shapes, pairs, limits and seconds.
They are timed by the processor's time, since a busy machine cuts all to pieces, and so are OMPL's seconds counted;
those of `mk.plan` are by the clock. All paths are then looked at every 0.005 rad with coal. One of ours that bumps, or
a path of two arms with a box that lets go of it, fails the run. --scene asks for some alone.
At last two arms carry a box around a pillar (--scene pillar), by `mk.plan` alone.
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
"""Problems, after which it is said how far it has come."""
FINER = 10
"""One problem of so many is given to OMPL with closer looks, which takes it long."""
THREE, PILLAR = ("shelf", "window", "cage"), "pillar"


class Found(NamedTuple):
    q: np.ndarray | None
    seconds: float


Planner = Callable[[np.ndarray, np.ndarray], Found]
Check = Callable[[np.ndarray], bool]


def by_mechanik(arm: mk.Mechanism, collider: Collider) -> Planner:
    def solve(a: np.ndarray, b: np.ndarray) -> Found:
        begun = process_time()
        try:
            path = mk.plan(arm, a, b, avoid=collider, max_seconds=SECONDS)
        except PlanningError:
            return Found(None, process_time() - begun)
        return Found(path.q, process_time() - begun)

    return solve


def by_ompl(arm: mk.Mechanism, is_free: Check, resolution: float | None = None) -> Planner:
    """
    Args:
        resolution: the share of the space between two looks; None: as OMPL has it.
    """
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
        if resolution is not None:
            setup.getSpaceInformation().setStateValidityCheckingResolution(resolution)
        start, goal = space.allocState(), space.allocState()
        for k in range(n):
            start[k], goal[k] = float(a[k]), float(b[k])
        setup.setStartAndGoalStates(start, goal)
        setup.setPlanner(geometric.RRTConnect(setup.getSpaceInformation()))
        setup.solve(base.PlannerTerminationCondition(lambda: process_time() - begun > SECONDS))
        if not setup.haveExactSolutionPath():
            return Found(None, process_time() - begun)
        setup.simplifySolution()
        path = setup.getSolutionPath()
        states = [path.getState(k) for k in range(path.getStateCount())]
        return Found(np.array([[one[k] for k in range(n)] for one in states]), process_time() - begun)

    return solve


def checker(arm: mk.Mechanism, scene: Scene) -> Check:
    """Whether a configuration is free, by Pinocchio and coal, on the same shapes and pairs."""
    with tempfile.TemporaryDirectory() as place:
        export(arm, scene.collider, np.zeros((1, 4, 4)), scene.starts[:1], Path(place))
        pin, model, shapes = model_of(Path(place))
    data, about = model.createData(), shapes.createData()
    return lambda q: not pin.computeCollisions(model, data, shapes, about, q, True)


def length(q: np.ndarray) -> float:
    return float(np.linalg.norm(np.diff(q, axis=0), axis=1).sum())


def race(name: str, problems: int, seed: int) -> bool:
    arm = mk.gallery.panda(hand=False)
    scene = SCENES[name](arm, problems, seed)
    ends, is_free = list(zip(scene.starts, scene.goals, strict=True)), checker(arm, scene)

    def bumps(q: np.ndarray) -> bool:
        return not all(is_free(one) for a, b in pairwise(q) for one in straight(a, b))

    easy = sum(not bumps(np.array(pair)) for pair in ends)
    print(f"{name}: {scene.collider}; the straight way is free in {easy} of {len(ends)}")
    sides: dict[str, Planner] = {
        "mk.plan": by_mechanik(arm, scene.collider),
        "OMPL, Pinocchio, coal": by_ompl(arm, is_free),
        "OMPL, looks at 0.1 %": by_ompl(arm, is_free, 0.001),
    }
    ours, theirs, finer = sides
    for label in (ours, theirs):
        sides[label](*ends[0])  # all is loaded before the clock runs
    found: dict[str, dict[int, Found]] = {label: {} for label in sides}
    for k, pair in enumerate(ends):
        for label, solve in sides.items():
            if label != finer or k % FINER == 0:
                found[label][k] = solve(*pair)
        if (k + 1) % EVERY == 0 or k + 1 == len(ends):
            solved = "; ".join(
                f"{label}: {sum(one.q is not None for one in some.values())} of {len(some)}"
                for label, some in found.items()
            )
            print(f"  {name}, {k + 1} of {len(ends)} problems. {solved}", file=sys.stderr, flush=True)
    fine = report(found, bumps)
    open_to = [(found[ours][k].q is None, found[theirs][k].q is None) for k in range(len(ends))]
    times = [np.median([one.seconds for one in found[label].values()]) for label in (ours, theirs)]
    print(
        f"  solved by neither us nor OMPL's defaults {open_to.count((True, True))}, by OMPL's alone "
        f"{open_to.count((True, False))}, by us alone {open_to.count((False, True))}; "
        f"median time of OMPL's by ours: {times[1] / times[0]:.1f}"
    )
    return fine


def report(found: dict[str, dict[int, Found]], bumps: Check) -> bool:
    """A line for each; whether none of ours, which come first, bumps."""
    bad, ours = list[int](), next(iter(found.values()))
    for label, answers in found.items():
        paths = {k: one.q for k, one in answers.items() if one.q is not None}
        bad.append(sum(map(bumps, paths.values())))
        ms = 1e3 * np.array([one.seconds for one in answers.values()])
        if answers is ours:
            far = f"{np.mean([length(q) for q in paths.values()] or [np.nan]):.2f} rad long"
        else:
            longer = [length(q) / length(own) for k, q in paths.items() if (own := ours[k].q) is not None]
            far = f"{np.median(longer or [np.nan]):.2f} times as long as ours"
        print(
            f"  {label:<22} {len(paths):>3} of {len(answers)} solved, {bad[-1]} of them bump; ms: median "
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
        begun, wall = process_time(), perf_counter()
        try:
            path = mk.plan(arms, *ends, avoid=collider, rng=np.random.default_rng(run + 1), max_seconds=60.0)
        except PlanningError as error:
            print(f"  {error} ({perf_counter() - wall:.0f} s)")
            continue
        if run < 0:
            continue
        seconds.append(process_time() - begun)
        far.append(path.length)
        between = mk.Path(arms, path.at(np.linspace(0.0, 1.0, 1001)))
        worst, gap = max(worst, between.closure_error()), min(gap, float(np.min(collider.distance(between.q))))
        print(f"  two arms: {run + 1} of {runs} runs", file=sys.stderr, flush=True)
    ms = 1e3 * np.array(seconds or [np.nan])
    print(
        f"two arms, one box, a pillar: {len(seconds)} of {runs} found, ms: median {np.median(ms):.0f}, "
        f"most {ms.max():.0f}; {np.mean(far or [np.nan]):.1f} rad long; at 1,001 places of each path loops are open by "
        f"{worst:.1e} m or rad at most, and the smallest gap is {1e3 * gap:.2f} mm"
    )
    return bool(seconds) and worst < 1e-6 and gap >= 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few problems, for a test that it runs")
    parser.add_argument("--problems", type=int, default=PROBLEMS, help="in each scene")
    parser.add_argument("--scene", choices=(*SCENES, PILLAR), nargs="+", default=(*THREE, PILLAR), help="which of them")
    parser.add_argument(
        "--lengths", action="store_true", help="compare lengths with OMPL's optimizing planners instead"
    )
    parser.add_argument("--seed", type=int, default=0, help="of other problems; 0 are those that were tuned on")
    given = parser.parse_args()
    if given.lengths:
        for name in THREE:
            lengths(name, 2 if given.quick else 8, given.seed)
        return 0
    fine = True
    for name in given.scene:
        if name != PILLAR:
            fine &= race(name, 5 if given.quick else max(1, given.problems), given.seed)
            continue
        runs = 2 if given.quick else RUNS
        fine &= closed_chain(runs)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
