"""General solve path: validates all arguments, updates all targets, and supports every option."""

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
from mechanik.objectives.target_validation import as_rng
from mechanik.processor_clock import seconds_since
from mechanik.solver.dof_selection import DofNames, as_bounds, as_dof_mask
from mechanik.solver.fast_path import MIN_CHAIN_SECONDS, FastPath
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.methods.levenberg_marquardt import LevenbergMarquardt
from mechanik.solver.methods.method_registry import make_method
from mechanik.solver.monitor import Callback, Monitor
from mechanik.solver.restarts import AttemptRequest, restart_in_kernel, restart_in_python
from mechanik.solver.search.all_solutions import all_solutions, nearest_solution
from mechanik.solver.search.chain_search import MIN_IMPROVEMENT, ChainResult
from mechanik.solver.search.search_context import DescentFunction, search_context
from mechanik.solver.solution import Solution, chain_kernel_report, goal_cost
from mechanik.solver.target_writer import Targets, with_targets
from mechanik.spatial.array import Array, ArrayLike


class GeneralPath(FastPath):
    """Solver that supports every argument of a call; calls of several threads run one after the other."""

    def __init__(self, *given: Any) -> None:
        self._owner_thread = 0
        super().__init__(*given)

    @contextmanager
    def _exclusive(self) -> Generator[None]:
        """Hold the lock of the tables: other threads wait, and a nested call raises `InvalidOperation`."""
        if self._owner_thread == threading.get_ident():
            raise InvalidOperation(
                "a solver cannot be called from within its own call, as by its callback; make another one"
            )
        with self._lock_tables:
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
        changes: dict[str, Any],
        nearby: float | None = None,
        is_step: bool = False,
        tried: ChainResult | None = None,
    ) -> Solution:
        begun = time.perf_counter() - (0.0 if tried is None else tried.seconds)
        if rng is not None:
            as_rng(rng)
        if feasible is not None and not callable(feasible):
            raise InvalidArgument(f"feasible must be a function of q, not {feasible!r}")
        method, options = self.method, self.options
        if changes:
            method, common = make_method(method, changes)
            options, own = replace(options, **common), self.options
            if (options.position_weight, options.rotation_weight) != (own.position_weight, own.rotation_weight):
                raise ObjectiveError("position_weight and rotation_weight belong to the solver; make another one")
        self._recompile_if_stale()
        mechanism = self.mechanism
        q = np.array(mechanism.q if q0 is None else mechanism._single_q(q0))
        for k in mechanism.space.quaternions_q:
            q[k : k + 4] /= np.linalg.norm(q[k : k + 4])
        locked = np.zeros(mechanism.nv, dtype=np.bool_) if lock is None else as_dof_mask(mechanism, lock, False)
        if any(locked[v : v + 3].any() for part in self._problem.subproblems for v in part.passive_spherical_v):
            self._may_eliminate_spherical = False  # from now on they are columns, which can be locked
            self._compile(self._objectives)
        objectives = self._objectives_with_targets(targets)
        self._update_targets(objectives, q, options.rest_factor)
        lower, upper = self._bounds if limits is None else as_bounds(mechanism, {**(self._limits or {}), **limits})
        if nearby is not None:
            inside = np.clip(q, lower, upper)
            lower, upper = np.maximum(lower, inside - nearby), np.minimum(upper, inside + nearby)
            for k in mechanism.space.quaternions_q:  # quaternion components have no limits
                lower[k : k + 4], upper[k : k + 4] = -np.inf, np.inf
        plain = not (changes.keys() - {"restarts", "max_seconds"} or history or is_step or options.restarts == 0)
        plain = plain and lock is limits is callback is nearby is None and options.max_seconds >= MIN_CHAIN_SECONDS
        plain = plain and (feasible is None or options.restarts is None)
        if self._chain_search is not None and plain and tried is None:
            key = 0.0 if rng is None else float(rng.integers(1 << 31))
            X, seeded, restarts = (
                self._chain_search.chain.target(self._objective_relations[0]),
                q0 is not None,
                options.restarts,
            )
            if X is not None and restarts is not None and options.max_seconds < math.inf:
                deadline = begun + options.max_seconds - MIN_CHAIN_SECONDS / 2
                tried = self._chain_search.search_until(deadline, X, q, seeded, key, restarts)
            elif X is not None:
                tried = self._chain_search.search(X, q, seeded, key, restarts)
        if tried is not None:
            if tried.is_solved and (feasible is None or bool(feasible(tried.q.copy()))):
                out = chain_kernel_report(tried.code, len(self._problem.subproblems[0].packed.tables["out"]))
                return Solution(self, objectives, tried.q, (out,), time.perf_counter() - begun, self._bounds)
            if tried.is_solved:  # but `feasible` rejects it
                tried = None
            else:  # continue from there to the closest pose
                options = replace(options, restarts=0)
                q = tried.q if q0 is None else q
        watch = Monitor(begun + options.max_seconds, history, callback)
        call = AttemptRequest(mechanism, method, options, (lower, upper), locked, rng, feasible, watch, is_step)
        outs: list[Array] = []
        spent: list[float] = []
        refused = False
        try:
            for problem, relations in zip(self._problems, self._block_relations, strict=True):
                spent.append(time.perf_counter())
                problem.set_request(objectives, relations, call.bounds, rng)
                self._write_bounds(problem.subproblem, lower, upper)
                problem.subproblem.packed.tables["ban"][:] = np.where(
                    problem.subproblem.columns_moving(locked), LOCKED, 0
                )
                q, out, disliked = self._search(call, problem, q)
                refused |= disliked
                if tried is not None:
                    if q0 is not None and out[SUCCESS] != 1.0 and tried.cost < MIN_IMPROVEMENT * goal_cost(out):
                        other, its, _ = self._search(call, problem, tried.q)
                        if its[SUCCESS] == 1.0 or goal_cost(its) < MIN_IMPROVEMENT * goal_cost(out):
                            q, out = other, its
                    out[ATTEMPTS_OUT], out[ITERATIONS_OUT] = tried.attempts, out[ITERATIONS_OUT] + tried.iterations
                outs.append(out)
        finally:
            self._targets_changed = True
            self._reset_options()
        if self._moves_joints:
            mechanism.q = q
            self._edits = Frame.edit_count if mechanism.revision == self._revision else -1
        each = tuple(np.maximum(0.0, np.diff([*spent, time.perf_counter()])).tolist())
        return Solution(
            self, objectives, q, tuple(outs), time.perf_counter() - begun, (lower, upper),
            None if watch.history is None else np.array(watch.history), refused, each,
        )  # fmt: skip

    def _objectives_with_targets(self, targets: Targets | None) -> tuple[Objective, ...]:
        """Return the objectives with the targets of a call."""
        return with_targets(self._objectives, targets)

    def _nearest(
        self,
        targets: Targets | None,
        q0: ArrayLike | None,
        lock: DofNames | str | None,
        limits: Mapping[str, ArrayLike] | None,
        rng: np.random.Generator | None,
        feasible: Callable[[Array], bool] | None,
        history: bool,
        callback: Callback | None,
        changes: dict[str, Any],
    ) -> Solution:
        """Return the nearest feasible solution of all; if there is none, the result of a solve from q0."""
        begun = time.perf_counter()
        drawn = None if rng is None else as_rng(rng)
        with self._exclusive(), search_context(self, targets, q0, lock, limits, self._search_helpers) as question:
            if feasible is None:
                found = nearest_solution(question, rng=drawn)
            else:
                every = all_solutions(question, rng=drawn)
                found = next((q for q in every.q if feasible(q.copy())), None)
        if found is not None:
            q0, changes = found, {**changes, "restarts": 0}
        with self._exclusive():
            solution = self._solve(targets, q0, lock, limits, rng, feasible, history, callback, changes)
        solution.seconds = seconds_since(begun)
        return solution

    def _search_helpers(self) -> tuple[DescentFunction | None, dict[str, Any]]:
        """Return helpers for a search of all solutions: descents of the chain within the limits, and a cache."""
        kept = self._problems[0].cache if self._problems else {}
        chain = self._chain_search
        X = None if chain is None else chain.chain.target(self._objective_relations[0])
        if chain is None or X is None:
            return None, kept
        return lambda starts: chain.solve_from_starts(X, starts)[:2], kept

    def _search(self, call: AttemptRequest, problem: LeastSquaresProblem, q: Array) -> tuple[Array, Array, bool]:
        """Search with restarts; return q, the kernel report, and whether `feasible` rejected every solution."""
        if not isinstance(call.method, LevenbergMarquardt) or call.feasible is not None:
            return restart_in_python(call, problem, q)
        found, out = restart_in_kernel(call, call.method, problem, q)
        enough = out[SUCCESS] == 1.0 or call.locked.any() or call.is_step or call.monitor.is_over()
        if self._fallback_method is not None and not enough:
            # a single attempt: whether a closed-form branch exists does not depend on the start
            by_formula = replace(call, method=self._fallback_method, options=replace(call.options, restarts=0))
            exact, report, _ = restart_in_python(by_formula, problem, q)
            if report[SUCCESS] == 1.0:
                report[ITERATIONS_OUT] += out[ITERATIONS_OUT]
                return exact, report, False
        return found, out, False
