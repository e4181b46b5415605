"""Klampt's Newton-Raphson solver: the goal and every closure as an objective, each tick from the current configuration.

Its tolerance is one for all, so loops closed to 1e-9 make it reach the goal to 1e-9 too. Legs that end in points are
objectives of relative points, welds of relative transforms. A joint is driven by an objective for the orientation of
its link, or its value is set and it is no part of the solve ("by hand").
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import math
from typing import Any

import klampt
import numpy as np
from loop_driver import CLOSURE_TOLERANCE
from loop_driver import Driver as Base
from urdf import urdf_link, write_urdf


class Driver(Base):
    def open(self) -> None:
        case = self.case
        path = self.work / f"klampt_{case.name}.urdf"
        write_urdf(case, path)
        self.world = klampt.WorldModel()  # which the robot does not keep alive
        self.world.readFile(str(path))
        self.robot = self.world.robot(0)
        link_index = lambda link: self.robot.link(urdf_link(case, link)).getIndex()  # noqa: E731
        self.link_indices = [link_index(joint.link) for joint in case.joints]
        self.solver = klampt.IKSolver(self.robot)
        active = list(self.link_indices)
        self.by_hand = self.variant == "by hand"
        driven = next((k for k, joint in enumerate(case.joints) if joint.name == case.goal.name), -1)
        self.driven = self.link_indices[driven]
        self.link = self.driven if case.goal.kind == "joint" else link_index(case.goal.name)
        if self.by_hand:
            active.remove(self.driven)
        else:
            self.solver.add(klampt.IKObjective())
        for loop in case.closures:
            objective = klampt.IKObjective()
            if loop.kind == "weld":
                X_a_b = loop.pose_a @ np.linalg.inv(loop.pose_b)
                ends = X_a_b[:3, :3].T.ravel().tolist(), X_a_b[:3, 3].tolist()
                objective.setRelativeTransform(link_index(loop.b), link_index(loop.a), *ends)
            else:
                ends = loop.pose_b[:3, 3].tolist(), loop.pose_a[:3, 3].tolist()
                objective.setRelativePoint(link_index(loop.b), link_index(loop.a), *ends)
            self.solver.add(objective)
        self.solver.setTolerance(CLOSURE_TOLERANCE / math.sqrt(3.0))  # of each number
        self.solver.setMaxIters(50)
        self.solver.setActiveDofs(active)
        lower, upper = case.limits()
        limits = [[-math.inf] * self.robot.numLinks(), [math.inf] * self.robot.numLinks()]
        for k, index in enumerate(self.link_indices):
            limits[0][index], limits[1][index] = lower[k], upper[k]
        self.solver.setJointLimits(*limits)
        self.start = list(self.robot.getConfig())
        for k, index in enumerate(self.link_indices):
            self.start[index] = float(case.start[k])

    def target(self, target: Any) -> Any:
        if self.by_hand:
            return float(target)
        objective = klampt.IKObjective()
        if self.case.goal.kind == "joint":  # all its joints turn about z
            c, s = math.cos(target), math.sin(target)
            objective.setLinks(self.link)
            objective.setFreePosition()
            objective.setFixedRotConstraint([c, s, 0.0, -s, c, 0.0, 0.0, 0.0, 1.0])
            return objective
        objective.setFixedTransform(self.link, target[:3, :3].T.ravel().tolist(), target[:3, 3].tolist())
        return objective

    def begin(self) -> None:
        self.robot.setConfig(self.start)
        self.config = list(self.start)

    def tick(self, target: Any) -> Any:
        if self.by_hand:
            self.config = list(self.config)
            self.config[self.driven] = target
            self.robot.setConfig(self.config)
        else:
            self.solver.set(0, target)
        self.solver.solve()
        self.config = self.robot.getConfig()
        return self.config

    def values(self, solution: Any) -> np.ndarray:
        return np.array(solution)[self.link_indices]
