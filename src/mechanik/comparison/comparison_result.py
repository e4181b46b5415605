"""Result of a comparison: summary rows from records, confidence intervals, and tables in text and Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mechanik.comparison.benchmark_records import (
    ATTEMPT,
    BRANCH,
    CALL,
    REFERENCE,
    TRACK,
    UNSUPPORTED,
    BenchmarkRecord,
    read_records,
    write_records,
)
from mechanik.errors import CannotSave, UnknownName
from mechanik.validation import format_count

Z_95 = 1.959963984540054
"""Half width of the two-sided 95 % interval of the normal distribution, in standard deviations."""


def wilson_interval(successes: int, trials: int, deviations: float = Z_95) -> tuple[float, float]:
    """Return the Wilson confidence interval of a success rate, between 0 and 1.

    The width of the interval is positive also if all or no trials succeed. Without trials the interval is (0, 1).
    E. B. Wilson, Probable inference, the law of succession, and statistical inference, J. Am. Stat. Assoc. 22 (1927).

    Args:
        successes, trials: number of successes, and number of all trials.
        deviations: number of standard deviations of the normal distribution; the default gives 95 % confidence.
    """
    if trials == 0:
        return 0.0, 1.0
    share, squared_deviations = successes / trials, deviations**2
    centre = (share + squared_deviations / (2 * trials)) / (1 + squared_deviations / trials)
    half_width = (
        deviations
        / (1 + squared_deviations / trials)
        * math.sqrt(share * (1 - share) / trials + squared_deviations / (4 * trials**2))
    )
    # exact bounds if all or no trials succeed; rounding must not exclude the success rate itself
    low = 0.0 if successes == 0 else max(0.0, centre - half_width)
    return low, 1.0 if successes == trials else min(1.0, centre + half_width)


OPTIMALITY_MARGIN = 1e-3
"""A solution of a target out of reach is optimal if its distance exceeds the smallest known distance by at most this
fraction."""
LIMIT_ROUNDING = 1e-9
"""Limit violations up to this, m or rad, count as rounding errors."""
OUT_OF_REACH = "out_of_reach"
"""Name of the task whose targets are out of reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """Summary of a solver on a task of a robot: a row of the table. None means not measured.

    Attributes:
        robot, task, solver: names of the robot, the task and the solver.
        trials: number of targets, or of points of paths, that were tried.
        first_attempt, within_budget: number of verified successes after one attempt, and with restarts within the
            budget. Out of reach: number of optimal solutions, see `OPTIMALITY_MARGIN`.
        first_attempt_interval, within_budget_interval: Wilson 95 % confidence intervals of the success rates.
        iterations: median over successful first attempts.
        call_seconds: processor time of a call whose target is already met, s.
        iteration_seconds: time of an attempt minus `call_seconds`, per iteration; median, s.
        median_seconds, p99_seconds: median and 99th percentile of the processor time to a verified solution, s; a
            failure counts as infinite. Out of reach: time of one attempt.
        position_error, rotation_error: medians of the verified errors after one attempt; m and rad.
        false_claims: number of first attempts with a reported success that the verification does not confirm.
        violations, worst_violation: number of first attempts that end outside the limits, and the largest violation;
            m or rad.
        worst_gap: largest `closure_error` of first attempts with a reported success; None: no success was reported.
        jumps: number of steps along paths that are more than 5 times the largest reference step of the path.
        optimality: out of reach: median of the ratio of the distance to the smallest known distance; 1 is best.
        branches, branches_known: number of solution branches found from many starts by this solver, and by all solvers
            together; sum over the targets.
        unsupported_reason: reason why the solver did not run; empty if it ran.

    Example:
        >>> row = mk.comparison.ComparisonRow(robot="7r", task="pose", solver="lm", trials=8, first_attempt=6)
        >>> row.first_attempt_share
        0.75
    """

    robot: str
    task: str
    solver: str
    trials: int = 0
    first_attempt: int = 0
    first_attempt_interval: tuple[float, float] = (0.0, 1.0)
    within_budget: int = 0
    within_budget_interval: tuple[float, float] = (0.0, 1.0)
    iterations: float | None = None
    call_seconds: float | None = None
    iteration_seconds: float | None = None
    median_seconds: float | None = None
    p99_seconds: float | None = None
    position_error: float | None = None
    rotation_error: float | None = None
    false_claims: int = 0
    violations: int = 0
    worst_violation: float = 0.0
    worst_gap: float | None = None
    jumps: int | None = None
    optimality: float | None = None
    branches: int | None = None
    branches_known: int | None = None
    unsupported_reason: str = ""

    @property
    def first_attempt_share(self) -> float:
        """Success rate after one attempt, 0 to 1."""
        return self.first_attempt / self.trials if self.trials else 0.0

    @property
    def within_budget_share(self) -> float:
        """Success rate within the time budget, 0 to 1."""
        return self.within_budget / self.trials if self.trials else 0.0


