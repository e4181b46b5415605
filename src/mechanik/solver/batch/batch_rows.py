"""Input and output rows of a batch: validation of targets and starts, row results, and the backend protocol.

Shapes are validated for the whole batch, and values row by row. Arrays are read in chunks, and pages of memory-mapped
files are released, so memory is bounded. `Objective.target_spec` declares the shapes of targets, and
`Objective.with_target` checks the target of a row; only joint values have their own rules here, since the number of
values depends on the joints.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from mechanik.errors import InvalidArgument, MechanikError, ShapeError, UnknownName
from mechanik.kernels.state_layout import BATCH_PENDING
from mechanik.model.configuration_space import ConfigurationSpace, normalize_quaternions
from mechanik.objectives import JointValues, Objective, RestPose
from mechanik.objectives.target_spec import NUMBER, POINT, POSE, POSITION_WXYZ, ROTATION, WXYZ, Shape
from mechanik.spatial import from_position_wxyz
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.rotation import is_rotation
from mechanik.validation import QUATERNION_TOLERANCE, format_count, matrix_of


def release_pages(array: object) -> None:
    """Release the memory pages of a memory-mapped array where the system supports this; a later access reads the file.

    Pages of other arrays and of copy-on-write maps (mode "c") stay, since their contents are not in a file.
    """
    mode = ""
    owner: Any = array
    while owner is not None:
        if isinstance(owner, np.memmap):
            mode = cast("Any", owner).mode
        if isinstance(owner, mmap.mmap):
            if mode in ("r", "r+", "w+") and hasattr(mmap, "MADV_DONTNEED"):
                owner.madvise(mmap.MADV_DONTNEED)
            return
        if isinstance(owner, memoryview):
            owner = owner.obj
        else:  # the base of another object may be the object itself, as for arrays of scipy's Rotation
            owner = cast("Any", owner).base if isinstance(owner, np.ndarray) else None


Mask = npt.NDArray[np.bool_]

POSE_TOLERANCE = 1e-6
"""Tolerance of rotation matrices and of the last row of poses, as in `mechanik.validation`; the rounding of float32 is
smaller."""

SHAPE_TEXTS: Mapping[Shape, str] = {
    POSE: "(N, 4, 4)",
    POSITION_WXYZ: "(N, 7) as position and wxyz",
    ROTATION: "(N, 3, 3)",
    WXYZ: "(N, 4) as wxyz",
    POINT: "(N, 3)",
    NUMBER: "(N,)",
}
"""Description of each shape for messages."""


def target_shapes(objective: Objective) -> tuple[Shape, ...]:
    """Return the shapes in SHAPE_TEXTS that a target of an objective may have, in their order.

    Empty for joint values, and for objectives whose targets have no fixed shape.
    """
    spec = objective.target_spec
    return () if spec is None or spec.takes_names else tuple(shape for shape in SHAPE_TEXTS if shape in spec.shapes)


def validate_targets(targets: Array, skip_pose_check: bool = False) -> tuple[Array, Mask]:
    """Convert targets to a shape that `Objective.with_target` accepts, and check their values.

    Args:
        targets: (M, ...), float64.
        skip_pose_check: whether poses (4, 4) count as valid without a check, because the backend checks them.

    Returns:
        Targets (M, ...), with position and quaternion converted to poses (M, 4, 4); and a mask of valid targets, (M,).
    """
    shape = targets.shape[1:]
    with np.errstate(all="ignore"):
        if shape == POSE:
            if skip_pose_check:
                return targets, np.ones(len(targets), dtype=np.bool_)
            has_valid_last_row = (np.abs(targets[:, 3] - (0.0, 0.0, 0.0, 1.0)) <= POSE_TOLERANCE).all(axis=1)
            return targets, has_valid_last_row & is_rotation(targets[:, :3, :3], POSE_TOLERANCE) & _is_finite(targets)
        if shape == POSITION_WXYZ:
            is_valid = _is_finite(targets) & _is_unit(targets[:, 3:])
            return from_position_wxyz(targets[:, :3], targets[:, 3:]), is_valid
        if shape == ROTATION:
            return targets, is_rotation(targets, POSE_TOLERANCE) & _is_finite(targets)
        if shape == WXYZ:
            return targets, _is_finite(targets) & _is_unit(targets)
    return targets, _is_finite(targets)


def _is_finite(targets: Array) -> Mask:
    return np.asarray(np.isfinite(targets).all(axis=tuple(range(1, targets.ndim))))


def _is_unit(wxyz: Array) -> Mask:
    return np.abs(np.sqrt((wxyz * wxyz).sum(axis=1)) - 1.0) <= QUATERNION_TOLERANCE


RowIndices = npt.NDArray[np.int64]
"""Row indices, (M,), ascending."""
NumberArray = npt.NDArray[Any]
"""An array of any numeric type."""


class TargetColumn(Protocol):
    """Targets of an objective for all rows of a batch."""

    @property
    def count(self) -> int: ...

    def read(self, rows: RowIndices, skip_pose_check: bool = False) -> tuple[Any, Mask]:
        """Return the targets of rows, and a mask (M,) that is false where the numbers are known to be invalid.

        `skip_pose_check` is as in `validate_targets`.
        """
        ...

    def row(self, values: Any, i: int) -> Any:
        """Return row `i` of targets from `read`, in a form that `Objective.with_target` accepts."""
        ...

    def release(self) -> None:
        """Release pages that were read from files."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ArrayColumn:
    """Targets as an array (N, ...) of any numeric type: in memory or memory-mapped, read-only, or not contiguous.

    Attributes:
        array: (N, ...), the targets.
        is_configuration: whether a row holds joint values; then four numbers are not a quaternion, for example.
    """

    array: NumberArray
    is_configuration: bool = False

    @property
    def count(self) -> int:
        return len(self.array)

    def read(self, rows: RowIndices, skip_pose_check: bool = False) -> tuple[Array, Mask]:
        values = read_rows(self.array, rows)
        return (values, _is_finite(values)) if self.is_configuration else validate_targets(values, skip_pose_check)

    def row(self, values: Array, i: int) -> Array | float:
        return values[i] if values.ndim > 1 else float(values[i])

    def release(self) -> None:
        release_pages(self.array)


