"""Klampt's solver on the targets of solve.py, called as directly as possible: configurations in and out."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from processor_clock import clock

import mechanik as mk


def klampt_calls(
    arm: mk.Mechanism,
    urdf: Path,
    tool: str,
    jumps: tuple[list[np.ndarray], list[np.ndarray]],
    path_targets: tuple[list[np.ndarray], np.ndarray],
    tolerance: float,
    restarts: int,
) -> dict[str, Callable[[list[float]], int]]:
    """Protocols A and B by name, if Klampt is installed: calls that read the clock after each target.

    They return how many targets Klampt says it has solved.

    Args:
        urdf: the same arm on a root link called `world`, without which Klampt lets it float.
        jumps: targets, and a seed for each.
        path_targets: targets along a path, and the start.
        restarts: number of restarts, each from a sample of Klampt.
    """
    try:
        import klampt
    except ImportError:
        return {}
    world = klampt.WorldModel()
    with _Silence():
        world.readFile(str(urdf))
    robot = world.robot(0)
    link_indices = [robot.link(arm.joint(joint).child.name).getIndex() for joint in arm.space.q_names]
    link = robot.link(tool).getIndex()
    solver, wanted = klampt.IKSolver(robot), klampt.IKObjective()
    solver.add(wanted)
    solver.setTolerance(tolerance)
    solver.setMaxIters(100)
    solver.setActiveDofs(link_indices)

    def full(q: np.ndarray) -> list[float]:
        values = np.zeros(robot.numLinks())
        values[link_indices] = q
        return values.tolist()

    def make_objectives(targets: list[np.ndarray]) -> list[Any]:
        objectives = []
        for X in targets:
            objective = klampt.IKObjective()
            objective.setFixedTransform(link, X[:3, :3].T.ravel().tolist(), X[:3, 3].tolist())
            objectives.append(objective)
        return objectives

    goals, starts = make_objectives(jumps[0]), [full(q) for q in jumps[1]]
    path, first = make_objectives(path_targets[0]), full(path_targets[1])

    def jump(times: list[float]) -> int:
        solved = 0
        klampt.set_random_seed(0)  # so that each round does the same
        for goal, start in zip(goals, starts, strict=True):
            robot.setConfig(start)
            solver.set(0, goal)
            success = solver.solve()
            for _ in range(restarts):
                if success:
                    break
                solver.sampleInitial()
                success = solver.solve()
            robot.getConfig()
            solved += success
            times.append(clock())
        return solved

    def walk(times: list[float]) -> int:
        solved = 0
        robot.setConfig(first)
        for goal in path:
            solver.set(0, goal)
            solved += solver.solve()
            robot.getConfig()
            times.append(clock())
        return solved

    jump.world = world  # type: ignore[attr-defined]  # which the robot does not keep alive
    return {"A": jump, "B": walk}


class _Silence:
    """Suppress what Klampt writes to the terminal while it reads files."""

    def __enter__(self) -> None:
        self._null, self._saved_streams = os.open(os.devnull, os.O_WRONLY), (os.dup(1), os.dup(2))
        os.dup2(self._null, 1)
        os.dup2(self._null, 2)

    def __exit__(self, *_: object) -> None:
        for stream, saved in zip((1, 2), self._saved_streams, strict=True):
            os.dup2(saved, stream)
            os.close(saved)
        os.close(self._null)
