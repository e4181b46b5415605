"""What links look like, bump with and weigh: data that readers fill and viewers draw."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mechanik.errors import NotFinite, ShapeError
from mechanik.spatial import Pose

Vector3 = tuple[float, float, float]


def _check_lengths(owner: object, *lengths: float) -> None:
    """Sizes of solids: finite and not negative."""
    if not all(isinstance(length, int | float | np.integer | np.floating) for length in lengths):
        raise ShapeError(f"{owner}: every size must be a number")
    if not all(np.isfinite(length) for length in lengths):
        raise NotFinite(f"{owner}: every size must be finite")
    if any(length < 0 for length in lengths):
        raise ShapeError(f"{owner}: a size cannot be negative")


@dataclass(frozen=True, slots=True)
class Box:
    """Centred at its frame; full edge lengths, m."""

    size: Vector3

    def __post_init__(self) -> None:
        _check_lengths(self, *self.size)


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


Shape = Box | Sphere | Cylinder | Capsule | Mesh


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
