"""Start and stop the studio server, which runs in a thread."""

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

from mechanik.errors import MissingExtra, StudioError
from mechanik.model import Mechanism
from mechanik.studio.messages.events import Event
from mechanik.studio.messages.requests import OpenGallery, OpenScene
from mechanik.studio.scenes import SCENES, start_page_entries
from mechanik.studio.server.server_limits import ServerLimits
from mechanik.studio.session.session import OpenableScene, Session

if TYPE_CHECKING:
    import uvicorn

    from mechanik.studio.server.access_control import AccessKeys
    from mechanik.studio.server.session_pool import SessionPool

LOOPBACK = "127.0.0.1"
FIRST_PORT = 8230
"""Port that is tried first if no port is given; it is fixed, so the next start usually has the same address."""
TRIED_PORT_COUNT = 20
"""Number of consecutive ports that are tried before any free port is used."""
DEFAULT_LIMITS = ServerLimits()
StartContent = Mechanism | tuple[Literal["gallery", "scene"], str] | None
"""What a new session shows: a copy of a mechanism, a gallery mechanism or a scene; None: the start page."""


class Server:
    """A running studio server, made by `serve`.

    Attributes:
        host, port: address and port on which the server listens.
        address: URL without the token.
        link: URL with the token; every browser that opens it gets access.
        access: access keys of the server.
        pool: sessions of the pages.
    """

    def __init__(
        self, listening_socket: socket.socket, server: uvicorn.Server, access: AccessKeys, pool: SessionPool
    ) -> None:
        host, port = listening_socket.getsockname()[:2]
        self.host, self.port = str(host), int(port)
        self.access, self.pool = access, pool
        url_host = {"0.0.0.0": LOOPBACK, "::": "[::1]"}.get(
            self.host, f"[{self.host}]" if ":" in self.host else self.host
        )
        self.address = f"http://{url_host}:{self.port}/"
        self.link = f"{self.address}?token={access.token}"
        self._server, self._socket = server, listening_socket
        self._thread = threading.Thread(
            target=server.run, args=([listening_socket],), name="mechanik studio", daemon=True
        )
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def open_browser(self) -> bool:
        """Open the studio in the browser of this machine; return False if there is no browser.

        The address contains a one-time code, since every user of the machine can read the command line of the browser.
        """
        return webbrowser.open(f"{self.address}?once={self.access.new_one_time_code()}")

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the server is closed, at most `seconds`; None: without a time limit."""
        self._thread.join(seconds)

    def close(self) -> None:
        """End all sessions and connections; a second call does nothing."""
        self._server.should_exit = True
        self.pool.close()
        if threading.current_thread() is not self._thread:
            self._thread.join(5.0)
        with contextlib.suppress(OSError):
            self._socket.close()


def serve(
    start: StartContent = None,
    *,
    host: str = LOOPBACK,
    port: int | None = None,
    page: Path | None = None,
    limits: ServerLimits = DEFAULT_LIMITS,
    is_shared: bool = False,
) -> Server:
    """Start the studio server in a thread.

    Args:
        start: what each new session shows.
        host: address to listen on; other machines can connect unless it is a loopback address.
        port: port to listen on; 0: any free port; None: the first free port of the `TRIED_PORT_COUNT` ports from
            `FIRST_PORT` on, else any free port.
        page: folder of the built page; None: the page that is installed with Mechanik.
        limits: limits for clients.
        is_shared: whether all pages share one session, `Server.pool.shared_host`.

    Raises:
        MissingExtra: the packages of the extra "studio" are not installed.
        StudioError: the host or port cannot be used.
        FileMissing: the page is not built.
    """
    for package in ("starlette", "uvicorn", "websockets"):
        if importlib.util.find_spec(package) is None:
            raise MissingExtra("the studio", "studio")
    import uvicorn

    from mechanik.studio.server.access_control import AccessKeys
    from mechanik.studio.server.http_app import load_page_files, make_app
    from mechanik.studio.server.http_transport import OpenSockets
    from mechanik.studio.server.session_pool import SessionPool

    files = load_page_files(page)
    listening_socket = _listen(host, port)
    access = AccessKeys(host, listening_socket.getsockname()[1])
    pool = SessionPool(_session_factory(start), limits, is_shared)
    sockets = OpenSockets(limits)
    config = uvicorn.Config(
        make_app(access, pool, files, start_page_entries(), limits, sockets),
        http=sockets.http_protocol(),
        ws=sockets.websocket_protocol(),
        loop="asyncio",
        lifespan="off",
        log_config=None,
        log_level="critical",  # no log lines for the actions of clients; our own errors are logged elsewhere
        access_log=False,
        server_header=False,
        proxy_headers=False,  # otherwise a header could forge the address of the client
        ws_max_size=limits.max_message_bytes,
        ws_ping_interval=limits.ping_seconds,
        ws_ping_timeout=limits.ping_seconds,
        ws_per_message_deflate=False,  # compression only costs time if server and browser run on one machine
        timeout_graceful_shutdown=1,
    )
    return Server(listening_socket, uvicorn.Server(config), access, pool)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def _session_factory(start: StartContent) -> Callable[[Callable[[Event], None], Callable[[bytes], None], str], Session]:
    def make_session(send_event: Callable[[Event], None], send_frame: Callable[[bytes], None], key: str) -> Session:
        # pyright does not accept a class variable as a property
        scenes = cast("Mapping[str, Callable[[], OpenableScene]]", SCENES)
        session = Session(send_event, send_frame, scenes=scenes, key=key)
        try:
            if isinstance(start, Mechanism):
                session.open(start)
            elif start is not None:
                kind, name = start
                session.handle_request(OpenScene(name) if kind == "scene" else OpenGallery(name))
        except BaseException:
            session.close()
            raise
        return session

    return make_session


def _listen(host: str, port: int | None) -> socket.socket:
    """Return a listening socket; it queues a browser that connects before the server has started."""
    ports = [port] if port is not None else [*range(FIRST_PORT, FIRST_PORT + TRIED_PORT_COUNT), 0]
    for k, candidate_port in enumerate(ports):
        listening_socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        try:
            if sys.platform != "win32":  # on Windows this option would let two servers share the port
                listening_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening_socket.bind((host, candidate_port))
            listening_socket.listen(128)
            return listening_socket
        except OSError as error:
            listening_socket.close()
            if isinstance(error, socket.gaierror) or k == len(ports) - 1:
                raise StudioError(_listen_error(host, candidate_port, error)) from None
        except OverflowError:
            listening_socket.close()
            raise StudioError(f"a port must be an integer from 0 to 65535, not {candidate_port}") from None
    raise AssertionError


def _listen_error(host: str, port: int, error: OSError) -> str:
    import errno

    if error.errno == errno.EADDRINUSE:
        return f"port {port} is in use; choose another port, or none to use a free port"
    if error.errno == errno.EACCES:
        return f"port {port} needs administrator rights; choose a port above 1023"
    return f"cannot listen on {host!r}: {error.strerror}. Choose an address of this machine"
