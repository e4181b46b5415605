"""Compiling: announced once, kept between processes, never stale. Real processes, each test with a new cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mechanik
from mechanik import kernels

PACKAGE = Path(mechanik.__file__).parent
ANNOUNCEMENT = "compiling kernels, about"
POSE = "import mechanik as mk; b = mk.Builder(); b.revolute('j', 'x', 'y'); print(b.build().pose('y', [0.5])[0, 0])"


def run(code: str, cache: Path, source: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment}
    env["PYTHONPATH"] = str((source or PACKAGE).parent)
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done


LOGGED = "import logging; logging.basicConfig(level=logging.INFO); " + POSE


def test_compiling_is_announced_once_on_a_machine(tmp_path):
    first, second = run(LOGGED, tmp_path), run(LOGGED, tmp_path)
    assert first.stderr.count(ANNOUNCEMENT) == 1
    assert "once on this machine" in first.stderr
    assert ANNOUNCEMENT not in second.stderr
    assert first.stdout == second.stdout == "0.8775825618903728\n"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals on Windows")
def test_on_a_terminal_it_is_said_there(tmp_path):
    import pty

    seen = b""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(NUMBA_CACHE_DIR=str(tmp_path), PYTHONPATH=str(PACKAGE.parent))
        os.execv(sys.executable, [sys.executable, "-c", POSE])
    while True:
        try:
            part = os.read(terminal, 1000)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.waitpid(pid, 0)
    assert seen.decode().count(ANNOUNCEMENT) == 1
    assert "0.877" in seen.decode()


def test_a_changed_helper_in_another_file_never_meets_an_old_kernel(tmp_path):
    """Numba's own cache would look at forward.py alone, and go on with the old sine."""
    copy = tmp_path / "src" / "mechanik"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = run(POSE, tmp_path / "cache", copy)
    helper = copy / "kernels" / "trigonometry.py"
    text = helper.read_text()
    assert "sign * (1.0 + u * c)" in text
    helper.write_text(text.replace("sign * (1.0 + u * c)", "7.0 * sign * (1.0 + u * c)"))
    after = run(POSE, tmp_path / "cache", copy)
    assert float(after.stdout) == pytest.approx(7 * float(before.stdout))


def test_without_a_place_to_keep_them_kernels_are_compiled_for_the_process(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    assert run(POSE, blocked).stdout.startswith("0.877")


def test_kernels_run_as_plain_python_for_debugging(tmp_path):
    code = LOGGED + "; import numpy as np; m = b.build(); m.pose('y', np.zeros(1)); m.pose('y'); m.jacobian('y', [1])"
    done = run(code, tmp_path, NUMBA_DISABLE_JIT="1")
    assert done.stdout.startswith("0.877")
    assert ANNOUNCEMENT not in done.stderr


def test_many_threads_may_be_the_first(tmp_path):
    code = """
import threading, time, numpy as np, mechanik as mk
b = mk.Builder(); b.revolute('j', 'x', 'y'); m = b.build(); m.nq; seen = []
def use(i):
    time.sleep(0.05 * i); seen.append(m.pose('y', np.zeros(1))[0, 0])
threads = [threading.Thread(target=use, args=(i,)) for i in range(30)]
[t.start() for t in threads]; [t.join() for t in threads]; print(len(seen))"""
    done = run(code, tmp_path)
    assert done.stdout == "30\n", done.stderr


def test_a_damaged_cache_does_not_stop_anybody(tmp_path):
    run(POSE, tmp_path)
    damaged = list(tmp_path.rglob("*.nbi"))
    assert damaged
    for index in damaged:
        index.write_bytes(index.read_bytes()[:20])
    assert run(POSE, tmp_path).stdout.startswith("0.877")
    assert all(index.stat().st_size > 20 for index in tmp_path.rglob("*.nbi"))


def test_only_old_kernels_are_thrown_away(tmp_path):
    kept = tmp_path / "mechanik" / "kernels" / "my notes"
    kept.mkdir(parents=True)
    old = [tmp_path / "mechanik" / "kernels" / f"{i:016x}" for i in range(30)]
    for i, folder in enumerate(old):
        folder.mkdir()
        os.utime(folder, (i, i))
    run(POSE, tmp_path)
    assert kept.exists()
    assert not old[0].exists()
    assert old[-1].exists()


@pytest.mark.skipif(sys.platform == "win32", reason="homes are found otherwise on Windows")
def test_without_a_home_it_works_too(tmp_path):
    code = (
        "import os, pathlib; pathlib.Path.home = classmethod(lambda c: (_ for _ in ()).throw(RuntimeError())); " + POSE
    )
    done = run(code, tmp_path, NUMBA_CACHE_DIR="", XDG_CACHE_HOME="")
    assert done.stdout.startswith("0.877")


def test_importing_needs_neither_numba_nor_the_extras(tmp_path):
    heavy = ["numba", "llvmlite", "rich", "cyclopts", "yaml", "matplotlib", "defusedxml", "scipy"]
    code = f"import mechanik, sys, json; print(json.dumps([m for m in {heavy!r} if m in sys.modules]))"
    assert json.loads(run(code, tmp_path).stdout) == []


def test_the_stamp_is_of_all_kernel_sources():
    names = {path.stem for path in (PACKAGE / "kernels").glob("*.py")}
    assert {"forward", "trigonometry", "layout", "compiler"} <= names
    assert kernels.source_stamp() in str(kernels.cache_folder())
    assert {name for name in kernels.KERNEL_MODULES if "." not in name} <= names


def test_rooms_of_kernels_have_stamps_of_their_own():
    rooms = {name.partition(".")[0] for name in kernels.KERNEL_MODULES if "." in name}
    stamps = {kernels.source_stamp(), *(kernels.source_stamp(room) for room in rooms)}
    assert rooms == {"distance", "planning", "tracking"}
    assert len(stamps) == 4
    for name in kernels.KERNEL_MODULES:
        assert (PACKAGE / "kernels" / f"{name.replace('.', '/')}.py").is_file()


@pytest.mark.parametrize("changed", ["distance/shape_layout.py", "tracking/layout.py", "vector.py"])
def test_a_change_in_one_room_leaves_the_others_as_they_are(tmp_path, changed):
    copy = tmp_path / "src" / "mechanik"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "page", "web"))
    code = "from mechanik.kernels import source_stamp; print(*map(source_stamp, ('', 'distance', 'tracking')))"
    before = run(code, tmp_path, copy).stdout.split()
    source = copy / "kernels" / changed
    source.write_text(source.read_text() + "# changed\n")
    after = run(code, tmp_path, copy).stdout.split()
    room = changed.partition("/")[0]
    differ = [room in ("vector.py", name) for name in ("", "distance", "tracking")]
    assert [one != other for one, other in zip(before, after, strict=True)] == differ
