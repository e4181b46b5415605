"""Goals that users see and drag, and their conversion to objectives, errors and frames.

A goal is a kind, a frame in the world, a weight and a priority level. `make_objective` and `objective_target` convert
it for the solver. `goal_error` computes its distance and angle error from a link pose, in scalar arithmetic for speed.
`initial_frame` and `carried_frame` place it on its link.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from mechanik.errors import NotARotation, NotFinite, ObjectiveError, ShapeError
from mechanik.model.dof import ALL_DOFS, ROTATIONS
from mechanik.objectives import (
    AxisGoal,
    CentreOfMass,
    Distance,
    HingeGoal,
    InBand,
    InBox,
    InCone,
    LookAt,
    Objective,
    OnLine,
    OnPlane,
    OnTerrain,
    OrientationGoal,
    PoseGoal,
    PositionGoal,
    SurfaceGoal,
    Terrain,
)
from mechanik.objectives.objective import ObjectiveOptions
from mechanik.objectives.pose_constraints import PERPENDICULAR_PAIRS
from mechanik.spatial import Pose, as_pose_matrix, from_position_wxyz, inverse, make_pose, quaternion, rotation
from mechanik.spatial.array import Array, ArrayLike
from mechanik.studio.messages.events import GoalInfo
from mechanik.studio.messages.goal_kinds import GOAL_KIND_INFOS
from mechanik.studio.messages.requests import MAX_MAGNITUDE, Direction, GoalKind, PoseNumbers, Vector
from mechanik.validation import read_only

PoseLike = ArrayLike | Pose
"""A pose matrix (4, 4), a `Pose`, position and wxyz (7,), or a position (3,)."""


def pose_to_numbers(X: Array) -> PoseNumbers:
    """Return a pose (4, 4) as position and wxyz."""
    (x, y, z), (a, b, c, d) = X[:3, 3].tolist(), quaternion.from_matrix(X[:3, :3]).tolist()
    return x, y, z, a, b, c, d


def poses_to_array(X: Array) -> Array:
    """Return poses (n, 4, 4) as positions and quaternions wxyz (n, 7)."""
    rows = np.empty((len(X), 7))
    rows[:, :3] = X[:, :3, 3]
    rows[:, 3:] = quaternion.from_matrix(X[:, :3, :3])
    return rows


def numbers_to_pose(numbers: Sequence[float]) -> Array:
    """Return a pose matrix (4, 4), read-only, from position and wxyz; the quaternion is normalised.

    Raises:
        ShapeError: there are not seven numbers.
        NotFinite: a number is not finite or exceeds `MAX_MAGNITUDE`.
        NotARotation: the quaternion is zero.
    """
    if len(numbers) != 7:
        raise ShapeError(f"a pose has 7 numbers, position and wxyz, not {len(numbers)}")
    if not all(math.isfinite(one) and abs(one) <= MAX_MAGNITUDE for one in numbers):
        raise NotFinite(f"every number of a pose is finite and within {MAX_MAGNITUDE:g}")
    length = math.hypot(*numbers[3:])
    if length < 1e-6:
        raise NotARotation("the turn of a pose is a zero quaternion; no turn at all is (1, 0, 0, 0)")
    wxyz = np.array(numbers[3:]) / length
    return read_only(from_position_wxyz(np.array(numbers[:3], dtype=np.float64), wxyz))


def parse_pose(pose: PoseLike, default_rotation: Array | None = None, label: str = "pose of a goal") -> Array:
    """Validate a pose given by a program and return it as a read-only matrix (4, 4).

    Args:
        pose: see `PoseLike`.
        default_rotation: rotation (3, 3) for a bare position; None: the identity.
        label: name of the value in error texts.
    """
    if not isinstance(pose, Pose):
        shape = np.shape(pose)
        if shape == (7,):
            return numbers_to_pose(np.asarray(pose, dtype=np.float64).tolist())
        if shape == (3,):
            X = np.eye(4)
            X[:3, :3] = np.eye(3) if default_rotation is None else default_rotation
            X[:3, 3] = np.asarray(pose, dtype=np.float64)
            pose = X
    X = as_pose_matrix(pose, label)
    if X.shape != (4, 4):
        raise ShapeError(f"one pose is needed, not an array of shape {X.shape}")
    if np.abs(X).max() > MAX_MAGNITUDE:
        raise NotFinite(f"every number of a pose is finite and within {MAX_MAGNITUDE:g}")
    return read_only(X.copy())


@dataclass(frozen=True, slots=True, eq=False)
class InteractiveGoal:
    """A goal of a session, immutable.

    Attributes:
        number: identifier; never reused within a session.
        name: label, and name of its objective.
        kind: what is constrained, see `GoalKind`.
        link: name of the link.
        X: frame of the goal in the world, (4, 4), read-only.
        at: point of the link, in the frame of the link, m.
        weight: weight within its level.
        level: priority level; a pinned goal has level 0 whatever this says.
        enabled: whether the solver uses it.
        pinned: whether it has priority over all other goals and stays in place when joints are dragged.
        sizes: parameters of the kind, see `ChangeGoal.sizes`.
        free: directions of a pose, in the frame of the goal, that are not constrained.
        is_pull: whether it is the temporary goal of a link drag.

    Example:
        >>> from mechanik.studio.session import InteractiveGoal
        >>> goal = InteractiveGoal(1, "target", "point", "tool", np.eye(4), pinned=True)
        >>> goal.effective_level, goal.pose
        (0, (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0))
    """

    number: int
    name: str
    kind: GoalKind
    link: str
    X: Array
    at: Vector = (0.0, 0.0, 0.0)
    weight: float = 1.0
    level: int = 1
    enabled: bool = True
    pinned: bool = False
    sizes: Vector = (0.0, 0.0, 0.0)
    free: tuple[Direction, ...] = ()
    is_pull: bool = False
    pose: PoseNumbers = field(init=False)
    """The frame `X` as position (m) and wxyz."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "pose", pose_to_numbers(self.X))

    def with_frame(self, X: Array) -> InteractiveGoal:
        """Return the goal with its frame at X (4, 4), read-only."""
        return replace(self, X=X)

    def with_pose(self, numbers: tuple[float, ...]) -> InteractiveGoal:
        """Return the goal with its frame at a pose given as position (m) and wxyz."""
        return replace(self, X=numbers_to_pose(numbers))

    @property
    def effective_level(self) -> int:
        """Priority level for the solver; 0 for a pinned goal."""
        return 0 if self.pinned else self.level

    def has_same_settings(self, other: InteractiveGoal) -> bool:
        """Return whether the goals differ at most in their frames."""
        return all(getattr(self, name) == getattr(other, name) for name in SETTING_FIELDS)

    def info(self, link: int) -> GoalInfo:
        """Return the goal as pages receive it.

        Args:
            link: index of the link.
        """
        return GoalInfo(
            number=self.number,
            name=self.name,
            kind=self.kind,
            link=link,
            at=self.at,
            pose=self.pose,
            weight=self.weight,
            level=self.effective_level,
            enabled=self.enabled,
            pinned=self.pinned,
            sizes=self.sizes,
            free=list(self.free),
            is_link_drag=self.is_pull,
        )


