"""Where a mechanism may be, and the ways between two places: off everything, inside limits, with loops shut."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from mechanik.assembly.loops import Loops
from mechanik.collision import Collider
from mechanik.mechanism import Mechanism
from mechanik.mechanism.door import read_only
from mechanik.planning.retraction import Flags, Retraction
from mechanik.spatial.array import Array

COARSE = 0.06
"""Rad, and half as many m: how far apart places are looked at while a path is searched for. What is found is looked at
more closely."""
STRAY = 2.0
"""A step along loops may become that many times longer by shutting them; else it has gone elsewhere."""
FIRST = 8
"""Places of a way that are looked at before all others."""


@lru_cache(maxsize=512)
def _shares(count: int) -> Array:
    """(count, 1) evenly from above 0 to 1."""
    return read_only(np.arange(1.0, count + 1.0)[:, None] / count)


class Ground:
    """
    Attributes:
        lower, upper: (nq,) limits.
        free: (nv,) which freedoms may move.
        clearance: m, with a margin for what happens between two looks.
        unit: (nv,) what counts as 1: a radian, or half a metre.
        is_flat: whether any q inside the limits can be: there are no loops, laws, balls or cones.
        step: units: how far apart ways are looked at.
        looks: how many configurations were looked at.
    """

    def __init__(
        self, mechanism: Mechanism, loops: Loops, collider: Collider | None, clearance: float, lower: Array,
        upper: Array, free: Flags,
    ) -> None:  # fmt: skip
        self.mechanism, self.loops, self.collider, self.clearance = mechanism, loops, collider, clearance
        self.lower, self.upper, self.free = lower, upper, free
        space = mechanism.space
        self.unit = np.where(space.rotates, 1.0, 0.5)
        self._has_balls = bool(len(space.balls_q))
        self.has_loops = bool(loops.relations)
        self.is_flat = not (self.has_loops or loops.bands or self._has_balls)
        self.looks, self.step = 0, COARSE
        self._retract = Retraction(loops, free)

    # ---- places -----------------------------------------------------------------------------

    def are_free(self, q: Array) -> Flags:
        """(N,) for q (N, nq): nothing is nearer than the clearance."""
        self.looks += len(q)
        if self.collider is None or not len(q):
            return np.ones(len(q), dtype=np.bool_)
        return np.asarray(self.collider.is_free(q, self.clearance), dtype=np.bool_)

    def is_inside(self, q: Array) -> bool:
        """Whether q (nq,) is inside all limits, also those of joints that close loops."""
        if not bool(((q >= self.lower - 1e-9) & (q <= self.upper + 1e-9)).all()):
            return False
        return not self.loops.bands or self.loops.beyond(q)[0] <= 1e-9

    def shut(self, q: Array) -> Array | None:
        """The nearest place to q (nq,), about, where loops are shut; None where there is none inside the limits."""
        if self.is_flat:
            return q
        q = q.copy()
        for k in self.mechanism.space.balls_q:
            size = float(np.linalg.norm(q[k : k + 4]))
            if size < 1e-3:
                return None
            q[k : k + 4] /= size
        if self.has_loops:
            there = self._retract(q)
            if there is None:
                return None
            q = there
        return q if self.is_inside(q) else None

    # ---- ways -------------------------------------------------------------------------------

    def difference(self, a: Array, b: Array) -> Array:
        """As that of the space, without its door: nothing that comes here is new."""
        return self.mechanism.space.difference(a, b) if self._has_balls else b - a

    def integrate(self, q: Array, v: Array) -> Array:
        return self.mechanism.space.integrate(q, v) if self._has_balls else q + v

    def apart(self, a: Array, b: Array) -> Array:
        """(..., nv) from a to b, in units."""
        return self.difference(a, b) / self.unit

    def far(self, a: Array, b: Array) -> float:
        """The largest of these: what is compared with a step."""
        return float(np.abs(self.apart(a, b)).max(initial=0.0))

    def way(self, a: Array, b: Array, step: float = 0.0) -> Array | None:
        """Configurations (N, nq) from a to b, no more than a step (units) apart; None if loops do not lead there."""
        step = step or self.step
        v = self.difference(a, b)
        count = max(1, int(np.ceil(float(np.abs(v / self.unit).max(initial=0.0)) / step)))
        if not self.has_loops:
            found = np.concatenate([a[None], self.integrate(a, _shares(count) * v)])
            found[-1] = b
            if self.loops.bands and not all(self.is_inside(one) for one in found):
                return None
            return found
        found, here, left = [a], a, self.far(a, b)
        for _ in range(4 * count + 8):
            if left <= step:
                return np.array([*found, b])
            there = self.shut(self.integrate(here, self.difference(here, b) * (step / left)))
            if there is None or self.far(here, there) > STRAY * step:
                return None
            now = self.far(there, b)
            if not now < left:
                return None
            found.append(there)
            here, left = there, now
        return None

    def free_way(self, a: Array, b: Array, step: float = 0.0) -> Array | None:
        """The same where it is free all along; None where it is not. The ends are taken to be."""
        q = self.way(a, b, step)
        return q if q is not None and self.is_free_along(q) else None

    def is_free_motion(self, a: Array, b: Array) -> bool:
        """Whether all of the straight way from a to b (nq,) is free, b as well; where there are no loops or balls."""
        if self.collider is None:
            return True
        v = b - a
        count = int(float(np.abs(v / self.unit).max(initial=0.0)) / self.step) + 1
        q = a + _shares(count) * v
        every = count // FIRST
        if every > 2 and not self.are_free(q[::-1][::every]).all():
            return False
        return bool(self.are_free(q).all())

    def is_free_along(self, q: Array) -> bool:
        """Whether all of a way (N, nq) is free; a few places that lie far apart come first."""
        if self.collider is None:
            return True
        if len(q) > 4 * FIRST:
            some = np.linspace(0, len(q) - 1, FIRST + 2).astype(np.int64)[1:-1]
            if not self.are_free(q[some]).all():
                return False
        return bool(self.are_free(q[1:-1]).all())

    def sampled(self, q: Array, step: float) -> Array | None:
        """Knots (N, nq) as configurations no more than a step (units) apart; None where loops do not lead on."""
        parts: list[Array] = []
        for a, b in pairwise(q):
            way = self.way(a, b, step)
            if way is None:
                return None
            parts.append(way[:-1])
        return np.concatenate([*parts, q[-1:]])
