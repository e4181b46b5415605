"""The surface on which the centre of a ball rolls over ground: where it is highest of all places that touch.

The centre stands above (x, y) at the largest h(x + a, y + b) + sqrt(r^2 - a^2 - b^2) of all shifts (a, b) that are not
longer than the radius. The best shift is looked for on a lattice, and then found by Newton's method. Where two are so
nearly as good that the lattice cannot tell, the other may be taken, with a height that is that little lower.
"""

from __future__ import annotations

import math
from functools import lru_cache
from operator import index

import numpy as np

from mechanik.errors import ObjectiveError
from mechanik.mechanism.door import as_number
from mechanik.objectives.terrain import Terrain
from mechanik.spatial.array import Array

LATTICE = 16, 32
"""Shifts to look at along a cell of the ground, at least and at most."""
SHIFTS = 16, 48
"""Shifts to look at along the radius: at least, unless it is a small share of a cell; and at most."""
RIM = 1.0 - 1e-12
"""How near to its rim a ball may touch, of the radius: there it is as steep as a million to one."""
STEPS = 30
"""Of Newton's method, at most; four are usual."""


def rolling_surface(ground: Terrain, radius: float, finer: int) -> Terrain:
    """See `Terrain.raised_by`."""
    r = as_number(radius, "radius of a ball")
    if r < 0.0:
        raise ObjectiveError(f"radius of a ball is {r:g} m, and must not be below zero")
    try:
        parts = index(finer)
    except TypeError:
        parts = 0
    if parts < 1:
        raise ObjectiveError(f"finer is a whole number, 1 or more, not {finer!r}")
    return ground if r == 0.0 else _rolling_surface(ground, r, parts)


@lru_cache(maxsize=16)
def _rolling_surface(ground: Terrain, radius: float, finer: int) -> Terrain:
    """Kept, since the wheels of a rover ask for the same one, and solvers then keep its heights once."""
    beyond = math.ceil(radius / ground.cell) + 1  # farther out the ground is flat for as far as the ball feels
    counts = [finer * (count - 1 + 2 * beyond) + 1 for count in ground.heights.shape]
    cell = ground.cell / finer
    origin: Array = ground.origin - beyond * ground.cell
    shift, spacing = _best_on_lattice(ground, radius, finer, origin, (counts[0], counts[1]))
    rows, columns = np.indices(counts, dtype=np.float64)
    places = origin + cell * np.stack([columns, rows], axis=-1)
    heights, touched = _climb(ground, radius, places.reshape(-1, 2), shift, spacing)
    heights, touched = heights.reshape(counts), touched.reshape(places.shape)
    for axis, way in ((0, 1), (0, -1), (1, 1), (1, -1)):  # where the ball touches next door it may touch here too
        beside = np.roll(touched, way, axis)
        left = radius**2 - ((beside - places) ** 2).sum(axis=-1)
        there = ground.height(beside[..., 0], beside[..., 1]) + np.sqrt(np.maximum(left, 0.0))
        some = (left > 0.0) & (there > heights + 1e-15 * radius)
        heights[some], touched[some] = _climb(ground, radius, places[some], (beside - places)[some], spacing)
    return Terrain(heights, cell, origin)


def _best_on_lattice(
    ground: Terrain, radius: float, finer: int, origin: Array, counts: tuple[int, int]
) -> tuple[Array, float]:
    """The best shifts (n, 2), m, of a lattice, row by row of the new heights; and how far apart those tried are."""
    wanted = min(max(SHIFTS[0] * ground.cell / radius, LATTICE[0]), LATTICE[1])
    along = math.ceil(wanted / finer)  # steps of the lattice along a cell of the new surface
    step = ground.cell / finer / along
    apart = max(1, math.ceil(radius / step / SHIFTS[1]))
    reach = int(radius / step) // apart * apart
    x: Array = origin[0] + step * np.arange(-reach, along * (counts[1] - 1) + reach + 1)
    y: Array = origin[1] + step * np.arange(-reach, along * (counts[0] - 1) + reach + 1)
    lattice = ground.heights_on_lattice(x, y)
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
    """The largest heights (n,) above places (n, 2) near some shifts (n, 2), and where the ball touches (n, 2).

    By Newton's method, each step in a region of trust.
    """
    count = len(places)
    best, trust = np.full(count, -np.inf), np.full(count, spacing)
    at, step = shift.copy(), np.zeros((count, 2))
    gradient, bend = np.zeros((count, 2)), np.zeros((count, 2, 2))
    some = np.arange(count)  # those that still rise
    for _ in range(STEPS):
        trial = at[some] + step[some]
        length = np.linalg.norm(trial, axis=-1)
        trial *= np.minimum(1.0, RIM * radius / np.maximum(length, 1e-300))[:, None]
        touched = places[some] + trial
        height, slope, curve = ground.height_slope_and_bend(touched[:, 0], touched[:, 1])
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
    """Newton's steps (n, 2) where the hill is round, else along the slope; none longer than the trust (n,)."""
    a, b, c = bend[:, 0, 0], bend[:, 0, 1], bend[:, 1, 1]
    area = a * c - b * b
    round_hill = (a < 0.0) & (area > 0.0)
    area = np.where(round_hill, area, 1.0)
    newton = np.stack([b * gradient[:, 1] - c * gradient[:, 0], b * gradient[:, 0] - a * gradient[:, 1]], axis=-1)
    step = np.where(round_hill[:, None], newton / area[:, None], gradient)
    stretch: Array = trust / np.maximum(np.linalg.norm(step, axis=-1), 1e-300)
    stretch = np.where(round_hill, np.minimum(1.0, stretch), stretch)
    return step * stretch[:, None]
