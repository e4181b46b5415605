"""Independent verification of solutions by forward kinematics, and classification of solutions into branches.

The check uses NumPy and none of the residuals, weights or tolerances of the solvers. Branches are distinguished for
targets with finitely many solutions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanik.comparison.benchmark_cases import BenchmarkCase, CaseSettings, closure_jacobian, robot_reach
from mechanik.comparison.benchmark_robots import BenchmarkRobot
from mechanik.objectives import Objective, jacobian
from mechanik.objectives.constraint_relations import (
    closure_relations,
    joint_constraint_relations,
    joint_constraint_residuals,
    swing_angles,
)
from mechanik.objectives.relation import evaluate_relation
from mechanik.solver.target_writer import with_targets
from mechanik.spatial import rotation
from mechanik.spatial.array import Array

ROUNDING = 1e-9
"""Rounding slack: relative for tolerances, absolute in rad or m for limits."""


@dataclass(frozen=True, slots=True)
class CaseVerification:
    """Independently computed errors of a solution.

    Attributes:
        position, rotation: largest errors of any tip link; m and rad. `rotation` is NaN if the task does not use it.
        distance: root of the sum of squared position errors of the tip links, m.
        closure_error: largest closure error, m or rad, or joint constraint residual, relative to its scale.
        limit_violation: largest violation of a joint limit or swing limit; m or rad.
        constraints_met: whether limits, joint constraints and loop closures hold.
        success: whether the constraints hold and all tip links are at their targets.
    """

    position: float
    rotation: float
    distance: float
    closure_error: float
    limit_violation: float
    constraints_met: bool
    success: bool


NOT_FINITE = CaseVerification(np.inf, np.inf, np.inf, np.inf, np.inf, False, False)
"""Result for a solution that is not finite."""


def verify_solution(case: BenchmarkCase, settings: CaseSettings, index: int, q: Array) -> CaseVerification:
    """Verify the solution q (nq,) of the target with this index."""
    if not np.isfinite(q).all():
        return NOT_FINITE
    robot, target_poses = case.robot, case.target_poses[index]
    X = robot.mechanism.poses(q, robot.tip_links)
    position_errors = np.linalg.norm(X[:, :3, 3] - target_poses[:, :3, 3], axis=-1)
    angle = np.full(len(X), np.nan)
    if case.uses_rotation:
        angle = np.linalg.norm(rotation.log(np.swapaxes(X[:, :3, :3], -1, -2) @ target_poses[:, :3, :3]), axis=-1)
    elif case.direction is not None:
        is_, should = X[:, :3, :3] @ case.direction, target_poses[:, :3, :3] @ case.direction
        angle = np.arctan2(np.linalg.norm(np.cross(is_, should), axis=-1), np.sum(is_ * should, axis=-1))
    violation = float(max(0.0, np.max(case.lower - q, initial=0.0), np.max(q - case.upper, initial=0.0)))
    for name, tilt in swing_angles(robot.mechanism, q).items():
        cone = robot.mechanism.joint(name).cone
        violation = max(violation, 0.0 if cone is None else tilt - cone.angle)
    gap, loops_closed = _loops(case, settings, q)
    slack = 1 + ROUNDING
    is_on_target = (
        position_errors.max() <= settings.tolerance * slack and not angle.max() > settings.angle_tolerance * slack
    )
    holds = loops_closed and violation <= ROUNDING
    return CaseVerification(
        float(position_errors.max()),
        float(angle.max()),
        float(np.linalg.norm(position_errors)),
        gap,
        violation,
        holds,
        bool(is_on_target and holds),
    )


def _loops(exercise: BenchmarkCase, sizes: CaseSettings, q: Array) -> tuple[float, bool]:
    """Return the largest closure or joint constraint error, and whether all are within the tolerances of the goals."""
    mechanism, worst, all_closed = exercise.robot.mechanism, 0.0, True
    for closure in mechanism.closures.values():
        for relation in closure_relations(mechanism, closure):
            rows, metres = evaluate_relation(mechanism, relation, q)[0], np.array(relation.is_length, dtype=np.bool_)
            apart, turned = float(np.linalg.norm(rows[metres])), float(np.linalg.norm(rows[~metres]))
            worst = max(worst, apart, turned)
            all_closed &= apart <= sizes.tolerance and turned <= sizes.angle_tolerance
    for name, relation in joint_constraint_relations(mechanism).items():
        residual = (
            abs(float(joint_constraint_residuals(mechanism, relation, q))) / mechanism.joint_constraint(name).scale
        )
        worst = max(worst, residual)
        all_closed &= residual <= min(sizes.tolerance, sizes.angle_tolerance)
    return worst, all_closed


DofMask = np.ndarray[tuple[int], np.dtype[np.bool_]]
BRANCH_SEPARATION = 0.05
"""rad or reaches: solutions closer than this are the same branch, since they differ only by the tolerances."""
BRANCH_TASKS = ("point", "direction", "pose")
"""Tasks that are searched for branches; the others have the same branches."""


def moving_dofs(robot: BenchmarkRobot, goals: Sequence[Objective], q: Array) -> tuple[DofMask, bool]:
    """Return the dofs (nv,) that affect the goals or a loop closure, and whether q is an isolated solution.

    The solution is isolated if no combination of these dofs moves freely at q.
    """
    unit = np.where(robot.mechanism.space.rotates, 1.0, robot_reach(robot))
    J = np.vstack([jacobian(goals, robot.mechanism, q), closure_jacobian(robot, q)]) * unit
    moving = np.abs(J).max(axis=0, initial=0.0) > 1e-9
    values = np.linalg.svd(J[:, moving], compute_uv=False)
    return moving, bool(moving.any()) and int(np.sum(values > 1e-6 * values[0])) == int(moving.sum())


class SolutionBranches:
    """Known solution branches of targets, found by any solver; branch 0 is the reference configuration of the target.

    Attributes:
        targets: indices of the targets with finitely many solutions.
    """

    def __init__(self, case: BenchmarkCase, count: int) -> None:
        """Find which of the first `count` targets have isolated solutions."""
        self._robot = case.robot
        self._known: dict[int, list[Array]] = {}
        self._moving: dict[int, DofMask] = {}
        if case.task not in BRANCH_TASKS:
            return
        for number, q in enumerate(case.reference_q[:count]):
            moving, isolated = moving_dofs(case.robot, with_targets(case.goals, case.targets[number]), q)
            if isolated:
                self._known[number], self._moving[number] = [q], moving

    @property
    def targets(self) -> tuple[int, ...]:
        return tuple(self._known)

    def branch_index(self, target: int, q: Array) -> int:
        """Return the branch index of q; a new index if no known branch is close.

        Rotations by 2 pi and dofs that do not affect the goals make no difference.
        """
        known = self._known[target]
        for k, branch in enumerate(known):
            if self._apart(target, branch, q) < BRANCH_SEPARATION:
                return k
        known.append(q)
        return len(known) - 1

    def _apart(self, target: int, a: Array, b: Array) -> float:
        space = self._robot.mechanism.space
        step = space.difference(a, b)
        turned = step - 2 * math.pi * np.round(step / (2 * math.pi))
        apart = np.abs(np.where(space.rotates, turned, step / robot_reach(self._robot)))
        return float(apart[self._moving[target]].max())
