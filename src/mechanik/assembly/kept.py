"""What is worked out about a mechanism's loops, kept with the mechanism until its graph is edited."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from mechanik.assembly.loops import Loops
from mechanik.mechanism import Mechanism


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    loops: Loops
    weights: str


@contextmanager
def loops_of(mechanism: Mechanism, weights: Mapping[str, float]) -> Generator[Loops]:
    """The loops of a mechanism as it is now, for the caller alone; those of the last weights are kept."""
    _ = mechanism.revision  # an edit is noticed here, and what was kept is gone
    place, key = mechanism._kept, repr(dict(weights))
    kept = place.pop("assembly", None)  # out of reach of other threads
    if not isinstance(kept, _Kept) or kept.weights != key:
        kept = _Kept(Loops(mechanism, weights), key)
    try:
        yield kept.loops
    finally:
        place["assembly"] = kept
