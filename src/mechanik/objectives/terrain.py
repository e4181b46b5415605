"""Smooth terrain as a height field, and its offset surface for a rolling sphere.

Offset surface: the centre of a sphere of radius r that touches the terrain h from above is at the height max over (a,
b) of h(x + a, y + b) + sqrt(r^2 - a^2 - b^2), with a^2 + b^2 <= r^2. The best shift (a, b) is searched on a lattice and
refined by Newton's method. Where two shifts are nearly as good, the lattice may choose the slightly lower one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from operator import index

import numpy as np

from mechanik.errors import NotFinite, ObjectiveError, ShapeError
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number, as_vector, read_only

CATMULL_ROM = 0.5 * np.array([[0, -1, 2, -1], [2, 0, -5, 3], [0, 1, 4, -3], [0, 0, -1, 1]])
"""(4, 4): for each of four consecutive heights the coefficients of 1, t, t^2, t^3; t runs from the second to the
third."""


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Terrain:
    """Terrain given by heights at the corners of square cells, interpolated by Catmull-Rom cubics (1974).

    The surface has continuous slopes. Beyond the edge the outermost heights continue, so the terrain is flat from one
    cell behind the edge.

    Args:
        heights: (ny, nx), m, at least 2 by 2; heights[j, i] is at x = origin[0] + i cell, y = origin[1] + j cell.
        cell: side of a cell, m.
        origin: (2,), x and y of the first height, m.

    Raises:
        ShapeError: the heights are not (ny, nx) numbers.
        ObjectiveError: a height is not finite, or the cell is not above zero.

    Example:
        >>> ground = mk.Terrain([[0.0, 0.0, 0.0], [0.0, 0.4, 0.0], [0.0, 0.0, 0.0]], cell=1.0)
        >>> ground.height([1.0, 0.5], [1.0, 1.0]).tolist()
        [0.4, 0.225]
    """

    heights: Array
    cell: float
    origin: Array

    def __init__(self, heights: ArrayLike, cell: float, origin: ArrayLike = (0.0, 0.0)) -> None:
        grid = _as_float_array(heights, "heights of a terrain must be numbers of shape (ny, nx)")
        if grid.ndim != 2 or min(grid.shape) < 2:
            raise ShapeError(f"heights of a terrain must have shape (ny, nx), at least (2, 2), not {grid.shape}")
        if not np.isfinite(grid).all():
            j, i = np.argwhere(~np.isfinite(grid))[0].tolist()
            raise ObjectiveError(f"heights[{j}, {i}] of a terrain is {grid[j, i]}; every height must be finite")
        cell_size = as_number(cell, "cell of a terrain")
        if not cell_size > 0.0:
            raise ObjectiveError(f"cell of a terrain is {cell_size}; it must be above zero")
        object.__setattr__(self, "heights", read_only(grid))
        object.__setattr__(self, "cell", cell_size)
        object.__setattr__(self, "origin", read_only(as_vector(origin, 2, "origin of a terrain")))

    def __repr__(self) -> str:
        ny, nx = self.heights.shape
        low, high = self.heights.min(), self.heights.max()
        return f"<terrain of {nx} by {ny} heights from {low:.3g} to {high:.3g} m, every {self.cell:g} m>"

    def height(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Return the height (...), m, at x and y (...), m."""
        return self.height_and_gradient(*_as_coordinates(x, y))[0]

    def normal(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Return the upward unit normals (..., 3) at x and y (...), m."""
        _, dh_dx, dh_dy = self.height_and_gradient(*_as_coordinates(x, y))
        normals = np.stack([-dh_dx, -dh_dy, np.ones_like(dh_dx)], axis=-1)
        return normals / np.linalg.norm(normals, axis=-1, keepdims=True)

    def offset_by(self, radius: float, subdivisions: int = 4) -> Terrain:
        """Return the surface on which the centre of a sphere moves that rolls on the terrain.

        Its heights are exact (1e-12 m) at its grid points, also where the sphere touches at two points. Between them it
        is interpolated as any terrain, so the kink where the contact jumps is rounded within two cells: the error there
        is about a tenth of a cell's side for a kink of 90 degrees.

        Args:
            radius: m, not below zero.
            subdivisions: number of cells of the new surface along a cell of the terrain, 1 or more.

        Raises:
            ObjectiveError: an argument is out of range.
        """

        return offset_terrain(self, radius, subdivisions)

    def height_and_gradient(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Array]:
        """Return the height (...), m, and its derivatives along x and along y, at x and y (...), m."""
        height, gradient, _ = self.height_gradient_and_hessian(x, y)
        return height, gradient[..., 0], gradient[..., 1]

    def height_gradient_and_hessian(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Array]:
        """Return height (...), gradient (..., 2) and Hessian (..., 2, 2), 1/m; the Hessian jumps at cell edges."""
        px, py = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
        ny, nx = self.heights.shape
        i, weights_x = self._interpolation_weights(px, self.origin[0], nx)
        j, weights_y = self._interpolation_weights(py, self.origin[1], ny)
        neighbours = self.heights[j[..., :, None], i[..., None, :]]  # (..., 4, 4), first axis along y
        derivatives = (
            weights_y @ neighbours @ np.swapaxes(weights_x, -1, -2)
        )  # (..., 3, 3), orders of the derivatives by y and by x
        gradient = np.stack([derivatives[..., 0, 1], derivatives[..., 1, 0]], axis=-1) / self.cell
        xx, xy, yy = derivatives[..., 0, 2], derivatives[..., 1, 1], derivatives[..., 2, 0]
        hessian = np.stack([np.stack([xx, xy], axis=-1), np.stack([xy, yy], axis=-1)], axis=-2) / self.cell**2
        return derivatives[..., 0, 0], gradient, hessian

    def heights_on_grid(self, x: Array, y: Array) -> Array:
        """Return heights (b, a), m, on the grid of x (a,) and y (b,); faster than `height`."""
        ny, nx = self.heights.shape
        matrices: list[Array] = []
        for coordinates, origin, count in ((y, self.origin[1], ny), (x, self.origin[0], nx)):
            indices, weights = self._interpolation_weights(coordinates, origin, count)
            matrix = np.zeros((len(coordinates), count))
            np.add.at(matrix, (np.arange(len(coordinates))[:, None], indices), weights[:, 0])
            matrices.append(matrix)
        return matrices[0] @ self.heights @ matrices[1].T

    def _interpolation_weights(self, coordinates: Array, origin: float, count: int) -> tuple[np.ndarray, Array]:
        """Return the indices (..., 4) of the heights that count at coordinates (...), and their weights (..., 3, 4).

        The three rows of weights are for the value and its first and second derivative, in cells.
        """
        u = np.clip((coordinates - origin) / self.cell, -2.0, count + 1.0)  # the terrain is constant farther out
        k = np.floor(u)
        t = u - k
        indices = np.clip(k[..., None].astype(np.int64) + np.arange(-1, 3), 0, count - 1)
        ones, zeros = np.ones_like(t), np.zeros_like(t)
        powers = [[ones, t, t**2, t**3], [zeros, ones, 2 * t, 3 * t**2], [zeros, zeros, 2 * ones, 6 * t]]
        return indices, np.stack([np.stack(row, axis=-1) for row in powers], axis=-2) @ CATMULL_ROM.T


def _as_float_array(values: ArrayLike, message: str) -> Array:
    """Return a float64 copy; text and complex numbers are refused, which NumPy would convert or truncate."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "USc":
            raise ShapeError(message)
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(message) from None


def _as_coordinates(x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """Return x and y as finite arrays of one shape."""
    px, py = (
        _as_float_array(value, f"x and y of points on a terrain must be numbers in m, not {value!r}")
        for value in (x, y)
    )
    for name, coordinate in (("x", px), ("y", py)):
        if not np.isfinite(coordinate).all():
            bad = coordinate[~np.isfinite(coordinate)].flat[0]
            raise NotFinite(f"{name} of a point on a terrain is {bad}; it must be finite")
    try:
        bx, by = np.broadcast_arrays(px, py)
    except ValueError:
        raise ShapeError(
            f"x and y of points on a terrain have shapes that do not broadcast: {px.shape} and {py.shape}"
        ) from None
    return bx, by


LATTICE_POINTS_PER_CELL = 16, 32
"""Smallest and largest number of lattice points along a cell of the terrain."""
SHIFTS_PER_RADIUS = 16, 48
"""Smallest and largest number of shifts along the radius; the smallest does not hold for radii far below a cell."""
MAX_CONTACT_RADIUS_SHARE = 1.0 - 1e-12
"""Largest distance of the contact from the sphere's axis, as a share of the radius; there the slope is about a
million."""
MAX_NEWTON_STEPS = 30
"""Largest number of Newton steps; four are typical."""


def offset_terrain(terrain: Terrain, radius: float, subdivisions: int) -> Terrain:
    """Return the offset surface of a terrain; see `Terrain.offset_by`."""
    r = as_number(radius, "radius of a sphere on a terrain")
    if r < 0.0:
        raise ObjectiveError(f"radius of a sphere on a terrain is {r:g} m; it must not be negative")
    try:
        count = index(subdivisions)
    except TypeError:
        count = 0
    if count < 1:
        raise ObjectiveError(f"subdivisions must be a whole number, 1 or more, not {subdivisions!r}")
    return terrain if r == 0.0 else _offset_terrain(terrain, r, count)


@lru_cache(maxsize=16)
def _offset_terrain(terrain: Terrain, radius: float, subdivisions: int) -> Terrain:
    """Compute the offset surface; cached, so that equal wheels share one terrain and solvers store its heights once."""
    margin_cells = math.ceil(radius / terrain.cell) + 1  # farther out the terrain is flat within the sphere's reach
    counts = [subdivisions * (count - 1 + 2 * margin_cells) + 1 for count in terrain.heights.shape]
    cell = terrain.cell / subdivisions
    origin: Array = terrain.origin - margin_cells * terrain.cell
    shift, spacing = _best_on_lattice(terrain, radius, subdivisions, origin, (counts[0], counts[1]))
    rows, columns = np.indices(counts, dtype=np.float64)
    points = origin + cell * np.stack([columns, rows], axis=-1)
    heights, contacts = _refine_shifts(terrain, radius, points.reshape(-1, 2), shift, spacing)
    heights, contacts = heights.reshape(counts), contacts.reshape(points.shape)
    for axis, direction in ((0, 1), (0, -1), (1, 1), (1, -1)):  # the contact of a neighbour may be better here too
        neighbour_contacts = np.roll(contacts, direction, axis)
        cap_squared = radius**2 - ((neighbour_contacts - points) ** 2).sum(axis=-1)
        neighbour_heights = terrain.height(neighbour_contacts[..., 0], neighbour_contacts[..., 1]) + np.sqrt(
            np.maximum(cap_squared, 0.0)
        )
        better = (cap_squared > 0.0) & (neighbour_heights > heights + 1e-15 * radius)
        heights[better], contacts[better] = _refine_shifts(
            terrain, radius, points[better], (neighbour_contacts - points)[better], spacing
        )
    return Terrain(heights, cell, origin)


def _best_on_lattice(
    terrain: Terrain, radius: float, subdivisions: int, origin: Array, counts: tuple[int, int]
) -> tuple[Array, float]:
    """Return the best lattice shifts (n, 2), m, for the new heights row by row, and the spacing of the shifts, m."""
    points_per_cell = min(
        max(SHIFTS_PER_RADIUS[0] * terrain.cell / radius, LATTICE_POINTS_PER_CELL[0]), LATTICE_POINTS_PER_CELL[1]
    )
    steps_per_cell = math.ceil(points_per_cell / subdivisions)  # lattice steps along a cell of the new surface
    step = terrain.cell / subdivisions / steps_per_cell
    stride = max(1, math.ceil(radius / step / SHIFTS_PER_RADIUS[1]))
    reach = int(radius / step) // stride * stride
    x: Array = origin[0] + step * np.arange(-reach, steps_per_cell * (counts[1] - 1) + reach + 1)
    y: Array = origin[1] + step * np.arange(-reach, steps_per_cell * (counts[0] - 1) + reach + 1)
    lattice = terrain.heights_on_grid(x, y)
    shifts = [(i, j) for i in range(-reach, reach + 1, stride) for j in range(-reach, reach + 1, stride)]
    shifts = [(i, j) for i, j in shifts if math.hypot(i, j) * step <= radius]
    best, best_index = np.full(counts, -np.inf), np.zeros(counts, dtype=np.int64)
    for k, (i, j) in enumerate(shifts):
        rows = slice(reach + j, reach + j + steps_per_cell * (counts[0] - 1) + 1, steps_per_cell)
        columns = slice(reach + i, reach + i + steps_per_cell * (counts[1] - 1) + 1, steps_per_cell)
        height = lattice[rows, columns] + math.sqrt(max(radius**2 - (i * i + j * j) * step**2, 0.0))
        better = height > best
        np.copyto(best, height, where=better)
        np.copyto(best_index, k, where=better)
    return step * np.array(shifts, dtype=np.float64)[best_index.ravel()], stride * step


def _refine_shifts(terrain: Terrain, radius: float, points: Array, shift: Array, spacing: float) -> tuple[Array, Array]:
    """Return the largest heights (n,) above points (n, 2) near the given shifts (n, 2), and the contacts (n, 2).

    Newton's method with a trust region.
    """
    count = len(points)
    best, trust = np.full(count, -np.inf), np.full(count, spacing)
    best_shift, step = shift.copy(), np.zeros((count, 2))
    gradient, hessian = np.zeros((count, 2)), np.zeros((count, 2, 2))
    active = np.arange(count)  # indices that still improve
    for _ in range(MAX_NEWTON_STEPS):
        trial = best_shift[active] + step[active]
        length = np.linalg.norm(trial, axis=-1)
        trial *= np.minimum(1.0, MAX_CONTACT_RADIUS_SHARE * radius / np.maximum(length, 1e-300))[:, None]
        contacts = points[active] + trial
        height, gradient_terrain, hessian_terrain = terrain.height_gradient_and_hessian(contacts[:, 0], contacts[:, 1])
        cap = np.sqrt(radius**2 - (trial**2).sum(axis=-1))
        height = height + cap
        improved = height > best[active]
        trust[active[~improved]] *= 0.25
        improved_indices, trial, cap = active[improved], trial[improved], cap[improved, None]
        best[improved_indices], best_shift[improved_indices] = height[improved], trial
        gradient[improved_indices] = gradient_terrain[improved] - trial / cap
        outer = trial[:, :, None] * trial[:, None, :]
        hessian[improved_indices] = hessian_terrain[improved] - np.eye(2) / cap[..., None] - outer / cap[..., None] ** 3
        step[active] = _ascent_step(gradient[active], hessian[active], trust[active])
        predicted_gain = (gradient[active] * step[active]).sum(axis=-1)
        active = active[predicted_gain > 1e-15 * radius]
        if not len(active):
            break
    return best, points + best_shift


def _ascent_step(gradient: Array, hessian: Array, trust: Array) -> Array:
    """Return Newton steps (n, 2) where the Hessian is negative definite, else gradient steps; at most `trust` (n,)."""
    a, b, c = hessian[:, 0, 0], hessian[:, 0, 1], hessian[:, 1, 1]
    determinant = a * c - b * b
    is_concave = (a < 0.0) & (determinant > 0.0)
    determinant = np.where(is_concave, determinant, 1.0)
    newton = np.stack([b * gradient[:, 1] - c * gradient[:, 0], b * gradient[:, 0] - a * gradient[:, 1]], axis=-1)
    step = np.where(is_concave[:, None], newton / determinant[:, None], gradient)
    scale: Array = trust / np.maximum(np.linalg.norm(step, axis=-1), 1e-300)
    scale = np.where(is_concave, np.minimum(1.0, scale), scale)
    return step * scale[:, None]
