"""Compiling kernels: once on a machine, said aloud, and never stale.

Numba's cache looks only at the file that holds a function, so a change in a helper of another file
would leave old machine code in use. Hence all kernels are cached in a folder that is named after the
contents of every kernel source.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

log = logging.getLogger("mechanik")

KERNEL_MODULES = {"forward": 5}
"""Each module of compiled kernels, with the seconds that compiling it took on a 2-core cloud machine."""

KEPT_STAMPS = 8
OPTIONS: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy"}


@functools.cache
def source_stamp() -> str:
    """A name for the present contents of all kernel sources."""
    import hashlib

    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Where machine code for the present sources is kept."""
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        home = Path(given)
    elif sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "mechanik" / source_stamp()


def load(name: str) -> ModuleType:
    """A module of kernels, compiled or fetched from the cache at its first use in a process."""
    full = f"mechanik.kernels.{name}"
    module = sys.modules.get(full)
    if module is None:
        with _announced(name):
            module = importlib.import_module(full)
    return module


class Lazy:
    """Some functions of a module of kernels, as attributes; the module is loaded when one is first called."""

    def __init__(self, module: str, *functions: str) -> None:
        for function in functions:
            setattr(self, function, functools.partial(self._load_and_call, module, function))

    def _load_and_call(self, module: str, function: str, *arguments: object) -> Any:
        found = getattr(load(module), function)
        setattr(self, function, found)  # from now on called without a detour
        return found(*arguments)

    if TYPE_CHECKING:

        def __getattr__(self, function: str) -> Callable[..., Any]: ...


def warm_up() -> dict[str, float]:
    """Load every kernel now; seconds taken by each."""
    seconds: dict[str, float] = {}
    for name in KERNEL_MODULES:
        start = time.perf_counter()
        load(name)
        seconds[name] = time.perf_counter() - start
    return seconds


def kernel(signature: str, nogil: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile the decorated function for one signature, or fetch it from the cache.

    No full fastmath: it would let NaN through the clamps. Fused multiply-adds are welcome.

    Args:
        nogil: whether other threads may run meanwhile; costs a call 0.05 us, too much for the shortest kernels.
    """

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        numba, folder = _numba(), cache_folder()
        before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)
        try:
            return numba.njit(signature, cache=_is_writable(folder), nogil=nogil, **OPTIONS)(function)
        finally:
            numba.config.CACHE_DIR = before

    return compiled


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that kernels call; it is compiled into them."""
    return _numba().njit(forceinline=True, **OPTIONS)(function)


@contextmanager
def _announced(name: str) -> Generator[None]:
    """Say that compiling takes a while, unless this machine has compiled the same before."""
    numba = _numba()
    jit_is_off = bool(numba.config.DISABLE_JIT)
    tag = f"{name}-numba{numba.__version__}-py{sys.version.split()[0]}-{_processor()}"
    ready = cache_folder() / f"{tag}.ready"
    if jit_is_off or ready.exists():
        yield
        return
    text = f"mechanik: compiling kernels, about {KERNEL_MODULES.get(name, 5)} s, once on this machine"
    if sys.stderr and sys.stderr.isatty():  # a program without a console has no stderr
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    else:
        log.info(text)
    start = time.perf_counter()
    yield
    log.info("mechanik: compiled %s in %.1f s", name, time.perf_counter() - start)
    if _is_writable(ready.parent):
        ready.touch()
        _drop_old_stamps(ready.parent)


def _numba() -> Any:
    """Numba, imported late (it takes 0.3 s) and untyped (it has no types to offer)."""
    return importlib.import_module("numba")


def _processor() -> str:
    return str(importlib.import_module("llvmlite.binding").get_host_cpu_name())


def _is_writable(folder: Path) -> bool:
    """Whether machine code can be kept there; without, every process compiles for itself."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.access(folder, os.W_OK)
    except OSError:
        return False


def _drop_old_stamps(folder: Path) -> None:
    import shutil

    stamps = sorted(folder.parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in stamps[KEPT_STAMPS:]:
        shutil.rmtree(old, ignore_errors=True)
