"""State frames (binary messages with the present state), and the geometry of goals: poses, errors and default sizes.

`goal_error` computes distance and angle error of a goal from a link pose, mostly in scalar arithmetic for speed.
`initial_goal_pose` and `carried_goal_pose` place a goal on its link. `FramePacker` holds everything that a state frame
needs besides q and the status of the solver. It is immutable, so that the thread of the solver can use it without a
lock.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mechanik.model.dof import ROTATIONS
from mechanik.motion.live import LiveState
from mechanik.objectives import (
    Terrain,
)
from mechanik.objectives.pose_constraints import PERPENDICULAR_PAIRS
from mechanik.solver.solution import Status
from mechanik.spatial import inverse, make_pose, rotation
from mechanik.spatial.array import Array
from mechanik.studio.messages.goal_kinds import GOAL_KINDS_BY_NAME
from mechanik.studio.messages.message_codec import MAIN_LAYER, STATE, STATUSES, StateHeader, write_state
from mechanik.studio.messages.requests import (
    GoalKind,
    Vector,
)
from mechanik.studio.session.edit_state import (
    EditState,
    InteractiveGoal,
    goal_terrains,
    poses_to_array,
)
from mechanik.studio.session.model_index import ModelIndex
from mechanik.validation import read_only

X_AXIS: Vector = (1.0, 0.0, 0.0)


Z_AXIS: Vector = (0.0, 0.0, 1.0)


UPRIGHT_COSINE = 0.75
"""Cosine of the angle between the z axes of link and world above which z of the link counts as pointing up.

