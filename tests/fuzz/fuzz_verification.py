"""Verification of answers from their configurations alone, in plain NumPy, from the definitions of the objectives.

Nothing is taken from the solver but q and what it says of it. Rows (N, ...) are verified at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy_poses import NumpyPoses

import mechanik as mk
from mechanik.model.dof import ROTATIONS, TRANSLATIONS, DoF, joint_values_from_pose
from mechanik.objectives import AlignedAxes, FixedRotation, LineConstraint, PerpendicularAxes, PlaneConstraint
from mechanik.objectives.pose_constraints import PERPENDICULAR_PAIRS
from mechanik.spatial import euler

LIMIT_TOLERANCE = 1e-9
CLOSURE_TOLERANCE = 1e-9
CONE_TOLERANCE = 1e-8
CONSTRAINT_TOLERANCE = 1e-9
ROUNDING = 1e-12
"""Relative to the size of the mechanism: errors this near to a tolerance may be on either side of it."""

Errors = tuple[np.ndarray, np.ndarray]
"""Position errors (N,) in m and rotation errors (N,) in rad."""


class Verifier:
    """Evaluates objectives, limits and loops of one mechanism at configurations q (N, nq).

    Args:
        mechanism: the mechanism.
        size: m; its largest lengths.
    """

    def __init__(self, mechanism: mk.Mechanism, size: float) -> None:
        self.mechanism, self.numpy_poses, self.size = mechanism, NumpyPoses(mechanism), max(size, 1.0)

    # ---- objectives -------------------------------------------------------------------------

    def errors(self, objective: mk.Objective, q: np.ndarray, poses: Mapping[str, np.ndarray]) -> Errors:
        """Return the position and rotation errors of an objective, as its documentation defines them."""
        zero = np.zeros(len(q))
        match objective:
            case mk.JointValues() | mk.RestPose():
                return self._joint_errors(objective, q)
            case mk.PoseGoal():
                return _pose_errors(objective, *self._relative(objective, poses, len(q)))
            case mk.LinkGoal():
                return _link_errors(objective, self._relative(objective, poses, len(q))[0])
            case mk.Distance():
                p = _apply(poses[objective.link], objective.point)
                X_other = self._frame(objective.other_link, poses, len(q))
                distance = np.linalg.norm(p - _apply(X_other, objective.other_point), axis=-1)
                if objective.equal is not None:
                    return np.abs(distance - objective.equal), zero
                return _outside(distance, objective.at_least or 0.0, _or(objective.at_most, math.inf)), zero
            case mk.InBox():
                p = _in_frame(objective.frame, _apply(self._relative(objective, poses, len(q))[0], objective.point))
                return np.linalg.norm(_outside(p, objective.lower, objective.upper), axis=-1), zero
            case mk.InBand():
                X = np.linalg.inv(objective.frame) @ self._relative(objective, poses, len(q))[0] @ objective.tool
                k = "xyz".index(objective.coordinate[-1])
                if objective.coordinate.startswith("r"):
                    return zero, _outside(_rotation_vector(X[:, :3, :3])[:, k], objective.lower, objective.upper)
                return _outside(X[:, k, 3], objective.lower, objective.upper), zero
            case mk.InCone():
                axis = _rotate(self._relative(objective, poses, len(q))[0], objective.axis)
                return zero, np.maximum(math.cos(objective.angle) - axis @ objective.direction, 0.0)
            case mk.LookAt():
                X = self._relative(objective, poses, len(q))[0]
                sight = objective.target - _apply(X, objective.eye)
                angle = _angle(_rotate(X, objective.axis), sight)
                return zero, np.where(np.linalg.norm(sight, axis=-1) < 1e-12, 0.0, angle)
            case mk.OnTerrain():
                p = _apply(self._relative(objective, poses, len(q))[0], objective.point)
                terrain = objective.terrain.offset_by(objective.radius)
                return np.abs(p[:, 2] - terrain.height(p[:, 0], p[:, 1])), zero
            case mk.CentreOfMass():
                return self._mass_errors(objective, poses, len(q)), zero
            case mk.Custom():
                values = np.array([np.atleast_1d(objective.function(self.mechanism, row)) for row in q])
                lower, upper = objective.lower, objective.upper
                if lower is None and upper is None:
                    return zero, np.linalg.norm(values, axis=-1)
                return zero, np.linalg.norm(_outside(values, _or(lower, -math.inf), _or(upper, math.inf)), axis=-1)
            case _:
                pairs = [objective.error(self.mechanism, row) for row in q]
                return np.array([pair.position for pair in pairs]), np.array([pair.rotation for pair in pairs])

    def unmet(self, objectives: Sequence[mk.Objective], q: np.ndarray, poses: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return by how much the worst required objective exceeds its tolerance, (N,), relative to the tolerance.

        At most 1: all are met. Errors that rounding could move over the tolerance count as 1.
        """
        worst = np.zeros(len(q))
        for objective in objectives:
            if objective.required:
                for error, tolerance, rounding in zip(
                    self.errors(objective, q, poses),
                    (objective.tolerance, objective.angle_tolerance),
                    self.rounding(objective, poses),
                    strict=True,
                ):
                    is_near = np.abs(error - tolerance) <= rounding + 1e-6 * tolerance
                    worst = np.maximum(worst, np.where(is_near, 1.0, error / tolerance))
        return worst

    def rounding(self, objective: mk.Objective, poses: Mapping[str, np.ndarray]) -> Errors:
        """Return bounds of the rounding errors of `errors`; large for the direction to a target at the eye itself."""
        count = len(next(iter(poses.values())))
        position, rotation = np.full(count, ROUNDING * self.size), np.full(count, ROUNDING)
        if isinstance(objective, mk.LookAt):
            X = self._relative(objective, poses, count)[0]
            distance = np.linalg.norm(objective.target - _apply(X, objective.eye), axis=-1)
            rotation += 0.01 * ROUNDING * self.size / np.maximum(distance, 1e-300)
        return position, rotation

    def _frame(self, link: str | None, poses: Mapping[str, np.ndarray], count: int) -> np.ndarray:
        return np.broadcast_to(np.eye(4), (count, 4, 4)) if link is None else poses[link]

    def _relative(self, objective, poses: Mapping[str, np.ndarray], count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the pose of the link relative to `relative_to`, and the rotation of that link in the world."""
        X_reference = self._frame(objective.relative_to, poses, count)
        R, p = X_reference[:, :3, :3].swapaxes(1, 2), X_reference[:, :3, 3]
        X = poses[objective.link]
        relative = np.zeros_like(X)
        relative[:, :3, :3] = R @ X[:, :3, :3]
        relative[:, :3, 3] = np.einsum("nij,nj->ni", R, X[:, :3, 3] - p)
        relative[:, 3, 3] = 1.0
        return relative, X_reference[:, :3, :3]

    def _joint_errors(self, objective, q: np.ndarray) -> Errors:
        position, rotation = np.zeros(len(q)), np.zeros(len(q))
        values = objective.values if isinstance(objective, mk.JointValues) else objective.q
        if not isinstance(values, Mapping):
            return position, rotation  # a soft rest pose, which is not verified
        for name, numbers in values.items():
            joint = self.mechanism.joints[name]
            scalars = [dof for dof in joint.dof if not (joint.has_quaternion and dof.is_rotation)]
            for dof, number in zip(scalars, numbers, strict=False):
                error, turn = self.numpy_poses.value(joint, dof, q) - number, 2 * math.pi
                ratio = 1.0
                for coupling in joint.couplings:
                    _, leader_dof, ratio, _ = coupling.resolve()
                    error, turn = error / ratio, turn / abs(ratio)  # in units of the leader
                    dof_of_unit = leader_dof
                    break
                else:
                    dof_of_unit = dof
                if dof.is_rotation and objective.angle_mode == "nearest":
                    error = error - turn * np.round(error / turn)
                if dof_of_unit.is_rotation:
                    rotation = np.maximum(rotation, np.abs(error))
                else:
                    position = np.maximum(position, np.abs(error))
            if joint.has_quaternion:
                k = self.numpy_poses.quaternion_column(joint)
                wxyz = q[:, k : k + 4] / np.linalg.norm(q[:, k : k + 4], axis=1, keepdims=True)
                rotation = np.maximum(rotation, _quaternion_angle(wxyz, numbers[len(scalars) :]))
        return position, rotation

    def _mass_errors(self, objective: mk.CentreOfMass, poses: Mapping[str, np.ndarray], count: int) -> np.ndarray:
        centre, total = np.zeros((count, 3)), 0.0
        for name, link in self.mechanism.links.items():
            if link.inertial is not None and (objective.links is None or name in objective.links):
                centre = centre + link.inertial.mass * _apply(poses[name], link.inertial.pose.position)
                total += link.inertial.mass
        centre = _in_frame(self._frame(objective.relative_to, poses, count), centre / total)
        if objective.target is not None:
            rows = [dof.axis_index for dof in objective.dof]
            return np.linalg.norm((centre - objective.target)[:, rows], axis=-1)
        corners, worst = objective.support, np.zeros(count)
        for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            inward = np.array([start[1] - end[1], end[0] - start[0]]) / np.linalg.norm(end - start)
            worst = np.maximum(worst, objective.margin - (centre[:, :2] - start) @ inward)
        return worst

    # ---- constraints of the mechanism -------------------------------------------------------

    def open_by(self, q: np.ndarray, poses: Mapping[str, np.ndarray]) -> tuple[np.ndarray, str]:
        """Return by how much the worst loop, joint constraint or cone is violated, (N,), relative to its tolerance."""
        worst, label = np.zeros(len(q)), ""

        def add(excess: np.ndarray, name: str) -> None:
            nonlocal worst, label
            if (excess > worst).any() and excess.max() > 1.0:
                label = name
            worst = np.maximum(worst, excess)

        for name, closure in self.mechanism.closures.items():
            X_parent = self._frame(self.mechanism.name_of(closure.joint.parent), poses, len(q))
            pairs = zip(X_parent, poses[self.mechanism.name_of(closure.link)], strict=True)
            gaps = [_closure_gap(closure, *pair) for pair in pairs]
            error = np.array([gap for gap, _ in gaps]) / [self.size, 1.0]
            excess = np.array([excess for _, excess in gaps])
            add(_near_one(excess / CONE_TOLERANCE, 0.6), f"limits of closing joint {name}")
            add(_near_one(error.max(axis=1) / CLOSURE_TOLERANCE, 1e-3), f"loop {name}")
        for name, constraint in self.mechanism.joint_constraints.items():
            total = np.full(len(q), -constraint.constant)
            for term in constraint.terms:
                value = self.numpy_poses.value(term.joint, term.dof, q)
                total = total + sum(c * value ** (n + 1) for n, c in enumerate(term.coefficients))
            add(_near_one(np.abs(total) / (CONSTRAINT_TOLERANCE * constraint.scale), 1e-3), f"constraint {name}")
        for name, joint in self.mechanism.joints.items():
            if joint.cone is not None and not joint.is_closure:
                R = self.numpy_poses._motion(joint, q)[:, :3, :3]
                A = mk.spatial.quaternion.to_matrix(joint.axes_wxyz)
                R = A.T @ R @ A
                tilt = np.max(
                    [
                        np.arctan2(np.hypot(R[:, (k + 1) % 3, k], R[:, (k + 2) % 3, k]), R[:, k, k])
                        for k in joint.cone.axis_indices
                    ],
                    axis=0,
                )
                add(_near_one(np.maximum(tilt - joint.cone.angle, 0.0) / CONE_TOLERANCE, 0.6), f"cone {name}")
        return worst, label

    def limit_excess(self, q: np.ndarray, limits: Mapping[str, Sequence[float]]) -> np.ndarray:
        """Return by how much each entry of q (N, nq) is outside its limits; `limits` replace those of the mechanism.

        Limits of a mimic joint count for the entry of its leader, in the unit of the mimic joint.
        """
        space = self.mechanism.space
        excess = np.maximum(np.maximum(q - space.upper, space.lower - q), 0.0)
        named = self.named_limits(limits)
        columns = [self.numpy_poses.column(*_independent(joint, dof)) for joint, dof, _, _ in named]
        excess[:, columns] = 0.0
        for k, (joint, dof, lower, upper) in zip(columns, named, strict=True):
            excess[:, k] = np.maximum(excess[:, k], _outside(self.numpy_poses.value(joint, dof, q), lower, upper))
        return excess

    def named_limits(self, limits: Mapping[str, Sequence[float]]) -> list[tuple[mk.Joint, DoF, float, float]]:
        named = []
        for name, (lower, upper) in limits.items():
            joint_name, _, dof_name = (name, "", "") if name in self.mechanism.joints else name.rpartition(".")
            joint = self.mechanism.joints[joint_name]
            named += [(joint, dof, lower, upper) for dof in joint.dof if dof_name in ("", dof.name)]
        return named


def _closure_gap(closure: mk.Closure, X_parent: np.ndarray, X_link: np.ndarray) -> tuple[tuple[float, float], float]:
    """Return the gap of a closure (m, rad) for any values of its free dofs, and by how much these exceed their limits.

    Limits of one among several rotations are none.
    """
    X = closure._pose_in_axes(X_parent @ closure.joint.matrix, X_link)
    stored, lower, upper = closure.joint._values_and_limits()
    free = np.full(6, np.inf)
    values = joint_values_from_pose(X, closure.free_dof, stored, -free, free)
    R = euler.matrix_from_euler(values[[5, 4, 3]], order="zyx", axes="moving")
    angle = float(_rotation_angle((X[:3, :3] @ R.T)[None])[0])
    rotations = [dof for dof in closure.free_dof if dof.is_rotation]
    excess = 0.0
    for dof in closure.free_dof:
        if not dof.is_rotation:
            excess = max(excess, lower[dof] - values[dof], values[dof] - upper[dof])
        elif len(rotations) == 1 and upper[dof] - lower[dof] < 2 * math.pi:
            middle, half = 0.5 * (lower[dof] + upper[dof]), 0.5 * (upper[dof] - lower[dof])
            turned = values[dof] - middle
            excess = max(excess, abs(turned - 2 * math.pi * round(turned / (2 * math.pi))) - half)
    return (float(np.linalg.norm(X[:3, 3] - values[:3])), angle), excess


def _independent(joint: mk.Joint, dof: DoF) -> tuple[mk.Joint, DoF]:
    coupling = next((item for item in joint.couplings if item.dof is dof), None)
    return (joint, dof) if coupling is None else coupling.resolve()[:2]


def _near_one(ratio: np.ndarray, margin: float) -> np.ndarray:
    """Return the ratios, with those exactly 1 where rounding could move them over 1."""
    return np.where(np.abs(ratio - 1.0) <= margin, 1.0, ratio)


def _or(value, default):
    return default if value is None else value


def _outside(values: np.ndarray, lower, upper) -> np.ndarray:
    """Return the distance of values to their band."""
    return np.maximum(np.maximum(lower - values, values - upper), 0.0)


def _apply(X: np.ndarray, p: np.ndarray) -> np.ndarray:
    return X[:, :3, :3] @ p + X[:, :3, 3]


def _rotate(X: np.ndarray, axis: np.ndarray) -> np.ndarray:
    return X[:, :3, :3] @ axis


def _in_frame(X: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return points (N, 3) in a frame, given by one pose or by N."""
    return np.einsum("...ji,...j->...i", X[..., :3, :3], p - X[..., :3, 3])


def _angle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = np.broadcast_arrays(a, b)
    return np.arctan2(np.linalg.norm(np.cross(a, b), axis=-1), np.sum(a * b, axis=-1))


def _quaternion_angle(wxyz: np.ndarray, target: np.ndarray) -> np.ndarray:
    w, x, y, z = np.asarray(target) / np.linalg.norm(target)
    a, b, c, d = wxyz.T
    real = a * w + b * x + c * y + d * z
    vector = np.stack([w * b - a * x - y * d + z * c, w * c - a * y - z * b + x * d, w * d - a * z - x * c + y * b])
    return 2 * np.arctan2(np.linalg.norm(vector, axis=0), np.abs(real))


def _rotation_vector(R: np.ndarray) -> np.ndarray:
    twice = np.stack([R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]], -1)
    sine = 0.5 * np.linalg.norm(twice, axis=-1)
    angle = np.arctan2(sine, 0.5 * (np.trace(R, axis1=1, axis2=2) - 1.0))
    if (angle > 3.0).any():  # near half a turn the axis is in the symmetric part
        return mk.spatial.rotation.log(R)
    scale = np.where(sine < 1e-8, 0.5, 0.5 * angle / np.maximum(sine, 1e-300))
    return twice * scale[:, None]


