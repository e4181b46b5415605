"""Answers of any size, piece by piece: what a client does not take does not pile up in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

PIECE = 256_000
"""Bytes."""


class InPieces(Response):
    """The next piece goes out when most of the last one was taken; who takes nothing for `patience` seconds is cut.

    Args:
        cut: ends the connection of a client, given as the scope of a request names it.
    """

    def __init__(
        self, data: bytes, media: str, headers: Mapping[str, str], patience: float, cut: Callable[[Any], None]
    ) -> None:
        super().__init__(b"", 200, {"content-type": media, **headers, "content-length": str(len(data))})
        self._data, self._patience, self._cut = data, patience, cut

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            for at in range(0, len(self._data), PIECE):
                piece = self._data[at : at + PIECE]
                async with asyncio.timeout(self._patience):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        except TimeoutError:
            self._cut(scope.get("client"))
            return
        await send({"type": "http.response.body", "body": b""})
