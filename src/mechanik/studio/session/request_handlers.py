"""Handlers of page requests on model, scene controls, goals, obstacles, solver and recorder; table of all handlers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mechanik.collision import Obstacle
from mechanik.errors import InvalidOperation
from mechanik.model import Box, Capsule, Cylinder, Sphere
from mechanik.model.shapes import Shape
from mechanik.solver.methods.method_registry import find_method
from mechanik.spatial.array import Array
from mechanik.studio.messages import requests
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.messages.goal_kinds import GOAL_KINDS_BY_NAME
from mechanik.studio.messages.message_codec import LINK_DRAG_GOAL
from mechanik.studio.messages.requests import ObstacleKind, PageRequest, Vector
from mechanik.studio.session import joint_requests
from mechanik.studio.session.broadcast import control_values
from mechanik.studio.session.edit_state import InteractiveGoal, numbers_to_pose, parse_pose
from mechanik.studio.session.frame_packer import default_sizes, initial_goal_pose
from mechanik.studio.session.loaded_model import (
    DEFAULT_VIEW,
    LoadedModel,
    bounding_sphere,
    is_planar_linkage,
    view_direction,
)
from mechanik.studio.session.motion_recorder import export_file
from mechanik.studio.session.session_editor import GoalTemplate
from mechanik.studio.session.solve_spec import Drag, make_objective, parse_solver_options
from mechanik.studio.session.undo_history import SessionSnapshot
from mechanik.validation import format_count

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session


RING_RADIUS_SHARE = 0.75
"""Radius of the ring of candidate positions for a new obstacle, as a share of the model radius.

