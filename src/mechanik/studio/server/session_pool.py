"""Pool of the sessions of a server, one per connection or one that all share, and the kernel compilation monitor."""

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

STUDIO_KERNELS = ("forward", "dense_evaluation", "write_targets", "descent", "distance.collision_query")
"""Kernels that every scene needs for its first drag, in compilation order, quick ones first."""
POLL_SECONDS = 1.0
RECOMPILE_ADVICE = "Run `mechanik warmup`, which compiles the kernels or says why it cannot."
log = logging.getLogger("mechanik.studio")


class KernelMonitor:
    """Requests the kernels of the studio and reports their compilation to the pages, from a thread of its own.

    Kernel states are read every `POLL_SECONDS` while something compiles, and otherwise only when a module comes into
    use.

    Args:
        broadcast: sends an event to all pages; called from the thread.
    """

    def __init__(self, broadcast: Callable[[Event], None]) -> None:
        self._tell = broadcast
        self._event = Kernels("ready", 0, 0, "")
        self._event_lock = threading.Lock()
        self._news = threading.Event()
        self._is_closed = False
        self._end_listening = on_kernel_change(self._news.set)
        request_kernels(*STUDIO_KERNELS)
        self._news.set()
        self._thread = threading.Thread(target=self._work, name="mechanik studio kernels", daemon=True)
        self._thread.start()

    def send_status(self, send_event: Callable[[Event], None]) -> None:
        """Send the present state to a page that `broadcast` already reaches, so that it misses no change."""
        with self._event_lock:
            send_event(self._event)

    def close(self) -> None:
        self._end_listening()
        self._is_closed = True
        self._news.set()

    def _work(self) -> None:
        while not self._is_closed:
            self._news.wait(POLL_SECONDS if self._event.state == "compiling" else None)
            self._news.clear()
            if self._is_closed:
                return
            try:
                event = kernel_event(kernel_states(only_used=True))
            except Exception as error:  # pages work without this, and the thread has no caller to report to
                log.error("the states of kernels cannot be read: %s", error)
                return
            with self._event_lock:
                if event != self._event:
                    self._event = event
                    self._tell(event)


def kernel_event(states: list[KernelState]) -> Kernels:
    """Return the event that describes the kernel modules in use.

    Args:
        states: states of these modules.
    """
    ready = sum(module.state == "ready" for module in states)
    if ready == len(states):
        return Kernels("ready", ready, ready, "")
    if any(module.state == "compiling" for module in states):
        return Kernels("compiling", ready, len(states), "")
    reasons = (module.reason for module in states if module.state == "not compiled" and module.reason)
    return Kernels("not compiled", ready, len(states), _sentence(next(reasons, RECOMPILE_ADVICE)))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


SessionFactory = Callable[[Callable[[Event], None], Callable[[bytes], None], str], Session]
"""Makes a session from a function for events, a function for frames, and the session key.

The key is part of the addresses of meshes and files.
"""
POOL_FULL = "the studio is full: {} pages are open. Close a page and reload this one"
POOL_CLOSED = "the studio was closed"
TOO_MANY_NEW_PAGES = "too many pages were opened at once; wait a moment and reload this page"


class EvictionPending(InvalidOperation):
    """The pool is full, and a session without a page is being ended to make space; try again soon."""


