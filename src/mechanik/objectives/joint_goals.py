"""Objectives for joint values: `JointValues` for given joints, `RestPose` as a soft preference.

Values become relations of the kinds `JOINT_VALUE` and `SPHERICAL_JOINT`, or `POSE` for a joint that closes a loop (see
`relation.py`). A target angle may stand for all angles that differ from it by full revolutions. Then the equivalent
angle nearest to the current configuration is used, so the relations depend on q.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Literal, Self, Unpack

import numpy as np

from mechanik.errors import CouplingError, DoFError, NotFinite, ObjectiveError, ShapeError, UnknownName
from mechanik.model import DoF, Joint, Mechanism
from mechanik.model.dof import ROTATIONS
from mechanik.model.joint_constraint import MIN_RATIO
from mechanik.model.kinematics import joint_and_dofs
from mechanik.objectives.constraint_relations import closure_value_relations
from mechanik.objectives.objective import ErrorNorms, Objective, ObjectiveOptions, ResidualDefinition
from mechanik.objectives.relation import Relation, RelationKind, TargetPart, TargetWrite
from mechanik.objectives.target_spec import TargetSpec
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number, as_quaternion, format_count, read_only

MAX_PERIOD_MULTIPLE = 1000
"""Largest multiple of a period that is a common period of two targets."""
PERIOD_TOLERANCE = 1e-13
"""Largest relative difference of two multiples of periods that count as equal."""


@dataclass(frozen=True, slots=True, eq=False)
class JointTarget:
    """Target of one scalar dof, of one spherical joint, or of a joint that closes a loop.

    Attributes:
        relation: residual of the target.
        period: m or rad; targets of a scalar dof that differ by multiples of the period are equivalent. Infinite: no
            other target is equivalent.
    """

    relation: Relation
    period: float = math.inf


def as_values_by_name(values: Mapping[str, ArrayLike], label: str) -> dict[str, Array]:
    """Validate a mapping from names to one or more finite numbers; return read-only arrays (n,).

    Args:
        label: label of the mapping, for messages.

    Raises:
        ShapeError: `values` is not a mapping, or a value is not a number or a list of numbers.
        NotFinite: a number is not finite.
    """
    if not isinstance(values, Mapping):
        raise ShapeError(f"{label} must be given by name, as in {{'elbow': 0.5}}, not {values!r}")
    arrays: dict[str, Array] = {}
    for name, value in values.items():
        try:
            array = np.atleast_1d(np.array(value, dtype=np.float64))
        except (TypeError, ValueError):
            raise ShapeError(f"{label} at {name!r}: {value!r} is neither a number nor a list of numbers") from None
        if array.ndim != 1:
            raise ShapeError(
                f"{label} at {name!r} must be a number or a list of numbers, not an array of shape {array.shape}"
            )
        for number in array:
            as_number(number, f"{label} at {name!r}")
        arrays[str(name)] = read_only(array)
    return arrays


def joint_targets_by_name(
    mechanism: Mechanism, values: Mapping[str, Array], weight: float = 1.0
) -> tuple[JointTarget, ...]:
    """Return the targets for `values` given by joint (`elbow`) or by dof (`base.X`).

    A joint with several dofs takes a number for each, in the order X Y Z EX EY EZ; a spherical joint takes three angles
    or a quaternion wxyz. The value of a mimic joint becomes a target of its leader.

    Raises:
        UnknownName: there is no such joint or dof.
        DoFError: a joint is fixed, lacks the dof or has no child link; or only some angles of a spherical joint, or of
            a closing joint, are given.
        ShapeError: the number of values is not the number of dofs.
        CouplingError: a mimic joint has the ratio 0.
        ObjectiveError: the values of two names contradict each other.
    """
    targets: dict[str, JointTarget] = {}
    name_by_dof: dict[str, str] = {}
    number_count = 0
    for name, numbers in values.items():
        first_index = number_count
        number_count += numbers.size
        joint, dofs = joint_and_dofs(name, mechanism.joints)
        if not dofs:
            raise DoFError(f"{joint} is fixed and has no value; remove it from the values")
        for dof_name, target in _targets_of_joint(mechanism, joint, dofs, numbers, weight, first_index):
            if dof_name in targets and not _have_same_value(targets[dof_name], target):
                earlier_name, earlier_value, value = (
                    name_by_dof[dof_name],
                    targets[dof_name].relation.target,
                    target.relation.target,
                )
                raise ObjectiveError(
                    f"{earlier_name!r} and {name!r} contradict each other: they set {dof_name!r} to "
                    f"{_values_text(earlier_value)} and to {_values_text(value)}"
                    f"{_mimic_note(earlier_name, name, dof_name)}"
                )
            if dof_name in targets:
                period = _common_period(targets[dof_name].period, target.period)
                # without target_writes, since new values may contradict each other and need this check
                target = replace(target, relation=replace(target.relation, target_writes=None), period=period)
            targets[dof_name] = target
            name_by_dof[dof_name] = name
    return tuple(targets.values())


def joint_targets_from_q(mechanism: Mechanism, q: Array, weight: float = 1.0) -> tuple[JointTarget, ...]:
    """Return the targets of all dofs for a configuration q (nq,)."""
    space = mechanism.space
    targets: list[JointTarget] = []
    for joint, indices in mechanism.kinematics.joint_indices.items():
        targets += [
            dof_target(space.q_names[k], float(q[k]), dof, weight, TargetWrite(TargetPart.VALUE, k))
            for dof, k in indices.q.items()
        ]
        if indices.quaternion_q is not None:
            k = indices.quaternion_q
            write = TargetWrite(TargetPart.QUATERNION, k)
            targets.append(spherical_joint_target(mechanism.name_of(joint), q[k : k + 4], weight, write))
    return tuple(targets)


def nearest_relations(
    mechanism: Mechanism,
    targets: Iterable[JointTarget],
    q: Array,
    lower: Array | None = None,
    upper: Array | None = None,
) -> tuple[Relation, ...]:
    """Return the relations of targets; each value is shifted by multiples of its period to be nearest to q (nq,).

    Args:
        lower, upper: (nq,), limits inside which the shifted value should be; default: those of the mechanism.
    """
    space = mechanism.space
    lower_limits, upper_limits = space.lower if lower is None else lower, space.upper if upper is None else upper
    relations: list[Relation] = []
    for joint_target in targets:
        relation = joint_target.relation
        if relation.kind is RelationKind.JOINT_VALUE and math.isfinite(joint_target.period):
            k = space.q_names.index(relation.dof_name)
            target = nearest_equivalent_value(
                float(relation.target[0]),
                float(q[k]),
                float(lower_limits[k]),
                float(upper_limits[k]),
                joint_target.period,
            )
            relation = replace(relation, target=read_only(np.array([target])))
        relations.append(relation)
    return tuple(relations)


def nearest_equivalent_value(
    target: float, value: float, lower: float = -math.inf, upper: float = math.inf, period: float = 2 * math.pi
) -> float:
    """Return the value inside the limits that is equivalent to `target` (modulo `period`) and nearest to `value`.

    If no equivalent value is inside the limits, return the equivalent value nearest to the limits.
    """
    min_period_count = -math.inf if lower == -math.inf else math.ceil((lower - target) / period - 1e-12)
    max_period_count = math.inf if upper == math.inf else math.floor((upper - target) / period + 1e-12)
    if min_period_count <= max_period_count:
        return target + period * min(max(round((value - target) / period), min_period_count), max_period_count)
    value_below, value_above = target + period * max_period_count, target + period * min_period_count
    return value_below if lower - value_below < value_above - upper else value_above


def dof_target(
    dof_name: str, target: float, dof: DoF, weight: float, target_write: TargetWrite | None = None
) -> JointTarget:
    """Return the target of one scalar dof; `target_write` is its declaration, None if there is none."""
    relation = Relation(
        RelationKind.JOINT_VALUE, (0,), dof_name=dof_name, target=read_only(np.array([target])), weight=weight,
        target_writes=None if target_write is None else (target_write,),
    )  # fmt: skip
    return JointTarget(relation, 2 * math.pi if dof.is_rotation else math.inf)


def spherical_joint_target(
    joint: str, wxyz: ArrayLike, weight: float, target_write: TargetWrite | None = None
) -> JointTarget:
    """Return the target of a spherical joint, given by name and quaternion wxyz (4,).

    `target_write` is its declaration, None if there is none.
    """
    target = as_quaternion(wxyz, f"target of {joint!r}")
    writes = None if target_write is None else (target_write,)
    return JointTarget(
        Relation(
            RelationKind.SPHERICAL_JOINT, (0, 1, 2), dof_name=joint, target=target, weight=weight, target_writes=writes
        )
    )


def _targets_of_joint(
    mechanism: Mechanism, joint: Joint, dofs: tuple[DoF, ...], numbers: Array, weight: float, first_index: int
) -> list[tuple[str, JointTarget]]:
    """Return the targets of a joint's dofs, each with a key under which contradictory targets are found.

    The key is the name of the dof in q that the target constrains, or the name of the spherical joint. Targets of a
    closing joint have keys of their own. `first_index` is the index of the first of the numbers among those of all
    joints.
    """
    name, space = mechanism.name_of(joint), mechanism.space
    if joint.closure is not None:
        values = dict(zip(dofs, _check_size(numbers, len(dofs), joint).tolist(), strict=True))
        relations = closure_value_relations(mechanism, joint.closure, values, weight)
        return [(f"{name}.{dofs}.{k}", JointTarget(relation)) for k, relation in enumerate(relations)]
    indices = mechanism.kinematics.joint_indices.get(joint)
    if indices is None:
        raise DoFError(f"{joint} has no child link and therefore no value; attach a link to it")
    targets: list[tuple[str, JointTarget]] = []
    rotations = [dof for dof in dofs if dof.is_rotation]
    if indices.quaternion_q is not None and rotations:
        if len(rotations) < 3:
            raise DoFError(f"{joint} is spherical: one angle alone cannot be a target; give all three angles, or wxyz")
        translation_count = len(dofs) - 3
        write = None
        if numbers.size == translation_count + 4:
            wxyz, write = (
                numbers[translation_count:],
                TargetWrite(TargetPart.QUATERNION, first_index + translation_count),
            )
        else:
            numbers = _check_size(numbers, len(dofs), joint)
            wxyz = quaternion.from_euler(numbers[:-4:-1], order="zyx", axes="moving")
        targets.append((name, spherical_joint_target(name, wxyz, weight, write)))
        dofs, numbers = dofs[:translation_count], numbers[:translation_count]
    for index, (dof, number) in enumerate(zip(dofs, _check_size(numbers, len(dofs), joint).tolist(), strict=True)):
        write = TargetWrite(TargetPart.VALUE, first_index + index)
        if dof in joint._couplings:
            leader, leader_dof, ratio, offset = joint._couplings[dof].resolve()
            if abs(ratio) < MIN_RATIO:
                raise CouplingError(
                    f"{joint} mimics {leader} with ratio 0 and stays at {offset:g} "
                    f"{'rad' if dof.is_rotation else 'm'}, so it cannot have a target"
                )
            dof_name = space.q_names[mechanism.kinematics.joint_indices[leader].q[leader_dof]]
            write = replace(write, ratio=ratio, offset=offset)
            leader_target = dof_target(dof_name, (number - offset) / ratio, dof, weight * abs(ratio), write)
            targets.append((dof_name, JointTarget(leader_target.relation, leader_target.period / abs(ratio))))
        else:
            dof_name = space.q_names[indices.q[dof]]
            targets.append((dof_name, dof_target(dof_name, number, dof, weight, write)))
    return targets


def _check_size(numbers: Array, size: int, joint: Joint) -> Array:
    if numbers.size != size:
        count = format_count(numbers.size, "value")
        raise ShapeError(f"{count} given for {joint}, but the joint has {format_count(size, 'dof')}")
    return numbers


def _have_same_value(target: JointTarget, other_target: JointTarget) -> bool:
    a, b = target.relation.target, other_target.relation.target
    return a.shape == b.shape and bool(np.abs(a - b).max() < 1e-9)


def _common_period(period: float, other_period: float) -> float:
    """Return the smallest common multiple of two periods; infinite if they are (nearly) incommensurable."""
    if not (math.isfinite(period) and math.isfinite(other_period)):
        return math.inf
    ratio = Fraction(period / other_period).limit_denominator(MAX_PERIOD_MULTIPLE)
    is_exact = ratio > 0 and abs(period / other_period / float(ratio) - 1.0) < PERIOD_TOLERANCE
    return period * ratio.denominator if is_exact else math.inf


def _mimic_note(earlier_name: str, name: str, dof_name: str) -> str:
    """Return a note for a message: which of two names are mimic joints of `dof_name`; empty if none is."""
    mimic_names = [
        repr(candidate) for candidate in (earlier_name, name) if candidate.split(".")[0] != dof_name.split(".")[0]
    ]
    return f" ({' and '.join(mimic_names)} {'mimics' if len(mimic_names) == 1 else 'mimic'} it)" if mimic_names else ""


AngleMode = Literal["nearest", "exact"]
""""nearest": an angle means the nearest equivalent angle. "exact": full revolutions count."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JointObjective(Objective):
    """Base class of objectives for joint values. Their relations can depend on the current configuration.

    Solvers, `residual`, `jacobian` and `error` use the relations of `nearest_relations`.

    Attributes:
        angle_mode: "nearest": an angle means the nearest equivalent angle inside the limits; "exact": full revolutions
            count.
    """

    angle_mode: AngleMode

    def __init__(self, angle_mode: AngleMode, **options: Unpack[ObjectiveOptions]) -> None:
        Objective.__init__(self, **options)
        if angle_mode not in ("nearest", "exact"):
            raise ObjectiveError(f"angle_mode of {self._label} must be 'nearest' or 'exact', not {angle_mode!r}")
        object.__setattr__(self, "angle_mode", angle_mode)

    @abstractmethod
    def joint_targets(self, mechanism: Mechanism) -> tuple[JointTarget, ...]:
        """Return the targets by joint or dof.

        Raises:
            UnknownName: there is no such joint or dof.
        """

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        """Return the relations with the angles as given; `nearest_relations` adds full revolutions."""
        return tuple(target.relation for target in self.joint_targets(mechanism))

    def nearest_relations(
        self, mechanism: Mechanism, q: ArrayLike, lower: Array | None = None, upper: Array | None = None
    ) -> tuple[Relation, ...]:
        """Return the relations for a solve that starts at q (nq,), with angles chosen by `angle_mode`.

        Args:
            lower, upper: (nq,), limits inside which the angles should be; default: those of the mechanism.
        """
        if self.angle_mode == "exact":
            return self.relations(mechanism)
        return nearest_relations(mechanism, self.joint_targets(mechanism), mechanism._single_q(q), lower, upper)

    def error(self, mechanism: Mechanism, q: ArrayLike) -> ErrorNorms:
        return FixedRelations(self.nearest_relations(mechanism, q)).error(mechanism, q)

    def _residual_and_jacobian(
        self, mechanism: Mechanism, q: ArrayLike, definition: ResidualDefinition
    ) -> tuple[Array, Array]:
        if definition != "mechanik":
            return Objective._residual_and_jacobian(self, mechanism, q, definition)
        return FixedRelations(self.nearest_relations(mechanism, q))._residual_and_jacobian(mechanism, q, definition)


