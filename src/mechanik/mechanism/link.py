"""A rigid body between joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mechanik.mechanism.frame import Frame
from mechanik.mechanism.shapes import Inertial, PlacedShape
from mechanik.spatial.array import ArrayLike

if TYPE_CHECKING:
    from mechanik.mechanism.closure import Closure


class Link(Frame):
    """A rigid body: it holds joints and goals, and knows the closures that end on it.

    Args:
        visuals, collisions: what it looks like and what it bumps with; data only.
        inertial: mass and where it is; None when the file does not say.
    """

    kind = "link"
    plain = ("visuals", "collisions", "inertial")

    def __init__(
        self,
        name: str = "",
        *,
        position: ArrayLike = (0, 0, 0),
        wxyz: ArrayLike = (1, 0, 0, 0),
        visuals: Sequence[PlacedShape] = (),
        collisions: Sequence[PlacedShape] = (),
        inertial: Inertial | None = None,
    ) -> None:
        super().__init__(name, position=position, wxyz=wxyz)
        self.visuals = tuple(visuals)
        self.collisions = tuple(collisions)
        self.inertial = inertial
        self._closures: list[Closure] = []

    @property
    def closures(self) -> tuple[Closure, ...]:
        """The closures and goals that end on this link."""
        return tuple(self._closures)

    def _accepts(self, child: Frame) -> str:
        if child.kind not in ("joint", "goal"):
            return "a link holds joints and goals"
        closure = getattr(child, "closure", None)
        return "that is closed onto this link" if closure is not None and closure.link is self else ""
