"""Driving a method: one attempt from one start, with the same rules of stopping for all of them."""

from __future__ import annotations

import math

import numpy as np

from mechanik.kernels.solver_state import (
    ATTEMPTS_OUT,
    BROUGHT_IN,
    CLOSEST,
    CONVERGED,
    DIVERGED,
    ITERATIONS_OUT,
    OPEN,
    STAGE_COST,
    STAGE_NUMBERS,
    STAGE_STATUS,
    STAGES_OUT,
    STALLED,
    STATUS,
    STOPPED,
    SUCCESS,
    TIMEOUT,
)
from mechanik.solvers.method import Method
from mechanik.solvers.options import Options
from mechanik.solvers.problem import Problem
from mechanik.solvers.watch import Watch
from mechanik.spatial.array import Array

PATIENCE, IDLE = 3, 0.999
"""Once all is met, it goes on for wishes as long as one of so many iterations lowers them to this share."""


def attempt(
    problem: Problem, method: Method, q0: Array, options: Options, watch: Watch, keeps_best: bool = True
) -> Array:
    """Iterate from q0 until the problem is met or there is a reason to stop; the best q that was seen, or the last.

    What else there is to say goes into the table `out` of the problem, as the compiled solver writes it.
    """
    most = method.usual_iterations if options.max_iterations is None else options.max_iterations
    nq = problem.mechanism.nq
    follows_wishes = method.takes_wishes and len(problem.wish_rows) > 0
    problem.deadline = watch.deadline
    problem.place(q0)
    brought_in = not np.array_equal(problem.x[:nq], q0)
    best, least = problem.x.copy(), _merit(problem)
    iterations, idle, status = 0, 0, CONVERGED
    running = method.iterate(problem)
    while not problem.met or (follows_wishes and idle < PATIENCE):
        if iterations >= most or watch.is_over():
            status = STOPPED if watch.stopped else TIMEOUT
            break
        said = next(running, running)
        if said is running:
            status = STALLED
            break
        iterations += 1
        watch.see(problem.x, nq, problem.cost)
        if not problem.cost < math.inf:
            status = DIVERGED
            break
        merit = _merit(problem)
        if follows_wishes:
            idle = 0 if merit[0] < least[0] or merit[1] < IDLE * least[1] else idle + 1
        if merit < least:
            best[:], least = problem.x, merit
        if isinstance(said, float):
            _write_out(problem, said, iterations, brought_in)
            return problem.q
        if options.smallest_step > 0.0 and np.abs(problem.step).max(initial=0.0) < options.smallest_step:
            status = STALLED
            break
    if keeps_best and not _merit(problem) <= least:
        problem.place_x(best)
    status = CONVERGED if problem.met else _why(problem, status, options)
    _write_out(problem, status, iterations, brought_in)
    return problem.q


def _merit(problem: Problem) -> tuple[bool, float]:
    """What is better comes first: what is met, and then by what is wished for; else by what is required."""
    return (False, problem.wish_cost) if problem.met else (True, problem.cost)


def _why(problem: Problem, status: float, options: Options) -> float:
    """The reason for having stopped, looked at closely: whether loops are open, whether there was a slope left."""
    if not problem.within_closures():
        return OPEN
    if status in (STALLED, TIMEOUT):
        slope = np.abs(problem.reduced_gradient()).max(initial=0.0)
        if slope <= options.smallest_gradient * math.sqrt(problem.cost):
            return CLOSEST
    return status


def _write_out(problem: Problem, status: float, iterations: int, brought_in: bool) -> None:
    out = problem.part.packed.at["out"]
    out[:] = 0.0
    out[STATUS], out[ITERATIONS_OUT], out[ATTEMPTS_OUT] = status, iterations, 1
    out[SUCCESS], out[BROUGHT_IN] = float(status == CONVERGED), float(brought_in)
    for s, wish in enumerate(problem.part.wishes):
        about = STAGES_OUT + STAGE_NUMBERS * s
        if not wish:
            out[about + STAGE_STATUS], out[about + STAGE_COST] = status, problem.cost
