"""Mechanik itself, from the environment that the comparison was started in.

Variants: "seeded" gives protocol A's random seeds to `solve`; without, a solve starts from the seed table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from driver import Driver as Base

import mechanik as mk


class Driver(Base):
    def open(self) -> None:
        arm = mk.load(self.arm.urdf)
        X = arm.pose(self.arm.tool, arm.q)
        goal = mk.PoseGoal(self.arm.tool, X, tolerance=self.tolerance, angle_tolerance=self.tolerance)
        self.solver = mk.Solver(arm, goal)
        self.is_seeded = "seeded" in self.variant

    def solve(self, target: Any, seed: Any) -> Any:
        return self.solver.solve(target, seed) if self.is_seeded else self.solver.solve(target)

    def follow(self, target: Any, seed: Any) -> Any:
        return self.solver.solve(target, seed if type(seed) is np.ndarray else seed.q)

    def batch(self, targets: list[Any], X: np.ndarray) -> Any:
        return self.solver.solve_batch(X, threads=1)

    def q(self, solution: mk.Solution) -> np.ndarray:
        return solution.q if solution.success else np.full(len(self.lower), np.nan)

    def configurations(self, solutions: Any) -> np.ndarray:
        if isinstance(solutions, list):
            return super().configurations(solutions)
        return np.where(solutions.success[:, None], solutions.q, np.nan)
