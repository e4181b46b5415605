"""The public solver: `Solver`, its collision-constrained variant, and the single call `solve`.

A call takes the fastest path that accepts its arguments: the chain kernel, the descent kernel with targets written in
place, or the general path with all checks. With `avoid`, `CollisionAvoidance` wraps these paths.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from mechanik.errors import InvalidArgument, ShapeError
from mechanik.kernels.state_layout import SUCCESS
from mechanik.model import Frame, Mechanism
from mechanik.objectives import Objective
from mechanik.objectives.pose_goals import LinkGoal
from mechanik.solver.batch import (
    BatchBackend,
    BatchRequest,
    BatchResult,
    CollisionFreeLaneBackend,
    ConstrainedFallbackSolver,
    LaneBackend,
    Progress,
    SequentialBackend,
    run_batch,
    supports_lanes,
)
from mechanik.solver.collision_avoidance import CollisionAvoidance, SolveRequest
from mechanik.solver.collision_constraint import (
    Avoid,
    AvoidAs,
    CollisionConstraint,
    make_collision_constraint,
)
from mechanik.solver.general_path import GeneralPath
from mechanik.solver.methods.levenberg_marquardt import LevenbergMarquardt
from mechanik.solver.methods.method import Method
from mechanik.solver.methods.method_registry import option_names
from mechanik.solver.monitor import Callback
from mechanik.solver.options import DofNames, check_avoid_arguments, check_option_names
from mechanik.solver.search.all_solutions import MAX_STARTS, SELF_MOTION_SAMPLES, all_solutions
from mechanik.solver.search.chain_search import ChainResult, ChainSearch
from mechanik.solver.search.search_context import search_context
from mechanik.solver.search.solution_set import SolutionSet
from mechanik.solver.solution import Solution, Status
from mechanik.solver.target_writer import Targets, with_targets
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number, as_rng, format_count

STEP_ITERATIONS = (2, 3, 4, 6, 8, 12, 16, 32)
"""Numbers of iterations of `Solver.step` if loops or joint constraints must hold and a single iteration moves nothing.
They are tried in this order, until a step moves the mechanism."""
MIN_MOTION = 1e-12
"""rad or m: the largest change of q that still counts as no motion."""


class Solver(GeneralPath):
    """Inverse kinematics solver for one mechanism and a fixed set of objectives, compiled once and called often.

    A solver made with a mechanism never moves it: `solve` returns a `Solution`, and `mechanism.apply(solution)` moves
    the mechanism. A solver made with the root frames of a graph writes the new joint values to the graph after each
    `solve`, `solve_nearby` and `step`.

    Threads may share a solver; calls that use the same tables wait for each other.

    Args:
        mechanism: a mechanism, or the root frame or frames of a graph.
        goals: objectives. None: the objectives of the graph, which are its goals and the targets and rest poses of its
            joints.
        solver: the method, by name (a key of `mk.METHODS`) or as an object. "auto": "lm", then the closed form if "lm"
            fails and the problem has a closed form.
        active: joints (`elbow`) or dofs (`base.X`) that may move. None: all dofs that affect an objective.
        lock: joints or dofs that may not move.
        limits: (lower, upper) by joint or dof, rad or m; replaces the limits of the mechanism.
        weights: by objective name, a factor on its weight; by joint or dof, a factor above 1 makes it move less.
        rest: rest configuration, approached as far as the objectives leave dofs free: q (nq,), values by name, or True
            for the rest poses of the joints.
        avoid: what must not be in collision: "self", obstacles, or a `Collider`. A collider may be shared, and its
            obstacles may move. A configuration in collision is never a success. If the first solution is in collision,
            other solutions are searched for a serial chain. If these fail too, or if the solution must stay connected
            to the start (`restarts=0`), the solver adds the clearances to the problem as constraints.
        clearance: minimum distance, m.
        allow, forbid: as for `Collider`: pairs of names that may touch, and pairs that are checked although the default
            rules exclude them.
        avoid_as: "limit": the clearance has priority over the goals (methods other than "lm" have no priority levels
            and weigh it against the goals). "cost": the clearance is weighed against the goals, and success needs only
            that nothing is in collision.
        options: fields of `Options` and options of the method. Each may also be given to a single call.

    Raises:
        InvalidArgument: for an argument of the wrong type, or for `clearance`, `allow` or `forbid` without `avoid`.
        InvalidOperation: if the method cannot solve this kind of problem.
        ObjectiveError: for an empty list of goals, or for a weight that is not above 0.
        StructureError: for `avoid` with frames instead of a mechanism.
        UnknownName: for an unknown method, option, joint or dof.

    Example:
        >>> arm = mk.arm_2d([1.0, 1.0])
        >>> solver = mk.Solver(arm, mk.PositionGoal("tool", (1.0, 1.0, 0.0)))
        >>> solution = solver.solve((0.5, 1.2, 0.0), q0=[0.0, 1.5])
        >>> arm.pose("tool", solution.q)[:3, 3].round(4).tolist()
        [0.5, 1.2, 0.0]
    """

    def __init__(
        self,
        mechanism: Mechanism | Frame | Iterable[Frame],
        goals: Objective | Iterable[Objective] | None = None,
        *,
        solver: str | Method = "lm",
        active: DofNames | str | None = None,
        lock: DofNames | str | None = None,
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
        check_avoid_arguments(mechanism, avoid, clearance, allow, forbid)
        self._collision_avoidance: CollisionAvoidance | None = None
        super().__init__(mechanism, goals, solver, active, lock, limits, weights, rest, options)
        if avoid is not None:
            level = min((objective.level for objective in self._objectives if objective.required), default=1)
            has_levels = isinstance(self.method, LevenbergMarquardt)
            constraint = make_collision_constraint(
                self.mechanism, avoid, clearance, allow, forbid, avoid_as, level, has_levels
            )
            self._collision_avoidance = CollisionAvoidance(self, constraint)

    def __repr__(self) -> str:
        objective_text = format_count(len(self._objectives), "objective")
        subproblem_text = format_count(len(self._problem.subproblems), "subproblem")
        return f"<solver of {self.mechanism!r} by {self.method.title}: {objective_text} in {subproblem_text}>"

    # ---- solving ----------------------------------------------------------------------------

    def solve(
        self,
        targets: Targets | None = None,
        q0: ArrayLike | None = None,
        *,
        nearest: bool = False,
        lock: DofNames | str | None = None,
        limits: Mapping[str, ArrayLike] | None = None,
        rng: np.random.Generator | None = None,
        feasible: Callable[[Array], bool] | None = None,
        history: bool = False,
        callback: Callback | None = None,
        **options: Any,
    ) -> Solution:
        """Find a configuration that meets the objectives.

        Args:
            targets: new targets for this call, in any form that `Objective.with_target` takes: the target of the only
                objective, a mapping from objective names, or a sequence with an entry for each objective (None keeps
                the target). None keeps all targets.
            q0: start configuration (nq,). The search starts here; after a restart, the solution can be far from it (see
                `nearest`). None: a serial chain with a single pose-like goal starts from its seed table, which is
                fastest and may end in any branch; all other problems start from `mechanism.q`.
            nearest: whether to compute all solutions and return the feasible solution nearest to `q0` or `mechanism.q`.
                This takes milliseconds and ignores `max_seconds`.
            lock, limits: for this call, in addition to those of the solver.
            rng: random generator for restarts and random steps. None: a fixed sequence, so results are repeatable.
            feasible: function of q (nq,). If it returns False for a solution, the search continues from the next start.
            history: whether to record the error after each iteration.
            callback: called with an `Iterate` after each iteration; a return value of True stops the solve.
            options: fields of `Options` and options of the method, for this call.

        Returns:
            The solution. `Solution.success` tells whether every required objective is met.

        Raises:
            InvalidArgument: if `feasible` or `callback` is not callable.
            InvalidOperation: if the solver is called from a function that it calls, such as its callback.
            ShapeError: for targets or a `q0` of the wrong shape.
            UnknownName: for an unknown option, objective, joint or dof.

        Example:
            >>> solver = mk.Solver(mk.arm_2d([1.0, 1.0]), mk.PositionGoal("tool", (1.0, 1.0, 0.0)))
            >>> solver.solve((3.0, 0.0, 0.0), q0=[0.1, 0.2]).status
            CLOSEST
        """
        if self._collision_avoidance is not None:
            request = SolveRequest(lock, limits, rng, feasible, history, callback, options)
            return self._collision_avoidance.solve(targets, q0, nearest, request)
        return self._solve_ignoring_collisions(
            targets, q0, nearest, lock, limits, rng, feasible, history, callback, options
        )

    def _solve_ignoring_collisions(
        self,
        targets: Targets | None,
        q0: ArrayLike | None,
        nearest: bool,
        lock: DofNames | str | None,
        limits: Mapping[str, ArrayLike] | None,
        rng: np.random.Generator | None,
        feasible: Callable[[Array], bool] | None,
        history: bool,
        callback: Callback | None,
        options: dict[str, Any],
    ) -> Solution:
        """Solve like `solve`, without collision avoidance."""
        chain_result: ChainResult | None = None
        if (
            self._chain_solver is not None
            and Frame.edit_count == self._edit_count
            and not (options or history or nearest or self._owner_thread)
            and lock is limits is feasible is callback is rng is None
        ):
            result = self._chain_solver(targets, q0)
            if isinstance(result, Solution):
                return result
            chain_result = result
            if chain_result is not None:
                closest_solution = self._refine_failed_chain(targets, chain_result, q0)
                if closest_solution is not None:
                    return closest_solution
        elif (
            (self._target_writer is not None or self._multi_target_writer is not None)
            and Frame.edit_count == self._edit_count
            and type(q0) is np.ndarray
            and q0.shape == self._q_shape
            and not (history or nearest)
            and lock is limits is feasible is callback is None
            and self._owner_thread != threading.get_ident()
        ):
            start_time = time.perf_counter()
            with self._table_lock:
                if self._target_writer is not None:
                    q = self._run_kernel(targets, q0, rng, options, start_time)
                    if q is not None:
                        self._targets_changed = True
                        target = targets if isinstance(targets, float) else targets.copy()
                        return Solution(
                            self,
                            target,
                            q,
                            (self._report_table.copy(),),
                            time.perf_counter() - start_time,
                            self._bounds,
                        )
                elif not options and rng is None and targets is not None:
                    solution = self._run_kernel_multi_target(targets, q0, start_time)
                    if solution is not None:
                        return solution
        check_option_names(options, option_names(type(self.method)))
        if nearest:
            return self._solve_nearest(targets, q0, lock, limits, rng, feasible, history, callback, options)
        with self._exclusive():
            return self._solve(
                targets, q0, lock, limits, rng, feasible, history, callback, options, chain_result=chain_result
            )

    def solve_nearby(
        self, max_deviation: float, targets: Targets | None = None, q0: ArrayLike | None = None, **options: Any
    ) -> Solution:
        """Solve like `solve`, with every scalar dof within `max_deviation` of `q0`; restarts stay within it too.

        Spherical joints are not bounded, since quaternions have no limits. A `q0` outside the limits is clamped first.

        Args:
            max_deviation: largest change of a dof, m and rad, 0 or more.
            targets, q0: as in `solve`.
            options: fields of `Options` and options of the method, for this call.

        Returns:
            The solution.

        Raises:
            ShapeError: if `max_deviation` is below 0.

        Example:
            >>> solver = mk.Solver(mk.arm_2d([1.0, 1.0]), mk.PositionGoal("tool", (0.5, 1.2, 0.0)))
            >>> solver.solve_nearby(0.2, q0=[0.3, 1.7]).q.round(3).tolist()
            [0.313, 1.726]
        """
        deviation = as_number(max_deviation, "max_deviation")
        if deviation < 0:
            raise ShapeError(f"max_deviation must be 0 or more (m and rad), not {deviation:g}")
        check_option_names(options, option_names(type(self.method)))
        if self._collision_avoidance is not None:
            return self._collision_avoidance.solve_nearby(deviation, targets, q0, options)
        with self._exclusive():
            return self._solve(targets, q0, None, None, None, None, False, None, options, max_deviation=deviation)

    def step(
        self,
        targets: Targets | None = None,
        q0: ArrayLike | None = None,
        *,
        rng: np.random.Generator | None = None,
        **options: Any,
    ) -> Solution:
        """Run a single iteration from `q0`, even if it increases the error; for animation and teaching.

        Where loops or joint constraints must hold, a single iteration may not be enough to satisfy them; then the step
        has more iterations, until the mechanism moves. A method starts without memory at each step. To observe the
        iterations of a method with memory, give `solve` a callback.

        Args:
            targets, q0: as in `solve`.
            rng: random generator of methods that draw random numbers.
            options: fields of `Options` and options of the method, for this call.

        Returns:
            The configuration after the step, usually with status TIMEOUT.

        Example:
            >>> solver = mk.Solver(mk.arm_2d([1.0, 1.0]), mk.PositionGoal("tool", (1.0, 1.0, 0.0)))
            >>> solver.step(q0=[0.1, 1.5]).iterations
            1
        """
        if self._collision_avoidance is not None:
            return self._collision_avoidance.constrained_solver().step(targets, q0, rng=rng, **options)
        check_option_names(options, option_names(type(self.method)))
        step_options = {**options, "max_iterations": 1, "restarts": 0}
        if isinstance(self.method, LevenbergMarquardt):
            step_options["perturbation"] = 0.0
        with self._exclusive():
            solution = self._solve(targets, q0, None, None, rng, None, False, None, step_options, is_step=True)
            start = self.mechanism.q if q0 is None else np.asarray(q0, float)
            if solution.closure_errors or solution.joint_constraint_errors:
                for iterations in STEP_ITERATIONS:
                    if (
                        solution.status is not Status.TIMEOUT
                        or np.abs(solution.q - start).max(initial=0.0) > MIN_MOTION
                    ):
                        break
                    retry_options = {**step_options, "max_iterations": iterations}
                    solution = self._solve(
                        targets, start, None, None, rng, None, False, None, retry_options, is_step=True
                    )
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
        """Solve for many targets, each independent of the others.

        The result is bitwise the same for any number of threads and any chunk size.

        Args:
            targets: for a single objective (N, 4, 4), (N, 7) as position and quaternion wxyz, (N, 3), or N targets that
                its `with_target` takes. For several objectives, one of these each, by name or in order, None to keep
                the target. Arrays may be memory-mapped. None: the targets stay, and each row of `q0` is a problem. A
                row with an invalid target gets status BAD_TARGET.
            q0: (nq,) for all rows, (N, nq), or None as in `solve`. A row with an invalid configuration gets status
                BAD_START.
            threads: None: the number of cores, or 1 for methods written in Python.
            progress: True prints a progress line to stderr; a function is called with the number of finished rows and
                of all rows.
            out: folder for the result, or an unfinished result to resume. Finished rows stay as they are.
            rng: random generator. A resumed result keeps its own; another generator is rejected.
            chunk: number of rows that are solved at a time.

        Returns:
            The result, with an entry for each row.

        Raises:
            Interrupted: at Ctrl-C; its `result` holds the finished rows.

        Example:
            >>> solver = mk.Solver(mk.arm_2d([1.0, 1.0]), mk.PositionGoal("tool", (1.0, 1.0, 0.0)))
            >>> solver.solve_batch(np.array([[1.0, 1.0, 0.0], [3.0, 0.0, 0.0]])).success.tolist()
            [True, False]
        """
        self._recompile_if_stale()
        if threads is None and not isinstance(self.method, LevenbergMarquardt):
            threads = 1
        settings: object = self.method, self.options, self._is_auto, self._bounds, self._settings
        if self._collision_avoidance is not None:
            settings = settings, self._collision_avoidance.constraint.fingerprint_data()
            self._fingerprint_cache.clear()  # the obstacles may have moved
        request = BatchRequest(self.mechanism, self.objectives, settings, self._fingerprint_cache)
        return run_batch(
            request,
            choose_backend(self, q0),
            targets,
            q0,
            threads=threads,
            progress=progress,
            out=out,
            rng=rng,
            chunk=chunk,
        )

    def solve_all(
        self,
        targets: Targets | None = None,
        *,
        limit: int | None = None,
        q0: ArrayLike | None = None,
        lock: DofNames | str | None = None,
        limits: Mapping[str, ArrayLike] | None = None,
        max_attempts: int = MAX_STARTS,
        samples: int = SELF_MOTION_SAMPLES,
        windings: bool = False,
        rng: np.random.Generator | None = None,
    ) -> SolutionSet:
        """Find every solution for a single target, nearest to `q0` first.

        Uses a closed form where the mechanism has one; `SolutionSet.complete` tells whether it proves that there are no
        other solutions. All other mechanisms are solved from many starts. For a redundant mechanism the result holds
        samples of each self-motion. With `avoid`, the result holds only solutions without collision.

        Args:
            targets: as in `solve`.
            limit: maximum number of solutions, the nearest ones. None: all.
            q0: reference configuration (nq,) for the order. None: `mechanism.q`.
            lock, limits: as in `solve`.
            max_attempts: maximum number of starts where there is no closed form.
            samples: maximum number of samples on each self-motion; with two or more redundant dofs, on all of them
                together.
            windings: for angles that differ by full revolutions, whether to return every value within the limits.
                False: only the nearest.
            rng: random generator of the starts. None: the Halton sequence, so results are repeatable.

        Returns:
            The solutions.

        Example:
            >>> solver = mk.Solver(mk.arm_2d([1.0, 1.0]), mk.PositionGoal("tool", (0.5, 1.2, 0.0)))
            >>> solver.solve_all(q0=[0.3, 1.0]).q.round(3).tolist()
            [[0.313, 1.726], [2.039, -1.726]]
        """
        with self._exclusive(), search_context(self, targets, q0, lock, limits, self._descent_and_cache) as context:
            generator = None if rng is None else as_rng(rng)
            constraint = None if self._collision_avoidance is None else self._collision_avoidance.constraint
            return all_solutions(
                context,
                limit=limit,
                max_attempts=max_attempts,
                samples=samples,
                windings=windings,
                rng=generator,
                collision_constraint=constraint,
            )


MAX_POSITION_ERROR, MAX_ROTATION_ERROR = 0.1, 0.3
"""m and rad: errors of goals are clipped to these values. Smaller values make steps shorter, so that a step does not
jump over an obstacle, and need more iterations.
"""
BLOCKING_DISTANCE = 1e-6
"""m: a pair is blocking if its distance exceeds the required clearance by less than this."""
UNMET_STATUSES = (Status.CLOSEST, Status.STALLED, Status.TIMEOUT)
"""Statuses in which loops are closed and joint constraints hold, but a goal is not met."""


class ConstrainedSolver(Solver):
    """Solver with the clearances as an additional objective; targets and solutions do not include this objective."""

    def __init__(self, constraint: CollisionConstraint, *arguments: Any, **options: Any) -> None:
        self._constraint = constraint
        method = options.get("solver")
        if isinstance(method, LevenbergMarquardt) or method == "auto":
            base_method = method if isinstance(method, LevenbergMarquardt) else LevenbergMarquardt()
            options["largest_error"] = min(MAX_POSITION_ERROR, base_method.largest_error)
            options["largest_angle_error"] = min(MAX_ROTATION_ERROR, base_method.largest_angle_error)
        super().__init__(*arguments, **options)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        return self._objectives[:-1]

    def _current_objectives(self) -> tuple[Objective, ...]:
        return (*super()._current_objectives(), self._constraint.objective)

    def _objectives_with_targets(self, targets: Targets | None) -> tuple[Objective, ...]:
        return (*with_targets(self._objectives[:-1], targets), self._objectives[-1])

    def _solve(self, *arguments: Any, **options: Any) -> Solution:
        solution = super()._solve(*arguments, **options)
        solution._objectives_source = solution.objectives[:-1]
        solution.contacts = self._constraint.contacts(solution.q)
        is_only_clearance_unmet = solution.contacts and solution.status in UNMET_STATUSES and not solution.unmet
        if is_only_clearance_unmet:
            solution._report = tuple(_with_success(report) for report in solution._kernel_reports)
        if not solution.contacts and not solution.success:
            solution.blocking_contacts = self._constraint.contacts(solution.q, BLOCKING_DISTANCE)
        return solution


def _with_success(report: Array) -> Array:
    """Return a copy of a kernel report with success set, for goals that are met; contacts are reported separately."""
    report = report.copy()
    report[SUCCESS] = 1.0
    return report


def choose_backend(solver: Solver, q0: ArrayLike | None) -> BatchBackend:
    """Choose the batch backend: lanes for a serial chain with a single pose-like goal, one solve per row otherwise.

    Args:
        q0: start configuration (nq,) for all rows, (N, nq), or None.
    """
    sequential = SequentialBackend(solver.mechanism, solver.objectives, lambda: clone_solver(solver))
    goal = next(iter(solver.objectives), None)  # no goal if only loops are to be closed
    chain_search = solver._chain_search
    if chain_search is None or not isinstance(goal, LinkGoal):
        return sequential
    if solver._supports_lanes is None:
        solver._supports_lanes = supports_lanes(solver.mechanism, goal)
    if not solver._supports_lanes:
        return sequential
    default_q = solver.mechanism.q if solver._mid_configuration is None else solver._mid_configuration
    if chain_search.has_fixed_joints:  # the seed table depends on their values
        if q0 is not None and np.ndim(q0) == 2:
            return sequential
        default_q = default_q if q0 is None else solver.mechanism._single_q(q0)
        chain_search = ChainSearch(chain_search.chain, default_q, solver.options.restarts)
    if solver._collision_avoidance is None:
        return LaneBackend(chain_search, sequential, goal, np.array(default_q))
    avoidance, mechanism, objectives = solver._collision_avoidance, solver.mechanism, solver.objectives
    lanes = LaneBackend(
        chain_search,
        SequentialBackend(mechanism, objectives, lambda: clone_ignoring_collisions(solver)),
        goal,
        np.array(default_q),
    )
    # all threads share the solver of the fallback, one call at a time
    constrained_backend = SequentialBackend(mechanism, objectives, lambda: ConstrainedFallbackSolver(avoidance))
    free_search = avoidance.free_search(np.array(default_q), chain_search)
    return CollisionFreeLaneBackend(lanes, avoidance.constraint, free_search, constrained_backend)


def clone_ignoring_collisions(solver: Solver) -> Solver:
    """Return a new solver for the same problem without collision avoidance."""
    arguments, options = constructor_arguments(solver)
    return type(solver)(*arguments, **options)


def clone_solver(solver: Solver) -> Solver:
    """Return a new solver for the same problem with its own tables; both share the collider."""
    if (avoidance := solver._collision_avoidance) is None:
        return clone_ignoring_collisions(solver)
    arguments, options = constructor_arguments(solver)
    return type(solver)(*arguments, **options, **avoidance.constraint.solver_arguments())


def constructor_arguments(solver: Solver) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments that make a solver for the same problem without collision avoidance."""
    options = {field.name: getattr(solver.options, field.name) for field in fields(solver.options)}
    options |= {
        "solver": "auto" if solver._is_auto else solver.method,
        "active": solver._active,
        "lock": solver._lock,
        "limits": solver._limits,
        "weights": solver._weights,
        "rest": None if solver._given_objectives is None else solver._rest,
    }
    return (
        solver.mechanism,
        (solver.objectives or None) if solver._given_objectives is None else solver._given_objectives,
    ), options


