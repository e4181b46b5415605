"""Output of a session: state subscribers of programs, and the events that keep pages up to date.

Subscribers run in a thread of their own. In the thread of the solver they could deadlock, since they may call session
methods that wait for that thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from mechanik.collision import Obstacle
from mechanik.model import HalfSpace, HeightField, ShapeInstance
from mechanik.motion.live import LiveState
from mechanik.objectives import Terrain
from mechanik.studio.messages import events
from mechanik.studio.messages.events import Event, ObstacleInfo, TerrainInfo
from mechanik.studio.messages.requests import Value
from mechanik.studio.session.collision_monitor import CollisionSettings
from mechanik.studio.session.edit_state import EditState, SceneProtocol
from mechanik.studio.session.interactive_goals import pose_to_numbers
from mechanik.studio.session.loaded_model import MeshStore, bounding_sphere, model_info
from mechanik.studio.session.model_index import dof_infos
from mechanik.studio.session.motion_recorder import MotionRecorder

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session


StateSubscriber = Callable[[LiveState], object]
StateNumber = tuple[int, int]
"""Number of the solver session that a state comes from, and its `sequence` there; both only grow."""
MAX_QUEUED_STATES = 256
"""Maximum number of queued states; if subscribers are slower than the solver, the oldest are dropped."""
log = logging.getLogger("mechanik.studio")


class StateSubscribers:
    """Calls subscribers with each state, in a thread that starts with the first subscriber and ends with `close`."""

    def __init__(self) -> None:
        self._watchers: list[StateSubscriber] = []
        self._states: deque[tuple[StateNumber, LiveState]] = deque(maxlen=MAX_QUEUED_STATES)
        self._heard: StateNumber = (0, -1)
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def add(self, subscriber: StateSubscriber) -> Callable[[], None]:
        """Add a subscriber; return a function that removes it."""
        with self._news:
            self._watchers.append(subscriber)
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._work, name="mechanik watchers", daemon=True)
                self._thread.start()

        def end() -> None:
            with self._news:
                if subscriber in self._watchers:
                    self._watchers.remove(subscriber)

        return end

    def publish(self, number: StateNumber, state: LiveState) -> None:
        """Queue a new state; never waits for a subscriber."""
        with self._news:
            if self._thread is None:
                self._heard = number
            else:
                self._states.append((number, state))
                self._news.notify_all()

    def wait(self, number: StateNumber, timeout: float) -> None:
        """Wait until all subscribers have received this state or a newer one, at most `timeout` s.

        Subscribers must not call it.
        """
        until = time.monotonic() + timeout
        with self._news:
            while self._heard < number and not self._is_closed and (left := until - time.monotonic()) > 0:
                self._news.wait(left)

    def close(self) -> None:
        """Start no further call."""
        with self._news:
            self._is_closed = True
            self._news.notify_all()

    def _work(self) -> None:
        while True:
            with self._news:
                while not self._states and not self._is_closed:
                    self._news.wait()
                if self._is_closed:
                    return
                (number, state), watchers = self._states.popleft(), tuple(self._watchers)
            for watcher in watchers:
                try:
                    watcher(state)
                except Exception as error:
                    log.error("a callback is not called again: %s: %s", type(error).__name__, error)
                    with self._news:
                        if watcher in self._watchers:
                            self._watchers.remove(watcher)
            with self._news:
                self._heard = number
                self._news.notify_all()


class PageOutput:
    """Sends events and state frames to all pages of a session; callable from any thread.

    Args:
        send_event, send_frame: receive events and packed state frames; called from any thread, must not block.
        recorder: records the events that a recording shows.
    """

    def __init__(
        self, send_event: Callable[[Event], None], send_frame: Callable[[bytes], None], recorder: MotionRecorder
    ) -> None:
        self.send_event, self.send_frame = send_event, send_frame
        self._recorder = recorder

    def broadcast(self, event: Event) -> None:
        """Send an event to all pages, and record it if the recorder runs."""
        self._recorder.add_event(event)
        self.send_event(event)


class Broadcaster:
    """Events to pages; a part of `Session`."""

    def send_everything(self) -> None:
        """Send the whole state to a page that has just connected."""
        session = cast("Session", self)
        with session.lock:
            session.broadcast_scene()
            session.output.broadcast(session.recorder.info())
            session.output.broadcast(session.history.info())
            if session.state.solver_session is not None:
                session.broadcast_model(resets_view=True, is_new=False)  # same order: other pages may be connected
                session.state.solver_session.send_frame()
            else:
                session.broadcast_solving()

    def broadcast_model(self, resets_view: bool, is_new: bool = True) -> None:
        """Send the model, its goals and the solver settings.

        Args:
            resets_view: whether the camera moves so that everything is visible.
            is_new: whether the model has changed and gets a new revision.
        """
        session = cast("Session", self)
        stage = session.active
        if is_new:
            session.revision += 1
            stage.set_revision(session.revision)
        session.state.model_radius = bounding_sphere(stage.model.mechanism, stage.model.index.link_poses(stage.q))[1]
        session.output.broadcast(self.model_event(resets_view))
        session.broadcast_goals(is_new)
        session.broadcast_solving()
        self.broadcast_collisions()
        if not is_new:
            session.output.broadcast(session.collision_monitor.info())
        session.output.broadcast(session.background.comparison.info())
        if is_new:
            session.output.broadcast(session.history.info())
            session.output.broadcast(session.recorder.info())
            stage.send_frame()

    def model_event(self, resets_view: bool = True) -> events.Model:
        """Return the `Model` event of the present model."""
        session = cast("Session", self)
        stage = session.active
        setup = stage.edit_state
        return model_info(stage.model, stage.q, session.revision, setup.locked, setup.hidden, resets_view)

    def broadcast_goals(self, is_new: bool = True) -> None:
        """Send all goals of the present edit state."""
        session = cast("Session", self)
        stage = session.active
        session.goal_order -= not is_new
        stage.set_goal_order(self.broadcast_goals_of(stage.edit_state), sends=is_new)

    def broadcast_goals_of(self, edit_state: EditState) -> int:
        """Send the goals of an edit state, and return the order that frames with them carry."""
        session = cast("Session", self)
        session.goal_order += 1
        links = session.active.model.index.link_numbers
        session.output.broadcast(
            events.Goals(session.goal_order, [goal.info(links[goal.link]) for goal in edit_state.goals])
        )
        return session.goal_order

    def broadcast_dofs(self) -> None:
        session = cast("Session", self)
        stage = session.active
        session.output.broadcast(
            events.DofsChanged(dof_infos(session.mechanism, stage.model.index.dofs, stage.edit_state.locked))
        )

    def broadcast_solving(self) -> None:
        session = cast("Session", self)
        setup, said = (
            (EditState(), "")
            if session.state.solver_session is None
            else (session.state.solver_session.edit_state, session.state.solver_session.adaptation_text)
        )
        session.output.broadcast(events.Solving(session.running, setup.solver, dict(setup.options), said))

    def broadcast_collisions(self, before: CollisionSettings | None = None) -> None:
        """Send collision settings and obstacles; with `before`, only what has changed since."""
        session = cast("Session", self)
        stage = session.active
        now = stage.edit_state.collisions
        if before is None or now.obstacles is not before.obstacles:
            stage.model.meshes.add_shapes(one.shape for one in now.obstacles)
            session.output.broadcast(self.obstacles_event())
        if before is None or (now.mode, now.clearance) != (before.mode, before.clearance):
            session.output.broadcast(events.Collisions(now.mode, now.clearance))

    def obstacles_event(self) -> events.Obstacles:
        """Return the `Obstacles` event of the present edit state."""
        stage = cast("Session", self).active
        return events.Obstacles(
            [obstacle_info(one, stage.model.meshes) for one in stage.edit_state.collisions.obstacles]
        )

    def broadcast_scene(self) -> None:
        session = cast("Session", self)
        scene, terrain = (
            session.state.scene,
            None if session.state.solver_session is None else session.state.solver_session.edit_state.terrain,
        )
        if scene is None:
            session.output.broadcast(
                events.Scene("", "", "", [], list(session.state.curves), terrain_info(terrain), False)
            )
            return
        ground = terrain_info(terrain)
        told = events.Scene(
            scene.name,
            scene.title,
            scene.about,
            scene.controls(),
            list(session.state.curves),
            ground,
            scene.shows_collisions,
        )
        session.output.broadcast(told)

    @contextmanager
    def broadcasting_scene(self) -> Generator[None]:
        """Send the scene after the context if it has changed, and the values of its controls in any case."""
        session = cast("Session", self)
        before = self._scene_without_values()
        yield
        after = self._scene_without_values()
        if any(one is not other for one, other in zip(before[:3], after[:3], strict=True)) or before[3] != after[3]:
            session.broadcast_scene()
        if session.state.scene is not None:
            session.output.broadcast(events.Controls(control_values(session.state.scene)))

    def _scene_without_values(self) -> tuple[Any, ...]:
        """Return the scene, its curves, its terrain, and its controls without values."""
        session = cast("Session", self)
        scene, terrain = (
            session.state.scene,
            None if session.state.solver_session is None else session.state.solver_session.edit_state.terrain,
        )
        controls = [] if scene is None else [replace(control, value=0.0) for control in scene.controls()]
        return scene, session.state.curves, terrain, controls


def control_values(scene: SceneProtocol) -> dict[str, Value]:
    """Return the values of the controls of a scene, by name."""
    return {control.name: control.value for control in scene.controls()}


def obstacle_info(obstacle: Obstacle, meshes: MeshStore) -> ObstacleInfo:
    """Return an obstacle as pages receive it."""
    drawn = meshes.shape_info(ShapeInstance(obstacle.shape, obstacle.pose))
    match obstacle.shape:
        case HalfSpace():
            kind = "half-space"
        case HeightField():
            kind = "height field"
        case _:
            kind = drawn.kind
    return ObstacleInfo(obstacle.name, kind, pose_to_numbers(obstacle.pose.matrix), drawn)


def terrain_info(terrain: Terrain | None) -> TerrainInfo | None:
    """Return a terrain as pages receive it."""
    if terrain is None:
        return None
    rows, columns = terrain.heights.shape
    x, y = terrain.origin.tolist()
    return TerrainInfo(columns, rows, terrain.cell, (x, y), terrain.heights.ravel().tolist())