@dataclass(frozen=True, slots=True, eq=False)
class NamedColumn:
    """Targets as joint values by name: an array (N,) or (N, values of the joint) for each joint."""

    arrays: Mapping[str, NumberArray]

    @property
    def count(self) -> int:
        return len(next(iter(self.arrays.values())))

    def read(self, rows: RowIndices, skip_pose_check: bool = False) -> tuple[Array, Mask]:
        blocks = [read_rows(array if array.ndim == 2 else array[:, None], rows) for array in self.arrays.values()]
        values = np.concatenate(blocks, axis=1)
        return values, _is_finite(values)

    def row(self, values: Array, i: int) -> dict[str, Any]:
        joint_values: dict[str, Any] = {}
        start = 0
        for name, array in self.arrays.items():
            size = 1 if array.ndim == 1 else array.shape[1]
            joint_values[name] = float(values[i, start]) if size == 1 else values[i, start : start + size]
            start += size
        return joint_values

    def neutral_target(self) -> dict[str, Array]:
        """Return a valid target with the same names and sizes."""
        sizes = {name: 1 if array.ndim == 1 else array.shape[1] for name, array in self.arrays.items()}
        # a spherical joint has four values; the identity quaternion is (1, 0, 0, 0)
        return {name: np.eye(1, size)[0] if size == 4 else np.zeros(size) for name, size in sizes.items()}

    def release(self) -> None:
        for array in self.arrays.values():
            release_pages(array)


