"""What a solver was made for, and its compiled form: objectives, limits and the packed tables of each subproblem.

Both are immutable. Targets with another structure make a further compiled problem. An edit of the mechanism makes a new
one, and calls that run meanwhile raise `InvalidOperation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mechanik.model import Closure, Mechanism
from mechanik.model.configuration_space import normalize_quaternions
from mechanik.model.mechanism import MechanismSnapshot
from mechanik.objectives import JointValues, Objective, RestPose
from mechanik.objectives.constraint_relations import closure_relations
from mechanik.objectives.joint_goals import JointObjective
from mechanik.objectives.objective import ObjectiveOptions
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.problem import Problem, ProblemSettings, compile_problem, same_structure
from mechanik.solver.methods.method import Method
from mechanik.solver.options import DofNames, Options, as_bounds, as_dof_mask, as_weights
from mechanik.spatial.array import Array, ArrayLike

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GraphGoal(Objective):
    """Objective of a `Goal` of the graph; its target is the current pose of the goal."""

    closure: Closure

    def __init__(self, name: str, closure: Closure, tolerance: float, angle_tolerance: float) -> None:
        Objective.__init__(self, name=name, tolerance=tolerance, angle_tolerance=angle_tolerance)
        object.__setattr__(self, "closure", closure)

    def __repr__(self) -> str:
        return f"<goal {self.name!r} of {self.closure.link}>"

    def __hash__(self) -> int:
        return hash((type(self), self.name))  # the goal can move

    def _compared_fields(self) -> dict[str, object]:
        closure = self.closure
        goal = closure.link.name, closure.at, closure.constrained_dof, closure.joint.world_matrix
        return {**Objective._compared_fields(self), "closure": goal}

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        goal = mechanism.goals.get(self.name)  # that of a copy of the graph, if `mechanism` is a copy
        closure = self.closure if goal is None or goal.closure is None else goal.closure
        return closure_relations(mechanism, closure, self.weight)


def objectives_of_graph(mechanism: Mechanism, tolerance: float, angle_tolerance: float) -> tuple[Objective, ...]:
    """Return the objectives of a graph: its goals, an objective for each joint with targets, and a common rest pose.

    Args:
        tolerance, angle_tolerance: tolerances of the objectives, m and rad.
    """
    objectives: list[Objective] = []
    for name, goal in mechanism.goals.items():
        if goal.closure is not None and goal.goal_dof:
            objectives.append(GraphGoal(name, goal.closure, tolerance, angle_tolerance))
    for name, joint in mechanism.joints.items():
        targets = {dof: target for dof, target in zip(joint.dof, joint.targets, strict=True) if target is not None}
        if not targets or not (joint.children or joint.is_closure):  # a joint without children moves nothing
            continue
        angle_mode = "exact" if joint.track_turns else "nearest"
        if len(targets) == len(joint.dof):
            values = {name: [targets[dof] for dof in joint.dof]}
        else:
            values = {f"{name}.{dof.name}": target for dof, target in targets.items()}
        options = ObjectiveOptions(name=f"target of {name}", tolerance=tolerance, angle_tolerance=angle_tolerance)
        objectives.append(JointValues(values, angle_mode=angle_mode, **options))
    if any(value is not None for joint in mechanism.joints.values() for value in joint.rest_pose):
        objectives.append(RestPose(name="rest pose"))
    return tuple(objectives)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProblemDefinition:
    """What a solver was made for: the arguments that are the same for all calls.

    Attributes:
        mechanism: the mechanism.
        given_objectives: objectives that the caller gave; None: those of the graph at each call.
        method, options: method and options of calls that do not give others.
        is_auto: whether a closed form follows if the method fails.
        active, lock, limits, weights, rest: as for `Solver`.
        moves_joints: whether a solve writes its result to the joints of the graph.
        constraints: objectives of the solver itself, such as clearances, at the end of all objectives; targets and
            solutions do not include them.
    """

    mechanism: Mechanism
    given_objectives: tuple[Objective, ...] | None
    method: Method
    options: Options
    is_auto: bool = False
    active: DofNames | str | None = None
    lock: DofNames | str | None = None
    limits: Mapping[str, ArrayLike] | None = None
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    rest: ArrayLike | Mapping[str, ArrayLike] | bool | None = None
    moves_joints: bool = False
    constraints: tuple[Objective, ...] = ()

    def current_objectives(self) -> tuple[Objective, ...]:
        """Return the given objectives, or those of the graph as it is now; then the rest pose, if any."""
        objectives = self.given_objectives
        if objectives is None:
            objectives = objectives_of_graph(self.mechanism, self.options.tolerance, self.options.angle_tolerance)
        if self.rest is not None and self.rest is not False:
            objectives = (*objectives, RestPose(None if self.rest is True else self.rest, name="rest"))
        return objectives


CONSTRAINT_PLACEHOLDER = Relation(RelationKind.POSE, ())
"""Entry for a block of a closure, joint constraint or cone in the list of relations of a subproblem. Such a block is
never a Python function, and the kernel has its data in the tables.
"""


@dataclass(frozen=True, eq=False)
class CompiledProblem:
    """Compiled form of a definition, for one revision of the mechanism.

    Attributes:
        definition: what the problem is.
        revision: revision of the mechanism.
        all_objectives: all objectives, with the constraints of the solver.
        relations: relations of each objective, without a start: angle targets as they are given.
        bounds: lower and upper limits, (nq,) each, rad or m.
        settings: weights and active dofs.
        problem: packed tables of each subproblem: templates that no search changes.
        moving_dofs: (nv,) mask of the dofs that a search may move.
        snapshot: snapshot of the mechanism.
    """

    definition: ProblemDefinition
    revision: tuple[int, ...]
    all_objectives: tuple[Objective, ...]
    relations: tuple[tuple[Relation, ...], ...]
    bounds: tuple[Array, Array]
    settings: ProblemSettings
    problem: Problem
    moving_dofs: Mask
    snapshot: MechanismSnapshot

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism, which may have been edited since."""
        return self.definition.mechanism

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The objectives, without the constraints of the solver."""
        return self.all_objectives[: len(self.all_objectives) - len(self.definition.constraints)]

    @property
    def compiled_mechanism(self) -> Mechanism:
        """The mechanism as it was compiled: the mechanism itself, or a copy if it has been edited since."""
        return self._copied_mechanism if self.is_stale else self.definition.mechanism

    @cached_property
    def _copied_mechanism(self) -> Mechanism:
        return self.snapshot.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        definition = replace(self.definition, mechanism=self.compiled_mechanism)
        return _compile_again, (definition, self.all_objectives, self.settings.eliminate_passive_sphericals)

    @property
    def is_stale(self) -> bool:
        """Whether the mechanism was edited since the compilation."""
        return self.mechanism.revision != self.revision

    @property
    def has_constraints(self) -> bool:
        """Whether loops, joint constraints or cones must hold."""
        problem = self.problem
        return bool(problem.closures or problem.joint_constraints or problem.cone_joints)

    @cached_property
    def relations_by_block(self) -> tuple[tuple[Relation, ...], ...]:
        """For each subproblem the relation of each of its blocks."""
        return self.arrange_by_block(self.relations)

    def arrange_by_block(self, relations: Sequence[Sequence[Relation]]) -> tuple[tuple[Relation, ...], ...]:
        """Return, for each subproblem, the relation of each of its blocks, given the relations of each objective."""
        return tuple(
            tuple(
                relations[owner][i] if owner >= 0 else CONSTRAINT_PLACEHOLDER
                for owner, i in zip(subproblem.owners, subproblem.relation_indices, strict=True)
            )
            for subproblem in self.problem.subproblems
        )

    def relations_of(self, objectives: Sequence[Objective], q: Array | None) -> list[tuple[Relation, ...]]:
        """Return the relations of each objective; with q, angles of the angle mode "nearest" are nearest to q (nq,).

        Objectives with the compiled target have the compiled relations, unless these depend on q or on the graph.
        """
        if len(objectives) != len(self.relations) or self.definition.given_objectives is None:
            return relations_of(self.mechanism, objectives, self.bounds, q)
        return [
            own_relations
            if objective is own_objective and not isinstance(objective, JointObjective)
            else relations_of(self.mechanism, (objective,), self.bounds, q)[0]
            for objective, own_objective, own_relations in zip(
                objectives, self.all_objectives, self.relations, strict=True
            )
        ]

    def has_structure_of(self, objectives: Sequence[Objective], relations: Sequence[Sequence[Relation]]) -> bool:
        """Return whether the packed tables can hold these objectives, given with their relations."""
        return all(
            _table_entries(own_objective) == _table_entries(objective)
            for own_objective, objective in zip(self.all_objectives, objectives, strict=True)
        ) and all(
            len(own_relations) == len(new_relations)
            and all(same_structure(a, b) for a, b in zip(own_relations, new_relations, strict=True))
            for own_relations, new_relations in zip(self.relations, relations, strict=True)
        )


def _table_entries(objective: Objective) -> tuple[object, ...]:
    """Return what the tables hold of an objective besides its relations."""
    return objective.name, objective.level, objective.required, objective.tolerance, objective.angle_tolerance


def relations_of(
    mechanism: Mechanism, objectives: Sequence[Objective], bounds: tuple[Array, Array], q: Array | None
) -> list[tuple[Relation, ...]]:
    """Return the relations of each objective; with q, angles of the angle mode "nearest" are nearest to q (nq,)."""
    return [
        objective.nearest_relations(mechanism, q, *bounds)
        if isinstance(objective, JointObjective) and q is not None
        else objective.relations(mechanism)
        for objective in objectives
    ]


def compile_definition(
    definition: ProblemDefinition,
    objectives: tuple[Objective, ...] | None = None,
    relations: Sequence[tuple[Relation, ...]] | None = None,
    *,
    eliminates_sphericals: bool = True,
) -> CompiledProblem:
    """Compile a definition for the present revision of its mechanism.

    Args:
        definition: what to compile.
        objectives: all objectives, if they have other targets than those of the definition.
        relations: their relations, if the caller knows them.
        eliminates_sphericals: whether spherical joints whose rotation follows from a closure are eliminated. Their dofs
            then have no columns, and cannot be locked.

    Raises:
        UnknownName: for an unknown joint or dof.
        LimitsError, ObjectiveError, ShapeError: for invalid limits or weights.
    """
    mechanism = definition.mechanism
    revision, bounds = mechanism.revision, as_bounds(mechanism, definition.limits)
    is_active = as_dof_mask(mechanism, definition.active, True)
    if definition.lock is not None:
        is_active &= ~as_dof_mask(mechanism, definition.lock, False)
    all_objectives = (*definition.current_objectives(), *definition.constraints) if objectives is None else objectives
    all_relations = relations_of(mechanism, all_objectives, bounds, None) if relations is None else relations
    objective_weights, dof_weights = as_weights(mechanism, all_objectives, definition.weights)
    options = definition.options
    settings = ProblemSettings(
        is_active.tolist(), objective_weights, dof_weights.tolist(), options.position_weight, options.rotation_weight,
        definition.method.is_compiled and eliminates_sphericals, definition.method.is_compiled,
    )  # fmt: skip
    problem = compile_problem(mechanism, all_objectives, all_relations, settings)
    moving_dofs = np.zeros(mechanism.nv, dtype=np.bool_)
    for subproblem in problem.subproblems:
        moving_dofs |= subproblem.moving_dofs
        subproblem.packed.write_bounds(*bounds)
    for array in (*bounds, moving_dofs):
        array.flags.writeable = False
    return CompiledProblem(
        definition, revision, all_objectives, tuple(all_relations), bounds, settings, problem, moving_dofs,
        mechanism.snapshot(),
    )  # fmt: skip


def _compile_again(
    definition: ProblemDefinition, objectives: tuple[Objective, ...], eliminates_sphericals: bool
) -> CompiledProblem:
    """Compile a definition that was pickled."""
    return compile_definition(definition, objectives, eliminates_sphericals=eliminates_sphericals)


def fingerprint_settings(compiled: CompiledProblem) -> Any:
    """Return all settings on which the results of a batch depend, besides mechanism, objectives and targets."""
    definition = compiled.definition
    return definition.method, definition.options, definition.is_auto, compiled.bounds, compiled.settings


MIN_QUATERNION_NORM2 = 1e-6
"""Squared norm below which a quaternion is left to the checks of a resolved request; the kernel uses the same value."""


class FixedQuaternions:
    """Quaternions in q that the kernel does not move: they are checked and normalized outside of it."""

    def __init__(self, compiled: CompiledProblem) -> None:
        space = compiled.mechanism.space
        self._indices = [
            k
            for k, v in zip(space.quaternions_q.tolist(), space.quaternions_v.tolist(), strict=True)
            if not compiled.moving_dofs[v]
        ]

    @property
    def exist(self) -> bool:
        """Whether there are such quaternions."""
        return bool(self._indices)

    def are_valid(self, q: Array) -> bool:
        """Return whether no quaternion is nearly zero."""
        return all(q[k : k + 4] @ q[k : k + 4] > MIN_QUATERNION_NORM2 for k in self._indices)

    def normalize(self, q: Array) -> None:
        """Normalize the quaternions in place."""
        normalize_quaternions(q, self._indices)
