"""Smooth terrain as a height field, and its offset surface for a rolling sphere.

Offset surface: the centre of a sphere of radius r that touches the terrain h from above is at the height max over (a,
b) of h(x + a, y + b) + sqrt(r^2 - a^2 - b^2), with a^2 + b^2 <= r^2. The best shift (a, b) is searched on a lattice and
refined by Newton's method. Where two shifts are nearly equally good, the lattice search may choose the one with the
slightly lower height.
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
from mechanik.value_object import ValueObject

CATMULL_ROM = 0.5 * np.array([[0, -1, 2, -1], [2, 0, -5, 3], [0, 1, 4, -3], [0, 0, -1, 1]])
"""(4, 4): for each of four consecutive heights the coefficients of 1, t, t^2, t^3; t runs from 0 at the second height
to 1 at the third."""


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Terrain(ValueObject):
    """Terrain given by heights at the corners of square cells, interpolated by Catmull-Rom cubics (1974).

    The surface has continuous slopes. Beyond the edge of the grid the outermost heights are repeated, so farther than
    one cell beyond the edge the height is constant in the outward direction.

    Args:
        heights: (ny, nx), m, at least 2 by 2; heights[j, i] is at x = origin[0] + i cell, y = origin[1] + j cell.
        cell: side of a cell, m.
        origin: (2,), x and y of the first height, m.

    Raises:
        ShapeError: the heights are not (ny, nx) numbers, or the origin is not two numbers.
        ObjectiveError: a height is not finite, or the cell is not above zero.
        NotFinite: the cell or the origin is not finite.

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
            raise ObjectiveError(f"cell of a terrain is {cell_size:g} m; it must be above zero")
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
        """Return the offset surface: the surface on which the centre of a sphere moves while it rolls on the terrain.

        The heights of the offset surface are exact (1e-12 m) at its grid points, also where the sphere touches the
        terrain at two points, unless the search chooses the slightly lower of two nearly equal heights. Between grid
        points the surface is interpolated as any terrain. So a kink, where the contact jumps, is rounded within two
        cells of the offset surface. For a kink between slopes of -1 and 1 the error is at most 0.375 of the side of
        such a cell; with four subdivisions this is about a tenth of a cell of the terrain.

        Args:
            radius: m, not below zero.
            subdivisions: number of cells of the offset surface along the side of a cell of the terrain, 1 or more.

        Raises:
            ObjectiveError: an argument is out of range.
        """

        return offset_terrain(self, radius, subdivisions)

    def height_and_gradient(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Array]:
        """Return the height (...), m, and its derivatives along x and along y, at x and y (...), m."""
        height, gradient, _ = self.height_gradient_and_hessian(x, y)
        return height, gradient[..., 0], gradient[..., 1]

    def height_gradient_and_hessian(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Array]:
        """Return height (...), m, gradient (..., 2) and Hessian (..., 2, 2), 1/m; the Hessian may jump at cell edges.

        Args:
            x, y: (...), m, horizontal coordinates; they are broadcast against each other.
        """
        px, py = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
        ny, nx = self.heights.shape
        i, weights_x = self._interpolation_weights(px, self.origin[0], nx)
        j, weights_y = self._interpolation_weights(py, self.origin[1], ny)
        neighbours = self.heights[j[..., :, None], i[..., None, :]]  # (..., 4, 4), first axis along y
        # (..., 3, 3), indexed by the order of the derivative along y and along x
        derivatives = weights_y @ neighbours @ np.swapaxes(weights_x, -1, -2)
        gradient = np.stack([derivatives[..., 0, 1], derivatives[..., 1, 0]], axis=-1) / self.cell
        xx, xy, yy = derivatives[..., 0, 2], derivatives[..., 1, 1], derivatives[..., 2, 0]
        hessian = np.stack([np.stack([xx, xy], axis=-1), np.stack([xy, yy], axis=-1)], axis=-2) / self.cell**2
        return derivatives[..., 0, 0], gradient, hessian

    def heights_on_grid(self, x: Array, y: Array) -> Array:
        """Return heights (len(y), len(x)), m, on the grid of the coordinates x and y, m; faster than `height`."""
        ny, nx = self.heights.shape
        matrices: list[Array] = []
        for coordinates, origin, count in ((y, self.origin[1], ny), (x, self.origin[0], nx)):
            indices, weights = self._interpolation_weights(coordinates, origin, count)
            matrix = np.zeros((len(coordinates), count))
            np.add.at(matrix, (np.arange(len(coordinates))[:, None], indices), weights[:, 0])
            matrices.append(matrix)
        return matrices[0] @ self.heights @ matrices[1].T

    def _interpolation_weights(self, coordinates: Array, origin: float, count: int) -> tuple[np.ndarray, Array]:
        """Return the indices (..., 4) of the heights used at coordinates (...), and their weights (..., 3, 4).

        The three rows of weights give the value and its first and second derivative by a coordinate in cells.
        """
        u = np.clip((coordinates - origin) / self.cell, -2.0, count + 1.0)  # the terrain is constant farther out
        k = np.floor(u)
        t = u - k
        indices = np.clip(k[..., None].astype(np.int64) + np.arange(-1, 3), 0, count - 1)
        ones, zeros = np.ones_like(t), np.zeros_like(t)
        powers = [[ones, t, t**2, t**3], [zeros, ones, 2 * t, 3 * t**2], [zeros, zeros, 2 * ones, 6 * t]]
        return indices, np.stack([np.stack(row, axis=-1) for row in powers], axis=-2) @ CATMULL_ROM.T


