"""Small benchmark cases for the tests of the comparison, each made once."""

from __future__ import annotations

from functools import cache

from mechanik.comparison.benchmark_cases import BenchmarkCase, CaseSettings, make_case
from mechanik.comparison.benchmark_robots import BenchmarkRobot, make_robot

SETTINGS = CaseSettings(
    target_count=6, branch_target_count=1, branch_start_count=4, tolerance=1e-4, angle_tolerance=1e-3
)


@cache
def cached_robot(name: str) -> BenchmarkRobot:
    return make_robot(name)


@cache
def cached_case(name: str, task: str, seed: int = 0) -> BenchmarkCase:
    return make_case(cached_robot(name), task, seed, SETTINGS)
