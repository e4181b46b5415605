"""A time below which no pace within limits gets: a linear program, worked out by HiGHS.

The jerk of a freedom is within J where something linear in the pace y is within J y^-1/2. Instead of y^-1/2, which says
how long each bit of the way takes, a time that may be longer is let in: that is convex. Whoever keeps the limits keeps
these, so that the least sum of such times is a bound.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from mechanik.motion.retime.jerk_limited import PaceConstraints, neighbours
from mechanik.spatial.array import Array

TANGENTS = (0.05, 0.2, 0.5, 0.75, 0.9, 1.0, 1.1, 1.3, 2.0, 5.0)
"""Where y^-1/2 is replaced by its tangents, which lie below it, in multiples of an answer."""


def least_time(limits: PaceConstraints, answer: Array) -> float:
    """s, for paces that are splines on the same knots as the answer, coefficients (K + 2,)."""
    sparse: Any = import_module("scipy.sparse")
    optimize: Any = import_module("scipy.optimize")
    count, places = len(answer), len(limits.piece)
    rows, columns = np.repeat(np.arange(places), 3), (limits.piece[:, None] + np.arange(3)).ravel()
    y, rise, bend = (
        sparse.csr_matrix((limits.local[:, order].ravel(), (rows, columns)), (places, count)) for order in range(3)
    )
    whole, none = sparse.identity(places, format="csr"), sparse.csr_matrix((places, places))
    left: list[Any] = [sparse.hstack([y, none])]
    right = [limits.max_pace]
    for freedom in range(limits.accelerations.shape[2]):
        a0, a1, j0, j1, j2 = (sparse.diags(one[:, freedom]) for one in (*limits.accelerations, *limits.jerks))
        gain, jerk = a0 @ y + a1 @ rise, j0 @ y + j1 @ rise + j2 @ bend
        left += [sparse.hstack([sign * gain, none]) for sign in (1, -1)]
        left += [sparse.hstack([sign * jerk, -whole]) for sign in (1, -1)]
        right += [np.ones(2 * places), np.zeros(2 * places)]
    for share in TANGENTS:
        at = share * limits.at_places(answer)[0]
        left.append(sparse.hstack([-0.5 * sparse.diags(at**-1.5) @ y, -whole]))
        right.append(-1.5 * at**-0.5)
    cost = np.concatenate([np.zeros(count), _weights(limits)])
    rows_of_all = sparse.vstack(left).tocsr()
    found = optimize.linprog(cost, rows_of_all, np.concatenate(right), bounds=(0.0, None), method="highs-ipm")
    assert found.success, found.message
    return float(found.fun)


def _weights(limits: PaceConstraints) -> Array:
    """How much of the profile's time belongs to each place looked at, s: trapezoids."""
    wide = np.diff(limits.u)
    knots = np.concatenate([[-wide[0]], limits.u, [limits.u[-1] + wide[-1]]])
    places = (limits.local[:, 0] * neighbours(0.5 * (knots[1:] + knots[:-1]))[limits.piece]).sum(axis=1)
    edges = np.concatenate([limits.u[:1], 0.5 * (places[1:] + places[:-1]), limits.u[-1:]])
    return np.diff(edges)
