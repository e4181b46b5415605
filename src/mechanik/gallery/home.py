"""Where a mechanism of the gallery stands when it is made."""

from __future__ import annotations

from mechanik.mechanism import Mechanism
from mechanik.spatial.array import ArrayLike


def stand(mechanism: Mechanism, q: ArrayLike | None = None) -> Mechanism:
    """Move to q, or stay, and remember that as the configuration "home"."""
    if q is not None:
        mechanism.q = q
    mechanism.configurations["home"] = mechanism.q
    return mechanism
