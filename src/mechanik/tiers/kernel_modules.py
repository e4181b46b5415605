"""Kernel modules as objects whose functions run in the selected tier, and the selection of the tier.

With the default tier "auto", a module that is not compiled yet runs in plain Python. A background thread replaces its
functions by compiled functions when the compile service has written the machine code.
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
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mechanik.errors import KernelsUnavailable
from mechanik.tiers.availability import (
    NUMBA_MISSING,
    POLL_SECONDS,
    SERVICE_ENDED,
    can_compile,
    failure_summary,
    prebuilt_functions,
    reason_not_compilable,
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
"""Kernel modules of the package, each with the processor time to compile it on a 2-core cloud machine, s.

`distance.shape_distance` also has a kernel, which only tests and benchmarks call."""
TIER_VARIABLE = "MECHANIK_KERNELS"
"""Environment variable that selects the tier."""
NOT_PREBUILT = "this installation has no prebuilt kernels for its sources and this processor"
COMPILING_MESSAGE = (
    "mechanik: compiling kernels in the background, once on this machine; solving is slower until the kernels are ready"
)


class Tier(StrEnum):
    """Execution tier of kernels.

    Attributes:
        AUTO: the fastest tier that is ready; missing machine code is compiled in the background.
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
        tier: tier of the module, or its tier at the next use; PLAIN if "auto" or "jit" is selected and there is no
            machine code.
        state: "ready", "compiling", "failed", "not compiled", or "missing" if the tier "prebuilt" is selected but not
            available.
        age: time since the machine code in the cache was compiled, s; None if the state does not depend on the cache,
            or the module has no file in it.
        reason: reason why compiling failed or is not possible, or why the module is missing; None otherwise.
        is_used: whether this process has loaded the module or has requested it by `request_kernels`.

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


