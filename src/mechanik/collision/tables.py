"""Bodies, their shapes and who is kept off whom as the arrays that the kernels read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanik.collision.body import Body
from mechanik.collision.solid import Solid
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
from mechanik.tiers import kernel_module

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

kernel = kernel_module("distance.watch")
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
    solids = [(number, body, *pair) for number, body in enumerate(bodies) for pair in body.solids]
    solids.sort(key=lambda one: one[2].kind == HALF_SPACE)  # they stand still, and no tree can hold them: they are last
    shapes, boxes, points, used = list[Array](), list[tuple[Array, Array]](), [np.zeros((0, 3))], 0
    for number, body, solid, X_body_shape in solids:
        X = body.frame @ X_body_shape
        shapes.append(_shape_row(number, body.node, solid, X, used))
        points.append(solid.points)
        used += len(solid.points)
        if number >= len(moving) and solid.kind != HALF_SPACE:
            boxes.append(solid.box(X))
    low, high = (np.array([box[k] for box in boxes]).reshape(-1, 3) for k in (0, 1))
    counts = np.zeros(at.COUNTS, np.int64)
    counts[at.MOVING_BODIES], counts[at.MOVING_SHAPES] = len(moving), sum(len(body.solids) for body in moving)
    counts[at.FIRST_WIDE], counts[at.LENGTH_OF_Q] = counts[at.MOVING_SHAPES] + len(boxes), kinematics.space.nq
    guards, partners = _guards(kept_off, pairs)
    return Tables(
        nodes=nodes,
        shapes=np.array(shapes).reshape(-1, SHAPE_FLOATS),
        points=np.vstack(points),
        bodies=_body_rows(bodies, len(moving)),
        tree=build_tree(low, high, int(counts[at.MOVING_SHAPES])),
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


def _shape_row(number: int, node: int, solid: Solid, X: Array, first_point: int) -> Array:
    """A row of S for a shape at X, seen from its node."""
    row = np.zeros(SHAPE_FLOATS)
    row[KIND], row[NODE], row[BODY] = solid.kind, node, number
    row[SIZE : SIZE + 3] = solid.sizes
    if solid.kind >= HULL:
        row[SIZE] = first_point
    middle = _middle(solid.frame)
    _place(row, X, X[:3, :3] @ middle + X[:3, 3])
    row[RADIUS] = solid.ball(middle)
    return row


def _body_rows(bodies: Sequence[Body], moving: int) -> Array:
    """(b, 8); only those that move need a ball, as the others are in the tree."""
    rows, first = np.zeros((len(bodies), at.BODY_FLOATS)), 0
    for number, (row, body) in enumerate(zip(rows, bodies, strict=True)):
        row[at.FIRST_SHAPE], row[at.SHAPES], row[at.BODY_NODE] = first, len(body.solids), body.node
        first += len(body.solids)
        if number < moving:
            row[at.BODY_BALL : at.BODY_BALL + 3], row[at.BODY_RADIUS] = _ball(body)
    return rows


def _ball(body: Body) -> tuple[Array, float]:
    """The middle and the radius of a ball about a body, seen from its node."""
    places = [(solid, body.frame @ X) for solid, X in body.solids]
    boxes = [solid.box(X) for solid, X in places]
    low, high = np.min([box[0] for box in boxes], axis=0), np.max([box[1] for box in boxes], axis=0)
    middle = (low + high) / 2
    return middle, max(solid.ball(X[:3, :3].T @ (middle - X[:3, 3])) for solid, X in places)
