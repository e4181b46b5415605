"""Forward kinematics from Python, beside Pinocchio in the same run: python benchmarks/fk.py

One tool pose of a 7-joint arm (the Panda of the gallery), its Jacobian, and many poses at once, on one core.
The machines are noisy, so rounds of both alternate and the best of each counts; the ratio is what matters.
Fails if a goal is missed.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
from collections.abc import Callable
from time import process_time as clock

import numpy as np

import mechanik as mk
from mechanik.formats.urdf.writer import write_urdf

TOOL = "panda_link8"
SINGLE_GOAL_US, BATCH_GOAL = 4.0, 4.0e6


def best_of(calls: dict[str, Callable[[], object]], repeats: int, rounds: int = 25) -> dict[str, float]:
    """Seconds of processor time a call, the best of rounds that alternate between all calls."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = clock()
            for _ in range(repeats):
                call()
            best[name] = min(best[name], (clock() - start) / repeats)
    return best


def main() -> int:
    arm = mk.gallery.panda(hand=False)
    rng = np.random.default_rng(0)
    q, many = arm.random(rng), arm.random(rng, 200_000)
    out = np.empty((4, 4))
    calls: dict[str, Callable[[], object]] = {
        "pose": lambda: arm.pose(TOOL, q),
        "pose, into an array": lambda: arm.pose(TOOL, q, out),
        "jacobian": lambda: arm.jacobian(TOOL, q),
        "all poses": lambda: arm.poses(q),
    }
    peers: dict[str, Callable[[], object]] = {}
    try:
        peers = pinocchio_calls(arm, q)
    except ImportError:
        print("Pinocchio (pip install pin) is not installed: no ratios")
    times = best_of({**calls, **{f"pin {name}": call for name, call in peers.items()}}, 5000)
    batch = best_of({"poses": lambda: arm.pose(TOOL, many), "jacobians": lambda: arm.jacobian(TOOL, many)}, 1, 9)

    print(f"{'from Python, us a call':32} {'mechanik':>9} {'pinocchio':>10} {'times as fast':>14}")
    missed: list[str] = []
    for name in calls:
        ours, theirs = times[name] * 1e6, times.get(f"pin {name}", float("nan")) * 1e6
        print(f"{name:32} {ours:9.2f} {theirs:10.2f} {theirs / ours:14.2f}")
        if name.startswith("pose") and theirs < ours:
            missed.append(f"{name}: slower than Pinocchio")
    if times["pose"] * 1e6 > SINGLE_GOAL_US:
        missed.append(f"a pose takes more than {SINGLE_GOAL_US} us")
    for name, seconds in batch.items():
        print(f"{'batch of 200,000 ' + name:32} {len(many) / seconds / 1e6:9.2f} million a second")
    if len(many) / batch["poses"] < BATCH_GOAL:
        missed.append(f"fewer than {BATCH_GOAL:.0f} poses a second")
    print("all goals met" if not missed else "missed: " + "; ".join(missed))
    return bool(missed)


def pinocchio_calls(arm: mk.Mechanism, q: np.ndarray) -> dict[str, Callable[[], object]]:
    """The same calls of Pinocchio, each by its fastest function with the same result."""
    import pinocchio as pin

    model = pin.buildModelFromXML(write_urdf(arm))
    data, frame = model.createData(), model.getFrameId(TOOL)

    def pose() -> np.ndarray:
        pin.forwardKinematics(model, data, q)
        return pin.updateFramePlacement(model, data, frame).homogeneous

    def placement() -> object:
        pin.forwardKinematics(model, data, q)
        return pin.updateFramePlacement(model, data, frame)

    def all_poses() -> object:
        pin.framesForwardKinematics(model, data, q)
        return [placement.homogeneous for placement in data.oMf]

    assert np.abs(pose() - arm.pose(TOOL, q)).max() < 1e-12
    return {
        "pose": pose,
        "pose, into an array": placement,  # an object that refers to Pinocchio's own memory
        "jacobian": lambda: pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED),
        "all poses": all_poses,
    }


if __name__ == "__main__":
    sys.exit(main())
