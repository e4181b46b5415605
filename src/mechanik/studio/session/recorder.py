"""A motion as it happens: recorded state by state, played, looked at, and handed on for files."""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable

import numpy as np

from mechanik.errors import Refused
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import Clashes, Event, ObstacleMoved, Obstacles, Recording
from mechanik.studio.session.table import Table

LONGEST, MOST, MOST_NUMBERS = 600.0, 60_000, 5_000_000
"""Seconds, states and numbers of a recording; there it ends by itself."""
PAUSE = 0.1
"""Seconds without a new state: it was at rest, and not on a slow way to the next one."""


class Recorder:
    """One recording of one mechanism. States come from the solver's thread.

    Args:
        clock: s, for tests that do not want to wait.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._begun = self._latest = 0.0
        self._times: list[float] = []
        self._q: list[Array] = []
        self._events: list[tuple[float, Event]] = []
        self.table: Table | None = None
        self.is_recording = self.is_full = False
        self.is_playing = self._looped = False
        self._speed = 1.0
        self.time = 0.0
        """Where it is played or looked at, s."""

    # ---- recording --------------------------------------------------------------------------

    def begin(self, table: Table, q: Array, seen: Iterable[Event] = ()) -> None:
        """A new recording; the first state is q. seen: what pages know of obstacles and of what bumps by now."""
        with self._lock:
            self.table, self._begun, self._latest = table, self._clock(), 0.0
            self._times, self._q = [0.0], [np.array(q)]
            self._events = [(0.0, event) for event in seen]
            self.is_recording, self.is_full, self.is_playing, self.time = True, False, False, 0.0

    def add(self, q: Array) -> None:
        """It stands at q (nq,) now; nothing happens unless it records."""
        if not self.is_recording:
            return
        with self._lock:
            now = self._now()
            if not self.is_recording or self.table is None or len(q) != self.table.anatomy.nq:
                return
            if now > LONGEST or len(self._times) >= min(MOST, MOST_NUMBERS // max(1, len(q))):
                self.is_recording, self.is_full = False, True
                return
            if now <= self._times[-1]:
                self._q[-1] = np.array(q)  # too quick for the clock: the newer state is the one
                return
            self._times.append(now)
            self._q.append(np.array(q))

    def note(self, event: Event) -> None:
        """Pages are told something now; from any thread. Where obstacles stand and what bumps is a part of it."""
        if not self.is_recording or not isinstance(event, Obstacles | ObstacleMoved | Clashes):
            return
        with self._lock:
            if self.is_recording and len(self._events) < MOST:
                self._events.append((self._now(), event))

    def _now(self) -> float:
        """Seconds since it began, never fewer than before: the cores of a machine may disagree about the time."""
        self._latest = max(self._latest, self._clock() - self._begun)
        return self._latest

    def end(self, q: Array) -> None:
        """The last state is q, so that a rest at the end is a part of it."""
        self.add(q)
        self.is_recording = False

    def forget(self) -> None:
        """The mechanism is another one now."""
        with self._lock:
            self._times, self._q, self._events, self.table = [], [], [], None
            self.is_recording = self.is_playing = self.is_full = False
            self.time = 0.0

    def motion(self) -> tuple[Array, Array]:
        """Times (n,), s, and configurations (n, nq)."""
        with self._lock:
            if not self._times:
                raise Refused("nothing is recorded; record a motion first")
            return np.array(self._times), np.array(self._q)

    def events(self) -> list[tuple[float, Event]]:
        """What was told of obstacles and of what bumps, and when, s."""
        with self._lock:
            return list(self._events)

    # ---- playing ----------------------------------------------------------------------------

    def play(self, speed: float, looped: bool) -> None:
        if len(self._times) < 2:
            raise Refused("there is no motion to play; record one first")
        if self.time >= self.duration:
            self.time = 0.0
        self.is_recording, self.is_playing = False, True
        self._speed, self._looped = speed, looped

    def tick(self, seconds: float) -> Array:
        """Play on by so much of the real time; the configuration to be shown, (nq,)."""
        self.time += seconds * self._speed
        if self.time >= self.duration:
            self.time = self.time % self.duration if self._looped and self.duration > 0.0 else self.duration
            self.is_playing = self._looped
        return self.at(self.time)

    def at(self, when: float) -> Array:
        """The configuration (nq,) at a time, s; between two states on the straight way, unless it stood still."""
        if not self._times or self.table is None:
            raise Refused("nothing is recorded; record a motion first")
        self.time = min(max(when, 0.0), self.duration)
        k = bisect_right(self._times, self.time) - 1
        if k + 1 >= len(self._times):
            return self._q[-1]
        if self._times[k + 1] - self._times[k] > PAUSE:
            return self._q[k]
        space = self.table.mechanism.space
        share = (self.time - self._times[k]) / (self._times[k + 1] - self._times[k])
        return space.integrate(self._q[k], share * space.difference(self._q[k], self._q[k + 1]))

    @property
    def duration(self) -> float:
        """s."""
        return self._times[-1] if self._times else 0.0

    def info(self) -> Recording:
        state = (
            "recording" if self.is_recording else "playing" if self.is_playing else "ready" if self._times else "empty"
        )
        return Recording(state, len(self._times), self.duration, self.time)
