"""A point of a link on a line."""

from __future__ import annotations

from typing import Unpack

from mechanik.mechanism.link import Link
from mechanik.objectives.objective import Wish
from mechanik.objectives.placement import Placement
from mechanik.objectives.position_rules import Linear
from mechanik.spatial.array import ArrayLike


class OnLine(Placement):
    """The point `at` of a link shall lie on the line through `target` along `direction`; 2 rows.

    Args:
        target: (3,), m, a point of the line, in the world, or in the link `relative_to`.
        direction: (3,), of any length but zero.
        at: (3,), m, in the link.
    """

    __slots__ = ()

    def __init__(
        self,
        link: str | Link,
        target: ArrayLike,
        direction: ArrayLike,
        at: ArrayLike = (0.0, 0.0, 0.0),
        *,
        relative_to: str | Link | None = None,
        **wish: Unpack[Wish],
    ) -> None:
        super().__init__(link, Linear(target, direction, at), relative_to=relative_to, **wish)
