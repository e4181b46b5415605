"""Kernels work with a cache that is damaged, full, read-only or missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_programs import ANSWER, LOGGED, POSE, compiled, run, wait_until_idle

from mechanik.tiers import code_cache as kernel_cache

LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); "
"""No file may become larger than 20 kB, as on a disk that is full."""
UNPRIVILEGED = """
import ctypes, os
if hasattr(os, 'geteuid') and os.geteuid() == 0:  # root may write wherever it likes, unless it gives that up
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    assert ctypes.CDLL(None).capset(header, (ctypes.c_uint32 * 6)()) == 0
"""


@pytest.fixture
def cache(tmp_path: Path):
    yield tmp_path / "cache"
    wait_until_idle(tmp_path / "cache")


def files(cache: Path) -> dict[str, Path]:
    """Compiled modules, by name."""
    return {file.name.rsplit("-", 1)[0]: file for file in (cache / "kernels").glob("*.kernels")}


def test_only_the_damaged_file_is_compiled_again(cache: Path) -> None:
    run(POSE + "; mk.warm_up", cache, tier="jit")
    run("from mechanik.tiers import kernel_module; kernel_module('write_targets').write_targets", cache, tier="jit")
    time_of_valid_file = files(cache)["write_targets"].stat().st_mtime_ns
    damaged = files(cache)["forward"]
    damaged.write_bytes(damaged.read_bytes()[:-20])
    assert ANSWER in run(LOGGED, cache)
    wait_until_idle(cache)
    assert ANSWER in run(POSE, cache)
    assert compiled(cache) == ["forward", "write_targets", "forward"]
    assert files(cache)["write_targets"].stat().st_mtime_ns == time_of_valid_file


def test_foreign_cache_file_is_compiled_again(cache: Path) -> None:
    (cache / "kernels").mkdir(parents=True)
    code = "from mechanik.tiers.code_cache import *; print(cache_file(cache_folder(), 'forward'))"
    Path(run(code, cache).strip()).write_text("not machine code")
    assert ANSWER in run(POSE, cache, tier="jit")
    assert compiled(cache) == ["forward"]


@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes are another matter on Windows")
@pytest.mark.parametrize("tier", ["auto", "plain"])
def test_full_disk_is_no_error(cache: Path, tier: str) -> None:
    assert ANSWER in run(LIMITED + LOGGED, cache, tier=tier)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may mount")
def test_disk_without_free_space_is_not_used(cache: Path, tmp_path: Path) -> None:
    cache.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", cache], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        assert ANSWER in run(LOGGED, cache)
        assert ANSWER in run(POSE, cache, tier="jit")  # compiled for this process alone
        assert compiled(cache) == []
    finally:
        subprocess.run(["umount", cache], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="privileges are given up as on Linux")
def test_warm_cache_that_is_read_only_is_used(cache: Path) -> None:
    run(POSE, cache, tier="jit")
    wait_until_idle(cache)
    folder = cache / "kernels"
    folder.chmod(0o555)
    try:
        out = run(UNPRIVILEGED + LOGGED + "; import sys; print('numba' in sys.modules)", cache)
    finally:
        folder.chmod(0o755)
    assert ANSWER in out
    assert "compiling" not in out
    assert "True" in out


@pytest.mark.skipif(sys.platform != "linux", reason="privileges are given up as on Linux")
def test_cold_cache_that_is_read_only_is_replaced_for_the_process(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o555)
    try:
        out = run(UNPRIVILEGED + LOGGED, cache, tier="jit")
    finally:
        cache.chmod(0o755)
    assert ANSWER in out
    assert "for this process alone" in out
    assert not (cache / "kernels").exists()


def test_cache_folder_that_is_a_file_is_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    assert ANSWER in run(POSE, blocked)
    assert ANSWER in run(POSE, blocked, tier="jit")


@pytest.mark.skipif(sys.platform == "win32", reason="homes are found otherwise on Windows")
def test_kernels_work_without_a_home_folder(tmp_path: Path) -> None:
    code = "import pathlib; pathlib.Path.home = classmethod(lambda c: (_ for _ in ()).throw(RuntimeError())); " + POSE
    assert ANSWER in run(code, tmp_path, MECHANIK_CACHE_DIR="", XDG_CACHE_HOME="")


def test_source_that_cannot_be_compiled_is_reported_once_and_plain_python_is_used(cache: Path, tmp_path: Path) -> None:
    import shutil

    from kernel_programs import PACKAGE

    copy = tmp_path / "src" / "mechanik"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "page", "web"))
    source = copy / "kernels" / "forward.py"
    text = source.read_text()
    broken = text.replace("    is_finite = True\n", "    is_finite = bool(str(1).encode())\n")
    assert broken != text
    source.write_text(broken)
    wait = "; import time; time.sleep(15)"
    out = run(LOGGED + wait, cache, copy)
    assert ANSWER in out
    assert "the kernels forward cannot be compiled, so solving stays slow" in out
    again = run(LOGGED, cache, copy)
    assert ANSWER in again
    assert "cannot be compiled" in again
    assert compiled(cache) == []


def test_old_versions_are_removed_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    notes = folder / "forward notes.txt"
    notes.write_text("mine")
    other_module_file = folder / "descent-0000000000000000.kernels"
    other_module_file.write_bytes(b"")
    old = [folder / f"forward-{i:016x}.kernels" for i in range(30)]
    for i, file in enumerate(old):
        file.write_bytes(b"")
        os.utime(file, (i, i))
    left = folder / "forward-0000000000000000.kernels.77.part"
    left.write_bytes(b"")
    kernel_cache.write_code(folder / f"forward-{99:016x}.kernels", {"pose": b"code"})
    assert notes.exists()
    assert other_module_file.exists()
    assert not left.exists()
    assert [file.exists() for file in old] == [False] * (31 - kernel_cache.MAX_VERSIONS) + [True] * (
        kernel_cache.MAX_VERSIONS - 1
    )
    assert kernel_cache.read_code(folder / f"forward-{99:016x}.kernels") == {"pose": b"code"}


def test_a_module_that_another_program_compiles_between_two_checks_is_loaded(cache: Path) -> None:
    """Once the wait ended with the message that there is no writable cache folder."""
    code = """
from mechanik.tiers.jit_cache import JitCache, cache, numba_kernels
jit = JitCache()
load = jit._load
def load_late(name):
    if load(name):
        return True
    file = cache.cache_file(cache.cache_folder(), name)
    if not file.exists():  # what another program does after the first check
        file.parent.mkdir(parents=True, exist_ok=True)
        cache.write_code(file, numba_kernels.compile_module(name))
    return False
jit._load = load_late
jit.wait(["write_targets"], {})
print("loaded")
"""
    assert "loaded" in run(code, cache)
