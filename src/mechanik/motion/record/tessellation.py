"""Tessellation of simple shapes into triangle meshes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanik.model.shapes import Box, Capsule, ConvexMesh, Cylinder, HalfSpace, HeightField, Shape, Sphere
from mechanik.spatial.array import Array

CIRCLE_CORNERS = 24
"""Number of corners of a circle."""
RINGS = 8
"""Number of rings from the equator of a sphere to its pole."""
HALF_SPACE_SIZE, HALF_SPACE_THICKNESS = 20.0, 0.01
"""m: edge length and thickness of the box that represents a half-space; its top face is the exact one."""


@dataclass(frozen=True, slots=True, eq=False)
class TriangleMesh:
    """Triangles with vertex normals.

    Attributes:
        points: (V, 3), m.
        normals: (V, 3), unit, outwards.
        corners: (T, 3), indices of points, counter-clockwise seen from outside.
    """

    points: Array
    normals: Array
    corners: npt.NDArray[np.uint32]


def tessellate(shape: Shape) -> TriangleMesh | None:
    """Triangle mesh of a shape, in the frame of the shape; None for mesh files and for shapes without volume."""
    if isinstance(shape, Box):
        return _box(np.array(shape.size, dtype=np.float64)) if min(shape.size) > 0 else None
    if isinstance(shape, Sphere):
        return _surface_of_revolution(*_capsule_outline(shape.radius, 0.0)) if shape.radius > 0 else None
    if isinstance(shape, Cylinder):
        has_volume = shape.radius > 0 and shape.length > 0
        return _surface_of_revolution(*_cylinder_outline(shape.radius, 0.5 * shape.length)) if has_volume else None
    if isinstance(shape, Capsule):
        return _surface_of_revolution(*_capsule_outline(shape.radius, 0.5 * shape.length)) if shape.radius > 0 else None
    if isinstance(shape, HalfSpace):
        return _shifted(
            _box(np.array([HALF_SPACE_SIZE, HALF_SPACE_SIZE, HALF_SPACE_THICKNESS])),
            np.array([0.0, 0.0, -0.5 * HALF_SPACE_THICKNESS]),
        )
    if isinstance(shape, HeightField):
        return _height_field(shape)
    if isinstance(shape, ConvexMesh):
        return _hull(shape.points)
    return None


def _box(size: Array) -> TriangleMesh:
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
    return TriangleMesh(np.array(points), np.array(normals), np.array(corners, dtype=np.uint32))


def _shifted(body: TriangleMesh, offset: Array) -> TriangleMesh:
    return TriangleMesh(body.points + offset, body.normals, body.corners)


def _hull(points: Array) -> TriangleMesh:
    """Convex hull with flat shading; the bounding box of the points without SciPy."""
    with contextlib.suppress(ImportError):
        from scipy.spatial import ConvexHull

        hull = ConvexHull(points)
        middle = points[hull.vertices].mean(axis=0)
        return _flat_shaded(_outwards(points[hull.simplices], middle))
    low, high = points.min(axis=0), points.max(axis=0)
    return _shifted(_box(high - low), 0.5 * (low + high))


def _height_field(field: HeightField) -> TriangleMesh:
    """Surface of a height field, and walls down to its bottom."""
    rows, columns = field.heights.shape
    x = np.linspace(-0.5, 0.5, columns) * field.size[0]
    y = np.linspace(-0.5, 0.5, rows) * field.size[1]
    top = np.stack([*np.meshgrid(x, y), field.heights], axis=-1)
    a, b, c, d = top[:-1, :-1], top[:-1, 1:], top[1:, 1:], top[1:, :-1]
    cells = [np.stack([a, b, c], axis=-2), np.stack([a, c, d], axis=-2)]
    sides: list[Array] = [cell.reshape(-1, 3, 3) for cell in cells]
    # around the field, counter-clockwise seen from above
    for edge in (top[0], top[:, -1], top[-1, ::-1], top[::-1, 0]):
        foot = edge.copy()
        foot[:, 2] = field.bottom
        sides += [np.stack([foot[:-1], foot[1:], edge[1:]], axis=1), np.stack([foot[:-1], edge[1:], edge[:-1]], axis=1)]
    return _flat_shaded(np.concatenate(sides))


def _outwards(sides: Array, middle: Array) -> Array:
    """Triangles (T, 3, 3) of a convex body, oriented counter-clockwise seen from outside."""
    normals = np.cross(sides[:, 1] - sides[:, 0], sides[:, 2] - sides[:, 0])
    inwards = np.einsum("ti,ti->t", normals, sides[:, 0] - middle) < 0
    return np.where(inwards[:, None, None], sides[:, [0, 2, 1]], sides)


def _flat_shaded(sides: Array) -> TriangleMesh:
    """Mesh of triangles (T, 3, 3) with separate corners and flat normals, without degenerate triangles."""
    normals = np.cross(sides[:, 1] - sides[:, 0], sides[:, 2] - sides[:, 0])
    areas = np.linalg.norm(normals, axis=1)
    has_area = areas > 0
    normals = np.repeat(normals[has_area] / areas[has_area, None], 3, axis=0)
    corners = np.arange(3 * np.count_nonzero(has_area), dtype=np.uint32).reshape(-1, 3)
    return TriangleMesh(sides[has_area].reshape(-1, 3), normals, corners)


def _cylinder_outline(radius: float, half: float) -> tuple[Array, Array]:
    """Outline (radius, z) of a cylinder from the lower pole to the upper, and normals (outwards, z).

    Edges are repeated, because they have two normals.
    """
    outline = [(0.0, -half), (radius, -half), (radius, -half), (radius, half), (radius, half), (0.0, half)]
    normals = [(0, -1), (0, -1), (1, 0), (1, 0), (0, 1), (0, 1)]
    return np.array(outline), np.array(normals, dtype=np.float64)


def _capsule_outline(radius: float, half: float) -> tuple[Array, Array]:
    """Outline and normals of a capsule, as for the cylinder; a sphere if its straight part has no length."""
    angles = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 2 * RINGS + 1)
    lower, upper = angles[: RINGS + 1], angles[RINGS if half > 0 else RINGS + 1 :]
    latitudes = np.concatenate([lower, upper])
    heights = np.concatenate([np.full(len(lower), -half), np.full(len(upper), half)])
    normals = np.stack([np.cos(latitudes), np.sin(latitudes)], axis=1)
    return np.stack([radius * normals[:, 0], radius * normals[:, 1] + heights], axis=1), normals


def _surface_of_revolution(outline: Array, outwards: Array) -> TriangleMesh:
    """Surface of revolution of an outline (K, 2) about z."""
    angles = np.linspace(0.0, 2.0 * np.pi, CIRCLE_CORNERS, endpoint=False)
    around = np.stack([np.cos(angles), np.sin(angles), np.zeros(CIRCLE_CORNERS)], axis=1)
    up = np.array([0.0, 0.0, 1.0])

    def ring(radius_and_height: Array) -> Array:
        return (radius_and_height[:, None, :1] * around + radius_and_height[:, None, 1:] * up).reshape(-1, 3)

    k, a = np.meshgrid(np.arange(len(outline) - 1), np.arange(CIRCLE_CORNERS), indexing="ij")
    low, high = k * CIRCLE_CORNERS + a, (k + 1) * CIRCLE_CORNERS + a
    low_next = k * CIRCLE_CORNERS + (a + 1) % CIRCLE_CORNERS
    high_next = low_next + CIRCLE_CORNERS
    corners = np.stack([low, low_next, high_next, low, high_next, high], axis=-1).reshape(-1, 3)
    points = ring(outline)
    sides = points[corners]
    areas = np.linalg.norm(np.cross(sides[:, 1] - sides[:, 0], sides[:, 2] - sides[:, 0]), axis=1)
    valid = corners[areas > 1e-12 * np.square(np.abs(outline).max())]  # the poles give degenerate triangles
    return TriangleMesh(points, ring(outwards), valid.astype(np.uint32))
