"""A page whose browser has lost the cookie gets it again by the return key of its session, and nobody else does."""

from __future__ import annotations

import time

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from wire_client import PATIENCE, WireClient, connect_to, cookie_of

from mechanik.studio.server.access_control import AccessKeys


def come_back(server, key: str | None, **headers: str | None) -> httpx.Response:
    """Request the cookie as the page does; `headers` replace the headers of the page."""
    values = {
        "Origin": server.address.rstrip("/"),
        "Authorization": None if key is None else f"Bearer {key}",
        **headers,
    }
    given = {name: value for name, value in values.items() if value is not None}
    return httpx.post(f"{server.address}return", headers=given, timeout=PATIENCE)


def key_of(client: WireClient) -> str:
    return client.wait_for("Welcome")["return_key"]


def test_the_return_key_brings_the_cookie_back(server, client):
    answer = come_back(server, key_of(client))
    assert (answer.status_code, answer.content) == (204, b"")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(cookie_of(server))
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert come_back(server, key_of(client)).status_code == 204  # an answer may be lost on the way


def test_a_page_without_a_cookie_comes_back_to_its_session(server):
    with WireClient(server) as client:
        session, key = client.wait_for("Welcome")["session"], key_of(client)
        client.break_off()
    with pytest.raises(InvalidStatus):
        connect_to(server, cookie=None, session=session)
    cookie = come_back(server, key).headers["set-cookie"].partition(";")[0]
    with WireClient(server, cookie=cookie, session=session) as back:
        assert back.wait_for("Welcome")["session"] == session
        assert key_of(back) != key


def test_each_page_has_a_return_key_of_its_own_which_is_not_the_token(server, client):
    with WireClient(server) as other_client:
        assert len({key_of(client), key_of(other_client), server.access.token}) == 3
    assert httpx.get(server.address, params={"token": key_of(client)}, timeout=PATIENCE).status_code == 403
    cookie = {"Cookie": f"mechanik_{server.port}={key_of(client)}"}
    assert httpx.get(server.address, headers=cookie, timeout=PATIENCE).status_code == 403


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://127.0.0.1:1", "https://127.0.0.1"])
def test_a_page_of_another_site_does_not_come_back(server, client, origin):
    answer = come_back(server, key_of(client), Origin=origin)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:1", "evil.example:{port}"])
def test_a_name_that_only_points_here_does_not_come_back(server, client, host):
    name = host.format(port=server.port)
    answer = come_back(server, key_of(client), Host=name, Origin=f"http://{name}")
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer x", "{key}", "Basic {key}", "Bearer {key}x", "Bearer {token}"]
)
def test_nobody_comes_back_without_the_key(server, client, header):
    given = None if header is None else header.format(key=key_of(client), token=server.access.token)
    answer = come_back(server, None, Authorization=given)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_the_key_is_taken_at_its_own_address_and_by_post_alone(server, client):
    headers = {"Authorization": f"Bearer {key_of(client)}", "Origin": server.address.rstrip("/")}
    for method, path in (("GET", "return"), ("PUT", "return"), ("GET", ""), ("POST", "upload/x"), ("POST", "return/")):
        answer = httpx.request(method, f"{server.address}{path}", headers=headers, timeout=PATIENCE)
        assert answer.status_code == 403, (method, path)
        assert "set-cookie" not in answer.headers


def test_a_return_key_lives_as_long_as_its_page_and_a_little_longer():
    now = 100.0
    access = AccessKeys("127.0.0.1", 8000, lambda: now)
    stays, goes = access.new_return_key(), access.new_return_key()
    headers = [{"authorization": f"Bearer {key}"} for key in (stays, goes)]
    access.expire_return_key(goes, 60.0)
    now += 59.0
    assert [access.has_return_key(values) for values in headers] == [True, True]
    now += 2.0
    assert [access.has_return_key(values) for values in headers] == [True, False]
    access.new_return_key()
    assert len(access._return_keys) == 2  # those of pages that are gone are not kept


def test_page_that_closes_normally_leaves_no_key(server):
    with WireClient(server) as client:
        key = key_of(client)
    until = time.monotonic() + PATIENCE
    while come_back(server, key).status_code != 403:  # the server may still be busy with the farewell
        assert time.monotonic() < until
