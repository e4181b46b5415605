"""Inverse kinematics from Python, one target at a time on one core: python benchmarks/solve.py [--quick]

Random targets without a seed (A) and a path followed from answer to answer (B) on a Panda and a UR5, to 1e-5 m and
rad; a hexapod and a four-bar along their paths, with loops shut to 1e-9; and what Python adds to the kernel. Beside A
and B, in the same run, Klampt's solver with random restarts, if it is installed. The machines are noisy, so rounds of
all alternate; the best time of each target counts, and the mean of those is printed. Fails if a goal is missed.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from klampt_peer import klampt_calls
from processor_clock import clock
from rounds import Answers, Case, Times, Verdict, measure

import mechanik as mk
from mechanik.kernels.chain_layout import FROM_SEED, FROM_TABLE
from mechanik.solver.kernel_driver import descent_kernel
from mechanik.solver.search.chain_search import chain_kernel
from mechanik.spatial import make_pose, rotation

DATA = Path(__file__).parent.parent / "tests" / "data"
ARMS = {"Panda": ("panda", "panda_link8"), "UR5": ("ur5", "tool0")}
TOLERANCE, SHUT = 1e-5, 1e-9
RESTARTS = 300
JUMP = 3.0
"""How many times the largest step of the path's own joint values an answer may be from the last one."""
TICKS = {"hexapod": 1500, "four-bar": 1500}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer targets and rounds")
    quick = parser.parse_args().quick
    cases = [case for name in ARMS for case in arm_cases(name, quick)]
    cases += [hexapod_case("closure", quick), hexapod_case("joint", quick), four_bar_case(quick)]
    answers = {case.name: case.run([]) for case in cases}
    peers_solved = measure(cases, 5 if quick else 15)

    print(
        f"{'from Python, us a target':28} {'goal':>5} {'mechanik':>9} {'kernel':>7} {'solved':>8} "
        f"{'Klampt':>8} {'solved':>8} {'times as fast':>14}"
    )
    missed: list[str] = []
    for case in cases:
        right, fine, note = case.judge(answers[case.name])
        ours = case.us("run", right)
        late = ours > case.goal_us or right < case.count or not fine
        line = f"{case.name:28} {case.goal_us:5.0f} {ours:9.2f} {case.us('bare', case.count):7.2f}"
        line += f" {100 * right / case.count:6.1f} %"
        if case.name in peers_solved:
            solved = peers_solved[case.name]
            theirs = case.us("peer", solved)
            line += f" {theirs:8.1f} {100 * solved / case.count:6.1f} % {theirs / ours:14.1f}"
        else:
            line += f" {'':32}"
        print(f"{line}  {note}{'  <- missed' if late else ''}")
        if late:
            missed.append(case.name)
    missed += overhead()
    print("all goals met" if not missed else "missed: " + "; ".join(missed))
    return bool(missed)


# ---- arms -----------------------------------------------------------------------------------


def arm_cases(name: str, quick: bool) -> list[Case]:
    file, tool = ARMS[name]
    arm = mk.load(DATA / "peers" / f"{file}.urdf")
    data = np.load(DATA / "peers" / f"targets_{file}.npz")
    count = 200 if quick else len(data["T"])
    targets, seeds, path = list(data["T"][:count]), list(data["q0"][:count]), list(data["Tpath"][:count])
    q_start, step = np.ascontiguousarray(data["q_start"]), float(data["largest_step"])
    assert np.abs(arm.pose(tool, q_start) - path[0]).max() < 1e-9
    goal = mk.PoseGoal(tool, path[0], tolerance=TOLERANCE, angle_tolerance=TOLERANCE)
    solver = mk.Solver(arm, goal)

    def judge_targets(answers: Answers) -> Verdict:
        right = right_poses(arm, tool, answers, targets)
        attempts, iterations = (np.mean([getattr(one, what) for one in answers]) for what in ("attempts", "iterations"))
        return right, True, f"{attempts:.2f} attempts, {iterations:.1f} iterations"

    def judge_path(answers: Answers) -> Verdict:
        q = np.array([q_start, *(one.q for one in answers)])
        largest = float(np.abs(np.diff(q, axis=0)).max())
        note = f"largest joint step {largest:.4f}, of the path {step:.4f}"
        return right_poses(arm, tool, answers, path), largest <= JUMP * step, note

    same = DATA / "klampt" / f"{file}_nogeom.urdf"
    peers = klampt_calls(arm, same, tool, (targets, seeds), (path, q_start), TOLERANCE, RESTARTS)
    return [
        Case(
            f"A, {name}",
            8.0,
            count,
            lambda times: jump(solver, targets, times),
            judge_targets,
            bare_each(solver, targets),
            peers.get("A"),
        ),
        Case(
            f"B, {name}",
            4.0,
            count,
            lambda times: follow(solver, path, q_start, times),
            judge_path,
            bare_follow(solver, path, q_start),
            peers.get("B"),
        ),
    ]


