"""PlaCo: one step of a quadratic program with loops and limits as hard rows, repeated as often as the loops need.

A point closure is a relative position task, a weld a relative frame task. A task's error is known only
after the next step, so a fixed number of steps is faster than checking: the fewest that close all loops of the path
to 1e-9. A joint is driven by a task, or its value is set and masked ("by hand").
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any

import numpy as np
import placo
from loop_driver import Driver as Base
from urdf import write_urdf

STEPS = {"joint": 3, "pose": 2}


class Driver(Base):
    def open(self) -> None:
        case = self.case
        self.by_hand = self.variant == "by hand"
        path = self.work / f"placo_{case.name}.urdf"
        frames = write_urdf(case, path)
        self.robot = placo.RobotWrapper(str(path), placo.Flags.ignore_collisions)
        self.solver = placo.KinematicsSolver(self.robot)
        self.solver.mask_fbase(True)
        self.solver.enable_velocity_limits(False)
        self.solver.enable_joint_limits(bool(np.isfinite(case.limits()).any()))
        for closure in case.closures:
            if closure.kind == "weld":
                self.solver.add_relative_frame_task(*frames[closure.name], np.eye(4)).configure(
                    closure.name, "hard", 1.0, 1.0
                )
                continue
            task = self.solver.add_relative_position_task(*frames[closure.name], np.zeros(3))
            if case.goal.kind == "joint":
                task.mask.set_axises("xy", "task")  # a planar loop's third row would depend on nothing
            task.configure(closure.name, "hard")
        if self.by_hand:
            self.solver.mask_dof(case.goal.name)
        elif case.goal.kind == "joint":
            self.goal = self.solver.add_joints_task()
            self.goal.set_joints({case.goal.name: float(case.targets[0])})
            self.goal.configure("goal", "soft", 1.0)
        else:
            self.goal = self.solver.add_frame_task(case.goal.name, np.eye(4))
            self.goal.configure("goal", "soft", 1.0, 1.0)
        self.solver.add_regularization_task(1e-9)
        names = list(self.robot.joint_names())
        self.columns = [7 + names.index(joint.name) for joint in case.joints]
        self.q_start = self.robot.state.q.copy()
        self.q_start[self.columns] = case.start
        self.steps = STEPS[case.goal.kind]

    def target(self, target: Any) -> Any:
        if self.by_hand:
            return float(target)
        return {self.case.goal.name: float(target)} if np.ndim(target) == 0 else np.ascontiguousarray(target)

    def begin(self) -> None:
        self.robot.state.q = self.q_start
        self.robot.update_kinematics()

    def tick(self, target: Any) -> Any:
        robot, solver = self.robot, self.solver
        if self.by_hand:
            robot.set_joint(self.case.goal.name, target)
            robot.update_kinematics()
        elif type(target) is dict:
            self.goal.set_joints(target)
        else:
            self.goal.T_world_frame = target
        for _ in range(self.steps):
            solver.solve(True)
            robot.update_kinematics()
        return robot.state.q.copy()

    def values(self, solution: Any) -> np.ndarray:
        return solution[self.columns]
