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
"""Number of points in the box around the shapes for the estimate of their volume, to about 1 %."""
SURFACE_SAMPLES = 20_000
"""Number of points on a mesh for the estimates of overhang and coverage."""
CAPSULE_SURFACE_SAMPLES = 2_000
"""Number of directions in which points on the surface of each shape are computed."""
SURFACE_TOLERANCE = 1e-9
"""m; points of a shape that are deeper inside another shape are not on the surface of the union."""


@dataclass(frozen=True, slots=True)
class FitQuality:
    """Quality of the fitted shapes of one link.

    Attributes:
        shape_count: number of capsules and spheres.
        volume: volume of the union of all shapes, m^3.
        hull_volume: volume of the convex hull of the link's meshes, m^3.
        overhang: largest distance from the meshes to a surface point of the shapes that is outside the hull, m.
        uncovered_distance: largest signed distance of a point of a mesh to the shapes, m; zero or negative if the
            shapes cover the meshes.
    """

    shape_count: int
    volume: float
    hull_volume: float
    overhang: float
    uncovered_distance: float

    @property
    def volume_ratio(self) -> float:
        """Volume of the shapes divided by the volume of the hull."""
        return self.volume / self.hull_volume

    def __str__(self) -> str:
        count = "1 shape" if self.shape_count == 1 else f"{self.shape_count} shapes"
        return (
            f"{count}, {self.volume_ratio:.2f} times the volume of the hull, "
            f"outside the hull up to {self.overhang * 1e3:.0f} mm from the meshes"
        )


def fit_quality(mechanism: Mechanism, fitted_mechanism: Mechanism) -> dict[str, FitQuality]:
    """Return the quality of the capsules and spheres of `fit_shapes`, compared with the meshes, by link name.

    Links without meshes, or without capsules and spheres, are left out. The volumes of the shapes are estimated by
    sampling to about 1 %, overhangs to some mm.

    Args:
        mechanism: the mechanism with meshes.
        fitted_mechanism: result of `fit_shapes`.

    Raises:
        FormatError: a mesh cannot be read.
        MissingExtra: the extra `collision` is not installed.
    """
    return {
        name: _measure_quality(triangles, capsules)
        for name, link in mechanism.links.items()
        if len(triangles := _triangles(link, name)) and (capsules := capsules_of(fitted_mechanism.link(name)))
    }


def capsules_of(link: Link) -> list[CoverCapsule]:
    """Return the collision capsules and spheres of a link, in its frame."""
    capsules: list[CoverCapsule] = []
    for instance in link.collisions:
        shape = instance.shape
        if isinstance(shape, Capsule | Sphere):
            half_length = 0.5 * shape.length if isinstance(shape, Capsule) else 0.0
            a, b = instance.pose.apply([[0.0, 0.0, -half_length], [0.0, 0.0, half_length]])
            capsules.append(CoverCapsule(a, b, shape.radius))
    return capsules


def union_distance(capsules: Sequence[CoverCapsule], points: Array) -> Array:
    """Return the signed distance of points (n, 3) to the union of shapes, m; negative inside."""
    distances = capsules[0].signed_distance(points)
    for capsule in capsules[1:]:
        distances = np.minimum(distances, capsule.signed_distance(points))
    return distances


def _triangles(link: Link, name: str) -> Array:
    """Return the triangles (T, 3, 3) of the meshes to which shapes are fitted, in the frame of the link, m."""
    triangles = [np.zeros((0, 3, 3))]
    for instance in link.collisions or link.visuals:
        if isinstance(instance.shape, Mesh):
            mesh = read_collision_mesh(instance.shape, f"link {name!r}")
            triangles.append(instance.pose.apply(mesh.points)[mesh.triangles])
    return np.concatenate(triangles)


def _measure_quality(triangles: Array, capsules: Sequence[CoverCapsule]) -> FitQuality:
    try:
        import scipy.spatial
    except ImportError:
        raise MissingExtra("computing the quality of fitted shapes", "collision") from None
    spatial: Any = scipy.spatial
    mesh_points = np.concatenate([triangles.reshape(-1, 3), sample_surface(triangles, SURFACE_SAMPLES)])
    surface_points = np.concatenate([_surface_points(capsule) for capsule in capsules])
    surface_points = surface_points[union_distance(capsules, surface_points) > -SURFACE_TOLERANCE]
    hull = spatial.ConvexHull(triangles.reshape(-1, 3))
    outside_points = surface_points[(surface_points @ hull.equations[:, :3].T + hull.equations[:, 3]).max(axis=1) > 0.0]
    mesh_distances = np.array(spatial.cKDTree(mesh_points).query(outside_points)[0], dtype=np.float64)
    low, high = surface_points.min(axis=0), surface_points.max(axis=0)
    samples = np.random.default_rng(0).uniform(low, high, (UNION_VOLUME_SAMPLES, 3))
    inside_fraction = float(np.count_nonzero(union_distance(capsules, samples) <= 0.0)) / UNION_VOLUME_SAMPLES
    uncovered_distance = float(union_distance(capsules, mesh_points).max())
    return FitQuality(
        len(capsules),
        inside_fraction * math.prod((high - low).tolist()),
        float(hull.volume),
        float(mesh_distances.max(initial=0.0)),
        uncovered_distance,
    )


def _surface_points(capsule: CoverCapsule) -> Array:
    """Return points (n, 3) on the surface of a capsule, on its round ends and on its straight part, m.

    The directions form a spherical Fibonacci lattice. The points on the straight part are spread along the axis by the
    fractional parts of multiples of the golden ratio.
    """
    k = np.arange(CAPSULE_SURFACE_SAMPLES) + 0.5
    height, angle = 1.0 - 2.0 * k / CAPSULE_SURFACE_SAMPLES, np.pi * (1.0 + 5.0**0.5) * k
    ring_radius = np.sqrt(1.0 - height**2)
    directions = np.column_stack([ring_radius * np.cos(angle), ring_radius * np.sin(angle), height])
    axis_vector = capsule.b - capsule.a
    end_points = capsule.a + (directions @ axis_vector > 0)[:, None] * axis_vector + capsule.radius * directions
    length = float(np.linalg.norm(axis_vector))
    if length == 0.0:
        return end_points
    axis = axis_vector / length
    radial_vectors = directions - (directions @ axis)[:, None] * axis
    is_sideways = np.linalg.norm(radial_vectors, axis=1) > 0.1
    radial_units = radial_vectors[is_sideways] / np.linalg.norm(radial_vectors[is_sideways], axis=1)[:, None]
    axis_fractions = (k[is_sideways] * 0.6180339887498949) % 1.0
    return np.concatenate(
        [end_points, capsule.a + axis_fractions[:, None] * axis_vector + capsule.radius * radial_units]
    )
