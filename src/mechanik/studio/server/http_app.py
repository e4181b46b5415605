"""HTTP application of the studio: page files, uploads, meshes, downloads, websockets and the list of solver methods.

Page files come from a table that is made at the start of the server; no other file of the disk can be requested by its
path. The options of solver methods are read from the source code, since methods are imported only when they are used.
The size and the time of an upload are checked while its data arrives. Uploads are parsed in a thread, without a
temporary file.
"""

from __future__ import annotations

import ast
import asyncio
import logging
import math
import re
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass, fields
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from msgspec import structs
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from mechanik.errors import FileMissing, InvalidOperation, MechanikError
from mechanik.solver import METHODS
from mechanik.solver.options import Options
from mechanik.studio.messages.events import MethodInfo, OptionInfo, StartPageEntry, Welcome
from mechanik.studio.messages.goal_kinds import GOAL_KINDS
from mechanik.studio.messages.requests import Value
from mechanik.studio.server.access_control import AccessKeys, AuthMiddleware
from mechanik.studio.server.connection import serve_page
from mechanik.studio.server.http_transport import ChunkedResponse, OpenSockets
from mechanik.studio.server.server_limits import ServerLimits
from mechanik.studio.server.session_host import INTERNAL_ERROR, SessionHost
from mechanik.studio.server.session_pool import SessionPool
from mechanik.studio.session.loaded_model import check_upload_size
from mechanik.version import __version__

