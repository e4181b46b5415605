"""Collision avoidance for a solver.

A solution of a serial chain that is in collision is replaced by another solution of the chain. If no other solution is
free of collision, and for all other mechanisms, the clearances become constraints of the problem.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from mechanik.processor_clock import seconds_since
from mechanik.solver.collision_constraint import CollisionConstraint
from mechanik.solver.compiled_problem import ProblemDefinition
from mechanik.solver.nearest import solve_nearest
from mechanik.solver.pipeline import Pipeline
from mechanik.solver.request import SolveRequest
from mechanik.solver.search.chain_search import ChainSearch
from mechanik.solver.search.collision_free_search import STARTS_PER_ROUND, CollisionFreeSearch
from mechanik.solver.solution import Solution
from mechanik.solver.target_writer import Targets, with_targets
from mechanik.spatial.array import Array, ArrayLike

MAX_CONSTRAINED_STARTS = 4
"""Maximum number of collision-free starts of the constrained solver after the search for chain solutions has failed."""
SEGMENT_SPACING, MAX_SEGMENT_SAMPLES = 0.05, 64
"""Distance between samples of a straight segment (rad or m), and the maximum number of samples. Denser samples miss
fewer collisions and need more distance queries.
"""


MAX_POSITION_ERROR, MAX_ROTATION_ERROR = 0.1, 0.3
"""m and rad: the constrained search clips errors of goals to these values. Smaller values make steps shorter, so that a
step does not jump over an obstacle, and need more iterations.
"""
BLOCKING_DISTANCE = 1e-6
"""m: a pair is blocking if its distance exceeds the required clearance by less than this."""
CHAIN_CHANGES = frozenset(("max_seconds", "restarts"))
"""Options that a call may change if other solutions of the chain are searched."""


class CollisionAvoidance:
    """Wrapper around a solver that searches for solutions free of collision.

    The first solve does not move away from obstacles; it is fast, and its solution is often free of collision. If the
    solution collides and the mechanism is a serial chain, other solutions are searched from collision-free starts. The
    constrained solver runs if the mechanism is not a serial chain, if this search fails, or if the solution must be
    connected to the start and the straight segment from the start to the solution is not free. Its residuals include
    the distances; with `avoid_as="limit"`, a method with priority levels gives them level 0, the highest.
    """

    def __init__(self, pipeline: Pipeline, constraint: CollisionConstraint) -> None:
        """Create the wrapper.

        Args:
            pipeline: the pipeline of the problem without clearances.
            constraint: the clearance to keep.

        Raises:
            InvalidOperation: if the method does not support distances.
        """
        self._pipeline, self.constraint = pipeline, constraint
        self._constrained_pipeline: Pipeline | None = None
        self._free_search: CollisionFreeSearch | None = None
        self._free_search_key: tuple[object, Array] = None, np.zeros(0)
        self._creation_lock = threading.Lock()
        if not pipeline.definition.method.is_compiled:
            self.constrained_pipeline()  # raises now, not at the first solve

    # ---- public methods ----------------------------------------------------------------------

    def solve(self, request: SolveRequest) -> Solution:
        """Solve a request with collision avoidance."""
        pipeline, start_time = self._pipeline, perf_counter()
        if request.max_deviation is not None:
            return self._solve_nearby(request)
        if request.nearest or request.feasible is not None:
            request = replace(request, feasible=self._free_and_feasible(request.feasible))
        if request.nearest:
            first_solution = solve_nearest(pipeline, request)
        elif request.has_only_targets:
            first_solution = pipeline.solve_call(request.targets, request.q0, dict(request.options))
        else:
            first_solution = pipeline.solve(request)
        options = pipeline.definition.options
        restarts = request.options.get("restarts", options.restarts)
        is_first_allowed = restarts != 0 or self._is_segment_free(request.q0, first_solution.q)
        if first_solution._is_met and self.constraint.is_free(first_solution.q) and is_first_allowed:
            return first_solution
        deadline = start_time + request.options.get("max_seconds", options.max_seconds)
        first_solution._add_details(contacts=self.constraint.contacts(first_solution.q))
        solutions = [first_solution] if is_first_allowed else []
        can_search_chain = pipeline.backends().chain is not None and restarts != 0
        can_search_chain = can_search_chain and not (
            request.options.keys() - CHAIN_CHANGES or request.history or request.callback or request.feasible
        )
        can_search_chain = can_search_chain and request.lock is request.limits is None
        if can_search_chain and not first_solution._is_met:  # not reached even without collision avoidance
            return first_solution
        if can_search_chain and perf_counter() < deadline:
            max_starts = sum(STARTS_PER_ROUND) if restarts is None else restarts
            solutions += self._other_chain_solution(first_solution, request, max_starts)
        if not (solutions and solutions[-1].success):
            solutions += self._constrained_solutions(
                request, deadline, solutions[-1] if can_search_chain else None, restarts
            )
        best_solution = self._best(solutions, may_jump=bool(restarts) or can_search_chain)
        best_solution.seconds = seconds_since(start_time)
        return best_solution

    def _solve_nearby(self, request: SolveRequest) -> Solution:
        """Solve a request with `max_deviation` (rad or m)."""
        start_time, solutions = perf_counter(), list[Solution]()
        for solve in (self._pipeline.solve, self._solve_with_constraint):
            solutions.append(solve(request))
            solutions[-1]._add_details(contacts=self.constraint.contacts(solutions[-1].q))
            if solutions[-1].success:
                break
        best_solution = self._best(solutions, may_jump=False)
        best_solution.seconds = seconds_since(start_time)
        return best_solution

    def step(self, request: SolveRequest) -> Solution:
        """Make a single iteration of the problem with the clearances as constraints."""
        return self._solve_with_constraint(request)

    def solve_constrained(self, targets: Targets | None, q0: Array, rng: np.random.Generator | None) -> Solution:
        """Solve a batch row whose known solutions all collide; q0 (nq,) is the solution with the least penetration."""
        compiled = self._pipeline.backends().compiled
        first_solution = Solution(compiled, with_targets(compiled.objectives, targets), q0, 0, 0.0)
        first_solution._add_details(contacts=self.constraint.contacts(q0))
        request = SolveRequest(targets=targets, q0=q0, rng=rng)
        return self._best(
            [first_solution, *self._constrained_solutions(request, math.inf, first_solution, None)], may_jump=True
        )

    # ---- strategies -------------------------------------------------------------------------

    def constrained_pipeline(self) -> Pipeline:
        """Return the pipeline with clearances as constraints; the first call creates it."""
        with self._creation_lock:
            if self._constrained_pipeline is None:
                self._constrained_pipeline = Pipeline(
                    constrained_definition(self._pipeline.definition, self.constraint)
                )
            return self._constrained_pipeline

    def _solve_with_constraint(self, request: SolveRequest) -> Solution:
        solution = self.constrained_pipeline().solve(request)
        solution._add_details(contacts=self.constraint.contacts(solution.q))
        if not solution.contacts and not solution.success:
            solution._add_details(blocking_contacts=self.constraint.contacts(solution.q, BLOCKING_DISTANCE))
        return solution

    def free_search(self, fixed_q: Array, chain_search: ChainSearch | None = None) -> CollisionFreeSearch:
        """Return the search for collision-free solutions of the chain, from a cache if the fixed joints have not moved.

        Args:
            fixed_q: configuration with the values of all joints that the chain does not move, (nq,).
            chain_search: search with other values of the fixed joints. None: the chain search of the solver.
        """
        if chain_search is None:
            chain = self._pipeline.backends().chain
            assert chain is not None
            chain_search = chain.search_at(fixed_q)
        with self._creation_lock:
            chain = chain_search.chain
            fixed_values = np.delete(fixed_q, chain.columns[~chain.locked_columns])
            key = self._free_search_key
            if self._free_search is None or key[0] is not chain or not np.array_equal(key[1], fixed_values):
                self._free_search = CollisionFreeSearch(
                    self._pipeline.definition.mechanism, chain_search, self.constraint, fixed_q.copy()
                )
                self._free_search_key = chain, fixed_values
            return self._free_search

    def _other_chain_solution(self, first_solution: Solution, request: SolveRequest, max_starts: int) -> list[Solution]:
        """Return a list with one solution, free of collision if possible; empty if no solution is found."""
        compiled, start_time, q0 = self._pipeline.backends().compiled, perf_counter(), request.q0
        X = self._chain_target(request.targets)
        if X is None:
            return []
        start_q = np.array(compiled.mechanism.q if q0 is None else q0, dtype=np.float64)
        candidates = self.free_search(start_q).find_free(
            X[None], start_q[None], None if q0 is None else start_q[None], max_starts
        )
        if not candidates.exists[0]:
            return []
        # return code of the chain kernel: 1 attempt, the iterations, start not clamped
        code = (1 << 32) + 2 * int(candidates.iterations[0])
        seconds = perf_counter() - start_time
        solution = Solution(compiled, lambda: first_solution.objectives, candidates.q[0], code, seconds)
        if not candidates.is_free[0]:
            solution._add_details(contacts=self.constraint.contacts(solution.q))
        return [solution]

    def _constrained_solutions(
        self, request: SolveRequest, deadline: float, best_solution: Solution | None, restarts: int | None
    ) -> list[Solution]:
        """Run the constrained search from several starts until it succeeds.

        Args:
            request: the request.
            deadline: time of `time.perf_counter`, s.
            best_solution: for a chain, the best solution so far; it is the first start, and collision-free starts
                follow. None: the only start is that of the request.
            restarts: number of restarts of the call; None: the default.
        """
        solutions = list[Solution]()
        starts: list[Any] = [request.q0 if best_solution is None else best_solution.q]
        if best_solution is not None:
            X = self._chain_target(request.targets)
            if X is not None:
                start_q = np.array(
                    self._pipeline.definition.mechanism.q if request.q0 is None else request.q0, dtype=np.float64
                )
                count = MAX_CONSTRAINED_STARTS if restarts is None else min(MAX_CONSTRAINED_STARTS, restarts)
                starts += list(self.free_search(start_q).starts_near(X, start_q, count))
        changes = {} if best_solution is None else {"restarts": 0}
        for start in starts:
            next_request = replace(request, q0=start).with_time_limit(deadline - perf_counter(), **changes)
            solutions.append(self._solve_with_constraint(next_request))
            if solutions[-1].success or perf_counter() >= deadline:
                break
        return solutions

    # ---- internals ---------------------------------------------------------------------------

    def _chain_target(self, targets: Targets | None) -> Array | None:
        """Return the target pose (4, 4) of the chain for the targets of a call; None if the chain does not fit."""
        backends = self._pipeline.backends()
        chain, compiled = backends.chain, backends.compiled
        if chain is None:
            return None
        if chain.takes_poses and type(targets) is np.ndarray and targets.shape == (4, 4):
            return np.array(targets, dtype=np.float64)
        relations = compiled.relations_of(with_targets(compiled.objectives, targets), None)
        return chain.search.chain.target(relations[0])

    def _is_segment_free(self, q0: ArrayLike | None, q: Array) -> bool:
        """Return whether the samples of the segment from q0 to q are free.

        If q0 itself is not free, return whether no sample has a smaller distance than q0.
        """
        mechanism, constraint = self._pipeline.definition.mechanism, self.constraint
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


def constrained_definition(definition: ProblemDefinition, constraint: CollisionConstraint) -> ProblemDefinition:
    """Return a definition with the clearance as a further objective, and with clipped errors of the goals."""
    return replace(
        definition,
        method=definition.method.with_clipped_errors(MAX_POSITION_ERROR, MAX_ROTATION_ERROR),
        constraints=(constraint.objective,),
    )
