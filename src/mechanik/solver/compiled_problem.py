"""Compiled problem of a solver: mechanism and objectives as kernel tables, compiled again when either changes.

If the caller gives no objectives, they are derived from the graph: goals connected to links, joint targets, rest poses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanik.errors import InvalidArgument, ObjectiveError
from mechanik.model import Closure, Frame, Mechanism
from mechanik.objectives import JointValues, Objective, RestPose, jacobian, residual
from mechanik.objectives.constraint_relations import closure_relations
from mechanik.objectives.joint_goals import JointObjective
from mechanik.objectives.objective import ObjectiveOptions, ResidualDefinition, as_objectives
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.problem import ProblemSettings, Subproblem, compile_problem, same_structure, write_targets
from mechanik.solver.methods.levenberg_marquardt import LevenbergMarquardt
from mechanik.solver.methods.method import Method
from mechanik.solver.methods.method_registry import make_method, option_names
from mechanik.solver.options import (
    DofNames,
    Options,
    as_bounds,
    as_dof_mask,
    as_weights,
    check_option_names,
    write_options,
)
from mechanik.solver.target_writer import scaled_rest
from mechanik.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GraphGoal(Objective):
    """Objective of a `Goal` of the graph; its target is the current pose of the goal."""

    closure: Closure

    def __init__(self, name: str, closure: Closure, tolerance: float, angle_tolerance: float) -> None:
        Objective.__init__(self, name=name, tolerance=tolerance, angle_tolerance=angle_tolerance)
        object.__setattr__(self, "closure", closure)

    def __repr__(self) -> str:
        return f"<goal {self.name!r} of {self.closure.link}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        return closure_relations(mechanism, self.closure, self.weight)


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


CONSTRAINT_PLACEHOLDER = Relation(RelationKind.POSE, ())
"""Entry for a block of a closure, joint constraint or cone in the list of relations of a subproblem. Such a block is
never a Python function, and the kernel has its data in the tables.
"""


class CompiledProblem:
    """Compiled state of a solver; see `Solver` for the arguments.

    Attributes:
        mechanism: the mechanism.
        method: the method.
        method_reason: sentence with the reason for this method.
        options: options that all methods have in common.
    """

    def __init__(
        self,
        mechanism: Mechanism | Frame | Iterable[Frame],
        goals: Objective | Iterable[Objective] | None,
        solver: str | Method,
        active: DofNames | str | None,
        lock: DofNames | str | None,
        limits: Mapping[str, ArrayLike] | None,
        weights: Mapping[str, float] | None,
        rest: ArrayLike | Mapping[str, ArrayLike] | bool | None,
        options: dict[str, Any],
    ) -> None:
        self._is_auto = isinstance(solver, str) and solver == "auto"
        self.method, common_options = make_method("lm" if self._is_auto else solver, options)
        check_option_names(common_options, option_names(type(self.method)))
        self.options = Options(**common_options)
        if isinstance(mechanism, str):
            raise InvalidArgument(
                f"the first argument must be a mechanism, not the text {mechanism!r}; load a file with mk.load"
            )
        if weights is not None and not isinstance(weights, Mapping):
            raise InvalidArgument(f"weights must be a mapping from names, as in {{'elbow': 2}}, not {weights!r}")
        self._moves_joints = not isinstance(mechanism, Mechanism)
        self.mechanism = mechanism if isinstance(mechanism, Mechanism) else Mechanism(mechanism)
        self._given_objectives = None if goals is None else as_objectives(goals)
        if self._given_objectives == ():
            raise ObjectiveError("the list of goals is empty; give a goal, or omit goals to only close loops")
        self._active, self._lock, self._limits, self._rest = active, lock, limits, rest
        self._weights = dict(weights or {})
        self._can_eliminate_spherical_joints = True
        self._objectives: tuple[Objective, ...] = ()
        self.method_reason = f"{self.method.title}, selected by the argument `solver`"
        self._compile(self._current_objectives())

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Objectives that the caller gave, or those of the graph; then the rest pose that `rest` gives, if any."""
        return self._objectives

    def residual(self, q: ArrayLike | None = None, definition: ResidualDefinition = "mechanik") -> Array:
        """Return the stacked residual of all objectives at q, (m,), in m and rad, without weights.

        Args:
            q: configuration, (nq,). None: `mechanism.q`.
            definition: "klampt" gives the residual of Klampt's IK functions, for `LinkGoal` only.
        """
        self._recompile_if_stale()
        return residual(self._objectives, self.mechanism, self.mechanism.q if q is None else q, definition)

    def jacobian(self, q: ArrayLike | None = None, definition: ResidualDefinition = "mechanik") -> Array:
        """Return the Jacobian of `residual` with respect to v, (m, nv).

        Args:
            q, definition: as in `residual`.
        """
        self._recompile_if_stale()
        return jacobian(self._objectives, self.mechanism, self.mechanism.q if q is None else q, definition)

    # ---- internals ---------------------------------------------------------------------------

    def _current_objectives(self) -> tuple[Objective, ...]:
        """Return the given objectives, or those of the graph as it is now; then the rest pose, if any."""
        given_objectives, options = self._given_objectives, self.options
        objectives = (
            objectives_of_graph(self.mechanism, options.tolerance, options.angle_tolerance)
            if given_objectives is None
            else given_objectives
        )
        if self._rest is None or self._rest is False:
            return objectives
        return (*objectives, RestPose(None if self._rest is True else self._rest, name="rest"))

    def _relations(self, objectives: Sequence[Objective], q: Array | None) -> list[tuple[Relation, ...]]:
        """Return the relations of each objective; with q, angles of the angle mode "nearest" are nearest to q."""
        mechanism, bounds = self.mechanism, self._bounds
        return [
            objective.nearest_relations(mechanism, q, *bounds)
            if isinstance(objective, JointObjective) and q is not None
            else objective.relations(mechanism)
            for objective in objectives
        ]

    def _compile(self, objectives: tuple[Objective, ...], relations: list[tuple[Relation, ...]] | None = None) -> None:
        mechanism = self.mechanism
        self._revision, self._edit_count = mechanism.revision, Frame.edit_count
        self._bounds = as_bounds(mechanism, self._limits)
        is_active = as_dof_mask(mechanism, self._active, True)
        if self._lock is not None:
            is_active &= ~as_dof_mask(mechanism, self._lock, False)
        self._objectives = objectives
        self._objective_relations: list[tuple[Relation, ...]] = (
            self._relations(objectives, None) if relations is None else relations
        )
        objective_weights, dof_weights = as_weights(mechanism, objectives, self._weights)
        self._settings = ProblemSettings(
            is_active.tolist(), objective_weights, dof_weights.tolist(), self.options.position_weight,
            self.options.rotation_weight,
            isinstance(self.method, LevenbergMarquardt) and self._can_eliminate_spherical_joints,
        )  # fmt: skip
        self._problem = compile_problem(mechanism, objectives, self._objective_relations, self._settings)
        self._moving_dofs = np.zeros(mechanism.nv, dtype=np.bool_)
        for subproblem in self._problem.subproblems:
            self._moving_dofs |= subproblem.moving_dofs
        self._block_relations = self._relations_by_block()
        self._targets_changed = False
        self._reset_tables()
        self._on_compiled()

    def _on_compiled(self) -> None:
        """Hook that runs after each compilation."""

    def _reset_tables(self) -> None:
        """Reset all entries of the tables, except targets, that a call may change.

        These are the limits, the active set, the variables that follow q in the kernel's x (values of closing joints
        and slack variables) and, for Levenberg-Marquardt, the options.
        """
        problem, options = self._problem, self.options
        for subproblem in problem.subproblems:
            if isinstance(self.method, LevenbergMarquardt):
                write_options(subproblem, options, self.method, problem.length_unit)
            self._write_bounds(subproblem, *self._bounds)
            subproblem.packed.tables["bound_state"][:] = 0
            extra_state = subproblem.packed.tables["x"][self.mechanism.nq :]
            extra_state[: len(problem.extra_values)] = problem.extra_values
            extra_state[len(problem.extra_values) :] = 0.0  # reset slacks: a call must not depend on the previous call

    def _recompile_if_stale(self) -> None:
        """Update the objectives of the graph; compile again if their number or the mechanism has changed."""
        objectives = self._objectives
        if Frame.edit_count != self._edit_count or self._given_objectives is None:
            objectives = self._current_objectives() if self._given_objectives is None else self._objectives
            if self.mechanism.revision != self._revision or len(objectives) != len(self._objectives):
                self._compile(objectives)
            self._edit_count = Frame.edit_count
        self._objectives = objectives

    def _update_targets(self, objectives: Sequence[Objective], q: Array, rest_factor: float) -> None:
        """Write the targets of the objectives to the tables; compile again only if the structure has changed.

        Args:
            q: start configuration, (nq,).
            rest_factor: share of the distance from q to the rest pose at which the target is set, 0 to 1.
        """
        relations = self._relations(objectives, q)
        if rest_factor < 1.0:
            relations = [
                scaled_rest(self.mechanism, objective_relations, q, rest_factor)
                if isinstance(objective, RestPose)
                else objective_relations
                for objective, objective_relations in zip(objectives, relations, strict=True)
            ]
        has_same_structure = all(
            len(old_relations) == len(new_relations)
            and all(same_structure(a, b) for a, b in zip(old_relations, new_relations, strict=True))
            for old_relations, new_relations in zip(self._objective_relations, relations, strict=True)
        )
        if not has_same_structure:
            solver_objectives = self._objectives
            self._compile(tuple(objectives), relations)
            self._objectives = solver_objectives
            return
        for index, (old_relations, new_relations) in enumerate(zip(self._objective_relations, relations, strict=True)):
            if self._targets_changed or any(a is not b for a, b in zip(old_relations, new_relations, strict=True)):
                write_targets(self._problem, index, new_relations)
        self._objective_relations = relations
        self._block_relations = self._relations_by_block()

    def _relations_by_block(self) -> list[list[Relation]]:
        """Return, for each subproblem, the relation of each of its blocks."""
        return [
            [
                self._objective_relations[owner][i] if owner >= 0 else CONSTRAINT_PLACEHOLDER
                for owner, i in zip(subproblem.owners, subproblem.relation_indices, strict=True)
            ]
            for subproblem in self._problem.subproblems
        ]

    def _write_bounds(self, subproblem: Subproblem, lower: Array, upper: Array) -> None:
        """Write limits of q, (nq,) each, to the columns of a subproblem."""
        tables = subproblem.packed.tables
        x_indices, nq = tables["column_x"], self.mechanism.nq
        is_in_q = (x_indices >= 0) & (x_indices < nq)
        tables["lower"][is_in_q], tables["upper"][is_in_q] = lower[x_indices[is_in_q]], upper[x_indices[is_in_q]]
