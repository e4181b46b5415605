"""The targets of one objective, all of a batch: read some rows at a time, so that files stay files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from mechanik.batch.mapped import release
from mechanik.batch.target_forms import POSE, POSITION_WXYZ, PROBES, Mask, settle
from mechanik.errors import ShapeError
from mechanik.spatial.array import Array

Rows = npt.NDArray[np.int64]
"""Numbers of rows, (M,), ascending."""
Numbers = npt.NDArray[Any]


class Column(Protocol):
    """The targets of one objective."""

    @property
    def count(self) -> int: ...

    def take(self, rows: Rows, poses_are_checked: bool = False) -> tuple[Any, Mask]:
        """Some rows, and which of them are sound as far as numbers can tell."""
        ...

    def one(self, taken: Any, i: int) -> Any:
        """A row of those taken, as the objective's `at` takes it."""
        ...

    def probe(self) -> Any:
        """Some target of the same shape, always the same, or None."""
        ...

    def release(self) -> None:
        """Let go of what was read from files."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ArrayColumn:
    """Targets as an array (N, ...) of any numbers: in memory, in a file, read-only, with gaps."""

    array: Numbers

    @property
    def count(self) -> int:
        return len(self.array)

    def take(self, rows: Rows, poses_are_checked: bool = False) -> tuple[Array, Mask]:
        return settle(read(self.array, rows), poses_are_checked)

    def one(self, taken: Array, i: int) -> Array | float:
        return taken[i] if taken.ndim > 1 else float(taken[i])

    def probe(self) -> object:
        shape = self.array.shape[1:]
        return PROBES.get(POSE if shape == POSITION_WXYZ else shape)

    def release(self) -> None:
        release(self.array)


@dataclass(frozen=True, slots=True, eq=False)
class NamedColumn:
    """Values by name: arrays (N,) or (N, numbers of that name)."""

    arrays: Mapping[str, Numbers]

    @property
    def count(self) -> int:
        return len(next(iter(self.arrays.values())))

    def take(self, rows: Rows, poses_are_checked: bool = False) -> tuple[Array, Mask]:
        parts = [read(array if array.ndim == 2 else array[:, None], rows) for array in self.arrays.values()]
        return settle(np.concatenate(parts, axis=1))

    def one(self, taken: Array, i: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        at = 0
        for name, array in self.arrays.items():
            size = 1 if array.ndim == 1 else array.shape[1]
            values[name] = float(taken[i, at]) if size == 1 else taken[i, at : at + size]
            at += size
        return values

    def probe(self) -> object:
        sizes = {name: 1 if array.ndim == 1 else array.shape[1] for name, array in self.arrays.items()}
        # a ball takes four numbers, of which no turn at all has a first
        return {name: np.eye(1, size)[0] if size == 4 else np.zeros(size) for name, size in sizes.items()}

    def release(self) -> None:
        for array in self.arrays.values():
            release(array)


@dataclass(frozen=True, slots=True, eq=False)
class ThingColumn:
    """Targets that are no array together: polygons of several lengths, values by name, row by row."""

    things: Sequence[Any]

    @property
    def count(self) -> int:
        return len(self.things)

    def take(self, rows: Rows, poses_are_checked: bool = False) -> tuple[list[Any], Mask]:
        return [self.things[i] for i in rows.tolist()], np.ones(len(rows), dtype=np.bool_)

    def one(self, taken: list[Any], i: int) -> Any:
        return taken[i]

    def probe(self) -> object:
        return None

    def release(self) -> None:
        """Nothing is in files."""


def read(array: Numbers, rows: Rows) -> Array:
    """Some rows, float64 without gaps, not to be written to; nothing else of the array is touched.

    A copy, unless they lie in memory as they should.
    """
    in_a_row = len(rows) > 0 and rows[-1] - rows[0] + 1 == len(rows)
    some = array[rows[0] : rows[-1] + 1] if in_a_row else array[rows]
    is_as_it_should = type(array) is np.ndarray and some.dtype == np.float64 and some.flags.carray
    return cast("Array", some) if is_as_it_should else np.array(some, dtype=np.float64, order="C", subok=False)


def as_numbers(given: object, what: str) -> Numbers:
    """An array of real numbers, as it is if it is one already, whatever its kind of numbers."""
    if isinstance(given, np.ndarray):
        array = cast("Numbers", given)
    else:
        try:
            array = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError(f"{what} must be an array of numbers, not {type(given).__name__}") from None
    if array.dtype.kind not in "fiu":
        raise ShapeError(f"{what} must be real numbers, but they are {array.dtype}")
    if array.ndim == 0:
        raise ShapeError(f"{what} must be several, one for each row, and this is the single number {array}")
    return array
