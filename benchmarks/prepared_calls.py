"""Time of calls with new targets, and of the Python around the kernel: python benchmarks/prepared_calls.py

For each case the median processor time of a call of `Solver.solve`, of the same call of the descent kernel alone, and
the difference: the Python that checks and writes the targets and makes the `Solution`. All targets are those of the
start, so the kernel has little to do. The script also runs with older checkouts on PYTHONPATH.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from processor_clock import seconds_per_call

import mechanik as mk
from mechanik.tiers import kernel_module

LIMB_JOINTS = {"left_leg": 6, "right_leg": 6, "left_arm": 7, "right_arm": 7, "head": 3}
"""Joints of the limbs of the free tree: 29 in total."""
DESCENT = kernel_module("descent")


def free_tree() -> mk.Mechanism:
    """A free trunk with five limbs of 29 joints in total, all with limits."""
    builder = mk.Builder("free tree")
    builder.free("base", "world", "trunk")
    for i, (limb, joint_count) in enumerate(LIMB_JOINTS.items()):
        parent = "trunk"
        for k in range(joint_count):
            at = (0.0, 0.1 * (i - 2), 0.2) if k == 0 else (0.0, 0.02, -0.12)
            link = f"{limb}{k}"
            builder.revolute(f"{link}_joint", parent, link, at=at, axis="xyz"[k % 3], limits=(-2.0, 2.0), value=0.2)
            parent = link
    return builder.build()


def mixed_goals(tree: mk.Mechanism) -> list[mk.Objective]:
    """27 goals of several kinds at the present configuration of the tree."""
    links = [name for name in tree.links if name[-1:].isdigit()][:26]
    goals: list[mk.Objective] = []
    for k, link in enumerate(links):
        X, name = tree.pose(link), f"goal {k}"
        kinds: tuple[Callable[[], mk.Objective], ...] = (
            lambda link=link, X=X, name=name: mk.PoseGoal(link, X, name=name),
            lambda link=link, X=X, name=name: mk.PositionGoal(link, X[:3, 3], name=name),
            lambda link=link, X=X, name=name: mk.OrientationGoal(link, X[:3, :3], name=name),
            lambda link=link, X=X, name=name: mk.AxisGoal(link, X[:3, 2], name=name),
        )
        goals.append(kinds[k % len(kinds)]())
    return [*goals, mk.JointValues({"head2_joint": 0.2}, name="joint")]


def targets_of(goals: list[mk.Objective]) -> list[Any]:
    """Return the targets that the goals were made with, in the form that is usual for each."""
    targets: list[Any] = []
    for goal in goals:
        match goal:
            case mk.PoseGoal():
                targets.append(np.array(goal.target))
            case mk.PositionGoal():
                targets.append(np.array(goal.position.target))
            case mk.JointValues():
                targets.append({name: float(value[0]) for name, value in goal.values.items()})
            case _:
                targets.append(np.array(goal.rotation.target))
    return targets


def kernel_seconds(solve: Callable[[], Any]) -> tuple[float, int]:
    """Seconds of the kernel calls of a solve alone, and their number; 0 if there are several ways to record them."""
    calls: list[tuple[Any, ...]] = []
    original = DESCENT.search

    def record(*arguments: Any) -> Any:
        calls.append(arguments)
        return original(*arguments)

    DESCENT.search = record
    try:
        solve()
    finally:
        DESCENT.search = original
    if not calls:
        return 0.0, 0

    def repeat() -> None:
        for arguments in calls:
            original(*arguments)

    return seconds_per_call(repeat, 0.05), len(calls)


def cases() -> dict[str, Callable[[], Any]]:
    """Return the solve of each case."""
    solves: dict[str, Callable[[], Any]] = {}
    four_bar = mk.gallery.four_bar()
    q, name = four_bar.q, four_bar.space.q_names[0]
    crank = {name: float(q[0])}
    for label, limits in (("without limits", None), ("with limits", {name: (-3.0, 3.0)})):
        solver = mk.Solver(four_bar, mk.JointValues(dict(crank)), limits=limits)
        solves[f"four-bar, JointValues {label}"] = lambda solver=solver: solver.solve(crank, q)
    solver = mk.Solver(four_bar, mk.JointValues(dict(crank)))
    solves["four-bar, restarts=0 in the call"] = lambda: solver.solve(crank, q, restarts=0)
    solves["four-bar, max_iterations in the call"] = lambda: solver.solve(crank, q, max_iterations=50)
    tree = free_tree()
    tree_q = tree.q
    for label, goals in (
        ("27 mixed goals", mixed_goals(tree)),
        ("27 mixed goals and a rest pose", [*mixed_goals(tree), mk.RestPose(tree_q, name="rest")]),
        ("14 PoseGoals", [mk.PoseGoal(f"{limb}{k}", tree.pose(f"{limb}{k}")) for limb, k in LINKS]),
        (
            "14 OrientationGoals",
            [mk.OrientationGoal(f"{limb}{k}", tree.pose(f"{limb}{k}")[:3, :3]) for limb, k in LINKS],
        ),
    ):
        targets: list[Any] = targets_of([goal for goal in goals if not isinstance(goal, mk.RestPose)])
        targets += [None] * (len(goals) - len(targets))
        tree_solver = mk.Solver(tree, goals)
        solves[f"free tree, {label}"] = lambda solver=tree_solver, targets=targets: solver.solve(targets, tree_q)
    return solves


LINKS = [(limb, k) for limb in LIMB_JOINTS for k in range(0, LIMB_JOINTS[limb], 2)][:14]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="the median of so many measurements is printed")
    rounds = parser.parse_args().rounds
    print(f"{'case':44} {'call':>9} {'kernel':>9} {'Python':>9}  us")
    for label, solve in cases().items():
        solve()
        call = np.median([seconds_per_call(solve, 0.05) for _ in range(rounds)])
        kernel = np.median([kernel_seconds(solve)[0] for _ in range(rounds)])
        print(f"{label:44} {1e6 * call:9.2f} {1e6 * kernel:9.2f} {1e6 * (call - kernel):9.2f}")


if __name__ == "__main__":
    main()
