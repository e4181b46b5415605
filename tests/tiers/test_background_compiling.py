"""Compiling in the background: no call waits, each module is compiled once, machine code replaces plain Python."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest
from kernel_programs import ANSWER, LOGGED, PACKAGE, POSE, compiled, run, start, wait_until_compiled, wait_until_idle

from mechanik.tiers import compile_service

UNTIL_TAKEN_OVER = """
import logging, sys, time
logging.basicConfig(level=logging.INFO, format='%(threadName)s: %(message)s')
import numpy as np, mechanik as mk
from mechanik.tiers import kernel_module
b = mk.Builder(); b.revolute('j', 'x', 'y'); m = b.build()
first = m.pose('y', [0.5])[0, 0]
assert 'numba' not in sys.modules
begun = tick = time.monotonic()
while tick == begun:
    tick = time.monotonic()
handle, until, answers, largest = kernel_module('forward'), time.monotonic() + 240, 0, 0.0
while 'jit' not in repr(handle):
    answers += 'numba' in sys.modules
    before = time.thread_time()
    m.pose('y', [0.5])
    largest = max(largest, time.thread_time() - before)
    assert time.monotonic() < until
same = m.pose('y', [0.5])[0, 0] - first
print()  # whatever another thread has written so far ends here
print('RESULT', float(same), answers, largest, abs(tick - begun), flush=True)
"""
UNTIL_ALONE = """
import psutil
until = time.monotonic() + 60
while psutil.Process().children():
    assert time.monotonic() < until, psutil.Process().children()
    time.sleep(0.05)
