"""The solution nearest to the start, among all solutions."""

from __future__ import annotations

import time
from dataclasses import replace

from mechanik.processor_clock import seconds_since
from mechanik.solver.pipeline import Pipeline
from mechanik.solver.request import SolveRequest
from mechanik.solver.search.all_solutions import all_solutions, nearest_solution
from mechanik.solver.solution import Solution


def solve_nearest(pipeline: Pipeline, request: SolveRequest) -> Solution:
    """Return the feasible solution nearest to q0; if there is none, the result of a solve from q0."""
    start_time = time.perf_counter()
    with pipeline.search_context(request) as context:
        if request.feasible is None:
            nearest_q = nearest_solution(context, rng=request.rng)
        else:
            solutions = all_solutions(context, rng=request.rng)
            nearest_q = next((q for q in solutions.q if request.feasible(q.copy())), None)
    if nearest_q is not None:
        request = replace(request, q0=nearest_q).with_options(restarts=0)
    solution = pipeline.solve(request)
    solution.seconds = seconds_since(start_time)
    return solution
