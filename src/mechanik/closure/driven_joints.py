"""Driven joints (inputs): validation of their values, and the straight path from their present values to the goal.

The path parameter s increases from 0 to `DrivenJoints.path_length`, the length of the path of all inputs in scaled
units (rad, or lengths divided by `LoopSystem.length_unit`). An input that is a single value of q changes linearly in s.
A spherical joint rotates at a constant rate about one axis. A closing joint (a joint that closes a loop) translates
linearly and rotates like a spherical joint. A closing joint has no value in q; its value is the goal plus the residual.
If it rotates about a single axis, full rotations are counted along the path.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mechanik.closure.loop_system import LoopSystem
from mechanik.errors import InvalidArgument, ShapeError
from mechanik.model import Joint, Mechanism
from mechanik.model.kinematics import joint_and_dofs
from mechanik.objectives.joint_goals import as_values_by_name, joint_targets_by_name, nearest_equivalent_value
from mechanik.objectives.objective import length_row_mask
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.spatial import make_pose, quaternion, rotation
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import read_only

InputValues = Mapping[str | Joint, ArrayLike] | Mapping[str, ArrayLike]
"""Input values by joint, joint name or dof name, m or rad."""


def as_inputs(mechanism: Mechanism, inputs: InputValues | None) -> dict[str, Array]:
    """Validate input values and return them by joint or dof name, (n,) each."""
    if inputs is None:
        return {}
    return as_values_by_name(values_by_name(mechanism, inputs) if isinstance(inputs, Mapping) else inputs, "input")


def values_by_name(mechanism: Mechanism, inputs: InputValues) -> dict[str, ArrayLike]:
    """Return values by joint or dof name, from a mapping whose keys are joints or names.

    Raises:
        ShapeError: if a value is None, or a joint is given twice.
    """
    values: dict[str, ArrayLike] = {}
    for key, value in inputs.items():
        name = mechanism.name_of(key) if isinstance(key, Joint) else str(key)
        if value is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise ShapeError(f"input {name!r} is None; give a number, or omit the input")
        if name in values:
            raise ShapeError(f"input {name!r} is given twice: by its name, and as the joint itself")
        values[name] = value
    return values


def as_weights(weights: Mapping[str, float] | None) -> Mapping[str, float]:
    """Return weights by joint or dof name; empty for None.

    Raises:
        InvalidArgument: if `weights` is not a mapping.
    """
    if weights is not None and not isinstance(weights, Mapping):
        raise InvalidArgument(f"weights must be given by name, such as {{'elbow': 2}}, not {weights!r}")
    return weights or {}


class DrivenJoints:
    """Driven joints of a mechanism, and their residual along the path to their goal values.

    Attributes:
        loops: the loop equations.
        values: goal values by name as the caller gave them, m or rad.
        names: joint or dof name of each entry of `relations`, as in `values`.
        relations: relations whose residual is zero if the inputs have their goal values, clamped to the limits.
        unclamped_relations: the same relations with the goal values as the caller gave them.
        clamped_names: names of the inputs whose goal values are clamped.
        start_residual: (m,) residual of `relations` at the start, in scaled units.
        path_length: norm of `start_residual`, in scaled units.
    """

    def __init__(
        self,
        loops: LoopSystem,
        values: Mapping[str, Array],
        q: Array,
        ignore_limits: bool = False,
        closing_angles: Mapping[str, float] | None = None,
    ) -> None:
        """Create the relations of the inputs, and start the path at `q`.

        Args:
            loops: the loop equations.
            values: goal values by joint or dof name, (n,) each, m or rad.
            q: (nq,) start of the path.
            ignore_limits: whether goal values may be outside the limits; otherwise they are clamped.
            closing_angles: approximate angles (rad) at `q` of closing joints with a single rotation axis, by joint
                name; full rotations are counted from these angles. Default: the angle that is stored in the joint.
        """
        self.loops, self.values, self._ignore_limits = loops, values, ignore_limits
        self._known_angles = closing_angles or {}
        # by index in `relations`: a closing joint with a single rotation axis, and its goal angle in rad
        self._closing_angle_goals: dict[int, tuple[Joint, float]] = {}
        self.names: list[str] = []
        self.relations: list[Relation] = []
        self.unclamped_relations: list[Relation] = []
        self.clamped_names: list[str] = []
        mechanism = loops.mechanism
        joint_targets_by_name(mechanism, values)  # raises if values contradict each other
        for name, numbers in values.items():
            clamped_values = self._clamp_closing_joint(name, numbers)
            targets = joint_targets_by_name(mechanism, {name: numbers})
            clamped_targets = joint_targets_by_name(mechanism, {name: clamped_values})
            for target, clamped_target in zip(targets, clamped_targets, strict=True):
                if target.relation.kind is RelationKind.POSE and target.relation.rows == (5,):
                    # the values of a joint are ordered X Y Z EX EY EZ, so a single angle is the last
                    joint = joint_and_dofs(name, mechanism.joints)[0]
                    self._closing_angle_goals[len(self.names)] = joint, float(clamped_values[-1])
                self.names.append(name)
                self.unclamped_relations.append(target.relation)
                self.relations.append(self._clamp_relation(name, clamped_target.relation))
        self._scalar_inputs = self._find_scalar_inputs()
        self.set_start(q)

    def set_start(self, q: Array) -> None:
        """Set the start of the path to the input values at `q` (nq,)."""
        residuals = [self.loops.evaluate([relation], q)[0] for relation in self.relations]
        for k, (joint, goal) in self._closing_angle_goals.items():
            dof = next(dof for dof in joint.dof if dof.is_rotation)
            known_angle, (lower, upper) = joint.values[joint.dof.index(dof)], joint.limits(dof)
            name = self.loops.mechanism.name_of(joint)
            if name in self._known_angles:
                known_angle, lower, upper = self._known_angles[name], -math.inf, math.inf
            value = nearest_equivalent_value(
                goal + float(residuals[k][0]), float(known_angle), float(lower), float(upper)
            )
            residuals[k] = np.array([value - goal])
        self._start_residuals = residuals
        self.start_residual = np.concatenate([np.zeros(0), *residuals])
        self.path_length = float(np.linalg.norm(self.start_residual))

    def residual(self, q: Array, s: float) -> tuple[Array, Array, Array]:
        """Return the residual (m,) of the inputs at s, and its derivatives with respect to u (m, nv) and s (m,).

        u is a step as in `LoopSystem`. The derivatives of rotations with respect to s are exact only where the residual
        is zero.
        """
        remaining_share = 1.0 - s / self.path_length if self.path_length > 0.0 else 0.0
        s_derivatives = (
            self.start_residual / self.path_length if self.path_length > 0.0 else np.zeros(len(self.start_residual))
        )
        if self._scalar_inputs is not None:
            k, target, scale, J = self._scalar_inputs
            return (q[k] - target) * scale - remaining_share * self.start_residual, J, s_derivatives
        relations = [
            self._relation_on_path(relation, start_residual, remaining_share)
            for relation, start_residual in zip(self.relations, self._start_residuals, strict=True)
        ]
        e, J = self.loops.evaluate(relations, q)
        return e, J, s_derivatives

    def with_values(self, q: Array, s: float) -> Array:
        """Return a copy of `q` in which all inputs that are values of q are exactly at their values for s."""
        exact_q = q.copy()
        names, remaining_share = (
            self.loops.mechanism.space.q_names,
            1.0 - s / self.path_length if self.path_length > 0.0 else 0.0,
        )
        for relation, start_residual in zip(self.relations, self._start_residuals, strict=True):
            if relation.kind is RelationKind.JOINT_VALUE:
                relation_at_s = self._relation_on_path(relation, start_residual, remaining_share)
                exact_q[names.index(relation.dof_name)] = relation_at_s.target[0]
        return exact_q

    def errors(self, q: Array, s: float) -> dict[str, float]:
        """Return the distance (rad or m) of each input at (q, s) from its unclamped goal value, by name.

        Full rotations count, except for spherical joints and closing joints with several rotation axes.
        """
        errors: dict[str, float] = {}
        for k, (name, relation) in enumerate(zip(self.names, self.unclamped_relations, strict=True)):
            residual = self.loops.evaluate_unscaled(relation, q)
            if k in self._closing_angle_goals:
                requested_angle, (_, goal) = float(self.values[name][-1]), self._closing_angle_goals[k]
                residual = np.array([self._angle_beyond_goal(k, q, s) + goal - requested_angle])
            errors[name] = max(errors.get(name, 0.0), float(np.linalg.norm(residual)))
        return errors

    def closing_angles(self, q: Array, s: float) -> dict[str, float]:
        """Return the angle (rad) at (q, s) of each driven closing joint with a single rotation axis, by joint name.

        Full rotations count.
        """
        name_of = self.loops.mechanism.name_of
        return {
            name_of(joint): goal + self._angle_beyond_goal(k, q, s)
            for k, (joint, goal) in self._closing_angle_goals.items()
        }

    def _angle_beyond_goal(self, k: int, q: Array, s: float) -> float:
        """Return the angle of a closing joint minus its goal angle, rad.

        The residual determines the angle up to full rotations; s determines the number of full rotations.

        Args:
            k: a key of `_closing_angle_goals`.
        """
        remaining_share = 1.0 - s / self.path_length if self.path_length > 0.0 else 0.0
        angle = float(self.loops.evaluate_unscaled(self.relations[k], q)[0])
        return nearest_equivalent_value(angle, remaining_share * float(self._start_residuals[k][0]))

    def _find_scalar_inputs(self) -> tuple[npt.NDArray[np.int64], Array, Array, Array] | None:
        """Return indices into q, targets, scales and derivatives if each input is a single value of q; else None.

        With these arrays `residual` need not evaluate relations.
        """
        if not self.relations or any(relation.kind is not RelationKind.JOINT_VALUE for relation in self.relations):
            return None
        space = self.loops.mechanism.space
        k = np.array([space.q_names.index(relation.dof_name) for relation in self.relations])
        v = np.array([int(space.scalars_v[np.flatnonzero(space.scalars_q == index)[0]]) for index in k])
        scale = np.where(space.rotates[v], 1.0, 1.0 / self.loops.length_unit)
        J = np.zeros((len(k), self.loops.n))
        J[np.arange(len(k)), v] = self.loops.unit[v] * scale
        return k, np.array([float(relation.target[0]) for relation in self.relations]), scale, J

    def driven_dofs(self) -> list[int]:
        """Return the indices into v of the inputs that are values of q."""
        space = self.loops.mechanism.space
        names = {relation.dof_name for relation in self.relations if relation.kind is RelationKind.JOINT_VALUE}
        return [int(v) for k, v in zip(space.scalars_q, space.scalars_v, strict=True) if space.q_names[k] in names]

    @property
    def period(self) -> float:
        """Period of s after which the inputs repeat up to full rotations; infinite if none is known.

        It is 2 pi if exactly one input moves and rotates about a single axis, and all inputs are values of q or the
        moving input is a closing joint.
        """
        moving_inputs = [k for k, start_residual in enumerate(self._start_residuals) if np.any(start_residual)]
        if len(moving_inputs) == 1 and moving_inputs[0] in self._closing_angle_goals:
            return 2 * math.pi
        if self._scalar_inputs is None or int((self.start_residual != 0.0).sum()) != 1:
            return math.inf
        k = int(self._scalar_inputs[0][int(np.flatnonzero(self.start_residual)[0])])
        space = self.loops.mechanism.space
        is_rotation = bool(space.rotates[int(space.scalars_v[int(np.flatnonzero(space.scalars_q == k)[0])])])
        return 2 * math.pi if is_rotation else math.inf

    def _clamp_closing_joint(self, name: str, numbers: Array) -> Array:
        """Return the values of a closing joint, clamped to its limits; values of other joints are returned unchanged.

        The rotations of a joint with several rotation axes are not clamped.
        """
        joint, dofs = joint_and_dofs(name, self.loops.mechanism.joints)
        if joint.closure is None or self._ignore_limits or len(numbers) != len(dofs):
            return numbers
        has_several_rotations = sum(dof.is_rotation for dof in joint.dof) > 1
        limits = [
            (-math.inf, math.inf) if has_several_rotations and dof.is_rotation else joint.limits(dof) for dof in dofs
        ]
        clamped_values = np.clip(numbers, *np.array(limits).T)
        if not np.array_equal(clamped_values, numbers):
            self.clamped_names.append(name)
        return clamped_values

    def _clamp_relation(self, name: str, relation: Relation) -> Relation:
        if relation.kind is not RelationKind.JOINT_VALUE or self._ignore_limits:
            return relation
        space = self.loops.mechanism.space
        k, goal = space.q_names.index(relation.dof_name), float(relation.target[0])
        clamped_goal = float(np.clip(goal, space.lower[k], space.upper[k]))
        if clamped_goal == goal:
            return relation
        self.clamped_names.append(name)
        return replace(relation, target=read_only(np.array([clamped_goal])))

    def _relation_on_path(self, relation: Relation, start_residual: Array, remaining_share: float) -> Relation:
        """Return the relation whose residual is zero where `remaining_share` of the path remains."""
        if remaining_share == 0.0:
            return relation
        length_scale = np.where(
            length_row_mask(self.loops.mechanism, relation, len(start_residual)), self.loops.length_unit, 1.0
        )
        remaining_residual = remaining_share * start_residual * length_scale
        if relation.kind is RelationKind.JOINT_VALUE:
            return replace(relation, target=read_only(relation.target + remaining_residual))
        if relation.kind is RelationKind.SPHERICAL_JOINT:
            return replace(
                relation, target=read_only(quaternion.multiply(relation.target, quaternion.exp(remaining_residual)))
            )
        translation, rotation_vector = np.zeros(3), np.zeros(3)
        for row, value in zip(relation.rows, remaining_residual, strict=True):
            (translation if row < 3 else rotation_vector)[row % 3] = value
        return replace(relation, X_a=read_only(relation.X_a @ make_pose(rotation.exp(rotation_vector), translation)))


def shortest_closing_angles(mechanism: Mechanism, values: Mapping[str, Array]) -> dict[str, float]:
    """Return `closing_angles` for `DrivenJoints` with which each closing joint takes the shortest rotation to its goal.

    These are the goal angles (rad) by joint name: the start angle is then the equivalent angle nearest to the goal.
    """
    angles: dict[str, float] = {}
    for name, numbers in values.items():
        joint, dofs = joint_and_dofs(name, mechanism.joints)
        if joint.closure is not None and dofs and dofs[-1].is_rotation:
            angles[mechanism.name_of(joint)] = float(numbers[-1])
    return angles
