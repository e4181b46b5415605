"""What is plotted: how errors fall with iterations and with time, and how many targets are reached when."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mechanik.comparison.results import Comparison
from mechanik.comparison.summary import OUT_OF_REACH
from mechanik.comparison.svg import Axis, Line, decades, plot
from mechanik.comparison.trial import ATTEMPT, CURVE, TRACK, Trial

SMALLEST_ERROR, LARGEST_ERROR = 1e-9, 1e3
SHORTEST, LONGEST = 1e-6, 1e2


def plots(comparison: Comparison, robot: str, task: str, numbers: dict[str, int]) -> list[tuple[str, str]]:
    """Headings and SVG of one task of one robot.

    Args:
        numbers: of the solvers, for their colours.
    """
    mine = [one for one in comparison.trials if (one.robot, one.task) == (robot, task)]
    found = _convergence(comparison, mine, numbers)
    if task != OUT_OF_REACH:
        found.append(("success against time", _success(comparison, mine, numbers)))
    return found


def _convergence(comparison: Comparison, trials: Sequence[Trial], numbers: dict[str, int]) -> list[tuple[str, str]]:
    by_iteration: list[Line] = []
    by_time: list[Line] = []
    for one in trials:
        if one.kind != CURVE:
            continue
        points = list(zip(one.curve_at, [max(x, SMALLEST_ERROR) for x in one.curve], strict=True))
        by_iteration.append(Line(one.solver, numbers[one.solver], points))
        row = comparison.row(*(one.solver, one.robot, one.task))
        if row.iteration_seconds is not None:
            begun, each = row.call_seconds or 0.0, row.iteration_seconds
            by_time.append(Line(one.solver, numbers[one.solver], [(begun + at * each, error) for at, error in points]))
    errors = [y for line in by_iteration for _, y in line.points]
    y = Axis("median error (sizes, rad)", *decades(errors, SMALLEST_ERROR, LARGEST_ERROR), is_log=True)
    longest = max((x for line in by_iteration for x, _ in line.points), default=10.0)
    times = [x for line in by_time for x, _ in line.points]
    return [
        ("error against iterations", plot("convergence", by_iteration, Axis("iteration", 1, max(longest, 2), True), y)),
        (
            "error against time",
            plot("convergence", by_time, Axis("seconds", *decades(times, SHORTEST, LONGEST), is_log=True), y),
        ),
    ]


def _success(comparison: Comparison, trials: Sequence[Trial], numbers: dict[str, int]) -> str:
    budget = float(comparison.about.get("settings", {}).get("budget", math.nan))
    lines: list[Line] = []
    times: list[float] = []
    for solver in dict.fromkeys(one.solver for one in trials):
        tried = [one for one in trials if one.solver == solver and one.kind in (ATTEMPT, TRACK)]
        if not tried:
            continue
        when = sorted(one.budget_seconds for one in tried if one.in_budget)
        points: list[tuple[float, float]] = []
        for k, seconds in enumerate(when):  # a stair
            points += [(seconds, 100 * k / len(tried)), (seconds, 100 * (k + 1) / len(tried))]
        points.append((budget, 100 * len(when) / len(tried)))
        lines.append(Line(solver, numbers[solver], points if when else [(SHORTEST, 0.0), (budget, 0.0)]))
        times += when
    low, high = decades([*times, budget], SHORTEST, LONGEST)
    return plot("success against time", lines, Axis("seconds", low, max(budget, low * 10) if times else high, True),
                Axis("targets reached (%)", 0.0, 100.0))  # fmt: skip