def right_poses(arm: mk.Mechanism, tool: str, answers: Answers, targets: list[np.ndarray]) -> int:
    """How many claim success, are at their target and inside the limits; computed apart from the solver."""
    q = np.array([one.q for one in answers])
    X, wanted = arm.pose(tool, q), np.array(targets)
    apart = np.linalg.norm(X[:, :3, 3] - wanted[:, :3, 3], axis=1)
    turned = np.linalg.norm(rotation.log(np.swapaxes(X[:, :3, :3], 1, 2) @ wanted[:, :3, :3]), axis=1)
    inside = ((q >= arm.space.lower) & (q <= arm.space.upper)).all(axis=1)
    claimed = np.array([one.success for one in answers])
    near = (apart <= TOLERANCE * (1 + 1e-6)) & (turned <= TOLERANCE * (1 + 1e-6))
    assert not (claimed & ~(near & inside)).any(), "a solution that claims success is none"
    return int((claimed & near & inside).sum())


def jump(solver: mk.Solver, targets: list[Any], times: Times) -> Answers:
    answers: Answers = []
    for target in targets:
        answers.append(solver.solve(target))
        times.append(clock())
    return answers


def follow(solver: mk.Solver, targets: list[Any], q: np.ndarray, times: Times) -> Answers:
    answers: Answers = []
    for target in targets:
        answer = solver.solve(target, q)
        q = answer.q
        answers.append(answer)
        times.append(clock())
    return answers


# ---- the kernel alone -----------------------------------------------------------------------


def kernel(solver: mk.Solver) -> Callable[[Any, np.ndarray | None, np.ndarray], int]:
    """The kernel as the solver calls it, without the checks before and the answer after."""
    chain, home = solver._chain_search, solver._mid_configuration
    if chain is not None:
        solve_one, work = chain_kernel.solve_target, chain.allocate_workspace()
        seeded = lambda target, q0, q: solve_one(work, target, q0, FROM_SEED, 0.0, q)  # noqa: E731
        return lambda target, q0, q: (
            seeded(target, q0, q) if q0 is not None else solve_one(work, target, home, FROM_TABLE, 0.0, q)
        )
    ints, floats, starts, put = solver._ints, solver._floats, solver._starts, solver._target_writer
    assert put is not None
    search = descent_kernel.search
    return lambda target, q0, q: search(ints, floats, put(target, q0), q0, starts, q)


def bare_each(solver: mk.Solver, targets: list[Any]) -> Callable[[Times], None]:
    search, q = kernel(solver), np.empty(solver.mechanism.nq)

    def run(times: Times) -> None:
        for target in targets:
            search(target, None, q)
            times.append(clock())

    return run


def bare_follow(solver: mk.Solver, targets: list[Any], q_start: np.ndarray) -> Callable[[Times], None]:
    search = kernel(solver)

    def run(times: Times) -> None:
        q, other = q_start.copy(), np.empty_like(q_start)
        for target in targets:
            search(target, q, other)
            q, other = other, q
            times.append(clock())

    return run


