"""Which bars of a four-bar turn all around (F. Grashof 1883)."""

from __future__ import annotations

from typing import Literal

from mechanik.errors import StructureError
from mechanik.gallery.lengths import check_lengths

FourBarKind = Literal["crank-rocker", "double-crank", "rocker-crank", "double-rocker", "change-point", "triple-rocker"]

EVEN = 1e-12
"""Sums of lengths that differ by less than this share of them are equal: a mechanism that can lie flat."""


def four_bar_kind(ground: float, crank: float, coupler: float, rocker: float) -> FourBarKind:
    """What moves how, by Grashof's rule: the shortest bar turns all around the others if it and the longest together
    are shorter than the other two.

    Returns:
        "crank-rocker": the crank turns all around, the rocker swings.
        "double-crank": crank and rocker both turn all around (the ground is the shortest).
        "rocker-crank": the rocker turns all around, the crank swings.
        "double-rocker": both swing; only the coupler can turn all around.
        "change-point": the two sums are equal, so that it can lie flat and go on in two ways from there.
        "triple-rocker": no bar turns all around.
    """
    check_lengths("four_bar_kind", ground=ground, crank=crank, coupler=coupler, rocker=rocker)
    lengths = {"ground": ground, "crank": crank, "coupler": coupler, "rocker": rocker}
    shortest, middle, long, longest = sorted(lengths.values())
    if longest >= shortest + middle + long:
        raise StructureError(
            f"four_bar_kind: a bar of {longest:g} is as long as the other three together; it cannot move"
        )
    spare = (middle + long) - (shortest + longest)
    if abs(spare) <= EVEN * longest:
        return "change-point"
    if spare < 0:
        return "triple-rocker"
    kinds: dict[str, FourBarKind] = {
        "ground": "double-crank",
        "crank": "crank-rocker",
        "coupler": "double-rocker",
        "rocker": "rocker-crank",
    }
    return kinds[min(lengths, key=lambda bar: lengths[bar])]
