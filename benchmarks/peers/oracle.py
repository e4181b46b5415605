"""Pinocchio, in an environment of its own: makes the targets, and verifies the solutions.

    python oracle.py targets
    python oracle.py check ARM TARGETS TOLERANCE SOLUTIONS.npz ...

A solution is correct if the forward kinematics of Pinocchio puts the tool at its target, position and rotation each
within the tolerance, and every joint is inside the limits of the URDF file. What the library claims does not count.
"""
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import sys

import numpy as np
import pinocchio as pin
from arms import ARMS, DATA, Arm

BATCH, NEAR = 10_000, 1_000
SEED_DISTANCE = 0.3
"""rad: how far a near seed is from the values that made the target, in a random direction of the joints' space."""
SLACK = 1.0001
LIMIT_SLACK = 1e-6
"""rad: TRAC-IK keeps limits in single precision, which does not make a solution wrong."""


class Oracle:
    def __init__(self, arm: Arm) -> None:
        self.model = pin.buildModelFromUrdf(str(arm.urdf))
        self.data = self.model.createData()
        self.frame = self.model.getFrameId(arm.tool)
        self.lower, self.upper = self.model.lowerPositionLimit, self.model.upperPositionLimit

    def poses(self, q: np.ndarray) -> np.ndarray:
        X = np.empty((len(q), 4, 4))
        for k, q_row in enumerate(q):
            pin.framesForwardKinematics(self.model, self.data, q_row)
            X[k] = self.data.oMf[self.frame].homogeneous
        return X

    def right(self, q: np.ndarray, X_target: np.ndarray, tolerance: float) -> np.ndarray:
        """(N,): which solutions (N, n) are correct; NaN is no solution."""
        is_right = np.zeros(len(q), dtype=bool)
        inside = ((q >= self.lower - LIMIT_SLACK) & (q <= self.upper + LIMIT_SLACK)).all(axis=1)
        for k in np.nonzero(inside)[0]:
            pin.framesForwardKinematics(self.model, self.data, q[k])
            X, Y = self.data.oMf[self.frame], X_target[k]
            position_error = np.linalg.norm(X.translation - Y[:3, 3])
            rotation_error = np.linalg.norm(pin.log3(X.rotation.T @ Y[:3, :3]))
            is_right[k] = position_error <= tolerance * SLACK and rotation_error <= tolerance * SLACK
        return is_right


def make_targets() -> None:
    for arm in ARMS.values():
        oracle = Oracle(arm)
        data = np.load(DATA / f"targets_{arm.stem}.npz")
        rng = np.random.default_rng(2024)
        lower, upper = oracle.lower, oracle.upper
        q_batch, q_made = rng.uniform(lower, upper, (BATCH, len(lower))), rng.uniform(lower, upper, (NEAR, len(lower)))
        offset = rng.normal(size=q_made.shape)
        q_near = np.clip(q_made + SEED_DISTANCE * offset / np.linalg.norm(offset, axis=1, keepdims=True), lower, upper)
        assert np.abs(oracle.poses(data["q_start"][None])[0] - data["Tpath"][0]).max() < 1e-9
        arm.targets.parent.mkdir(parents=True, exist_ok=True)
        np.savez(
            arm.targets,
            **{name: data[name] for name in ("T", "q0", "Tpath", "q_start", "largest_step")},
            Tb=oracle.poses(q_batch), Tnear=oracle.poses(q_made), q_made=q_made, q_near=q_near,
            lower=lower, upper=upper,
        )  # fmt: skip


def check(arm: str, targets: str, tolerance: float, files: list[str]) -> None:
    """Writes `right`, (rounds, count), beside each file."""
    oracle, X_target = Oracle(ARMS[arm]), np.load(ARMS[arm].targets)[targets]
    for file in files:
        q = np.load(file)["q"]
        np.save(
            file.replace(".npz", ".right.npy"),
            [oracle.right(q_round, X_target[: len(q_round)], tolerance) for q_round in q],
        )


if __name__ == "__main__":
    if sys.argv[1] == "targets":
        make_targets()
    else:
        check(sys.argv[2], sys.argv[3], float(sys.argv[4]), sys.argv[5:])
