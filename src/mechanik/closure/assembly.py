"""Result of `Mechanism.assemble`, and the functions that create it after a continuation.

A driven joint may be immobile although the linear analysis shows a motion (an infinitesimal mechanism). The simplest
case is two bars stretched on a line: if the pin between them moves normal to the line, the residual is zero to first
order but increases with the square of the step, so the loop is closed only on the line. `is_immobile` detects this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np

from mechanik.closure.bifurcation import branch_directions
from mechanik.closure.continuation import NEAR_SINGULAR_RATIO, Continuation, ContinuationPoint, ContinuationProblem
from mechanik.closure.driven_joints import DrivenJoints
from mechanik.closure.loop_system import LoopSystem
from mechanik.errors import NotSolved
from mechanik.model import Mechanism
from mechanik.objectives import ErrorNorms, JointValues
from mechanik.objectives.constraint_relations import (
    closure_relations,
    joint_constraint_relations,
    joint_constraint_residuals,
)
from mechanik.objectives.relation import evaluate_relation
from mechanik.solver import Solver
from mechanik.solver.solution import Status
from mechanik.spatial.array import Array
from mechanik.validation import format_count

if TYPE_CHECKING:
    from mechanik.solver.singularity import Singularity


@dataclass(frozen=True, slots=True, eq=False)
class PassedSingularity:
    """A singular configuration on an assembly path.

    Attributes:
        kind: at a "change point" two branches cross, and the path continues on the same branch. At a "dead point" the
            driven joints cannot move further, and the path ends.
        q: (nq,) configuration. At a dead point it is exact, unless the driven joints leave dofs free; at a change point
            it is within 1e-5 (rad, or lengths divided by a third of the mechanism's reach).

    Example:
        >>> four_bar = mk.gallery.four_bar()
        >>> assembly = four_bar.assemble({"rocker_joint": 3.0})
        >>> assembly.success, [singularity.kind for singularity in assembly.singularities]
        (False, ['dead point'])
    """

    kind: Literal["change point", "dead point"]
    q: Array


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assembly:
    """Result of `Mechanism.assemble`: a configuration with closed loops and the driven joints at their values.

    Attributes:
        mechanism: the mechanism; its present configuration does not change.
        inputs: requested values of the driven joints by name, (n,) each, m or rad.
        q: (nq,) configuration with closed loops, and the driven joints at their values or as near to them as the search
            found; with status NOT_CLOSED, the configuration with the smallest violation that was found.
        success: whether the status is CONVERGED. Then the loops are closed to 1e-9 (rad, or lengths divided by a third
            of the mechanism's reach), all joints are inside their limits, and the driven joints are within 2e-8 of
            their values (m, rad). Near a dead point rounding errors do not allow a smaller tolerance.
        status: CONVERGED; CLOSEST if the driven joints do not reach their values inside the limits; NOT_CLOSED if the
            loops cannot be closed; STALLED if the branch was lost; TIMEOUT if the path is too long (pass this
            assembly as `q0` to continue).
        message: the result, or the reason of a failure.
        input_errors: distance of each driven joint from its value by name, m or rad. Full rotations count, except for
            spherical joints and closing joints with several rotation axes.
        singularities: singular configurations on the path, in order.
        heading: (nv,) direction of motion at `q`, in m and rad, of any length; zero if it is unknown. A continuation
            that starts at a change point needs the heading to stay on its branch.
        closing_angles: angle of each driven joint that closes a loop and rotates about one axis, by joint name, rad.
            These joints have no value in `q`, so their full rotations are counted here.

    Example:
        >>> four_bar = mk.gallery.four_bar()
        >>> assembly = four_bar.assemble({"crank_joint": 1.2})
        >>> assembly.success, round(assembly["rocker_joint"], 3)
        (True, 1.713)
    """

    mechanism: Mechanism
    inputs: Mapping[str, Array]
    q: Array
    success: bool
    status: Status
    message: str
    input_errors: Mapping[str, float]
    singularities: tuple[PassedSingularity, ...]
    heading: Array
    closing_angles: Mapping[str, float] = field(default_factory=dict[str, float])

    def __repr__(self) -> str:
        state = "assembled" if self.success else f"not assembled, {self.status.name}"
        errors = self.closure_errors.values()
        distance = max((error.position for error in errors), default=0.0)
        angle = max((error.rotation for error in errors), default=0.0)
        return f"<{state}: largest loop gap {distance:.2g} m, {angle:.2g} rad; {self.message}>"

    def __getitem__(self, joint: str) -> float | Array:
        """Return the value of any joint, m or rad, also of a closing joint; an array if it has several dofs."""
        self.mechanism.joint(joint)
        values = self.mechanism.values(self.q)
        if joint in values:
            return values[joint]
        previous_q = self.mechanism.q
        try:
            self.mechanism.q = self.q
            joint_values = self.mechanism.closure(joint).joint_values()
        finally:
            self.mechanism.q = previous_q
        if joint in self.closing_angles:
            joint_values = np.append(joint_values[:-1], self.closing_angles[joint])
        return float(joint_values[0]) if len(joint_values) == 1 else joint_values

    @property
    def values(self) -> dict[str, float | Array]:
        """Joint values by joint name, m or rad, without the joints that close loops."""
        return self.mechanism.values(self.q)

    @property
    def closure_errors(self) -> Mapping[str, ErrorNorms]:
        """Gap of each loop, m and rad, by the name of the joint that closes it."""
        errors: dict[str, ErrorNorms] = {}
        for name, closure in self.mechanism.closures.items():
            position = rotation = 0.0
            for relation in closure_relations(self.mechanism, closure):
                residual = evaluate_relation(self.mechanism, relation, self.q)[0]
                is_length = np.array(relation.is_length)
                position = max(position, float(np.linalg.norm(residual[is_length])))
                rotation = max(rotation, float(np.linalg.norm(residual[~is_length])))
            errors[name] = ErrorNorms(position, rotation)
        return errors

    @property
    def joint_constraint_errors(self) -> Mapping[str, float]:
        """Error of each joint constraint by name: the sum of its terms minus its constant, in its own unit."""
        relations = joint_constraint_relations(self.mechanism)
        return {
            name: float(joint_constraint_residuals(self.mechanism, relation, self.q))
            for name, relation in relations.items()
        }

    @property
    def singular(self) -> Singularity:
        """Singularity analysis at `q`: the kinds, how near they are, and the joint motions that belong to them."""
        from mechanik.solver.singularity import SingularDirection, find_singularity

        objectives = (JointValues(self.inputs, angle_mode="exact"),) if self.inputs else ()
        singularity = find_singularity(self.mechanism, objectives, self.q, np.ones(self.mechanism.nv, dtype=np.bool_))
        if not self.is_at_dead_point or "dead point" in singularity.kinds:
            return singularity
        # if the loop Jacobian loses rank too, the analysis misses the dead point at which the path has ended
        motion = dict(zip(self.mechanism.space.v_names, self.heading.tolist(), strict=True))
        dead_point = SingularDirection("dead point", 0.0, MappingProxyType(motion))
        other_directions = (direction for direction in singularity.directions if direction.kind != "dead point")
        return replace(singularity, directions=(*other_directions, dead_point))

    @property
    def is_at_dead_point(self) -> bool:
        """Whether the path ended at a dead point, and `q` is that point."""
        return (
            bool(self.singularities)
            and self.singularities[-1].kind == "dead point"
            and np.array_equal(self.singularities[-1].q, self.q)
        )

    def require(self) -> Assembly:
        """Return this assembly if it succeeded.

        Returns:
            The assembly itself, so that calls can be chained.

        Raises:
            NotSolved: if `success` is false; its message has the reason.
        """
        if not self.success:
            raise NotSolved(f"not assembled ({self.status.name}): {self.message}", self)
        return self


MAX_CLOSURE_ERROR = 1e-9
"""Largest residual of a closed loop, and largest violation of a limit: scaled units, or m and rad."""
MAX_INPUT_ERROR = 2e-8
"""Largest error of a driven joint at its value, m and rad. At a dead point only half of the digits are known."""


def make_assembly(
    problem: ContinuationProblem, continuation: Continuation, point: ContinuationPoint, heading: Array
) -> Assembly:
    """Make the assembly for a continuation that ended at its goal `point`.

    Args:
        heading: (nv,) heading of the assembly.
    """
    inputs, loops = problem.inputs, problem.loops
    q = inputs.with_values(point.q, point.s)
    errors = inputs.errors(q, point.s)
    violation, joint_name = loops.limit_violation(q)
    singularities = tuple(
        PassedSingularity("change point", change_point.q) for change_point in continuation.change_points
    )
    reached_count = sum(error < MAX_INPUT_ERROR for error in errors.values())
    status, text = Status.CONVERGED, summary_text(loops, errors, singularities)
    if not _is_closed(loops, q):
        status, text = Status.STALLED, "the branch was lost on the path; try more steps, or another q0"
    elif continuation.stop_reason == "stuck" and not continuation.redundancy:
        status = Status.STALLED
        text = "the inputs have their values, but the branch was lost; q may be on another branch; try more steps"
    elif inputs.clamped_names:
        status = Status.CLOSEST
        text = f"input values outside the limits are set to the nearest limit: {', '.join(inputs.clamped_names)}"
    elif reached_count < len(errors):
        status, text = Status.CLOSEST, "the input values are not reached from this start"
    elif violation > MAX_CLOSURE_ERROR:
        status, text = Status.CLOSEST, f"{joint_name} is outside its limits; try another q0"
    success, closing_angles = status is Status.CONVERGED, inputs.closing_angles(q, point.s)
    return Assembly(
        loops.mechanism, inputs.values, q, success, status, text, errors, singularities, heading, closing_angles
    )


def summary_text(loops: LoopSystem, errors: Mapping[str, float], change_points: Sequence[PassedSingularity]) -> str:
    """Return a message with the numbers of driven joints at their values, of loops and of change points."""
    text = f"{format_count(len(loops.mechanism.closures), 'loop')} closed"
    if errors:
        reached_count = sum(error < MAX_INPUT_ERROR for error in errors.values())
        text = f"{reached_count} of {format_count(len(errors), 'input')} reached, {text}"
    return f"{text}; passed {format_count(len(change_points), 'change point')}" if change_points else text


def unclosed_assembly(problem: ContinuationProblem, q: Array) -> Assembly:
    """Make the assembly for loops that could not be closed; `q` (nq,) has the smallest violation that was found."""
    loops, inputs = problem.loops, problem.inputs
    text = "the loops cannot be closed, or the joint constraints cannot be satisfied"
    errors, zero_heading = inputs.errors(q, 0.0), np.zeros(loops.n)
    assembly = Assembly(loops.mechanism, inputs.values, q, False, Status.NOT_CLOSED, text, errors, (), zero_heading)
    violations: list[str] = []
    for name, error in assembly.closure_errors.items():
        gaps = [
            f"{gap:.4g} {unit}"
            for gap, unit in ((error.position, "m"), (error.rotation, "rad"))
            if gap > MAX_CLOSURE_ERROR
        ]
        violations += [f"loop {name} (gap {' and '.join(gaps)})"] if gaps else []
    violations += [
        f"joint constraint {name} (error {abs(error):.4g})"
        for name, error in assembly.joint_constraint_errors.items()
        if abs(error) > MAX_CLOSURE_ERROR
    ]
    violation, joint_name = loops.limit_violation(q)
    violations += [f"{joint_name} (outside its limits)"] if violation > MAX_CLOSURE_ERROR else []
    advice = "try a q0 nearer to closed loops, or search with assembly_modes"
    return replace(assembly, message=f"{text} near q0: {', '.join(violations)}; {advice}")


def nearest_assembly(problem: ContinuationProblem, continuation: Continuation) -> Assembly:
    """Make the assembly for a continuation that stopped before its goal.

    With several driven joints or free dofs, a configuration that is not on the straight path may be nearer to the
    goal; a solve from the last point searches for it.
    """
    loops, inputs, present_point = problem.loops, problem.inputs, continuation.present_point
    q = present_point.q
    singularities = [PassedSingularity("change point", change_point.q) for change_point in continuation.change_points]
    if continuation.stop_reason == "dead point":
        singularities.append(PassedSingularity("dead point", q))
    if continuation.stop_reason != "steps" and (len(inputs.start_residual) > 1 or continuation.redundancy):
        solution = Solver(loops.mechanism, JointValues(inputs.values, angle_mode="exact")).solve(q0=q)
        error, solution_error = (
            np.linalg.norm(list(inputs.errors(candidate, present_point.s).values())) for candidate in (q, solution.q)
        )
        if _is_closed(loops, solution.q) and solution_error < error - MAX_CLOSURE_ERROR:
            q = solution.q
            if solution.success and not inputs.clamped_names:
                exact_point = problem.project_at(q, inputs.path_length)
                if (
                    exact_point.error < MAX_CLOSURE_ERROR
                    and loops.limit_violation(exact_point.q)[0] < MAX_CLOSURE_ERROR
                ):
                    return make_assembly(problem, continuation, exact_point, np.zeros(loops.n))
    errors = inputs.errors(q, present_point.s)
    is_at_crossing = present_point.relative_singular_value(continuation.rank) < NEAR_SINGULAR_RATIO
    reason = {
        "dead point": "the mechanism is at a dead point" + (", where loops lose rank too" if is_at_crossing else ""),
        "limit": f"{continuation.limit_name} is at its limit",
        "stuck": "the branch could not be followed further",
        "conflict": "the inputs block each other",
        "steps": "",
    }[continuation.stop_reason]
    missed_text = ", ".join(f"{name} (error {error:.4g})" for name, error in errors.items() if error > MAX_INPUT_ERROR)
    text, status = f"not reached on this branch: {missed_text}; {reason}", Status.CLOSEST
    if not missed_text:
        status, text = (
            Status.CONVERGED,
            f"{summary_text(loops, errors, singularities[: len(continuation.change_points)])}; {reason}",
        )
    elif continuation.stop_reason == "stuck":
        status = Status.STALLED
    elif continuation.stop_reason == "steps":
        status = Status.TIMEOUT
        step_text = format_count(continuation.step_count, "step")
        text = f"stopped after {step_text}: {missed_text}; pass this assembly as q0 to continue"
    heading = continuation.tangent[:-1] * loops.unit
    success, angles = status is Status.CONVERGED, inputs.closing_angles(q, present_point.s)
    return Assembly(
        loops.mechanism, inputs.values, q, success, status, text, errors, tuple(singularities), heading, angles
    )


def _is_closed(loops: LoopSystem, q: Array) -> bool:
    return float(np.abs(loops.residual(q)[0]).max(initial=0.0)) < MAX_CLOSURE_ERROR


MIN_DISTANCE = 0.01
"""Length of a motion or of a path, scaled units (see `loop_system`), up to which a continuation has not moved."""
MIN_GAIN = 2e-5
"""Progress along the path (scaled units) below which there is no motion. In this test loops count as closed up to
1e-10, and the residual increases with the square of the step, so an immobile mechanism seems to move about this far.
"""


def is_immobile(continuation: Continuation) -> bool:
    """Return whether a continuation stayed at its start, and no branch from there moves the driven joints forward."""
    start = continuation.points[0]
    if float(np.linalg.norm(continuation.problem.difference(start, continuation.present_point))) > MIN_DISTANCE:
        return False
    return branch_directions(continuation.problem, start).gain < MIN_GAIN


def immobile_assembly(problem: ContinuationProblem, q: Array) -> Assembly:
    """Make the assembly for driven joints that cannot move from `q` (nq,); the message names them."""
    loops, inputs = problem.loops, problem.inputs
    errors = inputs.errors(q, 0.0)
    immobile_names = [name for name in inputs.values if _is_immobile_alone(problem, name, q)] or list(inputs.values)
    names = ", ".join(f"{name} cannot move (error {errors[name]:.4g})" for name in immobile_names)
    text = f"{names}: the loops allow only an infinitesimal motion"
    zero_heading, angles = np.zeros(loops.n), inputs.closing_angles(q, 0.0)
    return Assembly(loops.mechanism, inputs.values, q, False, Status.CLOSEST, text, errors, (), zero_heading, angles)


def _is_immobile_alone(problem: ContinuationProblem, name: str, q: Array) -> bool:
    """Return whether a driven joint cannot move from `q` (nq,) if all other driven joints are released."""
    loops = problem.loops
    single_problem = ContinuationProblem(loops, DrivenJoints(loops, {name: problem.inputs.values[name]}, q))
    return (
        single_problem.inputs.path_length > MIN_DISTANCE
        and branch_directions(single_problem, single_problem.point_at(q, 0.0)).gain < MIN_GAIN
    )
