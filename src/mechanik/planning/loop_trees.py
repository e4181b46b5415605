"""Trees along the configurations at which loops are shut, from both ends.

Both grow towards random places, which need not lie on the loops: each step goes straight and then shuts them. What the
one has reached the other tries to reach as well: D. Berenson, S. S. Srinivasa, D. Ferguson and J. J. Kuffner,
"Manipulation planning on constraint manifolds", ICRA 2009.
"""

from __future__ import annotations

import time

import numpy as np

from mechanik.planning.ground import Ground
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array

REACH = 1.0
"""Units: how far a tree grows towards a random place at once. Tuned on two arms that carry a box around a pillar."""
EVERY = 4
"""Of a way that has been grown, each so many places is a node from which others can begin."""


class _Tree:
    """
    Attributes:
        ways: for each node, how it is come to from its parent, (N, nq), the parent first.
    """

    def __init__(self, ground: Ground, roots: Array) -> None:
        self._ground, self._count = ground, len(roots)
        self._places = np.empty((max(256, 2 * len(roots)), roots.shape[1]))
        self._places[: len(roots)] = roots
        self._parents = [-1] * len(roots)
        self._ways = [roots[k : k + 1] for k in range(len(roots))]

    def __len__(self) -> int:
        return self._count

    def place(self, node: int) -> Array:
        return self._places[node]

    def grow(self, target: Array, reach: float = np.inf) -> int:
        """Go on from the nearest node towards a place, as far as it is free; the number of the node where it ends.

        Args:
            reach: units: how far at most.
        """
        ground = self._ground
        away = ground.apart(self._places[: self._count], target)
        squares = np.einsum("ij,ij->i", away, away)
        node = int(squares.argmin())
        size = float(np.sqrt(squares[node]))
        here = self._places[node]
        if size > reach:
            target = ground.integrate(here, (reach / size) * ground.difference(here, target))
        way = ground.towards(here, target)
        free = ground.are_free(way[1:])
        way = way if free.all() else way[: 1 + int(np.argmin(free))]
        for k in range(0, len(way) - 1, EVERY):
            node = self._add(node, way[k : k + EVERY + 1])
        return node

    def back(self, node: int) -> Array:
        """(N, nq) from its root to a node."""
        parts = list[Array]()
        while self._parents[node] >= 0:
            parts.append(self._ways[node][1:])
            node = self._parents[node]
        return np.concatenate([self._ways[node], *parts[::-1]])

    def _add(self, parent: int, way: Array) -> int:
        if self._count == len(self._places):
            self._places = np.concatenate([self._places, np.empty_like(self._places)])
        self._places[self._count] = way[-1]
        self._parents.append(parent)
        self._ways.append(way)
        self._count += 1
        return self._count - 1


def find_along_loops(
    ground: Ground, start: Array, goals: Array, until: float, rng: np.random.Generator
) -> Array | None:
    """Configurations (N, nq) from the start to one of the goals, a step apart and free; None: not in this time.

    Args:
        until: by `time.perf_counter`.
    """
    lower, upper = ground.bounds(np.vstack([start, goals]))
    ends = _Tree(ground, start[None]), _Tree(ground, goals)
    while time.perf_counter() < until:
        side = int(len(ends[1]) < len(ends[0]))
        mine, other = ends[side], ends[1 - side]
        target = start.copy()
        target[ground.moving] = rng.uniform(lower, upper)[ground.moving]
        for k in ground.mechanism.space.balls_q:
            target[k : k + 4] = quaternion.normalize(rng.normal(size=4))
        count = len(mine)
        node = mine.grow(target, REACH)
        if len(mine) == count:
            continue
        met = other.grow(mine.place(node))
        if np.array_equal(other.place(met), mine.place(node)):
            there, back = (mine.back(node), other.back(met)) if side == 0 else (other.back(met), mine.back(node))
            return np.concatenate([there, back[-2::-1]])
    return None
