"""The ways to an answer that bumps into nothing: another one, or one that slides along what is in the way."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from mechanik.mechanism import Frame
from mechanik.objectives import PoseGoal
from mechanik.search.chain_search import ChainSearch
from mechanik.search.free_search import ROUNDS, FreeSearch
from mechanik.solvers.keeping_off import KeepingOff
from mechanik.solvers.levenberg_marquardt import LevenbergMarquardt
from mechanik.solvers.new_targets import Targets, aimed
from mechanik.solvers.solution import Solution
from mechanik.spatial.array import Array, ArrayLike
from mechanik.stopwatch import seconds_since

if TYPE_CHECKING:
    from mechanik.ik.sliding import Sliding
    from mechanik.ik.solver import Solver

SLIDES = 4
"""Free starts from which a chain slides to its target, at most, where no other answer is free."""
BETWEEN_LOOKS, MOST_LOOKS = 0.05, 64
"""rad and m: how far apart it is looked, on a straight way, whether it is free; and how often at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """What one call of a solver asks for besides targets and a start; see `Solver.solve`."""

    lock: Any = None
    limits: Any = None
    rng: np.random.Generator | None = None
    feasible: Callable[[Array], bool] | None = None
    history: bool = False
    callback: Any = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def is_plain(self) -> bool:
        """Whether nothing is asked for that the chain kernel does not know."""
        others = self.options.keys() - {"max_seconds", "restarts"}
        return not (others or self.history) and self.lock is self.limits is self.feasible is self.callback is None

    def within(self, seconds: float, **more: Any) -> Ask:
        """The same with other options, and within so many seconds."""
        options = {**self.options, **more}
        if seconds < math.inf:
            options["max_seconds"] = max(seconds, 0.0)
        return Ask(self.lock, self.limits, self.rng, self.feasible, self.history, self.callback, options)


