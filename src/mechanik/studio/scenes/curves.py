"""Lines that a scene draws into the world."""

from __future__ import annotations

from mechanik.spatial.array import Array
from mechanik.studio.messages.events import CurveInfo

INK = (0.85, 0.2, 0.45, 1.0)
FAINT = (0.4, 0.5, 0.65, 0.8)


def as_curve(
    name: str, points: Array, *, closed: bool = False, rgba: tuple[float, float, float, float] = INK
) -> CurveInfo:
    """points: (n, 3), m, in the world."""
    return CurveInfo(name, [float(number) for number in points.ravel()], rgba, closed)
