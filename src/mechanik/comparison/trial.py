"""What is written down: one record for each thing that was tried. Tables, plots and files are made from these alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

ATTEMPT, TRACK, BRANCH, CURVE, CALL = "attempt", "track", "branch", "curve", "call"
REFERENCE, REFUSED = "reference", "refused"
"""Kinds of records: a target from a start; a point of a path; a further answer to a target from another start; how the
error fell, over some targets; how long a call takes that finds nothing to do; the least distance that a long search
knows; and that a solver would not, or could not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """
    Attributes:
        kind: see above; what does not belong to a kind keeps its default.
        target, start: their numbers in the exercise.
        claimed: whether the solver says that it succeeded in one attempt.
        verified: whether it did, by an independent check.
        in_budget: whether a verified answer was there when the budget was used up, by as many attempts as fitted.
        seconds, iterations, status: of the one attempt.
        budget_seconds, attempts: of all attempts, until the first claim of success or the end of the budget.
        position, rotation: errors after one attempt, of the end that is farthest off; m and rad.
        distance, budget_distance: root of the sum of squares over the ends; m; after one attempt, and the least one
            in the budget. Infinite where limits or loops are not held.
        gap: of the worst loop; m or rad.
        violation: how far the worst joint is outside its limits; m or rad.
        step: of the joint that moved farthest since the answer before; rad, or reaches.
        jumped: whether that is far more than the path needs.
        branch: which of the answers to the target it is; -1: none.
        curve_at, curve: numbers of iterations, and the median error after them, in units of `Solution.history`.
        note: why not, in words.
    """

    kind: str
    robot: str
    task: str
    solver: str
    target: int = -1
    start: int = -1
    claimed: bool = False
    verified: bool = False
    in_budget: bool = False
    seconds: float = math.nan
    iterations: int = 0
    status: str = ""
    budget_seconds: float = math.nan
    attempts: int = 0
    position: float = math.nan
    rotation: float = math.nan
    distance: float = math.nan
    budget_distance: float = math.nan
    gap: float = math.nan
    violation: float = math.nan
    step: float = math.nan
    jumped: bool = False
    branch: int = -1
    curve_at: tuple[float, ...] = ()
    curve: tuple[float, ...] = ()
    note: str = ""

    @property
    def cell(self) -> tuple[str, str, str]:
        """Robot, task and solver: where it belongs in the table."""
        return self.robot, self.task, self.solver
