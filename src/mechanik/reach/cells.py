"""Space cut into cubes: which cube a place lies in, and what is known of each cube."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanik.errors import LimitsError
from mechanik.spatial.array import Array

Cells = npt.NDArray[np.int64]
"""(..., 3), the numbers of cubes along x, y and z."""

UNKNOWN, EMPTY, CLOSED = -1, -2, -3
"""What a table says of a cube that nobody has asked about yet; of one in which nothing was found; and of one in which
nothing was found from several sides."""
FARTHEST = 1 << 20
"""The highest number of a cube along an axis."""
MOST_CELLS = 20_000_000
"""Of a table: 80 MB. A map as fine as that would take hours besides."""


@dataclass(frozen=True, slots=True, eq=False)
class Cutting:
    """How space is cut.

    Cube i reaches from `base + i * size` up to, but not including, `base + (i + 1) * size`, so that the walls stand at
    whole multiples of the size; along a flat axis there is one layer, with the only place there is in its middle.

    Attributes:
        size: of a cube, m.
        base: (3,), m.
        flat: (3,) whether nothing moves along the axis.
    """

    size: float
    base: Array
    flat: npt.NDArray[np.bool_]

    def cells(self, places: Array) -> Cells:
        """The cubes that places (..., 3) lie in."""
        numbers = np.floor((places - self.base) / self.size)
        if numbers.size and np.abs(numbers).max() >= FARTHEST:
            raise LimitsError(
                f"places as far as {np.abs(places).max():.3g} m from the origin have no number at a resolution of "
                f"{self.size:g} m; make it coarser"
            )
        return numbers.astype(np.int64)

    def centres(self, cells: Cells) -> Array:
        """(..., 3), m."""
        return self.base + (cells + 0.5) * self.size

    def neighbours(self) -> Cells:
        """The ways (n, 3) to the cubes around one, corners included; n is 26, or 8 in a layer."""
        ways = np.stack(np.meshgrid(*[[0] if flat else [-1, 0, 1] for flat in self.flat], indexing="ij"), axis=-1)
        ways = ways.reshape(-1, 3)
        return ways[ways.any(axis=1)]


def cut(places: Array, size: float, thickness: float) -> Cutting:
    """The cutting for places (n, 3); an axis along which they spread by less than `thickness` is flat."""
    low, high = places.min(axis=0), places.max(axis=0)
    flat = high - low <= thickness
    return Cutting(size, np.where(flat, (low + high - size) / 2, 0.0), flat)


def first_of_each(cells: Cells) -> npt.NDArray[np.int64]:
    """Where each different cube of (n, 3) stands first."""
    x, y, z = (cells + FARTHEST).T  # as one number each, which sort ten times as fast as rows do
    return np.unique((x << 42) | (y << 21) | z, return_index=True)[1]


class Table:
    """A number for each cube, UNKNOWN at first, in an array that grows where it is written.

    Args:
        within: the lowest and the highest cube, (3,) each, if there shall be no others.
    """

    def __init__(self, within: tuple[Cells, Cells] | None = None) -> None:
        self.within = within
        self._low = np.zeros(3, dtype=np.int64)
        self._numbers = np.full((0, 0, 0), UNKNOWN, dtype=np.int32)
        if within is not None:
            self._reach(*within)

    def __getitem__(self, cells: Cells) -> npt.NDArray[np.int32]:
        at = cells - self._low
        inside = ((at >= 0) & (at < self._numbers.shape)).all(axis=-1)
        found = np.full(cells.shape[:-1], UNKNOWN, dtype=np.int32)
        found[inside] = self._numbers[tuple(at[inside].T)]
        return found

    def __setitem__(self, cells: Cells, numbers: npt.ArrayLike) -> None:
        if len(cells):
            self._reach(cells.min(axis=0), cells.max(axis=0))
            self._numbers[tuple((cells - self._low).T)] = numbers

    def covers(self, cells: Cells) -> npt.NDArray[np.bool_]:
        """(...) whether there shall be such cubes at all."""
        if self.within is None:
            return np.ones(cells.shape[:-1], dtype=np.bool_)
        return np.asarray(((cells >= self.within[0]) & (cells <= self.within[1])).all(axis=-1))

    def where(self, number: int) -> Cells:
        """(n, 3), the cubes of the array that have this number."""
        return np.argwhere(self._numbers == number) + self._low

    def _reach(self, low: Cells, high: Cells) -> None:
        """Make the array large enough."""
        shape = np.array(self._numbers.shape)
        if self._numbers.size:
            if (low >= self._low).all() and (high < self._low + shape).all():
                return
            low, high = np.minimum(low, self._low), np.maximum(high, self._low + shape - 1)
        check_count((high - low + 1).tolist())
        grown = np.full(tuple((high - low + 1).tolist()), UNKNOWN, dtype=np.int32)
        if self._numbers.size:
            first = (self._low - low).tolist()
            inner = tuple(slice(one, one + wide) for one, wide in zip(first, self._numbers.shape, strict=True))
            grown[inner] = self._numbers
        self._low, self._numbers = low, grown


def check_count(shape: list[int]) -> None:
    """Refuse more cubes than the memory shall hold."""
    x, y, z = shape
    if x * y * z > MOST_CELLS:
        coarser = (x * y * z / MOST_CELLS) ** (1 / sum(one > 1 for one in shape))
        raise LimitsError(
            f"a map of {x} x {y} x {z} voxels would have {x * y * z:,} of them, and at most {MOST_CELLS:,} are taken; "
            f"make the resolution at least {coarser:.2g} times as coarse, or name a smaller region"
        )
