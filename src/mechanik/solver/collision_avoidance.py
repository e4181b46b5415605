"""Collision avoidance for a solver.

A solution of a serial chain that is in collision is replaced by another solution of the chain. If no other solution is
free of collision, and for all other mechanisms, the clearances become constraints of the problem.
"""

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
"""Maximum number of collision-free starts of the constrained solver after the search for chain solutions has failed."""
SEGMENT_SPACING, MAX_SEGMENT_SAMPLES = 0.05, 64
"""Distance between samples of a straight segment (rad or m), and the maximum number of samples. Denser samples miss
fewer collisions and need more distance queries.
"""


@dataclass(frozen=True, slots=True, eq=False)
class SolveRequest:
    """Arguments of a solve besides targets, start and `nearest`; see `Solver.solve`."""

    lock: Any = None
    limits: Any = None
    rng: np.random.Generator | None = None
    feasible: Callable[[Array], bool] | None = None
    history: bool = False
    callback: Any = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def fits_chain_kernel(self) -> bool:
        """Whether the chain kernel supports all arguments."""
        unsupported_options = self.options.keys() - {"max_seconds", "restarts"}
        has_default_arguments = self.lock is self.limits is self.feasible is self.callback is None
        return has_default_arguments and not (unsupported_options or self.history)

    def with_time_limit(self, seconds: float, **changes: Any) -> SolveRequest:
        """Return the request with `changes` of its options and a time limit of `seconds` (s; infinite: no change)."""
        options = {**self.options, **changes}
        if seconds < math.inf:
            options["max_seconds"] = max(seconds, 0.0)
        return SolveRequest(self.lock, self.limits, self.rng, self.feasible, self.history, self.callback, options)


