"""Ground as a field of heights, without kinks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.errors import NotFinite, ObjectiveError, ShapeError
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
        field = _numbers(heights, "heights of a terrain are numbers, (ny, nx)")
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
        return self.height_and_slope(*_places(x, y))[0]

    def normal(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Unit vectors (..., 3) that stand upright on the ground at x and y (...)."""
        _, by_x, by_y = self.height_and_slope(*_places(x, y))
        up = np.stack([-by_x, -by_y, np.ones_like(by_x)], axis=-1)
        return up / np.linalg.norm(up, axis=-1, keepdims=True)

    def raised_by(self, radius: float, finer: int = 4) -> Terrain:
        """The surface on which the centre of a ball rolls that touches the ground from above.

        Its heights are exact (1e-12 m) at its corners, wherever the ball lies in a place or between two. Between the
        corners it is as smooth as any terrain, so that the kink where the ball changes from one place to another is
        rounded within two cells: about a tenth of a cell's side off there, for a kink of a right angle.

        Args:
            radius: m, not below zero.
            finer: how many cells of the new surface stand along a cell of the ground, 1 or more.
        """
        from mechanik.objectives.rolling import rolling_surface

        return rolling_surface(self, radius, finer)

    def height_and_slope(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Array]:
        """Height (...), and how it changes along x and along y, at x and y (...)."""
        height, slope, _ = self.height_slope_and_bend(x, y)
        return height, slope[..., 0], slope[..., 1]

    def height_slope_and_bend(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Array]:
        """Height (...), slope (..., 2), and how that changes along x and y (..., 2, 2), 1/m, which jumps at edges."""
        px, py = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
        ny, nx = self.heights.shape
        i, across = self._along(px, self.origin[0], nx)
        j, along = self._along(py, self.origin[1], ny)
        near = self.heights[j[..., :, None], i[..., None, :]]  # (..., 4, 4), rows along y
        all_of_it = along @ near @ np.swapaxes(across, -1, -2)  # (..., 3, 3), derived along y and along x
        slope = np.stack([all_of_it[..., 0, 1], all_of_it[..., 1, 0]], axis=-1) / self.cell
        xx, xy, yy = all_of_it[..., 0, 2], all_of_it[..., 1, 1], all_of_it[..., 2, 0]
        bend = np.stack([np.stack([xx, xy], axis=-1), np.stack([xy, yy], axis=-1)], axis=-2) / self.cell**2
        return all_of_it[..., 0, 0], slope, bend

    def heights_on_lattice(self, x: Array, y: Array) -> Array:
        """(b, a), m, at each of x (a,) with each of y (b,), faster than one by one."""
        ny, nx = self.heights.shape
        shares: list[Array] = []
        for places, origin, count in ((y, self.origin[1], ny), (x, self.origin[0], nx)):
            which, how_much = self._along(places, origin, count)
            share = np.zeros((len(places), count))
            np.add.at(share, (np.arange(len(places))[:, None], which), how_much[:, 0])
            shares.append(share)
        return shares[0] @ self.heights @ shares[1].T

    def _along(self, places: Array, origin: float, count: int) -> tuple[np.ndarray, Array]:
        """Which four heights count at places (...): (..., 4); how much, and that derived by cells: (..., 3, 4)."""
        u = np.clip((places - origin) / self.cell, -2.0, count + 1.0)  # farther out nothing changes
        k = np.floor(u)
        t = u - k
        which = np.clip(k[..., None].astype(np.int64) + np.arange(-1, 3), 0, count - 1)
        one, none = np.ones_like(t), np.zeros_like(t)
        powers = [[one, t, t**2, t**3], [none, one, 2 * t, 3 * t**2], [none, none, 2 * one, 6 * t]]
        return which, np.stack([np.stack(some, axis=-1) for some in powers], axis=-2) @ CATMULL_ROM.T


def _numbers(given: ArrayLike, what: str) -> Array:
    """float64, copied; text and complex numbers are refused, which NumPy would read or cut."""
    try:
        found = np.asarray(given)
        if found.dtype.kind in "USc":
            raise ShapeError(what)
        return np.array(found, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(what) from None


def _places(x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """x and y as arrays of one shape, finite."""
    px, py = (_numbers(one, f"a place on a terrain is x and y, numbers in m; not {one!r}") for one in (x, y))
    for name, one in (("x", px), ("y", py)):
        if not np.isfinite(one).all():
            raise NotFinite(f"{name} of a place on a terrain is {one[~np.isfinite(one)].flat[0]}; it must be finite")
    try:
        bx, by = np.broadcast_arrays(px, py)
    except ValueError:
        raise ShapeError(f"x and y of places on a terrain do not go together: {px.shape} and {py.shape}") from None
    return bx, by
