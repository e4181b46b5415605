"""The thread of a live solver: states and listeners, settings, locking, and the solve loop.

The thread that has the `PriorityLock` may use the mechanism, the solver and the settings. A condition protects the lock
itself and the requests of other threads: new targets, a new q, futures and callbacks.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from time import perf_counter
from typing import Any

import numpy as np

from mechanik.errors import InvalidOperation, ShapeError
from mechanik.model import Mechanism
from mechanik.motion.live.tick_solver import TickRate, TickSolver, transfer_q
from mechanik.objectives import Objective, RestPose
from mechanik.objectives.objective import as_objectives
from mechanik.processor_clock import thread_clock
from mechanik.solver import Solver
from mechanik.solver.methods.method import Method
from mechanik.solver.options import OPTION_NAMES, DofNames
from mechanik.solver.solution import Solution, Status
from mechanik.solver.target_writer import Targets
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import read_only


@dataclass(frozen=True, slots=True, eq=False)
class LiveState:
    """State of a live solver after a tick, or before the first tick.

    Attributes:
        q: (nq,), read-only.
        solution: result of the tick; None before the first tick, if there is nothing to solve, and after a failure.
        sequence: increases by 1 from state to state.
        tag: integer that was passed with the targets of this state.
        is_at_rest: whether the solver has finished and sleeps until a change.
        seconds: processor time of the tick, s; wall time on Windows.
        iterations: number of iterations of the tick.
        status: status of the tick; PENDING before the first tick and after a failure, CONVERGED if there is nothing to
            solve.
        ticks_per_second: ticks within the last second.
        error_message: message of the error in the tick; empty if it did not fail.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.4])
        >>> live = mk.LiveSolver(arm, mk.PositionGoal("tool", (0.6, 0.2, 0)))
        >>> live.state.sequence, live.state.status.name
        (0, 'PENDING')
        >>> live.dispose()
    """

    q: Array
    solution: Solution | None = None
    sequence: int = 0
    tag: int = 0
    is_at_rest: bool = False
    seconds: float = 0.0
    iterations: int = 0
    status: Status = Status.PENDING
    ticks_per_second: float = 0.0
    error_message: str = ""

    @property
    def error(self) -> float:
        """Largest error of a required objective or a loop closure, m or rad; 0 without a solution.

        The error is computed on access, with the mechanism as it is then. If you edit the mechanism, read the error in
        a callback.
        """
        solution = self.solution
        if solution is None:
            return 0.0
        objective_errors = zip(solution.objectives, solution.errors.values(), strict=True)
        errors = [error for objective, error in objective_errors if objective.required] + list(
            solution.closure_errors.values()
        )
        return max((max(error.position, error.rotation) for error in errors), default=0.0)


StateCallback = Callable[[LiveState], object]
"""Function that is called with each new state."""
MAX_ERRORS = 16
"""Largest number of callback exceptions that are stored."""


class StateListeners:
    """Callbacks for new states; a callback that raises is removed and does not affect the others.

    Attributes:
        errors: the last exceptions that callbacks raised.
    """

    def __init__(self) -> None:
        self.errors: deque[BaseException] = deque(maxlen=MAX_ERRORS)
        self._callbacks: dict[int, StateCallback] = {}
        self._new_keys = count()

    def add(self, callback: StateCallback) -> Callable[[], None]:
        """Add a callback; return a function that removes it."""
        key = next(self._new_keys)
        self._callbacks[key] = callback

        def unsubscribe() -> None:
            self._callbacks.pop(key, None)

        return unsubscribe

    def clear(self) -> None:
        self._callbacks.clear()

    def notify(self, state: LiveState) -> None:
        """Call all callbacks in the order in which they were added."""
        for key, callback in tuple(self._callbacks.items()):
            if key not in self._callbacks:  # removed by an earlier callback
                continue
            try:
                callback(state)
            except BaseException as error:  # no exception may end the thread
                self._callbacks.pop(key, None)
                self.errors.append(error)


LiveGoals = Objective | Iterable[Objective]
RestTarget = ArrayLike | Mapping[str, ArrayLike] | bool
"""Rest pose, as `Solver` takes it."""
AVOID_OPTIONS = ("avoid", "clearance", "allow", "forbid", "avoid_as")
COMMON_OPTIONS = (*OPTION_NAMES, "active", "weights", *AVOID_OPTIONS)
"""Options that stay when the method changes, because every method takes them."""


@dataclass(frozen=True, slots=True, eq=False)
class LiveSettings:
    """Settings from which a solver is built; see `Solver` for their meaning.

    Attributes:
        goals: None: the goals of the mechanism's graph. Empty: only loops and joint constraints.
        solver: the method.
        lock: joints or dofs that must not move.
        limits: (lower, upper) by joint or dof name.
        rest: rest pose.
        options: further options of `Solver`.
    """

    goals: tuple[Objective, ...] | None
    solver: str | Method = "lm"
    lock: tuple[Any, ...] = ()
    limits: Mapping[str, ArrayLike] | None = None
    rest: RestTarget | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def with_changes(
        self,
        goals: LiveGoals | None,
        solver: str | Method | None,
        lock: DofNames | str | None,
        limits: Mapping[str, ArrayLike] | None,
        rest: RestTarget | None,
        options: Mapping[str, Any],
    ) -> LiveSettings:
        """Copy with the given changes; None leaves a setting as it is.

        A change of the method keeps only the options that every method takes.

        Raises:
            InvalidOperation: `max_seconds` is among the options.
        """
        if "max_seconds" in options:
            raise InvalidOperation(
                "max_seconds is not an option of a live solver; give the time for each tick as budget"
            )
        old_options = (
            self.options
            if solver is None
            else {name: self.options[name] for name in self.options if name in COMMON_OPTIONS}
        )
        if "avoid" in options and options["avoid"] is None:  # collision avoidance is switched off
            old_options = {name: old_options[name] for name in old_options if name not in AVOID_OPTIONS}
        return replace(
            self,
            goals=self.goals if goals is None else as_objectives(goals),
            solver=self.solver if solver is None else solver,
            lock=self.lock if lock is None else as_names(lock),
            limits=self.limits if limits is None else limits,
            rest=self.rest if rest is None else rest,
            options={**old_options, **options},
        )

    def build(self, mechanism: Mechanism) -> Solver | None:
        """Build a solver for the mechanism as it is now; None if there is nothing to solve."""
        goals: LiveGoals | None = self.goals
        if goals == ():
            if not (mechanism.closures or mechanism.joint_constraints):
                return None
            goals = RestPose(np.array(mechanism.q), angle_mode="exact", name="moved configuration")
        # the solution follows moving targets and must not jump to another branch
        options: dict[str, Any] = {"restarts": 0, **self.options}
        return Solver(
            mechanism, goals, solver=self.solver, lock=self.lock, limits=self.limits, rest=self.rest, **options
        )


def as_names(lock: DofNames | str) -> tuple[Any, ...]:
    """Return a name or several names as a tuple."""
    return (lock,) if isinstance(lock, str) or not isinstance(lock, Iterable) else tuple(lock)


class PriorityLock:
    """A reentrant lock on the mechanism; other threads that wait for it have priority over the solve loop.

    Args:
        condition: notified whenever the lock is released.
    """

    def __init__(self, condition: threading.Condition) -> None:
        self._condition = condition
        self._holder_id, self._waiting_count = 0, 0

    @property
    def is_mine(self) -> bool:
        """Whether the current thread has the lock."""
        return self._holder_id == threading.get_ident()

    @property
    def is_free(self) -> bool:
        """Whether no thread has the lock or waits for it."""
        return not (self._holder_id or self._waiting_count)

    def acquire(self) -> None:
        """Take the lock; call with the condition held and only if no thread has the lock."""
        self._holder_id = threading.get_ident()

    def release(self) -> None:
        """Release the lock and notify the condition."""
        with self._condition:
            self._holder_id = 0
            self._condition.notify_all()

    @contextmanager
    def acquire_with_priority(self) -> Generator[None]:
        """Return a context manager that waits for the lock at its start and releases it at its end.

        It does neither if the current thread already has the lock.
        """
        if self.is_mine:
            yield
            return
        with self._condition:
            self._waiting_count += 1
            try:
                self._condition.wait_for(lambda: self._holder_id == 0)
                self.acquire()
            finally:
                self._waiting_count -= 1
        try:
            yield
        finally:
            self.release()


MAX_EXIT_WAIT = 2.0
"""s: longest wait at exit of the interpreter for the end of a tick."""


class SolverRun:
    """A run of the solve loop in its own thread, from `start` to `stop`.

    Attributes:
        must_end: whether the thread must end.
        thread: the thread that runs the solve loop.
    """

    def __init__(self, background_solver: BackgroundSolver) -> None:
        self.must_end = False
        self.thread = threading.Thread(
            target=background_solver.solve_loop, args=(self,), name="mechanik live", daemon=True
        )


class BackgroundSolver:
    """The solve loop behind a `LiveSolver`.

    It has no reference to its `LiveSolver`, so that a `LiveSolver` without references is garbage collected, which ends
    the thread.
    """

    def __init__(self, mechanism: Mechanism, settings: LiveSettings, q: ArrayLike | None, budget: float) -> None:
        self.mechanism, self.settings, self.budget = mechanism, settings, budget
        self.listeners = StateListeners()
        self.is_disposed = False
        self.current_run: SolverRun | None = None
        self._condition = threading.Condition()
        self._lock, self._edit_depth = PriorityLock(self._condition), 0
        self._futures: list[Future[LiveState]] = []
        self._rate = TickRate()
        self._has_changes, self._is_busy, self._tag = True, False, 0
        self._new_q: Array | None = None
        self._has_new_goals = False
        self._build_error: Exception | None = None
        self._revision: tuple[int, ...] = ()
        start = np.array(mechanism.q if q is None else mechanism._single_q(q))
        self._tick_solver = self._build(start)
        self.state = LiveState(read_only(start.copy()))

    # ---- requests from any thread --------------------------------------------------------------

    def set_targets(self, targets: Targets | None, tag: int) -> None:
        """Set new targets and wake the thread; see `LiveSolver.set_targets`."""
        with self._condition:
            self._check_usable()
            if targets is not None:
                self._tick_solver.target_store.put(targets)
            replaced_futures = self._wake(tag)
        cancel_futures(replaced_futures)

    def set_targets_unchecked(self, targets: Mapping[int, Any], tag: int) -> None:
        """Set new targets by index of the objective, and wake the thread; see `LiveSolver.set_targets_unchecked`."""
        with self._condition:
            self._check_usable()
            self._tick_solver.target_store.put_unchecked(targets)
            replaced_futures = self._wake(tag)
        cancel_futures(replaced_futures)

    def solve(self, targets: Targets | None) -> Future[LiveState]:
        """Set targets and return a future for the state at rest; see `LiveSolver.solve`."""
        future: Future[LiveState] = Future()
        with self._condition:
            self._check_usable()
            replaced_futures: list[Future[LiveState]] = []
            if targets is not None:
                self._tick_solver.target_store.put(targets)
                replaced_futures = self._wake(self._tag)
            is_at_work = self._is_busy or self._has_work()
            is_done = not is_at_work and not self.state.error_message
            if not is_done:
                self._has_changes |= not is_at_work  # try again after a failure
                self._futures.append(future)
                self._condition.notify_all()
        cancel_futures(replaced_futures)
        if is_done:
            future.set_result(self.state)
        return future

    def move(self, q: ArrayLike) -> None:
        """Continue from q (nq,)."""
        with self._condition:
            self._check_usable()
            values = self._tick_solver.space.check_q(q)
            if values.ndim != 1:
                raise ShapeError(f"q must be one configuration (nq,), not of shape {values.shape}")
            self._new_q = np.array(values)
            self._condition.notify_all()

    def change(self, update: Callable[[LiveSettings], LiveSettings] | None, budget: float | None) -> None:
        """Change settings and rebuild the solver; inside an edit it is rebuilt at the end of the edit.

        Args:
            update: function that returns new settings for the current settings; None: only the budget changes.
            budget: s; None: the budget stays.
        """
        if update is None:
            self.budget = self.budget if budget is None else budget
            return
        with self._lock.acquire_with_priority():
            self._check_usable()
            previous_settings, self.settings = self.settings, update(self.settings)
            had_new_goals = self._has_new_goals
            self._has_new_goals |= self.settings.goals is not previous_settings.goals
            try:
                if self._edit_depth == 0:
                    self._rebuild()
            except BaseException:
                self.settings, self._has_new_goals = previous_settings, had_new_goals
                raise
            self.budget = self.budget if budget is None else budget

    @contextmanager
    def edit(self) -> Generator[Mechanism]:
        """Return a context manager that holds the lock during an edit and rebuilds the solver afterwards."""
        with self._lock.acquire_with_priority():
            self._check_usable()
            self._edit_depth += 1
            try:
                yield self.mechanism
            except BaseException:
                self._edit_depth -= 1
                if self._edit_depth == 0:
                    self._rebuild_after_edit()
                raise
            self._edit_depth -= 1
            if self._edit_depth == 0 and (failure := self._rebuild_after_edit()) is not None:
                raise failure

    def step(self) -> LiveState:
        """Make a single iteration in the calling thread."""
        if self._lock.is_mine:
            raise InvalidOperation(
                "step cannot be called inside a callback or an edit of the same live solver; call it afterwards"
            )
        with self._lock.acquire_with_priority():
            self._check_usable()
            return self._tick(is_step=True)

    def subscribe(self, callback: StateCallback) -> Callable[[], None]:
        """Add a callback; return a function that removes it."""
        with self._condition:
            self._check_usable()
            return self.listeners.add(callback)

    # ---- the thread ---------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether the thread is alive and was not stopped."""
        run = self.current_run
        return run is not None and not run.must_end and run.thread.is_alive()

    def start(self) -> None:
        """Start the thread, if it does not run."""
        with self._condition:
            self._check_usable()
            if not self.is_running:
                self.current_run = SolverRun(self)
                self.current_run.thread.start()
                BACKGROUND_SOLVERS.add(self)

    def stop(self, wait: bool, max_wait: float | None = None) -> None:
        """Tell the thread to end.

        Args:
            wait: whether to wait until the thread has ended; a call in the thread itself does not wait.
            max_wait: s, longest wait; None: unlimited.
        """
        with self._condition:
            run = self.current_run
            if run is None:
                return
            run.must_end = True
            self._condition.notify_all()
        if wait and run.thread is not threading.current_thread():
            run.thread.join(max_wait)

    def dispose(self, wait: bool) -> None:
        """Stop permanently: cancel futures and remove callbacks."""
        self.stop(wait)
        with self._condition:
            self.is_disposed = True
            futures, self._futures = self._futures, []
            self.listeners.clear()
        cancel_futures(futures)
        self.stop(wait)  # another thread may have started a new run in between; from now on `start` raises

    def solve_loop(self, run: SolverRun) -> None:
        """Until the thread must end: sleep until there is work and the lock is free, then tick."""
        while True:
            with self._condition:
                while not run.must_end and not (self._lock.is_free and self._has_work()):
                    self._condition.wait()
                if run.must_end:
                    return
                self._lock.acquire()
            try:
                self._tick(is_step=False)
            finally:
                self._lock.release()

    # ---- internals ----------------------------------------------------------------------------

    def _check_usable(self) -> None:
        if self.is_disposed:
            raise InvalidOperation("this live solver was disposed; create a new one")

    def _wake(self, tag: int) -> list[Future[LiveState]]:
        """Wake the thread for new targets, and return the futures of the previous targets.

        The caller must release the condition and then cancel these futures: `Future.cancel` calls user code, which must
        not run with the condition held.
        """
        self._tag, self._has_changes = tag, True
        replaced_futures, self._futures = self._futures, []
        self._condition.notify_all()
        return replaced_futures

    def _has_work(self) -> bool:
        return self._has_changes or self._new_q is not None or not self._tick_solver.is_at_rest or self._is_stale

    @property
    def _is_stale(self) -> bool:
        """Whether the mechanism was edited since the solver was built."""
        return self.mechanism.revision != self._revision

    def _build(self, q: Array) -> TickSolver:
        self._revision = self.mechanism.revision
        return TickSolver(self.mechanism, self.settings.build(self.mechanism), self.settings.goals == (), q)

    def _rebuild(self) -> None:
        """Rebuild the solver for the current mechanism and settings.

        q is transferred. Targets are transferred unless there are new goals.
        """
        q_names = self._tick_solver.space.q_names
        new_tick_solver = self._build(transfer_q(q_names, self._tick_solver.q, self.mechanism))
        replaced_futures: list[Future[LiveState]] = []
        with self._condition:
            if self._new_q is not None:
                self._new_q = transfer_q(q_names, self._new_q, self.mechanism)
            if self._has_new_goals:
                replaced_futures, self._futures = self._futures, []
            else:
                new_tick_solver.target_store.copy_matching(self._tick_solver.target_store)
            self._tick_solver, self._build_error = new_tick_solver, None
            self._has_new_goals, self._has_changes = False, True
            self._condition.notify_all()
        cancel_futures(replaced_futures)

    def _rebuild_after_edit(self) -> Exception | None:
        """Rebuild the solver after an edit; return the error if the rebuild fails.

        After a failure nothing is solved until other settings or another edit allow it.
        """
        try:
            self._rebuild()
        except Exception as failure:
            with self._condition:
                self._build_error, self._has_changes = failure, True
                self._condition.notify_all()
            return failure
        return None

    def _tick(self, is_step: bool) -> LiveState:
        """Make a tick or a step; the caller holds the lock."""
        if self._is_stale:  # an edit outside `edit`
            self._rebuild_after_edit()
        with self._condition:
            tick_solver = self._tick_solver
            if self._new_q is not None:
                tick_solver.move(self._new_q)
            elif self._has_changes:
                tick_solver.reset_progress()
            self._has_changes, self._new_q, self._is_busy = False, None, True
            targets, tag = tick_solver.targets(), self._tag
        start_time, solution, failure = thread_clock(), None, self._build_error
        if failure is None:
            try:
                solution = tick_solver.step(targets) if is_step else tick_solver.tick(targets, self.budget)
            except Exception as error:
                failure = error
            except BaseException:  # Ctrl-C during a step
                self._is_busy = False
                raise
        tick_solver.is_at_rest |= failure is not None
        end_time = thread_clock()
        status = Status.CONVERGED if solution is None else solution.status
        state = LiveState(
            q=read_only(tick_solver.q.copy()),
            solution=solution,
            sequence=self.state.sequence + 1,
            tag=tag,
            is_at_rest=tick_solver.is_at_rest,
            seconds=max(0.0, end_time - start_time),
            iterations=0 if solution is None else solution.iterations,
            status=status if failure is None else Status.PENDING,
            ticks_per_second=self._rate.update(perf_counter()),
            error_message="" if failure is None else str(failure) or type(failure).__name__,
        )
        self._publish(state, failure)
        return state

    def _publish(self, state: LiveState, failure: Exception | None) -> None:
        """Store the state, resolve the futures if there is no further work, and notify the listeners."""
        with self._condition:
            self.state, self._is_busy = state, False
            futures: list[Future[LiveState]] = []
            if not self._has_work():
                futures, self._futures = self._futures, []
        for future in futures:
            if not future.set_running_or_notify_cancel():
                continue
            if failure is None:
                future.set_result(state)
            else:
                future.set_exception(failure)
        self.listeners.notify(state)


def cancel_futures(futures: Iterable[Future[LiveState]]) -> None:
    """Cancel all futures."""
    for future in futures:
        future.cancel()


BACKGROUND_SOLVERS: weakref.WeakSet[BackgroundSolver] = weakref.WeakSet()
"""All solvers whose thread was started; `stop_all` stops them at exit of the interpreter."""


@atexit.register
def stop_all() -> None:
    """Stop all threads at exit, because no thread may be inside a kernel when the interpreter ends."""
    for background_solver in list(BACKGROUND_SOLVERS):
        background_solver.stop(wait=True, max_wait=MAX_EXIT_WAIT)
