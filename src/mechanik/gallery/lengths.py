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
