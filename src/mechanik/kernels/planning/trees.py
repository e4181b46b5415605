"""Two trees that grow towards each other, from the start and from all goals.

J. J. Kuffner and S. M. LaValle, "RRT-Connect: an efficient approach to single-query path planning", ICRA 2000. The tree
that has grown less grows (J. Kuffner and S. LaValle, "An efficient approach to path planning using balanced
bidirectional RRT search", 2005). At first motions are long, which is enough where there is room. Where it is not, each
place learns how long motions from it may be, much as in L. Jaillet et al., "Adaptive tuning of the sampling domain for
dynamic-domain RRTs", IROS 2005.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import helper, kernel, part
from .drawing import draw
from .motion import SCENE, WATCH, is_free_motion
from .state import DONE, FULL, GROWN, LOOKS, MEETING, NODES, TIRED

REACH, LEAST = 4.0, 0.4
"""Units: the longest motion, and how short it becomes where longer ones fail."""
LEAPS = 1500
"""Looks during which no motion becomes shorter. Tuned, as all of these are, on an arm of seven joints that reaches into
a shelf and through a window, and in a cage of fifty obstacles."""
SHRINK = 0.9
"""What becomes of the length of motions from a place where one failed."""
BLOCK = 128
SCANNED = 1500
"""Nodes that are compared in the time of a look, about."""


@part
def nearest(places, count, x, per, here):
    """Which of the first `count` places (nq, n) is the nearest to x (nq,), and how far, in units; into `here`: it.

    In blocks, number by number: the compiler makes vectors of that.

    Args:
        per: (nq,) one by each unit.
    """
    best, found = math.inf, 0
    squares = np.empty(BLOCK)
    for first in range(0, count, BLOCK):
        size = min(BLOCK, count - first)
        for i in range(size):
            squares[i] = 0.0
        for k in range(x.shape[0]):
            at, scale, row = x[k], per[k], places[k, first : first + size]
            for i in range(size):
                off = (row[i] - at) * scale
                squares[i] += off * off
        for i in range(size):
            if squares[i] < best:
                best, found = squares[i], first + i
    for k in range(x.shape[0]):
        here[k] = places[k, found]
    return found, math.sqrt(best)


@helper
def towards(here, x, share, new):
    """Into `new`: the share of the way from here to x, all (nq,); x to the bit at 1."""
    for k in range(x.shape[0]):
        new[k] = x[k] if share == 1.0 else here[k] + share * (x[k] - here[k])


@helper
def add(side, parent, x, reach, places, parents, reaches, state):
    """A new node of one of the trees; its number."""
    i = state[NODES + side]
    state[NODES + side] += 1
    state[GROWN + side] += 1
    for k in range(x.shape[0]):
        places[side, k, i] = x[k]
    parents[side, i], reaches[side, i] = parent, reach
    return i


@kernel(f"i8({SCENE}, f8[::1], f8[::1], f8[::1], f8, i8, i8, f8[:,:,::1], i8[:,::1], f8[:,::1], i8[::1])", calls=WATCH)
def grow(
    watch, nodes, S, P, bodies, tree, kept_off, counts, guards, partners, mode, clearance,
    lower, upper, unit, step, seed, budget, places, parents, reaches, state,
):  # fmt: skip
    """Grow until the trees meet, or so many looks are spent; called again, it goes on as if nothing had happened.

    Args:
        lower, upper, unit: (nq,), where to go, and what counts as 1.
        step: units: how far apart motions are looked at.
        places, parents, reaches: (2, nq, n), (2, n) and (2, n): the nodes of both trees, the one each was reached from
            (-1: none), and how long motions from it may be, units. Roots are in it, with an infinite one.
        state: as `state.py` says.
    """
    scene = (nodes, S, P, bodies, tree, kept_off, counts, guards, partners, mode, clearance)
    looks = np.zeros(1, np.int64)
    room = (np.empty((1, 1)), np.empty((0, 0, 0)), np.zeros(1, np.int64), looks)
    nq, most = lower.shape[0], places.shape[2]
    q, x, here, new = np.empty((1, nq)), np.empty(nq), np.empty(nq), np.empty(nq)
    per = 1.0 / unit
    before, scanned, answer = state[LOOKS], 0, TIRED
    while looks[0] + scanned // SCANNED < budget:
        if max(state[NODES], state[NODES + 1]) >= most:
            answer = FULL
            break
        shrink = 1.0 if state[LOOKS] < LEAPS else SHRINK
        side = 0 if state[GROWN] <= state[GROWN + 1] else 1
        for k in range(nq):
            x[k] = lower[k] + draw(seed, state) * (upper[k] - lower[k])
        a, far = nearest(places[side], state[NODES + side], x, per, here)
        scanned += state[NODES + side]
        reach = min(REACH, reaches[side, a])
        if far > reach:
            towards(here, x, reach / far, x)
        is_free = is_free_motion(watch, scene, here, x, unit, step, q, room)
        state[LOOKS] = before + looks[0]
        if not is_free:
            reaches[side, a] = max(LEAST, shrink * reach)
            continue
        i = add(side, a, x, reach, places, parents, reaches, state)
        # the other tree comes as near as it can
        other = 1 - side
        b, far = nearest(places[other], state[NODES + other], x, per, here)
        scanned += state[NODES + other]
        while state[NODES + other] < most:
            reach = min(REACH, reaches[other, b])
            towards(here, x, min(1.0, reach / far) if far > 0.0 else 1.0, new)
            is_free = is_free_motion(watch, scene, here, new, unit, step, q, room)
            state[LOOKS] = before + looks[0]
            if not is_free:
                reaches[other, b] = max(LEAST, shrink * reach)
                break
            if far <= reach:
                state[MEETING + side], state[MEETING + other] = i, b
                return DONE
            b, far = add(other, b, new, reach, places, parents, reaches, state), far - reach
            here, new = new, here
    return answer
