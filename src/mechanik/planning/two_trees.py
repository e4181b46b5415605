"""Trees of our own: both grow in one compiled search, which comes back now and then to see what time it is."""

from __future__ import annotations

import time

import numpy as np

from mechanik.kernels.planning.state import DONE, FULL, LOOKS, MEETING, NODES, STATE_INTS
from mechanik.planning.ground import Ground, Indices
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

trees = kernel_module("planning.trees")

ROOM = 256
"""Nodes of either tree that there is room for at first; it doubles."""
BUDGET = 1000
"""Looks of the first call of the kernel; later calls take about as long as `PAUSE`."""
PAUSE = 0.03
"""S: how long nobody can interrupt it, about."""


def find_by_two_trees(
    ground: Ground, start: Array, goals: Array, until: float, rng: np.random.Generator
) -> Array | None:
    """Configurations (N, nq) from the start to one of the goals, with free ways between them; None: not in this time.

    On flat ground. The same seed gives the same path, however long each call of the kernel takes.

    Args:
        until: by `time.perf_counter`.
    """
    scene = ground.scene()
    if scene is None:
        return np.array([start, goals[0]])
    lower, upper, roots = start.copy(), start.copy(), np.tile(start, (len(goals), 1))
    which = ground.moving
    roots[:, which] = goals[:, which]
    lower[which], upper[which] = (one[which] for one in ground.bounds(np.vstack([start, goals])))
    room = max(ROOM, 2 * len(goals))
    places, parents, reaches = np.empty((2, len(start), room)), np.full((2, room), -1), np.full((2, room), np.inf)
    places[0, :, 0], places[1, :, : len(goals)] = start, roots.T
    state = np.zeros(STATE_INTS, np.int64)
    state[NODES : NODES + 2] = 1, len(goals)
    seed, budget = int(rng.integers(2**62)), BUDGET
    while True:
        begun = time.perf_counter()
        if begun > until:
            return None
        looked = int(state[LOOKS])
        answer = trees.grow(
            *scene, lower, upper, ground.unit, ground.step, seed, budget, places, parents, reaches, state
        )
        ground.looks += int(state[LOOKS]) - looked
        if answer == DONE:
            break
        if answer == FULL:
            places, parents, reaches = (np.concatenate([one, one], axis=-1) for one in (places, parents, reaches))
        else:
            budget = max(1, int(budget * min(4.0, PAUSE / max(1e-6, time.perf_counter() - begun))))
    there, back = (_to_root(places[side], parents[side], int(state[MEETING + side])) for side in (0, 1))
    q = np.concatenate([there[::-1], back])
    q[0], q[-1] = start, goals[np.abs(roots - q[-1]).max(axis=1).argmin()]
    return q


def _to_root(places: Array, parents: Indices, node: int) -> Array:
    found = list[int]()
    while node >= 0:
        found.append(node)
        node = int(parents[node])
    return places[:, found].T
