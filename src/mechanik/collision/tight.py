"""Pairs that no configuration parts by as much as is asked for: a wrist whose links are always near each other."""

from __future__ import annotations

import logging
from weakref import WeakKeyDictionary

from mechanik.collision.collider import Collider
from mechanik.collision.pairs import Pair
from mechanik.collision.sampling import spread

SAMPLES = 200
"""Configurations in all of which a pair has to be too near."""

log = logging.getLogger("mechanik")
_asked = WeakKeyDictionary[Collider, set[float]]()


def tight_pairs(collider: Collider, clearance: float) -> dict[Pair, float]:
    """Pairs that are nearer than `clearance` (m) wherever it was looked, each with its largest gap, m.

    Mechanisms with loops or laws are not asked: it would take long to shut them in many places.
    """
    mechanism = collider.mechanism
    if clearance <= 0.0 or mechanism.closures or mechanism.laws:
        return {}
    found: dict[Pair, float] | None = None
    for q in spread(mechanism, SAMPLES):
        near = {(clash.a, clash.b): clash.gap for clash in collider.clashes(q, clearance)}
        found = near if found is None else {pair: max(gap, near[pair]) for pair, gap in found.items() if pair in near}
        if not found:
            return {}
    return found or {}


def warn_of_tight_pairs(collider: Collider, clearance: float) -> None:
    """Say so, once, before it is tried in vain: with such a pair nothing is ever free."""
    asked = _asked.setdefault(collider, set())
    if clearance in asked:
        return
    asked.add(clearance)
    found = tight_pairs(collider, clearance)
    if not found:
        return
    widest = max(min(found.values()), 0.0)
    named = " and ".join(f"{a!r} and {b!r} ({1e3 * gap:.1f} mm at most)" for (a, b), gap in found.items())
    log.warning(
        "a clearance of %.4g mm may be kept nowhere: in all of %d configurations these were nearer to each other: %s. "
        "Give a clearance below %.2g mm, or let the pair be: allow=%r",
        1e3 * clearance, SAMPLES, named, 1e3 * widest, list(found),
    )  # fmt: skip
