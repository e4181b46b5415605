"""FABRIK: forward and backward reaching inverse kinematics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar

import numpy as np

from mechanik.errors import LimitsError
from mechanik.kernels.layout import FIRST_Q, ROW
from mechanik.kernels.methods.fabrik import POINT, POSE, TIP, Numbers
from mechanik.kernels.problem import (
    BLOCK_FLOATS,
    BLOCK_INTS,
    FIRST_ROW,
    FRAME_A,
    FRAME_B,
    IN_WORLD,
    MASK,
    NODE_A,
    NODE_B,
)
from mechanik.objectives.relation import Kind
from mechanik.solvers.method import Method
from mechanik.solvers.problem import Problem
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

fabrik_kernel = kernel_module("methods.fabrik")

POSITION, WHOLE = 0b000111, 0b111111
STALLED = 1e-12
"""An iteration that moves nothing by more than this (rad, or sizes of the mechanism) leaves everything as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabrik(Method):
    """Bones are laid end to end from the goals to the base, and then from the base out, as the joints allow.

    The first half is the paper's: places of joints, each on the line from where the next one is wanted to where it was,
    and the middle of them where branches meet. In the second half each joint in turn, base first, takes the value that
    serves the places found: a ball the smallest turn that points its bone there; a hinge the angle to them in its
    plane, within its limits; a sliding joint, a bone of variable length, the shift along its axis. So every iterate is
    a configuration within its limits. A joint whose bone has no length, or lies on its axis, looks at the next places
    below, with the joints between as they are. A pose is carried as a whole, and its tips of axes are places too.

    Where it is good and where not, on reachable targets from random starts, in one attempt, to 1e-4 m and rad: with
    balls alone this is FABRIK to the letter, and it reached 100 % of points (chains of 3 to 30 links), mostly within
    ten iterations. Hinges and limits by projection leave the proof of convergence behind. On arms in space a hinge
    that serves its own bone alone fails: 0 % of points for a Panda, a UR5 or a Puma, whose bones lie on axes. So hinges
    look at all places below, and then 84 % (Puma) to 99 % (UR5) of points were reached, and 100 % with 10, 30 and 100
    hinges; but of poses only 36 % (five joints), 43 % (Panda), 52 % (Puma) and 66 % (UR5), and 100 % again with 10 and
    more. For such arms 'lm' is better. A straight chain that is asked along its own line does not bend.

    Attributes:
        look_ahead: how many generations of places, behind the first that it can move, a hinge looks at; 0 is as in
            the paper. None: 0 where all joints that turn below a hinge are hinges parallel to it, as in a planar
            arm, else all.
    """

    name: ClassVar[str] = "fabrik"
    title: ClassVar[str] = "FABRIK"
    citation: ClassVar[str] = (
        "A. Aristidou, J. Lasenby, FABRIK: a fast, iterative solver for the inverse kinematics problem, Graphical"
        " Models 73 (2011); A. Aristidou, Y. Chrysanthou, J. Lasenby, Extending FABRIK with model constraints, Computer"
        " Animation and Virtual Worlds 27 (2016)"
    )
    usual_iterations: ClassVar[int] = 500
    takes_loops: ClassVar[bool] = False

    look_ahead: int | None = None

    def __post_init__(self) -> None:
        ahead = self.look_ahead
        if ahead is not None and (isinstance(ahead, bool) or not isinstance(ahead, Integral) or ahead < 0):
            raise LimitsError(f"look_ahead must be a whole number of 0 or more, or None, not {ahead!r}")

    def check(self, problem: Problem) -> None:
        super(Fabrik, self).check(problem)
        at = problem.part.packed.at
        for block, relation in zip(at["blocks"].reshape(-1, BLOCK_INTS), problem.relations, strict=True):
            banded = relation.lower is not None or relation.upper is not None
            if relation.kind is not Kind.POSE or block[MASK] not in (POSITION, WHOLE) or block[IN_WORLD] or banded:
                raise self.refusal("places points and whole poses of links, and nothing else", "lm")
            if block[NODE_A] >= 0:
                raise self.refusal("cannot follow a target that is carried by a joint", "lm")
        numbers = at["nodes"].reshape(-1, ROW)[:, FIRST_Q].tolist()
        if len(set(numbers)) < len(numbers):
            raise self.refusal("cannot turn joints that are coupled", "lm")

    def iterate(self, problem: Problem) -> Iterator[None]:
        nodes, size = problem.part.packed.at["nodes"].reshape(-1, ROW), problem.program.size
        n = len(nodes)
        point_node, point_kind, point_local, target, point_weight = _points(problem)
        start = np.empty(n + 1, dtype=np.int64)
        fabrik_kernel.count_aims(nodes, point_node, start)
        aims = np.empty((start[n], 2), dtype=np.int64)
        fabrik_kernel.list_aims(nodes, point_node, start, aims)
        ahead = np.full(n, self.look_ahead if self.look_ahead is not None else len(aims), dtype=np.int64)
        if self.look_ahead is None:
            planar = np.empty(n, dtype=np.bool_)
            fabrik_kernel.find_planar(nodes, problem.part.packed.at["poses"].reshape(-1, 12), planar)
            ahead[planar] = 0
        weight, wanted = np.append(np.zeros(n), point_weight), np.concatenate([np.zeros((n, 3)), target])
        lower, upper, column = _numbers(problem)
        scale, step = problem.scale, problem.step
        p, X, X_new = np.empty_like(wanted), np.empty((n, 12)), np.empty((n, 12))
        while True:
            largest = fabrik_kernel.sweep(
                nodes, problem.x, lower, upper, column, scale, step, start, aims, point_node, point_kind, point_local,
                weight, wanted, p, X, X_new, size, ahead,
            )  # fmt: skip
            problem.look()
            yield
            if largest < STALLED:
                return


