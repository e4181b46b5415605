"""Starts the server in a thread of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import ipaddress
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from mechanik.errors import CannotServe, MissingExtra
from mechanik.mechanism import Mechanism
from mechanik.studio.messages.events import Event
from mechanik.studio.messages.requests import OpenGallery, OpenScene
from mechanik.studio.scenes import SCENES, entries
from mechanik.studio.server.limits import Limits
from mechanik.studio.session.scene_like import SceneLike
from mechanik.studio.session.session import Session

if TYPE_CHECKING:
    import uvicorn

    from mechanik.studio.server.access import Access
    from mechanik.studio.server.rooms import Rooms

LOOPBACK = "127.0.0.1"
FIRST_PORT = 8230
"""Where a free port is looked for when none is asked for: the same address again for the next start, if it is free."""
PORTS_TRIED = 20
USUAL = Limits()
Start = Mechanism | tuple[Literal["gallery", "scene"], str] | None
"""What a new page shows: its own copy of a mechanism, one of the gallery, a scene; None: the start page."""


class Server:
    """A server that runs; `serve` makes it.

    Attributes:
        link: with the token; who opens it comes in.
        rooms: the sessions of its pages.
    """

    def __init__(self, listening: socket.socket, server: uvicorn.Server, access: Access, rooms: Rooms) -> None:
        host, port = listening.getsockname()[:2]
        self.host, self.port = str(host), int(port)
        self.access, self.rooms = access, rooms
        shown = {"0.0.0.0": LOOPBACK, "::": "[::1]"}.get(self.host, f"[{self.host}]" if ":" in self.host else self.host)
        self.address = f"http://{shown}:{self.port}/"
        self.link = f"{self.address}?token={access.token}"
        self._server, self._socket = server, listening
        self._thread = threading.Thread(target=server.run, args=([listening],), name="mechanik studio", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def open_browser(self) -> bool:
        """Show the studio in the browser of this machine; False if there is none. The key stays out of its command
        line, which everybody can read."""
        return webbrowser.open(f"{self.address}?once={self.access.new_code()}")

    def wait(self, seconds: float | None = None) -> None:
        """Until it is closed, or so long."""
        self._thread.join(seconds)

    def close(self) -> None:
        """Ends all sessions and connections; again does nothing."""
        self._server.should_exit = True
        self.rooms.close()
        if threading.current_thread() is not self._thread:
            self._thread.join(5.0)
        with contextlib.suppress(OSError):
            self._socket.close()


def serve(
    start: Start = None,
    *,
    host: str = LOOPBACK,
    port: int | None = None,
    page: Path | None = None,
    limits: Limits = USUAL,
    is_shared: bool = False,
) -> Server:
    """Serve the studio from a thread.

    Args:
        start: what each new page shows.
        host: an address of this machine; others than the loopback can be reached from outside.
        port: 0 for any that is free; None: the first free one of a few.
        page: the folder of the built page, if not the one that comes with Mechanik.
        is_shared: all pages look at one session, `Server.rooms.shared`.
    """
    for need in ("starlette", "uvicorn", "websockets"):
        if importlib.util.find_spec(need) is None:
            raise MissingExtra("the studio", "studio")
    import uvicorn

    from mechanik.studio.server.access import Access
    from mechanik.studio.server.app import make_app
    from mechanik.studio.server.page_files import page_files
    from mechanik.studio.server.rooms import Rooms
    from mechanik.studio.server.sockets import Sockets

    files = page_files(page)
    listening = _listen(host, port)
    access = Access(host, listening.getsockname()[1])
    rooms = Rooms(_maker(start), limits, is_shared)
    sockets = Sockets(limits)
    config = uvicorn.Config(
        make_app(access, rooms, files, entries(), limits, sockets),
        http=sockets.http(),
        ws=sockets.websocket(),
        loop="asyncio",
        lifespan="off",
        log_config=None,
        log_level="critical",  # nothing that a client does is worth a line; what is our fault is logged by us
        access_log=False,
        server_header=False,
        proxy_headers=False,  # or a header would say who a client is
        ws_max_size=limits.largest_message,
        ws_ping_interval=limits.ping_seconds,
        ws_ping_timeout=limits.ping_seconds,
        ws_per_message_deflate=False,  # on one machine it only costs time
        timeout_graceful_shutdown=1,
    )
    return Server(listening, uvicorn.Server(config), access, rooms)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def _maker(start: Start) -> Callable[[Callable[[Event], None], Callable[[bytes], None], str], Session]:
    def make(tell: Callable[[Event], None], show: Callable[[bytes], None], key: str) -> Session:
        scenes = cast("Mapping[str, Callable[[], SceneLike]]", SCENES)  # pyright takes no class variable for a property
        session = Session(tell, show, scenes=scenes, key=key)
        try:
            if isinstance(start, Mechanism):
                session.open(start)
            elif start is not None:
                kind, name = start
                session.ask(OpenScene(name) if kind == "scene" else OpenGallery(name))
        except BaseException:
            session.close()
            raise
        return session

    return make


def _listen(host: str, port: int | None) -> socket.socket:
    """A socket that listens from now on: who opens the link before the server is up waits for a moment."""
    tries = [port] if port is not None else [*range(FIRST_PORT, FIRST_PORT + PORTS_TRIED), 0]
    for k, one in enumerate(tries):
        listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        try:
            if sys.platform != "win32":  # there it would let two servers have the same port
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((host, one))
            listening.listen(128)
            return listening
        except OSError as error:
            listening.close()
            if isinstance(error, socket.gaierror) or k == len(tries) - 1:
                raise CannotServe(_why(host, one, error)) from None
        except OverflowError:
            listening.close()
            raise CannotServe(f"a port is a number from 0 to 65535, not {one}") from None
    raise AssertionError


def _why(host: str, port: int, error: OSError) -> str:
    import errno

    if error.errno == errno.EADDRINUSE:
        return f"port {port} is in use; choose another with --port, or none and the next free one is taken"
    if error.errno == errno.EACCES:
        return f"port {port} is not for everybody; choose one above 1023"
    return f"{host!r} is no address of this machine that can be listened on: {error.strerror}"
