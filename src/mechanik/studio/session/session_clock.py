"""Clock of a session: status texts, playback of recordings, animated scenes, and rate-limited events."""

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

MAX_LIMITS_NAMED = 4


def status_text(solver_session: SolverSession, collision_text: str = "") -> tuple[str, str]:
    """Return the status name for frames, and a sentence for users.

    Args:
        solver_session: the solver.
        collision_text: description of a collision; empty: none.
    """
    status, text = _solver_status(solver_session)
    if not collision_text:
        return status, text
    state = solver_session.latest_state
    if state is not None and state.status is Status.IN_COLLISION:
        text = ""  # it would repeat the collision
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
    if state.problem:
        return "PROBLEM", f"This cannot be solved: {state.problem}"
    if not solver_session.solve_spec.goals:
        return "IDLE", "There is no goal. Right-click a link to add one."
    return status_name(state), _solution_text(state)


def _solution_text(state: LiveState) -> str:
    solution = state.solution
    if solution is None:
        return ""
    text = _sentence(solution.message)
    limits = _limits_text(list(solution.active_limits)) if solution.success else ""
    return f"{text} At a limit: {limits}." if limits else text


def _limits_text(names: Sequence[str]) -> str:
    omitted = f" and {len(names) - MAX_LIMITS_NAMED} more" if len(names) > MAX_LIMITS_NAMED else ""
    return ", ".join(names[:MAX_LIMITS_NAMED]) + omitted


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


class Playback:
    """Records motions of a session and plays them; call with the session's lock held."""

    def __init__(self, shared: SharedParts, broadcaster: Broadcaster, editor: SessionEditor) -> None:
        self._recorder, self._state, self._output = shared.recorder, shared.state, shared.output
        self._monitor, self._broadcaster, self._editor = shared.collision_monitor, broadcaster, editor

    def record(self, on: bool) -> None:
        """Start a new recording, or end the present one."""
        active = self._state.active
        if on:
            known_events = self._broadcaster.obstacles_event(), self._monitor.info()
            self._recorder.start(active.model, active.q, known_events)
        else:
            self._recorder.stop(active.q)
        self._output.broadcast(self._recorder.info())

    def start(self, speed: float, looped: bool) -> None:
        """Play the recording from the present time, and suspend the solver."""
        active = self._state.active
        if self._recorder.is_recording:
            self._recorder.stop(active.q)
        self._recorder.play(speed, looped)
        active.set_muted(True)
        self._output.broadcast(self._recorder.info())

    def stop(self) -> None:
        """Stop playback; the mechanism stays where it was shown last, with the goals that are not pinned."""
        active = self._state.active
        self._recorder.is_playing = False
        self._editor.move_with_goals(self._recorder.configuration_at(self._recorder.time))
        active.set_muted(False)
        self._output.broadcast(self._recorder.info())

    def seek(self, time: float) -> None:
        """Show the recording at a time, s."""
        active = self._state.active
        if self._recorder.is_recording:
            raise InvalidOperation("a motion is being recorded; end the recording first")
        q = self._recorder.configuration_at(time)
        if self._recorder.is_playing:
            active.send_preview(q, active.carried_link_poses())
        else:
            self._editor.move_with_goals(q)
        self._output.broadcast(self._recorder.info())

    def tick(self, seconds: float) -> None:
        """Advance playback by `seconds`, if it runs."""
        if not self._recorder.is_playing:
            return
        active = self._state.active
        active.send_preview(self._recorder.tick(seconds), active.carried_link_poses())
        if not self._recorder.is_playing:
            self.stop()


class RateLimiter:
    """Limits how often something happens per second."""

    def __init__(self, max_per_second: float) -> None:
        self._interval, self._last = 1.0 / max_per_second, -math.inf

    def is_due(self, now: float) -> bool:
        """Return whether it may happen now.

        Args:
            now: monotonic time, s.
        """
        if now - self._last < self._interval:
            return False
        self._last = now
        return True


