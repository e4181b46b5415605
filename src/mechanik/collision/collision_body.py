"""`Obstacle`, and the bodies of a collider: links and obstacles with their shapes in the form that the kernels read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from mechanik.errors import InvalidArgument, MechanikError, ShapeError, StructureError
from mechanik.kernels.distance.collision_layout import BOX, CAPSULE, CYLINDER, HALF_SPACE, HEIGHT_FIELD, HULL, SPHERE
from mechanik.kernels.nodes import open_nodes
from mechanik.model.kinematics import fixed_pose
from mechanik.model.mechanism import Mechanism
from mechanik.model.shapes import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    HalfSpace,
    HeightField,
    Mesh,
    Shape,
    ShapeInstance,
    Sphere,
)
from mechanik.spatial import Pose
from mechanik.spatial.array import Array, ArrayLike

SIGNS = np.array(list(product((-1.0, 1.0), repeat=3)))
"""(8, 3), signs of the coordinates of the corners of a box."""
PRISM_SIDES = 16
"""Number of sides of the prism that bounds a cylinder; the prism is 2 % wider than the cylinder."""
BOUND_INFLATION = 1.0 + 1e-12
"""Factor by which bounding spheres and boxes are enlarged, so that no collision is missed because of rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class KernelShape:
    """Shape in the form that the kernels read, with points that bound it.

    Attributes:
        kind: kind of the shape, as in `kernels/distance/collision_layout.py`.
        sizes: three lengths (m) or counts, as in that module. The first size of a hull or a height field is a table
            index, which is not known here and is 0.
        points: (n, 3), m, points of a hull or a height field, as in that module; empty for other kinds.
        core_points: (k, 3), m: the convex hull of spheres of `core_radius` about these points contains the shape. Empty
            for a half-space, which is unbounded.
        core_radius: m, radius of the spheres about `core_points`.
    """

    kind: int
    sizes: tuple[float, float, float]
    points: Array
    core_points: Array
    core_radius: float

    def bounding_radius(self, centre: Array) -> float:
        """Return the radius of a sphere about `centre` (3,) that contains the shape, m."""
        if self.kind == HALF_SPACE:
            return math.inf
        return float(np.linalg.norm(self.core_points - centre, axis=1).max() + self.core_radius) * BOUND_INFLATION

    def bounding_box(self, X_a_shape: Array) -> tuple[Array, Array]:
        """Return the low and the high corner (3,), m, of a box that contains the shape at the pose `X_a_shape` (4, 4).

        The edges of the box are parallel to the axes of frame a.
        """
        if self.kind == HALF_SPACE:
            return np.full(3, -math.inf), np.full(3, math.inf)
        points = self.core_points @ X_a_shape[:3, :3].T + X_a_shape[:3, 3]
        margin = self.core_radius * BOUND_INFLATION + (BOUND_INFLATION - 1.0) * float(np.abs(points).max())
        return points.min(axis=0) - margin, points.max(axis=0) + margin


def as_kernel_shape(shape: Shape) -> KernelShape:
    """Convert a shape to the form of the kernels.

    Raises:
        ShapeError: the shape is a mesh, which must be converted to convex shapes first.
    """
    match shape:
        case Sphere(radius):
            return KernelShape(SPHERE, (radius, 0.0, 0.0), NO_POINTS, np.zeros((1, 3)), radius)
        case Capsule(radius, length):
            ends = np.array([[0.0, 0.0, -length / 2], [0.0, 0.0, length / 2]])
            return KernelShape(CAPSULE, (radius, length / 2, 0.0), NO_POINTS, ends, radius)
        case Box((x, y, z)):
            return KernelShape(BOX, (x / 2, y / 2, z / 2), NO_POINTS, SIGNS * (x / 2, y / 2, z / 2), 0.0)
        case Cylinder(radius, length):
            return KernelShape(CYLINDER, (radius, length / 2, 0.0), NO_POINTS, _prism_corners(radius, length), 0.0)
        case HalfSpace():
            return KernelShape(HALF_SPACE, (0.0, 0.0, 0.0), NO_POINTS, NO_POINTS, 0.0)
        case ConvexMesh(points=points):
            return KernelShape(HULL, (0.0, float(len(points)), 0.0), points, points, 0.0)
        case HeightField():
            return _height_field_shape(shape)
        case _:
            raise ShapeError(f"{shape!r} cannot be checked for collision; convert it to convex shapes first")


