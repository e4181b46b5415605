"""Kernels as plain Python, with the checks of arguments that compiled kernels make."""

from __future__ import annotations

import functools
import importlib
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy as np

from mechanik.errors import NotFinite
from mechanik.kernels.compiler import KERNELS, Kernel
from mechanik.tiers.signature import DTYPES, Argument, parse
from mechanik.tiers.sources import PACKAGE

Functions = dict[str, Callable[..., Any]]

INDICES = (Argument("i8", 1),)
FLOATS = (*INDICES, Argument("f8", 1))
VIEWED = ("descent", "look")
"""Modules that read and write their tables of floats number by number."""
REAL: tuple[type, ...] = (float, int, np.floating, np.integer)


def declared_kernels(module: str) -> dict[str, Kernel]:
    """The kernels of a module, by name."""
    importlib.import_module(f"{PACKAGE}.{module}")
    return KERNELS[module]


@functools.cache
def plain_functions(module: str) -> dict[str, Callable[..., Any]]:
    """The kernels of a module as Python functions."""
    views = FLOATS if module in VIEWED else INDICES
    return {name: _checked(name, kernel, views) for name, kernel in declared_kernels(module).items()}


def _checked(name: str, kernel: Kernel, views: Sequence[Argument] = INDICES) -> Callable[..., Any]:
    """A kernel that takes what its machine code would take.

    Args:
        views: arrays that it is given as memory views. Their numbers are Python's own, which are two to three times as
            fast as NumPy's.
    """
    given = parse(kernel.signature).arguments
    function = kernel.function
    for callee in kernel.calls:
        module, _, callee_name = callee.partition(":")
        function = functools.partial(function, declared_kernels(module)[callee_name].function)

    def run(arguments: list[Any], views: Sequence[Argument]) -> Any:
        viewed = (one.data if kind in views else one for one, kind in zip(arguments, given, strict=True))
        with np.errstate(all="ignore"):  # as in machine code: what is not finite is found in the answer
            return function(*viewed)

    @functools.wraps(kernel.function)
    def call(*arguments: Any) -> Any:
        if len(arguments) != len(given):
            raise TypeError(f"{name} takes {len(given)} arguments, not {len(arguments)}")
        taken = list(map(_converted, arguments, given))
        try:
            return run_with_views(taken)
        except (OverflowError, ValueError) as error:  # machine code goes on with NaN, and its callers refuse that
            raise NotFinite(f"a number is not finite, or too large to compute with ({error})") from None

    def run_with_views(taken: list[Any]) -> Any:
        if views is INDICES:
            return run(taken, views)
        arrays = [(one, one.copy()) for one, kind in zip(taken, given, strict=True) if kind.ndim]
        try:
            return run(taken, views)
        except ZeroDivisionError:  # by Python's numbers; machine code and NumPy's numbers go on with infinity
            for array, before in arrays:
                array[...] = before
            return run(taken, INDICES)

    return call


def _converted(value: Any, argument: Argument) -> Any:
    """An argument as machine code would take it; TypeError if it would not."""
    if argument.ndim:
        if not _fits(value, argument):
            raise TypeError(f"not a contiguous, writable array of {argument.ndim} dimensions and type {argument.code}")
        return value
    if argument.code == "f8":
        if not isinstance(value, REAL):
            raise TypeError(f"not a number: {value!r}")
        return np.float64(value)
    return bool(value) if argument.code == "b1" else operator.index(value)


def _fits(value: Any, argument: Argument) -> bool:
    if not isinstance(value, np.ndarray):
        return False
    array = cast(np.ndarray[Any, np.dtype[Any]], value)
    return array.ndim == argument.ndim and array.dtype == DTYPES[argument.code] and array.flags.carray


def with_callees(names: Iterable[str]) -> list[str]:
    """Modules of kernels, and before each the modules of the kernels that it calls."""
    found: dict[str, None] = {}
    for name in names:
        for kernel in declared_kernels(name).values():
            for callee in kernel.calls:
                found.update(dict.fromkeys(with_callees([callee.partition(":")[0]])))
        found[name] = None
    return list(found)
