"""A lock between processes, so that several processes that need kernels build them only once."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

POLL_SECONDS = 0.2
"""Interval at which a process tries to acquire the lock, s."""


@contextmanager
def hold_lock(file: Path) -> Generator[None]:
    """Wait for the lock of a file and hold the lock in the context.

    The operating system releases the lock when the process ends, even by a crash.
    """
    with open(file, "ab") as stream:
        while not _try_lock(stream):
            time.sleep(POLL_SECONDS)
        yield


def _try_lock(stream: IO[bytes]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            stream.seek(0)
            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
