"""The starts of a solve, tried until one leads to success: in the kernel, or one by one where Python has a say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mechanik.kernels.solver_state import (
    ATTEMPTS_OUT,
    ITERATIONS_OUT,
    STAGE_COST,
    STAGE_NUMBERS,
    STAGE_STATUS,
    STAGES_OUT,
    SUCCESS,
)
from mechanik.mechanism import Mechanism
from mechanik.program import Part
from mechanik.solvers.iterate import attempt
from mechanik.solvers.levenberg_marquardt import LevenbergMarquardt
from mechanik.solvers.method import Method
from mechanik.solvers.options import Options
from mechanik.solvers.problem import Problem
from mechanik.solvers.running import run, set_options
from mechanik.solvers.seed_starts import starts_in_turn
from mechanik.solvers.watch import Watch
from mechanik.spatial.array import Array


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """What one call of a solver asks for, besides a start.

    Attributes:
        bounds: (nq,) lower and upper.
        locked: (nv,).
        rng: None for starts by Halton's sequence.
        feasible: whether the caller likes a solution's q.
        is_step: whether a single iteration is wanted, whatever comes of it.
    """

    mechanism: Mechanism
    method: Method
    options: Options
    bounds: tuple[Array, Array]
    locked: np.ndarray[tuple[int], np.dtype[np.bool_]]
    rng: np.random.Generator | None
    feasible: Callable[[Array], bool] | None
    watch: Watch
    is_step: bool


def search_compiled(call: Call, method: LevenbergMarquardt, problem: Problem, q: Array) -> tuple[Array, Array]:
    """In the kernel, from q and then from further starts, some at a time: to draw all may take too long.

    Returns:
        q, and the kernel's report.
    """
    part, relations, options, watch = problem.part, problem.relations, call.options, call.watch
    attempts = iterations = first = 0
    out = part.packed.at["out"]
    for starts in starts_in_turn(call, problem, q):
        set_options(part, options, method, problem.program.size)
        q = run(call.mechanism, part, relations, q, starts, watch)
        attempts, iterations = attempts + out[ATTEMPTS_OUT] - (first > 0), iterations + out[ITERATIONS_OUT]
        out[ATTEMPTS_OUT], out[ITERATIONS_OUT] = attempts, iterations
        first += len(starts)
        if out[SUCCESS] == 1.0 or watch.is_over():
            break
    return q, out.copy()


def search_in_python(call: Call, problem: Problem, q: Array) -> tuple[Array, Array, bool]:
    """Attempt by attempt, for methods whose loop is in Python and for callers who have a say in what is a solution.

    Returns:
        q, a report as the kernel writes it, and whether all solutions that were found were refused by the caller.
    """
    part, relations = problem.part, problem.relations
    if not isinstance(call.method, LevenbergMarquardt):
        call.method.check(problem)
    best: tuple[tuple[float, ...], Array, Array] | None = None
    attempts = iterations = 0
    found_one = False
    for start in _all_starts(call, problem, q):
        if isinstance(call.method, LevenbergMarquardt):
            set_options(part, call.options, call.method, problem.program.size)
            found = run(call.mechanism, part, relations, start, np.zeros((0, len(q))), call.watch)
        else:
            found = attempt(problem, call.method, start, call.options, call.watch, not call.is_step)
        out = part.packed.at["out"].copy()
        attempts, iterations = attempts + 1, iterations + out[ITERATIONS_OUT]
        solved = bool(out[SUCCESS] == 1.0)
        fine = solved and (call.feasible is None or bool(call.feasible(found.copy())))
        found_one |= solved
        rank = (float(not fine), float(not solved), *_costs(part, out))
        if best is None or rank < best[0]:
            best = rank, found, out
        if fine or call.watch.is_over():
            break
    assert best is not None
    rank, found, out = best
    out[ATTEMPTS_OUT], out[ITERATIONS_OUT] = attempts, iterations
    return found, out, found_one and rank[0] != 0.0


def _all_starts(call: Call, problem: Problem, q: Array) -> Iterator[Array]:
    """From q itself, then from elsewhere; what the part does not move stays as it is in q."""
    yield q
    for starts in starts_in_turn(call, problem, q):
        yield from starts


def _costs(part: Part, out: Array) -> list[float]:
    """What each required stage is short of, in order."""
    about = [STAGES_OUT + STAGE_NUMBERS * s for s, wish in enumerate(part.wishes) if not wish]
    return [0.0 if out[k + STAGE_STATUS] == 0.0 else float(out[k + STAGE_COST]) for k in about]
