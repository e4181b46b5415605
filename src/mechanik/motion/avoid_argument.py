"""The argument `avoid` of `follow`, `plan` and `Tracker`: obstacles, or a collider of the same mechanism."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mechanik.errors import InvalidArgument, StructureError
from mechanik.model import Mechanism

if TYPE_CHECKING:
    from mechanik.collision import Collider
    from mechanik.collision.collision_pairs import Avoid


def as_collider(
    mechanism: Mechanism,
    avoid: Avoid | Collider | None,
    allow: Iterable[tuple[str, str]],
    forbid: Iterable[tuple[str, str]],
) -> Collider | None:
    """The collider given as `avoid`, or a new one for the obstacles in it; None if nothing is avoided.

    Args:
        allow, forbid: pairs of names that are excluded from the collision check, or included although excluded by
            default.

    Raises:
        StructureError: `avoid` is a collider of another mechanism.
        InvalidArgument: `avoid` is a collider, and there are pairs in `allow` or `forbid`.
    """
    if avoid is None:
        return None
    from mechanik.collision import Collider

    if not isinstance(avoid, Collider):
        return Collider(mechanism, avoid, allow=allow, forbid=forbid)
    if avoid.mechanism is not mechanism:
        raise StructureError("avoid is a collider of another mechanism; build one for this mechanism")
    if tuple(allow) or tuple(forbid):
        raise InvalidArgument("allow and forbid have no effect on a collider; give them to Collider(...)")
    return avoid
