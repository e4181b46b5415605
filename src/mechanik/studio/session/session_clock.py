"""Clock of a session: status texts, animated scenes, playback, and rate-limited events."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mechanik.errors import MechanikError
from mechanik.motion.live import LiveState
from mechanik.solver.solution import Status
from mechanik.studio.messages.events import ComparisonChanged, Controls, Notice, Recording, StatusText
from mechanik.studio.session.background_solvers import without_timings
from mechanik.studio.session.solver_session import SolverSession, status_name

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session


MAX_LIMITS_NAMED = 4


def status_text(solver_session: SolverSession, collision_text: str = "") -> tuple[str, str]:
    """Return the status name for frames, and a sentence for users.

    Args:
        solver_session: the solver.
        collision_text: description of a collision; empty: none.
    """
    status, text = _of_the_solver(solver_session)
    if not collision_text:
        return status, text
    state = solver_session.latest_state
    if state is not None and state.status is Status.IN_COLLISION:
        text = ""  # it would repeat the collision
    bumps = f"In collision: {collision_text}. {text}".rstrip()
    return (status, bumps) if status in ("PAUSED", "PROBLEM") else ("IN_COLLISION", bumps)


def _of_the_solver(stage: SolverSession) -> tuple[str, str]:
    if not stage.running:
        return "PAUSED", "Paused: goals can be moved, and the mechanism stays. One step makes one iteration."
    state = stage.latest_state
    if state is None:
        return "IDLE", ""
    if state.problem:
        return "PROBLEM", f"This cannot be solved: {state.problem}"
    if not stage.solve_spec.goals:
        return "IDLE", "Nothing is asked of it: right click on a link to give it a goal."
    return status_name(state), _said(state)


def _said(state: LiveState) -> str:
    solution = state.solution
    if solution is None:
        return ""
    if solution.success:
        limits = _at_limits(state)
        return _sentence(solution.message) + (f" At a limit: {limits}." if limits else "")
    return _sentence(solution.message)


def _at_limits(state: LiveState) -> str:
    assert state.solution is not None
    at = list(state.solution.active_limits)
    more = f" and {len(at) - MAX_LIMITS_NAMED} more" if len(at) > MAX_LIMITS_NAMED else ""
    return ", ".join(at[:MAX_LIMITS_NAMED]) + more


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


class RateLimiter:
    """Limits how often something happens per second."""

    def __init__(self, max_per_second: float) -> None:
        self._apart, self._last = 1.0 / max_per_second, -math.inf

    def is_due(self, now: float) -> bool:
        """Return whether it may happen now.

        Args:
            now: monotonic time, s.
        """
        if now - self._last < self._apart:
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
    """Advances the animations of a session and sends its periodic events."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._last: float | None = None
        self._words, self._rows, self._tape = (
            RateLimiter(STATUS_RATE),
            RateLimiter(COMPARISON_RATE),
            RateLimiter(RECORDING_RATE),
        )
        self._said: StatusText | None = None
        self._set: Controls | None = None
        self._compared: ComparisonChanged | None = None
        self._taped: Recording | None = None
        self._sequence = -1

    def tick(self, now: float) -> None:
        # clocks of processor cores may differ; time must never run backwards or count twice
        last = now if self._last is None else max(now, self._last)
        seconds = 0.0 if self._last is None else last - self._last
        self._last = last
        self._play(seconds)
        self._move(min(seconds, MAX_SCENE_STEP_SECONDS))
        self._tell(now)

    def restart(self) -> None:
        """Ignore the time since the last tick."""
        self._last = None

    def _play(self, seconds: float) -> None:
        session = self._session
        if not session.recorder.is_playing:
            return
        session.active.send_preview(session.recorder.tick(seconds), session.carried_link_poses())
        if not session.recorder.is_playing:
            from mechanik.studio.session.motion_recorder import stop_playing

            stop_playing(session)

    def _move(self, seconds: float) -> None:
        session = self._session
        scene = session.state.scene
        if scene is None or not scene.is_moving or session.recorder.is_playing or not session.running:
            return
        try:
            with session.scene_active():
                scene.tick(seconds)
        except MechanikError as error:
            session.close_scene()
            session.output.broadcast(Notice("warning", f"The scene was stopped, for it could not go on: {error}"))

    def _tell(self, now: float) -> None:
        session = self._session
        if (found := session.background.alternatives.poll()) is not None:
            session.output.broadcast(found)
        if self._words.is_due(now):
            self._tell_words()
        if session.background.comparison.methods and self._rows.is_due(now):
            told = session.background.comparison.info()
            if self._compared is None or without_timings(told) != without_timings(self._compared):
                self._compared = told
                session.output.broadcast(told)
        if self._tape.is_due(now):
            tape = session.recorder.info()
            if tape != self._taped:
                self._taped = tape
                session.output.broadcast(tape)
            if session.recorder.is_full:
                session.recorder.is_full = False
                session.output.broadcast(Notice("warning", "The recording is as long as one can be, so it was ended."))

    def _tell_words(self) -> None:
        session = self._session
        words = self._words_now()
        if words != self._said:
            self._said = words
            session.output.broadcast(words)
        if session.state.scene is not None:  # an animated scene may move its own sliders
            controls = Controls({control.name: control.value for control in session.state.scene.controls()})
            if controls != self._set:
                self._set = controls
                session.output.broadcast(controls)

    def _words_now(self) -> StatusText:
        """Return the status sentence and the lines of the scene, both of the same state."""
        session, stage = self._session, self._session.active
        tries = 0
        while True:
            state, tries = stage.latest_state, tries + 1
            words = StatusText(
                *status_text(stage, session.collision_monitor.text),
                session.state.scene.readouts() if session.state.scene is not None else [],
            )
            if stage.latest_state is state or tries == MAX_READ_TRIES:
                return words
