"""Kernel modules as objects whose functions run in the best tier that is ready, and the choice of the tier.

A module that is not compiled yet runs in plain Python. A background thread replaces its functions when the compile
service has written the machine code.
"""

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
    NUMBA_MISSING,
    POLL_SECONDS,
    SERVICE_ENDED,
    can_compile,
    failure_summary,
    prebuilt_functions,
    why_not_compilable,
)
from mechanik.tiers.kernel_sources import KernelFunctions, plain_functions, with_callees

if TYPE_CHECKING:
    from mechanik.tiers.compile_progress import CompileMonitor
    from mechanik.tiers.jit_cache import JitCache

log = logging.getLogger("mechanik")

KERNEL_MODULES: dict[str, float] = {
    "forward": 3, "descent": 22, "dense_evaluation": 2, "chain_kernel": 6, "lane_kernel": 3, "write_targets": 1,
    "distance.collision_query": 16,
    "distance.nearest_seeds": 1, "tracking.tracking_step": 13, "planning.tree_growth": 2, "planning.path_shortening": 2,
    "planning.corner_rounding": 1, "planning.motion_certificate": 2, "planning.loop_retraction": 4,
    "planning.spline_clearance": 2, "methods.ccd_sweep": 6,
    "methods.gradient_steps": 2, "methods.least_squares_steps": 3, "methods.difference_gradient": 1,
    "methods.fabrik_sweep": 4,
}  # fmt: skip
"""All kernel modules, with the processor time in s to compile each on a 2-core cloud machine."""
TIER_VARIABLE = "MECHANIK_KERNELS"
NOT_PREBUILT = "this installation has no prebuilt kernels for its sources and this processor"
COMPILING_MESSAGE = (
    "mechanik: compiling kernels in the background, once on this machine and also after this program ends; "
    "solving is slower until then"
)


class Tier(StrEnum):
    """Execution tier of kernels.

    Attributes:
        AUTO: the best tier that is ready; missing machine code is compiled in the background.
        PREBUILT: machine code of the installed wheel.
        JIT: machine code compiled on this machine; the first use waits for the compiler.
        PLAIN: plain Python.

    Example:
        >>> [str(tier) for tier in mk.tiers.Tier]
        ['auto', 'prebuilt', 'jit', 'plain']
    """

    AUTO = "auto"
    PREBUILT = "prebuilt"
    JIT = "jit"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class KernelState:
    """Tier and compile state of a kernel module.

    Attributes:
        module: name of the kernel module.
        tier: tier of the module now, or at its next use.
        state: "ready", "compiling", "failed", "not compiled", or "missing" if the chosen tier is not available.
        age: s since its machine code was compiled; None if it is not JIT-compiled.
        reason: why compiling failed, or is not possible; None otherwise.
        is_used: whether this process has called the module, or has requested it by `request_kernels`.

    Example:
        >>> mk.tiers.KernelState("forward", mk.tiers.Tier.PLAIN, "compiling").age is None
        True
    """

    module: str
    tier: Tier
    state: str
    age: float | None = None
    reason: str | None = None
    is_used: bool = False


