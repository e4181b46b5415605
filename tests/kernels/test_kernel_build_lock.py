"""The lock that lets only one of several processes build kernels."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_lock_waits_until_the_holder_releases_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rename once broke the call that waits, so that a second build failed instead of waiting."""
    monkeypatch.syspath_prepend(str(ROOT))
    lock = importlib.import_module("kernel_build.lock")
    monkeypatch.setattr(lock, "POLL_SECONDS", 0.001)
    file, is_held, may_release, events = tmp_path / "lock", threading.Event(), threading.Event(), list[str]()

    def hold() -> None:
        with lock.hold_lock(file):
            is_held.set()
            may_release.wait()
            events.append("released")

    holder = threading.Thread(target=hold)
    holder.start()
    is_held.wait()
    threading.Timer(0.05, may_release.set).start()
    with lock.hold_lock(file):
        events.append("acquired")
    holder.join()
    assert events == ["released", "acquired"]
