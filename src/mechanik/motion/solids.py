"""Simple bodies as triangles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanik.mechanism.shapes import Box, Capsule, Cylinder, Shape, Sphere
from mechanik.spatial.array import Array

AROUND = 24
"""Corners of a circle."""
RINGS = 8
"""From the equator of a ball to its pole."""


@dataclass(frozen=True, slots=True, eq=False)
class Triangles:
    """
    Attributes:
        points: (V, 3), m.
        normals: (V, 3), unit, outwards.
        corners: (T, 3), numbers of points, counter-clockwise as seen from outside.
    """

    points: Array
    normals: Array
    corners: npt.NDArray[np.uint32]


def triangles(shape: Shape) -> Triangles | None:
    """In the shape's frame; None for meshes, and for bodies without a size."""
    if isinstance(shape, Box):
        return _box(np.array(shape.size, dtype=np.float64)) if min(shape.size) > 0 else None
    if isinstance(shape, Sphere):
        return _turned(*_capsule_outline(shape.radius, 0.0)) if shape.radius > 0 else None
    if isinstance(shape, Cylinder):
        flat = shape.radius > 0 and shape.length > 0
        return _turned(*_cylinder_outline(shape.radius, 0.5 * shape.length)) if flat else None
    if isinstance(shape, Capsule):
        return _turned(*_capsule_outline(shape.radius, 0.5 * shape.length)) if shape.radius > 0 else None
    return None


def _box(size: Array) -> Triangles:
    points: list[Array] = []
    normals: list[Array] = []
    corners: list[list[int]] = []
    for axis in range(3):
        for side in (-1.0, 1.0):
            normal = side * np.eye(3)[axis]
            u, v = np.eye(3)[(axis + 1) % 3], side * np.eye(3)[(axis + 2) % 3]
            first = len(points)
            points += [0.5 * size * (normal + a * u + b * v) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
            normals += [normal] * 4
            corners += [[first, first + 1, first + 2], [first, first + 2, first + 3]]
    return Triangles(np.array(points), np.array(normals), np.array(corners, dtype=np.uint32))


def _cylinder_outline(radius: float, half: float) -> tuple[Array, Array]:
    """From the lower pole to the upper: (radius, z), and normals (outwards, z); edges stand twice."""
    outline = [(0.0, -half), (radius, -half), (radius, -half), (radius, half), (radius, half), (0.0, half)]
    normals = [(0, -1), (0, -1), (1, 0), (1, 0), (0, 1), (0, 1)]
    return np.array(outline), np.array(normals, dtype=np.float64)


def _capsule_outline(radius: float, half: float) -> tuple[Array, Array]:
    """As for the cylinder; with no straight part it is a ball."""
    angles = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 2 * RINGS + 1)
    lower, upper = angles[: RINGS + 1], angles[RINGS if half > 0 else RINGS + 1 :]
    turns = np.concatenate([lower, upper])
    heights = np.concatenate([np.full(len(lower), -half), np.full(len(upper), half)])
    normals = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    return np.stack([radius * normals[:, 0], radius * normals[:, 1] + heights], axis=1), normals


def _turned(outline: Array, outwards: Array) -> Triangles:
    """An outline (K, 2) turned once about z."""
    angles = np.linspace(0.0, 2.0 * np.pi, AROUND, endpoint=False)
    around = np.stack([np.cos(angles), np.sin(angles), np.zeros(AROUND)], axis=1)
    up = np.array([0.0, 0.0, 1.0])

    def ring(two: Array) -> Array:
        return (two[:, None, :1] * around + two[:, None, 1:] * up).reshape(-1, 3)

    k, a = np.meshgrid(np.arange(len(outline) - 1), np.arange(AROUND), indexing="ij")
    low, high = k * AROUND + a, (k + 1) * AROUND + a
    low_next, high_next = k * AROUND + (a + 1) % AROUND, (k + 1) * AROUND + (a + 1) % AROUND
    corners = np.stack([low, low_next, high_next, low, high_next, high], axis=-1).reshape(-1, 3)
    points = ring(outline)
    sides = points[corners]
    areas = np.linalg.norm(np.cross(sides[:, 1] - sides[:, 0], sides[:, 2] - sides[:, 0]), axis=1)
    kept = corners[areas > 1e-12 * np.square(np.abs(outline).max())]  # none at the poles
    return Triangles(points, ring(outwards), kept.astype(np.uint32))
