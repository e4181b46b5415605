"""Where a mechanism may be, and the ways between two places: off everything, inside limits, with loops shut."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanik.assembly.loops import Loops
from mechanik.collision import Collider
from mechanik.mechanism import Mechanism
from mechanik.mechanism.door import read_only
from mechanik.planning.retraction import CREEPING, STRAY, Flags, Retraction
from mechanik.planning.scene import scene_of
from mechanik.spatial.array import Array

Indices = npt.NDArray[np.int64]

COARSE = 0.06
"""Rad, and half as many m: how far apart places are looked at while a path is searched for. What is found is looked at
more closely."""
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
        moving: the numbers of q that may change.
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
        single = [int(q) for q, v in zip(space.scalars_q, space.scalars_v, strict=True) if free[v]]
        balls = [int(q) + k for q, v in zip(space.balls_q, space.balls_v, strict=True) if free[v] for k in range(4)]
        self.moving: Indices = np.array(sorted(single + balls), dtype=np.int64)
        self._scene: tuple[Any, ...] | None = None
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
        there, done = self.shut_all(q[None])
        return there[0] if done[0] else None

    def shut_all(self, q: Array) -> tuple[Array, Flags]:
        """The same for q (N, nq): (N, nq), and (N,) where there is such a place."""
        if self.is_flat:
            return q, np.ones(len(q), dtype=np.bool_)
        q, done = q.copy(), np.ones(len(q), dtype=np.bool_)
        for k in self.mechanism.space.balls_q:
            sizes = np.linalg.norm(q[:, k : k + 4], axis=1)
            done &= sizes >= 1e-3
            q[:, k : k + 4] /= np.maximum(sizes, 1e-3)[:, None]
        if self.has_loops:
            q, there = self._retract.all_of(q)
            done &= there
        done &= ((q >= self.lower - 1e-9) & (q <= self.upper + 1e-9)).all(axis=1)
        if self.loops.bands:
            done &= [bool(fine) and self.is_inside(one) for one, fine in zip(q, done, strict=True)]
        return q, done

    def bounds(self, ends: Array) -> tuple[Array, Array]:
        """(nq,) and (nq,): where to search between ends (N, nq), which may lie on a limit, or a bit beyond.

        Where there are no limits, half a turn or a metre around all ends; the numbers of balls are up to 1.
        """
        space = self.mechanism.space
        spare = np.ones(space.nq)
        spare[space.scalars_q] = np.where(space.rotates[space.scalars_v], math.pi, 1.0)
        least, most = ends.min(axis=0), ends.max(axis=0)
        lower = np.where(np.isfinite(self.lower), np.minimum(self.lower, least), least - spare)
        upper = np.where(np.isfinite(self.upper), np.maximum(self.upper, most), most + spare)
        for k in space.balls_q:
            lower[k : k + 4], upper[k : k + 4] = -1.0, 1.0
        return lower, upper

    def scene(self) -> tuple[Any, ...] | None:
        """What kernels take that ask whether a configuration is free; None if nothing is avoided."""
        if self.collider is None:
            return None
        if self._scene is None or self._scene[-1] != self.clearance:
            self._scene = scene_of(self.collider, self.clearance, *self.bounds(np.zeros((1, len(self.lower)))))
        return self._scene

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
        found = self.towards(a, b, step)
        return found if np.array_equal(found[-1], b) else None

    def towards(self, a: Array, b: Array, step: float = 0.0) -> Array:
        """Configurations (N, nq) from a on to b, as far as loops and limits lead there; a step (units) apart, about."""
        step = step or self.step
        here, left = a, self.far(a, b)
        most = 4 * int(np.ceil(left / step)) + 10
        if self._retract.can_walk:
            return self._retract.walk(a, b, (self.lower, self.upper), self.unit, step, most)
        found = [a]
        while len(found) < most:
            if left <= step:
                found.append(b)
                break
            there = self.shut(self.integrate(here, self.difference(here, b) * (step / left)))
            if there is None or self.far(here, there) > STRAY * step:
                break
            now = self.far(there, b)
            if not now < left - CREEPING * step:
                break
            found.append(there)
            here, left = there, now
        return np.array(found)

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
