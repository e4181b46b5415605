"""Whether a way is free at every place of it: each look says how far to either side nothing can be touched.

Gaps are measured by `distance.watch`, which is handed over as a function: compiled into this kernel it would take as
long to compile again.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import kernel, part
from .certificate_bounds import (
    BOUND_FLOATS,
    REACH,
    TURN,
    VELOCITY,
    bound_rows,
    free_for,
    gone,
    place_nodes,
)
from .certificate_layout import (
    FREE,
    GAP,
    IS_CERTAIN,
    LOOKS,
    PAUSED,
    PIECE,
    SHARE,
    STRIDE,
    TOUCHED,
    UNSOUND,
)
from .motion import TABLES, WATCH

NEAR = 0.01
"""m: the smallest gap that is measured is the smallest there is, to this or a quarter of it."""
EAGER = 0.85
"""How much farther than the last look led the next one is: less than it may lead, so that they meet."""
WAITING = 64


@part
def floor_of(clearance, gap):
    """Gaps that are larger do not matter: they are neither too small nor the smallest."""
    return max(clearance, gap - max(NEAR, 0.25 * gap))


@kernel(f"i8({TABLES}, i8, i8, f8[:,::1], i8[:,::1], f8[:,::1], f8[::1], f8, f8, f8, i8, f8[::1])", calls=WATCH)
def certify(
    watch, nodes, S, P, bodies, tree, kept_off, counts, guards, partners, smallest_of_all, each_row, balls, couples, q,
    unit, clearance, fine, smallest, budget, state,
):  # fmt: skip
    """Look along a way with knots q (N, nq) from where `state` says on; see there for what is found.

    Args:
        watch: what looks; then what it takes before q, with one row for each guard.
        smallest_of_all, each_row: the numbers of two questions that it answers.
        unit: (nq,) what counts as 1 in each number of q.
        fine: units: how far apart looks are at most where nothing can be said between them.
        smallest: units: what is not certain in pieces of this size stays so.
        budget: looks, after which it pauses.
    Returns:
        UNSOUND, TOUCHED if something is nearer than the clearance, FREE, or PAUSED.
    """
    n, m = q.shape[1], guards.shape[0]
    one, rates, W = np.empty((1, n)), np.empty(n), np.empty((nodes.shape[0], 12))
    bounds, gaps, slopes = np.empty((m, BOUND_FLOATS)), np.empty((1, m)), np.empty((1, m, n))
    tally, waiting = np.zeros(1, np.int64), np.empty((WAITING, 2))
    left = budget
    while state[PIECE] < q.shape[0] - 1:
        k = int(state[PIECE])
        length = 0.0
        for i in range(n):
            rates[i] = q[k + 1, i] - q[k, i]
            length = max(length, abs(rates[i]) / unit[i])
        if not length < math.inf:
            return UNSOUND
        waiting[0, 0], waiting[0, 1], depth = state[SHARE], 1.0, 1
        while depth > 0:
            low, high = waiting[depth - 1, 0], waiting[depth - 1, 1]
            if low > high:
                depth -= 1
                continue
            if left <= 0:
                state[SHARE] = low  # what waits lies beyond, and is looked at again
                return PAUSED
            left -= 1
            state[LOOKS] += 1.0
            stride = state[STRIDE] / max(length, 1e-300)
            at = min(0.5 * (low + high), low + EAGER * stride)
            for i in range(n):
                one[0, i] = q[k, i] + at * rates[i]
            place_nodes(nodes, one[0], W)
            bound_rows(nodes, balls, couples, rates, W, bounds)
            if state[GAP] == math.inf:
                if watch(nodes, S, P, bodies, tree, kept_off, counts, guards, partners, one, smallest_of_all,
                         math.inf, gaps, slopes, tally) < 0:  # fmt: skip
                    return UNSOUND
                state[GAP] = gaps[0, 0]
            # as far as gaps have to be known for a stride that is twice as long, and no farther
            floor, reach = floor_of(clearance, state[GAP]), 1e-6
            wish = 2.0 * max(min(stride, high - low), smallest / max(length, 1e-300))
            for g in range(m):
                far = min(wish, 1.0 / bounds[g, TURN]) if bounds[g, TURN] > 0.0 else wish
                reach = max(reach, gone(bounds[g, VELOCITY], bounds[g, REACH], bounds[g, TURN], far))
            if watch(nodes, S, P, bodies, tree, kept_off, counts, guards, partners, one, each_row, floor + reach, gaps,
                     slopes, tally) < 0:  # fmt: skip
                return UNSOUND
            for g in range(m):
                if gaps[0, g] < floor + reach:
                    state[GAP] = min(state[GAP], gaps[0, g])
            if state[GAP] < clearance:
                return TOUCHED
            known, floor = floor + reach, floor_of(clearance, state[GAP])
            s = math.inf
            for g in range(m):
                room = min(gaps[0, g], known) - floor
                s = min(s, free_for(bounds[g, VELOCITY], bounds[g, REACH], bounds[g, TURN], room))
            state[STRIDE] = min(max(s * length, smallest), math.pi) if s < math.inf else math.pi
            s = min(s, 2.0)
            if s < 1.0 and s * length < smallest:
                state[IS_CERTAIN] = 0.0
            if state[IS_CERTAIN] == 0.0:
                s = max(s, 0.5 * fine / max(length, 1e-300))
            # what is left of low to high
            waiting[depth - 1, 0] = at + s
            if low < at - s:
                if depth < WAITING:
                    waiting[depth, 0], waiting[depth, 1] = low, at - s
                    depth += 1
                else:
                    state[IS_CERTAIN] = 0.0
        state[PIECE], state[SHARE] = k + 1.0, 0.0
    return FREE
