"""The door for the dimensions that a mechanism of the gallery is made with."""

from __future__ import annotations

import math

from mechanik.errors import StructureError


def check_lengths(what: str, **lengths: float) -> None:
    """Each a positive, finite number; or an error that names the mechanism and the dimension."""
    for name, length in lengths.items():
        if not isinstance(length, int | float):
            raise StructureError(f"{what}: {name} is {length!r}; a length is a number")
        if not (math.isfinite(length) and length > 0):
            raise StructureError(f"{what}: {name} is {length}; a length must be positive and finite")


def check_point(what: str, name: str, point: tuple[float, float]) -> None:
    """Two finite numbers; m."""
    try:
        x, y = point
        finite = math.isfinite(x) and math.isfinite(y)
    except (TypeError, ValueError):
        finite = False
    if not finite:
        raise StructureError(f"{what}: {name}={point!r}; it is (x, y), two finite numbers")


def check_angles(what: str, **angles: float) -> None:
    """Each a finite number; rad."""
    for name, angle in angles.items():
        if not isinstance(angle, int | float):
            raise StructureError(f"{what}: {name} is {angle!r}; an angle is a number")
        if not math.isfinite(angle):
            raise StructureError(f"{what}: {name} is {angle}; an angle must be finite")
