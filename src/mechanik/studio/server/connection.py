"""Websocket connection of one page: passes messages to the session host and sends the messages of the outbox."""

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
"""Websocket close codes: no session can be opened at present; the client has exceeded a limit."""
CLOSE_NORMAL, CLOSE_GOING_AWAY = 1000, 1001
"""Websocket close codes: the client has ended the session; the user has closed, left or reloaded the page."""
RECONNECT_WAIT_SECONDS, POLL_SECONDS = 0.5, 0.05
"""Maximum time that a reloaded page waits for the end of its old connection, and interval between two checks, s."""
MAX_KEY_LENGTH = 64
"""Characters of a session key that are read."""
REQUESTS_TOO_FAST = "too many requests at once; this request was not carried out. Wait a moment and try again"
CLOSE_SECONDS = 5.0
"""Time after which a closed connection is aborted, and maximum wait for a slot in the session pool, s."""
FLOOD_MESSAGE = "too many messages per second; this connection is closed. Reload the page"


class ClientDropped(Exception):
    """Raised to end the connection of a client that has exceeded a limit."""


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
        socket: the websocket, not yet accepted.
        access: issues the return key of the page.
        pool: sessions of the server.
        welcome: makes the first message from the key of the session and the return key of the page.
        limits: limits for the client.
        abort: ends the connection without a close message, for a client that does not read.
    """
    await socket.accept()
    key, connection, has_exceeded_limit = socket.query_params.get("session", "")[:MAX_KEY_LENGTH], None, False
    try:
        host = await _resume(pool, key)
        if host is None:
            await _reserve(pool)
            host = await asyncio.shield(run_in_threadpool(pool.open_session))
    except MechanikError as error:
        await _close_with_reason(socket, str(error), CLOSE_TRY_LATER, abort)
        return
    return_key = access.new_return_key()
    try:
        first_message = await run_in_threadpool(lambda: write_event(welcome(host.key, return_key)))
        connection = _Connection(socket, host, limits)
        await connection.run(first_message)
    except ClientDropped as reason:
        has_exceeded_limit = True
        await _close_with_reason(socket, str(reason), CLOSE_POLICY, abort)
    except TimeoutError:
        abort()
    finally:
        reconnect_seconds = 0.0 if connection is None or has_exceeded_limit else connection.reconnect_seconds
        access.expire_return_key(return_key, reconnect_seconds)
        pool.release(host, reconnect_seconds)


async def _resume(pool: SessionPool, key: str) -> SessionHost | None:
    """Return the session host of the previous connection of the page, or None.

    A reloaded page may connect before its old connection has ended, so this function waits for a short time. If another
    page uses the session, as after the duplication of a tab, the result is None and the page gets a new session.
    """
    if not key or pool.shared_host is not None:
        return None
    for _ in range(round(RECONNECT_WAIT_SECONDS / POLL_SECONDS)):
        host = pool.resume(key)
        if host is not None or pool.find(key) is None:
            return host
        await asyncio.sleep(POLL_SECONDS)
    return None


async def _reserve(pool: SessionPool) -> None:
    """Reserve a slot; wait at most `CLOSE_SECONDS` while the pool ends a session without a page."""
    for _ in range(round(CLOSE_SECONDS / POLL_SECONDS)):
        try:
            return pool.reserve()
        except EvictionPending:
            await asyncio.sleep(POLL_SECONDS)
    return pool.reserve()


class _Connection:
    """Tasks and rate limits of one accepted websocket."""

    def __init__(self, socket: WebSocket, host: SessionHost, limits: ServerLimits) -> None:
        self._socket, self._host, self._limits = socket, host, limits
        self._outbox = Outbox(limits.max_pending_events, limits.max_pending_characters)
        self._request_bucket = TokenBucket(limits.requests_per_second, 2 * limits.requests_per_second)
        self._drag_bucket = TokenBucket(limits.drags_per_second, 2 * limits.drags_per_second)
        self._message_bucket = TokenBucket(limits.messages_per_second, 2 * limits.messages_per_second)
        self._consecutive_refusals = 0
        self.reconnect_seconds = limits.reconnect_seconds  # how long the session waits for the page to reconnect, s
        self._waiting_drag: bytes | None = None
        self._send_start: float | None = None  # time at which the present message was passed to the socket, s
        self._drag_timer: asyncio.TimerHandle | None = None

    async def run(self, first_message: str) -> None:
        """Send the first message, then process messages until either side closes the connection."""
        self._outbox.put_event(first_message)
        self._host.add_page(self._outbox)
        tasks = [asyncio.create_task(task) for task in (self._listen(), self._send_loop(), self._check_for_stall())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._host.remove_page(self._outbox)
            if self._drag_timer is not None:
                self._drag_timer.cancel()
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            # a send to a socket that is being closed raises these two exceptions
            if isinstance(result, Exception) and not isinstance(result, WebSocketDisconnect | RuntimeError):
                raise result

    async def _listen(self) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                if message.get("code") == CLOSE_NORMAL:
                    self.reconnect_seconds = 0.0
                if message.get("code") == CLOSE_GOING_AWAY:
                    self.reconnect_seconds = self._limits.reload_seconds
                return
            if not self._message_bucket.take():
                raise ClientDropped(FLOOD_MESSAGE)
            text, data = message.get("text"), message.get("bytes")
            if text is not None:
                self._on_request(text)
            elif data is not None:
                self._on_drag(data)

    def _on_request(self, text: str) -> None:
        """Pass a request to the session, after the drag update that is waiting."""
        self._submit_waiting_drag()
        if self._request_bucket.take() and self._host.pending_job_count < self._limits.max_pending_requests:
            self._consecutive_refusals = 0
            self._host.submit_request(self._outbox, text)
            return
        self._consecutive_refusals += 1
        if self._consecutive_refusals > self._limits.max_refusals:
            raise ClientDropped(FLOOD_MESSAGE)
        self._outbox.put_event(write_event(RequestRefused(request_id(text), REQUESTS_TOO_FAST)))

    def _on_drag(self, data: bytes) -> None:
        """Pass a drag update to the session; beyond the rate limit only the newest update is kept and passed later."""
        is_waiting = self._waiting_drag is not None
        self._waiting_drag = data
        if self._drag_bucket.take():
            self._submit_waiting_drag()
        elif not is_waiting:
            self._drag_timer = asyncio.get_running_loop().call_later(
                self._drag_bucket.seconds_until_token, self._submit_waiting_drag
            )

    def _submit_waiting_drag(self) -> None:
        data, self._waiting_drag = self._waiting_drag, None
        if data is None:
            return
        try:
            self._host.submit_drag(self._outbox, read_drag_update(data))
        except MechanikError as error:
            self._outbox.put_event(write_event(RequestRefused(-1, str(error))))

    async def _send_loop(self) -> None:
        """Send the messages of the outbox; end the connection if the outbox is full."""
        clock = asyncio.get_running_loop().time
        while True:
            for item in await self._outbox.take_all():
                self._send_start = clock()
                if isinstance(item, str):
                    await self._socket.send_text(item)
                else:
                    await self._socket.send_bytes(item)
            self._send_start = None
            if self._outbox.is_full:
                raise TimeoutError

    async def _check_for_stall(self) -> None:
        """End the connection if the page reads nothing for `ServerLimits.stall_seconds`.

        This task polls, since a timeout for each message would cost as much time as sending the message.
        """
        clock, max_seconds = asyncio.get_running_loop().time, self._limits.stall_seconds
        while self._send_start is None or clock() - self._send_start < max_seconds:
            await asyncio.sleep(max_seconds / 4)
        raise TimeoutError


async def _close_with_reason(socket: WebSocket, reason: str, code: int, abort: Callable[[], None]) -> None:
    """Send the reason and close the connection; abort the connection if the client does not read the reason."""
    with contextlib.suppress(RuntimeError, WebSocketDisconnect, TimeoutError):
        async with asyncio.timeout(1.0):
            await socket.send_text(write_event(RequestRefused(-1, reason)))
            await socket.close(code)
    asyncio.get_running_loop().call_later(CLOSE_SECONDS, abort)
