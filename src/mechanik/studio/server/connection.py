"""One websocket: what the page sends goes to its room, what waits in its outbox is sent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect

from mechanik.errors import MechanikError
from mechanik.studio.messages.events import Refused, Welcome
from mechanik.studio.messages.frames import read_hand
from mechanik.studio.messages.write import write_event
from mechanik.studio.server.access import Access
from mechanik.studio.server.bucket import Bucket
from mechanik.studio.server.limits import Limits
from mechanik.studio.server.outbox import Outbox
from mechanik.studio.server.room import Room, id_of
from mechanik.studio.server.rooms import MakesRoom, Rooms

TRY_LATER, POLICY = 1013, 1008
FINISHED, GOES_AWAY = 1000, 1001
"""How a client says that it needs nothing more; and how a page does that is closed, left, or loaded again."""
SOON, MOMENT = 0.5, 0.05
"""Seconds until a page that is being left has left, and between two looks whether it has."""
LONGEST_KEY = 64
REQUESTS_TOO_FAST = "too many requests at once; this one was not carried out"
LAST_SECONDS = 5.0
FLOOD = "more messages a second than any page sends; this connection is closed"


class Dropped(Exception):
    """This client is no longer listened to."""


async def talk(
    socket: WebSocket,
    access: Access,
    rooms: Rooms,
    welcome: Callable[[str, str], Welcome],
    limits: Limits,
    cut: Callable[[], None],
) -> None:
    """The whole life of a connection.

    Args:
        welcome: the first message, for the key of a room and the return key of the page.
        cut: ends the connection without a word, for a client that does not listen.
    """
    await socket.accept()
    key, connection, is_flood = socket.query_params.get("session", "")[:LONGEST_KEY], None, False
    try:
        room = await _come_back(rooms, key)
        if room is None:
            await _book(rooms)
            room = await asyncio.shield(run_in_threadpool(rooms.enter))
    except MechanikError as error:
        await _last_word(socket, str(error), TRY_LATER, cut)
        return
    return_key = access.new_return_key()
    try:
        first = await run_in_threadpool(lambda: write_event(welcome(room.key, return_key)))
        connection = _Connection(socket, room, limits)
        await connection.run(first)
    except Dropped as reason:
        is_flood = True
        await _last_word(socket, str(reason), POLICY, cut)
    except TimeoutError:
        cut()
    finally:
        kept_seconds = 0.0 if connection is None or is_flood else connection.kept_seconds
        access.end_return_key(return_key, kept_seconds)
        rooms.leave(room, kept_seconds)


async def _come_back(rooms: Rooms, key: str) -> Room | None:
    """The room that the page had. A page that is loaded again may come before it has left; who looks at a room that
    somebody else looks at, in a copied tab, has another."""
    if not key or rooms.shared is not None:
        return None
    for _ in range(round(SOON / MOMENT)):
        room = rooms.come_back(key)
        if room is not None or rooms.find(key) is None:
            return room
        await asyncio.sleep(MOMENT)
    return None


async def _book(rooms: Rooms) -> None:
    for _ in range(round(LAST_SECONDS / MOMENT)):
        try:
            return rooms.book()
        except MakesRoom:
            await asyncio.sleep(MOMENT)
    return rooms.book()


class _Connection:
    def __init__(self, socket: WebSocket, room: Room, limits: Limits) -> None:
        self._socket, self._room, self._limits = socket, room, limits
        self._outbox = Outbox(limits.waiting_events, limits.waiting_letters)
        self._requests = Bucket(limits.requests, 2 * limits.requests)
        self._hands = Bucket(limits.hands, 2 * limits.hands)
        self._messages = Bucket(limits.messages, 2 * limits.messages)
        self._refusals = 0
        self.kept_seconds = limits.kept_seconds  # for which the room waits, as the page has left
        self._held: bytes | None = None
        self._begun: float | None = None
        self._later: asyncio.TimerHandle | None = None

    async def run(self, first: str) -> None:
        """From the first message until either side has had enough."""
        self._outbox.put_event(first)
        self._room.enter(self._outbox)
        tasks = [asyncio.create_task(one) for one in (self._listen(), self._speak(), self._watch())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._room.leave(self._outbox)
            if self._later is not None:
                self._later.cancel()
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for end in ended:
            # a socket that is closed on one side while the other side sends raises one of these
            if isinstance(end, Exception) and not isinstance(end, WebSocketDisconnect | RuntimeError):
                raise end

    async def _listen(self) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                if message.get("code") == FINISHED:
                    self.kept_seconds = 0.0
                if message.get("code") == GOES_AWAY:
                    self.kept_seconds = self._limits.farewell_seconds
                return
            if not self._messages.take():
                raise Dropped(FLOOD)
            text, data = message.get("text"), message.get("bytes")
            if text is not None:
                self._hear(text)
            elif data is not None:
                self._feel(data)

    def _hear(self, text: str) -> None:
        """A request; hands that wait for their turn come before it."""
        self._pass_hand()
        if self._requests.take() and self._room.waiting < self._limits.waiting_requests:
            self._refusals = 0
            self._room.ask(self._outbox, text)
            return
        self._refusals += 1
        if self._refusals > self._limits.refusals:
            raise Dropped(FLOOD)
        self._outbox.put_event(write_event(Refused(id_of(text), REQUESTS_TOO_FAST)))

    def _feel(self, data: bytes) -> None:
        """A hand: at once, or when its turn comes if no newer one has come by then."""
        waits = self._held is not None
        self._held = data
        if self._hands.take():
            self._pass_hand()
        elif not waits:
            self._later = asyncio.get_running_loop().call_later(self._hands.wait, self._pass_hand)

    def _pass_hand(self) -> None:
        data, self._held = self._held, None
        if data is None:
            return
        try:
            self._room.hand(self._outbox, read_hand(data))
        except MechanikError as error:
            self._outbox.put_event(write_event(Refused(-1, str(error))))

    async def _speak(self) -> None:
        """Send what waits. A page that lets too much pile up is dropped."""
        clock = asyncio.get_running_loop().time
        while True:
            for item in await self._outbox.take():
                self._begun = clock()
                if isinstance(item, str):
                    await self._socket.send_text(item)
                else:
                    await self._socket.send_bytes(item)
            self._begun = None
            if self._outbox.is_full:
                raise TimeoutError

    async def _watch(self) -> None:
        """A page that takes nothing for too long is dropped; looked for now and then, for a clock of its own for each
        message would cost as much as the message."""
        clock, patience = asyncio.get_running_loop().time, self._limits.patience
        while self._begun is None or clock() - self._begun < patience:
            await asyncio.sleep(patience / 4)
        raise TimeoutError


async def _last_word(socket: WebSocket, words: str, code: int, cut: Callable[[], None]) -> None:
    """Say why, and close; who does not take that is cut."""
    with contextlib.suppress(RuntimeError, WebSocketDisconnect, TimeoutError):
        async with asyncio.timeout(1.0):
            await socket.send_text(write_event(Refused(-1, words)))
            await socket.close(code)
    asyncio.get_running_loop().call_later(LAST_SECONDS, cut)
