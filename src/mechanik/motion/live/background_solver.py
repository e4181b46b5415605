"""The thread of a live solver: states and listeners, settings, locking, and the solve loop.

A single condition protects the newest targets, q and settings. Callers from other threads have priority over the solve
loop at the mechanism.
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
    """State of a live solver after a tick.

    Attributes:
        q: (nq,), read-only.
        solution: result of the tick; None before the first tick, if there is nothing to solve, and after a failure.
        sequence: increases by 1 from state to state.
        tag: number of the newest targets that the state is for.
        is_at_rest: whether the solver has finished and sleeps until a change.
        seconds: processor time of the tick, s; wall time on Windows.
        iterations: of this tick.
        status: status of the tick; PENDING before the first tick and after a failure.
        ticks_per_second: ticks within the last second.
        problem: message of the error in the tick; empty if it did not fail.

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
    problem: str = ""

    @property
    def error(self) -> float:
        """Largest error of a required objective or a loop closure, m or rad.

        It is computed on access with the current mechanism: read it in a callback if the graph is edited.
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
"""Number of callback exceptions that are stored."""


class StateListeners:
    """Callbacks for new states; a callback that raises is removed and does not affect the others.

    Attributes:
        errors: the last exceptions that callbacks raised.
    """

    def __init__(self) -> None:
        self.errors: deque[BaseException] = deque(maxlen=MAX_ERRORS)
        self._callbacks: dict[int, StateCallback] = {}
        self._numbers = count()

    def add(self, callback: StateCallback) -> Callable[[], None]:
        """Add a callback; return a function that removes it."""
        number = next(self._numbers)
        self._callbacks[number] = callback

        def unsubscribe() -> None:
            self._callbacks.pop(number, None)

        return unsubscribe

    def clear(self) -> None:
        self._callbacks.clear()

    def notify(self, state: LiveState) -> None:
        """Call all callbacks in the order in which they were added."""
        for number, callback in tuple(self._callbacks.items()):
            if number not in self._callbacks:  # removed by a callback before it
                continue
            try:
                callback(state)
            except BaseException as error:  # no exception may end the thread
                self._callbacks.pop(number, None)
                self.errors.append(error)


LiveGoals = Objective | Iterable[Objective]
RestTarget = ArrayLike | Mapping[str, ArrayLike] | bool
"""Rest pose, as `Solver` takes it."""
AVOID_OPTIONS = ("avoid", "clearance", "allow", "forbid", "avoid_as")
COMMON_OPTIONS = (*OPTION_NAMES, "active", "weights", *AVOID_OPTIONS)
"""Options that stay when the method changes, because every solver takes them."""


@dataclass(frozen=True, slots=True, eq=False)
class LiveSettings:
    """Settings from which a solver is built; see `Solver` for their meaning.

    Attributes:
        goals: None: the goals of the mechanism's graph. Empty: only loops and joint constraints.
        solver: the method.
        lock: joints or dofs that may not move.
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
        # a dragged link follows the pointer and must not jump to another branch
        options: dict[str, Any] = {"restarts": 0, **self.options}
        return Solver(
            mechanism, goals, solver=self.solver, lock=self.lock, limits=self.limits, rest=self.rest, **options
        )


def as_names(lock: DofNames | str) -> tuple[Any, ...]:
    """A name or several names as a tuple."""
    return (lock,) if isinstance(lock, str) or not isinstance(lock, Iterable) else tuple(lock)


class PriorityLock:
    """A reentrant lock on the mechanism that the solve loop leaves to other threads first.

    Args:
        condition: notified whenever the lock is released.
    """

    def __init__(self, condition: threading.Condition) -> None:
        self._condition = condition
        self._holder, self._waiting = 0, 0

    @property
    def is_mine(self) -> bool:
        """Whether the current thread has the lock."""
        return self._holder == threading.get_ident()

    @property
    def is_free(self) -> bool:
        """Whether no thread has the lock or waits for it."""
        return not (self._holder or self._waiting)

    def acquire(self) -> None:
        """Take the lock; call with the condition held and only if `is_free`."""
        self._holder = threading.get_ident()

    def release(self) -> None:
        """Release the lock and notify the condition."""
        with self._condition:
            self._holder = 0
            self._condition.notify_all()

    @contextmanager
    def acquire_first(self) -> Generator[None]:
        """Context manager: wait for the lock, hold it, release it."""
        if self.is_mine:
            yield
            return
        with self._condition:
            self._waiting += 1
            try:
                self._condition.wait_for(lambda: self._holder == 0)
                self.acquire()
            finally:
                self._waiting -= 1
        try:
            yield
        finally:
            self.release()


EXIT_WAIT = 2.0
"""s: longest wait at exit of the interpreter for the end of a tick."""


