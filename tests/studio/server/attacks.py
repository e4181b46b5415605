"""A client that means harm, and the table of what it tries: a name, and a function that tries it and checks the
refusal. Each takes an `Attacker`; what it leaves open is closed for it.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

import httpx
from wire_client import PATIENCE, WireClient, cookie_of, raw

Attack = Callable[["Attacker"], None]
ATTACKS: list[tuple[str, Attack]] = []


class Attacker:
    """Has the link, unless an attack says otherwise."""

    def __init__(self, server) -> None:
        self.server = server
        self.own = server.address.rstrip("/")
        self._open: list = []
        self._page: WireClient | None = None

    def new_page(self) -> WireClient:
        """A connection that was let in."""
        client = WireClient(self.server)
        self._open.append(client)
        client.wait_for("Model")
        client.wait(lambda: client.frame is not None)
        return client

    def page(self) -> WireClient:
        """One that is left from the attack before if that has not cost it its connection."""
        if self._page is None or self._page.is_closed:
            self._page = self.new_page()
        assert self._page is not None
        return self._page

    def http(self, method: str, path: str, **headers) -> httpx.Response:
        content = headers.pop("content", None)
        usual = {"Cookie": cookie_of(self.server), "Origin": self.own}
        sent = {name.replace("_", "-"): value for name, value in {**usual, **headers}.items() if value is not None}
        with httpx.Client(timeout=PATIENCE) as web:
            return web.request(method, self.own + path, headers=sent, content=content)

    @property
    def key(self) -> str:
        """Of the session of `page`."""
        return self.page().welcome["session"]

    def upload(self, name: str, data, **headers) -> httpx.Response:
        return self.http("POST", f"/upload/{self.key}?name={name}", content=data, **headers)

    def raw(self, data: bytes) -> bytes:
        return raw(self.server, data)

    def raw_page(self) -> socket.socket:
        """A websocket whose bytes are ours to forge."""
        connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE)
        self._open.append(connection)
        host = self.own.removeprefix("http://")
        head = (
            f"GET /ws HTTP/1.1\r\nHost: {host}\r\nOrigin: {self.own}\r\nCookie: {cookie_of(self.server)}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        connection.sendall(head.encode())
        assert b"101" in connection.recv(200)
        return connection

    def leave(self) -> None:
        """Close what an attack has left open, but for the page."""
        for connection in self._open:
            if connection is not self._page:
                with contextlib.suppress(Exception):
                    connection.close()
        self._open.clear()

    def close(self) -> None:
        self.leave()
        if self._page is not None:
            self._page.close()


def attack(name: str) -> Callable[[Attack], Attack]:
    def add(function: Attack) -> Attack:
        ATTACKS.append((name, function))
        return function

    return add


def attacks(name: str, function: Callable[..., None], *cases) -> None:
    """One attack in several variants, each a case of its own."""
    for k, case in enumerate(cases):
        ATTACKS.append((f"{name} {k + 1}", lambda them, case=case: function(them, case)))
