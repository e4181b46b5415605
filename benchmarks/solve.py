"""Inverse kinematics from Python, one target at a time on one core: python benchmarks/solve.py [--quick]

Random targets without a seed (A) and a path followed from solution to solution (B) on a Panda and a UR5, to 1e-5 m and
rad; a hexapod and a four-bar along their paths, with loops closed to 1e-9; and what Python adds to the kernel. Beside A
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
from alternating_rounds import Case, Solutions, Times, Verification, measure
from klampt_peer import klampt_calls
from processor_clock import clock

import mechanik as mk
from mechanik.kernels.chain_layout import FROM_SEED, FROM_TABLE
from mechanik.solver.kernel_driver import descent_kernel
from mechanik.solver.search.chain_search import chain_kernel
from mechanik.spatial import make_pose, rotation

DATA = Path(__file__).parent.parent / "tests" / "data"
ARMS = {"Panda": ("panda", "panda_link8"), "UR5": ("ur5", "tool0")}
TOLERANCE, CLOSURE_TOLERANCE = 1e-5, 1e-9
RESTARTS = 300
JUMP = 3.0
"""Largest joint step that is allowed, as multiple of the largest step of the path's own joint values."""
TICKS = {"hexapod": 1500, "four-bar": 1500}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer targets and rounds")
    quick = parser.parse_args().quick
    cases = [case for name in ARMS for case in arm_cases(name, quick)]
    cases += [hexapod_case("closure", quick), hexapod_case("joint", quick), four_bar_case(quick)]
    solutions = {case.name: case.run([]) for case in cases}
    peers_solved = measure(cases, 5 if quick else 15)

    print(
        f"{'from Python, us a target':28} {'goal':>5} {'mechanik':>9} {'kernel':>7} {'solved':>8} "
        f"{'Klampt':>8} {'solved':>8} {'times as fast':>14}"
    )
    missed: list[str] = []
    for case in cases:
        right, fine, note = case.verify(solutions[case.name])
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

    def verify_targets(solutions: Solutions) -> Verification:
        right = right_poses(arm, tool, solutions, targets)
        attempts, iterations = (
            np.mean([getattr(solution, name) for solution in solutions]) for name in ("attempts", "iterations")
        )
        return right, True, f"{attempts:.2f} attempts, {iterations:.1f} iterations"

    def verify_path(solutions: Solutions) -> Verification:
        q = np.array([q_start, *(solution.q for solution in solutions)])
        largest = float(np.abs(np.diff(q, axis=0)).max())
        note = f"largest joint step {largest:.4f}, of the path {step:.4f}"
        return right_poses(arm, tool, solutions, path), largest <= JUMP * step, note

    same = DATA / "klampt" / f"{file}_nogeom.urdf"
    peers = klampt_calls(arm, same, tool, (targets, seeds), (path, q_start), TOLERANCE, RESTARTS)
    return [
        Case(
            f"A, {name}",
            8.0,
            count,
            lambda times: jump(solver, targets, times),
            verify_targets,
            bare_each(solver, targets),
            peers.get("A"),
        ),
        Case(
            f"B, {name}",
            4.0,
            count,
            lambda times: follow(solver, path, q_start, times),
            verify_path,
            bare_follow(solver, path, q_start),
            peers.get("B"),
        ),
    ]


def right_poses(arm: mk.Mechanism, tool: str, solutions: Solutions, targets: list[np.ndarray]) -> int:
    """Number of solutions that claim success, reach their target and are within limits; computed independently of the
    solver."""
    q = np.array([solution.q for solution in solutions])
    X, X_target = arm.pose(tool, q), np.array(targets)
    position_error = np.linalg.norm(X[:, :3, 3] - X_target[:, :3, 3], axis=1)
    rotation_error = np.linalg.norm(rotation.log(np.swapaxes(X[:, :3, :3], 1, 2) @ X_target[:, :3, :3]), axis=1)
    inside = ((q >= arm.space.lower) & (q <= arm.space.upper)).all(axis=1)
    claimed = np.array([solution.success for solution in solutions])
    near = (position_error <= TOLERANCE * (1 + 1e-6)) & (rotation_error <= TOLERANCE * (1 + 1e-6))
    assert not (claimed & ~(near & inside)).any(), "a solution claims success and is wrong"
    return int((claimed & near & inside).sum())


def jump(solver: mk.Solver, targets: list[Any], times: Times) -> Solutions:
    solutions: Solutions = []
    for target in targets:
        solutions.append(solver.solve(target))
        times.append(clock())
    return solutions


def follow(solver: mk.Solver, targets: list[Any], q: np.ndarray, times: Times) -> Solutions:
    solutions: Solutions = []
    for target in targets:
        solution = solver.solve(target, q)
        q = solution.q
        solutions.append(solution)
        times.append(clock())
    return solutions


