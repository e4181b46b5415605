"""Undo and redo: what stood on the table, how it was set up, where it was and in which scene, before each step."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from mechanik.errors import Refused
from mechanik.live import LiveState
from mechanik.spatial.array import Array
from mechanik.studio.messages import events
from mechanik.studio.session.scene_like import SceneLike
from mechanik.studio.session.setup import Setup
from mechanik.studio.session.table import Table

MOST = 200
MOST_LINKS = 5_000
"""Of all mechanisms that are kept besides the one that stood there last: each that was edited away is kept whole."""
MOST_BYTES = 64_000_000
"""Of the files that came along with mechanisms which do not stand there any more."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """
    Attributes:
        table: by reference: its structure never changes.
        is_at_rest: whether it would stay at q; if not, it goes on from there.
        state: in which the solver had it at q; None if it came there otherwise.
        opened: how many things had been opened until then; of another one all shall be seen.
        scene, kept: the demonstration, and what it was like (`SceneLike.keep`).
        curves: lines in the world.
    """

    table: Table
    setup: Setup
    q: Array
    is_at_rest: bool
    state: LiveState | None
    opened: int
    scene: SceneLike | None
    kept: object
    curves: Sequence[events.CurveInfo]

    def differs(self, now: Snapshot) -> bool:
        """Whether the mechanism, a goal or an obstacle stands elsewhere."""
        if self.q.shape != now.q.shape or (self.q != now.q).any():
            return True
        if places(self.setup) != places(now.setup):
            return True
        one, other = self.setup.goals, now.setup.goals
        return len(one) != len(other) or any(a.pose != b.pose for a, b in zip(one, other, strict=True))


def places(setup: Setup) -> dict[str, bytes]:
    """Of obstacles, to the bit, by their names."""
    return {one.name: one.pose.matrix.tobytes() for one in setup.collisions.obstacles}


class History:
    """Steps back and forth, each with its name in words, such as "move goal"."""

    def __init__(self) -> None:
        self._back: deque[tuple[str, Snapshot]] = deque(maxlen=MOST)
        self._forth: list[tuple[str, Snapshot]] = []

    def __len__(self) -> int:
        return len(self._back)

    def push(self, words: str, before: Snapshot, now: Table) -> None:
        """A step was made; what was undone before cannot be redone any more.

        Args:
            now: what stands there since.
        """
        self._back.append((words, before))
        self._forth.clear()
        self._forget_the_oldest(now)

    def _forget_the_oldest(self, now: Table) -> None:
        """Steps back to mechanisms that are too many to be kept, or came with too many files."""
        links: dict[Table, int] = {}
        files = {id(now.files): 0}
        for at in reversed(range(len(self._back))):
            table = self._back[at][1].table
            if table in links:
                continue
            links[table] = len(table.anatomy.names) if links else 0
            files.setdefault(id(table.files), table.file_bytes)
            if sum(links.values()) > MOST_LINKS or sum(files.values()) > MOST_BYTES:
                for _ in range(at + 1):
                    self._back.popleft()
                return

    def is_last(self, before: Snapshot) -> bool:
        """Whether the last step is the one before which that was so."""
        return bool(self._back) and self._back[-1][1] is before

    def file_bytes(self, now: Table) -> int:
        """Of the files of all mechanisms that are kept, and of what stands there now."""
        tables = [now, *(step[1].table for step in (*self._back, *self._forth))]
        return sum({id(table.files): table.file_bytes for table in tables}.values())

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
