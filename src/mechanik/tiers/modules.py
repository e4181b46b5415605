"""Modules of kernels as objects whose functions run in the best tier that is ready."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mechanik.errors import KernelsUnavailable
from mechanik.tiers.jit_cache import POLL_SECONDS, Functions, JitCache, can_compile, short_switches
from mechanik.tiers.plain import plain_functions
from mechanik.tiers.prebuilt import prebuilt_functions

log = logging.getLogger("mechanik")

KERNEL_MODULES: dict[str, float] = {
    "forward": 5, "descent": 65, "look": 2, "chain": 13, "lanes": 6, "put_targets": 1, "distance.watch": 40,
    "distance.nearest_starts": 1, "tracking.step": 33, "planning.trees": 3,
    "planning.shortening": 2, "planning.corners": 2, "planning.certificate": 4, "planning.retraction": 6,
    "planning.curve": 3, "ccd_sweep": 5, "methods.gradient_steps": 4, "methods.least_squares_steps": 4,
    "methods.finite_differences": 4, "methods.fabrik": 4,
}  # fmt: skip
"""Each module of kernels, with the processor seconds that compiling it took on a 2-core cloud machine."""
ENVIRONMENT = "MECHANIK_KERNELS"
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
        state: "ready", "compiling", "failed" or "not compiled".
        age: seconds since its machine code was compiled; None without.
        reason: why compiling failed.
    """

    module: str
    tier: Tier
    state: str
    age: float | None = None
    reason: str | None = None


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
        self.jit = JitCache()
        self.lock = threading.RLock()
        self._chosen: Tier | None = None
        self._pending: set[str] = set()
        self._watcher: threading.Thread | None = None
        self._has_announced = False

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

    def install_compiled(self, module: KernelModule) -> bool:
        """Run a module by compiled kernels if they are in the cache; False if they are not."""
        functions = self.jit.functions(module._name) if self.jit.is_compiled(module._name) else None
        if functions is None:
            return False
        module._install(functions, Tier.JIT)
        return True

    def wait(self, names: list[str], what: str = "") -> None:
        self.jit.wait(names, KERNEL_MODULES, what)

    def _compile_in_background(self, name: str) -> None:
        coming = self.jit.request([name], is_urgent=False)
        if not coming and not self.jit.is_compiled(name):
            if (reason := self.jit.failure(name)) is not None:
                _tell_failure(name, reason)
            return
        if coming:
            log.info("%s (%s)", IN_BACKGROUND, ", ".join(coming))
            if not self._has_announced and sys.stderr and sys.stderr.isatty():
                self._has_announced = True
                sys.stderr.write(IN_BACKGROUND + "\n")
                sys.stderr.flush()
        self._pending.add(name)
        if self._watcher is None or not self._watcher.is_alive():
            self._watcher = threading.Thread(target=self._watch, name="mechanik kernels", daemon=True)
            self._watcher.start()

    def _watch(self) -> None:
        """Replace plain Python as machine code becomes ready; runs in a thread of its own."""
        while True:
            with self.lock:
                if not self._pending:
                    self._watcher = None
                    return
                pending = sorted(self._pending)
            for name in pending:
                if self.jit.is_compiled(name):
                    self._take_over(name)
                elif (reason := self.jit.failure(name)) is not None:
                    _tell_failure(name, reason)
                elif self.jit.keep_service():
                    continue
                with self.lock:
                    self._pending.discard(name)
            time.sleep(POLL_SECONDS)

    def _take_over(self, name: str) -> None:
        with short_switches():  # outside of the lock: nobody waits for this
            functions = self.jit.functions(name)
        with self.lock:
            module = self.modules[name]
            if functions is not None and module._tier is Tier.PLAIN and self.chosen is Tier.AUTO:
                module._install(functions, Tier.JIT)
                log.info("mechanik: the compiled kernels %s are in use", name)


_loader = _Loader()


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
        raise KernelsUnavailable("compiling kernels needs Numba: pip install 'mechanik[jit]'")
    if chosen is Tier.PREBUILT and prebuilt_functions("forward") is None:
        raise KernelsUnavailable("this installation has no prebuilt kernels for its sources and this processor")
    _loader.choose(chosen)


def wait_for(*names: str, what: str = "") -> None:
    """Wait until modules of kernels are compiled, for long work that is not worth beginning in plain Python.

    Returns at once where they are, where plain Python was chosen, and where nothing can be compiled.

    Args:
        what: what needs them, for the progress line.
    """
    if _loader.chosen is not Tier.AUTO or not can_compile():
        return
    slow: list[KernelModule] = []
    for module in map(kernel_module, names):
        _loader.load(module)
        if module._tier is Tier.PLAIN:
            slow.append(module)
    if not slow:
        return
    try:
        _loader.wait([module._name for module in slow], what)
    except KernelsUnavailable as error:
        log.warning("mechanik: %s; plain Python is used", error)
        return
    with _loader.lock:
        for module in slow:
            _loader.install_compiled(module)


def warm_up() -> None:
    """Compile all kernels now, in parallel, with a progress line, so that nothing runs in plain Python afterwards.

    Does nothing where prebuilt kernels are installed.
    """
    if _loader.chosen in (Tier.AUTO, Tier.JIT):
        missing = [name for name in KERNEL_MODULES if _loader.chosen is Tier.JIT or not prebuilt_functions(name)]
        if missing:
            _loader.wait(missing)
        wait_for(*KERNEL_MODULES)


def kernel_states() -> list[KernelState]:
    """How each module of kernels is run now, or would be at its next use."""
    return [_state(name) for name in KERNEL_MODULES]


def _state(name: str) -> KernelState:
    chosen, jit = _loader.chosen, _loader.jit
    if chosen in (Tier.AUTO, Tier.PREBUILT) and prebuilt_functions(name) is not None:
        return KernelState(name, Tier.PREBUILT, "ready")
    if chosen is Tier.PLAIN:
        return KernelState(name, Tier.PLAIN, "ready")
    module = _loader.modules.get(name)
    if can_compile() and (file := jit.compiled_file(name)) is not None:
        with suppress(OSError):
            age = max(0.0, time.time() - file.stat().st_mtime)
            return KernelState(name, Tier.JIT if module is None else module._tier or Tier.JIT, "ready", age)
    if can_compile() and jit.is_requested(name):
        return KernelState(name, Tier.PLAIN, "compiling")
    if can_compile() and (reason := jit.failure(name)) is not None:
        return KernelState(name, Tier.PLAIN, "failed", None, reason)
    return KernelState(name, Tier.PLAIN, "not compiled")


def _tell_failure(name: str, reason: str) -> None:
    log.warning("mechanik: the kernels %s cannot be compiled, so answers stay slow: %s", name, reason.strip())


def _names() -> str:
    return ", ".join(Tier)
