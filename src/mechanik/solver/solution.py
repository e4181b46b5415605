"""Result of a solve: its status, the configuration, the errors, and the reasons for a failure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from mechanik.errors import NotSolved
from mechanik.model import Mechanism
from mechanik.model.linearized_constraints import linearize_system
from mechanik.objectives import ErrorNorms, Objective
from mechanik.problem import KernelReport
from mechanik.spatial.array import Array
from mechanik.validation import format_count

if TYPE_CHECKING:
    from mechanik.collision import Contact
    from mechanik.solver.compiled_problem import CompiledProblem
    from mechanik.solver.singularity import Singularity


class Status(Enum):
    """Outcome of a solve, of a subproblem, or of a row of a batch; the value is a sentence for users.

    Example:
        >>> mk.Status["CLOSEST"]
        CLOSEST
    """

    CONVERGED = "every required objective is within its tolerance"
    CLOSEST = "not reached: this is a local minimum of the error"
    STALLED = "not reached: progress ended before a minimum of the error was found"
    TIMEOUT = "not reached: the limit of iterations or of time ended the search"
    NOT_CLOSED = "not reached: a loop is not closed, or a joint constraint does not hold"
    STOPPED = "the caller stopped the search"
    DIVERGED = "not reached: the error grew beyond the divergence threshold, or is not a finite number"
    BAD_TARGET = "the target of this row is not finite or not valid"
    PENDING = "not solved yet"
    BAD_START = "the start of this row is not finite, or has a quaternion of length zero"
    IN_COLLISION = "every required objective is met, but a pair is in collision or closer than the clearance"

    def __repr__(self) -> str:
        return self.name


STATUS_BY_CODE = (
    Status.CONVERGED, Status.CLOSEST, Status.STALLED, Status.TIMEOUT, Status.NOT_CLOSED, Status.TIMEOUT, Status.STOPPED,
    Status.DIVERGED, Status.BAD_TARGET, Status.PENDING, Status.BAD_START, Status.IN_COLLISION,
)  # fmt: skip
"""Status by status code; the first eight are ordered from best to worst. The second TIMEOUT is a stage that was not
started because the attempt ended earlier. The kernel does not write the last six: Python writes STOPPED and DIVERGED,
three are for rows of a batch, and collisions are checked after the solve.
"""
IN_COLLISION_CODE = STATUS_BY_CODE.index(Status.IN_COLLISION)


@dataclass(frozen=True, slots=True)
class SubproblemReport:
    """Result of a subproblem: a part of the problem that shares no dof with the other parts.

    Attributes:
        objectives: indices into the objectives of the solver.
        closures: names of the joints that close its loops.
        joints: names of the dofs that it may move.
        status: status of this subproblem.
        residual: norm of the residual of its loops or, if they are closed, of its first unmet level; 0 if all are met.
            Weighted, lengths divided by the characteristic length of the mechanism. Methods other than "lm" take all
            required residuals together.
        iterations: number of steps tried.
        seconds: time spent on this subproblem, s.
        joint_constraints: names of its joint constraints.

    Example:
        >>> arm = mk.arm_2d([1.0, 1.0])
        >>> mk.solve(arm, mk.PositionGoal("tool", (0.5, 1.2, 0.0)), q0=[0.1, 0.2]).subproblems[0].joints
        ('joint1', 'joint2')
    """

    objectives: tuple[int, ...]
    closures: tuple[str, ...]
    joints: tuple[str, ...]
    status: Status
    residual: float
    iterations: int
    seconds: float
    joint_constraints: tuple[str, ...] = ()


LIMIT_TOLERANCE = 1e-9
"""rad or m: a dof this close to a limit counts as at the limit."""
CONE_TOLERANCE = 1e-8
"""rad or m: an axis this close to the edge of its cone, or a closing joint this close to its limit, counts as at the
limit.
"""
JOINT_CONSTRAINT_TOLERANCE = 1e-9
"""A joint constraint holds if the ratio of its error to its scale is at most this."""


CLOSURE_TOLERANCE = 1e-9
"""m and rad: a loop with at most this error counts as closed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SolutionDetails:
    """Data of a solution that most calls do not have.

    Attributes:
        bounds: lower and upper limits of this call, (nq,) each; None: the limits of the compiled problem.
        history: error after each iteration, as in `Iterate.error`, (k,); None if not requested.
        is_rejected: whether `feasible` rejected every solution.
        subproblem_seconds: time of each subproblem, s; empty if not measured.
        locked_dofs: (nv,) mask of the dofs that the call locked; None without locks.
        contacts: pairs in collision or closer than the clearance, the deepest first.
        blocking_contacts: pairs that are at the required clearance, if goals are not met and `contacts` is empty.
        note: what the message says in addition.
    """

    bounds: tuple[Array, Array] | None = None
    history: Array | None = None
    is_rejected: bool = False
    subproblem_seconds: tuple[float, ...] = ()
    locked_dofs: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None
    contacts: tuple[Contact, ...] = ()
    blocking_contacts: tuple[Contact, ...] = ()
    note: str = ""


