"""Collision checks wait for compiled kernels, since plain Python would slow the solver down."""

from __future__ import annotations

from session_harness import SessionHarness

from mechanik.studio.messages.events import ContactsChanged
from mechanik.studio.session import collision_monitor as lookout


def test_collision_check_waits_for_the_compiler_and_says_so(monkeypatch):
    compiling = ["distance.collision_query"]
    monkeypatch.setattr(lookout, "is_compiling", lambda name: name in compiling)
    with SessionHarness("panda") as harness:
        harness.wait(lambda: any(event.reason == lookout.KERNELS_COMPILING for event in harness.all(ContactsChanged)))
        assert not harness.session.collision_monitor.wait(0.05), "nothing was looked at"
        compiling.clear()
        harness.wait(lambda: harness.last(ContactsChanged).reason == "")
        assert harness.session.collision_monitor.wait(60.0)


def test_session_that_is_closed_does_not_wait_for_the_compiler(monkeypatch):
    monkeypatch.setattr(lookout, "is_compiling", lambda name: True)
    with SessionHarness("panda") as harness:
        harness.wait(lambda: bool(harness.all(ContactsChanged)))
        thread = harness.session.collision_monitor._thread
    thread.join(60.0)
    assert not thread.is_alive()
