"""Methods of `Session` for programs and scenes: goals, objectives, solver settings, obstacles; no undo steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from mechanik.collision import Obstacle
from mechanik.collision.collision_pairs import Avoid
from mechanik.errors import InvalidOperation, UnknownName
from mechanik.motion.live import LiveState
from mechanik.objectives import Objective, Terrain
from mechanik.spatial import Pose
from mechanik.spatial.array import Array, ArrayLike
from mechanik.studio.messages.events import CurveInfo, Notice, ObstacleMoved
from mechanik.studio.messages.requests import CollisionMode, Direction, GoalKind, Value, Vector
from mechanik.studio.session.broadcast import obstacle_info
from mechanik.studio.session.collision_monitor import check_body_count
from mechanik.studio.session.edit_state import EditState
from mechanik.studio.session.interactive_goals import (
    InteractiveGoal,
    PoseLike,
    default_sizes,
    initial_frame,
    make_objective,
    numbers_to_pose,
    parse_pose,
)
from mechanik.studio.session.loaded_model import LoadedModel
from mechanik.validation import as_number

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session


MAX_GOALS = 64


class PythonApi:
    """Goals, objectives and solver settings; a part of `Session`."""

    # ---- goals ------------------------------------------------------------------------------

    def add_goal(
        self,
        kind: GoalKind,
        link: str,
        *,
        at: Vector = (0.0, 0.0, 0.0),
        pose: PoseLike | None = None,
        pinned: bool = False,
        name: str = "",
        weight: float = 1.0,
        level: int = 1,
        sizes: Vector | None = None,
        free: Sequence[Direction] = (),
    ) -> int:
        """Add a goal for a link.

        Args:
            kind: kind of the goal.
            link: name of the link.
            at: point of the link, in the frame of the link, m; for an axis or a cone the direction in the link, z if
                zero.
            pose: frame of the goal in the world: (4, 4), a `Pose`, position and wxyz (7,), or a position (3,); None: as
                the link is now.
            pinned: whether it has priority over all other goals and stays in place when joints are dragged.
            name: label; default: the name of the link.
            weight: weight within its level.
            level: priority level; 0 is the highest.
            sizes: parameters of the kind, see `ChangeGoal.sizes`; None: defaults.
            free: directions of a pose, in the frame of the goal, that are not constrained.

        Returns:
            The number of the goal.

        Raises:
            UnknownName: there is no such link.
            InvalidOperation: there are too many goals.
        """
        session = cast("Session", self)
        with session.lock:
            stage = session.active
            X = stage.model.index.link_poses(stage.q)
            goal = self.make_goal(
                stage.edit_state, stage.model, X, kind, link,
                at=at, pose=pose, pinned=pinned, name=name, weight=weight, level=level, sizes=sizes, free=free,
            )  # fmt: skip
            session.apply_edit(replace(stage.edit_state, goals=(*stage.edit_state.goals, goal)))
            return goal.number

    def make_goal(
        self,
        edit_state: EditState,
        model: LoadedModel,
        X: Array,
        kind: GoalKind,
        link: str,
        *,
        at: Vector = (0.0, 0.0, 0.0),
        pose: PoseLike | None = None,
        pinned: bool = False,
        name: str = "",
        weight: float = 1.0,
        level: int = 1,
        sizes: Vector | None = None,
        free: Sequence[Direction] = (),
    ) -> InteractiveGoal:
        """Return a new goal without adding it; see `add_goal`.

        Args:
            edit_state: its goals and objectives determine which names are in use.
            model: the mechanism.
            X: poses of all links in the world, (L, 4, 4).
        """
        session = cast("Session", self)
        if link not in model.index.link_numbers:
            raise UnknownName("link", link, model.index.link_names)
        if len(edit_state.goals) >= MAX_GOALS:
            raise InvalidOperation(f"there are {MAX_GOALS} goals already, and no more are followed; remove some first")
        X_link = X[model.index.link_numbers[link]]
        measured = default_sizes(kind, X_link, session.state.model_radius) if sizes is None else sizes
        centre = model.index.centre_of_mass(X) if kind == "centre_of_mass" else None
        frame = initial_frame(kind, X_link, at, measured, session.state.model_radius, centre)
        if pose is not None:
            frame = parse_pose(pose, frame[:3, :3])
        taken = {goal.name for goal in edit_state.goals} | set(edit_state.objectives)
        session.next_goal_number += 1
        goal = InteractiveGoal(
            number=session.next_goal_number - 1,
            name=_unused(name or link, taken),
            kind=kind,
            link=link,
            X=frame,
            at=at,
            weight=weight,
            level=level,
            pinned=pinned,
            sizes=measured,
            free=tuple(free),
        )
        make_objective(goal, edit_state.terrain).relations(model.mechanism)  # raises if it does not fit the mechanism
        return goal

    def move_goal(self, number: int, pose: PoseLike) -> None:
        """Move a goal; a position (3,) keeps its orientation."""
        self.move_goals({number: pose})

    def move_goals(self, poses: Mapping[int, PoseLike]) -> None:
        """Move several goals at once, by number."""
        session = cast("Session", self)
        with session.lock:
            setup = session.active.edit_state
            moved = {number: setup.goal(number) for number in poses}
            session.move_goal_frames(
                {n: goal.with_frame(parse_pose(poses[n], goal.X[:3, :3])) for n, goal in moved.items()}
            )

    def remove_goal(self, number: int) -> None:
        """Remove a goal."""
        session = cast("Session", self)
        with session.lock:
            setup = session.active.edit_state
            gone = setup.goal(number)
            session.apply_edit(replace(setup, goals=tuple(goal for goal in setup.goals if goal is not gone)))

    def on_goal_moved(self, listener: Callable[[int, Array], None]) -> Callable[[], None]:
        """Call `listener` with number and frame (4, 4) of each goal that a page drags.

        Returns:
            A function that removes the listener.
        """
        session = cast("Session", self)
        session.goal_listeners.append(listener)
        return lambda: session.goal_listeners.remove(listener) if listener in session.goal_listeners else None

    # ---- objectives -------------------------------------------------------------------------

    def add_objective(self, *objectives: Objective) -> None:
        """Add objectives that are not shown as goals; an objective of the same name is replaced.

        Raises:
            InvalidOperation: an objective has no name, or a goal has the same name.
        """
        session = cast("Session", self)
        with session.lock:
            setup = session.active.edit_state
            demands = dict(setup.objectives)
            for one in objectives:
                if not one.name:
                    raise InvalidOperation(f"{one!r} needs a name here, such as name='balance'")
                if one.name in {goal.name for goal in setup.goals}:
                    raise InvalidOperation(f"a goal is called {one.name!r} already; give the objective another name")
                demands[one.name] = one
            session.apply_edit(replace(setup, objectives=demands))

    def remove_objective(self, *names: str) -> None:
        """Remove added objectives, by name."""
        session = cast("Session", self)
        with session.lock:
            setup = session.active.edit_state
            for name in names:
                if name not in setup.objectives:
                    raise UnknownName("objective", name, setup.objectives)
            left = {name: one for name, one in setup.objectives.items() if name not in names}
            session.apply_edit(replace(setup, objectives=left))

    def set_targets(self, targets: Mapping[str, Any]) -> None:
        """Set new targets of added objectives, by name, in the form that `Objective.with_target` takes."""
        session = cast("Session", self)
        with session.lock:
            stage = session.active
            demands = dict(stage.edit_state.objectives)
            for name, target in targets.items():
                if name not in demands:
                    raise UnknownName("objective", name, demands)
                demands[name] = demands[name].with_target(target)
            stage.set_targets(replace(stage.edit_state, objectives=demands), targets)
            session.background.set_targets(stage, targets)

    # ---- solver, configuration, display -----------------------------------------------------

    def set_solver(self, solver: str, **options: Value | None) -> None:
        """Select a method and its options; options that are not named have their default values."""
        from mechanik.studio.session.request_handlers import parse_solver_options

        session = cast("Session", self)
        with session.lock:
            given = parse_solver_options(solver, options)
            session.apply_edit(replace(session.active.edit_state, solver=solver, options=given))

    def set_running(self, running: bool) -> None:
        """Run or pause the solver."""
        session = cast("Session", self)
        with session.lock:
            session.active.set_running(running)
            session.broadcaster.broadcast_solving()

    def set_configuration(self, q: ArrayLike) -> None:
        """Move to q (nq,), clamped to the limits; the goals stay, and the solver continues from there."""
        session = cast("Session", self)
        with session.lock:
            stage = session.active
            stage.set_configuration(stage.model.mechanism.clamp(stage.model.mechanism._single_q(q)))

    def move_with_goals(self, q: ArrayLike) -> None:
        """Move to q (nq,), clamped to the limits; goals that are not pinned move with their links."""
        session = cast("Session", self)
        with session.lock:
            stage = session.active
            inside = stage.model.mechanism.clamp(stage.model.mechanism._single_q(q))
            goals = replace(stage.frame_packer, carried_from=self.carried_link_poses()).carried_goals(inside)
            with stage.paused():
                session.apply_edit(replace(stage.edit_state, goals=goals))
                stage.set_configuration(inside)

    def carried_link_poses(self) -> dict[int, Array]:
        """Return the link poses (4, 4) of all goals that move with a dragged mechanism, by goal number."""
        session = cast("Session", self)
        stage = session.active
        X = stage.model.index.link_poses(stage.q)
        links = stage.model.index.link_numbers
        coming = [goal for goal in stage.edit_state.goals if goal.enabled and not goal.pinned and not goal.is_pull]
        return {goal.number: X[links[goal.link]] for goal in coming}

    def subscribe(self, subscriber: Callable[[LiveState], object]) -> Callable[[], None]:
        """Call `subscriber` with each state, in a separate thread that may call any method.

        A subscriber that raises is removed. A slow subscriber misses states.

        Returns:
            A function that removes the subscriber.
        """
        return cast("Session", self).state_subscribers.add(subscriber)

    def notify(self, text: str) -> None:
        """Show a message to the user."""
        cast("Session", self).output.broadcast(Notice("info", text))

    def set_curves(self, curves: Sequence[CurveInfo]) -> None:
        """Set the polylines that are drawn in the world."""
        session = cast("Session", self)
        with session.lock:
            session.state.curves = list(curves)
            session.broadcaster.broadcast_scene()

    def set_terrain(self, terrain: Terrain | None) -> None:
        """Set the terrain that is drawn and that goals of kind `on_terrain` stand on."""
        session = cast("Session", self)
        with session.lock:
            session.apply_edit(replace(session.active.edit_state, terrain=terrain))


def _unused(name: str, taken: set[str]) -> str:
    """Return the name, with a number appended if it is taken."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name} {number}"
    return found


