"""Undo steps and drags of a session; a drag from start to release is a single undo step."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from mechanik.errors import InvalidOperation
from mechanik.studio.messages.message_codec import DRAG_DOF, DRAG_GOAL, DRAG_OBSTACLE, LINK_DRAG_GOAL, DragUpdate
from mechanik.studio.session.broadcast import Broadcaster, SharedParts, SolverSessionInstaller
from mechanik.studio.session.edit_state import EditState
from mechanik.studio.session.session_editor import ObstacleEditor, SessionEditor
from mechanik.studio.session.solve_spec import Drag
from mechanik.studio.session.solver_session import DragStep
from mechanik.studio.session.undo_history import SessionSnapshot


class UndoSteps:
    """Snapshots and undo steps of a session; call with the session's lock held."""

    def __init__(
        self, shared: SharedParts, broadcaster: Broadcaster, installer: SolverSessionInstaller, editor: SessionEditor
    ) -> None:
        self._state, self._history, self._output = shared.state, shared.history, shared.output
        self._background = shared.background
        self._broadcaster, self._installer, self._editor = broadcaster, installer, editor

    @contextmanager
    def step(self, label: str) -> Generator[None]:
        """Make the changes inside the context a single undo step; if the context raises, no step is added."""
        snapshot_before = self.snapshot()
        yield
        self.push(label, snapshot_before)
        self._output.broadcast(self._history.info())

    def push(self, label: str, snapshot_before: SessionSnapshot) -> None:
        """Add an undo step from `snapshot_before` to the present state."""
        self._history.push(label, snapshot_before, self._state.active.model)

    def snapshot(self) -> SessionSnapshot:
        """Return the present state of the session."""
        active, scene = self._state.active, self._state.scene
        q, state = active.q, active.latest_state
        is_state_of_q = state is not None and np.array_equal(state.q, q)
        return SessionSnapshot(
            model=active.model,
            edit_state=active.edit_state,
            q=q,
            is_at_rest=active.is_at_rest,
            state=state if is_state_of_q else None,
            open_id=self._state.open_id,
            scene=scene,
            scene_state=None if scene is None else scene.snapshot(),
            curves=self._state.curves,
        )

    def restore(self, snapshot: SessionSnapshot) -> None:
        """Restore a snapshot, its configuration bit for bit."""
        active = previous_solver_session = self._state.active
        if snapshot.model is not previous_solver_session.model:
            active = self._installer.make(
                snapshot.model, snapshot.edit_state, snapshot.q, previous_solver_session.running
            )
        with self._broadcaster.broadcasting_scene():
            self._state.scene, self._state.curves = snapshot.scene, snapshot.curves
            if snapshot.scene is not None:
                snapshot.scene.restore(snapshot.scene_state)
            if active is not previous_solver_session:
                self._installer.install(active, resets_view=snapshot.open_id != self._state.open_id)
            else:
                with active.paused(resumes=False):
                    self._editor.apply_edit(snapshot.edit_state)
            self._state.open_id = snapshot.open_id
            active.set_configuration(snapshot.q, resumes=not snapshot.is_at_rest, state=snapshot.state)
            self._background.comparison.move_to(snapshot.q)

    def undo(self) -> None:
        """Undo the last step.

        Raises:
            InvalidOperation: there is nothing to undo.
        """
        self.restore(self._history.undo(self.snapshot()))
        self._output.broadcast(self._history.info())

    def redo(self) -> None:
        """Redo the step that was undone last.

        Raises:
            InvalidOperation: there is nothing to redo.
        """
        self.restore(self._history.redo(self.snapshot()))
        self._output.broadcast(self._history.info())


DRAG_KINDS = {DRAG_GOAL: "goal", DRAG_DOF: "dof", DRAG_OBSTACLE: "obstacle"}
"""Kind of the dragged object, by its code in a drag update."""
DRAG_KIND_CODES = {kind: code for code, kind in DRAG_KINDS.items()}


class Dragging:
    """Drags of goals, links, dofs and obstacles; call with the session's lock held."""

    def __init__(
        self, shared: SharedParts, broadcaster: Broadcaster, obstacles: ObstacleEditor, undo: UndoSteps
    ) -> None:
        self._state, self._history, self._output = shared.state, shared.history, shared.output
        self._background = shared.background
        self._broadcaster, self._obstacles, self._undo = broadcaster, obstacles, undo

    def drag_to(self, update: DragUpdate) -> None:
        """Apply a drag update; state frames that include the update have its tag, or that of a newer one.

        An update that arrives after the end of its drag moves a goal that still exists, unless the drag was cancelled.
        Other late updates are ignored.

        Raises:
            InvalidOperation: the update belongs neither to the present drag nor, if there is none, to the last drag.
        """
        active = self._state.active
        drag, drag_state, kind = active.drag, active.drag_state, DRAG_KINDS[update.kind]
        is_late = drag is None and drag_state.last_drag == (update.kind, update.number)
        is_obsolete = drag_state.is_last_cancelled or all(
            goal.number != update.number for goal in active.edit_state.goals
        )
        if is_late and (kind != "goal" or is_obsolete):
            return  # the page sent the update before it knew that the drag had ended
        if not is_late and (drag is None or (drag.kind, drag.number) != (kind, update.number)):
            raise InvalidOperation(f"{kind} {update.number} is not being dragged; start a drag first")
        active.tag = max(active.tag, update.tag)
        if kind == "dof":
            active.drag_dof(update.values)
        elif kind == "obstacle":
            self._obstacles.drag_obstacle(update.values)
        else:
            goal = active.edit_state.goal(update.number)
            self._background.set_targets(active, active.move_goals([goal.with_pose_numbers(update.values)]))

    def start_drag(self, drag: Drag, label: str, edit_state: EditState | None = None) -> None:
        """Start a drag; all changes until `end_drag` are a single undo step.

        Args:
            drag: what is dragged.
            label: label of the undo step.
            edit_state: edit state during the drag; None: the present one.
        """
        self.end_drag()
        snapshot_before, active = self._undo.snapshot(), self._state.active
        active.apply(active.edit_state if edit_state is None else edit_state, drag)
        active.drag_state.step = DragStep(label, snapshot_before)

    def end_drag(self, reverts: bool = False) -> None:
        """End the present drag; goals that moved with their links stay at the poses that they have reached.

        Args:
            reverts: whether to restore the state before the drag instead.
        """
        active = self._state.solver_session
        if active is None or active.drag is None:
            return
        drag, step = active.drag, active.drag_state.step
        active.drag_state.step = None
        if reverts and step is not None:
            with active.paused(resumes=False):
                active.apply(active.edit_state)
            self._undo.restore(step.snapshot_before)
        elif drag.kind == "obstacle" or (drag.kind == "goal" and drag.number != LINK_DRAG_GOAL):
            active.apply(active.edit_state)
        else:
            active.settle()
            goals = tuple(goal for goal in active.frame_packer.carried_goals(active.q) if not goal.is_link_drag)
            active.apply(replace(active.edit_state, goals=goals))
            self._background.set_spec(active.solve_spec)
        drag_state = self._state.active.drag_state
        drag_state.last_drag, drag_state.is_last_cancelled = (DRAG_KIND_CODES[drag.kind], drag.number), reverts
        if (
            step is not None
            and not reverts
            and (step.has_other_changes or step.snapshot_before.has_moved(self._undo.snapshot()))
        ):
            self._undo.push(step.label, step.snapshot_before)
        self._broadcaster.broadcast_goals()
        self._output.broadcast(self._history.info())
