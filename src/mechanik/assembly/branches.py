"""Which ways lead on from a place where the rows alone, to first order, do not say it.

Where A loses a rank it takes a plane of directions to zero, or more, and those that lead on are the ones in which the
rows stay zero to second order as well: the zeros of quadratic forms, two at a simple crossing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.assembly.place import RANK, Course, Place
from mechanik.spatial.array import Array

PROBE = 1e-4
"""How far (rad, sizes) rows are looked at to see how they curve."""
FLAT = 1e-6
"""Second derivatives below this are zero, for rounding."""
AHEAD = 0.02
"""How far a way is gone to see whether it leads on."""
STARTS, MOST_WAYS = 24, 6
"""Directions from which zeros are looked for, and how many are looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class Branches:
    """
    Attributes:
        directions: (n + 1,) each, unit, those that lead the drives on the most first.
        is_crossing: whether A has a higher rank on the way than here.
        goes_on: whether the drives come nearer to their goal along the first.
        rank: of A along the first.
        gain: how far (of s) the drives come along the first, over AHEAD.
    """

    directions: list[Array]
    is_crossing: bool
    goes_on: bool
    rank: int
    gain: float = 0.0


def branches(course: Course, here: Place) -> Branches:
    """The ways that lead on from a place, where at least one does."""
    rank = here.rank
    null = here.V[rank:]
    found: list[tuple[Array, Place]] = []
    for t in _candidates(course, here, null):
        for way in (t, -t) if abs(t[-1]) < 1e-9 else (t if t[-1] > 0 else -t,):
            q, s = course.step(here.q, here.s, AHEAD * way)
            there = course.settle(q, s, way[None], steps=12)
            aside = float(np.linalg.norm(course.apart(here, there) - AHEAD * way))
            if there.error < 1e-10 and aside < 0.3 * AHEAD:
                found.append((way, there))
    if not found:
        return Branches([], False, False, rank)
    highest = max(there.rank for _, there in found)
    found = [one for one in found if one[1].rank == highest]
    found.sort(key=lambda one: -one[1].s)
    gain = found[0][1].s - here.s
    return Branches([way for way, _ in found], highest > rank, gain > 0.0, highest, gain)


def _candidates(course: Course, here: Place, null: Array) -> list[Array]:
    """Directions out of the null space of A (k, n + 1) that may lead on: straight on for the drives comes first."""
    if len(null) < 2:
        return list(null)
    straight = null @ course.end
    curves = np.array([[_second(course, here, a, b) for b in null] for a in null])  # (k, k, m)
    starts = np.random.default_rng(0).standard_normal((STARTS, len(null)))
    starts = np.concatenate([_steepest(here, curves), starts])
    if float(np.linalg.norm(straight)) > 1e-9:
        starts = np.concatenate([straight[None], starts])
    left = np.linalg.svd(here.A)[0][:, here.rank :]
    Q = curves @ left  # (k, k, rows)
    Q = 0.5 * (Q + Q.transpose(1, 0, 2))
    ways: list[Array] = []
    for x in starts:
        x = _zero(Q, x / np.linalg.norm(x))
        if x is not None and all(abs(float(x @ other)) < 1 - 1e-6 for other in ways):
            ways.append(x)
        if len(ways) == MOST_WAYS:
            break
    return [x @ null for x in ways]


def _steepest(here: Place, curves: Array) -> Array:
    """(k, k) unit directions, those first in which the drives are led on the most to second order.

    At a dead point they are led on by no direction to first order, and other freedoms should not stir for it.
    """
    curving = np.einsum("r,ijr->ij", -np.linalg.pinv(here.A, rcond=RANK)[-1], curves)
    return np.asarray(np.linalg.eigh(curving + curving.T)[1].T[::-1], dtype=np.float64)


def _zero(Q: Array, x: Array) -> Array | None:
    """Newton's method to a unit x at which all forms Q (k, k, rows) are zero; None if it does not get there."""
    for _ in range(20):
        slope = np.asarray(np.einsum("ijr,j->ri", Q, x), dtype=np.float64)
        value = slope @ x
        if float(np.abs(value).max(initial=0.0)) < FLAT:
            return x
        step = np.asarray(np.linalg.lstsq(2 * slope, value, rcond=1e-10)[0], dtype=np.float64)
        x = (x - step) / max(float(np.linalg.norm(x - step)), 1e-9)
    return None


def _second(course: Course, here: Place, a: Array, b: Array) -> Array:
    """How the rows curve: (m,), the second derivative along a and b."""
    ahead, back = (course.rows(*course.step(here.q, here.s, x * PROBE * a))[1] for x in (1.0, -1.0))
    return (ahead - back) @ b / (2 * PROBE)
