"""Kernels that are requested before their first use, and the progress that `warm_up` reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mechanik.tiers import code_cache as cache
from mechanik.tiers import compile_service, warm_up

PREPARED = """
import json, threading, time
from mechanik.tiers import is_compiling, kernel_states, on_kernel_change, request_kernels

changed = threading.Event()
end = on_kernel_change(changed.set)

def state():
    return next([one.state, one.is_used] for one in kernel_states() if one.module == "write_targets")

said = [[*state(), is_compiling("write_targets"), changed.is_set()]]
request_kernels("write_targets")
said.append([*state(), is_compiling("write_targets"), changed.is_set()])
changed.clear()
until = time.monotonic() + 240.0
while is_compiling("write_targets") and time.monotonic() < until:
    time.sleep(0.05)
said.append([*state(), is_compiling("write_targets"), changed.is_set()])
end()
print(json.dumps(said))
"""


def states_of(folder, tier: str) -> list[list]:
    """State, is_used, is_compiling and whether listeners were called: before `prepare`, right after it, at the end."""
    environment = {**os.environ, "MECHANIK_CACHE_DIR": str(folder), "MECHANIK_KERNELS": tier}
    environment.pop("NUMBA_DISABLE_JIT", None)
    made = subprocess.run(
        [sys.executable, "-c", PREPARED], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    return json.loads(made.stdout)


def test_requested_module_is_compiled_in_the_background(tmp_path):
    assert states_of(tmp_path, "auto") == [
        ["not compiled", False, False, False],
        ["compiling", True, True, True],
        ["ready", True, False, True],
    ]


def test_nothing_is_compiled_where_plain_python_was_chosen(tmp_path):
    before, *after = states_of(tmp_path, "plain")
    assert before[:3] == ["ready", False, False]
    assert all(state[:3] == ["ready", True, False] for state in after)
    assert not list(tmp_path.rglob("*.kernels"))


class Recorder:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def begin(self, seconds: dict[str, float]) -> None:
        self.calls.append(f"begin {len(seconds)}")

    def finish(self, module: str) -> None:
        self.calls.append("finish")

    def show(self) -> None:
        self.calls.append("show")

    def end(self) -> None:
        self.calls.append("end")


def test_warm_up_reports_its_progress_from_begin_to_end():
    warm_up()
    recorder = Recorder()
    warm_up(progress=recorder)
    assert recorder.calls in ([], ["begin 0", "end"]), "all is compiled, or prebuilt"


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
def test_service_that_is_ended_ends_its_compilers(tmp_path):
    """Compilers of a program that could not write its cache folder went on without it."""
    file = cache.cache_file(tmp_path, "descent")
    compile_service.write_request("descent", file, is_urgent=False)
    service = compile_service.start_service(tmp_path)
    assert service is not None
    children = Path(f"/proc/{service.pid}/task/{service.pid}/children")
    until = time.monotonic() + 60.0
    while not (compilers := children.read_text().split()) and time.monotonic() < until:
        time.sleep(0.02)
    assert compilers
    service.terminate()
    service.wait(60.0)
    while any(is_alive(process) for process in compilers) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(is_alive(process) for process in compilers)


def is_alive(process: str) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
