"""The solution nearest to the start, among all solutions."""

from __future__ import annotations

import time
from dataclasses import replace

from mechanik.processor_clock import seconds_since
from mechanik.solver.pipeline import Pipeline
from mechanik.solver.request import SolveRequest
from mechanik.solver.search.all_solutions import all_solutions, nearest_solution
from mechanik.solver.solution import Solution

NEAREST_MAX_WORK = 150_000.0
"""Largest work of a search for the nearest solution, in evaluations of a pose (`ConstraintSystem.work`); about 1.5 s.
Arms need up to 40,000, trees and humanoids with two to four goals up to 100,000. Objectives that are functions in
Python need more: 512 descents of a Panda took 4 s."""


def solve_nearest(pipeline: Pipeline, request: SolveRequest) -> Solution:
    """Return the feasible solution nearest to q0; if there is none, the result of a solve from q0.

    The search ends after NEAREST_MAX_WORK; then the solution is the nearest one found, and its message says so.
    """
    start_time = time.perf_counter()
    with pipeline.search_context(request) as context:
        context.constraints.max_work = NEAREST_MAX_WORK
        if request.feasible is None:
            nearest_q = nearest_solution(context, rng=request.rng)
        else:
            solutions = all_solutions(context, rng=request.rng)
            nearest_q = next((q for q in solutions.q if request.feasible(q.copy())), None)
        is_exhausted = context.constraints.is_exhausted
    if nearest_q is not None:
        # no iterations: soft objectives would move along the self-motion, away from the nearest solution
        request = replace(request, q0=nearest_q).with_options(restarts=0, max_iterations=0)
    solution = pipeline.solve(request)
    if is_exhausted:
        outcome = "found none" if nearest_q is None else "may have missed a nearer one"
        solution._add_details(note=f"the search for the nearest solution ended early and {outcome}")
    solution.seconds = seconds_since(start_time)
    return solution
