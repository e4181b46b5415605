"""PlaCo: one step of a quadratic program with the limits in it, repeated until the frame reaches the target.

The loop of its documentation (`solve(True)`, `update_kinematics()`); it does not document restarts, so a start that has
not converged after 15 steps (of 10 to 40 the fastest on both arms) is given up for a random one, 100 times at most.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any

import numpy as np
import placo
from driver import Driver as Base

STEPS, RESTARTS = 15, 100


class Driver(Base):
    def open(self) -> None:
        self.robot = placo.RobotWrapper(str(self.arm.urdf), placo.Flags.ignore_collisions)
        self.solver = placo.KinematicsSolver(self.robot)
        self.solver.mask_fbase(True)
        self.solver.enable_velocity_limits(False)
        self.task = self.solver.add_frame_task(self.arm.tool, np.eye(4))
        self.task.configure("tool", "soft", 1.0, 1.0)
        self.solver.add_regularization_task(1e-9)
        for name, lower, upper in zip(self.robot.joint_names(), self.lower, self.upper, strict=True):
            assert np.allclose(self.robot.get_joint_limits(name), (lower, upper), atol=1e-9)
        self.position_task, self.orientation_task = self.task.position(), self.task.orientation()
        self.free = self.robot.state.q[:7].copy()

    def seed(self, q: np.ndarray) -> Any:
        return np.concatenate([self.free, q])

    def solve(self, target: Any, seed: Any) -> Any:
        robot, solver, tolerance = self.robot, self.solver, self.tolerance
        position_task, orientation_task = self.position_task, self.orientation_task
        self.task.T_world_frame = target
        for _ in range(RESTARTS):
            robot.state.q = seed
            robot.update_kinematics()
            for _ in range(STEPS):
                solver.solve(True)
                robot.update_kinematics()
                if position_task.error_norm() < tolerance and orientation_task.error_norm() < tolerance:
                    return robot.state.q.copy()
            seed = self.seed(self.random())
        return None

    def q(self, solution: Any) -> np.ndarray:
        return solution[7:]