class KernelModule(ModuleType):
    """A kernel module with its kernels as attributes; by default they run in the fastest tier that is ready.

    Access the function as an attribute at each call (`forward.chain_pose(...)`): a stored reference keeps its tier. A
    module of Python takes 0.1 us less for this access than an object whose class has `__getattr__`.

    Example:
        >>> forward = mk.tiers.kernel_module("forward")
        >>> callable(forward.chain_pose)
        True
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._name = name
        self._tier: Tier | None = None
        vars(self)["__getattr__"] = self._load_function

    if TYPE_CHECKING:

        def __getattr__(self, function_name: str) -> Callable[..., Any]: ...

    def _load_function(self, function_name: str) -> Callable[..., Any]:
        """Load the module and return a function; Python calls this for attributes that the module does not have."""
        if function_name.startswith("_"):
            raise AttributeError(function_name)
        with _loader.lock:  # no other thread may change the tier between loading and access
            _loader.load(self)
            try:
                return self.__dict__[function_name]
            except KeyError:
                raise AttributeError(f"the kernels {self._name} have no function {function_name!r}") from None

    def __repr__(self) -> str:
        return f"<kernels {self._name}, {self._tier or 'not loaded'}>"

    def _set_functions(self, functions: KernelFunctions, tier: Tier) -> None:
        self.__dict__.update(functions)
        self._tier = tier

    def _unload(self) -> None:
        for name in [name for name in self.__dict__ if not name.startswith("_")]:
            del self.__dict__[name]
        self._tier = None


class _Loader:
    """A loader that selects a tier for each kernel module and replaces plain Python when machine code is ready.

    Attributes:
        modules: all kernel modules of this process, by name.
        lock: protects the fields and the loading of modules.
        used_modules: names of modules that were loaded or requested.
        pending_modules: names of modules that wait for the compiler.
        abandoned_modules: names of modules whose compile service was killed too often or could not be started.
        listeners: callbacks of `on_kernel_change`.
    """

    def __init__(self) -> None:
        self.modules: dict[str, KernelModule] = {}
        self.lock = threading.RLock()
        self._selected_tier: Tier | None = None
        self.used_modules: dict[str, None] = {}
        self.pending_modules: dict[str, None] = {}
        self.abandoned_modules: set[str] = set()
        self.listeners: tuple[Callable[[], None], ...] = ()
        self._watcher: threading.Thread | None = None
        self._has_shown_message = False

    @functools.cached_property
    def jit(self) -> JitCache:
        """The JIT-compiled kernels; `jit_cache` is imported on first use, since prebuilt kernels do not need it."""
        from mechanik.tiers.jit_cache import JitCache

        return JitCache()

    @property
    def selected_tier(self) -> Tier:
        if self._selected_tier is None:
            text = os.environ.get(TIER_VARIABLE) or Tier.AUTO
            try:
                self._selected_tier = Tier(text)
            except ValueError:
                raise KernelsUnavailable(f"{TIER_VARIABLE} is {text!r}, but must be one of {_tier_names()}") from None
        return self._selected_tier

    def select_tier(self, tier: Tier) -> None:
        with self.lock:
            self._selected_tier = tier
            for module in self.modules.values():
                module._unload()

    def load(self, module: KernelModule) -> None:
        """Load the functions of a kernel module in the selected tier, unless the module is already loaded."""
        with self.lock:
            if module._tier is not None:
                return
            name, tier = module._name, self.selected_tier
            self.used_modules[name] = None
            if tier in (Tier.AUTO, Tier.PREBUILT) and (functions := prebuilt_functions(name)) is not None:
                module._set_functions(functions, Tier.PREBUILT)
            elif tier is Tier.PREBUILT:
                raise KernelsUnavailable(
                    f"there are no prebuilt kernels {name!r} for these sources and this processor: install a wheel, "
                    f"or select another tier ({TIER_VARIABLE}=auto)"
                )
            elif tier is Tier.JIT:
                self.wait([name])
                self.install_compiled(module)
            elif tier is Tier.PLAIN or not can_compile() or not self.install_compiled(module):
                module._set_functions(plain_functions(name), Tier.PLAIN)
                if tier is Tier.AUTO and can_compile():
                    self._compile_in_background(name)
                self.notify()

    def install_compiled(self, module: KernelModule) -> bool:
        """Switch a kernel module to compiled kernels from the cache; returns False if they cannot be loaded."""
        functions = self.jit.functions(module._name) if self.jit.is_compiled(module._name) else None
        if functions is None:
            return False
        module._set_functions(functions, Tier.JIT)
        return True

    def wait(self, names: list[str], work: str = "", progress: CompileMonitor | None = None) -> None:
        self.abandoned_modules.difference_update(names)
        self.jit.wait(names, KERNEL_MODULES, work, progress)

    def request(self, names: tuple[str, ...]) -> None:
        with self.lock:
            self.used_modules.update(dict.fromkeys(names))
            if self.selected_tier in (Tier.AUTO, Tier.JIT) and can_compile():
                is_jit = self.selected_tier is Tier.JIT
                self.pending_modules.update(
                    dict.fromkeys(name for name in names if is_jit or not prebuilt_functions(name))
                )
                self._start_watcher()
        self.notify()

    def notify(self) -> None:
        for listener in self.listeners:
            listener()

    def _compile_in_background(self, name: str) -> None:
        requested_modules = self.jit.request([name], is_urgent=False)
        if not requested_modules and not self.jit.is_compiled(name):
            if (reason := self.jit.failure(name)) is not None:
                _warn_compile_failed(name, reason)
            return
        if requested_modules:
            from mechanik.tiers.compile_progress import is_terminal, write_stderr

            log.info("%s (%s)", COMPILING_MESSAGE, ", ".join(requested_modules))
            if not self._has_shown_message and is_terminal():
                self._has_shown_message = True
                write_stderr(COMPILING_MESSAGE + "\n")
        self.pending_modules[name] = None
        self._start_watcher()

    def _start_watcher(self) -> None:
        if self.pending_modules and (self._watcher is None or not self._watcher.is_alive()):
            self._watcher = threading.Thread(target=self._watch, name="mechanik kernels", daemon=True)
            self._watcher.start()

    def _watch(self) -> None:
        """Run in the watcher thread: request pending modules and replace plain Python when machine code is ready."""
        while True:
            with self.lock:
                if not self.pending_modules:
                    self._watcher = None
                    return
                pending_names = list(self.pending_modules)
            for name in pending_names:
                if self._advance_pending(name):
                    with self.lock:
                        self.pending_modules.pop(name, None)
                    self.notify()
            time.sleep(POLL_SECONDS)

    def _advance_pending(self, name: str) -> bool:
        """Request a pending module, or switch to its machine code.

        Returns:
            Whether the module is no longer pending: it is compiled, or it cannot be compiled.
        """
        if self.jit.is_compiled(name):
            self._switch_to_compiled(name)
            return True
        required_modules = with_callees([name])
        for required_module in required_modules:
            reason = self.jit.failure(required_module)
            if (
                reason is not None
                and not self.jit.is_requested(required_module)
                and not self.jit.request([required_module], is_urgent=False)
            ):
                _warn_compile_failed(name, reason)
                return True
        if not any(map(self.jit.is_requested, required_modules)):
            if not self.jit.request([name], is_urgent=False) and not self.jit.is_compiled(name):
                return True  # no folder can be written
        elif not self.jit.ensure_service():
            self.abandoned_modules.add(name)
            return True
        return False

    def _switch_to_compiled(self, name: str) -> None:
        module = self.modules.get(name)
        if module is None or module._tier is not Tier.PLAIN:
            return  # nothing to replace; a module that is not loaded yet loads its compiled kernels at the next call
        from mechanik.tiers.jit_cache import short_switches

        with self.jit.loading_lock, short_switches():  # `self.lock` is not held, so that other threads can call kernels
            functions = self.jit.functions(name)
        with self.lock:
            if functions is not None and module._tier is Tier.PLAIN and self.selected_tier is Tier.AUTO:
                module._set_functions(functions, Tier.JIT)
                log.info("mechanik: the compiled kernels %s are in use", name)

    def prepare_fork(self) -> None:
        if "jit" in self.__dict__:
            self.jit.prepare_fork()

    def release_after_fork(self) -> None:
        if "jit" in self.__dict__:
            self.jit.release_after_fork()

    def reset_after_fork(self) -> None:
        """In a forked process, reset the lock and start a new watcher: a fork does not copy threads."""
        self.lock = threading.RLock()
        self._watcher = None
        if "jit" in self.__dict__:
            self.jit.reset_after_fork()
        with self.lock:
            self._start_watcher()


_loader = _Loader()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_loader.prepare_fork, after_in_parent=_loader.release_after_fork, after_in_child=_loader.reset_after_fork
    )


def kernel_module(name: str) -> KernelModule:
    """Return a kernel module by name, such as "forward"; its kernels are loaded at the first access to one of them.

    Args:
        name: a key of `KERNEL_MODULES`.

    Returns:
        The module; calls with the same name return the same object.

    Example:
        >>> mk.tiers.kernel_module("forward") is mk.tiers.kernel_module("forward")
        True
    """
    with _loader.lock:
        return _loader.modules.setdefault(name, KernelModule(name))


def use_kernels(tier: str) -> None:
    """Select the tier of all kernels, from the next call on.

    The environment variable MECHANIK_KERNELS sets the initial tier of a process.

    Args:
        tier: "auto" (the fastest tier that is ready), "prebuilt", "jit" (waits for the compiler) or "plain" (Python,
            for debugging).

    Raises:
        KernelsUnavailable: the tier does not exist, or is not available on this machine.

    Example:
        >>> import os
        >>> mk.use_kernels("plain")
        >>> mk.gallery.planar_2r().pose("tool").shape
        (4, 4)
        >>> mk.use_kernels(os.environ.get("MECHANIK_KERNELS") or "auto")
    """
    try:
        selected_tier = Tier(tier)
    except ValueError:
        raise KernelsUnavailable(f"there is no kernel tier {tier!r}; choose one of {_tier_names()}") from None
    if selected_tier is Tier.JIT and not can_compile():
        raise KernelsUnavailable(reason_not_compilable() or NUMBA_MISSING)
    if selected_tier is Tier.PREBUILT and prebuilt_functions("forward") is None:
        raise KernelsUnavailable(NOT_PREBUILT)
    _loader.select_tier(selected_tier)


def wait_for_kernels(*names: str, what: str = "", plain_seconds: float = math.inf) -> None:
    """Wait until kernel modules are compiled, before long work that would be too slow in plain Python.

    The function does not wait if the modules are compiled, if the selected tier is not "auto", or if this machine
    cannot compile. If the compiler fails, the failure is logged and plain Python is used.

    Args:
        names: names of kernel modules.
        what: the work that needs the kernels, for the progress line.
        plain_seconds: expected time of the work in plain Python, s; if compiling is expected to take longer, the
            function does not wait.

    Example:
        >>> mk.tiers.wait_for_kernels("forward", what="an example", plain_seconds=0.1)
    """
    if _loader.selected_tier is not Tier.AUTO or not can_compile():
        return
    plain_modules: list[KernelModule] = []
    for module in map(kernel_module, names):
        _loader.load(module)
        if module._tier is Tier.PLAIN:
            plain_modules.append(module)
    if not plain_modules or plain_seconds < sum(KERNEL_MODULES.get(module._name, 10.0) for module in plain_modules):
        return
    try:
        _loader.wait([module._name for module in plain_modules], what)
    except KernelsUnavailable as error:
        log.warning("mechanik: %s; plain Python is used", error)
        return
    with _loader.lock:
        for module in plain_modules:
            _loader.install_compiled(module)


def request_kernels(*names: str) -> None:
    """Request kernel modules that will be used soon: they are compiled in the background. Returns immediately.

    Compiled modules are not compiled again. Nothing is compiled if the tier "plain" or "prebuilt" is selected, or if
    this machine cannot compile.

    Args:
        names: names of kernel modules.

    Example:
        >>> mk.tiers.request_kernels("forward")
    """
    _loader.request(names)


def is_compiling(name: str) -> bool:
    """Return whether a kernel module that this process has loaded or requested waits for its machine code.

    The function reads no file, so frequent calls are cheap.

    Args:
        name: name of a kernel module.

    Example:
        >>> mk.tiers.is_compiling("no_such_module")
        False
    """
    return name in _loader.pending_modules


def on_kernel_change(listener: Callable[[], None]) -> Callable[[], None]:
    """Register a callback for changes of kernel modules: used in plain Python, requested, compiled or failed.

    Args:
        listener: called from any thread, possibly while locks are held; it must return immediately and must not call
            functions of this package.

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
            _loader.listeners = tuple(
                registered_listener for registered_listener in _loader.listeners if registered_listener is not listener
            )

    return remove