At this radius, an obstacle is in reach of most arms and outside of most bodies.
"""
RING_POINT_COUNT = 12
"""Number of candidate positions on the ring."""
POSITION_DECIMALS = 3
"""Decimal places of the position in m; users do not need more than millimetres."""


def free_position(model: LoadedModel, q: Array, obstacles: Iterable[Obstacle]) -> Vector:
    """Return a position (m, world) for a new obstacle, on a ring around the centre of the mechanism.

    The centre of the ring is that of the bounding sphere. The ring is parallel to the plane of motion of a planar
    mechanism, else horizontal. The result is the point of the ring with the largest distance to the nearest origin of a
    link, a shape or an obstacle.

    Args:
        model: the mechanism.
        q: configuration, (nq,).
        obstacles: present obstacles.
    """
    mechanism, X = model.mechanism, model.index.link_poses(q)
    centre, radius = bounding_sphere(mechanism, X)
    normal = view_direction(mechanism, q)
    axis_u, axis_v = _perpendicular_axes(np.array((0.0, 0.0, 1.0) if normal is DEFAULT_VIEW else normal))
    angles = np.arange(RING_POINT_COUNT) * 2 * math.pi / RING_POINT_COUNT
    directions = np.outer(np.cos(angles), axis_u) + np.outer(np.sin(angles), axis_v)
    ring: Array = np.array(centre) + RING_RADIUS_SHARE * radius * directions
    origins = np.array([*_body_origins(model, X), *(obstacle.pose.position for obstacle in obstacles)]).reshape(-1, 3)
    distances = np.linalg.norm(ring[:, None] - origins, axis=2).min(axis=1, initial=math.inf)
    x, y, z = ring[int(np.argmax(distances))].tolist()
    return round(x, POSITION_DECIMALS), round(y, POSITION_DECIMALS), round(z, POSITION_DECIMALS)


def _perpendicular_axes(normal: Array) -> tuple[Array, Array]:
    """Return two perpendicular unit vectors (3,) that are normal to a unit vector.

    The first is as near as possible to x, or to y if the normal is nearly along x.
    """
    reference_axis = np.eye(3)[0] if abs(normal[0]) < 0.9 else np.eye(3)[1]
    axis_u: Array = reference_axis - normal * (normal @ reference_axis)
    axis_u = axis_u / np.linalg.norm(axis_u)
    return axis_u, np.asarray(np.cross(normal, axis_u), dtype=np.float64)


def _body_origins(model: LoadedModel, X: Array) -> list[Array]:
    """Return the origins (3,) of links and of their shapes in the world, m, for link poses X (L, 4, 4)."""
    origins: list[Array] = []
    for X_world_link, link in zip(X, model.mechanism.links.values(), strict=True):
        R, p = X_world_link[:3, :3], X_world_link[:3, 3]
        origins.append(p)
        origins += [R @ instance.pose.position + p for instance in (*link.visuals, *link.collisions)]
    return origins


def open_gallery(session: Session, request: requests.OpenGallery) -> None:
    session.loader.open_gallery(request.name)


def open_scene(session: Session, request: requests.OpenScene) -> None:
    session.open_scene(request.name)


def edit_model(session: Session, request: requests.EditModel) -> None:
    session.loader.replace_model_from_text(request.kind, request.text)


def show_links(session: Session, request: requests.ShowLinks) -> None:
    for name in request.links:
        session.mechanism.link(name)
    edit_state = session.active.edit_state
    hidden_links = (
        edit_state.hidden_links - {*request.links} if request.visible else edit_state.hidden_links | {*request.links}
    )
    if hidden_links == edit_state.hidden_links:
        return
    with session.undo.step("show links" if request.visible else "hide links"):
        session.editor.apply_edit(replace(edit_state, hidden_links=frozenset(hidden_links)))


def undo(session: Session, request: requests.Undo) -> None:
    session.undo.undo()


def redo(session: Session, request: requests.Redo) -> None:
    session.undo.redo()


class SliderDrag(NamedTuple):
    """A slider of a scene that the user is dragging.

    Attributes:
        name: name of the control.
        snapshot_before: state before the first change, where the undo step starts.
    """

    name: str
    snapshot_before: SessionSnapshot


def set_control(session: Session, request: requests.SetControl) -> None:
    """Set a control of the scene; all changes by one drag of a slider are a single undo step."""
    scene, slider_drag = session.state.scene, session.slider_drag
    if scene is None:
        raise InvalidOperation("no scene is open, so there are no controls to set")
    values = control_values(scene)
    is_same_drag = (
        slider_drag is not None
        and slider_drag.name == request.name
        and session.history.is_last(slider_drag.snapshot_before)
    )
    session.slider_drag = slider_drag if is_same_drag and request.is_dragging else None
    if is_same_drag and not request.is_dragging and values.get(request.name) == request.value:
        return  # the end of the drag does not change the value
    snapshot_before, drag_step = session.undo.snapshot(), session.active.drag_state.step
    try:
        with session.broadcaster.broadcasting_scene(), session.loader.scene_code_running():
            scene.set(request.name, request.value)
    except BaseException:
        active = session.active
        if active.model is not snapshot_before.model or active.edit_state is not snapshot_before.edit_state:
            session.undo.restore(snapshot_before)
        raise
    control = next(control for control in scene.controls() if control.name == request.name)
    active = session.active
    is_unchanged = (
        active.model is snapshot_before.model
        and active.edit_state is snapshot_before.edit_state
        and values == control_values(scene)
    )
    if is_same_drag or (is_unchanged and control.kind != "button"):
        return
    if (
        drag_step is not None and drag_step is active.drag_state.step
    ):  # changed during a drag of a goal, link, joint or obstacle: part of the undo step of that drag
        active.drag_state.step = drag_step._replace(has_other_changes=True)
        return
    if drag_step is not None:  # the control has replaced the mechanism, which has ended the drag
        snapshot_before = drag_step.snapshot_before
    session.undo.push(_control_label(control), snapshot_before)
    session.slider_drag = SliderDrag(request.name, snapshot_before) if request.is_dragging else None
    session.output.broadcast(session.history.info())


def _control_label(control: ControlInfo) -> str:
    """Return the label of the undo step: the title of the control without its unit.

    The title of a switch is quoted, because it may be a sentence.
    """
    title = control.title.partition(",")[0]
    if control.kind == "switch":
        return f"switch '{title}'"
    title = title[:1].lower() + title[1:]
    return title if control.kind == "button" else f"set {title}"


def add_goal(session: Session, request: requests.AddGoal) -> None:
    label = f"pin {request.link}" if request.pinned else f"add {GOAL_KINDS_BY_NAME[request.kind].label} goal"
    pose = None if request.pose is None else numbers_to_pose(request.pose)
    with session.undo.step(label):
        session.editor.add_goal(GoalTemplate(request.kind, request.link, request.at, pose, request.pinned))


def change_goal(session: Session, request: requests.ChangeGoal) -> None:
    active = session.active
    goal = active.edit_state.goal(request.goal)
    changes = {
        name: getattr(request, name)
        for name in ("kind", "link", "at", "weight", "level", "enabled", "pinned", "sizes")
        if getattr(request, name) is not None
    }
    if request.free is not None:
        changes["free"] = tuple(dict.fromkeys(request.free))
    if not changes:
        return
    if "link" in changes:
        session.mechanism.link(changes["link"])
    changed_goal = replace(goal, **changes)
    if {"kind", "link", "at"} & changes.keys():
        changed_goal = _refit_goal(session, goal, changed_goal, request)
    make_objective(changed_goal, active.edit_state.terrain).relations(session.mechanism)
    label = "pin goal" if request.pinned else "unpin goal" if request.pinned is False else "change goal"
    with session.undo.step(label):
        session.editor.apply_edit(active.edit_state.with_goal(changed_goal))


def _refit_goal(
    session: Session, previous_goal: InteractiveGoal, changed_goal: InteractiveGoal, request: requests.ChangeGoal
) -> InteractiveGoal:
    """Return the goal with the sizes and the pose of a new goal with its kind, link and point; see `initial_goal_pose`.

    The sizes change only with the kind, and not if the request sets them.
    """
    active = session.active
    X = active.model.index.link_poses(active.q)
    X_world_link = X[active.model.index.link_indices[changed_goal.link]]
    kind, sizes = changed_goal.kind, changed_goal.sizes
    if kind != previous_goal.kind and request.sizes is None:
        sizes = default_sizes(kind, X_world_link, session.state.model_radius)
    centre = active.model.index.centre_of_mass(X) if kind == "centre_of_mass" else None
    X_world_goal = initial_goal_pose(kind, X_world_link, changed_goal.at, sizes, session.state.model_radius, centre)
    return replace(changed_goal, sizes=sizes, X=X_world_goal)


def move_goal(session: Session, request: requests.MoveGoal) -> None:
    session.active.edit_state.goal(request.goal)
    X = parse_pose(numbers_to_pose(request.pose))
    with session.undo.step("move goal"):
        session.editor.move_goals({request.goal: X})
        session.broadcaster.broadcast_goals()


def remove_goal(session: Session, request: requests.RemoveGoal) -> None:
    session.active.edit_state.goal(request.goal)
    with session.undo.step("remove goal"):
        session.editor.remove_goal(request.goal)


def start_goal_drag(session: Session, request: requests.StartGoalDrag) -> None:
    goal = session.active.edit_state.goal(request.goal)
    session.dragging.start_drag(Drag("goal", goal.number), f"move {goal.name}")


def start_link_drag(session: Session, request: requests.StartLinkDrag) -> None:
    active = session.active
    session.mechanism.link(request.link)
    if any(goal.number == LINK_DRAG_GOAL for goal in active.edit_state.goals):
        raise InvalidOperation("another link is being dragged; end that drag first")
    X_world_link = active.model.index.link_poses(active.q)[active.model.index.link_indices[request.link]]
    X_world_goal = initial_goal_pose(
        "point", X_world_link, request.at, (0.0, 0.0, 0.0), session.state.model_radius, None
    )
    drag_goal = InteractiveGoal(
        LINK_DRAG_GOAL, "link drag", "point", request.link, X_world_goal, request.at, is_link_drag=True
    )
    edit_state = replace(active.edit_state, goals=(*active.edit_state.goals, drag_goal))
    session.dragging.start_drag(
        Drag("goal", LINK_DRAG_GOAL, session.active.carried_link_poses()), f"drag {request.link}", edit_state
    )
    session.broadcaster.broadcast_goals()


def end_drag(session: Session, request: requests.EndDrag) -> None:
    session.dragging.end_drag(reverts=request.cancel)


def add_obstacle(session: Session, request: requests.AddObstacle) -> None:
    """Add an obstacle, and show collisions if they were off.

    If they were off, self-collisions of a planar linkage are not checked, since its bars lie in parallel layers.
    """
    active = session.active
    used_names = {
        *session.mechanism.links,
        *(obstacle.name for obstacle in active.edit_state.collision_settings.obstacles),
    }
    shape = default_shape(request.kind, session.state.model_radius)
    if request.pose is None:
        position, wxyz = (
            free_position(active.model, active.q, active.edit_state.collision_settings.obstacles),
            (1.0, 0.0, 0.0, 0.0),
        )
    else:
        X = numbers_to_pose(request.pose)  # rejects a zero quaternion
        position, wxyz = X[:3, 3].tolist(), request.pose[3:]
    name = next(name for k in range(1, len(used_names) + 2) if (name := f"{request.kind} {k}") not in used_names)
    with session.undo.step(f"add {name}"), active.paused():
        session.obstacles.add_obstacles([Obstacle(shape, position, wxyz, name=name)])
        collision_settings = active.edit_state.collision_settings
        if collision_settings.mode == "off":
            self_collision = collision_settings.self_collision and not is_planar_linkage(session.mechanism, active.q)
            session.editor.apply_edit(
                replace(
                    active.edit_state,
                    collision_settings=replace(collision_settings, mode="show", self_collision=self_collision),
                )
            )


def default_shape(kind: ObstacleKind, radius: float) -> Shape:
    """Return the shape of a new obstacle.

    Args:
        kind: kind of the shape.
        radius: radius of the bounding sphere of the mechanism, m; sizes are shares of it, rounded to one significant
            digit.
    """
    edge, sphere_radius, capsule_radius, capsule_length = (
        float(f"{share * radius:.0e}") for share in (0.25, 0.15, 0.08, 0.4)
    )
    match kind:
        case "box":
            return Box((edge, edge, edge))
        case "sphere":
            return Sphere(sphere_radius)
        case "capsule":
            return Capsule(capsule_radius, capsule_length)


def move_obstacle(session: Session, request: requests.MoveObstacle) -> None:
    X = numbers_to_pose(request.pose)
    session.active.edit_state.collision_settings.obstacle(request.obstacle)
    with session.undo.step(f"move {request.obstacle}"):
        session.obstacles.move_obstacle(request.obstacle, X)


def resize_obstacle(session: Session, request: requests.ResizeObstacle) -> None:
    edit_state = session.active.edit_state
    previous_obstacle = edit_state.collision_settings.obstacle(request.obstacle)
    shape = resize_shape(previous_obstacle.shape, request.sizes)
    if shape == previous_obstacle.shape:
        return
    pose = previous_obstacle.pose
    changed_obstacle = Obstacle(shape, pose.position, pose.wxyz, name=previous_obstacle.name)
    with session.undo.step(f"resize {request.obstacle}"):
        session.editor.apply_edit(
            replace(edit_state, collision_settings=edit_state.collision_settings.with_obstacle(changed_obstacle))
        )


def resize_shape(shape: Shape, sizes: Sequence[float]) -> Shape:
    """Return the shape with other sizes.

    Args:
        shape: the shape.
        sizes: edges of a box; radius of a sphere; radius and length of a cylinder or capsule; m.

    Raises:
        InvalidOperation: these sizes do not fit the shape.
    """
    match shape, sizes:
        case Box(), (x, y, z):
            return Box((x, y, z))
        case Sphere(), (radius,):
            return Sphere(radius)
        case Cylinder(), (radius, length):
            return Cylinder(radius, length)
        case Capsule(), (radius, length):
            return Capsule(radius, length)
        case _:
            raise InvalidOperation(
                f"a shape of kind {type(shape).__name__} cannot have {format_count(len(sizes), 'size')}; give 3 edges "
                "of a box, the radius of a sphere, or radius and length of a cylinder or capsule, in m"
            )


def remove_obstacle(session: Session, request: requests.RemoveObstacle) -> None:
    session.active.edit_state.collision_settings.obstacle(request.obstacle)
    with session.undo.step(f"remove {request.obstacle}"):
        session.obstacles.remove_obstacles([request.obstacle])


def start_obstacle_drag(session: Session, request: requests.StartObstacleDrag) -> None:
    obstacles = session.active.edit_state.collision_settings.obstacles
    obstacle = session.active.edit_state.collision_settings.obstacle(request.obstacle)
    drag = Drag("obstacle", obstacles.index(obstacle), obstacle_name=obstacle.name)
    session.dragging.start_drag(drag, f"move {obstacle.name}")


def set_solver(session: Session, request: requests.SetSolver) -> None:
    active = session.active
    options = parse_solver_options(request.solver, request.options)
    if (request.solver, options) == (active.edit_state.solver, active.edit_state.options):
        return
    label = "change solver" if request.solver != active.edit_state.solver else "change options"
    with session.undo.step(label):
        session.editor.apply_edit(replace(active.edit_state, solver=request.solver, options=options))


def set_running(session: Session, request: requests.SetRunning) -> None:
    session.editor.set_running(request.running)


def single_step(session: Session, request: requests.SingleStep) -> None:
    active = session.active
    if active.running:
        raise InvalidOperation("the solver is running; pause it first")
    active.step()


def set_collisions(session: Session, request: requests.SetCollisions) -> None:
    edit_state = session.active.edit_state
    previous_settings = edit_state.collision_settings
    if (request.mode, request.clearance) == (previous_settings.mode, previous_settings.clearance):
        return
    label = "set collisions" if request.mode != previous_settings.mode else "set clearance"
    with session.undo.step(label):
        collision_settings = replace(previous_settings, mode=request.mode, clearance=request.clearance)
        session.editor.apply_edit(replace(edit_state, collision_settings=collision_settings))


def show_alternatives(session: Session, request: requests.ShowAlternatives) -> None:
    active, alternatives = session.active, session.background.alternatives
    if request.max_count == 0:
        alternatives.cancel()
        session.output.broadcast(alternatives.empty())  # without delay; the next tick may send it again
        return
    alternatives.start(active.model, active.solve_spec, active.q, request.max_count)


def compare(session: Session, request: requests.Compare) -> None:
    for name in request.solvers:
        find_method(name)
    active = session.active
    session.background.comparison.start(active, list(dict.fromkeys(request.solvers)))
    session.output.broadcast(session.background.comparison.info())


def record_motion(session: Session, request: requests.RecordMotion) -> None:
    session.recording_and_playback.record(request.on)


def play(session: Session, request: requests.Play) -> None:
    if request.on:
        session.recording_and_playback.start_playback(request.speed, request.looped)
        session.clock.restart()
    elif session.recorder.is_playing:
        session.recording_and_playback.stop_playback()


def seek(session: Session, request: requests.Seek) -> None:
    session.recording_and_playback.seek(request.time)


def export(session: Session, request: requests.Export) -> None:
    active = session.active
    file = export_file(request.kind, active.model, active.q, session.recorder, session.broadcaster.model_event())
    session.output.broadcast(session.downloads.add(file))


HANDLERS: dict[type[PageRequest], Callable[[Any, Any], None]] = {
    requests.OpenGallery: open_gallery,
    requests.OpenScene: open_scene,
    requests.EditModel: edit_model,
    requests.ShowLinks: show_links,
    requests.SetControl: set_control,
    requests.Undo: undo,
    requests.Redo: redo,
    requests.StartJointDrag: joint_requests.start_joint_drag,
    requests.SetDofValue: joint_requests.set_dof_value,
    requests.SetJointRotation: joint_requests.set_joint_rotation,
    requests.SetLimits: joint_requests.set_limits,
    requests.SetLocked: joint_requests.set_locked,
    requests.SetRest: joint_requests.set_rest,
    requests.GoTo: joint_requests.go_to_configuration,
    requests.AddGoal: add_goal,
    requests.ChangeGoal: change_goal,
    requests.MoveGoal: move_goal,
    requests.RemoveGoal: remove_goal,
    requests.StartGoalDrag: start_goal_drag,
    requests.StartLinkDrag: start_link_drag,
    requests.EndDrag: end_drag,
    requests.SetSolver: set_solver,
    requests.SetRunning: set_running,
    requests.SingleStep: single_step,
    requests.SetCollisions: set_collisions,
    requests.AddObstacle: add_obstacle,
    requests.MoveObstacle: move_obstacle,
    requests.ResizeObstacle: resize_obstacle,
    requests.RemoveObstacle: remove_obstacle,
    requests.StartObstacleDrag: start_obstacle_drag,
    requests.ShowAlternatives: show_alternatives,
    requests.Compare: compare,
    requests.RecordMotion: record_motion,
    requests.Play: play,
    requests.Seek: seek,
    requests.Export: export,
}
REQUESTS_THAT_KEEP_DRAG = (
    requests.EndDrag, requests.ShowLinks, requests.SetControl, requests.SetRunning, requests.SingleStep,
    requests.ShowAlternatives, requests.Compare, requests.RecordMotion, requests.Export,
)  # fmt: skip
"""Requests that are carried out without ending a drag first; all others end it."""
REQUESTS_THAT_KEEP_PLAYBACK = (
    requests.Play,
    requests.Seek,
    requests.Export,
    requests.ShowLinks,
    requests.ShowAlternatives,
)
"""Requests that are carried out without stopping playback first; all others stop it."""


def handle_request(session: Session, request: PageRequest) -> None:
    """Carry out a request; see `Session.handle_request`."""
    handler = HANDLERS.get(type(request))
    if handler is None:
        raise InvalidOperation(f"a session has no handler for {type(request).__name__}")
    if not isinstance(request, REQUESTS_THAT_KEEP_DRAG):
        session.dragging.end_drag()
    if session.recorder.is_playing and not isinstance(request, REQUESTS_THAT_KEEP_PLAYBACK):
        session.recording_and_playback.stop_playback()
    handler(session, request)