# ---- the kernel alone -----------------------------------------------------------------------


def kernel(solver: mk.Solver) -> Callable[[Any, np.ndarray | None, np.ndarray], int]:
    """The kernel as the solver calls it, without the checks before and the `Solution` after."""
    chain, home = solver._chain_search, solver._mid_configuration
    if chain is not None:
        solve_one, work = chain_kernel.solve_target, chain.allocate_workspace()
        seeded = lambda target, q0, q: solve_one(work, target, q0, FROM_SEED, 0.0, q)  # noqa: E731
        return lambda target, q0, q: (
            seeded(target, q0, q) if q0 is not None else solve_one(work, target, home, FROM_TABLE, 0.0, q)
        )
    ints, floats, starts, write_target = solver._ints, solver._floats, solver._starts, solver._target_writer
    assert write_target is not None
    search = descent_kernel.search
    return lambda target, q0, q: search(ints, floats, write_target(target, q0), q0, starts, q)


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
        q, q_next = q_start.copy(), np.empty_like(q_start)
        for target in targets:
            search(target, q, q_next)
            q, q_next = q_next, q
            times.append(clock())

    return run


def overhead() -> list[str]:
    """Time that Python adds to a kernel call that starts at the target."""
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
    return ["overhead of Python"] if late else []


# ---- loops ----------------------------------------------------------------------------------


def hexapod_case(ends: Any, quick: bool) -> Case:
    hexapod = mk.gallery.stewart_platform(ends=ends)
    count = 300 if quick else TICKS["hexapod"]
    targets = [platform_pose(0.02 * i) for i in range(count)]
    goal = mk.PoseGoal("platform", targets[0], tolerance=TOLERANCE, angle_tolerance=TOLERANCE)
    solver, q_start = mk.Solver(hexapod, goal), np.array(hexapod.q)

    def verify(solutions: Solutions) -> Verification:
        return verify_loops(solutions, right_poses(hexapod, "platform", solutions, targets))

    return Case(
        f"hexapod, {hexapod.nv} dofs",
        30.0,
        count,
        lambda times: follow(solver, targets, q_start, times),
        verify,
        bare_follow(solver, targets, q_start),
    )


def platform_pose(t: float) -> np.ndarray:
    s = math.sin
    R = rotation.about_z(0.15 * s(0.5 * t)) @ rotation.about_y(0.1 * s(1.1 * t)) @ rotation.about_x(0.1 * s(0.9 * t))
    return make_pose(R, np.array([0.03 * s(t), 0.03 * math.cos(t) - 0.03, 0.30 + 0.02 * s(0.7 * t)]))


def four_bar_case(quick: bool) -> Case:
    """A crank that is crank_angles through its loop, compared with the rocker's closed form."""
    ground, crank, coupler, rocker = 2.0, 0.5, 1.8, 1.2
    loop = mk.gallery.four_bar(ground, crank, coupler, rocker, angle=0.6)
    count = 300 if quick else TICKS["four-bar"]
    angles = [0.6 + 0.02 * i for i in range(count)]
    goal = mk.JointValues({"crank_joint": angles[0]}, angle_mode="exact", angle_tolerance=TOLERANCE)
    solver, q_start = mk.Solver(loop, goal), np.array(loop.q)

    def verify(solutions: Solutions) -> Verification:
        crank_angles = np.array([solution["crank_joint"] for solution in solutions])
        rocker_angles = np.array([solution["rocker_joint"] for solution in solutions])
        knee = crank * np.exp(1j * crank_angles)
        diagonal = ground - knee
        reach = np.abs(diagonal)
        bend = np.arccos((coupler**2 + reach**2 - rocker**2) / (2 * coupler * reach))
        expected = np.angle(knee + coupler * diagonal / reach * np.exp(1j * bend) - ground)
        error = np.abs(np.angle(np.exp(1j * (rocker_angles - expected))))
        claimed = np.array([solution.success for solution in solutions])
        right = int((claimed & (error < CLOSURE_TOLERANCE) & (np.abs(crank_angles - angles) <= TOLERANCE)).sum())
        right, fine, note = verify_loops(solutions, right)
        return right, fine, f"{note}, rocker error {error.max():.0e}"

    return Case(
        f"four-bar, {loop.nv} dofs",
        8.0,
        count,
        lambda times: follow(solver, angles, q_start, times),
        verify,
        bare_follow(solver, angles, q_start),
    )


def verify_loops(solutions: Solutions, right: int) -> Verification:
    gaps = [gap for solution in solutions[::5] for gap in solution.closure_errors.values()]
    worst = max(max(gap.position, gap.rotation) for gap in gaps)
    iterations = np.mean([solution.iterations for solution in solutions])
    return right, worst <= CLOSURE_TOLERANCE, f"closure error {worst:.0e}, {iterations:.2f} iterations"


if __name__ == "__main__":
    sys.exit(main())
