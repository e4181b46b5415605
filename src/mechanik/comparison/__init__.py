"""Benchmark of the solvers: every method on every robot and task, with independently verified solutions.

Input of `compare`: mechanisms, and names of solvers, robots and tasks. Output: a `Comparison` with records, table rows
and a report. This package may import every package except the command line and the studio.
"""

from mechanik.comparison.benchmark_cases import TASKS
from mechanik.comparison.benchmark_records import BenchmarkRecord
from mechanik.comparison.benchmark_robots import ROBOTS, BenchmarkRobot
from mechanik.comparison.benchmark_runner import compare
from mechanik.comparison.comparison_result import Comparison, ComparisonRow

__all__ = ["ROBOTS", "TASKS", "BenchmarkRecord", "BenchmarkRobot", "Comparison", "ComparisonRow", "compare"]
