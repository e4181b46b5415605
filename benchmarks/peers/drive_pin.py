"""Pinocchio, which has kinematics and no solver: the loop of its example "inverse kinematics", in Python.

The example steps by a tenth of a damped Newton step, up to 1000 times, from one start, and knows no limits. Here it
steps by the whole, is clipped to the limits, and is given up after 20 steps for a random start, 100 times at most.
"""
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from driver import Driver as Base

STEPS, RESTARTS, DAMPING = 20, 100, 1e-6


class Driver(Base):
    def open(self) -> None:
        self.model = pin.buildModelFromUrdf(str(self.arm.urdf))
        self.data = self.model.createData()
        self.frame = self.model.getFrameId(self.arm.tool)

    def target(self, X: np.ndarray) -> Any:
        return pin.SE3(X)

    def solve(self, target: Any, seed: Any) -> Any:
        model, data, frame = self.model, self.data, self.frame
        q, damping, tolerance = seed, DAMPING * np.eye(6), self.tolerance**2
        for _ in range(RESTARTS):
            for _ in range(STEPS):
                pin.framesForwardKinematics(model, data, q)
                X_tool_target = data.oMf[frame].actInv(target)
                e = pin.log6(X_tool_target).vector
                if e[:3] @ e[:3] < tolerance and e[3:] @ e[3:] < tolerance:
                    return q
                J = pin.Jlog6(X_tool_target.inverse()) @ pin.computeFrameJacobian(model, data, q, frame)
                q = np.clip(q + J.T @ np.linalg.solve(J @ J.T + damping, e), self.lower, self.upper)
            q = self.random()
        return None
