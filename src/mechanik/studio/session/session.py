"""The `Session` class, which carries out requests of pages and programs and broadcasts the results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mechanik.errors import InvalidOperation
from mechanik.model import Mechanism
from mechanik.motion.live import LiveSolver
from mechanik.spatial.array import Array
from mechanik.studio.messages import events
from mechanik.studio.messages.events import CurveInfo, Event
from mechanik.studio.messages.requests import PageRequest
from mechanik.studio.session import request_handlers as handlers
from mechanik.studio.session.background_solvers import AlternativeSearch, BackgroundSolvers
from mechanik.studio.session.broadcast import Broadcaster, ModelSlot, PageOutput, StateSubscribers
from mechanik.studio.session.collision_monitor import CollisionMonitor
from mechanik.studio.session.dragging import Dragging, UndoSteps
from mechanik.studio.session.edit_state import EditState, SceneProtocol, UndoHistory
from mechanik.studio.session.interactive_goals import InteractiveGoal, objective_target
from mechanik.studio.session.model_loading import ModelLoading
from mechanik.studio.session.motion_recorder import DownloadStore, MotionRecorder
from mechanik.studio.session.python_api import ObstacleCommands, PythonApi
from mechanik.studio.session.request_handlers import SliderDrag
from mechanik.studio.session.session_clock import SessionClock
from mechanik.studio.session.solver_session import SessionState, SolverSession

GoalListener = Callable[[int, Array], None]


class Session(ModelLoading, PythonApi, ObstacleCommands, Dragging, UndoSteps):
    """One mechanism with goals and a background solver, controlled by pages, programs and scenes.

    Pages use `handle_request` and `drag_to`; programs and scenes use the methods of `PythonApi` and `ObstacleCommands`.
    All methods take `lock`, or are called from one thread at a time. States arrive from the thread of the solver, which
    never takes that lock.

    Args:
        send_event, send_frame: receive events and packed state frames; called from any thread, must not block.
        scenes: makers of the available scenes, by name.
        key: key under which the server finds meshes and files of this session.

    Attributes:
        lock: guards all changes.
        state: what is open.
        output: sends events and frames to pages.
        history: undo steps.
        recorder: motion recorder.
        downloads: exported files.
        background: compared methods and the search for alternative solutions.
        collision_monitor: collision checks in the background.
        broadcaster: sends the events that keep pages up to date.
        slot: makes and installs solver sessions.

    Example:
        >>> from mechanik.studio.session import Session
        >>> session = Session(send_event=lambda event: None, send_frame=lambda frame: None)
        >>> session.open(mk.gallery.planar_2r())
        >>> number = session.add_goal("point", "tool", pose=(1.0, 0.5, 0.0))
        >>> [goal.name for goal in session.goals]
        ['tool', 'tool 2']
        >>> session.close()
    """

    def __init__(
        self,
        send_event: Callable[[Event], None],
        send_frame: Callable[[bytes], None],
        *,
        scenes: Mapping[str, Callable[[], SceneProtocol]] | None = None,
        key: str = "",
    ) -> None:
        self.lock = threading.RLock()
        self.key = key
        self.scenes: Mapping[str, Callable[[], SceneProtocol]] = {} if scenes is None else scenes
        self.state = SessionState()
        self.history, self.recorder = UndoHistory(), MotionRecorder()
        self.output = PageOutput(send_event, send_frame, self.recorder)
        self.downloads = DownloadStore(key)
        self.background = BackgroundSolvers(send_frame)
        self.collision_monitor = CollisionMonitor(self.output.broadcast)
        self.clock = SessionClock(self)
        self.goal_listeners: list[GoalListener] = []
        self.state_subscribers = StateSubscribers()
        self.broadcaster = Broadcaster(
            self.state, self.output, self.history, self.recorder, self.background, self.collision_monitor
        )
        self.slot = ModelSlot(
            self.state,
            self.output,
            self.recorder,
            self.state_subscribers,
            self.background,
            self.collision_monitor,
            self.broadcaster,
        )
        self.slider_drag: SliderDrag | None = None
        self.next_goal_number = 1
        self.next_open_id = 0
        self.is_closed = self.is_scene_active = False

    # ---- state ------------------------------------------------------------------------------

    @property
    def active(self) -> SolverSession:
        """The solver session.

        Raises:
            InvalidOperation: no mechanism is open.
        """
        return self.state.active

    @property
    def solver_session(self) -> SolverSession | None:
        """The solver session; None until a mechanism is opened."""
        return self.state.solver_session

    @property
    def scene(self) -> SceneProtocol | None:
        """The running scene."""
        return self.state.scene

    @property
    def curves(self) -> Sequence[CurveInfo]:
        """The polylines in the world."""
        return self.state.curves

    @property
    def model_radius(self) -> float:
        """Radius of the bounding sphere of the mechanism, m."""
        return self.state.model_radius

    @property
    def alternatives(self) -> AlternativeSearch:
        """The search for alternative solutions."""
        return self.background.alternatives

    @property
    def solver_session_count(self) -> int:
        """Number of solver sessions made so far."""
        return self.slot.solver_session_count

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism."""
        return self.active.model.mechanism

    @property
    def goals(self) -> tuple[InteractiveGoal, ...]:
        """The goals."""
        return self.active.edit_state.goals

    @property
    def live(self) -> LiveSolver:
        """The background solver."""
        return self.active.live

    @property
    def q(self) -> Array:
        """Present configuration, (nq,), read-only."""
        return self.active.q

    @property
    def running(self) -> bool:
        """Whether the solver runs; True if no mechanism is open."""
        return self.solver_session is None or self.solver_session.running

    @property
    def is_animated(self) -> bool:
        """Whether `tick` should be called at display rate."""
        return self.recorder.is_playing or (self.scene is not None and self.scene.is_moving)

    @property
    def file_bytes(self) -> int:
        """Size of the mesh files of the mechanism and of those in the undo history, bytes."""
        return 0 if self.solver_session is None else self.history.file_bytes(self.solver_session.model)

    # ---- requests ---------------------------------------------------------------------------

    def send_everything(self) -> None:
        """Send the whole state to a page that has just connected."""
        with self.lock:
            self.broadcaster.send_everything()

    def handle_request(self, request: PageRequest) -> None:
        """Carry out a request; a request that fails changes nothing.

        Raises:
            MechanikError: the request cannot be carried out; the message says why.
        """
        with self.lock:
            if self.is_closed:
                raise InvalidOperation("this session is closed")
            handlers.handle_request(self, request)

    # ---- changes ----------------------------------------------------------------------------

    def apply_edit(self, edit_state: EditState) -> None:
        """Apply a new edit state, and broadcast what has changed."""
        stage = self.active
        before, order, said = stage.edit_state, self.broadcaster.goal_order, stage.adaptation_text
        stage.apply(edit_state, stage.drag)
        if edit_state.goals is not before.goals and order == self.broadcaster.goal_order:
            self.broadcaster.broadcast_goals()
        if (edit_state.bounds, edit_state.rest_values, edit_state.locked) != (
            before.bounds,
            before.rest_values,
            before.locked,
        ):
            self.broadcaster.broadcast_dofs()
        if edit_state.hidden != before.hidden:
            self.output.broadcast(
                events.VisibilityChanged([name not in edit_state.hidden for name in self.mechanism.links])
            )
        if (
            edit_state.solver != before.solver
            or edit_state.options is not before.options
            or stage.adaptation_text != said
        ):
            self.broadcaster.broadcast_solving()
        if edit_state.terrain is not before.terrain:
            self.broadcaster.broadcast_scene()
        if edit_state.collisions is not before.collisions:
            self.broadcaster.broadcast_collisions(before.collisions)
        self.background.set_spec(stage.solve_spec)

    def move_goal_frames(self, goals: Mapping[int, InteractiveGoal]) -> None:
        """Apply goals of which only the frames have changed, by number."""
        stage = self.active
        targets: dict[str, Any] = {}
        setup, is_new = stage.edit_state, False
        for number, goal in goals.items():
            before = setup.goal(number)
            setup = setup.with_goal(goal)
            target = objective_target(goal, before)
            targets[goal.name] = target
            is_new |= target is None and goal.enabled and goal.kind != "on_terrain"
        if is_new:
            stage.apply(setup, stage.drag)
        else:
            stage.set_targets(setup, {name: target for name, target in targets.items() if target is not None})
        self.background.set_targets(stage, targets)

    # ---- time, files, closing ---------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Advance animations, playback and status texts.

        Args:
            now: monotonic time, s.
        """
        with self.lock:
            if not self.is_closed and self.solver_session is not None:
                self.clock.tick(now)

    def read_mesh(self, number: int) -> tuple[bytes, str]:
        """Return the bytes of a mesh file and its media type."""
        return self.active.model.meshes.read(number)

    def read_download(self, key: str) -> tuple[bytes, str, str]:
        """Return the bytes of an exported file, its media type and its name."""
        return self.downloads.read(key)

    def close(self) -> None:
        """Stop all threads; later requests are rejected."""
        with self.lock:
            self.is_closed = True
            self.background.close()
            self.state_subscribers.close()
            self.collision_monitor.close()
            if self.solver_session is not None:
                self.solver_session.close()