SETTING_FIELDS = tuple(one.name for one in fields(InteractiveGoal) if one.name not in ("X", "pose"))


X_AXIS: Vector = (1.0, 0.0, 0.0)
Z_AXIS: Vector = (0.0, 0.0, 1.0)
UPRIGHT_COSINE = 0.75
"""Cosine to the z axis of the world above which the z axis of a link counts as up, so that the link looks along x."""


def make_objective(goal: InteractiveGoal, terrain: Terrain | None = None) -> Objective:
    """Return the objective of a goal.

    Args:
        goal: the goal.
        terrain: terrain of the scene, for `on_terrain`.

    Raises:
        ObjectiveError: the goal needs a terrain and there is none.
    """
    wish: ObjectiveOptions = {"weight": goal.weight, "level": goal.effective_level, "name": goal.name}
    if goal.kind == "on_terrain":
        if terrain is None:
            raise ObjectiveError("there is no ground here to stand on; open a scene that has some, such as the rover")
        return OnTerrain(goal.link, terrain, goal.at, goal.sizes[0], **wish)
    return _MAKERS[goal.kind](goal, wish)


def _pose(goal: InteractiveGoal, wish: ObjectiveOptions) -> Objective:
    wanted = [dof for dof in ALL_DOFS if dof.name not in goal.free]
    return PoseGoal(goal.link, goal.X, at=goal.at, dof=wanted, **wish)


def _p(goal: InteractiveGoal) -> Array:
    return goal.X[:3, 3]


def _z(goal: InteractiveGoal) -> Array:
    return goal.X[:3, 2]


