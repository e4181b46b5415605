"""Sources of kernel modules: hashes of their content, signatures, and the kernels as plain Python functions.

A source stamp is a hash that identifies the sources from which machine code was compiled. Signatures have the syntax of
Numba, `f8(f8[:,::1], i8, b1)`. Plain functions check their arguments like prebuilt kernels.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

import mechanik.kernels
from mechanik.errors import NotFinite
from mechanik.kernels.compiler import KERNELS, Kernel

KERNEL_FOLDER = Path(mechanik.kernels.__file__).parent
KERNEL_PACKAGE = "mechanik.kernels"

_IMPORT_PATTERN = re.compile(r"^\s*from (\.+)([\w.]*) import \(?([\w, ]*)", re.MULTILINE)
COMPILER_MODULES = ("compiler", "numba_pipeline")
"""Modules that control how kernels are compiled; they count as sources of every kernel module."""


@functools.cache
def imported_sources(module: str) -> tuple[Path, ...]:
    """Return the file of a kernel module (`distance.collision_query`) and all kernel files that it needs, sorted.

    These are the files of `COMPILER_MODULES`, and all files that are imported directly or indirectly.
    """
    sources: dict[Path, None] = {}
    pending_files = [KERNEL_FOLDER / f"{name.replace('.', '/')}.py" for name in (module, *COMPILER_MODULES)]
    while pending_files:
        file = pending_files.pop()
        if file in sources or not file.is_file():
            continue
        sources[file] = None
        for dots, name, names in _IMPORT_PATTERN.findall(file.read_text(encoding="utf-8")):
            base_path = file.parents[len(dots) - 1].joinpath(*name.split("."))
            pending_files.append(base_path.with_suffix(".py"))
            pending_files += [base_path / f"{imported.strip()}.py" for imported in names.split(",") if imported.strip()]
    return tuple(sorted(sources))


@functools.cache
def source_stamp(module: str) -> str:
    """Return a hash of all sources of a kernel module, as they are at the first call in this process."""
    digest = hashlib.sha256()
    for file in imported_sources(module):
        digest.update(file.relative_to(KERNEL_FOLDER).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


DTYPES = {"f8": np.dtype("f8"), "f4": np.dtype("f4"), "i8": np.dtype("i8"), "b1": np.dtype("?")}
"""NumPy types of arguments, by their codes in signatures."""


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """Type of a kernel argument: a scalar, or a writable C-contiguous array.

    Attributes:
        code: element type, `f8`, `f4`, `i8` or `b1`.
        ndim: number of dimensions; 0 for a scalar.
    """

    code: str
    ndim: int


@dataclass(frozen=True, slots=True)
class KernelSignature:
    """Parsed signature of a kernel.

    Attributes:
        result: result type, such as `void`, `f8`, `i8`, `b1` or `UniTuple(f8, 2)`.
        arguments: argument types.
    """

    result: str
    arguments: tuple[KernelArgument, ...]


@functools.cache
def parse_signature(signature: str) -> KernelSignature:
    """Parse a signature; raises `ValueError` for arguments other than numbers and contiguous arrays."""
    result, argument_text = _split_result(signature)
    arguments: list[KernelArgument] = []
    for text in _split_at_commas(argument_text):
        code, _, axes = text.partition("[")
        if code not in DTYPES or (axes and not axes.endswith("::1]")):
            raise ValueError(f"{text!r} in the signature {signature!r} is neither a number nor a contiguous array")
        arguments.append(KernelArgument(code, axes.count(":,") + 1 if axes else 0))
    return KernelSignature(result, tuple(arguments))


def with_functions(signature: str, callees: list[str]) -> str:
    """Return the signature of a kernel whose first arguments are functions with the signatures `callees`."""
    result, argument_text = _split_result(signature)
    return f"{result}({', '.join([*(f'FunctionType({callee})' for callee in callees), argument_text])})"


def _split_result(signature: str) -> tuple[str, str]:
    """Split a signature into the result type and the text inside the last outer parentheses."""
    signature = signature.strip()
    depth = 0
    for position in range(len(signature) - 1, -1, -1):
        depth += (signature[position] == ")") - (signature[position] == "(")
        if depth == 0:
            return signature[:position].strip(), signature[position + 1 : -1]
    raise ValueError(f"{signature!r} is not a signature")


def _split_at_commas(text: str) -> list[str]:
    """Split a text at the commas outside of brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


KernelFunctions = dict[str, Callable[..., Any]]