"""
IMPORTED = "import sys; print('numba' in sys.modules)"


@pytest.fixture
def cache(tmp_path: Path):
    yield tmp_path / "cache"
    wait_until_idle(tmp_path / "cache")


def test_first_call_runs_in_plain_python_and_later_programs_use_machine_code(cache: Path) -> None:
    first = run(f"{LOGGED}; {IMPORTED}", cache)
    assert ANSWER in first
    assert "compiling kernels in the background" in first
    assert "False" in first
    wait_until_compiled(cache, "forward")  # although the program that asked has ended
    later = run(f"{LOGGED}; {IMPORTED}", cache)
    assert ANSWER in later
    assert "compiling" not in later
    assert "True" in later
    assert compiled(cache) == ["forward"]


def test_machine_code_replaces_plain_python_in_the_program_that_requested_it(cache: Path) -> None:
    """It is loaded in another thread, and no call takes 50 ms of processor time meanwhile.

    Under a clock that ticks coarsely in this process alone, a thread that waits for the interpreter never sleeps, so
    that its processor time says nothing of the call.
    """
    out = run(UNTIL_TAKEN_OVER, cache)
    assert "mechanik kernels: mechanik: the compiled kernels forward are in use" in out
    results = [line.split()[1:] for line in out.splitlines() if line.startswith("RESULT ")]
    assert len(results) == 1, out
    same, answers, largest, tick = map(float, results[0])
    assert abs(same) < 1e-15
    assert answers > 0
    assert largest < 0.05 or tick > 1e-3


def test_compile_service_that_has_ended_leaves_no_zombie_process(cache: Path) -> None:
    run(UNTIL_TAKEN_OVER + UNTIL_ALONE, cache)


def test_programs_at_once_compile_a_module_once(cache: Path) -> None:
    programs = [start(UNTIL_TAKEN_OVER, cache) for _ in range(3)]
    for program in programs:
        out, _ = program.communicate(timeout=300)
        assert program.returncode == 0, out
    wait_until_idle(cache)
    assert compiled(cache) == ["forward"]


@pytest.mark.skipif(sys.platform == "win32", reason="processes are found by /proc")
def test_killed_service_is_started_again_by_the_program_that_waits(cache: Path) -> None:
    program = start(UNTIL_TAKEN_OVER, cache)
    kill_compilers(cache)
    out, _ = program.communicate(timeout=300)
    assert program.returncode == 0, out
    assert "in use" in out
    assert compiled(cache) == ["forward"]


@pytest.mark.skipif(sys.platform == "win32", reason="processes are found by /proc")
def test_killed_service_is_started_again_by_the_next_program(cache: Path) -> None:
    run(POSE, cache)
    kill_compilers(cache)
    assert compiled(cache) == []
    run(POSE, cache)
    wait_until_compiled(cache, "forward")


@pytest.mark.skipif(sys.platform == "win32", reason="processes are found by /proc")
def test_killed_compiler_is_started_once_more_by_each_program(cache: Path) -> None:
    """As where memory runs out: the service goes on, and the process that compiles is gone."""
    program = start(UNTIL_TAKEN_OVER, cache)
    kill_compilers(cache, service=False)
    out, _ = program.communicate(timeout=300)
    assert program.returncode == 0, out
    assert "in use" in out
    assert compiled(cache) == ["forward"]


@pytest.mark.parametrize("missing", ["python", "path"])
def test_requests_of_removed_installations_are_ignored(cache: Path, tmp_path: Path, missing: str) -> None:
    """A virtual environment, or a folder of sources, that was removed before its kernels were compiled."""
    folder = cache / "kernels"
    folder.mkdir(parents=True)
    file = folder / "forward-0000000000000000.kernels"
    compile_service.write_request("forward", file, is_urgent=False)
    old = file.with_suffix(".request")
    old.write_text(json.dumps({**json.loads(old.read_text()), missing: str(tmp_path / "removed")}))
    run(POSE, cache)
    wait_until_compiled(cache, "forward")
    wait_until_idle(cache)
    assert not old.exists()
    assert [file.name for file in folder.glob("*.failed")] == []


def test_transient_failures_are_tried_again(cache: Path) -> None:
    code = "from mechanik.tiers.code_cache import *; print(cache_file(cache_folder(), 'forward'))"
    file = Path(run(code, cache).strip())
    for reason in compile_service.TRANSIENT_REASONS:
        assert compile_service.is_transient(f"{reason} 9")
    file.parent.mkdir(parents=True)
    failed = file.with_suffix(compile_service.FAILURE_SUFFIX)
    failed.write_text(f"{compile_service.NO_MEMORY_OR_DISK}: No space left on device")
    assert ANSWER in run(POSE, cache)
    wait_until_compiled(cache, "forward")
    assert not failed.exists()


def kill_compilers(cache: Path, service: bool = True) -> None:
    """End the processes that compile for a cache, as soon as there are such, and the service that started them."""
    until = time.monotonic() + 60
    while True:
        entries = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and is_compiler(entry, cache)]
        if len(entries) >= 2:
            break
        assert time.monotonic() < until
        time.sleep(0.02)
    for entry in entries:
        if service or b".request" in (entry / "cmdline").read_bytes():
            os.kill(int(entry.name), signal.SIGKILL)


def is_compiler(entry: Path, cache: Path) -> bool:
    try:
        command = (entry / "cmdline").read_bytes()
    except OSError:
        return False
    return compile_service.SERVICE_CODE.encode() in command and os.fsencode(cache) in command


def test_jit_waits_and_prints_its_progress(cache: Path) -> None:
    out = run(POSE, cache, tier="jit")
    assert "compiling 1 kernel module, about" in out
    assert "1 of 1 kernel module compiled" in out
    assert ANSWER in out


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals on Windows")
def test_compiling_is_announced_once_on_a_terminal(cache: Path) -> None:
    import pty

    seen = b""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(MECHANIK_CACHE_DIR=str(cache), MECHANIK_KERNELS="auto", PYTHONPATH=str(PACKAGE.parent))
        os.execv(
            sys.executable,
            [sys.executable, "-c", POSE + "; m.jacobian('y', [0.5]); mk.solve(m, mk.PositionGoal('y', (0, 0, 0)))"],
        )
    while True:
        try:
            part = os.read(terminal, 1000)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.waitpid(pid, 0)
    assert seen.decode().count("compiling kernels in the background") == 1
    assert ANSWER in seen.decode()


def test_changed_helper_in_another_file_invalidates_machine_code(cache: Path, tmp_path: Path) -> None:
    copy = tmp_path / "src" / "mechanik"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "page", "web"))
    before = float(run(POSE, cache, copy, tier="jit").split()[-1])
    helper = copy / "kernels" / "nodes.py"
    text = helper.read_text()
    cosine = "sign * (1.0 + square * cosine_series)"
    assert cosine in text
    helper.write_text(text.replace(cosine, f"7.0 * {cosine}"))
    after = float(run(POSE, cache, copy, tier="jit").split()[-1])
    assert after == pytest.approx(7 * before)


def test_many_threads_may_load_kernels_at_once(cache: Path) -> None:
    code = """
import threading, time, numpy as np, mechanik as mk
b = mk.Builder(); b.revolute('j', 'x', 'y'); m = b.build(); m.nq; seen = []
def use(i):
    time.sleep(0.05 * i); seen.append(m.pose('y', np.zeros(1))[0, 0])
threads = [threading.Thread(target=use, args=(i,)) for i in range(30)]
[t.start() for t in threads]; [t.join() for t in threads]; print(len(seen))"""
    for tier in ("auto", "jit"):
        assert run(code, cache, tier=tier).split()[-1] == "30"


def test_importing_needs_neither_numba_nor_the_extras(tmp_path: Path) -> None:
    heavy = ["numba", "llvmlite", "rich", "cyclopts", "yaml", "matplotlib", "defusedxml", "scipy"]
    code = f"import mechanik, sys, json; print(json.dumps([m for m in {heavy!r} if m in sys.modules]))"
    assert json.loads(run(code, tmp_path)) == []
