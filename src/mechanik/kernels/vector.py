"""Arithmetic with floats or vectors of eight lanes, so that the same kernel solves one problem or eight at a time.

The argument `like` of a function is a number whose type selects the arithmetic, a float or a vector; its value has no
effect. `load(like, a, i)` returns the number a[i], or a vector of the eight numbers from i on. In plain Python there
are only floats.
"""

from __future__ import annotations

import math
from typing import Any

from .compiler import IS_PLAIN_PYTHON

LANES = 8
"""Number of lanes of a vector."""

if IS_PLAIN_PYTHON:

    def load(like: Any, array: Any, i: Any) -> Any:
        """Return the number array[i], or a vector of the numbers from i on."""
        return array[i]

    def store(array: Any, i: Any, value: Any) -> Any:
        """Write a number to array[i], or the lanes of a vector to the entries from i on."""
        array[i] = value

    def where_less(a: Any, b: Any, x: Any, y: Any) -> Any:
        """Return x where a < b, otherwise y (also where a or b is NaN)."""
        return x if a < b else y

    def root(x: Any) -> Any:
        """Return the square root; NaN for a negative number."""
        return math.sqrt(x) if x >= 0.0 else math.nan

    def broadcast(like: Any, x: Any) -> Any:
        """Return the number x in all lanes."""
        return x

    def lanes_of(like: Any) -> Any:
        """Return the number of lanes: 1 or 8."""
        return 1

    def widen(x: Any) -> Any:
        """Convert a vector of 32-bit floats to 64-bit floats."""
        return x

    def eight_doubles(x: Any) -> Any:
        """Return the number x in eight lanes of 64 bits."""
        return x

    def eight_floats(x: Any) -> Any:
        """Return the number x in eight lanes of 32 bits."""
        return x

else:
    from .vector_intrinsics import broadcast, broadcast_intrinsic, lanes_of, load, root, store, where_less, widen

    eight_doubles, eight_floats = broadcast_intrinsic(LANES, 64), broadcast_intrinsic(LANES, 32)

__all__ = [
    "LANES",
    "broadcast",
    "eight_doubles",
    "eight_floats",
    "lanes_of",
    "load",
    "root",
    "store",
    "where_less",
    "widen",
]