NO_DETAILS = SolutionDetails()


P = ParamSpec("P")
T = TypeVar("T")


def _unaffected_by_edits(read: Callable[Concatenate[Solution, P], T]) -> Callable[Concatenate[Solution, P], T]:
    """Let a method of a solution read a copy of the mechanism, if another thread edits the mechanism meanwhile."""

    @wraps(read)
    def read_consistently(self: Solution, *args: P.args, **options: P.kwargs) -> T:
        compiled = self._compiled
        is_copy = compiled.is_stale
        try:
            value = read(self, *args, **options)
        except Exception:
            if is_copy or not compiled.is_stale:
                raise
        else:
            if is_copy or not compiled.is_stale:
                return value
        return read(self, *args, **options)

    return read_consistently


class Solution:
    """Result of a solve. Most properties are computed when they are read.

    Attributes:
        q: configuration, (nq,).
        seconds: time from the call to the result, s.

    Solvers create solutions.

    Args:
        compiled: the compiled problem.
        objectives: the objectives, a function that makes them, the new target of the only objective (or the bytes
            of its numbers, which are copied faster), or None for the objectives of the compiled problem.
        q: configuration, (nq,).
        reports: the kernel report of each subproblem, or the bytes of its table, which are copied faster; or, for a
            chain that was solved, the return code of the chain kernel.
        seconds: time from the call to the result, s.
        details: all else.

    Example:
        >>> arm = mk.arm_2d([1.0, 1.0])
        >>> solution = mk.solve(arm, mk.PositionGoal("tool", (3.0, 0.0, 0.0), name="reach"), q0=[0.1, 0.2])
        >>> solution.success, solution.status, solution.unmet
        (False, CLOSEST, ('reach',))
        >>> round(solution.errors["reach"].position, 3)
        1.0
    """

    __slots__ = ("_compiled", "_details", "_is_verified", "_objectives_source", "_report", "q", "seconds")

    def __init__(
        self,
        compiled: CompiledProblem,
        objectives: tuple[Objective, ...] | Callable[[], tuple[Objective, ...]] | Array | bytes | float | None,
        q: Array,
        reports: tuple[KernelReport | bytes, ...] | int,
        seconds: float,
        details: SolutionDetails = NO_DETAILS,
    ) -> None:
        self._compiled, self._objectives_source, self._report = compiled, objectives, reports
        # a clock may run backwards between cores; `max` would take 0.1 us more, of the 3 us of a short call
        self.q, self.seconds = q, seconds if seconds > 0.0 else 0.0
        self._details, self._is_verified = details, False

    @property
    def history(self) -> Array | None:
        """Error after each iteration, as in `Iterate.error`, (k,); None if not requested."""
        return self._details.history

    @property
    def contacts(self) -> tuple[Contact, ...]:
        """Pairs in collision or closer than the clearance, the deepest first."""
        return self._details.contacts

    @property
    def blocking_contacts(self) -> tuple[Contact, ...]:
        """Pairs that are at the required clearance, if goals are not met and `contacts` is empty."""
        return self._details.blocking_contacts

    def __reduce__(self) -> tuple[Any, ...]:
        return Solution, (
            self._compiled, self.objectives, self.q, self._kernel_reports, self.seconds, self._details,
        )  # fmt: skip

    def __eq__(self, value: object) -> bool:
        if not isinstance(value, Solution):
            return NotImplemented
        if self is value:
            return True
        same_results = np.array_equal(self.q, value.q) and self.status is value.status and self.success == value.success
        return same_results and self.objectives == value.objectives and self._kernel_reports == value._kernel_reports

    def __hash__(self) -> int:
        return hash(self.q.tobytes())

    def _add_details(self, **changes: Any) -> None:
        """Replace fields of the details; for solvers."""
        self._details = replace(self._details, **changes)

    @property
    def _bounds(self) -> tuple[Array, Array]:
        """Lower and upper limits of the call, (nq,) each."""
        return self._details.bounds or self._compiled.bounds

    @property
    def _kernel_reports(self) -> tuple[KernelReport, ...]:
        """Kernel report of each subproblem."""
        source = self._report
        if isinstance(source, int):
            source = (chain_kernel_report(source),)
        reports = tuple(KernelReport.of_bytes(report) if isinstance(report, bytes) else report for report in source)
        self._report = reports
        return reports

    # ---- status and messages ----------------------------------------------------------------

    @property
    def success(self) -> bool:
        """Whether the solve succeeded.

        True if every required objective is within its tolerance, all loops and joint constraints hold, every pair keeps
        the required clearance, and `feasible` accepts q. Every scalar dof in q that may move is within its limits, also
        without success.
        """
        return not self._details.contacts and self._is_met

    @property
    def _is_met(self) -> bool:
        """Whether the solve succeeded apart from collisions."""
        if type(self._report) is int:
            return True
        if self._details.is_rejected:
            return False
        if all(report.success for report in self._kernel_reports):
            return True
        if not self._is_verified:
            # the kernel ends a search by the status of its stages; what counts is the configuration that it returns
            self._is_verified = True
            if self._holds_at_q():
                self._report = tuple(_as_converged(report) for report in self._kernel_reports)
                return True
        return False

    def _holds_at_q(self) -> bool:
        """Return whether objectives, loops, joint constraints and limits hold at q, computed from q alone."""
        return not self.unmet and self._is_closed_at_q() and not self._violated_limits()

    def _is_closed_at_q(self) -> bool:
        """Return whether loops and joint constraints hold at q, computed from q alone."""
        errors = self.closure_errors.values()
        are_loops_closed = all(max(error.position, error.rotation) <= CLOSURE_TOLERANCE for error in errors)
        return are_loops_closed and not self.violated_joint_constraints

    @property
    def status(self) -> Status:
        """Status of the solve; with several subproblems, the worst.

        CONVERGED also if `feasible` rejected every solution.
        """
        if self._is_met:
            return Status.IN_COLLISION if self.contacts else Status.CONVERGED
        status = max(
            (STATUS_BY_CODE[report.status] for report in self._kernel_reports),
            key=STATUS_BY_CODE.index,
            default=Status.CONVERGED,
        )
        # kernels close loops ten times as exactly, and may get stuck in between
        is_closed = status is Status.NOT_CLOSED and self._is_closed_at_q() and not self._violated_limits()
        return Status.STALLED if is_closed else status

    @property
    def iterations(self) -> int:
        """Number of steps tried, over all attempts and subproblems."""
        return sum(report.iterations for report in self._kernel_reports)

    @property
    def attempts(self) -> int:
        """Number of attempts, one for each start; with several subproblems, the largest number of a subproblem."""
        return max((report.attempts for report in self._kernel_reports), default=0)

    @property
    def message(self) -> str:
        """Sentence with the reason why the solve succeeded or failed."""
        if self.success:
            count = sum(objective.required for objective in self.objectives)
            text = f"{count} of {format_count(count, 'objective')} met"
        elif self._details.is_rejected:
            text = "the function `feasible` rejects every solution found"
        elif self._is_met:
            text = f"all objectives are met, but {describe_contacts(self.contacts)}"
        else:
            starts = "this start" if self.attempts <= 1 else f"{self.attempts} starts"
            if reasons := self.out_of_reach:
                text = f"out of reach: {', '.join(f'{name} ({reason})' for name, reason in reasons.items())}; "
                text += self.status.value.removeprefix("not reached: ")
            else:
                text = self.status.value.replace("not reached:", f"not reached from {starts}:")
            if violated_errors := self.violated_joint_constraints:
                text += "; violated: "
                text += ", ".join(
                    f"joint constraint {name} (error {error:.3g})" for name, error in violated_errors.items()
                )
            if unmet_names := self.unmet:
                text += f"; not met: {', '.join(f'{name} ({self.errors[name]})' for name in unmet_names)}"
            if self.active_limits:
                text += f"; at a limit: {', '.join(self.active_limits)}"
            text += "".join(f"; {name} conflicts with {opposing}" for name, opposing in self.conflicts)
            if self.contacts:
                text += f"; in addition, {describe_contacts(self.contacts)}"
            text += "".join(f"; {contact.b!r} blocks {contact.a!r}" for contact in self.blocking_contacts)
        if any(report.start_was_clamped for report in self._kernel_reports):
            text += "; the start was outside the limits and was clamped to them"
        if self.outside_limits:
            text += f"; outside the limits and moved by no objective: {', '.join(self.outside_limits)}"
        return f"{text}; {self._details.note}" if self._details.note else text

    def __repr__(self) -> str:
        outcome = "solved" if self.success else f"not solved, {self.status.name}"
        attempts = "" if self.attempts == 1 else f", {self.attempts} attempts"
        effort = f"{format_count(self.iterations, 'iteration')}{attempts}, {_format_seconds(self.seconds)}"
        errors = [
            error for error, objective in zip(self.errors.values(), self.objectives, strict=True) if objective.required
        ]
        position_error = max((error.position for error in errors), default=0.0)
        rotation_error = max((error.rotation for error in errors), default=0.0)
        return f"<{outcome} in {effort}: errors {position_error:.2g} m, {rotation_error:.2g} rad; {self.message}>"

    def require(self) -> Solution:
        """Return this solution if it is a success.

        Raises:
            NotSolved: if it is not a success; the message has the reason, and the exception holds the solution.
        """
        if not self.success:
            may_retry = self.attempts <= 1 and self.status in (Status.CLOSEST, Status.STALLED, Status.NOT_CLOSED)
            may_retry = may_retry and not self.out_of_reach
            hint = "; another start may reach the target (try restarts=20)" if may_retry else ""
            raise NotSolved(f"not solved ({self.status.name}): {self.message}{hint}", self)
        return self

    @_unaffected_by_edits
    def __getitem__(self, joint: str) -> float | Array:
        """Return the value of a joint (rad or m), or an array if the joint has several dofs."""
        values = self.mechanism.values(self.q)
        self.mechanism.joint(joint)
        return values[joint] if joint in values else self._closing_value(joint)

    @property
    @_unaffected_by_edits
    def values(self) -> dict[str, float | Array]:
        """Joint values by joint name, rad or m, without the joints that close loops."""
        return self.mechanism.values(self.q)

    # ---- errors, limits, conflicts ----------------------------------------------------------

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of the solver; if it has been edited since, a copy as it was."""
        return self._compiled.compiled_mechanism

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Objectives of the call, with its targets."""
        source = self._objectives_source
        if source is None:
            return self._compiled.objectives
        if callable(source):
            source = self._objectives_source = source()
        if isinstance(source, tuple):
            return source
        objective = self._compiled.objectives[0]
        if isinstance(source, bytes):
            spec = objective.target_spec
            assert spec is not None
            assert spec.value is not None
            source = spec.restore(np.frombuffer(source).reshape(spec.value.shape))
        return (objective.with_target(source),)

    @property
    def subproblems(self) -> tuple[SubproblemReport, ...]:
        """Report of each subproblem; subproblems share no dof."""
        seconds = self._details.subproblem_seconds or (self.seconds,) * len(self._kernel_reports)
        return tuple(
            subproblem_report(self._compiled, k, report, seconds[k]) for k, report in enumerate(self._kernel_reports)
        )

    @property
    @_unaffected_by_edits
    def errors(self) -> Mapping[str, ErrorNorms]:
        """Position error (m) and rotation error (rad) of each objective, by the names in `names`."""
        named = zip(self.names, self.objectives, strict=True)
        return {name: objective.error(self.mechanism, self.q) for name, objective in named}

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each objective: its own name, with its index if several have it; or its class and its index."""
        return objective_names(self.objectives)

    @property
    def unmet(self) -> tuple[str, ...]:
        """Names of the required objectives that are not within their tolerance."""
        named_errors = zip(self.errors.items(), self.objectives, strict=True)
        return tuple(
            name
            for (name, error), objective in named_errors
            if objective.required
            and (error.position > objective.tolerance or error.rotation > objective.angle_tolerance)
        )

    @property
    @_unaffected_by_edits
    def out_of_reach(self) -> Mapping[str, str]:
        """Objectives that no configuration can meet, with the reason, by the names in `names`.

        Known are targets that are farther away or nearer than the lengths between two frames allow, also across loops,
        and values outside the limits. Other unmet objectives may or may not be out of reach.

        Example:
            >>> arm = mk.arm_2d([1.0, 0.4])
            >>> mk.solve(arm, mk.PositionGoal("tool", (0.5, 0.0, 0.0), name="reach"), q0=[0.1, 0.2]).out_of_reach
            {'reach': '0.1 m too near for every configuration'}
        """
        unmet_names = self.unmet
        if not unmet_names:
            return {}
        from mechanik.solver.reach_limits import reasons_out_of_reach

        reasons = reasons_out_of_reach(self.mechanism, self.objectives, self.q, self._bounds, self.moving_dofs)
        names = self.names
        return {names[k]: reason for k, reason in reasons.items() if names[k] in unmet_names}

    @property
    @_unaffected_by_edits
    def closure_errors(self) -> Mapping[str, ErrorNorms]:
        """Position error (m) and rotation error (rad) of each loop, by the name of the joint that closes it."""
        from mechanik.objectives.constraint_relations import closure_relations
        from mechanik.objectives.relation import evaluate_relation

        errors: dict[str, ErrorNorms] = {}
        for name, closure in self.mechanism.closures.items():
            position = rotation = 0.0
            for relation in closure_relations(self.mechanism, closure):
                values, is_length = evaluate_relation(self.mechanism, relation, self.q)[0], np.array(relation.is_length)
                position = max(position, float(np.linalg.norm(values[is_length])))
                rotation = max(rotation, float(np.linalg.norm(values[~is_length])))
            errors[name] = ErrorNorms(position, rotation)
        return errors

    @property
    @_unaffected_by_edits
    def joint_constraint_errors(self) -> Mapping[str, float]:
        """Error of each joint constraint by name: its terms minus its constant, in its own unit."""
        from mechanik.objectives.constraint_relations import joint_constraint_relations, joint_constraint_residuals

        relations = joint_constraint_relations(self.mechanism)
        return {
            name: float(joint_constraint_residuals(self.mechanism, relation, self.q))
            for name, relation in relations.items()
        }

    @property
    @_unaffected_by_edits
    def violated_joint_constraints(self) -> Mapping[str, float]:
        """Entries of `joint_constraint_errors` that exceed the tolerance."""
        constraints = self.mechanism.joint_constraints
        return {
            name: error
            for name, error in self.joint_constraint_errors.items()
            if abs(error) > JOINT_CONSTRAINT_TOLERANCE * constraints[name].scale
        }

    @property
    @_unaffected_by_edits
    def active_limits(self) -> Mapping[str, str]:
        """Dofs at a limit, "lower" or "upper" by name, and joints at the edge of their cone, "cone" by name.

        The dofs of closing joints are included; of a closing joint with several rotations, only its translations and
        its cone.
        """
        space = self.mechanism.space
        lower, upper = self._bounds
        limits: dict[str, str] = {}
        for name, value, low, high in zip(space.q_names, self.q, lower, upper, strict=True):
            if low < high and value <= low + LIMIT_TOLERANCE:
                limits[name] = "lower"
            elif low < high and value >= high - LIMIT_TOLERANCE:
                limits[name] = "upper"
        if self.mechanism.closures:
            limits |= self._at_closing_limits()
        if any(joint.cone is not None for joint in self.mechanism.joints.values()):
            limits |= self._at_cones()
        return limits

    @property
    @_unaffected_by_edits
    def outside_limits(self) -> tuple[str, ...]:
        """Names of dofs outside their limits that no objective or loop moves, so that they stay at their start."""
        space = self.mechanism.space
        lower, upper = self._bounds
        names: list[str] = []
        for k, v in zip(space.scalars_q.tolist(), space.scalars_v.tolist(), strict=True):
            is_inside = lower[k] - LIMIT_TOLERANCE <= self.q[k] <= upper[k] + LIMIT_TOLERANCE
            if not is_inside and not self.moving_dofs[v]:
                names.append(space.q_names[k])
        return tuple(names)

    @property
    @_unaffected_by_edits
    def conflicts(self) -> tuple[tuple[str, str], ...]:
        """Pairs of objective names (unmet, opposing): the first objective is not met, and the second opposes it.

        Two objectives conflict if their gradients oppose each other over the motions that loops and joint constraints
        allow. The second has the same or a higher priority.
        """
        unmet_names = self.unmet
        if not unmet_names:
            return ()
        motions = self._feasible_motions()
        gradients = {
            name: motions.T
            @ (objective.jacobian(self.mechanism, self.q).T @ objective.residual(self.mechanism, self.q))
            for name, objective in zip(self.names, self.objectives, strict=True)
        }
        pairs: list[tuple[str, str]] = []
        levels = dict(zip(self.names, (objective.level for objective in self.objectives), strict=True))
        for name in unmet_names:
            for opposing_name in self.names:
                if opposing_name == name or levels[opposing_name] > levels[name]:
                    continue
                product = float(np.linalg.norm(gradients[name]) * np.linalg.norm(gradients[opposing_name]))
                are_opposed = float(gradients[name] @ gradients[opposing_name]) < -1e-3 * product
                if product > 1e-12 and are_opposed and (opposing_name, name) not in pairs:
                    pairs.append((name, opposing_name))
        return tuple(pairs)

    @property
    @_unaffected_by_edits
    def condition(self) -> float:
        """Condition number of the Jacobian of the required objectives; infinite at a singular configuration."""
        jacobians = [objective.jacobian(self.mechanism, self.q) for objective in self.objectives if objective.required]
        J = np.concatenate([np.zeros((0, self.mechanism.nv)), *jacobians])[:, self.moving_dofs]
        if not J.size:
            return 1.0
        singular_values = np.linalg.svd(J, compute_uv=False)
        return (
            float(singular_values[0] / singular_values[-1])
            if singular_values[-1] > 1e-15 * singular_values[0]
            else np.inf
        )

    @property
    @_unaffected_by_edits
    def singularity(self) -> Singularity:
        """Singularity of the configuration: its kinds, how near they are, and the joint motions that belong to them.

        False in a boolean context if the configuration is regular or cannot be analysed. Takes milliseconds.
        """
        from mechanik.solver.singularity import find_singularity

        return find_singularity(self.mechanism, self.objectives, self.q, self.moving_dofs)

    def _feasible_motions(self) -> Array:
        """Basis (nv, k) of the motions that loops and joint constraints allow; the identity if there are neither.

        With loops or joint constraints, the motions are orthonormal after lengths are divided by the characteristic
        length of the mechanism.
        """
        mechanism = self.mechanism
        if not mechanism.closures and not mechanism.joint_constraints:
            return np.eye(mechanism.nv)
        system = linearize_system(mechanism, self.q, self.moving_dofs)
        return system.unit[:, None] * system.basis()

    @property
    def moving_dofs(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Mask (nv,) of the dofs that the call could move."""
        moving_dofs, locked_dofs = self._compiled.moving_dofs, self._details.locked_dofs
        return moving_dofs if locked_dofs is None else moving_dofs & ~locked_dofs

    @_unaffected_by_edits
    def _violated_limits(self) -> tuple[str, ...]:
        """Return the names of moving dofs outside their limits, and of joints outside their cone or closing limits."""
        space, moving_dofs = self.mechanism.space, self.moving_dofs
        lower, upper = self._bounds
        names = [
            space.q_names[k]
            for k, v in zip(space.scalars_q.tolist(), space.scalars_v.tolist(), strict=True)
            if moving_dofs[v] and not lower[k] - LIMIT_TOLERANCE <= self.q[k] <= upper[k] + LIMIT_TOLERANCE
        ]
        from mechanik.objectives.constraint_relations import limit_violations

        violations = limit_violations(self.mechanism, self.q)
        return (*names, *(name for name, violation in violations.items() if violation > CONE_TOLERANCE))

    def _at_closing_limits(self) -> dict[str, str]:
        from mechanik.objectives.constraint_relations import limits_reached

        return limits_reached(self.mechanism, self.q, CONE_TOLERANCE)

    def _at_cones(self) -> dict[str, str]:
        """Return the joints at the edge of their cone."""
        from mechanik.objectives.constraint_relations import swing_angles

        angles = {name: joint.cone.angle for name, joint in self.mechanism.joints.items() if joint.cone is not None}
        tilts = swing_angles(self.mechanism, self.q)
        return {name: "cone" for name, tilt in tilts.items() if tilt >= angles[name] - CONE_TOLERANCE}

    def _closing_value(self, joint: str) -> float | Array:
        """Return the value of a closing joint, computed from the poses of its links at q."""
        values = self.mechanism.closing_joint_values(joint, self.q)
        return float(values[0]) if len(values) == 1 else values


