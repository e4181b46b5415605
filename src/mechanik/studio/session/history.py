"""Undo and redo: what stood on the table, how it was set up and where it was, before each step."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from mechanik.errors import Refused
from mechanik.spatial.array import Array
from mechanik.studio.messages import events
from mechanik.studio.session.setup import Setup
from mechanik.studio.session.table import Table

MOST = 200
MOST_LINKS = 5_000
"""Of all mechanisms that are kept besides the one that stood there last: each that was edited away is kept whole."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """
    Attributes:
        table: by reference: its structure never changes.
        is_at_rest: whether it would stay at q; if not, it goes on from there.
    """

    table: Table
    setup: Setup
    q: Array
    is_at_rest: bool


class History:
    """Steps back and forth, each with its name in words, such as "move goal"."""

    def __init__(self) -> None:
        self._back: deque[tuple[str, Snapshot]] = deque(maxlen=MOST)
        self._forth: list[tuple[str, Snapshot]] = []

    def __len__(self) -> int:
        return len(self._back)

    def push(self, words: str, before: Snapshot) -> None:
        """A step was made; what was undone before cannot be redone any more."""
        self._back.append((words, before))
        self._forth.clear()
        self._forget_the_oldest()

    def _forget_the_oldest(self) -> None:
        """Steps back to mechanisms that are too many to be kept."""
        kept: dict[Table, int] = {}
        for at in reversed(range(len(self._back))):
            table = self._back[at][1].table
            kept.setdefault(table, len(table.anatomy.names) if kept else 0)
            if sum(kept.values()) > MOST_LINKS:
                for _ in range(at + 1):
                    self._back.popleft()
                return

    def clear(self) -> None:
        self._back.clear()
        self._forth.clear()

    def back(self, now: Snapshot) -> Snapshot:
        if not self._back:
            raise Refused("there is nothing to undo")
        words, before = self._back.pop()
        self._forth.append((words, now))
        return before

    def forth(self, now: Snapshot) -> Snapshot:
        if not self._forth:
            raise Refused("there is nothing to redo")
        words, after = self._forth.pop()
        self._back.append((words, now))
        return after

    def info(self) -> events.History:
        return events.History(self._back[-1][0] if self._back else "", self._forth[-1][0] if self._forth else "")
