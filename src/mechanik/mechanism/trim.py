"""Cut off what never moves on its own."""

from __future__ import annotations

from collections.abc import Iterable

from mechanik.mechanism.joint import Joint
from mechanik.mechanism.mechanism import Mechanism


def trim(mechanism: Mechanism, keep: Iterable[str] = ()) -> list[str]:
    """Remove the branches that hold no moving joint, no closure and no goal; returns the names of the links removed.

    A link that hangs on a moving joint stays, as do the roots and the links named in `keep`. What is cut off takes
    its mass with it.
    """
    kept = {mechanism.link(name) for name in ([keep] if isinstance(keep, str) else keep)}
    removed: list[str] = []
    leaves = [link for link in mechanism.links.values() if not link.children]
    while leaves:
        link = leaves.pop()
        joint = link.parent
        if not isinstance(joint, Joint) or joint.dof or link.closures or link in kept or joint.parent is None:
            continue
        above = joint.parent
        above.remove_child(joint)
        removed.append(link.name)
        if not above.children and above.kind == "link":
            leaves.append(above)  # type: ignore[arg-type]
    return removed