def objective_names(objectives: Sequence[Objective]) -> tuple[str, ...]:
    """Return a unique name for each objective: its own, with its index if several have it; or its class and its index.

    If a name with its index is the own name of another objective, the index is added once more.
    """
    names = [objective.name or f"{type(objective).__name__} {k}" for k, objective in enumerate(objectives)]
    while len(set(names)) < len(names):
        names = [name if names.count(name) == 1 else f"{name} {k}" for k, name in enumerate(names)]
    return tuple(names)


def describe_contacts(contacts: Sequence[Contact]) -> str:
    """Describe the deepest contact, and say how many others there are."""
    more = "" if len(contacts) == 1 else f" (and {format_count(len(contacts) - 1, 'other pair')})"
    return f"{contacts[0]}{more}"


def _format_seconds(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def chain_kernel_report(code: int) -> KernelReport:
    """Convert the return code of the chain kernel for a solved target to a report of the descent kernel."""
    report = KernelReport.of_attempt(CHAIN_STAGES, status=0.0, iterations=0)
    report.set_result(0.0, (code & 0xFFFFFFFF) >> 1, code >> 32, bool(code & 1))
    return report


CHAIN_STAGES = 2
"""Stages of the problem of a chain: the constraints, of which there are none, and the goal."""


def _as_converged(report: KernelReport) -> KernelReport:
    """Return a copy of a report with the status of a success, for a configuration at which everything holds."""
    report = report.copy()
    report.set_converged()
    return report


def subproblem_report(compiled: CompiledProblem, k: int, report: KernelReport, seconds: float) -> SubproblemReport:
    """Convert the kernel report of subproblem `k` to a `SubproblemReport`."""
    problem = compiled.problem
    subproblem = problem.subproblems[k]
    owners, closure_count, constraint_names = (
        dict.fromkeys(subproblem.owners),
        len(problem.closures),
        tuple(problem.joint_constraints),
    )
    stages, v_names = subproblem.required_stages, compiled.compiled_mechanism.space.v_names
    residual = next((report.stage_cost(s) for s in stages if report.stage_status(s)), 0.0)
    return SubproblemReport(
        objectives=tuple(owner for owner in owners if 0 <= owner < len(compiled.objectives)),
        closures=tuple(problem.closures[-1 - owner].name for owner in owners if -closure_count <= owner < 0),
        joints=tuple(name for name, moves in zip(v_names, subproblem.moving_dofs, strict=True) if moves),
        status=STATUS_BY_CODE[report.status],
        residual=float(np.sqrt(residual)) if np.isfinite(residual) else float("inf"),
        iterations=report.iterations,
        seconds=seconds,
        joint_constraints=tuple(
            constraint_names[-1 - owner - closure_count]
            for owner in owners
            if -closure_count - len(constraint_names) <= owner < -closure_count
        ),
    )
