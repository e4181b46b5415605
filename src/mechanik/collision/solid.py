"""Shapes as the kernels take them: sizes, and points that hold them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from mechanik.errors import ShapeError
from mechanik.kernels.distance.shape_layout import BOX, CAPSULE, CYLINDER, FIELD, HALF_SPACE, HULL, SPHERE
from mechanik.mechanism.shapes import Box, Capsule, ConvexMesh, Cylinder, HalfSpace, HeightField, Shape, Sphere
from mechanik.spatial.array import Array

SIGNS = np.array(list(product((-1.0, 1.0), repeat=3)))
AROUND = 16
"""Corners of the prism that stands for a cylinder where only its extent matters; it is 2 % too wide."""
SLACK = 1.0 + 1e-12
"""By how much balls and boxes are larger than they need to be, so that rounding hides nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Solid:
    """
    Attributes:
        kind: as in `shape_layout`.
        sizes: (3,), as there; for hulls and fields the first row in P is still to be added.
        points: (n, 3), the rows of P.
        frame: (m, 3) points, and `round`, a radius: all of the shape is in the hull of balls about them. None for a
            half-space, which has no end.
    """

    kind: int
    sizes: tuple[float, float, float]
    points: Array
    frame: Array
    round: float

    def ball(self, centre: Array) -> float:
        """The radius of a ball that holds the shape."""
        if self.kind == HALF_SPACE:
            return math.inf
        return float(np.linalg.norm(self.frame - centre, axis=1).max() + self.round) * SLACK

    def box(self, X: Array) -> tuple[Array, Array]:
        """The least and largest x, y, z of the shape at X (4, 4)."""
        if self.kind == HALF_SPACE:
            return np.full(3, -math.inf), np.full(3, math.inf)
        points = self.frame @ X[:3, :3].T + X[:3, 3]
        wide = self.round * SLACK + (SLACK - 1.0) * float(np.abs(points).max())
        return points.min(axis=0) - wide, points.max(axis=0) + wide


def as_solid(shape: Shape) -> Solid:
    """A shape as the kernels take it. Meshes have to be made into other shapes first."""
    match shape:
        case Sphere(radius):
            return Solid(SPHERE, (radius, 0.0, 0.0), NO_POINTS, np.zeros((1, 3)), radius)
        case Capsule(radius, length):
            ends = np.array([[0.0, 0.0, -length / 2], [0.0, 0.0, length / 2]])
            return Solid(CAPSULE, (radius, length / 2, 0.0), NO_POINTS, ends, radius)
        case Box((x, y, z)):
            return Solid(BOX, (x / 2, y / 2, z / 2), NO_POINTS, SIGNS * (x / 2, y / 2, z / 2), 0.0)
        case Cylinder(radius, length):
            return Solid(CYLINDER, (radius, length / 2, 0.0), NO_POINTS, _prism(radius, length), 0.0)
        case HalfSpace():
            return Solid(HALF_SPACE, (0.0, 0.0, 0.0), NO_POINTS, NO_POINTS, 0.0)
        case ConvexMesh(points=points):
            return Solid(HULL, (0.0, float(len(points)), 0.0), points, points, 0.0)
        case HeightField():
            return _field(shape)
        case _:
            raise ShapeError(f"{shape!r} has to be made into simpler shapes before it can bump")


def refuse_flat(shape: Shape, owner: str) -> None:
    """Raise if a shape has no volume: nothing could be inside it, and thin walls are passed between two looks."""
    match shape:
        case Sphere(0.0) | Capsule(0.0, _):
            raise ShapeError(f"{owner}: {shape!r} has no volume; give it a radius above zero")
        case Cylinder(radius, length) if radius == 0 or length == 0:
            raise ShapeError(f"{owner}: {shape!r} has no volume; give it a radius and a length above zero")
        case Box(size) if 0 in size:
            raise ShapeError(f"{owner}: {shape!r} has no volume; give every edge a length above zero")
        case HeightField() if float(shape.heights.max()) <= shape.bottom:
            raise ShapeError(f"{owner}: {shape!r} has no volume; give it a bottom below its heights")
        case _:
            pass


def _prism(radius: float, length: float) -> Array:
    """Corners of the prism about a cylinder."""
    turn = np.arange(AROUND) * (2 * math.pi / AROUND)
    ring = np.column_stack([np.cos(turn), np.sin(turn)]) * (radius / math.cos(math.pi / AROUND))
    return np.vstack([np.column_stack([ring, np.full(AROUND, z)]) for z in (-length / 2, length / 2)])


def _field(field: HeightField) -> Solid:
    rows, columns = field.heights.shape
    x = np.linspace(-field.size[0] / 2, field.size[0] / 2, columns)
    y = np.linspace(-field.size[1] / 2, field.size[1] / 2, rows)
    corners = np.stack([*np.meshgrid(x, y), field.heights], axis=-1).reshape(-1, 3)
    points = np.vstack([corners, [[field.bottom, 0.0, 0.0]]])
    low, high = np.array([x[0], y[0], field.bottom]), np.array([x[-1], y[-1], field.heights.max()])
    frame = (low + high) / 2 + SIGNS * ((high - low) / 2)
    return Solid(FIELD, (0.0, columns - 1.0, rows - 1.0), points, frame, 0.0)


NO_POINTS = np.zeros((0, 3))