def check_has_volume(shape: Shape, owner: str) -> None:
    """Raise `ShapeError` if a shape has no volume: penetration is undefined for it, and sampled paths can miss it.

    Args:
        owner: link or obstacle, for messages: "link 'arm'".
    """
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


def _prism_corners(radius: float, length: float) -> Array:
    """Return the corners (2 * PRISM_SIDES, 3) of the prism around a cylinder, m."""
    angles = np.arange(PRISM_SIDES) * (2 * math.pi / PRISM_SIDES)
    ring = np.column_stack([np.cos(angles), np.sin(angles)]) * (radius / math.cos(math.pi / PRISM_SIDES))
    return np.vstack([np.column_stack([ring, np.full(PRISM_SIDES, z)]) for z in (-length / 2, length / 2)])


def _height_field_shape(field: HeightField) -> KernelShape:
    rows, columns = field.heights.shape
    x = np.linspace(-field.size[0] / 2, field.size[0] / 2, columns)
    y = np.linspace(-field.size[1] / 2, field.size[1] / 2, rows)
    corners = np.stack([*np.meshgrid(x, y), field.heights], axis=-1).reshape(-1, 3)
    points = np.vstack([corners, [[field.bottom, 0.0, 0.0]]])
    low, high = np.array([x[0], y[0], field.bottom]), np.array([x[-1], y[-1], field.heights.max()])
    box_corners = (low + high) / 2 + SIGNS * ((high - low) / 2)
    return KernelShape(HEIGHT_FIELD, (0.0, columns - 1.0, rows - 1.0), points, box_corners, 0.0)


NO_POINTS = np.zeros((0, 3))


@dataclass(frozen=True, slots=True, init=False)
class Obstacle:
    """Shape with a pose in the world, for collision checks.

    Args:
        shape: a shape with a volume.
        position, wxyz: pose of the shape in the world: (3,), m, and a quaternion (4,).
        name: name for messages, `allow` and `forbid`; a collider names obstacles without a name
            obstacle1, obstacle2, ...

    Raises:
        InvalidArgument: an argument has the wrong type.
        ShapeError: the shape has no volume, or an array has the wrong shape.
        NotFinite: a number of the pose is not finite.
        NotARotation: the quaternion is zero.

    Example:
        >>> mk.Obstacle(mk.Box((0.1, 0.1, 0.2)), (0.5, 0.0, 0.1), name="cup").pose.position.tolist()
        [0.5, 0.0, 0.1]
    """

    shape: Shape
    pose: Pose
    name: str

    def __init__(
        self, shape: Shape, position: ArrayLike = (0, 0, 0), wxyz: ArrayLike = (1, 0, 0, 0), *, name: str = ""
    ) -> None:
        if not isinstance(name, str):
            raise InvalidArgument(f"the name of an obstacle must be a string, not {name!r}")
        label = f"obstacle {name!r}" if name else "an obstacle"
        if not isinstance(shape, Shape):
            raise InvalidArgument(f"{label} needs a shape such as Box((1, 1, 1)), not {shape!r}")
        check_has_volume(shape, label)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "pose", _checked_pose(label, position, wxyz))
        object.__setattr__(self, "name", name)

    def moved_to(self, pose: Pose) -> Obstacle:
        """Return the same obstacle at another pose in the world."""
        return Obstacle(self.shape, pose.position, pose.wxyz, name=self.name)


