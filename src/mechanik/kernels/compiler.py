"""Compiling kernels: once on a machine, said aloud, and never stale.

Numba's cache looks only at the file that holds a function, so a change in a helper of another file
would leave old machine code in use. Hence all kernels are cached in a folder that is named after the
contents of every kernel source. Rooms inside `kernels`, such as `kernels/distance`, have folders of their own, named
after their sources and those of `kernels` itself: what changes in one room leaves the others as they are.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

log = logging.getLogger("mechanik")

KERNEL_MODULES = {
    "forward": 5, "descent": 65, "look": 2, "chain": 13, "lanes": 6, "put_targets": 1, "distance.watch": 40,
    "distance.nearest_starts": 1, "tracking.step": 33, "planning.trees": 3, "planning.shortening": 2,
    "planning.corners": 2, "planning.certificate": 4, "planning.retraction": 6, "planning.curve": 3,
}  # fmt: skip
"""Each module of compiled kernels, with the seconds that compiling it took on a 2-core cloud machine."""
SECONDS_OF_OTHERS = 10

ROOT = "mechanik.kernels"
KEPT_STAMPS = 24
OPTIONS: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy"}
INSIDE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""For what only kernels call: a way in from Python would be compiled for each."""

_loaded: dict[str, ModuleType] = {}
_loading = threading.RLock()


@functools.cache
def source_stamp(room: str = "") -> str:
    """A name for the present contents of all kernel sources, and of those in one of the rooms inside."""
    return _digest(*(part for source in _sources(room) for part in (source.name.encode(), source.read_bytes())))


@functools.cache
def cache_folder(room: str = "") -> Path | None:
    """Where machine code for the present sources is kept; None where nothing can be written."""
    try:
        if given := os.environ.get("NUMBA_CACHE_DIR"):
            home = Path(given)
        elif sys.platform == "win32":
            home = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "Cache"
        elif sys.platform == "darwin":
            home = Path.home() / "Library" / "Caches"
        else:
            home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = home / "mechanik" / "kernels" / source_stamp(room)
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: there is no home at all, as in some containers
        return None
    return folder if os.access(folder, os.W_OK) else None


def load(name: str) -> ModuleType:
    """A module of kernels, compiled or fetched from the cache at its first use in a process.

    Args:
        name: of a module in `kernels` (`descent`, `distance.gaps`), or the whole name of one elsewhere that has
            kernels of its own.
    """
    module = _loaded.get(name)
    if module is None:
        with _loading:  # another thread may be half way through
            module = _loaded.get(name)
            if module is None:
                with _announced(name):
                    whole = name if name.startswith("mechanik.") else f"{ROOT}.{name}"
                    module = _loaded[name] = importlib.import_module(whole)
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


def warm_up(*others: str) -> dict[str, float]:
    """Load every kernel now, and those of other modules by their whole names; seconds taken by each."""
    seconds: dict[str, float] = {}
    for name in (*KERNEL_MODULES, *others):
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
        numba, folder = _numba(), cache_folder(_room(function.__module__))
        plain = functools.partial(numba.njit, signature, nogil=nogil, **OPTIONS)
        if folder is None:
            return plain()(function)
        before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)
        try:
            return plain(cache=True)(function)
        except Exception as error:
            # a full disk or a power cut may have left a cache half written: begin it anew; a fault of the kernel
            # itself comes a second time
            log.info("mechanik: the cache in %s cannot be read (%s) and is made anew", folder, error)
            _empty(folder)
            return plain(cache=True)(function)
        finally:
            numba.config.CACHE_DIR = before

    return compiled


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that kernels call; it is compiled into them."""
    return _numba().njit(forceinline=True, **OPTIONS, **INSIDE)(function)


def part(function: Callable[..., Any]) -> Callable[..., Any]:
    """A large function that kernels call and that is not copied into each place: it would take long to compile.

    Its sums may be taken in another order, which lets the compiler use vectors.
    """
    return _numba().njit(**{**OPTIONS, **INSIDE, "fastmath": {"contract", "reassoc"}})(function)


@contextmanager
def _announced(name: str) -> Generator[None]:
    """Say that compiling takes a while, unless this machine has compiled the same before."""
    room = _room(name if name.startswith("mechanik.") else f"{ROOT}.{name}")
    folder = cache_folder(room)
    ready = None if folder is None else folder / f"{name}-{_setting(room)}.ready"
    if _numba().config.DISABLE_JIT or (ready is not None and ready.exists()):
        yield
        return
    text = f"mechanik: compiling kernels, about {KERNEL_MODULES.get(name, SECONDS_OF_OTHERS)} s, once on this machine"
    if sys.stderr and sys.stderr.isatty():  # a program without a console has no stderr
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    else:
        log.info(text)
    start = time.perf_counter()
    yield
    log.info("mechanik: compiled %s in %.1f s", name, time.perf_counter() - start)
    if ready is not None:
        with suppress(OSError):
            ready.touch()
            _drop_old_stamps(ready.parent)


def _setting(room: str) -> str:
    """All that Numba's cache looks at besides the source: versions, the processor, the place and age of the files."""
    files = (f"{source}{source.stat().st_mtime_ns}" for source in _sources(room))
    processor = importlib.import_module("llvmlite.binding").get_host_cpu_name()
    return _digest(*(str(part).encode() for part in (_numba().__version__, sys.version, processor, *files)))


def _room(module: str) -> str:
    """The room inside `kernels` in which a module is; none for those in `kernels` itself, and elsewhere."""
    inside = module.removeprefix(f"{ROOT}.")
    return inside.partition(".")[0] if inside != module and "." in inside else ""


def _sources(room: str = "") -> list[Path]:
    here = Path(__file__).parent
    return sorted([*here.glob("*.py"), *(here / room).glob("*.py")] if room else here.glob("*.py"))


def _digest(*parts: bytes) -> str:
    import hashlib

    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _numba() -> Any:
    """Numba, imported late (it takes 0.3 s) and untyped (it has no types to offer)."""
    return importlib.import_module("numba")


def _empty(folder: Path) -> None:
    for file in folder.rglob("*.nb?"):
        with suppress(OSError):
            file.unlink()


def _drop_old_stamps(folder: Path) -> None:
    """Leave the machine code of the last few versions, and whatever is not ours."""
    import shutil

    stamps = [one for one in folder.parent.iterdir() if re.fullmatch("[0-9a-f]{16}", one.name)]
    for old in sorted(stamps, key=lambda one: one.stat().st_mtime, reverse=True)[KEPT_STAMPS:]:
        shutil.rmtree(old, ignore_errors=True)
