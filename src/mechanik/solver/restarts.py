"""Restarts of a solve: the sequence of start configurations, and the attempts from them, in the kernel or in Python.

Without a random generator the starts come from the seed table, best first, and then from the Halton sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mechanik.kernels.state_layout import (
    ATTEMPTS_OUT,
    FIRST_STAGE_REPORT,
    ITERATIONS_OUT,
    STAGE_COST,
    STAGE_REPORT_FLOATS,
    STAGE_STATUS,
    SUCCESS,
)
from mechanik.model import Mechanism
from mechanik.problem import Subproblem
from mechanik.solver.kernel_driver import run_kernel
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.methods.levenberg_marquardt import LevenbergMarquardt
from mechanik.solver.methods.method import Method, run_method
from mechanik.solver.monitor import Monitor
from mechanik.solver.options import Options, write_options
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
    blocks = (
        _seed_table_blocks(request, problem, q)
        if request.rng is None
        else _random_blocks(request, problem, q, request.rng)
    )
    while remaining_count > 0:
        starts = np.ascontiguousarray(next(blocks)[:remaining_count])
        remaining_count -= len(starts)
        yield starts


def nearly_closed_starts(problem: LeastSquaresProblem, bounds: tuple[Array, Array], max_count: int) -> Array:
    """Return the starts (n, nq) of the seed table with the smallest closure residuals; they do not depend on targets.

    Their number n is min(max_count, STARTS_BEFORE_CLOSING).
    """
    nq = problem.mechanism.nq
    table = seed_table_cache(problem).table(bounds, np.ones(nq, dtype=np.bool_), np.zeros(nq))
    return np.ascontiguousarray(table.most_nearly_closed_starts(min(max_count, STARTS_BEFORE_CLOSING)))


def _seed_table_blocks(request: RestartRequest, problem: LeastSquaresProblem, q: Array) -> Iterator[Array]:
    is_movable = movable_configuration_mask(problem, request.locked_dofs)
    table = seed_table_cache(problem).table(request.bounds, is_movable, q)
    starts = table.starts_by_cost(problem)
    if table.has_constraints and problem.subproblem.packed.sizes["functions"] == 0:
        yield starts[:STARTS_BEFORE_CLOSING]
        remaining_count = request.options.restart_count - STARTS_BEFORE_CLOSING
        starts = table.closed_starts_by_cost(problem, remaining_count, request.options, request.monitor)
    for first_row in range(0, len(starts), STARTS_PER_BLOCK):
        yield starts[first_row : first_row + STARTS_PER_BLOCK]
    space = replace(problem.mechanism.space, lower=request.bounds[0], upper=request.bounds[1])
    halton_index = SEED_TABLE_SIZE
    while True:
        yield np.where(is_movable, halton_configurations(space, STARTS_PER_BLOCK, halton_index), q)
        halton_index += STARTS_PER_BLOCK


def _random_blocks(
    request: RestartRequest, problem: LeastSquaresProblem, q: Array, rng: np.random.Generator
) -> Iterator[Array]:
    is_movable = movable_configuration_mask(problem, request.locked_dofs)
    space = replace(problem.mechanism.space, lower=request.bounds[0], upper=request.bounds[1])
    remaining_count = request.options.restart_count
    while True:
        yield np.where(is_movable, random_configurations(space, min(remaining_count, STARTS_PER_BLOCK), rng), q)
        remaining_count -= STARTS_PER_BLOCK


@dataclass(frozen=True, slots=True, eq=False)
class SubproblemRequest:
    """Arguments of the solve of a subproblem, besides the start.

    Attributes:
        mechanism: the mechanism.
        method: the method.
        options: options of the call.
        bounds: lower and upper limits, (nq,) each, rad or m.
        locked_dofs: mask of locked dofs, (nv,).
        rng: random generator of the starts; None for the seed table and the Halton sequence.
        feasible: function that returns whether a solution q (nq,) is accepted.
        monitor: deadline, history and callback.
        is_step: whether to return the result of the last iteration, even if the error increases.
    """

    mechanism: Mechanism
    method: Method
    options: Options
    bounds: tuple[Array, Array]
    locked_dofs: np.ndarray[tuple[int], np.dtype[np.bool_]]
    rng: np.random.Generator | None
    feasible: Callable[[Array], bool] | None
    monitor: Monitor
    is_step: bool


def restart_in_kernel(
    request: SubproblemRequest, method: LevenbergMarquardt, problem: LeastSquaresProblem, q: Array
) -> tuple[Array, Array]:
    """Solve in the kernel from q and then from the restarts, until an attempt succeeds.

    Starts are generated block by block, since generating all of them may take too long.

    Returns:
        q (nq,) and the kernel report.
    """
    subproblem, relations, options, monitor = problem.subproblem, problem.relations, request.options, request.monitor
    attempts = iterations = start_count = 0
    report = subproblem.packed.tables["report"]
    for starts in restart_sequence(request, problem, q):
        write_options(subproblem, options, method, problem.problem.length_unit)
        q = run_kernel(request.mechanism, subproblem, relations, q, starts, monitor)
        # a kernel call first descends from q; in all calls but the first, q is a previous result: not a new attempt
        attempts, iterations = attempts + report[ATTEMPTS_OUT] - (start_count > 0), iterations + report[ITERATIONS_OUT]
        report[ATTEMPTS_OUT], report[ITERATIONS_OUT] = attempts, iterations
        start_count += len(starts)
        if report[SUCCESS] == 1.0 or monitor.is_over():
            break
    return q, report.copy()


def restart_in_python(request: SubproblemRequest, problem: LeastSquaresProblem, q: Array) -> tuple[Array, Array, bool]:
    """Solve from q and then from the restarts, until a solution is accepted, with a Python loop over the attempts.

    Used for methods that are written in Python, and for calls with `feasible`.

    Returns:
        q (nq,), a report in the kernel's format, and whether `feasible` rejected every solution.
    """
    subproblem, relations = problem.subproblem, problem.relations
    if not isinstance(request.method, LevenbergMarquardt):
        request.method.check(problem)
    best: tuple[tuple[float, ...], Array, Array] | None = None
    attempts = iterations = 0
    is_any_solved = False
    for start in _all_starts(request, problem, q):
        if isinstance(request.method, LevenbergMarquardt):
            write_options(subproblem, request.options, request.method, problem.problem.length_unit)
            final_q = run_kernel(
                request.mechanism, subproblem, relations, start, np.zeros((0, len(q))), request.monitor
            )
        else:
            final_q = run_method(problem, request.method, start, request.options, request.monitor, not request.is_step)
        report = subproblem.packed.tables["report"].copy()
        attempts, iterations = attempts + 1, iterations + report[ITERATIONS_OUT]
        is_solved = bool(report[SUCCESS] == 1.0)
        is_accepted = is_solved and (request.feasible is None or bool(request.feasible(final_q.copy())))
        is_any_solved |= is_solved
        sort_key = (float(not is_accepted), float(not is_solved), *_costs(subproblem, report))
        if best is None or sort_key < best[0]:
            best = sort_key, final_q, report
        if is_accepted or request.monitor.is_over():
            break
    assert best is not None
    sort_key, final_q, report = best
    report[ATTEMPTS_OUT], report[ITERATIONS_OUT] = attempts, iterations
    return final_q, report, is_any_solved and sort_key[0] != 0.0


def _all_starts(request: SubproblemRequest, problem: LeastSquaresProblem, q: Array) -> Iterator[Array]:
    """Yield q and then the restarts; joints that the subproblem does not move have their value in q."""
    yield q
    for starts in restart_sequence(request, problem, q):
        yield from starts


def _costs(subproblem: Subproblem, report: Array) -> list[float]:
    """Return the remaining cost of each required stage, in order."""
    offsets = [
        FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * stage
        for stage, is_optional in enumerate(subproblem.is_optional)
        if not is_optional
    ]
    return [0.0 if report[k + STAGE_STATUS] == 0.0 else float(report[k + STAGE_COST]) for k in offsets]
