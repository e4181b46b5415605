"""Decorators that declare compiled functions, and the registry of the functions that are called from Python.

`kernel` declares and registers a function that is called from Python, `subroutine` and `inline` declare internal
functions.

The package is imported under two names. As `mechanik.kernels`, the decorators return each function unchanged: plain
Python, for debugging and until machine code is ready. Under any other name (see `mechanik.tiers.numba_kernels`) they
return Numba dispatchers, which compile. Therefore kernels import each other by relative imports only.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

IS_PLAIN_PYTHON = __name__ == "mechanik.kernels.compiler"
"""Whether this import of the package runs as plain Python."""

COMPILER_OPTIONS: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy"}
"""Numba options of all functions: fused multiply-adds are allowed, and division by zero gives infinity or NaN. The full
fastmath is not allowed: it assumes that there is no NaN, so NaN would pass through clamps."""
INTERNAL_OPTIONS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Further options of internal functions: no wrappers for calls from Python or C, which would take time to compile."""
UNCOUNTED, COUNTED = {"_nrt": False}, {"_nrt": True}
"""Numba options of functions that do not count references to arrays, and of functions that do.

All internal functions count them, whichever kernel they are compiled for first. `numba_pipeline.KernelLibrary` removes
the counts from kernels that make no new arrays."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function that is called from Python, plain or compiled.

    Attributes:
        function: the plain Python function, or its Numba dispatcher.
        signature: types of the result and of the arguments in Numba's notation, without the arguments for `calls`.
        nogil: whether the compiled kernel releases the global interpreter lock.
        calls: kernels of other modules, "module:name" (such as "distance.collision_query:query"), which this kernel
            takes as its first arguments. They are bound when this kernel is loaded, so each kernel is compiled once,
            even if several kernels call it.
        allocates: whether the kernel, or a function that it calls, makes new arrays.
    """

    function: Callable[..., Any]
    signature: str
    nogil: bool
    calls: tuple[str, ...]
    allocates: bool


KERNELS: dict[str, dict[str, Kernel]] = {}
"""All kernels of the modules imported so far, by module ("distance.collision_query"), then by name."""


def kernel(
    signature: str, nogil: bool = True, calls: tuple[str, ...] = (), allocates: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function that is called from Python, with its only signature.

    Args:
        signature: types of the result and of the arguments in Numba's notation, see `Kernel`.
        nogil: whether the kernel releases the global interpreter lock. This adds 0.05 us to each call, which is too
            much for the shortest kernels.
        calls: kernels of other modules that are passed as the first arguments, see `Kernel`.
        allocates: whether the kernel, or a function that it calls, makes new arrays. Without new arrays, references to
            arrays need not be counted, which would take up to a quarter of the time of a short kernel.

    Returns:
        The decorator, which registers the function in `KERNELS`.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        module = function.__module__.removeprefix(__name__.removesuffix("compiler"))
        options: dict[str, Any] = COMPILER_OPTIONS | (COUNTED if allocates else UNCOUNTED)
        declared_function = (
            function if IS_PLAIN_PYTHON else _dispatcher(function, is_kernel=True, nogil=nogil, **options)
        )
        KERNELS.setdefault(module, {})[function.__name__] = Kernel(
            declared_function, signature, nogil, calls, allocates
        )
        return declared_function

    return declare


def inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare a short internal function that is inlined into every caller."""
    return (
        function
        if IS_PLAIN_PYTHON
        else _dispatcher(function, forceinline=True, **COMPILER_OPTIONS, **INTERNAL_OPTIONS, **COUNTED)
    )


def subroutine(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare an internal function; the compiler decides whether to inline it, which keeps compile times short.

    The compiler may reorder its sums, so that it can vectorise them.
    """
    options: dict[str, Any] = {**COMPILER_OPTIONS, **INTERNAL_OPTIONS, **COUNTED, "fastmath": {"contract", "reassoc"}}
    return function if IS_PLAIN_PYTHON else _dispatcher(function, **options)


def _dispatcher(function: Callable[..., Any], is_kernel: bool = False, **options: Any) -> Any:
    """Return the Numba dispatcher of a function, which compiles it on first use."""
    numba: Any = importlib.import_module("numba")
    pipeline: Any = importlib.import_module(".numba_pipeline", __package__)
    # compiled code refers to its module by name, and a process that loads cached code may have imported only
    # `mechanik.kernels`
    function.__module__ = "mechanik.kernels." + function.__module__.removeprefix(__name__.removesuffix("compiler"))
    return numba.njit(**options, **pipeline.pipeline_options(is_kernel))(function)