def _checked_pose(label: str, position: ArrayLike, wxyz: ArrayLike) -> Pose:
    if isinstance(position, str):
        raise InvalidArgument(f"{label}: position must be three numbers; give the name as name={position!r}")
    if isinstance(position, Pose) or getattr(position, "shape", ()) == (4, 4):
        raise InvalidArgument(f"{label}: position must be three numbers; give a pose as pose.position, pose.wxyz")
    try:
        return Pose(position, wxyz)
    except MechanikError as error:
        raise type(error)(f"{label}: {error}") from None


MeshMode = Literal["auto", "exact", "fitted"]
MESH_MODES: tuple[MeshMode, ...] = ("auto", "exact", "fitted")
"""Kinds of shapes that replace meshes: "exact": convex hulls; "fitted": capsules; "auto": hulls if the extra
`collision` is installed, else capsules."""


@dataclass(frozen=True, slots=True, eq=False)
class CollisionBody:
    """Link or obstacle with its shapes.

    Attributes:
        name: name of the link or obstacle.
        node: index of the node that moves the body; -1 if the body does not move.
        X_node_body: pose of the body in the frame of its node, or in the world if the body does not move, (4, 4).
        kernel_shapes: the shapes, each with X_body_shape (4, 4).
    """

    name: str
    node: int
    X_node_body: Array
    kernel_shapes: tuple[tuple[KernelShape, Array], ...]


def link_bodies(mechanism: Mechanism, meshes: MeshMode) -> list[CollisionBody]:
    """Return the bodies of all links with collision shapes.

    Raises:
        StructureError: no link has a collision shape.
        ShapeError: a shape has no volume, or a link that moves has a half-space.
        FormatError: a mesh is missing, cannot be read, or has no volume.
        MissingExtra: a mesh needs the extra `collision`, which is not installed.
    """
    kinematics, bodies = mechanism.kinematics, list[CollisionBody]()
    for (name, link), link_node in zip(mechanism.links.items(), open_nodes(kinematics.link_nodes), strict=True):
        if link.collisions:
            node = link_node.parent
            kernel_shapes = _kernel_shapes(link.collisions, f"link {name!r}", meshes)
            if node >= 0 and any(shape.kind == HALF_SPACE for shape, _ in kernel_shapes):
                raise ShapeError(f"link {name!r} moves and has a half-space; only bodies that do not move can have one")
            bodies.append(CollisionBody(name, node, fixed_pose(link_node), kernel_shapes))
    if not bodies:
        raise StructureError(
            f"no link of {mechanism.name or 'the mechanism'!r} has a collision shape; give links collisions, "
            "such as Link(collisions=[ShapeInstance(Capsule(0.05, 0.3))])"
        )
    return bodies


def obstacle_bodies(obstacles: Iterable[Obstacle], meshes: MeshMode) -> list[CollisionBody]:
    """Return the bodies of obstacles; each obstacle must have a name."""
    return [
        CollisionBody(
            obstacle.name,
            -1,
            obstacle.pose.matrix,
            _kernel_shapes([ShapeInstance(obstacle.shape)], f"obstacle {obstacle.name!r}", meshes),
        )
        for obstacle in obstacles
    ]


def _kernel_shapes(
    shapes: Iterable[ShapeInstance], owner: str, meshes: MeshMode
) -> tuple[tuple[KernelShape, Array], ...]:
    kernel_shapes: list[tuple[KernelShape, Array]] = []
    for instance in shapes:
        for convex_instance in _convex_instances(instance, owner, meshes):
            check_has_volume(convex_instance.shape, owner)
            kernel_shapes.append((as_kernel_shape(convex_instance.shape), convex_instance.pose.matrix))
    return tuple(kernel_shapes)


def _convex_instances(instance: ShapeInstance, owner: str, meshes: MeshMode) -> list[ShapeInstance]:
    if not isinstance(instance.shape, Mesh):
        return [instance]
    from mechanik.collision.collision_meshes import convex_shapes  # imported here, since it imports this module

    return convex_shapes(instance, owner, meshes)
