"""Who is kept off whom: the pairs that count, and the tables made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanik.collision.body import Body
from mechanik.collision.pairs import SAME, Pair, joined_pairs
from mechanik.collision.sampling import spread, unchecked_at
from mechanik.collision.tables import Tables, build_tables
from mechanik.errors import StructureError
from mechanik.kernels.distance import watch_layout as at
from mechanik.mechanism.mechanism import Mechanism
from mechanik.mechanism.shapes import PlacedShape

LOOKS = 100
"""Configurations at which links are looked at before pairs that always touch are left out."""
LOOKS_AT_LOOPS = 10
"""The same for mechanisms with loops, each of which takes a solver some milliseconds to shut."""


@dataclass(frozen=True, eq=False)
class Keeping:
    """
    Attributes:
        tables: for the kernels.
        bodies: links, then obstacles.
        left_out: pairs of links, with the reason.
    """

    tables: Tables
    bodies: tuple[str, ...]
    left_out: dict[Pair, str]

    @cached_property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return self.tables.arrays

    @cached_property
    def count(self) -> int:
        """How many pairs are checked."""
        return int(self.tables.kept_off.sum()) + len(self.tables.partners)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        tables, names = self.tables, [one.name for one in self.tables.members]
        found = [(names[a], names[tables.moving + b]) for a, b in np.argwhere(tables.kept_off).tolist()]
        for guard in tables.guards:
            a, first, count = guard[[at.GUARDED, at.FIRST_PARTNER, at.PARTNERS]].tolist()
            found += [(names[a], names[b]) for b in tables.partners[first : first + max(0, count)].tolist()]
        return tuple(found)

    @cached_property
    def row_names(self) -> tuple[str, ...]:
        tables, names, found = self.tables, [one.name for one in self.tables.members], list[str]()
        for a, first, count, _, rows in tables.guards.tolist():
            if count == 1:
                found.append(f"{names[a]} - {names[tables.partners[first]]}")
            else:
                found += [f"{names[a]} - {'world' if count < 0 else 'links'} {k + 1}" for k in range(rows)]
        return tuple(found)

    def with_body(self, body: Body) -> Keeping:
        """With an obstacle elsewhere."""
        return replace(self, tables=self.tables.with_body(body))


def keep_apart(
    mechanism: Mechanism,
    links: Sequence[Body],
    obstacles: Sequence[Body],
    itself: bool,
    allow: set[Pair],
    forbid: set[Pair],
) -> Keeping:
    """
    Args:
        itself: whether links are kept off each other.
        allow, forbid: pairs of names, either way round.
    """
    for a, b in sorted(allow & forbid):
        raise StructureError(f"{a!r} and {b!r} are allowed to touch and forbidden to; leave one out")
    left_out = _left_out(mechanism, links) if itself else {}
    moving = [one for one in links if one.node >= 0]
    standing = [*(one for one in links if one.node < 0), *obstacles]
    _refuse_idle(forbid, {one.name for one in moving}, {one.name for one in standing})
    walls = {one.name for one in obstacles}

    def counts(a: str, b: str) -> bool:
        if (a, b) in forbid:
            return True
        if (a, b) in allow or (a, b) in left_out or (b, a) in left_out:
            return False
        return itself or a in walls or b in walls

    kept_off = np.ones((len(moving), len(standing)), np.bool_)
    special = {name for pair in (*left_out, *allow, *forbid) for name in pair}
    for k, b in enumerate(standing):  # most obstacles are ordinary, and there may be ten thousand
        if b.name in special or b.name not in walls:
            kept_off[:, k] = [counts(a.name, b.name) for a in moving]
    pairs = [(i, j) for i, j in combinations(range(len(moving)), 2) if counts(moving[i].name, moving[j].name)]
    tables = build_tables(mechanism.kinematics, moving, standing, kept_off, pairs)
    names = (*(one.name for one in links), *(one.name for one in obstacles))
    return Keeping(tables, names, left_out)


def _left_out(mechanism: Mechanism, links: Sequence[Body]) -> dict[Pair, str]:
    """What the mechanism says, and pairs that are one rigid body; if it says nothing, what some samples show."""
    known = mechanism.unchecked
    if known is None:
        return _seen(mechanism, links)
    welded = {pair: why for pair, why in joined_pairs(mechanism, [one.name for one in links]).items() if why == SAME}
    return {**welded, **known}


def _seen(mechanism: Mechanism, links: Sequence[Body]) -> dict[Pair, str]:
    """What some samples show; kept while neither the joints nor the shapes change, as shutting loops takes its time."""
    shapes = tuple(link.collisions for link in mechanism.links.values())
    kept = mechanism._kept.get("unchecked")
    if not (isinstance(kept, _Seen) and kept.shapes == shapes):
        looks = LOOKS_AT_LOOPS if mechanism.closures or mechanism.laws else LOOKS
        kept = _Seen(shapes, unchecked_at(mechanism, links, spread(mechanism, looks)))
        mechanism._kept["unchecked"] = kept
    return kept.pairs


@dataclass(frozen=True, slots=True)
class _Seen:
    shapes: tuple[tuple[PlacedShape, ...], ...]
    pairs: dict[Pair, str]


def _refuse_idle(forbid: set[Pair], moving: set[str], standing: set[str]) -> None:
    """Raise for pairs of which nothing can be said."""
    for a, b in sorted(forbid):
        for name in (a, b):
            if name not in moving | standing:
                raise StructureError(f"forbid: link {name!r} has no shape to bump with; give it collisions")
        if a in standing and b in standing:
            raise StructureError(f"forbid: neither {a!r} nor {b!r} moves, so that nothing can keep them apart")
