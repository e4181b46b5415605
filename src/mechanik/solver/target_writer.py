"""New targets for the objectives of a solver: new objectives, or a direct write to the kernel tables.

A target writer collects the numbers of all targets of a call in one array, and a small kernel writes them into the
tables. The objectives declare the numbers of their targets (`Objective.target_spec`), and their relations declare what
these move (`Relation.target_writes`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechanik.errors import MechanikError, ShapeError, UnknownName
from mechanik.kernels.write_targets import (
    FIRST_NUMBER,
    LEFT_POSITION,
    LEFT_ROTATION,
    LOWER,
    OFFSET,
    OPERATION,
    PERIOD,
    RATIO,
    REFERENCE,
    RIGHT_ROTATION,
    SLOT,
    UPPER,
    WRITE_BOUND,
    WRITE_DIRECTION,
    WRITE_FLOATS,
    WRITE_INTS,
    WRITE_INVERSE_ROTATION,
    WRITE_POSITION,
    WRITE_QUATERNION,
    WRITE_ROTATION,
    WRITE_VALUE,
)
from mechanik.model import Mechanism
from mechanik.objectives import Objective
from mechanik.objectives.joint_goals import JointObjective
from mechanik.objectives.relation import Relation, RelationKind, TargetPart, TargetWrite, evaluate_relation
from mechanik.objectives.target_spec import POSE, Shape, TargetSpec
from mechanik.problem import PackedProblem, Problem, Subproblem
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module
from mechanik.validation import read_only

Targets = Any
"""A target in any form that `Objective.with_target` takes; or several, by objective name or in order."""


def with_targets(objectives: tuple[Objective, ...], targets: Targets) -> tuple[Objective, ...]:
    """Return the objectives with new targets; None, or an entry None of a sequence, does not change a target."""
    if targets is None:
        return objectives
    takes_names = len(objectives) == 1 and objectives[0].takes_names
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
    has_entries = isinstance(targets, list | tuple) or (isinstance(targets, np.ndarray) and targets.ndim > 0)
    if not has_entries or len(targets) != len(objectives):  # type: ignore[arg-type]
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


write_targets_kernel = kernel_module("write_targets")

OPERATIONS = {
    TargetPart.A_POSITION: WRITE_POSITION,
    TargetPart.A_ROTATION: WRITE_ROTATION,
    TargetPart.A_DIRECTION: WRITE_DIRECTION,
    TargetPart.B_POSITION: WRITE_POSITION,
    TargetPart.B_INVERSE_ROTATION: WRITE_INVERSE_ROTATION,
    TargetPart.VALUE: WRITE_VALUE,
    TargetPart.QUATERNION: WRITE_QUATERNION,
    TargetPart.LOWER: WRITE_BOUND,
    TargetPart.UPPER: WRITE_BOUND,
}
"""What the kernel writes for each part of a relation."""
PARTS_OF_B = (TargetPart.B_POSITION, TargetPart.B_INVERSE_ROTATION)
NO_REFERENCE = -1
"""Index in q0 of a target without a reference angle."""
LARGEST = float(np.finfo(np.float64).max)
"""The largest finite number."""
EYE = np.eye(3)


@dataclass(frozen=True, slots=True, eq=False)
class WriteTable:
    """What the targets of a call move in one subproblem: arguments of the kernel `write_targets`.

    Attributes:
        table: (k, WRITE_INTS), what is written.
        constants: (k, WRITE_FLOATS), constants of each row.
    """

    table: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    constants: Array


@dataclass(frozen=True, slots=True, eq=False)
class TargetSlice:
    """Numbers of one objective in the array of all numbers.

    Attributes:
        first, size: index of its first number, and their number.
        spec: declaration of the target; None if the objective takes no new targets in this manner.
        shape: shape of an array that is a target with these numbers; None if no array is.
        names: names of values that are single numbers; empty for other targets.
    """

    first: int
    size: int
    spec: TargetSpec | None
    shape: Shape | None
    names: tuple[str, ...]

    def read(self, target: Any) -> Array | None:
        """Return the numbers of a target (size,); None if `with_target` must check it."""
        if self.spec is None:
            return None
        names = self.names
        if names and type(target) is dict and len(target) == len(names):  # type: ignore[arg-type]
            numbers: list[Any] = [target.get(name) for name in names]  # type: ignore[union-attr]
            for number in numbers:
                if not isinstance(number, float):
                    break
            else:
                return np.array(numbers)
        elif isinstance(target, float) and self.size == 1:
            return np.array((target,))
        try:
            return self.spec.parse(target).flatten()
        except MechanikError:
            return None


@dataclass(frozen=True, slots=True, eq=False)
class SingleNumber:
    """The target of a problem whose only target is one joint value, for the fastest calls.

    Attributes:
        name: name of the value.
        slot: index of the value in the float table.
        reference: index in q0 of the value to which equivalent targets are nearest.
        lower, upper: limits, rad or m; finite.
        half_period: half the period of equivalent targets, rad; infinite if there are none.
    """

    name: str
    slot: int
    reference: int
    lower: float
    upper: float
    half_period: float


class TargetWriter:
    """Collects the numbers of all targets of a call, and writes them into the tables of each subproblem.

    Attributes:
        slices: numbers of each objective.
        tables: what is written into each subproblem.
        default_values: the numbers where a call gives no targets, (size,), m and rad; at first those of the objectives.
    """

    def __init__(
        self, objectives: Sequence[Objective], slices: Sequence[TargetSlice], tables: Sequence[WriteTable]
    ) -> None:
        self.slices, self.tables = tuple(slices), tuple(tables)
        self.default_values = np.zeros(sum(item.size for item in slices))
        self._defaults = [self.default_values[item.first : item.first + item.size] for item in slices]
        self._entries = tuple(zip((item.shape for item in slices), self.slices, self._defaults, strict=True))
        self._index_by_name = {objective.name: k for k, objective in enumerate(objectives) if objective.name}
        self._takes_names = len(objectives) == 1 and objectives[0].takes_names
        self.set_defaults(objectives)

    def set_defaults(self, objectives: Sequence[Objective]) -> None:
        """Take the default values from the targets of the first objectives; those of further objectives stay."""
        for objective, item, default in zip(objectives, self.slices, self._defaults, strict=False):
            spec = objective.target_spec
            if item.size:
                assert spec is not None
                assert spec.value is not None
                default[:] = spec.value.ravel()

    def pack(self, targets: Any, arrays_only: bool = False) -> Array | None:
        """Return the numbers of all targets, (size,), as a new array; None if they must be resolved.

        Args:
            targets: as for `with_targets`.
            arrays_only: whether all targets must be arrays of numbers. Other forms can depend on the target with which
                the objective was made; for example, a point keeps the rotation of a pose.
        """
        if targets is None:
            return self.default_values.copy()
        if self._takes_names:
            return None if arrays_only else self.slices[0].read(targets)
        target_list: Any = targets
        if isinstance(targets, Mapping):
            target_list = self._by_index(targets)  # type: ignore[arg-type]
        elif len(self._entries) == 1:
            target_list = (targets,)
        elif not (isinstance(targets, list | tuple) or (isinstance(targets, np.ndarray) and targets.ndim > 0)):
            return None
        if target_list is None or len(target_list) != len(self._entries):
            return None
        parts: list[Array] = []
        array = np.ndarray
        for target, (shape, item, default) in zip(target_list, self._entries, strict=True):
            if type(target) is array and target.shape == shape:
                parts.append(target.ravel())
            elif target is None:
                parts.append(default)
            elif arrays_only:
                return None
            else:
                numbers = item.read(target)
                if numbers is None:
                    return None
                parts.append(numbers)
        try:
            return np.concatenate(parts, dtype=np.float64)
        except (TypeError, ValueError):
            return None

    def write(self, copies: Sequence[PackedProblem], values: Array, q0: Array) -> bool:
        """Write the numbers to copies of all subproblems; False if a target is invalid (others may be written)."""
        write = write_targets_kernel.write_targets
        for packed, item in zip(copies, self.tables, strict=True):
            if not write(packed.floats, item.table, item.constants, values, q0):
                return False
        return True

    def objectives(self, originals: Sequence[Objective], values: Array) -> tuple[Objective, ...]:
        """Return the objectives with the targets of `values` (size,)."""
        return tuple(
            _with_numbers(objective, item.spec, values[item.first : item.first + item.size])
            for objective, item in zip(originals, self.slices, strict=True)
        )

    def single_number(self) -> SingleNumber | None:
        """Return the declaration of the only target if it is one joint value."""
        if len(self.slices) != 1 or len(self.tables) != 1 or len(self.slices[0].names) != 1:
            return None
        table, constants = self.tables[0].table, self.tables[0].constants
        if table[:, OPERATION].tolist() != [WRITE_VALUE] or constants[0, RATIO] != 1.0 or constants[0, OFFSET] != 0.0:
            return None
        reference, slot = int(table[0, REFERENCE]), int(table[0, SLOT])
        lower, upper, half_period = -LARGEST, LARGEST, math.inf
        if reference != NO_REFERENCE:
            lower, upper = max(float(constants[0, LOWER]), -LARGEST), min(float(constants[0, UPPER]), LARGEST)
            half_period = 0.5 * float(constants[0, PERIOD])
        return SingleNumber(self.slices[0].names[0], slot, max(reference, 0), lower, upper, half_period)

    def takes_pose_argument(self) -> bool:
        """Return whether the only target is a pose in the world, which the kernel `descent` takes as an argument."""
        if len(self.slices) != 1 or len(self.tables) != 1 or self.slices[0].shape != POSE:
            return False
        table, constants = self.tables[0].table, self.tables[0].constants
        identity = np.zeros(WRITE_FLOATS)
        identity[LEFT_ROTATION : LEFT_ROTATION + 9] = identity[RIGHT_ROTATION : RIGHT_ROTATION + 9] = EYE.ravel()
        return table[:, OPERATION].tolist() == [WRITE_POSITION, WRITE_ROTATION] and bool((constants == identity).all())

    def _by_index(self, targets: Mapping[str, Any]) -> list[Any] | None:
        target_list: list[Any] = [None] * len(self.slices)
        for name, target in targets.items():
            index = self._index_by_name.get(name)
            if index is None or target is None:
                return None
            target_list[index] = target
        return target_list


def _with_numbers(objective: Objective, spec: TargetSpec | None, numbers: Array) -> Objective:
    """Return an objective with the numbers of a new target; the objective itself if they are those of its target."""
    if spec is None or spec.value is None or np.array_equal(numbers, spec.value.ravel()):
        return objective
    return objective.with_target(spec.restore(numbers.reshape(spec.value.shape)))


def make_target_writer(
    mechanism: Mechanism,
    problem: Problem,
    objectives: Sequence[Objective],
    relations: Sequence[tuple[Relation, ...]],
    bounds: tuple[Array, Array],
) -> tuple[TargetWriter | None, str]:
    """Make the target writer of a problem, or return None and the reason, as the end of a sentence.

    Args:
        mechanism: the mechanism.
        problem: the compiled problem.
        objectives, relations: the objectives with targets, and the relations of each.
        bounds: lower and upper limits, (nq,) each, rad or m.
    """
    slices: list[TargetSlice] = []
    periods: list[list[float]] = []
    first = 0
    for objective, objective_relations in zip(objectives, relations, strict=True):
        own_periods = _periods(mechanism, objective, objective_relations)
        spec = objective.target_spec
        size = 0 if spec is None else spec.size
        writes = [relation.target_writes for relation in objective_relations]
        if isinstance(objective, JointObjective) and not size:
            return None, f"{objective._label} depends on the joints at the time of the call"
        if any(period < math.inf and not write for period, write in zip(own_periods, writes, strict=True)):
            return None, f"an angle of {objective._label} depends on the start"
        is_writable = spec is not None and size > 0 and None not in writes
        names = _single_names(spec) if spec is not None and is_writable else ()
        shape: Shape | None = None
        if spec is not None and spec.value is not None and is_writable and spec.value.shape in spec.shapes:
            shape = spec.value.shape
        slices.append(TargetSlice(first, size, spec if is_writable else None, shape, names))
        periods.append(own_periods)
        first += size
    tables: list[WriteTable] = []
    for subproblem in problem.subproblems:
        rows: list[list[int]] = []
        constants: list[Array] = []
        for block, (owner, index) in enumerate(zip(subproblem.owners, subproblem.relation_indices, strict=True)):
            if not 0 <= owner < len(objectives) or not slices[owner].size:
                continue
            relation, spec = relations[owner][index], objectives[owner].target_spec
            is_pose = spec is not None and spec.value is not None and spec.value.shape == POSE
            for write in relation.target_writes or ():
                row, row_constants = _write_row(problem, subproblem, block, relation, write, is_pose)
                row[FIRST_NUMBER] += slices[owner].first
                if write.part is TargetPart.VALUE:
                    k, period = problem.tree.x_of[relation.dof_name], periods[owner][index]
                    if period < math.inf:
                        row[REFERENCE] = k
                        row_constants[LOWER], row_constants[UPPER], row_constants[PERIOD] = (
                            bounds[0][k], bounds[1][k], period,
                        )  # fmt: skip
                rows.append(row)
                constants.append(row_constants)
        tables.append(
            WriteTable(
                np.array(rows, dtype=np.int64).reshape(-1, WRITE_INTS),
                np.array(constants, dtype=np.float64).reshape(-1, WRITE_FLOATS),
            )
        )
    return TargetWriter(objectives, slices, tables), ""


def _periods(mechanism: Mechanism, objective: Objective, relations: Sequence[Relation]) -> list[float]:
    """Return the period of the equivalent targets of each relation; infinite if there are none."""
    if isinstance(objective, JointObjective) and objective.angle_mode == "nearest":
        return [target.period for target in objective.joint_targets(mechanism)]
    return [math.inf] * len(relations)


def _single_names(spec: TargetSpec) -> tuple[str, ...]:
    """Return the names of the values of a target that has a single number for each name, else nothing."""
    if not spec.takes_names or spec.value is None:
        return ()
    values = spec.restore(spec.value)
    is_single = isinstance(values, Mapping) and all(np.size(value) == 1 for value in values.values())  # type: ignore[arg-type]
    return tuple(values) if is_single else ()  # type: ignore[arg-type]


def _write_row(
    problem: Problem, subproblem: Subproblem, block: int, relation: Relation, write: TargetWrite, is_pose: bool
) -> tuple[list[int], Array]:
    """Return a row of the table and its constants; numbers are counted from those of the objective."""
    packed, frames, part = subproblem.packed, problem.tree.frames, write.part
    constants = np.zeros(WRITE_FLOATS)
    operation = OPERATIONS[part]
    if part is TargetPart.VALUE:
        constants[RATIO], constants[OFFSET] = write.ratio, write.offset
        return [operation, packed.target_index(block), write.index, 1, NO_REFERENCE], constants
    if part is TargetPart.QUATERNION:
        return [operation, packed.target_index(block), write.index, 1, NO_REFERENCE], constants
    if part in (TargetPart.LOWER, TargetPart.UPPER):
        lower_index, upper_index = packed.bound_indices(block)
        return [operation, lower_index if part is TargetPart.LOWER else upper_index, 0, 1, NO_REFERENCE], constants
    is_in_b = part in PARTS_OF_B
    X_node = frames[relation.b if is_in_b else relation.a][1]
    R_left = X_node[:3, :3] if write.left is None else X_node[:3, :3] @ write.left
    constants[LEFT_ROTATION : LEFT_ROTATION + 9] = R_left.ravel()
    constants[LEFT_POSITION : LEFT_POSITION + 3] = X_node[:3, 3]
    constants[RIGHT_ROTATION : RIGHT_ROTATION + 9] = (EYE if write.right is None else write.right).ravel()
    frame = packed.target_index(block, of_b=is_in_b)
    if operation == WRITE_POSITION:
        first, stride = (3, 4) if is_pose else (0, 1)
        return [operation, frame + 9, first, stride, NO_REFERENCE], constants
    return [operation, frame, 0, 4 if is_pose else 3, NO_REFERENCE], constants
