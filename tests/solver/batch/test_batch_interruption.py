"""Batches that are stopped from outside, and batches that are large: real processes, real files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from interruptible_batch import solve

from mechanik.errors import MechanikError
from mechanik.solver.batch import BatchResult

NAMES = ("q", "status", "errors", "iterations")
HERE = Path(__file__).parent
N = 20_000
pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="signals and /proc of Linux")


def write_targets(path: Path, count: int) -> Path:
    """Poses that differ, a block at a time."""
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(count, 4, 4))
    for first in range(0, count, 50_000):
        rows = np.arange(first, min(first + 50_000, count))
        X[rows] = np.eye(4)
        X[rows, :3, 3] = np.stack([rows, rows**0.5, -rows], axis=1)
    return path


def start(folder: Path, targets: Path, pause: float, threads: int) -> subprocess.Popen[str]:
    env = {**os.environ, "MECHANIK_KERNELS": "plain", "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    command = [sys.executable, HERE / "interruptible_batch.py", folder, targets, str(pause), str(threads)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)


def wait_until_some_are_done(folder: Path, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            if BatchResult.open(folder).done > 300:
                return
        except MechanikError:
            pass  # its files are not there yet
        assert process.poll() is None
        time.sleep(0.01)
    raise AssertionError("nothing was done in a minute")


def assert_rows(result: BatchResult, whole: BatchResult) -> None:
    """Every row that is marked as done is correct."""
    done = result.status != 9
    assert np.array_equal(result.status[done], whole.status[done])
    assert all(np.array_equal(getattr(result, name)[done], getattr(whole, name)[done]) for name in NAMES)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_rows_done_before_a_signal_are_correct_and_the_batch_can_be_resumed(how, threads, tmp_path):
    targets, folder = write_targets(tmp_path / "X.npy", N), tmp_path / "out"
    process = start(folder, targets, 0.03, threads)  # so slow that it is not done before the signal comes
    try:
        wait_until_some_are_done(folder, process)
        process.send_signal(how)
        output = process.communicate(timeout=60)[0]
    finally:
        process.kill()
    half, whole = BatchResult.open(folder), solve(None, np.load(targets, mmap_mode="r"))
    assert 300 < half.done < N
    assert_rows(half, whole)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert output.startswith(f"{half.done} {half.done:,} of 20,000 rows are finished and are in {folder}")
    else:
        assert process.returncode == -signal.SIGKILL
    before = {name: getattr(half, name)[half.status != 9].copy() for name in NAMES}
    rows = half.status != 9
    result = solve(folder, np.load(targets, mmap_mode="r"))
    assert result.is_finished
    assert_rows(result, whole)
    assert all(np.array_equal(getattr(result, name)[rows], before[name]) for name in NAMES)


def test_memory_does_not_grow_with_the_batch(tmp_path):
    peaks: list[int] = []
    for count in (100_000, 500_000):
        targets = write_targets(tmp_path / f"{count}.npy", count)
        process = start(tmp_path / f"out{count}", targets, 0.0, 2)
        done, peak = map(int, process.communicate(timeout=120)[0].split())
        assert done == count
        peaks.append(peak)
    # 51 MB more of targets and 28 MB more of results
    assert peaks[1] < peaks[0] + 16
