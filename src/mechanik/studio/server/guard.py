"""Stands before everything: refuses who may not come in, and puts the headers of safety on every answer."""

from __future__ import annotations

import logging

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mechanik.studio.server.access import BY_LINK, OTHER_HOST, OTHER_ORIGIN, OTHER_USER, SPENT, Access
from mechanik.studio.server.peers import is_foreign

METHODS = ("GET", "HEAD", "POST")
RETURN = "/return"
"""Where a page whose browser has lost the cookie asks for it, by POST and with its return key."""
DOORSTEP = '<!doctype html><title>Studio</title><meta http-equiv="refresh" content="0; url=/"><a href="/">Come in</a>'
log = logging.getLogger("mechanik.studio")


class Guard:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def send_safely(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                self._put_headers(MutableHeaders(scope=message), headers.get("host", ""))
            await send(message)

        refusal = self._refusal(scope, headers)
        if refusal is None:
            await self._pass(scope, receive, send_safely)
        elif scope["type"] == "http":
            await refusal(scope, receive, send_safely)
        else:
            await _deny(refusal, scope, receive, send_safely)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer for who may not come in, or who comes by the link; None: come in."""
        access = self._access
        if not access.knows_host(headers):
            return PlainTextResponse(OTHER_HOST, 403)
        is_socket = scope["type"] == "websocket"
        query = scope.get("query_string", b"").decode("latin-1")
        if not is_socket and scope["method"] in ("GET", "HEAD") and scope["path"] == "/":
            if access.has_token(query):
                return self._let_in(headers)
            if scope["method"] == "GET" and access.asks_by_code(query):
                return self._by_code(scope, headers, query)
        if not is_socket and scope["method"] == "POST" and scope["path"] == RETURN:
            return self._give_cookie_again(headers)
        if not access.has_cookie(headers):
            return PlainTextResponse(BY_LINK, 403)
        if not is_socket and scope["method"] not in METHODS:
            return PlainTextResponse(f"There are only {', '.join(METHODS)} here.", 405)
        if (is_socket or scope["method"] == "POST") and not access.knows_origin(headers):
            return PlainTextResponse(OTHER_ORIGIN, 403)
        return None

    def _let_in(self, headers: Headers) -> Response:
        """The key goes from the address into a cookie. Where a page of another site has the link, such as a notebook or
        a terminal in the browser, the cookie is not sent along until a page of ours asks for it."""
        cookie = {"set-cookie": self._access.set_cookie()}
        if headers.get("sec-fetch-site") == "cross-site":
            return HTMLResponse(DOORSTEP, 200, cookie)
        return RedirectResponse("/", 303, cookie)

    def _by_code(self, scope: Scope, headers: Headers, query: str) -> Response | None:
        if is_foreign(scope.get("client"), scope.get("server")):
            return PlainTextResponse(OTHER_USER, 403)  # and the code is still good for who it was made for
        if self._access.spend_code(query):
            return self._let_in(headers)
        return None if self._access.has_cookie(headers) else PlainTextResponse(SPENT, 403)

    def _give_cookie_again(self, headers: Headers) -> Response:
        if not self._access.knows_origin(headers):
            return PlainTextResponse(OTHER_ORIGIN, 403)
        if not self._access.has_return_key(headers):
            return PlainTextResponse(BY_LINK, 403)
        return Response(None, 204, {"set-cookie": self._access.set_cookie()})

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            log.error("the studio: %s: %s", type(error).__name__, " ".join(str(error).split())[:500])
            if scope["type"] == "http":
                raise  # the server below answers with a bare 500, or closes what was begun

    def _put_headers(self, headers: MutableHeaders, host: str) -> None:
        frames = " ".join(("'self'", *self._access.frames))
        headers["content-security-policy"] = (
            f"default-src 'self'; connect-src 'self' ws://{host} data: blob:; img-src 'self' data: blob:; "
            "style-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
            f"frame-ancestors {frames}"
        )
        headers["x-content-type-options"] = "nosniff"
        headers["referrer-policy"] = "no-referrer"
        headers["cross-origin-resource-policy"] = "same-origin"
        headers.setdefault("cache-control", "no-store")


async def _deny(refusal: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a websocket before it is one."""
    if (await receive())["type"] != "websocket.connect":
        return
    if "websocket.http.response" in scope.get("extensions", {}):
        start = {"status": refusal.status_code, "headers": refusal.raw_headers}
        await send({"type": "websocket.http.response.start", **start})
        await send({"type": "websocket.http.response.body", "body": bytes(refusal.body)})
    else:
        await send({"type": "websocket.close", "code": 1008})
