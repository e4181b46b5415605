"""The public solver: `Solver`, and the single call `solve`.

Calls with targets, a start and options run a prepared call if there is one: it writes the targets and calls a kernel.
All other calls, and those whose prepared call gives no solution, become a `SolveRequest`, which goes through the
backends of the pipeline in order (`pipeline.py`). With `avoid`, `CollisionAvoidance` wraps the pipeline.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechanik.errors import InvalidArgument, ObjectiveError, ShapeError
from mechanik.model import Frame, Mechanism
from mechanik.objectives import Objective, jacobian, residual
from mechanik.objectives.objective import ResidualDefinition, as_objectives
from mechanik.solver.avoidance import CollisionAvoidance
from mechanik.solver.backends.backend import Partial
from mechanik.solver.backends.chain import ChainBackend
from mechanik.solver.batch import BatchRequest, BatchResult, Progress, run_batch
from mechanik.solver.batch.batch_choice import choose_batch_backend
from mechanik.solver.batch.batch_store import digest, mechanism_digest
from mechanik.solver.collision_constraint import (
    Avoid,
    AvoidAs,
    CollisionConstraint,
    make_collision_constraint,
)
from mechanik.solver.compiled_problem import ProblemDefinition, fingerprint_settings
from mechanik.solver.methods.method import Method
from mechanik.solver.methods.method_registry import make_method, option_names
from mechanik.solver.monitor import Callback
from mechanik.solver.nearest import solve_nearest
from mechanik.solver.options import (
    DofNames,
    Options,
    as_pairs,
    as_stored_names,
    check_avoid_arguments,
    check_option_names,
    with_copied_values,
)
from mechanik.solver.pipeline import BackendReport, CallReport, Pipeline
from mechanik.solver.request import SolveRequest
from mechanik.solver.search.all_solutions import MAX_STARTS, SELF_MOTION_SAMPLES, all_solutions
from mechanik.solver.search.solution_set import SolutionSet
from mechanik.solver.solution import Solution, Status
from mechanik.solver.target_writer import Targets
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number, as_rng, format_count

STEP_ITERATIONS = (1, 2, 3, 4, 6, 8, 12, 16, 32)
"""Numbers of iterations of `Solver.step`: further numbers are tried in this order if loops or joint constraints must
hold and fewer iterations move nothing."""
MIN_MOTION = 1e-12
"""rad or m: the largest change of q that still counts as no motion."""


@dataclass(frozen=True, slots=True)
class SolverExplanation:
    """How a solver answers calls.

    Attributes:
        method: why this method.
        backends: the backends in the order in which they are tried.
        calls: which calls are prepared, so that they take the shortest path, and why others are not.

    Example:
        >>> arm = mk.arm_2d([1.0, 1.0])
        >>> explanation = mk.Solver(arm, mk.PositionGoal("tool", (0.5, 1.2, 0.0))).explain()
        >>> [backend.name for backend in explanation.backends]
        ['chain kernel', 'general kernel']
    """

    method: str
    backends: tuple[BackendReport, ...]
    calls: tuple[CallReport, ...]

    def __str__(self) -> str:
        backend_lines = [f"{backend.name}: {backend.use}" for backend in self.backends]
        return "\n".join([self.method, *backend_lines, "calls:", *(f"- {call}" for call in self.calls)])


class Solver:
    """Inverse kinematics solver for one mechanism and a fixed set of objectives, compiled once and called often.

    A solver made with a mechanism never moves it: `solve` returns a `Solution`, and `mechanism.apply(solution)` moves
    the mechanism. A solver made with the root frames of a graph writes the new joint values to the graph after each
    `solve`, `solve_nearby` and `step`.

    An answer depends on how the solver was made and on the arguments of the call, and on the configuration of the
    mechanism only if `q0` is not given, and for rest poses of joints that give only some angles of a spherical joint or
    of a joint that closes a loop. Threads may share a solver, and functions that it calls may call it.

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
        allow, forbid = as_pairs(allow, "allow"), as_pairs(forbid, "forbid")
        active, lock = as_stored_names(active), as_stored_names(lock)
        limits, rest = with_copied_values(limits), with_copied_values(rest)
        check_avoid_arguments(mechanism, avoid, clearance, allow, forbid)
        is_auto = isinstance(solver, str) and solver == "auto"
        method, common_options = make_method("lm" if is_auto else solver, options)
        check_option_names(common_options, option_names(type(method)))
        if isinstance(mechanism, str):
            raise InvalidArgument(
                f"the first argument must be a mechanism, not the text {mechanism!r}; load a file with mk.load"
            )
        if weights is not None and not isinstance(weights, Mapping):
            raise InvalidArgument(f"weights must be a mapping from names, as in {{'elbow': 2}}, not {weights!r}")
        objectives = None if goals is None else as_objectives(goals)
        if objectives == ():
            raise ObjectiveError("the list of goals is empty; give a goal, or omit goals to only close loops")
        definition = ProblemDefinition(
            mechanism=mechanism if isinstance(mechanism, Mechanism) else Mechanism(mechanism),
            given_objectives=objectives,
            method=method,
            options=Options(**common_options),
            is_auto=is_auto,
            active=active,
            lock=lock,
            limits=limits,
            weights=dict(weights or {}),
            rest=rest,
            moves_joints=not isinstance(mechanism, Mechanism),
        )
        constraint: CollisionConstraint | None = None
        if avoid is not None:
            level = min((objective.level for objective in objectives or () if objective.required), default=1)
            constraint = make_collision_constraint(
                definition.mechanism, avoid, clearance, allow, forbid, avoid_as, level, method.supports_levels
            )
        self._initialize(definition, constraint)

    def _initialize(self, definition: ProblemDefinition, constraint: CollisionConstraint | None) -> None:
        self._pipeline = Pipeline(definition)
        self._avoidance = None if constraint is None else CollisionAvoidance(self._pipeline, constraint)

    def __repr__(self) -> str:
        backends = self._pipeline.current_backends
        objective_text = format_count(len(backends.compiled.objectives), "objective")
        subproblem_text = format_count(len(backends.compiled.problem.subproblems), "subproblem")
        return f"<solver of {self.mechanism!r} by {self.method.title}: {objective_text} in {subproblem_text}>"

    # ---- what the solver is -------------------------------------------------------------------

    @property
    def definition(self) -> ProblemDefinition:
        """What the solver was made for."""
        return self._pipeline.definition

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism."""
        return self._pipeline.definition.mechanism

    @property
    def method(self) -> Method:
        """The method."""
        return self._pipeline.definition.method

    @property
    def method_reason(self) -> str:
        """Sentence with the reason for this method."""
        return self._pipeline.backends().method_choice[1]

    @property
    def options(self) -> Options:
        """Options that all methods have in common."""
        return self._pipeline.definition.options

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Objectives that the caller gave, or those of the graph; then the rest pose that `rest` gives, if any."""
        definition = self._pipeline.definition
        if definition.given_objectives is None:
            return definition.current_objectives()
        return self._pipeline.current_backends.compiled.objectives

    @property
    def pipeline(self) -> Pipeline:
        """The backends of the solver, without collision avoidance; for other parts of Mechanik."""
        return self._pipeline

    @property
    def chain(self) -> ChainBackend | None:
        """The chain kernel, or None if it does not fit the problem; for other parts of Mechanik."""
        return self._pipeline.backends().chain

    @property
    def avoidance(self) -> CollisionAvoidance | None:
        """Collision avoidance; None without `avoid`. For other parts of Mechanik."""
        return self._avoidance

    def explain(self) -> SolverExplanation:
        """Explain which backends answer, in which order, and which calls take the shortest path.

        Example:
            >>> four_bar = mk.gallery.four_bar()
            >>> explanation = mk.Solver(four_bar, mk.JointValues({"crank_joint": 1.0})).explain()
            >>> explanation.backends[0].use
            'not used: there are loops, joint constraints or cones'
            >>> [call.call for call in explanation.calls if call.is_prepared]
            ['targets and q0', 'without q0', 'options']
        """
        backends = self._pipeline.backends()
        reports = backends.reports()
        if self._avoidance is not None:
            reports.append(
                BackendReport("collision avoidance", "other solutions of a chain, then the clearances as constraints")
            )
        return SolverExplanation(backends.method_choice[1], tuple(reports), tuple(backends.call_reports()))

    def residual(self, q: ArrayLike | None = None, definition: ResidualDefinition = "mechanik") -> Array:
        """Return the stacked residual of all objectives at q, (m,), in m and rad, without weights.

        Args:
            q: configuration, (nq,). None: `mechanism.q`.
            definition: "klampt" gives the residual of Klampt's IK functions, for `LinkGoal` only.
        """
        return residual(self.objectives, self.mechanism, self.mechanism.q if q is None else q, definition)

    def jacobian(self, q: ArrayLike | None = None, definition: ResidualDefinition = "mechanik") -> Array:
        """Return the Jacobian of `residual` with respect to v, (m, nv).

        Args:
            q, definition: as in `residual`.
        """
        return jacobian(self.objectives, self.mechanism, self.mechanism.q if q is None else q, definition)

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
            nearest: whether to search for all solutions and return the feasible solution nearest to `q0` or
                `mechanism.q`. Where solutions are isolated it is the nearest of all that are found, and on self-motions
                a local minimum of the distance. This takes milliseconds for arms and up to 0.3 s for trees, and ignores
                `max_seconds`. The work is bounded, to about 1.5 s; `Solution.message` says if the search ended there.
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
            InvalidOperation: if the mechanism is edited during the call, for example by the callback.
            ShapeError: for targets or a `q0` of the wrong shape.
            UnknownName: for an unknown option, objective, joint or dof.

        Example:
            >>> solver = mk.Solver(mk.arm_2d([1.0, 1.0]), mk.PositionGoal("tool", (1.0, 1.0, 0.0)))
            >>> solver.solve((3.0, 0.0, 0.0), q0=[0.1, 0.2]).status
            CLOSEST
        """
        partial: Partial | None = None
        pipeline = self._pipeline
        if (
            Frame.edit_count == pipeline.edit_count
            and self._avoidance is None
            and not (nearest or history)
            and lock is limits is rng is feasible is callback is None
        ):
            call = pipeline.call if not options else pipeline.current_backends.prepared_call(options)
            answer = None if call is None else call(targets, q0)
            if isinstance(answer, Solution):
                return answer
            partial = answer
        request = SolveRequest(
            targets=targets, q0=q0, nearest=nearest, lock=lock, limits=limits, rng=rng, feasible=feasible,
            history=history, callback=callback, options=options,
        )  # fmt: skip
        return self._solve(request, partial)

    def _solve(self, request: SolveRequest, partial: Partial | None = None) -> Solution:
        """Solve a request; with the partial answer of the prepared call of the chain for it, if there is one."""
        request.check(self.method)
        if self._avoidance is not None:
            return self._avoidance.solve(request)
        if request.nearest:
            return solve_nearest(self._pipeline, request)
        return self._pipeline.solve(request, partial)

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
        return self._solve(SolveRequest(targets=targets, q0=q0, options=options, max_deviation=deviation))

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
        request = SolveRequest(targets=targets, q0=q0, rng=rng, options=options, is_step=True)
        request.check(self.method)
        solve = self._pipeline.solve if self._avoidance is None else self._avoidance.step
        start = np.array(self.mechanism.q if q0 is None else self.mechanism._single_q(q0))
        request = replace(request, q0=start).with_options(restarts=0)
        solution = solve(request.with_options(max_iterations=STEP_ITERATIONS[0]))
        for iterations in STEP_ITERATIONS[1:]:
            must_continue = solution.status is Status.TIMEOUT and bool(
                solution.closure_errors or solution.joint_constraint_errors
            )
            if not must_continue or np.abs(solution.q - start).max(initial=0.0) > MIN_MOTION:
                break
            solution = solve(request.with_options(max_iterations=iterations))
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
        if threads is None and not self.method.is_compiled:
            threads = 1
        backends = self._pipeline.backends()
        settings: object = fingerprint_settings(backends.compiled)
        fingerprint_cache = backends.fingerprint_cache
        if self._avoidance is not None:
            settings = settings, self._avoidance.constraint.fingerprint_data()
            fingerprint_cache = {}  # the obstacles may have moved
        request = BatchRequest(self.mechanism, self.objectives, settings, fingerprint_cache)
        return run_batch(
            request,
            choose_batch_backend(self._pipeline, self._avoidance, q0),
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
        generator = None if rng is None else as_rng(rng)
        request = SolveRequest(targets=targets, q0=q0, lock=lock, limits=limits)
        constraint = None if self._avoidance is None else self._avoidance.constraint
        with self._pipeline.search_context(request) as context:
            return all_solutions(
                context,
                limit=limit,
                max_attempts=max_attempts,
                samples=samples,
                windings=windings,
                rng=generator,
                collision_constraint=constraint,
            )

    # ---- copies -------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        constraint = None if self._avoidance is None else self._avoidance.constraint
        return _restore_solver, (self._pipeline.definition, constraint)

    def __eq__(self, value: object) -> bool:
        if not isinstance(value, Solver):
            return NotImplemented
        return self._identity() == value._identity()

    def __hash__(self) -> int:
        return hash((type(self), self.mechanism.nq, len(self.objectives)))

    def _identity(self) -> tuple[Any, ...]:
        """Return all that determines the answers of the solver, in a form that can be compared."""
        compiled = self._pipeline.backends().compiled
        constraint = None if self._avoidance is None else digest(self._avoidance.constraint.fingerprint_data())
        settings = digest(fingerprint_settings(compiled))
        return mechanism_digest(self.mechanism), settings, self.objectives, self.definition.moves_joints, constraint


def _restore_solver(definition: ProblemDefinition, constraint: CollisionConstraint | None) -> Solver:
    """Make the solver of a definition."""
    solver = Solver.__new__(Solver)
    solver._initialize(definition, constraint)
    return solver


RESTARTS_OF_SINGLE_SOLVE = 100
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
    has_chain = compiled_solver.chain is not None
    is_plain = has_chain and feasible is None and callback is None and not history
    call_options: dict[str, Any] = {"restarts": RESTARTS_OF_SINGLE_SOLVE} if restarts is None and not is_plain else {}
    start = mechanism.q if q0 is None else q0
    return compiled_solver.solve(
        q0=start, rng=rng, feasible=feasible, history=history, callback=callback, **call_options
    )
