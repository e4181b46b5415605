"""Host of a session: runs the session in a worker thread, queues its jobs, and sends its output to the pages."""

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
"""Position of the layer number in a state frame, bytes."""
SHARED_LAYER = 16
"""Layers from this number on share one place in an outbox.

A page shows at most the main solver and six compared methods.
"""


class Outbox:
    """Queue of messages to one page: all events, and the newest state frame of each layer, in order of arrival.

    Any thread may add messages; only the event loop that created the outbox removes them. A layer belongs to the main
    solver or to a compared method (`StateHeader.layer`). A new frame replaces a waiting frame of its layer, so a slow
    page gets only the newest frames. If a page has too many unread events, all its events are dropped, and the page
    must be disconnected (`is_full`). No frame is sent before the page has received the model (`allow_frames`).
    """

    def __init__(self, max_events: int, max_characters: int = 16_000_000) -> None:
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._lock = threading.Lock()
        self._max_events, self._max_characters, self._character_count = max_events, max_characters, 0
        self._items: dict[int, str | bytes] = {}  # keys: increasing numbers of events; -1 - layer of frames
        self._event_keys, self._event_count = count(), 0
        self._is_wake_scheduled = False
        self._can_send_frames = False
        self.is_full = False

    def put_event(self, text: str) -> None:
        with self._lock:
            self._character_count += len(text)
            is_only_event = self._event_count == 0  # a single event is accepted at any length
            if is_only_event or (
                self._event_count < self._max_events and self._character_count <= self._max_characters
            ):
                self._items[next(self._event_keys)] = text
                self._event_count += 1
            else:
                self.is_full = True
                # the page is disconnected and will not read its events
                self._items, self._event_count = self._frames(), 0
            self._wake()

    def put_frame(self, frame: bytes) -> None:
        layer = int(struct.unpack_from("<d", frame, LAYER_OFFSET)[0])
        key = -1 - min(layer, SHARED_LAYER)
        with self._lock:
            self._items.pop(key, None)
            self._items[key] = frame
            self._wake()

    def allow_frames(self) -> None:
        """Allow sending frames, after the page has received the model to which they belong."""
        with self._lock:
            for key in self._frames():
                self._items[key] = self._items.pop(key)  # move frames behind the events
            self._can_send_frames = True
            self._wake()

    async def take_all(self) -> list[str | bytes]:
        """Wait for a new message, then return and remove all messages that may be sent.

        The list is empty if the only messages are frames that may not be sent yet.
        """
        await self._ready.wait()
        with self._lock:
            held_frames: dict[int, str | bytes] = {} if self._can_send_frames else self._frames()
            items = [item for key, item in self._items.items() if key not in held_frames]
            self._items, self._event_count, self._character_count = held_frames, 0, 0
            self._is_wake_scheduled = False
            self._ready.clear()
        return items

    def _frames(self) -> dict[int, str | bytes]:
        return {key: item for key, item in self._items.items() if key < 0}

    def _wake(self) -> None:
        if not self._is_wake_scheduled:
            self._is_wake_scheduled = True
            with contextlib.suppress(RuntimeError):  # the event loop has ended
                self._loop.call_soon_threadsafe(self._ready.set)


ANIMATED_TICK_SECONDS, IDLE_TICK_SECONDS = 1 / 60, 1 / 10
"""Interval between two ticks of a session with and without a running animation, s."""
INTERNAL_ERROR = "internal error of the studio; see the reason in the log of the server"
ID_PATTERN, MAX_ID_LENGTH = re.compile(r'"id": ?(\d{1,15})}$'), 40
T = TypeVar("T")
log = logging.getLogger("mechanik.studio")


def request_id(text: str) -> int:
    """Return the id at the end of a request text, without parsing the text; -1 if there is no id."""
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
    """Result of a call, for a caller that waits."""


