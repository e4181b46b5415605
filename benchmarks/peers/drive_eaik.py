"""EAIK: all solutions of arms with six joints and a decomposition; arms with seven after locking one.

It takes the axes of the arm, as its own URDF reader does; that reader leaves out the tool, so it is added here. It
knows no limits, takes no seed and reports no success: its user chooses a solution. Here that is the first solution
that is exact (not of least squares) and inside the limits; for `follow`, the nearest to the seed, full turns included.

The Panda's last joint is locked to 32 values in turn, made when the arm is read and tried in van der Corput's order,
until one has such a solution. (Measured on 1000 targets: locking joint 6 or 7 to 16 to 64 values cost 37 to 40 us; 32
values of joint 7 solve 99.8 %, 16 values 98.9 %.) Where a seed counts, its own value of that joint comes first.
"""
# pyright: basic, reportMissingImports=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
from driver import Driver as Base
from eaik.pybindings.EAIK import Robot
from urchin import URDF

LOCKS = 32
TURN = 2 * np.pi


class Driver(Base):
    def open(self) -> None:
        arm = URDF.load(str(self.arm.urdf), lazy_load_meshes=True)
        poses, position = arm.link_fk(), np.zeros(3)
        axes, offsets = [], []
        for joint in arm._sort_joints(arm.actuated_joints):
            X = poses[arm.link_map[joint.child]]
            axes.append(X[:3, :3] @ joint.axis)
            offsets.append(X[:3, 3] - position)
            position = X[:3, 3]
        X = poses[arm.link_map[self.arm.tool]]
        offsets.append(X[:3, 3] - position)
        self.geometry = np.array(axes).T, np.array(offsets).T, X[:3, :3]
        self.last = len(axes) - 1
        self.is_redundant = len(axes) > 6
        self.robots = [self._robot([])] if not self.is_redundant else [self._locked(u) for u in van_der_corput(LOCKS)]
        self.last_locked: tuple[float, Any] | None = None
        if self.is_redundant:
            self.solve, self.follow, self.batch = self._solve_locked, self._follow_locked, self._batch_locked

    def _robot(self, locks: list[tuple[int, float]]) -> Any:
        return Robot(*self.geometry, locks, True)

    def _locked(self, share: float) -> Any:
        lower, upper = self.lower[self.last], self.upper[self.last]
        return self._robot([(self.last, lower + share * (upper - lower))])

    # ---- six joints, which turn by more than the whole circle that EAIK's angles are in ------------

    def solve(self, target: Any, seed: Any) -> Any:
        result = self.robots[0].calculate_IK(target)
        for k, least_squares in enumerate(result.is_LS):
            if not least_squares:
                return result.Q[k]
        return None

    def follow(self, target: Any, seed: Any) -> Any:
        return self._nearest(self.robots[0].calculate_IK(target), seed)

    def batch(self, targets: list[Any], X: np.ndarray) -> Any:
        """Its raw batch: all solutions of each target, before one is chosen."""
        return self.robots[0].calculate_IK_batched(targets, 1)

    def configurations(self, solutions: Any) -> np.ndarray:
        return solutions if isinstance(solutions, np.ndarray) else super().configurations(solutions)

    def q(self, solution: Any) -> np.ndarray:
        if isinstance(solution, np.ndarray):
            return solution
        exact = [q for q, least_squares in zip(solution.Q, solution.is_LS, strict=True) if not least_squares]
        return exact[0] if exact else np.full(len(self.lower), np.nan)

    # ---- seven joints, all of which turn by less than a circle --------------------------------------

    def _solve_locked(self, target: Any, seed: Any) -> Any:
        lower, upper = self.lower, self.upper
        for robot in self.robots:
            result = robot.calculate_IK(target)
            candidates = result.Q
            if len(candidates):
                candidates = lower + (candidates - lower) % TURN
                fits = (candidates <= upper).all(axis=1)
                if fits.any():
                    fits &= np.logical_not(result.is_LS)
                    k = fits.argmax()
                    if fits[k]:
                        return candidates[k]
        return None

    def _follow_locked(self, target: Any, seed: Any) -> Any:
        value = seed[self.last]
        if self.last_locked is None or abs(self.last_locked[0] - value) > 1e-9:
            self.last_locked = (value, self._robot([(self.last, value)]))
        solution = self._nearest(self.last_locked[1].calculate_IK(target), seed)
        return self._solve_locked(target, seed) if solution is None else solution

    def _batch_locked(self, targets: list[Any], X: np.ndarray) -> Any:
        """One raw batch for each value of the locked joint, of the targets that are left."""
        q, left = np.full((len(targets), len(self.lower)), np.nan), np.arange(len(targets))
        for robot in self.robots:
            results = robot.calculate_IK_batched([targets[k] for k in left], 1)
            solutions = [target_result.Q for target_result in results]
            if not any(map(len, solutions)):
                continue
            rows = np.repeat(np.arange(len(left)), [len(rows_of_target) for rows_of_target in solutions])
            candidates = np.concatenate([rows_of_target for rows_of_target in solutions if len(rows_of_target)])
            candidates = self.lower + (candidates - self.lower) % TURN
            fits = (candidates <= self.upper).all(axis=1)
            fits &= np.logical_not(np.concatenate([target_result.is_LS for target_result in results]))
            solved, first = np.unique(rows[fits], return_index=True)
            q[left[solved]] = candidates[fits][first]
            left = np.delete(left, solved)
            if not len(left):
                break
        return q

    def _nearest(self, result: Any, seed: np.ndarray) -> Any:
        candidates = result.Q
        if not len(candidates):
            return None
        candidates = seed + (candidates - seed + np.pi) % TURN - np.pi
        candidates = np.where(
            candidates > self.upper, candidates - TURN, np.where(candidates < self.lower, candidates + TURN, candidates)
        )
        distance = np.abs(candidates - seed).max(axis=1)
        outside = ((candidates > self.upper) | (candidates < self.lower)).any(axis=1)
        distance[outside | np.array(result.is_LS, dtype=bool)] = np.inf
        k = distance.argmin()
        return candidates[k] if distance[k] < np.inf else None


def van_der_corput(count: int) -> list[float]:
    """The middles of `count` (a power of two) equal parts of 0 to 1, each far from those before."""
    bits = count.bit_length() - 1
    return [(int(format(k, f"0{bits}b")[::-1], 2) + 0.5) / count for k in range(count)]