def _as_float_array(values: ArrayLike, message: str) -> Array:
    """Return a float64 copy.

    Raises:
        ShapeError: the values are not real numbers. NumPy alone would convert text and truncate complex numbers.
    """
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
            invalid_value = coordinate[~np.isfinite(coordinate)].flat[0]
            raise NotFinite(f"{name} of a point on a terrain is {invalid_value}; it must be finite")
    try:
        bx, by = np.broadcast_arrays(px, py)
    except ValueError:
        raise ShapeError(
            f"x and y of points on a terrain have shapes that do not broadcast: {px.shape} and {py.shape}"
        ) from None
    return bx, by


LATTICE_POINTS_PER_CELL = 16, 32
"""Minimum and maximum number of lattice points along a cell of the terrain, before the number is rounded up to a
multiple of the subdivisions."""
SHIFTS_PER_RADIUS = 16, 48
"""Minimum and maximum number of shifts along the radius; radii below half a cell may have fewer than the minimum."""
MAX_CONTACT_RADIUS_RATIO = 1.0 - 1e-12
"""Largest distance of the contact from the sphere's vertical axis, as a fraction of the radius. At this distance the
slope of the sphere is about 700 000."""
MAX_NEWTON_STEPS = 30
"""Largest number of iterations of Newton's method, including the evaluation at the start; four are typical."""


def offset_terrain(terrain: Terrain, radius: float, subdivisions: int) -> Terrain:
    """Return the offset surface of a terrain; see `Terrain.offset_by`."""
    sphere_radius = as_number(radius, "radius of a sphere on a terrain")
    if sphere_radius < 0.0:
        raise ObjectiveError(f"radius of a sphere on a terrain is {sphere_radius:g} m; it must not be negative")
    try:
        subdivision_count = index(subdivisions)
    except TypeError:
        subdivision_count = 0
    if subdivision_count < 1:
        raise ObjectiveError(f"subdivisions must be an integer of 1 or more, not {subdivisions!r}")
    return terrain if sphere_radius == 0.0 else _offset_terrain(terrain, sphere_radius, subdivision_count)


@lru_cache(maxsize=16)
def _offset_terrain(terrain: Terrain, radius: float, subdivisions: int) -> Terrain:
    """Return the offset surface; cached, so that equal wheels share one terrain and solvers store its heights once."""
    # beyond this margin the sphere touches repeated heights only
    margin_cell_count = math.ceil(radius / terrain.cell) + 1
    counts = [subdivisions * (count - 1 + 2 * margin_cell_count) + 1 for count in terrain.heights.shape]
    cell = terrain.cell / subdivisions
    origin: Array = terrain.origin - margin_cell_count * terrain.cell
    shifts, spacing = _search_lattice(terrain, radius, subdivisions, origin, (counts[0], counts[1]))
    rows, columns = np.indices(counts, dtype=np.float64)
    points = origin + cell * np.stack([columns, rows], axis=-1)
    heights, contacts = _refine_shifts(terrain, radius, points.reshape(-1, 2), shifts, spacing)
    heights, contacts = heights.reshape(counts), contacts.reshape(points.shape)
    # the contact of a neighbouring grid point may give a larger height than the contact found here
    for axis, direction in ((0, 1), (0, -1), (1, 1), (1, -1)):
        neighbour_contacts = np.roll(contacts, direction, axis)
        rise_squared = radius**2 - ((neighbour_contacts - points) ** 2).sum(axis=-1)
        neighbour_heights = terrain.height(neighbour_contacts[..., 0], neighbour_contacts[..., 1]) + np.sqrt(
            np.maximum(rise_squared, 0.0)
        )
        is_better = (rise_squared > 0.0) & (neighbour_heights > heights + 1e-15 * radius)
        heights[is_better], contacts[is_better] = _refine_shifts(
            terrain, radius, points[is_better], (neighbour_contacts - points)[is_better], spacing
        )
    return Terrain(heights, cell, origin)