def _rotation_angle(R: np.ndarray) -> np.ndarray:
    return np.linalg.norm(_rotation_vector(R), axis=-1)


def _link_errors(goal: mk.LinkGoal, X: np.ndarray) -> Errors:
    position, rotation = np.zeros(len(X)), np.zeros(len(X))
    if goal.position is not None:
        offset = _apply(X, goal.position.local) - goal.position.target
        if isinstance(goal.position, PlaneConstraint):
            position = np.abs(offset @ goal.position.direction)
        elif isinstance(goal.position, LineConstraint):
            position = np.linalg.norm(np.cross(offset, goal.position.direction), axis=-1)
        else:
            position = np.linalg.norm(offset, axis=-1)
    match goal.rotation:
        case FixedRotation():
            rotation = _rotation_angle(goal.rotation.target.T @ X[:, :3, :3] @ goal.rotation.local)
        case AlignedAxes():
            rotation = _angle(_rotate(X, goal.rotation.local), goal.rotation.target)
        case PerpendicularAxes():
            rotation = np.abs(_rotate(X, goal.rotation.local) @ goal.rotation.target)
        case _:
            pass
    return position, rotation


def _pose_errors(goal: mk.PoseGoal, X: np.ndarray, R_world_reference: np.ndarray) -> Errors:
    """Return the errors in the constrained dofs of a pose goal, along the axes of its target or of the world."""
    X_target, zero = goal.target, np.zeros(len(X))
    X_tool = X @ goal.tool
    offset = X_tool[:, :3, 3] - X_target[:3, 3]
    if goal.axes == "world":
        assert goal.relative_to is None
        components, R = offset, X_tool[:, :3, :3] @ X_target[:3, :3].T
    else:
        components, R = offset @ X_target[:3, :3], X_target[:3, :3].T @ X_tool[:, :3, :3]
    rows = [dof.axis_index for dof in TRANSLATIONS if dof in goal.dof]
    position = np.linalg.norm(components[:, rows], axis=-1) if rows else zero
    rotations = [dof for dof in ROTATIONS if dof in goal.dof]
    match len(rotations):
        case 0:
            return position, zero
        case 1:
            b, a = PERPENDICULAR_PAIRS[rotations[0]]
            return position, np.abs(R[:, a, b])
        case 2:
            k = next(dof for dof in ROTATIONS if dof not in rotations).axis_index
            return position, _angle(R[:, :, k], np.eye(3)[k])
        case _:
            return position, _rotation_angle(R)
