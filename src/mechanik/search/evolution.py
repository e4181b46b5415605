"""A memetic evolution: a population that breeds, whose best are taken downhill by a local method and never lost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanik.errors import LimitsError
from mechanik.search.local_descent import as_count, descend_by, length_of_descent, local_method
from mechanik.search.population import Population
from mechanik.solvers.method import Method
from mechanik.solvers.problem import Problem

FINISH = 10
"""The best of a generation goes this many times as far downhill as other elites: what is found is also finished."""
IMPROVED = 0.99
"""A generation that leaves more than this share of its best's cost has not helped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolution(Method):
    """One iteration is one generation; what it stands at is the best that was ever found, so the error never rises.

    The start goes downhill first, by itself. If that does not meet the problem, a population is drawn about it.
    The elites of a generation go downhill and live on. The others make place for children: two parents are drawn by
    rank, and each number of the child is drawn between theirs, with some of the way that the first parent came by, and
    towards a third that is better (adoption). Numbers mutate the more often, and the farther, the nearer the
    parents are to extinction, that is the worse they are among the others. A population whose best no longer improves
    is wiped out but for the record, and begins anew at random. All of this is on the manifold: balls are turned.

    With loops, shut ones go on record before open ones; the local method shuts them.

    Attributes:
        population: how many there are.
        elites: how many of them go downhill and live on.
        local: the method that goes downhill, by name or as an object.
        descent: its iterations for an elite in a generation; ten times as many for the best. None: 4 in 100 of what is
            usual for it.
        patience: generations without progress after which a population is wiped out.
    """

    name: ClassVar[str] = "evolution"
    title: ClassVar[str] = "memetic evolution"
    citation: ClassVar[str] = (
        "S. Starke, N. Hendrich, J. Zhang, A memetic evolutionary algorithm for real-time articulated kinematic motion,"
        " IEEE CEC 2017; P. Ruppel, N. Hendrich, S. Starke, J. Zhang, Cost functions to specify full-body motion and"
        " multi-goal manipulation tasks, ICRA 2018"
    )
    usual_iterations: ClassVar[int] = 100

    population: int = 16
    elites: int = 3
    local: str | Method = "lm"
    descent: int | None = None
    patience: int = 2

    def __post_init__(self) -> None:
        if isinstance(local_method(self.local), Evolution):
            raise LimitsError("local cannot be evolution itself; 'lm' and 'lbfgsb' are good ones")
        as_count(self.population, "population", 3)
        for name in ("elites", "patience") if self.descent is None else ("elites", "descent", "patience"):
            as_count(getattr(self, name), name)
        if self.elites >= self.population:
            raise LimitsError(f"elites, {self.elites}, must be fewer than the population, {self.population}")

    def check(self, problem: Problem) -> None:
        super(Evolution, self).check(problem)
        local_method(self.local).check(problem)

    def iterate(self, problem: Problem) -> Iterator[None]:
        local = local_method(self.local)
        descent = length_of_descent(self.descent, local, 25)
        descend_by(problem, local, FINISH * descent)
        rank, record = _rank(problem), problem.x.copy()
        problem.step[:] = math.pi
        yield
        if problem.n == 0:  # nothing to draw
            return
        folk = Population(problem, self.population)
        while True:
            waiting, before = 0, math.inf
            folk.sort()
            while waiting < self.patience:
                for i in range(self.elites):
                    folk.stand_at(i)
                    descend_by(problem, local, descent * (FINISH if i == 0 else 1))
                    folk.put(i)
                    if (mine := _rank(problem)) < rank:
                        rank, record = mine, problem.x.copy()
                    if problem.met:
                        break
                if not problem.met:
                    problem.place_x(record)
                problem.step[:] = folk.span  # how far it may go, not the last step of a descent
                yield
                folk.sort()
                waiting, before = (0, folk.cost[0]) if folk.cost[0] < IMPROVED * before else (waiting + 1, before)
                folk.breed(self.elites)
                folk.sort()
            folk.scatter(0)


def _rank(problem: Problem) -> tuple[bool, float]:
    """What goes on record is the least of these."""
    cost = problem.cost
    return not problem.within_closures(), cost if np.isfinite(cost) else math.inf
