"""Python interface of the studio: `Studio` opens a mechanism in the browser, and `GoalHandle` moves a goal.

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
    """Calls the callbacks of a program with each state, one after the other, in a separate thread.

    A callback that raises is removed and its error is logged, so that it cannot stop the session.
    """

    def __init__(self, session: Session) -> None:
        self._callbacks: tuple[StateCallback, ...] = ()
        self._lock = threading.Lock()
        session.subscribe(self._call_all)

    def add(self, callback: StateCallback) -> Callable[[], None]:
        """Call `callback` with each state from now on; return a function that removes it."""
        with self._lock:
            self._callbacks = (*self._callbacks, callback)
        return lambda: self._remove(callback)

    def _call_all(self, state: LiveState) -> None:
        for callback in self._callbacks:
            try:
                callback(state)
            except Exception as error:
                log.error("a callback for states raised an error and was removed: %s: %s", type(error).__name__, error)
                self._remove(callback)

    def _remove(self, callback: StateCallback) -> None:
        with self._lock:
            self._callbacks = tuple(
                other_callback for other_callback in self._callbacks if other_callback is not callback
            )


class GoalHandle:
    """A goal in a studio that the program and the pages can both move; made by `Studio.handle` and `Studio.pin`.

    Attributes:
        number: number of the goal in the messages of the studio.
    """

    def __init__(self, session: Session, callbacks: StateCallbacks, number: int) -> None:
        self.number = number
        self._session, self._callbacks = session, callbacks

    @property
    def pose(self) -> Array:
        """Current target pose in the world, (4, 4), read-only; the program and the pages can change it.

        Raises:
            UnknownName: the goal was removed.
        """
        return self._goal().X

    @property
    def exists(self) -> bool:
        """Whether the goal exists; False after it was removed."""
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
        """Call `callback` after the program or a page has moved the goal.

        The callback runs in a separate thread, after the next state of the solver. Several moves between two states
        give one call with the newest pose.

        Args:
            callback: receives the target pose in the world, (4, 4).

        Returns:
            A function that removes the callback.

        Raises:
            UnknownName: the goal was removed.
        """
        last_pose = self.pose

        def notify_if_moved(_: LiveState) -> None:
            nonlocal last_pose
            if self.exists:
                previous_pose, last_pose = last_pose, self.pose
                if last_pose is not previous_pose and (last_pose != previous_pose).any():
                    callback(last_pose)

        return self._callbacks.add(notify_if_moved)

    def remove(self) -> None:
        """Remove the goal; a second call does nothing."""
        with contextlib.suppress(UnknownName):
            self._session.remove_goal(self.number)

    def __repr__(self) -> str:
        return f"GoalHandle({self._goal().name!r})" if self.exists else "GoalHandle(removed)"

    def _goal(self) -> InteractiveGoal:
        for goal in self._session.goals:
            if goal.number == self.number:
                return goal
        raise UnknownName("goal", self.number, [str(goal.number) for goal in self._session.goals])


NOTEBOOK_ORIGINS = ("http://localhost:*", "http://127.0.0.1:*")
"""Origins of web pages that may embed the studio after a notebook has displayed it."""
NOTEBOOK_HEIGHT_PX = 600
"""Height of the studio in a notebook, pixels."""


class Studio:
    """Shows a copy of a mechanism in the browser, where people and the program move it together.

    All pages show the same session. The mechanism that is passed in does not change. The session starts with default
    goals, as for an opened file; the first call of `handle` or `pin` removes them. In a notebook, a cell that ends with
    the studio displays the page.

    Args:
        mechanism: the mechanism to show.
        avoid: what the links must not collide with, as for `Solver`: "self", obstacles or both; see the method `avoid`.
            None: avoid nothing.
        clearance: distance that the links keep, m; used only with `avoid`.
        port: TCP port; 0: any free port.
        host: address to listen on; other machines can reach every address except the loopback address.
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
        self._default_goal_numbers = tuple(goal.number for goal in self.session.goals)
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
        """The mechanism that is shown: a copy of the original, or a mechanism that a page has opened."""
        return self.session.mechanism

    @property
    def q(self) -> Array:
        """Present configuration, (nq,), read-only."""
        return read_only(np.array(self.session.q))

    def show(self, q: ArrayLike | Solution) -> None:
        """Move the mechanism to a configuration; enabled goals that are not pinned move with their links.

        Args:
            q: configuration, (nq,), clamped to the limits; or a solution.

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
            at: point of the link, in the frame of the link, m; for an axis or a cone the direction in that frame, z if
                zero.
            pose: target in the world: (4, 4), a `Pose`, position and wxyz (7,), or a position (3,), m; None: a target
                that the present configuration meets, if the kind allows it.
            name: label of the goal; default: the name of the link. A number is appended to a name that is in use.

        Returns:
            The handle of the goal.

        Raises:
            StudioError: the studio was closed.
            UnknownName: the mechanism has no such link.
            InvalidOperation: there are too many goals.
            ObjectiveError: the goal needs a terrain and there is none.
            MechanikError: the goal does not fit the mechanism, or `pose` is not valid.
        """
        return self._handle(kind, link, at=at, pose=pose, name=name)

    def pin(
        self, link: str, kind: GoalKind = "pose", *, at: tuple[float, float, float] = (0.0, 0.0, 0.0)
    ) -> GoalHandle:
        """Hold a link where it is, with priority over the goals of `handle`.

        Args:
            link: name of the link.
            kind: what is held: "pose", "point", "orientation" and others, see `GoalKind`.
            at: see `handle`.

        Returns:
            The handle of the goal.

        Raises:
            StudioError: the studio was closed.
            UnknownName: the mechanism has no such link.
            InvalidOperation: there are too many goals.
            ObjectiveError: the goal needs a terrain and there is none.
            MechanikError: the goal does not fit the mechanism.
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
            avoid: "self" (links against each other), obstacles or both; None: remove all obstacles, avoid nothing, and
                show self-collisions.
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

        A slow callback misses states. A callback that raises is removed, and its error is logged.

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

        Do not call this method from a callback, since it waits for callbacks.

        Args:
            seconds: maximum time, s.

        Returns:
            The newest state, also if the maximum time is over.

        Raises:
            StudioError: the studio was closed.
        """
        self._check_open()
        deadline = time.monotonic() + seconds
        while (remaining_seconds := deadline - time.monotonic()) > 0:
            with self.session.lock:
                live, solver_session_count = self.session.live, self.session.solver_session_count
                if self.session.running and not live.running:  # undo has restored a state at rest
                    return replace(live.state, q=self.session.q, is_at_rest=True)
                future = live.solve()
            try:
                state = future.result(remaining_seconds)
                state_number = solver_session_count, state.sequence
                self.session.state_subscribers.wait(state_number, deadline - time.monotonic())
                if live is self.session.live:
                    return state
            except CancelledError:  # a goal was moved or another mechanism was opened during the wait
                time.sleep(0.001)
            except TimeoutError:
                break
        return self.session.live.state

    def loop(self, function: Callable[[Studio, float], Any], rate: float = 60.0) -> None:
        """Call `function(studio, seconds)` at a fixed rate until it returns False or the studio is closed.

        A call that takes longer than a period delays the next one; missed calls are skipped.

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Studio({self.session.mechanism.name!r}, {'open' if self.is_open else 'closed'})"

    # ---- notebooks -------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        """Return HTML that embeds the page in a notebook.

        The address contains the access token. A saved notebook cannot open a later studio, since each studio has its
        own token.
        """
        if not self.is_open:
            return "<p>This studio is closed.</p>"
        self._server.access.frame_ancestors = NOTEBOOK_ORIGINS
        # browsers store the cookie of an embedded page only for the site of the notebook, which is mostly "localhost"
        window_link = html.escape(self.link, quote=True)
        frame_link = window_link.replace(f"//{LOOPBACK}:", "//localhost:")
        name = f"mechanik-{self._server.port}"
        return (
            f'<iframe id="{name}" src="{frame_link}" width="100%" height="{NOTEBOOK_HEIGHT_PX}" style="border: 0">'
            "</iframe>"
            f"<script>if (location.hostname === {LOOPBACK!r}) document.getElementById({name!r}).src = {self.link!r};"
            f'</script><p><a href="{window_link}" target="_blank">Open the studio in its own window</a></p>'
        )

    def _handle(self, kind: GoalKind, link: str, **options: Any) -> GoalHandle:
        self._check_open()
        number = self.session.add_goal(kind, link, **options)
        default_goal_numbers, self._default_goal_numbers = self._default_goal_numbers, ()
        for default_goal_number in default_goal_numbers:
            GoalHandle(self.session, self._callbacks, default_goal_number).remove()
        return GoalHandle(self.session, self._callbacks, number)

    def _check_open(self) -> None:
        if not self.is_open:
            raise StudioError("this studio is closed; open a new one with mk.Studio(mechanism)")
