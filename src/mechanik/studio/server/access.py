"""Who may come in: by the token of the printed link, to the server's own name, from the server's own pages.

A browser may lose the cookie while a page is open, as Chromium does when its network process starts anew. Hence each
page has a return key, by which it gets the cookie again. It comes over the page's websocket, is held in the page's
memory alone, and ends soon after the page has gone.
"""

from __future__ import annotations

import hmac
import ipaddress
import math
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs

BY_LINK = "This studio opens with the link that it printed when it started: the link carries its key."
SPENT = (
    "This address has let a browser in before, or has waited too long, and works once. Open the link that the studio "
    "printed; if nobody here has opened it, somebody else has: end the studio, and start it again."
)
OTHER_USER = "This address was made for another user of this machine."
OTHER_HOST = "This is not the studio's own address. Open it with the link that it printed."
OTHER_ORIGIN = "This was asked for by a page that is not the studio's own."
WEEK = 7 * 24 * 3600
SOON = 300.0
"""Seconds in which a browser that was told to open an address does so."""


class Access:
    """The keys of one server.

    Attributes:
        token: in the link; afterwards in a cookie, which pages of other sites cannot make a browser send.
        frames: origins of pages that may show the studio inside themselves, such as a notebook's.
    """

    def __init__(self, host: str, port: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.token = secrets.token_urlsafe(24)
        self._clock = clock
        self._codes: dict[str, float] = {}
        self._return_keys: dict[str, float] = {}
        self.cookie = f"mechanik_{port}"
        self.frames: tuple[str, ...] = ()
        self._port = port
        self._is_open = host in ("0.0.0.0", "::", "")
        names = {"127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host}
        if self._is_open:
            names |= {socket.gethostname().lower()}
        self._names: set[str] = {f"{name.lower()}:{port}" for name in names}
        if port == 80:  # which browsers leave out
            self._names |= {name.lower() for name in names}

    def knows_host(self, headers: Mapping[str, str]) -> bool:
        """Whether `Host` names this server. A name that only points here, as in DNS rebinding, does not."""
        host = headers.get("host", "").lower()
        return host in self._names or (self._is_open and self._is_address(host))

    def knows_origin(self, headers: Mapping[str, str]) -> bool:
        """Whether a page of this server asks; call after `knows_host`."""
        return headers.get("origin", "").lower() == f"http://{headers.get('host', '').lower()}"

    def has_cookie(self, headers: Mapping[str, str]) -> bool:
        """Whether ours is among the cookies. Those of other servers of this machine come along, whatever their port and
        however they are written, and one that cannot be read hides no other."""
        pairs = (part.partition("=") for part in headers.get("cookie", "").split(";"))
        return any(name.strip() == self.cookie and self._is_token(value.strip()) for name, _, value in pairs)

    def has_token(self, query: str) -> bool:
        given = _only(query, "token")
        return given is not None and self._is_token(given)

    def new_code(self) -> str:
        """Lets one browser in, once and soon: what a browser is told to open can be read in the list of processes, by
        everybody and for as long as it runs."""
        now = self._clock()
        self._codes = {code: until for code, until in self._codes.items() if until > now}
        code = secrets.token_urlsafe(24)
        self._codes[code] = now + SOON
        return code

    def asks_by_code(self, query: str) -> bool:
        return _only(query, "once") is not None

    def spend_code(self, query: str) -> bool:
        """Whether there is a code that counts; from now on it does not."""
        return self._codes.pop(_only(query, "once") or "", 0.0) > self._clock()

    def new_return_key(self) -> str:
        """For a page that has come in; it counts until `end_return_key`."""
        now = self._clock()
        self._return_keys = {key: until for key, until in self._return_keys.items() if until > now}
        key = secrets.token_urlsafe(24)
        self._return_keys[key] = math.inf
        return key

    def end_return_key(self, key: str, seconds: float) -> None:
        """The page has left; if it does not come back within so many seconds, its key does not count any more."""
        self._return_keys[key] = self._clock() + seconds

    def has_return_key(self, headers: Mapping[str, str]) -> bool:
        """Whether `Authorization` carries the key of a page that is here, or has been until a short while ago."""
        scheme, _, key = headers.get("authorization", "").partition(" ")
        return scheme == "Bearer" and self._return_keys.get(key, 0.0) > self._clock()

    def set_cookie(self) -> str:
        return f"{self.cookie}={self.token}; Path=/; Max-Age={WEEK}; HttpOnly; SameSite=Strict"

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode())

    def _is_address(self, host: str) -> bool:
        """Numbers instead of a name, with our port: no name can be made to point elsewhere in between."""
        name, _, port = host.rpartition(":")
        try:
            ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return False
        return port == str(self._port)


def _only(query: str, name: str) -> str | None:
    """What a query says under a name, if it says so once."""
    try:
        given = parse_qs(query, max_num_fields=20).get(name, [])
    except ValueError:
        return None
    return given[0] if len(given) == 1 else None
