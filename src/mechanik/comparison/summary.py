"""From records to rows of the table: one for each solver on each task of each robot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mechanik.comparison.intervals import wilson
from mechanik.comparison.trial import ATTEMPT, BRANCH, CALL, REFERENCE, REFUSED, TRACK, Trial

AS_CLOSE = 1e-3
"""Out of reach, an answer counts as the closest if its distance is above the least one known by no more than this
share."""
INSIDE = 1e-9
"""m or rad; beyond a limit by less is rounding."""
OUT_OF_REACH = "out_of_reach"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table. None: there is nothing to say.

    Attributes:
        trials: targets, or points of paths, that were tried.
        one, budget: how many were verified after one attempt, and with as many attempts as fitted into the budget. Out
            of reach: how many are as close as anything known.
        one_interval, budget_interval: of their shares, 95 %, by Wilson.
        iterations: the median over verified attempts.
        call_seconds: of a call that finds nothing to do.
        iteration_seconds: what attempts took beyond that, over their iterations; the median.
        median_seconds, p99_seconds: to a verified answer, failures counting as never (infinite); out of reach, of one
            attempt.
        position, rotation: medians of the true errors after one attempt; m and rad.
        false_claims: how often the solver said that it had succeeded and had not.
        violations, worst_violation: answers outside the limits, and the farthest; m or rad.
        worst_gap: of loops, the farthest open after a claim of success; m or rad.
        jumps: steps along paths that were far longer than the path needs.
        optimality: out of reach: the median of distance over the least distance known; 1 is best.
        branches, branches_known: answers found from many starts, and by all solvers together; over all targets.
        refused: why there is nothing else.
    """

    robot: str
    task: str
    solver: str
    trials: int = 0
    one: int = 0
    one_interval: tuple[float, float] = (0.0, 1.0)
    budget: int = 0
    budget_interval: tuple[float, float] = (0.0, 1.0)
    iterations: float | None = None
    call_seconds: float | None = None
    iteration_seconds: float | None = None
    median_seconds: float | None = None
    p99_seconds: float | None = None
    position: float | None = None
    rotation: float | None = None
    false_claims: int = 0
    violations: int = 0
    worst_violation: float = 0.0
    worst_gap: float | None = None
    jumps: int | None = None
    optimality: float | None = None
    branches: int | None = None
    branches_known: int | None = None
    refused: str = ""

    @property
    def one_share(self) -> float:
        """0 to 1."""
        return self.one / self.trials if self.trials else 0.0

    @property
    def budget_share(self) -> float:
        """0 to 1."""
        return self.budget / self.trials if self.trials else 0.0


def summarise(trials: Iterable[Trial]) -> tuple[Row, ...]:
    """In the order in which cells first appear."""
    cells: dict[tuple[str, str, str], list[Trial]] = {}
    least: dict[tuple[str, str, int], float] = {}
    known: dict[tuple[str, str, int], set[int]] = {}
    for one in trials:
        if one.kind != REFERENCE:
            cells.setdefault(one.cell, []).append(one)
        if one.task == OUT_OF_REACH and one.target >= 0:
            at = (one.robot, one.task, one.target)
            near = [x for x in (one.distance, one.budget_distance) if not math.isnan(x)]
            least[at] = min([least.get(at, math.inf), *near])
        if one.kind == BRANCH and one.branch >= 0:
            known.setdefault((one.robot, one.task, one.target), set()).add(one.branch)
    return tuple(_row(cell, some, least, known) for cell, some in cells.items())


def nearest_rank(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least this share of the values does not exceed; None of no values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def _row(
    cell: tuple[str, str, str],
    trials: Sequence[Trial],
    least: dict[tuple[str, str, int], float],
    known: dict[tuple[str, str, int], set[int]],
) -> Row:
    robot, task, solver = cell
    refused = next((one.note for one in trials if one.kind == REFUSED), "")
    tried = [one for one in trials if one.kind in (ATTEMPT, TRACK)]
    if refused or not tried:
        return Row(robot=robot, task=task, solver=solver, refused=refused or "nothing was tried")
    optimality = None
    idle = next((one.seconds for one in trials if one.kind == CALL and not math.isnan(one.seconds)), 0.0)
    each = [max(0.0, one.seconds - idle) / one.iterations for one in tried if one.iterations]
    if task == OUT_OF_REACH:
        ratios = [one.distance / least[robot, task, one.target] for one in tried]
        in_budget = [one.budget_distance / least[robot, task, one.target] for one in tried]
        reached, later = ([ratio <= 1 + AS_CLOSE for ratio in some] for some in (ratios, in_budget))
        optimality, seconds = float(np.median(ratios)), [one.seconds for one in tried]
    else:
        reached, later = [one.verified for one in tried], [one.in_budget for one in tried]
        seconds = [one.budget_seconds if one.in_budget else math.inf for one in tried]
    n, first, all_in_all = len(tried), sum(reached), sum(later)
    looked = [one for one in trials if one.kind == BRANCH]
    targets = {one.target for one in looked}
    found = {(one.target, one.branch) for one in looked if one.branch >= 0}
    gaps = [one.gap for one in tried if one.claimed]
    return Row(
        robot=robot,
        task=task,
        solver=solver,
        trials=n,
        one=first,
        one_interval=wilson(first, n),
        budget=all_in_all,
        budget_interval=wilson(all_in_all, n),
        iterations=_median([one.iterations for one, yes in zip(tried, reached, strict=True) if yes]),
        call_seconds=idle or None,
        iteration_seconds=_median(each),
        median_seconds=nearest_rank(seconds, 0.5),
        p99_seconds=nearest_rank(seconds, 0.99),
        position=_median([one.position for one in tried]),
        rotation=_median([one.rotation for one in tried if not math.isnan(one.rotation)]),
        false_claims=sum(one.claimed and not one.verified for one in tried),
        violations=sum(one.violation > INSIDE for one in tried),
        worst_violation=max(one.violation for one in tried),
        worst_gap=max(gaps, default=None),
        jumps=sum(one.jumped for one in tried) if tried[0].kind == TRACK else None,
        optimality=optimality,
        branches=len(found) if looked else None,
        branches_known=sum(len(known.get((robot, task, target), ())) for target in targets) if looked else None,
    )


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None
