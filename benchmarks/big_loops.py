"""Big mechanisms with loops from Python on one core: python benchmarks/big_loops.py [--quick]

A walker with six foot goals; towers of four-bars, each standing on the coupler of the one below, where the pose of the
last coupler is the goal, or all cranks are driven; platforms on 3 to 12 legs. All follow paths from solution to
solution. Rounds of all alternate; the best time of each tick counts. Errors are computed independently of the solver.
Fails if a tick is missed, the walker takes more than 40 us, 50 four-bars more than 20 times the time of 5, or platforms
grow faster than with the power 1.5 of their legs.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from processor_clock import clock, intervals

import mechanik as mk
from mechanik.spatial import make_pose, rotation

TOLERANCE, CLOSURE_TOLERANCE = 1e-5, 1e-9
LEGS = (3, 4, 6, 8, 10, 12)
TOWERS = (5, 10, 20, 50)
WALKER_US, TOWER_RATIO, LEGS_POWER = 40.0, 20.0, 1.5
GoalErrors = Callable[[np.ndarray], np.ndarray]
"""Goal error of each solution (N, nq) as (N,); the larger of m and rad."""


@dataclass
class Run:
    """A mechanism that follows a path."""

    name: str
    size: int
    solver: mk.Solver
    targets: list[Any]
    goal_errors: GoalErrors
    best: np.ndarray = field(default_factory=lambda: np.array([math.inf]))
    solutions: list[mk.Solution] = field(default_factory=list[mk.Solution])

    def follow(self) -> None:
        solve, q = self.solver.solve, np.array(self.solver.mechanism.q)
        times, self.solutions = [clock()], []
        for target in self.targets:
            solution = solve(target, q)
            q = solution.q
            times.append(clock())
            self.solutions.append(solution)
        self.best = np.minimum(self.best, intervals(times))

    @property
    def us(self) -> float:
        return 1e6 * float(self.best.mean())

    @property
    def iterations(self) -> float:
        return float(np.mean([solution.iterations for solution in self.solutions]))

    def errors(self) -> tuple[int, float, float]:
        """Number of missed ticks, largest goal error and largest closure error."""
        goal = self.goal_errors(np.array([solution.q for solution in self.solutions]))
        gaps = [gap for solution in self.solutions[::10] for gap in solution.closure_errors.values()]
        loop = max((max(gap.position, gap.rotation) for gap in gaps), default=0.0)
        wrong = (goal > TOLERANCE * (1 + 1e-6)) | ~np.array([solution.success for solution in self.solutions])
        return int(wrong.sum()), float(goal.max()), float(loop)


# ---- walker ---------------------------------------------------------------------------------


def walker_run(ticks: int) -> Run:
    """Every foot swings forth and back by 10 cm and is lifted in between, one after the other."""
    walker = mk.gallery.walker()
    feet = [f"foot{k}" for k in range(1, 7)]
    home = np.array([walker.pose(foot)[:3, 3] for foot in feet])
    goals = [mk.PositionGoal(foot, at, tolerance=TOLERANCE) for foot, at in zip(feet, home, strict=True)]
    a = 0.05 * np.arange(ticks)[:, None] + np.arange(6)
    swing = np.stack([0.1 * np.sin(a), np.zeros_like(a), 0.1 * np.maximum(0.0, np.cos(a))], axis=-1)
    reference = home + swing

    def goal_errors(q: np.ndarray) -> np.ndarray:
        there = np.stack([walker.pose(foot, q)[:, :3, 3] for foot in feet], axis=1)
        return np.linalg.norm(there - reference, axis=2).max(axis=1)

    return Run(
        "walker, six feet",
        walker.nv,
        mk.Solver(walker, goals),
        [list(positions) for positions in reference],
        goal_errors,
    )


# ---- towers ---------------------------------------------------------------------------------

GROUND, CRANK, COUPLER, ROCKER = 1.0, 1.0, 0.9, 1.05


def tower(count: int) -> mk.Mechanism:
    """Four-bars that stand on each other's couplers, leaning to either side in turn; as many dofs as storeys."""
    b = mk.Builder(f"tower{count}")
    floor = "ground"
    for k in range(count):
        angle = math.pi / 2 + (0.25 if k % 2 else -0.1)
        knee = CRANK * complex(math.cos(angle), math.sin(angle))
        diagonal = GROUND - knee
        bend = math.acos((COUPLER**2 + abs(diagonal) ** 2 - ROCKER**2) / (2 * COUPLER * abs(diagonal)))
        coupler_angle = math.atan2(diagonal.imag, diagonal.real) + bend
        end = knee + COUPLER * complex(math.cos(coupler_angle), math.sin(coupler_angle)) - GROUND
        b.revolute(f"crank{k}_joint", floor, f"crank{k}", value=angle)
        b.revolute(f"knee{k}_joint", f"crank{k}", f"floor{k}", at=(CRANK, 0.0, 0.0), value=coupler_angle - angle)
        rocker_angle = math.atan2(end.imag, end.real)
        b.revolute(f"rocker{k}_joint", floor, f"rocker{k}", at=(GROUND, 0.0, 0.0), value=rocker_angle)
        ends = {"at": (ROCKER, 0.0, 0.0), "onto": (COUPLER, 0.0, 0.0)}
        b.close(f"pin{k}", f"rocker{k}", f"floor{k}", "pin", **ends)
        floor = f"floor{k}"
    return b.build()


