"""What waits to be sent to one page: events in a row, and of frames the newest of each layer."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
from collections import deque

from mechanik.studio.messages.frames import StateHeader

LAYER_AT = 8 * StateHeader._fields.index("layer")
MOST_LAYERS = 16
"""A page is shown at most six compared methods and the main one; what has another number replaces the last."""


class Outbox:
    """Filled from any thread, emptied by the loop in which it was made.

    A page that is slow misses frames and sees the newest. Events are never left out, so that too many of them mean that
    the page is lost (`is_full`). No frame goes out before the page was told what it is about (`greeted`).
    """

    def __init__(self, most: int, most_letters: int = 16_000_000) -> None:
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._lock = threading.Lock()
        self._most, self._most_letters, self._letters = most, most_letters, 0
        self._events: deque[str] = deque()
        self._frames: dict[int, bytes] = {}
        self._woken = False
        self._is_greeted = False
        self.is_full = False

    def put_event(self, text: str) -> None:
        with self._lock:
            self._letters += len(text)
            is_alone = not self._events  # one is always taken, however large
            if is_alone or (len(self._events) < self._most and self._letters <= self._most_letters):
                self._events.append(text)
            else:
                self.is_full = True
                self._events.clear()  # nobody will read them
            self._wake()

    def put_frame(self, frame: bytes) -> None:
        layer = int(struct.unpack_from("<d", frame, LAYER_AT)[0])
        with self._lock:
            self._frames[min(layer, MOST_LAYERS)] = frame
            self._wake()

    def greeted(self) -> None:
        """The page knows what frames are about."""
        with self._lock:
            self._is_greeted = True
            self._wake()

    async def take(self) -> list[str | bytes]:
        """All that waits, events first; waits until there is something."""
        await self._ready.wait()
        with self._lock:
            items: list[str | bytes] = list(self._events)
            self._events.clear()
            self._letters = 0
            if self._is_greeted:
                items += self._frames.values()
                self._frames.clear()
            self._woken = False
            self._ready.clear()
        return items

    def _wake(self) -> None:
        if not self._woken:
            self._woken = True
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._ready.set)
