"""A link turned in a given way."""

from __future__ import annotations

from typing import Unpack

from mechanik.mechanism.link import Link
from mechanik.objectives.objective import Wish
from mechanik.objectives.placement import Placement
from mechanik.objectives.rotation_rules import FixedRotation
from mechanik.spatial import Pose
from mechanik.spatial.array import ArrayLike


class Orientation(Placement):
    """A link shall be turned as `target`, wherever it is; 3 rows.

    Args:
        target: a quaternion wxyz (4,), a rotation (3, 3), or a pose, whose position does not matter; in the world,
            or in the link `relative_to`.
        at: axes in the link that should be so turned, in the same forms; the link's own if not given.
    """

    __slots__ = ()

    def __init__(
        self,
        link: str | Link,
        target: ArrayLike | Pose,
        at: ArrayLike | Pose = (1.0, 0.0, 0.0, 0.0),
        *,
        relative_to: str | Link | None = None,
        **wish: Unpack[Wish],
    ) -> None:
        super().__init__(link, rotation=FixedRotation(target, at), relative_to=relative_to, **wish)