_MAKERS: dict[GoalKind, Callable[[InteractiveGoal, ObjectiveOptions], Objective]] = {
    "point": lambda goal, wish: PositionGoal(goal.link, _p(goal), goal.at, **wish),
    "pose": _pose,
    "orientation": lambda goal, wish: OrientationGoal(goal.link, goal.X[:3, :3], **wish),
    "axis": lambda goal, wish: AxisGoal(goal.link, _z(goal), link_axis(goal), **wish),
    "hinge": lambda goal, wish: HingeGoal(goal.link, _p(goal), _z(goal), goal.at, **wish),
    "surface": lambda goal, wish: SurfaceGoal(goal.link, _p(goal), _z(goal), goal.at, **wish),
    "on_line": lambda goal, wish: OnLine(goal.link, _p(goal), _z(goal), goal.at, **wish),
    "on_plane": lambda goal, wish: OnPlane(goal.link, _p(goal), _z(goal), goal.at, **wish),
    "look_at": lambda goal, wish: LookAt(goal.link, _p(goal), link_axis(goal), goal.at, **wish),
    "distance": lambda goal, wish: Distance(goal.link, at=goal.at, other_at=_p(goal), equal=goal.sizes[0], **wish),
    "in_box": lambda goal, wish: InBox(goal.link, -np.array(goal.sizes), goal.sizes, goal.X, goal.at, **wish),
    "in_cone": lambda goal, wish: InCone(goal.link, link_axis(goal), _z(goal), goal.sizes[0], **wish),
    "in_band": lambda goal, wish: InBand(goal.link, "z", goal.sizes[0], goal.sizes[1], goal.X, goal.at, **wish),
    "centre_of_mass": lambda goal, wish: CentreOfMass(_p(goal), **wish),
}


def link_axis(goal: InteractiveGoal) -> Vector:
    """Return the direction, in the frame of the link, that an axis, cone or look-at goal constrains.

    For an axis or a cone it is `at`, for a look-at goal `sizes` (see `default_sizes`); z if that is zero.
    """
    given = goal.sizes if goal.kind == "look_at" else goal.at
    return given if math.hypot(*given) > 1e-9 else Z_AXIS


def default_sizes(kind: GoalKind, X_world_link: Array, radius: float) -> Vector:
    """Return the sizes of a new goal of a kind, see `ChangeGoal.sizes`.

    Args:
        X_world_link: pose of the link in the world, (4, 4).
        radius: of the mechanism, m.

    Returns:
        Lengths in m, angles in rad. For a look-at goal the viewing axis of the link: z, or x if z points up, as in
            heads and bodies.
    """
    if kind == "look_at":
        return X_AXIS if X_world_link[2, 2] > UPRIGHT_COSINE else Z_AXIS
    parameters = GOAL_KIND_INFOS[kind].sizes
    scaled = [info.default * (radius if info.quantity == "length" else 1.0) for info in parameters]
    a, b, c = scaled + [0.0] * (3 - len(scaled))
    return a, b, c


def objective_target(goal: InteractiveGoal, before: InteractiveGoal) -> Any:
    """Return the argument of `Objective.with_target` that turns the objective of `before` into that of `goal`.

    The goals differ only in their frames. None: no target can express the change, so the objective must be made again.
    """
    turned = not np.array_equal(goal.X[:3, :3], before.X[:3, :3])
    match goal.kind:
        case "point" | "look_at" | "centre_of_mass":
            return goal.X[:3, 3]
        case "pose" | "in_box" | "in_band":
            return goal.X
        case "orientation":
            return goal.X[:3, :3]
        case "axis" | "in_cone":
            return goal.X[:3, 2]
        case "hinge" | "surface" | "on_line" | "on_plane":
            return None if turned else goal.X[:3, 3]
        case _:
            return None


def goal_error(
    goal: InteractiveGoal, X_world_link: Array, centre: Array | None, terrain: Terrain | None
) -> tuple[float, float]:
    """Return distance (m) and angle (rad) between a link and its goal.

    Args:
        goal: the goal.
        X_world_link: pose of the link in the world, (4, 4).
        centre: centre of mass in the world, (3,), m; None if no link has mass.
        terrain: for `on_terrain`, offset by the radius of the sphere of the goal.
    """
    R, p = X_world_link[:3, :3], X_world_link[:3, 3] + X_world_link[:3, :3] @ goal.at
    x, y, z = (goal.X[:3, :3].T @ (p - goal.X[:3, 3])).tolist()  # the point in the frame of the goal
    sizes = goal.sizes
    match goal.kind:
        case "point":
            return math.hypot(x, y, z), 0.0
        case "pose":
            off = [one for one, free in ((x, "X"), (y, "Y"), (z, "Z")) if free not in goal.free]
            return math.hypot(*off), _turn(goal.X[:3, :3].T @ R, goal)
        case "orientation":
            return 0.0, rotation_angle(goal.X[:3, :3].T @ R)
        case "axis":
            return 0.0, _between(R @ link_axis(goal), goal.X[:3, 2])
        case "hinge":
            return math.hypot(x, y, z), _between(R[:, 2], goal.X[:3, 2])
        case "surface":
            return abs(z), _between(R[:, 2], goal.X[:3, 2])
        case "on_line":
            return math.hypot(x, y), 0.0
        case "on_plane":
            return abs(z), 0.0
        case "look_at":
            return 0.0, _between(R @ link_axis(goal), goal.X[:3, 3] - p)
        case "distance":
            return abs(math.hypot(x, y, z) - sizes[0]), 0.0
        case "in_box":
            return math.hypot(*(max(abs(one) - size, 0.0) for one, size in zip((x, y, z), sizes, strict=True))), 0.0
        case "in_cone":
            return 0.0, max(0.0, _between(R @ link_axis(goal), goal.X[:3, 2]) - sizes[0])
        case "in_band":
            return max(sizes[0] - z, z - sizes[1], 0.0), 0.0
        case "centre_of_mass":
            return (0.0 if centre is None else float(np.linalg.norm(centre - goal.X[:3, 3]))), 0.0
        case "on_terrain":
            return (0.0 if terrain is None else abs(float(p[2] - terrain.height(p[0], p[1])))), 0.0


