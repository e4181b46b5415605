"""All sessions of a server: one for each connection, or one that all connections share."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable

from mechanik.errors import Refused
from mechanik.studio.messages.events import Event
from mechanik.studio.server.bucket import Bucket
from mechanik.studio.server.kernel_watch import KernelWatch
from mechanik.studio.server.limits import Limits
from mechanik.studio.server.room import Room
from mechanik.studio.session.session import Session

MakeSession = Callable[[Callable[[Event], None], Callable[[bytes], None], str], Session]
"""Takes what tells, what shows, and the key of the room, which is part of the addresses of meshes and files."""
FULL = "the studio is full: {} pages are open. Close one, and load this page again"
CLOSED = "the studio was closed"
TOO_FAST = "too many pages were opened at once; wait a moment, and load this page again"


class MakesRoom(Refused):
    """The studio is full, and the room of a page that has gone is being ended: there is a place soon."""


class Rooms:
    """Keys cannot be guessed: who has one was told it over a connection that came with the token.

    Attributes:
        shared: the one room of all pages, or None: each connection has its own.
    """

    def __init__(self, make: MakeSession, limits: Limits, is_shared: bool = False) -> None:
        self._make, self._limits = make, limits
        self._rooms: dict[str, Room] = {}
        self._lock = threading.Lock()
        self._promised = self._ending = 0
        self._is_closed = False
        self._waiting: dict[str, tuple[Room, threading.Timer]] = {}
        self._new = Bucket(limits.new_sessions, limits.sessions)
        self._kernels = KernelWatch(self.tell)
        self.shared = self._open() if is_shared else None

    def tell(self, event: Event) -> None:
        """Tell all pages of all rooms; from any thread."""
        with self._lock:
            rooms = list(self._rooms.values())
        for room in rooms:
            room.tell(event)

    def find(self, key: str) -> Room | None:
        return self._rooms.get(key)

    def __len__(self) -> int:
        return len(self._rooms)

    def kept_files(self, but: Room) -> int:
        """Bytes of the files that came along with the mechanisms of all rooms but one."""
        with self._lock:
            rooms = [*self._rooms.values(), *(room for room, _ in self._waiting.values())]
        return sum(room.session.file_bytes for room in rooms if room is not but)

    def come_back(self, key: str) -> Room | None:
        """The room of a page that has gone and is here again, with the place that it has kept; None: it is too late,
        or somebody looks at it."""
        with self._lock:
            if key not in self._waiting:
                return None
            if not self._new.take():
                raise Refused(TOO_FAST)
            room, timer = self._waiting.pop(key)
            timer.cancel()
            self._rooms[key] = room
        room.wake()
        return room

    def book(self) -> None:
        """A place for one more page, or `Refused`; `leave` gives it back. Of a full studio the room ends whose page has
        been away for longest."""
        with self._lock:
            if self._promised >= self._limits.sessions:
                if self._waiting and self._ending == 0:
                    self._end_waiting(next(iter(self._waiting)))
                raise (MakesRoom if self._ending else Refused)(FULL.format(self._promised))
            if not self._new.take():
                raise Refused(TOO_FAST)
            self._promised += 1

    def enter(self) -> Room:
        """The room of a page that has booked; may take a while, so call it off the loop."""
        try:
            return self.shared or self._open()
        except BaseException:
            self._give_back()
            raise

    def leave(self, room: Room, kept_seconds: float = 0.0) -> None:
        """The page has gone, and its room with it unless it is shared. The place is free when its thread has ended:
        who comes, asks for something long, and goes, again and again, finds the studio full.

        Args:
            kept_seconds: for which the room and its place wait for the page, which may come back.
        """
        if room is self.shared:
            self._give_back()
            return
        with self._lock:
            self._rooms.pop(room.key, None)
            waits = kept_seconds > 0 and not self._is_closed
            if waits:
                timer = threading.Timer(kept_seconds, self._end, (room.key,))
                timer.daemon = True
                self._waiting[room.key] = room, timer
                room.sleep()
                timer.start()
        if not waits:
            room.close(0.0, self._give_back)

    def _end(self, key: str) -> None:
        """Nobody came back."""
        with self._lock:
            if key in self._waiting:
                self._end_waiting(key)

    def _end_waiting(self, key: str) -> None:
        """The lock is held here; the room's thread takes it at its end, which is not waited for."""
        room, timer = self._waiting.pop(key)
        timer.cancel()
        self._ending += 1
        room.close(0.0, self._ended)

    def _ended(self) -> None:
        with self._lock:
            self._ending -= 1
            self._promised -= 1

    def _give_back(self) -> None:
        with self._lock:
            self._promised -= 1

    def close(self) -> None:
        """End all of them; a page that is just coming finds none."""
        self._kernels.close()
        with self._lock:
            self._is_closed = True
            for _, timer in self._waiting.values():
                timer.cancel()
            rooms = [*self._rooms.values(), *(room for room, _ in self._waiting.values())]
            self._rooms.clear()
            self._waiting.clear()
        for room in rooms:
            room.close(0.0)
        for room in rooms:
            room.close()

    def _open(self) -> Room:
        key = secrets.token_urlsafe(16)
        room = Room(key, lambda tell, show: self._make(tell, show, key), self._kernels.greet)
        with self._lock:
            if not self._is_closed:
                self._rooms[key] = room
                return room
        room.close(0.0)
        raise Refused(CLOSED)