class SessionHost:
    """Runs a session in a worker thread and connects it with its pages.

    Jobs run in order of arrival. If consecutive drag updates of a page wait for another job, only the newest is kept,
    so drag updates do not accumulate behind a slow job. A drag update never overtakes a request.

    Only a new page receives the complete state. Replies are sent to the page that sent the request; all other messages
    are sent to all pages. The drag of a page ends when the page is removed.
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
            make_session: makes the session from a function that sends events and a function that sends frames.
            send_greeting: sends events to a new page that do not come from the session, such as the state of kernels.
        """
        self.key = key
        self._send_greeting = send_greeting
        self._pages: tuple[Outbox, ...] = ()
        self._only_receiver: Outbox | None = None
        self._dragging_page: Outbox | None = None
        self._last_internal_error = ""
        self._jobs: deque[_Job] = deque()
        self._condition = threading.Condition()
        self._is_closed = self._is_paused = False
        self._on_closed: Callable[[], None] = lambda: None
        self.session = make_session(self._send_event, self._send_frame)
        self._thread = threading.Thread(target=self._work, name="mechanik studio session", daemon=True)
        self._thread.start()

    @property
    def pending_job_count(self) -> int:
        """Number of jobs that have not started."""
        return len(self._jobs)

    @property
    def page_count(self) -> int:
        return len(self._pages)

    def add_page(self, page: Outbox) -> None:
        def greet() -> None:
            with self._condition:
                self._pages = (*self._pages, page)  # before the greeting, otherwise the page could miss an event
            self._only_receiver = page
            try:
                if self._send_greeting is not None:
                    self._send_greeting(lambda event: page.put_event(write_event(event)))
                self.session.send_everything()
            finally:
                self._only_receiver = None
                page.allow_frames()

        self._add(_Job(page, call=greet))

    def remove_page(self, page: Outbox) -> None:
        def remove() -> None:
            with self._condition:
                self._pages = tuple(other_page for other_page in self._pages if other_page is not page)

        def finish_removal() -> None:
            remove()  # again: a queued greeting may have added the page after the first call
            if self._dragging_page is page:
                self._dragging_page = None
                self.session.handle_request(EndDrag())

        remove()
        self._add(_Job(None, call=finish_removal))

    def broadcast(self, event: Event) -> None:
        """Send an event that does not come from the session to all pages; callable from any thread."""
        text = write_event(event)
        for page in self._pages:
            page.put_event(text)

    def submit_request(self, page: Outbox, text: str) -> None:
        """Queue the text of a request; the page gets `RequestDone` or `RequestRefused`."""
        self._add(_Job(page, text=text))

    def submit_drag(self, page: Outbox, update: DragUpdate) -> None:
        """Queue a drag update of a page; it replaces a drag update of this page at the end of the queue."""
        with self._condition:
            if self._is_closed:
                return
            last_job = self._jobs[-1] if self._jobs else None
            if last_job is not None and last_job.drag is not None and last_job.page is page:
                last_job.drag = update
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
                except BaseException as error:  # raised again by `Future.result` in the thread of the caller
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
            self._is_closed = True
            dropped_jobs = list(self._jobs)
            self._jobs.clear()
            self._condition.notify()
        for job in dropped_jobs:
            if job.future is not None:
                job.future.cancel()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def pause(self) -> None:
        """Stop the ticks of the session while the host waits for its page to reconnect."""
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False

    # ---- worker thread ------------------------------------------------------------------------

    def _add(self, job: _Job) -> None:
        with self._condition:
            if not self._is_closed:
                self._jobs.append(job)
                self._condition.notify()
                return
        if job.future is not None:
            job.future.cancel()

    def _work(self) -> None:
        next_tick = time.monotonic()
        while True:
            with self._condition:
                if not self._jobs and not self._is_closed:
                    self._condition.wait(max(0.0, next_tick - time.monotonic()))
                if self._is_closed:
                    break
                job = self._jobs.popleft() if self._jobs else None
            if job is not None:
                self._run_job(job)
            now = time.monotonic()
            if now >= next_tick:
                next_tick = now + (
                    ANIMATED_TICK_SECONDS
                    if self._run_guarded(lambda now=now: self._tick(now), None)
                    else IDLE_TICK_SECONDS
                )
        self._pages = ()
        with contextlib.suppress(Exception):
            self.session.close()
            self.session.alternatives.join()
        self._on_closed()

    def _tick(self, now: float) -> bool:
        """Advance the session; return whether the next tick follows after `ANIMATED_TICK_SECONDS`."""
        if self._is_paused:
            return False
        self.session.tick(now)
        return self.session.is_animated

    def _run_job(self, job: _Job) -> None:
        if job.call is not None:
            self._run_guarded(job.call, job.page)
        elif job.drag is not None:
            update = job.drag
            self._run_guarded(lambda: self.session.drag_to(update), job.page)
        elif job.text is not None:
            self._run_request(job.text, job.page)

    def _run_request(self, text: str, page: Outbox | None) -> None:
        def handle() -> None:
            request = read_request(text)
            self.session.handle_request(request)
            if isinstance(request, StartGoalDrag | StartJointDrag | StartObstacleDrag | StartLinkDrag):
                self._dragging_page = page
            elif isinstance(request, EndDrag):
                self._dragging_page = None
            if page is not None:
                page.put_event(write_event(RequestDone(request.id)))

        self._run_guarded(handle, page, request_id(text))

    def _run_guarded(self, function: Callable[[], T], page: Outbox | None, id_of_request: int = -1) -> T | None:
        """Return the result of `function`; report an error and return None.

        The page gets the message of a `MechanikError`, and a message if data is nested too deeply. Any other exception
        is a defect of the studio: it is logged, and the page gets `INTERNAL_ERROR`. No exception ends the thread.
        """
        try:
            return function()
        except MechanikError as error:
            message = str(error)
        except RecursionError:
            message = "the data is nested too deeply"
        except Exception as error:
            message, error_text = INTERNAL_ERROR, f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
            if error_text != self._last_internal_error:  # log an error that repeats at each tick only once
                log.error("the studio: %s", error_text)
            self._last_internal_error = error_text
        if page is not None:
            page.put_event(write_event(RequestRefused(id_of_request, message)))
        return None

    # ---- output of the session, from any thread -----------------------------------------------

    def _send_event(self, event: Event) -> None:
        text = write_event(event)
        # a frame lists goals in the order of the last `Goals` event, so all pages must receive this event
        for page in self._pages if isinstance(event, Goals) else self._receivers():
            page.put_event(text)

    def _send_frame(self, frame: bytes) -> None:
        for page in self._receivers():
            page.put_frame(frame)

    def _receivers(self) -> tuple[Outbox, ...]:
        receiver = self._only_receiver
        if receiver is not None and threading.current_thread() is self._thread:
            return (receiver,)
        return self._pages
