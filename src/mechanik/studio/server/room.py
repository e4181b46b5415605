"""A session, the thread in which it works, and the pages that look at it."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from mechanik.errors import MechanikError
from mechanik.studio.messages.events import Done, Event, Goals, Refused
from mechanik.studio.messages.frames import Hand
from mechanik.studio.messages.read import read_request
from mechanik.studio.messages.requests import GrabFreedom, GrabGoal, GrabObstacle, PullLink, Release
from mechanik.studio.messages.write import write_event
from mechanik.studio.server.outbox import Outbox
from mechanik.studio.session.session import Session

MOVING, STILL = 1 / 60, 1 / 10
"""Seconds between two ticks of a session that is animated, and of one that is not."""
INSIDE = "something went wrong inside the studio; nothing more is known here, and the server's log says what"
ID, LONGEST_ID = re.compile(r'"id": ?(\d{1,15})}$'), 40
T = TypeVar("T")
log = logging.getLogger("mechanik.studio")


def id_of(text: str) -> int:
    """The id of a request that is not read, or cannot be: as pages write it, at the end. -1 if it is not there."""
    found = ID.search(text[-LONGEST_ID:])
    return int(found[1]) if found else -1


@dataclass(slots=True)
class _Job:
    """Something to be done in the room's thread: a request, a hand, or a call."""

    page: Outbox | None
    text: str | None = None
    hand: Hand | None = None
    call: Callable[[], None] | None = None
    future: Future[Any] | None = None
    """Of a call for which somebody waits."""


