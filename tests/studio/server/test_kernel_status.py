"""Pages are told while kernels are being compiled, and when they are not."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from kernel_doubles import KernelDouble, replace_states
from wire_client import PATIENCE, WireClient

import mechanik as mk
from mechanik.studio.messages.events import Event, Kernels
from mechanik.studio.server import session_pool as kernel_watch
from mechanik.studio.server.server import Server, serve
from mechanik.studio.server.session_pool import RECOMPILE_ADVICE, STUDIO_KERNELS, KernelMonitor, kernel_event
from mechanik.tiers import KERNEL_MODULES, KernelState, Tier

NUMBA = "compiling kernels needs Numba: pip install 'mechanik[jit]'"


@pytest.fixture
def double(monkeypatch) -> KernelDouble:
    monkeypatch.setattr(kernel_watch, "POLL_SECONDS", 0.02)
    return replace_states(monkeypatch)


@pytest.fixture
def server(double, page) -> Iterator[Server]:
    double.compiling(ready=1)
    running = serve(mk.gallery.planar_3r(), port=0, page=page)
    yield running
    running.close()


def wait(done) -> None:
    until = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < until, "nothing came of it"
        time.sleep(0.002)


def wait_for_status(client: WireClient, **fields):
    return client.wait(lambda: client.last("Kernels", **fields))


def test_new_page_and_open_page_hear_how_far_the_compiler_is(server, double):
    with WireClient(server) as first:
        wait_for_status(first, state="compiling", ready=1, count=4)
        double.compiling(ready=3)
        wait_for_status(first, state="compiling", ready=3, count=4)
        with WireClient(server) as second:
            wait_for_status(second, state="compiling", ready=3, count=4)
            double.compiling(ready=4)
            for client in (first, second):
                wait_for_status(client, state="ready", ready=4, count=4, remedy="")


def test_event_comes_only_when_something_is_new(server, double):
    with WireClient(server) as client:
        wait_for_status(client, state="compiling", ready=1)
        before = double.reads
        wait(lambda: double.reads > before + 5)
        assert client.ask("EndDrag")["is"] == "RequestDone"
        assert sum(event["is"] == "Kernels" for event in client.events) <= 2, "one greeting, and one if that was early"


def test_states_are_read_only_while_something_is_compiled(double):
    events: list[Event] = []
    double.compiling(ready=1)
    watch = KernelMonitor(events.append)
    wait(lambda: double.reads > 3)
    double.compiling(ready=4)
    wait(lambda: events[-1:] == [Kernels("ready", 4, 4, "")])
    reads = double.reads
    time.sleep(0.2)
    assert double.reads == reads
    watch.close()


def test_watch_reads_again_when_another_module_begins_to_be_used(double, monkeypatch):
    listeners = []
    monkeypatch.setattr(kernel_watch, "on_kernel_change", lambda listener: listeners.append(listener) or (lambda: None))
    events: list[Event] = []
    double.compiling(ready=4)
    watch = KernelMonitor(events.append)
    wait(lambda: events == [Kernels("ready", 4, 4, "")])
    double.compiling(ready=2)
    for listener in listeners:
        listener()
    wait(lambda: events[-1] == Kernels("compiling", 2, 4, ""))
    watch.close()


@pytest.mark.parametrize("state", ["failed", "not compiled"])
def test_remedy_is_named_where_nothing_will_be_compiled(double, state):
    if state == "failed":
        double.failed("Traceback\nMemoryError")
        remedy = RECOMPILE_ADVICE
    else:
        double.without_numba(NUMBA)
        remedy = "Compiling kernels needs Numba: pip install 'mechanik[jit]'"
    assert kernel_event(double(only_used=True)) == Kernels("not compiled", 0, 4, remedy)


def test_compiling_comes_before_what_has_failed():
    states = [
        KernelState("dense_evaluation", Tier.PLAIN, "failed", None, "no"),
        KernelState("forward", Tier.PLAIN, "compiling"),
    ]
    assert kernel_event(states) == Kernels("compiling", 0, 2, "")


def test_plain_python_by_choice_and_no_kernels_at_all_are_fine():
    assert kernel_event([]).state == "ready"
    assert kernel_event([KernelState("dense_evaluation", Tier.PLAIN, "ready")]).state == "ready"


def test_server_asks_for_its_kernels_at_once(monkeypatch, page):
    requested: list[str] = []
    replace_states(monkeypatch)
    monkeypatch.setattr(kernel_watch, "request_kernels", lambda *names: requested.extend(names))
    running = serve(port=0, page=page)
    running.close()
    assert requested == list(STUDIO_KERNELS)
    assert set(STUDIO_KERNELS) <= set(KERNEL_MODULES)


def test_states_that_cannot_be_read_end_the_watch_and_nothing_else(server, double, monkeypatch):
    def broken(only_used: bool = False):
        raise OSError("no such folder")

    monkeypatch.setattr(kernel_watch, "kernel_states", broken)
    with WireClient(server) as client:
        assert client.ask("EndDrag")["is"] == "RequestDone"