class SessionPool:
    """All sessions of a server, by keys that cannot be guessed.

    A client learns a key only over a connection with access.

    Attributes:
        shared_host: the only session, for all pages; None: each connection has its own.
    """

    def __init__(self, make_session: SessionFactory, limits: ServerLimits, is_shared: bool = False) -> None:
        self._make, self._limits = make_session, limits
        self._hosts: dict[str, SessionHost] = {}
        self._lock = threading.Lock()
        self._reserved = self._ending = 0
        self._is_closed = False
        self._waiting: dict[str, tuple[SessionHost, threading.Timer]] = {}
        self._new = TokenBucket(limits.new_sessions_per_second, limits.max_sessions)
        self._kernels = KernelMonitor(self.broadcast)
        self.shared_host = self._open() if is_shared else None

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
            hosts = [*self._hosts.values(), *(host for host, _ in self._waiting.values())]
        return sum(host.session.file_bytes for host in hosts if host is not excluded)

    def resume(self, key: str) -> SessionHost | None:
        """Return the session of a page that has reconnected, with its slot; None if it has ended or is in use."""
        with self._lock:
            if key not in self._waiting:
                return None
            if not self._new.take():
                raise InvalidOperation(TOO_MANY_NEW_PAGES)
            host, timer = self._waiting.pop(key)
            timer.cancel()
            self._hosts[key] = host
        host.resume()
        return host

    def reserve(self) -> None:
        """Reserve a slot for one more page; `release` returns it.

        If the pool is full, the session that has waited longest for its page is ended.

        Raises:
            EvictionPending: a slot will be free soon.
            InvalidOperation: the pool is full, or pages are opened too fast.
        """
        with self._lock:
            if self._reserved >= self._limits.max_sessions:
                if self._waiting and self._ending == 0:
                    self._end_waiting(next(iter(self._waiting)))
                raise (EvictionPending if self._ending else InvalidOperation)(POOL_FULL.format(self._reserved))
            if not self._new.take():
                raise InvalidOperation(TOO_MANY_NEW_PAGES)
            self._reserved += 1

    def open_session(self) -> SessionHost:
        """Return the session of a page that has a reserved slot.

        It may take long, so do not call it in the event loop.
        """
        try:
            return self.shared_host or self._open()
        except BaseException:
            self._free_slot()
            raise

    def release(self, host: SessionHost, reconnect_seconds: float = 0.0) -> None:
        """End the session of a closed page, unless it is shared.

        The slot becomes free when the thread has ended. A client that repeatedly connects, starts long work and leaves
        therefore fills the pool and cannot overload the machine.

        Args:
            reconnect_seconds: how long the session and its slot wait for the page to come back, s.
        """
        if host is self.shared_host:
            self._free_slot()
            return
        with self._lock:
            self._hosts.pop(host.key, None)
            waits = reconnect_seconds > 0 and not self._is_closed
            if waits:
                timer = threading.Timer(reconnect_seconds, self._end, (host.key,))
                timer.daemon = True
                self._waiting[host.key] = host, timer
                host.pause()
                timer.start()
        if not waits:
            host.close(0.0, self._free_slot)

    def _end(self, key: str) -> None:
        """End a session whose page has not come back."""
        with self._lock:
            if key in self._waiting:
                self._end_waiting(key)

    def _end_waiting(self, key: str) -> None:
        """End a waiting session.

        The caller holds the lock. The thread of the session takes the lock at its end, so do not wait for the thread
        here.
        """
        host, timer = self._waiting.pop(key)
        timer.cancel()
        self._ending += 1
        host.close(0.0, self._ended)

    def _ended(self) -> None:
        with self._lock:
            self._ending -= 1
            self._reserved -= 1

    def _free_slot(self) -> None:
        with self._lock:
            self._reserved -= 1

    def close(self) -> None:
        """End all sessions; a page that connects at the same time gets none."""
        self._kernels.close()
        with self._lock:
            self._is_closed = True
            for _, timer in self._waiting.values():
                timer.cancel()
            hosts = [*self._hosts.values(), *(host for host, _ in self._waiting.values())]
            self._hosts.clear()
            self._waiting.clear()
        for host in hosts:
            host.close(0.0)
        for host in hosts:
            host.close()

    def _open(self) -> SessionHost:
        key = secrets.token_urlsafe(16)
        host = SessionHost(
            key, lambda send_event, send_frame: self._make(send_event, send_frame, key), self._kernels.send_status
        )
        with self._lock:
            if not self._is_closed:
                self._hosts[key] = host
                return host
        host.close(0.0)
        raise InvalidOperation(POOL_CLOSED)
