"""Long arms from Python on one core: python benchmarks/long_arm.py [--quick]

Arms of 10 to 500 joints follow a moving point and a moving pose from solution to solution, to 1e-6 m and rad, with the
solver as it is; and get unreachable targets. Rounds of all arms alternate; the best time of each tick
counts. Beside the times, how they grow with the number of joints: the slope in logarithms (1: linear), from 30 joints
on, and the straight line through them. Fails if a tick is missed, or 100 joints take more than 60 us an iteration.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import math
import sys
from dataclasses import dataclass, field

import numpy as np
from processor_clock import clock, intervals

import mechanik as mk
from mechanik.spatial import make_pose, rotation

JOINTS = (10, 30, 100, 300, 500)
GOAL_US = {100: 60.0}
TOLERANCE = 1e-6


@dataclass
class Run:
    """An arm that follows a path."""

    kind: str
    joints: int
    solver: mk.Solver
    targets: list[np.ndarray]
    q_start: np.ndarray
    seconds_to_make: float
    best: np.ndarray = field(default_factory=lambda: np.array([math.inf]))
    solutions: list[mk.Solution] = field(default_factory=list[mk.Solution])

    def follow(self) -> None:
        q, times, self.solutions = self.q_start, [clock()], []
        for target in self.targets:
            solution = self.solver.solve(target, q)
            q = solution.q
            times.append(clock())
            self.solutions.append(solution)
        self.best = np.minimum(self.best, intervals(times))

    @property
    def iterations(self) -> int:
        return sum(solution.iterations for solution in self.solutions)

    @property
    def us(self) -> float:
        """An iteration's, all that a solve takes spread over its iterations."""
        return 1e6 * float(self.best.sum()) / self.iterations

    def errors(self) -> tuple[float, float, int]:
        """Largest position (m) and rotation (rad) error, computed independently of the solver, and number of converged
        ticks."""
        X, reference = (
            self.solver.mechanism.pose("tool", np.array([solution.q for solution in self.solutions])),
            np.array(self.targets),
        )
        positions = reference if self.kind == "point" else reference[:, :3, 3]
        position_error = float(np.linalg.norm(X[:, :3, 3] - positions, axis=1).max())
        rotation_error = 0.0
        if self.kind == "pose":
            rotation_error = float(
                np.linalg.norm(rotation.log(np.swapaxes(X[:, :3, :3], 1, 2) @ reference[:, :3, :3]), axis=1).max()
            )
        return position_error, rotation_error, sum(solution.success for solution in self.solutions)


def arm_and_start(joints: int) -> tuple[mk.Mechanism, np.ndarray]:
    """An arm of 1 m with axes zyyzyy..., bent to an arc that is a little out of its plane."""
    arm = mk.arm_3d([1.0 / joints] * joints, ("zyy" * joints)[:joints], limits=(-2.0, 2.0))
    i = np.arange(joints)
    return arm, np.where(i % 3 == 0, 0.6 * np.sin(7.0 * i), 4.5 * (1 + 0.3 * np.sin(i))) / joints


def path(X: np.ndarray, ticks: int) -> list[np.ndarray]:
    """Poses from X and back: an eight 12 cm wide, rotating by up to 0.3 rad."""
    poses: list[np.ndarray] = []
    for t in 2 * math.pi * np.arange(ticks) / ticks:
        shift = np.array([0.06 * math.sin(t), 0.06 * (math.cos(t) - 1), 0.04 * math.sin(2 * t)])
        R = rotation.about_z(0.3 * math.sin(t)) @ rotation.about_y(0.2 * math.sin(2 * t))
        poses.append(make_pose(X[:3, :3] @ R, X[:3, 3] + shift))
    return poses


def make_run(kind: str, joints: int, ticks: int) -> Run:
    start = clock()
    arm, q = arm_and_start(joints)
    poses = path(arm.pose("tool", q), ticks)
    targets = [np.ascontiguousarray(X[:3, 3]) for X in poses] if kind == "point" else poses
    goal = mk.PositionGoal("tool", targets[0]) if kind == "point" else mk.PoseGoal("tool", targets[0])
    solver = mk.Solver(arm, goal)
    return Run(kind, joints, solver, targets, q, clock() - start)


def out_of_reach(joints: int) -> str:
    """From the same start to a point 1.5 m away, 0.5 m more than there is."""
    arm, q = arm_and_start(joints)
    solver = mk.Solver(arm, mk.PositionGoal("tool", (0.9, 0.9, 0.8)), max_iterations=1000)
    solution, best = solver.solve(q0=q), math.inf
    for _ in range(3):
        start = clock()
        solver.solve(q0=q)
        best = min(best, clock() - start)
    return f"{joints:7} joints {solution.status.name:>9} after {solution.iterations:4} iterations, {1e3 * best:8.2f} ms"


def straight_line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The slope of the line through points, and where it begins."""
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())
    return slope, float(y.mean()) - slope * float(x.mean())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer ticks and rounds")
    quick = parser.parse_args().quick
    mk.Solver(arm_and_start(10)[0], mk.PositionGoal("tool", (0.5, 0.0, 0.5)))  # compiles
    runs = [make_run(kind, joints, 60 if quick else 400) for kind in ("point", "pose") for joints in JOINTS]
    for _ in range(3 if quick else 15):
        for run in runs:
            run.follow()
    missed: list[str] = []
    print(
        f"{'goal':6} {'joints':>6} {'us/iteration':>13} {'iterations/tick':>16} {'worst tick, us':>15} "
        f"{'worst error':>22} {'converged':>11} {'made in':>9}"
    )
    for run in runs:
        position_error, rotation_error, right = run.errors()
        late = run.us > GOAL_US.get(run.joints, math.inf)
        wrong = right < len(run.targets) or max(position_error, rotation_error) > TOLERANCE * (1 + 1e-6)
        print(
            f"{run.kind:6} {run.joints:6} {run.us:13.1f} {run.iterations / len(run.targets):16.2f} "
            f"{1e6 * run.best.max():15.0f} {position_error:9.1e} m {rotation_error:6.1e} rad "
            f"{right:5} of {len(run.targets)}"
            f" {1e3 * run.seconds_to_make:6.0f} ms{'  <- missed' if late or wrong else ''}"
        )
        if late or wrong:
            missed.append(f"{run.kind} {run.joints}")
    for kind in ("point", "pose"):
        n, us = np.array([(run.joints, run.us) for run in runs if run.kind == kind and run.joints >= 30]).T
        (power, _), (each, offset) = straight_line(np.log(n), np.log(us)), straight_line(n, us)
        print(f"{kind}: grows as joints^{power:.2f}; {each:.3f} us a joint plus {offset:.1f} us")
    print("out of reach, 1.5 m for an arm of 1 m:")
    for joints in JOINTS:
        print(out_of_reach(joints))
    print("all goals met" if not missed else "missed: " + "; ".join(missed))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