MAX_SCENE_STEP_SECONDS = 0.1
"""Maximum time step of a scene, s, so that nothing jumps after a pause."""
STATUS_RATE, COMPARISON_RATE, RECORDING_RATE = 10.0, 5.0, 5.0
"""Maximum rates of status texts, comparison rows and recorder states, per second."""
MAX_READ_TRIES = 3
"""Maximum number of tries to compute a text before a newer state arrives."""


class SessionClock:
    """Advances the animations of a session and sends its periodic events; call with the session's lock held."""

    def __init__(self, shared: SharedParts, loader: ModelLoader, playback: Playback) -> None:
        self._recorder, self._state, self._output = shared.recorder, shared.state, shared.output
        self._background, self._monitor = shared.background, shared.collision_monitor
        self._loader, self._playback = loader, playback
        self._last_time: float | None = None
        self._status_limiter = RateLimiter(STATUS_RATE)
        self._comparison_limiter = RateLimiter(COMPARISON_RATE)
        self._recording_limiter = RateLimiter(RECORDING_RATE)
        self._last_status: StatusText | None = None
        self._last_controls: Controls | None = None
        self._last_comparison: ComparisonChanged | None = None
        self._last_recording: Recording | None = None

    def tick(self, now: float) -> None:
        """Advance playback and the scene to `now` (monotonic time, s), and send what is due."""
        # clocks of processor cores may differ; time must never run backwards or count twice
        tick_time = now if self._last_time is None else max(now, self._last_time)
        seconds = 0.0 if self._last_time is None else tick_time - self._last_time
        self._last_time = tick_time
        self._playback.tick(seconds)
        self._tick_scene(min(seconds, MAX_SCENE_STEP_SECONDS))
        self._send_due(now)

    def restart(self) -> None:
        """Ignore the time since the last tick."""
        self._last_time = None

    def _tick_scene(self, seconds: float) -> None:
        scene = self._state.scene
        if scene is None or not scene.is_moving or self._recorder.is_playing or not self._state.active.running:
            return
        try:
            with self._loader.scene_active():
                scene.tick(seconds)
        except MechanikError as error:
            self._loader.close_scene()
            self._output.broadcast(Notice("warning", f"The scene was stopped because of an error: {error}"))

    def _send_due(self, now: float) -> None:
        if (alternatives := self._background.alternatives.poll()) is not None:
            self._output.broadcast(alternatives)
        if self._status_limiter.is_due(now):
            self._send_status()
        comparison = self._background.comparison
        if comparison.methods and self._comparison_limiter.is_due(now):
            rows = comparison.info()
            if self._last_comparison is None or without_timings(rows) != without_timings(self._last_comparison):
                self._last_comparison = rows
                self._output.broadcast(rows)
        if self._recording_limiter.is_due(now):
            recording = self._recorder.info()
            if recording != self._last_recording:
                self._last_recording = recording
                self._output.broadcast(recording)
            if self._recorder.is_full:
                self._recorder.is_full = False
                self._output.broadcast(Notice("warning", "The recording has reached its maximum length and was ended."))

    def _send_status(self) -> None:
        status = self._make_status()
        if status != self._last_status:
            self._last_status = status
            self._output.broadcast(status)
        scene = self._state.scene
        if scene is not None:  # an animated scene may move its own sliders
            controls = Controls(control_values(scene))
            if controls != self._last_controls:
                self._last_controls = controls
                self._output.broadcast(controls)

    def _make_status(self) -> StatusText:
        """Return the status sentence and the lines of the scene, both of the same state."""
        active, scene = self._state.active, self._state.scene
        tries = 0
        while True:
            state, tries = active.latest_state, tries + 1
            name, text = status_text(active, self._monitor.text)
            status = StatusText(name, text, scene.readouts() if scene is not None else [])
            if active.latest_state is state or tries == MAX_READ_TRIES:
                return status
