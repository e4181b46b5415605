"""The door for targets: what is given, one array for each objective, checked in shape at once and in content by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from mechanik.batch.columns import ArrayColumn, Column, NamedColumn, Rows, ThingColumn, as_numbers
from mechanik.batch.target_forms import WORDS, Mask, shapes_of, takes
from mechanik.errors import ShapeError, UnknownName, WrongKind
from mechanik.objectives import JointValues, Objective, RestPose


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """The targets of some rows.

    Attributes:
        columns: one for each objective; None where the target stays.
        taken: what each column gave.
        count: of rows.
    """

    columns: tuple[Column | None, ...]
    taken: tuple[Any, ...]
    count: int

    def one(self, i: int) -> Any:
        """A row as `Solver.solve` takes targets."""
        each = tuple(self.target(k, i) for k in range(len(self.columns)))
        return each[0] if len(each) == 1 else each if any(one is not None for one in each) else None

    def target(self, k: int, i: int) -> Any:
        """Row i of objective k as its `at` takes it; None if it stays."""
        column = self.columns[k]
        return None if column is None else column.one(self.taken[k], i)

    def some(self, rows: Mask) -> Wanted:
        """Those rows alone."""
        picked = tuple(_pick(taken, rows) for taken in self.taken)
        return Wanted(self.columns, picked, int(np.count_nonzero(rows)))


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """The targets of a whole batch.

    Attributes:
        columns: one for each objective; None where the target stays.
        count: of rows.
    """

    columns: tuple[Column | None, ...]
    count: int

    def take(self, rows: Rows, poses_are_checked: bool = False) -> tuple[Wanted, Mask]:
        """Some rows, and which of them are sound as far as numbers can tell."""
        taken: list[Any] = []
        good = np.ones(len(rows), dtype=np.bool_)
        for column in self.columns:
            found, sound = (None, good) if column is None else column.take(rows, poses_are_checked)
            taken.append(found)
            good = good & sound
        return Wanted(self.columns, tuple(taken), len(rows)), good

    def release(self) -> None:
        """Let go of what was read from files."""
        for column in self.columns:
            if column is not None:
                column.release()


def as_targets(objectives: Sequence[Objective], targets: Any, starts: int | None, nq: int) -> Targets:
    """
    Args:
        targets: for one objective an array (N, ...), or N of what its `at` takes. For several, one of those each, by
            name or in their order; None where a target stays. None: all targets stay.
        starts: how many starts there are, if there is one for each row.
        nq: how many numbers q has.
    """
    columns = tuple(
        None if given is None else _column(one, given, nq)
        for one, given in zip(objectives, _given(objectives, targets), strict=True)
    )
    counts = {column.count for column in columns if column is not None}
    if len(counts) > 1:
        each = ", ".join("-" if column is None else str(column.count) for column in columns)
        raise ShapeError(f"every objective needs as many targets as the others, and they have {each}")
    if not counts and starts is None:
        raise ShapeError("a batch needs targets, or a start for each row: q0 shaped (N, nq)")
    count = counts.pop() if counts else starts
    assert count is not None
    if starts is not None and starts != count:
        raise ShapeError(f"there are {count} targets and {starts} starts: q0 is one (nq,), or one for each target")
    return Targets(columns, count)


def _given(objectives: Sequence[Objective], targets: Any) -> Sequence[Any]:
    """What is given for each objective."""
    if targets is None:
        return [None] * len(objectives)
    only = objectives[0] if len(objectives) == 1 else None
    if isinstance(targets, Mapping) and not isinstance(only, JointValues | RestPose):
        names = {one.name: k for k, one in enumerate(objectives) if one.name}
        found: list[Any] = [None] * len(objectives)
        for name, given in cast("Mapping[str, Any]", targets).items():
            if name not in names:
                raise UnknownName("objective", name, names)
            found[names[name]] = given
        return found
    if only is not None:
        return [targets]
    if not isinstance(targets, list | tuple | np.ndarray) or len(cast("Sequence[Any]", targets)) != len(objectives):
        raise ShapeError(
            f"there are {len(objectives)} objectives: give as many arrays of targets, or a mapping from their names"
        )
    return cast("Sequence[Any]", targets)


def _column(objective: Objective, given: Any, nq: int) -> Column:
    what = f"targets of {objective._called}"
    if isinstance(given, str | bytes):
        raise WrongKind(f"{what} are an array, not text; np.load(path, mmap_mode='r') reads a file of them")
    if isinstance(objective, JointValues | RestPose):
        return _values(objective, given, nq, what)
    if not isinstance(given, np.ndarray) and isinstance(given, Sequence):
        things = cast("Sequence[Any]", given)
        try:
            given = np.asarray(things, dtype=np.float64)
        except (TypeError, ValueError):
            return ThingColumn(things)
        if not len(things):
            return ThingColumn(())
    array = as_numbers(cast("object", given), what)
    shapes = shapes_of(objective)
    if array.shape[1:] in shapes or (not shapes and len(array) and takes(objective, array[0])):
        return ArrayColumn(array)
    if not shapes and not len(array):
        return ThingColumn(())
    wanted = _any_of([WORDS[shape] for shape in shapes]) or "one for each row, as its `at` takes them"
    text = f"{what} are {wanted}, not an array of shape {array.shape}"
    if array.shape in shapes:
        text += ". This is a single one: `solve` takes it, or add an axis, as in target[None]"
    raise ShapeError(text)


def _values(objective: JointValues | RestPose, given: Any, nq: int, what: str) -> Column:
    """Values by name as arrays, or all of them one beside the other."""
    if isinstance(given, Mapping):
        arrays = {
            name: as_numbers(some, f"{what} at {name!r}") for name, some in cast("Mapping[str, Any]", given).items()
        }
        if not arrays or any(
            array.ndim > 2 or len(array) != len(next(iter(arrays.values()))) for array in arrays.values()
        ):
            raise ShapeError(f"{what} are arrays by name, (N,) or (N, numbers of the joint), all of one length")
        column = NamedColumn(arrays)
        objective.at(column.probe())  # type: ignore[arg-type]  # refuses names that it does not know
        return column
    if isinstance(given, Sequence) and len(cast("Sequence[Any]", given)) and isinstance(given[0], Mapping):
        return ThingColumn(cast("Sequence[Any]", given))
    array = as_numbers(cast("object", given), what)
    if isinstance(objective, RestPose):
        if array.shape[1:] != (nq,):
            raise ShapeError(f"{what} are (N, {nq}), or arrays by name, not an array of shape {array.shape}")
        return ArrayColumn(array)
    sizes = {name: len(value) for name, value in objective.values.items()}
    total = sum(sizes.values())
    if array.shape[1:] != (total,) and not (total == 1 and array.ndim == 1):
        named = ", ".join(sizes)
        raise ShapeError(f"{what} are (N, {total}), in the order {named}, not an array of shape {array.shape}")
    wide, last = array.reshape(len(array), total), np.cumsum(list(sizes.values())).tolist()
    each = zip(sizes.items(), last, strict=True)
    return NamedColumn(
        {name: wide[:, end - 1] if size == 1 else wide[:, end - size : end] for (name, size), end in each}
    )


def _any_of(words: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1] if words else ""]))


def _pick(taken: Any, rows: Mask) -> Any:
    if isinstance(taken, list):
        return [one for one, kept in zip(cast("list[Any]", taken), rows.tolist(), strict=True) if kept]
    return None if taken is None else taken[rows]
