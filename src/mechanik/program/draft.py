"""Blocks of rows with the nodes that move them, before their columns have numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mechanik.kernels import problem
from mechanik.kernels.layout import RATIO
from mechanik.objectives.relation import Kind, Relation
from mechanik.program.numbers import largest_slope
from mechanik.program.skeleton import Skeleton
from mechanik.spatial.array import Array


@dataclass(frozen=True, slots=True)
class Block:
    """A relation with what the solver has to know besides.

    Attributes:
        metres, radians: tolerances.
        weight: multiplies that of the relation.
    """

    relation: Relation
    metres: float
    radians: float
    weight: float = 1.0


class Draft:
    """One block, with the nodes that move it, before columns have numbers.

    Args:
        active: for each number of v whether it may move.
        weights: of lengths and of angles.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        block: Block,
        active: Sequence[bool],
        size: float,
        weights: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        relation = block.relation
        self.block, self.relation, self.height = block, relation, len(relation.rows)
        self.stage = 0
        self.node_a, self.X_a = _fixed(skeleton, relation.a, relation.X_a)
        self.node_b, self.X_b = _fixed(skeleton, relation.b, relation.X_b)
        self.masses = [(*_mass(skeleton, link, place), mass) for link, mass, place in relation.masses]
        self.x_index = 0
        self.slope = 1.0
        direct: set[int] = set()  # numbers of v that the rows know without any node
        in_a, in_b = set(skeleton.path(relation.a)), set(skeleton.path(relation.b))
        match relation.kind:
            case Kind.VALUE | Kind.TURN:
                self.x_index = skeleton.x_of[relation.freedom]
                is_ball = relation.kind is Kind.TURN
                first = dict(skeleton.balls)[self.x_index] if is_ball else int(skeleton.v_of_x[self.x_index])
                direct = {v for v in range(first, first + (3 if is_ball else 1)) if active[v]}
            case Kind.LAW:
                some = {int(skeleton.v_of_x[skeleton.x_of[freedom]]) for freedom, _ in relation.polynomials}
                direct = {v for v in some if active[v]}
            case Kind.FUNCTION:
                direct = {v for v in range(skeleton.nv) if active[v]}
            case Kind.MASS:
                in_b = {node for link, _, _ in relation.masses for node in skeleton.path(link)}
            case _:
                pass
        self.nodes = in_a | in_b
        both_count = relation.world_axes is not None or relation.kind is Kind.MASS
        moving = in_a | in_b if both_count else in_a ^ in_b
        self.terms: list[tuple[int, int, int, bool, int, float]] = []  # v, node, axis, turns, side, ratio
        for node in sorted(moving):
            side = problem.MOVES_A * (node in in_a) + problem.MOVES_B * (node in in_b)
            for v, axis, turns in skeleton.columns_of(skeleton.nodes[node]):
                if active[v]:
                    self.terms.append((v, node, axis, turns, side, float(skeleton.nodes[node, RATIO])))
        self.columns = _whole_balls(skeleton, direct | {v for v, *_ in self.terms})
        self.has_balls = any(v in self.columns for _, v in skeleton.balls)
        self.lengths = relation.in_metres
        if relation.kind is Kind.VALUE:
            self.lengths = (not skeleton.rotates[skeleton.v_of_x[self.x_index]],)
        self.size = size
        self.length_weight, self.angle_weight = (weight * block.weight * relation.weight for weight in weights)
        self.weights = [self.length_weight / size if length else self.angle_weight for length in self.lengths]
        if relation.kind is Kind.LAW:
            self.slope = largest_slope(relation, skeleton.limits)
            steepest = largest_slope(relation, skeleton.limits, lambda one: 1.0 if skeleton.turns(one) else size)
            self.weights = [self.angle_weight / steepest]

    @property
    def is_chain(self) -> bool:
        """Whether it is a goal that stands still, for the end of a chain of single freedoms, each moved by itself."""
        relation = self.relation
        turns = sum(row >= 3 for row in relation.rows)
        moves = {(v, side) for v, _, _, _, side, _ in self.terms}
        return (
            relation.kind is Kind.POSE
            and relation.world_axes is None
            and turns in (0, 3)
            and not self.is_banded(0)
            and not self.has_balls
            and moves == {(v, problem.MOVES_B) for v in self.columns}
            and len(moves) == len(self.terms)
        )

    @property
    def is_direct(self) -> bool:
        """Whether it looks at a freedom itself, and at no frame."""
        return self.relation.kind in (Kind.VALUE, Kind.TURN)

    def is_banded(self, row: int) -> bool:
        return self.relation.lower is not None or self.relation.upper is not None

    def band(self, row: int) -> tuple[float, float]:
        lower, upper = self.relation.lower, self.relation.upper
        return (-math.inf if lower is None else float(lower[row])), (math.inf if upper is None else float(upper[row]))

    @property
    def mask(self) -> int:
        if self.relation.kind is Kind.FUNCTION:
            return 0
        shift = 3 if self.relation.kind is Kind.COSINE else 0
        return sum(1 << (row + shift) for row in self.relation.rows)

    def tolerances(self) -> tuple[float, float]:
        """Of the first three of six rows and of the others, squared, in the rows' own units."""
        relation = self.relation
        metres = self.block.metres * self.length_weight / self.size
        radians = self.block.radians * self.angle_weight
        if relation.kind is Kind.LAW:  # in its own unit, so that the freedom that counts most is off by so much
            metres = self.block.radians * self.slope * self.weights[0]
        if relation.kind in (Kind.LOOK, Kind.TURN) or (relation.kind is Kind.VALUE and not self.lengths[0]):
            metres = radians
        if relation.kind is Kind.COSINE and relation.lower is not None:  # an angle's cosine changes with its sine
            sine = math.sqrt(max(1.0 - float(relation.lower[0]) ** 2, 0.0))
            radians *= max(sine, self.block.radians)
        return metres**2, radians**2


def _fixed(skeleton: Skeleton, link: str | None, X: Array) -> tuple[int, Array]:
    node, X_node_link = skeleton.frames[link]
    return node, X_node_link @ X


def _mass(skeleton: Skeleton, link: str, place: Array) -> tuple[int, Array]:
    node, X_node_link = skeleton.frames[link]
    return node, X_node_link[:3, :3] @ place + X_node_link[:3, 3]


def _whole_balls(skeleton: Skeleton, used: set[int]) -> list[int]:
    """A ball turns about all three of its axes, or not at all."""
    whole = set(used)
    for _, v in skeleton.balls:
        if used & {v, v + 1, v + 2}:
            whole |= {v, v + 1, v + 2}
    return sorted(whole)
