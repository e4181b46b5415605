"""`LiveSolver`: a solver in a background thread that follows moving targets."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, Self

from mechanik.errors import InvalidArgument, LimitsError
from mechanik.model import Mechanism
from mechanik.motion.live.background_solver import (
    BackgroundSolver,
    LiveGoals,
    LiveSettings,
    LiveState,
    RestTarget,
    StateCallback,
    as_names,
)
from mechanik.objectives.objective import as_objectives
from mechanik.solver.methods.method import Method
from mechanik.solver.options import DofNames
from mechanik.solver.target_writer import Targets
from mechanik.spatial.array import ArrayLike
from mechanik.validation import as_number

DEFAULT_BUDGET = 0.012
"""s: default time of a tick; at 60 frames per second it leaves time to draw a frame."""


class LiveSolver:
    """A solver in its own thread: set new targets at any time, and receive states by callback.

    New targets replace older ones and there is no queue: a slow solver skips targets and does not fall behind. Each
    tick starts where the previous tick ended, takes at most about `budget` seconds and publishes a state. When the
    goals are met or a further tick would not help, the solver is at rest and the thread sleeps. The solver never
    changes the configuration of the mechanism. Edit the mechanism only inside `edit`.

        with mk.LiveSolver(arm, mk.PositionGoal("hand", (0.5, 0, 0.4)), on_state=draw) as live:
            live.set_targets((0.5, 0.1, 0.4))

    Callbacks run in the thread, or for `step` in the calling thread, one state after the other. Objects that a callback
    references live as long as the thread: if a callback references its own `LiveSolver`, call `dispose` to end the
    thread. All methods may be called from every thread, and all except `step` from callbacks.

    Args:
        mechanism: the mechanism.
        goals: objectives. None: the goals of the mechanism's graph. Empty: only loops and joint constraints are solved,
            near the start or the configuration of the last `move`.
        solver: the method, as for `Solver`.
        q0: (nq,) start; default: the current configuration of the mechanism.
        budget: s, time for a tick. A tick may take up to 16 times as long if previous ticks did not move the solution.
            While solves are much faster than the budget, they have no time limit, so a single tick may take longer.
        on_state: the first callback.
        lock, limits, rest: as for `Solver`.
        options: further options of `Solver`. `restarts` is 0 by default, so that the solution does not jump. With
            `avoid` and `clearance` the solution slides along obstacles; call `set_targets()` after an obstacle of the
            `Collider` was moved.

    Raises:
        InvalidArgument: `mechanism` is not a mechanism.
        LimitsError: `budget` is not above 0.
        InvalidOperation: `max_seconds` is among the options.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.4])
        >>> with mk.LiveSolver(arm, mk.PositionGoal("tool", (0.6, 0.2, 0)), q0=[0.1, 1.0]) as live:
        ...     state = live.solve((0.6, 0.3, 0)).result()
        >>> state.status.name, state.error < 1e-4
        ('CONVERGED', True)
    """

    def __init__(
        self,
        mechanism: Mechanism,
        goals: LiveGoals | None = None,
        solver: str | Method = "lm",
        q0: ArrayLike | None = None,
        budget: float = DEFAULT_BUDGET,
        on_state: StateCallback | None = None,
        lock: DofNames | str = (),
        limits: Mapping[str, ArrayLike] | None = None,
        rest: RestTarget | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(mechanism, Mechanism):
            raise InvalidArgument(f"the first argument must be a mechanism, not {mechanism!r}")
        objectives = None if goals is None else as_objectives(goals)
        settings = LiveSettings(objectives, solver, as_names(lock), limits, rest)
        settings = settings.with_changes(None, None, None, None, None, options)
        self._background = BackgroundSolver(mechanism, settings, q0, _check_budget(budget))
        weakref.finalize(self, self._background.dispose, wait=False).atexit = False
        if on_state is not None:
            self.subscribe(on_state)

    def __repr__(self) -> str:
        activity = "disposed" if self._background.is_disposed else "running" if self.running else "stopped"
        return f"<live solver of {self.mechanism!r}, {activity}, at state {self.state.sequence}>"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.dispose()

    # ---- the thread -------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread, also after `stop`."""
        self._background.start()

    def stop(self, wait: bool = True) -> None:
        """Stop the thread; no further tick starts.

        Args:
            wait: whether to wait for the end of the current tick; a call in the thread itself, as from a callback, does
                not wait.
        """
        self._background.stop(wait)

    def dispose(self) -> None:
        """Stop permanently: cancel futures and remove callbacks."""
        self._background.dispose(wait=True)

    @property
    def running(self) -> bool:
        """Whether the thread is alive and was not stopped."""
        return self._background.is_running

    # ---- requests ---------------------------------------------------------------------------

    def set_targets(self, targets: Targets | None = None, tag: int = 0) -> None:
        """Set new targets, as for `Solver.solve`; goals without a new target keep theirs.

        Args:
            targets: None: solve again, for example after a goal of the graph was moved.
            tag: integer that is stored in the states for these targets.

        Raises:
            MechanikError: a target is invalid; then no target changes.
        """
        self._background.set_targets(targets, tag)

    def set_targets_unchecked(self, targets: Mapping[int, Any], tag: int = 0) -> None:
        """Set new targets that are known to be valid; saves the checks of `set_targets`.

        Args:
            targets: by index of the objective, in forms that its `Objective.with_target` takes.
            tag: integer that is stored in the states for these targets.
        """
        self._background.set_targets_unchecked(targets, tag)

    def solve(self, targets: Targets | None = None) -> Future[LiveState]:
        """Set targets like `set_targets`, and return a future for the state at rest.

        If the tick fails, the future raises the error. The future is cancelled by a later `set_targets` or
        `set_targets_unchecked`, by a later `solve` with targets, by new goals, and by `dispose`.

        Args:
            targets: None: the current targets.
        """
        return self._background.solve(targets)

    def move(self, q: ArrayLike) -> None:
        """Continue from the configuration q (nq,), as after a joint was moved by the user."""
        self._background.move(q)

    def set(
        self,
        goals: LiveGoals | None = None,
        solver: str | Method | None = None,
        lock: DofNames | str | None = None,
        limits: Mapping[str, ArrayLike] | None = None,
        rest: RestTarget | None = None,
        budget: float | None = None,
        **options: Any,
    ) -> None:
        """Change settings. Settings that are not given stay; if one is invalid, none is changed.

        New goals start with their own targets. A new method keeps only those options that every method takes.

        Args:
            goals, solver, lock, limits, rest, budget, options: as for the class.
        """
        seconds = None if budget is None else _check_budget(budget)
        has_changes = any(setting is not None for setting in (goals, solver, lock, limits, rest)) or bool(options)
        self._background.change(
            (lambda settings: settings.with_changes(goals, solver, lock, limits, rest, options))
            if has_changes
            else None,
            seconds,
        )

    def edit(self) -> AbstractContextManager[Mechanism]:
        """Return a context manager in which the mechanism may be edited: `with live.edit() as mechanism:`.

        The thread waits between two ticks. Afterwards the solver is rebuilt, and q is transferred by dof names.
        Settings that are changed inside the context take effect at its end. If no solver can be built at the end, the
        error is raised, and nothing is solved until other settings or another edit allow it.

        The solver is also rebuilt at the first tick after an edit outside of this context. If that edit is made during
        a tick, the tick fails, and the next tick continues.
        """
        return self._background.edit()

    def step(self) -> LiveState:
        """Make a single iteration, or the few iterations that are needed to move with closed loops; also while stopped.

        Raises:
            InvalidOperation: called in a callback, inside `edit` or after `dispose`.
        """
        return self._background.step()

    # ---- results ----------------------------------------------------------------------------

    def subscribe(self, callback: StateCallback) -> Callable[[], None]:
        """Call `callback` with each new state; return a function that unsubscribes.

        A callback that raises is removed; its exception is in `errors`.

        Raises:
            InvalidArgument: `callback` cannot be called.
        """
        if not callable(callback):
            raise InvalidArgument(f"a callback must be a function of a state, not {callback!r}")
        return self._background.subscribe(callback)

    @property
    def state(self) -> LiveState:
        """The newest state."""
        return self._background.state

    @property
    def error_message(self) -> str:
        """Message of the error in the last tick; empty if it did not fail."""
        return self._background.state.error_message

    @property
    def callback_errors(self) -> tuple[BaseException, ...]:
        """The last exceptions that callbacks raised, the newest at the end."""
        return tuple(self._background.listeners.errors)

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism."""
        return self._background.mechanism

    @property
    def budget(self) -> float:
        """Time for a tick, s."""
        return self._background.budget


def _check_budget(budget: float) -> float:
    seconds = as_number(budget, "budget", allow_infinite=True)
    if not seconds > 0.0:
        raise LimitsError(f"budget must be above 0 seconds, not {seconds:g}")
    return seconds
