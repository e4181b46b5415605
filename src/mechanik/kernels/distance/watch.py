"""What of a mechanism is near to what, at one configuration after the other: one kernel for all questions."""

from __future__ import annotations

import numpy as np

from ..compiler import kernel
from .bounds import are_apart
from .nearby import measure_pair, nearest_standing
from .placing import MIDDLE, PLACE_FLOATS, place
from .slopes import fill_slopes
from .watch_layout import (
    ALL_ROWS,
    BODY_NODE,
    BODY_RADIUS,
    FIRST_PARTNER,
    FIRST_ROW,
    FIRST_WIDE,
    FOUND_FLOATS,
    GAP,
    GUARDED,
    IS_FREE,
    LENGTH_OF_Q,
    MOST_ROWS,
    MOVING_BODIES,
    MOVING_SHAPES,
    NEAR_PAIRS,
    PARTNER,
    PARTNERS,
    ROWS,
    SMALLEST,
)

DEEPEST = 128
"""Branches of the tree that can wait to be looked at; cut in the middle, it is never that deep."""


@kernel(
    "i8(f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], b1[:,::1], i8[::1], i8[:,::1], i8[::1], "
    "f8[:,::1], i8, f8, f8[:,::1], f8[:,:,::1], i8[::1])"
)
def watch(nodes, S, P, bodies, tree, kept_off, counts, guards, partners, q, mode, limit, out, more, tally):
    """Answer one of the questions of `watch_layout` for q (N, nq).

    Args:
        limit: what is farther apart than this does not matter, m.
        out: IS_FREE: (N, 1), 1 or 0. SMALLEST: (N, 1), the smallest gap or `limit`. ALL_ROWS: (N, m), gaps, none above
            `limit`. NEAR_PAIRS: not touched.
        more: ALL_ROWS: (N, m, nv), derivatives, zero where a gap is at the limit. NEAR_PAIRS: (1, n, 12), the guarded
            body and what is found, for as many as there is room.
        tally: (1,), to which the number of pairs of shapes that were measured is added.
    Returns:
        NEAR_PAIRS: how many there are, even without room for them all; else how many configurations were looked at;
        -1 if q or `limit` is unsound, or a body is nowhere.
    """
    if q.shape[1] != counts[LENGTH_OF_Q] or np.isnan(limit):
        return -1
    all_rows = 1
    if mode == NEAR_PAIRS:
        all_rows = bodies.shape[0]
    elif mode == ALL_ROWS:
        all_rows = MOST_ROWS
    first_shape = nodes.shape[0]
    first_body = first_shape + counts[MOVING_SHAPES]
    W = np.empty((first_body + counts[MOVING_BODIES], PLACE_FLOATS))
    found = np.empty((all_rows + 1, FOUND_FLOATS))
    found[all_rows, 0] = 0.0
    waiting = np.empty((DEEPEST, 2))
    stop = mode == IS_FREE
    total = 0
    for n in range(q.shape[0]):
        if not place(nodes, bodies, first_shape, first_body, q[n], W):
            return -1
        nearest = limit
        for g in range(guards.shape[0]):
            b = guards[g, GUARDED]
            most = min(all_rows, guards[g, ROWS]) if mode != NEAR_PAIRS else all_rows
            middle = first_body + b
            count = 0
            if guards[g, PARTNERS] < 0:
                count = nearest_standing(
                    S, P, bodies, b, tree, kept_off, counts[FIRST_WIDE], nearest, stop, first_shape, middle, W, found,
                    most, waiting,
                )  # fmt: skip
            else:
                near = nearest
                for k in range(guards[g, FIRST_PARTNER], guards[g, FIRST_PARTNER] + guards[g, PARTNERS]):
                    c = partners[k]
                    reach = near + bodies[b, BODY_RADIUS] + bodies[c, BODY_RADIUS]
                    if not are_apart(W, middle, MIDDLE, W, first_body + c, MIDDLE, reach):
                        count = measure_pair(S, P, bodies, b, c, near, stop, first_shape, W, found, count, most)
                        if count == most:
                            near = min(near, found[most - 1, GAP])
                            if stop:
                                break
            if count > 0 and (mode == IS_FREE or mode == SMALLEST):
                nearest = found[0, GAP]
                if stop:
                    break
            elif mode == ALL_ROWS:
                for k in range(most):
                    row = guards[g, FIRST_ROW] + k
                    if k < count:
                        out[n, row] = found[k, GAP]
                        c = int(found[k, PARTNER])
                        fill_slopes(
                            nodes, W, int(bodies[b, BODY_NODE]), int(bodies[c, BODY_NODE]), found, k, more, n, row
                        )
                    else:
                        out[n, row] = limit
                        for column in range(more.shape[2]):
                            more[n, row, column] = 0.0
            elif mode == NEAR_PAIRS:
                for k in range(count):
                    if total < more.shape[1]:
                        more[0, total, 0] = b
                        for number in range(FOUND_FLOATS):
                            more[0, total, 1 + number] = found[k, number]
                    total += 1
        if mode == IS_FREE:
            out[n, 0] = 1.0 if nearest == limit else 0.0
        elif mode == SMALLEST:
            out[n, 0] = nearest
        if mode != NEAR_PAIRS:
            total += 1
    tally[0] += int(found[all_rows, 0])
    return total
