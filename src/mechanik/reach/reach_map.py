"""A map of what a link reaches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from mechanik.errors import NotFinite, ShapeError
from mechanik.mechanism.door import as_number
from mechanik.reach.rows import Mask
from mechanik.reach.shares import Asked
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CENTRED = 1.0001e-6
"""m; a centre that is missed by less is reached."""
Axis = Literal["x", "y", "z"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReachMap:
    """The voxels that a link reaches, and in which orientations.

    A voxel is in the map if there is a configuration, inside all limits and with all loops shut, at which the
    link's origin lies in the voxel; `q` holds one, and `positions` where it puts the origin: at the centre of the
    voxel (`centred`), or, where the centre was not reached, as near to it as anything that was found. A voxel that
    is not in the map is one in which the solver found nothing. `reached` says for every voxel which of the orientations
    `wxyz` the link can take exactly there, with its origin at `positions`; the share is how many of them.

    Attributes:
        mechanism, link: names.
        resolution: the side of a voxel, m.
        base: (3,), m, a corner of the voxel number 0, 0, 0 of the cutting; maps of the same base lie wall on wall.
        first: the number in the cutting of the lowest voxel of this map, along x, y and z.
        shape: how many voxels it is wide, along x, y and z.
        cells: (k, 3) the voxels that are reached, counted from the first.
        q: (k, nq).
        positions: (k, 3), m.
        asked: what was asked besides the place: the whole orientation ("pose"), where the link's z points
            ("direction": the turn about it is free, for arms that cannot choose it), or "nothing".
        wxyz: (n, 4) the orientations, evenly spread; all with one direction of z follow each other.
        reached: (k, n).
    """

    mechanism: str
    link: str
    resolution: float
    base: Array
    first: tuple[int, int, int]
    shape: tuple[int, int, int]
    cells: npt.NDArray[np.int64]
    q: Array
    positions: Array
    asked: Asked
    wxyz: Array
    reached: Mask
    _rows: npt.NDArray[np.int32]

    def __init__(
        self,
        mechanism: str,
        link: str,
        resolution: float,
        base: Array,
        first: tuple[int, int, int],
        shape: tuple[int, int, int],
        cells: npt.NDArray[np.int64],
        q: Array,
        positions: Array,
        asked: Asked,
        wxyz: Array,
        reached: Mask,
    ) -> None:
        rows = np.full(shape, -1, dtype=np.int32)
        rows[tuple(cells.T)] = np.arange(len(cells))
        given = (mechanism, link, resolution, base, first, shape, cells, q, positions, asked, wxyz, reached, rows)
        for name, value in zip(self.__slots__, given, strict=True):
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<reach of {self.link!r}: {len(self)} voxels of {self.resolution:g} m, {self.size_text}>"

    def __len__(self) -> int:
        """How many voxels are reached."""
        return len(self.cells)

    @property
    def origin(self) -> Array:
        """(3,), m, the lowest corner of the map."""
        return self.base + np.array(self.first) * self.resolution

    # ---- by voxel ---------------------------------------------------------------------------

    @property
    def centres(self) -> Array:
        """(k, 3), m."""
        return self.base + (self.first + self.cells + 0.5) * self.resolution

    @property
    def centred(self) -> Mask:
        """(k,) whether the centre itself is reached."""
        return np.linalg.norm(self.positions - self.centres, axis=1) <= CENTRED

    @property
    def shares(self) -> Array:
        """(k,) the share of the orientations that is reached; 1 where none was asked for."""
        return self.reached.mean(axis=1) if self.reached.shape[1] else np.ones(len(self))

    def by_direction(self) -> tuple[Array, Array]:
        """From where the link can come: directions (d, 3) of its z, and the share of the turns about each, (k, d)."""
        if not len(self.wxyz):
            return np.empty((0, 3)), np.empty((len(self), 0))
        z = quaternion.to_matrix(self.wxyz)[..., 2]
        begins = np.concatenate([[True], (np.abs(np.diff(z, axis=0)) > 1e-9).any(axis=1)])
        groups = np.split(self.reached, np.flatnonzero(begins)[1:], axis=1)
        return z[begins], np.stack([group.mean(axis=1) for group in groups], axis=1)

    # ---- as a block of voxels ---------------------------------------------------------------

    @property
    def occupied(self) -> Mask:
        """(nx, ny, nz) whether a voxel is reached."""
        return self._rows >= 0

    @property
    def share_of_voxels(self) -> Array:
        """(nx, ny, nz) the share; NaN where nothing is reached."""
        block = np.full(self.shape, np.nan)
        block[tuple(self.cells.T)] = self.shares
        return block

    def section(self, axis: Axis, at: float) -> Array:
        """The share in the layer of voxels at `at` (m) along an axis, over the other two; NaN where not reached."""
        k = "xyz".index(axis)
        layer = int(np.floor((as_number(at, "place of a section") - self.origin[k]) / self.resolution))
        if not 0 <= layer < self.shape[k]:
            return np.full(tuple(n for i, n in enumerate(self.shape) if i != k), np.nan)
        return np.moveaxis(self.share_of_voxels, k, 0)[layer]

    def slices(self, axis: Axis = "z") -> Iterator[tuple[float, Array]]:
        """Layer by layer: where its middle is along the axis, m, and its share, as in `section`."""
        k = "xyz".index(axis)
        for layer, share in enumerate(np.moveaxis(self.share_of_voxels, k, 0)):
            yield float(self.origin[k] + (layer + 0.5) * self.resolution), share

    # ---- by place ---------------------------------------------------------------------------

    def reachable(self, position: ArrayLike) -> Mask:
        """(...) whether the voxel of a position (..., 3), m, is reached; outside the map nothing is."""
        return self._at(position) >= 0

    def share(self, position: ArrayLike) -> Array:
        """(...) the share in the voxel of a position (..., 3), m; 0 where nothing is reached."""
        rows = self._at(position)
        return np.where(rows >= 0, self.shares[rows] if len(self) else 0.0, 0.0)

    # ---- figures ----------------------------------------------------------------------------

    @property
    def is_flat(self) -> bool:
        """Whether it is a single layer, as of an arm that moves in a plane."""
        return 1 in self.shape

    @property
    def volume(self) -> float:
        """m³, of the voxels whose centre is reached: what is cut off at the rim and what sticks out even out."""
        return float(self.centred.sum()) * self.resolution**3

    @property
    def area(self) -> float:
        """m², as `volume`, of a map that is a single layer."""
        return float(self.centred.sum()) * self.resolution**2

    @property
    def size_text(self) -> str:
        """Volume or area, for people."""
        return f"{self.area:.4g} m²" if self.is_flat else f"{self.volume:.4g} m³"

    @property
    def extent(self) -> Array:
        """(2, 3), m: the lowest and the highest place that was reached; NaN if none was."""
        if not len(self):
            return np.full((2, 3), np.nan)
        return np.stack([self.positions.min(axis=0), self.positions.max(axis=0)])

    @property
    def best(self) -> int:
        """The voxel with the largest share; of several the one nearest to their middle."""
        if not len(self):
            raise ShapeError("the map is empty: nothing in it is reached")
        shares, centres = self.shares, self.centres
        top = np.flatnonzero(shares == shares.max())
        return int(top[np.linalg.norm(centres[top] - centres[top].mean(axis=0), axis=1).argmin()])

    # ---- out of the program -----------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Into an .npz file, which appears when all of it is written; what stood there before stays until then."""
        from mechanik.reach.map_file import save

        save(self, path)

    @staticmethod
    def load(path: str | PathLike[str]) -> ReachMap:
        """What `save` wrote."""
        from mechanik.reach.map_file import load

        return load(path)

    def voxels(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.uint8]]:
        """For a viewer: centres (k, 3) m, shares (k,) 0 to 1, and colours (k, 3) red green blue, 0 to 255."""
        from mechanik.reach.viewer import colours

        return self.centres.astype(np.float32), self.shares.astype(np.float32), colours(self.shares)

    def to_json(self) -> dict[str, Any]:
        """For a viewer, compact; see `reach/viewer.py` for what stands where."""
        from mechanik.reach.viewer import as_json

        return as_json(self)

    def plot(self, at: ArrayLike | None = None) -> Figure:
        """A figure of matplotlib: three sections, coloured by share, and a view of the whole, cut open.

        Args:
            at: (3,), m, the place through which the sections go; the best place if it is not given.
        """
        from mechanik.reach.picture import draw

        return draw(self, at)

    def _at(self, position: ArrayLike) -> npt.NDArray[np.int32]:
        """(...) the number of the voxel at positions (..., 3), below 0 where nothing is reached."""
        try:
            places = np.asarray(position, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError(f"a position is three numbers, not {position!r}") from None
        if places.ndim < 1 or places.shape[-1] != 3:
            raise ShapeError(f"positions are (..., 3), not of shape {places.shape}")
        if not np.isfinite(places).all():
            raise NotFinite("a position holds a number that is not finite")
        cells = np.floor((places - self.base) / self.resolution) - self.first
        inside = ((cells >= 0) & (cells < self.shape)).all(axis=-1)
        rows = np.full(places.shape[:-1], -1, dtype=np.int32)
        rows[inside] = self._rows[tuple(cells[inside].astype(np.int64).T)]
        return rows
