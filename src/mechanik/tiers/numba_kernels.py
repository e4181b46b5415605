"""Kernels compiled by Numba: compilation to bytes in one process, and loading of these bytes in another process."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import pickle
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mechanik.kernels.compiler import COMPILER_OPTIONS
from mechanik.tiers.kernel_sources import KERNEL_FOLDER, KernelFunctions, declared_kernels, with_functions

COMPILED_PACKAGE = "mechanik.numba_kernels"
"""Name under which the kernel folder is imported a second time, with decorators that compile."""


def compiled_package() -> str:
    """Make `COMPILED_PACKAGE` importable and return its name; the kernels in its modules are Numba dispatchers."""
    if COMPILED_PACKAGE not in sys.modules:
        package = types.ModuleType(COMPILED_PACKAGE)
        package.__path__ = [str(KERNEL_FOLDER)]
        sys.modules[COMPILED_PACKAGE] = package
    return COMPILED_PACKAGE


def compile_module(module: str) -> dict[str, bytes]:
    """Compile the kernels of a kernel module for this processor; returns their machine code by name."""
    serialize = importlib.import_module("numba.core.serialize")
    code: dict[str, bytes] = {}
    for name, dispatcher in compiled_dispatchers(module).items():
        (result,) = dispatcher.overloads.values()
        code[name] = serialize.dumps(result._reduce())
    return code


def compiled_dispatchers(module: str) -> dict[str, Any]:
    """Compile the kernels of a kernel module in this process; returns their Numba dispatchers by name."""
    package = compiled_package()
    importlib.import_module(f"{package}.{module}")
    kernels = importlib.import_module(f"{package}.compiler").KERNELS
    dispatchers: dict[str, Any] = {}
    for name, kernel in kernels[module].items():
        kernel.function.compile(numba_signature(module, name))
        dispatchers[name] = kernel.function
    return dispatchers


def numba_signature(module: str, name: str) -> str:
    """Return the Numba signature of a kernel, including the kernels that are its first arguments."""
    kernel = declared_kernels(module)[name]
    callees = [callee.split(":") for callee in kernel.calls]  # each is `module:function`
    return with_functions(
        kernel.signature, [declared_kernels(callee_module)[function].signature for callee_module, function in callees]
    )


def import_numba() -> Any:
    """Import and return Numba; except on Windows, its largest library is loaded without holding the interpreter lock.

    A plain `import` would hold the lock for about 40 ms and block all other threads.
    """
    if "llvmlite" not in sys.modules and sys.platform != "win32":
        import ctypes

        spec = importlib.util.find_spec("llvmlite")
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            for library in Path(folder, "binding").glob("libllvmlite.*"):
                # a call of a C function releases the interpreter lock, ctypes.CDLL(path) does not
                ctypes.CDLL(None).dlopen(os.fsencode(library), os.RTLD_NOW | os.RTLD_LOCAL)
    importlib.import_module("numba.core.compiler")  # fails if a user's file numba.py is imported instead of Numba
    return importlib.import_module("numba")


def load_functions(module: str, code: dict[str, bytes]) -> dict[str, Callable[..., Any]]:
    """Load the kernels of a kernel module from the machine code of `compile_module`.

    The first arguments of a kernel that calls other kernels are these kernels, see `bind_callees`.
    """
    numba = import_numba()
    result_type = importlib.import_module("numba.core.compiler").CompileResult
    functions: dict[str, Callable[..., Any]] = {}
    for name, kernel in declared_kernels(module).items():
        dispatcher = numba.njit(nogil=kernel.nogil, **COMPILER_OPTIONS)(kernel.function)
        dispatcher.targetctx.refresh()  # initializes the runtime, as Numba does before it reads its own cache
        result = result_type._rebuild(dispatcher.targetctx, *pickle.loads(code[name]))
        dispatcher.targetctx.insert_user_function(result.entry_point, result.fndesc, [result.library])
        dispatcher.add_overload(result)
        dispatcher.disable_compile()
        functions[name] = dispatcher
    return functions


def bind_callees(
    module: str, functions: KernelFunctions, get_functions: Callable[[str], KernelFunctions]
) -> KernelFunctions:
    """Return the kernels of a module with their first arguments bound: the kernels that they call.

    Args:
        module: name of the kernel module.
        functions: functions of the module, from `load_functions`.
        get_functions: returns the functions of another kernel module by its name.
    """
    bound_functions = dict(functions)
    for name, kernel in declared_kernels(module).items():
        for callee in kernel.calls:
            callee_module, _, function = callee.partition(":")
            bound_functions[name] = functools.partial(bound_functions[name], get_functions(callee_module)[function])
    return bound_functions
