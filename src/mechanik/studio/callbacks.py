"""Functions of a program that are called with each state of its studio."""

from __future__ import annotations

import logging
import threading
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
        self._lock = threading.Lock()
        session.subscribe(self._hear)

    def add(self, callback: Callback) -> Callable[[], None]:
        """From the next state on, until what is returned is called."""
        with self._lock:
            self._all = (*self._all, callback)
        return lambda: self._drop(callback)

    def _hear(self, state: LiveState) -> None:
        for callback in self._all:
            try:
                callback(state)
            except Exception as error:
                log.error("a callback is not called again: %s: %s", type(error).__name__, error)
                self._drop(callback)

    def _drop(self, callback: Callback) -> None:
        with self._lock:
            self._all = tuple(one for one in self._all if one is not callback)