A look-at goal of such a link has the viewing axis x.
"""


def link_axis(goal: InteractiveGoal) -> Vector:
    """Return the direction, in the frame of the link, that an axis, cone or look-at goal constrains.

    For an axis or a cone goal this is `at`, for a look-at goal `sizes` (see `default_sizes`); z if that vector is zero.
    """
    direction = goal.sizes if goal.kind == "look_at" else goal.at
    return direction if math.hypot(*direction) > 1e-9 else Z_AXIS


def default_sizes(kind: GoalKind, X_world_link: Array, radius: float) -> Vector:
    """Return the sizes of a new goal of a kind, see `ChangeGoal.sizes`.

    Args:
        X_world_link: pose of the link in the world, (4, 4).
        radius: radius of the bounding sphere of the mechanism, m.

    Returns:
        Lengths in m, angles in rad; unused entries are 0. For a look-at goal the viewing axis of the link: z, or x if z
            points up, as in the head and torso links of humanoids.
    """
    if kind == "look_at":
        return X_AXIS if X_world_link[2, 2] > UPRIGHT_COSINE else Z_AXIS
    parameters = GOAL_KINDS_BY_NAME[kind].sizes
    values = [info.default * (radius if info.quantity == "length" else 1.0) for info in parameters]
    a, b, c = values + [0.0] * (3 - len(values))
    return a, b, c


def goal_error(
    goal: InteractiveGoal, X_world_link: Array, centre: Array | None, terrain: Terrain | None
) -> tuple[float, float]:
    """Return the distance error (m) and the angle error (rad) of a goal; the distance to a terrain is vertical.

    Args:
        goal: the goal.
        X_world_link: pose of the link in the world, (4, 4).
        centre: for a `centre_of_mass` goal, the centre of mass in the world, (3,), m; None if no link has mass.
        terrain: for an `on_terrain` goal, the terrain offset by the radius of the sphere of the goal.
    """
    R, p = X_world_link[:3, :3], X_world_link[:3, 3] + X_world_link[:3, :3] @ goal.at
    x, y, z = (goal.X[:3, :3].T @ (p - goal.X[:3, 3])).tolist()  # the point in the frame of the goal
    sizes = goal.sizes
    match goal.kind:
        case "point":
            return math.hypot(x, y, z), 0.0
        case "pose":
            errors = [error for error, dof_name in ((x, "X"), (y, "Y"), (z, "Z")) if dof_name not in goal.free]
            return math.hypot(*errors), _rotation_error(goal.X[:3, :3].T @ R, goal)
        case "orientation":
            return 0.0, rotation_angle(goal.X[:3, :3].T @ R)
        case "axis":
            return 0.0, _angle_between(R @ link_axis(goal), goal.X[:3, 2])
        case "hinge":
            return math.hypot(x, y, z), _angle_between(R[:, 2], goal.X[:3, 2])
        case "surface":
            return abs(z), _angle_between(R[:, 2], goal.X[:3, 2])
        case "on_line":
            return math.hypot(x, y), 0.0
        case "on_plane":
            return abs(z), 0.0
        case "look_at":
            return 0.0, _angle_between(R @ link_axis(goal), goal.X[:3, 3] - p)
        case "distance":
            return abs(math.hypot(x, y, z) - sizes[0]), 0.0
        case "in_box":
            return math.hypot(
                *(max(abs(coordinate) - size, 0.0) for coordinate, size in zip((x, y, z), sizes, strict=True))
            ), 0.0
        case "in_cone":
            return 0.0, max(0.0, _angle_between(R @ link_axis(goal), goal.X[:3, 2]) - sizes[0])
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


def _angle_between(a: Array, b: Array) -> float:
    """Return the angle between two vectors, rad; 0 if a vector is zero."""
    (ax, ay, az), (bx, by, bz) = a.tolist(), b.tolist()
    cross = math.hypot(ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx)
    return math.atan2(cross, ax * bx + ay * by + az * bz)


def _rotation_error(R: Array, goal: InteractiveGoal) -> float:
    """Return the angle error of a pose goal with free rotations, rad, as `PoseGoal` defines it.

    Args:
        R: rotation of the link in the frame of the goal, (3, 3).
        goal: the goal.
    """
    fixed_rotations = [dof for dof in ROTATIONS if dof.name not in goal.free]
    match len(fixed_rotations):
        case 3:
            return rotation_angle(R)
        case 2:
            k = next(dof for dof in ROTATIONS if dof not in fixed_rotations).axis_index
            return math.atan2(math.hypot(R[(k + 1) % 3, k], R[(k + 2) % 3, k]), R[k, k])
        case 1:
            link_axis_index, goal_axis_index = PERPENDICULAR_PAIRS[fixed_rotations[0]]
            return abs(math.asin(max(-1.0, min(1.0, float(R[goal_axis_index, link_axis_index])))))
        case _:
            return 0.0


LOOK_AT_DISTANCE = 0.8
"""Distance of a new look-at target from the point of the link, in radii of the bounding sphere of the mechanism."""


def initial_goal_pose(
    kind: GoalKind, X_world_link: Array, at: Vector, sizes: Vector, radius: float, centre: Array | None
) -> Array:
    """Return the pose (4, 4) in the world of a new goal.

    With default sizes, the present configuration meets the goal, so the mechanism does not move. Only the point of an
    `on_terrain` goal may be off the terrain.

    Args:
        kind: kind of the goal.
        X_world_link: pose of the link in the world, (4, 4).
        at: point of the link, in the frame of the link, m; for an axis or a cone the direction in that frame.
        sizes: see `default_sizes`.
        radius: radius of the bounding sphere of the mechanism, m.
        centre: for a `centre_of_mass` goal, the centre of mass in the world, (3,), m; None if no link has mass.
    """
    R, p = X_world_link[:3, :3], X_world_link[:3, :3] @ at + X_world_link[:3, 3]
    match kind:
        case "look_at":
            return read_only(make_pose(R, p + LOOK_AT_DISTANCE * radius * (R @ sizes)))
        case "axis" | "in_cone":
            direction = R @ (at if math.hypot(*at) > 1e-9 else Z_AXIS)
            return read_only(make_pose(rotation.between(np.array(Z_AXIS), direction), X_world_link[:3, 3]))
        case "distance":
            return read_only(make_pose(R, p - sizes[0] * R[:, 2]))
        case "in_box" | "in_band" | "centre_of_mass" | "on_terrain":
            return read_only(make_pose(np.eye(3), p if kind != "centre_of_mass" or centre is None else centre))
        case _:
            return read_only(make_pose(R, p))


def carried_goal_pose(
    goal: InteractiveGoal, X_world_link_start: Array, X_world_link: Array, centre: Array | None, terrain: Terrain | None
) -> Array:
    """Return the pose (4, 4) in the world of a goal that moves with its link.

    A point goal follows the point of the link; a pose or orientation goal also follows the orientation of the link.
    Lines, planes, boxes and other goals move rigidly with the link. A centre-of-mass goal follows the centre of mass,
    and a goal on terrain stays on the terrain.

    Args:
        goal: the goal at the start of the drag.
        X_world_link_start, X_world_link: poses of the link in the world, at the start of the drag and now, (4, 4).
        centre: for a `centre_of_mass` goal, the centre of mass in the world, (3,), m; None if no link has mass.
        terrain: for an `on_terrain` goal, the terrain offset by the radius of the sphere of the goal.
    """
    R, p = X_world_link[:3, :3], X_world_link[:3, :3] @ goal.at + X_world_link[:3, 3]
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
            return X_world_link @ inverse(X_world_link_start) @ goal.X


@dataclass(frozen=True, slots=True)
class FrameStatus:
    """Solver status for the header of a state frame; see `StateHeader`."""

    status: str = "IDLE"
    tag: int = 0
    layer: int = MAIN_LAYER
    is_at_rest: bool = True
    iterations: int = 0
    seconds: float = 0.0
    solves_per_second: float = 0.0

    @staticmethod
    def from_state(state: LiveState, tag: int, layer: int = MAIN_LAYER, status: str | None = None) -> FrameStatus:
        """Return the status of a solver state; if `status` is given, it replaces the name of the status."""
        return FrameStatus(
            status_name(state) if status is None else status,
            tag,
            layer,
            state.is_at_rest,
            state.iterations,
            state.seconds,
            state.ticks_per_second,
        )

    @staticmethod
    def at_rest(state: LiveState | None, tag: int, running: bool) -> FrameStatus:
        """Return the status of a mechanism at rest; `state` is the newest solver state, or None."""
        status = "PAUSED" if not running else "IDLE" if state is None else status_name(state)
        if state is None:
            return FrameStatus(status, tag)
        return FrameStatus(status, tag, iterations=state.iterations, seconds=state.seconds)


def _terrain_radii(goals: Sequence[InteractiveGoal]) -> dict[int, float]:
    """Return the radius of the sphere of each `on_terrain` goal, m, by goal number."""
    return {goal.number: goal.sizes[0] for goal in goals if goal.kind == "on_terrain"}


@dataclass(frozen=True, slots=True, eq=False)
class FramePacker:
    """Packs state frames of a model and its goals.

    Attributes:
        revision, goals_number: numbers of the `Model` and `Goals` events that the state frames belong to.
        index: kinematics of the model.
        goals: the goals.
        carried_from: for each goal that moves with its link, by goal number: the pose of the link in the world at the
            start of the drag, (4, 4).
        terrain: the terrain; None if there is none.
        offset_terrains: terrain of each `on_terrain` goal, by goal number, offset by the radius of the sphere of the
            goal.
    """

    revision: int
    goals_number: int
    index: ModelIndex
    goals: tuple[InteractiveGoal, ...] = ()
    carried_from: Mapping[int, Array] = field(default_factory=dict[int, Array])
    terrain: Terrain | None = None
    offset_terrains: Mapping[int, Terrain] = field(default_factory=dict[int, Terrain])

    def with_edit_state(
        self,
        edit_state: EditState,
        carried_from: Mapping[int, Array],
        index: ModelIndex,
        goals_number: int | None = None,
    ) -> FramePacker:
        """Return the packer for another edit state, drag and index; `goals_number` None: unchanged."""
        terrain, offset_terrains = edit_state.terrain, self.offset_terrains
        if terrain is not self.terrain or _terrain_radii(edit_state.goals) != _terrain_radii(self.goals):
            offset_terrains = goal_terrains(edit_state)
        goals_number = self.goals_number if goals_number is None else goals_number
        return FramePacker(self.revision, goals_number, index, edit_state.goals, carried_from, terrain, offset_terrains)

    def pack(self, q: Array, sequence: int, status: FrameStatus) -> bytes:
        """Return the state frame of the mechanism at q (nq,); `sequence` is its number, see `StateHeader`."""
        index = self.index
        X = index.link_poses(q)
        closures = index.measure_closures(X)
        goal_rows = self.goal_rows(X)
        errors = [row[7:].max() for row, goal in zip(goal_rows, self.goals, strict=True) if goal.enabled]
        header = StateHeader(
            kind=STATE,
            revision=self.revision,
            order=self.goals_number,
            sequence=sequence,
            tag=status.tag,
            layer=status.layer,
            status=STATUSES.index(status.status),
            is_at_rest=status.is_at_rest,
            iterations=status.iterations,
            seconds=status.seconds,
            solves_per_second=status.solves_per_second,
            goal_error=max(errors, default=0.0),
            links=len(X),
            values=index.value_count,
            goals=len(goal_rows),
            closures=len(closures.gaps),
        )
        return write_state(header, poses_to_array(X), index.dof_values(q, closures), goal_rows, closures.gaps)

    def goal_rows(self, X: Array) -> Array:
        """Return poses (position in m, wxyz) and errors (m, rad) of the G goals, (G, 9), for link poses X (L, 4, 4)."""
        rows = np.empty((len(self.goals), 9))
        centre = self._centre_of_mass(X)
        for row, goal in zip(rows, self.goals, strict=True):
            X_world_link = X[self.index.link_indices[goal.link]]
            present_goal = self._carried_goal(goal, X_world_link, centre)
            row[:7] = present_goal.pose
            row[7:] = goal_error(present_goal, X_world_link, centre, self.offset_terrains.get(goal.number))
        return rows

    def carried_goals(self, q: Array) -> tuple[InteractiveGoal, ...]:
        """Return the goals at q, with new poses of the goals that move with their links."""
        if not self.carried_from:
            return self.goals
        X = self.index.link_poses(q)
        centre = self._centre_of_mass(X)
        return tuple(self._carried_goal(goal, X[self.index.link_indices[goal.link]], centre) for goal in self.goals)

    def _carried_goal(self, goal: InteractiveGoal, X_world_link: Array, centre: Array | None) -> InteractiveGoal:
        X_world_link_start = self.carried_from.get(goal.number)
        if X_world_link_start is None:
            return goal
        terrain = self.offset_terrains.get(goal.number)
        return goal.with_pose_matrix(carried_goal_pose(goal, X_world_link_start, X_world_link, centre, terrain))

    def _centre_of_mass(self, X: Array) -> Array | None:
        needs_centre = any(goal.kind == "centre_of_mass" for goal in self.goals)
        return self.index.centre_of_mass(X) if needs_centre else None


def status_name(state: LiveState) -> str:
    """Return the name of the status of a solver state, one of `STATUSES`."""
    if state.error_message:
        return "PROBLEM"
    if state.status is Status.PENDING:
        return "IDLE"
    return state.status.name if state.status.name in STATUSES else "PROBLEM"
