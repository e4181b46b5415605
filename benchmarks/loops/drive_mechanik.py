"""Mechanik itself, from the environment that the race was started in: one solver, each tick from the answer before."""

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
        more: dict[str, Any] = {"max_iterations": 1000} if self.case.name == "arm_100" else {}  # uncoiling takes 124
        self.solver = mk.Solver(self.mechanism, wish(self.case), **more)
        self.q_start = np.array(self.mechanism.q)

    def target(self, target: Any) -> Any:
        return float(target) if np.ndim(target) == 0 else np.ascontiguousarray(target)

    def begin(self) -> None:
        self.q = self.q_start

    def tick(self, target: Any) -> Any:
        answer = self.solver.solve(target, self.q)
        self.q = answer.q
        return answer

    def values(self, answer: mk.Solution) -> np.ndarray:
        found = self.mechanism.values(answer.q)
        return np.concatenate([np.atleast_1d(found[joint.name]) for joint in self.case.joints])


def build(case: Case) -> mk.Mechanism:
    b = mk.Builder(case.name)
    for joint in case.joints:
        limits = (joint.lower, joint.upper) if np.isfinite([joint.lower, joint.upper]).any() else None
        b.joint(joint.name, joint.parent, joint.link, joint.dof, at=joint.place, limits=limits, value=joint.start)
    for one in case.closures:
        kind = "weld" if one.rows == "weld" else "ball"
        b.close(one.name, one.a, one.b, kind, at=one.place_a, onto=one.place_b)
    return b.build()


def wish(case: Case) -> mk.Objective:
    want, first = case.want, case.targets[0]
    if want.kind == "joint":
        return mk.JointValues({want.name: float(first)}, angle_mode="exact", angle_tolerance=TOLERANCE)
    if want.kind == "point":
        return mk.PositionGoal(want.name, first, want.at, tolerance=TOLERANCE)
    return mk.PoseGoal(want.name, first, tolerance=TOLERANCE, angle_tolerance=TOLERANCE)
