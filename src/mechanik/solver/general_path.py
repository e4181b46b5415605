"""General solve path of a solver: it validates all arguments, updates all targets, and supports every option."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from mechanik.errors import InvalidArgument, InvalidOperation, ObjectiveError
from mechanik.kernels.problem_layout import LOCKED
from mechanik.kernels.state_layout import ATTEMPTS_OUT, ITERATIONS_OUT, SUCCESS
from mechanik.model import Frame
from mechanik.objectives import Objective
from mechanik.processor_clock import seconds_since
from mechanik.solver.fast_path import MIN_CHAIN_SECONDS, FastPath
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.methods.levenberg_marquardt import LevenbergMarquardt
from mechanik.solver.methods.method_registry import make_method
from mechanik.solver.monitor import Callback, Monitor
from mechanik.solver.options import DofNames, as_bounds, as_dof_mask
from mechanik.solver.restarts import SubproblemRequest, restart_in_kernel, restart_in_python
from mechanik.solver.search.all_solutions import all_solutions, nearest_solution
from mechanik.solver.search.chain_search import MAX_COST_RATIO, ChainResult
from mechanik.solver.search.search_context import DescentFunction, search_context
from mechanik.solver.solution import Solution, chain_kernel_report, goal_cost
from mechanik.solver.target_writer import Targets, with_targets
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_rng


class GeneralPath(FastPath):
    """Solver that supports every argument of a call; only one thread solves at a time (`_exclusive`)."""

    def __init__(self, *arguments: Any) -> None:
        self._owner_thread = 0
        super().__init__(*arguments)

    @contextmanager
    def _exclusive(self) -> Generator[None]:
        """Hold the lock of the tables: other threads wait, and a nested call raises `InvalidOperation`."""
        if self._owner_thread == threading.get_ident():
            raise InvalidOperation(
                "a solver cannot be called from a function that it calls, such as its callback; make a second solver"
            )
        with self._table_lock:
            self._owner_thread = threading.get_ident()
            try:
                yield
            finally:
                self._owner_thread = 0

    def _solve(
        self,
        targets: Targets | None,
        q0: ArrayLike | None,
        lock: DofNames | str | None,
        limits: Mapping[str, ArrayLike] | None,
        rng: np.random.Generator | None,
        feasible: Callable[[Array], bool] | None,
        history: bool,
        callback: Callback | None,
        option_changes: dict[str, Any],
        max_deviation: float | None = None,
        is_step: bool = False,
        chain_result: ChainResult | None = None,
    ) -> Solution:
        """Solve with every argument of `Solver.solve`; the caller must be inside `_exclusive`.

        Args:
            max_deviation: largest change of each joint value from q0 (clamped to the limits), rad or m; not applied to
                spherical joints. None: no such limit.
            is_step: whether to return the result of the last iteration, even if the error increases; no fallback
                method follows.
            chain_result: result of the chain kernel for the same arguments, if the caller has run it already.
        """
        start_time = time.perf_counter() - (0.0 if chain_result is None else chain_result.seconds)
        if rng is not None:
            as_rng(rng)
        if feasible is not None and not callable(feasible):
            raise InvalidArgument(f"feasible must be a function of q, not {feasible!r}")
        method, options = self.method, self.options
        if option_changes:
            method, common_options = make_method(method, option_changes)
            options, solver_options = replace(options, **common_options), self.options
            if (options.position_weight, options.rotation_weight) != (
                solver_options.position_weight,
                solver_options.rotation_weight,
            ):
                raise ObjectiveError("position_weight and rotation_weight cannot change in a call; make another solver")
        self._recompile_if_stale()
        mechanism = self.mechanism
        q = np.array(mechanism.q if q0 is None else mechanism._single_q(q0))
        for k in mechanism.space.quaternions_q:
            q[k : k + 4] /= np.linalg.norm(q[k : k + 4])
        locked_dofs = np.zeros(mechanism.nv, dtype=np.bool_) if lock is None else as_dof_mask(mechanism, lock, False)
        if any(
            locked_dofs[v : v + 3].any()
            for subproblem in self._problem.subproblems
            for v in subproblem.passive_spherical_v
        ):
            # the dofs of spherical joints then have columns, which can be locked
            self._can_eliminate_spherical_joints = False
            self._compile(self._objectives)
        objectives = self._objectives_with_targets(targets)
        self._update_targets(objectives, q, options.rest_factor)
        lower, upper = self._bounds if limits is None else as_bounds(mechanism, {**(self._limits or {}), **limits})
        if max_deviation is not None:
            clamped_q = np.clip(q, lower, upper)
            lower, upper = np.maximum(lower, clamped_q - max_deviation), np.minimum(upper, clamped_q + max_deviation)
            for k in mechanism.space.quaternions_q:  # quaternion components have no limits
                lower[k : k + 4], upper[k : k + 4] = -np.inf, np.inf
        fits_chain_kernel = (
            not (option_changes.keys() - {"restarts", "max_seconds"} or history or is_step or options.restarts == 0)
            and lock is limits is callback is max_deviation is None
            and options.max_seconds >= MIN_CHAIN_SECONDS
            and (feasible is None or options.restarts is None)
        )
        if self._chain_search is not None and fits_chain_kernel and chain_result is None:
            random_key = 0.0 if rng is None else float(rng.integers(1 << 31))
            X, has_seed, restarts = (
                self._chain_search.chain.target(self._objective_relations[0]),
                q0 is not None,
                options.restarts,
            )
            if X is not None and restarts is not None and options.max_seconds < math.inf:
                deadline = start_time + options.max_seconds - MIN_CHAIN_SECONDS / 2
                chain_result = self._chain_search.search_until(deadline, X, q, has_seed, random_key, restarts)
            elif X is not None:
                chain_result = self._chain_search.search(X, q, has_seed, random_key, restarts)
        if chain_result is not None:
            if chain_result.is_solved and (feasible is None or bool(feasible(chain_result.q.copy()))):
                report = chain_kernel_report(
                    chain_result.code, len(self._problem.subproblems[0].packed.tables["report"])
                )
                return Solution(
                    self, objectives, chain_result.q, (report,), time.perf_counter() - start_time, self._bounds
                )
            if chain_result.is_solved:  # solved, but `feasible` rejects the solution
                chain_result = None
            else:  # not solved: descents to the closest pose, without restarts
                options = replace(options, restarts=0)
                q = chain_result.q if q0 is None else q
        monitor = Monitor(start_time + options.max_seconds, history, callback)
        request = SubproblemRequest(
            mechanism, method, options, (lower, upper), locked_dofs, rng, feasible, monitor, is_step
        )
        reports: list[Array] = []
        start_times: list[float] = []
        is_any_rejected = False
        try:
            for problem, relations in zip(self._problems, self._block_relations, strict=True):
                start_times.append(time.perf_counter())
                problem.set_request(objectives, relations, request.bounds, rng)
                self._write_bounds(problem.subproblem, lower, upper)
                problem.subproblem.packed.tables["bound_state"][:] = np.where(
                    problem.subproblem.columns_of_dofs(locked_dofs), LOCKED, 0
                )
                q, report, is_rejected = self._search(request, problem, q)
                is_any_rejected |= is_rejected
                if chain_result is not None:
                    max_cost = MAX_COST_RATIO * goal_cost(report)
                    if q0 is not None and report[SUCCESS] != 1.0 and chain_result.cost < max_cost:
                        chain_q, chain_report, _ = self._search(request, problem, chain_result.q)
                        if chain_report[SUCCESS] == 1.0 or goal_cost(chain_report) < max_cost:
                            q, report = chain_q, chain_report
                    report[ATTEMPTS_OUT] = chain_result.attempts
                    report[ITERATIONS_OUT] += chain_result.iterations
                reports.append(report)
        finally:
            self._targets_changed = True
            self._reset_tables()
        if self._moves_joints:
            mechanism.q = q
            self._edit_count = Frame.edit_count if mechanism.revision == self._revision else -1
        subproblem_seconds = tuple(np.maximum(0.0, np.diff([*start_times, time.perf_counter()])).tolist())
        return Solution(
            self, objectives, q, tuple(reports), time.perf_counter() - start_time, (lower, upper),
            None if monitor.history is None else np.array(monitor.history), is_any_rejected, subproblem_seconds,
        )  # fmt: skip

    def _objectives_with_targets(self, targets: Targets | None) -> tuple[Objective, ...]:
        """Return the objectives with the targets of a call."""
        return with_targets(self._objectives, targets)

    def _solve_nearest(
        self,
        targets: Targets | None,
        q0: ArrayLike | None,
        lock: DofNames | str | None,
        limits: Mapping[str, ArrayLike] | None,
        rng: np.random.Generator | None,
        feasible: Callable[[Array], bool] | None,
        history: bool,
        callback: Callback | None,
        option_changes: dict[str, Any],
    ) -> Solution:
        """Return the feasible solution nearest to q0; if there is none, the result of a solve from q0."""
        start_time = time.perf_counter()
        checked_rng = None if rng is None else as_rng(rng)
        with self._exclusive(), search_context(self, targets, q0, lock, limits, self._descent_and_cache) as context:
            if feasible is None:
                nearest_q = nearest_solution(context, rng=checked_rng)
            else:
                solutions = all_solutions(context, rng=checked_rng)
                nearest_q = next((q for q in solutions.q if feasible(q.copy())), None)
        if nearest_q is not None:
            q0, option_changes = nearest_q, {**option_changes, "restarts": 0}
        with self._exclusive():
            solution = self._solve(targets, q0, lock, limits, rng, feasible, history, callback, option_changes)
        solution.seconds = seconds_since(start_time)
        return solution

    def _descent_and_cache(self) -> tuple[DescentFunction | None, dict[str, Any]]:
        """Return the descent function of the chain for the present targets (or None), and the cache of the problem."""
        cache = self._problems[0].cache if self._problems else {}
        chain_search = self._chain_search
        X = None if chain_search is None else chain_search.chain.target(self._objective_relations[0])
        if chain_search is None or X is None:
            return None, cache
        return lambda starts: chain_search.solve_from_starts(X, starts)[:2], cache

    def _search(self, request: SubproblemRequest, problem: LeastSquaresProblem, q: Array) -> tuple[Array, Array, bool]:
        """Search with restarts; return q, the kernel report, and whether `feasible` rejected every solution."""
        if not isinstance(request.method, LevenbergMarquardt) or request.feasible is not None:
            return restart_in_python(request, problem, q)
        kernel_q, kernel_report = restart_in_kernel(request, request.method, problem, q)
        is_final = (
            kernel_report[SUCCESS] == 1.0 or request.locked_dofs.any() or request.is_step or request.monitor.is_over()
        )
        if self._fallback_method is not None and not is_final:
            # a single attempt: the solutions in closed form are the same for every start
            fallback_request = replace(
                request, method=self._fallback_method, options=replace(request.options, restarts=0)
            )
            fallback_q, fallback_report, _ = restart_in_python(fallback_request, problem, q)
            if fallback_report[SUCCESS] == 1.0:
                fallback_report[ITERATIONS_OUT] += kernel_report[ITERATIONS_OUT]
                return fallback_q, fallback_report, False
        return kernel_q, kernel_report, False
