"""A link laid on a surface, free to slide and to turn on it."""

from __future__ import annotations

from typing import Unpack

from mechanik.mechanism.link import Link
from mechanik.objectives.objective import Wish
from mechanik.objectives.placement import Placement
from mechanik.objectives.position_rules import Planar
from mechanik.objectives.rotation_rules import Aligned
from mechanik.spatial.array import ArrayLike


class Surface(Placement):
    """The point `at` of a link shall lie in a plane, and its `local_normal` along the plane's normal; 3 rows.

    Args:
        target: (3,), m, a point of the plane, in the world, or in the link `relative_to`.
        normal: (3,), of any length but zero, where the target is.
        at: (3,), m, in the link.
        local_normal: (3,), of any length but zero, in the link; its z if not given.
    """

    __slots__ = ()

    def __init__(
        self,
        link: str | Link,
        target: ArrayLike,
        normal: ArrayLike,
        at: ArrayLike = (0.0, 0.0, 0.0),
        local_normal: ArrayLike = (0.0, 0.0, 1.0),
        *,
        relative_to: str | Link | None = None,
        **wish: Unpack[Wish],
    ) -> None:
        super().__init__(
            link,
            Planar(target, normal, at),
            Aligned(normal, local_normal),
            relative_to=relative_to,
            **wish,
        )
