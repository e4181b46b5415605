"""Two bodies, and how near they are."""

from __future__ import annotations

from dataclasses import dataclass

from mechanik.spatial.array import Array

TOUCHES = 1e-9
"""m; nearer than this, people are told that two bodies touch."""


@dataclass(frozen=True, slots=True, eq=False)
class Clash:
    """
    Attributes:
        a, b: names of links or obstacles; a is a link that moves.
        gap: how far they are apart, m; below zero how deep they are in each other.
        point_a, point_b: (3,), where on each, in the world; point_b - point_a = gap * normal.
        normal: (3,), unit vector away from a; b shifted along it by -gap just touches.
    """

    a: str
    b: str
    gap: float
    point_a: Array
    point_b: Array
    normal: Array

    @property
    def depth(self) -> float:
        """The shortest way that parts them, m; zero if they are apart."""
        return max(0.0, -self.gap)

    def __str__(self) -> str:
        if abs(self.gap) < TOUCHES:
            return f"{self.a!r} touches {self.b!r}"
        return f"{self.a!r} is {_length(abs(self.gap))} {'inside' if self.gap < 0 else 'from'} {self.b!r}"


def _length(metres: float) -> str:
    return f"{metres:.3g} m" if metres >= 1 else f"{metres * 1e3:.3g} mm"
