"""Restarts of a solve: the sequence of start configurations, and the attempts from them, in the kernel or in Python.

Without a random generator the starts come from the seed table, best first, and then from the Halton sequence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np

from mechanik.solver.fallback import SearchResult
from mechanik.solver.kernel_driver import run_kernel
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.monitor import Monitor
from mechanik.solver.options import Options
from mechanik.solver.request import ResolvedRequest
from mechanik.solver.start_configurations import (
    SEED_TABLE_SIZE,
    Mask,
    halton_configurations,
    movable_configuration_mask,
    random_configurations,
    seed_table_cache,
)
from mechanik.spatial.array import Array

STARTS_PER_BLOCK = 128
"""Number of starts that are generated at a time."""
STARTS_BEFORE_CLOSING = 8
"""Number of starts that are tried although their loops are not closed; the loops of all further starts are closed
first. Closing the loops of a start costs as much as an attempt, and most targets are solved without it.
"""


class RestartRequest(Protocol):
    """Arguments of a call that the restart sequence needs."""

    @property
    def options(self) -> Options: ...
    @property
    def bounds(self) -> tuple[Array, Array]: ...
    @property
    def locked_dofs(self) -> Mask: ...
    @property
    def rng(self) -> np.random.Generator | None: ...
    @property
    def monitor(self) -> Monitor: ...


def restart_sequence(request: RestartRequest, problem: LeastSquaresProblem, q: Array) -> Iterator[Array]:
    """Yield blocks (n, nq) of restart configurations, `restart_count` in total; at least one block, which may be empty.

    Each block is generated when it is needed. Joints that the problem does not move have their value in q.
    """
    remaining_count = request.options.restart_count
    if remaining_count == 0:
        yield np.zeros((0, len(q)))
        return
    is_movable = movable_configuration_mask(problem, request.locked_dofs)
    blocks = (
        _seed_table_blocks(request, problem, is_movable, q)
        if request.rng is None
        else _random_blocks(request, problem, request.rng)
    )
    while remaining_count > 0:
        starts = np.ascontiguousarray(np.where(is_movable, next(blocks)[:remaining_count], q))
        remaining_count -= len(starts)
        yield starts


def _seed_table_blocks(
    request: RestartRequest, problem: LeastSquaresProblem, is_movable: Mask, q: Array
) -> Iterator[Array]:
    table = seed_table_cache(problem).table(request.bounds, is_movable, q)
    starts = table.starts_by_cost(problem)
    if table.has_constraints and not problem.subproblem.packed.has_functions:
        yield starts[:STARTS_BEFORE_CLOSING]
        starts = table.closed_starts_by_cost(
            problem, request.options.restart_count - STARTS_BEFORE_CLOSING, request.monitor
        )
    for first_row in range(0, len(starts), STARTS_PER_BLOCK):
        yield starts[first_row : first_row + STARTS_PER_BLOCK]
    space = replace(problem.mechanism.space, lower=request.bounds[0], upper=request.bounds[1])
    halton_index = SEED_TABLE_SIZE
    while True:
        yield halton_configurations(space, STARTS_PER_BLOCK, halton_index)
        halton_index += STARTS_PER_BLOCK


def _random_blocks(request: RestartRequest, problem: LeastSquaresProblem, rng: np.random.Generator) -> Iterator[Array]:
    space = replace(problem.mechanism.space, lower=request.bounds[0], upper=request.bounds[1])
    remaining_count = request.options.restart_count
    while True:
        yield random_configurations(space, min(remaining_count, STARTS_PER_BLOCK), rng)
        remaining_count -= STARTS_PER_BLOCK


def search_in_kernel(request: ResolvedRequest, problem: LeastSquaresProblem, q: Array) -> SearchResult:
    """Search with a compiled method from q and then from the restarts, until an attempt succeeds.

    Starts are generated block by block, since generating all of them may take too long.
    """
    packed, monitor = problem.subproblem.packed, request.monitor
    options = request.method.kernel_options(request.options, problem.problem.length_unit)
    attempts = iterations = start_count = 0
    for starts in restart_sequence(request, problem, q):
        packed.set_options(options)
        q = run_kernel(problem.mechanism, problem.subproblem, problem.relations, q, starts, monitor)
        # a kernel call first descends from q; in all calls but the first, q is a previous result: not a new attempt
        attempts += packed.report.attempts - (start_count > 0)
        iterations += packed.report.iterations
        start_count += len(starts)
        if packed.report.success or monitor.is_over():
            break
    report = packed.report.copy()
    report.set_effort(iterations, attempts)
    return SearchResult(q, report, problem.subproblem.required_stages)


def search_in_python(request: ResolvedRequest, problem: LeastSquaresProblem, q: Array) -> SearchResult:
    """Search from q and then from the restarts, until a solution is accepted, with a Python loop over the attempts.

    Used for methods that are written in Python, and for calls with `feasible`.
    """
    request.method.check(problem)
    best: tuple[tuple[float, ...], SearchResult] | None = None
    attempts = iterations = 0
    is_any_solved = False
    for start in _all_starts(request, problem, q):
        final_q = request.method.run_attempt(problem, start, request.options, request.monitor, not request.is_step)
        report = problem.subproblem.packed.report.copy()
        attempts, iterations = attempts + 1, iterations + report.iterations
        is_accepted = report.success and (request.feasible is None or bool(request.feasible(final_q.copy())))
        is_any_solved |= report.success
        result = SearchResult(final_q, report, problem.subproblem.required_stages)
        sort_key = (float(not is_accepted), float(not report.success), *result.costs)
        if best is None or sort_key < best[0]:
            best = sort_key, result
        if is_accepted or request.monitor.is_over():
            break
    assert best is not None
    sort_key, result = best
    result.report.set_effort(iterations, attempts)
    return replace(result, is_rejected=is_any_solved and sort_key[0] != 0.0)


def _all_starts(request: ResolvedRequest, problem: LeastSquaresProblem, q: Array) -> Iterator[Array]:
    """Yield q and then the restarts; joints that the subproblem does not move have their value in q."""
    yield q
    for starts in restart_sequence(request, problem, q):
        yield from starts
