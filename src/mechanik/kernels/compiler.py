"""Decorators for kernels: `kernel` for what Python calls, `part` and `helper` for what only kernels call.

The folder of kernels is imported under two names. As `mechanik.kernels` the decorators return each function as it is:
plain Python, for debugging and until machine code is ready. Under any other name (see `mechanik.tiers.numba_kernels`)
they return Numba's dispatchers, which compile. For this kernels import one another relatively.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

IS_PLAIN = __name__ == "mechanik.kernels.compiler"
"""Whether the functions of this package are plain Python."""

OPTIONS: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy"}
"""No full fastmath: it would let NaN through the clamps. Fused multiply-adds are welcome."""
INSIDE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""For what only kernels call: otherwise a wrapper for calls from Python would be compiled for each."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function that Python calls.

    Attributes:
        function: plain Python, or Numba's dispatcher.
        signature: types of the result and of the arguments, as Numba writes them, without those of `calls`.
        nogil: whether other threads may run meanwhile.
        calls: kernels of other modules ("distance.watch:watch") that it takes as its first arguments. They are bound
            when the kernel is loaded, so that both are compiled apart and share one copy of the code.
    """

    function: Callable[..., Any]
    signature: str
    nogil: bool
    calls: tuple[str, ...]


KERNELS: dict[str, dict[str, Kernel]] = {}
"""Every kernel of the modules imported so far: by module (`distance.watch`), then by name."""


def kernel(
    signature: str, nogil: bool = True, calls: tuple[str, ...] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function that Python calls, with the one signature it has.

    Args:
        nogil: whether other threads may run meanwhile; costs a call 0.05 us, too much for the shortest kernels.
        calls: see `Kernel`.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        module = function.__module__.removeprefix(__name__.removesuffix("compiler"))
        known = function if IS_PLAIN else _compiled(function, is_kernel=True, nogil=nogil, **OPTIONS)
        KERNELS.setdefault(module, {})[function.__name__] = Kernel(known, signature, nogil, calls)
        return known

    return declare


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a short function that only kernels call; it is inlined."""
    return function if IS_PLAIN else _compiled(function, forceinline=True, **OPTIONS, **INSIDE)


def part(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a large function that only kernels call. It is not copied to each place, which would take long to compile.

    Its sums may be taken in another order, which lets the compiler use vectors.
    """
    options = {**OPTIONS, **INSIDE, "fastmath": {"contract", "reassoc"}}
    return function if IS_PLAIN else _compiled(function, **options)


def _compiled(function: Callable[..., Any], is_kernel: bool = False, **options: Any) -> Any:
    """Numba's dispatcher for a function, which compiles it when it is first needed."""
    numba: Any = importlib.import_module("numba")
    pipeline: Any = importlib.import_module(".numba_pipeline", __package__)
    # machine code is loaded where the package has its usual name
    function.__module__ = "mechanik.kernels." + function.__module__.removeprefix(__name__.removesuffix("compiler"))
    return numba.njit(**options, **pipeline.pipeline_options(is_kernel))(function)
