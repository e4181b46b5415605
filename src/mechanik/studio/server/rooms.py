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
        self._new = Bucket(limits.new_sessions, limits.sessions)
        self.shared = self._open() if is_shared else None

    def find(self, key: str) -> Room | None:
        return self._rooms.get(key)

    def __len__(self) -> int:
        return len(self._rooms)

    def kept_files(self, but: Room) -> int:
        """Bytes of the files that came along with the mechanisms of all rooms but one."""
        stages = [room.session.stage for room in list(self._rooms.values()) if room is not but]
        return sum(stage.table.file_bytes for stage in stages if stage is not None)

    def book(self) -> None:
        """A place for one more page, or `Refused`; `leave` gives it back."""
        with self._lock:
            if self._promised >= self._limits.sessions:
                raise Refused(FULL.format(self._promised))
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

    def leave(self, room: Room) -> None:
        """The page has gone, and its room with it unless it is shared. The place is free when its thread has ended:
        who comes, asks for something long, and goes, again and again, finds the studio full."""
        if room is self.shared:
            self._give_back()
        else:
            self._rooms.pop(room.key, None)
            room.close(0.0, self._give_back)

    def _give_back(self) -> None:
        with self._lock:
            self._promised -= 1

    def close(self) -> None:
        rooms = list(self._rooms.values())
        self._rooms.clear()
        for room in rooms:
            room.close(0.0)
        for room in rooms:
            room.close()

    def _open(self) -> Room:
        key = secrets.token_urlsafe(16)
        room = Room(key, lambda tell, show: self._make(tell, show, key))
        self._rooms[key] = room
        return room
