"""Cyclic coordinate descent: the joints move in order, each to the value that minimizes the cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from mechanik.errors import InvalidArgument, LimitsError
from mechanik.kernels.methods.ccd_cost import USE_POSITIONS, USE_ROTATIONS
from mechanik.kernels.methods.ccd_sweep import JOINT_INTS, SWEEP_WORK_FLOATS
from mechanik.kernels.nodes import REVOLUTE, SPHERICAL
from mechanik.objectives.relation import RelationKind
from mechanik.problem.records import NodeRecord
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.methods.method import Method
from mechanik.solver.options import dof_indices
from mechanik.tiers import kernel_module
from mechanik.validation import as_number

Integers = np.ndarray[Any, np.dtype[np.int64]]
ccd_kernel = kernel_module("methods.ccd_sweep")
MIN_SWEEP_MOTION = 1e-10
"""Joint motion, rad or characteristic lengths; a sweep in which all motions are smaller ends the method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CyclicCoordinateDescent(Method):
    """Cyclic coordinate descent: an iteration is a sweep in which each joint moves once to reduce the cost.

    With the default options no joint motion increases the cost, except that of a spherical joint back into its cone.
    All configurations are within the joint limits. The method supports points, poses, directions, hinges, lines and
    planes of any number of links, in the world or relative to other links. A swing limit of a spherical joint is given
    as an `InCone` between the links that the joint connects. A value that several coupled joints share is searched
    within half a revolution to each side. The solver options `position_weight` and `rotation_weight` weigh lengths
    against angles. Convergence is slow if the target is out of reach and the arm is stretched.

    Attributes:
        order: order of the joints in a sweep.
        direction_joints: None: every joint uses all goals that it moves. Names of joints, or the number of joints next
            to each goal with a rotation or an aligned axis: these joints use only directions and rotations, and all
            other joints only positions. This is fast if these joints are a wrist with as many joints as there are
            rotations to match; otherwise the method may cycle.
        largest_turn: rad or characteristic lengths; largest motion of a joint in a sweep. The motion of a spherical
            joint back into its cone may be larger.
        blend: share of its optimal motion that a joint makes, above 0 and up to 1.
    """

    name: ClassVar[str] = "ccd"
    title: ClassVar[str] = "cyclic coordinate descent"
    citation: ClassVar[str] = (
        "L.-C. T. Wang and C. C. Chen, A combined optimization method for solving the inverse kinematics problem of"
        " mechanical manipulators, IEEE Trans. Robotics and Automation 7 (1991); C. Welman, Inverse kinematics and"
        " geometric constraints for articulated figure manipulation, Simon Fraser University, 1993; with quaternions:"
        " J. Blow, Inverse kinematics with quaternion joint limits, Game Developer, April 2002"
    )
    default_iterations: ClassVar[int] = 500
    supports_loops: ClassVar[bool] = False

    order: Literal["tip to base", "base to tip"] = "tip to base"
    direction_joints: int | Sequence[str] | None = None
    largest_turn: float = math.inf
    blend: float = 1.0

    def __post_init__(self) -> None:
        if self.order not in ("tip to base", "base to tip"):
            raise InvalidArgument(f"order must be 'tip to base' or 'base to tip', not {self.order!r}")
        for name in ("largest_turn", "blend"):
            value = getattr(self, name)
            if isinstance(value, str) or not as_number(value, name, allow_infinite=True) > 0:
                raise LimitsError(f"{name} must be a number above 0, not {value!r}")
        if self.blend > 1:
            raise LimitsError(f"blend must be at most 1, not {self.blend!r}")
        joints = self.direction_joints
        if isinstance(joints, bool) or (isinstance(joints, int) and joints < 0):
            raise LimitsError(
                f"direction_joints must be a number of joints of 0 or more, or joint names, not {joints!r}"
            )
        if joints is not None and not isinstance(joints, int):
            if isinstance(joints, str) or not isinstance(joints, Sequence):
                raise InvalidArgument(f"direction_joints must be a number of joints, or several names, not {joints!r}")
            object.__setattr__(self, "direction_joints", tuple(joints))

    def check(self, problem: LeastSquaresProblem) -> None:
        Method.check(self, problem)
        for block_index, block in enumerate(problem.subproblem.packed.block_records()):
            is_supported = (
                (block.kind is RelationKind.POSE and block.row_mask >> 3 in (0, 7))
                or (block.kind is RelationKind.AXIS and block.row_mask >> 3 in (0, 3))
                or block.kind is RelationKind.COSINE
            )
            if not is_supported or block.in_world or (block.has_bands and block.kind is not RelationKind.COSINE):
                objective = problem.objectives[problem.subproblem.owners[block_index]]
                raise self.unsupported_error(f"does not support {objective!r}", "lm")
        self._cone_blocks(problem)
        self._node_uses(problem)

    def iterate(self, problem: LeastSquaresProblem) -> Iterator[None]:
        packed = problem.subproblem.packed
        node_count, block_count = len(packed.node_table), packed.block_count
        joints = np.zeros((3 * node_count, JOINT_INTS), dtype=np.int64)
        sides = np.zeros((node_count, block_count), dtype=np.int64)
        frames, workspace = np.empty((block_count, 24)), np.empty(SWEEP_WORK_FLOATS)
        from_base = self.order == "base to tip"
        joint_count = ccd_kernel.list_sweep_joints(
            packed.ints, packed.floats, self._node_uses(problem), self._cone_blocks(problem), from_base, joints, sides
        )
        joints = joints[:joint_count]
        min_cosines = [-1.0 if relation.lower is None else float(relation.lower[0]) for relation in problem.relations]
        settings = np.array([float(from_base), self.largest_turn, self.blend, *min_cosines])
        while True:
            max_motion = ccd_kernel.ccd_sweep(packed.ints, packed.floats, joints, sides, frames, settings, workspace)
            problem.evaluate()
            yield
            if not max_motion > MIN_SWEEP_MOTION:
                return

    # ---- internals ---------------------------------------------------------------------------

    def _cone_blocks(self, problem: LeastSquaresProblem) -> Integers:
        """Return for each node the index of the block that limits its swing, (nodes,); -1 without a swing limit."""
        packed = problem.subproblem.packed
        nodes = packed.node_records()
        cones = np.full(len(nodes), -1, dtype=np.int64)
        for block_index, block in enumerate(packed.block_records()):
            if not block.has_bands:
                continue
            nodes_between = set(_path_to_world(nodes, block.node_a)) ^ set(_path_to_world(nodes, block.node_b))
            rotating_nodes = [i for i in nodes_between if nodes[i].kind in (REVOLUTE, SPHERICAL)]
            if len(rotating_nodes) != 1 or nodes[rotating_nodes[0]].kind != SPHERICAL:
                objective = problem.objectives[problem.subproblem.owners[block_index]]
                raise self.unsupported_error(
                    f"supports a cone only between the two links of a spherical joint, not {objective!r}", "lm"
                )
            if cones[rotating_nodes[0]] >= 0:
                raise self.unsupported_error("supports only one cone for each spherical joint", "lm")
            cones[rotating_nodes[0]] = block_index
        return cones

    def _node_uses(self, problem: LeastSquaresProblem) -> Integers:
        """Return for each node a bit mask of the residuals that it uses, (nodes,): positions, rotations or both."""
        packed = problem.subproblem.packed
        nodes = packed.node_records()
        if self.direction_joints is None:
            return np.full(len(nodes), USE_POSITIONS | USE_ROTATIONS, dtype=np.int64)
        uses = np.full(len(nodes), USE_POSITIONS, dtype=np.int64)
        if not isinstance(self.direction_joints, int):
            selected_q = {k for name in self.direction_joints for k in dof_indices(problem.mechanism, name)[0]}
            uses[[node.q_index in selected_q for node in nodes]] = USE_ROTATIONS
            return uses
        movable_x = {*problem.column_x.tolist(), *(x for x, _ in packed.spherical_columns)}
        for block in packed.block_records():
            for end_node in (block.node_a, block.node_b) if block.constrains_rotation else ():
                path = [i for i in _path_to_world(nodes, end_node) if nodes[i].q_index in movable_x]
                uses[path[: self.direction_joints]] = USE_ROTATIONS
        return uses


def _path_to_world(nodes: Sequence[NodeRecord], node: int) -> list[int]:
    """Return the indices of a node and all its ancestors, in this order."""
    path: list[int] = []
    while node >= 0:
        path.append(node)
        node = nodes[node].parent
    return path