DEFAULT_RESTARTS = 100
"""Number of restarts of `solve` if the caller gives none and the chain kernel is not used."""


def solve(
    mechanism: Mechanism,
    goals: Objective | Iterable[Objective],
    q0: ArrayLike | None = None,
    *,
    solver: str | Method = "lm",
    active: DofNames | str | None = None,
    lock: DofNames | str | None = None,
    limits: Mapping[str, ArrayLike] | None = None,
    weights: Mapping[str, float] | None = None,
    rest: ArrayLike | Mapping[str, ArrayLike] | bool | None = None,
    avoid: Avoid | None = None,
    clearance: float = 0.0,
    allow: Iterable[tuple[str, str]] = (),
    forbid: Iterable[tuple[str, str]] = (),
    avoid_as: AvoidAs = "limit",
    rng: np.random.Generator | None = None,
    feasible: Callable[[Array], bool] | None = None,
    history: bool = False,
    callback: Callback | None = None,
    restarts: int | None = None,
    **options: Any,
) -> Solution:
    """Solve a single inverse kinematics problem; `Solver` is faster for more than one target.

    The mechanism does not move: `mechanism.apply(solution)` moves it.

    Args:
        mechanism: the mechanism.
        goals: an objective, or several.
        q0: start configuration (nq,). None: `mechanism.q`.
        solver, active, lock, limits, weights, rest, avoid, clearance, allow, forbid, avoid_as: as for `Solver`.
        rng, feasible, history, callback: as for `Solver.solve`.
        restarts: maximum number of further starts if the search from `q0` fails. None: 100, or the default of the chain
            kernel for a serial chain.
        options: fields of `Options` and options of the method.

    Returns:
        The solution. `Solution.success` tells whether every required objective is met.

    Raises:
        InvalidArgument: if `mechanism` is not a `Mechanism`.

    Example:
        >>> arm = mk.arm_2d([1.0, 1.0])
        >>> solution = mk.solve(arm, mk.PositionGoal("tool", (0.5, 1.2, 0.0)), q0=[0.1, 0.2])
        >>> solution.success
        True
        >>> solution.q.round(3).tolist()
        [0.313, 1.726]
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidArgument(f"solve takes a mechanism, not {mechanism!r}; for frames use Solver(roots)")
    compiled_solver = Solver(
        mechanism,
        goals,
        solver=solver,
        active=active,
        lock=lock,
        limits=limits,
        weights=weights,
        rest=rest,
        avoid=avoid,
        clearance=clearance,
        allow=allow,
        forbid=forbid,
        avoid_as=avoid_as,
        restarts=restarts,
        **options,
    )
    # the chain kernel has its own default of restarts, and cannot call Python functions
    is_plain = compiled_solver._chain_search is not None and feasible is None and callback is None and not history
    call_options: dict[str, Any] = {"restarts": DEFAULT_RESTARTS} if restarts is None and not is_plain else {}
    start = mechanism.q if q0 is None else q0
    return compiled_solver.solve(
        q0=start, rng=rng, feasible=feasible, history=history, callback=callback, **call_options
    )
