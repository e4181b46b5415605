"""Convex polygons in a plane, as lines to stay on one side of."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechanik.errors import NotFinite, ObjectiveError, ShapeError
from mechanik.mechanism.door import read_only
from mechanik.spatial.array import Array, ArrayLike

SAME = 1e-9
"""Points nearer to each other, or to a line (as a share of the polygon's size), are on it."""


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """A line, and where to stay: inward . (p - start) lies in `band`.

    Attributes:
        start: (3,), a point of the line, at height 0.
        inward: (2,), unit.
        band: m, or None: zero.
    """

    start: Array
    inward: Array
    band: tuple[float, float] | None


def as_polygon(points: ArrayLike, what: str) -> Array:
    """The corners (n, 2) of the convex hull of points (m, 2) or (m, 3), counter-clockwise; heights do not count."""
    try:
        given = np.array(points, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{what} is given by points (n, 2) or (n, 3), not by {points!r}") from None
    if given.ndim != 2 or given.shape[1] not in (2, 3) or not len(given):
        raise ShapeError(f"{what} is given by points (n, 2) or (n, 3), not by an array of shape {given.shape}")
    if not np.isfinite(given).all():
        raise NotFinite(f"{what} has a point that is not finite")
    return read_only(_hull(given[:, :2]))


def inset(corners: Array, margin: float, called: str) -> tuple[Side, ...]:
    """The sides of a hull, from which to stay away by `margin`; an error if that leaves no room."""
    if margin < 0.0:
        raise ObjectiveError(f"margin of {called} is {margin:g} m; it cannot be negative")
    if len(corners) < 3:
        if margin > 0.0:
            raise ObjectiveError(f"{called}: a support without area leaves no margin of {margin:g} m")
        return _line(corners[0], corners[-1])
    sides: list[Side] = []
    for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        along = (end - start) / np.linalg.norm(end - start)
        sides.append(Side(np.array([*start, 0.0]), np.array([-along[1], along[0]]), (margin, math.inf)))
    room = corners
    for side in sides:
        room = _cut(room, side)
    if not len(room):
        raise ObjectiveError(f"{called}: a margin of {margin:g} m leaves no room inside the polygon; make it smaller")
    return tuple(sides)


def _line(start: Array, end: Array) -> tuple[Side, ...]:
    """A piece of a line, or a point: on it, and not past its ends."""
    length = float(np.linalg.norm(end - start))
    along = (end - start) / length if length > 0.0 else np.array([1.0, 0.0])
    p = np.array([*start, 0.0])
    band = (0.0, length) if length > 0.0 else None
    return Side(p, along, band), Side(p, np.array([-along[1], along[0]]), None)


def _hull(points: Array) -> Array:
    """Andrew's monotone chain, which leaves out what lies on a side."""
    scale = float(np.abs(points - points[0]).max())
    ordered = points[np.lexsort((points[:, 1], points[:, 0]))]

    def half(run: Array) -> list[Array]:
        kept: list[Array] = []
        for point in run:
            while len(kept) > 1 and _turn(kept[-2], kept[-1], point) <= SAME * scale * scale:
                kept.pop()
            if not kept or np.abs(point - kept[-1]).max() > SAME * scale:
                kept.append(point)
        return kept

    there, back = half(ordered), half(ordered[::-1])
    if len(there) < 2:
        return np.array(there)
    return np.array(there[:-1] + back[:-1])


def _turn(a: Array, b: Array, c: Array) -> float:
    """Above zero where the way from a over b to c turns left."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def _cut(corners: Array, side: Side) -> Array:
    """What of a convex polygon lies on the right side of a line."""
    assert side.band is not None
    heights = (corners - side.start[:2]) @ side.inward - side.band[0]
    kept: list[Array] = []
    for k, (corner, height) in enumerate(zip(corners, heights.tolist(), strict=True)):
        after = (k + 1) % len(corners)
        if height >= 0.0:
            kept.append(corner)
        if height * heights[after] < 0.0:
            kept.append(corner + height / (height - heights[after]) * (corners[after] - corner))
    return np.array(kept).reshape(-1, 2)
