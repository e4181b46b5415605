"""Shapes, materials and inertia of links: data for readers, viewers and collision checks.

All types are immutable values with equality and hash.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from mechanik.errors import InvalidArgument, NotFinite, ShapeError
from mechanik.spatial import Pose
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_finite_array, check_sizes

Vector3 = tuple[float, float, float]

FLATNESS_RATIO = 1e-9
"""Ratio of the smallest to the largest extent up to which points count as coplanar."""


@dataclass(frozen=True, slots=True)
class Box:
    """A box centred at its frame.

    Attributes:
        size: full edge lengths along x, y and z, m.

    Raises:
        ShapeError, NotFinite: the size is not three finite numbers of zero or more.

    Example:
        >>> mk.Box([0.1, 0.2, 0.3])
        Box(size=(0.1, 0.2, 0.3))
    """

    size: Vector3

    def __post_init__(self) -> None:
        if np.shape(self.size) != (3,):
            raise ShapeError(f"Box: size must be three edge lengths along x, y and z, not {self.size!r}")
        x, y, z = self.size
        check_sizes(self, x, y, z)
        object.__setattr__(self, "size", (float(x), float(y), float(z)))  # a list or an array is not hashable


@dataclass(frozen=True, slots=True)
class Sphere:
    """A sphere centred at its frame.

    Attributes:
        radius: m.

    Raises:
        ShapeError, NotFinite: the radius is not a finite number of zero or more.

    Example:
        >>> mk.Sphere(0.1)
        Sphere(radius=0.1)
    """

    radius: float

    def __post_init__(self) -> None:
        check_sizes(self, self.radius)


@dataclass(frozen=True, slots=True)
class Cylinder:
    """A cylinder centred at its frame, along z.

    Attributes:
        radius: m.
        length: full height, m.

    Raises:
        ShapeError, NotFinite: a size is not a finite number of zero or more.

    Example:
        >>> mk.Cylinder(0.1, 0.4)
        Cylinder(radius=0.1, length=0.4)
    """

    radius: float
    length: float

    def __post_init__(self) -> None:
        check_sizes(self, self.radius, self.length)


@dataclass(frozen=True, slots=True)
class Capsule:
    """A capsule centred at its frame, along z: all points within `radius` of a line segment.

    Attributes:
        radius: m.
        length: length of the straight part, without the caps, m.

    Raises:
        ShapeError, NotFinite: a size is not a finite number of zero or more.

    Example:
        >>> mk.Capsule(0.1, 0.4)
        Capsule(radius=0.1, length=0.4)
    """

    radius: float
    length: float

    def __post_init__(self) -> None:
        check_sizes(self, self.radius, self.length)


@dataclass(frozen=True, slots=True)
class Mesh:
    """A triangle mesh in a file.

    Attributes:
        uri: name of the file as in the model.
        scale: factors along x, y and z, from the file's unit to m.
        path: the file on disk; None if it was not found. The path is ignored in comparisons.

    Raises:
        InvalidArgument: `uri` is not a string, or `path` is not a path.
        ShapeError: `scale` is not three numbers.

    Example:
        >>> mk.Mesh("package://arm/hand.stl", scale=(0.001, 0.001, 0.001)).uri
        'package://arm/hand.stl'
    """

    uri: str
    scale: Vector3 = (1.0, 1.0, 1.0)
    path: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.uri, str) or not isinstance(self.path, str | os.PathLike | None):
            raise InvalidArgument(f"Mesh: uri and path must be strings, not {self.uri!r} and {self.path!r}")
        is_three_numbers = np.shape(self.scale) == (3,) and np.asarray(self.scale).dtype.kind in "iuf"
        if not is_three_numbers:  # `mk.check` reports implausible factors
            raise ShapeError(f"Mesh: scale must be three factors along x, y and z, not {self.scale!r}")
        x, y, z = self.scale
        object.__setattr__(self, "scale", (float(x), float(y), float(z)))  # a list or an array is not hashable
        object.__setattr__(self, "path", None if self.path is None else os.fspath(self.path))


@dataclass(frozen=True, slots=True)
class HalfSpace:
    """The half-space below z = 0 of its frame, such as a floor, or a wall if it is rotated.

    Example:
        >>> mk.HalfSpace()
        HalfSpace()
    """


@dataclass(frozen=True, slots=True, init=False, eq=False)
class HeightField:
    """A terrain as a grid of heights, centred at its frame in x and y, and solid down to `bottom`.

    Each cell consists of two triangles; their common edge is the diagonal from the corner with lower x and y to the
    corner with higher x and y, as in MuJoCo.

    Args:
        heights: (rows, columns), m; the row index increases with y, the column index with x; at least 2 of each.
        size: full lengths along x and y, m.
        bottom: z of the bottom, m, not above the lowest height; default: 1 m below the lowest height.

    Attributes:
        heights: (rows, columns), m, read-only.
        size: full lengths along x and y, m.
        bottom: z of the bottom, m.

    Raises:
        ShapeError: an array has the wrong shape, a size is not positive, or `bottom` is too high.
        NotFinite: a number is not finite.

    Example:
        >>> mk.HeightField([[0, 0], [0, 0.1]], size=(2, 2))
        HeightField(2 x 2 heights, size=(2.0, 2.0), bottom=-1)
    """

    heights: Array
    size: tuple[float, float]
    bottom: float

    def __init__(self, heights: ArrayLike, size: tuple[float, float], bottom: float | None = None) -> None:
        grid = as_finite_array("HeightField: heights", heights)
        if grid.ndim != 2 or min(grid.shape) < 2:
            raise ShapeError(
                f"HeightField: heights must have the shape (rows, columns), at least 2 of each, not {grid.shape}"
            )
        if np.shape(size) != (2,):
            raise ShapeError(f"HeightField: size must be two lengths along x and y, not {size!r}")
        x, y = size
        lowest_height = float(grid.min())
        bottom_z = lowest_height - 1.0 if bottom is None else bottom
        check_sizes("HeightField: size", x, y)
        if min(x, y) == 0:
            raise ShapeError(f"HeightField: size must be positive, not {x:g} by {y:g} m")
        if not np.isfinite(bottom_z):
            raise NotFinite(f"HeightField: bottom must be finite, not {bottom_z}")
        if bottom_z > lowest_height:
            raise ShapeError(
                f"HeightField: bottom, {bottom_z:g} m, must not be above the lowest height, {lowest_height:g} m"
            )
        object.__setattr__(self, "heights", grid)
        object.__setattr__(self, "size", (float(x), float(y)))
        object.__setattr__(self, "bottom", float(bottom_z))

    def __eq__(self, other_field: object) -> bool:
        if not isinstance(other_field, HeightField):
            return NotImplemented
        return (self.size, self.bottom) == (other_field.size, other_field.bottom) and np.array_equal(
            self.heights, other_field.heights
        )

    def __hash__(self) -> int:
        return hash((self.size, self.bottom, self.heights.shape, self.heights.tobytes()))

    def __repr__(self) -> str:
        rows, columns = self.heights.shape
        return f"HeightField({rows} x {columns} heights, size={self.size}, bottom={self.bottom:g})"


@dataclass(frozen=True, slots=True, init=False, eq=False)
class ConvexMesh:
    """The convex hull of points.

    Args:
        points: (n, 3), in the frame of the shape, m; at least 4 and not all in one plane; in any order. Points inside
            the hull are allowed.

    Attributes:
        points: (n, 3), m, read-only.

    Raises:
        ShapeError: the points have the wrong shape or are in one plane.
        NotFinite: a number is not finite.

    Example:
        >>> mk.ConvexMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
        ConvexMesh(4 points)
    """

    points: Array

    def __init__(self, points: ArrayLike) -> None:
        cloud = as_finite_array("ConvexMesh: points", points)
        if cloud.ndim != 2 or cloud.shape[1] != 3 or len(cloud) < 4:
            raise ShapeError(f"ConvexMesh: points must have the shape (n, 3) with n at least 4, not {cloud.shape}")
        if is_flat(cloud):
            raise ShapeError("ConvexMesh: all points are in one plane, so the hull has no volume")
        object.__setattr__(self, "points", cloud)

    def __eq__(self, other_mesh: object) -> bool:
        return np.array_equal(self.points, other_mesh.points) if isinstance(other_mesh, ConvexMesh) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.points.shape, self.points.tobytes()))

    def __repr__(self) -> str:
        return f"ConvexMesh({len(self.points)} points)"


Shape = Box | Sphere | Cylinder | Capsule | Mesh | HalfSpace | HeightField | ConvexMesh


def is_flat(points: Array) -> bool:
    """Return whether points (n, 3) are in one plane, within `FLATNESS_RATIO`; fewer than four points always are."""
    extents = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return len(points) < 4 or bool(extents[2] <= FLATNESS_RATIO * extents[0])


@dataclass(frozen=True, slots=True)
class Material:
    """A colour and a texture file; either may be missing.

    Attributes:
        name: name of the material.
        rgba: red, green, blue, alpha, each 0 to 1.
        texture: name of the texture file.

    Example:
        >>> mk.Material("steel", rgba=(0.6, 0.6, 0.7, 1.0)).name
        'steel'
    """

    name: str = ""
    rgba: tuple[float, float, float, float] | None = None
    texture: str | None = None


@dataclass(frozen=True, slots=True)
class ShapeInstance:
    """A shape at a pose on its link.

    Attributes:
        shape: the shape.
        pose: X_link_shape.
        material: colour and texture; None if unknown.
        name: name of the instance.

    Raises:
        InvalidArgument: `shape` is not a shape, or `pose` is not a `Pose`.

    Example:
        >>> mk.ShapeInstance(mk.Sphere(0.1), mk.Pose((0, 0, 0.5))).pose.position
        array([0. , 0. , 0.5])
    """

    shape: Shape
    pose: Pose = field(default_factory=Pose.identity)
    material: Material | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.shape, Shape):
            raise InvalidArgument(f"ShapeInstance: shape must be a shape such as Box((1, 1, 1)), not {self.shape!r}")
        if not isinstance(self.pose, Pose):
            raise InvalidArgument(f"ShapeInstance: pose must be a Pose such as Pose((0, 0, 1)), not {self.pose!r}")


def check_shape_instances(shapes: Iterable[ShapeInstance], label: str) -> tuple[ShapeInstance, ...]:
    """Validate the shapes of a link and return them as a tuple.

    Args:
        shapes: the shapes.
        label: subject of error messages, such as `link 'hand': collisions`.

    Raises:
        InvalidArgument: `shapes` is not a list or another iterable, or an entry is not a `ShapeInstance`.
    """
    if isinstance(shapes, str | Shape | ShapeInstance) or not isinstance(shapes, Iterable):
        raise InvalidArgument(f"{label} must be a list such as [ShapeInstance(Box((1, 1, 1)))], not {shapes!r}")
    instances = tuple(shapes)
    for instance in instances:
        if not isinstance(instance, ShapeInstance):
            raise InvalidArgument(
                f"{label} must be shape instances such as ShapeInstance(Box((1, 1, 1))), not {instance!r}"
            )
    return instances


@dataclass(frozen=True, slots=True)
class Inertial:
    """Mass and inertia of a link.

    Attributes:
        mass: kg.
        pose: X_link_inertia, the centre of mass and the axes of the inertia.
        inertia: (ixx, ixy, ixz, iyy, iyz, izz), kg m^2, about the centre of mass, in the axes of `pose`.

    Raises:
        NotFinite: a number is not finite.
        ShapeError: the mass is negative.

    Example:
        >>> mk.Inertial(2.0, mk.Pose((0, 0, 0.1))).mass
        2.0
    """

    mass: float
    pose: Pose = field(default_factory=Pose.identity)
    inertia: tuple[float, float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if not (np.isfinite(self.mass) and np.isfinite(self.inertia).all()):
            raise NotFinite(f"mass {self.mass} kg and inertia {self.inertia} kg m^2 must be finite")
        if self.mass < 0:
            raise ShapeError(f"mass must not be negative, but is {self.mass} kg")
