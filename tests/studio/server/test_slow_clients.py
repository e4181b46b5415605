"""Who is deaf, dead or silent is dropped, who comes when all is full is told so, and there is room again afterwards."""

from __future__ import annotations

import contextlib
import json
import socket
import time

import httpx
import pytest
from wire_client import PATIENCE, WireClient, connect_to, cookie_of, ended, fetch

import mechanik as mk
from mechanik.studio.server.server import serve
from mechanik.studio.server.server_limits import ServerLimits


@pytest.fixture
def impatient(page):
    """A server that waits for nobody who has nothing to say."""
    limits = ServerLimits(idle_check_seconds=1.0, ping_seconds=0.3, max_connections=30)
    server = serve(mk.gallery.planar_3r(), port=0, page=page, limits=limits)
    yield server
    server.close()


@pytest.fixture
def small(page):
    """A server with room for few, who have to take what they are sent; signs of life are not asked for so soon that
    a busy machine would miss one."""
    limits = ServerLimits(max_sessions=4, new_sessions_per_second=1000.0, max_pending_events=50, stall_seconds=0.5)
    server = serve(mk.gallery.planar_3r(), port=0, page=page, limits=limits)
    yield server
    server.close()


def deaf(server) -> socket.socket:
    """A page that was let in and then neither reads nor answers; its socket holds little."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", server.port))
    host = f"127.0.0.1:{server.port}"
    connection.sendall(
        f"GET /ws HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nCookie: {cookie_of(server)}\r\n"
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
    )
    return connection


def test_a_dead_client_is_dropped(impatient, monkeypatch):
    enter, entered = impatient.pool.open_session, []

    def watched():
        entered.append(enter())
        return entered[-1]

    monkeypatch.setattr(impatient.pool, "open_session", watched)
    with deaf(impatient):
        until = time.monotonic() + PATIENCE
        while not entered and time.monotonic() < until:
            time.sleep(0.01)
        assert len(entered) == 1
        assert ended(impatient)


def test_client_that_reads_nothing_is_dropped_although_it_sends(small):
    with deaf(small) as deaf_client, WireClient(small) as other_client:
        text = '{"mechanik": 1, "arm": {"lengths": [0.5, 0.4]}}' + 150_000 * " "  # comes back with the model
        request = json.dumps({"do": "EditModel", "kind": "arm_2d", "text": text}).encode()
        deaf_client.settimeout(PATIENCE)
        until = time.monotonic() + PATIENCE
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < until:
                deaf_client.sendall(b"\x81\xff" + len(request).to_bytes(8, "big") + b"\x00" * 4 + request)
                time.sleep(0.1)
            pytest.fail("it was listened to all the while")
        assert ended(small, sessions=1)
        assert other_client.ask("EndDrag")["is"] == "RequestDone"


def test_client_that_sends_nothing_is_dropped(impatient):
    with socket.create_connection(("127.0.0.1", impatient.port), timeout=PATIENCE) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHos")
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(100) == b""


def test_sockets_beyond_the_limit_are_closed_and_new_ones_are_accepted_afterwards(impatient):
    many = [socket.create_connection(("127.0.0.1", impatient.port), timeout=PATIENCE) for _ in range(60)]
    for connection in many:
        connection.close()
    until = time.monotonic() + PATIENCE
    while True:
        try:
            assert fetch(impatient.link).status_code == 303
            return
        except httpx.TransportError:
            assert time.monotonic() < until


def test_next_page_of_a_full_studio_gets_the_reason(small):
    clients = [WireClient(small) for _ in range(4)]
    for client in clients:
        client.wait_for("Model")
    late = connect_to(small)
    assert "full" in json.loads(late.recv(PATIENCE))["message"]
    late.close()
    for client in clients:
        client.close()
    assert ended(small)
    with WireClient(small) as client:
        client.wait_for("Model")
