"""Who has the link comes in, by a cookie that stays with the browser; answers carry the headers of safety."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

import httpx
import pytest
from wire_client import PATIENCE, connect_to, fetch

from mechanik.errors import FileMissing, StudioError
from mechanik.studio.server import access_control as peers
from mechanik.studio.server.access_control import CODE_SECONDS, AccessKeys
from mechanik.studio.server.http_app import load_page_files
from mechanik.studio.server.server import is_loopback, serve


def test_the_link_becomes_a_cookie_and_an_address_without_the_key(server):
    with httpx.Client(timeout=PATIENCE) as browser:
        answer = browser.get(server.link)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith(f"mechanik_{server.port}=")
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert server.access.token not in answer.text
        page = browser.get(server.address)
        assert page.status_code == 200
        assert page.text.startswith("<!doctype html>")
        assert server.access.token not in page.text


def test_a_link_on_a_page_of_another_site_leads_in_by_a_page_of_our_own(server):
    """A browser does not send our cookie along while the other site's page is what asks."""
    answer = fetch(server.link, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200
    assert 'http-equiv="refresh" content="0; url=/"' in answer.text
    assert "SameSite=Strict" in answer.headers["set-cookie"]
    assert server.access.token not in answer.text
    assert fetch(server.address, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403


def test_every_answer_has_the_headers_of_safety(server, web):
    answers = [web.get("/"), web.get("/nothing"), web.put("/"), fetch(server.address), fetch(server.link)]
    assert [answer.status_code for answer in answers] == [200, 404, 405, 403, 303]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'self'" in policy
        assert "unsafe" not in policy
        assert f"ws://127.0.0.1:{server.port}" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "cache-control" in answer.headers
        assert "server" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers


def test_files_come_from_the_table_with_their_kind(web):
    script = web.get("/assets/index-1a2b.js")
    assert script.text == "export {};"
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in script.headers["cache-control"]
    assert web.get("/favicon.ico").headers["content-type"] == "image/svg+xml"
    assert web.head("/").status_code == 200
    assert web.head("/").text == ""


def test_the_table_holds_what_browsers_need_and_nothing_else(page):
    table = load_page_files(page)
    assert "/secret.txt" not in table
    assert {"/", "/icon.svg", "/favicon.ico", "/assets/index-1a2b.js"} <= set(table)


def test_message_on_a_page_that_is_not_built_says_what_to_do(tmp_path):
    with pytest.raises(FileMissing, match="make page"):
        serve(port=0, page=tmp_path)


def test_used_port_is_refused_and_the_default_is_the_next_free_port(server, page):
    with pytest.raises(StudioError, match=f"port {server.port} is in use"):
        serve(port=server.port, page=page)
    with pytest.raises(StudioError, match="65535"):
        serve(port=70_000, page=page)
    with pytest.raises(StudioError, match="Choose an address of this machine"):
        serve(host="203.0.113.1", port=0, page=page)
    first = serve(page=page)
    second = serve(page=page)
    try:
        assert first.port != second.port
        assert fetch(second.link).status_code == 303
    finally:
        first.close()
        second.close()


def test_the_key_of_one_server_does_not_open_another(server, page):
    other_server = serve(port=0, page=page)
    try:
        assert fetch(other_server.address, params={"token": server.access.token}).status_code == 403
        assert fetch(other_server.link).status_code == 303
    finally:
        other_server.close()


def test_localhost_is_another_name_of_the_server(server, web):
    host = f"localhost:{server.port}"
    assert web.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("name", ["192.168.1.5:8000", "[fe80::1]:8000", "127.0.0.1:8000", "localhost:8000"])
def test_a_server_for_all_addresses_is_known_by_numbers(name):
    assert AccessKeys("0.0.0.0", 8000).is_own_host({"host": name})


@pytest.mark.parametrize("name", ["evil.example:8000", "192.168.1.5:80", "192.168.1.5", "", "[:8000", "1.2.3:8000"])
def test_a_server_for_all_addresses_is_not_known_by_names_that_may_point_anywhere(name):
    assert not AccessKeys("0.0.0.0", 8000).is_own_host({"host": name})


def test_loopback_addresses_are_recognized():
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "192.168.1.5", "example.org", ""))


