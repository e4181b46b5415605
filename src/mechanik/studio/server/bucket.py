"""A token bucket: how often something may be done."""

from __future__ import annotations

import time
from collections.abc import Callable


class Bucket:
    """Holds `room` tokens when full, and gains `rate` a second."""

    def __init__(self, rate: float, room: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._room, self._clock = rate, room, clock
        self._tokens, self._filled = room, clock()

    def take(self, tokens: float = 1.0) -> bool:
        """So many tokens, if there are as many."""
        now = max(self._filled, self._clock())  # which may run backwards between cores, and takes no tokens away
        self._tokens = min(self._room, self._tokens + (now - self._filled) * self._rate)
        self._filled = now
        if self._tokens < tokens:
            return False
        self._tokens -= tokens
        return True

    @property
    def wait(self) -> float:
        """Seconds until there will be one token."""
        missing = 1.0 - self._tokens - max(0.0, self._clock() - self._filled) * self._rate
        return max(0.0, missing / self._rate)
