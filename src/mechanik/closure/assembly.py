"""The result of `Mechanism.assemble`, and the functions that make it from a finished continuation.

A driven joint may be immobile although the linear analysis shows a motion (an infinitesimal mechanism). The simplest
case is two bars stretched on a line: the residual does not change to first order across the line, but it grows with the
square of the step, and the loops stay closed only on the line. `is_immobile` detects this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np

from mechanik.closure.bifurcation import branch_directions
from mechanik.closure.continuation import NEAR_SINGULAR, Continuation, ContinuationPoint, ContinuationProblem
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
        kind: at a "change point" two branches cross, and the path goes straight on. At a "dead point" the driven joints
            cannot move on, and the path ends.
        q: (nq,) configuration. At a dead point it is exact; at a change point it is within 1e-5 (rad, or lengths in
            units of the mechanism's size).

    Example:
        >>> four_bar = mk.gallery.four_bar()
        >>> assembly = four_bar.assemble({"rocker_joint": 3.0})
        >>> assembly.success, [one.kind for one in assembly.singularities]
        (False, ['dead point'])
    """

    kind: Literal["change point", "dead point"]
    q: Array


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assembly:
    """The result of `Mechanism.assemble`: a configuration with closed loops and the driven joints at their values.

    Attributes:
        mechanism: the mechanism. Its own configuration does not change.
        inputs: requested values of the driven joints by name, (n,) each, m or rad.
        q: (nq,) configuration with closed loops, and the driven joints at their values, or as near as they come on this
            branch.
        success: whether the loops are closed to 1e-9 and the driven joints are within 2e-8 of their values (m, rad).
            At a dead point rounding leaves no more digits.
        status: CONVERGED; CLOSEST if the driven joints cannot reach their values; OPEN if the loops cannot be closed (q
            has the smallest gap that was found); STALLED if the branch was lost; TIMEOUT if the path is too long (pass
            this assembly as `q0` to go on).
        message: the reason, as a sentence.
        input_errors: distance of each driven joint from its value by name, m or rad, full rotations included.
        singularities: singular configurations on the path, in order.
        heading: (nv,) direction of motion at `q`, m and rad per unit of the path parameter; zero if nothing moved. A
            continuation from a change point needs it to stay on its branch.
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
        verdict = "assembled" if self.success else f"not assembled, {self.status.name}"
        errors = self.closure_errors.values()
        worst = max((error.position for error in errors), default=0.0)
        angle = max((error.rotation for error in errors), default=0.0)
        return f"<{verdict}: loops open by {worst:.2g} m, {angle:.2g} rad; {self.message}>"

    def __getitem__(self, joint: str) -> float | Array:
        """Return the value of a joint, also of one that closes a loop, m or rad; an array if it has several dofs."""
        self.mechanism.joint(joint)
        values = self.mechanism.values(self.q)
        if joint in values:
            return values[joint]
        before = self.mechanism.q
        try:
            self.mechanism.q = self.q
            measured = self.mechanism.closure(joint).joint_values()
        finally:
            self.mechanism.q = before
        if joint in self.closing_angles:
            measured = np.append(measured[:-1], self.closing_angles[joint])
        return float(measured[0]) if len(measured) == 1 else measured

    @property
    def values(self) -> dict[str, float | Array]:
        """Joint values by joint name, m or rad, without the joints that close loops."""
        return self.mechanism.values(self.q)

    @property
    def closure_errors(self) -> Mapping[str, ErrorNorms]:
        """Gap of each loop, m and rad, by the name of the joint that closes it."""
        found: dict[str, ErrorNorms] = {}
        for name, closure in self.mechanism.closures.items():
            position = rotation = 0.0
            for relation in closure_relations(self.mechanism, closure):
                rows, metres = evaluate_relation(self.mechanism, relation, self.q)[0], np.array(relation.is_length)
                position = max(position, float(np.linalg.norm(rows[metres])))
                rotation = max(rotation, float(np.linalg.norm(rows[~metres])))
            found[name] = ErrorNorms(position, rotation)
        return found

    @property
    def joint_constraint_errors(self) -> Mapping[str, float]:
        """Residual of each joint constraint by name: the sum of its terms minus its constant, in its own unit."""
        relations = joint_constraint_relations(self.mechanism)
        return {
            name: float(joint_constraint_residuals(self.mechanism, relation, self.q))
            for name, relation in relations.items()
        }

    @property
    def singular(self) -> Singularity:
        """Singularity analysis at `q`: the kind, the distance, and the joints that move there without effect."""
        from mechanik.solver.singularity import SingularDirection, find_singularity

        asked = (JointValues(self.inputs, angle_mode="exact"),) if self.inputs else ()
        found = find_singularity(self.mechanism, asked, self.q, np.ones(self.mechanism.nv, dtype=np.bool_))
        if not self.is_at_dead_point or "dead point" in found.kinds:
            return found
        # where the loop Jacobian loses rank too, the analysis cannot show the dead point, but the continuation has
        motion = dict(zip(self.mechanism.space.v_names, self.heading.tolist(), strict=True))
        others = tuple(part for part in found.directions if part.kind != "dead point")
        return replace(found, directions=(*others, SingularDirection("dead point", 0.0, MappingProxyType(motion))))

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
"""m and rad; a loop with a smaller gap is closed."""
MAX_INPUT_ERROR = 2e-8
"""m and rad; a driven joint with a smaller error has its value. At a dead point only half of the digits are known."""


def make_assembly(
    course: ContinuationProblem, walk: Continuation, place: ContinuationPoint, heading: Array
) -> Assembly:
    """Make the assembly for a continuation that reached its goal `place`.

    Args:
        heading: (nv,) direction of motion at `place`, m and rad per unit of the path parameter.
    """
    drives, loops = course.drives, course.loops
    q = drives.set_values(place.q, place.s)
    errors = drives.errors(q, place.s)
    outside, of = loops.limit_violation(q)
    passed = tuple(PassedSingularity("change point", one.q) for one in walk.change_points)
    met = sum(error < MAX_INPUT_ERROR for error in errors.values())
    status, text = Status.CONVERGED, summary_text(loops, errors, passed)
    if not _is_shut(loops, q):
        status, text = Status.STALLED, "the branch was lost on the way; try more steps, or another q0"
    elif walk.stop_reason == "stuck" and not walk.redundancy:
        status = Status.STALLED
        text = "the drives are met, but the branch was lost on the way, and this may be another; try more steps"
    elif drives.clamped:
        status = Status.CLOSEST
        text = f"outside its limits, and left at the nearer one: {', '.join(drives.clamped)}"
    elif met < len(errors):
        status, text = Status.CLOSEST, "the drives cannot be met from here"
    elif outside > MAX_CLOSURE_ERROR:
        status, text = Status.CLOSEST, f"{of} is outside its limits"
    success, turns = status is Status.CONVERGED, drives.closing_angles(q, place.s)
    return Assembly(loops.mechanism, drives.values, q, success, status, text, errors, passed, heading, turns)


def summary_text(loops: LoopSystem, errors: Mapping[str, float], passed: Sequence[PassedSingularity]) -> str:
    """Return the message that counts driven joints at their values, closed loops and passed change points."""
    text = f"{format_count(len(loops.mechanism.closures), 'loop')} shut"
    if errors:
        met = sum(error < MAX_INPUT_ERROR for error in errors.values())
        text = f"{met} of {format_count(len(errors), 'drive')} met, {text}"
    return f"{text}; on the way it passed {format_count(len(passed), 'change point')}" if passed else text


def unclosed_assembly(course: ContinuationProblem, q: Array) -> Assembly:
    """Make the assembly for loops that could not be closed; `q` (nq,) has the smallest gap that was found."""
    loops, drives = course.loops, course.drives
    text = "its loops could not be shut, or its laws not kept"
    found = Assembly(
        loops.mechanism, drives.values, q, False, Status.OPEN, text, drives.errors(q, 0.0), (), np.zeros(loops.n)
    )
    off: list[str] = []
    for name, error in found.closure_errors.items():
        gaps = [
            f"{gap:.4g} {unit}"
            for gap, unit in ((error.position, "m"), (error.rotation, "rad"))
            if gap > MAX_CLOSURE_ERROR
        ]
        off += [f"loop {name} (open by {' and '.join(gaps)})"] if gaps else []
    off += [
        f"law {name} (off by {abs(error):.4g})"
        for name, error in found.joint_constraint_errors.items()
        if abs(error) > MAX_CLOSURE_ERROR
    ]
    beyond, of = loops.limit_violation(q)
    off += [f"{of} (outside its limits)"] if beyond > MAX_CLOSURE_ERROR else []
    advice = "start nearer, or ask for assembly_modes"
    message = f"{text}: {', '.join(off)}; that is the least that was found near q0: {advice}"
    return Assembly(
        loops.mechanism, found.inputs, q, False, Status.OPEN, message, found.input_errors, (), found.heading
    )


def nearest_assembly(course: ContinuationProblem, walk: Continuation) -> Assembly:
    """Make the assembly for a continuation that stopped before its goal.

    With several driven joints a configuration off the straight path may be nearer to their values: a solve from the
    last point searches for it.
    """
    loops, drives, here = course.loops, course.drives, walk.here
    q, passed = here.q, [PassedSingularity("change point", one.q) for one in walk.change_points]
    if walk.stop_reason == "dead point":
        passed.append(PassedSingularity("dead point", q))
    if walk.stop_reason != "steps" and (len(drives.start) > 1 or walk.redundancy):
        found = Solver(loops.mechanism, JointValues(drives.values, angle_mode="exact")).solve(q0=q)
        before, after = (np.linalg.norm(list(drives.errors(one, here.s).values())) for one in (q, found.q))
        if _is_shut(loops, found.q) and after < before - MAX_CLOSURE_ERROR:
            q = found.q
            if found.success and not drives.clamped:
                exact = course.project_at(q, drives.path_length)
                if exact.error < MAX_CLOSURE_ERROR and loops.limit_violation(exact.q)[0] < MAX_CLOSURE_ERROR:
                    return make_assembly(course, walk, exact, np.zeros(loops.n))
    errors = drives.errors(q, here.s)
    is_at_crossing = here.relative_singular_value(walk.rank) < NEAR_SINGULAR
    held = {
        "dead point": "it stands at a dead point" + (", where loops lose rank too" if is_at_crossing else ""),
        "limit": f"{walk.limit} is at its limit",
        "stuck": "the branch could not be followed any further",
        "conflict": "the drives hold each other",
        "steps": "",
    }[walk.stop_reason]
    missed = ", ".join(f"{name} (off by {error:.4g})" for name, error in errors.items() if error > MAX_INPUT_ERROR)
    text, status = f"out of reach on this branch: {missed}; {held}", Status.CLOSEST
    if not missed:
        status, text = Status.CONVERGED, f"{summary_text(loops, errors, passed[: len(walk.change_points)])}; {held}"
    elif walk.stop_reason == "stuck":
        status = Status.STALLED
    elif walk.stop_reason == "steps":
        status = Status.TIMEOUT
        text = f"given up on the way after {walk.step_count} steps: {missed}; give this answer as q0 to go on from here"
    heading = walk.heading[:-1] * loops.unit
    success, turns = status is Status.CONVERGED, drives.closing_angles(q, here.s)
    return Assembly(loops.mechanism, drives.values, q, success, status, text, errors, tuple(passed), heading, turns)


def _is_shut(loops: LoopSystem, q: Array) -> bool:
    return float(np.abs(loops.residual(q)[0]).max(initial=0.0)) < MAX_CLOSURE_ERROR


HARDLY = 0.01
"""Scaled units (rad, or lengths in units of the mechanism's size): a continuation that is stuck within this distance of
its start has not left it.
"""
SHAKE = 2e-5
"""Scaled units; path progress below this is not a motion. Loops count as closed up to 1e-10, and their error grows with
the square of the step, so an immobile mechanism seems to move about this far.
"""


def is_immobile(walk: Continuation) -> bool:
    """Return whether a continuation stopped at its start and no branch leads its driven joints on from there."""
    start = walk.points[0]
    if float(np.linalg.norm(walk.problem.difference(start, walk.here))) > HARDLY:
        return False
    return branch_directions(walk.problem, start).gain < SHAKE


def immobile_assembly(course: ContinuationProblem, q: Array) -> Assembly:
    """Make the assembly for driven joints that cannot move from `q` (nq,); the message names them."""
    loops, drives = course.loops, course.drives
    errors = drives.errors(q, 0.0)
    held = [name for name in drives.values if _is_held_alone(course, name, q)] or list(drives.values)
    off = ", ".join(f"{name} cannot move (off by {errors[name]:.4g})" for name in held)
    text = f"{off}: the loops leave it no way but to shake"
    nothing, turns = np.zeros(loops.n), drives.closing_angles(q, 0.0)
    return Assembly(loops.mechanism, drives.values, q, False, Status.CLOSEST, text, errors, (), nothing, turns)


def _is_held_alone(course: ContinuationProblem, name: str, q: Array) -> bool:
    loops = course.loops
    alone = ContinuationProblem(loops, DrivenJoints(loops, {name: course.drives.values[name]}, q))
    return alone.drives.path_length > HARDLY and branch_directions(alone, alone.point_at(q, 0.0)).gain < SHAKE