def _points(problem: Problem) -> tuple[Numbers, Numbers, Array, Array, Array]:
    """The goals as points: node, kind, place in the node, where it is wanted, and weight of each.

    A pose is its origin and the tips of its axes, which are as long as makes a turn weigh against a shift what it does
    among the problem's rows.
    """
    at = problem.part.packed.at
    nodes: list[int] = []
    kinds: list[int] = []
    weights: list[float] = []
    local: list[Array] = []
    target: list[Array] = []
    data = at["data"].reshape(-1, BLOCK_FLOATS)
    for block, numbers in zip(at["blocks"].reshape(-1, BLOCK_INTS), data, strict=True):
        is_pose, row = block[MASK] == WHOLE, block[FIRST_ROW]
        length = float(at["weight"][row])
        tip = at["weight"][row + 3] / length if is_pose else 0.0
        for places, k in ((target, FRAME_A), (local, FRAME_B)):
            R, origin = numbers[k : k + 9].reshape(3, 3), numbers[k + 9 : k + 12]
            places += [origin, *(origin + tip * R.T)] if is_pose else [origin]
        some = [POSE, TIP, TIP, TIP] if is_pose else [POINT]
        kinds, nodes = kinds + some, nodes + [int(block[NODE_B])] * len(some)
        weights += [length] * len(some)
    whole = [np.array(numbers, dtype=np.int64) for numbers in (nodes, kinds)]
    return whole[0], whole[1], np.array(local), np.array(target), np.array(weights)


def _numbers(problem: Problem) -> tuple[Array, Array, Numbers]:
    """For each number of x its limits, and its column; -1 where it may not move."""
    at, count = problem.part.packed.at, len(problem.x)
    lower, upper, column = np.full(count, -np.inf), np.full(count, np.inf), np.full(count, -1, dtype=np.int64)
    scalar = np.flatnonzero(problem.bounded)
    k = problem.column_x[scalar]
    lower[k], upper[k], column[k] = at["lower"][scalar], at["upper"][scalar], scalar
    for first, v in at["balls"].reshape(-1, 2):
        column[first] = v
    column[np.isin(column, np.flatnonzero(~problem.free))] = -1
    return lower, upper, column
