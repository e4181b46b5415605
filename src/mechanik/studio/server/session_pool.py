"""Pool of the sessions of a server, one per page or one for all pages, and the monitor of kernel compilation."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable

from mechanik.errors import InvalidOperation
from mechanik.studio.messages.events import Event, Kernels
from mechanik.studio.server.server_limits import ServerLimits, TokenBucket
from mechanik.studio.server.session_host import SessionHost
from mechanik.studio.session.session import Session
from mechanik.tiers import KernelState, kernel_states, on_kernel_change, request_kernels
from mechanik.validation import format_count

STUDIO_KERNELS = ("forward", "dense_evaluation", "write_targets", "descent", "distance.collision_query")
"""Kernel modules for the first drag in a scene, in order of compilation: first those that compile in a few seconds."""
POLL_SECONDS = 1.0
"""Interval between two checks of a running compilation, s."""
RECOMPILE_ADVICE = "Run `mechanik warmup`; it compiles the kernels or prints why this is not possible."
log = logging.getLogger("mechanik.studio")


class KernelMonitor:
    """Requests the kernels of the studio and reports their compilation to the pages, in its own thread.

    The states of the kernels are read every `POLL_SECONDS` during a compilation, and otherwise only after a change
    (`on_kernel_change`).

    Args:
        broadcast: sends an event to all pages; called from the thread of the monitor.
    """

    def __init__(self, broadcast: Callable[[Event], None]) -> None:
        self._broadcast = broadcast
        self._event = Kernels("ready", 0, 0, "")
        self._event_lock = threading.Lock()
        self._has_changed = threading.Event()
        self._is_closed = False
        self._unsubscribe = on_kernel_change(self._has_changed.set)
        request_kernels(*STUDIO_KERNELS)
        self._has_changed.set()
        self._thread = threading.Thread(target=self._work, name="mechanik studio kernels", daemon=True)
        self._thread.start()

    def send_status(self, send_event: Callable[[Event], None]) -> None:
        """Send the present compilation state to a new page.

        `broadcast` must already reach the page, otherwise the page could miss a change.
        """
        with self._event_lock:
            send_event(self._event)

    def close(self) -> None:
        self._unsubscribe()
        self._is_closed = True
        self._has_changed.set()

    def _work(self) -> None:
        while not self._is_closed:
            self._has_changed.wait(POLL_SECONDS if self._event.state == "compiling" else None)
            self._has_changed.clear()
            if self._is_closed:
                return
            try:
                event = kernel_event(kernel_states(only_used=True))
            except Exception as error:  # the pages work without kernel states, and this thread has no caller
                log.error("the kernel states cannot be read: %s", error)
                return
            with self._event_lock:
                if event != self._event:
                    self._event = event
                    self._broadcast(event)


def kernel_event(states: list[KernelState]) -> Kernels:
    """Return the event that describes the kernel modules in use.

    Args:
        states: one for each module in use.
    """
    ready_count = sum(module.state == "ready" for module in states)
    if ready_count == len(states):
        return Kernels("ready", ready_count, ready_count, "")
    if any(module.state == "compiling" for module in states):
        return Kernels("compiling", ready_count, len(states), "")
    reasons = (module.reason for module in states if module.state == "not compiled" and module.reason)
    return Kernels("not compiled", ready_count, len(states), _capitalize(next(reasons, RECOMPILE_ADVICE)))


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


SessionFactory = Callable[[Callable[[Event], None], Callable[[bytes], None], str], Session]
"""Makes a session from a function for events, a function for frames, and the session key.

