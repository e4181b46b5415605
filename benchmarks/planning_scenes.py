"""The scenes of `planning.py`, each with starts and goals for a Panda that bumps with capsules.

Shelf and window: the hand at random places before the one board and before the other, or before and behind the window.
Cage: a thousand free configurations are drawn inside the limits; each is joined to those of its twenty nearest to which
the straight way is free (looked at every 0.005 rad), and of those that hang together, the most, starts and goals are
drawn. So each problem has a path, which neither of the planners has had a hand in, and starts and goals are as far
apart as any. Apart: starts and goals are drawn alone. About one of eight is then a start or goal that hangs together
with no other, and may have no path. Another seed means other starts and goals, and another cage.
"""
# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from cage import HAND, cage, free_configurations

import mechanik as mk
from mechanik.collision import Collider, Obstacle
from mechanik.model.shapes import Box
from mechanik.spatial import make_pose, rotation

DENSE = 0.005
"""Rad: how far apart looks are that decide."""
DRAWN, NEAREST, FIRST = 1_000, 20, 8
"""Of the cage: configurations; neighbours of each; and places of a way that are looked at before all others."""


class Scene(NamedTuple):
    """A collider, and starts and goals (N, nq)."""

    collider: Collider
    starts: np.ndarray
    goals: np.ndarray


def board(name: str, size: tuple[float, float, float], *place: float) -> Obstacle:
    return Obstacle(Box(size), place, name=name)


def on_shelf() -> list[Obstacle]:
    """A table, and on it a shelf with two boards, open towards the arm."""
    boards = [board(f"board{k}", (0.35, 0.8, 0.02), 0.65, 0.0, z) for k, z in enumerate((0.1, 0.5, 0.9))]
    sides = [board(f"side{k}", (0.35, 0.02, 0.8), 0.65, y, 0.5) for k, y in enumerate((-0.4, 0.4))]
    table, back = board("table", (1.4, 1.4, 0.04), 0.5, 0.0, -0.1), board("back", (0.02, 0.8, 0.8), 0.83, 0, 0.5)
    return [table, *boards, *sides, back]


def in_wall() -> list[Obstacle]:
    """A wall in front of the arm with a window of 0.4 by 0.4 m."""
    frame = [board("left", (0.04, 1.0, 1.6), 0.45, 0.7, 0.5), board("right", (0.04, 1.0, 1.6), 0.45, -0.7, 0.5)]
    return [*frame, board("below", (0.04, 0.4, 0.6), 0.45, 0.0, 0.0), board("above", (0.04, 0.4, 0.6), 0.45, 0.0, 1.0)]


def hands(
    collider: Collider, low: tuple[float, ...], high: tuple[float, ...], count: int, rng: np.random.Generator
) -> np.ndarray:
    """(count, nq) free, with the hand anywhere between two corners, pointing forward within half a radian."""
    found: list[np.ndarray] = []
    forward = rotation.about_y(np.pi / 2)
    while len(found) < count:
        turns = rotation.exp(rng.uniform(-0.5, 0.5, (count, 3))) @ forward @ rotation.about_z(rng.uniform(-3, 3, count))
        X = make_pose(turns, rng.uniform(low, high, (count, 3)))
        solver = mk.Solver(collider.mechanism, mk.PoseGoal(HAND, X[0]), avoid=collider)
        result = solver.solve_batch(X, threads=1)
        found += list(result.q[result.success])
    return np.array(found[:count])


def shelf(arm: mk.Mechanism, count: int, seed: int = 0) -> Scene:
    collider, rng = Collider(arm, ["self", *on_shelf()]), np.random.default_rng(3 + seed)
    below = hands(collider, (0.5, -0.25, 0.2), (0.65, 0.25, 0.4), count, rng)
    return Scene(collider, below, hands(collider, (0.5, -0.25, 0.6), (0.65, 0.25, 0.8), count, rng))


def window(arm: mk.Mechanism, count: int, seed: int = 0) -> Scene:
    collider, rng = Collider(arm, ["self", *in_wall()]), np.random.default_rng(4 + seed)
    before = hands(collider, (0.25, -0.5, 0.2), (0.32, 0.5, 0.8), count, rng)
    return Scene(collider, before, hands(collider, (0.55, -0.12, 0.4), (0.65, 0.12, 0.6), count, rng))


def caged(arm: mk.Mechanism, count: int, seed: int = 0) -> Scene:
    collider, rng = Collider(arm, ["self", *cage(seed)]), np.random.default_rng(5 + seed)
    q, _ = free_configurations(collider, max(DRAWN, 4 * count), 1 + seed)
    some = rng.permutation(joined(collider, q))[: 2 * count]
    return Scene(collider, q[some[:count]], q[some[count:]])


def apart(arm: mk.Mechanism, count: int, seed: int = 0) -> Scene:
    collider = Collider(arm, ["self", *cage(seed)])
    q, _ = free_configurations(collider, 2 * count, 1 + seed)
    return Scene(collider, q[:count], q[count:])


def joined(collider: Collider, q: np.ndarray) -> np.ndarray:
    """Numbers of those of q (N, nq), as many as can be, between which free straight ways lead over others of them."""
    group = np.arange(len(q))
    for i, one in enumerate(q):
        for j in np.argsort(np.linalg.norm(q - one, axis=1))[1 : NEAREST + 1]:
            if group[i] == group[j]:
                continue
            way = straight(one, q[j])
            if np.all(collider.is_free(way[:: 1 + len(way) // FIRST])) and np.all(collider.is_free(way)):
                group[group == group[j]] = group[i]
    return np.flatnonzero(group == np.bincount(group).argmax())


def straight(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(N, nq), every 0.005 rad on the straight way from a to b."""
    return a + np.linspace(0.0, 1.0, 2 + int(np.abs(b - a).max() / DENSE))[:, None] * (b - a)


SCENES: dict[str, Callable[[mk.Mechanism, int, int], Scene]] = {
    "shelf": shelf, "window": window, "cage": caged, "apart": apart,
}  # fmt: skip
