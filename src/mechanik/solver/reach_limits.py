"""Targets that no configuration reaches: too far away or too near for the lengths between two frames, or beyond limits.

Between two frames lie rigid segments and slides, connected by joints. For each segment its shortest and its longest
length are known. A closed polygon has such sides only if no side is longer than all others together. This holds for the
path in the kinematic tree and for each path across a loop. It is a proof: what is not found here may still be out of
reach.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from mechanik.kernels.nodes import (
    FIXED,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    Node,
)
from mechanik.model import Mechanism
from mechanik.model.kinematics import fixed_pose
from mechanik.objectives import Objective
from mechanik.objectives.constraint_relations import joint_base_frame
from mechanik.objectives.joint_goals import JointObjective
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.spatial import inverse, make_pose, quaternion, rotation
from mechanik.spatial.array import Array

POSITION_ROWS = (0, 1, 2)
MIN_EXCESS = 1e-9
"""Smallest excess over the tolerance of an objective that counts, m or rad; it is above rounding errors."""


@dataclass(frozen=True, slots=True, eq=False)
class _Reach:
    """Values that the dofs may have.

    Attributes:
        mechanism: the mechanism.
        q: (nq,), values of the dofs that cannot move.
        bounds: lower and upper limits, (nq,) each, rad or m.
        moving_dofs: (nv,) mask of the dofs that may move.
    """

    mechanism: Mechanism
    q: Array
    bounds: tuple[Array, Array]
    moving_dofs: np.ndarray[tuple[int], np.dtype[np.bool_]]


def reasons_out_of_reach(
    mechanism: Mechanism,
    objectives: Sequence[Objective],
    q: Array,
    bounds: tuple[Array, Array],
    moving_dofs: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> dict[int, str]:
    """Return, by index, the reason of each required objective that no configuration can meet, as far as it is known.

    Args:
        mechanism: the mechanism.
        objectives: the objectives.
        q: (nq,), the values of dofs that may not move.
        bounds: lower and upper limits, (nq,) each, rad or m.
        moving_dofs: (nv,) mask of the dofs that may move.
    """
    reach = _Reach(mechanism, q, bounds, moving_dofs)
    reasons: dict[int, str] = {}
    for k, objective in enumerate(objectives):
        if not objective.required:
            continue
        relations = (
            objective.nearest_relations(mechanism, q, *bounds)
            if isinstance(objective, JointObjective)
            else objective.relations(mechanism)
        )
        reason = next((text for relation in relations if (text := _reason(reach, objective, relation))), None)
        if reason is not None:
            reasons[k] = reason
    return reasons


def _reason(reach: _Reach, objective: Objective, relation: Relation) -> str | None:
    if relation.kind is RelationKind.JOINT_VALUE:
        space = reach.mechanism.space
        column = space.q_names.index(relation.dof_name)
        target, lower, upper = float(relation.target[0]), float(reach.bounds[0][column]), float(reach.bounds[1][column])
        v = int(space.scalars_v[space.scalars_q.tolist().index(column)])
        tolerance = objective.angle_tolerance if space.rotates[v] else objective.tolerance
        if not reach.moving_dofs[v] or lower - tolerance - MIN_EXCESS <= target <= upper + tolerance + MIN_EXCESS:
            return None
        return f"{target:.4g} is outside the limits {lower:.4g} to {upper:.4g} of {relation.dof_name}"
    if relation.kind not in (RelationKind.POSE, RelationKind.DISTANCE) or relation.b == relation.a:
        return None
    if relation.kind is RelationKind.POSE:
        has_band = relation.lower is not None or relation.upper is not None
        if relation.rows[:3] != POSITION_ROWS or has_band:
            return None
        target_side = (0.0, 0.0)
    else:
        lower, upper = relation.lower, relation.upper
        target_side = (0.0, 0.0)
        if lower is not None or upper is not None:
            target_side = (
                0.0 if lower is None else max(float(lower[0]), 0.0),
                np.inf if upper is None else max(float(upper[0]), 0.0),
            )
    excess, is_too_near = max(
        (_excess(sides, target_side) for sides in _polygons(reach, relation)), default=(0.0, False)
    )
    if excess <= objective.tolerance + MIN_EXCESS:
        return None
    return f"{excess:.3g} m too {'near' if is_too_near else 'far'} for every configuration"


def _excess(sides: list[tuple[float, float]], target_side: tuple[float, float]) -> tuple[float, bool]:
    """Return by how much a side is longer than all others together, m, and whether it is not the target that is far.

    The first side is fixed to frame A, and therefore the side of the target.
    """
    all_sides = [*sides, target_side]
    excesses = [
        (low - sum(high for _, high in (*all_sides[:k], *all_sides[k + 1 :])), k not in (0, len(sides)))
        for k, (low, _) in enumerate(all_sides)
    ]
    return max(excesses)


def _polygons(reach: _Reach, relation: Relation) -> Iterator[list[tuple[float, float]]]:
    """Yield the shortest and longest lengths of the sides between A and B, for each path between them."""
    mechanism = reach.mechanism
    yield _sides(reach, [_Leg(relation.a, relation.b, relation.X_a, relation.X_b)])
    for closure in mechanism.closures.values():
        if closure.is_goal or any(not dof.is_rotation for dof in closure.free_dof):
            continue
        start, X_start, X_axes = joint_base_frame(mechanism, closure.joint)
        end, X_end = mechanism.name_of(closure.link), closure.at.matrix @ X_axes
        for near, X_near, far, X_far in ((start, X_start, end, X_end), (end, X_end, start, X_start)):
            yield _sides(
                reach, [_Leg(relation.a, near, relation.X_a, X_near), _Leg(far, relation.b, X_far, relation.X_b)]
            )


@dataclass(frozen=True, slots=True, eq=False)
class _Leg:
    """A path in the kinematic tree from frame `X_a` on link `a` to frame `X_b` on link `b`; None is the world."""

    a: str | None
    b: str | None
    X_a: Array
    X_b: Array


@dataclass(slots=True, eq=False)
class _Side:
    """A side of the polygon that is not finished: the pose at its end, and slides along it.

    Attributes:
        X: pose of the end in the axes of the begin, with all slides at zero.
        slides: direction (3,), smallest and largest value of each slide, m.
    """

    X: Array = field(default_factory=lambda: np.eye(4))
    slides: list[tuple[Array, float, float]] = field(default_factory=list[tuple[Array, float, float]])

    def lengths(self) -> tuple[float, float]:
        """Return the shortest and the longest length, m; the shortest is a lower bound."""
        p = self.X[:3, 3]
        if not self.slides:
            return float(np.linalg.norm(p)), float(np.linalg.norm(p))
        if any(not np.isfinite(value) for _, *values in self.slides for value in values):
            return 0.0, np.inf
        corners = [
            p + sum(value * direction for value, (direction, _, _) in zip(values, self.slides, strict=True))
            for values in itertools.product(*((low, high) for _, low, high in self.slides))
        ]
        longest = max(float(np.linalg.norm(corner)) for corner in corners)
        if len(self.slides) > 1:
            return 0.0, longest
        direction, low, high = self.slides[0]
        nearest_value = float(np.clip(-(p @ direction), low, high))
        return float(np.linalg.norm(p + nearest_value * direction)), longest


def _sides(reach: _Reach, legs: list[_Leg]) -> list[tuple[float, float]]:
    """Return the shortest and longest lengths of the sides along paths that a closure connects."""
    finished: list[tuple[float, float]] = []
    side = _Side()
    for k, leg in enumerate(legs):
        if k > 0:
            finished.append(side.lengths())
            side = _Side()
        path_a, path_b = (
            np.zeros((0, Node.size)) if link is None else reach.mechanism.kinematics.path(link)
            for link in (leg.a, leg.b)
        )
        shared_count = 0
        while shared_count < min(len(path_a), len(path_b)) - 1 and np.array_equal(
            path_a[shared_count], path_b[shared_count]
        ):
            shared_count += 1
        side.X = inverse(leg.X_a)
        for node in map(Node, path_a[shared_count:][::-1]):
            side = _pass_motion(reach, node, side, finished, -1.0)
            side.X = side.X @ inverse(fixed_pose(node))
        for node in map(Node, path_b[shared_count:]):
            side.X = side.X @ fixed_pose(node)
            side = _pass_motion(reach, node, side, finished, 1.0)
        side.X = side.X @ leg.X_b
    return [*finished, side.lengths()]


def _pass_motion(reach: _Reach, node: Node, side: _Side, finished: list[tuple[float, float]], sign: float) -> _Side:
    """Add the motion of a node, or its inverse if `sign` is -1; return the side that continues."""
    kind, first_q, first_v = node.kind, node.first_q, node.first_v
    if kind == FIXED:
        return side
    ratio, offset = float(node.ratio), float(node.offset)
    if kind in (REVOLUTE, SPHERICAL):
        if reach.moving_dofs[first_v]:
            finished.append(side.lengths())
            return _Side()
        R = (
            rotation.about_z(ratio * float(reach.q[first_q]) + offset)
            if kind == REVOLUTE
            else quaternion.to_matrix(reach.q[first_q : first_q + 4])
        )
        side.X = side.X @ make_pose(R if sign > 0 else R.T, np.zeros(3))
        return side
    for k, axis in enumerate((2,) if kind == PRISMATIC else (0, 1, 2)):
        column = first_q + k
        can_move = reach.moving_dofs[first_v + k]
        values = [reach.bounds[0][column], reach.bounds[1][column]] if can_move else [reach.q[column]] * 2
        if kind == PRISMATIC:
            values = [ratio * value + offset for value in values]
        side.slides.append((sign * side.X[:3, axis], float(min(values)), float(max(values))))
    return side