class Room:
    """Jobs are done one after the other in the order in which they came. Of hands that come while another job runs the
    newest wins, so that nothing queues up behind a slow one; a hand never overtakes the request before it.

    A page that enters is greeted alone, and answers go to the page that asked; all else goes to every page. What a page
    holds when it leaves is let go.
    """

    def __init__(
        self,
        key: str,
        make: Callable[[Callable[[Event], None], Callable[[bytes], None]], Session],
        greet: Callable[[Callable[[Event], None]], None] | None = None,
    ) -> None:
        """
        Args:
            greet: tells a page that enters what does not come from the session.
        """
        self.key = key
        self._greet = greet
        self._pages: tuple[Outbox, ...] = ()
        self._only: Outbox | None = None
        self._holder: Outbox | None = None
        self._last_problem = ""
        self._jobs: deque[_Job] = deque()
        self._news = threading.Condition()
        self._closed = self._sleeps = False
        self._then: Callable[[], None] = lambda: None
        self.session = make(self._tell, self._show)
        self._thread = threading.Thread(target=self._work, name="mechanik studio session", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many jobs have not been begun."""
        return len(self._jobs)

    @property
    def pages(self) -> int:
        return len(self._pages)

    def enter(self, page: Outbox) -> None:
        def greet() -> None:
            with self._news:
                self._pages = (*self._pages, page)  # before the greeting, so that it misses nothing after it
            self._only = page
            try:
                if self._greet is not None:
                    self._greet(lambda event: page.put_event(write_event(event)))
                self.session.greet()
            finally:
                self._only = None
                page.greeted()

        self._add(_Job(page, call=greet))

    def leave(self, page: Outbox) -> None:
        def forget() -> None:
            with self._news:
                self._pages = tuple(one for one in self._pages if one is not page)

        def let_go() -> None:
            forget()  # again, behind a greeting that may have waited
            if self._holder is page:
                self._holder = None
                self.session.ask(Release())

        forget()
        self._add(_Job(None, call=let_go))

    def tell(self, event: Event) -> None:
        """Tell all pages something that does not come from the session; from any thread."""
        text = write_event(event)
        for page in self._pages:
            page.put_event(text)

    def ask(self, page: Outbox, text: str) -> None:
        """Carry out a request as it came; the page is told `Done` or `Refused`."""
        self._add(_Job(page, text=text))

    def hand(self, page: Outbox, hand: Hand) -> None:
        """Where a hand of that page holds what it has taken."""
        with self._news:
            if self._closed:
                return
            last = self._jobs[-1] if self._jobs else None
            if last is not None and last.hand is not None and last.page is page:
                last.hand = hand
            else:
                self._jobs.append(_Job(page, hand=hand))
            self._news.notify()

    def call(self, function: Callable[[Session], T]) -> Future[T]:
        """The result of something that is done with the session, in its thread; cancelled if the room is closed."""
        future: Future[T] = Future()

        def run() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function(self.session))
                except BaseException as error:  # the caller's, who waits for it
                    future.set_exception(error)

        self._add(_Job(None, call=run, future=future))
        return future

    def close(self, wait: float = 5.0, then: Callable[[], None] | None = None) -> None:
        """The job that is running is finished, others are not begun; `then` is called at the end of the thread."""
        with self._news:
            self._then = then or self._then
            self._closed = True
            forgotten = list(self._jobs)
            self._jobs.clear()
            self._news.notify()
        for job in forgotten:
            if job.future is not None:
                job.future.cancel()
        if threading.current_thread() is not self._thread:
            self._thread.join(wait)

    def sleep(self) -> None:
        """Nobody looks, and somebody may come back: no scene moves meanwhile."""
        self._sleeps = True

    def wake(self) -> None:
        self._sleeps = False

    # ---- the thread ---------------------------------------------------------------------------

    def _add(self, job: _Job) -> None:
        with self._news:
            if not self._closed:
                self._jobs.append(job)
                self._news.notify()
                return
        if job.future is not None:
            job.future.cancel()

    def _work(self) -> None:
        due = time.monotonic()
        while True:
            with self._news:
                if not self._jobs and not self._closed:
                    self._news.wait(max(0.0, due - time.monotonic()))
                if self._closed:
                    break
                job = self._jobs.popleft() if self._jobs else None
            if job is not None:
                self._do(job)
            now = time.monotonic()
            if now >= due:
                due = now + (MOVING if self._guarded(lambda now=now: self._tick(now), None) else STILL)
        self._pages = ()
        with contextlib.suppress(Exception):
            self.session.close()
            self.session.ghosts.join()
        self._then()

    def _tick(self, now: float) -> bool:
        """Whether the next one should come at the rate of the screen."""
        if self._sleeps:
            return False
        self.session.tick(now)
        return self.session.is_animated

    def _do(self, job: _Job) -> None:
        if job.call is not None:
            self._guarded(job.call, job.page)
        elif job.hand is not None:
            hand = job.hand
            self._guarded(lambda: self.session.hand(hand), job.page)
        elif job.text is not None:
            self._answer(job.text, job.page)

    def _answer(self, text: str, page: Outbox | None) -> None:
        def carry_out() -> None:
            number, request = read_request(text)
            self.session.ask(request)
            if isinstance(request, GrabGoal | GrabFreedom | GrabObstacle | PullLink):
                self._holder = page
            elif isinstance(request, Release):
                self._holder = None
            if page is not None:
                page.put_event(write_event(Done(number)))

        self._guarded(carry_out, page, id_of(text))

    def _guarded(self, what: Callable[[], T], page: Outbox | None, number: int = -1) -> T | None:
        """The result. A refusal is told to the page; anything else that is raised is our fault, and the thread lives
        on."""
        try:
            return what()
        except MechanikError as error:
            words = str(error)
        except RecursionError:
            words = "this is nested too deeply"
        except Exception as error:
            words, problem = INSIDE, f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
            if problem != self._last_problem:  # what happens at every tick is said once
                log.error("the studio: %s", problem)
            self._last_problem = problem
        if page is not None:
            page.put_event(write_event(Refused(number, words)))
        return None

    # ---- what the session says, from any thread -----------------------------------------------

    def _tell(self, event: Event) -> None:
        text = write_event(event)
        # frames name the order of goals that was told last, whoever it was told to
        for page in self._pages if isinstance(event, Goals) else self._hearers():
            page.put_event(text)

    def _show(self, frame: bytes) -> None:
        for page in self._hearers():
            page.put_frame(frame)

    def _hearers(self) -> tuple[Outbox, ...]:
        only = self._only
        if only is not None and threading.current_thread() is self._thread:
            return (only,)
        return self._pages
