"""The mechanism and the main solver of a session, and how their states reach pages and programs.

`SolverSession` applies edits and drags to a `LiveSolver` and sends a state frame for each state of this solver.
`StateSubscribers` calls functions of programs with each state, in a separate thread, since these functions may call
session methods that wait for the thread of the solver. `SessionState` contains the present solver session and scene.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from mechanik.errors import InvalidOperation, MechanikError
from mechanik.motion.live import LiveState
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import CurveInfo
from mechanik.studio.session.collision_monitor import ColliderCache, CollisionSnapshot
from mechanik.studio.session.edit_state import (
    EditState,
    InteractiveGoal,
    goal_terrains,
    same_goal_settings,
    same_limits_and_rest_values,
)
from mechanik.studio.session.frame_packer import FramePacker, FrameStatus
from mechanik.studio.session.loaded_model import LoadedModel
from mechanik.studio.session.motion_recorder import MotionRecorder
from mechanik.studio.session.solve_spec import (
    Drag,
    SolveSpec,
    adapt_to_method,
    drag_changes_problem,
    make_live_solver,
    make_solve_spec,
    same_problem,
    update_limits_and_solver,
    update_live_solver,
    with_drag,
    with_spec_targets,
)
from mechanik.studio.session.undo_history import SceneProtocol, SessionSnapshot
from mechanik.validation import read_only

StateSubscriber = Callable[[LiveState], object]
StateNumber = tuple[int, int]
"""Number of the solver session of a state, and `LiveState.sequence`; a later state never has a smaller tuple."""
MAX_QUEUED_STATES = 256
"""Maximum number of queued states; if subscribers are slower than the solver, the oldest are dropped."""
log = logging.getLogger("mechanik.studio")


class StateSubscribers:
    """Calls subscribers with each state, in a thread that starts with the first subscriber and ends with `close`."""

    def __init__(self) -> None:
        self._subscribers: list[StateSubscriber] = []
        self._states: deque[tuple[StateNumber, LiveState]] = deque(maxlen=MAX_QUEUED_STATES)
        self._last_delivered: StateNumber = (0, -1)
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def add(self, subscriber: StateSubscriber) -> Callable[[], None]:
        """Add a subscriber; return a function that removes it."""
        with self._condition:
            self._subscribers.append(subscriber)
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._run, name="mechanik state subscribers", daemon=True)
                self._thread.start()

        def remove() -> None:
            with self._condition:
                if subscriber in self._subscribers:
                    self._subscribers.remove(subscriber)

        return remove

    def publish(self, number: StateNumber, state: LiveState) -> None:
        """Queue a new state; never waits for a subscriber."""
        with self._condition:
            if self._thread is None:
                self._last_delivered = number
            else:
                self._states.append((number, state))
                self._condition.notify_all()

    def wait(self, number: StateNumber, timeout: float) -> None:
        """Wait until all subscribers have received this state or a newer one, at most `timeout` s.

        Subscribers must not call this method.
        """
        deadline = time.monotonic() + timeout
        with self._condition:
            while self._last_delivered < number and not self._is_closed:
                remaining_seconds = deadline - time.monotonic()
                if remaining_seconds <= 0.0:
                    return
                self._condition.wait(remaining_seconds)

    def close(self) -> None:
        """End the thread after the present state; no further state is passed on."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()

    def _run(self) -> None:
        while True:
            with self._condition:
                while not self._states and not self._is_closed:
                    self._condition.wait()
                if self._is_closed:
                    return
                (number, state), subscribers = self._states.popleft(), tuple(self._subscribers)
            for subscriber in subscribers:
                try:
                    subscriber(state)
                except Exception as error:
                    log.error(
                        "a callback for states raised an error and was removed: %s: %s", type(error).__name__, error
                    )
                    with self._condition:
                        if subscriber in self._subscribers:
                            self._subscribers.remove(subscriber)
            with self._condition:
                self._last_delivered = number
                self._condition.notify_all()


class SolverOutputs(NamedTuple):
    """Receivers of the output of a solver session.

    Attributes:
        send_frame: receives packed state frames, from any thread.
        check_collisions: receives each configuration that is shown, from any thread; see `CollisionMonitor`.
        broadcast_goals: sends the goals of an edit state to the pages, before the first state frame with these goals;
            returns the number (`order`) of the `Goals` event.
        recorder: records configurations, from any thread, while a recording runs.
        subscribers: functions of programs that are called with each state.
        solver_session_number: number of the solver session, which with the `sequence` of a state orders all states.
    """

    send_frame: Callable[[bytes], None]
    check_collisions: Callable[[CollisionSnapshot], None]
    broadcast_goals: Callable[[EditState], int]
    recorder: MotionRecorder
    subscribers: StateSubscribers
    solver_session_number: int