The key is part of the addresses of meshes and files.
"""
POOL_FULL = "the studio is full: it has {}. Close another page and reload this page"
POOL_CLOSED = "the studio was closed; start it again"
TOO_MANY_NEW_PAGES = "too many pages were opened at once; wait a moment and reload this page"


class EvictionPending(InvalidOperation):
    """The pool is full, and a session without a page is being ended to free its slot; try again soon."""


class SessionPool:
    """All sessions of a server, identified by random keys.

    Keys cannot be guessed and are sent only to clients that have passed the access control, so a client cannot use the
    session of another client. Each page has one of `ServerLimits.max_sessions` slots; a session that waits for its page
    to reconnect keeps the slot of the page.

    Attributes:
        shared_host: host of the session that all pages share; None: one session per page.
    """

    def __init__(self, make_session: SessionFactory, limits: ServerLimits, is_shared: bool = False) -> None:
        self._make_session, self._limits = make_session, limits
        self._hosts: dict[str, SessionHost] = {}
        self._lock = threading.Lock()
        self._reserved_slot_count = self._ending_session_count = 0
        self._is_closed = False
        self._sessions_without_page: dict[str, tuple[SessionHost, threading.Timer]] = {}
        self._new_session_bucket = TokenBucket(limits.new_sessions_per_second, limits.max_sessions)
        self._kernels = KernelMonitor(self.broadcast)
        try:
            self.shared_host = self._make_host() if is_shared else None
        except BaseException:
            self._kernels.close()
            raise

    def broadcast(self, event: Event) -> None:
        """Send an event to all pages of all sessions; callable from any thread."""
        with self._lock:
            hosts = list(self._hosts.values())
        for host in hosts:
            host.broadcast(event)

    def find(self, key: str) -> SessionHost | None:
        return self._hosts.get(key)

    def __len__(self) -> int:
        return len(self._hosts)

    def stored_file_bytes(self, excluded: SessionHost) -> int:
        """Return the size of the mesh files of all sessions but `excluded`, bytes."""
        with self._lock:
            hosts = [*self._hosts.values(), *(host for host, _ in self._sessions_without_page.values())]
        return sum(host.session.file_bytes for host in hosts if host is not excluded)

    def resume(self, key: str) -> SessionHost | None:
        """Return the session of a reconnected page, with its slot; None if the session has ended or is in use.

        Raises:
            InvalidOperation: pages are opened too fast.
        """
        with self._lock:
            if key not in self._sessions_without_page:
                return None
            if not self._new_session_bucket.take():
                raise InvalidOperation(TOO_MANY_NEW_PAGES)
            host, timer = self._sessions_without_page.pop(key)
            timer.cancel()
            self._hosts[key] = host
        host.resume()
        return host

    def reserve(self) -> None:
        """Reserve a slot for one more page; `release` frees it.

        If the pool is full, the session that has been without a page for the longest time is ended.

        Raises:
            EvictionPending: the pool is full, but a slot will be free soon.
            InvalidOperation: the pool is full and no session is without a page, or pages are opened too fast.
        """
        with self._lock:
            if self._reserved_slot_count >= self._limits.max_sessions:
                if self._sessions_without_page and self._ending_session_count == 0:
                    self._end_session_without_page(next(iter(self._sessions_without_page)))
                raise (EvictionPending if self._ending_session_count else InvalidOperation)(
                    POOL_FULL.format(format_count(self._reserved_slot_count, "page"))
                )
            if not self._new_session_bucket.take():
                raise InvalidOperation(TOO_MANY_NEW_PAGES)
            self._reserved_slot_count += 1

    def open_session(self) -> SessionHost:
        """Return the session of a page that has a reserved slot; if this raises, the slot becomes free.

        The call may take several seconds, so do not make it in the event loop.

        Raises:
            InvalidOperation: the pool is closed.
        """
        try:
            return self.shared_host or self._make_host()
        except BaseException:
            self._free_slot()
            raise

    def release(self, host: SessionHost, reconnect_seconds: float = 0.0) -> None:
        """End the session of a closed page, and free its slot; a shared session does not end.

        The slot becomes free only when the thread of the session has ended. A client that repeatedly connects, starts a
        long computation and disconnects therefore fills the pool, but cannot overload the machine.

        Args:
            reconnect_seconds: how long the session and its slot wait for the page to reconnect, s.
        """
        if host is self.shared_host:
            self._free_slot()
            return
        with self._lock:
            self._hosts.pop(host.key, None)
            may_reconnect = reconnect_seconds > 0 and not self._is_closed
            if may_reconnect:
                timer = threading.Timer(reconnect_seconds, self._end_if_without_page, (host.key,))
                timer.daemon = True
                self._sessions_without_page[host.key] = host, timer
                host.pause()
                timer.start()
        if not may_reconnect:
            host.close(0.0, self._free_slot)

    def _end_if_without_page(self, key: str) -> None:
        """End a session whose page has not reconnected in time."""
        with self._lock:
            if key in self._sessions_without_page:
                self._end_session_without_page(key)

    def _end_session_without_page(self, key: str) -> None:
        """End a session without a page.

        The caller must own the lock. The thread of the session acquires the lock before it ends, so waiting for the
        thread here would be a deadlock.
        """
        host, timer = self._sessions_without_page.pop(key)
        timer.cancel()
        self._ending_session_count += 1
        host.close(0.0, self._on_session_ended)

    def _on_session_ended(self) -> None:
        with self._lock:
            self._ending_session_count -= 1
            self._reserved_slot_count -= 1

    def _free_slot(self) -> None:
        with self._lock:
            self._reserved_slot_count -= 1

    def close(self) -> None:
        """End all sessions; afterwards no new session can be opened."""
        self._kernels.close()
        with self._lock:
            self._is_closed = True
            for _, timer in self._sessions_without_page.values():
                timer.cancel()
            hosts = [*self._hosts.values(), *(host for host, _ in self._sessions_without_page.values())]
            self._hosts.clear()
            self._sessions_without_page.clear()
        for host in hosts:
            host.close(0.0)
        for host in hosts:
            host.close()

    def _make_host(self) -> SessionHost:
        key = secrets.token_urlsafe(16)
        host = SessionHost(
            key,
            lambda send_event, send_frame: self._make_session(send_event, send_frame, key),
            self._kernels.send_status,
        )
        with self._lock:
            if not self._is_closed:
                self._hosts[key] = host
                return host
        host.close(0.0)
        raise InvalidOperation(POOL_CLOSED)
