"""Attacks with more than a page sends, and with less."""

from __future__ import annotations

import contextlib
import json
import socket
import time

import pytest
from attacks import attack
from attacks_by_message import hand, request
from websockets.exceptions import ConnectionClosed
from wire_client import PATIENCE, connect_to

from mechanik.studio.server.connection import REQUESTS_TOO_FAST

AT_ONCE = 230
"""Requests: more than are carried out at once, and not so many that the answers are more than may wait for a page."""


@attack("a flood of requests")
def _(them):
    page = them.new_page()
    first, until = 1, time.monotonic() + PATIENCE
    while not page.last(
        "RequestRefused", message=REQUESTS_TOO_FAST
    ):  # before it is dropped: then it may hear nothing more
        assert time.monotonic() < until, "all of them were carried out"
        ids = set(range(first, first + AT_ONCE))
        first += AT_ONCE
        for k in ids:
            page.socket.send(request("Undo", id=k))
        page.wait(lambda ids=ids: ids <= {event["id"] for event in page.events if event["is"] == "RequestRefused"})
    with contextlib.suppress(ConnectionClosed):
        for k in range(20_000):
            page.socket.send(request("Undo", id=k))
    page.wait_closed()


@attack("a flood of requests that are costly")
def _(them):
    page = them.new_page()
    text = request("EditModel", kind="json", text="[" * 190_000)
    with contextlib.suppress(ConnectionClosed):
        for _ in range(200):
            page.socket.send(text)
    page.wait_closed()


@attack("a flood of hands")
def _(them):
    page = them.new_page()
    goal = page.goal()["number"]
    assert page.ask("StartGoalDrag", goal=goal)["is"] == "RequestDone"
    with contextlib.suppress(ConnectionClosed):
        for k in range(50_000):
            page.socket.send(hand(2, k + 1, goal))
    page.wait_closed()


@attack("a flood of pings whose answers nobody takes")
def _(them):
    connection = them.raw_page()
    pings = (b"\x89\xfd" + b"\x00" * 4 + b"p" * 125) * 500
    with contextlib.suppress(ConnectionError, TimeoutError):
        for _ in range(1000):
            connection.sendall(pings)
        pytest.fail("65 MB of pings were taken")


@attack("more pages than there is room for")
def _(them):
    sockets = []
    try:
        for _ in range(80):
            sockets.append(connect_to(them.server))
        words = [json.loads(connection.recv(PATIENCE)) for connection in sockets]
        refused = [event for event in words if event["is"] == "RequestRefused"]
        assert len(refused) >= 10
        assert len(them.server.pool) <= 64
        assert all("page" in event["message"] for event in refused)
    finally:
        for connection in sockets:
            connection.close()
    until = time.monotonic() + PATIENCE
    while len(them.server.pool) > 2 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(them.server.pool) <= 2, "rooms are given back"


@attack("sockets that say nothing, or half of it")
def _(them):
    for data in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n"):
        for _ in range(20):
            connection = socket.create_connection(("127.0.0.1", them.server.port), timeout=PATIENCE)
            them._open.append(connection)
            connection.sendall(data)


@attack("websockets that are left behind in the middle of a message")
def _(them):
    for _ in range(5):
        them.raw_page().sendall(b"\x81\xfe\xff\xff" + b"\x00" * 10)
