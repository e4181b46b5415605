"""Backends that search subproblem by subproblem: in the general kernel, or with a method written in Python."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from mechanik.errors import InvalidOperation
from mechanik.kernels.state_layout import CONVERGED, DIVERGED, NOT_CLOSED, STOPPED
from mechanik.solver.backends.backend import Partial
from mechanik.solver.backends.chain import ChainBackend
from mechanik.solver.compiled_problem import CompiledProblem
from mechanik.solver.fallback import SearchResult, search_from_starts
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.methods.method import Method
from mechanik.solver.options import Options
from mechanik.solver.request import ResolvedRequest
from mechanik.solver.restarts import search_in_kernel, search_in_python
from mechanik.solver.solution import Solution, SolutionDetails
from mechanik.solver.workspace import Workspace, WorkspacePool
from mechanik.spatial.array import Array

RESTARTS_OF_GENERAL_KERNEL = 5
"""Restarts of a compiled method where the caller limits neither restarts nor iterations nor time, no loop has to be
closed, and the goals do not have more rows than there are dofs. Of 1,500 reachable pairs of points on a tree with 13
joints, 76 were not reached from the first start, and all of them with 5 restarts; solving all targets took 1.4 times as
long."""


@dataclass(slots=True, eq=False)
class SearchProgress:
    """Results of the subproblems of a call so far.

    Attributes:
        q: (nq,) configuration with the results of all subproblems.
        results: result of each subproblem.
        seconds: time spent on each subproblem, s.
    """

    q: Array
    results: list[SearchResult] = field(default_factory=list[SearchResult])
    seconds: list[float] = field(default_factory=list[float])

    @property
    def success(self) -> bool:
        """Whether every subproblem is solved, with a solution that `feasible` accepts."""
        return all(result.success and not result.is_rejected for result in self.results)

    def accept_whole(self, feasible: Callable[[Array], bool]) -> None:
        """Ask `feasible` again if it rejected a subproblem while others were still at their start."""
        is_solved = all(result.success for result in self.results)
        if is_solved and not self.success and bool(feasible(self.q.copy())):
            self.results = [replace(result, is_rejected=False) for result in self.results]

    def solution(self, request: ResolvedRequest) -> Solution:
        """Return the results as a solution."""
        history, feasible = request.monitor.history, request.feasible
        solution = Solution(
            request.compiled,
            request.visible_objectives,
            self.q,
            tuple(result.report for result in self.results),
            time.perf_counter() - request.start_time,
            SolutionDetails(
                bounds=request.bounds,
                history=None if history is None else np.array(history),
                is_rejected=any(result.is_rejected for result in self.results),
                subproblem_seconds=tuple(max(0.0, seconds) for seconds in self.seconds),
                locked_dofs=request.locked_dofs,
            ),
        )
        # `feasible` is not yet asked about a configuration at which everything holds although no search says so
        was_accepted = self.success and len(self.results) > 0
        if feasible is not None and not was_accepted and solution.success and not bool(feasible(self.q.copy())):
            solution._add_details(is_rejected=True)
        return solution

    def answer(self, request: ResolvedRequest) -> Solution | Partial:
        """Return the solution of a success, and otherwise a partial answer that contains it."""
        solution = self.solution(request)
        if self.success:
            return solution
        reports = [result.report for result in self.results]
        attempts, iterations = max((r.attempts for r in reports), default=0), sum(r.iterations for r in reports)
        return Partial(self.q, attempts, iterations, solution.seconds, solution)


class SearchBackend:
    """Search of each subproblem with the method of the request, in the general kernel if the method is compiled."""

    def __init__(self, pool: WorkspacePool, method: Method, chain: ChainBackend | None) -> None:
        """Create a backend.

        Args:
            pool: workspaces of the compiled problem.
            method: method of requests that do not give another; for the name.
            chain: the earlier backend whose partial answers this backend continues.
        """
        self._pool, self._chain = pool, chain
        self.name = "general kernel" if method.is_compiled else f"{method.title} in Python"

    def rejection(self, request: ResolvedRequest) -> str | None:
        return None

    def solve(self, request: ResolvedRequest, partial: Partial | None) -> Solution | Partial | None:
        with self._pool.loaded(request) as workspace:
            if partial is not None and self._chain is not None:
                return _continue_chain(request, workspace, self._chain, partial)
            progress = SearchProgress(request.start)
            for part in workspace.parts:
                start_time = time.perf_counter()
                result = search_part(request, part, progress.q)
                progress.q = result.q
                progress.results.append(result)
                progress.seconds.append(time.perf_counter() - start_time)
            restarts = default_restarts(request)
            if restarts and not progress.success:
                _restart(replace(request, options=replace(request.options, restarts=restarts)), workspace, progress)
        if request.feasible is not None and len(progress.results) > 1:
            progress.accept_whole(request.feasible)
        return progress.answer(request)


class ClosedFormBackend:
    """Closed form of an arm, if the earlier backends fail; it goes to the branch nearest to the start."""

    name = "closed form"

    def __init__(self, pool: WorkspacePool, method: Method) -> None:
        """Create a backend.

        Args:
            pool: workspaces of a compiled problem with a single subproblem.
            method: the closed form.
        """
        self._pool, self._method = pool, method

    def rejection(self, request: ResolvedRequest) -> str | None:
        if request.locked_dofs.any():
            return "it cannot lock joints"
        if request.is_step:
            return "a step has a single iteration"
        return "the time is used up" if request.monitor.is_over() else None

    def solve(self, request: ResolvedRequest, partial: Partial | None) -> Solution | Partial | None:
        # a single attempt: the solutions in closed form are the same for every start
        single = replace(request, method=self._method, options=replace(request.options, restarts=0))
        start_time = time.perf_counter()
        with self._pool.loaded(single) as workspace:
            try:
                result = search_in_python(single, workspace.parts[0], request.start)
            except InvalidOperation:  # the targets of this call have no closed form
                return None
        if not result.success or result.is_rejected:
            return None
        if partial is not None:
            result.report.set_effort(result.report.iterations + partial.iterations, result.report.attempts)
        progress = SearchProgress(result.q, [result], [time.perf_counter() - start_time])
        return progress.solution(request)


def search_part(request: ResolvedRequest, part: LeastSquaresProblem, q: Array) -> SearchResult:
    """Search one subproblem from q (nq,) and from the restarts; without success, end at the closest configuration.

    Methods written in Python search with rows in units of the mechanism, and so do compiled methods in a very small or
    very large mechanism: more targets are reached. The closest configuration is that with the lowest cost in m and rad,
    so methods that descend continue with rows in these units: compiled methods with the iterations that are left, the
    others if the caller limits neither iterations nor time.
    """
    result = _search_once(request, part, q)
    if not _is_closest_in_other_units(request, part, result):
        return result
    options, method, report = request.options, request.method, result.report
    limit = options.max_iterations
    if method.is_compiled:
        used_iterations = report.iterations // max(report.attempts, 1)
        limit = max(0, (method.default_iterations if limit is None else limit) - used_iterations)
    single = replace(request, options=replace(options, restarts=0, max_iterations=limit))
    with part.si_rows():
        closest = _search_once(single, part, result.q)
    if result.success and not closest.success:
        return result
    closest.report.add_earlier_search(report)
    return replace(closest, is_rejected=closest.is_rejected or (result.is_rejected and not closest.success))


def _search_once(request: ResolvedRequest, part: LeastSquaresProblem, q: Array) -> SearchResult:
    """Search one subproblem from q (nq,) and from the restarts, with the present rows."""
    if request.method.is_compiled and request.feasible is None:
        return search_in_kernel(request, part, q)
    return search_in_python(request, part, q)


def _is_closest_in_other_units(request: ResolvedRequest, part: LeastSquaresProblem, result: SearchResult) -> bool:
    """Return whether a result may be the closest one only with rows that are not in m and rad."""
    report, balanced_stages = result.report, part.subproblem.balanced_stages
    if not balanced_stages or not request.method.is_descent or request.is_step or request.monitor.is_over():
        return False
    if not request.method.is_compiled and limits_effort(request.options):
        return False
    return report.status not in (NOT_CLOSED, STOPPED, DIVERGED) and any(
        report.stage_status(stage) != CONVERGED for stage in balanced_stages
    )


def limits_effort(options: Options) -> bool:
    """Return whether the caller limits iterations or time; then no search follows that the caller has not chosen."""
    return options.max_iterations is not None or options.max_seconds < np.inf


def default_restarts(request: ResolvedRequest) -> int:
    """Return the number of restarts of a call that gives none; 0 if a failure of the first start ends the search."""
    if request.options.restarts is not None or request.is_step:
        return 0
    return default_restart_count(request.compiled, request.method, request.options)


def default_restart_count(compiled: CompiledProblem, method: Method, options: Options) -> int:
    """Return the number of restarts of calls with these options, if they give none."""
    if not method.is_compiled or limits_effort(options):
        return 0
    if compiled.has_constraints or compiled.definition.constraints:
        return 0
    if any(subproblem.is_overdetermined for subproblem in compiled.problem.subproblems):
        return 0
    return RESTARTS_OF_GENERAL_KERNEL


def _restart(request: ResolvedRequest, workspace: Workspace, progress: SearchProgress) -> None:
    """Search the subproblems that failed from further starts; a result counts if it is clearly better."""
    for k, part in enumerate(workspace.parts):
        first = progress.results[k]
        if (first.success and not first.is_rejected) or request.monitor.is_over():
            continue
        start_time = time.perf_counter()
        result = search_part(request, part, progress.q)
        result.report.set_effort(
            first.report.iterations + result.report.iterations, first.report.attempts + result.report.attempts - 1
        )
        if result.is_clearly_better_than(first):
            progress.results[k], progress.q = result, result.q
        else:
            first.report.set_effort(result.report.iterations, result.report.attempts)
        progress.seconds[k] += time.perf_counter() - start_time


def _continue_chain(
    request: ResolvedRequest, workspace: Workspace, chain: ChainBackend, partial: Partial
) -> Solution | Partial:
    """Descend to the closest configuration after a failed search of a chain, without restarts."""
    part = workspace.parts[0]
    single = replace(request, options=replace(request.options, restarts=0))
    starts = chain.continuation_starts(partial, request.start if request.has_start else None)
    with part.si_rows():
        part.set_configuration(partial.q)
        known_cost = part.cost
    result = search_from_starts(starts, known_cost, lambda start: search_part(single, part, start))
    result.report.set_effort(result.report.iterations + partial.iterations, partial.attempts)
    seconds = time.perf_counter() - request.start_time
    return SearchProgress(result.q, [result], [seconds]).answer(request)
