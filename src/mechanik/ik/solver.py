"""The one door: a mechanism, what is asked of it, and a method; prepared once, called often."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from mechanik import kernels
from mechanik.batch import Asked, BatchResult, Progress, run_batch
from mechanik.errors import ObjectiveError, Refused, ShapeError, WrongKind
from mechanik.ik.batches import engine_of
from mechanik.ik.short_way import Quick
from mechanik.kernels.problem import LOCKED
from mechanik.kernels.solver_state import ATTEMPTS_OUT, ITERATIONS_OUT, SUCCESS
from mechanik.mechanism import Frame, Mechanism
from mechanik.mechanism.door import as_number
from mechanik.objectives import Objective
from mechanik.search.chain_search import Tried
from mechanik.solvers.attempts import Call, search_compiled, search_in_python
from mechanik.solvers.freedoms import Names, as_bounds, as_mask
from mechanik.solvers.levenberg_marquardt import LevenbergMarquardt
from mechanik.solvers.method import Method
from mechanik.solvers.methods import make_method, option_names
from mechanik.solvers.new_targets import Targets, aimed
from mechanik.solvers.options import check_names
from mechanik.solvers.problem import Problem
from mechanik.solvers.solution import Solution, chain_report
from mechanik.solvers.watch import Callback, Watch
from mechanik.spatial.array import Array, ArrayLike


class Solver(Quick):
    """Solves for a mechanism's configuration: prepared once, called often.

    With a mechanism, it never moves it: `solve` returns a `Solution`, and `mechanism.apply(solution)` moves it.
    With the roots of a graph (frames), the joints hold their new values after `solve`.

    Args:
        mechanism: or the roots of a graph of frames.
        goals: objectives. None: what the graph itself asks for: its goals, the targets and the rest poses of its
            joints.
        solver: the method, by name (`mk.METHODS` has all of them), or as an object; "auto" chooses by what is asked.
        active: joints (`elbow`) or freedoms (`base.X`) that may move; None: all that can help.
        lock: joints or freedoms that may not move.
        limits: by joint or freedom, (lower, upper) in place of the mechanism's.
        weights: by the name of an objective, a factor on its weight; by joint or freedom, how reluctantly it moves.
        rest: where to go as far as nothing else is asked: q, or values by name, or True: the joints' own rest poses.
        options: see `Options`, and the method's own; each may be given to a single call as well.
    """

    def __init__(
        self,
        mechanism: Mechanism | Frame | Iterable[Frame],
        goals: Objective | Iterable[Objective] | None = None,
        *,
        solver: str | Method = "lm",
        active: Names | str | None = None,
        lock: Names | str | None = None,
        limits: Mapping[str, ArrayLike] | None = None,
        weights: Mapping[str, float] | None = None,
        rest: ArrayLike | Mapping[str, ArrayLike] | bool | None = None,
        **options: Any,
    ) -> None:
        self._one_at_a_time, self._thread = threading.Lock(), 0
        super().__init__(mechanism, goals, solver, active, lock, limits, weights, rest, options)
        for name in ("descent",) if isinstance(self.method, LevenbergMarquardt) else ("descent", "look"):
            kernels.load(name)  # now, so that the first solve is as fast as any

    def __repr__(self) -> str:
        asked = f"{len(self._objectives)} objectives in {len(self._program.parts)} chains"
        return f"<solver of {self.mechanism!r} by {self.method.title}: {asked}>"

    # ---- solving ----------------------------------------------------------------------------

    def solve(
        self,
        targets: Targets | None = None,
        q0: ArrayLike | None = None,
        *,
        lock: Names | str | None = None,
        limits: Mapping[str, ArrayLike] | None = None,
        rng: np.random.Generator | None = None,
        feasible: Callable[[Array], bool] | None = None,
        history: bool = False,
        callback: Callback | None = None,
        **options: Any,
    ) -> Solution:
        """
        Args:
            targets: new targets for this call: one for the only objective, or by objective's name, or as many as
                there are objectives, None where one stays. Whatever the objective's `at` takes.
            q0: where to start, (nq,), and what to stay near. If not given: a serial chain with one pose-like goal
                starts
                from its seed table, which is fastest and may end anywhere; all else from where the mechanism stands.
            lock, limits: for this call, besides those of the solver.
            rng: for all that is random; without it restarts follow Halton's sequence, the same each time.
            feasible: called with a solution's q; if it says no, the search goes on from the next start.
            history: whether to keep the error after each iteration.
            callback: called with an `Iterate` after each iteration; True stops the solve.
            options: any of `Options` and of the method's own, for this call.
        """
        tried: Tried | None = None
        if (
            self._chain is not None
            and Frame.edits == self._edits
            and not (options or history or self._thread)
            and lock is limits is feasible is callback is rng is None
        ):
            answer = self._by_chain(targets, q0)
            if isinstance(answer, Solution):
                return answer
            tried = answer
        elif (
            self._shortcut is not None
            and Frame.edits == self._edits
            and type(q0) is np.ndarray
            and q0.shape == self._shape
            and not history
            and lock is limits is feasible is callback is None
            and self._thread != threading.get_ident()
        ):
            begun = time.perf_counter()
            with self._one_at_a_time:
                q = self._short_way(targets, q0, rng, options, begun)
                if q is not None:
                    self._is_aimed = True
                    asked = targets if isinstance(targets, float) else targets.copy()
                    return Solution(self, asked, q, (self._out.copy(),), time.perf_counter() - begun, self._bounds)
        check_names(options, option_names(type(self.method)))
        with self._alone():
            return self._solve(targets, q0, lock, limits, rng, feasible, history, callback, options, tried=tried)

    def solve_nearby(
        self, max_deviation: float, targets: Targets | None = None, q0: ArrayLike | None = None, **options: Any
    ) -> Solution:
        """As `solve`, with no freedom farther than `max_deviation` (m and rad) from q0; restarts stay as near.

        Balls are not held back, since they have no limits.
        """
        reach = as_number(max_deviation, "max_deviation")
        if reach < 0:
            raise ShapeError(f"max_deviation cannot be below 0, but is {reach:g}")
        check_names(options, option_names(type(self.method)))
        with self._alone():
            return self._solve(targets, q0, None, None, None, None, False, None, options, nearby=reach)

    def step(
        self,
        targets: Targets | None = None,
        q0: ArrayLike | None = None,
        *,
        rng: np.random.Generator | None = None,
        **options: Any,
    ) -> Solution:
        """One iteration from q0, for animation and teaching, whether it makes things better or not.

        To see all of them, with what a method remembers from one to the next, give `solve` a callback.
        """
        check_names(options, option_names(type(self.method)))
        once = {**options, "max_iterations": 1, "restarts": 0}
        if isinstance(self.method, LevenbergMarquardt):
            once["kick"] = 0.0
        with self._alone():
            return self._solve(targets, q0, None, None, rng, None, False, None, once, is_step=True)

    def solve_batch(
        self,
        targets: Any = None,
        q0: ArrayLike | None = None,
        *,
        threads: int | None = None,
        progress: bool | Progress | None = None,
        out: str | os.PathLike[str] | BatchResult | None = None,
        rng: np.random.Generator | None = None,
        chunk: int | None = None,
    ) -> BatchResult:
        """Many targets, each by itself: neither threads nor the number of rows at a time changes a bit of an answer.

        Args:
            targets: for one objective (N, 4, 4), (N, 7) as position and wxyz, (N, 3), or N of what its `at` takes; for
                several, one of those each, by name or in order, None where one stays. Files may be memory-mapped. None:
                the targets stay, and each start is a row. A row that can be no target is BAD_TARGET.
            q0: (nq,) for all, (N, nq), or None as in `solve`; a row that is no configuration is BAD_START.
            threads: as many as there are cores if not given (1 for methods written in Python).
            progress: True: a line on stderr; or called with the rows done and all rows.
            out: a folder for the result, or an unfinished result to go on with; rows that are done stay as they are.
            rng: for all that is random; a result that is gone on with keeps its own.
            chunk: rows at a time.
        Raises:
            Interrupted: at Ctrl-C; its `result` holds what is done.
        """
        self._refresh()
        if threads is None and not isinstance(self.method, LevenbergMarquardt):
            threads = 1
        settings = self.method, self.options, self._is_auto, self._bounds, self._settings
        asked = Asked(self.mechanism, self.objectives, settings)
        return run_batch(
            asked, engine_of(self, q0), targets, q0, threads=threads, progress=progress, out=out, rng=rng, chunk=chunk
        )

    # ---- inside -----------------------------------------------------------------------------

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
        begun = time.perf_counter()
        if rng is not None and not isinstance(rng, np.random.Generator):
            raise WrongKind(f"rng must be a generator, such as numpy.random.default_rng(0), not {rng!r}")
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
        objectives = aimed(self._objectives, targets)
        self._rewrite(objectives, q, options.rest_factor)
        lower, upper = self._bounds if limits is None else as_bounds(mechanism, {**(self._limits or {}), **limits})
        if nearby is not None:
            inside = np.clip(q, lower, upper)
            lower, upper = np.maximum(lower, inside - nearby), np.minimum(upper, inside + nearby)
            for k in mechanism.space.balls_q:  # whose four numbers have no limits
                lower[k : k + 4], upper[k : k + 4] = -np.inf, np.inf
        plain = not (changes.keys() - {"restarts"} or history or is_step or options.restarts == 0)
        plain = plain and lock is limits is feasible is callback is nearby is None
        if self._chain is not None and plain and tried is None:
            key = 0.0 if rng is None else float(rng.integers(1 << 31))
            X = self._chain.chain.target(self._rows[0])
            tried = None if X is None else self._chain.search(X, q, q0 is not None, key, changes.get("restarts"))
        if tried is not None:
            if tried.is_solved:
                out = chain_report(tried.code, len(self._program.parts[0].packed.at["out"]))
                return Solution(self, objectives, tried.q, (out,), time.perf_counter() - begun, self._bounds)
            q, options = tried.q, replace(options, restarts=0)  # on from there, to the closest pose
        locked = np.zeros(mechanism.nv, dtype=np.bool_) if lock is None else as_mask(mechanism, lock, False)
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
                    out[ATTEMPTS_OUT], out[ITERATIONS_OUT] = tried.attempts, out[ITERATIONS_OUT] + tried.iterations
                outs.append(out)
        finally:
            self._is_aimed = True
            self._set_up()
        if self._moves_joints:
            mechanism.q = q
            self._edits = Frame.edits if mechanism.revision == self._revision else -1
        each = tuple(np.diff([*spent, time.perf_counter()]).tolist())
        return Solution(
            self, objectives, q, tuple(outs), time.perf_counter() - begun, (lower, upper),
            None if watch.history is None else np.array(watch.history), refused, each,
        )  # fmt: skip

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
