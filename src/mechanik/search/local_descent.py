"""The downhill part of a search: some iterations of any method, from where a problem stands."""

from __future__ import annotations

import math
import time
from numbers import Integral

from mechanik.errors import LimitsError, UnknownName
from mechanik.mechanism.door import as_number
from mechanik.solvers.levenberg_marquardt import LevenbergMarquardt
from mechanik.solvers.method import Method
from mechanik.solvers.methods import METHODS, find_method
from mechanik.solvers.problem import Problem

WINDOW = 5
"""Iterations over which progress is judged: methods with momentum may rise for a few."""
LEAST_PROGRESS = 0.995
"""A descent is over once a window leaves more than this share of the cost: at that rate it would take thousands."""


def local_method(local: str | Method) -> Method:
    """The method that goes downhill, by name or as an object."""
    if local == "auto":
        raise UnknownName("local method", "auto", METHODS)
    return local if isinstance(local, Method) else find_method(local)()


def descend_by(problem: Problem, method: Method, iterations: int, patient: bool = False) -> None:
    """Go downhill until the problem is met or the iterations or the time are used up; ends at the best place.

    Unless it is patient it also ends where there is little progress.
    """
    if isinstance(method, LevenbergMarquardt) and method == LevenbergMarquardt():
        problem.descend(iterations)  # compiled as a whole
        return
    best, best_cost = problem.x.copy(), problem.cost
    before = problem.cost
    running = method.iterate(problem)
    for k in range(1, iterations + 1):
        if problem.met or next(running, running) is running or not problem.cost < math.inf:
            break
        if problem.deadline < math.inf and time.perf_counter() >= problem.deadline:
            break
        if problem.cost < best_cost:
            best[:], best_cost = problem.x, problem.cost
        if k % WINDOW == 0:
            if not patient and best_cost > LEAST_PROGRESS * before:
                break
            before = best_cost
    if not problem.met and not problem.cost <= best_cost:
        problem.place_x(best)


def length_of_descent(given: int | None, method: Method, share: int) -> int:
    """As many iterations as were given, or a share of those after which the method gives up by itself."""
    return max(1, method.usual_iterations // share) if given is None else given


def as_count(value: object, name: str, least: int = 1) -> None:
    """Refuse what is not a whole number of `least` or more."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise LimitsError(f"{name} must be a whole number of {least} or more, not {value!r}")


def as_share(value: object, name: str) -> None:
    """Refuse what is not a number above 0 and below 1."""
    if isinstance(value, str | bool) or not 0.0 < as_number(value, name) < 1.0:
        raise LimitsError(f"{name} must be above 0 and below 1, not {value!r}")
