"""Output of a session to its pages, parts that several of its classes use, and installation of solver sessions."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from msgspec import structs

from mechanik.collision import Obstacle
from mechanik.model import HalfSpace, HeightField, ShapeInstance
from mechanik.objectives import Terrain
from mechanik.spatial.array import Array
from mechanik.studio.messages import events
from mechanik.studio.messages.events import ControlInfo, Event, ObstacleInfo, TerrainInfo
from mechanik.studio.messages.requests import Value
from mechanik.studio.session.background_solvers import BackgroundSolvers
from mechanik.studio.session.collision_monitor import CollisionMonitor
from mechanik.studio.session.edit_state import CollisionSettings, EditState, pose_to_numbers
from mechanik.studio.session.loaded_model import LoadedModel, MeshStore, bounding_sphere, model_info
from mechanik.studio.session.model_index import dof_infos
from mechanik.studio.session.motion_recorder import MotionRecorder
from mechanik.studio.session.solver_session import SessionState, SolverOutputs, SolverSession, StateSubscribers
from mechanik.studio.session.undo_history import SceneProtocol, UndoHistory


class PageOutput:
    """Sends events and state frames to the pages of a session; the methods may be called from any thread.

    Args:
        send_event, send_frame: receive events and packed state frames; called from any thread, must not block.
        recorder: records events about obstacles and collisions.
    """

    def __init__(
        self, send_event: Callable[[Event], None], send_frame: Callable[[bytes], None], recorder: MotionRecorder
    ) -> None:
        self.send_event, self.send_frame = send_event, send_frame
        self._recorder = recorder

    def broadcast(self, event: Event) -> None:
        """Send an event to the pages; a running recorder stores events about obstacles and collisions."""
        self._recorder.add_event(event)
        self.send_event(event)


@dataclass(frozen=True, slots=True, eq=False)
class SharedParts:
    """Parts of a session that its other parts share.

    Attributes:
        state: the open mechanism and scene.
        history: undo steps.
        recorder: motion recorder.
        output: sends events and state frames to pages.
        background: compared methods and the search for alternative solutions.
        collision_monitor: collision checks in the background.
        state_subscribers: functions of programs that are called with each state.
    """

    state: SessionState
    history: UndoHistory
    recorder: MotionRecorder
    output: PageOutput
    background: BackgroundSolvers
    collision_monitor: CollisionMonitor
    state_subscribers: StateSubscribers


class Broadcaster:
    """Sends the events that keep pages up to date with the state of a session; call with the session's lock held.

    Attributes:
        revision, goals_number: numbers of the last `Model` and `Goals` events.
    """

    def __init__(self, shared: SharedParts) -> None:
        self._state, self._output, self._history = shared.state, shared.output, shared.history
        self._recorder, self._background, self._monitor = shared.recorder, shared.background, shared.collision_monitor
        self.revision = self.goals_number = 0

    def send_everything(self) -> None:
        """Send the whole state, except status text and alternative solutions, to a page that has just connected."""
        self.broadcast_scene()
        self._output.broadcast(self._recorder.info())
        self._output.broadcast(self._history.info())
        if self._state.solver_session is not None:
            # the events keep their numbers, to which the state frames of pages that are already connected refer
            self.broadcast_model(resets_view=True, is_new=False)
            self._state.solver_session.send_frame()
        else:
            self.broadcast_solving()

    def broadcast_model(self, resets_view: bool, is_new: bool = True) -> None:
        """Send the model with its goals, solver settings, obstacles, collision settings and comparison.

        Args:
            resets_view: whether the camera moves so that everything is visible.
            is_new: whether the model has changed. Then it gets a new revision, and the undo labels, the state of the
                recorder and a state frame are sent too; else the newest result of the collision check.
        """
        active = self._state.active
        if is_new:
            self.revision += 1
            active.set_revision(self.revision)
        self._output.broadcast(self.model_event(resets_view))
        self.broadcast_goals(is_new)
        self.broadcast_solving()
        self.broadcast_collisions()
        if not is_new:
            self._output.broadcast(self._monitor.info())
        self._output.broadcast(self._background.comparison.info())
        if is_new:
            self._output.broadcast(self._history.info())
            self._output.broadcast(self._recorder.info())
            active.send_frame()

    def model_event(self, resets_view: bool = True) -> events.Model:
        """Return the `Model` event of the present model."""
        active = self._state.active
        edit_state = active.edit_state
        return model_info(
            active.model, active.q, self.revision, edit_state.locked_dofs, edit_state.hidden_links, resets_view
        )

    def broadcast_goals(self, is_new: bool = True) -> None:
        """Send all goals of the present edit state.

        Args:
            is_new: whether the goals have changed, so that the `Goals` event gets a new number.
        """
        active = self._state.active
        self.goals_number -= not is_new  # to keep the number, since `broadcast_goals_of` adds 1
        active.set_goals_number(self.broadcast_goals_of(active.edit_state), sends=is_new)

    def broadcast_goals_of(self, edit_state: EditState) -> int:
        """Send the goals of an edit state; return the number of the `Goals` event, which state frames contain too."""
        self.goals_number += 1
        link_indices = self._state.active.model.index.link_indices
        goals = [goal.info(link_indices[goal.link]) for goal in edit_state.goals]
        self._output.broadcast(events.Goals(self.goals_number, goals))
        return self.goals_number

    def broadcast_dofs(self) -> None:
        """Send all dofs with limits, locks and rest values."""
        active = self._state.active
        dofs = dof_infos(active.model.mechanism, active.model.index.dofs, active.edit_state.locked_dofs)
        self._output.broadcast(events.DofsChanged(dofs))

    def broadcast_solving(self) -> None:
        """Send the solver settings."""
        solver_session = self._state.solver_session
        if solver_session is None:
            edit_state, text, running = EditState(), "", True
        else:
            edit_state, text = solver_session.edit_state, solver_session.adaptation_text
            running = solver_session.running
        self._output.broadcast(events.Solving(running, edit_state.solver, dict(edit_state.options), text))

    def broadcast_collisions(self, previous_settings: CollisionSettings | None = None) -> None:
        """Send collision settings and obstacles; if `previous_settings` are given, only those that differ."""
        active = self._state.active
        settings = active.edit_state.collision_settings
        if previous_settings is None or settings.obstacles is not previous_settings.obstacles:
            active.model.meshes.add_shapes(obstacle.shape for obstacle in settings.obstacles)
            self._output.broadcast(self.obstacles_event())
        if previous_settings is None or (settings.mode, settings.clearance) != (
            previous_settings.mode,
            previous_settings.clearance,
        ):
            self._output.broadcast(events.Collisions(settings.mode, settings.clearance))

    def obstacles_event(self) -> events.Obstacles:
        """Return the `Obstacles` event of the present edit state."""
        active = self._state.active
        obstacles = active.edit_state.collision_settings.obstacles
        return events.Obstacles([obstacle_info(obstacle, active.model.meshes) for obstacle in obstacles])

    def broadcast_scene(self) -> None:
        """Send the scene with its controls, curves and terrain."""
        scene, curves = self._state.scene, list(self._state.curves)
        terrain = terrain_info(self._terrain)
        if scene is None:
            event = events.Scene("", "", "", [], curves, terrain, False)
        else:
            event = events.Scene(
                scene.name, scene.title, scene.about, scene.controls(), curves, terrain, scene.shows_collisions
            )
        self._output.broadcast(event)

    @contextmanager
    def broadcasting_scene(self) -> Generator[None]:
        """After the context, send the scene, curves, terrain and controls if anything but control values has changed.

        If a scene is open, the control values are sent too, even if they have not changed.
        """
        objects_before, controls_before = self._scene_objects(), self._controls_without_values()
        yield
        objects_after, controls_after = self._scene_objects(), self._controls_without_values()
        if (
            any(
                object_before is not object_after
                for object_before, object_after in zip(objects_before, objects_after, strict=True)
            )
            or controls_before != controls_after
        ):
            self.broadcast_scene()
        if self._state.scene is not None:
            self._output.broadcast(events.Controls(control_values(self._state.scene)))

    def _scene_objects(self) -> tuple[object, ...]:
        """Return the scene, its curves and its terrain."""
        return self._state.scene, self._state.curves, self._terrain

    def _controls_without_values(self) -> list[ControlInfo]:
        scene = self._state.scene
        return [] if scene is None else [structs.replace(control, value=0.0) for control in scene.controls()]

    @property
    def _terrain(self) -> Terrain | None:
        return None if self._state.solver_session is None else self._state.solver_session.edit_state.terrain


class SolverSessionInstaller:
    """Makes the solver sessions of a session and installs the present one; call with the session's lock held.

    Attributes:
        solver_session_count: number of solver sessions made so far.
    """

    def __init__(self, shared: SharedParts, broadcaster: Broadcaster) -> None:
        self._state, self._output, self._recorder = shared.state, shared.output, shared.recorder
        self._background, self._monitor = shared.background, shared.collision_monitor
        self._subscribers, self._broadcaster = shared.state_subscribers, broadcaster
        self.solver_session_count = 0

    def make(self, model: LoadedModel, edit_state: EditState, q: Array, running: bool) -> SolverSession:
        """Return a new solver session at q (nq,), which does not run yet.

        Raises:
            MechanikError: the solver rejects the problem.
        """
        previous_solver_session = self._state.solver_session
        outputs = SolverOutputs(
            send_frame=self._output.send_frame,
            check_collisions=self._monitor.submit,
            broadcast_goals=self._broadcaster.broadcast_goals_of,
            recorder=self._recorder,
            subscribers=self._subscribers,
            solver_session_number=self.solver_session_count + 1,
        )
        tag = 0 if previous_solver_session is None else previous_solver_session.tag
        solver_session = SolverSession(model, edit_state, q, self._broadcaster.revision, outputs, running, tag)
        self.solver_session_count += 1
        return solver_session

    def install(self, solver_session: SolverSession, resets_view: bool) -> None:
        """Replace the present solver session, and send the new model.

        The recording, the comparison and alternative solutions of the previous solver session are dropped.

        Args:
            solver_session: from `make`; the caller starts it.
            resets_view: whether the camera moves so that everything is visible.
        """
        previous_solver_session, self._state.solver_session = self._state.solver_session, solver_session
        if previous_solver_session is not None:
            previous_solver_session.close()
        self._recorder.clear()
        self._background.stop()
        model = solver_session.model
        self._state.model_radius = bounding_sphere(model.mechanism, model.index.link_poses(solver_session.q))[1]
        self._broadcaster.broadcast_model(resets_view)


def control_values(scene: SceneProtocol) -> dict[str, Value]:
    """Return the values of the controls of a scene, by name."""
    return {control.name: control.value for control in scene.controls()}


def obstacle_info(obstacle: Obstacle, meshes: MeshStore) -> ObstacleInfo:
    """Return an obstacle as pages receive it."""
    shape_info = meshes.shape_info(ShapeInstance(obstacle.shape, obstacle.pose))
    match obstacle.shape:
        case HalfSpace():
            kind = "half-space"
        case HeightField():
            kind = "height field"
        case _:
            kind = shape_info.kind
    return ObstacleInfo(obstacle.name, kind, pose_to_numbers(obstacle.pose.matrix), shape_info)


def terrain_info(terrain: Terrain | None) -> TerrainInfo | None:
    """Return a terrain as pages receive it."""
    if terrain is None:
        return None
    rows, columns = terrain.heights.shape
    x, y = terrain.origin.tolist()
    return TerrainInfo(columns, rows, terrain.cell, (x, y), terrain.heights.ravel().tolist())
