"""Self-motions: how a mechanism with one freedom too many moves while all that is asked goes on to hold.

From a solution one goes along the direction in which no row changes, comes back to where all holds by Newton's method
across that direction, and goes on, until the curve closes or something stops it. Where another curve passes by, a step
could end on that one: then the rows grow to the other side there, which the sign of a determinant tells. Limits of
turning joints do not stop it: beyond them the curve may come inside again, and pieces that no start would ever lead to
are found so. What is inside the limits is cut out at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.search.conditions import HOLDS, Conditions, Mask, length
from mechanik.spatial.array import Array

SPACING = 0.02
"""Between two points of a curve (rad, sizes)."""
LARGEST, CAREFUL, SMALLEST = 0.15, 0.03, 1e-3
"""Steps along a curve: not longer than the smallest singular value of the rows, but for the careful ones. The
smallest are taken whatever the determinant says: so it goes straight on where curves cross."""
LARGEST_TURN = 0.97
"""Cosine of the turn of a curve within a step, at least."""
CORRECTIONS = 4
MOST_STEPS = 4000
"""Of which a curve has 50 to 300; one that goes on for ever, as sliding joints can, is cut off."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """
    Attributes:
        q: (p, nq) points where all holds, one after the other.
        is_closed: whether the last one is followed by the first, full turns aside.
    """

    q: Array
    is_closed: bool

    def near(self, conditions: Conditions, q: Array) -> tuple[int, float]:
        """Which of the points is nearest to q (nq,), and how far that is."""
        apart = length(conditions.apart(self.q, q))
        k = int(np.argmin(apart))
        return k, float(apart[k])


def follow(conditions: Conditions, q: Array) -> list[Curve]:
    """The curves through solutions q (L, nq) that have one freedom left; a curve of one point where there is none.

    All are followed at once, since that costs hardly more than to follow one.
    """
    if not len(q):
        return []
    J = conditions.rows(q)[1]
    first = np.linalg.svd(J, full_matrices=True)[2][:, -1] if J.shape[1] else np.eye(conditions.n)[:1].repeat(len(q), 0)
    ways, closed = _go(conditions, q, first)
    open_ones = np.flatnonzero(~closed)
    back, _ = _go(conditions, q[open_ones], -first[open_ones])
    for k, way in zip(open_ones.tolist(), back, strict=True):
        ways[k] = np.concatenate([way[:0:-1], ways[k]])
    return [Curve(way, bool(shut)) for way, shut in zip(ways, closed, strict=True)]


def lies_on(conditions: Conditions, curve: Curve, q: Array) -> Mask:
    """(K,) whether solutions q (K, nq) lie on a curve: going along it from its nearest point leads there."""
    found = np.zeros(len(q), dtype=np.bool_)
    if not len(q):
        return found
    u = conditions.apart(curve.q[None], q[:, None])
    apart = length(u)
    nearest = np.argmin(apart, axis=1)
    close = np.flatnonzero(apart[np.arange(len(q)), nearest] < LARGEST)
    if len(close):
        there = q[close]
        at = corner = curve.q[nearest[close]]
        for _ in range(4):  # as far as it can come along the curve
            way = conditions.apart(at, there)
            at, _ = conditions.settle(conditions.step(at, _within(conditions.rows(at)[1], way)), steps=3)
        J_a, J_b = conditions.rows(corner)[1], conditions.rows(there)[1]
        t_a = np.linalg.svd(J_a)[2][:, -1]
        t_b = _within(J_b, t_a)
        found[close] = (length(conditions.apart(at, there)) < 1e-5) & is_same_side(J_a, t_a, J_b, t_b)
    return found


def _within(J: Array, u: Array) -> Array:
    """The part of u (K, n) that changes no row."""
    m = J.shape[1]
    Jt = np.swapaxes(J, -1, -2)
    return u - (Jt @ np.linalg.solve(J @ Jt + 1e-12 * np.eye(m), J @ u[..., None]))[..., 0]


def _go(conditions: Conditions, q: Array, first: Array) -> tuple[list[Array], Mask]:
    """Points of each curve from q (L, nq) on, in the direction `first` (L, n), and whether it came back to q."""
    L = len(q)
    points: list[list[Array]] = [[one] for one in q]
    closed = np.zeros(L, dtype=np.bool_)
    at, t, h, J = q.copy(), first.copy(), np.full(L, 0.02), conditions.rows(q)[1]
    going = np.arange(L)
    for _ in range(MOST_STEPS):
        if not len(going):
            break
        here, along = at[going], t[going]
        there, fine, turned, room, J_there = _advance(conditions, here, along, h[going])
        fine &= (along * turned).sum(axis=1) > LARGEST_TURN
        fine &= is_same_side(J[going], along, J_there, turned) | (h[going] <= SMALLEST)
        fine &= conditions.slides_inside(there)
        lost = ~fine & (h[going] <= SMALLEST)
        # back at the start?
        way = conditions.apart(here, q[going])
        done = length(conditions.apart(here, there))
        ahead = (way * along).sum(axis=1)
        aside = length(way - ahead[:, None] * along)
        count = np.array([len(points[k]) for k in going])
        home = fine & (count > 3) & (ahead > -1e-9) & (ahead <= done) & (aside < 0.3 * done)
        home &= (along * first[going]).sum(axis=1) > 0.5
        closed[going[home]] = True
        for i in np.flatnonzero(fine & ~home).tolist():
            points[int(going[i])].append(there[i])
        at[going[fine]], t[going[fine]], J[going[fine]] = there[fine], turned[fine], J_there[fine]
        longest = np.clip(room, CAREFUL, LARGEST)
        h[going] = np.where(fine, np.minimum(1.5 * h[going], longest), np.maximum(0.5 * h[going], SMALLEST))
        going = going[~(home | lost)]
    return [np.array(way) for way in points], closed


def _advance(conditions: Conditions, q: Array, t: Array, h: Array) -> tuple[Array, Mask, Array, Array, Array]:
    """A step h (L,) along t (L, n) from q, and back to the curve across t.

    Returns:
        where it ends; whether all holds there, and it is not far aside; the direction of the curve there; the smallest
        singular value of the rows, about; and their derivatives.
    """
    there = straight = conditions.step(q, h[:, None] * t)
    e, M, Jte, J = _across(conditions, there, t)
    for _ in range(CORRECTIONS):
        if e.max(initial=0.0) < HOLDS:
            break
        there = conditions.step(there, -(M @ Jte)[..., 0])
        e, M, Jte, J = _across(conditions, there, t)
    turned = (M @ t[..., None])[..., 0]
    turned /= length(turned)[:, None]
    fine = (e < HOLDS) & (length(conditions.apart(straight, there)) < 0.5 * h)
    return there, fine, turned, np.abs(M).max(axis=(1, 2)) ** -0.5, J


def is_same_side(J_a: Array, t_a: Array, J_b: Array, t_b: Array) -> Mask:
    """(L,) whether rows grow to the same side of a curve at a and at b.

    J (L, m, n) are the derivatives of the rows, t (L, n) directions of the curve, the same way along it. With as many
    rows as there have to be, this is whether the determinants of J above t have the same sign.
    """
    both = np.swapaxes(J_a, -1, -2) @ J_b + t_a[:, :, None] * t_b[:, None, :]
    return np.asarray(np.linalg.det(both) > 0.0)


def _across(conditions: Conditions, q: Array, t: Array) -> tuple[Array, Array, Array, Array]:
    """At q (L, nq) the largest row (L,); the inverse (L, n, n) of J'J + t t'; J'e (L, n, 1); and J.

    Times J'e the inverse is the step to where all holds, across t; times t, the direction in which no row changes.
    """
    e, J = conditions.rows(q)
    Jt = np.swapaxes(J, -1, -2)
    A = Jt @ J + t[:, :, None] * t[:, None, :] + 1e-14 * np.eye(conditions.n)
    M = np.asarray(np.linalg.inv(A), dtype=np.float64)
    return np.abs(e).max(axis=1, initial=0.0), M, Jt @ e[..., None], J


def dense(conditions: Conditions, curve: Curve) -> Curve:
    """The same curve, its points not farther than SPACING apart, by cubics, polished; no angle jumps."""
    way = curve.q
    if len(way) == 1:
        return curve
    u = conditions.apart(way[:-1], way[1:])
    if curve.is_closed:
        u = np.concatenate([u, conditions.apart(way[-1:], way[:1])])
    t = _tangents(conditions, way, u, curve.is_closed)
    size = length(u)
    counts = np.maximum(1, np.ceil(size / SPACING)).astype(np.int64)
    k = np.repeat(np.arange(len(u)), counts)  # the piece of each point
    s = ((np.arange(len(k)) - np.repeat(np.cumsum(counts) - counts, counts)) / counts[k])[:, None]
    a, b = t[k] * size[k, None], t[(k + 1) % len(t)] * size[k, None]
    cubic = (s**3 - 2 * s**2 + s) * a + (3 * s**2 - 2 * s**3) * u[k] + (s**3 - s**2) * b
    corners = without_jumps(conditions, way)
    points = conditions.step(corners[k], cubic)
    if not curve.is_closed:
        points = np.concatenate([points, corners[-1:]])
    q, error = conditions.settle(points, steps=6)
    return Curve(q[error < HOLDS], curve.is_closed)


def without_jumps(conditions: Conditions, way: Array) -> Array:
    """The same points, each by full turns as near to the one before as it can be."""
    way, k = way.copy(), conditions.columns[conditions.is_angle]
    way[:, k] = np.unwrap(way[:, k], axis=0)
    return way


def _tangents(conditions: Conditions, way: Array, u: Array, is_closed: bool) -> Array:
    """Unit directions (p, n) of a curve at its points, forward."""
    J = conditions.rows(way)[1]
    forward = u if is_closed else np.concatenate([u, u[-1:]])
    t = _within(J, forward)
    return t / np.maximum(length(t), 1e-12)[:, None]
