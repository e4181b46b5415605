"""Mechanik itself, in the environment of the benchmark: one solver, each tick from the previous solution."""

from __future__ import annotations

from typing import Any

import numpy as np
from case import Case
from loop_driver import TOLERANCE
from loop_driver import Driver as Base

import mechanik as mk


class Driver(Base):
    def open(self) -> None:
        self.mechanism = build(self.case)
        options: dict[str, Any] = {"max_iterations": 1000} if self.case.name == "arm_100" else {}  # uncoiling takes 124
        self.solver = mk.Solver(self.mechanism, make_objective(self.case), **options)
        self.q_start = np.array(self.mechanism.q)

    def target(self, target: Any) -> Any:
        return float(target) if np.ndim(target) == 0 else np.ascontiguousarray(target)

    def begin(self) -> None:
        self.q = self.q_start

    def tick(self, target: Any) -> Any:
        solution = self.solver.solve(target, self.q)
        self.q = solution.q
        return solution

    def values(self, solution: mk.Solution) -> np.ndarray:
        values = self.mechanism.values(solution.q)
        return np.concatenate([np.atleast_1d(values[joint.name]) for joint in self.case.joints])


def build(case: Case) -> mk.Mechanism:
    b = mk.Builder(case.name)
    for joint in case.joints:
        limits = (joint.lower, joint.upper) if np.isfinite([joint.lower, joint.upper]).any() else None
        b.joint(joint.name, joint.parent, joint.link, joint.dof, at=joint.pose, limits=limits, value=joint.start)
    for closure in case.closures:
        kind = "weld" if closure.kind == "weld" else "ball"
        b.close(closure.name, closure.a, closure.b, kind, at=closure.pose_a, onto=closure.pose_b)
    return b.build()


def make_objective(case: Case) -> mk.Objective:
    goal, first = case.goal, case.targets[0]
    if goal.kind == "joint":
        return mk.JointValues({goal.name: float(first)}, angle_mode="exact", angle_tolerance=TOLERANCE)
    if goal.kind == "point":
        return mk.PositionGoal(goal.name, first, goal.at, tolerance=TOLERANCE)
    return mk.PoseGoal(goal.name, first, tolerance=TOLERANCE, angle_tolerance=TOLERANCE)
