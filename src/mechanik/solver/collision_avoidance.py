"""Collision avoidance of a solver: other solutions of a chain, or clearances as constraints of the problem."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from mechanik.model import Frame
from mechanik.objectives import PoseGoal
from mechanik.processor_clock import seconds_since
from mechanik.solver.collision_constraint import CollisionConstraint
from mechanik.solver.methods.levenberg_marquardt import LevenbergMarquardt
from mechanik.solver.search.chain_search import ChainSearch
from mechanik.solver.search.collision_free_search import STARTS_PER_ROUND, CollisionFreeSearch
from mechanik.solver.solution import Solution
from mechanik.solver.target_writer import Targets, with_targets
from mechanik.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from mechanik.solver.solver import ConstrainedSolver, Solver

MAX_CONSTRAINED_STARTS = 4
"""Maximum number of collision-free starts of the constrained solver, if a chain has no collision-free solution."""
SEGMENT_SPACING, MAX_SEGMENT_SAMPLES = 0.05, 64
"""rad or m between samples of a straight segment, and the maximum number of samples. Denser samples miss fewer
collisions and cost more distance queries.
"""


@dataclass(frozen=True, slots=True, eq=False)
class SolveRequest:
    """Arguments of a solve besides targets and start; see `Solver.solve`."""

    lock: Any = None
    limits: Any = None
    rng: np.random.Generator | None = None
    feasible: Callable[[Array], bool] | None = None
    history: bool = False
    callback: Any = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def is_plain(self) -> bool:
        """Whether the chain kernel supports all arguments."""
        others = self.options.keys() - {"max_seconds", "restarts"}
        return not (others or self.history) and self.lock is self.limits is self.feasible is self.callback is None

    def with_time_limit(self, seconds: float, **more: Any) -> SolveRequest:
        """Return the same request with other options and at most `seconds`, s."""
        options = {**self.options, **more}
        if seconds < math.inf:
            options["max_seconds"] = max(seconds, 0.0)
        return SolveRequest(self.lock, self.limits, self.rng, self.feasible, self.history, self.callback, options)


class CollisionAvoidance:
    """Wrapper around a solver that makes its solutions free of collision.

    The first solve ignores collisions; it is fast, and its solution is often free. If not, a serial chain searches for
    other solutions from collision-free starts. If that fails, or if the solution must stay connected to the start and
    the straight segment is not free, the constrained solver takes over: the descent kernel with distances as residuals,
    at a level above all goals.
    """

    def __init__(self, solver: Solver, constraint: CollisionConstraint) -> None:
        self._solver, self.constraint = solver, constraint
        self._constrained_solver: ConstrainedSolver | None = None
        self._free_search: CollisionFreeSearch | None = None
        self._free_search_key: tuple[object, Array] = None, np.zeros(0)
        self._making = threading.Lock()
        if not isinstance(solver.method, LevenbergMarquardt):
            self.constrained_solver()  # an unsupported method must raise at construction

    # ---- calls of a solver ------------------------------------------------------------------

    def solve(self, targets: Targets | None, q0: ArrayLike | None, nearest: bool, request: SolveRequest) -> Solution:
        """Solve as `Solver.solve`, with collision avoidance."""
        solver, begun = self._solver, perf_counter()
        if nearest or request.feasible is not None:
            feasible = self._free_and_feasible(request.feasible)
            request = SolveRequest(
                request.lock, request.limits, request.rng, feasible, request.history, request.callback, request.options
            )
        first = solver._solve_ignoring_collisions(
            targets,
            q0,
            nearest,
            request.lock,
            request.limits,
            request.rng,
            request.feasible,
            request.history,
            request.callback,
            request.options,
        )
        restarts = request.options.get("restarts", solver.options.restarts)
        comes_along = restarts != 0 or self._is_segment_free(q0, first.q)
        if first._is_met and self.constraint.is_free(first.q) and comes_along:
            return first
        deadline = begun + request.options.get("max_seconds", solver.options.max_seconds)
        first.contacts = self.constraint.contacts(first.q)
        found = [first] if comes_along else []
        is_chain = solver._chain_search is not None and request.is_plain and restarts != 0
        if is_chain and not first._is_met:  # out of reach even without obstacles
            return first
        if is_chain and perf_counter() < deadline:
            found += self._other_solutions(targets, q0, sum(STARTS_PER_ROUND) if restarts is None else restarts)
        if not (found and found[-1].success):
            found += self._constrained_solutions(
                targets, q0, request, deadline, found[-1] if is_chain else None, restarts
            )
        best = self._best(found, leaps=bool(restarts) or is_chain)
        best.seconds = seconds_since(begun)
        return best

    def solve_nearby(
        self, max_deviation: float, targets: Targets | None, q0: ArrayLike | None, options: dict[str, Any]
    ) -> Solution:
        """Solve as `Solver.solve_nearby`, with collision avoidance."""
        solver, begun = self._solver, perf_counter()
        found: list[Solution] = []
        for one in (solver, self.constrained_solver()):
            with one._exclusive():
                found.append(
                    one._solve(targets, q0, None, None, None, None, False, None, options, nearby=max_deviation)
                )
            found[-1].contacts = self.constraint.contacts(found[-1].q)
            if found[-1].success:
                break
        best = self._best(found, leaps=False)
        best.seconds = seconds_since(begun)
        return best

    def solve_constrained(self, targets: Targets | None, q0: Array, rng: np.random.Generator | None) -> Solution:
        """Solve a row of a batch whose other solutions are all in collision; q0 (nq,) is the least deep of them."""
        ask, solver = SolveRequest(rng=rng), self._solver
        first = Solution(solver, with_targets(solver._objectives, targets), q0, 0, 0.0, solver._bounds)
        first.contacts = self.constraint.contacts(q0)
        return self._best([first, *self._constrained_solutions(targets, q0, ask, math.inf, first, None)], leaps=True)

    # ---- strategies -------------------------------------------------------------------------

    def constrained_solver(self) -> ConstrainedSolver:
        """Return the solver with clearances as constraints; it is made at first use."""
        with self._making:
            if self._constrained_solver is None:
                from mechanik.solver.solver import ConstrainedSolver, constructor_arguments

                given, more = constructor_arguments(self._solver)
                self._constrained_solver = ConstrainedSolver(self.constraint, *given, **more)
            return self._constrained_solver

    def free_search(self, home: Array, chain: ChainSearch | None = None) -> CollisionFreeSearch:
        """Return the search for collision-free solutions of the chain; it is cached for the next call.

        Args:
            home: values of all joints that the chain does not move, (nq,).
            chain: the chain search of the solver if None; or a search with other values of fixed joints.
        """
        chain = self._solver._chain_search if chain is None else chain
        assert chain is not None
        with self._making:
            held = home[chain.columns[chain.chain.locked]]
            known = self._free_search_key
            if self._free_search is None or known[0] is not chain.chain or not np.array_equal(known[1], held):
                self._free_search = CollisionFreeSearch(self._solver.mechanism, chain, self.constraint, home.copy())
                self._free_search_key = chain.chain, held
            return self._free_search

    def _other_solutions(self, targets: Targets | None, q0: ArrayLike | None, most: int) -> list[Solution]:
        """Return a collision-free solution; a colliding one if none is free; an empty list if there is no solution."""
        solver, begun = self._solver, perf_counter()
        X, objectives = self._chain_target(targets)
        chain = solver._chain_search
        if X is None or chain is None:
            return []
        base = np.array(solver.mechanism.q if q0 is None else q0, dtype=np.float64)
        others = self.free_search(base).find_free(X[None], base[None], None if q0 is None else base[None], most)
        if not others.exists[0]:
            return []
        code = (1 << 32) + 2 * int(others.iterations[0])
        asked = with_targets(solver._objectives, targets) if objectives is None else objectives
        found = Solution(solver, asked, others.q[0], code, perf_counter() - begun, solver._bounds)
        if not others.free[0]:
            found.contacts = self.constraint.contacts(found.q)
        return [found]

    def _constrained_solutions(
        self,
        targets: Targets | None,
        q0: ArrayLike | None,
        ask: SolveRequest,
        deadline: float,
        least: Solution | None,
        restarts: int | None,
    ) -> list[Solution]:
        """Run the constrained solver from several starts until a success.

        The first start is q0. For a chain it is the best solution so far, followed by collision-free starts.
        """
        sliding, found = self.constrained_solver(), list[Solution]()
        starts: list[Any] = [q0 if least is None else least.q]
        if least is not None:
            X, _ = self._chain_target(targets)
            if X is not None:
                base = np.array(self._solver.mechanism.q if q0 is None else q0, dtype=np.float64)
                count = MAX_CONSTRAINED_STARTS if restarts is None else min(MAX_CONSTRAINED_STARTS, restarts)
                starts += list(self.free_search(base).starts_near(X, base, count))
        more = {} if least is None else {"restarts": 0}
        for start in starts:
            now = ask.with_time_limit(deadline - perf_counter(), **more)
            found.append(
                sliding._solve_ignoring_collisions(
                    targets, start, False, now.lock, now.limits, now.rng, now.feasible, now.history, now.callback,
                    now.options,
                )
            )  # fmt: skip
            if found[-1].success or perf_counter() >= deadline:
                break
        return found

    # ---- inside -----------------------------------------------------------------------------

    def _chain_target(self, targets: Targets | None) -> tuple[Array | None, Any]:
        """Return the target pose of the chain, and the objectives if they were made for it."""
        solver = self._solver
        chain = solver._chain_search
        if chain is None:
            return None, None
        quick = solver._chain_solver is not None and Frame.edit_count == solver._edits
        if quick and type(targets) is np.ndarray and targets.shape == (4, 4) and type(solver.objectives[0]) is PoseGoal:
            return np.asarray(targets, dtype=np.float64), None
        objectives = with_targets(solver._objectives, targets)
        return chain.chain.target(solver._relations(objectives, None)[0]), objectives

    def _is_segment_free(self, q0: ArrayLike | None, q: Array) -> bool:
        """Return whether the segment from q0 to q is free; if q0 is not, whether no sample is deeper than q0."""
        mechanism, keeping = self._solver.mechanism, self.constraint
        start = np.array(mechanism.q if q0 is None else mechanism._single_q(q0))
        v = mechanism.space.difference(start, q)
        count = min(MAX_SEGMENT_SAMPLES, int(np.abs(v).max(initial=0.0) / SEGMENT_SPACING))
        if count == 0:
            return True
        way = mechanism.space.integrate(start, np.arange(1, count + 1)[:, None] / (count + 1) * v)
        if keeping.is_free(start):
            return bool(keeping.are_free(way).all())
        return bool(
            (keeping.distances(way) >= min(keeping.required_clearance, float(keeping.distances(start[None])[0]))).all()
        )

    def _free_and_feasible(self, feasible: Callable[[Array], bool] | None) -> Callable[[Array], bool]:
        """Return a function that tests whether q is free of collision and accepted by `feasible`."""
        keeping = self.constraint
        if feasible is None:
            return keeping.is_free
        return lambda q: keeping.is_free(q) and bool(feasible(q))

    @staticmethod
    def _best(found: list[Solution], leaps: bool) -> Solution:
        """Return the first success; else the least deep solution that meets its goals; without `leaps`, the last."""
        for one in found:
            if one.success:
                return one
        met = [one for one in found if one._is_met and one.contacts]
        if not leaps or not met:
            return found[-1]
        return max(met, key=lambda one: one.contacts[0].distance)
