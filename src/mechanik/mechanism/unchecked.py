"""Which pairs of links need no look when collisions are sought, and why."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from mechanik.errors import StructureError, WrongKind
from mechanik.mechanism.link import Link

if TYPE_CHECKING:
    from mechanik.mechanism.mechanism import Mechanism


class Unchecked:
    """A part of `Mechanism`. Pairs are kept by link, so that they follow when a link is renamed or removed."""

    _unchecked: dict[tuple[Link, Link], str] | None = None

    @property
    def unchecked(self) -> Mapping[tuple[str, str], str] | None:
        """Pairs of links that may touch, or never do, each with the reason, such as "adjacent" or "always".

        None: nobody has looked; a `Collider` then leaves out neighbours and what touches in every one of some samples.
        `mk.find_unchecked` looks, SRDF files say. Assign a mapping (an empty one: every pair counts).
        """
        mechanism = cast("Mechanism", self)
        if self._unchecked is None:
            return None
        here = {link: (k, name) for k, (name, link) in enumerate(mechanism.links.items())}
        pairs = [(here[a], here[b], why) for (a, b), why in self._unchecked.items() if a in here and b in here]
        ordered = sorted((min(a, b), max(a, b), why) for a, b, why in pairs)
        return MappingProxyType({(a, b): why for (_, a), (_, b), why in ordered})

    @unchecked.setter
    def unchecked(self, pairs: Mapping[tuple[str, str], str] | None) -> None:
        self._unchecked = None if pairs is None else self._checked_pairs(pairs)

    def _checked_pairs(self, pairs: Mapping[tuple[str, str], str]) -> dict[tuple[Link, Link], str]:
        mechanism = cast("Mechanism", self)
        if not isinstance(pairs, Mapping):
            raise WrongKind(f"unchecked maps pairs of links to reasons, {{('hand', 'cup'): 'held'}}, not {pairs!r}")
        found: dict[tuple[Link, Link], str] = {}
        for pair, why in pairs.items():
            if not (isinstance(pair, tuple) and len(pair) == 2):
                raise WrongKind(f"unchecked maps pairs of links to reasons; {pair!r} is no pair")
            if not isinstance(why, str):
                raise WrongKind(f"unchecked maps pairs of links to reasons; for {pair!r} the reason is {why!r}")
            a, b = mechanism.link(pair[0]), mechanism.link(pair[1])
            if a is b:
                raise StructureError(f"unchecked: link {pair[0]!r} is paired with itself")
            found[(a, b) if (b, a) not in found else (b, a)] = why
        return found
