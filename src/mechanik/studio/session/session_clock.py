"""Status text, recording and playback of a session, and its clock, which drives animations and periodic events."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mechanik.errors import InvalidOperation, MechanikError
from mechanik.motion.live import LiveState
from mechanik.solver.solution import Status
from mechanik.studio.messages.events import ComparisonChanged, Controls, Notice, Recording, StatusText
from mechanik.studio.session.background_solvers import without_timings
from mechanik.studio.session.broadcast import Broadcaster, SharedParts, control_values
from mechanik.studio.session.frame_packer import status_name
from mechanik.studio.session.model_loading import ModelLoader
from mechanik.studio.session.session_editor import SessionEditor
from mechanik.studio.session.solver_session import SolverSession

MAX_NAMED_DOFS = 4
"""Maximum number of dofs at a limit that the status text names."""


def status_text(solver_session: SolverSession, collision_text: str = "") -> tuple[str, str]:
    """Return the name of the status (one of `message_codec.STATUSES`) and sentences for users, which may be empty.

    Args:
        solver_session: the solver.
        collision_text: description of the deepest collision; empty: no collision.
    """
    status, text = _solver_status(solver_session)
    if not collision_text:
        return status, text
    state = solver_session.latest_state
    if state is not None and state.status is Status.IN_COLLISION:
        text = ""  # the text of the solver would repeat the collision
    text = f"In collision: {collision_text}. {text}".rstrip()
    return (status, text) if status in ("PAUSED", "PROBLEM") else ("IN_COLLISION", text)


def _solver_status(solver_session: SolverSession) -> tuple[str, str]:
    if not solver_session.running:
        return (
            "PAUSED",
            "Paused: goals can be moved, but the mechanism does not follow. Single step runs one iteration.",
        )
    state = solver_session.latest_state
    if state is None:
        return "IDLE", ""
    if state.error_message:
        return "PROBLEM", f"This cannot be solved: {state.error_message}"
    if not solver_session.solve_spec.goals:
        return "IDLE", "There is no goal. Right-click a link to add one."
    return status_name(state), _solution_text(state)


def _solution_text(state: LiveState) -> str:
    solution = state.solution
    if solution is None:
        return ""
    text = _sentence(solution.message)
    names_text = _names_text(list(solution.active_limits)) if solution.success else ""
    return f"{text} At a limit: {names_text}." if names_text else text


def _names_text(names: Sequence[str]) -> str:
    ending = f" and {len(names) - MAX_NAMED_DOFS} more" if len(names) > MAX_NAMED_DOFS else ""
    return ", ".join(names[:MAX_NAMED_DOFS]) + ending


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


class RecordingAndPlayback:
    """Records motions of a session and plays them; call with the session's lock held."""

    def __init__(self, shared: SharedParts, broadcaster: Broadcaster, editor: SessionEditor) -> None:
        self._recorder, self._state, self._output = shared.recorder, shared.state, shared.output
        self._monitor, self._broadcaster, self._editor = shared.collision_monitor, broadcaster, editor

    def record(self, is_start: bool) -> None:
        """Start a new recording if `is_start`, else end the present recording."""
        active = self._state.active
        if is_start:
            known_events = self._broadcaster.obstacles_event(), self._monitor.info()
            self._recorder.start(active.model, active.q, known_events)
        else:
            self._recorder.stop(active.q)
        self._output.broadcast(self._recorder.info())

    def start_playback(self, speed: float, looped: bool) -> None:
        """Play the recording, and suspend the solver; a running recording ends first.

        Playback starts at the present playback time, or at 0 if this is the end of the recording.

        Args:
            speed: seconds of the recording per second of real time.
            looped: whether to start again at the end.

        Raises:
            InvalidOperation: fewer than two states are recorded.
        """
        active = self._state.active
        if self._recorder.is_recording:
            self._recorder.stop(active.q)
        self._recorder.play(speed, looped)
        active.set_suspended(True)
        self._output.broadcast(self._recorder.info())

    def stop_playback(self) -> None:
        """Stop playback at the configuration that was shown last; enabled goals that are not pinned follow."""
        active = self._state.active
        self._recorder.is_playing = False
        self._editor.move_with_goals(self._recorder.seek(self._recorder.time))
        active.set_suspended(False)
        self._output.broadcast(self._recorder.info())

    def seek(self, time: float) -> None:
        """Show the recording at a time, s; if it is not playing, the mechanism and its goals move there.

        Raises:
            InvalidOperation: a motion is being recorded, or nothing is recorded.
        """
        active = self._state.active
        if self._recorder.is_recording:
            raise InvalidOperation("a motion is being recorded; stop the recording first")
        q = self._recorder.seek(time)
        if self._recorder.is_playing:
            active.send_preview(q, active.carried_link_poses())
        else:
            self._editor.move_with_goals(q)
        self._output.broadcast(self._recorder.info())

    def tick(self, seconds: float) -> None:
        """Advance playback by `seconds` of real time, if it runs."""
        if not self._recorder.is_playing:
            return
        active = self._state.active
        active.send_preview(self._recorder.tick(seconds), active.carried_link_poses())
        if not self._recorder.is_playing:
            self.stop_playback()


