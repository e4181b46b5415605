"""Immutable edit state of a session: goals, objectives, limits, locks, collision settings and solver settings.

The edit state is everything that undo restores besides the mechanism, its configuration, the scene and its drawn
curves. The module also converts poses between matrices and the numbers of messages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from mechanik.collision import Collider, Obstacle
from mechanik.collision.collision_pairs import SELF, Avoid, parse_avoid
from mechanik.errors import (
    NotARotation,
    NotFinite,
    ShapeError,
    UnknownName,
)
from mechanik.model import Mechanism
from mechanik.objectives import (
    Objective,
    Terrain,
)
from mechanik.spatial import Pose, as_pose_matrix, from_position_wxyz, quaternion
from mechanik.spatial.array import Array, ArrayLike
from mechanik.studio.messages.events import GoalInfo
from mechanik.studio.messages.requests import (
    MAX_MAGNITUDE,
    CollisionMode,
    DofName,
    GoalKind,
    PoseNumbers,
    Value,
    Vector,
)
from mechanik.studio.session.model_index import IndexedDof
from mechanik.validation import read_only

PoseLike = ArrayLike | Pose
"""A pose matrix (4, 4), a `Pose`, position and wxyz (7,), or a position (3,)."""


def pose_to_numbers(X: Array) -> PoseNumbers:
    """Return a pose (4, 4) as position and wxyz."""
    (x, y, z), (qw, qx, qy, qz) = X[:3, 3].tolist(), quaternion.from_matrix(X[:3, :3]).tolist()
    return x, y, z, qw, qx, qy, qz


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
        NotFinite: a number is not finite, or its magnitude exceeds `MAX_MAGNITUDE`.
        NotARotation: the norm of the quaternion is below 1e-6.
    """
    if len(numbers) != 7:
        raise ShapeError(f"a pose has 7 numbers (x, y, z and the quaternion w, x, y, z), not {len(numbers)}")
    if not all(math.isfinite(number) and abs(number) <= MAX_MAGNITUDE for number in numbers):
        raise NotFinite(f"every number of a pose must be from {-MAX_MAGNITUDE:g} to {MAX_MAGNITUDE:g} (positions in m)")
    norm = math.hypot(*numbers[3:])
    if norm < 1e-6:
        raise NotARotation("the quaternion of a pose is zero; the identity rotation is (1, 0, 0, 0)")
    wxyz = np.array(numbers[3:]) / norm
    return read_only(from_position_wxyz(np.array(numbers[:3], dtype=np.float64), wxyz))


