"""Kernels compiled by Numba: compiled in one process to bytes, and made functions again in others."""

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

from mechanik.kernels.compiler import OPTIONS
from mechanik.tiers.plain import declared_kernels
from mechanik.tiers.signature import with_functions
from mechanik.tiers.sources import FOLDER

COMPILED = "mechanik.numba_kernels"
"""The name under which the folder of kernels is imported a second time, with decorators that compile."""


def compiled_package() -> str:
    """Make the name `COMPILED` importable; modules of kernels imported below it consist of Numba's dispatchers."""
    if COMPILED not in sys.modules:
        package = types.ModuleType(COMPILED)
        package.__path__ = [str(FOLDER)]
        sys.modules[COMPILED] = package
    return COMPILED


def compile_module(module: str) -> dict[str, bytes]:
    """Compile the kernels of a module for this processor; their machine code by name, for `functions_from`."""
    serialize = importlib.import_module("numba.core.serialize")
    made: dict[str, bytes] = {}
    for name, dispatcher in compiled_dispatchers(module).items():
        (result,) = dispatcher.overloads.values()
        made[name] = serialize.dumps(result._reduce())
    return made


def compiled_dispatchers(module: str) -> dict[str, Any]:
    """The kernels of a module as dispatchers that have been compiled in this process."""
    package = compiled_package()
    importlib.import_module(f"{package}.{module}")
    kernels = importlib.import_module(f"{package}.compiler").KERNELS
    made: dict[str, Any] = {}
    for name, kernel in kernels[module].items():
        kernel.function.compile(numba_signature(module, name))
        made[name] = kernel.function
    return made


def numba_signature(module: str, name: str) -> str:
    """The signature of a kernel with those of the kernels that it is given."""
    kernel = declared_kernels(module)[name]
    callees = [callee.split(":") for callee in kernel.calls]
    return with_functions(kernel.signature, [declared_kernels(one)[function].signature for one, function in callees])


def import_numba() -> Any:
    """Import Numba while other threads run: its largest library is loaded without holding the interpreter.

    `import` would hold it for some 40 ms, in which no other thread can answer.
    """
    if "llvmlite" not in sys.modules and sys.platform != "win32":
        import ctypes

        spec = importlib.util.find_spec("llvmlite")
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            for library in Path(folder, "binding").glob("libllvmlite.*"):
                # a call of a foreign function releases the interpreter, ctypes.CDLL(path) does not
                ctypes.CDLL(None).dlopen(os.fsencode(library), os.RTLD_NOW | os.RTLD_LOCAL)
    importlib.import_module("numba.core.compiler")  # a file called numba.py has none
    return importlib.import_module("numba")


def functions_from(module: str, code: dict[str, bytes]) -> dict[str, Callable[..., Any]]:
    """The kernels of a module from what `compile_module` made; they take the kernels that they call as arguments."""
    numba = import_numba()
    result_type = importlib.import_module("numba.core.compiler").CompileResult
    made: dict[str, Callable[..., Any]] = {}
    for name, kernel in declared_kernels(module).items():
        dispatcher = numba.njit(nogil=kernel.nogil, **OPTIONS)(kernel.function)
        dispatcher.targetctx.refresh()  # so that its runtime is there, as where Numba reads its own cache
        result = result_type._rebuild(dispatcher.targetctx, *pickle.loads(code[name]))
        dispatcher.targetctx.insert_user_function(result.entry_point, result.fndesc, [result.library])
        dispatcher.add_overload(result)
        dispatcher.disable_compile()
        made[name] = dispatcher
    return made


def bind(module: str, functions: dict[str, Callable[..., Any]], find: Callable[[str], dict[str, Callable[..., Any]]]
) -> dict[str, Callable[..., Any]]:  # fmt: skip
    """Give kernels the kernels that they call, of the modules that `find` returns."""
    bound = dict(functions)
    for name, kernel in declared_kernels(module).items():
        for callee in kernel.calls:
            other, _, function = callee.partition(":")
            bound[name] = functools.partial(bound[name], find(other)[function])
    return bound
