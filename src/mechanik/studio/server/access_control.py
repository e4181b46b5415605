"""Access control of the studio server: tokens, cookies, host and origin checks, and security headers.

A client gets a cookie for the token of the printed link or for a one-time code. Later requests must have the cookie.
Every request must be addressed to a host name of the server. POST requests and websockets must come from a page of the
server. A browser may lose the cookie while a page is open (Chromium does when its network process restarts). Each page
therefore has a return key with which it gets the cookie again. The server sends the key over the websocket of the page,
the page keeps the key only in memory, and the key expires soon after the page is closed.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import math
import os
import secrets
import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LINK_REQUIRED = "Open the studio with the link that it printed at its start; the link contains the access token."
CODE_USED = (
    "This address works once, for five minutes, and it was used or has expired. Open the link that the studio printed. "
    "If you have not used this address and it is less than five minutes old, somebody else has used it: stop the "
    "studio and start it again."
)
OTHER_USER = "This address belongs to another user of this machine. Open the link that your own studio printed."
OTHER_HOST = "This is not an address of the studio. Open the link that it printed."
OTHER_ORIGIN = "This request came from a page of another site. Use the page of the studio."
HTTP_PORT = 80
"""Browsers omit this port in the header `host`."""
COOKIE_SECONDS = 7 * 24 * 3600
"""Lifetime of the cookie, s."""
CODE_SECONDS = 300.0
"""Lifetime of a one-time code, s; long enough for a browser to start and open the address. `CODE_USED` quotes it."""


class AccessKeys:
    """Token, one-time codes, return keys and accepted host names of one server.

    Attributes:
        token: secret in the printed link, and value of the cookie. Browsers do not add the cookie to requests from
            pages of other sites.
        cookie_name: name of the cookie.
        frame_ancestors: origins of pages that may embed the studio in a frame, such as a notebook.
    """

    def __init__(self, host: str, port: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.token = secrets.token_urlsafe(24)
        self._clock = clock
        self._codes: dict[str, float] = {}
        self._return_keys: dict[str, float] = {}
        self.cookie_name = f"mechanik_{port}"
        self.frame_ancestors: tuple[str, ...] = ()
        self._port = port
        self._listens_on_all_addresses = host in ("0.0.0.0", "::", "")
        names = {"127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host}
        if self._listens_on_all_addresses:
            names |= {socket.gethostname().lower()}
        self._host_names: set[str] = {f"{name.lower()}:{port}" for name in names}
        if port == HTTP_PORT:
            self._host_names |= {name.lower() for name in names}

    def is_own_host(self, headers: Mapping[str, str]) -> bool:
        """Return whether the header `Host` names this server.

        Other names that resolve to this machine are rejected, which prevents DNS rebinding.
        """
        host = headers.get("host", "").lower()
        return host in self._host_names or (self._listens_on_all_addresses and self._is_ip_address(host))

    def is_own_origin(self, headers: Mapping[str, str]) -> bool:
        """Return whether the request comes from a page of this server; call it after `is_own_host`."""
        return headers.get("origin", "").lower() == f"http://{headers.get('host', '').lower()}"

    def has_cookie(self, headers: Mapping[str, str]) -> bool:
        """Return whether the request has the cookie of this server.

        Browsers also send the cookies of servers on other ports of this host, so the name, which contains the
        port, selects the cookie of this server. Cookies that cannot be parsed are skipped.
        """
        pairs = (part.partition("=") for part in headers.get("cookie", "").split(";"))
        return any(name.strip() == self.cookie_name and self._is_token(value.strip()) for name, _, value in pairs)

    def has_token(self, query: str) -> bool:
        value = _single_parameter(query, "token")
        return value is not None and self._is_token(value)

    def new_one_time_code(self) -> str:
        """Return a code that gives access once, within `CODE_SECONDS`.

        The process list shows every user the address with which a browser is started, so the address must not contain
        the token.
        """
        now = self._clock()
        self._codes = {code: expiry for code, expiry in self._codes.items() if expiry > now}
        code = secrets.token_urlsafe(24)
        self._codes[code] = now + CODE_SECONDS
        return code

    def has_code_parameter(self, query: str) -> bool:
        """Return whether the query has a one-time code, valid or not; see `redeem_code`."""
        return _single_parameter(query, "once") is not None

    def redeem_code(self, query: str) -> bool:
        """Return whether the query has a valid one-time code, and invalidate the code."""
        return self._codes.pop(_single_parameter(query, "once") or "", 0.0) > self._clock()

    def new_return_key(self) -> str:
        """Return a new return key for a page that has access; `expire_return_key` ends its validity."""
        now = self._clock()
        self._return_keys = {key: expiry for key, expiry in self._return_keys.items() if expiry > now}
        key = secrets.token_urlsafe(24)
        self._return_keys[key] = math.inf
        return key

    def expire_return_key(self, key: str, seconds: float) -> None:
        """Let the key of a closed page expire after `seconds`."""
        self._return_keys[key] = self._clock() + seconds

    def has_return_key(self, headers: Mapping[str, str]) -> bool:
        """Return whether the header `Authorization` has the key of a page that is open or was closed recently."""
        scheme, _, key = headers.get("authorization", "").partition(" ")
        return scheme == "Bearer" and self._return_keys.get(key, 0.0) > self._clock()

    def cookie_header(self) -> str:
        return f"{self.cookie_name}={self.token}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Strict"

    def _is_token(self, value: str) -> bool:
        return hmac.compare_digest(value.encode("utf-8", "replace"), self.token.encode())

    def _is_ip_address(self, host: str) -> bool:
        """Return whether `host` is an IP address with the port of this server; DNS rebinding needs a name."""
        name = host.removesuffix(f":{self._port}")
        if name == host and self._port != HTTP_PORT:
            return False
        try:
            ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return False
        return True


def _single_parameter(query: str, name: str) -> str | None:
    """Return the value of a query parameter that occurs exactly once, else None."""
    try:
        values = parse_qs(query, max_num_fields=20).get(name, [])
    except ValueError:
        return None
    return values[0] if len(values) == 1 else None


PROC_TABLES = {socket.AF_INET: Path("/proc/net/tcp"), socket.AF_INET6: Path("/proc/net/tcp6")}
LOCAL_COLUMN, REMOTE_COLUMN, UID_COLUMN = 1, 2, 7
"""Columns of `PROC_TABLES`."""
ROOT_UID = 0
"""User id of root."""
Address = Sequence[str | int | None]
"""Host and port."""


def is_other_user(client: Address | None, server: Address | None) -> bool:
    """Return whether another user of this machine has opened the connection.

    Root does not count as another user. The result is False if the operating system does not report the user.
    """
    uid = None if client is None or server is None else peer_uid(client, server)
    return uid is not None and uid not in (ROOT_UID, os.getuid())


def peer_uid(client: Address, server: Address) -> int | None:
    """Return the uid of the user who opened the connection from `client` to `server`; None if it is unknown."""
    try:
        family = socket.AF_INET6 if ":" in str(client[0]) else socket.AF_INET
        connection_ends = [_proc_net_address(family, client), _proc_net_address(family, server)]
        for line in PROC_TABLES[family].read_text(encoding="ascii").splitlines()[1:]:
            row = line.split()
            if row[LOCAL_COLUMN : REMOTE_COLUMN + 1] == connection_ends:
                return int(row[UID_COLUMN])
    except (OSError, ValueError, IndexError, TypeError):
        pass
    return None


def _proc_net_address(family: socket.AddressFamily, address: Address) -> str:
    """Return an address in the format of /proc/net/tcp: 32-bit words in native byte order and the port, in hex."""
    host, port = str(address[0]), address[1]
    packed_address = socket.inet_pton(family, host)
    words = struct.unpack(f"={len(packed_address) // 4}I", packed_address)
    return f"{''.join(f'{word:08X}' for word in words)}:{port:04X}"


HTTP_METHODS = ("GET", "HEAD", "POST")
RETURN_PATH = "/return"
"""Path to which a page without the cookie sends a POST request with its return key; the reply sets the cookie."""
REDIRECT_PAGE = (
    '<!doctype html><title>Studio</title><meta http-equiv="refresh" content="0; url=/"><a href="/">Open the studio</a>'
)
log = logging.getLogger("mechanik.studio")


class AuthMiddleware:
    """ASGI middleware that rejects requests without access and sets the security headers on every response."""

    def __init__(self, app: ASGIApp, access: AccessKeys) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                self._set_security_headers(MutableHeaders(scope=message), headers.get("host", ""))
            await send(message)

        response = self._early_response(scope, headers)
        if response is None:
            await self._run_app(scope, receive, send_with_headers)
        elif scope["type"] == "http":
            await response(scope, receive, send_with_headers)
        else:
            await _reject_websocket(response, scope, receive, send_with_headers)

    def _early_response(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the response of a request that the app does not handle: a rejection, a login or a renewed cookie.

        None: the request has access, and the app handles it.
        """
        access = self._access
        if not access.is_own_host(headers):
            return PlainTextResponse(OTHER_HOST, 403)
        is_socket = scope["type"] == "websocket"
        query = scope.get("query_string", b"").decode("latin-1")
        if not is_socket and scope["method"] in ("GET", "HEAD") and scope["path"] == "/":
            if access.has_token(query):
                return self._login(headers)
            if scope["method"] == "GET" and access.has_code_parameter(query):
                return self._login_by_code(scope, headers, query)
        if not is_socket and scope["method"] == "POST" and scope["path"] == RETURN_PATH:
            return self._renew_cookie(headers)
        if not access.has_cookie(headers):
            return PlainTextResponse(LINK_REQUIRED, 403)
        if not is_socket and scope["method"] not in HTTP_METHODS:
            return PlainTextResponse(f"Only these methods are allowed: {', '.join(HTTP_METHODS)}.", 405)
        if (is_socket or scope["method"] == "POST") and not access.is_own_origin(headers):
            return PlainTextResponse(OTHER_ORIGIN, 403)
        return None

    def _login(self, headers: Headers) -> Response:
        """Return a response that sets the cookie and opens the studio at an address without token or code.

        The response is a redirect. After a click on a link in a page of another site, such as a notebook or a web
        terminal, the browser would omit the cookie from the redirected request. But it sends the cookie with a request
        from a page of the studio, so in this case the response is a small page that opens the studio.
        """
        cookie = {"set-cookie": self._access.cookie_header()}
        if headers.get("sec-fetch-site") == "cross-site":
            return HTMLResponse(REDIRECT_PAGE, 200, cookie)
        return RedirectResponse("/", 303, cookie)

    def _login_by_code(self, scope: Scope, headers: Headers, query: str) -> Response | None:
        if is_other_user(scope.get("client"), scope.get("server")):
            return PlainTextResponse(OTHER_USER, 403)  # the code remains valid for the user of the studio
        if self._access.redeem_code(query):
            return self._login(headers)
        return None if self._access.has_cookie(headers) else PlainTextResponse(CODE_USED, 403)

    def _renew_cookie(self, headers: Headers) -> Response:
        if not self._access.is_own_origin(headers):
            return PlainTextResponse(OTHER_ORIGIN, 403)
        if not self._access.has_return_key(headers):
            return PlainTextResponse(LINK_REQUIRED, 403)
        return Response(None, 204, {"set-cookie": self._access.cookie_header()})

    async def _run_app(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            log.error("the studio: %s: %s", type(error).__name__, " ".join(str(error).split())[:500])
            if scope["type"] == "http":
                raise  # uvicorn then sends status 500, or closes the connection if the response has started

    def _set_security_headers(self, headers: MutableHeaders, host: str) -> None:
        ancestors = " ".join(("'self'", *self._access.frame_ancestors))
        headers["content-security-policy"] = (
            f"default-src 'self'; connect-src 'self' ws://{host} data: blob:; img-src 'self' data: blob:; "
            "style-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
            f"frame-ancestors {ancestors}"
        )
        headers["x-content-type-options"] = "nosniff"
        headers["referrer-policy"] = "no-referrer"
        headers["cross-origin-resource-policy"] = "same-origin"
        headers.setdefault("cache-control", "no-store")


async def _reject_websocket(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Reject a websocket before it is accepted."""
    if (await receive())["type"] != "websocket.connect":
        return
    if "websocket.http.response" in scope.get("extensions", {}):
        status_and_headers = {"status": response.status_code, "headers": response.raw_headers}
        await send({"type": "websocket.http.response.start", **status_and_headers})
        await send({"type": "websocket.http.response.body", "body": bytes(response.body)})
    else:
        await send({"type": "websocket.close", "code": 1008})
