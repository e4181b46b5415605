"""A number that is one float or eight: kernels written over it solve one problem, or eight at a time.

A kernel takes a number `like`, which is a float or a vector: `load(like, a, i)` is one number of an array, or the eight
from there on. In plain Python there are only floats.
"""

from __future__ import annotations

import math
from typing import Any

from .compiler import IS_PLAIN

LANES = 8

if IS_PLAIN:

    def load(like: Any, array: Any, i: Any) -> Any:
        """One number, or the lanes from there on."""
        return array[i]

    def store(array: Any, i: Any, value: Any) -> Any:
        """Write one number, or the lanes from there on."""
        array[i] = value

    def where_less(a: Any, b: Any, x: Any, y: Any) -> Any:
        """x where a < b, else y; y also where one is not a number."""
        return x if a < b else y

    def root(x: Any) -> Any:
        """The square root; not a number below zero."""
        return math.sqrt(x) if x >= 0.0 else math.nan

    def spread(like: Any, x: Any) -> Any:
        """The number x, in all lanes."""
        return x

    def lanes_of(like: Any) -> Any:
        """How many numbers it is: 1 or 8."""
        return 1

    def widen(x: Any) -> Any:
        """Floats of 32 bits as floats of 64."""
        return x

    def eight_doubles(x: Any) -> Any:
        """A number in eight lanes."""
        return x

    def eight_floats(x: Any) -> Any:
        """A number in eight lanes of 32 bits."""
        return x

else:
    from .vector_intrinsics import lanes_of, load, root, splat, spread, store, where_less, widen

    eight_doubles, eight_floats = splat(LANES, 64), splat(LANES, 32)

__all__ = [
    "LANES",
    "eight_doubles",
    "eight_floats",
    "lanes_of",
    "load",
    "root",
    "spread",
    "store",
    "where_less",
    "widen",
]
