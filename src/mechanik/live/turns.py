"""Whose turn it is at the mechanism: one at a time, and those who ask by hand before the thread that ticks."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager


class Turns:
    """A lock that a thread may take again while it has it, and that the thread of a background solver leaves to others.

    Args:
        news: told whenever a turn ends.
    """

    def __init__(self, news: threading.Condition) -> None:
        self._news = news
        self._holder, self._asking = 0, 0

    @property
    def is_mine(self) -> bool:
        return self._holder == threading.get_ident()

    @property
    def is_free(self) -> bool:
        """Whether nobody has it, and nobody asks for it."""
        return not (self._holder or self._asking)

    def take(self) -> None:
        """To be called with the condition held, and where `is_free`."""
        self._holder = threading.get_ident()

    def give_back(self) -> None:
        with self._news:
            self._holder = 0
            self._news.notify_all()

    @contextmanager
    def taken(self) -> Generator[None]:
        """Wait for it, have it, give it back."""
        if self.is_mine:
            yield
            return
        with self._news:
            self._asking += 1
            try:
                self._news.wait_for(lambda: self._holder == 0)
                self.take()
            finally:
                self._asking -= 1
        try:
            yield
        finally:
            self.give_back()
