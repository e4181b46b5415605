"""A studio that a program opens: it shows a mechanism in the browser, and both the program and people move it."""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from mechanik.collision.avoiding import Avoid
from mechanik.errors import StudioClosed
from mechanik.live import LiveState
from mechanik.mechanism import Mechanism
from mechanik.mechanism.door import read_only
from mechanik.solvers import Solution
from mechanik.spatial.array import Array, ArrayLike
from mechanik.studio.callbacks import Callbacks
from mechanik.studio.handle import Handle
from mechanik.studio.messages.requests import GoalKind
from mechanik.studio.server.serve import LOOPBACK, Server, serve
from mechanik.studio.session.poses import Place
from mechanik.studio.session.session import Session

NOTEBOOKS = ("http://localhost:*", "http://127.0.0.1:*")
"""Pages that may show the studio inside themselves once a notebook has asked for it."""
HEIGHT = 600
"""Pixels, in a notebook."""


class Studio:
    """Opens `mechanism` in the browser. All pages show the same one, a copy: yours stays as it is.

    >>> studio = mk.Studio(mk.gallery.panda())
    >>> hand = studio.handle("panda_hand")
    >>> hand.move(hand.pose[:3, 3] + (0.0, 0.0, 0.1))
    >>> studio.wait()                                 # until Ctrl-C

    In a notebook the last line of a cell that names the studio shows it there.

    Until the program makes handles of its own there are those that fit the mechanism, as for a file that is opened.

    Args:
        port: 0: any that is free.
        avoid: what it keeps off, as for `Solver`: "self" and obstacles, which are drawn; see `avoid`.
        clearance: how far, m.
        open_browser: whether the browser is opened; `link` is there in any case.
        page: the folder of the built page, if not the one that comes with Mechanik.
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
        room = self._server.rooms.shared
        assert room is not None
        self.session: Session = room.session
        self._callbacks = Callbacks(self.session)
        self._first_goals = tuple(goal.number for goal in self.session.goals)
        if avoid is not None:
            try:
                self.avoid(avoid, clearance=clearance)
            except BaseException:
                self.close()
                raise
        if open_browser:
            self._server.open_browser()

    # ---- what it shows ------------------------------------------------------------------------

    @property
    def link(self) -> str:
        """The address with the key; who opens it comes in."""
        return self._server.link

    @property
    def mechanism(self) -> Mechanism:
        """The copy that is shown; people may have opened another."""
        return self.session.mechanism

    @property
    def q(self) -> Array:
        """Where it stands now, read-only."""
        return read_only(np.array(self.session.q))

    def show(self, q: ArrayLike | Solution) -> None:
        """Put the mechanism there. Goals that are not pinned come along, so that it stays."""
        self._check_open()
        self.session.come_along(q.q if isinstance(q, Solution) else q)

    # ---- what can be taken --------------------------------------------------------------------

    def handle(
        self,
        link: str,
        kind: GoalKind = "pose",
        *,
        at: tuple[float, float, float] = (0.0, 0.0, 0.0),
        pose: Place | None = None,
        name: str = "",
    ) -> Handle:
        """Something to drag a link by, in the browser and from here.

        Args:
            kind: what is wanted of the link: "pose", "point", "orientation", "look_at"...
            at: the point of the link, in its frame, m.
            pose: where it is wanted, in the world; None: where it is.
        """
        return self._handle(kind, link, at=at, pose=pose, name=name)

    def pin(self, link: str, kind: GoalKind = "pose", *, at: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Handle:
        """Hold a link where it is, before all handles."""
        return self._handle(kind, link, at=at, pinned=True)

    # ---- what is in the way -------------------------------------------------------------------

    def avoid(
        self,
        avoid: Avoid | None = ("self",),
        *,
        clearance: float = 0.0,
        allow: Iterable[tuple[str, str]] = (),
        forbid: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Keep off these from now on, and off nothing else. Obstacles are drawn; what is hit all the same is red.

        Args:
            avoid: "self" (links of each other) and obstacles; None: nothing, but it is shown what hits itself.
            clearance: how far, m.
            allow, forbid: pairs of names that may touch, and that are looked at although they would be left out.
        """
        self._check_open()
        self.session.keep_off(
            ("self",) if avoid is None else avoid,
            mode="show" if avoid is None else "avoid",
            clearance=clearance,
            allow=allow,
            forbid=forbid,
        )

    def move_obstacle(self, name: str, pose: Place) -> None:
        """Put an obstacle elsewhere: (4, 4), position and wxyz (7,), or a position (3,), which leaves its turn."""
        self._check_open()
        self.session.move_obstacle(name, pose)

    # ---- what happens -------------------------------------------------------------------------

    def on_state(self, callback: Callable[[LiveState], Any]) -> Callable[[], None]:
        """Call back with each new state, from a thread of its own; returns what ends it. One that raises is not called
        again, and its words are logged."""
        self._check_open()
        return self._callbacks.add(callback)

    def settle(self, seconds: float = 5.0) -> LiveState:
        """Wait until the goals that there are now have been answered, nothing moves any more and all callbacks know, or
        so long; the state then. Not for callbacks, which it waits for."""
        self._check_open()
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            with self.session.lock:
                live, stage = self.session.live, self.session.stages
                if self.session.running and not live.running:  # an undo has put it to where it rested
                    return replace(live.state, q=self.session.q, is_at_rest=True)
                asked = live.solve()
            try:
                state = asked.result(left)
                self.session.watchers.wait((stage, state.sequence), until - time.monotonic())
                if live is self.session.live:
                    return state
            except CancelledError:  # a goal was moved meanwhile, or another mechanism opened
                time.sleep(0.001)
            except TimeoutError:
                break
        return self.session.live.state

    def loop(self, function: Callable[[Studio, float], Any], rate: float = 60.0) -> None:
        """Call `function(studio, seconds)` at a rate, with the time since the first call, until it returns False or
        the studio is closed. A call that takes longer than its turn delays the next; none are made up for."""
        start = due = time.monotonic()
        while self.is_open and function(self, max(0.0, time.monotonic() - start)) is not False:
            due = max(due + 1.0 / rate, time.monotonic())
            self._server.wait(due - time.monotonic())

    # ---- its end ------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self._server.is_running

    def wait(self) -> None:
        """Until it is closed, or Ctrl-C, which closes it."""
        try:
            while self.is_open:
                self._server.wait(1.0)
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Ends the server; pages say that they have lost it."""
        self._server.close()

    def __enter__(self) -> Studio:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Studio({self.session.mechanism.name!r}, {'open' if self.is_open else 'closed'})"

    # ---- notebooks ----------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        """A frame with the page. Its key is in the address: a notebook that is saved with it opens nothing later,
        since every studio has another."""
        if not self.is_open:
            return "<p>This studio is closed.</p>"
        self._server.access.frames = NOTEBOOKS
        # a cookie is kept for a frame only if it is of the same site as the notebook, most of which are at "localhost"
        alone = html.escape(self.link, quote=True)
        inside = alone.replace(f"//{LOOPBACK}:", "//localhost:")
        name = f"mechanik-{self._server.port}"
        return (
            f'<iframe id="{name}" src="{inside}" width="100%" height="{HEIGHT}" style="border: 0"></iframe>'
            f"<script>if (location.hostname === {LOOPBACK!r}) document.getElementById({name!r}).src = {self.link!r};"
            f'</script><p><a href="{alone}" target="_blank">Open the studio in its own window</a></p>'
        )

    def _handle(self, kind: GoalKind, link: str, **options: Any) -> Handle:
        self._check_open()
        number = self.session.add_goal(kind, link, **options)
        first, self._first_goals = self._first_goals, ()
        for one in first:
            Handle(self.session, self._callbacks, one).remove()
        return Handle(self.session, self._callbacks, number)

    def _check_open(self) -> None:
        if not self.is_open:
            raise StudioClosed("this studio was closed; make another with mk.Studio(mechanism)")
