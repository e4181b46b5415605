"""As `shortcuts.py`, for flat ground and compiled."""

from __future__ import annotations

import time

import numpy as np

from mechanik.kernels.planning.state import DONE, KNOTS, LOOKS, STATE_INTS
from mechanik.planning.ground import Ground
from mechanik.planning.shortcuts import ARC, TRIES, VAIN
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

shortcuts = kernel_module("planning.shortening")
corners = kernel_module("planning.corners")

BUDGET = 1000
"""Looks, after which it is asked what time it is."""


def shortened(ground: Ground, q: Array, rng: np.random.Generator, until: float) -> Array:
    """Knots (N, nq) of a shorter way, each straight to the next; as they are if there is no time."""
    scene = ground.scene()
    if scene is None:
        return q[[0, -1]]
    x = np.empty((len(q) + TRIES + 1, q.shape[1]))
    x[: len(q)] = q
    state = np.zeros(STATE_INTS, np.int64)
    state[KNOTS] = len(q)
    seed, answer = int(rng.integers(2**62)), -1
    while answer != DONE and time.perf_counter() < until:
        answer = shortcuts.shorten(*scene, ground.unit, ground.step, seed, TRIES, VAIN, BUDGET, x, state)
    ground.looks += int(state[LOOKS])
    return x[: int(state[KNOTS])]


def with_round_corners(ground: Ground, q: Array) -> Array:
    """The same knots (N, nq) with an arc in place of each corner, where one is free: a parabola that touches both
    sides."""
    scene = ground.scene()
    if scene is None or len(q) < 3:
        return q
    far = float(np.abs(ground.apart(q[:-1], q[1:])).max(axis=1).sum())
    out = np.empty((int(far / ARC) + 6 * len(q), q.shape[1]))
    state = np.zeros(STATE_INTS, np.int64)
    count = corners.round_corners(*scene, ground.unit, ground.step, np.ascontiguousarray(q), out, state)
    ground.looks += int(state[LOOKS])
    return out[:count]