@dataclass(frozen=True, slots=True, eq=False)
class FixedRelations(Objective):
    """Objective that consists of given relations, such as joint values whose angles no longer depend on q."""

    fixed_relations: tuple[Relation, ...]

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        return self.fixed_relations


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JointValues(JointObjective):
    """Goal: joints or single dofs have given values; 1 residual row for each scalar dof, 3 for a spherical joint.

    Args:
        values: by joint (`elbow`) or by dof (`base.X`): a number, or one for each dof of the joint, m or rad. A
            spherical joint takes three angles (EX EY EZ) or a quaternion wxyz. The value of a mimic joint becomes a
            target of its leader. For a joint that closes a loop, give the values of all of its rotations or of none.
        angle_mode: "nearest": an angle means the nearest equivalent angle inside the limits; "exact": full revolutions
            count.
        **options: `weight`, `level`, `tolerance` and the other fields of `Objective`.

    Raises:
        ObjectiveError: no joint is named, or `angle_mode` is unknown.
        ShapeError, NotFinite: values are not given by name, are not numbers, or are not finite.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> print(mk.JointValues({"joint2": 0.5}).error(arm, [0.0, 0.2 + 2 * np.pi]))
        0.3 rad
    """

    values: Mapping[str, Array]

    def __init__(
        self, values: Mapping[str, ArrayLike], *, angle_mode: AngleMode = "nearest", **options: Unpack[ObjectiveOptions]
    ) -> None:
        JointObjective.__init__(self, angle_mode, **options)
        arrays = as_values_by_name(values, f"values of {self._label}")
        if not arrays:
            raise ObjectiveError(f"values of {self._label} is empty; give a value for at least one joint")
        object.__setattr__(self, "values", arrays)

    def __repr__(self) -> str:
        targets = ", ".join(f"{name} = {_values_text(numbers)}" for name, numbers in self.values.items())
        return f"<{self._label}: {targets}>"

    def joint_targets(self, mechanism: Mechanism) -> tuple[JointTarget, ...]:
        """Return the targets of the joints and dofs in `values`, with the weight of the goal.

        Args:
            mechanism: the mechanism with these joints.

        Raises:
            UnknownName: there is no such joint or dof.
            ObjectiveError: the values of two names contradict each other.
        """
        return joint_targets_by_name(mechanism, self.values, self.weight)

    @property
    def target_spec(self) -> TargetSpec:
        """Declaration of the target: the values of all names, one after the other."""
        value, restore = np.concatenate(list(self.values.values())), partial(_split_by_name, self.values)
        shapes = (value.shape,) if len(self.values) == 1 else ()
        return TargetSpec(value, self._parse_target, shapes, restore, takes_names=True)

    def with_target(self, target: Mapping[str, ArrayLike] | ArrayLike) -> Self:
        """Return the same goal with other values.

        Args:
            target: new values by name, while the other values stay; or only the new value, if the goal has a single
                name.

        Raises:
            UnknownName: the goal has no such name.
            ObjectiveError: a value without a name is given, and the goal has several names.
        """
        goal = copy(self)
        object.__setattr__(goal, "values", self._with_values(target))
        return goal

    def _with_values(self, target: Mapping[str, ArrayLike] | ArrayLike) -> dict[str, Array]:
        """Return the values by name, with those of a target."""
        if not isinstance(target, Mapping):
            if len(self.values) > 1:
                raise ObjectiveError(
                    f"{self._label} has values for {len(self.values)} names; give the new values by name"
                )
            target = {next(iter(self.values)): target}
        new_values = as_values_by_name(target, f"values of {self._label}")
        for name in new_values:
            if name not in self.values:
                raise UnknownName(f"value of {self._label}", name, self.values)
        return {**self.values, **new_values}

    def _parse_target(self, target: Mapping[str, ArrayLike] | ArrayLike) -> Array:
        """Return the values of all names, one after the other."""
        values = self._with_values(target)
        if not _have_same_sizes(values, self.values):
            raise ShapeError(f"target of {self._label} has another number of values for a joint than the present one")
        return np.concatenate(list(values.values()))


