"""Programs that use kernels, run in processes of their own with a cache of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import mechanik
from mechanik.tiers import compile_service

PACKAGE = Path(mechanik.__file__).parent
POSE = (
    "import mechanik as mk; b = mk.Builder(); b.revolute('j', 'x', 'y'); m = b.build(); print(m.pose('y', [0.5])[0, 0])"
)
ANSWER = "0.877582561890372"
LOGGED = "import logging; logging.basicConfig(level=logging.INFO); " + POSE


def environment(cache: Path, source: Path | None = None, tier: str = "auto", **more: str) -> dict[str, str]:
    path = str((source or PACKAGE).parent)
    return {**os.environ, "MECHANIK_CACHE_DIR": str(cache), "MECHANIK_KERNELS": tier, "PYTHONPATH": path, **more}


def run(code: str, cache: Path, source: Path | None = None, tier: str = "auto", **more: str) -> str:
    """What a program prints, on both streams."""
    done = start(code, cache, source, tier, **more)
    out, _ = done.communicate(timeout=300)
    assert done.returncode == 0, out
    return out


def start(code: str, cache: Path, source: Path | None = None, tier: str = "auto", **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environment(cache, source, tier, **more), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def compiled(cache: Path) -> list[str]:
    """The modules compiled so far, each as often as it was compiled."""
    log = cache / "kernels" / compile_service.LOG_FILE
    return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []


def wait_until_compiled(cache: Path, *modules: str, seconds: float = 240.0) -> None:
    until = time.monotonic() + seconds
    while not set(modules) <= set(compiled(cache)):
        assert time.monotonic() < until, f"compiled so far: {compiled(cache)}"
        time.sleep(0.1)


def wait_until_idle(cache: Path, seconds: float = 240.0) -> None:
    """Until the compile service of a cache has ended, so that nothing writes to it any more."""
    until = time.monotonic() + seconds
    folder = cache / "kernels"
    while folder.exists() and (compile_service.is_running(folder) or any(folder.glob(compile_service.REQUEST_PATTERN))):
        assert time.monotonic() < until
        time.sleep(0.1)
