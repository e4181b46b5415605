"""Whether a way is free at every place of it, not only where it was looked at: by halving it.

For all ways, and what `certificate.py` is compared with.

Between two configurations a straight way takes no point of a link farther than the sum over all freedoms of how far
each goes times how fast it moves that point at most. If that is less than the gap, nothing can have been touched. Where
it is more, the way is halved.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanik.collision import Collider
from mechanik.kernels.distance import watch_layout as at
from mechanik.planning.ground import Ground
from mechanik.spatial import inverse
from mechanik.spatial.array import Array

FINE = 0.01
"""Rad, and half as many m: how far apart a way is looked at, at least."""
MOST = 40_000
"""Configurations that are looked at, at most."""
SMALLEST = 1e-5
"""Units: a piece of a way that is shorter and still not certain stays so."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    Attributes:
        is_free: whether nothing was found nearer than the clearance.
        is_certain: whether nothing can be.
        gap: the smallest that was measured, m.
    """

    is_free: bool
    is_certain: bool
    gap: float


def look_by_halving(ground: Ground, q: Array, clearance: float, until: float) -> Verdict:
    """Of a way with knots q (N, nq), densely; and between these places as far as it can be said.

    Along loops nothing can be said between them: they are 0.01 rad or 5 mm apart.
    """
    dense = ground.sampled(q, FINE)
    if dense is None:
        return Verdict(False, False, -np.inf)
    if ground.collider is None:
        return Verdict(True, True, np.inf)
    ground.looks += len(dense)
    gap = float(np.min(ground.collider.distance(dense)))
    if gap < clearance:
        return Verdict(False, False, gap)
    if ground.has_loops:
        return Verdict(True, False, gap)
    return _between(ground, ground.collider, dense, clearance, gap, until)


def _between(ground: Ground, collider: Collider, q: Array, clearance: float, gap: float, until: float) -> Verdict:
    who = _Guards(collider)
    start, half = q[:-1], 0.5 * ground.difference(q[:-1], q[1:])
    looked = 0
    while len(start):
        looked += len(start)
        if looked > MOST or time.perf_counter() > until:
            return Verdict(True, False, gap)
        middle = ground.integrate(start, half)
        gone = who.farthest(middle, np.abs(half))
        reach = clearance + float(gone.max(initial=0.0)) + 1e-6
        gaps = collider.rows(middle, reach)[0]
        gap = min(gap, float(gaps.min(initial=np.inf, where=gaps < reach)))
        if gap < clearance:
            return Verdict(False, False, gap)
        doubt = (gaps - clearance <= gone).any(axis=1)
        if (np.abs(half[doubt] / ground.unit).max(axis=1, initial=0.0) < SMALLEST).any():
            return Verdict(True, False, gap)
        half = 0.5 * half[doubt]
        start = np.concatenate([start[doubt], middle[doubt]])
        half = np.concatenate([half, half])
    return Verdict(True, True, gap)


class _Guards:
    """The pairs of bodies behind the rows of a collider, as far as they move."""

    def __init__(self, collider: Collider) -> None:
        tables = collider._fresh().tables
        self._mechanism = collider.mechanism
        bodies = tables.members[: tables.moving]
        self._links = [body.name for body in bodies]
        self._balls: list[tuple[Array, float]] = []
        for body, row in zip(bodies, tables.bodies, strict=False):
            # the ball is seen from the node that carries the body
            ball = np.append(row[at.BODY_BALL : at.BODY_BALL + 3], 1.0)
            middle: Array = (inverse(body.frame) @ ball)[:3]
            self._balls.append((middle, float(row[at.BODY_RADIUS])))
        self._first = list[int]()
        self._others = list[npt.NDArray[np.int64]]()
        for guarded, first, count, _, rows in tables.guards.tolist():
            partners = tables.partners[first : first + max(0, count)]
            self._first += [guarded] * rows
            self._others += [partners] * rows

    def farthest(self, q: Array, steps: Array) -> Array:
        """(N, m): for each row, how far its bodies can come nearer while the freedoms go `steps` (N, nv) from q."""
        gone = np.stack([self._gone(k, q, steps) for k in range(len(self._links))], axis=1)
        found = gone[:, self._first]
        for row, others in enumerate(self._others):
            if len(others):
                found[:, row] += gone[:, others].max(axis=1)
        return found

    def _gone(self, k: int, q: Array, steps: Array) -> Array:
        """(N,) how far any point of a body goes, m.

        While it goes, levers become longer, by no more than twice of how far anything has gone.
        """
        middle, radius = self._balls[k]
        J = self._mechanism.jacobian(self._links[k], q, middle)
        turns = np.linalg.norm(J[:, 3:], axis=1)
        at_first = ((np.linalg.norm(J[:, :3], axis=1) + radius * turns) * steps).sum(axis=1)
        turned = (turns * steps).sum(axis=1)
        return np.where(turned < 0.25, at_first / np.maximum(1.0 - 2.0 * turned, 0.5), np.inf)
