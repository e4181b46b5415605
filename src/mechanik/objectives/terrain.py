"""Ground as a field of heights, without kinks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.errors import ObjectiveError, ShapeError
from mechanik.mechanism.door import as_number, as_vector, read_only
from mechanik.spatial.array import Array, ArrayLike

CATMULL_ROM = 0.5 * np.array([[0, -1, 2, -1], [2, 0, -5, 3], [0, 1, 4, -3], [0, 0, -1, 1]])
"""(4, 4): for each of four heights in a row the factors of 1, t, t^2, t^3; t runs from the second to the third."""


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Terrain:
    """Heights at the corners of square cells; between them the cubics of Catmull and Rom (1974), without kinks.

    Beyond the edge the outermost heights go on for ever, so that the ground is flat from one cell behind the edge.

    Attributes:
        heights: (ny, nx), m; heights[j, i] stands at x = origin[0] + i cell, y = origin[1] + j cell.
        cell: side of a cell, m.
        origin: (2,), where the first height stands, m.
    """

    heights: Array
    cell: float
    origin: Array

    def __init__(self, heights: ArrayLike, cell: float, origin: ArrayLike = (0.0, 0.0)) -> None:
        try:
            field = np.array(heights, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError("heights of a terrain are numbers, (ny, nx)") from None
        if field.ndim != 2 or min(field.shape) < 2:
            raise ShapeError(f"heights of a terrain are (ny, nx), two or more each way, not of shape {field.shape}")
        if not np.isfinite(field).all():
            j, i = np.argwhere(~np.isfinite(field))[0].tolist()
            raise ObjectiveError(f"heights[{j}, {i}] of a terrain is {field[j, i]}; every height must be finite")
        side = as_number(cell, "cell of a terrain")
        if not side > 0.0:
            raise ObjectiveError(f"cell of a terrain is {side}; it must be above zero")
        object.__setattr__(self, "heights", read_only(field))
        object.__setattr__(self, "cell", side)
        object.__setattr__(self, "origin", read_only(as_vector(origin, 2, "origin of a terrain")))

    def __repr__(self) -> str:
        ny, nx = self.heights.shape
        low, high = self.heights.min(), self.heights.max()
        return f"<terrain of {nx} by {ny} heights from {low:.3g} to {high:.3g} m, every {self.cell:g} m>"

    def height(self, x: ArrayLike, y: ArrayLike) -> Array:
        """(...), m, at x and y (...), m."""
        return self.height_and_slope(x, y)[0]

    def normal(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Unit vectors (..., 3) that stand upright on the ground at x and y (...)."""
        _, by_x, by_y = self.height_and_slope(x, y)
        up = np.stack([-by_x, -by_y, np.ones_like(by_x)], axis=-1)
        return up / np.linalg.norm(up, axis=-1, keepdims=True)

    def height_and_slope(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Array]:
        """Height (...), and how it changes along x and along y, at x and y (...)."""
        px, py = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
        ny, nx = self.heights.shape
        i, across, across_rate = self._along(px, self.origin[0], nx)
        j, along, along_rate = self._along(py, self.origin[1], ny)
        near = self.heights[j[..., :, None], i[..., None, :]]  # (..., 4, 4), rows along y
        height = np.einsum("...j,...ji,...i->...", along, near, across)
        by_x = np.einsum("...j,...ji,...i->...", along, near, across_rate)
        by_y = np.einsum("...j,...ji,...i->...", along_rate, near, across)
        return height, by_x / self.cell, by_y / self.cell

    def _along(self, places: Array, origin: float, count: int) -> tuple[np.ndarray, Array, Array]:
        """Which four heights count at places (...), how much, and how that changes with a cell: (..., 4) each."""
        u = np.clip((places - origin) / self.cell, -2.0, count + 1.0)  # farther out nothing changes
        k = np.floor(u)
        t = u - k
        which = np.clip(k[..., None].astype(np.int64) + np.arange(-1, 3), 0, count - 1)
        one, none = np.ones_like(t), np.zeros_like(t)
        powers, rates = np.stack([one, t, t**2, t**3], axis=-1), np.stack([none, one, 2 * t, 3 * t**2], axis=-1)
        return which, powers @ CATMULL_ROM.T, rates @ CATMULL_ROM.T
