"""Points of the plane from distances: where two circles cross, which is how planar linkages are put together."""

from __future__ import annotations

import math

from mechanik.errors import StructureError

Point = tuple[float, float]


def polar(start: Point, length: float, angle: float) -> Point:
    return start[0] + length * math.cos(angle), start[1] + length * math.sin(angle)


def heading(start: Point, end: Point) -> float:
    """The angle from x of the way from one point to another; rad."""
    return math.atan2(end[1] - start[1], end[0] - start[0])


def meet(what: str, a: Point, reach_a: float, b: Point, reach_b: float) -> Point:
    """Where circles about a and b cross, on the left of the way from a to b.

    Args:
        what: the mechanism, for the error when they do not cross.
    """
    x, y = b[0] - a[0], b[1] - a[1]
    apart = math.hypot(x, y)
    along = (apart**2 + reach_a**2 - reach_b**2) / (2 * apart) if apart > 0 else math.inf
    if not abs(along) <= reach_a:
        raise StructureError(
            f"{what} cannot be assembled: links of {reach_a:g} and {reach_b:g} do not meet over a gap of {apart:g}"
        )
    aside = math.sqrt(reach_a**2 - along**2)
    return a[0] + (along * x - aside * y) / apart, a[1] + (along * y + aside * x) / apart


def half_turn(angle: float) -> float:
    """The same direction, within half a turn of zero."""
    return math.remainder(angle, 2 * math.pi)
