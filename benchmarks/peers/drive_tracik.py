"""TRAC-IK by pytracik: a Newton and a SQP solver in two threads, the first to converge wins.

Type "Speed", its default. The quaternion that its Python wrapper computes by an eigenvalue problem in each call is made
before the clock starts, and the compiled function behind the wrapper is called. Its tolerance is for each number of a
pose, so it gets a part of ours. 50 ms is ten times its default time limit, so that it seldom gives up.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytracik
from driver import Driver as Base
from trac_ik import trac_ik


class Driver(Base):
    def open(self) -> None:
        self.tracik = trac_ik.TracIK(
            self.arm.base, self.arm.tool, str(self.arm.urdf),
            timeout=0.05, epsilon=self.tolerance / np.sqrt(3.0), solver_type="Speed",
        )  # fmt: skip
        assert np.allclose(self.tracik.joint_limits, [self.lower, self.upper], atol=1e-9)
        self.solver = self.tracik._ik_solver

    def target(self, X: np.ndarray) -> Any:
        w, x, y, z = trac_ik.quaternion_from_matrix(X[:3, :3])
        return (*X[:3, 3].tolist(), float(x), float(y), float(z), float(w))

    def solve(self, target: Any, seed: Any) -> Any:
        solution = pytracik.ik(self.solver, seed, *target)
        return solution[1:] if solution[0] >= 0 else None
