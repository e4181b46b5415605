"""Quality of shapes fitted to meshes: volume, overhang and coverage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanik.collision.collision_meshes import read_collision_mesh
from mechanik.collision.shape_fitting import CoverCapsule, sample_surface
from mechanik.errors import MissingExtra
from mechanik.model.frame import Link
from mechanik.model.mechanism import Mechanism
from mechanik.model.shapes import Capsule, Mesh, Sphere
from mechanik.spatial.array import Array

UNION_VOLUME_SAMPLES = 100_000
"""Number of points in the box around the shapes to estimate their volume, to about 1 %."""
SURFACE_SAMPLES = 20_000
"""Number of points on a mesh to estimate overhang and coverage."""
CAPSULE_SURFACE_SAMPLES = 2_000
"""Number of directions in which points on the surface of each shape are taken."""


@dataclass(frozen=True, slots=True)
class FitQuality:
    """Quality of the fitted shapes of one link.

    Attributes:
        shapes: number of shapes.
        volume: of the union of all shapes, m^3.
        hull_volume: volume of the convex hull of its meshes, m^3.
        overhang: largest distance of a shape's surface outside the hull to the nearest point of a mesh, m.
        uncovered_distance: largest distance of a point of a mesh outside all shapes, m; not above zero if they cover
            it.
    """

    shapes: int
    volume: float
    hull_volume: float
    overhang: float
    uncovered_distance: float

    @property
    def ratio(self) -> float:
        """Volume of the shapes divided by that of the hull."""
        return self.volume / self.hull_volume

    def __str__(self) -> str:
        many = "1 shape" if self.shapes == 1 else f"{self.shapes} shapes"
        return f"{many}, {self.ratio:.2f} times the hull, at most {self.overhang * 1e3:.0f} mm beyond it"


def fit_quality(mechanism: Mechanism, fitted: Mechanism) -> dict[str, FitQuality]:
    """Return by link how well the capsules and spheres of `fit_shapes` replace the meshes of the mechanism.

    Volumes are estimated by sampling, to about 1 %, overhangs to some mm.

    Args:
        mechanism: with meshes.
        fitted: result of `fit_shapes`.

    Raises:
        MeshError: a mesh cannot be read.
        MissingExtra: the extra `collision` is not installed.
    """
    return {
        name: _fit(triangles, rounds)
        for name, link in mechanism.links.items()
        if len(triangles := _triangles(link, name)) and (rounds := capsules_of(fitted.link(name)))
    }


def capsules_of(link: Link) -> list[CoverCapsule]:
    """Return the collision capsules and spheres of a link, in its frame."""
    found: list[CoverCapsule] = []
    for placed in link.collisions:
        shape = placed.shape
        if isinstance(shape, Capsule | Sphere):
            half = 0.5 * shape.length if isinstance(shape, Capsule) else 0.0
            a, b = placed.pose.apply([[0.0, 0.0, -half], [0.0, 0.0, half]])
            found.append(CoverCapsule(a, b, shape.radius))
    return found


def union_distance(rounds: Sequence[CoverCapsule], points: Array) -> Array:
    """Return the signed distance of points (n, 3) to the union of shapes, m; negative inside."""
    found = rounds[0].signed_distance(points)
    for one in rounds[1:]:
        found = np.minimum(found, one.signed_distance(points))
    return found


def _triangles(link: Link, name: str) -> Array:
    """Return the triangles of the fitted meshes of a link, (T, 3, 3), in its frame."""
    found = [np.zeros((0, 3, 3))]
    for placed in link.collisions or link.visuals:
        if isinstance(placed.shape, Mesh):
            body = read_collision_mesh(placed.shape, f"link {name!r}")
            found.append(placed.pose.apply(body.points)[body.corners])
    return np.concatenate(found)


def _fit(triangles: Array, rounds: Sequence[CoverCapsule]) -> FitQuality:
    try:
        import scipy.spatial
    except ImportError:
        raise MissingExtra("judging how well shapes fit", "collision") from None
    spatial: Any = scipy.spatial
    points = np.concatenate([triangles.reshape(-1, 3), sample_surface(triangles, SURFACE_SAMPLES)])
    skin = np.concatenate([_skin(one) for one in rounds])
    skin = skin[union_distance(rounds, skin) > -1e-9]
    hull = spatial.ConvexHull(triangles.reshape(-1, 3))
    beyond = skin[(skin @ hull.equations[:, :3].T + hull.equations[:, 3]).max(axis=1) > 0.0]
    away = np.array(spatial.cKDTree(points).query(beyond)[0], dtype=np.float64)
    low, high = skin.min(axis=0), skin.max(axis=0)
    places = np.random.default_rng(0).uniform(low, high, (UNION_VOLUME_SAMPLES, 3))
    share = float(np.count_nonzero(union_distance(rounds, places) <= 0.0)) / UNION_VOLUME_SAMPLES
    outside = float(union_distance(rounds, points).max())
    return FitQuality(
        len(rounds), share * math.prod((high - low).tolist()), float(hull.volume), float(away.max(initial=0.0)), outside
    )


def _skin(one: CoverCapsule) -> Array:
    """Return points on the surface: on the round ends in each direction, and on the straight part."""
    k = np.arange(CAPSULE_SURFACE_SAMPLES) + 0.5
    height, turn = 1.0 - 2.0 * k / CAPSULE_SURFACE_SAMPLES, np.pi * (1.0 + 5.0**0.5) * k
    flat = np.sqrt(1.0 - height**2)
    out = np.column_stack([flat * np.cos(turn), flat * np.sin(turn), height])
    along = one.b - one.a
    ends = one.a + (out @ along > 0)[:, None] * along + one.radius * out
    length = float(np.linalg.norm(along))
    if length == 0.0:
        return ends
    axis = along / length
    across = out - (out @ axis)[:, None] * axis
    good = np.linalg.norm(across, axis=1) > 0.1
    sides = across[good] / np.linalg.norm(across[good], axis=1)[:, None]
    shares = (k[good] * 0.6180339887498949) % 1.0
    return np.concatenate([ends, one.a + shares[:, None] * along + one.radius * sides])
