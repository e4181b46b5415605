"""What happens by itself as time goes on: scenes that move, motions that are played, words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechanik.errors import MechanikError
from mechanik.studio.messages.events import Comparison, Controls, Notice, Recording, Words
from mechanik.studio.session.comparing import without_times
from mechanik.studio.session.words import Pace, sentence

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session

LONGEST = 0.1
"""Seconds that a scene goes on by at most, so that nothing leaps after a pause."""
WORDS, ROWS, TAPE = 10.0, 5.0, 5.0
"""Times a second that words, rows of a comparison and the state of the recorder are told at most."""
TRIES = 3
"""To put a state into words before the next one arrives."""


class Clockwork:
    """The clock of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._last: float | None = None
        self._words, self._rows, self._tape = Pace(WORDS), Pace(ROWS), Pace(TAPE)
        self._said: Words | None = None
        self._set: Controls | None = None
        self._compared: Comparison | None = None
        self._taped: Recording | None = None
        self._sequence = -1

    def tick(self, now: float) -> None:
        # a clock that runs back and forth between cores must not make time go faster
        last = now if self._last is None else max(now, self._last)
        seconds = 0.0 if self._last is None else last - self._last
        self._last = last
        self._play(seconds)
        self._move(min(seconds, LONGEST))
        self._tell(now)

    def begin_playing(self) -> None:
        """The time until now does not count."""
        self._last = None

    def _play(self, seconds: float) -> None:
        session = self._session
        if not session.recorder.is_playing:
            return
        session.on_stage.show_riding(session.recorder.tick(seconds), session.riders())
        if not session.recorder.is_playing:
            from mechanik.studio.session.on_recorder import stop_playing

            stop_playing(session)

    def _move(self, seconds: float) -> None:
        session = self._session
        scene = session.scene
        if scene is None or not scene.is_moving or session.recorder.is_playing or not session.running:
            return
        try:
            with session.scene_works():
                scene.tick(seconds)
        except MechanikError as error:
            session.end_scene()
            session.tell(Notice("warning", f"The scene was stopped, for it could not go on: {error}"))

    def _tell(self, now: float) -> None:
        session = self._session
        if (found := session.ghosts.news()) is not None:
            session.tell(found)
        if self._words.is_due(now):
            self._tell_words()
        if session.comparing.runners and self._rows.is_due(now):
            told = session.comparing.info()
            if self._compared is None or without_times(told) != without_times(self._compared):
                self._compared = told
                session.tell(told)
        if self._tape.is_due(now):
            tape = session.recorder.info()
            if tape != self._taped:
                self._taped = tape
                session.tell(tape)
            if session.recorder.is_full:
                session.recorder.is_full = False
                session.tell(Notice("warning", "The recording is as long as one can be, so it was ended."))

    def _tell_words(self) -> None:
        session = self._session
        words = self._words_now()
        if words != self._said:
            self._said = words
            session.tell(words)
        if session.scene is not None:  # what moves by itself may take its sliders along
            controls = Controls({control.name: control.value for control in session.scene.controls()})
            if controls != self._set:
                self._set = controls
                session.tell(controls)

    def _words_now(self) -> Words:
        """The sentence and the scene's lines, both of the same state."""
        session, stage = self._session, self._session.on_stage
        tries = 0
        while True:
            state, tries = stage.latest, tries + 1
            words = Words(
                *sentence(stage, session.lookout.words), session.scene.read_out() if session.scene is not None else []
            )
            if stage.latest is state or tries == TRIES:
                return words
