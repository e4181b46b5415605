"""A path made shorter, and its corners round, as far as it stays free."""

from __future__ import annotations

import time

import numpy as np

from mechanik.planning.ground import Ground
from mechanik.spatial.array import Array

TRIES = 120
"""Random shortcuts, at most."""
VAIN = 40
"""So many in a row that are no shorter or not free: enough."""
SIZES = (0.5, 0.35, 0.2, 0.1, 0.05)
"""How much of the shorter of two sides a corner takes; the largest that is free."""
ARC = 0.06
"""Units: how far the knots of a round corner are apart."""
SWEEPS = 12
STILL = 1e-9
"""Units: what is nearer is the same place."""
FLAT = 1e-3
"""Rad: what turns less is no corner."""


def shortcut(ground: Ground, q: Array, rng: np.random.Generator, until: float) -> Array:
    """Knots (N, nq) of a shorter way, each straight to the next, or along the loops.

    First whole stretches are left out, then pieces between two random places, until nothing more is found.
    """
    q = _skipped(ground, q, until)
    vain = 0
    for _ in range(TRIES):
        if len(q) < 3 or vain > VAIN or time.perf_counter() > until:
            break
        sides = np.linalg.norm(ground.apart(q[:-1], q[1:]), axis=1)
        along = np.append(0.0, np.cumsum(sides))
        low, high = np.sort(rng.uniform(0.0, along[-1], 2))
        i, j = np.searchsorted(along, (low, high), side="right") - 1
        i, j = int(min(i, len(sides) - 1)), int(min(j, len(sides) - 1))
        vain += 1
        if i == j:
            continue
        a, b = _between(ground, q, i, (low - along[i]) / sides[i]), _between(ground, q, j, (high - along[j]) / sides[j])
        if a is None or b is None:
            continue
        now = float(np.linalg.norm(ground.apart(a, b)))
        if now > 0.999 * (high - low):
            continue
        if not ground.are_free(np.array([a, b])).all():
            continue
        if ground.is_flat:
            if not ground.is_free_motion(a, b):
                continue
            new = np.array([a, b])
        else:
            way = ground.free_way(a, b)
            if way is None:
                continue
            new = way if ground.has_loops else way[[0, -1]]
        if ground.has_loops and _length(ground, new) > 0.999 * (high - low):
            continue
        q = np.concatenate([q[: i + 1], new, q[j + 1 :]])
        q = without_repeats(ground, q)
        vain = 0
    return _skipped(ground, q, until)


def rounded(ground: Ground, q: Array, until: float) -> Array:
    """The same with an arc in place of each corner, where one is free: a parabola that touches both sides."""
    if len(q) < 3:
        return q
    found = [q[0]]
    for k in range(1, len(q) - 1):
        before, after = ground.apart(q[k], q[k - 1]), ground.apart(q[k], q[k + 1])
        a, b = float(np.linalg.norm(before)), float(np.linalg.norm(after))
        if np.linalg.norm(before / a + after / b) < FLAT or time.perf_counter() > until:
            found.append(q[k])
            continue
        for size in SIZES:
            reach = size * min(a, b)
            arc = _arc(ground, q[k], before * (reach / a), after * (reach / b))
            if arc is not None:
                found += list(arc)
                break
        else:
            found.append(q[k])
    return without_repeats(ground, np.array([*found, q[-1]]))


def relaxed(ground: Ground, q: Array, until: float) -> Array:
    """For knots that lie close along loops: each moved half way to the middle of its neighbours, again and again."""
    q = q.copy()
    for sweep in range(2 * SWEEPS):
        some = np.arange(1 + sweep % 2, len(q) - 1, 2)
        if not len(some) or time.perf_counter() > until:
            break
        pull = 0.25 * (ground.apart(q[some], q[some - 1]) + ground.apart(q[some], q[some + 1])) * ground.unit
        moved, shut = ground.shut_all(ground.integrate(q[some], pull))
        moved[~shut] = q[some[~shut]]
        beside = [_middles(ground, moved, q[some - 1]), _middles(ground, moved, q[some + 1])]
        free = ground.are_free(moved) & ground.are_free(beside[0]) & ground.are_free(beside[1])
        q[some[free]] = moved[free]
    return q


def _middles(ground: Ground, a: Array, b: Array) -> Array:
    return ground.integrate(a, 0.5 * ground.difference(a, b))


def _arc(ground: Ground, corner: Array, before: Array, after: Array) -> Array | None:
    """Knots (M, nq) from one side of a corner to the other, where `before` and `after` (nv,) (units) lead; if free."""
    count = max(4, int(np.ceil(float(np.abs(before - after).max()) / ARC)))
    t = np.linspace(0.0, 1.0, count + 1)[:, None]
    v = ((1.0 - t) ** 2 * before + t**2 * after) * ground.unit
    points = ground.integrate(corner, v)
    if not ground.is_flat:
        points, shut = ground.shut_all(points)
        if not shut.all():
            return None
    dense = ground.sampled(points, ground.step)
    return points if dense is not None and ground.are_free(dense).all() else None


def _skipped(ground: Ground, q: Array, until: float) -> Array:
    """Without the knots that can be left out: from each on to the farthest that a free way leads to, by halving."""
    found, k = [q[:1]], 0
    while k < len(q) - 1:
        jump = len(q) - 1
        way: Array | None = None
        while jump > k + 1 and time.perf_counter() < until:
            way = ground.free_way(q[k], q[jump])
            if way is not None and (not ground.has_loops or _length(ground, way) < _length(ground, q[k : jump + 1])):
                break
            way, jump = None, k + (jump - k) // 2
        if way is None:
            jump = k + 1
        found.append(way[1:] if way is not None and ground.has_loops else q[jump : jump + 1])
        k = jump
    return np.concatenate(found)


def _between(ground: Ground, q: Array, k: int, share: float) -> Array | None:
    return ground.shut(ground.integrate(q[k], share * ground.difference(q[k], q[k + 1])))


def _length(ground: Ground, q: Array) -> float:
    return float(np.linalg.norm(ground.apart(q[:-1], q[1:]), axis=1).sum())


def without_repeats(ground: Ground, q: Array) -> Array:
    """Without knots at which nothing has moved; the first and the last stay as they are."""
    kept = [0]
    for k in range(1, len(q) - 1):
        if ground.far(q[kept[-1]], q[k]) > STILL and ground.far(q[k], q[-1]) > STILL:
            kept.append(k)
    return q[[*kept, len(q) - 1]]