def _split_by_name(values: Mapping[str, Array], numbers: Array) -> dict[str, Array]:
    """Return the numbers of all names, one after the other, by name; `values` has the names and their sizes."""
    ends = np.cumsum([value.size for value in values.values()])
    return dict(zip(values, np.split(numbers, ends[:-1]), strict=True))


def _have_same_sizes(values: Mapping[str, Array], other_values: Mapping[str, Array]) -> bool:
    return values.keys() == other_values.keys() and all(
        value.shape == other_values[name].shape for name, value in values.items()
    )


def _values_text(numbers: Array) -> str:
    return f"{numbers[0]:g}" if numbers.size == 1 else str(np.round(numbers, 4).tolist())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RestPose(JointObjective):
    """Soft preference for a configuration; by default at level 100 and not required for success.

    Args:
        q: a configuration (nq,); or values by name, as for `JointValues`; or None: the `rest_pose` of the joints at the
            time of the solve; where these give only some angles of a spherical joint or of a joint that closes a loop,
            the other angles are those of the mechanism.
        weights: by joint or dof, factor of the residual; default 1. A dof with weight 0 is ignored.
        angle_mode: as for `JointValues`. With q=None, full revolutions always count in a joint with `track_turns`.
        **options: `weight`, `level`, `tolerance` and the other fields of `Objective`.

    Raises:
        ObjectiveError: a weight is negative, or `angle_mode` is unknown.
        ShapeError, NotFinite: q is not one configuration, `weights` is not a mapping, or a number is not finite.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> print(mk.RestPose([0.1, 0.2]).error(arm, [0.1, 0.0]))
        0.2 rad
    """

    q: Array | Mapping[str, Array] | None
    weights: Mapping[str, float]

    def __init__(
        self,
        q: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        weights: Mapping[str, float] | None = None,
        angle_mode: AngleMode = "nearest",
        **options: Unpack[ObjectiveOptions],
    ) -> None:
        options.setdefault("level", 100)
        options.setdefault("required", False)
        JointObjective.__init__(self, angle_mode, **options)
        object.__setattr__(self, "q", self._check_configuration(q))
        object.__setattr__(self, "weights", self._check_weights(weights))

    def __repr__(self) -> str:
        source = "of the joints' rest_pose" if self.q is None else f"of {format_count(len(self.q), 'value')}"
        return f"<{self._label} {source}>"

    def joint_targets(self, mechanism: Mechanism) -> tuple[JointTarget, ...]:
        """Return the targets of all dofs that have a rest value and a weight above zero.

        Args:
            mechanism: the mechanism with these joints; with q=None its joints give the rest values.

        Raises:
            UnknownName: there is no such joint or dof.
        """
        if self.q is None:
            targets = _rest_pose_targets(mechanism)
        elif isinstance(self.q, Mapping):
            targets = joint_targets_by_name(mechanism, self.q)
        else:
            targets = joint_targets_from_q(mechanism, mechanism._single_q(self.q))
        weights = self._weight_by_dof(mechanism)
        weighted_targets: list[JointTarget] = []
        for target in targets:
            weight = weights.get(target.relation.dof_name, 1.0) * target.relation.weight * self.weight
            if weight > 0.0:
                weighted_targets.append(JointTarget(replace(target.relation, weight=weight), target.period))
        return tuple(weighted_targets)

    @property
    def target_spec(self) -> TargetSpec:
        """Declaration of the target: a configuration (nq,), or the values of all names, one after the other."""
        if self.q is None:
            return TargetSpec(None, self._parse_target, takes_names=True)
        if isinstance(self.q, np.ndarray):
            return TargetSpec(self.q, self._parse_target, (self.q.shape,), takes_names=True)
        value, restore = np.concatenate([np.zeros(0), *self.q.values()]), partial(_split_by_name, self.q)
        return TargetSpec(value, self._parse_target, restore=restore, takes_names=True)

    def with_target(self, target: ArrayLike | Mapping[str, ArrayLike]) -> Self:
        """Return the same preference for another configuration (nq,), or for values by name.

        Args:
            target: configuration (nq,), or values by joint or dof name; m or rad.
        """
        objective = copy(self)
        object.__setattr__(objective, "q", self._check_configuration(target))
        return objective

    def _parse_target(self, target: ArrayLike | Mapping[str, ArrayLike]) -> Array:
        """Return the numbers of a target of the same form as the present one, else raise `ShapeError`."""
        q, own_q = self._check_configuration(target), self.q
        if isinstance(q, np.ndarray) and isinstance(own_q, np.ndarray) and q.shape == own_q.shape:
            return q
        if isinstance(q, Mapping) and isinstance(own_q, Mapping) and _have_same_sizes(q, own_q):
            return np.concatenate([np.zeros(0), *(q[name] for name in own_q)])
        raise ShapeError(f"target of {self._label} has another form than the present one")

    def _check_configuration(self, q: ArrayLike | Mapping[str, ArrayLike] | None) -> Array | Mapping[str, Array] | None:
        if q is None:
            return None
        if isinstance(q, Mapping):
            return as_values_by_name(q, f"values of {self._label}")
        try:
            values = np.array(q, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError(f"q of {self._label} must be an array of numbers, not {q!r}") from None
        if values.ndim != 1:
            raise ShapeError(
                f"q of {self._label} must be one configuration (nq,), not an array of shape {values.shape}"
            )
        if not np.isfinite(values).all():
            raise NotFinite(f"q of {self._label} has an entry that is not finite")
        return read_only(values)

    def _check_weights(self, weights: Mapping[str, float] | None) -> dict[str, float]:
        if weights is None:
            return {}
        if not isinstance(weights, Mapping):
            raise ShapeError(f"weights of {self._label} must be given by name, as in {{'elbow': 0.1}}, not {weights!r}")
        weight_by_name = {str(name): as_number(weight, f"weight of {name!r}") for name, weight in weights.items()}
        for name, weight in weight_by_name.items():
            if weight < 0.0:
                raise ObjectiveError(f"weight of {name!r} in {self._label} is {weight:g}; it must not be negative")
        return weight_by_name

    def _weight_by_dof(self, mechanism: Mechanism) -> dict[str, float]:
        """Return the weights by dof name in q, or by joint name for a spherical joint."""
        weights: dict[str, float] = {}
        for name, weight in self.weights.items():
            joint, dofs = joint_and_dofs(name, mechanism.joints)
            indices = mechanism.kinematics.joint_indices.get(joint)
            if indices is None:
                raise ObjectiveError(f"{joint} has no value in q; remove it from `weights` of {self._label}")
            weights |= {mechanism.space.q_names[indices.q[dof]]: weight for dof in dofs if dof in indices.q}
            if indices.quaternion_q is not None and any(dof in ROTATIONS for dof in dofs):
                if not all(dof in dofs for dof in ROTATIONS):
                    raise DoFError(
                        f"{joint} is spherical: a single angle cannot have a weight; give one weight for the joint"
                    )
                weights[mechanism.name_of(joint)] = weight
        return weights


def _rest_pose_targets(mechanism: Mechanism) -> tuple[JointTarget, ...]:
    """Return the targets given by `rest_pose` of each joint."""
    targets: list[JointTarget] = []
    for name, joint in mechanism.joints.items():
        rest_values = _rest_values(joint)
        indices = mechanism.kinematics.joint_indices.get(joint)
        if joint.closure is not None:
            targets += [
                JointTarget(relation) for relation in closure_value_relations(mechanism, joint.closure, rest_values)
            ]
        elif indices is not None:
            scalar_dofs = [(mechanism.space.q_names[k], dof) for dof, k in indices.q.items() if dof in rest_values]
            scalar_targets = [dof_target(dof_name, rest_values[dof], dof, 1.0) for dof_name, dof in scalar_dofs]
            targets += (
                [JointTarget(target.relation) for target in scalar_targets] if joint.track_turns else scalar_targets
            )
            if indices.quaternion_q is not None and DoF.EX in rest_values:
                zyx = [rest_values[dof] for dof in reversed(ROTATIONS)]
                targets.append(
                    spherical_joint_target(name, quaternion.from_euler(zyx, order="zyx", axes="moving"), 1.0)
                )
    return tuple(targets)


def _rest_values(joint: Joint) -> dict[DoF, float]:
    """Return a joint's rest values by dof.

    The rotations of a quaternion or of a closing joint can only be constrained together. If some of them have a rest
    value, the others get their current value.
    """
    values = {dof: value for dof, value in zip(joint.dof, joint.rest_pose, strict=True) if value is not None}
    rotations = [dof for dof in joint.dof if dof.is_rotation]
    if (joint.has_quaternion or joint.is_closure) and any(dof in values for dof in rotations):
        return {dof: joint.value(dof) for dof in rotations} | values
    return values