class KernelModule:
    """A kernel module with its kernels as attributes; each runs in the best tier that is ready.

    Look up the function at each call (`forward.chain_pose(...)`): a stored reference stays in its tier.

    Example:
        >>> forward = mk.tiers.kernel_module("forward")
        >>> callable(forward.chain_pose)
        True
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._tier: Tier | None = None

    def __getattr__(self, function: str) -> Callable[..., Any]:
        # called only until the module is loaded: then its functions are instance attributes
        if function.startswith("_"):
            raise AttributeError(function)
        with _loader.lock:  # no other thread may choose a tier between the two lines below
            _loader.load(self)
            try:
                return self.__dict__[function]
            except KeyError:
                raise AttributeError(f"the kernels {self._name} have no function {function!r}") from None

    def __repr__(self) -> str:
        return f"<kernels {self._name}, {self._tier or 'not loaded'}>"

    def _install(self, functions: KernelFunctions, tier: Tier) -> None:
        self.__dict__.update(functions)
        self._tier = tier

    def _unload(self) -> None:
        for name in [name for name in self.__dict__ if not name.startswith("_")]:
            del self.__dict__[name]
        self._tier = None


class _Loader:
    """Loader that chooses a tier for each kernel module and replaces plain Python when machine code is ready.

    Attributes:
        modules: all kernel modules of this process, by name.
        lock: protects the fields and the loading of modules.
        used: names of modules that were called or requested.
        pending: names of modules that wait for the compiler.
        abandoned: names of modules whose compile service was killed too often.
        listeners: callbacks of `on_kernel_change`.
    """

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
        """JIT-compiled kernels; imported on first use, since prebuilt kernels do not need them."""
        from mechanik.tiers.jit_cache import JitCache

        return JitCache()

    @property
    def chosen(self) -> Tier:
        if self._chosen is None:
            text = os.environ.get(TIER_VARIABLE) or Tier.AUTO
            try:
                self._chosen = Tier(text)
            except ValueError:
                raise KernelsUnavailable(f"{TIER_VARIABLE} is {text!r}, but must be one of {_tier_names()}") from None
        return self._chosen

    def choose(self, tier: Tier) -> None:
        with self.lock:
            self._chosen = tier
            for module in self.modules.values():
                module._unload()

    def load(self, module: KernelModule) -> None:
        """Load the functions of a kernel module in the chosen tier."""
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
                    f"or choose another tier ({TIER_VARIABLE}=auto)"
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
        """Switch a kernel module to compiled kernels from the cache; False if they are not there."""
        functions = self.jit.functions(module._name) if self.jit.is_compiled(module._name) else None
        if functions is None:
            return False
        module._install(functions, Tier.JIT)
        return True

    def wait(self, names: list[str], what: str = "", progress: CompileMonitor | None = None) -> None:
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
        requested = self.jit.request([name], is_urgent=False)
        if not requested and not self.jit.is_compiled(name):
            if (reason := self.jit.failure(name)) is not None:
                _warn_compile_failed(name, reason)
            return
        if requested:
            from mechanik.tiers.compile_progress import is_terminal, write_stderr

            log.info("%s (%s)", COMPILING_MESSAGE, ", ".join(requested))
            if not self._has_announced and is_terminal():
                self._has_announced = True
                write_stderr(COMPILING_MESSAGE + "\n")
        self.pending[name] = None
        self._start_watcher()

    def _start_watcher(self) -> None:
        if self.pending and (self._watcher is None or not self._watcher.is_alive()):
            self._watcher = threading.Thread(target=self._watch, name="mechanik kernels", daemon=True)
            self._watcher.start()

    def _watch(self) -> None:
        """Body of the watcher thread: request pending modules and replace plain Python when machine code is ready."""
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
        """Whether a pending module needs no more waiting: it is compiled and in use, or will not be compiled."""
        if self.jit.is_compiled(name):
            self._switch_to_compiled(name)
            return True
        callees = with_callees([name])
        for callee in callees:
            reason = self.jit.failure(callee)
            if (
                reason is not None
                and not self.jit.is_requested(callee)
                and not self.jit.request([callee], is_urgent=False)
            ):
                _warn_compile_failed(name, reason)
                return True
        if not any(map(self.jit.is_requested, callees)):
            if not self.jit.request([name], is_urgent=False) and not self.jit.is_compiled(name):
                return True  # no folder can be written
        elif not self.jit.keep_service():
            self.abandoned.add(name)
            return True
        return False

    def _switch_to_compiled(self, name: str) -> None:
        module = self.modules.get(name)
        if module is None or module._tier is not Tier.PLAIN:
            return  # the next call loads it
        from mechanik.tiers.jit_cache import short_switches

        with self.jit.loading, short_switches():  # without `self.lock`, so that other threads can call kernels
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
        """Reset the lock and start a new watcher in a forked process, which has no other threads."""
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
    """Return a kernel module by name (`forward`, `distance.collision_query`); its kernels are loaded at the first call.

    Args:
        name: a key of `KERNEL_MODULES`.

    Returns:
        The module, the same object for each call with this name.

    Example:
        >>> mk.tiers.kernel_module("forward") is mk.tiers.kernel_module("forward")
        True
    """
    with _loader.lock:
        return _loader.modules.setdefault(name, KernelModule(name))


def use_kernels(tier: str) -> None:
    """Choose the tier that runs all kernels, from the next call on.

    The environment variable MECHANIK_KERNELS sets the tier of a whole process.

    Args:
        tier: "auto" (the best tier that is ready), "prebuilt", "jit" (waits for the compiler) or "plain" (Python, for
            debugging).

    Raises:
        KernelsUnavailable: there is no such tier, or it is not available here.

    Example:
        >>> import os
        >>> mk.use_kernels("plain")
        >>> mk.gallery.planar_2r().pose("tool").shape
        (4, 4)
        >>> mk.use_kernels(os.environ.get("MECHANIK_KERNELS") or "auto")
    """
    try:
        chosen = Tier(tier)
    except ValueError:
        raise KernelsUnavailable(f"there is no kernel tier {tier!r}; choose one of {_tier_names()}") from None
    if chosen is Tier.JIT and not can_compile():
        raise KernelsUnavailable(why_not_compilable() or NUMBA_MISSING)
    if chosen is Tier.PREBUILT and prebuilt_functions("forward") is None:
        raise KernelsUnavailable(NOT_PREBUILT)
    _loader.choose(chosen)


def wait_for_kernels(*names: str, what: str = "", plain_seconds: float = math.inf) -> None:
    """Wait until kernel modules are compiled, before long work that would be too slow in plain Python.

    It returns at once if they are compiled, if another tier than "auto" is chosen, or if nothing can be compiled. A
    failure of the compiler is logged; plain Python is used then.

    Args:
        names: names of kernel modules.
        what: the work that needs them, for the progress line.
        plain_seconds: expected time of the work in plain Python, s; if compiling takes longer, it does not wait.

    Example:
        >>> mk.tiers.wait_for_kernels("forward", what="an example", plain_seconds=0.1)
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