PAGE_FOLDER = Path(__file__).parents[1] / "page"
PICTURE_FOLDER = Path(__file__).parents[1] / "pictures"
PAGE_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".wasm": "application/wasm",
    ".json": "application/json",
}
INDEX_FILE = "index.html"
ICON_FILE = "icon.svg"
CACHE_FOREVER = "private, max-age=31536000, immutable"
CACHE_REVALIDATE = "no-cache"


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page: its content, its media type and its header `Cache-Control`."""

    data: bytes
    media_type: str
    cache_control: str


def load_page_files(page: Path | None = None) -> Mapping[str, PageFile]:
    """Return the files of the built page and the pictures, by the path in their URLs.

    Args:
        page: folder of the built page; None: the page that is installed with Mechanik.

    Raises:
        FileMissing: the page is not built.
    """
    folder = PAGE_FOLDER if page is None else page
    if not (folder / INDEX_FILE).is_file():
        raise FileMissing(f"the page of the studio is not built: {folder} has no {INDEX_FILE}. Run `make page`")
    files_by_path = {f"/{name}": file for name, file in _files_below(folder)}
    files_by_path.update({f"/pictures/{name}": file for name, file in _files_below(PICTURE_FOLDER)})
    files_by_path["/"] = files_by_path.pop(f"/{INDEX_FILE}")
    if f"/{ICON_FILE}" in files_by_path:
        # some browsers request this file even if the page names another icon
        files_by_path["/favicon.ico"] = files_by_path[f"/{ICON_FILE}"]
    return files_by_path


def _files_below(folder: Path) -> list[tuple[str, PageFile]]:
    files: list[tuple[str, PageFile]] = []
    for path in sorted(folder.rglob("*")):
        media_type = PAGE_MEDIA_TYPES.get(path.suffix)
        if media_type is None or not path.is_file():
            continue
        name = path.relative_to(folder).as_posix()
        has_content_hash = name.startswith("assets/")  # Vite adds a content hash to the names in this folder
        files.append(
            (name, PageFile(path.read_bytes(), media_type, CACHE_FOREVER if has_content_hash else CACHE_REVALIDATE))
        )
    return files


COMMON_OPTIONS = ("tolerance", "angle_tolerance", "max_iterations", "restarts", "position_weight", "rotation_weight")
"""Options that every method has and that are useful in interactive solving."""
OptionKind = Literal["number", "integer", "switch", "choice", "text"]


_SOURCE_LOCK = threading.Lock()


def method_infos() -> tuple[MethodInfo, ...]:
    """Return all solver methods with their options: first the options of the method, then the common options.

    The sources are read only once, even if many pages connect at the same time.
    """
    with _SOURCE_LOCK:
        return _read_method_infos()


@cache
def _read_method_infos() -> tuple[MethodInfo, ...]:
    descriptions = _attribute_descriptions(Options.__doc__ or "")
    annotations = {field.name: str(field.type) for field in fields(Options)}
    common_options = [
        _option_info(
            name, ast.parse(annotations[name], mode="eval").body, getattr(Options(), name), descriptions.get(name, "")
        )
        for name in COMMON_OPTIONS
    ]
    return tuple(_read_method_info(name, location, common_options) for name, location in METHODS.items())


def _read_method_info(name: str, location: str, common_options: list[OptionInfo]) -> MethodInfo:
    module, class_name = location.split(":")
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    definition = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_name)
    descriptions = _attribute_descriptions(ast.get_docstring(definition) or "")
    title = name
    options: list[OptionInfo] = []
    for statement in definition.body:
        if (
            not isinstance(statement, ast.AnnAssign)
            or not isinstance(statement.target, ast.Name)
            or statement.value is None
        ):
            continue
        if "ClassVar" not in ast.unparse(statement.annotation):
            option_name = statement.target.id
            options.append(
                _option_info(
                    option_name,
                    statement.annotation,
                    _literal_default(statement.value),
                    descriptions.get(option_name, ""),
                )
            )
        elif statement.target.id == "title":
            title = str(ast.literal_eval(statement.value))
    specific_names = {option.name for option in options}
    return MethodInfo(
        name, title, [*options, *(option for option in common_options if option.name not in specific_names)]
    )


def _option_info(name: str, annotation: ast.expr, default: Any, description: str) -> OptionInfo:
    annotation_text = ast.unparse(annotation)
    choices: list[str] = []
    kind: OptionKind = "text"
    if annotation_text.startswith("Literal["):
        kind = "choice"
        choices = [
            node.value for node in ast.walk(annotation) if isinstance(node, ast.Constant) and type(node.value) is str
        ]
    elif annotation_text.startswith("bool"):
        kind = "switch"
    elif annotation_text.startswith("int"):
        kind = "integer"
    elif annotation_text.startswith("float"):
        kind = "number"
    return OptionInfo(name, kind, _default_value(default, kind), choices, description)


def _default_value(default: Any, kind: OptionKind) -> Value | None:
    """Return the default if it is finite and its type suits the kind; else None, as for a text in a number option."""
    accepted_type = {"number": float | int, "integer": int, "switch": bool, "choice": str, "text": str}[kind]
    return (
        default if isinstance(default, accepted_type) and (isinstance(default, str) or math.isfinite(default)) else None
    )


def _literal_default(value: ast.expr) -> Any:
    """Return the value of a literal in the source; None for other expressions."""
    try:
        return ast.literal_eval(value)
    except ValueError:
        return None


def _attribute_descriptions(docstring: str) -> dict[str, str]:
    """Return the descriptions in the section `Attributes:` of a docstring, by name."""
    descriptions: dict[str, str] = {}
    names: list[str] = []
    lines = docstring.partition("Attributes:")[2].splitlines()
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    for line in lines:
        text = line.strip()
        if text and len(line) - len(line.lstrip()) == indent and ":" in text:
            name_list, _, text = text.partition(":")
            names = [name.strip() for name in name_list.split(",")]
        for name in names:
            descriptions[name] = f"{descriptions.get(name, '')} {text.strip()}".strip()
    return descriptions


NO_SESSION = "The session has ended. Reload the page."
UPLOAD_BUSY = "Another file is being opened. Wait until it is open, then try again."
OPEN_TIMEOUT = (
    "The file was not uploaded and opened in time. If it does not open soon, try again, or upload a smaller file."
)
NO_SPACE = "the studio has no memory left for meshes; close other pages, or remove meshes from the zip file"
MAX_NAME_LENGTH = 200
"""Largest number of characters in the name of an uploaded file."""
OPEN_SECONDS = 60.0
"""Maximum time that an upload waits for the session to open the mechanism, s."""
log = logging.getLogger("mechanik.studio")


class UploadEndpoint:
    """Endpoint `POST /upload/{key}?name=arm.urdf`: open the mechanism in the body in the session `key`.

    The status is 200 if the mechanism was opened, else 4xx or 500 with a sentence that gives the reason.
    """

    def __init__(self, pool: SessionPool, limits: ServerLimits) -> None:
        self._pool, self._limits = pool, limits
        self._upload_slots = asyncio.Semaphore(limits.parallel_uploads)
        self._busy_hosts: set[SessionHost] = set()

    async def __call__(self, request: Request) -> Response:
        host = self._pool.find(request.path_params["key"])
        if host is None:
            return PlainTextResponse(NO_SESSION, 404)
        name = request.query_params.get("name", "")
        if not 0 < len(name) <= MAX_NAME_LENGTH:
            return PlainTextResponse(f"The name of a file must have 1 to {MAX_NAME_LENGTH} characters.", 400)
        if host in self._busy_hosts:
            return PlainTextResponse(UPLOAD_BUSY, 409)
        self._busy_hosts.add(host)
        try:
            return await self._open_upload(request, host, name)
        finally:
            self._busy_hosts.discard(host)

    async def _open_upload(self, request: Request, host: SessionHost, name: str) -> Response:
        async with self._upload_slots:  # limits how many uploads are in memory
            try:
                data = await self._read_body(request)
                await run_in_threadpool(self._open_mechanism, host, name, data)
            except ClientDisconnect:
                return Response(status_code=400)
            except TimeoutError:  # of the upload, or of the session, which may still open the file
                return PlainTextResponse(OPEN_TIMEOUT, 408)
            except CancelledError:
                return PlainTextResponse(NO_SESSION, 404)
            except _UploadTooLarge:
                limit = self._limits.max_upload_bytes // 1_000_000
                return PlainTextResponse(f"The file is larger than {limit} MB. Upload a smaller file.", 413)
            except MechanikError as error:
                return PlainTextResponse(str(error), 422)
            except Exception as error:
                log.error("the studio: %s: %s", type(error).__name__, " ".join(str(error).split())[:500])
                return PlainTextResponse(INTERNAL_ERROR, 500)
        return PlainTextResponse("opened")

    async def _read_body(self, request: Request) -> bytes:
        limit = self._limits.max_upload_bytes
        length_text = request.headers.get("content-length", "0")
        if length_text.isdecimal() and int(length_text[:20]) > limit:
            raise _UploadTooLarge
        data = bytearray()
        async with asyncio.timeout(self._limits.upload_seconds):
            async for chunk in request.stream():
                data += chunk
                if len(data) > limit:
                    raise _UploadTooLarge
        return bytes(data)

    def _open_mechanism(self, host: SessionHost, name: str, data: bytes) -> None:
        from mechanik.formats.load_bytes import load_bytes

        mechanism, files = load_bytes(name, data)
        check_upload_size(mechanism)
        if self._pool.stored_file_bytes(host) + sum(map(len, files.values())) > self._limits.max_stored_bytes:
            raise InvalidOperation(NO_SPACE)
        host.submit_call(lambda session: session.open(mechanism, title=name, files=files)).result(OPEN_SECONDS)


class _UploadTooLarge(Exception):
    """Raised if an upload has more bytes than `ServerLimits.max_upload_bytes`."""


NOT_FOUND = "There is nothing at this address."


def make_app(
    access: AccessKeys,
    pool: SessionPool,
    files: Mapping[str, PageFile],
    entries: list[StartPageEntry],
    limits: ServerLimits,
    sockets: OpenSockets,
) -> ASGIApp:
    """Return the ASGI application with all routes; the access control checks each request first.

    /                             the page; with ?token= or ?once= the login
    /assets/..., /pictures/...    page files
    /ws                           websocket of a session
    /return                       POST: set the cookie again for a page with a return key; see `AuthMiddleware`
    /upload/{key}                 POST: upload a file to the session
    /mesh/{key}/{number}          a mesh or texture that the session shows
    /download/{key}/{file}        a file that the session has exported
    """

    shown_entries = [entry if entry.picture in files else structs.replace(entry, picture="") for entry in entries]

    def welcome(key: str, return_key: str) -> Welcome:
        is_shared = pool.shared_host is not None
        return Welcome(
            __version__,
            key,
            return_key,
            shown_entries,
            list(method_infos()),
            list(GOAL_KINDS),
            limits.max_upload_bytes,
            is_shared,
        )

    def chunked_response(data: bytes, media_type: str, headers: Mapping[str, str]) -> Response:
        return ChunkedResponse(data, media_type, headers, limits.stall_seconds, sockets.abort)

    async def run_websocket(socket: WebSocket) -> None:
        await serve_page(socket, access, pool, welcome, limits, lambda: sockets.abort(socket.scope.get("client")))

    async def send_mesh(request: Request) -> Response:
        host = pool.find(request.path_params["key"])
        if host is None:
            return PlainTextResponse(NO_SESSION, 404)
        try:
            data, media_type = await run_in_threadpool(host.session.read_mesh, request.path_params["number"])
        except MechanikError as error:
            return PlainTextResponse(str(error), 404)
        return chunked_response(data, media_type, {"cache-control": "private, max-age=3600"})

    async def send_download(request: Request) -> Response:
        host = pool.find(request.path_params["key"])
        if host is None:
            return PlainTextResponse(NO_SESSION, 404)
        try:
            data, media_type, name = await run_in_threadpool(host.session.read_download, request.path_params["file"])
        except MechanikError as error:
            return PlainTextResponse(str(error), 404)
        return chunked_response(data, media_type, {"content-disposition": _content_disposition(name)})

    async def send_page_file(request: Request) -> Response:
        page_file = files.get(request.url.path)
        if page_file is None:
            return PlainTextResponse(NOT_FOUND, 404)
        return chunked_response(page_file.data, page_file.media_type, {"cache-control": page_file.cache_control})

    app = Starlette(
        routes=[
            WebSocketRoute("/ws", run_websocket),
            Route("/upload/{key}", UploadEndpoint(pool, limits).__call__, methods=["POST"]),
            Route("/mesh/{key}/{number:int}", send_mesh),
            Route("/download/{key}/{file}", send_download),
            Route("/{path:path}", send_page_file),
        ]
    )
    return AuthMiddleware(app, access)


def _content_disposition(name: str) -> str:
    """Return a `Content-Disposition` header for any file name."""
    ascii_name = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:100].lstrip(".") or "file"
    return f"attachment; filename=\"{ascii_name}\"; filename*=UTF-8''{quote(name[:100], safe='')}"
