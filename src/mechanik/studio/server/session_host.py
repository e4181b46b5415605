"""Host of a session: its worker thread, its queue of jobs, and the outboxes of the pages that show it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

from mechanik.errors import MechanikError
from mechanik.studio.messages.events import Event, Goals, RequestDone, RequestRefused
from mechanik.studio.messages.message_codec import DragUpdate, StateHeader, read_request, write_event
from mechanik.studio.messages.requests import EndDrag, StartGoalDrag, StartJointDrag, StartLinkDrag, StartObstacleDrag
from mechanik.studio.session.session import Session

LAYER_OFFSET = 8 * StateHeader._fields.index("layer")
MAX_LAYERS = 16
"""Number of frame layers; higher layers share the last slot.

A page shows at most the main solver and six compared methods.
"""


class Outbox:
    """Queue of messages to one page: all events, and the newest frame of each layer, in order of arrival.

    Any thread may fill it; the event loop in which it was made empties it. A slow page misses frames and gets the
    newest. Events are never dropped, so too many of them mean that the page is lost (`is_full`). The reply to a request
    comes after the frames that show its effect. No frame is sent before the page knows the model (`allow_frames`).
    """

    def __init__(self, max_events: int, max_characters: int = 16_000_000) -> None:
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._lock = threading.Lock()
        self._most, self._most_letters, self._characters = max_events, max_characters, 0
        self._items: dict[int, str | bytes] = {}  # events under growing numbers, frames under -1 - layer
        self._numbers, self._events = count(), 0
        self._is_awake = False
        self._is_greeted = False
        self.is_full = False

    def put_event(self, text: str) -> None:
        with self._lock:
            self._characters += len(text)
            is_alone = self._events == 0  # one event is always accepted, however large
            if is_alone or (self._events < self._most and self._characters <= self._most_letters):
                self._items[next(self._numbers)] = text
                self._events += 1
            else:
                self.is_full = True
                self._items, self._events = self._frames(), 0  # the page will not read them
            self._wake()

    def put_frame(self, frame: bytes) -> None:
        layer = int(struct.unpack_from("<d", frame, LAYER_OFFSET)[0])
        key = -1 - min(layer, MAX_LAYERS)
        with self._lock:
            self._items.pop(key, None)
            self._items[key] = frame
            self._wake()

    def allow_frames(self) -> None:
        """Let frames be sent from now on: the page has received the model that they belong to."""
        with self._lock:
            for key in self._frames():
                self._items[key] = self._items.pop(key)  # move frames behind the events
            self._is_greeted = True
            self._wake()

    async def take_all(self) -> list[str | bytes]:
        """Return and remove all messages; wait until there is at least one."""
        await self._ready.wait()
        with self._lock:
            held_back: dict[int, str | bytes] = {} if self._is_greeted else self._frames()
            items = [item for key, item in self._items.items() if key not in held_back]
            self._items, self._events, self._characters = held_back, 0, 0
            self._is_awake = False
            self._ready.clear()
        return items

    def _frames(self) -> dict[int, str | bytes]:
        return {key: item for key, item in self._items.items() if key < 0}

    def _wake(self) -> None:
        if not self._is_awake:
            self._is_awake = True
            with contextlib.suppress(RuntimeError):  # the event loop has ended
                self._loop.call_soon_threadsafe(self._ready.set)


ANIMATED_TICK_SECONDS, IDLE_TICK_SECONDS = 1 / 60, 1 / 10
"""Interval between two ticks of an animated session, and of one that is not animated, s."""
INTERNAL_ERROR = "internal error of the studio; the log of the server has the reason"
ID_PATTERN, MAX_ID_LENGTH = re.compile(r'"id": ?(\d{1,15})}$'), 40
T = TypeVar("T")
log = logging.getLogger("mechanik.studio")


def request_id(text: str) -> int:
    """Return the id at the end of a request text that is not parsed; -1 if there is none."""
    match = ID_PATTERN.search(text[-MAX_ID_LENGTH:])
    return int(match[1]) if match else -1


@dataclass(slots=True)
class _Job:
    """A job for the worker thread: a request, a drag update or a call."""

    page: Outbox | None
    text: str | None = None
    drag: DragUpdate | None = None
    call: Callable[[], None] | None = None
    future: Future[Any] | None = None
    """Future of a call whose caller waits."""


class SessionHost:
    """Runs a session in a worker thread and connects it with its pages.

    Jobs run in order of arrival. Of drag updates that arrive while another job runs only the newest is kept, so that
    nothing queues up behind a slow job. A drag update never overtakes a request before it.

    A new page receives the whole state alone. Replies go to the page that sent the request; everything else goes to all
    pages. When a page leaves, its drag ends.
    """

    def __init__(
        self,
        key: str,
        make_session: Callable[[Callable[[Event], None], Callable[[bytes], None]], Session],
        send_greeting: Callable[[Callable[[Event], None]], None] | None = None,
    ) -> None:
        """Create the session and start its thread.

        Args:
            key: key of the session.
            make_session: makes the session from two functions that take events and frames.
            send_greeting: sends a new page what does not come from the session.
        """
        self.key = key
        self._greet = send_greeting
        self._pages: tuple[Outbox, ...] = ()
        self._only: Outbox | None = None
        self._dragging_page: Outbox | None = None
        self._last_problem = ""
        self._jobs: deque[_Job] = deque()
        self._condition = threading.Condition()
        self._closed = self._is_paused = False
        self._on_closed: Callable[[], None] = lambda: None
        self.session = make_session(self._send_event, self._send_frame)
        self._thread = threading.Thread(target=self._work, name="mechanik studio session", daemon=True)
        self._thread.start()

    @property
    def pending_jobs(self) -> int:
        """Number of jobs that have not started."""
        return len(self._jobs)

    @property
    def page_count(self) -> int:
        return len(self._pages)

    def add_page(self, page: Outbox) -> None:
        def greet() -> None:
            with self._condition:
                self._pages = (*self._pages, page)  # before the greeting, so that the page misses no later event
            self._only = page
            try:
                if self._greet is not None:
                    self._greet(lambda event: page.put_event(write_event(event)))
                self.session.send_everything()
            finally:
                self._only = None
                page.allow_frames()

        self._add(_Job(page, call=greet))

    def remove_page(self, page: Outbox) -> None:
        def remove() -> None:
            with self._condition:
                self._pages = tuple(known for known in self._pages if known is not page)

        def end_drag() -> None:
            remove()  # again: a queued greeting may have added the page after the first call
            if self._dragging_page is page:
                self._dragging_page = None
                self.session.handle_request(EndDrag())

        remove()
        self._add(_Job(None, call=end_drag))

    def broadcast(self, event: Event) -> None:
        """Send an event that does not come from the session to all pages; callable from any thread."""
        text = write_event(event)
        for page in self._pages:
            page.put_event(text)

    def submit_request(self, page: Outbox, text: str) -> None:
        """Queue a request as received; the page gets `RequestDone` or `RequestRefused`."""
        self._add(_Job(page, text=text))

    def submit_drag(self, page: Outbox, update: DragUpdate) -> None:
        """Queue a drag update of a page."""
        with self._condition:
            if self._closed:
                return
            last = self._jobs[-1] if self._jobs else None
            if last is not None and last.drag is not None and last.page is page:
                last.drag = update
            else:
                self._jobs.append(_Job(page, drag=update))
            self._condition.notify()

    def submit_call(self, function: Callable[[Session], T]) -> Future[T]:
        """Call a function with the session in the worker thread.

        Returns:
            The future of the result; it is cancelled if the host is closed.
        """
        future: Future[T] = Future()

        def run() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function(self.session))
                except BaseException as error:  # passed on to the caller, who waits for the future
                    future.set_exception(error)

        self._add(_Job(None, call=run, future=future))
        return future

    def close(self, timeout: float = 5.0, on_closed: Callable[[], None] | None = None) -> None:
        """Finish the running job, drop all others and end the thread.

        Args:
            timeout: maximum wait for the thread, s.
            on_closed: called at the end of the thread.
        """
        with self._condition:
            self._on_closed = on_closed or self._on_closed
            self._closed = True
            dropped_jobs = list(self._jobs)
            self._jobs.clear()
            self._condition.notify()
        for job in dropped_jobs:
            if job.future is not None:
                job.future.cancel()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def pause(self) -> None:
        """Stop animations while no page is connected, for a page that may come back."""
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False

    # ---- worker thread ------------------------------------------------------------------------

    def _add(self, job: _Job) -> None:
        with self._condition:
            if not self._closed:
                self._jobs.append(job)
                self._condition.notify()
                return
        if job.future is not None:
            job.future.cancel()

    def _work(self) -> None:
        due = time.monotonic()
        while True:
            with self._condition:
                if not self._jobs and not self._closed:
                    self._condition.wait(max(0.0, due - time.monotonic()))
                if self._closed:
                    break
                job = self._jobs.popleft() if self._jobs else None
            if job is not None:
                self._run_job(job)
            now = time.monotonic()
            if now >= due:
                due = now + (
                    ANIMATED_TICK_SECONDS if self._guarded(lambda now=now: self._tick(now), None) else IDLE_TICK_SECONDS
                )
        self._pages = ()
        with contextlib.suppress(Exception):
            self.session.close()
            self.session.alternatives.join()
        self._on_closed()

    def _tick(self, now: float) -> bool:
        """Advance the session; return whether the next tick should come at display rate."""
        if self._is_paused:
            return False
        self.session.tick(now)
        return self.session.is_animated

    def _run_job(self, job: _Job) -> None:
        if job.call is not None:
            self._guarded(job.call, job.page)
        elif job.drag is not None:
            update = job.drag
            self._guarded(lambda: self.session.drag_to(update), job.page)
        elif job.text is not None:
            self._run_request(job.text, job.page)

    def _run_request(self, text: str, page: Outbox | None) -> None:
        def carry_out() -> None:
            request = read_request(text)
            self.session.handle_request(request)
            if isinstance(request, StartGoalDrag | StartJointDrag | StartObstacleDrag | StartLinkDrag):
                self._dragging_page = page
            elif isinstance(request, EndDrag):
                self._dragging_page = None
            if page is not None:
                page.put_event(write_event(RequestDone(request.id)))

        self._guarded(carry_out, page, request_id(text))

    def _guarded(self, function: Callable[[], T], page: Outbox | None, number: int = -1) -> T | None:
        """Return the result of `function`; errors never end the thread.

        A `MechanikError` is reported to the page. Any other exception is a defect of the studio and is logged.
        """
        try:
            return function()
        except MechanikError as error:
            message = str(error)
        except RecursionError:
            message = "the data is nested too deeply"
        except Exception as error:
            message, problem = INTERNAL_ERROR, f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
            if problem != self._last_problem:  # log an error that repeats at each tick only once
                log.error("the studio: %s", problem)
            self._last_problem = problem
        if page is not None:
            page.put_event(write_event(RequestRefused(number, message)))
        return None

    # ---- output of the session, from any thread -----------------------------------------------

    def _send_event(self, event: Event) -> None:
        text = write_event(event)
        # frames refer to the last goal order that was sent, so all pages must receive it
        for page in self._pages if isinstance(event, Goals) else self._receivers():
            page.put_event(text)

    def _send_frame(self, frame: bytes) -> None:
        for page in self._receivers():
            page.put_frame(frame)

    def _receivers(self) -> tuple[Outbox, ...]:
        only = self._only
        if only is not None and threading.current_thread() is self._thread:
            return (only,)
        return self._pages
