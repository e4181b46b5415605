"""Scenes of `planning.py`, each with starts and goals for a Panda with collision capsules.

Shelf and window: the hand at random positions in front of one board and of the other, or in front of and behind the
window. Cage: a thousand free configurations are drawn within limits; each is connected to those of its twenty nearest
neighbours to which the straight segment is free (checked every 0.005 rad), and starts and goals are drawn from the
largest connected component. So each problem has a path, independent of both planners, and starts and goals are as far
apart as any. Apart: starts and goals are drawn without this condition. About one of eight is then connected to no other
configuration, and may have no path. The seed selects starts, goals and the cage.
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
"""rad, between two checks of a segment."""
DRAWN, NEAREST, FIRST = 1_000, 20, 8
"""Of the cage: configurations; neighbours of each; and samples of a segment that are checked first."""


class Scene(NamedTuple):
    """A collider, and starts and goals (N, nq)."""

    collider: Collider
    starts: np.ndarray
    goals: np.ndarray


def board(name: str, size: tuple[float, float, float], *position: float) -> Obstacle:
    return Obstacle(Box(size), position, name=name)


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


def free_hand_configurations(
    collider: Collider, low: tuple[float, ...], high: tuple[float, ...], count: int, rng: np.random.Generator
) -> np.ndarray:
    """(count, nq) free, with the hand anywhere between two corners, pointing forward within half a radian."""
    configurations: list[np.ndarray] = []
    forward = rotation.about_y(np.pi / 2)
    while len(configurations) < count:
        turns = rotation.exp(rng.uniform(-0.5, 0.5, (count, 3))) @ forward @ rotation.about_z(rng.uniform(-3, 3, count))
        X = make_pose(turns, rng.uniform(low, high, (count, 3)))
        solver = mk.Solver(collider.mechanism, mk.PoseGoal(HAND, X[0]), avoid=collider)
        result = solver.solve_batch(X, threads=1)
        configurations += list(result.q[result.success])
    return np.array(configurations[:count])


def shelf(arm: mk.Mechanism, count: int, seed: int = 0) -> Scene:
    collider, rng = Collider(arm, ["self", *on_shelf()]), np.random.default_rng(3 + seed)
    below = free_hand_configurations(collider, (0.5, -0.25, 0.2), (0.65, 0.25, 0.4), count, rng)
    return Scene(collider, below, free_hand_configurations(collider, (0.5, -0.25, 0.6), (0.65, 0.25, 0.8), count, rng))


def window(arm: mk.Mechanism, count: int, seed: int = 0) -> Scene:
    collider, rng = Collider(arm, ["self", *in_wall()]), np.random.default_rng(4 + seed)
    before = free_hand_configurations(collider, (0.25, -0.5, 0.2), (0.32, 0.5, 0.8), count, rng)
    return Scene(
        collider, before, free_hand_configurations(collider, (0.55, -0.12, 0.4), (0.65, 0.12, 0.6), count, rng)
    )


def caged(arm: mk.Mechanism, count: int, seed: int = 0) -> Scene:
    collider, rng = Collider(arm, ["self", *cage(seed)]), np.random.default_rng(5 + seed)
    q, _ = free_configurations(collider, max(DRAWN, 4 * count), 1 + seed)
    indices = rng.permutation(largest_component(collider, q))[: 2 * count]
    return Scene(collider, q[indices[:count]], q[indices[count:]])


def apart(arm: mk.Mechanism, count: int, seed: int = 0) -> Scene:
    collider = Collider(arm, ["self", *cage(seed)])
    q, _ = free_configurations(collider, 2 * count, 1 + seed)
    return Scene(collider, q[:count], q[count:])


def largest_component(collider: Collider, q: np.ndarray) -> np.ndarray:
    """Indices of the largest set of rows of q (N, nq) that free straight segments connect."""
    group = np.arange(len(q))
    for i, q_i in enumerate(q):
        for j in np.argsort(np.linalg.norm(q - q_i, axis=1))[1 : NEAREST + 1]:
            if group[i] == group[j]:
                continue
            segment = straight(q_i, q[j])
            if np.all(collider.is_free(segment[:: 1 + len(segment) // FIRST])) and np.all(collider.is_free(segment)):
                group[group == group[j]] = group[i]
    return np.flatnonzero(group == np.bincount(group).argmax())


def straight(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(N, nq), every 0.005 rad on the straight segment from a to b."""
    return a + np.linspace(0.0, 1.0, 2 + int(np.abs(b - a).max() / DENSE))[:, None] * (b - a)


SCENES: dict[str, Callable[[mk.Mechanism, int, int], Scene]] = {
    "shelf": shelf, "window": window, "cage": caged, "apart": apart,
}  # fmt: skip
