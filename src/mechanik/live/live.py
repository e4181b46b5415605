"""A solver in the background, which follows goals that move."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, Self

from mechanik.errors import LimitsError, WrongKind
from mechanik.live.engine import Engine
from mechanik.live.listeners import Callback
from mechanik.live.settings import Goals, Rest, Settings, as_names
from mechanik.live.state import LiveState
from mechanik.mechanism import Mechanism
from mechanik.mechanism.door import as_number
from mechanik.objectives.objective import as_objectives
from mechanik.solvers.freedoms import Names
from mechanik.solvers.method import Method
from mechanik.solvers.new_targets import Targets
from mechanik.spatial.array import ArrayLike

BUDGET = 0.012
"""Seconds: at sixty pictures a second there is some time left to draw one."""


class Live:
    """Solves in a thread of its own: give it new targets whenever there are some, and take its states as they come.

    The newest targets win, and there is never a queue: a slow solver answers less often, not later. Each tick starts
    where the last one ended and takes at most `budget` seconds; while it is not done, the next one goes on, and each is
    a state. At rest it sleeps. It never moves the mechanism, and must be told when others edit it (`edit`).

        with mk.Live(arm, mk.Point("hand", (0.5, 0, 0.4)), on_state=draw) as live:
            live.aim((0.5, 0.1, 0.4))

    Callbacks run in the thread, one state after the other; what they hold on to lives as long as the thread, so dispose
    of a `Live` that a callback knows. All methods may be called from any thread, and from callbacks.

    Args:
        mechanism: what moves.
        goals: objectives; None: what the graph asks for; empty: only loops are kept shut, near where it is put.
        solver: the method, as for `Solver`.
        q0: (nq,) where it stands at first; where the mechanism stands if not given.
        budget: seconds for a tick. Solves that were far quicker are not timed, so one may take longer now and then.
        on_state: the first callback.
        lock, limits, rest, options: as for `Solver`; `restarts` is 0 unless given, so that nothing leaps. `avoid` and
            `clearance` are among them: it slides along what is in the way, and `aim()` makes it look again when an
            obstacle of its `Collider` was moved.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        goals: Goals | None = None,
        solver: str | Method = "lm",
        q0: ArrayLike | None = None,
        budget: float = BUDGET,
        on_state: Callback | None = None,
        lock: Names | str = (),
        limits: Mapping[str, ArrayLike] | None = None,
        rest: Rest | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(mechanism, Mechanism):
            raise WrongKind(f"a background solver takes a mechanism, not {mechanism!r}")
        wanted = None if goals is None else as_objectives(goals)
        settings = Settings(wanted, solver, as_names(lock), limits, rest)
        settings = settings.changed(None, None, None, None, None, options)
        self._engine = Engine(mechanism, settings, q0, _seconds(budget))
        weakref.finalize(self, self._engine.dispose, wait=False).atexit = False
        if on_state is not None:
            self.subscribe(on_state)

    def __repr__(self) -> str:
        doing = "disposed of" if self._engine.is_disposed else "running" if self.running else "stopped"
        return f"<background solver of {self.mechanism!r}, {doing}, at state {self.state.sequence}>"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.dispose()

    # ---- the thread -------------------------------------------------------------------------

    def start(self) -> None:
        """Begin, or go on after a stop."""
        self._engine.start()

    def stop(self, wait: bool = True) -> None:
        """No further tick. With `wait` the one that is under way has ended too, but for a call from a callback."""
        self._engine.stop(wait)

    def dispose(self) -> None:
        """Stop for good: futures are cancelled and callbacks forgotten."""
        self._engine.dispose(wait=True)

    @property
    def running(self) -> bool:
        """Whether there is a thread that takes new goals."""
        return self._engine.is_running

    # ---- what is asked ----------------------------------------------------------------------

    def aim(self, targets: Targets | None = None, tag: int = 0) -> None:
        """New targets, as for `Solver.solve`; goals that are not named stay where they were last aimed at.

        Args:
            targets: None: look again, as after a goal of the graph was moved.
            tag: comes back with the states that answer them.
        """
        self._engine.aim(targets, tag)

    def solve(self, targets: Targets | None = None) -> Future[LiveState]:
        """As `aim`; the future is the state at which it came to rest for these targets, or for those that it has.

        Cancelled when newer targets or other goals come first, and by `dispose`.
        """
        return self._engine.solve(targets)

    def move(self, q: ArrayLike) -> None:
        """It stands at q (nq,) from now on, as after a joint was set by hand; goals pull it on from there."""
        self._engine.move(q)

    def set(
        self,
        goals: Goals | None = None,
        solver: str | Method | None = None,
        lock: Names | str | None = None,
        limits: Mapping[str, ArrayLike] | None = None,
        rest: Rest | None = None,
        budget: float | None = None,
        **options: Any,
    ) -> None:
        """Other settings; what is not given stays, and if one is wrong all stay. New goals are where they were made."""
        seconds = None if budget is None else _seconds(budget)
        given = any(one is not None for one in (goals, solver, lock, limits, rest)) or bool(options)
        self._engine.change(
            (lambda now: now.changed(goals, solver, lock, limits, rest, options)) if given else None, seconds
        )

    def edit(self) -> AbstractContextManager[Mechanism]:
        """`with live.edit() as mechanism:` its graph may be edited, since the thread stands still between two ticks.

        Afterwards the solver is made anew, and q carried over by the names of freedoms. Settings that are changed
        inside count from the end on; if no solver can be made then, that is raised, and nothing is solved until other
        settings allow it.
        """
        return self._engine.edit()

    def step(self) -> LiveState:
        """One iteration, or the few that it takes to move with loops shut; also while it is stopped."""
        return self._engine.step()

    # ---- what comes of it -------------------------------------------------------------------

    def subscribe(self, callback: Callback) -> Callable[[], None]:
        """Call `callback` with each new state, in the thread; what is returned ends that.

        One that raises is not called again; its exception is kept in `errors`.
        """
        if not callable(callback):
            raise WrongKind(f"a callback must be a function of a state, not {callback!r}")
        return self._engine.subscribe(callback)

    @property
    def state(self) -> LiveState:
        """The newest."""
        return self._engine.state

    @property
    def problem(self) -> str:
        """Why the last tick failed, in words; empty if it did not."""
        return self._engine.state.problem

    @property
    def errors(self) -> tuple[BaseException, ...]:
        """The last exceptions of callbacks, the newest at the end."""
        return tuple(self._engine.listeners.errors)

    @property
    def mechanism(self) -> Mechanism:
        return self._engine.mechanism

    @property
    def budget(self) -> float:
        """Seconds for a tick."""
        return self._engine.budget


def _seconds(budget: float) -> float:
    seconds = as_number(budget, "budget", infinite=True)
    if not seconds > 0.0:
        raise LimitsError(f"budget must be above 0 seconds, not {seconds:g}")
    return seconds