@dataclass(frozen=True, slots=True, eq=False)
class ObjectColumn:
    """Targets that do not form an array: polygons of different lengths, or values by name for each row."""

    objects: Sequence[Any]

    @property
    def count(self) -> int:
        return len(self.objects)

    def read(self, rows: RowIndices, skip_pose_check: bool = False) -> tuple[list[Any], Mask]:
        return [self.objects[i] for i in rows.tolist()], np.ones(len(rows), dtype=np.bool_)

    def row(self, values: list[Any], i: int) -> Any:
        return values[i]

    def release(self) -> None:
        """Do nothing, since the targets are in memory."""


def read_rows(array: NumberArray, rows: RowIndices) -> Array:
    """Return rows of an array as contiguous float64; no other part of the array is read.

    The result may be a view of the array, so it must not be written to.
    """
    is_consecutive = len(rows) > 0 and rows[-1] - rows[0] + 1 == len(rows)
    selection = array[rows[0] : rows[-1] + 1] if is_consecutive else array[rows]
    has_layout = type(array) is np.ndarray and selection.dtype == np.float64 and selection.flags.carray
    return cast("Array", selection) if has_layout else np.array(selection, dtype=np.float64, order="C", subok=False)


def as_number_array(values: object, name: str) -> NumberArray:
    """Return `values` as an array of real numbers; an array of integers or floats is returned unchanged.

    Raises:
        ShapeError: if the values are not real numbers, or a single number.
    """
    if isinstance(values, np.ndarray):
        array = cast("NumberArray", values)
    else:
        try:
            array = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError(f"{name} must be an array of numbers, not {type(values).__name__}") from None
    if array.dtype.kind not in "fiu":
        raise ShapeError(f"{name} must be real numbers, not {array.dtype}")
    if array.ndim == 0:
        raise ShapeError(f"{name} must have an entry for each row, but this is the single number {array}")
    return array


@dataclass(frozen=True, slots=True, eq=False)
class TargetRows:
    """Targets of several rows.

    Attributes:
        columns: targets of each objective; None for an objective that keeps its target.
        values: targets of each column, as its `read` returns them.
        count: number of rows.
    """

    columns: tuple[TargetColumn | None, ...]
    values: tuple[Any, ...]
    count: int

    def row(self, i: int) -> Any:
        """Return row `i` in a form that `Solver.solve` accepts."""
        targets = tuple(self.target(k, i) for k in range(len(self.columns)))
        return targets[0] if len(targets) == 1 else targets if any(target is not None for target in targets) else None

    def target(self, k: int, i: int) -> Any:
        """Return the target of objective `k` in row `i`; None if the objective keeps its target."""
        column = self.columns[k]
        return None if column is None else column.row(self.values[k], i)

    def subset(self, mask: Mask) -> TargetRows:
        """Return the rows of a mask."""
        selected_values = tuple(_select_rows(column_values, mask) for column_values in self.values)
        return TargetRows(self.columns, selected_values, int(np.count_nonzero(mask)))


@dataclass(frozen=True, slots=True, eq=False)
class BatchTargets:
    """Targets of a whole batch.

    Attributes:
        columns: targets of each objective; None for an objective that keeps its target.
        count: number of rows.
    """

    columns: tuple[TargetColumn | None, ...]
    count: int

    def read(self, rows: RowIndices, skip_pose_check: bool = False) -> tuple[TargetRows, Mask]:
        """Return the targets of rows, and a mask (M,) that is false where the numbers are known to be invalid."""
        values: list[Any] = []
        is_valid = np.ones(len(rows), dtype=np.bool_)
        for column in self.columns:
            column_values, is_column_valid = (None, is_valid) if column is None else column.read(rows, skip_pose_check)
            values.append(column_values)
            is_valid = is_valid & is_column_valid
        return TargetRows(self.columns, tuple(values), len(rows)), is_valid

    def release(self) -> None:
        """Release pages that were read from files."""
        for column in self.columns:
            if column is not None:
                column.release()


