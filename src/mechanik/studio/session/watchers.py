"""Those of a program who want to hear of each state, called from a thread of their own.

Not from the solver's: what they are called for may ask the session for something, which may wait for that thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from mechanik.live import LiveState

Watcher = Callable[[LiveState], object]
Number = tuple[int, int]
"""Of a state: which background solver of the session it comes from, and its `sequence` there. They only grow."""
MOST = 256
"""States that wait; of a watcher that is slower than the solver the oldest are dropped."""
log = logging.getLogger("mechanik.studio")


class Watchers:
    """The thread begins with the first watcher, and ends with `close`."""

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []
        self._states: deque[tuple[Number, LiveState]] = deque(maxlen=MOST)
        self._heard: Number = (0, -1)
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def add(self, watcher: Watcher) -> Callable[[], None]:
        """What is returned takes it away again."""
        with self._news:
            self._watchers.append(watcher)
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._work, name="mechanik watchers", daemon=True)
                self._thread.start()

        def end() -> None:
            with self._news:
                if watcher in self._watchers:
                    self._watchers.remove(watcher)

        return end

    def put(self, number: Number, state: LiveState) -> None:
        """A new state; never waits for a watcher."""
        with self._news:
            if self._thread is None:
                self._heard = number
            else:
                self._states.append((number, state))
                self._news.notify_all()

    def wait(self, number: Number, seconds: float) -> None:
        """Until all were called with the state of that number or a newer one, or so long. Not for watchers."""
        until = time.monotonic() + seconds
        with self._news:
            while self._heard < number and not self._is_closed and (left := until - time.monotonic()) > 0:
                self._news.wait(left)

    def close(self) -> None:
        """No further call is begun."""
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
