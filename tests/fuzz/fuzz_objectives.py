"""Random objectives of every exported kind, each with a function that returns a target that a configuration meets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy_poses import NumpyPoses
from random_mechanisms import random_turn
from scipy.spatial.transform import Rotation

import mechanik as mk
from mechanik.model.dof import ALL_DOFS
from mechanik.objectives import AlignedAxes, FixedRotation, LineConstraint, PerpendicularAxes, PlaneConstraint
from mechanik.spatial import from_position_wxyz, make_pose, quaternion

SIMPLE_KINDS = ("position", "pose")
KINDS = (
    *SIMPLE_KINDS, *SIMPLE_KINDS, "pose dofs", "orientation", "axis", "hinge", "surface", "line", "plane", "link goal",
    "points", "look at", "distance", "distance band", "box", "band", "cone", "joint values", "centre of mass",
    "support", "terrain", "custom", "custom band", "rest pose", "manipulability", "clearance",
)  # fmt: skip
"""Kinds of objectives; a kind that is listed twice is drawn twice as often."""

Target = Callable[[np.ndarray], object]


@dataclass(frozen=True, slots=True)
class FuzzObjective:
    """An objective that is met at the reference configuration, unless it is soft.

    Attributes:
        target: function of q (nq,) that returns a target; None: the target cannot be changed. The objective with this
            target is met at q if its directions are met there, as they are at the reference configuration.
    """

    kind: str
    objective: mk.Objective
    target: Target | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """What objectives are drawn for.

    Attributes:
        q: reference configuration (nq,).
        size: m; of the mechanism.
        max_level: largest level.
        has_soft: whether objectives may be soft.
        poses_at_last_q: poses of all links, by the last q.
    """

    mechanism: mk.Mechanism
    numpy_poses: NumpyPoses
    q: np.ndarray
    size: float
    max_level: int
    has_soft: bool
    poses_at_last_q: dict[bytes, dict[str, np.ndarray]] = field(default_factory=dict)

    def pose(self, link: str, q: np.ndarray, relative_to: str | None = None) -> np.ndarray:
        """Return the pose (4, 4) of a link at q (nq,), relative to the world or to another link."""
        key = q.tobytes()
        if key not in self.poses_at_last_q:
            self.poses_at_last_q.clear()
            self.poses_at_last_q[key] = self.numpy_poses.poses(q[None])
        poses = self.poses_at_last_q[key]
        X = poses[link][0]
        return X if relative_to is None else np.linalg.inv(poses[relative_to][0]) @ X


def random_objective(rng: np.random.Generator, setting: Setting, kind: str, name: str) -> FuzzObjective | None:
    """Return a random objective of a kind, or None if there is none for the mechanism."""
    options: dict[str, object] = {"name": name} if rng.random() < 0.5 else {}
    if rng.random() < 0.5:
        options["weight"] = float(10.0 ** rng.uniform(-1.5, 1.5))
    if setting.max_level > 1:
        options["level"] = int(rng.integers(setting.max_level + 1))
    if rng.random() < 0.3:
        options["tolerance"] = float(10.0 ** rng.uniform(-8, -2)) * setting.size
        options["angle_tolerance"] = float(10.0 ** rng.uniform(-8, -2))
    if setting.has_soft and rng.random() < 0.15:
        options["required"] = False
    match kind:
        case "joint values" | "rest pose":
            return _joint_objective(rng, setting, kind, options)
        case "custom" | "custom band":
            return _custom_objective(rng, setting, kind, options)
        case "centre of mass" | "support":
            return _mass_objective(rng, setting, kind, options)
        case "clearance":
            has_shapes = sum(bool(link.collisions) for link in setting.mechanism.links.values()) > 1
            if not has_shapes or not setting.has_soft:
                return None
            return FuzzObjective(kind, mk.Clearance("self", -0.02, level=0, name=name))
        case _:
            return _link_objective(rng, setting, kind, options)


# ---- links --------------------------------------------------------------------------------------


def _link_objective(rng, setting: Setting, kind: str, options: dict[str, object]) -> FuzzObjective | None:
    names = list(setting.mechanism.links)
    link = names[-1] if rng.random() < 0.4 else names[rng.integers(len(names))]
    if len(names) > 2 and rng.random() < 0.2 and kind != "manipulability":
        reference_link = names[rng.integers(len(names))]
        options["relative_to"] = reference_link if reference_link != link else None
    reference = options.get("relative_to")
    local = np.zeros(3) if rng.random() < 0.3 else rng.uniform(-0.3, 0.3, 3) * setting.size
    axis, direction = random_turn(rng)[1:], random_turn(rng)[1:]
    X_tool = from_position_wxyz(local, random_turn(rng))

    def pose(q):
        return setting.pose(link, q, reference)

    def point(q):
        return (pose(q) @ [*local, 1.0])[:3]

    X = pose(setting.q)
    p, axis_there = point(setting.q), X[:3, :3] @ axis / np.linalg.norm(axis)
    form = int(rng.integers(4))

    def tool_pose(q):
        X_target = pose(q) @ X_tool
        return (X_target, X_target, mk.Pose.from_matrix(X_target), _position_wxyz(X_target))[form]

    match kind:
        case "position":
            return FuzzObjective(kind, mk.PositionGoal(link, p, local, **options), point)
        case "pose":
            return FuzzObjective(kind, mk.PoseGoal(link, X @ X_tool, at=X_tool, **options), tool_pose)
        case "pose dofs":
            dof = [dof for dof in ALL_DOFS if rng.random() < 0.5] or [ALL_DOFS[2]]
            axes = "world" if rng.random() < 0.4 and reference is None else "goal"
            return FuzzObjective(
                kind, mk.PoseGoal(link, X @ X_tool, at=X_tool, dof=dof, axes=axes, **options), tool_pose
            )
        case "orientation":
            return FuzzObjective(
                kind,
                mk.OrientationGoal(link, X[:3, :3] @ X_tool[:3, :3], X_tool[:3, :3], **options),
                lambda q: _rotation_form(form, pose(q) @ X_tool),
            )
        case "axis":
            return FuzzObjective(kind, mk.AxisGoal(link, axis_there, axis, **options), lambda q: pose(q)[:3, :3] @ axis)
        case "hinge":
            return FuzzObjective(kind, mk.HingeGoal(link, p, axis_there, local, axis, **options), point)
        case "surface":
            return FuzzObjective(kind, mk.SurfaceGoal(link, p, axis_there, local, axis, **options), point)
        case "line":
            return FuzzObjective(kind, mk.OnLine(link, p, direction, local, **options), point)
        case "plane":
            return FuzzObjective(kind, mk.OnPlane(link, p, direction, local, **options), point)
        case "link goal":
            position = (LineConstraint if rng.random() < 0.5 else PlaneConstraint)(p, direction, local)
            across = np.cross(axis_there, direction)
            rotation = (
                FixedRotation(X[:3, :3]),
                AlignedAxes(axis_there, axis),
                PerpendicularAxes(across, axis),
                None,
            )[rng.integers(4)]
            return FuzzObjective(kind, mk.LinkGoal(link, position, rotation, **options), point)
        case "points":
            points = rng.uniform(-0.3, 0.3, (int(rng.integers(1, 5)), 3)) * setting.size
            return FuzzObjective(kind, mk.from_points(link, points, points @ X[:3, :3].T + X[:3, 3], **options))
        case "look at":
            ahead = local + float(rng.uniform(0.2, 2)) * setting.size * axis
            return FuzzObjective(
                kind,
                mk.LookAt(link, (X @ [*ahead, 1.0])[:3], axis, local, **options),
                lambda q: (pose(q) @ [*ahead, 1.0])[:3],
            )
        case "distance" | "distance band":
            options.pop("relative_to", None)
            other_at = rng.uniform(-0.5, 0.5, 3) * setting.size

            def distance(q):
                p_reference = other_at if reference is None else (setting.pose(reference, q) @ [*other_at, 1.0])[:3]
                return float(np.linalg.norm((setting.pose(link, q) @ [*local, 1.0])[:3] - p_reference))

            ends = {"other_link": reference, "at": local, "other_at": other_at}
            value = distance(setting.q)
            if kind == "distance":
                return FuzzObjective(kind, mk.Distance(link, **ends, equal=value, **options), distance)
            low, high = value * rng.uniform(0.5, 0.99), value * rng.uniform(1.01, 1.5)
            bounds = ({"at_least": low}, {"at_most": high}, {"at_least": low, "at_most": high})[rng.integers(3)]
            factor = low / value if "at_least" in bounds else high / value
            target = None if len(bounds) == 2 else lambda q: distance(q) * factor
            return FuzzObjective(kind, mk.Distance(link, **ends, **bounds, **options), target)
        case "box":
            lower, upper = -rng.uniform(0.01, 0.5, 3) * setting.size, rng.uniform(0.01, 0.5, 3) * setting.size
            lower[1:][rng.random(2) < 0.2] = -np.inf
            return FuzzObjective(kind, mk.InBox(link, lower, upper, p, local, **options), point)
        case "band":
            coordinate = ("x", "y", "z", "rx", "ry", "rz")[rng.integers(6)]
            unit = 0.3 if coordinate.startswith("r") else setting.size
            low, high = -unit * rng.uniform(0.01, 0.5), unit * rng.uniform(0.01, 0.5)
            bounds = {"lower": low, "upper": high} if rng.random() < 0.6 else {"lower": low}
            goal = mk.InBand(link, coordinate, **bounds, frame=X @ X_tool, at=X_tool, **options)
            return FuzzObjective(kind, goal, tool_pose)
        case "cone":
            wide = float(rng.uniform(0.05, 1.5))
            return FuzzObjective(
                kind, mk.InCone(link, axis, axis_there, wide, **options), lambda q: pose(q)[:3, :3] @ axis
            )
        case "terrain":
            cell = float(rng.uniform(0.3, 1.0)) * setting.size
            terrain = mk.Terrain(rng.uniform(-0.1, 0.1, (4, 5)) * setting.size, cell, p[:2] - 2.0 * cell)
            heights = terrain.heights + (p[2] - terrain.height(p[0], p[1]))
            return FuzzObjective(
                kind, mk.OnTerrain(link, mk.Terrain(heights, cell, p[:2] - 2.0 * cell), local, **options)
            )
        case "manipulability":
            if not setting.has_soft or not 3 <= setting.mechanism.nv <= 12:
                return None
            soft = {name: value for name, value in options.items() if name in ("name", "weight")}
            return FuzzObjective(kind, mk.Manipulability(link, ("X", "Y"), reference=setting.size**2, **soft))
    raise AssertionError(kind)


def _rotation_form(form: int, X: np.ndarray) -> object:
    R = X[:3, :3]
    return (R, quaternion.from_matrix(R), make_pose(R, np.ones(3)), Rotation.from_matrix(R))[form]


def _position_wxyz(X: np.ndarray) -> np.ndarray:
    return np.concatenate([X[:3, 3], quaternion.from_matrix(X[:3, :3])])


# ---- configurations, masses, functions ----------------------------------------------------------


def _joint_objective(rng, setting: Setting, kind: str, options: dict[str, object]) -> FuzzObjective | None:
    mechanism = setting.mechanism
    if kind == "rest pose":
        if not setting.has_soft:
            return None
        soft = {name: value for name, value in options.items() if name in ("name", "weight")}
        return FuzzObjective(kind, mk.RestPose(mechanism.random(rng), **soft), lambda q: q)
    joints = [
        name
        for name, joint in mechanism.joints.items()
        if joint.dof and joint.children and not joint.is_closure and not (joint.couplings and len(joint.dof) > 1)
    ]
    if not joints:
        return None
    chosen = [joints[k] for k in rng.choice(len(joints), min(len(joints), int(rng.integers(1, 4))), replace=False)]
    options["angle_mode"] = "nearest" if rng.random() < 0.7 else "exact"

    def values(q):
        return {name: _joint_value(setting, mechanism.joints[name], q) for name in chosen}

    return FuzzObjective(kind, mk.JointValues(values(setting.q), **options), values)


def _joint_value(setting: Setting, joint: mk.Joint, q: np.ndarray) -> object:
    numbers = [
        float(setting.numpy_poses.value(joint, dof, q[None])[0])
        for dof in joint.dof
        if not (joint.has_quaternion and dof.is_rotation)
    ]
    if joint.has_quaternion:
        k = setting.numpy_poses.quaternion_column(joint)
        numbers += q[k : k + 4].tolist()
    return numbers[0] if len(numbers) == 1 else np.array(numbers)


def _mass_objective(rng, setting: Setting, kind: str, options: dict[str, object]) -> FuzzObjective | None:
    masses = {
        name: link.inertial
        for name, link in setting.mechanism.links.items()
        if link.inertial and link.inertial.mass > 0
    }
    if not masses:
        return None

    def centre(q):
        total = sum(inertial.mass for inertial in masses.values())
        return sum(
            inertial.mass / total * (setting.pose(name, q) @ [*inertial.pose.position, 1.0])[:3]
            for name, inertial in masses.items()
        )

    p = centre(setting.q)
    if kind == "centre of mass":
        dof = ("X", "Y", "Z") if rng.random() < 0.5 else ("X", "Y")
        return FuzzObjective(kind, mk.CentreOfMass(p, dof=dof, **options), centre)
    angles = np.sort(rng.uniform(0, 2 * np.pi, 5))
    angles[:3] = [0.1, 2.2, 4.3]  # so that the polygon holds its centre
    shape = np.stack([np.cos(angles), np.sin(angles)], 1) * setting.size * rng.uniform(0.1, 0.5)
    return FuzzObjective(kind, mk.CentreOfMass(support=p[:2] + shape, **options), lambda q: centre(q)[:2] + shape)


@dataclass(frozen=True)
class SineFunction:
    """A smooth function of q: A sin(q), minus its value at a configuration."""

    A: np.ndarray
    offset: np.ndarray

    def __call__(self, mechanism: mk.Mechanism, q: np.ndarray) -> np.ndarray:
        return self.A @ np.sin(q) - self.offset


def _custom_objective(rng, setting: Setting, kind: str, options: dict[str, object]) -> FuzzObjective:
    A = rng.uniform(-1, 1, (int(rng.integers(1, 3)), setting.mechanism.nq))
    for k in setting.mechanism.space.quaternions_q:
        A[:, k : k + 4] = 0.0  # q and -q are the same rotation
    function = SineFunction(A, A @ np.sin(setting.q))
    bounds = {"lower": -rng.uniform(0.01, 0.5), "upper": rng.uniform(0.01, 0.5)} if kind == "custom band" else {}
    return FuzzObjective(kind, mk.Custom(function, residual_size=len(A), **bounds, **options))