def warm_up(progress: CompileMonitor | None = None) -> None:
    """Compile all kernels in parallel and wait for them, so that no kernel runs in plain Python afterwards.

    With the tier "auto", modules with prebuilt kernels are not compiled. The function does nothing if the tier "plain"
    or "prebuilt" is selected.

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
    if _loader.selected_tier in (Tier.AUTO, Tier.JIT):
        names = [name for name in KERNEL_MODULES if _loader.selected_tier is Tier.JIT or not prebuilt_functions(name)]
        if names:
            _loader.wait(names, progress=progress)
        wait_for_kernels(*KERNEL_MODULES)


def is_cache_private() -> bool:
    """Return whether compiled kernels are removed when this process ends, because the cache folder is not writable.

    Example:
        >>> isinstance(mk.tiers.is_cache_private(), bool)
        True
    """
    return _loader.jit.is_private


def kernel_states(only_used: bool = False) -> list[KernelState]:
    """Return the tier and compile state of all kernel modules; reads the cache folder.

    Args:
        only_used: whether to omit modules that this process has neither loaded nor requested.

    Returns:
        The states, in the order of `KERNEL_MODULES`.

    Example:
        >>> states = mk.tiers.kernel_states()
        >>> len(states) == len(mk.tiers.KERNEL_MODULES)
        True
    """
    return [_state(name) for name in KERNEL_MODULES if not only_used or name in _loader.used_modules]


def _state(name: str) -> KernelState:
    selected_tier, jit, is_used = _loader.selected_tier, _loader.jit, name in _loader.used_modules
    if selected_tier in (Tier.AUTO, Tier.PREBUILT) and prebuilt_functions(name) is not None:
        return KernelState(name, Tier.PREBUILT, "ready", is_used=is_used)
    if selected_tier is Tier.PREBUILT:
        return KernelState(name, Tier.PREBUILT, "missing", None, NOT_PREBUILT, is_used)
    if selected_tier is Tier.PLAIN:
        return KernelState(name, Tier.PLAIN, "ready", is_used=is_used)
    if (reason := reason_not_compilable()) is not None:
        return KernelState(name, Tier.PLAIN, "not compiled", None, reason, is_used)
    if jit.is_compiled(name):
        module, file, age = _loader.modules.get(name), jit.compiled_file(name), None
        with suppress(OSError):
            age = None if file is None else max(0.0, time.time() - file.stat().st_mtime)
        tier = Tier.JIT if module is None else module._tier or Tier.JIT
        return KernelState(name, tier, "ready", age, None, is_used)
    if name in _loader.abandoned_modules:
        return KernelState(name, Tier.PLAIN, "failed", None, SERVICE_ENDED, is_used)
    required_modules = with_callees([name])
    if name in _loader.pending_modules or any(map(jit.is_requested, required_modules)):
        return KernelState(name, Tier.PLAIN, "compiling", is_used=is_used)
    if (reason := next(filter(None, map(jit.failure, required_modules)), None)) is not None:
        return KernelState(name, Tier.PLAIN, "failed", None, reason, is_used)
    return KernelState(name, Tier.PLAIN, "not compiled", is_used=is_used)


def _warn_compile_failed(name: str, reason: str) -> None:
    log.warning(
        "mechanik: the kernels %s cannot be compiled, so solving stays slow: %s. Run `mechanik warmup` to try again.",
        name,
        failure_summary(reason).rstrip("."),
    )


def _tier_names() -> str:
    return ", ".join(Tier)
