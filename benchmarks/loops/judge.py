"""Says how far off an answer is, by forward kinematics of its own; what the contestants say does not count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from case import DOFS, Case

LIMIT_SLACK = 1e-6
"""Values in single precision may stick out of their limits by this."""


@dataclass(frozen=True)
class Errors:
    """Of each tick, (N,); the larger of m and rad. NaN where there is no answer."""

    closure: np.ndarray
    goal: np.ndarray
    outside: np.ndarray

    def missed(self, tolerance: float) -> np.ndarray:
        """(N,): the goal or a loop is off by more, a limit is broken, or there is no answer."""
        good = (self.goal <= tolerance) & (self.closure <= tolerance) & (self.outside <= LIMIT_SLACK)
        return ~good


def judge(case: Case, q: np.ndarray) -> Errors:
    """
    Args:
        q: (N, n) values as in `Case.start`, of the first N ticks; NaN where there is no answer.
    """
    X = poses(case, q)
    zero = np.zeros(len(q))
    closure = zero.copy()
    for one in case.closures:
        closure = np.maximum(closure, apart(X[one.a] @ one.place_a, X[one.b] @ one.place_b, one.rows == "weld"))
    targets = case.targets[: len(q)]
    if case.want.kind == "joint":
        goal = np.abs(q[:, column(case, case.want.name)] - targets)
        goal = np.abs(np.angle(np.exp(1j * goal)))  # a turn is a turn
    elif case.want.kind == "point":
        tip = X[case.want.name] @ np.array([*case.want.at, 1.0])
        goal = np.linalg.norm(tip[:, :3] - targets, axis=1)
    else:
        goal = apart(X[case.want.name], targets, turned=True)
    lower, upper = case.limits()
    outside = np.maximum(np.maximum(lower - q, q - upper).max(axis=1), 0.0)
    return Errors(closure, goal, outside)


def poses(case: Case, q: np.ndarray) -> dict[str, np.ndarray]:
    """(N, 4, 4) of each link."""
    X = {case.root: np.broadcast_to(np.eye(4), (len(q), 4, 4))}
    k = 0
    for joint in case.joints:
        count = len(joint.dof)
        X[joint.link] = X[joint.parent] @ joint.place @ motion(joint.dof, q[:, k : k + count])
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


def apart(X: np.ndarray, Y: np.ndarray, turned: bool) -> np.ndarray:
    """(N,): how far two frames are apart; the larger of m and, if it counts, rad."""
    place = np.linalg.norm(X[:, :3, 3] - Y[:, :3, 3], axis=1)
    if not turned:
        return place
    R = np.swapaxes(X[:, :3, :3], 1, 2) @ Y[:, :3, :3]
    sine = 0.5 * np.linalg.norm(
        np.array([R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]]), axis=0
    )
    cosine = 0.5 * (np.trace(R, axis1=1, axis2=2) - 1.0)
    return np.maximum(place, np.arctan2(sine, cosine))


def column(case: Case, joint: str) -> int:
    """Where a joint's first value stands in q."""
    names = [one.name for one in case.joints for _ in one.dof]
    return names.index(joint)
