"""How large a mechanism may be: one that a page sends, and one that is looked into as a whole."""

from __future__ import annotations

from mechanik.errors import FormatError
from mechanik.mechanism import Mechanism

MOST_LINKS = 1_000
MOST_FREEDOMS = 1_000
MOST_LOOPS = 200
"""Of a mechanism that a page sends. The time to set one up grows as the square of these, and a session that sets one up
takes it from all others."""
LOOKED_INTO = 150
"""Freedoms of a mechanism with loops of which mobility and structure are worked out. They come from singular values of
the whole, in a time that grows as the cube: 600 freedoms with 100 loops take seconds, 1500 with 250 minutes."""


def check_size(mechanism: Mechanism) -> None:
    """Refuse what is larger than a page may send."""
    counted = (
        ("links", len(mechanism.links), MOST_LINKS),
        ("freedoms", mechanism.nv, MOST_FREEDOMS),
        ("loops", len(mechanism.closures), MOST_LOOPS),
    )
    for what, count, most in counted:
        if count > most:
            raise FormatError(
                f"this has {count} {what}; at most {most} are taken from a page. In Python, mk.Studio takes more"
            )


def is_looked_into(mechanism: Mechanism) -> bool:
    """Whether its mobility and structure are worked out for people to read."""
    return mechanism.nv <= LOOKED_INTO or not (mechanism.closures or mechanism.laws)
