"""Who has the link comes in, by a cookie that stays with the browser; answers carry the headers of safety."""

from __future__ import annotations

import re

import httpx
import pytest
from wire_client import connect_to

from mechanik.errors import CannotServe, FileMissing
from mechanik.studio.server.access import Access
from mechanik.studio.server.page_files import page_files
from mechanik.studio.server.serve import is_loopback, serve


def test_the_link_becomes_a_cookie_and_an_address_without_the_key(server):
    with httpx.Client() as browser:
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


def test_every_answer_has_the_headers_of_safety(server, web):
    answers = [web.get("/"), web.get("/nothing"), web.put("/"), httpx.get(server.address), httpx.get(server.link)]
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
    table = page_files(page)
    assert "/secret.txt" not in table
    assert {"/", "/icon.svg", "/favicon.ico", "/assets/index-1a2b.js"} <= set(table)


def test_a_page_that_was_not_built_is_said_so_with_what_to_do(tmp_path):
    with pytest.raises(FileMissing, match="make page"):
        serve(port=0, page=tmp_path)


def test_a_port_that_is_in_use_is_said_so_and_another_is_found_when_none_was_asked_for(server, page):
    with pytest.raises(CannotServe, match=f"port {server.port} is in use"):
        serve(port=server.port, page=page)
    with pytest.raises(CannotServe, match="65535"):
        serve(port=70_000, page=page)
    with pytest.raises(CannotServe, match="no address of this machine"):
        serve(host="203.0.113.1", port=0, page=page)
    one = serve(page=page)
    other = serve(page=page)
    try:
        assert one.port != other.port
        assert httpx.get(other.link).status_code == 303
    finally:
        one.close()
        other.close()


def test_the_key_of_one_server_does_not_open_another(server, page):
    other = serve(port=0, page=page)
    try:
        assert httpx.get(other.address, params={"token": server.access.token}).status_code == 403
        assert httpx.get(other.link).status_code == 303
    finally:
        other.close()


def test_localhost_is_another_name_of_the_server(server, web):
    host = f"localhost:{server.port}"
    assert web.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("name", ["192.168.1.5:8000", "[fe80::1]:8000", "127.0.0.1:8000", "localhost:8000"])
def test_a_server_for_all_addresses_is_known_by_numbers(name):
    assert Access("0.0.0.0", 8000).knows_host({"host": name})


@pytest.mark.parametrize("name", ["evil.example:8000", "192.168.1.5:80", "192.168.1.5", "", "[:8000", "1.2.3:8000"])
def test_a_server_for_all_addresses_is_not_known_by_names_that_may_point_anywhere(name):
    assert not Access("0.0.0.0", 8000).knows_host({"host": name})


def test_loopback_is_told_from_the_rest():
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "192.168.1.5", "example.org", ""))


def test_notebooks_may_show_the_studio_only_when_they_were_asked_for(server, web):
    assert web.get("/").headers["content-security-policy"].endswith("frame-ancestors 'self'")
    server.access.frames = ("http://localhost:*",)
    try:
        assert web.get("/").headers["content-security-policy"].endswith("frame-ancestors 'self' http://localhost:*")
    finally:
        server.access.frames = ()


def test_the_token_is_new_each_time_and_long():
    tokens = {Access("127.0.0.1", 8000).token for _ in range(20)}
    assert len(tokens) == 20
    assert all(re.fullmatch(r"[\w-]{32}", token) for token in tokens)


def test_a_websocket_of_a_page_is_accepted(server):
    connect_to(server).close()
