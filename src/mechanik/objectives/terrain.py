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
        """Return the height (...), m, at x and y (...), m."""
        return self.height_and_gradient(*_places(x, y))[0]

    def normal(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Return the upward unit normals (..., 3) at x and y (...), m."""
        _, by_x, by_y = self.height_and_gradient(*_places(x, y))
        up = np.stack([-by_x, -by_y, np.ones_like(by_x)], axis=-1)
        return up / np.linalg.norm(up, axis=-1, keepdims=True)

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
        height, slope, _ = self.height_gradient_and_hessian(x, y)
        return height, slope[..., 0], slope[..., 1]

    def height_gradient_and_hessian(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Array]:
        """Return height (...), gradient (..., 2) and Hessian (..., 2, 2), 1/m; the Hessian jumps at cell edges."""
        px, py = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
        ny, nx = self.heights.shape
        i, across = self._along(px, self.origin[0], nx)
        j, along = self._along(py, self.origin[1], ny)
        near = self.heights[j[..., :, None], i[..., None, :]]  # (..., 4, 4), first axis along y
        all_of_it = along @ near @ np.swapaxes(across, -1, -2)  # (..., 3, 3), orders of the derivatives by y and by x
        slope = np.stack([all_of_it[..., 0, 1], all_of_it[..., 1, 0]], axis=-1) / self.cell
        xx, xy, yy = all_of_it[..., 0, 2], all_of_it[..., 1, 1], all_of_it[..., 2, 0]
        bend = np.stack([np.stack([xx, xy], axis=-1), np.stack([xy, yy], axis=-1)], axis=-2) / self.cell**2
        return all_of_it[..., 0, 0], slope, bend

    def heights_on_grid(self, x: Array, y: Array) -> Array:
        """Return heights (b, a), m, on the grid of x (a,) and y (b,); faster than `height`."""
        ny, nx = self.heights.shape
        shares: list[Array] = []
        for places, origin, count in ((y, self.origin[1], ny), (x, self.origin[0], nx)):
            which, how_much = self._along(places, origin, count)
            share = np.zeros((len(places), count))
            np.add.at(share, (np.arange(len(places))[:, None], which), how_much[:, 0])
            shares.append(share)
        return shares[0] @ self.heights @ shares[1].T

    def _along(self, places: Array, origin: float, count: int) -> tuple[np.ndarray, Array]:
        """Return the indices (..., 4) of the heights that count at coordinates (...), and their weights (..., 3, 4).

        The three rows of weights are for the value and its first and second derivative, in cells.
        """
        u = np.clip((places - origin) / self.cell, -2.0, count + 1.0)  # the terrain is constant farther out
        k = np.floor(u)
        t = u - k
        which = np.clip(k[..., None].astype(np.int64) + np.arange(-1, 3), 0, count - 1)
        one, none = np.ones_like(t), np.zeros_like(t)
        powers = [[one, t, t**2, t**3], [none, one, 2 * t, 3 * t**2], [none, none, 2 * one, 6 * t]]
        return which, np.stack([np.stack(some, axis=-1) for some in powers], axis=-2) @ CATMULL_ROM.T


def _numbers(given: ArrayLike, what: str) -> Array:
    """Return a float64 copy; text and complex numbers are refused, which NumPy would convert or truncate."""
    try:
        found = np.asarray(given)
        if found.dtype.kind in "USc":
            raise ShapeError(what)
        return np.array(found, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(what) from None


def _places(x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """Return x and y as finite arrays of one shape."""
    px, py = (_numbers(one, f"a place on a terrain is x and y, numbers in m; not {one!r}") for one in (x, y))
    for name, one in (("x", px), ("y", py)):
        if not np.isfinite(one).all():
            raise NotFinite(f"{name} of a place on a terrain is {one[~np.isfinite(one)].flat[0]}; it must be finite")
    try:
        bx, by = np.broadcast_arrays(px, py)
    except ValueError:
        raise ShapeError(f"x and y of places on a terrain do not go together: {px.shape} and {py.shape}") from None
    return bx, by


LATTICE = 16, 32
"""Smallest and largest number of lattice points along a cell of the terrain."""
SHIFTS = 16, 48
"""Smallest and largest number of shifts along the radius; the smallest does not hold for radii far below a cell."""
RIM = 1.0 - 1e-12
"""Largest distance of the contact from the sphere's axis, as a share of the radius; there the slope is about a
million."""
STEPS = 30
"""Largest number of Newton steps; four are typical."""


def offset_terrain(ground: Terrain, radius: float, subdivisions: int) -> Terrain:
    """Return the offset surface of a terrain; see `Terrain.offset_by`."""
    r = as_number(radius, "radius of a ball")
    if r < 0.0:
        raise ObjectiveError(f"radius of a ball is {r:g} m, and must not be below zero")
    try:
        parts = index(subdivisions)
    except TypeError:
        parts = 0
    if parts < 1:
        raise ObjectiveError(f"finer is a whole number, 1 or more, not {subdivisions!r}")
    return ground if r == 0.0 else _offset_terrain(ground, r, parts)


@lru_cache(maxsize=16)
def _offset_terrain(ground: Terrain, radius: float, finer: int) -> Terrain:
    """Compute the offset surface; cached, so that equal wheels share one terrain and solvers store its heights once."""
    beyond = math.ceil(radius / ground.cell) + 1  # farther out the terrain is flat within the sphere's reach
    counts = [finer * (count - 1 + 2 * beyond) + 1 for count in ground.heights.shape]
    cell = ground.cell / finer
    origin: Array = ground.origin - beyond * ground.cell
    shift, spacing = _best_on_lattice(ground, radius, finer, origin, (counts[0], counts[1]))
    rows, columns = np.indices(counts, dtype=np.float64)
    places = origin + cell * np.stack([columns, rows], axis=-1)
    heights, touched = _climb(ground, radius, places.reshape(-1, 2), shift, spacing)
    heights, touched = heights.reshape(counts), touched.reshape(places.shape)
    for axis, way in ((0, 1), (0, -1), (1, 1), (1, -1)):  # the contact of a neighbour may be better here too
        beside = np.roll(touched, way, axis)
        left = radius**2 - ((beside - places) ** 2).sum(axis=-1)
        there = ground.height(beside[..., 0], beside[..., 1]) + np.sqrt(np.maximum(left, 0.0))
        some = (left > 0.0) & (there > heights + 1e-15 * radius)
        heights[some], touched[some] = _climb(ground, radius, places[some], (beside - places)[some], spacing)
    return Terrain(heights, cell, origin)


def _best_on_lattice(
    ground: Terrain, radius: float, finer: int, origin: Array, counts: tuple[int, int]
) -> tuple[Array, float]:
    """Return the best lattice shifts (n, 2), m, for the new heights row by row, and the spacing of the shifts, m."""
    wanted = min(max(SHIFTS[0] * ground.cell / radius, LATTICE[0]), LATTICE[1])
    along = math.ceil(wanted / finer)  # lattice steps along a cell of the new surface
    step = ground.cell / finer / along
    apart = max(1, math.ceil(radius / step / SHIFTS[1]))
    reach = int(radius / step) // apart * apart
    x: Array = origin[0] + step * np.arange(-reach, along * (counts[1] - 1) + reach + 1)
    y: Array = origin[1] + step * np.arange(-reach, along * (counts[0] - 1) + reach + 1)
    lattice = ground.heights_on_grid(x, y)
    tried = [(i, j) for i in range(-reach, reach + 1, apart) for j in range(-reach, reach + 1, apart)]
    tried = [(i, j) for i, j in tried if math.hypot(i, j) * step <= radius]
    best, which = np.full(counts, -np.inf), np.zeros(counts, dtype=np.int64)
    for k, (i, j) in enumerate(tried):
        rows = slice(reach + j, reach + j + along * (counts[0] - 1) + 1, along)
        columns = slice(reach + i, reach + i + along * (counts[1] - 1) + 1, along)
        height = lattice[rows, columns] + math.sqrt(max(radius**2 - (i * i + j * j) * step**2, 0.0))
        better = height > best
        np.copyto(best, height, where=better)
        np.copyto(which, k, where=better)
    return step * np.array(tried, dtype=np.float64)[which.ravel()], apart * step


def _climb(ground: Terrain, radius: float, places: Array, shift: Array, spacing: float) -> tuple[Array, Array]:
    """Return the largest heights (n,) above points (n, 2) near the given shifts (n, 2), and the contacts (n, 2).

    Newton's method with a trust region.
    """
    count = len(places)
    best, trust = np.full(count, -np.inf), np.full(count, spacing)
    at, step = shift.copy(), np.zeros((count, 2))
    gradient, bend = np.zeros((count, 2)), np.zeros((count, 2, 2))
    some = np.arange(count)  # indices that still improve
    for _ in range(STEPS):
        trial = at[some] + step[some]
        length = np.linalg.norm(trial, axis=-1)
        trial *= np.minimum(1.0, RIM * radius / np.maximum(length, 1e-300))[:, None]
        touched = places[some] + trial
        height, slope, curve = ground.height_gradient_and_hessian(touched[:, 0], touched[:, 1])
        cap = np.sqrt(radius**2 - (trial**2).sum(axis=-1))
        height = height + cap
        rises = height > best[some]
        trust[some[~rises]] *= 0.25
        now, trial, cap = some[rises], trial[rises], cap[rises, None]
        best[now], at[now] = height[rises], trial
        gradient[now] = slope[rises] - trial / cap
        outer = trial[:, :, None] * trial[:, None, :]
        bend[now] = curve[rises] - np.eye(2) / cap[..., None] - outer / cap[..., None] ** 3
        step[some] = _uphill(gradient[some], bend[some], trust[some])
        promise = (gradient[some] * step[some]).sum(axis=-1)
        some = some[promise > 1e-15 * radius]
        if not len(some):
            break
    return best, places + at


def _uphill(gradient: Array, bend: Array, trust: Array) -> Array:
    """Return Newton steps (n, 2) where the Hessian is negative definite, else gradient steps; at most `trust` (n,)."""
    a, b, c = bend[:, 0, 0], bend[:, 0, 1], bend[:, 1, 1]
    area = a * c - b * b
    round_hill = (a < 0.0) & (area > 0.0)
    area = np.where(round_hill, area, 1.0)
    newton = np.stack([b * gradient[:, 1] - c * gradient[:, 0], b * gradient[:, 0] - a * gradient[:, 1]], axis=-1)
    step = np.where(round_hill[:, None], newton / area[:, None], gradient)
    stretch: Array = trust / np.maximum(np.linalg.norm(step, axis=-1), 1e-300)
    stretch = np.where(round_hill, np.minimum(1.0, stretch), stretch)
    return step * stretch[:, None]