def as_batch_targets(objectives: Sequence[Objective], targets: Any, start_count: int | None, nq: int) -> BatchTargets:
    """Validate the targets of a batch.

    Args:
        objectives: the objectives.
        targets: for a single objective an array (N, ...), or N targets that its `with_target` accepts; for joint values
            also arrays by joint name. For several objectives, one of these for each, by name or in order, and None for
            an objective that keeps its target. None: all objectives keep their targets.
        start_count: number of starts if each row has its own start, else None.
        nq: size of q.

    Raises:
        ShapeError: for targets of the wrong shape or number.
        UnknownName: for an unknown objective or joint.
        InvalidArgument: for text instead of an array.
    """
    columns = tuple(
        None if values is None else _as_column(objective, values, nq)
        for objective, values in zip(objectives, _targets_by_objective(objectives, targets), strict=True)
    )
    target_counts = {column.count for column in columns if column is not None}
    if len(target_counts) > 1:
        column_counts = ", ".join("-" if column is None else str(column.count) for column in columns)
        raise ShapeError(f"all objectives must have the same number of targets, but they have {column_counts}")
    if not target_counts and start_count is None:
        raise ShapeError("a batch needs targets, or a start for each row: q0 of shape (N, nq)")
    count = target_counts.pop() if target_counts else start_count
    assert count is not None
    if start_count is not None and start_count != count:
        raise ShapeError(
            f"the batch has {format_count(count, 'target')} and {format_count(start_count, 'start')}; "
            "q0 must have shape (nq,), or a row for each target"
        )
    return BatchTargets(columns, count)


def _targets_by_objective(objectives: Sequence[Objective], targets: Any) -> Sequence[Any]:
    """Return the targets given for each objective."""
    if targets is None:
        return [None] * len(objectives)
    single_objective = objectives[0] if len(objectives) == 1 else None
    if isinstance(targets, Mapping) and not (single_objective and single_objective.takes_names):
        index_by_name = {objective.name: k for k, objective in enumerate(objectives) if objective.name}
        objective_targets: list[Any] = [None] * len(objectives)
        for name, values in cast("Mapping[str, Any]", targets).items():
            if name not in index_by_name:
                raise UnknownName("objective", name, index_by_name)
            objective_targets[index_by_name[name]] = values
        return objective_targets
    if single_objective is not None:
        return [targets]
    if not isinstance(targets, list | tuple | np.ndarray) or len(cast("Sequence[Any]", targets)) != len(objectives):
        raise ShapeError(
            f"the solver has {len(objectives)} objectives: give as many arrays of targets, or a mapping from names"
        )
    return cast("Sequence[Any]", targets)


def _as_column(objective: Objective, values: Any, nq: int) -> TargetColumn:
    label = f"targets of {objective._label}"
    if isinstance(values, str | bytes):
        raise InvalidArgument(
            f"{label} must be an array, not text; np.load(path, mmap_mode='r') reads an array from a file"
        )
    if isinstance(objective, JointValues | RestPose):
        return _joint_value_column(objective, values, nq, label)
    values = matrix_of(values)
    if not isinstance(values, np.ndarray) and isinstance(values, Sequence):
        items = cast("Sequence[Any]", values)
        try:
            values = np.asarray(items, dtype=np.float64)
        except (TypeError, ValueError):
            return ObjectColumn(items)
        if not len(items):
            return ObjectColumn(())
    array = as_number_array(cast("object", values), label)
    shapes = target_shapes(objective)
    if array.shape[1:] in shapes or (not shapes and _fits_first_row(objective, array)):
        return ArrayColumn(array)
    if not shapes and not len(array):
        return ObjectColumn(())
    shape_text = (
        _join_alternatives([SHAPE_TEXTS[shape] for shape in shapes])
        or "a target for each row that `with_target` accepts"
    )
    text = f"{label} must be {shape_text}, not an array of shape {array.shape}"
    if array.shape in shapes:
        text += ". This is a single target: use `solve`, or add an axis, as in target[None]"
    raise ShapeError(text)


