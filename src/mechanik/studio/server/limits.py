"""How much a client may ask for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server bears. The usual numbers are far above what a person does, and far below what hurts others.

    Attributes:
        sessions: how many there are at once.
        new_sessions: a second; as many as `sessions` may come at once.
        kept_seconds: for which a session waits for a page whose connection was lost.
        farewell_seconds: for which it waits for one that went elsewhere, or was closed: it may just be loaded again.
        largest_upload, largest_message: bytes.
        uploads: how many are read at once; others wait. Of one session it is one, and others are refused.
        kept_files: bytes of the meshes of all sessions together.
        upload_seconds: for the body of one to arrive.
        waiting_events, waiting_letters: how many may wait for a page that does not take them, and how long they are
            together; the next one ends its connection.
        patience: seconds for which a page may take nothing at all.
        requests, hands, messages: a second, and twice as many at once. Requests beyond are refused; of hands beyond,
            the newest waits for its turn; a client with more messages than that is dropped.
        refusals: of requests that came too fast, in a row, after which a client is dropped.
        waiting_requests: how many may wait for the one that is being carried out.
        bytes: a second over one websocket, and four messages of the largest size at once.
        unsent: bytes that wait in a socket whose client still sends.
        connections: open sockets, also of those who have not said what they want.
        head_seconds: in which a client has to say what it wants, or is dropped.
        ping_seconds: between two signs of life, and for the answer.
    """

    sessions: int = 64
    new_sessions: float = 10.0
    kept_seconds: float = 60.0
    farewell_seconds: float = 15.0
    largest_upload: int = 64_000_000
    largest_message: int = 1_000_000
    uploads: int = 4
    kept_files: int = 1_000_000_000
    upload_seconds: float = 60.0
    waiting_events: int = 256
    waiting_letters: int = 16_000_000
    patience: float = 15.0
    requests: float = 100.0
    hands: float = 300.0
    messages: float = 1000.0
    refusals: int = 500
    waiting_requests: int = 200
    bytes: float = 2_000_000.0
    unsent: int = 16_000_000
    connections: int = 512
    head_seconds: float = 10.0
    ping_seconds: float = 20.0
