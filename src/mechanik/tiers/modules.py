"""Modules of kernels as objects whose functions run in the best tier that is ready."""

from __future__ import annotations

import functools
import logging
import math
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from mechanik.errors import KernelsUnavailable
from mechanik.tiers.availability import (
    NO_NUMBA,
    POLL_SECONDS,
    SERVICE_ENDED,
    can_compile,
    last_line,
    why_not_compiled,
)
from mechanik.tiers.plain import Functions, plain_functions, with_callees
from mechanik.tiers.prebuilt import prebuilt_functions

if TYPE_CHECKING:
    from mechanik.tiers.jit_cache import JitCache
    from mechanik.tiers.progress import Progress

log = logging.getLogger("mechanik")

KERNEL_MODULES: dict[str, float] = {
    "forward": 3, "descent": 22, "look": 2, "chain": 6, "lanes": 3, "put_targets": 1, "distance.watch": 16,
    "distance.nearest_starts": 1, "tracking.step": 13, "planning.trees": 2, "planning.shortening": 2,
    "planning.corners": 1, "planning.certificate": 2, "planning.retraction": 4, "planning.curve": 2, "ccd_sweep": 6,
    "methods.gradient_steps": 2, "methods.least_squares_steps": 3, "methods.finite_differences": 1,
    "methods.fabrik": 4,
}  # fmt: skip
"""Each module of kernels, with the processor seconds that compiling it took on a 2-core cloud machine."""
ENVIRONMENT = "MECHANIK_KERNELS"
NOT_PREBUILT = "this installation has no prebuilt kernels for its sources and this processor"
IN_BACKGROUND = (
    "mechanik: compiling kernels in the background, once on this machine and also after this program ends; "
    "answers are slower until then"
)


class Tier(StrEnum):
    """What runs kernels.

    Attributes:
        AUTO: the best that is ready; compiles in the background.
        PREBUILT: machine code of the wheel.
        JIT: machine code compiled on this machine; the first use waits for the compiler.
        PLAIN: Python.
    """

    AUTO = "auto"
    PREBUILT = "prebuilt"
    JIT = "jit"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class KernelState:
    """How one module of kernels is run.

    Attributes:
        module: its name.
        tier: what runs it now, or would at its next use.
        state: "ready", "compiling", "failed", "not compiled", or "missing" where the chosen tier cannot be had.
        age: seconds since its machine code was compiled; None without.
        reason: why compiling failed, or cannot be tried.
        is_used: whether this process has called it, or has asked for it by `prepare`.
    """

    module: str
    tier: Tier
    state: str
    age: float | None = None
    reason: str | None = None
    is_used: bool = False


