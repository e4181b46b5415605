"""Signatures of kernels, as Numba writes them: `f8(f8[:,::1], i8, b1)`."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

DTYPES = {"f8": np.dtype("f8"), "f4": np.dtype("f4"), "i8": np.dtype("i8"), "b1": np.dtype("?")}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: a scalar (ndim 0), or a contiguous array that can be written.

    Attributes:
        code: `f8`, `f4`, `i8` or `b1`.
    """

    code: str
    ndim: int


@dataclass(frozen=True, slots=True)
class Signature:
    """
    Attributes:
        result: `void`, `f8`, `i8`, `b1`, or `UniTuple(f8, 2)`.
    """

    result: str
    arguments: tuple[Argument, ...]


@functools.cache
def parse(signature: str) -> Signature:
    """Read a signature; kernels have no others than contiguous arrays and numbers."""
    result, inside = _split(signature)
    arguments: list[Argument] = []
    for text in _commas(inside):
        code, _, axes = text.partition("[")
        if code not in DTYPES or (axes and not axes.endswith("::1]")):
            raise ValueError(f"{text!r} in the signature {signature!r} is neither a number nor a contiguous array")
        arguments.append(Argument(code, axes.count(":,") + 1 if axes else 0))
    return Signature(result, tuple(arguments))


def with_functions(signature: str, callees: list[str]) -> str:
    """The signature of a kernel that takes functions of these signatures before its other arguments."""
    result, inside = _split(signature)
    return f"{result}({', '.join([*(f'FunctionType({callee})' for callee in callees), inside])})"


def _split(signature: str) -> tuple[str, str]:
    """The result, and what stands between the last parentheses, which may hold others."""
    signature = signature.strip()
    depth = 0
    for at in range(len(signature) - 1, -1, -1):
        depth += (signature[at] == ")") - (signature[at] == "(")
        if depth == 0:
            return signature[:at].strip(), signature[at + 1 : -1]
    raise ValueError(f"{signature!r} is not a signature")


def _commas(text: str) -> list[str]:
    """What stands between commas outside of brackets."""
    pieces, depth = [""], 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [piece.strip() for piece in pieces if piece.strip()]
