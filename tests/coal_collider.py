"""Collision queries by the library `coal` on the exact shapes, to verify the results of a `Collider`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from mechanik.collision.collider import Contact
from mechanik.collision.collision_body import MeshMode, Obstacle
from mechanik.collision.collision_meshes import convex_shapes
from mechanik.model.mechanism import Mechanism
from mechanik.model.shapes import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    HalfSpace,
    HeightField,
    Shape,
    ShapeInstance,
    Sphere,
)
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number

COAL_TOLERANCE = 1e-9
"""m; tolerance of distances of shapes without a closed form."""


class ColliderView(Protocol):
    """Part of a `Collider` that an `CoalCollider` reads."""

    @property
    def mechanism(self) -> Mechanism: ...
    @property
    def pairs(self) -> Sequence[tuple[str, str]]: ...
    @property
    def obstacles(self) -> Iterable[Obstacle]: ...


class _Part(NamedTuple):
    """Convex geometry of `coal`, its pose X_body_part (4, 4), and a bounding sphere relative to the body."""

    geometry: Any
    X: Array
    centre: Array
    radius: float


class CoalCollider:
    """Collision checker by `coal` with the bodies and pairs of a `Collider`, for verification.

    It is some hundred times slower than the `Collider`.

    Args:
        collider: its obstacles are taken at their present poses.
        meshes: shapes that replace meshes: their convex hulls, or fitted capsules.
    """

    def __init__(self, collider: ColliderView, *, meshes: MeshMode = "exact") -> None:
        self._coal: Any = import_module("coal")
        self.mechanism, self.pairs = collider.mechanism, tuple(collider.pairs)
        self._numbers = {name: k for k, name in enumerate(self.mechanism.links)}
        names = {name for pair in self.pairs for name in pair}
        self._parts: dict[str, list[_Part]] = {}
        self._fixed: dict[str, Array] = {}
        for name, link in self.mechanism.links.items():
            if name in names:
                self._parts[name] = self._coal_parts(link.collisions, f"link {name!r}", meshes)
        for obstacle in collider.obstacles:
            owner = f"obstacle {obstacle.name!r}"
            self._parts[obstacle.name] = self._coal_parts([ShapeInstance(obstacle.shape)], owner, meshes)
            self._fixed[obstacle.name] = obstacle.pose.matrix
        request = self._coal.DistanceRequest(True, True)
        request.gjk_tolerance = request.epa_tolerance = COAL_TOLERANCE
        request.gjk_max_iterations = request.epa_max_iterations = 1000
        self._request = request

    def distance(self, q: ArrayLike) -> float | Array:
        """Return the smallest signed distance over all pairs, m; (N,) for q (N, nq)."""
        configurations = np.asarray(q, dtype=np.float64)
        if configurations.ndim == 2:
            return np.array([self.distance(row) for row in configurations])
        smallest = math.inf
        for contact in self._nearest_contacts(configurations, None):
            smallest = min(smallest, contact.distance)
        return smallest

    def is_free(self, q: ArrayLike, clearance: float = 0.0) -> bool | npt.NDArray[np.bool_]:
        """Return whether every pair keeps `clearance` (m); (N,) for q (N, nq)."""
        configurations, min_distance = np.asarray(q, dtype=np.float64), as_number(clearance, "clearance")
        if configurations.ndim == 2:
            return np.array([self.is_free(row, min_distance) for row in configurations], dtype=np.bool_)
        return not any(
            contact.distance < min_distance for contact in self._nearest_contacts(configurations, min_distance)
        )

    def contacts(self, q: ArrayLike, clearance: float = 0.0) -> tuple[Contact, ...]:
        """Return every pair of bodies closer than `clearance` (m) at q (nq,), the deepest first."""
        min_distance = as_number(clearance, "clearance")
        close_contacts = (
            contact
            for contact in self._nearest_contacts(np.asarray(q, dtype=np.float64), min_distance)
            if contact.distance < min_distance
        )
        return tuple(sorted(close_contacts, key=lambda contact: contact.distance))

    def _nearest_contacts(self, q: Array, within: float | None) -> Iterable[Contact]:
        """Yield the nearest parts of each pair; pairs surely farther than `within` (m) may be skipped."""
        X_world = self.mechanism.poses(q)
        X_world_body = {
            name: X_world[number] for name, number in self._numbers.items() if name in self._parts
        } | self._fixed
        parts_in_world = {
            name: [_in_world(part, X_world_body[name]) for part in parts] for name, parts in self._parts.items()
        }
        nearest = math.inf
        for a, b in self.pairs:
            best: Contact | None = None
            limit = within if within is not None else nearest  # without `within` only the smallest distance matters
            for part_a in parts_in_world[a]:
                for part_b in parts_in_world[b]:
                    lower_bound = float(np.linalg.norm(part_a.centre - part_b.centre)) - part_a.radius - part_b.radius
                    if lower_bound <= limit and (best is None or lower_bound < best.distance):
                        contact = self._contact(a, part_a, b, part_b)
                        if best is None or contact.distance < best.distance:
                            best = contact
            if best is not None:
                nearest = min(nearest, best.distance)
                yield best

    def _contact(self, a: str, part_a: _Part, b: str, part_b: _Part) -> Contact:
        coal, result = self._coal, self._coal.DistanceResult()
        poses = [coal.Transform3s(part.X[:3, :3], part.X[:3, 3]) for part in (part_a, part_b)]
        coal.distance(part_a.geometry, poses[0], part_b.geometry, poses[1], self._request, result)
        point_a, point_b = np.array(result.getNearestPoint1()), np.array(result.getNearestPoint2())
        return Contact(a, b, float(result.min_distance), point_a, point_b, np.array(result.normal))

    def _coal_parts(self, shapes: Iterable[ShapeInstance], owner: str, meshes: MeshMode) -> list[_Part]:
        instances = [instance for placed in shapes for instance in convex_shapes(placed, owner, meshes)]
        return [self._coal_part(shape, placed) for placed in instances for shape in _convex_pieces(placed.shape)]

    def _coal_part(self, shape: Shape, instance: ShapeInstance) -> _Part:
        geometry = _geometry(self._coal, shape)
        geometry.computeLocalAABB()
        X = instance.pose.matrix
        centre = X[:3, :3] @ np.array(geometry.aabb_center).reshape(3) + X[:3, 3]
        radius = math.inf if isinstance(shape, HalfSpace) else float(geometry.aabb_radius)
        return _Part(geometry, X, np.zeros(3) if math.isinf(radius) else centre, radius)


def _in_world(part: _Part, X: Array) -> _Part:
    return _Part(part.geometry, X @ part.X, X[:3, :3] @ part.centre + X[:3, 3], part.radius)


def _geometry(coal: Any, shape: Shape) -> Any:
    match shape:
        case Box():
            return coal.Box(*shape.size)
        case Sphere():
            return coal.Sphere(shape.radius)
        case Cylinder():
            return coal.Cylinder(shape.radius, shape.length)
        case Capsule():
            return coal.Capsule(shape.radius, shape.length)
        case HalfSpace():
            return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
        case ConvexMesh():
            points = coal.StdVec_Vec3s()
            points.extend(list(shape.points))
            return coal.Convex.convexHull(points, True, None)
        case _:
            raise TypeError(f"{shape!r} is not convex")


def _convex_pieces(shape: Shape) -> Iterable[Shape]:
    """Split a shape into convex shapes: a height field into a prism below each triangle."""
    if not isinstance(shape, HeightField):
        return [shape]
    rows, columns = shape.heights.shape
    x = np.linspace(-0.5, 0.5, columns) * shape.size[0]
    y = np.linspace(-0.5, 0.5, rows) * shape.size[1]
    top = np.stack([*np.meshgrid(x, y), shape.heights], axis=-1)
    a, b, c, d = top[:-1, :-1], top[:-1, 1:], top[1:, 1:], top[1:, :-1]
    cells = np.concatenate([np.stack(three, axis=-2).reshape(-1, 3, 3) for three in ((a, b, c), (a, c, d))])
    feet = cells.copy()
    feet[..., 2] = shape.bottom
    return [ConvexMesh(points) for points in np.concatenate([cells, feet], axis=1)]
