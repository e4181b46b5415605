"""Which pairs of links are left out because of how they hang together."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from mechanik.kernels.layout import PARENT
from mechanik.mechanism.frame import Frame
from mechanik.mechanism.link import Link
from mechanik.mechanism.mechanism import Mechanism

SAME, ADJACENT, ALWAYS, NEVER = "same body", "adjacent", "always", "never"
"""Why pairs are left out: welded to each other; a joint between them; touching in every sample; in none."""

Pair = tuple[str, str]


def carriers(mechanism: Mechanism) -> dict[str, int]:
    """For each link the node that moves it: links with the same one are welded to each other; -1 stands still."""
    ends = mechanism.kinematics.ends
    return {name: int(end[PARENT]) for name, end in zip(mechanism.links, ends, strict=True)}


def joined_pairs(mechanism: Mechanism, names: Iterable[str]) -> dict[Pair, str]:
    """Pairs of the named links that are one rigid body, or that a joint or a closure joins; welded links count as one.

    A joint with all six freedoms joins nothing: a body that floats can fall on the ground.
    """
    carrier = carriers(mechanism)
    joined: set[frozenset[int]] = set()
    for joint in mechanism.joints.values():
        child = joint.closure.link if joint.closure is not None else next(iter(joint.children), None)
        if isinstance(child, Link) and isinstance(joint.parent, Frame) and len(joint.dof) < 6:
            ends = (carrier[mechanism.name_of(joint.parent)], carrier[mechanism.name_of(child)])
            joined.add(frozenset(ends))
    found: dict[Pair, str] = {}
    for a, b in combinations(names, 2):
        if carrier[a] == carrier[b]:
            found[a, b] = SAME
        elif frozenset((carrier[a], carrier[b])) in joined:
            found[a, b] = ADJACENT
    return found