def _fits_first_row(objective: Objective, array: NumberArray) -> bool:
    """Return whether the first row is a target of an objective without a fixed shape of targets."""
    if not len(array) or not objective.has_target:
        return False
    spec = objective.target_spec
    if spec is None:  # an objective of the user: `with_target` checks each row
        return True
    try:
        spec.parse(array[0])
    except MechanikError:
        return False
    return True


def _joint_value_column(objective: JointValues | RestPose, values: Any, nq: int, label: str) -> TargetColumn:
    """Return joint values as a column, given as arrays by name, as mappings by row, or as an array of all values."""
    if isinstance(values, Mapping):
        arrays = {
            name: as_number_array(joint_values, f"{label} at {name!r}")
            for name, joint_values in cast("Mapping[str, Any]", values).items()
        }
        if not arrays or any(
            array.ndim > 2 or len(array) != len(next(iter(arrays.values()))) for array in arrays.values()
        ):
            raise ShapeError(
                f"{label} must be arrays by name, (N,) or (N, values of the joint), all of the same length"
            )
        if isinstance(objective, JointValues):
            for name in arrays:
                if name not in objective.values:
                    raise UnknownName(f"value of {objective._label}", name, objective.values)
        return NamedColumn(arrays)
    if isinstance(values, Sequence) and len(cast("Sequence[Any]", values)) and isinstance(values[0], Mapping):
        return ObjectColumn(cast("Sequence[Any]", values))
    array = as_number_array(cast("object", values), label)
    if isinstance(objective, RestPose):
        if array.shape[1:] != (nq,):
            raise ShapeError(f"{label} must be (N, {nq}), or arrays by name, not an array of shape {array.shape}")
        return ArrayColumn(array, is_configuration=True)
    sizes = {name: len(value) for name, value in objective.values.items()}
    value_count = sum(sizes.values())
    if array.shape[1:] != (value_count,) and not (value_count == 1 and array.ndim == 1):
        names = ", ".join(sizes)
        raise ShapeError(
            f"{label} must be (N, {value_count}), in the order {names}, not an array of shape {array.shape}"
        )
    table, column_ends = array.reshape(len(array), value_count), np.cumsum(list(sizes.values())).tolist()
    entries = zip(sizes.items(), column_ends, strict=True)
    return NamedColumn(
        {name: table[:, end - 1] if size == 1 else table[:, end - size : end] for (name, size), end in entries}
    )


def _join_alternatives(alternatives: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(alternatives[:-1]), alternatives[-1] if alternatives else ""]))


def _select_rows(values: Any, mask: Mask) -> Any:
    if isinstance(values, list):
        return [
            value for value, is_selected in zip(cast("list[Any]", values), mask.tolist(), strict=True) if is_selected
        ]
    return None if values is None else values[mask]


MIN_QUATERNION_MAX_NORM = 1e-6
"""The largest component of a valid quaternion exceeds this in magnitude, as in `ConfigurationSpace.check_q`."""


@dataclass(frozen=True, slots=True, eq=False)
class BatchStarts:
    """Start configurations of a batch.

    Attributes:
        q0: (nq,) for all rows, (N, nq), or None.
        default_q: configuration in the result for a row without a valid start, until it is solved, (nq,).
        space: configuration space.
    """

    q0: NumberArray | None
    default_q: Array
    space: ConfigurationSpace

    @property
    def count(self) -> int | None:
        """Number of starts if each row has its own start, else None."""
        return None if self.q0 is None or self.q0.ndim == 1 else len(self.q0)

    def read(self, rows: RowIndices) -> tuple[Array | None, Mask]:
        """Return the starts of rows, (M, nq) or None, and a mask of the valid starts, (M,)."""
        is_valid = np.ones(len(rows), dtype=np.bool_)
        if self.q0 is None:
            return None, is_valid
        if self.q0.ndim == 1:
            start = np.array(self.q0, dtype=np.float64)
            normalize_quaternions(start, self.space.quaternions_q)
            return np.tile(start, (len(rows), 1)), is_valid
        q0 = read_rows(self.q0, rows)
        is_valid = np.asarray(np.isfinite(q0).all(axis=1))
        for k in self.space.quaternions_q:
            is_valid &= np.abs(q0[:, k : k + 4]).max(axis=1) > MIN_QUATERNION_MAX_NORM
        if len(self.space.quaternions_q):
            normalized_rows = q0[is_valid]
            for row in normalized_rows:
                normalize_quaternions(row, self.space.quaternions_q)
            q0 = q0.copy()
            q0[is_valid] = normalized_rows
        return q0, is_valid

    def release(self) -> None:
        """Release pages that were read from files."""
        release_pages(self.q0)


