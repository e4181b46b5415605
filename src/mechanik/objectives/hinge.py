"""A link on a hinge: held at a point, free to turn about an axis."""

from __future__ import annotations

from typing import Unpack

from mechanik.mechanism.link import Link
from mechanik.objectives.objective import Wish
from mechanik.objectives.placement import Placement
from mechanik.objectives.position_rules import Fixed
from mechanik.objectives.rotation_rules import Aligned
from mechanik.spatial.array import ArrayLike


class Hinge(Placement):
    """The point `at` of a link shall be at `target`, and its `local_axis` point along `axis`; 5 rows.

    Args:
        target: (3,), m, in the world, or in the link `relative_to`.
        axis: (3,), of any length but zero, where the target is.
        at: (3,), m, in the link.
        local_axis: (3,), of any length but zero, in the link; its z if not given.
    """

    __slots__ = ()

    def __init__(
        self,
        link: str | Link,
        target: ArrayLike,
        axis: ArrayLike,
        at: ArrayLike = (0.0, 0.0, 0.0),
        local_axis: ArrayLike = (0.0, 0.0, 1.0),
        *,
        relative_to: str | Link | None = None,
        **wish: Unpack[Wish],
    ) -> None:
        super().__init__(link, Fixed(target, at), Aligned(axis, local_axis), relative_to=relative_to, **wish)
