"""Independent verification of solutions by forward kinematics, and classification of solutions into branches.

The verification uses the forward kinematics of the model, and closure errors computed in NumPy, not the residuals or
weights of the solvers. A branch is one of the separate solutions of a target. Branches are determined only for targets
whose reference configuration is an isolated solution.
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
"""Allowance for rounding errors: relative for the tolerances of targets, absolute in rad or m for limits."""


@dataclass(frozen=True, slots=True)
class CaseVerification:
    """Independently computed errors of a solution.

    Attributes:
        position_error, rotation_error: largest errors of all tip links; m and rad. For the task "direction" the
            rotation error is the angle between the directions; it is NaN for targets that are only positions.
        distance: root of the sum of squared position errors of the tip links, m.
        closure_error: largest error of a loop closure, m or rad, or of a joint constraint; the error of a joint
            constraint is its residual divided by its scale.
        limit_violation: largest violation of a joint limit or swing limit; m or rad.
        are_constraints_met: whether limits, joint constraints and loop closures are met.
        success: whether the constraints are met and all tip links are at their targets.
    """

    position_error: float
    rotation_error: float
    distance: float
    closure_error: float
    limit_violation: float
    are_constraints_met: bool
    success: bool


NOT_FINITE_RESULT = CaseVerification(np.inf, np.inf, np.inf, np.inf, np.inf, False, False)
"""Result for a solution that is not finite."""


def verify_solution(case: BenchmarkCase, settings: CaseSettings, index: int, q: Array) -> CaseVerification:
    """Verify the solution q (nq,) of the target with index `index`."""
    if not np.isfinite(q).all():
        return NOT_FINITE_RESULT
    robot, target_poses = case.robot, case.target_poses[index]
    X = robot.mechanism.poses(q, robot.tip_links)
    position_errors = np.linalg.norm(X[:, :3, 3] - target_poses[:, :3, 3], axis=-1)
    rotation_errors = np.full(len(X), np.nan)
    if case.uses_rotation:
        rotation_errors = np.linalg.norm(
            rotation.log(np.swapaxes(X[:, :3, :3], -1, -2) @ target_poses[:, :3, :3]), axis=-1
        )
    elif case.direction is not None:
        directions, target_directions = X[:, :3, :3] @ case.direction, target_poses[:, :3, :3] @ case.direction
        rotation_errors = np.arctan2(
            np.linalg.norm(np.cross(directions, target_directions), axis=-1),
            np.sum(directions * target_directions, axis=-1),
        )
    limit_violation = float(max(0.0, np.max(case.lower - q, initial=0.0), np.max(q - case.upper, initial=0.0)))
    for name, tilt in swing_angles(robot.mechanism, q).items():
        cone = robot.mechanism.joint(name).cone
        limit_violation = max(limit_violation, 0.0 if cone is None else tilt - cone.angle)
    closure_error, are_closures_met = _closure_error(case, settings, q)
    tolerance_factor = 1 + ROUNDING
    is_on_target = (
        position_errors.max() <= settings.tolerance * tolerance_factor
        and not rotation_errors.max() > settings.angle_tolerance * tolerance_factor
    )
    are_constraints_met = are_closures_met and limit_violation <= ROUNDING
    return CaseVerification(
        float(position_errors.max()),
        float(rotation_errors.max()),
        float(np.linalg.norm(position_errors)),
        closure_error,
        limit_violation,
        are_constraints_met,
        bool(is_on_target and are_constraints_met),
    )


def _closure_error(case: BenchmarkCase, settings: CaseSettings, q: Array) -> tuple[float, bool]:
    """Return the largest error of closures and joint constraints, and whether all errors are within the tolerances."""
    mechanism, largest_error, are_met = case.robot.mechanism, 0.0, True
    for closure in mechanism.closures.values():
        for relation in closure_relations(mechanism, closure):
            rows, is_length = (
                evaluate_relation(mechanism, relation, q)[0],
                np.array(relation.is_length, dtype=np.bool_),
            )
            length_error, angle_error = float(np.linalg.norm(rows[is_length])), float(np.linalg.norm(rows[~is_length]))
            largest_error = max(largest_error, length_error, angle_error)
            are_met &= length_error <= settings.tolerance and angle_error <= settings.angle_tolerance
    for name, relation in joint_constraint_relations(mechanism).items():
        residual = (
            abs(float(joint_constraint_residuals(mechanism, relation, q))) / mechanism.joint_constraint(name).scale
        )
        largest_error = max(largest_error, residual)
        are_met &= residual <= min(settings.tolerance, settings.angle_tolerance)
    return largest_error, are_met


DofMask = np.ndarray[tuple[int], np.dtype[np.bool_]]
BRANCH_SEPARATION = 0.05
"""Solutions that differ by less than this (rad, or fraction of the reach) count as the same branch: each of them may
have errors within the tolerances."""
BRANCH_TASKS = ("point", "direction", "pose")
"""Tasks for which branches are searched."""


def affecting_dofs(robot: BenchmarkRobot, goals: Sequence[Objective], q: Array) -> tuple[DofMask, bool]:
    """Return a mask (nv,) of the dofs that affect the goals or a loop closure, and whether q is an isolated solution.

    The solution q (nq,) is isolated if every motion of these dofs changes a residual to first order.
    """
    unit = np.where(robot.mechanism.space.rotates, 1.0, robot_reach(robot))
    J = np.vstack([jacobian(goals, robot.mechanism, q), closure_jacobian(robot, q)]) * unit
    is_affecting = np.abs(J).max(axis=0, initial=0.0) > 1e-9
    singular_values = np.linalg.svd(J[:, is_affecting], compute_uv=False)
    return is_affecting, bool(is_affecting.any()) and int(np.sum(singular_values > 1e-6 * singular_values[0])) == int(
        is_affecting.sum()
    )


class SolutionBranches:
    """Branches that all solvers found so far: the separate solutions of each target.

    Branch 0 of a target is its reference configuration.
    """

    def __init__(self, case: BenchmarkCase, count: int) -> None:
        """Find the targets with an isolated reference configuration among the first `count` targets."""
        self._robot = case.robot
        self._branches_by_target: dict[int, list[Array]] = {}
        self._affecting_dofs_by_target: dict[int, DofMask] = {}
        if case.task not in BRANCH_TASKS:
            return
        for index, q in enumerate(case.reference_q[:count]):
            is_affecting, is_isolated = affecting_dofs(case.robot, with_targets(case.goals, case.targets[index]), q)
            if is_isolated:
                self._branches_by_target[index], self._affecting_dofs_by_target[index] = [q], is_affecting

    @property
    def targets(self) -> tuple[int, ...]:
        """Indices of the targets whose reference configuration is an isolated solution."""
        return tuple(self._branches_by_target)

    def branch_index(self, target: int, q: Array) -> int:
        """Return the index of the branch of q (nq,); if no known branch is close, q becomes a new branch.

        Rotations by 2 pi, and dofs that affect neither goals nor loop closures, are ignored.
        """
        known_branches = self._branches_by_target[target]
        for k, branch in enumerate(known_branches):
            if self._distance(target, branch, q) < BRANCH_SEPARATION:
                return k
        known_branches.append(q)
        return len(known_branches) - 1

    def _distance(self, target: int, a: Array, b: Array) -> float:
        """Return the largest difference of a dof that affects goals or loop closures; rad, or fraction of the reach."""
        space = self._robot.mechanism.space
        step = space.difference(a, b)
        wrapped_step = step - 2 * math.pi * np.round(step / (2 * math.pi))
        distances = np.abs(np.where(space.rotates, wrapped_step, step / robot_reach(self._robot)))
        return float(distances[self._affecting_dofs_by_target[target]].max())
