"""The long way from what a call asks for to its answer: everything is looked at, and everything can be asked."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from mechanik.errors import ObjectiveError, Refused, WrongKind
from mechanik.ik.short_way import SHORTEST, Quick
from mechanik.kernels.problem import LOCKED
from mechanik.kernels.solver_state import ATTEMPTS_OUT, ITERATIONS_OUT, SUCCESS
from mechanik.mechanism import Frame
from mechanik.objectives import Objective
from mechanik.objectives.door import as_generator
from mechanik.search.all_solutions import all_solutions
from mechanik.search.chain_search import CLEARLY, Tried
from mechanik.search.descents import Attempts
from mechanik.search.nearest_of_all import nearest_of_all
from mechanik.search.question import asked
from mechanik.solvers.attempts import Call, search_compiled, search_in_python
from mechanik.solvers.freedoms import Names, as_bounds, as_mask
from mechanik.solvers.levenberg_marquardt import LevenbergMarquardt
from mechanik.solvers.methods import make_method
from mechanik.solvers.new_targets import Targets, aimed
from mechanik.solvers.problem import Problem
from mechanik.solvers.solution import Solution, chain_report, goal_cost
from mechanik.solvers.watch import Callback, Watch
from mechanik.spatial.array import Array, ArrayLike
from mechanik.stopwatch import seconds_since


class Careful(Quick):
    """A solver's long way, one call at a time."""

    def __init__(self, *given: Any) -> None:
        self._thread = 0
        super().__init__(*given)

    @contextmanager
    def _alone(self) -> Generator[None]:
        """One call at a time, since all use the same tables: other threads wait, a call within a call is refused."""
        if self._thread == threading.get_ident():
            raise Refused("a solver cannot be called from within its own call, as by its callback; make another one")
        with self._one_at_a_time:
            self._thread = threading.get_ident()
            try:
                yield
            finally:
                self._thread = 0

    def _solve(
        self,
        targets: Targets | None,
        q0: ArrayLike | None,
        lock: Names | str | None,
        limits: Mapping[str, ArrayLike] | None,
        rng: np.random.Generator | None,
        feasible: Callable[[Array], bool] | None,
        history: bool,
        callback: Callback | None,
        changes: dict[str, Any],
        nearby: float | None = None,
        is_step: bool = False,
        tried: Tried | None = None,
    ) -> Solution:
        begun = time.perf_counter() - (0.0 if tried is None else tried.seconds)
        if rng is not None:
            as_generator(rng)
        if feasible is not None and not callable(feasible):
            raise WrongKind(f"feasible must be a function of q, not {feasible!r}")
        method, options = self.method, self.options
        if changes:
            method, common = make_method(method, changes)
            options, own = replace(options, **common), self.options
            if (options.position_weight, options.rotation_weight) != (own.position_weight, own.rotation_weight):
                raise ObjectiveError("position_weight and rotation_weight belong to the solver; make another one")
        self._refresh()
        mechanism = self.mechanism
        q = np.array(mechanism.q if q0 is None else mechanism._one(q0))
        for k in mechanism.space.balls_q:
            q[k : k + 4] /= np.linalg.norm(q[k : k + 4])
        locked = np.zeros(mechanism.nv, dtype=np.bool_) if lock is None else as_mask(mechanism, lock, False)
        if any(locked[v : v + 3].any() for part in self._program.parts for v in part.read_off):
            self._may_read_off = False  # from now on they are columns, which can be held
            self._compile(self._objectives)
        objectives = self._aimed(targets)
        self._rewrite(objectives, q, options.rest_factor)
        lower, upper = self._bounds if limits is None else as_bounds(mechanism, {**(self._limits or {}), **limits})
        if nearby is not None:
            inside = np.clip(q, lower, upper)
            lower, upper = np.maximum(lower, inside - nearby), np.minimum(upper, inside + nearby)
            for k in mechanism.space.balls_q:  # whose four numbers have no limits
                lower[k : k + 4], upper[k : k + 4] = -np.inf, np.inf
        plain = not (changes.keys() - {"restarts", "max_seconds"} or history or is_step or options.restarts == 0)
        plain = plain and lock is limits is callback is nearby is None and options.max_seconds >= SHORTEST
        plain = plain and (feasible is None or options.restarts is None)
        if self._chain is not None and plain and tried is None:
            key = 0.0 if rng is None else float(rng.integers(1 << 31))
            X, seeded, restarts = self._chain.chain.target(self._rows[0]), q0 is not None, options.restarts
            if X is not None and restarts is not None and options.max_seconds < math.inf:
                deadline = begun + options.max_seconds - SHORTEST / 2
                tried = self._chain.search_until(deadline, X, q, seeded, key, restarts)
            elif X is not None:
                tried = self._chain.search(X, q, seeded, key, restarts)
        if tried is not None:
            if tried.is_solved and (feasible is None or bool(feasible(tried.q.copy()))):
                out = chain_report(tried.code, len(self._program.parts[0].packed.at["out"]))
                return Solution(self, objectives, tried.q, (out,), time.perf_counter() - begun, self._bounds)
            if tried.is_solved:  # but the caller does not like it
                tried = None
            else:  # on from there, to the closest pose
                options = replace(options, restarts=0)
                q = tried.q if q0 is None else q
        watch = Watch(begun + options.max_seconds, history, callback)
        call = Call(mechanism, method, options, (lower, upper), locked, rng, feasible, watch, is_step)
        outs: list[Array] = []
        spent: list[float] = []
        refused = False
        try:
            for problem, relations in zip(self._problems, self._blocks, strict=True):
                spent.append(time.perf_counter())
                problem.ask(objectives, relations, call.bounds, rng)
                self._bound(problem.part, lower, upper)
                problem.part.packed.at["ban"][:] = np.where(problem.part.moves(locked), LOCKED, 0)
                q, out, disliked = self._search(call, problem, q)
                refused |= disliked
                if tried is not None:
                    if q0 is not None and out[SUCCESS] != 1.0 and tried.cost < CLEARLY * goal_cost(out):
                        other, its, _ = self._search(call, problem, tried.q)
                        if its[SUCCESS] == 1.0 or goal_cost(its) < CLEARLY * goal_cost(out):
                            q, out = other, its
                    out[ATTEMPTS_OUT], out[ITERATIONS_OUT] = tried.attempts, out[ITERATIONS_OUT] + tried.iterations
                outs.append(out)
        finally:
            self._is_aimed = True
            self._set_up()
        if self._moves_joints:
            mechanism.q = q
            self._edits = Frame.edits if mechanism.revision == self._revision else -1
        each = tuple(np.maximum(0.0, np.diff([*spent, time.perf_counter()])).tolist())
        return Solution(
            self, objectives, q, tuple(outs), time.perf_counter() - begun, (lower, upper),
            None if watch.history is None else np.array(watch.history), refused, each,
        )  # fmt: skip

    def _aimed(self, targets: Targets | None) -> tuple[Objective, ...]:
        """What is asked for, with new targets."""
        return aimed(self._objectives, targets)

    def _nearest(
        self,
        targets: Targets | None,
        q0: ArrayLike | None,
        lock: Names | str | None,
        limits: Mapping[str, ArrayLike] | None,
        rng: np.random.Generator | None,
        feasible: Callable[[Array], bool] | None,
        history: bool,
        callback: Callback | None,
        changes: dict[str, Any],
    ) -> Solution:
        """The nearest of all solutions, or of those that the caller likes; without one, as far as it comes."""
        begun = time.perf_counter()
        drawn = None if rng is None else as_generator(rng)
        with self._alone(), asked(self, targets, q0, lock, limits, self._aids) as question:
            if feasible is None:
                found = nearest_of_all(question, rng=drawn)
            else:
                every = all_solutions(question, rng=drawn)
                found = next((q for q in every.q if feasible(q.copy())), None)
        if found is not None:
            q0, changes = found, {**changes, "restarts": 0}
        with self._alone():
            solution = self._solve(targets, q0, lock, limits, rng, feasible, history, callback, changes)
        solution.seconds = seconds_since(begun)
        return solution

    def _aids(self) -> tuple[Attempts | None, dict[str, Any]]:
        """What helps to look for all solutions: quick descents within the solver's own limits, and what is kept."""
        kept = self._problems[0].kept if self._problems else {}
        chain = self._chain
        X = None if chain is None else chain.chain.target(self._rows[0])
        if chain is None or X is None:
            return None, kept
        return lambda starts: chain.descend(X, starts)[:2], kept

    def _search(self, call: Call, problem: Problem, q: Array) -> tuple[Array, Array, bool]:
        """q, the kernel's report, and whether the caller refused what was found."""
        if not isinstance(call.method, LevenbergMarquardt) or call.feasible is not None:
            return search_in_python(call, problem, q)
        found, out = search_compiled(call, call.method, problem, q)
        enough = out[SUCCESS] == 1.0 or call.locked.any() or call.is_step or call.watch.is_over()
        if self._second is not None and not enough:
            # once: whether there is a branch does not depend on the start
            by_formula = replace(call, method=self._second, options=replace(call.options, restarts=0))
            exact, report, _ = search_in_python(by_formula, problem, q)
            if report[SUCCESS] == 1.0:
                report[ITERATIONS_OUT] += out[ITERATIONS_OUT]
                return exact, report, False
        return found, out, False
