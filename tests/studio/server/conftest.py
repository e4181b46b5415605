"""Real servers on free ports, with a page of a few bytes instead of the built one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from wire_client import LARGEST_UPLOAD, PATIENCE, WireClient, cookie_of

import mechanik as mk
from mechanik.studio.server.server import Server, serve
from mechanik.studio.server.server_limits import ServerLimits

pytest.register_assert_rewrite(
    "attacks", "attacks_by_file", "attacks_by_flood", "attacks_by_mesh", "attacks_by_message", "attacks_by_origin"
)


@pytest.fixture(scope="session")
def page(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    (folder / "assets").mkdir()
    (folder / "index.html").write_text("<!doctype html><title>studio</title>")
    (folder / "assets" / "index-1a2b.js").write_text("export {};")
    (folder / "icon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (folder / "secret.txt").write_text("not for browsers")
    return folder


@pytest.fixture(scope="module")
def server(page) -> Iterator[Server]:
    running = serve(mk.gallery.planar_3r(), port=0, page=page, limits=ServerLimits(max_upload_bytes=LARGEST_UPLOAD))
    yield running
    running.close()
    assert not running.is_running


@pytest.fixture
def client(server) -> Iterator[WireClient]:
    with WireClient(server) as client:
        yield client


@pytest.fixture
def web(server) -> Iterator[httpx.Client]:
    """HTTP as a page of the server speaks it."""
    headers = {"Cookie": cookie_of(server), "Origin": server.address.rstrip("/")}
    with httpx.Client(base_url=server.address, headers=headers, timeout=PATIENCE) as web:
        yield web