class ObstacleCommands:
    """Collision settings and obstacles; a part of `Session`."""

    def set_collision_avoidance(
        self,
        avoid: Avoid | None = None,
        *,
        mode: CollisionMode | None = None,
        clearance: float | None = None,
        allow: Iterable[tuple[str, str]] | None = None,
        forbid: Iterable[tuple[str, str]] | None = None,
    ) -> None:
        """Set which collisions are checked, and whether they are shown or avoided; None: unchanged.

        Args:
            avoid: "self", obstacles or both; obstacles are drawn.
            mode: "off", "show" or "avoid".
            clearance: distance that avoidance keeps, m.
            allow, forbid: pairs of names, see `Collider`.
        """
        session = cast("Session", self)
        with session.lock:
            setup = session.active.edit_state
            now = setup.collisions if avoid is None else setup.collisions.with_avoided(session.mechanism, avoid)
            given: dict[str, Any] = {
                "mode": mode,
                "clearance": None if clearance is None else as_number(clearance, "clearance"),
                "allow": None if allow is None else tuple(allow),
                "forbid": None if forbid is None else tuple(forbid),
            }
            changes = {name: value for name, value in given.items() if value is not None}
            session.apply_edit(replace(setup, collisions=replace(now, **changes)))

    def add_obstacle(self, *obstacles: Obstacle) -> None:
        """Add obstacles; each has a name that no link and no other obstacle has."""
        session = cast("Session", self)
        with session.lock:
            setup, table = session.active.edit_state, session.active.model
            now = setup.collisions
            more = now.with_avoided(table.mechanism, [*now.avoid, *obstacles])
            check_body_count(table, more)
            session.apply_edit(replace(setup, collisions=more))

    def remove_obstacle(self, *names: str) -> None:
        """Remove obstacles, by name."""
        session = cast("Session", self)
        with session.lock:
            setup = session.active.edit_state
            session.apply_edit(replace(setup, collisions=setup.collisions.without_obstacles(*names)))

    def move_obstacle(self, name: str, pose: PoseLike) -> None:
        """Move an obstacle; a position (3,) keeps its orientation."""
        session = cast("Session", self)
        with session.lock:
            stage = session.active
            before = stage.edit_state.collisions.obstacle(name)
            X = parse_pose(pose, before.pose.matrix[:3, :3], "pose of an obstacle")
            moved = before.moved_to(Pose.from_matrix(X))
            # before the solver is updated: the state that it computes must not arrive first
            session.output.broadcast(ObstacleMoved(obstacle_info(moved, stage.model.meshes)))
            stage.move_obstacles(replace(stage.edit_state, collisions=stage.edit_state.collisions.with_obstacle(moved)))
            session.background.set_spec(stage.solve_spec)

    def drag_obstacle(self, pose: tuple[float, ...]) -> None:
        """Move the dragged obstacle to a pose (position in m, wxyz); do nothing if it was removed during the drag."""
        session = cast("Session", self)
        stage = session.active
        assert stage.drag is not None
        if any(one.name == stage.drag.obstacle_name for one in stage.edit_state.collisions.obstacles):
            self.move_obstacle(stage.drag.obstacle_name, numbers_to_pose(pose))
