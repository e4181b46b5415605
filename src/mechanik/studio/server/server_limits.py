"""Limits for the clients of the studio server, and the token bucket that enforces rates."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits of a server; the defaults are far above what a user needs and low enough to protect other users.

    Attributes:
        max_sessions: number of sessions at the same time.
        new_sessions_per_second: rate of new sessions; bursts up to `max_sessions`.
        reconnect_seconds: how long a session waits for a page whose connection was lost, s.
        reload_seconds: how long a session waits for a page that was closed or left, since it may be reloaded, s.
        max_upload_bytes: size of an upload.
        max_message_bytes: size of a websocket message.
        parallel_uploads: uploads that are read at the same time; others wait. A second upload to the same session is
            rejected.
        max_stored_bytes: mesh files of all sessions together, bytes.
        upload_seconds: time for the body of an upload to arrive, s.
        max_pending_events, max_pending_characters: events that may wait for a page that does not read them, and their
            length in total; more end the connection.
        stall_seconds: time for which a page may read nothing at all, s.
        requests_per_second, drags_per_second, messages_per_second: rates, with bursts of twice as many. More requests
            are rejected; of more drag updates only the newest waits; a client with more messages is dropped.
        max_refusals: consecutive requests rejected by the rate limit after which a client is dropped.
        max_pending_requests: requests that may wait for the running one.
        bytes_per_second: rate of received bytes of a websocket; bursts of four messages of maximum size.
        max_unsent_bytes: bytes that may wait in a socket whose client still sends.
        max_connections: open sockets, with those that have not sent a request yet.
        first_request_seconds: time in which a client must start a request, s.
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
    first_request_seconds: float = 10.0
    ping_seconds: float = 20.0


class TokenBucket:
    """A token bucket for rate limits: it holds at most `capacity` tokens and gains `rate` tokens per second."""

    def __init__(self, rate: float, capacity: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._capacity, self._clock = rate, capacity, clock
        self._tokens, self._filled = capacity, clock()

    def take(self, tokens: float = 1.0) -> bool:
        """Take `tokens` and return True, or take none and return False if there are too few."""
        now = max(self._filled, self._clock())  # the clock may run backwards between cores; that must not remove tokens
        self._tokens = min(self._capacity, self._tokens + (now - self._filled) * self._rate)
        self._filled = now
        if self._tokens < tokens:
            return False
        self._tokens -= tokens
        return True

    @property
    def seconds_until_token(self) -> float:
        """Time until one token is available, s."""
        missing = 1.0 - self._tokens - max(0.0, self._clock() - self._filled) * self._rate
        return max(0.0, missing / self._rate)