class RateLimiter:
    """Limits how often a periodic event is sent.

    Args:
        max_per_second: maximum rate, 1/s.
    """

    def __init__(self, max_per_second: float) -> None:
        self._interval, self._last_time = 1.0 / max_per_second, -math.inf

    def is_due(self, now: float) -> bool:
        """Return whether the event may be sent now; if so, the next interval starts.

        Args:
            now: monotonic time, s.
        """
        if now - self._last_time < self._interval:
            return False
        self._last_time = now
        return True


MAX_SCENE_STEP_SECONDS = 0.1
"""Maximum time step of a scene, s; it prevents a jump of the scene after a delay."""
STATUS_RATE, COMPARISON_RATE, RECORDING_RATE = 10.0, 5.0, 5.0
"""Maximum rates of status texts, comparison rows and recorder states, per second."""
MAX_STATUS_READS = 3
"""Maximum number of reads for one status text; the state is read again if a newer one has arrived meanwhile."""


class SessionClock:
    """Advances the animations of a session and sends its periodic events; call with the session's lock held."""

    def __init__(self, shared: SharedParts, loader: ModelLoader, recording_and_playback: RecordingAndPlayback) -> None:
        self._recorder, self._state, self._output = shared.recorder, shared.state, shared.output
        self._background, self._monitor = shared.background, shared.collision_monitor
        self._loader, self._recording_and_playback = loader, recording_and_playback
        self._last_time: float | None = None
        self._status_limiter = RateLimiter(STATUS_RATE)
        self._comparison_limiter = RateLimiter(COMPARISON_RATE)
        self._recording_limiter = RateLimiter(RECORDING_RATE)
        self._last_status: StatusText | None = None
        self._last_controls: Controls | None = None
        self._last_comparison: ComparisonChanged | None = None
        self._last_recording: Recording | None = None

    def tick(self, now: float) -> None:
        """Advance playback and the scene to `now` (monotonic time, s), and send the events that are due."""
        # clocks of processor cores may differ, and no time step may be negative
        tick_time = now if self._last_time is None else max(now, self._last_time)
        seconds = 0.0 if self._last_time is None else tick_time - self._last_time
        self._last_time = tick_time
        self._recording_and_playback.tick(seconds)
        self._tick_scene(min(seconds, MAX_SCENE_STEP_SECONDS))
        self._send_due_events(now)

    def restart(self) -> None:
        """Give the next tick a time step of 0."""
        self._last_time = None

    def resend_status(self) -> None:
        """Send the status text when it is next due, also if it has not changed."""
        self._last_status = None

    def _tick_scene(self, seconds: float) -> None:
        scene = self._state.scene
        if scene is None or not scene.is_moving or self._recorder.is_playing or not self._state.active.running:
            return
        try:
            with self._loader.scene_code_running():
                scene.tick(seconds)
        except MechanikError as error:
            self._loader.close_scene()
            self._output.broadcast(Notice("warning", f"The scene was closed because of an error: {error}"))

    def _send_due_events(self, now: float) -> None:
        if (alternatives := self._background.alternatives.poll()) is not None:
            self._output.broadcast(alternatives)
        if self._status_limiter.is_due(now):
            self._send_status_and_controls()
        comparison = self._background.comparison
        if comparison.methods and self._comparison_limiter.is_due(now):
            event = comparison.info()
            if self._last_comparison is None or without_timings(event) != without_timings(self._last_comparison):
                self._last_comparison = event
                self._output.broadcast(event)
        if self._recording_limiter.is_due(now):
            recording = self._recorder.info()
            if recording != self._last_recording:
                self._last_recording = recording
                self._output.broadcast(recording)
            if self._recorder.is_full:
                self._recorder.is_full = False
                self._output.broadcast(Notice("warning", "The recording has reached its maximum size and was stopped."))

    def _send_status_and_controls(self) -> None:
        status = self._make_status()
        if status != self._last_status:
            self._last_status = status
            self._output.broadcast(status)
        scene = self._state.scene
        if scene is not None:  # an animated scene may change its own controls
            controls = Controls(control_values(scene))
            if controls != self._last_controls:
                self._last_controls = controls
                self._output.broadcast(controls)

    def _make_status(self) -> StatusText:
        """Return the status text and the readouts of the scene, both of the same state if possible."""
        active, scene = self._state.active, self._state.scene
        read_count = 0
        while True:
            state, read_count = active.latest_state, read_count + 1
            name, text = status_text(active, self._monitor.text)
            status = StatusText(name, text, scene.readouts() if scene is not None else [])
            if active.latest_state is state or read_count == MAX_STATUS_READS:
                return status
