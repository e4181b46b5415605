"""Ellipsoids as convex meshes that contain the ellipsoid and are only slightly larger.

Mechanik has no ellipsoid shape. A subdivided icosahedron encloses the unit sphere; scaled by the radii, it encloses the
ellipsoid.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations

import numpy as np

from mechanik.model.shapes import ConvexMesh, Sphere
from mechanik.spatial.array import Array

EDGE_DIVISIONS = 5
"""Parts of each icosahedron edge; 5 gives 252 points. More parts give a tighter hull and slower distance queries."""
MAX_EXCESS = 0.012
"""Largest excess of the hull, as a fraction: the ellipsoid with radii larger by this fraction contains the hull."""


def ellipsoid_shape(radii: tuple[float, float, float]) -> Sphere | ConvexMesh:
    """Return a sphere for equal radii, otherwise a convex mesh around the ellipsoid; see `MAX_EXCESS`.

    Args:
        radii: along x, y and z; m.

    Raises:
        ShapeError: the hull has no volume, because a radius is too small compared to the others.
    """
    if radii[0] == radii[1] == radii[2]:
        return Sphere(radii[0])
    return ConvexMesh(_sphere_hull() * np.array(radii))  # the scaled hull contains the scaled sphere


@cache
def _sphere_hull() -> Array:
    """Return the points (n, 3) of a convex body that encloses and touches the unit sphere."""
    golden_ratio = (1 + math.sqrt(5)) / 2
    pairs = [(x, y) for x in (-1.0, 1.0) for y in (-golden_ratio, golden_ratio)]
    corners = np.array([np.roll((0.0, *pair), shift) for shift in range(3) for pair in pairs])
    # the edges of this icosahedron have length 2, and the other distances between corners are at least 3.2
    neighbours = [{j for j in range(12) if 0 < np.linalg.norm(corners[i] - corners[j]) < 2.1} for i in range(12)]
    faces = [
        (i, j, k) for i, j, k in combinations(range(12), 3) if j in neighbours[i] and k in neighbours[i] & neighbours[j]
    ]
    triangles = np.concatenate([_subdivide(corners[list(face)]) for face in faces])
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    distances = np.abs(np.einsum("ti,ti->t", normals, triangles[:, 0])) / np.linalg.norm(normals, axis=1)
    points = triangles.reshape(-1, 3)
    _, first_indices = np.unique(points.round(9) + 0.0, axis=0, return_index=True)
    return points[first_indices] / distances.min()


def _subdivide(face: Array) -> Array:
    """Split a triangle (3, 3) into (EDGE_DIVISIONS**2, 3, 3) triangles with corners on the unit sphere."""
    steps = range(EDGE_DIVISIONS)
    upright_triangles = [((i, j), (i + 1, j), (i, j + 1)) for i in steps for j in steps if i + j < EDGE_DIVISIONS]
    inverted_triangles = [
        ((i + 1, j), (i + 1, j + 1), (i, j + 1)) for i in steps for j in steps if i + j < EDGE_DIVISIONS - 1
    ]
    corners = [
        [(i, j, EDGE_DIVISIONS - i - j) for i, j in triangle] for triangle in (*upright_triangles, *inverted_triangles)
    ]
    points = np.array(corners) / EDGE_DIVISIONS @ face  # barycentric coordinates
    return points / np.linalg.norm(points, axis=-1, keepdims=True)
