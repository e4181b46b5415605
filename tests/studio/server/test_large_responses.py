"""Answers larger than what a socket holds: they arrive whole, and do not pile up for who does not take them."""

from __future__ import annotations

import contextlib
import socket
import time

import pytest
from wire_client import PATIENCE, cookie_of

from mechanik.studio.server.http_transport import CHUNK_BYTES
from mechanik.studio.server.server import Server, serve
from mechanik.studio.server.server_limits import ServerLimits

SIZE = 12_000_000
"""Bytes; the system itself keeps some millions for a socket."""
IDLE_CHECK_SECONDS = 0.5
"""Seconds between two looks at a socket on which nothing is asked for; a busy machine has asked by then."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    (folder / "index.html").write_text("<!doctype html>")
    (folder / "large.js").write_bytes(bytes(SIZE))
    return folder


@contextlib.contextmanager
def running(folder, patience: float):
    server = serve(
        port=0, page=folder, limits=ServerLimits(idle_check_seconds=IDLE_CHECK_SECONDS, stall_seconds=patience)
    )
    try:
        yield server
    finally:
        server.close()


def asking(server: Server) -> socket.socket:
    """A client that has asked for the large file and has taken nothing yet."""
    client = socket.create_connection((server.host, server.port), timeout=PATIENCE)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    lines = ("GET /large.js HTTP/1.1", f"Host: {server.host}:{server.port}", f"Cookie: {cookie_of(server)}", "", "")
    client.sendall("\r\n".join(lines).encode())
    return client


def test_slow_client_gets_the_whole_response(folder):
    """It was cut off once: the server had nothing left to say, and took what was on its way for said."""
    with running(folder, PATIENCE) as server, asking(server) as client:
        time.sleep(3 * IDLE_CHECK_SECONDS)
        got = bytearray()
        while chunk := client.recv(1_000_000):
            got += chunk
        head, _, body = bytes(got).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert f"content-length: {SIZE}".encode() in head.lower()
        assert len(body) == SIZE


def test_client_that_reads_nothing_holds_little_memory_and_is_dropped(folder):
    with running(folder, 1.0) as server, contextlib.ExitStack() as clients:
        for _ in range(5):
            clients.enter_context(asking(server))
        most, seen, until = 0, 0, time.monotonic() + PATIENCE
        while time.monotonic() < until:
            protocols = list(server._server.server_state.connections)
            seen = max(seen, len(protocols))
            if seen == 5 and not protocols:
                break
            most = max(most, *(protocol.transport.get_write_buffer_size() for protocol in protocols), 0)
            time.sleep(0.01)
        assert seen == 5
        assert not server._server.server_state.connections
        assert 0 < most <= 2 * CHUNK_BYTES