def rotation_angle(R: Array) -> float:
    """Return the angle of a rotation (3, 3), rad, accurate near 0 and near pi."""
    xx, xy, xz, yx, yy, yz, zx, zy, zz = R.ravel().tolist()
    return math.atan2(math.hypot(zy - yz, xz - zx, yx - xy), xx + yy + zz - 1.0)


def _between(a: Array, b: Array) -> float:
    """Return the angle between two vectors, rad; 0 if a vector is zero."""
    (ax, ay, az), (bx, by, bz) = a.tolist(), b.tolist()
    cross = math.hypot(ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx)
    return math.atan2(cross, ax * bx + ay * by + az * bz)


def _turn(R: Array, goal: InteractiveGoal) -> float:
    """Return the angle error of a pose goal with free rotations, rad, as `partial_pose_relations` defines it."""
    turns = [dof for dof in ROTATIONS if dof.name not in goal.free]
    match len(turns):
        case 3:
            return rotation_angle(R)
        case 2:
            k = next(dof for dof in ROTATIONS if dof not in turns).axis_index
            return math.atan2(math.hypot(R[(k + 1) % 3, k], R[(k + 2) % 3, k]), R[k, k])
        case 1:
            of_link, of_goal = PERPENDICULAR_PAIRS[turns[0]]
            return abs(math.asin(max(-1.0, min(1.0, float(R[of_goal, of_link])))))
        case _:
            return 0.0


LOOK_AT_DISTANCE = 0.8
"""Distance of a new look-at target from its link, in radii of the mechanism."""


def initial_frame(
    kind: GoalKind, X_world_link: Array, at: Vector, sizes: Vector, radius: float, centre: Array | None
) -> Array:
    """Return the frame (4, 4) of a new goal that is met in the present configuration, so that nothing jumps.

    Args:
        X_world_link: pose of the link in the world, (4, 4).
        at: point of the link, in the frame of the link, m.
        sizes: see `default_sizes`.
        radius: of the mechanism, m.
        centre: centre of mass in the world, (3,), m; None if no link has mass.
    """
    R, p = X_world_link[:3, :3], X_world_link[:3, :3] @ at + X_world_link[:3, 3]
    match kind:
        case "look_at":
            return read_only(make_pose(R, p + LOOK_AT_DISTANCE * radius * (R @ sizes)))
        case "axis" | "in_cone":
            way = R @ (at if math.hypot(*at) > 1e-9 else Z_AXIS)
            return read_only(make_pose(rotation.between(np.array(Z_AXIS), way), X_world_link[:3, 3]))
        case "distance":
            return read_only(make_pose(R, p - sizes[0] * R[:, 2]))
        case "in_box" | "in_band" | "centre_of_mass" | "on_terrain":
            return read_only(make_pose(np.eye(3), p if kind != "centre_of_mass" or centre is None else centre))
        case _:
            return read_only(make_pose(R, p))


def carried_frame(
    goal: InteractiveGoal, X_before: Array, X_now: Array, centre: Array | None, terrain: Terrain | None
) -> Array:
    """Return the frame (4, 4) of a goal that moves with its link.

    The frame of a point, pose or orientation goal follows the link itself. Lines, planes, boxes and similar frames move
    rigidly with the link. A centre-of-mass goal follows the centre of mass, and a goal on terrain stays on the terrain.

    Args:
        X_before, X_now: poses of the link in the world, at the start of the drag and now, (4, 4).
        centre: centre of mass in the world, (3,), m; None if no link has mass.
        terrain: for `on_terrain`.
    """
    R, p = X_now[:3, :3], X_now[:3, :3] @ goal.at + X_now[:3, 3]
    match goal.kind:
        case "point":
            return make_pose(goal.X[:3, :3], p)
        case "pose" | "orientation":
            return make_pose(R, p)
        case "centre_of_mass":
            return goal.X if centre is None else make_pose(goal.X[:3, :3], centre)
        case "on_terrain":
            height = p[2] if terrain is None else float(terrain.height(p[0], p[1]))
            return make_pose(goal.X[:3, :3], np.array([p[0], p[1], height]))
        case _:
            return X_now @ inverse(X_before) @ goal.X