def test_only_permitted_notebooks_may_embed_the_studio(server, web):
    assert web.get("/").headers["content-security-policy"].endswith("frame-ancestors 'self'")
    server.access.frame_ancestors = ("http://localhost:*",)
    try:
        assert web.get("/").headers["content-security-policy"].endswith("frame-ancestors 'self' http://localhost:*")
    finally:
        server.access.frame_ancestors = ()


def test_the_token_is_new_each_time_and_long():
    tokens = {AccessKeys("127.0.0.1", 8000).token for _ in range(20)}
    assert len(tokens) == 20
    assert all(re.fullmatch(r"[\w-]{32}", token) for token in tokens)


def test_a_websocket_of_a_page_is_accepted(server):
    connect_to(server).close()


def test_an_address_for_the_browser_lets_in_one_and_once(server):
    address = f"{server.address}?once={server.access.new_one_time_code()}"
    assert httpx.head(address, timeout=PATIENCE).status_code == 403  # who only looks does not spend it
    with httpx.Client(timeout=PATIENCE) as browser:
        answer = browser.get(address)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert browser.get(server.address).status_code == 200
        assert browser.get(address).status_code == 200  # gone back to: it has its cookie
    late = fetch(address)
    assert late.status_code == 403
    assert "works once" in late.text
    assert "set-cookie" not in late.headers


def test_an_address_for_the_browser_is_of_no_use_after_a_while():
    now = 100.0
    access = AccessKeys("127.0.0.1", 8000, lambda: now)
    codes = [f"once={access.new_one_time_code()}" for _ in range(3)]
    assert access.redeem_code(codes[0])
    now += CODE_SECONDS
    assert not access.redeem_code(codes[1])
    access.new_one_time_code()
    assert len(access._codes) == 1  # those that nobody came with are not kept


@pytest.mark.parametrize("query", ["", "once=", "once=abc", "once={0}&once={0}", "token={0}"])
def test_no_other_words_spend_a_code(query):
    access = AccessKeys("127.0.0.1", 8000)
    code = access.new_one_time_code()
    assert not access.redeem_code(query.format(code))
    assert access.redeem_code(f"once={code}")


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="this system does not tell whose a connection is")
def test_another_user_of_this_machine_does_not_come_in_by_an_address_that_was_made_for_the_browser(server, monkeypatch):
    address = f"{server.address}?once={server.access.new_one_time_code()}"
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: 12345)
        patch.setattr(peers, "ROOT_UID", -1)  # tests may be run by root
        answer = fetch(address)
        assert answer.status_code == 403
        assert "another user" in answer.text
    assert fetch(address).status_code == 303


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="this system does not tell whose a connection is")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_connection_inside_this_machine_is_known_as_our_own(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as server, socket.socket(family) as client:
        try:
            server.bind((host, 0))
        except OSError:
            pytest.skip("no such address here")
        server.listen()
        client.connect(server.getsockname())
        ends = client.getsockname()[:2], server.getsockname()[:2]
        assert peers.peer_uid(*ends) == os.getuid()
        assert not peers.is_other_user(*ends)
    assert peers.peer_uid(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
    assert not peers.is_other_user(None, None)
    assert not peers.is_other_user(("localhost", "x"), ("?", 1))


def test_at_port_80_an_address_without_a_port_is_accepted():
    """Browsers omit port 80; once every address of a server on 0.0.0.0 was rejected there."""
    access = AccessKeys("0.0.0.0", 80)
    for host in ("192.168.1.5", "192.168.1.5:80", "[fe80::1]", "[fe80::1]:80"):
        assert access.is_own_host({"host": host})
    for host in ("192.168.1.5:81", "example.com", "example.com:80", ""):
        assert not access.is_own_host({"host": host})
    assert not AccessKeys("0.0.0.0", 8000).is_own_host({"host": "192.168.1.5"})
