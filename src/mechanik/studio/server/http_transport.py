"""Transport limits for HTTP and websockets: chunked responses, number of sockets, idle clients, and received bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakValueDictionary

from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from mechanik.studio.server.server_limits import ServerLimits, TokenBucket

CHUNK_BYTES = 256_000
"""Size of a chunk, bytes; it bounds the memory for a client that reads slowly."""


class ChunkedResponse(Response):
    """A response that is sent in chunks, so that data for a slow client does not accumulate in memory.

    The next chunk is sent when the client has read most of the previous chunk. The connection of a client that does not
    read a chunk within `stall_seconds` is aborted.

    Args:
        stall_seconds: maximum time for a chunk, s.
        abort: ends the connection of a client; its argument is the address of the client as in the ASGI scope.
    """

    def __init__(
        self,
        data: bytes,
        media_type: str,
        headers: Mapping[str, str],
        stall_seconds: float,
        abort: Callable[[Any], None],
    ) -> None:
        super().__init__(b"", 200, {"content-type": media_type, **headers, "content-length": str(len(data))})
        self._data, self._stall_seconds, self._abort = data, stall_seconds, abort

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            for start in range(0, len(self._data), CHUNK_BYTES):
                chunk = self._data[start : start + CHUNK_BYTES]
                async with asyncio.timeout(self._stall_seconds):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except TimeoutError:
            self._abort(scope.get("client"))
            return
        await send({"type": "http.response.body", "body": b""})


MAX_UNREAD_MESSAGES = 8
"""Number of unread websocket messages above which reading is paused."""


class OpenSockets:
    """The open sockets of a server, by the address of the client."""

    def __init__(self, limits: ServerLimits) -> None:
        self.limits = limits
        self._transports: WeakValueDictionary[Any, asyncio.Transport] = WeakValueDictionary()

    def add(self, transport: asyncio.Transport) -> bool:
        """Register a socket; return False if too many sockets are open."""
        if len(self._transports) >= self.limits.max_connections:
            self._remove_closed_sockets()
            if len(self._transports) >= self.limits.max_connections:
                return False
        self._transports[_host_and_port(transport.get_extra_info("peername"))] = transport
        return True

    def abort(self, client: Any) -> None:
        """Close a connection immediately; unsent data is discarded."""
        transport = self._transports.pop(_host_and_port(client), None)
        if transport is not None:
            transport.abort()

    def _remove_closed_sockets(self) -> None:
        for address, transport in list(self._transports.items()):
            if transport.is_closing():
                self._transports.pop(address, None)

    def http_protocol(self) -> type[H11Protocol]:
        """Return the HTTP protocol of uvicorn with limits on the number of sockets and on the time without a request.

        Every `idle_check_seconds`, a socket without a new request since the last check is aborted.
        """
        sockets = self

        class Http(H11Protocol):
            cycle: Any  # the newest request; None before the first request
            _last_cycle: Any = None
            _unsent_bytes = 0

            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                super().connection_made(transport)
                if sockets.add(transport):
                    self.loop.call_later(sockets.limits.idle_check_seconds, self._abort_if_idle)
                else:
                    transport.abort()

            def _abort_if_idle(self) -> None:
                # a connection with another protocol was upgraded to a websocket
                if self.transport.is_closing() or self.transport.get_protocol() is not self:
                    return
                unsent_bytes, previous_unsent_bytes = self.transport.get_write_buffer_size(), self._unsent_bytes
                is_idle = self.cycle is self._last_cycle and (self.cycle is None or self.cycle.response_complete)
                # if the number of unsent bytes changes, the end of a long response is still being sent
                if is_idle and unsent_bytes in (0, previous_unsent_bytes):
                    self.transport.abort()
                    return
                self._last_cycle, self._unsent_bytes = self.cycle, unsent_bytes
                self.loop.call_later(sockets.limits.idle_check_seconds, self._abort_if_idle)

        return Http

    def websocket_protocol(self) -> type[WebSocketsSansIOProtocol]:
        """Return the websocket protocol of uvicorn, with limits on received bytes and on unsent bytes.

        The limit on unsent bytes stops clients that send pings and do not read the pongs.
        """
        limits = self.limits

        class Websocket(WebSocketsSansIOProtocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                super().connection_made(transport)
                self._byte_bucket = TokenBucket(limits.bytes_per_second, 4 * limits.max_message_bytes)

            def data_received(self, data: bytes) -> None:
                if self.transport.get_write_buffer_size() > limits.max_unsent_bytes or not self._byte_bucket.take(
                    len(data)
                ):
                    self.transport.abort()
                else:
                    super().data_received(data)

            def send_receive_event_to_app(self) -> None:
                # the base class pauses reading unless `read_paused` is set, which costs two system calls per message;
                # the flag is therefore set as long as few messages are unread
                self.read_paused = self.queue.qsize() < MAX_UNREAD_MESSAGES
                super().send_receive_event_to_app()

        return Websocket


def _host_and_port(address: Any) -> tuple[Any, ...]:
    """Return host and port; an IPv6 socket reports four fields, a request only these two."""
    return tuple(address or ())[:2]
