"""OptIK: an optimiser with random restarts, from Rust.

In "speed" mode on one thread, as it recommends where the distance from the seed does not matter, and for `follow` too:
"quality" searches until its time limit. Its cost is the square of the pose's logarithm, so the square of the
tolerance bounds position and rotation errors.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any

import numpy as np
import optik
from driver import Driver as Base


class Driver(Base):
    def open(self) -> None:
        self.robot = optik.Robot.from_urdf_file(str(self.arm.urdf), self.arm.base, self.arm.tool)
        self.robot.set_parallelism(1)
        lower, upper = self.robot.joint_limits()
        assert np.allclose([lower, upper], [self.lower, self.upper], atol=1e-9)
        self.config = optik.SolverConfig(solution_mode="speed", max_time=0.1, max_restarts=300, tol_f=self.tolerance**2)

    def target(self, X: np.ndarray) -> Any:
        return X.tolist()

    def seed(self, q: np.ndarray) -> Any:
        return q.tolist()

    def solve(self, target: Any, seed: Any) -> Any:
        solution = self.robot.ik(self.config, target, seed)
        return solution[0] if solution else None
