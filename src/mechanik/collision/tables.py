"""Bodies, their shapes and who is kept off whom as the arrays that the kernels read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanik import kernels
from mechanik.collision.body import Body
from mechanik.collision.tree import build_tree, refit_tree
from mechanik.kernels.distance import watch_layout as at
from mechanik.kernels.distance.shape_layout import (
    BALL,
    BODY,
    HALF_SPACE,
    HULL,
    KIND,
    NODE,
    POSE,
    RADIUS,
    SHAPE_FLOATS,
    SIZE,
)
from mechanik.kernels.layout import PARENT
from mechanik.mechanism.kinematics import Kinematics
from mechanik.spatial.array import Array

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

kernel = kernels.Lazy("distance.watch", "watch")
MOST_PAIRS = 64
"""Pairs of links that have a row each; beyond, a link has rows for the nearest of its partners only."""


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """What `watch` takes, in its order, and the bodies that it was made of: those that move, then the others."""

    nodes: Array
    shapes: Array
    points: Array
    bodies: Array
    tree: Array
    kept_off: Bools
    counts: Ints
    guards: Ints
    partners: Ints
    members: tuple[Body, ...]

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return (
            self.nodes, self.shapes, self.points, self.bodies, self.tree, self.kept_off, self.counts, self.guards,
            self.partners,
        )  # fmt: skip

    @property
    def rows(self) -> int:
        """How many rows all guards have."""
        return int(self.guards[:, at.ROWS].sum())

    @property
    def moving(self) -> int:
        return int(self.counts[at.MOVING_BODIES])

    def near_pairs(self, q: Array, limit: float, tally: Ints | None = None) -> Array:
        """(n, 12): every pair of bodies nearer than `limit`, as in `watch_layout`, at one q (1, nq); in no order."""
        room, tally = 64, np.zeros(1, np.int64) if tally is None else tally
        while True:
            found = np.empty((1, room, at.FOUND_FLOATS + 1))
            count = int(kernel.watch(*self.arrays, q, at.NEAR_PAIRS, limit, np.empty((0, 0)), found, tally))
            if count <= room:
                return found[0, :count]
            room = count

    def with_body(self, body: Body) -> Tables:
        """With something that stands still elsewhere."""
        number = next(k for k, one in enumerate(self.members) if one.name == body.name)
        shapes, tree = self.shapes.copy(), self.tree.copy()
        mine = np.flatnonzero(shapes[:, BODY] == number)
        order = [pair for pair in body.solids if pair[0].kind != HALF_SPACE]
        order += [pair for pair in body.solids if pair[0].kind == HALF_SPACE]
        for row, (solid, X) in zip(mine, order, strict=True):
            Y = body.frame @ X
            _place(shapes[row], Y, Y[:3, :3] @ _middle(solid.frame) + Y[:3, 3])
            refit_tree(tree, int(row), *solid.box(Y))
        members = tuple(body if k == number else one for k, one in enumerate(self.members))
        return replace(self, shapes=shapes, tree=tree, members=members)


def build_tables(
    kinematics: Kinematics, moving: Sequence[Body], standing: Sequence[Body], kept_off: Bools,
    pairs: Sequence[tuple[int, int]],
) -> Tables:  # fmt: skip
    """
    Args:
        kept_off: (moving, standing), who is kept off what stands still.
        pairs: numbers of moving bodies that are kept off each other.
    """
    nodes, place = _needed(kinematics.nodes, [body.node for body in moving])
    bodies = [replace(body, node=place.get(body.node, -1)) for body in (*moving, *standing)]
    shapes, points, rows = list[Array](), list[Array](), list[Array]()
    boxes: list[tuple[Array, Array]] = []
    first_wide = 0
    parted = [(n, *pair) for n, body in enumerate(bodies) for pair in body.solids]
    parted.sort(key=lambda one: one[1].kind == HALF_SPACE)  # half-spaces, which stand still, come last
    used = 0
    for number, solid, X_body_shape in parted:
        body = bodies[number]
        X = body.frame @ X_body_shape
        row = np.zeros(SHAPE_FLOATS)
        row[KIND], row[NODE], row[BODY] = solid.kind, body.node, number
        row[SIZE : SIZE + 3] = solid.sizes
        if solid.kind >= HULL:
            row[SIZE] = used
        middle = _middle(solid.frame)
        _place(row, X, X[:3, :3] @ middle + X[:3, 3])
        row[RADIUS] = solid.ball(middle)
        shapes.append(row)
        points.append(solid.points)
        used += len(solid.points)
        if number >= len(moving) and solid.kind != HALF_SPACE:
            boxes.append(solid.box(X))
        first_wide += solid.kind != HALF_SPACE
    at_shape = 0
    for body in bodies:
        rows.append(_body_row(body, at_shape))
        at_shape += len(body.solids)
    moving_shapes = sum(len(body.solids) for body in moving)
    low, high = (np.array([box[k] for box in boxes]).reshape(-1, 3) for k in (0, 1))
    counts = np.zeros(at.COUNTS, np.int64)
    counts[at.MOVING_BODIES], counts[at.MOVING_SHAPES] = len(moving), moving_shapes
    counts[at.FIRST_WIDE], counts[at.LENGTH_OF_Q] = first_wide, kinematics.space.nq
    guards, partners = _guards(kept_off, pairs)
    return Tables(
        nodes=nodes,
        shapes=np.array(shapes).reshape(-1, SHAPE_FLOATS),
        points=np.vstack([np.zeros((0, 3)), *points]),
        bodies=np.array(rows).reshape(-1, at.BODY_FLOATS),
        tree=build_tree(low, high, moving_shapes),
        kept_off=np.ascontiguousarray(kept_off),
        counts=counts,
        guards=guards,
        partners=partners,
        members=tuple(bodies),
    )


def _guards(kept_off: Bools, pairs: Sequence[tuple[int, int]]) -> tuple[Ints, Ints]:
    """What stands still first, then the pairs: one by one if they are few, else link by link."""
    guards, partners, row = list[list[int]](), list[int](), 0
    for body, count in enumerate(kept_off.sum(axis=1).tolist()):
        if count:
            guards.append([body, 0, -1, row, min(count, at.MOST_ROWS)])
            row += min(count, at.MOST_ROWS)
    groups: dict[tuple[int, int], list[int]] = {}
    for k, (a, b) in enumerate(pairs):
        groups.setdefault((a, k if len(pairs) <= MOST_PAIRS else 0), []).append(b)
    for (a, _), some in groups.items():
        guards.append([a, len(partners), len(some), row, min(len(some), at.MOST_ROWS)])
        partners += some
        row += min(len(some), at.MOST_ROWS)
    return np.array(guards, np.int64).reshape(-1, at.GUARD_INTS), np.array(partners, np.int64)


def _needed(nodes: Array, carriers: Iterable[int]) -> tuple[Array, dict[int, int]]:
    """The nodes that move some carriers, and the new number of each."""
    wanted: set[int] = set()
    for node in carriers:
        while node >= 0 and node not in wanted:
            wanted.add(node)
            node = int(nodes[node, PARENT])
    place = {node: k for k, node in enumerate(sorted(wanted))}
    kept = nodes[sorted(wanted)].copy()
    kept[:, PARENT] = [place.get(int(parent), -1) for parent in kept[:, PARENT]]
    return kept, place


def _middle(points: Array) -> Array:
    return (points.min(axis=0) + points.max(axis=0)) / 2 if len(points) else np.zeros(3)


def _place(row: Array, X: Array, middle: Array) -> None:
    row[POSE : POSE + 9], row[POSE + 9 : POSE + 12] = X[:3, :3].ravel(), X[:3, 3]
    row[BALL : BALL + 3] = middle


def _body_row(body: Body, first_shape: int) -> Array:
    """Its shapes and a ball about them, seen from the node."""
    row = np.zeros(at.BODY_FLOATS)
    row[at.FIRST_SHAPE], row[at.SHAPES], row[at.BODY_NODE] = first_shape, len(body.solids), body.node
    frames = [(solid, solid.frame @ (body.frame @ X)[:3, :3].T + (body.frame @ X)[:3, 3]) for solid, X in body.solids]
    if any(solid.kind == HALF_SPACE for solid, _ in frames):
        row[at.BODY_RADIUS] = np.inf
        return row
    low = np.min([points.min(axis=0) - solid.round for solid, points in frames], axis=0)
    high = np.max([points.max(axis=0) + solid.round for solid, points in frames], axis=0)
    middle = (low + high) / 2
    row[at.BODY_BALL : at.BODY_BALL + 3] = middle
    row[at.BODY_RADIUS] = max(replace(solid, frame=points).ball(middle) for solid, points in frames)
    return row
