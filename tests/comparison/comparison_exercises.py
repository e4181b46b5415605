"""Exercises for tests: small, and made once."""

from __future__ import annotations

from functools import cache

from mechanik.comparison.robots import Robot, make_robot
from mechanik.comparison.tasks import Exercise, Sizes, set_task

SIZES = Sizes(targets=6, branch_targets=1, branch_starts=4, tolerance=1e-4, angle_tolerance=1e-3)


@cache
def robot(name: str) -> Robot:
    return make_robot(name)


@cache
def exercise(name: str, task: str, seed: int = 0) -> Exercise:
    return set_task(robot(name), task, seed, SIZES)
