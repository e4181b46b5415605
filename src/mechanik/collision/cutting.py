"""Triangles cut by planes."""

from __future__ import annotations

import numpy as np

from mechanik.spatial.array import Array


def cut(triangles: Array, normal: Array, level: float) -> tuple[Array, Array]:
    """What is below and what is above the plane normal . x = level, of triangles (T, 3, 3); each is (., 3, 3).

    Triangles across the plane are cut into three, which are as large together. One that only touches it is on the side
    where the rest of it is, and one within it is below.
    """
    high = triangles @ normal - level  # (T, 3)
    is_above, is_below = high > 0, high < 0
    crosses = is_above.any(axis=1) & is_below.any(axis=1)
    whole_above = is_above.any(axis=1) & ~crosses
    below, above = [triangles[~crosses & ~whole_above]], [triangles[whole_above]]
    if crosses.any():
        some, heights = triangles[crosses], high[crosses]
        # turned so that the first corner is alone on its side; a corner in the plane counts to the other side
        one_up = np.count_nonzero(heights > 0, axis=1) == 1
        alone = heights.argmax(axis=1) * one_up + heights.argmin(axis=1) * ~one_up
        order = (alone[:, None] + np.arange(3)) % 3
        some = np.take_along_axis(some, order[..., None], axis=1)
        heights = np.take_along_axis(heights, order, axis=1)
        a, b, c = some[:, 0], some[:, 1], some[:, 2]
        ha, hb, hc = heights.T[:, :, None]
        ab, ac = a + (b - a) * (ha / (ha - hb)), a + (c - a) * (ha / (ha - hc))
        tip = np.stack([a, ab, ac], axis=1)
        rest = np.concatenate([np.stack([ab, b, c], axis=1), np.stack([ab, c, ac], axis=1)])
        up = ha[:, 0] > 0
        above += [tip[up], rest[np.tile(~up, 2)]]
        below += [tip[~up], rest[np.tile(up, 2)]]
    return np.concatenate(below), np.concatenate(above)


def areas(triangles: Array) -> Array:
    return 0.5 * np.linalg.norm(np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]), axis=1)


def spread(triangles: Array, count: int, seed: int = 0) -> Array:
    """Points (count, 3) all over the triangles, as many as their areas ask for; the same each time."""
    rng = np.random.default_rng(seed)
    sizes = areas(triangles)
    chosen = triangles[rng.choice(len(triangles), count, p=sizes / sizes.sum())]
    u, v = np.sort(rng.random((2, count)), axis=0)
    return chosen[:, 0] * u[:, None] + chosen[:, 1] * (v - u)[:, None] + chosen[:, 2] * (1 - v)[:, None]