def summarise(records: Iterable[BenchmarkRecord]) -> tuple[ComparisonRow, ...]:
    """Summarise records as rows, in the order in which robot, task and solver first appear."""
    records_by_case: dict[tuple[str, str, str], list[BenchmarkRecord]] = {}
    least_distances: dict[tuple[str, str, int], float] = {}
    known_branches: dict[tuple[str, str, int], set[int]] = {}
    for record in records:
        if record.kind != REFERENCE:
            records_by_case.setdefault(record.run_key, []).append(record)
        if record.task == OUT_OF_REACH and record.target >= 0:
            target_key = (record.robot, record.task, record.target)
            distances = [distance for distance in (record.distance, record.budget_distance) if not math.isnan(distance)]
            least_distances[target_key] = min([least_distances.get(target_key, math.inf), *distances])
        if record.kind == BRANCH and record.branch >= 0:
            known_branches.setdefault((record.robot, record.task, record.target), set()).add(record.branch)
    return tuple(
        _make_row(run_key, case_records, least_distances, known_branches)
        for run_key, case_records in records_by_case.items()
    )


def nearest_rank(values: Sequence[float], share: float) -> float | None:
    """Return the percentile of values by the nearest-rank method; None without values.

    The percentile is the smallest value v in `values` such that at least the fraction `share` (0 to 1) of them is <= v.
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def _make_row(
    run_key: tuple[str, str, str],
    records: Sequence[BenchmarkRecord],
    least_distances: dict[tuple[str, str, int], float],
    known_branches: dict[tuple[str, str, int], set[int]],
) -> ComparisonRow:
    """Summarise the records of a solver on a task of a robot.

    Args:
        run_key: robot, task and solver.
        least_distances: smallest known distance by robot, task and target; m.
        known_branches: branches that all solvers found, by robot, task and target.
    """
    robot, task, solver = run_key
    unsupported_reason = next((record.note for record in records if record.kind == UNSUPPORTED), "")
    attempts = [record for record in records if record.kind in (ATTEMPT, TRACK)]
    if unsupported_reason or not attempts:
        return ComparisonRow(
            robot=robot,
            task=task,
            solver=solver,
            unsupported_reason=unsupported_reason or "was not tried on any target",
        )
    optimality = None
    idle_seconds = next(
        (record.seconds for record in records if record.kind == CALL and not math.isnan(record.seconds)), 0.0
    )
    seconds_per_iteration = [
        max(0.0, record.seconds - idle_seconds) / record.iterations for record in attempts if record.iterations
    ]
    if task == OUT_OF_REACH:
        distance_ratios = [record.distance / least_distances[robot, task, record.target] for record in attempts]
        budget_ratios = [record.budget_distance / least_distances[robot, task, record.target] for record in attempts]
        are_successes, are_budget_successes = (
            [ratio <= 1 + OPTIMALITY_MARGIN for ratio in ratio_list] for ratio_list in (distance_ratios, budget_ratios)
        )
        optimality, seconds = float(np.median(distance_ratios)), [record.seconds for record in attempts]
    else:
        are_successes, are_budget_successes = (
            [record.verified for record in attempts],
            [record.in_budget for record in attempts],
        )
        seconds = [record.budget_seconds if record.in_budget else math.inf for record in attempts]
    attempt_count, first_success_count, budget_success_count = (
        len(attempts),
        sum(are_successes),
        sum(are_budget_successes),
    )
    branch_records = [record for record in records if record.kind == BRANCH]
    targets = {record.target for record in branch_records}
    branches = {(record.target, record.branch) for record in branch_records if record.branch >= 0}
    closure_errors = [record.closure_error for record in attempts if record.reported_success]
    return ComparisonRow(
        robot=robot,
        task=task,
        solver=solver,
        trials=attempt_count,
        first_attempt=first_success_count,
        first_attempt_interval=wilson_interval(first_success_count, attempt_count),
        within_budget=budget_success_count,
        within_budget_interval=wilson_interval(budget_success_count, attempt_count),
        iterations=_median(
            [record.iterations for record, is_success in zip(attempts, are_successes, strict=True) if is_success]
        ),
        call_seconds=idle_seconds or None,
        iteration_seconds=_median(seconds_per_iteration),
        median_seconds=nearest_rank(seconds, 0.5),
        p99_seconds=nearest_rank(seconds, 0.99),
        position_error=_median([record.position_error for record in attempts]),
        rotation_error=_median([record.rotation_error for record in attempts if not math.isnan(record.rotation_error)]),
        false_claims=sum(record.reported_success and not record.verified for record in attempts),
        violations=sum(record.limit_violation > LIMIT_ROUNDING for record in attempts),
        worst_violation=max(record.limit_violation for record in attempts),
        worst_gap=max(closure_errors, default=None),
        jumps=sum(record.is_jump for record in attempts) if attempts[0].kind == TRACK else None,
        optimality=optimality,
        branches=len(branches) if branch_records else None,
        branches_known=sum(len(known_branches.get((robot, task, target), ())) for target in targets)
        if branch_records
        else None,
    )


def _median(values: Sequence[float]) -> float | None:
    """Return the median; None without values."""
    return float(np.median(values)) if values else None


TABLE_COLUMNS: dict[str, str] = {
    "solver": "",
    "n": "number of targets, or of points of paths, that were tried",
    "one attempt": "verified successes after one attempt, with a 95 % confidence interval (Wilson)",
    "in budget": "verified successes with restarts within the time budget, with a 95 % confidence interval (Wilson)",
    "iterations": "median over successful attempts",
    "us/iteration": "time of an attempt minus the time of an idle call, per iteration; median",
    "us/call": "time of an idle call, whose target is already met: the overhead of Python around the iterations",
    "median": "median processor time to a verified solution; never: more than half failed. Out of reach: of an attempt",
    "p99": "99th percentile of the processor time; the slowest if there are fewer than 100 targets",
    "error (m)": "verified position error after one attempt, median over all targets",
    "error (rad)": "verified rotation error after one attempt, median over all targets",
    "outside limits": "solutions outside the joint limits",
    "false": "solutions that the solver reported as a success and the verification did not confirm",
    "jumps": "steps along paths that are more than 5 times the largest reference step of the path",
    "optimality": "out of reach: distance relative to the smallest known, median; inf: limits or loops are violated",
    "branches": "different solutions found from many starts, of those that all solvers together found",
}
"""Columns of the table with their explanations."""


def row_cells(row: ComparisonRow) -> list[str]:
    """Format a row as texts in the order of `TABLE_COLUMNS`; empty: not measured, or no violation or false claim."""
    if row.unsupported_reason:
        return [row.solver, *[""] * (len(TABLE_COLUMNS) - 1)]
    return [
        row.solver,
        str(row.trials),
        format_share(row.first_attempt_share, row.first_attempt_interval),
        format_share(row.within_budget_share, row.within_budget_interval),
        _format_optional(row.iterations, "{:.0f}"),
        _format_optional(row.iteration_seconds, "{:.1f}", 1e6),
        _format_optional(row.call_seconds, "{:.0f}", 1e6),
        format_seconds(row.median_seconds),
        format_seconds(row.p99_seconds),
        _format_optional(row.position_error, "{:.1e}"),
        _format_optional(row.rotation_error, "{:.1e}"),
        _format_count(row.violations),
        _format_count(row.false_claims),
        _format_count(row.jumps, blank_zero=False),
        _format_optional(row.optimality, "{:.4f}"),
        "" if not row.branches_known else f"{row.branches} of {row.branches_known}",
    ]


def text_table(rows: Sequence[ComparisonRow], titles: Mapping[str, str]) -> str:
    """Format rows as a text table for a terminal, with a block for each task of each robot.

    A block omits empty columns, except the first four.
    """
    lines: list[str] = []
    for (robot, task), block in rows_by_task(rows).items():
        cells_by_row = [row_cells(row) for row in block]
        columns = [k for k, _ in enumerate(TABLE_COLUMNS) if k < 4 or any(cells[k] for cells in cells_by_row)]
        names = list(TABLE_COLUMNS)
        column_widths = [max(len(names[k]), *(len(cells[k]) for cells in cells_by_row)) for k in columns]
        lines += ["", f"{titles.get(robot, robot)}, {task.replace('_', ' ')}"]
        lines.append(
            "  ".join(
                _align(names[k], column_width, k) for k, column_width in zip(columns, column_widths, strict=True)
            ).rstrip()
        )
        for row, cells in zip(block, cells_by_row, strict=True):
            if row.unsupported_reason:
                lines.append(f"{row.solver:<{column_widths[0]}}  {row.unsupported_reason}")
            else:
                lines.append(
                    "  ".join(
                        _align(cells[k], column_width, k)
                        for k, column_width in zip(columns, column_widths, strict=True)
                    ).rstrip()
                )
    return "\n".join(lines[1:])


def success_matrix(
    rows: Sequence[ComparisonRow],
    value: Callable[[ComparisonRow], float] = lambda row: row.within_budget_share,
) -> tuple[list[str], list[str], dict[tuple[str, str], float | None]]:
    """Return solvers, robots, and the mean of `value` over the tasks for each pair of solver and robot.

    An unsupported task counts as 0. The mean is None if all tasks are unsupported.

    Args:
        value: function of a row; by default the success rate within the budget.
    """
    solvers = list(dict.fromkeys(row.solver for row in rows))
    robots = list(dict.fromkeys(row.robot for row in rows))
    means: dict[tuple[str, str], float | None] = {}
    for solver in solvers:
        for robot in robots:
            robot_rows = [row for row in rows if (row.solver, row.robot) == (solver, robot)]
            values = [value(row) for row in robot_rows if not row.unsupported_reason]
            # divided by all tasks: a solver that does not support a difficult task must not have a better mean
            means[solver, robot] = sum(values) / len(robot_rows) if values else None
    return solvers, robots, means


def overview_text(rows: Sequence[ComparisonRow]) -> str:
    """Format the success rates within the budget, in percent, as a text table of solvers and robots."""
    solvers, robots, means = success_matrix(rows)
    if not solvers:
        return ""
    widths, solver_width = [max(5, len(robot)) for robot in robots], max(map(len, solvers))
    lines = [
        " " * solver_width
        + "  "
        + "  ".join(f"{robot:>{column_width}}" for robot, column_width in zip(robots, widths, strict=True))
    ]
    for solver in solvers:
        percents = [format_percent(means[solver, robot]) for robot in robots]
        lines.append(
            f"{solver:<{solver_width}}  "
            + "  ".join(f"{percent:>{column_width}}" for percent, column_width in zip(percents, widths, strict=True))
        )
    return "\n".join(lines)


def markdown_table(rows: Sequence[ComparisonRow], titles: Mapping[str, str], heading: str = "###") -> str:
    """Format rows in Markdown: a heading, a table and the unsupported solvers for each task of each robot."""
    parts: list[str] = []
    for (robot, task), block in rows_by_task(rows).items():
        cells_by_row = [row_cells(row) for row in block if not row.unsupported_reason]
        columns = [k for k, _ in enumerate(TABLE_COLUMNS) if k < 4 or any(cells[k] for cells in cells_by_row)]
        names = list(TABLE_COLUMNS)
        parts.append(f"{heading} {titles.get(robot, robot)}: {task.replace('_', ' ')}\n")
        if cells_by_row:
            parts.append(
                markdown_lines([names[k] for k in columns], [[cells[k] for k in columns] for cells in cells_by_row])
            )
        solvers_by_reason: dict[str, list[str]] = {}
        for row in block:
            if row.unsupported_reason:
                solvers_by_reason.setdefault(row.unsupported_reason, []).append(f"`{row.solver}`")
        parts += [f"{', '.join(solvers)} {reason}.\n" for reason, solvers in solvers_by_reason.items()]
    return "\n".join(parts)


def markdown_overview(rows: Sequence[ComparisonRow], titles: Mapping[str, str]) -> str:
    """Format the success rates within the budget, in percent, as a Markdown table of solvers and robots."""
    solvers, robots, means = success_matrix(rows)
    return markdown_lines(
        ["solver", *(titles.get(robot, robot) for robot in robots)],
        [[f"`{solver}`", *(format_percent(means[solver, robot]) for robot in robots)] for solver in solvers],
    )


def markdown_by_task(rows: Sequence[ComparisonRow]) -> str:
    """Format the success rates at the first attempt and within the budget, in percent, by solver and task.

    They are means over the robots, see `mean_over_robots`.
    """
    tasks = list(dict.fromkeys(row.task for row in rows))
    lines: list[list[str]] = []
    for solver in dict.fromkeys(row.solver for row in rows):
        lines.append([f"`{solver}`"])
        for task in tasks:
            first_share, budget_share = (
                mean_over_robots(rows, solver, task, share) for share in (first_attempt_share, within_budget_share)
            )
            lines[-1].append(
                "unsupported"
                if first_share is None
                else f"{format_percent(first_share)} / {format_percent(budget_share)}"
            )
    return markdown_lines(["solver", *(task.replace("_", " ") for task in tasks)], lines)


def mean_over_robots(
    rows: Iterable[ComparisonRow], solver: str, task: str, value: Callable[[ComparisonRow], float]
) -> float | None:
    """Return the mean of `value` over the robots that a solver supports; None if it supports none.

    Every robot has the same weight. A mean over targets would favour slow solvers, because they try fewer targets of
    the robots on which they are slow.
    """
    values = [value(row) for row in rows if (row.solver, row.task) == (solver, task) and not row.unsupported_reason]
    return sum(values) / len(values) if values else None


def first_attempt_share(row: ComparisonRow) -> float:
    """Return the success rate after one attempt, 0 to 1."""
    return row.first_attempt_share


def within_budget_share(row: ComparisonRow) -> float:
    """Return the success rate within the time budget, 0 to 1."""
    return row.within_budget_share


def markdown_lines(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table; the first column is left-aligned, the others are right-aligned."""
    lines = [f"| {' | '.join(names)} |", f"|---|{'---:|' * (len(names) - 1)}"]
    lines += [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def rows_by_task(rows: Iterable[ComparisonRow]) -> dict[tuple[str, str], list[ComparisonRow]]:
    """Group rows by robot and task, in the order in which they first appear."""
    groups: dict[tuple[str, str], list[ComparisonRow]] = {}
    for row in rows:
        groups.setdefault((row.robot, row.task), []).append(row)
    return groups


def format_share(value: float, interval: tuple[float, float]) -> str:
    """Format a share with its interval, such as `87 % (81-92)`."""
    return f"{100 * value:.0f} % ({100 * interval[0]:.0f}-{100 * interval[1]:.0f})"


def format_percent(value: float | None) -> str:
    """Format a share in percent without the percent sign; "unsupported" for None."""
    return "unsupported" if value is None else f"{100 * value:.0f}"


def format_seconds(seconds: float | None) -> str:
    """Format a time, such as `14 us` or `3.2 ms`; `never` if it is infinite, empty for None."""
    if seconds is None:
        return ""
    if not math.isfinite(seconds):
        return "never"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _format_optional(value: float | None, number_format: str, factor: float = 1.0) -> str:
    """Format a value times a factor; empty for None and NaN."""
    return "" if value is None or math.isnan(value) else number_format.format(value * factor)


def _format_count(value: int | None, blank_zero: bool = True) -> str:
    """Format a count; empty for None, and for 0 if `blank_zero` is set."""
    return "" if value is None or (value == 0 and blank_zero) else str(value)


def _align(text: str, width: int, column: int) -> str:
    """Pad a text to a width: the first column is left-aligned, the others are right-aligned."""
    return f"{text:<{width}}" if column == 0 else f"{text:>{width}}"


class Comparison:
    """Result of `compare`: records, summary rows, tables and reports.

    Attributes:
        records: all records.
        about: settings, machine, command, and titles of the robots.
        is_complete: False if the comparison was interrupted.

    Example:
        >>> record = mk.comparison.BenchmarkRecord(
        ...     kind="attempt", robot="7r", task="pose", solver="lm", limit_violation=0.0
        ... )
        >>> result = mk.comparison.Comparison([record], about={})
        >>> result
        <comparison of 1 solver, 1 robot, 1 task; 1 record>
        >>> result.rows[0].trials
        1
    """

    def __init__(self, records: Sequence[BenchmarkRecord], about: dict[str, Any], is_complete: bool = True) -> None:
        self.records, self.about, self.is_complete = tuple(records), about, is_complete

    @classmethod
    def from_csv(cls, path: str | Path) -> Comparison:
        """Read a comparison that `to_csv` or `compare(csv=...)` wrote.

        Args:
            path: path of the CSV file; decompressed if it ends in .gz.

        Raises:
            FileMissing: the file cannot be read.
            FormatError: the file does not contain records, or is damaged.
        """
        return cls(*read_records(path))

    def __repr__(self) -> str:
        def count_text(noun: str) -> str:
            return format_count(len({getattr(row, noun) for row in self.rows}), noun)

        record_count = format_count(len(self.records), "record")
        counts = f"{count_text('solver')}, {count_text('robot')}, {count_text('task')}; {record_count}"
        return f"<comparison of {counts}{'' if self.is_complete else '; interrupted'}>"

    @cached_property
    def rows(self) -> tuple[ComparisonRow, ...]:
        """Summary rows: a row for each solver on each task of each robot."""
        return summarise(self.records)

    @property
    def titles(self) -> dict[str, str]:
        """Titles of the robots by name."""
        return self.about.get("titles", {})

    def row(self, solver: str, robot: str, task: str) -> ComparisonRow:
        """Return the row of a solver on a task of a robot; raises `UnknownName` if there is none."""
        for row in self.rows:
            if (row.solver, row.robot, row.task) == (solver, robot, task):
                return row
        raise UnknownName(
            "row",
            f"{solver}/{robot}/{task}",
            [f"{known_row.solver}/{known_row.robot}/{known_row.task}" for known_row in self.rows],
        )

    def select(
        self,
        solvers: Iterable[str] | None = None,
        robots: Iterable[str] | None = None,
        tasks: Iterable[str] | None = None,
    ) -> tuple[ComparisonRow, ...]:
        """Return the rows of the given solvers, robots and tasks, one name or several; None: all."""
        name_sets = [None if names is None else {names} if isinstance(names, str) else set(names)
                  for names in (solvers, robots, tasks)]  # fmt: skip
        return tuple(
            row
            for row in self.rows
            if all(
                names is None or name in names
                for names, name in zip(name_sets, (row.solver, row.robot, row.task), strict=True)
            )
        )

    def table(
        self,
        solvers: Iterable[str] | None = None,
        robots: Iterable[str] | None = None,
        tasks: Iterable[str] | None = None,
    ) -> str:
        """Return the table as text, with a block for each task of each robot.

        Args:
            solvers, robots, tasks: names of the rows to show, one name or several; None: all.
        """
        return text_table(self.select(solvers, robots, tasks), self.titles)

    def overview(self) -> str:
        """Return a text table of the success rates within the budget by solver and robot: means over tasks, percent."""
        return overview_text(self.rows)

    def markdown(self) -> str:
        """Return the overview and the whole table in Markdown."""
        return f"{markdown_overview(self.rows, self.titles)}\n{markdown_table(self.rows, self.titles)}"

    def to_csv(self, path: str | Path) -> None:
        """Write all records to a CSV file that `from_csv` reads; raises `CannotSave` if it cannot be written.

        Args:
            path: path of the file; compressed if it ends in .gz. An existing file is replaced.
        """
        write_records(path, self.records, self.about)

    def to_html(self, path: str | Path) -> None:
        """Write a report to a single HTML file: tables, a heat map, convergence, success against time.

        The report needs no network. Raises `CannotSave` if the file cannot be written.

        Args:
            path: path of the file; an existing file is replaced.
        """
        from mechanik.comparison.comparison_report import report_html

        final_path = Path(path)
        temporary_path = final_path.with_name(f"{final_path.name}.part")
        try:
            temporary_path.write_text(report_html(self), encoding="utf-8")
            temporary_path.replace(final_path)
        except OSError as error:
            raise CannotSave(f"{path} cannot be written: {error.strerror}") from None
