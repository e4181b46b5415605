"""A way made shorter: whole stretches are left out, then pieces between two random places, as long as that helps."""

from __future__ import annotations

import math

import numpy as np

from ..compiler import kernel, part
from .drawing import draw
from .motion import SCENE, WATCH, is_free, is_free_motion, put
from .state import DONE, KNOTS, LOOKS, STAGE, TIRED, TRIED, VAIN

SHORTER = 0.97
"""Of the length of a piece: what is longer is not worth the looks. At 0.999 ways are 1 % shorter, for half as
many looks again."""
STILL = 1e-9
"""Units: what is nearer is the same place."""


@part
def length_of(a, b, unit):
    total = 0.0
    for k in range(a.shape[0]):
        off = (b[k] - a[k]) / unit[k]
        total += off * off
    return math.sqrt(total)


@part
def skip(watch, scene, x, count, unit, step, q, room):
    """Leave out knots of x (n, nq): from each to the farthest that a free way leads to, by halving; how many stay."""
    kept, k = 1, 0
    while k < count - 1:
        jump = count - 1
        while jump > k + 1 and not is_free_motion(watch, scene, x[kept - 1], x[jump], unit, step, q, room):
            jump = k + (jump - k) // 2
        put(x, kept, x[jump])
        kept += 1
        k = jump
    return kept


@part
def piece_at(x, count, unit, along, a):
    """Into a: the place that lies so far along; the number of its piece."""
    k, left = 0, along
    size = length_of(x[0], x[1], unit)
    while left > size and k < count - 2:
        left -= size
        k += 1
        size = length_of(x[k], x[k + 1], unit)
    share = min(1.0, left / size) if size > 0.0 else 0.0
    for i in range(a.shape[0]):
        a[i] = x[k, i] + share * (x[k + 1, i] - x[k, i])
    return k


@part
def put_between(x, count, i, j, a, b, unit):
    """Knots a and b in place of those above i up to j, none that is where its neighbour is; how many there are now."""
    first, last = i + 1, j + 1
    with_a = length_of(x[i], a, unit) > STILL
    with_b = length_of(b, x[last], unit) > STILL
    shift = first + int(with_a) + int(with_b) - last
    if shift > 0:
        for k in range(count - 1, last - 1, -1):
            put(x, k + shift, x[k])
    else:
        for k in range(last, count):
            put(x, k + shift, x[k])
    if with_a:
        put(x, first, a)
        first += 1
    if with_b:
        put(x, first, b)
    return count + shift


@kernel(f"i8({SCENE}, f8[::1], f8, i8, i8, i8, i8, f8[:,::1], i8[::1])", calls=WATCH)
def shorten(
    watch, nodes, S, P, bodies, tree, kept_off, counts, guards, partners, mode, clearance,
    unit, step, seed, most, vain, budget, x, state,
):  # fmt: skip
    """Make a way shorter until nothing helps, or so many looks are spent; called again, it goes on.

    Args:
        unit: (nq,) what counts as 1.
        step: units: how far apart motions are looked at.
        most, vain: shortcuts that are tried at most, and so many in a row that are in vain are enough.
        x: (n, nq): knots, and room for as many more as are tried.
        state: as `state.py` says.
    """
    scene = (nodes, S, P, bodies, tree, kept_off, counts, guards, partners, mode, clearance)
    looks = np.zeros(1, np.int64)
    room = (np.empty((1, 1)), np.empty((0, 0, 0)), np.zeros(1, np.int64), looks)
    nq, before = unit.shape[0], state[LOOKS]
    q, a, b = np.empty((1, nq)), np.empty(nq), np.empty(nq)
    while state[STAGE] < 3 and looks[0] < budget:
        if state[STAGE] != 1:
            state[KNOTS] = skip(watch, scene, x, state[KNOTS], unit, step, q, room)
            state[STAGE] += 1
            continue
        count = state[KNOTS]
        if count < 3 or state[TRIED] >= most or state[VAIN] >= vain:
            state[STAGE] += 1
            continue
        total = 0.0
        for k in range(count - 1):
            total += length_of(x[k], x[k + 1], unit)
        low, high = total * draw(seed, state), total * draw(seed, state)
        low, high = min(low, high), max(low, high)
        i, j = piece_at(x, count, unit, low, a), piece_at(x, count, unit, high, b)
        state[TRIED] += 1
        state[VAIN] += 1
        if i == j or length_of(a, b, unit) > SHORTER * (high - low):
            continue
        put(q, 0, a)
        if is_free(watch, scene, q, room) and is_free_motion(watch, scene, a, b, unit, step, q, room):
            state[KNOTS] = put_between(x, count, i, j, a, b, unit)
            state[VAIN] = 0
    state[LOOKS] = before + looks[0]
    return DONE if state[STAGE] == 3 else TIRED
