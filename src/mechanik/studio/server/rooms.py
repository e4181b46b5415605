"""All sessions of a server: one for each connection, or one that all connections share."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable

from mechanik.errors import Refused
from mechanik.studio.messages.events import Event
from mechanik.studio.server.bucket import Bucket
from mechanik.studio.server.limits import Limits
from mechanik.studio.server.room import Room
from mechanik.studio.session.session import Session

MakeSession = Callable[[Callable[[Event], None], Callable[[bytes], None], str], Session]
"""Takes what tells, what shows, and the key of the room, which is part of the addresses of meshes and files."""
FULL = "the studio is full: {} pages are open. Close one, and load this page again"
TOO_FAST = "too many pages were opened at once; wait a moment, and load this page again"


class Rooms:
    """Keys cannot be guessed: who has one was told it over a connection that came with the token.

    Attributes:
        shared: the one room of all pages, or None: each connection has its own.
    """

    def __init__(self, make: MakeSession, limits: Limits, is_shared: bool = False) -> None:
        self._make, self._limits = make, limits
        self._rooms: dict[str, Room] = {}
        self._lock = threading.Lock()
        self._promised = 0
        self._waiting: dict[str, tuple[Room, threading.Timer]] = {}
        self._new = Bucket(limits.new_sessions, limits.sessions)
        self.shared = self._open() if is_shared else None

    def find(self, key: str) -> Room | None:
        return self._rooms.get(key)

    def __len__(self) -> int:
        return len(self._rooms)

    def kept_files(self, but: Room) -> int:
        """Bytes of the files that came along with the mechanisms of all rooms but one."""
        with self._lock:
            rooms = [*self._rooms.values(), *(room for room, _ in self._waiting.values())]
        stages = [room.session.stage for room in rooms if room is not but]
        return sum(stage.table.file_bytes for stage in stages if stage is not None)

    def book(self) -> None:
        """A place for one more page, or `Refused`; `leave` gives it back."""
        with self._lock:
            if self._promised >= self._limits.sessions:
                self._end_oldest()  # its place is free for the next try
                raise Refused(FULL.format(self._promised))
            if not self._new.take():
                raise Refused(TOO_FAST)
            self._promised += 1

    def enter(self, key: str = "") -> Room:
        """The room of a page that has booked; may take a while, so call it off the loop.

        Args:
            key: of the room that the page had when its connection was lost; it has it again if it is not too late.
        """
        try:
            return self.shared or self._come_back(key) or self._open()
        except BaseException:
            self._give_back()
            raise

    def leave(self, room: Room, is_lost: bool = False) -> None:
        """The page has gone, and its room with it unless it is shared. The place is free when its thread has ended:
        who comes, asks for something long, and goes, again and again, finds the studio full.

        Args:
            is_lost: whether the connection broke and the page may come back; the room and its place wait for it.
        """
        if room is self.shared:
            self._give_back()
            return
        self._rooms.pop(room.key, None)
        if is_lost and self._limits.kept_seconds > 0:
            timer = threading.Timer(self._limits.kept_seconds, self._end, (room.key,))
            timer.daemon = True
            with self._lock:
                self._waiting[room.key] = room, timer
            room.sleep()
            timer.start()
        else:
            room.close(0.0, self._give_back)

    def _come_back(self, key: str) -> Room | None:
        with self._lock:
            room, timer = self._waiting.pop(key, (None, None))
            if room is None or timer is None:
                return None
            timer.cancel()
            self._promised -= 1  # it has kept its place, and another was booked
            self._rooms[key] = room
        room.wake()
        return room

    def _end(self, key: str) -> None:
        """Nobody came back."""
        with self._lock:
            room, _ = self._waiting.pop(key, (None, None))
        if room is not None:
            room.close(0.0, self._give_back)

    def _end_oldest(self) -> None:
        if self._waiting:
            key = next(iter(self._waiting))
            threading.Thread(target=self._end, args=(key,), daemon=True).start()  # the lock is held here

    def _give_back(self) -> None:
        with self._lock:
            self._promised -= 1

    def close(self) -> None:
        with self._lock:
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
        room = Room(key, lambda tell, show: self._make(tell, show, key))
        self._rooms[key] = room
        return room
