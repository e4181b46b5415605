"""Where the clock runs backwards between cores, Node and Chromium are kept on one core; elsewhere nothing changes."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from find_browser import ONE_CORE, one_core

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process choose its cores")
SITE = """
import os, time
real, at = time.monotonic_ns, [0]
def choose(pid, cores, choose=os.sched_setaffinity):
    at[0] = max(cores)
    choose(pid, cores)
time.monotonic_ns = lambda: real() - 6_000_000 * (at[0] % 2)
os.sched_setaffinity = choose
"""
CORES = "import os; print(len(os.sched_getaffinity(0)))"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch):
    """A machine of 4 cores whose clocks are so many ns ahead; returns where the process may run now."""

    def make(*ahead: int) -> list[set[int]]:
        allowed, ticks = [set(range(len(ahead)))], itertools.count(10**9, 20_000)
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: allowed[-1], raising=False)
        monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cores: allowed.append(set(cores)), raising=False)
        monkeypatch.setattr(time, "monotonic_ns", lambda: next(ticks) + ahead[min(allowed[-1])])
        return allowed

    return make


def test_cores_that_agree_leave_a_process_as_it_is(machine) -> None:
    allowed, messages = machine(0, 0, 0, 0), []
    assert not one_core().pin_to_one_core(messages.append)
    assert (allowed[-1], messages) == ({0, 1, 2, 3}, [])


@pytest.mark.parametrize("ahead", [(0, 0, -6_000_000, 0), (6_000_000, 0, 0, 0), (0, 0, 0, 50_000_000)])
def test_one_core_that_disagrees_keeps_a_process_on_one(machine, ahead) -> None:
    allowed, messages = machine(*ahead), []
    assert one_core().pin_to_one_core(messages.append)
    assert len(allowed[-1]) == 1
    assert len(messages) == 1
    assert "runs backwards" in messages[0]
    assert not one_core().pin_to_one_core(messages.append)  # on one core there is nothing to disagree with
    assert len(messages) == 1


def test_a_test_of_the_clock_leaves_a_process_where_it_may_run(machine) -> None:
    for ahead in ((0, 0), (0, -6_000_000)):
        allowed = machine(*ahead)
        one_core().clock_runs_backwards()
        assert allowed[-1] == {0, 1}


def test_a_machine_that_lets_nobody_choose_is_left_alone(machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(0, -6_000_000)

    def refuse(pid: int, cores: set[int]) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    assert not one_core().pin_to_one_core(pytest.fail)


def run(tmp_path: Path, *command: str, backwards: bool) -> subprocess.CompletedProcess[str]:
    """The script, on a machine whose odd cores are 6 ms behind."""
    if backwards:
        (tmp_path / "sitecustomize.py").write_text(SITE)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = (sys.executable, str(ONE_CORE), *command)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


def test_a_command_is_started_on_one_core_where_the_clock_runs_backwards(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this process is on one core already")
    done = run(tmp_path, sys.executable, "-S", "-c", CORES, backwards=True)
    assert done.stdout == "1\n", done.stderr
    assert done.stderr.count("runs backwards") == 1


def test_the_exit_code_of_a_command_is_passed_on(tmp_path: Path) -> None:
    assert run(tmp_path, sys.executable, "-c", "raise SystemExit(7)", backwards=False).returncode == 7
    assert run(tmp_path, sys.executable, "-c", "raise SystemExit(7)", backwards=True).returncode == 7
    missing = run(tmp_path, "no-such-command", backwards=False)
    assert missing.returncode == 127
    assert "no-such-command cannot be started" in missing.stderr
    assert run(tmp_path, backwards=False).returncode == 2


def test_the_build_of_the_page_tests_the_clock_before_it_starts_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ONE_CORE.parent))
    import build_page

    done: list[str] = []

    class OneCore:
        @staticmethod
        def pin_to_one_core(say) -> None:
            done.append("clock")

    monkeypatch.setattr(build_page, "is_up_to_date", lambda: False)
    monkeypatch.setattr(build_page, "load_one_core", OneCore)
    monkeypatch.setattr(build_page, "find_node", lambda: done.append("node"))
    with pytest.raises(build_page.PageError, match="no suitable Node"):
        build_page.build(pytest.fail)
    assert done == ["clock", "node"]