def _search_lattice(
    terrain: Terrain, radius: float, subdivisions: int, origin: Array, counts: tuple[int, int]
) -> tuple[Array, float]:
    """Return the best shifts (n, 2) on the lattice for all points of the offset surface, and the shift spacing, m."""
    points_per_cell = min(
        max(SHIFTS_PER_RADIUS[0] * terrain.cell / radius, LATTICE_POINTS_PER_CELL[0]), LATTICE_POINTS_PER_CELL[1]
    )
    steps_per_cell = math.ceil(points_per_cell / subdivisions)  # lattice steps along a cell of the offset surface
    step = terrain.cell / subdivisions / steps_per_cell
    stride = max(1, math.ceil(radius / step / SHIFTS_PER_RADIUS[1]))
    max_shift_steps = int(radius / step) // stride * stride
    x: Array = origin[0] + step * np.arange(-max_shift_steps, steps_per_cell * (counts[1] - 1) + max_shift_steps + 1)
    y: Array = origin[1] + step * np.arange(-max_shift_steps, steps_per_cell * (counts[0] - 1) + max_shift_steps + 1)
    lattice_heights = terrain.heights_on_grid(x, y)
    shifts = [
        (i, j)
        for i in range(-max_shift_steps, max_shift_steps + 1, stride)
        for j in range(-max_shift_steps, max_shift_steps + 1, stride)
    ]
    shifts = [(i, j) for i, j in shifts if math.hypot(i, j) * step <= radius]
    best_heights, best_index = np.full(counts, -np.inf), np.zeros(counts, dtype=np.int64)
    for k, (i, j) in enumerate(shifts):
        rows = slice(max_shift_steps + j, max_shift_steps + j + steps_per_cell * (counts[0] - 1) + 1, steps_per_cell)
        columns = slice(max_shift_steps + i, max_shift_steps + i + steps_per_cell * (counts[1] - 1) + 1, steps_per_cell)
        heights = lattice_heights[rows, columns] + math.sqrt(max(radius**2 - (i * i + j * j) * step**2, 0.0))
        is_better = heights > best_heights
        np.copyto(best_heights, heights, where=is_better)
        np.copyto(best_index, k, where=is_better)
    return step * np.array(shifts, dtype=np.float64)[best_index.ravel()], stride * step


def _refine_shifts(
    terrain: Terrain, radius: float, points: Array, start_shifts: Array, spacing: float
) -> tuple[Array, Array]:
    """Return the largest heights (n,) of the sphere's centre above points (n, 2), and the contacts (n, 2).

    The search starts at the given shifts (n, 2) and uses Newton's method with a trust region, initially `spacing` (m).
    """
    count = len(points)
    best_height, trust_radius = np.full(count, -np.inf), np.full(count, spacing)
    best_shift, step = start_shifts.copy(), np.zeros((count, 2))
    gradient, hessian = np.zeros((count, 2)), np.zeros((count, 2, 2))
    active_indices = np.arange(count)  # points whose height still increases
    for _ in range(MAX_NEWTON_STEPS):
        trial_shifts = best_shift[active_indices] + step[active_indices]
        length = np.linalg.norm(trial_shifts, axis=-1)
        trial_shifts *= np.minimum(1.0, MAX_CONTACT_RADIUS_RATIO * radius / np.maximum(length, 1e-300))[:, None]
        contacts = points[active_indices] + trial_shifts
        height, gradient_terrain, hessian_terrain = terrain.height_gradient_and_hessian(contacts[:, 0], contacts[:, 1])
        rise = np.sqrt(radius**2 - (trial_shifts**2).sum(axis=-1))
        height = height + rise
        is_improved = height > best_height[active_indices]
        trust_radius[active_indices[~is_improved]] *= 0.25
        indices, trial_shifts, rise = active_indices[is_improved], trial_shifts[is_improved], rise[is_improved, None]
        best_height[indices], best_shift[indices] = height[is_improved], trial_shifts
        gradient[indices] = gradient_terrain[is_improved] - trial_shifts / rise
        outer_product = trial_shifts[:, :, None] * trial_shifts[:, None, :]
        hessian[indices] = (
            hessian_terrain[is_improved] - np.eye(2) / rise[..., None] - outer_product / rise[..., None] ** 3
        )
        step[active_indices] = _ascent_step(
            gradient[active_indices], hessian[active_indices], trust_radius[active_indices]
        )
        predicted_gain = (gradient[active_indices] * step[active_indices]).sum(axis=-1)
        active_indices = active_indices[predicted_gain > 1e-15 * radius]
        if not len(active_indices):
            break
    return best_height, points + best_shift


def _ascent_step(gradient: Array, hessian: Array, trust_radius: Array) -> Array:
    """Return Newton steps (n, 2) where the Hessian is negative definite, else steps along the gradient.

    Args:
        trust_radius: (n,), m; largest length of each step, and the length of steps along the gradient.
    """
    xx, xy, yy = hessian[:, 0, 0], hessian[:, 0, 1], hessian[:, 1, 1]
    determinant = xx * yy - xy * xy
    is_concave = (xx < 0.0) & (determinant > 0.0)
    determinant = np.where(is_concave, determinant, 1.0)
    newton_step = np.stack(
        [xy * gradient[:, 1] - yy * gradient[:, 0], xy * gradient[:, 0] - xx * gradient[:, 1]], axis=-1
    )
    step = np.where(is_concave[:, None], newton_step / determinant[:, None], gradient)
    scale: Array = trust_radius / np.maximum(np.linalg.norm(step, axis=-1), 1e-300)
    scale = np.where(is_concave, np.minimum(1.0, scale), scale)
    return step * scale[:, None]
