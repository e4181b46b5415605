"""The addresses of the server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from mechanik.errors import MechanikError
from mechanik.studio.messages.events import GalleryEntry, Welcome
from mechanik.studio.server.access import Access
from mechanik.studio.server.connection import talk
from mechanik.studio.server.guard import Guard
from mechanik.studio.server.limits import Limits
from mechanik.studio.server.methods import methods
from mechanik.studio.server.page_files import PageFile
from mechanik.studio.server.pieces import InPieces
from mechanik.studio.server.rooms import Rooms
from mechanik.studio.server.sockets import Sockets
from mechanik.studio.server.uploads import Uploads
from mechanik.version import __version__

NOTHING = "There is nothing at this address."


def make_app(
    access: Access,
    rooms: Rooms,
    files: Mapping[str, PageFile],
    entries: list[GalleryEntry],
    limits: Limits,
    sockets: Sockets,
) -> ASGIApp:
    """All of it, behind the guard. Addresses:

    /                       the page; with ?token= the way in
    /assets/..., /pictures/...    files of the table
    /ws                     the websocket of a session
    /return                 POST: the cookie again, for a page that has its return key; answered by the guard
    /upload/{key}           POST: a file for the session
    /mesh/{key}/{number}    a mesh of the session's mechanism
    /download/{key}/{file}  a file that the session made
    """

    shown = [entry if entry.picture in files else replace(entry, picture="") for entry in entries]

    def welcome(key: str, return_key: str) -> Welcome:
        is_shared = rooms.shared is not None
        return Welcome(__version__, key, return_key, shown, list(methods()), limits.largest_upload, is_shared)

    def answer(data: bytes, media: str, headers: Mapping[str, str]) -> Response:
        return InPieces(data, media, headers, limits.patience, sockets.cut)

    async def websocket(socket: WebSocket) -> None:
        await talk(socket, access, rooms, welcome, limits, lambda: sockets.cut(socket.scope.get("client")))

    async def mesh(request: Request) -> Response:
        room = rooms.find(request.path_params["key"])
        if room is None:
            return _nothing()
        try:
            data, media = await run_in_threadpool(room.session.mesh, request.path_params["number"])
        except MechanikError as error:
            return PlainTextResponse(str(error), 404)
        return answer(data, media, {"cache-control": "private, max-age=3600"})

    async def download(request: Request) -> Response:
        room = rooms.find(request.path_params["key"])
        if room is None:
            return _nothing()
        try:
            data, media, name = await run_in_threadpool(room.session.download, request.path_params["file"])
        except MechanikError as error:
            return PlainTextResponse(str(error), 404)
        return answer(data, media, {"content-disposition": _attachment(name)})

    async def file(request: Request) -> Response:
        found = files.get(request.url.path)
        if found is None:
            return _nothing()
        return answer(found.data, found.media, {"cache-control": found.caching})

    app = Starlette(
        routes=[
            WebSocketRoute("/ws", websocket),
            Route("/upload/{key}", Uploads(rooms, limits).__call__, methods=["POST"]),
            Route("/mesh/{key}/{number:int}", mesh),
            Route("/download/{key}/{file}", download),
            Route("/{path:path}", file),
        ]
    )
    return Guard(app, access)


def _nothing() -> Response:
    return PlainTextResponse(NOTHING, 404)


def _attachment(name: str) -> str:
    """A download of that name, whatever letters it has."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:100].lstrip(".") or "file"
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name[:100], safe='')}"
