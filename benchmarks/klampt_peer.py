"""Klampt's solver on the targets of solve.py, the shortest way from Python: configurations in, configurations out."""

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
    way: tuple[list[np.ndarray], np.ndarray],
    tolerance: float,
    restarts: int,
) -> dict[str, Callable[[list[float]], int]]:
    """Protocols A and B by name, if Klampt is installed: calls that note the clock after each target.

    They return how many targets Klampt says it has solved.

    Args:
        urdf: the same arm on a root link called `world`, without which Klampt lets it float.
        jumps: targets, and a seed for each.
        way: targets along a path, and where to start.
        restarts: how often it may try again, from where Klampt's own sampling puts it.
    """
    try:
        import klampt
    except ImportError:
        return {}
    world = klampt.WorldModel()
    with _Silence():
        world.readFile(str(urdf))
    robot = world.robot(0)
    places = [robot.link(arm.joint(joint).child.name).getIndex() for joint in arm.space.q_names]
    link = robot.link(tool).getIndex()
    solver, wanted = klampt.IKSolver(robot), klampt.IKObjective()
    solver.add(wanted)
    solver.setTolerance(tolerance)
    solver.setMaxIters(100)
    solver.setActiveDofs(places)

    def full(q: np.ndarray) -> list[float]:
        values = np.zeros(robot.numLinks())
        values[places] = q
        return values.tolist()

    def asked(targets: list[np.ndarray]) -> list[Any]:
        objectives = []
        for X in targets:
            one = klampt.IKObjective()
            one.setFixedTransform(link, X[:3, :3].T.ravel().tolist(), X[:3, 3].tolist())
            objectives.append(one)
        return objectives

    goals, starts = asked(jumps[0]), [full(q) for q in jumps[1]]
    path, first = asked(way[0]), full(way[1])

    def jump(times: list[float]) -> int:
        solved = 0
        klampt.set_random_seed(0)  # so that each round does the same
        for goal, start in zip(goals, starts, strict=True):
            robot.setConfig(start)
            solver.set(0, goal)
            found = solver.solve()
            for _ in range(restarts):
                if found:
                    break
                solver.sampleInitial()
                found = solver.solve()
            robot.getConfig()
            solved += found
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
    """Klampt writes what it reads straight to the terminal."""

    def __enter__(self) -> None:
        self._null, self._kept = os.open(os.devnull, os.O_WRONLY), (os.dup(1), os.dup(2))
        os.dup2(self._null, 1)
        os.dup2(self._null, 2)

    def __exit__(self, *_: object) -> None:
        for stream, kept in zip((1, 2), self._kept, strict=True):
            os.dup2(kept, stream)
            os.close(kept)
        os.close(self._null)
