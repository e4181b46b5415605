"""Ellipsoids, for which there is no kind of shape: a hull of points that holds all of one, and little more."""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations

import numpy as np

from mechanik.mechanism.shapes import ConvexMesh, Sphere
from mechanik.spatial.array import Array

PARTS = 5
"""Into how many parts each edge of the icosahedron is cut: 252 points."""
EXCESS = 0.012
"""How much farther than the ellipsoid the hull reaches at most, as a share of each radius."""


def ellipsoid_shape(radii: tuple[float, float, float]) -> Sphere | ConvexMesh:
    """A ball if the radii, m, are the same; else a hull that holds the ellipsoid and is at most `EXCESS` larger.

    Raises:
        ShapeError: one radius is nothing beside the others.
    """
    if radii[0] == radii[1] == radii[2]:
        return Sphere(radii[0])
    return ConvexMesh(_about_a_ball() * np.array(radii))  # what holds the ball of radius 1 holds its image


@cache
def _about_a_ball() -> Array:
    """Points (n, 3) of a convex body that touches the ball of radius 1 from outside."""
    golden = (1 + math.sqrt(5)) / 2
    pairs = [(one, other) for one in (-1.0, 1.0) for other in (-golden, golden)]
    corners = np.array([np.roll((0.0, *pair), turn) for turn in range(3) for pair in pairs])
    edge = [{j for j in range(12) if 0 < np.linalg.norm(corners[i] - corners[j]) < 2.1} for i in range(12)]
    faces = [(i, j, k) for i, j, k in combinations(range(12), 3) if j in edge[i] and k in edge[i] & edge[j]]
    small = np.concatenate([_cut(corners[list(face)]) for face in faces])
    across = np.cross(small[:, 1] - small[:, 0], small[:, 2] - small[:, 0])
    away = np.abs(np.einsum("ti,ti->t", across, small[:, 0])) / np.linalg.norm(across, axis=1)
    points = small.reshape(-1, 3)
    _, first = np.unique(points.round(9) + 0.0, axis=0, return_index=True)
    return points[first] / away.min()


def _cut(face: Array) -> Array:
    """Triangles (PARTS^2, 3, 3) of one, (3, 3), with their corners moved onto the ball of radius 1."""
    steps = range(PARTS)
    lower = [((i, j), (i + 1, j), (i, j + 1)) for i in steps for j in steps if i + j < PARTS]
    upper = [((i + 1, j), (i + 1, j + 1), (i, j + 1)) for i in steps for j in steps if i + j < PARTS - 1]
    shares = np.array([[(i, j, PARTS - i - j) for i, j in one] for one in (*lower, *upper)]) / PARTS
    points = shares @ face
    return points / np.linalg.norm(points, axis=-1, keepdims=True)
