"""FABRIK, forward and backward reaching inverse kinematics, for trees of spherical, revolute and prismatic joints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar

import numpy as np

from mechanik.errors import LimitsError
from mechanik.kernels.methods.fabrik_sweep import AXIS_END, POINT, POSE, IndexArray
from mechanik.objectives.relation import RelationKind
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.methods.method import Method
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module

fabrik_kernel = kernel_module("methods.fabrik_sweep")

POSITION, FULL_POSE = 0b000111, 0b111111
"""Masks of the residual rows: three of the position, three of the rotation."""
MIN_SWEEP_MOTION = 1e-12
"""Joint motion, rad or characteristic lengths; an iteration in which all motions are smaller ends the method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabrik(Method):
    """FABRIK with joint limits: a backward pass from the goals to the base, and a forward pass that the joints allow.

    The backward pass is that of the paper: the new position of a joint is on the line from the new position of the next
    joint to the old position of the joint itself; where branches meet, it is the weighted mean over the branches. In
    the forward pass each joint, base first, gets the value that best matches the positions of the backward pass: a
    spherical joint gets the smallest rotation that points its link at the next position; a hinge (revolute joint), the
    angle in its plane, within its limits; a prismatic joint, the translation along its axis, within its limits. So
    every iterate is a configuration within the limits. A joint whose link has no length, or is on the joint's axis,
    uses the next positions towards the tip, as if the joints between were fixed. A link with a goal for its full pose
    moves as a rigid body; the ends of the axes of its pose are positions too.

    The following success rates are for reachable targets, random starts, one attempt, and tolerances of 1e-4 m and rad.
    With spherical joints only, the method is the FABRIK of the paper. It reached 100 % of points (chains of 3 to 30
    links), mostly within ten iterations. For hinges and limits, which are handled by projection, there is no proof of
    convergence. Spatial arms fail if a hinge uses only its own link: 0 % of points for a Panda, a UR5 or a Puma, whose
    links are on joint axes. So hinges use all positions towards the tip. Then 84 % (Puma) to 99 % (UR5) of points were
    reached, and 100 % with 10, 30 and 100 hinges. Of poses, only 36 % (five joints), 43 % (Panda), 52 % (Puma) and 66 %
    (UR5) were reached, and 100 % with 10 and more hinges. For arms of five to seven joints 'lm' is better. A straight
    chain with a target on its own line does not bend.

    Attributes:
        look_ahead: number of generations of positions that a hinge uses in addition to the first positions that it can
            move; 0 as in the paper. A generation is all positions with the same number of rotating joints between them
            and the hinge. None: 0 if all rotating joints between a hinge and the tips are hinges parallel to it, as in
            a planar arm; otherwise all generations.
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
    is_descent: ClassVar[bool] = False

    look_ahead: int | None = None

    def __post_init__(self) -> None:
        look_ahead = self.look_ahead
        if look_ahead is not None and (
            isinstance(look_ahead, bool) or not isinstance(look_ahead, Integral) or look_ahead < 0
        ):
            raise LimitsError(f"look_ahead must be an integer of 0 or more, or None, not {look_ahead!r}")

    def check(self, problem: LeastSquaresProblem) -> None:
        super(Fabrik, self).check(problem)
        packed = problem.subproblem.packed
        for block, relation in zip(packed.block_records(), problem.relations, strict=True):
            has_bands = relation.lower is not None or relation.upper is not None
            if (
                relation.kind is not RelationKind.POSE
                or block.row_mask not in (POSITION, FULL_POSE)
                or block.in_world
                or has_bands
            ):
                raise self.unsupported_error("supports only positions and full poses of links", "lm")
            if block.node_a >= 0:
                raise self.unsupported_error("does not support a target that moves with a joint", "lm")
        q_indices = [node.q_index for node in packed.node_records()]
        if len(set(q_indices)) < len(q_indices):
            raise self.unsupported_error("does not support coupled joints", "lm")

    def iterate(self, problem: LeastSquaresProblem) -> Iterator[None]:
        nodes, characteristic_length = problem.subproblem.packed.node_table, problem.problem.length_unit
        n = len(nodes)
        point_node, point_kind, point_local, point_target, point_weight = _points(problem)
        effector_offsets = np.empty(n + 1, dtype=np.int64)
        fabrik_kernel.count_effectors(nodes, point_node, effector_offsets)
        effectors = np.empty((effector_offsets[n], 2), dtype=np.int64)
        fabrik_kernel.list_effectors(nodes, point_node, effector_offsets, effectors)
        look_ahead_of_node = np.full(
            n, self.look_ahead if self.look_ahead is not None else len(effectors), dtype=np.int64
        )
        if self.look_ahead is None:
            is_planar = np.empty(n, dtype=np.bool_)
            fabrik_kernel.find_planar_hinges(nodes, problem.subproblem.packed.node_poses, is_planar)
            look_ahead_of_node[is_planar] = 0
        weights, targets = np.append(np.zeros(n), point_weight), np.concatenate([np.zeros((n, 3)), point_target])
        lower, upper, columns = _limits_and_columns(problem)
        scale, step = problem.scale, problem.step
        positions, poses, new_poses = np.empty_like(targets), np.empty((n, 12)), np.empty((n, 12))
        while True:
            max_motion = fabrik_kernel.fabrik_sweep(
                nodes, problem.x, lower, upper, columns, scale, step, effector_offsets, effectors, point_node,
                point_kind, point_local, weights, targets, positions, poses, new_poses, characteristic_length,
                look_ahead_of_node,
            )  # fmt: skip
            problem.evaluate()
            yield
            if max_motion < MIN_SWEEP_MOTION:
                return


def _points(problem: LeastSquaresProblem) -> tuple[IndexArray, IndexArray, Array, Array, Array]:
    """Return the goals as points: node, kind, position in the node, target position, and weight of each.

    A pose becomes four points: its origin and the ends of its axes. The length of the axes is the ratio of the rotation
    weight to the position weight.
    """
    packed = problem.subproblem.packed
    nodes: list[int] = []
    kinds: list[int] = []
    weights: list[float] = []
    local_positions: list[Array] = []
    target_positions: list[Array] = []
    for block_index, block in enumerate(packed.block_records()):
        is_pose, row_weights = block.row_mask == FULL_POSE, packed.row_weights(block_index)
        position_weight = float(row_weights[0])
        axis_length = row_weights[3] / position_weight if is_pose else 0.0
        for positions, frame in zip((target_positions, local_positions), packed.frames(block_index), strict=True):
            R, origin = frame[:9].reshape(3, 3), frame[9:]
            positions += [origin, *(origin + axis_length * R.T)] if is_pose else [origin]
        block_kinds = [POSE, AXIS_END, AXIS_END, AXIS_END] if is_pose else [POINT]
        kinds, nodes = kinds + block_kinds, nodes + [block.node_b] * len(block_kinds)
        weights += [position_weight] * len(block_kinds)
    index_arrays = [np.array(indices, dtype=np.int64) for indices in (nodes, kinds)]
    return index_arrays[0], index_arrays[1], np.array(local_positions), np.array(target_positions), np.array(weights)


def _limits_and_columns(problem: LeastSquaresProblem) -> tuple[Array, Array, IndexArray]:
    """Return the lower limit, upper limit and column of each entry of x; the column is -1 if the entry may not move."""
    packed, count = problem.subproblem.packed, len(problem.x)
    lower, upper, columns = np.full(count, -np.inf), np.full(count, np.inf), np.full(count, -1, dtype=np.int64)
    scalar_columns = np.flatnonzero(problem.scalar_columns)
    scalar_x = problem.column_x[scalar_columns]
    column_lower, column_upper = packed.column_bounds
    lower[scalar_x], upper[scalar_x] = column_lower[scalar_columns], column_upper[scalar_columns]
    columns[scalar_x] = scalar_columns
    for x_index, column in packed.spherical_columns:
        columns[x_index] = column
    columns[np.isin(columns, np.flatnonzero(~problem.free_columns))] = -1
    return lower, upper, columns
