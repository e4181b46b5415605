"""Whether kernels can be compiled in this process."""

from __future__ import annotations

import functools
import os
import sys

POLL_SECONDS = 0.1
"""How often programs look whether machine code is ready."""
SERVICE_ENDED = "the processes that compile kernels were ended"
NO_NUMBA = "compiling kernels needs Numba: pip install 'mechanik[jit]'"


@functools.cache
def numba_version() -> str | None:
    """The version of the installed Numba, without importing it; None if there is none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("numba")
    except PackageNotFoundError:
        return None


def can_compile() -> bool:
    """Whether Numba is there, and a Python to run it in the background."""
    return why_not_compiled() is None


def why_not_compiled() -> str | None:
    """Why nothing can be compiled in this process; None if it can."""
    if numba_version() is None:
        return NO_NUMBA
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "NUMBA_DISABLE_JIT is set, so Numba compiles nothing: unset it"
    if not sys.executable or getattr(sys, "frozen", False):  # the executable of a frozen program is that program
        return "there is no Python interpreter that could compile in the background"
    return None


def last_line(reason: str) -> str:
    """Of why compiling failed: what was raised, without the lines of code that led there."""
    return (reason.strip().splitlines() or [""])[-1]