class Guard:
    """What a solver that has to keep off things does besides solving.

    First it is solved as if nothing were in the way, which is quick, and often what is found is free. If not, a chain
    is asked for other answers, from starts that are free. What is left, and all that may not leap and whose straight
    way is not free, slides: the general kernel, with gaps as rows, above all goals.
    """

    def __init__(self, solver: Solver, keeping: KeepingOff) -> None:
        self._solver, self.keeping = solver, keeping
        self._sliding: Sliding | None = None
        self._search: FreeSearch | None = None
        self._searched: tuple[object, Array] = None, np.zeros(0)
        self._making = threading.Lock()
        if not isinstance(solver.method, LevenbergMarquardt):
            self.sliding()  # so that a method which cannot do it says so at once

    # ---- calls of a solver ------------------------------------------------------------------

    def solve(self, targets: Targets | None, q0: ArrayLike | None, nearest: bool, ask: Ask) -> Solution:
        solver, begun = self._solver, perf_counter()
        if nearest or ask.feasible is not None:
            feasible = self._and(ask.feasible)
            ask = Ask(ask.lock, ask.limits, ask.rng, feasible, ask.history, ask.callback, ask.options)
        first = solver._unguarded(
            targets, q0, nearest, ask.lock, ask.limits, ask.rng, ask.feasible, ask.history, ask.callback, ask.options
        )
        restarts = ask.options.get("restarts", solver.options.restarts)
        comes_along = restarts != 0 or self._comes_along(q0, first.q)
        if first._is_met and self.keeping.is_free(first.q) and comes_along:
            return first
        deadline = begun + ask.options.get("max_seconds", solver.options.max_seconds)
        first.clashes = self.keeping.clashes(first.q)
        found = [first] if comes_along else []
        is_chain = solver._chain is not None and ask.is_plain and restarts != 0
        if is_chain and not first._is_met:  # out of reach, whatever is in the way
            return first
        if is_chain and perf_counter() < deadline:
            found += self._another(targets, q0, sum(ROUNDS) if restarts is None else restarts)
        if not (found and found[-1].success):
            found += self._slides(targets, q0, ask, deadline, found[-1] if is_chain else None, restarts)
        best = self._best(found, leaps=bool(restarts) or is_chain)
        best.seconds = seconds_since(begun)
        return best

    def solve_nearby(
        self, reach: float, targets: Targets | None, q0: ArrayLike | None, options: dict[str, Any]
    ) -> Solution:
        solver, begun = self._solver, perf_counter()
        found: list[Solution] = []
        for one in (solver, self.sliding()):
            with one._alone():
                found.append(one._solve(targets, q0, None, None, None, None, False, None, options, nearby=reach))
            found[-1].clashes = self.keeping.clashes(found[-1].q)
            if found[-1].success:
                break
        best = self._best(found, leaps=False)
        best.seconds = seconds_since(begun)
        return best

    def last_resort(self, targets: Targets | None, q0: Array, rng: np.random.Generator | None) -> Solution:
        """For a row of a batch whose other answers all bump; q0 is the least deep of them."""
        ask, solver = Ask(rng=rng), self._solver
        first = Solution(solver, aimed(solver._objectives, targets), q0, 0, 0.0, solver._bounds)
        first.clashes = self.keeping.clashes(q0)
        return self._best([first, *self._slides(targets, q0, ask, math.inf, first, None)], leaps=True)

    # ---- ways -------------------------------------------------------------------------------

    def sliding(self) -> Sliding:
        """The solver that keeps off at every step; made when it is first needed."""
        with self._making:
            if self._sliding is None:
                from mechanik.ik.batches import arguments
                from mechanik.ik.sliding import Sliding

                given, more = arguments(self._solver)
                self._sliding = Sliding(self.keeping, *given, **more)
            return self._sliding

    def search(self, home: Array, chain: ChainSearch | None = None) -> FreeSearch:
        """For other answers of the chain, where all else stands as in `home` (nq,); kept for the next call.

        Args:
            chain: the solver's, if not given; or one whose joints that are held stand elsewhere.
        """
        chain = self._solver._chain if chain is None else chain
        assert chain is not None
        with self._making:
            held = home[chain.columns[chain.chain.held]]
            known = self._searched
            if self._search is None or known[0] is not chain.chain or not np.array_equal(known[1], held):
                self._search = FreeSearch(self._solver.mechanism, chain, self.keeping, home.copy())
                self._searched = chain.chain, held
            return self._search

    def _another(self, targets: Targets | None, q0: ArrayLike | None, most: int) -> list[Solution]:
        """An answer from a start that is free; one that bumps if none is free, and none if there is none at all."""
        solver, begun = self._solver, perf_counter()
        X, objectives = self._target(targets)
        chain = solver._chain
        if X is None or chain is None:
            return []
        base = np.array(solver.mechanism.q if q0 is None else q0, dtype=np.float64)
        others = self.search(base).look(X[None], base[None], None if q0 is None else base[None], most)
        if not others.any[0]:
            return []
        code = (1 << 32) + 2 * int(others.iterations[0])
        asked = aimed(solver._objectives, targets) if objectives is None else objectives
        found = Solution(solver, asked, others.q[0], code, perf_counter() - begun, solver._bounds)
        if not others.free[0]:
            found.clashes = self.keeping.clashes(found.q)
        return [found]

    def _slides(
        self,
        targets: Targets | None,
        q0: ArrayLike | None,
        ask: Ask,
        deadline: float,
        least: Solution | None,
        restarts: int | None,
    ) -> list[Solution]:
        """Sliding from q0, of a chain from its least bad answer and then from free starts, until one is a success."""
        sliding, found = self.sliding(), list[Solution]()
        starts: list[Any] = [q0 if least is None else least.q]
        if least is not None:
            X, _ = self._target(targets)
            if X is not None:
                base = np.array(self._solver.mechanism.q if q0 is None else q0, dtype=np.float64)
                count = SLIDES if restarts is None else min(SLIDES, restarts)
                starts += list(self.search(base).starts_near(X, base, count))
        more = {} if least is None else {"restarts": 0}
        for start in starts:
            now = ask.within(deadline - perf_counter(), **more)
            found.append(
                sliding._unguarded(
                    targets, start, False, now.lock, now.limits, now.rng, now.feasible, now.history, now.callback,
                    now.options,
                )
            )  # fmt: skip
            if found[-1].success or perf_counter() >= deadline:
                break
        return found

    # ---- inside -----------------------------------------------------------------------------

    def _target(self, targets: Targets | None) -> tuple[Array | None, Any]:
        """What the chain has to reach, and the objectives if they had to be made for it."""
        solver = self._solver
        chain = solver._chain
        if chain is None:
            return None, None
        quick = solver._by_chain is not None and Frame.edits == solver._edits
        if quick and type(targets) is np.ndarray and targets.shape == (4, 4) and type(solver.objectives[0]) is PoseGoal:
            return np.asarray(targets, dtype=np.float64), None
        objectives = aimed(solver._objectives, targets)
        return chain.chain.target(solver._relations(objectives, None)[0]), objectives

    def _comes_along(self, q0: ArrayLike | None, q: Array) -> bool:
        """Whether the straight way from q0 to q is free; if q0 is not, whether nothing on it is deeper than there."""
        mechanism, keeping = self._solver.mechanism, self.keeping
        start = np.array(mechanism.q if q0 is None else mechanism._one(q0))
        v = mechanism.space.difference(start, q)
        count = min(MOST_LOOKS, int(np.abs(v).max(initial=0.0) / BETWEEN_LOOKS))
        if count == 0:
            return True
        way = mechanism.space.integrate(start, np.arange(1, count + 1)[:, None] / (count + 1) * v)
        if keeping.is_free(start):
            return bool(keeping.are_free(way).all())
        return bool((keeping.gaps(way) >= min(keeping.needed, float(keeping.gaps(start[None])[0]))).all())

    def _and(self, feasible: Callable[[Array], bool] | None) -> Callable[[Array], bool]:
        """Whether a configuration is free, and the caller likes it."""
        keeping = self.keeping
        if feasible is None:
            return keeping.is_free
        return lambda q: keeping.is_free(q) and bool(feasible(q))

    @staticmethod
    def _best(found: list[Solution], leaps: bool) -> Solution:
        """A success; or else the least deep that meets its goals; or, where nothing may leap, what slid."""
        for one in found:
            if one.success:
                return one
        met = [one for one in found if one._is_met and one.clashes]
        if not leaps or not met:
            return found[-1]
        return max(met, key=lambda one: one.clashes[0].gap)
