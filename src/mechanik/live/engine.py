"""The thread of a background solver: what it takes, when it sleeps, and who else may touch the mechanism."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from contextlib import contextmanager
from time import perf_counter

import numpy as np

from mechanik.errors import Refused, ShapeError
from mechanik.live.listeners import Callback, Listeners
from mechanik.live.settings import Settings
from mechanik.live.state import LiveState
from mechanik.live.ticker import Rate, Ticker, carried
from mechanik.live.turns import Turns
from mechanik.mechanism import Mechanism
from mechanik.mechanism.door import read_only
from mechanik.solvers.new_targets import Targets
from mechanik.solvers.status import Status
from mechanik.spatial.array import Array, ArrayLike
from mechanik.stopwatch import fine_time

AT_EXIT = 2.0  # seconds that a program waits at its end for a tick to finish


class Run:
    """One thread, from start to stop."""

    def __init__(self, engine: Engine) -> None:
        self.is_over = False
        self.thread = threading.Thread(target=engine.run, args=(self,), name="mechanik live", daemon=True)


class Engine:
    """Everything but the door. It does not know its `Live`, so that a forgotten one can go, and its thread with it.

    One condition guards all: the newest goals, q and settings, and whose turn it is. Those who ask by hand go before
    the thread.
    """

    def __init__(self, mechanism: Mechanism, settings: Settings, q: ArrayLike | None, budget: float) -> None:
        self.mechanism, self.settings, self.budget = mechanism, settings, budget
        self.listeners = Listeners()
        self.is_disposed = False
        self.current: Run | None = None
        self._news = threading.Condition()
        self._turns, self._depth = Turns(self._news), 0
        self._futures: list[Future[LiveState]] = []
        self._rate = Rate()
        self._is_new, self._is_busy, self._tag = True, False, 0
        self._moved: Array | None = None
        self._has_new_goals = False
        self._broken: Exception | None = None
        start = np.array(mechanism.q if q is None else mechanism._one(q))
        self._ticker = self._made(start)
        self.state = LiveState(read_only(start.copy()))

    # ---- what others ask for ------------------------------------------------------------------

    def aim(self, targets: Targets | None, tag: int) -> None:
        with self._news:
            replaced = self._aim(targets, tag)
        cancel(replaced)

    def solve(self, targets: Targets | None) -> Future[LiveState]:
        future: Future[LiveState] = Future()
        with self._news:
            self._check_usable()
            replaced = [] if targets is None else self._aim(targets, self._tag)
            is_at_work = self._is_busy or self._has_work()
            is_done = not is_at_work and not self.state.problem
            if not is_done:
                self._is_new |= not is_at_work  # after a failure it is tried again
                self._futures.append(future)
                self._news.notify_all()
        cancel(replaced)
        if is_done:
            future.set_result(self.state)
        return future

    def move(self, q: ArrayLike) -> None:
        with self._news:
            self._check_usable()
            values = self._ticker.space.check_q(q)
            if values.ndim != 1:
                raise ShapeError(f"one configuration is needed here, not an array of shape {values.shape}")
            self._moved = np.array(values)
            self._news.notify_all()

    def change(self, settings: Callable[[Settings], Settings] | None, budget: float | None) -> None:
        """Other settings, made from those that there are; inside an edit the solver is made at its end."""
        if settings is None:
            self.budget = self.budget if budget is None else budget
            return
        with self._turns.taken():
            self._check_usable()
            before, self.settings = self.settings, settings(self.settings)
            self._has_new_goals |= self.settings.goals is not before.goals
            try:
                if self._depth == 0:
                    self._remake()
            except BaseException:
                self.settings, self._has_new_goals = before, False
                raise
            self.budget = self.budget if budget is None else budget

    @contextmanager
    def edit(self) -> Generator[Mechanism]:
        with self._turns.taken():
            self._check_usable()
            self._depth += 1
            try:
                yield self.mechanism
            except BaseException:
                self._depth -= 1
                if self._depth == 0:
                    self._remake_or_break()
                raise
            self._depth -= 1
            if self._depth == 0 and (problem := self._remake_or_break()) is not None:
                raise problem

    def step(self) -> LiveState:
        if self._turns.is_mine:
            raise Refused("a background solver takes no step inside its own callback or edit; do it afterwards")
        with self._turns.taken():
            self._check_usable()
            return self._once(is_step=True)

    def subscribe(self, callback: Callback) -> Callable[[], None]:
        with self._news:
            self._check_usable()
            return self.listeners.add(callback)

    # ---- the thread ---------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        run = self.current
        return run is not None and not run.is_over and run.thread.is_alive()

    def start(self) -> None:
        with self._news:
            self._check_usable()
            if not self.is_running:
                self.current = Run(self)
                self.current.thread.start()
                ENGINES.add(self)

    def stop(self, wait: bool, at_most: float | None = None) -> None:
        with self._news:
            run = self.current
            if run is None:
                return
            run.is_over = True
            self._news.notify_all()
        if wait and run.thread is not threading.current_thread():
            run.thread.join(at_most)

    def dispose(self, wait: bool) -> None:
        self.stop(wait)
        with self._news:
            self.is_disposed = True
            futures, self._futures = self._futures, []
            self.listeners.clear()
        cancel(futures)
        self.stop(wait)  # somebody may have started it again in between, and now nobody can

    def run(self, run: Run) -> None:
        while True:
            with self._news:
                while not run.is_over and not (self._turns.is_free and self._has_work()):
                    self._news.wait()
                if run.is_over:
                    return
                self._turns.take()
            try:
                self._once(is_step=False)
            finally:
                self._turns.give_back()

    # ---- inside -------------------------------------------------------------------------------

    def _check_usable(self) -> None:
        if self.is_disposed:
            raise Refused("this background solver was disposed of; make another one")

    def _aim(self, targets: Targets | None, tag: int) -> list[Future[LiveState]]:
        """Returns the futures that are to be cancelled, which calls others and is not to be done inside."""
        self._check_usable()
        if targets is not None:
            self._ticker.aims.put(targets)
        self._tag, self._is_new = tag, True
        replaced, self._futures = self._futures, []
        self._news.notify_all()
        return replaced

    def _has_work(self) -> bool:
        return self._is_new or self._moved is not None or not self._ticker.is_at_rest

    def _made(self, q: Array) -> Ticker:
        return Ticker(self.mechanism, self.settings.build(self.mechanism), self.settings.goals == (), q)

    def _remake(self) -> None:
        """A solver for the mechanism and the settings as they are now; q and targets are carried over."""
        names = self._ticker.space.q_names
        made = self._made(carried(names, self._ticker.q, self.mechanism))
        replaced: list[Future[LiveState]] = []
        with self._news:
            if self._moved is not None:
                self._moved = carried(names, self._moved, self.mechanism)
            if self._has_new_goals:
                replaced, self._futures = self._futures, []
            else:
                made.aims.taken_from(self._ticker.aims)
            self._ticker, self._broken, self._has_new_goals, self._is_new = made, None, False, True
            self._news.notify_all()
        cancel(replaced)

    def _remake_or_break(self) -> Exception | None:
        """After an edit: where no solver can be made, nothing is solved until settings or another edit allow it."""
        try:
            self._remake()
        except Exception as problem:
            with self._news:
                self._broken, self._is_new = problem, True
                self._news.notify_all()
            return problem
        return None

    def _once(self, is_step: bool) -> LiveState:
        """A tick or a step, in whosever turn it is."""
        with self._news:
            ticker = self._ticker
            if self._moved is not None:
                ticker.move(self._moved)
            elif self._is_new:
                ticker.wake()
            self._is_new, self._moved, self._is_busy = False, None, True
            targets, tag = ticker.targets(), self._tag
        begun, solution, problem = fine_time(), None, self._broken
        if problem is None:
            try:
                solution = ticker.step(targets) if is_step else ticker.tick(targets, self.budget)
            except Exception as error:
                problem = error
            except BaseException:  # Ctrl-C during a step
                self._is_busy = False
                raise
        ticker.is_at_rest |= problem is not None
        ended = fine_time()
        status = Status.CONVERGED if solution is None else solution.status
        state = LiveState(
            q=read_only(ticker.q.copy()),
            solution=solution,
            sequence=self.state.sequence + 1,
            tag=tag,
            is_at_rest=ticker.is_at_rest,
            seconds=max(0.0, ended - begun),
            iterations=0 if solution is None else solution.iterations,
            status=status if problem is None else Status.PENDING,
            ticks_per_second=self._rate.of(perf_counter()),
            problem="" if problem is None else str(problem) or type(problem).__name__,
        )
        self._publish(state, problem)
        return state

    def _publish(self, state: LiveState, problem: Exception | None) -> None:
        with self._news:
            self.state, self._is_busy = state, False
            waiting: list[Future[LiveState]] = []
            if not self._has_work():
                waiting, self._futures = self._futures, []
        for future in waiting:
            if not future.set_running_or_notify_cancel():
                continue
            if problem is None:
                future.set_result(state)
            else:
                future.set_exception(problem)
        self.listeners.tell(state)


def cancel(futures: Iterable[Future[LiveState]]) -> None:
    for future in futures:
        future.cancel()


ENGINES: weakref.WeakSet[Engine] = weakref.WeakSet()


@atexit.register
def stop_all() -> None:
    """At the end of the program no thread may be inside a kernel."""
    for engine in list(ENGINES):
        engine.stop(wait=True, at_most=AT_EXIT)
