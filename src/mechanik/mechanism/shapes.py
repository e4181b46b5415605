"""What links look like, bump with and weigh: data that readers fill and viewers draw."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from mechanik.errors import NotFinite, ShapeError, WrongKind
from mechanik.spatial import Pose
from mechanik.spatial.array import Array, ArrayLike

Vector3 = tuple[float, float, float]

FLAT = 1e-9
"""Points whose thinnest extent is this share of their largest, or less, hold no volume."""


def _check_lengths(owner: object, *lengths: float) -> None:
    """Sizes of solids: finite and not negative."""
    if not all(isinstance(length, int | float | np.integer | np.floating) for length in lengths):
        raise ShapeError(f"{owner}: every size must be a number")
    if not all(np.isfinite(length) for length in lengths):
        raise NotFinite(f"{owner}: every size must be finite")
    if any(length < 0 for length in lengths):
        raise ShapeError(f"{owner}: a size cannot be negative")


def _read_only(owner: str, values: ArrayLike) -> Array:
    """A copy that nobody can change, so that it may be part of a value; no minus zeros, which are equal to others."""
    try:
        array = np.array(values, dtype=np.float64) + 0.0
    except (TypeError, ValueError):
        raise ShapeError(f"{owner} must be numbers, in rows of one length") from None
    if not np.isfinite(array).all():
        raise NotFinite(f"{owner} must be finite")
    array.setflags(write=False)
    return array


@dataclass(frozen=True, slots=True)
class Box:
    """Centred at its frame; full edge lengths, m."""

    size: Vector3

    def __post_init__(self) -> None:
        if np.shape(self.size) != (3,):
            raise ShapeError(f"Box: size is three edge lengths, x, y and z, not {self.size!r}")
        x, y, z = self.size
        _check_lengths(self, x, y, z)
        object.__setattr__(self, "size", (float(x), float(y), float(z)))  # a list or an array would not do as a value


@dataclass(frozen=True, slots=True)
class Sphere:
    radius: float

    def __post_init__(self) -> None:
        _check_lengths(self, self.radius)


@dataclass(frozen=True, slots=True)
class Cylinder:
    """Centred at its frame, along z."""

    radius: float
    length: float

    def __post_init__(self) -> None:
        _check_lengths(self, self.radius, self.length)


@dataclass(frozen=True, slots=True)
class Capsule:
    """Centred at its frame, along z; `length` is that of the straight part."""

    radius: float
    length: float

    def __post_init__(self) -> None:
        _check_lengths(self, self.radius, self.length)


@dataclass(frozen=True, slots=True)
class Mesh:
    """A file of triangles. `uri` is what the model says, `path` the file that was found for it, if any."""

    uri: str
    scale: Vector3 = (1.0, 1.0, 1.0)
    path: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.uri, str) or not isinstance(self.path, str | os.PathLike | None):
            raise WrongKind(f"Mesh: the uri and the path are texts, not {self.uri!r} and {self.path!r}")
        numbers = np.shape(self.scale) == (3,) and np.asarray(self.scale).dtype.kind in "iuf"
        if not numbers:  # what is absurd among them `check` says
            raise ShapeError(f"Mesh: scale is three factors, along x, y and z, not {self.scale!r}")
        x, y, z = self.scale
        object.__setattr__(self, "scale", (float(x), float(y), float(z)))  # a list or an array would not do as a value
        object.__setattr__(self, "path", None if self.path is None else os.fspath(self.path))


@dataclass(frozen=True, slots=True)
class HalfSpace:
    """All that is below z = 0 of its frame: a floor, or a wall if it is turned."""


@dataclass(frozen=True, slots=True, init=False, eq=False)
class HeightField:
    """Ground as a grid of heights, centred at its frame, solid from there down to `bottom`.

    Each cell is two triangles; its diagonal goes from the corner at lower x and y to that at higher x and y, as in
    MuJoCo.

    Args:
        heights: (rows, columns), m; rows go along y, columns along x, both from the lower end; at least 2 of each.
        size: from end to end along x and y, m.
        bottom: z, m, not above the lowest height; 1 m below that if it is not given.
    """

    heights: Array
    size: tuple[float, float]
    bottom: float

    def __init__(self, heights: ArrayLike, size: tuple[float, float], bottom: float | None = None) -> None:
        grid = _read_only("HeightField: heights", heights)
        if grid.ndim != 2 or min(grid.shape) < 2:
            raise ShapeError(f"HeightField: heights are (rows, columns), at least 2 of each, not {grid.shape}")
        if np.shape(size) != (2,):
            raise ShapeError(f"HeightField: size is two lengths, along x and y, not {size!r}")
        x, y = size
        lowest = float(grid.min())
        down = lowest - 1.0 if bottom is None else bottom
        _check_lengths("HeightField: size", x, y)
        if min(x, y) == 0:
            raise ShapeError(f"HeightField: a size of {x:g} by {y:g} m is no ground")
        if not np.isfinite(down):
            raise NotFinite(f"HeightField: bottom is {down}")
        if down > lowest:
            raise ShapeError(f"HeightField: bottom is at {down:g} m, above the lowest height, {lowest:g} m")
        object.__setattr__(self, "heights", grid)
        object.__setattr__(self, "size", (float(x), float(y)))
        object.__setattr__(self, "bottom", float(down))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HeightField):
            return NotImplemented
        return (self.size, self.bottom) == (other.size, other.bottom) and np.array_equal(self.heights, other.heights)

    def __hash__(self) -> int:
        return hash((self.size, self.bottom, self.heights.shape, self.heights.tobytes()))

    def __repr__(self) -> str:
        rows, columns = self.heights.shape
        return f"HeightField({rows} x {columns} heights, size={self.size}, bottom={self.bottom:g})"


@dataclass(frozen=True, slots=True, init=False, eq=False)
class ConvexMesh:
    """The convex hull of points.

    Args:
        points: (n, 3), m, in its frame, at least 4 and not all in one plane; any order, some may lie inside.
    """

    points: Array

    def __init__(self, points: ArrayLike) -> None:
        cloud = _read_only("ConvexMesh: points", points)
        if cloud.ndim != 2 or cloud.shape[1] != 3 or len(cloud) < 4:
            raise ShapeError(f"ConvexMesh: points are (n, 3), at least 4, not {cloud.shape}")
        if is_flat(cloud):
            raise ShapeError("ConvexMesh: all points are in one plane, so that they hold no volume")
        object.__setattr__(self, "points", cloud)

    def __eq__(self, other: object) -> bool:
        return np.array_equal(self.points, other.points) if isinstance(other, ConvexMesh) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.points.shape, self.points.tobytes()))

    def __repr__(self) -> str:
        return f"ConvexMesh({len(self.points)} points)"


Shape = Box | Sphere | Cylinder | Capsule | Mesh | HalfSpace | HeightField | ConvexMesh


def is_flat(points: Array) -> bool:
    """Whether points (n, 3) are in one plane, or nearly (see `FLAT`)."""
    extents = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return len(points) < 4 or bool(extents[2] <= FLAT * extents[0])


@dataclass(frozen=True, slots=True)
class Material:
    """A colour (r, g, b, a, each 0 to 1) and a texture file, either of which may be missing."""

    name: str = ""
    rgba: tuple[float, float, float, float] | None = None
    texture: str | None = None


@dataclass(frozen=True, slots=True)
class PlacedShape:
    """A shape at X_link_shape on its link."""

    shape: Shape
    pose: Pose = field(default_factory=Pose.identity)
    material: Material | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.shape, Shape):
            raise WrongKind(f"PlacedShape: a shape is needed, such as Box((1, 1, 1)), not {self.shape!r}")
        if not isinstance(self.pose, Pose):
            raise WrongKind(f"PlacedShape: the pose is a Pose, such as Pose((0, 0, 1)), not {self.pose!r}")


def placed_shapes(given: Iterable[PlacedShape], owner: str) -> tuple[PlacedShape, ...]:
    """What a link is given to look like or to bump with; refused if it is anything but placed shapes.

    Args:
        owner: for messages, such as `link 'hand': collisions`.
    """
    if isinstance(given, str | Shape | PlacedShape) or not isinstance(given, Iterable):
        raise WrongKind(f"{owner} are a list, such as [PlacedShape(Box((1, 1, 1)))], not {given!r}")
    found = tuple(given)
    for one in found:
        if not isinstance(one, PlacedShape):
            raise WrongKind(f"{owner} are placed shapes, such as PlacedShape(Box((1, 1, 1))), not {one!r}")
    return found


@dataclass(frozen=True, slots=True)
class Inertial:
    """Mass in kg at `pose` (X_link_inertia), inertia (ixx, ixy, ixz, iyy, iyz, izz) in kg m^2 about it."""

    mass: float
    pose: Pose = field(default_factory=Pose.identity)
    inertia: tuple[float, float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if not (np.isfinite(self.mass) and np.isfinite(self.inertia).all()):
            raise NotFinite(f"mass {self.mass} and inertia {self.inertia} must be finite")
        if self.mass < 0:
            raise ShapeError(f"a mass of {self.mass} kg: it cannot be negative")