def request_kernels(*names: str) -> None:
    """Request kernel modules that will be used soon: they are compiled in the background. Returns at once.

    It does nothing for compiled modules, if the tier "plain" or "prebuilt" is chosen, or if nothing can be compiled.

    Args:
        names: names of kernel modules.

    Example:
        >>> mk.tiers.request_kernels("forward")
    """
    _loader.prepare(names)


def is_compiling(name: str) -> bool:
    """Whether this process runs a kernel module in plain Python while its machine code is compiled.

    It reads no file, so frequent calls are cheap.

    Args:
        name: name of a kernel module.

    Example:
        >>> mk.tiers.is_compiling("no_such_module")
        False
    """
    return name in _loader.pending


def on_kernel_change(listener: Callable[[], None]) -> Callable[[], None]:
    """Register a callback for changes of kernel modules: used in plain Python, requested, replaced or abandoned.

    Args:
        listener: called from any thread while locks are held: it must return at once and call nothing of this package.

    Returns:
        A function that removes the callback.

    Example:
        >>> calls = []
        >>> remove = mk.tiers.on_kernel_change(lambda: calls.append("change"))
        >>> mk.tiers.request_kernels("forward")
        >>> calls[:1]
        ['change']
        >>> remove()
    """
    with _loader.lock:
        _loader.listeners = (*_loader.listeners, listener)

    def remove() -> None:
        with _loader.lock:
            _loader.listeners = tuple(registered for registered in _loader.listeners if registered is not listener)

    return remove


def warm_up(progress: CompileMonitor | None = None) -> None:
    """Compile all kernels now, in parallel, so that no kernel runs in plain Python afterwards.

    It does nothing if prebuilt kernels are installed, or if the tier "plain" or "prebuilt" is chosen.

    Args:
        progress: progress display; None: a line on stderr.

    Raises:
        KernelsUnavailable: the kernels cannot be compiled.

    Example:
        >>> import os
        >>> mk.use_kernels("plain")
        >>> mk.warm_up()  # nothing to compile for plain Python
        >>> mk.use_kernels(os.environ.get("MECHANIK_KERNELS") or "auto")
    """
    if _loader.chosen in (Tier.AUTO, Tier.JIT):
        names = [name for name in KERNEL_MODULES if _loader.chosen is Tier.JIT or not prebuilt_functions(name)]
        if names:
            _loader.wait(names, progress=progress)
        wait_for_kernels(*KERNEL_MODULES)


def is_cache_private() -> bool:
    """Whether compiled kernels are lost when this process ends, since the cache folder cannot be written.

    Example:
        >>> isinstance(mk.tiers.is_cache_private(), bool)
        True
    """
    return _loader.jit.is_private


def kernel_states(only_used: bool = False) -> list[KernelState]:
    """Return the tier and compile state of all kernel modules; reads the cache folder.

    Args:
        only_used: whether to omit modules that this process has neither called nor requested.

    Returns:
        The states, in the order of `KERNEL_MODULES`.

    Example:
        >>> states = mk.tiers.kernel_states()
        >>> len(states) == len(mk.tiers.KERNEL_MODULES)
        True
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
    if (reason := why_not_compilable()) is not None:
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


def _warn_compile_failed(name: str, reason: str) -> None:
    log.warning(
        "mechanik: the kernels %s cannot be compiled, so solving stays slow: %s. `mechanik warmup` tries again.",
        name,
        failure_summary(reason).rstrip("."),
    )


def _tier_names() -> str:
    return ", ".join(Tier)