def tower_pose_run(count: int, ticks: int) -> Run:
    """The last coupler goes where the cranks, swinging by 0.5 rad in all, take it."""
    mechanism, top = tower(count), f"floor{count - 1}"
    driver, targets, _ = driven(mechanism, count, ticks, 0.5 / count)
    q, reference = np.array(mechanism.q), list[np.ndarray]()
    for target in targets:
        q = driver.solve(target, q).q
        reference.append(mechanism.pose(top, q))
    goal = mk.PoseGoal(top, reference[0], tolerance=TOLERANCE, angle_tolerance=TOLERANCE)
    solver = mk.Solver(mechanism, goal)
    return Run(
        "tower, last coupler",
        count,
        solver,
        reference,
        lambda q: frame_distance(mechanism.pose(top, q), np.array(reference)),
    )


def tower_drive_run(count: int, ticks: int) -> Run:
    """All cranks swing by 0.1 rad."""
    mechanism = tower(count)
    solver, targets, columns = driven(mechanism, count, ticks, 0.1)
    reference = np.array([list(target.values()) for target in targets])
    return Run("tower, all cranks", count, solver, targets, lambda q: np.abs(q[:, columns] - reference).max(axis=1))


def driven(
    mechanism: mk.Mechanism, count: int, ticks: int, swing: float
) -> tuple[mk.Solver, list[dict[str, float]], list[int]]:
    """A solver for the cranks, their values for each tick, each with its own frequency, and their indices in q."""
    cranks = [f"crank{k}_joint" for k in range(count)]
    columns = [list(mechanism.values()).index(name) for name in cranks]  # every joint has one number in q
    t = 0.05 * np.arange(ticks)[:, None]
    reference = mechanism.q[columns] + swing * np.sin(t * (1 + 0.5 * np.sin(np.arange(count))))
    targets = [dict(zip(cranks, row.tolist(), strict=True)) for row in reference]
    return (
        mk.Solver(mechanism, mk.JointValues(targets[0], angle_mode="exact", angle_tolerance=TOLERANCE)),
        targets,
        columns,
    )


# ---- platforms ------------------------------------------------------------------------------


