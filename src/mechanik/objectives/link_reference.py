"""Links that objectives refer to by name: their validation."""

from __future__ import annotations

from mechanik.errors import InvalidArgument, ObjectiveError, UnknownName
from mechanik.model.frame import Link
from mechanik.model.mechanism import Mechanism


def link_name(link: str | Link, what: str = "link") -> str:
    """Return the name of a link that is given by name or as a `Link`; objectives store names."""
    name = link.name if isinstance(link, Link) else link
    if not isinstance(name, str):
        raise InvalidArgument(f"{what} must be the name of a link or a Link, not {link!r}")
    if not name:
        raise ObjectiveError(f"{what} has no name; name the link first, since objectives store the names of links")
    return name


def check_link(mechanism: Mechanism, name: str) -> str:
    """Return `name` if the mechanism has a link of that name, else raise `UnknownName`."""
    if name not in mechanism.links:
        raise UnknownName("link", name, mechanism.links)
    return name