CHANGE_COUNT_BITS = 32
"""Number of low bits of a tag of the live solver that hold the number of changes.

The higher bits hold the tag of the drag update.
"""
SETTLE_SECONDS = 0.25
"""Maximum wait for the solver at the end of a drag, s."""


class DragStep(NamedTuple):
    """Undo step of the present drag.

    Attributes:
        label: label of the step.
        snapshot_before: state at the start of the drag.
        has_other_changes: whether something else, such as a scene control, has changed during the drag. The step is
            then added even if the drag has moved nothing.
    """

    label: str
    snapshot_before: SessionSnapshot
    has_other_changes: bool = False


@dataclass(slots=True)
class DragState:
    """Progress of drags in a solver session; each solver session has its own.

    Attributes:
        step: undo step of the present drag; None: nothing is dragged.
        last_drag: kind code and number of the last drag that ended, so that its late updates are recognised.
        is_last_cancelled: whether the last drag was cancelled.
    """

    step: DragStep | None = None
    last_drag: tuple[int, int] | None = None
    is_last_cancelled: bool = False


class SolverSession:
    """A loaded model, its edit state, and a `LiveSolver` that tracks the goals.

    Only one thread at a time may call the methods. States arrive in the thread of the solver, which takes `_frame_lock`
    and the locks of the outputs, but never the lock of the session.

    Attributes:
        model: the mechanism.
        edit_state: goals, limits and settings.
        running: False: the user has paused the solver; goals can move, and the mechanism does not follow.
        drag: the present drag, or None.
        drag_state: undo step of the present drag, and the last drag.
        latest_state: newest state of the solver, or of a configuration that was set later without resuming the solver;
            None before the first state.
        tag: tag of the newest drag update; state frames that include the update carry it.
        adaptation_text: which settings the method does not support; see `adapt_to_method`.
        live: the main solver, in a background thread.
        frame_packer: packs the state frames.
    """

    edit_state: EditState

    def __init__(
        self,
        model: LoadedModel,
        edit_state: EditState,
        q: Array,
        revision: int,
        outputs: SolverOutputs,
        running: bool = True,
        tag: int = 0,
    ) -> None:
        self.model, self.edit_state, self.running, self.tag = model, edit_state, running, tag
        self.drag: Drag | None = None
        self.drag_state = DragState()
        self.latest_state: LiveState | None = None
        self._change_count, self._pause_depth = 0, 0
        self._outputs = outputs
        self._frame_lock = threading.RLock()
        self._sequence = count(1)
        # configuration that was set here; None as soon as a newer state of the solver replaces it
        self._assigned_q: Array | None = read_only(np.array(q))
        self._is_closed = self._is_suspended = False
        self._colliders = ColliderCache(model)
        self._spec = make_solve_spec(
            edit_state, model.index.dofs, None, self._colliders.get(edit_state.collision_settings)
        )
        self._new_targets: dict[str, Any] = {}  # targets that are newer than those of `_spec`
        self._adapted_spec = adapt_to_method(self._spec)
        self.adaptation_text = self._adapted_spec.adaptation_text
        self.live = make_live_solver(model.mechanism, self._adapted_spec, q)
        self.frame_packer = FramePacker(
            revision, 0, model.index, edit_state.goals, {}, edit_state.terrain, goal_terrains(edit_state)
        )
        self.live.subscribe(self._on_state)
        self._set_live_targets(None)  # so that the first states carry the tag

    # ---- configuration ----------------------------------------------------------------------

    @property
    def q(self) -> Array:
        """Present configuration, (nq,), read-only."""
        assigned_q = self._assigned_q
        return self.live.state.q if assigned_q is None else assigned_q

    @property
    def solve_spec(self) -> SolveSpec:
        """The present problem, before `adapt_to_method` adapts it to the selected method."""
        if self._new_targets:
            self._spec, self._new_targets = with_spec_targets(self._spec, self._new_targets), {}
        return self._spec

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing moves until the next change."""
        state = self.latest_state
        if not self.live.running:
            return True
        return self._assigned_q is None and state is not None and state.is_at_rest and state.tag == self._live_tag

    @property
    def follows_solver(self) -> bool:
        """Whether the solver is not paused, and `q` is its newest state."""
        return self.running and self._assigned_q is None and self.latest_state is not None

    def carried_link_poses(self) -> dict[int, Array]:
        """Return the link poses in the world (4, 4) of all goals that follow their links in a drag, by goal number."""
        X, link_indices = self.model.index.link_poses(self.q), self.model.index.link_indices
        carried_goals = [
            goal for goal in self.edit_state.goals if goal.enabled and not goal.pinned and not goal.is_link_drag
        ]
        return {goal.number: X[link_indices[goal.link]] for goal in carried_goals}

    def set_configuration(self, q: Array, resumes: bool = True, state: LiveState | None = None) -> None:
        """Move to q (nq,).

        Args:
            q: the configuration.
            resumes: whether the solver continues from q; if not, q stays unchanged, bit for bit, until the next change.
            state: solver state at q, which subscribers receive again if the solver does not continue; None: no such
                state.
        """
        self.live.stop()
        self.live.move(q)
        self._set_live_targets(None)
        self._assigned_q = read_only(np.array(q, dtype=np.float64))
        if resumes:
            self.send_frame()
            self.resume()
        else:
            state = LiveState(self._assigned_q, is_at_rest=True) if state is None else state
            self.latest_state = state = replace(state, sequence=self.live.state.sequence, tag=self._live_tag)
            self.send_frame()
            self._publish_state(state)

    @contextmanager
    def paused(self, resumes: bool = True) -> Generator[None]:
        """Stop the solver inside the context, so that several changes take effect together.

        Args:
            resumes: whether to start the solver at the end. After an error, the solver runs if it ran before.
        """
        was_running = self.live.running
        self.live.stop()
        self._pause_depth += 1
        try:
            yield
        except BaseException:
            resumes = was_running
            raise
        finally:
            self._pause_depth -= 1
            if resumes:
                self.resume()

    def resume(self) -> None:
        """Start the solver, unless the user has paused it, or it is inside `paused`, suspended or closed."""
        can_run = self.running and not self._is_suspended and not self._is_closed and not self._pause_depth
        if can_run and not self.live.running:
            self.live.start()

    def set_running(self, running: bool) -> None:
        self.running = running
        if running:
            self.resume()
        else:
            self.live.stop()
        self.send_frame()

    def set_suspended(self, suspended: bool) -> None:
        """Suspend the solver, as during playback, or end the suspension."""
        self._is_suspended = suspended
        if suspended:
            self.live.stop()
        else:
            self.resume()

    def settle(self) -> None:
        """Wait at most `SETTLE_SECONDS` for the solver to finish the newest drag update."""
        if self.live.running:
            with suppress(Exception):
                self.live.solve().result(SETTLE_SECONDS)

    def step(self) -> None:
        """Run one iteration; see `LiveSolver.step`."""
        self.live.step()

    def close(self) -> None:
        self._is_closed = True
        self.live.dispose()

    # ---- problem ----------------------------------------------------------------------------

    def apply(self, edit_state: EditState, drag: Drag | None = None) -> None:
        """Apply another edit state or another drag; if the solver rejects it, nothing changes."""
        previous_edit_state, spec = (
            self.edit_state,
            make_solve_spec(
                edit_state, self.model.index.dofs, drag, self._colliders.get(edit_state.collision_settings)
            ),
        )
        if (
            not drag_changes_problem(drag, self.drag)
            and same_problem(edit_state, previous_edit_state)
            and same_limits_and_rest_values(edit_state, previous_edit_state)
        ):
            self.edit_state, self.drag, self._spec, self._new_targets = edit_state, drag, spec, {}
            return
        try:
            if same_limits_and_rest_values(edit_state, previous_edit_state):
                self._update_solver(spec)
            else:
                self._update_limits(edit_state, spec)
        except MechanikError:
            self._colliders.get(
                previous_edit_state.collision_settings
            )  # moves the obstacles of the cached collider back
            raise
        order = (
            None
            if same_goal_settings(edit_state.goals, previous_edit_state.goals)
            else self._outputs.broadcast_goals(edit_state)
        )
        self.edit_state, self.drag, self._spec, self._new_targets = edit_state, drag, spec, {}
        if spec.solver == edit_state.solver:  # a drag of a dof or link may use another method
            self.adaptation_text = self._adapted_spec.adaptation_text
        self._update_packer(order)
        self._set_live_targets(None)
        q_inside = self.model.mechanism.clamp(self.q) if edit_state.limits != previous_edit_state.limits else self.q
        if not np.array_equal(q_inside, self.q):
            self.set_configuration(q_inside, resumes=False)
        self._continue()

    def set_targets(self, edit_state: EditState, targets: Mapping[str, Any]) -> None:
        """Apply an edit state in which only targets of objectives are new.

        Args:
            edit_state: the new state.
            targets: new targets, by name of the objective.
        """
        previous_edit_state, self.edit_state = self.edit_state, edit_state
        self._update_packer()  # before the solver is updated: its next state must be shown with these goals
        live_targets = {
            objective.name: targets[objective.name]
            for objective in self._adapted_spec.goals
            if objective.name in targets
        }
        try:
            if live_targets:
                self._set_live_targets(self._adapted_spec.format_targets(live_targets))
        except MechanikError:  # not a valid target
            self.edit_state = previous_edit_state
            self._update_packer()
            raise
        self._new_targets |= targets
        self._continue(sends_frame=not live_targets)

    def move_goals(self, goals: Iterable[InteractiveGoal]) -> dict[str, Any]:
        """Apply goals of which only the poses have changed.

        Returns:
            The targets, by name of the goal; None for a goal whose change no target can express. The objectives of
                these goals were made again, unless all of them are disabled or `on_terrain`.
        """
        edit_state, needs_new_objective = self.edit_state, False
        targets: dict[str, Any] = {}
        for goal in goals:
            target = goal.target_after(edit_state.goal(goal.number))
            edit_state = edit_state.with_goal(goal)
            targets[goal.name] = target
            needs_new_objective |= target is None and goal.enabled and goal.kind != "on_terrain"
        if needs_new_objective:
            self.apply(edit_state, self.drag)
            return targets
        self.edit_state = edit_state
        self._update_packer()  # before the solver is updated: its next state must be shown with these goals
        goal_targets = {name: target for name, target in targets.items() if target is not None}
        live_targets = {
            k: goal_targets[objective.name]
            for k, objective in enumerate(self._adapted_spec.goals)
            if objective.name in goal_targets
        }
        if live_targets:
            self._count_change()
            self.live.set_targets_unchecked(live_targets, self._live_tag)  # the poses of goals are checked already
        self._new_targets |= goal_targets
        self._continue(sends_frame=not live_targets)
        return targets

    def drag_dof(self, values: tuple[float, ...]) -> None:
        """Set the value of the dragged dof; see `Drag.values`."""
        assert self.drag is not None
        self.drag = replace(self.drag, values=values)
        self._spec, target = with_drag(self.solve_spec, self.model.index.dofs, self.drag)
        self._adapted_spec = self._spec
        self._set_live_targets(self._adapted_spec.format_targets(target))
        self._continue()

    def move_obstacles(self, edit_state: EditState) -> None:
        """Apply an edit state in which only poses of obstacles are new; the solver keeps its collider."""
        collider = self._colliders.get(edit_state.collision_settings)
        self._spec = replace(self.solve_spec, collision_settings=edit_state.collision_settings, collider=collider)
        self._adapted_spec = replace(
            self._adapted_spec, collision_settings=edit_state.collision_settings, collider=collider
        )
        self.edit_state = edit_state
        self._set_live_targets(None)
        self._continue()

    def set_goals_number(self, order: int, sends: bool = False) -> None:
        """Set the number of the `Goals` event that state frames refer to.

        Args:
            order: number of the `Goals` event, which is also in the state frames.
            sends: whether to send a state frame at once if the solver is at rest.
        """
        with self._frame_lock:  # so that no state of the solver is sent with the old number in between
            self.frame_packer = replace(self.frame_packer, goals_number=order)
            if sends and self.is_at_rest:
                self.send_frame()

    def set_revision(self, revision: int) -> None:
        """Set the revision of the `Model` event that state frames refer to."""
        self.frame_packer = replace(self.frame_packer, revision=revision)

    # ---- state frames -----------------------------------------------------------------------

    def send_frame(self, q: Array | None = None) -> None:
        """Send a state frame of the present configuration, or of q (nq,)."""
        with self._frame_lock:
            if not self._is_closed:
                self._send(
                    self.frame_packer,
                    self.q if q is None else q,
                    FrameStatus.at_rest(self.latest_state, self.tag, self.running),
                )

    def send_preview(self, q: Array, carried_from: Mapping[int, Array]) -> None:
        """Send a state frame of the mechanism at q (nq,), with goals that move with their links.

        Args:
            q: the configuration.
            carried_from: see `Drag.carried_from`.
        """
        with self._frame_lock:
            self._send(
                replace(self.frame_packer, carried_from=carried_from),
                q,
                FrameStatus("IDLE", self.tag, is_at_rest=False),
            )

    def _on_state(self, state: LiveState) -> None:
        """Handle a state, in the thread of the solver."""
        with self._frame_lock:
            if self._is_closed or len(state.q) != self.frame_packer.index.nq:
                return
            status = None if self._spec.goals or state.error_message else "IDLE"
            self._send(
                self.frame_packer, state.q, FrameStatus.from_state(state, state.tag >> CHANGE_COUNT_BITS, status=status)
            )
            self.latest_state, self._assigned_q = state, None
        self._publish_state(state)

    def _publish_state(self, state: LiveState) -> None:
        """Pass a state to the recorder and to the subscribers."""
        recorder, subscribers, solver_session_number = (
            self._outputs.recorder,
            self._outputs.subscribers,
            self._outputs.solver_session_number,
        )
        if recorder.is_recording:
            recorder.add(state.q)
        subscribers.publish((solver_session_number, state.sequence), state)

    def _send(self, packer: FramePacker, q: Array, status: FrameStatus) -> None:
        self._outputs.send_frame(packer.pack(q, next(self._sequence), status))
        self._outputs.check_collisions(
            CollisionSnapshot(self.model, self.edit_state.collision_settings, q, packer.revision)
        )

    def _update_packer(self, order: int | None = None) -> None:
        carried_from: Mapping[int, Array] = {} if self.drag is None else self.drag.carried_from
        self.frame_packer = self.frame_packer.with_edit_state(self.edit_state, carried_from, self.model.index, order)

    # ---- internals --------------------------------------------------------------------------

    def _continue(self, sends_frame: bool = False) -> None:
        """Start the solver; send a state frame if it does not run.

        Args:
            sends_frame: whether to send a state frame in any case, because the solver has nothing new to compute.
        """
        self.resume()
        if sends_frame or not self.live.running:
            self.send_frame()

    def _set_live_targets(self, targets: Any) -> None:
        self._count_change()
        self.live.set_targets(targets, self._live_tag)

    def _count_change(self) -> None:
        self._change_count = (self._change_count + 1) % (1 << CHANGE_COUNT_BITS)

    @property
    def _live_tag(self) -> int:
        """Tag of the newest change: tag of the newest drag update (high bits) and number of changes (low bits)."""
        return self.tag << CHANGE_COUNT_BITS | self._change_count

    def _update_solver(self, spec: SolveSpec) -> None:
        self._adapted_spec = update_live_solver(self.live, spec, self._adapted_spec)

    def _update_limits(self, edit_state: EditState, spec: SolveSpec) -> None:
        """Change limits or rest values of the mechanism; restore them if the result is not valid."""
        try:
            self._adapted_spec = update_limits_and_solver(self.live, self.model, edit_state, spec, self._adapted_spec)
        except MechanikError:
            self._adapted_spec = update_limits_and_solver(
                self.live, self.model, self.edit_state, self.solve_spec, self._adapted_spec
            )
            raise
        self.model.rebuild_index()


@dataclass(slots=True)
class SessionState:
    """What is open in a session at present; all parts of the session share it.

    Attributes:
        solver_session: mechanism and solver; None until a mechanism is opened.
        scene: the open scene, or None.
        curves: polylines in the world.
        model_radius: radius of the bounding sphere of the mechanism, m.
        open_id: number of the last opening of a mechanism or scene; undo restores it.
    """

    solver_session: SolverSession | None = None
    scene: SceneProtocol | None = None
    curves: Sequence[CurveInfo] = ()
    model_radius: float = 1.0
    open_id: int = 0

    @property
    def active(self) -> SolverSession:
        """The solver session.

        Raises:
            InvalidOperation: no mechanism is open.
        """
        if self.solver_session is None:
            raise InvalidOperation("no mechanism is open; open one first")
        return self.solver_session
