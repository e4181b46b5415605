"""Balls that a weld turns: a leg that ends in a ball, welded to the platform, is a leg whose ball closes the loop.

Such a ball does what the weld wants, whatever the rest does, as long as nothing else is asked of it. So the weld is
asked for its place alone, which takes half of the rows and three freedoms less, and the ball is turned in the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanik.kernels.layout import BALL, FIRST_Q, FIRST_V, KIND, PARENT
from mechanik.mechanism.door import read_only
from mechanik.objectives.relation import Kind, Relation
from mechanik.program.skeleton import Skeleton
from mechanik.spatial import inverse, make
from mechanik.spatial.array import Array

WHOLE = (0, 1, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True, eq=False)
class ReadOff:
    """
    Attributes:
        relation: what is left of the weld: the middle of the ball is where the weld wants it.
        node: the ball, among the nodes of the skeleton.
        carrier, other: the nodes that carry the ball and what it is welded to; -1 is the world.
        R_carrier_ball: (3, 3) the axes of the ball where it is not turned.
        R_other_ball: (3, 3) the axes of the ball as the weld wants them.
        x, v: where its numbers begin.
    """

    relation: Relation
    node: int
    carrier: int
    other: int
    R_carrier_ball: Array
    R_other_ball: Array
    x: int
    v: int


def find_read_off(
    skeleton: Skeleton, welds: Mapping[int, Relation], relations: Sequence[Relation], free: Sequence[bool]
) -> dict[int, ReadOff]:
    """The welds whose ball can be read off, by their number.

    Args:
        welds: those of `relations` that are closures, by number.
        relations: all that there are.
        free: (numbers of v,) which freedoms may move, and are weighed as usual.
    """
    if any(relation.kind is Kind.FUNCTION for relation in relations):
        return {}
    uses = np.zeros(len(skeleton.nodes), dtype=np.int64)
    for relation in relations:
        links = {relation.a, relation.b, *(link for link, _, _ in relation.masses)}
        for node in {node for link in links for node in skeleton.path(link)}:
            uses[node] += 1
    asked = {skeleton.x_of.get(relation.freedom) for relation in relations if relation.kind is Kind.TURN}
    found: dict[int, ReadOff] = {}
    for number, relation in welds.items():
        if relation.kind is not Kind.POSE or relation.rows != WHOLE or relation.lower is not None:
            continue
        for side in ("a", "b"):
            node = skeleton.frames[relation.a if side == "a" else relation.b][0]
            if node < 0 or skeleton.nodes[node, KIND] != BALL or uses[node] != 1:
                continue
            if node in skeleton.path(relation.b if side == "a" else relation.a):
                continue  # it carries the other end as well, and turns nothing against it
            x, v = int(skeleton.nodes[node, FIRST_Q]), int(skeleton.nodes[node, FIRST_V])
            if x not in asked and all(free[v : v + 3]):
                found[number] = _read_off(skeleton, relation, side, node, x, v)
                break
    return found


def with_frames(skeleton: Skeleton, balls: Mapping[int, ReadOff]) -> Skeleton:
    """The skeleton with the frames that these balls have where they are not turned."""
    frames = dict(skeleton.frames)
    for one in balls.values():
        frames[_frame(one.node)] = one.carrier, make(one.R_carrier_ball, skeleton.nodes[one.node, 9:12])
    return replace(skeleton, frames=frames)


def _read_off(skeleton: Skeleton, relation: Relation, side: str, node: int, x: int, v: int) -> ReadOff:
    ends = {"a": (relation.a, relation.X_a), "b": (relation.b, relation.X_b)}
    link, X_link_end = ends[side]
    other, X_other_end = ends["b" if side == "a" else "a"]
    X_ball_end = skeleton.frames[link][1] @ X_link_end
    X_other_ball = read_only(X_other_end @ inverse(X_ball_end))
    here, there = (_frame(node), read_only(np.eye(4))), (other, X_other_ball)
    (a, X_a), (b, X_b) = (here, there) if side == "a" else (there, here)
    other_node, X_node_other = skeleton.frames[other]
    return ReadOff(
        replace(relation, rows=WHOLE[:3], a=a, b=b, X_a=X_a, X_b=X_b),
        node,
        int(skeleton.nodes[node, PARENT]),
        other_node,
        skeleton.nodes[node, :9].reshape(3, 3),
        (X_node_other @ X_other_ball)[:3, :3],
        x,
        v,
    )


def _frame(node: int) -> str:
    return f"ball {node}, not turned"
