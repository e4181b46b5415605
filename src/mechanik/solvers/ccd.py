"""Cyclic coordinate descent: joint by joint, each is taken to where its goals like it best."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from mechanik.errors import LimitsError, WrongKind
from mechanik.kernels.ball_joint import ROOM
from mechanik.kernels.ccd_sweep import JOINT_INTS
from mechanik.kernels.goal_frames import POSITIONS, ROTATIONS
from mechanik.kernels.layout import BALL, FIRST_Q, KIND, PARENT, REVOLUTE, ROW
from mechanik.kernels.problem import AXIS, BLOCK_INTS, COSINE, HAS_BANDS, IN_WORLD, MASK, NODE_A, NODE_B, POSE
from mechanik.kernels.problem import KIND as BLOCK_KIND
from mechanik.mechanism.door import as_number
from mechanik.solvers.freedoms import places
from mechanik.solvers.method import Method
from mechanik.solvers.problem import Problem
from mechanik.tiers import kernel_module

Integers = np.ndarray[Any, np.dtype[np.int64]]
ccd_kernel = kernel_module("ccd_sweep")
STUCK = 1e-10
"""Rad, or sizes of the mechanism: after a sweep in which nothing moves farther, nothing will."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CyclicCoordinateDescent(Method):
    """One iteration is one sweep over all joints, none of which raises the error. Limits hold at every moment.

    It knows points, poses, directions, hinges, lines and planes, of any number of links, in the world or against
    other links. A cone limit of a ball is an `InCone` between the links that it joins. A number that several joints
    share is searched for within half a turn. How much angles count against lengths is said by `position_weight` and
    `rotation_weight`, which every solver has. Stretched out, and out of reach, it creeps.

    Attributes:
        order: of a sweep.
        direction_joints: None: every joint looks at all of its goals. Else joints by name, or how many of the last
            ones above each goal: those look at directions and rotations alone, and all others at positions alone.
            That is fast where the last joints are a wrist, as many as there are turns to match, and may go in
            circles elsewhere.
        largest_turn: rad, or sizes of the mechanism; no joint moves farther in one sweep.
        blend: which share of its best move a joint makes, above 0 and up to 1.
    """

    name: ClassVar[str] = "ccd"
    title: ClassVar[str] = "cyclic coordinate descent"
    citation: ClassVar[str] = (
        "L.-C. T. Wang and C. C. Chen, A combined optimization method for solving the inverse kinematics problem of"
        " mechanical manipulators, IEEE Trans. Robotics and Automation 7 (1991); C. Welman, Inverse kinematics and"
        " geometric constraints for articulated figure manipulation, Simon Fraser University, 1993; with quaternions:"
        " J. Blow, Inverse kinematics with quaternion joint limits, Game Developer, April 2002"
    )
    usual_iterations: ClassVar[int] = 500
    takes_loops: ClassVar[bool] = False

    order: Literal["tip to base", "base to tip"] = "tip to base"
    direction_joints: int | Sequence[str] | None = None
    largest_turn: float = math.inf
    blend: float = 1.0

    def __post_init__(self) -> None:
        if self.order not in ("tip to base", "base to tip"):
            raise WrongKind(f"order is 'tip to base' or 'base to tip', not {self.order!r}")
        for name in ("largest_turn", "blend"):
            value = getattr(self, name)
            if isinstance(value, str) or not as_number(value, name, infinite=True) > 0:
                raise LimitsError(f"{name} must be a number above 0, not {value!r}")
        if self.blend > 1:
            raise LimitsError(f"blend is a share of at most 1, not {self.blend!r}")
        some = self.direction_joints
        if isinstance(some, bool) or (isinstance(some, int) and some < 0):
            raise LimitsError(f"direction_joints is a number of joints, or their names, not {some!r}")
        if some is not None and not isinstance(some, int):
            if isinstance(some, str) or not isinstance(some, Sequence):
                raise WrongKind(f"direction_joints is a number of joints, or several names, not {some!r}")
            object.__setattr__(self, "direction_joints", tuple(some))

    def check(self, problem: Problem) -> None:
        Method.check(self, problem)
        blocks = problem.part.packed.at["blocks"].reshape(-1, BLOCK_INTS)
        for b, block in enumerate(blocks):
            kind, rows = block[BLOCK_KIND], block[MASK]
            known = (kind == POSE and rows >> 3 in (0, 7)) or (kind == AXIS and rows >> 3 in (0, 3)) or kind == COSINE
            if not known or block[IN_WORLD] or (block[HAS_BANDS] and kind != COSINE):
                asked = problem.objectives[problem.part.owners[b]]
                raise self.refusal(f"has no best value of a joint for {asked!r}", "lm")
        self._cones(problem)
        self._uses(problem)

    def iterate(self, problem: Problem) -> Iterator[None]:
        packed = problem.part.packed
        nodes, blocks = packed.sizes["nodes"], packed.sizes["blocks"]
        joints = np.zeros((3 * nodes, JOINT_INTS), dtype=np.int64)
        sides = np.zeros((nodes, blocks), dtype=np.int64)
        frames, room = np.empty((blocks, 24)), np.empty(ROOM)
        from_base = self.order == "base to tip"
        count = ccd_kernel.plan(
            packed.ints, packed.floats, self._uses(problem), self._cones(problem), from_base, joints, sides
        )
        joints = joints[:count]
        cosines = [-1.0 if one.lower is None else float(one.lower[0]) for one in problem.relations]
        how = np.array([float(from_base), self.largest_turn, self.blend, *cosines])
        while True:
            moved = ccd_kernel.sweep(packed.ints, packed.floats, joints, sides, frames, how, room)
            problem.look()
            yield
            if not moved > STUCK:
                return

    # ---- inside -----------------------------------------------------------------------------

    def _cones(self, problem: Problem) -> Integers:
        """(nodes,) of each ball the block that is its cone; -1: none."""
        at = problem.part.packed.at
        nodes, blocks = at["nodes"].reshape(-1, ROW), at["blocks"].reshape(-1, BLOCK_INTS)
        cones = np.full(len(nodes), -1, dtype=np.int64)
        for b in np.flatnonzero(blocks[:, HAS_BANDS]):
            between = set(_path(nodes, int(blocks[b, NODE_A]))) ^ set(_path(nodes, int(blocks[b, NODE_B])))
            turning = [i for i in between if nodes[i, KIND] in (REVOLUTE, BALL)]
            if len(turning) != 1 or nodes[turning[0], KIND] != BALL:
                asked = problem.objectives[problem.part.owners[b]]
                raise self.refusal(f"keeps to a cone only between the two links of one ball joint, not {asked!r}", "lm")
            if cones[turning[0]] >= 0:
                raise self.refusal("keeps each ball to one cone, and here are two of one", "lm")
            cones[turning[0]] = b
        return cones

    def _uses(self, problem: Problem) -> Integers:
        """(nodes,) what of the goals each looks at."""
        at = problem.part.packed.at
        nodes, blocks = at["nodes"].reshape(-1, ROW), at["blocks"].reshape(-1, BLOCK_INTS)
        if self.direction_joints is None:
            return np.full(len(nodes), POSITIONS | ROTATIONS, dtype=np.int64)
        uses = np.full(len(nodes), POSITIONS, dtype=np.int64)
        if not isinstance(self.direction_joints, int):
            named = {k for name in self.direction_joints for k in places(problem.mechanism, name)[0]}
            uses[[int(node[FIRST_Q]) in named for node in nodes]] = ROTATIONS
            return uses
        numbers = {*problem.column_x.tolist(), *at["balls"].reshape(-1, 2)[:, 0].tolist()}
        for block in blocks[blocks[:, MASK] > 7]:
            for end in (NODE_A, NODE_B):
                path = [i for i in _path(nodes, int(block[end])) if nodes[i, FIRST_Q] in numbers]
                uses[path[: self.direction_joints]] = ROTATIONS
        return uses


def _path(nodes: np.ndarray[tuple[int, int], np.dtype[np.float64]], node: int) -> list[int]:
    """The nodes from one up to the world."""
    path: list[int] = []
    while node >= 0:
        path.append(node)
        node = int(nodes[node, PARENT])
    return path
