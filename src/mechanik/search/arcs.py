"""What of a self-motion lies inside the limits: arcs, samples along them, and the way between two of these."""

from __future__ import annotations

import numpy as np

from mechanik.search.conditions import HOLDS, Conditions, Mask, length
from mechanik.search.self_motion import SPACING, Curve, dense, without_jumps
from mechanik.search.unwinding import TURN
from mechanik.spatial.array import Array

BISECTIONS = 20
"""To put the end of an arc onto its limit: 0.02 rad become 2e-8."""
CLOSEST = 0.1
"""Samples along an arc are at least so far apart (rad, sizes)."""
AT_LIMIT = 1e-9


def arcs_of(conditions: Conditions, curve: Curve) -> list[Curve]:
    """The pieces of a curve that are inside the limits, full turns aside; each ends on a limit, or is the whole.

    Their points are SPACING apart at most, and no angle jumps. A piece shorter than that may be overlooked.
    """
    curve = dense(conditions, curve)
    q, inside = curve.q, conditions.unwind(curve.q, curve.q[0])[1]
    if inside.all() or not inside.any():
        return [curve] if inside.all() else []
    if curve.is_closed:  # begin and end outside, so that no piece goes over the end
        k, k_angle = int(np.argmin(inside)), conditions.columns[conditions.is_angle]
        round_trip = np.zeros_like(q[0])
        round_trip[k_angle] = TURN * np.round((q[-1] - q[0])[k_angle] / TURN)
        q = np.concatenate([q[k:], q[: k + 1] + round_trip])
        inside = np.concatenate([inside[k:], inside[: k + 1]])
    change = np.flatnonzero(inside[:-1] != inside[1:])
    leaves = inside[change]
    edges = _edges(conditions, q[np.where(leaves, change, change + 1)], q[np.where(leaves, change + 1, change)])
    found: list[Curve] = []
    for r, piece in enumerate(np.split(q, change + 1)):  # edge r lies between piece r and the next
        if leaves[r] if r < len(leaves) else inside[-1]:
            found.append(Curve(np.concatenate([edges[max(r - 1, 0) : r], piece, edges[r : r + 1]]), False))
    return found


def overlooked(conditions: Conditions, arcs: list[Curve], seeds: Array) -> list[Curve]:
    """Arcs of a single point: those solutions (K, nq) next to none of the arcs, which lie on pieces that are short."""
    found: list[Curve] = []
    for seed in seeds:
        if all(arc.near(conditions, seed)[1] > 2 * SPACING for arc in (*arcs, *found)):
            found.append(Curve(seed[None], False))
    return found


def samples_of(conditions: Conditions, arc: Curve, q0: Array, count: int) -> Array:
    """Up to `count` points (k, nq) evenly along an arc, unwound; the nearest to q0 (nq,) is one of them, and first."""
    unwound = conditions.unwind(arc.q, q0)[0]
    way = conditions.far(q0, unwound)
    k = int(np.argmin(way))
    at = np.concatenate([[0.0], np.cumsum(length(conditions.apart(arc.q[:-1], arc.q[1:])))])
    whole = float(at[-1])
    if arc.is_closed:
        whole += float(length(conditions.apart(arc.q[-1], arc.q[0])))
    count = min(count, 1 + int(whole / CLOSEST))
    if arc.is_closed:
        places = (at[k] + whole * np.arange(1, count) / count) % whole
    else:
        places = np.linspace(0.0, whole, count)
        places = np.delete(places, int(np.argmin(np.abs(places - at[k]))))
    others = np.minimum(np.searchsorted(at, places), len(at) - 1)
    return np.concatenate([_nearest(conditions, arc, way, k, q0)[None], unwound[others]])


def way_along(conditions: Conditions, arc: Curve, a: Array, b: Array) -> Array | None:
    """Configurations (m, nq) from a to b, both on the arc, by its points, inside the limits.

    Angles go on without jumps from a, so b may come out with full turns added. None if every way leaves the limits, as
    it does where a joint would have to wind farther than it can.
    """
    i, j = arc.near(conditions, a)[0], arc.near(conditions, b)[0]
    p = len(arc.q)
    ways = [np.arange(i, j + 1) if i <= j else np.arange(i, j - 1, -1)]
    if arc.is_closed:
        around = np.arange(i, j + p + 1) if j < i else np.arange(i, j - p - 1, -1)
        ways = sorted([ways[0], around % p], key=len)
    for order in ways:
        q = without_jumps(conditions, np.concatenate([a[None], arc.q[order], b[None]]))
        if within(conditions, q).all():
            return _straightened(conditions, q)
    return None


def within(conditions: Conditions, q: Array) -> Mask:
    """(K,) whether what may move is inside its limits, full turns counted."""
    k = conditions.columns[conditions.columns >= 0]
    lower, upper = conditions.lower[k] - AT_LIMIT, conditions.upper[k] + AT_LIMIT
    return np.asarray(((q[:, k] >= lower) & (q[:, k] <= upper)).all(axis=1))


def _straightened(conditions: Conditions, q: Array) -> Array:
    """Without the second and the last but one point, where the way would go back there."""
    if len(q) < 4:
        return q[[0, -1]]
    u = conditions.apart(q[:-1], q[1:])
    keep = np.ones(len(q), dtype=np.bool_)
    keep[1], keep[-2] = u[0] @ u[1] > 0.0, u[-1] @ u[-2] > 0.0
    return q[keep]


def _edges(conditions: Conditions, inner: Array, outer: Array) -> Array:
    """Between points inside (E, nq) and points outside (E, nq), the last ones that are inside."""
    for _ in range(BISECTIONS):
        middle = conditions.step(inner, 0.5 * conditions.apart(inner, outer))
        middle, _ = conditions.settle(middle, steps=3)
        inside = conditions.unwind(middle, inner[0])[1][:, None]
        inner, outer = np.where(inside, middle, inner), np.where(inside, outer, middle)
    return inner


def _nearest(conditions: Conditions, arc: Curve, way: Array, k: int, q0: Array) -> Array:
    """The point next to point k that is nearest to q0: a parabola through the squares of three ways says where."""
    p = len(arc.q)
    i, j = (k - 1) % p, (k + 1) % p
    here = conditions.unwind(arc.q[k : k + 1], q0)[0][0]
    if p < 3 or (not arc.is_closed and k in (0, p - 1)):
        return here
    a, b, c = way[i] ** 2, way[k] ** 2, way[j] ** 2
    bend = a - 2 * b + c
    share = 0.5 * (a - c) / bend if bend > 1e-12 else 0.0
    step = min(abs(share), 1.0) * conditions.apart(arc.q[k], arc.q[j] if share > 0 else arc.q[i])
    q, error = conditions.settle(conditions.step(arc.q[k : k + 1], step[None]))
    q, inside = conditions.unwind(q, q0)
    return q[0] if inside[0] and error[0] < HOLDS and conditions.far(q0, q[0]) < way[k] else here
