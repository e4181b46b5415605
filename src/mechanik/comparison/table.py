"""The table in text and in Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from mechanik.comparison.summary import Row

COLUMNS: dict[str, str] = {
    "solver": "",
    "n": "targets, or points of paths, that were tried",
    "one attempt": "verified successes after one attempt, with a 95 % confidence interval (Wilson)",
    "in budget": "the same with restarts until the time budget is used up",
    "iterations": "median over successful attempts",
    "us/iteration": "what attempts took beyond an idle call, over their iterations; median",
    "us/call": "of a call that finds nothing to do: what Python takes around the iterations",
    "median": "processor time to a verified answer; more than half missed: never. Out of reach: of one attempt",
    "p99": "the same for 99 of 100; of fewer than 100 targets it is the slowest",
    "error (m)": "true position error after one attempt, median over all targets",
    "error (rad)": "true rotation error, likewise",
    "off limits": "answers outside the joint limits",
    "false": "answers that the solver called a success and the check did not",
    "jumps": "steps along paths more than 5 times as long as any of the path's own",
    "optimality": "out of reach: distance over the least one known, median; inf where limits or loops are not held",
    "branches": "different answers found from many starts, of those that all solvers together found",
}
"""Names, and what they mean."""


def cells(row: Row) -> list[str]:
    """A row as texts, in the order of `COLUMNS`; what has nothing to say is empty."""
    if row.refused:
        return [row.solver, *[""] * (len(COLUMNS) - 1)]
    return [
        row.solver,
        str(row.trials),
        share(row.one_share, row.one_interval),
        share(row.budget_share, row.budget_interval),
        _number(row.iterations, "{:.0f}"),
        _number(row.iteration_seconds, "{:.1f}", 1e6),
        _number(row.call_seconds, "{:.0f}", 1e6),
        duration(row.median_seconds),
        duration(row.p99_seconds),
        _number(row.position, "{:.1e}"),
        _number(row.rotation, "{:.1e}"),
        _count(row.violations),
        _count(row.false_claims),
        _count(row.jumps, blank_zero=False),
        _number(row.optimality, "{:.4f}"),
        "" if not row.branches_known else f"{row.branches} of {row.branches_known}",
    ]


def text_table(rows: Sequence[Row], titles: Mapping[str, str]) -> str:
    """For a terminal: a block for each task of each robot."""
    lines: list[str] = []
    for (robot, task), block in blocks(rows).items():
        filled = [cells(row) for row in block]
        used = [k for k, _ in enumerate(COLUMNS) if k < 4 or any(one[k] for one in filled)]
        names = list(COLUMNS)
        width = [max(len(names[k]), *(len(one[k]) for one in filled)) for k in used]
        lines += ["", f"{titles.get(robot, robot)}, {task.replace('_', ' ')}"]
        lines.append("  ".join(_aligned(names[k], w, k) for k, w in zip(used, width, strict=True)).rstrip())
        for row, one in zip(block, filled, strict=True):
            if row.refused:
                lines.append(f"{row.solver:<{width[0]}}  {row.refused}")
            else:
                lines.append("  ".join(_aligned(one[k], w, k) for k, w in zip(used, width, strict=True)).rstrip())
    return "\n".join(lines[1:])


def overview(
    rows: Sequence[Row], titles: Mapping[str, str], value: Callable[[Row], float] = lambda row: row.budget_share
) -> tuple[list[str], list[str], dict[tuple[str, str], float | None]]:
    """Solvers, robots, and for each pair the mean over the tasks; None where all are refused."""
    solvers = list(dict.fromkeys(row.solver for row in rows))
    robots = list(dict.fromkeys(row.robot for row in rows))
    means: dict[tuple[str, str], float | None] = {}
    for solver in solvers:
        for robot in robots:
            some = [row for row in rows if (row.solver, row.robot) == (solver, robot)]
            tried = [value(row) for row in some if not row.refused]
            # a refusal is no success: the mean is over what was asked
            means[solver, robot] = sum(tried) / len(some) if tried else None
    return solvers, robots, means


def overview_text(rows: Sequence[Row], titles: Mapping[str, str]) -> str:
    """Success in the budget, in percent, by solver and robot."""
    solvers, robots, means = overview(rows, titles)
    if not solvers:
        return ""
    wide, first = [max(5, len(robot)) for robot in robots], max(map(len, solvers))
    lines = [" " * first + "  " + "  ".join(f"{robot:>{w}}" for robot, w in zip(robots, wide, strict=True))]
    for solver in solvers:
        marks = [percent(means[solver, robot]) for robot in robots]
        lines.append(f"{solver:<{first}}  " + "  ".join(f"{m:>{w}}" for m, w in zip(marks, wide, strict=True)))
    return "\n".join(lines)


def markdown(rows: Sequence[Row], titles: Mapping[str, str], heading: str = "###") -> str:
    """For documents: a heading and a table for each task of each robot; refusals below it."""
    parts: list[str] = []
    for (robot, task), block in blocks(rows).items():
        filled = [cells(row) for row in block if not row.refused]
        used = [k for k, _ in enumerate(COLUMNS) if k < 4 or any(one[k] for one in filled)]
        names = list(COLUMNS)
        parts.append(f"{heading} {titles.get(robot, robot)}: {task.replace('_', ' ')}\n")
        if filled:
            parts.append(markdown_lines([names[k] for k in used], [[one[k] for k in used] for one in filled]))
        refused: dict[str, list[str]] = {}
        for row in block:
            if row.refused:
                refused.setdefault(row.refused, []).append(f"`{row.solver}`")
        parts += [f"{', '.join(names)} {why}.\n" for why, names in refused.items()]
    return "\n".join(parts)


def markdown_overview(rows: Sequence[Row], titles: Mapping[str, str]) -> str:
    """Success in the budget, in percent, by solver and robot, as a table."""
    solvers, robots, means = overview(rows, titles)
    return markdown_lines(
        ["solver", *(titles.get(robot, robot) for robot in robots)],
        [[f"`{solver}`", *(percent(means[solver, robot]) for robot in robots)] for solver in solvers],
    )


def markdown_by_task(rows: Sequence[Row]) -> str:
    """Success at the first attempt and in the budget, in percent, by solver and task, as a table."""
    tasks = list(dict.fromkeys(row.task for row in rows))
    lines: list[list[str]] = []
    for solver in dict.fromkeys(row.solver for row in rows):
        lines.append([f"`{solver}`"])
        for task in tasks:
            first, last = (mean_over_robots(rows, solver, task, share) for share in (one_share, budget_share))
            lines[-1].append("refuses" if first is None else f"{percent(first)} / {percent(last)}")
    return markdown_lines(["solver", *(task.replace("_", " ") for task in tasks)], lines)


def mean_over_robots(rows: Iterable[Row], solver: str, task: str, value: Callable[[Row], float]) -> float | None:
    """Each robot counts alike, however many targets were tried on it; None where the solver refuses all of them.

    To count targets instead would favour a slow solver, which gets fewer of them where it is slow.
    """
    tried = [value(row) for row in rows if (row.solver, row.task) == (solver, task) and not row.refused]
    return sum(tried) / len(tried) if tried else None


def one_share(row: Row) -> float:
    return row.one_share


def budget_share(row: Row) -> float:
    return row.budget_share


def markdown_lines(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The first column to the left, the others to the right."""
    lines = [f"| {' | '.join(names)} |", f"|---|{'---:|' * (len(names) - 1)}"]
    lines += [f"| {' | '.join(one.replace('|', '/') for one in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def blocks(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """Rows by robot and task, in their order."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.robot, row.task), []).append(row)
    return found


def share(value: float, interval: tuple[float, float]) -> str:
    """`87 % (81-92)`."""
    return f"{100 * value:.0f} % ({100 * interval[0]:.0f}-{100 * interval[1]:.0f})"


def percent(value: float | None) -> str:
    return "refuses" if value is None else f"{100 * value:.0f}"


def duration(seconds: float | None) -> str:
    """`14 us`, `3.2 ms`; `never` for what is infinite."""
    if seconds is None:
        return ""
    if not math.isfinite(seconds):
        return "never"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _number(value: float | None, form: str, factor: float = 1.0) -> str:
    return "" if value is None or math.isnan(value) else form.format(value * factor)


def _count(value: int | None, blank_zero: bool = True) -> str:
    return "" if value is None or (value == 0 and blank_zero) else str(value)


def _aligned(text: str, width: int, column: int) -> str:
    return f"{text:<{width}}" if column == 0 else f"{text:>{width}}"
