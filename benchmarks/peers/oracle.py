"""Pinocchio, in an environment of its own: makes the targets, and says which answers are right.

    python oracle.py targets
    python oracle.py check ARM TARGETS TOLERANCE ANSWERS.npz ...

An answer is right if Pinocchio's forward kinematics puts the tool at its target, place and turn each within the
tolerance, and every joint is inside the limits of the URDF file. What the library itself says does not count.
"""
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import sys

import numpy as np
import pinocchio as pin
from arms import ARMS, DATA, Arm

BATCH, NEAR = 10_000, 1_000
AWAY = 0.3
"""rad: how far a near seed is from the values that made the target, in a random direction of the joints' space."""
SLACK = 1.0001
LIMIT_SLACK = 1e-6
"""rad: TRAC-IK keeps limits in single precision, which is no reason to call an answer wrong."""


class Oracle:
    def __init__(self, arm: Arm) -> None:
        self.model = pin.buildModelFromUrdf(str(arm.urdf))
        self.data = self.model.createData()
        self.frame = self.model.getFrameId(arm.tool)
        self.lower, self.upper = self.model.lowerPositionLimit, self.model.upperPositionLimit

    def poses(self, q: np.ndarray) -> np.ndarray:
        X = np.empty((len(q), 4, 4))
        for k, one in enumerate(q):
            pin.framesForwardKinematics(self.model, self.data, one)
            X[k] = self.data.oMf[self.frame].homogeneous
        return X

    def right(self, q: np.ndarray, wanted: np.ndarray, tolerance: float) -> np.ndarray:
        """(N,) of answers (N, n), in which NaN is none."""
        verdict = np.zeros(len(q), dtype=bool)
        inside = ((q >= self.lower - LIMIT_SLACK) & (q <= self.upper + LIMIT_SLACK)).all(axis=1)
        for k in np.nonzero(inside)[0]:
            pin.framesForwardKinematics(self.model, self.data, q[k])
            X, Y = self.data.oMf[self.frame], wanted[k]
            apart = np.linalg.norm(X.translation - Y[:3, 3])
            turned = np.linalg.norm(pin.log3(X.rotation.T @ Y[:3, :3]))
            verdict[k] = apart <= tolerance * SLACK and turned <= tolerance * SLACK
        return verdict


def make_targets() -> None:
    for arm in ARMS.values():
        oracle = Oracle(arm)
        given = np.load(DATA / f"targets_{arm.stem}.npz")
        rng = np.random.default_rng(2024)
        lower, upper = oracle.lower, oracle.upper
        q_batch, q_made = rng.uniform(lower, upper, (BATCH, len(lower))), rng.uniform(lower, upper, (NEAR, len(lower)))
        away = rng.normal(size=q_made.shape)
        q_near = np.clip(q_made + AWAY * away / np.linalg.norm(away, axis=1, keepdims=True), lower, upper)
        assert np.abs(oracle.poses(given["q_start"][None])[0] - given["Tpath"][0]).max() < 1e-9
        arm.targets.parent.mkdir(parents=True, exist_ok=True)
        np.savez(
            arm.targets,
            **{name: given[name] for name in ("T", "q0", "Tpath", "q_start", "largest_step")},
            Tb=oracle.poses(q_batch), Tnear=oracle.poses(q_made), q_made=q_made, q_near=q_near,
            lower=lower, upper=upper,
        )  # fmt: skip


def check(arm: str, targets: str, tolerance: float, files: list[str]) -> None:
    """Writes `right`, (rounds, count), beside each file."""
    oracle, wanted = Oracle(ARMS[arm]), np.load(ARMS[arm].targets)[targets]
    for file in files:
        q = np.load(file)["q"]
        np.save(file.replace(".npz", ".right.npy"), [oracle.right(one, wanted[: len(one)], tolerance) for one in q])


if __name__ == "__main__":
    if sys.argv[1] == "targets":
        make_targets()
    else:
        check(sys.argv[2], sys.argv[3], float(sys.argv[4]), sys.argv[5:])
