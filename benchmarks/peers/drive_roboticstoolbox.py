"""Robotics Toolbox for Python: its compiled Levenberg-Marquardt with random restarts, `ETS.ik_LM`.

Its own defaults: Chan's damping, 30 iterations a search, 100 searches, limits respected. It stops by half the square of
the six errors, so half the square of the tolerance bounds each of the two.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any

import numpy as np
from driver import Driver as Base
from roboticstoolbox import Robot


class Driver(Base):
    def open(self) -> None:
        robot = Robot.URDF(str(self.arm.urdf))
        self.chain = robot.ets(end=self.arm.tool)
        assert np.allclose(self.chain.qlim, [self.lower, self.upper], atol=1e-9)
        self.options = {"tol": 0.5 * self.tolerance**2, "slimit": 100, "ilimit": 30, "joint_limits": True}

    def solve(self, target: Any, seed: Any) -> Any:
        solution = self.chain.ik_LM(target, q0=seed, **self.options)
        return solution.q if solution.success else None