class KernelModule:
    """The kernels of one module, as attributes; each runs in the best tier that is ready when it is called.

    Look functions up at each call (`forward.chain_pose(...)`): a reference that is kept stays in its tier.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._tier: Tier | None = None

    def __getattr__(self, function: str) -> Callable[..., Any]:
        # reached only until the module is loaded: then its functions are attributes of their own
        if function.startswith("_"):
            raise AttributeError(function)
        with _loader.lock:  # so that no other thread chooses a tier in between
            _loader.load(self)
            try:
                return self.__dict__[function]
            except KeyError:
                raise AttributeError(f"the kernels {self._name} have no function {function!r}") from None

    def __repr__(self) -> str:
        return f"<kernels {self._name}, {self._tier or 'not loaded'}>"

    def _install(self, functions: Functions, tier: Tier) -> None:
        self.__dict__.update(functions)
        self._tier = tier

    def _unload(self) -> None:
        for name in [name for name in self.__dict__ if not name.startswith("_")]:
            del self.__dict__[name]
        self._tier = None


class _Loader:
    """Chooses a tier for each module, and replaces plain Python when machine code is ready."""

    def __init__(self) -> None:
        self.modules: dict[str, KernelModule] = {}
        self.lock = threading.RLock()
        self._chosen: Tier | None = None
        self.used: dict[str, None] = {}
        self.pending: dict[str, None] = {}
        self.abandoned: set[str] = set()
        self.listeners: tuple[Callable[[], None], ...] = ()
        self._watcher: threading.Thread | None = None
        self._has_announced = False

    @functools.cached_property
    def jit(self) -> JitCache:
        """Machine code from the cache; with prebuilt kernels neither it nor what it imports is needed."""
        from mechanik.tiers.jit_cache import JitCache

        return JitCache()

    @property
    def chosen(self) -> Tier:
        if self._chosen is None:
            text = os.environ.get(ENVIRONMENT) or Tier.AUTO
            try:
                self._chosen = Tier(text)
            except ValueError:
                raise KernelsUnavailable(f"{ENVIRONMENT} is {text!r}, but must be one of {_names()}") from None
        return self._chosen

    def choose(self, tier: Tier) -> None:
        with self.lock:
            self._chosen = tier
            for module in self.modules.values():
                module._unload()

    def load(self, module: KernelModule) -> None:
        """Give a module its functions."""
        with self.lock:
            if module._tier is not None:
                return
            name, tier = module._name, self.chosen
            self.used[name] = None
            if tier in (Tier.AUTO, Tier.PREBUILT) and (functions := prebuilt_functions(name)) is not None:
                module._install(functions, Tier.PREBUILT)
            elif tier is Tier.PREBUILT:
                raise KernelsUnavailable(
                    f"there are no prebuilt kernels {name!r} for these sources and this processor: install a wheel, "
                    f"or choose another tier ({ENVIRONMENT}=auto)"
                )
            elif tier is Tier.JIT:
                self.wait([name])
                self.install_compiled(module)
            elif tier is Tier.PLAIN or not can_compile() or not self.install_compiled(module):
                module._install(plain_functions(name), Tier.PLAIN)
                if tier is Tier.AUTO and can_compile():
                    self._compile_in_background(name)
                self.notify()

    def install_compiled(self, module: KernelModule) -> bool:
        """Run a module by compiled kernels if they are in the cache; False if they are not."""
        functions = self.jit.functions(module._name) if self.jit.is_compiled(module._name) else None
        if functions is None:
            return False
        module._install(functions, Tier.JIT)
        return True

    def wait(self, names: list[str], what: str = "", progress: Progress | None = None) -> None:
        self.abandoned.difference_update(names)
        self.jit.wait(names, KERNEL_MODULES, what, progress)

    def prepare(self, names: tuple[str, ...]) -> None:
        with self.lock:
            self.used.update(dict.fromkeys(names))
            if self.chosen in (Tier.AUTO, Tier.JIT) and can_compile():
                is_jit = self.chosen is Tier.JIT
                self.pending.update(dict.fromkeys(name for name in names if is_jit or not prebuilt_functions(name)))
                self._start_watcher()
        self.notify()

    def notify(self) -> None:
        for listener in self.listeners:
            listener()

    def _compile_in_background(self, name: str) -> None:
        coming = self.jit.request([name], is_urgent=False)
        if not coming and not self.jit.is_compiled(name):
            if (reason := self.jit.failure(name)) is not None:
                _tell_failure(name, reason)
            return
        if coming:
            from mechanik.tiers.progress import is_terminal, write

            log.info("%s (%s)", IN_BACKGROUND, ", ".join(coming))
            if not self._has_announced and is_terminal():
                self._has_announced = True
                write(IN_BACKGROUND + "\n")
        self.pending[name] = None
        self._start_watcher()

    def _start_watcher(self) -> None:
        if self.pending and (self._watcher is None or not self._watcher.is_alive()):
            self._watcher = threading.Thread(target=self._watch, name="mechanik kernels", daemon=True)
            self._watcher.start()

    def _watch(self) -> None:
        """Request modules, and replace plain Python as machine code becomes ready; runs in a thread of its own."""
        while True:
            with self.lock:
                if not self.pending:
                    self._watcher = None
                    return
                pending = list(self.pending)
            for name in pending:
                if self._is_finished(name):
                    with self.lock:
                        self.pending.pop(name, None)
                    self.notify()
            time.sleep(POLL_SECONDS)

    def _is_finished(self, name: str) -> bool:
        """Whether nothing more is to be waited for: a module is compiled and in use, or will not be compiled."""
        if self.jit.is_compiled(name):
            self._take_over(name)
            return True
        callees = with_callees([name])
        for one in callees:
            reason = self.jit.failure(one)
            if reason is not None and not self.jit.is_requested(one) and not self.jit.request([one], is_urgent=False):
                _tell_failure(name, reason)
                return True
        if not any(map(self.jit.is_requested, callees)):
            if not self.jit.request([name], is_urgent=False) and not self.jit.is_compiled(name):
                return True  # there is no folder to compile to
        elif not self.jit.keep_service():
            self.abandoned.add(name)
            return True
        return False

    def _take_over(self, name: str) -> None:
        module = self.modules.get(name)
        if module is None or module._tier is not Tier.PLAIN:
            return  # it is loaded when it is called
        from mechanik.tiers.jit_cache import short_switches

        with self.jit.loading, short_switches():  # not with `self.lock`: nobody waits for this
            functions = self.jit.functions(name)
        with self.lock:
            if functions is not None and module._tier is Tier.PLAIN and self.chosen is Tier.AUTO:
                module._install(functions, Tier.JIT)
                log.info("mechanik: the compiled kernels %s are in use", name)

    def prepare_fork(self) -> None:
        if "jit" in self.__dict__:
            self.jit.prepare_fork()

    def end_fork(self) -> None:
        if "jit" in self.__dict__:
            self.jit.end_fork()

    def renew_after_fork(self) -> None:
        """In a forked process there are no other threads: locks that they held are open, and a new one watches."""
        self.lock = threading.RLock()
        self._watcher = None
        if "jit" in self.__dict__:
            self.jit.renew_after_fork()
        with self.lock:
            self._start_watcher()


_loader = _Loader()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_loader.prepare_fork, after_in_parent=_loader.end_fork, after_in_child=_loader.renew_after_fork
    )


def kernel_module(name: str) -> KernelModule:
    """The kernels of a module (`forward`, `distance.watch`); nothing is loaded before one of them is called."""
    with _loader.lock:
        return _loader.modules.setdefault(name, KernelModule(name))


def use_kernels(tier: str) -> None:
    """Choose what runs kernels, from the next call on.

    Args:
        tier: "auto" (the best that is ready), "prebuilt", "jit" (waits for the compiler) or "plain" (Python, for
            debugging). The environment variable MECHANIK_KERNELS says the same for a whole process.

    Raises:
        KernelsUnavailable: there is no such tier, or it cannot be had here.
    """
    try:
        chosen = Tier(tier)
    except ValueError:
        raise KernelsUnavailable(f"kernels cannot be run by {tier!r}; choose one of {_names()}") from None
    if chosen is Tier.JIT and not can_compile():
        raise KernelsUnavailable(why_not_compiled() or NO_NUMBA)
    if chosen is Tier.PREBUILT and prebuilt_functions("forward") is None:
        raise KernelsUnavailable(NOT_PREBUILT)
    _loader.choose(chosen)


def wait_for(*names: str, what: str = "", plain_seconds: float = math.inf) -> None:
    """Wait until modules of kernels are compiled, for long work that is not worth beginning in plain Python.

    Returns at once where they are, where plain Python was chosen, and where nothing can be compiled.

    Args:
        what: what needs them, for the progress line.
        plain_seconds: how long the work would take in plain Python; if compiling takes longer, nobody waits.
    """
    if _loader.chosen is not Tier.AUTO or not can_compile():
        return
    slow: list[KernelModule] = []
    for module in map(kernel_module, names):
        _loader.load(module)
        if module._tier is Tier.PLAIN:
            slow.append(module)
    if not slow or plain_seconds < sum(KERNEL_MODULES.get(module._name, 10.0) for module in slow):
        return
    try:
        _loader.wait([module._name for module in slow], what)
    except KernelsUnavailable as error:
        log.warning("mechanik: %s; plain Python is used", error)
        return
    with _loader.lock:
        for module in slow:
            _loader.install_compiled(module)


def prepare(*names: str) -> None:
    """Ask for modules of kernels that will be used soon: they are compiled in the background. Returns at once.

    Does nothing for those that are compiled, where plain Python was chosen, and where nothing can be compiled.
    """
    _loader.prepare(names)


def is_compiling(name: str) -> bool:
    """Whether this process waits for the machine code of a module, and meanwhile runs it in plain Python.

    Reads no file, so it can be asked often.
    """
    return name in _loader.pending


def on_kernel_change(listener: Callable[[], None]) -> Callable[[], None]:
    """Call back when a module begins to be used in plain Python, is requested, is replaced or is given up.

    Args:
        listener: called from any thread, with locks held: it must return at once and call nothing of this package.

    Returns:
        What ends it.
    """
    with _loader.lock:
        _loader.listeners = (*_loader.listeners, listener)

    def end() -> None:
        with _loader.lock:
            _loader.listeners = tuple(one for one in _loader.listeners if one is not listener)

    return end


def warm_up(progress: Progress | None = None) -> None:
    """Compile all kernels now, in parallel, so that nothing runs in plain Python afterwards.

    Does nothing where prebuilt kernels are installed.

    Args:
        progress: is told how far it is; None: a line on stderr.
    """
    if _loader.chosen in (Tier.AUTO, Tier.JIT):
        names = [name for name in KERNEL_MODULES if _loader.chosen is Tier.JIT or not prebuilt_functions(name)]
        if names:
            _loader.wait(names, progress=progress)
        wait_for(*KERNEL_MODULES)


def ends_with_process() -> bool:
    """Whether what is being compiled for this process ends with it, since the cache folder cannot be written."""
    return _loader.jit.is_private


def kernel_states(only_used: bool = False) -> list[KernelState]:
    """How each module of kernels is run now, or would be at its next use; reads the cache folder.

    Args:
        only_used: leave out those that this process has neither called nor prepared.
    """
    return [_state(name) for name in KERNEL_MODULES if not only_used or name in _loader.used]


def _state(name: str) -> KernelState:
    chosen, jit, is_used = _loader.chosen, _loader.jit, name in _loader.used
    if chosen in (Tier.AUTO, Tier.PREBUILT) and prebuilt_functions(name) is not None:
        return KernelState(name, Tier.PREBUILT, "ready", is_used=is_used)
    if chosen is Tier.PREBUILT:
        return KernelState(name, Tier.PREBUILT, "missing", None, NOT_PREBUILT, is_used)
    if chosen is Tier.PLAIN:
        return KernelState(name, Tier.PLAIN, "ready", is_used=is_used)
    if (reason := why_not_compiled()) is not None:
        return KernelState(name, Tier.PLAIN, "not compiled", None, reason, is_used)
    if jit.is_compiled(name):
        module, file, age = _loader.modules.get(name), jit.compiled_file(name), None
        with suppress(OSError):
            age = None if file is None else max(0.0, time.time() - file.stat().st_mtime)
        tier = Tier.JIT if module is None else module._tier or Tier.JIT
        return KernelState(name, tier, "ready", age, None, is_used)
    if name in _loader.abandoned:
        return KernelState(name, Tier.PLAIN, "failed", None, SERVICE_ENDED, is_used)
    callees = with_callees([name])
    if name in _loader.pending or any(map(jit.is_requested, callees)):
        return KernelState(name, Tier.PLAIN, "compiling", is_used=is_used)
    if (reason := next(filter(None, map(jit.failure, callees)), None)) is not None:
        return KernelState(name, Tier.PLAIN, "failed", None, reason, is_used)
    return KernelState(name, Tier.PLAIN, "not compiled", is_used=is_used)


def _tell_failure(name: str, reason: str) -> None:
    log.warning(
        "mechanik: the kernels %s cannot be compiled, so answers stay slow: %s. `mechanik warmup` tries again.",
        name,
        last_line(reason).rstrip("."),
    )


def _names() -> str:
    return ", ".join(Tier)
