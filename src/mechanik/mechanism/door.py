"""The door through which numbers enter the graph: shaped, finite, or refused by name."""

from __future__ import annotations

import math

import numpy as np

from mechanik.errors import NotFinite, ShapeError
from mechanik.spatial.array import Array, ArrayLike


def as_vector(values: ArrayLike, size: int, what: str) -> Array:
    """A finite float64 vector of `size`, copied."""
    try:
        vector = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{what} takes {size} numbers, not {values!r}") from None
    if vector.shape != (size,):
        raise ShapeError(f"{what} takes {size} numbers, not an array of shape {vector.shape}")
    if not np.isfinite(vector).all():
        raise NotFinite(f"{what} is {vector.tolist()}; every number must be finite")
    return vector


def as_number(value: object, what: str, infinite: bool = False) -> float:
    """A float; infinities only where `infinite` allows them."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ShapeError(f"{what}: {value!r} is not a number") from None
    if math.isnan(number) or (math.isinf(number) and not infinite):
        raise NotFinite(f"{what} is {number}")
    return number


def as_numbers(given: tuple[ArrayLike, ...], size: int, what: str, infinite: bool = False) -> list[float]:
    """`1, 2`, or `[1, 2]`, or a single number, as a list of `size` floats."""
    try:
        vector = np.array(given[0] if len(given) == 1 else given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{what}: {given!r} are not numbers") from None
    if vector.ndim > 1 or vector.size != size:
        raise ShapeError(f"{what}: {vector.size} given, but there are {size} freedoms")
    return [as_number(value, what, infinite) for value in vector.reshape(-1)]


def read_only(array: Array) -> Array:
    """The same array, which can no longer be written into by those who read it."""
    array.flags.writeable = False
    return array


def counted(number: int, what: str) -> str:
    """For people: 1 link, 2 links."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
