"""Exercises for tests: small, and made once."""

from __future__ import annotations

from functools import cache

from mechanik.comparison.benchmark_cases import BenchmarkCase, CaseSettings, make_case
from mechanik.comparison.benchmark_robots import BenchmarkRobot, make_robot

SIZES = CaseSettings(targets=6, branch_targets=1, branch_starts=4, tolerance=1e-4, angle_tolerance=1e-3)


@cache
def robot(name: str) -> BenchmarkRobot:
    return make_robot(name)


@cache
def exercise(name: str, task: str, seed: int = 0) -> BenchmarkCase:
    return make_case(robot(name), task, seed, SIZES)
