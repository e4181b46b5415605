"""Telling solutions apart: the same one is found from many starts, never to the last digit."""

from __future__ import annotations

import numpy as np

from mechanik.search.conditions import Conditions, Mask
from mechanik.spatial.array import Array

SAME = 1e-6
"""Solutions nearer than this (rad, sizes; full turns aside) are one: polished ones agree to 1e-10 where the rows say
where they are."""
CLOSE = 0.02
"""Solutions nearer than this are looked at closely. Where two fall together, at a singular pose, rows that are zero to
the last digit say where they are to half of the digits only."""
BETWEEN = 1e-11
"""Two that are close are one if half way between them the rows are as small as this: no computation could tell them
apart. Two true ones at a distance d have rows of about d^2 / 8 there."""


class Clusters:
    """Solutions, each once.

    Attributes:
        q: (k, nq), in the order in which they were found.
    """

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self.q = np.zeros((0, conditions.mechanism.nq))

    def add(self, q: Array) -> int:
        """Keep those of some polished solutions (K, nq) that are new; returns how many."""
        q, new = self.unknown(q), 0
        while len(q):
            self.q, new = np.vstack([self.q, q[0]]), new + 1
            q = q[1:][~self.same(q[1:], q[0])]
        return new

    def unknown(self, q: Array) -> Array:
        """Those of some polished solutions (K, nq) that are none of the known ones."""
        for one in self.q:
            q = q[~self.same(q, one)]
        return q

    def same(self, q: Array, one: Array) -> Mask:
        """(K,) whether solutions q (K, nq) are the solution `one` (nq,)."""
        conditions = self._conditions
        step = conditions.apart(np.broadcast_to(one, q.shape), q)
        apart = np.abs(step).max(axis=1, initial=0.0)
        same = apart < SAME
        close = np.flatnonzero(~same & (apart < CLOSE))
        if len(close):
            middle = conditions.step(np.broadcast_to(one, (len(close), len(one))), 0.5 * step[close])
            same[close] = np.abs(conditions.rows(middle)[0]).max(axis=1, initial=0.0) < BETWEEN
        return same


def spread(conditions: Conditions, q: Array, count: int, first: int = 0) -> list[int]:
    """Numbers of up to `count` of the configurations q (K, nq), each as far from those before as can be."""
    if not len(q):
        return []
    chosen = [first]
    nearest = np.full(len(q), np.inf)
    while len(chosen) < min(count, len(q)):
        step = conditions.apart(np.broadcast_to(q[chosen[-1]], q.shape), q)
        nearest = np.minimum(nearest, np.sqrt((step * step).sum(axis=1)))
        farthest = int(np.argmax(nearest))
        if nearest[farthest] < CLOSE:
            break
        chosen.append(farthest)
    return chosen
