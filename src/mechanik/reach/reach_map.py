"""Reachability map of a link, and its .npz file format.

A file has the fields of `ReachMap` that `ARRAYS` lists, with `reached` packed into bits, and `about`, one line of JSON:
{"mechanik_reach": 1, "mechanism": name, "link": name, "resolution": m, "orientation_kind": "pose", "orientations": n}.
Earlier files have the key "asked" instead of "orientation_kind".
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from mechanik.errors import CannotSave, FileMissing, FormatError, NotFinite, ShapeError
from mechanik.reach.orientation_coverage import OrientationKind
from mechanik.reach.reachable_voxels import MAX_VOXELS, Mask
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MAX_CENTRE_ERROR = 1.0001e-6
"""Largest distance from the centre of a voxel at which the centre counts as reached, m."""
AxisName = Literal["x", "y", "z"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReachMap:
    """Voxels that the origin of a link reaches, and the orientations that the link can reach in each voxel.

    A voxel is in the map if a configuration inside all limits and with closed loops moves the link's origin into it.
    `q` contains such a configuration, and `positions` the position of the origin in this configuration. The position is
    the centre of the voxel (`centred`), or the nearest position to the centre that was found. A voxel is not in the map
    if no configuration was found for it, or if it is outside the region of the search. `reached` is a mask of the
    orientations `wxyz` that the link can reach with its origin at `positions`, within the tolerances of the solver; the
    share of a voxel is the fraction of orientations that are reached. All positions are in the world frame.

    Attributes:
        mechanism: name of the mechanism.
        link: name of the link.
        resolution: edge length of a voxel, m.
        base: (3,), m, lowest corner of the grid voxel (0, 0, 0). Maps with the same base and resolution have the same
            grid.
        first: grid index of the lowest voxel of this map along x, y and z.
        shape: number of voxels along x, y and z.
        cells: (k, 3) indices of the reached voxels, relative to `first`.
        q: (k, nq) configurations.
        positions: (k, 3), m, positions of the link's origin.
        orientation_kind: what was checked besides the position: the full orientation ("pose"), the direction of the
            link's z axis ("direction", for arms that cannot control the rotation about this axis), or "nothing".
        wxyz: (n, 4) the orientations in the world frame. Unless the caller gave them, they are evenly spaced, and
            orientations with the same direction of z are consecutive.
        reached: (k, n) whether each orientation is reached.

    Example:
        >>> arm = mk.gallery.planar_2r()
        >>> reach = mk.reachability(arm, "tool", 0.25, orientations=0, samples=1000)
        >>> reach.reachable([(1.0, 0.5, 0.0), (3.0, 0.0, 0.0)]).tolist()
        [True, False]
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
    orientation_kind: OrientationKind
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
        orientation_kind: OrientationKind,
        wxyz: Array,
        reached: Mask,
    ) -> None:
        rows = np.full(shape, -1, dtype=np.int32)
        rows[tuple(cells.T)] = np.arange(len(cells))
        values = (
            mechanism,
            link,
            resolution,
            base,
            first,
            shape,
            cells,
            q,
            positions,
            orientation_kind,
            wxyz,
            reached,
            rows,
        )
        for name, value in zip(self.__slots__, values, strict=True):
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<reach of {self.link!r}: {len(self)} voxels of {self.resolution:g} m, {self.size_text}>"

    def __len__(self) -> int:
        """Number of reached voxels."""
        return len(self.cells)

    @property
    def origin(self) -> Array:
        """Lowest corner of the map, (3,), m."""
        return self.base + np.array(self.first) * self.resolution

    # ---- by voxel ---------------------------------------------------------------------------

    @property
    def centres(self) -> Array:
        """Centres of the reached voxels, (k, 3), m."""
        return self.base + (self.first + self.cells + 0.5) * self.resolution

    @property
    def centred(self) -> Mask:
        """Whether `positions` is at the centre of each voxel, (k,)."""
        return np.linalg.norm(self.positions - self.centres, axis=1) <= MAX_CENTRE_ERROR

    @property
    def shares(self) -> Array:
        """Share of the orientations that is reached, (k,), 0 to 1; 1 if no orientation was checked."""
        return self.reached.mean(axis=1) if self.reached.shape[1] else np.ones(len(self))

    def by_direction(self) -> tuple[Array, Array]:
        """Return the directions (d, 3) of the link's z axis, and the share (k, d) of reached rotations about each.

        Only consecutive orientations with the same direction are combined.
        """
        if not len(self.wxyz):
            return np.empty((0, 3)), np.empty((len(self), 0))
        z = quaternion.to_matrix(self.wxyz)[..., 2]
        is_first = np.concatenate([[True], (np.abs(np.diff(z, axis=0)) > 1e-9).any(axis=1)])
        groups = np.split(self.reached, np.flatnonzero(is_first)[1:], axis=1)
        return z[is_first], np.stack([group.mean(axis=1) for group in groups], axis=1)

    # ---- as a block of voxels ---------------------------------------------------------------

    @property
    def occupied(self) -> Mask:
        """Whether each voxel is reached, (nx, ny, nz)."""
        return self._rows >= 0

    @property
    def share_of_voxels(self) -> Array:
        """Share of each voxel, (nx, ny, nz); NaN for voxels that are not reached."""
        block = np.full(self.shape, np.nan)
        block[tuple(self.cells.T)] = self.shares
        return block

    def section(self, axis: AxisName, at: float) -> Array:
        """Return the share in the voxel layer at `at` (m) along an axis, (n1, n2); NaN for voxels not reached.

        n1 and n2 are the numbers of voxels along the other two axes.
        """
        k = "xyz".index(axis)
        layer = int(np.floor((as_number(at, "position of a section") - self.origin[k]) / self.resolution))
        if not 0 <= layer < self.shape[k]:
            return np.full(tuple(n for i, n in enumerate(self.shape) if i != k), np.nan)
        return np.moveaxis(self.share_of_voxels, k, 0)[layer]

    def slices(self, axis: AxisName = "z") -> Iterator[tuple[float, Array]]:
        """Iterate over the layers along an axis: the position of the middle, m, and the share as in `section`."""
        k = "xyz".index(axis)
        for layer, share in enumerate(np.moveaxis(self.share_of_voxels, k, 0)):
            yield float(self.origin[k] + (layer + 0.5) * self.resolution), share

    # ---- by position ------------------------------------------------------------------------

    def reachable(self, position: ArrayLike) -> Mask:
        """Return whether the voxel at each position (..., 3), m, is reached; False outside the map."""
        return self._voxel_index(position) >= 0

    def share(self, position: ArrayLike) -> Array:
        """Return the share in the voxel at each position (..., 3), m; 0 if the voxel is not reached."""
        rows = self._voxel_index(position)
        return np.where(rows >= 0, self.shares[rows] if len(self) else 0.0, 0.0)

    # ---- sizes ------------------------------------------------------------------------------

    @property
    def is_flat(self) -> bool:
        """Whether the map is a single layer, as for an arm that moves in a plane."""
        return 1 in self.shape

    @property
    def volume(self) -> float:
        """Volume of the voxels whose centre is reached, m³; errors at the boundary of the region cancel on average."""
        return float(self.centred.sum()) * self.resolution**3

    @property
    def area(self) -> float:
        """Area of the voxels whose centre is reached, m², for a map of a single layer."""
        return float(self.centred.sum()) * self.resolution**2

    @property
    def size_text(self) -> str:
        """Volume or area as text."""
        return f"{self.area:.4g} m²" if self.is_flat else f"{self.volume:.4g} m³"

    @property
    def extent(self) -> Array:
        """Lowest and highest coordinates of `positions`, (2, 3), m; NaN if the map is empty."""
        if not len(self):
            return np.full((2, 3), np.nan)
        return np.stack([self.positions.min(axis=0), self.positions.max(axis=0)])

    @property
    def best(self) -> int:
        """Index of the voxel with the largest share; if there are several, the voxel nearest to their centroid.

        Raises:
            ShapeError: if the map is empty.
        """
        if not len(self):
            raise ShapeError("the map is empty: no voxel is reached")
        shares, centres = self.shares, self.centres
        best_rows = np.flatnonzero(shares == shares.max())
        return int(best_rows[np.linalg.norm(centres[best_rows] - centres[best_rows].mean(axis=0), axis=1).argmin()])

    # ---- output -----------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Save the map as an .npz file; an existing file is replaced only when the new file is complete.

        Args:
            path: path of the file.

        Raises:
            CannotSave: if the file cannot be written.
        """
        write_reach_map(self, path)

    @staticmethod
    def load(path: str | PathLike[str]) -> ReachMap:
        """Load a map that `save` wrote.

        Args:
            path: path of the file.

        Raises:
            FileMissing: if there is no such file.
            FormatError: if the file is not a map, is damaged, or has a newer version of the format.
        """
        return read_reach_map(path)

    def voxels(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.uint8]]:
        """Return data for a viewer: centres (k, 3), m, shares (k,), 0 to 1, and RGB colours (k, 3), 0 to 255."""
        from mechanik.reach.reach_plot import colours

        return self.centres.astype(np.float32), self.shares.astype(np.float32), colours(self.shares)

    def to_json(self) -> dict[str, Any]:
        """Return the map as compact JSON data for a viewer; `reach/reach_plot.py` describes the format."""
        from mechanik.reach.reach_plot import reach_map_json

        return reach_map_json(self)

    def plot(self, at: ArrayLike | None = None) -> Figure:
        """Plot the map with matplotlib: three sections, coloured by share, and a cutaway view.

        A flat map has one section and no cutaway view.

        Args:
            at: (3,), m, common point of the sections; the default is the centre of the best voxel.

        Returns:
            The figure.

        Raises:
            MissingExtra: if matplotlib is not installed.
            ShapeError, NotFinite: if `at` is not three finite numbers.
            ShapeError: if the map is empty and `at` is None.
        """
        from mechanik.reach.reach_plot import plot_reach_map

        return plot_reach_map(self, at)

    def _voxel_index(self, position: ArrayLike) -> npt.NDArray[np.int32]:
        """Return the index of the voxel at each position (..., 3), negative if the voxel is not reached."""
        try:
            positions = np.asarray(position, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError(f"position must be three numbers, not {position!r}") from None
        if positions.ndim < 1 or positions.shape[-1] != 3:
            raise ShapeError(f"position must have shape (..., 3), not {positions.shape}")
        if not np.isfinite(positions).all():
            raise NotFinite("position has an entry that is not finite")
        cells = np.floor((positions - self.base) / self.resolution) - self.first
        is_inside = ((cells >= 0) & (cells < self.shape)).all(axis=-1)
        rows = np.full(positions.shape[:-1], -1, dtype=np.int32)
        rows[is_inside] = self._rows[tuple(cells[is_inside].astype(np.int64).T)]
        return rows


VERSION = 1
"""Version of the file format and of the JSON data."""
ARRAYS = ("base", "first", "shape", "cells", "q", "positions", "wxyz", "reached")


def write_reach_map(map: ReachMap, path: str | PathLike[str]) -> None:
    """Write a map to a temporary file next to `path`, then rename the file."""
    target_path = _expanded_path(path)
    temporary_path = target_path.with_name(f"{target_path.name}.part")
    header = {
        "mechanik_reach": VERSION,
        "mechanism": map.mechanism,
        "link": map.link,
        "resolution": map.resolution,
        "orientation_kind": map.orientation_kind,
        "orientations": len(map.wxyz),
    }
    arrays: dict[str, npt.NDArray[Any]] = {name: np.asarray(getattr(map, name)) for name in ARRAYS}
    arrays["cells"] = map.cells.astype(np.int32)
    arrays["reached"] = np.packbits(map.reached, axis=1)
    try:
        with open(temporary_path, "wb") as file:
            np.savez_compressed(file, about=np.array(json.dumps(header)), **arrays)  # type: ignore[arg-type]
        os.replace(temporary_path, target_path)
    except OSError as error:
        temporary_path.unlink(missing_ok=True)
        raise CannotSave(f"{target_path} cannot be written: {error.strerror}") from None


def read_reach_map(path: str | PathLike[str]) -> ReachMap:
    """Read a map that `write_reach_map` wrote."""
    source_path = _expanded_path(path)
    if not source_path.exists():
        raise FileMissing(f"there is no file {str(path)!r}")
    try:
        with open(source_path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            if "about" not in file:
                raise FormatError(f"{source_path} is not a reachability map: its header is missing")
            header = json.loads(str(file["about"]))
            _check_version(header, source_path)
            arrays = {name: file[name] for name in ARRAYS}
        return _validated_map(header, arrays)
    except FormatError:
        raise
    except KeyError as error:
        raise FormatError(f"{source_path} is an incomplete reachability map: {error.args[0]} is missing") from None
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise FormatError(f"{source_path} is not a reachability map, or is damaged: {error}") from None
    except Exception as error:
        # a damaged archive can raise almost any exception
        raise FormatError(f"{source_path} is damaged: {error}") from None


def _check_version(header: Any, source_path: Path) -> None:
    version = header.get("mechanik_reach") if isinstance(header, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(version, int):
        raise FormatError(f"{source_path} is not a reachability map: its header is missing")
    if version > VERSION:
        raise FormatError(
            f"{source_path} has version {version}; this Mechanik reads versions up to {VERSION}; update Mechanik"
        )


def _validated_map(header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> ReachMap:
    """Return the map of a file.

    Raises:
        ValueError: if an array or an entry of the header is not valid.
        KeyError: if an entry of the header is missing.
    """
    orientation_count, voxel_count = int(header["orientations"]), len(arrays["cells"])
    resolution = float(header["resolution"])
    orientation_kind = header["asked"] if "asked" in header else header["orientation_kind"]
    shape, cells = arrays["shape"], arrays["cells"].astype(np.int64)
    expected_shapes = {
        "base": (3,), "first": (3,), "shape": (3,), "cells": (voxel_count, 3), "positions": (voxel_count, 3),
        "wxyz": (orientation_count, 4), "reached": (voxel_count, (orientation_count + 7) // 8),
        "q": (voxel_count, *arrays["q"].shape[1:2]),
    }  # fmt: skip
    for name, expected_shape in expected_shapes.items():
        if arrays[name].shape != expected_shape:
            raise ValueError(f"{name} has shape {arrays[name].shape}, not {expected_shape}")
    for name in ("base", "positions", "wxyz", "q"):
        if arrays[name].dtype != np.float64 or not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} has an entry that is not a finite number")
    if not (resolution > 0.0 and np.isfinite(resolution)) or orientation_kind not in get_args(OrientationKind):
        raise ValueError(f"the resolution {resolution!r} or the orientation kind {orientation_kind!r} is invalid")
    if (shape < 0).any() or shape.prod(dtype=np.float64) > MAX_VOXELS:
        raise ValueError(f"its shape of {shape.tolist()} voxels is invalid or too large")
    if ((cells < 0) | (cells >= shape)).any() or len(np.unique(cells, axis=0)) < voxel_count:
        raise ValueError("a voxel is outside the map, or occurs twice")
    first_cell, map_shape = (tuple(int(x) for x in arrays[name]) for name in ("first", "shape"))
    reached = np.unpackbits(arrays["reached"], axis=1, count=orientation_count).astype(np.bool_)
    return ReachMap(
        str(header["mechanism"]), str(header["link"]), resolution, arrays["base"],
        (first_cell[0], first_cell[1], first_cell[2]), (map_shape[0], map_shape[1], map_shape[2]),
        cells, arrays["q"], arrays["positions"], orientation_kind, arrays["wxyz"], reached,
    )  # fmt: skip


def _expanded_path(path: str | PathLike[str]) -> Path:
    return Path(path).expanduser()
