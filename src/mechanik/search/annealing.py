"""Simulated annealing: out of dead ends by jumps that grow smaller, each followed by a descent."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanik.errors import LimitsError
from mechanik.mechanism.door import as_number
from mechanik.search.local_descent import as_count, as_share, descend_by, length_of_descent, local_method
from mechanik.solvers.method import Method
from mechanik.solvers.problem import Problem
from mechanik.spatial.array import Array

SHARE = 5
"""A descent after a jump has this part of the iterations that the local method takes by itself. A place better than all
before is finished with all of them: what comes slowly to its end would be left short of it again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annealing(Method):
    """Jumps by random offsets on all joints, within their limits, and descents; the first iteration is a descent alone.

    The temperature says how far a jump goes and how much worse a place may be that is gone on from: one that raises
    the error by d is accepted with probability exp(-d / temperature). The error is the root of the cost: weighted, in
    rad and sizes of the mechanism. The best place is kept, and a new best one is where the descent goes on for longer.

    Attributes:
        local: the method that goes downhill, by name or as an object.
        temperature: rad, or sizes of the mechanism; offsets of the first jumps are up to this, either way.
        cooling: what the temperature is multiplied by after each jump.
        jumps: after so many it is heated up again.
        descent: iterations of the local method after each jump, at most; None: a fifth of what is usual for it.
    """

    name: ClassVar[str] = "annealing"
    title: ClassVar[str] = "simulated annealing"
    citation: ClassVar[str] = (
        "S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, Optimization by simulated annealing, Science 220 (1983)"
    )
    usual_iterations: ClassVar[int] = 200

    local: str | Method = "lm"
    temperature: float = 2.0 * math.pi
    cooling: float = 0.85
    jumps: int = 20
    descent: int | None = None

    def __post_init__(self) -> None:
        if isinstance(local_method(self.local), Annealing):
            raise LimitsError("local cannot be annealing itself; 'lm' and 'ccd' are good ones")
        if isinstance(self.temperature, str | bool) or not as_number(self.temperature, "temperature") > 0:
            raise LimitsError(f"temperature must be a number above 0, not {self.temperature!r}")
        as_share(self.cooling, "cooling")
        as_count(self.jumps, "jumps")
        if self.descent is not None:
            as_count(self.descent, "descent")

    def check(self, problem: Problem) -> None:
        super(Annealing, self).check(problem)
        local_method(self.local).check(problem)

    def iterate(self, problem: Problem) -> Iterator[None]:
        local, rng = local_method(self.local), problem.rng
        descent = length_of_descent(self.descent, local, SHARE)
        descend_by(problem, local, SHARE * descent, patient=True)
        here, error = problem.x.copy(), math.sqrt(problem.cost)
        least = error
        problem.step[:] = self.temperature
        yield
        while True:
            temperature = self.temperature
            for _ in range(self.jumps):
                problem.step[:] = jump = random_offsets(problem, temperature)
                problem.advance()
                descend_by(problem, local, descent)
                if not problem.met and problem.cost < least * least:
                    descend_by(problem, local, SHARE * descent, patient=True)
                found = math.sqrt(problem.cost)
                # drawn even where it is not needed, so that each jump uses up as many numbers
                bold = rng.random() < math.exp(min(0.0, (error - found) / temperature))
                if problem.met or found < least or bold:
                    here[:], error = problem.x, found
                    least = min(least, found)
                else:
                    problem.place_x(here)
                temperature *= self.cooling
                problem.step[:] = jump  # which is how far this iteration went, not the last step of its descent
                yield


def random_offsets(problem: Problem, size: float) -> Array:
    """(n,) a step of up to `size` (rad, or sizes of the mechanism) in each column, inside the limits and even there.

    What is locked stays. The three columns of a ball are the rotation vector of its turn.
    """
    low, high = np.maximum(problem.lower, -size), np.minimum(problem.upper, size)
    return np.where(problem.free, low + (high - low) * problem.rng.random(problem.n), 0.0)
