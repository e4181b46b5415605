"""Availability of compiled kernels: whether this process can compile with Numba, and the prebuilt kernels of the wheel.

Prebuilt kernels are in the extension module `mechanik._kernels`, which `kernel_build` creates.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from mechanik.errors import KernelsUnavailable
from mechanik.tiers.kernel_sources import source_stamp

POLL_SECONDS = 0.1
"""Interval at which a program checks whether machine code is ready, s."""
SERVICE_ENDED = (
    "the processes that compile kernels were killed or could not be started; run `mechanik warmup` to compile again"
)
NUMBA_MISSING = "compiling kernels needs Numba: pip install 'mechanik[jit]'"


@functools.cache
def numba_version() -> str | None:
    """Return the version of the installed Numba without importing it; None if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("numba")
    except PackageNotFoundError:
        return None


def can_compile() -> bool:
    """Return whether Numba is installed and enabled, and a Python interpreter can run it in the background."""
    return reason_not_compilable() is None


def reason_not_compilable() -> str | None:
    """Return the reason why this process cannot compile kernels; None if it can."""
    if numba_version() is None:
        return NUMBA_MISSING
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "NUMBA_DISABLE_JIT is set, so Numba does not compile: unset it"
    if not sys.executable or getattr(sys, "frozen", False):  # sys.executable of a frozen program is no interpreter
        return "there is no Python interpreter to compile kernels in the background: use a wheel with prebuilt kernels"
    return None


def failure_summary(reason: str) -> str:
    """Return the last line of a failure report: the exception without its traceback."""
    return (reason.strip().splitlines() or [""])[-1]


LEVEL_VARIABLE = "MECHANIK_KERNELS_LEVEL"
"""Environment variable that selects an instruction set level other than the best, for tests and comparisons."""


@functools.cache
def _extension() -> Any | None:
    try:
        return importlib.import_module("mechanik._kernels")
    except ImportError:  # not built, or built for another machine or NumPy version
        return None


def prebuilt_functions(module: str) -> dict[str, Callable[..., Any]] | None:
    """Return the prebuilt kernels of a kernel module; None if there are none for its present sources.

    Raises:
        KernelsUnavailable: the selected instruction set level is not in the wheel, or this processor cannot run it.
    """
    extension = _extension()
    if extension is None or extension.stamps.get(module) != source_stamp(module):
        return None
    return extension.functions(module, _level(extension))


def prebuilt_level() -> str | None:
    """Return the instruction set level of the prebuilt kernels, such as "x86-64-v3"; None without prebuilt kernels."""
    extension = _extension()
    return None if extension is None else _level(extension)


def _level(extension: Any) -> str:
    level = os.environ.get(LEVEL_VARIABLE) or extension.level
    if level not in extension.levels:
        raise KernelsUnavailable(f"{LEVEL_VARIABLE} is {level!r}, but must be one of {', '.join(extension.levels)}")
    return level
