"""Open sockets: not too many, none for those who do not say what they want, none for those who only talk."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakValueDictionary

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from mechanik.studio.server.bucket import Bucket
from mechanik.studio.server.limits import Limits

UNREAD = 8
"""Messages that wait to be read, after which no more are taken in."""


class Sockets:
    """Those of one server, by the address of the other side."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._open: WeakValueDictionary[Any, asyncio.Transport] = WeakValueDictionary()

    def add(self, transport: asyncio.Transport) -> bool:
        """False: there are too many."""
        if len(self._open) >= self.limits.connections:
            self._forget_closed()
            if len(self._open) >= self.limits.connections:
                return False
        self._open[_name(transport.get_extra_info("peername"))] = transport
        return True

    def cut(self, client: Any) -> None:
        """End a connection at once; what still waits to be sent is thrown away."""
        transport = self._open.pop(_name(client), None)
        if transport is not None:
            transport.abort()

    def _forget_closed(self) -> None:
        for name, transport in list(self._open.items()):
            if transport.is_closing():
                self._open.pop(name, None)

    def http(self) -> type[H11Protocol]:
        """HTTP as uvicorn speaks it; a socket on which no request is begun for a while is cut."""
        sockets = self

        class Http(H11Protocol):
            cycle: Any  # of the newest request; None before the first
            _before: Any = None
            _unsent = 0

            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                super().connection_made(transport)
                if sockets.add(transport):
                    self.loop.call_later(sockets.limits.head_seconds, self._look)
                else:
                    transport.abort()

            def _look(self) -> None:
                if self.transport.is_closing() or self.transport.get_protocol() is not self:  # or a websocket by now
                    return
                unsent, before = self.transport.get_write_buffer_size(), self._unsent
                is_idle = self.cycle is self._before and (self.cycle is None or self.cycle.response_complete)
                if is_idle and unsent in (0, before):  # or the end of a long answer is still on its way
                    self.transport.abort()
                    return
                self._before, self._unsent = self.cycle, unsent
                self.loop.call_later(sockets.limits.head_seconds, self._look)

        return Http

    def websocket(self) -> type[WebSocketsSansIOProtocol]:
        """Websockets as uvicorn speaks them; who sends more than any page does is cut, and so is who asks for answers
        (each ping has one) and does not take them."""
        limits = self.limits

        class Websocket(WebSocketsSansIOProtocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                super().connection_made(transport)
                self._bytes = Bucket(limits.bytes, 4 * limits.largest_message)

            def data_received(self, data: bytes) -> None:
                if self.transport.get_write_buffer_size() > limits.unsent or not self._bytes.take(len(data)):
                    self.transport.abort()
                else:
                    super().data_received(data)

            def send_receive_event_to_app(self) -> None:
                # else reading is paused and begun again for each message, which takes two calls of the system
                self.read_paused = self.queue.qsize() < UNREAD
                super().send_receive_event_to_app()

        return Websocket


def _name(address: Any) -> tuple[Any, ...]:
    """Host and port; of the newer protocol a socket tells four numbers, and a request two."""
    return tuple(address or ())[:2]
