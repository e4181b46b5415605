"""Attacks without the key, from other pages, on other addresses, and with what is no HTTP."""

from __future__ import annotations

import pytest
from attacks import Attacker, attack, attacks
from websockets.exceptions import InvalidStatus
from wire_client import connect_to, cookie_of
from xml_bombs import GOOD


def no_key(them: Attacker, headers: dict) -> None:
    answer = them.http("GET", "/", **{"Cookie": None, **headers})
    assert answer.status_code == 403
    assert "link" in answer.text


attacks(
    "no cookie, or another",
    no_key,
    {},
    {"Cookie": "mechanik_1=abc"},
    {"Cookie": "mechanik_{port}="},
    {"Cookie": "=;;;==\x01; mechanik"},
    {"Cookie": "a" * 6000},
)


def wrong_token(them: Attacker, query: str) -> None:
    answer = them.http("GET", f"/?{query.format(token=them.server.access.token)}", Cookie=None)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


attacks(
    "wrong token",
    wrong_token,
    "token=",
    "token=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "token={token}x",
    "token={token}&token={token}",
    "token=%00%FF%C3%28",
    "&".join(f"t{k}=1" for k in range(100)) + "&token={token}",
)


@attack("the token on another address does not let in")
def _(them):
    for path in ("/assets/index-1a2b.js", "/ws", "/upload/x", "/mesh/x/1"):
        assert them.http("GET", f"{path}?token={them.server.access.token}", Cookie=None).status_code == 403


def other_host(them: Attacker, host: str) -> None:
    assert them.http("GET", "/", Host=host).status_code == 403
    assert them.http("GET", f"/?token={them.server.access.token}", Host=host, Cookie=None).status_code == 403


attacks(
    "another Host",
    other_host,
    "evil.example",
    "evil.example:80",
    "127.0.0.1",
    "127.0.0.1:1",
    "127.0.0.1.evil.example:1",
)


@attack("no Host at all")
def _(them):
    answer = them.raw(f"GET / HTTP/1.0\r\nCookie: {cookie_of(them.server)}\r\n\r\n".encode())
    assert answer.split(b" ")[1] in (b"400", b"403")


def other_poster(them: Attacker, origin: str | None) -> None:
    key = them.key
    answer = them.http("POST", f"/upload/{key}?name=a.urdf", content=GOOD, Origin=origin)
    assert answer.status_code == 403


OTHERS = (None, "null", "http://evil.example", "https://127.0.0.1", "http://127.0.0.1:1", "file://")
attacks("a file from a page elsewhere", other_poster, *OTHERS)


def other_page(them: Attacker, options: dict) -> None:
    with pytest.raises(InvalidStatus) as error:
        connect_to(them.server, **options)
    assert error.value.response.status_code == 403


attacks(
    "a websocket from a page elsewhere",
    other_page,
    *({"origin": origin} for origin in OTHERS),
    {"cookie": None},
    {"cookie": "mechanik_1=x"},
)


def wrong_method(them: Attacker, method: str) -> None:
    assert them.http(method, "/").status_code == 405


attacks("wrong method", wrong_method, "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "FETCH", "POST")

# ---- addresses ------------------------------------------------------------------------------------------


def wrong_address(them: Attacker, path: str) -> None:
    host = them.own.removeprefix("http://")
    head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie_of(them.server)}\r\nConnection: close\r\n\r\n"
    answer = them.raw(head.encode("latin-1"))
    assert answer.split(b" ")[1] in (b"400", b"403", b"404")
    for secret in (b"root:", b"not for browsers", b"index-1a2b"):
        assert secret not in answer


attacks(
    "address",
    wrong_address,
    "/../../../../etc/passwd",
    "/assets/../secret.txt",
    "/assets/..%2f..%2f..%2fetc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/assets\\..\\secret.txt",
    "//etc/passwd",
    "/assets/%00",
    "/assets/index-1a2b.js%00.png",
    "/assets/",
    "/secret.txt",
    "/pictures/../page/index.html",
    "/pictures/",
    "/mesh/x/1",
    "/mesh/x/-1",
    "/mesh/x/99999999999999999999999",
    "/download/x/../../etc/passwd",
    "/upload/x",
    "/ws",
    "http://evil.example/",
    "/" + "a" * 20_000,
    "/\xff\xfe",
)


@attack("meshes and files that are not there, in a session that is")
def _(them):
    key = them.key
    for path in ("mesh/{}/0", "mesh/{}/99999999", "download/{}/..", "download/{}/%2fetc%2fpasswd", "download/{}/x"):
        answer = them.http("GET", "/" + path.format(key))
        assert answer.status_code == 404


def garbage(them: Attacker, data: bytes) -> None:
    answer = them.raw(data)
    assert answer == b"" or answer.split(b" ")[1] in (b"400", b"403", b"431")


attacks(
    "no HTTP",
    garbage,
    b"\x00" * 1000,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nzzz",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * 200_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"".join(b"X%d: a\r\n" % k for k in range(20_000)) + b"\r\n",
)