def platform_run(legs: int, ticks: int) -> Run:
    """The path of the platform in `solve.py`, with `legs` legs, evenly spread."""
    height = 0.3
    b = mk.Builder(f"platform{legs}")
    b.free("platform_joint", "base", "platform", value=(0.0, 0.0, height, 0.0, 0.0, 0.0))
    for k in range(legs):
        middle = 2 * math.pi * k / legs
        aside = middle + (0.45 if k % 2 else -0.45)
        p_base = 0.20 * np.array([math.cos(middle), math.sin(middle), 0.0])
        p_platform = 0.12 * np.array([math.cos(aside), math.sin(aside), 0.0])
        reach = p_platform + np.array([0.0, 0.0, height]) - p_base
        R = rotation.between(np.array([0.0, 0.0, 1.0]), reach)
        b.universal(f"universal{k}", "base", f"leg{k}", at=make_pose(R, p_base))
        length = float(np.linalg.norm(reach))
        b.prismatic(f"slide{k}", f"leg{k}", f"piston{k}", limits=(0.2, 0.5), value=length)
        b.close(f"ball{k}", f"piston{k}", "platform", "ball", onto=p_platform)
    mechanism = b.build()
    reference = [platform_pose(0.02 * i) for i in range(ticks)]
    solver = mk.Solver(mechanism, mk.PoseGoal("platform", reference[0], tolerance=TOLERANCE, angle_tolerance=TOLERANCE))
    return Run(
        "platform",
        legs,
        solver,
        reference,
        lambda q: frame_distance(mechanism.pose("platform", q), np.array(reference)),
    )


def platform_pose(t: float) -> np.ndarray:
    s = math.sin
    R = rotation.about_z(0.15 * s(0.5 * t)) @ rotation.about_y(0.1 * s(1.1 * t)) @ rotation.about_x(0.1 * s(0.9 * t))
    return make_pose(R, np.array([0.03 * s(t), 0.03 * math.cos(t) - 0.03, 0.30 + 0.02 * s(0.7 * t)]))


def frame_distance(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    position_error = np.linalg.norm(X[:, :3, 3] - Y[:, :3, 3], axis=1)
    rotation_error = np.linalg.norm(rotation.log(np.swapaxes(X[:, :3, :3], 1, 2) @ Y[:, :3, :3]), axis=1)
    return np.maximum(position_error, rotation_error)


# ---- report ---------------------------------------------------------------------------------


def power(sizes: np.ndarray, us: np.ndarray) -> float:
    """The slope in logarithms: 1 is linear."""
    return float(np.polyfit(np.log(sizes), np.log(us), 1)[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer ticks and rounds")
    quick = parser.parse_args().quick
    mk.warm_up()
    ticks = 60 if quick else 300
    runs = [walker_run(ticks)]
    runs += [make_run(count, ticks) for make_run in (tower_pose_run, tower_drive_run) for count in TOWERS]
    runs += [platform_run(legs, ticks) for legs in LEGS]
    for _ in range(3 if quick else 9):
        for run in runs:
            run.follow()
    missed: list[str] = []
    print(f"{'':22} {'size':>5} {'nv':>4} {'us/tick':>10} {'iterations':>11} {'goal err':>9} {'loop error':>10} missed")
    for run in runs:
        wrong, goal, loop = run.errors()
        bad = wrong > 0 or loop > CLOSURE_TOLERANCE
        print(
            f"{run.name:22} {run.size:5} {run.solver.mechanism.nv:4} {run.us:10.1f} {run.iterations:11.2f} {goal:9.0e} "
            f"{loop:10.0e} {wrong} of {len(run.targets)}{'  <- missed' if bad else ''}"
        )
        if bad:
            missed.append(f"{run.name} {run.size}")
    us = {(run.name, run.size): run.us for run in runs}
    report = [("walker, us a tick", runs[0].us, WALKER_US)]
    for name in ("tower, last coupler", "tower, all cranks"):
        report.append((f"{name}: 50 against 5", us[name, 50] / us[name, 5], TOWER_RATIO))
    legs = np.array([us["platform", n] for n in LEGS])
    report.append(("platform: power of the legs", power(np.array(LEGS, dtype=float), legs), LEGS_POWER))
    for name, value, limit in report:
        print(f"{name:38} {value:8.2f}, at most {limit:g}{'  <- missed' if value > limit else ''}")
        if value > limit:
            missed.append(name)
    print("all goals met" if not missed else "missed: " + "; ".join(missed))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
