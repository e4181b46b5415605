"""What one client does or sends along takes nothing from others, and nothing from itself."""

from __future__ import annotations

import http.client
import io
import socket
import threading
import time
import zipfile

import httpx
import numpy as np
import pytest
from own_loop import run
from websockets.sync.client import connect
from wire_client import PATIENCE, WireClient, cookie_of, fetch

import mechanik as mk
from mechanik.errors import InvalidOperation
from mechanik.studio.messages.requests import ShowAlternatives
from mechanik.studio.server.http_transport import OpenSockets
from mechanik.studio.server.server import serve
from mechanik.studio.server.server_limits import ServerLimits
from mechanik.studio.server.session_host import Outbox
from mechanik.studio.server.session_pool import SessionPool
from mechanik.studio.session import background_solvers as ghosts
from mechanik.studio.session.session import Session

URDF = """<robot name="two"><link name="base">{}</link><link name="arm"/>
<joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint></robot>"""
MESH = '<visual><geometry><mesh filename="base.stl"/></geometry></visual>'


@pytest.mark.parametrize(
    "other_cookie", ['theme={"dark":true}', "a=b c@d", "=", "x", "käse=1".encode().decode("latin-1"), ";;"]
)
def test_cookies_of_other_servers_do_not_hide_ours_however_they_are_written(server, other_cookie):
    """Browsers send the cookies of all ports of a machine, and a reader of the standard kind stops at an odd one."""
    for cookies in (f"{other_cookie}; {cookie_of(server)}", f"{cookie_of(server)}; {other_cookie}"):
        answer = fetch(server.address, headers={"Cookie": cookies.encode("latin-1")})
        assert answer.status_code == 200
    assert fetch(server.address, headers={"Cookie": other_cookie.encode("latin-1")}).status_code == 403


def test_no_header_says_who_a_client_is(server, monkeypatch):
    """One that named another address was not found when it had to be cut."""
    seen = []
    monkeypatch.setattr(OpenSockets, "abort", lambda _, client: seen.append(tuple(client)))
    monkeypatch.setattr("mechanik.studio.server.connection._Connection.run", _out_of_time)
    headers = {"Cookie": cookie_of(server), "X-Forwarded-For": "10.1.2.3"}
    page_socket = socket.create_connection(("127.0.0.1", server.port))
    own = page_socket.getsockname()  # now, since the server may close the connection at once
    url = f"ws://127.0.0.1:{server.port}/ws"
    with connect(url, sock=page_socket, origin=server.address[:-1], additional_headers=headers):
        until = time.monotonic() + PATIENCE
        while not seen and time.monotonic() < until:
            time.sleep(0.01)
    assert seen == [own]


async def _out_of_time(*_):
    raise TimeoutError


class Transport:
    """What a socket of a client shows of itself."""

    def __init__(self, *peername) -> None:
        self.peername, self.is_cut = peername, False

    def get_extra_info(self, _):
        return self.peername

    def abort(self):
        self.is_cut = True


@pytest.mark.parametrize("peername", [("127.0.0.1", 5000), ("::1", 5000, 0, 0)])
def test_a_client_is_found_by_host_and_port_in_both_protocols(peername):
    first, second = Transport(*peername), Transport(peername[0], 5001, *peername[2:])
    sockets = OpenSockets(ServerLimits())
    assert sockets.add(first)
    assert sockets.add(second)
    sockets.abort(peername[:2])
    assert first.is_cut
    assert not second.is_cut


def test_events_that_nobody_takes_are_bounded_by_their_length_and_a_long_one_alone_is_taken():
    async def main():
        outbox = Outbox(max_events=100, max_characters=1000)
        outbox.put_event("m" * 5000)
        assert not outbox.is_full
        assert len((await outbox.take_all())[0]) == 5000
        outbox.put_event("m" * 600)
        outbox.put_event("m" * 600)
        assert outbox.is_full

    run(main)