INDEX_VIEWS = (KernelArgument("i8", 1),)
"""Types of the arrays that plain functions access as memory views by default."""
FLOAT_VIEWS = (*INDEX_VIEWS, KernelArgument("f8", 1))
"""Types of the arrays that plain functions of `FLOAT_VIEW_MODULES` access as memory views."""
FLOAT_VIEW_MODULES = ("descent", "dense_evaluation")
"""Kernel modules that access their float tables element by element, which is faster with memory views."""
REAL_TYPES: tuple[type, ...] = (float, int, np.floating, np.integer)


def declared_kernels(module: str) -> dict[str, Kernel]:
    """Import a kernel module and return its kernels by name."""
    importlib.import_module(f"{KERNEL_PACKAGE}.{module}")
    return KERNELS[module]


@functools.cache
def plain_functions(module: str) -> dict[str, Callable[..., Any]]:
    """Return the kernels of a kernel module as plain Python functions, by name."""
    views = FLOAT_VIEWS if module in FLOAT_VIEW_MODULES else INDEX_VIEWS
    return {name: _with_argument_checks(name, kernel, views) for name, kernel in declared_kernels(module).items()}


def _with_argument_checks(
    name: str, kernel: Kernel, views: Sequence[KernelArgument] = INDEX_VIEWS
) -> Callable[..., Any]:
    """Wrap a kernel so that it rejects wrong arguments, like its prebuilt machine code.

    Args:
        name: name of the kernel, for error messages.
        kernel: the kernel with its plain Python function.
        views: types of the arrays that are passed as memory views. Elements of memory views are Python numbers, with
            which computations are two to three times as fast as with NumPy scalars.
    """
    argument_types = parse_signature(kernel.signature).arguments
    function = kernel.function
    for callee in kernel.calls:
        module, _, callee_name = callee.partition(":")
        function = functools.partial(function, declared_kernels(module)[callee_name].function)

    def run(arguments: list[Any], views: Sequence[KernelArgument]) -> Any:
        values = (
            argument.data if argument_type in views else argument
            for argument, argument_type in zip(arguments, argument_types, strict=True)
        )
        with np.errstate(all="ignore"):  # as in machine code; the caller checks whether the result is finite
            return function(*values)

    @functools.wraps(kernel.function)
    def call(*arguments: Any) -> Any:
        if len(arguments) != len(argument_types):
            raise TypeError(f"{name} takes {len(argument_types)} arguments, not {len(arguments)}")
        converted_arguments = list(map(_convert_argument, arguments, argument_types))
        try:
            return run_with_views(converted_arguments)
        except (OverflowError, ValueError) as error:  # machine code would return NaN, for which callers check
            raise NotFinite(f"a number is not finite, or too large to compute with ({error})") from None

    def run_with_views(converted_arguments: list[Any]) -> Any:
        if views is INDEX_VIEWS:
            return run(converted_arguments, views)
        arrays = [
            (argument, argument.copy())
            for argument, argument_type in zip(converted_arguments, argument_types, strict=True)
            if argument_type.ndim
        ]
        try:
            return run(converted_arguments, views)
        except ZeroDivisionError:  # only Python numbers raise it; machine code and NumPy scalars give infinity or NaN
            for array, original_values in arrays:
                array[...] = original_values
            return run(converted_arguments, INDEX_VIEWS)

    return call


def _convert_argument(value: Any, argument_type: KernelArgument) -> Any:
    """Convert an argument to its declared type, like prebuilt kernels; raises `TypeError` if it has a wrong type."""
    if argument_type.ndim:
        if not _matches(value, argument_type):
            raise TypeError(
                f"not a contiguous, writable array of {argument_type.ndim} dimensions and type {argument_type.code}"
            )
        return value
    if argument_type.code == "f8":
        if not isinstance(value, REAL_TYPES):
            raise TypeError(f"not a number: {value!r}")
        return np.float64(value)
    return bool(value) if argument_type.code == "b1" else operator.index(value)


def _matches(value: Any, argument_type: KernelArgument) -> bool:
    if not isinstance(value, np.ndarray):
        return False
    array = cast(np.ndarray[Any, np.dtype[Any]], value)
    return array.ndim == argument_type.ndim and array.dtype == DTYPES[argument_type.code] and array.flags.carray


def with_callees(names: Iterable[str]) -> list[str]:
    """Return kernel modules and all modules whose kernels they call, without duplicates; callees come first."""
    modules: dict[str, None] = {}
    for name in names:
        for kernel in declared_kernels(name).values():
            for callee in kernel.calls:
                modules.update(dict.fromkeys(with_callees([callee.partition(":")[0]])))
        modules[name] = None
    return list(modules)
