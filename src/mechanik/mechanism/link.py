"""A rigid body between joints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mechanik.mechanism.frame import Frame
from mechanik.mechanism.shapes import Inertial, PlacedShape, placed_shapes
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
    plain = ("inertial",)

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
        self.visuals = visuals
        self.collisions = collisions
        self.inertial = inertial
        self._closures: list[Closure] = []

    @property
    def visuals(self) -> tuple[PlacedShape, ...]:
        """What it looks like."""
        return self._visuals

    @visuals.setter
    def visuals(self, shapes: Iterable[PlacedShape]) -> None:
        self._visuals = placed_shapes(shapes, f"link {self.name!r}: visuals")

    @property
    def collisions(self) -> tuple[PlacedShape, ...]:
        """What it bumps with."""
        return self._collisions

    @collisions.setter
    def collisions(self, shapes: Iterable[PlacedShape]) -> None:
        self._collisions = placed_shapes(shapes, f"link {self.name!r}: collisions")

    @property
    def closures(self) -> tuple[Closure, ...]:
        """The closures and goals that end on this link."""
        return tuple(self._closures)

    def _accepts(self, child: Frame) -> str:
        if child.kind not in ("joint", "goal"):
            return "a link holds joints and goals"
        closure = getattr(child, "closure", None)
        return "that is closed onto this link" if closure is not None and closure.link is self else ""
