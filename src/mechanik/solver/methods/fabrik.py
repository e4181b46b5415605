"""FABRIK: forward and backward reaching inverse kinematics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar

import numpy as np

from mechanik.errors import LimitsError
from mechanik.kernels.methods.fabrik_sweep import POINT, POSE, TIP, IndexArray
from mechanik.kernels.nodes import FIRST_Q, NODE_FLOATS
from mechanik.kernels.problem_layout import (
    BLOCK_FLOATS,
    BLOCK_INTS,
    FIRST_ROW,
    FRAME_A,
    FRAME_B,
    IN_WORLD,
    NODE_A,
    NODE_B,
    ROW_MASK,
)
from mechanik.objectives.relation import RelationKind
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.methods.method import Method
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

fabrik_kernel = kernel_module("methods.fabrik_sweep")

POSITION, FULL_POSE = 0b000111, 0b111111
MIN_SWEEP_MOTION = 1e-12
"""rad or characteristic lengths: an iteration with smaller motions ends the method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabrik(Method):
    """FABRIK with joint limits: a backward pass from the goals to the base, and a forward pass that the joints allow.

    The backward pass is that of the paper: each joint position is on the line from the desired position of the next
    joint to its old position, and their mean where branches meet. In the forward pass each joint, base first, takes the
    value that best reaches the positions found: a spherical joint takes the smallest rotation that points its link
    there; a hinge takes the angle in its plane, within its limits; a prismatic joint, a link of variable length, takes
    the translation along its axis. So every iterate is a configuration within its limits. A joint whose link has no
    length, or is on its axis, uses the next positions below, with the joints between fixed. A pose is carried as a
    whole, and the tips of its axes are positions too.

    Success on reachable targets from random starts, in one attempt, to 1e-4 m and rad: with spherical joints alone this
    is the FABRIK of the paper, and it reached 100 % of points (chains of 3 to 30 links), mostly within ten iterations.
    Hinges and limits by projection have no proof of convergence. On spatial arms a hinge that uses only its own link
    fails: 0 % of points for a Panda, a UR5 or a Puma, whose links are on axes. So hinges use all positions below; then
    84 % (Puma) to 99 % (UR5) of points were reached, and 100 % with 10, 30 and 100 hinges; but of poses only 36 % (five
    joints), 43 % (Panda), 52 % (Puma) and 66 % (UR5), and 100 % again with 10 and more. For such arms 'lm' is better. A
    straight chain with a target on its own line does not bend.

    Attributes:
        look_ahead: number of generations of positions, behind the first that it can move, that a hinge uses; 0 is as in
            the paper. None: 0 if all rotating joints below a hinge are hinges parallel to it, as in a planar arm; else
            all.
    """

    name: ClassVar[str] = "fabrik"
    title: ClassVar[str] = "FABRIK"
    citation: ClassVar[str] = (
        "A. Aristidou, J. Lasenby, FABRIK: a fast, iterative solver for the inverse kinematics problem, Graphical"
        " Models 73 (2011); A. Aristidou, Y. Chrysanthou, J. Lasenby, Extending FABRIK with model constraints, Computer"
        " Animation and Virtual Worlds 27 (2016)"
    )
    default_iterations: ClassVar[int] = 500
    supports_loops: ClassVar[bool] = False

    look_ahead: int | None = None

    def __post_init__(self) -> None:
        ahead = self.look_ahead
        if ahead is not None and (isinstance(ahead, bool) or not isinstance(ahead, Integral) or ahead < 0):
            raise LimitsError(f"look_ahead must be a whole number of 0 or more, or None, not {ahead!r}")

    def check(self, problem: LeastSquaresProblem) -> None:
        super(Fabrik, self).check(problem)
        tables = problem.subproblem.packed.tables
        for block, relation in zip(tables["blocks"].reshape(-1, BLOCK_INTS), problem.relations, strict=True):
            has_bands = relation.lower is not None or relation.upper is not None
            if (
                relation.kind is not RelationKind.POSE
                or block[ROW_MASK] not in (POSITION, FULL_POSE)
                or block[IN_WORLD]
                or has_bands
            ):
                raise self.unsupported_error("supports only positions and full poses of links", "lm")
            if block[NODE_A] >= 0:
                raise self.unsupported_error("does not support a target that moves with a joint", "lm")
        q_indices = tables["nodes"].reshape(-1, NODE_FLOATS)[:, FIRST_Q].tolist()
        if len(set(q_indices)) < len(q_indices):
            raise self.unsupported_error("does not support coupled joints", "lm")

    def iterate(self, problem: LeastSquaresProblem) -> Iterator[None]:
        nodes, size = problem.subproblem.packed.tables["nodes"].reshape(-1, NODE_FLOATS), problem.problem.length_unit
        n = len(nodes)
        point_node, point_kind, point_local, target, point_weight = _points(problem)
        start = np.empty(n + 1, dtype=np.int64)
        fabrik_kernel.count_aims(nodes, point_node, start)
        aims = np.empty((start[n], 2), dtype=np.int64)
        fabrik_kernel.list_aims(nodes, point_node, start, aims)
        ahead = np.full(n, self.look_ahead if self.look_ahead is not None else len(aims), dtype=np.int64)
        if self.look_ahead is None:
            planar = np.empty(n, dtype=np.bool_)
            fabrik_kernel.find_planar_hinges(nodes, problem.subproblem.packed.tables["poses"].reshape(-1, 12), planar)
            ahead[planar] = 0
        weight, targets = np.append(np.zeros(n), point_weight), np.concatenate([np.zeros((n, 3)), target])
        lower, upper, column = _limits_and_columns(problem)
        scale, step = problem.scale, problem.step
        p, X, X_new = np.empty_like(targets), np.empty((n, 12)), np.empty((n, 12))
        while True:
            largest = fabrik_kernel.fabrik_sweep(
                nodes, problem.x, lower, upper, column, scale, step, start, aims, point_node, point_kind, point_local,
                weight, targets, p, X, X_new, size, ahead,
            )  # fmt: skip
            problem.evaluate()
            yield
            if largest < MIN_SWEEP_MOTION:
                return