def parse_pose(pose: PoseLike, default_rotation: Array | None = None, label: str = "pose of a goal") -> Array:
    """Validate a pose given by a program and return it as a read-only matrix (4, 4).

    Args:
        pose: see `PoseLike`.
        default_rotation: rotation (3, 3) for a bare position; None: the identity.
        label: name of the value in error messages.

    Raises:
        ShapeError: the shape is none of those of `PoseLike`.
        NotFinite: a number is not finite, or its magnitude exceeds `MAX_MAGNITUDE`.
        NotARotation: the rotation is not valid.
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
        raise ShapeError(f"a pose has the shape (4, 4), not {X.shape}")
    if np.abs(X).max() > MAX_MAGNITUDE:
        raise NotFinite(f"every number of a pose must be from {-MAX_MAGNITUDE:g} to {MAX_MAGNITUDE:g} (positions in m)")
    return read_only(X.copy())


@dataclass(frozen=True, slots=True, eq=False)
class InteractiveGoal:
    """A goal of a session, immutable.

    Attributes:
        number: identifier; never reused within a session, except `LINK_DRAG_GOAL`.
        name: label, and name of its objective.
        kind: what is constrained, see `GoalKind`.
        link: name of the link.
        X: pose of the goal in the world, (4, 4), read-only.
        at: point of the link, in the frame of the link, m; for an axis or a cone the direction in that frame.
        weight: weight within its level.
        level: priority level; ignored for a pinned goal, which has level 0.
        enabled: whether the solver uses the goal.
        pinned: whether the goal has priority over all other goals and keeps its pose when joints are dragged.
        sizes: parameters of the kind, see `ChangeGoal.sizes`.
        free: dofs of a pose goal that are not constrained, see `ChangeGoal.free`.
        is_link_drag: whether this is the temporary goal of a link drag.

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
    free: tuple[DofName, ...] = ()
    is_link_drag: bool = False
    pose: PoseNumbers = field(init=False)
    """The pose `X` as position (m) and wxyz."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "pose", pose_to_numbers(self.X))

    def with_pose_matrix(self, X: Array) -> InteractiveGoal:
        """Return the goal at the pose X in the world, (4, 4), read-only."""
        return replace(self, X=X)

    def with_pose_numbers(self, numbers: tuple[float, ...]) -> InteractiveGoal:
        """Return the goal at a pose in the world that is given as position (m) and wxyz."""
        return replace(self, X=numbers_to_pose(numbers))

    def target_after(self, previous_goal: InteractiveGoal) -> Array | None:
        """Return the target that turns the objective of `previous_goal` into that of this goal, for `with_target`.

        The goals differ only in their poses. None: no target expresses the change, so a new objective is needed, except
        for an `on_terrain` goal, whose objective does not depend on the pose.
        """
        match self.kind:
            case "point" | "look_at" | "centre_of_mass":
                return self.X[:3, 3]
            case "pose" | "in_box" | "in_band":
                return self.X
            case "orientation":
                return self.X[:3, :3]
            case "axis" | "in_cone":
                return self.X[:3, 2]
            case "hinge" | "surface" | "on_line" | "on_plane":
                is_rotated = not np.array_equal(self.X[:3, :3], previous_goal.X[:3, :3])
                return None if is_rotated else self.X[:3, 3]
            case _:
                return None

    @property
    def effective_level(self) -> int:
        """Priority level for the solver; 0 for a pinned goal."""
        return 0 if self.pinned else self.level

    def has_same_settings(self, other_goal: InteractiveGoal) -> bool:
        """Return whether the goals differ at most in their poses."""
        return all(getattr(self, name) == getattr(other_goal, name) for name in SETTING_FIELDS)

    def info(self, link_index: int) -> GoalInfo:
        """Return the goal as the messages to browser pages contain it.

        Args:
            link_index: index of the link.
        """
        return GoalInfo(
            number=self.number,
            name=self.name,
            kind=self.kind,
            link=link_index,
            at=self.at,
            pose=self.pose,
            weight=self.weight,
            level=self.effective_level,
            enabled=self.enabled,
            pinned=self.pinned,
            sizes=self.sizes,
            free=list(self.free),
            is_link_drag=self.is_link_drag,
        )


SETTING_FIELDS = tuple(item.name for item in fields(InteractiveGoal) if item.name not in ("X", "pose"))


NamePairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class CollisionSettings:
    """Which collisions are checked, and whether they are shown or avoided; immutable.

    Attributes:
        mode: "off", "show" (mark colliding bodies) or "avoid" (the solver avoids them too).
        clearance: distance that avoidance keeps, m.
        self_collision: whether links are checked against each other.
        obstacles: obstacles, each with a name.
        allow, forbid: pairs of names, see `Collider`.
    """

    mode: CollisionMode = "show"
    clearance: float = 0.0
    self_collision: bool = True
    obstacles: tuple[Obstacle, ...] = ()
    allow: NamePairs = ()
    forbid: NamePairs = ()

    @property
    def avoid(self) -> tuple[str | Obstacle, ...]:
        """The argument `avoid` of `Collider`."""
        return (SELF, *self.obstacles) if self.self_collision else self.obstacles

    def has_same_pairs(self, other_settings: CollisionSettings) -> bool:
        """Return whether `self_collision`, `allow` and `forbid` are equal; obstacles are not compared."""
        return (self.self_collision, self.allow, self.forbid) == (
            other_settings.self_collision,
            other_settings.allow,
            other_settings.forbid,
        )

    def with_avoided(self, mechanism: Mechanism, avoid: Avoid) -> CollisionSettings:
        """Return the settings with `avoid` as for `Collider`; obstacles without a name get one."""
        parsed_avoid = parse_avoid(avoid, mechanism.links)
        return replace(self, self_collision=parsed_avoid.self_collisions, obstacles=parsed_avoid.obstacles)

    def obstacle(self, name: str) -> Obstacle:
        for obstacle in self.obstacles:
            if obstacle.name == name:
                return obstacle
        raise UnknownName("obstacle", name, [obstacle.name for obstacle in self.obstacles])

    def with_obstacle(self, changed_obstacle: Obstacle) -> CollisionSettings:
        """Return the settings with the obstacle of the same name replaced."""
        return replace(
            self,
            obstacles=tuple(
                changed_obstacle if obstacle.name == changed_obstacle.name else obstacle for obstacle in self.obstacles
            ),
        )

    def without_obstacles(self, *names: str) -> CollisionSettings:
        """Return the settings without these obstacles and without the pairs that name them."""
        removed_names = {self.obstacle(name).name for name in names}
        remaining_obstacles = tuple(obstacle for obstacle in self.obstacles if obstacle.name not in removed_names)
        allow, forbid = (
            tuple(pair for pair in pairs if not removed_names & {*pair}) for pairs in (self.allow, self.forbid)
        )
        return replace(self, obstacles=remaining_obstacles, allow=allow, forbid=forbid)

    def make_collider(self, mechanism: Mechanism) -> Collider:
        return Collider(mechanism, self.avoid, allow=self.allow, forbid=self.forbid)


DEFAULT_COLLISION_SETTINGS = CollisionSettings()
"""Self-collisions are checked and shown."""


Limits = tuple[float, float]
"""Lower and upper limit of a dof, m or rad."""


@dataclass(frozen=True, slots=True, eq=False)
class EditState:
    """Goals, limits and settings of a session, immutable.

    Attributes:
        goals: the goals.
        locked_dofs: indices of locked dofs.
        limits: limits of each dof, m or rad; infinite if there is no limit, and for the rotations of spherical joints.
        rest_values: rest value of each dof, m or rad; None: no rest value.
        solver, options: name and options of the method, see `SetSolver`.
        objectives: further objectives of a program or scene, by name.
        terrain: terrain of the scene; None: no terrain.
        hidden_links: names of links that are not drawn.
        collision_settings: which collisions are checked, and the obstacles.
    """

    goals: tuple[InteractiveGoal, ...] = ()
    locked_dofs: frozenset[int] = frozenset()
    limits: tuple[Limits, ...] = ()
    rest_values: tuple[float | None, ...] = ()
    solver: str = "lm"
    options: Mapping[str, Value | None] = field(default_factory=dict[str, Value | None])
    objectives: Mapping[str, Objective] = field(default_factory=dict[str, Objective])
    terrain: Terrain | None = None
    hidden_links: frozenset[str] = frozenset()
    collision_settings: CollisionSettings = DEFAULT_COLLISION_SETTINGS

    def goal(self, number: int) -> InteractiveGoal:
        for goal in self.goals:
            if goal.number == number:
                return goal
        raise UnknownName("goal", number, [str(goal.number) for goal in self.goals])

    def with_goal(self, changed_goal: InteractiveGoal) -> EditState:
        """Return the state with the goal of the same number replaced."""
        return replace(
            self, goals=tuple(changed_goal if goal.number == changed_goal.number else goal for goal in self.goals)
        )


def read_limits(mechanism: Mechanism, dofs: tuple[IndexedDof, ...]) -> tuple[Limits, ...]:
    """Return the limits of all dofs from the joints of a mechanism."""
    no_limits = float("-inf"), float("inf")
    return tuple(no_limits if dof.dof is None else mechanism.joints[dof.joint].limits(dof.dof) for dof in dofs)


def read_rest_values(mechanism: Mechanism, dofs: tuple[IndexedDof, ...]) -> tuple[float | None, ...]:
    return tuple(None if dof.dof is None else mechanism.joints[dof.joint].rest_value(dof.dof) for dof in dofs)


def write_limits_and_rest_values(mechanism: Mechanism, dofs: tuple[IndexedDof, ...], edit_state: EditState) -> None:
    """Write limits and rest values of an edit state to the joints of a mechanism.

    If a value is not valid, the function raises, and the values of earlier dofs are already changed.
    """
    for indexed_dof, limits, rest_value in zip(dofs, edit_state.limits, edit_state.rest_values, strict=True):
        joint = mechanism.joints[indexed_dof.joint]
        if indexed_dof.dof is None:
            continue
        if joint.limits(indexed_dof.dof) != limits:
            joint.set_limit(indexed_dof.dof, *limits)
        if joint.rest_value(indexed_dof.dof) == rest_value:
            continue
        if rest_value is None:  # a joint can only clear all its rest values together
            other_rest_values = {dof: joint.rest_value(dof) for dof in joint.dof if dof is not indexed_dof.dof}
            joint.clear_rest_pose()
            for dof, value in other_rest_values.items():
                if value is not None:
                    joint.set_rest_value(dof, value)
        else:
            joint.set_rest_value(indexed_dof.dof, rest_value)


def same_limits_and_rest_values(a: EditState, b: EditState) -> bool:
    """Return whether two edit states have the same limits and rest values."""
    return a.limits == b.limits and a.rest_values == b.rest_values


def same_goal_settings(goals: tuple[InteractiveGoal, ...], other_goals: tuple[InteractiveGoal, ...]) -> bool:
    """Return whether two lists of goals differ at most in the poses of the goals."""
    return len(goals) == len(other_goals) and all(
        goal is other_goal or goal.has_same_settings(other_goal)
        for goal, other_goal in zip(goals, other_goals, strict=True)
    )


def goal_terrains(edit_state: EditState) -> dict[int, Terrain]:
    """Return the terrain of each `on_terrain` goal, by goal number, offset by the radius of the sphere of the goal."""
    if edit_state.terrain is None:
        return {}
    return {
        goal.number: edit_state.terrain.offset_by(goal.sizes[0]) if goal.sizes[0] > 0.0 else edit_state.terrain
        for goal in edit_state.goals
        if goal.kind == "on_terrain"
    }
