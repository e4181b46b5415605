"""Undo history of a session, and the interface of the scenes that it restores."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mechanik.errors import (
    InvalidOperation,
)
from mechanik.motion.live import LiveState
from mechanik.spatial.array import Array
from mechanik.studio.messages import events
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.messages.requests import (
    Value,
)
from mechanik.studio.session.edit_state import (
    EditState,
)
from mechanik.studio.session.loaded_model import LoadedModel


class SceneProtocol(Protocol):
    """What the parts of a session need of a scene; the scenes themselves are in a higher layer.

    Attributes:
        name: identifier.
        title: title.
        about: description, two to four sentences.
        shows_collisions: whether collision shapes are drawn from the start.
    """

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def shows_collisions(self) -> bool: ...
    @property
    def is_moving(self) -> bool:
        """Whether `tick` moves anything at present."""
        ...

    def controls(self) -> list[ControlInfo]: ...
    def set(self, name: str, value: Value) -> None:
        """Set a control; a value that is not valid raises and changes nothing."""
        ...

    def snapshot(self) -> object:
        """Return the state of the scene for `restore`; later changes do not affect it."""
        ...

    def restore(self, state: Any) -> None:
        """Restore a state from `snapshot`; the session itself restores mechanism, goals and curves."""
        ...

    def tick(self, seconds: float) -> None:
        """Advance the scene by `seconds`."""
        ...

    def readouts(self) -> list[str]:
        """Return lines for the display."""
        ...


MAX_STEPS = 200


MAX_STORED_LINKS = 5_000
"""Maximum number of links of all mechanisms in the history besides the last one; edited mechanisms are stored whole."""


MAX_STORED_BYTES = 64_000_000
"""Maximum size of the files of mechanisms in the history, bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class SessionSnapshot:
    """State of a session for undo.

    Attributes:
        model: the mechanism, by reference, since its structure never changes.
        edit_state: goals, limits and settings.
        q: configuration, (nq,).
        is_at_rest: whether it stays at q; if not, the solver continues from there.
        state: solver state at q; None if q was set otherwise.
        open_id: identifies what was opened; the camera resets if it differs.
        scene, scene_state: the scene and its state (`SceneProtocol.snapshot`).
        curves: polylines in the world.
    """

    model: LoadedModel
    edit_state: EditState
    q: Array
    is_at_rest: bool
    state: LiveState | None
    open_id: int
    scene: SceneProtocol | None
    scene_state: object
    curves: Sequence[events.CurveInfo]

    def has_moved(self, now: SessionSnapshot) -> bool:
        """Return whether q, a goal or an obstacle differs from `now`."""
        if self.q.shape != now.q.shape or (self.q != now.q).any():
            return True
        if obstacle_poses(self.edit_state) != obstacle_poses(now.edit_state):
            return True
        one, other = self.edit_state.goals, now.edit_state.goals
        return len(one) != len(other) or any(a.pose != b.pose for a, b in zip(one, other, strict=True))


def obstacle_poses(edit_state: EditState) -> dict[str, bytes]:
    """Return the exact poses of the obstacles as bytes, by name."""
    return {one.name: one.pose.matrix.tobytes() for one in edit_state.collisions.obstacles}


class UndoHistory:
    """Undo and redo steps, each with a label such as "move goal"."""

    def __init__(self) -> None:
        self._back: deque[tuple[str, SessionSnapshot]] = deque(maxlen=MAX_STEPS)
        self._forth: list[tuple[str, SessionSnapshot]] = []

    def __len__(self) -> int:
        return len(self._back)

    def push(self, label: str, before: SessionSnapshot, now: LoadedModel) -> None:
        """Add an undo step and clear the redo steps.

        Args:
            label: text of the step.
            before: state before the step.
            now: the present model.
        """
        self._back.append((label, before))
        self._forth.clear()
        self._forget_the_oldest(now)

    def _forget_the_oldest(self, now: LoadedModel) -> None:
        """Remove the oldest steps while their mechanisms have too many links or too large files."""
        links: dict[LoadedModel, int] = {}
        files = {id(now.files): 0}
        for at in reversed(range(len(self._back))):
            table = self._back[at][1].model
            if table in links:
                continue
            links[table] = len(table.index.link_names) if links else 0
            files.setdefault(id(table.files), table.file_bytes)
            if sum(links.values()) > MAX_STORED_LINKS or sum(files.values()) > MAX_STORED_BYTES:
                for _ in range(at + 1):
                    self._back.popleft()
                return

    def is_last(self, before: SessionSnapshot) -> bool:
        """Return whether the last step started from this snapshot."""
        return bool(self._back) and self._back[-1][1] is before

    def file_bytes(self, now: LoadedModel) -> int:
        """Return the size of the files of all mechanisms in the history and of the present one, bytes."""
        tables = [now, *(step[1].model for step in (*self._back, *self._forth))]
        return sum({id(table.files): table.file_bytes for table in tables}.values())

    def undo(self, now: SessionSnapshot) -> SessionSnapshot:
        if not self._back:
            raise InvalidOperation("there is nothing to undo")
        words, before = self._back.pop()
        self._forth.append((words, now))
        return before

    def redo(self, now: SessionSnapshot) -> SessionSnapshot:
        if not self._forth:
            raise InvalidOperation("there is nothing to redo")
        words, after = self._forth.pop()
        self._back.append((words, now))
        return after

    def info(self) -> events.History:
        return events.History(self._back[-1][0] if self._back else "", self._forth[-1][0] if self._forth else "")
