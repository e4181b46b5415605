"""Tessellation of shapes, except mesh files, into triangle meshes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanik.model.shapes import Box, Capsule, ConvexMesh, Cylinder, HalfSpace, HeightField, Shape, Sphere
from mechanik.spatial.array import Array

CIRCLE_CORNER_COUNT = 24
"""Number of corners of the polygon that represents a circle."""
RING_COUNT = 8
"""Number of rings from the equator of a sphere to its pole."""
HALF_SPACE_SIZE, HALF_SPACE_THICKNESS = 20.0, 0.01
"""m; edge length and thickness of the box that represents a half-space; its top face is in the plane of the half-space.
"""


@dataclass(frozen=True, slots=True, eq=False)
class TriangleMesh:
    """Triangles with vertex normals.

    Attributes:
        points: (V, 3), m.
        normals: (V, 3), unit vectors that point outwards.
        corners: (T, 3), indices of the points of each triangle, counter-clockwise seen from outside.
    """

    points: Array
    normals: Array
    corners: npt.NDArray[np.uint32]


def tessellate(shape: Shape) -> TriangleMesh | None:
    """Return a triangle mesh of a shape in its frame; None for mesh files and for shapes without volume."""
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
        return _translate(
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
        for sign in (-1.0, 1.0):
            normal = sign * np.eye(3)[axis]
            u, v = np.eye(3)[(axis + 1) % 3], sign * np.eye(3)[(axis + 2) % 3]
            first_index = len(points)
            points += [0.5 * size * (normal + a * u + b * v) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
            normals += [normal] * 4
            corners += [
                [first_index, first_index + 1, first_index + 2],
                [first_index, first_index + 2, first_index + 3],
            ]
    return TriangleMesh(np.array(points), np.array(normals), np.array(corners, dtype=np.uint32))


def _translate(mesh: TriangleMesh, offset: Array) -> TriangleMesh:
    return TriangleMesh(mesh.points + offset, mesh.normals, mesh.corners)


def _hull(points: Array) -> TriangleMesh:
    """Return the convex hull with flat shading; if SciPy is not installed, the bounding box of the points."""
    with contextlib.suppress(ImportError):
        from scipy.spatial import ConvexHull

        hull = ConvexHull(points)
        centre = points[hull.vertices].mean(axis=0)
        return _flat_shaded_mesh(_orient_outwards(points[hull.simplices], centre))
    lower_corner, upper_corner = points.min(axis=0), points.max(axis=0)
    return _translate(_box(upper_corner - lower_corner), 0.5 * (lower_corner + upper_corner))


def _height_field(field: HeightField) -> TriangleMesh:
    """Return the surface of a height field, with walls down to its bottom."""
    row_count, column_count = field.heights.shape
    x = np.linspace(-0.5, 0.5, column_count) * field.size[0]
    y = np.linspace(-0.5, 0.5, row_count) * field.size[1]
    top_points = np.stack([*np.meshgrid(x, y), field.heights], axis=-1)
    # the corners of all cells, counter-clockwise seen from above
    a, b, c, d = top_points[:-1, :-1], top_points[:-1, 1:], top_points[1:, 1:], top_points[1:, :-1]
    cells = [np.stack([a, b, c], axis=-2), np.stack([a, c, d], axis=-2)]
    triangles: list[Array] = [cell.reshape(-1, 3, 3) for cell in cells]
    # the four edges of the field, counter-clockwise seen from above
    for edge in (top_points[0], top_points[:, -1], top_points[-1, ::-1], top_points[::-1, 0]):
        lower_edge = edge.copy()
        lower_edge[:, 2] = field.bottom
        triangles += [
            np.stack([lower_edge[:-1], lower_edge[1:], edge[1:]], axis=1),
            np.stack([lower_edge[:-1], edge[1:], edge[:-1]], axis=1),
        ]
    return _flat_shaded_mesh(np.concatenate(triangles))


def _orient_outwards(triangles: Array, centre: Array) -> Array:
    """Orient the triangles (T, 3, 3) of a convex body counter-clockwise seen from outside.

    Args:
        centre: (3,) a point inside the body.
    """
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    is_inward = np.einsum("ti,ti->t", normals, triangles[:, 0] - centre) < 0
    return np.where(is_inward[:, None, None], triangles[:, [0, 2, 1]], triangles)


def _flat_shaded_mesh(triangles: Array) -> TriangleMesh:
    """Return a mesh of the triangles (T, 3, 3) that are not degenerate; they share no points and have flat normals."""
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    areas = np.linalg.norm(normals, axis=1)
    has_area = areas > 0
    normals = np.repeat(normals[has_area] / areas[has_area, None], 3, axis=0)
    corners = np.arange(3 * np.count_nonzero(has_area), dtype=np.uint32).reshape(-1, 3)
    return TriangleMesh(triangles[has_area].reshape(-1, 3), normals, corners)


def _cylinder_outline(radius: float, half_length: float) -> tuple[Array, Array]:
    """Return the outline (K, 2) of a cylinder, and its normals (K, 2).

    Points of the outline are (distance from the axis, z), from the lower to the upper end of the axis. Points on edges
    are repeated, because they have two normals.
    """
    outline = [
        (0.0, -half_length),
        (radius, -half_length),
        (radius, -half_length),
        (radius, half_length),
        (radius, half_length),
        (0.0, half_length),
    ]
    normals = [(0, -1), (0, -1), (1, 0), (1, 0), (0, 1), (0, 1)]
    return np.array(outline), np.array(normals, dtype=np.float64)


def _capsule_outline(radius: float, half_length: float) -> tuple[Array, Array]:
    """Return outline and normals of a capsule, as `_cylinder_outline` does; a sphere if `half_length` is 0."""
    angles = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 2 * RING_COUNT + 1)
    lower_angles, upper_angles = angles[: RING_COUNT + 1], angles[RING_COUNT if half_length > 0 else RING_COUNT + 1 :]
    latitudes = np.concatenate([lower_angles, upper_angles])
    heights = np.concatenate([np.full(len(lower_angles), -half_length), np.full(len(upper_angles), half_length)])
    normals = np.stack([np.cos(latitudes), np.sin(latitudes)], axis=1)
    return np.stack([radius * normals[:, 0], radius * normals[:, 1] + heights], axis=1), normals


def _surface_of_revolution(outline: Array, outline_normals: Array) -> TriangleMesh:
    """Return the surface of revolution about z of an outline (K, 2) with normals (K, 2)."""
    angles = np.linspace(0.0, 2.0 * np.pi, CIRCLE_CORNER_COUNT, endpoint=False)
    circle = np.stack([np.cos(angles), np.sin(angles), np.zeros(CIRCLE_CORNER_COUNT)], axis=1)
    z_axis = np.array([0.0, 0.0, 1.0])

    def rotate_outline(radius_and_height: Array) -> Array:
        return (radius_and_height[:, None, :1] * circle + radius_and_height[:, None, 1:] * z_axis).reshape(-1, 3)

    ring, corner = np.meshgrid(np.arange(len(outline) - 1), np.arange(CIRCLE_CORNER_COUNT), indexing="ij")
    lower_index, upper_index = ring * CIRCLE_CORNER_COUNT + corner, (ring + 1) * CIRCLE_CORNER_COUNT + corner
    next_lower_index = ring * CIRCLE_CORNER_COUNT + (corner + 1) % CIRCLE_CORNER_COUNT
    next_upper_index = next_lower_index + CIRCLE_CORNER_COUNT
    triangle_corners = [lower_index, next_lower_index, next_upper_index, lower_index, next_upper_index, upper_index]
    corners = np.stack(triangle_corners, axis=-1).reshape(-1, 3)
    points = rotate_outline(outline)
    triangles = points[corners]
    areas = np.linalg.norm(np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]), axis=1)
    # poles and repeated points of the outline give degenerate triangles
    valid_corners = corners[areas > 1e-12 * np.square(np.abs(outline).max())]
    return TriangleMesh(points, rotate_outline(outline_normals), valid_corners.astype(np.uint32))