def test_session_uploads_one_file_at_a_time_and_does_not_block_other_sessions(server):
    own = {"Cookie": cookie_of(server), "Origin": server.address[:-1]}
    with WireClient(server) as slow, WireClient(server) as other_client:
        path = f"/upload/{slow.welcome['session']}?name=a.urdf"
        waits = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        waits.putrequest("POST", path)
        for name, value in {**own, "Content-Length": "1000"}.items():
            waits.putheader(name, value)
        waits.endheaders(b"<robot")
        answers, place = [], server.address[:-1] + path
        until = time.monotonic() + PATIENCE
        while 409 not in answers and time.monotonic() < until:
            answers.append(httpx.post(place, content=b"{", headers=own, timeout=PATIENCE).status_code)
        assert answers[-1] == 409
        place = f"{server.address}upload/{other_client.welcome['session']}?name=a.urdf"
        good = httpx.post(place, content=URDF.format("").encode(), headers=own, timeout=PATIENCE)
        assert good.status_code == 200
        waits.close()


def zipped(size: int) -> bytes:
    """An arm with a mesh of so many bytes, which do not pack."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as packed:
        packed.writestr("arm.urdf", URDF.format(MESH))
        packed.writestr("base.stl", np.random.default_rng(0).bytes(size))
    return data.getvalue()


def test_meshes_of_all_sessions_share_one_limit(page):
    server = serve(mk.gallery.planar_3r(), port=0, page=page, limits=ServerLimits(max_stored_bytes=10_000))
    own = {"Cookie": cookie_of(server), "Origin": server.address[:-1]}

    def send(client: WireClient, size: int) -> httpx.Response:
        place = f"{server.address}upload/{client.welcome['session']}?name=arm.zip"
        return httpx.post(place, content=zipped(size), headers=own, timeout=PATIENCE)

    try:
        with WireClient(server) as other_client:
            with WireClient(server) as new_client:
                assert send(new_client, 7_000).status_code == 200
                assert send(new_client, 8_000).status_code == 200, "it replaces the meshes before"
                assert send(other_client, 4_000).status_code == 422
                assert "close other pages" in send(other_client, 4_000).text
            until = time.monotonic() + PATIENCE
            while (answer := send(other_client, 4_000)).status_code != 200 and time.monotonic() < until:
                time.sleep(0.05)
            assert answer.status_code == 200
    finally:
        server.close()


def test_slot_is_free_when_all_work_of_its_session_has_ended(monkeypatch):
    """Searches went on after their sessions, as many as somebody cared to begin."""
    begun, may_end = threading.Event(), threading.Event()
    monkeypatch.setattr(ghosts, "_find_alternatives", lambda _: begun.set() or may_end.wait(PATIENCE))

    def make(tell, show, key):
        session = Session(tell, show, key=key)
        session.open(mk.gallery.planar_3r())
        return session

    pool = SessionPool(make, ServerLimits(max_sessions=1))
    pool.reserve()
    host = pool.open_session()
    host.submit_call(lambda session: session.handle_request(ShowAlternatives(3))).result(PATIENCE)
    assert begun.wait(PATIENCE)
    pool.release(host)
    for _ in range(3):
        with pytest.raises(InvalidOperation, match="full"):
            pool.reserve()
        time.sleep(0.02)
    may_end.set()
    until = time.monotonic() + PATIENCE
    while pool._reserved_slot_count and time.monotonic() < until:
        time.sleep(0.01)
    assert not pool._reserved_slot_count


def test_scene_that_fails_in_is_animated_does_not_end_its_session(server, monkeypatch, caplog):
    with WireClient(server) as client:
        client.wait_for("Model")
        monkeypatch.setattr(Session, "is_animated", property(lambda _: 1 / 0))
        client.wait(lambda: "ZeroDivisionError" in caplog.text)
        assert client.ask("EndDrag")["is"] == "RequestDone"


def test_lone_surrogate_is_refused_with_its_field(client):
    answer = client.ask("EditModel", kind="json", text='{"name": "\ud800"}')
    assert answer["is"] == "RequestRefused"
    assert "EditModel.text contains half" in answer["message"]
