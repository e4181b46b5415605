"""The one door: a mechanism, what is asked of it, and a method; prepared once, called often."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from mechanik import kernels
from mechanik.batch import Asked, BatchResult, Progress, run_batch
from mechanik.errors import ShapeError
from mechanik.ik.batches import engine_of
from mechanik.ik.guard import Ask, Guard
from mechanik.ik.long_way import Careful
from mechanik.mechanism import Frame, Mechanism
from mechanik.mechanism.door import as_number
from mechanik.objectives import Objective
from mechanik.objectives.door import as_generator
from mechanik.search.all_solutions import SAMPLES, TRIES, all_solutions
from mechanik.search.chain_search import Tried
from mechanik.search.question import asked
from mechanik.search.solution_set import SolutionSet
from mechanik.solvers.freedoms import Names
from mechanik.solvers.keeping_off import Avoid, AvoidAs, check_alone, keeping_off
from mechanik.solvers.levenberg_marquardt import LevenbergMarquardt
from mechanik.solvers.method import Method
from mechanik.solvers.methods import option_names
from mechanik.solvers.new_targets import Targets
from mechanik.solvers.options import check_names
from mechanik.solvers.solution import Solution
from mechanik.solvers.status import Status
from mechanik.solvers.watch import Callback
from mechanik.spatial.array import Array, ArrayLike

FEW = (2, 3, 4, 6, 8, 12, 16, 32)
"""Iterations of one step that has to shut loops again."""
STILL = 1e-12
"""rad or m: what moves less stands still."""


class Solver(Careful):
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
        avoid: what must not be bumped into: "self" and obstacles, or a `Collider`, which may be shared and whose
            obstacles may be moved. What bumps is never a success. If what is found first bumps, a chain is asked for
            other answers; what is left, and all that may not leap (`restarts=0`), slides along what is in the way.
        clearance: m that everything keeps off.
        allow, forbid: as for `Collider`: pairs of names that may touch, and that are watched though they would not be.
        avoid_as: "limit": the clearance is kept whatever the goals say (methods other than "lm" know no levels, and
            weigh it). "cost": it is weighed against the goals, and success needs no more than that nothing bumps.
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
        avoid: Avoid | None = None,
        clearance: float = 0.0,
        allow: Iterable[tuple[str, str]] = (),
        forbid: Iterable[tuple[str, str]] = (),
        avoid_as: AvoidAs = "limit",
        **options: Any,
    ) -> None:
        allow, forbid = tuple(allow), tuple(forbid)
        check_alone(mechanism, avoid, clearance, allow, forbid)
        self._guard: Guard | None = None
        super().__init__(mechanism, goals, solver, active, lock, limits, weights, rest, options)
        for name in ("descent",) if isinstance(self.method, LevenbergMarquardt) else ("descent", "look"):
            kernels.load(name)  # now, so that the first solve is as fast as any
        if self._several is not None:
            kernels.load("put_targets")
        if avoid is not None:
            level = min((one.level for one in self._objectives if one.required), default=1)
            has_levels = isinstance(self.method, LevenbergMarquardt)
            keeping = keeping_off(self.mechanism, avoid, clearance, allow, forbid, avoid_as, level, has_levels)
            self._guard = Guard(self, keeping)

    def __repr__(self) -> str:
        asked = f"{len(self._objectives)} objectives in {len(self._program.parts)} chains"
        return f"<solver of {self.mechanism!r} by {self.method.title}: {asked}>"

    # ---- solving ----------------------------------------------------------------------------

    def solve(
        self,
        targets: Targets | None = None,
        q0: ArrayLike | None = None,
        *,
        nearest: bool = False,
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
                starts from its seed table, which is fastest and may end anywhere; all else where the mechanism stands.
            nearest: whether to look for all solutions and give the one nearest to q0, or to where the mechanism stands,
                of those that are feasible. Takes milliseconds, whatever `max_seconds` says.
            lock, limits: for this call, besides those of the solver.
            rng: for all that is random; without it restarts follow Halton's sequence, the same each time.
            feasible: called with a solution's q; if it says no, the search goes on from the next start.
            history: whether to keep the error after each iteration.
            callback: called with an `Iterate` after each iteration; True stops the solve.
            options: any of `Options` and of the method's own, for this call.
        """
        if self._guard is not None:
            ask = Ask(lock, limits, rng, feasible, history, callback, options)
            return self._guard.solve(targets, q0, nearest, ask)
        return self._unguarded(targets, q0, nearest, lock, limits, rng, feasible, history, callback, options)

    def _unguarded(
        self,
        targets: Targets | None,
        q0: ArrayLike | None,
        nearest: bool,
        lock: Names | str | None,
        limits: Mapping[str, ArrayLike] | None,
        rng: np.random.Generator | None,
        feasible: Callable[[Array], bool] | None,
        history: bool,
        callback: Callback | None,
        options: dict[str, Any],
    ) -> Solution:
        """As `solve`, whatever is in the way."""
        tried: Tried | None = None
        if (
            self._by_chain is not None
            and Frame.edits == self._edits
            and not (options or history or nearest or self._thread)
            and lock is limits is feasible is callback is rng is None
        ):
            answer = self._by_chain(targets, q0)
            if isinstance(answer, Solution):
                return answer
            tried = answer
            if tried is not None and (closest := self._short_end(targets, tried, q0)) is not None:
                return closest
        elif (
            (self._shortcut is not None or self._several is not None)
            and Frame.edits == self._edits
            and type(q0) is np.ndarray
            and q0.shape == self._shape
            and not (history or nearest)
            and lock is limits is feasible is callback is None
            and self._thread != threading.get_ident()
        ):
            begun = time.perf_counter()
            with self._one_at_a_time:
                if self._shortcut is not None:
                    q = self._short_way(targets, q0, rng, options, begun)
                    if q is not None:
                        self._is_aimed = True
                        given = targets if isinstance(targets, float) else targets.copy()
                        return Solution(self, given, q, (self._out.copy(),), time.perf_counter() - begun, self._bounds)
                elif not options and rng is None and targets is not None:
                    found = self._short_way_of_several(targets, q0, begun)
                    if found is not None:
                        return found
        check_names(options, option_names(type(self.method)))
        if nearest:
            return self._nearest(targets, q0, lock, limits, rng, feasible, history, callback, options)
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
        if self._guard is not None:
            return self._guard.solve_nearby(reach, targets, q0, options)
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

        Where loops or laws must be kept one iteration may not be enough to come to where they are; then it is the
        fewest that move anything. To see all of them, with what a method remembers from one to the next, give `solve`
        a callback.
        """
        if self._guard is not None:
            return self._guard.sliding().step(targets, q0, rng=rng, **options)
        check_names(options, option_names(type(self.method)))
        once = {**options, "max_iterations": 1, "restarts": 0}
        if isinstance(self.method, LevenbergMarquardt):
            once["kick"] = 0.0
        with self._alone():
            solution = self._solve(targets, q0, None, None, rng, None, False, None, once, is_step=True)
            begun = self.mechanism.q if q0 is None else np.asarray(q0, float)
            if solution.closure_errors or solution.law_errors:
                for few in FEW:
                    if solution.status is not Status.TIMEOUT or np.abs(solution.q - begun).max(initial=0.0) > STILL:
                        break
                    more = {**once, "max_iterations": few}
                    solution = self._solve(targets, begun, None, None, rng, None, False, None, more, is_step=True)
            return solution

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
        settings: object = self.method, self.options, self._is_auto, self._bounds, self._settings
        if self._guard is not None:
            settings = settings, self._guard.keeping.asked()
            self._batch_kept.clear()  # obstacles may have been moved
        about = Asked(self.mechanism, self.objectives, settings, self._batch_kept)
        return run_batch(
            about, engine_of(self, q0), targets, q0, threads=threads, progress=progress, out=out, rng=rng, chunk=chunk
        )

    def solve_all(
        self,
        targets: Targets | None = None,
        *,
        limit: int | None = None,
        q0: ArrayLike | None = None,
        lock: Names | str | None = None,
        limits: Mapping[str, ArrayLike] | None = None,
        tries: int = TRIES,
        samples: int = SAMPLES,
        windings: bool = False,
        rng: np.random.Generator | None = None,
    ) -> SolutionSet:
        """Every solution of one target, nearest to q0 first; of a redundant mechanism, some along each self-motion.

        By formula where there is one, and then complete; else from many starts.

        Args:
            limit: how many are given, the nearest; None: all.
            q0: (nq,) what they are near to; where the mechanism stands if not given.
            lock, limits: as in `solve`.
            tries: starts, at most, where there is no formula.
            samples: along each self-motion, at most; where two and more freedoms are left, in all.
            windings: of angles that differ by full turns, whether all inside the limits are given; if not, the nearest.
                Where something is to be avoided, only those that bump into nothing are given at all.
            rng: for the starts; without it they follow Halton's sequence, the same each time.
        """
        with self._alone(), asked(self, targets, q0, lock, limits, self._aids) as question:
            drawn = None if rng is None else as_generator(rng)
            keeping = None if self._guard is None else self._guard.keeping
            return all_solutions(
                question, limit=limit, tries=tries, samples=samples, windings=windings, rng=drawn, keeping=keeping
            )
