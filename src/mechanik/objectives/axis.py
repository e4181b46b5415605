"""An axis of a link along a direction."""

from __future__ import annotations

from typing import Unpack

from mechanik.mechanism.link import Link
from mechanik.objectives.objective import Wish
from mechanik.objectives.placement import Placement
from mechanik.objectives.rotation_rules import Aligned
from mechanik.spatial.array import ArrayLike


class Axis(Placement):
    """The direction `local` of a link shall point along `target`, the link being anywhere; 2 rows.

    Args:
        target: (3,), of any length but zero, in the world, or in the link `relative_to`.
        local: (3,), of any length but zero, in the link; its z if not given.
    """

    __slots__ = ()

    def __init__(
        self,
        link: str | Link,
        target: ArrayLike,
        local: ArrayLike = (0.0, 0.0, 1.0),
        *,
        relative_to: str | Link | None = None,
        **wish: Unpack[Wish],
    ) -> None:
        super().__init__(link, rotation=Aligned(target, local), relative_to=relative_to, **wish)
