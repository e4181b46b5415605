"""The compiled problem of a tracker: kernel tables for a mechanism and its tasks, and fast updates of the targets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechanik.errors import ObjectiveError
from mechanik.kernels.tables import Ints
from mechanik.kernels.tracking.tracking_layout import TrackingTables
from mechanik.model import Mechanism
from mechanik.model.configuration_space import Indices
from mechanik.objectives import JointValues, Objective
from mechanik.objectives.joint_goals import FixedRelations, JointObjective, nearest_equivalent_value
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.problem import Problem, ProblemSettings, Subproblem, compile_problem, same_structure, write_targets
from mechanik.solver.target_writer import Targets, make_target_writer, with_targets
from mechanik.spatial.array import Array

TRACKING_CLOSURE_TOLERANCE = 1e-12
"""m: tolerance of loop closures, unless rounding errors are larger. The tolerance of angles, rad, is this value divided
by the length unit of the mechanism."""
SINGULARITY_DISTANCE = 0.1
"""Distance from a singularity below which velocities are damped. The distance is 1 / sqrt(trace((J J')^-1)) for the
Jacobian J, with lengths in length units of the mechanism; it is at most the smallest singular value of J. A Panda at
its home pose has a distance of 0.3."""
BRAKING_SHARE = 0.5
"""Largest deceleration before a position limit, as a fraction of the acceleration limit, for dofs that loops couple.
The remaining acceleration is reserved for the curvature of the loops."""


def freeze_angles(mechanism: Mechanism, objective: Objective, q: Array, bounds: tuple[Array, Array]) -> Objective:
    """Replace the periodic joint targets of an objective by the equivalent values nearest to q (nq,).

    Objectives that are not joint objectives are returned unchanged.

    Args:
        bounds: lower and upper limits inside which the values should be, (nq,) each.
    """
    if not isinstance(objective, JointObjective):
        return objective
    relations = objective.nearest_relations(mechanism, q, *bounds)
    return FixedRelations(
        fixed_relations=relations, weight=objective.weight, level=objective.level, tolerance=objective.tolerance,
        angle_tolerance=objective.angle_tolerance, required=objective.required, name=objective.name,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class TrackingProblem:
    """A problem with a single subproblem, the tables of the tracking kernel, and all access to them from Python.

    Attributes:
        problem: the problem.
        subproblem: its only subproblem.
        relations: the relation of each residual block, to call residuals that are Python functions; a relation without
            rows for constraints.
        tables: limits, options and state of the tracker, see `kernels/tracking/tracking_layout.py`.
        columns: (columns,) index in v of each column that is not a slack; nv and above for joints that close loops.
        has_functions: whether a residual is a Python function.
    """

    problem: Problem
    subproblem: Subproblem
    relations: list[Relation]
    tables: TrackingTables
    columns: Indices
    has_functions: bool

    @property
    def kernel_arguments(self) -> tuple[Ints, Array, Ints, Array]:
        """The arrays of the problem and of the tracker, the first arguments of the kernel."""
        packed = self.subproblem.packed
        return packed.ints, packed.floats, self.tables.ints, self.tables.floats

    @property
    def column_rates(self) -> Array:
        """Present velocity of each column, in units of the column per s, (columns,); a view."""
        return self.tables.rate

    @property
    def limit_codes(self) -> Ints:
        """Code of the active limit of each column, (columns,); 0: none, negative: a lower limit. A view."""
        return self.tables.limit_code

    @property
    def limit_approach_rate(self) -> float:
        """Largest rate of coupled columns towards a limit, as a share of the remaining distance, 1/s."""
        return float(self.tables.options.limit_approach_rate)

    def reset_state(self, column_rates: Array) -> None:
        """Forget the previous steps and targets; the present velocities of the columns become `column_rates`."""
        tables = self.tables
        tables.rate[:] = column_rates
        for state in (
            tables.curvature_rate,
            tables.previous_residual,
            tables.row_curvature,
            tables.target_motion,
            tables.target_has_jumped,
        ):
            state[:] = 0

    def write_pairs(
        self, jacobian: Array, columns: Indices | slice, rates: Array, min_rates: Array, is_too_near: bool
    ) -> None:
        """Write the collision pairs of the next step.

        Args:
            jacobian: (pairs, dofs) derivatives of the distances, m per unit of the column.
            columns: (dofs,) the column of each dof; distances do not depend on other columns.
            rates, min_rates: (pairs,) desired and smallest allowed rates of the distances, m/s.
            is_too_near: whether a pair is too near.
        """
        tables, count = self.tables, len(jacobian)
        tables.extra_rows[:count] = 0.0
        tables.extra_rows[:count, columns] = jacobian
        tables.extra_rate_max[:count] = np.inf
        tables.desired_distance_rate[:count], tables.min_distance_rate[:count] = rates, min_rates
        tables.options.is_too_near = is_too_near

    def rows_of(self, owner: int) -> list[int]:
        """Indices of the residual rows of the objective with index `owner`."""
        indices: list[int] = []
        for block, block_owner in enumerate(self.subproblem.owners):
            if block_owner == owner:
                indices += self.subproblem.packed.row_range(block)
        return indices


def build_tracking_problem(
    mechanism: Mechanism,
    objectives: Sequence[Objective],
    can_move: Sequence[bool],
    bounds: tuple[Array, Array],
    rates: tuple[Array, Array],
    gains: Sequence[float],
    pair_count: int,
    dt: float,
    damping: float,
    follows_targets: bool,
) -> TrackingProblem:
    """Compile a mechanism and objectives into a problem with the tables of the tracking kernel.

    Args:
        can_move: (nv,) whether each dof may move.
        bounds: lower and upper limits, (nq,) each.
        rates: largest velocities and accelerations, (nv,) each.
        gains: gain of each objective, 1/s.
        pair_count: largest number of collision pairs.
        dt: time step, s.
        damping: damping of velocities at a singularity, as in `Tracker`.
        follows_targets: whether the velocity of moving targets is fed forward.
    """
    empty_relation = Relation(RelationKind.FUNCTION, (), function=_empty_residual)
    # an empty residual that depends on all dofs puts all of them into one subproblem, also dofs without a goal
    all_dofs = FixedRelations(
        fixed_relations=(empty_relation,), level=min(item.level for item in objectives), name="all dofs"
    )
    compiled_objectives = [*objectives, all_dofs]
    relations_by_objective = [item.relations(mechanism) for item in compiled_objectives]
    settings = ProblemSettings(list(can_move), {}, [1.0] * mechanism.nv)
    compiled_problem = compile_problem(mechanism, compiled_objectives, relations_by_objective, settings)
    subproblem = max(compiled_problem.subproblems, key=lambda item: len(item.packed.columns))
    relations = [
        relations_by_objective[owner][i] if owner >= 0 else empty_relation
        for owner, i in zip(subproblem.owners, subproblem.relation_indices, strict=True)
    ]
    has_functions = any(item.kind is RelationKind.FUNCTION and bool(item.rows) for item in relations)
    packed = subproblem.packed
    compiled_problem = replace(compiled_problem, subproblems=(subproblem,))
    columns = packed.columns[packed.columns >= 0]
    column_count = len(columns)
    scale, x_indices = packed.column_scales[:column_count], packed.column_x_indices[:column_count]
    tables = TrackingTables.allocate(
        column_count=column_count,
        row_count=packed.row_count,
        stage_count=packed.stage_count,
        pair_count=pair_count,
    )
    is_dof = columns < mechanism.nv
    for table, rate in zip((tables.max_velocity, tables.max_acceleration), rates, strict=True):
        table[:] = math.inf
        table[is_dof] = rate[columns[is_dof]] / scale[is_dof]
    packed.write_bounds(*bounds)
    is_scalar = x_indices >= 0
    for table, bound in zip((tables.value_min, tables.value_max), packed.column_bounds, strict=True):
        table[is_scalar] = bound[:column_count][is_scalar]
    tables.value_min[~is_scalar], tables.value_max[~is_scalar] = -math.inf, math.inf
    for block, owner in zip(packed.block_records(), subproblem.owners, strict=True):
        if owner < 0:
            tables.is_coupled[block.column_indices[block.column_indices < column_count]] = 1
    is_limited = np.isfinite(tables.max_velocity) & np.isfinite(tables.max_acceleration)
    longest_stopping_time = float(
        np.max(tables.max_velocity[is_limited] / tables.max_acceleration[is_limited], initial=0.0)
    )
    options = tables.options
    options.time_step, options.singularity_damping = dt, damping
    options.singularity_distance = SINGULARITY_DISTANCE
    options.follows_target_velocity = follows_targets
    options.limit_approach_rate = BRAKING_SHARE / max(longest_stopping_time, BRAKING_SHARE * dt)
    options.hard_residual_tolerance = max(TRACKING_CLOSURE_TOLERANCE / compiled_problem.length_unit, 4e-15)
    tracking_problem = TrackingProblem(compiled_problem, subproblem, relations, tables, columns, has_functions)
    tables.gain[:] = 1.0 / dt
    for task_index, gain in enumerate(gains):
        tables.gain[tracking_problem.rows_of(task_index)] = gain
    return tracking_problem


def _empty_residual(mechanism: Mechanism, q: Array) -> tuple[Array, Array]:
    """Residual (0,) and Jacobian (0, nv)."""
    return np.zeros(0), np.zeros((0, mechanism.nv))


class JointTargetReader:
    """Converts the target of a `JointValues` task, a dict of floats, to entries of the problem's float table.

    Args:
        names: names of the joints or dofs, as in the dict.
        slots: index of each target in the float table of the problem.
        q_indices: index of each value in q.
        is_periodic: whether each target means the nearest equivalent angle.
        limits: (lower, upper) of each value, rad or m.
    """

    def __init__(
        self,
        names: Sequence[str],
        slots: Sequence[int],
        q_indices: Sequence[int],
        is_periodic: Sequence[bool],
        limits: Sequence[tuple[float, float]],
    ) -> None:
        self._entries = tuple(zip(names, slots, q_indices, is_periodic, limits, strict=True))

    def read(self, target: Any, q: Array) -> list[tuple[int, float]] | None:
        """Pairs (slot, value) for a target; None if the target needs full validation.

        Args:
            target: values by joint or dof name.
            q: (nq,) current configuration; periodic targets become the equivalent values nearest to it.
        """
        if type(target) is not dict or len(target) != len(self._entries):  # type: ignore[arg-type]
            return None
        values: list[tuple[int, float]] = []
        for name, slot, q_index, is_periodic, (lower, upper) in self._entries:
            value: Any = target.get(name)  # type: ignore[union-attr]
            if not isinstance(value, float) or not math.isfinite(value):
                return None
            values.append(
                (slot, nearest_equivalent_value(value, float(q[q_index]), lower, upper) if is_periodic else value)
            )
        return values


def make_joint_target_reader(
    tracking_problem: TrackingProblem,
    task_index: int,
    objective: Objective,
    relations: Sequence[Relation],
    bounds: tuple[Array, Array],
) -> JointTargetReader | None:
    """Reader for a `JointValues` task in which each name stands for one entry of q that may move; else None.

    Args:
        task_index: index of the task.
        objective: the objective of the task.
        relations: the relations of the objective.
        bounds: lower and upper limits, (nq,) each.
    """
    if not isinstance(objective, JointValues) or any(
        relation.kind is not RelationKind.JOINT_VALUE for relation in relations
    ):
        return None
    names = [relation.dof_name for relation in relations]
    if names != list(objective.values):
        return None
    tree, subproblem = tracking_problem.problem.tree, tracking_problem.subproblem
    q_indices = [tree.x_of[name] for name in names]
    if max(q_indices) >= len(bounds[0]):
        return None
    blocks = {
        i: block_index
        for block_index, (owner, i) in enumerate(zip(subproblem.owners, subproblem.relation_indices, strict=True))
        if owner == task_index
    }
    if len(blocks) != len(names):
        return None
    return JointTargetReader(
        names,
        [subproblem.packed.target_index(blocks[i]) for i in range(len(names))],
        q_indices,
        [objective.angle_mode == "nearest" and tree.is_rotational(name) for name in names],
        [(float(bounds[0][k]), float(bounds[1][k])) for k in q_indices],
    )


class TaskTargets:
    """Current targets of the tasks; writes new targets into the compiled problem.

    Args:
        mechanism: the mechanism.
        tracking_problem: the compiled problem.
        objectives: the objectives as given by the user.
        relations: relations of the compiled objective of each task.
        bounds: lower and upper limits, (nq,) each.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        tracking_problem: TrackingProblem,
        objectives: Sequence[Objective],
        relations: Sequence[tuple[Relation, ...]],
        bounds: tuple[Array, Array],
    ) -> None:
        self._mechanism, self._tracking_problem, self._bounds = mechanism, tracking_problem, bounds
        self._objectives, self._relations = tuple(objectives), list(relations)
        # the compiled joint objectives are frozen, so the target writer does not change their targets
        self._target_writer, _ = make_target_writer(
            mechanism, tracking_problem.problem, tracking_problem.problem.objectives, [*self._relations, ()], bounds
        )
        readers = [
            make_joint_target_reader(tracking_problem, k, objective, self._relations[k], bounds)
            for k, objective in enumerate(objectives)
        ]
        self._joint_readers = {k: reader for k, reader in enumerate(readers) if reader is not None}
        self._joint_values: dict[int, dict[str, float]] = {}
        self._task_by_name = {item.name: k for k, item in enumerate(objectives) if item.name}

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Objectives with their current targets."""
        objectives = list(self._objectives)
        if self._target_writer is not None:
            compiled_objectives = self._tracking_problem.problem.objectives
            writer_objectives = [
                compiled_objectives[k] if isinstance(objective, JointObjective) else objective
                for k, objective in enumerate(objectives)
            ]
            current_objectives = self._target_writer.objectives(
                (*writer_objectives, compiled_objectives[-1]), self._target_writer.default_values
            )
            objectives = [
                objective if isinstance(objective, JointObjective) else current_objectives[k]
                for k, objective in enumerate(objectives)
            ]
        for k, values in self._joint_values.items():
            objectives[k] = self._objectives[k].with_target(values)  # type: ignore[arg-type]
        return tuple(objectives)

    def set_targets(self, targets: Targets, q: Array) -> None:
        """Write new targets; if a target is invalid, no target changes.

        Args:
            targets: as for `Tracker.step`.
            q: (nq,) current configuration; periodic targets become the equivalent values nearest to it.

        Raises:
            MechanikError: a target is invalid, for example because its shape is wrong or it names other joints.
        """
        if not self._write_fast(targets, q):
            self._write_validated(targets, q)

    # ---- internals --------------------------------------------------------------------------

    def _write_fast(self, targets: Targets, q: Array) -> bool:
        """Write targets without new relations; return False and change nothing if targets need full validation."""
        task_count = len(self._objectives)
        remaining_targets: Any = targets
        packed = self._tracking_problem.subproblem.packed
        slot_values: list[tuple[int, float]] = []
        joint_values: dict[int, dict[str, float]] = {}
        if self._joint_readers:
            targets_by_task = self._targets_by_task(targets)
            if targets_by_task is None:
                return False
            for k, reader in self._joint_readers.items():
                if targets_by_task[k] is not None:
                    task_slot_values = reader.read(targets_by_task[k], q)
                    if task_slot_values is None:
                        return False
                    slot_values += task_slot_values
                    joint_values[k], targets_by_task[k] = dict(targets_by_task[k]), None
            remaining_targets = targets_by_task if any(target is not None for target in targets_by_task) else None
        if remaining_targets is not None:
            writer = self._target_writer
            if writer is None:
                return False
            if not isinstance(remaining_targets, Mapping):
                has_entries = isinstance(remaining_targets, list | tuple) or (
                    isinstance(remaining_targets, np.ndarray) and remaining_targets.ndim > 0
                )
                if task_count == 1 and not self._joint_readers:
                    remaining_targets = (remaining_targets, None)
                elif has_entries:
                    remaining_targets = (*remaining_targets, None)
                else:
                    return False
            values = writer.pack(remaining_targets, arrays_only=True)
            if values is None:
                return False
            if not writer.write((packed,), values, q):
                writer.write((packed,), writer.default_values, q)
                return False
            writer.default_values[:] = values
        packed.write_target_numbers(slot_values)
        self._joint_values.update(joint_values)
        return True

    def _targets_by_task(self, targets: Any) -> list[Any] | None:
        """The new target of each task, None for tasks without a new target; None if targets do not fit the tasks."""
        task_count = len(self._objectives)
        if task_count == 1:
            return [targets]
        if isinstance(targets, Mapping):
            targets_by_task: list[Any] = [None] * task_count
            for name, target in targets.items():  # type: ignore[misc]
                if name not in self._task_by_name:
                    return None
                targets_by_task[self._task_by_name[name]] = target  # type: ignore[index]
            return targets_by_task
        if not isinstance(targets, list | tuple) or len(targets) != task_count:  # type: ignore[arg-type]
            return None
        return list(targets)  # type: ignore[arg-type]

    def _write_validated(self, targets: Targets, q: Array) -> None:
        """Validate new targets, compile their relations and write them."""
        mechanism, tracking_problem = self._mechanism, self._tracking_problem
        objectives_with_targets = with_targets(self.objectives, targets)
        objectives = tuple(freeze_angles(mechanism, item, q, self._bounds) for item in objectives_with_targets)
        relations = [item.relations(mechanism) for item in objectives]
        for item, old_relations, new_relations in zip(objectives_with_targets, self._relations, relations, strict=True):
            if len(old_relations) != len(new_relations) or not all(
                same_structure(a, b) for a, b in zip(old_relations, new_relations, strict=True)
            ):
                raise ObjectiveError(
                    f"the residuals of {item!r} have changed since the tracker was created; create a new tracker"
                )
        for task_index, new_relations in enumerate(relations):
            write_targets(tracking_problem.problem, task_index, new_relations)
        self._objectives, self._relations = objectives_with_targets, relations
        self._joint_values.clear()
        if self._target_writer is not None:
            self._target_writer.set_defaults(objectives)
        relation_keys = zip(
            tracking_problem.subproblem.owners, tracking_problem.subproblem.relation_indices, strict=True
        )
        tracking_problem.relations[:] = [
            relations[owner][i] if 0 <= owner < len(relations) else item
            for (owner, i), item in zip(relation_keys, tracking_problem.relations, strict=True)
        ]
