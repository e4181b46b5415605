"""Websocket connection of one page: passes messages to the session host and sends what waits in the outbox."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect

from mechanik.errors import MechanikError
from mechanik.studio.messages.events import RequestRefused, Welcome
from mechanik.studio.messages.message_codec import read_drag_update, write_event
from mechanik.studio.server.access_control import AccessKeys
from mechanik.studio.server.server_limits import ServerLimits, TokenBucket
from mechanik.studio.server.session_host import Outbox, SessionHost, request_id
from mechanik.studio.server.session_pool import EvictionPending, SessionPool

CLOSE_TRY_LATER, CLOSE_POLICY = 1013, 1008
CLOSE_NORMAL, CLOSE_GOING_AWAY = 1000, 1001
"""Websocket close codes: the client has finished; the page was closed, left or reloaded."""
RECONNECT_WAIT_SECONDS, POLL_SECONDS = 0.5, 0.05
"""Maximum wait for the old connection of a reloaded page to end, and interval between two checks, s."""
MAX_KEY_LENGTH = 64
REQUESTS_TOO_FAST = "too many requests at once; this one was not carried out"
CLOSE_SECONDS = 5.0
FLOOD_MESSAGE = "more messages a second than any page sends; this connection is closed"


class ClientDropped(Exception):
    """The client broke a limit, and its connection ends."""


async def serve_page(
    socket: WebSocket,
    access: AccessKeys,
    pool: SessionPool,
    welcome: Callable[[str, str], Welcome],
    limits: ServerLimits,
    abort: Callable[[], None],
) -> None:
    """Run a connection from the handshake to its end.

    Args:
        welcome: makes the first message from the key of the session and the return key of the page.
        abort: ends the connection without a close message, for a client that does not read.
    """
    await socket.accept()
    key, connection, is_flood = socket.query_params.get("session", "")[:MAX_KEY_LENGTH], None, False
    try:
        room = await _come_back(pool, key)
        if room is None:
            await _book(pool)
            room = await asyncio.shield(run_in_threadpool(pool.open_session))
    except MechanikError as error:
        await _last_word(socket, str(error), CLOSE_TRY_LATER, abort)
        return
    return_key = access.new_return_key()
    try:
        first = await run_in_threadpool(lambda: write_event(welcome(room.key, return_key)))
        connection = _Connection(socket, room, limits)
        await connection.run(first)
    except ClientDropped as reason:
        is_flood = True
        await _last_word(socket, str(reason), CLOSE_POLICY, abort)
    except TimeoutError:
        abort()
    finally:
        kept_seconds = 0.0 if connection is None or is_flood else connection.kept_seconds
        access.expire_return_key(return_key, kept_seconds)
        pool.release(room, kept_seconds)


async def _come_back(rooms: SessionPool, key: str) -> SessionHost | None:
    """Return the session host that the page had before, or None.

    A reloaded page may connect before its old connection has ended, so this waits for a short time. If the session is
    in use by another page, as in a duplicated tab, the page gets a new session.
    """
    if not key or rooms.shared_host is not None:
        return None
    for _ in range(round(RECONNECT_WAIT_SECONDS / POLL_SECONDS)):
        room = rooms.resume(key)
        if room is not None or rooms.find(key) is None:
            return room
        await asyncio.sleep(POLL_SECONDS)
    return None


async def _book(rooms: SessionPool) -> None:
    for _ in range(round(CLOSE_SECONDS / POLL_SECONDS)):
        try:
            return rooms.reserve()
        except EvictionPending:
            await asyncio.sleep(POLL_SECONDS)
    return rooms.reserve()


class _Connection:
    def __init__(self, socket: WebSocket, room: SessionHost, limits: ServerLimits) -> None:
        self._socket, self._room, self._limits = socket, room, limits
        self._outbox = Outbox(limits.max_pending_events, limits.max_pending_characters)
        self._requests = TokenBucket(limits.requests_per_second, 2 * limits.requests_per_second)
        self._hands = TokenBucket(limits.drags_per_second, 2 * limits.drags_per_second)
        self._messages = TokenBucket(limits.messages_per_second, 2 * limits.messages_per_second)
        self._refusals = 0
        self.kept_seconds = limits.reconnect_seconds  # how long the session waits for the page to come back
        self._held: bytes | None = None
        self._begun: float | None = None
        self._later: asyncio.TimerHandle | None = None

    async def run(self, first: str) -> None:
        """Send the first message, then process messages until either side closes the connection."""
        self._outbox.put_event(first)
        self._room.add_page(self._outbox)
        tasks = [asyncio.create_task(one) for one in (self._listen(), self._speak(), self._watch())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._room.remove_page(self._outbox)
            if self._later is not None:
                self._later.cancel()
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for end in ended:
            # a socket that is closed while we send raises these
            if isinstance(end, Exception) and not isinstance(end, WebSocketDisconnect | RuntimeError):
                raise end

    async def _listen(self) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                if message.get("code") == CLOSE_NORMAL:
                    self.kept_seconds = 0.0
                if message.get("code") == CLOSE_GOING_AWAY:
                    self.kept_seconds = self._limits.reload_seconds
                return
            if not self._messages.take():
                raise ClientDropped(FLOOD_MESSAGE)
            text, data = message.get("text"), message.get("bytes")
            if text is not None:
                self._hear(text)
            elif data is not None:
                self._feel(data)

    def _hear(self, text: str) -> None:
        """Pass a request to the session; a drag update that waits goes first."""
        self._pass_hand()
        if self._requests.take() and self._room.pending_jobs < self._limits.max_pending_requests:
            self._refusals = 0
            self._room.submit_request(self._outbox, text)
            return
        self._refusals += 1
        if self._refusals > self._limits.max_refusals:
            raise ClientDropped(FLOOD_MESSAGE)
        self._outbox.put_event(write_event(RequestRefused(request_id(text), REQUESTS_TOO_FAST)))

    def _feel(self, data: bytes) -> None:
        """Pass a drag update to the session, or keep the newest one until the rate limit allows it."""
        waits = self._held is not None
        self._held = data
        if self._hands.take():
            self._pass_hand()
        elif not waits:
            self._later = asyncio.get_running_loop().call_later(self._hands.seconds_until_token, self._pass_hand)

    def _pass_hand(self) -> None:
        data, self._held = self._held, None
        if data is None:
            return
        try:
            self._room.submit_drag(self._outbox, read_drag_update(data))
        except MechanikError as error:
            self._outbox.put_event(write_event(RequestRefused(-1, str(error))))

    async def _speak(self) -> None:
        """Send what waits in the outbox; a page whose outbox is full is dropped."""
        clock = asyncio.get_running_loop().time
        while True:
            for item in await self._outbox.take_all():
                self._begun = clock()
                if isinstance(item, str):
                    await self._socket.send_text(item)
                else:
                    await self._socket.send_bytes(item)
            self._begun = None
            if self._outbox.is_full:
                raise TimeoutError

    async def _watch(self) -> None:
        """Drop a page that reads nothing for `ServerLimits.stall_seconds`.

        This polls, since a timeout for each message would cost as much as the message.
        """
        clock, patience = asyncio.get_running_loop().time, self._limits.stall_seconds
        while self._begun is None or clock() - self._begun < patience:
            await asyncio.sleep(patience / 4)
        raise TimeoutError


async def _last_word(socket: WebSocket, words: str, code: int, cut: Callable[[], None]) -> None:
    """Send the reason and close the connection; abort a client that does not read it."""
    with contextlib.suppress(RuntimeError, WebSocketDisconnect, TimeoutError):
        async with asyncio.timeout(1.0):
            await socket.send_text(write_event(RequestRefused(-1, words)))
            await socket.close(code)
    asyncio.get_running_loop().call_later(CLOSE_SECONDS, cut)
