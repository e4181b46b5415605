"""A page without a browser: comes in by the link, listens in a thread of its own, asks and drags."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import suppress

import httpx
import numpy as np
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from mechanik.studio.messages.message_codec import DRAG_GOAL, DragUpdate, StateFrame, read_state, write_drag_update

PATIENCE = 120.0
"""Seconds for anything to happen: long, since machines are busy and the first solve of all compiles, and never waited
for where all is well."""

LARGEST_UPLOAD = 300_000
"""Bytes, in these tests: it is counted the same way, and quicker."""


class WireClient:
    """
    Attributes:
        told: every event, as it came; frames: how many came; frame: the newest of the main layer.
    """

    def __init__(self, server, **options) -> None:
        self.events: list[dict] = []
        self.frames = 0
        self.frame: StateFrame | None = None
        self.is_closed = False
        self._welcome: dict = {}
        self._tag = self._id = 0
        self._news = threading.Condition()
        self.socket = connect_to(server, **options)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.socket.close()
        self._thread.join(PATIENCE)

    def break_off(self) -> None:
        """The connection is lost, without a word."""
        self.socket.socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE)

    def __enter__(self) -> WireClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- asking -----------------------------------------------------------------------------

    def ask(self, do: str, **fields) -> dict:
        """Its answer: `RequestDone` or `RequestRefused`."""
        self._id += 1
        number = self._id
        self.socket.send(json.dumps({"do": do, **fields, "id": number}))
        return self.wait(lambda: self.last("RequestDone", id=number) or self.last("RequestRefused", id=number))

    def drag(self, goal: int, pose) -> StateFrame:
        """Hold a goal that was taken there; the first state that answers."""
        tag = self.send_hand(goal, pose)
        return self.wait(lambda: self.frame is not None and self.frame.header.tag >= tag and self.frame)

    def send_hand(self, goal: int, pose) -> int:
        self._tag += 1
        self.socket.send(write_drag_update(DragUpdate(DRAG_GOAL, self._tag, goal, tuple(float(x) for x in pose))))
        return self._tag

    # ---- listening --------------------------------------------------------------------------

    def last(self, kind: str, **fields) -> dict | None:
        """The newest event of a kind, with these values."""
        for event in reversed(self.events):
            if event["is"] == kind and all(event[name] == value for name, value in fields.items()):
                return event
        return None

    def wait_for(self, kind: str, **fields) -> dict:
        return self.wait(lambda: self.last(kind, **fields))

    def wait(self, what, seconds: float = PATIENCE):
        """Until `what()` is true; its value."""
        until = time.monotonic() + seconds
        with self._news:
            while not (result := what()):
                left = until - time.monotonic()
                assert left > 0, f"nothing came; the last words: {self.events[-3:]}"
                assert not self.is_closed, f"the connection was closed; the last words: {self.events[-3:]}"
                self._news.wait(min(left, 0.5))
            return result

    def wait_closed(self, seconds: float = PATIENCE) -> None:
        self._thread.join(seconds)
        assert self.is_closed, "the connection is still open"

    @property
    def welcome(self) -> dict:
        return self.wait(lambda: self._welcome)

    def goal(self) -> dict:
        """The first goal of the session."""
        return self.wait(lambda: (self.last("Goals") or {"goals": []})["goals"])[0]

    def goal_pose(self, k: int = 0) -> np.ndarray:
        """Where the k-th goal is in the newest frame, (7,)."""
        return self.frame.goals[k, :7]

    def _listen(self) -> None:
        with suppress(ConnectionClosed, OSError):
            for message in self.socket:
                with self._news:
                    if isinstance(message, str):
                        event = json.loads(message)
                        self.events.append(event)
                        del self.events[:-2000]
                        if event["is"] == "Welcome":
                            self._welcome = event
                    else:
                        frame = read_state(message)
                        self.frames += 1
                        if frame.header.layer == 0:
                            self.frame = frame
                    self._news.notify_all()
        with self._news:
            self.is_closed = True
            self._news.notify_all()


def cookie_of(server) -> str:
    return f"{server.access.cookie_name}={server.access.token}"


def fetch(address: str, **options) -> httpx.Response:
    """What is at an address, for somebody who has time."""
    return httpx.get(address, timeout=PATIENCE, **options)


def connect_to(server, *, origin="own", cookie="own", session=""):
    """A websocket as a page opens it; whatever is given is said instead."""
    own = f"http://127.0.0.1:{server.port}"
    headers = {}
    if cookie is not None:
        headers["Cookie"] = cookie_of(server) if cookie == "own" else cookie
    opening = connect(
        f"ws://127.0.0.1:{server.port}/ws" + (f"?session={session}" if session else ""),
        origin=own if origin == "own" else origin,
        additional_headers=headers,
        compression=None,
        max_size=None,
        open_timeout=PATIENCE,
    )
    connection = opening.__enter__()  # closed by whoever has it
    join_one_at_a_time(connection.recv_events_thread)
    return connection


def join_one_at_a_time(thread: threading.Thread) -> None:
    """Let several threads join one: websockets does so when a connection ends, and up to Python 3.12 `join` may raise
    AssertionError then (its lock is held for a moment by each thread that waits)."""
    lock, join = threading.Lock(), thread.join

    def join_alone(timeout: float | None = None) -> None:
        with lock:
            join(timeout)

    thread.join = join_alone


def raw(server, data: bytes) -> bytes:
    """What a socket gets for these bytes; empty if it is closed without a word."""
    answer = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection, suppress(OSError):
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while chunk := connection.recv(65536):
            answer += chunk
    return answer


def ended(server, sessions: int = 0) -> bool:
    """Whether all rooms but so many come to their end."""
    until = time.monotonic() + PATIENCE
    while len(server.pool) > sessions and time.monotonic() < until:
        time.sleep(0.02)
    return len(server.pool) <= sessions
