"""Whether a way is free at every place of it, not only where it was looked at.

Each look measures gaps, and a bound of how fast these can fall says how far to either side nothing can be touched. So a
wide space takes few looks. Where there are loops or balls, the way is looked at densely (`halving.py`).
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import numpy as np

from mechanik.collision.tables import Tables
from mechanik.errors import NotFinite
from mechanik.kernels.distance import watch_layout as at
from mechanik.kernels.layout import PARENT
from mechanik.kernels.planning.certificate_layout import (
    BALL_FLOATS,
    COUPLE_INTS,
    GAP,
    IS_CERTAIN,
    LOOKS,
    MIDDLE,
    NODE,
    PAUSED,
    RADIUS,
    STATE_FLOATS,
    STRIDE,
    TOUCHED,
    UNSOUND,
)
from mechanik.planning.ground import Ground
from mechanik.planning.halving import FINE, MOST, SMALLEST, Verdict, look_by_halving
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

kernel = kernel_module("planning.certificate")
SOME = 4_000
"""Looks until the clock is looked at."""
BEGIN = 0.1
"""Units: how far the first look is expected to lead."""


def look_closely(ground: Ground, q: Array, clearance: float, until: float) -> Verdict:
    """Of a way with knots q (N, nq), as far as it can be said; nothing is less than a look each 0.01 rad or 5 mm.

    The gap is the smallest there is, to 1 cm or a quarter of it. When time is over, the rest is looked at densely.
    """
    collider = ground.collider
    if collider is None or not ground.is_flat or len(q) < 2:
        return look_by_halving(ground, q, clearance, until)
    scene = _scene(collider._fresh().tables)
    knots, state = np.ascontiguousarray(q), np.zeros(STATE_FLOATS)
    state[GAP], state[IS_CERTAIN], state[STRIDE] = np.inf, 1.0, BEGIN
    while True:
        answer = kernel.certify(*scene, knots, ground.unit, clearance, FINE, SMALLEST, SOME, state)
        if answer != PAUSED:
            break
        if state[LOOKS] > MOST or time.perf_counter() > until:
            state[IS_CERTAIN] = 0.0
    ground.looks += int(state[LOOKS])
    if answer == UNSOUND:
        raise NotFinite("a link is nowhere, although q is finite: a length of the mechanism is too large")
    is_free = answer != TOUCHED
    return Verdict(is_free, is_free and bool(state[IS_CERTAIN] == 1.0), float(state[GAP]))


@lru_cache(maxsize=8)
def _scene(tables: Tables) -> tuple[Any, ...]:
    """All that the kernel takes between `watch` and the way."""
    guards = tables.guards.copy()
    guards[:, at.FIRST_ROW], guards[:, at.ROWS] = np.arange(len(guards)), 1  # of each the nearest alone
    rows, balls = tables.bodies[: tables.moving], np.empty((tables.moving, BALL_FLOATS))
    balls[:, NODE], balls[:, RADIUS] = rows[:, at.BODY_NODE], rows[:, at.BODY_RADIUS]
    balls[:, MIDDLE : MIDDLE + 3] = rows[:, at.BODY_BALL : at.BODY_BALL + 3]
    parents, nodes = tables.nodes[:, PARENT].astype(np.int64).tolist(), balls[:, NODE].astype(np.int64).tolist()
    couples = list[tuple[int, int, int, int]]()
    for row, (body, first, count, *_) in enumerate(tables.guards.tolist()):
        if count < 0:
            couples.append((row, body, -1, -1))
        for other in tables.partners[first : first + max(count, 0)].tolist():
            couples.append((row, body, other, _above(parents, nodes[body], nodes[other])))
    pairs = np.array(couples, np.int64).reshape(-1, COUPLE_INTS)
    return (*tables.arrays[:7], guards, tables.partners, at.SMALLEST, at.ALL_ROWS, balls, pairs)


def _above(parents: list[int], a: int, b: int) -> int:
    """The lowest node that carries two others; -1 if there is none."""
    while a != b:
        a, b = (parents[a], b) if a > b else (a, parents[b])
    return a
