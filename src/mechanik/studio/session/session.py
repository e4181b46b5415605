"""The `Session` class, which carries out requests of pages and programs and broadcasts the results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from mechanik.collision import Obstacle
from mechanik.collision.collision_pairs import Avoid
from mechanik.errors import InvalidOperation, UnknownName
from mechanik.model import Mechanism
from mechanik.motion.live import LiveSolver, LiveState
from mechanik.objectives import Objective, Terrain
from mechanik.spatial.array import Array, ArrayLike
from mechanik.studio.messages.events import CurveInfo, Event, Notice
from mechanik.studio.messages.message_codec import DragUpdate
from mechanik.studio.messages.requests import CollisionMode, DofName, GoalKind, PageRequest, Value, Vector
from mechanik.studio.session import request_handlers as handlers
from mechanik.studio.session.background_solvers import AlternativeSearch, BackgroundSolvers
from mechanik.studio.session.broadcast import Broadcaster, PageOutput, SharedParts, SolverSessionInstaller
from mechanik.studio.session.collision_monitor import CollisionMonitor
from mechanik.studio.session.default_goals import DefaultGoal
from mechanik.studio.session.dragging import Dragging, UndoSteps
from mechanik.studio.session.edit_state import EditState, InteractiveGoal, PoseLike
from mechanik.studio.session.loaded_model import ModelSource
from mechanik.studio.session.model_loading import ModelLoader
from mechanik.studio.session.motion_recorder import DownloadStore, MotionRecorder
from mechanik.studio.session.request_handlers import SliderDrag
from mechanik.studio.session.session_clock import RecordingAndPlayback, SessionClock
from mechanik.studio.session.session_editor import GoalTemplate, ObstacleEditor, SessionEditor
from mechanik.studio.session.solver_session import SessionState, SolverSession, StateSubscribers
from mechanik.studio.session.undo_history import SceneProtocol, UndoHistory


class OpenableScene(SceneProtocol, Protocol):
    """A scene that can be opened in a session."""

    def open(self, session: Session) -> None:
        """Load the mechanism and the goals of the scene into the session."""
        ...


class Session:
    """One mechanism with goals and a solver in a background thread, controlled by pages, programs and scenes.

    Requests of pages arrive by `handle_request` and `drag_to`. Programs and scenes use the methods for mechanisms,
    goals and settings; of these, only `open`, `open_gallery` and `open_scene` make undo steps. Methods that change the
    mechanism, goals or settings take `lock`, and the parts of the session rely on that. States arrive from the thread
    of the solver, which never takes `lock`.

    Args:
        send_event, send_frame: receive events and packed state frames; called from any thread, must not block.
        scenes: functions that make the available scenes, by name.
        key: key under which the server finds meshes and files of this session.

    Attributes:
        lock: guards all changes.
        is_closed: whether the session is closed, so that it rejects requests.
        slider_drag: the slider of a scene that a user is dragging; None: no slider.
        state: the open mechanism and scene.
        history: undo steps.
        recorder: motion recorder.
        downloads: exported files.
        output: sends events and state frames to pages.
        background: compared methods and the search for alternative solutions.
        collision_monitor: collision checks in the background.
        state_subscribers: functions of programs that are called with each state.
        broadcaster: sends the events that keep pages up to date.
        installer: makes and installs solver sessions.
        editor: goals, objectives, solver settings and configuration.
        obstacles: collision settings and obstacles.
        undo: snapshots and undo steps.
        dragging: drags.
        loader: opens mechanisms and scenes.
        recording_and_playback: records and plays motions.
        clock: advances animations and sends periodic events.

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
        scenes: Mapping[str, Callable[[], OpenableScene]] | None = None,
        key: str = "",
    ) -> None:
        self.lock = threading.RLock()
        self.is_closed = False
        self.slider_drag: SliderDrag | None = None
        self._scenes: Mapping[str, Callable[[], OpenableScene]] = {} if scenes is None else scenes
        self.state = SessionState()
        self.history = UndoHistory()
        self.recorder = MotionRecorder()
        self.downloads = DownloadStore(key)
        self.output = PageOutput(send_event, send_frame, self.recorder)
        self.background = BackgroundSolvers(send_frame)
        self.collision_monitor = CollisionMonitor(self.output.broadcast)
        self.state_subscribers = StateSubscribers()
        shared = SharedParts(
            state=self.state,
            history=self.history,
            recorder=self.recorder,
            output=self.output,
            background=self.background,
            collision_monitor=self.collision_monitor,
            state_subscribers=self.state_subscribers,
        )
        self.broadcaster = Broadcaster(shared)
        self.installer = SolverSessionInstaller(shared, self.broadcaster)
        self.editor = SessionEditor(shared, self.broadcaster)
        self.obstacles = ObstacleEditor(shared, self.editor)
        self.undo = UndoSteps(shared, self.broadcaster, self.installer, self.editor)
        self.dragging = Dragging(shared, self.broadcaster, self.obstacles, self.undo)
        self.loader = ModelLoader(
            key,
            shared,
            broadcaster=self.broadcaster,
            installer=self.installer,
            editor=self.editor,
            undo=self.undo,
            dragging=self.dragging,
        )
        self.recording_and_playback = RecordingAndPlayback(shared, self.broadcaster, self.editor)
        self.clock = SessionClock(shared, self.loader, self.recording_and_playback)

    # ---- state ------------------------------------------------------------------------------

    @property
    def active(self) -> SolverSession:
        """The solver session.

        Raises:
            InvalidOperation: no mechanism is open.
        """
        return self.state.active

    @property
    def solver_session_count(self) -> int:
        """Number of solver sessions made so far."""
        return self.installer.solver_session_count

    @property
    def alternatives(self) -> AlternativeSearch:
        """The search for alternative solutions."""
        return self.background.alternatives

    @property
    def scene(self) -> SceneProtocol | None:
        """The open scene; None: no scene is open."""
        return self.state.scene

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism."""
        return self.state.active.model.mechanism

    @property
    def model_source(self) -> ModelSource:
        """Kind and text for `EditModel`; both empty if the mechanism was not made from text."""
        return self.state.active.model.source

    @property
    def edit_state(self) -> EditState:
        """Goals, limits and settings."""
        return self.state.active.edit_state

    @property
    def goals(self) -> tuple[InteractiveGoal, ...]:
        """The goals."""
        return self.state.active.edit_state.goals

    @property
    def live(self) -> LiveSolver:
        """The main solver, in a background thread."""
        return self.state.active.live

    @property
    def q(self) -> Array:
        """Present configuration, (nq,), read-only."""
        return self.state.active.q

    @property
    def running(self) -> bool:
        """Whether the solver runs; True if no mechanism is open."""
        return self.state.solver_session is None or self.state.solver_session.running

    @property
    def collision_text(self) -> str:
        """Description of the deepest collision of the newest check, and the number of others; empty: no collision."""
        return self.collision_monitor.text

    @property
    def is_animated(self) -> bool:
        """Whether `tick` should be called at display rate."""
        return self.recorder.is_playing or (self.state.scene is not None and self.state.scene.is_moving)

    @property
    def file_bytes(self) -> int:
        """Size of the uploaded files of the mechanism and of the mechanisms in the undo history, bytes."""
        solver_session = self.state.solver_session
        return 0 if solver_session is None else self.history.file_bytes(solver_session.model)

    # ---- pages ------------------------------------------------------------------------------

    def handle_request(self, request: PageRequest) -> None:
        """Carry out a request.

        Most requests first end a drag and playback; see `REQUESTS_THAT_KEEP_DRAG` and `REQUESTS_THAT_KEEP_PLAYBACK`.
        Apart from that, a request that fails changes nothing.

        Raises:
            MechanikError: the request cannot be carried out; the message says why.
        """
        with self.lock:
            if self.is_closed:
                raise InvalidOperation("this session is closed")
            handlers.handle_request(self, request)

    def drag_to(self, update: DragUpdate) -> None:
        """Apply a drag update; state frames that include the update have its tag, or that of a newer one.

        Raises:
            InvalidOperation: no such drag was started.
        """
        with self.lock:
            if not self.is_closed:
                self.dragging.drag_to(update)

    def send_everything(self) -> None:
        """Send the whole state, except alternative solutions, to a page that has just connected.

        Status text and readouts follow with a later tick.
        """
        with self.lock:
            self.broadcaster.send_everything()
            self.clock.resend_status()

    def tick(self, now: float) -> None:
        """Advance animations and playback, and send the events that are due.

        Args:
            now: monotonic time, s.
        """
        with self.lock:
            if not self.is_closed and self.state.solver_session is not None:
                self.clock.tick(now)

    def read_mesh(self, number: int) -> tuple[bytes, str]:
        """Return the bytes of a mesh file and its media type; `number` is part of the address of the mesh.

        Raises:
            UnknownName: there is no such number.
            FileMissing: the file cannot be read.
            InvalidOperation: no mechanism is open.
        """
        return self.state.active.model.meshes.read(number)

    def read_download(self, key: str) -> tuple[bytes, str, str]:
        """Return the bytes of an exported file, its media type and its name.

        Raises:
            UnknownName: there is no such key, or newer files have replaced the file.
        """
        return self.downloads.read(key)

    def close(self) -> None:
        """Stop the solvers and all threads; later requests are rejected."""
        with self.lock:
            self.is_closed = True
            self.background.close()
            self.state_subscribers.close()
            self.collision_monitor.close()
            if self.state.solver_session is not None:
                self.state.solver_session.close()

    # ---- mechanisms and scenes --------------------------------------------------------------

    def open(
        self,
        mechanism: Mechanism,
        *,
        title: str = "",
        files: Mapping[str, bytes] | None = None,
        source: ModelSource = ("", ""),
        goals: Sequence[DefaultGoal] | None = None,
        q: ArrayLike | None = None,
        resets_view: bool = True,
    ) -> None:
        """Open a copy of a mechanism; undo restores the previous mechanism.

        Args:
            mechanism: the mechanism.
            title: title for users; default: the name of the mechanism.
            files: mesh files, by the path or uri in the meshes. If given, no file of this machine is read; None: files
                that a file reader has found are read.
            source: kind and text for `EditModel`; both empty: the mechanism cannot be edited as text.
            goals: initial goals; None: `default_goals`.
            q: configuration, (nq,), clamped to the limits; None: the present configuration of the mechanism.
            resets_view: whether the camera moves so that everything is visible.
        """
        with self.lock:
            self.loader.open(
                mechanism, title=title, files=files, source=source, goals=goals, q=q, resets_view=resets_view
            )

    def open_gallery(self, name: str) -> None:
        """Open a mechanism of the gallery, in its configuration "home" if it has one.

        Raises:
            UnknownName: the gallery has no such mechanism.
        """
        with self.lock:
            self.loader.open_gallery(name)

    def open_scene(self, name: str) -> None:
        """Open a scene.

        Raises:
            UnknownName: there is no such scene.
        """
        if name not in self._scenes:
            raise UnknownName("scene", name, self._scenes)
        scene = self._scenes[name]()
        with self.lock, self.loader.opening_scene(scene):
            scene.open(self)

    # ---- goals and objectives ---------------------------------------------------------------

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
        free: Sequence[DofName] = (),
    ) -> int:
        """Add a goal for a link.

        Args:
            kind: kind of the goal.
            link: name of the link.
            at: point of the link, in the frame of the link, m; for an axis or a cone the direction in that frame, z if
                zero.
            pose: pose of the goal in the world: (4, 4), a `Pose`, position and wxyz (7,), or a position (3,), m; None:
                a pose that the present configuration meets, if the kind and `sizes` allow it.
            pinned: whether the goal has the highest level, 0, in place of `level`, and keeps its pose when joints are
                dragged.
            name: label; default: the name of the link. A number is appended to a name that is in use.
            weight: weight within its level.
            level: priority level; 0 is the highest.
            sizes: parameters of the kind, see `ChangeGoal.sizes`; None: defaults.
            free: dofs of a pose goal that are not constrained, along and about the axes of the frame of the goal.

        Returns:
            The number of the goal.

        Raises:
            UnknownName: there is no such link.
            InvalidOperation: there are too many goals.
            ObjectiveError: the goal needs a terrain and there is none.
            MechanikError: the goal does not fit the mechanism, or `pose` is not valid.
        """
        template = GoalTemplate(kind, link, at, pose, pinned, name, weight, level, sizes, free)
        with self.lock:
            return self.editor.add_goal(template)

    def move_goal(self, number: int, pose: PoseLike) -> None:
        """Move a goal; a position (3,) keeps its orientation."""
        self.move_goals({number: pose})

    def move_goals(self, poses: Mapping[int, PoseLike]) -> None:
        """Move several goals at once, by number; a position (3,) keeps the orientation."""
        with self.lock:
            self.editor.move_goals(poses)

    def remove_goal(self, number: int) -> None:
        """Remove a goal."""
        with self.lock:
            self.editor.remove_goal(number)

    def add_objective(self, *objectives: Objective) -> None:
        """Add objectives that are not shown as goals; an objective of the same name is replaced.

        Raises:
            InvalidOperation: an objective has no name, or a goal has the same name.
        """
        with self.lock:
            self.editor.add_objectives(objectives)

    def remove_objective(self, *names: str) -> None:
        """Remove added objectives, by name.

        Raises:
            UnknownName: there is no such objective.
        """
        with self.lock:
            self.editor.remove_objectives(names)

    def set_targets(self, targets: Mapping[str, Any]) -> None:
        """Set new targets of added objectives, by name, in the form that `Objective.with_target` takes."""
        with self.lock:
            self.editor.set_targets(targets)

    def apply_edit(self, edit_state: EditState) -> None:
        """Apply a new edit state, and send what has changed."""
        with self.lock:
            self.editor.apply_edit(edit_state)

    # ---- solver and configuration -----------------------------------------------------------

    def set_solver(self, solver: str, **options: Value | None) -> None:
        """Select a method and its options; options that are not named have their default values."""
        with self.lock:
            self.editor.set_solver(solver, options)

    def set_running(self, running: bool) -> None:
        """Run or pause the solver."""
        with self.lock:
            self.editor.set_running(running)

    def set_configuration(self, q: ArrayLike) -> None:
        """Move to q (nq,), clamped to the limits; the goals stay, and the solver continues from there."""
        with self.lock:
            self.editor.set_configuration(q)

    def move_with_goals(self, q: ArrayLike) -> None:
        """Move to q (nq,), clamped to the limits; enabled goals that are not pinned move with their links."""
        with self.lock:
            self.editor.move_with_goals(q)

    # ---- collisions and display -------------------------------------------------------------

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
            avoid: "self", obstacles or both, in place of the present ones; obstacles are drawn.
            mode: "off", "show" or "avoid".
            clearance: distance that avoidance keeps, m.
            allow, forbid: pairs of names, see `Collider`.
        """
        with self.lock:
            self.obstacles.set_collision_avoidance(avoid, mode=mode, clearance=clearance, allow=allow, forbid=forbid)

    def add_obstacle(self, *obstacles: Obstacle) -> None:
        """Add obstacles; names of links and obstacles must be unique, and an obstacle without a name gets one."""
        with self.lock:
            self.obstacles.add_obstacles(obstacles)

    def remove_obstacle(self, *names: str) -> None:
        """Remove obstacles, by name."""
        with self.lock:
            self.obstacles.remove_obstacles(names)

    def move_obstacle(self, name: str, pose: PoseLike) -> None:
        """Move an obstacle; a position (3,) keeps its orientation."""
        with self.lock:
            self.obstacles.move_obstacle(name, pose)

    def set_curves(self, curves: Sequence[CurveInfo]) -> None:
        """Set the polylines that are drawn in the world."""
        with self.lock:
            self.editor.set_curves(curves)

    def set_terrain(self, terrain: Terrain | None) -> None:
        """Set the terrain, which is drawn and which goals of kind `on_terrain` use; None: no terrain."""
        with self.lock:
            self.editor.set_terrain(terrain)

    def notify(self, text: str) -> None:
        """Show a message to the user."""
        self.output.broadcast(Notice("info", text))

    def subscribe(self, subscriber: Callable[[LiveState], object]) -> Callable[[], None]:
        """Call `subscriber` with each state, in a separate thread; the subscriber may call any method of the session.

        A subscriber that raises is removed, and its error is logged. A slow subscriber misses states.

        Returns:
            A function that removes the subscriber.
        """
        return self.state_subscribers.add(subscriber)
