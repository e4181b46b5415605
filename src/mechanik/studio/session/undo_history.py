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
        goals, goals_now = self.edit_state.goals, now.edit_state.goals
        return len(goals) != len(goals_now) or any(a.pose != b.pose for a, b in zip(goals, goals_now, strict=True))


def obstacle_poses(edit_state: EditState) -> dict[str, bytes]:
    """Return the exact poses of the obstacles as bytes, by name."""
    return {obstacle.name: obstacle.pose.matrix.tobytes() for obstacle in edit_state.collisions.obstacles}


class UndoHistory:
    """Undo and redo steps, each with a label such as "move goal"."""

    def __init__(self) -> None:
        self._undo_steps: deque[tuple[str, SessionSnapshot]] = deque(maxlen=MAX_STEPS)
        self._redo_steps: list[tuple[str, SessionSnapshot]] = []

    def __len__(self) -> int:
        return len(self._undo_steps)

    def push(self, label: str, before: SessionSnapshot, now: LoadedModel) -> None:
        """Add an undo step and clear the redo steps.

        Args:
            label: text of the step.
            before: state before the step.
            now: the present model.
        """
        self._undo_steps.append((label, before))
        self._redo_steps.clear()
        self._drop_oldest(now)

    def _drop_oldest(self, now: LoadedModel) -> None:
        """Remove the oldest steps while their mechanisms have too many links or too large files."""
        links: dict[LoadedModel, int] = {}
        files = {id(now.files): 0}
        for k in reversed(range(len(self._undo_steps))):
            model = self._undo_steps[k][1].model
            if model in links:
                continue
            links[model] = len(model.index.link_names) if links else 0
            files.setdefault(id(model.files), model.file_bytes)
            if sum(links.values()) > MAX_STORED_LINKS or sum(files.values()) > MAX_STORED_BYTES:
                for _ in range(k + 1):
                    self._undo_steps.popleft()
                return

    def is_last(self, before: SessionSnapshot) -> bool:
        """Return whether the last step started from this snapshot."""
        return bool(self._undo_steps) and self._undo_steps[-1][1] is before

    def file_bytes(self, now: LoadedModel) -> int:
        """Return the size of the files of all mechanisms in the history and of the present one, bytes."""
        models = [now, *(step[1].model for step in (*self._undo_steps, *self._redo_steps))]
        return sum({id(model.files): model.file_bytes for model in models}.values())

    def undo(self, now: SessionSnapshot) -> SessionSnapshot:
        if not self._undo_steps:
            raise InvalidOperation("there is nothing to undo")
        label, before = self._undo_steps.pop()
        self._redo_steps.append((label, now))
        return before

    def redo(self, now: SessionSnapshot) -> SessionSnapshot:
        if not self._redo_steps:
            raise InvalidOperation("there is nothing to redo")
        label, after = self._redo_steps.pop()
        self._undo_steps.append((label, now))
        return after

    def info(self) -> events.History:
        return events.History(
            self._undo_steps[-1][0] if self._undo_steps else "", self._redo_steps[-1][0] if self._redo_steps else ""
        )
