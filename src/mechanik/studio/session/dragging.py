"""Drags and undo steps of a session; a drag from start to release is a single undo step."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from mechanik.errors import InvalidOperation
from mechanik.studio.messages.message_codec import DRAG_DOF, DRAG_GOAL, DRAG_OBSTACLE, LINK_DRAG_GOAL, DragUpdate
from mechanik.studio.session.edit_state import EditState, SessionSnapshot
from mechanik.studio.session.solve_spec import Drag
from mechanik.studio.session.solver_session import DragStep

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session


class UndoSteps:
    """Snapshots and undo steps; a part of `Session`."""

    @contextmanager
    def undo_step(self, label: str) -> Generator[None]:
        """Make the changes inside the context a single undo step; no step if it raises."""
        session = cast("Session", self)
        before = session.snapshot()
        yield
        session.push_step(label, before)
        session.output.broadcast(session.history.info())

    def push_step(self, label: str, before: SessionSnapshot) -> None:
        """Add an undo step from `before` to the present state."""
        session = cast("Session", self)
        session.history.push(label, before, session.active.model)

    def snapshot(self) -> SessionSnapshot:
        session = cast("Session", self)
        stage, scene = session.active, session.state.scene
        kept = None if scene is None else scene.snapshot()
        q, state = stage.q, stage.latest_state
        is_there = state is not None and np.array_equal(state.q, q)
        return SessionSnapshot(
            model=stage.model,
            edit_state=stage.edit_state,
            q=q,
            is_at_rest=stage.is_at_rest,
            state=state if is_there else None,
            open_id=session.state.open_id,
            scene=scene,
            scene_state=kept,
            curves=session.state.curves,
        )

    def restore(self, snapshot: SessionSnapshot) -> None:
        """Restore a snapshot, bit for bit."""
        session = cast("Session", self)
        stage = session.active
        is_another = snapshot.model is not stage.model
        other = (
            session.slot.make(snapshot.model, snapshot.edit_state, snapshot.q, stage.running) if is_another else stage
        )
        with session.broadcaster.broadcasting_scene():
            session.state.scene, session.state.curves = snapshot.scene, snapshot.curves
            if snapshot.scene is not None:
                snapshot.scene.restore(snapshot.scene_state)
            if is_another:
                session.slot.install(other, resets_view=snapshot.open_id != session.state.open_id)
            else:
                with stage.paused(resumes=False):
                    session.apply_edit(snapshot.edit_state)
            session.state.open_id = snapshot.open_id
            other.set_configuration(snapshot.q, resumes=not snapshot.is_at_rest, state=snapshot.state)
            session.background.comparison.move_to(snapshot.q)


DRAG_KINDS = {DRAG_GOAL: "goal", DRAG_DOF: "freedom", DRAG_OBSTACLE: "obstacle"}
DRAG_KIND_CODES = {kind: number for number, kind in DRAG_KINDS.items()}


class Dragging:
    """Drags of goals, dofs and obstacles; a part of `Session`."""

    def drag_to(self, update: DragUpdate) -> None:
        """Apply a drag update; the first state that includes it carries its tag."""
        session = cast("Session", self)
        with session.lock:
            if session.is_closed:
                return
            stage, held = session.active, session.active.drag
            kind = DRAG_KINDS[update.kind]
            is_late = held is None and stage.drag_state.last == (update.kind, update.number)
            is_gone = stage.drag_state.last_was_reverted or all(
                goal.number != update.number for goal in stage.edit_state.goals
            )
            if is_late and (kind != "goal" or is_gone):
                return  # it was sent before the release arrived, and there is nothing left to move
            if not is_late and (held is None or (held.kind, held.number) != (kind, update.number)):
                raise InvalidOperation(f"{kind} {update.number} is not in the hand; take it first")
            stage.tag = max(stage.tag, update.tag)
            if kind == "freedom":
                stage.drag_dof(update.numbers)
            elif kind == "obstacle":
                session.drag_obstacle(update.numbers)
            else:
                goal = stage.edit_state.goal(update.number)
                session.move_goal_frames({goal.number: goal.with_pose(update.numbers)})
                for watcher in tuple(session.goal_listeners):
                    watcher(update.number, stage.edit_state.goal(update.number).X)

    def start_drag(self, drag: Drag, label: str, edit_state: EditState | None = None) -> None:
        """Start a drag; everything until `end_drag` is a single undo step."""
        session = cast("Session", self)
        session.end_drag()
        before = session.snapshot()
        session.active.apply(session.active.edit_state if edit_state is None else edit_state, drag)
        session.active.drag_state.step = DragStep(label, before)

    def end_drag(self, reverts: bool = False) -> None:
        """End the present drag; goals that moved with their links stay where they are.

        Args:
            reverts: whether to restore the state before the drag instead.
        """
        session = cast("Session", self)
        stage = session.state.solver_session
        if stage is None or stage.drag is None:
            return
        held, since = stage.drag, stage.drag_state.step
        stage.drag_state.step = None
        if reverts and since is not None:
            with stage.paused(resumes=False):
                stage.apply(stage.edit_state)
            session.restore(since.before)
        elif held.kind == "obstacle" or (held.kind == "goal" and held.number != LINK_DRAG_GOAL):
            stage.apply(stage.edit_state)
        else:
            stage.settle()
            goals = tuple(goal for goal in stage.frame_packer.carried_goals(stage.q) if not goal.is_pull)
            stage.apply(replace(stage.edit_state, goals=goals))
            session.background.set_spec(stage.solve_spec)
        drag_state = session.active.drag_state
        drag_state.last, drag_state.last_was_reverted = (DRAG_KIND_CODES[held.kind], held.number), reverts
        if since is not None and not reverts and (since.is_change or since.before.has_moved(session.snapshot())):
            session.push_step(since.label, since.before)
        session.broadcaster.broadcast_goals()
        session.output.broadcast(session.history.info())
