"""Errors of a solution by independent forward kinematics; what a library claims does not count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from case import DOFS, Case

LIMIT_SLACK = 1e-6
"""Values in single precision may exceed their limits by this."""


@dataclass(frozen=True)
class Errors:
    """Of each tick, (N,); the larger of m and rad. NaN where there is no solution."""

    closure: np.ndarray
    goal: np.ndarray
    outside: np.ndarray

    def missed(self, tolerance: float) -> np.ndarray:
        """(N,): the goal or closure error is larger, a limit is violated, or there is no solution."""
        good = (self.goal <= tolerance) & (self.closure <= tolerance) & (self.outside <= LIMIT_SLACK)
        return ~good


def solution_errors(case: Case, q: np.ndarray) -> Errors:
    """
    Args:
        q: (N, n) values as in `Case.start`, of the first N ticks; NaN where there is no solution.
    """
    X = poses(case, q)
    zero = np.zeros(len(q))
    closure = zero.copy()
    for loop in case.closures:
        closure = np.maximum(
            closure, frame_distance(X[loop.a] @ loop.pose_a, X[loop.b] @ loop.pose_b, loop.kind == "weld")
        )
    targets = case.targets[: len(q)]
    if case.goal.kind == "joint":
        goal = np.abs(q[:, column(case, case.goal.name)] - targets)
        goal = np.abs(np.angle(np.exp(1j * goal)))  # full turns do not count
    elif case.goal.kind == "point":
        tip = X[case.goal.name] @ np.array([*case.goal.at, 1.0])
        goal = np.linalg.norm(tip[:, :3] - targets, axis=1)
    else:
        goal = frame_distance(X[case.goal.name], targets, with_rotation=True)
    lower, upper = case.limits()
    outside = np.maximum(np.maximum(lower - q, q - upper).max(axis=1), 0.0)
    return Errors(closure, goal, outside)


def poses(case: Case, q: np.ndarray) -> dict[str, np.ndarray]:
    """(N, 4, 4) of each link."""
    X = {case.root: np.broadcast_to(np.eye(4), (len(q), 4, 4))}
    k = 0
    for joint in case.joints:
        count = len(joint.dof)
        X[joint.link] = X[joint.parent] @ joint.pose @ motion(joint.dof, q[:, k : k + count])
        k += count
    return X


def motion(dof: tuple[str, ...], values: np.ndarray) -> np.ndarray:
    """(N, 4, 4): T(x, y, z) Rz Ry Rx of (N, count)."""
    six = np.zeros((len(values), 6))
    for k, name in enumerate(dof):
        six[:, DOFS.index(name)] = values[:, k]
    (cx, cy, cz), (sx, sy, sz) = np.cos(six[:, 3:]).T, np.sin(six[:, 3:]).T
    X = np.zeros((len(values), 4, 4))
    X[:, :3, 0] = np.array([cz * cy, sz * cy, -sy]).T
    X[:, :3, 1] = np.array([cz * sy * sx - sz * cx, sz * sy * sx + cz * cx, cy * sx]).T
    X[:, :3, 2] = np.array([cz * sy * cx + sz * sx, sz * sy * cx - cz * sx, cy * cx]).T
    X[:, :3, 3] = six[:, :3]
    X[:, 3, 3] = 1.0
    return X


def frame_distance(X: np.ndarray, Y: np.ndarray, with_rotation: bool) -> np.ndarray:
    """(N,): distance of two frames; the larger of m and, with rotation, rad."""
    position_error = np.linalg.norm(X[:, :3, 3] - Y[:, :3, 3], axis=1)
    if not with_rotation:
        return position_error
    R = np.swapaxes(X[:, :3, :3], 1, 2) @ Y[:, :3, :3]
    sine = 0.5 * np.linalg.norm(
        np.array([R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]]), axis=0
    )
    cosine = 0.5 * (np.trace(R, axis1=1, axis2=2) - 1.0)
    return np.maximum(position_error, np.arctan2(sine, cosine))


def column(case: Case, joint: str) -> int:
    """Index of the first value of a joint in q."""
    names = [other_joint.name for other_joint in case.joints for _ in other_joint.dof]
    return names.index(joint)
