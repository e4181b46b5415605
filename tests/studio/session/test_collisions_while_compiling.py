"""What bumps is looked for when the kernels for it are compiled: in plain Python it would slow the solver down."""

from __future__ import annotations

from session_desk import Desk

from mechanik.studio.messages.events import ContactsChanged
from mechanik.studio.session import collision_monitor as lookout


def test_collision_check_waits_for_the_compiler_and_says_so(monkeypatch):
    compiling = ["distance.collision_query"]
    monkeypatch.setattr(lookout, "is_compiling", lambda name: name in compiling)
    with Desk("panda") as desk:
        desk.wait(lambda: any(event.reason == lookout.KERNELS_COMPILING for event in desk.all(ContactsChanged)))
        assert not desk.session.collision_monitor.wait(0.05), "nothing was looked at"
        compiling.clear()
        desk.wait(lambda: desk.last(ContactsChanged).reason == "")
        assert desk.session.collision_monitor.wait(60.0)


def test_session_that_is_closed_does_not_wait_for_the_compiler(monkeypatch):
    monkeypatch.setattr(lookout, "is_compiling", lambda name: True)
    with Desk("panda") as desk:
        desk.wait(lambda: bool(desk.all(ContactsChanged)))
        thread = desk.session.collision_monitor._thread
    thread.join(60.0)
    assert not thread.is_alive()