def _points(problem: LeastSquaresProblem) -> tuple[IndexArray, IndexArray, Array, Array, Array]:
    """Return the goals as points: node, kind, position in the node, target position, and weight of each.

    A pose is its origin and the tips of its axes. Their length is chosen so that rotations and translations have the
    same weight ratio as in the residual.
    """
    tables = problem.subproblem.packed.tables
    nodes: list[int] = []
    kinds: list[int] = []
    weights: list[float] = []
    local: list[Array] = []
    target: list[Array] = []
    data = tables["block_data"].reshape(-1, BLOCK_FLOATS)
    for block, frame_data in zip(tables["blocks"].reshape(-1, BLOCK_INTS), data, strict=True):
        is_pose, row = block[ROW_MASK] == FULL_POSE, block[FIRST_ROW]
        length = float(tables["weight"][row])
        tip_length = tables["weight"][row + 3] / length if is_pose else 0.0
        for positions, k in ((target, FRAME_A), (local, FRAME_B)):
            R, origin = frame_data[k : k + 9].reshape(3, 3), frame_data[k + 9 : k + 12]
            positions += [origin, *(origin + tip_length * R.T)] if is_pose else [origin]
        block_kinds = [POSE, TIP, TIP, TIP] if is_pose else [POINT]
        kinds, nodes = kinds + block_kinds, nodes + [int(block[NODE_B])] * len(block_kinds)
        weights += [length] * len(block_kinds)
    index_arrays = [np.array(indices, dtype=np.int64) for indices in (nodes, kinds)]
    return index_arrays[0], index_arrays[1], np.array(local), np.array(target), np.array(weights)


def _limits_and_columns(problem: LeastSquaresProblem) -> tuple[Array, Array, IndexArray]:
    """Return, for each entry of x, its lower and upper limit and its column; -1 where it may not move."""
    tables, count = problem.subproblem.packed.tables, len(problem.x)
    lower, upper, column = np.full(count, -np.inf), np.full(count, np.inf), np.full(count, -1, dtype=np.int64)
    scalar = np.flatnonzero(problem.bounded_columns)
    k = problem.column_x[scalar]
    lower[k], upper[k], column[k] = tables["lower"][scalar], tables["upper"][scalar], scalar
    for first, v in tables["spherical"].reshape(-1, 2):
        column[first] = v
    column[np.isin(column, np.flatnonzero(~problem.free_columns))] = -1
    return lower, upper, column