class CollisionAvoidance:
    """Wrapper around a solver that searches for solutions free of collision.

    The first solve does not move away from obstacles; it is fast, and its solution is often free of collision. If the
    solution collides and the mechanism is a serial chain, other solutions are searched from collision-free starts. The
    constrained solver runs if the mechanism is not a serial chain, if this search fails, or if the solution must be
    connected to the start and the straight segment from the start to the solution is not free. Its residuals include
    the distances; with `avoid_as="limit"`, a method with priority levels gives them level 0, the highest.
    """

    def __init__(self, solver: Solver, constraint: CollisionConstraint) -> None:
        self._solver, self.constraint = solver, constraint
        self._constrained_solver: ConstrainedSolver | None = None
        self._free_search: CollisionFreeSearch | None = None
        self._free_search_key: tuple[object, Array] = None, np.zeros(0)
        self._creation_lock = threading.Lock()
        if not isinstance(solver.method, LevenbergMarquardt):
            self.constrained_solver()  # raises now, not at the first solve, if the method does not support distances

    # ---- public methods ----------------------------------------------------------------------

    def solve(self, targets: Targets | None, q0: ArrayLike | None, nearest: bool, request: SolveRequest) -> Solution:
        """Solve as `Solver.solve`, with collision avoidance."""
        solver, start_time = self._solver, perf_counter()
        if nearest or request.feasible is not None:
            feasible = self._free_and_feasible(request.feasible)
            request = SolveRequest(
                request.lock, request.limits, request.rng, feasible, request.history, request.callback, request.options
            )
        first_solution = solver._solve_ignoring_collisions(
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
        is_first_allowed = restarts != 0 or self._is_segment_free(q0, first_solution.q)
        if first_solution._is_met and self.constraint.is_free(first_solution.q) and is_first_allowed:
            return first_solution
        deadline = start_time + request.options.get("max_seconds", solver.options.max_seconds)
        first_solution.contacts = self.constraint.contacts(first_solution.q)
        solutions = [first_solution] if is_first_allowed else []
        can_search_chain = solver._chain_search is not None and request.fits_chain_kernel and restarts != 0
        if can_search_chain and not first_solution._is_met:  # not reached even without collision avoidance
            return first_solution
        if can_search_chain and perf_counter() < deadline:
            max_starts = sum(STARTS_PER_ROUND) if restarts is None else restarts
            solutions += self._other_chain_solution(targets, q0, max_starts)
        if not (solutions and solutions[-1].success):
            solutions += self._constrained_solutions(
                targets, q0, request, deadline, solutions[-1] if can_search_chain else None, restarts
            )
        best_solution = self._best(solutions, may_jump=bool(restarts) or can_search_chain)
        best_solution.seconds = seconds_since(start_time)
        return best_solution

    def solve_nearby(
        self, max_deviation: float, targets: Targets | None, q0: ArrayLike | None, options: dict[str, Any]
    ) -> Solution:
        """Solve as `Solver.solve_nearby`, with collision avoidance; `max_deviation` is in rad or m."""
        solver, start_time = self._solver, perf_counter()
        solutions: list[Solution] = []
        for current_solver in (solver, self.constrained_solver()):
            with current_solver._exclusive():
                solutions.append(
                    current_solver._solve(
                        targets, q0, None, None, None, None, False, None, options, max_deviation=max_deviation
                    )
                )
            solutions[-1].contacts = self.constraint.contacts(solutions[-1].q)
            if solutions[-1].success:
                break
        best_solution = self._best(solutions, may_jump=False)
        best_solution.seconds = seconds_since(start_time)
        return best_solution

    def solve_constrained(self, targets: Targets | None, q0: Array, rng: np.random.Generator | None) -> Solution:
        """Solve a batch row whose known solutions all collide; q0 (nq,) is the solution with the least penetration."""
        request, solver = SolveRequest(rng=rng), self._solver
        first_solution = Solution(solver, with_targets(solver._objectives, targets), q0, 0, 0.0, solver._bounds)
        first_solution.contacts = self.constraint.contacts(q0)
        return self._best(
            [first_solution, *self._constrained_solutions(targets, q0, request, math.inf, first_solution, None)],
            may_jump=True,
        )

    # ---- strategies -------------------------------------------------------------------------

    def constrained_solver(self) -> ConstrainedSolver:
        """Return the solver with clearances as constraints; the first call creates it."""
        with self._creation_lock:
            if self._constrained_solver is None:
                from mechanik.solver.solver import ConstrainedSolver, constructor_arguments

                arguments, options = constructor_arguments(self._solver)
                self._constrained_solver = ConstrainedSolver(self.constraint, *arguments, **options)
            return self._constrained_solver

    def free_search(self, fixed_q: Array, chain_search: ChainSearch | None = None) -> CollisionFreeSearch:
        """Return the search for collision-free solutions of the chain, from a cache if the fixed joints have not moved.

        Args:
            fixed_q: configuration with the values of all joints that the chain does not move, (nq,).
            chain_search: search with other values of the fixed joints. None: the chain search of the solver.
        """
        chain_search = self._solver._chain_search if chain_search is None else chain_search
        assert chain_search is not None
        with self._creation_lock:
            chain = chain_search.chain
            fixed_values = fixed_q[chain.columns[chain.locked_columns]]
            key = self._free_search_key
            if self._free_search is None or key[0] is not chain or not np.array_equal(key[1], fixed_values):
                self._free_search = CollisionFreeSearch(
                    self._solver.mechanism, chain_search, self.constraint, fixed_q.copy()
                )
                self._free_search_key = chain, fixed_values
            return self._free_search

    def _other_chain_solution(self, targets: Targets | None, q0: ArrayLike | None, max_starts: int) -> list[Solution]:
        """Return a list with one solution, free of collision if possible; empty if no solution is found."""
        solver, start_time = self._solver, perf_counter()
        X, objectives = self._chain_target(targets)
        if X is None:
            return []
        start_q = np.array(solver.mechanism.q if q0 is None else q0, dtype=np.float64)
        candidates = self.free_search(start_q).find_free(
            X[None], start_q[None], None if q0 is None else start_q[None], max_starts
        )
        if not candidates.exists[0]:
            return []
        # return code of the chain kernel: 1 attempt, the iterations, start not clamped
        code = (1 << 32) + 2 * int(candidates.iterations[0])
        if objectives is None:
            objectives = with_targets(solver._objectives, targets)
        solution = Solution(solver, objectives, candidates.q[0], code, perf_counter() - start_time, solver._bounds)
        if not candidates.is_free[0]:
            solution.contacts = self.constraint.contacts(solution.q)
        return [solution]

    def _constrained_solutions(
        self,
        targets: Targets | None,
        q0: ArrayLike | None,
        request: SolveRequest,
        deadline: float,
        best_solution: Solution | None,
        restarts: int | None,
    ) -> list[Solution]:
        """Run the constrained solver from several starts until it succeeds.

        Args:
            deadline: time of `time.perf_counter`, s.
            best_solution: for a chain, the best solution so far; it is the first start, and collision-free starts
                follow. None: the only start is q0.
        """
        constrained_solver, solutions = self.constrained_solver(), list[Solution]()
        starts: list[Any] = [q0 if best_solution is None else best_solution.q]
        if best_solution is not None:
            X, _ = self._chain_target(targets)
            if X is not None:
                start_q = np.array(self._solver.mechanism.q if q0 is None else q0, dtype=np.float64)
                count = MAX_CONSTRAINED_STARTS if restarts is None else min(MAX_CONSTRAINED_STARTS, restarts)
                starts += list(self.free_search(start_q).starts_near(X, start_q, count))
        changes = {} if best_solution is None else {"restarts": 0}
        for start in starts:
            options = request.with_time_limit(deadline - perf_counter(), **changes).options
            solutions.append(
                constrained_solver._solve_ignoring_collisions(
                    targets, start, False, request.lock, request.limits, request.rng, request.feasible, request.history,
                    request.callback, options,
                )
            )  # fmt: skip
            if solutions[-1].success or perf_counter() >= deadline:
                break
        return solutions

    # ---- internals ---------------------------------------------------------------------------

    def _chain_target(self, targets: Targets | None) -> tuple[Array | None, Any]:
        """Return the target pose of the chain (or None), and the objectives with targets if they had to be created."""
        solver = self._solver
        chain_search = solver._chain_search
        if chain_search is None:
            return None, None
        is_current = solver._chain_solver is not None and Frame.edit_count == solver._edit_count
        if (
            is_current
            and type(targets) is np.ndarray
            and targets.shape == (4, 4)
            and type(solver.objectives[0]) is PoseGoal
        ):
            return np.asarray(targets, dtype=np.float64), None
        objectives = with_targets(solver._objectives, targets)
        return chain_search.chain.target(solver._relations(objectives, None)[0]), objectives

    def _is_segment_free(self, q0: ArrayLike | None, q: Array) -> bool:
        """Return whether the samples of the segment from q0 to q are free.

        If q0 itself is not free, return whether no sample has a smaller distance than q0.
        """
        mechanism, constraint = self._solver.mechanism, self.constraint
        start = np.array(mechanism.q if q0 is None else mechanism._single_q(q0))
        difference = mechanism.space.difference(start, q)
        count = min(MAX_SEGMENT_SAMPLES, int(np.abs(difference).max(initial=0.0) / SEGMENT_SPACING))
        if count == 0:
            return True
        samples = mechanism.space.integrate(start, np.arange(1, count + 1)[:, None] / (count + 1) * difference)
        if constraint.is_free(start):
            return bool(constraint.are_free(samples).all())
        return bool(
            (
                constraint.distances(samples)
                >= min(constraint.required_clearance, float(constraint.distances(start[None])[0]))
            ).all()
        )

    def _free_and_feasible(self, feasible: Callable[[Array], bool] | None) -> Callable[[Array], bool]:
        """Return a function that tests whether q is free of collision and accepted by `feasible`."""
        constraint = self.constraint
        if feasible is None:
            return constraint.is_free
        return lambda q: constraint.is_free(q) and bool(feasible(q))

    @staticmethod
    def _best(solutions: list[Solution], may_jump: bool) -> Solution:
        """Return the first success; without a success, the solution with met goals that penetrates least.

        If no solution meets its goals, or without `may_jump` (the solution must be connected to the start), return the
        last solution.
        """
        for solution in solutions:
            if solution.success:
                return solution
        met_solutions = [solution for solution in solutions if solution._is_met and solution.contacts]
        if not may_jump or not met_solutions:
            return solutions[-1]
        return max(met_solutions, key=lambda solution: solution.contacts[0].distance)
