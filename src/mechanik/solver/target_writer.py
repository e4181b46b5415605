"""New targets for the objectives of a solver: new objectives, or a direct write to the kernel tables.

A target writer passes the target of a single goal to the kernel, or returns None; then the general path with all its
checks handles the call. The multi-target writer packs the targets of several goals into an array and writes them with a
small kernel. It writes poses, positions and joint values; new targets of other objectives need the general path.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechanik.errors import ShapeError, UnknownName
from mechanik.kernels.write_targets import NO_REFERENCE, TARGET_POSE, TARGET_POSITION, TARGET_VALUE
from mechanik.model import Mechanism
from mechanik.objectives import JointValues, Objective, PoseGoal, PositionGoal, RestPose
from mechanik.objectives.joint_goals import JointObjective, nearest_equivalent_value
from mechanik.objectives.relation import Relation, RelationKind, evaluate_relation
from mechanik.problem import PackedProblem, Problem, same_structure
from mechanik.solver.compiled_problem import CompiledProblem
from mechanik.solver.kernel_driver import NO_TARGET
from mechanik.spatial import inverse, make_pose, rotation
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module
from mechanik.validation import read_only

Targets = Any
"""A target in any form that `Objective.with_target` takes; or several, by objective name or in order."""


def with_targets(objectives: tuple[Objective, ...], targets: Targets) -> tuple[Objective, ...]:
    """Return the objectives with new targets; None, or an entry None of a sequence, does not change a target."""
    if targets is None:
        return objectives
    takes_names = len(objectives) == 1 and isinstance(objectives[0], JointValues | RestPose)
    if isinstance(targets, Mapping) and not takes_names:
        names = {objective.name: k for k, objective in enumerate(objectives) if objective.name}
        new_objectives = list(objectives)
        targets_by_name: dict[str, Any] = dict(targets)  # type: ignore[arg-type]
        for name, target in targets_by_name.items():
            if name not in names:
                raise UnknownName("objective", name, names)
            new_objectives[names[name]] = objectives[names[name]].with_target(target)
        return tuple(new_objectives)
    if len(objectives) == 1:
        single_target: Any = targets  # type: ignore[assignment]
        return (objectives[0].with_target(single_target),)
    if not isinstance(targets, list | tuple | np.ndarray) or len(targets) != len(objectives):  # type: ignore[arg-type]
        raise ShapeError(
            f"the solver has {len(objectives)} objectives: give as many targets, or a mapping from objective names"
        )
    target_list: Sequence[Any] = targets  # type: ignore[assignment]
    return tuple(
        objective if target is None else objective.with_target(target)
        for objective, target in zip(objectives, target_list, strict=True)
    )


def scaled_rest(mechanism: Mechanism, relations: tuple[Relation, ...], q: Array, share: float) -> tuple[Relation, ...]:
    """Return a rest pose between q (nq,) and the given rest pose, at `share` (0 to 1) of the distance."""
    names = mechanism.space.q_names
    scaled_relations: list[Relation] = []
    for relation in relations:
        if relation.kind is RelationKind.JOINT_VALUE:
            scaled_relations.append(
                replace(relation, target=(1 - share) * q[[names.index(relation.dof_name)]] + share * relation.target)
            )
        else:  # spherical and closing joints: the remaining part of the residual becomes the band
            remainder = read_only((1 - share) * evaluate_relation(mechanism, relation, q)[0])
            scaled_relations.append(replace(relation, lower=remainder, upper=remainder))
    return tuple(scaled_relations)


EYE, HOMOGENEOUS_ROW, ROTATION_TOLERANCE = np.eye(3), np.array([0.0, 0.0, 0.0, 1.0]), 1e-6

TargetWriter = Callable[[object, Array], Array | None]
"""(target, q0) -> the target argument of the kernel, or None if the general path must handle the call."""


def make_target_writer(compiled: CompiledProblem, packed: PackedProblem) -> TargetWriter | None:
    """Make the writer for new targets of the only objective, or return None if its target cannot be written directly.

    Args:
        compiled: the compiled problem.
        packed: a copy of its only packed problem; the targets are written there.
    """
    problem, (lower, upper) = compiled.problem, compiled.bounds
    if len(problem.subproblems) != 1 or len(compiled.all_objectives) != 1 or len(compiled.relations[0]) != 1:
        return None
    objective, relation, subproblem = compiled.all_objectives[0], compiled.relations[0][0], problem.subproblems[0]
    block = subproblem.owners.index(0)
    data = packed.target_view(block)
    is_in_world = relation.kind is RelationKind.POSE and relation.a is None and relation.world_axes is None
    if (
        type(objective) is PoseGoal
        and is_in_world
        and relation.rows == (0, 1, 2, 3, 4, 5)
        and np.array_equal(relation.X_a, objective.target)
    ):
        packed.set_target_block(block)
        return pass_pose
    if type(objective) is PositionGoal and is_in_world:
        return _position_writer(data[9:])
    if (
        type(objective) is JointValues
        and relation.kind is RelationKind.JOINT_VALUE
        and relation.dof_name in objective.values
    ):
        k = problem.tree.x_of[relation.dof_name]
        if objective.angle_mode == "exact" or not problem.tree.rotates[problem.tree.v_of_x[k]]:
            return _value_writer(relation.dof_name, data)
        if k < len(lower):
            return _angle_writer(relation.dof_name, data, k, float(lower[k]), float(upper[k]))
    return None


def pass_pose(target: object, q0: Array) -> Array | None:
    """Return a pose target (4, 4) unchanged, since the kernel checks and writes it; None for other targets."""
    return target if type(target) is np.ndarray and target.shape == (4, 4) else None


def is_pose(X: Array) -> bool:
    """Return whether an array (4, 4) is a rigid transform, up to rounding errors of its rotation."""
    R = X[:3, :3]
    if not (np.abs(R.T @ R - EYE).max() < ROTATION_TOLERANCE and (X[3] == HOMOGENEOUS_ROW).all()):
        return False
    (a, b, x), (c, d, y), (e, f, z) = R.tolist()
    is_mirrored = (c * f - e * d) * x + (e * b - a * f) * y + (a * d - c * b) * z < 0.0
    return not is_mirrored and math.isfinite(float(X[:3, 3].sum()))


def _position_writer(position: Array) -> TargetWriter:
    isfinite = math.isfinite

    def write_target(target: object, q0: Array) -> Array | None:
        if type(target) is not np.ndarray or target.shape != (3,) or target.dtype != np.float64:
            return None
        x, y, z = target.tolist()
        if not isfinite(x + y + z):
            return None
        position[:] = target
        return NO_TARGET

    return write_target


def _value_writer(name: str, data: Array) -> TargetWriter:
    isfinite = math.isfinite

    def write_target(target: object, q0: Array) -> Array | None:
        if type(target) is dict and len(target) == 1:  # type: ignore[arg-type]
            target = target.get(name)  # type: ignore[union-attr]
        if not isinstance(target, float) or not isfinite(target):
            return None
        data[0] = target
        return NO_TARGET

    return write_target


def _angle_writer(name: str, data: Array, k: int, lower: float, upper: float) -> TargetWriter:
    """Return a writer that writes the equivalent angle inside the limits which is nearest to entry k of q0."""
    isfinite, full_turn = math.isfinite, 2 * math.pi
    is_unlimited = lower == -math.inf and upper == math.inf

    def write_target(target: object, q0: Array) -> Array | None:
        if type(target) is dict and len(target) == 1:  # type: ignore[arg-type]
            target = target.get(name)  # type: ignore[union-attr]
        if not isinstance(target, float) or not isfinite(target):
            return None
        value = q0.item(k)
        if not isfinite(value):
            return None
        if is_unlimited:
            data[0] = target + full_turn * round((value - target) / full_turn)
        else:
            data[0] = nearest_equivalent_value(target, value, lower, upper)
        return NO_TARGET

    return write_target


write_targets_kernel = kernel_module("write_targets")

UNCHANGED = -1
"""Kind of an objective whose target the multi-target writer leaves unchanged."""
TARGET_SHAPES = {TARGET_POSE: (4, 4), TARGET_POSITION: (3,)}
TARGET_SIZES = {TARGET_POSE: 16, TARGET_POSITION: 3, TARGET_VALUE: 1, UNCHANGED: 0}
PROBE_POSE = make_pose(rotation.exp(np.array([0.3, -0.5, 0.7])), np.array([0.1, 0.2, -0.3]))
"""Arbitrary pose, to test how the relations of a goal depend on its target."""


@dataclass(frozen=True, slots=True, eq=False)
class MultiTargetWriter:
    """Layout of all targets of a call in an array, and the table indices to which its numbers are written.

    Attributes:
        kinds: kind of each target; UNCHANGED for an objective whose target is not written.
        names: name of each objective; empty if a name is missing or not unique. For joint values, names of the dofs.
        write_plans: for each subproblem the arguments of the `write_targets` kernel after the floats: a table (n, 4) of
            (kind, index in the floats, index in the packed targets, index of the reference angle in q or
            NO_REFERENCE); and the rotations (n, 9) by which the poses are multiplied from the right.
        default_values: targets where a call gives none, (size,), lengths in m and angles in rad; initially those of the
            objectives.
    """

    kinds: tuple[int, ...]
    names: tuple[str, ...]
    write_plans: tuple[tuple[np.ndarray[Any, np.dtype[np.int64]], Array], ...]
    default_values: Array

    def pack_targets(self, targets: Any) -> Array | None:
        """Return all targets of a call as an array (size,); None if the general path must check them."""
        try:
            if isinstance(targets, Mapping):
                if not self.names:
                    return None
                if len(targets) != len(self.names):  # type: ignore[arg-type]
                    return self._pack_subset(targets)  # type: ignore[arg-type]
                targets = [targets[name] for name in self.names]  # type: ignore[index]
            elif self.kinds[0] == TARGET_VALUE:
                return None
            elif len(self.kinds) == 1:
                targets = [targets] if type(targets) is np.ndarray else None
            values = np.array(targets) if self._have_same_kind else self._pack_each(targets)
        except (KeyError, TypeError, ValueError):
            return None
        if values is None or values.dtype != np.float64 or values.size != self.default_values.size:
            return None
        if self._have_same_kind and values.shape[1:] != TARGET_SHAPES.get(self.kinds[0], ()):
            return None
        return values.reshape(-1)

    def write(self, copies: Sequence[PackedProblem], values: Array, q0: Array) -> bool:
        """Write packed targets to copies of all subproblems; False if a target is invalid (others may be written)."""
        return all(
            write_targets_kernel.write_targets(packed.floats, *plan, values, q0)
            for packed, plan in zip(copies, self.write_plans, strict=True)
        )

    def objectives(self, originals: Sequence[Objective], values: Array) -> tuple[Objective, ...]:
        """Return the objectives with packed targets."""
        if isinstance(originals[0], JointValues):
            return (originals[0].with_target(dict(zip(self.names, values.tolist(), strict=True))),)
        objectives: list[Objective] = []
        first_index = 0
        for objective, kind in zip(originals, self.kinds, strict=True):
            if kind == UNCHANGED:
                objectives.append(objective)
                continue
            size = TARGET_SIZES[kind]
            objectives.append(
                objective.with_target(values[first_index : first_index + size].reshape(TARGET_SHAPES[kind]))
            )
            first_index += size
        return tuple(objectives)

    @property
    def _have_same_kind(self) -> bool:
        return len(set(self.kinds)) == 1

    def _pack_each(self, targets: Any) -> Array | None:
        if len(targets) != len(self.kinds):
            return None
        values, first_index = self.default_values.copy(), 0
        for target, kind in zip(targets, self.kinds, strict=True):
            size = TARGET_SIZES[kind]
            if target is not None:
                if kind == UNCHANGED or type(target) is not np.ndarray or target.shape != TARGET_SHAPES[kind]:
                    return None
                values[first_index : first_index + size] = target.ravel()
            first_index += size
        return values

    def _pack_subset(self, targets: Mapping[str, Any]) -> Array | None:
        """Pack targets that are given by name for a part of the objectives."""
        if self.kinds[0] == TARGET_VALUE:
            return None
        indices = {name: k for k, name in enumerate(self.names)}
        target_list: list[Any] = [None] * len(self.names)
        for name, target in targets.items():
            target_list[indices[name]] = target
        return self._pack_each(target_list)


def make_multi_target_writer(
    mechanism: Mechanism,
    problem: Problem,
    objectives: Sequence[Objective],
    relations: Sequence[tuple[Relation, ...]],
    bounds: tuple[Array, Array],
) -> MultiTargetWriter | None:
    """Make the multi-target writer of a problem, or None if an objective does not allow it.

    Args:
        mechanism: the mechanism.
        problem: the compiled problem.
        objectives, relations: the objectives with targets, and the relations of each.
        bounds: lower and upper limits, (nq,) each, rad or m.
    """
    if not objectives:
        return None
    target_kinds = [
        _target_kind(mechanism, objective, objective_relations)
        for objective, objective_relations in zip(objectives, relations, strict=True)
    ]
    if None in target_kinds or all(kind == UNCHANGED for kind in target_kinds):
        return None
    if TARGET_VALUE in target_kinds and len(target_kinds) > 1:
        return None
    kinds = tuple(kind for kind in target_kinds if kind is not None)
    names = tuple(objective.name for objective in objectives)
    if "" in names or len(set(names)) < len(names):
        names = ()
    if TARGET_VALUE in kinds:
        names = tuple(relation.dof_name for relation in relations[0])
        kinds = (TARGET_VALUE,) * len(names)
        if not isinstance(objectives[0], JointValues) or set(names) != set(objectives[0].values):
            return None
    plans: list[tuple[np.ndarray[Any, np.dtype[np.int64]], Array]] = []
    first_indices = np.concatenate([[0], np.cumsum([TARGET_SIZES[kind] for kind in kinds])])
    for subproblem in problem.subproblems:
        plan: list[tuple[int, int, int, int]] = []
        rotations: list[Array] = []
        for block, (owner, index) in enumerate(zip(subproblem.owners, subproblem.relation_indices, strict=True)):
            if owner < 0 or owner >= len(objectives) or target_kinds[owner] == UNCHANGED:
                continue
            k = index if target_kinds[owner] == TARGET_VALUE else owner
            angle_index = _nearest_angle_index(problem, objectives[owner], relations[owner][index], bounds)
            if angle_index is None:
                return None
            objective, relation = objectives[owner], relations[owner][index]
            rotations.append(
                _round_to_axes(objective.target[:3, :3].T @ relation.X_a[:3, :3])
                if isinstance(objective, PoseGoal)
                else EYE
            )
            target_index = subproblem.packed.target_index(block)
            plan.append((kinds[k], target_index, int(first_indices[k]), angle_index))
        plan_table = np.array(plan, dtype=np.int64).reshape(-1, 4)
        plans.append((plan_table, np.array(rotations, dtype=np.float64).reshape(-1, 9)))
    initial_targets = [
        _initial_target(objective, objective_relations)
        for objective, objective_relations, kind in zip(objectives, relations, target_kinds, strict=True)
        if kind != UNCHANGED
    ]
    return MultiTargetWriter(kinds, names, tuple(plans), np.concatenate(initial_targets))


def _round_to_axes(R: Array) -> Array:
    """Return R rounded to integers if it is a permutation of axes up to rounding errors, else R."""
    return np.rint(R) if np.abs(R - np.rint(R)).max() < 1e-9 else R


def _initial_target(objective: Objective, relations: Sequence[Relation]) -> Array:
    """Return the target that an objective was made with, as a flat array."""
    if isinstance(objective, PoseGoal):
        return objective.target.ravel()
    return np.concatenate(
        [
            relation.target if relation.kind is RelationKind.JOINT_VALUE else relation.X_a[:3, 3]
            for relation in relations
        ]
    )


def _target_kind(mechanism: Mechanism, objective: Objective, relations: Sequence[Relation]) -> int | None:
    """Return the kind of an objective's target, or None if it cannot be written directly."""
    if type(objective) is PoseGoal:
        # a new target may change only the X_a of its relations
        probe_relations = objective.with_target(PROBE_POSE).relations(mechanism)
        follow_target = [
            _follows_target(relation, probe_relation, objective.target)
            for relation, probe_relation in zip(relations, probe_relations, strict=True)
        ]
        return TARGET_POSE if relations and all(follow_target) else None
    if type(objective) is PositionGoal:
        relation = relations[0]
        is_in_world = (
            len(relations) == 1
            and relation.kind is RelationKind.POSE
            and relation.a is None
            and relation.world_axes is None
        )
        return TARGET_POSITION if is_in_world else None
    if type(objective) is JointValues:
        return TARGET_VALUE if all(relation.kind is RelationKind.JOINT_VALUE for relation in relations) else None
    # relations that depend on the start must be made for each call
    return None if isinstance(objective, JointObjective) else UNCHANGED