def overhead() -> list[str]:
    """What Python adds to a call of the kernel, where there is nothing left to do."""
    goal_us = 1.5
    arm = mk.load(DATA / "peers" / "panda.urdf")
    q = arm.random(np.random.default_rng(0))
    target, out = arm.pose("panda_link8", q), np.empty_like(q)
    solver = mk.Solver(arm, mk.PoseGoal("panda_link8", target))
    search, solve = kernel(solver), solver.solve
    assert solver.solve(target, q).success
    best = {"solver": math.inf, "kernel": math.inf}
    for _ in range(300):
        start = clock()
        for _ in range(100):
            solve(target, q)
        middle = clock()
        for _ in range(100):
            search(target, q, out)
        best["solver"] = min(best["solver"], middle - start)
        best["kernel"] = min(best["kernel"], clock() - middle)
    best = {name: 1e4 * seconds for name, seconds in best.items()}  # us a call
    added = best["solver"] - best["kernel"]
    late = added > goal_us
    print(
        f"{'at the target already':28} {'':5} {best['solver']:9.2f} {best['kernel']:7.2f}   "
        f"Python adds {added:.2f} us, goal {goal_us:.1f}{'  <- missed' if late else ''}"
    )
    return ["Python's share of a call"] if late else []


# ---- loops ----------------------------------------------------------------------------------


def hexapod_case(ends: Any, quick: bool) -> Case:
    hexapod = mk.gallery.stewart_platform(ends=ends)
    count = 300 if quick else TICKS["hexapod"]
    targets = [platform_pose(0.02 * i) for i in range(count)]
    goal = mk.PoseGoal("platform", targets[0], tolerance=TOLERANCE, angle_tolerance=TOLERANCE)
    solver, q_start = mk.Solver(hexapod, goal), np.array(hexapod.q)

    def judge(answers: Answers) -> Verdict:
        return judge_loops(answers, right_poses(hexapod, "platform", answers, targets))

    return Case(
        f"hexapod, {hexapod.nv} freedoms",
        30.0,
        count,
        lambda times: follow(solver, targets, q_start, times),
        judge,
        bare_follow(solver, targets, q_start),
    )


def platform_pose(t: float) -> np.ndarray:
    s = math.sin
    R = rotation.about_z(0.15 * s(0.5 * t)) @ rotation.about_y(0.1 * s(1.1 * t)) @ rotation.about_x(0.1 * s(0.9 * t))
    return make_pose(R, np.array([0.03 * s(t), 0.03 * math.cos(t) - 0.03, 0.30 + 0.02 * s(0.7 * t)]))


def four_bar_case(quick: bool) -> Case:
    """A crank that is turned through its loop, compared with the rocker's closed form."""
    ground, crank, coupler, rocker = 2.0, 0.5, 1.8, 1.2
    loop = mk.gallery.four_bar(ground, crank, coupler, rocker, angle=0.6)
    count = 300 if quick else TICKS["four-bar"]
    angles = [0.6 + 0.02 * i for i in range(count)]
    goal = mk.JointValues({"crank_joint": angles[0]}, angle_mode="exact", angle_tolerance=TOLERANCE)
    solver, q_start = mk.Solver(loop, goal), np.array(loop.q)

    def judge(answers: Answers) -> Verdict:
        turned = np.array([one["crank_joint"] for one in answers])
        found = np.array([one["rocker_joint"] for one in answers])
        knee = crank * np.exp(1j * turned)
        way = ground - knee
        reach = np.abs(way)
        bend = np.arccos((coupler**2 + reach**2 - rocker**2) / (2 * coupler * reach))
        swung = np.angle(knee + coupler * way / reach * np.exp(1j * bend) - ground)
        off = np.abs(np.angle(np.exp(1j * (found - swung))))
        claimed = np.array([one.success for one in answers])
        right = int((claimed & (off < SHUT) & (np.abs(turned - angles) <= TOLERANCE)).sum())
        right, fine, note = judge_loops(answers, right)
        return right, fine, f"{note}, rocker off by {off.max():.0e}"

    return Case(
        f"four-bar, {loop.nv} freedoms",
        8.0,
        count,
        lambda times: follow(solver, angles, q_start, times),
        judge,
        bare_follow(solver, angles, q_start),
    )


def judge_loops(answers: Answers, right: int) -> Verdict:
    gaps = [gap for one in answers[::5] for gap in one.closure_errors.values()]
    worst = max(max(gap.position, gap.rotation) for gap in gaps)
    iterations = np.mean([one.iterations for one in answers])
    return right, worst <= SHUT, f"loops open by {worst:.0e}, {iterations:.2f} iterations"


if __name__ == "__main__":
    sys.exit(main())
