"""Klampt's Newton-Raphson solver with random restarts.

Up to 100 attempts of 30 iterations (of 20, 30, 50 and 100 about the fastest on both arms), the later ones from
`sampleInitial`, as its `ik.solve_global` does; without that wrapper, which is Python. It makes the base of an arm
floating unless its root is called `world`.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import klampt
import numpy as np
from arms import WORK
from driver import Driver as Base

ITERATIONS, RESTARTS = 30, 100


class Driver(Base):
    def open(self) -> None:
        text = self.arm.urdf.read_text(encoding="utf-8").replace(f'"{self.arm.base}"', '"world"')
        fixed = WORK / "klampt" / f"{self.arm.stem}.urdf"
        fixed.parent.mkdir(parents=True, exist_ok=True)
        fixed.write_text(text, encoding="utf-8")
        self.world = klampt.WorldModel()  # which the robot does not keep alive
        self.world.readFile(str(fixed))
        self.robot = self.world.robot(0)
        moved = [joint for joint in ElementTree.fromstring(text).iter("joint") if joint.get("type") != "fixed"]
        children = [joint.find("child") for joint in moved]
        self.link_indices = [self.robot.link(child.get("link")).getIndex() for child in children if child is not None]
        self.link = self.robot.link(self.arm.tool).getIndex()
        limits = np.array(self.robot.getJointLimits())[:, self.link_indices]
        assert np.allclose(limits, [self.lower, self.upper], atol=1e-9)
        self.solver = klampt.IKSolver(self.robot)
        self.solver.add(klampt.IKObjective())
        self.solver.setTolerance(self.tolerance / np.sqrt(3.0))  # of each number
        self.solver.setMaxIters(ITERATIONS)
        self.solver.setActiveDofs(self.link_indices)
        klampt.set_random_seed(0)

    def target(self, X: np.ndarray) -> Any:
        objective = klampt.IKObjective()
        objective.setFixedTransform(self.link, X[:3, :3].T.ravel().tolist(), X[:3, 3].tolist())
        return objective

    def seed(self, q: np.ndarray) -> Any:
        values = np.zeros(self.robot.numLinks())
        values[self.link_indices] = q
        return values.tolist()

    def solve(self, target: Any, seed: Any) -> Any:
        solver = self.solver
        self.robot.setConfig(seed)
        solver.set(0, target)
        success = solver.solve()
        for _ in range(RESTARTS):
            if success:
                return self.robot.getConfig()
            solver.sampleInitial()
            success = solver.solve()
        return None

    def q(self, solution: Any) -> np.ndarray:
        return np.array(solution)[self.link_indices]
