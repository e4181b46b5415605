"""Prebuilt kernels beside the same kernels compiled on this machine, in one run: python benchmarks/prebuilt.py

Both take turns in one process, and processor time is compared: how many times as fast prebuilt ones are. Single solves,
paths and loops have to be at least as fast, batches 0.9 times. Fails if a goal is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mechanik
import mechanik as mk
from mechanik.tiers import kernel_module
from mechanik.tiers.availability import prebuilt_level

ROOT = Path(__file__).parents[1]
TIERS = ("jit", "prebuilt")
LEAST_SECONDS = 0.1
"""Of processor time between two readings of the clock."""
HANDS, PLATFORM = ("left_hand", "right_hand"), "platform"


@dataclass
class Case:
    """Something to time.

    Attributes:
        goal: how many times as fast prebuilt kernels have to be; None: for information.
        run: does it `count` times.
    """

    name: str
    goal: float | None
    count: int
    run: Callable[[], object]


def install_extension(levels: list[str]) -> None:
    """Build the extension if it is not installed, and let Mechanik find it."""
    if not levels and prebuilt_level() is not None:
        return
    sys.path.append(str(ROOT))
    from kernel_build.extension import build_extension, default_folder
    from kernel_build.levels import default_levels, level

    chosen = [level(name) for name in levels] or default_levels()
    mechanik.__path__.insert(0, str(build_extension(default_folder(), chosen).parent))
    sys.modules.pop("mechanik._kernels", None)
    from mechanik.tiers import availability as prebuilt

    prebuilt._extension.cache_clear()


def cases() -> list[Case]:
    rng = np.random.default_rng(0)
    panda, tool = mk.gallery.panda(hand=False), "panda_link8"
    solver = mk.Solver(panda, mk.PoseGoal(tool, np.eye(4)))
    far = panda.pose(tool, panda.random(rng, 200))
    q0 = panda.q
    times = np.linspace(0.0, 2.0 * np.pi, 400)[:, None]
    path = panda.pose(tool, q0 + 0.3 * np.sin(times + np.arange(panda.nq)))

    humanoid = mk.gallery.humanoid()
    hands = [humanoid.pose(name, humanoid.q)[:3, 3] for name in HANDS]
    both = mk.Solver(humanoid, [mk.PositionGoal(name, at) for name, at in zip(HANDS, hands, strict=True)])
    circle = 0.05 * np.hstack([np.cos(times), np.sin(times), np.sin(2.0 * times)])
    reach = [[at + step for at in hands] for step in circle]

    four_bar = mk.gallery.four_bar()
    angles = [float(angle) for angle in np.linspace(0.0, 2.0 * np.pi, 400)]
    loop = mk.Solver(four_bar, mk.JointValues({"crank_joint": 0.0}, angle_mode="exact"))

    stewart = mk.gallery.stewart_platform()
    platform = mk.Solver(stewart, mk.PoseGoal(PLATFORM, stewart.pose(PLATFORM, stewart.q)))
    heave = np.tile(stewart.pose(PLATFORM, stewart.q), (100, 1, 1))
    heave[:, 2, 3] += 0.03 * np.sin(np.linspace(0.0, 2.0 * np.pi, 100))

    many = panda.pose(tool, panda.random(rng, 10_000))
    forward = kernel_module("forward")
    arguments = recorded_arguments(panda, tool)

    def poses() -> None:
        chain_pose = forward.chain_pose
        for _ in range(100_000):
            chain_pose(*arguments)

    return [
        Case("single solves, 7 joints", 1.0, len(far), lambda: [solver.solve(target, q0) for target in far]),
        Case("path, 7 joints", 1.0, len(path), lambda: follow(solver, path)),
        Case("path, two hands", 1.0, len(reach), lambda: follow(both, reach)),
        Case("loop, four-bar", 1.0, len(angles), lambda: follow(loop, angles)),
        Case("loops, Stewart platform", 1.0, len(heave), lambda: follow(platform, heave)),
        Case("batch of 10,000", 0.9, len(many), lambda: solver.solve_batch(many)),
        Case("call of chain_pose", None, 100_000, poses),
    ]


def follow(ik: mk.Solver, targets: Iterable[Any]) -> None:
    """Solve for one target after the other, each from the solution before."""
    q = ik.mechanism.q
    for target in targets:
        q = ik.solve(target, q).q


def recorded_arguments(arm: mk.Mechanism, tool: str) -> tuple[object, ...]:
    """What `chain_pose` is called with for a pose of a tool."""
    seen: list[tuple[object, ...]] = []
    forward = kernel_module("forward")
    original = forward.chain_pose

    def record(*arguments: object) -> object:
        seen.append(arguments)
        return original(*arguments)

    forward.__dict__["chain_pose"] = record
    arm.pose(tool, arm.q)
    forward.__dict__["chain_pose"] = original
    return seen[0]


def measure(todo: list[Case], rounds: int) -> dict[str, dict[str, float]]:
    """Processor seconds of one run of each case in each tier: the best of rounds in which tiers take turns."""
    best: dict[str, dict[str, float]] = {case.name: dict.fromkeys(TIERS, float("inf")) for case in todo}
    for case in todo:
        repeats, seconds = 1, 0.0
        for k in range(-1, rounds):
            for tier in TIERS if k % 2 else reversed(TIERS):
                mk.use_kernels(tier)
                case.run()  # loads kernels
                start = time.process_time()
                for _ in range(repeats):
                    case.run()
                seconds = (time.process_time() - start) / repeats
                if k >= 0:
                    best[case.name][tier] = min(best[case.name][tier], seconds)
            if k < 0:
                repeats = max(1, round(LEAST_SECONDS / max(seconds, 1e-6)))
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", action="append", default=[], help="levels to build; by default those of a wheel")
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    install_extension(given.level)
    mk.use_kernels("prebuilt")
    todo = cases()
    print(f"prebuilt: {prebuilt_level()}")
    print(f"{'processor time, us each':28} {'jit':>10} {'prebuilt':>10} {'times as fast':>14}")
    is_missed = False
    for name, seconds in measure(todo, given.rounds).items():
        case = next(case for case in todo if case.name == name)
        ratio = seconds["jit"] / seconds["prebuilt"]
        is_late = case.goal is not None and ratio < case.goal
        is_missed |= is_late
        each = [1e6 * seconds[tier] / case.count for tier in TIERS]
        print(f"{name:28} {each[0]:10.2f} {each[1]:10.2f} {ratio:14.3f}{'  <- missed' if is_late else ''}")
    print("a goal was missed" if is_missed else "all goals met")
    return is_missed


if __name__ == "__main__":
    sys.exit(main())
