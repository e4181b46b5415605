"""Python interface of the studio: `Studio` opens a mechanism in the browser, `GoalHandle` moves a goal in it.

Programs and browser pages share one session. Both can move goals, and callbacks of the program receive each new state.
"""

from __future__ import annotations

import contextlib
import html
import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from mechanik.collision.collision_pairs import Avoid
from mechanik.errors import StudioError, UnknownName
from mechanik.model import Mechanism
from mechanik.motion.live import LiveState
from mechanik.solver import Solution
from mechanik.spatial.array import Array, ArrayLike
from mechanik.studio.messages.requests import GoalKind
from mechanik.studio.server.server import LOOPBACK, Server, serve
from mechanik.studio.session.edit_state import InteractiveGoal, PoseLike, parse_pose
from mechanik.studio.session.session import Session
from mechanik.validation import read_only

StateCallback = Callable[[LiveState], Any]
log = logging.getLogger("mechanik.studio")


class StateCallbacks:
    """Calls the state callbacks of a program, in sequence, in a thread of their own.

    A callback that raises is removed and its error is logged, so that it cannot stop the session.
    """

    def __init__(self, session: Session) -> None:
        self._all: tuple[StateCallback, ...] = ()
        self._lock = threading.Lock()
        session.subscribe(self._hear)

    def add(self, callback: StateCallback) -> Callable[[], None]:
        """Call `callback` with each state from now on; return a function that removes it."""
        with self._lock:
            self._all = (*self._all, callback)
        return lambda: self._drop(callback)

    def _hear(self, state: LiveState) -> None:
        for callback in self._all:
            try:
                callback(state)
            except Exception as error:
                log.error("a callback is not called again: %s: %s", type(error).__name__, error)
                self._drop(callback)

    def _drop(self, callback: StateCallback) -> None:
        with self._lock:
            self._all = tuple(other_callback for other_callback in self._all if other_callback is not callback)


class GoalHandle:
    """A goal in a studio that the program and the pages can both move; made by `Studio.handle` and `Studio.pin`.

    Attributes:
        number: number of the goal in the page protocol.
    """

    def __init__(self, session: Session, callbacks: StateCallbacks, number: int) -> None:
        self.number = number
        self._session, self._callbacks = session, callbacks

    @property
    def pose(self) -> Array:
        """Current target pose in the world, (4, 4), read-only; the last move by the program or a page counts."""
        return self._goal().X

    @property
    def exists(self) -> bool:
        """Whether the goal has not been removed."""
        return any(goal.number == self.number for goal in self._session.goals)

    def move(self, pose: PoseLike) -> None:
        """Set the target pose of the goal.

        Args:
            pose: in the world, m: (4, 4), a `Pose`, position and wxyz (7,), or a position (3,) that keeps the
                orientation.

        Raises:
            UnknownName: the goal was removed.
        """
        self._session.move_goal(self.number, parse_pose(pose, self._goal().X[:3, :3]))

    def on_move(self, callback: Callable[[Array], Any]) -> Callable[[], None]:
        """Call `callback` after each move of the goal, whoever moves it.

        The callback runs in a separate thread, with the first state that the solver computes for the new pose.

        Args:
            callback: receives the target pose in the world, (4, 4).

        Returns:
            A function that removes the callback.
        """
        last = self.pose

        def notify_if_moved(_: LiveState) -> None:
            nonlocal last
            if self.exists:
                before, last = last, self.pose
                if last is not before and (last != before).any():
                    callback(last)

        return self._callbacks.add(notify_if_moved)

    def remove(self) -> None:
        """Remove the goal; a second call does nothing."""
        with contextlib.suppress(UnknownName):
            self._session.remove_goal(self.number)

    def __repr__(self) -> str:
        return f"Handle({self._goal().name!r})" if self.exists else "Handle(removed)"

    def _goal(self) -> InteractiveGoal:
        for goal in self._session.goals:
            if goal.number == self.number:
                return goal
        raise UnknownName("handle", self.number, [str(goal.number) for goal in self._session.goals])


NOTEBOOK_ORIGINS = ("http://localhost:*", "http://127.0.0.1:*")
"""Origins that may embed the studio in a frame once a notebook displays it."""
NOTEBOOK_HEIGHT_PX = 600
"""Height of the frame in a notebook, pixels."""