def _follows_target(relation: Relation, probe_relation: Relation, target: Array) -> bool:
    has_same_structure = (
        relation.a is probe_relation.a is None
        and relation.world_axes is probe_relation.world_axes is None
        and same_structure(relation, probe_relation)
    )
    offset = inverse(target) @ relation.X_a
    moves_along = (
        np.abs(inverse(PROBE_POSE) @ probe_relation.X_a - offset).max() < 1e-9 and np.abs(offset[:3, 3]).max() < 1e-12
    )
    return has_same_structure and bool(moves_along) and np.array_equal(relation.X_b, probe_relation.X_b)


def _nearest_angle_index(
    problem: Problem, objective: Objective, relation: Relation, bounds: tuple[Array, Array]
) -> int | None:
    """Return the index in q of a reference angle; full revolutions shift the target angle as near to it as possible.

    NO_REFERENCE if the target is taken as given; None if limits restrict the choice.
    """
    if relation.kind is not RelationKind.JOINT_VALUE or (
        isinstance(objective, JointValues) and objective.angle_mode == "exact"
    ):
        return NO_REFERENCE
    k = problem.tree.x_of[relation.dof_name]
    if k >= len(bounds[0]):
        return None
    if not problem.tree.rotates[problem.tree.v_of_x[k]]:
        return NO_REFERENCE
    return k if bounds[0][k] == -np.inf and bounds[1][k] == np.inf else None
