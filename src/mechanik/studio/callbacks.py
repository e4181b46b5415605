"""Functions of a program that are called with each state of its studio."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from mechanik.live import LiveState
from mechanik.studio.session.session import Session

Callback = Callable[[LiveState], Any]
log = logging.getLogger("mechanik.studio")


class Callbacks:
    """Called one after the other in a thread of their own. One that raises is not called again, and its words are
    logged: it must not end what the session itself does with a state."""

    def __init__(self, session: Session) -> None:
        self._all: tuple[Callback, ...] = ()
        self._news = threading.Condition()
        self._heard = session.live.state.sequence
        session.subscribe(self._hear)

    def add(self, callback: Callback) -> Callable[[], None]:
        """From the next state on, until what is returned is called."""
        with self._news:
            self._all = (*self._all, callback)
        return lambda: self._drop(callback)

    def wait(self, state: LiveState, seconds: float) -> None:
        """Until all were called with that state or a newer one, or so long."""
        until = time.monotonic() + seconds
        with self._news:
            while self._heard < state.sequence and (left := until - time.monotonic()) > 0:
                self._news.wait(left)

    def _hear(self, state: LiveState) -> None:
        for callback in self._all:
            try:
                callback(state)
            except Exception as error:
                log.error("a callback is not called again: %s: %s", type(error).__name__, error)
                self._drop(callback)
        with self._news:
            self._heard = state.sequence
            self._news.notify_all()

    def _drop(self, callback: Callback) -> None:
        with self._news:
            self._all = tuple(one for one in self._all if one is not callback)
