"""Limits for the clients of the studio server, and the token bucket that enforces the rate limits."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits of a server; the defaults are far above what a user needs and low enough to protect other users.

    Attributes:
        max_sessions: number of sessions at the same time; if all pages share one session, number of pages.
        new_sessions_per_second: rate of new and resumed sessions; a burst of `max_sessions` is allowed.
        reconnect_seconds: how long a session waits for a page whose connection was lost, s.
        reload_seconds: how long a session waits for a page that was closed or left, since it may be a reload, s.
        max_upload_bytes: size of an upload, bytes.
        max_message_bytes: size of a websocket message, bytes.
        parallel_uploads: number of uploads that are read at the same time; further uploads wait. A second upload to the
            same session is rejected.
        max_stored_bytes: size of the mesh files of all sessions together, bytes.
        upload_seconds: time for the body of an upload to arrive, s.
        max_pending_events, max_pending_characters: number and total length of the events that may wait for a page that
            does not read them; the connection of a page with more is closed.
        stall_seconds: time after which the connection of a page that reads nothing is closed, s.
        requests_per_second, drags_per_second, messages_per_second: rates; a burst of twice as many is allowed. Requests
            above the limit are rejected. Above the limit of drag updates, only the newest update is kept. A client with
            too many messages is disconnected.
        max_refusals: number of consecutive requests rejected by the rate limit or by `max_pending_requests` after which
            a client is disconnected.
        max_pending_requests: number of jobs (requests, drag updates, calls) that may wait in a session; further
            requests are rejected.
        bytes_per_second: rate of received bytes of a websocket; a burst of four messages of maximum size is allowed.
        max_unsent_bytes: number of bytes that may wait in a socket while its client sends more messages.
        max_connections: number of open sockets, including those without a request.
        idle_check_seconds: interval between two checks for a new HTTP request of a connection, s; a connection without
            a new request is closed.
        ping_seconds: interval of websocket pings, and time for the reply, s.
    """

    max_sessions: int = 64
    new_sessions_per_second: float = 10.0
    reconnect_seconds: float = 60.0
    reload_seconds: float = 15.0
    max_upload_bytes: int = 64_000_000
    max_message_bytes: int = 1_000_000
    parallel_uploads: int = 4
    max_stored_bytes: int = 1_000_000_000
    upload_seconds: float = 60.0
    max_pending_events: int = 256
    max_pending_characters: int = 16_000_000
    stall_seconds: float = 15.0
    requests_per_second: float = 100.0
    drags_per_second: float = 300.0
    messages_per_second: float = 1000.0
    max_refusals: int = 500
    max_pending_requests: int = 200
    bytes_per_second: float = 2_000_000.0
    max_unsent_bytes: int = 16_000_000
    max_connections: int = 512
    idle_check_seconds: float = 10.0
    ping_seconds: float = 20.0


class TokenBucket:
    """A token bucket for rate limits: it contains at most `capacity` tokens and gains `rate` tokens per second."""

    def __init__(self, rate: float, capacity: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._capacity, self._clock = rate, capacity, clock
        self._tokens, self._fill_time = capacity, clock()

    def take(self, tokens: float = 1.0) -> bool:
        """Take `tokens` and return True, or take none and return False if there are too few."""
        # the clocks of two cores may differ; a clock that runs backwards must not remove tokens
        now = max(self._fill_time, self._clock())
        self._tokens = min(self._capacity, self._tokens + (now - self._fill_time) * self._rate)
        self._fill_time = now
        if self._tokens < tokens:
            return False
        self._tokens -= tokens
        return True

    @property
    def seconds_until_token(self) -> float:
        """Time until one token is available, s."""
        missing_tokens = 1.0 - self._tokens - max(0.0, self._clock() - self._fill_time) * self._rate
        return max(0.0, missing_tokens / self._rate)
