"""The one door: a mechanism, what is asked of it, and a method; prepared once, called often."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from mechanik import kernels
from mechanik.errors import ObjectiveError, Refused, ShapeError, WrongKind
from mechanik.kernels.problem import AT_DATA, BLOCK_FLOATS, FRAME_A, LOCKED, TARGET
from mechanik.kernels.solver_state import DONE, ITERATIONS_OUT, SUCCESS
from mechanik.mechanism import Frame, Mechanism
from mechanik.mechanism.door import as_number
from mechanik.objectives import Objective
from mechanik.solvers.attempts import Call, search_compiled, search_in_python
from mechanik.solvers.choice import choose
from mechanik.solvers.freedoms import Names, as_bounds, as_mask
from mechanik.solvers.iterate import attempt
from mechanik.solvers.levenberg_marquardt import LevenbergMarquardt
from mechanik.solvers.method import Method
from mechanik.solvers.methods import make_method, option_names
from mechanik.solvers.new_targets import Targets, aimed
from mechanik.solvers.options import check_names
from mechanik.solvers.prepared import Prepared
from mechanik.solvers.problem import Problem
from mechanik.solvers.running import descent
from mechanik.solvers.shortcut import find_shortcut, is_pose, put_pose, with_ends
from mechanik.solvers.solution import Solution
from mechanik.solvers.starts import halton_starts
from mechanik.solvers.watch import Callback, Watch
from mechanik.spatial.array import Array, ArrayLike

NEARLY_NO_TURN = 1e-6
"""Of the square of a ball's four numbers: what is less has to be looked at closely."""


class Solver(Prepared):
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
            q0: where to start, (nq,); the mechanism's present configuration if not given.
            lock, limits: for this call, besides those of the solver.
            rng: for all that is random; without it restarts follow Halton's sequence, the same each time.
            feasible: called with a solution's q; if it says no, the search goes on from the next start.
            history: whether to keep the error after each iteration.
            callback: called with an `Iterate` after each iteration; True stops the solve.
            options: any of `Options` and of the method's own, for this call.
        """
        if (
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
            return self._solve(targets, q0, lock, limits, rng, feasible, history, callback, options)

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

    def _short_way(
        self, targets: Targets, q0: Array, rng: np.random.Generator | None, options: dict[str, Any], begun: float
    ) -> Array | None:
        """Straight to the kernel, or to the method's loop; None if something has to be looked at closely first."""
        assert self._shortcut is not None
        for k in self._balls:
            if not q0[k : k + 4] @ q0[k : k + 4] > NEARLY_NO_TURN:
                return None
        target = self._shortcut(targets, q0)
        if target is None:
            return None
        if not self._is_compiled:
            return self._short_attempt(target, q0, rng, options, begun)
        if options or rng is not None:
            return None
        q = np.empty(self._shape)
        starts = self._starts if self._kept_starts is None else self._kept_starts
        try:
            code = descent.search(self._ints, self._floats, target, q0, starts, q)
        except TypeError:  # not a contiguous array of float64
            return None
        return q if code == DONE and (self._second is None or self._out[SUCCESS] == 1.0) else None

    def _short_attempt(
        self, target: Array, q0: Array, rng: np.random.Generator | None, options: dict[str, Any], begun: float
    ) -> Array | None:
        """One attempt of a method, whose target is checked and put in here."""
        deadline = math.inf
        if options:
            seconds = options.get("max_seconds") if len(options) == 1 else None
            if type(seconds) is not float or not seconds >= 0.0:
                return None
            deadline = begun + seconds
        if q0.dtype != np.float64 or target.dtype != np.float64 or not math.isfinite(float(q0.sum())):
            return None
        if not (rng is None or isinstance(rng, np.random.Generator)):
            return None
        if len(target) == 4:
            if not is_pose(target):
                return None
            at = self._floats[self._frame_a :]
            at[:9], at[9:12] = target[:3, :3].ravel(), target[:3, 3]
        problem = self._problems[0]
        problem.ask(self._objectives, problem.relations, self._bounds, rng)
        return attempt(problem, self.method, q0, self.options, Watch(deadline))

    def _compiled(self) -> None:
        """The short way to the kernel, if there is one; what the method cannot do is refused here."""
        self._shape, self._balls = (self.mechanism.nq,), tuple(self.mechanism.space.balls_q)
        self._tables: dict[int, Array] = {}
        self._shortcut = None
        self._second: Method | None = None
        self._problems = [Problem(self.mechanism, self._program, part) for part in self._program.parts]
        for problem, relations in zip(self._problems, self._blocks, strict=True):
            problem.ask(self._objectives, relations, self._bounds, None)
        if self._is_auto:
            self._second, self.why = choose(self._problems)
        elif not isinstance(self.method, LevenbergMarquardt):
            for problem in self._problems:
                self.method.check(problem)
        quick = isinstance(self.method, LevenbergMarquardt) or self.options.restarts == 0
        if quick and not self._moves_joints and self.options.max_seconds == np.inf:
            self._shortcut = find_shortcut(self._program, self._objectives, self._rows, *self._bounds)
        if self._shortcut is not None:
            packed = self._program.parts[0].packed
            self._ints, self._floats, self._out = packed.ints, packed.floats, packed.at["out"]
            self._kept_starts: Array | None = None
            self._is_compiled = isinstance(self.method, LevenbergMarquardt)
            self._frame_a = int(packed.ints[AT_DATA]) + BLOCK_FLOATS * int(packed.ints[TARGET]) + FRAME_A

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

    @property
    def _starts(self) -> Array:
        """Where the short way starts again; made at its first use, since the poses there need a kernel of their own."""
        if self._kept_starts is None:
            starts = self._table(self.options.restarts)
            ranked = self._shortcut is put_pose and len(starts) > 0
            self._kept_starts = with_ends(self.mechanism, starts, self._rows[0][0]) if ranked else starts
        return self._kept_starts

    def _table(self, count: int) -> Array:
        if count not in self._tables:
            space = replace(self.mechanism.space, lower=self._bounds[0], upper=self._bounds[1])
            self._tables[count] = np.ascontiguousarray(halton_starts(space, count))
        return self._tables[count]
