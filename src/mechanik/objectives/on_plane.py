"""A point of a link on a plane."""

from __future__ import annotations

from typing import Unpack

from mechanik.mechanism.link import Link
from mechanik.objectives.objective import Wish
from mechanik.objectives.placement import Placement
from mechanik.objectives.position_rules import Planar
from mechanik.spatial.array import ArrayLike


class OnPlane(Placement):
    """The point `at` of a link shall lie in the plane through `target` with that normal; 1 row.

    Args:
        target: (3,), m, a point of the plane, in the world, or in the link `relative_to`.
        normal: (3,), of any length but zero.
        at: (3,), m, in the link.
    """

    __slots__ = ()

    def __init__(
        self,
        link: str | Link,
        target: ArrayLike,
        normal: ArrayLike,
        at: ArrayLike = (0.0, 0.0, 0.0),
        *,
        relative_to: str | Link | None = None,
        **wish: Unpack[Wish],
    ) -> None:
        super().__init__(link, Planar(target, normal, at), relative_to=relative_to, **wish)
