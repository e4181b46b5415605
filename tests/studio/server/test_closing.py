"""A server that is closed leaves nothing behind, whoever is just coming or going."""

from __future__ import annotations

import threading
import time

import pytest
from wire_client import PATIENCE

import mechanik as mk
from mechanik.errors import InvalidOperation, UnknownName
from mechanik.studio.server import http_app as reading
from mechanik.studio.server import server as serving
from mechanik.studio.server.server_limits import ServerLimits
from mechanik.studio.server.session_pool import SessionPool
from mechanik.studio.session.session import Session


def make(tell, show, key):
    session = Session(tell, show, key=key)
    session.open(mk.gallery.planar_3r())
    return session


def test_a_page_that_comes_while_the_studio_is_closed_leaves_no_session_behind():
    made, begun, may_go_on, refused = [], threading.Event(), threading.Event(), []

    def slowly(tell, show, key):
        begun.set()
        may_go_on.wait(PATIENCE)
        made.append(make(tell, show, key))
        return made[0]

    pool = SessionPool(slowly, ServerLimits())

    def come():
        pool.reserve()
        with pytest.raises(InvalidOperation, match="closed") as error:
            pool.open_session()
        refused.append(error)

    coming = threading.Thread(target=come)
    coming.start()
    assert begun.wait(PATIENCE)
    pool.close()
    may_go_on.set()
    coming.join(PATIENCE)
    assert refused
    assert len(pool) == 0
    (session,) = made
    until = time.monotonic() + PATIENCE
    while not (session.is_closed and not session.live.running):  # its thread does that
        assert time.monotonic() < until
        time.sleep(0.005)


def test_a_page_that_is_lost_after_the_studio_was_closed_is_not_waited_for():
    pool = SessionPool(make, ServerLimits())
    pool.reserve()
    host = pool.open_session()
    pool.close()
    pool.release(host, reconnect_seconds=60.0)
    assert not pool._sessions_without_page


def test_a_session_that_cannot_begin_is_closed(monkeypatch):
    made = []

    class Watched(Session):
        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            made.append(self)

    monkeypatch.setattr(serving, "Session", Watched)
    begin = serving._session_factory(("scene", "nothing of that name"))
    with pytest.raises(UnknownName):
        begin(lambda event: None, lambda frame: None, "key")
    assert made[0].is_closed


def test_the_solvers_are_read_once_however_many_ask(monkeypatch):
    read, one_by_one = [], reading._read_method_info

    def counted(name, place, common):
        read.append(name)
        return one_by_one(name, place, common)

    monkeypatch.setattr(reading, "_read_method_info", counted)
    reading._read_method_infos.cache_clear()
    asking = [threading.Thread(target=reading.method_infos) for _ in range(8)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(PATIENCE)
    assert sorted(read) == sorted(mk.METHODS)


def test_a_shared_session_that_cannot_be_opened_leaves_no_thread_behind():
    """Once each attempt to serve an unknown mechanism left a thread that watched the kernels."""

    def fail(tell, show, key):
        raise UnknownName("gallery mechanism", "nope", ["ur5"])

    before = {thread.ident for thread in threading.enumerate()}
    with pytest.raises(UnknownName):
        SessionPool(fail, ServerLimits(), is_shared=True)
    deadline = time.monotonic() + PATIENCE
    while {thread.ident for thread in threading.enumerate()} - before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not {thread.ident for thread in threading.enumerate()} - before
