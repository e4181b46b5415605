"""What the links of a mechanism bump with, in figures: shapes, pairs of links, and pairs that are left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from mechanik.cli.output import count
from mechanik.collision.pairs import SAME, Pair, joined_pairs
from mechanik.mechanism import Mechanism


@dataclass(frozen=True, slots=True)
class Bumping:
    """
    Attributes:
        shapes: of all links.
        links: those that have shapes.
        pairs: of links that are watched when a mechanism is to be kept off itself.
        left_out: pairs of links with shapes that are not, with reasons.
        is_all: whether those that always touch are among them.
    """

    shapes: int
    links: int
    pairs: int
    left_out: dict[Pair, str]
    is_all: bool

    def __str__(self) -> str:
        if not self.shapes:
            return "no shapes to bump with"
        why = Counter(self.left_out.values())
        reasons = f" ({', '.join(f'{many} {reason}' for reason, many in why.most_common())})" if why else ""
        more = "" if self.is_all or not self.pairs else "; --pairs finds those that always touch, too"
        return (
            f"{count(self.shapes, 'shape')} to bump with on {count(self.links, 'link')}; "
            f"{count(self.pairs, 'pair')} of links can bump, {len(self.left_out)} left out{reasons}{more}"
        )


def bumping_of(mechanism: Mechanism, looks: bool) -> Bumping:
    """
    Args:
        looks: whether to find out which pairs always touch if the mechanism does not say; it needs kernels and meshes.
    """
    names = [name for name, link in mechanism.links.items() if link.collisions]
    shapes = sum(len(mechanism.links[name].collisions) for name in names)
    known = mechanism.unchecked
    if looks and names:
        from mechanik.collision import Collider

        left_out = Collider(mechanism).left_out
    else:
        left_out = joined_pairs(mechanism, names)
        if known is not None:
            left_out = {**{pair: why for pair, why in left_out.items() if why == SAME}, **known}
    have = set(names)
    once = {frozenset(pair): (pair, why) for pair, why in left_out.items() if have.issuperset(pair)}
    watched = len(names) * (len(names) - 1) // 2 - len(once)
    return Bumping(shapes, len(names), watched, dict(once.values()), looks or known is not None)


def as_data(bumping: Bumping) -> dict[str, object]:
    """For programs."""
    return {
        "shapes": bumping.shapes,
        "links": bumping.links,
        "pairs": bumping.pairs,
        "left_out": [{"links": list(pair), "reason": why} for pair, why in bumping.left_out.items()],
    }