class Studio:
    """Shows a copy of a mechanism in the browser, where people and the program move it together.

    All pages show the same session. The mechanism that is passed in does not change. The session starts with default
    goals, as for an opened file; the first call of `handle` or `pin` removes them. In a notebook, a cell that ends with
    the studio displays the page.

    Args:
        mechanism: the mechanism to show.
        avoid: what the links must not collide with, as for `Solver`: "self", obstacles or both; see `avoid`.
        clearance: distance that is kept, m.
        port: TCP port; 0: any free port.
        host: address to listen on; every address but the loopback can be reached from other machines.
        open_browser: whether to open the browser; `link` is available in both cases.
        page: folder of the built page; None: the page that is installed with Mechanik.

    Attributes:
        session: the session that all pages share.

    Raises:
        MissingExtra: the packages of the extra "studio" are not installed.
        StudioError: the host or port cannot be used.
        FileMissing: the page is not built.

    Example:
        >>> with mk.Studio(mk.gallery.planar_2r(), open_browser=False) as studio:
        ...     tool = studio.handle("tool", "point", pose=(1.0, 0.5, 0.0))
        ...     status = studio.settle().status.name
        ...     position = studio.mechanism.pose("tool", studio.q)[:3, 3]
        >>> status, position.round(3).tolist()
        ('CONVERGED', [1.0, 0.5, 0.0])
    """

    def __init__(
        self,
        mechanism: Mechanism,
        *,
        avoid: Avoid | None = None,
        clearance: float = 0.0,
        port: int = 0,
        host: str = LOOPBACK,
        open_browser: bool = True,
        page: Path | None = None,
    ) -> None:
        self._server: Server = serve(mechanism, host=host, port=port, page=page, is_shared=True)
        shared_host = self._server.pool.shared_host
        assert shared_host is not None
        self.session: Session = shared_host.session
        self._callbacks = StateCallbacks(self.session)
        self._first_goals = tuple(goal.number for goal in self.session.goals)
        if avoid is not None:
            try:
                self.avoid(avoid, clearance=clearance)
            except BaseException:
                self.close()
                raise
        if open_browser:
            self._server.open_browser()

    # ---- mechanism -------------------------------------------------------------------------------

    @property
    def link(self) -> str:
        """Address of the studio with its access token; every browser that opens it gets access."""
        return self._server.link

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that is shown, a copy of the original; a page may have opened another one."""
        return self.session.mechanism

    @property
    def q(self) -> Array:
        """Present configuration, (nq,), read-only."""
        return read_only(np.array(self.session.q))

    def show(self, q: ArrayLike | Solution) -> None:
        """Move the mechanism to a configuration; goals that are not pinned move with it, so that it stays there.

        Args:
            q: (nq,) in m and rad, brought inside the limits; or a solution.

        Raises:
            StudioError: the studio was closed.
        """
        self._check_open()
        self.session.move_with_goals(q.q if isinstance(q, Solution) else q)

    # ---- goals -----------------------------------------------------------------------------------

    def handle(
        self,
        link: str,
        kind: GoalKind = "pose",
        *,
        at: tuple[float, float, float] = (0.0, 0.0, 0.0),
        pose: PoseLike | None = None,
        name: str = "",
    ) -> GoalHandle:
        """Add a goal on a link that can be dragged in the browser and moved by the program.

        Args:
            link: name of the link.
            kind: kind of the goal: "pose", "point", "orientation", "look_at" and others, see `GoalKind`.
            at: point of the link, in the frame of the link, m.
            pose: target in the world: (4, 4), a `Pose`, position and wxyz (7,), or a position (3,), m; None: the
                present pose.
            name: label of the goal; default: the name of the link.

        Returns:
            The handle of the goal.

        Raises:
            StudioError: the studio was closed.
            UnknownName: the mechanism has no such link.
        """
        return self._handle(kind, link, at=at, pose=pose, name=name)

    def pin(
        self, link: str, kind: GoalKind = "pose", *, at: tuple[float, float, float] = (0.0, 0.0, 0.0)
    ) -> GoalHandle:
        """Hold a link where it is, with priority over all goals that are not pinned.

        Args:
            link: name of the link.
            kind: what is held: "pose", "point", "orientation" and others, see `GoalKind`.
            at: point of the link, in the frame of the link, m.

        Returns:
            The handle of the goal.

        Raises:
            StudioError: the studio was closed.
            UnknownName: the mechanism has no such link.
        """
        return self._handle(kind, link, at=at, pinned=True)

    # ---- collisions ------------------------------------------------------------------------------

    def avoid(
        self,
        avoid: Avoid | None = ("self",),
        *,
        clearance: float = 0.0,
        allow: Iterable[tuple[str, str]] = (),
        forbid: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Set what the links must not collide with, in place of earlier settings.

        Obstacles are drawn. Links and obstacles in collision are shown in red.

        Args:
            avoid: "self" (links against each other), obstacles or both; None: avoid nothing, but show self-collisions.
            clearance: distance that the links keep, m.
            allow: pairs of names that may touch.
            forbid: pairs of names that are checked although they would be left out by default.

        Raises:
            StudioError: the studio was closed.
        """
        self._check_open()
        self.session.set_collision_avoidance(
            ("self",) if avoid is None else avoid,
            mode="show" if avoid is None else "avoid",
            clearance=clearance,
            allow=allow,
            forbid=forbid,
        )

    def move_obstacle(self, name: str, pose: PoseLike) -> None:
        """Move an obstacle.

        Args:
            name: name of the obstacle.
            pose: in the world, m: (4, 4), a `Pose`, position and wxyz (7,), or a position (3,) that keeps the
                orientation.

        Raises:
            StudioError: the studio was closed.
            UnknownName: there is no such obstacle.
        """
        self._check_open()
        self.session.move_obstacle(name, pose)

    # ---- states ----------------------------------------------------------------------------------

    def on_state(self, callback: Callable[[LiveState], Any]) -> Callable[[], None]:
        """Call `callback` with each new state, in a separate thread.

        A callback that raises is removed, and its error is logged.

        Args:
            callback: receives the state.

        Returns:
            A function that removes the callback.

        Raises:
            StudioError: the studio was closed.
        """
        self._check_open()
        return self._callbacks.add(callback)

    def settle(self, seconds: float = 5.0) -> LiveState:
        """Wait until the solver is at rest with the present goals and all callbacks have received its last state.

        Do not call it from a callback: it waits for callbacks.

        Args:
            seconds: maximum time, s.

        Returns:
            The state at the end, also after the maximum time.
        """
        self._check_open()
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            with self.session.lock:
                live, solver_session_count = self.session.live, self.session.solver_session_count
                if self.session.running and not live.running:  # an undo has restored a state at rest
                    return replace(live.state, q=self.session.q, is_at_rest=True)
                future = live.solve()
            try:
                state = future.result(left)
                self.session.state_subscribers.wait((solver_session_count, state.sequence), until - time.monotonic())
                if live is self.session.live:
                    return state
            except CancelledError:  # a goal was moved or another mechanism was opened during the wait
                time.sleep(0.001)
            except TimeoutError:
                break
        return self.session.live.state

    def loop(self, function: Callable[[Studio, float], Any], rate: float = 60.0) -> None:
        """Call `function(studio, seconds)` at a fixed rate until it returns False or the studio is closed.

        A call that takes longer than a period delays the next one; missed calls are not repeated.

        Args:
            function: receives the studio and the time since the first call, s.
            rate: calls per second.
        """
        start = due = time.monotonic()
        while self.is_open and function(self, max(0.0, time.monotonic() - start)) is not False:
            due = max(due + 1.0 / rate, time.monotonic())
            self._server.wait(due - time.monotonic())

    # ---- closing ---------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether the server runs."""
        return self._server.is_running

    def wait(self) -> None:
        """Block until the studio is closed; Ctrl-C closes it."""
        try:
            while self.is_open:
                self._server.wait(1.0)
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Stop the server; open pages show that the connection is lost."""
        self._server.close()

    def __enter__(self) -> Studio:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Studio({self.session.mechanism.name!r}, {'open' if self.is_open else 'closed'})"

    # ---- notebooks -------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        """Return a frame with the page, for notebooks.

        The address contains the token. A saved notebook cannot open a later studio, since each one has another token.
        """
        if not self.is_open:
            return "<p>This studio is closed.</p>"
        self._server.access.frame_ancestors = NOTEBOOK_ORIGINS
        # browsers store the cookie of a frame only for the site of the notebook, and most notebooks run at "localhost"
        alone = html.escape(self.link, quote=True)
        inside = alone.replace(f"//{LOOPBACK}:", "//localhost:")
        name = f"mechanik-{self._server.port}"
        return (
            f'<iframe id="{name}" src="{inside}" width="100%" height="{NOTEBOOK_HEIGHT_PX}" style="border: 0"></iframe>'
            f"<script>if (location.hostname === {LOOPBACK!r}) document.getElementById({name!r}).src = {self.link!r};"
            f'</script><p><a href="{alone}" target="_blank">Open the studio in its own window</a></p>'
        )

    def _handle(self, kind: GoalKind, link: str, **options: Any) -> GoalHandle:
        self._check_open()
        number = self.session.add_goal(kind, link, **options)
        first, self._first_goals = self._first_goals, ()
        for first_number in first:
            GoalHandle(self.session, self._callbacks, first_number).remove()
        return GoalHandle(self.session, self._callbacks, number)

    def _check_open(self) -> None:
        if not self.is_open:
            raise StudioError("this studio is closed; open a new one with mk.Studio(mechanism)")
