"""A point of a link at a point."""

from __future__ import annotations

from typing import Unpack

from mechanik.mechanism.link import Link
from mechanik.objectives.objective import Wish
from mechanik.objectives.placement import Placement
from mechanik.objectives.position_rules import Fixed
from mechanik.spatial.array import ArrayLike


class Point(Placement):
    """The point `at` of a link shall be at `target`; 3 rows.

    Args:
        target: (3,), m, in the world, or in the link `relative_to`.
        at: (3,), m, in the link.
    """

    __slots__ = ()

    def __init__(
        self,
        link: str | Link,
        target: ArrayLike,
        at: ArrayLike = (0.0, 0.0, 0.0),
        *,
        relative_to: str | Link | None = None,
        **wish: Unpack[Wish],
    ) -> None:
        super().__init__(link, Fixed(target, at), relative_to=relative_to, **wish)
