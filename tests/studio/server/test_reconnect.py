"""A page whose connection was lost finds its session again, if it is not too late."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from wire_client import PATIENCE, WireClient, connect_to

import mechanik as mk
from mechanik.errors import InvalidOperation
from mechanik.studio.server.server import serve
from mechanik.studio.server.server_limits import ServerLimits

GOES_AWAY = 1001
"""What browsers say for a page that is closed, left, or loaded again."""


def wait_until(holds) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def let_time_pass() -> None:
    """Until the clock has gone on, so that there may be new sessions: it may stand still for tens of milliseconds."""
    begun = time.monotonic()
    wait_until(lambda: time.monotonic() > begun + 0.02)


def moved(client: WireClient) -> str:
    """Set something up that only this session has; returns its key."""
    client.wait(lambda: client.frame is not None)
    assert client.ask("SetDofValue", dof=0, value=0.123)["is"] == "RequestDone"
    return client.wait_for("Welcome")["session"]


def first_value(client: WireClient) -> float:
    return float(client.wait(lambda: client.frame is not None and client.frame).values[0])


def test_a_page_that_lost_its_connection_comes_back_to_what_it_had(server):
    lost = WireClient(server)
    key = moved(lost)
    lost.break_off()
    until = time.monotonic() + PATIENCE
    while True:  # the server notices when it notices
        with WireClient(server, session=key) as back:
            if back.wait_for("Welcome")["session"] == key:
                assert first_value(back) == pytest.approx(0.123)
                assert back.wait_for("History")["undo"], "with what can be undone"
                return
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_page_that_says_farewell_leaves_nothing_behind(server):
    with WireClient(server) as gone:
        key = moved(gone)
    with WireClient(server, session=key) as later_client:
        assert later_client.wait_for("Welcome")["session"] != key
        assert not np.isclose(first_value(later_client), 0.123)


def test_reloaded_page_gets_its_session_again(server):
    with WireClient(server) as client:
        key = moved(client)
        client.socket.close(GOES_AWAY)
    with WireClient(server, session=key) as back:
        assert back.wait_for("Welcome")["session"] == key
        assert first_value(back) == pytest.approx(0.123)


def test_of_a_full_studio_the_session_ends_whose_page_has_gone_and_the_next_page_is_let_in(page):
    server = serve(
        mk.gallery.planar_3r(), port=0, page=page, limits=ServerLimits(max_sessions=2, new_sessions_per_second=1000.0)
    )
    try:
        with WireClient(server) as gone, WireClient(server) as also_gone:
            first, second = moved(gone), moved(also_gone)
            gone.socket.close(GOES_AWAY)
            wait_until(lambda: server.pool.find(first) is None)
            also_gone.socket.close(GOES_AWAY)
            wait_until(lambda: server.pool.find(second) is None)
        let_time_pass()
        with WireClient(server) as other_client:
            other_client.wait_for("Model")
            let_time_pass()
            with WireClient(server, session=second) as back:
                assert back.wait_for("Welcome")["session"] == second, "a page that comes back needs no place more"
                assert len(server.pool) == 2
                with connect_to(server) as late:
                    assert "full" in json.loads(late.recv(PATIENCE))["message"]
    finally:
        server.close()


def test_session_of_an_open_page_is_not_given_to_another_page(server):
    with WireClient(server) as client:
        key = moved(client)
        with WireClient(server, session=key) as other_client:
            assert other_client.wait_for("Welcome")["session"] != key


def test_session_without_a_page_ends(page):
    limits = ServerLimits(max_sessions=1, reconnect_seconds=0.2)
    server = serve(mk.gallery.planar_3r(), port=0, page=page, limits=limits)
    try:
        lost = WireClient(server)
        key = moved(lost)
        lost.break_off()
        until = time.monotonic() + PATIENCE
        while True:
            try:
                server.pool.reserve()
                break
            except InvalidOperation:
                assert time.monotonic() < until
                time.sleep(0.05)
        assert server.pool.resume(key) is None
        host = server.pool.open_session()
        assert host.key != key
        server.pool.release(host)
    finally:
        server.close()
