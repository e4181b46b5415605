"""From solutions of a redundant mechanism to those nearest to a configuration, along their self-motions.

The gradient of the squared distance, less its part that would change a row, shows the way; how far to go along it is
told by how it changed over the last step (J. Barzilai, J. M. Borwein, "Two-point step size gradient methods", IMA
Journal of Numerical Analysis 8, 1988). A joint on its limit stays there while the way leads out.
"""

from __future__ import annotations

import numpy as np

from mechanik.search.arcs import within
from mechanik.search.conditions import HOLDS, Conditions, Mask, least
from mechanik.spatial.array import Array

MOST = 80
"""Steps; 10 to 30 are usual."""
FLAT = 1e-6
"""Ways (rad, m) shorter than this lead nowhere: the distance changes by their square."""
SHORTEST, LONGEST, STRIDE = 0.05, 5.0, 0.4
"""Of the step, as multiples of the gradient, and its length (rad, m) at most."""
REFUSALS = 8
"""Steps in a row that lead no nearer: then it is there."""


def approach(conditions: Conditions, q: Array, q0: Array, most: int = MOST) -> Array:
    """Each of the solutions q (K, nq), inside the limits, moved along its self-motion as near to q0 (nq,) as it goes.

    Where that is depends on where it starts: it goes downhill only, in `most` steps at most.
    """
    c = conditions
    q = q.copy()
    K = len(q)
    way, gradient, held = _downhill(c, q, q0)
    size, refused = np.ones(K), np.zeros(K, dtype=np.int64)
    far = c.far(q0, q)
    for _ in range(most):
        k = np.flatnonzero((np.abs(way).max(axis=1, initial=0.0) > FLAT) & (refused < REFUSALS))
        if not len(k):
            break
        step = size[k, None] * way[k]
        step *= np.minimum(1.0, STRIDE / np.maximum(np.linalg.norm(step, axis=1), 1e-300))[:, None]
        trial, at = _to_limits(c, q[k], step)
        trial, error = c.settle(trial, at | held[k], steps=6)
        there = c.far(q0, trial)
        fine = (error < HOLDS) & within(c, trial) & (there < far[k])
        refused[k[~fine]] += 1
        size[k[~fine]] *= 0.3
        k, trial = k[fine], trial[fine]
        if not len(k):
            continue
        old = q[k]
        q[k], far[k], refused[k] = trial, there[fine], 0
        way[k], after, held[k] = _downhill(c, trial, q0)
        s = c.mechanism.space.difference(old, trial)[:, c.moving]
        y = after - gradient[k]
        bend = (s * y).sum(axis=1)
        told = np.where(bend > 0.0, (s * s).sum(axis=1) / np.where(bend > 0.0, bend, 1.0), 2 * size[k])
        size[k], gradient[k] = np.clip(told, SHORTEST, LONGEST), after
    return q


def _downhill(c: Conditions, q: Array, q0: Array) -> tuple[Array, Array, Mask]:
    """The way down (K, n), rad and m; the gradient without what changes rows (K, n); what stays on its limit (K, n)."""
    uphill = c.mechanism.space.difference(q0, q)[:, c.moving]
    J = c.rows(q)[1] / c.unit
    lower, upper = _at_limits(c, q)
    held = np.zeros_like(lower)
    way = gradient = _without_rows(J, uphill, held)
    for _ in range(4):
        out = ((way > 0) & lower) | ((way < 0) & upper)  # the way is minus this
        if not (out & ~held).any():
            break
        held |= out
        way = _without_rows(J, uphill, held)
    return -way, gradient, held


def _without_rows(J: Array, g: Array, held: Mask) -> Array:
    J, g = np.where(held[:, None], 0.0, J), np.where(held, 0.0, g)
    return g - least(J, (J @ g[..., None])[..., 0])


def _at_limits(c: Conditions, q: Array) -> tuple[Mask, Mask]:
    """(K, n) each: what is on its lower, and on its upper limit."""
    scalar, k = c.columns >= 0, np.maximum(c.columns, 0)
    return scalar & (q[:, k] <= c.lower[k] + 1e-9), scalar & (q[:, k] >= c.upper[k] - 1e-9)


def _to_limits(c: Conditions, q: Array, v: Array) -> tuple[Array, Mask]:
    """As far along v (K, n) as the limits let it, and what is on its limit then."""
    scalar, k = c.columns >= 0, np.maximum(c.columns, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(v > 0, (c.upper[k] - q[:, k]) / v, np.where(v < 0, (c.lower[k] - q[:, k]) / v, np.inf))
    room = np.where(scalar & (np.abs(v) > 1e-14), np.maximum(room, 0.0), np.inf)
    share = np.minimum(1.0, room.min(axis=1, initial=np.inf))
    there = c.step(q, share[:, None] * v / c.unit)
    lower, upper = _at_limits(c, there)
    return np.clip(there, c.lower, c.upper), (room <= share[:, None]) & (lower | upper)
