"""Kernels as plain Python, with the checks of arguments that compiled kernels make."""

from __future__ import annotations

import functools
import importlib
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from mechanik.kernels.compiler import KERNELS, Kernel
from mechanik.tiers.signature import DTYPES, Argument, parse
from mechanik.tiers.sources import PACKAGE

INDICES = Argument("i8", 1)


def declared_kernels(module: str) -> dict[str, Kernel]:
    """The kernels of a module, by name."""
    importlib.import_module(f"{PACKAGE}.{module}")
    return KERNELS[module]


@functools.cache
def plain_functions(module: str) -> dict[str, Callable[..., Any]]:
    """The kernels of a module as Python functions."""
    return {name: _checked(name, kernel) for name, kernel in declared_kernels(module).items()}


def _checked(name: str, kernel: Kernel) -> Callable[..., Any]:
    given = parse(kernel.signature).arguments
    function = kernel.function
    for callee in kernel.calls:
        module, _, callee_name = callee.partition(":")
        function = functools.partial(function, declared_kernels(module)[callee_name].function)

    @functools.wraps(kernel.function)
    def call(*arguments: Any) -> Any:
        if len(arguments) != len(given):
            raise TypeError(f"{name} takes {len(given)} arguments, not {len(arguments)}")
        with np.errstate(all="ignore"):  # as in machine code: what is not finite is found in the answer
            return function(*map(_converted, arguments, given))

    return call


def _converted(value: Any, argument: Argument) -> Any:
    """An argument as machine code would take it; TypeError if it would not."""
    if argument.ndim:
        if (
            isinstance(value, np.ndarray)
            and value.ndim == argument.ndim
            and value.dtype == DTYPES[argument.code]
            and value.flags.carray
        ):
            # numbers of a memory view are Python's own, which makes indices twice as fast as NumPy's
            return value.data if argument == INDICES else value
        raise TypeError(f"not a contiguous, writable array of {argument.ndim} dimensions and type {argument.code}")
    if argument.code == "f8":
        if isinstance(value, float | int | np.floating | np.integer):
            return np.float64(value)
        raise TypeError(f"not a number: {value!r}")
    return bool(value) if argument.code == "b1" else operator.index(value)
