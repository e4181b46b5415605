"""Changes of the edit state of a session: goals, objectives, solver settings and obstacles, without undo steps.

`SessionEditor` applies edit states and sends what has changed. `ObstacleEditor` changes collision settings and
obstacles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mechanik.collision import Obstacle
from mechanik.collision.collision_pairs import Avoid
from mechanik.errors import InvalidOperation, UnknownName
from mechanik.objectives import Objective, Terrain
from mechanik.spatial import Pose
from mechanik.spatial.array import Array, ArrayLike
from mechanik.studio.messages import events
from mechanik.studio.messages.events import CurveInfo, ObstacleMoved
from mechanik.studio.messages.requests import CollisionMode, DofName, GoalKind, Value, Vector
from mechanik.studio.session.broadcast import Broadcaster, SharedParts, obstacle_info
from mechanik.studio.session.collision_monitor import check_body_count
from mechanik.studio.session.edit_state import EditState, InteractiveGoal, PoseLike, numbers_to_pose, parse_pose
from mechanik.studio.session.frame_packer import default_sizes, initial_goal_pose
from mechanik.studio.session.loaded_model import LoadedModel
from mechanik.studio.session.solve_spec import make_objective, parse_solver_options
from mechanik.validation import as_number

MAX_GOALS = 64
"""Maximum number of goals of a session."""


@dataclass(frozen=True, slots=True, eq=False)
class GoalTemplate:
    """Arguments of a goal that is to be made; see `Session.add_goal` for the fields."""

    kind: GoalKind
    link: str
    at: Vector = (0.0, 0.0, 0.0)
    pose: PoseLike | None = None
    pinned: bool = False
    name: str = ""
    weight: float = 1.0
    level: int = 1
    sizes: Vector | None = None
    free: Sequence[DofName] = ()


class SessionEditor:
    """Goals, objectives and solver settings of a session; call with the session's lock held.

    Attributes:
        next_goal_number: number of the next goal; numbers are never reused.
    """

    def __init__(self, shared: SharedParts, broadcaster: Broadcaster) -> None:
        self._state, self._output, self._background = shared.state, shared.output, shared.background
        self._broadcaster = broadcaster
        self.next_goal_number = 1

    def apply_edit(self, edit_state: EditState) -> None:
        """Apply a new edit state, and send what has changed."""
        active, broadcaster = self._state.active, self._broadcaster
        previous_edit_state, previous_order = active.edit_state, broadcaster.goals_number
        previous_text = active.adaptation_text
        active.apply(edit_state, active.drag)
        if edit_state.goals is not previous_edit_state.goals and previous_order == broadcaster.goals_number:
            broadcaster.broadcast_goals()
        if (edit_state.limits, edit_state.rest_values, edit_state.locked_dofs) != (
            previous_edit_state.limits,
            previous_edit_state.rest_values,
            previous_edit_state.locked_dofs,
        ):
            broadcaster.broadcast_dofs()
        if edit_state.hidden_links != previous_edit_state.hidden_links:
            links = active.model.mechanism.links
            self._output.broadcast(events.VisibilityChanged([name not in edit_state.hidden_links for name in links]))
        if (
            edit_state.solver != previous_edit_state.solver
            or edit_state.options is not previous_edit_state.options
            or active.adaptation_text != previous_text
        ):
            broadcaster.broadcast_solving()
        if edit_state.terrain is not previous_edit_state.terrain:
            broadcaster.broadcast_scene()
        if edit_state.collision_settings is not previous_edit_state.collision_settings:
            broadcaster.broadcast_collisions(previous_edit_state.collision_settings)
        self._background.set_spec(active.solve_spec)

    # ---- goals ------------------------------------------------------------------------------

    def add_goal(self, template: GoalTemplate) -> int:
        """Add a goal and return its number; see `Session.add_goal`."""
        active = self._state.active
        X = active.model.index.link_poses(active.q)
        goal = self.make_goal(template, active.edit_state, active.model, X, self._state.model_radius)
        self.apply_edit(replace(active.edit_state, goals=(*active.edit_state.goals, goal)))
        return goal.number

    def make_goal(
        self, template: GoalTemplate, edit_state: EditState, model: LoadedModel, X: Array, model_radius: float
    ) -> InteractiveGoal:
        """Return a new goal without adding it.

        Args:
            template: the goal; see `Session.add_goal`.
            edit_state: edit state whose goals and objectives determine which names are in use, and with the terrain.
            model: the mechanism.
            X: poses of all links in the world, (L, 4, 4).
            model_radius: radius of the bounding sphere of the mechanism, m.

        Raises:
            UnknownName: there is no such link.
            InvalidOperation: there are too many goals.
            MechanikError: the goal does not fit the mechanism, or its pose is not valid.
        """
        kind, link, index = template.kind, template.link, model.index
        if link not in index.link_indices:
            raise UnknownName("link", link, index.link_names)
        if len(edit_state.goals) >= MAX_GOALS:
            raise InvalidOperation(f"there are {MAX_GOALS} goals, which is the maximum; remove a goal first")
        X_world_link = X[index.link_indices[link]]
        sizes = default_sizes(kind, X_world_link, model_radius) if template.sizes is None else template.sizes
        centre = index.centre_of_mass(X) if kind == "centre_of_mass" else None
        X_world_goal = initial_goal_pose(kind, X_world_link, template.at, sizes, model_radius, centre)
        if template.pose is not None:
            X_world_goal = parse_pose(template.pose, X_world_goal[:3, :3])
        used_names = {goal.name for goal in edit_state.goals} | set(edit_state.objectives)
        self.next_goal_number += 1
        goal = InteractiveGoal(
            number=self.next_goal_number - 1,
            name=_unused_name(template.name or link, used_names),
            kind=kind,
            link=link,
            X=X_world_goal,
            at=template.at,
            weight=template.weight,
            level=template.level,
            pinned=template.pinned,
            sizes=sizes,
            free=tuple(template.free),
        )
        make_objective(goal, edit_state.terrain).relations(model.mechanism)  # raises if the goal does not fit
        return goal

    def move_goals(self, poses: Mapping[int, PoseLike]) -> None:
        """Move several goals at once, by number; a position (3,) keeps the orientation."""
        active = self._state.active
        goals = {number: active.edit_state.goal(number) for number in poses}
        moved_goals = [
            goal.with_pose_matrix(parse_pose(poses[number], goal.X[:3, :3])) for number, goal in goals.items()
        ]
        self._background.set_targets(active, active.move_goals(moved_goals))

    def remove_goal(self, number: int) -> None:
        edit_state = self._state.active.edit_state
        removed_goal = edit_state.goal(number)
        remaining_goals = tuple(goal for goal in edit_state.goals if goal is not removed_goal)
        self.apply_edit(replace(edit_state, goals=remaining_goals))

    # ---- objectives -------------------------------------------------------------------------

    def add_objectives(self, objectives: Iterable[Objective]) -> None:
        """Add objectives that are not shown as goals; see `Session.add_objective`."""
        edit_state = self._state.active.edit_state
        objectives_by_name = dict(edit_state.objectives)
        for objective in objectives:
            if not objective.name:
                raise InvalidOperation(f"{objective!r} has no name; give it one, such as name='balance'")
            if objective.name in {goal.name for goal in edit_state.goals}:
                raise InvalidOperation(
                    f"a goal already has the name {objective.name!r}; give the objective another name"
                )
            objectives_by_name[objective.name] = objective
        self.apply_edit(replace(edit_state, objectives=objectives_by_name))

    def remove_objectives(self, names: Iterable[str]) -> None:
        """Remove added objectives, by name."""
        edit_state = self._state.active.edit_state
        remaining_objectives = dict(edit_state.objectives)
        for name in dict.fromkeys(names):
            if name not in remaining_objectives:
                raise UnknownName("objective", name, edit_state.objectives)
            del remaining_objectives[name]
        self.apply_edit(replace(edit_state, objectives=remaining_objectives))

    def set_targets(self, targets: Mapping[str, Any]) -> None:
        """Set new targets of added objectives, by name, in the form that `Objective.with_target` takes."""
        active = self._state.active
        objectives_by_name = dict(active.edit_state.objectives)
        for name, target in targets.items():
            if name not in objectives_by_name:
                raise UnknownName("objective", name, objectives_by_name)
            objectives_by_name[name] = objectives_by_name[name].with_target(target)
        active.set_targets(replace(active.edit_state, objectives=objectives_by_name), targets)
        self._background.set_targets(active, targets)

    # ---- solver, configuration, display -----------------------------------------------------

    def set_solver(self, solver: str, options: Mapping[str, Value | None]) -> None:
        """Select a method and its options; options that are not named have their default values."""
        parsed_options = parse_solver_options(solver, options)
        self.apply_edit(replace(self._state.active.edit_state, solver=solver, options=parsed_options))

    def set_running(self, running: bool) -> None:
        """Run or pause the solver."""
        self._state.active.set_running(running)
        self._broadcaster.broadcast_solving()

    def set_configuration(self, q: ArrayLike) -> None:
        """Move to q (nq,), clamped to the limits; the goals stay, and the solver continues from there."""
        active = self._state.active
        mechanism = active.model.mechanism
        active.set_configuration(mechanism.clamp(mechanism._single_q(q)))

    def move_with_goals(self, q: ArrayLike) -> None:
        """Move to q (nq,), clamped to the limits; enabled goals that are not pinned move with their links."""
        active = self._state.active
        mechanism = active.model.mechanism
        q_inside = mechanism.clamp(mechanism._single_q(q))
        goals = replace(active.frame_packer, carried_from=active.carried_link_poses()).carried_goals(q_inside)
        with active.paused():
            self.apply_edit(replace(active.edit_state, goals=goals))
            active.set_configuration(q_inside)

    def set_curves(self, curves: Sequence[CurveInfo]) -> None:
        """Set the polylines that are drawn in the world."""
        self._state.curves = list(curves)
        self._broadcaster.broadcast_scene()

    def set_terrain(self, terrain: Terrain | None) -> None:
        """Set the terrain, which is drawn and which goals of kind `on_terrain` use."""
        self.apply_edit(replace(self._state.active.edit_state, terrain=terrain))


def _unused_name(name: str, used_names: set[str]) -> str:
    """Return the name, with a number from 2 on appended if the name is in use."""
    number, unused_name = 1, name
    while unused_name in used_names:
        number += 1
        unused_name = f"{name} {number}"
    return unused_name


class ObstacleEditor:
    """Collision settings and obstacles of a session; call with the session's lock held."""

    def __init__(self, shared: SharedParts, editor: SessionEditor) -> None:
        self._state, self._output, self._background = shared.state, shared.output, shared.background
        self._editor = editor

    def set_collision_avoidance(
        self,
        avoid: Avoid | None,
        *,
        mode: CollisionMode | None,
        clearance: float | None,
        allow: Iterable[tuple[str, str]] | None,
        forbid: Iterable[tuple[str, str]] | None,
    ) -> None:
        """Set which collisions are checked; see `Session.set_collision_avoidance`."""
        active = self._state.active
        collision_settings = active.edit_state.collision_settings
        if avoid is not None:
            collision_settings = collision_settings.with_avoided(active.model.mechanism, avoid)
        new_settings: dict[str, Any] = {
            "mode": mode,
            "clearance": None if clearance is None else as_number(clearance, "clearance"),
            "allow": None if allow is None else tuple(allow),
            "forbid": None if forbid is None else tuple(forbid),
        }
        changes = {name: value for name, value in new_settings.items() if value is not None}
        self._editor.apply_edit(replace(active.edit_state, collision_settings=replace(collision_settings, **changes)))

    def add_obstacles(self, obstacles: Iterable[Obstacle]) -> None:
        """Add obstacles; names of links and obstacles must be unique, and an obstacle without a name gets one."""
        active = self._state.active
        previous_settings = active.edit_state.collision_settings
        collision_settings = previous_settings.with_avoided(
            active.model.mechanism, [*previous_settings.avoid, *obstacles]
        )
        check_body_count(active.model, collision_settings)
        self._editor.apply_edit(replace(active.edit_state, collision_settings=collision_settings))

    def remove_obstacles(self, names: Iterable[str]) -> None:
        """Remove obstacles, by name."""
        edit_state = self._state.active.edit_state
        self._editor.apply_edit(
            replace(edit_state, collision_settings=edit_state.collision_settings.without_obstacles(*names))
        )

    def move_obstacle(self, name: str, pose: PoseLike) -> None:
        """Move an obstacle; a position (3,) keeps its orientation."""
        active = self._state.active
        collision_settings = active.edit_state.collision_settings
        obstacle = collision_settings.obstacle(name)
        X_world_obstacle = parse_pose(pose, obstacle.pose.matrix[:3, :3], "pose of an obstacle")
        moved_obstacle = obstacle.moved_to(Pose.from_matrix(X_world_obstacle))
        # the event is sent before the solver is updated, since the next state must not arrive before the event
        self._output.broadcast(ObstacleMoved(obstacle_info(moved_obstacle, active.model.meshes)))
        active.move_obstacles(
            replace(active.edit_state, collision_settings=collision_settings.with_obstacle(moved_obstacle))
        )
        self._background.set_spec(active.solve_spec)

    def drag_obstacle(self, pose: tuple[float, ...]) -> None:
        """Move the dragged obstacle to a pose (position in m, wxyz); do nothing if it was removed during the drag."""
        active = self._state.active
        assert active.drag is not None
        name = active.drag.obstacle_name
        if any(obstacle.name == name for obstacle in active.edit_state.collision_settings.obstacles):
            self.move_obstacle(name, numbers_to_pose(pose))
