"""Files that a page sends: counted while they come, and read in a thread without touching a disk."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import CancelledError

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from mechanik.errors import MechanikError, Refused
from mechanik.studio.server.limits import Limits
from mechanik.studio.server.room import INSIDE, Room
from mechanik.studio.server.rooms import Rooms
from mechanik.studio.session.sizes import check_size

NO_SESSION = "There is no such session; load the page again."
ONE_AT_A_TIME = "A file is being opened here already; wait for it."
NO_PLACE = "the studio holds as many meshes as it can; close other pages, or leave meshes out of the zip"
LONGEST_NAME = 200
PATIENCE = 60.0
"""Seconds for what the session does before it opens the file."""
log = logging.getLogger("mechanik.studio")


class Uploads:
    """POST /upload/{key}?name=arm.urdf: the session of that key opens the mechanism in the body.

    The answer is a sentence: 200 if it was opened, else 4xx and why not.
    """

    def __init__(self, rooms: Rooms, limits: Limits) -> None:
        self._rooms, self._limits = rooms, limits
        self._turn = asyncio.Semaphore(limits.uploads)
        self._busy: set[Room] = set()

    async def __call__(self, request: Request) -> Response:
        room = self._rooms.find(request.path_params["key"])
        if room is None:
            return PlainTextResponse(NO_SESSION, 404)
        name = request.query_params.get("name", "")
        if not 0 < len(name) <= LONGEST_NAME:
            return PlainTextResponse(f"The name of a file has 1 to {LONGEST_NAME} letters.", 400)
        if room in self._busy:
            return PlainTextResponse(ONE_AT_A_TIME, 409)
        self._busy.add(room)
        try:
            return await self._taken(request, room, name)
        finally:
            self._busy.discard(room)

    async def _taken(self, request: Request, room: Room, name: str) -> Response:
        async with self._turn:  # so that a few of them are in memory, not all
            try:
                data = await self._body(request)
                await run_in_threadpool(self._open, room, name, data)
            except ClientDisconnect:
                return Response(status_code=400)
            except TimeoutError:
                return PlainTextResponse("The file took too long.", 408)
            except CancelledError:
                return PlainTextResponse(NO_SESSION, 404)
            except _TooLarge:
                most = self._limits.largest_upload // 1_000_000
                return PlainTextResponse(f"The file is larger than {most} MB.", 413)
            except MechanikError as error:
                return PlainTextResponse(str(error), 422)
            except Exception as error:
                log.error("the studio: %s: %s", type(error).__name__, " ".join(str(error).split())[:500])
                return PlainTextResponse(INSIDE, 500)
        return PlainTextResponse("opened")

    async def _body(self, request: Request) -> bytes:
        most = self._limits.largest_upload
        said = request.headers.get("content-length", "0")
        if said.isdecimal() and int(said[:20]) > most:
            raise _TooLarge
        data = bytearray()
        async with asyncio.timeout(self._limits.upload_seconds):
            async for chunk in request.stream():
                data += chunk
                if len(data) > most:
                    raise _TooLarge
        return bytes(data)

    def _open(self, room: Room, name: str, data: bytes) -> None:
        from mechanik.formats.in_memory import load_bytes

        mechanism, files = load_bytes(name, data)
        check_size(mechanism)
        if self._rooms.kept_files(room) + sum(map(len, files.values())) > self._limits.kept_files:
            raise Refused(NO_PLACE)
        room.call(lambda session: session.open(mechanism, title=name, files=files)).result(PATIENCE)


class _TooLarge(Exception):
    pass
