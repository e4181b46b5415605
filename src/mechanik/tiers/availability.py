"""Availability of compiled kernels: whether Numba can compile here, and the prebuilt kernels of the wheel.

Prebuilt kernels are the extension module `mechanik._kernels`, which `kernel_build` makes.
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
"""s; interval at which programs check whether machine code is ready."""
SERVICE_ENDED = "the processes that compile kernels were ended"
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
    """Whether Numba is installed and enabled, and a Python interpreter can run it in the background."""
    return why_not_compilable() is None


def why_not_compilable() -> str | None:
    """Return the reason why this process cannot compile kernels; None if it can."""
    if numba_version() is None:
        return NUMBA_MISSING
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "NUMBA_DISABLE_JIT is set, so Numba compiles nothing: unset it"
    if not sys.executable or getattr(sys, "frozen", False):  # a frozen program is its own executable, not a Python
        return "there is no Python interpreter that could compile in the background"
    return None


def failure_summary(reason: str) -> str:
    """Return the last line of a failure report: the exception without its traceback."""
    return (reason.strip().splitlines() or [""])[-1]


LEVEL_VARIABLE = "MECHANIK_KERNELS_LEVEL"
"""Environment variable that selects an instruction set level instead of the best one, for tests and comparisons."""


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
    """Return the instruction set level of the prebuilt kernels in use ("x86-64-v3"); None without prebuilt kernels."""
    extension = _extension()
    return None if extension is None else _level(extension)


def _level(extension: Any) -> str:
    chosen = os.environ.get(LEVEL_VARIABLE) or extension.level
    if chosen not in extension.levels:
        raise KernelsUnavailable(f"{LEVEL_VARIABLE} is {chosen!r}, but must be one of {', '.join(extension.levels)}")
    return chosen
