"""Undo history of a session, and the interface of scenes that the parts of a session use."""

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
    """Interface of a scene that the parts of a session use; the scenes are in a higher layer.

    Attributes:
        name: identifier.
        title: title for users.
        about: description for users.
        shows_collisions: whether collision shapes are drawn when the scene opens.
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

    def controls(self) -> list[ControlInfo]:
        """Return the controls with their present values."""
        ...

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
        """Advance the scene by a time step, s."""
        ...

    def readouts(self) -> list[str]:
        """Return the lines of text that pages show."""
        ...


MAX_STEPS = 200
"""Maximum number of undo steps; the oldest are dropped."""


MAX_STORED_LINKS = 5_000
"""Maximum number of links of all mechanisms in the undo steps, without the links of the mechanism in the newest step.

An edit of the structure makes another mechanism, and the step keeps the previous one in memory.
"""


MAX_STORED_BYTES = 64_000_000
"""Maximum size of the files of mechanisms in the undo steps, without those of the present mechanism, bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class SessionSnapshot:
    """State of a session for undo.

    Attributes:
        model: the mechanism, by reference, since its structure never changes.
        edit_state: goals, limits and settings.
        q: configuration, (nq,).
        is_at_rest: whether the mechanism stays at q; if not, the solver continues from there.
        state: solver state at q; None if q is not from the solver.
        open_id: number of the opening of the mechanism or scene; if it differs, the camera is reset.
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

    def has_moved(self, present_snapshot: SessionSnapshot) -> bool:
        """Return whether q, the number or poses of goals, or names or poses of obstacles have changed.

        Args:
            present_snapshot: the state to compare with.
        """
        if self.q.shape != present_snapshot.q.shape or (self.q != present_snapshot.q).any():
            return True
        if obstacle_poses(self.edit_state) != obstacle_poses(present_snapshot.edit_state):
            return True
        goals, present_goals = self.edit_state.goals, present_snapshot.edit_state.goals
        return len(goals) != len(present_goals) or any(
            goal.pose != present_goal.pose for goal, present_goal in zip(goals, present_goals, strict=True)
        )


def obstacle_poses(edit_state: EditState) -> dict[str, bytes]:
    """Return the exact poses of the obstacles as bytes, by name."""
    return {obstacle.name: obstacle.pose.matrix.tobytes() for obstacle in edit_state.collision_settings.obstacles}


class UndoHistory:
    """Undo and redo steps, each with a label such as "move goal"."""

    def __init__(self) -> None:
        self._undo_steps: deque[tuple[str, SessionSnapshot]] = deque(maxlen=MAX_STEPS)
        self._redo_steps: list[tuple[str, SessionSnapshot]] = []

    def __len__(self) -> int:
        return len(self._undo_steps)

    def push(self, label: str, snapshot_before: SessionSnapshot, present_model: LoadedModel) -> None:
        """Add an undo step and clear the redo steps.

        Args:
            label: label of the step.
            snapshot_before: state before the step.
            present_model: the present model.
        """
        self._undo_steps.append((label, snapshot_before))
        self._redo_steps.clear()
        self._drop_oldest(present_model)

    def _drop_oldest(self, present_model: LoadedModel) -> None:
        """Remove the oldest steps until the others are within `MAX_STORED_LINKS` and `MAX_STORED_BYTES`."""
        link_counts: dict[LoadedModel, int] = {}
        file_sizes = {id(present_model.files): 0}
        for k in reversed(range(len(self._undo_steps))):
            model = self._undo_steps[k][1].model
            if model in link_counts:
                continue
            link_counts[model] = len(model.index.link_names) if link_counts else 0
            file_sizes.setdefault(id(model.files), model.file_bytes)
            if sum(link_counts.values()) > MAX_STORED_LINKS or sum(file_sizes.values()) > MAX_STORED_BYTES:
                for _ in range(k + 1):
                    self._undo_steps.popleft()
                return

    def is_last(self, snapshot: SessionSnapshot) -> bool:
        """Return whether the last undo step started from this snapshot."""
        return bool(self._undo_steps) and self._undo_steps[-1][1] is snapshot

    def file_bytes(self, present_model: LoadedModel) -> int:
        """Return the size of the files of all mechanisms in the history and of the present mechanism, bytes."""
        models = [present_model, *(step[1].model for step in (*self._undo_steps, *self._redo_steps))]
        return sum({id(model.files): model.file_bytes for model in models}.values())

    def undo(self, present_snapshot: SessionSnapshot) -> SessionSnapshot:
        """Move the last undo step to the redo steps, and return the state before it.

        Raises:
            InvalidOperation: there is nothing to undo.
        """
        if not self._undo_steps:
            raise InvalidOperation("there is nothing to undo")
        label, snapshot_before = self._undo_steps.pop()
        self._redo_steps.append((label, present_snapshot))
        return snapshot_before

    def redo(self, present_snapshot: SessionSnapshot) -> SessionSnapshot:
        """Move the last redo step to the undo steps, and return the state after it.

        Raises:
            InvalidOperation: there is nothing to redo.
        """
        if not self._redo_steps:
            raise InvalidOperation("there is nothing to redo")
        label, snapshot_after = self._redo_steps.pop()
        self._undo_steps.append((label, present_snapshot))
        return snapshot_after

    def info(self) -> events.History:
        """Return the labels of the next undo and redo step as pages receive them."""
        return events.History(
            self._undo_steps[-1][0] if self._undo_steps else "", self._redo_steps[-1][0] if self._redo_steps else ""
        )
