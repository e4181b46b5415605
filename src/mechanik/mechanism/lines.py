"""Lines in space, each a point and a unit direction: how they lie to each other."""

from __future__ import annotations

import math

import numpy as np

from mechanik.spatial.array import Array
from mechanik.spatial.vector import cross, length


def angle_between(a: Array, b: Array) -> float:
    """Between the lines of two unit directions (3,), which may point either way: rad, 0 to pi/2."""
    return math.atan2(float(length(cross(a, b))), abs(float(a @ b)))


def foot(point: Array, on: Array, direction: Array) -> Array:
    """The point of the line through `on` that is nearest to `point`."""
    return on + direction * (direction @ (point - on))


def common_normal(p: Array, a: Array, q: Array, b: Array) -> tuple[Array, Array]:
    """The points of the lines (p, a) and (q, b) that are nearest to each other; of parallel lines, one such pair.

    Lines at less than 1e-5 rad count as parallel.
    """
    normal = cross(a, b)
    squared = float(normal @ normal)
    if squared < 1e-10:
        return p, foot(p, q, b)
    apart = q - p
    return p + a * (cross(apart, b) @ normal / squared), q + b * (cross(apart, a) @ normal / squared)


def distance(p: Array, a: Array, q: Array, b: Array) -> float:
    """The shortest distance between two lines."""
    one, other = common_normal(p, a, q, b)
    return float(length(other - one))


def meeting_point(points: Array, directions: Array) -> tuple[Array, float]:
    """The point with the least sum of squared distances from lines (m, 3), and its largest distance from one.

    Of lines that are all parallel it is the mean of their nearest points, and the distance is half their spread or
    more.
    """
    off = np.eye(3) - directions[:, :, None] * directions[:, None, :]  # takes the part across each line
    # from a point among them, so that lines far from the origin lose nothing
    centre = points.mean(axis=0)
    across = np.einsum("kij,kj->ki", off, points - centre)
    sizes, turn = np.linalg.eigh(off.sum(axis=0))
    inverse = np.where(sizes > 1e-10, 1.0 / np.maximum(sizes, 1e-10), 0.0)
    meeting = centre + turn @ (inverse * (turn.T @ across.sum(axis=0)))
    miss = length(np.einsum("kij,kj->ki", off, meeting - points))
    return meeting, float(miss.max())
