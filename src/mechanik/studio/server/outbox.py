"""What waits to be sent to one page: all events, and of frames the newest of each layer, in the order they came in."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
from itertools import count

from mechanik.studio.messages.frames import StateHeader

LAYER_AT = 8 * StateHeader._fields.index("layer")
MOST_LAYERS = 16
"""A page is shown at most six compared methods and the main one; what has another number replaces the last."""


class Outbox:
    """Filled from any thread, emptied by the loop in which it was made.

    A page that is slow misses frames and sees the newest. Events are never left out, so that too many of them mean that
    the page is lost (`is_full`). Who is told that something is done has been shown what came of it. No frame goes out
    before the page was told what it is about (`greeted`).
    """

    def __init__(self, most: int, most_letters: int = 16_000_000) -> None:
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._lock = threading.Lock()
        self._most, self._most_letters, self._letters = most, most_letters, 0
        self._items: dict[int, str | bytes] = {}  # events under numbers that grow, frames under -1 - layer
        self._numbers, self._events = count(), 0
        self._woken = False
        self._is_greeted = False
        self.is_full = False

    def put_event(self, text: str) -> None:
        with self._lock:
            self._letters += len(text)
            is_alone = self._events == 0  # one is always taken, however large
            if is_alone or (self._events < self._most and self._letters <= self._most_letters):
                self._items[next(self._numbers)] = text
                self._events += 1
            else:
                self.is_full = True
                self._items, self._events = self._frames(), 0  # nobody will read them
            self._wake()

    def put_frame(self, frame: bytes) -> None:
        layer = int(struct.unpack_from("<d", frame, LAYER_AT)[0])
        key = -1 - min(layer, MOST_LAYERS)
        with self._lock:
            self._items.pop(key, None)
            self._items[key] = frame
            self._wake()

    def greeted(self) -> None:
        """The page knows what frames are about."""
        with self._lock:
            for key in self._frames():
                self._items[key] = self._items.pop(key)  # behind what it was told
            self._is_greeted = True
            self._wake()

    async def take(self) -> list[str | bytes]:
        """All that waits; waits until there is something."""
        await self._ready.wait()
        with self._lock:
            kept: dict[int, str | bytes] = {} if self._is_greeted else self._frames()
            items = [item for key, item in self._items.items() if key not in kept]
            self._items, self._events, self._letters = kept, 0, 0
            self._woken = False
            self._ready.clear()
        return items

    def _frames(self) -> dict[int, str | bytes]:
        return {key: item for key, item in self._items.items() if key < 0}

    def _wake(self) -> None:
        if not self._woken:
            self._woken = True
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._ready.set)