def as_batch_starts(space: ConfigurationSpace, q0: ArrayLike | None, default_q: Array) -> BatchStarts:
    """Validate the starts of a batch.

    Args:
        space: configuration space.
        q0: (nq,) for all rows, (N, nq), or None.
        default_q: as in `BatchStarts`, (nq,).

    Raises:
        ShapeError: for a `q0` of the wrong shape.
    """
    if q0 is None:
        return BatchStarts(None, default_q, space)
    starts = as_number_array(q0, "q0")
    if starts.ndim > 2 or starts.shape[-1] != space.nq:
        raise ShapeError(
            f"q0 must be ({space.nq},), or (N, {space.nq}) with a start for each row, not of shape {starts.shape}"
        )
    return BatchStarts(space.check_q(starts) if starts.ndim == 1 else starts, default_q, space)


RowIntegers = npt.NDArray[np.int64]
"""An integer for each row, (M,)."""


@dataclass(frozen=True, slots=True, eq=False)
class RowResults:
    """Results of M rows, to be filled by a backend.

    Attributes:
        q: (M, nq).
        code: index in `STATUS_BY_CODE`, (M,).
        errors: position error (m) and rotation error (rad) of each objective, (M, objectives, 2).
        iterations: number of iterations, (M,).
    """

    q: Array
    code: RowIntegers
    errors: Array
    iterations: RowIntegers

    @staticmethod
    def pending(q: Array, objective_count: int) -> RowResults:
        """Return the results of pending rows whose configurations are q (M, nq)."""
        row_count = len(q)
        code, iterations = np.full(row_count, BATCH_PENDING, dtype=np.int64), np.zeros(row_count, dtype=np.int64)
        return RowResults(q, code, np.full((row_count, objective_count, 2), np.nan), iterations)

    def subset(self, mask: Mask) -> RowResults:
        """Return a copy of the rows of a mask."""
        return RowResults(self.q[mask], self.code[mask], self.errors[mask], self.iterations[mask])

    def write_subset(self, mask: Mask, results: RowResults) -> None:
        """Write the results of the rows of a mask."""
        self.q[mask], self.code[mask] = results.q, results.code
        self.errors[mask], self.iterations[mask] = results.errors, results.iterations


class BatchBackend(Protocol):
    """Backend that solves rows independently: a result depends only on the row's target and start and the random seed.

    Attributes:
        chunk_rows: default number of rows in a chunk; a chunk takes from a few to some tens of milliseconds.
        checks_poses: whether the backend detects invalid poses (4, 4).
        kernels: names of the kernel modules that the backend calls most.
    """

    @property
    def chunk_rows(self) -> int: ...

    @property
    def checks_poses(self) -> bool: ...

    @property
    def kernels(self) -> tuple[str, ...]: ...

    def solve_rows(self, targets: TargetRows, q0: Array | None, seed: int | None, results: RowResults) -> None:
        """Solve rows; several threads call this at the same time with different rows.

        Args:
            targets: targets of the rows.
            q0: starts, (M, nq); None: the backend chooses the starts.
            seed: random seed; None: restarts follow a fixed sequence.
            results: the results to fill; at the call, `q` contains the configurations of rows that are not tried.
        """
        ...