class SolverRun:
    """A thread from start to stop."""

    def __init__(self, engine: BackgroundSolver) -> None:
        self.is_over = False
        self.thread = threading.Thread(target=engine.run, args=(self,), name="mechanik live", daemon=True)


class BackgroundSolver:
    """The solve loop behind a `LiveSolver`.

    It has no reference to its `LiveSolver`, so that an unused one is garbage collected and ends the thread. A single
    condition protects the newest targets, q, settings and the lock. Callers from other threads have priority over the
    solve loop.
    """

    def __init__(self, mechanism: Mechanism, settings: LiveSettings, q: ArrayLike | None, budget: float) -> None:
        self.mechanism, self.settings, self.budget = mechanism, settings, budget
        self.listeners = StateListeners()
        self.is_disposed = False
        self.current: SolverRun | None = None
        self._condition = threading.Condition()
        self._lock, self._depth = PriorityLock(self._condition), 0
        self._futures: list[Future[LiveState]] = []
        self._rate = TickRate()
        self._has_changes, self._is_busy, self._tag = True, False, 0
        self._new_q: Array | None = None
        self._has_new_goals = False
        self._build_error: Exception | None = None
        start = np.array(mechanism.q if q is None else mechanism._single_q(q))
        self._tick_solver = self._build(start)
        self.state = LiveState(read_only(start.copy()))

    # ---- requests from any thread --------------------------------------------------------------

    def set_targets(self, targets: Targets | None, tag: int) -> None:
        """Set new targets and wake the thread; see `LiveSolver.set_targets`."""
        with self._condition:
            self._check_usable()
            if targets is not None:
                self._tick_solver.mailbox.put(targets)
            replaced = self._wake(tag)
        cancel_futures(replaced)

    def set_targets_unchecked(self, targets: Mapping[int, Any], tag: int) -> None:
        """Set new targets by index of the objective, and wake the thread; see `LiveSolver.set_targets_unchecked`."""
        with self._condition:
            self._check_usable()
            self._tick_solver.mailbox.put_unchecked(targets)
            replaced = self._wake(tag)
        cancel_futures(replaced)

    def solve(self, targets: Targets | None) -> Future[LiveState]:
        """Set targets and return a future for the state at rest; see `LiveSolver.solve`."""
        future: Future[LiveState] = Future()
        with self._condition:
            self._check_usable()
            replaced: list[Future[LiveState]] = []
            if targets is not None:
                self._tick_solver.mailbox.put(targets)
                replaced = self._wake(self._tag)
            is_at_work = self._is_busy or self._has_work()
            is_done = not is_at_work and not self.state.problem
            if not is_done:
                self._has_changes |= not is_at_work  # try again after a failure
                self._futures.append(future)
                self._condition.notify_all()
        cancel_futures(replaced)
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

    def change(self, settings: Callable[[LiveSettings], LiveSettings] | None, budget: float | None) -> None:
        """Change settings by a function of the current ones; inside an edit the solver is rebuilt at its end."""
        if settings is None:
            self.budget = self.budget if budget is None else budget
            return
        with self._lock.acquire_first():
            self._check_usable()
            before, self.settings = self.settings, settings(self.settings)
            self._has_new_goals |= self.settings.goals is not before.goals
            try:
                if self._depth == 0:
                    self._rebuild()
            except BaseException:
                self.settings, self._has_new_goals = before, False
                raise
            self.budget = self.budget if budget is None else budget

    @contextmanager
    def edit(self) -> Generator[Mechanism]:
        """Context manager that holds the lock for an edit of the mechanism and rebuilds the solver afterwards."""
        with self._lock.acquire_first():
            self._check_usable()
            self._depth += 1
            try:
                yield self.mechanism
            except BaseException:
                self._depth -= 1
                if self._depth == 0:
                    self._rebuild_after_edit()
                raise
            self._depth -= 1
            if self._depth == 0 and (problem := self._rebuild_after_edit()) is not None:
                raise problem

    def step(self) -> LiveState:
        """Make a single iteration in the calling thread."""
        if self._lock.is_mine:
            raise InvalidOperation(
                "step cannot be called inside a callback or an edit of the same live solver; call it afterwards"
            )
        with self._lock.acquire_first():
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
        """Whether the thread is alive."""
        run = self.current
        return run is not None and not run.is_over and run.thread.is_alive()

    def start(self) -> None:
        """Start the thread, if it does not run."""
        with self._condition:
            self._check_usable()
            if not self.is_running:
                self.current = SolverRun(self)
                self.current.thread.start()
                BACKGROUND_SOLVERS.add(self)

    def stop(self, wait: bool, at_most: float | None = None) -> None:
        """End the thread.

        Args:
            wait: whether to wait for its end, except in the thread itself.
            at_most: s, longest wait; None: unlimited.
        """
        with self._condition:
            run = self.current
            if run is None:
                return
            run.is_over = True
            self._condition.notify_all()
        if wait and run.thread is not threading.current_thread():
            run.thread.join(at_most)

    def dispose(self, wait: bool) -> None:
        """Stop for good: cancel futures and remove callbacks."""
        self.stop(wait)
        with self._condition:
            self.is_disposed = True
            futures, self._futures = self._futures, []
            self.listeners.clear()
        cancel_futures(futures)
        self.stop(wait)  # another thread may have started it in between, which is impossible from now on

    def run(self, run: SolverRun) -> None:
        """Solve loop of the thread: sleep until there is work and the lock is free, then tick."""
        while True:
            with self._condition:
                while not run.is_over and not (self._lock.is_free and self._has_work()):
                    self._condition.wait()
                if run.is_over:
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
        """Wake the thread for new targets; return the futures to cancel, which the caller does outside the condition.

        `Future.cancel` calls user code, which must not run with the condition held.
        """
        self._tag, self._has_changes = tag, True
        replaced, self._futures = self._futures, []
        self._condition.notify_all()
        return replaced

    def _has_work(self) -> bool:
        return self._has_changes or self._new_q is not None or not self._tick_solver.is_at_rest

    def _build(self, q: Array) -> TickSolver:
        return TickSolver(self.mechanism, self.settings.build(self.mechanism), self.settings.goals == (), q)

    def _rebuild(self) -> None:
        """Rebuild the solver for the current mechanism and settings; q and targets are transferred."""
        names = self._tick_solver.space.q_names
        new_solver = self._build(transfer_q(names, self._tick_solver.q, self.mechanism))
        replaced: list[Future[LiveState]] = []
        with self._condition:
            if self._new_q is not None:
                self._new_q = transfer_q(names, self._new_q, self.mechanism)
            if self._has_new_goals:
                replaced, self._futures = self._futures, []
            else:
                new_solver.mailbox.copy_matching(self._tick_solver.mailbox)
            self._tick_solver, self._build_error, self._has_new_goals, self._has_changes = new_solver, None, False, True
            self._condition.notify_all()
        cancel_futures(replaced)

    def _rebuild_after_edit(self) -> Exception | None:
        """Rebuild the solver after an edit; return the error if that fails.

        Then nothing is solved until other settings or another edit allow it.
        """
        try:
            self._rebuild()
        except Exception as problem:
            with self._condition:
                self._build_error, self._has_changes = problem, True
                self._condition.notify_all()
            return problem
        return None

    def _tick(self, is_step: bool) -> LiveState:
        """Make a tick or a step; the caller holds the lock."""
        with self._condition:
            ticker = self._tick_solver
            if self._new_q is not None:
                ticker.move(self._new_q)
            elif self._has_changes:
                ticker.wake()
            self._has_changes, self._new_q, self._is_busy = False, None, True
            targets, tag = ticker.targets(), self._tag
        started, solution, problem = thread_clock(), None, self._build_error
        if problem is None:
            try:
                solution = ticker.step(targets) if is_step else ticker.tick(targets, self.budget)
            except Exception as error:
                problem = error
            except BaseException:  # Ctrl-C during a step
                self._is_busy = False
                raise
        ticker.is_at_rest |= problem is not None
        ended = thread_clock()
        status = Status.CONVERGED if solution is None else solution.status
        state = LiveState(
            q=read_only(ticker.q.copy()),
            solution=solution,
            sequence=self.state.sequence + 1,
            tag=tag,
            is_at_rest=ticker.is_at_rest,
            seconds=max(0.0, ended - started),
            iterations=0 if solution is None else solution.iterations,
            status=status if problem is None else Status.PENDING,
            ticks_per_second=self._rate.update(perf_counter()),
            problem="" if problem is None else str(problem) or type(problem).__name__,
        )
        self._publish(state, problem)
        return state

    def _publish(self, state: LiveState, problem: Exception | None) -> None:
        """Store the state, resolve futures and notify the listeners."""
        with self._condition:
            self.state, self._is_busy = state, False
            futures: list[Future[LiveState]] = []
            if not self._has_work():
                futures, self._futures = self._futures, []
        for future in futures:
            if not future.set_running_or_notify_cancel():
                continue
            if problem is None:
                future.set_result(state)
            else:
                future.set_exception(problem)
        self.listeners.notify(state)


def cancel_futures(futures: Iterable[Future[LiveState]]) -> None:
    """Cancel all futures."""
    for future in futures:
        future.cancel()


BACKGROUND_SOLVERS: weakref.WeakSet[BackgroundSolver] = weakref.WeakSet()
"""All solvers whose thread was started, for the exit of the interpreter."""


@atexit.register
def stop_all() -> None:
    """Stop all threads at exit, because no thread may be inside a kernel then."""
    for engine in list(BACKGROUND_SOLVERS):
        engine.stop(wait=True, at_most=EXIT_WAIT)
