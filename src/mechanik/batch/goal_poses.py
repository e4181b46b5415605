"""Targets as poses, and how far links are from them: many rows at once, for the goals that are most common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechanik.batch.target_forms import POINT, POSE, WXYZ
from mechanik.batch.targets import Wanted
from mechanik.mechanism import Mechanism
from mechanik.mechanism.dof import ALL
from mechanik.objectives import Objective, Point, PoseGoal
from mechanik.objectives.placement import Placement
from mechanik.objectives.position_rules import Fixed
from mechanik.objectives.rotation_rules import FixedRotation
from mechanik.spatial import apply, quaternion, rotation
from mechanik.spatial.array import Array


def goal_poses(objective: Placement, taken: Array | None, count: int) -> Array:
    """Where an objective wants its frame: (count, 4, 4), float64 without gaps.

    What a target leaves open is as in the objective itself; what that does not speak of is zero, or no turn.

    Args:
        taken: (count, ...) targets in any shape that the objective takes; None if it stays as it is.
    """
    shape = None if taken is None else taken.shape[1:]
    if taken is not None and shape == POSE and objective.position is not None:
        return taken
    X = np.tile(np.eye(4), (count, 1, 1))
    if isinstance(objective.rotation, FixedRotation):
        X[:, :3, :3] = objective.rotation.target
    if objective.position is not None:
        X[:, :3, 3] = objective.position.target
    if taken is not None and shape == POINT:
        X[:, :3, 3] = taken
    elif taken is not None:
        X[:, :3, :3] = quaternion.to_matrix(taken) if shape == WXYZ else taken[:, :3, :3]
    return X


def row_errors(mechanism: Mechanism, objectives: Sequence[Objective], wanted: Wanted, q: Array) -> Array:
    """(M, objectives, 2), m and rad: how far q (M, nq) is off, as `Objective.error` has it."""
    errors = np.zeros((len(q), len(objectives), 2))
    with np.errstate(over="ignore"):  # a target at 1e200 m is infinitely far away
        for k, objective in enumerate(objectives):
            is_list = isinstance(wanted.taken[k], list)
            if not is_list and (type(objective) is Point or (type(objective) is PoseGoal and objective.dof == ALL)):
                X_target = goal_poses(objective, wanted.taken[k], len(q))
                errors[:, k] = _placement_errors(mechanism, objective, X_target, q)
                continue
            for i in range(len(q)):
                target = wanted.target(k, i)
                error = (objective if target is None else objective.at(target)).error(mechanism, q[i])
                errors[i, k] = error.position, error.rotation
    return errors


def _placement_errors(mechanism: Mechanism, objective: Placement, X_target: Array, q: Array) -> Array:
    """(M, 2), of a goal for a place, with or without a full rotation."""
    place, turn = objective.position, objective.rotation
    X_world_link = mechanism.pose(objective.link, q)
    if objective.relative_to is not None:
        X_target = mechanism.pose(objective.relative_to, q) @ X_target
    errors = np.zeros((len(q), 2))
    if isinstance(place, Fixed):
        away = apply(X_world_link, place.local) - X_target[:, :3, 3]
        errors[:, 0] = np.sqrt((away * away).sum(axis=1))
    if isinstance(turn, FixedRotation):
        R_target_local = np.swapaxes(X_target[:, :3, :3], 1, 2) @ (X_world_link[:, :3, :3] @ turn.local)
        angles = rotation.log(R_target_local)
        errors[:, 1] = np.sqrt((angles * angles).sum(axis=1))
    return errors
